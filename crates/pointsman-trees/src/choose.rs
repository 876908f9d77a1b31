//! Choosing how far the trees of a forest are pruned, and how finely their inputs are binned, by out-of-bag error.

use std::ops::Range;

use crate::bootstrap::Bootstrap;
use crate::grow::GrownTree;
use crate::parallel::prelude::*;
use crate::prune::PruningRule;
use crate::training::TrainingSet;

/// The numbers of rows that a node must have to be divided.
pub(crate) const MIN_ROWS_TO_SPLIT: [usize; 7] = [500, 240, 120, 60, 30, 16, 8];

/// The sums of squares that a subtree must explain per split. Splits on noise explain about 10 by chance, being the best of many.
const MIN_GAINS: [f64; 9] = [0.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0];

/// The largest number of rows by which rules are compared.
const MAX_ROWS_COMPARED: usize = 50_000;

/// The share of what the best rule explains that another may lack if its trees are smaller, and that trees with coarse bins may lack, which
/// take less time. One standard error is left to spare, so that this is done only if the rows show that it costs little.
const DISPENSABLE_SHARE: f64 = 0.01;

/// The rows by which rules are compared, and where they are in each tree.
pub(crate) struct OutOfBag {
    rows: Vec<usize>,
    /// For each tree, the places in `rows` of those out of its bag, and their leaves.
    leaves: Vec<Vec<(u32, u32)>>,
}

/// Trees whose nodes of few rows are not divided, each with the places of the rows out of its bag, and their leaves.
struct DividedTrees<const N: usize> {
    min_rows_to_split: usize,
    trees: Vec<(GrownTree<N>, Vec<(u32, u32)>)>,
}

impl<const N: usize> DividedTrees<N> {
    fn new(grown: &[GrownTree<N>], leaves: &[Vec<(u32, u32)>], min_rows_to_split: usize) -> Self {
        let divide = |(grown, leaves): (&GrownTree<N>, &Vec<(u32, u32)>)| {
            let (tree, ends) = grown.divided_from(min_rows_to_split);
            (tree, leaves.iter().map(|&(place, leaf)| (place, ends[leaf as usize])).collect())
        };
        Self { min_rows_to_split, trees: grown.par_iter().zip(leaves).map(divide).collect() }
    }
}

/// The out-of-bag errors of pruned trees.
struct RuleErrors {
    rule: PruningRule,
    /// The squared error of each row compared, extrapolated to infinitely many trees; NaN if it is out of bag for fewer than two trees.
    errors: Vec<f64>,
    /// The number of leaves of all trees.
    leaves: usize,
}

impl<const N: usize> TrainingSet<N> {
    /// The rows that trees are compared by.
    pub(crate) fn out_of_bag(&self, grown: &[GrownTree<N>], bootstrap: Bootstrap) -> OutOfBag {
        let step = self.rows().div_ceil(MAX_ROWS_COMPARED).max(1);
        let rows: Vec<usize> = (0..self.rows()).step_by(step).collect();
        let of_tree = |(tree, grown): (usize, &GrownTree<N>)| -> Vec<(u32, u32)> {
            let sample = bootstrap.sample(tree);
            let places = (0..rows.len()).filter(|&place| !sample.contains(self.key(rows[place])));
            places.map(|place| (place as u32, grown.leaf_node(self.inputs_of_row(rows[place])) as u32)).collect()
        };
        let leaves = grown.par_iter().enumerate().map(of_tree).collect();
        OutOfBag { rows, leaves }
    }

    /// The rule that gives the smallest trees among those that suffice.
    pub(crate) fn choose_rule(&self, grown: &[GrownTree<N>], out_of_bag: &OutOfBag) -> PruningRule {
        let rows = &out_of_bag.rows;
        let mut tried: Vec<RuleErrors> = Vec::new();
        for min_rows_to_split in MIN_ROWS_TO_SPLIT {
            let divided = DividedTrees::new(grown, &out_of_bag.leaves, min_rows_to_split);
            let errors = |&min_gain: &f64| self.errors_of_price(min_gain, &divided, rows);
            tried.extend(MIN_GAINS.par_iter().map(errors).collect::<Vec<_>>());
        }
        let means: Vec<f64> = tried.iter().map(|tried| self.mean_of_errors(&tried.errors, rows)).collect();
        let best = (0..tried.len()).min_by(|&a, &b| means[a].total_cmp(&means[b])).unwrap_or(0);
        let suffices = |place: usize| {
            let largest = self.largest_excess(&tried[place].errors, &tried[best].errors, rows);
            largest <= DISPENSABLE_SHARE * explained::<N>(means[best])
        };
        let smallest = (0..tried.len()).filter(|&place| place == best || suffices(place));
        tried[smallest.min_by_key(|&place| tried[place].leaves).unwrap_or(best)].rule
    }

    /// Whether trees with coarse bins explain as much as those with fine bins: the first `fine` of the grown trees have fine bins, the
    /// others coarse ones.
    pub(crate) fn coarse_bins_suffice(
        &self,
        grown: &[GrownTree<N>],
        fine: usize,
        rule: PruningRule,
        out_of_bag: &OutOfBag,
    ) -> bool {
        let OutOfBag { rows, leaves } = out_of_bag;
        let errors = |trees: Range<usize>| {
            let divided = DividedTrees::new(&grown[trees.clone()], &leaves[trees], rule.min_rows_to_split);
            self.errors_of_price(rule.min_gain, &divided, rows).errors
        };
        let [fine, coarse] = [errors(0..fine), errors(fine..grown.len())];
        let most = DISPENSABLE_SHARE * explained::<N>(self.mean_of_errors(&fine, rows));
        self.largest_excess(&coarse, &fine, rows) <= most
    }

    /// The weighted mean of the errors of some rows that are known.
    fn mean_of_errors(&self, errors: &[f64], rows: &[usize]) -> f64 {
        let (mut sum, mut weight) = (0.0, 0.0);
        for (error, &row) in errors.iter().zip(rows).filter(|(error, _)| !error.is_nan()) {
            sum += self.weight(row) * error;
            weight += self.weight(row);
        }
        sum / weight
    }

    /// By how much errors exceed others of the same rows on average, with one standard error added.
    fn largest_excess(&self, errors: &[f64], others: &[f64], rows: &[usize]) -> f64 {
        let excess: Vec<f64> = errors.iter().zip(others).map(|(error, other)| error - other).collect();
        let mean = self.mean_of_errors(&excess, rows);
        let known = excess.iter().filter(|excess| !excess.is_nan()).count() as f64;
        let squares: Vec<f64> = excess.iter().map(|excess| (excess - mean).powi(2)).collect();
        mean + (self.mean_of_errors(&squares, rows) / known).sqrt()
    }

    /// The errors of trees in which each split must explain `min_gain`.
    ///
    /// The variance of a mean of few trees is estimated and subtracted; otherwise deep trees would have a disadvantage that they do not have
    /// among many trees.
    fn errors_of_price(&self, min_gain: f64, divided: &DividedTrees<N>, rows: &[usize]) -> RuleErrors {
        let mut sums = vec![(0.0, [0.0; N], 0.0); rows.len()];
        let mut count = 0;
        for (grown, leaves) in &divided.trees {
            let ends = grown.ends(min_gain);
            // A binary tree has one leaf more than splits, and each kept split has two nodes below it.
            count += ends.iter().enumerate().filter(|(place, end)| *place == **end as usize).count().div_ceil(2);
            for &(place, leaf) in leaves {
                let mean = grown.means[ends[leaf as usize] as usize];
                let (n, sums, squares) = &mut sums[place as usize];
                *n += 1.0;
                for (sum, mean) in sums.iter_mut().zip(mean) {
                    *sum += mean;
                    *squares += mean * mean;
                }
            }
        }
        let error = |(&(n, sums, squares), &row): (&(f64, [f64; N], f64), &usize)| {
            if n < 2.0 {
                return f64::NAN;
            }
            let mean = sums.map(|sum| sum / n);
            let between_trees = mean.iter().fold(squares / n, |rest, mean| rest - mean * mean);
            self.squared_error(row, &mean) - between_trees / (n - 1.0)
        };
        let rule = PruningRule { min_rows_to_split: divided.min_rows_to_split, min_gain };
        RuleErrors { rule, errors: sums.iter().zip(rows).map(error).collect(), leaves: count }
    }
}

/// What trees with this error explain: the squared error of the mean is the variance of the standardised targets.
fn explained<const N: usize>(error: f64) -> f64 {
    N as f64 - error
}
