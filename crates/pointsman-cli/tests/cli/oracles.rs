//! Panels and measured oracles on the command line and in task files.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::second_round::first_round;
use crate::{has_keys, keys, line, parse_csv, real_data, repository, workshop, world};

const JURIES: &str =
    "--route one=0.02,panel:m=1 --route three=0.06,panel:m=3,aggregate=mean --route copy=0.01,measured --abstain 0.4";

/// Tables with the predictions of a model called `copy`, which are the weak ones, and a router.
fn measured() -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, rows, seed) in [("calibration.csv", 300, 1), ("heldout.csv", 200, 2)] {
        let rows = world::rows(rows, seed);
        let csv = rows.to_csv();
        let mut lines = csv.lines();
        let classes = world::CLASSES.map(|class| format!("oracle_copy_{class}")).join(",");
        let mut text = format!("{},{classes}\n", lines.next().unwrap());
        for (line, p) in lines.zip(&rows.probs) {
            text += &format!("{line},{},{},{}\n", p[0], p[1], p[2]);
        }
        fs::write(folder.path().join(name), text).unwrap();
    }
    line(folder.path(), "calibrate calibration.csv -o router.safetensors --partition top-class:3").ok();
    folder
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// What `show` says of each panel is the expected cost of a task without the others.
#[test]
fn each_panel_is_priced_without_the_others() {
    let folder = workshop();
    let show =
        |routes: &str| line(folder.path(), &format!("show router.safetensors {routes} --abstain 0.5 --json")).ok();
    let [one, three] = ["--route one=0.01,panel:m=1", "--route three=0.03,panel:m=3"];
    let both = show(&format!("{one} {three}")).json();
    for (place, (alone, experts)) in [(one, 1), (three, 3)].into_iter().enumerate() {
        let panel = &both["panels"][place];
        assert_eq!(panel["experts"], experts);
        for key in ["cost", "standard_error"] {
            assert_eq!(panel[key], show(alone).json()["promise"][key], "{panel}");
        }
        assert!(show(alone).json().get("panels").is_none(), "one panel has nothing to be compared with");
    }
    let words =
        |routes: &str| line(folder.path(), &format!("show router.safetensors {routes} --abstain 0.5")).ok().words();
    let text = words(&format!("{one} {three}"));
    let cost = |place: usize, key: &str| number(&both["panels"][place][key]);
    for wanted in [
        "How many experts? If only one of these panels could be asked".to_owned(),
        "in Brier points,".to_owned(),
        format!("{:.4} ± {:.4} for one (1 expert)", cost(0, "cost"), cost(0, "standard_error")),
    ] {
        assert!(text.contains(&wanted), "the output lacks: {wanted}\n{text}");
    }
    // Of two panels that hardly differ none is recommended, and panels that lose more than abstaining are not asked.
    let alike = words("--route one=0.01,panel:m=20 --route other=0.0101,panel:m=20");
    assert!(alike.contains("Which panel?") && alike.contains("do not show which of one, other costs least"), "{alike}");
    assert!(!alike.contains("How many") && !alike.contains("offer one panel"), "{alike}");
    let costly = words("--route one=0.01,panel:m=1 --route other=0.0101,panel:m=1");
    assert!(costly.contains("no panel is worth its price, and none would be asked"), "{costly}");
}

#[test]
fn every_route_has_its_own_cost() {
    let folder = measured();
    let shown = line(folder.path(), &format!("show router.safetensors {JURIES} --json")).ok().json();
    let kinds: Vec<&Value> = shown["task"]["routes"].as_array().unwrap().iter().map(|route| &route["kind"]).collect();
    assert_eq!(kinds, ["panel:m=1,aggregate=mean", "panel:m=3,aggregate=mean", "measured"]);
    for cell in shown["cells"].as_array().unwrap() {
        let costs = &cell["costs"];
        assert_eq!(keys(costs), ["abstain", "predict", "route:copy", "route:one", "route:three"]);
        let irreducible = number(&cell["irreducible"]);
        // With the Brier loss m experts lose 1 + 1/m times what is irreducible.
        assert!((number(&costs["route:one"]) - 0.02 - 2.0 * irreducible).abs() < 1e-9, "{cell}");
        assert!((number(&costs["route:three"]) - 0.06 - 4.0 / 3.0 * irreducible).abs() < 1e-9, "{cell}");
        assert!((number(&costs["route:copy"]) - 0.01 - number(&cell["total"])).abs() < 1e-12, "{cell}");
    }
    let run = line(folder.path(), &format!("show router.safetensors {JURIES}")).ok();
    assert!(run.stdout.contains("the loss of its oracle + its price"), "{run:?}");
    assert!(
        run.stdout.contains("--route one=0.02,panel:m=1,aggregate=mean"),
        "the next command keeps the kinds: {run:?}"
    );
    let run = line(folder.path(), &format!("decide router.safetensors heldout.csv {JURIES} --output-format csv")).ok();
    let (header, rows) = parse_csv(&run.stdout);
    for name in ["cost_route_one", "cost_route_three", "cost_route_copy"] {
        let column = header.iter().position(|other| other == name).unwrap();
        assert!(rows.iter().all(|row| row[column].parse::<f64>().is_ok()), "{name}");
    }
}

#[test]
fn every_route_is_evaluated_on_held_out_rows() {
    let folder = measured();
    let report =
        line(folder.path(), &format!("evaluate router.safetensors heldout.csv {JURIES} --json -o out")).ok().json();
    has_keys(&report["mean_cost"], &["always-route:one", "always-route:three", "always-route:copy"]);
    let cost = |name: &str| number(&report["mean_cost"][name]);
    assert!((cost("always-route:copy") - 0.01 - cost("always-predict")).abs() < 1e-12);
    assert!(cost("always-route:one") - 0.02 > cost("always-route:three") - 0.06);
    assert!(cost("cell-optimal") <= cost("router") + 1e-12);
    assert!(fs::read_to_string(folder.path().join("out/report.html")).unwrap().starts_with("<!DOCTYPE html>"));
    line(folder.path(), &format!("evaluate router.safetensors heldout.csv {JURIES} --sweep route:three=0:0.2:0.05"))
        .ok();
}

#[test]
fn task_file_and_flags_give_the_same_result() {
    let folder = measured();
    let task = r#"
        abstain = 0.4
        [[route]]
        name = "one"
        cost = 0.02
        kind = "panel"
        experts = 1
        [[route]]
        name = "three"
        cost = 0.06
        kind = "panel"
        experts = 3
        aggregate = "mean"
        [[route]]
        name = "copy"
        cost = 0.01
        kind = "measured"
    "#;
    fs::write(folder.path().join("task.toml"), task).unwrap();
    let by_file = line(folder.path(), "show router.safetensors --task task.toml --json").ok();
    let by_flags = line(folder.path(), &format!("show router.safetensors {JURIES} --json")).ok();
    assert_eq!(by_file.stdout, by_flags.stdout);
}

#[track_caller]
fn refused(folder: &Path, command: &str, wanted: &[&str]) {
    let run = line(folder, command);
    assert_eq!(run.code, 2, "{run:?}");
    for text in wanted {
        assert!(run.stderr.contains(text), "{text}: {run:?}");
    }
}

#[test]
fn impossible_oracles_are_refused() {
    let folder = measured();
    let path = folder.path();
    let show = "show router.safetensors";
    refused(path, &format!("{show} --route gpt=0.1,measured"), &["router.safetensors: ", "oracle_gpt_cat", "copy"]);
    refused(path, &format!("{show} --route 0.1,panel:m=0"), &["from 1 to 1000"]);
    refused(path, &format!("{show} --route 0.1,panel:m=5000"), &["from 1 to 1000"]);
    refused(path, &format!("{show} --route 0.1,panel:m=3,aggregate=median"), &["mean, plurality or laplace"]);
    refused(path, &format!("{show} --route 0.1,psychic"), &["unknown kind of oracle", "measured"]);
    refused(path, &format!("{show} --loss cross-entropy --route 0.1,panel:m=3"), &["use aggregate=laplace"]);
    line(path, &format!("{show} --loss cross-entropy --route 0.1,panel:m=3,aggregate=laplace,smoothing=0.5")).ok();
    // Held-out rows without the oracle's predictions.
    world::rows(50, 3).write_csv(&path.join("bare.csv"));
    let evaluate = "evaluate router.safetensors bare.csv --route copy=0.1,measured";
    refused(path, evaluate, &["bare.csv: ", "oracle_copy_cat"]);
    // Queries need none: the costs are known.
    line(path, "decide router.safetensors bare.csv --route copy=0.1,measured --output-format csv").ok();
}

/// One label per item: the loss of a panel has bounds, the measured loss of an oracle has an estimate.
#[test]
fn one_label_per_item_gives_bounds_for_panels_only() {
    let folder = TempDir::new().unwrap();
    world::rows(300, 1).with_one_label().write_csv(&folder.path().join("one.csv"));
    line(folder.path(), "calibrate one.csv -o one.st --partition top-class:1").ok();
    let shown = line(folder.path(), "show one.st --route jury=0.1,panel:m=3 --loss zero-one --json").ok().json();
    for cell in shown["cells"].as_array().unwrap() {
        assert!(cell["costs"]["route:jury"].is_null() && cell["costs"]["predict"].is_f64(), "{cell}");
        let (low, high) = (&cell["costs_low"]["route:jury"], &cell["costs_high"]["route:jury"]);
        assert!(number(low) < number(high) && cell["action"] != "route:jury", "{cell}");
    }
    assert_eq!(shown["cells"][1]["action"], "undetermined", "{shown}");
}

/// The figures in the book are those of the program.
#[test]
fn panel_size_that_pays_is_that_of_the_book() {
    let page = fs::read_to_string(repository().join("docs/src/oracles.md")).unwrap();
    let folder = TempDir::new().unwrap();
    let task = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    fs::write(folder.path().join("task.toml"), task).unwrap();
    line(folder.path(), "demo -o world").ok();
    let calibrate = "calibrate world/calibration.csv --partition features:x_position=40 -o router.safetensors";
    line(folder.path(), calibrate).ok();
    let evaluate = "evaluate router.safetensors world/heldout.csv --task task.toml --no-calibration-error --json";
    let report = line(folder.path(), evaluate).ok().json();
    let cost = |name: &str| number(&report["mean_cost"][name]);
    let best = ["one", "three", "five", "nine"].map(|size| cost(&format!("always-route:{size}")));
    let best = best.into_iter().fold(f64::INFINITY, f64::min);
    assert_eq!(best, cost("always-route:five"));
    assert!(cost("router") < best && cost("router") < cost("always-predict"));
    let text = page.replace('\n', " ");
    let shares = &report["shares"];
    for wanted in [
        format!("that of five, at {best:.4} errors per query; Pointsman costs {:.4}.", cost("router")),
        format!("predicts {:.1} % of the queries", 100.0 * number(&shares["predict"])),
        format!("gives {:.1} % to one expert", 100.0 * number(&shares["route:one"])),
        format!("{:.1} % to five", 100.0 * number(&shares["route:five"])),
        format!("{:.1} % to nine", 100.0 * number(&shares["route:nine"])),
        format!("is {:.4} above the best", number(&report["regret"]["cell-optimal"])),
    ] {
        assert!(text.contains(&wanted), "the book lacks: {wanted}");
    }
}

/// The same prices on real disagreement, if the data are here: the router beats every panel that is asked for everything.
#[test]
fn panel_size_that_pays_on_real_labels() {
    let page = fs::read_to_string(repository().join("docs/src/oracles.md")).unwrap();
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("task.toml"), page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap())
        .unwrap();
    for data in ["chaosnli", "cifar10h", "snli"] {
        let Some(table) = real_data(&format!("{data}.npz")) else { continue };
        let table = table.canonicalize().unwrap();
        let table = table.to_str().unwrap();
        line(folder.path(), &format!("calibrate {table} --where split=0 --partition top-class:10 -o r.safetensors"))
            .ok();
        let evaluate =
            format!("evaluate r.safetensors {table} --where split=1 --task task.toml --no-calibration-error --json");
        let report = line(folder.path(), &evaluate).ok().json();
        let cost = |name: &str| number(&report["corrected_cost"][name]);
        let always = ["predict", "route:one", "route:three", "route:five", "route:nine"];
        let costs = always.map(|name| cost(&format!("always-{name}")));
        assert!(costs.iter().all(|other| cost("router") < *other), "{data}: {report}");
        let cells: Vec<String> = costs.iter().map(|cost| format!("{cost:.4}")).collect();
        let row = format!("| {data} | {} | **{:.4}** |", cells.join(" | "), cost("router"));
        eprintln!("{row}");
        assert!(page.contains(&row), "the book lacks: {row}");
    }
}

#[test]
fn route_without_kind_warns_about_unused_answers() {
    let folder = measured();
    let warning = "its answers to the calibration rows are known: to use them write --route copy=0.02,measured";
    for command in [
        "show router.safetensors",
        "decide router.safetensors heldout.csv",
        "evaluate router.safetensors heldout.csv --no-calibration-error",
        "plan router.safetensors",
    ] {
        let run = line(folder.path(), &format!("{command} --route copy=0.02")).ok();
        assert!(run.stderr.contains(warning), "{run:?}");
        let run = line(folder.path(), &format!("{command} --route copy=0.02,measured --route other=0.02")).ok();
        assert!(!run.stderr.contains("are known"), "{run:?}");
    }
}

/// Numbers under `oracle_` are not taken for answers, which is said; the flag in the message reads them.
#[test]
fn columns_of_numbers_are_answers_only_with_the_flag_in_the_warning() {
    let folder = TempDir::new().unwrap();
    let mut text = "prob_cat,prob_dog,votes_cat,votes_dog,oracle_seconds\n".to_owned();
    (0..60).for_each(|row| text += &format!("0.{},0.{},2,1,{}\n", 100 + row, 900 - row, row % 2));
    fs::write(folder.path().join("table.csv"), text).unwrap();
    let calibrate = "calibrate table.csv --partition confidence:1 -o r.safetensors";
    let run = line(folder.path(), calibrate).ok();
    let flag = "--columns oracles=oracle_";
    assert!(run.stderr.contains("column oracle_seconds was not read") && run.stderr.contains(flag), "{run:?}");
    assert!(!run.stdout.contains("answers"), "{run:?}");
    let run = line(folder.path(), &format!("{calibrate} {flag}")).ok();
    assert!(!run.stderr.contains("was not read") && run.words().contains("answers of seconds"), "{run:?}");
}

/// Panels of more experts than labels less one are named in one sentence. The Brier loss of shares is known from two labels per item.
#[test]
fn panels_of_unknown_cost_are_named_together() {
    let (folder, _) = first_round();
    let show = |loss: &str| {
        let panels = "--route four=0.04,panel:m=4 --route five=0.05,panel:m=5";
        line(folder.path(), &format!("show router.safetensors --loss {loss} {panels}")).ok().words()
    };
    let words = show("zero-one");
    assert!(words.contains("do not identify the cost of four, five: four takes 5 labels per item"), "{words}");
    assert_eq!(words.matches("do not identify the cost").count(), 1, "{words}");
    assert!(!show("brier").contains("do not identify the cost"));
}
