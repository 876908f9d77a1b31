//! The mean and variance of the true label distributions p* of a mixture, from pairs of labels.

use super::vote_groups::VoteGroup;
use crate::partition::vote_moments::VoteMoments;
use crate::router::Mixture;
use crate::table::simplex::dot;
use crate::table::votes::Votes;

/// The smallest concentration: labels nearly agree within each item.
const MIN_CONCENTRATION: f64 = 0.02;

/// The largest concentration: all items have nearly the same p*.
const MAX_CONCENTRATION: f64 = 3000.0;

/// The moments of p* that two labels per item identify: the mean p̄ and the total variance τ².
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Moments {
    pub(super) weight: f64,
    pub(super) effective_rows: f64,
    pub(super) mean: Vec<f64>,
    /// Rows with two labels or more.
    pub(super) paired_rows: usize,
    /// Whether paired rows are enough to separate noise from error.
    pub(super) identified: bool,
    /// S, the mean of 1 − ‖p*‖², estimated without bias from pairs of labels.
    pub(super) noise: f64,
    /// τ² = 1 − ‖p̄‖² − S, at least zero.
    pub(super) variance: f64,
    /// The shrinkage factor λ if every item has the same number of labels.
    common: Option<f64>,
}

impl Moments {
    /// The moments of a mixture; `None` if it has no rows.
    pub(super) fn from_mixture(mixture: Mixture<'_>) -> Option<Self> {
        let groups = mixture.rows().map(|row| {
            let weight = mixture.table().weight(row);
            VoteGroup { votes: mixture.votes(row), weight, squares: weight * weight, rows: 1 }
        });
        Self::from_groups(mixture.table().classes().len(), groups)
    }

    /// The moments of grouped rows; `None` if there are none.
    pub(super) fn from_groups<'a>(classes: usize, groups: impl Iterator<Item = VoteGroup<'a>> + Clone) -> Option<Self> {
        let (mut mean, mut weight, mut squares) = (vec![0.0; classes], 0.0, 0.0);
        for group in groups.clone() {
            let scale = group.weight / group.votes.k() as f64;
            mean.iter_mut().zip(group.votes.counts()).for_each(|(sum, &n)| *sum += scale * f64::from(n));
            weight += group.weight;
            squares += group.squares;
        }
        if weight == 0.0 {
            return None;
        }
        mean.iter_mut().for_each(|sum| *sum /= weight);
        let (mut pair_weight, mut noise, mut spread) = (0.0, 0.0, 0.0);
        let (mut smallest, mut largest) = (u64::MAX, 0);
        let (mut paired_rows, mut pair_squares) = (0, 0.0);
        for VoteGroup { votes, weight: w, squares, rows } in groups {
            let k = votes.k();
            smallest = smallest.min(k);
            largest = largest.max(k);
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
                pair_squares += squares;
                paired_rows += rows;
            }
        }
        let found = VoteMoments::new(&mean, weight, pair_weight, noise, spread / weight);
        Some(Self {
            weight,
            effective_rows: weight * weight / squares,
            mean,
            paired_rows,
            identified: found.separates_noise(pair_squares),
            noise: found.noise,
            // A negative estimate is clamped to zero: a cell stands for itself, unlike a leaf, which is averaged (see `leaves`).
            variance: found.variance.max(0.0),
            common: (smallest == largest).then(|| found.factor().max(0.0)),
        })
    }

    /// Whether every item has the same number of labels.
    pub(super) fn is_common(&self) -> bool {
        self.common.is_some()
    }

    /// The concentration A of the Dirichlet law with this mean and variance: τ² = (1 − ‖p̄‖²)/(A + 1).
    pub(super) fn concentration(&self) -> f64 {
        let largest = 1.0 - dot(&self.mean, &self.mean);
        if self.variance > 0.0 {
            (largest / self.variance - 1.0).clamp(MIN_CONCENTRATION, MAX_CONCENTRATION)
        } else {
            MAX_CONCENTRATION
        }
    }

    /// The same moments if they are identified; otherwise with the concentration of `other` around this mean.
    pub(super) fn or_concentration_of(mut self, other: &Self) -> Self {
        if !self.identified {
            let largest = 1.0 - dot(&self.mean, &self.mean);
            self.variance = largest / (other.concentration() + 1.0);
            self.noise = largest - self.variance;
            self.common = None;
        }
        self
    }

    /// The same moments with another estimate of the noise, which identifies them.
    pub(super) fn with_noise(mut self, noise: f64) -> Self {
        let largest = 1.0 - dot(&self.mean, &self.mean);
        self.noise = noise.min(largest);
        self.variance = largest - self.noise;
        self.common = None;
        self.identified = true;
        self
    }

    /// The shrinkage factor λ of an item with these votes.
    pub(super) fn factor(&self, votes: Votes<'_>) -> f64 {
        self.common.unwrap_or_else(|| {
            let within = self.noise / votes.k() as f64;
            if self.variance > 0.0 { (self.variance / (self.variance + within)).sqrt() } else { 0.0 }
        })
    }

    /// Writes the shrunk snapshot mean p̃ = p̄ + λ(ȳ − p̄), whose mean and total variance over the mixture are those of p*.
    pub(super) fn shrink_into(&self, votes: Votes<'_>, snapshot: &[f64], out: &mut [f64]) {
        let factor = self.factor(votes);
        for ((o, y), centre) in out.iter_mut().zip(snapshot).zip(&self.mean) {
            *o = centre + factor * (y - centre);
        }
    }
}
