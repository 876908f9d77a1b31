//! The estimators of the irreducible loss.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result, TaskError};

/// The largest number of classes for the nonparametric estimator. Under the cross-entropy it is fitted class by class, for any number
/// of classes.
pub(crate) const MAX_NPMLE_CLASSES: usize = 3;

/// An estimator of the irreducible loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Estimator {
    /// The estimator with the least error for the loss, the number of classes, the labels per item and the rows of a cell; `shrink`
    /// in the leaves of a forest.
    #[default]
    Auto,
    /// The mean of G over snapshot means shrunk towards their centroid until their variance is that of the true distributions;
    /// for the Brier loss this is the unbiased U-statistic.
    Shrink,
    /// The mean of G over the snapshot means, as in the paper: biased downwards if items have few labels.
    Plugin,
    /// The mean of G under the nonparametric maximum-likelihood law of the true distributions, for two or three classes. `auto` stops
    /// the fit early if items have few labels, and fits class by class, for any number of classes, under the cross-entropy.
    Npmle,
    /// The posterior mean of G under a Dirichlet law fitted to the cell.
    Dirichlet,
}

impl Estimator {
    /// Checks that the estimator is defined for this number of classes.
    ///
    /// # Errors
    /// If it is not.
    pub fn check_classes(self, classes: usize) -> Result<()> {
        if self == Self::Npmle && classes > MAX_NPMLE_CLASSES {
            let (estimator, most) = (self.to_string(), MAX_NPMLE_CLASSES);
            return Err(TaskError::EstimatorClasses { estimator, classes, most }.into());
        }
        Ok(())
    }
}

impl FromStr for Estimator {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Self::Auto),
            "shrink" => Ok(Self::Shrink),
            "plugin" => Ok(Self::Plugin),
            "npmle" => Ok(Self::Npmle),
            "dirichlet" => Ok(Self::Dirichlet),
            _ => Err(TaskError::Unknown {
                what: "estimator",
                text: text.to_owned(),
                known: "auto, shrink, plugin, npmle or dirichlet",
            }
            .into()),
        }
    }
}

impl fmt::Display for Estimator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Shrink => "shrink",
            Self::Plugin => "plugin",
            Self::Npmle => "npmle",
            Self::Dirichlet => "dirichlet",
        })
    }
}
