//! Values of Arrow arrays as text and as JSON.

use std::io::{self, Write};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;

use crate::arrow::list_values;

/// Writes a value as text: lists and maps as JSON, nothing where it is null.
pub(crate) fn write_text(array: &ArrayRef, row: usize, out: &mut Vec<u8>) -> io::Result<()> {
    if array.is_null(row) {
        return Ok(());
    }
    match array.data_type() {
        DataType::Utf8 => out.extend_from_slice(array.as_string::<i32>().value(row).as_bytes()),
        DataType::LargeUtf8 => out.extend_from_slice(array.as_string::<i64>().value(row).as_bytes()),
        data_type if data_type.is_nested() => write_json(array, row, out)?,
        _ => out.extend_from_slice(formatted(array, row)?.as_bytes()),
    }
    Ok(())
}

/// Writes a value as JSON.
pub(crate) fn write_json(array: &ArrayRef, row: usize, out: &mut impl Write) -> io::Result<()> {
    if array.is_null(row) {
        return out.write_all(b"null");
    }
    match array.data_type() {
        DataType::Null => out.write_all(b"null"),
        DataType::Boolean => write!(out, "{}", array.as_boolean().value(row)),
        // JSON has no infinities and no NaN: the library writes null.
        DataType::Float64 => Ok(serde_json::to_writer(out, &array.as_primitive::<Float64Type>().value(row))?),
        DataType::Float32 => Ok(serde_json::to_writer(out, &array.as_primitive::<Float32Type>().value(row))?),
        DataType::Float16 => Ok(serde_json::to_writer(out, &array.as_primitive::<Float16Type>().value(row).to_f32())?),
        data_type if data_type.is_integer() || matches!(data_type, DataType::Decimal128(..)) => {
            out.write_all(formatted(array, row)?.as_bytes())
        }
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
            let values = list_values(array, row).ok_or_else(|| invalid("a list"))?;
            out.write_all(b"[")?;
            for i in 0..values.len() {
                out.write_all(if i > 0 { b"," } else { b"" })?;
                write_json(&values, i, out)?;
            }
            out.write_all(b"]")
        }
        DataType::Struct(fields) => {
            out.write_all(b"{")?;
            for (i, (field, child)) in fields.iter().zip(array.as_struct().columns()).enumerate() {
                out.write_all(if i > 0 { b"," } else { b"" })?;
                serde_json::to_writer(&mut *out, field.name())?;
                out.write_all(b":")?;
                write_json(child, row, out)?;
            }
            out.write_all(b"}")
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            out.write_all(b"{")?;
            for i in 0..entries.len() {
                out.write_all(if i > 0 { b"," } else { b"" })?;
                serde_json::to_writer(&mut *out, &formatted(entries.column(0), i)?)?;
                out.write_all(b":")?;
                write_json(entries.column(1), i, out)?;
            }
            out.write_all(b"}")
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            write_json(dictionary.values(), dictionary.normalized_keys()[row], out)
        }
        _ => Ok(serde_json::to_writer(out, &formatted(array, row)?)?),
    }
}

/// A single value as text.
fn formatted(array: &ArrayRef, row: usize) -> io::Result<String> {
    let options = FormatOptions::new().with_display_error(false);
    let text = ArrayFormatter::try_new(array, &options).and_then(|formatter| formatter.value(row).try_to_string());
    text.map_err(|error| invalid(&error.to_string()))
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what}: cannot be written as text: keep fewer columns"))
}
