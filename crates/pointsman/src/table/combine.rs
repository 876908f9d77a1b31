//! Tables made from other tables: selected rows, appended rows, reordered classes.

use std::sync::OnceLock;

use super::Table;
use super::predictions::{gather, match_precision};
use crate::error::{Result, TableError};
use crate::parallel;

impl Table {
    /// The given rows and feature columns, in the given order and without truth: what a router stores.
    ///
    /// # Panics
    /// If a row or column does not exist.
    #[must_use]
    pub(crate) fn select(&self, rows: &[u32], feature_columns: &[usize]) -> Self {
        let c = self.classes.len();
        let mut features = Vec::with_capacity(rows.len() * feature_columns.len());
        if !feature_columns.is_empty() {
            for values in rows.iter().map(|&row| self.features(row as usize)) {
                features.extend(feature_columns.iter().map(|&column| values[column]));
            }
        }
        let (probs, votes) =
            parallel::join(|| self.probs.select(rows, c), || self.votes.as_ref().map(|votes| votes.select(rows)));
        Self {
            classes: self.classes.clone(),
            probs,
            peaks: OnceLock::new(),
            votes,
            truth: None,
            weights: self.weights.as_ref().map(|weights| gather(rows, 1, weights)),
            feature_names: feature_columns.iter().map(|&column| self.feature_names[column].clone()).collect(),
            features,
            oracles: self.oracles.iter().map(|(name, probs)| (name.clone(), gather(rows, c, probs))).collect(),
            unlabelled: OnceLock::new(),
        }
    }

    /// The given rows in the given order, with their truth.
    ///
    /// # Panics
    /// If a row does not exist.
    #[must_use]
    pub fn in_row_order(&self, rows: &[u32]) -> Self {
        let truth = self.truth.as_ref().map(|truth| gather(rows, self.classes.len(), truth));
        Self { truth, ..self.select(rows, &(0..self.feature_names.len()).collect::<Vec<usize>>()) }
    }

    /// The rows for which `keep` is true, in their order and without truth.
    #[must_use]
    pub fn keep_rows(&self, keep: impl Fn(usize) -> bool) -> Self {
        let rows: Vec<u32> = (0..self.rows()).filter(|&row| keep(row)).map(|row| row as u32).collect();
        self.select(&rows, &(0..self.feature_names.len()).collect::<Vec<usize>>())
    }

    /// The table without features that are equal in all rows or missing in all; `None` if there are none. A feature that is missing in
    /// some rows only is not constant.
    pub(crate) fn without_constant_features(&self) -> Option<Self> {
        let varies = |&column: &usize| {
            let mut values = (0..self.rows()).map(|row| self.features(row)[column]);
            let first = values.next().unwrap_or(f64::NAN);
            values.any(|value| value != first && !(value.is_nan() && first.is_nan()))
        };
        let columns: Vec<usize> = (0..self.feature_names.len()).filter(varies).collect();
        let rows = || (0..self.rows() as u32).collect::<Vec<u32>>();
        (columns.len() < self.feature_names.len()).then(|| self.select(&rows(), &columns))
    }

    /// Adds the rows of another table with the same classes, features and oracles; features and oracles may be in another order.
    /// Missing weights become 1, and truth is dropped. A table without rows takes the other's columns.
    ///
    /// # Errors
    /// If the columns differ; nothing is added then.
    pub(crate) fn extend(&mut self, other: &Self) -> Result<()> {
        let all: Vec<u32> = (0..other.rows() as u32).collect();
        if self.rows() == 0 {
            let columns: Vec<usize> = (0..other.feature_names.len()).collect();
            *self = other.select(&all, &columns);
            return Ok(());
        }
        if self.classes != other.classes {
            let (first, second) = (self.classes.clone(), other.classes.clone());
            return Err(TableError::DifferentColumns { what: "classes", first, second }.into());
        }
        self.both_or_none(other, "votes", "votes_*", Self::has_votes)?;
        let features = |table: &Self| table.feature_names.iter().map(|name| format!("x_{name}")).collect();
        let oracles = |table: &Self| table.oracles.iter().map(|(name, _)| name.clone()).collect();
        same_names("features", features(self), features(other))?;
        same_names("oracles", oracles(self), oracles(other))?;
        let mut other = other.select(&all, &other.feature_columns(&self.feature_names)?);
        if self.has_weights() || other.has_weights() {
            let rows = self.rows();
            let weights = self.weights.get_or_insert_with(|| vec![1.0; rows]);
            weights.extend((0..other.rows()).map(|row| other.weight(row)));
        }
        self.truth = None;
        (self.peaks, self.unlabelled) = Default::default();
        self.probs.append(other.probs);
        self.features.append(&mut other.features);
        if let (Some(votes), Some(more)) = (&mut self.votes, &other.votes) {
            votes.append(more);
        }
        for ((_, probs), (_, more)) in self.oracles.iter_mut().zip(&mut other.oracles) {
            probs.append(more);
        }
        Ok(())
    }

    /// Adds the rows of another table with the same columns; its features and oracles may be in another order.
    ///
    /// ```
    /// use pointsman::Table;
    /// let mut table = Table::new(["no", "yes"], vec![0.9, 0.1])?.with_votes(vec![5, 0])?;
    /// table.append(&Table::new(["no", "yes"], vec![0.4, 0.6])?.with_votes(vec![2, 3])?)?;
    /// assert_eq!(table.rows(), 2);
    /// assert!(table.append(&Table::new(["no", "yes"], vec![0.4, 0.6])?).is_err());
    /// # Ok::<(), pointsman::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the tables differ in their classes, or in which of votes, truth, weights, features and oracles they have; nothing is added
    /// then.
    pub fn append(&mut self, other: &Self) -> Result<()> {
        self.both_or_none(other, "truth", "true_*", |table| table.truth.is_some())?;
        self.both_or_none(other, "weights", "weight", Self::has_weights)?;
        let truth = self.truth.as_ref().zip(other.truth.as_ref()).map(|(own, more)| [own.as_slice(), more].concat());
        self.extend(other)?;
        self.truth = truth;
        Ok(())
    }

    /// The same rows with the columns of the classes in another order.
    ///
    /// # Errors
    /// If these are not the table's classes.
    pub fn in_order_of(&self, classes: &[String]) -> Result<Self> {
        let place = |class: &String| self.classes.iter().position(|own| own == class);
        let places: Option<Vec<usize>> = classes.iter().map(place).collect();
        let Some(places) = places.filter(|places| places.len() == self.classes.len()) else {
            let (first, second) = (self.classes.clone(), classes.to_vec());
            return Err(TableError::DifferentColumns { what: "classes", first, second }.into());
        };
        let mut table =
            match_precision!(self.probs.all(), probs => Self::from_rows(classes, &permuted(probs, &places)))?;
        if let Some(distinct) = &self.votes {
            let counts = distinct.index_of_row().iter().flat_map(|&index| distinct.votes(index).counts());
            table = table.with_votes(permuted(&counts.copied().collect::<Vec<u32>>(), &places))?;
        }
        if let Some(truth) = &self.truth {
            table = table.with_truth(permuted(truth, &places))?;
        }
        for (name, probs) in &self.oracles {
            table = table.with_oracle(name.as_str(), permuted(probs, &places))?;
        }
        Ok(Self {
            weights: self.weights.clone(),
            feature_names: self.feature_names.clone(),
            features: self.features.clone(),
            ..table
        })
    }

    /// Checks that columns are in both tables or in neither.
    fn both_or_none(&self, other: &Self, what: &'static str, column: &str, has: impl Fn(&Self) -> bool) -> Result<()> {
        let [first, second] = [self, other].map(|table| if has(table) { vec![column.to_owned()] } else { Vec::new() });
        if first == second { Ok(()) } else { Err(TableError::DifferentColumns { what, first, second }.into()) }
    }
}

/// The rows with their columns in the order of `places`.
fn permuted<T: Copy>(rows: &[T], places: &[usize]) -> Vec<T> {
    rows.chunks_exact(places.len()).flat_map(|row| places.iter().map(|&place| row[place])).collect()
}

/// Checks that two tables have the same columns, in any order.
fn same_names(what: &'static str, first: Vec<String>, second: Vec<String>) -> Result<()> {
    if first.len() == second.len() && first.iter().all(|name| second.contains(name)) {
        return Ok(());
    }
    Err(TableError::DifferentColumns { what, first, second }.into())
}
