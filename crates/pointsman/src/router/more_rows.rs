//! New rows in the cells of a router.

use super::exact::Sum;
use super::fitted::refuse_forest;
use super::{Router, cells_of};
use crate::error::{Error, Result, ValueError};
use crate::partition::{CellId, Cells};
use crate::table::Table;

impl Router {
    /// Calibrates on a table in the cells of another router instead of fitting new cells. If those cells were learned from labels (a
    /// tree, an honest forest), certificates hold only if the table shares no rows with the ones they were learned from.
    ///
    /// # Errors
    /// If the table has no rows or no votes or does not fit the router, or the router is a forest, whose leaves depend on its own rows.
    pub fn calibrate_like(table: &Table, like: &Self) -> Result<Self> {
        refuse_forest(like.partition())?;
        like.check_classes(table.classes())?;
        Self::assemble(like.fitted.clone(), table)
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
        Self::assemble(self.fitted.clone(), &rows.with_weights(weights)?)
    }
}

/// The rows in each cell.
pub(super) fn rows_by_cell(table: &Table, cells: &Cells, columns: &[usize]) -> Vec<Vec<u32>> {
    let mut groups = vec![Vec::new(); cells.count()];
    for (row, cell) in cells_of(table, cells, columns).into_iter().enumerate() {
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
