//! Scores of rows of another table as if they were calibration rows.
//!
//! A calibration row is scored by the trees for which it is out of bag, from the rows that these trees were grown on: its own labels must not
//! move it. A query is scored by all trees, so its score varies less. Cells of scores therefore hold other rows of the same traffic, and
//! only rows that are scored alike can be compared cell by cell.

use pointsman_trees::{BootstrapSample, Trees};

use super::assignment::Forest;
use super::inputs;
use super::leaf_statistics::LeafStatistics;
use super::scorer::means_of_leaves;
use super::targets::brier_decomposition;
use crate::parallel::prelude::*;
use crate::table::Table;
use crate::table::predictions::match_precision;

/// The smallest number of rows per parallel task.
const MIN_ROWS_PER_TASK: usize = 256;

/// A forest that scores rows of other tables as it scored its calibration rows.
pub(crate) struct OutOfBagScorer<'a> {
    trees: &'a Trees,
    samples: Vec<BootstrapSample>,
    /// The mean reducible loss of all rows in each leaf.
    scores: &'a [f64],
    /// The mean reducible loss of the rows in each leaf on which its tree was grown.
    in_bag_scores: Vec<f64>,
}

impl<'a> OutOfBagScorer<'a> {
    /// The scorer of a forest whose leaves hold the rows of `calibration`.
    pub(crate) fn new(forest: &'a Forest, leaves: &LeafStatistics, calibration: &Table) -> Self {
        let trees = forest.trees();
        let samples: Vec<BootstrapSample> = (0..trees.count()).map(|tree| forest.bootstrap().sample(tree)).collect();
        let mut dist = vec![0.0; calibration.classes().len()];
        let reducible: Vec<Option<f64>> = (0..calibration.rows())
            .map(|row| brier_decomposition(calibration, row, &mut dist).map(|[_, reducible]| reducible))
            .collect();
        let of_tree = |tree: usize| {
            let leaf_of_row = leaves.rows().numbers(tree);
            let in_bag = |row: &usize| !leaves.is_out_of_bag(samples[tree], *row as u32);
            let rows = (0..calibration.rows()).filter(in_bag);
            let of_row = |row: usize| (leaf_of_row.get(row) as u32, calibration.weight(row), reducible[row].as_slice());
            means_of_leaves(trees.leaves_of_tree(tree).len(), 1, rows.map(of_row))
        };
        let in_bag_scores: Vec<Vec<f64>> = (0..trees.count()).into_par_iter().map(of_tree).collect();
        Self { trees, samples, scores: forest.scorer().leaf_scores(), in_bag_scores: in_bag_scores.concat() }
    }

    /// The score of each row of a table by the trees for which its stand-in is out of bag; by all trees if it has none, as for rows on which
    /// no tree may be grown. A stand-in is the rank of a calibration row.
    pub(crate) fn scores(&self, table: &Table, columns: &[usize], stand_ins: &[Option<u32>]) -> Vec<f64> {
        let score = |features: &mut Vec<f64>, row: usize| {
            features.iter_mut().zip(columns).for_each(|(slot, &column)| *slot = table.features(row)[column]);
            let (mut tree, mut n, mut sum, mut sum_of_all) = (0, 0.0, 0.0, 0.0);
            let visit = |leaf: u32| {
                sum_of_all += self.scores[leaf as usize];
                if stand_ins[row].is_none_or(|rank| !self.samples[tree].contains(rank)) {
                    n += 1.0;
                    sum += self.in_bag_scores[leaf as usize];
                }
                tree += 1;
            };
            let peak = table.peak(row);
            match_precision!(table.raw_prediction(row), prediction => {
                inputs::leaves_of_query(self.trees, prediction, peak, features, visit);
            });
            if n > 0.0 { sum / n } else { sum_of_all / self.trees.count() as f64 }
        };
        let features = || vec![0.0; columns.len()];
        (0..table.rows()).into_par_iter().with_min_len(MIN_ROWS_PER_TASK).map_init(features, score).collect()
    }
}
