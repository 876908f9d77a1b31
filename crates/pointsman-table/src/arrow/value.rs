//! Single values and columns of numbers of Arrow arrays.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, downcast_integer_array};
use arrow_schema::DataType;

use super::scalar::{dictionary_entry, text};
use crate::cell::Cell;
use crate::error::{Parsed, shown};
use crate::number::{self, NULL_NUMBER};

/// What numbers of files become: probabilities and the like (`f64`), or counts (`u32`).
pub(crate) trait FromNumber: Copy + Default {
    fn from_real(value: f64) -> Parsed<Self>;
    fn from_signed(value: i64) -> Parsed<Self>;
    fn from_unsigned(value: u64) -> Parsed<Self>;
}

impl FromNumber for f64 {
    #[inline]
    fn from_real(value: f64) -> Parsed<Self> {
        Ok(value)
    }
    #[inline]
    fn from_signed(value: i64) -> Parsed<Self> {
        Ok(value as f64)
    }
    #[inline]
    fn from_unsigned(value: u64) -> Parsed<Self> {
        Ok(value as f64)
    }
}

impl FromNumber for u32 {
    #[inline]
    fn from_real(value: f64) -> Parsed<Self> {
        number::count_from_real(value)
    }
    #[inline]
    fn from_signed(value: i64) -> Parsed<Self> {
        Self::try_from(value).or_else(|_| number::count_from_integer(value.into()))
    }
    #[inline]
    fn from_unsigned(value: u64) -> Parsed<Self> {
        Self::try_from(value).or_else(|_| number::count_from_integer(value.into()))
    }
}

/// Whether a value is missing.
pub(crate) fn is_null(array: &ArrayRef, row: usize) -> bool {
    array.is_null(row) || *array.data_type() == DataType::Null
}

/// Some values of a column: those of the picked rows, or else all from row `first` on.
pub(crate) struct ColumnSlice<'a> {
    pub(crate) array: &'a ArrayRef,
    pub(crate) first: usize,
    pub(crate) picked: Option<&'a [usize]>,
}

impl ColumnSlice<'_> {
    /// Writes the numbers to every `width`th place of `out`, beginning with `key`. An error has the row and the reason.
    pub(crate) fn write_numbers<T: FromNumber>(
        &self,
        out: &mut [T],
        width: usize,
        key: usize,
    ) -> Result<(), (usize, String)> {
        macro_rules! numbers {
            ($type:ty, $convert:expr) => {
                self.write::<$type, T>(out, width, key, $convert)
            };
        }
        match self.array.data_type() {
            DataType::Float64 => numbers!(Float64Type, T::from_real),
            DataType::Float32 => numbers!(Float32Type, |x| T::from_real(f64::from(x))),
            DataType::Float16 => numbers!(Float16Type, |x| T::from_real(x.to_f64())),
            DataType::Int8 => numbers!(Int8Type, |i| T::from_signed(i.into())),
            DataType::Int16 => numbers!(Int16Type, |i| T::from_signed(i.into())),
            DataType::Int32 => numbers!(Int32Type, |i| T::from_signed(i.into())),
            DataType::Int64 => numbers!(Int64Type, T::from_signed),
            DataType::UInt8 => numbers!(UInt8Type, |i| T::from_unsigned(i.into())),
            DataType::UInt16 => numbers!(UInt16Type, |i| T::from_unsigned(i.into())),
            DataType::UInt32 => numbers!(UInt32Type, |i| T::from_unsigned(i.into())),
            DataType::UInt64 => numbers!(UInt64Type, T::from_unsigned),
            DataType::Decimal128(_, scale) => {
                let unit = 10_f64.powi(i32::from(*scale));
                numbers!(Decimal128Type, |i| T::from_real(i as f64 / unit))
            }
            DataType::Boolean => {
                self.check_nulls(out.len() / width)?;
                let values = self.array.as_boolean();
                for (i, place) in out.iter_mut().skip(key).step_by(width).enumerate() {
                    let row = self.row(i);
                    *place = T::from_unsigned(values.value(row).into()).map_err(|why| (row, why))?;
                }
                Ok(())
            }
            other => {
                let row = self.row(0);
                let shown = match cell(self.array, row) {
                    Ok(cell) => cell.text().map_or_else(|| "null".to_owned(), |text| shown(&text)),
                    Err(_) => "the value".to_owned(),
                };
                Err((row, format!("{shown} is not a number: the column's type is {other}")))
            }
        }
    }

    /// The row of the `i`th value.
    fn row(&self, i: usize) -> usize {
        self.picked.map_or(self.first + i, |rows| rows.get(i).copied().unwrap_or_default())
    }

    fn check_nulls(&self, rows: usize) -> Result<(), (usize, String)> {
        if self.array.null_count() > 0
            && let Some(row) = (0..rows).map(|i| self.row(i)).find(|&row| self.array.is_null(row))
        {
            return Err((row, NULL_NUMBER.to_owned()));
        }
        Ok(())
    }

    #[inline]
    fn write<A: ArrowPrimitiveType, T: FromNumber>(
        &self,
        out: &mut [T],
        width: usize,
        key: usize,
        convert: impl Fn(A::Native) -> Parsed<T>,
    ) -> Result<(), (usize, String)> {
        self.check_nulls(out.len() / width)?;
        let values: &[A::Native] = self.array.as_primitive::<A>().values();
        let rows = out.chunks_exact_mut(width);
        match self.picked {
            None => {
                for (i, (row, &value)) in rows.zip(&values[self.first..]).enumerate() {
                    row[key] = convert(value).map_err(|why| (self.first + i, why))?;
                }
            }
            Some(picked) => {
                for (row, &from) in rows.zip(picked) {
                    row[key] = convert(values[from]).map_err(|why| (from, why))?;
                }
            }
        }
        Ok(())
    }
}

/// One value of a scalar column, or what is wrong with its type.
pub(crate) fn cell(array: &ArrayRef, row: usize) -> Parsed<Cell<'_>> {
    if is_null(array, row) {
        return Ok(Cell::Null);
    }
    let values = array.as_ref();
    downcast_integer_array! {
        values => Ok(Cell::from_integer(i128::from(values.value(row)))),
        DataType::Boolean => Ok(Cell::Bool(array.as_boolean().value(row))),
        DataType::Float16 => Ok(Cell::Real(array.as_primitive::<Float16Type>().value(row).to_f64())),
        DataType::Float32 => Ok(Cell::Real(array.as_primitive::<Float32Type>().value(row).into())),
        DataType::Float64 => Ok(Cell::Real(array.as_primitive::<Float64Type>().value(row))),
        DataType::Dictionary(..) => {
            // The key is not null: that was checked above.
            let (values, entry) = dictionary_entry(array, row)?;
            cell(values, entry)
        }
        _ => match text(array, row) {
            Ok(text) => Ok(text.map_or(Cell::Null, Cell::Text)),
            Err(why) => Err(format!("{why}: store text or numbers")),
        },
    }
}
