//! Many rows and many trees: the rows in blocks, tree by tree.

use rayon::prelude::*;

use super::inputs;
use super::trees::Trees;
use crate::table::Table;

/// Rows taken together: what is known of them stays in the cache while the trees pass by.
const BLOCK: usize = 2048;

/// Adds up what the leaves of some rows of a table say, on all cores. `values` has `width` numbers a leaf; they are added tree by
/// tree in order, so that sums are those of one query. `finish` makes of a row's sums what is wanted.
pub(crate) fn add_up(
    trees: &Trees,
    (values, width): (&[f64], usize),
    table: &Table,
    rows: &[u32],
    columns: &[usize],
    finish: impl Fn(usize, &mut [f64]) + Sync,
) -> Vec<f64> {
    let mut out = vec![0.0; rows.len() * width];
    out.par_chunks_mut(BLOCK * width).zip(rows.par_chunks(BLOCK)).for_each_init(
        || vec![0_u32; BLOCK],
        |leaves, (out, rows)| {
            let leaves = &mut leaves[..rows.len()];
            let coded = trees.coded(&inputs::of_rows(table, rows, columns));
            for tree in 0..trees.count() {
                trees.leaves_of_rows(tree, &coded, leaves);
                add(values, width, leaves, out);
            }
            out.chunks_exact_mut(width).zip(rows).for_each(|(out, &row)| finish(row as usize, out));
        },
    );
    out
}

/// Adds the values of a leaf to each row's sums.
fn add(values: &[f64], width: usize, leaves: &[u32], out: &mut [f64]) {
    // The most frequent: where the number is known, a row is added at once.
    if width == 4 {
        let values = values.as_chunks::<4>().0;
        for (out, &leaf) in out.as_chunks_mut::<4>().0.iter_mut().zip(leaves) {
            let leaf = values[leaf as usize];
            *out = std::array::from_fn(|i| out[i] + leaf[i]);
        }
    } else {
        out.chunks_exact_mut(width).zip(leaves).for_each(|(out, &leaf)| add_leaf(values, leaf, out));
    }
}

/// Adds the values of a leaf, as many as there are sums.
#[inline(always)]
pub(crate) fn add_leaf(values: &[f64], leaf: u32, sums: &mut [f64]) {
    let leaf = &values[leaf as usize * sums.len()..][..sums.len()];
    sums.iter_mut().zip(leaf).for_each(|(sum, value)| *sum += value);
}
