//! Cells in which rows of another table can be compared with the calibration rows.

use super::{Router, label_free};
use crate::error::Result;
use crate::partition::CellId;
use crate::partition::forest::OutOfBagScorer;
use crate::table::Table;

impl Router {
    /// The cell of each row of a table with votes, found as for calibration rows.
    ///
    /// Unless the router is a forest, these are the cells of [`Router::find_cells`]. A forest scores a calibration row by the trees for which it
    /// is out of bag, four in ten, and a query by all trees; among rows of the same traffic, a cell would hold different rows of the two. Here a
    /// row is scored by the trees for which a calibration row is out of bag, its stand-in, which is drawn without regard to labels. Rows with
    /// one label have no stand-in, because no tree is grown on them.
    ///
    /// # Errors
    /// If the classes differ or a feature is missing.
    pub(crate) fn find_comparable_cells(&self, table: &Table) -> Result<Vec<CellId>> {
        let Some(((forest, edges), leaves)) = self.cells().forest().zip(self.leaves()) else {
            return self.find_cells(table);
        };
        self.check_classes(table.classes())?;
        let columns = self.cells().columns_in(table)?;
        // Rows are stored by cell; in the order of ranks, the first stand-ins are of all cells.
        let mut ranks: Vec<u32> = leaves.ranks_in_bags().collect();
        ranks.sort_unstable();
        let mut stand_ins = vec![None; table.rows()];
        for (place, row) in label_free::order_of_table(table, 0).into_iter().enumerate() {
            let is_paired = table.votes(row as usize).is_none_or(|votes| votes.k() > 1);
            let stand_in = || ranks.get(place % ranks.len().max(1)).copied();
            stand_ins[row as usize] = if is_paired { stand_in() } else { None };
        }
        let scores = OutOfBagScorer::new(forest, leaves, self.rows()).scores(table, &columns, &stand_ins);
        Ok(scores.into_iter().map(|score| CellId(edges.bin(score) as u32)).collect())
    }
}
