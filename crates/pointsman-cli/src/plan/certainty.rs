//! What certain actions cost, in words.

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
    let labels = labels_in_words(found, unit, args, buying);
    [Some(labels), coarser].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The labels that make cells certain: of all these cells, and of the one that is the largest share of the traffic per label.
fn labels_in_words(found: &Plan, unit: &str, args: &PlanArgs, buying: Buying<'_>) -> String {
    let share_per_label = |(plan, offer): &(&CellPlan, Offer)| plan.share / offer.labels.max(1) as f64;
    let cells = buying.determining(found);
    let best = cells.iter().reduce(|a, b| if share_per_label(b) > share_per_label(a) { b } else { a });
    let Some(((best, its_labels), all)) = best.zip(buying.certainty(found)) else {
        let kind = args.only.map_or(String::new(), |only| format!(" of --only {}", only.name()));
        return format!("No reasonable number of labels{kind} makes a cell certain.");
    };
    let which_cost = |labels: usize| match cost_in_words(labels, args, unit) {
        cost if cost.is_empty() => cost,
        cost => format!(", which{cost}"),
    };
    let text = format!(
        "To make actions certain: about {} for {} ({} of traffic){},",
        counted(all.labels, "label", "labels"),
        cells_in_words(&all.cells),
        percent(all.share),
        which_cost(all.labels)
    );
    if all.cells.len() == 1 {
        return text + " in three of four cases.";
    }
    format!(
        "{text} each in three of four cases. Cell {} has the most traffic per label: {} of it for about {}{}.",
        best.cell,
        percent(best.share),
        counted(its_labels.labels, "label", "labels"),
        which_cost(its_labels.labels)
    )
}
