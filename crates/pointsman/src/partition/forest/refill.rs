//! The trees of a forest for rows that they were not grown on.

use pointsman_trees::{Bootstrap, Trees};

use super::inputs;
use super::learn::{is_paired, too_few};
use crate::error::Result;
use crate::parallel::prelude::*;
use crate::partition::SPARSE_BELOW_ROWS;
use crate::table::Table;

/// Trees whose leaves all have rows of a table with two labels or more, by the bootstrap samples of that table. Splits that the rows do not
/// fill are removed. `order` is the label-free order of the rows; labels have no influence, only whether there are two.
///
/// # Errors
/// If the table has too few rows with two labels.
pub(crate) fn refill_trees(
    trees: &Trees,
    bootstrap: Bootstrap,
    table: &Table,
    order: &[u32],
    columns: &[usize],
) -> Result<Trees> {
    let paired: Vec<bool> = order.iter().map(|&row| is_paired(table, row as usize)).collect();
    let count = paired.iter().filter(|paired| **paired).count();
    if count < SPARSE_BELOW_ROWS {
        return Err(too_few(table, count, order.len()));
    }
    let encoded = trees.encode_rows(&inputs::of_rows(table, order, columns));
    let rows_of_tree = |tree: usize| {
        let (sample, leaves) = (bootstrap.sample(tree), trees.leaves_of_tree(tree));
        let (mut leaf_of_row, mut rows) = (vec![0; order.len()], vec![0_u32; leaves.len()]);
        trees.leaves_of_rows(tree, &encoded, &mut leaf_of_row);
        for (rank, &leaf) in leaf_of_row.iter().enumerate().filter(|(rank, _)| paired[*rank]) {
            rows[leaf as usize - leaves.start] += u32::from(sample.contains(rank as u32));
        }
        rows
    };
    let rows: Vec<Vec<u32>> = (0..trees.count()).into_par_iter().map(rows_of_tree).collect();
    Ok(trees.with_enough_rows(&rows.concat())?)
}
