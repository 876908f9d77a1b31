//! Routers of forests: rows assigned to the leaves of trees, found anew or taken from a file.

use std::sync::Arc;

use super::fitted::{FittedPartition, check_size, is_backoff, misfit};
use super::{Router, check_rows, label_free, starts_of};
use crate::error::{Error, Result};
use crate::partition::forest::{Bootstrap, Forest, ForestParts, LeafStatistics, Trees};
use crate::partition::{Axis, CellId, Cells, Edges, Factor, Partition, SPARSE_BELOW_ROWS, double};
use crate::table::Table;

/// The largest number of cells of a forest; fewer rows give fewer cells, of at least [`SPARSE_BELOW_ROWS`] rows each.
const MAX_SCORE_BINS: usize = 25;

impl Router {
    /// Puts a router together from the trees of a forest and the samples of rows they were grown on. The rows determine everything else:
    /// their leaves, their out-of-bag scores and the cells.
    ///
    /// # Errors
    /// If the parts do not fit each other.
    pub fn from_forest(
        partition: Partition,
        trees: Trees,
        bootstrap: Bootstrap,
        backoff: Cells,
        table: &Table,
    ) -> Result<Self> {
        check_forest(&partition, &trees, &backoff, table)?;
        let columns: Vec<usize> = (0..table.feature_names().len()).collect();
        let order = label_free::order_of_table(table, 0);
        let assignment = Forest::assign_rows(trees, bootstrap, table, &order, &columns)?;
        let bins = (table.rows() / SPARSE_BELOW_ROWS).clamp(1, MAX_SCORE_BINS);
        let edges = Edges::quantiles(assignment.scores.iter().copied(), bins, double);
        let found: Vec<CellId> = assignment.scores.iter().map(|&score| CellId(edges.bin(score) as u32)).collect();
        let forest = assignment.forest.clone();
        let axes = vec![Axis::Forest { forest: forest.clone(), edges }];
        let cells = Cells::new(table.classes().len(), axes, table.feature_names().to_vec())?;
        let (mut next, starts) = starts_of(&found, cells.count());
        let (mut stored, mut row_of_rank) = (vec![0; order.len()], vec![0; order.len()]);
        let mut ranks = vec![0; order.len()];
        for (rank, cell) in found.iter().enumerate() {
            let place = next[cell.index()];
            next[cell.index()] += 1;
            stored[place as usize] = order[rank];
            row_of_rank[rank] = place;
            ranks[place as usize] = rank as u32;
        }
        let rows = Arc::new(table.select(&stored, &columns));
        let leaves = LeafStatistics::new(assignment.into_leaf_of_row(&row_of_rank), ranks, &rows, &forest);
        let fitted = FittedPartition::from_forest(partition, cells, backoff);
        Ok(Self { fitted, rows, starts, leaves: Some(Arc::new(leaves)), added_rows: 0 })
    }

    /// Puts a router together from rows in the order of their cells and what was derived from them before. No tree is walked: lengths, ranges
    /// and sums are checked, so that no use of the router can fail, but not that the parts are those of these rows. [`Router::verify_leaves`]
    /// checks that.
    ///
    /// # Errors
    /// If the parts do not fit each other.
    pub fn from_forest_parts(
        partition: Partition,
        backoff: Cells,
        table: Table,
        parts: ForestParts<'static>,
    ) -> Result<Self> {
        check_forest(&partition, parts.forest.trees(), &backoff, &table)?;
        let sum = parts.rows_per_cell.iter().map(|&rows| u64::from(rows)).sum::<u64>();
        let counts = &parts.rows_per_cell;
        if counts.len() != parts.edges.bins()
            || counts.len() > MAX_SCORE_BINS
            || counts.contains(&0)
            || sum != table.rows() as u64
        {
            let (cells, rows) = (parts.edges.bins(), table.rows());
            return Err(Error::contradiction(format!(
                "the router's {rows} rows are not divided among {cells} cells, at most {MAX_SCORE_BINS}"
            )));
        }
        let mut starts = vec![0];
        starts.extend(counts.iter().scan(0, |end, rows| {
            *end += rows;
            Some(*end)
        }));
        let axes = vec![Axis::Forest { forest: parts.forest.clone(), edges: parts.edges.clone() }];
        let cells = Cells::new(table.classes().len(), axes, table.feature_names().to_vec())?;
        let leaves = Arc::new(parts.into_statistics(&table)?);
        let fitted = FittedPartition::from_forest(partition, cells, backoff);
        Ok(Self { fitted, rows: Arc::new(table), starts, leaves: Some(leaves), added_rows: 0 })
    }

    /// What was derived from the rows and trees of a forest; `None` if the router is not a forest.
    #[must_use]
    pub fn forest_parts(&self) -> Option<ForestParts<'_>> {
        let ((forest, edges), leaves) = self.cells().forest().zip(self.leaves())?;
        Some(ForestParts::new(forest, edges, &self.starts, leaves))
    }

    /// Derives from rows and trees what a forest's file may have stored, and compares. It takes as long as assigning all rows to the leaves
    /// of all trees. Other routers store nothing that could differ.
    ///
    /// # Errors
    /// If a stored part is not the one that rows and trees give; the message says which.
    pub fn verify_leaves(&self) -> Result<()> {
        let Some(stored) = self.forest_parts() else { return Ok(()) };
        let (trees, bootstrap) = (stored.forest.trees().clone(), stored.forest.bootstrap());
        let backoff = Cells::clone(self.backoff());
        let derived = Self::from_forest(self.partition().clone(), trees, bootstrap, backoff, &self.rows)?;
        let difference = match derived.rows == self.rows {
            true => derived.forest_parts().and_then(|derived| stored.first_difference(&derived)),
            false => Some("its rows are not in the order of their cells".to_owned()),
        };
        difference.map_or(Ok(()), |difference| {
            Err(Error::contradiction(format!("the router's leaves contradict its rows: {difference}")))
        })
    }
}

/// Checks that trees and rows can be those of a forest.
fn check_forest(partition: &Partition, trees: &Trees, backoff: &Cells, table: &Table) -> Result<()> {
    check_rows(table)?;
    let fits = matches!(partition.factors(), [Factor::Forest { trees: count }] if *count == trees.count());
    if !fits || !is_backoff(backoff, table.classes().len()) {
        return Err(misfit());
    }
    check_size(table.rows(), trees.count())
}
