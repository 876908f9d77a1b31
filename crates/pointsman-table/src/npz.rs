//! npz: a zip of numpy arrays, one a column or one a kind of column.
//!
//! Each array is read front to back through a file handle of its own, so that all of them advance row by
//! row together and memory stays bounded. Only the zip's directory is left to a library.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;

use arrow_array::{ArrayRef, FixedSizeListArray, new_empty_array};
use arrow_schema::{DataType, Field as ArrowField, FieldRef};
use flate2::CrcReader;
use flate2::bufread::DeflateDecoder;
use zip::{CompressionMethod, ZipArchive};

use crate::arrow_value::Target;
use crate::batch::Raw;
use crate::cell::Gate;
use crate::error::{Error, Result, RowAt, listed, shown};
use crate::input::Input;
use crate::input_column::InputColumn;
use crate::labels::{Labels, not_a_class};
use crate::layout::{At, Field, Hints, Layout, Part, Shape};
use crate::npy::Header;
use crate::options::ReadOptions;
use crate::read::{Progress, Source};

pub(crate) struct NpzSource {
    name: String,
    layout: Layout,
    labels: Labels,
    /// The arrays by the layout's fields; those not needed stay closed.
    arrays: Vec<Option<Array>>,
    /// The columns that are kept, if they are wanted, and the names of arrays that cannot be.
    keep: Vec<Kept>,
    left_out: Vec<String>,
    /// The arrays of numbers that nothing uses.
    spare: Vec<String>,
    rows: u64,
    row: u64,
    bytes: u64,
}

/// A column that is kept: an array, or what it holds of one class or feature.
struct Kept {
    array: usize,
    key: Option<usize>,
    field: FieldRef,
}

/// The name of the array of the features' names.
const FEATURE_NAMES: &str = "feature_names";

/// The names of the arrays.
pub(crate) fn array_names(input: Input) -> Result<Vec<String>> {
    Ok(Archive::open(input)?.entries.into_iter().map(|entry| entry.name).collect())
}

pub(crate) fn open(input: Input, options: &ReadOptions) -> Result<NpzSource> {
    let archive = Archive::open(input)?;
    let columns = &options.columns;
    let (classes, features) = (archive.names(&columns.classes)?, archive.names(FEATURE_NAMES)?);
    let (class_names, feature_names) = (classes.clone(), features.clone());
    let hints = Hints { classes, features, arrays: true, sparse: false, empty: false };
    let mut fields = Vec::new();
    for entry in &archive.entries {
        // An array that cannot be read matters only if it is needed: say so then.
        let shape = match archive.header(entry) {
            Ok(header) => match header.shape.as_slice() {
                [_] if entry.name == columns.features.field
                    && columns.feature_names.is_empty()
                    && header.is_number() =>
                {
                    Shape::List(1)
                }
                [_, width] => Shape::List(usize::try_from(*width).unwrap_or(usize::MAX)),
                _ => Shape::Scalar,
            },
            Err(_) => Shape::Scalar,
        };
        fields.push(Field { name: entry.name.clone(), shape });
    }
    if let Some(entry) = archive.entries.iter().find(|entry| entry.name == columns.probs.field) {
        archive.header(entry)?;
    }
    let layout = Layout::find(&archive.name, &fields, hints, options)?;
    let mut arrays: Vec<Option<Array>> = archive.entries.iter().map(|_| None).collect();
    let mut rows: Option<(u64, &str)> = None;
    for field in layout.used() {
        let entry = &archive.entries[field];
        let array = archive.array(entry)?;
        let own = array.header.shape.first().copied().unwrap_or(0);
        match rows {
            Some((rows, other)) if rows != own => {
                return Err(Error::file(
                    &archive.name,
                    format!("array {} has {own} rows, but {other} has {rows}", entry.name),
                ));
            }
            _ => rows = Some((own, &entry.name)),
        }
        arrays[field] = Some(array);
    }
    let rows = rows.map_or(0, |(rows, _)| rows);
    let (mut keep, mut left_out) = (Vec::new(), Vec::new());
    for (field, entry) in archive.entries.iter().enumerate().filter(|_| options.keep_columns) {
        // Names of what lists hold are no column: the columns made of the lists carry them.
        if arrays[field].is_none() && (entry.name == columns.classes || entry.name == FEATURE_NAMES) {
            continue;
        }
        if arrays[field].is_none() {
            let fits = |header: &Header| matches!(header.shape.as_slice(), [n] | [n, _] if *n == rows);
            arrays[field] = archive.header(entry).ok().filter(fits).and_then(|_| archive.array(entry).ok());
        }
        let Some(array) = &arrays[field] else {
            left_out.push(entry.name.clone());
            continue;
        };
        let named = columns.wide_prefix(&entry.name).and_then(|(prefix, of_features)| {
            let names = if of_features { &feature_names } else { &class_names };
            let names = names.as_ref().filter(|names| array.header.shape.len() == 2 && names.len() == array.width)?;
            let wide: Vec<String> = names.iter().map(|name| format!("{prefix}{name}")).collect();
            // A column of its own under one of these names stays the only one.
            archive.entries.iter().all(|other| !wide.contains(&other.name)).then_some(wide)
        });
        let data_type = if named.is_some() { array.header.data_type() } else { array.data_type() };
        let column = |name: &str| Arc::new(ArrowField::new(name, data_type.clone(), false));
        match named {
            None => keep.push(Kept { array: field, key: None, field: column(&entry.name) }),
            Some(names) => keep.extend((names.iter().enumerate()).map(|(key, name)| Kept {
                array: field,
                key: Some(key),
                field: column(name),
            })),
        }
    }
    let is_number = |entry: &&Entry| {
        archive.header(entry).is_ok_and(|header| header.is_number() && header.shape.as_slice() == [rows])
    };
    let spare = layout.spare.iter().map(|&field| &archive.entries[field]).filter(is_number);
    let spare = spare.map(|entry| entry.name.clone()).collect();
    let labels = Labels::new(&layout.classes);
    Ok(NpzSource {
        name: archive.name,
        layout,
        labels,
        arrays,
        keep,
        left_out,
        spare,
        rows,
        row: 0,
        bytes: archive.bytes,
    })
}

impl Source for NpzSource {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn fill(&mut self, limit: usize, gate: &mut Gate, out: &mut Raw) -> Result<usize> {
        let rows = (self.rows - self.row).min(limit as u64) as usize;
        if rows == 0 {
            return Ok(0);
        }
        for (array, name) in self.arrays.iter_mut().zip(&self.layout.names) {
            if let Some(array) = array {
                array.advance(rows).map_err(|e| damaged(&self.name, name, &e.to_string()))?;
            }
        }
        let mut slice =
            Slice { file: &self.name, layout: &self.layout, arrays: &self.arrays, first: self.row, rows, kept: None };
        if !gate.is_open() {
            slice.filter(gate, out)?;
        }
        slice.append(&self.labels, out)?;
        if !self.keep.is_empty() {
            let mut columns = Vec::with_capacity(self.keep.len());
            for Kept { array, key, field } in &self.keep {
                let values = slice.array(*array)?.arrow(slice.rows(), *key);
                columns.push((Arc::clone(field), values.map_err(|why| damaged(&self.name, field.name(), &why))?));
            }
            out.inputs.add_arrays(columns.into_iter());
        }
        self.row += rows as u64;
        Ok(rows)
    }

    fn columns(&self) -> Vec<(String, InputColumn)> {
        let column = |Kept { field, .. }: &Kept| {
            (field.name().clone(), InputColumn::typed(Arc::clone(field), new_empty_array(field.data_type())))
        };
        self.keep.iter().map(column).collect()
    }

    fn left_out(&self) -> &[String] {
        &self.left_out
    }

    fn unused_numeric(&self) -> Vec<String> {
        self.spare.clone()
    }

    fn progress(&self) -> Progress {
        Progress { rows: self.row, total_rows: Some(self.rows), bytes: 0, total_bytes: Some(self.bytes) }
    }

    fn most_rows(&self) -> usize {
        // Texts of a fixed width take it in every row, and compress to next to nothing in the file.
        const BUDGET: usize = 1 << 26;
        let row = |array: &Array| array.width.saturating_mul(array.header.size);
        let bytes = self.arrays.iter().flatten().map(row).fold(1, usize::saturating_add);
        BUDGET / bytes
    }
}

/// Some rows of the file.
struct Slice<'a> {
    file: &'a str,
    layout: &'a Layout,
    arrays: &'a [Option<Array>],
    first: u64,
    rows: usize,
    kept: Option<Vec<usize>>,
}

impl Slice<'_> {
    fn at(&self, row: usize) -> RowAt<'_> {
        RowAt { file: self.file, row: self.first + row as u64 + 1, line: None }
    }

    fn array(&self, field: usize) -> Result<&Array> {
        self.arrays[field].as_ref().ok_or_else(|| Error::file(self.file, "an array was not opened"))
    }

    /// The kept rows, in order.
    fn rows(&self) -> impl Iterator<Item = usize> {
        let all = if self.kept.is_none() { self.rows } else { 0 };
        (0..all).chain(self.kept.iter().flatten().copied())
    }

    fn filter(&mut self, gate: &mut Gate, out: &mut Raw) -> Result<()> {
        let mut kept = Vec::new();
        for row in 0..self.rows {
            if gate.keeps(|i| Ok(self.array(self.layout.filters[i])?.cell(row, 0)))? {
                kept.push(row);
            } else if self.layout.dropped_ids
                && let Some(field) = self.layout.id
            {
                out.dropped_ids.push(self.id(field, row)?);
            }
        }
        self.kept = Some(kept);
        Ok(())
    }

    fn append(&self, labels: &Labels, out: &mut Raw) -> Result<()> {
        let layout = self.layout;
        out.rows.extend(self.rows().map(|row| self.first + row as u64 + 1));
        self.values(&layout.probs, &mut out.probs)?;
        if let Some(part) = &layout.votes {
            self.values(part, &mut out.votes)?;
        }
        if let Some(field) = layout.labels {
            self.labels(field, labels, &mut out.votes)?;
        }
        if let Some(part) = &layout.truth {
            self.values(part, &mut out.truth)?;
        }
        if let Some(part) = &layout.features {
            self.values(part, &mut out.features)?;
        }
        for ((_, part), values) in layout.oracles.iter().zip(&mut out.oracles) {
            self.values(part, values)?;
        }
        if let Some(part) = &layout.weight {
            self.values(part, &mut out.weights)?;
        }
        if let Some(field) = layout.id {
            for row in self.rows() {
                out.ids.push(self.id(field, row)?);
            }
        }
        Ok(())
    }

    fn id(&self, field: usize, row: usize) -> Result<String> {
        let cell = self.array(field)?.cell(row, 0);
        let id = cell.id().map(Cow::into_owned);
        id.map_err(|why| self.at(row).value(&self.layout.names[field], why))
    }

    fn values<T: Target>(&self, part: &Part, out: &mut Vec<T>) -> Result<()> {
        let blame = |row: usize, key: usize, why: String| {
            let at = self.at(row);
            at.value(part.column(at.row, Some(key)), why)
        };
        match &part.at {
            At::List(spot) => {
                let (array, width) = (self.array(spot.field)?, part.width());
                let Some(kept) = &self.kept else {
                    let wrote = array.header.numbers(&array.buffer, out);
                    return wrote.map_err(|(i, why)| blame(i / width, i % width, why));
                };
                for &row in kept {
                    let wrote = array.header.numbers(array.row(row), out);
                    wrote.map_err(|(key, why)| blame(row, key, why))?;
                }
            }
            At::Wide(fields) => {
                for row in self.rows() {
                    for (key, &field) in fields.iter().enumerate() {
                        let array = self.array(field)?;
                        array.header.numbers(array.row(row), out).map_err(|(_, why)| blame(row, key, why))?;
                    }
                }
            }
            // Arrays have no keys.
            At::Keyed(_) => {}
        }
        Ok(())
    }

    fn labels(&self, field: usize, labels: &Labels, out: &mut Vec<u32>) -> Result<()> {
        let (array, name) = (self.array(field)?, &self.layout.names[field]);
        for row in self.rows() {
            let start = out.len();
            out.resize(start + self.layout.classes.len(), 0);
            for i in 0..array.width {
                let cell = array.cell(row, i);
                let text = cell.text().unwrap_or_default();
                let Some(class) = labels.class(&text) else {
                    let at = self.at(row);
                    return Err(at.value(
                        format!("{name}[{}, {i}]", at.row - 1),
                        not_a_class(&shown(&text), &text, &self.layout.classes),
                    ));
                };
                out[start + class] += u32::from(i < self.layout.first_labels);
            }
        }
        Ok(())
    }
}

/// One array, read row by row.
struct Array {
    header: Header,
    /// Elements a row.
    width: usize,
    elements: Elements,
    rows_left: u64,
    /// The rows read last.
    buffer: Vec<u8>,
}

enum Elements {
    /// Row after row.
    Rows(Checked),
    /// Column after column, which can only be read whole.
    Columns { bytes: Vec<u8>, rows: usize, next: usize },
}

impl Array {
    fn row(&self, row: usize) -> &[u8] {
        let size = self.width * self.header.size;
        &self.buffer[row * size..(row + 1) * size]
    }

    fn cell(&self, row: usize, i: usize) -> crate::cell::Cell<'static> {
        let size = self.header.size;
        self.header.cell(&self.row(row)[i * size..(i + 1) * size])
    }

    /// The type of a row.
    fn data_type(&self) -> DataType {
        let element = self.header.data_type();
        match (self.header.shape.len(), i32::try_from(self.width)) {
            (1, _) | (_, Err(_)) => element,
            (_, Ok(width)) => DataType::FixedSizeList(Arc::new(ArrowField::new("item", element, false)), width),
        }
    }

    /// Some of the rows read last, or one element of each.
    fn arrow(&self, rows: impl Iterator<Item = usize>, key: Option<usize>) -> std::result::Result<ArrayRef, String> {
        let size = self.header.size;
        let mut count = 0;
        let mut bytes = Vec::new();
        for row in rows {
            let row = self.row(row);
            bytes.extend_from_slice(key.map_or(row, |key| &row[key * size..(key + 1) * size]));
            count += 1;
        }
        let elements = self.header.arrow(&bytes);
        if key.is_some() {
            return Ok(elements);
        }
        let DataType::FixedSizeList(item, width) = self.data_type() else { return Ok(elements) };
        let lists = FixedSizeListArray::try_new_with_length(item, width, elements, None, count);
        lists.map(|lists| Arc::new(lists) as ArrayRef).map_err(|error| error.to_string())
    }

    /// Reads the next rows.
    fn advance(&mut self, rows: usize) -> io::Result<()> {
        let size = self.header.size;
        self.buffer.clear();
        match &mut self.elements {
            Elements::Rows(reader) => {
                let wanted = rows as u64 * (self.width * size) as u64;
                reader.take_into(wanted, &mut self.buffer)?;
                self.rows_left = self.rows_left.saturating_sub(rows as u64);
                if self.rows_left == 0 {
                    reader.finish()?;
                }
            }
            Elements::Columns { bytes, rows: all, next } => {
                self.buffer.reserve(rows * self.width * size);
                for row in *next..*next + rows {
                    for key in 0..self.width {
                        let start = (key * *all + row) * size;
                        self.buffer.extend_from_slice(&bytes[start..start + size]);
                    }
                }
                *next += rows;
            }
        }
        Ok(())
    }
}

/// Bytes whose checksum is known.
struct Checked {
    reader: CrcReader<Box<dyn Read + Send>>,
    crc: u32,
}

impl Checked {
    fn take_into(&mut self, bytes: u64, to: &mut Vec<u8>) -> io::Result<()> {
        self.reader.by_ref().take(bytes).read_to_end(to)?;
        if (to.len() as u64) < bytes { Err(io::Error::other("it ends too early")) } else { Ok(()) }
    }

    fn finish(&mut self) -> io::Result<()> {
        if self.reader.read(&mut [0])? != 0 {
            return Err(io::Error::other("it is longer than its shape says"));
        }
        if self.reader.crc().sum() != self.crc {
            return Err(io::Error::other("its checksum is wrong"));
        }
        Ok(())
    }
}

/// An array that a zip's directory lists twice. The library keeps the last of them, and which is meant nobody knows.
fn listed_twice(mut directory: impl Read) -> io::Result<Option<String>> {
    let (mut seen, mut head) = (HashSet::new(), [0; 46]);
    // What follows the last entry is shorter than one or begins otherwise.
    while directory.read_exact(&mut head).is_ok() && head.starts_with(b"PK\x01\x02") {
        let length = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        let mut name = vec![0; length(28).into()];
        directory.read_exact(&mut name)?;
        io::copy(&mut directory.by_ref().take(u64::from(length(30)) + u64::from(length(32))), &mut io::sink())?;
        if seen.contains(&name) {
            let name = String::from_utf8_lossy(&name);
            return Ok(Some(name.strip_suffix(".npy").unwrap_or(&name).to_owned()));
        }
        seen.insert(name);
    }
    Ok(None)
}

/// The arrays of a zip.
struct Archive {
    name: String,
    file: File,
    bytes: u64,
    entries: Vec<Entry>,
}

struct Entry {
    name: String,
    start: u64,
    compressed: u64,
    size: u64,
    crc: u32,
    method: CompressionMethod,
    encrypted: bool,
}

impl Archive {
    fn open(input: Input) -> Result<Self> {
        let name = input.name.clone();
        let (file, bytes) = input.file()?;
        let broken = |e: &dyn std::fmt::Display| Error::file(&name, format!("is damaged or no npz file: {e}"));
        let clone = file.try_clone().map_err(|e| Error::io(&name, e))?;
        let mut zip = ZipArchive::new(BufReader::new(clone)).map_err(|e| broken(&e))?;
        let directory =
            Positioned { file: file.try_clone().map_err(|e| Error::io(&name, e))?, at: zip.central_directory_start() };
        if let Some(twice) = listed_twice(BufReader::new(directory)).map_err(|e| broken(&e))? {
            return Err(Error::file(&name, format!("array {} is given twice: keep one of them", shown(&twice))));
        }
        let mut entries = Vec::new();
        let mut others = Vec::new();
        for i in 0..zip.len() {
            let entry = zip.by_index_raw(i).map_err(|e| broken(&e))?;
            let Some(array) = entry.name().strip_suffix(".npy") else {
                others.push(entry.name().to_owned());
                continue;
            };
            let start = entry.data_start().ok_or_else(|| broken(&"an entry without data"))?;
            let compressed = entry.compressed_size();
            if start.checked_add(compressed).is_none_or(|end| end > bytes) {
                return Err(broken(&format!("array {array} reaches beyond the end of the file")));
            }
            entries.push(Entry {
                name: array.to_owned(),
                start,
                compressed,
                size: entry.size(),
                crc: entry.crc32(),
                method: entry.compression(),
                encrypted: entry.encrypted(),
            });
        }
        if entries.is_empty() && !others.is_empty() {
            let reason = format!("is a zip archive of {}, not of numpy arrays: unpack it", listed(&others));
            return Err(Error::file(&name, reason));
        }
        Ok(Self { name, file, bytes, entries })
    }

    /// The bytes of an entry, decompressed.
    fn reader(&self, entry: &Entry) -> Result<Checked> {
        let bad = |why: &str| damaged(&self.name, &entry.name, why);
        if entry.encrypted {
            return Err(bad("it is encrypted"));
        }
        // A handle's clone shares its place in the file, so every array would move every other.
        let file = Positioned { file: self.file.try_clone().map_err(|e| Error::io(&self.name, e))?, at: entry.start };
        let raw = BufReader::with_capacity(1 << 16, file.take(entry.compressed));
        let reader: Box<dyn Read + Send> = match entry.method {
            CompressionMethod::Stored => Box::new(raw),
            CompressionMethod::DEFLATE => Box::new(DeflateDecoder::new(raw)),
            other => return Err(bad(&format!("it is compressed with {other}: use numpy.savez or savez_compressed"))),
        };
        Ok(Checked { reader: CrcReader::new(reader), crc: entry.crc })
    }

    fn header(&self, entry: &Entry) -> Result<Header> {
        self.opened(entry).map(|(header, _)| header)
    }

    /// The header, with its claims checked against the entry's length, and the elements.
    fn opened(&self, entry: &Entry) -> Result<(Header, Checked)> {
        // The most that deflate makes of a byte.
        const RATIO: u64 = 1032;
        let bad = |why: &str| damaged(&self.name, &entry.name, why);
        let mut reader = self.reader(entry)?;
        let header = Header::read(&mut reader.reader).map_err(|why| bad(&why))?;
        let claimed = header.bytes().and_then(|bytes| bytes.checked_add(header.start));
        if claimed != Some(entry.size) || entry.size > entry.compressed.saturating_mul(RATIO) {
            let shape: Vec<String> = header.shape.iter().map(ToString::to_string).collect();
            let size = entry.size;
            return Err(bad(&format!("its shape ({}) does not fit its {size} bytes", shape.join(", "))));
        }
        Ok((header, reader))
    }

    fn array(&self, entry: &Entry) -> Result<Array> {
        let bad = |why: &str| damaged(&self.name, &entry.name, why);
        let (header, mut reader) = self.opened(entry)?;
        let (rows, width) = match header.shape.as_slice() {
            [rows] => (*rows, 1),
            [rows, width] => (*rows, *width),
            other => return Err(bad(&format!("it has {} dimensions: give one row per item", other.len()))),
        };
        let width = usize::try_from(width).map_err(|_| bad("it is too wide"))?;
        let elements = if header.fortran && width > 1 {
            let total = entry.size - header.start;
            let mut bytes = Vec::new();
            let read = reader.take_into(total, &mut bytes).and_then(|()| reader.finish());
            read.map_err(|e| bad(&e.to_string()))?;
            Elements::Columns { bytes, rows: usize::try_from(rows).unwrap_or(0), next: 0 }
        } else {
            Elements::Rows(reader)
        };
        Ok(Array { header, width, elements, rows_left: rows, buffer: Vec::new() })
    }

    /// A one-dimensional array of names, if there is one.
    fn names(&self, name: &str) -> Result<Option<Vec<String>>> {
        let Some(entry) = self.entries.iter().find(|entry| entry.name == name) else { return Ok(None) };
        let mut array = self.array(entry)?;
        let rows = array.header.shape.first().copied().unwrap_or(0);
        if array.header.shape.len() != 1 {
            return Err(damaged(&self.name, name, "one dimension is needed"));
        }
        let rows = usize::try_from(rows).map_err(|_| damaged(&self.name, name, "it is too long"))?;
        array.advance(rows).map_err(|e| damaged(&self.name, name, &e.to_string()))?;
        Ok(Some((0..rows).map(|i| array.cell(i, 0).text().unwrap_or_default().into_owned()).collect()))
    }
}

/// A file handle that keeps its own place.
struct Positioned {
    file: File,
    at: u64,
}

impl Read for Positioned {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.file.seek(SeekFrom::Start(self.at))?;
        let n = self.file.read(buf)?;
        self.at += n as u64;
        Ok(n)
    }
}

fn damaged(file: &str, array: &str, why: &str) -> Error {
    Error::file(file, format!("array {array}: {why}"))
}
