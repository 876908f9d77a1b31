//! Writing npz: a zip of numpy arrays, one a column.
//!
//! An array's header comes before its elements and says how many there are and how wide text is, which is
//! known only at the end. So columns wait in temporary files, and memory stays bounded.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::write::{Column, ColumnKind};

pub(crate) struct NpzWriter {
    columns: Vec<Spool>,
    rows: u64,
}

struct Spool {
    name: String,
    kind: ColumnKind,
    file: BufWriter<File>,
    /// The longest text, in characters.
    longest: usize,
}

impl NpzWriter {
    pub(crate) fn new(columns: &[(String, ColumnKind)]) -> io::Result<Self> {
        let spool = |(name, kind): &(String, ColumnKind)| {
            let file = BufWriter::new(tempfile::tempfile()?);
            Ok(Spool { name: name.clone(), kind: *kind, file, longest: 0 })
        };
        Ok(Self { columns: columns.iter().map(spool).collect::<io::Result<_>>()?, rows: 0 })
    }

    pub(crate) fn write(&mut self, columns: &[Column]) -> io::Result<()> {
        self.rows += columns.first().map_or(0, Column::len) as u64;
        for (spool, column) in self.columns.iter_mut().zip(columns) {
            match column {
                Column::Real(values) => values.iter().try_for_each(|x| spool.file.write_all(&x.to_le_bytes()))?,
                Column::Count(values) => values.iter().try_for_each(|n| spool.file.write_all(&n.to_le_bytes()))?,
                Column::Text(values) => {
                    for text in values {
                        spool.longest = spool.longest.max(text.chars().count());
                        spool.file.write_all(&(text.len() as u64).to_le_bytes())?;
                        spool.file.write_all(text.as_bytes())?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes the zip. It is put together in one more temporary file, since zips are wound back while written.
    pub(crate) fn finish(self, out: &mut impl Write) -> io::Result<()> {
        let rows = self.rows;
        let mut zip = ZipWriter::new(BufWriter::new(tempfile::tempfile()?));
        for spool in self.columns {
            let mut file = spool.file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.seek(SeekFrom::Start(0))?;
            let (descr, size) = match spool.kind {
                ColumnKind::Real => ("<f8".to_owned(), 8),
                ColumnKind::Count => ("<u8".to_owned(), 8),
                ColumnKind::Text => (format!("<U{}", spool.longest.max(1)), 4 * spool.longest.max(1)),
            };
            let large = rows.saturating_mul(size as u64) > u64::from(u32::MAX) - (1 << 16);
            let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(large);
            zip.start_file(format!("{}.npy", spool.name), options)?;
            zip.write_all(&header(&descr, rows))?;
            let mut elements = BufReader::new(file);
            if spool.kind == ColumnKind::Text {
                for _ in 0..rows {
                    zip.write_all(&text(&mut elements, size)?)?;
                }
            } else {
                io::copy(&mut elements, &mut zip)?;
            }
        }
        let mut file = zip.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        io::copy(&mut file, out)?;
        Ok(())
    }
}

/// The next text of a spool, four bytes a character, filled up to `size` bytes.
fn text(spool: &mut impl Read, size: usize) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    spool.read_exact(&mut length)?;
    let mut text = String::new();
    spool.take(u64::from_le_bytes(length)).read_to_string(&mut text)?;
    let mut out: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    out.resize(size, 0);
    Ok(out)
}

/// The header of a one-dimensional array, as numpy writes it: padded so that elements begin at a multiple of 64.
fn header(descr: &str, rows: u64) -> Vec<u8> {
    let mut dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows},), }}");
    let used = 10 + dict.len() + 1;
    dict.push_str(&" ".repeat(used.next_multiple_of(64) - used));
    dict.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend_from_slice(&(dict.len() as u16).to_le_bytes());
    out.extend_from_slice(dict.as_bytes());
    out
}
