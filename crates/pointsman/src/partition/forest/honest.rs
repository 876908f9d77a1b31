//! Honest partitions: a tree is grown on one half of the rows, and its leaves are estimated from the other half.

use pointsman_trees::{GrowthRule, LEAF_SIZES, Node, TrainingSet, Trees, join_trees};

use super::inputs;
use super::learn::{Grower, grow_on_table};
use crate::error::Result;
use crate::numeric::mix::nth;
use crate::parallel::prelude::*;
use crate::partition::SPARSE_BELOW_ROWS;
use crate::table::Table;

/// Folds of the cross-validation that chooses the leaf size.
const FOLDS: u64 = 4;

/// The largest number of rows on which a tree is grown. More would hardly change it.
const MAX_ROWS_TO_GROW_ON: usize = 1 << 18;

/// The two halves of a table's rows: `divide` grows the tree, `kept` are the calibration rows. Both are in label-free order.
pub(crate) struct Halves {
    pub(crate) divide: Vec<u32>,
    pub(crate) kept: Vec<u32>,
}

impl Halves {
    /// Splits rows at random by the hashes of their ranks in the label-free order. Ranks with a hash above the median go to `divide`; if
    /// the number of rows is odd, `kept` has one row more.
    pub(crate) fn new(order: &[u32], seed: u64) -> Self {
        let hash = |rank: usize| nth(seed, rank as u64);
        let mut hashes: Vec<u64> = (0..order.len()).map(hash).collect();
        hashes.sort_unstable();
        // No two ranks have the same hash.
        let median = order.len().checked_sub(1).map_or(0, |last| hashes[last / 2]);
        let half = |divides: bool| {
            let rows = order.iter().enumerate().filter(|(rank, _)| (hash(*rank) > median) == divides);
            rows.map(|(_, &row)| row).collect()
        };
        Self { divide: half(true), kept: half(false) }
    }
}

/// Grows a tree on the rows `divide` with the leaf size of the smallest cross-validated error, and prunes leaves with too few of them.
///
/// The calibration rows are not an argument, so the tree is independent of them. A leaf may hold few calibration rows.
pub(crate) fn grow_honest_tree(table: &Table, divide: &[u32], columns: &[usize], seed: u64) -> Result<Trees> {
    let trees = grow_on_table(table, divide, columns, MAX_ROWS_TO_GROW_ON, &TreeGrower { seed })?;
    let found = trees.leaves_of_inputs(0, &inputs::of_rows(table, divide, columns));
    prune_sparse_leaves(&trees, &found)
}

struct TreeGrower {
    seed: u64,
}

impl Grower for TreeGrower {
    type Grown = Trees;

    /// Grows a tree with the leaf size of the smallest cross-validated error.
    fn grow<const N: usize>(&self, training: &TrainingSet<N>) -> Result<Trees> {
        let seed = self.seed;
        let fold = |row: usize| nth(nth(seed, 1), u64::from(training.key(row))) % FOLDS;
        let rule = |min_rows_per_leaf: usize| GrowthRule {
            min_rows_to_split: 2 * min_rows_per_leaf,
            min_rows_per_leaf,
            share_of_inputs: 1.0,
        };
        let errors_of = |&leaf: &usize| -> Vec<f64> {
            let mut errors = vec![0.0; training.rows()];
            for left_out in 0..FOLDS {
                let grown = training.grow_tree(|row| fold(row) != left_out, rule(leaf), seed);
                for (row, slot) in errors.iter_mut().enumerate().filter(|(row, _)| fold(*row) == left_out) {
                    *slot = training.squared_error(row, grown.mean_of_row(training.inputs_of_row(row)));
                }
            }
            errors
        };
        let tried: Vec<Vec<f64>> = LEAF_SIZES.par_iter().map(errors_of).collect();
        let error = |size: usize| training.weighted_mean(&tried[size]);
        let best = (0..LEAF_SIZES.len()).min_by(|&a, &b| error(a).total_cmp(&error(b))).unwrap_or(0);
        let grown = training.grow_tree(|_| true, rule(LEAF_SIZES[best]), seed);
        Ok(join_trees(training.width(), &[grown.nodes])?)
    }
}

/// Merges every leaf with fewer than [`SPARSE_BELOW_ROWS`] rows into its sibling. `leaf_of_row` is the leaf of each row.
pub(super) fn prune_sparse_leaves(trees: &Trees, leaf_of_row: &[u32]) -> Result<Trees> {
    let mut counts = vec![0_usize; trees.leaves()];
    leaf_of_row.iter().for_each(|&leaf| counts[leaf as usize] += 1);
    let nodes: Vec<Node> = trees.nodes().collect();
    let mut next = 0;
    let mut leaf_of = vec![0; nodes.len()];
    for (place, node) in nodes.iter().enumerate() {
        if *node == Node::Leaf {
            leaf_of[place] = next;
            next += 1;
        }
    }
    let mut out = vec![Node::Leaf];
    let root = prune(&nodes, &leaf_of, &counts, 0);
    write_nodes(&root, &mut out, 0);
    Ok(Trees::new(trees.inputs(), vec![0], &out)?)
}

/// A pruned subtree, with its number of rows.
enum Pruned {
    Leaf(usize),
    Split(Node, Box<[Pruned; 2]>, usize),
}

impl Pruned {
    fn rows(&self) -> usize {
        match self {
            Self::Leaf(rows) | Self::Split(_, _, rows) => *rows,
        }
    }
}

/// The pruned subtree below the node `place`.
fn prune(nodes: &[Node], leaf_of: &[usize], counts: &[usize], place: usize) -> Pruned {
    match nodes[place] {
        Node::Leaf => Pruned::Leaf(counts[leaf_of[place]]),
        node @ Node::Split { left, .. } => {
            let [a, b] = [0, 1].map(|side| prune(nodes, leaf_of, counts, left as usize + side));
            let rows = a.rows() + b.rows();
            match (a, b) {
                // The split is replaced by the other side, which also takes the rows of the sparse leaf.
                (Pruned::Leaf(few), Pruned::Leaf(_)) if few < SPARSE_BELOW_ROWS => Pruned::Leaf(rows),
                (Pruned::Leaf(_), Pruned::Leaf(few)) if few < SPARSE_BELOW_ROWS => Pruned::Leaf(rows),
                (Pruned::Leaf(few), Pruned::Split(node, sides, _)) if few < SPARSE_BELOW_ROWS => {
                    Pruned::Split(node, sides, rows)
                }
                (Pruned::Split(node, sides, _), Pruned::Leaf(few)) if few < SPARSE_BELOW_ROWS => {
                    Pruned::Split(node, sides, rows)
                }
                (a, b) => Pruned::Split(node, Box::new([a, b]), rows),
            }
        }
    }
}

/// Appends the nodes of a subtree to `out`, with its root at `place`.
fn write_nodes(pruned: &Pruned, out: &mut Vec<Node>, place: usize) {
    if let Pruned::Split(Node::Split { input, threshold, missing_right, .. }, sides, _) = pruned {
        let left = out.len();
        out[place] =
            Node::Split { input: *input, threshold: *threshold, left: left as u32, missing_right: *missing_right };
        out.extend([Node::Leaf; 2]);
        write_nodes(&sides[0], out, left);
        write_nodes(&sides[1], out, left + 1);
    }
}
