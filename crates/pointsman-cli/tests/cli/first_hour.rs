//! The first hour of two new users, command by command.

use pointsman_testing::Lcg;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::{Run, finish, parse_csv};

/// Class names as people have them.
const CLASSES: [&str; 4] = ["Rückerstattung", "billing question", "spam", "技術支援"];

/// Runs a command line in a shell, as people type it.
fn shell(folder: &Path, line: &str) -> Run {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("\"$POINTSMAN\" {line}")]).current_dir(folder).stdin(Stdio::null());
    finish(shell.env("POINTSMAN", env!("CARGO_BIN_EXE_pointsman")).env_remove("COLUMNS"))
}

/// The commands that a report suggests, without the name of the program.
fn suggested(report: &Value) -> Vec<String> {
    let commands = report["next_step"]["commands"].as_array().unwrap_or_else(|| panic!("no commands: {report}"));
    let typed = |command: &Value| command.as_str().unwrap().strip_prefix("pointsman ").unwrap().to_owned();
    commands.iter().map(typed).collect()
}

/// An item: the model's probabilities, what people say, and two features. Long texts are those the model gets wrong and people agree on;
/// texts of two topics are ambiguous for everybody.
struct Item {
    probs: Vec<f64>,
    truth: Vec<f64>,
    words: usize,
    topics: usize,
}

fn item(random: &mut Lcg, classes: usize) -> Item {
    let class = random.below(classes);
    let (kind, words) = (random.uniform(), 5 + random.below(20));
    let other = (class + 1 + random.below(classes - 1)) % classes;
    let spread = |at: usize, top: f64| -> Vec<f64> {
        let rest = (1.0 - top) / (classes - 1) as f64;
        (0..classes).map(|c| if c == at { top } else { rest }).collect()
    };
    let confidence = 0.55 + 0.4 * random.uniform();
    let (probs, truth, words, topics) = if kind < 0.5 {
        (spread(class, confidence), spread(class, 0.95), words, 1)
    } else if kind < 0.75 {
        (spread(other, confidence - 0.1), spread(class, 0.95), words + 40, 1)
    } else {
        let mut both = spread(class, 0.5);
        both.iter_mut()
            .enumerate()
            .for_each(|(c, p)| *p = if c == class || c == other { 0.48 } else { 0.04 / (classes - 2) as f64 });
        (spread(class, confidence - 0.1), both, words, 2)
    };
    let mut probs: Vec<f64> = probs.iter().map(|p| (p * 1e4).round() / 1e4).collect();
    probs[0] = ((1.0 - probs[1..].iter().sum::<f64>()) * 1e4).round() / 1e4;
    Item { probs, truth, words, topics }
}

fn label(random: &mut Lcg, truth: &[f64]) -> usize {
    let (mut u, mut class) = (random.uniform(), 0);
    while class + 1 < truth.len() && u >= truth[class] {
        u -= truth[class];
        class += 1;
    }
    class
}

/// Tickets as a team has them: columns of their own names, texts, times, two to five labels.
fn tickets(random: &mut Lcg, rows: usize, first: usize, with_votes: bool) -> String {
    let columns = |prefix: &str| CLASSES.map(|class| format!("{prefix}{class}")).join(",");
    let votes = if with_votes { format!(",{}", columns("n_")) } else { String::new() };
    let mut table = format!("uid,text,received,{},f_words,f_topics{votes}\n", columns("p_"));
    for row in first..first + rows {
        let item = item(random, CLASSES.len());
        let probs: Vec<String> = item.probs.iter().map(ToString::to_string).collect();
        let text = format!("\"Hello, \"\"{row}\"\"\"");
        write!(table, "T-{row},{text},2026-03-01T10:{:02}:00Z,{}", row % 60, probs.join(",")).unwrap();
        write!(table, ",{},{}", item.words, item.topics).unwrap();
        if with_votes {
            let mut votes = [0; 4];
            (0..2 + row % 4).for_each(|_| votes[label(random, &item.truth)] += 1);
            votes.iter().for_each(|n| write!(table, ",{n}").unwrap());
        }
        table.push('\n');
    }
    table
}

/// An engineer with a table of their own: from it to decisions, a report, a budget, a cap, a gate in continuous integration.
#[test]
fn an_engineer_gets_from_a_table_to_decisions() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let mut random = Lcg::new(7);
    for (name, rows, votes) in [("tickets", 1200, true), ("heldout", 400, true), ("queries", 500, false)] {
        fs::write(path.join(format!("{name}.csv")), tickets(&mut random, rows, 1000, votes)).unwrap();
    }
    let columns = "--columns probs=p_,votes=n_,id=uid,features=f_";
    let task = "--route agent=0.15 --abstain 0.6";
    let found = shell(path, &format!("diagnose tickets.csv {columns} {task} --json")).ok().json();
    for next in suggested(&found) {
        shell(path, &next).ok();
    }
    let learned = shell(path, &format!("calibrate tickets.csv {columns} -o router.safetensors --json")).ok().json();
    assert_eq!(learned["features"]["ignored"], serde_json::json!([]), "{learned}");
    shell(path, &format!("calibrate tickets.csv {columns} --certifiable -o cells.safetensors")).ok();
    shell(path, "check router.safetensors").ok();
    shell(path, &format!("show router.safetensors {task}")).ok();
    let report =
        shell(path, &format!("evaluate router.safetensors heldout.csv {columns} {task} -o report --json")).ok().json();
    let queries = format!("queries.csv {columns} {task}");
    for next in suggested(&report) {
        shell(path, &next).ok();
    }
    shell(path, &format!("decide router.safetensors {queries} -o decisions.csv")).ok();
    let (header, rows) = parse_csv(&fs::read_to_string(path.join("decisions.csv")).unwrap().replace(", ", " "));
    assert_eq!(rows.len(), 500);
    for column in ["uid", "received", "action", "reason", "next_best"] {
        assert!(header.contains(&column.to_owned()), "{column} is not among {header:?}");
    }
    shell(path, &format!("decide router.safetensors {queries} --budget 20% -o budget.csv")).ok();
    shell(path, &format!("decide router.safetensors {queries} --cap agent=50 --keep id -o capped.csv")).ok();
    let (header, rows) = parse_csv(&fs::read_to_string(path.join("capped.csv")).unwrap());
    let action = header.iter().position(|name| name == "action").unwrap();
    assert_eq!(rows.iter().filter(|row| row[action] == "route:agent").count(), 50);
    let gate = format!("evaluate router.safetensors heldout.csv {columns} {task} -q");
    assert_eq!(shell(path, &format!("{gate} --fail-if 'saving<0' --fail-if drift")).code, 0);
    assert_eq!(shell(path, &format!("{gate} --fail-if 'saving<90%'")).code, 3);
    let why = shell(path, &format!("decide router.safetensors {queries} --explain T-1017")).ok().stdout;
    for part in ["T-1017", "predict would answer", "x_words", "Reason:"] {
        assert!(why.contains(part), "{part} in {why}");
    }
    let task_file = "[loss]\nclasses = [\"spam\", \"billing question\", \"技術支援\", \"Rückerstattung\"]\nacts = [\"drop\", \"answer\"]\n\
                     cost = [[0, 5, 5, 9], [1, 0, 0, 0]]\n[[route]]\nname = \"agent\"\ncost = 0.4\n";
    fs::write(path.join("task.toml"), task_file).unwrap();
    shell(path, &format!("check task.toml --classes '{}'", CLASSES.join(","))).ok();
    shell(path, &format!("compare router.safetensors cells.safetensors heldout.csv {columns} {task}")).ok();
    shell(path, &format!("decide router.safetensors queries.csv {columns} --task task.toml --keep id -o money.csv.gz"))
        .ok();

    // The same table in another format, with a time zone, becomes a text table again.
    let all = format!("decide router.safetensors {queries}");
    shell(path, &format!("{all} -o decided.parquet")).ok();
    shell(path, &format!("decide router.safetensors decided.parquet {columns} {task} -o again.csv")).ok();
}

/// Someone who pays for labels: from long annotations to a diagnosis, to a plan, to the ids of items to label, and back.
#[test]
fn an_annotation_lead_gets_from_labels_to_items_to_label() {
    const NAMES: [&str; 3] = ["invoice", "complaint", "Other topic"];
    const ANNOTATORS: usize = 9;
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let mut random = Lcg::new(5);
    let mut items = "id,split,prob_invoice,prob_complaint,prob_Other topic,x_words,x_topics\n".to_owned();
    let (mut pool, mut labels) = (items.clone(), "id,label,annotator\n".to_owned());
    let mut truths = Vec::new();
    let row = |it: &Item, id: &str, split: &str| {
        let probs: Vec<String> = it.probs.iter().map(ToString::to_string).collect();
        format!("{id},{split},{},{},{}\n", probs.join(","), it.words, it.topics)
    };
    for n in 0..900 {
        let it = item(&mut random, 3);
        items += &row(&it, &format!("i{n}"), if n % 3 == 0 { "test" } else { "calib" });
        for place in 0..4 {
            let who = (n + place * 2) % ANNOTATORS;
            let class = if who == 4 { 0 } else { label(&mut random, &it.truth) };
            let name = if who == 4 { "\"Always, Anna\"".to_owned() } else { format!("Zoë {who}") };
            writeln!(labels, "i{n},{},{name}", NAMES[class]).unwrap();
        }
    }
    for n in 0..600 {
        let it = item(&mut random, 3);
        pool += &row(&it, &format!("new{n}"), "pool");
        truths.push(it.truth);
    }
    fs::write(path.join("items.csv"), items).unwrap();
    fs::write(path.join("labels.csv"), &labels).unwrap();
    fs::write(path.join("pool.csv"), &pool).unwrap();
    let (table, task) = ("items.csv --annotations labels.csv --where split=calib", "--route expert=0.1 --abstain 0.5");

    let found = shell(path, &format!("diagnose {table} {task} --json")).ok().json();
    assert_eq!(found["flagged_annotators"]["annotators"], serde_json::json!(["Always, Anna"]), "{found}");
    let without = "--without 'Always, Anna'";
    if found["verdict"]["advice"] == "mend-labels" {
        let next = suggested(&found);
        assert!(next[0].contains(without) && next[0].contains("--where split=calib"), "{next:?}");
        shell(path, &next[0]).ok();
    }
    shell(path, &format!("diagnose {table} {without} {task} -o diagnosis")).ok();
    assert!(path.join("diagnosis/diagnosis.html").exists());
    shell(path, &format!("calibrate {table} {without} --partition confidence:4 -o cells.safetensors")).ok();
    shell(path, &format!("show cells.safetensors {task} --confidence 0.95")).ok();
    let held_out = "items.csv --annotations labels.csv --where split=test";
    shell(path, &format!("evaluate cells.safetensors {held_out} {without} {task}")).ok();
    // What labels are worth at their price, then which items to label.
    shell(path, &format!("plan cells.safetensors {task} --label-price 0.02 --traffic 2000000")).ok();
    let listed = |arguments: &str, output: &str| {
        let plan = format!("plan cells.safetensors {task} --confidence 0.99 {arguments} -o {output}");
        let printed = shell(path, &plan).ok();
        let (_, rows) = parse_csv(&fs::read_to_string(path.join(output)).unwrap());
        (printed, rows)
    };
    let (printed, new) = listed("--items pool.csv", "new-items.csv");
    assert!(!new.is_empty() && printed.stdout.contains("--add-to cells.safetensors"), "{printed:?}");
    // A pool that is too small is reported.
    let few: String = pool.lines().take(3).map(|line| format!("{line}\n")).collect();
    fs::write(path.join("few.csv"), few).unwrap();
    let (printed, few) = listed("--items few.csv", "few-items.csv");
    assert!(few.len() <= 2 && printed.stdout.replace('\n', " ").contains("The plan needs"), "{printed:?}");
    // Labels of items that have some come from the same annotations: they are not taken for new ones.
    let (_, again) = listed(&format!("--items {table} {without}"), "more-labels.csv");
    assert!(again.iter().all(|row| row[0].starts_with('i')), "{again:?}");

    // The labels come back; the items are added in the same cells, which keep their shares of the traffic.
    let mut labelled = pool.lines().next().unwrap().to_owned() + "\n";
    let mut new_labels = "id,label\n".to_owned();
    for row in &new {
        let n: usize = row[0].strip_prefix("new").unwrap().parse().unwrap();
        labelled += &format!("{}\n", pool.lines().nth(n + 1).unwrap());
        for _ in 0..row[2].parse::<usize>().unwrap() {
            writeln!(new_labels, "{},{}", row[0], NAMES[label(&mut random, &truths[n])]).unwrap();
        }
    }
    fs::write(path.join("labelled.csv"), labelled).unwrap();
    fs::write(path.join("new-labels.csv"), new_labels).unwrap();
    let add = "calibrate labelled.csv --annotations new-labels.csv --add-to cells.safetensors -o more.safetensors";
    shell(path, add).ok();
    let shown = |router: &str| shell(path, &format!("show {router} {task} --confidence 0.95 --json")).ok().json();
    let (before, after) = (shown("cells.safetensors"), shown("more.safetensors"));
    assert_eq!(after["rows"].as_u64().unwrap(), before["rows"].as_u64().unwrap() + new.len() as u64);
    let cost = |report: &Value| report["promise"]["cost"].as_f64().unwrap();
    let error = before["promise"]["standard_error"].as_f64().unwrap();
    assert!((cost(&after) - cost(&before)).abs() < 3.0 * error, "{} became {}", cost(&before), cost(&after));
    let certain = |report: &Value| report["certain_share"].as_f64().unwrap();
    assert!(certain(&after) >= certain(&before) - 1e-9, "{} became {}", certain(&before), certain(&after));
}
