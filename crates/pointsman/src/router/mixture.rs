//! Mixtures: the calibration rows behind one estimate.

use std::ops::Range;

use crate::numeric::weighted::WeightedMean;
use crate::partition::SPARSE_BELOW_ROWS;
use crate::table::Table;
use crate::table::votes::Votes;

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

/// Whether a cell has enough rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum Support {
    /// At least [`SPARSE_BELOW_ROWS`] rows.
    Enough,
    /// Some rows, but fewer than [`SPARSE_BELOW_ROWS`].
    Sparse,
    /// No rows: decisions fall back to other rows.
    Empty,
}

impl Support {
    /// The support that a number of rows gives; weighted rows count as (Σw)²/Σw².
    #[must_use]
    pub fn from_effective_rows(effective_rows: f64) -> Self {
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

impl<'a> Mixture<'a> {
    /// The given rows of any table.
    pub(crate) fn of_rows(table: &'a Table, rows: &'a [u32]) -> Self {
        Self { table, rows: Rows::List(rows) }
    }

    /// The rows of any table from `start` to before `end`.
    pub(super) fn of_run(table: &'a Table, start: u32, end: u32) -> Self {
        Self { table, rows: Rows::Run(start, end) }
    }

    /// All rows of any table.
    pub(crate) fn all_rows_of(table: &'a Table) -> Self {
        Self::of_run(table, 0, table.rows() as u32)
    }

    /// The number of rows.
    #[must_use]
    pub fn len(self) -> usize {
        match self.rows {
            Rows::Run(start, end) => (end - start) as usize,
            Rows::List(list) => list.len(),
        }
    }

    /// Whether there are no rows.
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

    /// The table that the rows are in.
    #[must_use]
    pub fn table(self) -> &'a Table {
        self.table
    }

    /// One row's votes.
    pub(crate) fn votes(self, row: usize) -> Votes<'a> {
        self.table.votes(row).unwrap_or(Votes::new(&[]))
    }

    /// Whether these are enough rows; weighted rows count as (Σw)²/Σw².
    #[must_use]
    pub fn support(self) -> Support {
        let rows = self.rows().map(|row| (self.table.weight(row), 0.0));
        Support::from_effective_rows(WeightedMean::around(0.0, rows).effective_rows)
    }

    /// The weighted mean of the rows' label shares, which a recalibrated router serves; `None` if there are no rows.
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
