//! Distributed calibration: each machine assigns its rows to given cells, and the parts are merged.
//!
//! Cells are fitted once, on a sample; every part is [like](Partial::like) that router. A router is a set of rows, so without a
//! cap the merged parts equal a calibration on one machine, byte for byte. A forest is grown on the sample in the same way, and the merged
//! rows fill its leaves; its cells, by which a cap counts, are those of the sample until then.
//!
//! With a cap, a cell keeps the rows whose ids have the smallest hashes. The smallest hashes overall are among the smallest of each
//! part, so the result does not depend on how rows were divided. Each cell stores the exact weight of all rows it has seen, and the
//! kept rows are reweighted to it. Rows are identified by ids because content is not enough: equal rows would be kept or dropped
//! together, and numbering them would need a count of rows dropped elsewhere.

use std::sync::Arc;

use super::exact::{Sum, WORDS};
use super::fitted::FittedPartition;
use super::more_rows::{group_by_cell, total_weight};
use super::{Router, cells_of, compare_content};
use crate::error::{Error, Result, RouterError, TableError};
use crate::numeric::mix::{mix, nth};
use crate::partition::{CellId, Cells, Partition};
use crate::table::Table;

/// The largest number of rows per cell of a [`Partial`], and the seed of the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cap {
    /// The number of rows, at least one.
    pub rows: usize,
    /// The seed of the sample; merged parts must share it.
    pub seed: u64,
}

/// A part of a calibration: the rows of one shard in the cells of a given router.
///
/// ```
/// use pointsman::{Partition, Router, Table};
/// use pointsman::router::{Cap, Partial};
/// let table = |p: f64| Table::new(["no", "yes"], vec![p, 1.0 - p, 0.4, 0.6])?.with_votes(vec![5, 0, 2, 3]);
/// let like = Router::calibrate(&table(0.9)?, &Partition::top_class(2))?; // on a sample, once
/// let (mut a, mut b) = (Partial::like(&like)?, Partial::like(&like)?);
/// a.add(&table(0.8)?)?; // on one machine
/// b.add(&table(0.7)?)?; // on another
/// a.merge(&b)?;
/// assert_eq!(a.finish()?.rows().rows(), 4);
///
/// let mut capped = Partial::like(&like)?.capped(Cap { rows: 1, seed: 7 })?;
/// capped.add_with_ids(&table(0.8)?, &[0, 1])?;
/// capped.add_with_ids(&table(0.7)?, &[2, 3])?;
/// let router = capped.finish()?; // two cells with one row each, of weight two
/// assert_eq!((router.rows().rows(), router.rows().weight(0)), (2, 2.0));
/// # Ok::<(), pointsman::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Partial {
    fitted: FittedPartition,
    cap: Option<Cap>,
    /// The kept rows in no particular order, with all features and their original weights.
    rows: Table,
    /// A hash of each row's id; empty without a cap.
    keys: Vec<u64>,
    /// The cell of each row; empty without a cap.
    cell_of_row: Vec<CellId>,
    /// The weight of all rows that each cell has seen; empty without a cap.
    seen: Vec<Sum>,
}

impl Partial {
    /// A part without rows, in the cells of a router or the leaves of its forest.
    ///
    /// # Errors
    /// If the router's classes are not those of a table.
    pub fn like(router: &Router) -> Result<Self> {
        let rows = Table::new(router.classes().to_vec(), Vec::new())?.with_votes(Vec::new())?;
        Ok(Self::without_cap(router.fitted.clone(), rows))
    }

    fn without_cap(fitted: FittedPartition, rows: Table) -> Self {
        Self { fitted, cap: None, rows, keys: Vec::new(), cell_of_row: Vec::new(), seen: Vec::new() }
    }

    /// The same part with a cap on the rows per cell.
    ///
    /// # Errors
    /// If the cap is zero, or there are rows already.
    pub fn capped(self, cap: Cap) -> Result<Self> {
        if cap.rows == 0 {
            return Err(RouterError::EmptyCap.into());
        }
        if self.rows.rows() > 0 {
            return Err(RouterError::LateCap.into());
        }
        Ok(Self { seen: vec![Sum::default(); self.cells().count()], cap: Some(cap), ..self })
    }

    /// Restores a part from [`Partial::kept`], [`Partial::keys`], [`Partial::seen`] and the cells of its router.
    ///
    /// # Errors
    /// If these are inconsistent.
    pub fn from_parts(
        partition: Partition,
        cells: Cells,
        backoff: Cells,
        recalibrated: bool,
        cap: Option<Cap>,
        (kept, keys, seen): (Table, Vec<u64>, &[u64]),
    ) -> Result<Self> {
        let wrong = |what: &str| Err(Error::contradiction(format!("the part contradicts itself: {what}")));
        if !kept.has_votes() {
            return wrong("its rows have no votes");
        }
        let fitted = FittedPartition::without_rows(partition, cells, backoff, recalibrated, kept.classes().len())?;
        fitted.check_size(kept.rows())?;
        let columns = if kept.rows() == 0 { Vec::new() } else { fitted.cells.columns_in(&kept)? };
        let mut part = Self { keys, ..Self::without_cap(fitted, kept) };
        let Some(cap) = cap else {
            return if part.keys.is_empty() && seen.is_empty() { Ok(part) } else { wrong("keys without a cap") };
        };
        if cap.rows == 0 {
            return wrong("a cap of 0 rows per cell");
        }
        let (sums, rest) = seen.as_chunks::<WORDS>();
        let Some(seen) = sums.iter().map(|&words| Sum::from_words(words)).collect::<Option<Vec<Sum>>>() else {
            return wrong("a cell has seen more than can be");
        };
        if part.keys.len() != part.rows.rows() || !rest.is_empty() || seen.len() != part.cells().count() {
            return wrong("keys or weights are missing");
        }
        part.cell_of_row = cells_of(&part.rows, part.cells(), &columns);
        for (rows, all) in part.rows_by_cell().iter().zip(&seen) {
            let own = total_weight(&part.rows, rows);
            if rows.len() > cap.rows || own > *all || rows.len() < cap.rows && own != *all {
                return wrong("a cell's rows do not fit the cap and the weight it has seen");
            }
        }
        Ok(Self { cap: Some(cap), seen, ..part })
    }

    /// Adds the rows of a table.
    ///
    /// # Errors
    /// If the table does not fit the router or the rows before, or there is a cap, which needs ids. Nothing is added then.
    pub fn add(&mut self, table: &Table) -> Result<()> {
        if self.cap.is_some() {
            return Err(TableError::CapWithoutIds.into());
        }
        self.extend(table, &[])
    }

    /// Adds the rows of a table with ids that are unique over all parts. Rows that share an id are kept or dropped together as far
    /// as the cap allows.
    ///
    /// # Errors
    /// If there are not as many ids as rows, or the table does not fit the router or the rows before. Nothing is added then.
    pub fn add_with_ids(&mut self, table: &Table, ids: &[u64]) -> Result<()> {
        if ids.len() != table.rows() {
            return Err(TableError::Length { what: "ids", found: ids.len(), rows: table.rows() }.into());
        }
        let Some(cap) = self.cap else { return self.extend(table, &[]) };
        let start = nth(cap.seed, 0);
        let keys: Vec<u64> = ids.iter().map(|&id| mix(start, id)).collect();
        self.extend(table, &keys)
    }

    /// Hashes a text id to a number.
    #[must_use]
    pub fn id_of(text: &str) -> u64 {
        text.bytes().fold(nth(text.len() as u64, 0), |hash, byte| mix(hash, byte.into()))
    }

    /// Adds the rows of another part.
    ///
    /// # Errors
    /// If the two are not like the same router, or differ in their caps or columns. Nothing is added then.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        let differs = |what: &str| Err(RouterError::DifferentParts { what: what.to_owned() }.into());
        if self.rows.classes() != other.rows.classes() {
            return differs("their classes");
        }
        if self.partition() != other.partition() {
            return differs(&format!("their partitions, {} and {}", self.partition(), other.partition()));
        }
        if (self.cells(), self.backoff()) != (other.cells(), other.backoff()) {
            return differs(&format!("the cells of {}", self.partition()));
        }
        if self.is_recalibrated() != other.is_recalibrated() {
            return differs("whether centroids are served");
        }
        if self.cap != other.cap {
            let text = |cap: Option<Cap>| {
                cap.map_or("none".to_owned(), |cap| format!("{} rows with seed {}", cap.rows, cap.seed))
            };
            return differs(&format!("their caps, {} and {}", text(self.cap), text(other.cap)));
        }
        self.keep(&other.rows, &other.keys, &other.cell_of_row)?;
        self.seen.iter_mut().zip(&other.seen).for_each(|(own, more)| own.absorb(more));
        Ok(())
    }

    /// The router of all rows added. In a cell that dropped rows, the kept rows are reweighted to the weight of all rows seen.
    ///
    /// # Errors
    /// If there are no rows; with a forest, also if too few rows have two labels or centroids are served.
    pub fn finish(&self) -> Result<Router> {
        Router::fill(&self.fitted, &self.table()?)
    }

    /// The kept rows with all features and adjusted weights, for calibrating with any other partition.
    ///
    /// # Errors
    /// If a weight grows beyond the allowed range.
    pub fn table(&self) -> Result<Table> {
        let mut scales: Vec<(Vec<u32>, f64)> = Vec::new();
        if self.cap.is_some() {
            for (rows, all) in self.rows_by_cell().into_iter().zip(&self.seen) {
                let own = total_weight(&self.rows, &rows);
                if own != *all {
                    scales.push((rows, all.value() / own.value()));
                }
            }
        }
        if scales.is_empty() {
            return Ok(self.rows.clone());
        }
        let mut weights: Vec<f64> = (0..self.rows.rows()).map(|row| self.rows.weight(row)).collect();
        for (rows, scale) in scales {
            rows.iter().for_each(|&row| weights[row as usize] *= scale);
        }
        self.rows.clone().with_weights(weights)
    }

    /// The partition of the part's router.
    #[must_use]
    pub fn partition(&self) -> &Partition {
        &self.fitted.partition
    }

    /// Its cells.
    #[must_use]
    pub fn cells(&self) -> &Arc<Cells> {
        &self.fitted.cells
    }

    /// The confidence bins that empty cells fall back to.
    #[must_use]
    pub fn backoff(&self) -> &Arc<Cells> {
        &self.fitted.backoff
    }

    /// Whether centroids are served instead of predictions.
    #[must_use]
    pub fn is_recalibrated(&self) -> bool {
        self.fitted.recalibrated
    }

    /// The cap, if any.
    #[must_use]
    pub fn cap(&self) -> Option<Cap> {
        self.cap
    }

    /// The kept rows with their original weights.
    #[must_use]
    pub fn kept(&self) -> &Table {
        &self.rows
    }

    /// The hashes of the kept rows' ids; empty without a cap.
    #[must_use]
    pub fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// The weight of all rows that each cell has seen, as a fixed-point number of thirteen words; empty without a cap.
    #[must_use]
    pub fn seen(&self) -> Vec<u64> {
        self.seen.iter().flat_map(|sum| sum.words()).copied().collect()
    }

    /// The kept rows of each cell; for a part with a cap.
    fn rows_by_cell(&self) -> Vec<Vec<u32>> {
        group_by_cell(&self.cell_of_row, self.cells().count())
    }

    /// Adds rows and their weights.
    fn extend(&mut self, table: &Table, keys: &[u64]) -> Result<()> {
        if table.rows() == 0 {
            return Ok(());
        }
        if !table.has_votes() {
            return Err(TableError::NoVotes { purpose: "calibration", columns: "votes_<class>" }.into());
        }
        super::same_classes(self.rows.classes(), table.classes())?;
        let columns = self.cells().columns_in(table)?;
        let found = if self.cap.is_some() { cells_of(table, self.cells(), &columns) } else { Vec::new() };
        self.keep(table, keys, &found)?;
        for (row, cell) in found.into_iter().enumerate() {
            self.seen[cell.index()].add(table.weight(row));
        }
        Ok(())
    }

    /// Adds rows of the same classes, then drops those above the cap.
    fn keep(&mut self, table: &Table, keys: &[u64], cells: &[CellId]) -> Result<()> {
        if table.rows() == 0 {
            return Ok(());
        }
        let rows = self.rows.rows() + table.rows();
        if u32::try_from(rows).is_err() {
            return Err(TableError::TooManyRows { rows }.into());
        }
        // A router file must not hold more rows than the reader accepts.
        let most = self.cap.map_or(usize::MAX, |cap| cap.rows.saturating_mul(self.cells().count()));
        self.fitted.check_size(most.min(rows))?;
        let Some(cap) = self.cap else { return self.rows.extend(table) };
        let admitted = self.admitted(cap, keys, cells);
        let features: Vec<usize> = (0..table.feature_names().len()).collect();
        self.rows.extend(&table.select(&admitted, &features))?;
        self.keys.extend(admitted.iter().map(|&row| keys[row as usize]));
        self.cell_of_row.extend(admitted.iter().map(|&row| cells[row as usize]));
        self.drop_rows_above(cap);
        Ok(())
    }

    /// Which of some new rows can be among the kept ones: those of cells that are not full, and those whose hash is not above all hashes of
    /// their cell. Once cells are full, few rows are.
    fn admitted(&self, cap: Cap, keys: &[u64], cells: &[CellId]) -> Vec<u32> {
        let mut largest = vec![(0_usize, 0_u64); self.cells().count()];
        for (cell, &key) in self.cell_of_row.iter().zip(&self.keys) {
            let (rows, most) = &mut largest[cell.index()];
            (*rows, *most) = (*rows + 1, key.max(*most));
        }
        let can_be_kept = |row: &u32| {
            let (rows, most) = largest[cells[*row as usize].index()];
            rows < cap.rows || keys[*row as usize] <= most
        };
        (0..keys.len() as u32).filter(can_be_kept).collect()
    }

    /// Drops the rows with the largest hashes from cells with more rows than the cap.
    fn drop_rows_above(&mut self, cap: Cap) {
        let mut groups = self.rows_by_cell();
        if groups.iter().all(|rows| rows.len() <= cap.rows) {
            return;
        }
        let features: Vec<usize> = (0..self.rows.feature_names().len()).collect();
        for rows in groups.iter_mut().filter(|rows| rows.len() > cap.rows) {
            rows.select_nth_unstable_by(cap.rows, |&a, &b| {
                let (a, b) = (a as usize, b as usize);
                self.keys[a].cmp(&self.keys[b]).then_with(|| compare_content(&self.rows, &features, a, b))
            });
            rows.truncate(cap.rows);
        }
        let kept = groups.concat();
        self.rows = self.rows.select(&kept, &features);
        self.keys = kept.iter().map(|&row| self.keys[row as usize]).collect();
        self.cell_of_row = kept.iter().map(|&row| self.cell_of_row[row as usize]).collect();
    }
}
