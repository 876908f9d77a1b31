//! Writes the hostile files of `../attacks` that are binary, or text with odd or many bytes.
//!
//! ```text
//! cargo run --example attacks
//! ```
//!
//! The output is the same each time.

#[allow(dead_code, reason = "the tests of the tables use more of it")]
#[path = "../../crates/pointsman-table/tests/table/support.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampSecondArray, UInt32Array};
use arrow_ipc::CompressionType;
use parquet::basic::Compression;
use pointsman::{Partition, Router};
use pointsman_fuzz::seal::{PartHeader, Parts, PolicyHeader, Tensor};
use pointsman_table::save_router;
use safetensors::tensor::Dtype;
use support::{Entry, Folder, array, arrow_file, arrow_stream, crc, deflated, parquet, zip, zip_entries};

fn main() -> std::io::Result<()> {
    let attacks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../attacks");
    let folder = |name: &str| Target(attacks.join(name));
    text(&folder("tables"), &folder("tasks"))?;
    columns(&folder("tables"))?;
    arrays(&folder("tables"))?;
    whole_routers(&folder("routers"))?;
    sealed_routers(&folder("routers"))?;
    leaf_routers(&folder("routers"))?;
    wrong_leaves(&folder("leaves"))?;
    parts(&folder("parts"))?;
    policies(&folder("policies"))
}

struct Target(PathBuf);

impl Target {
    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        assert!(bytes.as_ref().len() < 20_000, "{name} has {} bytes", bytes.as_ref().len());
        fs::write(self.0.join(name), bytes)
    }
}

/// Random bytes, the same on every run.
fn junk(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(next).collect()
}

/// A Zstandard frame with one raw block of fewer than 256 bytes.
fn zstandard(bytes: &[u8]) -> Vec<u8> {
    let block = ((bytes.len() as u32) << 3 | 1).to_le_bytes();
    [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, bytes.len() as u8], &block[..3], bytes].concat()
}

fn text(tables: &Target, tasks: &Target) -> std::io::Result<()> {
    for extension in ["csv", "tsv", "jsonl", "parquet", "arrow", "npz"] {
        tables.write(&format!("junk.{extension}"), junk(1000))?;
    }
    // These pass the check of the first bytes.
    for (extension, magic) in [("parquet", &b"PAR1"[..]), ("arrow", b"ARROW1\0\0"), ("npz", b"PK\x03\x04")] {
        tables.write(&format!("magic.{extension}"), [magic, &junk(1000)].concat())?;
    }
    let row = "prob_a,prob_b,votes_a,votes_b\n0.5,0.5,1,1\n";
    tables.write("invalid-utf8.csv", [row.as_bytes(), b"0.5,\xff\xfe,1,1\n"].concat())?;
    tables.write("invalid-utf8-name.csv", b"prob_a,prob_\xc3\x28,votes_a,votes_b\n0.5,x,1,1\n")?;
    tables.write("invalid-utf8.jsonl", b"{\"probs\":[0.5,0.5],\"votes\":[1,1],\"id\":\"\xff\"}\n")?;
    tables.write("nul.csv", [row.as_bytes(), b"0.5,0.5\0,1,1\n"].concat())?;
    tables.write("nul.jsonl", b"{\"probs\":[0.5,0.5],\"votes\":[1,1]}\n\0\0\0\0\n")?;
    tables.write("utf16.csv", row.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>())?;
    tables.write("gzip.csv", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0")?;
    let cut = zstandard(row.as_bytes());
    tables.write("cut.csv.zst", &cut[..cut.len() - 4])?;
    tables.write("twice.csv.gz.zst", zstandard(b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0"))?;
    tables.write("csv.zip", zip(&[("table.csv".to_owned(), row.as_bytes().to_vec())]))?;
    tables.write("bzip2.csv.bz2", [&b"BZh91AY&SY"[..], &junk(100)].concat())?;
    tables.write("xz.csv", [&b"\xfd7zXZ\0"[..], &junk(100)].concat())?;
    tables.write("long-line.csv", format!("{row}{},0.5,1,1\n", "9".repeat(9_000)))?;
    let name = "b".repeat(9_000);
    tables.write("long-name.csv", format!("prob_a,prob_{name},votes_a,votes_{name}\n0.5,x,1,1\n"))?;
    tables.write("many-columns.csv", format!("{}\n1\n", ["prob_a"; 1000].join(",")))?;
    tables.write("nested.jsonl", format!("{{\"probs\":{}\n", "[".repeat(9_000)))?;
    tables.write("nested-ignored.jsonl", format!("{{\"other\":{}\n", "{\"a\":".repeat(1_500)))?;
    let labels: Vec<String> = (0..1_500).map(|i| format!("\"label {i}\"")).collect();
    let labels = format!("{{\"probs\":[0.5,0.5],\"labels\":[{}]}}\n", labels.join(","));
    tables.write("many-labels.jsonl", labels)?;
    let label = format!("{{\"probs\":[0.5,0.5],\"labels\":[\"{}\"]}}\n", "x".repeat(9_000));
    tables.write("long-label.jsonl", label)?;
    tasks.write("nested.toml", format!("loss = {}\n", "[".repeat(9_000)))?;
    tasks.write("nested-keys.toml", format!("loss{} = 1\n", ".a".repeat(4_000)))?;
    tasks.write("invalid-utf8.toml", b"loss = \"brier\xff\"\n")?;
    tasks.write("nul.toml", b"loss = \"brier\"\nabstain = 0.3\0\n")?;
    tasks.write("junk.toml", junk(500))?;
    tasks.write(
        "long-name.toml",
        format!("loss = \"brier\"\n[[route]]\nname = \"{}\"\ncost = 1\n", "x".repeat(5_000)),
    )?;
    let routes: String = (0..201).map(|i| format!("[[route]]\nname = \"r{i}\"\ncost = 1\n")).collect();
    tasks.write("many-routes.toml", format!("loss = \"brier\"\n{routes}"))
}

/// Parquet and Arrow files.
fn columns(tables: &Target) -> std::io::Result<()> {
    let folder = Folder::new();
    let reals = |values: &[f64]| -> ArrayRef { Arc::new(Float64Array::from(values.to_vec())) };
    let counts = |values: &[u32]| -> ArrayRef { Arc::new(UInt32Array::from(values.to_vec())) };
    let batch = |a: ArrayRef, b: ArrayRef, votes: &[u32]| {
        let columns = [("prob_a", a), ("prob_b", b), ("votes_a", counts(votes)), ("votes_b", counts(&[1, 0]))];
        RecordBatch::try_from_iter(columns).expect("a batch")
    };
    let path = folder.path("any");
    let as_parquet = |batch: &RecordBatch| {
        parquet(&path, batch, Compression::SNAPPY);
        fs::read(&path)
    };
    let as_arrow = |batch: &RecordBatch, codec| {
        arrow_file(&path, batch, codec);
        fs::read(&path)
    };
    let good = batch(reals(&[0.5, 1.0]), reals(&[0.5, 0.0]), &[1, 1]);
    let bad = [
        ("nan", batch(reals(&[0.5, f64::NAN]), reals(&[0.5, 0.0]), &[1, 1])),
        ("null", batch(Arc::new(Float64Array::from(vec![Some(0.5), None])), reals(&[0.5, 0.0]), &[1, 1])),
        ("text", batch(Arc::new(StringArray::from(vec!["0.5", "1"])), reals(&[0.5, 0.0]), &[1, 1])),
        ("zero-votes", batch(reals(&[0.5, 1.0]), reals(&[0.5, 0.0]), &[1, 0])),
        ("no-rows", good.slice(0, 0)),
    ];
    for (name, batch) in &bad {
        tables.write(&format!("{name}.parquet"), as_parquet(batch)?)?;
        tables.write(&format!("{name}.arrow"), as_arrow(batch, None)?)?;
    }

    // Instants in an unknown time zone, and beyond every calendar.
    let instants = |zone: &str, seconds: i64| -> ArrayRef {
        Arc::new(TimestampSecondArray::from(vec![0, seconds]).with_timezone(zone))
    };
    let with = |name: &str, column: ArrayRef| {
        let schema = good.schema();
        let columns =
            schema.fields().iter().zip(good.columns()).map(|(field, own)| (field.name().clone(), own.clone()));
        RecordBatch::try_from_iter(columns.chain([(name.to_owned(), column)])).expect("a batch")
    };
    tables.write("zone-unknown.parquet", as_parquet(&with("weight", instants("Mars/Olympus_Mons", 1)))?)?;
    tables.write("instant-beyond.parquet", as_parquet(&with("id", instants("UTC", i64::MAX)))?)?;

    let file = as_parquet(&good)?;
    let end = file.len() - 8;
    let footer = end - u32::from_le_bytes([file[end], file[end + 1], file[end + 2], file[end + 3]]) as usize;
    tables.write("truncated.parquet", &file[..file.len() / 2])?;
    tables.write("truncated-footer.parquet", &file[..file.len() - 20])?;
    let with_footer = |bytes: &[u8], length: u32| [&file[..footer], bytes, &length.to_le_bytes(), b"PAR1"].concat();
    tables.write("footer-missing.parquet", with_footer(&[], 0))?;
    tables.write("footer-too-long.parquet", with_footer(&file[footer..end], u32::MAX))?;
    // A schema (field 2, a list of structures) that claims two thousand million elements.
    let claim = [0x15, 0x02, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07];
    tables.write("footer-claims.parquet", with_footer(&claim, claim.len() as u32))?;
    // Nested structures that would overflow a stack.
    let deep = [[0x15, 0x02].as_slice(), &[0x1c; 9_000]].concat();
    tables.write("footer-deep.parquet", with_footer(&deep, deep.len() as u32))?;
    let mut pages = file.clone();
    pages[4..footer].fill(0xff);
    tables.write("pages-overwritten.parquet", pages)?;

    let file = as_arrow(&good, None)?;
    tables.write("truncated.arrow", &file[..file.len() / 2])?;
    tables.write("truncated-end.arrow", &file[..file.len() - 4])?;
    let mut message = file.clone();
    // The length of the first message, after the magic number and the continuation marker.
    message[12..16].copy_from_slice(&0x7fff_fff0_u32.to_le_bytes());
    tables.write("message-claims.arrow", message)?;
    tables.write("magic-only.arrow", b"ARROW1\0\0ARROW1")?;
    let columns = [("prob_a", reals(&[0.5; 100])), ("prob_b", reals(&[0.5; 100]))];
    let long = RecordBatch::try_from_iter(columns).expect("a batch");
    let mut packed = as_arrow(&long, Some(CompressionType::LZ4_FRAME))?;
    // A compressed buffer begins with its decompressed length: 400 bytes for each half of the rows.
    let frame = [400_i64.to_le_bytes().as_slice(), &[0x04, 0x22, 0x4d, 0x18]].concat();
    let at = packed.windows(12).position(|bytes| bytes == frame).expect("a compressed buffer");
    packed[at..at + 8].copy_from_slice(&(1_i64 << 46).to_le_bytes());
    tables.write("buffer-claims.arrow", packed)?;
    arrow_stream(&path, &good);
    let stream = fs::read(&path)?;
    tables.write("truncated.arrows", &stream[..stream.len() / 2])?;
    let mut flat = stream;
    flat[8..200].fill(0xff);
    tables.write("schema-overwritten.arrows", flat)
}

/// numpy files.
fn arrays(tables: &Target) -> std::io::Result<()> {
    let reals = |name: &str, shape: &str, values: &[f64]| {
        array(name, "<f8", false, shape, values.iter().flat_map(|x| x.to_le_bytes()).collect())
    };
    let probs = || reals("probs", "(2, 2)", &[0.5, 0.5, 1.0, 0.0]);
    let votes =
        || array("votes", "<u4", false, "(2, 2)", [1_u32, 1, 1, 0].iter().flat_map(|n| n.to_le_bytes()).collect());
    let bomb = |shape: &str| zip(&[reals("probs", shape, &[0.0, 1.0]), votes()]);
    tables.write("huge-shape.npz", bomb("(1000000000000, 2)"))?;
    tables.write("overflowing-shape.npz", bomb("(9223372036854775809, 2)"))?;
    tables.write("negative-shape.npz", bomb("(-1, 2)"))?;
    tables.write("many-dimensions.npz", bomb(&format!("({})", "1, ".repeat(1000))))?;
    // The pickle of os.system("echo owned").
    let pickle = b"\x80\x02cposix\nsystem\nX\x0a\0\0\0echo owned\x85R.".to_vec();
    tables.write("pickle.npz", zip(&[array("probs", "|O", false, "(1, 2)", pickle), votes()]))?;
    let mut records = b"\x93NUMPY\x01\x00\x4e\x00".to_vec();
    records.extend(b"{'descr': [('a', '<f8'), ('b', '<f8')], 'fortran_order': False, 'shape': (1,)}");
    records.extend([0; 16]);
    tables.write("records.npz", zip(&[("probs.npy".to_owned(), records), votes()]))?;
    tables.write("complex.npz", zip(&[array("probs", "<c16", false, "(1, 2)", vec![0; 32]), votes()]))?;
    // A compression ratio of a thousand to one.
    let zeros = array("probs", "<f8", false, "(900000, 2)", vec![0; 14_400_000]);
    let none = array("votes", "|u1", false, "(900000, 2)", vec![0; 1_800_000]);
    tables.write("bomb.npz", deflated(&[zeros, none]))?;
    let (name, data) = probs();
    let entries = |size, checksum, method| {
        let (votes, counts) = votes();
        let votes = Entry { name: votes, method: 0, size: counts.len(), crc: crc(&counts), data: counts };
        zip_entries(&[Entry { name: name.clone(), method, size, crc: checksum, data: data.clone() }, votes])
    };
    tables.write("size-lies.npz", entries(usize::pow(2, 32) - 1, crc(&data), 0))?;
    tables.write("not-deflated.npz", entries(data.len(), crc(&data), 8))?;
    tables.write("checksum.npz", entries(data.len(), 1, 0))?;
    tables.write("bzip2.npz", entries(data.len(), crc(&data), 12))?;
    let mut outside = probs();
    outside.0 = "../../../../tmp/probs.npy".to_owned();
    tables.write("path-outside.npz", zip(&[outside, votes()]))?;
    tables.write("not-numpy.npz", zip(&[("probs.npy".to_owned(), junk(64)), votes()]))?;
    let claim = b"\x93NUMPY\x02\x00\xff\xff\xff\x7f{".to_vec();
    tables.write("header-claims.npz", zip(&[("probs.npy".to_owned(), claim), votes()]))?;
    tables.write("no-arrays.npz", zip(&[]))?;
    tables.write("no-rows.npz", zip(&[reals("probs", "(0, 2)", &[]), reals("votes", "(0, 2)", &[])]))?;
    tables.write(
        "one-class.npz",
        zip(&[reals("probs", "(2, 1)", &[1.0, 1.0]), array("votes", "|u1", false, "(2, 1)", vec![1, 1])]),
    )?;
    tables.write("rows-differ.npz", zip(&[probs(), array("votes", "|u1", false, "(1, 2)", vec![1, 1])]))?;
    tables.write("array-twice.npz", zip(&[probs(), votes(), reals("probs", "(2, 2)", &[0.1, 0.9, 0.1, 0.9])]))?;
    tables.write("nan.npz", zip(&[reals("probs", "(2, 2)", &[0.5, 0.5, 1.0, f64::NAN]), votes()]))?;
    tables.write("fractional-votes.npz", zip(&[probs(), reals("votes", "(2, 2)", &[1.0, 0.5, 1.0, 1.0])]))?;
    let good = zip(&[probs(), votes()]);
    tables.write("truncated.npz", &good[..good.len() / 2])
}

/// A valid router with two classes and six rows, disassembled.
fn good_router(partition: &str) -> Parts {
    router_of(partition, 6)
}

/// A valid router with more rows, as learned partitions need.
fn router_of(partition: &str, rows: usize) -> Parts {
    let partition: Partition = partition.parse().expect("a partition");
    let router = Router::calibrate(&pointsman_fuzz::table(2, rows), &partition).expect("a router");
    let folder = Folder::new();
    let path = folder.path("router.safetensors");
    save_router(&path, &router).expect("a scratch file");
    Parts::of(&fs::read(&path).expect("a scratch file")).expect("what was just written")
}

/// Damage that the file's own checks must find.
fn whole_routers(routers: &Target) -> std::io::Result<()> {
    let good = good_router("top-class:2").seal().expect("a good router");
    let header_end = 8 + u64::from_le_bytes(good[..8].try_into().expect("eight bytes")) as usize;
    let header = String::from_utf8(good[8..header_end].to_vec()).expect("JSON");
    // The same tensors with another header.
    let with = |header: &str| [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &good[header_end..]].concat();
    routers.write("empty.safetensors", [])?;
    routers.write("junk.safetensors", junk(1000))?;
    routers.write("a-table.safetensors", "prob_a,prob_b,votes_a,votes_b\n0.5,0.5,1,1\n")?;
    routers.write("truncated.safetensors", &good[..good.len() - 30])?;
    routers.write("truncated-header.safetensors", &good[..100])?;
    routers.write("trailing.safetensors", [&good[..], b"more"].concat())?;
    let mut flipped = good.clone();
    flipped[header_end + 50] ^= 1;
    routers.write("bit-flip.safetensors", flipped)?;
    for (name, length) in [("max", u64::MAX), ("long", 90_000_000), ("beyond", good.len() as u64), ("zero", 0)] {
        let bytes = [&length.to_le_bytes(), &good[8..]].concat();
        routers.write(&format!("header-length-{name}.safetensors"), bytes)?;
    }
    routers.write("header-nested.safetensors", with(&format!("{{\"a\":{}", "[".repeat(9_000))))?;
    routers.write("header-not-json.safetensors", with(&"x".repeat(200)))?;
    let edited = |from: &str, to: &str| {
        assert!(header.contains(from), "{from} is not in {header}");
        with(&header.replacen(from, to, 1))
    };
    routers.write("no-pointsman.safetensors", edited("\"pointsman\"", "\"pointsmen\""))?;
    routers.write("version-future.safetensors", edited("\\\"version\\\":1", "\\\"version\\\":6"))?;
    routers.write("version-far.safetensors", edited("\\\"version\\\":1", "\\\"version\\\":4294967296"))?;
    routers.write("version-zero.safetensors", edited("\\\"version\\\":1", "\\\"version\\\":0"))?;
    routers.write("version-text.safetensors", edited("\\\"version\\\":1", "\\\"version\\\":\\\"1\\\""))?;
    routers
        .write("unknown-field.safetensors", edited("\\\"version\\\":1", "\\\"version\\\":1,\\\"code\\\":\\\"x\\\""))?;
    routers.write("other-class.safetensors", edited("cat", "cow"))?;
    routers.write("huge-tensor.safetensors", edited("\"shape\":[6,2]", "\"shape\":[4611686018427387904,4]"))?;
    routers.write("large-tensor.safetensors", edited("\"shape\":[6,2]", "\"shape\":[1000000000000,2]"))?;
    routers.write("lying-shape.safetensors", edited("\"shape\":[6,2]", "\"shape\":[6,3]"))?;
    routers.write("negative-shape.safetensors", edited("\"shape\":[6,2]", "\"shape\":[-6,2]"))?;
    routers.write("transposed.safetensors", edited("\"shape\":[6,2]", "\"shape\":[2,6]"))?;
    routers.write("unknown-dtype.safetensors", edited("\"dtype\":\"F64\"", "\"dtype\":\"F65\""))?;
    let offsets = header.find("\"data_offsets\":[").expect("offsets") + 16;
    let mut far = header.clone();
    far.replace_range(offsets..offsets + 1, "18446744073709551615");
    routers.write("offsets-far.safetensors", with(&far))
}

/// Contradictions with a valid checksum: what an attacker who read the source would send.
fn sealed_routers(routers: &Target) -> std::io::Result<()> {
    let write = |name: &str, partition: &str, change: &dyn Fn(&mut Parts)| {
        let mut parts = good_router(partition);
        change(&mut parts);
        let bytes = parts.seal().unwrap_or_else(|| panic!("{name} cannot be written"));
        routers.write(&format!("sealed-{name}.safetensors"), bytes)
    };
    let tensor = |parts: &mut Parts, name: &str, change: &dyn Fn(&mut Tensor)| {
        change(parts.tensors.iter_mut().find(|t| t.name == name).unwrap_or_else(|| panic!("there is no {name}")));
    };
    let put = |parts: &mut Parts, name: &str, shape: Vec<usize>, values: &[f64]| {
        parts.tensors.retain(|t| t.name != name);
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        parts.tensors.push(Tensor { name: name.to_owned(), dtype: Dtype::F64, shape, bytes });
    };
    // The first value of an array.
    let first = |parts: &mut Parts, name: &str, value: f64| {
        tensor(parts, name, &|t| t.bytes[..8].copy_from_slice(&value.to_le_bytes()));
    };
    write("version", "top-class:2", &|p| p.header.version = 6)?;
    write("wrong-dtype", "top-class:2", &|p| tensor(p, "probs", &|t| t.dtype = Dtype::I64))?;
    write("flat-probs", "top-class:2", &|p| tensor(p, "probs", &|t| t.shape = vec![12]))?;
    write("transposed", "top-class:2", &|p| tensor(p, "probs", &|t| t.shape.reverse()))?;
    write("nan-probability", "top-class:2", &|p| first(p, "probs", f64::NAN))?;
    write("negative-probability", "top-class:2", &|p| first(p, "probs", -0.5))?;
    write("sum", "top-class:2", &|p| first(p, "probs", 0.999))?;
    write("no-rows", "top-class:2", &|p| {
        for name in ["probs", "votes"] {
            tensor(p, name, &|t| (t.shape[0], t.bytes) = (0, Vec::new()));
        }
    })?;
    write("no-votes", "top-class:2", &|p| p.tensors.retain(|t| t.name != "votes"))?;
    write("votes-zero", "top-class:2", &|p| tensor(p, "votes", &|t| t.bytes.fill(0)))?;
    write("fewer-votes", "top-class:2", &|p| {
        tensor(p, "votes", &|t| {
            t.shape[0] = 5;
            t.bytes.truncate(40);
        });
    })?;
    write("class-twice", "top-class:2", &|p| p.header.classes[1] = "cat".to_owned())?;
    write("class-nameless", "top-class:2", &|p| p.header.classes[1] = String::new())?;
    write("one-class", "top-class:2", &|p| drop(p.header.classes.pop()))?;
    write("three-classes", "top-class:2", &|p| p.header.classes.push("eel".to_owned()))?;
    write("no-classes", "top-class:2", &|p| p.header.classes.clear())?;
    write("unknown-partition", "top-class:2", &|p| p.header.partition = "orchard:3".to_owned())?;
    write("other-partition", "top-class:2", &|p| p.header.partition = "level-sets".to_owned())?;
    write("more-partition", "top-class:2", &|p| p.header.partition.push_str("*level-sets"))?;
    write("terminal-partition", "top-class:2", &|p| p.header.partition = "\u{1b}[2J\nerror: no".to_owned())?;
    write("edges-unsorted", "confidence:3", &|p| put(p, "axis.0.edges", vec![2], &[0.8, 0.6]))?;
    write("edges-equal", "confidence:3", &|p| put(p, "axis.0.edges", vec![2], &[0.6, 0.6]))?;
    write("edges-nan", "confidence:3", &|p| put(p, "axis.0.edges", vec![1], &[f64::NAN]))?;
    write("edges-overflow", "confidence:3", &|p| put(p, "axis.0.edges", vec![1], &[1e300]))?;
    write("edges-missing", "confidence:3", &|p| p.tensors.retain(|t| t.name != "axis.0.edges"))?;
    write("backoff-missing", "confidence:3", &|p| p.tensors.retain(|t| t.name != "backoff.edges"))?;
    write("backoff-unsorted", "confidence:3", &|p| put(p, "backoff.edges", vec![2], &[0.8, 0.6]))?;
    let many = |n: usize| (0..n).map(|i| i as f64 / n as f64).collect::<Vec<_>>();
    write("backoff-many", "confidence:3", &|p| put(p, "backoff.edges", vec![200], &many(200)))?;
    write("counts-more", "top-class:2", &|p| tensor(p, "axis.0.counts", &|t| t.bytes[..4].fill(0xff)))?;
    write("counts-fewer", "top-class:2", &|p| tensor(p, "axis.0.counts", &|t| t.bytes.fill(0)))?;
    write("counts-short", "top-class:2", &|p| {
        tensor(p, "axis.0.counts", &|t| {
            t.shape = vec![1];
            t.bytes.truncate(4);
        });
    })?;
    // 1,100 × 1,100 cells from a small file.
    write("many-cells", "confidence:2*features:x_length=2", &|p| {
        put(p, "axis.0.edges", vec![1100], &many(1100));
        put(p, "axis.1.edges", vec![1100], &many(1100));
    })?;
    write("levels-unsorted", "level-sets", &|p| {
        tensor(p, "axis.0.levels", &|t| {
            let (first, second) = t.bytes.split_at_mut(8);
            first.swap_with_slice(&mut second[..8]);
        });
    })?;
    write("levels-nan", "level-sets", &|p| {
        tensor(p, "axis.0.levels", &|t| t.bytes[..4].copy_from_slice(&f32::NAN.to_le_bytes()));
    })?;
    write("feature-missing", "features:x_length=2", &|p| p.tensors.retain(|t| t.name != "features"))?;
    write("feature-unnamed", "features:x_length=2", &|p| p.header.features.clear())?;
    write("feature-renamed", "features:x_length=2", &|p| p.header.features = vec!["width".to_owned()])?;
    write("feature-infinite", "features:x_length=2", &|p| first(p, "features", f64::INFINITY))?;
    write("weights-zero", "top-class:2", &|p| put(p, "weights", vec![6], &[0.0; 6]))?;
    write("weights-few", "top-class:2", &|p| put(p, "weights", vec![5], &[1.0; 5]))?;
    write("oracle-missing", "top-class:2", &|p| p.header.oracles.push("gpt".to_owned()))?;
    write("oracle-sum", "top-class:2", &|p| {
        p.header.oracles.push("gpt".to_owned());
        put(p, "oracle.gpt", vec![6, 2], &[0.9; 12]);
    })?;
    tree_routers(routers)
}

fn tensor(parts: &mut Parts, name: &str, change: &dyn Fn(&mut Tensor)) {
    change(parts.tensors.iter_mut().find(|t| t.name == name).unwrap_or_else(|| panic!("there is no {name}")));
}

/// Replaces the trees by others. Nodes are a split input, a threshold and a left child; `None` is a leaf.
fn plant(parts: &mut Parts, roots: &[u32], nodes: &[Option<(u32, f64, u32)>]) {
    let mut put = |name: &str, n: usize, bytes: Vec<u8>| {
        tensor(parts, name, &|t| (t.shape, t.bytes) = (vec![n], bytes.clone()));
    };
    let flat_nodes = nodes.iter().map(|node| node.unwrap_or((u32::MAX, 0.0, 0)));
    put("trees.roots", roots.len(), roots.iter().flat_map(|x| x.to_le_bytes()).collect());
    put("trees.inputs", nodes.len(), flat_nodes.clone().flat_map(|node| node.0.to_le_bytes()).collect());
    put("trees.thresholds", nodes.len(), flat_nodes.clone().flat_map(|node| node.1.to_le_bytes()).collect());
    put("trees.left", nodes.len(), flat_nodes.flat_map(|node| node.2.to_le_bytes()).collect());
    put("trees.missing", nodes.len(), vec![0; nodes.len()]);
}

/// A valid forest of two trees that split on the length, in the format that stores no leaves.
fn forest_without_leaves() -> Parts {
    let mut parts = router_of("forest:2", 40);
    let kept = |name: &str| !["leaves.", "rows.", "axis."].iter().any(|start| name.starts_with(start));
    parts.tensors.retain(|t| kept(&t.name));
    parts.header.version = 2;
    plant(&mut parts, &[0, 3], &[Some((3, 10.0, 1)), None, None, Some((3, 5.0, 4)), None, None]);
    parts
}

/// Invalid forests with valid checksums.
fn tree_routers(routers: &Target) -> std::io::Result<()> {
    let write = |name: &str, change: &dyn Fn(&mut Parts)| {
        let mut parts = forest_without_leaves();
        change(&mut parts);
        let bytes = parts.seal().unwrap_or_else(|| panic!("{name} cannot be written"));
        routers.write(&format!("sealed-trees-{name}.safetensors"), bytes)
    };
    let first = |parts: &mut Parts, name: &str, bytes: &[u8]| {
        tensor(parts, name, &|t| t.bytes[..bytes.len()].copy_from_slice(bytes));
    };
    write("cycle", &|p| first(p, "trees.left", &0_u32.to_le_bytes()))?;
    write("child-outside", &|p| first(p, "trees.left", &(u32::MAX - 1).to_le_bytes()))?;
    write("child-of-another", &|p| first(p, "trees.left", &4_u32.to_le_bytes()))?;
    write("two-parents", &|p| {
        let split = |left: u32| Some((3, 10.0, left));
        plant(p, &[0, 5], &[split(1), split(3), split(3), None, None, None]);
    })?;
    write("orphan", &|p| plant(p, &[0, 1], &[None, None, None]))?;
    write("threshold-nan", &|p| first(p, "trees.thresholds", &f64::NAN.to_le_bytes()))?;
    write("threshold-far", &|p| first(p, "trees.thresholds", &1e300_f64.to_le_bytes()))?;
    write("input-unknown", &|p| first(p, "trees.inputs", &99_u32.to_le_bytes()))?;
    write("roots-beyond", &|p| tensor(p, "trees.roots", &|t| t.bytes[4..8].fill(0xff)))?;
    write("roots-none", &|p| tensor(p, "trees.roots", &|t| (t.shape, t.bytes) = (vec![0], Vec::new())))?;
    write("missing", &|p| p.tensors.retain(|t| t.name != "trees.roots"))?;
    write("short", &|p| {
        tensor(p, "trees.left", &|t| {
            t.shape[0] -= 1;
            t.bytes.truncate(4 * t.shape[0]);
        });
    })?;
    // A chain of two hundred splits, deeper than any grown tree.
    write("deep", &|p| {
        let chain: Vec<_> = (0..200).flat_map(|i| [Some((0, 0.0, 2 * i + 1)), None]).chain([None, None]).collect();
        plant(p, &[0, 401], &chain);
    })?;
    write("fewer", &|p| p.header.partition = "forest:5000".to_owned())?;
    write("seedless", &|p| p.header.seed = None)?;
    write("centroids", &|p| p.header.recalibrated = true)?;
    honest_routers(routers)
}

/// A valid forest with the leaves of its rows.
fn forest_with_leaves() -> Parts {
    let mut parts = forest_without_leaves();
    // Two distinct votes, so that they are counted.
    tensor(&mut parts, "votes", &|t| {
        numbers_of(t, |votes| {
            votes
                .as_chunks_mut()
                .0
                .iter_mut()
                .enumerate()
                .for_each(|(row, own)| *own = [1 + row as u32 % 2, 2 - row as u32 % 2]);
        })
    });
    let old = parts.seal().expect("a good router");
    let router = pointsman_table::parse_router(&old).expect("a good router");
    Parts::of(&pointsman_table::router_bytes(&router).expect("a router")).expect("what was just written")
}

fn numbers_of(tensor: &mut Tensor, change: impl FnOnce(&mut [u32])) {
    let mut numbers: Vec<u32> = tensor.bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
    change(&mut numbers);
    tensor.bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
}

fn reals_of(tensor: &mut Tensor, change: impl FnOnce(&mut [f64])) {
    let mut reals: Vec<f64> = tensor.bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
    change(&mut reals);
    tensor.bytes = reals.iter().flat_map(|real| real.to_le_bytes()).collect();
}

/// Forests with impossible leaves and valid checksums, which are refused when they are read.
fn leaf_routers(routers: &Target) -> std::io::Result<()> {
    let write = |name: &str, change: &dyn Fn(&mut Parts)| {
        let mut parts = forest_with_leaves();
        change(&mut parts);
        let bytes = parts.seal().unwrap_or_else(|| panic!("{name} cannot be written"));
        routers.write(&format!("sealed-leaves-{name}.safetensors"), bytes)
    };
    write("beyond", &|p| tensor(p, "rows.leaves", &|t| t.bytes[..2].fill(0xff)))?;
    write("empty", &|p| tensor(p, "rows.leaves", &|t| t.bytes.fill(0)))?;
    write("row-fewer", &|p| {
        tensor(p, "rows.leaves", &|t| (t.shape, t.bytes) = (vec![2, 39], t.bytes[..2 * 2 * 39].to_vec()));
    })?;
    write("tree-fewer", &|p| {
        tensor(p, "rows.leaves", &|t| (t.shape, t.bytes) = (vec![1, 40], t.bytes[..2 * 40].to_vec()));
    })?;
    write("wide", &|p| {
        tensor(p, "rows.leaves", &|t| {
            t.dtype = Dtype::U32;
            t.bytes = t.bytes.as_chunks::<2>().0.iter().flat_map(|number| [number[0], number[1], 0, 0]).collect();
        });
    })?;
    write("real", &|p| {
        tensor(p, "rows.leaves", &|t| (t.dtype, t.bytes) = (Dtype::F64, vec![0; 8 * 2 * 40]));
    })?;
    write("rank-twice", &|p| tensor(p, "rows.ranks", &|t| numbers_of(t, |ranks| ranks[0] = ranks[1])))?;
    write("rank-beyond", &|p| tensor(p, "rows.ranks", &|t| numbers_of(t, |ranks| ranks[0] = u32::MAX)))?;
    write("ranks-missing", &|p| p.tensors.retain(|t| t.name != "rows.ranks"))?;
    write("weight-tiny", &|p| {
        tensor(p, "leaves.weights", &|t| reals_of(t, |all| (all[0], all[1]) = (1e-300, all[0] + all[1])));
    })?;
    write("weight-nan", &|p| tensor(p, "leaves.weights", &|t| reals_of(t, |all| all[0] = f64::NAN)))?;
    write("weight-sum", &|p| tensor(p, "leaves.weights", &|t| reals_of(t, |all| all[0] += 1.0)))?;
    write("share-far", &|p| tensor(p, "leaves.error_shares", &|t| reals_of(t, |all| all[0] = 1e9)))?;
    write("score-nan", &|p| tensor(p, "leaves.scores", &|t| reals_of(t, |all| all[0] = f64::NAN)))?;
    write("cells-wrap", &|p| tensor(p, "axis.0.rows", &|t| numbers_of(t, |rows| rows.fill(u32::MAX))))?;
    write("cells-more", &|p| {
        tensor(p, "axis.0.rows", &|t| {
            t.bytes.extend(0_u32.to_le_bytes());
            t.shape[0] += 1;
        });
    })?;
    write("votes-unknown", &|p| tensor(p, "leaves.votes", &|t| numbers_of(t, |pairs| pairs[0] = u32::MAX)))?;
    write("votes-sum", &|p| tensor(p, "leaves.votes", &|t| numbers_of(t, |pairs| pairs[1] += 1)))?;
    write("votes-wrap", &|p| {
        tensor(p, "leaves.votes", &|t| numbers_of(t, |pairs| pairs[1] = pairs[1].wrapping_sub(41)))
    })?;
    write("pairs-far", &|p| tensor(p, "leaves.vote_pairs", &|t| numbers_of(t, |all| all.fill(u32::MAX))))?;
    write("version-old", &|p| p.header.version = 2)?;
    write("honest", &|p| p.header.partition = "honest-forest:2".to_owned())
}

/// Forests whose leaves are possible, but not those of their rows; `check` refuses them.
fn wrong_leaves(leaves: &Target) -> std::io::Result<()> {
    let write = |name: &str, change: &dyn Fn(&mut Parts)| {
        let mut parts = forest_with_leaves();
        change(&mut parts);
        let bytes = parts.seal().unwrap_or_else(|| panic!("{name} cannot be written"));
        leaves.write(&format!("{name}.safetensors"), bytes)
    };
    // Exchanges the first number of an array with the first that differs.
    fn exchange<T: PartialEq>(numbers: &mut [T]) {
        let other = numbers.iter().position(|number| *number != numbers[0]).expect("a different number");
        numbers.swap(0, other);
    }
    write("leaf-exchanged", &|p| {
        tensor(p, "rows.leaves", &|t| exchange(t.bytes[..80].as_chunks_mut::<2>().0));
    })?;
    write("rank-exchanged", &|p| tensor(p, "rows.ranks", &|t| numbers_of(t, exchange)))?;
    write("rows-reversed", &|p| {
        for name in ["probs", "votes", "features"] {
            tensor(p, name, &|t| {
                let width = t.bytes.len() / t.shape[0];
                t.bytes = t.bytes.chunks(width).rev().flatten().copied().collect();
            });
        }
    })?;
    write("score-raised", &|p| tensor(p, "leaves.scores", &|t| reals_of(t, |all| all[0] += 0.5)))?;
    write("edge-moved", &|p| {
        tensor(p, "axis.0.edges", &|t| {
            t.shape = vec![1];
            t.bytes = 0.5_f64.to_le_bytes().to_vec();
        });
        tensor(p, "axis.0.rows", &|t| {
            t.shape = vec![2];
            t.bytes = [1_u32, 39].iter().flat_map(|rows| rows.to_le_bytes()).collect();
        });
    })?;
    write("weight-moved", &|p| {
        tensor(p, "leaves.weights", &|t| reals_of(t, |all| (all[0], all[1]) = (all[0] - 1.0, all[1] + 1.0)));
    })?;
    write("errors-none", &|p| tensor(p, "leaves.error_shares", &|t| reals_of(t, |all| all.fill(0.0))))?;
    write("votes-moved", &|p| tensor(p, "leaves.votes", &|t| numbers_of(t, |pairs| pairs[0] ^= 1)))?;
    write("votes-missing", &|p| p.tensors.retain(|t| !t.name.starts_with("leaves.vote")))
}

/// Honest forests with invalid scores and valid checksums.
fn honest_routers(routers: &Target) -> std::io::Result<()> {
    let write = |name: &str, change: &dyn Fn(&mut Parts)| {
        let mut parts = router_of("honest-forest:3", 200);
        change(&mut parts);
        let bytes = parts.seal().unwrap_or_else(|| panic!("{name} cannot be written"));
        routers.write(&format!("sealed-honest-{name}.safetensors"), bytes)
    };
    let tensor = |parts: &mut Parts, name: &str, change: &dyn Fn(&mut Tensor)| {
        change(parts.tensors.iter_mut().find(|t| t.name == name).unwrap_or_else(|| panic!("there is no {name}")));
    };
    write("version-old", &|p| p.header.version = 1)?;
    let score = |parts: &mut Parts, score: f64| {
        tensor(parts, "trees.scores", &|t| t.bytes[..8].copy_from_slice(&score.to_le_bytes()));
    };
    write("scores-missing", &|p| p.tensors.retain(|t| t.name != "trees.scores"))?;
    write("scores-few", &|p| {
        tensor(p, "trees.scores", &|t| {
            t.shape[0] -= 1;
            t.bytes.truncate(8 * t.shape[0] * t.shape[1]);
        });
    })?;
    write("scores-nan", &|p| score(p, f64::NAN))?;
    write("scores-infinite", &|p| score(p, f64::INFINITY))?;
    write("scores-far", &|p| score(p, -1e300))?;
    write("scores-narrow", &|p| tensor(p, "trees.shares", &|t| (t.shape, t.bytes) = (vec![1], vec![0; 4])))?;
    write("shares-unknown", &|p| tensor(p, "trees.shares", &|t| t.bytes[4..8].copy_from_slice(&9_u32.to_le_bytes())))?;
    write("cells-missing", &|p| p.tensors.retain(|t| t.name != "cells.roots"))?;
    write("cells-unknown", &|p| tensor(p, "cells.inputs", &|t| t.bytes[..4].copy_from_slice(&4_u32.to_le_bytes())))?;
    write("fewer", &|p| p.header.partition = "honest-forest:5000".to_owned())?;
    write("many-trees", &|p| p.header.partition = "honest-forest:4294967295".to_owned())
}

/// Invalid parts of a calibration, most of them with a valid checksum.
fn parts(parts: &Target) -> std::io::Result<()> {
    // Three valid parts: six rows without a cap, nine rows with a cap of two per cell, and no rows with that cap.
    let [plain, capped, none] = [0, 1, 5].map(|place: usize| pointsman_fuzz::good_parts().swap_remove(place));
    parts.write("empty.safetensors", [])?;
    parts.write("junk.safetensors", junk(1000))?;
    parts.write("a-router.safetensors", good_router("top-class:2").seal().expect("a good router"))?;
    parts.write("truncated.safetensors", &capped[..capped.len() - 30])?;
    parts.write("trailing.safetensors", [&capped[..], b"more"].concat())?;
    let mut flipped = capped.clone();
    let last = flipped.len() - 1;
    flipped[last] ^= 1;
    parts.write("bit-flip.safetensors", flipped)?;
    let write = |name: &str, base: &[u8], change: &dyn Fn(&mut Parts)| {
        let mut changed = Parts::of(base).expect("a good part");
        change(&mut changed);
        let bytes = changed.seal().unwrap_or_else(|| panic!("{name} cannot be written"));
        parts.write(&format!("sealed-{name}.safetensors"), bytes)
    };
    let tensor = |parts: &mut Parts, name: &str, change: &dyn Fn(&mut Tensor)| {
        change(parts.tensors.iter_mut().find(|t| t.name == name).unwrap_or_else(|| panic!("there is no {name}")));
    };
    let part = |parts: &mut Parts, change: &dyn Fn(&mut PartHeader)| change(parts.part.as_mut().expect("a part"));
    write("version", &plain, &|p| part(p, &|header| header.version = 6))?;
    write("forest", &plain, &|p| p.header.partition = "forest:3".to_owned())?;
    write("other-partition", &plain, &|p| p.header.partition = "level-sets".to_owned())?;
    write("needs-unknown", &plain, &|p| part(p, &|header| header.needs = vec!["height".to_owned()]))?;
    write("nan-probability", &plain, &|p| {
        tensor(p, "probs", &|t| t.bytes[..8].copy_from_slice(&f64::NAN.to_le_bytes()));
    })?;
    write("no-votes", &plain, &|p| p.tensors.retain(|t| t.name != "votes"))?;
    write("cap-claimed", &plain, &|p| part(p, &|header| header.cap = Some((2, 7))))?;
    write("cap-zero", &none, &|p| part(p, &|header| header.cap = Some((0, 7))))?;
    write("cap-smaller", &capped, &|p| part(p, &|header| header.cap = Some((1, 7))))?;
    write("cap-larger", &capped, &|p| part(p, &|header| header.cap = Some((1 << 40, 7))))?;
    write("keys-missing", &capped, &|p| p.tensors.retain(|t| t.name != "keys"))?;
    write("keys-few", &capped, &|p| {
        tensor(p, "keys", &|t| {
            t.shape[0] -= 1;
            t.bytes.truncate(8 * t.shape[0]);
        });
    })?;
    write("keys-real", &capped, &|p| tensor(p, "keys", &|t| t.dtype = Dtype::F64))?;
    write("seen-missing", &capped, &|p| p.tensors.retain(|t| t.name != "seen"))?;
    write("seen-cut", &capped, &|p| {
        tensor(p, "seen", &|t| {
            let words = t.bytes.len() / 8 - 5;
            (t.shape, t.bytes) = (vec![words], t.bytes[..8 * words].to_vec());
        });
    })?;
    write("seen-nothing", &capped, &|p| tensor(p, "seen", &|t| t.bytes.fill(0)))?;
    write("seen-everything", &capped, &|p| tensor(p, "seen", &|t| t.bytes.fill(0xff)))
}

fn policies(policies: &Target) -> std::io::Result<()> {
    // Two valid policies: of cells, and of a forest with a budget.
    let [cells, forest] = [0, 1].map(|place: usize| pointsman_fuzz::good_policies().swap_remove(place));
    policies.write("empty.safetensors", [])?;
    policies.write("truncated.safetensors", &forest[..forest.len() - 30])?;
    policies.write("trailing.safetensors", [&forest[..], b"more"].concat())?;
    let mut flipped = forest.clone();
    let last = flipped.len() - 1;
    flipped[last] ^= 1;
    policies.write("bit-flip.safetensors", flipped)?;
    let write = |name: &str, base: &[u8], change: &dyn Fn(&mut Parts)| {
        let mut changed = Parts::of(base).expect("a good policy");
        change(&mut changed);
        let bytes = changed.seal().unwrap_or_else(|| panic!("{name} cannot be written"));
        policies.write(&format!("sealed-{name}.safetensors"), bytes)
    };
    let number = |parts: &mut Parts, name: &str, value: f64| {
        let tensor = parts.tensors.iter_mut().find(|t| t.name == name);
        let tensor = tensor.unwrap_or_else(|| panic!("there is no {name}"));
        tensor.bytes[..8].copy_from_slice(&value.to_le_bytes());
    };
    let shorter = |parts: &mut Parts, name: &str| {
        let tensor = parts.tensors.iter_mut().find(|t| t.name == name);
        let tensor = tensor.unwrap_or_else(|| panic!("there is no {name}"));
        tensor.bytes.truncate(tensor.bytes.len() / tensor.shape[0] * (tensor.shape[0] - 1));
        tensor.shape[0] -= 1;
    };
    let header = |parts: &mut Parts, change: &dyn Fn(&mut PolicyHeader)| {
        change(parts.policy.as_mut().expect("a policy"));
    };
    write("version", &cells, &|p| header(p, &|header| header.version = 2))?;
    write("version-zero", &cells, &|p| header(p, &|header| header.version = 0))?;
    write("loss-nan", &cells, &|p| number(p, "sources.losses", f64::NAN))?;
    write("loss-infinite", &forest, &|p| number(p, "sources.losses", f64::INFINITY))?;
    write("leaf-nan", &forest, &|p| number(p, "leaves.losses", f64::NAN))?;
    write("leaf-score-far", &forest, &|p| number(p, "leaves.scores", 1e9))?;
    write("leaves-fewer", &forest, &|p| shorter(p, "leaves.losses"))?;
    write("leaf-scores-fewer", &forest, &|p| shorter(p, "leaves.scores"))?;
    write("leaves-missing", &forest, &|p| p.tensors.retain(|t| t.name != "leaves.losses"))?;
    write("slopes-nan", &forest, &|p| number(p, "leaves.slopes", f64::NAN))?;
    write("trees-fewer", &forest, &|p| p.header.partition = "forest:3".to_owned())?;
    write("sources-fewer", &cells, &|p| {
        for name in ["rows", "paired_rows", "weights", "effective_rows", "centroids", "losses"] {
            shorter(p, &format!("sources.{name}"));
        }
    })?;
    write("weight-negative", &cells, &|p| number(p, "sources.weights", -1.0))?;
    write("centroid-far", &cells, &|p| number(p, "sources.centroids", 7.0))?;
    write("class-more", &cells, &|p| p.header.classes.push("eel".to_owned()))?;
    write("class-twice", &cells, &|p| p.header.classes[1] = p.header.classes[0].clone())?;
    write("other-partition", &cells, &|p| p.header.partition = "confidence:2".to_owned())?;
    write("task-junk", &cells, &|p| header(p, &|header| header.task = "loss = 3".to_owned()))?;
    write("task-other-oracle", &cells, &|p| {
        header(p, &|header| header.task = header.task.replace("measured", "panel:m=3,aggregate=mean"));
    })?;
    write("oracle-twice", &cells, &|p| {
        header(p, &|header| header.oracles.push(header.oracles[0].clone()));
    })?;
    write("limit-missing", &forest, &|p| header(p, &|header| header.figures.limit = None))?;
    write("limit-far", &forest, &|p| {
        header(p, &|header| header.figures.limit.iter_mut().for_each(|limit| limit.marginal = 2.0));
    })?;
    write("shares-many", &cells, &|p| header(p, &|header| header.figures.shares.push(0.5)))?;
    write("hash-short", &cells, &|p| header(p, &|header| header.router_sha256 = Some("00".to_owned())))
}
