//! The higher-order predictor: cells, and in each the calibration rows that fell into it.
//!
//! A router knows no loss, no oracle and no price. It keeps the rows whole, so that any task can be
//! answered later; a task never changes it.

mod exact;
pub(crate) mod label_free;
mod learn;
mod overlap;
mod partial;
mod progress;

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, PartitionError, Result, TableError};
use crate::parallel::{self, prelude::*};
use crate::partition::forest::{BootstrapSample, Forest, LeafStatistics, Node, Trees, inputs};
use crate::partition::{Axis, CellId, Cells, Edges, Factor, Partition, SPARSE_BELOW_ROWS, double};
use crate::table::Table;
use crate::table::predictions::{RawPredictions, match_precision};
use crate::table::simplex::{Peak, Real};
use crate::table::votes::Votes;
pub use partial::{Cap, Partial};
pub(crate) use progress::{Progress, STEPS};

/// Bins of the fall-back by confidence when the partition does not say.
const BACKOFF_BINS: usize = 10;

/// The most of them: a verdict numbers the pairs of an empty cell and a confidence.
const MAX_BACKOFF_BINS: usize = 100;

/// Rows of a cell from which counting sorts faster than comparing.
const WORTH_COUNTING: usize = 256;

/// The fewest rows that are worth a core of their own when rows are put in the order of cells.
const IN_A_SHARE: usize = 1 << 14;

/// The most rows in the leaves of all trees of a forest.
const MAX_IN_LEAVES: usize = 1 << 28;

/// The most cells of a forest. With few rows there are fewer, so that each has at least [`SPARSE_BELOW_ROWS`] rows where there are as many in all.
const MAX_SCORE_BINS: usize = 25;

/// A partition fitted to calibration rows, and those rows, cell by cell.
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
    partition: Partition,
    cells: Arc<Cells>,
    backoff: Arc<Cells>,
    recalibrated: bool,
    rows: Arc<Table>,
    /// Rows of cell `c`: `starts[c]..starts[c + 1]`.
    starts: Vec<u32>,
    /// What the rows of each leaf of a forest say.
    leaves: Option<Arc<LeafStatistics>>,
}

/// The calibration rows behind one estimate: a cell's, one confidence's, or all.
#[derive(Debug, Clone, Copy)]
pub struct Mixture<'a> {
    table: &'a Table,
    rows: Rows<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Rows<'a> {
    Run(u32, u32),
    List(&'a [u32]),
}

/// How many rows stand behind a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Support {
    /// At least [`SPARSE_BELOW_ROWS`] rows.
    Enough,
    /// Some rows, but fewer than [`SPARSE_BELOW_ROWS`].
    Sparse,
    /// None: decisions fall back.
    Empty,
}

impl Support {
    /// The support that so many rows give; weighted rows count as (Σw)²/Σw².
    #[must_use]
    pub fn of(effective_rows: f64) -> Self {
        match effective_rows {
            0.0 => Self::Empty,
            // Weights of one must not fall short by rounding.
            n if n < SPARSE_BELOW_ROWS as f64 - 1e-6 => Self::Sparse,
            _ => Self::Enough,
        }
    }

    /// `enough`, `sparse` or `empty`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Enough => "enough",
            Self::Sparse => "sparse",
            Self::Empty => "empty",
        }
    }
}

impl Router {
    /// The confidences of a table over all classes, in so many bins.
    fn fit_backoff(table: &Table, bins: usize) -> Result<Cells> {
        Cells::fit(&Partition::confidence(bins.min(MAX_BACKOFF_BINS)), table)
    }

    /// The same router serving each cell's centroid instead of the weak prediction.
    ///
    /// Cells are still found from the original prediction.
    #[must_use]
    pub fn recalibrated(mut self) -> Self {
        self.recalibrated = true;
        self
    }

    /// Puts a router together from its parts, finding every row's cell anew.
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
        partition.check()?;
        check_rows(table)?;
        if !fits(&partition, &cells, &backoff, table.classes().len()) {
            return Err(Error::contradiction("the router's partition does not fit its rows"));
        }
        Self::assemble(partition, Arc::new(cells), Arc::new(backoff), recalibrated, table)
    }

    /// Sorts rows into cells that fit them.
    fn assemble(
        partition: Partition,
        cells: Arc<Cells>,
        backoff: Arc<Cells>,
        recalibrated: bool,
        table: &Table,
    ) -> Result<Self> {
        check_rows(table)?;
        check_walks(&partition, table.rows())?;
        let columns = cells.columns_in(table)?;
        let (order, starts) = sort_by_cell(table, &cells, &columns);
        let rows = Arc::new(table.select(&order, &columns));
        Ok(Self { partition, cells, backoff, recalibrated, rows, starts, leaves: None })
    }

    /// Puts a router together from the trees of a forest and the seed they were grown with. All else follows from the rows:
    /// the leaf of each, its score by the trees that were not grown on it, the cells.
    ///
    /// # Errors
    /// If the parts do not fit each other.
    pub fn from_forest(partition: Partition, trees: Trees, seed: u64, backoff: Cells, table: &Table) -> Result<Self> {
        check_rows(table)?;
        let fits = matches!(partition.factors(), [Factor::Forest { trees: count }] if *count == trees.count());
        if !fits || !is_backoff(&backoff, table.classes().len()) {
            return Err(Error::contradiction("the router's partition does not fit its rows"));
        }
        check_size(table.rows(), trees.count())?;
        let columns: Vec<usize> = (0..table.feature_names().len()).collect();
        let order = label_free::order_of_table(table, 0);
        let assignment = Forest::assign_rows(trees, seed, table, &order, &columns)?;
        let bins = (table.rows() / SPARSE_BELOW_ROWS).clamp(1, MAX_SCORE_BINS);
        let edges = Edges::quantiles(assignment.scores.iter().copied(), bins, double);
        let found: Vec<CellId> = assignment.scores.iter().map(|&score| CellId(edges.bin(score) as u32)).collect();
        let axes = vec![Axis::Forest { forest: assignment.forest, edges }];
        let cells = Cells::new(table.classes().len(), axes, table.feature_names().to_vec())?;
        let (mut next, starts) = starts_of(&found, cells.count());
        let (mut stored, mut row_of_rank) = (vec![0; order.len()], vec![0; order.len()]);
        for (rank, cell) in found.iter().enumerate() {
            let place = next[cell.index()];
            next[cell.index()] += 1;
            stored[place as usize] = order[rank];
            row_of_rank[rank] = place;
        }
        let rows = Arc::new(table.select(&stored, &columns));
        let leaves = LeafStatistics::new(assignment.leaves, &row_of_rank, &rows);
        let (cells, backoff, leaves) = (Arc::new(cells), Arc::new(backoff), Some(Arc::new(leaves)));
        Ok(Self { partition, cells, backoff, recalibrated: false, rows, starts, leaves })
    }

    /// What the rows of each leaf say, if this is a forest.
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
        &self.partition
    }

    /// The fitted partition.
    #[must_use]
    pub fn cells(&self) -> &Arc<Cells> {
        &self.cells
    }

    /// The confidences over all classes, for inputs whose cell is empty.
    #[must_use]
    pub fn backoff(&self) -> &Arc<Cells> {
        &self.backoff
    }

    /// Whether the cells' centroids are served instead of the weak predictions.
    #[must_use]
    pub fn is_recalibrated(&self) -> bool {
        self.recalibrated
    }

    /// The calibration rows, sorted by cell.
    #[must_use]
    pub fn rows(&self) -> &Table {
        &self.rows
    }

    /// Which of the rows a tree of a forest was grown on; `None` if the cells are not a forest's, or it has no such tree. Rows with one
    /// label grow no tree, whatever this says.
    #[must_use]
    pub fn bag(&self, tree: usize) -> Option<Vec<bool>> {
        let (forest, _) = self.cells().forest().filter(|(forest, _)| tree < forest.trees().count())?;
        let sample = BootstrapSample::new(forest.seed(), tree);
        let mut drawn = vec![false; self.rows.rows()];
        for (rank, row) in label_free::order_of_table(&self.rows, 0).into_iter().enumerate() {
            drawn[row as usize] = sample.contains(rank as u32);
        }
        Some(drawn)
    }

    /// The rows of one cell.
    #[must_use]
    pub fn mixture(&self, cell: CellId) -> Mixture<'_> {
        Mixture { table: &self.rows, rows: Rows::Run(self.starts[cell.index()], self.starts[cell.index() + 1]) }
    }

    /// The rows of each confidence over all classes, for the sake of empty cells.
    pub(crate) fn rows_by_confidence(&self) -> Vec<Vec<u32>> {
        let mut groups = vec![Vec::new(); self.backoff.count()];
        for (row, bin) in cells_of(&self.rows, &self.backoff, &[]).into_iter().enumerate() {
            groups[bin.index()].push(row as u32);
        }
        groups
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
        let columns = self.cells.columns_in(table)?;
        Ok(cells_of(table, &self.cells, &columns))
    }

    /// The features that a query's cell depends on: of those that the cells take, the ones that are asked for.
    #[must_use]
    pub fn features_used(&self) -> Vec<String> {
        let names = self.cells().features();
        let trees: &Trees = match self.cells().axes() {
            [Axis::Tree { trees }] => trees,
            [Axis::Forest { forest, .. }] => forest.trees(),
            [Axis::HonestForest { forest }] => forest.scorer().trees(),
            _ => return names.to_vec(),
        };
        let mut asked = vec![false; names.len()];
        for node in trees.nodes() {
            if let Node::Split { input, .. } = node
                && let Some(slot) = (input as usize).checked_sub(self.classes().len() + 1)
            {
                asked[slot] = true;
            }
        }
        names.iter().zip(asked).filter(|(_, asked)| *asked).map(|(name, _)| name.clone()).collect()
    }

    /// The calibration rows that weigh most in what a forest says of a row of another table, heaviest first, with their share
    /// of all: rows that are in its leaf in many trees, and with few others. None if this is no forest.
    ///
    /// # Errors
    /// If the classes differ or a feature is missing.
    ///
    /// # Panics
    /// If the table has no such row.
    pub fn heaviest_rows(&self, table: &Table, row: usize, most: usize) -> Result<Vec<(usize, f64)>> {
        self.check_classes(table.classes())?;
        let columns = self.cells.columns_in(table)?;
        let Some(((forest, _), members)) = self.cells.forest().zip(self.leaves()) else { return Ok(Vec::new()) };
        let features: Vec<f64> = columns.iter().map(|&column| table.features(row)[column]).collect();
        let mut shares = vec![0.0; self.rows.rows()];
        inputs::leaves_of_query(forest.trees(), &table.prediction(row), table.peak(row), &features, |leaf| {
            let inside = members.rows_of(leaf as usize);
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
    /// If it has not.
    pub fn check_classes(&self, classes: &[String]) -> Result<()> {
        same_classes(self.classes(), classes)
    }
}

impl<'a> Mixture<'a> {
    /// The given rows of any table.
    pub(crate) fn of_rows(table: &'a Table, rows: &'a [u32]) -> Self {
        Self { table, rows: Rows::List(rows) }
    }

    /// All rows of any table.
    pub(crate) fn all_rows_of(table: &'a Table) -> Self {
        Self { table, rows: Rows::Run(0, table.rows() as u32) }
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(self) -> usize {
        match self.rows {
            Rows::Run(start, end) => (end - start) as usize,
            Rows::List(list) => list.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The rows, as rows of [`Mixture::table`].
    pub fn rows(self) -> impl Iterator<Item = usize> + Clone + 'a {
        let (run, list): (Range<u32>, &[u32]) = match self.rows {
            Rows::Run(start, end) => (start..end, &[]),
            Rows::List(list) => (0..0, list),
        };
        run.chain(list.iter().copied()).map(|row| row as usize)
    }

    /// The table the rows are in.
    #[must_use]
    pub fn table(self) -> &'a Table {
        self.table
    }

    /// One row's votes.
    pub(crate) fn votes(self, row: usize) -> Votes<'a> {
        self.table.votes(row).unwrap_or(Votes::new(&[]))
    }

    /// Whether these rows are enough; weighted rows count as (Σw)²/Σw².
    #[must_use]
    pub fn support(self) -> Support {
        let (mut sum, mut squares) = (0.0, 0.0);
        for weight in self.rows().map(|row| self.table.weight(row)) {
            sum += weight;
            squares += weight * weight;
        }
        Support::of(if sum > 0.0 { sum * sum / squares } else { 0.0 })
    }

    /// The weighted mean of the snapshot means: what a recalibrated router serves. `None` if there are no rows.
    #[must_use]
    pub fn centroid(self) -> Option<Vec<f64>> {
        let mut sum = vec![0.0; self.table.classes().len()];
        let mut total = 0.0;
        for row in self.rows() {
            let (votes, weight) = (self.votes(row), self.table.weight(row));
            let scale = weight / votes.k() as f64;
            sum.iter_mut().zip(votes.counts()).for_each(|(s, &n)| *s += scale * f64::from(n));
            total += weight;
        }
        (total > 0.0).then(|| {
            sum.iter_mut().for_each(|s| *s /= total);
            sum
        })
    }
}

/// Checks that a table has the classes of a router, in its order.
fn same_classes(own: &[String], classes: &[String]) -> Result<()> {
    if own == classes {
        return Ok(());
    }
    Err(TableError::OtherClasses { table: classes.to_vec(), router: own.to_vec() }.into())
}

/// The cell of each row; `columns` are the places of the cells' features in the table.
fn cells_of(table: &Table, cells: &Cells, columns: &[usize]) -> Vec<CellId> {
    if let Some(grid) = cells.grid() {
        return table.peaks().par_iter().with_min_len(1 << 12).map(|&peak| grid.cell(peak)).collect();
    }
    if let Some(found) = cells.find_together(table, columns) {
        return found;
    }
    (0..table.rows())
        .into_par_iter()
        .with_min_len(1 << 12)
        .map_init(Vec::new, |features: &mut Vec<f64>, row| {
            features.clear();
            features.extend(columns.iter().map(|&column| table.features(row)[column]));
            match_precision!(table.raw_prediction(row), prediction => cells.find(prediction, table.peak(row), features))
        })
        .collect()
}

/// The rows in order of cell, then confidence, then content, and where each cell starts.
///
/// Order by content makes sums, and so decisions and files, independent of the order of the table.
fn sort_by_cell(table: &Table, cells: &Cells, columns: &[usize]) -> (Vec<u32>, Vec<u32>) {
    let found = cells_of(table, cells, columns);
    // Each core puts its share of the rows in the order of cells: confidence and row as one number, which is sorted in half the
    // time of a pair.
    let share = found.len().div_ceil(parallel::current_num_threads()).max(IN_A_SHARE).max(cells.count());
    let place = |(found, peaks, first): (&[CellId], &[Peak], usize)| {
        let (mut next, starts) = starts_of(found, cells.count());
        let mut order = vec![0_u64; found.len()];
        for ((cell, peak), row) in found.iter().zip(peaks).zip(first as u64..) {
            let next = &mut next[cell.index()];
            // Confidences are not negative: their bits are in their order.
            order[*next as usize] = u64::from(peak.key().to_bits()) << 32 | row;
            *next += 1;
        }
        (starts, order)
    };
    let shares = found.par_chunks(share).zip(table.peaks().par_chunks(share)).enumerate();
    let shares: Vec<(Vec<u32>, Vec<u64>)> =
        shares.map(|(i, (found, peaks))| place((found, peaks, i * share))).collect();
    let starts: Vec<u32> =
        (0..=cells.count()).map(|cell| shares.iter().map(|(starts, _)| starts[cell]).sum()).collect();
    let mut order = vec![0_u32; table.rows()];
    let (mut rest, mut runs) = (order.as_mut_slice(), Vec::with_capacity(cells.count()));
    for (cell, ends) in starts.windows(2).enumerate() {
        let (run, after) = rest.split_at_mut((ends[1] - ends[0]) as usize);
        runs.push((cell, run));
        rest = after;
    }
    runs.into_par_iter().for_each_init(Vec::new, |run, (cell, out)| {
        run.clear();
        for (starts, order) in &shares {
            run.extend_from_slice(&order[starts[cell] as usize..starts[cell + 1] as usize]);
        }
        if run.len() < WORTH_COUNTING {
            run.sort_unstable();
        } else {
            radsort::sort_by_key(run, |row| (row >> 32) as u32);
        }
        for alike in run.chunk_by_mut(|a, b| a >> 32 == b >> 32).filter(|alike| alike.len() > 1) {
            alike.sort_unstable_by(|&a, &b| compare_content(table, columns, a as u32 as usize, b as u32 as usize));
        }
        out.iter_mut().zip(run.iter()).for_each(|(slot, row)| *slot = *row as u32);
    });
    (order, starts)
}

/// Where the rows of each cell begin, twice: to be counted up, and to stay.
fn starts_of(found: &[CellId], cells: usize) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0_u32; cells + 1];
    found.iter().for_each(|cell| starts[cell.index() + 1] += 1);
    (1..starts.len()).for_each(|i| starts[i] += starts[i - 1]);
    (starts.clone(), starts)
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

/// Refuses what would take more than two or three gigabytes to keep.
pub(crate) fn check_size(rows: usize, trees: usize) -> Result<()> {
    if rows.saturating_mul(trees) > MAX_IN_LEAVES {
        return Err(PartitionError::ForestSize { trees, rows, most: MAX_IN_LEAVES }.into());
    }
    Ok(())
}

/// Refuses more rows than trees can be walked for, so that what is written can be read and reading does not take for ever.
fn check_walks(partition: &Partition, rows: usize) -> Result<()> {
    match partition.factors() {
        [Factor::HonestForest { trees }] => check_size(rows, *trees),
        _ => Ok(()),
    }
}

/// Whether queries of empty cells can fall back to these cells.
fn is_backoff(cells: &Cells, classes: usize) -> bool {
    matches!(cells.axes(), [Axis::Confidence { .. }]) && cells.count() <= MAX_BACKOFF_BINS && cells.classes() == classes
}

/// Whether fitted cells are those of a partition, of a table with so many classes.
fn fits(partition: &Partition, cells: &Cells, backoff: &Cells, classes: usize) -> bool {
    let fits = |(factor, axis): (&Factor, &Axis)| match (factor, axis) {
        (Factor::TopClass { .. }, Axis::TopClass { .. })
        | (Factor::Confidence { .. }, Axis::Confidence { .. })
        | (Factor::LevelSets, Axis::LevelSets { .. })
        | (Factor::Pooled, Axis::Pooled { .. })
        | (Factor::Tree, Axis::Tree { .. }) => true,
        (Factor::Feature { name, .. }, Axis::Feature { name: other, .. }) => name == other,
        (Factor::HonestForest { trees }, Axis::HonestForest { forest }) => *trees == forest.scorer().trees().count(),
        _ => false,
    };
    partition.factors().len() == cells.axes().len()
        && partition.factors().iter().zip(cells.axes()).all(fits)
        && cells.classes() == classes
        && is_backoff(backoff, classes)
}

/// Compares what is kept of two rows.
pub(crate) fn compare_content(table: &Table, columns: &[usize], a: usize, b: usize) -> Ordering {
    fn reals<T: Real>(a: &[T], b: &[T]) -> Ordering {
        let orders = a.iter().zip(b).map(|(x, y)| x.to_f64().total_cmp(&y.to_f64()));
        orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
    let predictions = match (table.raw_prediction(a), table.raw_prediction(b)) {
        (RawPredictions::Single(a), RawPredictions::Single(b)) => reals(a, b),
        (a, b) => reals(&a.doubles(), &b.doubles()),
    };
    let mut order = predictions
        .then_with(|| table.votes(a).map(Votes::counts).cmp(&table.votes(b).map(Votes::counts)))
        .then_with(|| table.weight(a).total_cmp(&table.weight(b)))
        .then_with(|| {
            let (a, b) = (table.features(a), table.features(b));
            let orders = columns.iter().map(|&column| a[column].total_cmp(&b[column]));
            orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        });
    for (_, probs) in table.oracles() {
        let c = table.classes().len();
        order = order.then_with(|| reals(&probs[a * c..][..c], &probs[b * c..][..c]));
    }
    order
}
