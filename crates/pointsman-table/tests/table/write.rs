//! Tables of results: they read back, and files are written whole or not at all.

use std::fs;
use std::io;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use pointsman_table::{Column, ColumnKind, Format, TableWriter, read_frame, write_atomically};

use crate::support::Folder;

fn columns() -> Vec<(String, ColumnKind)> {
    [("id", ColumnKind::Text), ("cost \"x\"", ColumnKind::Real), ("cell", ColumnKind::Count)]
        .map(|(name, kind)| (name.to_owned(), kind))
        .to_vec()
}

fn rows() -> [Vec<Column>; 2] {
    [
        vec![
            Column::Text(vec!["a,b".to_owned(), "é\"\n".to_owned()]),
            Column::Real(vec![0.1 + 0.2, f64::NAN]),
            Column::Count(vec![0, u64::MAX]),
        ],
        vec![Column::Text(vec![String::new()]), Column::Real(vec![-1e-300]), Column::Count(vec![7])],
    ]
}

fn write(folder: &Folder, name: &str) -> std::path::PathBuf {
    let path = folder.path(name);
    let mut writer = TableWriter::create(&path, None, &columns()).unwrap();
    rows().iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    path
}

#[test]
fn compressed_text_equals_the_plain_file() {
    let folder = Folder::new();
    for format in ["csv", "tsv", "jsonl"] {
        let plain = fs::read(write(&folder, &format!("plain.{format}"))).unwrap();
        let gzip = fs::read(write(&folder, &format!("packed.{format}.gz"))).unwrap();
        let unpacked = io::read_to_string(flate2::read::GzDecoder::new(&gzip[..])).unwrap();
        assert_eq!(unpacked.as_bytes(), plain);
        let zstd = fs::read(write(&folder, &format!("packed.{format}.zst"))).unwrap();
        assert_eq!(zstd::decode_all(&zstd[..]).unwrap(), plain);
    }
    let error = TableWriter::create(folder.path("a.parquet.gz"), None, &columns()).err().unwrap().to_string();
    assert!(error.contains("leave out the last extension"), "{error}");
}

fn check(batches: &[RecordBatch]) {
    let ids: Vec<&str> = batches.iter().flat_map(|b| b.column(0).as_string::<i32>().iter().flatten()).collect();
    assert_eq!(ids, ["a,b", "é\"\n", ""]);
    let costs: Vec<Option<f64>> =
        batches.iter().flat_map(|b| b.column(1).as_primitive::<Float64Type>().iter()).collect();
    assert_eq!(costs, [Some(0.1 + 0.2), None, Some(-1e-300)]);
    let cells: Vec<Option<u64>> =
        batches.iter().flat_map(|b| b.column(2).as_primitive::<UInt64Type>().iter()).collect();
    assert_eq!(cells, [Some(0), Some(u64::MAX), Some(7)]);
    assert!(batches.iter().all(|b| b.column(0).null_count() == 0 && b.schema().field(1).name() == "cost \"x\""));
}

#[test]
fn csv_and_jsonl_are_written() {
    let folder = Folder::new();
    assert_eq!(
        fs::read_to_string(write(&folder, "out.csv")).unwrap(),
        "id,\"cost \"\"x\"\"\",cell\n\"a,b\",0.30000000000000004,0\n\"é\"\"\n\",,18446744073709551615\n,-1e-300,7\n"
    );
    assert_eq!(
        fs::read_to_string(write(&folder, "out.jsonl")).unwrap(),
        "{\"id\":\"a,b\",\"cost \\\"x\\\"\":0.30000000000000004,\"cell\":0}\n\
         {\"id\":\"é\\\"\\n\",\"cost \\\"x\\\"\":null,\"cell\":18446744073709551615}\n\
         {\"id\":\"\",\"cost \\\"x\\\"\":-1e-300,\"cell\":7}\n"
    );
    assert!(
        fs::read_to_string(write(&folder, "out.tsv")).unwrap().starts_with("id\t\"cost \"\"x\"\"\"\tcell\na,b\t0.3")
    );
    assert_eq!(folder.names().len(), 3);
}

#[test]
fn parquet_and_arrow_are_written() {
    let folder = Folder::new();
    let file = fs::File::open(write(&folder, "out.parquet")).unwrap();
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReader::try_new(file, 100).unwrap();
    check(&reader.map(Result::unwrap).collect::<Vec<_>>());
    let file = fs::File::open(write(&folder, "out.arrow")).unwrap();
    let reader = arrow_ipc::reader::FileReader::try_new(file, None).unwrap();
    check(&reader.map(Result::unwrap).collect::<Vec<_>>());
}

#[test]
fn written_tables_can_be_read() {
    let folder = Folder::new();
    let names = ["prob_a", "prob_b", "votes_a", "votes_b", "id"];
    let kinds = [ColumnKind::Real, ColumnKind::Real, ColumnKind::Count, ColumnKind::Count, ColumnKind::Text];
    let columns: Vec<_> = names.map(str::to_owned).into_iter().zip(kinds).collect();
    for format in Format::ALL {
        let path = folder.path(&format!("out.{format}"));
        let mut writer = TableWriter::create(&path, None, &columns).unwrap();
        for i in 0..3_u64 {
            let p = 1.0 / (i as f64 + 3.0);
            writer
                .write(&[
                    Column::Real(vec![p, 1.0]),
                    Column::Real(vec![1.0 - p, 0.0]),
                    Column::Count(vec![i, 1]),
                    Column::Count(vec![2, i]),
                    Column::Text(vec![format!("é{i}"), "x".repeat(i as usize + 1)]),
                ])
                .unwrap();
        }
        writer.finish().unwrap();
        let frame = read_frame(&path, &pointsman_table::ReadOptions::default()).unwrap();
        assert_eq!(frame.table.predictions()[..4], [1.0 / 3.0, 1.0 - 1.0 / 3.0, 1.0, 0.0], "{format}");
        assert_eq!(frame.table.votes(4).unwrap().counts(), [2, 2], "{format}");
        assert_eq!(frame.ids.unwrap(), ["é0", "x", "é1", "xx", "é2", "xxx"], "{format}");
    }
}

#[test]
fn writer_dropped_before_the_end_leaves_no_file() {
    let folder = Folder::new();
    for format in Format::ALL {
        let path = folder.path(&format!("out.{format}"));
        let mut writer = TableWriter::create(&path, None, &columns()).unwrap();
        writer.write(&rows()[0]).unwrap();
        drop(writer);
    }
    assert_eq!(folder.names(), Vec::<String>::new());
}

#[test]
fn replaced_file_stays_until_the_end() {
    let folder = Folder::new();
    let path = folder.file("out.txt", "before");
    let error = write_atomically(&path, |out| {
        out.write_all(b"after")?;
        Err(io::Error::other("changed my mind"))
    });
    assert!(error.unwrap_err().to_string().contains("out.txt: changed my mind"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "before");
    write_atomically(&path, |out| out.write_all(b"after")).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "after");
    assert_eq!(folder.names(), ["out.txt"]);
}

#[cfg(unix)]
#[test]
fn links_and_devices_are_not_replaced() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    let folder = Folder::new();
    let target = folder.file("target.txt", "before");
    let link = folder.path("link.txt");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    write_atomically(&link, |out| out.write_all(b"after")).unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), "after");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    // New files have the usual permissions, not those of temporary files.
    let plain = folder.file("plain.txt", "");
    let mode = |path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(target), mode(plain));
    write_atomically("/dev/null", |out| out.write_all(b"gone")).unwrap();
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
}

#[test]
fn invalid_outputs_are_refused() {
    let folder = Folder::new();
    let error = |name: &str, columns: &[(String, ColumnKind)]| {
        TableWriter::create(folder.path(name), None, columns).err().unwrap().to_string()
    };
    assert!(error("out.xlsx", &columns()).contains("out.xlsx: unknown format"));
    assert!(error("missing/out.csv", &columns()).contains("no such file or directory"));
    let twice = [columns()[0].clone(), columns()[0].clone()];
    assert!(error("out.csv", &twice).contains("\"id\" is empty or given twice"));
    let mut writer = TableWriter::create(folder.path("out.csv"), None, &columns()).unwrap();
    for bad in [
        vec![],
        vec![Column::Count(vec![1]), Column::Real(vec![1.0]), Column::Count(vec![1])],
        vec![Column::Text(vec![]), Column::Real(vec![1.0]), Column::Count(vec![1])],
    ] {
        assert!(writer.write(&bad).unwrap_err().to_string().contains("not those declared"));
    }
    fs::create_dir(folder.path("folder.csv")).unwrap();
    assert!(error("folder.csv", &columns()).contains("is a directory"));
}

#[cfg(unix)]
#[test]
fn replaced_file_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let path = folder.file("out.json", "old");
    let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    for wanted in [0o600, 0o664] {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(wanted)).unwrap();
        pointsman_table::write_atomically(&path, |out| out.write_all(b"new")).unwrap();
        assert_eq!((mode(), std::fs::read(&path).unwrap()), (wanted, b"new".to_vec()));
    }
}
