//! Trees with a few numbers per leaf; the scores of a query are the means over its leaves.

use pointsman_trees::{Trees, add_leaf_values};

use super::inputs;
use crate::error::{Error, Result};
use crate::table::Table;
use crate::table::simplex::{Peak, Real};

/// The largest number of scores per leaf; a query's scores are computed without allocating.
pub(crate) const MAX_SCORES: usize = 16;

/// The largest absolute value of a score. Scores are Brier losses and shares, also when estimated from few labels.
const MAX_SCORE: f64 = 3.0;

/// Trees with the same few numbers for each leaf; a query's scores are the means over the trees. No task enters.
#[derive(Debug, Clone, PartialEq)]
pub struct Scorer {
    trees: Trees,
    width: usize,
    /// Leaf by leaf.
    scores: Vec<f64>,
}

impl Scorer {
    /// Puts trees and the scores of their leaves together, `width` per leaf.
    ///
    /// # Errors
    /// If there are not as many scores as leaves, or one can be neither a mean Brier loss nor a share.
    pub fn new(trees: Trees, width: usize, scores: Vec<f64>) -> Result<Self> {
        if !(1..=MAX_SCORES).contains(&width) || scores.len() != trees.leaves().saturating_mul(width) {
            let (scores, leaves) = (scores.len(), trees.leaves());
            return Err(Error::contradiction(format!(
                "the partition's trees have {leaves} leaves and {scores} scores, {width} per leaf: at most {MAX_SCORES} are possible"
            )));
        }
        // NaN is in no range.
        if let Some(place) = scores.iter().position(|score| !(-MAX_SCORE..=MAX_SCORE).contains(score)) {
            let (score, leaf) = (scores[place], place / width);
            return Err(Error::contradiction(format!(
                "the score {score} of leaf {leaf} of the partition's trees is neither a mean Brier loss nor a share"
            )));
        }
        Ok(Self { trees, width, scores })
    }

    /// The trees.
    #[must_use]
    pub fn trees(&self) -> &Trees {
        &self.trees
    }

    /// The number of scores per leaf.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// The scores of each leaf, the leaves numbered through all trees.
    #[must_use]
    pub fn leaf_scores(&self) -> &[f64] {
        &self.scores
    }

    /// The scores of a query; only the first [`Scorer::width`] count. Nothing is allocated.
    #[inline]
    pub(crate) fn scores<T: Real>(&self, prediction: &[T], peak: Peak, features: &[f64]) -> [f64; MAX_SCORES] {
        let mut sums = [0.0; MAX_SCORES];
        let own = &mut sums[..self.width];
        inputs::leaves_of_query(&self.trees, prediction, peak, features, |leaf| {
            add_leaf_values(&self.scores, leaf, own);
        });
        own.iter_mut().for_each(|sum| *sum /= self.trees.count() as f64);
        sums
    }

    /// The scores of all rows of a table, row by row; bit for bit those of [`Scorer::scores`].
    pub(crate) fn of_table(&self, table: &Table, columns: &[usize]) -> Vec<f64> {
        self.of_rows(table, &(0..table.rows() as u32).collect::<Vec<u32>>(), columns)
    }

    /// As [`Scorer::of_table`], of the given rows.
    pub(crate) fn of_rows(&self, table: &Table, rows: &[u32], columns: &[usize]) -> Vec<f64> {
        let trees = self.trees.count() as f64;
        let means = |_: &[u32], sums: &[f64]| sums.iter().map(|sum| sum / trees).collect::<Vec<f64>>();
        inputs::sum_leaf_values(&self.trees, &self.scores, table, rows, columns, means).concat()
    }
}

/// The weighted mean numbers of the rows in each leaf of a tree; zeros for leaves without rows. A row is given as its leaf, its weight and
/// its numbers.
pub(super) fn means_of_leaves<'a>(
    leaves: usize,
    width: usize,
    rows: impl Iterator<Item = (u32, f64, &'a [f64])>,
) -> Vec<f64> {
    let (mut sums, mut all) = (vec![0.0; leaves * width], vec![0.0; leaves]);
    for (leaf, weight, numbers) in rows {
        let leaf = leaf as usize;
        all[leaf] += weight;
        sums[leaf * width..][..width].iter_mut().zip(numbers).for_each(|(sum, x)| *sum += weight * x);
    }
    for (sums, all) in sums.chunks_exact_mut(width).zip(all).filter(|(_, all)| *all > 0.0) {
        sums.iter_mut().for_each(|sum| *sum /= all);
    }
    sums
}

#[cfg(test)]
mod tests {
    use pointsman_trees::Node;

    use super::*;
    use crate::numeric::mix::{nth, uniform};

    #[test]
    fn scores_of_a_table_equal_those_of_its_rows() {
        // More rows than one block, and few or many trees, which are walked in different ways.
        let (rows, draw) = (5_000, |i: usize| uniform(nth(1, i as u64)));
        let probs = (0..rows).flat_map(|row| [draw(row), 1.0 - draw(row)]).collect();
        let features = (0..rows).map(|row| if row % 7 == 0 { f64::NAN } else { draw(row + rows) }).collect();
        let table = Table::new(["a", "b"], probs).unwrap().with_features(["x"], features).unwrap();
        for (count, width) in [(3, 1), (40, 1), (40, 4)] {
            let tree = |tree: usize| {
                let (input, threshold) = ([0, 2, 3][tree % 3], draw(tree));
                let left = 3 * tree as u32 + 1;
                [Node::Split { input, threshold, left, missing_right: tree.is_multiple_of(2) }, Node::Leaf, Node::Leaf]
            };
            let nodes: Vec<Node> = (0..count).flat_map(tree).collect();
            let trees = Trees::new(4, (0..count as u32).map(|tree| 3 * tree).collect(), &nodes).unwrap();
            let scores = (0..2 * count * width).map(|place| draw(place) / 3.0).collect();
            let scorer = Scorer::new(trees, width, scores).unwrap();
            for (row, scores) in scorer.of_table(&table, &[0]).chunks_exact(width).enumerate() {
                let alone = scorer.scores(&table.prediction(row), table.peak(row), table.features(row));
                let bits = |scores: &[f64]| scores.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(scores), bits(&alone[..width]), "row {row}, {count} trees");
            }
        }
    }
}
