//! `show`: routers and tasks.

use std::fs;

use crate::{command, finish, has_keys, keys, line, repository, workshop};

const TASK: &str = "--loss brier --route expert=0.05 --abstain 0.3";

/// Prices beyond all reason are written with an exponent.
#[test]
fn large_prices_are_short() {
    let folder = workshop();
    for command in ["show router.safetensors", "evaluate router.safetensors heldout.csv"] {
        let run = line(folder.path(), &format!("{command} --route 1e99 --abstain 1e99")).ok();
        assert!(run.stdout.contains("e99") && !run.stdout.contains("00000000000000000000"), "{run:?}");
    }
    let run = line(folder.path(), "show router.safetensors --route 1e308");
    assert!(run.code == 2 && run.stderr.contains("1e308 is not a price"), "{run:?}");
}

#[test]
fn json_keys_are_stable() {
    let folder = workshop();
    let shown = line(folder.path(), &format!("show router.safetensors {TASK} --json")).ok().json();
    has_keys(&shown, &["classes", "rows", "partition", "recalibrated", "cells"]);
    assert_eq!(shown["classes"], serde_json::json!(["cat", "dog", "owl"]));
    assert_eq!(shown["rows"], 300);
    assert_eq!(shown["partition"], "top-class:3");
    assert_eq!(shown["recalibrated"], false);
    let promise = &shown["promise"];
    let wanted =
        ["always", "cost", "identified", "loss", "loss_identified", "loss_standard_error", "shares", "standard_error"];
    assert_eq!(keys(promise), wanted);
    assert_eq!(keys(&promise["always"]), ["abstain", "predict", "route:expert"]);
    let cells = shown["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 9);
    for (i, cell) in cells.iter().enumerate() {
        let wanted = [
            "action",
            "cell",
            "centroid",
            "costs",
            "irreducible",
            "irreducible_identified",
            "margin",
            "name",
            "reason",
            "reducible",
            "rows",
            "support",
            "total",
        ];
        assert_eq!(keys(cell), wanted);
        assert_eq!(keys(&cell["costs"]), ["abstain", "predict", "route:expert"]);
        assert_eq!(cell["cell"], i);
        assert_eq!(cell["centroid"].as_array().unwrap().len(), 3);
        let number = |key: &str| cell[key].as_f64().unwrap();
        assert_eq!(cell["costs"]["predict"], cell["total"]);
        assert!((number("irreducible") + 0.05 - cell["costs"]["route:expert"].as_f64().unwrap()).abs() < 1e-12);
        assert!(number("margin") >= 0.0);
        // Two labels identify the Brier loss.
        let ends = cell["irreducible_identified"].as_array().unwrap();
        assert!(ends.len() == 2 && ends.iter().all(|end| (end.as_f64().unwrap() - number("irreducible")).abs() < 1e-9));
        assert!(["predict", "route:expert", "abstain"].contains(&cell["action"].as_str().unwrap()));
    }
}

/// The expected cost and its standard error are the same wherever they are shown.
#[test]
fn expected_cost_has_a_standard_error() {
    let folder = workshop();
    let task = "--route expert=0.02";
    let shown = line(folder.path(), &format!("show router.safetensors {task} --json")).ok().json();
    let number = |key: &str| shown["promise"][key].as_f64().unwrap();
    assert!(number("standard_error") > 0.0 && number("loss") < number("cost"), "{}", shown["promise"]);
    let printed = line(folder.path(), &format!("show router.safetensors {task}")).ok().stdout;
    let promised = format!("{:.4} ± {:.4}", number("cost"), number("standard_error"));
    assert!(printed.contains("Expected cost per query") && printed.contains(&promised), "{promised}: {printed}");
    // The calibration rows themselves, decided as queries.
    let decided = line(folder.path(), &format!("decide router.safetensors calibration.csv {task}")).ok().stderr;
    assert!(decided.contains(&format!("{:.4} ± ", number("cost"))), "{promised}: {decided}");
}

/// Where labels leave the irreducible loss open, the interval stands beside the estimate.
#[test]
fn identified_intervals_are_shown() {
    let folder = workshop();
    let task = "--loss cross-entropy --route expert=0.05";
    let shown = line(folder.path(), &format!("show router.safetensors {task} --json")).ok().json();
    let mut widest: f64 = 0.0;
    for cell in shown["cells"].as_array().unwrap() {
        let ends: Vec<f64> =
            cell["irreducible_identified"].as_array().unwrap().iter().filter_map(|x| x.as_f64()).collect();
        let estimate = cell["irreducible"].as_f64().unwrap();
        assert!(ends.len() == 2 && ends[0] <= estimate && estimate <= ends[1], "{cell}");
        widest = widest.max(ends[1] - ends[0]);
    }
    assert!(widest > 1e-3, "{widest}");
    let run = line(folder.path(), &format!("show router.safetensors {task}")).ok();
    assert!(run.stdout.contains("identified") && run.stdout.contains("however many rows"), "{run:?}");
    let brier = line(folder.path(), &format!("show router.safetensors {TASK}")).ok();
    assert!(!brier.stdout.contains("identified"), "{brier:?}");
    let refused = line(folder.path(), "show router.safetensors --estimator magic");
    assert!(refused.stderr.contains("auto"), "{refused:?}");
}

#[test]
fn show_without_a_task_shows_the_router() {
    let folder = workshop();
    let shown = line(folder.path(), "show router.safetensors --json").ok().json();
    assert_eq!(keys(&shown["cells"][0]), ["cell", "centroid", "name", "rows", "support"]);
    let run = line(folder.path(), "show router.safetensors").ok();
    assert!(run.stdout.contains("mean cat") && run.stdout.contains("support"), "{run:?}");
}

#[test]
fn unknown_numbers_are_null() {
    let folder = workshop();
    let path = folder.path();
    // No row has its peak at c: one empty cell.
    fs::write(
        path.join("t.csv"),
        "prob_a,prob_b,prob_c,votes_a,votes_b,votes_c\n0.6,0.3,0.1,2,1,0\n0.2,0.7,0.1,1,2,0\n",
    )
    .unwrap();
    line(path, "calibrate t.csv -o t.st --partition top-class:1").ok();
    let shown = line(path, &format!("show t.st {TASK} --json")).ok().json();
    let empty = &shown["cells"][2];
    assert_eq!((empty["support"].as_str(), empty["rows"].as_u64()), (Some("empty"), Some(0)));
    for key in ["irreducible", "reducible", "total", "action", "margin", "centroid"] {
        assert!(empty[key].is_null(), "{key}: {empty}");
    }
    assert!(empty["costs"]["predict"].is_null());

    // One label per item: the decomposition is not identified, the loss of predicting is.
    fs::write(path.join("one.csv"), "prob_a,prob_b,votes_a,votes_b\n0.6,0.4,1,0\n0.6,0.4,0,1\n").unwrap();
    line(path, "calibrate one.csv --partition top-class:10 -o one.st").ok();
    let shown = line(path, "show one.st --route 0.1 --json").ok().json();
    let cell = &shown["cells"][0];
    assert!(cell["irreducible"].is_null() && cell["costs"]["route:oracle"].is_null(), "{cell}");
    assert!(cell["total"].is_f64() && cell["irreducible_bounds"].is_array(), "{cell}");
    assert_eq!(cell["action"], "undetermined");
}

#[test]
fn task_file_and_flags_give_the_same_result() {
    let folder = workshop();
    let path = folder.path();
    fs::write(path.join("task.toml"), "abstain = 0.3\nloss = \"brier\"\n[[route]]\nname = \"expert\"\ncost = 0.05\n")
        .unwrap();
    let by_file = line(path, "show router.safetensors --task task.toml --json").ok();
    let by_flags = line(path, &format!("show router.safetensors {TASK} --json")).ok();
    assert_eq!(by_file.stdout, by_flags.stdout);
}

#[test]
fn cells_can_be_sorted() {
    let folder = workshop();
    let shown = line(folder.path(), &format!("show router.safetensors {TASK} --sort margin --json")).ok().json();
    let margins: Vec<f64> = shown["cells"].as_array().unwrap().iter().map(|c| c["margin"].as_f64().unwrap()).collect();
    assert!(margins.is_sorted(), "{margins:?}");
}

#[test]
fn task_does_not_change_the_router() {
    let folder = workshop();
    let before = fs::read(folder.path().join("router.safetensors")).unwrap();
    for loss in ["brier", "cross-entropy", "zero-one"] {
        line(folder.path(), &format!("show router.safetensors --loss {loss} --abstain 0.1")).ok();
    }
    assert_eq!(fs::read(folder.path().join("router.safetensors")).unwrap(), before);
}

#[test]
fn tables_are_aligned() {
    let folder = workshop();
    let run = line(folder.path(), &format!("show router.safetensors {TASK}")).ok();
    let lines: Vec<&str> = run.stdout.lines().collect();
    let header = lines.iter().position(|line| line.contains("cell  name")).unwrap();
    let column = lines[header].find("action").unwrap();
    for line in &lines[header + 1..header + 10] {
        let chars: Vec<char> = line.chars().collect();
        assert!(chars[column - 1] == ' ' && chars[column] != ' ', "{line}");
    }
}

/// On a narrow terminal no line is broken by it, and nothing but the ends of texts is lost.
#[test]
fn tables_fit_the_terminal() {
    let folder = workshop();
    for (columns, arguments) in [
        (80, "show router.safetensors --route expert=0.05 --abstain 0.3"),
        (50, "show router.safetensors --route expert=0.05 --abstain 0.3 --confidence 0.95"),
        (60, "diagnose calibration.csv --partition top-class:3 --route 0.05"),
        (60, "evaluate router.safetensors heldout.csv --route 0.05 --abstain 0.4 --sweep abstain=0.3:0.5:0.1"),
    ] {
        let run = |columns: &str| {
            let mut command = command();
            command.current_dir(folder.path()).args(arguments.split(' ')).env("COLUMNS", columns);
            finish(&mut command).ok().stdout
        };
        // Command lines are to be copied, and plots have a width of their own.
        let kept = |line: &&str| {
            line.starts_with("  ")
                && !line.contains("pointsman ")
                && !line.contains(['┤', '└', '●'])
                && !line.contains("100 %")
        };
        let widest = |text: &str| text.lines().filter(kept).map(|line| line.chars().count()).max().unwrap();
        assert!(widest(&run(&columns.to_string())) <= columns, "{arguments}: {}", run(&columns.to_string()));
        assert!(widest(&run("")) > columns, "{arguments}: there is nothing to cut");
    }
}

#[test]
fn flags_override_the_task_file() {
    let folder = workshop();
    let task = "loss = \"zero-one\"\nabstain = 0.4\n[[route]]\nname = \"expert\"\ncost = 0.2\nkind = \"panel\"\nexperts = 3\n\
                aggregate = \"plurality\"\n";
    fs::write(folder.path().join("task.toml"), task).unwrap();
    let show = |flags: &str| line(folder.path(), &format!("show router.safetensors --json --task task.toml{flags}"));
    let summary = |flags: &str| show(flags).ok().json()["task"].clone();
    let plain = summary("");
    assert_eq!((&plain["loss"], &plain["routes"][0]["cost"]), (&"zero-one".into(), &0.2.into()), "{plain}");
    let cheaper = summary(" --route expert=0.05");
    // A price alone leaves the kind of oracle as it is.
    assert_eq!(cheaper["routes"][0]["kind"], plain["routes"][0]["kind"]);
    assert_eq!((&cheaper["routes"][0]["cost"], &cheaper["abstain"]), (&0.05.into(), &0.4.into()));
    let other = summary(" --route expert=0.05,bayes --route judge=0.01 --abstain 0.3 --loss brier --budget 0.1");
    assert_eq!((&other["routes"][0]["kind"], &other["routes"][1]["name"]), (&"bayes".into(), &"judge".into()));
    assert_eq!((&other["abstain"], &other["loss"], &other["budget"]), (&0.3.into(), &"brier".into(), &0.1.into()));
    let twice = show(" --route expert=0.05 --route expert=0.06");
    assert!(twice.code == 2 && twice.stderr.contains("two --route flags are called \"expert\""), "{twice:?}");
}

/// The schema is of what show prints without --explain.
#[test]
fn schema_says_that_explanations_have_another_form() {
    let folder = workshop();
    let schema = fs::read_to_string(repository().join("docs/show.schema.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let explained = line(folder.path(), &format!("show router.safetensors {TASK} --explain 0 --json")).ok().json();
    let required = schema["required"].as_array().unwrap();
    let is_of_schema = required.iter().all(|key| !explained[key.as_str().unwrap()].is_null());
    assert!(is_of_schema || schema["description"].as_str().unwrap().contains("without --explain"), "{explained}");
}
