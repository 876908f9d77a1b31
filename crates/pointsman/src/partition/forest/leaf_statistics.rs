//! Statistics of the calibration rows in each leaf of a forest that depend on no loss.

use pointsman_trees::{BootstrapSample, Trees};

use super::assignment::RankedLeaves;
use super::vote_moments::{Shrunk, ShrunkLeaves};
use crate::parallel::prelude::*;
use crate::table::Table;

/// The fewest rows per distinct vote vector of a leaf, on average, for which vote counts are kept. With fewer rows they save too little time
/// for their memory.
const MIN_ROWS_PER_VOTE_VECTOR: usize = 4;

/// The fewest rows, and leaves, per parallel task.
const MIN_ROWS_PER_TASK: usize = 1 << 14;
const MIN_LEAVES_PER_TASK: usize = 64;

/// The rows in each leaf of a forest, and statistics of their votes and weights.
///
/// Every tree holds all rows, not only those of its bootstrap sample, so that more rows estimate the losses of a leaf.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LeafStatistics {
    members: LeafMembers,
    /// For each tree, the leaf of each row.
    leaf_of_row: Vec<Vec<u32>>,
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

/// The rows of each leaf; in a leaf, those with the same votes together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LeafMembers {
    rows: Vec<u32>,
    /// Rows of leaf `l` are `starts[l]..starts[l + 1]`.
    starts: Vec<usize>,
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

impl LeafMembers {
    /// The number of leaves.
    pub(super) fn leaves(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of rows in all leaves: each row once per tree.
    pub(super) fn rows(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn rows_of(&self, leaf: usize) -> &[u32] {
        &self.rows[self.starts[leaf]..self.starts[leaf + 1]]
    }
}

impl VoteCounts {
    /// `None` if rows have weights of their own, or there are too few rows per distinct vote vector.
    fn new(table: &Table, members: &LeafMembers) -> Option<Self> {
        let votes = table.distinct_votes().index_of_row();
        let of_leaf = |leaf: usize| {
            let runs = members.rows_of(leaf).chunk_by(|&a, &b| votes[a as usize] == votes[b as usize]);
            runs.map(|run| (votes[run[0] as usize], run.len() as u32))
        };
        let leaves = members.leaves();
        let lengths: Vec<usize> = (0..leaves).into_par_iter().map(|leaf| of_leaf(leaf).count()).collect();
        if table.has_weights() || lengths.iter().sum::<usize>() > members.rows() / MIN_ROWS_PER_VOTE_VECTOR {
            return None;
        }
        let mut starts = vec![0; leaves + 1];
        lengths.iter().enumerate().for_each(|(leaf, length)| starts[leaf + 1] = starts[leaf] + length);
        Some(Self { counts: (0..leaves).flat_map(of_leaf).collect(), starts })
    }

    pub(super) fn of(&self, leaf: usize) -> &[(u32, u32)] {
        &self.counts[self.starts[leaf]..self.starts[leaf + 1]]
    }
}

impl LeafStatistics {
    /// The statistics of leaves whose rows, given by rank, are the rows `row_of_rank` of a table.
    pub(crate) fn new(leaves: RankedLeaves, row_of_rank: &[u32], table: &Table) -> Self {
        let RankedLeaves { mut rows, starts, mut leaf_of_row, is_paired, mut sample, out_of_bag } = leaves;
        let mut ranks = vec![None; row_of_rank.len()];
        for (rank, &row) in row_of_rank.iter().enumerate().filter(|(rank, _)| is_paired[*rank]) {
            ranks[row as usize] = Some(rank as u32);
        }
        sample.iter_mut().for_each(|row| *row = row_of_rank[*row as usize]);
        leaf_of_row.par_iter_mut().for_each(|leaves| {
            let mut moved = vec![0; leaves.len()];
            row_of_rank.iter().zip(leaves.iter()).for_each(|(&row, &leaf)| moved[row as usize] = leaf);
            *leaves = moved;
        });
        let renumbered = rows.par_iter_mut().with_min_len(MIN_ROWS_PER_TASK);
        renumbered.for_each(|row| *row = row_of_rank[*row as usize]);
        let members = LeafMembers { rows, starts };
        let vote_counts = VoteCounts::new(table, &members);
        let shrunk = ShrunkLeaves::new(table, &members, vote_counts.as_ref());
        let totals = leaf_totals(table, &members);
        Self { members, leaf_of_row, vote_counts, shrunk, totals, ranks, sample, out_of_bag }
    }

    /// The number of leaves of all trees.
    #[cfg(test)]
    pub(crate) fn leaves(&self) -> usize {
        self.members.leaves()
    }

    /// The rows of a leaf, those with the same votes together.
    pub(crate) fn rows_of(&self, leaf: usize) -> &[u32] {
        self.members.rows_of(leaf)
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

    /// Sums `numbers`, given per row, over the rows of each leaf of the first `count` trees, and maps each leaf's sums with `make`.
    pub(crate) fn sum_over_leaves<const N: usize, T: Copy + Send>(
        &self,
        trees: &Trees,
        count: usize,
        numbers: &[[f64; N]],
        make: impl Fn(usize, &[f64; N]) -> T + Sync,
    ) -> Vec<T> {
        let of_tree = |tree: usize| -> Vec<T> {
            let leaves = trees.leaves_of_tree(tree);
            let mut sums = vec![[0.0; N]; leaves.len()];
            for (&leaf, own) in self.leaf_of_row[tree].iter().zip(numbers) {
                let sum = &mut sums[leaf as usize - leaves.start];
                *sum = std::array::from_fn(|i| sum[i] + own[i]);
            }
            leaves.zip(&sums).map(|(leaf, sums)| make(leaf, sums)).collect()
        };
        let made: Vec<Vec<T>> = (0..count).into_par_iter().map(of_tree).collect();
        made.concat()
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

fn leaf_totals(table: &Table, members: &LeafMembers) -> Vec<LeafTotals> {
    let of_row = |row: usize| [table.weight(row), table.weight(row) * table.top_error(row)];
    let of_rows: Vec<[f64; 2]> = (0..table.rows()).map(of_row).collect();
    let of_leaf = |leaf: usize| {
        let add = |sums: [f64; 2], &row: &u32| std::array::from_fn(|i| sums[i] + of_rows[row as usize][i]);
        let [weight, wrong] = members.rows_of(leaf).iter().fold([0.0; 2], add);
        LeafTotals { weight, error_share: wrong / weight }
    };
    (0..members.leaves()).into_par_iter().with_min_len(MIN_LEAVES_PER_TASK).map(of_leaf).collect()
}
