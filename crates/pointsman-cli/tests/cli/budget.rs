//! Budgets and target losses on the command line.

use std::fs;

use crate::{line, line_with_input, parse_csv, workshop, world};

fn routed(csv: &str) -> f64 {
    let (header, rows) = parse_csv(csv);
    let action = header.iter().position(|name| name == "action").unwrap();
    rows.iter().filter(|row| row[action].starts_with("route:")).count() as f64 / rows.len() as f64
}

#[test]
fn budget_is_met_by_show_decide_and_evaluate() {
    let folder = workshop();
    let free = routed(&line(folder.path(), "decide router.safetensors heldout.csv --route expert=0.01").ok().stdout);
    assert!(free > 0.3, "{free}");
    let task = "--route expert=0.01 --budget 0.2";
    let shown = line(folder.path(), &format!("show router.safetensors {task} --json")).ok().json();
    assert!((shown["surcharge"]["share"].as_f64().unwrap() - 0.2).abs() < 1e-9, "{}", shown["surcharge"]);
    assert_eq!(shown["task"]["budget"], 0.2);
    let at_margin: Vec<_> = shown["cells"].as_array().unwrap().iter().filter(|cell| !cell["lots"].is_null()).collect();
    assert!(at_margin.len() == 1 && at_margin[0]["otherwise"] == "predict", "{at_margin:?}");
    let words = line(folder.path(), &format!("show router.safetensors {task}")).ok().stdout;
    assert!(words.contains("as if routing cost") && words.contains("at random"), "{words}");

    let decided = line(folder.path(), &format!("decide router.safetensors heldout.csv {task}")).ok();
    // Two hundred rows: within four standard errors.
    assert!((routed(&decided.stdout) - 0.2).abs() < 0.12, "{}", routed(&decided.stdout));
    assert!(decided.stderr.contains("as if routing cost"), "{}", decided.stderr);
    // Alone or together, a query is decided alike: the lot is its id's.
    let again = line(folder.path(), &format!("decide router.safetensors heldout.csv {task} --batch-rows 3")).ok();
    assert_eq!(again.stdout, decided.stdout);

    let proof = line(folder.path(), &format!("evaluate router.safetensors heldout.csv {task} --json")).ok().json();
    assert!((proof["shares"]["route:expert"].as_f64().unwrap() - 0.2).abs() < 0.12, "{}", proof["shares"]);
    assert_eq!(proof["surcharge"], shown["surcharge"]);
    line(folder.path(), &format!("evaluate router.safetensors heldout.csv {task} -o report")).ok();
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("report/report.json")).unwrap()).unwrap();
    // What the budget comes to is not a price that is paid.
    assert_eq!(report["task"], proof["task"]);
    assert_eq!(report["corrected_cost"], proof["corrected_cost"]);
}

#[test]
fn target_is_met_or_the_nearest_is_reported() {
    let folder = workshop();
    let at =
        |target: &str| line(folder.path(), &format!("show router.safetensors --route 0 --target-loss {target} --json"));
    let refused = at("0.0001");
    assert_eq!(refused.code, 2);
    let words: Vec<&str> = refused.stderr.split([' ', ';']).collect();
    let least: f64 = words[words.iter().position(|word| *word == "leaves").unwrap() + 1].parse().unwrap();
    let reached = at(&format!("{}", least + 1e-6)).ok().json();
    assert!((reached["surcharge"]["loss"].as_f64().unwrap() - least).abs() < 2e-6, "{}", reached["surcharge"]);
}

#[test]
fn route_that_reaches_the_target_is_chosen() {
    let folder = workshop();
    let routes = "--loss zero-one --route cheap=0,panel:m=1,aggregate=plurality --route expert=0.5";
    let show = |limit: &str| line(folder.path(), &format!("show router.safetensors {routes} {limit} --json"));
    let alone = line(folder.path(), "show router.safetensors --loss zero-one --route 0 --target-loss 0 --json");
    let words: Vec<&str> = alone.stderr.split([' ', ';']).collect();
    let least = words[words.iter().position(|word| *word == "leaves").unwrap() + 1];
    // What the expert alone reaches, both reach; and what a refusal names is granted.
    let both = show(&format!("--target-loss {least}")).ok().json();
    assert!(both["surcharge"]["price"].as_f64().unwrap() >= 0.0, "{}", both["surcharge"]);
    let printed = line(folder.path(), &format!("show router.safetensors {routes} --target-loss {least}")).ok().stdout;
    assert!(printed.contains("by any route"), "{printed}");
    // Two estimates of one loss.
    let measured = format!("{:.4}", both["surcharge"]["loss"].as_f64().unwrap());
    let says_why = printed.split_whitespace().collect::<Vec<_>>().join(" ").contains("measured anew on rows left out");
    assert_eq!(says_why, !least.starts_with(&measured), "{measured}: {printed}");
    let all = line(folder.path(), "show router.safetensors --route 0 --budget 1").ok().stdout;
    assert!(all.contains("the prices need not change") && !all.contains("at random"), "{all}");
    line(folder.path(), &format!("decide router.safetensors heldout.csv {routes} --target-loss {least} --explain 1"))
        .ok();
}

/// The rows of a table of decisions that have an action.
fn taken(csv: &str, action: &str) -> usize {
    let (header, rows) = parse_csv(csv);
    let column = header.iter().position(|name| name == "action").unwrap();
    rows.iter().filter(|row| row[column] == action).count()
}

#[test]
fn caps_are_kept_exactly_and_moved_queries_are_marked() {
    let folder = workshop();
    let path = folder.path();
    line(path, "calibrate calibration.csv -o forest.safetensors --partition forest:10").ok();
    for router in ["router", "forest"] {
        let decide = |flags: &str| {
            line(path, &format!("decide {router}.safetensors heldout.csv --keep id --route expert=0.02 {flags}"))
        };
        let wanting = taken(&decide("--abstain 0.6").ok().stdout, "route:expert");
        assert!(wanting > 40, "{wanting}");
        for (cap, most) in [("expert=0", 0), ("expert=37", 37), ("expert=5%", 10), ("expert=1000", wanting)] {
            // Batches of a few rows: caps are over the whole table.
            let run = decide(&format!("--abstain 0.6 --cap {cap} --batch-rows 7")).ok();
            assert_eq!(taken(&run.stdout, "route:expert"), most, "{cap}");
            let (header, rows) = parse_csv(&run.stdout);
            assert_eq!(header.last().unwrap(), "capped");
            let moved = rows.iter().filter(|row| row.last().unwrap() == "route:expert").count();
            assert_eq!(moved, wanting - most, "{cap}");
            assert_eq!(run.stderr.contains("next-best action"), moved > 0, "{}", run.stderr);
        }
        let capped = decide("--cap expert=25").ok().stdout;
        // The order of rows does not matter, nor where they come from.
        world::rows(200, 2).reversed().write_csv(&path.join("reversed.csv"));
        let reversed =
            format!("decide {router}.safetensors reversed.csv --keep id --route expert=0.02 --cap expert=25");
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&line(path, &reversed).ok().stdout), sorted(&capped));
        let input = fs::read_to_string(path.join("heldout.csv")).unwrap();
        let piped = format!("decide {router}.safetensors - --keep id --route expert=0.02 --cap expert=25");
        assert_eq!(line_with_input(path, &piped, &input).ok().stdout, capped);
    }
}

#[test]
fn several_caps_hold_together_and_invalid_ones_are_refused() {
    let folder = workshop();
    let routes = "--route expert=0.02 --route one=0,panel:m=1";
    let decide = |flags: &str| line(folder.path(), &format!("decide router.safetensors heldout.csv {routes} {flags}"));
    let run = decide("--cap expert=12 --cap one=4%").ok();
    assert!(taken(&run.stdout, "route:expert") <= 12 && taken(&run.stdout, "route:one") <= 8, "{}", run.stderr);
    assert!(
        run.stderr.contains("Cap on expert: at most 12") && run.stderr.contains("Cap on one: at most 8"),
        "{}",
        run.stderr
    );
    for (flags, word) in [
        ("--cap 12", "NAME=N"),
        ("--cap expert=many", "cap \"many\": give a whole number"),
        ("--cap expert=1.5", "cap \"1.5\""),
        ("--cap expert=101%", "cap \"101%\""),
        ("--cap nobody=3", "there are: expert, one"),
        ("--cap expert=3 --cap expert=4", "two caps"),
        ("--cap expert=3 --explain 1", "whether a query fits under a cap depends on the whole table"),
    ] {
        let run = decide(flags);
        assert!(run.code == 2 && run.stderr.contains(word), "{flags}: {run:?}");
    }
}

#[test]
fn invalid_limits_are_refused() {
    let folder = workshop();
    fs::write(folder.path().join("both.toml"), "budget = 0.1\ntarget_loss = 0.1\n[[route]]\ncost = 0.1\n").unwrap();
    fs::write(folder.path().join("much.toml"), "budget = 7\n[[route]]\ncost = 0.1\n").unwrap();
    for (task, word) in [
        ("--route 0.1 --budget 1.2", "from 0 to 1"),
        ("--route 0.1 --budget -0.2", "from 0 to 1"),
        ("--route 0.1 --budget nan", "from 0 to 1"),
        ("--route 0.1 --budget much", "--budget"),
        ("--route 0.1 --target-loss -1", "target loss"),
        ("--route 0.1 --budget 0.1 --target-loss 0.1", "cannot be used with"),
        ("--abstain 0.1 --budget 0.1", "route"),
        ("--task both.toml", "one of them"),
        ("--task much.toml", "from 0 to 1"),
    ] {
        let run = line(folder.path(), &format!("show router.safetensors {task}"));
        assert!(run.code == 2 && run.stderr.contains(word), "{task}: {run:?}");
    }
}

/// The loss that a target promises is shown beside the one that held-out rows reach.
#[test]
fn evaluate_reports_the_loss_that_a_target_reaches() {
    let folder = workshop();
    let evaluate = |more: &str| {
        line(folder.path(), &format!("evaluate router.safetensors heldout.csv --route expert=0.01 {more}")).ok()
    };
    let report = evaluate("--target-loss 0.55 --json").json();
    let (reached, promised) = (&report["loss_reached"], report["surcharge"]["loss"].as_f64().unwrap());
    let [loss, error] = ["corrected", "corrected_standard_error"].map(|key| reached[key].as_f64().unwrap());
    assert!((loss - promised).abs() < 4.0 * error, "{loss} ± {error}, promised {promised}");
    // The prices of routes are no loss.
    let routed = report["shares"]["route:expert"].as_f64().unwrap();
    let cost = report["corrected_cost"]["router"].as_f64().unwrap();
    assert!((cost - 0.01 * routed - loss).abs() < 1e-9, "{cost}, {routed}, {loss}");
    assert!(evaluate("--target-loss 0.55").words().contains("The loss reached on these rows is 0."));
    assert!(evaluate("--budget 0.2 --json").json().get("loss_reached").is_none());
}
