//! Names of classes in columns: answers of other models, and one label per column.

use std::num::NonZero;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use parquet::basic::Compression;
use pointsman_table::{Columns, Need, ReadOptions, read_frame};

use crate::support::{self, Folder};

fn options(columns: &str, filters: &[&str]) -> ReadOptions {
    ReadOptions {
        columns: columns.parse().unwrap(),
        filters: filters.iter().map(|filter| filter.parse().unwrap()).collect(),
        ..ReadOptions::default()
    }
}

/// The answers of the only oracle in `text`, by the name of a file of its format.
fn oracle(name: &str, text: &str, options: &ReadOptions) -> Result<(String, Vec<f64>), String> {
    let folder = Folder::new();
    let table = read_frame(folder.file(name, text), options).map_err(|error| error.to_string())?.table;
    let mut oracles = table.oracles();
    let (oracle, answers) = oracles.next().ok_or("no oracle")?;
    assert!(oracles.next().is_none());
    Ok((oracle.to_owned(), answers.to_vec()))
}

#[test]
fn answers_may_be_one_class_per_row() {
    let csv = |column: &str| format!("prob_cat,prob_big dog,{column}\n1,0, big dog \n0,1,cat\n");
    let jsonl = |first: &str, second: &str| {
        format!(
            "{{\"probs\":{{\"cat\":1,\"big dog\":0}},{first}}}\n{{\"probs\":{{\"cat\":0,\"big dog\":1}},{second}}}\n"
        )
    };
    let cases = [
        ("a.csv", csv("llm_answer"), "oracles=llm_answer", "llm_answer"),
        ("a.csv", csv("oracle_llm"), "", "llm"),
        ("a.csv", csv("oracle_llm"), "oracles=oracle_llm", "llm"),
        ("a.csv", csv("answer_llm"), "oracles=answer_", "llm"),
        ("a.jsonl", jsonl("\"said\":\"big dog\"", "\"said\":\"cat\""), "oracles=said", "said"),
        ("a.jsonl", jsonl("\"oracle_llm\":\"big dog\"", "\"oracle_llm\":\"cat\""), "", "llm"),
        ("a.jsonl", jsonl("\"oracles\":{\"llm\":\"big dog\"}", "\"oracles\":{\"llm\":\"cat\"}"), "", "llm"),
    ];
    for (name, text, columns, model) in cases {
        let (oracle, answers) = oracle(name, &text, &options(columns, &[])).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!((oracle.as_str(), answers.as_slice()), (model, &[0.0, 1.0, 1.0, 0.0][..]), "{text}");
    }
    // A column that holds something else is no oracle.
    let other = csv("oracle_version").replace("cat\n", "v2\n").replace(" big dog \n", "v1\n");
    assert_eq!(oracle("a.csv", &other, &options("", &[])), Err("no oracle".to_owned()));
}

/// Whether a column holds answers must not depend on the row that comes first.
#[test]
fn answers_that_are_missing_in_the_first_row_are_refused() {
    let read = |path: &std::path::Path, filters: &[&str]| match read_frame(path, &options("", filters)) {
        Ok(frame) => Ok(frame.table.oracles().next().map(|(_, answers)| answers.to_vec())),
        Err(error) => Err(error.to_string()),
    };
    for first in [Some("cat"), None, Some("unsure"), Some("Cat!")] {
        let folder = Folder::new();
        let answer = first.unwrap_or_default();
        let csv = format!("prob_cat,prob_dog,oracle_llm\n1,0,{answer}\n0,1,dog\n");
        let key = first.map_or(String::new(), |first| format!(",\"oracle_llm\":\"{first}\""));
        let jsonl = format!(
            "{{\"prob_cat\":1,\"prob_dog\":0{key}}}\n{{\"prob_cat\":0,\"prob_dog\":1,\"oracle_llm\":\"dog\"}}\n"
        );
        let columns: [(&str, ArrayRef); 3] = [
            ("prob_cat", Arc::new(Float64Array::from(vec![1.0, 0.0]))),
            ("prob_dog", Arc::new(Float64Array::from(vec![0.0, 1.0]))),
            ("oracle_llm", Arc::new(StringArray::from(vec![first, Some("dog")]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let (parquet, arrow) = (folder.path("a.parquet"), folder.path("a.arrow"));
        support::parquet(&parquet, &batch, Compression::UNCOMPRESSED);
        support::arrow_stream(&arrow, &batch);
        for path in [folder.file("a.csv", csv), folder.file("a.jsonl", jsonl), parquet, arrow] {
            let error = match (first, read(&path, &[])) {
                (Some("cat"), read) => {
                    assert_eq!(read, Ok(Some(vec![1.0, 0.0, 0.0, 1.0])), "{path:?}");
                    continue;
                }
                (_, read) => read.unwrap_err(),
            };
            assert!(error.contains("row 2") && error.contains("column oracle_llm"), "{path:?}: {error}");
            let filtered =
                ["oracle_llm!=", "oracle_llm!=unsure", "oracle_llm=dog"].map(|filter| read(&path, &[filter]));
            match first {
                // The filter of the message keeps the rows with answers.
                None => {
                    assert!(error.contains("first row") && error.contains("--where 'oracle_llm!='"), "{error}");
                    assert_eq!(filtered[0], Ok(Some(vec![0.0, 1.0])), "{path:?}");
                }
                // No filter helps, and none leaves the column out silently.
                Some(first) => {
                    assert!(error.contains(&format!("the first row has {first:?}, which is none")), "{error}");
                    assert!(error.contains("correct that value") && !error.contains("--where"), "{error}");
                    assert!(filtered.iter().all(Result::is_err), "{path:?}: {filtered:?}");
                }
            }
        }
    }
}

/// Numbers under `oracle_` may be a version or seconds: they are answers only if the columns of answers are named.
#[test]
fn columns_of_numbers_are_answers_only_if_they_are_named() {
    let named = ["cat,dog", "1,2"];
    for (classes, answers) in named.into_iter().zip([[0.0, 1.0, 1.0, 0.0]; 2]) {
        let [one, two] = [classes.split(',').next().unwrap(), classes.split(',').nth(1).unwrap()];
        let csv =
            |values: [&str; 2]| format!("prob_{one},prob_{two},oracle_seconds\n1,0,{}\n0,1,{}\n", values[0], values[1]);
        let jsonl = |values: [&str; 2]| {
            let row = |p: [u8; 2], value: &str| {
                format!("{{\"probs\":{{\"{one}\":{},\"{two}\":{}}},\"oracle_seconds\":{value}}}\n", p[0], p[1])
            };
            row([1, 0], values[0]) + &row([0, 1], values[1])
        };
        // Once with a later value that is no class, once with classes only.
        for values in [["1", "7"], ["1", "2"], ["1", "0"]] {
            for (name, text) in [("a.csv", csv(values)), ("a.jsonl", jsonl(values))] {
                assert_eq!(oracle(name, &text, &options("", &[])), Err("no oracle".to_owned()), "{classes} {values:?}");
                let folder = Folder::new();
                let frame = read_frame(folder.file(name, &text), &options("", &[])).unwrap();
                assert_eq!(frame.unread_answers, ["oracle_seconds"], "{text}");
            }
        }
        let values = if classes == "1,2" { ["2", "1"] } else { ["1", "0"] };
        let (name, read) = oracle("a.csv", &csv(values), &options("oracles=oracle_", &[])).unwrap();
        assert_eq!((name.as_str(), read.as_slice()), ("seconds", &answers[..]), "{classes}");
        let refused = oracle("a.csv", &csv(["1", "7"]), &options("oracles=oracle_", &[])).unwrap_err();
        assert!(refused.contains("column oracle_seconds: answer \"7\" is not among the classes"), "{refused}");
        let folder = Folder::new();
        let text = csv(["3.5", "0.2"]);
        assert!(read_frame(folder.file("a.csv", text), &options("", &[])).unwrap().unread_answers.is_empty());
    }
}

#[test]
fn answers_that_are_no_class_are_refused_by_row_and_value() {
    let csv = "prob_cat,prob_dog,llm\n1,0,cat\n0,1,dgo\n";
    let jsonl = "{\"probs\":{\"cat\":1,\"dog\":0},\"oracles\":{\"llm\":\"cat\"}}\n\
                 {\"probs\":{\"cat\":0,\"dog\":1},\"oracles\":{\"llm\":\"Dog\"}}\n";
    for (name, text, columns, column) in [
        ("a.csv", csv.replace("dgo", "Dog"), "oracles=llm", "column llm"),
        ("a.jsonl", jsonl.to_owned(), "", "column oracles.llm"),
    ] {
        let error = oracle(name, &text, &options(columns, &[])).unwrap_err();
        let part = "answer \"Dog\" is not among the classes (cat, dog): did you mean \"dog\"?";
        assert!(error.contains("row 2") && error.contains(column) && error.contains(part), "{error}");
    }
    let error = oracle("a.csv", csv, &options("oracles=llm", &[])).unwrap_err();
    assert!(error.contains("answer \"dgo\" is not among the classes"), "{error}");
}

/// The filter that the message names keeps the other rows, wherever the answers are.
#[test]
fn the_filter_in_the_message_on_a_missing_answer_works() {
    let csv = "id,prob_a,prob_b,llm\n1,1,0,\n2,1,0,a\n3,1,0,b\n".to_owned();
    let probs = "\"probs\":{\"a\":1,\"b\":0}";
    let line = |answer: &str| format!("{{{probs}{answer}}}\n");
    let rows = |answers: [&str; 3]| answers.map(line).concat();
    let answers = ["", ",\"oracles\":{\"llm\":\"a\"}", ",\"oracles\":{\"llm\":\"b\"}"];
    let maps = ["", ",\"oracles\":{\"llm\":{\"a\":1}}", ",\"oracles\":{\"llm\":{\"b\":1}}"];
    let turned = |[a, b, c]: [&'static str; 3]| [b, a, c];
    let cases = [
        ("a.csv", csv, "oracles=llm", "llm!="),
        ("late.jsonl", rows(answers), "", "oracles.llm!="),
        ("maps.jsonl", rows(maps), "", "oracles.llm!="),
        ("gap.jsonl", rows(turned(answers)), "", "oracles.llm!="),
        ("map_gap.jsonl", rows(turned(maps)), "", "oracles.llm!="),
        ("null.jsonl", rows([",\"oracles\":{\"llm\":null}", answers[1], answers[2]]), "", "oracles.llm!="),
        ("empty.jsonl", rows([",\"said\":\"\"", ",\"said\":\"a\"", ",\"said\":\"b\""]), "oracles=said", "said!="),
    ];
    for (name, text, columns, filter) in cases {
        let error = oracle(name, &text, &options(columns, &[])).unwrap_err();
        assert!(error.contains(&format!("--where '{filter}'")), "{name}: {error}");
        let kept = oracle(name, &text, &options(columns, &[filter])).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(kept.1, [1.0, 0.0, 0.0, 1.0], "{name}");
    }
    let text = rows(turned(maps));
    let error = oracle("a.jsonl", &text, &options("", &["oracles=yes"])).unwrap_err();
    assert!(error.contains("column oracles holds lists or maps") && error.contains("--where 'oracles!='"), "{error}");
    assert_eq!(oracle("a.jsonl", &text, &options("", &["oracles!="])).unwrap().1.len(), 4);
}

#[test]
fn labels_may_be_one_per_column() {
    let folder = Folder::new();
    let csv = folder.file("a.csv", "prob_a,prob_b,label_1,label_2,label_3\n1,0,b, a ,b\n0,1,,b,\n");
    let jsonl = "{\"probs\":{\"a\":1,\"b\":0},\"label_1\":\"b\",\"label_2\":\"a\",\"label_3\":\"b\"}\n\
                 {\"probs\":{\"a\":0,\"b\":1},\"label_1\":null,\"label_2\":\"b\"}\n";
    let jsonl = folder.file("a.jsonl", jsonl);
    for path in [&csv, &jsonl] {
        let counts = |options: &ReadOptions| {
            let table = read_frame(path, options).unwrap().table;
            [0, 1].map(|row| table.votes(row).unwrap().counts().to_vec())
        };
        let wanted = ReadOptions { need: Need::Votes, ..options("labels=label_", &[]) };
        assert_eq!(counts(&wanted), [vec![1, 2], vec![0, 1]], "{}", path.display());
        let first = ReadOptions { first_labels: NonZero::new(2), ..wanted };
        assert_eq!(counts(&first), [vec![1, 1], vec![0, 1]], "{}", path.display());
    }
    // Without the option, the message names it.
    let error = read_frame(&csv, &ReadOptions { need: Need::Votes, ..options("", &[]) }).unwrap_err().to_string();
    assert!(
        error.contains("label_1, label_2, label_3 hold one label each") && error.contains("--columns labels=label_,"),
        "{error}"
    );
    // So it does for numbers of classes under such names, and not for other numbers.
    for (name, is_named) in [("label_", true), ("size_", false)] {
        let numbers = folder.file("n.csv", format!("prob_a,prob_b,{name}1,{name}2\n1,0,1,0\n0,1,,1\n"));
        let error =
            read_frame(&numbers, &ReadOptions { need: Need::Votes, ..options("", &[]) }).unwrap_err().to_string();
        assert_eq!(error.contains(&format!("--columns labels={name},")), is_named, "{error}");
    }
    let wrong = folder.file("b.csv", "prob_a,prob_b,label_1,label_2\n1,0,b,\n0,1,b,B\n");
    let error = read_frame(&wrong, &options("labels=label_", &[])).unwrap_err().to_string();
    assert!(error.contains("row 2 (line 3), column label_2: label \"B\" is not among the classes"), "{error}");
    let empty = folder.file("c.csv", "prob_a,prob_b,label_1,label_2\n1,0,b,\n0,1,,\n");
    let error = read_frame(&empty, &options("labels=label_", &[])).unwrap_err().to_string();
    assert!(error.contains("row 2 (line 3), column label_1, label_2"), "{error}");
}

#[test]
fn columns_of_labels_may_be_named_one_by_one() {
    let folder = Folder::new();
    let csv = folder.file("a.csv", "prob_a,prob_b,label_1,label_2,label_final\n1,0,b,a,a\n0,1,,b,b\n");
    let jsonl = "{\"probs\":{\"a\":1,\"b\":0},\"label_1\":\"b\",\"label_2\":\"a\",\"label_final\":\"a\"}\n\
                 {\"probs\":{\"a\":0,\"b\":1},\"label_1\":null,\"label_2\":\"b\",\"label_final\":\"b\"}\n";
    let jsonl = folder.file("a.jsonl", jsonl);
    let names = "labels=label_2,labels=label_1";
    for path in [&csv, &jsonl] {
        let counts = |options: &ReadOptions| {
            let table = read_frame(path, options).unwrap().table;
            [0, 1].map(|row| table.votes(row).unwrap().counts().to_vec())
        };
        assert_eq!(counts(&options(names, &[])), [vec![1, 1], vec![0, 1]], "{}", path.display());
        // The first label is that of the column named first.
        let first = ReadOptions { first_labels: NonZero::new(1), ..options(names, &[]) };
        assert_eq!(counts(&first), [vec![1, 0], vec![0, 1]], "{}", path.display());
    }
    assert_eq!(names.parse::<Columns>().unwrap().to_string(), names);
    let error = read_frame(&csv, &options("labels=label_1,labels=label_9", &[])).unwrap_err().to_string();
    assert!(error.contains("no column named by labels=label_9") && error.contains("columns found: prob_a"), "{error}");
    let error = "labels=label_1,labels=label_1".parse::<Columns>().unwrap_err().to_string();
    assert!(error.contains("labels is given twice"), "{error}");
}

#[test]
fn columns_of_labels_that_may_be_decisions_are_listed() {
    let folder = Folder::new();
    let decided = |names: &str, columns: &str| {
        let labels = vec!["a"; names.split(',').count()].join(",");
        let path = folder.file("a.csv", format!("prob_a,prob_b,{names}\n1,0,{labels}\n"));
        let frame = read_frame(&path, &options(columns, &[])).unwrap();
        (frame.label_columns.join(","), frame.decided_labels.join(","))
    };
    for (names, expected) in [
        ("label_1,label_2,label_3,label_final", "label_final"),
        ("label_1,label_2,label_vote", "label_vote"),
        ("label_ann,label_bob,label_Majority", "label_Majority"),
        ("label_1,label_gold", "label_gold"),
        ("label_1,label_2,label_3", ""),
        ("label_ann,label_bob", ""),
        ("label_1,label_ann", ""),
    ] {
        assert_eq!(decided(names, "labels=label_"), (names.to_owned(), expected.to_owned()));
    }
    // A column that is named is meant.
    let named = decided("label_1,label_final", "labels=label_1,labels=label_final");
    assert_eq!(named, ("label_1,label_final".to_owned(), String::new()));
}

#[test]
fn lists_and_maps_under_other_names_are_guessed() {
    let folder = Folder::new();
    let row = "{\"id\":1,\"scores\":{\"a\":0.7,\"b\":0.3},\"said\":[\"a\",\"b\"],\"tags\":[\"x\"]}\n";
    let path = folder.file("a.jsonl", row);
    let need = |columns: &str| ReadOptions { need: Need::Votes, ..options(columns, &[]) };
    let error = |options: &ReadOptions| read_frame(&path, options).unwrap_err().to_string();
    assert!(error(&need("")).contains("if scores are the predictions, give their name: --columns probs=scores,"));
    assert!(error(&need("probs=scores")).contains("if said are the labels, give their name: --columns labels=said,"));
    assert_eq!(read_frame(&path, &need("probs=scores,labels=said")).unwrap().table.rows(), 1);
}
