//! A forest with the calibration rows assigned to its leaves, before a router has sorted the rows into cells.

use std::ops::Range;
use std::sync::Arc;

use pointsman_trees::{Bootstrap, BootstrapSample, Trees};

use super::leaf_numbers::LeafNumbers;
use super::scorer::{Scorer, means_of_leaves};
use super::{inputs, targets};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::table::Table;

/// The smallest number of rows per parallel task of scoring.
const MIN_ROWS_PER_TASK: usize = 256;

/// A forest whose cells are bins of its scores. Each query has its own costs.
///
/// It does not depend on a task. The bootstrap samples of the trees are drawn anew when they are needed, so they are not stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Forest {
    scorer: Scorer,
    bootstrap: Bootstrap,
}

/// A table's rows assigned to the leaves of a forest. Rows are given by their ranks in the label-free order.
pub(crate) struct Assignment {
    pub(crate) forest: Arc<Forest>,
    /// The score of each row by the trees for which it is out of bag.
    pub(crate) scores: Vec<f64>,
    /// For each tree, the leaf of each row.
    leaf_of_rank: Vec<LeafNumbers>,
}

impl Assignment {
    /// The leaf of each row in each tree; `row_of_rank` is the row of each rank.
    pub(crate) fn into_leaf_of_row(self, row_of_rank: &[u32]) -> LeafNumbers {
        LeafNumbers::join_permuted(self.leaf_of_rank, row_of_rank)
    }
}

impl Forest {
    /// Assigns a table's rows to the leaves of trees; `order` is the label-free order of the rows.
    ///
    /// # Errors
    /// If the trees do not fit the table, or a leaf has no rows.
    pub(crate) fn assign_rows(
        trees: Trees,
        bootstrap: Bootstrap,
        table: &Table,
        order: &[u32],
        columns: &[usize],
    ) -> Result<Assignment> {
        if trees.inputs() != inputs::width(table.classes().len(), columns.len()) {
            return Err(Error::contradiction("the router's trees do not fit its classes and features"));
        }
        let encoded = trees.encode_rows(&inputs::of_rows(table, order, columns));
        let ranked = RankedRows::new(table, order);
        let samples: Vec<BootstrapSample> = (0..trees.count()).map(|tree| bootstrap.sample(tree)).collect();
        let assign = |tree: usize| {
            let mut leaf_of_row = vec![0; order.len()];
            trees.leaves_of_rows(tree, &encoded, &mut leaf_of_row);
            AssignedTree::new(&ranked, leaf_of_row, trees.leaves_of_tree(tree), samples[tree])
        };
        let assigned: Vec<AssignedTree> = (0..trees.count()).into_par_iter().map(assign).collect();
        if assigned.iter().any(|tree| tree.has_empty_leaf) {
            return Err(Error::contradiction("a leaf of the router's trees has no rows"));
        }
        let scores = ranked.out_of_bag_scores(&assigned, &samples);
        let leaf_scores = assigned.iter().flat_map(|tree| tree.scores.iter().copied()).collect();
        let forest = Arc::new(Self { scorer: Scorer::new(trees, 1, leaf_scores)?, bootstrap });
        Ok(Assignment { forest, scores, leaf_of_rank: assigned.into_iter().map(|tree| tree.leaf_of_row).collect() })
    }

    /// Puts a forest together from its trees, the score of each leaf, and how rows were drawn.
    ///
    /// # Errors
    /// If there is not one score per leaf.
    pub fn new(scorer: Scorer, bootstrap: Bootstrap) -> Result<Self> {
        if scorer.width() != 1 {
            return Err(Error::contradiction(format!(
                "the leaves of a forest have one score, and not {}",
                scorer.width()
            )));
        }
        Ok(Self { scorer, bootstrap })
    }

    /// The trees.
    #[must_use]
    pub fn trees(&self) -> &Trees {
        self.scorer.trees()
    }

    /// How the rows were drawn on which each tree was grown.
    #[must_use]
    pub fn bootstrap(&self) -> Bootstrap {
        self.bootstrap
    }

    /// The trees with the score of each leaf.
    #[must_use]
    pub fn scorer(&self) -> &Scorer {
        &self.scorer
    }
}

/// The data of rows that do not depend on the trees, by rank.
struct RankedRows {
    /// The reducible loss of rows with two labels or more.
    reducible: Vec<Option<f64>>,
    weights: Vec<f64>,
}

impl RankedRows {
    fn new(table: &Table, order: &[u32]) -> Self {
        let mut dist = vec![0.0; table.classes().len()];
        let reducible: Vec<Option<f64>> = order
            .iter()
            .map(|&row| targets::brier_decomposition(table, row as usize, &mut dist).map(|[_, r]| r))
            .collect();
        let weights = order.iter().map(|&row| table.weight(row as usize)).collect();
        Self { reducible, weights }
    }

    /// The mean reducible loss of the paired rows in each leaf of a tree that `counts` accepts.
    fn leaf_means(&self, leaf_of_row: &[u32], leaves: usize, counts: impl Fn(u32) -> bool) -> Vec<f64> {
        let rows = (0..leaf_of_row.len()).filter(|&rank| self.reducible[rank].is_some() && counts(rank as u32));
        let of_row = |rank: usize| (leaf_of_row[rank], self.weights[rank], self.reducible[rank].as_slice());
        means_of_leaves(leaves, 1, rows.map(of_row))
    }

    /// The score of each row by the trees for which it is out of bag.
    fn out_of_bag_scores(&self, assigned: &[AssignedTree], samples: &[BootstrapSample]) -> Vec<f64> {
        let score = |rank: usize| {
            let (mut n, mut sum, mut sum_of_all) = (0.0, 0.0, 0.0);
            for (tree, sample) in assigned.iter().zip(samples) {
                let leaf = tree.leaf_of_row.all().get(rank);
                sum_of_all += tree.scores[leaf];
                if self.reducible[rank].is_none() || !sample.contains(rank as u32) {
                    n += 1.0;
                    sum += tree.in_bag_scores[leaf];
                }
            }
            // A row that is in the bag of every tree is scored like a query.
            if n > 0.0 { sum / n } else { sum_of_all / assigned.len() as f64 }
        };
        (0..self.weights.len()).into_par_iter().with_min_len(MIN_ROWS_PER_TASK).map(score).collect()
    }
}

/// One tree with the leaf of each row.
struct AssignedTree {
    leaf_of_row: LeafNumbers,
    has_empty_leaf: bool,
    /// The mean reducible loss of all rows in each leaf.
    scores: Vec<f64>,
    /// The mean reducible loss of the rows in each leaf on which the tree was grown.
    in_bag_scores: Vec<f64>,
}

impl AssignedTree {
    /// `leaf_of_row` numbers the leaves over all trees.
    fn new(ranked: &RankedRows, mut leaf_of_row: Vec<u32>, leaves: Range<usize>, sample: BootstrapSample) -> Self {
        let (first_leaf, leaves) = (leaves.start, leaves.len());
        leaf_of_row.iter_mut().for_each(|leaf| *leaf -= first_leaf as u32);
        let scores = ranked.leaf_means(&leaf_of_row, leaves, |_| true);
        let in_bag_scores = ranked.leaf_means(&leaf_of_row, leaves, |rank| sample.contains(rank));
        let mut is_empty = vec![true; leaves];
        leaf_of_row.iter().for_each(|&leaf| is_empty[leaf as usize] = false);
        let leaf_of_row = LeafNumbers::new(leaves, leaf_of_row.into_iter());
        Self { leaf_of_row, has_empty_leaf: is_empty.contains(&true), scores, in_bag_scores }
    }
}
