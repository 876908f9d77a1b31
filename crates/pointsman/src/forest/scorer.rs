//! Trees with a number a leaf: how the cells of a forest rank queries.

use rayon::prelude::*;

use super::blocks::add_up;
use super::inputs;
use super::targets;
use super::trees::Trees;
use crate::error::{Error, Result};
use crate::simplex::{Peak, Real};
use crate::table::Table;

/// No reducible Brier loss is as far from zero, estimated from few labels or not.
const FAR: f64 = 3.0;

/// Trees with the mean reducible Brier loss of each leaf; a query's score is the mean over the trees.
///
/// No task enters.
#[derive(Debug, Clone, PartialEq)]
pub struct Scorer {
    trees: Trees,
    scores: Vec<f64>,
}

impl Scorer {
    /// Puts trees and the scores of their leaves together.
    ///
    /// # Errors
    /// If there are not as many scores as leaves, or one cannot be a mean reducible Brier loss.
    pub fn new(trees: Trees, scores: Vec<f64>) -> Result<Self> {
        if scores.len() != trees.leaves() {
            let (scores, leaves) = (scores.len(), trees.leaves());
            return Err(Error::Router(format!("the partition's trees have {leaves} leaves and {scores} scores")));
        }
        // Not a number is in no range.
        if let Some(leaf) = scores.iter().position(|score| !(-FAR..=FAR).contains(score)) {
            let score = scores[leaf];
            return Err(Error::Router(format!(
                "the score {score} of leaf {leaf} of the partition's trees is no mean reducible Brier loss"
            )));
        }
        Ok(Self { trees, scores })
    }

    /// Scores leaves by the given rows of a table, of which those with one label do not say anything.
    pub(super) fn of_rows(trees: Trees, table: &Table, rows: &[u32], columns: &[usize]) -> Result<Self> {
        let coded = trees.coded(&inputs::of_rows(table, rows, columns));
        let mut dist = vec![0.0; table.classes().len()];
        let reducible: Vec<Option<f64>> =
            rows.iter().map(|&row| targets::split(table, row as usize, &mut dist).map(|[_, r]| r)).collect();
        let of_tree = |tree: usize| {
            let leaves = trees.leaves_of(tree);
            let (mut found, mut sums) = (vec![0; rows.len()], vec![[0.0; 2]; leaves.len()]);
            trees.leaves_of_rows(tree, &coded, &mut found);
            for ((&leaf, &row), reducible) in found.iter().zip(rows).zip(&reducible) {
                if let Some(reducible) = reducible {
                    let (sums, weight) = (&mut sums[leaf as usize - leaves.start], table.weight(row as usize));
                    sums[0] += weight;
                    sums[1] += weight * reducible;
                }
            }
            sums.into_iter().map(|[weight, sum]| if weight > 0.0 { sum / weight } else { 0.0 }).collect()
        };
        let scores: Vec<Vec<f64>> = (0..trees.count()).into_par_iter().map(of_tree).collect();
        Self::new(trees, scores.concat())
    }

    /// The trees.
    #[must_use]
    pub fn trees(&self) -> &Trees {
        &self.trees
    }

    /// The mean reducible Brier loss of each leaf, the leaves numbered through all trees.
    #[must_use]
    pub fn leaf_scores(&self) -> &[f64] {
        &self.scores
    }

    /// The score of a query; nothing is allocated.
    #[inline]
    pub(crate) fn score<T: Real>(&self, prediction: &[T], peak: Peak, features: &[f64]) -> f64 {
        let mut sum = 0.0;
        inputs::leaves_for(&self.trees, prediction, peak, features, |leaf| sum += self.scores[leaf as usize]);
        sum / self.trees.count() as f64
    }

    /// The scores of all rows of a table, to the last bit what each has by itself.
    pub(crate) fn of_table(&self, table: &Table, columns: &[usize]) -> Vec<f64> {
        let trees = self.trees.count() as f64;
        let add = |leaf: u32, sum: &mut [f64]| sum[0] += self.scores[leaf as usize];
        add_up(&self.trees, table, columns, 1, add, |_, sum| sum[0] /= trees)
    }
}

#[cfg(test)]
mod tests {
    use super::super::trees::Node;
    use super::*;
    use crate::mix::{nth, uniform};

    #[test]
    fn a_table_is_scored_as_its_rows_are() {
        // More rows than one block, and few or many trees, which are walked in different ways.
        let (rows, draw) = (5_000, |i: usize| uniform(nth(1, i as u64)));
        let probs = (0..rows).flat_map(|row| [draw(row), 1.0 - draw(row)]).collect();
        let features = (0..rows).map(|row| if row % 7 == 0 { f64::NAN } else { draw(row + rows) }).collect();
        let table = Table::new(["a", "b"], probs).unwrap().with_features(["x"], features).unwrap();
        for count in [3, 40] {
            let tree = |tree: usize| {
                let (input, threshold) = ([0, 2, 3][tree % 3], draw(tree));
                let left = 3 * tree as u32 + 1;
                [Node::Split { input, threshold, left, missing_right: tree.is_multiple_of(2) }, Node::Leaf, Node::Leaf]
            };
            let nodes: Vec<Node> = (0..count).flat_map(tree).collect();
            let trees = Trees::new(4, (0..count as u32).map(|tree| 3 * tree).collect(), &nodes).unwrap();
            let scorer = Scorer::new(trees, (0..2 * count).map(|leaf| draw(leaf) / 3.0).collect()).unwrap();
            for (row, score) in scorer.of_table(&table, &[0]).into_iter().enumerate() {
                let alone = scorer.score(table.prediction(row), table.peak(row), table.features(row));
                assert_eq!(score.to_bits(), alone.to_bits(), "row {row}, {count} trees");
            }
        }
    }
}
