//! What depends on data knows nothing of what depends on preference: no loss, oracle or task in table, partition or
//! router. The sources are read; any path into the other modules, or to a name they export, fails.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const DATA: [&str; 16] = [
    "annotators",
    "ballots",
    "e_process",
    "error",
    "forest",
    "linear",
    "mix",
    "number",
    "partition",
    "peaks",
    "predictions",
    "router",
    "simplex",
    "table",
    "votes",
    "wasserstein",
];
const PREFERENCE: [&str; 10] =
    ["auto", "certificate", "diagnose", "estimate", "evaluate", "loss", "oracle", "policy", "task", "traffic"];

/// Identifiers and punctuation, without comments and string or character literals.
fn tokens(source: &str) -> Vec<String> {
    let chars: Vec<char> = source.chars().collect();
    let starts = |i: usize, text: &str| text.chars().enumerate().all(|(j, c)| chars.get(i + j) == Some(&c));
    let (mut out, mut i) = (Vec::new(), 0);
    while i < chars.len() {
        if starts(i, "//") {
            while i < chars.len() && chars[i] != '\n' {
                i += 1;
            }
        } else if starts(i, "/*") {
            while i < chars.len() && !starts(i, "*/") {
                i += 1;
            }
            i += 2;
        } else if chars[i] == '"' {
            i += 1;
            while i < chars.len() && chars[i] != '"' {
                i += if chars[i] == '\\' { 2 } else { 1 };
            }
            i += 1;
        } else if chars[i] == '\'' && (chars.get(i + 2) == Some(&'\'') || chars.get(i + 1) == Some(&'\\')) {
            i += 2;
            while i < chars.len() && chars[i] != '\'' {
                i += 1;
            }
            i += 1;
        } else if chars[i].is_alphanumeric() || chars[i] == '_' {
            let start = i;
            while i < chars.len() && (chars[i].is_alphanumeric() || chars[i] == '_') {
                i += 1;
            }
            out.push(chars[start..i].iter().collect());
        } else if starts(i, "::") {
            out.push("::".into());
            i += 2;
        } else {
            if !chars[i].is_whitespace() {
                out.push(chars[i].into());
            }
            i += 1;
        }
    }
    out
}

/// Reads the rest of a path, a group of them included, from just behind its root: all names in it.
fn names_after(tokens: &[String]) -> Vec<&str> {
    let (mut names, mut depth, mut expects_name) = (Vec::new(), 0_usize, false);
    for token in tokens {
        match token.as_str() {
            "::" => expects_name = true,
            "{" if depth > 0 || expects_name => depth += 1,
            "}" if depth > 1 => depth -= 1,
            "," if depth > 0 => {}
            "*" if expects_name || depth > 0 => names.push("*"),
            word if word.starts_with(|c: char| c.is_alphabetic() || c == '_') && (expects_name || depth > 0) => {
                names.push(word);
                expects_name = false;
            }
            _ => break,
        }
    }
    names
}

/// What the sources of the data side must not name, found in `source`.
fn trespasses(source: &str, exports: &BTreeSet<String>) -> Vec<String> {
    let tokens = tokens(source);
    let mut found = Vec::new();
    for (i, root) in tokens.iter().enumerate() {
        let rooted = ["crate", "super", "pointsman"].contains(&root.as_str());
        if !rooted || tokens.get(i + 1).map(String::as_str) != Some("::") {
            if root == "crate" && tokens.get(i + 1).map(String::as_str) == Some("as") {
                found.push("crate as another name".to_owned());
            }
            continue;
        }
        for (place, name) in names_after(&tokens[i + 1..]).into_iter().enumerate() {
            let glob = name == "*" && place == 0 && (root != "super");
            if glob || PREFERENCE.contains(&name) || exports.contains(name) {
                found.push(format!("{root}::…{name}"));
            }
        }
    }
    found
}

/// The names `lib.rs` exports from the preference side: `Loss`, `Task` and so on.
fn exports(lib: &str) -> BTreeSet<String> {
    let tokens = tokens(lib);
    let mut names = BTreeSet::new();
    for window in tokens.windows(2).enumerate().filter(|(_, w)| w[0] == "use" && PREFERENCE.contains(&w[1].as_str())) {
        names.extend(names_after(&tokens[window.0 + 2..]).into_iter().map(str::to_owned));
    }
    names
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// Whether a file belongs to the data side: `table.rs`, `table_*.rs`, `table/…`.
fn is_data(relative: &Path) -> bool {
    let first = relative.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
    DATA.iter().any(|name| first.starts_with(name))
}

#[test]
fn the_data_side_never_names_the_preference_side() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let exports = exports(&fs::read_to_string(src.join("lib.rs")).unwrap());
    for name in ["Loss", "Oracle", "Task", "Policy", "Estimator", "Evaluation", "Decomposition", "Ties"] {
        assert!(exports.contains(name), "lib.rs exports {name}: {exports:?}");
    }
    assert!(!exports.contains("Router") && !exports.contains("Table"), "{exports:?}");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let mut seen = BTreeSet::new();
    for path in files {
        let relative = path.strip_prefix(&src).unwrap();
        if is_data(relative) {
            let found = trespasses(&fs::read_to_string(&path).unwrap(), &exports);
            assert!(found.is_empty(), "{} names {found:?}", relative.display());
            seen.extend(DATA.iter().filter(|name| relative.to_str().unwrap().starts_with(**name)).copied());
        }
    }
    assert_eq!(seen, BTreeSet::from(DATA), "a module was renamed: rename it here");
}

/// Every module of the crate is on one side or the other, so that a new one has to be placed.
#[test]
fn every_module_has_a_side() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for entry in fs::read_dir(src).unwrap() {
        let path = entry.unwrap().path();
        let module = path.file_stem().unwrap().to_str().unwrap();
        let placed = module == "lib" || DATA.iter().chain(&PREFERENCE).any(|name| module.starts_with(name));
        assert!(placed, "{module}: does it depend on data or on preference? Say so here");
    }
}

/// Trees and transport are below the core: they know plain numbers, and no label, vote, prediction, table or loss.
#[test]
fn the_crates_below_the_core_know_plain_numbers_only() {
    const UNKNOWN: [&str; 10] =
        ["vote", "votes", "label", "labels", "prediction", "predictions", "table", "loss", "losses", "peak"];
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for name in ["pointsman-trees", "pointsman-transport"] {
        let manifest = fs::read_to_string(crates.join(name).join("Cargo.toml")).unwrap();
        assert!(!manifest.contains("pointsman.workspace"), "{name} depends on the core");
        let mut files = Vec::new();
        sources(&crates.join(name).join("src"), &mut files);
        assert!(files.len() > 4, "{name}: {files:?}");
        for path in files {
            let known = tokens(&fs::read_to_string(&path).unwrap());
            // Names of several words are looked at word by word, types included.
            let words = known.iter().flat_map(|token| token.split('_')).map(str::to_lowercase);
            let found: Vec<String> = words.filter(|word| UNKNOWN.contains(&word.as_str())).collect();
            assert!(found.is_empty(), "{} names {found:?}", path.display());
        }
    }
}

#[test]
fn the_reader_sees_every_way_in() {
    let exports =
        exports("pub use loss::{LOG_FLOOR, Loss};\npub use oracle::Oracle;\npub use table::{MAX_CLASSES, Table};");
    assert_eq!(exports, ["LOG_FLOOR", "Loss", "Oracle"].map(str::to_owned).into());
    for bad in [
        "use crate::loss::Loss;",
        "use crate::loss;",
        "fn f() { let x = crate::loss::dot(a, b); }",
        "use crate::{error::Result, loss::Loss};",
        "use crate::{error::{Error, Result}, votes::Votes, task::Task};",
        "use crate::{\n    error::Result,\n    policy,\n};",
        "use crate::Loss;",
        "use crate::{Error, Oracle};",
        "use crate::{Error, Loss as L};",
        "fn f(loss: &crate::Loss) {}",
        "use super::estimate::Decomposition;",
        "use super::super::evaluate;",
        "use super::{table::Table, loss::Loss};",
        "use crate::*;",
        "use crate as core;",
        "use pointsman::Loss;",
        "let quote = '\"'; use crate::loss::Loss;",
    ] {
        assert!(!trespasses(bad, &exports).is_empty(), "{bad}");
    }
    for good in [
        "//! No [`crate::loss`] here.\nuse crate::error::Result;",
        "/* crate::Loss */ use crate::table::Table;",
        "let text = \"crate::loss\"; let other = \"\\\"crate::task\";",
        "use super::*;",
        "use crate::{error::{Error, Result}, table::Table}; struct Loss; fn task() {}",
        "fn f<'a>(x: &'a str) -> crate::Result<()> { let loss = 1; }",
        "use std::task::Poll;",
    ] {
        assert_eq!(trespasses(good, &exports), Vec::<String>::new(), "{good}");
    }
}
