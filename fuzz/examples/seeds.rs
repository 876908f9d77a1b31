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
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
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
    tasks(&Seeds::new(corpus.join("task"))?)?;
    decide_bodies(&Seeds::new(corpus.join("decide"))?)?;
    arrow_bodies(&Seeds::new(corpus.join("arrow"))?)?;
    infer_bodies(&Seeds::new(corpus.join("infer"))?)?;
    queries(&Seeds::new(corpus.join("query"))?)?;
    configurations(&Seeds::new(corpus.join("config"))?)
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

/// Bodies of requests to decide. The first byte is the deployment, plus 2 for one object per line.
fn decide_bodies(seeds: &Seeds) -> std::io::Result<()> {
    let bodies = [
        r#"{"probs": [0.9, 0.1]}"#,
        r#"{"probs": {"cat": 0.9, "dog": 0.1}, "features": {"length": 3, "other": null}}"#,
        r#"{"probs": [0.25, 0.75], "features": [7.5], "id": "q", "explain": true}"#,
        r#"{"probs": [1e0, 0], "features": [null], "tags": {"team": "a", "b": ""}, "input": {"t": [1, "x", null]}, "dry_run": true}"#,
        r#"{"rows": [{"probs": [1, 0], "features": [1]}, {"probs": {"dog": 0.5, "cat": 0.5}, "features": {"length": 2}, "id": "z"}]}"#,
        r#"{"rows": []}"#,
        r#"{"probs": [0.5, 0.6]}"#,
        r#"{"probs": [NaN, 1], "unknown": 1}"#,
    ];
    for (i, body) in bodies.iter().enumerate() {
        for how in 0..4_u8 {
            seeds.add(&format!("body-{i}-{how}"), &[how], body)?;
        }
        seeds.add(&format!("lines-{i}"), &[3], format!("{body}\n\n {body}\r\n{}", bodies[0]))?;
    }
    Ok(())
}

/// Arrow streams with the classes of the service's deployments, or others.
fn arrow_bodies(seeds: &Seeds) -> std::io::Result<()> {
    let folder = Folder::new();
    let path = folder.path("any");
    let sample = Sample::new(4);
    let unnamed = sample.clone().unnamed();
    let mut batches = vec![sample.wide_batch(true), sample.wide_batch(false)];
    batches.extend([Nesting::Struct, Nesting::Map].map(|nesting| sample.nested_batch(nesting)));
    batches.extend([Nesting::List, Nesting::LargeAndFixed].map(|nesting| unnamed.nested_batch(nesting)));
    for (i, batch) in batches.iter().enumerate() {
        arrow_stream(&path, batch);
        for how in [0, 1] {
            seeds.add(&format!("sample-{i}-{how}.arrow"), &[how], fs::read(&path)?)?;
        }
    }
    let real = |values: Vec<f64>| Arc::new(Float64Array::from(values)) as ArrayRef;
    let column = |name: &str, values: ArrayRef| (name.to_owned(), values, true);
    let batch = RecordBatch::try_from_iter_with_nullable([
        column("id", Arc::new(StringArray::from(vec!["a", "b", "c"]))),
        column("prob_cat", real(vec![0.9, 0.5, 0.0])),
        column("prob_dog", real(vec![0.1, 0.5, 1.0])),
        column("x_length", real(vec![1.0, f64::NAN, 7.5])),
    ]);
    arrow_stream(&path, &batch.expect("a batch made by hand"));
    for how in [0, 1] {
        seeds.add(&format!("right-{how}.arrow"), &[how], fs::read(&path)?)?;
    }
    Ok(())
}

/// Requests of the Open Inference Protocol. After the first byte comes the length of the JSON part.
fn infer_bodies(seeds: &Seeds) -> std::io::Result<()> {
    let probs = r#"{"name": "probs", "shape": [2, 2], "datatype": "FP64", "data": [0.9, 0.1, [0.5, 0.5]]}"#;
    let features = r#"{"name": "features", "shape": [2, 1], "datatype": "FP32", "data": [[1], [null]]}"#;
    let whole = [
        format!(r#"{{"id": "q", "inputs": [{probs}]}}"#),
        format!(r#"{{"inputs": [{features}, {probs}], "outputs": [{{"name": "action"}}]}}"#),
    ];
    for (i, text) in whole.iter().enumerate() {
        for how in 0..2_u8 {
            seeds.add(&format!("json-{i}-{how}"), &[how, 0, 0], text)?;
        }
    }
    for (datatype, size, raw) in [
        ("FP64", 16, [0.25_f64.to_le_bytes(), 0.75_f64.to_le_bytes()].concat()),
        ("FP32", 8, [0.25_f32.to_le_bytes(), 0.75_f32.to_le_bytes()].concat()),
    ] {
        let tensor = format!(
            r#"{{"name": "probs", "shape": [1, 2], "datatype": "{datatype}", "parameters": {{"binary_data_size": {size}}}}}"#
        );
        let feature = r#"{"name": "features", "shape": [1, 1], "datatype": "FP64", "data": [3]}"#;
        for (how, text) in [
            (2, format!(r#"{{"inputs": [{tensor}]}}"#)),
            (3, format!(r#"{{"id": "r", "inputs": [{tensor}, {feature}]}}"#)),
            (6, format!(r#"{{"inputs": [{tensor}]}}       "#)),
        ] {
            let [low, high] = (text.len() as u16).to_le_bytes();
            seeds.add(&format!("raw-{datatype}-{how}"), &[how, low, high], [text.as_bytes(), &raw].concat())?;
        }
    }
    Ok(())
}

/// Addresses and formats of answers.
fn queries(seeds: &Seeds) -> std::io::Result<()> {
    let texts = [
        (0, "limit=1"),
        (0, "from=0&to=2030-01-01T00:00:00Z&version=1&cell=0&inputs=false"),
        (0, "after=00000000-0000-7000-8000-000000000000&action=predict"),
        (0, "action=route:expert&tag=team=x"),
        (0, "tag=te%20am%3D%22x&limit=10000"),
        (0, "action=undetermined&from=1700000000000000"),
        (1, "limit=2\napplication/x-ndjson"),
        (1, "\ntext/csv;q=0.5, application/vnd.apache.parquet;q=0.9"),
        (1, "inputs=true\n*/*"),
        (1, "limit=0"),
        (2, "after=0&limit=1"),
        (3, "00000000-0000-7000-8000-000000000000"),
    ];
    texts.iter().enumerate().try_for_each(|(i, (how, text))| seeds.add(&format!("query-{i}"), &[*how], text))
}

/// Configurations of the service, with and without a variable.
fn configurations(seeds: &Seeds) -> std::io::Result<()> {
    let texts = [
        "[server]\nlisten = \"127.0.0.1:7070\"\npublic_url = \"https://a\"\non_log_failure = \"answer\"\n",
        "[store]\nurl = \"sqlite:a.db\"\ndurability = \"disk\"\nqueue_rows = 7\nsegment_megabytes = 64\n",
        "[store]\nurl = \"postgres://u:p@h:5432/d?sslmode=verify-full&sslrootcert=c.pem\"\n",
        "[retention]\ninputs = \"30d\"\ndecisions = \"400d\"\n[limits]\ntime = \"200ms\"\nrows = 10\nbody_megabytes = 1\n",
        "[deployments.a]\nrouter = \"r\"\ntask = \"t\"\nmode = \"shadow\"\n[deployments.\"b c\"]\npolicy = \"p\"\n",
        "\0SERVER_LISTEN\0[::1]:9",
        "[limits]\nrows = 5\n\0LIMITS_TIME\010m",
        "\0STORE_URL\0postgres://u:p@h/d",
        "\0STORE_QUEUE_ROWS\00",
    ];
    texts.iter().enumerate().try_for_each(|(i, text)| seeds.add(&format!("config-{i}"), &[], text))
}
