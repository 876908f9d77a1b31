//! A random order of rows that does not depend on their labels. Halves, bootstrap samples, folds and betting sequences use it.
//!
//! Results must not depend on the order of the table, so the order is derived from the rows themselves. Sorting by content, votes
//! included, and sampling by rank would depend on the votes: among equal predictions the row with more votes for one class always
//! has the higher rank, which biases every sample by rank in the same direction.
//!
//! Here rows are sorted by a hash of everything except their votes and then shuffled with a seed derived from the same hashes. The
//! place of a row with unique content therefore depends on no vote. Rows that are equal up to votes and weight are shuffled among
//! themselves. The seed of that shuffle includes the multiset of their votes: without it, the same items labelled again would get the
//! same permutation of the sorted votes, and the same error. Given the multiset, every assignment of votes to places is equally likely,
//! which is what independence from the votes requires.
//!
//! Content is hashed in single precision, so the same table as `f32`, `f64` or decimal text has the same order.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

use super::compare_content;
use crate::numeric::mix::{mix, shuffle};
use crate::parallel::prelude::*;
use crate::table::Table;
use crate::table::predictions::match_precision;
use crate::table::simplex::Real;
use crate::table::votes::Votes;

/// The given rows of a table in a random order that depends on neither their votes nor their original order.
pub(crate) fn order(table: &Table, rows: impl IntoIterator<Item = u32>, seed: u64) -> Vec<u32> {
    let mut keyed: Vec<(u64, u32)> = rows.into_iter().map(|row| (0, row)).collect();
    keyed.par_iter_mut().with_min_len(1 << 10).for_each(|(key, row)| *key = content_hash(table, *row as usize));
    let columns: Vec<usize> = (0..table.feature_names().len()).collect();
    keyed.par_sort_unstable_by(|(a_key, a), (b_key, b)| {
        let by_content = || compare_content(table, &columns, *a as usize, *b as usize);
        a_key.cmp(b_key).then_with(by_content).then(a.cmp(b))
    });
    let sum = keyed.iter().fold(0_u64, |sum, (key, _)| sum.wrapping_add(*key));
    let seed = mix(mix(seed, keyed.len() as u64), sum);
    let mut order: Vec<u32> = Vec::with_capacity(keyed.len());
    for tied in keyed.chunk_by(|(a, _), (b, _)| a == b) {
        let start = order.len();
        order.extend(tied.iter().map(|(_, row)| row));
        if tied.len() > 1 {
            shuffle_tied(table, &mut order[start..], mix(seed, tied[0].0));
        }
    }
    shuffle(&mut order, &mut Pcg64::seed_from_u64(seed));
    order
}

/// All rows of a table in the order of [`order`].
pub(crate) fn order_of_table(table: &Table, seed: u64) -> Vec<u32> {
    order(table, 0..table.rows() as u32, seed)
}

/// The fold of each row of a table, from 0 to `folds` − 1. Fold sizes differ by at most one row.
pub(crate) fn folds(table: &Table, folds: usize, seed: u64) -> Vec<u32> {
    let mut fold_of_row = vec![0; table.rows()];
    for (place, row) in order_of_table(table, seed).into_iter().enumerate() {
        fold_of_row[row as usize] = (place % folds.max(1)) as u32;
    }
    fold_of_row
}

/// Shuffles rows that are equal up to their votes and sorted by them.
fn shuffle_tied(table: &Table, tied: &mut [u32], seed: u64) {
    let votes = tied.iter().filter_map(|&row| table.votes(row as usize)).flat_map(Votes::counts);
    let seed = votes.fold(seed, |hash, &count| mix(hash, u64::from(count)));
    shuffle(tied, &mut Pcg64::seed_from_u64(seed));
}

/// A hash of a row's prediction, features and oracle answers. Votes, truth and weight do not enter, so rescaled weights change nothing.
fn content_hash(table: &Table, row: usize) -> u64 {
    // Adding zero turns −0 into +0.
    let add = |hash: u64, x: f64| mix(hash, u64::from((x as f32 + 0.0).to_bits()));
    let classes = table.classes().len();
    let mut hash = match_precision!(table.raw_prediction(row), prediction => prediction.iter().fold(0, |hash, x| add(hash, x.to_f64())));
    hash = table.features(row).iter().copied().fold(hash, add);
    for (_, answers) in table.oracles() {
        hash = answers[row * classes..][..classes].iter().copied().fold(hash, add);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::mix::{nth, uniform};
    use crate::partition::forest::{Bootstrap, Halves};

    /// A thousand items with nine distinct predictions and three labels each. `design` seeds the items and `world` their labels.
    fn tied(design: u64, world: u64) -> Table {
        let (mut probs, mut votes) = (Vec::new(), Vec::new());
        for row in 0..1000 {
            let yes = (1 + nth(design, row) % 9) as f64 / 10.0;
            probs.extend([1.0 - yes, yes]);
            let label = |place: u64| u32::from(uniform(nth(world, 4 * row + place)) < 0.3 + 0.4 * yes);
            let yeses = (0..3).map(label).sum::<u32>();
            votes.extend([3 - yeses, yeses]);
        }
        Table::new(["no", "yes"], probs).unwrap().with_votes(votes).unwrap()
    }

    /// By how many standard deviations of a random sample, stratified by prediction, the mean share of yes among the sampled rows
    /// exceeds that of all rows.
    fn deviation(table: &Table, drawn: &[bool]) -> f64 {
        let (mut above, mut variance) = (0.0, 0.0);
        for value in 1..=9 {
            let is_in = |row: &usize| (table.prediction(*row)[1] - f64::from(value) / 10.0).abs() < 1e-9;
            let share = |row: usize| table.votes(row).map_or(0.0, |votes| votes.mean(1));
            let group: Vec<(f64, bool)> = (0..table.rows()).filter(is_in).map(|row| (share(row), drawn[row])).collect();
            let n = group.len() as f64;
            let mean = group.iter().map(|(x, _)| x).sum::<f64>() / n;
            let spread = group.iter().map(|(x, _)| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
            let taken: Vec<f64> = group.iter().filter(|(_, drawn)| *drawn).map(|(x, _)| x - mean).collect();
            above += taken.iter().sum::<f64>();
            variance += taken.len() as f64 * (1.0 - taken.len() as f64 / n) * spread;
        }
        above / variance.sqrt()
    }

    /// Checks that deviations have mean 0 and standard deviation 1, each within four standard errors.
    #[track_caller]
    fn assert_standard_normal(deviations: &[f64]) {
        let n = deviations.len() as f64;
        let mean = deviations.iter().sum::<f64>() / n;
        let sd = (deviations.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
        assert!(mean.abs() < 4.0 / n.sqrt(), "mean {mean:.3} of {n}");
        assert!((sd - 1.0).abs() < 4.0 / (2.0 * n).sqrt(), "standard deviation {sd:.3} of {n}");
    }

    fn marked(rows: impl IntoIterator<Item = u32>) -> Vec<bool> {
        let mut marks = vec![false; 1000];
        rows.into_iter().for_each(|row| marks[row as usize] = true);
        marks
    }

    #[test]
    fn halves_bootstrap_samples_and_folds_do_not_depend_on_votes() {
        const WORLDS: u64 = 200;
        for same_items in [false, true] {
            let (mut halves, mut bags, mut parts) = (Vec::new(), Vec::new(), Vec::new());
            for world in 0..WORLDS {
                let design = if same_items { 0 } else { world };
                let table = tied(mix(1, design), mix(2, world));
                let order = order_of_table(&table, 0);
                halves.push(deviation(&table, &marked(Halves::new(&order, 0).kept)));
                let in_bag = (0..1000).filter(|&rank| Bootstrap::new(0, 1000).sample(3).contains(rank));
                bags.push(deviation(&table, &marked(in_bag.map(|rank| order[rank as usize]))));
                let fold = folds(&table, 5, 7);
                parts.push(deviation(&table, &fold.iter().map(|&fold| fold == 2).collect::<Vec<_>>()));
            }
            assert_standard_normal(&halves);
            assert_standard_normal(&bags);
            assert_standard_normal(&parts);
        }
    }

    #[test]
    fn order_of_unique_rows_ignores_votes() {
        let table = |flip: bool| {
            let yes = |row: u64| 0.001 * (row as f64 + 0.5);
            let probs = (0..1000).flat_map(|row| [1.0 - yes(row), yes(row)]).collect();
            let votes =
                (0..1000_u64).flat_map(|row| if nth(1, row).is_multiple_of(2) == flip { [3, 0] } else { [1, 2] });
            Table::new(["no", "yes"], probs).unwrap().with_votes(votes.collect()).unwrap()
        };
        let orders = [false, true].map(|flip| order_of_table(&table(flip), 0));
        assert_eq!(orders[0], orders[1]);
        assert_ne!(orders[0], order_of_table(&table(false), 1));
    }

    #[test]
    fn folds_are_balanced_and_independent_of_row_order() {
        let table = tied(1, 2);
        let fold = folds(&table, 7, 0);
        for wanted in 0..7 {
            assert!((142..=143).contains(&fold.iter().filter(|fold| **fold == wanted).count()));
        }
        let turned: Vec<u32> = (0..1000).rev().collect();
        let other = folds(&table.select(&turned, &[]), 7, 0);
        let content = |table: &Table, fold: &[u32]| {
            let of_row =
                |row: usize| (table.prediction(row)[1].to_bits(), table.votes(row).unwrap().counts()[1], fold[row]);
            let mut all: Vec<_> = (0..1000).map(of_row).collect();
            all.sort_unstable();
            all
        };
        assert_eq!(content(&table, &fold), content(&table.select(&turned, &[]), &other));
    }
}
