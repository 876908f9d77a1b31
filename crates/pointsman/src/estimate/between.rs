//! Empirical Bayes over the leaves of a tree: what few rows say is drawn towards what all rows say.

use super::Decomposition;
use super::moments::Moments;
use crate::loss::{Loss, dot};
use crate::router::Mixture;

/// Draws each leaf's mean m towards the mean of all: (n m + κ m̄)/(n + κ) with κ = σ²/τ², the variance within leaves over that
/// between them; of the total and the irreducible loss separately. Other oracles follow the irreducible loss, so that a
/// panel stays above it.
pub(crate) fn shrink_leaves(
    leaves: &mut [Option<Decomposition>],
    mixtures: &[Mixture<'_>],
    loss: &Loss,
    recalibrated: bool,
) {
    let spreads: Vec<[f64; 2]> = mixtures.iter().map(|&mixture| spread(mixture, loss, recalibrated)).collect();
    let total = Pull::of(leaves, &spreads, 0, |leaf| leaf.total);
    let [low, high] =
        [0, 1].map(|end| Pull::of(leaves, &spreads, 1, move |leaf| [leaf.irreducible_low, leaf.irreducible_high][end]));
    let own: Vec<[f64; 2]> = match leaves.iter().flatten().next() {
        Some(first) => (0..first.oracles.len())
            .map(|oracle| [0, 1].map(|end| centre(leaves, |leaf| leaf.oracles[oracle][end])))
            .collect(),
        None => return,
    };
    for leaf in leaves.iter_mut().flatten() {
        let n = leaf.effective_rows;
        leaf.total = total.pulled(n, leaf.total);
        leaf.irreducible_low = low.pulled(n, leaf.irreducible_low);
        leaf.irreducible_high = if low == high { leaf.irreducible_low } else { high.pulled(n, leaf.irreducible_high) };
        for (ends, centres) in leaf.oracles.iter_mut().zip(&own) {
            for (end, centre) in ends.iter_mut().zip(centres) {
                *end = Pull { centre: *centre, ..low }.pulled(n, *end);
            }
        }
    }
}

/// Towards what, and how strongly.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pull {
    centre: f64,
    /// κ; infinite if the leaves do not differ by more than chance.
    strength: f64,
}

impl Pull {
    fn of(
        leaves: &[Option<Decomposition>],
        spreads: &[[f64; 2]],
        which: usize,
        value: impl Fn(&Decomposition) -> f64,
    ) -> Self {
        let centre = centre(leaves, &value);
        let (mut rows, mut squares, mut count, mut within, mut between) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (leaf, spread) in leaves.iter().zip(spreads).filter_map(|(leaf, spread)| Some((leaf.as_ref()?, spread))) {
            let n = leaf.effective_rows;
            rows += n;
            squares += n * n;
            count += 1.0;
            within += n * spread[which];
            between += n * (value(leaf) - centre).powi(2);
        }
        let within = if rows > count { within / (rows - count) } else { 0.0 };
        let between = (between - (count - 1.0) * within) / (rows - squares / rows);
        let strength = if within == 0.0 {
            0.0
        } else if between > 0.0 {
            within / between
        } else {
            f64::INFINITY
        };
        Self { centre, strength }
    }

    fn pulled(&self, n: f64, value: f64) -> f64 {
        if self.strength.is_infinite() {
            self.centre
        } else {
            (n * value + self.strength * self.centre) / (n + self.strength)
        }
    }
}

/// The mean over all rows.
fn centre(leaves: &[Option<Decomposition>], value: impl Fn(&Decomposition) -> f64) -> f64 {
    let (mut sum, mut weight) = (0.0, 0.0);
    for leaf in leaves.iter().flatten() {
        sum += leaf.weight * value(leaf);
        weight += leaf.weight;
    }
    sum / weight
}

/// The variance of the rows' total and irreducible losses within a leaf, by weight.
fn spread(mixture: Mixture<'_>, loss: &Loss, recalibrated: bool) -> [f64; 2] {
    let Some(moments) = Moments::of(mixture) else { return [0.0; 2] };
    let classes = moments.mean.len();
    let (mut mean, mut point, mut losses) = (vec![0.0; classes], vec![0.0; classes], vec![0.0; classes]);
    let (mut sums, mut squares) = ([0.0; 2], [0.0; 2]);
    for row in mixture.rows() {
        let (votes, weight) = (mixture.votes(row), mixture.table().weight(row));
        votes.mean_into(&mut mean);
        if recalibrated {
            point.copy_from_slice(&moments.mean);
        } else {
            mixture.table().dist_into(row, &mut point);
        }
        loss.losses_into(&point, &mut losses);
        moments.shrink_into(votes, &mean, &mut point);
        for (i, value) in [dot(&mean, &losses), loss.entropy(&point)].into_iter().enumerate() {
            sums[i] += weight * value;
            squares[i] += weight * value * value;
        }
    }
    [0, 1].map(|i| (squares[i] / moments.weight - (sums[i] / moments.weight).powi(2)).max(0.0))
}
