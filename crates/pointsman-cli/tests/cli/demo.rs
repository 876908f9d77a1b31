//! The demo.

use std::collections::BTreeSet;
use std::fs;

use tempfile::TempDir;

use crate::{line, parse_csv};

#[test]
fn demo_needs_no_input_and_writes_its_files() {
    let folder = TempDir::new().unwrap();
    let run = line(folder.path(), "demo --rows 500 -o tour").ok();
    let tour = folder.path().join("tour");
    let (header, decisions) = parse_csv(&fs::read_to_string(tour.join("decisions.csv")).unwrap());
    let action = header.iter().position(|name| name == "action").unwrap();
    let actions: BTreeSet<&str> = decisions.iter().map(|row| row[action].as_str()).collect();
    assert_eq!(actions, BTreeSet::from(["abstain", "predict", "route:expert"]));
    let report: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(tour.join("report.json")).unwrap()).unwrap();
    assert_eq!((report["rows"].as_u64(), report["truth"].as_str()), (Some(500), Some("true")));
    let page = fs::read_to_string(tour.join("report.html")).unwrap();
    assert!(page.contains("Price of routing") && page.len() < 1_500_000, "{}", page.len());
    for text in ["One decision per action, explained", "Predicting costs", "At these prices"] {
        assert!(run.stdout.contains(text), "{text}: {run:?}");
    }
}

#[test]
fn demo_writes_its_task() {
    let folder = TempDir::new().unwrap();
    let run = line(folder.path(), "demo --rows 300 -o tour").ok();
    let written = fs::read(folder.path().join("tour/decisions.csv")).unwrap();
    line(folder.path(), "decide tour/router.safetensors tour/heldout.csv --task tour/task.toml -o again.csv").ok();
    assert_eq!(fs::read(folder.path().join("again.csv")).unwrap(), written);
    let add = "pointsman versions add demo tour/router.safetensors --task tour/task.toml --activate";
    assert!(run.words().contains(add) && run.words().contains("pointsman serve"), "{run:?}");
}

#[test]
fn demo_prints_the_commands_it_runs() {
    let folder = TempDir::new().unwrap();
    let run = line(folder.path(), "demo --rows 300 -o tour").ok();
    let router = fs::read(folder.path().join("tour/router.safetensors")).unwrap();
    let decisions = fs::read(folder.path().join("tour/decisions.csv")).unwrap();
    fs::remove_file(folder.path().join("tour/router.safetensors")).unwrap();
    fs::remove_file(folder.path().join("tour/decisions.csv")).unwrap();
    let typed: Vec<&str> = run.stdout.lines().filter_map(|line| line.trim().strip_prefix("$ pointsman ")).collect();
    assert_eq!(typed.len(), 4, "{typed:?}");
    typed.iter().for_each(|typed| drop(line(folder.path(), typed).ok()));
    assert_eq!(fs::read(folder.path().join("tour/router.safetensors")).unwrap(), router);
    assert_eq!(fs::read(folder.path().join("tour/decisions.csv")).unwrap(), decisions);
    // The last lines say what to do next, and that works too.
    for typed in run.stdout.lines().rev().take(2).collect::<Vec<_>>().into_iter().rev() {
        line(folder.path(), typed.trim().strip_prefix("pointsman ").unwrap()).ok();
    }
}

#[test]
fn demo_data_depend_only_on_the_seed() {
    let folder = TempDir::new().unwrap();
    for name in ["a", "b"] {
        line(folder.path(), &format!("demo --rows 100 --seed 7 -o {name} -q")).ok();
    }
    line(folder.path(), "demo --rows 100 --seed 8 -o c -q").ok();
    let heldout = |name: &str| fs::read(folder.path().join(name).join("heldout.csv")).unwrap();
    assert_eq!(heldout("a"), heldout("b"));
    assert_ne!(heldout("a"), heldout("c"));
}

#[test]
fn demo_replaces_no_files_of_others() {
    let folder = TempDir::new().unwrap();
    let own = folder.path().join("calibration.csv");
    fs::write(&own, "mine").unwrap();
    let run = line(folder.path(), "demo --rows 100 -o . -q");
    assert!(run.code == 2 && run.stderr.contains("calibration.csv") && run.stderr.contains("--force"), "{run:?}");
    assert_eq!((fs::read_to_string(&own).unwrap().as_str(), fs::read_dir(folder.path()).unwrap().count()), ("mine", 1));
    line(folder.path(), "demo --rows 100 -o . -q --force").ok();
    // Its own files it may replace.
    line(folder.path(), "demo --rows 100 -o . -q").ok();
}
