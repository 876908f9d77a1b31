//! The law of p* in a cell without assuming its form: the likeliest mixture on a set of atoms.
//!
//! Expectation maximisation over the weights of fixed atoms, started near the fitted Dirichlet: in directions that k labels
//! cannot identify the start is what remains, so it matters. Two classes have a fine grid of atoms; three have atoms
//! drawn from the items' posteriors, the vertices and the mean. With more classes atoms are too sparse: use another estimator.

use std::collections::BTreeMap;

use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;
use statrs::function::beta::beta_reg;

use super::dirichlet::{concentration, draw_into};
use crate::loss::Loss;
use crate::router::Mixture;

/// The most classes this is good for.
pub(super) const MAX_CLASSES: usize = 3;

/// Intervals of the grid for two classes.
const GRID: usize = 100;

/// Atoms drawn for three classes.
const ATOMS: usize = 400;

/// Steps of the maximisation. Each fits the counts more closely, noise included: atoms drawn for few rows are left near
/// their start.
const STEPS: usize = 300;
const FEWEST_STEPS: usize = 5;
const ROWS_A_STEP: usize = 10;

/// The likeliest law: its atoms and their weights.
pub(super) fn law(mixture: Mixture<'_>, mean: &[f64]) -> (Vec<Vec<f64>>, Vec<f64>) {
    let two = mean.len() == 2;
    let (atoms, start) = if two { grid(mixture, mean) } else { drawn(mixture, mean) };
    let steps = if two { STEPS } else { (mixture.len() / ROWS_A_STEP).clamp(FEWEST_STEPS, STEPS) };
    let weights = maximise(mixture, &atoms, start, steps);
    (atoms, weights)
}

/// E G(p*) under the likeliest law.
pub(super) fn irreducible(mixture: Mixture<'_>, mean: &[f64], loss: &Loss) -> f64 {
    let (atoms, weights) = law(mixture, mean);
    atoms.iter().zip(&weights).map(|(atom, weight)| weight * loss.entropy(atom)).sum()
}

/// A grid over p₁ with nine tenths of the fitted Beta's mass and one tenth spread evenly.
fn grid(mixture: Mixture<'_>, mean: &[f64]) -> (Vec<Vec<f64>>, Vec<f64>) {
    let a = concentration(mixture, mean);
    let (one, zero) = (a * mean[1], a * mean[0]);
    let below = |edge: f64| match edge {
        x if x <= 0.0 => 0.0,
        x if x >= 1.0 => 1.0,
        // A mean at a vertex is a point mass there.
        x if one == 0.0 || zero == 0.0 => f64::from(u8::from(x >= mean[1])),
        x => beta_reg(one, zero, x),
    };
    let point = |j: usize| j as f64 / GRID as f64;
    let atoms = (0..=GRID).map(|j| vec![1.0 - point(j), point(j)]).collect();
    let half = 0.5 / GRID as f64;
    let mass = |j: usize| {
        let low = if j == 0 { 0.0 } else { below(point(j) - half) };
        below(point(j) + half) - low
    };
    (atoms, (0..=GRID).map(|j| 0.9 * mass(j) + 0.1 / (GRID + 1) as f64).collect())
}

/// Atoms from the items' posteriors, the vertices and the mean, all alike at the start.
fn drawn(mixture: Mixture<'_>, mean: &[f64]) -> (Vec<Vec<f64>>, Vec<f64>) {
    let a = concentration(mixture, mean);
    let weight = |row: usize| mixture.table().weight(row);
    let all: f64 = mixture.rows().map(weight).sum();
    let mut rows = mixture.rows().scan(0.0, |sum, row| {
        *sum += weight(row);
        Some((row, *sum))
    });
    let mut next = rows.next();
    let mut random = Pcg64::seed_from_u64(0xA7035);
    let mut atoms: Vec<Vec<f64>> = Vec::with_capacity(ATOMS + mean.len() + 1);
    let mut posterior = vec![0.0; mean.len()];
    for atom in 0..ATOMS {
        // Each row as often as it weighs, and not by chance.
        while next.is_some_and(|(_, until)| until <= atom as f64 * all / ATOMS as f64) {
            next = rows.next().or(next.map(|(row, _)| (row, f64::INFINITY)));
        }
        let Some((row, _)) = next else { break };
        for ((slot, share), &n) in posterior.iter_mut().zip(mean).zip(mixture.votes(row).counts()) {
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

/// The weights that make the counts likeliest, by expectation maximisation.
fn maximise(mixture: Mixture<'_>, atoms: &[Vec<f64>], mut weights: Vec<f64>, steps: usize) -> Vec<f64> {
    let mut groups = BTreeMap::<&[u32], f64>::new();
    let mut all = 0.0;
    for row in mixture.rows() {
        let weight = mixture.table().weight(row);
        *groups.entry(mixture.votes(row).counts()).or_default() += weight;
        all += weight;
    }
    let likelihood = likelihood(atoms);
    let groups: Vec<(f64, Vec<f64>)> =
        groups.into_iter().map(|(counts, weight)| (weight / all, likelihood(counts))).collect();
    let mut next = vec![0.0; atoms.len()];
    for _ in 0..steps {
        next.fill(0.0);
        for (share, likelihood) in &groups {
            let total: f64 = weights.iter().zip(likelihood).map(|(w, l)| w * l).sum();
            if total > 0.0 {
                let scale = share / total;
                next.iter_mut().zip(likelihood).for_each(|(slot, l)| *slot += scale * l);
            }
        }
        weights.iter_mut().zip(&next).for_each(|(w, factor)| *w *= factor);
    }
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|w| *w /= sum);
    weights
}

/// How likely counts are under each atom, up to a factor: scaled so that the largest is one.
pub(super) fn likelihood(atoms: &[Vec<f64>]) -> impl Fn(&[u32]) -> Vec<f64> + Sync {
    let logs: Vec<Vec<f64>> = atoms.iter().map(|atom| atom.iter().map(|p| p.ln()).collect()).collect();
    move |counts| {
        let log = |logs: &Vec<f64>| -> f64 {
            // No label of a class, no evidence about it, even if it is impossible.
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
    use crate::table::Table;

    #[test]
    fn a_row_of_weight_three_is_three_rows() {
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
            drawn(mixture, &mixture.centroid().unwrap()).0
        });
        for (a, b) in repeated.iter().zip(&weighted) {
            assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6), "{a:?} {b:?}");
        }
        assert_eq!(repeated.len(), weighted.len());
    }
}
