//! Quotes of CSV that are not closed where their value ends.
//!
//! Such a quote takes everything up to the next quote, whole rows included, as one value.

use ::csv::ByteRecord;

use crate::number;

/// A quote that swallows more than its value.
#[derive(Debug, PartialEq)]
pub(crate) struct OpenQuote {
    /// The place of the value among those of its row.
    pub(crate) field: usize,
    /// The first line of the value, behind the quote.
    pub(crate) start: String,
    /// Line ends between the start of the record and the closing quote; `None` if there is no closing quote.
    pub(crate) lines: Option<usize>,
}

/// The first value of a record that has a line end and closes where no writer closes a value, or never; or one that holds rows.
///
/// `raw` is the record as it is in the file, with line ends around it.
pub(crate) fn find(raw: &[u8], record: &ByteRecord, delimiter: u8) -> Option<OpenQuote> {
    let is_line_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let mut at = raw.iter().position(|byte| !is_line_end(byte))?;
    let first = at;
    for field in 0.. {
        if raw.get(at) == Some(&b'"') {
            let open = at + 1;
            let close = closing_quote(raw, open);
            let value = &raw[open..close.unwrap_or(raw.len())];
            let after = close.and_then(|close| raw.get(close + 1));
            let is_closed = close.is_some() && after.is_none_or(|byte| *byte == delimiter || is_line_end(byte));
            if !is_closed && value.contains(&b'\n') || holds_rows(record, field, delimiter) {
                let line = value.split(is_line_end).next().unwrap_or_default();
                let lines = close.map(|close| raw[first..close].iter().filter(|byte| **byte == b'\n').count());
                return Some(OpenQuote { field, start: String::from_utf8_lossy(line).into_owned(), lines });
            }
            at = close? + 1;
        }
        at += raw[at..].iter().position(|byte| *byte == delimiter || is_line_end(byte))?;
        if raw[at] != delimiter {
            return None;
        }
        at += 1;
    }
    None
}

/// The place of the quote that closes a value: two quotes are one that is meant literally.
fn closing_quote(raw: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += raw.get(at..)?.iter().position(|byte| *byte == b'"')?;
        if raw.get(at + 1) != Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

/// Whether the lines of a value are rows: they have as many values as rows need, with numbers in the columns where the row has numbers.
fn holds_rows(record: &ByteRecord, field: usize, delimiter: u8) -> bool {
    let Some(value) = record.get(field).filter(|value| value.contains(&b'\n')) else { return false };
    let lines: Vec<&[u8]> = value.split(|byte| *byte == b'\n').collect();
    let is_number = |value: &[u8]| number::real_from_text(value).is_ok();
    let mut compared = false;
    for (place, line) in lines.iter().enumerate() {
        // The first line continues the row that the quote is in; the row continues the last line.
        let first = if place == 0 { field } else { 0 };
        let last = if place + 1 == lines.len() { field } else { record.len() - 1 };
        let values: Vec<&[u8]> = line.split(|byte| *byte == delimiter).collect();
        if values.len() != last + 1 - first {
            return false;
        }
        for (column, value) in (first..=last).zip(values).filter(|(column, _)| *column != field) {
            if is_number(&record[column]) {
                compared = true;
                if !is_number(value) {
                    return false;
                }
            }
        }
    }
    compared
}
