//! Writes the seeds of every target into `corpus/`: small valid files of every format and layout.
//!
//! ```text
//! cargo run --example seeds
//! ```

#[allow(dead_code, reason = "the tests of the tables use more of it")]
#[path = "../../crates/pointsman-table/tests/table/support.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};

use arrow_ipc::CompressionType;
use parquet::basic::{Compression, GzipLevel};
use pointsman::{Partition, Router};
use pointsman_table::save_router;
use support::{Folder, Layout, Nesting, Precision, Sample, array, arrow_file, arrow_stream, deflated, parquet, zip};

/// The format, as the table target's first byte.
const CSV: u8 = 0;
const TSV: u8 = 1;
const JSONL: u8 = 2;
const PARQUET: u8 = 3;
const ARROW: u8 = 4;
const NPZ: u8 = 5;

/// The reading options, as the table target's second byte.
const PLAIN: u8 = 0;
const VOTES: u8 = 2;
const FILTER: u8 = 4;
const COLUMNS: u8 = 8;
const IN_PAIRS: u8 = 16;
const ANNOTATIONS: u8 = 2 << 6;
const ANNOTATED: u8 = 3 << 6;

fn main() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    tables(&Seeds::new(corpus.join("table"))?)?;
    routers(&Seeds::new(corpus.join("router"))?)?;
    parts(&Seeds::new(corpus.join("part"))?)?;
    policies(&Seeds::new(corpus.join("policy"))?)?;
    tasks(&Seeds::new(corpus.join("task"))?)
}

struct Seeds(PathBuf);

impl Seeds {
    fn new(folder: PathBuf) -> std::io::Result<Self> {
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    fn add(&self, name: &str, start: &[u8], bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        fs::write(self.0.join(name), [start, bytes.as_ref()].concat())
    }
}

fn policies(seeds: &Seeds) -> std::io::Result<()> {
    for (i, bytes) in pointsman_fuzz::good_policies().iter().enumerate() {
        for mode in [0, 1] {
            seeds.add(&format!("policy-{i}-{mode}.safetensors"), &[mode], bytes)?;
        }
    }
    Ok(())
}

fn tables(seeds: &Seeds) -> std::io::Result<()> {
    let (folder, sample) = (Folder::new(), Sample::new(4));
    for (i, how) in [PLAIN, VOTES | IN_PAIRS, FILTER, FILTER | IN_PAIRS | 1, 3].into_iter().enumerate() {
        seeds.add(&format!("wide-{i}.csv"), &[CSV, how], sample.text(','))?;
        seeds.add(&format!("wide-{i}.tsv"), &[TSV, how], sample.text('\t'))?;
        for layout in [Layout::Wide, Layout::Lists, Layout::Maps, Layout::Labels] {
            let sample = if layout == Layout::Lists { sample.clone().unnamed() } else { sample.clone() };
            seeds.add(&format!("{layout:?}-{i}.jsonl"), &[JSONL, how], sample.jsonl(layout))?;
        }
        for precision in [Precision::Single, Precision::Double, Precision::BigEndian] {
            seeds.add(&format!("{precision:?}-{i}.npz"), &[NPZ, how], sample.npz(precision))?;
        }
        let mut batches = vec![sample.wide_batch(true), sample.wide_batch(false)];
        batches.extend([Nesting::Struct, Nesting::Map].map(|nesting| sample.nested_batch(nesting)));
        let unnamed = sample.clone().unnamed();
        batches.extend([Nesting::List, Nesting::LargeAndFixed].map(|nesting| unnamed.nested_batch(nesting)));
        let path = folder.path("any");
        for (b, batch) in batches.iter().enumerate() {
            let codecs = [
                Compression::UNCOMPRESSED,
                Compression::SNAPPY,
                Compression::GZIP(GzipLevel::default()),
                Compression::LZ4_RAW,
                support::zstd(),
            ];
            parquet(&path, batch, codecs[(b + i) % codecs.len()]);
            seeds.add(&format!("{b}-{i}.parquet"), &[PARQUET, how], fs::read(&path)?)?;
            arrow_stream(&path, batch);
            seeds.add(&format!("{b}-{i}.stream.arrow"), &[ARROW, how], fs::read(&path)?)?;
            if b < 2 {
                let codec = [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)][(b + i) % 3];
                arrow_file(&path, batch, codec);
                seeds.add(&format!("{b}-{i}.arrow"), &[ARROW, how], fs::read(&path)?)?;
            }
        }
    }
    let reals = |values: &[f64]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let arrays = [
        array("probs", "<f8", true, "(2, 2)", reals(&[0.1, 0.5, 0.9, 0.5])),
        array("votes", "|u1", false, "(2, 2)", vec![1, 0, 2, 3]),
        array("labels", "|S1", false, "(2, 3)", b"010110".to_vec()),
    ];
    seeds.add("small.npz", &[NPZ, PLAIN], zip(&arrays[..2]))?;
    seeds.add("labels.npz", &[NPZ, VOTES], zip(&[arrays[0].clone(), arrays[2].clone()]))?;
    seeds.add("deflated.npz", &[NPZ, IN_PAIRS], deflated(&arrays[..2]))?;
    seeds.add("named.csv", &[CSV, COLUMNS], "uid,p_a,p_b,v_a,v_b,f_x\n1,0.5,0.5,1,0,3\n2,1,0,0,2,4\n")?;
    seeds.add("quoted.csv", &[CSV, PLAIN], "\u{feff}\"prob_a\",\"prob_\"\"b\"\"\"\r\n\"0.5\",0.5\r\n\r\n1e0,0\n")?;
    for (format, name, text) in [
        (CSV, "csv", "id,label,annotator\n1,a,x\n1,b,y\n2,a,x\nthree,b,x\n"),
        (TSV, "tsv", "id\tlabel\n1\ta\n2\tb\nthree\ta\n"),
        (
            JSONL,
            "jsonl",
            "{\"id\":1,\"label\":\"a\"}\n{\"id\":\"2\",\"label\":\"b\"}\n{\"id\":\"three\",\"label\":\"b\"}\n",
        ),
    ] {
        seeds.add(&format!("annotations.{name}"), &[format, ANNOTATIONS], text)?;
        seeds.add(&format!("annotations-pairs.{name}"), &[format, ANNOTATIONS | IN_PAIRS], text)?;
    }
    let text = "id,prob_a,prob_b,split\n1,0.5,0.5,0\n2,0.9,0.1,0\nthree,0.2,0.8,1\n";
    seeds.add("annotated.csv", &[CSV, ANNOTATED | IN_PAIRS], text)?;
    seeds.add("annotated-filter.csv", &[CSV, ANNOTATED | FILTER], text)
}

fn routers(seeds: &Seeds) -> std::io::Result<()> {
    let folder = Folder::new();
    let table = pointsman_fuzz::table(3, 8);
    let partitions =
        ["top-class:2", "confidence:3", "level-sets", "features:x_length=3", "top-class:2*features:x_length=2"];
    for (i, partition) in partitions.into_iter().enumerate() {
        let partition: Partition = partition.parse().expect("a partition");
        let router = Router::calibrate(&table, &partition).expect("a router");
        let path = folder.path("router.safetensors");
        save_router(&path, &router).expect("a scratch file");
        for mode in [0, 1] {
            seeds.add(&format!("{i}-{mode}.safetensors"), &[mode], fs::read(&path)?)?;
        }
    }
    // Changes to a valid router, one of each kind.
    for kind in 0..16_u8 {
        for base in 0..7_u8 {
            seeds.add(&format!("change-{kind}-{base}"), &[2], [base, kind, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10])?;
        }
    }
    Ok(())
}

fn parts(seeds: &Seeds) -> std::io::Result<()> {
    for (i, part) in pointsman_fuzz::good_parts().into_iter().enumerate() {
        for mode in [0, 1] {
            seeds.add(&format!("{i}-{mode}.safetensors"), &[mode], &part)?;
        }
        // Changes to the part, one of each kind: to its own header, and to what it shares with a router.
        let base = i as u8;
        for kind in 0..6_u8 {
            seeds.add(&format!("change-part-{kind}-{base}"), &[2], [base, 0, kind, 1, 2, 3, 4, 5, 6, 7, 8])?;
        }
        for kind in 0..16_u8 {
            seeds.add(&format!("change-{kind}-{base}"), &[2], [base, 1, kind, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10])?;
        }
    }
    Ok(())
}

fn tasks(seeds: &Seeds) -> std::io::Result<()> {
    let texts = [
        "brier",
        "cross-entropy",
        "spherical",
        "zero-one",
        "three-part",
        "asymmetric:2",
        "fn-fp",
        "fn-fp:fp=1,fn=3",
        "top-class:10",
        "confidence:30",
        "level-sets",
        "features:x_a=10,x_b=4",
        "top-class:10*features:x_length=4",
        "abstain=0.1:0.8:0.05",
        "route=0:1:0.1",
        "route:expert=0:0:1",
        "shrink",
        "plugin",
        "npmle",
        "dirichlet",
        "frugal",
        "paper",
        "bayes",
        "parquet",
        "split=0",
        "probs=p_,votes=v_,id=uid",
        "loss = \"brier\"\nabstain = 0.3\nestimator = \"shrink\"\nties = \"paper\"\n[[route]]\nname = \"expert\"\n\
         cost = 0.05\nkind = \"bayes\"\n[[route]]\nname = \"b\"\ncost = 1\n",
        "loss = { acts = [\"a\", \"b\"], cost = [[0, 1.5], [2, 0]] }\n[[route]]\ncost = 0.1\n",
        "abstain = 1e3\n[loss]\nacts = [\"treat\", \"wait\", \"test\"]\n\
         cost = [[0, 1, 2], [3.0, 0, 1], [0.5, 0.5, 0.5]]\n",
        "loss = \"fn-fp:fp=1,fn=3\"\nroute = [{ cost = 0 }]\n",
        "[[route]]\ncost = 0.1\nkind = \"panel\"\nexperts = 3\naggregate = \"laplace\"\nsmoothing = 0.5\n",
        "[[route]]\nname = \"gpt\"\ncost = 0.1\nkind = \"measured\"\n",
        "panel:m=3,aggregate=plurality",
    ];
    texts.iter().enumerate().try_for_each(|(i, text)| seeds.add(&format!("text-{i}"), &[], text))
}
