//! `calibrate`: routers, summaries and warnings.

use std::fs;

use crate::{command, finish, line, line_with_input, workshop, world};

/// Annotations that take the place of votes do so in words.
#[test]
fn unused_votes_are_warned_of() {
    let folder = workshop();
    let path = folder.path();
    let labels: String = (0..300).map(|row| format!("q{row},cat\nq{row},dog\n")).collect();
    fs::write(path.join("labels.csv"), format!("id,label\n{labels}")).unwrap();
    let run = line(path, "calibrate calibration.csv --annotations labels.csv --partition top-class:10 -o r.st").ok();
    assert!(run.stderr.contains("--annotations replaces the votes"), "{run:?}");
}

/// One label written down five times is not five labels.
#[test]
fn unanimous_labels_are_warned_of() {
    let folder = workshop();
    let path = folder.path();
    let mut rows = world::rows(300, 7).with_one_label();
    rows.write_csv(&path.join("one.csv"));
    rows.votes.iter_mut().flatten().for_each(|n| *n *= 5);
    rows.write_csv(&path.join("copied.csv"));
    let warned = |table: &str| {
        let run = line(path, &format!("calibrate {table} --partition top-class:10 -o r.st")).ok();
        run.stderr.contains("each label was copied")
    };
    assert!(warned("copied.csv") && !warned("one.csv") && !warned("calibration.csv"));
    let found = line(path, "diagnose copied.csv --route 0.05 --json").ok().json();
    assert_eq!(found["verdict"]["advice"], "mend-labels");
}

#[test]
fn summary_and_next_step_are_printed() {
    let folder = workshop();
    let run = line(folder.path(), "calibrate calibration.csv -o r.st --partition top-class:3").ok();
    for text in ["300 rows", "cat, dog, owl", "5 labels per row", "top-class:3", "9 cells", "pointsman show r.st"] {
        assert!(run.stdout.contains(text), "{text}: {run:?}");
    }
    assert_eq!(run.stderr, "");
    assert!(!run.stdout.contains('\u{1b}'), "no colours off a terminal");
}

#[test]
fn quiet_prints_nothing() {
    let folder = workshop();
    let run = line(folder.path(), "calibrate calibration.csv -o r.st --partition top-class:200 -q").ok();
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
}

#[test]
fn router_does_not_depend_on_row_order_or_threads() {
    let folder = workshop();
    let path = folder.path();
    world::rows(300, 1).reversed().write_csv(&path.join("reversed.csv"));
    line(path, "calibrate reversed.csv -o reversed.st --partition top-class:3").ok();
    assert_eq!(fs::read(path.join("router.safetensors")).unwrap(), fs::read(path.join("reversed.st")).unwrap());
}

#[test]
fn like_uses_the_cells_of_another_router() {
    let folder = workshop();
    let path = folder.path();
    let written = |name: &str| fs::read(path.join(name)).unwrap();
    line(path, "calibrate calibration.csv -o again.st --like router.safetensors").ok();
    assert_eq!(written("again.st"), written("router.safetensors"), "the same rows in the same cells");
    line(path, "calibrate calibration.csv -o half.st --where split=0 --like router.safetensors").ok();
    let names = |router: &str| {
        let shown = line(path, &format!("show {router} --json")).ok();
        let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
        shown["cells"].as_array().unwrap().iter().map(|cell| cell["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(names("half.st"), names("router.safetensors"));
    for (arguments, reason) in [
        ("--like router.safetensors --partition tree", "--like"),
        ("--like missing.st", "missing.st"),
        ("--like calibration.csv", "not a router file"),
    ] {
        let run = line(path, &format!("calibrate calibration.csv -o x.st {arguments}"));
        assert!(run.code != 0 && run.stderr.contains(reason), "{run:?}");
    }
}

#[test]
fn where_selects_rows() {
    let folder = workshop();
    let run = line(folder.path(), "calibrate calibration.csv --partition top-class:10 -o r.st --where split=0").ok();
    assert!(run.stdout.contains("150 rows"), "{run:?}");
}

#[test]
fn tables_are_read_from_standard_input() {
    let folder = workshop();
    let run =
        line_with_input(folder.path(), "calibrate - -o r.st --partition top-class:3", &world::rows(300, 1).to_csv());
    run.ok();
    let written = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert_eq!(written("r.st"), written("router.safetensors"));
}

#[test]
fn single_labels_sparse_cells_and_sums_are_warned_of() {
    let folder = workshop();
    let path = folder.path();
    world::rows(60, 1).with_one_label().write_csv(&path.join("one.csv"));
    let run = line(path, "calibrate one.csv --partition top-class:10 -o r.st").ok();
    assert!(run.stderr.contains("one label per item: noise and model error cannot be separated"), "{run:?}");
    assert!(run.stderr.contains("fewer than 30 calibration rows"), "{run:?}");
    fs::write(path.join("sums.csv"), "prob_a,prob_b,votes_a,votes_b\n0.5,0.5005,1,2\n0.5,0.5,1,2\n").unwrap();
    let run = line(path, "calibrate sums.csv --partition top-class:10 -o r.st").ok();
    assert!(run.stderr.contains("the probabilities of 1 row do not sum to one"), "{run:?}");
}

#[test]
fn annotations_give_the_votes() {
    let folder = workshop();
    let path = folder.path();
    let rows = world::rows(300, 1);
    let mut long = "id,label\n".to_owned();
    for (id, votes) in rows.ids.iter().zip(&rows.votes) {
        for (class, &n) in world::CLASSES.iter().zip(votes) {
            (0..n).for_each(|_| long.push_str(&format!("{id},{class}\n")));
        }
    }
    fs::write(path.join("long.csv"), long).unwrap();
    let text = rows.to_csv();
    let bare: Vec<String> = text
        .lines()
        .map(|line| {
            line.split(',')
                .enumerate()
                .filter(|(i, _)| !(4..7).contains(i))
                .map(|(_, x)| x)
                .collect::<Vec<_>>()
                .join(",")
        })
        .collect();
    fs::write(path.join("bare.csv"), bare.join("\n")).unwrap();
    line(path, "calibrate bare.csv --annotations long.csv -o joined.st --partition top-class:3").ok();
    assert_eq!(fs::read(path.join("joined.st")).unwrap(), fs::read(path.join("router.safetensors")).unwrap());
}

#[test]
fn json_summary_counts_rows_cells_and_labels() {
    let folder = workshop();
    let run = line(folder.path(), "calibrate calibration.csv -o r.st --partition top-class:3 --json").ok();
    let learned = run.json();
    assert_eq!((learned["rows"].as_u64(), learned["cells"].as_u64()), (Some(300), Some(9)));
    assert_eq!((learned["labels"]["median"].as_u64(), learned["partition"].as_str()), (Some(5), Some("top-class:3")));
}

#[test]
fn routers_and_tasks_are_piped() {
    use std::process::Stdio;
    let folder = workshop();
    let path = folder.path();
    let run = command()
        .current_dir(path)
        .args("calibrate calibration.csv -o - --partition top-class:3".split(' '))
        .output()
        .unwrap();
    let router = fs::read(path.join("router.safetensors")).unwrap();
    assert_eq!(run.stdout, router);
    assert!(String::from_utf8(run.stderr).unwrap().contains("300 rows"));
    let shown = |args: &str, input: &std::path::Path| {
        let stdin = Stdio::from(fs::File::open(input).unwrap());
        finish(command().current_dir(path).args(args.split(' ')).stdin(stdin)).ok().stdout
    };
    let wanted = line(path, "show router.safetensors --abstain 0.3 --json").ok().stdout;
    assert_eq!(shown("show - --abstain 0.3 --json", &path.join("router.safetensors")), wanted);
    fs::write(path.join("task.toml"), "abstain = 0.3\n").unwrap();
    assert_eq!(shown("show router.safetensors --task - --json", &path.join("task.toml")), wanted);
}

/// Cells by confidence have about the same mean whatever the class that is predicted.
#[test]
fn means_that_predict_worse_than_the_classifier_are_warned_of() {
    let folder = workshop();
    let path = folder.path();
    let warnings = |flags: &str| line(path, &format!("calibrate calibration.csv {flags} -o r.st")).ok().stderr;
    let text = warnings("--recalibrate --partition confidence:3").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("a worse prediction than the classifier's own: on 300 rows left out, the means"), "{text}");
    assert!(
        text.contains("leave --recalibrate out, or divide by the class") && text.contains("top-class:10"),
        "{text}"
    );
    assert!(!warnings("--partition confidence:3").contains("--recalibrate"));
}

/// Without a terminal lines of labels end where paragraphs do.
#[test]
fn labelled_lines_are_as_wide_as_paragraphs() {
    let folder = workshop();
    let run = line(folder.path(), "calibrate calibration.csv -o auto.safetensors --certifiable").ok();
    let lines = || run.stdout.lines().filter(|line| !line.starts_with("  pointsman "));
    assert!(lines().any(|line| line.starts_with("  chosen")), "{run:?}");
    assert!(lines().all(|line| line.chars().count() <= 100), "{}", run.stdout);
}
