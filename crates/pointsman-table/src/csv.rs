//! CSV and TSV: a header, then one row a record, every value text.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Chain, Read};

use ::csv::{ByteRecord, Reader, ReaderBuilder};

use crate::batch::Raw;
use crate::cell::{Cell, Gate};
use crate::error::{Error, Result, RowAt};
use crate::input::{Bytes, Counted, Input};
use crate::input_column::{InputColumn, empty_csv};
use crate::layout::{At, Field, Hints, Layout, Part, Shape};
use crate::number;
use crate::options::{Delimiter, ReadOptions};
use crate::read::{Progress, Source};

pub(crate) struct CsvSource {
    records: Records,
    layout: Layout,
    /// The columns' names and whether they promise numbers, if all columns are kept.
    keep: Option<Vec<(String, bool)>>,
}

pub(crate) fn open(input: Input, delimiter: Delimiter, options: &ReadOptions) -> Result<CsvSource> {
    let records = Records::open(input, delimiter)?;
    let fields: Vec<Field> =
        records.header.iter().map(|name| Field { name: name.clone(), shape: Shape::Scalar }).collect();
    let layout = Layout::find(&records.name, &fields, Hints::default(), options)?;
    let promises = |name: &String| (name.clone(), options.columns.has_role(name, true, &layout.classes));
    let keep = options.keep_columns.then(|| layout.names.iter().map(promises).collect());
    Ok(CsvSource { records, layout, keep })
}

impl Source for CsvSource {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn fill(&mut self, limit: usize, gate: &mut Gate, out: &mut Raw) -> Result<usize> {
        let layout = &self.layout;
        for read in 0..limit {
            let Some((at, record)) = self.records.next()? else { return Ok(read) };
            if !gate.is_open() && !gate.keeps(|i| cell(at, layout, record, layout.filters[i]))? {
                if layout.dropped_ids
                    && let Some(field) = layout.id
                {
                    out.dropped_ids.push(id(at, layout, record, field)?);
                }
                continue;
            }
            out.rows.push(at.row);
            out.lines.push(at.line.unwrap_or_default());
            reals(at, &layout.probs, record, &mut out.probs)?;
            if let Some(part) = &layout.votes {
                for (key, &field) in columns(part).iter().enumerate() {
                    let count = number::count_from_text(&record[field]);
                    out.votes.push(count.map_err(|why| at.value(part.column(at.row, Some(key)), why))?);
                }
            }
            if let Some(part) = &layout.truth {
                reals(at, part, record, &mut out.truth)?;
            }
            if let Some(part) = &layout.features {
                numbers(at, part, record, number::feature_from_text, &mut out.features)?;
            }
            for ((_, part), values) in layout.oracles.iter().zip(&mut out.oracles) {
                reals(at, part, record, values)?;
            }
            if let Some(part) = &layout.weight {
                reals(at, part, record, &mut out.weights)?;
            }
            if let Some(field) = layout.id {
                out.ids.push(id(at, layout, record, field)?);
            }
            if let Some(names) = &self.keep {
                out.inputs.add_record(names, record.iter());
                if out.inputs.is_full() {
                    return Ok(read + 1);
                }
            }
        }
        Ok(limit)
    }

    fn columns(&self) -> Vec<(String, InputColumn)> {
        self.keep.as_deref().map(empty_csv).unwrap_or_default()
    }

    fn progress(&self) -> Progress {
        let bytes = &self.records.bytes;
        Progress { rows: self.records.row, total_rows: None, bytes: bytes.read(), total_bytes: bytes.total }
    }
}

/// The columns of a part; in a file of scalars every part is wide.
fn columns(part: &Part) -> &[usize] {
    match &part.at {
        At::Wide(fields) => fields,
        At::List(_) | At::Keyed(_) => &[],
    }
}

fn reals(at: RowAt<'_>, part: &Part, record: &ByteRecord, out: &mut Vec<f64>) -> Result<()> {
    numbers(at, part, record, number::real_from_text, out)
}

fn numbers(
    at: RowAt<'_>,
    part: &Part,
    record: &ByteRecord,
    read: fn(&[u8]) -> std::result::Result<f64, String>,
    out: &mut Vec<f64>,
) -> Result<()> {
    for (key, &field) in columns(part).iter().enumerate() {
        match read(&record[field]) {
            Ok(value) => out.push(value),
            Err(why) => return Err(at.value(part.column(at.row, Some(key)), why)),
        }
    }
    Ok(())
}

fn cell<'a>(at: RowAt<'_>, layout: &Layout, record: &'a ByteRecord, field: usize) -> Result<Cell<'a>> {
    let text = number::text(&record[field]).map_err(|why| at.value(&layout.names[field], why))?;
    Ok(Cell::Text(Cow::Borrowed(text.trim())))
}

fn id(at: RowAt<'_>, layout: &Layout, record: &ByteRecord, field: usize) -> Result<String> {
    cell(at, layout, record, field)?.id().map(Cow::into_owned).map_err(|why| at.value(&layout.names[field], why))
}

/// The most bytes of one record: a quote never closed need not be held in memory to be told so.
const LONGEST: u64 = 1 << 26;

const UNCLOSED: &str = "a quote that opens here is never closed: close it, or double a quote that is meant literally";

/// Bytes that end in an error after a ration, which each record gets anew.
struct Rationed {
    inner: Chain<BufReader<Counted>, &'static [u8]>,
    left: u64,
    /// Whether the end was reached.
    ended: bool,
}

impl Read for Rationed {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::other("a record is longer than 64 MB: is a quote never closed?"));
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.len());
        let n = self.inner.read(&mut buf[..most])?;
        self.left -= n as u64;
        self.ended |= n == 0 && most > 0;
        Ok(n)
    }
}

/// The records of a CSV file, each as long as the header.
pub(crate) struct Records {
    pub(crate) name: String,
    pub(crate) header: Vec<String>,
    reader: Reader<Rationed>,
    record: ByteRecord,
    bytes: Bytes,
    /// Whether lines end in CRLF.
    crlf: bool,
    /// The last row read, counted from one.
    row: u64,
}

impl Records {
    pub(crate) fn open(input: Input, delimiter: Delimiter) -> Result<Self> {
        let name = input.name.clone();
        let (mut stream, bytes) = input.stream();
        let start = stream.fill_buf().map_err(|e| Error::io(&name, e))?;
        let crlf = start.iter().position(|b| *b == b'\n').is_some_and(|i| i > 0 && start[i - 1] == b'\r');
        // With its last line ended like the others, lines can be counted alike throughout.
        let inner = stream.chain(if crlf { b"\r\n".as_slice() } else { b"\n".as_slice() });
        let stream = Rationed { inner, left: LONGEST, ended: false };
        // Rows of another length are reported by this reader, which can say what to do.
        let mut reader =
            ReaderBuilder::new().delimiter(delimiter.byte()).has_headers(false).flexible(true).from_reader(stream);
        let mut record = ByteRecord::new();
        if !reader.read_byte_record(&mut record).map_err(|e| Error::file(&name, e.to_string()))? {
            return Err(Error::file(&name, "is empty: it needs a header and rows"));
        }
        if reader.get_ref().ended {
            return Err(Error::file(&name, format!("header: {UNCLOSED}")));
        }
        let header: std::result::Result<Vec<String>, String> =
            record.iter().map(|field| number::text(field).map(|name| name.trim().to_owned())).collect();
        let header = header.map_err(|why| Error::file(&name, format!("header: {why}")))?;
        Ok(Self { name, header, reader, record, bytes, crlf, row: 0 })
    }

    pub(crate) fn next(&mut self) -> Result<Option<(RowAt<'_>, &ByteRecord)>> {
        self.reader.get_mut().left = LONGEST;
        let more = self.reader.read_byte_record(&mut self.record);
        if !more.map_err(|e| Error::file(&self.name, format!("after row {}: {e}", self.row)))? {
            return Ok(None);
        }
        self.row += 1;
        // The library's own line numbers are those before blank lines are skipped, and count CRLF late: a record
        // is over at CR, but its line at LF.
        let after = self.reader.position().line() - u64::from(!self.crlf);
        let within = self.record.as_slice().iter().filter(|b| **b == b'\n').count() as u64;
        // A quote never closed swallows the last line's end: at least the record is no earlier than that.
        let before = self.record.position().map_or(1, ::csv::Position::line);
        let at = RowAt { file: &self.name, row: self.row, line: Some(after.saturating_sub(within).max(before)) };
        // Every line ends, so a record that goes on to the end of the file is within a quote.
        if self.reader.get_ref().ended {
            return Err(at.row(UNCLOSED));
        }
        if self.record.len() != self.header.len() {
            return Err(at.row(format!(
                "{} values, but the header has {} columns: quote values that contain the separator",
                self.record.len(),
                self.header.len()
            )));
        }
        Ok(Some((at, &self.record)))
    }
}
