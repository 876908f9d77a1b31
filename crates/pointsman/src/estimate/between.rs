//! Empirical Bayes over the leaves of a tree: what few rows say is drawn towards what all rows say.

use super::moments::Moments;
use super::{Decomposition, RowLosses};
use crate::loss::Loss;
use crate::router::Mixture;
use crate::simplex::dot;

/// Draws each leaf's mean m towards the mean of all: (n m + κ m̄)/(n + κ) with κ = σ²/τ², the variance within leaves over that
/// between them; of the total loss, the irreducible loss and that of each measured oracle separately. Panels follow the irreducible
/// loss, so that they stay above it.
pub(crate) fn shrink_leaves(
    leaves: &mut [Option<Decomposition>],
    mixtures: &[Mixture<'_>],
    loss: &Loss,
    recalibrated: bool,
    oracles: &RowLosses,
) {
    let Some(first) = leaves.iter().flatten().next() else { return };
    let count = first.oracles.len();
    let spreads: Vec<[f64; 2]> = mixtures.iter().map(|&mixture| spread(mixture, loss, recalibrated)).collect();
    let total = Pull::of(leaves, |leaf| spreads[leaf][0], |leaf| leaf.total);
    let [low, high] = [0, 1].map(|end| {
        Pull::of(leaves, |leaf| spreads[leaf][1], move |leaf| [leaf.irreducible_low, leaf.irreducible_high][end])
    });
    let of_oracle = |place: usize| {
        [0, 1].map(|end| {
            let value = |leaf: &Decomposition| leaf.oracles[place][end];
            match oracles.measured(place) {
                Some(values) => Pull::of(leaves, |leaf| variance(mixtures[leaf], |row| values[row]), value),
                None => Pull { centre: centre(leaves, value), ..low },
            }
        })
    };
    let own: Vec<[Pull; 2]> = (0..count).map(of_oracle).collect();
    for leaf in leaves.iter_mut().flatten() {
        let n = leaf.effective_rows;
        leaf.total = total.pulled(n, leaf.total);
        leaf.irreducible_low = low.pulled(n, leaf.irreducible_low);
        leaf.irreducible_high = if low == high { leaf.irreducible_low } else { high.pulled(n, leaf.irreducible_high) };
        for (ends, pulls) in leaf.oracles.iter_mut().zip(&own) {
            ends.iter_mut().zip(pulls).for_each(|(end, pull)| *end = pull.pulled(n, *end));
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
        spread: impl Fn(usize) -> f64,
        value: impl Fn(&Decomposition) -> f64,
    ) -> Self {
        let centre = centre(leaves, &value);
        let (mut rows, mut squares, mut count, mut within, mut between) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (place, leaf) in leaves.iter().enumerate().filter_map(|(place, leaf)| Some((place, leaf.as_ref()?))) {
            let n = leaf.effective_rows;
            rows += n;
            squares += n * n;
            count += 1.0;
            within += n * spread(place);
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

/// The variance of a number a row, by weight.
#[derive(Default)]
struct Spread {
    weight: f64,
    sum: f64,
    squares: f64,
}

impl Spread {
    fn add(&mut self, weight: f64, value: f64) {
        self.weight += weight;
        self.sum += weight * value;
        self.squares += weight * value * value;
    }

    fn variance(&self) -> f64 {
        if self.weight > 0.0 { (self.squares / self.weight - (self.sum / self.weight).powi(2)).max(0.0) } else { 0.0 }
    }
}

fn variance(mixture: Mixture<'_>, value: impl Fn(usize) -> f64) -> f64 {
    let mut spread = Spread::default();
    mixture.rows().for_each(|row| spread.add(mixture.table().weight(row), value(row)));
    spread.variance()
}

/// The variance of the rows' total and irreducible losses within a leaf.
fn spread(mixture: Mixture<'_>, loss: &Loss, recalibrated: bool) -> [f64; 2] {
    let Some(moments) = Moments::of(mixture) else { return [0.0; 2] };
    let classes = moments.mean.len();
    let (mut mean, mut point, mut losses) = (vec![0.0; classes], vec![0.0; classes], vec![0.0; classes]);
    let mut spreads = [Spread::default(), Spread::default()];
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
        spreads
            .iter_mut()
            .zip([dot(&mean, &losses), loss.entropy(&point)])
            .for_each(|(spread, x)| spread.add(weight, x));
    }
    spreads.map(|spread| spread.variance())
}
