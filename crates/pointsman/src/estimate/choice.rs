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

use super::Estimator;
use super::moments::Moments;
use super::npmle;
use crate::loss::{Loss, Shape};

impl Estimator {
    /// The single estimator used for a mixture with these moments.
    pub(super) fn in_mixture(self, loss: &Loss, moments: &Moments) -> Self {
        if self != Self::Auto {
            return self;
        }
        match loss.shape() {
            Shape::Brier => Self::Shrink,
            Shape::Log => Self::Npmle,
            _ if moments.mean.len() <= npmle::MAX_CLASSES => Self::Npmle,
            _ => Self::Shrink,
        }
    }

    /// The single estimator used in the leaves of a forest: they are too small, and too many, for any other than `shrink`.
    pub(crate) fn in_leaves(self) -> Self {
        if self == Self::Auto { Self::Shrink } else { self }
    }
}
