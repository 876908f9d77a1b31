//! The header of a numpy array, and its elements.
//!
//! The header is a Python dictionary with three known entries. It is parsed here, not as Python: a general
//! parser of literals recurses as deep as the file asks it to, and everything but
//! `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2)}` is refused anyway.

use std::io::Read;
use std::sync::Arc;

use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray, StringArray};
use arrow_schema::DataType;
use half::f16;

use crate::arrow_value::Target;
use crate::cell::Cell;

/// What one element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Signed,
    Unsigned,
    Float,
    /// Four bytes a character.
    Unicode,
    /// One byte a character.
    Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    /// Bytes an element.
    pub(crate) size: usize,
    pub(crate) big_endian: bool,
    pub(crate) fortran: bool,
    pub(crate) shape: Vec<u64>,
    /// Bytes before the elements.
    pub(crate) start: u64,
}

impl Header {
    pub(crate) fn read(reader: &mut impl Read) -> Result<Self, String> {
        // numpy's own limit for headers it will parse is 10,000 bytes.
        const LONGEST: u32 = 1 << 16;
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
        if length > LONGEST {
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

    /// How many elements there are, if that can be counted.
    pub(crate) fn elements(&self) -> Option<u64> {
        self.shape.iter().try_fold(1_u64, |n, &d| n.checked_mul(d))
    }

    /// How many bytes the elements take, if that can be counted.
    pub(crate) fn bytes(&self) -> Option<u64> {
        self.elements()?.checked_mul(self.size as u64)
    }

    pub(crate) fn is_number(&self) -> bool {
        !matches!(self.kind, Kind::Unicode | Kind::Bytes)
    }

    /// Turns elements into numbers, appended to `out`. On failure it gives the element and the reason.
    pub(crate) fn numbers<T: Target>(&self, bytes: &[u8], out: &mut Vec<T>) -> Result<(), (usize, String)> {
        macro_rules! each {
            ($type:ty, $convert:expr) => {{
                const SIZE: usize = size_of::<$type>();
                out.reserve(bytes.len() / SIZE);
                for (i, chunk) in bytes.chunks_exact(SIZE).enumerate() {
                    let mut raw = [0; SIZE];
                    raw.copy_from_slice(chunk);
                    let value = if self.big_endian { <$type>::from_be_bytes(raw) } else { <$type>::from_le_bytes(raw) };
                    out.push($convert(value).map_err(|why| (i, why))?);
                }
                Ok(())
            }};
        }
        match (self.kind, self.size) {
            (Kind::Float, 8) => each!(f64, T::of_real),
            (Kind::Float, 4) => each!(f32, |x| T::of_real(f64::from(x))),
            (Kind::Float, 2) => each!(f16, |x: f16| T::of_real(x.to_f64())),
            (Kind::Signed, 1) => each!(i8, |i| T::of_signed(i64::from(i))),
            (Kind::Signed, 2) => each!(i16, |i| T::of_signed(i64::from(i))),
            (Kind::Signed, 4) => each!(i32, |i| T::of_signed(i64::from(i))),
            (Kind::Signed, 8) => each!(i64, T::of_signed),
            (Kind::Unsigned | Kind::Bool, 1) => each!(u8, |i| T::of_unsigned(u64::from(i))),
            (Kind::Unsigned, 2) => each!(u16, |i| T::of_unsigned(u64::from(i))),
            (Kind::Unsigned, 4) => each!(u32, |i| T::of_unsigned(u64::from(i))),
            (Kind::Unsigned, 8) => each!(u64, T::of_unsigned),
            _ => Err((0, "text is not a number".to_owned())),
        }
    }

    /// The Arrow type of an element.
    pub(crate) fn data_type(&self) -> DataType {
        match (self.kind, self.size) {
            (Kind::Bool, _) => DataType::Boolean,
            (Kind::Unicode | Kind::Bytes, _) => DataType::Utf8,
            (Kind::Float, 2) => DataType::Float16,
            (Kind::Float, 4) => DataType::Float32,
            (Kind::Float, _) => DataType::Float64,
            (Kind::Signed, 1) => DataType::Int8,
            (Kind::Signed, 2) => DataType::Int16,
            (Kind::Signed, 4) => DataType::Int32,
            (Kind::Signed, _) => DataType::Int64,
            (Kind::Unsigned, 1) => DataType::UInt8,
            (Kind::Unsigned, 2) => DataType::UInt16,
            (Kind::Unsigned, 4) => DataType::UInt32,
            (Kind::Unsigned, _) => DataType::UInt64,
        }
    }

    /// Elements as an Arrow array of that type.
    pub(crate) fn arrow(&self, bytes: &[u8]) -> ArrayRef {
        macro_rules! each {
            ($type:ty, $native:ty) => {{
                let (chunks, _) = bytes.as_chunks::<{ size_of::<$native>() }>();
                let value = |raw: &[u8; size_of::<$native>()]| {
                    if self.big_endian { <$native>::from_be_bytes(*raw) } else { <$native>::from_le_bytes(*raw) }
                };
                Arc::new(PrimitiveArray::<$type>::from_iter_values(chunks.iter().map(value)))
            }};
        }
        match self.data_type() {
            DataType::Boolean => Arc::new(BooleanArray::from_iter(bytes.iter().map(|byte| Some(*byte != 0)))),
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

    /// One element as a value.
    pub(crate) fn cell(&self, bytes: &[u8]) -> Cell<'static> {
        let single = |out: Vec<f64>| out.first().copied().unwrap_or(f64::NAN);
        let whole = || {
            let mut raw = [0; 8];
            for (i, place) in raw.iter_mut().take(bytes.len()).enumerate() {
                *place = bytes[if self.big_endian { bytes.len() - 1 - i } else { i }];
            }
            u64::from_le_bytes(raw)
        };
        match self.kind {
            Kind::Unicode | Kind::Bytes => Cell::Text(self.text(bytes).into()),
            Kind::Bool => Cell::Bool(bytes.first().is_some_and(|b| *b != 0)),
            Kind::Float => {
                let mut out = Vec::new();
                match self.numbers::<f64>(bytes, &mut out) {
                    Ok(()) => Cell::Real(single(out)),
                    Err(_) => Cell::Null,
                }
            }
            Kind::Signed => {
                // Moves the sign to the top and back down.
                let unused = 64 - 8 * self.size.clamp(1, 8) as u32;
                Cell::Int((whole() << unused) as i64 >> unused)
            }
            Kind::Unsigned => {
                let value = whole();
                i64::try_from(value).map_or_else(|_| Cell::Text(value.to_string().into()), Cell::Int)
            }
        }
    }

    /// Texts are filled up with zeros.
    fn text(&self, bytes: &[u8]) -> String {
        if self.kind == Kind::Bytes {
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

fn parse(text: &str) -> Result<Header, String> {
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
    let shape: Result<Vec<u64>, String> = shape
        .split(',')
        .map(|d| d.trim().trim_end_matches('L'))
        .filter(|d| !d.is_empty())
        .map(|d| d.parse().map_err(|_| format!("its shape ({shape}) is not made of counts")))
        .collect();
    let (kind, size, big_endian) = element(descr)?;
    Ok(Header { kind, size, big_endian, fortran, shape: shape?, start: 0 })
}

/// What follows a key of the header's dictionary.
fn entry<'a>(text: &'a str, key: &str) -> Result<&'a str, String> {
    let quoted = format!("'{key}'");
    text.find(&quoted)
        .and_then(|at| text[at + quoted.len()..].trim_start().strip_prefix(':'))
        .map(str::trim_start)
        .ok_or_else(|| format!("its header has no {key}"))
}

fn element(descr: &str) -> Result<(Kind, usize, bool), String> {
    let refused = || format!("its type {descr:?} is not supported: save floats, integers, booleans or text");
    let mut characters = descr.chars();
    let order = characters.next().ok_or_else(refused)?;
    let kind = characters.next().ok_or_else(refused)?;
    if kind == 'O' {
        return Err("it holds Python objects, which are never unpickled: save numbers or text".to_owned());
    }
    let size: usize = characters.as_str().parse().map_err(|_| refused())?;
    let (kind, size) = match (kind, size) {
        ('f', 2 | 4 | 8) => (Kind::Float, size),
        ('i', 1 | 2 | 4 | 8) => (Kind::Signed, size),
        ('u', 1 | 2 | 4 | 8) => (Kind::Unsigned, size),
        ('b', 1) => (Kind::Bool, 1),
        ('U', 1..=65_536) => (Kind::Unicode, 4 * size),
        ('S', 1..=262_144) => (Kind::Bytes, size),
        _ => return Err(refused()),
    };
    match order {
        '<' | '|' | '=' => Ok((kind, size, false)),
        '>' => Ok((kind, size, true)),
        _ => Err(refused()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_as_numpy_writes_them() {
        let header = parse("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }   \n").unwrap();
        assert_eq!((header.kind, header.size, header.fortran), (Kind::Float, 4, false));
        assert_eq!(header.shape, [3, 2]);
        assert_eq!(parse("{'descr': '>u2', 'fortran_order': True, 'shape': (7,), }").unwrap().shape, [7]);
        assert!(parse("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }").unwrap_err().contains("unpickled"));
        assert!(parse("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}").is_err());
        assert!(parse("{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}").is_err());
        assert!(parse("").is_err());
    }

    #[test]
    fn elements_of_either_endianness() {
        let header = |descr: &str| {
            let (kind, size, big_endian) = element(descr).unwrap();
            Header { kind, size, big_endian, fortran: false, shape: vec![1], start: 0 }
        };
        let number = |descr: &str, bytes: &[u8]| {
            let mut out = Vec::new();
            header(descr).numbers::<f64>(bytes, &mut out).unwrap();
            out[0]
        };
        assert_eq!(number(">i2", &[0xff, 0xfe]), -2.0);
        assert_eq!(number("<i2", &[0xfe, 0xff]), -2.0);
        assert_eq!(number("<f2", &[0x00, 0x3c]), 1.0);
        assert_eq!(number(">f8", &0.1_f64.to_be_bytes()), 0.1);
        assert_eq!(header(">i2").cell(&[0xff, 0xfe]), Cell::Int(-2));
        assert_eq!(header("|i1").cell(&[0xfe]), Cell::Int(-2));
        assert_eq!(header("<u8").cell(&[0xff; 8]), Cell::Text(u64::MAX.to_string().into()));
        assert_eq!(header("<U2").cell(&[b'a', 0, 0, 0, 0, 0, 0, 0]), Cell::Text("a".into()));
        assert_eq!(header("|S3").cell(b"ab\0"), Cell::Text("ab".into()));
    }
}
