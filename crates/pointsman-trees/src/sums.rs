//! Sums of leaf values over all trees, for many rows.

use std::ops::Range;

use crate::parallel::prelude::*;
use crate::trees::Trees;

/// The number of rows per task; their codes and sums stay in the cache.
const ROWS_PER_BLOCK: usize = 2048;

/// Adds the values of a leaf to sums; there are as many values per leaf as sums.
#[inline(always)]
pub fn add_leaf_values(values: &[f64], leaf: u32, sums: &mut [f64]) {
    let values = &values[leaf as usize * sums.len()..][..sums.len()];
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}

impl Trees {
    /// Sums the values of each row's leaves over all trees, on all cores, and collects blocks of rows in order.
    ///
    /// `values` has the same number of values for each leaf, leaf by leaf. `inputs_of_rows` gives the inputs of a range of rows, row by row.
    /// `make_block` gets a range of rows and their sums, row by row. Values are added tree by tree in order, so the sums have the same bits
    /// as with [`Trees::leaves_of_row`] and [`add_leaf_values`].
    ///
    /// # Panics
    /// If there is not the same number of values, one or more, for each leaf.
    pub fn sum_leaf_values<B: Send>(
        &self,
        values: &[f64],
        rows: usize,
        inputs_of_rows: impl Fn(Range<usize>) -> Vec<f64> + Sync,
        make_block: impl Fn(Range<usize>, &[f64]) -> B + Sync,
    ) -> Vec<B> {
        assert!(!values.is_empty() && values.len().is_multiple_of(self.leaves()), "the same number of values per leaf");
        let width = values.len() / self.leaves();
        let buffers = || (vec![0_u32; ROWS_PER_BLOCK], vec![0.0; ROWS_PER_BLOCK * width]);
        let sum_block = |(leaves, sums): &mut (Vec<u32>, Vec<f64>), block: usize| {
            let rows = block * ROWS_PER_BLOCK..((block + 1) * ROWS_PER_BLOCK).min(rows);
            let (leaves, sums) = (&mut leaves[..rows.len()], &mut sums[..rows.len() * width]);
            let encoded = self.encode_rows(&inputs_of_rows(rows.clone()));
            sums.fill(0.0);
            for tree in 0..self.count() {
                self.leaves_of_rows(tree, &encoded, leaves);
                let rows = sums.chunks_exact_mut(width).zip(leaves.iter());
                rows.for_each(|(sums, &leaf)| add_leaf_values(values, leaf, sums));
            }
            make_block(rows, sums)
        };
        (0..rows.div_ceil(ROWS_PER_BLOCK)).into_par_iter().map_init(buffers, sum_block).collect()
    }
}
