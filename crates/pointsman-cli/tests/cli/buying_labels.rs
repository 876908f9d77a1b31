//! Limits on the labels to buy, and lists of items that agree with them.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use crate::second_round::{TASK, first_round, listed};
use crate::{line, parse_csv};

/// The ids, labels and worths of a list.
fn list(path: &Path, flags: &str) -> Vec<(String, usize, f64)> {
    line(path, &format!("plan router.safetensors {TASK} {flags} -o list.csv")).ok();
    let (_, rows) = parse_csv(&fs::read_to_string(path.join("list.csv")).unwrap());
    rows.into_iter().map(|row| (row[0].clone(), row[2].parse().unwrap(), row[3].parse().unwrap())).collect()
}

#[test]
fn limit_on_labels_ends_the_list_at_the_best_items() {
    let (folder, _) = first_round();
    let path = folder.path();
    let all = list(path, "--items pool.csv --max-labels 1000000 --only new-items");
    let some = list(path, "--items pool.csv --max-labels 100 --only new-items");
    let labels: usize = some.iter().map(|(_, labels, _)| labels).sum();
    assert!((95..=100).contains(&labels) && some.len() < all.len(), "{labels}, {} of {}", some.len(), all.len());
    let is_same = |(a, b): (&(String, usize, f64), &(String, usize, f64))| a.0 == b.0 && (a.2 - b.2).abs() < 1e-9;
    assert!(some.iter().zip(&all).all(is_same), "{some:?} {all:?}");
    let per_label = |(_, labels, worth): &(String, usize, f64)| worth / *labels as f64;
    assert!(all.windows(2).all(|pair| per_label(&pair[0]) >= per_label(&pair[1]) - 1e-12));
    // Money is a number of labels.
    assert_eq!(list(path, "--items pool.csv --label-price 0.5 --spend 50 --only new-items"), some);
    let mut before = 0.0;
    for most in [50, 200, 1000] {
        let plan = line(path, &format!("plan router.safetensors {TASK} --max-labels {most} --json")).ok().json();
        let purchase = &plan["purchase"];
        assert!(purchase["labels"].as_u64().unwrap() <= most, "{purchase}");
        let saving = purchase["saving"].as_f64().unwrap();
        assert!(saving > 0.0 && saving >= before, "{purchase}");
        before = saving;
    }
    let run = line(path, &format!("plan router.safetensors {TASK} --budget 500"));
    assert!(run.code == 2 && run.stderr.contains("--max-labels"), "{run:?}");
}

#[test]
fn items_get_no_more_labels_than_there_are_annotators() {
    let (folder, _) = first_round();
    let path = folder.path();
    // Six annotators, of whom three have labelled each item.
    for (flags, most) in [("", 3), (" --max-labels-per-item 5", 2)] {
        let listed = list(path, &format!("--items items.csv --annotations labels.csv{flags}"));
        assert!(listed.iter().all(|(_, labels, _)| *labels <= most), "{flags}: {listed:?}");
    }
    let plan = format!("plan router.safetensors {TASK} --max-labels-per-item 4 --json");
    for cell in line(path, &plan).ok().json()["cells"].as_array().unwrap() {
        assert!(cell["more_labels"].as_u64().unwrap_or(0) <= 1, "{cell}");
    }
}

#[test]
fn items_that_a_pool_has_twice_are_listed_once() {
    let (folder, _) = first_round();
    let path = folder.path();
    let pool = fs::read_to_string(path.join("pool.csv")).unwrap();
    let copies: String = pool.lines().skip(1).map(|row| format!("{row}\n")).collect();
    fs::write(path.join("twice.csv"), format!("{pool}{copies}")).unwrap();
    let once = list(path, "--items pool.csv");
    let run = line(path, &format!("plan router.safetensors {TASK} --items twice.csv -o list.csv")).ok();
    assert_eq!(listed(path, "list.csv"), once.into_iter().map(|(id, ..)| id).collect::<Vec<_>>());
    assert!(run.stderr.contains("400 rows have the id of an earlier row"), "{run:?}");
}

#[test]
fn full_export_does_not_count_the_first_round_twice() {
    let (folder, _) = first_round();
    let path = folder.path();
    let (items, pool) =
        (fs::read_to_string(path.join("items.csv")).unwrap(), fs::read_to_string(path.join("pool.csv")).unwrap());
    let new: String = pool.lines().skip(1).map(|row| format!("{row}\n")).collect();
    fs::write(path.join("all.csv"), format!("{items}{new}")).unwrap();
    let labels = fs::read_to_string(path.join("labels.csv")).unwrap();
    fs::write(path.join("export.csv"), format!("{labels}new1,yes,ann1\nnew1,no,ann2\nnew2,no,ann2\n")).unwrap();
    let add = "calibrate all.csv --annotations export.csv --add-to router.safetensors -o more.safetensors --json";
    let refused = line(path, add);
    assert!(refused.code == 2 && refused.stderr.contains("--known-items skip leaves out the items"), "{refused:?}");
    assert!(refused.stderr.contains("calibrate again on these, without items chosen by plan"), "{refused:?}");
    assert!(!path.join("more.safetensors").exists());
    // A router with added rows is not replaced unasked.
    let run = |flags: &str| {
        let _ = fs::remove_file(path.join("more.safetensors"));
        line(path, &format!("{add}{flags}")).ok()
    };
    let rows = |flags: &str| run(flags).json()["rows"].as_u64().unwrap();
    let (skipped, added) = (rows(" --known-items skip"), rows(" --known-items add"));
    assert!(skipped < added, "{skipped} {added}");
    // New items with one label each say little, and a warning says so.
    let warning = "2 of the 2 rows added have one label";
    let skip = |labels: &str| {
        fs::write(path.join("export.csv"), labels).unwrap();
        run(" --known-items skip").stdout.contains(warning)
    };
    assert!(skip(&format!("{labels}new1,yes,ann1\nnew2,no,ann2\n")));
    assert!(!skip(&format!("{labels}new1,yes,ann1\nnew1,no,ann2\nnew2,no,ann2\n")));
}

#[test]
fn labels_of_unknown_price_are_not_said_to_pay() {
    let (folder, _) = first_round();
    let path = folder.path();
    // One label per item does not identify what routing saves; several do, and that saves much.
    let one =
        "calibrate items.csv --annotations labels.csv --first-labels 1 --partition confidence:4 -o one.safetensors";
    line(path, one).ok();
    let (mut kinds, mut first_steps) = ([0; 2], 0);
    for (router, task, limit) in [
        ("router", TASK, " --max-labels 30"),
        ("router", TASK, " --max-labels 600"),
        ("router", TASK, ""),
        ("router", "--route expert=0.4", " --max-labels 9"),
        ("one", TASK, " --max-labels 30"),
        ("one", TASK, ""),
    ] {
        let plan = format!("plan {router}.safetensors {task}{limit}");
        let found = line(path, &format!("{plan} --json")).ok().json();
        let text = line(path, &plan).ok().words();
        let (bought, worth) = match limit {
            "" => (&found["begin_with"], "worth"),
            _ => (&found["purchase"], "saving"),
        };
        assert!(!text.contains("pay because") && !text.contains("Worth buying"), "{text}");
        assert!(found["purchase"]["pays"].is_null(), "{found}");
        let (Some(worth), Some(error)) = (bought[worth].as_f64(), bought[format!("{worth}_error")].as_f64()) else {
            continue;
        };
        if worth == 0.0 || found["begin_with"].is_null() {
            continue;
        }
        assert!(text.contains("Nobody can say whether that pays") && text.contains("--label-price X"), "{text}");
        assert!(text.contains("±"), "{text}");
        let is_distinct = worth > 2.0 * error;
        kinds[usize::from(is_distinct)] += 1;
        for part in ["if you buy them anyway", "cannot be distinguished from nothing", " anyway, for cell"] {
            assert_eq!(text.contains(part), !is_distinct, "{worth} ± {error}: {text}");
        }
        // The first step is what the command below it lists.
        if let (true, Some((_, most))) = (limit.is_empty(), text.split_once(" --max-labels ")) {
            let most = most.split(' ').next().unwrap();
            let listed = line(path, &format!("{plan} --max-labels {most} --json")).ok().json();
            for key in ["cells", "labels"] {
                assert_eq!(listed["purchase"][key], found["begin_with"][key], "{key}: {text}");
            }
            first_steps += 1;
        }
    }
    assert!(kinds.iter().all(|n| *n > 0) && first_steps > 0, "{kinds:?}, {first_steps}");
    let priced = format!("plan router.safetensors {TASK} --label-price 0.000001 --traffic 1000000");
    let words = line(path, &priced).ok().words();
    assert!(words.contains("Worth buying") || words.contains("Pays in expectation, but uncertain"), "{words}");
    assert_eq!(line(path, &format!("{priced} --json")).ok().json()["purchase"]["pays"], true);
}

/// Items have one to three labels; none may get more than three.
#[test]
fn labels_of_a_purchase_keep_to_the_limit_per_item() {
    let (folder, _) = first_round();
    let path = folder.path();
    let labels = fs::read_to_string(path.join("labels.csv")).unwrap();
    let kept = labels.lines().enumerate().filter(|(row, _)| row % 5 != 2 && row % 7 != 3);
    fs::write(path.join("some.csv"), kept.map(|(_, row)| format!("{row}\n")).collect::<String>()).unwrap();
    line(path, "calibrate items.csv --annotations some.csv --partition confidence:4 -o some.safetensors").ok();
    let flags = format!("plan some.safetensors {TASK} --only present-items --max-labels-per-item 3 --max-labels 2000");
    let found = line(path, &format!("{flags} --json")).ok().json();
    let ways = found["purchase"]["ways"].as_array().unwrap();
    assert!(!ways.is_empty(), "{found}");
    line(path, &format!("{flags} --items items.csv --annotations some.csv -o list.csv")).ok();
    let (_, rows) = parse_csv(&fs::read_to_string(path.join("list.csv")).unwrap());
    let text = line(path, &flags).ok().words();
    for way in ways {
        let cell = way["cell"].to_string();
        let of_cell: Vec<u64> = rows.iter().filter(|row| row[1] == cell).map(|row| row[2].parse().unwrap()).collect();
        assert_eq!(way["labels"], of_cell.iter().sum::<u64>(), "{way}");
        assert_eq!(way["present_items"], of_cell.len(), "{way}");
        assert_eq!(way["more_labels_per_item"], *of_cell.iter().max().unwrap(), "{way}");
        // Some items have all the labels that they may get.
        assert!(text.contains(&format!("each of {} of the", of_cell.len())), "{way}: {text}");
    }
    // The table has all items of the router, so that the list is worth what the purchase is.
    let worth: f64 = rows.iter().map(|row| row[3].parse::<f64>().unwrap()).sum();
    let saving = found["purchase"]["saving"].as_f64().unwrap();
    assert!(saving > 0.0 && (worth - saving).abs() < 1e-5 * saving, "{worth} {saving}");
}

#[test]
fn labels_of_one_kind_are_recommended_without_a_limit_too() {
    let (folder, _) = first_round();
    let path = folder.path();
    let plan = format!("plan router.safetensors {TASK} --max-labels-per-item 6");
    let mut labels = Vec::new();
    for (only, other) in [("new-items", "more_labels"), ("present-items", "more_items")] {
        for price in ["", " --label-price 0.01"] {
            let found = line(path, &format!("{plan} --only {only}{price} --json")).ok().json();
            let text = line(path, &format!("{plan} --only {only}{price}")).ok().words();
            let cells = found["cells"].as_array().unwrap();
            assert!(cells.iter().all(|cell| cell["asked"].is_null() || cell["asked"][other].is_null()), "{found}");
            let first = &found["begin_with"];
            let of_first = cells.iter().filter(|cell| first["cells"].as_array().unwrap().contains(&cell["cell"]));
            let sum: u64 = of_first.map(|cell| cell["asked"]["labels"].as_u64().unwrap()).sum();
            assert_eq!(first["labels"], sum, "{found}");
            let said = text.replace(',', "");
            assert!(said.contains(&format!("about {sum} labels")), "{sum}: {text}");
            assert_eq!(text.contains("--items pool.csv"), only == "new-items", "{text}");
            assert_eq!(text.contains("--items calibration.csv"), only == "present-items", "{text}");
            labels.push(sum);
        }
    }
    assert!(labels[0] == labels[1] && labels[0] != labels[2] && labels[2] == labels[3], "{labels:?}");
}

/// The lists of new items and of the router's are parts of one purchase.
#[test]
fn both_lists_together_spend_the_limit_once() {
    let (folder, _) = first_round();
    let path = folder.path();
    let mut mixed = 0;
    for flags in ["--max-labels 300", "--max-labels 900", "--max-labels 2500", "--max-labels 6000", ""] {
        let flags = format!("--max-labels-per-item 6 {flags}");
        let flags = flags.trim();
        let found = line(path, &format!("plan router.safetensors {TASK} {flags} --json")).ok().json();
        let present = list(path, &format!("{flags} --items items.csv --annotations labels.csv"));
        let of_present = fs::read_to_string(path.join("list.csv")).unwrap();
        let new = list(path, &format!("{flags} --items pool.csv"));
        let of_new = fs::read_to_string(path.join("list.csv")).unwrap();
        let [present, new] = [present, new].map(|list| list.iter().map(|(_, labels, _)| labels).sum::<usize>());
        let cells = |text: &str| parse_csv(text).1.into_iter().map(|row| row[1].clone()).collect::<HashSet<_>>();
        assert!(cells(&of_present).is_disjoint(&cells(&of_new)), "{flags}");
        if let Some(most) = found["purchase"]["max_labels"].as_u64() {
            assert!(present + new <= most as usize, "{flags}: {present} and {new}");
            let ways = found["purchase"]["ways"].as_array().unwrap();
            let recommended: u64 =
                ways.iter().filter(|way| way["new_items"].is_null()).map(|way| way["labels"].as_u64().unwrap()).sum();
            assert_eq!(present, recommended as usize, "{flags}: {found}");
            mixed += usize::from(present > 0 && new > 0);
        }
        let listed = line(path, &format!("plan router.safetensors {TASK} {flags} --items pool.csv --json")).ok().json();
        if listed["purchase"].is_object() {
            let items = &listed["items"];
            assert_eq!(items["labels_elsewhere"], present, "{flags}: {listed}");
            let elsewhere = items["cells_elsewhere"].as_array().unwrap().iter().map(ToString::to_string);
            assert_eq!(elsewhere.collect::<HashSet<_>>(), cells(&of_present), "{flags}: {listed}");
            for of in items["cells"].as_array().unwrap() {
                let cell = of["cell"].to_string();
                let rows = parse_csv(&of_new).1.into_iter().filter(|row| row[1] == cell);
                let labels: Vec<u64> = rows.map(|row| row[2].parse().unwrap()).collect();
                let range = [labels.iter().min().unwrap(), labels.iter().max().unwrap()];
                assert_eq!((&of["items"], &of["labels"]), (&labels.len().into(), &serde_json::json!(range)), "{of}");
            }
        }
    }
    assert!(mixed > 0);
}

#[test]
fn ids_under_another_name_are_named_with_the_flag_that_reads_them() {
    let (folder, _) = first_round();
    let path = folder.path();
    let pool = fs::read_to_string(path.join("pool.csv")).unwrap();
    fs::write(path.join("pool.csv"), pool.replacen("id,", "item_id,", 1)).unwrap();
    let plan = format!("plan router.safetensors {TASK} --items pool.csv -o list.csv");
    let run = line(path, &plan);
    assert!(run.code == 2 && run.stderr.contains("--columns id=item_id"), "{run:?}");
    line(path, &format!("{plan} --columns id=item_id")).ok();
    assert!(listed(path, "list.csv").iter().all(|id| id.starts_with("new")));
}

#[test]
fn plans_without_certain_cells_say_what_would_make_them_certain() {
    let (folder, _) = first_round();
    let path = folder.path();
    line(path, "calibrate items.csv --annotations labels.csv --partition confidence:40 -o fine.safetensors").ok();
    let found = line(path, &format!("plan fine.safetensors {TASK} --json")).ok().json();
    assert!(found["certain_share"].as_f64().unwrap() < 0.5, "{found}");
    let text = line(path, &format!("plan fine.safetensors {TASK}")).ok().words();
    match found["to_certainty"]["labels"].as_u64() {
        Some(_) => assert!(text.contains("To make actions certain: about"), "{text}"),
        None => assert!(text.contains("No reasonable number of labels makes a cell certain."), "{text}"),
    }
    match found["coarser"]["partitions"][0]["partition"].as_str() {
        Some(partition) => assert!(text.contains(&format!("--partition {partition} has")), "{text}"),
        None => assert!(text.contains("label more items, or try cells by features"), "{text}"),
    }
    // What certainty costs is judged by the same rows.
    let best = &found["coarser"]["partitions"][0];
    if let Some(difference) = best["difference"].as_object() {
        let [low, high] = [0, 1].map(|end| difference["interval"][end].as_f64().unwrap());
        let is_known = difference["identified"].is_null() && difference["differing_rows"].as_u64().unwrap() >= 30;
        let said = match () {
            () if is_known && low > 0.0 => "more per query",
            () if is_known && high < 0.0 => "less per query",
            () => "which does not show which of them costs less",
        };
        assert!(text.contains(said), "{said}: {difference:?} in {text}");
        let costs = [&best["promise"], &found["promise"]].map(|promise| promise["cost"].as_f64().unwrap());
        let estimate = difference["estimate"].as_f64().unwrap();
        assert!((estimate - (costs[0] - costs[1])).abs() < 1e-9, "{found}");
    }
    // 40 cells are more than any of these has.
    assert_eq!(found["coarser"]["tried"], serde_json::json!(["top-class:5", "confidence:10", "confidence:5"]));
    let certified = line(path, &format!("show fine.safetensors {TASK} --json")).ok().json();
    assert_eq!(certified["coarser"], found["coarser"]);
    let shown = line(path, &format!("show fine.safetensors {TASK}")).ok().words();
    assert!(
        shown.contains("more would be certain") || shown.contains("label more items, or try cells by features"),
        "{shown}"
    );
}

#[test]
fn plans_say_what_certainty_costs_where_labels_do_not_pay() {
    let (folder, _) = first_round();
    let path = folder.path();
    let plan = format!("plan router.safetensors {TASK} --label-price 1000 --traffic 10");
    let (text, found) = (line(path, &plan).ok().words(), line(path, &format!("{plan} --json")).ok().json());
    assert!(text.to_lowercase().contains("not worth it"), "{text}");
    let Some(labels) = found["to_certainty"]["labels"].as_u64() else {
        assert!(text.contains("No reasonable number of labels makes a cell certain."), "{text}");
        return;
    };
    assert_eq!(text.matches("To make actions certain").count(), 1, "{text}");
    assert!(text.replace(',', "").contains(&format!("To make actions certain: about {labels} labels for")), "{text}");
    assert!(text.contains(", which cost "), "{text}");
    let share_per_label = |cell: &serde_json::Value| Some(cell["share"].as_f64()? / cell["labels"].as_f64()?);
    let cells = found["cells"].as_array().unwrap().iter().filter_map(|cell| Some((share_per_label(cell)?, cell)));
    let best = cells.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap().1;
    if found["to_certainty"]["cells"].as_array().unwrap().len() > 1 {
        let said = format!("Cell {} is the most traffic per label:", best["cell"]);
        assert!(text.contains(&said), "{said} in {text}");
    }
}

#[test]
fn sum_to_spend_is_named_with_the_labels_that_it_buys() {
    let (folder, _) = first_round();
    for task in [TASK, "--route expert=0.4"] {
        let plan = format!("plan router.safetensors {task} --label-price 0.25 --spend 50");
        let text = line(folder.path(), &plan).ok().words();
        let is_certain = text.contains("every cell's action is certain");
        assert!(is_certain || text.contains("ithin 50 Brier points (200 labels)"), "{text}");
    }
}

/// Only a table with items of the router can have items that shaped its cells.
#[test]
fn annotations_are_asked_for_only_if_the_pool_has_known_items() {
    let (folder, _) = first_round();
    let path = folder.path();
    line(path, "calibrate items.csv --annotations labels.csv --partition tree -o tree.safetensors").ok();
    let items = fs::read_to_string(path.join("items.csv")).unwrap();
    let known: String = items.lines().skip(1).take(60).map(|row| format!("{row}\n")).collect();
    let pool = fs::read_to_string(path.join("pool.csv")).unwrap();
    fs::write(path.join("mixed.csv"), format!("{pool}{known}")).unwrap();
    for (table, is_asked) in [("pool", false), ("mixed", true)] {
        let plan = format!("plan tree.safetensors {TASK} --only new-items --items {table}.csv -o list.csv");
        let text = line(path, &plan).ok().words();
        let is_listed = text.contains("of the table to label");
        assert_eq!(text.contains("add --annotations with all labels so far"), is_asked && is_listed, "{table}: {text}");
    }
}

/// Worth is not unbiased under every loss, which is said beside it.
#[test]
fn plans_say_how_worth_is_biased() {
    let (folder, _) = first_round();
    let path = folder.path();
    line(path, "calibrate items.csv --annotations labels.csv --partition pooled -o pooled.safetensors").ok();
    for (router, task, bias) in [
        ("router", "--loss brier", None),
        ("router", "--loss zero-one", Some("worth is less exact")),
        ("router", "--loss brier --budget 0.2", None),
        ("pooled", "--loss brier", None),
        ("pooled", "--loss brier --budget 0.2", Some("worth under a budget is too small")),
    ] {
        let plan = format!("plan {router}.safetensors {task} --route expert=0.12");
        let text = line(path, &plan).ok().words();
        for said in ["worth is less exact", "worth under a budget is too small"] {
            assert_eq!(text.contains(said), bias == Some(said), "{router} {task}: {text}");
        }
        let found = line(path, &format!("{plan} --json")).ok().json();
        assert_eq!(found["bias_of_worth"].is_string(), bias.is_some(), "{router} {task}");
    }
}

/// The labels of both lists come into one router: first those on its items, then the new ones.
#[test]
fn commands_of_both_lists_keep_all_labels() {
    let (folder, _) = first_round();
    let path = folder.path();
    let mut both = 0;
    for most in [300, 900, 2500, 6000] {
        let plan = format!("plan router.safetensors {TASK} --max-labels-per-item 6 --max-labels {most} --items");
        let present = line(path, &format!("{plan} items.csv --annotations labels.csv")).ok().words().replace("\\ ", "");
        let new = line(path, &format!("{plan} pool.csv")).ok().words().replace("\\ ", "");
        if !present.contains("pointsman calibrate") || !new.contains("pointsman calibrate") {
            continue;
        }
        both += 1;
        assert!(
            present.contains("-o more.safetensors") && present.contains("added afterwards, to more.saf"),
            "{present}"
        );
        assert!(new.contains("use those first: the command below their list writes more.safetensors"), "{new}");
        assert!(new.contains("--add-to more.safetensors -o more-2.safetensors"), "{new}");
        // The command itself works without the other list.
        assert!(new.contains("--add-to router.safetensors -o more.safetensors"), "{new}");
    }
    assert!(both > 0);
}

#[test]
fn new_items_get_no_more_labels_than_an_item_may_get() {
    let (folder, _) = first_round();
    let path = folder.path();
    let listed = list(path, "--items pool.csv --max-labels-per-item 2 --only new-items");
    assert!(!listed.is_empty() && listed.iter().all(|(_, labels, _)| *labels == 2), "{listed:?}");
    for (most, said) in [("0", "give 2 or more"), ("1", "cannot separate noise from error"), ("x", "whole number")] {
        let run = line(path, &format!("plan router.safetensors {TASK} --max-labels-per-item {most}"));
        assert!(run.code == 2 && run.stderr.contains(said), "{run:?}");
    }
    line(path, "plan router.safetensors --route gpt=0.05,measured --max-labels-per-item 1").ok();
}

/// The table has the labels that make cells certain, and the purchase a column of its own.
#[test]
fn labels_to_buy_are_not_mistaken_for_those_that_make_cells_certain() {
    let (folder, _) = first_round();
    let plan = format!("plan router.safetensors {TASK} --label-price 0.0001 --traffic 1000000");
    let said = line(folder.path(), &plan).ok().words();
    let found = line(folder.path(), &format!("{plan} --json")).ok().json();
    assert!(found["purchase"]["labels"].as_u64().unwrap() > 0, "{found}");
    assert!(said.contains("and those to buy: cell name") && said.contains("then to buy"), "{said}");
    assert!(!said.contains("Where the table below"), "{said}");
    let unpriced = line(folder.path(), &format!("plan router.safetensors {TASK}")).ok().words();
    assert!(unpriced.contains("its better action: cell name") && !unpriced.contains("to buy:"), "{unpriced}");
    let none = line(folder.path(), &format!("plan router.safetensors {TASK} --max-labels 0"));
    assert!(none.code == 2 && none.stderr.contains("give 1 or more"), "{none:?}");
}

#[test]
fn plans_say_what_a_limit_leaves_out_and_how_large_a_pool_they_need() {
    let (folder, _) = first_round();
    let path = folder.path();
    let plan = |flags: &str| {
        let plan = format!("plan router.safetensors {TASK} --label-price 0.0001 --traffic 1000000{flags}");
        (line(path, &plan).ok().words(), line(path, &format!("{plan} --json")).ok().json())
    };
    let ((all, found), (some, limited)) = (plan(""), plan(" --spend 0.006"));
    assert!(limited["purchase"]["labels"].as_u64().unwrap() <= 60, "{limited}");
    let labels = found["purchase"]["labels"].as_u64().unwrap();
    assert_eq!(limited["purchase"]["labels_without_limit"], labels, "{limited}");
    assert!(found["purchase"]["labels_without_limit"].is_null(), "{found}");
    let said = some.replace(',', "");
    assert!(said.contains(&format!("without it {labels} labels would be worth buying")), "{labels}: {some}");
    assert!(!some.contains("each further label costs more"), "{some}");
    assert!(!all.contains("The limit ends here"), "{all}");
    // Costs have their unit, and new items are found in a pool.
    assert!(all.replace(',', "").contains(&format!("Brier points ({labels} × 0.0001)")), "{all}");
    let buys_new = found["purchase"]["ways"].as_array().unwrap().iter().any(|way| !way["new_items"].is_null());
    assert_eq!(all.contains("a pool of about"), buys_new, "{all}");
    let (by_kind, found) = plan(" --only new-items");
    // The cell that needs the largest pool has all its new items in it on average.
    let cells = found["cells"].as_array().unwrap();
    let share =
        |way: &serde_json::Value| cells.iter().find(|cell| cell["cell"] == way["cell"]).unwrap()["share"].as_f64();
    let ways = found["purchase"]["ways"].as_array().unwrap().iter();
    let sizes = ways.map(|way| way["new_items"].as_f64().unwrap() / share(way).unwrap());
    let largest = sizes.fold(0.0, f64::max);
    let pool = found["purchase"]["pool"].as_f64().unwrap();
    assert!(largest > 0.0 && (pool - largest).abs() < 1e-6 * largest, "{pool} and {largest}");
    let said = by_kind.replace(',', "");
    let said = said.split_once("The new items take a pool of about ").unwrap_or_else(|| panic!("{by_kind}")).1;
    let said: f64 = said.split(' ').next().unwrap().parse().unwrap();
    assert!(pool <= said && said < 1.1 * pool + 1.0, "{said} and {pool}");
}

/// What would make actions certain is of the kind of labels that can be bought, in the terminal and as data.
#[test]
fn certainty_is_priced_by_the_kind_of_labels_that_can_be_bought() {
    let (folder, _) = first_round();
    let path = folder.path();
    let mut found = Vec::new();
    for only in ["", " --only new-items", " --only present-items"] {
        let plan = format!("plan router.safetensors {TASK} --label-price 1000 --traffic 10{only}");
        let (text, json) = (line(path, &plan).ok().words(), line(path, &format!("{plan} --json")).ok().json());
        let labels = json["to_certainty"]["labels"].as_u64();
        match labels {
            Some(labels) => {
                let said = format!("To make actions certain: about {labels} labels for");
                assert!(text.replace(',', "").contains(&said), "{said} in {text}");
            }
            None => assert!(text.contains("No reasonable number of labels"), "{text}"),
        }
        found.push(labels);
    }
    assert!(found[0].is_some() && found[1] != found[2], "{found:?}");
}

/// The labels of the advice are those of the table for the same cells, or a sentence says how they differ.
#[test]
fn numbers_of_labels_agree_with_the_table_or_are_explained() {
    let (folder, _) = first_round();
    let path = folder.path();
    let mut kinds = [0; 2];
    for flags in ["", " --max-labels 40", " --max-labels 100000"] {
        let plan = format!("plan router.safetensors {TASK}{flags}");
        let (text, found) = (line(path, &plan).ok().words(), line(path, &format!("{plan} --json")).ok().json());
        let asked = |cell: &serde_json::Value| {
            let cells = found["cells"].as_array().unwrap().iter();
            cells.filter(|one| one["cell"] == *cell).filter_map(|one| one["asked"]["labels"].as_u64()).sum::<u64>()
        };
        let advised = if flags.is_empty() { &found["begin_with"] } else { &found["purchase"] };
        let listed: u64 = advised["cells"].as_array().unwrap().iter().map(asked).sum();
        let differs = listed != advised["labels"].as_u64().unwrap();
        kinds[usize::from(differs)] += 1;
        assert_eq!(
            text.contains("The table below lists other numbers"),
            differs,
            "{flags}: {listed}, {advised}, {text}"
        );
    }
    assert!(kinds[1] > 0, "{kinds:?}");
}
