//! The rows of a record batch as numbers, votes and ids.
//!
//! Arrow stores columns, a [`Table`](pointsman::Table) rows. Columns are transposed block by block: a block of rows stays in the cache
//! while each column is written into it, and the type of a column is looked up once per block, not once per value.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Float64Array, MapArray, RecordBatch, StructArray, make_array};
use arrow_schema::DataType;

use crate::arrow::{ColumnSlice, FromNumber, cell, flattened, is_null, list_values, map_keys, span};
use crate::cell::Cell;
use crate::error::{Error, Result, RowAt, shown};
use crate::labels::Labels;
use crate::layout::{ColumnGroup, FieldPath, FilterField, LabelFields, Layout, Location, late_answer};
use crate::number::NULL_NUMBER;
use crate::raw::{RawRows, RowValues};
use crate::row_filter::RowFilter;

/// Rows transposed at a time: with ten classes, 40 kB of output.
const ROWS_PER_BLOCK: usize = 512;

const NULL_ROW: &str = "null: every row needs a value";

/// Some rows of a file.
pub(super) struct BatchRows<'a> {
    pub(super) file: &'a str,
    pub(super) layout: &'a Layout,
    pub(super) labels: &'a Labels,
    /// For each field of the layout, the column that holds it.
    pub(super) column_of_field: &'a [usize],
    pub(super) columns: RecordBatch,
    /// Rows of the file before these.
    pub(super) first: u64,
    /// The rows that pass the filters; `None` without filters.
    pub(super) kept: Option<Vec<usize>>,
}

impl BatchRows<'_> {
    fn at(&self, row: usize) -> RowAt<'_> {
        RowAt { file: self.file, row: self.first + row as u64 + 1, line: None }
    }

    /// The error of one value of a group, or of all its values in a row.
    fn error(&self, group: &ColumnGroup, row: usize, key: Option<usize>, reason: impl Into<String>) -> Error {
        let at = self.at(row);
        let reason = match reason.into() {
            null if null == NULL_NUMBER => group.missing_number(at.row, key, "", null),
            other => other,
        };
        at.value(group.column(at.row, key), reason)
    }

    fn field(&self, field: usize) -> &ArrayRef {
        self.columns.column(self.column_of_field[field])
    }

    fn len(&self) -> usize {
        self.kept.as_ref().map_or(self.columns.num_rows(), Vec::len)
    }

    /// The kept rows, in order.
    fn rows(&self) -> impl Iterator<Item = usize> {
        let all = if self.kept.is_none() { self.columns.num_rows() } else { 0 };
        (0..all).chain(self.kept.iter().flatten().copied())
    }

    /// Keeps the rows that pass the filters.
    pub(super) fn filter(&mut self, filter: &mut RowFilter, dropped_ids: &mut Vec<String>) -> Result<()> {
        let mut kept = Vec::new();
        for row in 0..self.columns.num_rows() {
            if filter.keeps(self.at(row), |i| self.filtered_cell(&self.layout.filters[i], row))? {
                kept.push(row);
            } else if let Some(field) = self.layout.dropped_id {
                dropped_ids.push(self.id(field, row)?);
            }
        }
        self.kept = Some(kept);
        Ok(())
    }

    pub(super) fn append_to(&self, out: &mut RawRows) -> Result<()> {
        out.rows.extend(self.rows().map(|row| self.first + row as u64 + 1));
        out.append(self.layout, self)
    }

    fn cell(&self, field: usize, row: usize) -> Result<Cell<'_>> {
        cell(self.field(field), row).map_err(|why| self.at(row).value(&self.layout.names[field], why))
    }

    /// The value that a filter looks at; of lists and maps, whether there is one.
    fn filtered_cell(&self, filter: &FilterField, row: usize) -> Result<Cell<'_>> {
        let FieldPath { field, child } = &filter.path;
        let array = self.field(*field);
        let array = match (child, array.as_struct_opt()) {
            (None, _) => array,
            (Some(_), _) if is_null(array, row) => return Ok(Cell::Null),
            (Some(child), Some(parent)) => match parent.column_by_name(child) {
                Some(array) => array,
                None => return Ok(Cell::Null),
            },
            (Some(_), None) => {
                let name = &self.layout.names[*field];
                return Err(Error::file(self.file, format!("column {name}: filters need a struct, not a map")));
            }
        };
        if !filter.asks_for_any_value || !array.data_type().is_nested() {
            return cell(array, row).map_err(|why| self.at(row).value(&self.layout.names[*field], why));
        }
        let is_empty = match array.as_struct_opt() {
            Some(entries) => entries.columns().iter().all(|entry| is_null(entry, row)),
            None => span(array, row).is_some_and(|(_, length)| length == 0),
        };
        Ok(if is_null(array, row) || is_empty { Cell::Null } else { Cell::Text("a list or map".into()) })
    }

    fn id(&self, field: usize, row: usize) -> Result<String> {
        self.cell(field, row)?.id_at(self.at(row), &self.layout.names[field])
    }

    fn numbers<T: FromNumber>(&self, group: &ColumnGroup, out: &mut Vec<T>) -> Result<()> {
        match &group.location {
            Location::Wide(fields) => self.transpose(group, &self.fields(fields), out),
            Location::List(path) => self.lists(group, self.array_at(group, path)?, out),
            Location::Keyed(path) => {
                let array = self.array_at(group, path)?;
                if let DataType::Map(..) = array.data_type() {
                    return self.maps(group, array.as_map(), out);
                }
                self.check_nulls(group, array)?;
                let entries = array.as_struct_opt().ok_or_else(|| self.type_changes(group))?;
                let columns: Option<Vec<&ArrayRef>> =
                    group.keys.iter().map(|key| entries.column_by_name(key)).collect();
                self.transpose(group, &columns.ok_or_else(|| self.type_changes(group))?, out)
            }
            // Names of classes are no numbers: they are read as answers.
            Location::ClassName(_) => Ok(()),
        }
    }

    fn fields(&self, fields: &[usize]) -> Vec<&ArrayRef> {
        fields.iter().map(|&field| self.field(field)).collect()
    }

    /// The array at a path: a column, or a child of one.
    fn array_at(&self, group: &ColumnGroup, path: &FieldPath) -> Result<&ArrayRef> {
        let array = self.field(path.field);
        let Some(child) = &path.child else { return Ok(array) };
        self.check_nulls(group, array)?;
        match array.as_struct_opt() {
            Some(parent) => parent.column_by_name(child).ok_or_else(|| self.type_changes(group)),
            None => Err(Error::file(
                self.file,
                format!("column {}: maps of maps cannot be read: use a struct", group.column(0, None)),
            )),
        }
    }

    /// The error of a batch that does not look like the one the layout was found in.
    fn type_changes(&self, group: &ColumnGroup) -> Error {
        Error::file(self.file, format!("column {}: its type changes within the file", group.column(0, None)))
    }

    fn check_nulls(&self, group: &ColumnGroup, array: &ArrayRef) -> Result<()> {
        if array.null_count() > 0
            && let Some(row) = self.rows().find(|&row| array.is_null(row))
        {
            return Err(self.error(group, row, None, NULL_ROW));
        }
        Ok(())
    }

    /// Refuses a row without another model's answer.
    fn check_answers(&self, group: &ColumnGroup) -> Result<()> {
        let columns: Vec<&ArrayRef> = match &group.location {
            Location::Wide(fields) => self.fields(fields),
            Location::List(path) | Location::Keyed(path) | Location::ClassName(path) => {
                let array = self.field(path.field);
                let parent = array.as_struct_opt().filter(|_| array.null_count() == 0);
                let child = path.child.as_ref().and_then(|child| parent?.column_by_name(child));
                vec![child.unwrap_or(array)]
            }
        };
        if columns.iter().any(|column| column.logical_null_count() == 0) {
            return Ok(());
        }
        match self.rows().find(|&row| columns.iter().all(|column| is_null(column, row))) {
            Some(row) => Err(self.error(group, row, None, group.no_answer())),
            None => Ok(()),
        }
    }

    /// Writes one column per key side by side.
    fn transpose<T: FromNumber>(&self, group: &ColumnGroup, columns: &[&ArrayRef], out: &mut Vec<T>) -> Result<()> {
        let (width, total) = (columns.len(), self.len());
        for first in (0..total).step_by(ROWS_PER_BLOCK) {
            let rows = ROWS_PER_BLOCK.min(total - first);
            let picked = self.kept.as_ref().map(|kept| &kept[first..first + rows]);
            // Extended block by block, so that the zeros are still in the cache when the values come.
            let start = out.len();
            out.resize(start + rows * width, T::default());
            for (key, array) in columns.iter().enumerate() {
                let column = ColumnSlice { array, first, picked };
                let written = column.write_numbers(&mut out[start..], width, key);
                written.map_err(|(row, why)| self.error(group, row, Some(key), why))?;
            }
        }
        Ok(())
    }

    /// Writes one list per row. The values of all lists are one array, and are written as such.
    fn lists<T: FromNumber>(&self, group: &ColumnGroup, array: &ArrayRef, out: &mut Vec<T>) -> Result<()> {
        self.check_nulls(group, array)?;
        let width = group.width();
        for row in self.rows() {
            let (_, length) = span(array, row).ok_or_else(|| self.type_changes(group))?;
            if length != width {
                return Err(self.error(group, row, None, format!("{length} values, but {width} are needed")));
            }
        }
        let (Some(values), Some((first, _))) = (flattened(array), span(array, 0)) else {
            return Err(self.type_changes(group));
        };
        let begin = |row: usize| span(array, row).map_or(first, |(start, _)| start);
        let picked: Option<Vec<usize>> =
            self.kept.as_ref().map(|kept| kept.iter().flat_map(|&row| begin(row)..begin(row) + width).collect());
        let start = out.len();
        out.resize(start + self.len() * width, T::default());
        let values = ColumnSlice { array: values, first, picked: picked.as_deref() };
        values.write_numbers(&mut out[start..], 1, 0).map_err(|(i, why)| {
            let row = self.rows().find(|&row| (begin(row)..begin(row) + width).contains(&i)).unwrap_or_default();
            self.error(group, row, Some(i.saturating_sub(begin(row))), why)
        })
    }

    /// Writes the votes of a struct. A class that is null, or that the struct does not have, got none.
    fn votes_by_class(&self, group: &ColumnGroup, votes: &StructArray, out: &mut Vec<u32>) -> Result<()> {
        if let Some(row) = self.rows().find(|&row| votes.is_null(row)) {
            return Err(self.error(group, row, None, NULL_ROW));
        }
        let (start, width) = (out.len(), group.width());
        out.resize(start + self.len() * width, 0);
        for (key, class) in group.keys.iter().enumerate() {
            let Some(array) = votes.column_by_name(class) else { continue };
            let (places, rows): (Vec<usize>, Vec<usize>) =
                self.rows().enumerate().filter(|(_, row)| !is_null(array, *row)).unzip();
            if rows.is_empty() {
                continue;
            }
            let mut counts = vec![0; rows.len()];
            let column = ColumnSlice { array, first: 0, picked: Some(&rows) };
            let written = column.write_numbers(&mut counts, 1, 0);
            written.map_err(|(row, why)| self.error(group, row, Some(key), why))?;
            places.into_iter().zip(counts).for_each(|(place, count)| out[start + place * width + key] = count);
        }
        Ok(())
    }

    /// Writes one map per row, its entries in any order.
    fn maps<T: FromNumber>(&self, group: &ColumnGroup, map: &MapArray, out: &mut Vec<T>) -> Result<()> {
        let mut places = Vec::with_capacity(group.width());
        for row in self.rows() {
            if map.is_null(row) {
                return Err(self.error(group, row, None, NULL_ROW));
            }
            let keys = map_keys(map, row);
            places.clear();
            for (key, name) in group.keys.iter().enumerate() {
                let Some(entry) = keys.iter().position(|k| k == name) else {
                    return Err(self.error(group, row, Some(key), "is missing: every row needs the same keys"));
                };
                places.push(entry);
            }
            if keys.len() != group.width() && !group.ignores_other_keys {
                let (own, first) = (keys.len(), group.width());
                let reason = format!("{own} entries, but the first row has {first}: every row needs the same keys");
                return Err(self.error(group, row, None, reason));
            }
            let start = out.len();
            out.resize(start + group.width(), T::default());
            let entries = map.value(row);
            let values = ColumnSlice { array: entries.column(1), first: 0, picked: Some(&places) };
            values.write_numbers(&mut out[start..], 1, 0).map_err(|(entry, why)| {
                let (at, key) = (self.at(row), keys.get(entry).map_or("", String::as_str));
                at.value(format!("{}.{key}", group.column(at.row, None)), why)
            })?;
        }
        Ok(())
    }
}

impl RowValues for BatchRows<'_> {
    fn refuse_answer(&self, field: usize, first: &str) -> Result<()> {
        let (array, name) = (self.field(field), &self.layout.names[field]);
        for row in self.rows() {
            // Values of other types are no names of classes.
            let Ok(Cell::Text(text)) = cell(array, row) else { continue };
            if self.labels.is_name_in_words(text.trim()) {
                return Err(self.at(row).value(name, late_answer(name, text.trim(), first)));
            }
        }
        Ok(())
    }

    fn reals(&self, group: &ColumnGroup, out: &mut Vec<f64>) -> Result<()> {
        self.numbers(group, out)
    }

    /// A null in a column of its own means that the value is missing.
    fn features(&self, group: &ColumnGroup, out: &mut Vec<f64>) -> Result<()> {
        let Location::Wide(fields) = &group.location else { return self.numbers(group, out) };
        let columns = self.fields(fields);
        let (start, width) = (out.len(), columns.len());
        let filled: Option<Vec<ArrayRef>> = columns.iter().map(|array| without_nulls(array)).collect();
        let filled = filled.ok_or_else(|| self.type_changes(group))?;
        self.transpose(group, &filled.iter().collect::<Vec<_>>(), out)?;
        for (key, column) in columns.iter().enumerate().filter(|(_, column)| column.logical_null_count() > 0) {
            for (i, row) in self.rows().enumerate() {
                if is_null(column, row) {
                    out[start + i * width + key] = f64::NAN;
                }
            }
        }
        Ok(())
    }

    fn answers(&self, group: &ColumnGroup, out: &mut Vec<f64>) -> Result<()> {
        self.check_answers(group)?;
        if let Location::ClassName(path) = &group.location {
            let array = self.array_at(group, path)?;
            for row in self.rows() {
                let answer = cell(array, row).map_err(|why| self.error(group, row, None, why))?;
                let text = answer.text().unwrap_or_default();
                if text.trim().is_empty() {
                    return Err(self.error(group, row, None, group.no_answer()));
                }
                self.labels.append_answer(&text, out).map_err(|why| self.error(group, row, None, why))?;
            }
            return Ok(());
        }
        self.numbers(group, out)
    }

    fn votes(&self, group: &ColumnGroup, out: &mut Vec<u32>) -> Result<()> {
        match &group.location {
            Location::Keyed(path) => match self.array_at(group, path)?.as_struct_opt() {
                Some(votes) => self.votes_by_class(group, votes, out),
                None => self.numbers(group, out),
            },
            Location::Wide(_) | Location::List(_) | Location::ClassName(_) => self.numbers(group, out),
        }
    }

    fn labels(&self, fields: &LabelFields, out: &mut Vec<u32>) -> Result<()> {
        let field = match fields {
            LabelFields::List(field) => *field,
            LabelFields::Columns(fields) => {
                let name = |place: usize| &self.layout.names[fields[place]];
                for row in self.rows() {
                    let cells: Vec<Cell<'_>> =
                        fields.iter().map(|&field| self.cell(field, row)).collect::<Result<_>>()?;
                    let texts = cells.iter().map(|cell| cell.text().unwrap_or_default());
                    let counted = self.labels.append_counts(texts, self.layout.first_labels, out);
                    counted.map_err(|(place, why)| self.at(row).value(name(place), why))?;
                }
                return Ok(());
            }
        };
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
                let Some(class) = text.as_deref().and_then(|text| self.labels.class_of_label(text)) else {
                    let shown = text.as_deref().map_or("null".to_owned(), shown);
                    let refusal = self.labels.refusal(&shown, text.as_deref().unwrap_or_default());
                    return Err(at.value(self.layout.label_column(field, at.row, i), refusal));
                };
                out[start + class] += u32::from(i < self.layout.first_labels);
            }
        }
        Ok(())
    }

    fn ids(&self, field: usize, out: &mut Vec<String>) -> Result<()> {
        for row in self.rows() {
            out.push(self.id(field, row)?);
        }
        Ok(())
    }
}

/// The array with some value in place of every null; `None` if its type does not allow that.
fn without_nulls(array: &ArrayRef) -> Option<ArrayRef> {
    match array.data_type() {
        DataType::Null => Some(Arc::new(Float64Array::from(vec![0.0; array.len()]))),
        _ if array.null_count() == 0 => Some(Arc::clone(array)),
        _ => Some(make_array(array.to_data().into_builder().nulls(None).build().ok()?)),
    }
}
