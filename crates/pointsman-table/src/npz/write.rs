//! Writing npz: a zip of numpy arrays, one per column.
//!
//! An array's header comes before its elements and holds their number and the width of text, which are known only at the end. So columns
//! are collected in temporary files, and memory stays bounded.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, Float64Array, PrimitiveArray, RecordBatch, downcast_integer_array};
use arrow_buffer::ToByteSlice;
use arrow_schema::{DataType, Schema};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::arrow::write_text;
use crate::error::{Misfit, misfit};

pub(crate) struct NpzWriter {
    columns: Vec<Spool>,
    rows: u64,
}

/// A column in a temporary file.
struct Spool {
    name: String,
    elements: Elements,
    file: BufWriter<File>,
    /// The longest text, in characters.
    longest: usize,
}

/// What an array holds.
#[derive(Debug, Clone, PartialEq)]
enum Elements {
    /// Numbers of this type, with the length of a row if the array has two dimensions.
    Numbers(DataType, Option<i32>),
    /// Text; lists and maps are written as JSON.
    Text,
}

impl Elements {
    fn from_type(data_type: &DataType) -> Self {
        let is_number = |it: &DataType| numpy_type(it).is_some();
        match data_type {
            DataType::FixedSizeList(item, width) if is_number(item.data_type()) => {
                Self::Numbers(item.data_type().clone(), Some(*width))
            }
            it if is_number(it) => Self::Numbers(it.clone(), None),
            _ => Self::Text,
        }
    }
}

/// The name of a number's type in numpy, and its bytes.
fn numpy_type(data_type: &DataType) -> Option<(String, usize)> {
    let (kind, size) = match data_type {
        DataType::Boolean => ('b', 1),
        it if it.is_signed_integer() => ('i', it.primitive_width()?),
        it if it.is_unsigned_integer() => ('u', it.primitive_width()?),
        DataType::Float16 | DataType::Float32 | DataType::Float64 => ('f', data_type.primitive_width()?),
        _ => return None,
    };
    let order = if size == 1 { '|' } else { '<' };
    Some((format!("{order}{kind}{size}"), size))
}

impl NpzWriter {
    pub(crate) fn new(schema: &Schema) -> io::Result<Self> {
        let spool = |field: &arrow_schema::FieldRef| {
            let file = BufWriter::new(tempfile::tempfile()?);
            Ok(Spool { name: field.name().clone(), elements: Elements::from_type(field.data_type()), file, longest: 0 })
        };
        Ok(Self { columns: schema.fields().iter().map(spool).collect::<io::Result<_>>()?, rows: 0 })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.rows += batch.num_rows() as u64;
        let mut columns = self.columns.iter_mut().zip(batch.columns()).enumerate();
        columns.try_for_each(|(column, (spool, array))| spool.write(column, array))
    }

    /// Writes the zip. It is first written to a temporary file, since its writer needs to seek.
    pub(crate) fn finish(self, out: &mut impl Write) -> io::Result<()> {
        let rows = self.rows;
        let mut zip = ZipWriter::new(BufWriter::new(tempfile::tempfile()?));
        for spool in self.columns {
            let mut file = spool.file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.seek(SeekFrom::Start(0))?;
            let longest = spool.longest.max(1);
            let (descr, width, size) = match &spool.elements {
                Elements::Text => (format!("<U{longest}"), None, 4 * longest as u64),
                Elements::Numbers(data_type, width) => {
                    let (descr, size) = numpy_type(data_type).unwrap_or_default();
                    (descr, *width, size as u64 * u64::from(width.map_or(1, i32::unsigned_abs)))
                }
            };
            let large = rows.saturating_mul(size) > u64::from(u32::MAX) - (1 << 16);
            let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(large);
            zip.start_file(format!("{}.npy", spool.name), options)?;
            zip.write_all(&header(&descr, rows, width))?;
            let mut elements = BufReader::new(file);
            if spool.elements == Elements::Text {
                for _ in 0..rows {
                    zip.write_all(&next_text(&mut elements, 4 * longest)?)?;
                }
            } else {
                io::copy(&mut elements, &mut zip)?;
            }
        }
        let mut file = zip.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        io::copy(&mut file, out)?;
        Ok(())
    }
}

impl Spool {
    /// Writes some rows; `column` is the place of the column in the batch, for errors.
    fn write(&mut self, column: usize, array: &ArrayRef) -> io::Result<()> {
        match self.elements.clone() {
            Elements::Text => {
                let mut value = Vec::new();
                for row in 0..array.len() {
                    value.clear();
                    write_text(array, row, &mut value).map_err(|e| misfit(column, row, e))?;
                    self.longest = self.longest.max(String::from_utf8_lossy(&value).chars().count());
                    self.file.write_all(&(value.len() as u64).to_le_bytes())?;
                    self.file.write_all(&value)?;
                }
                Ok(())
            }
            Elements::Numbers(data_type, None) => self.write_numbers(array, &data_type),
            Elements::Numbers(data_type, Some(width)) => {
                let lists = array.as_fixed_size_list();
                if let Some(row) = (0..lists.len()).find(|&row| lists.is_null(row)) {
                    let reason = "a list is missing, which numpy cannot hold: write another format, or leave the column out with --keep id";
                    return Err(Misfit { column, row, reason: reason.to_owned() }.into());
                }
                let first = lists.value_offset(0).unsigned_abs() as usize;
                let values = lists.values().slice(first, lists.len() * width.unsigned_abs() as usize);
                self.write_numbers(&values, &data_type)
            }
        }
    }

    /// Writes numbers. Where some are missing, floats are NaN, and whole numbers become floats.
    fn write_numbers(&mut self, array: &ArrayRef, data_type: &DataType) -> io::Result<()> {
        if array.null_count() > 0 && !data_type.is_floating() {
            self.widen(data_type)?;
            return self.write_numbers(array, &DataType::Float64);
        }
        match array.data_type() == data_type {
            true => write_elements(&mut self.file, array),
            // Only whole numbers become another type, and only floats.
            false => write_elements(&mut self.file, &(Arc::new(reals(array)?) as ArrayRef)),
        }
    }

    /// Turns what was written so far into floats.
    fn widen(&mut self, from: &DataType) -> io::Result<()> {
        let Elements::Numbers(_, width) = self.elements else { return Ok(()) };
        self.elements = Elements::Numbers(DataType::Float64, width);
        let size = numpy_type(from).map_or(1, |(_, size)| size);
        let old = std::mem::replace(&mut self.file, BufWriter::new(tempfile::tempfile()?));
        let mut old = old.into_inner().map_err(io::IntoInnerError::into_error)?;
        old.seek(SeekFrom::Start(0))?;
        let signed = from.is_signed_integer();
        let mut element = [0; 8];
        let mut old = BufReader::new(old);
        while old.read_exact(&mut element[..size]).is_ok() {
            let negative = signed && element[size - 1] & 0x80 != 0;
            element[size..].fill(if negative { 0xff } else { 0 });
            let value = if signed { i64::from_le_bytes(element) as f64 } else { u64::from_le_bytes(element) as f64 };
            self.file.write_all(&value.to_le_bytes())?;
        }
        Ok(())
    }
}

/// Whole numbers and booleans as floats.
fn reals(array: &ArrayRef) -> io::Result<Float64Array> {
    let values = array.as_ref();
    Ok(downcast_integer_array! {
        values => values.iter().map(|value| value.map(|value| i128::from(value) as f64)).collect(),
        DataType::Boolean => array.as_boolean().iter().map(|value| value.map(|b| f64::from(u8::from(b)))).collect(),
        other => return Err(io::Error::other(format!("{other} does not become a float"))),
    })
}

/// Writes the elements of an array of numbers; missing ones, which only floats have, as NaN.
fn write_elements(out: &mut impl Write, array: &ArrayRef) -> io::Result<()> {
    fn each<T: ArrowPrimitiveType<Native: ToByteSlice>>(
        out: &mut impl Write,
        values: &PrimitiveArray<T>,
        missing: T::Native,
    ) -> io::Result<()> {
        for row in 0..values.len() {
            let value = if values.is_null(row) { missing } else { values.value(row) };
            let mut bytes = [0; 8];
            let own = value.to_byte_slice();
            bytes[..own.len()].copy_from_slice(own);
            // The header says little-endian.
            if cfg!(target_endian = "big") {
                bytes[..own.len()].reverse();
            }
            out.write_all(&bytes[..own.len()])?;
        }
        Ok(())
    }
    let values = array.as_ref();
    downcast_integer_array! {
        values => each(out, values, Default::default()),
        DataType::Float64 => each(out, array.as_primitive::<Float64Type>(), f64::NAN),
        DataType::Float32 => each(out, array.as_primitive::<Float32Type>(), f32::NAN),
        DataType::Float16 => each(out, array.as_primitive::<Float16Type>(), half::f16::NAN),
        DataType::Boolean => {
            let values = array.as_boolean();
            (0..values.len()).try_for_each(|row| out.write_all(&[u8::from(values.value(row))]))
        }
        other => Err(io::Error::other(format!("{other} is not a type of numpy"))),
    }
}

/// The next text of a spool, four bytes per character, filled up to `size` bytes.
fn next_text(spool: &mut impl Read, size: usize) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    spool.read_exact(&mut length)?;
    let mut text = Vec::new();
    spool.take(u64::from_le_bytes(length)).read_to_end(&mut text)?;
    let mut out: Vec<u8> = String::from_utf8_lossy(&text).chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    out.resize(size, 0);
    Ok(out)
}

/// The header of an array, as numpy writes it: padded so that elements begin at a multiple of 64.
fn header(descr: &str, rows: u64, width: Option<i32>) -> Vec<u8> {
    let width = width.map_or(String::new(), |width| format!(" {width}"));
    let mut dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows},{width}), }}");
    let used = 10 + dict.len() + 1;
    dict.push_str(&" ".repeat(used.next_multiple_of(64) - used));
    dict.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend_from_slice(&(dict.len() as u16).to_le_bytes());
    out.extend_from_slice(dict.as_bytes());
    out
}
