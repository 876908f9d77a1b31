//! npz: a zip of numpy arrays, one per column or one per kind of column.
//!
//! Each array is read front to back through a file handle of its own, so that all of them advance together and memory stays bounded. Their
//! rows become record batches, which are read as those of Parquet and Arrow are.

mod archive;
mod npy;
mod write;

use std::sync::Arc;

use arrow_array::{ArrayRef, FixedSizeListArray, RecordBatch, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field as ArrowField, FieldRef, Schema};
use arrow_select::take::take;

use self::archive::{Archive, Array, Entry, damaged};
use self::npy::Header;
pub(crate) use self::write::NpzWriter;
use crate::error::{Error, Result};
use crate::input::{Bytes, Input};
use crate::layout::{Field, Hints, Layout, Shape};
use crate::options::{Columns, ReadOptions, Role};
use crate::record_batches::ArrowSource;

/// The name of the array of the features' names.
const FEATURE_NAMES: &str = "feature_names";

/// The most bytes of a batch as stored: text of a fixed width takes it in every row, and compresses to nearly nothing in the file.
const MAX_BATCH_BYTES: usize = 1 << 26;

/// The names of the arrays.
pub(crate) fn array_names(input: Input) -> Result<Vec<String>> {
    Ok(Archive::open(input)?.entries.into_iter().map(|entry| entry.name).collect())
}

pub(crate) fn open(input: Input, options: &ReadOptions) -> Result<ArrowSource> {
    let archive = Archive::open(input)?;
    let columns = &options.columns;
    let (classes, features) = (archive.names(&columns.classes)?, archive.names(FEATURE_NAMES)?);
    let hints = Hints { classes, features, arrays: true, ..Hints::default() };
    // An array that cannot be read is refused only if it is needed.
    let headers: Vec<Option<Header>> = archive.entries.iter().map(|entry| archive.header(entry).ok()).collect();
    if let Some(entry) = archive.entries.iter().find(|entry| entry.name == *columns.field(Role::Probs)) {
        archive.header(entry)?;
    }
    let fields: Vec<Field> =
        archive.entries.iter().zip(&headers).map(|(entry, header)| field(entry, header.as_ref(), columns)).collect();
    let layout = Layout::find(&archive.name, &fields, hints.clone(), options)?;
    let used = layout.used();
    let mut batches = Batches { file: archive.name.clone(), ..Batches::default() };
    for &field in &used {
        let array = archive.array(&archive.entries[field])?;
        if let Some(other) = batches.arrays.last().filter(|other| other.rows != array.rows) {
            let reason = format!("array {} has {} rows, but {} has {}", array.name, array.rows, other.name, other.rows);
            return Err(Error::file(&archive.name, reason));
        }
        let is_list = matches!(fields[field].shape, Shape::List(_));
        batches.arrays.push(array);
        batches.add_column(batches.arrays.len() - 1, if is_list { Form::Lists } else { Form::Elements }, None);
    }
    batches.rows_left = batches.arrays.first().map_or(0, |array| array.rows);
    let (kept, left_out) = if options.keep_columns {
        batches.keep_columns(&archive, &headers, &used, &hints, columns)
    } else {
        (Vec::new(), Vec::new())
    };
    let row_bytes = batches.arrays.iter().map(Array::row_bytes).fold(1, usize::saturating_add);
    let max_batch_rows = (MAX_BATCH_BYTES / row_bytes).max(1);
    batches.batch_rows = options.batch_rows.min(max_batch_rows).max(1);
    let rows = batches.rows_left;
    // Only arrays of one number per row can be features under another name.
    let data_type = |header: &Option<Header>| match header {
        Some(header) if header.shape == [rows] => header.data_type.clone(),
        _ => DataType::Null,
    };
    let schema = archive.entries.iter().zip(&headers);
    let schema = schema.map(|(entry, header)| ArrowField::new(&entry.name, data_type(header), false));
    let schema = Schema::new(schema.collect::<Vec<_>>());
    let size = (Some(rows), Bytes::unread(archive.bytes));
    let source = ArrowSource::new(archive.name, layout, &schema, &used, Box::new(batches), size);
    let mut source = source.keeping(kept, left_out);
    source.max_batch_rows = max_batch_rows;
    Ok(source)
}

/// An array as a field: one of two dimensions has one list per row. Features of one dimension are lists of one.
fn field(entry: &Entry, header: Option<&Header>, columns: &Columns) -> Field {
    let is_one_feature = |header: &Header| {
        entry.name == *columns.field(Role::Features) && columns.feature_names.is_empty() && header.is_number()
    };
    let shape = match header.map(|header| (header, header.shape.as_slice())) {
        Some((header, [_])) if is_one_feature(header) => Shape::List(1),
        Some((_, [_, width])) => Shape::List(usize::try_from(*width).unwrap_or(usize::MAX)),
        _ => Shape::Scalar,
    };
    Field { name: entry.name.clone(), shape, first: None }
}

/// The names of the columns that the lists of an array become, if its classes or features have names.
fn wide_columns(array: &Array, hints: &Hints, columns: &Columns) -> Option<Vec<String>> {
    let (prefix, is_features) = columns.wide_prefix(&array.name)?;
    let names = if is_features { &hints.features } else { &hints.classes };
    let names = names.as_ref().filter(|names| array.header.shape.len() == 2 && names.len() == array.width)?;
    Some(names.iter().map(|name| format!("{prefix}{name}")).collect())
}

/// Rows of arrays as record batches.
#[derive(Default)]
struct Batches {
    file: String,
    arrays: Vec<Array>,
    /// The array that each column is made of, and how.
    columns: Vec<(usize, Form)>,
    fields: Vec<FieldRef>,
    rows_left: u64,
    batch_rows: usize,
}

/// How an array becomes a column.
#[derive(Clone, Copy)]
enum Form {
    /// One element per row.
    Elements,
    /// One list per row.
    Lists,
    /// One element of each row's list.
    ElementAt(usize),
}

impl Batches {
    /// Adds a column made of an array, by default under its name.
    fn add_column(&mut self, array: usize, form: Form, name: Option<&str>) -> (usize, FieldRef) {
        let Array { name: own_name, header, width, .. } = &self.arrays[array];
        let element = header.data_type.clone();
        let data_type = match form {
            Form::Lists => DataType::FixedSizeList(Arc::new(ArrowField::new("item", element, false)), *width as i32),
            Form::Elements | Form::ElementAt(_) => element,
        };
        let field = Arc::new(ArrowField::new(name.unwrap_or(own_name), data_type, false));
        self.columns.push((array, form));
        self.fields.push(Arc::clone(&field));
        (self.columns.len() - 1, field)
    }

    /// Adds all arrays as columns to be kept: with their places, and the names of those that do not have one value or list per row.
    fn keep_columns(
        &mut self,
        archive: &Archive,
        headers: &[Option<Header>],
        used: &[usize],
        hints: &Hints,
        columns: &Columns,
    ) -> (Vec<(usize, FieldRef)>, Vec<String>) {
        let rows = self.rows_left;
        let (mut kept, mut left_out) = (Vec::new(), Vec::new());
        for (field, (entry, header)) in archive.entries.iter().zip(headers).enumerate() {
            let array = match used.binary_search(&field) {
                Ok(array) => array,
                // The names of classes and features are part of the names of the columns that lists become.
                Err(_) if entry.name == columns.classes || entry.name == FEATURE_NAMES => continue,
                Err(_) => {
                    let fits = |header: &&Header| matches!(header.shape.as_slice(), [n] | [n, _] if *n == rows);
                    let Some(array) = header.as_ref().filter(fits).and_then(|_| archive.array(entry).ok()) else {
                        left_out.push(entry.name.clone());
                        continue;
                    };
                    self.arrays.push(array);
                    self.arrays.len() - 1
                }
            };
            // An array that has the name of one of these columns is kept instead.
            let is_free = |wide: &Vec<String>| archive.entries.iter().all(|other| !wide.contains(&other.name));
            match wide_columns(&self.arrays[array], hints, columns).filter(is_free) {
                Some(wide) => kept.extend(
                    wide.iter().enumerate().map(|(i, name)| self.add_column(array, Form::ElementAt(i), Some(name))),
                ),
                None if self.arrays[array].header.shape.len() == 1 => {
                    kept.push(self.add_column(array, Form::Elements, None));
                }
                None => kept.push(self.add_column(array, Form::Lists, None)),
            }
        }
        (kept, left_out)
    }

    fn read(&mut self, rows: usize) -> Result<RecordBatch> {
        let mut elements = Vec::with_capacity(self.arrays.len());
        for array in &mut self.arrays {
            elements.push(array.read(rows).map_err(|e| damaged(&self.file, &array.name, &e.to_string()))?);
        }
        let mut columns = Vec::with_capacity(self.columns.len());
        for (&(array, form), field) in self.columns.iter().zip(&self.fields) {
            let values = column(&elements[array], form, field, self.arrays[array].width, rows);
            columns.push(values.map_err(|e| damaged(&self.file, field.name(), &e.to_string()))?);
        }
        let schema = Arc::new(Schema::new(self.fields.clone()));
        RecordBatch::try_new(schema, columns).map_err(|e| Error::file(&self.file, e.to_string()))
    }
}

fn column(
    elements: &ArrayRef,
    form: Form,
    field: &FieldRef,
    width: usize,
    rows: usize,
) -> std::result::Result<ArrayRef, ArrowError> {
    match (form, field.data_type()) {
        (Form::Lists, DataType::FixedSizeList(item, size)) => {
            let (item, elements) = (Arc::clone(item), Arc::clone(elements));
            Ok(Arc::new(FixedSizeListArray::try_new_with_length(item, *size, elements, None, rows)?))
        }
        (Form::ElementAt(place), _) => {
            let places: UInt32Array = (0..rows).map(|row| (row * width + place) as u32).collect();
            take(elements, &places, None)
        }
        _ => Ok(Arc::clone(elements)),
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = self.rows_left.min(self.batch_rows as u64) as usize;
        self.rows_left -= rows as u64;
        (rows > 0).then(|| self.read(rows))
    }
}
