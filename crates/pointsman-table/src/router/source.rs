//! Where the bytes of a file of tensors come from: memory, or a file that is read piece by piece.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use safetensors::tensor::{Metadata, SafeTensorError, SafeTensors};

use crate::error::{Error, Result, input_name};
use crate::input::read_all;

/// The bytes of the number that says how long the header is.
const LENGTH_BYTES: usize = 8;

/// The largest header that is read.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// The bytes of a file.
#[derive(Debug)]
pub(crate) enum Source<'a> {
    /// All of them.
    Memory(Cow<'a, [u8]>),
    /// An open file of this length. Its pieces are read at their places, by several threads.
    File(File, usize),
}

impl<'a> Source<'a> {
    pub(crate) fn from_bytes(bytes: &'a [u8]) -> Self {
        Self::Memory(Cow::Borrowed(bytes))
    }

    /// Opens a file (`-` is standard input). Streams are read at once, and so is everything where files cannot be read at a place.
    pub(crate) fn open(path: &Path) -> Result<Source<'static>> {
        if cfg!(unix) && path.as_os_str() != "-" {
            let file = File::open(path).map_err(|e| Error::io(&input_name(path), e))?;
            let metadata = file.metadata().map_err(|e| Error::io(&input_name(path), e))?;
            if let Some(length) = usize::try_from(metadata.len()).ok().filter(|_| metadata.is_file()) {
                return Ok(Source::File(file, length));
            }
        }
        Ok(Source::Memory(Cow::Owned(read_all(path)?)))
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Memory(bytes) => bytes.len(),
            Self::File(_, length) => *length,
        }
    }

    /// Some of the bytes; `buffer` holds them if they have to be read.
    pub(super) fn bytes<'b>(&'b self, range: Range<usize>, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
        match self {
            Self::Memory(bytes) => bytes.get(range).ok_or_else(|| io::ErrorKind::UnexpectedEof.into()),
            Self::File(file, _) => {
                buffer.resize(range.len(), 0);
                read_at(file, buffer, range.start as u64)?;
                Ok(buffer)
            }
        }
    }

    /// The header, checked against the length of the file, and the place where the arrays begin.
    pub(super) fn metadata(&self) -> std::result::Result<(usize, Metadata), SafeTensorError> {
        let mut buffer = Vec::new();
        let length = match self.bytes(0..LENGTH_BYTES.min(self.len()), &mut buffer)?.first_chunk() {
            Some(length) => u64::from_le_bytes(*length),
            None => return Err(SafeTensorError::HeaderTooSmall),
        };
        // What is too long for a header, or for the file, is refused below.
        let end = (length.min(MAX_HEADER_BYTES) as usize + LENGTH_BYTES).min(self.len());
        let header = self.bytes(0..end, &mut buffer)?;
        let metadata: Metadata = match SafeTensors::read_metadata(header) {
            Ok((_, metadata)) => metadata,
            // The last of all checks: these bytes are the header alone.
            Err(SafeTensorError::MetadataIncompleteBuffer) => serde_json::from_slice(&header[LENGTH_BYTES..])
                .map_err(SafeTensorError::InvalidHeaderDeserialization)?,
            Err(error) => return Err(error),
        };
        match end.checked_add(metadata.data_len()) == Some(self.len()) {
            true => Ok((end, metadata)),
            false => Err(SafeTensorError::MetadataIncompleteBuffer),
        }
    }
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], place: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, place)
}

#[cfg(not(unix))]
fn read_at(_: &File, _: &mut [u8], _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
