//! The file formats, and how one is recognised.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::compression::Compression;
use crate::error::{Error, Result};

/// A file format of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Comma-separated text with a header.
    Csv,
    /// Tab-separated text with a header.
    Tsv,
    /// One JSON object per line.
    Jsonl,
    /// Apache Parquet.
    Parquet,
    /// Apache Arrow IPC, as a file (Feather version 2) or a stream.
    Arrow,
    /// A zip of numpy arrays.
    Npz,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 6] = [Self::Csv, Self::Tsv, Self::Jsonl, Self::Parquet, Self::Arrow, Self::Npz];

    /// The format of a path's extension; `.gz` and `.zst` behind it are ignored.
    #[must_use]
    pub fn from_path(path: impl AsRef<Path>) -> Option<Self> {
        let path = path.as_ref();
        let plain = Compression::from_path(path).and_then(|_| path.file_stem()).map_or(path, Path::new);
        plain.extension()?.to_str()?.parse().ok()
    }

    /// Whether files are text, which may be compressed as a whole; the other formats have their own compression.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Self::Csv | Self::Tsv | Self::Jsonl)
    }

    /// The format to write in: the given one, or that of the path's extension; CSV on standard output (`-`).
    ///
    /// # Errors
    /// If no format is given and the extension is unknown.
    pub fn to_write(path: impl AsRef<Path>, given: Option<Self>) -> Result<Self> {
        let path = path.as_ref();
        let implied = || if path.as_os_str() == "-" { Some(Self::Csv) } else { Self::from_path(path) };
        given.or_else(implied).ok_or_else(|| {
            let reason = "unknown format: use the extension .csv, .tsv, .jsonl, .parquet, .arrow or .npz; .csv.gz, .jsonl.zst and the like are compressed";
            Error::file(&path.display().to_string(), reason)
        })
    }

    /// The format a file's first bytes look like. Text that does not begin like a JSON object counts
    /// as CSV.
    #[must_use]
    pub fn from_bytes(start: &[u8]) -> Self {
        // An Arrow stream begins with the continuation marker, then the size of its schema.
        const ARROW_STREAM: &[u8] = &[0xff, 0xff, 0xff, 0xff];
        let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
        if start.starts_with(b"PAR1") {
            Self::Parquet
        } else if start.starts_with(b"ARROW1") || start.starts_with(ARROW_STREAM) {
            Self::Arrow
        } else if start.starts_with(b"PK") {
            Self::Npz
        } else if text.starts_with(b"{") {
            Self::Jsonl
        } else {
            Self::Csv
        }
    }

    /// The name users type, and the extension files get.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Jsonl => "jsonl",
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
            Self::Npz => "npz",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.to_ascii_lowercase().as_str() {
            "csv" => Ok(Self::Csv),
            "tsv" => Ok(Self::Tsv),
            "jsonl" | "ndjson" => Ok(Self::Jsonl),
            "parquet" => Ok(Self::Parquet),
            "arrow" | "feather" | "ipc" | "arrows" => Ok(Self::Arrow),
            "npz" => Ok(Self::Npz),
            _ => {
                Err(Error::Option(format!("unknown table format {text:?}: use csv, tsv, jsonl, parquet, arrow or npz")))
            }
        }
    }
}
