//! Sums of leaf values over all trees, for many rows.

use std::ops::Range;

use crate::parallel::prelude::*;
use crate::trees::Trees;

/// Rows that one task takes through all trees: their codes and sums stay in the cache meanwhile.
const ROWS_PER_BLOCK: usize = 2048;

/// Adds the values of a leaf to sums; there are as many values per leaf as sums.
#[inline(always)]
pub fn add_leaf_values(values: &[f64], leaf: u32, sums: &mut [f64]) {
    let values = &values[leaf as usize * sums.len()..][..sums.len()];
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}

impl Trees {
    /// Adds up the values of each row's leaves over all trees, on all cores, and writes what `finish` makes of a row's sums.
    ///
    /// `values` has the same number of values for each leaf, leaf by leaf. `inputs_of_rows` gives the inputs of a range of rows, row by row.
    /// `finish` is given the row, its sums and its `out_width` numbers of the result. Values are added tree by tree in order, so that sums
    /// have the bits that [`Trees::leaves_of_row`] with [`add_leaf_values`] gives.
    ///
    /// # Panics
    /// If there is not the same number of values, one or more, for each leaf, or `out_width` is zero.
    pub fn sum_leaf_values(
        &self,
        values: &[f64],
        rows: usize,
        inputs_of_rows: impl Fn(Range<usize>) -> Vec<f64> + Sync,
        out_width: usize,
        finish: impl Fn(usize, &[f64], &mut [f64]) + Sync,
    ) -> Vec<f64> {
        assert!(!values.is_empty() && values.len().is_multiple_of(self.leaves()), "the same number of values per leaf");
        let width = values.len() / self.leaves();
        let mut out = vec![0.0; rows * out_width];
        out.par_chunks_mut(ROWS_PER_BLOCK * out_width).enumerate().for_each_init(
            || (vec![0_u32; ROWS_PER_BLOCK], vec![0.0; ROWS_PER_BLOCK * width]),
            |(leaves, sums), (block, out)| {
                let first = block * ROWS_PER_BLOCK;
                let rows = first..(first + ROWS_PER_BLOCK).min(rows);
                let (leaves, sums) = (&mut leaves[..rows.len()], &mut sums[..rows.len() * width]);
                let encoded = self.encode_rows(&inputs_of_rows(rows.clone()));
                sums.fill(0.0);
                for tree in 0..self.count() {
                    self.leaves_of_rows(tree, &encoded, leaves);
                    let rows = sums.chunks_exact_mut(width).zip(leaves.iter());
                    rows.for_each(|(sums, &leaf)| add_leaf_values(values, leaf, sums));
                }
                for ((row, sums), out) in rows.zip(sums.chunks_exact(width)).zip(out.chunks_exact_mut(out_width)) {
                    finish(row, sums, out);
                }
            },
        );
        out
    }
}
