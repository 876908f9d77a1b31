//! Expected losses of groups of calibration rows and of queries.

use super::OracleLoss;

/// The expected losses of one group of calibration rows (a cell, a leaf or a fall-back), or of one query: the means over its groups and,
/// with a forest, the own part of its prediction. Held-out rows have the same losses, observed by their labels.
///
/// Losses that the labels only bound have a lower and an upper end; the two are equal if a loss is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct GroupLosses<'a> {
    /// The loss of predicting.
    pub(crate) total: f64,
    /// The irreducible loss, which is also the Bayes-optimal oracle's.
    pub(crate) irreducible: [f64; 2],
    /// The loss of each other oracle of the task.
    pub(crate) oracles: &'a [[f64; 2]],
}

impl GroupLosses<'_> {
    /// The loss of an oracle.
    pub(crate) fn of_oracle(&self, oracle: OracleLoss) -> [f64; 2] {
        match oracle {
            OracleLoss::Irreducible => self.irreducible,
            OracleLoss::Other(place) => self.oracles[place],
        }
    }
}

/// The losses of many groups or queries under one task.
#[derive(Debug, Clone)]
pub(crate) struct LossTable {
    totals: Vec<f64>,
    irreducible: Vec<[f64; 2]>,
    /// Row by row.
    oracles: Vec<[f64; 2]>,
    oracles_per_row: usize,
}

impl LossTable {
    pub(crate) fn new(oracles_per_row: usize) -> Self {
        Self { totals: Vec::new(), irreducible: Vec::new(), oracles: Vec::new(), oracles_per_row }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If the losses are of another number of oracles.
    pub(crate) fn push(&mut self, losses: GroupLosses<'_>) {
        assert_eq!(losses.oracles.len(), self.oracles_per_row, "losses of another task");
        self.totals.push(losses.total);
        self.irreducible.push(losses.irreducible);
        self.oracles.extend_from_slice(losses.oracles);
    }

    /// Adds the rows of another table.
    ///
    /// # Panics
    /// If it has another number of oracles.
    pub(crate) fn append(&mut self, other: &mut Self) {
        assert_eq!(other.oracles_per_row, self.oracles_per_row, "losses of another task");
        self.totals.append(&mut other.totals);
        self.irreducible.append(&mut other.irreducible);
        self.oracles.append(&mut other.oracles);
    }

    pub(crate) fn row(&self, row: usize) -> GroupLosses<'_> {
        let oracles = row * self.oracles_per_row..(row + 1) * self.oracles_per_row;
        GroupLosses { total: self.totals[row], irreducible: self.irreducible[row], oracles: &self.oracles[oracles] }
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = GroupLosses<'_>> {
        (0..self.totals.len()).map(|row| self.row(row))
    }
}
