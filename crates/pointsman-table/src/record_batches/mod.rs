//! Rows of Arrow record batches, which Parquet, Arrow IPC and npz files become.

mod rows;

use std::sync::Arc;

use arrow_array::{RecordBatch, UInt32Array, new_empty_array};
use arrow_schema::{FieldRef, Schema};
use arrow_select::take::take;

use self::rows::BatchRows;
use crate::error::{Error, Result};
use crate::input::Bytes;
use crate::input_column::InputColumn;
use crate::labels::Labels;
use crate::layout::Layout;
use crate::raw::RawRows;
use crate::row_filter::RowFilter;
use crate::source::{Progress, Source};

pub(crate) type RecordBatches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// The rows of record batches.
pub(crate) struct ArrowSource {
    name: String,
    layout: Layout,
    labels: Labels,
    /// For each field of the layout, the column of the record batches that holds it.
    column_of_field: Vec<usize>,
    /// The columns that are kept as they are, with their places in the record batches.
    kept: Vec<(usize, FieldRef)>,
    /// The names of columns that should be kept and cannot be.
    left_out: Vec<String>,
    unused_numeric: Vec<String>,
    batches: RecordBatches,
    /// The rest of a record batch that was longer than asked for.
    current: Option<RecordBatch>,
    rows_read: u64,
    total_rows: Option<u64>,
    bytes: Bytes,
    /// The most rows of a batch, to bound its memory.
    pub(crate) max_batch_rows: usize,
}

impl ArrowSource {
    /// A source of batches whose first columns are the `read` fields of the layout. The schema is that of all fields, the size the rows of
    /// the file, if they are known, and its bytes.
    pub(crate) fn new(
        name: String,
        layout: Layout,
        schema: &Schema,
        read: &[usize],
        batches: RecordBatches,
        size: (Option<u64>, Bytes),
    ) -> Self {
        let mut column_of_field = vec![usize::MAX; layout.names.len()];
        for (column, &field) in read.iter().enumerate() {
            column_of_field[field] = column;
        }
        let is_number = |field: &&usize| schema.field(**field).data_type().is_numeric();
        let unused_numeric =
            layout.unused_scalars.iter().filter(is_number).map(|&field| layout.names[field].clone()).collect();
        Self {
            name,
            labels: Labels::new(&layout.classes),
            layout,
            column_of_field,
            kept: Vec::new(),
            left_out: Vec::new(),
            unused_numeric,
            batches,
            current: None,
            rows_read: 0,
            total_rows: size.0,
            bytes: size.1,
            max_batch_rows: usize::MAX,
        }
    }

    /// The same, with some columns kept as they are and some left out though they should be kept.
    pub(crate) fn keeping(mut self, kept: Vec<(usize, FieldRef)>, left_out: Vec<String>) -> Self {
        (self.kept, self.left_out) = (kept, left_out);
        self
    }

    /// The next rows, at most `limit`; `None` at the end.
    fn next_rows(&mut self, limit: usize) -> Result<Option<RecordBatch>> {
        let batch = loop {
            match self.current.take().map_or_else(|| self.batches.next().transpose(), |batch| Ok(Some(batch)))? {
                Some(batch) if batch.num_rows() == 0 => {}
                Some(batch) => break batch,
                None => return Ok(None),
            }
        };
        let rows = batch.num_rows().min(limit);
        if rows < batch.num_rows() {
            self.current = Some(batch.slice(rows, batch.num_rows() - rows));
        }
        Ok(Some(batch.slice(0, rows)))
    }
}

impl Source for ArrowSource {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn fill(&mut self, limit: usize, filter: &mut RowFilter, out: &mut RawRows) -> Result<usize> {
        let Some(columns) = self.next_rows(limit)? else { return Ok(0) };
        let read = columns.num_rows();
        let mut rows = BatchRows {
            file: &self.name,
            layout: &self.layout,
            labels: &self.labels,
            column_of_field: &self.column_of_field,
            columns,
            first: self.rows_read,
            kept: None,
        };
        if !filter.keeps_all() {
            rows.filter(filter, &mut out.dropped_ids)?;
        }
        rows.append_to(out)?;
        if !self.kept.is_empty() {
            let picked = rows.kept.as_ref().map(|kept| kept.iter().map(|&row| row as u32).collect::<UInt32Array>());
            let mut arrays = Vec::with_capacity(self.kept.len());
            for (column, field) in &self.kept {
                let array = rows.columns.column(*column);
                let array = match &picked {
                    None => Arc::clone(array),
                    Some(picked) => take(array, picked, None)
                        .map_err(|e| Error::file(&self.name, format!("column {}: {e}", field.name())))?,
                };
                arrays.push((Arc::clone(field), array));
            }
            out.inputs.add_arrays(arrays.into_iter());
        }
        self.rows_read += read as u64;
        Ok(read)
    }

    fn columns(&self) -> Vec<(String, InputColumn)> {
        let empty = |field: &FieldRef| InputColumn::typed(Arc::clone(field), new_empty_array(field.data_type()));
        self.kept.iter().map(|(_, field)| (field.name().clone(), empty(field))).collect()
    }

    fn left_out(&self) -> &[String] {
        &self.left_out
    }

    fn labels(&self) -> &Labels {
        &self.labels
    }

    fn unused_numeric(&self) -> Vec<String> {
        self.unused_numeric.clone()
    }

    fn progress(&self) -> Progress {
        Progress {
            rows: self.rows_read,
            total_rows: self.total_rows,
            bytes: self.bytes.read(),
            total_bytes: self.bytes.total,
        }
    }

    fn max_batch_rows(&self) -> usize {
        self.max_batch_rows
    }
}

/// All columns of a schema with their places.
pub(crate) fn all_columns(schema: &Schema) -> Vec<(usize, FieldRef)> {
    schema.fields().iter().cloned().enumerate().collect()
}
