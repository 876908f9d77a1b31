//! Labels bought in rounds: from a plan to new labels, to a router with more rows, to the next plan.

use std::collections::HashSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use pointsman_testing::Lcg;
use tempfile::TempDir;

use crate::{Run, line, parse_csv};

pub(crate) const TASK: &str = "--route gpt=0.05,measured --route expert=0.12 --abstain 0.45 --confidence 0.99";

/// An item with answers of a measured oracle, as a row of a table, and the probability that an annotator says yes.
fn item(random: &mut Lcg, id: &str) -> (String, f64) {
    let p = 0.02 + 0.96 * random.uniform();
    let truth = if random.uniform() < 0.4 { 0.5 } else { p };
    let answer = if truth > 0.5 { 0.9 } else { 0.1 };
    (format!("{id},{:.6},{p:.6},{:.1},{answer:.1}\n", 1.0 - p, 1.0 - answer), truth)
}

/// Labels of three of six annotators.
fn labels_of(random: &mut Lcg, id: &str, truth: f64, labels: usize) -> String {
    let first = random.below(6);
    let mut text = String::new();
    for place in 0..labels {
        let label = if random.uniform() < truth { "yes" } else { "no" };
        writeln!(text, "{id},{label},ann{}", (first + place) % 6).unwrap();
    }
    text
}

/// A folder with `items.csv` and their `labels.csv`, `pool.csv` without labels, and `router.safetensors`; also the truth of the pool.
pub(crate) fn first_round() -> (TempDir, Vec<f64>) {
    let folder = TempDir::new().unwrap();
    let mut random = Lcg::new(17);
    let header = "id,prob_no,prob_yes,oracle_gpt_no,oracle_gpt_yes\n";
    let (mut items, mut pool, mut labels) = (header.to_owned(), header.to_owned(), "id,label,annotator\n".to_owned());
    for n in 0..500 {
        let (row, truth) = item(&mut random, &format!("i{n}"));
        items += &row;
        labels += &labels_of(&mut random, &format!("i{n}"), truth, 3);
    }
    let mut truths = Vec::new();
    for n in 0..400 {
        let (row, truth) = item(&mut random, &format!("new{n}"));
        pool += &row;
        truths.push(truth);
    }
    for (name, text) in [("items.csv", items), ("labels.csv", labels), ("pool.csv", pool)] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let calibrate = "calibrate items.csv --annotations labels.csv --partition confidence:4 -o router.safetensors";
    line(folder.path(), calibrate).ok();
    (folder, truths)
}

/// The last command that was printed, without the name of the program.
fn suggested(run: &Run) -> String {
    let words = run.words();
    let at = words.rfind("pointsman ").unwrap_or_else(|| panic!("no command: {run:?}"));
    words[at + "pointsman ".len()..].replace("\\ ", "")
}

pub(crate) fn listed(path: &Path, file: &str) -> Vec<String> {
    let (_, rows) = parse_csv(&fs::read_to_string(path.join(file)).unwrap());
    rows.into_iter().map(|row| row[0].clone()).collect()
}

#[test]
fn second_round_lists_only_items_without_labels() {
    let (folder, truths) = first_round();
    let path = folder.path();
    let run = line(path, &format!("plan router.safetensors {TASK} --only new-items --items pool.csv -o list.csv")).ok();
    let first = listed(path, "list.csv");
    assert!(first.len() >= 20, "{run:?}");
    let add = suggested(&run);
    let expected = "calibrate pool.csv --annotations new-labels.csv --add-to router.safetensors -o more.safetensors";
    assert_eq!(add, expected);
    // Only the first items come back with labels.
    let mut random = Lcg::new(3);
    let mut labels = "id,label,annotator\n".to_owned();
    for id in &first[..first.len() / 2] {
        let n: usize = id.strip_prefix("new").unwrap().parse().unwrap();
        labels += &labels_of(&mut random, id, truths[n], 3);
    }
    fs::write(path.join("new-labels.csv"), labels).unwrap();
    line(path, &add).ok();
    let labelled: HashSet<&String> = first[..first.len() / 2].iter().collect();
    for annotations in [" --annotations new-labels.csv", ""] {
        let plan = format!("plan more.safetensors {TASK} --only new-items --items pool.csv{annotations} -o second.csv");
        let run = line(path, &plan).ok();
        let second = listed(path, "second.csv");
        assert!(!second.is_empty() && second.iter().all(|id| !labelled.contains(id)), "{second:?}");
        let counted = match annotations {
            "" => "left off the list".to_owned(),
            _ => format!("{} items have labels in --annotations", labelled.len()),
        };
        assert!(run.stderr.contains(&counted) && !run.stderr.contains("were left out"), "{run:?}");
        // The next router has another name than this one, and keeps its rows.
        let next = suggested(&run);
        assert!(next.ends_with("--add-to more.safetensors -o more-2.safetensors"), "{next}");
        // Nor are the labels that it has added again.
        assert!(next.contains("--annotations new-labels-2.csv"), "{next}");
    }
    let plan = format!(
        "plan more.safetensors {TASK} --only new-items --items pool.csv --annotations new-labels.csv --without ann1"
    );
    let run = line(path, &plan).ok();
    assert!(suggested(&run).contains("--annotations new-labels-2.csv --without ann1 --add-to"), "{run:?}");
    // More labels on the items of a part of the router: calibrating on them alone would lose its other rows.
    let labelled: String = {
        let pool = fs::read_to_string(path.join("pool.csv")).unwrap();
        let is_kept =
            |row: &&str| row.starts_with("id,") || labelled.iter().any(|id| row.starts_with(&format!("{id},")));
        pool.lines().filter(is_kept).map(|row| format!("{row}\n")).collect()
    };
    fs::write(path.join("part.csv"), labelled).unwrap();
    let run = line(path, &format!("plan more.safetensors {TASK} --items part.csv --annotations new-labels.csv")).ok();
    assert!(!run.stdout.contains("pointsman calibrate"), "{run:?}");
}

#[test]
fn columns_that_added_rows_need_are_named_before_labels_are_bought() {
    let (folder, _) = first_round();
    let path = folder.path();
    let bare: String = fs::read_to_string(path.join("pool.csv"))
        .unwrap()
        .lines()
        .map(|row| row.split(',').take(3).collect::<Vec<_>>().join(",") + "\n")
        .collect();
    fs::write(path.join("bare.csv"), bare).unwrap();
    let columns = "has no columns oracle_gpt_no, oracle_gpt_yes, which the ";
    let run = line(path, &format!("plan router.safetensors {TASK} --items bare.csv -o list.csv")).ok();
    assert!(run.stderr.contains(columns), "{run:?}");
    let run = line(path, &format!("plan router.safetensors {TASK} --items pool.csv -o list.csv")).ok();
    assert!(!run.stderr.contains("has no column"), "{run:?}");
    fs::write(path.join("new-labels.csv"), "id,label\nnew1,yes\nnew1,no\n").unwrap();
    let add = "calibrate bare.csv --annotations new-labels.csv --add-to router.safetensors -o more.safetensors";
    let run = line(path, add);
    assert!(run.code == 2 && run.stderr.contains(columns), "{run:?}");
}

/// One annotator of the new labels says the same of every item.
#[test]
fn annotators_of_added_labels_are_tested() {
    let (folder, truths) = first_round();
    let path = folder.path();
    let mut random = Lcg::new(5);
    let mut labels = "id,label,annotator\n".to_owned();
    for (n, truth) in truths.iter().enumerate() {
        labels += &labels_of(&mut random, &format!("new{n}"), *truth, 4);
        writeln!(labels, "new{n},yes,lazy").unwrap();
    }
    fs::write(path.join("new-labels.csv"), labels).unwrap();
    let add = "calibrate pool.csv --annotations new-labels.csv --add-to router.safetensors -o more.safetensors";
    let run = line(path, add).ok();
    assert!(run.stderr.contains("by more than chance explains") && run.stderr.contains("lazy"), "{run:?}");
}

#[test]
fn plans_say_what_to_buy_in_each_cell_and_what_the_list_costs() {
    let (folder, _) = first_round();
    let path = folder.path();
    let prices = "--label-price 0.001 --traffic 1000000";
    let run = line(path, &format!("plan router.safetensors {TASK} {prices} --json")).ok();
    let plan = run.json();
    let ways = plan["purchase"]["ways"].as_array().unwrap();
    assert!(!ways.is_empty(), "{plan}");
    let number = |way: &serde_json::Value, key: &str| way[key].as_u64().unwrap_or(0);
    for way in ways {
        let by_items = number(way, "new_items") * number(way, "labels_per_new_item");
        let by_labels = number(way, "present_items") * number(way, "more_labels_per_item");
        assert_eq!(by_items + by_labels, number(way, "labels"), "{way}");
        assert!(by_items == 0 || by_labels == 0, "{way}");
    }
    let run = line(path, &format!("plan router.safetensors {TASK} {prices}")).ok();
    assert!(run.words().contains("new item") || run.words().contains("on each of the"), "{run:?}");
    let next = suggested(&run);
    assert!(next.contains(prices) && next.ends_with("--items pool.csv -o to-label.csv"), "{next}");
    let run = line(path, &next).ok();
    assert!(run.words().contains("Brier points over 1,000,000 queries") || run.words().contains("No items to label"));
    // Labels per worth decrease; cells whose labels are not worth buying come last.
    let bought: Vec<u64> =
        plan["purchase"]["cells"].as_array().unwrap().iter().filter_map(|cell| cell.as_u64()).collect();
    let cells = plan["cells"].as_array().unwrap();
    let worth = |cell: &serde_json::Value| {
        let asked = &cell["asked"];
        asked["worth"].as_f64().map_or(f64::NEG_INFINITY, |worth| worth / asked["labels"].as_f64().unwrap())
    };
    let order: Vec<(bool, f64)> =
        cells.iter().map(|cell| (bought.contains(&cell["cell"].as_u64().unwrap()), worth(cell))).collect();
    assert!(order.windows(2).all(|pair| pair[0] >= pair[1]), "{order:?}");
}

/// One person who types a name in two ways labels an item once.
#[test]
fn annotators_are_one_if_their_names_differ_in_capitals_only() {
    let (folder, _) = first_round();
    let path = folder.path();
    let labels = fs::read_to_string(path.join("labels.csv")).unwrap();
    let untidy: String = labels
        .lines()
        .enumerate()
        .map(|(n, row)| if n % 7 == 6 { row.replace(",ann", ", Ann") + " \n" } else { format!("{row}\n") })
        .collect();
    fs::write(path.join("untidy.csv"), untidy).unwrap();
    let diagnose = |labels: &str| line(path, &format!("diagnose items.csv --annotations {labels} --json")).ok();
    let (tidy, untidy) = (diagnose("labels.csv"), diagnose("untidy.csv"));
    assert!(untidy.stderr.contains("in capitals or spaces only, taken for one annotator"), "{untidy:?}");
    assert!(!tidy.stderr.contains("taken for one annotator"), "{tidy:?}");
    assert_eq!(
        tidy.json()["annotators"].as_array().unwrap().len(),
        untidy.json()["annotators"].as_array().unwrap().len()
    );
    let calibrate =
        "calibrate items.csv --annotations untidy.csv --without ANN1 -o r.st --partition confidence:2 --json";
    assert!(line(path, calibrate).ok().json()["labels"]["max"].as_u64() <= Some(3));
}

#[test]
fn policies_that_decide_alike_are_called_alike() {
    let (folder, _) = first_round();
    let path = folder.path();
    fs::copy(path.join("router.safetensors"), path.join("copy.safetensors")).unwrap();
    let compare =
        "compare router.safetensors copy.safetensors items.csv --annotations labels.csv --route gpt=0.05,measured";
    let run = line(path, compare).ok();
    assert!(run.words().contains("copy.safetensors decides these rows as router.safetensors does"), "{run:?}");
}

/// Half of the items that a tree was learned from shaped its cells and are not in the router: they cannot be distinguished from new ones.
#[test]
fn calibration_table_of_a_learned_partition_is_not_taken_for_new_items() {
    let (folder, _) = first_round();
    let path = folder.path();
    line(path, "calibrate items.csv --annotations labels.csv --partition tree -o tree.safetensors").ok();
    let run = line(path, &format!("plan tree.safetensors {TASK} --items items.csv -o list.csv"));
    assert!(run.code == 2 && run.stderr.contains("add --annotations FILE"), "{run:?}");
    assert!(!path.join("list.csv").exists());
    line(path, &format!("plan tree.safetensors {TASK} --items items.csv --annotations labels.csv")).ok();
    line(path, &format!("plan tree.safetensors {TASK} --items pool.csv")).ok();
    let (items, pool) = ["items.csv", "pool.csv"].map(|name| fs::read_to_string(path.join(name)).unwrap()).into();
    let new: String = pool.lines().skip(1).map(|row| format!("{row}\n")).collect();
    fs::write(path.join("all.csv"), format!("{items}{new}")).unwrap();
    let labels = fs::read_to_string(path.join("labels.csv")).unwrap();
    let of_new = "new1,yes,ann1\nnew1,no,ann2\nnew2,no,ann2\n";
    fs::write(path.join("export.csv"), format!("{labels}{of_new}")).unwrap();
    fs::write(path.join("new.csv"), format!("id,label,annotator\n{of_new}")).unwrap();
    let add = |table: &str, labels: &str| {
        let add = "--add-to tree.safetensors --known-items skip -o more.safetensors";
        line(path, &format!("calibrate {table} --annotations {labels} {add}"))
    };
    let run = add("all.csv", "export.csv");
    assert!(run.code == 2 && run.stderr.contains("give only the new items, in a file of their own"), "{run:?}");
    assert!(!path.join("more.safetensors").exists());
    add("pool.csv", "new.csv").ok();
}

/// Labels that were left out at calibration make most items look as if the router did not have them.
#[test]
fn labels_that_differ_from_the_routers_are_reported() {
    let (folder, _) = first_round();
    let path = folder.path();
    let table = "items.csv --annotations labels.csv";
    line(path, &format!("calibrate {table} --without ann1 --partition confidence:4 -o without.safetensors")).ok();
    let plan = |flags: &str| line(path, &format!("plan without.safetensors {TASK} --items {table}{flags}")).ok().stderr;
    let warned = plan("");
    assert!(
        warned.contains("carry other labels here than in the router") && warned.contains("--without NAME"),
        "{warned}"
    );
    let same = plan(" --without ann1");
    assert!(!same.contains("carry other labels"), "{same}");
}

/// Cells may want new items or more labels on present ones: each way has its command.
#[test]
fn plans_print_the_command_of_each_way_to_buy_labels() {
    let (folder, _) = first_round();
    let path = folder.path();
    let is_by_labels = |way: &serde_json::Value| !way["present_items"].is_null();
    let mut is_found = false;
    for price in ["0.0001", "0.001", "0.01", "0.05"] {
        let plan = format!("plan router.safetensors {TASK} --label-price {price} --traffic 1000000");
        let found = line(path, &format!("{plan} --json")).ok().json();
        let ways = found["purchase"]["ways"].as_array().unwrap().clone();
        let text = line(path, &plan).ok().words();
        assert_eq!(text.contains("--items calibration.csv"), ways.iter().any(is_by_labels), "{price}: {text}");
        is_found |= ways.iter().any(is_by_labels);
    }
    assert!(is_found);
    let list =
        format!("plan router.safetensors {TASK} --items items.csv --annotations labels.csv --only present-items");
    let run = line(path, &list).ok();
    assert!(run.words().contains("append these to labels.csv and calibrate again with all labels"), "{run:?}");
}

/// A folder as of [`first_round`] in which labels of new items were added to the router, as `more.safetensors`.
fn after_adding(labelled: usize) -> TempDir {
    let (folder, truths) = first_round();
    let path = folder.path();
    let mut random = Lcg::new(3);
    let mut labels = "id,label,annotator\n".to_owned();
    for (n, truth) in truths.iter().enumerate().take(labelled) {
        labels += &labels_of(&mut random, &format!("new{n}"), *truth, 3);
    }
    fs::write(path.join("new-labels.csv"), labels).unwrap();
    let add = "calibrate pool.csv --annotations new-labels.csv --add-to router.safetensors -o more.safetensors";
    line(path, add).ok();
    folder
}

/// Some items of a calibration table have no labels, and a router to which rows were added has others than the table.
#[test]
fn calibration_items_get_more_labels_after_rows_were_added() {
    let folder = after_adding(100);
    let path = folder.path();
    let labels = fs::read_to_string(path.join("labels.csv")).unwrap();
    let kept = labels.lines().filter(|row| !row.starts_with("i7,")).map(|row| format!("{row}\n"));
    fs::write(path.join("labels.csv"), kept.collect::<String>()).unwrap();
    line(path, "calibrate items.csv --annotations labels.csv --partition confidence:4 -o router.safetensors").ok();
    let add = "calibrate pool.csv --annotations new-labels.csv --add-to router.safetensors -o more-2.safetensors";
    line(path, add).ok();
    let plan = format!("plan more-2.safetensors {TASK} --items");
    let own = "items.csv --annotations labels.csv";
    let is_own = |id: &String| id.starts_with('i');
    let run = line(path, &format!("{plan} {own} --only present-items -o list.csv")).ok();
    let present = listed(path, "list.csv");
    assert!(!present.is_empty() && present.iter().all(is_own) && run.words().contains("more label"), "{run:?}");
    // Without the flag they are not taken for new items either: the list is empty only if the plan asks for nothing but new items.
    let run = line(path, &format!("{plan} {own} -o list.csv")).ok();
    let present = listed(path, "list.csv");
    let asks_for_others = run.words().contains("new items are asked for, not more labels on items that the router has");
    assert!(present.iter().all(is_own) && present.is_empty() == asks_for_others, "{run:?}");
    // Added rows would count as traffic if they were calibrated on together with the others.
    let run = line(path, &format!("{plan} {own} --only present-items")).ok();
    let words = run.words().replace("\\ ", "");
    assert!(words.contains("also on items that this table does not have: "), "{words}");
    let first = "pointsman calibrate items.csv --annotations labels.csv --partition confidence:4 -o more-3.safetensors";
    let second =
        "pointsman calibrate pool.csv --annotations new-labels.csv --add-to more-3.safetensors -o more-4.safetensors";
    assert!(
        words.contains("the original items, all of them and no others")
            && words.contains("100 rows that were added later"),
        "{words}"
    );
    assert!(words.find(first).unwrap() < words.find(second).unwrap(), "{words}");
    // A table of all items is that of no single step.
    let (items, pool) = ["items.csv", "pool.csv"].map(|name| fs::read_to_string(path.join(name)).unwrap()).into();
    let new: String = pool.lines().skip(1).take(100).map(|row| format!("{row}\n")).collect();
    fs::write(path.join("wide.csv"), format!("{items}{new}")).unwrap();
    let all = fs::read_to_string(path.join("new-labels.csv")).unwrap();
    let all: String = all.lines().skip(1).map(|row| format!("{row}\n")).collect();
    let labels = fs::read_to_string(path.join("labels.csv")).unwrap();
    fs::write(path.join("all.csv"), format!("{labels}{all}")).unwrap();
    let run = line(path, &format!("{plan} wide.csv --annotations all.csv --only present-items")).ok();
    assert!(
        run.words().contains("the original items, all of them and no others")
            && !run.words().contains("calibrate wide.csv"),
        "{run:?}"
    );
    // Of a pool with some labels the others are listed.
    line(path, &format!("{plan} pool.csv --annotations new-labels.csv --only new-items -o list.csv")).ok();
    let new = listed(path, "list.csv");
    assert!(!new.is_empty() && new.iter().all(|id| id.starts_with("new")), "{new:?}");
}

/// The flags of the first labels are kept for later ones, and those who are left out need not have given any of these.
#[test]
fn annotators_left_out_need_no_labels_on_new_items() {
    let (folder, truths) = first_round();
    let path = folder.path();
    let labels: String =
        (0..30).map(|n| labels_of(&mut Lcg::new(n), &format!("new{n}"), truths[n as usize], 2)).collect();
    fs::write(path.join("new-labels.csv"), format!("id,label,annotator\n{labels}")).unwrap();
    let add =
        "calibrate pool.csv --annotations new-labels.csv --without max --add-to router.safetensors -o more.safetensors";
    let run = line(path, add).ok();
    assert!(run.stderr.contains("no annotator has the name of --without \"max\""), "{run:?}");
    let run = line(path, "calibrate items.csv --annotations labels.csv --without max -o new.safetensors");
    assert!(run.code == 2 && run.stderr.contains("no annotator is called \"max\""), "{run:?}");
}

#[test]
fn routers_with_added_rows_are_not_replaced() {
    let folder = after_adding(50);
    let path = folder.path();
    let calibrate = "calibrate items.csv --annotations labels.csv --partition confidence:4 -o";
    let run = line(path, &format!("{calibrate} more.safetensors"));
    assert!(run.code == 2 && run.stderr.contains("50 rows were added later, which would be lost"), "{run:?}");
    line(path, &format!("{calibrate} router.safetensors")).ok();
    line(path, "calibrate items.csv --annotations labels.csv --like router.safetensors --part -o part.safetensors")
        .ok();
    let add = "calibrate pool.csv --annotations new-labels.csv --add-to router.safetensors -o";
    for others in [add, "merge part.safetensors -o"] {
        let run = line(path, &format!("{others} more.safetensors"));
        assert!(run.code == 2 && run.stderr.contains("50 rows were added later, which would be lost"), "{run:?}");
        line(path, &format!("{others} new.safetensors")).ok();
        fs::remove_file(path.join("new.safetensors")).unwrap();
    }
}
