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

/// An engineer who can ask a strong model or people, with one to five labels per item: what is printed agrees with the truth.
#[test]
fn costs_agree_with_the_truth_where_items_have_one_to_five_labels() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let mut random = Lcg::new(29);
    let columns = |prefix: &str| CLASSES.map(|class| format!("{prefix}{class}")).join(",");
    // The loss of the model, of the strong model and of people, which do not depend on who labels.
    let mut losses = Vec::new();
    for (name, rows) in [("calibration", 1500), ("heldout", 1000), ("queries", 3000)] {
        let mut text = format!(
            "id,{},x_words,x_topics,{},{}\n",
            columns("prob_"),
            columns("oracle_strong_"),
            if name == "queries" { "note".to_owned() } else { columns("votes_") }
        );
        for row in 0..rows {
            let Item { probs, truth, words, topics } = item(&mut random, 4);
            let is_right = random.uniform() < 0.9;
            let top = (0..4).max_by(|&a, &b| truth[a].total_cmp(&truth[b])).unwrap();
            let said = if is_right { top } else { (top + 1) % 4 };
            let strong: Vec<f64> = (0..4).map(|class| if class == said { 0.88 } else { 0.04 }).collect();
            let mut votes = [0; 4];
            (0..=random.below(5)).for_each(|_| votes[label(&mut random, &truth)] += 1);
            let list = |values: &[f64]| values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            let votes = if name == "queries" { "-".to_owned() } else { votes.map(|n| n.to_string()).join(",") };
            writeln!(text, "q{row},{},{words},{topics},{},{votes}", list(&probs), list(&strong)).unwrap();
            if name == "queries" {
                let square = |p: &[f64]| p.iter().map(|p| p * p).sum::<f64>();
                let cross = |p: &[f64]| p.iter().zip(&truth).map(|(p, t)| p * t).sum::<f64>();
                let loss = |p: &[f64]| 1.0 - 2.0 * cross(p) + square(p);
                losses.push([loss(&probs), loss(&strong), 1.0 - square(&truth)]);
            }
        }
        fs::write(path.join(format!("{name}.csv")), text).unwrap();
    }
    let task = "--route strong=0.05,measured --route people=0.15 --abstain 0.5";
    shell(path, "calibrate calibration.csv --partition forest:50 -o router.safetensors").ok();
    let shown = shell(path, &format!("show router.safetensors {task} --json")).ok().json();
    let found = shell(path, &format!("evaluate router.safetensors heldout.csv {task} --json")).ok().json();
    shell(path, &format!("compile router.safetensors {task} -o policy.safetensors")).ok();
    shell(path, "decide policy.safetensors queries.csv --keep id -o decisions.csv.gz").ok();
    shell(path, &format!("decide router.safetensors queries.csv {task} --keep id -o decisions.csv")).ok();
    let (header, rows) = parse_csv(&fs::read_to_string(path.join("decisions.csv")).unwrap());
    let action = header.iter().position(|name| name == "action").unwrap();
    let cost = |(row, losses): (&Vec<String>, &[f64; 3])| match row[action].as_str() {
        "predict" => losses[0],
        "route:strong" => losses[1] + 0.05,
        "route:people" => losses[2] + 0.15,
        "abstain" => 0.5,
        other => panic!("{other}"),
    };
    let truth = rows.iter().zip(&losses).map(cost).sum::<f64>() / rows.len() as f64;
    for (what, cost, error) in [
        ("promise", &shown["promise"]["cost"], &shown["promise"]["standard_error"]),
        ("evaluation", &found["corrected_cost"]["router"], &found["corrected_standard_error"]["router"]),
    ] {
        let [cost, error] = [cost, error].map(|value| value.as_f64().unwrap());
        assert!((cost - truth).abs() < 3.0 * error, "{what}: {cost} ± {error} instead of {truth}");
    }
    shell(path, "calibrate calibration.csv --certifiable -o cells.safetensors").ok();
    shell(path, &format!("compare router.safetensors cells.safetensors heldout.csv {task}")).ok();
    shell(path, &format!("decide router.safetensors queries.csv {task} --budget 30% -o budget.parquet")).ok();
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
    // The loss with all labels is that of the costs, and the loss without hers is what a diagnosis without them finds.
    let irreducible = |report: &Value| {
        let worth = |name: &str| report["worth"][name]["estimate"].as_f64().unwrap();
        worth("loss") - worth("reducible")
    };
    let flagged = |name: &str| found["flagged_annotators"][name].as_f64().unwrap();
    assert!((flagged("irreducible") - irreducible(&found)).abs() < 1e-9, "{found}");
    let again = shell(path, &format!("diagnose {table} {without} {task} --json")).ok().json();
    assert!((flagged("irreducible_without") - irreducible(&again)).abs() < 0.002, "{}", irreducible(&again));
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

/// Items with a flag that one in five have, dates, and labels of three annotators as a tool exports them: ids called `item_id`, times,
/// capitals, and the rows of a repeated export.
fn untidy_files(path: &Path) {
    let mut random = Lcg::new(11);
    let mut items = "id,received,prob_cat,prob_dog,x_flag\n".to_owned();
    let mut bare = "id,cat,dog,votes_cat,votes_dog\n".to_owned();
    let mut labels = "item_id,label,annotator,created_at\n".to_owned();
    for n in 0..600 {
        let p = (1 + random.below(98)) as f64 / 100.0;
        let flag = u8::from(n % 5 == 0);
        let truth = if flag == 1 { 0.5 } else { p };
        writeln!(items, "i{n},2024-{:02}-15T08:00:00Z,{p},{:.2},{flag}", 1 + n % 12, 1.0 - p).unwrap();
        let mut votes = [0; 2];
        for who in 0..3 {
            let class = usize::from(random.uniform() >= truth);
            votes[class] += 1;
            let name = ["cat", "dog", "Cat", "DOG"][class + 2 * usize::from(n == 7)];
            let row = format!("i{n},{name},ann{},2024-01-0{}T10:00:00Z\n", (who + n) % 3, 1 + who);
            labels += &row.repeat(1 + usize::from(n < 2));
        }
        writeln!(bare, "i{n},{p},{:.2},{},{}", 1.0 - p, votes[0], votes[1]).unwrap();
    }
    for (name, text) in [("items.csv", &items), ("labels.csv", &labels), ("bare.csv", &bare)] {
        fs::write(path.join(name), text).unwrap();
    }
}

#[test]
fn untidy_files_are_read_and_every_assumption_is_reported() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    untidy_files(path);
    let table = "items.csv --annotations labels.csv";
    let run = shell(path, &format!("calibrate {table} --partition features:x_flag=2 -o r.safetensors --json")).ok();
    for part in [
        "labels.csv: took item_id for id",
        "labels.csv: 6 rows repeat an earlier label of the same annotator on the same item, and were counted once (first row 2,",
        "labels.csv: 3 labels differ from the name of a class in capitals or spaces only and were counted: ",
    ] {
        assert!(run.stderr.contains(part), "{part} in {}", run.stderr);
    }
    // A value that few rows have is a cell of its own.
    assert_eq!((run.json()["cells"].as_u64(), run.json()["labels"]["max"].as_u64()), (Some(2), Some(3)));
    assert!(!run.stderr.contains("created_at"), "the order of labels does not matter here: {}", run.stderr);
    let run = shell(path, &format!("calibrate {table} --first-labels 2 --partition top-class:2 -o s.safetensors")).ok();
    assert!(run.stderr.contains("add --columns date=created_at"), "{}", run.stderr);
    let run = shell(path, &format!("diagnose {table} --route 0.1")).ok();
    assert!(run.stderr.contains("add --columns date=created_at"), "{}", run.stderr);
    let run = shell(path, &format!("diagnose {table} --route 0.1 --columns date=created_at")).ok();
    assert!(!run.stderr.contains("created_at"), "{}", run.stderr);

    // Ranges of dates and numbers.
    let rows = |filter: &str| {
        let calibrate = format!("calibrate {table} --where {filter} --partition top-class:2 -o s.safetensors --json");
        shell(path, &calibrate).ok().json()["rows"].as_u64().unwrap()
    };
    assert_eq!(rows("'received>=2024-07-15'"), 300);
    assert_eq!(rows("'received>2024-07-15' --where 'received<2024-10-01'"), 100);
    assert_eq!(rows("'x_flag!=0'"), 120);

    // The flag that the message gives works.
    let run = shell(path, "calibrate bare.csv -o b.safetensors");
    let flag = "--columns probs=cat,probs=dog";
    assert!(run.code == 2 && run.stderr.contains(flag), "{run:?}");
    shell(path, &format!("calibrate bare.csv {flag} --partition top-class:2 -o b.safetensors")).ok();
    let decided = shell(path, &format!("decide b.safetensors bare.csv {flag} --route 0.1 -o d.csv")).ok();
    assert!(decided.stderr.contains(flag), "{}", decided.stderr);

    // Contradictions are all counted.
    let labels = fs::read_to_string(path.join("labels.csv")).unwrap();
    let turned: String = labels.lines().skip(1).take(3).map(|row| row.replace("cat", "dog") + "\n").collect();
    let other: String = labels.lines().skip(1).take(3).map(|row| row.replace("dog", "cat") + "\n").collect();
    fs::write(path.join("turned.csv"), labels + &turned + &other).unwrap();
    let run = shell(path, "calibrate items.csv --annotations turned.csv -o s.safetensors");
    assert!(run.code == 2 && run.stderr.contains("; 2 more rows do so (rows "), "{run:?}");
}

#[test]
fn plans_fit_the_annotators_and_the_items_there_are() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    untidy_files(path);
    let table = "items.csv --annotations labels.csv";
    let mut listed = 0;
    for (cells, price) in [(3, 0.2), (3, 0.1), (5, 0.1)] {
        shell(path, &format!("calibrate {table} --partition confidence:{cells} -o r.safetensors")).ok();
        let plan = format!("plan r.safetensors --route {price} --confidence 0.99 --json --items {table} -o more.csv");
        let fitting = shell(path, &plan).ok();
        assert_eq!(fitting.json()["items"]["items"], 0, "three annotators are the most labels per item: {fitting:?}");
        let run = shell(path, &format!("{plan} --max-labels-per-item 50")).ok();
        // All three annotators have labelled every item.
        let items = run.json()["items"]["items"].as_u64().unwrap();
        assert_eq!(items > 0, run.stderr.contains("more labels than there are annotators left"), "{run:?}");
        assert_eq!(items > 0, run.stderr.contains("there are 3 and the plan would need "), "{run:?}");
        listed += items;
    }
    assert!(listed > 0, "no plan asks for more labels per item");
    let plan = "plan r.safetensors --route 0.1 --abstain 0.4 --confidence 0.99 --json";
    // New items: the worths listed add up to the worth reported, also if there are too few.
    let items = fs::read_to_string(path.join("items.csv")).unwrap().replace("\ni", "\nnew");
    let mut sums = Vec::new();
    for count in [20, 100, 600] {
        let few: String = items.lines().take(1 + count).map(|line| format!("{line}\n")).collect();
        fs::write(path.join("pool.csv"), few).unwrap();
        let run = shell(path, &format!("{plan} --items pool.csv -o new.csv")).ok();
        let (_, rows) = parse_csv(&fs::read_to_string(path.join("new.csv")).unwrap());
        let sum: f64 = rows.iter().map(|row| row[3].parse::<f64>().unwrap()).sum();
        let worth = run.json()["items"]["worth"].as_f64().unwrap();
        assert!((sum - worth).abs() < 1e-6, "{sum} and {worth}");
        sums.push(sum);
    }
    assert!(sums[2] > 0.0 && sums.is_sorted(), "more items are worth more: {sums:?}");
}

/// A plan asks for more labels in some cells than in others. That number depends on no item's own labels.
#[test]
fn numbers_of_labels_may_differ_from_cell_to_cell_of_a_plan() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let mut random = Lcg::new(3);
    // Items with the flag are ambiguous and get five labels, others two; or only items whose first two labels differ get five.
    let mut table = |name: &str, is_planned: bool| {
        let mut text = "id,prob_a,prob_b,x_flag,votes_a,votes_b\n".to_owned();
        for n in 0..400 {
            let (p, flag) = (0.6 + 0.3 * random.uniform(), n % 2);
            let share = if flag == 1 { 0.5 } else { 0.97 };
            let mut votes = [0; 2];
            (0..2).for_each(|_| votes[usize::from(random.uniform() >= share)] += 1);
            if if is_planned { flag == 1 } else { votes[0] == 1 } {
                (0..3).for_each(|_| votes[usize::from(random.uniform() >= share)] += 1);
            }
            writeln!(text, "{n},{p:.4},{:.4},{flag},{},{}", 1.0 - p, votes[0], votes[1]).unwrap();
        }
        fs::write(path.join(name), text).unwrap();
    };
    table("first.csv", true);
    table("planned.csv", true);
    table("stopped.csv", false);
    let warning = "if the number depends on the labels";
    let calibrate = |rest: &str| shell(path, &format!("calibrate {rest}")).ok().stderr;
    let cells = "--partition features:x_flag=2";
    assert!(!calibrate(&format!("first.csv {cells} -o r.safetensors")).contains(warning));
    assert!(!calibrate("planned.csv --add-to r.safetensors -o more.safetensors").contains(warning));
    // Elsewhere nobody planned it, and within the cells it must not depend on the labels either.
    assert!(calibrate("planned.csv -o s.safetensors").contains(warning));
    assert!(calibrate("stopped.csv --add-to r.safetensors -o s.safetensors").contains(warning));
}
