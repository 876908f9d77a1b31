//! Rows as text: CSV and JSONL.

use std::io::{self, Write};

use arrow_array::temporal_conversions::timestamp_us_to_datetime;

use super::column::Column;
use crate::error::misfit;

pub(super) fn csv_writer(delimiter: u8, text: Vec<u8>) -> ::csv::Writer<Vec<u8>> {
    ::csv::WriterBuilder::new().delimiter(delimiter).from_writer(text)
}

/// Rows of CSV, appended to the text `above`.
pub(super) fn csv_rows(delimiter: u8, above: Vec<u8>, columns: &[Column], rows: usize) -> io::Result<Vec<u8>> {
    let mut writer = csv_writer(delimiter, above);
    let mut field = Vec::new();
    for row in 0..rows {
        for (place, column) in columns.iter().enumerate() {
            field.clear();
            match column {
                Column::Text(values) => field.extend_from_slice(values[row].as_bytes()),
                Column::Real(values) if values[row].is_nan() => {}
                Column::Real(values) => write_real(&mut field, values[row])?,
                Column::Count(values) => write!(field, "{}", values[row])?,
                Column::Integer(values) => write!(field, "{}", values[row])?,
                Column::Time(values) => field.extend_from_slice(time(values[row])?.as_bytes()),
                Column::Json(values) => field.extend_from_slice(values[row].as_deref().unwrap_or_default().as_bytes()),
                Column::Input(values) => values.write_text(row, &mut field).map_err(|e| misfit(place, row, e))?,
            }
            writer.write_field(&field)?;
        }
        writer.write_record(None::<&[u8]>)?;
    }
    writer.into_inner().map_err(|e| io::Error::other(e.to_string()))
}

/// Rows of JSONL.
pub(super) fn jsonl_rows(keys: &[String], columns: &[Column], rows: usize) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    for row in 0..rows {
        let mut separator = '{';
        for (place, (column, key)) in columns.iter().zip(keys).enumerate() {
            let is_missing = match column {
                Column::Input(values) => !values.has(row),
                Column::Json(values) => values[row].is_none(),
                _ => false,
            };
            if is_missing {
                continue;
            }
            write!(out, "{separator}{key}:")?;
            separator = ',';
            match column {
                Column::Text(values) => serde_json::to_writer(&mut out, &values[row])?,
                // JSON has no infinities and no NaN: the library writes null.
                Column::Real(values) => serde_json::to_writer(&mut out, &values[row])?,
                Column::Count(values) => write!(out, "{}", values[row])?,
                Column::Integer(values) => write!(out, "{}", values[row])?,
                Column::Time(values) => serde_json::to_writer(&mut out, &time(values[row])?)?,
                Column::Json(values) => out.write_all(values[row].as_deref().unwrap_or("null").as_bytes())?,
                Column::Input(values) => values.write_json(row, &mut out).map_err(|e| misfit(place, row, e))?,
            }
        }
        out.extend_from_slice(if separator == '{' { b"{}\n" } else { b"}\n" });
    }
    Ok(out)
}

/// A time in microseconds since 1970 as text such as `2026-01-31T12:00:00.5Z`.
fn time(micros: i64) -> io::Result<String> {
    let out_of_range = || io::Error::new(io::ErrorKind::InvalidData, format!("{micros} µs since 1970 is not a time"));
    Ok(format!("{:?}Z", timestamp_us_to_datetime(micros).ok_or_else(out_of_range)?))
}

/// The shortest text that reads back as the same number.
fn write_real(out: &mut Vec<u8>, value: f64) -> io::Result<()> {
    if value.is_finite() { Ok(serde_json::to_writer(out, &value)?) } else { write!(out, "{value}") }
}
