//! Arrow IPC, as a stream or as a file (Feather version 2).
//!
//! A file is a stream between a magic number and a footer, so both are read as streams, front to back. The messages are framed here and not
//! by the library, because its readers allocate what a message's header claims. Here memory is allocated only for bytes that the file has,
//! and claimed decompressed lengths are checked before the decoder uses them.

use std::collections::VecDeque;
use std::io::{BufReader, Read};

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::{Message, root_as_message};
use arrow_schema::SchemaRef;

use crate::arrow::fields;
use crate::error::{Error, Parsed, Result};
use crate::input::{Bytes, Counted, Input};
use crate::layout::{Field, Hints, Layout};
use crate::options::ReadOptions;
use crate::record_batches::{ArrowSource, all_columns};

const MAGIC: &[u8; 6] = b"ARROW1";
const CONTINUATION: [u8; 4] = [0xff; 4];
const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

pub(crate) fn open(input: Input, options: &ReadOptions) -> Result<ArrowSource> {
    let (messages, fields) = Messages::open(input)?;
    let empty = messages.ready.iter().all(|batch| batch.num_rows() == 0) && messages.done;
    let layout = Layout::find(&messages.name, &fields, Hints { empty, sparse: true, ..Hints::default() }, options)?;
    let schema = messages.schema()?;
    let kept = if options.keep_columns { all_columns(&schema) } else { Vec::new() };
    let (name, bytes) = (messages.name.clone(), messages.bytes.clone());
    let all: Vec<usize> = (0..layout.names.len()).collect();
    Ok(ArrowSource::new(name, layout, &schema, &all, Box::new(messages), (None, bytes)).keeping(kept, Vec::new()))
}

/// The record batches of a stream.
pub(crate) struct Messages {
    pub(crate) name: String,
    reader: BufReader<Counted>,
    bytes: Bytes,
    decoder: StreamDecoder,
    ready: VecDeque<RecordBatch>,
    /// Whether the stream is wrapped as a file, which must then have an end.
    file: bool,
    done: bool,
}

impl Messages {
    /// Opens a stream, and reads up to its first row to learn the shape of its columns.
    pub(crate) fn open(input: Input) -> Result<(Self, Vec<Field>)> {
        let name = input.name.clone();
        let (mut reader, bytes) = input.stream();
        let mut start = Vec::new();
        reader.by_ref().take(8).read_to_end(&mut start).map_err(|e| Error::io(&name, e))?;
        let file = start.starts_with(MAGIC);
        let mut messages =
            Self { name, reader, bytes, decoder: StreamDecoder::new(), ready: VecDeque::new(), file, done: false };
        if file {
            // Zeros fill the space up to the first message, to an alignment of the writer's choice.
            let mut word = Vec::new();
            while word.iter().all(|byte| *byte == 0) {
                word.clear();
                messages.fill(&mut word, 4)?;
                if word.len() < 4 {
                    return Err(messages.truncated());
                }
            }
            messages.message(&word)?;
        } else {
            let known = start.starts_with(&CONTINUATION) || start.get(3) == Some(&0);
            if !known || start.len() < 8 {
                return Err(Error::file(&messages.name, "is not an Arrow file or stream: it does not begin like one"));
            }
            messages.message(&start)?;
        }
        while messages.ready.back().is_none_or(|batch| batch.num_rows() == 0) && !messages.done {
            messages.message(&[])?;
        }
        let empty;
        let first = match messages.ready.back() {
            Some(batch) => batch,
            None => {
                empty = RecordBatch::new_empty(messages.schema()?);
                &empty
            }
        };
        let fields = fields(first);
        Ok((messages, fields))
    }

    fn schema(&self) -> Result<SchemaRef> {
        self.decoder.schema().ok_or_else(|| self.damaged("no schema"))
    }

    /// Reads one message, of which `start` has been read already, and decodes the batch it completes, if any.
    fn message(&mut self, start: &[u8]) -> Result<()> {
        let mut prefix = start.to_vec();
        self.fill(&mut prefix, 4)?;
        if prefix.is_empty() && !self.file {
            return self.end();
        }
        // Before Arrow 0.15 there was no continuation marker, only the length.
        let marked = prefix.starts_with(&CONTINUATION);
        let head = if marked { 8 } else { 4 };
        self.fill(&mut prefix, head)?;
        let length = prefix.get(head - 4..head).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
        let Some(length) = length else { return Err(self.truncated()) };
        if length == 0 {
            return self.end();
        }
        let mut metadata = prefix.split_off(head);
        let length = length as usize;
        self.fill(&mut metadata, length)?;
        if metadata.len() < length {
            return Err(self.truncated());
        }
        let message = root_as_message(&metadata).map_err(|e| self.damaged(e))?;
        let length = u64::try_from(message.bodyLength()).map_err(|_| self.damaged("a body of negative length"))?;
        let mut body = Vec::new();
        self.reader.by_ref().take(length).read_to_end(&mut body).map_err(|e| Error::io(&self.name, e))?;
        if (body.len() as u64) < length {
            return Err(self.truncated());
        }
        check_claims(&message, &body).map_err(|why| self.damaged(why))?;
        prefix.extend_from_slice(&metadata);
        self.decode(prefix)?;
        self.decode(body)
    }

    /// Reads until `to` has `bytes` bytes, or the stream ends.
    fn fill(&mut self, to: &mut Vec<u8>, bytes: usize) -> Result<()> {
        let missing = bytes.saturating_sub(to.len()) as u64;
        self.reader.by_ref().take(missing).read_to_end(to).map_err(|e| Error::io(&self.name, e))?;
        Ok(())
    }

    fn decode(&mut self, bytes: Vec<u8>) -> Result<()> {
        let mut buffer = Buffer::from_vec(bytes);
        while !buffer.is_empty() {
            match self.decoder.decode(&mut buffer) {
                Ok(batch) => self.ready.extend(batch),
                Err(error) => return Err(self.damaged(error)),
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.done = true;
        // A message without a body is complete only when more bytes follow.
        self.decode(END.to_vec())?;
        if self.file {
            let mut footer = Vec::new();
            self.reader.read_to_end(&mut footer).map_err(|e| Error::io(&self.name, e))?;
            if !footer.ends_with(MAGIC) {
                return Err(self.truncated());
            }
        }
        Ok(())
    }

    fn truncated(&self) -> Error {
        self.damaged("it ends too early")
    }

    fn damaged(&self, why: impl std::fmt::Display) -> Error {
        let why = why.to_string();
        Error::file(&self.name, format!("is damaged or no Arrow file: {}", why.lines().next().unwrap_or_default()))
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            if self.done {
                return Ok(None);
            }
            self.message(&[])?;
        }
    }
}

impl Iterator for Messages {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance().transpose()
    }
}

/// Checks the claimed decompressed lengths of buffers, since the decoder allocates them.
fn check_claims(message: &Message<'_>, body: &[u8]) -> Parsed<()> {
    // Zstandard's run-length blocks turn 4 bytes into 128 KiB: no codec does better.
    const MAX_RATIO: u64 = 1 << 15;
    const MAX_BYTES: u64 = 1 << 32;
    let batch = message
        .header_as_record_batch()
        .or_else(|| message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data()));
    let Some(batch) = batch.filter(|batch| batch.compression().is_some()) else { return Ok(()) };
    for buffer in batch.buffers().iter().flatten() {
        // A buffer without bytes has no claim either; what follows belongs to the next one.
        if buffer.length() == 0 {
            continue;
        }
        let start = usize::try_from(buffer.offset()).map_err(|_| "a buffer at a negative offset")?;
        let claim = start.checked_add(8).and_then(|end| body.get(start..end)).and_then(|b| b.try_into().ok());
        let claim = claim.map_or(0, i64::from_le_bytes);
        let length = u64::try_from(buffer.length()).unwrap_or(0);
        if u64::try_from(claim).is_ok_and(|claim| claim > MAX_BYTES.min(length.saturating_mul(MAX_RATIO))) {
            return Err(format!("a buffer of {length} bytes claims to hold {claim}"));
        }
    }
    Ok(())
}
