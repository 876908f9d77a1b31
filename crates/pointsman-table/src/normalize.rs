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
            (Some(one), Some(other)) => Some(one.with(other)),
            (one, other) => one.or(other),
        }
    }

    pub(crate) fn with(self, other: Self) -> Self {
        Self {
            rows: self.rows + other.rows,
            least: self.least.min(other.least),
            largest: self.largest.max(other.largest),
        }
    }
}

/// Divides the rows whose sum is not one by it, and returns the sums. Rows that cannot become a distribution (negative, not finite, all
/// zero) stay as they are, to be refused.
pub(crate) fn divide(values: &mut [f64], width: usize) -> Option<Sums> {
    let mut sums = None;
    for row in values.chunks_exact_mut(width) {
        let sum: f64 = row.iter().sum();
        let is_share = row.iter().all(|value| (0.0..=f64::MAX).contains(value));
        if !is_share || !(MIN_SUM..=f64::MAX).contains(&sum) || (sum - 1.0).abs() <= SUM_TOLERANCE {
            continue;
        }
        row.iter_mut().for_each(|value| *value /= sum);
        sums = Sums::merged(sums, Some(Sums { rows: 1, least: sum, largest: sum }));
    }
    sums
}
