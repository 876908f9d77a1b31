//! Arrow tables of any library, read through the PyCapsule interface.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, GenericListArray, OffsetSizeTrait};
use arrow_buffer::ScalarBuffer;
use arrow_cast::cast;
use arrow_schema::{DataType, FieldRef};
use pyo3::prelude::*;
use pyo3_arrow::input::AnyArray;

use crate::error::{Refusal, refused};
use crate::rows::{Rows, Values};

/// The columns of an Arrow table, or one Arrow array, not copied.
#[pyclass(frozen, module = "pointsman._native")]
pub(crate) struct Frame {
    fields: Vec<FieldRef>,
    batches: Vec<Vec<ArrayRef>>,
    rows: usize,
}

#[pymethods]
impl Frame {
    #[new]
    fn new(table: AnyArray) -> PyResult<Self> {
        let reader = table.into_reader()?;
        let field = reader.field();
        let arrays: Vec<ArrayRef> = reader.collect::<Result<_, _>>().map_err(arrow)?;
        let rows = arrays.iter().map(|array| array.len()).sum();
        let DataType::Struct(fields) = field.data_type() else {
            return Ok(Self {
                fields: vec![field],
                batches: arrays.into_iter().map(|array| vec![array]).collect(),
                rows,
            });
        };
        let columns = |array: &ArrayRef| {
            let rows = array.as_struct();
            match rows.null_count() {
                0 => Ok(rows.columns().to_vec()),
                _ => Err(refused(Refusal::new("some rows of the table are missing as a whole: leave them out"))),
            }
        };
        let batches = arrays.iter().map(columns).collect::<PyResult<_>>()?;
        Ok(Self { fields: fields.iter().cloned().collect(), batches, rows })
    }

    fn __len__(&self) -> usize {
        self.rows
    }

    /// The names of the columns.
    #[getter]
    fn names(&self) -> Vec<&str> {
        self.fields.iter().map(|field| field.name().as_str()).collect()
    }

    /// The length of the first list of a column; `None` if the column does not hold lists.
    fn list_size(&self, column: &str) -> PyResult<Option<usize>> {
        let place = self.place(column)?;
        let first = self.batches.iter().map(|batch| &batch[place]).find(|array| !array.is_empty());
        Ok(match self.fields[place].data_type() {
            DataType::FixedSizeList(_, size) => usize::try_from(*size).ok(),
            DataType::List(_) => Some(first.map_or(0, |lists| lists.as_list::<i32>().value_length(0) as usize)),
            DataType::LargeList(_) => Some(first.map_or(0, |lists| lists.as_list::<i64>().value_length(0) as usize)),
            _ => None,
        })
    }

    /// The columns as a matrix. Missing values become NaN if `missing`, else they are refused.
    #[pyo3(signature = (columns, *, missing = false))]
    fn rows(&self, columns: Vec<String>, missing: bool) -> PyResult<Rows> {
        let places = columns.iter().map(|column| self.place(column)).collect::<PyResult<Vec<_>>>()?;
        let single = |&place: &usize| *self.fields[place].data_type() == DataType::Float32;
        let values = if !places.is_empty() && places.iter().all(single) {
            Values::Single(self.gather::<Float32Type>(&places, missing.then_some(f32::NAN))?)
        } else {
            Values::Double(self.gather::<Float64Type>(&places, missing.then_some(f64::NAN))?)
        };
        Ok(Rows { width: columns.len(), values })
    }

    /// The numbers of a column of lists, all of length `width`; not copied if they are floats in one batch.
    fn lists(&self, column: &str, width: usize) -> PyResult<Rows> {
        let place = self.place(column)?;
        let found = self.fields[place].data_type();
        let Some(item) = item_field(found) else {
            return Err(refused(Refusal::in_column(column, format!("{found}: lists of {width} numbers are needed"))));
        };
        let values = match item.data_type() {
            DataType::Float32 => Values::Single(self.flatten::<Float32Type>(place, width)?),
            _ => Values::Double(self.flatten::<Float64Type>(place, width)?),
        };
        Ok(Rows { width, values })
    }

    /// A column as text.
    fn texts(&self, column: &str) -> PyResult<Vec<String>> {
        let place = self.place(column)?;
        let mut texts = Vec::with_capacity(self.rows);
        for batch in &self.batches {
            let values = cast(&batch[place], &DataType::Utf8).map_err(arrow)?;
            self.no_nulls(&values, column, texts.len())?;
            texts.extend(values.as_string::<i32>().iter().flatten().map(str::to_owned));
        }
        Ok(texts)
    }
}

impl Frame {
    /// The index of a column.
    fn place(&self, column: &str) -> PyResult<usize> {
        self.fields.iter().position(|field| field.name() == column).ok_or_else(|| {
            let known = self.names().join(", ");
            refused(Refusal::new(format!("there is no column {column:?}; the table has {known}")))
        })
    }

    /// Refuses an array with missing values; `start` is its first row.
    fn no_nulls(&self, array: &ArrayRef, column: &str, start: usize) -> PyResult<()> {
        if array.null_count() == 0 {
            return Ok(());
        }
        let row = (0..array.len()).find(|&row| array.is_null(row)).unwrap_or_default();
        Err(refused(Refusal::at(start + row, column, "the value is missing: fill it in, or leave the row out")))
    }

    /// The numbers of a column, converted to one type.
    fn numbers<T: ArrowPrimitiveType>(&self, array: &ArrayRef, place: usize) -> PyResult<ArrayRef> {
        let (name, found) = (self.fields[place].name(), array.data_type());
        if !(found.is_numeric() || *found == DataType::Boolean) {
            return Err(refused(Refusal::in_column(name, format!("{found} is not a type of real numbers"))));
        }
        cast(array, &T::DATA_TYPE).map_err(arrow)
    }

    /// The numbers of some columns, row by row.
    fn gather<T: ArrowPrimitiveType>(
        &self,
        places: &[usize],
        missing: Option<T::Native>,
    ) -> PyResult<ScalarBuffer<T::Native>> {
        let width = places.len();
        let mut out = vec![T::default_value(); self.rows * width];
        let mut start = 0;
        for batch in &self.batches {
            let rows = batch.first().map_or(0, |array| array.len());
            // At the end of `out`, the slice below would start out of range.
            if rows == 0 {
                continue;
            }
            for (slot, &place) in places.iter().enumerate() {
                let array = self.numbers::<T>(&batch[place], place)?;
                let values = array.as_primitive::<T>();
                let slots = out[start * width + slot..].iter_mut().step_by(width);
                match missing {
                    Some(missing) => slots.zip(values).for_each(|(slot, value)| *slot = value.unwrap_or(missing)),
                    None => {
                        self.no_nulls(&array, self.fields[place].name(), start)?;
                        slots.zip(values.values()).for_each(|(slot, value)| *slot = *value);
                    }
                }
            }
            start += rows;
        }
        Ok(out.into())
    }

    /// The numbers of a column of lists, row by row.
    fn flatten<T: ArrowPrimitiveType>(&self, place: usize, width: usize) -> PyResult<ScalarBuffer<T::Native>> {
        let (name, mut parts, mut start) = (self.fields[place].name(), Vec::new(), 0);
        for array in self.batches.iter().map(|batch| &batch[place]) {
            self.no_nulls(array, name, start)?;
            let items = flatten_lists(array, width).map_err(|(row, found)| {
                let reason = format!("a list of {found} numbers: {width} are needed");
                refused(Refusal::at(start + row, name, reason))
            })?;
            let numbers = self.numbers::<T>(&items, place)?;
            if numbers.null_count() > 0 {
                let value = (0..numbers.len()).find(|&value| numbers.is_null(value)).unwrap_or_default();
                let (row, slot) = (start + value / width, value % width);
                return Err(refused(Refusal::at(row, &format!("{name}[{slot}]"), "the value is missing: fill it in")));
            }
            start += array.len();
            parts.push(numbers.as_primitive::<T>().values().clone());
        }
        match <[_; 1]>::try_from(parts) {
            Ok([one]) => Ok(one),
            Err(parts) => Ok(parts.iter().flat_map(|part| part.iter().copied()).collect::<Vec<_>>().into()),
        }
    }
}

/// The field of the items of a list type; `None` for other types.
fn item_field(kind: &DataType) -> Option<&FieldRef> {
    match kind {
        DataType::FixedSizeList(item, _) | DataType::List(item) | DataType::LargeList(item) => Some(item),
        _ => None,
    }
}

/// The items of lists of length `width`, not copied. The error is the first list of another length, with its length.
fn flatten_lists(lists: &ArrayRef, width: usize) -> Result<ArrayRef, (usize, usize)> {
    fn joined<O: OffsetSizeTrait>(lists: &GenericListArray<O>, width: usize) -> Result<ArrayRef, (usize, usize)> {
        let offsets = lists.offsets();
        match offsets.lengths().enumerate().find(|&(_, found)| found != width) {
            Some(other) => Err(other),
            None => Ok(lists.values().slice(offsets[0].as_usize(), lists.len() * width)),
        }
    }
    match lists.data_type() {
        DataType::List(_) => joined(lists.as_list::<i32>(), width),
        DataType::LargeList(_) => joined(lists.as_list::<i64>(), width),
        _ => {
            let lists = lists.as_fixed_size_list();
            let found = usize::try_from(lists.value_length()).unwrap_or_default();
            if found == width || lists.is_empty() { Ok(Arc::clone(lists.values())) } else { Err((0, found)) }
        }
    }
}

/// Converts an error of Arrow into an exception.
pub(crate) fn arrow(error: arrow_schema::ArrowError) -> PyErr {
    refused(Refusal::new(pointsman::error::printable(&error.to_string())))
}
