//! Columns of an input that are passed on to an output unchanged.
//!
//! A column is kept in the form of its file: text of CSV as bytes, values of JSONL as JSON, columns of Parquet, Arrow and
//! npz as Arrow arrays. A writer asks for the form of its own format: text, JSON or an Arrow array.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::builder::{ArrayBuilder, BinaryBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, Float64Array, StringArray};
use arrow_schema::{DataType, Field, FieldRef};
use arrow_select::concat::concat;
use arrow_select::filter::filter;

use crate::arrow;
use crate::error::{Parsed, shown};
use crate::json::Json;
use crate::json_arrow;

/// Bytes of text after which a batch ends, whatever the number of its rows.
const BATCH_BYTES: usize = 1 << 24;

/// What to do about a value that does not fit the type of its column.
const ONE_TYPE: &str =
    "a column has the type of its first rows: write csv or jsonl, or pass on fewer columns with --keep id";

/// Some rows of one column of an input, as the input holds them.
#[derive(Debug, Clone, PartialEq)]
pub struct InputColumn(Values);

#[derive(Debug, Clone, PartialEq)]
enum Values {
    /// Values of CSV. With `number`, the role of the column is one of numbers, and they become numbers in formats with types.
    Csv { text: BinaryArray, number: bool },
    /// Values of JSONL; null where a row does not have the key.
    Json(StringArray),
    /// Values of the formats that have types.
    Typed { field: FieldRef, array: ArrayRef },
}

/// The kind of values of an [`InputColumn`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InputKind(Kind);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Kind {
    Csv { number: bool },
    Json,
    Typed(FieldRef),
}

impl InputKind {
    /// The Arrow column of a table without rows.
    pub(crate) fn field(&self, name: &str) -> Field {
        match &self.0 {
            Kind::Csv { number: true } => Field::new(name, DataType::Float64, true),
            Kind::Csv { number: false } => Field::new(name, DataType::Utf8, false),
            Kind::Json => Field::new(name, DataType::Utf8, true),
            Kind::Typed(field) => field.as_ref().clone().with_name(name),
        }
    }
}

impl InputColumn {
    pub(crate) fn typed(field: FieldRef, array: ArrayRef) -> Self {
        Self(Values::Typed { field, array })
    }

    /// A column of a JSONL file that none of these rows has.
    #[must_use]
    pub fn absent(rows: usize) -> Self {
        Self(Values::Json(StringArray::new_null(rows)))
    }

    /// How many rows it has.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Values::Csv { text, .. } => text.len(),
            Values::Json(values) => values.len(),
            Values::Typed { array, .. } => array.len(),
        }
    }

    /// Whether it has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The kind of its values.
    #[must_use]
    pub fn kind(&self) -> InputKind {
        InputKind(match &self.0 {
            Values::Csv { number, .. } => Kind::Csv { number: *number },
            Values::Json(_) => Kind::Json,
            Values::Typed { field, .. } => Kind::Typed(Arc::clone(field)),
        })
    }

    /// The values as text, as CSV has them: empty where a value is missing.
    ///
    /// # Errors
    /// If a value is not text, with its row.
    pub fn texts(&self) -> Result<Vec<String>, (usize, String)> {
        let text = |row: usize| {
            let mut out = Vec::new();
            self.write_text(row, &mut out).map_err(|error| (row, error.to_string()))?;
            String::from_utf8(out).map_err(|error| (row, error.to_string()))
        };
        (0..self.len()).map(text).collect()
    }

    /// Some of the rows.
    fn keep(&self, kept: &BooleanArray) -> Self {
        // Filtering fails only if the lengths differ, and every array has one row per flag.
        let rows = |array: &dyn Array| filter(array, kept).unwrap_or_else(|_| array.slice(0, 0));
        Self(match &self.0 {
            Values::Csv { text, number } => {
                Values::Csv { text: rows(text).as_binary::<i32>().clone(), number: *number }
            }
            Values::Json(values) => Values::Json(rows(values).as_string::<i32>().clone()),
            Values::Typed { field, array } => Values::Typed { field: Arc::clone(field), array: rows(array) },
        })
    }

    /// Writes a row's value as text: lists and maps as JSON, and a missing value as empty text.
    pub(crate) fn write_text(&self, row: usize, out: &mut Vec<u8>) -> io::Result<()> {
        match &self.0 {
            Values::Csv { text, .. } => out.extend_from_slice(text.value(row)),
            Values::Json(values) => match values.is_valid(row).then(|| values.value(row)) {
                None | Some("null") => {}
                Some(text) if text.starts_with('"') => {
                    let plain: String = serde_json::from_str(text)?;
                    out.extend_from_slice(plain.as_bytes());
                }
                Some(other) => out.extend_from_slice(other.as_bytes()),
            },
            Values::Typed { array, .. } => arrow::write_text(array, row, out)?,
        }
        Ok(())
    }

    /// Whether a row has a value to be written as JSON: rows of JSONL may lack a key.
    pub(crate) fn has(&self, row: usize) -> bool {
        !matches!(&self.0, Values::Json(values) if values.is_null(row))
    }

    /// Writes a row's value as JSON.
    pub(crate) fn write_json(&self, row: usize, out: &mut Vec<u8>) -> io::Result<()> {
        match &self.0 {
            Values::Json(values) => out.write_all(values.value(row).as_bytes()),
            Values::Typed { array, .. } => arrow::write_json(array, row, out),
            Values::Csv { text, number } => {
                let text = utf8(text.value(row))?;
                match if *number { parse_number(text) } else { None } {
                    // A count stays a whole number.
                    Some(Some(x)) if x.fract() == 0.0 && x.abs() < 1e15 => write!(out, "{x}"),
                    Some(x) => Ok(serde_json::to_writer(out, &x)?),
                    None => Ok(serde_json::to_writer(out, text)?),
                }
            }
        }
    }

    /// The Arrow field for these rows and those after them.
    pub(crate) fn field(&self, name: &str) -> Field {
        match &self.0 {
            Values::Csv { text, number: true } => {
                let is_numeric = texts(text).all(|text| text.is_ok_and(|t| parse_number(t).is_some()));
                InputKind(Kind::Csv { number: is_numeric }).field(name)
            }
            Values::Json(values) => Field::new(name, json_arrow::type_of(&parsed(values)), true),
            Values::Csv { .. } | Values::Typed { .. } => self.kind().field(name),
        }
    }

    /// The rows as an Arrow array of the type that [`InputColumn::field`] returned for the first rows. An error has the row and the reason.
    pub(crate) fn to_arrow(&self, data_type: &DataType) -> Result<ArrayRef, (usize, String)> {
        match &self.0 {
            Values::Csv { text, .. } => {
                let texts = texts(text)
                    .enumerate()
                    .map(|(row, text)| text.map(|text| (row, text)).map_err(|error| (row, error.to_string())));
                if *data_type == DataType::Float64 {
                    let number = |(row, text)| {
                        parse_number(text).ok_or_else(|| (row, format!("{} is not a number: {ONE_TYPE}", shown(text))))
                    };
                    let values: Result<Float64Array, _> = texts.map(|text| text.and_then(number)).collect();
                    return Ok(Arc::new(values?));
                }
                let values: Result<Vec<&str>, _> = texts.map(|text| text.map(|(_, text)| text)).collect();
                Ok(Arc::new(StringArray::from(values?)))
            }
            Values::Json(values) => {
                let values = parsed(values);
                let values: Vec<Option<&Json>> = values.iter().map(Option::as_ref).collect();
                json_arrow::build(&values, data_type).map_err(|(row, why)| (row, format!("{why}: {ONE_TYPE}")))
            }
            Values::Typed { array, .. } => Ok(Arc::clone(array)),
        }
    }
}

/// The texts of a CSV column.
fn texts(values: &BinaryArray) -> impl Iterator<Item = io::Result<&str>> {
    (0..values.len()).map(|row| utf8(values.value(row)))
}

fn utf8(bytes: &[u8]) -> io::Result<&str> {
    let refuse = || {
        let text = shown(&String::from_utf8_lossy(bytes));
        let reason = format!(
            "{text} is not UTF-8 text: save the table as UTF-8, write csv, or pass on fewer columns with --keep id"
        );
        io::Error::new(io::ErrorKind::InvalidData, reason)
    };
    std::str::from_utf8(bytes).map_err(|_| refuse())
}

/// The number that a text holds, `Some(None)` if the text is empty or NaN; `None` if it is not a number.
fn parse_number(text: &str) -> Option<Option<f64>> {
    match text.trim() {
        "" => Some(None),
        text => text.parse().ok().map(|x: f64| Some(x).filter(|x| !x.is_nan())),
    }
}

/// The values of a JSONL column; this crate wrote their text, so that it can be parsed.
fn parsed(values: &StringArray) -> Vec<Option<Json>> {
    values.iter().map(|text| text.and_then(|text| serde_json::from_str(text).ok())).collect()
}

/// The rows of all columns of a file as a reader collects them.
#[derive(Debug, Default)]
pub(crate) enum InputRows {
    /// No columns are kept.
    #[default]
    None,
    Csv {
        /// The name, the values, and whether the role is one of numbers.
        columns: Vec<(String, BinaryBuilder, bool)>,
        bytes: usize,
    },
    Json {
        columns: Vec<(String, StringBuilder)>,
        places: HashMap<String, usize>,
        rows: usize,
        bytes: usize,
    },
    Typed(Vec<(FieldRef, Vec<ArrayRef>)>),
    /// Columns built before the batch is complete.
    Complete(Vec<(String, InputColumn)>),
}

impl InputRows {
    /// Whether the batch has enough bytes to end.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Self::Csv { bytes, .. } | Self::Json { bytes, .. } if *bytes >= BATCH_BYTES)
    }

    /// Adds a record of CSV; the columns have these names, with whether their role is one of numbers.
    pub(crate) fn add_record<'a>(&mut self, names: &[(String, bool)], record: impl Iterator<Item = &'a [u8]>) {
        if let Self::None = self {
            let column = |(name, number): &(String, bool)| (name.clone(), BinaryBuilder::new(), *number);
            *self = Self::Csv { columns: names.iter().map(column).collect(), bytes: 0 };
        }
        let Self::Csv { columns, bytes } = self else { return };
        for ((_, values, _), field) in columns.iter_mut().zip(record) {
            values.append_value(field);
            *bytes += field.len();
        }
    }

    /// Adds an object of JSONL.
    pub(crate) fn add_object(&mut self, object: &[(String, Json)]) {
        if let Self::None = self {
            *self = Self::Json { columns: Vec::new(), places: HashMap::new(), rows: 0, bytes: 0 };
        }
        let Self::Json { columns, places, rows, bytes } = self else { return };
        for (key, value) in object {
            let place = *places.entry(key.clone()).or_insert_with(|| {
                columns.push((key.clone(), StringBuilder::new()));
                columns.len() - 1
            });
            let builder = &mut columns[place].1;
            // Rows before had no such key; a key given twice counts once.
            builder.append_nulls((*rows).saturating_sub(builder.len()));
            if builder.len() == *rows {
                let text = value.to_string();
                *bytes += text.len();
                builder.append_value(text);
            }
        }
        *rows += 1;
    }

    /// Adds rows of columns that have types.
    pub(crate) fn add_arrays(&mut self, arrays: impl Iterator<Item = (FieldRef, ArrayRef)>) {
        if let Self::None = self {
            *self = Self::Typed(Vec::new());
        }
        let Self::Typed(columns) = self else { return };
        for (i, (field, array)) in arrays.enumerate() {
            if i == columns.len() {
                columns.push((field, Vec::new()));
            }
            columns[i].1.push(array);
        }
    }

    /// The columns and their names.
    pub(crate) fn finish(self) -> Parsed<Vec<(String, InputColumn)>> {
        Ok(match self {
            Self::None => Vec::new(),
            Self::Complete(columns) => columns,
            Self::Csv { columns, .. } => {
                let column = |(name, mut text, number): (String, BinaryBuilder, bool)| {
                    (name, InputColumn(Values::Csv { text: text.finish(), number }))
                };
                columns.into_iter().map(column).collect()
            }
            Self::Json { columns, rows, .. } => {
                let column = |(name, mut builder): (String, StringBuilder)| {
                    builder.append_nulls(rows - builder.len());
                    (name, InputColumn(Values::Json(builder.finish())))
                };
                columns.into_iter().map(column).collect()
            }
            Self::Typed(columns) => {
                let column = |(field, arrays): (FieldRef, Vec<ArrayRef>)| {
                    let array = match arrays.as_slice() {
                        [array] => Arc::clone(array),
                        arrays => concat(&arrays.iter().map(AsRef::as_ref).collect::<Vec<_>>())
                            .map_err(|error| format!("column {}: {error}", field.name()))?,
                    };
                    Ok((field.name().clone(), InputColumn::typed(field, array)))
                };
                columns.into_iter().map(column).collect::<Parsed<_>>()?
            }
        })
    }

    /// Keeps some of the rows.
    pub(crate) fn keep(&mut self, kept: &[bool]) -> Parsed<()> {
        let kept = BooleanArray::from(kept.to_vec());
        let columns = std::mem::take(self).finish()?;
        if !columns.is_empty() {
            *self = Self::Complete(columns.into_iter().map(|(name, column)| (name, column.keep(&kept))).collect());
        }
        Ok(())
    }
}

/// The columns of a CSV file without rows.
pub(crate) fn empty_csv(names: &[(String, bool)]) -> Vec<(String, InputColumn)> {
    let mut rows = InputRows::None;
    rows.add_record(names, [].into_iter());
    rows.finish().unwrap_or_default()
}
