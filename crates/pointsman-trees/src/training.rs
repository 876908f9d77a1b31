//! Training sets, and forests grown on them.

use std::ops::Range;

use crate::bins::{BinnedInputs, Resolution};
use crate::bootstrap::Bootstrap;
use crate::choose::MIN_ROWS_TO_SPLIT;
use crate::error::{Error, Result};
use crate::grow::{Grower, GrownTree, GrowthRule, TrainingRows};
use crate::parallel::prelude::*;
use crate::trees::{Node, Trees};

/// Leaf sizes worth comparing for a single tree, as the smallest number of rows per leaf.
pub const LEAF_SIZES: [usize; 7] = [250, 120, 60, 30, 15, 8, 4];

/// The smallest number of rows per leaf of a forest's trees, before pruning.
pub(crate) const MIN_ROWS_PER_LEAF: usize = 4;

/// The number of rows, over all trees, on which the trees that choose the pruning rule are grown: fewer rows need more trees for the same
/// certainty.
const PILOT_ROWS: usize = 500_000;

/// The smallest and the largest number of these trees. They become the first trees of the forest.
const MIN_PILOT_TREES: usize = 40;
const MAX_PILOT_TREES: usize = 100;

/// The number of rows per tree from which coarse bins are tried: half of these trees have them. Smaller trees take little time.
const MIN_ROWS_FOR_COARSE_BINS: usize = 16_384;

/// The share of the inputs that is tried at each split.
const SHARE_OF_INPUTS: f64 = 1.0 / 3.0;

/// With at most this number of inputs, all of them are tried at each split.
const MAX_INPUTS_TO_TRY_ALL: usize = 3;

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
    /// Whether some weight is not one.
    has_weights: bool,
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
        let has_weights = weights.iter().any(|&weight| weight != 1.0);
        Ok(Self { inputs, width, bins, targets, weights, has_weights, keys, candidates })
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
        match self.has_weights {
            false => Grower::<N, 0>::new(self.training_rows()).grow(is_wanted, rule, Resolution::Fine, seed),
            true => Grower::<N, 1>::new(self.training_rows()).grow(is_wanted, rule, Resolution::Fine, seed),
        }
    }

    /// Grows some trees of a forest; `R` is that of [`Grower`].
    fn grow_trees<const R: usize>(
        &self,
        trees: Range<usize>,
        bootstrap: Bootstrap,
        rule: GrowthRule,
        resolution: Resolution,
        progress: &(dyn Fn() + Sync),
    ) -> Vec<GrownTree<N>> {
        let grow = |grower: &mut Grower<'_, N, R>, tree: usize| {
            let sample = bootstrap.sample(tree);
            let grown = grower.grow(|row| sample.contains(self.keys[row]), rule, resolution, sample.tree_seed());
            progress();
            grown
        };
        trees.into_par_iter().map_init(|| Grower::new(self.training_rows()), grow).collect()
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

    /// Grows a forest, tree `t` on the rows of [`Bootstrap::sample`]`(t)`, and prunes it by out-of-bag error.
    ///
    /// Up to 100 trees are grown as far as their rows allow. Rules of pruning are compared by the out-of-bag error of these trees: by the rows
    /// that a node must have to be divided, and by what a subtree must explain per split. The rule with the least error is taken or, if
    /// the rows suffice to tell, the one with the fewest leaves among those that explain 99 % as much. If trees have many rows, half of
    /// these trees have coarse bins, and so have all others if that explains as much. `progress` is called [`growth_steps`] times, as
    /// trees are grown.
    ///
    /// # Errors
    /// If the trees have more nodes or thresholds than can be numbered.
    pub fn grow_forest(&self, trees: usize, bootstrap: Bootstrap, progress: &(dyn Fn() + Sync)) -> Result<Trees> {
        let share_of_inputs = if self.candidates.len() <= MAX_INPUTS_TO_TRY_ALL { 1.0 } else { SHARE_OF_INPUTS };
        let grow = |range: Range<usize>, min_rows_to_split: usize, resolution: Resolution, progress| {
            let rule = GrowthRule { min_rows_to_split, min_rows_per_leaf: MIN_ROWS_PER_LEAF, share_of_inputs };
            match self.has_weights {
                false => self.grow_trees::<0>(range, bootstrap, rule, resolution, progress),
                true => self.grow_trees::<1>(range, bootstrap, rule, resolution, progress),
            }
        };
        let rows_per_tree = (self.rows() as f64 * bootstrap.share()) as usize;
        let wanted = PILOT_ROWS / rows_per_tree.max(1);
        let pilots = wanted.clamp(MIN_PILOT_TREES, MAX_PILOT_TREES).min(most_pilots(trees));
        let fine = if rows_per_tree < MIN_ROWS_FOR_COARSE_BINS { pilots } else { pilots / 2 };
        let smallest = MIN_ROWS_TO_SPLIT[MIN_ROWS_TO_SPLIT.len() - 1];
        let mut grown = grow(0..fine, smallest, Resolution::Fine, progress);
        grown.extend(grow(fine..pilots, smallest, Resolution::Coarse, progress));
        let out_of_bag = self.out_of_bag(&grown, bootstrap);
        let rule = self.choose_rule(&grown, &out_of_bag);
        let mut resolution = Resolution::Fine;
        if fine < pilots {
            if self.coarse_bins_suffice(&grown, fine, rule, &out_of_bag) {
                resolution = Resolution::Coarse;
            } else {
                grown.truncate(fine);
                // Those beyond the size of the forest are not needed any more.
                grown.extend(grow(fine..pilots.min(trees), rule.min_rows_to_split, Resolution::Fine, &|| ()));
            }
        }
        grown.truncate(trees);
        grown.extend(grow(grown.len()..trees, rule.min_rows_to_split, resolution, progress));
        let pruned: Vec<Vec<Node>> = grown.par_iter().map(|tree| tree.prune(rule)).collect();
        (pilots.max(trees)..growth_steps(trees) as usize).for_each(|_| progress());
        join_trees(self.width, &pruned)
    }

    fn training_rows(&self) -> TrainingRows<'_, N> {
        let Self { bins, candidates, targets, weights, .. } = self;
        TrainingRows { inputs: bins, candidates, targets, weights }
    }

    pub(crate) fn weight(&self, row: usize) -> f64 {
        self.weights[row]
    }
}

/// The largest number of trees that choose the pruning rule of a forest.
fn most_pilots(trees: usize) -> usize {
    trees.clamp(MIN_PILOT_TREES, MAX_PILOT_TREES)
}

/// The number of progress reports of [`TrainingSet::grow_forest`] for a number of trees.
#[must_use]
pub fn growth_steps(trees: usize) -> u64 {
    trees.max(most_pilots(trees)) as u64
}

/// Joins trees over the same `width` inputs, given by their nodes, into one numbering of nodes and leaves.
///
/// # Errors
/// If together they have more nodes or thresholds than can be numbered.
pub fn join_trees(width: usize, trees: &[Vec<Node>]) -> Result<Trees> {
    let (mut roots, mut nodes) = (Vec::new(), Vec::new());
    for tree in trees {
        let first = nodes.len() as u32;
        roots.push(first);
        nodes.extend(tree.iter().map(|node| match *node {
            Node::Leaf => Node::Leaf,
            Node::Split { left, .. } => node.with_children_at(left + first),
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

    fn rule(min_rows_per_leaf: usize) -> GrowthRule {
        GrowthRule { min_rows_to_split: 2 * min_rows_per_leaf, min_rows_per_leaf, share_of_inputs: 1.0 }
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
                let grown = training.grow_forest(trees, Bootstrap::new(0, rows), &progress).unwrap();
                assert_eq!(grown.count(), trees);
                assert_eq!(calls.into_inner(), growth_steps(trees), "{trees} trees on {rows} rows");
            }
        }
    }

    #[test]
    fn forest_finds_a_step_among_noise() {
        let training = training(2000, 4);
        let grown = training.grow_tree(|_| true, rule(250), 0);
        let Node::Split { input: 0, threshold, .. } = grown.nodes[0] else { panic!("{:?}", grown.nodes[0]) };
        assert!((threshold - 0.5).abs() < 0.01, "{threshold}");
        for row in 0..training.rows() {
            let mean = grown.mean_of_row(training.inputs_of_row(row));
            assert!(mean[0].abs() > 0.99 && mean[1].abs() < 0.3, "{mean:?}");
        }
    }

    /// The first target is a step of the first input, and nothing else can be explained: few leaves suffice.
    #[test]
    fn splits_on_noise_are_pruned() {
        for rows in [1_000, 4_000] {
            let trees = training(rows, 4).grow_forest(60, Bootstrap::new(0, rows), &|| ()).unwrap();
            assert!(trees.leaves() < 5 * trees.count(), "{} leaves of {} trees", trees.leaves(), trees.count());
        }
    }

    /// Fine structure is found: sixteen steps need as many leaves.
    #[test]
    fn splits_on_structure_are_kept() {
        let rows = 4_000_usize;
        let inputs: Vec<f64> = (0..2 * rows).map(|i| unit(draw(5, i as u64))).collect();
        let target = |row: usize| if ((16.0 * inputs[2 * row]) as usize).is_multiple_of(2) { -1.0 } else { 1.0 };
        let targets = (0..rows).map(|row| [target(row)]).collect();
        let keys = (0..rows as u32).collect();
        let training = TrainingSet::new(inputs.clone(), 2, targets, vec![1.0; rows], keys, |_| true).unwrap();
        let trees = training.grow_forest(60, Bootstrap::new(0, rows), &|| ()).unwrap();
        assert!((15..30).contains(&(trees.leaves() / trees.count())), "{}", trees.leaves() / trees.count());
    }

    /// Coarse bins follow two waves, and not as many waves as half of the bins.
    #[test]
    fn coarse_bins_are_used_where_they_suffice() {
        let rows = 20_000_usize;
        let inputs: Vec<f64> = (0..2 * rows).map(|i| unit(draw(5, i as u64))).collect();
        let suffice = |waves: f64| {
            let noise = |row: usize| unit(draw(6, row as u64)) - 0.5;
            let wave = |row: usize| (waves * std::f64::consts::TAU * inputs[2 * row]).sin();
            let targets = (0..rows).map(|row| [wave(row) + noise(row)]).collect();
            let keys = (0..rows as u32).collect();
            let training = TrainingSet::new(inputs.clone(), 2, targets, vec![1.0; rows], keys, |_| true).unwrap();
            let (bootstrap, deep) = (Bootstrap::new(0, rows), rule(4));
            let grow = |trees, resolution| training.grow_trees::<0>(trees, bootstrap, deep, resolution, &|| ());
            let grown = [grow(0..5, Resolution::Fine), grow(5..10, Resolution::Coarse)].concat();
            let out_of_bag = training.out_of_bag(&grown, bootstrap);
            let rule = training.choose_rule(&grown, &out_of_bag);
            training.coarse_bins_suffice(&grown, 5, rule, &out_of_bag)
        };
        assert!(suffice(2.0));
        assert!(!suffice(128.0));
    }

    /// Trees with weights of one are those without a count of rows.
    #[test]
    fn counting_rows_changes_nothing_if_weights_are_one() {
        let training = training(3_000, 4);
        let bootstrap = Bootstrap::new(0, 3_000);
        for resolution in [Resolution::Fine, Resolution::Coarse] {
            let without = training.grow_trees::<0>(0..4, bootstrap, rule(4), resolution, &|| ());
            let with = training.grow_trees::<1>(0..4, bootstrap, rule(4), resolution, &|| ());
            assert_eq!(without, with);
        }
    }

    #[test]
    fn missing_values_can_be_split_off() {
        let inputs: Vec<f64> = (0..200).map(|i| if i % 4 == 0 { f64::NAN } else { f64::from(i) }).collect();
        let targets = inputs.iter().map(|x| [if x.is_nan() { 3.0 } else { -1.0 }]).collect();
        let training = TrainingSet::new(inputs, 1, targets, vec![1.0; 200], (0..200).collect(), |_| true).unwrap();
        let grown = training.grow_tree(|_| true, rule(10), 0);
        let mean = |x: f64| *grown.mean_of_row(&[x]);
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
