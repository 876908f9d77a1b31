//! Oracles: the experts and models that queries can be routed to, and the expected loss of their answers.

mod lipschitz;
mod panel;
mod parse;
mod polynomial;
mod urn;

use crate::error::{Result, TaskError};
use crate::loss::{Loss, Shape};
pub(crate) use panel::{Costing, Panel};
pub(crate) use urn::Urn;

/// The largest number of experts on a panel.
pub const MAX_EXPERTS: u32 = 1000;

/// The least and the greatest smoothing of a panel's counts.
const SMOOTHING: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

/// An expert, panel or model that answers queries at a price.
///
/// | text | expected loss |
/// |---|---|
/// | `bayes` | the irreducible loss: it knows the true label distribution |
/// | `panel:m=3,aggregate=mean` | the loss of the aggregated labels of m experts, each drawn from the true distribution |
/// | `measured` | the loss on the calibration rows of the oracle with the route's name |
///
/// ```
/// use pointsman::{Loss, Oracle};
/// use pointsman::oracle::Aggregate;
/// let jury: Oracle = "panel:m=3,aggregate=mean".parse()?;
/// assert_eq!(jury, Oracle::panel(3, Aggregate::Mean)?);
/// // Three experts lose a third more Brier points than an oracle that knows the distribution.
/// assert!((jury.cost(&Loss::brier(), &[0.5, 0.5]).unwrap() - 0.5 * (1.0 + 1.0 / 3.0)).abs() < 1e-15);
/// # Ok::<(), pointsman::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Oracle {
    /// Knows the true label distribution: its loss is the irreducible loss.
    Bayes,
    /// Experts who label independently, each drawing from the true distribution; made by [`Oracle::panel`].
    #[non_exhaustive]
    Panel {
        /// The number of experts.
        experts: u32,
        /// How their labels become one prediction.
        aggregate: Aggregate,
    },
    /// An oracle whose predictions are in the calibration table under the route's name. Nothing is assumed about it.
    Measured,
}

/// How a panel's labels become one prediction.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Aggregate {
    /// The shares of the labels.
    Mean,
    /// Probability one on the most frequent class; of several, one at random.
    Plurality,
    /// The shares after adding this many labels of every class.
    Laplace(f64),
}

impl Oracle {
    /// The oracle that knows the true label distribution.
    #[must_use]
    pub fn bayes() -> Self {
        Self::Bayes
    }

    /// A panel of `experts` experts.
    ///
    /// # Errors
    /// If there are none or more than [`MAX_EXPERTS`], or the smoothing is not from 10⁻⁶ to 10⁶.
    pub fn panel(experts: u32, aggregate: Aggregate) -> Result<Self> {
        if !(1..=MAX_EXPERTS).contains(&experts) {
            let wanted = format!("experts; give from 1 to {MAX_EXPERTS}");
            return Err(TaskError::OutOfRange { what: "panel".to_owned(), value: experts.into(), wanted }.into());
        }
        match aggregate {
            Aggregate::Laplace(smoothing) if !SMOOTHING.contains(&smoothing) => {
                let wanted = "is out of range; give a number from 1e-6 to 1e6, often 1 or 0.5".to_owned();
                Err(TaskError::OutOfRange { what: "smoothing".to_owned(), value: smoothing, wanted }.into())
            }
            _ => Ok(Self::Panel { experts, aggregate }),
        }
    }

    /// The oracle whose predictions are in the calibration table.
    #[must_use]
    pub fn measured() -> Self {
        Self::Measured
    }

    /// Checks that a loss is defined for the oracle's answers.
    ///
    /// # Errors
    /// If some answers give probability zero to a label and the loss is logarithmic.
    pub fn check_loss(&self, loss: &Loss) -> Result<()> {
        match self {
            Self::Panel { aggregate: Aggregate::Mean | Aggregate::Plurality, .. }
                if matches!(loss.shape(), Shape::Log) =>
            {
                Err(TaskError::UnboundedLoss { oracle: self.to_string(), loss: loss.to_string() }.into())
            }
            _ => Ok(()),
        }
    }

    /// The expected loss c(L, p) if labels follow `truth`; `None` for a measured oracle, whose answers do not depend on the truth
    /// alone.
    ///
    /// # Panics
    /// If the loss is a matrix for another number of classes.
    #[must_use]
    pub fn cost(&self, loss: &Loss, truth: &[f64]) -> Option<f64> {
        match self {
            Self::Bayes => Some(loss.entropy(truth)),
            Self::Panel { .. } => {
                Panel::from_oracle(self).map(|panel| panel.cost(loss, &Urn::from_distribution(truth)))
            }
            Self::Measured => None,
        }
    }

    /// The Lipschitz constant γ of the expected loss in the truth, in the ℓ1 norm: |c(p) − c(p′)| ≤ γ‖p − p′‖₁.
    ///
    /// For a panel of m experts it is at most (m + 1)B/2; the bound is tighter with two classes, with the Brier loss and with the
    /// cross-entropy.
    #[must_use]
    pub fn lipschitz(&self, loss: &Loss, classes: usize) -> f64 {
        match Panel::from_oracle(self) {
            Some(panel) => lipschitz::panel_constant(panel, loss, classes),
            None => loss.lipschitz(),
        }
    }
}
