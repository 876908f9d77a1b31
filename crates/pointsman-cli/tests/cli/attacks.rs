//! Every hostile file of `attacks/` is refused: exit code 2, a one-line reason, and no files left.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Run, pointsman, workshop};

fn attacks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../attacks")
}

/// The files that the list names, and what the error on each must contain.
fn listed() -> BTreeMap<String, String> {
    let text = fs::read_to_string(attacks().join("README.md")).unwrap();
    let mut files = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [file, _, printed] = cells[..] else { panic!("three cells are needed: {line}") };
        // Code that has a ` in it stands between `` and spaces.
        let printed =
            printed.strip_prefix("`` ").and_then(|s| s.strip_suffix(" ``")).unwrap_or(printed.trim_matches('`'));
        if file != "file" {
            assert!(files.insert(file.to_owned(), printed.to_owned()).is_none(), "{file} is listed twice");
        }
    }
    files
}

/// The files that are there, as `folder/file`.
fn found() -> Vec<String> {
    let names = |folder: &Path| {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        entries.filter(|name| !name.starts_with('.')).collect::<Vec<_>>()
    };
    let folders = names(&attacks()).into_iter().filter(|name| name != "README.md");
    let mut all: Vec<String> = folders
        .flat_map(|folder| names(&attacks().join(&folder)).into_iter().map(move |file| format!("{folder}/{file}")))
        .collect();
    all.sort();
    all
}

#[test]
fn list_of_attacks_is_complete() {
    assert_eq!(listed().into_keys().collect::<Vec<_>>(), found());
}

#[test]
fn every_attack_is_refused_in_one_line() {
    let workshop = workshop();
    let folder = workshop.path();
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (router, table, out) = (at("router.safetensors"), at("heldout.csv"), at("out.csv"));
    let (animals, made) = (at("animals.csv"), at("made.safetensors"));
    fs::write(&animals, "prob_cat,prob_dog,x_length\n0.9,0.1,3\n0.4,0.6,12\n").unwrap();
    let listing = || {
        let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = listing();
    for (name, printed) in listed() {
        let path = attacks().join(&name);
        let file = path.to_str().unwrap();
        let folder = name.split_once('/').unwrap().0;
        if folder == "parts" {
            // Parts travel between programs, not through the command line.
            let reason = pointsman_table::load_partial(&path).unwrap_err().to_string();
            assert!(
                reason.starts_with(&format!("{file}: ")) && reason.contains(&printed),
                "{name} lacks {printed:?}: {reason}"
            );
            assert!(!reason.contains(char::is_control), "{name}: {reason:?}");
        }
        let commands: Vec<Vec<&str>> = match folder {
            "tables" => vec![vec!["calibrate", file, "-o", &made]],
            "queries" => vec![vec!["decide", &router, file, "-o", &out]],
            "routers" => vec![vec!["show", file], vec!["decide", file, &table, "-o", &out]],
            // Only `check` compares the leaves with the rows; other commands must not fail otherwise than with an error.
            "leaves" => {
                for command in [vec!["show", file], vec!["decide", file, &animals]] {
                    let run = pointsman(&command);
                    assert!([0, 2].contains(&run.code) && !run.stderr.contains("panicked"), "{name}: {run:?}");
                }
                vec![vec!["check", file]]
            }
            "policies" => vec![vec!["check", file], vec!["decide", file, &table, "-o", &out]],
            "tasks" => vec![vec!["show", &router, "--task", file]],
            // A good router, which is no part.
            "parts" if name.ends_with("/a-router.safetensors") => vec![],
            "parts" => vec![vec!["show", file], vec!["calibrate", &table, "--like", file, "-o", &made]],
            other => panic!("no command for attacks/{other}"),
        };
        for command in commands {
            let printed = if folder == "parts" { "not a router file" } else { &printed };
            refused(&name, file, printed, &pointsman(&command));
            assert_eq!(listing(), before, "{name}: {command:?} left something behind");
        }
    }
}

fn refused(name: &str, file: &str, printed: &str, run: &Run) {
    assert_eq!(run.code, 2, "{name}: {run:?}");
    assert_eq!(run.stdout, "", "{name}");
    assert!(!run.stderr.contains("panicked"), "{name}: {run:?}");
    let mut lines = run.stderr.lines();
    let message = lines.next().unwrap();
    assert!(message.starts_with("error: ") && message.contains(printed), "{name} lacks {printed:?}: {run:?}");
    assert!(!message.contains(char::is_control), "{name}: {run:?}");
    assert!(lines.all(|line| line.starts_with("hint: ")), "{name}: {run:?}");
    // Files that are wrong only together with a good router are tested with one.
    let misfit = message.contains(".safetensors: the route ");
    assert!(misfit || message.starts_with(&format!("error: {file}: ")), "{name}: {run:?}");
}
