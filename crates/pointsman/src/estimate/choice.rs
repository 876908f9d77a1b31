//! The choice of the estimator `auto`.
//!
//! | loss | classes | estimator |
//! |---|---|---|
//! | Brier | any | `shrink`: exact |
//! | cross-entropy | any | `npmle` stopped early, class by class |
//! | any other | 2, 3 | `npmle` stopped early |
//! | any other | 4 or more | `shrink` |
//!
//! Chosen by simulation over eleven laws of p* (`pointsman reproduce numbers:estimators`), with 2 to 50 labels per item and 50 to 2,000
//! rows per cell. The numbers of labels and rows do not enter here because they determine when `npmle` stops: with few of them it stays
//! near the fitted Dirichlet law from which it starts.

use super::moments::Moments;
use crate::loss::{Loss, Shape};
use crate::task::{Estimator, MAX_NPMLE_CLASSES};

/// The estimator for a mixture with these moments.
pub(super) fn estimator_for_mixture(estimator: Estimator, loss: &Loss, moments: &Moments) -> Estimator {
    if estimator != Estimator::Auto {
        return estimator;
    }
    match loss.shape() {
        Shape::Brier => Estimator::Shrink,
        Shape::Log => Estimator::Npmle,
        _ if moments.mean.len() <= MAX_NPMLE_CLASSES => Estimator::Npmle,
        _ => Estimator::Shrink,
    }
}

/// The estimator for the leaves of a forest. They are too small and too many for `auto` to use any other than `shrink`.
pub(crate) fn estimator_for_leaves(estimator: Estimator) -> Estimator {
    if estimator == Estimator::Auto { Estimator::Shrink } else { estimator }
}
