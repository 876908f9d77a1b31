//! Evaluations on held-out rows.

use std::fs;
use std::path::Path;

use crate::{has_keys, keys, line, pointsman, real_data, workshop, world};

const TASK: &str = "--route expert=0.05 --abstain 0.3";

#[test]
fn json_keys_are_stable() {
    let folder = workshop();
    let run = line(folder.path(), &format!("evaluate router.safetensors heldout.csv {TASK} --json")).ok();
    let report = run.json();
    has_keys(&report, &["rows", "loss", "mean_cost", "regret", "shares", "gain", "curves"]);
    has_keys(&report, &["standard_error", "two_way", "calibration_error", "sweep", "task", "correlation", "truth"]);
    assert_eq!((report["rows"].as_u64(), report["loss"].as_str()), (Some(200), Some("brier")));
    assert_eq!(
        keys(&report["mean_cost"]),
        ["always-abstain", "always-predict", "always-route:expert", "cell-optimal", "pointwise-optimal", "router"]
    );
    assert_eq!(keys(&report["regret"]), ["cell-optimal", "pointwise-optimal"]);
    assert_eq!(keys(&report["shares"]), ["abstain", "predict", "route:expert"]);
    has_keys(&report["gain"], &["higher-order", "total-uncertainty", "cell-optimal"]);
    for (_, curve) in report["curves"].as_object().unwrap() {
        assert_eq!(curve.as_array().unwrap().len(), 101);
    }
    let share: f64 = report["shares"].as_object().unwrap().values().map(|x| x.as_f64().unwrap()).sum();
    assert!((share - 1.0).abs() < 1e-12);
    has_keys(&report["calibration_error"], &["raw", "floor", "debiased", "cells"]);
}

#[test]
fn sweeps_are_tables_of_prices() {
    let folder = workshop();
    let args = "--sweep abstain=0.1:0.3:0.1 --sweep route:expert=0:0.1:0.05";
    let run = line(folder.path(), &format!("evaluate router.safetensors heldout.csv {TASK} {args} --json")).ok();
    let sweeps = run.json()["sweep"].clone();
    let axes: Vec<&str> = sweeps.as_array().unwrap().iter().map(|sweep| sweep["axis"].as_str().unwrap()).collect();
    assert_eq!(axes, ["abstain", "route:expert"]);
    let points = sweeps[0]["points"].as_array().unwrap();
    assert_eq!(points.iter().map(|p| p["price"].as_f64().unwrap()).collect::<Vec<_>>(), [0.1, 0.2, 0.3]);
    // The last price is the task's own.
    let whole = line(folder.path(), &format!("evaluate router.safetensors heldout.csv {TASK} --json")).ok().json();
    assert_eq!(points[2]["mean_cost"]["router"], whole["mean_cost"]["router"]);
    let run = line(folder.path(), &format!("evaluate router.safetensors heldout.csv {TASK} {args}")).ok();
    assert!(run.stdout.contains("Sweep of the price of route:expert"), "{run:?}");
}

#[test]
fn terminal_prints_shares_and_costs() {
    let folder = workshop();
    let run = line(folder.path(), &format!("evaluate router.safetensors heldout.csv {TASK}")).ok();
    for text in [
        "200 held-out rows",
        "At these prices:",
        "predicted",
        "routed",
        "abstained",
        "always predict",
        "Regret:",
        "Routing gain",
        "best possible per query",
        "calibration error",
        "floor",
    ] {
        assert!(run.stdout.replace('\n', " ").contains(text), "{text}: {run:?}");
    }
    assert!(run.stdout.lines().last().unwrap().starts_with("  pointsman "), "the last line says what to do next");
    // Costs are corrected for few labels, so that there is nothing to warn of.
    assert!(!run.stderr.contains("understated"), "{run:?}");
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 120), "{}", run.stdout);
}

/// What is concluded is concluded from the costs that few labels do not flatter.
#[test]
fn conclusions_are_drawn_from_the_corrected_costs() {
    let folder = workshop();
    let evaluate = format!("evaluate router.safetensors heldout.csv {TASK}");
    let report = line(folder.path(), &format!("{evaluate} --json -o out")).ok().json();
    let at = |value: &serde_json::Value| format!("{:.4}", value.as_f64().unwrap());
    let displayed = line(folder.path(), &evaluate).ok().stdout.replace("\n  ", " ");
    let [router, always] = ["router", "always-route:expert"].map(|name| at(&report["corrected_cost"][name]));
    assert_ne!(always, at(&report["mean_cost"]["always-route:expert"]));
    let saving = |rule: &str| format!("{:.1} % (", 100.0 * report["savings"][rule]["share"].as_f64().unwrap());
    // The cheapest rule comes first.
    let [first, next] =
        [format!("Saves {}", saving("always-abstain")), format!("always abstaining, {}", saving("always-predict"))];
    assert!(displayed.contains(&first) && displayed.contains(&next), "{first} and {next} in {displayed}");
    // The best threshold differs on too few of these rows for a saving to be stated.
    assert!(report["savings"]["best-threshold"]["differing_rows"].as_u64().unwrap() < 30, "{report}");
    assert!(!displayed.contains("against the best confidence threshold"), "{displayed}");
    let number = |text: &str| text.trim_end_matches('0').to_owned();
    assert!(displayed.contains(&format!("corrected cost per query {}", number(&router))), "{router} in {displayed}");
    assert!(displayed.contains(&format!("always route to expert {}", number(&always))), "{always} in {displayed}");
    let regret = at(&report["corrected_regret"]["cell-optimal"]);
    assert!(
        displayed.contains(&format!("Regret: {regret} ± ")) && displayed.contains("above the best action per cell"),
        "{regret} in {displayed}"
    );
    let page = fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains(&format!("Corrected cost per query {}", number(&router))));
    let grid = &report["losses"][0]["grid"];
    let own = grid["own"][0].as_u64().unwrap() * grid["abstain_prices"].as_array().unwrap().len() as u64
        + grid["own"][1].as_u64().unwrap();
    assert_eq!(at(&grid["router"][own as usize]), router, "what the sliders of the page begin at");
}

#[test]
fn report_is_written_into_a_new_folder() {
    let folder = workshop();
    let run = line(folder.path(), &format!("evaluate router.safetensors heldout.csv {TASK} -o a/b --json")).ok();
    let written = fs::read_to_string(folder.path().join("a/b/report.json")).unwrap();
    assert_eq!(written, run.stdout);
    let report = run.json();
    has_keys(&report, &["cells", "drawn", "mixtures", "losses", "classes"]);
    let losses: Vec<&str> =
        report["losses"].as_array().unwrap().iter().map(|loss| loss["loss"].as_str().unwrap()).collect();
    assert_eq!(
        losses,
        ["brier", "cross-entropy", "spherical", "zero-one", "asymmetric:2"],
        "the task's own comes first"
    );
    for figure in ["summary", "landscape", "curves", "losses", "sweep", "mixtures", "actions"] {
        let file = folder.path().join("a/b/figures").join(figure);
        assert!(fs::read_to_string(file.with_extension("svg")).unwrap().starts_with("<svg"), "{figure}");
        assert!(fs::read(file.with_extension("png")).unwrap().starts_with(b"\x89PNG\r\n\x1a\n"), "{figure}");
    }
    let left: Vec<_> = fs::read_dir(folder.path().join("a/b")).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "no temporary file stays: {left:?}");
}

#[test]
fn last_line_is_the_page() {
    let folder = workshop();
    let run = line(folder.path(), &format!("evaluate router.safetensors heldout.csv {TASK} -o out")).ok();
    let page = run.stdout.lines().last().unwrap().trim();
    assert_eq!(page, "out/report.html");
    assert!(fs::read_to_string(folder.path().join(page)).unwrap().starts_with("<!DOCTYPE html>"));
    assert!(run.stdout.contains("Written into out: report.json, figures"), "{run:?}");
}

#[test]
fn json_without_a_folder_has_no_grids() {
    let folder = workshop();
    let report = line(folder.path(), &format!("evaluate router.safetensors heldout.csv {TASK} --json")).ok().json();
    assert!(report.get("losses").is_none() && report.get("mixtures").is_none());
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 9);
    has_keys(&cells[0], &["cell", "name", "rows", "support", "share", "irreducible", "reducible", "total"]);
    has_keys(&cells[0], &["costs", "action", "margin", "held_out"]);
    let share: f64 = cells.iter().map(|cell| cell["share"].as_f64().unwrap()).sum();
    assert!((share - 1.0).abs() < 1e-12);
}

#[test]
fn unwritable_folder_is_refused() {
    let folder = workshop();
    fs::write(folder.path().join("taken"), "a file").unwrap();
    let run = line(folder.path(), &format!("evaluate router.safetensors heldout.csv {TASK} -o taken"));
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("taken"), "{run:?}");
}

#[test]
fn calibration_error_depends_on_the_seed() {
    let folder = workshop();
    let evaluate = |more: &str| {
        line(folder.path(), &format!("evaluate router.safetensors heldout.csv {TASK} --json {more}")).ok().json()
    };
    assert!(evaluate("--no-calibration-error")["calibration_error"].is_null());
    let (a, b) = (evaluate("--seed 1"), evaluate("--seed 2"));
    assert_eq!(a["calibration_error"]["raw"], b["calibration_error"]["raw"]);
    assert_ne!(a["calibration_error"]["floor"], b["calibration_error"]["floor"]);
    assert_eq!(a, evaluate("--seed 1"));
}

#[test]
fn single_labels_are_warned_of() {
    let folder = workshop();
    world::rows(100, 4).with_one_label().write_csv(&folder.path().join("one.csv"));
    let run = line(folder.path(), &format!("evaluate router.safetensors one.csv {TASK}")).ok();
    assert!(run.stderr.contains("each held-out row has one label"), "{run:?}");
    // Unknown costs are dashes, and explained.
    let displayed = run.stdout.replace("\n  ", " ");
    for part in ["are not known (–)", "always route to expert –", "Regret: – above the best action per cell, – above"]
    {
        assert!(displayed.contains(part), "{part} in {displayed}");
    }
    let report = line(folder.path(), &format!("evaluate router.safetensors one.csv {TASK} --json")).ok().json();
    assert!(report["unidentified"].as_array().unwrap().contains(&"always-route:expert".into()), "{report}");
    assert!(report["gain"]["higher-order"].is_null() && report["mean_cost"]["always-predict"].is_number());
    assert!(run.stderr.contains("calibration rows have 5.0 labels on average, held-out rows 1.0"), "{run:?}");
}

/// If too few rows have two labels, costs cannot be corrected for few labels, and a warning says so.
#[test]
fn few_labels_are_warned_of_where_costs_cannot_be_corrected() {
    let folder = workshop();
    let mut held_out = world::rows(100, 4).with_one_label();
    held_out.votes[0] = [1, 1, 0];
    held_out.write_csv(&folder.path().join("few.csv"));
    let run = line(folder.path(), &format!("evaluate router.safetensors few.csv {TASK}")).ok();
    assert!(run.stderr.contains("too few rows have two labels to correct for that"), "{run:?}");
    let run = line(folder.path(), &format!("evaluate router.safetensors heldout.csv {TASK}")).ok();
    assert!(!run.stderr.contains("too few rows have two labels"), "{run:?}");
}

/// The best in hindsight do not keep to a budget: the regret says so.
#[test]
fn regret_is_reported_to_ignore_the_limit() {
    let folder = workshop();
    let evaluate = "evaluate router.safetensors heldout.csv --route expert=0.02 --budget 0.2";
    let displayed = line(folder.path(), evaluate).ok().stdout.replace("\n  ", " ");
    assert!(displayed.contains("the best in hindsight ignore the limit"), "{displayed}");
    assert_eq!(line(folder.path(), &format!("{evaluate} --json")).ok().json()["regret_ignores_limit"], true);
    let free = line(folder.path(), &format!("evaluate router.safetensors heldout.csv {TASK} --json")).ok().json();
    assert!(free.get("regret_ignores_limit").is_none());
}

#[test]
fn known_truth_is_preferred() {
    let folder = workshop();
    let path = folder.path();
    let text = world::rows(50, 5).to_csv();
    let with_truth: Vec<String> = text
        .lines()
        .enumerate()
        .map(|(i, line)| format!("{line},{}", if i == 0 { "true_cat,true_dog,true_owl" } else { "0.5,0.25,0.25" }))
        .collect();
    fs::write(path.join("known.csv"), with_truth.join("\n")).unwrap();
    let run = line(path, &format!("evaluate router.safetensors known.csv {TASK} --json")).ok();
    assert_eq!(run.json()["truth"], "true");
    assert_eq!(run.stderr, "");
}

/// Calibrate on one half of real data and show, decide and evaluate on the other, for every loss.
#[test]
fn real_data_under_every_loss() {
    let Some(data) = real_data("snli.npz") else { return };
    let folder = tempfile::TempDir::new().unwrap();
    let router = folder.path().join("snli.safetensors");
    let (data, router) = (data.to_str().unwrap(), router.to_str().unwrap());
    pointsman(["calibrate", data, "--where", "split=0", "--partition", "top-class:10", "-o", router]).ok();
    for loss in ["brier", "cross-entropy", "spherical", "zero-one", "asymmetric:2"] {
        let task = ["--loss", loss, "--route", "expert=0.05", "--abstain", "0.3"];
        let with = |args: &[&'static str], more: &[&'static str]| {
            let mut all: Vec<String> = args.iter().map(ToString::to_string).collect();
            all.push(router.to_owned());
            if args[0] != "show" {
                all.extend([data, "--where", "split=1"].map(str::to_owned));
            }
            all.extend(task.map(str::to_owned));
            all.extend(more.iter().map(ToString::to_string));
            pointsman(all).ok()
        };
        let shown = with(&["show"], &["--json"]).json();
        assert_eq!((shown["rows"].as_u64(), shown["cells"].as_array().unwrap().len()), (Some(5000), 30), "{loss}");
        let decided = with(&["decide"], &[]).stdout;
        assert_eq!(decided.lines().count(), 5001, "{loss}");
        let report = with(&["evaluate"], &["--json", "--no-calibration-error"]).json();
        let cost = |name: &str| report["mean_cost"][name].as_f64().unwrap();
        assert!(cost("pointwise-optimal") <= cost("cell-optimal") && cost("cell-optimal") <= cost("router"), "{loss}");
        assert!(cost("router") <= cost("always-predict"), "{loss}");
        assert!(report["gain"]["higher-order"].as_f64().unwrap() > 0.2, "{loss}");
    }
    for loss in ["fn-fp:fp=1,fn=3", "three-part"] {
        let run = pointsman(["show", router, "--loss", loss, "--abstain", "0.1"]);
        assert_eq!(run.code, 2, "binary losses do not fit three classes: {run:?}");
    }
}

#[test]
fn sweep_marks_infeasible_prices() {
    let folder = workshop();
    let sweep = "evaluate router.safetensors heldout.csv --route 0.1 --abstain 0.01 --target-loss 0.02 --sweep abstain=0.01:0.61:0.3";
    let displayed = line(folder.path(), sweep).ok().stdout;
    for part in ["infeasible", "least loss", "no routing reaches the target loss"] {
        assert!(displayed.replace("\n  ", " ").contains(part), "{part} in {displayed}");
    }
    let points = &line(folder.path(), &format!("{sweep} --json")).ok().json()["sweep"][0]["points"];
    assert!(points[0]["mean_cost"]["router"].is_number() && points[0].get("least_loss").is_none(), "{points}");
    assert!(
        points[2]["mean_cost"].get("router").is_none() && points[2]["least_loss"].as_f64().unwrap() > 0.02,
        "{points}"
    );
}

/// The rows of the world whose least confident half is left out: other traffic than the router was calibrated on.
fn write_confident_half(path: &Path) {
    let mut rows = world::rows(600, 3);
    let top = |probs: &[f64; 3]| probs.iter().copied().fold(0.0, f64::max);
    let kept: Vec<usize> = (0..rows.ids.len()).filter(|&row| top(&rows.probs[row]) > 0.62).collect();
    assert!(kept.len() > 100);
    rows.ids = kept.iter().map(|&row| rows.ids[row].clone()).collect();
    rows.votes = kept.iter().map(|&row| rows.votes[row]).collect();
    rows.length = kept.iter().map(|&row| rows.length[row]).collect();
    rows.probs = kept.iter().map(|&row| rows.probs[row]).collect();
    rows.write_csv(path);
}

#[test]
fn moved_traffic_is_reported_in_one_line() {
    let folder = workshop();
    let path = folder.path();
    write_confident_half(&path.join("moved.csv"));
    line(path, "calibrate calibration.csv -o forest.safetensors --partition forest:10").ok();
    for router in ["router", "forest"] {
        let decide = |table: &str| line(path, &format!("decide {router}.safetensors {table} --route 0.05")).ok().stderr;
        let displayed = |text: &str| text.lines().filter(|line| line.contains("traffic has moved: ")).count();
        assert_eq!(
            (displayed(&decide("heldout.csv")), displayed(&decide("moved.csv"))),
            (0, 1),
            "{}",
            decide("moved.csv")
        );
        let evaluate = |table: &str, flags: &str| {
            line(path, &format!("evaluate {router}.safetensors {table} --route 0.05 --no-calibration-error{flags}"))
        };
        let report = evaluate("moved.csv", " --json").ok().json();
        assert_eq!(report["traffic"]["moved"], true);
        let share = &report["traffic"]["shares"][0];
        assert!(share["share"].as_f64().unwrap() != share["calibration"].as_f64().unwrap(), "{share}");
        assert!(evaluate("moved.csv", "").ok().stdout.contains("Traffic has moved: "));
        assert_eq!(evaluate("heldout.csv", " --json").ok().json()["traffic"]["moved"], false);
        // For use in continuous integration.
        let failed = evaluate("moved.csv", " --fail-if drift");
        assert_eq!((failed.code, failed.stderr.matches("failed: drift").count()), (3, 1), "{failed:?}");
        assert!(!failed.stdout.is_empty());
        evaluate("heldout.csv", " --fail-if drift").ok();
    }
}

#[test]
fn conditions_that_hold_end_with_exit_code_three() {
    let folder = workshop();
    let evaluate = |flags: &str| {
        line(
            folder.path(),
            &format!("evaluate router.safetensors heldout.csv --route 0.05 --no-calibration-error {flags}"),
        )
    };
    let report = evaluate("--json").ok().json();
    let cost = |name: &str| report["corrected_cost"][name].as_f64().unwrap();
    let savings = report["savings"].as_object().unwrap();
    assert!(savings.contains_key("best-threshold") && savings.contains_key("always-predict"));
    let least =
        savings.values().min_by(|a, b| a["estimate"].as_f64().unwrap().total_cmp(&b["estimate"].as_f64().unwrap()));
    let saving = least.unwrap()["share"].as_f64().unwrap();
    for (condition, holds) in [
        (format!("saving<{}", saving + 1e-6), true),
        (format!("saving<{}", saving - 1e-6), false),
        (format!("cost>{}", cost("router") - 1e-6), true),
        (format!("cost>{}", cost("router") + 1e-6), false),
        ("regret>1".to_owned(), false),
        ("regret>-1".to_owned(), true),
    ] {
        let run = evaluate(&format!("--fail-if {condition}"));
        assert_eq!(run.code, if holds { 3 } else { 0 }, "{condition}: {run:?}");
        assert_eq!(run.stderr.contains(&format!("failed: {condition} (")), holds, "{run:?}");
    }
    // Always routing is cheaper than anything within a small cap, and breaks it.
    let capped = |flags: &str| {
        let cap = "--route 0.001 --cap oracle=5% --no-calibration-error";
        line(folder.path(), &format!("evaluate router.safetensors heldout.csv {cap} {flags}"))
    };
    let savings = capped("--json").ok().json()["savings"].clone();
    let share = |rule: &str| savings[rule]["share"].as_f64().unwrap();
    let least = share("always-predict").min(share("best-threshold"));
    assert!(share("always-route:oracle") < least - 0.01, "{savings}");
    assert_eq!(capped(&format!("--fail-if saving<{}", least - 1e-6)).code, 0);
    assert_eq!(capped(&format!("--fail-if saving<{}", least + 1e-6)).code, 3);
    let both = evaluate("--fail-if cost>0 --fail-if saving<1 --json");
    assert_eq!(both.code, 3);
    assert!(both.stderr.contains("cost>0 (") && both.stderr.contains("; saving<1 ("), "{both:?}");
    assert_eq!(both.json(), report);
    let unknown = evaluate("--fail-if gain<0");
    assert!(unknown.code == 2 && unknown.stderr.contains("saving<X"), "{unknown:?}");
}

#[test]
fn budget_missed_on_other_traffic_is_warned_of() {
    let folder = workshop();
    let path = folder.path();
    write_confident_half(&path.join("moved.csv"));
    let flags = "--loss zero-one --route 0 --budget 0.3";
    for command in ["decide router.safetensors", "evaluate --no-calibration-error router.safetensors"] {
        let run = |table: &str| line(path, &format!("{command} {table} {flags}")).ok().stderr;
        let missed = "of traffic like the calibration rows";
        let warned = |text: &str| text.lines().any(|line| line.starts_with("warning: ") && line.contains("hard limit"));
        assert!(warned(&run("moved.csv")), "{}", run("moved.csv"));
        assert!(!warned(&run("heldout.csv")), "{}", run("heldout.csv"));
        assert!(command.starts_with("evaluate") || run("heldout.csv").replace('\n', " ").contains(missed));
    }
}

/// Items that the router was calibrated on are known by their predictions, also if their votes differ or they were added later.
#[test]
fn calibration_items_with_other_votes_are_warned_of() {
    let folder = workshop();
    let path = folder.path();
    world::rows(300, 1).with_one_label().write_csv(&path.join("fewer.csv"));
    let warned = |router: &str, table: &str| {
        let run = line(path, &format!("evaluate {router} {table} {TASK} --no-calibration-error")).ok();
        run.stderr.contains("rows that the router was calibrated on")
    };
    assert!(warned("router.safetensors", "fewer.csv") && !warned("router.safetensors", "heldout.csv"));
    line(path, "calibrate heldout.csv --add-to router.safetensors -o more.safetensors").ok();
    assert!(warned("more.safetensors", "heldout.csv"));
}

/// Uncertain predictions are wrong and others right, which one cell cannot tell apart.
#[test]
fn better_thresholds_lead_to_a_command_that_runs() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path();
    let (mut items, mut labels) = ("id,prob_a,prob_b\n".to_owned(), "id,label,annotator\n".to_owned());
    // So few rows that the threshold does not certainly cost less.
    for n in 0..40 {
        let p = 0.5 + f64::from(n) / 81.0;
        items += &format!("{n},{p:.6},{:.6}\n", 1.0 - p);
        let label = if p < 0.7 && n % 5 != 0 { "b" } else { "a" };
        (0..3).for_each(|place| labels += &format!("{n},{label},ann{}\n", (n + place) % 4));
    }
    fs::write(path.join("items.csv"), items).unwrap();
    fs::write(path.join("labels.csv"), labels).unwrap();
    let table = "items.csv --annotations labels.csv";
    line(path, &format!("calibrate {table} --partition confidence:1 -o one.st")).ok();
    let run = line(path, &format!("evaluate one.st {table} --without ann1 --route expert=0.1 --json")).ok();
    let next = &run.json()["next_step"];
    assert!(next["remark"].as_str().unwrap().contains("threshold ranks better"), "{next}");
    let command = next["commands"][0].as_str().unwrap();
    assert_eq!(command, format!("pointsman diagnose {table} --without ann1 --route expert=0.1"));
    line(path, command.strip_prefix("pointsman ").unwrap()).ok();
}

/// The bounds on the best possible cost and on the regret are shown beside the estimates, on the terminal and on the page.
#[test]
fn bounds_of_the_best_possible_cost_are_shown() {
    let folder = workshop();
    let path = folder.path();
    let evaluate = "evaluate router.safetensors heldout.csv --route 0.05 --abstain 0.5 --no-calibration-error";
    let found = line(path, &format!("{evaluate} --json")).ok().json();
    let bounds = [0, 1].map(|end| found["corrected_identified"]["pointwise-optimal"][end].as_f64().unwrap());
    let router = found["corrected_cost"]["router"].as_f64().unwrap();
    let text = line(path, &format!("{evaluate} -o page")).ok().words();
    let [low, high] = bounds.map(|end| format!("{end:.4}"));
    let open = format!("labels leave {low} to {high} open");
    assert!(text.contains(&format!("known in hindsight only; {open}")), "{open}: {text}");
    // Costs of which labels leave a range open have a ± that does not cover it; the best possible has none.
    let says_so = |loss: &str| {
        line(path, &format!("{evaluate} --loss {loss}")).ok().words().contains("± is the sampling error alone")
    };
    assert!(says_so("zero-one") && !says_so("brier"), "{text}");
    // The range is much wider than the sampling error: it comes first, and the estimate has no standard error.
    let regrets = [router - bounds[1], router - bounds[0]].map(|end| end.max(0.0));
    let [least, most] = regrets.map(|end| format!("{end:.4}"));
    let range = if regrets[0] > 0.0 { format!("{least} to {most}") } else { format!("at most {most}") };
    let regret = format!("{range} above the best possible per query, which labels do not identify (a model's guess: ");
    assert!(text.contains(&regret), "{regret}: {text}");
    for errors in ["corrected_standard_error", "corrected_regret_standard_error"] {
        assert!(found[errors]["pointwise-optimal"].is_null(), "{errors}");
    }
    let page = fs::read_to_string(path.join("page/report.html")).unwrap();
    assert!(page.contains(&format!("The best possible per query costs {low} to {high} (a model")), "{open}");
    assert!(page.contains(&regret.replace('\'', "&#39;")) || page.contains(&regret), "{regret}");
}

/// A router that is dearer than the threshold is not recommended for deciding.
#[test]
fn a_router_dearer_than_the_threshold_is_compared_with_other_cells() {
    let folder = workshop();
    let path = folder.path();
    world::rows(1500, 5).write_csv(&path.join("many.csv"));
    line(path, "calibrate calibration.csv -o one.safetensors --partition confidence:1").ok();
    let evaluate = "evaluate one.safetensors many.csv --abstain 0.5 --no-calibration-error";
    let report = line(path, &format!("{evaluate} --json")).ok().json();
    let saving = &report["savings"]["best-threshold"];
    let (estimate, error) = (saving["estimate"].as_f64().unwrap(), saving["standard_error"].as_f64().unwrap());
    assert!(estimate + 1.96 * error < 0.0 && saving["differing_rows"].as_u64().unwrap() >= 30, "{saving}");
    let words = line(path, evaluate).ok().words().replace("\\ ", "");
    assert!(words.contains("The best confidence threshold costs less than this router"), "{words}");
    assert!(words.contains("--partition auto -o auto.safetensors"), "{words}");
    assert!(
        words.contains("pointsman compare one.safetensors auto.safetensors many.csv --abstain 0.5")
            && !words.contains("pointsman decide"),
        "{words}"
    );
}
