//! Which calibration rows are in which leaf.

use std::cell::OnceCell;
use std::ops::Range;

use pointsman_trees::Trees;

use super::leaf_numbers::{LeafNumbers, NumberSlice};
use crate::parallel::prelude::*;

/// Trees whose sums are made in one pass over the rows, and the rows of a step of that pass: the numbers of these rows stay in the cache while
/// each tree sums them.
const TREES_PER_PASS: usize = 8;
const ROWS_PER_STEP: usize = 1 << 12;

/// The calibration rows in the leaves of a forest. Leaves are numbered over all trees.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RowsInLeaves {
    leaf_of_row: LeafNumbers,
    leaves_of_tree: Vec<Range<usize>>,
    /// The rows, sorted so that those with the same votes are adjacent.
    rows_by_votes: Vec<u32>,
}

impl RowsInLeaves {
    pub(super) fn new(trees: &Trees, leaf_of_row: LeafNumbers, rows_by_votes: Vec<u32>) -> Self {
        let leaves_of_tree = (0..trees.count()).map(|tree| trees.leaves_of_tree(tree)).collect();
        Self { leaf_of_row, leaves_of_tree, rows_by_votes }
    }

    /// The leaf of each row in each tree.
    pub(super) fn leaf_of_row(&self) -> &LeafNumbers {
        &self.leaf_of_row
    }

    /// The leaf of a row in a tree, numbered over all trees.
    pub(super) fn leaf(&self, tree: usize, row: u32) -> usize {
        self.leaves_of_tree[tree].start + self.numbers(tree).get(row as usize)
    }

    /// The leaf of each row in one tree, counted from the tree's first leaf.
    pub(super) fn numbers(&self, tree: usize) -> NumberSlice<'_> {
        self.leaf_of_row.of_tree(tree, self.rows())
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
            leaf_of_row: self.numbers(tree),
            rows_by_votes: &self.rows_by_votes,
            leaves: self.leaves_of_tree[tree].clone(),
            members: OnceCell::new(),
        }
    }

    /// The rows of one leaf of a tree, without looking up those of its other leaves.
    pub(crate) fn rows_in_leaf(&self, tree: usize, leaf: usize) -> Vec<u32> {
        let (wanted, mut rows) = (leaf - self.leaves_of_tree[tree].start, Vec::new());
        self.numbers(tree).for_each(|row, leaf| rows.extend((leaf == wanted).then_some(row as u32)));
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
        let of_trees = |first: usize| -> Vec<T> {
            let trees = first..count.min(first + TREES_PER_PASS);
            let leaves = self.leaves_of_tree[first].start..self.leaves_of_tree[trees.end - 1].end;
            let mut sums = vec![[0.0; N]; leaves.len()];
            for (step, numbers) in numbers.chunks(ROWS_PER_STEP).enumerate() {
                let rows = step * ROWS_PER_STEP..step * ROWS_PER_STEP + numbers.len();
                for tree in trees.clone() {
                    let own = &self.leaves_of_tree[tree];
                    let sums = &mut sums[own.start - leaves.start..own.end - leaves.start];
                    self.numbers(tree).range(rows.clone()).for_each(|row, leaf| {
                        let sum = &mut sums[leaf];
                        *sum = std::array::from_fn(|i| sum[i] + numbers[row][i]);
                    });
                }
            }
            leaves.zip(&sums).map(|(leaf, sums)| make(leaf, sums)).collect()
        };
        let firsts: Vec<usize> = (0..count).step_by(TREES_PER_PASS).collect();
        let made: Vec<Vec<T>> = firsts.into_par_iter().map(of_trees).collect();
        made.into_iter().flatten().collect()
    }
}

/// The leaves of one tree with their rows, which are looked up when they are first needed.
pub(crate) struct TreeLeaves<'a> {
    leaf_of_row: NumberSlice<'a>,
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
