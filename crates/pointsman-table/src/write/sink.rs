//! The formats, as they are written.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::file::properties::WriterProperties;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{FieldRef, Schema, SchemaRef};

use super::column::{Column, ColumnKind, arrow_batch, unfit};
use super::text::{csv_rows, csv_writer, jsonl_rows};
use crate::arrow::plain_type;
use crate::atomic::Output;
use crate::compression::{Compression, Encoder};
use crate::format::Format;
use crate::npz::NpzWriter;

/// The most bytes of a row group of Parquet: rows with long texts fill it before their number does.
const MAX_ROW_GROUP_BYTES: usize = 64 << 20;

/// A format being written.
pub(super) enum Sink {
    /// Text is made batch by batch, so that a batch with a value that cannot be written is not written at all.
    Csv {
        out: Encoder<Output>,
        delimiter: u8,
        /// The header, until the first rows are written.
        header: Vec<u8>,
    },
    Jsonl {
        out: Encoder<Output>,
        keys: Vec<String>,
    },
    /// A format with types, before the first rows show them.
    Untyped(Output, Format),
    Parquet(Box<ArrowWriter<Output>>, SchemaRef),
    Arrow(Box<FileWriter<BufWriter<Output>>>, SchemaRef),
    Npz(NpzWriter, SchemaRef, Output),
    /// Opening failed.
    Failed,
}

impl Sink {
    pub(super) fn create(
        out: Output,
        format: Format,
        compression: Option<Compression>,
        columns: &[(String, ColumnKind)],
    ) -> io::Result<Self> {
        Ok(match format {
            Format::Csv | Format::Tsv => {
                let delimiter = if format == Format::Tsv { b'\t' } else { b',' };
                let mut writer = csv_writer(delimiter, Vec::new());
                writer.write_record(columns.iter().map(|(name, _)| name))?;
                let header = writer.into_inner().map_err(|e| io::Error::other(e.to_string()))?;
                Self::Csv { out: Encoder::new(out, compression)?, delimiter, header }
            }
            Format::Jsonl => {
                let keys = columns.iter().map(|(name, _)| serde_json::to_string(name));
                Self::Jsonl { out: Encoder::new(out, compression)?, keys: keys.collect::<std::result::Result<_, _>>()? }
            }
            Format::Parquet | Format::Arrow | Format::Npz => Self::Untyped(out, format),
        })
    }

    pub(super) fn typed(out: Output, format: Format, schema: &SchemaRef) -> io::Result<Self> {
        Ok(match format {
            Format::Parquet => {
                // Row groups are built in memory, which bounds their size.
                let properties = WriterProperties::builder()
                    .set_compression(::parquet::basic::Compression::SNAPPY)
                    .set_max_row_group_row_count(Some(1 << 18))
                    .set_max_row_group_bytes(Some(MAX_ROW_GROUP_BYTES))
                    .build();
                let writer = ArrowWriter::try_new(out, Arc::clone(schema), Some(properties)).map_err(unfit)?;
                Self::Parquet(Box::new(writer), Arc::clone(schema))
            }
            Format::Arrow => {
                // A file has one dictionary per column, but batches may have different ones: values are written without.
                let plain = |field: &FieldRef| field.as_ref().clone().with_data_type(plain_type(field.data_type()));
                let schema = Arc::new(Schema::new(schema.fields().iter().map(plain).collect::<Vec<_>>()));
                let writer = FileWriter::try_new_buffered(out, &schema).map_err(unfit)?;
                Self::Arrow(Box::new(writer), schema)
            }
            Format::Npz => Self::Npz(NpzWriter::new(schema)?, Arc::clone(schema), out),
            Format::Csv | Format::Tsv | Format::Jsonl => unreachable!("text formats have no schema"),
        })
    }

    pub(super) fn write(&mut self, columns: &[Column], rows: usize) -> io::Result<()> {
        match self {
            Self::Csv { out, delimiter, header } => {
                let text = csv_rows(*delimiter, header.clone(), columns, rows)?;
                header.clear();
                out.write_all(&text)?;
            }
            Self::Jsonl { out, keys } => out.write_all(&jsonl_rows(keys, columns, rows)?)?,
            Self::Parquet(writer, schema) => {
                writer.write(&arrow_batch(schema, columns)?).map_err(io::Error::other)?;
            }
            Self::Arrow(writer, schema) => {
                writer.write(&arrow_batch(schema, columns)?).map_err(io::Error::other)?;
            }
            Self::Npz(writer, schema, _) => writer.write(&arrow_batch(schema, columns)?)?,
            Self::Untyped(..) | Self::Failed => return Err(io::Error::other("the file was not opened")),
        }
        Ok(())
    }

    pub(super) fn finish(self) -> io::Result<()> {
        let out = match self {
            Self::Csv { mut out, header, .. } => {
                out.write_all(&header)?;
                out.finish()?
            }
            Self::Jsonl { out, .. } => out.finish()?,
            Self::Parquet(writer, _) => writer.into_inner().map_err(io::Error::other)?,
            Self::Arrow(mut writer, _) => {
                writer.finish().map_err(io::Error::other)?;
                let out = writer.into_inner().map_err(io::Error::other)?;
                out.into_inner().map_err(io::IntoInnerError::into_error)?
            }
            Self::Npz(writer, _, mut out) => {
                writer.finish(&mut out)?;
                out
            }
            Self::Untyped(..) | Self::Failed => return Err(io::Error::other("the file was not opened")),
        };
        out.commit()
    }
}
