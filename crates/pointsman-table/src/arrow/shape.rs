//! The shapes of Arrow columns, and the lists and maps in them.

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, GenericListArray, MapArray, OffsetSizeTrait, RecordBatch};
use arrow_schema::{DataType, FieldRef};

use super::value::cell;
use crate::layout::{Field, Shape};

/// The shape of each column, by its type and, where the type does not fix it, its first row.
pub(crate) fn fields(batch: &RecordBatch) -> Vec<Field> {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns());
    let first = |array: &ArrayRef| cell(array, 0).ok().and_then(|cell| cell.text().map(Cow::into_owned));
    let field = |(field, array): (&FieldRef, &ArrayRef)| {
        let (name, shape) = (field.name().clone(), shape(array));
        let first = if shape == Shape::Scalar && !array.is_empty() { first(array) } else { None };
        Field { name, shape, first }
    };
    columns.map(field).collect()
}

/// Whether the shape of a column is known only from its first row.
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
        DataType::List(_) | DataType::LargeList(_) => Shape::List(span(array, 0).map_or(0, |(_, length)| length)),
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

/// The keys of one row's map, as text.
pub(crate) fn map_keys(map: &MapArray, row: usize) -> Vec<String> {
    let entries = map.value(row);
    let keys = entries.column(0);
    let text = |i| cell(keys, i).ok().and_then(|cell| cell.text().map(|text| text.into_owned()));
    (0..keys.len()).map(|i| text(i).unwrap_or_default()).collect()
}

/// One row's list; `None` if the array has no lists.
pub(crate) fn list_values(array: &ArrayRef, row: usize) -> Option<ArrayRef> {
    let (start, length) = span(array, row)?;
    Some(flattened(array)?.slice(start, length))
}

/// The values of all lists.
pub(crate) fn flattened(array: &ArrayRef) -> Option<&ArrayRef> {
    match array.data_type() {
        DataType::FixedSizeList(..) => Some(array.as_fixed_size_list().values()),
        DataType::List(_) => Some(array.as_list::<i32>().values()),
        DataType::LargeList(_) => Some(array.as_list::<i64>().values()),
        _ => None,
    }
}

/// Where one row's list begins among the values of all lists, and its length.
pub(crate) fn span(array: &ArrayRef, row: usize) -> Option<(usize, usize)> {
    fn by_offsets<O: OffsetSizeTrait>(lists: &GenericListArray<O>, row: usize) -> Option<(usize, usize)> {
        let offsets = lists.value_offsets();
        let (start, end) = (offsets.get(row)?.to_usize()?, offsets.get(row + 1)?.to_usize()?);
        Some((start, end.checked_sub(start)?))
    }
    match array.data_type() {
        DataType::FixedSizeList(_, width) => {
            let start = usize::try_from(array.as_fixed_size_list().value_offset(row)).ok()?;
            Some((start, usize::try_from(*width).ok()?))
        }
        DataType::List(_) => by_offsets(array.as_list::<i32>(), row),
        DataType::LargeList(_) => by_offsets(array.as_list::<i64>(), row),
        _ => None,
    }
}
