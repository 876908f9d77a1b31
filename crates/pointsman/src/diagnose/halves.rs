//! Halves of a table, drawn by content: the order of the rows does not matter.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

use crate::error::{Error, Result};
use crate::mix::shuffle;
use crate::router::compare_content;
use crate::table::Table;

/// More rows than this are sampled: the answers would not change, the time would.
const MOST_ROWS: usize = 50_000;

const SEED: u64 = 0xD1A6_0515;

/// A table's rows in an order of their own, and where each was.
#[derive(Debug)]
pub(super) struct Ordered {
    pub(super) rows: Table,
    /// The place of each row in the table given.
    pub(super) origin: Vec<u32>,
}

impl Ordered {
    /// Sorts a table by content, and samples it if it is very long.
    pub(super) fn of(table: &Table) -> Result<Self> {
        if !table.has_votes() {
            return Err(Error::Table("a diagnosis needs votes: columns votes_<class>, labels or annotations".into()));
        }
        let rows = u32::try_from(table.rows())
            .map_err(|_| Error::Table(format!("{} rows are too many: sample the table", table.rows())))?;
        let columns: Vec<usize> = (0..table.feature_names().len()).collect();
        let mut origin: Vec<u32> = (0..rows).collect();
        let by_content = |a: &u32, b: &u32| compare_content(table, &columns, *a as usize, *b as usize);
        origin.sort_by(by_content);
        if origin.len() > MOST_ROWS {
            shuffle(&mut origin, &mut Pcg64::seed_from_u64(SEED));
            origin.truncate(MOST_ROWS);
            origin.sort_by(by_content);
        }
        Ok(Self { rows: table.select(&origin, &columns), origin })
    }

    /// Two random halves: their rows, ascending, and tables of them.
    pub(super) fn halves(&self, split: u64) -> [(Vec<u32>, Table); 2] {
        let mut order: Vec<u32> = (0..self.rows.rows() as u32).collect();
        shuffle(&mut order, &mut Pcg64::seed_from_u64(SEED ^ (split + 1)));
        let columns: Vec<usize> = (0..self.rows.feature_names().len()).collect();
        let mut second = order.split_off(order.len().div_ceil(2));
        [&mut order, &mut second].map(|half| {
            half.sort_unstable();
            (half.clone(), self.rows.select(half, &columns))
        })
    }
}

/// Two random halves of a table with votes, one to calibrate on and one to prove it on. Content draws them: the order of the
/// rows does not matter. Very long tables are sampled.
///
/// # Errors
/// If the table has no votes or fewer than two rows.
pub fn halves(table: &Table) -> Result<[Table; 2]> {
    if table.rows() < 2 {
        return Err(Error::Table(format!("{} rows cannot be halved", table.rows())));
    }
    Ok(Ordered::of(table)?.halves(0).map(|(_, half)| half))
}
