//! Many rows and many trees: the rows in blocks, tree by tree.

use rayon::prelude::*;

use super::inputs;
use super::trees::Trees;
use crate::table::Table;

/// Rows taken together: what is known of them stays in the cache while the trees pass by.
const BLOCK: usize = 2048;

/// The usual number of values per leaf.
const USUAL: usize = 4;

/// Adds up what the leaves of some rows of a table say, on all cores. `values` has `width` numbers per leaf; they are added tree by
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
        || [[0_u32; BLOCK]; 2],
        |[one, other], (out, rows)| {
            let (one, other) = (&mut one[..rows.len()], &mut other[..rows.len()]);
            let coded = trees.coded(&inputs::of_rows(table, rows, columns));
            for tree in (0..trees.count()).step_by(2) {
                trees.leaves_of_rows(tree, &coded, one);
                if tree + 1 == trees.count() {
                    add(values, one, out);
                    break;
                }
                trees.leaves_of_rows(tree + 1, &coded, other);
                if width == USUAL {
                    add_both(values, one, other, out);
                } else {
                    add(values, one, out);
                    add(values, other, out);
                }
            }
            out.chunks_exact_mut(width).zip(rows).for_each(|(out, &row)| finish(row as usize, out));
        },
    );
    out
}

/// Adds the values of a leaf to each row's sums.
fn add(values: &[f64], leaves: &[u32], out: &mut [f64]) {
    let width = out.len() / leaves.len();
    out.chunks_exact_mut(width).zip(leaves).for_each(|(sums, &leaf)| add_leaf(values, leaf, sums));
}

/// Adds the values of two leaves to each row's sums, which are fetched once for both.
fn add_both(values: &[f64], one: &[u32], other: &[u32], out: &mut [f64]) {
    let values = values.as_chunks::<USUAL>().0;
    for (sums, (&one, &other)) in out.as_chunks_mut::<USUAL>().0.iter_mut().zip(one.iter().zip(other)) {
        let (one, other) = (values[one as usize], values[other as usize]);
        *sums = std::array::from_fn(|i| sums[i] + one[i] + other[i]);
    }
}

/// Adds the values of a leaf, as many as there are sums.
#[inline(always)]
pub(crate) fn add_leaf(values: &[f64], leaf: u32, sums: &mut [f64]) {
    let leaf = &values[leaf as usize * sums.len()..][..sums.len()];
    sums.iter_mut().zip(leaf).for_each(|(sum, value)| *sum += value);
}
