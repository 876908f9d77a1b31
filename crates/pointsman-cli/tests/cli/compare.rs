//! `compare`: routers and tasks on one held-out table.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::{has_keys, line, workshop, world};

/// The workshop with a second router and two tasks.
fn shop() -> tempfile::TempDir {
    let folder = workshop();
    let path = folder.path();
    line(path, "calibrate calibration.csv -o fine.safetensors --partition features:x_length=5").ok();
    fs::write(path.join("cheap.toml"), "abstain = 0.6\n[[route]]\nname = \"expert\"\ncost = 0.02\n").unwrap();
    fs::write(path.join("dear.toml"), "abstain = 0.6\n[[route]]\nname = \"expert\"\ncost = 0.3\n").unwrap();
    folder
}

fn policies(found: &Value) -> Vec<&str> {
    found["policies"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect()
}

/// Costs and standard errors are those of `evaluate`; the difference is that of the costs.
#[test]
fn routers_are_compared_row_by_row() {
    let folder = shop();
    let path = folder.path();
    let found =
        line(path, "compare router.safetensors fine.safetensors heldout.csv --route expert=0.05 --json").ok().json();
    has_keys(&found, &["rows", "truth", "baseline", "policies"]);
    assert_eq!((found["rows"].as_u64(), found["baseline"].as_str()), (Some(200), Some("router.safetensors")));
    assert_eq!(policies(&found), ["router.safetensors", "fine.safetensors"]);
    for it in found["policies"].as_array().unwrap() {
        let name = it["name"].as_str().unwrap();
        let alone = line(path, &format!("evaluate {name} heldout.csv --route expert=0.05 --json")).ok().json();
        assert_eq!(it["cost"], alone["corrected_cost"]["router"]);
        assert_eq!(it["standard_error"], alone["corrected_standard_error"]["router"]);
        assert_eq!(it["shares"], alone["shares"]);
    }
    let [first, second] = [0, 1].map(|place| &found["policies"][place]);
    let difference = second["cost"].as_f64().unwrap() - first["cost"].as_f64().unwrap();
    assert!((second["difference"]["estimate"].as_f64().unwrap() - difference).abs() < 1e-12, "{second}");
    assert!(first["difference"].is_null() && second["difference"]["standard_error"].as_f64().unwrap() > 0.0);
    let run = line(path, "compare router.safetensors fine.safetensors heldout.csv --route expert=0.05").ok();
    for text in [
        "2 policies on 200 held-out rows",
        "Cost per query, in Brier points (brier)",
        "difference",
        "baseline",
        "route:expert",
        "47.0 %",
        "fine.safetensors",
    ] {
        assert!(run.stdout.contains(text), "{text}: {run:?}");
    }
}

/// Task files may stand anywhere, or come by --task; flags override all of them.
#[test]
fn tasks_are_compared_by_file() {
    let folder = shop();
    let path = folder.path();
    let json = |arguments: &str| line(path, &format!("compare {arguments} --json")).ok().json();
    let wanted = json("router.safetensors heldout.csv cheap.toml dear.toml");
    assert_eq!(policies(&wanted), ["cheap.toml", "dear.toml"]);
    let cost = |place: usize| wanted["policies"][place]["cost"].as_f64().unwrap();
    let difference = wanted["policies"][1]["difference"]["estimate"].as_f64().unwrap();
    assert!((difference - (cost(1) - cost(0))).abs() < 1e-12, "{wanted}");
    for same in [
        "cheap.toml router.safetensors dear.toml heldout.csv",
        "router.safetensors heldout.csv --task cheap.toml --task dear.toml",
        "router.safetensors heldout.csv cheap.toml --task dear.toml",
    ] {
        assert_eq!(json(same), wanted, "{same}");
    }
    let other = json("router.safetensors heldout.csv cheap.toml dear.toml --baseline dear");
    assert_eq!(other["baseline"], "dear.toml");
    let estimate = |found: &Value, place: usize| found["policies"][place]["difference"]["estimate"].as_f64();
    assert_eq!(estimate(&other, 0), estimate(&wanted, 1).map(|x| -x));
    let grid = json("router.safetensors fine.safetensors heldout.csv cheap.toml dear.toml --route expert=0.1");
    assert_eq!(policies(&grid)[2..], ["fine.safetensors+cheap.toml", "fine.safetensors+dear.toml"]);
    assert_eq!(estimate(&grid, 1), Some(0.0), "the flag makes the tasks one");
    let named = json("router.safetensors fine.safetensors heldout.csv cheap.toml dear.toml --baseline fine+dear");
    assert_eq!(named["baseline"], "fine.safetensors+dear.toml");
    let some = json("router.safetensors heldout.csv cheap.toml dear.toml --where split=1");
    assert_eq!(some["rows"], 100);
}

#[test]
fn other_losses_are_shown_without_a_difference() {
    let folder = shop();
    let path = folder.path();
    fs::write(path.join("errors.toml"), "loss = \"zero-one\"\n[[route]]\nname = \"expert\"\ncost = 0.1\n").unwrap();
    let run = line(path, "compare router.safetensors heldout.csv cheap.toml dear.toml errors.toml").ok();
    assert!(run.stdout.contains("have no difference") && run.stdout.contains("zero-one"), "{run:?}");
    let found = line(path, "compare router.safetensors heldout.csv cheap.toml errors.toml --json").ok().json();
    let it = &found["policies"][1];
    assert_eq!((it["same_loss"].as_bool(), it["unit"].as_str()), (Some(false), Some("errors")));
    assert!(it["difference"].is_null() && it["shares"]["predict"].is_number() && it["cost"].is_number());
}

#[test]
fn classes_are_reordered_or_their_differences_listed() {
    let folder = shop();
    let path = folder.path();
    let text = world::rows(300, 1).to_csv();
    fs::write(path.join("eels.csv"), text.replace("_owl", "_eel")).unwrap();
    line(path, "calibrate eels.csv -o eels.st --partition top-class:3").ok();
    let run = line(path, "compare router.safetensors eels.st heldout.csv --route 0.05");
    let words =
        "heldout.csv: has other classes than the router eels.st: only the table has owl, only the router has eel";
    assert!(run.code == 2 && run.stderr.contains(words) && !run.stderr.contains("cat"), "{run:?}");
    let swap = |line: &str| {
        let mut cells: Vec<&str> = line.split(',').collect();
        cells.swap(1, 3);
        cells.join(",")
    };
    fs::write(path.join("swapped.csv"), text.lines().map(swap).collect::<Vec<_>>().join("\n")).unwrap();
    line(path, "calibrate swapped.csv -o swapped.st --partition top-class:3").ok();
    let found = line(path, "compare router.safetensors swapped.st heldout.csv --route 0.05 --json").ok().json();
    let estimate = found["policies"][1]["difference"]["estimate"].as_f64().unwrap();
    assert!(estimate.abs() < 1e-9, "{found}");
}

#[test]
fn incomparable_inputs_are_refused() {
    let folder = shop();
    let path = folder.path();
    for (arguments, reason) in [
        ("router.safetensors heldout.csv", "one router under one task"),
        ("router.safetensors heldout.csv cheap.toml", "one router under one task"),
        ("heldout.csv", "routers and, after them, one held-out table"),
        ("cheap.toml dear.toml", "routers and, after them, one held-out table"),
        (
            "heldout.csv router.safetensors fine.safetensors",
            "heldout.csv: looks like a table but is given among the routers",
        ),
        ("router.safetensors fine.safetensors ./fine.safetensors", "the table is missing"),
        ("router.safetensors fine.safetensors", "the table is missing"),
        ("router.safetensors router.safetensors heldout.csv", "two policies are called \"router.safetensors\""),
        (
            "router.safetensors fine.safetensors heldout.csv --baseline x",
            "--baseline x: write one of router.safetensors, fine",
        ),
        ("router.safetensors missing.st heldout.csv", "missing.st: no such file"),
        (
            "router.safetensors fine.safetensors heldout.csv --annotations - --table fine=heldout.csv",
            "--annotations -: the labels are read once per table",
        ),
        ("router.safetensors heldout.csv cheap.toml missing.toml", "missing.toml: no such file"),
    ] {
        let run = line(path, &format!("compare {arguments} --json"));
        assert!(run.code == 2 && run.stderr.contains(reason) && run.stdout.is_empty(), "{arguments}: {run:?}");
    }
}

/// The range that is printed first is the one that the verdict is based on.
#[test]
fn verdict_and_range_agree_if_labels_leave_the_difference_open() {
    let folder = shop();
    let path = folder.path();
    let number = |text: &str| text.trim_end_matches([':', ',', '.']).replace('\u{2212}', "-").parse::<f64>().unwrap();
    let mut open_differences = 0;
    let mut verdicts = BTreeSet::new();
    let prices = ["0.02", "0.04", "0.06", "0.08", "0.1", "0.15"];
    let routers =
        prices.map(|price| format!("router.safetensors fine.safetensors heldout.csv --loss zero-one --route {price}"));
    // Under the Brier loss labels leave nothing open, so that a large difference is certain.
    let tasks = "router.safetensors heldout.csv free.toml never.toml".to_owned();
    for (name, cost) in [("free", 0.0), ("never", 1.0)] {
        fs::write(path.join(format!("{name}.toml")), format!("[[route]]\nname = \"expert\"\ncost = {cost}\n")).unwrap();
    }
    for arguments in routers.into_iter().chain([tasks]) {
        let compare = format!("compare {arguments}");
        let found = line(path, &format!("{compare} --json")).ok().json();
        let difference = &found["policies"][1]["difference"];
        let pair = |name: &str| [0, 1].map(|end| difference[name][end].as_f64().unwrap_or(f64::NAN));
        let value = |name: &str| difference[name].as_f64().unwrap_or(f64::NAN);
        let (interval, open) = (pair("interval"), pair("identified"));
        let widening = open.map(|end| if end.is_nan() { 0.0 } else { end - value("estimate") });
        let range = [0, 1].map(|end| interval[end] + widening[end]);
        let text = line(path, &compare).ok().words();
        // Equal policies have no range, and from few rows no difference is certain, whatever its range.
        if !text.contains("at the same cost") && !text.contains("to say which costs less") {
            let is_certain = range[1] < 0.0 || range[0] > 0.0;
            assert_ne!(is_certain, text.contains("do not show which costs less"), "{text}");
            verdicts.insert(is_certain);
        }
        if text.contains("at the same cost") || widening[1] - widening[0] < 0.2 * value("standard_error") {
            continue;
        }
        open_differences += 1;
        let said = text.split_once("95 % range of the difference ").unwrap_or_else(|| panic!("{text}")).1;
        let words: Vec<&str> = said.split(' ').collect();
        for (end, place) in [(0, 0), (1, 2)] {
            assert!((number(words[place]) - range[end]).abs() < 1e-3, "{said}: {range:?}");
        }
        assert!(said.contains("the sampling interval") && said.contains("leave open"), "{said}");
    }
    assert!(open_differences > 0);
    assert_eq!(verdicts.len(), 2, "one difference is certain and another is not: {verdicts:?}");
}

/// A router of another version of the model gets that version's predictions; rows are matched by id. Its cost is that of `evaluate`.
#[test]
fn routers_of_two_models_are_compared_on_a_table_each() {
    let folder = shop();
    let path = folder.path();
    world::rows(200, 2).write_csv(&path.join("old.csv"));
    // The same items in another order, with surer predictions.
    let mut new = world::rows(200, 2).reversed();
    for probs in &mut new.probs {
        let squares = probs.map(|p| p * p);
        *probs = squares.map(|square| square / squares.iter().sum::<f64>());
    }
    new.write_csv(&path.join("new.csv"));
    let compare = "compare router.safetensors fine.safetensors old.csv --route expert=0.05";
    let found = line(path, &format!("{compare} --table fine=new.csv --json")).ok().json();
    for (it, table) in found["policies"].as_array().unwrap().iter().zip(["old.csv", "new.csv"]) {
        let name = it["name"].as_str().unwrap();
        let alone = line(path, &format!("evaluate {name} {table} --route expert=0.05 --json")).ok().json();
        let [cost, expected] = [&it["cost"], &alone["corrected_cost"]["router"]].map(|value| value.as_f64().unwrap());
        assert!((cost - expected).abs() < 1e-12, "{name}: {cost} and {expected}");
    }
    let [first, second] = [0, 1].map(|place| found["policies"][place]["cost"].as_f64().unwrap());
    let difference = found["policies"][1]["difference"]["estimate"].as_f64().unwrap();
    assert!((difference - (second - first)).abs() < 1e-12 && difference != 0.0, "{difference}");

    // The labels may be left out.
    let text = new.to_csv();
    let unlabelled: Vec<String> = text
        .lines()
        .map(|line| {
            let values: Vec<&str> = line.split(',').collect();
            [&values[..4], &values[7..]].concat().join(",")
        })
        .collect();
    fs::write(path.join("unlabelled.csv"), unlabelled.join("\n")).unwrap();
    let again = line(path, &format!("{compare} --table fine=unlabelled.csv --json")).ok().json();
    assert_eq!(again["policies"], found["policies"]);
    // The predictions of the other model are noticed.
    let forgotten = line(path, &format!("{compare} --json").replace("old.csv", "new.csv")).ok();
    assert!(forgotten.stderr.contains("router.safetensors: traffic has moved"), "{forgotten:?}");
    assert!(forgotten.stderr.contains("--table router=FILE"), "{forgotten:?}");
    let without_last = text.trim_end().rsplit_once('\n').unwrap().0;
    fs::write(path.join("fewer.csv"), without_last).unwrap();
    fs::write(path.join("without.csv"), text.replacen("id,", "name,", 1)).unwrap();
    for (flags, why) in [
        ("--table fine=fewer.csv", "fewer.csv: has no row with the id \"q0\""),
        ("--table fine=without.csv", "without.csv: the rows of old.csv and without.csv are matched by id"),
        ("--table nobody=new.csv", "--table nobody=new.csv: write one of the routers"),
        ("--table fine=new.csv --table fine.safetensors=new.csv", "this router has a table already"),
        ("--table new.csv", "write ROUTER=FILE"),
    ] {
        let refused = line(path, &format!("{compare} {flags}"));
        assert!(refused.stderr.contains(why), "{flags}: {refused:?}");
    }
}

/// Caps are stated as `evaluate` states them, for the policies that have the capped route.
#[test]
fn caps_are_stated_with_their_cost() {
    let folder = shop();
    let path = folder.path();
    let task = "--route expert=0.02 --abstain 0.6 --cap expert=10";
    let compare = format!("compare router.safetensors fine.safetensors heldout.csv {task}");
    let (found, text) = (line(path, &format!("{compare} --json")).ok().json(), line(path, &compare).ok().words());
    for it in found["policies"].as_array().unwrap() {
        let name = it["name"].as_str().unwrap();
        let alone = line(path, &format!("evaluate {name} heldout.csv {task} --json")).ok().json();
        has_keys(it, &["caps", "capped"]);
        assert_eq!((&it["caps"], &it["capped"]), (&alone["caps"], &alone["capped"]), "{name}");
        assert_eq!((&it["caps"][0]["most"], &it["caps"][0]["granted"]), (&10.into(), &10.into()), "{it}");
        let [wanted, moved] = [&it["caps"][0]["wanted"], &it["capped"]["moved"]].map(|n| n.as_u64().unwrap());
        assert_eq!(moved, wanted - 10, "{it}");
        let said = format!(
            "{name}: Cap on expert: at most 10 of these rows; routed there: {wanted} without the cap, 10 with it."
        );
        assert!(text.contains(&said), "{said} in {text}");
        let said = format!("{name}: {moved} rows take the next-best action instead, which ");
        assert!(text.contains(&said), "{said} in {text}");
    }
    fs::write(path.join("alone.toml"), "abstain = 0.6\n").unwrap();
    let one = "compare router.safetensors heldout.csv cheap.toml alone.toml --cap expert=10 --json";
    let found = line(path, one).ok().json();
    assert!(found["policies"][0]["caps"].is_array() && found["policies"][1]["caps"].is_null(), "{found}");
    let free = line(path, &format!("{} --json", compare.replace(" --cap expert=10", ""))).ok().json();
    assert!(free["policies"][0]["caps"].is_null() && free["policies"][0]["capped"].is_null(), "{free}");
}
