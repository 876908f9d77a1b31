//! Several files as one table.

use std::num::NonZeroU32;

use pointsman::error::ValueError;
use pointsman::{Partition, Router};
use pointsman_table::{Frame, ReadOptions, Result, read_frame, read_frames, router_bytes};

use crate::support::{Folder, Layout, Precision, Sample};

fn read(folder: &Folder, names: &[&str], options: &ReadOptions) -> Result<Frame> {
    let paths: Vec<_> = names.iter().map(|name| folder.path(name)).collect();
    read_frames(&paths, options)
}

fn bytes(frame: &Frame) -> Vec<u8> {
    router_bytes(&Router::calibrate(&frame.table, &Partition::top_class(3)).unwrap()).unwrap()
}

/// A header and some of the lines below it.
fn part(text: &str, rows: std::ops::Range<usize>) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut kept = vec![lines[0]];
    kept.extend(&lines[1..][rows]);
    kept.join("\n") + "\n"
}

#[test]
fn several_files_give_the_router_of_one_file() {
    let (folder, sample) = (Folder::new(), Sample::new(40));
    let text = sample.text(',');
    folder.file("whole.csv", &text);
    folder.file("a.csv", part(&text, 0..15));
    folder.file("b.csv", part(&text, 15..16));
    folder.file("c.tsv", part(&sample.text('\t'), 16..40));
    let options = ReadOptions::default();
    let whole = read(&folder, &["whole.csv"], &options).unwrap();
    for names in [["a.csv", "b.csv", "c.tsv"], ["c.tsv", "a.csv", "b.csv"], ["b.csv", "c.tsv", "a.csv"]] {
        let frame = read(&folder, &names, &options).unwrap();
        assert_eq!((frame.table.rows(), bytes(&frame)), (40, bytes(&whole)), "{names:?}");
    }
    let frame = read(&folder, &["a.csv", "b.csv", "c.tsv"], &options).unwrap();
    assert_eq!(frame.table, whole.table);
    assert_eq!((frame.ids, frame.rows[15], frame.rows[16]), (whole.ids, 1, 1));
    // An error names the file and its row.
    let frame = read(&folder, &["a.csv", "b.csv", "c.tsv"], &options).unwrap();
    let fault = |row: usize| {
        frame
            .error(pointsman::Error::Value { row, column: "x_a".into(), reason: ValueError::MissingFeature })
            .to_string()
    };
    assert!(
        fault(15).contains("b.csv: row 1 (line 2)") && fault(17).contains("c.tsv: row 2 (line 3)"),
        "{}",
        fault(17)
    );
}

#[test]
fn files_may_differ_in_format_and_column_order() {
    let (folder, sample) = (Folder::new(), Sample::new(20));
    folder.file("a.csv", sample.text(','));
    folder.file("b.jsonl", sample.jsonl(Layout::Maps));
    folder.file("c.npz", sample.npz(Precision::Double));
    let options = ReadOptions::default();
    let one = read(&folder, &["a.csv"], &options).unwrap();
    let frame = read(&folder, &["a.csv", "b.jsonl", "c.npz"], &options).unwrap();
    assert_eq!(frame.table.rows(), 60);
    for row in 0..20 {
        for other in [row + 20, row + 40] {
            assert_eq!(frame.table.prediction(other), one.table.prediction(row));
            assert_eq!(frame.table.votes(other), one.table.votes(row));
        }
    }
    folder.file("x.csv", "prob_a,prob_b,x_u,x_v,votes_a,votes_b\n0.9,0.1,1,2,5,0\n");
    folder.file("y.csv", "votes_b,x_v,prob_b,x_u,prob_a,votes_a\n3,4,0.7,3,0.3,1\n");
    let frame = read(&folder, &["x.csv", "y.csv"], &options).unwrap();
    assert_eq!((&*frame.table.prediction(1), frame.table.features(1)), (&[0.3, 0.7][..], &[3.0, 4.0][..]));
    assert_eq!(frame.table.votes(1).unwrap().counts(), [1, 3]);
    assert_eq!(frame.reordered, [folder.path("y.csv").display().to_string()]);
    // Lists are in the order of their names.
    folder.file("z.jsonl", "{\"classes\":[\"b\",\"a\"],\"probs\":{\"b\":0.6,\"a\":0.4},\"votes\":{\"b\":2},\"features\":{\"u\":1,\"v\":2}}\n");
    let frame = read(&folder, &["x.csv", "z.jsonl"], &options).unwrap();
    assert_eq!((&*frame.table.prediction(1), frame.table.votes(1).unwrap().counts()), (&[0.4, 0.6][..], &[0, 2][..]));
}

#[test]
fn files_with_different_columns_are_refused_by_both_names() {
    let folder = Folder::new();
    folder.file("a.csv", "id,prob_a,prob_b,x_u,votes_a,votes_b\n1,0.9,0.1,1,5,0\n");
    for (text, parts) in [
        ("id,prob_a,prob_c,x_u,votes_a,votes_c\n1,0.9,0.1,1,5,0\n", &["classes", "a.csv has b", "b.csv has c"][..]),
        ("id,prob_a,prob_b,prob_c,x_u,votes_a,votes_b,votes_c\n1,0.8,0.1,0.1,1,5,0,0\n", &["classes", "b.csv has c"]),
        ("id,prob_a,prob_b,x_w,votes_a,votes_b\n1,0.9,0.1,1,5,0\n", &["features", "a.csv has x_u", "b.csv has x_w"]),
        ("id,prob_a,prob_b,votes_a,votes_b\n1,0.9,0.1,5,0\n", &["features", "a.csv has x_u"]),
        ("id,prob_a,prob_b,x_u,votes_a,votes_b,weight\n1,0.9,0.1,1,5,0,2\n", &["weights", "b.csv has weight"]),
        ("id,prob_a,prob_b,x_u,votes_a,votes_b,oracle_m_a,oracle_m_b\n1,0.9,0.1,1,5,0,1,0\n", &["oracle_m"]),
        ("prob_a,prob_b,x_u,votes_a,votes_b\n0.9,0.1,1,5,0\n", &["a.csv has ids", "b.csv has none"]),
    ] {
        folder.file("b.csv", text);
        let error = read(&folder, &["a.csv", "b.csv"], &ReadOptions::default()).unwrap_err().to_string();
        for part in parts.iter().chain(&["a.csv", "b.csv"]) {
            assert!(error.contains(part), "{error:?} lacks {part:?}");
        }
    }
}

/// Filters and annotations apply to all files together.
#[test]
fn filters_and_annotations_apply_to_all_files() {
    let folder = Folder::new();
    folder.file("a.csv", "id,prob_a,prob_b,split\n1,0.9,0.1,0\n2,0.8,0.2,1\n");
    folder.file("b.csv", "id,prob_b,prob_a,split\n3,0.9,0.1,0\n4,0.8,0.2,0\n");
    folder.file("none.csv", "id,prob_a,prob_b,split\n");
    let labels = folder.file("labels.csv", "annotator,id,label\nann,3,a\nbob,3,b\nann,1,b\nann,2,a\nann,9,a\n");
    let options = ReadOptions { annotations: Some(labels), ..ReadOptions::default() };
    let frame = read(&folder, &["a.csv", "none.csv", "b.csv"], &options).unwrap();
    let counts = |frame: &Frame| -> Vec<Vec<u32>> {
        (0..frame.table.rows()).map(|row| frame.table.votes(row).unwrap().counts().to_vec()).collect()
    };
    assert_eq!(counts(&frame), [[0, 1], [1, 0], [1, 1]]);
    let joined = frame.joined.unwrap();
    assert_eq!(
        (joined.rows, joined.not_annotated.first, joined.not_in_table.first),
        (3, vec!["4".to_owned()], vec!["9".to_owned()])
    );
    let annotations = frame.annotations.unwrap();
    assert_eq!(annotations.labels(2).iter().map(|label| label.class).collect::<Vec<_>>(), [0, 1]);
    let only = ReadOptions { filters: vec!["split=1".parse().unwrap()], ..options.clone() };
    assert_eq!(counts(&read(&folder, &["a.csv", "b.csv"], &only).unwrap()), [[1, 0]]);
    let none = ReadOptions { filters: vec!["split=7".parse().unwrap()], ..ReadOptions::default() };
    let error = read(&folder, &["a.csv", "b.csv"], &none).unwrap_err().to_string();
    assert!(error.contains("no row passes split=7"), "{error}");
    let first = ReadOptions { first_labels: NonZeroU32::new(1), ..options };
    assert_eq!(counts(&read(&folder, &["b.csv", "a.csv"], &first).unwrap()), [[0, 1], [1, 0], [0, 1]]);
    let empty = read_frame(folder.path("none.csv"), &ReadOptions::default()).unwrap_err().to_string();
    assert!(empty.contains("has no rows"), "{empty}");
}

#[test]
fn all_files_but_one_may_be_empty() {
    let folder = Folder::new();
    let row = "{\"probs\":{\"a\":0.5,\"b\":0.5},\"votes\":{\"a\":1}}\n";
    folder.file("a.jsonl", row);
    folder.file("empty.jsonl", "");
    folder.file("blank.jsonl", "\n\n");
    let options = ReadOptions::default();
    for names in [&["a.jsonl", "empty.jsonl", "blank.jsonl"][..], &["empty.jsonl", "a.jsonl", "a.jsonl"]] {
        let wanted = names.iter().filter(|name| **name == "a.jsonl").count();
        assert_eq!(read(&folder, names, &options).unwrap().table.rows(), wanted, "{names:?}");
    }
    let error = read(&folder, &["empty.jsonl", "empty.jsonl"], &options).unwrap_err().to_string();
    assert!(error.contains("empty.jsonl: is empty"), "{error}");
}

#[test]
fn columns_of_several_files_cannot_be_kept() {
    let folder = Folder::new();
    folder.file("a.csv", "prob_a,prob_b,note\n1,0,x\n");
    let options = ReadOptions { keep_columns: true, ..ReadOptions::default() };
    assert_eq!(read(&folder, &["a.csv"], &options).unwrap().columns.len(), 3);
    let error = read(&folder, &["a.csv", "a.csv"], &options).unwrap_err().to_string();
    assert!(error.contains("one table at a time"), "{error}");
}

#[test]
fn shared_ids_are_refused_if_strict() {
    let folder = Folder::new();
    folder.file("a.csv", "id,prob_a,prob_b\n1,0.9,0.1\n2,0.8,0.2\n");
    folder.file("b.csv", "id,prob_a,prob_b\n2,0.9,0.1\n");
    let labels = folder.file("labels.csv", "id,label\n1,a\n2,b\n");
    let options = ReadOptions { annotations: Some(labels), strict: true, ..ReadOptions::default() };
    let error = read(&folder, &["a.csv", "b.csv"], &options).unwrap_err().to_string();
    let other = folder.path("a.csv").display().to_string();
    assert!(
        error.contains("b.csv: row 1 (line 2): id \"2\" is also that of row 2 of ") && error.contains(&other),
        "{error}"
    );
}
