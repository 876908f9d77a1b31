//! Phrases of which the sentences about a plan consist.

use pointsman::CellId;
use pointsman::certify::price_of_labels;

use crate::args::PlanArgs;
use crate::render::number::{count, exact, short};

/// The cost of some labels with its unit, as in " cost 112.7 Brier points (11,272 × 0.01)"; empty if their price is unknown.
pub(super) fn cost_in_words(labels: usize, args: &PlanArgs, unit: &str) -> String {
    args.label_price.map_or(String::new(), |price| {
        let product = format!("{} × {}", count(labels), exact(price));
        format!(" cost {} {unit} ({product})", short(price_of_labels(labels, price)))
    })
}

/// Cells by their numbers, in ascending order.
pub(super) fn cells_in_words(cells: &[CellId]) -> String {
    let mut cells = cells.to_vec();
    cells.sort();
    let which: Vec<String> = cells.iter().map(ToString::to_string).collect();
    format!("{} {}", if which.len() == 1 { "cell" } else { "cells" }, which.join(", "))
}
