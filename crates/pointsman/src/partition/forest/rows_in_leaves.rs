//! Which calibration rows are in which leaf.

use std::cell::OnceCell;
use std::ops::Range;

use pointsman_trees::Trees;

use crate::parallel::prelude::*;

/// The leaf of each row in one tree, counted from the tree's first leaf.
///
/// A forest keeps one number per row and tree, most of its memory, so numbers take two bytes unless the tree has more leaves than that counts.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LeafNumbers {
    /// At most 65,536 leaves.
    Short(Vec<u16>),
    Long(Vec<u32>),
}

impl LeafNumbers {
    /// The numbers of leaves below `leaves`.
    pub(super) fn new(leaves: usize, numbers: impl Iterator<Item = u32>) -> Self {
        match leaves <= 1 << u16::BITS {
            true => Self::Short(numbers.map(|leaf| leaf as u16).collect()),
            false => Self::Long(numbers.collect()),
        }
    }

    /// The leaf of a row.
    #[inline]
    pub(super) fn get(&self, row: usize) -> usize {
        match self {
            Self::Short(leaves) => leaves[row].into(),
            Self::Long(leaves) => leaves[row] as usize,
        }
    }

    /// Calls `visit` with each row and its leaf, in the order of rows.
    #[inline]
    pub(super) fn for_each(&self, mut visit: impl FnMut(usize, usize)) {
        match self {
            Self::Short(leaves) => leaves.iter().enumerate().for_each(|(row, &leaf)| visit(row, leaf.into())),
            Self::Long(leaves) => leaves.iter().enumerate().for_each(|(row, &leaf)| visit(row, leaf as usize)),
        }
    }

    /// The leaves of rows in another order: row `i` becomes row `places[i]`.
    pub(super) fn permuted(&self, places: &[u32]) -> Self {
        fn permute<T: Copy + Default>(leaves: &[T], places: &[u32]) -> Vec<T> {
            let mut moved = vec![T::default(); leaves.len()];
            places.iter().zip(leaves).for_each(|(&place, &leaf)| moved[place as usize] = leaf);
            moved
        }
        match self {
            Self::Short(leaves) => Self::Short(permute(leaves, places)),
            Self::Long(leaves) => Self::Long(permute(leaves, places)),
        }
    }
}

/// The calibration rows in the leaves of a forest. Leaves are numbered over all trees.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RowsInLeaves {
    /// For each tree, the leaf of each row.
    leaf_of_row: Vec<LeafNumbers>,
    leaves_of_tree: Vec<Range<usize>>,
    /// The rows, sorted so that those with the same votes are adjacent.
    rows_by_votes: Vec<u32>,
}

impl RowsInLeaves {
    pub(super) fn new(trees: &Trees, leaf_of_row: Vec<LeafNumbers>, rows_by_votes: Vec<u32>) -> Self {
        let leaves_of_tree = (0..trees.count()).map(|tree| trees.leaves_of_tree(tree)).collect();
        Self { leaf_of_row, leaves_of_tree, rows_by_votes }
    }

    /// The number of trees.
    pub(crate) fn trees(&self) -> usize {
        self.leaves_of_tree.len()
    }

    /// The number of rows in each tree.
    pub(crate) fn rows(&self) -> usize {
        self.rows_by_votes.len()
    }

    /// The number of leaves of all trees.
    pub(crate) fn leaves(&self) -> usize {
        self.leaves_of_tree.last().map_or(0, |last| last.end)
    }

    /// The leaves of one tree.
    pub(crate) fn tree(&self, tree: usize) -> TreeLeaves<'_> {
        TreeLeaves {
            leaf_of_row: &self.leaf_of_row[tree],
            rows_by_votes: &self.rows_by_votes,
            leaves: self.leaves_of_tree[tree].clone(),
            members: OnceCell::new(),
        }
    }

    /// The rows of one leaf of a tree, without looking up those of its other leaves.
    pub(crate) fn rows_in_leaf(&self, tree: usize, leaf: usize) -> Vec<u32> {
        let (wanted, mut rows) = (leaf - self.leaves_of_tree[tree].start, Vec::new());
        self.leaf_of_row[tree].for_each(|row, leaf| rows.extend((leaf == wanted).then_some(row as u32)));
        rows
    }

    /// Maps the leaves of all trees, one tree after the other within a task.
    pub(crate) fn map_leaves<B, T: Send>(
        &self,
        buffer: impl Fn() -> B + Sync + Send,
        of_leaf: impl Fn(&mut B, &TreeLeaves<'_>, usize) -> T + Sync,
    ) -> Vec<T> {
        let of_tree = |buffer: &mut B, tree: usize| -> Vec<T> {
            let tree = self.tree(tree);
            tree.leaves().map(|leaf| of_leaf(buffer, &tree, leaf)).collect()
        };
        let made: Vec<Vec<T>> = (0..self.trees()).into_par_iter().map_init(buffer, of_tree).collect();
        made.into_iter().flatten().collect()
    }

    /// Sums `numbers`, given per row, over the rows of each leaf of the first `count` trees, and maps each leaf's sums with `make`.
    pub(crate) fn sum_over_leaves<const N: usize, T: Send>(
        &self,
        count: usize,
        numbers: &[[f64; N]],
        make: impl Fn(usize, &[f64; N]) -> T + Sync,
    ) -> Vec<T> {
        let of_tree = |tree: usize| -> Vec<T> {
            let leaves = self.leaves_of_tree[tree].clone();
            let mut sums = vec![[0.0; N]; leaves.len()];
            self.leaf_of_row[tree].for_each(|row, leaf| {
                let sum = &mut sums[leaf];
                *sum = std::array::from_fn(|i| sum[i] + numbers[row][i]);
            });
            leaves.zip(&sums).map(|(leaf, sums)| make(leaf, sums)).collect()
        };
        let made: Vec<Vec<T>> = (0..count).into_par_iter().map(of_tree).collect();
        made.into_iter().flatten().collect()
    }
}

/// The leaves of one tree with their rows, which are looked up when they are first needed.
pub(crate) struct TreeLeaves<'a> {
    leaf_of_row: &'a LeafNumbers,
    rows_by_votes: &'a [u32],
    leaves: Range<usize>,
    members: OnceCell<LeafMembers>,
}

/// The rows of each leaf of a tree; in a leaf, those with the same votes together.
struct LeafMembers {
    rows: Vec<u32>,
    /// Rows of the tree's leaf `l` are `starts[l]..starts[l + 1]`.
    starts: Vec<usize>,
}

impl TreeLeaves<'_> {
    /// The leaves, numbered over all trees.
    pub(crate) fn leaves(&self) -> Range<usize> {
        self.leaves.clone()
    }

    /// The rows of a leaf, those with the same votes together.
    pub(crate) fn rows_of(&self, leaf: usize) -> &[u32] {
        let LeafMembers { rows, starts } = self.members.get_or_init(|| self.find_members());
        let leaf = leaf - self.leaves.start;
        &rows[starts[leaf]..starts[leaf + 1]]
    }

    fn find_members(&self) -> LeafMembers {
        let mut starts = vec![0_usize; self.leaves.len() + 1];
        self.leaf_of_row.for_each(|_, leaf| starts[leaf + 1] += 1);
        (0..self.leaves.len()).for_each(|leaf| starts[leaf + 1] += starts[leaf]);
        let (mut next, mut rows) = (starts.clone(), vec![0; self.rows_by_votes.len()]);
        for &row in self.rows_by_votes {
            let next = &mut next[self.leaf_of_row.get(row as usize)];
            rows[*next] = row;
            *next += 1;
        }
        LeafMembers { rows, starts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_sizes_are_kept() {
        for leaves in [1_usize, 65_536, 65_537, 1 << 20] {
            let numbers = [0, leaves as u32 / 2, leaves as u32 - 1];
            let kept = LeafNumbers::new(leaves, numbers.into_iter());
            assert_eq!([0, 1, 2].map(|row| kept.get(row) as u32), numbers);
            let moved = kept.permuted(&[1, 2, 0]);
            assert_eq!([1, 2, 0].map(|row| moved.get(row) as u32), numbers);
            let mut visited = Vec::new();
            kept.for_each(|row, leaf| visited.push((row, leaf as u32)));
            assert_eq!(visited, [(0, numbers[0]), (1, numbers[1]), (2, numbers[2])]);
        }
    }
}
