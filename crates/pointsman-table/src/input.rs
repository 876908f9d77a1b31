//! Where bytes come from: a file, or a stream that cannot be rewound.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::compression::{Compression, unknown_compression};
use crate::error::{Error, Result, input_name};
use crate::format::Format;

/// An opened file or stream of a known format.
pub(crate) struct Input {
    /// What messages call it.
    pub(crate) name: String,
    pub(crate) format: Format,
    /// Whether there are no bytes at all.
    pub(crate) is_empty: bool,
    source: ByteSource,
}

/// The bytes of an input.
enum ByteSource {
    File(File, u64),
    Stream(Box<dyn Read + Send>),
    /// Decompressed bytes of a file, and how many of the file's own have been read.
    Compressed(Box<dyn Read + Send>, Bytes),
}

impl ByteSource {
    /// The first bytes, which are read again afterwards.
    fn peek(self) -> io::Result<(Vec<u8>, Self)> {
        /// Enough for every magic number, and for a JSON object after some white space.
        const BYTES: u64 = 64;
        let mut start = Vec::new();
        let again = |start: &[u8], rest| -> Box<dyn Read + Send> { Box::new(Cursor::new(start.to_vec()).chain(rest)) };
        let source = match self {
            Self::File(mut file, len) => {
                file.by_ref().take(BYTES).read_to_end(&mut start)?;
                file.seek(SeekFrom::Start(0))?;
                Self::File(file, len)
            }
            Self::Stream(mut stream) => {
                stream.by_ref().take(BYTES).read_to_end(&mut start)?;
                Self::Stream(again(&start, stream))
            }
            Self::Compressed(mut stream, bytes) => {
                stream.by_ref().take(BYTES).read_to_end(&mut start)?;
                Self::Compressed(again(&start, stream), bytes)
            }
        };
        Ok((start, source))
    }

    fn decompress(self, compression: Compression) -> io::Result<Self> {
        match self {
            Self::File(file, len) => {
                let read = Arc::new(AtomicU64::new(0));
                let counted = Counted { inner: Box::new(file), count: Arc::clone(&read) };
                let bytes = Bytes { read, total: Some(len) };
                Ok(Self::Compressed(compression.decoder(Box::new(counted))?, bytes))
            }
            Self::Stream(stream) | Self::Compressed(stream, _) => Ok(Self::Stream(compression.decoder(stream)?)),
        }
    }
}

/// How many bytes of a stream have been read, and how many there are.
#[derive(Debug, Clone)]
pub(crate) struct Bytes {
    read: Arc<AtomicU64>,
    pub(crate) total: Option<u64>,
}

impl Bytes {
    /// The bytes of a file of which none count as read.
    pub(crate) fn unread(total: u64) -> Self {
        Self { read: Arc::default(), total: Some(total) }
    }

    pub(crate) fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}

/// A reader that counts its bytes.
pub(crate) struct Counted {
    inner: Box<dyn Read + Send>,
    count: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.count.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// Whether bytes begin as a safetensors file does: the length of a header, and a JSON object.
fn is_safetensors(start: &[u8]) -> bool {
    let Some((length, header)) = start.split_first_chunk() else { return false };
    // The first eight characters of a text would be a length beyond that of any file.
    header.starts_with(b"{\"") && u64::from_le_bytes(*length) < 1 << 40
}

/// Whether bytes begin as UTF-16 text does: with its mark, or with every other byte of the first eight zero.
fn is_utf16(start: &[u8]) -> bool {
    let every_other = |zero: usize| start.len() >= 8 && (0..8).all(|i| (start[i] == 0) == (i % 2 == zero));
    start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]) || every_other(0) || every_other(1)
}

/// Why a file that begins with these bytes is not a table, if it is none.
fn refusal(start: &[u8], given: Option<Format>) -> Option<String> {
    if let Some(other) = unknown_compression(start) {
        return Some(format!("is compressed with {other}: decompress it, or use gzip or Zstandard"));
    }
    // A JSONL file without lines is a table without rows, which some readers allow.
    let reason = if start.is_empty() && given != Some(Format::Jsonl) {
        "is empty: it needs a header and rows"
    } else if is_utf16(start) {
        "is UTF-16 text: save it as UTF-8, as in `iconv -f UTF-16 -t UTF-8`"
    } else if is_safetensors(start) {
        "is a router file (safetensors), not a table: give the table of predictions in its place"
    } else if given.is_none() && start.trim_ascii_start().starts_with(b"[") {
        "is a JSON array: write one object per line, without brackets and commas around them, and call it .jsonl"
    } else {
        return None;
    };
    Some(reason.to_owned())
}

/// All bytes of a file; `-` is standard input.
pub(crate) fn read_all(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        io::stdin().read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    read.map_err(|e| Error::io(&input_name(path), e))?;
    Ok(bytes)
}

impl Input {
    /// Opens a path (`-` is standard input) and finds its format: the given one, that of its extension, or that of its first bytes.
    pub(crate) fn open(path: &Path, format: Option<Format>) -> Result<Self> {
        let name = input_name(path);
        let source = Self::open_source(path, &name)?;
        Self::identify(name, source, format.or_else(|| Format::from_path(path)))
    }

    /// A stream of a known format.
    pub(crate) fn from_stream(name: String, stream: Box<dyn Read + Send>, format: Format) -> Result<Self> {
        Self::identify(name, ByteSource::Stream(stream), Some(format))
    }

    /// Finds the format if it is not given, and decompresses text.
    fn identify(name: String, source: ByteSource, given: Option<Format>) -> Result<Self> {
        let (mut start, mut source) = source.peek().map_err(|e| Error::io(&name, e))?;
        let compression = Compression::from_bytes(&start);
        if let Some(compression) = compression {
            let inside = source.decompress(compression).and_then(ByteSource::peek);
            (start, source) = inside.map_err(|e| Error::file(&name, e.to_string()))?;
            if let Some(other) = Compression::from_bytes(&start) {
                let (first, second) = (other.name(), compression.name());
                let reason = format!("is compressed twice, with {first} and then {second}: decompress it once");
                return Err(Error::file(&name, reason));
            }
        }
        if let Some(reason) = refusal(&start, given) {
            return Err(Error::file(&name, reason));
        }
        let format = given.unwrap_or_else(|| Format::from_bytes(&start));
        if let Some(compression) = compression.filter(|_| !format.is_text()) {
            let reason = format!("is {format} compressed with {}: decompress it first", compression.name());
            return Err(Error::file(&name, reason));
        }
        Ok(Self { name, format, is_empty: start.is_empty(), source })
    }

    fn open_source(path: &Path, name: &str) -> Result<ByteSource> {
        if path.as_os_str() == "-" {
            return Ok(ByteSource::Stream(Box::new(io::stdin())));
        }
        let file = File::open(path).map_err(|e| Error::io(name, e))?;
        let meta = file.metadata().map_err(|e| Error::io(name, e))?;
        if meta.is_dir() {
            Err(Error::io(name, io::ErrorKind::IsADirectory.into()))
        } else if meta.is_file() {
            Ok(ByteSource::File(file, meta.len()))
        } else {
            // A pipe or a terminal.
            Ok(ByteSource::Stream(Box::new(file)))
        }
    }

    /// Opens a file that is open already, from its beginning.
    pub(crate) fn reopen(name: &str, file: &File, format: Option<Format>) -> Result<Self> {
        let again = || -> io::Result<ByteSource> {
            let mut file = file.try_clone()?;
            file.seek(SeekFrom::Start(0))?;
            let len = file.metadata()?.len();
            Ok(ByteSource::File(file, len))
        };
        Self::identify(name.to_owned(), again().map_err(|e| Error::io(name, e))?, format)
    }

    /// Whether it is a stream that cannot be rewound.
    pub(crate) fn is_stream(&self) -> bool {
        !matches!(self.source, ByteSource::File(..))
    }

    /// The bytes from first to last.
    pub(crate) fn stream(self) -> (BufReader<Counted>, Bytes) {
        let count = Arc::new(AtomicU64::new(0));
        let counted = |total| Bytes { read: Arc::clone(&count), total };
        let (inner, bytes): (Box<dyn Read + Send>, Bytes) = match self.source {
            ByteSource::File(file, len) => (Box::new(file), counted(Some(len))),
            ByteSource::Stream(stream) => (stream, counted(None)),
            ByteSource::Compressed(stream, bytes) => (stream, bytes),
        };
        (BufReader::with_capacity(1 << 18, Counted { inner, count }), bytes)
    }

    /// A file that can be rewound, and its length: a stream is first written to a temporary file.
    pub(crate) fn file(self) -> Result<(File, u64)> {
        match self.source {
            ByteSource::File(file, len) => Ok((file, len)),
            ByteSource::Stream(mut stream) | ByteSource::Compressed(mut stream, _) => {
                let mut spool = || -> io::Result<(File, u64)> {
                    let mut file = tempfile::tempfile()?;
                    let len = io::copy(&mut stream, &mut file)?;
                    file.seek(SeekFrom::Start(0))?;
                    Ok((file, len))
                };
                spool().map_err(|e| Error::io(&self.name, e))
            }
        }
    }
}
