//! Certificates, plans and explanations: their JSON, and that they agree with each other.

use std::fs;

use serde_json::Value;

use crate::{has_keys, line, parse_csv, workshop};

const TASK: &str = "--route expert=0.05 --abstain 0.3";

fn interval(value: &Value) -> [f64; 2] {
    [value[0].as_f64().unwrap(), value[1].as_f64().unwrap()]
}

#[test]
fn show_with_confidence_adds_intervals() {
    let folder = workshop();
    let path = folder.path();
    let plain = line(path, &format!("show router.safetensors {TASK} --json")).ok().json();
    let shown = line(path, &format!("show router.safetensors {TASK} --confidence 0.9 --json")).ok().json();
    has_keys(&shown, &["classes", "rows", "partition", "recalibrated", "cells", "confidence", "regret_bound"]);
    assert_eq!(shown["confidence"], 0.9);
    assert!(shown["regret_bound"].as_f64().unwrap() >= 0.0);
    let mut certain = 0.0;
    for (cell, before) in shown["cells"].as_array().unwrap().iter().zip(plain["cells"].as_array().unwrap()) {
        has_keys(cell, &["interval", "certain", "regret", "rival", "rows_left_out"]);
        for (key, value) in before.as_object().unwrap() {
            assert_eq!(&cell[key], value, "{key}");
        }
        for key in ["irreducible", "reducible", "total"] {
            let ([low, high], value) = (interval(&cell["interval"][key]), cell[key].as_f64().unwrap());
            assert!((low..=high).contains(&value), "{key}: {value} in {low}…{high}");
        }
        let [low, high] = interval(&cell["interval"]["costs"]["route:expert"]);
        assert!((low..=high).contains(&cell["costs"]["route:expert"].as_f64().unwrap()));
        assert_eq!(interval(&cell["interval"]["costs"]["abstain"]), [0.3, 0.3]);
        assert_eq!(cell["certain"].as_bool().unwrap(), cell["rival"].is_null());
        assert_eq!(cell["certain"].as_bool().unwrap(), cell["regret"].as_f64().unwrap() == 0.0);
        if cell["certain"] == true {
            certain += cell["rows"].as_f64().unwrap() / 300.0;
        }
    }
    assert!((shown["certain_share"].as_f64().unwrap() - certain).abs() < 1e-12);
    let run = line(path, &format!("show router.safetensors {TASK} --confidence 0.9")).ok();
    assert!(run.stdout.contains("With 90 % confidence") && run.stdout.contains("undetermined"), "{run:?}");
    assert!(run.stdout.contains("pointsman plan router.safetensors"), "{run:?}");
    let run = line(path, "show router.safetensors --loss cross-entropy --route 0.1 --confidence 0.9").ok();
    assert!(run.stdout.contains("at least 0.001"), "{run:?}");
}

/// For two classes, or many rows, there is a bound for losses that nobody has asked for.
#[test]
fn show_adds_informative_bounds_for_every_loss() {
    let folder = workshop();
    let path = folder.path();
    let rows = (0..400).map(|i| format!("0.{0},0.{1},{2},{3}\n", 2 + i % 5, 8 - i % 5, i % 4, 4 - i % 4));
    fs::write(path.join("two.csv"), "prob_a,prob_b,votes_a,votes_b\n".to_owned() + &rows.collect::<String>()).unwrap();
    line(path, "calibrate two.csv -o two.safetensors --partition level-sets").ok();
    let shown = line(path, "show two.safetensors --route 0.05 --confidence 0.9 --json").ok().json();
    for cell in shown["cells"].as_array().unwrap().iter().filter(|cell| cell["rows"] != 0) {
        has_keys(&cell["all_losses"], &["total", "irreducible_below", "irreducible_above"]);
        assert_eq!(cell["all_losses"]["total"], cell["all_losses"]["irreducible_below"], "one prediction a cell");
    }
    let run = line(path, "show two.safetensors --route 0.05 --confidence 0.9").ok();
    assert!(run.stdout.contains("For every proper loss") && run.stdout.contains("in 5 of 6 cells"), "{run:?}");
    let shown = line(path, &format!("show router.safetensors {TASK} --confidence 0.9 --json")).ok().json();
    assert!(shown["cells"].as_array().unwrap().iter().all(|cell| cell["all_losses"].is_null()), "too few rows");
}

#[test]
fn decisions_have_a_column_of_certainty() {
    let folder = workshop();
    let path = folder.path();
    // Something is certain at this price, something is not.
    let task = "--abstain 0.4";
    let shown = line(path, &format!("show router.safetensors {task} --confidence 0.9 --json")).ok().json();
    let run = line(path, &format!("decide router.safetensors heldout.csv {task} --confidence 0.9 --keep id -q")).ok();
    let (header, rows) = parse_csv(&run.stdout);
    assert_eq!(header.last().unwrap(), "certain");
    for row in &rows {
        let cell = &shown["cells"][row[1].parse::<usize>().unwrap()];
        assert_eq!(row.last().unwrap(), &cell["certain"].to_string());
    }
    for word in ["true", "false"] {
        assert!(rows.iter().any(|row| row.last().unwrap() == word), "{word}");
    }
    // A query whose cell is empty is decided by others' rows: never certain.
    fs::write(path.join("t.csv"), "prob_a,prob_b,votes_a,votes_b\n".to_owned() + &"0.6,0.4,2,1\n".repeat(500)).unwrap();
    line(path, "calibrate t.csv -o t.st --partition top-class:1").ok();
    fs::write(path.join("q.csv"), "prob_a,prob_b\n0.7,0.3\n0.2,0.8\n").unwrap();
    let (_, rows) = parse_csv(&line(path, "decide t.st q.csv --abstain 0.001 --confidence 0.9").ok().stdout);
    assert_eq!(rows.iter().map(|row| row.last().unwrap().as_str()).collect::<Vec<_>>(), ["true", "false"]);
    line(path, "show t.st --abstain 0.001 --confidence 0.9").ok();
}

#[test]
fn plans_list_undetermined_cells() {
    let folder = workshop();
    let path = folder.path();
    let shown = line(path, &format!("show router.safetensors {TASK} --confidence 0.95 --json")).ok().json();
    let plan = line(path, &format!("plan router.safetensors {TASK} --json")).ok().json();
    has_keys(&plan, &["confidence", "unit", "regret_bound", "certain_share", "promise", "cells"]);
    assert_eq!(plan["promise"], shown["promise"], "plan and show promise the same cost");
    assert_eq!(plan["confidence"], 0.95);
    assert_eq!(plan["regret_bound"], shown["regret_bound"]);
    let open: Vec<u64> = plan["cells"].as_array().unwrap().iter().map(|cell| cell["cell"].as_u64().unwrap()).collect();
    let mut expected: Vec<u64> = Vec::new();
    for cell in shown["cells"].as_array().unwrap().iter().filter(|cell| cell["certain"] == false) {
        expected.push(cell["cell"].as_u64().unwrap());
    }
    let mut sorted = open.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, expected);
    for cell in plan["cells"].as_array().unwrap() {
        let keys = ["share", "action", "rival", "margin", "at_stake", "worth", "more_labels", "more_items", "labels"];
        has_keys(cell, &keys);
        let other = &shown["cells"][cell["cell"].as_u64().unwrap() as usize];
        assert_eq!((&cell["action"], &cell["rival"]), (&other["action"], &other["rival"]));
    }
    let run = line(path, &format!("plan router.safetensors {TASK}")).ok();
    assert!(run.stdout.contains("undetermined with 95 % confidence") && run.stdout.contains("worth"), "{run:?}");
    assert!(run.stdout.contains("Expected cost per query"), "{run:?}");
    let run = line(path, "plan router.safetensors --abstain 2").ok();
    assert!(run.stdout.contains("every cell's action is certain"), "{run:?}");
}

#[test]
fn plans_list_labels_worth_their_price() {
    let folder = workshop();
    let path = folder.path();
    let plan = |more: &str| line(path, &format!("plan router.safetensors {TASK} {more}")).ok();
    let dear = plan("--label-price 1000000 --traffic 10");
    // The table has a small worth, so that some labels are expected to change an action.
    let said = "Not worth it: no labels are worth their price, unless for certainty.";
    assert!(dear.words().contains(said), "{dear:?}");
    let dear = plan("--label-price 1000000 --traffic 10 --json").json();
    assert_eq!((&dear["purchase"]["labels"], &dear["purchase"]["cells"]), (&0.into(), &serde_json::json!([])));
    let cheap = plan("--label-price 0.0000001 --traffic 1000000000 --json").json();
    let asked = cheap["cells"].as_array().unwrap().iter();
    let asked: Vec<_> = asked.filter(|cell| cell["asked"]["worth"].as_f64() > Some(0.0)).collect();
    let bought = cheap["purchase"]["cells"].as_array().unwrap();
    assert!(!asked.is_empty() && asked.iter().all(|cell| bought.contains(&cell["cell"])), "{cheap}");
    for cell in asked {
        has_keys(
            cell,
            &["chance", "chance_by_labels", "chance_by_items", "worth_per_label", "cost", "saving", "pays_after"],
        );
    }
    let order: Vec<f64> =
        cheap["cells"].as_array().unwrap().iter().filter_map(|cell| cell["worth_per_label"].as_f64()).collect();
    assert!(order.windows(2).all(|pair| pair[0] >= pair[1]), "{order:?}");
    let run = plan("--label-price 0.1");
    assert!(run.stdout.contains("--traffic N") || run.stdout.contains("Not worth it"), "{run:?}");
    assert!(run.stdout.contains(" cost "), "{run:?}");
    let oracle = "expert is taken to know the label distribution; for one annotator write --route expert=";
    assert!(run.words().contains(oracle), "{run:?}");
    for bad in ["--label-price -1", "--traffic nan"] {
        let run = line(path, &format!("plan router.safetensors {TASK} {bad}"));
        assert!(run.code == 2 && run.stderr.contains("zero"), "{run:?}");
    }
}

#[test]
fn plans_write_the_items_to_label() {
    let folder = workshop();
    let path = folder.path();
    let run = line(path, &format!("plan router.safetensors {TASK} -o items.csv"));
    assert!(run.code != 0 && run.stderr.contains("--items TABLE"), "{run:?}");
    let plan = line(path, &format!("plan router.safetensors {TASK} --json")).ok().json();
    line(path, &format!("plan router.safetensors {TASK} --items heldout.csv -o items.csv")).ok();
    let (header, rows) = parse_csv(&fs::read_to_string(path.join("items.csv")).unwrap());
    assert_eq!(header, ["id", "cell", "labels", "worth"]);
    for row in &rows {
        let cells = plan["cells"].as_array().unwrap();
        let cell =
            cells.iter().find(|cell| cell["cell"].as_u64() == row[1].parse().ok()).expect("an undetermined cell");
        assert!(row[0].starts_with('q') && row[2].parse::<u64>().unwrap() > 0, "{row:?}");
        assert!(cell["asked"]["more_labels"].is_u64() || cell["asked"]["more_items"].is_u64(), "{row:?}");
    }
}

/// Without prices every item that the plan asks for is listed, whether or not its labels are expected to change an action; calibration items
/// without their votes are left off, so that nobody pays for their labels again.
#[test]
fn plans_without_prices_list_all_recommended_items() {
    let folder = workshop();
    let path = folder.path();
    let plan = |table: &str| {
        line(path, &format!("plan router.safetensors {TASK} --items {table} -o items.csv --json")).ok().json()
    };
    let without_votes = |from: &str, to: &str| {
        let (header, rows) = parse_csv(&fs::read_to_string(path.join(from)).unwrap());
        let kept: Vec<usize> = (0..header.len()).filter(|&at| !header[at].starts_with("votes_")).collect();
        let text = |row: &Vec<String>| kept.iter().map(|&at| row[at].as_str()).collect::<Vec<_>>().join(",");
        let lines: Vec<String> = std::iter::once(&header).chain(&rows).map(text).collect();
        fs::write(path.join(to), lines.join("\n") + "\n").unwrap();
    };
    without_votes("heldout.csv", "pool.csv");
    without_votes("calibration.csv", "known.csv");
    let found = plan("pool.csv");
    let asked = found["cells"].as_array().unwrap().iter().filter_map(|cell| cell["asked"]["more_items"].as_u64());
    let (asked, items) = (asked.sum::<u64>(), &found["items"]);
    let [listed, missing] = ["items", "missing"].map(|key| items[key].as_u64().unwrap());
    assert!(listed > 0 && listed + missing == asked && items["worth"].as_f64() >= Some(0.0), "{found}");
    let run = line(path, &format!("plan router.safetensors {TASK} --items pool.csv")).ok();
    assert_eq!(missing > 0, run.words().contains("more than the table has"), "{run:?}");
    assert!(!run.stderr.contains("calibration row"), "{run:?}");
    let run = line(path, &format!("plan router.safetensors {TASK} --items known.csv")).ok();
    assert!(run.stderr.contains("items have the prediction of a calibration row and are left off"), "{run:?}");
    assert!(run.words().contains("No items to label: all items of the table have labels already"), "{run:?}");
}

#[test]
fn row_and_its_cell_have_the_same_explanation() {
    let folder = workshop();
    let path = folder.path();
    let row = line(path, &format!("decide router.safetensors heldout.csv {TASK} --explain q16 --json")).ok().json();
    assert_eq!((row["id"].as_str(), row["row"].as_u64()), (Some("q16"), Some(17)));
    let by_number =
        line(path, &format!("decide router.safetensors heldout.csv {TASK} --explain 17 --json")).ok().json();
    assert_eq!((row["asked_by"].as_str(), by_number["asked_by"].as_str()), (Some("id"), Some("row")));
    assert_eq!(by_number["examples"], row["examples"]);
    assert_eq!(row["classes"], serde_json::json!(["cat", "dog", "owl"]));
    let cell = line(path, &format!("show router.safetensors {TASK} --explain {} --json", row["cell"])).ok().json();
    for key in ["name", "rows", "action", "actions", "runner_up", "margin", "flips", "certain", "regret"] {
        assert_eq!(row[key], cell[key], "{key}");
    }
    assert_eq!(row["examples"].as_array().unwrap().len(), 5);
    let (_, decisions) =
        parse_csv(&line(path, &format!("decide router.safetensors heldout.csv {TASK} --keep id")).ok().stdout);
    assert_eq!(row["action"].as_str().unwrap(), decisions[16][3]);
    for (priced, column) in row["actions"].as_array().unwrap().iter().zip(7..) {
        assert_eq!(priced["cost"].as_f64().unwrap(), decisions[16][column].parse::<f64>().unwrap());
    }
    let text = line(path, &format!("decide router.safetensors heldout.csv {TASK} --explain q16")).ok().stdout;
    for part in ["id q16 (row 17)", "runner-up", "taken", "the price of", "with 95 % confidence"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// The decision changes at the reported price.
#[test]
fn actions_change_at_the_reported_prices() {
    let folder = workshop();
    let path = folder.path();
    let explained = line(path, &format!("show router.safetensors {TASK} --explain 0 --json")).ok().json();
    let flips = explained["flips"].as_array().unwrap();
    assert!(!flips.is_empty());
    for flip in flips {
        let (now, at) = (flip["now"].as_f64().unwrap(), flip["at"].as_f64().unwrap());
        let price = at + 1e-6 * if at >= now { 1.0 } else { -1.0 };
        let task = match flip["price_of"].as_str().unwrap() {
            "abstain" => format!("--route expert=0.05 --abstain {price}"),
            _ => format!("--route expert={price} --abstain 0.3"),
        };
        let shown = line(path, &format!("show router.safetensors {task} --json")).ok().json();
        assert_eq!(shown["cells"][0]["action"], flip["to"], "{flip}");
    }
}

#[test]
fn uncertifiable_and_unexplainable_inputs_are_refused() {
    let folder = workshop();
    let path = folder.path();
    for command in ["show router.safetensors", "plan router.safetensors", "decide router.safetensors heldout.csv"] {
        for confidence in ["0", "1", "-0.5", "95", "nan"] {
            let run = line(path, &format!("{command} --abstain 0.3 --confidence {confidence}"));
            assert!(run.code == 2 && run.stderr.contains("between 0 and 1"), "{command}: {run:?}");
            assert_eq!(run.stdout, "");
        }
    }
    for (command, message) in [
        ("show router.safetensors --confidence 0.9", "--confidence needs a task"),
        ("show router.safetensors --explain 3", "--explain needs a task"),
        ("show router.safetensors --abstain 0.3 --explain 9", "from 0 to 8"),
        ("decide router.safetensors heldout.csv --abstain 0.3 --explain nobody", "no row has the id \"nobody\""),
        ("decide router.safetensors heldout.csv --abstain 0.3 --explain 0", "no row has the id \"0\""),
        ("plan heldout.csv --abstain 0.3", "that is a table"),
        ("evaluate heldout.csv router.safetensors --abstain 0.3", "the router comes first: evaluate ROUTER TABLE"),
        ("decide heldout.csv router.safetensors --abstain 0.3", "the router comes first: decide ROUTER TABLE"),
        ("plan router.safetensors --route gpt=0.1,measured", "oracle_gpt_cat"),
    ] {
        let run = line(path, command);
        assert!(run.code == 2 && run.stderr.contains(message), "{command}: {run:?}");
    }
}

/// One label per item: the irreducible loss is only known not to be negative, and there is a plan nevertheless.
#[test]
fn one_label_per_item_is_certified_and_planned() {
    let folder = workshop();
    let path = folder.path();
    crate::world::rows(400, 3).with_one_label().write_csv(&path.join("one.csv"));
    line(path, "calibrate one.csv -o one.st --partition top-class:1").ok();
    let shown = line(path, "show one.st --route 0.05 --confidence 0.9 --json").ok().json();
    for cell in shown["cells"].as_array().unwrap() {
        assert_eq!(interval(&cell["interval"]["irreducible"])[0], 0.0);
    }
    let certain = shown["cells"].as_array().unwrap().iter().filter(|cell| cell["certain"] == true).count();
    let plan = line(path, "plan one.st --route 0.05 --confidence 0.9 --json").ok().json();
    assert_eq!(plan["cells"].as_array().unwrap().len(), 3 - certain);
    // What is not decided is no action; costs that are bounded are shown as bounds.
    let shown = line(path, "show one.st --route 0.3 --json").ok().json();
    let plan = line(path, "plan one.st --route 0.3 --confidence 0.9 --json").ok().json();
    let mut undetermined = 0;
    for cell in plan["cells"].as_array().unwrap() {
        let action = &shown["cells"][cell["cell"].as_u64().unwrap() as usize]["action"];
        assert_eq!(cell["action"], *action, "{plan}");
        undetermined += usize::from(action == "undetermined");
    }
    assert!(undetermined > 0, "{plan}");
    let explained = line(path, "show one.st --route 0.05 --explain 1").ok().stdout;
    assert!(explained.lines().any(|line| line.contains("route:oracle") && line.contains("0.0500…")), "{explained}");
    let explained = line(path, "show one.st --route 0.05 --explain 1 --json").ok().json();
    assert_eq!(explained["actions"][1]["bounds"][0], 0.05, "{explained}");
    let decided = line(path, "show one.st --route 0.9 --explain 1").ok().stdout;
    assert!(decided.contains("predict beats route:oracle by at least"), "{decided}");
    // A limit promises no more than the dearer end of the bounds.
    let limited = line(path, "show one.st --route 0.05 --budget 0.2").ok().stdout.replace('\n', " ");
    assert!(limited.contains("the expected loss is at most"), "{limited}");
    let limited = line(path, "show router.safetensors --route 0.05 --budget 0.2").ok().stdout.replace('\n', " ");
    assert!(limited.contains("the expected loss is 0."), "{limited}");
}

/// A plan needs a choice; cells beyond its search limits are reported as out of reach.
#[test]
fn plans_state_their_limits() {
    let folder = workshop();
    let path = folder.path();
    for task in ["", " --loss zero-one"] {
        let run = line(path, &format!("plan router.safetensors{task}"));
        assert!(run.code == 2 && run.stderr.contains("add --route COST or --abstain COST"), "{run:?}");
    }
    let plan = line(path, &format!("plan router.safetensors {TASK} --json")).ok().json();
    let run = line(path, &format!("plan router.safetensors {TASK}")).ok();
    let is_uncertain = plan["cells"].as_array().unwrap().iter().any(|cell| cell["labels"].is_null());
    assert_eq!(run.stdout.contains("not within 200 labels per item or 32 times the items"), is_uncertain, "{run:?}");
    assert!(!run.stdout.contains("cost nearly the same"), "{run:?}");
}

/// A bound of all that a loss can be is none.
#[test]
fn uninformative_bounds_for_all_losses_are_left_out() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path();
    let row = |i: usize| format!("{},{},{},{}\n", 0.7, 0.3, 1 - i % 2, i % 2);
    for (rows, tells) in [(10, false), (1200, true)] {
        let rows: String = (0..rows).map(row).collect();
        fs::write(path.join("one.csv"), format!("prob_a,prob_b,votes_a,votes_b\n{rows}")).unwrap();
        line(path, "calibrate one.csv -o one.st --partition confidence:1").ok();
        let run = line(path, "show one.st --abstain 0.3 --confidence 0.95").ok();
        assert_eq!(run.stdout.contains("For every proper loss"), tells, "{run:?}");
    }
}

/// Two tasks at once are each a little less sure than alone, and no more is shown of either.
#[test]
fn several_tasks_are_certified_at_once() {
    let folder = workshop();
    let path = folder.path();
    fs::write(path.join("a.toml"), "abstain = 0.4\n[[route]]\nname = \"expert\"\ncost = 0.05\n").unwrap();
    fs::write(path.join("b.toml"), "loss = \"zero-one\"\n[[route]]\ncost = 0.1\n").unwrap();
    let show = |tasks: &str| line(path, &format!("show router.safetensors {tasks}"));
    let both = show("--task a.toml --task b.toml --confidence 0.9 --json").ok().json();
    assert_eq!((&both["confidence"], both["tasks"].as_array().unwrap().len()), (&0.9.into(), 2));
    for (place, file) in ["a.toml", "b.toml"].iter().enumerate() {
        let alone = show(&format!("--task {file} --confidence 0.9 --json")).ok().json();
        let together = &both["tasks"][place];
        assert_eq!((&together["task"], &together["confidence"]), (&alone["task"], &0.9.into()));
        let mut wider = 0;
        for (one, other) in alone["cells"].as_array().unwrap().iter().zip(together["cells"].as_array().unwrap()) {
            assert_eq!(one["costs"], other["costs"], "estimates do not change");
            let ([low, high], [lower, higher]) =
                (interval(&one["interval"]["total"]), interval(&other["interval"]["total"]));
            assert!(lower <= low && high <= higher, "{one} {other}");
            wider += usize::from(higher - lower > high - low);
        }
        assert!(wider > 0, "{file}: nothing is wider");
    }
    let displayed = show("--task a.toml --task b.toml --confidence 0.9").ok().stdout;
    for part in
        ["--task a.toml (1 of 2)", "--task b.toml (2 of 2)", "for all 2 tasks", "plan router.safetensors --task b.toml"]
    {
        assert!(displayed.replace("\n  ", " ").contains(part), "{part} in {displayed}");
    }
    fs::write(path.join("odd.toml"), "[loss]\nacts = [\"x\", \"y\"]\ncost = [[0, 1, 2, 3, 4], [1, 0, 1, 1, 1]]\n")
        .unwrap();
    for (arguments, parts) in [
        ("show router.safetensors --task a.toml --task b.toml", vec!["2 tasks", "--confidence"]),
        ("show router.safetensors --task a.toml --task b.toml --explain 1", vec!["--explain", "one task"]),
        ("show router.safetensors --task - --task - --confidence 0.9", vec!["standard input"]),
        ("decide router.safetensors heldout.csv --task a.toml --task b.toml", vec!["--task is given 2 times"]),
        ("plan router.safetensors --task a.toml --task b.toml", vec!["--task is given 2 times"]),
        ("show router.safetensors --task a.toml --task odd.toml --confidence 0.9", vec!["odd.toml", "5 classes"]),
        ("show router.safetensors --task odd.toml", vec!["odd.toml", "5 classes"]),
        ("plan router.safetensors --task odd.toml", vec!["odd.toml", "5 classes"]),
        ("decide router.safetensors heldout.csv --task odd.toml", vec!["odd.toml", "5 classes"]),
        ("evaluate router.safetensors heldout.csv --task odd.toml", vec!["odd.toml", "5 classes"]),
        ("diagnose calibration.csv --task odd.toml", vec!["odd.toml", "5 classes"]),
    ] {
        let run = line(path, arguments);
        assert_eq!(run.code, 2, "{arguments}: {run:?}");
        for part in parts {
            assert!(run.stderr.contains(part), "{arguments}: {part} in {}", run.stderr);
        }
    }
}
