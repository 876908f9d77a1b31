//! Bad input is refused with exit code 2, one clear message and no output.

use std::fs;

use crate::{command, finish, line, line_with_input, pointsman, workshop};

#[test]
fn every_bad_input_is_refused_in_one_line() {
    let folder = workshop();
    let path = folder.path();
    let write = |name: &str, text: &str| fs::write(path.join(name), text).unwrap();
    write("empty.csv", "");
    write("header.csv", "prob_a,prob_b,votes_a,votes_b\n");
    write("sum.csv", "prob_a,prob_b,votes_a,votes_b\n0.5,0.5,1,1\n0.5,0.7,1,1\n");
    write("nan.csv", "prob_a,prob_b,votes_a,votes_b\nNaN,0.5,1,1\n");
    write("novotes.csv", "prob_cat,prob_dog,prob_owl\n0.2,0.3,0.5\n");
    write("zero.csv", "prob_a,prob_b,votes_a,votes_b\n0.5,0.5,0,0\n");
    write("other.csv", "prob_a,prob_b,votes_a,votes_b\n0.5,0.5,1,1\n");
    write("na.csv", "prob_a,prob_b,votes_a,votes_b,x_size\n0.5,0.5,1,1,NA\n");
    write("array.json", "[\n{\"probs\": [0.5, 0.5], \"votes\": [1, 1]}\n]\n");
    write("task.toml", "loss = \"brier\"\nabstain = -1\n");
    write("odd.toml", "loss = \"brier\"\nabstian = 0.3\n");
    let router = fs::read(path.join("router.safetensors")).unwrap();
    fs::write(path.join("cut.safetensors"), &router[..router.len() / 2]).unwrap();

    // The command line, and what the message must mention.
    let cases = [
        ("calibrate missing.csv -o out.st", "missing.csv"),
        ("calibrate empty.csv -o out.st", "empty"),
        ("calibrate header.csv -o out.st", "no rows"),
        ("calibrate sum.csv -o out.st", "row 2"),
        ("calibrate nan.csv -o out.st", "prob_a"),
        ("calibrate novotes.csv -o out.st", "votes"),
        ("calibrate zero.csv -o out.st", "row 1"),
        ("calibrate . -o out.st", "directory"),
        ("calibrate array.json -o out.st", ".jsonl"),
        ("calibrate calibration.csv -o - --json", "standard output"),
        ("calibrate - -o out.st --annotations -", "more than one"),
        ("calibrate calibration.csv -o calibration.csv", "overwritten"),
        ("calibrate calibration.csv -o nowhere/out.st", "nowhere"),
        ("calibrate calibration.csv -o out.st --where nothing=1", "nothing"),
        ("calibrate calibration.csv -o out.st --where split=9", "split"),
        ("calibrate calibration.csv -o out.st --where split", "COLUMN=VALUE"),
        ("calibrate calibration.csv -o out.st --partition forest:-1", "partition"),
        ("calibrate calibration.csv -o out.st --partition features:x_none=2", "x_none"),
        ("calibrate calibration.csv -o out.st --format xls", "format"),
        ("calibrate calibration.csv -o out.st --columns probs", "KEY=NAME"),
        ("calibrate calibration.csv -o out.st --annotations missing.csv", "missing.csv"),
        ("calibrate calibration.csv", "--output"),
        ("diagnose novotes.csv", "votes"),
        ("diagnose - --annotations -", "more than one"),
        ("diagnose calibration.csv -o -", "folder"),
        ("diagnose calibration.csv --estimator magic", "shrink"),
        ("show missing.st", "missing.st"),
        ("show calibration.csv", "router"),
        ("show cut.safetensors", "cut.safetensors"),
        ("show -", "standard input"),
        ("show - --task -", "more than one"),
        ("decide - - -o out.csv", "more than one"),
        ("evaluate router.safetensors heldout.csv -o -", "folder"),
        ("demo -o -", "folder"),
        ("show router.safetensors --sort margin", "needs a task"),
        ("show router.safetensors --loss bier", "brier"),
        ("show router.safetensors --loss three-part", "2 classes"),
        ("show router.safetensors --route x", "price"),
        ("show router.safetensors --route -1", "price"),
        ("show router.safetensors --route 0.1,wizard", "wizard"),
        ("show router.safetensors --route 0.1 --route 0.2", "oracle"),
        ("show router.safetensors --abstain nan", "price"),
        ("show router.safetensors --abstain inf", "price"),
        ("show router.safetensors --estimator magic", "shrink"),
        ("show router.safetensors --ties never", "frugal"),
        ("show router.safetensors --task task.toml", "price"),
        ("show router.safetensors --task odd.toml", "abstian"),
        ("show router.safetensors --task task.toml --abstain 0.1", "price"),
        ("decide router.safetensors missing.csv -o out.csv", "missing.csv"),
        ("decide router.safetensors sum.csv -o out.csv", "classes"),
        ("calibrate router.safetensors -o out.safetensors", "is a router file"),
        ("decide router.safetensors router.safetensors -o out.csv", "is a router file"),
        ("evaluate router.safetensors heldout.csv -o heldout.csv", "is a file, and -o takes a folder"),
        ("calibrate na.csv -o out.safetensors", "leave it empty"),
        ("diagnose other.csv", "needs at least 4 rows"),
        ("decide router.safetensors heldout.csv -o out.xls", "format"),
        ("decide router.safetensors heldout.csv -o heldout.csv", "overwritten"),
        ("decide router.safetensors heldout.csv -o nowhere/out.csv", "nowhere"),
        ("evaluate router.safetensors other.csv -o out", "classes"),
        ("evaluate router.safetensors novotes.csv -o out", "votes"),
        ("evaluate router.safetensors heldout.csv --sweep abstain=1 -o out", "FROM:TO:STEP"),
        ("evaluate router.safetensors heldout.csv --sweep route=0:1:0.1 -o out", "route"),
        ("evaluate router.safetensors heldout.csv -o heldout.csv", "heldout.csv"),
        ("demo --rows 5 -o out", "rows"),
        ("completions tcsh", "tcsh"),
        ("frobnicate", "frobnicate"),
    ];
    let listing = || {
        let mut names: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = listing();
    for (args, mention) in cases {
        let run = line(path, args);
        assert_eq!(run.code, 2, "{args}: {run:?}");
        assert_eq!(run.stdout, "", "{args}");
        let mut lines = run.stderr.lines();
        let message = lines.next().unwrap();
        assert!(message.starts_with("error: "), "{args}: {message}");
        assert!(run.stderr.contains(mention), "{args}: {} does not mention {mention}", run.stderr);
        // Beyond the message there is at most a hint, or clap's usage.
        assert!(
            lines.all(|l| l.is_empty() || ["hint: ", "Usage: ", "For more", "  "].iter().any(|p| l.starts_with(p))),
            "{args}: {}",
            run.stderr
        );
        assert_eq!(listing(), before, "{args} left something behind");
    }
}

#[test]
fn bad_row_far_down_leaves_no_file_of_decisions() {
    let folder = workshop();
    let text = crate::world::rows(100, 5).to_csv() + "q100,0.5,0.5,0.5,1,1,1,3,0\n";
    let run = line_with_input(folder.path(), "decide router.safetensors - -o out.csv --batch-rows 10", &text);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("row 101"), "{run:?}");
    let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = names.filter(|name| name.starts_with("out") || name.ends_with(".part")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn panicking_parser_is_refused_in_one_line() {
    use pointsman_table::{Column, ColumnKind, TableWriter};
    let folder = workshop();
    let path = folder.path().join("good.arrow");
    let names = ["prob_a", "prob_b", "votes_a", "votes_b"].map(|name| (name.to_owned(), ColumnKind::Real));
    let mut writer = TableWriter::create(&path, None, &names).unwrap();
    writer.write(&[0.5, 0.5, 1.0, 2.0].map(|x| Column::Real(vec![x; 40]))).unwrap();
    writer.finish().unwrap();
    let good = fs::read(&path).unwrap();
    let damaged = folder.path().join("damaged.arrow");
    let panics = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 0x7f;
        fs::write(&damaged, &bytes).unwrap();
        pointsman_table::read(&damaged).is_err_and(|error| error.to_string().contains("its parser gave up"))
    };
    assert!((0..good.len()).any(panics), "no damage makes the parser panic: guard it no longer");
    let run = finish(command().env("RUST_BACKTRACE", "1").arg("calibrate").arg(&damaged).args(["-o", "/nowhere/r.st"]));
    assert_eq!((run.code, run.stderr.lines().count()), (2, 1), "{run:?}");
    assert!(run.stderr.contains("its parser gave up"), "{run:?}");
}

#[test]
fn control_characters_of_files_are_not_printed() {
    let folder = workshop();
    let text = "\"prob_a\n\u{1b}[2Jb\",prob_c\n1,0\n";
    fs::write(folder.path().join("odd.csv"), text).unwrap();
    let run = line(folder.path(), "decide router.safetensors odd.csv");
    assert_eq!((run.code, run.stderr.lines().count()), (2, 1), "{run:?}");
    assert!(!run.stderr.contains('\u{1b}'), "{run:?}");
}

#[test]
fn help_has_examples_and_version_is_printed() {
    for name in ["calibrate", "show", "decide", "evaluate", "demo", "completions"] {
        let run = pointsman([name, "--help"]).ok();
        assert!(run.stdout.contains("Example") && run.stdout.contains(&format!("pointsman {name}")), "{run:?}");
    }
    assert!(pointsman(["decide", "--help"]).ok().stdout.contains("whole or not at all"));
    let run = pointsman(["-V"]).ok();
    assert!(run.stdout.starts_with("pointsman "), "{run:?}");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(pointsman(["completions", shell]).ok().stdout.contains("pointsman"), "{shell}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_exits_with_code_one() {
    let folder = workshop();
    let run =
        line(folder.path(), "decide router.safetensors heldout.csv --abstain 0.3 -o /dev/full --output-format csv");
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("/dev/full"), "{run:?}");
}
