//! The same table in every format and layout reads back the same, bit for bit.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use arrow_ipc::CompressionType;
use parquet::basic::{Compression, GzipLevel};
use pointsman::Table;
use pointsman_table::{Format, Frame, ReadOptions, batches, read, read_frame};
use proptest::prelude::*;

use crate::support::{
    Folder, Layout, Nesting, Precision, Sample, array, arrow_file, arrow_stream, deflated, parquet, unicode, zip, zstd,
};

/// A sample of named classes in every format and layout.
fn files(folder: &Folder, sample: &Sample) -> Vec<PathBuf> {
    let mut files = vec![
        folder.file("wide.csv", sample.text(',')),
        folder.file("wide.tsv", sample.text('\t')),
        folder.file("bom.csv", format!("\u{feff}{}", sample.text(','))),
        folder.file("unix.csv", sample.text(',').replace("\r\n", "\n")),
        folder.file("wide.jsonl", sample.jsonl(Layout::Wide)),
        folder.file("maps.ndjson", sample.jsonl(Layout::Maps)),
        folder.file("labels.jsonl", sample.jsonl(Layout::Labels)),
        folder.file("blank.jsonl", format!("\u{feff}\n{}\n\n", sample.jsonl(Layout::Maps).replace('\n', "\r\n\n"))),
        folder.file("arrays.npz", sample.npz(Precision::Double)),
        folder.file("big-endian.npz", sample.npz(Precision::BigEndian)),
        folder.file("wide.csv.gz", gzip(sample.text(',').as_bytes())),
        folder.file("wide.csv.zst", zstandard(sample.text(',').as_bytes())),
        folder.file("maps.jsonl.gz", gzip(sample.jsonl(Layout::Maps).as_bytes())),
        folder.file("named-plainly.csv", zstandard(sample.text(',').as_bytes())),
    ];
    let mut batch = |name: &str, write: &dyn Fn(&Path)| {
        let path = folder.path(name);
        write(&path);
        files.push(path);
    };
    let wide = sample.wide_batch(false);
    let nested = [sample.nested_batch(Nesting::Struct), sample.nested_batch(Nesting::Map)];
    batch("wide.parquet", &|path| parquet(path, &wide, Compression::SNAPPY));
    batch("zstd.parquet", &|path| parquet(path, &wide, zstd()));
    batch("gzip.parquet", &|path| parquet(path, &wide, Compression::GZIP(GzipLevel::default())));
    batch("lz4.parquet", &|path| parquet(path, &wide, Compression::LZ4_RAW));
    batch("struct.parquet", &|path| parquet(path, &nested[0], Compression::UNCOMPRESSED));
    batch("map.parquet", &|path| parquet(path, &nested[1], Compression::UNCOMPRESSED));
    batch("wide.arrow", &|path| arrow_file(path, &wide, None));
    batch("lz4.feather", &|path| arrow_file(path, &wide, Some(CompressionType::LZ4_FRAME)));
    batch("zstd.ipc", &|path| arrow_file(path, &wide, Some(CompressionType::ZSTD)));
    batch("stream.arrow", &|path| arrow_stream(path, &wide));
    batch("struct.arrow", &|path| arrow_file(path, &nested[0], None));
    batch("map.arrow", &|path| arrow_stream(path, &nested[1]));
    files
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    // Two members one after the other, as tools that append write them.
    let (one, two) = bytes.split_at(bytes.len() / 2);
    let member = |part: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(part).unwrap();
        encoder.finish().unwrap()
    };
    [member(one), member(two)].concat()
}

fn zstandard(bytes: &[u8]) -> Vec<u8> {
    ::zstd::encode_all(bytes, 0).unwrap()
}

fn check(path: &Path, sample: &Sample) {
    let frame = read_frame(path, &ReadOptions::default()).unwrap();
    assert_eq!(frame.table, sample.table(), "{}", path.display());
    assert_eq!(frame.ids.as_ref(), Some(&sample.ids), "{}", path.display());
    assert_eq!(frame.rows, (1..=sample.rows() as u64).collect::<Vec<_>>(), "{}", path.display());
}

#[test]
fn named_classes_read_back_from_every_format() {
    let (folder, sample) = (Folder::new(), Sample::new(20));
    files(&folder, &sample).iter().for_each(|path| check(path, &sample));
}

/// What a column of class names is, the first row says, however long the header is and however many bytes are read at once.
#[test]
fn answers_read_back_from_compressed_files() {
    let folder = Folder::new();
    let more = ["prob_a", "prob_b", "votes_a", "votes_b"].map(|name| format!("{name} with a long name"));
    let text = format!("{},oracle_llm\n1,0,2,0,b with a long name\n0,1,0,2,a with a long name\n", more.join(","));
    for (name, bytes) in [
        ("plain.csv", text.clone().into_bytes()),
        ("one.csv.gz", gzip(text.as_bytes())),
        ("two.csv.zst", zstandard(text.as_bytes())),
    ] {
        let frame = read_frame(folder.file(name, bytes), &ReadOptions::default()).unwrap();
        let answers: Vec<(&str, &[f64])> = frame.table.oracles().collect();
        assert_eq!(answers, [("llm", &[0.0, 1.0, 1.0, 0.0][..])], "{name}");
        assert_eq!(frame.rows, [1, 2], "{name}");
    }
}

#[test]
fn unnamed_classes_read_back_from_every_format() {
    let (folder, sample) = (Folder::new(), Sample::new(20).unnamed());
    check(&folder.file("lists.jsonl", sample.jsonl(Layout::Lists)), &sample);
    let path = folder.path("lists.parquet");
    parquet(&path, &sample.nested_batch(Nesting::List), zstd());
    check(&path, &sample);
    let path = folder.path("lists.arrow");
    arrow_file(&path, &sample.nested_batch(Nesting::List), None);
    check(&path, &sample);
}

#[test]
fn single_precision_is_converted_exactly() {
    let (folder, sample) = (Folder::new(), Sample::new(20).single());
    check(&folder.file("single.npz", sample.npz(Precision::Single)), &sample);
    let path = folder.path("single.parquet");
    parquet(&path, &sample.wide_batch(true), Compression::SNAPPY);
    check(&path, &sample);
    let sample = sample.unnamed();
    let path = folder.path("large-and-fixed.arrow");
    arrow_file(&path, &sample.nested_batch(Nesting::LargeAndFixed), None);
    check(&path, &sample);
    let path = folder.path("large-and-fixed.parquet");
    parquet(&path, &sample.nested_batch(Nesting::LargeAndFixed), Compression::SNAPPY);
    check(&path, &sample);
}

#[test]
fn batches_together_are_the_whole_table() {
    let (folder, sample) = (Folder::new(), Sample::new(23));
    for path in files(&folder, &sample) {
        let whole = read_frame(&path, &ReadOptions::default()).unwrap();
        for batch_rows in [1, 5, 23, 1000] {
            let options = ReadOptions { batch_rows, ..ReadOptions::default() };
            let mut batches = batches(&path, &options).unwrap();
            assert_eq!(batches.classes(), sample.classes);
            assert_eq!(batches.feature_names(), sample.feature_names);
            assert!(batches.rows_hint().is_none_or(|rows| rows == 23));
            let frames: Vec<Frame> = batches.by_ref().map(Result::unwrap).collect();
            let sizes: Vec<usize> = frames.iter().map(|f| f.table.rows()).collect();
            assert!(sizes.iter().rev().skip(1).all(|&n| n == batch_rows), "{}: {sizes:?}", path.display());
            assert_eq!(sizes.iter().sum::<usize>(), 23, "{}", path.display());
            assert_eq!(frames.iter().flat_map(|f| f.rows.clone()).collect::<Vec<_>>(), whole.rows);
            let predictions: Vec<f64> = frames.iter().flat_map(|f| f.table.predictions().to_vec()).collect();
            assert_eq!(predictions, *whole.table.predictions(), "{}", path.display());
            let progress = batches.progress();
            assert_eq!((progress.rows, progress.fraction()), (23, Some(1.0)), "{}", path.display());
        }
    }
}

#[test]
fn a_feature_may_be_missing_in_every_format() {
    let folder = Folder::new();
    let csv = folder.file("t.csv", "prob_a,prob_b,x_f,x_g\n1,0,,2\n0,1,3,NaN\n");
    let wide = folder.file(
        "t.jsonl",
        "{\"prob_a\":1,\"prob_b\":0,\"x_f\":null,\"x_g\":2}\n{\"prob_a\":0,\"prob_b\":1,\"x_f\":3,\"x_g\":null}",
    );
    let nested = folder.file("n.jsonl", "{\"probs\":{\"a\":1,\"b\":0},\"features\":{\"f\":null,\"g\":2}}\n{\"probs\":{\"a\":0,\"b\":1},\"features\":{\"f\":3,\"g\":null}}");
    let column = |values: [Option<f64>; 2]| -> ArrayRef { Arc::new(Float64Array::from(values.to_vec())) };
    let whole: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(3)]));
    let batch = RecordBatch::try_from_iter([
        ("prob_a", column([Some(1.0), Some(0.0)])),
        ("prob_b", column([Some(0.0), Some(1.0)])),
        ("x_f", whole),
        ("x_g", column([Some(2.0), None])),
    ])
    .unwrap();
    let (arrow, parquet_file) = (folder.path("t.arrow"), folder.path("t.parquet"));
    arrow_file(&arrow, &batch, None);
    parquet(&parquet_file, &batch, Compression::SNAPPY);
    for path in [csv, wide, nested, arrow, parquet_file] {
        let table = pointsman_table::read(&path).unwrap();
        let found: Vec<bool> = (0..2).flat_map(|row| table.features(row)).map(|x| x.is_nan()).collect();
        assert_eq!(found, [true, false, false, true], "{}", path.display());
        assert_eq!((table.features(1)[0], table.features(0)[1]), (3.0, 2.0), "{}", path.display());
    }
}

#[test]
fn batches_can_be_sent_to_another_thread() {
    fn sent<T: Send>() {}
    sent::<pointsman_table::Batches>();
    sent::<pointsman_table::TableWriter>();
}

/// The keys of maps may be in any order, and maps of votes may leave out classes without votes.
#[test]
fn maps_are_read_by_name() {
    let folder = Folder::new();
    let rows = "{\"probs\":{\"dog\":0.25,\"cat\":0.75},\"votes\":{\"cat\":3}}\n\
                {\"probs\":{\"cat\":0.5,\"dog\":0.5},\"votes\":{\"dog\":1,\"cat\":2}}\n";
    let file = folder.file("maps.jsonl", rows);
    let expected = |classes: [&str; 2], probs: Vec<f64>, votes: Vec<u32>| {
        Table::new(classes, probs).unwrap().with_votes(votes).unwrap()
    };
    assert_eq!(read(&file).unwrap(), expected(["dog", "cat"], vec![0.25, 0.75, 0.5, 0.5], vec![0, 3, 1, 2]));
    let options = ReadOptions { classes: Some(vec!["cat".into(), "dog".into()]), ..ReadOptions::default() };
    let turned = read_frame(&file, &options).unwrap().table;
    assert_eq!(turned, expected(["cat", "dog"], vec![0.75, 0.25, 0.5, 0.5], vec![3, 0, 2, 1]));
    // Unknown classes are refused.
    let options = ReadOptions { classes: Some(vec!["cat".into(), "owl".into()]), ..ReadOptions::default() };
    assert_eq!(read_frame(&file, &options).unwrap().table.classes(), ["dog", "cat"]);
    let unknown = folder.file("unknown.jsonl", rows.replace("{\"dog\":1,", "{\"owl\":1,"));
    assert!(read(unknown).unwrap_err().to_string().contains("votes.owl"));
}

#[test]
fn numpy_arrays_of_every_type_are_read() {
    let folder = Folder::new();
    // 0.5, 0.25, 0.25 and 0, 1, 0 in half precision.
    let half: Vec<u8> = [0x3800_u16, 0x3400, 0x3400, 0, 0x3c00, 0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let expected = Table::new(["0", "1", "2"], vec![0.5, 0.25, 0.25, 0.0, 1.0, 0.0]).unwrap();
    let votes = expected.clone().with_votes(vec![1, 0, 2, 3, 0, 0]).unwrap();
    let probs = array("probs", "<f2", false, "(2, 3)", half);
    let counts: [i64; 6] = [1, 0, 2, 3, 0, 0];
    let integers: [(&str, Vec<u8>); 8] = [
        ("|i1", counts.iter().map(|&n| n as u8).collect()),
        ("|u1", counts.iter().map(|&n| n as u8).collect()),
        (">i2", counts.iter().flat_map(|&n| (n as i16).to_be_bytes()).collect()),
        ("<u2", counts.iter().flat_map(|&n| (n as u16).to_le_bytes()).collect()),
        ("<i4", counts.iter().flat_map(|&n| (n as i32).to_le_bytes()).collect()),
        ("<i8", counts.iter().flat_map(|&n| n.to_le_bytes()).collect()),
        (">u8", counts.iter().flat_map(|&n| n.to_be_bytes()).collect()),
        ("<f4", counts.iter().flat_map(|&n| (n as f32).to_le_bytes()).collect()),
    ];
    for (descr, bytes) in integers {
        let entries = [probs.clone(), array("votes", descr, false, "(2, 3)", bytes)];
        assert_eq!(read(folder.file("a.npz", zip(&entries))).unwrap(), votes, "{descr}");
        assert_eq!(read(folder.file("b.npz", deflated(&entries))).unwrap(), votes, "{descr}");
    }
    let ones = array("votes", "|b1", false, "(2, 3)", vec![1, 0, 1, 0, 0, 1]);
    let table = read(folder.file("c.npz", zip(&[probs.clone(), ones]))).unwrap();
    assert_eq!(table, expected.clone().with_votes(vec![1, 0, 1, 0, 0, 1]).unwrap());
    let labels = array("labels", "|i1", false, "(2, 2)", vec![0, 2, 1, 1]);
    let table = read(folder.file("d.npz", zip(&[probs.clone(), labels]))).unwrap();
    assert_eq!(table, expected.clone().with_votes(vec![1, 0, 1, 0, 2, 0]).unwrap());
    let column = array("features", "<f4", false, "(2,)", [1.0_f32, 2.0].iter().flat_map(|x| x.to_le_bytes()).collect());
    let table = read(folder.file("e.npz", zip(&[probs, column]))).unwrap();
    assert_eq!(table, expected.with_features(["0"], vec![1.0, 2.0]).unwrap());
}

#[test]
fn numpy_arrays_in_fortran_order_are_read() {
    let folder = Folder::new();
    let probs = [0.5_f64, 0.0, 0.25, 1.0, 0.25, 0.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let entries = [
        array("probs", "<f8", true, "(2, 3)", probs),
        array("classes", "|S2", false, "(3,)", b"a\0bbc\0".to_vec()),
        unicode("id", &["x".to_owned(), "yy".to_owned()]),
    ];
    for bytes in [zip(&entries), deflated(&entries)] {
        let path = folder.file("fortran.npz", bytes);
        for batch_rows in [1, 100] {
            let options = ReadOptions { batch_rows, ..ReadOptions::default() };
            let frame = read_frame(&path, &options).unwrap();
            assert_eq!(frame.table, Table::new(["a", "bb", "c"], vec![0.5, 0.25, 0.25, 0.0, 1.0, 0.0]).unwrap());
            assert_eq!(frame.ids.unwrap(), ["x", "yy"]);
        }
    }
}

#[test]
fn labels_are_names_or_indices() {
    let folder = Folder::new();
    let named = folder.file(
        "names.jsonl",
        "{\"probs\":{\"a\":0.5,\"b\":0.5},\"labels\":[\"b\",\"b\",\"a\"]}\n{\"probs\":{\"a\":1,\"b\":0},\"labels\":[1]}",
    );
    let table = read(named).unwrap();
    assert_eq!(table.votes(0).unwrap().counts(), [1, 2]);
    assert_eq!(table.votes(1).unwrap().counts(), [0, 1]);
}

#[test]
fn formats_are_recognised_by_extension_and_first_bytes() {
    let (folder, sample) = (Folder::new(), Sample::new(3));
    for path in files(&folder, &sample) {
        let renamed = folder.file("table.unknown", std::fs::read(&path).unwrap());
        if path.extension().unwrap() != "tsv" {
            check(&renamed, &sample);
        }
    }
    assert_eq!("ndjson".parse::<Format>().unwrap(), Format::Jsonl);
    assert_eq!(Format::from_path("a/b.FEATHER"), Some(Format::Arrow));
    assert_eq!(Format::from_path("a/b.tsv.ZST"), Some(Format::Tsv));
    assert!("xlsx".parse::<Format>().unwrap_err().to_string().contains("parquet"));
}

/// A pipe cannot be rewound: formats that need that are spooled, and all are recognised by their first bytes.
#[cfg(unix)]
#[test]
fn pipes_are_read() {
    let (folder, sample) = (Folder::new(), Sample::new(20));
    for path in files(&folder, &sample).into_iter().filter(|path| path.extension().unwrap() != "tsv") {
        let pipe = folder.path("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let bytes = std::fs::read(&path).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| std::fs::write(&pipe, bytes).unwrap());
            let frame = read_frame(&pipe, &ReadOptions::default()).unwrap();
            assert_eq!(frame.table, sample.table(), "{}", path.display());
        });
        std::fs::remove_file(pipe).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_numbers_come_back(
        rows in prop::collection::vec((prop::collection::vec(0.0_f64..1.0, 3), any::<[u8; 3]>(), any::<f64>()), 1..12)
    ) {
        let mut sample = Sample::new(rows.len());
        for (i, (p, v, x)) in rows.into_iter().enumerate() {
            let sum: f64 = p.iter().sum();
            sample.probs[i] = if sum > 0.0 { p.iter().map(|x| x / sum).collect() } else { vec![1.0, 0.0, 0.0] };
            sample.votes[i] = v.iter().map(|n| u32::from(*n)).collect();
            sample.votes[i][1] += 1;
            sample.features[i][0] = if x.is_finite() { x } else { f64::MIN_POSITIVE };
        }
        let folder = Folder::new();
        for path in files(&folder, &sample) {
            let frame = read_frame(&path, &ReadOptions::default()).unwrap();
            prop_assert!(frame.table == sample.table(), "{}", path.display());
        }
    }
}

#[test]
fn batches_of_long_rows_are_short() {
    let folder = Folder::new();
    let ids: Vec<String> = (0..300).map(|i| format!("{i:060000}")).collect();
    let probs: Vec<u8> = (0..600).flat_map(|_| 0.5_f64.to_le_bytes()).collect();
    let entries = [array("probs", "<f8", false, "(300, 2)", probs), unicode("id", &ids)];
    let path = folder.file("long.npz", zip(&entries));
    let sizes: Vec<usize> =
        batches(&path, &ReadOptions::default()).unwrap().map(|frame| frame.unwrap().table.rows()).collect();
    assert!(sizes.len() == 2 && sizes.iter().sum::<usize>() == 300, "{sizes:?}");
}
