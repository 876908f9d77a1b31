//! Arrow columns without dictionaries: each row has its value itself.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, GenericListArray, MapArray, OffsetSizeTrait, StructArray};
use arrow_schema::{ArrowError, DataType, FieldRef};
use arrow_select::take::{TakeOptions, take};

/// A type without dictionaries.
pub(crate) fn plain_type(data_type: &DataType) -> DataType {
    let inner = |field: &FieldRef| plain_field(field);
    match data_type {
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::List(item) => DataType::List(inner(item)),
        DataType::LargeList(item) => DataType::LargeList(inner(item)),
        DataType::FixedSizeList(item, width) => DataType::FixedSizeList(inner(item), *width),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        DataType::Map(entries, sorted) => DataType::Map(inner(entries), *sorted),
        other => other.clone(),
    }
}

fn plain_field(field: &FieldRef) -> FieldRef {
    Arc::new(field.as_ref().clone().with_data_type(plain_type(field.data_type())))
}

/// The same values as an array of the [plain type](plain_type).
pub(crate) fn plain(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    fn list<O: OffsetSizeTrait>(lists: &GenericListArray<O>, item: &FieldRef) -> Result<ArrayRef, ArrowError> {
        let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
        Ok(Arc::new(GenericListArray::try_new(plain_field(item), offsets, plain(lists.values())?, nulls)?))
    }
    let nulls = array.nulls().cloned();
    Ok(match array.data_type() {
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let checked = TakeOptions { check_bounds: true };
            plain(&take(dictionary.values(), dictionary.keys(), Some(checked))?)?
        }
        DataType::List(item) => list(array.as_list::<i32>(), item)?,
        DataType::LargeList(item) => list(array.as_list::<i64>(), item)?,
        DataType::FixedSizeList(item, width) => {
            let values = plain(array.as_fixed_size_list().values())?;
            let lists = FixedSizeListArray::try_new_with_length(plain_field(item), *width, values, nulls, array.len())?;
            Arc::new(lists)
        }
        DataType::Struct(_) => Arc::new(plain_struct(array.as_struct())?),
        DataType::Map(entries, sorted) => {
            let map = array.as_map();
            let values = plain_struct(map.entries())?;
            Arc::new(MapArray::try_new(plain_field(entries), map.offsets().clone(), values, nulls, *sorted)?)
        }
        _ => Arc::clone(array),
    })
}

fn plain_struct(rows: &StructArray) -> Result<StructArray, ArrowError> {
    let fields = rows.fields().iter().map(plain_field).collect();
    let columns = rows.columns().iter().map(plain).collect::<Result<_, _>>()?;
    StructArray::try_new_with_length(fields, columns, rows.nulls().cloned(), rows.len())
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int8Type;
    use arrow_array::{DictionaryArray, ListArray, StringArray};
    use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
    use arrow_schema::Field;

    use super::*;

    #[test]
    fn dictionaries_within_lists_and_structs_are_replaced_by_their_values() {
        let words: DictionaryArray<Int8Type> = [Some("x"), Some("y"), None, Some("x")].into_iter().collect();
        let item = Arc::new(Field::new("item", words.data_type().clone(), true));
        let offsets = OffsetBuffer::new(ScalarBuffer::from(vec![0, 1, 1, 4]));
        let nulls = Some(NullBuffer::from(vec![true, false, true]));
        let lists: ArrayRef = Arc::new(ListArray::new(item, offsets, Arc::new(words), nulls));
        let field = Arc::new(Field::new("words", lists.data_type().clone(), true));
        let rows: ArrayRef = Arc::new(StructArray::from(vec![(field, lists)]));
        let plain_rows = plain(&rows.slice(1, 2)).unwrap();
        assert_eq!(*plain_rows.data_type(), plain_type(rows.data_type()));
        let lists = plain_rows.as_struct().column(0).as_list::<i32>();
        assert!(lists.is_null(0));
        assert_eq!(lists.value(1).as_string::<i32>(), &StringArray::from(vec![Some("y"), None, Some("x")]));
    }
}
