//! Parquet: only the columns that are needed, row group after row group.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::mpsc;
use std::thread;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use ::parquet::basic::Compression;
use arrow_array::RecordBatch;

use crate::arrow::{fields, shape_needs_a_row};
use crate::error::{Error, Result};
use crate::footer;
use crate::guard::guarded;
use crate::input::{Bytes, Input};
use crate::layout::{Field, Hints, Layout};
use crate::options::{Columns, ReadOptions, Role};
use crate::record_batches::{ArrowSource, RecordBatches, all_columns};

/// The most bytes of a batch whose columns are all kept.
const MAX_BATCH_BYTES: u64 = 1 << 24;

pub(crate) fn open(input: Input, options: &ReadOptions) -> Result<ArrowSource> {
    let parquet = Parquet::open(input)?;
    let rows = u64::try_from(parquet.metadata.metadata().file_metadata().num_rows()).unwrap_or(0);
    let hints = Hints { empty: rows == 0, sparse: true, ..Hints::default() };
    let layout = Layout::find(&parquet.name, &parquet.fields(&options.columns)?, hints, options)?;
    let schema = parquet.metadata.schema().clone();
    let (used, max_rows, kept) = if options.keep_columns {
        ((0..layout.names.len()).collect(), parquet.rows_in(MAX_BATCH_BYTES), all_columns(&schema))
    } else {
        (layout.used(), usize::MAX, Vec::new())
    };
    let (name, size) = (parquet.name.clone(), (Some(rows), Bytes::unread(parquet.bytes)));
    let batches = parquet.batches(&used, options.batch_rows.min(max_rows))?;
    Ok(ArrowSource::new(name, layout, &schema, &used, batches, size).keeping(kept, Vec::new()))
}

/// An opened Parquet file.
pub(crate) struct Parquet {
    pub(crate) name: String,
    file: File,
    bytes: u64,
    metadata: ArrowReaderMetadata,
}

impl Parquet {
    pub(crate) fn open(input: Input) -> Result<Self> {
        let name = input.name.clone();
        let (mut file, bytes) = input.file()?;
        let mut magic = [0; 4];
        let read = file.read_exact(&mut magic).and_then(|()| file.seek(SeekFrom::Start(0)));
        if read.is_err() || &magic != b"PAR1" {
            return Err(Error::file(&name, "is not a Parquet file: it does not begin with PAR1"));
        }
        footer::check(&mut file, bytes).map_err(|why| damaged(&name, &why))?;
        let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(|e| damaged(&name, &e))?;
        Ok(Self { name, file, bytes, metadata })
    }

    /// The columns and their shapes; those of lists and maps are those of the first row. Columns of other models have their first value, which
    /// shows whether they hold answers.
    pub(crate) fn fields(&self, columns: &Columns) -> Result<Vec<Field>> {
        let schema = self.metadata.schema();
        let needs_a_row = |i: &usize| {
            let field = schema.field(*i);
            shape_needs_a_row(field.data_type()) || matches!(columns.wide_role(field.name()), Some((Role::Oracles, _)))
        };
        let by_row: Vec<usize> = (0..schema.fields().len()).filter(needs_a_row).collect();
        let mut all = fields(&RecordBatch::new_empty(schema.clone()));
        if !by_row.is_empty() {
            let first = self.reader(&by_row, 1)?.next().transpose()?;
            for (i, field) in by_row.into_iter().zip(first.iter().flat_map(fields)) {
                all[i] = field;
            }
        }
        Ok(all)
    }

    /// The number of rows that take this many bytes when decoded, according to the file; at least one.
    fn rows_in(&self, bytes: u64) -> usize {
        let groups = self.metadata.metadata().row_groups().iter();
        let (all, rows) = groups.fold((0_u64, 0_u64), |(all, rows), group| {
            let positive = |n: i64| u64::try_from(n).unwrap_or(0);
            (all.saturating_add(positive(group.total_byte_size())), rows.saturating_add(positive(group.num_rows())))
        });
        usize::try_from(bytes / (all / rows.max(1)).max(1)).unwrap_or(usize::MAX).max(1)
    }

    /// The given top-level columns, in batches.
    pub(crate) fn batches(self, columns: &[usize], rows: usize) -> Result<RecordBatches> {
        // Larger batches are no faster and take more memory.
        const MAX_ROWS: usize = 65_536;
        let reader = self.reader(columns, rows.clamp(1, MAX_ROWS))?;
        Ok(read_ahead(self.name, reader))
    }

    fn reader(&self, columns: &[usize], rows: usize) -> Result<RecordBatches> {
        self.check_codecs(columns)?;
        let file = self.file.try_clone().map_err(|e| Error::io(&self.name, e))?;
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), columns.iter().copied());
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
            .with_projection(mask)
            .with_batch_size(rows)
            .build()
            .map_err(|e| damaged(&self.name, &e))?;
        let name = self.name.clone();
        Ok(Box::new(reader.map(move |batch| batch.map_err(|e| damaged(&name, &e)))))
    }

    fn check_codecs(&self, columns: &[usize]) -> Result<()> {
        use Compression::{GZIP, LZ4, LZ4_RAW, SNAPPY, UNCOMPRESSED, ZSTD};
        let schema = self.metadata.parquet_schema();
        let is_read = |leaf| leaf < schema.num_columns() && columns.contains(&schema.get_column_root_idx(leaf));
        let groups = self.metadata.metadata().row_groups().iter();
        for (leaf, column) in groups.flat_map(|group| group.columns().iter().enumerate()) {
            let codec = column.compression();
            if is_read(leaf) && !matches!(codec, UNCOMPRESSED | SNAPPY | GZIP(_) | LZ4 | LZ4_RAW | ZSTD(_)) {
                let (name, codec) = (column.column_path().string(), codec.to_string());
                let codec = codec.split('(').next().unwrap_or_default();
                let reason =
                    format!("column {name} is compressed with {codec}: supported are none, snappy, gzip, lz4 and zstd");
                return Err(Error::file(&self.name, reason));
            }
        }
        Ok(())
    }
}

/// Decodes the next batches in a thread of its own while the last one is being used.
fn read_ahead(name: String, mut batches: RecordBatches) -> RecordBatches {
    let (sender, receiver) = mpsc::sync_channel(2);
    thread::spawn(move || {
        // A panic of the decoder must arrive as an error here too.
        while let Some(batch) = guarded(&name, || batches.next().transpose()).transpose() {
            let failed = batch.is_err();
            // Sending fails if the receiver was dropped.
            if sender.send(batch).is_err() || failed {
                return;
            }
        }
    });
    Box::new(receiver.into_iter())
}

fn damaged(name: &str, error: &(impl std::fmt::Display + ?Sized)) -> Error {
    let text = error.to_string();
    let text = text.strip_prefix("Parquet error: ").unwrap_or(&text);
    Error::file(name, format!("is damaged or no Parquet file: {}", text.lines().next().unwrap_or_default()))
}
