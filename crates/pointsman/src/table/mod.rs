//! Tables: one row per item, with the weak prediction and the item's votes, truth, features, weight and other models' predictions.

mod check;
mod combine;
pub(crate) mod distinct_votes;
pub(crate) mod peaks;
pub(crate) mod predictions;
pub(crate) mod simplex;
#[cfg(test)]
mod tests;
pub(crate) mod votes;

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::error::{Error, Result, TableError, ValueError};
use crate::parallel::prelude::*;
use crate::table::distinct_votes::DistinctVotes;
use crate::table::predictions::{Predictions, RawPredictions, match_precision, peaks_of};
pub(crate) use check::check_classes;
use check::{check_names, check_whole_rows};
use simplex::Fault;
pub use votes::Votes;

pub use simplex::{LabelDist, Peak, Real, SUM_TOLERANCE, top_class};

/// The largest number of classes. The cross-entropy's floor, times this number, must stay below one.
pub const MAX_CLASSES: usize = 1 << 16;

/// Values of features that one task checks.
const VALUES_PER_BLOCK: usize = 1 << 15;

/// Rows of (weak prediction, votes, features, other models' predictions, weight).
///
/// Predictions are stored as the model gave them, in the model's precision, because cells are found from the original
/// prediction; [`Table::dist_into`] gives them divided by their sum, for arithmetic.
///
/// ```
/// use pointsman::Table;
/// let table = Table::new(["no", "yes"], vec![0.9, 0.1, 0.4, 0.6])?.with_votes(vec![5, 0, 2, 3])?;
/// assert_eq!(table.rows(), 2);
/// assert_eq!(table.votes(1).unwrap().k(), 5);
/// # Ok::<(), pointsman::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Table {
    classes: Vec<String>,
    probs: Predictions,
    /// Computed on first use.
    peaks: OnceLock<Vec<Peak>>,
    votes: Option<DistinctVotes>,
    truth: Option<Vec<f64>>,
    weights: Option<Vec<f64>>,
    feature_names: Vec<String>,
    features: Vec<f64>,
    oracles: Vec<(String, Vec<f64>)>,
    /// The empty votes of a table without votes; computed on first use.
    unlabelled: OnceLock<DistinctVotes>,
}

/// Tables are equal if their values are, whatever the precision; two missing values are equal.
impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        let Self { classes, probs, peaks: _, votes, truth, weights, feature_names, features, oracles, unlabelled: _ } =
            self;
        (classes, probs, votes, truth, weights)
            == (&other.classes, &other.probs, &other.votes, &other.truth, &other.weights)
            && (feature_names, oracles) == (&other.feature_names, &other.oracles)
            && features.len() == other.features.len()
            && features.iter().zip(&other.features).all(|(a, b)| a == b || a.is_nan() && b.is_nan())
    }
}

impl Table {
    /// Creates a table of predictions, given row by row.
    ///
    /// # Errors
    /// If there are fewer than two classes, a class name is empty or repeated, `probs` is not a whole number of rows, or a row is
    /// not a prediction (see [`SUM_TOLERANCE`]).
    pub fn new<S: Into<String>>(classes: impl IntoIterator<Item = S>, probs: Vec<f64>) -> Result<Self> {
        Self::checked(classes, probs.len(), |width| {
            let peaks = peaks_of(&probs, width)?;
            Ok((Predictions::Double(probs), peaks))
        })
    }

    /// Creates a table from a slice of `f32` or `f64` predictions, row by row. They are copied and keep their precision.
    ///
    /// # Errors
    /// As [`Table::new`].
    pub fn from_rows<S: Into<String>, T: Real>(classes: impl IntoIterator<Item = S>, probs: &[T]) -> Result<Self> {
        Self::checked(classes, probs.len(), |width| Predictions::copied(T::raw(probs), width))
    }

    fn checked<S: Into<String>>(
        classes: impl IntoIterator<Item = S>,
        values: usize,
        check: impl FnOnce(usize) -> std::result::Result<(Predictions, Vec<Peak>), (usize, Fault)>,
    ) -> Result<Self> {
        let classes: Vec<String> = classes.into_iter().map(Into::into).collect();
        check_classes(&classes)?;
        check_whole_rows("prob_*", values, classes.len())?;
        let (probs, peaks) = check(classes.len()).map_err(|(row, fault)| fault.at(row, "prob_", &classes))?;
        Ok(Self {
            classes,
            probs,
            peaks: peaks.into(),
            votes: None,
            truth: None,
            weights: None,
            feature_names: Vec::new(),
            features: Vec::new(),
            oracles: Vec::new(),
            unlabelled: OnceLock::new(),
        })
    }

    /// Adds each row's label counts, row by row.
    ///
    /// # Errors
    /// If there are not as many rows of votes as of predictions, or a row has no votes.
    pub fn with_votes(self, votes: Vec<u32>) -> Result<Self> {
        self.with_vote_rows(&votes)
    }

    /// As [`Table::with_votes`], from a slice.
    ///
    /// # Errors
    /// As [`Table::with_votes`].
    pub fn with_vote_rows(mut self, votes: &[u32]) -> Result<Self> {
        self.check_rows("votes_*", votes.len(), self.classes.len())?;
        let distinct = DistinctVotes::from_rows(votes, self.classes.len());
        if let Some(empty) = distinct.iter().position(|votes| votes.k() == 0) {
            let row = distinct.index_of_row().iter().position(|&index| index as usize == empty).unwrap_or_default();
            return Err(Error::value(row, "votes_*", ValueError::NoVotes));
        }
        self.votes = Some(distinct);
        Ok(self)
    }

    /// Adds each row's true label distribution, which is known for synthetic data.
    ///
    /// # Errors
    /// If there are not as many rows as predictions, or a row is not a distribution.
    pub fn with_truth(mut self, truth: Vec<f64>) -> Result<Self> {
        self.check_rows("true_*", truth.len(), self.classes.len())?;
        self.truth = Some(self.normalised("true_", truth)?);
        Ok(self)
    }

    /// Adds a weight to each row.
    ///
    /// # Errors
    /// If there are not as many weights as rows, or a weight is not a positive finite number.
    pub fn with_weights(mut self, weights: Vec<f64>) -> Result<Self> {
        self.check_rows("weight", weights.len(), 1)?;
        for (row, &value) in weights.iter().enumerate() {
            if !(1e-100..=1e100).contains(&value) {
                return Err(Error::value(row, "weight", ValueError::Weight { value }));
            }
        }
        self.weights = Some(weights);
        Ok(self)
    }

    /// Adds named features, `values` row by row.
    ///
    /// # Errors
    /// If the shape does not fit, a name is empty or repeated, or a value is infinite. NaN means missing.
    pub fn with_features<S: Into<String>>(
        mut self,
        names: impl IntoIterator<Item = S>,
        mut values: Vec<f64>,
    ) -> Result<Self> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        check_names("feature", &names)?;
        if names.is_empty() && values.is_empty() {
            return Ok(self);
        }
        self.check_rows("x_*", values.len(), names.len())?;
        // Threads report whether there is an infinite value; the first one is searched for only if there is.
        let check = |block: &mut [f64]| {
            let is_infinite = block.iter().any(|x| x.is_infinite());
            // One bit pattern for all missing values.
            block.iter_mut().filter(|x| x.is_nan()).for_each(|x| *x = f64::NAN);
            is_infinite
        };
        let found: Vec<bool> = values.par_chunks_mut(VALUES_PER_BLOCK).map(check).collect();
        if let Some(i) = found.contains(&true).then(|| values.iter().position(|x| x.is_infinite())).flatten() {
            let (row, name) = (i / names.len(), &names[i % names.len()]);
            return Err(Error::value(row, format!("x_{name}"), ValueError::Feature { value: values[i] }));
        }
        self.feature_names = names;
        self.features = values;
        Ok(self)
    }

    /// Adds another model's predictions, `probs` row by row.
    ///
    /// # Errors
    /// If the name is empty or taken, the shape does not fit, or a row is not a prediction.
    pub fn with_oracle(mut self, name: impl Into<String>, probs: Vec<f64>) -> Result<Self> {
        let name = name.into();
        if name.is_empty() {
            return Err(TableError::Unnamed { what: "oracle" }.into());
        }
        if self.oracles.iter().any(|(other, _)| *other == name) {
            return Err(TableError::RepeatedName { what: "oracle", name }.into());
        }
        let prefix = format!("oracle_{name}_");
        self.check_rows(&format!("{prefix}*"), probs.len(), self.classes.len())?;
        let probs = self.normalised(&prefix, probs)?;
        // Sorted by name, so that the stored table does not depend on the order of the columns.
        let place = self.oracles.partition_point(|(other, _)| *other < name);
        self.oracles.insert(place, (name, probs));
        Ok(self)
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.probs.len() / self.classes.len()
    }

    /// The classes, in order.
    #[must_use]
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// A row's prediction as the model gave it, in double precision.
    #[must_use]
    pub fn prediction(&self, row: usize) -> Cow<'_, [f64]> {
        self.raw_prediction(row).doubles()
    }

    /// All predictions as the model gave them, row by row, in double precision.
    #[must_use]
    pub fn predictions(&self) -> Cow<'_, [f64]> {
        self.probs.all().doubles()
    }

    /// A row's prediction as the model gave it, in its own precision.
    #[inline]
    pub(crate) fn raw_prediction(&self, row: usize) -> RawPredictions<'_> {
        let c = self.classes.len();
        self.probs.range(row * c..(row + 1) * c)
    }

    /// A row's top class and confidence.
    #[must_use]
    pub fn peak(&self, row: usize) -> Peak {
        self.peaks()[row]
    }

    /// All rows' top classes and confidences.
    pub(crate) fn peaks(&self) -> &[Peak] {
        self.peaks.get_or_init(|| self.probs.peaks(self.classes.len()))
    }

    /// Writes a row's prediction, divided by its sum, into `out`.
    pub fn dist_into(&self, row: usize, out: &mut [f64]) {
        match_precision!(self.raw_prediction(row), prediction => simplex::normalise_into(prediction, out));
    }

    /// A row's votes, if the table has any.
    #[must_use]
    pub fn votes(&self, row: usize) -> Option<Votes<'_>> {
        self.votes.as_ref().map(|distinct| distinct.votes(distinct.index_of_row()[row]))
    }

    /// The share of a row's labels that differ from its top class; zero if it has no labels.
    pub(crate) fn top_error(&self, row: usize) -> f64 {
        self.votes(row).map_or(0.0, |votes| 1.0 - votes.mean(self.peak(row).class as usize))
    }

    /// Whether the table has votes.
    #[must_use]
    pub fn has_votes(&self) -> bool {
        self.votes.is_some()
    }

    /// The distinct vote vectors. In a table without votes all rows share one empty vector.
    pub(crate) fn distinct_votes(&self) -> &DistinctVotes {
        self.votes.as_ref().unwrap_or_else(|| self.unlabelled.get_or_init(|| DistinctVotes::unlabelled(self.rows())))
    }

    /// A row's true label distribution, if the table has it.
    #[must_use]
    pub fn truth(&self, row: usize) -> Option<&[f64]> {
        let c = self.classes.len();
        self.truth.as_ref().map(|t| &t[row * c..(row + 1) * c])
    }

    /// A row's weight; 1 if the table has no weights.
    #[must_use]
    pub fn weight(&self, row: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |w| w[row])
    }

    /// Whether the table has weights.
    #[must_use]
    pub fn has_weights(&self) -> bool {
        self.weights.is_some()
    }

    /// The names of the features, without the prefix `x_` of the wide format.
    #[must_use]
    pub fn feature_names(&self) -> &[String] {
        &self.feature_names
    }

    /// A row's features.
    #[must_use]
    pub fn features(&self, row: usize) -> &[f64] {
        let d = self.feature_names.len();
        &self.features[row * d..(row + 1) * d]
    }

    /// Other models' predictions: the name, and one normalised distribution per row.
    pub fn oracles(&self) -> impl Iterator<Item = (&str, &[f64])> {
        self.oracles.iter().map(|(name, probs)| (name.as_str(), probs.as_slice()))
    }

    /// The columns of the named features, in the order of `names`.
    ///
    /// # Errors
    /// If the table lacks one of them.
    pub fn feature_columns(&self, names: &[String]) -> Result<Vec<usize>> {
        names
            .iter()
            .map(|name| {
                self.feature_names.iter().position(|other| other == name).ok_or_else(|| {
                    let features = self.feature_names.clone();
                    TableError::NoFeature { feature: name.clone(), features }.into()
                })
            })
            .collect()
    }

    /// Checks that no row lacks a feature's value.
    pub(crate) fn check_present(&self, column: usize) -> Result<()> {
        match (0..self.rows()).find(|&row| self.features(row)[column].is_nan()) {
            None => Ok(()),
            Some(row) => {
                Err(Error::value(row, format!("x_{}", self.feature_names[column]), ValueError::MissingFeature))
            }
        }
    }

    /// Checks that columns have as many rows as the predictions.
    fn check_rows(&self, columns: &str, values: usize, width: usize) -> Result<()> {
        check_whole_rows(columns, values, width)?;
        match values / width.max(1) {
            found if found == self.rows() => Ok(()),
            found => Err(TableError::ColumnLength { columns: columns.to_owned(), found, rows: self.rows() }.into()),
        }
    }

    /// Checks distributions and divides each by its sum.
    fn normalised(&self, prefix: &str, mut values: Vec<f64>) -> Result<Vec<f64>> {
        for (row, p) in values.chunks_exact_mut(self.classes.len()).enumerate() {
            let sum = simplex::checked_sum(p).map_err(|fault| fault.at(row, prefix, &self.classes))?;
            // Rows that were normalised before stay as they are, so that a table that is written and read back is unchanged.
            if (sum - 1.0).abs() > 1e-9 {
                p.iter_mut().for_each(|x| *x /= sum);
            }
        }
        Ok(values)
    }
}
