//! From Arrow record batches to rows; Parquet and Arrow IPC share it.
//!
//! A wide table is columns; a [`Table`](pointsman::Table) is rows. The transposition goes block by block, so
//! that a block of rows stays in the cache while each column is written into it, and looks at a column's
//! type once a block, not once a value.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Float64Array, MapArray, RecordBatch, UInt32Array, make_array, new_empty_array};
use arrow_schema::{DataType, Schema, SchemaRef};
use arrow_select::take::take;

use crate::arrow_value::{Target, cell, is_null, write_column};
use crate::batch::Raw;
use crate::cell::Gate;
use crate::error::{Error, Result, RowAt, shown};
use crate::input::Bytes;
use crate::input_column::InputColumn;
use crate::labels::{Labels, not_a_class};
use crate::layout::{At, Field, Layout, Part, Shape, Spot};
use crate::number::NO_ANSWER;
use crate::read::{Progress, Source};

/// Rows transposed at a time: with ten classes, 40 kB of output.
const BLOCK: usize = 512;

pub(crate) type RecordBatches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

pub(crate) struct ArrowSource {
    name: String,
    layout: Layout,
    labels: Labels,
    /// Where each field of the layout stands in the record batches.
    position: Vec<usize>,
    /// The columns, if all of them are kept.
    keep: Option<SchemaRef>,
    /// The columns of numbers that nothing uses.
    spare: Vec<String>,
    batches: RecordBatches,
    current: Option<RecordBatch>,
    /// Rows read so far.
    row: u64,
    total_rows: Option<u64>,
    total_bytes: Option<u64>,
    bytes: Option<Bytes>,
}

impl ArrowSource {
    /// A source of batches that hold the `read` fields of the layout, in that order; the schema is that of all fields.
    pub(crate) fn new(name: String, layout: Layout, schema: &Schema, read: &[usize], batches: RecordBatches) -> Self {
        let mut position = vec![usize::MAX; layout.names.len()];
        for (i, &field) in read.iter().enumerate() {
            position[field] = i;
        }
        let labels = Labels::new(&layout.classes);
        let is_number = |field: &&usize| schema.field(**field).data_type().is_numeric();
        let spare = layout.spare.iter().filter(is_number).map(|&field| layout.names[field].clone()).collect();
        Self {
            name,
            layout,
            labels,
            position,
            keep: None,
            spare,
            batches,
            current: None,
            row: 0,
            total_rows: None,
            total_bytes: None,
            bytes: None,
        }
    }

    /// The same, with every column kept as it is, where that is wanted.
    pub(crate) fn keeping(mut self, schema: Option<SchemaRef>) -> Self {
        self.keep = schema;
        self
    }

    pub(crate) fn with_totals(mut self, rows: u64, bytes: u64) -> Self {
        (self.total_rows, self.total_bytes) = (Some(rows), Some(bytes));
        self
    }

    pub(crate) fn with_bytes(mut self, bytes: Bytes) -> Self {
        self.total_bytes = bytes.total;
        self.bytes = Some(bytes);
        self
    }
}

impl Source for ArrowSource {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn fill(&mut self, limit: usize, gate: &mut Gate, out: &mut Raw) -> Result<usize> {
        let batch = loop {
            match self.current.take().map_or_else(|| self.batches.next().transpose(), |batch| Ok(Some(batch)))? {
                Some(batch) if batch.num_rows() == 0 => {}
                Some(batch) => break batch,
                None => return Ok(0),
            }
        };
        let rows = batch.num_rows().min(limit);
        let columns = batch.slice(0, rows);
        if rows < batch.num_rows() {
            self.current = Some(batch.slice(rows, batch.num_rows() - rows));
        }
        let mut slice = Slice {
            file: &self.name,
            layout: &self.layout,
            position: &self.position,
            columns,
            first: self.row,
            kept: None,
        };
        if !gate.is_open() {
            slice.filter(gate, out)?;
        }
        slice.append(&self.labels, out)?;
        if let Some(schema) = &self.keep {
            let rows = slice.kept.as_ref().map(|kept| kept.iter().map(|&row| row as u32).collect::<UInt32Array>());
            let mut arrays = Vec::with_capacity(schema.fields().len());
            for (field, array) in schema.fields().iter().zip(slice.columns.columns()) {
                let array = match &rows {
                    None => Arc::clone(array),
                    Some(rows) => take(array, rows, None)
                        .map_err(|e| Error::file(&self.name, format!("column {}: {e}", field.name())))?,
                };
                arrays.push((Arc::clone(field), array));
            }
            out.inputs.add_arrays(arrays.into_iter());
        }
        self.row += rows as u64;
        Ok(rows)
    }

    fn columns(&self) -> Vec<(String, InputColumn)> {
        let column = |field: &arrow_schema::FieldRef| {
            (field.name().clone(), InputColumn::typed(Arc::clone(field), new_empty_array(field.data_type())))
        };
        self.keep.as_ref().map(|schema| schema.fields().iter().map(column).collect()).unwrap_or_default()
    }

    fn unused_numeric(&self) -> Vec<String> {
        self.spare.clone()
    }

    fn progress(&self) -> Progress {
        Progress {
            rows: self.row,
            total_rows: self.total_rows,
            bytes: self.bytes.as_ref().map_or(0, Bytes::read),
            total_bytes: self.total_bytes,
        }
    }
}

/// The shape of each column, by its type and, where the type does not say, its first row.
pub(crate) fn fields(batch: &RecordBatch) -> Vec<Field> {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns());
    columns.map(|(field, array)| Field { name: field.name().clone(), shape: shape(array) }).collect()
}

/// Whether a column's shape stands in its first row, not in its type.
pub(crate) fn shape_needs_a_row(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(_) | DataType::LargeList(_) | DataType::Map(..) => true,
        DataType::Struct(fields) => fields.iter().any(|field| shape_needs_a_row(field.data_type())),
        _ => false,
    }
}

fn shape(array: &ArrayRef) -> Shape {
    match array.data_type() {
        DataType::FixedSizeList(_, width) => Shape::List(usize::try_from(*width).unwrap_or(0)),
        DataType::List(_) | DataType::LargeList(_) => {
            Shape::List(if array.is_empty() { 0 } else { list_values(array, 0).map_or(0, |values| values.len()) })
        }
        DataType::Struct(fields) => {
            let children = fields.iter().zip(array.as_struct().columns());
            Shape::Keyed(children.map(|(field, child)| (field.name().clone(), shape(child))).collect())
        }
        DataType::Map(..) => {
            let map = array.as_map();
            let keys = if map.is_empty() { Vec::new() } else { map_keys(map, 0) };
            let child = |i: usize| shape(&map.value(0).column(1).slice(i, 1));
            Shape::Keyed(keys.into_iter().enumerate().map(|(i, key)| (key, child(i))).collect())
        }
        _ => Shape::Scalar,
    }
}

fn map_keys(map: &MapArray, row: usize) -> Vec<String> {
    let entries = map.value(row);
    let keys = entries.column(0);
    let text = |i| cell(keys, i).ok().and_then(|cell| cell.text().map(|text| text.into_owned()));
    (0..keys.len()).map(|i| text(i).unwrap_or_default()).collect()
}

/// One row's list; nothing if the array holds none.
pub(crate) fn list_values(array: &ArrayRef, row: usize) -> Option<ArrayRef> {
    let (start, length) = span(array, row)?;
    Some(flattened(array)?.slice(start, length))
}

/// The values of all lists.
fn flattened(array: &ArrayRef) -> Option<&ArrayRef> {
    match array.data_type() {
        DataType::FixedSizeList(..) => Some(array.as_fixed_size_list().values()),
        DataType::List(_) => Some(array.as_list::<i32>().values()),
        DataType::LargeList(_) => Some(array.as_list::<i64>().values()),
        _ => None,
    }
}

/// Where one row's list begins among the values of all lists, and how long it is.
fn span(array: &ArrayRef, row: usize) -> Option<(usize, usize)> {
    match array.data_type() {
        DataType::FixedSizeList(_, width) => {
            let width = usize::try_from(*width).ok()?;
            Some((usize::try_from(array.as_fixed_size_list().value_offset(row)).ok()?, width))
        }
        DataType::List(_) => {
            let offsets = array.as_list::<i32>().value_offsets();
            let (start, end) =
                (usize::try_from(*offsets.get(row)?).ok()?, usize::try_from(*offsets.get(row + 1)?).ok()?);
            Some((start, end.checked_sub(start)?))
        }
        DataType::LargeList(_) => {
            let offsets = array.as_list::<i64>().value_offsets();
            let (start, end) =
                (usize::try_from(*offsets.get(row)?).ok()?, usize::try_from(*offsets.get(row + 1)?).ok()?);
            Some((start, end.checked_sub(start)?))
        }
        _ => None,
    }
}

/// Some rows of the file, as columns.
struct Slice<'a> {
    file: &'a str,
    layout: &'a Layout,
    position: &'a [usize],
    columns: RecordBatch,
    /// Rows before these.
    first: u64,
    /// The rows that passed the filters; all if there are none.
    kept: Option<Vec<usize>>,
}

impl Slice<'_> {
    fn at(&self, row: usize) -> RowAt<'_> {
        RowAt { file: self.file, row: self.first + row as u64 + 1, line: None }
    }

    fn field(&self, field: usize) -> &ArrayRef {
        self.columns.column(self.position[field])
    }

    fn len(&self) -> usize {
        self.kept.as_ref().map_or(self.columns.num_rows(), Vec::len)
    }

    /// The kept rows, in order.
    fn rows(&self) -> impl Iterator<Item = usize> {
        let all = if self.kept.is_none() { self.columns.num_rows() } else { 0 };
        (0..all).chain(self.kept.iter().flatten().copied())
    }

    fn filter(&mut self, gate: &mut Gate, out: &mut Raw) -> Result<()> {
        let mut kept = Vec::new();
        for row in 0..self.columns.num_rows() {
            let look = |i: usize| {
                let field = self.layout.filters[i];
                cell(self.field(field), row).map_err(|why| self.at(row).value(&self.layout.names[field], why))
            };
            if gate.keeps(look)? {
                kept.push(row);
            } else if self.layout.dropped_ids
                && let Some(field) = self.layout.id
            {
                out.dropped_ids.push(self.id(field, row)?);
            }
        }
        self.kept = Some(kept);
        Ok(())
    }

    fn append(&self, labels: &Labels, out: &mut Raw) -> Result<()> {
        let layout = self.layout;
        out.rows.extend(self.rows().map(|row| self.first + row as u64 + 1));
        self.values(&layout.probs, &mut out.probs)?;
        if let Some(part) = &layout.votes {
            self.values(part, &mut out.votes)?;
        }
        if let Some(field) = layout.labels {
            self.labels(field, labels, &mut out.votes)?;
        }
        if let Some(part) = &layout.truth {
            self.values(part, &mut out.truth)?;
        }
        if let Some(part) = &layout.features {
            self.features(part, &mut out.features)?;
        }
        for ((_, part), values) in layout.oracles.iter().zip(&mut out.oracles) {
            self.are_answered(part)?;
            self.values(part, values)?;
        }
        if let Some(part) = &layout.weight {
            self.values(part, &mut out.weights)?;
        }
        if let Some(field) = layout.id {
            for row in self.rows() {
                out.ids.push(self.id(field, row)?);
            }
        }
        Ok(())
    }

    fn id(&self, field: usize, row: usize) -> Result<String> {
        let id = cell(self.field(field), row).and_then(|cell| cell.id().map(Cow::into_owned));
        id.map_err(|why| self.at(row).value(&self.layout.names[field], why))
    }

    fn values<T: Target>(&self, part: &Part, out: &mut Vec<T>) -> Result<()> {
        match &part.at {
            At::Wide(fields) => {
                let columns: Vec<&ArrayRef> = fields.iter().map(|&field| self.field(field)).collect();
                self.transpose(part, &columns, out)
            }
            At::List(spot) => self.lists(part, self.spot(part, spot)?, out),
            At::Keyed(spot) => {
                let array = self.spot(part, spot)?;
                match array.data_type() {
                    DataType::Map(..) => self.maps(part, array.as_map(), out),
                    _ => {
                        self.no_nulls(part, array)?;
                        let entries = array.as_struct_opt().ok_or_else(|| self.changed(part))?;
                        let columns: Option<Vec<&ArrayRef>> =
                            part.keys.iter().map(|key| entries.column_by_name(key)).collect();
                        self.transpose(part, &columns.ok_or_else(|| self.changed(part))?, out)
                    }
                }
            }
        }
    }

    /// Refuses a row without another model's answer, and says what to do.
    fn are_answered(&self, part: &Part) -> Result<()> {
        let columns: Vec<&ArrayRef> = match &part.at {
            At::Wide(fields) => fields.iter().map(|&field| self.field(field)).collect(),
            At::List(spot) | At::Keyed(spot) => {
                let array = self.field(spot.field);
                let parent = array.as_struct_opt().filter(|_| array.null_count() == 0);
                let child = spot.child.as_ref().and_then(|child| parent?.column_by_name(child));
                vec![child.unwrap_or(array)]
            }
        };
        let has_nulls = columns.iter().all(|column| column.logical_null_count() > 0);
        match self.rows().find(|&row| has_nulls && columns.iter().all(|column| is_null(column, row))) {
            Some(row) => {
                let at = self.at(row);
                Err(at.value(part.column(at.row, None), NO_ANSWER))
            }
            None => Ok(()),
        }
    }

    /// Features: a null in a column of its own means that the value is missing.
    fn features(&self, part: &Part, out: &mut Vec<f64>) -> Result<()> {
        let At::Wide(fields) = &part.at else { return self.values(part, out) };
        let columns: Vec<&ArrayRef> = fields.iter().map(|&field| self.field(field)).collect();
        let (start, width) = (out.len(), columns.len());
        let whole = columns.iter().map(|array| without_nulls(array)).collect::<Option<Vec<_>>>();
        let whole = whole.ok_or_else(|| self.changed(part))?;
        self.transpose(part, &whole.iter().collect::<Vec<_>>(), out)?;
        for (key, column) in columns.iter().enumerate().filter(|(_, column)| column.logical_null_count() > 0) {
            for (i, row) in self.rows().enumerate() {
                if is_null(column, row) {
                    out[start + i * width + key] = f64::NAN;
                }
            }
        }
        Ok(())
    }

    /// The array at a spot: a column, or a child of one.
    fn spot(&self, part: &Part, spot: &Spot) -> Result<&ArrayRef> {
        let array = self.field(spot.field);
        let Some(child) = &spot.child else { return Ok(array) };
        self.no_nulls(part, array)?;
        match array.as_struct_opt() {
            Some(parent) => parent.column_by_name(child).ok_or_else(|| self.changed(part)),
            None => Err(Error::file(
                self.file,
                format!("column {}: maps of maps cannot be read: use a struct", part.column(0, None)),
            )),
        }
    }

    /// A batch that does not look like the one the layout was found in.
    fn changed(&self, part: &Part) -> Error {
        Error::file(self.file, format!("column {}: its type changes within the file", part.column(0, None)))
    }

    fn no_nulls(&self, part: &Part, array: &ArrayRef) -> Result<()> {
        if array.null_count() > 0
            && let Some(row) = self.rows().find(|&row| array.is_null(row))
        {
            let at = self.at(row);
            return Err(at.value(part.column(at.row, None), "null: every row needs a value"));
        }
        Ok(())
    }

    /// One column a key, written side by side.
    fn transpose<T: Target>(&self, part: &Part, columns: &[&ArrayRef], out: &mut Vec<T>) -> Result<()> {
        let (width, total) = (columns.len(), self.len());
        for first in (0..total).step_by(BLOCK) {
            let rows = BLOCK.min(total - first);
            let picked = self.kept.as_ref().map(|kept| &kept[first..first + rows]);
            // Grown block by block: the zeros are still in the cache when the values come.
            let start = out.len();
            out.resize(start + rows * width, T::default());
            for (key, array) in columns.iter().enumerate() {
                write_column(array, first, picked, &mut out[start..], width, key).map_err(|(row, why)| {
                    let at = self.at(row);
                    at.value(part.column(at.row, Some(key)), why)
                })?;
            }
        }
        Ok(())
    }

    /// One list a row. The lists' values stand one after the other in one array, and are written as such.
    fn lists<T: Target>(&self, part: &Part, array: &ArrayRef, out: &mut Vec<T>) -> Result<()> {
        self.no_nulls(part, array)?;
        let width = part.width();
        for row in self.rows() {
            let (_, length) = span(array, row).ok_or_else(|| self.changed(part))?;
            if length != width {
                let at = self.at(row);
                return Err(at.value(part.column(at.row, None), format!("{length} values, but {width} are needed")));
            }
        }
        let (Some(values), Some((first, _))) = (flattened(array), span(array, 0)) else {
            return Err(self.changed(part));
        };
        let begin = |row: usize| span(array, row).map_or(first, |(start, _)| start);
        let picked: Option<Vec<usize>> =
            self.kept.as_ref().map(|kept| kept.iter().flat_map(|&row| begin(row)..begin(row) + width).collect());
        let start = out.len();
        out.resize(start + self.len() * width, T::default());
        write_column(values, first, picked.as_deref(), &mut out[start..], 1, 0).map_err(|(i, why)| {
            let row = self.rows().find(|&row| (begin(row)..begin(row) + width).contains(&i)).unwrap_or_default();
            let at = self.at(row);
            at.value(part.column(at.row, Some(i.saturating_sub(begin(row)))), why)
        })
    }

    /// One map a row, its entries in any order.
    fn maps<T: Target>(&self, part: &Part, map: &MapArray, out: &mut Vec<T>) -> Result<()> {
        let mut places = Vec::with_capacity(part.width());
        for row in self.rows() {
            let at = self.at(row);
            if map.is_null(row) {
                return Err(at.value(part.column(at.row, None), "null: every row needs a value"));
            }
            let keys = map_keys(map, row);
            let entries = map.value(row);
            places.clear();
            for (key, name) in part.keys.iter().enumerate() {
                let Some(entry) = keys.iter().position(|k| k == name) else {
                    return Err(at.value(part.column(at.row, Some(key)), "is missing: every row needs the same keys"));
                };
                places.push(entry);
            }
            if keys.len() != part.width() && !part.partial {
                return Err(at.value(
                    part.column(at.row, None),
                    format!(
                        "{} entries, but the first row has {}: every row needs the same keys",
                        keys.len(),
                        part.width()
                    ),
                ));
            }
            let start = out.len();
            out.resize(start + part.width(), T::default());
            write_column(entries.column(1), 0, Some(&places), &mut out[start..], 1, 0).map_err(|(entry, why)| {
                let key = keys.get(entry).map_or("", String::as_str);
                at.value(format!("{}.{key}", part.column(at.row, None)), why)
            })?;
        }
        Ok(())
    }

    fn labels(&self, field: usize, labels: &Labels, out: &mut Vec<u32>) -> Result<()> {
        let (array, name) = (self.field(field), &self.layout.names[field]);
        for row in self.rows() {
            let at = self.at(row);
            let values = if is_null(array, row) { None } else { list_values(array, row) };
            let values = values.ok_or_else(|| at.value(name, "null: a list of labels is needed"))?;
            let start = out.len();
            out.resize(start + self.layout.classes.len(), 0);
            for i in 0..values.len() {
                let label = cell(&values, i).map_err(|why| at.value(name, why))?;
                let text = label.text();
                let Some(class) = text.as_deref().and_then(|text| labels.class(text)) else {
                    let shown = text.as_deref().map_or("null".to_owned(), shown);
                    let label = text.as_deref().unwrap_or_default();
                    return Err(at.value(name, not_a_class(&shown, label, &self.layout.classes)));
                };
                out[start + class] += u32::from(i < self.layout.first_labels);
            }
        }
        Ok(())
    }
}

/// The array with something in the place of every null; `None` if that cannot be.
fn without_nulls(array: &ArrayRef) -> Option<ArrayRef> {
    match array.data_type() {
        DataType::Null => Some(Arc::new(Float64Array::from(vec![0.0; array.len()]))),
        _ if array.null_count() == 0 => Some(array.clone()),
        _ => Some(make_array(array.to_data().into_builder().nulls(None).build().ok()?)),
    }
}
