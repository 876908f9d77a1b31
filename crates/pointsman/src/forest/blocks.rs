//! Many rows and many trees: the rows in blocks, tree by tree.

use rayon::prelude::*;

use super::inputs;
use super::trees::Trees;
use crate::table::Table;

/// Rows taken together: what is known of them stays in the cache while the trees pass by.
const BLOCK: usize = 2048;

/// Adds up what the leaves of some rows of a table say, `width` numbers a row, on all cores. `add` adds the leaves of
/// many rows, tree by tree in order, so that sums are those of one query; `finish` makes of a row's sums what is wanted.
pub(crate) fn add_up(
    trees: &Trees,
    table: &Table,
    rows: &[u32],
    columns: &[usize],
    width: usize,
    add: impl Fn(&[u32], &mut [f64]) + Sync,
    finish: impl Fn(usize, &mut [f64]) + Sync,
) -> Vec<f64> {
    let mut out = vec![0.0; rows.len() * width];
    out.par_chunks_mut(BLOCK * width).zip(rows.par_chunks(BLOCK)).for_each_init(
        || vec![0_u32; BLOCK],
        |leaves, (out, rows)| {
            let n = rows.len();
            let coded = trees.coded(&inputs::of_rows(table, rows, columns));
            for tree in 0..trees.count() {
                trees.leaves_of_rows(tree, &coded, &mut leaves[..n]);
                add(&leaves[..n], out);
            }
            out.chunks_exact_mut(width).zip(rows).for_each(|(out, &row)| finish(row as usize, out));
        },
    );
    out
}
