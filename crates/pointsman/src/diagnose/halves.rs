//! Random halves of a table that depend neither on the votes nor on the order of the rows.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

use crate::error::{Result, TableError};
use crate::numeric::mix::shuffle;
use crate::partition::{Factor, Partition};
use crate::router::label_free;
use crate::table::Table;

/// Longer tables are sampled: more rows take time but hardly change the results.
const MAX_ROWS: usize = 50_000;

/// The same if each half chooses its partition by `auto`.
const MAX_ROWS_WITH_AUTO: usize = 20_000;

const SEED: u64 = 0xD1A6_0515;

/// The rows of a table in a label-free random order.
#[derive(Debug)]
pub(super) struct Ordered {
    pub(super) rows: Table,
    /// The row of the original table.
    pub(super) origin: Vec<u32>,
}

impl Ordered {
    /// Orders the rows of a table at random, independent of votes and of the original order; samples very long tables.
    pub(super) fn new(table: &Table) -> Result<Self> {
        Self::sample(table, MAX_ROWS)
    }

    /// As [`Ordered::new`], with fewer rows if each half chooses its partition by `auto`.
    pub(super) fn for_partition(table: &Table, partition: &Partition) -> Result<Self> {
        let is_auto = matches!(partition.factors(), [Factor::Auto { .. }]);
        Self::sample(table, if is_auto { MAX_ROWS_WITH_AUTO } else { MAX_ROWS })
    }

    fn sample(table: &Table, most: usize) -> Result<Self> {
        if !table.has_votes() {
            return Err(TableError::NoVotes {
                purpose: "a diagnosis",
                columns: "votes_<class>, labels or annotations",
            }
            .into());
        }
        if u32::try_from(table.rows()).is_err() {
            return Err(TableError::TooManyRows { rows: table.rows() }.into());
        }
        let columns: Vec<usize> = (0..table.feature_names().len()).collect();
        let mut origin = label_free::order_of_table(table, SEED);
        origin.truncate(most);
        Ok(Self { rows: table.select(&origin, &columns), origin })
    }

    /// Two random halves: their row numbers in ascending order, and their tables.
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

/// Two random halves of a table with votes, one to calibrate on and one to evaluate on. They depend neither on the votes nor on the order
/// of the rows. Very long tables are sampled.
///
/// # Errors
/// If the table has no votes or fewer than two rows.
pub fn halves(table: &Table) -> Result<[Table; 2]> {
    if table.rows() < 2 {
        return Err(TableError::TooFewRows { purpose: "halving", rows: table.rows(), least: 2 }.into());
    }
    Ok(Ordered::new(table)?.halves(0).map(|(_, half)| half))
}
