//! What certain actions cost, in words.

use pointsman::CellId;
use pointsman::certify::{CellPlan, CoarserCells, Offer, Plan};

use super::buying::Buying;
use super::phrases::{cells_in_words, cost_in_words};
use crate::args::PlanArgs;
use crate::render::number::{counted, percent};
use crate::words;

/// The labels that make actions certain, those with the largest share of the traffic per label, and coarser cells if few actions are certain.
pub(super) fn certainty_in_words(
    found: &Plan,
    coarser: Option<&CoarserCells>,
    unit: &str,
    args: &PlanArgs,
    buying: Buying<'_>,
) -> String {
    let coarser = coarser.map(|coarser| words::policy::coarser_cells(coarser, found.promise.as_ref(), unit));
    let labels = labels_in_words(&buying.determining(found), unit, args);
    [Some(labels), coarser].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The labels that make cells certain: of all these cells, and of the one that is the largest share of the traffic per label.
fn labels_in_words(cells: &[(&CellPlan, Offer)], unit: &str, args: &PlanArgs) -> String {
    let share_per_label = |(plan, offer): &(&CellPlan, Offer)| plan.share / offer.labels.max(1) as f64;
    let Some((best, its_labels)) =
        cells.iter().reduce(|a, b| if share_per_label(b) > share_per_label(a) { b } else { a })
    else {
        let kind = args.only.map_or(String::new(), |only| format!(" of --only {}", only.name()));
        return format!("No reasonable number of labels{kind} makes a cell certain.");
    };
    let which_cost = |labels: usize| match cost_in_words(labels, args, unit) {
        cost if cost.is_empty() => cost,
        cost => format!(", which{cost}"),
    };
    let all: Vec<CellId> = cells.iter().map(|(plan, _)| plan.cell).collect();
    let labels = cells.iter().map(|(_, offer)| offer.labels).fold(0, usize::saturating_add);
    let text = format!(
        "To make actions certain: about {} for {} ({} of traffic){},",
        counted(labels, "label", "labels"),
        cells_in_words(&all),
        percent(cells.iter().map(|(plan, _)| plan.share).sum::<f64>()),
        which_cost(labels)
    );
    if all.len() == 1 {
        return text + " in three of four cases.";
    }
    format!(
        "{text} each in three of four cases. Cell {} is the most traffic per label: {} of it for about {}{}.",
        best.cell,
        percent(best.share),
        counted(its_labels.labels, "label", "labels"),
        which_cost(its_labels.labels)
    )
}
