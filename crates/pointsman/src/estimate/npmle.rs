//! The nonparametric maximum-likelihood law of p* in a cell: a mixture of fixed atoms.
//!
//! Expectation maximisation over the weights of the atoms, started near the fitted Dirichlet law. The start matters, because it is kept
//! in directions that k labels cannot identify. Two classes use a fine grid of atoms; three classes use atoms sampled from the items'
//! posteriors, the vertices and the mean. With more classes such atoms are too sparse.
//!
//! The entropy of the cross-entropy is a sum over classes of −p_c ln p_c, and the law of one p_c is a law of two classes, so it can be
//! fitted for any number of classes.

use std::collections::BTreeMap;

use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;
use statrs::function::beta::beta_reg;

use super::dirichlet::{concentration, concentration_near, draw_into};
use crate::loss::{Loss, Shape};
use crate::table::votes::Votes;

/// Intervals of the grid for two classes.
const GRID_INTERVALS: usize = 100;

/// Sampled atoms for three classes.
const ATOMS: usize = 400;

/// The largest number of expectation-maximisation steps. Every step fits the counts, including their noise, more closely.
pub(super) const STEPS: usize = 300;

/// The smallest number of steps.
const MIN_STEPS: usize = 5;

/// Rows per step with sampled atoms: few rows stay near the start.
const ROWS_PER_STEP_OF_SAMPLED_ATOMS: usize = 10;

/// Labels per step of a law of two classes that is stopped early.
const LABELS_PER_STEP: f64 = 50.0;

/// The part of the start that is uniform over the grid, so that every atom has positive weight.
const UNIFORM_SHARE: f64 = 0.1;

/// The uniform part for the law of one class, per variance of a label: smaller for rare classes.
const UNIFORM_SHARE_PER_VARIANCE: f64 = 0.04;

/// A discrete law of p*: its atoms and their weights.
#[derive(Debug)]
pub(super) struct Law {
    pub(super) atoms: Vec<Vec<f64>>,
    pub(super) weights: Vec<f64>,
}

impl Law {
    /// Fits the law to weighted vote vectors of `rows` rows with this mean.
    pub(super) fn fit(groups: &[(&[u32], f64)], rows: usize, mean: &[f64]) -> Self {
        if mean.len() == 2 {
            return Self::fit_two_classes(groups, mean, STEPS);
        }
        let (atoms, start) = sample_atoms(groups, mean, ATOMS);
        let steps = (rows / ROWS_PER_STEP_OF_SAMPLED_ATOMS).clamp(MIN_STEPS, STEPS);
        let weights = fit_weights(groups, &atoms, start, steps);
        Self { atoms, weights }
    }

    /// Fits the law of two classes in `steps` steps.
    pub(super) fn fit_two_classes(groups: &[(&[u32], f64)], mean: &[f64], steps: usize) -> Self {
        let (atoms, start) = even_grid(groups, mean);
        let weights = fit_weights(groups, &atoms, start, steps);
        Self { atoms, weights }
    }

    /// Fits the law of the share p_c of one class, with atoms (1 − p_c, p_c) that are denser near 0 and 1.
    pub(super) fn fit_class(groups: &[(&[u32], f64)], class: usize, share: f64, start: Start) -> Self {
        let counts = counts_of_class(groups, class);
        let pairs: Vec<(&[u32], f64)> = counts.iter().map(|(counts, weight)| (counts.as_slice(), *weight)).collect();
        let concentration = concentration_near(&pairs, start.rows, &[1.0 - share, share], start.concentration);
        Self::fit_share(&pairs, share, concentration, start.steps)
    }

    /// Fits the law of a share in `steps` steps from the Beta distribution with this mean and concentration, with atoms (1 − p, p).
    /// `pairs` are the counts of the other classes and of the class, with weights.
    pub(super) fn fit_share(pairs: &[(&[u32], f64)], share: f64, concentration: f64, steps: usize) -> Self {
        let uniform_share = UNIFORM_SHARE_PER_VARIANCE * share * (1.0 - share);
        let arcsine = |x: f64| (std::f64::consts::FRAC_PI_2 * x).sin().powi(2);
        let (atoms, start) = grid(concentration, &[1.0 - share, share], arcsine, uniform_share);
        let weights = fit_weights(pairs, &atoms, start, steps);
        Self { atoms, weights }
    }

    /// E g(p*) under this law.
    pub(super) fn expected(&self, value: impl Fn(&[f64]) -> f64) -> f64 {
        self.atoms.iter().zip(&self.weights).map(|(atom, weight)| weight * value(atom)).sum()
    }
}

/// The start of the laws of single classes, and their number of steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    /// The concentration of all classes together, around which that of a class has its prior.
    concentration: f64,
    /// The effective number of rows.
    rows: f64,
    steps: usize,
}

impl Start {
    pub(super) fn new(groups: &[(&[u32], f64)], rows: f64, mean: &[f64], steps: usize) -> Self {
        Self { concentration: concentration(groups, mean), rows, steps }
    }
}

/// E G(p*) under the maximum-likelihood law.
pub(super) fn irreducible(groups: &[(&[u32], f64)], rows: usize, mean: &[f64], loss: &Loss) -> f64 {
    Law::fit(groups, rows, mean).expected(|atom| loss.entropy(atom))
}

/// E G(p*) under a law between the fitted Dirichlet and the maximum-likelihood law, closer to the latter with more labels; for the
/// cross-entropy class by class.
pub(super) fn stopped_early(groups: &[(&[u32], f64)], effective_rows: f64, mean: &[f64], loss: &Loss) -> f64 {
    let (labels, all) = groups.iter().fold((0.0, 0.0), |(labels, all), &(counts, weight)| {
        (labels + weight * Votes::new(counts).k() as f64, all + weight)
    });
    let steps = ((effective_rows * labels / all / LABELS_PER_STEP) as usize).clamp(MIN_STEPS, STEPS);
    match loss.shape() {
        Shape::Log => {
            let classes = mean.iter().enumerate().filter(|(_, share)| **share > 0.0);
            let start = Start::new(groups, effective_rows, mean, steps);
            let law = |(class, &share): (usize, &f64)| Law::fit_class(groups, class, share, start);
            classes.map(|class| law(class).expected(|p| entropy_term(p[1]))).sum()
        }
        _ if mean.len() == 2 => Law::fit_two_classes(groups, mean, steps).expected(|atom| loss.entropy(atom)),
        _ => irreducible(groups, effective_rows as usize, mean, loss),
    }
}

/// −x ln x.
pub(super) fn entropy_term(x: f64) -> f64 {
    if x > 0.0 { -x * x.ln() } else { 0.0 }
}

/// The counts of the other classes and of one class, with the weight of the items that have them.
pub(super) fn counts_of_class(groups: &[(&[u32], f64)], class: usize) -> BTreeMap<[u32; 2], f64> {
    let mut pairs = BTreeMap::<[u32; 2], f64>::new();
    for &(counts, weight) in groups {
        let others = Votes::new(counts).k() - u64::from(counts[class]);
        *pairs.entry([u32::try_from(others).unwrap_or(u32::MAX), counts[class]]).or_default() += weight;
    }
    pairs
}

/// The atoms of two classes and their starting weights.
pub(super) fn even_grid(groups: &[(&[u32], f64)], mean: &[f64]) -> (Vec<Vec<f64>>, Vec<f64>) {
    grid(concentration(groups, mean), mean, |x| x, UNIFORM_SHARE)
}

/// Atoms p₁ at `place` of an even grid, weighted by the mass of Beta(a p̄₁, a p̄₀) around each, mixed with a uniform part.
fn grid(a: f64, mean: &[f64], place: impl Fn(f64) -> f64, uniform_share: f64) -> (Vec<Vec<f64>>, Vec<f64>) {
    let (one, zero) = (a * mean[1], a * mean[0]);
    let below = |edge: f64| match edge {
        x if x <= 0.0 => 0.0,
        x if x >= 1.0 => 1.0,
        // A mean at a vertex, or beyond it by rounding, is a point mass there.
        x if one <= 0.0 || zero <= 0.0 => f64::from(u8::from(x >= mean[1])),
        x => beta_reg(one, zero, x),
    };
    let (even, half) = (|j: usize| j as f64 / GRID_INTERVALS as f64, 0.5 / GRID_INTERVALS as f64);
    let atoms = (0..=GRID_INTERVALS).map(|j| vec![1.0 - place(even(j)), place(even(j))]).collect();
    let mass = |j: usize| {
        let low = if j == 0 { 0.0 } else { below(place(even(j) - half)) };
        let high = if j == GRID_INTERVALS { 1.0 } else { below(place(even(j) + half)) };
        high - low
    };
    (
        atoms,
        (0..=GRID_INTERVALS)
            .map(|j| (1.0 - uniform_share) * mass(j) + uniform_share / (GRID_INTERVALS + 1) as f64)
            .collect(),
    )
}

/// `many` atoms sampled from the items' posteriors, the vertices and the mean, with equal starting weights.
pub(super) fn sample_atoms(groups: &[(&[u32], f64)], mean: &[f64], many: usize) -> (Vec<Vec<f64>>, Vec<f64>) {
    let a = concentration(groups, mean);
    let all: f64 = groups.iter().map(|(_, weight)| weight).sum();
    let mut random = Pcg64::seed_from_u64(0xA7035);
    let mut atoms: Vec<Vec<f64>> = Vec::with_capacity(many + mean.len() + 1);
    let mut posterior = vec![0.0; mean.len()];
    let (mut group, mut until) = (0, groups.first().map_or(0.0, |(_, weight)| *weight));
    for place in 0..many {
        // Systematic sampling: each vote vector in proportion to its weight.
        while until <= place as f64 * all / many as f64 && group + 1 < groups.len() {
            group += 1;
            until += groups[group].1;
        }
        let Some((counts, _)) = groups.get(group) else { break };
        for ((slot, share), &n) in posterior.iter_mut().zip(mean).zip(*counts) {
            *slot = a * share + f64::from(n);
        }
        let mut atom = vec![0.0; mean.len()];
        draw_into(&posterior, &mut random, &mut atom);
        atoms.push(atom);
    }
    for class in 0..mean.len() {
        atoms.push((0..mean.len()).map(|c| f64::from(u8::from(c == class))).collect());
    }
    atoms.push(mean.to_vec());
    let start = vec![1.0 / atoms.len() as f64; atoms.len()];
    (atoms, start)
}

/// The weights of atoms fitted to the counts by expectation maximisation.
fn fit_weights(groups: &[(&[u32], f64)], atoms: &[Vec<f64>], mut weights: Vec<f64>, steps: usize) -> Vec<f64> {
    let mut weight_of_counts = BTreeMap::<&[u32], f64>::new();
    let mut all = 0.0;
    for &(counts, weight) in groups {
        *weight_of_counts.entry(counts).or_default() += weight;
        all += weight;
    }
    let likelihood = likelihood(atoms);
    let groups: Vec<(f64, Vec<f64>)> =
        weight_of_counts.into_iter().map(|(counts, weight)| (weight / all, likelihood(counts))).collect();
    let groups: Vec<(f64, &[f64])> = groups.iter().map(|(share, likelihood)| (*share, likelihood.as_slice())).collect();
    maximise_likelihood(&groups, &mut weights, steps);
    weights
}

/// Takes `steps` expectation-maximisation steps on the weights of atoms. `groups` holds the share of each distinct vote vector and its
/// likelihood under each atom.
pub(super) fn maximise_likelihood(groups: &[(f64, &[f64])], weights: &mut [f64], steps: usize) {
    let mut next = vec![0.0; weights.len()];
    for _ in 0..steps {
        next.fill(0.0);
        for (share, likelihood) in groups {
            let total: f64 = weights.iter().zip(*likelihood).map(|(w, l)| w * l).sum();
            if total > 0.0 {
                let scale = share / total;
                next.iter_mut().zip(*likelihood).for_each(|(slot, l)| *slot += scale * l);
            }
        }
        weights.iter_mut().zip(&next).for_each(|(w, factor)| *w *= factor);
    }
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|w| *w /= sum);
}

/// The likelihood of counts under each atom, scaled so that the largest is one.
pub(super) fn likelihood(atoms: &[Vec<f64>]) -> impl Fn(&[u32]) -> Vec<f64> + Sync {
    let logs: Vec<Vec<f64>> = atoms.iter().map(|atom| atom.iter().map(|p| p.ln()).collect()).collect();
    move |counts| {
        let log = |logs: &Vec<f64>| -> f64 {
            // A class without labels contributes nothing, even if the atom gives it probability zero.
            counts.iter().zip(logs).filter(|(n, _)| **n > 0).map(|(&n, log)| f64::from(n) * log).sum()
        };
        let logs: Vec<f64> = logs.iter().map(log).collect();
        let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        logs.into_iter().map(|log| (log - largest).exp()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::vote_groups::weighted_distinct_votes;
    use crate::router::Mixture;
    use crate::table::Table;

    #[test]
    fn weighted_rows_equal_repeated_rows() {
        let table = |times: &dyn Fn(u32) -> u32| {
            let rows: Vec<u32> = (0..50).flat_map(|i| vec![i; times(i) as usize]).collect();
            let votes = rows.iter().flat_map(|i| [i % 4, i % 3, 1 + i % 5]).collect();
            let probs = [0.2, 0.3, 0.5].repeat(rows.len());
            (Table::new(["a", "b", "c"], probs).and_then(|table| table.with_votes(votes)).unwrap(), rows)
        };
        let times = |i: u32| 1 + i % 3;
        let (repeated, _) = table(&times);
        let (once, rows) = table(&|_| 1);
        let weighted = once.with_weights(rows.iter().map(|&i| f64::from(times(i))).collect()).unwrap();
        let [repeated, weighted] = [&repeated, &weighted].map(|table| {
            let mixture = Mixture::all_rows_of(table);
            sample_atoms(&weighted_distinct_votes(mixture), &mixture.centroid().unwrap(), ATOMS).0
        });
        for (a, b) in repeated.iter().zip(&weighted) {
            assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6), "{a:?} {b:?}");
        }
        assert_eq!(repeated.len(), weighted.len());
    }
}
