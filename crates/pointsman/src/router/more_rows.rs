//! New rows in the cells of a router.

use super::exact::Sum;
use super::fitted::{FittedPartition, refuse_forest};
use super::{Router, cells_of, label_free};
use crate::error::{Error, Result, RouterError, ValueError};
use crate::partition::forest::{Bootstrap, refill_trees};
use crate::partition::{CellId, Cells};
use crate::table::Table;

impl Router {
    /// Calibrates on a table in the cells of another router, or in the leaves of its forest, instead of fitting new ones. If they were
    /// learned from labels (a tree, an honest forest, a forest), certificates and promises hold only if the table shares no rows with the
    /// ones they were learned from.
    ///
    /// A forest keeps its trees, except for splits that the table's rows do not fill. Its cells, which are quantiles of its rows' scores, are
    /// those of the table's rows. No tree was grown on these rows, so any half of them would be out of bag; bootstrap samples are drawn as
    /// for a grown forest.
    ///
    /// # Errors
    /// If the table has no rows or no votes or does not fit the router; with a forest, also if too few rows have two labels or centroids are
    /// served.
    pub fn calibrate_like(table: &Table, like: &Self) -> Result<Self> {
        like.check_classes(table.classes())?;
        Self::fill(&like.fitted, table)
    }

    /// Sorts rows into the cells of a fitted partition or, with a forest, into the leaves of its trees.
    pub(super) fn fill(fitted: &FittedPartition, table: &Table) -> Result<Self> {
        let Some((forest, _)) = fitted.cells.forest() else { return Self::assemble(fitted.clone(), table) };
        if fitted.recalibrated {
            return Err(RouterError::NotServable.into());
        }
        super::check_rows(table)?;
        fitted.check_size(table.rows())?;
        let all: Vec<u32> = (0..table.rows() as u32).collect();
        let table = table.select(&all, &fitted.cells.columns_in(table)?);
        let columns: Vec<usize> = (0..table.feature_names().len()).collect();
        let bootstrap = Bootstrap::new(forest.bootstrap().seed(), table.rows());
        let order = label_free::order_of_table(&table, 0);
        let trees = refill_trees(forest.trees(), bootstrap, &table, &order, &columns)?;
        let backoff = Cells::clone(&fitted.backoff);
        Self::from_forest(fitted.partition.clone(), trees, bootstrap, backoff, &table)
    }

    /// Adds the rows of a table to the router's own, in the same cells. Each cell keeps its share of the traffic: its rows, old and
    /// new, are reweighted to the total weight of the old ones. This is for items chosen cell by cell, as a plan does, whose number
    /// does not reflect traffic.
    ///
    /// # Errors
    /// If the table has no votes or other features or oracles than the router's rows, a cell with new rows had none before (its share
    /// is unknown), or the router is a forest, whose leaves depend on its own rows.
    pub fn with_more_rows(&self, table: &Table) -> Result<Self> {
        refuse_forest(self.partition())?;
        self.check_classes(table.classes())?;
        let columns = self.cells().columns_in(table)?;
        let all: Vec<u32> = (0..table.rows() as u32).collect();
        let mut rows = self.rows().clone();
        rows.extend(&table.select(&all, &table.feature_columns(self.rows().feature_names())?))?;
        let own = self.rows().rows();
        let mut weights: Vec<f64> = (0..rows.rows()).map(|row| rows.weight(row)).collect();
        for (cell, new) in
            rows_by_cell(table, self.cells(), &columns).iter().enumerate().filter(|(_, new)| !new.is_empty())
        {
            let old: Vec<u32> = self.mixture(CellId(cell as u32)).rows().map(|row| row as u32).collect();
            if old.is_empty() {
                let name = self.cells().name(CellId(cell as u32), self.classes());
                return Err(Error::value(new[0] as usize, "cell", ValueError::EmptyCell { cell, name }));
            }
            let before = total_weight(self.rows(), &old).value();
            let scale = before / (before + total_weight(table, new).value());
            let added = new.iter().map(|&row| own + row as usize);
            old.iter().map(|&row| row as usize).chain(added).for_each(|row| weights[row] *= scale);
        }
        Self::assemble(self.fitted.clone(), &rows.with_weights(weights)?)?
            .with_added_rows(self.added_rows + table.rows())
    }
}

/// The rows in each cell.
pub(super) fn rows_by_cell(table: &Table, cells: &Cells, columns: &[usize]) -> Vec<Vec<u32>> {
    group_by_cell(&cells_of(table, cells, columns), cells.count())
}

/// The rows in each of `count` cells, given the cell of each row.
pub(super) fn group_by_cell(cell_of_row: &[CellId], count: usize) -> Vec<Vec<u32>> {
    let mut groups = vec![Vec::new(); count];
    for (row, cell) in cell_of_row.iter().enumerate() {
        groups[cell.index()].push(row as u32);
    }
    groups
}

/// The exact total weight of some rows.
pub(super) fn total_weight(table: &Table, rows: &[u32]) -> Sum {
    let mut sum = Sum::default();
    rows.iter().for_each(|&row| sum.add(table.weight(row as usize)));
    sum
}
