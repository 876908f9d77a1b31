//! The variance of true label distributions p*, from pairs of labels: the same formulas for cells, leaves and other groups of rows.

use crate::partition::SPARSE_BELOW_ROWS;
use crate::table::simplex::dot;

/// Moments of the votes of some rows, beside their mean.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VoteMoments {
    pub(crate) weight: f64,
    /// The weight of rows with two labels or more.
    pub(crate) pair_weight: f64,
    /// The mean share of pairs of labels that differ, over these rows: an unbiased estimate of the mean of 1 − ‖p*‖².
    pub(crate) noise: f64,
    /// The estimated variance of the rows' label distributions, 1 − ‖centre‖² − noise. It is negative if two labels of one row happen to
    /// differ more often than two labels of two rows drawn at random. The centre is estimated too, which biases it by about −noise / (k n).
    pub(crate) variance: f64,
    /// The variance of the snapshot means.
    spread: f64,
}

impl VoteMoments {
    /// The moments of rows with this mean, from the weighted sum of the shares of differing pairs and the variance of the snapshot means.
    pub(crate) fn new(centre: &[f64], weight: f64, pair_weight: f64, noise_sum: f64, spread: f64) -> Self {
        let noise = if pair_weight > 0.0 { noise_sum / pair_weight } else { 0.0 };
        Self { weight, pair_weight, noise, variance: 1.0 - dot(centre, centre) - noise, spread }
    }

    /// Whether paired rows are enough to separate noise from error: half of all rows by weight, or as many as a cell has that is not
    /// sparse. Otherwise a single pair could determine a whole cell. `pair_squares` is the sum of the squared weights of paired rows.
    pub(crate) fn separates_noise(&self, pair_squares: f64) -> bool {
        self.pair_weight >= self.weight / 2.0
            || self.pair_weight > 0.0
                && self.pair_weight * self.pair_weight >= pair_squares * (SPARSE_BELOW_ROWS as f64 - 1e-6)
    }

    /// The factor by which snapshot means are moved towards their centre, for rows with equally many labels, so that their variance is that
    /// of p*; negative if the variance estimate is.
    pub(crate) fn factor(&self) -> f64 {
        let part = if self.spread > 0.0 { self.variance / self.spread } else { 0.0 };
        part.abs().min(1.0).sqrt().copysign(part)
    }
}
