//! Modules import only modules before them in [`ORDER`], so that data does not depend on preference (no loss, oracle or task in table,
//! partition or router) and there are no cycles; and the `impl` blocks of a type are in its own module. The test reads the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The modules of the crate; each may import those before it.
const ORDER: [&str; 18] = [
    "parallel",
    "error",
    "number",
    "numeric",
    "table",
    "wasserstein",
    "partition",
    "router",
    "loss",
    "oracle",
    "task",
    "estimate",
    "calibrate",
    "policy",
    "evaluate",
    "certify",
    "diagnose",
    "monitor",
];

/// Types to which later modules add methods, so that users can write `router.policy(&task)` and `policy.replay(&table)`. Each such method creates
/// a value of the later module.
const EXTENDED: [(&str, &[&str]); 3] = [
    ("Router", &["calibrate", "policy", "evaluate", "certify", "monitor"]),
    ("Policy", &["evaluate"]),
    ("Replay", &["monitor"]),
];

/// The identifiers and punctuation of a source, without comments and literals.
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

/// The forbidden paths in a file of one module: later modules, re-exports of the crate root, and glob imports.
fn forbidden_paths(module: &str, source: &str) -> Vec<String> {
    let tokens = tokens(source);
    let place = |name: &str| ORDER.iter().position(|other| *other == name);
    let mut found = Vec::new();
    for (i, root) in tokens.iter().enumerate().filter(|(_, token)| ["crate", "pointsman"].contains(&token.as_str())) {
        match tokens.get(i + 1).map(String::as_str) {
            Some("as") => found.push("crate as another name".to_owned()),
            Some("::") => {}
            _ => continue,
        }
        for name in modules_after(&tokens[i + 1..]) {
            // Macros of the crate have no module.
            let is_later = match (place(name), place(module)) {
                (Some(other), Some(own)) => other > own,
                _ => !["match_precision"].contains(&name),
            };
            if is_later {
                found.push(format!("{root}::{name}"));
            }
        }
    }
    found
}

/// The first names of a path after its root: one, or those of a group.
fn modules_after(tokens: &[String]) -> Vec<&str> {
    let Some(first) = tokens.get(1).map(String::as_str) else { return Vec::new() };
    if first != "{" {
        return vec![first];
    }
    let (mut names, mut depth, mut expects_name) = (Vec::new(), 0_usize, false);
    for token in &tokens[1..] {
        match token.as_str() {
            "{" => (depth, expects_name) = (depth + 1, depth == 0),
            "}" if depth == 1 => break,
            "}" => depth -= 1,
            "," => expects_name = depth == 1,
            word if expects_name => {
                names.push(word);
                expects_name = false;
            }
            _ => {}
        }
    }
    names
}

/// The types that a source defines, and those that it has `impl` blocks for.
fn types(source: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut defined, mut implemented) = (BTreeSet::new(), BTreeSet::new());
    let lines = source.lines().map(|line| line.trim_start_matches("pub(crate) ").trim_start_matches("pub(super) "));
    for line in lines.map(|line| line.trim_start_matches("pub ")) {
        for word in ["struct ", "enum "] {
            defined.extend(line.strip_prefix(word).map(|rest| first_word(rest).to_owned()));
        }
        if let Some(rest) = line.strip_prefix("impl") {
            let rest =
                if rest.starts_with('<') { rest.split_once("> ").map_or("", |(_, rest)| rest) } else { rest.trim() };
            // Foreign traits may be implemented anywhere.
            if !rest.contains(" for ") {
                implemented.insert(first_word(rest).to_owned());
            }
        }
    }
    (defined, implemented)
}

fn first_word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
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

/// All files with their module and their text, without unit tests.
fn files() -> Vec<(PathBuf, String, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    sources(&src, &mut paths);
    let file = |path: PathBuf| {
        let relative = path.strip_prefix(&src).unwrap().to_owned();
        let module = relative.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned();
        (relative, module, code)
    };
    paths.into_iter().map(file).filter(|(path, module, _)| module != "lib" && !path.ends_with("tests.rs")).collect()
}

#[test]
fn modules_import_only_earlier_modules() {
    let mut seen = BTreeSet::new();
    for (path, module, code) in files() {
        assert!(ORDER.contains(&module.as_str()), "{module}: where does it belong in the order of modules?");
        let found = forbidden_paths(&module, &code);
        assert!(found.is_empty(), "{} names {found:?}", path.display());
        seen.insert(module);
    }
    assert_eq!(seen, ORDER.map(str::to_owned).into(), "a module was renamed: rename it here");
}

#[test]
fn methods_are_in_the_module_of_their_type() {
    let mut homes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let files = files();
    for (_, module, code) in &files {
        for name in types(code).0 {
            homes.entry(name).or_default().insert(module.clone());
        }
    }
    for (path, module, code) in &files {
        for name in types(code).1 {
            let extends = EXTENDED.iter().any(|(known, by)| *known == name && by.contains(&module.as_str()));
            let at_home = homes.get(&name).is_some_and(|homes| homes.contains(module));
            assert!(at_home || extends, "{}: methods of {name}, which lives in {:?}", path.display(), homes.get(&name));
        }
    }
}

/// Trees and transport are below the core: they have plain numbers only, and no label, vote, prediction, table or loss.
#[test]
fn crates_below_the_core_use_plain_numbers_only() {
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
            // Identifiers are checked word by word, including types.
            let words = known.iter().flat_map(|token| token.split('_')).map(str::to_lowercase);
            let found: Vec<String> = words.filter(|word| UNKNOWN.contains(&word.as_str())).collect();
            assert!(found.is_empty(), "{} names {found:?}", path.display());
        }
    }
}

#[test]
fn forbidden_paths_are_found_in_every_form() {
    for bad in [
        "use crate::loss::Loss;",
        "fn f() { let x = crate::loss::dot(a, b); }",
        "use crate::{error::Result, loss::Loss};",
        "use crate::{error::{Error, Result}, table::Votes, task::Task};",
        "use crate::{\n    error::Result,\n    policy,\n};",
        "use crate::Loss;",
        "fn f(loss: &crate::Loss) {}",
        "use crate::*;",
        "use crate as core;",
        "use pointsman::Loss;",
        "let quote = '\"'; use crate::loss::Loss;",
    ] {
        assert!(!forbidden_paths("router", bad).is_empty(), "{bad}");
    }
    for good in [
        "//! No [`crate::loss`] here.\nuse crate::error::Result;",
        "/* crate::Loss */ use crate::table::Table;",
        "let text = \"crate::loss\"; let other = \"\\\"crate::task\";",
        "use super::*;",
        "use crate::{error::{Error, Result}, table::Table}; struct Loss; fn task() {}",
        "fn f<'a>(x: &'a str) -> crate::error::Result<()> { let loss = 1; }",
        "use std::task::Poll;",
        "use crate::router::Router;",
    ] {
        assert_eq!(forbidden_paths("router", good), Vec::<String>::new(), "{good}");
    }
    let (defined, implemented) = types("pub struct A {}\nimpl<'a> B<'a> {\nimpl Clone for C {\npub(crate) enum D {");
    assert_eq!(defined, ["A", "D"].map(str::to_owned).into());
    assert_eq!(implemented, ["B"].map(str::to_owned).into());
}
