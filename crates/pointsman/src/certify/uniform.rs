//! How far a cell's losses can be off for *every* proper loss at once, declared or not.
//!
//! The price of not declaring a loss is high, so this is offered only where it says something: for two classes, or for
//! cells of a thousand rows.

use super::betting::Sample;
use super::items::Items;
use crate::error::{Error, Result};
use crate::partition::CellId;
use crate::router::Router;
use crate::wasserstein::{Cloud, w1};

/// Rows that more than two classes need.
const ENOUGH: usize = 1000;

/// Rows of each half whose distance is measured: the transport problem is exact up to twice as many points.
const HALF: usize = 500;

/// How far the sample means of a cell can be off, in units of the loss's bound B, for all proper losses at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AllLosses {
    /// The total loss is within so much of Σ ȳ_c ℓ(c, f), averaged; `None` if predictions vary within the cell.
    pub total: Option<f64>,
    /// The irreducible loss is at most so much below the mean of G(ȳ).
    pub irreducible_below: f64,
    /// And at most so much above it: few labels make G(ȳ) too small.
    pub irreducible_above: f64,
}

impl Router {
    /// How far a cell's losses can be off for every proper loss at once, all cells holding together.
    ///
    /// Two classes: the distribution function of ȳ is within sqrt(ln(4K/δ)/(2n)) everywhere, and so are all
    /// means, since losses bounded by B vary by B at most. More: half of W1 between the stored ȳ and their law, bounded by
    /// W1 between two halves. In both cases G(ȳ) is too small by at most ½·sqrt(C·U/k), U the Brier loss nobody can avoid.
    ///
    /// # Errors
    /// If the confidence is not between 0 and 1, there is no such cell, or the bound would say nothing: with more than two classes
    /// and fewer than 1,000 rows, with weights, or without rows.
    pub fn all_losses(&self, cell: CellId, confidence: f64) -> Result<AllLosses> {
        super::check(self, confidence)?;
        self.check_all_losses(cell)?;
        let items = Items::of(self, cell, 1.0, &[]);
        let (n, classes) = (items.len(), items.classes);
        if n == 0 {
            return refuse(cell, "its only rows gave its edges");
        }
        // Half of δ for the sampling error, half for U.
        let share = (1.0 - confidence) / self.cells().count() as f64;
        let error = if classes == 2 {
            ((4.0 / share).ln() / (2.0 * n as f64)).sqrt()
        } else {
            halves(&items, cell, share / 4.0)? / 2.0
        };
        // Nothing is known from one label.
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
    /// Refuses cells in which the bound for all losses would say nothing. Labels do not matter.
    pub(super) fn check_all_losses(&self, cell: CellId) -> Result<()> {
        if cell.index() >= self.cells().count() {
            return Err(Error::Router(format!("no cell {cell}: there are {}", self.cells().count())));
        }
        let (n, classes) = (self.mixture(cell).len(), self.classes().len());
        if n == 0 {
            return refuse(cell, "it has no rows");
        }
        if self.rows().has_weights() {
            return refuse(cell, "rows carry weights");
        }
        if classes > 2 && n < ENOUGH {
            let reason = format!("{classes} classes need {ENOUGH} rows, it has {n}: declare the losses instead");
            return refuse(cell, &reason);
        }
        Ok(())
    }
}

fn refuse<T>(cell: CellId, reason: &str) -> Result<T> {
    Err(Error::Table(format!("no bound for all losses at once in cell {cell}: {reason}")))
}

/// A bound on W1 between the stored snapshot means and their law: the mean distance of two halves is above that of
/// one of them from the law, and neither is far from its mean. Each of the two claims fails with probability `alpha`.
fn halves(items: &Items, cell: CellId, alpha: f64) -> Result<f64> {
    let (n, classes) = (items.len(), items.classes);
    let half = HALF.min(n / 2);
    let mut points = vec![0.0; 2 * half * classes];
    for ((_, votes), point) in items.iter().zip(points.chunks_exact_mut(classes)) {
        votes.mean_into(point);
    }
    let (a, b) = points.split_at(half * classes);
    let apart = w1(&Cloud::uniform(classes, a)?, &Cloud::uniform(classes, b)?, u64::from(cell.0))?.distance;
    let doubt = -alpha.ln();
    Ok(apart + (8.0 * doubt / (2 * half) as f64).sqrt() + (2.0 * doubt / n as f64).sqrt())
}
