//! Finding the leaves of one row in many trees, and of many rows in one tree.
//!
//! A walk waits for memory at every node. So sixteen walks advance in lockstep, and while one waits the others proceed: a batch takes 2.7
//! times as long one walk after the other, and a row in 200 trees 2.4 times (design note 016). Leaves lead to themselves, so that
//! walks of different length can stay in step until the last one has arrived.

use crate::parallel::prelude::*;
use crate::trees::{PackedNode, Trees};

/// The number of trees that one row walks in lockstep.
const TREES_PER_STEP: usize = 16;

/// The number of rows that walk one tree in lockstep.
const ROWS_PER_STEP: usize = 16;

/// The largest number of inputs whose codes are kept on the stack.
const MAX_INPUTS_ON_STACK: usize = 64;

/// Rows with at most this many codes are padded to it: with a length known at compile time no step checks a bound. A batch takes 1.4 times
/// as long without it.
const CODES_PER_SHORT_ROW: usize = 64;

/// The number of rows that one task encodes.
const ROWS_PER_ENCODING_TASK: usize = 512;

/// Rows with each input replaced by its rank among the thresholds of some trees.
#[derive(Debug, Clone)]
pub struct EncodedRows {
    codes: Vec<u16>,
    codes_per_row: usize,
}

impl EncodedRows {
    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.codes.len() / self.codes_per_row
    }
}

impl Trees {
    /// Calls `visit` with the leaf of the row in every tree, in order, without allocating.
    ///
    /// # Panics
    /// If the row has fewer inputs than the trees.
    #[inline]
    pub fn leaves_of_row(&self, row: &[f64], mut visit: impl FnMut(u32)) {
        const CODES: usize = 2 * MAX_INPUTS_ON_STACK;
        if self.inputs() > MAX_INPUTS_ON_STACK {
            return (0..self.count()).for_each(|tree| visit(self.leaf_of_row(tree, row)));
        }
        let mut codes = [0; CODES];
        self.thresholds.encode_row(&row[..self.inputs()], &mut codes);
        for roots in self.roots.chunks(TREES_PER_STEP) {
            let mut nodes = [roots[0]; TREES_PER_STEP];
            nodes[..roots.len()].copy_from_slice(roots);
            self.walk_to_leaves(&mut nodes, |_, node| codes[node.column() % CODES]);
            nodes[..roots.len()].iter().for_each(|&node| visit(self.leaf_numbers[node as usize]));
        }
    }

    /// Encodes rows, `inputs` row by row, for [`Trees::leaves_of_rows`] of these trees.
    #[must_use]
    pub fn encode_rows(&self, inputs: &[f64]) -> EncodedRows {
        let (width, codes_per_row) = (self.inputs(), self.thresholds.columns().max(CODES_PER_SHORT_ROW));
        let mut codes = vec![0; inputs.len() / width * codes_per_row];
        let tasks = codes.par_chunks_mut(ROWS_PER_ENCODING_TASK * codes_per_row);
        tasks
            .zip(inputs.par_chunks(ROWS_PER_ENCODING_TASK * width))
            .for_each(|(codes, rows)| self.thresholds.encode_rows(rows, codes_per_row, codes));
        EncodedRows { codes, codes_per_row }
    }

    /// Writes the leaf of each row in one tree.
    ///
    /// # Panics
    /// If there is no such tree, the rows were encoded for trees with fewer inputs, or `out` is not as long as there are rows.
    pub fn leaves_of_rows(&self, tree: usize, rows: &EncodedRows, out: &mut [u32]) {
        assert_eq!(out.len(), rows.rows(), "one leaf per row");
        out.fill(self.roots[tree]);
        if rows.codes_per_row == CODES_PER_SHORT_ROW {
            let rows = rows.codes.as_chunks::<CODES_PER_SHORT_ROW>().0;
            self.walk_rows(rows, |row, node| row[node.column() % CODES_PER_SHORT_ROW], out);
        } else {
            let rows: Vec<&[u16]> = rows.codes.chunks_exact(rows.codes_per_row).collect();
            self.walk_rows(&rows, |row, node| row[node.column()], out);
        }
    }

    /// The leaves of one tree for many rows, `inputs` row by row.
    ///
    /// # Panics
    /// If there is no such tree.
    #[must_use]
    pub fn leaves_of_inputs(&self, tree: usize, inputs: &[f64]) -> Vec<u32> {
        let rows = self.encode_rows(inputs);
        let mut leaves = vec![0; rows.rows()];
        self.leaves_of_rows(tree, &rows, &mut leaves);
        leaves
    }

    /// Walks rows from the nodes in `out` to their leaves; `code_of` is the code of a row that a node compares.
    #[inline(always)]
    fn walk_rows<R>(&self, rows: &[R], code_of: impl Fn(&R, PackedNode) -> u16, out: &mut [u32]) {
        let (full, rest) = rows.as_chunks::<ROWS_PER_STEP>();
        let (out, out_of_rest) = out.as_chunks_mut::<ROWS_PER_STEP>();
        for (rows, nodes) in full.iter().zip(out) {
            self.walk_to_leaves(nodes, |lane, node| code_of(&rows[lane], node));
            *nodes = nodes.map(|node| self.leaf_numbers[node as usize]);
        }
        for (row, node) in rest.iter().zip(out_of_rest) {
            let mut own = [*node];
            self.walk_to_leaves(&mut own, |_, node| code_of(row, node));
            *node = self.leaf_numbers[own[0] as usize];
        }
    }

    /// Advances walks in lockstep until all are at leaves; `code_of` is the code that a node compares for the walk of this number.
    #[inline(always)]
    fn walk_to_leaves<const WALKS: usize>(&self, nodes: &mut [u32; WALKS], code_of: impl Fn(usize, PackedNode) -> u16) {
        let next = |walk: usize, node: u32| {
            let packed = self.packed[node as usize];
            packed.left() + u32::from(code_of(walk, packed) >= packed.code())
        };
        loop {
            // Checked at every second step whether a walk still moves; with a check at every step, walks take 1.5 times as long.
            for (walk, node) in nodes.iter_mut().enumerate() {
                *node = next(walk, *node);
            }
            let mut moved = 0;
            for (walk, node) in nodes.iter_mut().enumerate() {
                let from = std::mem::replace(node, next(walk, *node));
                moved |= from ^ *node;
            }
            if moved == 0 {
                return;
            }
        }
    }
}
