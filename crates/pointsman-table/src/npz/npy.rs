//! The header of a numpy array, and its elements.
//!
//! The header is a Python dictionary with three known entries, such as `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2)}`. It is
//! parsed here, not as Python: a general parser of literals recurses as deep as the file asks it to.

use std::io::Read;
use std::sync::Arc;

use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray, StringArray};
use arrow_schema::DataType;
use half::f16;

use crate::error::Parsed;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// The Arrow type of an element.
    pub(crate) data_type: DataType,
    /// Bytes per element.
    pub(crate) size: usize,
    /// Whether text has four bytes per character; otherwise it has one.
    is_unicode: bool,
    big_endian: bool,
    pub(crate) fortran: bool,
    pub(crate) shape: Vec<u64>,
    /// Bytes before the elements.
    pub(crate) start: u64,
}

impl Header {
    pub(crate) fn read(reader: &mut impl Read) -> Parsed<Self> {
        // numpy's own limit for headers it will parse is 10,000 bytes.
        const MAX_BYTES: u32 = 1 << 16;
        let cut = |_| "its header is cut short".to_owned();
        let mut magic = [0; 8];
        reader.read_exact(&mut magic).map_err(cut)?;
        if &magic[..6] != b"\x93NUMPY" {
            return Err("it is not a numpy array".to_owned());
        }
        let mut length = [0; 4];
        let prefix = if magic[6] == 1 { 2 } else { 4 };
        reader.read_exact(&mut length[..prefix]).map_err(cut)?;
        let length = u32::from_le_bytes(length);
        if length > MAX_BYTES {
            return Err(format!("its header claims {length} bytes"));
        }
        let mut text = Vec::new();
        reader.take(length.into()).read_to_end(&mut text).map_err(cut)?;
        if text.len() < length as usize {
            return Err("its header is cut short".to_owned());
        }
        let text = std::str::from_utf8(&text).map_err(|_| "its header is not text".to_owned())?;
        let mut header = parse(text)?;
        header.start = 8 + prefix as u64 + u64::from(length);
        Ok(header)
    }

    /// The number of bytes of all elements, if it can be counted.
    pub(crate) fn bytes(&self) -> Option<u64> {
        self.shape.iter().try_fold(self.size as u64, |bytes, &length| bytes.checked_mul(length))
    }

    pub(crate) fn is_number(&self) -> bool {
        self.data_type != DataType::Utf8
    }

    /// Elements as an Arrow array of that type.
    pub(crate) fn elements(&self, bytes: &[u8]) -> ArrayRef {
        macro_rules! each {
            ($type:ty, $native:ty) => {{
                let (chunks, _) = bytes.as_chunks::<{ size_of::<$native>() }>();
                let value = |raw: &[u8; size_of::<$native>()]| {
                    if self.big_endian { <$native>::from_be_bytes(*raw) } else { <$native>::from_le_bytes(*raw) }
                };
                Arc::new(PrimitiveArray::<$type>::from_iter_values(chunks.iter().map(value)))
            }};
        }
        match self.data_type {
            DataType::Boolean => Arc::new(bytes.iter().map(|byte| Some(*byte != 0)).collect::<BooleanArray>()),
            DataType::Float16 => each!(Float16Type, f16),
            DataType::Float32 => each!(Float32Type, f32),
            DataType::Float64 => each!(Float64Type, f64),
            DataType::Int8 => each!(Int8Type, i8),
            DataType::Int16 => each!(Int16Type, i16),
            DataType::Int32 => each!(Int32Type, i32),
            DataType::Int64 => each!(Int64Type, i64),
            DataType::UInt8 => each!(UInt8Type, u8),
            DataType::UInt16 => each!(UInt16Type, u16),
            DataType::UInt32 => each!(UInt32Type, u32),
            DataType::UInt64 => each!(UInt64Type, u64),
            _ => Arc::new(StringArray::from_iter_values(bytes.chunks_exact(self.size).map(|text| self.text(text)))),
        }
    }

    /// The text of an element, which is padded with zeros.
    fn text(&self, bytes: &[u8]) -> String {
        if !self.is_unicode {
            return String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned();
        }
        let characters = bytes.chunks_exact(4).map(|chunk| {
            let mut raw = [0; 4];
            raw.copy_from_slice(chunk);
            let code = if self.big_endian { u32::from_be_bytes(raw) } else { u32::from_le_bytes(raw) };
            char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
        });
        characters.collect::<String>().trim_end_matches('\0').to_owned()
    }
}

fn parse(text: &str) -> Parsed<Header> {
    let descr = entry(text, "descr")?;
    let Some(descr) = descr.strip_prefix('\'').and_then(|d| d.split('\'').next()) else {
        return Err("it holds records: save one array per column".to_owned());
    };
    let fortran = match entry(text, "fortran_order")? {
        value if value.starts_with("True") => true,
        value if value.starts_with("False") => false,
        _ => return Err("its header has no fortran_order".to_owned()),
    };
    let shape = entry(text, "shape")?;
    let shape = shape.strip_prefix('(').and_then(|s| s.split(')').next()).ok_or("its header has no shape")?;
    let shape: Parsed<Vec<u64>> = shape
        .split(',')
        .map(|d| d.trim().trim_end_matches('L'))
        .filter(|d| !d.is_empty())
        .map(|d| d.parse().map_err(|_| format!("its shape ({shape}) is not made of counts")))
        .collect();
    element(descr, fortran, shape?)
}

/// The rest of the header behind a key of its dictionary.
fn entry<'a>(text: &'a str, key: &str) -> Parsed<&'a str> {
    let quoted = format!("'{key}'");
    text.find(&quoted)
        .and_then(|at| text[at + quoted.len()..].trim_start().strip_prefix(':'))
        .map(str::trim_start)
        .ok_or_else(|| format!("its header has no {key}"))
}

/// The header of an array whose elements have the type `descr`, such as `<f4`.
fn element(descr: &str, fortran: bool, shape: Vec<u64>) -> Parsed<Header> {
    use DataType as D;
    let refused = || format!("its type {descr:?} is not supported: save floats, integers, booleans or text");
    let mut characters = descr.chars();
    let order = characters.next().ok_or_else(refused)?;
    let kind = characters.next().ok_or_else(refused)?;
    if kind == 'O' {
        return Err("it holds Python objects, which are never unpickled: save numbers or text".to_owned());
    }
    let size: usize = characters.as_str().parse().map_err(|_| refused())?;
    let data_type = match (kind, size) {
        ('b', 1) => D::Boolean,
        ('f', 2) => D::Float16,
        ('f', 4) => D::Float32,
        ('f', 8) => D::Float64,
        ('i', 1) => D::Int8,
        ('i', 2) => D::Int16,
        ('i', 4) => D::Int32,
        ('i', 8) => D::Int64,
        ('u', 1) => D::UInt8,
        ('u', 2) => D::UInt16,
        ('u', 4) => D::UInt32,
        ('u', 8) => D::UInt64,
        ('U', 1..=65_536) | ('S', 1..=262_144) => D::Utf8,
        _ => return Err(refused()),
    };
    let big_endian = match order {
        '<' | '|' | '=' => false,
        '>' => true,
        _ => return Err(refused()),
    };
    let is_unicode = kind == 'U';
    let size = if is_unicode { 4 * size } else { size };
    Ok(Header { data_type, size, is_unicode, big_endian, fortran, shape, start: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrow::cell;

    #[test]
    fn headers_are_parsed_or_refused() {
        let header = parse("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }   \n").unwrap();
        assert_eq!((header.data_type, header.size, header.fortran), (DataType::Float32, 4, false));
        assert_eq!(header.shape, [3, 2]);
        assert_eq!(parse("{'descr': '>u2', 'fortran_order': True, 'shape': (7,), }").unwrap().shape, [7]);
        assert!(parse("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }").unwrap_err().contains("unpickled"));
        assert!(parse("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}").is_err());
        assert!(parse("{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}").is_err());
        assert!(parse("").is_err());
    }

    #[test]
    fn elements_of_either_endianness_are_read() {
        let value = |descr: &str, bytes: &[u8]| {
            let elements = element(descr, false, vec![1]).unwrap().elements(bytes);
            cell(&elements, 0).unwrap().text().unwrap().into_owned()
        };
        assert_eq!(value(">i2", &[0xff, 0xfe]), "-2");
        assert_eq!(value("<i2", &[0xfe, 0xff]), "-2");
        assert_eq!(value("|i1", &[0xfe]), "-2");
        assert_eq!(value("<f2", &[0x00, 0x3c]), "1");
        assert_eq!(value(">f8", &0.1_f64.to_be_bytes()), "0.1");
        assert_eq!(value("<u8", &[0xff; 8]), u64::MAX.to_string());
        assert_eq!(value("<U2", &[b'a', 0, 0, 0, 0, 0, 0, 0]), "a");
        assert_eq!(value("|S3", b"ab\0"), "ab");
    }
}
