//! Dividing probabilities that do not sum to one by their sum, on request.

use pointsman::table::SUM_TOLERANCE;

/// The smallest sum that is divided by: a smaller one is rounding error.
const MIN_SUM: f64 = 1e-6;

/// The sums of probabilities of rows that were divided by their sum.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Sums {
    /// How many rows were divided.
    pub rows: usize,
    /// The least of the sums.
    pub least: f64,
    /// The largest of the sums.
    pub largest: f64,
}

impl Sums {
    /// The sums of these rows and of others; `None` if neither had any.
    #[must_use]
    pub fn merged(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(Self {
                rows: one.rows + other.rows,
                least: one.least.min(other.least),
                largest: one.largest.max(other.largest),
            }),
            (one, other) => one.or(other),
        }
    }
}

/// Divides rows by their sums, and records which rows, and the range of the sums.
#[derive(Debug)]
pub(crate) struct Divider {
    divided: Vec<bool>,
    least: f64,
    largest: f64,
}

impl Divider {
    pub(crate) fn new(rows: usize) -> Self {
        Self { divided: vec![false; rows], least: f64::INFINITY, largest: 0.0 }
    }

    /// Divides the rows whose sum is not one. Rows that cannot become a distribution (negative, not finite, all zero) stay as they are, to be
    /// refused.
    pub(crate) fn divide(&mut self, values: &mut [f64], width: usize) {
        for (row, divided) in values.chunks_exact_mut(width).zip(&mut self.divided) {
            let sum: f64 = row.iter().sum();
            let is_share = row.iter().all(|value| (0.0..=f64::MAX).contains(value));
            if !is_share || !(MIN_SUM..=f64::MAX).contains(&sum) || (sum - 1.0).abs() <= SUM_TOLERANCE {
                continue;
            }
            row.iter_mut().for_each(|value| *value /= sum);
            *divided = true;
            self.least = self.least.min(sum);
            self.largest = self.largest.max(sum);
        }
    }

    pub(crate) fn sums(&self) -> Option<Sums> {
        let rows = self.divided.iter().filter(|divided| **divided).count();
        (rows > 0).then_some(Sums { rows, least: self.least, largest: self.largest })
    }
}
