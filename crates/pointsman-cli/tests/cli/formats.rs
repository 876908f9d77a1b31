//! The same table in every format gives the same decisions.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use pointsman_table::{Column, ColumnKind, TableWriter};

use crate::world::{CLASSES, Rows};
use crate::{line, parse_csv, workshop, world};

const TASK: &str = "--loss zero-one --route expert=0.05 --abstain 0.3";

#[test]
fn formats_do_not_change_decisions() {
    let folder = workshop();
    let path = folder.path();
    let (calibration, heldout) = (world::rows(300, 1), world::rows(200, 2));
    let base = line(path, &format!("decide router.safetensors heldout.csv {TASK} --keep id")).ok().stdout;
    for extension in ["tsv", "jsonl", "parquet", "arrow", "npz"] {
        write(&calibration, &path.join(format!("calibration.{extension}")));
        write(&heldout, &path.join(format!("heldout.{extension}")));
        line(path, &format!("calibrate calibration.{extension} -o {extension}.st --partition top-class:3")).ok();
        let decided = line(path, &format!("decide {extension}.st heldout.{extension} {TASK} --keep id")).ok().stdout;
        assert_eq!(decided, base, "{extension}");
    }
}

#[test]
fn decisions_are_written_in_every_format() {
    let folder = workshop();
    let path = folder.path();
    let base = line(path, &format!("decide router.safetensors heldout.csv {TASK} --keep id")).ok().stdout;
    for extension in ["csv", "tsv", "jsonl", "parquet", "arrow", "npz"] {
        let run =
            line(path, &format!("decide router.safetensors heldout.csv {TASK} --keep id -o out.{extension}")).ok();
        assert_eq!(run.stdout, "");
        assert!(fs::metadata(path.join(format!("out.{extension}"))).unwrap().len() > 1000, "{extension}");
    }
    assert_eq!(fs::read_to_string(path.join("out.tsv")).unwrap().replace('\t', ","), base);
    let lines = fs::read_to_string(path.join("out.jsonl")).unwrap();
    let (header, rows) = parse_csv(&base);
    assert_eq!(lines.lines().count(), rows.len());
    for (line, row) in lines.lines().zip(&rows) {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(value.as_object().unwrap().len(), header.len());
        assert_eq!(
            (value["id"].as_str().unwrap(), value["action"].as_str().unwrap()),
            (row[0].as_str(), row[3].as_str())
        );
    }
    let piped =
        line(path, &format!("decide router.safetensors heldout.csv {TASK} --keep id --output-format jsonl")).ok();
    assert_eq!(piped.stdout, lines);
}

fn write(rows: &Rows, path: &Path) {
    match path.extension().unwrap().to_str().unwrap() {
        "jsonl" => write_jsonl(rows, path),
        "npz" => write_npz(rows, path),
        _ => write_wide(rows, path),
    }
}

fn write_wide(rows: &Rows, path: &Path) {
    let mut names = vec![("id".to_owned(), ColumnKind::Text)];
    names.extend(CLASSES.map(|class| (format!("prob_{class}"), ColumnKind::Real)));
    names.extend(CLASSES.map(|class| (format!("votes_{class}"), ColumnKind::Count)));
    let mut columns = vec![Column::Text(rows.ids.clone())];
    columns.extend((0..3).map(|c| Column::Real(rows.probs.iter().map(|p| p[c]).collect())));
    columns.extend((0..3).map(|c| Column::Count(rows.votes.iter().map(|v| u64::from(v[c])).collect())));
    let mut writer = TableWriter::create(path, None, &names).unwrap();
    writer.write(&columns).unwrap();
    writer.finish().unwrap();
}

fn write_jsonl(rows: &Rows, path: &Path) {
    let mut text = String::new();
    for row in 0..rows.ids.len() {
        let map = |values: [String; 3]| {
            let pairs: Vec<String> = CLASSES.iter().zip(values).map(|(class, x)| format!("\"{class}\":{x}")).collect();
            format!("{{{}}}", pairs.join(","))
        };
        let (probs, votes) = (rows.probs[row].map(|p| p.to_string()), rows.votes[row].map(|n| n.to_string()));
        writeln!(text, "{{\"id\":\"{}\",\"probs\":{},\"votes\":{}}}", rows.ids[row], map(probs), map(votes)).unwrap();
    }
    fs::write(path, text).unwrap();
}

/// numpy arrays, written by hand.
fn write_npz(rows: &Rows, path: &Path) {
    let mut zip = zip::ZipWriter::new(File::create(path).unwrap());
    let n = rows.ids.len();
    let probs: Vec<u8> = rows.probs.iter().flatten().flat_map(|p| p.to_le_bytes()).collect();
    let votes: Vec<u8> = rows.votes.iter().flatten().flat_map(|&v| i64::from(v).to_le_bytes()).collect();
    let text = |values: &[String]| -> Vec<u8> {
        let wide = |value: &String| {
            let mut chars: Vec<u32> = value.chars().map(u32::from).collect();
            chars.resize(8, 0);
            chars
        };
        values.iter().flat_map(wide).flat_map(u32::to_le_bytes).collect()
    };
    let arrays = [
        ("probs", "<f8", format!("({n}, 3)"), probs),
        ("votes", "<i8", format!("({n}, 3)"), votes),
        ("id", "<U8", format!("({n},)"), text(&rows.ids)),
        ("classes", "<U8", "(3,)".to_owned(), text(&CLASSES.map(str::to_owned))),
    ];
    for (name, kind, shape, bytes) in arrays {
        let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
        while (header.len() + 11) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        zip.start_file(format!("{name}.npy"), options).unwrap();
        zip.write_all(b"\x93NUMPY\x01\x00").unwrap();
        zip.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
        zip.write_all(header.as_bytes()).unwrap();
        zip.write_all(&bytes).unwrap();
    }
    zip.finish().unwrap();
}
