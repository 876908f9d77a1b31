//! Texts for users are in plain English: "per" and not "a", and one name per thing.

use std::fs;
use std::path::{Path, PathBuf};

use crate::repository;

/// Phrases that no user should meet, and what to say instead.
const PHRASES: [(&str, &str); 17] = [
    ("labels an item", "labels per item"),
    ("label an item", "label per item"),
    ("labels a row", "labels per row"),
    ("label a row", "label per row"),
    ("row an item", "row per item"),
    ("row a cell", "row per cell"),
    ("row a query", "row per query"),
    ("points a query", "points per query"),
    ("cost a query", "cost per query"),
    ("costs a query", "costs per query"),
    ("errors a query", "errors per query"),
    ("column a class", "column per class"),
    ("column an action", "column per action"),
    ("told by", "estimated from"),
    ("is in for", "expects to lose"),
    ("threshold on total uncertainty", "confidence threshold"),
    ("brier reducible", "reducible loss"),
];

/// Clauses in which the words are meant as they stand.
const MEANT: [&str; 3] = ["labels an item has", "labels an item twice", "labels a row has"];

fn files(folder: &Path, extensions: &[&str], into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.is_dir() {
            files(&path, extensions, into);
        } else if extension.is_some_and(|extension| extensions.contains(&extension)) {
            into.push(path);
        }
    }
}

/// A Rust source without its comments, except those of arguments, which are help texts.
fn visible(path: &Path, text: &str) -> String {
    let is_help = path.components().any(|part| part.as_os_str() == "args");
    let is_source = path.extension().is_some_and(|extension| extension == "rs") && !is_help;
    let is_comment = |line: &&str| is_source && line.trim_start().starts_with("//");
    text.lines().filter(|line| !is_comment(line)).map(str::trim).collect::<Vec<_>>().join(" ").replace("\\ ", "")
}

#[test]
fn texts_are_in_plain_english() {
    let root = repository();
    let mut found = vec![root.join("README.md")];
    files(&root.join("docs/src"), &["md"], &mut found);
    files(&root.join("python/pointsman"), &["py", "pyi"], &mut found);
    files(&root.join("examples"), &["md", "py", "toml", "sh", "rs"], &mut found);
    let schemas = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    found.extend(schemas.filter(|path| path.to_string_lossy().ends_with(".schema.json")));
    for crate_ in ["pointsman", "pointsman-cli", "pointsman-table", "pointsman-python", "pointsman-report"] {
        files(&root.join("crates").join(crate_).join("src"), &["rs", "js", "html"], &mut found);
    }
    let mut wrong = Vec::new();
    for path in found {
        let text = visible(&path, &fs::read_to_string(&path).unwrap());
        let text = MEANT.iter().fold(text, |text, meant| text.replace(meant, ""));
        for (phrase, better) in PHRASES {
            if text.contains(phrase) {
                wrong.push(format!("{}: {phrase:?}, better {better:?}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
