//! Single values and columns of numbers out of Arrow arrays.

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use crate::arrow_scalar::{dictionary_entry, text};
use crate::cell::Cell;
use crate::error::shown;
use crate::number;

/// What numbers become: probabilities and the like, or counts.
pub(crate) trait Target: Copy + Default {
    fn of_real(value: f64) -> Result<Self, String>;
    fn of_signed(value: i64) -> Result<Self, String>;
    fn of_unsigned(value: u64) -> Result<Self, String>;
}

impl Target for f64 {
    #[inline]
    fn of_real(value: f64) -> Result<Self, String> {
        Ok(value)
    }
    #[inline]
    fn of_signed(value: i64) -> Result<Self, String> {
        Ok(value as f64)
    }
    #[inline]
    fn of_unsigned(value: u64) -> Result<Self, String> {
        Ok(value as f64)
    }
}

impl Target for u32 {
    #[inline]
    fn of_real(value: f64) -> Result<Self, String> {
        number::count(value)
    }
    #[inline]
    fn of_signed(value: i64) -> Result<Self, String> {
        Self::try_from(value).or_else(|_| number::whole(value.into()))
    }
    #[inline]
    fn of_unsigned(value: u64) -> Result<Self, String> {
        Self::try_from(value).or_else(|_| number::whole(value.into()))
    }
}

/// Whether a value is missing, be it in the array or in its dictionary.
pub(crate) fn is_null(array: &ArrayRef, row: usize) -> bool {
    array.is_null(row) || *array.data_type() == DataType::Null
}

/// Writes numbers of a column into every `width`th place of `out`, beginning with `key`: those of the `picked`
/// rows, or else all from row `first` on. On failure it gives the row and the reason.
pub(crate) fn write_column<T: Target>(
    array: &ArrayRef,
    first: usize,
    picked: Option<&[usize]>,
    out: &mut [T],
    width: usize,
    key: usize,
) -> Result<(), (usize, String)> {
    let job = Job { array, first, picked, width, key };
    match array.data_type() {
        DataType::Float64 => job.write::<Float64Type, T>(out, T::of_real),
        DataType::Float32 => job.write::<Float32Type, T>(out, |x| T::of_real(f64::from(x))),
        DataType::Float16 => job.write::<Float16Type, T>(out, |x| T::of_real(x.to_f64())),
        DataType::Int8 => job.write::<Int8Type, T>(out, |i| T::of_signed(i.into())),
        DataType::Int16 => job.write::<Int16Type, T>(out, |i| T::of_signed(i.into())),
        DataType::Int32 => job.write::<Int32Type, T>(out, |i| T::of_signed(i.into())),
        DataType::Int64 => job.write::<Int64Type, T>(out, T::of_signed),
        DataType::UInt8 => job.write::<UInt8Type, T>(out, |i| T::of_unsigned(i.into())),
        DataType::UInt16 => job.write::<UInt16Type, T>(out, |i| T::of_unsigned(i.into())),
        DataType::UInt32 => job.write::<UInt32Type, T>(out, |i| T::of_unsigned(i.into())),
        DataType::UInt64 => job.write::<UInt64Type, T>(out, T::of_unsigned),
        DataType::Decimal128(_, scale) => {
            let unit = 10_f64.powi(i32::from(*scale));
            job.write::<Decimal128Type, T>(out, |i| T::of_real(i as f64 / unit))
        }
        DataType::Boolean => {
            job.check_nulls(out.len())?;
            let values = array.as_boolean();
            for (i, place) in out.iter_mut().skip(key).step_by(width).enumerate() {
                let row = job.row(i);
                *place = T::of_unsigned(values.value(row).into()).map_err(|why| (row, why))?;
            }
            Ok(())
        }
        other => {
            let row = job.row(0);
            let shown = match cell(array, row) {
                Ok(Cell::Null) => "null".to_owned(),
                Ok(cell) => cell.text().map_or_else(|| "null".to_owned(), |text| shown(&text)),
                Err(_) => "the value".to_owned(),
            };
            Err((row, format!("{shown} is not a number: the column's type is {other}")))
        }
    }
}

struct Job<'a> {
    array: &'a ArrayRef,
    first: usize,
    picked: Option<&'a [usize]>,
    width: usize,
    key: usize,
}

impl Job<'_> {
    fn row(&self, i: usize) -> usize {
        self.picked.map_or(self.first + i, |rows| rows.get(i).copied().unwrap_or_default())
    }

    fn check_nulls(&self, places: usize) -> Result<(), (usize, String)> {
        if self.array.null_count() > 0
            && let Some(row) = (0..places / self.width).map(|i| self.row(i)).find(|&row| self.array.is_null(row))
        {
            return Err((row, "null: a number is needed".to_owned()));
        }
        Ok(())
    }

    #[inline]
    fn write<A: ArrowPrimitiveType, T: Target>(
        &self,
        out: &mut [T],
        convert: impl Fn(A::Native) -> Result<T, String>,
    ) -> Result<(), (usize, String)> {
        self.check_nulls(out.len())?;
        let values: &[A::Native] = self.array.as_primitive::<A>().values();
        let rows = out.chunks_exact_mut(self.width);
        match self.picked {
            None => {
                for (i, (row, &value)) in rows.zip(&values[self.first..]).enumerate() {
                    row[self.key] = convert(value).map_err(|why| (self.first + i, why))?;
                }
            }
            Some(picked) => {
                for (row, &from) in rows.zip(picked) {
                    row[self.key] = convert(values[from]).map_err(|why| (from, why))?;
                }
            }
        }
        Ok(())
    }
}

/// One value of a scalar column; what is wrong with its type otherwise.
pub(crate) fn cell(array: &ArrayRef, row: usize) -> Result<Cell<'_>, String> {
    if is_null(array, row) {
        return Ok(Cell::Null);
    }
    match array.data_type() {
        DataType::Boolean => Ok(Cell::Bool(array.as_boolean().value(row))),
        DataType::Int8 => Ok(Cell::Int(array.as_primitive::<Int8Type>().value(row).into())),
        DataType::Int16 => Ok(Cell::Int(array.as_primitive::<Int16Type>().value(row).into())),
        DataType::Int32 => Ok(Cell::Int(array.as_primitive::<Int32Type>().value(row).into())),
        DataType::Int64 => Ok(Cell::Int(array.as_primitive::<Int64Type>().value(row))),
        DataType::UInt8 => Ok(Cell::Int(array.as_primitive::<UInt8Type>().value(row).into())),
        DataType::UInt16 => Ok(Cell::Int(array.as_primitive::<UInt16Type>().value(row).into())),
        DataType::UInt32 => Ok(Cell::Int(array.as_primitive::<UInt32Type>().value(row).into())),
        DataType::UInt64 => {
            let value = array.as_primitive::<UInt64Type>().value(row);
            Ok(i64::try_from(value).map_or_else(|_| Cell::Text(Cow::Owned(value.to_string())), Cell::Int))
        }
        DataType::Float16 => Ok(Cell::Real(array.as_primitive::<Float16Type>().value(row).to_f64())),
        DataType::Float32 => Ok(Cell::Real(array.as_primitive::<Float32Type>().value(row).into())),
        DataType::Float64 => Ok(Cell::Real(array.as_primitive::<Float64Type>().value(row))),
        DataType::Dictionary(..) => {
            // The null check above covers the keys.
            let (values, entry) = dictionary_entry(array, row)?;
            cell(values, entry)
        }
        _ => match text(array, row) {
            Ok(text) => Ok(text.map_or(Cell::Null, Cell::Text)),
            Err(why) => Err(format!("{why}: store text or numbers")),
        },
    }
}
