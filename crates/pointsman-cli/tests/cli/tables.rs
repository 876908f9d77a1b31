//! Several files, patterns, ids that do not match, percentages.

use std::fs;
use std::path::Path;

use crate::{Run, line, workshop, world};

/// The calibration table of the workshop in three files of one folder.
fn in_parts(path: &Path) {
    let text = world::rows(300, 1).to_csv();
    let lines: Vec<&str> = text.lines().collect();
    fs::create_dir(path.join("parts")).unwrap();
    for (name, rows) in [("c", 1..81), ("a", 81..90), ("b", 90..301)] {
        let part = [&lines[..1], &lines[rows]].concat().join("\n");
        fs::write(path.join(format!("parts/{name}.csv")), part + "\n").unwrap();
    }
}

fn calibrate(path: &Path, arguments: &str) -> Run {
    line(path, &format!("calibrate {arguments} --partition top-class:3 -o out.st"))
}

fn written(path: &Path, name: &str) -> Vec<u8> {
    fs::read(path.join(name)).unwrap()
}

/// Whether the shell or the program expands a pattern, and in whatever order files come.
#[test]
fn several_tables_give_the_router_of_one() {
    let folder = workshop();
    let path = folder.path();
    in_parts(path);
    for tables in [
        "parts/a.csv parts/b.csv parts/c.csv",
        "parts/c.csv parts/a.csv parts/b.csv",
        "parts/*.csv",
        "parts/[ab].csv parts/c.csv",
        "par*/?.csv",
    ] {
        let run = calibrate(path, tables).ok();
        assert!(run.stdout.contains("300 rows in 3 tables"), "{run:?}");
        assert_eq!(run.stderr, "");
        assert_eq!(written(path, "out.st"), written(path, "router.safetensors"), "{tables}");
    }
    let run = calibrate(path, "parts/*.csv parts/a.csv ./parts/b.csv").ok();
    assert!(run.stderr.contains("parts/a.csv: is given more than once, and read once"), "{run:?}");
    assert_eq!(written(path, "out.st"), written(path, "router.safetensors"));
    let run = calibrate(path, "parts/*.csv --where split=0 --json").ok();
    line(path, "calibrate calibration.csv --where split=0 --partition top-class:3 -o half.st").ok();
    assert_eq!((run.json()["rows"].as_u64(), written(path, "out.st")), (Some(150), written(path, "half.st")));
}

#[test]
fn parts_of_several_tables_merge_to_the_same_router() {
    let folder = workshop();
    let path = folder.path();
    in_parts(path);
    line(path, "calibrate parts/*.csv --like router.safetensors --part -o all.part").ok();
    line(path, "merge all.part -o merged.st").ok();
    assert_eq!(written(path, "merged.st"), written(path, "router.safetensors"));
    for part in ["a", "b", "c"] {
        line(path, &format!("calibrate parts/{part}.csv --like router.safetensors --part -o {part}.part")).ok();
    }
    // A part that is named twice counts once.
    let run = line(path, "merge ?.part a.part -o merged.st").ok();
    assert!(run.stderr.contains("a.part: is given more than once") && run.stdout.contains("3 parts"), "{run:?}");
    assert_eq!(written(path, "merged.st"), written(path, "router.safetensors"));
    let run = line(path, "merge *.pt -o none.st");
    assert!(run.code == 2 && run.stderr.contains("*.pt: no file matches the pattern"), "{run:?}");
}

#[test]
fn incompatible_tables_are_refused() {
    let folder = workshop();
    let path = folder.path();
    in_parts(path);
    let text = fs::read_to_string(path.join("parts/a.csv")).unwrap();
    fs::write(path.join("other.csv"), text.replace("_owl", "_eel")).unwrap();
    fs::write(path.join("long.csv"), text.replace("x_length", "x_size")).unwrap();
    for (tables, reasons) in [
        ("parts/*.tsv", &["parts/*.tsv: no file matches the pattern"][..]),
        ("parts/***.csv", &["parts/***.csv: is not a pattern"]),
        ("parts/*.csv missing.csv", &["missing.csv: no such file"]),
        ("parts/a.csv other.csv", &["parts/a.csv", "other.csv", "classes", "eel", "owl"]),
        ("parts/a.csv long.csv", &["parts/a.csv", "long.csv", "features", "x_size", "x_length"]),
        ("parts", &["parts: is a directory"]),
        ("- -", &["- is given for more than one input"]),
    ] {
        let run = calibrate(path, tables);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(reasons.iter().all(|reason| run.stderr.contains(reason)), "{reasons:?}: {run:?}");
        assert!(!path.join("out.st").exists());
    }
    // A file may have the name of a pattern.
    fs::write(path.join("[a].csv"), &text).unwrap();
    assert!(calibrate(path, "[a].csv").ok().stdout.contains("9 rows"));
    let run = line(path, "calibrate parts/*.csv -o parts/b.csv");
    assert!(run.code == 2 && run.stderr.contains("parts/b.csv: would be overwritten"), "{run:?}");
}

#[test]
fn classes_in_another_order_are_reported() {
    let folder = workshop();
    let path = folder.path();
    in_parts(path);
    let swapped = |name: &str| {
        let text = fs::read_to_string(path.join(name)).unwrap();
        let swap = |line: &str| {
            let mut cells: Vec<&str> = line.split(',').collect();
            cells.swap(1, 3);
            cells.join(",")
        };
        fs::write(path.join(name), text.lines().map(swap).collect::<Vec<_>>().join("\n")).unwrap();
    };
    swapped("parts/b.csv");
    for tables in ["parts/a.csv parts/b.csv parts/c.csv", "parts/b.csv parts/c.csv parts/a.csv"] {
        let run = calibrate(path, tables).ok();
        assert!(run.stderr.contains("parts/b.csv has its classes in another order than parts/a.csv"), "{run:?}");
        assert_eq!(written(path, "out.st"), written(path, "router.safetensors"), "{tables}");
    }
}

/// The same table in per cent, rounded to whole numbers.
fn in_per_cent(rows: &world::Rows) -> String {
    let mut lines: Vec<String> = rows.to_csv().lines().map(str::to_owned).collect();
    for line in &mut lines[1..] {
        let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
        for cell in &mut cells[1..4] {
            *cell = (100.0 * cell.parse::<f64>().unwrap()).round().to_string();
        }
        *line = cells.join(",");
    }
    lines.join("\n") + "\n"
}

#[test]
fn percentages_are_divided_with_normalize() {
    let folder = workshop();
    let path = folder.path();
    fs::write(path.join("percent.csv"), in_per_cent(&world::rows(300, 1))).unwrap();
    let run = calibrate(path, "percent.csv");
    assert!(run.code == 2 && run.stderr.contains("sum to 100.0") && run.stderr.contains("--normalize"), "{run:?}");
    for command in [
        "calibrate percent.csv --partition top-class:3 -o out.st",
        "evaluate router.safetensors percent.csv --route 0.05",
        "decide router.safetensors percent.csv --route 0.05 -o out.csv",
        "diagnose percent.csv --route 0.05",
        "compare router.safetensors router.safetensors percent.csv --route 0.05",
        "plan router.safetensors --route 0.05 --items percent.csv -o items.csv",
    ] {
        let command =
            command.replacen("router.safetensors router.safetensors", "router.safetensors ./router.safetensors", 1);
        let refused = line(path, &command);
        assert!(refused.code == 2 && refused.stderr.contains("--normalize"), "{refused:?}");
        let run = line(path, &format!("{command} --normalize")).ok();
        assert!(run.stderr.contains("summed to between 99.00 and 101.0 and were divided"), "{command}: {}", run.stderr);
    }
    let scores = "id,prob_a,prob_b,votes_a,votes_b\n1,3,4,1,1\n2,0.2,0.4,1,1\n";
    fs::write(path.join("scores.csv"), scores).unwrap();
    let run = calibrate(path, "scores.csv --normalize").ok();
    assert!(run.stderr.contains("suggest scores"), "{run:?}");
    for bad in ["1,0,0,1,1", "1,101,-1,1,1"] {
        fs::write(path.join("bad.csv"), format!("id,prob_a,prob_b,votes_a,votes_b\n{bad}\n")).unwrap();
        let run = calibrate(path, "bad.csv --normalize");
        assert!(run.code == 2 && run.stderr.contains("bad.csv: row 1"), "{run:?}");
    }
}

#[test]
fn repeated_ids_are_reported_and_not_refused() {
    let folder = workshop();
    let path = folder.path();
    let mut rows = world::rows(300, 1);
    for row in 10..20 {
        rows.ids[row] = rows.ids[row - 10].clone();
    }
    rows.write_csv(&path.join("twice.csv"));
    for command in ["calibrate twice.csv --partition top-class:3 -o out.st", "evaluate router.safetensors twice.csv"] {
        let run = line(path, command).ok();
        let displayed = "10 ids occur in 20 rows (q0, q1, q2, q3, q4, …)";
        assert!(run.stderr.contains(displayed), "{run:?}");
    }
    assert_eq!(written(path, "out.st"), written(path, "router.safetensors"), "every row counts");
}

/// Labels of half of the items, and of some that are not in the table.
#[test]
fn annotations_are_joined_by_id() {
    let folder = workshop();
    let path = folder.path();
    let labels: String = (150..307).map(|row| format!("q{row},cat\nq{row},dog\n")).collect();
    fs::write(path.join("labels.csv"), format!("id,label\n{labels}")).unwrap();
    let run = calibrate(path, "calibration.csv --annotations labels.csv").ok();
    assert!(run.stdout.contains("150 rows"), "{run:?}");
    let displayed =
        "150 rows have no annotation in labels.csv (q0, q1, q2, q3, q4, …) and were left out; 150 rows are joined";
    assert!(run.stderr.contains(displayed), "{run:?}");
    assert!(
        run.stderr.contains("7 ids of labels.csv are not in the table (q300, q301, q302, q303, q304, …)"),
        "{run:?}"
    );
    let run = calibrate(path, "calibration.csv --annotations labels.csv --strict");
    assert!(run.code == 2 && run.stderr.contains("row 1 (line 2): no annotation of id \"q0\""), "{run:?}");
    let run = calibrate(path, "calibration.csv --strict");
    assert!(run.code == 2 && run.stderr.contains("--annotations"), "{run:?}");
    fs::write(path.join("others.csv"), "id,label\nz1,cat\nz2,dog\n").unwrap();
    let run = calibrate(path, "calibration.csv --annotations others.csv");
    assert!(run.code == 2 && run.stderr.contains("others.csv: no id is one of calibration.csv"), "{run:?}");
}
