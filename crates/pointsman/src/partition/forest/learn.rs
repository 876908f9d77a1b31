//! Forests grown on the rows of a table that carry two labels or more.

use pointsman_trees::{TrainingSet, Trees};

use super::targets::Targets;
use super::{inputs, partition_error};
use crate::error::{Error, Result};
use crate::partition::SPARSE_BELOW_ROWS;
use crate::table::Table;

/// The rows of a table, taken in label-free order, that carry two labels or more. Their keys are their ranks in that order.
///
/// # Errors
/// If there are fewer than [`SPARSE_BELOW_ROWS`].
pub(super) fn training_set(table: &Table, order: &[u32], columns: &[usize]) -> Result<TrainingSet<2>> {
    let paired = |row: usize| table.votes(row).is_some_and(|votes| votes.k() >= 2);
    let ranks: Vec<u32> = (0..order.len() as u32).filter(|&rank| paired(order[rank as usize] as usize)).collect();
    if ranks.len() < SPARSE_BELOW_ROWS {
        return Err(too_few(table, (0..table.rows()).filter(|&row| paired(row)).count(), order.len()));
    }
    let rows: Vec<u32> = ranks.iter().map(|&rank| order[rank as usize]).collect();
    let classes = table.classes().len();
    let (width, values) = (inputs::width(classes, columns.len()), inputs::of_rows(table, &rows, columns));
    let Targets { values: targets, weights } = Targets::of(table, &rows);
    // Of two classes the first says what the second does.
    TrainingSet::new(values, width, targets, weights, ranks, |input| classes > 2 || input > 0).map_err(partition_error)
}

/// Grows a forest on a table's rows, taken in label-free order. `step` is called
/// [`growth_steps`](pointsman_trees::growth_steps) times.
pub(crate) fn grow_forest(
    table: &Table,
    order: &[u32],
    columns: &[usize],
    trees: usize,
    seed: u64,
    step: &(dyn Fn() + Sync),
) -> Result<Trees> {
    training_set(table, order, columns)?.grow_forest(trees, seed, step).map_err(partition_error)
}

/// Why nothing can be learned from a table with so many rows of two labels, of which it takes so many rows to divide by.
fn too_few(table: &Table, paired: usize, dividing: usize) -> Error {
    let rows = table.rows();
    let needed = if dividing < rows {
        format!(
            "at least {SPARSE_BELOW_ROWS} of them in the half of the rows that divides, about {} in all",
            2 * SPARSE_BELOW_ROWS
        )
    } else {
        format!("at least {SPARSE_BELOW_ROWS} of them")
    };
    Error::Partition(if 2 * paired >= rows {
        let found = if rows == 1 { "one row is".to_owned() } else { format!("{rows} rows are") };
        format!(
            "{found} too few to learn a partition from, which needs {needed}; use top-class:10 with fewer bins, or \
             collect more rows"
        )
    } else {
        format!(
            "{paired} of {rows} rows carry two labels or more, and a partition that learns needs {needed}: one label per item does \
             not tell noise from error; use top-class:10, or collect second labels"
        )
    })
}
