//! Honest forests: one half of the rows grows a forest and a small tree over its scores, whose leaves are the cells.

use pointsman_trees::{Bootstrap, Trees};

use super::divide::Points;
use super::honest::prune_sparse_leaves;
use super::learn::grow_forest;
use super::scorer::{MAX_SCORES, Scorer, means_of_leaves};
use super::{inputs, targets};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::partition::SPARSE_BELOW_ROWS;
use crate::table::Table;
use crate::table::simplex::{Peak, Real};

/// The largest number of cells.
const MAX_CELLS_OF_FOREST: usize = 25;

/// The largest number of rows on which the tree of cells is grown. More rows would hardly change it.
const MAX_ROWS_IN_SAMPLE: usize = 20_000;

/// A forest that scores queries, and a small tree over the scores, whose leaves are the cells.
///
/// The scores are the expected Brier losses of a query and the expected shares of its labels. One score would suit one loss only: queries
/// with the same reducible Brier loss may differ in the reducible loss of another task.
#[derive(Debug, Clone, PartialEq)]
pub struct HonestForest {
    scorer: Scorer,
    shares: Vec<u32>,
    cells: Box<Trees>,
}

impl HonestForest {
    /// The number of scores before the class shares: the reducible and the irreducible Brier loss.
    pub const LOSSES: usize = 2;

    /// An honest forest from its parts. The scores are the reducible and the irreducible Brier loss, then the label shares of the classes
    /// `shares`; `cells` is a single tree whose inputs are the scores.
    ///
    /// # Errors
    /// If the parts do not fit each other.
    pub fn new(scorer: Scorer, shares: Vec<u32>, cells: Trees) -> Result<Self> {
        let fits = scorer.width() == HonestForest::LOSSES + shares.len()
            && cells.inputs() == scorer.width()
            && cells.count() == 1;
        if !fits || cells.leaves() > MAX_CELLS_OF_FOREST || !shares.is_sorted_by(|a, b| a < b) {
            return Err(Error::contradiction("the cells of an honest forest do not fit the scores of its trees"));
        }
        Ok(Self { scorer, shares, cells: Box::new(cells) })
    }

    /// Grows the forest on the rows `divide`, then the tree of cells on their out-of-bag scores.
    ///
    /// Cells into which few of these rows fall by their scores as queries are merged with their siblings. The calibration rows are not an
    /// argument, so the cells are independent of them.
    pub(crate) fn learn(
        table: &Table,
        divide: &[u32],
        columns: &[usize],
        trees: usize,
        seed: u64,
        step: &(dyn Fn() + Sync),
    ) -> Result<Self> {
        let bootstrap = Bootstrap::new(seed, divide.len());
        let trees = grow_forest(table, divide, columns, trees, bootstrap, step)?;
        let row_targets = RowTargets::new(table, divide);
        let width = row_targets.width();
        let rows: Vec<u32> = row_targets.ranks.iter().map(|&rank| divide[rank as usize]).collect();
        let encoded = trees.encode_rows(&inputs::of_rows(table, &rows, columns));
        let sample: Vec<usize> = (0..rows.len()).step_by(rows.len().div_ceil(MAX_ROWS_IN_SAMPLE).max(1)).collect();
        let assign = |tree: usize| {
            let (leaves, in_bag) = (trees.leaves_of_tree(tree), bootstrap.sample(tree));
            let mut leaf_of_row = vec![0; rows.len()];
            trees.leaves_of_rows(tree, &encoded, &mut leaf_of_row);
            leaf_of_row.iter_mut().for_each(|leaf| *leaf -= leaves.start as u32);
            let scores = row_targets.means(&leaf_of_row, leaves.len(), |_| true);
            let in_bag_scores =
                row_targets.means(&leaf_of_row, leaves.len(), |row| in_bag.contains(row_targets.ranks[row]));
            let out_of_bag = |&row: &usize| (!in_bag.contains(row_targets.ranks[row])).then_some(leaf_of_row[row]);
            AssignedTree { scores, in_bag_scores, out_of_bag: sample.iter().map(out_of_bag).collect() }
        };
        let assigned: Vec<AssignedTree> = (0..trees.count()).into_par_iter().map(assign).collect();
        // The mean scores of each row over the trees for which it is out of bag; rows that are in the bag of every tree are left out.
        let (mut points, mut weights) = (Vec::new(), Vec::new());
        let mut sums = vec![0.0; width];
        for (place, &row) in sample.iter().enumerate() {
            let mut n = 0.0;
            sums.fill(0.0);
            for tree in &assigned {
                if let Some(leaf) = tree.out_of_bag[place] {
                    n += 1.0;
                    let means = &tree.in_bag_scores[leaf as usize * width..][..width];
                    sums.iter_mut().zip(means).for_each(|(sum, mean)| *sum += mean);
                }
            }
            if n > 0.0 {
                points.extend(sums.iter().map(|sum| sum / n));
                weights.push(row_targets.weights[row]);
            }
        }
        let scales = scales(&points, &weights, width);
        let nodes = Points { values: &points, width, weights: &weights, scales: &scales }
            .grow_tree(MAX_CELLS_OF_FOREST, SPARSE_BELOW_ROWS);
        let scores = assigned.into_iter().flat_map(|tree| tree.scores).collect();
        let scorer = Scorer::new(trees, width, scores)?;
        let cells = Trees::new(width, vec![0], &nodes)?;
        let leaf_of_row = cells.leaves_of_inputs(0, &scorer.of_rows(table, divide, columns));
        let cells = prune_sparse_leaves(&cells, &leaf_of_row)?;
        Self::new(scorer, row_targets.shares, cells)
    }

    /// The forest that scores queries.
    #[must_use]
    pub fn scorer(&self) -> &Scorer {
        &self.scorer
    }

    /// The classes whose label shares are scores, in ascending order.
    #[must_use]
    pub fn shares(&self) -> &[u32] {
        &self.shares
    }

    /// The tree whose leaves are the cells.
    #[must_use]
    pub fn cells(&self) -> &Trees {
        &self.cells
    }

    /// The cell of a query. Does not allocate.
    #[inline]
    pub(crate) fn cell<T: Real>(&self, prediction: &[T], peak: Peak, features: &[f64]) -> usize {
        let scores = self.scorer.scores(prediction, peak, features);
        self.cells.leaf_of_row(0, &scores) as usize
    }

    /// The cells of all rows of a table.
    pub(crate) fn cells_of(&self, table: &Table, columns: &[usize]) -> Vec<u32> {
        self.cells.leaves_of_inputs(0, &self.scorer.of_table(table, columns))
    }
}

/// The scores of one tree's leaves, and the leaves of its out-of-bag rows.
struct AssignedTree {
    /// The scores of each leaf, from all rows in it.
    scores: Vec<f64>,
    /// The scores of each leaf, from the rows on which the tree was grown.
    in_bag_scores: Vec<f64>,
    /// For each row of the sample, its leaf if the row is out of bag.
    out_of_bag: Vec<Option<u32>>,
}

/// The Brier losses and label shares of the rows with two labels or more.
struct RowTargets {
    /// The position of each of these rows among the rows given.
    ranks: Vec<u32>,
    /// The classes whose label shares are targets, in ascending order.
    shares: Vec<u32>,
    /// The targets, row by row.
    values: Vec<f64>,
    weights: Vec<f64>,
}

impl RowTargets {
    fn new(table: &Table, rows: &[u32]) -> Self {
        let classes = table.classes().len();
        let mut built = Self { ranks: Vec::new(), shares: Vec::new(), values: Vec::new(), weights: Vec::new() };
        let mut losses = Vec::new();
        let mut dist = vec![0.0; classes];
        for (rank, &row) in rows.iter().enumerate() {
            if let Some(decomposition) = targets::brier_decomposition(table, row as usize, &mut dist) {
                built.ranks.push(rank as u32);
                built.weights.push(table.weight(row as usize));
                losses.push(decomposition);
            }
        }
        let mean = |rank: u32, class: usize| {
            let votes = table.votes(rows[rank as usize] as usize);
            votes.map_or(0.0, |votes| f64::from(votes.counts()[class]) / votes.k() as f64)
        };
        // If there are too many classes, those whose shares vary most are taken.
        let spread = |class: usize| variance(built.ranks.iter().map(|&rank| mean(rank, class)), &built.weights);
        let mut widest: Vec<(f64, u32)> =
            (0..classes).into_par_iter().map(|class| (spread(class), class as u32)).collect();
        widest.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        widest.truncate(MAX_SCORES - HonestForest::LOSSES);
        built.shares = widest.into_iter().map(|(_, class)| class).collect();
        built.shares.sort_unstable();
        for (&rank, [irreducible, reducible]) in built.ranks.iter().zip(losses) {
            built.values.extend([reducible, irreducible]);
            built.values.extend(built.shares.iter().map(|&class| mean(rank, class as usize)));
        }
        built
    }

    /// The number of targets per row.
    fn width(&self) -> usize {
        HonestForest::LOSSES + self.shares.len()
    }

    /// The weighted mean targets of each leaf of a tree, over the rows that `counts` accepts.
    fn means(&self, leaf_of_row: &[u32], leaves: usize, counts: impl Fn(usize) -> bool) -> Vec<f64> {
        let width = self.width();
        let rows = (0..leaf_of_row.len()).filter(|&row| counts(row));
        let of_row = |row: usize| (leaf_of_row[row], self.weights[row], &self.values[row * width..][..width]);
        means_of_leaves(leaves, width, rows.map(of_row))
    }
}

/// The factor of each score that standardises it: the reducible loss, the irreducible loss and all shares together get variance one.
fn scales(points: &[f64], weights: &[f64], width: usize) -> Vec<f64> {
    let of = |score: usize| variance(points.iter().skip(score).step_by(width).copied(), weights);
    let variances: Vec<f64> = (0..width).map(of).collect();
    let shares: f64 = variances[HonestForest::LOSSES..].iter().sum();
    let scale = |variance: f64| if variance > 1e-18 { 1.0 / variance.sqrt() } else { 0.0 };
    (0..width).map(|score| scale(if score < HonestForest::LOSSES { variances[score] } else { shares })).collect()
}

/// The weighted variance of some values.
fn variance(values: impl Iterator<Item = f64> + Clone, weights: &[f64]) -> f64 {
    let all: f64 = weights.iter().sum();
    let mean = values.clone().zip(weights).map(|(x, w)| w * x).sum::<f64>() / all;
    values.zip(weights).map(|(x, w)| w * (x - mean).powi(2)).sum::<f64>() / all
}
