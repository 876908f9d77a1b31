//! The page is self-contained, and safe for any class names.

use std::sync::OnceLock;

use pointsman::diagnose::diagnose;
use pointsman::diagnose::diagnose_annotated;
use pointsman::evaluate::{ranking_name, rule_name};
use pointsman::{Diagnosis, Loss, Oracle, Partition, Task};
use pointsman_report::{DiagnosisReport, FIGURES, NextStep, diagnosis_html, html};
use serde_json::Value;

use crate::world::{HOSTILE, brier, hostile, report_of, table, with_names};

fn data(page: &str) -> &str {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    rest.split_once("</script>").unwrap().0
}

/// On a page nobody scrolls sideways for the end of a command.
#[test]
fn commands_and_reasons_break_into_lines() {
    let css = include_str!("../../src/page.css");
    let rule = |selector: &str| css.lines().find(|line| line.starts_with(selector)).unwrap_or_default();
    assert!(rule("pre {").contains("white-space: pre-wrap; overflow-wrap: anywhere"), "{}", rule("pre {"));
    assert!(rule("td.text").contains("white-space: normal"), "{}", rule("td.text"));
}

#[test]
fn page_is_self_contained() {
    let page = html(&report_of(&["no", "yes"], 5, &brier())).unwrap();
    let links: Vec<&str> = page.match_indices("http").map(|(i, _)| &page[i..(i + 26).min(page.len())]).collect();
    assert!(links.iter().all(|link| link.starts_with("http://www.w3.org/2000/svg")), "{links:?}");
    for outside in ["src=", "@import", "url(//", "<link", "fetch(", "XMLHttpRequest"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(!page.contains("{{"), "a place of the template was left open");
    for words in [
        "<h1 id=\"headline\" aria-live=\"polite\">Pointsman ",
        "the best confidence threshold",
        " % predicted, ",
        "orrected cost per query ",
    ] {
        assert!(page.contains(words), "{words:?} is there without scripts too");
    }
}

#[test]
fn embedded_data_parses() {
    let report = report_of(&["cat", "dog", "owl"], 5, &brier());
    let parsed: Value = serde_json::from_str(data(&html(&report).unwrap())).unwrap();
    assert_eq!(parsed["classes"], serde_json::json!(["cat", "dog", "owl"]));
    assert_eq!(parsed["losses"].as_array().unwrap().len(), 5);
    let (a, b) = (parsed["mean_cost"]["router"].as_f64().unwrap(), report.evaluation.mean_cost.get("router").unwrap());
    assert!((a - b).abs() < 1e-5 * b);
}

#[test]
fn hostile_names_are_escaped() {
    let names = hostile();
    let report = report_of(&names.iter().map(String::as_str).collect::<Vec<_>>(), 5, &brier());
    let page = html(&report).unwrap();
    assert_eq!(page.matches("<script").count(), 2, "the data and the program, nothing else");
    assert_eq!(page.matches("</script").count(), 2);
    assert!(!page.contains("<b>") && !page.contains('\u{2028}'));
    let parsed: Value = serde_json::from_str(data(&page)).unwrap();
    assert_eq!(parsed["classes"][0], HOSTILE[0]);
    assert_eq!(parsed["classes"][1], HOSTILE[1]);
    assert_eq!(parsed["classes"][2].as_str().unwrap().len(), HOSTILE[2].len() * 300);
}

#[test]
fn diagnosis_page_is_self_contained_and_escaped() {
    let names = hostile();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (classes, k) in [(&["no", "yes"][..], 5), (&["no", "yes"], 1), (&names, 5)] {
        let diagnosis = diagnose(&table(classes, 300, k, 1), &brier(), &Partition::top_class(3), || ()).unwrap();
        let sentence = diagnosis.verdict.sentence.clone();
        let next_step = NextStep { remark: HOSTILE[1].to_owned(), commands: vec![HOSTILE[0].to_owned()] };
        let report = DiagnosisReport::new(diagnosis, vec![HOSTILE[0].to_owned()], Some(next_step));
        let page = diagnosis_html(&report);
        for outside in ["<script", "http", "src=", "@import", "url(", "<link", "<b>", "NaN"] {
            assert!(!page.contains(outside), "{outside}");
        }
        let places = page.matches("{{").count();
        assert_eq!(places, HOSTILE[1].matches("{{").count(), "a place of the template was left open");
        let heading = page.split("<h1 id=\"verdict\">").nth(1).unwrap();
        assert!(heading.starts_with(sentence.split(['&', '<', '>', '"', '\'']).next().unwrap()), "{sentence}");
    }
}

/// The page and the figures take every name from the core crate.
#[test]
fn names_match_the_core() {
    let report = report_of(&["no", "yes"], 5, &brier());
    let parsed: Value = serde_json::from_str(data(&html(&report).unwrap())).unwrap();
    let names = &parsed["names"];
    for (key, name) in names["rules"].as_object().unwrap() {
        assert_eq!(name.as_str(), Some(rule_name(key).as_str()), "{key}");
    }
    for (key, _) in report.evaluation.curves.iter() {
        assert_eq!(names["rankings"][key], ranking_name(key), "{key}");
    }
    let curves = FIGURES.iter().find(|figure| figure.name == "curves").unwrap();
    let curves = (curves.draw)(&report).unwrap().svg();
    assert!(report.evaluation.curves.iter().all(|(key, _)| curves.contains(&ranking_name(key))), "{curves}");
    let saving = report.evaluation.savings.as_ref().unwrap().get("best-threshold").unwrap().estimate;
    let router = report.evaluation.corrected_cost.as_ref().unwrap().get("router").unwrap();
    assert!((parsed["best_threshold_cost"].as_f64().unwrap() - router - saving).abs() < 1e-6);
}

/// A cost matrix is too long a name for a menu.
#[test]
fn cost_matrix_has_a_short_name() {
    let acts = ["refund desk", "second line of support", "nobody at all"];
    let cost = vec![vec![0.0, 3.0], vec![1.0, 0.0], vec![2.0, 2.0]];
    let task = Task::new(Loss::matrix(acts, cost).unwrap()).abstain(0.3).unwrap();
    let report = report_of(&["no", "yes"], 5, &task);
    let page = html(&report).unwrap();
    let parsed: Value = serde_json::from_str(data(&page)).unwrap();
    assert_eq!(parsed["names"]["losses"][0], "cost matrix");
    assert!(page.contains("second line of support") && report.task_line().starts_with("Loss cost matrix in "));
}

#[test]
fn page_names_the_actions_of_the_task_and_perfect_oracles() {
    let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05).unwrap();
    let task = task.route("it's dear", Oracle::bayes(), 10.0).unwrap();
    let report = report_of(&["no", "yes"], 5, &task);
    let shares = report.shares_line();
    assert!(shares.ends_with("routed to expert, 0.0 % routed to it's dear") && !shares.contains("abstain"), "{shares}");
    let remark = "expert, it&#39;s dear are taken to know the label distribution; for one annotator write --route expert=0.05,panel:m=1.";
    assert!(html(&report).unwrap().contains(remark));
    let measured = Task::new(Loss::brier()).route("gpt", Oracle::measured(), 0.01).unwrap();
    assert_eq!(report_of(&["no", "yes"], 5, &measured).perfect_oracles, None);
}

/// A diagnosis shared by the tests, since it is slow.
fn diagnosis() -> Diagnosis {
    static FOUND: OnceLock<Diagnosis> = OnceLock::new();
    let found = || diagnose(&table(&["no", "yes"], 300, 5, 1), &brier(), &Partition::top_class(3), || ()).unwrap();
    FOUND.get_or_init(found).clone()
}

fn page_of(diagnosis: Diagnosis) -> String {
    diagnosis_html(&DiagnosisReport::new(diagnosis, vec!["a warning".to_owned()], None))
}

/// A verdict about another partition than the requested one names both, and the costs of both are shown.
#[test]
fn recommended_partition_has_a_row() {
    let mut found = diagnosis();
    let page = page_of(found.clone());
    assert!(page.contains("<bdi>Pointsman (top-class:3)</bdi>") && !page.contains("which is recommended"));
    let other = found.enough.partitions.iter().skip(1).find(|other| other.cost.is_some()).unwrap().clone();
    found.verdict.partition.clone_from(&other.partition);
    let page = page_of(found);
    let row = page.split(&format!("<bdi>Pointsman ({})</bdi></th>", other.partition)).nth(1).unwrap();
    let cost = pointsman::number::fixed(other.cost.unwrap(), 4);
    assert!(row.split("</td>").next().unwrap().contains(&cost), "{cost} in {row:.200}");
    assert!(page.contains("Pointsman (top-class:3) saves") && page.contains("which is recommended"));
}

/// The headline is short; the text below it names the excluded annotators with reasons in words.
#[test]
fn annotator_flags_are_shown_in_words() {
    let (table, annotations) = with_names(&table(&["no", "yes"], 300, 4, 1));
    let mut found = diagnose_annotated(&table, Some(&annotations), &brier(), &Partition::top_class(3), || ()).unwrap();
    // Whether an annotator is named in the verdict or in a remark depends on the effect of their labels.
    let named = |one: &pointsman::diagnose::Annotator| format!("{} ({})", one.annotator, one.flags_in_words());
    let flagged = found.annotators.iter().find(|one| one.annotator == "e").map(named).unwrap();
    let sentence =
        format!("Correct the labels first: {flagged} does not label independently. Leave them out: --without e.");
    found.verdict.sentence.clone_from(&sentence);
    let left_out = found.flagged_annotators.as_ref().unwrap().annotators.len();
    let are_noisy = found.annotators.iter().all(|one| one.flags.is_empty() || one.differs_by_noise_only());
    let page = page_of(found);
    let between = |from: &str, to: &str| page.split(from).nth(1).unwrap().split(to).next().unwrap().to_owned();
    let headline = between("<h1 id=\"verdict\">", "</h1>");
    assert!(headline.matches(". ").count() < 2 && headline.chars().count() < 200, "{headline}");
    let what = match are_noisy {
        true => "agree with the others less than expected",
        false => "do not label independently of the others or of the model",
    };
    let expected = format!("Correct the labels first: {left_out} of 5 annotators {what}.");
    assert_eq!(headline, expected);
    assert!(between("class=\"lead\">", "</p>").contains("e (says no on all "), "{sentence}");
    for flag in ["class-no-high", "class-yes-low", "agreement-low", "follows-high"] {
        assert!(!page.contains(flag), "{flag} in {headline}");
    }
}

/// The correlation supports another ranking only if the gains do not contradict it.
#[test]
fn correlation_is_reported_only_if_gains_agree() {
    let mut found = diagnosis();
    let worth = found.worth.as_mut().unwrap();
    worth.correlation = Some(0.92);
    let more = worth.gain_over_total_uncertainty.as_mut().unwrap();
    (more.estimate, more.low, more.high) = (0.01, -0.03, 0.05);
    let remark = "if it were 1, ranking by the expected loss would do as well";
    assert!(page_of(found.clone()).contains(remark));
    let more = found.worth.as_mut().unwrap().gain_over_total_uncertainty.as_mut().unwrap();
    (more.estimate, more.low, more.high) = (0.36, 0.3, 0.42);
    let page = page_of(found);
    assert!(page.contains("0.92") && !page.contains(remark));
}

/// An increase of the loss is not reported as a negative reduction.
#[test]
fn recalibration_reports_increase_or_reduction() {
    let mut found = diagnosis();
    let set = |found: &mut Diagnosis, [estimate, low, high]: [f64; 3]| {
        found.weak_model.recalibrating_saves = [Some(pointsman::diagnose::Estimate { estimate, low, high }), None];
    };
    set(&mut found, [-0.04, -0.05, -0.03]);
    let page = page_of(found.clone());
    assert!(
        page.contains("--recalibrate raises the loss by</dt><dd>0.04000")
            && page.contains("interval 0.03000 to 0.05000")
    );
    found.weak_model.recalibrated_partition = Some("pooled".into());
    assert!(page_of(found.clone()).contains("with the means of cells by</dt><dd>--partition pooled"));
    set(&mut found, [0.04, 0.03, 0.05]);
    assert!(page_of(found).contains("--recalibrate lowers the loss by</dt><dd>0.04000"));
}
