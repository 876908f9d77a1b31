//! CSV and TSV: a header, then one row a record, every value text.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Chain, Read};

use ::csv::{ByteRecord, Reader, ReaderBuilder};

use crate::batch::Raw;
use crate::cell::{Cell, Gate};
use crate::error::{Error, Result, RowAt, shown};
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
    /// The columns that nothing uses and whose values so far are numbers, with whether there were any.
    spare: Vec<(usize, bool)>,
    /// What the probabilities of this file have for a decimal sign, once one shows it.
    sign: Option<DecimalSign>,
}

/// What stands before the decimals of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DecimalSign {
    Point,
    /// As spreadsheets write in many countries, where something else than a comma separates the columns.
    Comma,
}

impl DecimalSign {
    /// The sign that some values have, if any has one.
    fn of<'a>(mut values: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        values.find_map(|value| match (value.contains(&b','), value.contains(&b'.')) {
            (true, false) => Some(Self::Comma),
            (false, true) => Some(Self::Point),
            _ => None,
        })
    }
}

/// Rows that are looked at to tell which columns are numbers.
const ROWS_TO_FIND_NUMBERS: u64 = 100;

pub(crate) fn open(input: Input, delimiter: Delimiter, options: &ReadOptions) -> Result<CsvSource> {
    let records = Records::open(input, delimiter)?;
    let fields: Vec<Field> =
        records.header.iter().map(|name| Field { name: name.clone(), shape: Shape::Scalar }).collect();
    let layout = Layout::find(&records.name, &fields, Hints::default(), options)?;
    let promises = |name: &String| (name.clone(), options.columns.has_role(name, true, &layout.classes));
    let keep = options.keep_columns.then(|| layout.names.iter().map(promises).collect());
    let spare = layout.spare.iter().map(|&field| (field, false)).collect();
    // Where commas separate columns, they separate no decimals.
    let sign = (delimiter == Delimiter::COMMA).then_some(DecimalSign::Point);
    Ok(CsvSource { records, layout, keep, spare, sign })
}

impl Source for CsvSource {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn fill(&mut self, limit: usize, gate: &mut Gate, out: &mut Raw) -> Result<usize> {
        let layout = &self.layout;
        for read in 0..limit {
            let Some((at, record)) = self.records.next()? else { return Ok(read) };
            if at.row <= ROWS_TO_FIND_NUMBERS {
                self.spare.retain_mut(|(field, found)| {
                    let text = record[*field].trim_ascii();
                    *found |= !text.is_empty();
                    text.is_empty() || number::real_from_text(text).is_ok()
                });
            }
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
            if self.sign.is_none() {
                self.sign = DecimalSign::of(columns(&layout.probs).iter().map(|&field| &record[field]));
            }
            let with_points;
            let record = match self.sign {
                Some(DecimalSign::Comma) => {
                    with_points = points_for_commas(at, layout, record)?;
                    &with_points
                }
                _ => record,
            };
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
                numbers(at, part, record, number::answer_from_text, values)?;
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

    fn unused_numeric(&self) -> Vec<String> {
        let found = self.spare.iter().filter(|(_, found)| *found);
        found.map(|(field, _)| self.layout.names[*field].clone()).collect()
    }

    fn progress(&self) -> Progress {
        let bytes = &self.records.bytes;
        Progress { rows: self.records.row, total_rows: None, bytes: bytes.read(), total_bytes: bytes.total }
    }
}

/// The record with points in the place of the decimal commas of its numbers. A number with a point is refused: it may separate thousands.
fn points_for_commas(at: RowAt<'_>, layout: &Layout, record: &ByteRecord) -> Result<ByteRecord> {
    let parts = [Some(&layout.probs), layout.truth.as_ref(), layout.features.as_ref(), layout.weight.as_ref()];
    let parts = parts.into_iter().flatten().chain(layout.oracles.iter().map(|(_, part)| part));
    let mut fields: Vec<Vec<u8>> = record.iter().map(<[u8]>::to_vec).collect();
    for (part, key, field) in
        parts.flat_map(|part| columns(part).iter().enumerate().map(move |(key, &i)| (part, key, i)))
    {
        if fields[field].contains(&b'.') {
            let text = String::from_utf8_lossy(&fields[field]).into_owned();
            let why = format!(
                "{} has a point, but other numbers of the file have decimal commas: use one of them",
                shown(&text)
            );
            return Err(at.value(part.column(at.row, Some(key)), why));
        }
        // One comma is a decimal sign; several are refused as no number.
        if let Some(place) = fields[field].iter().position(|byte| *byte == b',') {
            fields[field][place] = b'.';
        }
    }
    Ok(ByteRecord::from(fields))
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

/// Bytes that end in an error after a ration, which each record gets anew, and whose lines are counted.
struct Rationed {
    inner: Chain<BufReader<Counted>, &'static [u8]>,
    left: u64,
    /// Whether the end was reached.
    ended: bool,
    /// The bytes read last, and how many came before them.
    recent: Vec<u8>,
    before: u64,
    /// Line ends among the bytes before this one.
    lines: u64,
    counted: u64,
}

impl Rationed {
    fn new(inner: Chain<BufReader<Counted>, &'static [u8]>) -> Self {
        Self { inner, left: LONGEST, ended: false, recent: Vec::new(), before: 0, lines: 0, counted: 0 }
    }

    /// How many lines end before a byte, which is not before the one asked for last, nor beyond those read.
    fn lines_before(&mut self, byte: u64) -> u64 {
        let place = |byte: u64| usize::try_from(byte.saturating_sub(self.before)).unwrap_or(usize::MAX);
        let range = place(self.counted)..place(byte).min(self.recent.len());
        self.lines += self.recent.get(range).map_or(0, |bytes| bytes.iter().filter(|b| **b == b'\n').count() as u64);
        self.counted = self.counted.max(byte);
        self.lines
    }
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
        if n > 0 {
            // Whoever reads on has no use for what was read before.
            let end = self.before + self.recent.len() as u64;
            self.lines_before(end);
            self.recent.clear();
            self.recent.extend_from_slice(&buf[..n]);
            self.before = end;
        }
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
    /// The last row read, counted from one.
    row: u64,
}

impl Records {
    pub(crate) fn open(input: Input, delimiter: Delimiter) -> Result<Self> {
        let name = input.name.clone();
        let (stream, bytes) = input.stream();
        Self::read(name, stream, bytes, delimiter)
    }

    /// The same, separated by what the header has if it does not have the usual delimiter.
    pub(crate) fn detect(input: Input, usual: Delimiter) -> Result<Self> {
        let name = input.name.clone();
        let (mut stream, bytes) = input.stream();
        let start = stream.fill_buf().map_err(|e| Error::io(&name, e))?;
        let header = start.split(|b| *b == b'\n').next().unwrap_or_default();
        let mut candidates = [usual, Delimiter::COMMA].into_iter().chain(Delimiter::OTHERS);
        let delimiter = candidates.find(|delimiter| header.contains(&delimiter.byte())).unwrap_or(usual);
        Self::read(name, stream, bytes, delimiter)
    }

    fn read(name: String, stream: BufReader<Counted>, bytes: Bytes, delimiter: Delimiter) -> Result<Self> {
        // Every line ends, the last one too.
        let stream = Rationed::new(stream.chain(b"\n".as_slice()));
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
        Ok(Self { name, header, reader, record, bytes, row: 0 })
    }

    pub(crate) fn next(&mut self) -> Result<Option<(RowAt<'_>, &ByteRecord)>> {
        self.reader.get_mut().left = LONGEST;
        let more = self.reader.read_byte_record(&mut self.record);
        if !more.map_err(|e| Error::file(&self.name, format!("after row {}: {e}", self.row)))? {
            return Ok(None);
        }
        self.row += 1;
        // The library's own line numbers are those before blank lines are skipped, and count CRLF late. A record ends behind its CR or LF,
        // unless it goes on to the end of the file within a quote.
        let end = self.reader.position().byte();
        let source = self.reader.get_mut();
        let last = source.lines_before(end.saturating_sub(u64::from(!source.ended))) + 1;
        let within = self.record.as_slice().iter().filter(|b| **b == b'\n').count() as u64;
        let at = RowAt { file: &self.name, row: self.row, line: Some(last.saturating_sub(within).max(1)) };
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
