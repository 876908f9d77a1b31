//! Mean and variance of the true label distributions of a mixture, from pairs of labels.

use crate::loss::dot;
use crate::router::Mixture;
use crate::votes::Votes;

/// What two labels an item tell about the law of p*: its mean p̄ and its total variance τ².
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Moments {
    pub(super) weight: f64,
    pub(super) effective_rows: f64,
    pub(super) mean: Vec<f64>,
    /// Whether any item has two labels or more: without, nothing but the mean is known.
    pub(super) pairs: bool,
    /// S: the mean of 1 − ‖p*‖², unbiased from pairs of labels.
    noise: f64,
    /// τ² = 1 − ‖p̄‖² − S, at least zero.
    variance: f64,
    /// The common factor λ when every item has the same number of labels.
    common: Option<f64>,
}

impl Moments {
    /// `None` if the mixture has no rows.
    pub(super) fn of(mixture: Mixture<'_>) -> Option<Self> {
        let mean = mixture.centroid()?;
        let (mut weight, mut squares, mut pair_weight, mut noise, mut spread) = (0.0, 0.0, 0.0, 0.0, 0.0);
        let (mut smallest, mut largest) = (u64::MAX, 0);
        for row in mixture.rows() {
            let (votes, w) = (mixture.votes(row), mixture.table().weight(row));
            let k = votes.k();
            smallest = smallest.min(k);
            largest = largest.max(k);
            weight += w;
            squares += w * w;
            let (mut square, mut distance) = (0.0, 0.0);
            for (&n, centre) in votes.counts().iter().zip(&mean) {
                let y = f64::from(n) / k as f64;
                square += y * y;
                distance += (y - centre) * (y - centre);
            }
            spread += w * distance;
            if k >= 2 {
                noise += w * (1.0 - square) * k as f64 / (k - 1) as f64;
                pair_weight += w;
            }
        }
        let pairs = pair_weight > 0.0;
        let noise = if pairs { noise / pair_weight } else { 0.0 };
        let variance = (1.0 - dot(&mean, &mean) - noise).max(0.0);
        let spread = spread / weight;
        let common =
            (smallest == largest).then(|| if spread > 0.0 { (variance / spread).min(1.0).sqrt() } else { 0.0 });
        Some(Self { weight, effective_rows: weight * weight / squares, mean, pairs, noise, variance, common })
    }

    /// Writes p̃ = p̄ + λ(ȳ − p̄), whose mean and total variance over the mixture are those of p*.
    pub(super) fn shrink_into(&self, votes: Votes<'_>, snapshot: &[f64], out: &mut [f64]) {
        let factor = self.common.unwrap_or_else(|| {
            let within = self.noise / votes.k() as f64;
            if self.variance > 0.0 { (self.variance / (self.variance + within)).sqrt() } else { 0.0 }
        });
        for ((o, y), centre) in out.iter_mut().zip(snapshot).zip(&self.mean) {
            *o = centre + factor * (y - centre);
        }
    }
}
