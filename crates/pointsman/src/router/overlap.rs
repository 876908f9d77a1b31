//! Rows that a table shares with a router's calibration rows.

use std::collections::{HashMap, HashSet};

use super::Router;
use crate::table::Table;

/// The smallest number of unique calibration rows from which overlap is inferred.
const MIN_UNIQUE_ROWS: usize = 20;

/// If this part of a router's predictions or more is distinct, equal predictions are equal items.
const DISTINCT_PART: f64 = 0.9;

/// The bits of a prediction in single precision, by which cells are found.
type Prediction = Vec<u32>;

fn prediction(table: &Table, row: usize) -> Prediction {
    table.prediction(row).iter().map(|&p| (p as f32).to_bits()).collect()
}

fn with_votes(table: &Table, row: usize) -> (Prediction, Option<Vec<u32>>) {
    (prediction(table, row), table.votes(row).map(|votes| votes.counts().to_vec()))
}

impl Router {
    /// Which rows of a table have the same prediction and votes as a calibration row. With few distinct predictions some agree by chance.
    #[must_use]
    pub fn rows_in_common(&self, table: &Table) -> Vec<bool> {
        let own: HashSet<_> = (0..self.rows().rows()).map(|row| with_votes(self.rows(), row)).collect();
        (0..table.rows()).map(|row| own.contains(&with_votes(table, row))).collect()
    }

    /// The number of rows of a table whose prediction is that of exactly one calibration row, whatever their votes: the same items, unless
    /// predictions repeat by chance.
    #[must_use]
    pub fn items_in_common(&self, table: &Table) -> usize {
        let own = self.predictions();
        (0..table.rows()).filter(|&row| own.get(&prediction(table, row)) == Some(&1)).count()
    }

    /// Which rows of a table are calibration items, whatever their votes: those with the prediction of exactly one calibration row. `None` if
    /// predictions repeat so often that this says nothing.
    #[must_use]
    pub fn items_seen(&self, table: &Table) -> Option<Vec<bool>> {
        let own = self.predictions();
        let unique = own.values().filter(|rows| **rows == 1).count();
        let distinct = unique >= MIN_UNIQUE_ROWS && unique as f64 >= DISTINCT_PART * self.rows().rows() as f64;
        let seen = |row: usize| own.get(&prediction(table, row)) == Some(&1);
        distinct.then(|| (0..table.rows()).map(seen).collect())
    }

    /// The number of rows of a table that appear to be calibration items; zero if chance explains them.
    ///
    /// If predictions repeat within the router, they also agree with those of other items by chance: about as large a share of a table's
    /// rows as of the router's own. Twice that share, and one row in a hundred, is taken for chance.
    #[must_use]
    pub fn calibration_rows_in(&self, table: &Table) -> usize {
        if self.has_seen(table) {
            return self.rows_in_common(table).into_iter().filter(|seen| *seen).count();
        }
        let seen = self.items_seen(table).map_or(0, |seen| seen.into_iter().filter(|seen| *seen).count());
        let repeated = self.predictions().values().filter(|rows| **rows > 1).sum::<usize>();
        let by_chance = 2.0 * repeated as f64 / self.rows().rows() as f64 + 0.01;
        if seen as f64 > by_chance * table.rows() as f64 { seen } else { 0 }
    }

    /// Whether a table appears to be the one that the router was calibrated on: it lacks at most half as many of the router's items as a
    /// table of other items would. If the partition was learned from labels, other items of such a table shaped the cells and are not among
    /// the router's rows.
    ///
    /// Items are those with the prediction of exactly one calibration row. Of n calibration rows, the share u has such predictions: n − 1 other
    /// rows lack them. A table of m other items lacks a share of about u^(m/n) of them or, since predictions differ in their
    /// frequency, more. If these are too few, the table says nothing.
    #[must_use]
    pub fn has_most_items_in(&self, table: &Table) -> bool {
        let mut own = self.predictions();
        own.retain(|_, rows| *rows == 1);
        let (unique, rows) = (own.len() as f64, self.rows().rows() as f64);
        for row in 0..table.rows() {
            own.remove(&prediction(table, row));
        }
        let lacking_by_chance = unique * (unique / rows).powf(table.rows() as f64 / rows);
        lacking_by_chance >= MIN_UNIQUE_ROWS as f64 && 2.0 * own.len() as f64 <= lacking_by_chance
    }

    /// The number of calibration rows with each prediction.
    fn predictions(&self) -> HashMap<Prediction, usize> {
        let mut own: HashMap<Prediction, usize> = HashMap::new();
        (0..self.rows().rows()).for_each(|row| *own.entry(prediction(self.rows(), row)).or_default() += 1);
        own
    }

    /// Whether a table appears to contain the calibration rows: at least nine tenths of the unique ones. Repeated rows do not count,
    /// because they agree by chance.
    #[must_use]
    pub fn has_seen(&self, table: &Table) -> bool {
        let mut own: HashMap<_, usize> = HashMap::new();
        (0..self.rows().rows()).for_each(|row| *own.entry(with_votes(self.rows(), row)).or_default() += 1);
        own.retain(|_, rows| *rows == 1);
        let unique = own.len();
        for row in 0..table.rows() {
            own.remove(&with_votes(table, row));
        }
        unique >= MIN_UNIQUE_ROWS && 10 * own.len() <= unique
    }
}
