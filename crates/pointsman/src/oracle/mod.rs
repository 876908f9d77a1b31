//! Oracles: whom a query may be routed to, and what their answers cost.

mod lipschitz;
mod panel;
mod parse;
mod polynomial;
mod urn;

use crate::error::{Error, Result};
use crate::loss::{Loss, Shape};
pub(crate) use panel::{Costing, Panel};
pub(crate) use urn::Urn;

/// The largest panel: more experts than anyone asks about one query.
pub const MAX_EXPERTS: u32 = 1000;

/// The least and the greatest smoothing of a panel's counts.
const SMOOTHING: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

/// Someone who answers queries at a price, and what is known of the answers.
///
/// | text | what it loses |
/// |---|---|
/// | `bayes` | the irreducible loss: it knows the true label distribution |
/// | `panel:m=3,aggregate=mean` | what the aggregated labels of m experts lose, each drawn from the true distribution |
/// | `measured` | what the oracle of the route's name lost on the calibration rows |
///
/// ```
/// use pointsman::{Loss, Oracle};
/// use pointsman::oracle::Aggregate;
/// let jury: Oracle = "panel:m=3,aggregate=mean".parse()?;
/// assert_eq!(jury, Oracle::panel(3, Aggregate::Mean)?);
/// // Three experts lose a third more Brier points than someone who knows the distribution.
/// assert!((jury.cost(&Loss::brier(), &[0.5, 0.5]).unwrap() - 0.5 * (1.0 + 1.0 / 3.0)).abs() < 1e-15);
/// # Ok::<(), pointsman::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Oracle {
    /// Knows the true label distribution: its loss is the irreducible one.
    Bayes,
    /// Experts who label independently, each as the true distribution says; made by [`Oracle::panel`].
    #[non_exhaustive]
    Panel {
        /// How many there are.
        experts: u32,
        /// What their labels become.
        aggregate: Aggregate,
    },
    /// An oracle whose own predictions are in the calibration table, under the route's name. Nothing is assumed of it.
    Measured,
}

/// How a panel's labels become the distribution that is used as its prediction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Aggregate {
    /// The shares of the labels.
    Mean,
    /// All on the class named most often, one of them at random if several are.
    Plurality,
    /// The shares after so many labels of every class are added.
    Laplace(f64),
}

impl Oracle {
    /// The oracle that knows the true label distribution.
    #[must_use]
    pub fn bayes() -> Self {
        Self::Bayes
    }

    /// A panel of so many experts.
    ///
    /// # Errors
    /// If there are none or more than [`MAX_EXPERTS`], or the smoothing is not from 10⁻⁶ to 10⁶.
    pub fn panel(experts: u32, aggregate: Aggregate) -> Result<Self> {
        if !(1..=MAX_EXPERTS).contains(&experts) {
            return Err(Error::Task(format!("a panel of {experts} experts: give from 1 to {MAX_EXPERTS}")));
        }
        match aggregate {
            Aggregate::Laplace(smoothing) if !SMOOTHING.contains(&smoothing) => {
                Err(Error::Task(format!("smoothing {smoothing}: give a number from 1e-6 to 1e6, often 1 or 0.5")))
            }
            _ => Ok(Self::Panel { experts, aggregate }),
        }
    }

    /// The oracle whose predictions are in the calibration table.
    #[must_use]
    pub fn measured() -> Self {
        Self::Measured
    }

    /// Checks that the oracle's answers can be judged by a loss.
    ///
    /// # Errors
    /// If some of them would be certain of a wrong label and the loss is logarithmic.
    pub fn check_loss(&self, loss: &Loss) -> Result<()> {
        match self {
            Self::Panel { aggregate: Aggregate::Mean | Aggregate::Plurality, .. }
                if matches!(loss.shape(), Shape::Log) =>
            {
                Err(Error::Task(format!(
                    "{self}: labels that nobody gave get no probability, so the {loss} is that of the one label missed; \
                     use aggregate=laplace"
                )))
            }
            _ => Ok(()),
        }
    }

    /// The expected loss c(L, p) where labels follow `truth`; `None` for a measured oracle, whose answers the truth
    /// does not tell.
    ///
    /// # Panics
    /// If the loss is a matrix for another number of classes.
    #[must_use]
    pub fn cost(&self, loss: &Loss, truth: &[f64]) -> Option<f64> {
        match self {
            Self::Bayes => Some(loss.entropy(truth)),
            Self::Panel { .. } => Panel::of(self).map(|panel| panel.cost(loss, &Urn::from_distribution(truth))),
            Self::Measured => None,
        }
    }

    /// How fast the expected loss can change with the truth, in the ℓ1 norm: |c(p) − c(p′)| ≤ γ‖p − p′‖₁.
    ///
    /// A panel of m is never above (m + 1)B/2; with two classes, with the Brier loss and with the cross-entropy it is
    /// known better.
    #[must_use]
    pub fn lipschitz(&self, loss: &Loss, classes: usize) -> f64 {
        match Panel::of(self) {
            Some(panel) => lipschitz::of_panel(panel, loss, classes),
            None => loss.lipschitz(),
        }
    }
}
