//! Joining a long table of labels.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Float64Array, Int64Array, ListArray, RecordBatch, StringArray};
use parquet::basic::Compression;
use pointsman_table::{Filter, Frame, Need, ReadOptions, Result, read_frame};

use crate::support::{Folder, arrow_file, parquet};

const TABLE: &str = "id,prob_cat,prob_dog,split\n1,0.5,0.5,a\n2,1,0,b\n3,0,1,a\n";
const LABELS: &str = "annotator,id,label\nann,1,cat\nbob,1,dog\nann,2,cat\nann,3,dog\nbob,3,dog\ncy,3,cat\n";

fn options(labels: &Path, filters: &[&str]) -> ReadOptions {
    let filters = filters.iter().map(|f| f.parse::<Filter>().unwrap()).collect();
    ReadOptions { annotations: Some(labels.to_owned()), filters, ..ReadOptions::default() }
}

fn join(table: &Path, labels: &Path, filters: &[&str]) -> Result<Frame> {
    read_frame(table, &options(labels, filters))
}

fn join_strictly(table: &Path, labels: &Path, filters: &[&str]) -> Result<Frame> {
    read_frame(table, &ReadOptions { strict: true, ..options(labels, filters) })
}

fn counts(frame: &Frame) -> Vec<Vec<u32>> {
    (0..frame.table.rows()).map(|row| frame.table.votes(row).unwrap().counts().to_vec()).collect()
}

#[track_caller]
fn refused(table: &str, labels: &str, filters: &[&str], parts: &[&str]) {
    let folder = Folder::new();
    let error = join_strictly(&folder.file("table.csv", table), &folder.file("labels.csv", labels), filters);
    let error = error.expect_err("the tables were joined").to_string();
    for part in parts {
        assert!(error.contains(part), "{error:?} lacks {part:?}");
    }
}

#[test]
fn annotations_of_every_format_give_the_same_votes() {
    let folder = Folder::new();
    let table = folder.file("table.csv", TABLE);
    let expected = vec![vec![1, 1], vec![1, 0], vec![1, 2]];
    assert_eq!(counts(&join(&table, &folder.file("labels.csv", LABELS), &[]).unwrap()), expected);
    let tabs = folder.file("labels.tsv", LABELS.replace(',', "\t"));
    assert_eq!(counts(&join(&table, &tabs, &[]).unwrap()), expected);
    let lines: String = LABELS
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            // Ids may be numbers in one file and text in the other; labels may be indices of classes.
            let label = if cells[2] == "cat" { 0 } else { 1 };
            format!("{{\"id\":{},\"label\":{label},\"annotator\":\"{}\"}}\n", cells[1], cells[0])
        })
        .collect();
    assert_eq!(counts(&join(&table, &folder.file("labels.jsonl", lines), &[]).unwrap()), expected);
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 1, 2, 3, 3, 3]));
    let labels: ArrayRef = Arc::new(StringArray::from(vec!["cat", "dog", "cat", "dog", "dog", "cat"]));
    let batch = RecordBatch::try_from_iter(vec![("id", ids), ("label", labels)]).unwrap();
    parquet(&folder.path("labels.parquet"), &batch, Compression::SNAPPY);
    assert_eq!(counts(&join(&table, &folder.path("labels.parquet"), &[]).unwrap()), expected);
    arrow_file(&folder.path("labels.arrow"), &batch, None);
    assert_eq!(counts(&join(&table, &folder.path("labels.arrow"), &[]).unwrap()), expected);
}

#[test]
fn annotations_of_filtered_rows_are_not_missed() {
    let folder = Folder::new();
    let frame = join(&folder.file("table.csv", TABLE), &folder.file("labels.csv", LABELS), &["split=a"]).unwrap();
    assert_eq!(counts(&frame), [[1, 1], [1, 2]]);
    assert_eq!(frame.rows, [1, 3]);
    // Filtered rows need no labels.
    refused(
        TABLE,
        "id,label\n1,cat\n2,cat\n",
        &[],
        &["table.csv: row 3 (line 4): no annotation of id \"3\"", "labels.csv"],
    );
    let frame = join(&folder.path("table.csv"), &folder.file("labels.csv", "id,label\n2,cat\n"), &["split=b"]).unwrap();
    assert_eq!(counts(&frame), [[1, 0]]);
}

#[test]
fn matching_ids_are_joined_and_others_counted() {
    let folder = Folder::new();
    let table = folder.file("table.csv", TABLE);
    let labels = folder.file("labels.csv", "id,label\n9,cat\n1,cat\n8,dog\n1,dog\n8,cat\n3,dog\n");
    let frame = join(&table, &labels, &[]).unwrap();
    assert_eq!((counts(&frame), frame.rows.as_slice()), (vec![vec![1, 1], vec![0, 1]], &[1, 3][..]));
    let joined = frame.joined.as_ref().unwrap();
    assert_eq!((joined.rows, joined.not_annotated.count, joined.not_in_table.count), (2, 1, 2));
    assert_eq!(
        (joined.not_annotated.first.clone(), joined.not_in_table.first.clone()),
        (vec!["2".into()], vec!["9".into(), "8".into()])
    );
    // The id of a filtered row is in the table.
    let joined = join(&table, &labels, &["split=a"]).unwrap().joined.unwrap();
    assert_eq!((joined.rows, joined.not_annotated.count, joined.not_in_table.count), (2, 0, 2));
    let strangers = folder.file("strangers.csv", "id,label\nq1,cat\nq2,dog\n");
    let error = join(&table, &strangers, &[]).unwrap_err().to_string();
    assert!(
        error.contains("strangers.csv: no id is one of") && error.contains("\"q1\"") && error.contains("\"1\""),
        "{error}"
    );
    // With batches, the last one reports what is missing.
    let in_batches = |strict| {
        let options = ReadOptions { batch_rows: 1, strict, ..options(&labels, &[]) };
        pointsman_table::batches(&table, &options).unwrap().collect::<Result<Vec<Frame>>>()
    };
    assert_eq!(in_batches(false).unwrap().iter().flat_map(counts).collect::<Vec<_>>(), [[1, 1], [0, 1]]);
    assert!(in_batches(true).is_err());
}

#[test]
fn repeated_ids_are_counted() {
    let folder = Folder::new();
    let table = folder.file("table.csv", format!("{TABLE}1,1,0,b\n1,1,0,b\n3,0,1,b\n"));
    let frame = join(&table, &folder.file("labels.csv", LABELS), &[]).unwrap();
    assert_eq!(counts(&frame), [[1, 1], [1, 0], [1, 2], [1, 1], [1, 1], [1, 2]]);
    let repeated = frame.repeated_ids().unwrap();
    assert_eq!((repeated.ids.count, repeated.rows, repeated.ids.first), (2, 5, vec!["1".to_owned(), "3".into()]));
    assert_eq!(join(&folder.file("table.csv", TABLE), &folder.path("labels.csv"), &[]).unwrap().repeated_ids(), None);
}

#[test]
fn annotations_replace_the_votes_of_the_table() {
    let folder = Folder::new();
    let table = folder.file("table.csv", "id,prob_cat,prob_dog,votes_cat,votes_dog\n1,1,0,7,7\n");
    let frame = join(&table, &folder.file("labels.csv", "id,label\n1,dog\n"), &[]).unwrap();
    assert_eq!(counts(&frame), [[0, 1]]);
}

#[test]
fn annotations_that_do_not_fit_are_refused() {
    refused("prob_cat,prob_dog\n1,0\n", LABELS, &[], &["table.csv: no column id", "--columns id=NAME"]);
    refused(
        TABLE,
        "id,tag\n1,cat\n",
        &[],
        &["labels.csv: no column label", "columns found: id, tag", "--columns label=NAME"],
    );
    refused(TABLE, "id:label\n1:cat\n", &[], &["labels.csv: no column id", "--delimiter"]);
    refused(TABLE, "id,label\n", &[], &["labels.csv: has no rows"]);
    refused(
        TABLE,
        &format!("{LABELS}ann,9,cat\n"),
        &[],
        &["labels.csv: row 7, column id: \"9\" is not an id of", "table.csv"],
    );
    refused(
        TABLE,
        &format!("{LABELS}dan,1,cow\n"),
        &[],
        &["labels.csv: row 7 (line 8), column label: label \"cow\"", "cat, dog"],
    );
    refused(TABLE, &format!("{LABELS}dan,1,\n"), &[], &["labels.csv: row 7 (line 8), column label: no label"]);
    refused(TABLE, &format!("{LABELS}dan,,cat\n"), &[], &["labels.csv: row 7 (line 8), column id: no id"]);
    refused(TABLE, &format!("{LABELS},1,cat\n"), &[], &["labels.csv: row 7 (line 8), column annotator: no annotator"]);
    refused(
        TABLE,
        &format!("{LABELS}ann,1,dog\n"),
        &[],
        &[
            "row 7 (line 8), column annotator: \"ann\" labelled id \"1\" already in row 1, as \"cat\" and now as \"dog\": keep one label",
        ],
    );
    let doubled = format!("{TABLE}1,1,0,b\n");
    refused(&doubled, LABELS, &[], &["table.csv: row 4 (line 5): id \"1\" is also that of row 1"]);
    refused(
        &doubled,
        LABELS,
        &["split=a"],
        &["table.csv: id \"1\" of a row left out by the filter is also that of row 1"],
    );
    let folder = Folder::new();
    let error = join(&folder.file("table.csv", TABLE), &folder.path("missing.csv"), &[]).unwrap_err();
    assert!(error.to_string().contains("missing.csv: no such file"), "{error}");
    let error = join(&folder.path("table.csv"), &folder.file("labels.npz", "PK"), &[]).unwrap_err();
    assert!(error.to_string().contains("labels.npz: annotations cannot be read from npz"), "{error}");
}

#[test]
fn similar_names_are_suggested() {
    for (label, meant) in [("caat", "did you mean \"cat\"?"), ("D_OG", "\"dog\"?"), ("dgo", "(cat, dog)")] {
        refused(TABLE, &format!("{LABELS}dan,1,{label}\n"), &[], &["is not among the classes", meant]);
    }
    let folder = Folder::new();
    let (table, labels) = (folder.file("table.csv", TABLE), folder.file("labels.csv", LABELS));
    // A misspelt class is not to be left out; another label may be.
    let error = |rows: &str| {
        let labels = folder.file("misspelt.csv", format!("{LABELS}{rows}"));
        join(&table, &labels, &[]).unwrap_err().to_string()
    };
    let misspelt = error("dan,1,caat\ndan,2,caat\n");
    assert!(
        misspelt.ends_with("2 rows have this label: rename it") && !misspelt.contains("--ignore-label"),
        "{misspelt}"
    );
    let both = error("dan,1,caat\ndan,2,unsure\n");
    assert!(both.ends_with("or leave out those that are no class with --ignore-label \"unsure\""), "{both}");
    let without = ReadOptions { without: vec!["bop".to_owned()], ..options(&labels, &[]) };
    let error = read_frame(&table, &without).unwrap_err().to_string();
    assert!(error.contains("there are ann, bob, cy: did you mean \"bob\"?"), "{error}");
    let lines = "{\"probs\":{\"cat\":1,\"dog\":0},\"labels\":[\"cat\",\"Dog\"]}\n";
    let error = read_frame(folder.file("a.jsonl", lines), &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("label \"Dog\" is not among the classes (cat, dog): did you mean \"dog\"?"), "{error}");
}

#[test]
fn columns_can_have_other_names() {
    let folder = Folder::new();
    let table = folder.file("table.csv", TABLE.replace("id,", "uid,"));
    let own = LABELS.replace("annotator,id,label", "worker,uid,answer");
    let named = |labels: &Path, columns: &str| {
        read_frame(&table, &ReadOptions { columns: columns.parse().unwrap(), ..options(labels, &[]) })
    };
    let columns = "id=uid,label=answer,annotator=worker";
    let labels = folder.file("labels.csv", &own);
    let frame = named(&labels, columns).unwrap();
    assert_eq!(
        (counts(&frame), frame.annotations.unwrap().names().len()),
        (vec![vec![1, 1], vec![1, 0], vec![1, 2]], 3)
    );
    let lines = "{\"uid\":1,\"answer\":\"cat\",\"worker\":\"ann\"}\n";
    assert_eq!(counts(&named(&folder.file("labels.jsonl", lines), columns).unwrap()), [[1, 0]]);
    // The annotations may still use the usual name of ids.
    let usual = folder.file("usual.csv", LABELS);
    assert_eq!(counts(&named(&usual, "id=uid").unwrap()).len(), 3);
    let error = |labels: &Path, columns: &str| named(labels, columns).unwrap_err().to_string();
    assert!(error(&labels, "id=uid").contains("labels.csv: no column label: annotations need uid and label"));
    assert!(error(&usual, "id=uid,annotator=worker").contains("no column worker"));
    let bad = folder.file("bad.csv", own.replace("ann,2,cat", "ann,2,cow"));
    assert!(error(&bad, columns).contains("row 3 (line 4), column answer: label \"cow\""));
    let lines = folder.file("bad.jsonl", "{\"uid\":1,\"tag\":\"cat\"}\n");
    assert!(error(&lines, columns).contains("row 1 (line 1): no column answer"));
    // Names of columns of annotations are allowed without annotations.
    let alone = ReadOptions { columns: columns.parse().unwrap(), ..ReadOptions::default() };
    assert!(read_frame(&table, &alone).is_ok());
    let labelled = ReadOptions { need: Need::Votes, ..alone.clone() };
    let error = read_frame(&table, &labelled).unwrap_err().to_string();
    assert!(error.contains("label is a column of annotations"), "{error}");
    assert_eq!(alone.columns.to_string(), columns);
}

/// The ids are called `id` in the table and otherwise in the annotations.
#[test]
fn column_names_may_differ_in_case() {
    let folder = Folder::new();
    let table = folder.file("table.csv", TABLE);
    let text = LABELS.replace("annotator,id,label", "Annotator,ID,Label");
    let lines =
        "{\"ID\":1,\"Label\":\"cat\",\"Annotator\":\"ann\"}\n{\"ID\":1,\"Label\":\"dog\",\"Annotator\":\"bob\"}\n";
    for labels in [folder.file("labels.csv", &text), folder.file("labels.jsonl", lines)] {
        let frame = join(&table, &labels, &[]).unwrap();
        assert_eq!(counts(&frame)[0], [1, 1]);
        assert_eq!(frame.annotations.unwrap().names()[..2], ["ann", "bob"]);
        let taken = frame.joined.unwrap().taken;
        assert_eq!(
            taken.iter().map(|(key, name)| format!("{key}={name}")).collect::<Vec<_>>().join(","),
            "id=ID,label=Label,annotator=Annotator"
        );
    }
    let error = join(&table, &folder.file("two.csv", "id,Label,LABEL\n1,cat,dog\n"), &[]).unwrap_err().to_string();
    assert!(error.contains("Label and LABEL differ in case only") && error.contains("--columns label=NAME"), "{error}");
    // Another name is not guessed; the message suggests it.
    let frame = join(&table, &folder.file("w.csv", "id,label,worker_id\n1,cat,w1\n"), &[]).unwrap();
    assert_eq!(frame.joined.unwrap().unused_annotator.as_deref(), Some("worker_id"));
}

#[test]
fn rows_with_few_labels_are_left_out() {
    let folder = Folder::new();
    let (table, labels) = (folder.file("table.csv", TABLE), folder.file("labels.csv", LABELS));
    let read = |min: u32, without: &[&str], first: u32| {
        let without = without.iter().map(|&name| name.to_owned()).collect();
        let (min_labels, first_labels) = (NonZeroU32::new(min), NonZeroU32::new(first));
        read_frame(&table, &ReadOptions { min_labels, first_labels, without, ..options(&labels, &[]) })
    };
    let left_out = |frame: &Frame| frame.joined.as_ref().unwrap().rows_with_few_labels;
    let frame = read(2, &[], 0).unwrap();
    assert_eq!((frame.rows.clone(), left_out(&frame), frame.rows_without_labels), (vec![1, 3], 1, 0));
    assert_eq!(frame.annotations.as_ref().unwrap().rows(), 2);
    // Labels count that are left: of the first row one, of the second none.
    let frame = read(2, &["ann"], 0).unwrap();
    assert_eq!((frame.rows.clone(), left_out(&frame), frame.rows_without_labels), (vec![3], 1, 1));
    assert_eq!(counts(&read(2, &[], 2).unwrap()).iter().map(|row| row.iter().sum::<u32>()).max(), Some(2));
    let error = read(9, &[], 0).unwrap_err().to_string();
    assert!(error.contains("no row has as many labels as --min-labels asks for"), "{error}");
}

#[test]
fn rows_without_annotator_are_counted() {
    let error = |rows: &str| {
        let folder = Folder::new();
        let (table, labels) = (folder.file("table.csv", TABLE), folder.file("labels.csv", format!("{LABELS}{rows}")));
        join(&table, &labels, &[]).unwrap_err().to_string()
    };
    let several = error(",1,cat\ndan,2,cat\n ,2,dog\n");
    for part in ["row 7 (line 8), column annotator: no annotator; 2 rows have none", "unknown-1", "leave these rows"] {
        assert!(several.contains(part), "{part}: {several}");
    }
    assert!(error(",1,cat\n").contains("no annotator: fill in who labelled"));
}

#[test]
fn labels_are_sorted_by_date() {
    let folder = Folder::new();
    let table = folder.file("table.csv", TABLE);
    let text = "id,label,When\n1,dog,2024-03-02\n1,cat,2024-03-01T23:00:00Z\n1,cat,2024-03-02T00:30:00+02:00\n";
    let labels = folder.file("labels.csv", text);
    let first = |columns: &str, first: u32| {
        let columns = columns.parse().unwrap();
        let options = ReadOptions { columns, first_labels: NonZeroU32::new(first), ..options(&labels, &[]) };
        read_frame(&table, &options).map(|frame| counts(&frame)[0].clone())
    };
    assert_eq!(first("", 1).unwrap(), [0, 1]);
    assert_eq!(first("date=When", 1).unwrap(), [1, 0]);
    assert_eq!(first("date=When", 2).unwrap(), [2, 0]);
    let error = first("date=time", 1).unwrap_err().to_string();
    assert!(error.contains("no column time") && error.contains("--columns date=NAME"), "{error}");
    folder.file("labels.csv", "id,label,When\n1,dog,2.3.2024\n");
    let error = first("date=When", 1).unwrap_err().to_string();
    assert!(error.contains("row 1 (line 2), column When: \"2.3.2024\" is not a date: write dates as"), "{error}");
    folder.file("labels.csv", "id,label,When\n1,dog,\n");
    let error = first("date=When", 1).unwrap_err().to_string();
    assert!(error.contains("row 1 (line 2), column When: no date: write dates as"), "{error}");
}

#[test]
fn rows_sorted_by_annotator_are_reported() {
    let folder = Folder::new();
    let items: Vec<u32> = (0..12).collect();
    let rows: String = items.iter().map(|id| format!("{id},0.5,0.5\n")).collect();
    let table = folder.file("table.csv", format!("id,prob_cat,prob_dog\n{rows}"));
    let label = |id: u32, who: &str, at: u32| format!("{id},cat,{who},2024-03-01T10:{at:02}:00\n");
    let by_annotator: String =
        ["zoe", "ann"].iter().flat_map(|who| items.iter().map(|&id| label(id, who, id % 2))).collect();
    let by_name: String = items.iter().flat_map(|&id| [label(id, "ann", 1), label(id, "zoe", 2)]).collect();
    let mixed: String = items
        .iter()
        .flat_map(|&id| match id % 2 {
            0 => [label(id, "ann", 1), label(id, "zoe", 2)],
            _ => [label(id, "zoe", 1), label(id, "ann", 2)],
        })
        .collect();
    for (rows, columns, is_sorted) in [
        (&by_annotator, "", true),
        (&by_name, "", true),
        (&by_name, "date=at", false),
        (&by_annotator, "date=at", true),
        (&mixed, "", false),
    ] {
        let labels = folder.file("labels.csv", format!("id,label,annotator,at\n{rows}"));
        let options = ReadOptions { columns: columns.parse().unwrap(), ..options(&labels, &[]) };
        let joined = read_frame(&table, &options).unwrap().joined.unwrap();
        assert_eq!(joined.is_sorted_by_annotator, is_sorted, "{columns} {rows}");
    }
}

#[test]
fn ids_may_have_another_name_in_the_annotations_only() {
    let folder = Folder::new();
    let (table, labels) = (folder.file("table.csv", TABLE), folder.file("l.csv", LABELS.replacen("id", "item", 1)));
    let named = ReadOptions { columns: "id=item".parse().unwrap(), ..options(&labels, &[]) };
    assert_eq!(counts(&read_frame(&table, &named).unwrap()), [[1, 1], [1, 0], [1, 2]]);
}

#[test]
fn the_only_column_like_an_id_is_taken() {
    let folder = Folder::new();
    let table = folder.file("table.csv", TABLE);
    let named = |header: &str, columns: &str| {
        let labels = folder.file("l.csv", LABELS.replacen("annotator,id,label", header, 1));
        read_frame(&table, &ReadOptions { columns: columns.parse().unwrap(), ..options(&labels, &[]) })
    };
    let frame = named("annotator,item_id,label", "").unwrap();
    assert_eq!(counts(&frame), [[1, 1], [1, 0], [1, 2]]);
    assert_eq!(frame.joined.unwrap().taken, [("id", "item_id".to_owned())]);
    // With two such columns, or none, the user has to say.
    let error = named("task_id,item_id,label", "").unwrap_err().to_string();
    assert!(error.contains("no column id") && error.contains("--columns item=NAME"), "{error}");
    assert!(named("task_id,item_id,label", "item=item_id").unwrap().joined.unwrap().taken.is_empty());
    assert!(named("annotator,reference,label", "").unwrap_err().to_string().contains("no column id"));
    assert_eq!(counts(&named("annotator,reference,label", "item=reference").unwrap()).len(), 3);
    assert!(named("annotator,reference,label", "item=uid").unwrap_err().to_string().contains("no column uid"));
    // The same holds for the table.
    let other = |header: &str, columns: &str| {
        let table = folder.file("other.csv", TABLE.replacen("id,", header, 1));
        let labels = folder.file("l.csv", LABELS);
        read_frame(&table, &ReadOptions { columns: columns.parse().unwrap(), ..options(&labels, &[]) })
    };
    let frame = other("ticketId,", "").unwrap();
    assert_eq!((frame.taken_id.as_deref(), frame.joined.as_ref().unwrap().rows), (Some("ticketId"), 3));
    assert_eq!(other("ticketId,", "id=ticketId").unwrap().taken_id, None);
    let error = other("reference,", "").unwrap_err().to_string();
    assert!(error.contains("other.csv: no column id") && error.contains("--columns id=NAME"), "{error}");
    // A name that was given is meant.
    let error = other("ticketId,", "id=uid").unwrap_err().to_string();
    assert!(error.contains("other.csv: no column uid") && error.contains("--columns id=ticketId"), "{error}");
}

#[test]
fn a_missing_column_of_dates_is_not_taken_for_missing_ids() {
    let folder = Folder::new();
    let (table, labels) = (folder.file("table.csv", TABLE), folder.file("l.csv", LABELS));
    for key in ["date", "annotator"] {
        let columns = format!("{key}=created").parse().unwrap();
        let error = read_frame(&table, &ReadOptions { columns, ..options(&labels, &[]) }).unwrap_err().to_string();
        assert!(error.contains(&format!("no column created, which {key}=created names")), "{error}");
        assert!(error.contains(&format!("--columns {key}=NAME")) && !error.contains("annotations need"), "{error}");
    }
}

/// One message has the flags for all that is to be decided.
#[test]
fn unknown_labels_and_contradictions_are_reported_together() {
    let folder = Folder::new();
    let table = folder.file("table.csv", TABLE);
    let labels = "annotator,id,label,created_at\n\
                  ann,a,cat,2026-05-04T08:00:00Z\nann,a,dog,2026-05-05T08:00:00Z\nbob,a,unsure,2026-05-06T08:00:00Z\n";
    let labels = folder.file("l.csv", labels);
    let error = join(&table, &labels, &[]).unwrap_err().to_string();
    for part in
        ["--ignore-label \"unsure\"", "1 row has another label", "--keep-label latest --columns date=created_at"]
    {
        assert!(error.contains(part), "{part} in {error}");
    }
    let known = ReadOptions { ignored_labels: vec!["unsure".to_owned()], ..options(&labels, &[]) };
    let error = read_frame(&table, &known).unwrap_err().to_string();
    assert!(error.contains("--columns date=created_at sorts labels by that column of dates"), "{error}");
}

#[test]
fn copied_labels_count_once() {
    let folder = Folder::new();
    let table = folder.file("table.csv", TABLE);
    let labels = folder.file("l.csv", format!("{LABELS}ann,1,cat\nann,1,cat\nann,2,cat\n"));
    let frame = join(&table, &labels, &[]).unwrap();
    assert_eq!(counts(&frame), [[1, 1], [1, 0], [1, 2]]);
    let copied = frame.joined.unwrap().copied.unwrap();
    assert_eq!((copied.rows, copied.row, copied.of_row), (3, 7, 1));
    assert_eq!((copied.id.as_str(), copied.annotator.as_str()), ("1", "ann"));
    // The earliest date of the copies counts.
    let text = "id,label,annotator,at\n1,cat,ann,2024-03-03\n1,dog,bob,2024-03-02\n1,cat,ann,2024-03-01\n";
    let columns = "date=at".parse().unwrap();
    let labels = folder.file("dated.csv", text);
    let first = ReadOptions { columns, first_labels: NonZeroU32::new(1), ..options(&labels, &[]) };
    assert_eq!(counts(&read_frame(&table, &first).unwrap()), [[1, 0]]);
    assert_eq!(join(&table, &folder.file("l.csv", LABELS), &[]).unwrap().joined.unwrap().copied, None);
}

#[test]
fn contradictions_and_unknown_labels_are_all_counted() {
    let folder = Folder::new();
    let table = folder.file("table.csv", TABLE);
    let refusal = |rows: &str| {
        let labels = folder.file("l.csv", format!("{LABELS}{rows}"));
        join(&table, &labels, &[]).unwrap_err().to_string()
    };
    let error = refusal("ann,1,dog\nann,1,cat\nann,2,dog\n");
    assert!(
        error.contains("l.csv: row 7 (line 8), column annotator: \"ann\" labelled id \"1\" already in row 1"),
        "{error}"
    );
    assert!(error.contains("; 1 more row does so (row 9): keep one label per annotator and item"), "{error}");
    let error = refusal("dan,1,cow\ndan,2,caat\ndan,3,cow\n");
    assert!(
        error.contains("row 7 (line 8), column label: label \"cow\" is not among the classes (cat, dog)"),
        "{error}"
    );
    assert!(error.contains("; 3 rows have such labels, also \"caat\" (for cat?): rename them"), "{error}");
    // A file without any usable label is not called empty.
    let labels = folder.file("l.csv", "id,label\n1,x\n1,x\n");
    let error = join(&table, &labels, &[]).unwrap_err().to_string();
    assert!(error.contains("; 2 rows have this label"), "{error}");
}

#[test]
fn numbers_as_labels_are_reported() {
    let folder = Folder::new();
    let table = folder.file("table.csv", TABLE);
    let has_numbers =
        |labels: &str| join(&table, &folder.file("l.csv", labels), &[]).map(|it| it.has_numbers_as_labels);
    assert!(has_numbers("id,label\n1,0\n1,1\n").unwrap());
    assert!(!has_numbers(LABELS).unwrap());
    let error = has_numbers("id,label\n1,1\n1,2\n2,2\n").unwrap_err().to_string();
    assert!(error.contains("subtract 1 from all of them") && !error.contains("--ignore-label"), "{error}");
    // Other numbers are codes of something else, such as an unsure annotator.
    let error = has_numbers("id,label\n1,1\n1,99\n").unwrap_err().to_string();
    assert!(error.contains("whose numbers count from 0") && error.contains("--ignore-label \"99\""), "{error}");
    // In columns of labels, and if numbers are the names of classes.
    let columns = ReadOptions { columns: "labels=label_".parse().unwrap(), ..ReadOptions::default() };
    for (classes, expected) in [(["a", "b"], true), (["0", "1"], false)] {
        let [one, two] = classes;
        let sheet = folder.file("sheet.csv", format!("prob_{one},prob_{two},label_1,label_2\n1,0,0,1\n"));
        assert_eq!(read_frame(&sheet, &columns).unwrap().has_numbers_as_labels, expected, "{classes:?}");
    }
}

#[test]
fn capitals_and_spaces_of_labels_are_overlooked() {
    let folder = Folder::new();
    let table = folder.file("table.csv", TABLE);
    let lines = "{\"id\":1,\"label\":\"Cat \"}\n{\"id\":1,\"label\":\"DOG\"}\n{\"id\":1,\"label\":\"DOG\"}\n{\"id\":2,\"label\":\"cat\"}\n";
    let frame = join(&table, &folder.file("l.jsonl", lines), &[]).unwrap();
    assert_eq!(counts(&frame), [[1, 2], [1, 0]]);
    let matched = frame.joined.unwrap().matched.unwrap();
    assert_eq!(matched.rows, 3);
    assert_eq!(matched.labels, [("Cat ".to_owned(), "cat".to_owned()), ("DOG".to_owned(), "dog".to_owned())]);
    // Classes that differ in case only are not confused.
    let cases = folder.file("cases.csv", "id,prob_us,prob_US\n1,0.5,0.5\n");
    let error = join(&cases, &folder.file("l.csv", "id,label\n1,Us\n"), &[]).unwrap_err().to_string();
    assert!(error.contains("label \"Us\" is not among the classes"), "{error}");
}

#[test]
fn unused_columns_of_times_are_reported() {
    let folder = Folder::new();
    let table = folder.file("table.csv", TABLE);
    let unused = |name: &str, text: &str, columns: &str| {
        let labels = folder.file(name, text);
        let options = ReadOptions { columns: columns.parse().unwrap(), ..options(&labels, &[]) };
        read_frame(&table, &options).unwrap().joined.unwrap().unused_date
    };
    let text = "id,label,seconds,created_at\n1,cat,12,2024-03-01T10:00:00Z\n";
    assert_eq!(unused("l.csv", text, "").as_deref(), Some("created_at"));
    assert_eq!(unused("l.csv", text, "date=created_at"), None);
    assert_eq!(unused("l.csv", text, "date=seconds"), None);
    let line = "{\"id\":1,\"label\":\"cat\",\"when\":\"2024-03-01\"}\n";
    assert_eq!(unused("l.jsonl", line, "").as_deref(), Some("when"));
    assert_eq!(unused("l.csv", "id,label,note\n1,cat,soon\n", ""), None);
    // A date in another form is noticed as well, and refused where it is named.
    let text = "id,label,day\n1,cat,24.09.2026\n";
    assert_eq!(unused("l.csv", text, "").as_deref(), Some("day"));
    let labels = folder.file("l.csv", text);
    let named = ReadOptions { columns: "date=day".parse().unwrap(), ..options(&labels, &[]) };
    let error = read_frame(&table, &named).unwrap_err().to_string();
    for part in ["l.csv", "row 1", "day", "\"24.09.2026\" is not a date", "2024-03-01"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

/// A hundred thousand classes or annotators are not all listed.
#[test]
fn messages_list_few_of_many_names() {
    let folder = Folder::new();
    let table = folder.file("table.csv", TABLE);
    let header = "annotator,id,label\n";
    let strange: String = (0..100_000).map(|i| format!("annotator {i},1,label {i}\n")).collect();
    let error = join(&table, &folder.file("strange.csv", format!("{header}{strange}")), &[]).unwrap_err().to_string();
    assert!(error.contains("row 1 (line 2)") && error.len() < 400, "{error}");
    let many: String = (0..100_000).map(|i| format!("annotator {i},1,cat\n")).collect();
    let labels = folder.file("many.csv", format!("{header}{many}"));
    let without = ReadOptions { without: vec!["anotator 7".to_owned()], ..options(&labels, &[]) };
    let error = read_frame(&table, &without).unwrap_err().to_string();
    assert!(error.contains("did you mean \"annotator 7\"?") && error.len() < 800, "{error}");
}

/// Tables and annotations may come from different programs.
#[test]
fn delimiter_of_annotations_is_found_in_the_header() {
    let folder = Folder::new();
    let tables = [folder.file("commas.csv", TABLE), folder.file("semicolons.csv", TABLE.replace(',', ";"))];
    for (table, delimiter) in tables.iter().zip([None, Some(";".parse().unwrap())]) {
        for separator in [",", ";", "\t", "|"] {
            let labels = folder.file("labels.csv", LABELS.replace(',', separator));
            let frame = read_frame(table, &ReadOptions { delimiter, ..options(&labels, &[]) }).unwrap();
            assert_eq!(counts(&frame), [[1, 1], [1, 0], [1, 2]], "{separator:?}");
        }
    }
}

#[test]
fn lines_are_counted_with_any_line_ends() {
    let rows = ["ann,1,cat", "ann,2,cat", "ann,3,cow"];
    for ends in [
        ["\n"; 3],
        ["\r\n"; 3],
        ["\r\n", "\r\n", "\n"],
        ["\n", "\r\n", "\r\n"],
        ["\r\n", "\n", ""],
        ["\n\n", "\r\n", ""],
    ] {
        let lines: String = rows.iter().zip(ends).map(|(row, end)| format!("{row}{end}")).collect();
        for head in ["annotator,id,label\n", "annotator,id,label\r\n"] {
            let line = format!("row 3 (line {})", if ends[0] == "\n\n" { 5 } else { 4 });
            refused(TABLE, &format!("{head}{lines}"), &[], &[&line, "\"cow\""]);
        }
    }
    let quoted = "annotator,id,label\r\n\"a\r\nb\",1,cat\r\n\r\nann,2,cow\n";
    refused(TABLE, quoted, &[], &["row 2 (line 5)"]);
    // Longer than the read buffer.
    let long = format!("annotator,id,label\r\n{}ann,1,cow\n", "x,1,cat\r\n".replace("x", &"y".repeat(999)));
    refused(TABLE, &long, &[], &["row 2 (line 3)"]);
    let many: String = (0..3582).map(|i| format!("annotator {i},{},cat\r\n", i % 3 + 1)).collect();
    refused(TABLE, &format!("annotator,id,label\r\n{many}ann,1,cow\n"), &[], &["row 3583 (line 3584)"]);
}

#[test]
fn columns_given_twice_or_late_are_refused() {
    refused(TABLE, "id,label,label\n1,cat,dog\n", &[], &["column label is given twice"]);
    refused(TABLE, "id,id,label\n1,1,dog\n", &[], &["column id is given twice"]);
    let folder = Folder::new();
    let table = folder.file("table.csv", TABLE);
    let late = "{\"id\":1,\"label\":\"cat\"}\n{\"id\":1,\"label\":\"dog\",\"annotator\":\"ann\"}\n";
    let error = join(&table, &folder.file("labels.jsonl", late), &[]).unwrap_err().to_string();
    assert!(error.contains("row 2") && error.contains("annotator: is not in the first row"), "{error}");
    let twice = "{\"id\":1,\"label\":\"cat\",\"label\":\"dog\"}\n";
    let error = join(&table, &folder.file("labels.jsonl", twice), &[]).unwrap_err().to_string();
    assert!(error.contains("row 1") && error.contains("label: is given twice"), "{error}");
}

/// The first labels of every item, in the order of the file, in every format.
#[test]
fn only_the_first_labels_count_if_asked_for() {
    let folder = Folder::new();
    let table = folder.file("table.csv", TABLE);
    let read = |path: &Path, annotations: Option<&Path>, first: u32| {
        let first_labels = NonZeroU32::new(first);
        read_frame(
            path,
            &ReadOptions { annotations: annotations.map(Path::to_owned), first_labels, ..ReadOptions::default() },
        )
    };
    let long = folder.file("labels.csv", LABELS);
    assert_eq!(counts(&read(&table, Some(&long), 1).unwrap()), [[1, 0], [1, 0], [0, 1]]);
    // An item with fewer labels keeps them all.
    assert_eq!(counts(&read(&table, Some(&long), 2).unwrap()), [[1, 1], [1, 0], [0, 2]]);
    let lists = "{\"probs\":{\"cat\":0.5,\"dog\":0.5},\"votes\":[9,9],\"labels\":[\"dog\",\"cat\",\"cat\"]}\n\
                 {\"probs\":{\"cat\":1,\"dog\":0},\"votes\":[9,9],\"labels\":[\"cat\"]}\n";
    let nested = folder.file("nested.jsonl", lists);
    assert_eq!(counts(&read(&nested, None, 2).unwrap()), [[1, 1], [1, 0]]);
    assert_eq!(counts(&read(&nested, None, 0).unwrap()), [[9, 9], [9, 9]], "without it, counts come first");
    let listed =
        ListArray::from_iter_primitive::<Int64Type, _, _>([Some([1, 0, 0].map(Some)), Some([0, 0, 1].map(Some))]);
    let half: ArrayRef = Arc::new(Float64Array::from(vec![0.5; 2]));
    let columns = vec![("prob_cat", half.clone()), ("prob_dog", half), ("labels", Arc::new(listed) as ArrayRef)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    parquet(&folder.path("lists.parquet"), &batch, Compression::SNAPPY);
    arrow_file(&folder.path("lists.arrow"), &batch, None);
    for name in ["lists.parquet", "lists.arrow"] {
        assert_eq!(counts(&read(&folder.path(name), None, 2).unwrap()), [[1, 1], [2, 0]], "{name}");
    }
    // Labels beyond the first ones are still checked.
    let bad = folder.file("bad.jsonl", lists.replace("\"cat\",\"cat\"]", "\"cat\",\"cow\"]"));
    assert!(read(&bad, None, 2).unwrap_err().to_string().contains("cow"));
    let counted = folder.file("counted.csv", "prob_cat,prob_dog,votes_cat,votes_dog\n1,0,3,2\n");
    let error = read(&counted, None, 2).unwrap_err().to_string();
    for part in ["counted.csv", "first 2 labels", "counts have no order", "annotations"] {
        assert!(error.contains(part), "{error}");
    }
}

/// Names and order are kept, and all labels of an annotator can be left out.
#[test]
fn annotators_keep_their_names_and_may_be_left_out() {
    let folder = Folder::new();
    let table = folder.file("table.csv", TABLE);
    let labels = folder.file("labels.csv", LABELS);
    let read = |without: &[&str], first: u32| {
        let without = without.iter().map(|&name| name.to_owned()).collect();
        let first_labels = NonZeroU32::new(first);
        let options =
            ReadOptions { annotations: Some(labels.clone()), first_labels, without, ..ReadOptions::default() };
        read_frame(&table, &options)
    };
    let frame = read(&[], 0).unwrap();
    let annotations = frame.annotations.as_ref().unwrap();
    assert_eq!(annotations.names(), ["ann", "bob", "cy"]);
    let given = |row: usize| annotations.labels(row).iter().map(|l| (l.annotator, l.class)).collect::<Vec<_>>();
    assert_eq!(
        (0..3).map(given).collect::<Vec<_>>(),
        [vec![(0, 0), (1, 1)], vec![(0, 0)], vec![(0, 1), (1, 1), (2, 0)]]
    );
    assert_eq!((frame.rows_without_labels, annotations.rows()), (0, 3));

    // Row 2 has only labels of ann.
    let frame = read(&["ann"], 0).unwrap();
    assert_eq!((counts(&frame), frame.rows.clone()), (vec![vec![0, 1], vec![1, 1]], vec![1, 3]));
    let annotations = frame.annotations.as_ref().unwrap();
    assert_eq!((frame.rows_without_labels, annotations.rows()), (1, 2));
    assert_eq!(annotations.names(), ["bob", "cy"]);
    assert_eq!(annotations.labels(1).iter().map(|l| (l.annotator, l.class)).collect::<Vec<_>>(), [(0, 1), (1, 0)]);
    assert_eq!(frame.ids.as_deref(), Some(&["1".to_owned(), "3".to_owned()][..]));
    // The first labels are those given first, including those of annotators left out.
    assert_eq!(counts(&read(&["bob"], 2).unwrap()), [[1, 0], [1, 0], [0, 1]]);
    for (without, part) in [
        (vec!["dan"], "no annotator is called \"dan\": there are ann, bob, cy"),
        (vec!["ann", "bob", "cy"], "all annotators are left out"),
    ] {
        let error = read(&without, 0).unwrap_err().to_string();
        assert!(error.contains("labels.csv") && error.contains(part), "{error}");
    }
    // A file of new labels alone need not have labels of all those who are left out.
    let options = ReadOptions {
        annotations: Some(folder.path("labels.csv")),
        without: vec!["ann".into(), "dan".into()],
        allow_absent_without: true,
        ..ReadOptions::default()
    };
    let frame = read_frame(&table, &options).unwrap();
    assert_eq!(frame.annotations.as_ref().unwrap().names(), ["bob", "cy"]);
    assert_eq!(frame.joined.unwrap().absent_without, ["dan"]);
    let unnamed = folder.file("unnamed.csv", "id,label\n1,cat\n2,cat\n3,dog\n");
    let options = ReadOptions { annotations: Some(unnamed), without: vec!["ann".into()], ..ReadOptions::default() };
    let error = read_frame(&table, &options).unwrap_err().to_string();
    assert!(error.contains("unnamed.csv: no column annotator"), "{error}");
    let only = folder.file("only.csv", "annotator,id,label\nann,1,cat\nann,2,cat\nann,3,dog\nbob,4,cat\n");
    let more = folder.file("more.csv", format!("{TABLE}4,1,0,c\n"));
    let options = ReadOptions {
        annotations: Some(only),
        without: vec!["ann".into()],
        filters: vec!["split=a".parse().unwrap()],
        ..ReadOptions::default()
    };
    let error = read_frame(&more, &options).unwrap_err().to_string();
    assert!(error.contains("no row has a label left"), "{error}");
    // All rows of some batches are dropped.
    let options = ReadOptions { filters: Vec::new(), batch_rows: 1, ..options };
    let frames: Vec<Frame> = pointsman_table::batches(&more, &options).unwrap().map(Result::unwrap).collect();
    assert_eq!(frames.iter().map(|frame| frame.rows.clone()).collect::<Vec<_>>(), [[4]]);
}

/// Annotators who are undecided give a label that is no class, or none.
#[test]
fn labels_that_are_ignored_are_left_out_and_counted() {
    let folder = Folder::new();
    let table = folder.file("table.csv", TABLE);
    let labels = folder.file("labels.csv", format!("{LABELS}dan,1,Unsure \ndan,2,\neve,2,\neve,3,unsure\n"));
    let error = join(&table, &labels, &[]).unwrap_err().to_string();
    assert!(
        error.contains("row 7 (line 8), column label: label \"Unsure") && error.contains("; 4 rows have such labels"),
        "{error}"
    );
    assert!(error.contains("--ignore-label \"Unsure\" --ignore-label \"\""), "{error}");
    let ignoring = |ignored: &[&str]| {
        let ignored_labels = ignored.iter().map(|label| (*label).to_owned()).collect();
        read_frame(&table, &ReadOptions { ignored_labels, ..options(&labels, &[]) })
    };
    let error = ignoring(&["unsure"]).unwrap_err().to_string();
    assert!(error.contains("row 8 (line 9), column label: no label; 2 rows have none"), "{error}");
    let frame = ignoring(&["unsure", ""]).unwrap();
    assert_eq!(counts(&frame), [[1, 1], [1, 0], [1, 2]]);
    assert_eq!(frame.joined.unwrap().ignored, 4);
    assert!(ignoring(&["Cat"]).unwrap_err().to_string().contains("is the name of a class"));
}

/// An annotator who changed a label has one label: the latest or the first, by date or in the order of the file.
#[test]
fn one_of_several_labels_of_an_annotator_is_kept_if_asked_for() {
    let folder = Folder::new();
    let table = folder.file("table.csv", TABLE);
    let labels = "id,label,annotator,at\n1,cat,ann,2024-01-03\n1,dog,bob,2024-01-01\n1,dog,ann,2024-01-01\n\
                  2,cat,ann,2024-01-01\n3,dog,ann,2024-01-01\n3,cat,ann,2024-01-02\n";
    let labels = folder.file("labels.csv", labels);
    let error = join(&table, &labels, &[]).unwrap_err().to_string();
    assert!(error.contains("--keep-label latest"), "{error}");
    let kept = |keep: &str, columns: &str| {
        let options = ReadOptions {
            keep_label: Some(keep.parse().unwrap()),
            columns: columns.parse().unwrap(),
            ..options(&labels, &[])
        };
        let frame = read_frame(&table, &options).unwrap();
        assert_eq!(frame.joined.as_ref().unwrap().superseded, 2);
        counts(&frame)
    };
    assert_eq!(kept("latest", "date=at"), [[1, 1], [1, 0], [1, 0]]);
    assert_eq!(kept("first", "date=at"), [[0, 2], [1, 0], [0, 1]]);
    assert_eq!(kept("latest", ""), [[0, 2], [1, 0], [1, 0]]);
    assert_eq!(kept("first", ""), [[1, 1], [1, 0], [0, 1]]);
    assert!("last".parse::<pointsman_table::KeepLabel>().is_err());
}

/// A label that an annotator repeats has its latest date if the latest label is kept, and its first date if the first one is.
#[test]
fn repeated_labels_are_kept_by_the_date_that_decides() {
    let folder = Folder::new();
    let table = folder.file("table.csv", TABLE);
    let rows = ["1,cat,ann,2024-01-01\n", "1,cat,ann,2024-01-03\n", "1,dog,ann,2024-01-02\n"];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let labels =
            folder.file("labels.csv", "id,label,annotator,at\n".to_owned() + &order.map(|row| rows[row]).concat());
        for keep in ["latest", "first"] {
            let options = ReadOptions {
                keep_label: Some(keep.parse().unwrap()),
                columns: "date=at".parse().unwrap(),
                ..options(&labels, &[])
            };
            assert_eq!(counts(&read_frame(&table, &options).unwrap()), [[1, 0]], "{keep} of rows {order:?}");
        }
    }
}

/// Without annotators nobody can have labelled an item twice.
#[test]
fn keeping_a_label_per_annotator_needs_annotators() {
    let folder = Folder::new();
    let table = folder.file("table.csv", TABLE);
    let refusal = |header: &str| {
        let labels = folder.file("labels.csv", format!("id,label{header}\n1,cat,ann\n1,dog,ann\n"));
        let options = ReadOptions { keep_label: Some("latest".parse().unwrap()), ..options(&labels, &[]) };
        read_frame(&table, &options).unwrap_err().to_string()
    };
    for (header, hint) in [(",remark", "or leave --keep-label out"), (",worker", "--columns annotator=worker")] {
        let error = refusal(header);
        assert!(error.contains("no column annotator") && error.contains("--keep-label latest"), "{error}");
        assert!(error.contains("keep_label='latest'") && error.contains(hint), "{error}");
    }
}

#[test]
fn ids_that_differ_in_capitals_only_are_found() {
    let folder = Folder::new();
    let table = folder.file("table.csv", "id,prob_cat,prob_dog\nA1,0.5,0.5\nA2,1,0\nA3,0,1\n");
    let labels = folder.file("labels.csv", "id,label\nA1,cat\na2,cat\nother,dog\n");
    let joined = join(&table, &labels, &[]).unwrap().joined.unwrap();
    let alike = joined.differ_in_capitals.unwrap();
    assert_eq!((alike.rows, alike.labels), (1, vec![("a2".to_owned(), "A2".to_owned())]));
    assert_eq!(joined.not_in_table.count, 2);
}
