//! Uniform bounds on the error of a cell's losses, over *all* proper losses at once.
//!
//! They are much wider than bounds for declared losses, so they are given only where they are informative: for two classes, or for cells
//! of at least a thousand rows.

use super::betting::Sample;
use super::items::Items;
use crate::error::{Result, RouterError, TableError};
use crate::partition::CellId;
use crate::router::Router;
use crate::wasserstein::{Cloud, w1};

/// The smallest number of rows with more than two classes.
const MIN_ROWS: usize = 1000;

/// The largest number of rows per half; the transport problem is exact up to twice as many points.
const MAX_ROWS_PER_HALF: usize = 500;

/// Bounds on the error of a cell's sample means, in units of the loss's bound B, for all proper losses at once.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct AllLosses {
    /// The largest distance between the total loss and the mean of Σ ȳ_c ℓ(c, f); `None` if predictions vary within the cell.
    pub total: Option<f64>,
    /// How far the irreducible loss can be below the mean of G(ȳ).
    pub irreducible_below: f64,
    /// How far the irreducible loss can be above the mean of G(ȳ), which is biased downwards by few labels.
    pub irreducible_above: f64,
}

impl Router {
    /// Bounds on the error of a cell's losses for every proper loss, valid for all cells simultaneously.
    ///
    /// With two classes, the distribution function of ȳ is within sqrt(ln(4K/δ)/(2n)) everywhere, and so are all means in units of B. With
    /// more classes, the error is half of W1 between the stored ȳ and their law, which is bounded by W1 between two halves. In both cases
    /// G(ȳ) is too small by at most ½·sqrt(C·U/k), where U is the irreducible Brier loss.
    ///
    /// # Errors
    /// If the confidence is not between 0 and 1, there is no such cell, or the bound would not be informative: with more than two classes
    /// and fewer than 1,000 rows, with weights, or without rows.
    pub fn all_losses(&self, cell: CellId, confidence: f64) -> Result<AllLosses> {
        super::check(self, confidence)?;
        self.check_all_losses(cell)?;
        let items = Items::from_cell(self, cell, 1.0, &[]);
        let (n, classes) = (items.len(), items.classes);
        if n == 0 {
            return refuse(cell, "its only rows gave its edges");
        }
        // Half of δ is for the sampling error, half for U.
        let share = (1.0 - confidence) / self.cells().count() as f64;
        let error = if classes == 2 {
            ((4.0 / share).ln() / (2.0 * n as f64)).sqrt()
        } else {
            bound_by_halves(&items, cell, share / 4.0)? / 2.0
        };
        // One label gives no information about U.
        let noise: Vec<f64> = items.iter().map(|(_, votes)| votes.disagreement().unwrap_or(1.0)).collect();
        let noise = Sample { values: &noise, range: [0.0, 1.0], weights: None }.upper(share / 2.0);
        let inverse = items.iter().map(|(_, votes)| 1.0 / votes.k() as f64).fold(0.0, f64::max);
        let constant = self.is_recalibrated() || {
            let mut predictions = items.iter().map(|(prediction, _)| prediction);
            let first = predictions.next();
            predictions.all(|prediction| Some(prediction) == first)
        };
        Ok(AllLosses {
            total: constant.then_some(error),
            irreducible_below: error,
            irreducible_above: error + 0.5 * (classes as f64 * noise * inverse).sqrt(),
        })
    }
}

impl Router {
    /// Refuses cells in which the bounds would not be informative. Does not depend on labels.
    pub(super) fn check_all_losses(&self, cell: CellId) -> Result<()> {
        if cell.index() >= self.cells().count() {
            return Err(RouterError::NoCell { cell: cell.index(), cells: self.cells().count() }.into());
        }
        let (n, classes) = (self.mixture(cell).len(), self.classes().len());
        if n == 0 {
            return refuse(cell, "it has no rows");
        }
        if self.rows().has_weights() {
            return refuse(cell, "rows carry weights");
        }
        if classes > 2 && n < MIN_ROWS {
            let reason = format!("{classes} classes need {MIN_ROWS} rows, it has {n}: declare the losses instead");
            return refuse(cell, &reason);
        }
        Ok(())
    }
}

fn refuse<T>(cell: CellId, reason: &str) -> Result<T> {
    Err(TableError::NoBound { cell: cell.index(), reason: reason.to_owned() }.into())
}

/// An upper bound on W1 between the stored snapshot means and their law. The expected distance between two halves is at least that of one
/// half from the law, and both concentrate around their means; each of the two concentration bounds fails with probability `alpha`.
fn bound_by_halves(items: &Items, cell: CellId, alpha: f64) -> Result<f64> {
    let (n, classes) = (items.len(), items.classes);
    let half = MAX_ROWS_PER_HALF.min(n / 2);
    let mut points = vec![0.0; 2 * half * classes];
    for ((_, votes), point) in items.iter().zip(points.chunks_exact_mut(classes)) {
        votes.mean_into(point);
    }
    let (a, b) = points.split_at(half * classes);
    let apart = w1(&Cloud::uniform(classes, a)?, &Cloud::uniform(classes, b)?, u64::from(cell.0))?.distance;
    let doubt = -alpha.ln();
    Ok(apart + (8.0 * doubt / (2 * half) as f64).sqrt() + (2.0 * doubt / n as f64).sqrt())
}
