//! Single values of Arrow arrays as text: everything but lists, structs and maps.

use std::borrow::Cow;
use std::fmt::{Display, Write};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DurationMicrosecondType,
    DurationMillisecondType, DurationNanosecondType, DurationSecondType, Float16Type, Float32Type, Float64Type,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, downcast_integer_array};
use arrow_schema::{DataType, TimeUnit};

use crate::error::Parsed;

/// A value as text, `None` if it is missing: dates, times and durations as in ISO 8601, bytes in hexadecimal. A timestamp with a time
/// zone is an instant, and is written in UTC.
pub(super) fn text(array: &ArrayRef, row: usize) -> Parsed<Option<Cow<'_, str>>> {
    if array.is_null(row) {
        return Ok(None);
    }
    macro_rules! value {
        ($type:ty) => {
            array.as_primitive::<$type>().value(row)
        };
    }
    macro_rules! decimal {
        ($type:ty) => {
            Cow::Owned(array.as_primitive::<$type>().value_as_string(row))
        };
    }
    // The ISO 8601 form is `Debug` of dates and times, and `Display` of durations.
    macro_rules! moment {
        ($type:ty, $read:ident, $form:literal) => {{
            let values = array.as_primitive::<$type>();
            let moment = values.$read(row).ok_or_else(|| out_of_range(values.value(row), array))?;
            Cow::Owned(format!($form, moment))
        }};
    }
    macro_rules! timestamp {
        ($type:ty, $zone:expr) => {
            match $zone {
                Some(_) => moment!($type, value_as_datetime, "{:?}Z"),
                None => moment!($type, value_as_datetime, "{:?}"),
            }
        };
    }
    use DataType as D;
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    let values = array.as_ref();
    Ok(Some(downcast_integer_array! {
        values => Cow::Owned(values.value(row).to_string()),
        D::Null => return Ok(None),
        D::Boolean => Cow::Borrowed(if array.as_boolean().value(row) { "true" } else { "false" }),
        D::Float16 => Cow::Owned(value!(Float16Type).to_string()),
        D::Float32 => real(value!(Float32Type), value!(Float32Type).is_finite()),
        D::Float64 => real(value!(Float64Type), value!(Float64Type).is_finite()),
        D::Decimal32(..) => decimal!(Decimal32Type),
        D::Decimal64(..) => decimal!(Decimal64Type),
        D::Decimal128(..) => decimal!(Decimal128Type),
        D::Decimal256(..) => decimal!(Decimal256Type),
        D::Utf8 => Cow::Borrowed(array.as_string::<i32>().value(row)),
        D::LargeUtf8 => Cow::Borrowed(array.as_string::<i64>().value(row)),
        D::Utf8View => Cow::Borrowed(array.as_string_view().value(row)),
        D::Binary => hexadecimal(array.as_binary::<i32>().value(row)),
        D::LargeBinary => hexadecimal(array.as_binary::<i64>().value(row)),
        D::BinaryView => hexadecimal(array.as_binary_view().value(row)),
        D::FixedSizeBinary(_) => hexadecimal(array.as_fixed_size_binary().value(row)),
        D::Date32 => moment!(Date32Type, value_as_date, "{:?}"),
        D::Date64 => moment!(Date64Type, value_as_datetime, "{:?}"),
        D::Time32(Second) => moment!(Time32SecondType, value_as_time, "{:?}"),
        D::Time32(Millisecond) => moment!(Time32MillisecondType, value_as_time, "{:?}"),
        D::Time64(Microsecond) => moment!(Time64MicrosecondType, value_as_time, "{:?}"),
        D::Time64(Nanosecond) => moment!(Time64NanosecondType, value_as_time, "{:?}"),
        D::Timestamp(Second, zone) => timestamp!(TimestampSecondType, zone),
        D::Timestamp(Millisecond, zone) => timestamp!(TimestampMillisecondType, zone),
        D::Timestamp(Microsecond, zone) => timestamp!(TimestampMicrosecondType, zone),
        D::Timestamp(Nanosecond, zone) => timestamp!(TimestampNanosecondType, zone),
        D::Duration(Second) => moment!(DurationSecondType, value_as_duration, "{}"),
        D::Duration(Millisecond) => moment!(DurationMillisecondType, value_as_duration, "{}"),
        D::Duration(Microsecond) => moment!(DurationMicrosecondType, value_as_duration, "{}"),
        D::Duration(Nanosecond) => moment!(DurationNanosecondType, value_as_duration, "{}"),
        D::Dictionary(..) => {
            let (values, entry) = dictionary_entry(array, row)?;
            return text(values, entry);
        }
        other => return Err(format!("type {other} cannot be written as text")),
    }))
}

/// The values of a dictionary, and the place of a row's value among them. The row's key must not be null.
pub(super) fn dictionary_entry(array: &ArrayRef, row: usize) -> Parsed<(&ArrayRef, usize)> {
    let dictionary = array.as_any_dictionary();
    let keys = dictionary.keys();
    let key = downcast_integer_array! {
        keys => usize::try_from(i128::from(keys.value(row))).ok(),
        _ => None,
    };
    let key = key.filter(|key| *key < dictionary.values().len()).ok_or("its dictionary is damaged")?;
    Ok((dictionary.values(), key))
}

/// The shortest text that reads back as the same number.
fn real<'a>(value: impl Display + serde::Serialize, is_finite: bool) -> Cow<'a, str> {
    let text = if is_finite { serde_json::to_string(&value).ok() } else { None };
    Cow::Owned(text.map_or_else(|| value.to_string(), |text| text.replace("e+", "e")))
}

fn hexadecimal<'a>(bytes: &[u8]) -> Cow<'a, str> {
    Cow::Owned(bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

fn out_of_range(value: impl Display, array: &ArrayRef) -> String {
    format!("{value} is out of range for a value of type {}", array.data_type())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::StringDictionaryBuilder;
    use arrow_array::types::Int8Type;
    use arrow_array::*;
    use arrow_buffer::i256;

    use super::*;

    fn texts(array: impl Array + 'static) -> Vec<String> {
        let array: ArrayRef = Arc::new(array);
        (0..array.len()).map(|row| text(&array, row).unwrap().map_or("-".to_owned(), Cow::into_owned)).collect()
    }

    #[test]
    fn numbers_are_written_as_the_shortest_text_that_reads_back() {
        assert_eq!(texts(Int8Array::from(vec![Some(-128), None])), ["-128", "-"]);
        assert_eq!(texts(UInt64Array::from(vec![u64::MAX])), ["18446744073709551615"]);
        let reals = [0.0, -0.0, 1.0, 0.1, 1e15, 1e16, 123_456.789, 1e-5, 1e-6, 1e300, 5e-324, f64::NAN, f64::INFINITY];
        let wanted = ["0.0", "-0.0", "1.0", "0.1", "1000000000000000.0", "1e16", "123456.789", "0.00001", "1e-6"];
        assert_eq!(texts(Float64Array::from(reals.to_vec()))[..9], wanted);
        assert_eq!(texts(Float64Array::from(reals.to_vec()))[9..], ["1e300", "5e-324", "NaN", "inf"]);
        assert_eq!(texts(Float32Array::from(vec![0.1, 3e10, f32::NEG_INFINITY])), ["0.1", "30000000000.0", "-inf"]);
        let halves = [1.0, 0.5, 65504.0].map(half::f16::from_f32);
        assert_eq!(texts(Float16Array::from(halves.to_vec())), ["1", "0.5", "65504"]);
        let decimals = Decimal128Array::from(vec![1234, -5, 0]).with_precision_and_scale(10, 2).unwrap();
        assert_eq!(texts(decimals), ["12.34", "-0.05", "0.00"]);
        assert_eq!(texts(Decimal32Array::from(vec![7]).with_precision_and_scale(5, -2).unwrap()), ["700"]);
        let large = Decimal256Array::from(vec![i256::from_i128(i128::MAX)]).with_precision_and_scale(50, 3).unwrap();
        assert_eq!(texts(large), ["170141183460469231731687303715884105.727"]);
        assert_eq!(texts(BooleanArray::from(vec![true, false])), ["true", "false"]);
        assert_eq!(texts(NullArray::new(1)), ["-"]);
    }

    #[test]
    fn bytes_are_written_in_hexadecimal_and_text_as_it_is() {
        assert_eq!(texts(LargeStringArray::from(vec!["é", ""])), ["é", ""]);
        assert_eq!(texts(StringViewArray::from(vec!["a text that is longer than a view"])).len(), 1);
        let bytes = vec![&b"\x00\xffa"[..], b""];
        assert_eq!(texts(BinaryArray::from(bytes.clone())), ["00ff61", ""]);
        assert_eq!(texts(LargeBinaryArray::from(bytes.clone())), ["00ff61", ""]);
        assert_eq!(texts(BinaryViewArray::from(bytes)), ["00ff61", ""]);
        let fixed = FixedSizeBinaryArray::try_from_iter([[1_u8, 2], [3, 255]].iter()).unwrap();
        assert_eq!(texts(fixed), ["0102", "03ff"]);
        let mut dictionary = StringDictionaryBuilder::<Int8Type>::new();
        dictionary.append_value("x");
        dictionary.append_null();
        assert_eq!(texts(dictionary.finish()), ["x", "-"]);
    }

    #[test]
    fn dates_and_times_are_written_as_in_iso_8601() {
        assert_eq!(texts(Date32Array::from(vec![0, 20_000, -1])), ["1970-01-01", "2024-10-04", "1969-12-31"]);
        assert_eq!(texts(Date64Array::from(vec![1_500])), ["1970-01-01T00:00:01.500"]);
        assert_eq!(texts(Time32SecondArray::from(vec![3_661])), ["01:01:01"]);
        assert_eq!(texts(Time32MillisecondArray::from(vec![1])), ["00:00:00.001"]);
        assert_eq!(texts(Time64MicrosecondArray::from(vec![1])), ["00:00:00.000001"]);
        assert_eq!(texts(Time64NanosecondArray::from(vec![1])), ["00:00:00.000000001"]);
        assert_eq!(texts(TimestampSecondArray::from(vec![0])), ["1970-01-01T00:00:00"]);
        assert_eq!(texts(TimestampMillisecondArray::from(vec![-1])), ["1969-12-31T23:59:59.999"]);
        assert_eq!(texts(TimestampMicrosecondArray::from(vec![1])), ["1970-01-01T00:00:00.000001"]);
        assert_eq!(texts(TimestampNanosecondArray::from(vec![1])), ["1970-01-01T00:00:00.000000001"]);
        assert_eq!(texts(DurationSecondArray::from(vec![90, -1])), ["PT90S", "-PT1S"]);
        assert_eq!(texts(DurationMillisecondArray::from(vec![1_500])), ["PT1.5S"]);
        assert_eq!(texts(DurationMicrosecondArray::from(vec![1])), ["PT0.000001S"]);
        assert_eq!(texts(DurationNanosecondArray::from(vec![0])), ["P0D"]);
    }

    #[test]
    fn instants_are_written_in_utc_in_every_zone() {
        for zone in ["UTC", "Z", "+02:00", "Europe/Berlin", "Mars/Olympus_Mons", ""] {
            let array = TimestampMicrosecondArray::from(vec![1_700_000_000_500_000]).with_timezone(zone);
            assert_eq!(texts(array), ["2023-11-14T22:13:20.500Z"], "{zone}");
        }
    }

    #[test]
    fn values_that_cannot_be_written_are_named() {
        let late: ArrayRef = Arc::new(TimestampSecondArray::from(vec![i64::MAX]));
        assert!(text(&late, 0).unwrap_err().contains("9223372036854775807 is out of range"));
        let intervals: ArrayRef = Arc::new(IntervalYearMonthArray::from(vec![1]));
        assert!(text(&intervals, 0).unwrap_err().contains("type Interval(YearMonth) cannot be written as text"));
    }
}
