//! Routers: a fitted partition and the calibration rows of each cell.
//!
//! A router knows no loss, no oracle and no price. It keeps whole rows, so that any task can be answered later; a task never changes it.

mod comparable;
mod exact;
mod fitted;
mod forest;
pub(crate) mod label_free;
mod learn;
mod mixture;
mod more_rows;
mod overlap;
mod partial;
mod progress;
mod sort;

use std::sync::Arc;

use crate::error::{Error, Result, TableError};
use crate::partition::forest::{LeafStatistics, Node, Trees, inputs};
use crate::partition::{Axis, CellId, Cells, Partition};
use crate::table::Table;
use fitted::FittedPartition;
pub(crate) use fitted::{check_fits, check_size};
pub use mixture::{Mixture, Support};
pub use partial::{Cap, Partial};
pub(crate) use progress::{Progress, STEPS};
pub(crate) use sort::compare_content;
use sort::{cells_of, sort_by_cell, starts_of};

/// A partition fitted to calibration rows, and those rows, sorted by cell.
///
/// ```
/// use pointsman::{Partition, Router, Table};
/// let table = Table::new(["no", "yes"], vec![0.9, 0.1, 0.8, 0.2, 0.4, 0.6])?.with_votes(vec![5, 0, 4, 1, 2, 3])?;
/// let router = Router::calibrate(&table, &Partition::top_class(2))?;
/// assert_eq!(router.cells().count(), 3);
/// # Ok::<(), pointsman::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Router {
    fitted: FittedPartition,
    rows: Arc<Table>,
    /// Rows of cell `c`: `starts[c]..starts[c + 1]`.
    starts: Vec<u32>,
    /// The statistics of each leaf of a forest.
    leaves: Option<Arc<LeafStatistics>>,
    /// The number of rows that were added later, by [`Router::with_more_rows`].
    added_rows: usize,
}

impl Router {
    /// The same router serving each cell's centroid instead of the weak prediction.
    ///
    /// Cells are still found from the original prediction.
    #[must_use]
    pub fn recalibrated(mut self) -> Self {
        self.fitted.recalibrated = true;
        self
    }

    /// Puts a router together from its parts. The cell of each row is found again.
    ///
    /// # Errors
    /// If the parts do not fit each other.
    pub fn from_parts(
        partition: Partition,
        cells: Cells,
        backoff: Cells,
        recalibrated: bool,
        table: &Table,
    ) -> Result<Self> {
        Self::assemble(FittedPartition::new(partition, cells, backoff, recalibrated, table.classes().len())?, table)
    }

    /// Sorts rows into cells that fit them.
    fn assemble(fitted: FittedPartition, table: &Table) -> Result<Self> {
        check_rows(table)?;
        fitted.check_size(table.rows())?;
        let columns = fitted.cells.columns_in(table)?;
        let (order, starts) = sort_by_cell(table, &fitted.cells, &columns);
        let rows = Arc::new(table.select(&order, &columns));
        Ok(Self { fitted, rows, starts, leaves: None, added_rows: 0 })
    }

    /// The statistics of each leaf, if this is a forest.
    pub(crate) fn leaves(&self) -> Option<&Arc<LeafStatistics>> {
        self.leaves.as_ref()
    }

    /// The classes, in order.
    #[must_use]
    pub fn classes(&self) -> &[String] {
        self.rows.classes()
    }

    /// The partition asked for.
    #[must_use]
    pub fn partition(&self) -> &Partition {
        &self.fitted.partition
    }

    /// The fitted partition.
    #[must_use]
    pub fn cells(&self) -> &Arc<Cells> {
        &self.fitted.cells
    }

    /// The confidence bins that queries of empty cells fall back to.
    #[must_use]
    pub fn backoff(&self) -> &Arc<Cells> {
        &self.fitted.backoff
    }

    /// Whether centroids are served instead of predictions.
    #[must_use]
    pub fn is_recalibrated(&self) -> bool {
        self.fitted.recalibrated
    }

    /// The calibration rows, sorted by cell.
    #[must_use]
    pub fn rows(&self) -> &Table {
        &self.rows
    }

    /// The number of calibration rows that were added later, chosen cell by cell: see [`Router::with_more_rows`]. A router calibrated anew on
    /// all rows would count them as traffic.
    #[must_use]
    pub fn added_rows(&self) -> usize {
        self.added_rows
    }

    /// The same router, of whose rows this many were added later: for reading routers from files.
    ///
    /// # Errors
    /// If it has no other rows, or is a forest, to which no rows can be added.
    pub fn with_added_rows(self, added_rows: usize) -> Result<Self> {
        let can_be_added = added_rows < self.rows.rows() && self.leaves.is_none();
        if added_rows > 0 && !can_be_added {
            return Err(Error::contradiction("more rows were added to the router than can be"));
        }
        Ok(Self { added_rows, ..self })
    }

    /// Which rows are in the bootstrap sample of a tree; `None` if the router is not a forest or has no such tree. Rows with one label are
    /// never used to grow trees, even if they are in the sample.
    #[must_use]
    pub fn bag(&self, tree: usize) -> Option<Vec<bool>> {
        let (forest, _) = self.cells().forest().filter(|(forest, _)| tree < forest.trees().count())?;
        let sample = forest.bootstrap().sample(tree);
        let mut drawn = vec![false; self.rows.rows()];
        for (rank, row) in label_free::order_of_table(&self.rows, 0).into_iter().enumerate() {
            drawn[row as usize] = sample.contains(rank as u32);
        }
        Some(drawn)
    }

    /// The rows of one cell.
    #[must_use]
    pub fn mixture(&self, cell: CellId) -> Mixture<'_> {
        Mixture::of_run(&self.rows, self.starts[cell.index()], self.starts[cell.index() + 1])
    }

    /// The rows of each confidence bin, which queries of empty cells fall back to.
    pub(crate) fn rows_by_confidence(&self) -> Vec<Vec<u32>> {
        more_rows::rows_by_cell(&self.rows, self.backoff(), &[])
    }

    /// All rows.
    #[must_use]
    pub fn all_rows(&self) -> Mixture<'_> {
        Mixture::all_rows_of(&self.rows)
    }

    /// The cell of each row of another table of the same classes and features.
    ///
    /// # Errors
    /// If the classes differ or a feature is missing.
    pub fn find_cells(&self, table: &Table) -> Result<Vec<CellId>> {
        self.check_classes(table.classes())?;
        let columns = self.cells().columns_in(table)?;
        Ok(cells_of(table, self.cells(), &columns))
    }

    /// The features that a query's cell depends on; trees use only those that they split on.
    #[must_use]
    pub fn features_used(&self) -> Vec<String> {
        let names = self.cells().features();
        let trees: &Trees = match self.cells().axes() {
            [Axis::Tree { trees }] => trees,
            [Axis::Forest { forest, .. }] => forest.trees(),
            [Axis::HonestForest { forest }] => forest.scorer().trees(),
            _ => return names.to_vec(),
        };
        let mut used = vec![false; names.len()];
        for node in trees.nodes() {
            if let Node::Split { input, .. } = node
                && let Some(slot) = (input as usize).checked_sub(self.classes().len() + 1)
            {
                used[slot] = true;
            }
        }
        names.iter().zip(used).filter(|(_, used)| *used).map(|(name, _)| name.clone()).collect()
    }

    /// The calibration rows with the largest weights in a forest's estimate for a row of another table, largest first, with their shares of
    /// the total weight. These rows share its leaf in many trees, with few others. Empty if the router is not a forest.
    ///
    /// # Errors
    /// If the classes differ or a feature is missing.
    ///
    /// # Panics
    /// If the table has no such row.
    pub fn heaviest_rows(&self, table: &Table, row: usize, most: usize) -> Result<Vec<(usize, f64)>> {
        self.check_classes(table.classes())?;
        let columns = self.cells().columns_in(table)?;
        let Some(((forest, _), leaves)) = self.cells().forest().zip(self.leaves()) else { return Ok(Vec::new()) };
        let features: Vec<f64> = columns.iter().map(|&column| table.features(row)[column]).collect();
        let (mut shares, mut tree) = (vec![0.0; self.rows.rows()], 0);
        inputs::leaves_of_query(forest.trees(), &table.prediction(row), table.peak(row), &features, |leaf| {
            let inside = leaves.rows().rows_in_leaf(tree, leaf as usize);
            tree += 1;
            let all: f64 = inside.iter().map(|&row| self.rows.weight(row as usize)).sum();
            for row in inside.iter().map(|&row| row as usize) {
                shares[row] += self.rows.weight(row) / all / forest.trees().count() as f64;
            }
        });
        let mut heaviest: Vec<(usize, f64)> =
            shares.into_iter().enumerate().filter(|(_, share)| *share > 0.0).collect();
        heaviest.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        heaviest.truncate(most);
        Ok(heaviest)
    }

    /// Checks that another table has the router's classes, in the router's order.
    ///
    /// # Errors
    /// If the classes or their order differ.
    pub fn check_classes(&self, classes: &[String]) -> Result<()> {
        same_classes(self.classes(), classes)
    }
}

/// Checks that a table has the classes of a router, in its order.
fn same_classes(own: &[String], classes: &[String]) -> Result<()> {
    if own == classes {
        return Ok(());
    }
    Err(TableError::OtherClasses { table: classes.to_vec(), router: own.to_vec() }.into())
}
fn check_rows(table: &Table) -> Result<()> {
    if !table.has_votes() {
        return Err(TableError::NoVotes { purpose: "a router", columns: "votes_<class>" }.into());
    }
    if table.rows() == 0 {
        return Err(TableError::TooFewRows { purpose: "a router", rows: 0, least: 1 }.into());
    }
    if u32::try_from(table.rows()).is_err() {
        return Err(TableError::TooManyRows { rows: table.rows() }.into());
    }
    Ok(())
}
