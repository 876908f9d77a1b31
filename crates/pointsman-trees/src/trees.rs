//! Binary trees as flat arrays, their checks, and the reference walk.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::thresholds::{NEVER, Thresholds};

/// The largest depth of a split. It bounds the time per row, also for trees from a file.
pub const MAX_DEPTH: usize = 64;

/// The largest number of inputs per row: each has two columns of codes, numbered by 16 bits.
pub const MAX_INPUTS: usize = (u16::MAX / 2) as usize;

/// The largest number of nodes of all trees.
const MAX_NODES: usize = 1 << 28;

/// One node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Node {
    /// A leaf.
    Leaf,
    /// Rows whose input is at or above the threshold go to the right child, the others to the left.
    Split {
        /// The input that is compared.
        input: u32,
        /// The threshold.
        threshold: f64,
        /// The left child; the right child is the next node. Counted from the first node of all trees.
        left: u32,
        /// Whether a missing value (NaN) goes right.
        missing_right: bool,
    },
}

impl Node {
    /// The same split with other children; the left one is given.
    pub(crate) fn with_children_at(self, left: u32) -> Self {
        match self {
            Node::Leaf => Node::Leaf,
            Node::Split { input, threshold, missing_right, .. } => {
                Node::Split { input, threshold, left, missing_right }
            }
        }
    }
}

/// One or more binary trees over the same inputs; leaves are numbered consecutively over all trees.
///
/// ```
/// use pointsman_trees::{Node, Trees};
/// let nodes = [Node::Split { input: 1, threshold: 0.5, left: 1, missing_right: true }, Node::Leaf, Node::Leaf];
/// let trees = Trees::new(2, vec![0], &nodes)?;
/// assert_eq!(trees.leaf_of_row(0, &[9.0, 0.4]), 0);
/// assert_eq!(trees.leaf_of_row(0, &[9.0, f64::NAN]), 1);
/// # Ok::<(), pointsman_trees::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Trees {
    pub(crate) thresholds: Thresholds,
    /// The first node of each tree; the nodes of a tree are contiguous.
    pub(crate) roots: Vec<u32>,
    pub(crate) packed: Vec<PackedNode>,
    /// The leaf number of each node, [`NO_LEAF`] for a split. Stored separately, because only the end of a walk needs it.
    pub(crate) leaf_numbers: Vec<u32>,
    /// Leaves of the trees before each tree, then of all trees.
    first_leaves: Vec<u32>,
}

/// The leaf number of a split.
const NO_LEAF: u32 = u32::MAX;

/// A node packed into eight bytes, so that more of the trees fit into the cache.
///
/// From the lowest bit: the smallest code that goes right (16 bits; [`NEVER`] for a leaf), the left child (32 bits; the leaf itself for a
/// leaf, so that trees of different depths can be walked in lockstep), and the column of codes that is compared (16 bits).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PackedNode(u64);

impl PackedNode {
    fn new(left: u32, column: u16, code: u16) -> Self {
        Self(u64::from(code) | u64::from(left) << 16 | u64::from(column) << 48)
    }

    #[inline(always)]
    pub(crate) fn left(self) -> u32 {
        (self.0 >> 16) as u32
    }

    #[inline(always)]
    pub(crate) fn column(self) -> usize {
        (self.0 >> 48) as usize
    }

    #[inline(always)]
    pub(crate) fn code(self) -> u16 {
        self.0 as u16
    }
}

impl Trees {
    /// Checks nodes and creates the trees; `roots` are the first nodes of the trees.
    ///
    /// # Errors
    /// If they are not trees: a child before its parent, outside its tree or with two parents, a threshold that is not finite, an input that
    /// does not exist; or if a tree is deeper than [`MAX_DEPTH`].
    pub fn new(inputs: usize, roots: Vec<u32>, nodes: &[Node]) -> Result<Self> {
        if nodes.len() > MAX_NODES {
            return Err(Error::TooManyNodes);
        }
        if inputs == 0 || roots.first() != Some(&0) || !roots.is_sorted_by(|a, b| a < b) {
            return Err(Error::Roots);
        }
        let thresholds = Thresholds::new(inputs, nodes)?;
        let (mut packed, mut first_leaves) = (Vec::with_capacity(nodes.len()), vec![0]);
        let mut leaf_numbers = Vec::with_capacity(nodes.len());
        let mut depths: Vec<u8> = vec![u8::MAX; nodes.len()];
        for (tree, &root) in roots.iter().enumerate() {
            let end = roots.get(tree + 1).map_or(nodes.len(), |&next| next as usize);
            let mut leaves = first_leaves[tree];
            if root as usize >= end || end > nodes.len() {
                return Err(Error::Roots);
            }
            depths[root as usize] = 0;
            for node in root as usize..end {
                let depth = depths[node];
                if depth == u8::MAX {
                    return Err(Error::Orphan { node });
                }
                match nodes[node] {
                    Node::Leaf => {
                        packed.push(PackedNode::new(node as u32, 0, NEVER));
                        leaf_numbers.push(leaves);
                        leaves += 1;
                    }
                    Node::Split { input, threshold, left, missing_right } => {
                        if usize::from(depth) >= MAX_DEPTH {
                            return Err(Error::TooDeep);
                        }
                        let children = left as usize..left as usize + 2;
                        if children.start <= node || children.end > end {
                            return Err(Error::Child { node });
                        }
                        for child in children {
                            if depths[child] != u8::MAX {
                                return Err(Error::TwoParents { node: child });
                            }
                            depths[child] = depth + 1;
                        }
                        let (column, code) = thresholds.code_of_split(input, threshold, missing_right);
                        packed.push(PackedNode::new(left, column, code));
                        leaf_numbers.push(NO_LEAF);
                    }
                }
            }
            first_leaves.push(leaves);
        }
        Ok(Self { thresholds, roots, packed, leaf_numbers, first_leaves })
    }

    /// The number of inputs per row.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.thresholds.inputs()
    }

    /// The number of trees.
    #[must_use]
    pub fn count(&self) -> usize {
        self.roots.len()
    }

    /// The number of leaves of all trees.
    #[must_use]
    pub fn leaves(&self) -> usize {
        self.first_leaves[self.roots.len()] as usize
    }

    /// The leaves of one tree.
    #[must_use]
    pub fn leaves_of_tree(&self, tree: usize) -> Range<usize> {
        self.first_leaves[tree] as usize..self.first_leaves[tree + 1] as usize
    }

    /// The first node of each tree.
    #[must_use]
    pub fn roots(&self) -> &[u32] {
        &self.roots
    }

    /// The nodes, tree by tree.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = Node> + '_ {
        (0..self.leaf_numbers.len()).map(|node| self.node(node))
    }

    /// One of the nodes.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn node(&self, node: usize) -> Node {
        let packed = self.packed[node];
        match packed.code() {
            NEVER => Node::Leaf,
            code => {
                let (input, threshold, missing_right) = self.thresholds.split_of_code(packed.column() as u16, code);
                Node::Split { input, threshold, left: packed.left(), missing_right }
            }
        }
    }

    /// The leaf of a row in one tree.
    ///
    /// # Panics
    /// If there is no such tree, or the row has fewer inputs than the trees.
    #[inline]
    #[must_use]
    pub fn leaf_of_row(&self, tree: usize, row: &[f64]) -> u32 {
        self.leaf_by(tree, |input| row[input])
    }

    /// The leaf of a row in one tree, with inputs given by a function.
    ///
    /// This is the reference: it compares floats and walks node by node. All other walks must agree with it.
    ///
    /// # Panics
    /// If there is no such tree.
    #[inline]
    pub fn leaf_by(&self, tree: usize, value_of_input: impl Fn(usize) -> f64) -> u32 {
        let mut node = self.roots[tree] as usize;
        while let Node::Split { input, threshold, left, missing_right } = self.node(node) {
            let x = value_of_input(input as usize);
            node = left as usize + usize::from(x >= threshold || x.is_nan() && missing_right);
        }
        self.leaf_numbers[node]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(input: u32, threshold: f64, left: u32) -> Node {
        Node::Split { input, threshold, left, missing_right: true }
    }

    #[test]
    fn rows_find_their_leaves() {
        let nodes = [split(0, 0.5, 1), Node::Leaf, split(1, -1.0, 3), Node::Leaf, Node::Leaf, Node::Leaf];
        let trees = Trees::new(2, vec![0, 5], &nodes).unwrap();
        assert_eq!((trees.count(), trees.leaves(), trees.leaves_of_tree(1)), (2, 4, 3..4));
        let rows = [[0.4, 0.0], [0.5, -2.0], [0.5, -1.0], [f64::NAN, -2.0], [f64::NAN, f64::NAN]];
        assert_eq!(rows.map(|row| trees.leaf_of_row(0, &row)), [0, 1, 2, 1, 2]);
        assert_eq!(rows.map(|row| trees.leaf_of_row(1, &row)), [3; 5]);
        assert_eq!(trees.nodes().collect::<Vec<_>>(), nodes);
    }

    #[test]
    fn packed_nodes_unpack_to_their_parts() {
        for column in [0, 1, 63, 64, 1023, 1024, u16::MAX - 1] {
            for (left, code) in [(0, 1), (MAX_NODES as u32 - 1, NEVER), (12_345, 54_321)] {
                let node = PackedNode::new(left, column, code);
                assert_eq!((node.left(), node.column(), node.code()), (left, usize::from(column), code));
            }
        }
    }

    #[test]
    fn invalid_trees_are_refused() {
        let leaf = Node::Leaf;
        let deep = (0..200).flat_map(|i| [split(0, 0.0, 2 * i + 1), leaf]).chain([leaf]).collect();
        let two_parents = vec![split(0, 0.0, 1), split(0, 0.0, 3), split(0, 0.0, 3), leaf, leaf];
        for (error, nodes, roots) in [
            (Error::Child { node: 0 }, vec![split(0, 0.0, 0), leaf, leaf], vec![0]),
            (Error::Child { node: 0 }, vec![split(0, 0.0, 2), leaf, leaf], vec![0]),
            (Error::Child { node: 0 }, vec![split(0, 0.0, u32::MAX - 1), leaf, leaf], vec![0]),
            (Error::Child { node: 0 }, vec![split(0, 0.0, 2), leaf, leaf, leaf], vec![0, 2]),
            (Error::TwoParents { node: 3 }, two_parents, vec![0]),
            (Error::Orphan { node: 1 }, vec![leaf, leaf], vec![0]),
            (Error::Threshold { threshold: f64::INFINITY }, vec![split(0, f64::INFINITY, 1), leaf, leaf], vec![0]),
            (Error::NoSuchInput { input: 1 }, vec![split(1, 0.0, 1), leaf, leaf], vec![0]),
            (Error::Roots, vec![leaf], vec![]),
            (Error::Roots, vec![leaf], vec![0, 1]),
            (Error::Roots, vec![leaf, leaf], vec![0, 0]),
            (Error::TooDeep, deep, vec![0]),
        ] {
            assert_eq!(Trees::new(1, roots, &nodes).unwrap_err(), error);
        }
        assert!(Trees::new(1, vec![0], &[split(0, f64::NAN, 1), leaf, leaf]).is_err());
        assert_eq!(Trees::new(0, vec![0], &[leaf]), Err(Error::Roots));
    }
}
