//! Statistics of the calibration rows in each leaf of a forest that depend on no loss.

use pointsman_trees::{Bootstrap, BootstrapSample};

use super::assignment::Forest;
use super::leaf_numbers::LeafNumbers;
use super::rows_in_leaves::RowsInLeaves;
use super::vote_counts::VoteCounts;
use super::vote_moments::{Shrunk, ShrunkLeaves};
use crate::table::Table;

/// The largest number of rows in the sample by which leaves are compared with their out-of-bag rows. More rows would hardly change the
/// result and would make another loss slower.
const MAX_ROWS_IN_SAMPLE: usize = 10_000;

/// The rows in each leaf of a forest, and statistics of their votes and weights.
///
/// Every tree holds all rows, not only those of its bootstrap sample, so that more rows estimate the losses of a leaf.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LeafStatistics {
    rows: RowsInLeaves,
    /// The number of rows of each leaf per distinct vote vector, if that is a much shorter list than its rows.
    vote_counts: Option<VoteCounts>,
    /// The shrunk label distributions of each leaf's rows, if items have equally many labels.
    shrunk: Option<ShrunkLeaves>,
    totals: LeafTotals,
    /// The rank of each row in the label-free order: bootstrap samples are drawn by it.
    ranks: Vec<u32>,
    /// Whether each row has two labels or more, so that trees may be grown on it.
    is_paired: Vec<bool>,
    /// Some rows with two labels or more.
    sample: Vec<u32>,
    bootstrap: Bootstrap,
}

/// Sums over the rows of each leaf.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct LeafTotals {
    /// The weight of a leaf's rows.
    pub(super) weights: Vec<f64>,
    /// The share of their labels that are not the top class of their row.
    pub(super) error_shares: Vec<f64>,
}

impl LeafTotals {
    fn new(table: &Table, rows: &RowsInLeaves) -> Self {
        let of_row = |row: usize| [table.weight(row), table.weight(row) * table.top_error(row)];
        let of_rows: Vec<[f64; 2]> = (0..table.rows()).map(of_row).collect();
        let totals = |_: usize, &[weight, wrong]: &[f64; 2]| (weight, wrong / weight);
        let (weights, error_shares) = rows.sum_over_leaves(rows.trees(), &of_rows, totals).into_iter().unzip();
        Self { weights, error_shares }
    }
}

impl LeafStatistics {
    /// The statistics of the leaves of a forest, given the leaf of each row in each tree and the rank of each row.
    pub(crate) fn new(leaf_of_row: LeafNumbers, ranks: Vec<u32>, table: &Table, forest: &Forest) -> Self {
        Self::from_counts(leaf_of_row, ranks, table, forest, |rows| {
            (VoteCounts::count(table, rows), LeafTotals::new(table, rows))
        })
    }

    /// As [`LeafStatistics::new`], with vote counts and totals that may be known.
    pub(super) fn from_counts(
        leaf_of_row: LeafNumbers,
        ranks: Vec<u32>,
        table: &Table,
        forest: &Forest,
        counts: impl FnOnce(&RowsInLeaves) -> (Option<VoteCounts>, LeafTotals),
    ) -> Self {
        let mut row_of_rank = vec![0; ranks.len()];
        (0..).zip(&ranks).for_each(|(row, &rank)| row_of_rank[rank as usize] = row);
        let rows = RowsInLeaves::new(forest.trees(), leaf_of_row, sort_by_votes(table, &row_of_rank));
        let (vote_counts, totals) = counts(&rows);
        let shrunk = ShrunkLeaves::new(table, &rows, vote_counts.as_ref());
        let votes = table.distinct_votes();
        let paired: Vec<bool> = votes.iter().map(|votes| votes.k() >= 2).collect();
        let is_paired: Vec<bool> = votes.index_of_row().iter().map(|&votes| paired[votes as usize]).collect();
        let some = row_of_rank.iter().step_by(ranks.len().div_ceil(MAX_ROWS_IN_SAMPLE).max(1));
        let sample = some.copied().filter(|&row| is_paired[row as usize]).collect();
        Self { rows, vote_counts, shrunk, totals, ranks, is_paired, sample, bootstrap: forest.bootstrap() }
    }

    /// The rows in each leaf.
    pub(crate) fn rows(&self) -> &RowsInLeaves {
        &self.rows
    }

    /// The rank of each row in the label-free order.
    pub(super) fn ranks(&self) -> &[u32] {
        &self.ranks
    }

    /// The distinct vote vectors of all leaves; `None` if not kept.
    pub(super) fn all_vote_counts(&self) -> Option<&VoteCounts> {
        self.vote_counts.as_ref()
    }

    /// The weights and shares of errors of all leaves.
    pub(super) fn totals(&self) -> &LeafTotals {
        &self.totals
    }

    /// The distinct vote vectors of a leaf, by number, and the number of rows that have each; `None` if not kept.
    pub(crate) fn vote_counts(&self, leaf: usize) -> Option<&[[u32; 2]]> {
        self.vote_counts.as_ref().map(|counts| counts.of(leaf))
    }

    /// The shrunk label distributions of a leaf's rows; `None` if items have different numbers of labels, or one each.
    pub(crate) fn shrunk(&self, leaf: usize) -> Option<Shrunk<'_>> {
        self.shrunk.as_ref().map(|shrunk| shrunk.of(leaf))
    }

    /// The share of labels in a leaf that are not the top class of their row.
    pub(crate) fn error_share(&self, leaf: usize) -> f64 {
        self.totals.error_shares[leaf]
    }

    /// The weight of a leaf's rows.
    pub(crate) fn weight(&self, leaf: usize) -> f64 {
        self.totals.weights[leaf]
    }

    /// Some rows with two labels or more.
    pub(crate) fn sample(&self) -> &[u32] {
        &self.sample
    }

    /// The rows of the sample that are out of a tree's bag: their places in the sample, and their leaves.
    pub(crate) fn out_of_bag_sample(&self, tree: usize) -> impl Iterator<Item = (usize, usize)> {
        let drawn = self.bootstrap.sample(tree);
        let out_of_bag = self.sample.iter().enumerate().filter(move |(_, row)| self.is_out_of_bag(drawn, **row));
        out_of_bag.map(move |(place, &row)| (place, self.rows.leaf(tree, row)))
    }

    /// The ranks of the rows that trees may be grown on.
    pub(crate) fn ranks_in_bags(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranks.iter().zip(&self.is_paired).filter(|(_, is_paired)| **is_paired).map(|(rank, _)| *rank)
    }

    /// Whether a row is out of bag for the tree of this sample. Rows with one label grow no tree.
    #[inline]
    pub(crate) fn is_out_of_bag(&self, sample: BootstrapSample, row: u32) -> bool {
        !self.is_paired[row as usize] || !sample.contains(self.ranks[row as usize])
    }
}

/// The rows of a table, sorted so that those with the same votes are adjacent. Vote vectors are in the order of their rows of least rank, and
/// rows with the same votes in the order of their ranks.
fn sort_by_votes(table: &Table, row_of_rank: &[u32]) -> Vec<u32> {
    let votes = table.distinct_votes();
    let votes_of = |row: u32| votes.index_of_row()[row as usize] as usize;
    let mut counts = vec![0_usize; votes.len()];
    votes.index_of_row().iter().for_each(|&votes| counts[votes as usize] += 1);
    // Where the next row of each vote vector goes, once its first row has been met.
    let (mut next, mut end) = (vec![None; votes.len()], 0);
    let mut rows = vec![0; row_of_rank.len()];
    for &row in row_of_rank {
        let place = next[votes_of(row)].unwrap_or_else(|| {
            end += counts[votes_of(row)];
            end - counts[votes_of(row)]
        });
        rows[place] = row;
        next[votes_of(row)] = Some(place + 1);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_by_first_rank_of_their_votes() {
        let votes = [[1, 0], [0, 1], [1, 1], [0, 1], [1, 0], [1, 1]];
        let table = Table::new(["a", "b"], vec![0.5; 12]).and_then(|table| table.with_votes(votes.concat())).unwrap();
        assert_eq!(sort_by_votes(&table, &[3, 5, 4, 0, 1, 2]), [3, 1, 5, 2, 4, 0]);
    }
}
