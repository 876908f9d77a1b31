//! Forests grown on the rows of a table that carry two labels or more.

use pointsman_trees::{Bootstrap, TrainingSet, Trees};

use super::inputs;
use super::targets::{MAX_ORACLE_TARGETS, TARGETS_OF_LABELS, Targets, oracle_targets};
use crate::error::{Error, PartitionError, Result};
use crate::partition::SPARSE_BELOW_ROWS;
use crate::table::Table;

/// What is done with a training set, whatever its number of targets.
pub(super) trait Grower {
    /// What is grown.
    type Grown;

    fn grow<const N: usize>(&self, training: &TrainingSet<N>) -> Result<Self::Grown>;
}

/// Grows trees on the rows with two labels or more among the first `most` of `order`, the label-free order of a table's rows. Keys are ranks
/// in it. The number of targets depends on the measured oracles of the table.
///
/// # Errors
/// If there are fewer than [`SPARSE_BELOW_ROWS`], or for reasons of the grower.
pub(super) fn grow_on_table<G: Grower>(
    table: &Table,
    order: &[u32],
    columns: &[usize],
    most: usize,
    grower: &G,
) -> Result<G::Grown> {
    let order = &order[..most.min(order.len())];
    let is_used = |&rank: &u32| is_paired(table, order[rank as usize] as usize);
    let ranks: Vec<u32> = (0..order.len() as u32).filter(is_used).collect();
    if ranks.len() < SPARSE_BELOW_ROWS {
        return Err(too_few(table, (0..table.rows()).filter(|&row| is_paired(table, row)).count(), order.len()));
    }
    let rows: Vec<u32> = ranks.iter().map(|&rank| order[rank as usize]).collect();
    let oracles = oracle_targets(table, &rows);
    let paired = PairedRows { table, rows, ranks, columns, oracles };
    const { assert!(MAX_ORACLE_TARGETS == 3, "one arm per number of oracles") };
    match paired.oracles.len() {
        0 => grower.grow(&paired.training_set::<TARGETS_OF_LABELS>()?),
        1 => grower.grow(&paired.training_set::<{ TARGETS_OF_LABELS + 1 }>()?),
        2 => grower.grow(&paired.training_set::<{ TARGETS_OF_LABELS + 2 }>()?),
        _ => grower.grow(&paired.training_set::<{ TARGETS_OF_LABELS + 3 }>()?),
    }
}

/// The rows that trees are grown on.
struct PairedRows<'a> {
    table: &'a Table,
    rows: Vec<u32>,
    ranks: Vec<u32>,
    /// The columns of the features.
    columns: &'a [usize],
    /// The predictions of the oracles whose losses are targets.
    oracles: Vec<&'a [f64]>,
}

impl PairedRows<'_> {
    fn training_set<const N: usize>(&self) -> Result<TrainingSet<N>> {
        let Self { table, rows, ranks, columns, oracles } = self;
        let classes = table.classes().len();
        let (width, values) = (inputs::width(classes, columns.len()), inputs::of_rows(table, rows, columns));
        let Targets { values: targets, weights } = Targets::new(table, rows, oracles);
        // With two classes, the probability of the first determines that of the second.
        Ok(TrainingSet::new(values, width, targets, weights, ranks.clone(), |input| classes > 2 || input > 0)?)
    }
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
    let grower = ForestGrower { trees, bootstrap, step };
    grow_on_table(table, order, columns, bootstrap.keys() as usize, &grower)
}

struct ForestGrower<'a> {
    trees: usize,
    bootstrap: Bootstrap,
    step: &'a (dyn Fn() + Sync),
}

impl Grower for ForestGrower<'_> {
    type Grown = Trees;

    fn grow<const N: usize>(&self, training: &TrainingSet<N>) -> Result<Trees> {
        Ok(training.grow_forest(self.trees, self.bootstrap, self.step)?)
    }
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
