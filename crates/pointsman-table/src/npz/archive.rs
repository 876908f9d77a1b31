//! The arrays of an npz file: a zip's directory, and each array's bytes as they are read.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use arrow_array::ArrayRef;
use flate2::CrcReader;
use flate2::bufread::DeflateDecoder;
use zip::{CompressionMethod, ZipArchive};

use super::npy::Header;
use crate::arrow::cell;
use crate::error::{Error, Result, listed, shown};
use crate::input::Input;

/// One array, read from its first row to its last.
pub(super) struct Array {
    pub(super) name: String,
    pub(super) header: Header,
    pub(super) rows: u64,
    /// Elements per row.
    pub(super) width: usize,
    stored: Stored,
    rows_left: u64,
    /// The bytes of the rows read last.
    buffer: Vec<u8>,
}

/// The order in which the elements are stored.
enum Stored {
    /// Row after row.
    ByRow(Checked),
    /// Column after column, which can only be read whole.
    ByColumn(Vec<u8>),
}

impl Array {
    /// Reads the next rows: their elements one after the other.
    pub(super) fn read(&mut self, rows: usize) -> io::Result<ArrayRef> {
        let size = self.header.size;
        self.buffer.clear();
        match &mut self.stored {
            Stored::ByRow(reader) => {
                reader.take_into(rows as u64 * (self.width * size) as u64, &mut self.buffer)?;
                if self.rows_left <= rows as u64 {
                    reader.finish()?;
                }
            }
            Stored::ByColumn(bytes) => {
                let all = self.rows as usize;
                let next = all - self.rows_left as usize;
                self.buffer.reserve(rows * self.width * size);
                for row in next..next + rows {
                    for column in 0..self.width {
                        let start = (column * all + row) * size;
                        self.buffer.extend_from_slice(&bytes[start..start + size]);
                    }
                }
            }
        }
        self.rows_left = self.rows_left.saturating_sub(rows as u64);
        Ok(self.header.elements(&self.buffer))
    }

    /// Bytes of a row.
    pub(super) fn row_bytes(&self) -> usize {
        self.width.saturating_mul(self.header.size)
    }
}

/// Bytes that are checked against their checksum.
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

/// An array that a zip's directory lists twice. The library keeps the last of them, which need not be the one that is meant.
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

/// A zip of arrays.
pub(super) struct Archive {
    pub(super) name: String,
    file: File,
    pub(super) bytes: u64,
    pub(super) entries: Vec<Entry>,
}

/// The place of an array in the zip.
pub(super) struct Entry {
    pub(super) name: String,
    start: u64,
    compressed: u64,
    size: u64,
    crc: u32,
    method: CompressionMethod,
    encrypted: bool,
}

impl Archive {
    pub(super) fn open(input: Input) -> Result<Self> {
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
            let reason = match others.iter().any(|name| name.starts_with("xl/")) {
                true => "is an Excel workbook: save the sheet as CSV (UTF-8)".to_owned(),
                false => format!("is a zip archive of {}, not of numpy arrays: unpack it", listed(&others)),
            };
            return Err(Error::file(&name, reason));
        }
        Ok(Self { name, file, bytes, entries })
    }

    /// The bytes of an entry, decompressed.
    fn reader(&self, entry: &Entry) -> Result<Checked> {
        if entry.encrypted {
            return Err(self.damaged(entry, "it is encrypted"));
        }
        // Clones of a handle share one position in the file: reading one array would move all others.
        let file = Positioned { file: self.file.try_clone().map_err(|e| Error::io(&self.name, e))?, at: entry.start };
        let raw = BufReader::with_capacity(1 << 16, file.take(entry.compressed));
        let reader: Box<dyn Read + Send> = match entry.method {
            CompressionMethod::Stored => Box::new(raw),
            CompressionMethod::DEFLATE => Box::new(DeflateDecoder::new(raw)),
            other => {
                return Err(
                    self.damaged(entry, &format!("it is compressed with {other}: use numpy.savez or savez_compressed"))
                );
            }
        };
        Ok(Checked { reader: CrcReader::new(reader), crc: entry.crc })
    }

    fn damaged(&self, entry: &Entry, why: &str) -> Error {
        damaged(&self.name, &entry.name, why)
    }

    pub(super) fn header(&self, entry: &Entry) -> Result<Header> {
        self.opened(entry).map(|(header, _)| header)
    }

    /// The header, with its claims checked against the entry's length, and the elements.
    fn opened(&self, entry: &Entry) -> Result<(Header, Checked)> {
        /// The largest factor by which deflate compresses.
        const MAX_RATIO: u64 = 1032;
        let mut reader = self.reader(entry)?;
        let header = Header::read(&mut reader.reader).map_err(|why| self.damaged(entry, &why))?;
        let claimed = header.bytes().and_then(|bytes| bytes.checked_add(header.start));
        if claimed != Some(entry.size) || entry.size > entry.compressed.saturating_mul(MAX_RATIO) {
            let shape: Vec<String> = header.shape.iter().map(ToString::to_string).collect();
            let size = entry.size;
            return Err(self.damaged(entry, &format!("its shape ({}) does not fit its {size} bytes", shape.join(", "))));
        }
        Ok((header, reader))
    }

    pub(super) fn array(&self, entry: &Entry) -> Result<Array> {
        let (header, mut reader) = self.opened(entry)?;
        let (rows, width) = match header.shape.as_slice() {
            [rows] => (*rows, 1),
            [rows, width] => (*rows, *width),
            other => {
                return Err(self.damaged(entry, &format!("it has {} dimensions: give one row per item", other.len())));
            }
        };
        let width = i32::try_from(width).ok().and_then(|width| usize::try_from(width).ok());
        let width = width.ok_or_else(|| self.damaged(entry, "it is too wide"))?;
        let stored = if header.fortran && width > 1 {
            let mut bytes = Vec::new();
            let read = reader.take_into(entry.size - header.start, &mut bytes).and_then(|()| reader.finish());
            read.map_err(|e| self.damaged(entry, &e.to_string()))?;
            Stored::ByColumn(bytes)
        } else {
            Stored::ByRow(reader)
        };
        Ok(Array { name: entry.name.clone(), header, rows, width, stored, rows_left: rows, buffer: Vec::new() })
    }

    /// A one-dimensional array of names, if there is one.
    pub(super) fn names(&self, name: &str) -> Result<Option<Vec<String>>> {
        let Some(entry) = self.entries.iter().find(|entry| entry.name == name) else { return Ok(None) };
        let mut array = self.array(entry)?;
        if array.header.shape.len() != 1 {
            return Err(damaged(&self.name, name, "one dimension is needed"));
        }
        let rows = usize::try_from(array.rows).map_err(|_| damaged(&self.name, name, "it is too long"))?;
        let values = array.read(rows).map_err(|e| damaged(&self.name, name, &e.to_string()))?;
        let text = |row| cell(&values, row).ok().and_then(|cell| cell.text().map(|text| text.into_owned()));
        Ok(Some((0..rows).map(|row| text(row).unwrap_or_default()).collect()))
    }
}

/// A file handle with a position of its own.
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

/// The error of an array.
pub(super) fn damaged(file: &str, array: &str, why: &str) -> Error {
    Error::file(file, format!("array {array}: {why}"))
}
