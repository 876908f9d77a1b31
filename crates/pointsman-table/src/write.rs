//! Writing tables of results, batch by batch, in any of the formats.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::file::properties::WriterProperties;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};

use crate::atomic::{Output, name_of};
use crate::compression::{Compression, Encoder};
use crate::dictionary::{plain, plain_type};
use crate::error::{Error, Misfit, Result, misfit, shown};
use crate::format::Format;
use crate::input_column::{InputColumn, InputKind};
use crate::npz_write::NpzWriter;

/// What a column holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ColumnKind {
    /// Text.
    Text,
    /// Numbers, some of them perhaps unknown.
    Real,
    /// Counts.
    Count,
    /// What a column of an input holds.
    Input(InputKind),
}

/// Some rows of one column.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Column {
    /// Text.
    Text(Vec<String>),
    /// Numbers; NaN is unknown: empty in CSV, null in JSONL, Parquet and Arrow, NaN in npz.
    Real(Vec<f64>),
    /// Counts.
    Count(Vec<u64>),
    /// Values of an input, passed on: see [`ReadOptions::keep_columns`](crate::ReadOptions::keep_columns). Where the output has types, a
    /// column has that of its first batch.
    Input(InputColumn),
}

impl Column {
    /// How many rows it has.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Text(values) => values.len(),
            Self::Real(values) => values.len(),
            Self::Count(values) => values.len(),
            Self::Input(column) => column.len(),
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
            Self::Input(column) => ColumnKind::Input(column.kind()),
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
    /// Rows written.
    rows: u64,
    sink: Sink,
}

enum Sink {
    /// Formats of text are put together batch by batch: of a batch with a value that cannot be written, nothing is.
    Csv {
        out: Encoder<Output>,
        delimiter: u8,
        /// The header, until the first rows come.
        header: Vec<u8>,
    },
    Jsonl {
        out: Encoder<Output>,
        keys: Vec<String>,
    },
    /// A format with types, which are known with the first rows.
    Untyped(Output, Format),
    Parquet(Box<ArrowWriter<Output>>, SchemaRef),
    Arrow(Box<FileWriter<BufWriter<Output>>>, SchemaRef),
    Npz(NpzWriter, SchemaRef, Output),
    /// Nothing is left to write to: opening failed.
    Done,
}

impl TableWriter {
    /// Begins a table with the given columns. `-` is standard output, in CSV unless told otherwise; a file's
    /// format is that of its extension unless told otherwise.
    ///
    /// # Errors
    /// If the format is unknown, a column's name is given twice, or is empty and not one of an input, or the file cannot be created.
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
        for (i, (column, kind)) in columns.iter().enumerate() {
            let nameless = column.is_empty() && !matches!(kind, ColumnKind::Input(_));
            if nameless || columns[..i].iter().any(|(other, _)| other == column) {
                return Err(Error::file(&name, format!("column name {} is empty or given twice", shown(column))));
            }
        }
        let out = Output::create(path)?;
        let sink = Sink::create(out, format, compression, columns).map_err(|e| Error::io(&name, e))?;
        Ok(Self { name, columns: columns.to_vec(), rows: 0, sink })
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
        self.give_types(columns)?;
        let written = self.sink.write(columns, rows).map_err(|error| self.blame(error));
        self.rows += rows as u64;
        written
    }

    /// Adds a column that the rows so far do not have, which JSONL alone can.
    ///
    /// # Errors
    /// If the format has one set of columns for all rows, or there is such a column.
    pub fn add_column(&mut self, name: String, kind: ColumnKind) -> Result<()> {
        let Sink::Jsonl { keys, .. } = &mut self.sink else {
            let reason = format!(
                "column {} is not in the first {} rows, whose columns the file has: write jsonl, or pass on fewer columns with --keep id",
                shown(&name),
                self.rows
            );
            return Err(Error::file(&self.name, reason));
        };
        if self.columns.iter().any(|(other, _)| *other == name) {
            return Err(Error::file(&self.name, format!("column name {} is given twice", shown(&name))));
        }
        keys.push(serde_json::to_string(&name).map_err(|e| Error::io(&self.name, e.into()))?);
        self.columns.push((name, kind));
        Ok(())
    }

    /// Opens a format with types, now that they are known.
    fn give_types(&mut self, columns: &[Column]) -> Result<()> {
        let Sink::Untyped(..) = &self.sink else { return Ok(()) };
        let fields = columns.iter().zip(&self.columns).map(|(column, (name, kind))| field(name, kind, Some(column)));
        self.open(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
    }

    fn open(&mut self, schema: SchemaRef) -> Result<()> {
        let Sink::Untyped(out, format) = std::mem::replace(&mut self.sink, Sink::Done) else { return Ok(()) };
        self.sink = Sink::typed(out, format, &schema).map_err(|error| self.blame(error))?;
        Ok(())
    }

    /// Says where an error happened. What is wrong with values is not the machine's fault.
    fn blame(&self, error: io::Error) -> Error {
        match error.downcast::<Misfit>() {
            Ok(Misfit { column, row, reason }) => Error::Row {
                file: self.name.clone(),
                row: self.rows + row as u64 + 1,
                line: None,
                column: Some(self.columns[column].0.clone()),
                reason,
            },
            Err(error) => Error::io(&self.name, error),
        }
    }

    /// Completes the file and puts it in its place.
    ///
    /// # Errors
    /// If writing fails; nothing is left behind then.
    pub fn finish(mut self) -> Result<()> {
        if let Sink::Untyped(..) = &self.sink {
            let fields = self.columns.iter().map(|(name, kind)| field(name, kind, None));
            self.open(Arc::new(Schema::new(fields.collect::<Vec<_>>())))?;
        }
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

    fn typed(out: Output, format: Format, schema: &SchemaRef) -> io::Result<Self> {
        Ok(match format {
            Format::Parquet => {
                // Row groups are built in memory.
                let properties = WriterProperties::builder()
                    .set_compression(::parquet::basic::Compression::SNAPPY)
                    .set_max_row_group_row_count(Some(1 << 18))
                    .build();
                let writer = ArrowWriter::try_new(out, Arc::clone(schema), Some(properties)).map_err(unfit)?;
                Self::Parquet(Box::new(writer), Arc::clone(schema))
            }
            Format::Arrow => {
                // A file has one dictionary per column, batches may have others: values are written out.
                let plain = |field: &FieldRef| field.as_ref().clone().with_data_type(plain_type(field.data_type()));
                let schema = Arc::new(Schema::new(schema.fields().iter().map(plain).collect::<Vec<_>>()));
                let writer = FileWriter::try_new_buffered(out, &schema).map_err(unfit)?;
                Self::Arrow(Box::new(writer), schema)
            }
            _ => Self::Npz(NpzWriter::new(schema)?, Arc::clone(schema), out),
        })
    }

    fn write(&mut self, columns: &[Column], rows: usize) -> io::Result<()> {
        match self {
            Self::Csv { out, delimiter, header } => {
                let text = csv_text(*delimiter, header.clone(), columns, rows)?;
                header.clear();
                out.write_all(&text)?;
            }
            Self::Jsonl { out, keys } => out.write_all(&jsonl_text(keys, columns, rows)?)?,
            Self::Parquet(writer, schema) => {
                writer.write(&arrow_batch(schema, columns)?).map_err(io::Error::other)?;
            }
            Self::Arrow(writer, schema) => {
                writer.write(&arrow_batch(schema, columns)?).map_err(io::Error::other)?;
            }
            Self::Npz(writer, schema, _) => writer.write(&arrow_batch(schema, columns)?)?,
            Self::Untyped(..) | Self::Done => return Err(io::Error::other("the file was not opened")),
        }
        Ok(())
    }

    fn finish(self) -> io::Result<()> {
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
            Self::Untyped(..) | Self::Done => return Err(io::Error::other("the file was not opened")),
        };
        out.commit()
    }
}

fn csv_writer(delimiter: u8, text: Vec<u8>) -> ::csv::Writer<Vec<u8>> {
    ::csv::WriterBuilder::new().delimiter(delimiter).from_writer(text)
}

/// Rows of CSV, below what is there already.
fn csv_text(delimiter: u8, above: Vec<u8>, columns: &[Column], rows: usize) -> io::Result<Vec<u8>> {
    let mut writer = csv_writer(delimiter, above);
    let mut field = Vec::new();
    for row in 0..rows {
        for (place, column) in columns.iter().enumerate() {
            field.clear();
            match column {
                Column::Text(values) => field.extend_from_slice(values[row].as_bytes()),
                Column::Real(values) if values[row].is_nan() => {}
                Column::Real(values) => real(&mut field, values[row])?,
                Column::Count(values) => write!(field, "{}", values[row])?,
                Column::Input(values) => values.write_text(row, &mut field).map_err(|e| misfit(place, row, e))?,
            }
            writer.write_field(&field)?;
        }
        writer.write_record(None::<&[u8]>)?;
    }
    writer.into_inner().map_err(|e| io::Error::other(e.to_string()))
}

/// Lines of JSONL.
fn jsonl_text(keys: &[String], columns: &[Column], rows: usize) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    for row in 0..rows {
        let mut separator = '{';
        for (place, (column, key)) in columns.iter().zip(keys).enumerate() {
            if matches!(column, Column::Input(values) if !values.has(row)) {
                continue;
            }
            write!(out, "{separator}{key}:")?;
            separator = ',';
            match column {
                Column::Text(values) => serde_json::to_writer(&mut out, &values[row])?,
                // JSON has no infinities and no NaN: the library writes null.
                Column::Real(values) => serde_json::to_writer(&mut out, &values[row])?,
                Column::Count(values) => write!(out, "{}", values[row])?,
                Column::Input(values) => values.write_json(row, &mut out).map_err(|e| misfit(place, row, e))?,
            }
        }
        out.extend_from_slice(if separator == '{' { b"{}\n" } else { b"}\n" });
    }
    Ok(out)
}

/// The shortest text that reads back as the same number.
fn real(out: &mut Vec<u8>, value: f64) -> io::Result<()> {
    if value.is_finite() { Ok(serde_json::to_writer(out, &value)?) } else { write!(out, "{value}") }
}

/// Columns that a format has no place for.
fn unfit(error: impl std::fmt::Display) -> io::Error {
    let reason = format!(
        "a column does not fit the format ({error}): write another one, or pass on fewer columns with --keep id"
    );
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// The Arrow column of a kind; that of an input by its first rows.
fn field(name: &str, kind: &ColumnKind, first: Option<&Column>) -> Field {
    match (kind, first) {
        (ColumnKind::Text, _) => Field::new(name, DataType::Utf8, false),
        (ColumnKind::Real, _) => Field::new(name, DataType::Float64, true),
        (ColumnKind::Count, _) => Field::new(name, DataType::UInt64, false),
        (ColumnKind::Input(_), Some(Column::Input(column))) => column.field(name),
        (ColumnKind::Input(kind), _) => kind.field(name),
    }
}

/// The same rows as an Arrow batch, as they would be written.
///
/// # Errors
/// If the columns are not those declared.
pub fn record_batch(declared: &[(String, ColumnKind)], columns: &[Column]) -> Result<RecordBatch> {
    let fields = declared.iter().zip(columns).map(|((name, kind), column)| field(name, kind, Some(column)));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    arrow_batch(&schema, columns).map_err(|error| Error::Option(error.to_string()))
}

fn arrow_batch(schema: &SchemaRef, columns: &[Column]) -> io::Result<RecordBatch> {
    let array = |(place, (column, field)): (usize, (&Column, &FieldRef))| -> io::Result<ArrayRef> {
        Ok(match column {
            Column::Text(values) => Arc::new(StringArray::from_iter_values(values)),
            Column::Real(values) => {
                Arc::new(values.iter().map(|x| (!x.is_nan()).then_some(*x)).collect::<Float64Array>())
            }
            Column::Count(values) => Arc::new(UInt64Array::from_iter_values(values.iter().copied())),
            Column::Input(values) => {
                let array = values.to_arrow(field.data_type());
                let array = array.map_err(|(row, reason)| Misfit { column: place, row, reason })?;
                if array.data_type() == field.data_type() { array } else { plain(&array).map_err(unfit)? }
            }
        })
    };
    let arrays = columns.iter().zip(schema.fields()).enumerate().map(array).collect::<io::Result<_>>()?;
    RecordBatch::try_new(Arc::clone(schema), arrays).map_err(unfit)
}
