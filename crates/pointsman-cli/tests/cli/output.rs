//! Outputs: JSON has the terminal's numbers, `-q` prints errors only, shells complete, killed writers leave no files.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use crate::{command, finish, line, repository, workshop};

const TASK: &str = "--route expert=0.05 --abstain 0.3";
/// Prices at which the expert is asked in some cells.
const CHEAP: &str = "--route expert=0.03";
/// Prices at which a few more labels would make undetermined cells certain.
const CLOSE: &str = "--route expert=0.05 --abstain 0.5";

/// What each terminal page says, and where the JSON of the same command says it.
#[test]
fn json_has_the_numbers_of_the_terminal() {
    let folder = workshop();
    let path = folder.path();
    let pages: [(String, &[(&str, &str)]); 8] = [
        (
            "show router.safetensors".into(),
            &[
                ("a router of 300 calibration rows", "/rows"),
                ("classes", "/classes/2"),
                ("labels per row", "/labels/median"),
                ("partition", "/partition"),
                ("serves", "/recalibrated"),
                ("support", "/cells/0/support"),
                ("mean cat", "/cells/0/centroid/0"),
            ],
        ),
        (
            format!("show router.safetensors {CHEAP} --budget 0.1"),
            &[
                ("costs in", "/unit"),
                ("irreducible", "/cells/0/irreducible"),
                ("reducible", "/cells/0/reducible"),
                ("route:expert", "/cells/0/costs/route:expert"),
                ("action", "/cells/0/action"),
                ("margin", "/cells/0/margin"),
                ("On traffic like the calibration rows", "/shares/predict"),
                ("Expected cost per query", "/promise/cost"),
                ("always predict", "/promise/always/predict"),
                ("Budget:", "/task/budget"),
                ("as if routing cost", "/surcharge/price"),
            ],
        ),
        (
            format!("show router.safetensors {TASK} --confidence 0.9"),
            &[
                ("90 % confidence", "/confidence"),
                ("certain", "/cells/0/certain"),
                ("On traffic like the calibration rows", "/shares/abstain"),
            ],
        ),
        (
            format!("decide router.safetensors heldout.csv {CHEAP} --cap expert=1 -o d.csv"),
            &[
                ("200 queries", "/rows"),
                ("route:expert", "/shares/route:expert"),
                ("expected cost per query", "/expected_cost/router"),
                ("±", "/standard_error"),
                ("always predict", "/expected_cost/always-predict"),
                ("reasons:", "/reasons/hard"),
                ("Cap on expert:", "/caps/0/granted"),
            ],
        ),
        (
            format!("decide router.safetensors heldout.csv {TASK} --explain q3"),
            &[
                ("id q3", "/id"),
                ("(row 4)", "/row"),
                ("calibration rows, support", "/support"),
                ("mean labels", "/centroid/0"),
                ("taken", "/action"),
                ("runner-up", "/runner_up"),
                ("Reason:", "/reason"),
                ("Predicting loses", "/total"),
                ("beats", "/margin"),
                ("the price of", "/flips/0/at"),
                ("confidence", "/certain"),
            ],
        ),
        (
            format!("plan router.safetensors {CLOSE} --items calibration.csv"),
            &[
                ("Expected cost per query", "/promise/cost"),
                ("undetermined with 95 % confidence", "/confidence"),
                ("of traffic like the calibration rows", "/certain_share"),
                ("worth", "/cells/0/worth"),
                ("at stake", "/cells/0/at_stake"),
                ("to label", "/items/items"),
            ],
        ),
        (format!("plan router.safetensors {CLOSE}"), &[("Nobody can say whether that pays", "/begin_with/cells/0")]),
        (
            format!("evaluate router.safetensors heldout.csv {TASK} --sweep abstain=0.2:0.3:0.1"),
            &[
                ("200 held-out rows", "/rows"),
                ("truth is", "/truth"),
                ("Cost per query", "/unit"),
                ("best action per cell", "/mean_cost/cell-optimal"),
                ("± s.e.", "/standard_error/router"),
                ("Regret:", "/corrected_regret/cell-optimal"),
                ("Pointsman", "/gain/higher-order"),
                ("W1", "/calibration_error/raw"),
                ("floor", "/calibration_error/floor"),
                ("Sweep of the price of abstain", "/sweep/0/points/0/price"),
            ],
        ),
    ];
    for (command, printed) in pages {
        let run = line(path, &command).ok();
        // Sentences may break anywhere.
        let page = (run.stdout + &run.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        let json = line(path, &format!("{command} --json")).ok().json();
        for (text, pointer) in printed {
            assert!(page.contains(text), "{command} does not say {text:?}: {page}");
            assert!(json.pointer(pointer).is_some_and(|it| !it.is_null()), "{command} --json lacks {pointer}: {json}");
        }
    }
}

/// Objects have the properties that a schema requires, and no others unless it allows them.
fn follows(schema: &Value, value: &Value, place: &str) {
    if let (Some(properties), Some(object)) = (schema["properties"].as_object(), value.as_object()) {
        for name in schema["required"].as_array().into_iter().flatten() {
            assert!(object.contains_key(name.as_str().unwrap()), "{place} lacks {name}");
        }
        for (name, value) in object {
            assert!(properties.contains_key(name) || schema["additionalProperties"] != false, "{place} has {name}");
            follows(&schema["properties"][name], value, &format!("{place}/{name}"));
        }
    }
    for (i, value) in value.as_array().into_iter().flatten().enumerate() {
        follows(&schema["items"], value, &format!("{place}/{i}"));
    }
}

#[test]
fn json_follows_the_published_schemas() {
    let folder = workshop();
    line(folder.path(), "calibrate calibration.csv -o other.safetensors --partition confidence:2").ok();
    for (schema, command) in [
        ("show", "show router.safetensors".to_owned()),
        ("show", format!("show router.safetensors {CHEAP} --budget 10%")),
        ("show", format!("show router.safetensors {TASK} --confidence 0.9")),
        ("plan", format!("plan router.safetensors {CLOSE} --confidence 0.8")),
        (
            "plan",
            format!(
                "plan router.safetensors {CLOSE} --label-price 0.01 --traffic 1e6 --items calibration.csv -o ids.csv"
            ),
        ),
        ("comparison", format!("compare router.safetensors other.safetensors heldout.csv {TASK} --loss cross-entropy")),
    ] {
        let text = fs::read_to_string(repository().join(format!("docs/{schema}.schema.json"))).unwrap();
        let json = line(folder.path(), &format!("{command} --json")).ok().json();
        follows(&serde_json::from_str(&text).unwrap(), &json, &command);
    }
    // Warnings are in the JSON as on standard error.
    let run = line(folder.path(), "calibrate calibration.csv --partition top-class:200 -o sparse.st --json").ok();
    let warnings = run.json()["warnings"].as_array().unwrap().clone();
    assert!(!warnings.is_empty() && warnings.iter().all(|it| run.stderr.contains(it.as_str().unwrap())), "{run:?}");
}

#[test]
fn shares_of_show_are_those_of_the_page() {
    let folder = workshop();
    let shown = line(folder.path(), &format!("show router.safetensors {TASK} --json")).ok().json();
    let shares: Vec<f64> = shown["shares"].as_object().unwrap().values().map(|share| share.as_f64().unwrap()).collect();
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
    let rows = |cell: &Value| cell["rows"].as_f64().unwrap() / 300.0;
    let routed: f64 =
        shown["cells"].as_array().unwrap().iter().filter(|cell| cell["action"] == "route:expert").map(rows).sum();
    assert!((routed - shown["shares"]["route:expert"].as_f64().unwrap()).abs() < 1e-9);
}

#[test]
fn quiet_prints_only_errors_and_requested_output() {
    let folder = workshop();
    let path = folder.path();
    fs::write(path.join("task.toml"), "abstain = 0.3\n").unwrap();
    for command in [
        "calibrate calibration.csv -o q.st --partition top-class:200".to_owned(),
        "show router.safetensors".to_owned(),
        format!("show router.safetensors {TASK} --confidence 0.9"),
        format!("show router.safetensors {TASK} --explain 1"),
        format!("decide router.safetensors heldout.csv {TASK} -o d.csv"),
        format!("decide router.safetensors heldout.csv {TASK} --explain q1"),
        format!("plan router.safetensors {TASK}"),
        format!("evaluate router.safetensors heldout.csv {TASK} -o report"),
        "diagnose calibration.csv --partition top-class:3".to_owned(),
        "demo --rows 100 -o demo".to_owned(),
        "check router.safetensors".to_owned(),
        "task check task.toml".to_owned(),
        "calibrate calibration.csv --like router.safetensors --part -o a.part".to_owned(),
        "merge a.part -o merged.st".to_owned(),
        format!("compare router.safetensors merged.st heldout.csv {TASK}"),
    ] {
        let run = line(path, &format!("{command} -q")).ok();
        assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""), "{command}");
    }
    // Asked for: JSON, and a table on standard output.
    let json = line(path, &format!("show router.safetensors {TASK} --json -q")).ok();
    assert!(json.json()["cells"].is_array() && json.stderr.is_empty());
    let table = line(path, &format!("decide router.safetensors heldout.csv {TASK} -o - -q")).ok();
    assert!(table.stdout.lines().count() == 201 && table.stderr.is_empty());
    // Errors are always printed, and conditions that hold.
    let run = line(path, "show missing.safetensors -q");
    assert!(run.code == 2 && run.stderr.starts_with("error: "), "{run:?}");
    let run = line(path, &format!("evaluate router.safetensors heldout.csv {TASK} --fail-if cost>0 -q"));
    assert!(run.code == 3 && run.stdout.is_empty() && run.stderr.lines().count() == 1, "{run:?}");
}

/// What bash offers for the last of these words.
fn completed(folder: &Path, words: &[&str]) -> Vec<String> {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let last = words.len() - 1;
    let script = format!(
        "source completions.bash; COMP_WORDS=({}); COMP_CWORD={last}; _pointsman pointsman '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        quoted.join(" "),
        words[last],
        words[last - 1]
    );
    let output = Command::new("bash").args(["--norc", "-c", &script]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_values_of_flags() {
    let folder = workshop();
    let path = folder.path();
    if Command::new("bash").arg("--version").stdout(Stdio::null()).status().is_err() {
        pointsman_testing::skip("no bash found");
        return;
    }
    fs::write(path.join("completions.bash"), line(path, "completions bash").ok().stdout).unwrap();
    for (words, wanted) in [
        (vec!["pointsman", "show", "r.st", "--loss", "cr"], vec!["cross-entropy"]),
        (vec!["pointsman", "show", "r.st", "--loss", "as"], vec!["asymmetric:2"]),
        (vec!["pointsman", "calibrate", "--partition", "top"], vec!["top-class:10"]),
        (vec!["pointsman", "diagnose", "--partition", "po"], vec!["pooled"]),
        (vec!["pointsman", "decide", "--estimator", "n"], vec!["npmle"]),
        (vec!["pointsman", "decide", "--ties", ""], vec!["frugal", "paper"]),
        (vec!["pointsman", "decide", "--keep", ""], vec!["none", "id", "all"]),
        (vec!["pointsman", "show", "--sort", "m"], vec!["margin"]),
        (vec!["pointsman", "evaluate", "--format", "p"], vec!["parquet"]),
        (
            vec!["pointsman", "evaluate", "--route", "experts=0.05,panel:m=3,aggregate=p"],
            vec!["experts=0.05,panel:m=3,aggregate=plurality"],
        ),
    ] {
        assert_eq!(completed(path, &words), wanted, "{words:?}");
    }
    // Other forms stay allowed.
    line(path, "calibrate calibration.csv -o r.st --partition top-class:7 -q").ok();
    line(path, "show r.st --loss asymmetric:1.5 --route 0.07 --json").ok();
    let refused = line(path, "show r.st --loss briar");
    assert!(refused.code == 2 && refused.stderr.contains("briar"), "{refused:?}");
    for shell in ["zsh", "fish"] {
        let script = line(path, &format!("completions {shell}")).ok().stdout;
        for value in ["cross-entropy", "level-sets", "npmle", "frugal", "aggregate=laplace"] {
            assert!(script.contains(value), "{shell} lacks {value}");
        }
    }
}

/// A process killed while it writes leaves a temporary file, which the next one to write there removes.
#[cfg(unix)]
#[test]
fn temporary_files_of_a_killed_run_are_removed_by_the_next() {
    use std::io::Write;
    let folder = workshop();
    let path = folder.path();
    let parts = || -> Vec<std::path::PathBuf> {
        let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|file| file.extension().is_some_and(|it| it == "part")).collect()
    };
    let spawn = |out: &str| {
        let args = format!("decide router.safetensors - {TASK} --batch-rows 50 -o {out}");
        let mut child = command()
            .current_dir(path)
            .args(args.split(' '))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Enough for a first batch to be written; then it waits for more.
        let input = fs::read(path.join("heldout.csv")).unwrap();
        child.stdin.as_mut().unwrap().write_all(&input).unwrap();
        child
    };
    let wait_for = |n: usize| {
        let start = Instant::now();
        while parts().len() < n {
            assert!(start.elapsed() < Duration::from_secs(60), "no temporary file appeared");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let mut killed = spawn("killed.csv");
    wait_for(1);
    // SIGKILL: nothing can be tidied up.
    killed.kill().unwrap();
    killed.wait().unwrap();
    let left = parts();
    assert_eq!(left.len(), 1);
    let mut running = spawn("running.csv");
    wait_for(2);
    // Young files are left alone, since they may be about to be locked: let both be old.
    for file in parts() {
        fs::File::options()
            .append(true)
            .open(file)
            .unwrap()
            .set_modified(SystemTime::now() - Duration::from_secs(60))
            .unwrap();
    }
    finish(
        command()
            .current_dir(path)
            .args(format!("decide router.safetensors heldout.csv {TASK} -o next.csv -q").split(' ')),
    )
    .ok();
    let kept = parts();
    assert!(kept.len() == 1 && kept[0] != left[0], "{left:?} {kept:?}");
    // The one that goes on completes its file.
    drop(running.stdin.take());
    assert!(running.wait().unwrap().success());
    assert!(parts().is_empty() && path.join("running.csv").exists() && !path.join("killed.csv").exists());
}
