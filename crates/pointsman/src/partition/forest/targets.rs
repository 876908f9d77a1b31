//! The targets of trees: what the labels of each row say, whatever the task.

use super::class_weights::ClassWeights;
use crate::parallel::prelude::*;
use crate::table::Table;
use crate::table::votes::Votes;

/// The number of targets of a table without measured oracles.
pub(super) const TARGETS_OF_LABELS: usize = 3;

/// The largest number of measured oracles whose losses are targets.
pub(super) const MAX_ORACLE_TARGETS: usize = 3;

/// The smallest number of rows per parallel task.
const MIN_ROWS_PER_TASK: usize = 256;

/// The targets of each row, divided by their standard deviations, and its weight.
///
/// They do not depend on the task's loss or prices. A partition that separates rows by them also separates rows by the losses of tasks.
///
/// * irreducible: Û = (k/(k−1))(1 − ‖ȳ‖²), unbiased for 1 − ‖p*‖² from two labels on,
/// * reducible: u − Û with u = 1 − 2⟨ȳ, f⟩ + ‖f‖², unbiased for ‖p* − f‖²,
/// * the reducible loss of acts: see [`ClassWeights::mean_excess`],
/// * for each of some measured oracles o, the loss beyond the irreducible one: u(o) − Û, unbiased for ‖p* − o‖².
#[derive(Debug, Clone)]
pub(super) struct Targets<const N: usize> {
    pub(super) values: Vec<[f64; N]>,
    pub(super) weights: Vec<f64>,
}

/// The irreducible and the reducible Brier loss of a row, without bias; `None` if it has one label. `dist` is a buffer.
pub(super) fn brier_decomposition(table: &Table, row: usize, dist: &mut [f64]) -> Option<[f64; 2]> {
    let votes = table.votes(row)?;
    let irreducible = votes.disagreement()?;
    table.dist_into(row, dist);
    Some([irreducible, brier_loss(votes, dist) - irreducible])
}

/// The Brier loss of a distribution by the labels of a row: 1 − 2⟨ȳ, f⟩ + ‖f‖².
fn brier_loss(votes: Votes<'_>, dist: &[f64]) -> f64 {
    let k = votes.k() as f64;
    let (mut product, mut square) = (0.0, 0.0);
    for (&n, f) in votes.counts().iter().zip(dist) {
        product += f64::from(n) / k * *f;
        square += *f * *f;
    }
    1.0 - 2.0 * product + square
}

impl<const N: usize> Targets<N> {
    /// The targets of rows that all carry two labels or more; `N` is [`TARGETS_OF_LABELS`] plus the number of `oracles`, which are given by
    /// their predictions for all rows of the table.
    pub(super) fn new(table: &Table, rows: &[u32], oracles: &[&[f64]]) -> Self {
        let classes = table.classes().len();
        let class_weights = ClassWeights::new(classes);
        let of_row = |(dist, mean): &mut (Vec<f64>, Vec<f64>), &row: &u32| {
            let row = row as usize;
            let [irreducible, reducible] = brier_decomposition(table, row, dist)?;
            let votes = table.votes(row)?;
            votes.mean_into(mean);
            let mut own = [0.0; N];
            own[..TARGETS_OF_LABELS].copy_from_slice(&[irreducible, reducible, class_weights.mean_excess(mean, dist)]);
            for (target, oracle) in own[TARGETS_OF_LABELS..].iter_mut().zip(oracles) {
                *target = brier_loss(votes, &oracle[row * classes..][..classes]) - irreducible;
            }
            Some(own)
        };
        let buffers = || (vec![0.0; classes], vec![0.0; classes]);
        let found: Vec<Option<[f64; N]>> =
            rows.par_iter().with_min_len(MIN_ROWS_PER_TASK).map_init(buffers, of_row).collect();
        let mut values: Vec<[f64; N]> = found.into_iter().flatten().collect();
        let weights = weights_of(table, rows);
        let scales: [f64; N] = std::array::from_fn(|target| {
            let deviation = standard_deviation(&weights, |i| values[i][target]);
            if deviation > 1e-9 { deviation } else { 1.0 }
        });
        for value in &mut values {
            value.iter_mut().zip(scales).for_each(|(x, scale)| *x /= scale);
        }
        Self { values, weights }
    }
}

/// The oracles whose losses are targets, by their predictions: all measured oracles of the table or, if there are too many, those whose loss
/// beyond the irreducible one varies most over `rows`.
pub(super) fn oracle_targets<'a>(table: &'a Table, rows: &[u32]) -> Vec<&'a [f64]> {
    let mut oracles: Vec<(usize, &[f64])> = table.oracles().map(|(_, answers)| answers).enumerate().collect();
    if oracles.len() > MAX_ORACLE_TARGETS {
        let (classes, weights) = (table.classes().len(), weights_of(table, rows));
        let excess = |answers: &[f64], row: usize| {
            let votes = table.votes(row)?;
            Some(brier_loss(votes, &answers[row * classes..][..classes]) - votes.disagreement()?)
        };
        let spread =
            |answers: &[f64]| standard_deviation(&weights, |i| excess(answers, rows[i] as usize).unwrap_or_default());
        let mut spreads: Vec<(f64, usize)> = oracles.iter().map(|&(place, answers)| (spread(answers), place)).collect();
        spreads.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        spreads.truncate(MAX_ORACLE_TARGETS);
        oracles.retain(|(place, _)| spreads.iter().any(|(_, kept)| kept == place));
    }
    oracles.into_iter().map(|(_, answers)| answers).collect()
}

fn weights_of(table: &Table, rows: &[u32]) -> Vec<f64> {
    rows.iter().map(|&row| table.weight(row as usize)).collect()
}

/// The standard deviation of one number per weight.
fn standard_deviation(weights: &[f64], value: impl Fn(usize) -> f64) -> f64 {
    let all: f64 = weights.iter().sum();
    let mean = |value: &dyn Fn(usize) -> f64| weights.iter().enumerate().map(|(i, w)| w * value(i)).sum::<f64>() / all;
    let centre = mean(&value);
    mean(&|i| (value(i) - centre).powi(2)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four rows of two labels; the first answers are the truth everywhere, the last ones are wrong in half of the rows.
    #[test]
    fn oracles_whose_losses_vary_most_are_targets() {
        let sure = [[1.0, 0.0], [0.0, 1.0]];
        let table = Table::new(["a", "b"], vec![0.5; 8]).unwrap().with_votes([2, 0, 0, 2].repeat(2)).unwrap();
        let answers = |mistakes: usize| -> Vec<f64> {
            (0..4).flat_map(|row| sure[(row + usize::from(row < mistakes)) % 2]).collect()
        };
        let rows = [0, 1, 2, 3];
        let mistakes = |count: usize, table: &Table| -> Vec<usize> {
            let mut table = table.clone();
            for (place, mistakes) in [0, 4, 1, 2, 3].into_iter().take(count).enumerate() {
                table = table.with_oracle(format!("o{place}"), answers(mistakes)).unwrap();
            }
            let found = oracle_targets(&table, &rows);
            found.iter().map(|own| (0..5).find(|&mistakes| answers(mistakes) == **own).unwrap()).collect()
        };
        assert!(mistakes(0, &table).is_empty());
        assert_eq!(mistakes(3, &table), [0, 4, 1]);
        // Always right and always wrong do not vary.
        assert_eq!(mistakes(5, &table), [1, 2, 3]);
    }

    #[test]
    fn targets_have_variance_one_and_are_those_of_the_labels() {
        let table = Table::new(["a", "b"], vec![0.8, 0.2, 0.6, 0.4, 0.3, 0.7]).unwrap();
        let table = table.with_votes(vec![3, 0, 1, 2, 2, 1]).unwrap();
        let table = table.with_oracle("strong", vec![0.9, 0.1, 0.5, 0.5, 0.0, 1.0]).unwrap();
        let rows = [0, 1, 2];
        let Targets { values, weights } = Targets::<4>::new(&table, &rows, &oracle_targets(&table, &rows));
        let deviation = |target: usize| standard_deviation(&weights, |i| values[i][target]);
        assert!((0..4).all(|target| (deviation(target) - 1.0).abs() < 1e-12));
        // Û is 0, ⅔ and ⅔. The Brier loss of the oracle is 0.02, ½ and 4/3, so its excess is 0.02, −⅙ and ⅔.
        let ratio = |target: usize, a: usize, b: usize| values[a][target] / values[b][target];
        assert_eq!([values[0][0], ratio(0, 1, 2)], [0.0, 1.0]);
        assert!((ratio(3, 1, 0) + 1.0 / 6.0 / 0.02).abs() < 1e-9 && (ratio(3, 2, 1) + 4.0).abs() < 1e-9);
    }
}
