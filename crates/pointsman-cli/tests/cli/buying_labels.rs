//! Limits on the labels to buy, and lists of items that agree with them.

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
    let all = list(path, "--items pool.csv --max-labels 1000000");
    let some = list(path, "--items pool.csv --max-labels 100");
    let labels: usize = some.iter().map(|(_, labels, _)| labels).sum();
    assert!((95..=100).contains(&labels) && some.len() < all.len(), "{labels}, {} of {}", some.len(), all.len());
    assert_eq!(some, all[..some.len()]);
    let per_label = |(_, labels, worth): &(String, usize, f64)| worth / *labels as f64;
    assert!(all.windows(2).all(|pair| per_label(&pair[0]) >= per_label(&pair[1]) - 1e-12));
    // Money is a number of labels.
    assert_eq!(list(path, "--items pool.csv --label-price 0.5 --spend 50"), some);
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
    let run = line(path, add);
    assert!(run.code == 2 && run.stderr.contains("--known-items skip"), "{run:?}");
    assert!(!path.join("more.safetensors").exists());
    let rows = |flags: &str| line(path, &format!("{add}{flags}")).ok().json()["rows"].as_u64().unwrap();
    let (skipped, added) = (rows(" --known-items skip"), rows(" --known-items add"));
    assert!(skipped < added, "{skipped} {added}");
}
