//! Files with errors: every message names the file, the row, the column and the value.

use std::path::Path;
use std::sync::Arc;

use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, Float64Array, Int64Array, ListArray, RecordBatch, StringArray};
use parquet::basic::Compression;
use pointsman_table::{Need, ReadOptions, parse_task, read, read_frame};

use crate::support::{Entry, Folder, array, arrow_file, crc, deflated, parquet, unicode, zip, zip_entries};

/// Asserts that reading fails with one line that names the file and has all the given parts.
#[track_caller]
fn refused(path: &Path, parts: &[&str]) {
    let error = read(path).expect_err("the file was read").to_string();
    said(path, &error, parts);
}

#[track_caller]
fn said(path: &Path, error: &str, parts: &[&str]) {
    assert!(error.starts_with(&format!("{}: ", path.display())), "{error}");
    assert!(!error.contains(char::is_control), "{error:?}");
    for part in parts {
        assert!(error.contains(part), "{error:?} lacks {part:?}");
    }
}

#[track_caller]
fn csv(text: impl AsRef<[u8]>, parts: &[&str]) {
    let folder = Folder::new();
    refused(&folder.file("table.csv", text), parts);
}

#[track_caller]
fn jsonl(text: impl AsRef<[u8]>, parts: &[&str]) {
    let folder = Folder::new();
    refused(&folder.file("table.jsonl", text), parts);
}

#[track_caller]
fn npz(arrays: &[(String, Vec<u8>)], parts: &[&str]) {
    let folder = Folder::new();
    refused(&folder.file("stored.npz", zip(arrays)), parts);
    refused(&folder.file("deflated.npz", deflated(arrays)), parts);
}

/// The same columns as Parquet and as Arrow.
#[track_caller]
fn columns(columns: Vec<(&str, ArrayRef)>, parts: &[&str]) {
    let folder = Folder::new();
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let path = folder.path("table.parquet");
    parquet(&path, &batch, Compression::SNAPPY);
    refused(&path, parts);
    let path = folder.path("table.arrow");
    arrow_file(&path, &batch, None);
    refused(&path, parts);
}

fn reals(values: &[f64]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

fn doubles(name: &str, shape: &str, values: &[f64]) -> (String, Vec<u8>) {
    array(name, "<f8", false, shape, values.iter().flat_map(|x| x.to_le_bytes()).collect())
}

#[test]
fn missing_files_are_refused() {
    let folder = Folder::new();
    refused(&folder.path("missing.csv"), &["no such file"]);
    for format in ["csv", "tsv", "jsonl", "parquet", "arrow", "npz"] {
        let path = folder.path(&format!("folder.{format}"));
        std::fs::create_dir(&path).unwrap();
        refused(&path, &["is a directory"]);
        refused(&folder.file(&format!("empty.{format}"), ""), &["is empty"]);
        refused(&folder.file(&format!("cut.{format}"), [0x1f, 0x8b, 8, 0]), &["gzip", "damaged or incomplete"]);
    }
}

#[test]
fn files_without_rows_are_refused() {
    csv("prob_a,prob_b\n", &["no rows"]);
    jsonl("\n\n", &["no rows"]);
    columns(vec![("prob_a", reals(&[])), ("prob_b", reals(&[]))], &["no rows"]);
    npz(&[doubles("probs", "(0, 2)", &[])], &["no rows"]);
}

#[test]
fn missing_repeated_and_unknown_columns_are_refused() {
    csv("p_a,p_b\n0.5,0.5\n", &["no predictions", "prob_", "columns found: p_a, p_b", "--columns probs=p_,"]);
    csv("p_a,p_b\n5,7\n", &["no predictions", "--columns probs=NAME"]);
    csv("p_a;p_b\n0,5;0,5\n", &["no predictions", "commas, or name semicolons as the delimiter"]);
    csv("prob_a;prob_b\n0,5;0,5\n", &["one class", "commas, or name semicolons as the delimiter"]);
    csv("prob_a,x_y\n1,2\n", &["one class only (a)"]);
    csv("prob_a,prob_b,prob_a\n1,0,0\n", &["column prob_a is given twice"]);
    csv("prob_a,prob_b,votes_a\n1,0,1\n", &["no column votes_b", "a, b"]);
    csv("prob_a,prob_b,votes_a,votes_b,votes_c\n1,0,1,0,0\n", &["column votes_c", "\"c\" is not among the classes"]);
    csv("prob_a,prob_b,true_a\n1,0,1\n", &["no column true_b"]);
    csv("prob_a,prob_b,oracle_m_a\n1,0,1\n", &["no column oracle_m_b"]);
    csv("prob_a,prob_b,id,id\n1,0,1,1\n", &["column id is given twice"]);
    jsonl("{\"p\": 1}", &["no predictions", "columns found: p"]);
    jsonl("{\"probs\":[1,0],\"prob_a\":1,\"prob_b\":0}", &["prob_a and probs", "keep one"]);
    jsonl("{\"probs\":{\"a\":1,\"b\":0},\"votes\":{\"a\":1,\"b\":0,\"c\":1}}", &["votes.c", "not among the classes"]);
    jsonl("{\"probs\":[1,0],\"votes\":[1,0,0]}", &["column votes", "3 values per row", "2 names"]);
    jsonl("{\"probs\":[1,0],\"votes\":{\"cat\":1,\"dog\":0}}", &["votes.cat", "not among the classes"]);
    let doubled = "{\"id\":1,\"probs\":[1,0],\"votes\":[5,0]}\n\
                   {\"votes\":[5,0],\"probs\":[1,0],\"votes\":[0,5],\"id\":2}\n";
    jsonl(doubled, &["row 2", "votes", "is given twice"]);
    columns(vec![("score", reals(&[1.0]))], &["no predictions", "columns found: score"]);
    columns(vec![("prob_a", reals(&[1.0]))], &["one class only"]);
    npz(&[doubles("p", "(1, 2)", &[1.0, 0.0])], &["no predictions", "columns found: p"]);
    npz(&[doubles("probs", "(1, 1)", &[1.0])], &["one class only"]);
    npz(
        &[doubles("probs", "(1, 2)", &[1.0, 0.0]), doubles("votes", "(1, 3)", &[1.0; 3])],
        &["column votes", "3 values"],
    );
    npz(
        &[doubles("probs", "(1, 2)", &[1.0, 0.0]), doubles("votes", "(2, 2)", &[1.0; 4])],
        &["array votes has 2 rows, but probs has 1"],
    );
    npz(
        &[doubles("probs", "(1, 2)", &[1.0, 0.0]), unicode("classes", &["a".into(), "b".into(), "c".into()])],
        &["column probs: 2 values per row", "3 names"],
    );
}

#[test]
fn needed_columns_must_be_there() {
    let folder = Folder::new();
    let path = folder.file("table.csv", "prob_a,prob_b,split\n1,0,0\n");
    let error = |need| read_frame(&path, &ReadOptions { need, ..ReadOptions::default() }).unwrap_err().to_string();
    said(
        &path,
        &error(Need::Votes),
        &[
            "no votes",
            "votes_<class>",
            "or --annotations FILE (in Python annotations=FILE)",
            "columns found: prob_a, prob_b, split",
        ],
    );
    said(&path, &error(Need::VotesOrTruth), &["no votes and no truth", "true_<class>"]);
    // Deciding needs neither, so their errors do not matter.
    let path = folder.file("table.csv", "prob_a,prob_b,votes_a,true_x\n1,0,many,7\n");
    let options = ReadOptions { need: Need::Predictions, ..ReadOptions::default() };
    assert!(!read_frame(&path, &options).unwrap().table.has_votes());
}

#[test]
fn refusal_of_a_table_without_votes_says_what_its_columns_may_be() {
    let folder = Folder::new();
    let refused = |name: &str, text: &str, columns: &str| {
        let options = ReadOptions { need: Need::Votes, columns: columns.parse().unwrap(), ..ReadOptions::default() };
        read_frame(folder.file(name, text), &options).unwrap_err().to_string()
    };
    let one_label = ["holds one class name per row", "--annotations FILE", "a list in JSONL"];
    for (name, text, column) in [
        ("a.csv", "prob_a,prob_b,llm_a,llm_b,label\n1,0,0.5,0.5,b\n", "label"),
        ("a.csv", "prob_a,prob_b,labels\n1,0,a\n", "labels"),
        ("a.jsonl", "{\"probs\":{\"a\":1,\"b\":0},\"label\":\"a\"}\n", "label"),
    ] {
        let error = refused(name, text, "");
        assert!(one_label.iter().all(|part| error.contains(part)) && !error.contains("votes=llm_"), "{error}");
        // What the message names works.
        assert!(error.contains(&format!("--columns labels={column},")), "{error}");
        let columns = format!("labels={column}").parse().unwrap();
        let options = ReadOptions { need: Need::Votes, columns, ..ReadOptions::default() };
        let read = read_frame(folder.file(name, text), &options).unwrap();
        assert_eq!(read.table.votes(0).map(|votes| votes.k()), Some(1), "{name}");
    }
    let error = refused("a.csv", "prob_a,prob_b,answer\n1,0,a;b\n", "labels=answer");
    assert!(error.contains("holds text and not a list: give labels as annotations"), "{error}");
    // A name with which others begin is meant as their prefix.
    let error = refused("a.csv", "prob_a,prob_b,label,label_1,label_2\n1,0,a,a,b\n", "labels=label");
    assert!(error.contains("no votes") && error.contains("label_1, label_2"), "{error}");
    assert!(error.contains("holds one class name per row: give labels as annotations"), "{error}");
    // Fractions are not votes, and a column of other values has no labels.
    let error = refused("a.csv", "prob_a,prob_b,llm_a,llm_b,label\n1,0,0.5,0.5,7\n", "");
    assert!(!error.contains("votes=llm_") && !error.contains("holds one class"), "{error}");
    let error = refused("a.csv", "prob_a,prob_b,n_a,n_b\n1,0,3,2\n", "");
    assert!(error.contains("--columns votes=n_"), "{error}");
}

#[test]
fn prefixes_that_may_be_meant_are_named() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "id,score_a,score_b,f_length,f_age,votes_a,votes_b\n1,1,0,3,4,1,1\n");
    let refused = |columns: &str| {
        let features = Some(vec!["length".to_owned(), "age".to_owned()]);
        let options = ReadOptions { features, columns: columns.parse().unwrap(), ..ReadOptions::default() };
        read_frame(&path, &options).unwrap_err().to_string()
    };
    let error = refused("probs=score_");
    assert!(error.contains("no column x_length") && error.contains("give --columns features=f_"), "{error}");
    let error = refused("probs=scores_");
    assert!(error.contains("no predictions") && error.contains("--columns probs=score_,"), "{error}");
}

#[test]
fn csv_values_that_are_not_numbers_are_refused() {
    csv(
        "prob_a,prob_b\n1,0\n\"0,3\",0.7\n",
        &["row 2 (line 3), column prob_a: \"0,3\" is not a number: use a decimal point"],
    );
    csv(
        "prob_a,prob_b b\n1,0\n1,\n",
        &[
            "row 2 (line 3), column prob_b b: no value: a number is needed; --where 'prob_b b!=' keeps the rows that have one",
        ],
    );
    csv("prob_a,prob_b\n1,0\n\n\nx y,1\n", &["row 2 (line 5), column prob_a: \"x y\" is not a number"]);
    for end in ["\n", "\r\n"] {
        let text = ["prob_a,prob_b,id", "", "1,0,\"two", "lines\"", "", "1,0,x", "1,zero,y"].join(end);
        csv(&text, &["row 3 (line 7), column prob_b: \"zero\""]);
        csv(text + end, &["row 3 (line 7), column prob_b: \"zero\""]);
    }
    csv("prob_a,prob_b\n1,\n", &["row 1 (line 2), column prob_b: no value"]);
    csv("prob_a,prob_b\n1,NaN\n", &["row 1 (line 2), column prob_b: NaN is not a probability"]);
    csv("prob_a,prob_b\n1,inf\n", &["row 1 (line 2), column prob_b: inf is not a probability"]);
    csv("prob_a,prob_b\n1.5,-0.5\n", &["row 1 (line 2), column prob_b: -0.5"]);
    csv("prob_a,prob_b\n1.5,0.5\n", &["row 1 (line 2), column prob_*: the probabilities sum to 2.0"]);
    csv("prob_a,prob_b\n1,-0.5\n", &["row 1 (line 2), column prob_b: -0.5"]);
    csv("prob_a,prob_b\n1,0\n0.5,0.2\n", &["row 2 (line 3), column prob_*: the probabilities sum to 0.7"]);
    csv("prob_a,prob_b,x_f\n1,0,none\n", &["row 1 (line 2), column x_f: \"none\" is not a number"]);
    csv("prob_a,prob_b,x_f\n1,0,inf\n", &["row 1 (line 2), column x_f: inf is not a feature value"]);
    csv("prob_a,prob_b,weight\n1,0,0\n", &["row 1 (line 2), column weight: 0 is not a weight"]);
    csv("prob_a,prob_b,true_a,true_b\n1,0,0.5,0.1\n", &["row 1 (line 2), column true_*: the probabilities sum to 0.6"]);
    csv("prob_a,prob_b,oracle_m_a,oracle_m_b\n1,0,1,-1\n", &["row 1 (line 2), column oracle_m_b: -1"]);
    csv("prob_a,prob_b,id\n1,0,\n", &["row 1 (line 2), column id: no id"]);
}

#[test]
fn json_values_that_are_not_numbers_are_refused() {
    let good = "{\"probs\":{\"a\":1,\"b\":0}}\n";
    jsonl(
        format!("{good}{{\"probs\":{{\"a\":\"0.5\",\"b\":0.5}}}}"),
        &["row 2 (line 2), column probs.a: \"0.5\" is text"],
    );
    jsonl(format!("{good}{{\"probs\":{{\"a\":null,\"b\":0.5}}}}"), &["row 2 (line 2), column probs.a: null"]);
    jsonl(format!("{good}{{\"probs\":{{\"a\":0.7,\"b\":0.7}}}}"), &["row 2 (line 2), column probs: the prob", "1.4"]);
    jsonl(format!("{good}{{\"probs\":{{\"a\":1}}}}"), &["row 2 (line 2), column probs.b: is missing"]);
    jsonl(format!("{good}{{\"probs\":{{\"a\":1,\"b\":0,\"c\":0}}}}"), &["row 2 (line 2), column probs.c"]);
    jsonl(format!("{good}{{\"probs\":[1,0]}}"), &["row 2 (line 2), column probs: a map is needed", "a list of 2"]);
    jsonl(format!("{good}\n\n{{}}"), &["row 2 (line 4), column probs: is missing"]);
    jsonl(
        format!("{good}{{\"probs\":{{\"a\":1,\"b\":0}},\"votes\":[1,0]}}"),
        &["row 2 (line 2), column votes: is not in the first row"],
    );
    jsonl("{\"probs\":[1,0]}\n{\"probs\":[1,0,0]}", &["row 2 (line 2), column probs: 3 values, but 2"]);
    jsonl("{\"probs\":[1,0]}\n{\"probs\":[1,-1]}", &["row 2 (line 2), column probs[1]: -1"]);
    jsonl("{\"prob_a\":1,\"prob_b\":0}\n{\"prob_a\":1}", &["row 2 (line 2), column prob_b: is missing"]);
    jsonl("{\"probs\":[1,0]}\n[1,0]", &["row 2 (line 2): an object is needed", "a list of 2"]);
    jsonl("{\"probs\":[1,0]}\n{\"probs\":[1,0}", &["row 2 (line 2): is not JSON"]);
    jsonl("{\"probs\":[1,0]}\n{\"probé\":[1,0\n", &["row 2 (line 2): is not JSON: EOF", "at character 13 of"]);
    jsonl("{\"probs\":[1,0]}\n{\"probs\":[1,1e999]}", &["row 2 (line 2): is not JSON", "out of range"]);
    jsonl("{\"probs\":[1,0]}\n{\"probs\":[1,NaN]}", &["row 2 (line 2): is not JSON"]);
    jsonl("{\"probs\":[1,0]}\n\"text\"", &["row 2 (line 2): an object is needed"]);
    jsonl(format!("{{\"probs\":{}", "[".repeat(100_000)), &["row 1 (line 1): is not JSON", "recursion"]);
    jsonl("{\"probs\":[1,0],\"probs\":[0,1]}", &["column probs is given twice"]);
    jsonl("{\"probs\":[1,0]}\n{\"probs\":[1,0],\"probs\":[0,1]}", &["row 2 (line 2), column probs: is given twice"]);
    jsonl("{\"probs\":{\"a\":1,\"a\":0}}", &["column probs.a is given twice"]);
    jsonl(b"{\"probs\":[1,0],\"id\":\"\xff\"}", &["row 1 (line 1): is not JSON"]);
}

#[test]
fn arrow_values_that_are_not_numbers_are_refused() {
    let text: ArrayRef = Arc::new(StringArray::from(vec!["0.5", "x"]));
    columns(
        vec![("prob_a", text), ("prob_b", reals(&[0.5, 0.5]))],
        &["row 1, column prob_a: \"0.5\" is not a number", "Utf8"],
    );
    let holes: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), None]));
    columns(vec![("prob_a", holes), ("prob_b", reals(&[0.0, 0.5]))], &["row 2, column prob_a: null"]);
    columns(vec![("prob_a", reals(&[1.0, f64::NAN])), ("prob_b", reals(&[0.0, 0.5]))], &["row 2, column prob_a: NaN"]);
    let list = |rows: Vec<Option<Vec<Option<f64>>>>| -> ArrayRef {
        Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(rows))
    };
    let row = || Some(vec![Some(1.0), Some(0.0)]);
    columns(vec![("probs", list(vec![row(), None]))], &["row 2, column probs: null"]);
    columns(vec![("probs", list(vec![row(), Some(vec![Some(1.0)])]))], &["row 2, column probs: 1 values, but 2"]);
    columns(vec![("probs", list(vec![row(), Some(vec![Some(1.0), None])]))], &["row 2, column probs[1]: null"]);
    columns(vec![("probs", list(vec![row(), Some(vec![Some(1.0), Some(-1.0)])]))], &["row 2, column probs[1]: -1"]);
    let probs = || vec![("prob_a", reals(&[1.0, 1.0])), ("prob_b", reals(&[0.0, 0.0]))];
    let with = |name: &'static str, array: ArrayRef| {
        let mut all = probs();
        all.push((name, array));
        all.push(if name == "votes_a" { ("votes_b", reals(&[0.0, 0.0])) } else { ("other", reals(&[0.0, 0.0])) });
        all
    };
    columns(with("votes_a", Arc::new(Int64Array::from(vec![1, -3]))), &["row 2, column votes_a: -3 votes"]);
    columns(
        with("votes_a", Arc::new(Int64Array::from(vec![1, 1 << 32]))),
        &["row 2, column votes_a: 4294967296 votes"],
    );
    columns(with("votes_a", reals(&[1.0, 2.5])), &["row 2, column votes_a: 2.5 votes"]);
    columns(with("votes_a", reals(&[1.0, 0.0])), &["row 2, column votes_*: no votes"]);
    columns(with("weight", reals(&[1.0, -1.0])), &["row 2, column weight: -1"]);
    columns(with("id", Arc::new(StringArray::from(vec![Some("x"), None]))), &["row 2, column id: no id"]);
}

#[test]
fn numpy_values_that_are_not_numbers_are_refused() {
    let probs = || doubles("probs", "(2, 2)", &[1.0, 0.0, 0.5, 0.5]);
    npz(&[doubles("probs", "(2, 2)", &[1.0, 0.0, 0.5, f64::NAN])], &["row 2, column probs[1, 1]: NaN"]);
    npz(
        &[doubles("probs", "(2, 2)", &[1.0, 0.0, 0.5, 0.1])],
        &["row 2, column probs[1]: the probabilities sum to 0.6"],
    );
    npz(&[probs(), doubles("votes", "(2, 2)", &[1.0, 0.0, 0.5, 1.0])], &["row 2, column votes[1, 0]: 0.5 votes"]);
    npz(
        &[probs(), array("votes", "|i1", false, "(2, 2)", vec![1, 0, 255, 1])],
        &["row 2, column votes[1, 0]: -1 votes"],
    );
    npz(&[probs(), doubles("votes", "(2, 2)", &[1.0, 0.0, 0.0, 0.0])], &["row 2, column votes[1]: no votes"]);
    npz(&[probs(), array("labels", "|i1", false, "(2, 1)", vec![1, 2])], &["row 2, column labels[1, 0]: label \"2\""]);
    npz(&[array("probs", "<U1", false, "(1, 2)", vec![0; 8])], &["row 1, column probs[0, 0]: \"\" is not a number"]);
    npz(&[doubles("probs", "(1, 1, 2)", &[1.0, 0.0])], &["no predictions"]);
}

#[test]
fn votes_that_are_not_counts_are_refused() {
    let row = |votes: &str| format!("prob_a,prob_b,votes_a,votes_b\n1,0,3,1\n1,0,{votes}\n");
    csv(row("2.5,1"), &["row 2 (line 3), column votes_a: 2.5 votes: give whole counts"]);
    csv(row("1,-1"), &["row 2 (line 3), column votes_b: -1 votes"]);
    csv(row("0,0"), &["row 2 (line 3), column votes_*: no votes"]);
    csv(row("4294967296,0"), &["row 2 (line 3), column votes_a: 4294967296 votes"]);
    csv(row("4294967295,1"), &["row 2 (line 3), column votes_*: 4294967296 votes on one row"]);
    csv(row("many,1"), &["row 2 (line 3), column votes_a: \"many\" is not a number"]);
    csv(row("nan,1"), &["row 2 (line 3), column votes_a: NaN is not a number of votes"]);
    csv(row(",1"), &["row 2 (line 3), column votes_a: no value"]);
    let line = |rest: &str| format!("{{\"probs\":{{\"a\":1,\"b\":0}},{rest}}}\n");
    jsonl(
        line("\"labels\":[\"a\",\"z\"]"),
        &["row 1 (line 1), column labels: label \"z\" is not among the classes (a, b)"],
    );
    jsonl(line("\"labels\":[2]"), &["row 1 (line 1), column labels: label 2 is not"]);
    jsonl(line("\"labels\":[null]"), &["row 1 (line 1), column labels: label null is not"]);
    jsonl(line("\"labels\":[]"), &["row 1 (line 1), column labels: no votes"]);
    jsonl(line("\"votes\":[1,1.5]"), &["row 1 (line 1), column votes[1]: 1.5 votes"]);
    jsonl(line("\"votes\":{\"b\":-1,\"a\":5}"), &["row 1 (line 1), column votes.b: -1 votes"]);
    jsonl(line("\"votes\":{\"b\":0,\"a\":0}"), &["row 1 (line 1), column votes: no votes"]);
    jsonl(
        line("\"votes\":{\"b\":0,\"a\":99999999999999999999}"),
        &["row 1 (line 1), column votes.a: 100000000000000000000"],
    );
}

#[test]
fn text_that_is_not_a_table_is_refused() {
    csv("prob_a,prob_b\n1,0\n1\n", &["row 2 (line 3): 1 values, but the header has 2 columns"]);
    csv("prob_a,prob_b\n1,0,3\n", &["row 1 (line 2): 3 values"]);
    csv(b"prob_a,prob_b\n1,\xff\xfe\n", &["row 1 (line 2), column prob_b", "not UTF-8"]);
    csv(b"prob_a,prob_b,id\n1,0,\xff\xfe\n", &["row 1 (line 2), column id", "not UTF-8"]);
    csv(b"prob_\xff,prob_b\n1,0\n", &["header", "not UTF-8"]);
}

#[test]
fn unclosed_quote_is_reported_at_the_row_that_opens_it() {
    csv("prob_a,prob_b\n\"1,0\n1,0\n", &["row 1 (line 2), column prob_a", "the quote before \"1,0\" is never closed"]);
    csv("prob_a,prob_b,id\n1,0,x\n1,0,\"y\n1,0,z", &["row 2 (line 3), column id", "\"y\" is never closed"]);
    csv("prob_a,prob_b,id\r\n1,0,x\r\n1,0,\"y\r\n", &["row 2 (line 3), column id", "never closed"]);
    csv("\"prob_a,prob_b\n1,0\n", &["header", "never closed"]);
    // A quote may hold line ends, also at the end of the file.
    let folder = Folder::new();
    let table = read(folder.file("quoted.csv", "prob_a,prob_b,id\n1,0,\"x\n\"\n1,0,\"y\n\"")).unwrap();
    assert_eq!(table.rows(), 2);
}

#[test]
fn quote_that_swallows_rows_up_to_a_later_quote_is_refused() {
    let place = ["row 2 (line 3), column text", "the quote before \"two, 1,0\" is closed only on line 5"];
    for later in ["\"four\"", "\"\"\"four\"\"\"", "\"four, five\""] {
        csv(&*format!("text,prob_a,prob_b\none,1,0\n\"two, 1,0\nthree,1,0\n{later},1,0\n"), &place);
    }
    // The same number of values, and the quote closes where a value may end: the lines are rows.
    let rows = "text,prob_a,prob_b,id\none,1,0,a\n\"two,1,0,b\nthree,1,0,c\n27\",0.5,0.5,d\n";
    csv(rows, &["row 2 (line 3), column text", "\"two,1,0,b\" is closed only on line 5"]);
    csv("\"prob_a,prob_b\n1,0\n\"x\",0\n", &["header", "closed only on line 3"]);
    // A record longer than the reader's buffer.
    let many = format!("text,prob_a,prob_b\n\"one,1,0\n{}\"two\",1,0\n", "x,1,0\n".repeat(5_000));
    csv(many, &["row 1 (line 2), column text", "\"one,1,0\" is closed only on line 5003"]);
}

#[test]
fn quoted_text_of_several_lines_is_read() {
    let texts = [
        "a, b, c\nd, e",
        "\n",
        "id,prob_a,prob_b\nx,1,0",
        "said \"\"no\"\"\n\"\"yes\"\", again",
        "\"\"\n\"\"",
        "a\r\nb\r\n",
        "1,0\n1,0",
    ];
    let long = "line, of text\n".repeat(5_000);
    let folder = Folder::new();
    for text in texts.into_iter().chain([&*long]) {
        for (name, rows) in [
            ("first.csv", format!("\u{feff}text,prob_a,prob_b\n\"{text}\",1,0\n\n\"{text}\",1,0\nx,1,0\n")),
            ("last.csv", format!("prob_a,prob_b,text\r\n1,0,\"{text}\"\r\n1,0,\"{text}\"\r\n1,0,x")),
        ] {
            let table = read(folder.file(name, rows)).unwrap_or_else(|error| panic!("{text:?} in {name}: {error}"));
            assert_eq!(table.rows(), 3, "{text:?} in {name}");
        }
    }
}

#[test]
fn text_in_another_encoding_is_refused() {
    for (mark, big) in [([0xff, 0xfe], false), ([0xfe, 0xff], true)] {
        let units = "prob_a,prob_b\n1,0\n".encode_utf16();
        let text = units.flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() });
        csv(mark.into_iter().chain(text).collect::<Vec<u8>>(), &["UTF-16", "save it as UTF-8"]);
    }
}

#[test]
fn unclosed_quote_does_not_fill_the_memory() {
    let mut text = b"prob_a,prob_b\n1,0\n\"1,0\n".to_vec();
    text.resize(70 << 20, b'0');
    csv(text, &["after row 1", "longer than 64 MB", "quote"]);
}

#[test]
fn control_characters_of_names_are_escaped() {
    csv("prob_a,\"prob_\u{1b}[2J\nerror: b\"\n1,x\n", &["column prob_\\u{1b}[2J\\nerror: b: \"x\" is not"]);
    csv("prob_a,\"prob_\r\"\n0.4,0.4\n", &["one class only"]);
    jsonl("{\"probs\":{\"a\":1,\"\\u0007\":-2}}", &["column probs.\\u{7}: -2"]);
    let error = parse_task("loss = \"brier\"\n\"a\\u001b\" = 1").unwrap_err().to_string();
    assert!(error.contains("\\u{1b}") && !error.contains(char::is_control), "{error:?}");
}

#[test]
fn arrays_with_false_claims_are_refused() {
    let bomb = |shape: &str| array("probs", "<f8", false, shape, vec![0; 16]);
    npz(&[bomb("(1000000000000, 1000)")], &["array probs", "does not fit its"]);
    npz(&[bomb("(18446744073709551615, 18446744073709551615)")], &["array probs", "does not fit its"]);
    npz(&[bomb("(99999999999999999999999, 2)")], &["array probs", "not made of counts"]);
    npz(&[bomb("(-1, 2)")], &["array probs", "not made of counts"]);
    npz(&[array("probs", "|O", false, "(1, 2)", b"pickle".to_vec())], &["array probs", "never unpickled"]);
    npz(&[array("probs", "<c16", false, "(1, 2)", vec![0; 32])], &["array probs", "\"<c16\" is not supported"]);
    npz(&[("probs.npy".into(), b"junk, not numpy".to_vec())], &["array probs: it is not a numpy array"]);
    npz(&[("probs.npy".into(), b"\x93NUMPY\x02\x00\xff\xff\xff\x7f".to_vec())], &["array probs: its header claims"]);
    npz(&[("probs.npy".into(), b"\x93NUMPY\x01\x00\xff\xff{".to_vec())], &["array probs: its header is cut short"]);
    npz(&[("readme.txt".into(), b"hello".to_vec())], &["is a zip archive of readme.txt, not of numpy arrays"]);
    npz(&[("xl/workbook.xml".into(), b"<workbook/>".to_vec())], &["is an Excel workbook: save the sheet as CSV"]);
    npz(&[], &["no predictions", "columns found: none"]);
    let folder = Folder::new();
    // The zip's directory claims the same size as the array's header, but the data is missing.
    let (name, data) = array("probs", "<f8", false, "(100000000, 2)", vec![0; 16]);
    let size = data.len() - 16 + 1_600_000_000;
    for method in [0, 8] {
        let entry = Entry { name: name.clone(), method, size, crc: crc(&data), data: data.clone() };
        refused(&folder.file("lie.npz", zip_entries(&[entry])), &[]);
    }
    let (name, data) = doubles("probs", "(1, 2)", &[1.0, 0.0]);
    let entry = Entry { name: name.clone(), method: 0, size: data.len(), crc: 1, data: data.clone() };
    refused(&folder.file("checksum.npz", zip_entries(&[entry])), &["array probs: its checksum is wrong"]);
    let entry = Entry { name, method: 12, size: data.len(), crc: crc(&data), data };
    refused(&folder.file("bzip2.npz", zip_entries(&[entry])), &["array probs", "Bzip2", "savez"]);
}

#[test]
fn unsupported_compression_of_parquet_is_named() {
    // Two rows of prob_a and prob_b, compressed with Brotli by another library.
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/table/brotli.parquet");
    refused(&path, &["column prob_a is compressed with BROTLI", "snappy, gzip, lz4 and zstd"]);
}
