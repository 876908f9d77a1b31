//! The law of p* in a cell without assuming its form: the likeliest mixture on a set of atoms.
//!
//! Expectation maximisation over the weights of fixed atoms, started near the fitted Dirichlet: in directions that k labels
//! cannot identify the start is what remains, so it matters. Two classes have a fine grid of atoms; three have atoms
//! drawn from the items' posteriors, the vertices and the mean. With more classes such atoms are too sparse.
//!
//! The entropy of the cross-entropy is a sum over classes of −p_c ln p_c, and the law of one p_c is that of two classes: there any
//! number of classes will do.

use std::collections::BTreeMap;

use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;
use statrs::function::beta::beta_reg;

use super::dirichlet::{concentration, concentration_near, draw_into};
use crate::loss::{Loss, Shape};
use crate::table::votes::Votes;

/// Intervals of the grid for two classes.
const GRID: usize = 100;

/// Atoms drawn for three classes.
const ATOMS: usize = 400;

/// Steps of the maximisation. Each fits the counts more closely, noise included: atoms drawn for few rows are left near their start.
pub(super) const STEPS: usize = 300;
const FEWEST_STEPS: usize = 5;
const ROWS_PER_STEP_OF_DRAWN_ATOMS: usize = 10;

/// Stopped early, a law of two classes takes one step for so many labels.
const LABELS_PER_STEP: f64 = 50.0;

/// How much of the start is spread evenly over the grid, so that no atom is out of reach; of one class so much per variance of a label, since a
/// rare class has little to spare.
const EVEN_SHARE: f64 = 0.1;
const EVEN_SHARE_PER_VARIANCE: f64 = 0.04;

/// A discrete law of p*: its atoms and their weights.
#[derive(Debug)]
pub(super) struct Law {
    pub(super) atoms: Vec<Vec<f64>>,
    pub(super) weights: Vec<f64>,
}

impl Law {
    /// The likeliest law behind distinct votes and their weights, of so many rows with this mean.
    pub(super) fn fit(groups: &[(&[u32], f64)], rows: usize, mean: &[f64]) -> Self {
        if mean.len() == 2 {
            return Self::of_two_classes(groups, mean, STEPS);
        }
        let (atoms, start) = drawn(groups, mean, ATOMS);
        let steps = (rows / ROWS_PER_STEP_OF_DRAWN_ATOMS).clamp(FEWEST_STEPS, STEPS);
        let weights = maximise(groups, &atoms, start, steps);
        Self { atoms, weights }
    }

    /// The likeliest law of two classes, after so many steps of the maximisation.
    pub(super) fn of_two_classes(groups: &[(&[u32], f64)], mean: &[f64], steps: usize) -> Self {
        let (atoms, start) = even_grid(groups, mean);
        let weights = maximise(groups, &atoms, start, steps);
        Self { atoms, weights }
    }

    /// The likeliest law of the share p_c of one class, with atoms (1 − p_c, p_c), the closer the nearer to 0 and 1.
    pub(super) fn of_class(groups: &[(&[u32], f64)], class: usize, share: f64, start: Start) -> Self {
        let counts = counts_of_class(groups, class);
        let pairs: Vec<(&[u32], f64)> = counts.iter().map(|(counts, weight)| (counts.as_slice(), *weight)).collect();
        let concentration = concentration_near(&pairs, start.rows, &[1.0 - share, share], start.concentration);
        Self::of_share(&pairs, share, concentration, start.steps)
    }

    /// So many steps from the Beta distribution with this mean and concentration towards the likeliest law of a share, with atoms
    /// (1 − p, p). `pairs` are counts of other classes and of the one, and their weights.
    pub(super) fn of_share(pairs: &[(&[u32], f64)], share: f64, concentration: f64, steps: usize) -> Self {
        let even_share = EVEN_SHARE_PER_VARIANCE * share * (1.0 - share);
        let arcsine = |x: f64| (std::f64::consts::FRAC_PI_2 * x).sin().powi(2);
        let (atoms, start) = grid(concentration, &[1.0 - share, share], arcsine, even_share);
        let weights = maximise(pairs, &atoms, start, steps);
        Self { atoms, weights }
    }

    /// E g(p*) under this law.
    pub(super) fn expected(&self, value: impl Fn(&[f64]) -> f64) -> f64 {
        self.atoms.iter().zip(&self.weights).map(|(atom, weight)| weight * value(atom)).sum()
    }
}

/// Where the laws of single classes start, and how far they go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    /// The concentration of all classes together: that of a class is taken for near it.
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

/// E G(p*) under the likeliest law.
pub(super) fn irreducible(groups: &[(&[u32], f64)], rows: usize, mean: &[f64], loss: &Loss) -> f64 {
    Law::fit(groups, rows, mean).expected(|atom| loss.entropy(atom))
}

/// E G(p*) under a law between the fitted Dirichlet and the likeliest one, the nearer to the latter the more labels there are;
/// for the cross-entropy class by class.
pub(super) fn stopped_early(groups: &[(&[u32], f64)], effective_rows: f64, mean: &[f64], loss: &Loss) -> f64 {
    let (labels, all) = groups.iter().fold((0.0, 0.0), |(labels, all), &(counts, weight)| {
        (labels + weight * Votes::new(counts).k() as f64, all + weight)
    });
    let steps = ((effective_rows * labels / all / LABELS_PER_STEP) as usize).clamp(FEWEST_STEPS, STEPS);
    match loss.shape() {
        Shape::Log => {
            let classes = mean.iter().enumerate().filter(|(_, share)| **share > 0.0);
            let start = Start::new(groups, effective_rows, mean, steps);
            let law = |(class, &share): (usize, &f64)| Law::of_class(groups, class, share, start);
            classes.map(|class| law(class).expected(|p| entropy_term(p[1]))).sum()
        }
        _ if mean.len() == 2 => Law::of_two_classes(groups, mean, steps).expected(|atom| loss.entropy(atom)),
        _ => irreducible(groups, effective_rows as usize, mean, loss),
    }
}

/// −x ln x.
pub(super) fn entropy_term(x: f64) -> f64 {
    if x > 0.0 { -x * x.ln() } else { 0.0 }
}

/// How many labels of each item are of other classes and of this one, and the weight of such items.
pub(super) fn counts_of_class(groups: &[(&[u32], f64)], class: usize) -> BTreeMap<[u32; 2], f64> {
    let mut pairs = BTreeMap::<[u32; 2], f64>::new();
    for &(counts, weight) in groups {
        let others = Votes::new(counts).k() - u64::from(counts[class]);
        *pairs.entry([u32::try_from(others).unwrap_or(u32::MAX), counts[class]]).or_default() += weight;
    }
    pairs
}

/// Atoms of two classes, with the masses that the maximisation starts from.
pub(super) fn even_grid(groups: &[(&[u32], f64)], mean: &[f64]) -> (Vec<Vec<f64>>, Vec<f64>) {
    grid(concentration(groups, mean), mean, |x| x, EVEN_SHARE)
}

/// Atoms over p₁ at `place` of an even grid, with the mass that Beta(a p̄₁, a p̄₀) has around each; some of it spread evenly.
fn grid(a: f64, mean: &[f64], place: impl Fn(f64) -> f64, even_share: f64) -> (Vec<Vec<f64>>, Vec<f64>) {
    let (one, zero) = (a * mean[1], a * mean[0]);
    let below = |edge: f64| match edge {
        x if x <= 0.0 => 0.0,
        x if x >= 1.0 => 1.0,
        // A mean at a vertex is a point mass there.
        x if one == 0.0 || zero == 0.0 => f64::from(u8::from(x >= mean[1])),
        x => beta_reg(one, zero, x),
    };
    let (even, half) = (|j: usize| j as f64 / GRID as f64, 0.5 / GRID as f64);
    let atoms = (0..=GRID).map(|j| vec![1.0 - place(even(j)), place(even(j))]).collect();
    let mass = |j: usize| {
        let low = if j == 0 { 0.0 } else { below(place(even(j) - half)) };
        let high = if j == GRID { 1.0 } else { below(place(even(j) + half)) };
        high - low
    };
    (atoms, (0..=GRID).map(|j| (1.0 - even_share) * mass(j) + even_share / (GRID + 1) as f64).collect())
}

/// So many atoms from the items' posteriors, the vertices and the mean, all alike at the start.
pub(super) fn drawn(groups: &[(&[u32], f64)], mean: &[f64], many: usize) -> (Vec<Vec<f64>>, Vec<f64>) {
    let a = concentration(groups, mean);
    let all: f64 = groups.iter().map(|(_, weight)| weight).sum();
    let mut random = Pcg64::seed_from_u64(0xA7035);
    let mut atoms: Vec<Vec<f64>> = Vec::with_capacity(many + mean.len() + 1);
    let mut posterior = vec![0.0; mean.len()];
    let (mut group, mut until) = (0, groups.first().map_or(0.0, |(_, weight)| *weight));
    for place in 0..many {
        // Votes as often as they weigh, and not by chance.
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

/// The weights that make the counts likeliest, by expectation maximisation.
fn maximise(groups: &[(&[u32], f64)], atoms: &[Vec<f64>], mut weights: Vec<f64>, steps: usize) -> Vec<f64> {
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
    climb(&groups, &mut weights, steps);
    weights
}

/// So many steps of expectation maximisation towards the weights of atoms under which votes are likeliest. Of each distinct vote vector its
/// share of all and its likelihood under each atom.
pub(super) fn climb(groups: &[(f64, &[f64])], weights: &mut [f64], steps: usize) {
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
    use crate::estimate::vote_groups::weighted_distinct_votes;
    use crate::router::Mixture;
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
            drawn(&weighted_distinct_votes(mixture), &mixture.centroid().unwrap(), ATOMS).0
        });
        for (a, b) in repeated.iter().zip(&weighted) {
            assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6), "{a:?} {b:?}");
        }
        assert_eq!(repeated.len(), weighted.len());
    }
}
