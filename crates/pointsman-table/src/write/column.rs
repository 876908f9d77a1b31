//! Columns to be written, and their form in Arrow.

use std::io;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};

use crate::arrow::plain;
use crate::error::{Error, Misfit, Result};
use crate::input_column::{InputColumn, InputKind};

/// The kind of values of a column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ColumnKind {
    /// Text.
    Text,
    /// Numbers, some of which may be unknown.
    Real,
    /// Counts.
    Count,
    /// Whole numbers with a sign, which more programs read from Parquet than counts.
    Integer,
    /// Times.
    Time,
    /// JSON values, some of which may be missing.
    Json,
    /// The kind of a column of an input.
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
    /// Whole numbers with a sign.
    Integer(Vec<i64>),
    /// Times in microseconds since 1970: text such as `2026-01-31T12:00:00Z` in CSV and JSONL.
    Time(Vec<i64>),
    /// The texts of JSON values: values of JSONL, text in the other formats.
    Json(Vec<Option<String>>),
    /// Values of an input, passed on: see [`ReadOptions::keep_columns`](crate::ReadOptions::keep_columns). In formats with types, a column
    /// has the type of its first batch.
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
            Self::Integer(values) | Self::Time(values) => values.len(),
            Self::Json(values) => values.len(),
            Self::Input(column) => column.len(),
        }
    }

    /// Whether it has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The kind of its values.
    #[must_use]
    pub fn kind(&self) -> ColumnKind {
        match self {
            Self::Text(_) => ColumnKind::Text,
            Self::Real(_) => ColumnKind::Real,
            Self::Count(_) => ColumnKind::Count,
            Self::Integer(_) => ColumnKind::Integer,
            Self::Time(_) => ColumnKind::Time,
            Self::Json(_) => ColumnKind::Json,
            Self::Input(column) => ColumnKind::Input(column.kind()),
        }
    }
}

/// The time zone of times in Arrow.
const UTC: &str = "UTC";

/// The Arrow field of a column; that of an input has the type of its first rows.
pub(super) fn field(name: &str, kind: &ColumnKind, first: Option<&Column>) -> Field {
    match (kind, first) {
        (ColumnKind::Text, _) => Field::new(name, DataType::Utf8, false),
        (ColumnKind::Real, _) => Field::new(name, DataType::Float64, true),
        (ColumnKind::Count, _) => Field::new(name, DataType::UInt64, false),
        (ColumnKind::Integer, _) => Field::new(name, DataType::Int64, false),
        (ColumnKind::Time, _) => Field::new(name, DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())), false),
        (ColumnKind::Json, _) => Field::new(name, DataType::Utf8, true),
        (ColumnKind::Input(_), Some(Column::Input(column))) => column.field(name),
        (ColumnKind::Input(kind), _) => kind.field(name),
    }
}

/// Rows as an Arrow record batch, as they would be written.
///
/// # Errors
/// If the columns are not those declared.
pub fn record_batch(declared: &[(String, ColumnKind)], columns: &[Column]) -> Result<RecordBatch> {
    let fields = declared.iter().zip(columns).map(|((name, kind), column)| field(name, kind, Some(column)));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    arrow_batch(&schema, columns).map_err(|error| Error::Option(error.to_string()))
}

pub(super) fn arrow_batch(schema: &SchemaRef, columns: &[Column]) -> io::Result<RecordBatch> {
    let array = |(place, (column, field)): (usize, (&Column, &FieldRef))| -> io::Result<ArrayRef> {
        Ok(match column {
            Column::Text(values) => Arc::new(StringArray::from_iter_values(values)),
            Column::Real(values) => {
                Arc::new(values.iter().map(|x| (!x.is_nan()).then_some(*x)).collect::<Float64Array>())
            }
            Column::Count(values) => Arc::new(UInt64Array::from_iter_values(values.iter().copied())),
            Column::Integer(values) => Arc::new(Int64Array::from_iter_values(values.iter().copied())),
            Column::Time(values) => {
                Arc::new(TimestampMicrosecondArray::from_iter_values(values.iter().copied()).with_timezone(UTC))
            }
            Column::Json(values) => Arc::new(values.iter().map(Option::as_deref).collect::<StringArray>()),
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

/// The error of a column that a format cannot hold.
pub(super) fn unfit(error: impl std::fmt::Display) -> io::Error {
    let reason = format!(
        "a column does not fit the format ({error}): write another one, or pass on fewer columns with --keep id"
    );
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
