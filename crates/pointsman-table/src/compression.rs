//! Text that is compressed as a whole: gzip and Zstandard, read and written as they stream.

use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

/// How a file is compressed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    /// The compression of a path's last extension.
    pub(crate) fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "gz" => Some(Self::Gzip),
            "zst" => Some(Self::Zstd),
            _ => None,
        }
    }

    /// The compression that a file's first bytes show.
    pub(crate) fn from_bytes(start: &[u8]) -> Option<Self> {
        if start.starts_with(&[0x1f, 0x8b]) {
            Some(Self::Gzip)
        } else if start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) || is_skippable_frame(start) {
            Some(Self::Zstd)
        } else {
            None
        }
    }

    /// What messages call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "Zstandard",
        }
    }

    /// A reader of the decompressed bytes.
    pub(crate) fn decoder(self, inner: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
        let bytes: Box<dyn Read + Send> = match self {
            Self::Gzip => Box::new(MultiGzDecoder::new(BufReader::new(inner))),
            Self::Zstd => Box::new(zstd::Decoder::new(inner)?),
        };
        Ok(Box::new(Decoder { bytes, compression: self }))
    }
}

/// Whether bytes begin with a frame that decoders of Zstandard skip. Parallel encoders write one before each block.
fn is_skippable_frame(start: &[u8]) -> bool {
    matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// The name of a compression that cannot be read, if bytes begin like it.
pub(crate) fn unknown_compression(start: &[u8]) -> Option<&'static str> {
    let known: [(&[u8], &str); 4] =
        [(b"BZh", "bzip2"), (b"\xfd7zXZ\0", "xz"), (b"7z\xbc\xaf", "7-Zip"), (b"\x04\x22\x4d\x18", "lz4")];
    known.into_iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, name)| name)
}

/// Decompressed bytes; errors say that the file is compressed.
struct Decoder {
    bytes: Box<dyn Read + Send>,
    compression: Compression,
}

impl Read for Decoder {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let name = self.compression.name();
        let damaged = |error| io::Error::other(format!("its compression ({name}) is damaged or incomplete: {error}"));
        self.bytes.read(buf).map_err(damaged)
    }
}

/// A writer that compresses, or passes on what it gets.
pub(crate) enum Encoder<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    Zstd(zstd::Encoder<'static, W>),
}

impl<W: Write> Encoder<W> {
    pub(crate) fn new(out: W, compression: Option<Compression>) -> io::Result<Self> {
        Ok(match compression {
            None => Self::Plain(out),
            Some(Compression::Gzip) => Self::Gzip(GzEncoder::new(out, flate2::Compression::default())),
            Some(Compression::Zstd) => Self::Zstd(zstd::Encoder::new(out, zstd::DEFAULT_COMPRESSION_LEVEL)?),
        })
    }

    /// Writes the rest and returns the inner writer.
    pub(crate) fn finish(self) -> io::Result<W> {
        match self {
            Self::Plain(out) => Ok(out),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}

impl<W: Write> Write for Encoder<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(out) => out.write(bytes),
            Self::Gzip(out) => out.write(bytes),
            Self::Zstd(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Gzip(out) => out.flush(),
            Self::Zstd(out) => out.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parallel encoders of Zstandard begin with a frame that is skipped, and gzip files may be concatenated.
    #[test]
    fn files_of_several_frames_are_read_whole() {
        let frame = |text: &str| zstd::encode_all(text.as_bytes(), 0).unwrap();
        let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0][..], b"\x01\x02\x03\x04"].concat();
        let member = |text: &str| {
            let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.finish().unwrap()
        };
        for bytes in [
            [skipped.clone(), frame("one,"), skipped, frame("two")].concat(),
            [frame("one,"), frame("two")].concat(),
            [member("one,"), member("two")].concat(),
        ] {
            let compression = Compression::from_bytes(&bytes).unwrap();
            let mut text = String::new();
            compression.decoder(Box::new(io::Cursor::new(bytes))).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "one,two", "{compression:?}");
        }
        assert_eq!(Compression::from_bytes(b"PAR1"), None);
    }
}
