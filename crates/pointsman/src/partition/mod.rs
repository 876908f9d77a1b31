//! Partitions: how inputs are grouped into cells.
//!
//! A [`Partition`] is a specification such as `top-class:10`. Fitted to a table it becomes [`Cells`], which give the cell of each input. Cells
//! depend on the *original* weak prediction and the features, never on a loss or a price.

mod axis;
mod cells;
mod edges;
pub mod forest;
mod grid;
mod names;
pub(crate) mod vote_moments;

use std::fmt;
use std::str::FromStr;

pub use axis::Axis;
pub use cells::{CellId, Cells};
pub use edges::Edges;
pub(crate) use edges::double;
pub(crate) use grid::UNUSUAL;

use crate::error::{Error, PartitionError, Result};

/// Cells with fewer rows are sparse.
pub const SPARSE_BELOW_ROWS: usize = 30;

/// The largest number of cells of a partition.
pub const MAX_CELLS: usize = 1 << 20;

/// The largest number of bins per axis.
const MAX_BINS: usize = 100_000;

/// The largest number of trees.
const MAX_TREES: usize = 5_000;

/// The default number of trees.
pub(crate) const TREES: usize = 200;

/// A specification of cells: a product of one or more factors.
///
/// | text | cells |
/// |---|---|
/// | `top-class:B` | for each top class, `B` quantiles of its confidence |
/// | `confidence:B` | `B` quantiles of the confidence over all classes |
/// | `level-sets` | one cell for each distinct prediction |
/// | `features:x_a=10,x_b=4` | quantiles of each named feature, or its values if there are no more of them than bins, crossed |
/// | `pooled` | bins of about 30 rows by confidence, and by top class if there are enough rows; losses are shrunk towards those of neighbouring bins |
/// | `tree` | the leaves of one tree grown on half of the rows, filled by the other half |
/// | `honest-forest:T` | up to 25 cells of the expected losses by `T` trees grown on half of the rows, filled by the other half |
/// | `forest:T` | bins of the reducible Brier loss expected by `T` trees; each query has its own costs |
/// | `auto` | `pooled`, `tree`, `honest-forest:200` or `forest:200`, whichever costs least on held-out rows |
/// | `auto:certifiable` | the same without `forest:200`, whose cells cannot be certified |
/// | `P*Q` | the product of two partitions that are not learned from labels |
///
/// ```
/// use pointsman::Partition;
/// let p: Partition = "top-class:10*features:x_length=4".parse()?;
/// assert_eq!(p, Partition::top_class(10).times(Partition::features([("length", 4)])));
/// assert_eq!(p.to_string(), "top-class:10*features:x_length=4");
/// # Ok::<(), pointsman::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    factors: Vec<Factor>,
}

/// One factor of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Factor {
    /// Quantiles of the confidence within each top class.
    TopClass {
        /// How many.
        bins: usize,
    },
    /// Quantiles of the confidence.
    Confidence {
        /// How many.
        bins: usize,
    },
    /// Distinct predictions.
    LevelSets,
    /// Quantiles of a feature, or its values if there are no more of them than bins.
    Feature {
        /// Its name.
        name: String,
        /// How many.
        bins: usize,
    },
    /// Bins of the confidence for each top class with enough rows, with losses shrunk towards those of neighbouring bins.
    Pooled,
    /// The leaves of one honest tree.
    Tree,
    /// The score of a forest.
    Forest {
        /// How many.
        trees: usize,
    },
    /// Cells of the expected losses by trees grown on half of the rows, filled by the other half.
    HonestForest {
        /// How many.
        trees: usize,
    },
    /// The partition among a few candidates that costs least on held-out rows.
    Auto {
        /// Whether only partitions that can be certified are compared.
        certifiable: bool,
    },
}

impl Factor {
    /// Whether it is learned from votes.
    #[must_use]
    pub fn learns(&self) -> bool {
        matches!(self, Self::Tree | Self::Forest { .. } | Self::HonestForest { .. } | Self::Auto { .. })
    }

    /// Whether it cannot be part of a product.
    fn stands_alone(&self) -> bool {
        self.learns() || *self == Self::Pooled
    }
}

impl Partition {
    /// For each top class, `bins` quantiles of its confidence: the paper's choice.
    #[must_use]
    pub fn top_class(bins: usize) -> Self {
        Self { factors: vec![Factor::TopClass { bins }] }
    }

    /// `bins` quantiles of the confidence over all classes.
    #[must_use]
    pub fn confidence(bins: usize) -> Self {
        Self { factors: vec![Factor::Confidence { bins }] }
    }

    /// One cell for each distinct prediction.
    #[must_use]
    pub fn level_sets() -> Self {
        Self { factors: vec![Factor::LevelSets] }
    }

    /// Quantiles of named features, crossed. A feature with at most as many values as bins has one bin per value.
    #[must_use]
    pub fn features<S: Into<String>>(features: impl IntoIterator<Item = (S, usize)>) -> Self {
        Self { factors: features.into_iter().map(|(name, bins)| Factor::Feature { name: name.into(), bins }).collect() }
    }

    /// Many bins of the confidence for each top class with enough rows, with losses shrunk towards those of neighbouring bins by empirical
    /// Bayes.
    #[must_use]
    pub fn pooled() -> Self {
        Self { factors: vec![Factor::Pooled] }
    }

    /// The leaves of one honest tree.
    #[must_use]
    pub fn tree() -> Self {
        Self { factors: vec![Factor::Tree] }
    }

    /// A forest with this number of trees.
    #[must_use]
    pub fn forest(trees: usize) -> Self {
        Self { factors: vec![Factor::Forest { trees }] }
    }

    /// Cells of the expected losses by trees grown on half of the rows, filled by the other half; they can be certified.
    #[must_use]
    pub fn honest_forest(trees: usize) -> Self {
        Self { factors: vec![Factor::HonestForest { trees }] }
    }

    /// The one of `pooled`, `tree`, `honest-forest:200` and `forest:200` that costs least on held-out rows: the default.
    #[must_use]
    pub fn auto() -> Self {
        Self { factors: vec![Factor::Auto { certifiable: false }] }
    }

    /// The one of `pooled`, `tree` and `honest-forest:200` that costs least on held-out rows. Their cells can be certified, have centroids and
    /// can be filled with other rows.
    #[must_use]
    pub fn certifiable() -> Self {
        Self { factors: vec![Factor::Auto { certifiable: true }] }
    }

    /// The product of two partitions.
    #[must_use]
    pub fn times(mut self, other: Self) -> Self {
        self.factors.extend(other.factors);
        self
    }

    /// The factors, in order.
    #[must_use]
    pub fn factors(&self) -> &[Factor] {
        &self.factors
    }

    /// Checks the numbers of bins and trees, the names, and that the factors can be combined.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |partition: &dyn fmt::Display, reason: String| {
            Err(PartitionError::Factor { partition: partition.to_string(), reason }.into())
        };
        if self.factors.is_empty() {
            return Err(PartitionError::Empty.into());
        }
        if let Some(alone) = self.factors.iter().find(|factor| factor.stands_alone() && self.factors.len() > 1) {
            let more = if alone.learns() { "; it may use every feature" } else { "" };
            return refuse(self, format!("{alone} finds its own cells and cannot be part of a product{more}"));
        }
        for (i, factor) in self.factors.iter().enumerate() {
            if let Factor::Forest { trees } | Factor::HonestForest { trees } = factor
                && !(1..=MAX_TREES).contains(trees)
            {
                return refuse(factor, format!("give a number of trees from 1 to {MAX_TREES}"));
            }
            let same = |other: &Factor| match (other, factor) {
                (Factor::Feature { name: a, .. }, Factor::Feature { name: b, .. }) => a == b,
                _ => std::mem::discriminant(other) == std::mem::discriminant(factor),
            };
            if self.factors[..i].iter().any(same) {
                return refuse(self, format!("{factor} divides what was divided before"));
            }
            if let Factor::Feature { name, .. } = factor
                && (name.is_empty() || name.contains([',', '=', '*', ':']) || name.trim() != name)
            {
                let reason = "a feature's name must not be empty, have spaces around it or contain , = * or :";
                return refuse(factor, reason.to_owned());
            }
            let (Factor::TopClass { bins } | Factor::Confidence { bins } | Factor::Feature { bins, .. }) = factor
            else {
                continue;
            };
            if !(1..=MAX_BINS).contains(bins) {
                return refuse(factor, format!("{bins} bins; give a number from 1 to {MAX_BINS}"));
            }
        }
        Ok(())
    }
}

impl FromStr for Partition {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut factors = Vec::new();
        for part in text.split('*').map(str::trim) {
            let (name, argument) = part.split_once(':').map_or((part, None), |(n, a)| (n, Some(a)));
            let refuse = |reason: String| PartitionError::Syntax { text: part.to_owned(), reason };
            let bins = |argument: Option<&str>| {
                argument.unwrap_or("10").trim().parse::<usize>().map_err(|_| {
                    refuse(format!("{:?} is not a number of bins; try {name}:10", argument.unwrap_or_default()))
                })
            };
            match name {
                "top-class" => factors.push(Factor::TopClass { bins: bins(argument)? }),
                "confidence" => factors.push(Factor::Confidence { bins: bins(argument)? }),
                "level-sets" if argument.is_none() => factors.push(Factor::LevelSets),
                "pooled" if argument.is_none() => factors.push(Factor::Pooled),
                "tree" if argument.is_none() => factors.push(Factor::Tree),
                "auto" if argument.is_none_or(|argument| argument.trim() == "certifiable") => {
                    factors.push(Factor::Auto { certifiable: argument.is_some() });
                }
                "forest" | "honest-forest" => match argument.map_or(Ok(TREES), |count| count.trim().parse()) {
                    Ok(trees) if name == "forest" => factors.push(Factor::Forest { trees }),
                    Ok(trees) => factors.push(Factor::HonestForest { trees }),
                    Err(_) => {
                        let count = argument.unwrap_or_default();
                        return Err(refuse(format!("{count:?} is not a number of trees; try {name}:{TREES}")).into());
                    }
                },
                "features" => {
                    for feature in argument.unwrap_or_default().split(',') {
                        let (name, n) = feature.split_once('=').unwrap_or((feature, "10"));
                        let name = name.trim();
                        let name = name.strip_prefix("x_").unwrap_or(name);
                        if name.is_empty() {
                            return Err(refuse("names no feature; try features:x_length=10".to_owned()).into());
                        }
                        factors.push(Factor::Feature { name: name.into(), bins: bins(Some(n))? });
                    }
                }
                _ => return Err(PartitionError::Unknown { text: part.to_owned() }.into()),
            }
        }
        let partition = Self { factors };
        partition.check()?;
        Ok(partition)
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TopClass { bins } => write!(f, "top-class:{bins}"),
            Self::Confidence { bins } => write!(f, "confidence:{bins}"),
            Self::LevelSets => write!(f, "level-sets"),
            Self::Feature { name, bins } => write!(f, "features:x_{name}={bins}"),
            Self::Pooled => write!(f, "pooled"),
            Self::Tree => write!(f, "tree"),
            Self::Forest { trees } => write!(f, "forest:{trees}"),
            Self::HonestForest { trees } => write!(f, "honest-forest:{trees}"),
            Self::Auto { certifiable: false } => write!(f, "auto"),
            Self::Auto { certifiable: true } => write!(f, "auto:certifiable"),
        }
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut after_feature = false;
        for (i, factor) in self.factors.iter().enumerate() {
            match factor {
                Factor::Feature { name, bins } if after_feature => write!(f, ",x_{name}={bins}")?,
                factor => write!(f, "{}{factor}", if i == 0 { "" } else { "*" })?,
            }
            after_feature = matches!(factor, Factor::Feature { .. });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        for text in [
            "top-class:10",
            "confidence:30",
            "level-sets",
            "features:x_a=10,x_b=4",
            "confidence:5*features:x_a=2",
            "pooled",
            "tree",
            "forest:7",
            "honest-forest:7",
            "auto",
            "auto:certifiable",
        ] {
            assert_eq!(text.parse::<Partition>().unwrap().to_string(), text);
        }
        assert_eq!("top-class".parse::<Partition>().unwrap(), Partition::top_class(10));
        assert_eq!("forest".parse::<Partition>().unwrap(), Partition::forest(200));
        assert_eq!("honest-forest".parse::<Partition>().unwrap(), Partition::honest_forest(200));
    }

    #[test]
    fn invalid_partitions_are_refused() {
        for text in [
            "",
            "forest:-1",
            "forest:0",
            "forest:x",
            "honest-forest:0",
            "honest-forest:5001",
            "honest-forest:x",
            "honest-forest:5*top-class:3",
            "forest:5*tree",
            "tree*top-class:3",
            "auto:1",
            "pooled:3",
            "pooled*top-class:3",
            "tree:2",
            "top-class:0",
            "top-class:x",
            "level-sets:3",
            "features:",
            "confidence:5*confidence:5",
        ] {
            assert!(text.parse::<Partition>().is_err(), "{text}");
        }
    }
}
