//! Training sets, and forests grown on them.

use crate::bins::BinnedInputs;
use crate::bootstrap::BootstrapSample;
use crate::error::{Error, Result};
use crate::grow::{GrownTree, GrowthRule, grow_tree};
use crate::parallel::prelude::*;
use crate::trees::{Node, Trees};

/// The candidate leaf sizes of a forest, as the smallest number of rows per leaf.
pub const LEAF_SIZES: [usize; 7] = [250, 120, 60, 30, 15, 8, 4];

/// The number of trees that try each leaf size first. Their error is corrected for the small number of trees.
const PILOT_TREES: usize = 20;

/// The number of trees that decide between the best size and its neighbours. With [`PILOT_TREES`] chance differences are as large as those
/// between neighbouring sizes.
const COMPARISON_TREES: usize = 100;

/// The best size and its two neighbours.
const SIZES_COMPARED: usize = 3;

/// The largest size compared is chosen that explains this share of what the best one explains; the rest is chance.
const SUFFICIENT_SHARE_EXPLAINED: f64 = 0.998;

/// The share of the inputs that is tried at each split.
const SHARE_OF_INPUTS: f64 = 1.0 / 3.0;

/// With at most this number of inputs, all of them are tried at each split.
const MAX_INPUTS_TO_TRY_ALL: usize = 3;

/// The smallest number of rows per parallel task.
const MIN_ROWS_PER_TASK: usize = 256;

/// Rows with inputs, `N` targets, a weight and a key each.
///
/// Inputs may be missing (NaN). Targets have equal weight in a split, so they should be standardised: [`TrainingSet::grow_forest`] assumes that
/// the squared error of the mean is `N`. Keys determine the bootstrap samples of a row; they should not depend on the targets.
#[derive(Debug, Clone)]
pub struct TrainingSet<const N: usize> {
    /// Row by row.
    inputs: Vec<f64>,
    width: usize,
    bins: BinnedInputs,
    targets: Vec<[f64; N]>,
    weights: Vec<f64>,
    keys: Vec<u32>,
    /// The inputs that splits may use.
    candidates: Vec<u32>,
}

impl<const N: usize> TrainingSet<N> {
    /// Bins the inputs, `width` per row, row by row. Splits use inputs that differ between rows and for which `may_use` is true.
    ///
    /// # Errors
    /// If these are not the inputs, targets, weights and keys of the same rows, a target is not finite, or a weight is not positive and
    /// finite.
    pub fn new(
        inputs: Vec<f64>,
        width: usize,
        targets: Vec<[f64; N]>,
        weights: Vec<f64>,
        keys: Vec<u32>,
        may_use: impl Fn(usize) -> bool,
    ) -> Result<Self> {
        let rows = targets.len();
        if width == 0 || Some(inputs.len()) != width.checked_mul(rows) || weights.len() != rows || keys.len() != rows {
            let (inputs, weights, keys) = (inputs.len(), weights.len(), keys.len());
            return Err(Error::Shape { inputs, targets: rows, weights, keys });
        }
        let is_usable = |(targets, weight): (&[f64; N], &f64)| {
            targets.iter().all(|x| x.is_finite()) && *weight > 0.0 && weight.is_finite()
        };
        if let Some(row) = targets.iter().zip(&weights).position(|row| !is_usable(row)) {
            return Err(Error::Row { row });
        }
        let bins = BinnedInputs::new(&inputs, width);
        let candidates = (0..width).filter(|&input| may_use(input) && bins.varies(input)).map(|i| i as u32).collect();
        Ok(Self { inputs, width, bins, targets, weights, keys, candidates })
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.keys.len()
    }

    /// The number of inputs per row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// The inputs of a row.
    #[must_use]
    pub fn inputs_of_row(&self, row: usize) -> &[f64] {
        &self.inputs[row * self.width..][..self.width]
    }

    /// The key by which a row is drawn into bootstrap samples.
    #[must_use]
    pub fn key(&self, row: usize) -> u32 {
        self.keys[row]
    }

    /// Grows one tree on the rows that `is_wanted` accepts; `seed` determines the inputs that are tried at each split.
    pub fn grow_tree(&self, is_wanted: impl Fn(usize) -> bool, rule: GrowthRule, seed: u64) -> GrownTree<N> {
        let rows = (0..self.rows() as u32).filter(|&row| is_wanted(row as usize)).collect();
        grow_tree(&self.bins, &self.targets, &self.weights, rows, &self.candidates, rule, seed)
    }

    /// The squared error of a row's targets about a mean, all targets together.
    #[must_use]
    pub fn squared_error(&self, row: usize, mean: &[f64; N]) -> f64 {
        self.targets[row].iter().zip(mean).map(|(target, mean)| (target - mean).powi(2)).sum()
    }

    /// The weighted mean of one number per row; rows without one (NaN) are left out.
    #[must_use]
    pub fn weighted_mean(&self, numbers: &[f64]) -> f64 {
        let known = || numbers.iter().zip(&self.weights).filter(|(number, _)| !number.is_nan());
        known().map(|(number, weight)| number * weight).sum::<f64>() / known().map(|(_, weight)| weight).sum::<f64>()
    }

    /// Grows a forest, tree `t` on the rows of [`BootstrapSample::new`]`(seed, t)`, with the leaf size chosen by out-of-bag error.
    ///
    /// Sizes are tried from large to small by 20 trees each until two in a row are worse; the best one and its neighbours are compared by
    /// 100 trees each, and the largest of them is taken that explains 99.8 % of what the best one explains. `progress` is called
    /// [`growth_steps`] times, as trees are grown or turn out not to be needed.
    ///
    /// # Errors
    /// If the trees have more nodes or thresholds than can be numbered.
    pub fn grow_forest(&self, trees: usize, seed: u64, progress: &(dyn Fn() + Sync)) -> Result<Trees> {
        let share_of_inputs = if self.candidates.len() <= MAX_INPUTS_TO_TRY_ALL { 1.0 } else { SHARE_OF_INPUTS };
        let grow = |range: std::ops::Range<usize>, min_rows_per_leaf: usize| -> Vec<GrownTree<N>> {
            let rule = GrowthRule { min_rows_per_leaf, share_of_inputs };
            range
                .into_par_iter()
                .map(|tree| {
                    let sample = BootstrapSample::new(seed, tree);
                    let grown = self.grow_tree(|row| sample.contains(self.keys[row]), rule, sample.tree_seed());
                    progress();
                    grown
                })
                .collect()
        };
        let skip = |trees: usize| (0..trees).for_each(|_| progress());
        let error_of =
            |grown: &[GrownTree<N>]| -> Result<f64> { Ok(self.weighted_mean(&self.out_of_bag_errors(grown, seed)?)) };
        // With few rows the largest sizes are equal: no tree has a split.
        let (mut tried, mut best) = (Vec::<LeafSize<N>>::new(), 0);
        for min_rows in LEAF_SIZES {
            let grown = grow(0..PILOT_TREES, min_rows);
            tried.push(LeafSize { min_rows, error: error_of(&grown)?, grown });
            let last = tried.len() - 1;
            if tried[last].error <= tried[best].error {
                best = last;
            } else if last == best + 2 {
                break;
            }
        }
        skip((LEAF_SIZES.len() - tried.len()) * PILOT_TREES);
        tried.truncate(best + 2);
        tried.drain(..best.saturating_sub(1));
        for size in tried.iter_mut().filter(|_| trees > PILOT_TREES) {
            size.grown.extend(grow(PILOT_TREES..COMPARISON_TREES.min(trees), size.min_rows));
            size.error = error_of(&size.grown)?;
        }
        skip((SIZES_COMPARED - tried.len()) * (COMPARISON_TREES.min(trees) - PILOT_TREES.min(trees)));
        let least = tried.iter().map(|size| size.error).fold(f64::INFINITY, f64::min);
        // The squared error of the mean is the variance of the standardised targets.
        let explained = |error: f64| N as f64 - error;
        let is_sufficient = |size: &LeafSize<N>| {
            explained(size.error) >= SUFFICIENT_SHARE_EXPLAINED * explained(least) || size.error <= least
        };
        let chosen = tried.iter().position(is_sufficient).unwrap_or(0);
        let LeafSize { min_rows, mut grown, .. } = tried.swap_remove(chosen);
        grown.truncate(trees);
        grown.extend(grow(grown.len()..trees, min_rows));
        join_trees(self.width, &grown)
    }

    /// The out-of-bag squared error of each row, extrapolated to infinitely many trees: the variance of a mean of few trees is estimated and
    /// subtracted. NaN if a row is out of bag for fewer than two trees.
    fn out_of_bag_errors(&self, grown: &[GrownTree<N>], seed: u64) -> Result<Vec<f64>> {
        let trees = join_trees(self.width, grown)?;
        let means: Vec<[f64; N]> = grown.iter().flat_map(|tree| &tree.means).copied().collect();
        let samples: Vec<BootstrapSample> = (0..grown.len()).map(|tree| BootstrapSample::new(seed, tree)).collect();
        let error = |row: usize| {
            let (mut n, mut sums, mut squares) = (0.0, [0.0; N], [0.0; N]);
            for (tree, sample) in samples.iter().enumerate() {
                if !sample.contains(self.keys[row]) {
                    let mean = means[trees.leaf_of_row(tree, self.inputs_of_row(row)) as usize];
                    n += 1.0;
                    for target in 0..N {
                        sums[target] += mean[target];
                        squares[target] += mean[target] * mean[target];
                    }
                }
            }
            if n < 2.0 {
                return f64::NAN;
            }
            let mean = sums.map(|sum| sum / n);
            let between_trees = mean.iter().fold(squares.iter().sum::<f64>() / n, |rest, mean| rest - mean * mean);
            self.squared_error(row, &mean) - between_trees / (n - 1.0)
        };
        Ok((0..self.rows()).into_par_iter().with_min_len(MIN_ROWS_PER_TASK).map(error).collect())
    }
}

/// A leaf size with the trees that try it.
struct LeafSize<const N: usize> {
    min_rows: usize,
    error: f64,
    grown: Vec<GrownTree<N>>,
}

/// The number of progress reports of [`TrainingSet::grow_forest`] for a number of trees.
#[must_use]
pub fn growth_steps(trees: usize) -> u64 {
    let compared = SIZES_COMPARED * (COMPARISON_TREES.min(trees) - PILOT_TREES.min(trees));
    (LEAF_SIZES.len() * PILOT_TREES + compared + trees.saturating_sub(COMPARISON_TREES)) as u64
}

/// Joins trees over the same `width` inputs into one numbering of nodes and leaves.
///
/// # Errors
/// If together they have more nodes or thresholds than can be numbered.
pub fn join_trees<const N: usize>(width: usize, grown: &[GrownTree<N>]) -> Result<Trees> {
    let (mut roots, mut nodes) = (Vec::new(), Vec::new());
    for tree in grown {
        let first = nodes.len() as u32;
        roots.push(first);
        nodes.extend(tree.nodes.iter().map(|node| match *node {
            Node::Leaf => Node::Leaf,
            Node::Split { input, threshold, left, missing_right } => {
                Node::Split { input, threshold, left: left + first, missing_right }
            }
        }));
    }
    Trees::new(width, roots, &nodes)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::hash::{draw, unit};

    /// Rows of one or more inputs; the first target follows the first input, the second is noise.
    fn training(rows: usize, width: usize) -> TrainingSet<2> {
        let value = |i: usize| unit(draw(3, i as u64));
        let inputs: Vec<f64> = (0..rows * width).map(value).collect();
        let step = |x: f64| if x < 0.5 { -1.0 } else { 1.0 };
        let targets = (0..rows).map(|row| [step(inputs[row * width]), step(value(row + rows * width))]).collect();
        TrainingSet::new(inputs, width, targets, vec![1.0; rows], (0..rows as u32).collect(), |_| true).unwrap()
    }

    #[test]
    fn progress_is_reported_growth_steps_times() {
        for (rows, width) in [(60, 1), (600, 5)] {
            let training = training(rows, width);
            for trees in [1, 7, 30, 130] {
                let calls = AtomicU64::new(0);
                let progress = || {
                    calls.fetch_add(1, Ordering::Relaxed);
                };
                let grown = training.grow_forest(trees, 0, &progress).unwrap();
                assert_eq!(grown.count(), trees);
                assert_eq!(calls.into_inner(), growth_steps(trees), "{trees} trees on {rows} rows");
            }
        }
    }

    #[test]
    fn forest_finds_a_step_among_noise() {
        let training = training(2000, 4);
        let grown = training.grow_tree(|_| true, GrowthRule { min_rows_per_leaf: 250, share_of_inputs: 1.0 }, 0);
        let Node::Split { input: 0, threshold, .. } = grown.nodes[0] else { panic!("{:?}", grown.nodes[0]) };
        assert!((threshold - 0.5).abs() < 0.01, "{threshold}");
        assert!(grown.means.iter().all(|mean| mean[0].abs() > 0.99 && mean[1].abs() < 0.3), "{:?}", grown.means);
    }

    #[test]
    fn missing_values_can_be_split_off() {
        let inputs: Vec<f64> = (0..200).map(|i| if i % 4 == 0 { f64::NAN } else { f64::from(i) }).collect();
        let targets = inputs.iter().map(|x| [if x.is_nan() { 3.0 } else { -1.0 }]).collect();
        let training = TrainingSet::new(inputs, 1, targets, vec![1.0; 200], (0..200).collect(), |_| true).unwrap();
        let grown = training.grow_tree(|_| true, GrowthRule { min_rows_per_leaf: 10, share_of_inputs: 1.0 }, 0);
        let trees = join_trees(1, std::slice::from_ref(&grown)).unwrap();
        let mean = |x: f64| grown.means[trees.leaf_of_row(0, &[x]) as usize];
        assert_eq!([mean(f64::NAN), mean(0.0), mean(f64::MAX), mean(f64::MIN)], [[3.0], [-1.0], [-1.0], [-1.0]]);
    }

    #[test]
    fn inconsistent_rows_are_refused() {
        let new = |inputs: usize, targets: &[[f64; 1]], weights: &[f64], keys: u32| {
            let (targets, weights) = (targets.to_vec(), weights.to_vec());
            TrainingSet::new(vec![0.0; inputs], 2, targets, weights, (0..keys).collect(), |_| true).map(|_| ())
        };
        let two = [[0.0]; 2];
        assert_eq!(new(4, &two, &[1.0; 2], 2), Ok(()));
        for refused in [new(3, &two, &[1.0; 2], 2), new(4, &two, &[1.0], 2), new(4, &two, &[1.0; 2], 1)] {
            assert!(matches!(refused, Err(Error::Shape { .. })));
        }
        for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(new(4, &two, &[1.0, weight], 2), Err(Error::Row { row: 1 }));
        }
        assert_eq!(new(4, &[[f64::NAN], [0.0]], &[1.0; 2], 2), Err(Error::Row { row: 0 }));
    }
}
