//! The arrays of a file of tensors, read in the type that they have and hashed on the way.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use rayon::prelude::*;
use safetensors::tensor::{Dtype, Metadata};
use sha2::{Digest, Sha256};

use super::source::Source;
use crate::error::Parsed;

/// Bytes that are read, hashed and converted at once: few enough to stay in the cache on the way.
const BYTES_PER_PIECE: usize = 1 << 18;

/// How the bytes of arrays enter a checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hashing {
    /// All bytes one after another.
    OneStream,
    /// The SHA-256 of each piece of 256 KiB, so that all cores can hash.
    Pieces,
}

impl Hashing {
    /// Adds the bytes of an array to a checksum.
    pub(super) fn add(self, bytes: &[u8], hash: &mut Sha256) {
        match self {
            Self::OneStream => hash.update(bytes),
            Self::Pieces => {
                let digests: Vec<_> = bytes.par_chunks(BYTES_PER_PIECE).map(Sha256::digest).collect();
                digests.iter().for_each(|digest| hash.update(digest));
            }
        }
    }
}

/// A number of an array.
pub(super) trait Number: Copy + Default + Send + Sync {
    const DTYPE: Dtype;

    /// Converts little-endian bytes.
    fn decode(bytes: &[u8], out: &mut [Self]);

    /// The little-endian bytes of numbers.
    fn encode(numbers: &[Self]) -> Cow<'_, [u8]>;

    fn from_array(array: Numbers) -> Option<Vec<Self>>;
}

/// The numbers of an array.
#[derive(Debug)]
pub(super) enum Numbers {
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    /// Of a type that no reader asks for.
    Other,
}

macro_rules! number {
    ($type:ty, $variant:ident) => {
        impl Number for $type {
            const DTYPE: Dtype = Dtype::$variant;

            fn decode(bytes: &[u8], out: &mut [Self]) {
                let numbers = bytes.as_chunks().0.iter().map(|bytes| Self::from_le_bytes(*bytes));
                out.iter_mut().zip(numbers).for_each(|(slot, number)| *slot = number);
            }

            fn encode(numbers: &[Self]) -> Cow<'_, [u8]> {
                match cfg!(target_endian = "little") {
                    true => Cow::Borrowed(bytemuck::cast_slice(numbers)),
                    false => numbers.iter().flat_map(|number| number.to_le_bytes()).collect(),
                }
            }

            fn from_array(array: Numbers) -> Option<Vec<Self>> {
                match array {
                    Numbers::$variant(numbers) => Some(numbers),
                    _ => None,
                }
            }
        }
    };
}

number!(u8, U8);
number!(u16, U16);
number!(u32, U32);
number!(u64, U64);
number!(f32, F32);
number!(f64, F64);

/// One array.
#[derive(Debug)]
struct Array {
    dtype: Dtype,
    shape: Vec<usize>,
    numbers: Numbers,
}

/// All arrays of a file, by name.
#[derive(Debug)]
pub(super) struct Arrays(BTreeMap<String, Array>);

impl Arrays {
    /// Reads the arrays, which begin at `start`, and adds the name, type, shape and bytes of each to the checksum, by name.
    pub(super) fn read(
        source: &Source<'_>,
        start: usize,
        metadata: &Metadata,
        hashing: Hashing,
        hash: &mut Sha256,
    ) -> io::Result<Self> {
        let infos: BTreeMap<_, _> = metadata.tensors().into_iter().collect();
        let mut arrays = BTreeMap::new();
        for (name, info) in infos {
            let (dtype, shape) = (info.dtype, info.shape.clone());
            hash.update(array_line(&name, dtype, &shape));
            let place = start + info.data_offsets.0..start + info.data_offsets.1;
            let mut array = Bytes { source, place, hashing, hash };
            let numbers = match dtype {
                Dtype::U8 => Numbers::U8(array.numbers()?),
                Dtype::U16 => Numbers::U16(array.numbers()?),
                Dtype::U32 => Numbers::U32(array.numbers()?),
                Dtype::U64 => Numbers::U64(array.numbers()?),
                Dtype::F32 => Numbers::F32(array.numbers()?),
                Dtype::F64 => Numbers::F64(array.numbers()?),
                _ => array.numbers::<u8>().map(|_| Numbers::Other)?,
            };
            arrays.insert(name, Array { dtype, shape, numbers });
        }
        Ok(Self(arrays))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The number of columns of an array that has columns.
    pub(super) fn columns(&self, name: &str) -> Option<usize> {
        self.0.get(name)?.shape.get(1).copied()
    }

    /// Whether an array has numbers of this type.
    pub(super) fn holds<T: Number>(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|array| array.dtype == T::DTYPE)
    }

    /// Takes the numbers of an array, if it has the type and, with `width`, this number of columns.
    pub(super) fn take<T: Number>(&mut self, name: &str, width: Option<usize>) -> Parsed<Vec<T>> {
        let array = self.0.remove(name).ok_or_else(|| format!("the array {name} is missing"))?;
        let fits = match (array.shape.as_slice(), width) {
            ([_], None) => true,
            ([_, columns], Some(width)) => *columns == width,
            _ => false,
        };
        let Array { dtype, shape, numbers } = array;
        let numbers = T::from_array(numbers).filter(|_| fits);
        numbers.ok_or_else(|| format!("the array {name} has type {dtype:?} and shape {shape:?}"))
    }
}

/// What a checksum says of an array before its bytes.
pub(super) fn array_line(name: &str, dtype: Dtype, shape: &[usize]) -> String {
    format!("\n{name} {dtype:?} {shape:?}\n")
}

/// The bytes of one array.
struct Bytes<'a> {
    source: &'a Source<'a>,
    place: Range<usize>,
    hashing: Hashing,
    hash: &'a mut Sha256,
}

impl Bytes<'_> {
    /// Reads the bytes piece by piece, hashes them and converts them.
    fn numbers<T: Number>(&mut self) -> io::Result<Vec<T>> {
        let Self { source, place, hashing, hash } = self;
        let mut numbers = vec![T::default(); place.len() / size_of::<T>()];
        let pieces = |piece: usize, out: &[T]| {
            let start = place.start + piece * BYTES_PER_PIECE;
            start..start + size_of_val(out)
        };
        let per_piece = BYTES_PER_PIECE / size_of::<T>();
        match hashing {
            Hashing::OneStream => {
                let mut buffer = Vec::new();
                for (piece, out) in numbers.chunks_mut(per_piece).enumerate() {
                    let bytes = source.bytes(pieces(piece, out), &mut buffer)?;
                    hash.update(bytes);
                    T::decode(bytes, out);
                }
            }
            Hashing::Pieces => {
                let read = |buffer: &mut Vec<u8>, (piece, out): (usize, &mut [T])| {
                    let bytes = source.bytes(pieces(piece, out), buffer)?;
                    T::decode(bytes, out);
                    Ok(Sha256::digest(bytes))
                };
                let pieces = numbers.par_chunks_mut(per_piece).enumerate().map_init(Vec::new, read);
                let digests: Vec<_> = pieces.collect::<io::Result<_>>()?;
                digests.iter().for_each(|digest| hash.update(digest));
            }
        }
        Ok(numbers)
    }
}
