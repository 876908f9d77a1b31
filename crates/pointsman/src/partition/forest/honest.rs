//! Honest partitions: half of the rows say where to divide, the other half what is there.

use pointsman_trees::{GrowthRule, LEAF_SIZES, Node, Trees, join_trees};

use super::inputs;
use super::learn::training_set;
use crate::error::Result;
use crate::numeric::mix::nth;
use crate::parallel::prelude::*;
use crate::partition::SPARSE_BELOW_ROWS;
use crate::table::Table;

/// Folds of the cross-validation that chooses the leaf size.
const FOLDS: u64 = 4;

/// The rows of a table that divide and those that are kept, each in label-free order.
pub(crate) struct Halves {
    pub(crate) divide: Vec<u32>,
    pub(crate) kept: Vec<u32>,
}

impl Halves {
    /// A row's half is drawn by its rank in the label-free order: ranks whose hashes are above the median divide. Of an odd number
    /// of rows one more is kept.
    pub(crate) fn of(order: &[u32], seed: u64) -> Self {
        let hash = |rank: usize| nth(seed, rank as u64);
        let mut hashes: Vec<u64> = (0..order.len()).map(hash).collect();
        hashes.sort_unstable();
        // Ranks have different hashes.
        let median = order.len().checked_sub(1).map_or(0, |last| hashes[last / 2]);
        let half = |divides: bool| {
            let rows = order.iter().enumerate().filter(|(rank, _)| (hash(*rank) > median) == divides);
            rows.map(|(_, &row)| row).collect()
        };
        Self { divide: half(true), kept: half(false) }
    }
}

/// Grows a tree on the rows that divide, and cuts it back until each leaf has enough of them. The rows that are kept are not even
/// given: they are as good as new to the leaves, and a leaf may have few of them.
pub(crate) fn tree(table: &Table, divide: &[u32], columns: &[usize], seed: u64) -> Result<Trees> {
    let training = training_set(table, divide, columns)?;
    let fold = |row: usize| nth(nth(seed, 1), u64::from(training.key(row))) % FOLDS;
    let rule = |min_rows_per_leaf: usize| GrowthRule { min_rows_per_leaf, share_of_inputs: 1.0 };
    let errors_of = |&leaf: &usize| -> Result<Vec<f64>> {
        let mut errors = vec![0.0; training.rows()];
        for left_out in 0..FOLDS {
            let grown = training.grow_tree(|row| fold(row) != left_out, rule(leaf), seed);
            let trees = join_trees(training.width(), std::slice::from_ref(&grown))?;
            for (row, slot) in errors.iter_mut().enumerate().filter(|(row, _)| fold(*row) == left_out) {
                let mean = &grown.means[trees.leaf_of_row(0, training.inputs_of_row(row)) as usize];
                *slot = training.squared_error(row, mean);
            }
        }
        Ok(errors)
    };
    let tried: Vec<Vec<f64>> = LEAF_SIZES.par_iter().map(errors_of).collect::<Result<_>>()?;
    let error = |size: usize| training.weighted_mean(&tried[size]);
    let best = (0..LEAF_SIZES.len()).min_by(|&a, &b| error(a).total_cmp(&error(b))).unwrap_or(0);
    let grown = training.grow_tree(|_| true, rule(LEAF_SIZES[best]), seed);
    let trees = join_trees(training.width(), std::slice::from_ref(&grown))?;
    let found = trees.leaves_of_inputs(0, &inputs::of_rows(table, divide, columns));
    thin(&trees, &found)
}

/// Lets leaves with few rows, whose leaves are given, join their siblings.
pub(super) fn thin(trees: &Trees, found: &[u32]) -> Result<Trees> {
    let mut counts = vec![0_usize; trees.leaves()];
    found.iter().for_each(|&leaf| counts[leaf as usize] += 1);
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
    let root = keep(&nodes, &leaf_of, &counts, 0);
    write(&root, &mut out, 0);
    Ok(Trees::new(trees.inputs(), vec![0], &out)?)
}

/// A subtree that stays, and its rows.
enum Kept {
    Leaf(usize),
    Split(Node, Box<[Kept; 2]>, usize),
}

impl Kept {
    fn rows(&self) -> usize {
        match self {
            Self::Leaf(rows) | Self::Split(_, _, rows) => *rows,
        }
    }
}

fn keep(nodes: &[Node], leaf_of: &[usize], counts: &[usize], place: usize) -> Kept {
    match nodes[place] {
        Node::Leaf => Kept::Leaf(counts[leaf_of[place]]),
        node @ Node::Split { left, .. } => {
            let [a, b] = [0, 1].map(|side| keep(nodes, leaf_of, counts, left as usize + side));
            let rows = a.rows() + b.rows();
            match (a, b) {
                // A thin side asks nothing: its rows answer the questions of the other.
                (Kept::Leaf(thin), Kept::Leaf(_)) if thin < SPARSE_BELOW_ROWS => Kept::Leaf(rows),
                (Kept::Leaf(_), Kept::Leaf(thin)) if thin < SPARSE_BELOW_ROWS => Kept::Leaf(rows),
                (Kept::Leaf(thin), Kept::Split(node, sides, _)) if thin < SPARSE_BELOW_ROWS => {
                    Kept::Split(node, sides, rows)
                }
                (Kept::Split(node, sides, _), Kept::Leaf(thin)) if thin < SPARSE_BELOW_ROWS => {
                    Kept::Split(node, sides, rows)
                }
                (a, b) => Kept::Split(node, Box::new([a, b]), rows),
            }
        }
    }
}

fn write(kept: &Kept, out: &mut Vec<Node>, place: usize) {
    if let Kept::Split(Node::Split { input, threshold, missing_right, .. }, sides, _) = kept {
        let left = out.len();
        out[place] =
            Node::Split { input: *input, threshold: *threshold, left: left as u32, missing_right: *missing_right };
        out.extend([Node::Leaf; 2]);
        write(&sides[0], out, left);
        write(&sides[1], out, left + 1);
    }
}
