//! Which estimator `auto` stands for.
//!
//! | loss | classes | estimator |
//! |---|---|---|
//! | Brier | any | `shrink`: exact |
//! | cross-entropy | any | `npmle` stopped early, class by class |
//! | any other | 2, 3 | `npmle` stopped early |
//! | any other | 4 or more | `shrink` |
//!
//! By simulation over eleven laws of p* (`pointsman reproduce numbers:estimators`), with 2 to 50 labels per item and 50 to 2,000 rows per
//! cell. Labels and rows do not enter here because they say when `npmle` stops: the fewer there are, the nearer it stays to the
//! fitted Dirichlet law that it starts from.

use super::moments::Moments;
use crate::loss::{Loss, Shape};
use crate::task::{Estimator, MAX_NPMLE_CLASSES};

/// The single estimator used for a mixture with these moments.
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

/// The single estimator used in the leaves of a forest: they are too small, and too many, for any other than `shrink`.
pub(crate) fn estimator_for_leaves(estimator: Estimator) -> Estimator {
    if estimator == Estimator::Auto { Estimator::Shrink } else { estimator }
}
