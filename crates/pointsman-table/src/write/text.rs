//! Rows as text: CSV and JSONL.

use std::io::{self, Write};

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
            if matches!(column, Column::Input(values) if !values.has(row)) {
                continue;
            }
            write!(out, "{separator}{key}:")?;
            separator = ',';
            match column {
                Column::Text(values) => serde_json::to_writer(&mut out, &values[row])?,
                // JSON has no infinities and no NaN: the library writes null.
                Column::Real(values) => serde_json::to_writer(&mut out, &values[row])?,
                Column::Count(values) => write!(out, "{}", values[row])?,
                Column::Input(values) => values.write_json(row, &mut out).map_err(|e| misfit(place, row, e))?,
            }
        }
        out.extend_from_slice(if separator == '{' { b"{}\n" } else { b"}\n" });
    }
    Ok(out)
}

/// The shortest text that reads back as the same number.
fn write_real(out: &mut Vec<u8>, value: f64) -> io::Result<()> {
    if value.is_finite() { Ok(serde_json::to_writer(out, &value)?) } else { write!(out, "{value}") }
}
