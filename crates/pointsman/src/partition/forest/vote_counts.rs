//! The distinct vote vectors of each leaf, and the number of rows that have each.

use super::rows_in_leaves::{RowsInLeaves, TreeLeaves};
use crate::parallel::prelude::*;
use crate::table::Table;

/// The fewest rows per distinct vote vector of a leaf, on average, for which vote counts are kept. With fewer rows they save too little time
/// for their memory.
const MIN_ROWS_PER_VOTE_VECTOR: usize = 4;

/// The number of rows per distinct vote vector, leaf by leaf. Vote vectors are numbered as in the table: by their first row.
#[derive(Debug, Clone, PartialEq)]
pub struct VoteCounts {
    /// Pairs of a vote vector and a number of rows, one after another.
    pairs: Vec<u32>,
    /// Those of leaf `l` are pairs `starts[l]..starts[l + 1]`.
    starts: Vec<usize>,
}

impl VoteCounts {
    /// Counts leaf by leaf: pairs of a vote vector and a number of rows, one after another, and how many pairs each leaf has. `None` if these
    /// are not as many as there are pairs.
    #[must_use]
    pub fn from_parts(pairs: Vec<u32>, pairs_of_leaf: &[u32]) -> Option<Self> {
        let mut starts = Vec::with_capacity(pairs_of_leaf.len() + 1);
        starts.push(0);
        let mut end = 0_usize;
        for &pairs in pairs_of_leaf {
            end = end.checked_add(pairs as usize)?;
            starts.push(end);
        }
        (end.checked_mul(2)? == pairs.len()).then_some(Self { pairs, starts })
    }

    /// All pairs of a vote vector and a number of rows, leaf by leaf.
    #[must_use]
    pub fn pairs(&self) -> &[[u32; 2]] {
        self.pairs.as_chunks().0
    }

    /// How many pairs each leaf has.
    pub fn pairs_of_leaf(&self) -> impl Iterator<Item = u32> {
        self.starts.windows(2).map(|ends| (ends[1] - ends[0]) as u32)
    }

    /// Counts the votes of the rows in each leaf; `None` if rows have weights of their own, or there are too few rows per distinct vote
    /// vector.
    pub(super) fn count(table: &Table, rows: &RowsInLeaves) -> Option<Self> {
        let votes = table.distinct_votes().index_of_row();
        // Counts leaf by leaf, and the number of counts of each leaf.
        let of_tree = |tree: &TreeLeaves<'_>| -> (Vec<[u32; 2]>, Vec<usize>) {
            let (mut counts, mut lengths) = (Vec::new(), Vec::with_capacity(tree.leaves().len()));
            for leaf in tree.leaves() {
                let before = counts.len();
                let runs = tree.rows_of(leaf).chunk_by(|&a, &b| votes[a as usize] == votes[b as usize]);
                counts.extend(runs.map(|run| [votes[run[0] as usize], run.len() as u32]));
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
        let mut built = Self { pairs: Vec::new(), starts: vec![0] };
        for (counts, lengths) in all {
            for length in lengths {
                built.starts.push(built.starts[built.starts.len() - 1] + length);
            }
            built.pairs.extend(counts.as_flattened());
        }
        are_few(built.pairs().len(), rows.trees()).then_some(built)
    }

    /// The number of leaves.
    pub(super) fn leaves(&self) -> usize {
        self.starts.len() - 1
    }

    /// The pairs of a leaf.
    pub(super) fn of(&self, leaf: usize) -> &[[u32; 2]] {
        &self.pairs()[self.starts[leaf]..self.starts[leaf + 1]]
    }
}
