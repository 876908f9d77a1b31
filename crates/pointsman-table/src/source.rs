//! What a format's reader does, and how far it has read.

use crate::error::Result;
use crate::input_column::InputColumn;
use crate::labels::Labels;
use crate::layout::Layout;
use crate::raw::RawRows;
use crate::row_filter::RowFilter;

/// The reader of a format: finds the layout of a file and appends its rows.
pub(crate) trait Source: Send {
    fn layout(&self) -> &Layout;

    /// Reads up to `limit` rows of the file and appends those that pass the filter. Returns the number of rows
    /// read; zero is the end.
    fn fill(&mut self, limit: usize, filter: &mut RowFilter, out: &mut RawRows) -> Result<usize>;

    fn progress(&self) -> Progress;

    /// The columns that batches carry, without rows, if they are known before rows are read.
    fn columns(&self) -> Vec<(String, InputColumn)> {
        Vec::new()
    }

    /// The columns that cannot be carried: they do not have one value per row.
    fn left_out(&self) -> &[String] {
        &[]
    }

    /// The unused columns of numbers, if there are no features.
    fn unused_numeric(&self) -> Vec<String>;

    /// Finds the classes that labels name.
    fn labels(&self) -> &Labels;

    /// The most rows of a batch, to bound its memory.
    fn max_batch_rows(&self) -> usize {
        usize::MAX
    }
}

/// The rows and bytes read so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Rows of the file read so far, before any filter.
    pub rows: u64,
    /// Rows of the file, if the format stores their number.
    pub total_rows: Option<u64>,
    /// Bytes read so far, if the number of rows is not known.
    pub bytes: u64,
    /// Bytes of the file, if it is one.
    pub total_bytes: Option<u64>,
}

impl Progress {
    /// The share of the file read so far, if it can be known.
    #[must_use]
    pub fn fraction(&self) -> Option<f64> {
        let (done, total) = match (self.total_rows, self.total_bytes) {
            (Some(total), _) => (self.rows, total),
            (None, Some(total)) => (self.bytes, total),
            (None, None) => return None,
        };
        Some(if total == 0 { 1.0 } else { (done as f64 / total as f64).min(1.0) })
    }
}
