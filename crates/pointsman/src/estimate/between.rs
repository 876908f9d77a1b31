//! Empirical Bayes over the leaves of a tree: what few rows say is drawn towards what all rows say.

use super::moments::Moments;
use super::{Decomposition, RowLosses};
use crate::loss::Loss;
use crate::router::Mixture;
use crate::table::simplex::dot;

/// Draws each leaf's mean m towards the mean of all: (n m + κ m̄)/(n + κ) with κ = σ²/τ², the variance within leaves over that
/// between them; of the total loss, the irreducible loss and that of each measured oracle separately. Panels follow the irreducible
/// loss, so that they stay above it.
///
/// Leaves whose split is known learn of the irreducible loss from each other alone: what is only bounded elsewhere would leave
/// bounds here. The others' ends are drawn as strongly as each other, so that they cannot cross.
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
    let total = Pull::of(leaves, |_| true, |leaf| spreads[leaf][0], |leaf| leaf.total);
    let measured = |place: usize| {
        let values = oracles.measured(place)?;
        let spread = |leaf: usize| variance(mixtures[leaf], |row| values[row]);
        Some(Pull::of(leaves, |_| true, spread, |leaf| leaf.oracles[place][0]))
    };
    let measured: Vec<Option<Pull>> = (0..count).map(measured).collect();
    // The ends of the irreducible loss, then those of each oracle.
    let pulls = |counts: fn(&Decomposition) -> bool| {
        let low = Pull::of(leaves, counts, |leaf| spreads[leaf][1], |leaf| leaf.irreducible_low);
        let high = Pull::of(leaves, counts, |leaf| spreads[leaf][1], |leaf| leaf.irreducible_high);
        let strength = low.strength.min(high.strength);
        let towards = |centre: f64| Pull { centre, strength };
        let of_oracle = |(place, measured): (usize, &Option<Pull>)| match measured {
            Some(pull) => [*pull; 2],
            None => [0, 1].map(|end| towards(centre(leaves, counts, |leaf| leaf.oracles[place][end]))),
        };
        let own: Vec<[Pull; 2]> = measured.iter().enumerate().map(of_oracle).collect();
        ([low, high].map(|pull| towards(pull.centre)), own)
    };
    let (known, bounded) = (pulls(Decomposition::is_known), pulls(|_| true));
    for leaf in leaves.iter_mut().flatten() {
        let n = leaf.effective_rows;
        let ([low, high], own) = if leaf.is_known() { &known } else { &bounded };
        leaf.total = total.pulled(n, leaf.total);
        leaf.irreducible_low = low.pulled(n, leaf.irreducible_low);
        leaf.irreducible_high = high.pulled(n, leaf.irreducible_high);
        for (ends, pulls) in leaf.oracles.iter_mut().zip(own) {
            ends.iter_mut().zip(pulls).for_each(|(end, pull)| *end = pull.pulled(n, *end));
        }
    }
}

/// Towards what, and how strongly.
#[derive(Debug, Clone, Copy)]
struct Pull {
    centre: f64,
    /// κ; infinite if the leaves do not differ by more than chance.
    strength: f64,
}

impl Pull {
    /// By the leaves that count.
    fn of(
        leaves: &[Option<Decomposition>],
        counts: fn(&Decomposition) -> bool,
        spread: impl Fn(usize) -> f64,
        value: impl Fn(&Decomposition) -> f64,
    ) -> Self {
        let centre = centre(leaves, counts, &value);
        let (mut rows, mut squares, mut count, mut within, mut between) = (0.0, 0.0, 0.0, 0.0, 0.0);
        let there = leaves.iter().enumerate().filter_map(|(place, leaf)| Some((place, leaf.as_ref()?)));
        for (place, leaf) in there.filter(|(_, leaf)| counts(leaf)) {
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

/// The mean over all rows of the leaves that count.
fn centre(
    leaves: &[Option<Decomposition>],
    counts: fn(&Decomposition) -> bool,
    value: impl Fn(&Decomposition) -> f64,
) -> f64 {
    let (mut sum, mut weight) = (0.0, 0.0);
    for leaf in leaves.iter().flatten().filter(|leaf| counts(leaf)) {
        sum += leaf.weight * value(leaf);
        weight += leaf.weight;
    }
    sum / weight
}

/// The variance of a number per row, by weight.
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
