//! Columns that are passed on: the same values, and the same types if both formats have them.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, DictionaryArray, Float32Array, Float64Array, Int32Array, Int64Array,
    IntervalYearMonthArray, RecordBatch, StringArray, TimestampMillisecondArray,
};
use arrow_schema::DataType;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use pointsman_table::{
    Batches, Column, ColumnKind, Columns, Error, Format, InputColumn, Need, ReadOptions, Result, TableWriter, batches,
    read_frame,
};

use crate::support::{Folder, Precision, Sample, array, arrow_file, parquet as write_parquet, zip, zstd};

fn options() -> ReadOptions {
    let classes = Some(vec!["no".to_owned(), "yes".to_owned()]);
    ReadOptions { keep_columns: true, allow_empty: true, classes, ..ReadOptions::default() }
}

/// Writes every column of a table to another file, in batches of `batch_rows` rows.
fn copy(from: &Path, to: &Path, batch_rows: usize) -> Result<Batches> {
    copy_as(from, to, None, batch_rows)
}

fn copy_as(from: &Path, to: &Path, format: Option<Format>, batch_rows: usize) -> Result<Batches> {
    copy_with(from, to, format, &ReadOptions { batch_rows, need: Need::Predictions, ..options() })
}

fn copy_with(from: &Path, to: &Path, format: Option<Format>, options: &ReadOptions) -> Result<Batches> {
    let mut table = batches(from, options)?;
    let declared = |columns: &[(String, InputColumn)]| -> Vec<(String, ColumnKind)> {
        columns.iter().map(|(name, column)| (name.clone(), ColumnKind::Input(column.kind()))).collect()
    };
    let mut writer = None;
    while let Some(frame) = table.next().transpose()? {
        let writer = match &mut writer {
            Some(writer) => writer,
            none => none.insert(TableWriter::create(to, format, &declared(&frame.columns))?),
        };
        writer.write(&frame.columns.into_iter().map(|(_, column)| Column::Input(column)).collect::<Vec<_>>())?;
    }
    match writer {
        Some(writer) => writer.finish()?,
        None => TableWriter::create(to, format, &declared(&table.columns()))?.finish()?,
    }
    Ok(table)
}

fn copied(folder: &Folder, from: &str, to: &str) -> String {
    copy(&folder.path(from), &folder.path(to), 2).unwrap();
    fs::read_to_string(folder.path(to)).unwrap_or_default()
}

fn parquet(path: &Path) -> (Vec<(String, DataType)>, usize) {
    let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(path).unwrap()).unwrap();
    let fields = reader.schema().fields().iter().map(|f| (f.name().clone(), f.data_type().clone())).collect();
    (fields, reader.build().unwrap().map(|batch| batch.unwrap().num_rows()).sum())
}

const CSV: &str =
    "id,prob_no,prob_yes,note,zip,true_no\n7,0.50,0.5,\"a, \"\"b\"\"\",01234,1\n8,1,0,,00001,\nx,.25,.75,é,,3\n";

#[test]
fn csv_is_copied_exactly_and_columns_with_a_role_become_numbers_elsewhere() {
    let folder = Folder::new();
    fs::write(folder.path("in.csv"), CSV).unwrap();
    assert_eq!(copied(&folder, "in.csv", "out.csv"), CSV);
    let lines = copied(&folder, "in.csv", "out.jsonl");
    assert_eq!(
        lines,
        "{\"id\":\"7\",\"prob_no\":0.5,\"prob_yes\":0.5,\"note\":\"a, \\\"b\\\"\",\"zip\":\"01234\",\"true_no\":1}\n\
         {\"id\":\"8\",\"prob_no\":1,\"prob_yes\":0,\"note\":\"\",\"zip\":\"00001\",\"true_no\":null}\n\
         {\"id\":\"x\",\"prob_no\":0.25,\"prob_yes\":0.75,\"note\":\"é\",\"zip\":\"\",\"true_no\":3}\n"
    );
    copied(&folder, "in.csv", "out.parquet");
    let types: Vec<DataType> = parquet(&folder.path("out.parquet")).0.into_iter().map(|(_, it)| it).collect();
    use DataType::{Float64, Utf8};
    assert_eq!(types, [Utf8, Float64, Float64, Utf8, Utf8, Float64]);
    copied(&folder, "in.csv", "out.npz");
    assert_eq!(
        copied(&folder, "out.npz", "again.csv"),
        "id,prob_no,prob_yes,note,zip,true_no\n7,0.5,0.5,\"a, \"\"b\"\"\",01234,1.0\n8,1.0,0.0,,00001,NaN\nx,0.25,0.75,é,,3.0\n"
    );
}

/// Deciding reads the probabilities and the features it needs, and passes on all other columns.
#[test]
fn columns_with_decimal_commas_are_passed_on_so_that_they_can_be_read() {
    let folder = Folder::new();
    let text = "ticket;score_no;score_ja, sí;n_no;n_ja, sí;f_length;f_age;llm_no;llm_ja, sí;weight;price\n\
                a;0,25;0,75;1;2,0;12,5;;0,025;0,975;1,5;9,99\nb;1;0;3;0;7;0,5;1;0;2;1.000,5\n";
    let from = folder.file("in.csv", text);
    let columns: Columns = "probs=score_,votes=n_,id=ticket,features=f_,oracles=llm_".parse().unwrap();
    let semicolon = Some(";".parse().unwrap());
    let whole = ReadOptions { columns: columns.clone(), ..ReadOptions::default() };
    let deciding = ReadOptions {
        columns,
        delimiter: semicolon,
        need: Need::Predictions,
        features: Some(vec!["length".to_owned()]),
        keep_columns: true,
        ..ReadOptions::default()
    };
    let table = read_frame(&from, &ReadOptions { delimiter: semicolon, ..whole.clone() }).unwrap().table;
    assert_eq!(table.oracles().next(), Some(("llm", &[0.025, 0.975, 1.0, 0.0][..])));
    for name in ["out.csv", "out.tsv", "out.jsonl", "out.parquet"] {
        let to = folder.path(name);
        copy_with(&from, &to, None, &deciding).unwrap();
        let again = read_frame(&to, &whole).unwrap().table;
        // A missing feature is NaN, which is not equal to itself.
        assert_eq!(format!("{again:?}"), format!("{table:?}"), "{name}");
    }
    let written = fs::read_to_string(folder.path("out.csv")).unwrap();
    assert!(written.contains(",1.5,\"9,99\"\n") && written.contains("\"1.000,5\""), "{written}");
}

/// A struct has the same classes in every row: those that a row leaves out are null.
#[test]
fn maps_of_votes_that_leave_out_classes_can_be_read_after_copying() {
    let folder = Folder::new();
    let text = "{\"probs\":{\"a\":0.5,\"b\":0.25,\"c\":0.25},\"votes\":{\"b\":2}}\n\
                {\"probs\":{\"a\":0.5,\"b\":0.25,\"c\":0.25},\"votes\":{\"a\":3,\"b\":1}}\n";
    let from = folder.file("in.jsonl", text);
    let read = |path: &Path| read_frame(path, &ReadOptions::default()).unwrap().table;
    assert_eq!(read(&from).votes(0).unwrap().counts(), [0, 2, 0]);
    for name in ["out.parquet", "out.arrow"] {
        let [to, back] = [name, "back.jsonl"].map(|name| folder.path(name));
        copy(&from, &to, 10).unwrap();
        copy(&to, &back, 10).unwrap();
        assert_eq!([read(&to), read(&back)], [read(&from), read(&from)], "{name}");
    }
}

#[test]
fn text_that_is_not_utf_8_passes_through_csv_only() {
    let folder = Folder::new();
    let latin = b"prob_no,prob_yes,note\n0.5,0.5,caf\xe9\n";
    fs::write(folder.path("in.csv"), latin).unwrap();
    copy(&folder.path("in.csv"), &folder.path("out.csv"), 10).unwrap();
    assert_eq!(fs::read(folder.path("out.csv")).unwrap(), latin);
    for to in ["out.jsonl", "out.parquet"] {
        let error = copy(&folder.path("in.csv"), &folder.path(to), 10).err().unwrap();
        let text = error.to_string();
        assert!(text.contains("row 1, column note") && text.contains("not UTF-8"), "{text}");
        assert!(!folder.path(to).exists());
    }
}

const JSONL: &str = r#"{"probs":{"no":0.5,"yes":0.5},"tags":["a","b"],"meta":{"n":1,"deep":[{"x":1.5}]},"mixed":1,"big":18446744073709551615,"text":"1"}
{"probs":{"no":0.25,"yes":0.75},"tags":[],"meta":null,"mixed":"one","text":null,"big":1}
{"probs":{"no":1.0,"yes":0.0},"tags":null,"meta":{"n":2,"deep":[]},"mixed":[1],"text":"é","flag":true,"big":2}
"#;

#[test]
fn jsonl_keeps_every_value_and_missing_keys_stay_missing() {
    let folder = Folder::new();
    fs::write(folder.path("in.jsonl"), JSONL).unwrap();
    copy(&folder.path("in.jsonl"), &folder.path("out.jsonl"), 10).unwrap();
    let parse = |text: &str| -> Vec<serde_json::Value> {
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    assert_eq!(parse(&fs::read_to_string(folder.path("out.jsonl")).unwrap()), parse(JSONL));
}

#[test]
fn lists_and_maps_of_jsonl_stay_nested_in_formats_that_nest() {
    let folder = Folder::new();
    fs::write(folder.path("in.jsonl"), JSONL).unwrap();
    copy(&folder.path("in.jsonl"), &folder.path("out.parquet"), 10).unwrap();
    let (fields, rows) = parquet(&folder.path("out.parquet"));
    assert_eq!(rows, 3);
    let of = |name: &str| fields.iter().find(|(field, _)| field == name).unwrap().1.clone();
    assert!(matches!(of("probs"), DataType::Struct(_)) && matches!(of("tags"), DataType::List(_)), "{fields:?}");
    assert!(matches!(of("meta"), DataType::Struct(fields) if fields.len() == 2), "{fields:?}");
    assert_eq!((of("mixed"), of("big"), of("flag")), (DataType::Utf8, DataType::Utf8, DataType::Boolean));
    // And back: the only differences are that missing keys are null and mixed values are text.
    let lines = copied(&folder, "out.parquet", "again.jsonl");
    let first: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(first["meta"], serde_json::json!({"n": 1, "deep": [{"x": 1.5}]}));
    assert_eq!(first["tags"], serde_json::json!(["a", "b"]));
    assert_eq!((&first["mixed"], &first["big"]), (&"1".into(), &"18446744073709551615".into()));
    // Lists are JSON in CSV.
    copy(&folder.path("in.jsonl"), &folder.path("out.csv"), 10).unwrap();
    let text = fs::read_to_string(folder.path("out.csv")).unwrap();
    let first = text.lines().nth(1).unwrap();
    assert!(first.starts_with(r#""{""no"":0.5,""yes"":0.5}","[""a"",""b""]","#), "{text}");
}

#[test]
fn value_that_does_not_fit_the_first_rows_is_named() {
    let folder = Folder::new();
    let rows = [r#""n":1"#, r#""n":2"#, r#""n":"three""#].map(|n| format!("{{\"probs\":[0.5,0.5],{n}}}\n"));
    fs::write(folder.path("in.jsonl"), rows.concat()).unwrap();
    let error = copy(&folder.path("in.jsonl"), &folder.path("out.parquet"), 2).err().unwrap();
    assert!(matches!(&error, Error::Row { row: 3, column: Some(column), .. } if column == "n"), "{error}");
    assert!(error.to_string().contains("is not a whole number") && !folder.path("out.parquet").exists(), "{error}");
    let later = "{\"probs\":[0.5,0.5]}\n{\"probs\":[0.5,0.5]}\n{\"probs\":[0.5,0.5],\"new\":1}\n";
    fs::write(folder.path("later.jsonl"), later).unwrap();
    let mut writer = TableWriter::create(folder.path("out.csv"), None, &[("a".to_owned(), ColumnKind::Count)]).unwrap();
    let error = writer.add_column("new".to_owned(), ColumnKind::Count).unwrap_err().to_string();
    assert!(error.contains("\"new\"") && error.contains("write jsonl"), "{error}");
}

#[test]
fn types_of_parquet_and_arrow_are_kept() {
    let folder = Folder::new();
    let dictionary: DictionaryArray<Int8Type> = ["x", "y", "x"].into_iter().collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("prob_no", Arc::new(Float32Array::from(vec![0.5, 0.25, 1.0]))),
        ("prob_yes", Arc::new(Float32Array::from(vec![0.5, 0.75, 0.0]))),
        ("whole", Arc::new(Int32Array::from(vec![Some(1), None, Some(-3)]))),
        ("day", Arc::new(Date32Array::from(vec![0, 1, 20_000]))),
        ("time", Arc::new(TimestampMillisecondArray::from(vec![0, 1_500, -1]))),
        ("kind", Arc::new(dictionary)),
        ("flag", Arc::new(BooleanArray::from(vec![true, false, true]))),
        ("real", Arc::new(Float64Array::from(vec![Some(0.1), None, Some(f64::INFINITY)]))),
        ("large", Arc::new(Int64Array::from(vec![i64::MAX, i64::MIN, 0]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(fs::File::create(folder.path("in.parquet")).unwrap(), batch.schema(), None);
    writer.as_mut().unwrap().write(&batch).unwrap();
    writer.unwrap().close().unwrap();
    let types = |name: &str| parquet(&folder.path(name)).0;
    copied(&folder, "in.parquet", "out.parquet");
    assert_eq!(types("out.parquet"), types("in.parquet"));
    // Through an Arrow file, which has no dictionaries, and text, which has no types.
    copied(&folder, "in.parquet", "out.arrow");
    copied(&folder, "out.arrow", "again.parquet");
    let mut wanted = types("in.parquet");
    wanted[5].1 = DataType::Utf8;
    assert_eq!(types("again.parquet"), wanted);
    let text = "prob_no,prob_yes,whole,day,time,kind,flag,real,large\n\
                0.5,0.5,1,1970-01-01,1970-01-01T00:00:00,x,true,0.1,9223372036854775807\n\
                0.25,0.75,,1970-01-02,1970-01-01T00:00:01.500,y,false,,-9223372036854775808\n\
                1.0,0.0,-3,2024-10-04,1969-12-31T23:59:59.999,x,true,inf,0\n";
    assert_eq!(copied(&folder, "again.parquet", "out.csv"), text);
    let line = copied(&folder, "in.parquet", "out.jsonl").lines().nth(1).unwrap().to_owned();
    let wanted = r#"{"prob_no":0.25,"prob_yes":0.75,"whole":null,"day":"1970-01-02","time":"1970-01-01T00:00:01.500","kind":"y","flag":false,"real":null,"large":-9223372036854775808}"#;
    assert_eq!(line, wanted);
    // Whole numbers of which some are missing are floats in numpy.
    copied(&folder, "in.parquet", "out.npz");
    let back = copied(&folder, "out.npz", "again.csv");
    assert!(back.lines().nth(2).unwrap().starts_with("0.25,0.75,NaN,1970-01-02,"), "{back}");
    assert!(back.lines().nth(3).unwrap().starts_with("1.0,0.0,-3.0,"), "{back}");
}

#[test]
fn numpy_arrays_keep_their_types_and_shapes() {
    let folder = Folder::new();
    let lines = "{\"prob_no\":0.5,\"prob_yes\":0.5,\"n\":-7,\"b\":true,\"t\":\"é\"}\n";
    fs::write(folder.path("in.jsonl"), lines.repeat(3)).unwrap();
    copied(&folder, "in.jsonl", "a.npz");
    copied(&folder, "a.npz", "b.npz");
    assert_eq!(fs::read(folder.path("a.npz")).unwrap(), fs::read(folder.path("b.npz")).unwrap());
    assert_eq!(copied(&folder, "b.npz", "out.jsonl"), lines.repeat(3));
}

#[test]
fn filters_apply_to_kept_columns() {
    let folder = Folder::new();
    fs::write(folder.path("in.csv"), "prob_no,prob_yes,s\n0.5,0.5,a\n0.25,0.75,b\n0.1,0.9,a\n").unwrap();
    for to in ["in.csv", "in.parquet", "in.jsonl", "in.npz"] {
        if to != "in.csv" {
            copied(&folder, "in.csv", to);
        }
        let filtered = ReadOptions { filters: vec!["s=a".parse().unwrap()], ..options() };
        let frame = batches(folder.path(to), &filtered).unwrap().next().unwrap().unwrap();
        let names: Vec<&str> = frame.columns.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((names, frame.columns[2].1.len()), (vec!["prob_no", "prob_yes", "s"], 2), "{to}");
    }
}

#[test]
fn tables_without_rows_are_read_if_allowed() {
    let folder = Folder::new();
    fs::write(folder.path("in.csv"), "id,prob_no,prob_yes\n").unwrap();
    fs::write(folder.path("in.jsonl"), "").unwrap();
    assert_eq!(copied(&folder, "in.csv", "out.csv"), "id,prob_no,prob_yes\n");
    for to in ["out.parquet", "out.arrow", "out.npz"] {
        copied(&folder, "in.csv", to);
        assert_eq!(copied(&folder, to, "back.csv"), "id,prob_no,prob_yes\n", "{to}");
    }
    assert_eq!(copied(&folder, "in.jsonl", "out.jsonl"), "");
    // The shape of nested columns is not known.
    let rows = "{\"probs\":{\"no\":0.5,\"yes\":0.5}}\n";
    fs::write(folder.path("one.jsonl"), rows).unwrap();
    copied(&folder, "one.jsonl", "one.parquet");
    let batch = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(folder.path("one.parquet")).unwrap()).unwrap();
    let schema = batch.schema().clone();
    let writer = ArrowWriter::try_new(fs::File::create(folder.path("none.parquet")).unwrap(), schema, None);
    writer.unwrap().close().unwrap();
    assert_eq!(batches(folder.path("none.parquet"), &options()).unwrap().count(), 0);
    let strict = ReadOptions { allow_empty: false, ..options() };
    for name in ["in.csv", "in.jsonl", "none.parquet"] {
        let read = batches(folder.path(name), &strict).and_then(|mut batches| batches.next().transpose());
        assert!(read.unwrap_err().to_string().contains("has no rows"), "{name}");
    }
}

#[test]
fn long_rows_end_a_batch_early() {
    let folder = Folder::new();
    let long = "x".repeat(1 << 20);
    let text = format!("prob_no,prob_yes,note\n{}", format!("0.5,0.5,{long}\n").repeat(40));
    fs::write(folder.path("in.csv"), text).unwrap();
    let sizes: Vec<usize> =
        batches(folder.path("in.csv"), &options()).unwrap().map(|frame| frame.unwrap().table.rows()).collect();
    assert_eq!(sizes, [16, 16, 8]);
    let whole = pointsman_table::read_frame(folder.path("in.csv"), &options()).unwrap();
    assert_eq!((whole.table.rows(), whole.columns[2].1.len()), (40, 40));
}

#[test]
fn unneeded_columns_of_any_type_are_ignored() {
    let folder = Folder::new();
    let text = StringArray::from(vec!["x"; 2]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("prob_no", Arc::new(Float64Array::from(vec![0.5; 2]))),
        ("prob_yes", Arc::new(Float64Array::from(vec![0.5; 2]))),
        ("x_text", Arc::new(text)),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = fs::File::create(folder.path("in.arrow")).unwrap();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(file, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let lenient = ReadOptions { features: Some(Vec::new()), need: Need::Predictions, ..options() };
    assert_eq!(batches(folder.path("in.arrow"), &lenient).unwrap().map(|f| f.unwrap().columns.len()).sum::<usize>(), 3);
}

/// A table of two classes with another column.
fn with_column(name: &str, column: ArrayRef) -> RecordBatch {
    let half: ArrayRef = Arc::new(Float64Array::from(vec![0.5; column.len()]));
    RecordBatch::try_from_iter(vec![("prob_no", half.clone()), ("prob_yes", half), (name, column)]).unwrap()
}

#[test]
fn instants_are_written_in_utc_and_filtered_by_their_text() {
    let folder = Folder::new();
    for zone in ["UTC", "+02:00", "Europe/Berlin", "Mars/Olympus_Mons"] {
        let instants = TimestampMillisecondArray::from(vec![0, 1_700_000_000_500]).with_timezone(zone);
        write_parquet(&folder.path("in.parquet"), &with_column("when", Arc::new(instants)), zstd());
        let text = "prob_no,prob_yes,when\n0.5,0.5,1970-01-01T00:00:00Z\n0.5,0.5,2023-11-14T22:13:20.500Z\n";
        assert_eq!(copied(&folder, "in.parquet", "out.csv"), text);
        assert!(copied(&folder, "in.parquet", "out.jsonl").contains(r#""when":"1970-01-01T00:00:00Z"}"#));
        let filters = vec!["when=2023-11-14T22:13:20.500Z".parse().unwrap()];
        let frame =
            pointsman_table::read_frame(folder.path("in.parquet"), &ReadOptions { filters, ..options() }).unwrap();
        assert_eq!(frame.rows, [2]);
    }
}

/// Each value is looked up by its own key, so that the time is linear in the rows.
#[test]
fn long_columns_of_dictionaries_are_written_in_linear_time() {
    let folder = Folder::new();
    let words: DictionaryArray<Int8Type> = (0..100_000).map(|i| ["x", "y", "z"][i % 3]).collect();
    arrow_file(&folder.path("in.arrow"), &with_column("word", Arc::new(words)), None);
    let start = std::time::Instant::now();
    for to in ["out.csv", "out.jsonl", "out.npz", "out.arrow"] {
        copy(&folder.path("in.arrow"), &folder.path(to), 100_000).unwrap();
    }
    // In quadratic time this took minutes.
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    let text = fs::read_to_string(folder.path("out.csv")).unwrap();
    assert_eq!((text.lines().count(), text.lines().last()), (100_001, Some("0.5,0.5,x")));
}

#[test]
fn types_that_cannot_be_text_are_named() {
    let folder = Folder::new();
    let months: ArrayRef = Arc::new(IntervalYearMonthArray::from(vec![None, Some(1)]));
    arrow_file(&folder.path("in.arrow"), &with_column("months", months), None);
    for to in ["out.csv", "out.jsonl", "out.npz"] {
        let error = copy(&folder.path("in.arrow"), &folder.path(to), 10).err().unwrap().to_string();
        for part in ["row 2, column months: type Interval(YearMonth) cannot be written", "--keep id leaves"] {
            assert!(error.contains(part), "{to}: {error}");
        }
        assert!(!folder.path(to).exists());
    }
    copy(&folder.path("in.arrow"), &folder.path("out.arrow"), 10).unwrap();
}

/// Readers of a stream get only whole batches.
#[cfg(target_os = "linux")]
#[test]
fn batch_with_a_value_that_cannot_be_written_is_not_written_to_a_stream() {
    use std::io::Read;
    use std::os::fd::AsRawFd;
    let folder = Folder::new();
    let months: ArrayRef = Arc::new(IntervalYearMonthArray::from(vec![None, None, None, Some(1)]));
    arrow_file(&folder.path("in.arrow"), &with_column("months", months), None);
    for (format, batch_rows, wanted) in [
        (Format::Csv, 2, "prob_no,prob_yes,months\n0.5,0.5,\n0.5,0.5,\n"),
        (Format::Csv, 4, ""),
        (Format::Jsonl, 4, ""),
    ] {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
        let error = copy_as(&folder.path("in.arrow"), Path::new(&path), Some(format), batch_rows).err().unwrap();
        assert!(error.to_string().contains("row 4, column months"), "{error}");
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, wanted);
    }
}

#[test]
fn numpy_arrays_keep_the_names_of_classes_and_features() {
    let (folder, sample) = (Folder::new(), Sample::new(4));
    let from = folder.file("in.npz", sample.npz(Precision::Double));
    for to in ["out.npz", "out.parquet", "out.arrow", "out.jsonl", "out.csv"] {
        copy(&from, &folder.path(to), 3).unwrap();
        let frame = pointsman_table::read_frame(folder.path(to), &ReadOptions::default()).unwrap();
        assert_eq!((frame.table, frame.ids), (sample.table(), Some(sample.ids.clone())), "{to}");
    }
    // Classes without names stay lists.
    let halves = [0.5_f64; 4].iter().flat_map(|x| x.to_le_bytes()).collect();
    let unnamed = folder.file("unnamed.npz", zip(&[array("probs", "<f8", false, "(2, 2)", halves)]));
    assert_eq!(copied(&folder, "unnamed.npz", "out.jsonl"), "{\"probs\":[0.5,0.5]}\n".repeat(2));
    copy(&unnamed, &folder.path("again.npz"), 1).unwrap();
    let columns = batches(folder.path("again.npz"), &options()).unwrap().columns();
    assert_eq!(columns.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["probs"]);
}
