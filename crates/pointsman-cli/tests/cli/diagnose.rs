//! Diagnoses, first labels, and labels that depend on labels.

use pointsman_testing::Lcg;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::browser::{browser, text_in_window};
use crate::{line, real_data, repository, workshop, world};

#[test]
fn verdict_is_the_same_on_the_terminal_and_in_json() {
    let folder = workshop();
    let task = "--route expert=0.05 --abstain 0.5";
    let displayed =
        line(folder.path(), &format!("diagnose calibration.csv {task} --partition top-class:3")).ok().stdout;
    for part in
        ["calibration.csv: 300 rows", "Is decomposition worth it here?", "confidence threshold", "always abstain"]
    {
        assert!(displayed.contains(part), "{part} in {displayed}");
    }
    for part in ["weak model calibrated", "labels, rows and cells enough", "labels independent", "top-class:20"] {
        assert!(displayed.contains(part), "{part} in {displayed}");
    }
    let found =
        line(folder.path(), &format!("diagnose calibration.csv {task} --partition top-class:3 --json")).ok().json();
    assert_eq!((&found["rows"], &found["partition"]), (&300.into(), &"top-class:3".into()));
    assert!(displayed.replace('\n', " ").contains(found["verdict"]["sentence"].as_str().unwrap()), "{displayed}");
    for name in ["router", "always-predict", "always-route:expert", "always-abstain", "total-uncertainty"] {
        let cost = &found["worth"]["costs"][name];
        let number = |end: &str| cost[end].as_f64().unwrap();
        assert!(number("low") <= number("estimate") && number("estimate") <= number("high"), "{name}: {cost}");
    }
    // The order of the rows changes nothing.
    world::rows(300, 1).reversed().write_csv(&folder.path().join("reversed.csv"));
    let mut turned =
        line(folder.path(), &format!("diagnose reversed.csv {task} --partition top-class:3 --json")).ok().json();
    // But the name of the file in the command suggested.
    let next = turned["next_step"]["commands"][0].as_str().unwrap().replace("reversed", "calibration");
    turned["next_step"]["commands"][0] = next.into();
    assert_eq!(found, turned);
}

#[test]
fn rules_are_compared_at_the_limit() {
    let folder = workshop();
    let ask = |task: &str| line(folder.path(), &format!("diagnose calibration.csv --partition top-class:3 {task}"));
    let displayed = ask("--route expert=0.01 --budget 0.2 -o out").ok().stdout;
    for part in ["with at most 20 % routed", "routed", "Each rule routes in its own order", "confidence threshold"] {
        assert!(displayed.replace('\n', " ").contains(part), "{part} in {displayed}");
    }
    assert!(!displayed.contains("always route"), "{displayed}");
    let written = fs::read_to_string(folder.path().join("out/diagnosis.json")).unwrap();
    let found: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(found["task"]["budget"], 0.2);
    assert!(found["worth"]["limit"]["routed"]["router"]["estimate"].as_f64().unwrap() <= 0.2 + 1e-9, "{found}");

    let refused = ask("--route expert=0.01 --target-loss 0.001");
    assert!(refused.code == 2 && refused.stderr.contains("no routing reaches a loss of 0.001"), "{refused:?}");
    // The least loss there is: what not every half reaches has no number.
    let least = refused.stderr.split("leaves ").nth(1).unwrap().split(';').next().unwrap().to_owned();
    let displayed = ask(&format!("--route expert=0.01 --target-loss {least}")).ok().stdout.replace("\n  ", " ");
    assert!(
        displayed.contains("halves Pointsman does not reach a loss of") && !displayed.contains("always predict"),
        "{displayed}"
    );
}

#[test]
fn diagnosis_and_report_are_written_into_a_folder() {
    let folder = workshop();
    let displayed =
        line(folder.path(), "diagnose calibration.csv --partition top-class:3 --route 0.05 -o out").ok().stdout;
    assert_eq!(displayed.lines().last().unwrap().trim(), "out/diagnosis.html", "{displayed}");
    for file in [
        "diagnosis.json",
        "diagnosis.html",
        "report.html",
        "report.json",
        "figures/summary.svg",
        "figures/reliability.png",
    ] {
        assert!(folder.path().join("out").join(file).is_file(), "{file}");
    }
    let report: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("out/report.json")).unwrap()).unwrap();
    assert_eq!(
        (&report["rows"], &report["router"]["rows"]),
        (&150.into(), &150.into()),
        "one half evaluated on the other"
    );
}

/// What a reader finds on the page: the verdict, tables by their name, and whether all fits the window.
const READER: &str = r##"<script>
addEventListener("load", () => {
  const text = (node) => node.textContent.trim(), all = (where, what) => [...where.querySelectorAll(what)];
  const tables = Object.fromEntries(all(document, "[role=region]").map((box) => [box.getAttribute("aria-label"),
    all(box, "tbody tr").map((row) => [...row.cells].map(text))]));
  const result = document.createElement("pre");
  result.id = "result";
  result.textContent = JSON.stringify({ verdict: text(document.querySelector("h1")), tables, commands: all(document, "pre").map(text),
    questions: all(document, "h2").map(text), circles: all(document, "figure circle").length, limit: text(document.getElementById("limit")),
    headers: all(document, "th").every((th) => th.scope), tooWide: document.documentElement.scrollWidth > innerWidth });
  document.body.append(result);
});
</script></body>"##;

/// In a browser of a phone's width: the verdict comes first, and every number is the one of diagnosis.json.
#[test]
fn diagnosis_page_shows_the_numbers_of_the_json_and_fits_a_phone() {
    let Some(browser) = browser() else { return };
    let folder = workshop();
    for limit in ["--abstain 0.6", "--budget 0.2"] {
        let ask = format!("diagnose calibration.csv --partition top-class:3 --route expert=0.01 {limit} -o out --json");
        let found = line(folder.path(), &ask).ok().json();
        let written: serde_json::Value =
            serde_json::from_slice(&fs::read(folder.path().join("out/diagnosis.json")).unwrap()).unwrap();
        assert_eq!(written, found);
        let page = fs::read_to_string(folder.path().join("out/diagnosis.html")).unwrap();
        let seen = text_in_window(&browser, folder.path(), &page.replace("</body>", READER), 375);
        assert_eq!(seen["verdict"], found["verdict"]["sentence"], "{seen}");
        assert_eq!((&seen["tooWide"], &seen["headers"]), (&false.into(), &true.into()), "{seen}");
        assert_eq!(seen["circles"].as_u64().unwrap() as usize, found["weak_model"]["bins"].as_array().unwrap().len());
        for question in ["worth it here?", "calibrated?", "enough?", "independent?"] {
            let asked = seen["questions"].as_array().unwrap().iter().any(|h2| h2.as_str().unwrap().ends_with(question));
            assert!(asked, "{question}: {seen}");
        }
        let commands = found["next_step"]["commands"].as_array().cloned().unwrap_or_default();
        assert_eq!(seen["commands"].as_array().unwrap(), &commands, "{seen}");
        let close = |shown: &serde_json::Value, value: &serde_json::Value, off: f64| {
            let number: f64 = shown.as_str().unwrap().replace('−', "-").parse().unwrap();
            assert!((number - value.as_f64().unwrap()).abs() <= off, "{shown} and {value} in {seen}");
        };
        let costs = found["worth"]["costs"].as_object().unwrap();
        let rows = seen["tables"]["Costs and savings"].as_array().unwrap();
        assert_eq!((rows.len(), &rows[0][0]), (costs.len(), &"Pointsman (top-class:3)".into()), "{seen}");
        // A rule's row, by what people call it.
        let row_of = |table: &str, name: &str| {
            let spoken = match table {
                "Routing gains" => pointsman::evaluate::ranking_name(name),
                _ => pointsman::evaluate::rule_name(name),
            };
            let rows = seen["tables"][table].as_array().unwrap();
            let is_named = |row: &&serde_json::Value| {
                row[0].as_str().is_some_and(|text| text == spoken || text.starts_with(&format!("{spoken} (")))
            };
            rows.iter().find(is_named).unwrap_or_else(|| panic!("{spoken} is not in {seen}")).clone()
        };
        for (name, cost) in costs {
            let row = row_of("Costs and savings", name);
            close(&row[1], &cost["estimate"], 1e-4);
            if name != "router" {
                close(&row[3], &found["worth"]["savings"][name]["estimate"], 1e-4);
            }
        }
        for (name, gain) in found["worth"]["gain"].as_object().unwrap() {
            let (row, interval) = (row_of("Routing gains", name), &found["worth"]["gain_interval"][name]);
            close(&row[1], gain, 6e-4);
            let ends: Vec<&str> = row[2].as_str().unwrap().split(" to ").collect();
            close(&ends[0].into(), &interval["low"], 6e-4);
            close(&ends[1].into(), &interval["high"], 6e-4);
        }
        assert_eq!(seen["limit"].as_str().unwrap().is_empty(), !limit.contains("budget"), "{seen}");
        // The scale of gains has one name, on the page, on the terminal, and where `evaluate` states gains.
        assert!(page.contains("0 is routing at random, 1 the best possible order"), "{page:.200}");
        let terminal = line(folder.path(), ask.trim_end_matches(" -o out --json")).ok().stdout;
        assert!(
            terminal.split_whitespace().collect::<Vec<_>>().join(" ").contains("(0 random, 1 the best possible order)"),
            "{terminal}"
        );
    }
}

#[test]
fn one_label_per_item_gives_bounds_and_advice() {
    let folder = TempDir::new().unwrap();
    world::rows(200, 1).with_one_label().write_csv(&folder.path().join("one.csv"));
    let displayed = line(folder.path(), "diagnose one.csv --route 0.05").ok().stdout.replace("\n  ", " ");
    for part in ["Not with one label per item", "lies between", "A second label"] {
        assert!(displayed.contains(part), "{part} in {displayed}");
    }
    let found = line(folder.path(), "diagnose one.csv --route 0.05 --json").ok().json();
    assert_eq!((&found["verdict"]["advice"], &found["worth"]), (&"one-label".into(), &serde_json::Value::Null));
}

/// Items and a long table of their labels: two each, and three more where the two differ.
fn write_until_agreed(folder: &Path, n: usize) {
    let (mut items, mut labels) = ("id,prob_no,prob_yes\n".to_owned(), "id,label\n".to_owned());
    let mut rng = Lcg::new(7);
    let mut uniform = || rng.uniform();
    for item in 0..n {
        let p = 0.3 + 0.4 * uniform();
        writeln!(items, "{item},{},{p}", 1.0 - p).unwrap();
        let drawn: Vec<bool> = (0..5).map(|_| uniform() < p).collect();
        let kept = if drawn[0] == drawn[1] { 2 } else { 5 };
        for yes in &drawn[..kept] {
            writeln!(labels, "{item},{}", if *yes { "yes" } else { "no" }).unwrap();
        }
    }
    fs::write(folder.join("items.csv"), items).unwrap();
    fs::write(folder.join("labels.csv"), labels).unwrap();
}

#[test]
fn labels_that_stop_on_agreement_are_reported_and_first_labels_help() {
    let folder = TempDir::new().unwrap();
    write_until_agreed(folder.path(), 400);
    let votes = "items.csv --annotations labels.csv";
    let warned = line(folder.path(), &format!("calibrate {votes} -o a.st --partition confidence:5")).ok().stderr;
    for part in ["2 to 5 labels", "every row with 2 labels is unanimous", "--first-labels"] {
        assert!(warned.contains(part), "{part} in {warned}");
    }
    let evaluated = line(folder.path(), &format!("evaluate a.st {votes} --route 0.05")).ok().stderr;
    assert!(evaluated.contains("every row with 2 labels is unanimous"), "{evaluated}");
    let displayed = line(folder.path(), &format!("diagnose {votes} --route 0.05")).ok();
    assert!(
        displayed.stdout.contains("Correct the labels first") && displayed.stderr.contains("unanimous"),
        "{displayed:?}"
    );

    assert!(
        displayed.stdout.contains(&format!("pointsman diagnose {votes} --first-labels 2 --route 0.05")),
        "{displayed:?}"
    );
    // Rows with one label cannot be cured by fewer labels.
    let labels = fs::read_to_string(folder.path().join("labels.csv")).unwrap() + "400,yes\n";
    let items = fs::read_to_string(folder.path().join("items.csv")).unwrap() + "400,0.5,0.5\n";
    fs::write(folder.path().join("single-labels.csv"), labels).unwrap();
    fs::write(folder.path().join("single.csv"), items).unwrap();
    let single =
        "calibrate single.csv --annotations single-labels.csv --first-labels 2 -o d.st --partition confidence:5";
    let warned = line(folder.path(), single).ok().stderr;
    assert!(
        warned.contains("1 row has fewer than 2 labels and keeps all: leave these rows out of the table"),
        "{warned}"
    );

    let cured =
        line(folder.path(), &format!("calibrate {votes} --first-labels 2 -o b.st --partition confidence:5 --json"))
            .ok();
    assert_eq!(cured.json()["labels"]["max"], 2);
    assert!(!cured.stderr.contains("unanimous"), "{}", cured.stderr);
    // Three is more than the rule left alone.
    let half =
        line(folder.path(), &format!("calibrate {votes} --first-labels 3 -o c.st --partition confidence:5")).ok();
    assert!(
        half.stderr.contains("rows have fewer than 3 labels") && half.stderr.contains("unanimous"),
        "{}",
        half.stderr
    );
    // The Brier loss that nobody can avoid is above 0.45 in this world; the stopping rule hides much of it.
    let irreducible = |router: &str| {
        let cells = line(folder.path(), &format!("show {router} --route 0.05 --json")).ok().json();
        let cells = cells["cells"].as_array().unwrap().clone();
        cells.iter().map(|cell| cell["irreducible"].as_f64().unwrap()).sum::<f64>() / cells.len() as f64
    };
    assert!(irreducible("a.st") < 0.35 && irreducible("b.st") > 0.4, "{} {}", irreducible("a.st"), irreducible("b.st"));
}

/// Items that four of six annotators label, in order; `dan` repeats the label before his, or is as independent as the others.
fn write_named(folder: &Path, n: usize, copies: bool) {
    write_named_by(folder, n, copies, |_, u| [0.2 + 0.6 * u; 2]);
}

/// As [`write_named`], where `law` gives the predicted and the true probability of yes for each item and a random number.
fn write_named_by(folder: &Path, n: usize, copies: bool, law: impl Fn(usize, f64) -> [f64; 2]) {
    let (mut items, mut labels) = ("id,prob_no,prob_yes\n".to_owned(), "id,label,annotator\n".to_owned());
    let mut rng = Lcg::new(11);
    let mut uniform = || rng.uniform();
    let names = ["ann", "bob", "cy", "dan", "eve", "fay"];
    for item in 0..n {
        let [predicted, p] = law(item, uniform());
        writeln!(items, "{item},{},{predicted}", 1.0 - predicted).unwrap();
        let first = (uniform() * 6.0) as usize;
        let mut before = None;
        for place in 0..4 {
            let who = names[(first + place * (1 + 4 * (item % 2))) % 6];
            let drawn = uniform() < p;
            let yes = if copies && who == "dan" { before.unwrap_or(drawn) } else { drawn };
            writeln!(labels, "{item},{},{who}", if yes { "yes" } else { "no" }).unwrap();
            before = Some(yes);
        }
    }
    fs::write(folder.join("items.csv"), items).unwrap();
    fs::write(folder.join("labels.csv"), labels).unwrap();
}

/// Items that three of `names` label in random order; the last one repeats the first one's label where that is given before.
fn write_copied(folder: &Path, n: usize, names: &[&str], dates: bool) {
    let (mut items, mut labels) = ("item_id,prob_no,prob_yes\n".to_owned(), "id,label,annotator".to_owned());
    labels += if dates { ",created_at\n" } else { "\n" };
    let mut rng = Lcg::new(12);
    let mut uniform = || rng.uniform();
    for item in 0..n {
        let p = 0.1 + 0.8 * uniform();
        writeln!(items, "{item},{},{p}", 1.0 - p).unwrap();
        let mut team: Vec<usize> = (0..names.len()).collect();
        for place in 0..3 {
            let other = place + (uniform() * (names.len() - place) as f64) as usize;
            team.swap(place, other);
        }
        team.truncate(3);
        let copier = names.len() - 1;
        if team.contains(&0) && team.contains(&copier) {
            team.retain(|&who| who != copier);
            team.push(copier);
        }
        let mut copied = None;
        for (place, who) in team.into_iter().enumerate() {
            let drawn = uniform() < p;
            let yes = copied.filter(|_| who == copier).unwrap_or(drawn);
            copied = copied.or(Some(yes).filter(|_| who == 0));
            write!(labels, "{item},{},{}", if yes { "yes" } else { "no" }, names[who]).unwrap();
            if dates {
                write!(labels, ",2026-05-04T{:02}:00:00Z", 8 + place).unwrap();
            }
            labels.push('\n');
        }
    }
    fs::write(folder.join("items.csv"), items).unwrap();
    fs::write(folder.join("labels.csv"), labels).unwrap();
}

#[test]
fn a_copier_of_one_colleague_is_named_with_how_often_they_agree() {
    let folder = TempDir::new().unwrap();
    let names = ["ivo", "ann", "bob", "cy", "dan", "eve", "fay", "jun"];
    write_copied(folder.path(), 1200, &names, false);
    let command = "diagnose items.csv --annotations labels.csv --route 0.05 --partition confidence:5";
    let found = line(folder.path(), &format!("{command} --json")).ok().json();
    let pair = &found["agreeing_pairs"][0];
    assert_eq!((&pair["annotator"], &pair["colleague"]), (&"jun".into(), &"ivo".into()), "{found}");
    assert_eq!((&pair["agreed"], &pair["later"]), (&pair["common"], &pair["common"]), "{pair}");
    assert_eq!(found["flagged_annotators"]["annotators"], serde_json::json!(["jun"]));
    // One of eight gave more than a tenth of the labels.
    assert!(found["flagged_annotators"]["label_share"].as_f64().unwrap() > 0.1, "{found}");
    assert_eq!(found["verdict"]["advice"], "mend-labels");
    let sentence = found["verdict"]["sentence"].as_str().unwrap();
    let common = pair["common"].as_u64().unwrap();
    for part in [
        format!("jun gives ivo’s label on {common} of {common} common items; other pairs agree on "),
        format!("jun came later on {common} of them"),
        "--without jun.".to_owned(),
    ] {
        assert!(sentence.contains(&part), "{part} in {sentence}");
    }
    assert!(found["next_step"]["commands"][0].as_str().unwrap().contains("--without jun"), "{found}");
    // The column of ids of the table is taken, and the output says so.
    let displayed = line(folder.path(), command).ok();
    assert!(displayed.stderr.contains("took the column item_id of the table for id"), "{}", displayed.stderr);
    let cured = line(folder.path(), &format!("{command} --without jun --json")).ok().json();
    assert_eq!(
        (&cured["agreeing_pairs"], &cured["flagged_annotators"]),
        (&serde_json::json!([]), &serde_json::Value::Null)
    );
}

/// A column of final labels in a table of annotations is no annotator.
#[test]
fn a_majority_vote_is_named_with_the_option_that_leaves_it_out() {
    let folder = TempDir::new().unwrap();
    write_named(folder.path(), 900, false);
    let labels = fs::read_to_string(folder.path().join("labels.csv")).unwrap();
    let mut rows: Vec<Vec<&str>> = vec![Vec::new(); 900];
    for row in labels.lines().skip(1) {
        rows[row.split(',').next().unwrap().parse::<usize>().unwrap()].push(row);
    }
    // One to four labels, and then the most frequent one.
    let mut text = "id,label,annotator\n".to_owned();
    for (item, row) in rows.iter().enumerate() {
        let kept = &row[..1 + item % 4];
        let yes = kept.iter().filter(|row| row.contains(",yes,")).count();
        kept.iter().for_each(|row| writeln!(text, "{row}").unwrap());
        writeln!(text, "{item},{},FINAL", if 2 * yes > kept.len() { "yes" } else { "no" }).unwrap();
    }
    fs::write(folder.path().join("labels.csv"), text).unwrap();
    let command = "diagnose items.csv --annotations labels.csv --route 0.05 --partition confidence:5";
    let found = line(folder.path(), &format!("{command} --json")).ok().json();
    let said = found["verdict"]["sentence"].as_str().unwrap();
    assert_eq!(found["verdict"]["advice"], "mend-labels", "{said}");
    assert!(said.starts_with("Correct the labels first: FINAL looks like a majority vote"), "{said}");
    assert!(!said.contains("until annotators agreed"), "{said}");
    let next = found["next_step"]["commands"][0].as_str().unwrap();
    assert!(next.contains("--without FINAL") && !next.contains("--first-labels"), "{next}");
    let shown = line(folder.path(), command).ok().words();
    assert!(shown.contains("looks like a majority vote of the others"), "{shown}");
    let cured = line(folder.path(), &format!("{command} --without FINAL --json")).ok().json();
    assert!(!cured["verdict"]["sentence"].as_str().unwrap().contains("majority vote"), "{cured}");
}

#[test]
fn few_labels_to_leave_out_are_part_of_the_verdict() {
    let folder = TempDir::new().unwrap();
    // On two items of five the model is sure and annotators are divided, so that routing pays. On the others the model is unsure and right.
    write_named_by(folder.path(), 900, false, |item, u| {
        let part = (2.0 * u).fract();
        let unsure = 0.52 + 0.1 * part;
        let [predicted, p] = if item % 5 < 3 { [unsure; 2] } else { [0.85 + 0.1 * part, 0.5] };
        if u < 0.5 { [predicted, p] } else { [1.0 - predicted, 1.0 - p] }
    });
    // On a quarter of the items a seventh annotator stands in for one of the six, and always says no.
    let labels = fs::read_to_string(folder.path().join("labels.csv")).unwrap();
    let stands_in =
        |row: &&str| row.ends_with(",fay") && row.split(',').next().unwrap().parse::<usize>().unwrap() < 225;
    let (given, all) = (labels.lines().skip(1).filter(stands_in).count(), labels.lines().count() - 1);
    let replaced = |row: &str| match stands_in(&row) {
        true => format!("{},no,gus\n", row.split(',').next().unwrap()),
        false => format!("{row}\n"),
    };
    fs::write(folder.path().join("labels.csv"), labels.lines().map(replaced).collect::<String>()).unwrap();
    let command = "diagnose items.csv --annotations labels.csv --partition confidence:5 --json --route 0.15";
    let found = line(folder.path(), command).ok().json();
    assert_eq!(found["flagged_annotators"]["annotators"], serde_json::json!(["gus"]), "{found}");
    let (share, verdict) = (found["flagged_annotators"]["label_share"].as_f64().unwrap(), &found["verdict"]);
    assert!((share - given as f64 / all as f64).abs() < 1e-9, "{share}");
    let said = format!("{} {}", verdict["sentence"], verdict["remarks"]);
    assert!(said.contains(&format!("gus (says no on all {given} labels)")), "{said}");
    // Codes are for programs: words have none.
    assert!(!said.contains("class-no-high"), "{said}");
    assert_eq!(verdict["advice"], "use-it", "{said}");
    let sentence = verdict["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("Use it, after leaving out gus (--without gus): at these prices it saves"), "{said}");
    // Nothing is estimated again without the labels to leave out.
    assert!(sentence.ends_with("This was measured with their labels: run diagnose again without them."), "{said}");
    assert!(found["next_step"]["commands"][0].as_str().unwrap().contains("--without gus"), "{found}");
}

#[test]
fn unused_dates_are_pointed_out_once() {
    let folder = TempDir::new().unwrap();
    write_copied(folder.path(), 300, &["ivo", "ann", "bob", "cy", "jun"], true);
    let command = "diagnose items.csv --annotations labels.csv --keep-label latest --partition confidence:3";
    let printed = line(folder.path(), command).ok().stderr.replace('\n', " ");
    assert_eq!(printed.matches("column created_at of dates").count(), 1, "{printed}");
}

#[test]
fn annotators_with_names_are_tested_and_may_be_left_out() {
    let folder = TempDir::new().unwrap();
    write_named(folder.path(), 900, true);
    let votes = "items.csv --annotations labels.csv";
    let found = line(folder.path(), &format!("diagnose {votes} --json --route 0.05")).ok().json();
    let annotators = found["annotators"].as_array().unwrap();
    assert_eq!(annotators.len(), 6);
    let dan = &annotators[3];
    assert_eq!((&dan["annotator"], &dan["flags"][0]), (&"dan".into(), &"follows-high".into()), "{dan}");
    assert!(dan["follows"].as_f64().unwrap() > 0.2 && dan["votes"].as_u64().unwrap() > 400, "{dan}");
    assert_eq!(found["flagged_annotators"]["annotators"], serde_json::json!(["dan"]));
    let displayed = line(folder.path(), &format!("diagnose {votes} --route 0.05")).ok().stdout.replace("\n  ", " ");
    for part in
        ["1 of 6 annotators differ", "follows the label before", "dan (follows the label before) does not label"]
    {
        assert!(displayed.contains(part), "{part} in {displayed}");
    }
    let without =
        line(folder.path(), &format!("calibrate {votes} --without dan -o b.st --partition confidence:3 --json")).ok();
    assert_eq!((&without.json()["labels"]["min"], &without.json()["labels"]["max"]), (&3.into(), &4.into()));
    let cured = line(folder.path(), &format!("diagnose {votes} --without dan --json")).ok().json();
    assert_eq!(cured["annotators"].as_array().unwrap().len(), 5, "{cured}");
    assert!(cured["flagged_annotators"].is_null(), "{}", cured["flagged_annotators"]);
    line(folder.path(), &format!("evaluate b.st {votes} --without dan --route 0.05")).ok();
    for (arguments, part) in [
        (format!("calibrate {votes} --without pete -o c.st"), "no annotator is called \"pete\""),
        ("calibrate items.csv --without dan -o c.st".to_owned(), "--annotations"),
    ] {
        let refused = line(folder.path(), &arguments);
        assert!(refused.code == 2 && refused.stderr.contains(part), "{refused:?}");
    }
    // Without names, the effect of copied labels is printed instead.
    let counts = fs::read_to_string(folder.path().join("labels.csv")).unwrap();
    let unnamed: String = counts.lines().map(|line| format!("{}\n", line.rsplit_once(',').unwrap().0)).collect();
    fs::write(folder.path().join("unnamed.csv"), unnamed).unwrap();
    let displayed = line(folder.path(), "diagnose items.csv --annotations unnamed.csv --route 0.05").ok().stdout;
    let displayed = displayed.replace("\n  ", " ");
    for part in ["Counts cannot show it", "If 20.0 % of the unanimous rows were copies, the irreducible loss would be"]
    {
        assert!(displayed.contains(part), "{part} in {displayed}");
    }
}

/// The commands that come next read the table as `diagnose` did, and run as they are printed.
#[test]
fn next_commands_read_the_same_rows() {
    let folder = TempDir::new().unwrap();
    write_named(folder.path(), 1000, true);
    let items = fs::read_to_string(folder.path().join("items.csv")).unwrap();
    let part = |row: usize| if row == 0 { "part".to_owned() } else { (row % 10 / 9).to_string() };
    let lines: Vec<String> = items.lines().enumerate().map(|(row, line)| format!("{line},{}", part(row))).collect();
    fs::write(folder.path().join("items.csv"), lines.join("\n")).unwrap();
    let diagnose = "diagnose items.csv --where part=0 --annotations labels.csv --route 0.05 --json";
    let next = |arguments: &str| -> Vec<String> {
        let found = line(folder.path(), arguments).ok().json();
        let commands = found["next_step"]["commands"].as_array().unwrap_or_else(|| panic!("{arguments}: {found}"));
        let typed =
            |command: &serde_json::Value| command.as_str().unwrap().strip_prefix("pointsman ").unwrap().to_owned();
        commands.iter().map(typed).collect()
    };
    let again = next(diagnose);
    assert_eq!(again, ["diagnose items.csv --where part=0 --annotations labels.csv --without dan --route 0.05"]);
    line(folder.path(), &again[0]).ok();

    for name in ["messages.csv", "labels.csv"] {
        fs::copy(repository().join("examples/support-intents").join(name), folder.path().join(name)).unwrap();
    }
    let reading = "messages.csv --where split=calibration --annotations labels.csv --first-labels 3";
    let commands = next(&format!("diagnose {reading} --route 0.15 --abstain 0.6 --json"));
    assert!(commands[0].starts_with(&format!("calibrate {reading} -")), "{commands:?}");
    commands.iter().for_each(|command| drop(line(folder.path(), command).ok()));
}

/// Columns of votes in another order than those of probabilities, by name.
#[test]
fn wrongly_matched_classes_are_reported() {
    let folder = TempDir::new().unwrap();
    let mut rows = "prob_a,prob_b,prob_c,votes_b,votes_c,votes_a\n".to_owned();
    for row in 0..120 {
        let mut votes = [0, 0, 0];
        votes[row % 3] = if row % 5 == 0 { 2 } else { 3 };
        votes[(row + 1) % 3] += u8::from(row % 5 == 0);
        let mut probs = ["0.2"; 3];
        probs[row % 3] = "0.6";
        writeln!(rows, "{},{},{},{}", probs.join(","), votes[0], votes[1], votes[2]).unwrap();
    }
    fs::write(folder.path().join("table.csv"), rows).unwrap();
    let warned = line(folder.path(), "calibrate table.csv -o a.st --partition confidence:1").ok().stderr;
    for part in ["seem to be matched wrongly", "votes for b fit a", "votes for c fit b", "votes for a fit c"] {
        assert!(warned.contains(part), "{part} in {warned}");
    }
    fs::copy(folder.path().join("a.st"), folder.path().join("b.st")).unwrap();
    for command in ["evaluate a.st", "compare a.st b.st"] {
        let run = line(folder.path(), &format!("{command} table.csv --route 0.05")).ok();
        assert!(run.stderr.contains("seem to be matched wrongly"), "{command}: {}", run.stderr);
    }
    let found = line(folder.path(), "diagnose table.csv --json").ok().json();
    assert_eq!(found["verdict"]["advice"], "mend-labels");
    assert_eq!(found["mismatch"]["matches"][0], serde_json::json!({"class": "a", "votes": "b"}));
}

#[test]
fn invalid_first_labels_are_refused() {
    let folder = workshop();
    for (arguments, parts) in [
        ("calibrate calibration.csv -o x.st --first-labels 0", vec!["--first-labels", "at least 1"]),
        ("diagnose calibration.csv --first-labels two", vec!["--first-labels", "whole number"]),
        ("diagnose calibration.csv --first-labels 2", vec!["calibration.csv", "counts have no order", "annotations"]),
        ("evaluate router.safetensors heldout.csv --first-labels 2", vec!["heldout.csv", "counts have no order"]),
        ("diagnose calibration.csv --partition features:x_size=3", vec!["x_size", "x_length"]),
        ("diagnose missing.csv", vec!["missing.csv"]),
        ("diagnose calibration.csv --route 0.1 --budget 500", vec!["--budget 500", "plan --max-labels N"]),
    ] {
        let run = line(folder.path(), arguments);
        assert_eq!(run.code, 2, "{arguments}: {run:?}");
        for part in parts {
            assert!(run.stderr.contains(part), "{arguments}: {part} in {}", run.stderr);
        }
    }
}

/// Without prices: people's disagreement is most of what ChaosNLI's model gets wrong, and next to none of it on CIFAR-10H.
#[test]
fn verdicts_on_real_data_are_stable() {
    let folder = TempDir::new().unwrap();
    for (file, rows, advice) in [("chaosnli.npz", "", "use-it"), ("cifar10h.npz", " --where split=0", "no-need")] {
        let Some(path) = real_data(file) else { continue };
        let found =
            line(folder.path(), &format!("diagnose {}{rows} --partition pooled --json", path.display())).ok().json();
        println!("{file}: {}", found["verdict"]["sentence"]);
        assert_eq!(found["verdict"]["advice"], advice, "{file}: {}", found["verdict"]);
        assert!(
            found["stopping"].is_null() || found["stopping"]["p_value"].as_f64().unwrap() > 1e-3,
            "{}",
            found["stopping"]
        );
    }
}

/// All annotators are shown, and what the tests could have found is said.
#[test]
fn annotators_without_flags_are_shown_with_their_errors() {
    let (folder, _) = crate::second_round::first_round();
    let path = folder.path();
    let diagnose = "diagnose items.csv --annotations labels.csv --route 0.1 --abstain 0.4";
    let found = line(path, &format!("{diagnose} --json")).ok().json();
    let annotators = found["annotators"].as_array().unwrap();
    assert_eq!(annotators.len(), 6);
    let text = line(path, diagnose).ok().words();
    for one in annotators {
        let error = one["agreement_standard_error"].as_f64().unwrap();
        assert!(error > 0.0 && error < 0.2, "{one}");
        assert!(one["smallest_shown_difference"].as_f64().is_none_or(|shown| shown > 2.0 * error), "{one}");
        assert!(text.contains(&format!("{error:.3}")) && text.contains(one["annotator"].as_str().unwrap()), "{text}");
    }
    assert!(text.contains("could have shown a difference in agreement of about"), "{text}");
    let commands = found["next_step"]["commands"].as_array().unwrap();
    let has_flag = |wanted: bool| {
        let learns = commands.iter().filter(|command| command.as_str().unwrap().starts_with("pointsman calibrate"));
        learns.into_iter().any(|command| command.as_str().unwrap().contains("--certifiable") == wanted)
    };
    assert!(has_flag(true), "{commands:?}");
    assert!(has_flag(false) || found["verdict"]["advice"] == "more-data", "{commands:?}");
}
