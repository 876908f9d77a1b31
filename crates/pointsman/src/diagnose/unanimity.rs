//! Whether every row's labels agree although rows differ.
//!
//! Independent labels of items that people could see either way disagree now and then. If none of them ever does while rows of like
//! prediction carry different labels, either nothing is ambiguous to anybody or one label was written down several times.
//! Counts cannot tell the two apart, and with copies every irreducible loss comes out as zero: whoever knows must be asked.

use crate::error::Result;
use crate::partition::{CellId, Partition};
use crate::router::Router;
use crate::table::Table;
use crate::table::votes::Votes;

/// Bins per class: rows in the same one have like predictions.
const BINS: usize = 5;
/// Fewer rows of several labels may be unanimous by chance.
const FEWEST_ROWS: usize = 60;
/// Rows that contradict the rest of their cell: fewer, as a number or as a share, leave little that could be ambiguous.
const CONTRADICTING: (usize, f64) = (20, 0.02);

/// Every row of several labels is unanimous, and yet rows of like prediction differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Unanimity {
    /// Rows with two labels or more, all of them unanimous.
    pub rows: usize,
    /// How many of them carry another label than most rows of like prediction.
    pub contradicting: usize,
}

impl Unanimity {
    /// Looks at a table; `None` if some row's labels differ, if most rows carry one label, if rows are few, or if hardly any row
    /// contradicts the others of its cell.
    ///
    /// # Errors
    /// If the table has votes but no cells can be made of it.
    pub fn of(table: &Table) -> Result<Option<Self>> {
        let mut rows = 0;
        for votes in (0..table.rows()).filter_map(|row| table.votes(row)).filter(|votes| votes.k() >= 2) {
            if top(votes).1 < votes.k() {
                return Ok(None);
            }
            rows += 1;
        }
        if rows < FEWEST_ROWS || 2 * rows < table.rows() {
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
        let (fewest, share) = CONTRADICTING;
        let many = contradicting >= fewest && contradicting as f64 >= share * rows as f64;
        Ok(many.then_some(Self { rows, contradicting }))
    }
}

/// The commonest label and how often it was given.
fn top(votes: Votes<'_>) -> (usize, u64) {
    let counts = votes.counts().iter().enumerate();
    counts.fold((0, 0), |best, (class, &n)| if u64::from(n) > best.1 { (class, u64::from(n)) } else { best })
}
