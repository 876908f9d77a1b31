//! The page: self-contained, and safe whatever classes are called.

use pointsman::{Partition, diagnose};
use pointsman_report::{DiagnosisReport, NextStep, diagnosis_html, html};
use serde_json::Value;

use crate::world::{HOSTILE, brier, hostile, report_of, table};

fn data(page: &str) -> &str {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    rest.split_once("</script>").unwrap().0
}

#[test]
fn it_needs_nothing_from_elsewhere() {
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
fn the_data_parses_back() {
    let report = report_of(&["cat", "dog", "owl"], 5, &brier());
    let parsed: Value = serde_json::from_str(data(&html(&report).unwrap())).unwrap();
    assert_eq!(parsed["classes"], serde_json::json!(["cat", "dog", "owl"]));
    assert_eq!(parsed["losses"].as_array().unwrap().len(), 5);
    let (a, b) = (parsed["mean_cost"]["router"].as_f64().unwrap(), report.evaluation.mean_cost.get("router").unwrap());
    assert!((a - b).abs() < 1e-5 * b);
}

#[test]
fn hostile_names_stay_text() {
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

/// A diagnosis has neither scripts nor anything from elsewhere, and whatever classes and commands are called stays text.
#[test]
fn the_page_of_a_diagnosis_is_self_contained() {
    let names = hostile();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (classes, k) in [(&["no", "yes"][..], 5), (&["no", "yes"], 1), (&names, 5)] {
        let diagnosis = diagnose(&table(classes, 300, k, 1), &brier(), &Partition::top_class(3), || ()).unwrap();
        let sentence = diagnosis.verdict.sentence.clone();
        let next_step = NextStep { remark: HOSTILE[1].to_owned(), commands: vec![HOSTILE[0].to_owned()] };
        let report = DiagnosisReport { diagnosis, warnings: vec![HOSTILE[0].to_owned()], next_step: Some(next_step) };
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
