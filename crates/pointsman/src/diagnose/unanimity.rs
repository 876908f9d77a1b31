//! Detection of labels that always agree within a row although similar rows differ.
//!
//! Independent labels of ambiguous items sometimes disagree. If they never do while rows of similar prediction carry different labels,
//! either no item is ambiguous or each label was recorded several times. Counts cannot distinguish the two, and with copies every
//! irreducible loss is estimated as zero, so the owner of the data has to be asked.

use crate::error::Result;
use crate::partition::{CellId, Partition};
use crate::router::Router;
use crate::table::Table;
use crate::table::votes::Votes;

/// The number of bins per class; rows of one bin have similar predictions.
const BINS: usize = 5;

/// The smallest number of rows with several labels; fewer may be unanimous by chance.
const MIN_ROWS: usize = 60;

/// The smallest number and the smallest share of rows that contradict the rest of their cell; with fewer, little could be ambiguous.
const MIN_CONTRADICTING: (usize, f64) = (20, 0.02);

/// All rows with several labels are unanimous although rows of similar prediction differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Unanimity {
    /// The number of rows with two labels or more, all unanimous.
    pub rows: usize,
    /// The number of these rows whose label differs from most rows of similar prediction.
    pub contradicting: usize,
}

impl Unanimity {
    /// Checks a table; `None` if the labels of some row differ, most rows have one label, there are few rows, or hardly any row contradicts
    /// the others of its cell.
    ///
    /// # Errors
    /// If the table has votes but cannot be partitioned.
    pub fn detect(table: &Table) -> Result<Option<Self>> {
        let mut rows = 0;
        for votes in (0..table.rows()).filter_map(|row| table.votes(row)).filter(|votes| votes.k() >= 2) {
            if top(votes).1 < votes.k() {
                return Ok(None);
            }
            rows += 1;
        }
        if rows < MIN_ROWS || 2 * rows < table.rows() {
            return Ok(None);
        }
        let router = Router::calibrate(table, &Partition::top_class(BINS))?;
        let mut contradicting = 0;
        for cell in 0..router.cells().count() as u32 {
            let mixture = router.mixture(CellId(cell));
            let mut with = vec![0; table.classes().len()];
            let several = mixture.rows().map(|row| mixture.votes(row)).filter(|votes| votes.k() >= 2);
            several.for_each(|votes| with[top(votes).0] += 1);
            contradicting += with.iter().sum::<usize>() - with.iter().copied().max().unwrap_or(0);
        }
        let (fewest, share) = MIN_CONTRADICTING;
        let many = contradicting >= fewest && contradicting as f64 >= share * rows as f64;
        Ok(many.then_some(Self { rows, contradicting }))
    }
}

/// The most frequent label and its count.
fn top(votes: Votes<'_>) -> (usize, u64) {
    let counts = votes.counts().iter().enumerate();
    counts.fold((0, 0), |best, (class, &n)| if u64::from(n) > best.1 { (class, u64::from(n)) } else { best })
}
