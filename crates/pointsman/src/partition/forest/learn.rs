//! Forests grown on the rows of a table that carry two labels or more.

use pointsman_trees::{Bootstrap, TrainingSet, Trees};

use super::inputs;
use super::targets::Targets;
use crate::error::{Error, PartitionError, Result};
use crate::partition::SPARSE_BELOW_ROWS;
use crate::table::Table;

/// The training set of the rows with two labels or more among the first `most` of `order`, the label-free order of a table's rows. Keys are
/// ranks in it.
///
/// # Errors
/// If there are fewer than [`SPARSE_BELOW_ROWS`].
pub(super) fn training_set(table: &Table, order: &[u32], columns: &[usize], most: usize) -> Result<TrainingSet<2>> {
    let order = &order[..most.min(order.len())];
    let is_used = |&rank: &u32| is_paired(table, order[rank as usize] as usize);
    let ranks: Vec<u32> = (0..order.len() as u32).filter(is_used).collect();
    if ranks.len() < SPARSE_BELOW_ROWS {
        return Err(too_few(table, (0..table.rows()).filter(|&row| is_paired(table, row)).count(), order.len()));
    }
    let rows: Vec<u32> = ranks.iter().map(|&rank| order[rank as usize]).collect();
    let classes = table.classes().len();
    let (width, values) = (inputs::width(classes, columns.len()), inputs::of_rows(table, &rows, columns));
    let Targets { values: targets, weights } = Targets::new(table, &rows);
    // With two classes, the probability of the first determines that of the second.
    Ok(TrainingSet::new(values, width, targets, weights, ranks, |input| classes > 2 || input > 0)?)
}

/// Grows a forest on a table's rows; `order` is their label-free order. `step` is called
/// [`growth_steps`](pointsman_trees::growth_steps) times.
pub(crate) fn grow_forest(
    table: &Table,
    order: &[u32],
    columns: &[usize],
    trees: usize,
    bootstrap: Bootstrap,
    step: &(dyn Fn() + Sync),
) -> Result<Trees> {
    Ok(training_set(table, order, columns, bootstrap.keys() as usize)?.grow_forest(trees, bootstrap, step)?)
}

/// Whether a row has two labels or more.
pub(super) fn is_paired(table: &Table, row: usize) -> bool {
    table.votes(row).is_some_and(|votes| votes.k() >= 2)
}

/// The error of a table with too few rows of two labels: `paired` in the whole table, of which `dividing` rows of any kind are used.
pub(super) fn too_few(table: &Table, paired: usize, dividing: usize) -> Error {
    let (rows, least) = (table.rows(), SPARSE_BELOW_ROWS);
    PartitionError::TooFewRows { rows, paired, least, halved: dividing < rows }.into()
}
