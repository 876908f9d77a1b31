//! Writing tables of results, batch by batch, in any of the formats.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::file::properties::WriterProperties;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::atomic::{Output, name_of};
use crate::compression::{Compression, Encoder};
use crate::error::{Error, Result, shown};
use crate::format::Format;
use crate::npz_write::NpzWriter;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColumnKind {
    /// Text.
    Text,
    /// Numbers, some of them perhaps unknown.
    Real,
    /// Counts.
    Count,
}

/// Some rows of one column.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// Text.
    Text(Vec<String>),
    /// Numbers; NaN is unknown: empty in CSV, null in JSONL, Parquet and Arrow, NaN in npz.
    Real(Vec<f64>),
    /// Counts.
    Count(Vec<u64>),
}

impl Column {
    /// How many rows it has.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Text(values) => values.len(),
            Self::Real(values) => values.len(),
            Self::Count(values) => values.len(),
        }
    }

    /// Whether it has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What it holds.
    #[must_use]
    pub fn kind(&self) -> ColumnKind {
        match self {
            Self::Text(_) => ColumnKind::Text,
            Self::Real(_) => ColumnKind::Real,
            Self::Count(_) => ColumnKind::Count,
        }
    }
}

/// Writes a table to a file, which appears under its name only once it is [finished](TableWriter::finish);
/// dropped before that, nothing is left behind.
///
/// ```
/// use pointsman_table::{Column, ColumnKind, TableWriter};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("out.csv");
/// let columns = [("action".to_owned(), ColumnKind::Text), ("cost".to_owned(), ColumnKind::Real)];
/// let mut writer = TableWriter::create(&path, None, &columns)?;
/// writer.write(&[Column::Text(vec!["predict".to_owned()]), Column::Real(vec![f64::NAN])])?;
/// writer.finish()?;
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "action,cost\npredict,\n");
/// # Ok::<(), pointsman_table::Error>(())
/// ```
pub struct TableWriter {
    name: String,
    columns: Vec<(String, ColumnKind)>,
    sink: Sink,
}

enum Sink {
    Csv(Box<::csv::Writer<Encoder<Output>>>),
    Jsonl { out: BufWriter<Encoder<Output>>, keys: Vec<String> },
    Parquet(Box<ArrowWriter<Output>>, SchemaRef),
    Arrow(Box<FileWriter<BufWriter<Output>>>, SchemaRef),
    Npz(NpzWriter, Output),
}

impl TableWriter {
    /// Begins a table with the given columns. `-` is standard output, in CSV unless told otherwise; a file's
    /// format is that of its extension unless told otherwise.
    ///
    /// # Errors
    /// If the format is unknown, a column's name is empty or given twice, or the file cannot be created.
    pub fn create(path: impl AsRef<Path>, format: Option<Format>, columns: &[(String, ColumnKind)]) -> Result<Self> {
        let path = path.as_ref();
        let name = name_of(path);
        let format = Format::to_write(path, format)?;
        let compression = Compression::of_path(path);
        if let Some(compression) = compression.filter(|_| !format.is_text()) {
            let reason = format!(
                "{format} is not compressed with {} as a whole: leave out the last extension",
                compression.name()
            );
            return Err(Error::file(&name, reason));
        }
        for (i, (column, _)) in columns.iter().enumerate() {
            if column.is_empty() || columns[..i].iter().any(|(other, _)| other == column) {
                return Err(Error::file(&name, format!("column name {} is empty or given twice", shown(column))));
            }
        }
        let out = Output::create(path)?;
        let sink = Sink::create(out, format, compression, columns).map_err(|e| Error::io(&name, e))?;
        Ok(Self { name, columns: columns.to_vec(), sink })
    }

    /// Appends rows: one column each as declared, all of one length.
    ///
    /// # Errors
    /// If the columns are not those declared, or writing fails.
    pub fn write(&mut self, columns: &[Column]) -> Result<()> {
        let rows = columns.first().map_or(0, Column::len);
        let declared = columns.len() == self.columns.len()
            && columns.iter().zip(&self.columns).all(|(c, (_, kind))| c.kind() == *kind && c.len() == rows);
        if !declared {
            return Err(Error::file(&self.name, "the columns written are not those declared"));
        }
        self.sink.write(columns, rows).map_err(|e| Error::io(&self.name, e))
    }

    /// Completes the file and puts it in its place.
    ///
    /// # Errors
    /// If writing fails; nothing is left behind then.
    pub fn finish(self) -> Result<()> {
        self.sink.finish().map_err(|e| Error::io(&self.name, e))
    }
}

impl Sink {
    fn create(
        out: Output,
        format: Format,
        compression: Option<Compression>,
        columns: &[(String, ColumnKind)],
    ) -> io::Result<Self> {
        Ok(match format {
            Format::Csv | Format::Tsv => {
                let delimiter = if format == Format::Tsv { b'\t' } else { b',' };
                let mut writer = ::csv::WriterBuilder::new()
                    .delimiter(delimiter)
                    .buffer_capacity(1 << 16)
                    .from_writer(Encoder::new(out, compression)?);
                writer.write_record(columns.iter().map(|(name, _)| name))?;
                Self::Csv(Box::new(writer))
            }
            Format::Jsonl => {
                let keys = columns.iter().map(|(name, _)| serde_json::to_string(name));
                Self::Jsonl {
                    out: BufWriter::with_capacity(1 << 16, Encoder::new(out, compression)?),
                    keys: keys.collect::<std::result::Result<_, _>>()?,
                }
            }
            Format::Parquet => {
                let schema = schema(columns);
                // Row groups are built in memory.
                let properties = WriterProperties::builder()
                    .set_compression(::parquet::basic::Compression::SNAPPY)
                    .set_max_row_group_row_count(Some(1 << 18))
                    .build();
                let writer = ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties));
                Self::Parquet(Box::new(writer.map_err(io::Error::other)?), schema)
            }
            Format::Arrow => {
                let schema = schema(columns);
                let writer = FileWriter::try_new_buffered(out, &schema).map_err(io::Error::other)?;
                Self::Arrow(Box::new(writer), schema)
            }
            Format::Npz => Self::Npz(NpzWriter::new(columns)?, out),
        })
    }

    fn write(&mut self, columns: &[Column], rows: usize) -> io::Result<()> {
        match self {
            Self::Csv(writer) => {
                let mut field = Vec::new();
                for row in 0..rows {
                    for column in columns {
                        match column {
                            Column::Text(values) => writer.write_field(&values[row])?,
                            Column::Real(values) if values[row].is_nan() => writer.write_field("")?,
                            Column::Real(values) => {
                                field.clear();
                                real(&mut field, values[row])?;
                                writer.write_field(&field)?;
                            }
                            Column::Count(values) => {
                                field.clear();
                                write!(field, "{}", values[row])?;
                                writer.write_field(&field)?;
                            }
                        }
                    }
                    writer.write_record(None::<&[u8]>)?;
                }
            }
            Self::Jsonl { out, keys } => {
                for row in 0..rows {
                    for (i, (column, key)) in columns.iter().zip(keys.iter()).enumerate() {
                        write!(out, "{}{key}:", if i == 0 { '{' } else { ',' })?;
                        match column {
                            Column::Text(values) => serde_json::to_writer(&mut *out, &values[row])?,
                            // JSON has no infinities and no NaN: the library writes null.
                            Column::Real(values) => serde_json::to_writer(&mut *out, &values[row])?,
                            Column::Count(values) => write!(out, "{}", values[row])?,
                        }
                    }
                    out.write_all(if keys.is_empty() { b"{}\n" } else { b"}\n" })?;
                }
            }
            Self::Parquet(writer, schema) => {
                writer.write(&arrow_batch(schema, columns)?).map_err(io::Error::other)?;
            }
            Self::Arrow(writer, schema) => {
                writer.write(&arrow_batch(schema, columns)?).map_err(io::Error::other)?;
            }
            Self::Npz(writer, _) => writer.write(columns)?,
        }
        Ok(())
    }

    fn finish(self) -> io::Result<()> {
        let out = match self {
            Self::Csv(writer) => writer.into_inner().map_err(|e| io::Error::other(e.to_string()))?.finish()?,
            Self::Jsonl { out, .. } => out.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?,
            Self::Parquet(writer, _) => writer.into_inner().map_err(io::Error::other)?,
            Self::Arrow(mut writer, _) => {
                writer.finish().map_err(io::Error::other)?;
                let out = writer.into_inner().map_err(io::Error::other)?;
                out.into_inner().map_err(io::IntoInnerError::into_error)?
            }
            Self::Npz(writer, mut out) => {
                writer.finish(&mut out)?;
                out
            }
        };
        out.commit()
    }
}

/// The shortest text that reads back as the same number.
fn real(out: &mut Vec<u8>, value: f64) -> io::Result<()> {
    if value.is_finite() { Ok(serde_json::to_writer(out, &value)?) } else { write!(out, "{value}") }
}

fn schema(columns: &[(String, ColumnKind)]) -> SchemaRef {
    let field = |(name, kind): &(String, ColumnKind)| match kind {
        ColumnKind::Text => Field::new(name, DataType::Utf8, false),
        ColumnKind::Real => Field::new(name, DataType::Float64, true),
        ColumnKind::Count => Field::new(name, DataType::UInt64, false),
    };
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// The same rows as an Arrow batch, as they would be written.
///
/// # Errors
/// If the columns are not those declared.
pub fn record_batch(declared: &[(String, ColumnKind)], columns: &[Column]) -> Result<RecordBatch> {
    arrow_batch(&schema(declared), columns).map_err(|error| Error::Option(error.to_string()))
}

fn arrow_batch(schema: &SchemaRef, columns: &[Column]) -> io::Result<RecordBatch> {
    let arrays = columns.iter().map(|column| -> ArrayRef {
        match column {
            Column::Text(values) => Arc::new(StringArray::from_iter_values(values)),
            Column::Real(values) => {
                Arc::new(values.iter().map(|x| (!x.is_nan()).then_some(*x)).collect::<Float64Array>())
            }
            Column::Count(values) => Arc::new(UInt64Array::from_iter_values(values.iter().copied())),
        }
    });
    RecordBatch::try_new(Arc::clone(schema), arrays.collect()).map_err(io::Error::other)
}
