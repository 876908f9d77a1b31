//! Values of Arrow arrays as text and as JSON.

use std::io::{self, Write};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::scalar::{dictionary_entry, text};
use super::shape::list_values;

/// Writes a value as text: lists and maps as JSON, null as empty text.
pub(crate) fn write_text(array: &ArrayRef, row: usize, out: &mut Vec<u8>) -> io::Result<()> {
    if array.is_null(row) {
        return Ok(());
    }
    match array.data_type() {
        DataType::Dictionary(..) => {
            let (values, entry) = dictionary_entry(array, row).map_err(invalid)?;
            write_text(values, entry, out)
        }
        data_type if data_type.is_nested() => write_json(array, row, out),
        _ => {
            out.extend_from_slice(text(array, row).map_err(invalid)?.unwrap_or_default().as_bytes());
            Ok(())
        }
    }
}

/// Writes a value as JSON.
pub(crate) fn write_json(array: &ArrayRef, row: usize, out: &mut Vec<u8>) -> io::Result<()> {
    if array.is_null(row) {
        return out.write_all(b"null");
    }
    match array.data_type() {
        // JSON has no infinities and no NaN: the library writes null.
        DataType::Float64 => Ok(serde_json::to_writer(out, &array.as_primitive::<Float64Type>().value(row))?),
        DataType::Float32 => Ok(serde_json::to_writer(out, &array.as_primitive::<Float32Type>().value(row))?),
        DataType::Float16 => Ok(serde_json::to_writer(out, &array.as_primitive::<Float16Type>().value(row).to_f32())?),
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
            let values = list_values(array, row).ok_or_else(|| invalid("a list that is damaged".to_owned()))?;
            write_sequence(b"[]", values.len(), out, |i, out| write_json(&values, i, out))
        }
        DataType::Struct(fields) => {
            let children = array.as_struct().columns();
            write_sequence(b"{}", children.len(), out, |i, out| {
                serde_json::to_writer(&mut *out, fields[i].name())?;
                out.push(b':');
                write_json(&children[i], row, out)
            })
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            write_sequence(b"{}", entries.len(), out, |i, out| {
                let key = text(entries.column(0), i).map_err(invalid)?.unwrap_or_default();
                serde_json::to_writer(&mut *out, &key)?;
                out.push(b':');
                write_json(entries.column(1), i, out)
            })
        }
        DataType::Dictionary(..) => {
            let (values, entry) = dictionary_entry(array, row).map_err(invalid)?;
            write_json(values, entry, out)
        }
        data_type => match text(array, row).map_err(invalid)? {
            None => out.write_all(b"null"),
            Some(text) if is_bare(data_type) => out.write_all(text.as_bytes()),
            Some(text) => Ok(serde_json::to_writer(out, &text)?),
        },
    }
}

/// Whether the text of a value is valid JSON without quotes: booleans, whole numbers, and decimals of at most 128 bits.
fn is_bare(data_type: &DataType) -> bool {
    use DataType::{Boolean, Decimal32, Decimal64, Decimal128};
    data_type.is_integer() || matches!(data_type, Boolean | Decimal32(..) | Decimal64(..) | Decimal128(..))
}

/// Writes `length` entries between two brackets.
fn write_sequence(
    brackets: &[u8; 2],
    length: usize,
    out: &mut Vec<u8>,
    mut write: impl FnMut(usize, &mut Vec<u8>) -> io::Result<()>,
) -> io::Result<()> {
    out.push(brackets[0]);
    for i in 0..length {
        if i > 0 {
            out.push(b',');
        }
        write(i, out)?;
    }
    out.push(brackets[1]);
    Ok(())
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what}: --keep id leaves the column out"))
}
