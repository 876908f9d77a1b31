//! A partition fitted to a table: the cells without the rows.

use std::sync::Arc;

use crate::error::{Error, PartitionError, Result};
use crate::partition::{Axis, Cells, Factor, Partition};
use crate::table::Table;

/// The most bins that queries of empty cells fall back to: a decision numbers the pairs of an empty cell and such a bin.
const MAX_BACKOFF_BINS: usize = 100;

/// The largest number of trees times rows: the leaves of more rows would take more than eight gigabytes.
const MAX_ROWS_IN_LEAVES: usize = 1 << 32;

/// The partition asked for, its cells, and the confidence bins that queries of empty cells fall back to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FittedPartition {
    pub(super) partition: Partition,
    pub(super) cells: Arc<Cells>,
    pub(super) backoff: Arc<Cells>,
    /// Whether centroids are served instead of predictions.
    pub(super) recalibrated: bool,
}

impl FittedPartition {
    /// Checks that the cells are those of the partition, for tables with this number of classes.
    pub(super) fn new(
        partition: Partition,
        cells: Cells,
        backoff: Cells,
        recalibrated: bool,
        classes: usize,
    ) -> Result<Self> {
        if cells.forest().is_some() {
            return Err(misfit());
        }
        Self::without_rows(partition, cells, backoff, recalibrated, classes)
    }

    /// As [`FittedPartition::new`], also for the cells of a forest that will be filled with rows.
    pub(super) fn without_rows(
        partition: Partition,
        cells: Cells,
        backoff: Cells,
        recalibrated: bool,
        classes: usize,
    ) -> Result<Self> {
        check_fits(&partition, &cells, &backoff, classes)?;
        Ok(Self { partition, cells: Arc::new(cells), backoff: Arc::new(backoff), recalibrated })
    }

    /// Puts together the cells of a forest, which [`FittedPartition::new`] refuses: they cannot be separated from their rows.
    pub(super) fn from_forest(partition: Partition, cells: Cells, backoff: Cells) -> Self {
        Self { partition, cells: Arc::new(cells), backoff: Arc::new(backoff), recalibrated: false }
    }

    /// Fits the confidence bins that queries of empty cells fall back to.
    pub(super) fn fit_backoff(table: &Table, bins: usize) -> Result<Cells> {
        Cells::fit(&Partition::confidence(bins.min(MAX_BACKOFF_BINS)), table)
    }

    /// Refuses more rows than the trees of the partition can be evaluated for.
    pub(super) fn check_size(&self, rows: usize) -> Result<()> {
        match self.partition.factors() {
            [Factor::HonestForest { trees } | Factor::Forest { trees }] => check_size(rows, *trees),
            _ => Ok(()),
        }
    }
}

/// Checks that cells and the confidence bins behind them are those of a partition, for predictions over this number of classes.
pub(crate) fn check_fits(partition: &Partition, cells: &Cells, backoff: &Cells, classes: usize) -> Result<()> {
    partition.check()?;
    let fits = |(factor, axis): (&Factor, &Axis)| match (factor, axis) {
        (Factor::TopClass { .. }, Axis::TopClass { .. })
        | (Factor::Confidence { .. }, Axis::Confidence { .. })
        | (Factor::LevelSets, Axis::LevelSets { .. })
        | (Factor::Pooled, Axis::Pooled { .. })
        | (Factor::Tree, Axis::Tree { .. }) => true,
        (Factor::Feature { name, .. }, Axis::Feature { name: other, .. }) => name == other,
        (Factor::HonestForest { trees }, Axis::HonestForest { forest }) => *trees == forest.scorer().trees().count(),
        (Factor::Forest { trees }, Axis::Forest { forest, .. }) => *trees == forest.trees().count(),
        _ => false,
    };
    let fits = partition.factors().len() == cells.axes().len()
        && partition.factors().iter().zip(cells.axes()).all(fits)
        && cells.classes() == classes
        && is_backoff(backoff, classes);
    if !fits {
        return Err(misfit());
    }
    Ok(())
}

/// Whether queries of empty cells can fall back to these cells.
pub(super) fn is_backoff(cells: &Cells, classes: usize) -> bool {
    matches!(cells.axes(), [Axis::Confidence { .. }]) && cells.count() <= MAX_BACKOFF_BINS && cells.classes() == classes
}

/// The error of a partition, cells and rows that are inconsistent.
pub(super) fn misfit() -> Error {
    Error::contradiction("the router's partition does not fit its rows")
}

/// Refuses forests, whose cells are made of their own rows.
pub(super) fn refuse_forest(partition: &Partition) -> Result<()> {
    if matches!(partition.factors(), [Factor::Forest { .. }]) {
        return Err(PartitionError::ForestCells { partition: partition.to_string() }.into());
    }
    Ok(())
}

/// Refuses more trees times rows than fit into memory. A written router can be read again, since it was checked before.
pub(crate) fn check_size(rows: usize, trees: usize) -> Result<()> {
    if rows.saturating_mul(trees) > MAX_ROWS_IN_LEAVES {
        return Err(PartitionError::ForestSize { trees, rows, most: MAX_ROWS_IN_LEAVES }.into());
    }
    Ok(())
}
