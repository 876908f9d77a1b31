//! Sentences about a diagnosis, for the terminal and the page.

use pointsman::Diagnosis;
use pointsman::diagnose::{Annotator, Enough, WeakModel};
use pointsman::number::{count, counted, fixed, percent};
use pointsman::partition::SPARSE_BELOW_ROWS;

/// What the best confidence threshold is.
pub const CONFIDENCE_THRESHOLD: &str = "The best confidence threshold is on the entropy of the prediction, which is what the prediction \
                                        would lose if it were true; it is fitted on the same rows as the router.";

/// Whether the weak model is calibrated, in a few words.
#[must_use]
pub fn calibration_answer(model: &WeakModel) -> String {
    match model.miscalibration() {
        None => "Yes, as far as these rows show".to_owned(),
        Some(found) => format!("No, it is {found}"),
    }
}

/// How many annotators differ from the others, in a sentence.
#[must_use]
pub fn annotators_answer(diagnosis: &Diagnosis) -> String {
    let all = diagnosis.annotators.len();
    match diagnosis.annotators.iter().filter(|one| !one.flags.is_empty()).count() {
        0 => format!(
            "No test finds that any of {} differs from the others.{}",
            counted(all, "annotator", "annotators"),
            power_of_tests(&diagnosis.annotators)
        ),
        flagged => format!(
            "{} of {} {} by more than chance explains if labels are independent.",
            count(flagged),
            counted(all, "annotator", "annotators"),
            if flagged == 1 { "differs" } else { "differ" }
        ),
    }
}

/// How small a difference in agreement the tests could have shown, in a sentence.
fn power_of_tests(annotators: &[Annotator]) -> String {
    let shown: Vec<f64> = annotators.iter().filter_map(|one| one.smallest_shown_difference).collect();
    let untested = match annotators.len() - shown.len() {
        0 => String::new(),
        n => format!(" For {} there are too few labels to show any.", counted(n, "annotator", "annotators")),
    };
    let [least, most] =
        [shown.iter().copied().fold(f64::INFINITY, f64::min), shown.iter().copied().fold(0.0, f64::max)];
    match [least, most].map(|difference| fixed(difference, 2)) {
        _ if shown.is_empty() => " There are too few labels to show any difference.".to_owned(),
        [least, most] if least == most => {
            format!(" These labels could have shown a difference in agreement of about {most} or more.{untested}")
        }
        [least, most] => format!(
            " These labels could have shown a difference in agreement of about {least} or more for the annotator they test best, of about \
             {most} or more for the one they test least.{untested}"
        ),
    }
}

/// What the cells of a partition are, if it has none of its own; empty for others.
#[must_use]
pub fn kind_of_cells(partition: &str) -> &'static str {
    match partition.starts_with("forest") {
        true => ", which are groups of about equally many rows with a similar estimated reducible loss",
        false => "",
    }
}

/// The sparse and empty cells, as the end of a sentence; empty if there are none.
#[must_use]
pub fn sparse_cells(enough: &Enough) -> String {
    if enough.sparse_cells + enough.empty_cells == 0 {
        return String::new();
    }
    format!(
        "; {} sparse (under {SPARSE_BELOW_ROWS} rows) with {} of the rows, {} empty",
        count(enough.sparse_cells),
        percent(enough.rows_in_sparse_cells),
        count(enough.empty_cells)
    )
}
