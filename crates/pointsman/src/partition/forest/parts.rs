//! What a forest derives from its rows and trees, as plain parts, and back: what a file stores so that it need not be derived again.

use std::borrow::Cow;
use std::sync::Arc;

use super::assignment::Forest;
use super::inputs;
use super::leaf_numbers::LeafNumbers;
use super::leaf_statistics::{LeafStatistics, LeafTotals};
use super::vote_counts::VoteCounts;
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::partition::edges::Edges;
use crate::table::Table;

/// By how much rounding can make a share exceed one.
const ROUNDING_OF_SHARES: f64 = 1e-9;

/// By how much rounding can change a sum of weights, as a part of it.
const ROUNDING_OF_SUMS: f64 = 1e-6;

/// What is derived from the rows and trees of a forest.
///
/// Parts from a file are not trusted. [`Router::from_forest_parts`](crate::Router::from_forest_parts) checks lengths, ranges and sums, which
/// keeps every later access within bounds; [`Router::verify_leaves`](crate::Router::verify_leaves) derives all parts again and compares.
#[derive(Debug, Clone)]
pub struct ForestParts<'a> {
    /// The trees, the score of each leaf, and how the rows of each tree were drawn.
    pub forest: Arc<Forest>,
    /// The edges of the scores, which define the cells.
    pub edges: Edges,
    /// The number of rows in each cell; the rows are sorted by cell.
    pub rows_per_cell: Vec<u32>,
    /// The rank of each row in the label-free order, by which the rows of each tree were drawn.
    pub ranks: Cow<'a, [u32]>,
    /// The leaf of each row in each tree.
    pub leaf_of_row: Cow<'a, LeafNumbers>,
    /// The weight of the rows in each leaf.
    pub leaf_weights: Cow<'a, [f64]>,
    /// The share of the labels in each leaf that are not the top class of their row.
    pub leaf_error_shares: Cow<'a, [f64]>,
    /// The number of rows per distinct vote vector in each leaf; `None` if rows have weights, or most rows of a leaf differ in their votes.
    pub vote_counts: Option<Cow<'a, VoteCounts>>,
}

impl<'a> ForestParts<'a> {
    /// The parts of statistics; `starts` are the first rows of the cells, and the end of the last.
    pub(crate) fn new(forest: &Arc<Forest>, edges: &Edges, starts: &[u32], statistics: &'a LeafStatistics) -> Self {
        let LeafTotals { weights, error_shares } = statistics.totals();
        Self {
            forest: forest.clone(),
            edges: edges.clone(),
            rows_per_cell: starts.windows(2).map(|ends| ends[1] - ends[0]).collect(),
            ranks: Cow::Borrowed(statistics.ranks()),
            leaf_of_row: Cow::Borrowed(statistics.rows().leaf_of_row()),
            leaf_weights: Cow::Borrowed(weights),
            leaf_error_shares: Cow::Borrowed(error_shares),
            vote_counts: statistics.all_vote_counts().map(Cow::Borrowed),
        }
    }

    /// Checks the parts of the leaves against the rows and trees, without walking a tree.
    ///
    /// # Errors
    /// If a length, a range or a sum is not possible.
    pub(crate) fn into_statistics(self, table: &Table) -> Result<LeafStatistics> {
        let (trees, rows) = (self.forest.trees(), table.rows());
        if trees.inputs() != inputs::width(table.classes().len(), table.feature_names().len()) {
            return Err(Error::contradiction("the router's trees do not fit its classes and features"));
        }
        if !is_permutation(&self.ranks, rows) {
            return Err(Error::contradiction("the ranks of the router's rows are not the numbers of its rows"));
        }
        let leaves_of_trees = || (0..trees.count()).map(|tree| trees.leaves_of_tree(tree));
        let has_size = Some(self.leaf_of_row.len()) == trees.count().checked_mul(rows);
        if !has_size || !self.leaf_of_row.has_width_for(leaves_of_trees()) {
            return Err(Error::contradiction("the leaves of the router's rows do not fit its trees"));
        }
        let covers = |tree: usize| self.leaf_of_row.of_tree(tree, rows).cover(trees.leaves_of_tree(tree).len());
        let covered: Vec<bool> = (0..trees.count()).into_par_iter().map(covers).collect();
        if let Some(tree) = covered.iter().position(|is_covered| !is_covered) {
            let leaves = trees.leaves_of_tree(tree).len();
            return Err(Error::contradiction(format!(
                "the rows of the router are not in the {leaves} leaves of tree {tree}: one has no rows, or a row is in another"
            )));
        }
        self.check_totals(table)?;
        self.check_vote_counts(table)?;
        let Self { forest, ranks, leaf_of_row, leaf_weights, leaf_error_shares, vote_counts, .. } = self;
        let totals = LeafTotals { weights: leaf_weights.into_owned(), error_shares: leaf_error_shares.into_owned() };
        let counts = (vote_counts.map(Cow::into_owned), totals);
        Ok(LeafStatistics::from_counts(leaf_of_row.into_owned(), ranks.into_owned(), table, &forest, |_| counts))
    }

    fn check_totals(&self, table: &Table) -> Result<()> {
        let (trees, leaves) = (self.forest.trees(), self.forest.trees().leaves());
        if [self.leaf_weights.len(), self.leaf_error_shares.len()] != [leaves; 2] {
            return Err(Error::contradiction(format!(
                "the router's trees have {leaves} leaves, and its file another number of weights or shares of errors"
            )));
        }
        let is_share = |share: &f64| (0.0..=1.0 + ROUNDING_OF_SHARES).contains(share);
        if let Some(leaf) = self.leaf_error_shares.iter().position(|share| !is_share(share)) {
            let share = self.leaf_error_shares[leaf];
            return Err(Error::contradiction(format!(
                "the share of errors {share} of leaf {leaf} of the router's trees is not a share"
            )));
        }
        let of_rows = || (0..table.rows()).map(|row| table.weight(row));
        let (all, least) = (of_rows().sum::<f64>(), of_rows().fold(f64::INFINITY, f64::min));
        let least = least * (1.0 - ROUNDING_OF_SUMS);
        for tree in 0..trees.count() {
            let weights = &self.leaf_weights[trees.leaves_of_tree(tree)];
            let sum: f64 = weights.iter().sum();
            let has_rows = weights.iter().all(|weight| *weight >= least);
            // NaN is in no range.
            let range = all * (1.0 - ROUNDING_OF_SUMS)..=all * (1.0 + ROUNDING_OF_SUMS);
            if !has_rows || !range.contains(&sum) {
                return Err(Error::contradiction(format!(
                    "the leaves of tree {tree} of the router weigh {sum}, its rows {all}, or a leaf weighs less than any row"
                )));
            }
        }
        Ok(())
    }

    fn check_vote_counts(&self, table: &Table) -> Result<()> {
        let Some(counts) = &self.vote_counts else { return Ok(()) };
        let (trees, vectors) = (self.forest.trees(), table.distinct_votes().len());
        if counts.leaves() != trees.leaves() || table.has_weights() {
            return Err(Error::contradiction(
                "the router's leaves have vote counts that do not fit their number or the weights of rows",
            ));
        }
        for tree in 0..trees.count() {
            let pairs = || trees.leaves_of_tree(tree).flat_map(|leaf| counts.of(leaf));
            let fits = pairs().all(|&[votes, rows]| (votes as usize) < vectors && rows > 0);
            let sum: u64 = pairs().map(|&[_, rows]| u64::from(rows)).sum();
            let is_empty = trees.leaves_of_tree(tree).any(|leaf| counts.of(leaf).is_empty());
            if !fits || is_empty || sum != table.rows() as u64 {
                let rows = table.rows();
                return Err(Error::contradiction(format!(
                    "the vote counts of tree {tree} of the router do not add up to its {rows} rows, or name votes that no row has"
                )));
            }
        }
        Ok(())
    }

    /// The first difference between these parts, as stored, and those that the same rows and trees give.
    pub(crate) fn first_difference(&self, derived: &ForestParts<'_>) -> Option<String> {
        let rows = self.ranks.len();
        let (own, other) = (self.leaf_of_row.all(), derived.leaf_of_row.all());
        if let Some(place) = (0..self.leaf_of_row.len()).find(|&place| own.get(place) != other.get(place)) {
            let (tree, row, stored, found) = (place / rows, place % rows, own.get(place), other.get(place));
            return Some(format!(
                "row {row} is stored in leaf {stored} of tree {tree}, which leads it to leaf {found}"
            ));
        }
        let leaf_of = |what: &str, stored: &[f64], found: &[f64]| {
            let leaf = stored.iter().zip(found).position(|(stored, found)| stored != found)?;
            Some(format!("the {what} of leaf {leaf} is stored as {}, and is {}", stored[leaf], found[leaf]))
        };
        let differs =
            |what: &str, differs: bool| differs.then(|| format!("the stored {what} are not those of its rows"));
        differs("ranks of its rows", self.ranks != derived.ranks)
            .or_else(|| leaf_of("score", self.forest.scorer().leaf_scores(), derived.forest.scorer().leaf_scores()))
            .or_else(|| differs("edges of scores", self.edges != derived.edges))
            .or_else(|| differs("numbers of rows per cell", self.rows_per_cell != derived.rows_per_cell))
            .or_else(|| leaf_of("weight", &self.leaf_weights, &derived.leaf_weights))
            .or_else(|| leaf_of("share of errors", &self.leaf_error_shares, &derived.leaf_error_shares))
            .or_else(|| differs("vote counts", self.vote_counts != derived.vote_counts))
    }
}

/// Whether `numbers` are 0, 1, 2 and so on below `count`, in any order.
fn is_permutation(numbers: &[u32], count: usize) -> bool {
    let mut occurs = vec![false; count];
    let mut is_new =
        |number: u32| occurs.get_mut(number as usize).is_some_and(|occurs| !std::mem::replace(occurs, true));
    numbers.len() == count && numbers.iter().all(|&number| is_new(number))
}

#[cfg(test)]
mod tests {
    use super::is_permutation;

    #[test]
    fn repeated_and_distant_numbers_are_no_permutation() {
        assert!(is_permutation(&[2, 0, 1], 3) && is_permutation(&[], 0));
        for numbers in [&[0, 0, 1][..], &[0, 1, 3], &[0, 1], &[0, 1, 2, 3], &[u32::MAX, 0, 1]] {
            assert!(!is_permutation(numbers, 3), "{numbers:?}");
        }
    }
}
