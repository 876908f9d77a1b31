//! A diagnosis as one self-contained page: the verdict first, then its evidence.

mod html;
mod labels;
mod weak_model;
mod words;
mod worth;

use pointsman::Diagnosis;
use pointsman::diagnose::Advice;
use pointsman::number::{count, counted, percent};
use serde::Serialize;

use crate::chart::number;
use crate::page::{STYLE, advice, escaped, fill};
use crate::report::NextStep;
use crate::words::prices_of;
use html::html_list;
pub use words::{CONFIDENCE_THRESHOLD, annotators_answer, calibration_answer, kind_of_cells, sparse_cells};

const TEMPLATE: &str = include_str!("../diagnosis.html");

/// Largest number of sentences in the headline.
const HEADLINE_SENTENCES: usize = 2;

/// Largest length of the name of a class, cell, partition or annotator, in characters.
const MAX_NAME_CHARS: usize = 80;

/// A diagnosis with warnings and next steps: what `pointsman diagnose --json` prints, and the data of its page.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct DiagnosisReport {
    /// The diagnosis.
    #[serde(flatten)]
    pub diagnosis: Diagnosis,
    /// Other reasons not to rely on the table, one sentence each.
    pub warnings: Vec<String>,
    /// What to do next, if anything.
    pub next_step: Option<NextStep>,
}

impl DiagnosisReport {
    /// A diagnosis, other reasons not to rely on the table, and what to do next, if anything.
    #[must_use]
    pub fn new(diagnosis: Diagnosis, warnings: Vec<String>, next_step: Option<NextStep>) -> Self {
        Self { diagnosis, warnings, next_step }
    }
}

/// The diagnosis as one self-contained page without scripts.
#[must_use]
pub fn diagnosis_html(report: &DiagnosisReport) -> String {
    let diagnosis = &report.diagnosis;
    fill(TEMPLATE, |name| match name {
        "style" => STYLE.to_owned(),
        "verdict" => escaped(&split_verdict(diagnosis)[0]),
        "details" => escaped(&split_verdict(diagnosis)[1]),
        "remarks" => html_list(diagnosis.verdict.remarks.iter().cloned()),
        "rows" => escaped(&rows_line(diagnosis)),
        "task" => escaped(&prices_of(&diagnosis.task, diagnosis.unit)),
        "limit" => escaped(&limit_line(diagnosis)),
        "advice" => advice(&report.warnings, report.next_step.as_ref()),
        "sections" => [
            worth::card(diagnosis),
            weak_model::card(diagnosis),
            labels::data_card(diagnosis),
            labels::independence_card(diagnosis),
        ]
        .concat(),
        _ => String::new(),
    })
}

/// The verdict, split into at most two sentences and the rest.
fn split_verdict(diagnosis: &Diagnosis) -> [String; 2] {
    let sentence = &diagnosis.verdict.sentence;
    let is_about_annotators = diagnosis.verdict.advice == Advice::MendLabels && sentence.contains(" --without ");
    if is_about_annotators {
        let flagged = diagnosis.flagged_annotators.as_ref().map_or(0, |found| found.annotators.len());
        let all = diagnosis.annotators.len();
        let are_noisy = diagnosis.annotators.iter().all(|one| one.flags.is_empty() || one.differs_by_noise_only());
        let what = match are_noisy {
            true => counted(all, "annotator agrees", "annotators agree") + " with the others less than expected",
            false => {
                counted(all, "annotator does", "annotators do")
                    + " not label independently of the others or of the model"
            }
        };
        let headline = format!("Correct the labels first: {} of {what}.", count(flagged));
        return [headline, sentence.strip_prefix("Correct the labels first: ").unwrap_or(sentence).to_owned()];
    }
    let ends = sentence.match_indices(". ").map(|(place, _)| place + 1);
    let mut ends = ends.filter(|&end| sentence[end..].trim_start().starts_with(char::is_uppercase));
    match ends.nth(HEADLINE_SENTENCES - 1) {
        Some(end) => [sentence[..end].to_owned(), sentence[end..].trim_start().to_owned()],
        None => [sentence.clone(), String::new()],
    }
}

fn rows_line(diagnosis: &Diagnosis) -> String {
    let used = match diagnosis.rows_used {
        used if used < diagnosis.rows => format!(", of which {} were used", count(used)),
        _ => String::new(),
    };
    let rows = counted(diagnosis.rows, "row", "rows");
    let classes = counted(diagnosis.classes.len(), "class", "classes");
    format!(
        "{rows}{used}, {classes}; halved {} times, the router of each half evaluated on the other.",
        diagnosis.splits
    )
}

fn limit_line(diagnosis: &Diagnosis) -> String {
    match (diagnosis.task.budget, diagnosis.task.target_loss) {
        (Some(share), _) => format!("Budget: at most {} of the queries are routed.", percent(share)),
        (_, Some(loss)) => format!("Target: the least routing that keeps the expected loss at {}.", number(loss, 4)),
        _ => String::new(),
    }
}
