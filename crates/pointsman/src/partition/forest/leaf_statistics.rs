//! Statistics of the calibration rows in each leaf of a forest that depend on no loss.

use pointsman_trees::{BootstrapSample, Trees};

use super::assignment::RankedLeaves;
use super::rows_in_leaves::{RowsInLeaves, TreeLeaves};
use super::vote_moments::{Shrunk, ShrunkLeaves};
use crate::parallel::prelude::*;
use crate::table::Table;

/// The fewest rows per distinct vote vector of a leaf, on average, for which vote counts are kept. With fewer rows they save too little time
/// for their memory.
const MIN_ROWS_PER_VOTE_VECTOR: usize = 4;

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
    totals: Vec<LeafTotals>,
    /// The rank in the label-free order of each row that trees may be grown on: bootstrap samples are drawn by it.
    ranks: Vec<Option<u32>>,
    /// Some rows with two labels or more.
    sample: Vec<u32>,
    /// For each tree, the places in the sample of rows that are out of its bag, and their leaves.
    out_of_bag: Vec<Vec<(u32, u32)>>,
}

/// The number of rows per distinct vote vector, leaf by leaf. Vote vectors are numbered as in the table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct VoteCounts {
    counts: Vec<(u32, u32)>,
    /// Those of leaf `l` are `starts[l]..starts[l + 1]`.
    starts: Vec<usize>,
}

/// The weight of a leaf's rows, and the share of their labels that are not the top class of their row.
#[derive(Debug, Clone, Copy, PartialEq)]
struct LeafTotals {
    weight: f64,
    error_share: f64,
}

impl VoteCounts {
    /// `None` if rows have weights of their own, or there are too few rows per distinct vote vector.
    fn new(table: &Table, rows: &RowsInLeaves) -> Option<Self> {
        let votes = table.distinct_votes().index_of_row();
        // Counts leaf by leaf, and the number of counts of each leaf.
        let of_tree = |tree: &TreeLeaves<'_>| -> (Vec<(u32, u32)>, Vec<usize>) {
            let (mut counts, mut lengths) = (Vec::new(), Vec::with_capacity(tree.leaves().len()));
            for leaf in tree.leaves() {
                let before = counts.len();
                let runs = tree.rows_of(leaf).chunk_by(|&a, &b| votes[a as usize] == votes[b as usize]);
                counts.extend(runs.map(|run| (votes[run[0] as usize], run.len() as u32)));
                lengths.push(counts.len() - before);
            }
            (counts, lengths)
        };
        let are_few = |counts: usize, trees: usize| counts <= trees * rows.rows() / MIN_ROWS_PER_VOTE_VECTOR;
        // The first tree shows whether the counts of all trees would take too much memory.
        if table.has_weights() || !are_few(of_tree(&rows.tree(0)).0.len(), 1) {
            return None;
        }
        let all: Vec<_> = (0..rows.trees()).into_par_iter().map(|tree| of_tree(&rows.tree(tree))).collect();
        let mut built = Self { counts: Vec::new(), starts: vec![0] };
        for (counts, lengths) in all {
            for length in lengths {
                built.starts.push(built.starts[built.starts.len() - 1] + length);
            }
            built.counts.extend(counts);
        }
        are_few(built.counts.len(), rows.trees()).then_some(built)
    }

    pub(super) fn of(&self, leaf: usize) -> &[(u32, u32)] {
        &self.counts[self.starts[leaf]..self.starts[leaf + 1]]
    }
}

impl LeafStatistics {
    /// The statistics of the leaves of trees whose rows, given by rank, are the rows `row_of_rank` of a table.
    pub(crate) fn new(leaves: RankedLeaves, row_of_rank: &[u32], table: &Table, trees: &Trees) -> Self {
        let RankedLeaves { mut leaf_of_row, ranks_by_votes, is_paired, mut sample, out_of_bag } = leaves;
        let mut ranks = vec![None; row_of_rank.len()];
        for (rank, &row) in row_of_rank.iter().enumerate().filter(|(rank, _)| is_paired[*rank]) {
            ranks[row as usize] = Some(rank as u32);
        }
        sample.iter_mut().for_each(|row| *row = row_of_rank[*row as usize]);
        leaf_of_row.par_iter_mut().for_each(|leaves| *leaves = leaves.permuted(row_of_rank));
        let rows_by_votes = ranks_by_votes.iter().map(|&rank| row_of_rank[rank as usize]).collect();
        let rows = RowsInLeaves::new(trees, leaf_of_row, rows_by_votes);
        let vote_counts = VoteCounts::new(table, &rows);
        let shrunk = ShrunkLeaves::new(table, &rows, vote_counts.as_ref());
        let of_row = |row: usize| [table.weight(row), table.weight(row) * table.top_error(row)];
        let of_rows: Vec<[f64; 2]> = (0..table.rows()).map(of_row).collect();
        let totals = |_: usize, &[weight, wrong]: &[f64; 2]| LeafTotals { weight, error_share: wrong / weight };
        let totals = rows.sum_over_leaves(rows.trees(), &of_rows, totals);
        Self { rows, vote_counts, shrunk, totals, ranks, sample, out_of_bag }
    }

    /// The rows in each leaf.
    pub(crate) fn rows(&self) -> &RowsInLeaves {
        &self.rows
    }

    /// The distinct vote vectors of a leaf, by number, and the number of rows that have each; `None` if not kept.
    pub(crate) fn vote_counts(&self, leaf: usize) -> Option<&[(u32, u32)]> {
        self.vote_counts.as_ref().map(|counts| counts.of(leaf))
    }

    /// The shrunk label distributions of a leaf's rows; `None` if items have different numbers of labels, or one each.
    pub(crate) fn shrunk(&self, leaf: usize) -> Option<Shrunk<'_>> {
        self.shrunk.as_ref().map(|shrunk| shrunk.of(leaf))
    }

    /// The share of labels in a leaf that are not the top class of their row.
    pub(crate) fn error_share(&self, leaf: usize) -> f64 {
        self.totals[leaf].error_share
    }

    /// The weight of a leaf's rows.
    pub(crate) fn weight(&self, leaf: usize) -> f64 {
        self.totals[leaf].weight
    }

    /// Some rows with two labels or more.
    pub(crate) fn sample(&self) -> &[u32] {
        &self.sample
    }

    /// The rows of the sample that are out of a tree's bag: their places in the sample, and their leaves.
    pub(crate) fn out_of_bag_sample(&self, tree: usize) -> &[(u32, u32)] {
        &self.out_of_bag[tree]
    }

    /// Whether a row is out of bag for the tree of this sample. Rows with one label grow no tree.
    #[inline]
    pub(crate) fn is_out_of_bag(&self, sample: BootstrapSample, row: u32) -> bool {
        self.ranks[row as usize].is_none_or(|rank| !sample.contains(rank))
    }
}
