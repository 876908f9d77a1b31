//! CSV and TSV: a header, then one record per row, every value text.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Chain, Read};

use ::csv::{ByteRecord, Reader, ReaderBuilder};

use crate::cell::Cell;
use crate::error::{Error, Parsed, Result, RowAt, shown};
use crate::input::{Bytes, Counted, Input};
use crate::input_column::{InputColumn, empty_csv};
use crate::labels::Labels;
use crate::layout::{ColumnGroup, Field, Hints, LabelFields, Layout, Location, Shape, late_answer};
use crate::number;
use crate::options::{Delimiter, ReadOptions};
use crate::quotes::{self, OpenQuote};
use crate::raw::{RawRows, RowValues};
use crate::row_filter::RowFilter;
use crate::source::{Progress, Source};

pub(crate) struct CsvSource {
    records: Records,
    layout: Layout,
    labels: Labels,
    /// The columns' names and whether they hold numbers by their role, if all columns are kept.
    kept: Option<Vec<(String, bool)>>,
    /// The unused columns whose values so far are numbers, with whether there were any.
    unused_numeric: Vec<(usize, bool)>,
    /// The decimal sign of the probabilities, once one has one.
    sign: Option<DecimalSign>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DecimalSign {
    Point,
    /// Spreadsheets write it in many countries, with another delimiter than commas.
    Comma,
}

impl DecimalSign {
    /// The sign of the first value that has one.
    fn from_values<'a>(mut values: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        values.find_map(|value| match (value.contains(&b','), value.contains(&b'.')) {
            (true, false) => Some(Self::Comma),
            (false, true) => Some(Self::Point),
            _ => None,
        })
    }
}

/// Rows from which columns of numbers are recognised.
const ROWS_TO_FIND_NUMBERS: u64 = 100;

pub(crate) fn open(input: Input, delimiter: Delimiter, options: &ReadOptions) -> Result<CsvSource> {
    let records = Records::open(input, delimiter)?;
    let first =
        |i: usize| records.first.get(i).and_then(|value| number::text(value).ok()).map(|text| text.trim().to_owned());
    let field = |(i, name): (usize, &String)| Field { name: name.clone(), shape: Shape::Scalar, first: first(i) };
    let fields: Vec<Field> = records.header.iter().enumerate().map(field).collect();
    let layout = Layout::find(&records.name, &fields, Hints::default(), options)?;
    let is_number = |name: &String| (name.clone(), options.columns.is_numeric(name, &layout.classes));
    let kept = options.keep_columns.then(|| layout.names.iter().map(is_number).collect());
    let unused_numeric = layout.unused_scalars.iter().map(|&field| (field, false)).collect();
    // Where commas separate columns, they are not decimal signs.
    let sign = (delimiter == Delimiter::COMMA).then_some(DecimalSign::Point);
    Ok(CsvSource { records, labels: Labels::new(&layout.classes), layout, kept, unused_numeric, sign })
}

impl Source for CsvSource {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn fill(&mut self, limit: usize, filter: &mut RowFilter, out: &mut RawRows) -> Result<usize> {
        let layout = &self.layout;
        for read in 0..limit {
            let Some((at, record)) = self.records.next()? else { return Ok(read) };
            if at.row <= ROWS_TO_FIND_NUMBERS {
                self.unused_numeric.retain_mut(|(field, found)| {
                    let text = record[*field].trim_ascii();
                    *found |= !text.is_empty();
                    text.is_empty() || number::real_from_text(text).is_ok()
                });
            }
            let mut row = Row { at, layout, labels: &self.labels, record };
            if !filter.keeps_all() && !filter.keeps(at, |i| row.cell(layout.filters[i].path.field))? {
                if let Some(field) = layout.dropped_id {
                    row.ids(field, &mut out.dropped_ids)?;
                }
                continue;
            }
            if self.sign.is_none() {
                self.sign = DecimalSign::from_values(layout.probs.fields().iter().map(|&field| &record[field]));
            }
            let with_points;
            if self.sign == Some(DecimalSign::Comma) {
                with_points = row.with_decimal_points(self.kept.as_deref().unwrap_or_default())?;
                row.record = &with_points;
            }
            out.rows.push(at.row);
            out.lines.push(at.line.unwrap_or_default());
            out.append(layout, &row)?;
            if let Some(names) = &self.kept {
                out.inputs.add_record(names, row.record.iter());
                if out.inputs.is_full() {
                    return Ok(read + 1);
                }
            }
        }
        Ok(limit)
    }

    fn columns(&self) -> Vec<(String, InputColumn)> {
        self.kept.as_deref().map(empty_csv).unwrap_or_default()
    }

    fn labels(&self) -> &Labels {
        &self.labels
    }

    fn unused_numeric(&self) -> Vec<String> {
        let found = self.unused_numeric.iter().filter(|(_, found)| *found);
        found.map(|(field, _)| self.layout.names[*field].clone()).collect()
    }

    fn progress(&self) -> Progress {
        let bytes = &self.records.bytes;
        Progress { rows: self.records.row, total_rows: None, bytes: bytes.read(), total_bytes: bytes.total }
    }
}

/// One row of the file.
struct Row<'a> {
    at: RowAt<'a>,
    layout: &'a Layout,
    labels: &'a Labels,
    record: &'a ByteRecord,
}

impl<'a> Row<'a> {
    /// The record with decimal points for decimal commas, also in columns of numbers that are kept without being read. A number that is
    /// read and has a point is refused: it may separate thousands.
    fn with_decimal_points(&self, kept: &[(String, bool)]) -> Result<ByteRecord> {
        let mut values: Vec<Vec<u8>> = self.record.iter().map(<[u8]>::to_vec).collect();
        for (value, _) in values.iter_mut().zip(kept).filter(|(_, (_, is_number))| *is_number) {
            let number = with_decimal_point(value);
            if !value.contains(&b'.') && number::real_from_text(&number).is_ok() {
                *value = number;
            }
        }
        for group in self.layout.groups().filter(|group| group.is_numeric()) {
            for (key, &field) in group.fields().iter().enumerate() {
                if self.record[field].contains(&b'.') {
                    let why = format!(
                        "{} has a point, but other numbers of the file have decimal commas: use one of them",
                        shown(&String::from_utf8_lossy(&self.record[field]))
                    );
                    return Err(self.at.value(group.column(self.at.row, Some(key)), why));
                }
                values[field] = with_decimal_point(&self.record[field]);
            }
        }
        Ok(ByteRecord::from(values))
    }

    fn cell(&self, field: usize) -> Result<Cell<'a>> {
        text_cell(self.at, self.record, field, &self.layout.names[field])
    }

    fn numbers<T>(&self, group: &ColumnGroup, read: fn(&[u8]) -> Parsed<T>, out: &mut Vec<T>) -> Result<()> {
        for (key, &field) in group.fields().iter().enumerate() {
            match read(&self.record[field]) {
                Ok(value) => out.push(value),
                Err(why) => return Err(self.at.value(group.column(self.at.row, Some(key)), why)),
            }
        }
        Ok(())
    }
}

impl RowValues for Row<'_> {
    fn reals(&self, group: &ColumnGroup, out: &mut Vec<f64>) -> Result<()> {
        for (key, &field) in group.fields().iter().enumerate() {
            let value = &self.record[field];
            out.push(number::real_from_text(value).map_err(|why| {
                let why = group.missing_number(self.at.row, Some(key), &String::from_utf8_lossy(value), why);
                self.at.value(group.column(self.at.row, Some(key)), why)
            })?);
        }
        Ok(())
    }

    fn features(&self, group: &ColumnGroup, out: &mut Vec<f64>) -> Result<()> {
        self.numbers(group, number::feature_from_text, out)
    }

    fn answers(&self, group: &ColumnGroup, out: &mut Vec<f64>) -> Result<()> {
        if let Some(key) = group.fields().iter().position(|&field| self.record[field].trim_ascii().is_empty()) {
            return Err(self.at.value(group.column(self.at.row, Some(key)), group.no_answer()));
        }
        if let Location::ClassName(path) = &group.location {
            let name = &self.layout.names[path.field];
            let answer = number::text(&self.record[path.field]).map_err(|why| self.at.value(name, why))?;
            return self.labels.append_answer(answer, out).map_err(|why| self.at.value(name, why));
        }
        self.numbers(group, number::real_from_text, out)
    }

    fn votes(&self, group: &ColumnGroup, out: &mut Vec<u32>) -> Result<()> {
        self.numbers(group, number::count_from_text, out)
    }

    fn refuse_answer(&self, field: usize, first: &str) -> Result<()> {
        let name = &self.layout.names[field];
        match number::text(&self.record[field]).map(str::trim) {
            Ok(text) if self.labels.is_name_in_words(text) => Err(self.at.value(name, late_answer(name, text, first))),
            _ => Ok(()),
        }
    }

    /// CSV has no lists: labels are columns.
    fn labels(&self, fields: &LabelFields, out: &mut Vec<u32>) -> Result<()> {
        let (fields, names) = (fields.fields(), &self.layout.names);
        let text = |&field: &usize| number::text(&self.record[field]).map_err(|why| self.at.value(&names[field], why));
        let texts: Vec<&str> = fields.iter().map(text).collect::<Result<_>>()?;
        let counted = self.labels.append_counts(texts.into_iter().map(Cow::Borrowed), self.layout.first_labels, out);
        counted.map_err(|(place, why)| self.at.value(&names[fields[place]], why))
    }

    fn ids(&self, field: usize, out: &mut Vec<String>) -> Result<()> {
        out.push(self.cell(field)?.id_at(self.at, &self.layout.names[field])?);
        Ok(())
    }
}

/// A number with a point in place of its first comma: one with several commas stays invalid.
fn with_decimal_point(number: &[u8]) -> Vec<u8> {
    let comma = number.iter().position(|byte| *byte == b',');
    number.iter().enumerate().map(|(place, byte)| if Some(place) == comma { b'.' } else { *byte }).collect()
}

/// A value of a record, without white space around it.
pub(crate) fn text_cell<'a>(at: RowAt<'_>, record: &'a ByteRecord, field: usize, name: &str) -> Result<Cell<'a>> {
    let text = number::text(&record[field]).map_err(|why| at.value(name, why))?;
    Ok(Cell::Text(Cow::Borrowed(text.trim())))
}

/// The most bytes of one record, so that an unclosed quote does not fill the memory.
const MAX_RECORD_BYTES: u64 = 1 << 26;

/// The message about a quote that is not closed where its value ends; `line` is that of the record's start.
fn unclosed(quote: &OpenQuote, line: Option<u64>) -> String {
    let end = match (quote.lines, line) {
        (Some(lines), Some(line)) => format!("closed only on line {}", line + lines as u64),
        (Some(_), None) => "closed only on a later line".to_owned(),
        (None, _) => "never closed".to_owned(),
    };
    format!(
        "the quote before {} is {end}: close it where the value ends, or double a quote that is meant literally",
        shown(&quote.start)
    )
}

/// A reader that fails if a record is too long, and counts lines.
struct RecordReader {
    inner: Chain<BufReader<Counted>, &'static [u8]>,
    /// Bytes that the current record may still have.
    left: u64,
    /// Whether the end was reached.
    ended: bool,
    /// Where the current record starts.
    start: u64,
    /// The bytes read last, and all of the current record.
    recent: Vec<u8>,
    /// The number of bytes before them.
    before: u64,
    /// Line ends among the first `counted` bytes.
    lines: u64,
    counted: u64,
}

impl RecordReader {
    fn new(inner: Chain<BufReader<Counted>, &'static [u8]>) -> Self {
        Self {
            inner,
            left: MAX_RECORD_BYTES,
            ended: false,
            start: 0,
            recent: Vec::new(),
            before: 0,
            lines: 0,
            counted: 0,
        }
    }

    fn start_record(&mut self, byte: u64) {
        self.left = MAX_RECORD_BYTES;
        self.start = byte;
    }

    /// The current record as it is in the file; line ends and blank lines may precede it.
    fn raw(&self, end: u64) -> &[u8] {
        &self.recent[self.place(self.start)..self.place(end)]
    }

    /// The place of a byte of the file among those kept.
    fn place(&self, byte: u64) -> usize {
        let place = usize::try_from(byte.saturating_sub(self.before)).unwrap_or(usize::MAX);
        place.min(self.recent.len())
    }

    /// The number of line ends before a byte, which must not be smaller than in the last call, nor beyond those read.
    fn lines_before(&mut self, byte: u64) -> u64 {
        let range = self.place(self.counted)..self.place(byte);
        self.lines += self.recent.get(range).map_or(0, |bytes| bytes.iter().filter(|b| **b == b'\n').count() as u64);
        self.counted = self.counted.max(byte);
        self.lines
    }
}

impl Read for RecordReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::other("a record is longer than 64 MB: is a quote never closed?"));
        }
        let max = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.len());
        let n = self.inner.read(&mut buf[..max])?;
        self.left -= n as u64;
        self.ended |= n == 0 && max > 0;
        if n > 0 {
            self.lines_before(self.start);
            let done = self.place(self.start);
            self.recent.drain(..done);
            self.recent.extend_from_slice(&buf[..n]);
            self.before += done as u64;
        }
        Ok(n)
    }
}

/// The records of a CSV file, each as long as the header.
pub(crate) struct Records {
    pub(crate) name: String,
    pub(crate) header: Vec<String>,
    /// The first row, or nothing if there is none: it tells what columns hold.
    first: ByteRecord,
    /// What reading the first row gave, until it is taken as a row.
    first_read: Option<::csv::Result<bool>>,
    delimiter: u8,
    reader: Reader<RecordReader>,
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

    /// The same; if the header does not have the usual delimiter, with one that it has.
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
        // A line end is appended, so that every record ends with one.
        let stream = RecordReader::new(stream.chain(b"\n".as_slice()));
        // Rows of another length are refused below, with a message that says what to do.
        let mut reader =
            ReaderBuilder::new().delimiter(delimiter.byte()).has_headers(false).flexible(true).from_reader(stream);
        let mut record = ByteRecord::new();
        if !reader.read_byte_record(&mut record).map_err(|e| Error::file(&name, e.to_string()))? {
            return Err(Error::file(&name, "is empty: it needs a header and rows"));
        }
        let end = reader.position().byte();
        if let Some(quote) = quotes::find(reader.get_ref().raw(end), &record, delimiter.byte()) {
            return Err(Error::file(&name, format!("header: {}", unclosed(&quote, Some(1)))));
        }
        let header: std::result::Result<Vec<String>, String> =
            record.iter().map(|field| number::text(field).map(|name| name.trim().to_owned())).collect();
        let header = header.map_err(|why| Error::file(&name, format!("header: {why}")))?;
        reader.get_mut().start_record(end);
        let mut first = ByteRecord::new();
        let first_read = Some(reader.read_byte_record(&mut first));
        Ok(Self { name, header, first, first_read, delimiter: delimiter.byte(), reader, record, bytes, row: 0 })
    }

    pub(crate) fn next(&mut self) -> Result<Option<(RowAt<'_>, &ByteRecord)>> {
        let more = if let Some(read) = self.first_read.take() {
            self.record.clone_from(&self.first);
            read
        } else {
            let start = self.reader.position().byte();
            self.reader.get_mut().start_record(start);
            self.reader.read_byte_record(&mut self.record)
        };
        if !more.map_err(|e| Error::file(&self.name, format!("after row {}: {e}", self.row)))? {
            return Ok(None);
        }
        self.row += 1;
        // The library's own line numbers do not count skipped blank lines, and count CRLF late. A record ends behind its CR or LF, unless a
        // quote is open at the end of the file.
        let end = self.reader.position().byte();
        let source = self.reader.get_mut();
        let last = source.lines_before(end.saturating_sub(u64::from(!source.ended))) + 1;
        let within = self.record.as_slice().iter().filter(|b| **b == b'\n').count() as u64;
        let at = RowAt { file: &self.name, row: self.row, line: Some(last.saturating_sub(within).max(1)) };
        // Only a quote makes a value go on behind a line end.
        let source = self.reader.get_ref();
        if (within > 0 || source.ended)
            && let Some(quote) = quotes::find(source.raw(end), &self.record, self.delimiter)
        {
            let reason = unclosed(&quote, at.line);
            return Err(match self.header.get(quote.field) {
                Some(column) => at.value(column, reason),
                None => at.row(reason),
            });
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
