//! Reading a file: whole, or batch by batch in bounded memory.

use std::cell::Cell;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use pointsman::Table;

use crate::annotations::Join;
use crate::batch::{Frame, Raw, differing};
use crate::cell::Gate;
use crate::error::{Error, Result, name_of};
use crate::format::Format;
use crate::input::Input;
use crate::input_column::InputColumn;
use crate::layout::Layout;
use crate::options::{Delimiter, ReadOptions};
use crate::{csv, ipc, jsonl, npz, parquet};

/// A format's reader: knows where everything stands, and appends rows.
pub(crate) trait Source: Send {
    fn layout(&self) -> &Layout;

    /// Reads up to `limit` rows of the file and appends those that pass the gate. Gives the number of rows
    /// read; none means the end.
    fn fill(&mut self, limit: usize, gate: &mut Gate, out: &mut Raw) -> Result<usize>;

    fn progress(&self) -> Progress;

    /// The columns that batches carry, without rows, as far as they are known beforehand.
    fn columns(&self) -> Vec<(String, InputColumn)> {
        Vec::new()
    }

    /// The columns that cannot be carried: they do not have one value per row.
    fn left_out(&self) -> &[String] {
        &[]
    }

    /// The columns of numbers that nothing uses, if there are no features.
    fn unused_numeric(&self) -> Vec<String>;

    /// The most rows a batch should have for the memory it takes.
    fn most_rows(&self) -> usize {
        usize::MAX
    }
}

/// How far a reader has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Rows of the file read so far, before any filter.
    pub rows: u64,
    /// Rows of the file, where the format says so.
    pub total_rows: Option<u64>,
    /// Bytes read so far, where rows are not known beforehand.
    pub bytes: u64,
    /// Bytes of the file, if it is one.
    pub total_bytes: Option<u64>,
}

impl Progress {
    /// The share of the file read so far, if it can be known.
    #[must_use]
    pub fn fraction(&self) -> Option<f64> {
        let (done, total) = match (self.total_rows, self.total_bytes) {
            (Some(total), _) => (self.rows, total),
            (None, Some(total)) => (self.bytes, total),
            (None, None) => return None,
        };
        Some(if total == 0 { 1.0 } else { (done as f64 / total as f64).min(1.0) })
    }
}

/// Reads a whole table, with everything the file has to say about its rows.
///
/// # Errors
/// If the file cannot be opened or is not a table; the message names the file, the row and the column.
///
/// ```no_run
/// let table = pointsman_table::read("calibration.parquet")?;
/// println!("{} rows of {:?}", table.rows(), table.classes());
/// # Ok::<(), pointsman_table::Error>(())
/// ```
pub fn read(path: impl AsRef<Path>) -> Result<Table> {
    read_frame(path, &ReadOptions::default()).map(|frame| frame.table)
}

/// Reads a whole table with its ids and row numbers.
///
/// # Errors
/// As [`read`], and if no row passes the filters.
pub fn read_frame(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Frame> {
    read_frames(&[path], options)
}

/// Reads several tables with the same columns, in whatever order these stand, as one: the rows of the first, then those of the second, and
/// so on. Classes and features are in the order of the first; annotations are joined to all of them.
///
/// # Errors
/// As [`read_frame`], and if the tables differ in their columns: the message names both files and what differs. Some of the tables may
/// have no rows, or none that pass the filters. The columns of one table alone can be [kept](ReadOptions::keep_columns).
pub fn read_frames<P: AsRef<Path>>(paths: &[P], options: &ReadOptions) -> Result<Frame> {
    let mut options = options.clone();
    if options.keep_columns && paths.len() > 1 {
        let reason = "the columns of several tables cannot be kept together: read one table at a time";
        return Err(Error::Option(reason.to_owned()));
    }
    let mut first: Option<(String, Vec<String>)> = None;
    let mut whole: Option<Frame> = None;
    let (mut join, mut items) = (None, Vec::new());
    let mut nothing = Vec::new();
    for path in paths {
        let input = Input::open(path.as_ref(), options.format)?;
        if input.is_empty && paths.len() > 1 {
            nothing.push(Error::file(&input.name, jsonl::EMPTY));
            continue;
        }
        let mut batches = batches_of(input, &options, join.take())?;
        let (file, classes) = first.get_or_insert_with(|| (batches.name.clone(), batches.classes().to_vec()));
        if let Some(reason) = differing("classes", (file, classes), (&batches.name, batches.classes())) {
            return Err(Error::file(&batches.name, reason));
        }
        options.classes.get_or_insert_with(|| classes.clone());
        // A table without rows need not show its classes, now that they are known.
        options.allow_empty = true;
        let read = batches.whole();
        join = batches.join.take();
        match (read?, &mut whole) {
            (Ok((frame, own_items)), whole) => {
                items.extend(own_items);
                match whole {
                    Some(whole) => whole.append(frame)?,
                    none => *none = Some(frame),
                }
            }
            (Err(none), _) => nothing.push(none),
        }
    }
    let names: Vec<String> = paths.iter().map(|path| name_of(path.as_ref())).collect();
    let joined = join.as_ref().map(|join| join.finish(&names.join(", "))).transpose()?;
    let Some(mut whole) = whole else {
        return Err(nothing.into_iter().next().unwrap_or_else(|| Error::Option("there are no tables to read".into())));
    };
    whole.joined = joined;
    if let Some(join) = &join {
        whole.annotations = join.annotations(&items)?;
    }
    Ok(whole)
}

/// Reads a table batch by batch, in memory that does not grow with the file.
///
/// A batch has [`ReadOptions::batch_rows`] rows, fewer if an npz file's rows are long, the last one the rest. An Arrow file's own record batches
/// are held whole while they are cut up, a numpy array in Fortran order for as long as the file is read, and
/// [`ReadOptions::annotations`] stay in memory.
///
/// # Errors
/// If the file cannot be opened, or its columns make no table.
pub fn batches(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Batches> {
    batches_of(Input::open(path.as_ref(), options.format)?, options, None)
}

/// A table that can be read several times: a file, or a copy of a stream in a temporary file.
#[derive(Debug)]
pub struct Rereadable {
    path: PathBuf,
    /// The name, the format and the bytes of a stream.
    copy: Option<(String, Format, File)>,
}

impl Rereadable {
    /// Opens a path; `-` is standard input. A stream is read to its end.
    ///
    /// # Errors
    /// If it cannot be opened or copied.
    pub fn open(path: impl Into<PathBuf>, format: Option<Format>) -> Result<Self> {
        let path = path.into();
        let input = Input::open(&path, format)?;
        if !input.is_stream() {
            return Ok(Self { path, copy: None });
        }
        let (name, format) = (input.name.clone(), input.format);
        let (file, _) = input.file()?;
        Ok(Self { path, copy: Some((name, format, file)) })
    }

    /// Reads the table from its beginning; one reading at a time.
    ///
    /// # Errors
    /// As [`batches`].
    pub fn batches(&self, options: &ReadOptions) -> Result<Batches> {
        match &self.copy {
            None => batches(&self.path, options),
            Some((name, format, file)) => batches_of(Input::reopen(name, file, Some(*format))?, options, None),
        }
    }
}

/// `joined` are annotations that other tables were joined with before.
fn batches_of(input: Input, options: &ReadOptions, joined: Option<Join>) -> Result<Batches> {
    let name = input.name.clone();
    if options.delimiter.is_some() && !matches!(input.format, Format::Csv | Format::Tsv) {
        let reason =
            format!("is read as {}, which has no delimiter: leave it out, or say that the format is csv", input.format);
        return Err(Error::file(&name, reason));
    }
    let source = guarded(&name, || -> Result<Box<dyn Source>> {
        Ok(match input.format {
            Format::Csv => Box::new(csv::open(input, options.delimiter.unwrap_or(Delimiter::COMMA), options)?),
            Format::Tsv => Box::new(csv::open(input, options.delimiter.unwrap_or(Delimiter::TAB), options)?),
            Format::Jsonl => Box::new(jsonl::open(input, options)?),
            Format::Parquet => Box::new(parquet::open(input, options)?),
            Format::Arrow => Box::new(ipc::open(input, options)?),
            Format::Npz => Box::new(npz::open(input, options)?),
        })
    })?;
    let join = match (joined, &options.annotations) {
        (Some(join), _) => Some(join),
        (None, Some(path)) => Some(Join::load(path, &source.layout().classes, options)?),
        (None, None) => None,
    };
    Ok(Batches {
        gate: Gate::new(&options.filters),
        batch_rows: options.batch_rows.min(source.most_rows()).max(1),
        name,
        source,
        join,
        allow_empty: options.allow_empty,
        normalize: options.normalize,
        kept: 0,
        done: false,
    })
}

/// The batches of a table, one after the other.
pub struct Batches {
    name: String,
    source: Box<dyn Source>,
    gate: Gate,
    join: Option<Join>,
    batch_rows: usize,
    allow_empty: bool,
    normalize: bool,
    kept: u64,
    done: bool,
}

impl Batches {
    /// The classes, in order.
    #[must_use]
    pub fn classes(&self) -> &[String] {
        &self.source.layout().classes
    }

    /// The names of the features, without the prefix of wide columns.
    #[must_use]
    pub fn feature_names(&self) -> &[String] {
        self.source.layout().features.as_ref().map_or(&[], |part| &part.keys)
    }

    /// Whether rows have ids.
    #[must_use]
    pub fn has_ids(&self) -> bool {
        self.source.layout().id.is_some()
    }

    /// The columns of the file, without rows, that batches carry if [`ReadOptions::keep_columns`] asks for them. JSONL tells its
    /// columns row by row: here it has none.
    #[must_use]
    pub fn columns(&self) -> Vec<(String, InputColumn)> {
        self.source.columns()
    }

    /// Columns that batches do not carry though all are asked for: arrays of npz that do not have one value or one list per row.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        self.source.left_out()
    }

    /// The name of the column that holds the ids, if there is one.
    #[must_use]
    pub fn id_column(&self) -> Option<&str> {
        let layout = self.source.layout();
        layout.id.map(|field| layout.names[field].as_str())
    }

    /// How many rows the file has before any filter, where the format says so.
    #[must_use]
    pub fn rows_hint(&self) -> Option<u64> {
        self.source.progress().total_rows
    }

    /// How far reading has come.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.source.progress()
    }

    /// The next batch, or why there is none.
    fn frame(&mut self) -> Option<Result<Frame>> {
        if self.done {
            return None;
        }
        let frame = self.next_frame().transpose();
        // After an error the reader's state means nothing.
        self.done |= !matches!(frame, Some(Ok(_)));
        frame
    }

    fn next_frame(&mut self) -> Result<Option<Frame>> {
        loop {
            let (raw, items) = self.next_rows(self.batch_rows)?;
            self.kept += raw.rows.len() as u64;
            if self.done {
                if let Some(join) = &self.join {
                    join.finish(&self.name)?;
                }
                if self.kept == 0 {
                    if self.allow_empty && raw.without_labels == 0 && self.source.progress().rows == 0 {
                        return Ok(None);
                    }
                    return Err(self.nothing(raw.without_labels));
                }
            }
            if !raw.rows.is_empty() {
                let annotations = self.join.as_ref().map(|join| join.annotations(&items)).transpose()?.flatten();
                let mut frame = self.build(raw)?;
                frame.annotations = annotations;
                return Ok(Some(frame));
            }
            // A batch may lose all its rows while others are still to come.
            if self.done {
                return Ok(None);
            }
        }
    }

    /// All rows with their annotated items; why there are none, if there are none.
    fn whole(&mut self) -> Result<std::result::Result<(Frame, Vec<usize>), Error>> {
        let (raw, items) = self.next_rows(usize::MAX)?;
        if raw.rows.is_empty() {
            return Ok(Err(self.nothing(raw.without_labels)));
        }
        Ok(Ok((self.build(raw)?, items)))
    }

    fn build(&self, raw: Raw) -> Result<Frame> {
        let mut frame = raw.build(&self.name, self.source.layout(), self.join.is_some(), self.normalize)?;
        frame.unused_numeric = self.source.unused_numeric();
        Ok(frame)
    }

    /// Reads rows until there are `want`, or the file ends, and joins them with their annotations: the items they found.
    fn next_rows(&mut self, want: usize) -> Result<(Raw, Vec<usize>)> {
        let mut raw = Raw::new(self.source.layout(), self.room(want));
        // Rows may be long; a table that is read whole is not cut.
        let is_cut = |raw: &Raw| want <= self.batch_rows && raw.inputs.is_full();
        while raw.rows.len() < want && !is_cut(&raw) {
            let limit = self.batch_rows.min(want - raw.rows.len());
            let (source, gate) = (&mut self.source, &mut self.gate);
            if guarded(&self.name, || source.fill(limit, gate, &mut raw))? == 0 {
                self.done = true;
                break;
            }
        }
        let items = match &mut self.join {
            Some(join) => join.votes(&self.name, &mut raw, &self.source.layout().classes)?,
            None => Vec::new(),
        };
        Ok((raw, items))
    }

    /// Rows to make room for. A file's own word is trusted as far as a byte a value; beyond that, vectors grow.
    fn room(&self, want: usize) -> usize {
        let progress = self.source.progress();
        let width = self.source.layout().width() as u64;
        let believable = progress.total_bytes.unwrap_or(0).max(1 << 20) / width + 1;
        let rows = match progress.total_rows {
            Some(rows) if self.gate.is_open() => rows,
            _ => self.batch_rows as u64,
        };
        rows.min(believable).min(want as u64) as usize
    }

    fn nothing(&self, without_labels: usize) -> Error {
        if without_labels > 0 {
            Error::file(&self.name, "no row has a label left: everybody who labelled these rows is left out")
        } else if self.source.progress().rows == 0 {
            Error::file(&self.name, "has no rows: there must be at least one below the header")
        } else if self.join.is_some() && (self.gate.is_open() || self.gate.has_kept()) {
            Error::file(&self.name, "no row has an annotation: compare its ids with those of the annotations")
        } else {
            self.gate.nothing(&self.name)
        }
    }
}

impl Iterator for Batches {
    type Item = Result<Frame>;

    fn next(&mut self) -> Option<Self::Item> {
        self.frame()
    }
}

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is inside a parser whose panic becomes an [`Error`]: a panic hook need not print it then.
#[must_use]
pub fn is_guarded() -> bool {
    GUARDED.get()
}

/// Runs a parser so that its panic becomes an error.
///
/// The parsers of Parquet, Arrow IPC and zip are other people's, and index into damaged files in many places:
/// overwriting bytes of good files makes arrow-buffer, arrow-ipc and parquet panic within minutes (the tests of
/// damaged files do so). A service must survive any upload, so the boundary is here, once for all formats. It
/// is sound to go on: the reader that panicked is dropped unused, and what it had appended with it.
///
/// A stack that overflows or memory that is refused cannot be caught. Readers keep clear of both: they check
/// claimed sizes and depths against the bytes there are before anybody relies on them.
pub(crate) fn guarded<T>(file: &str, parse: impl FnOnce() -> Result<T>) -> Result<T> {
    let before = GUARDED.replace(true);
    let parsed = catch_unwind(AssertUnwindSafe(parse));
    GUARDED.set(before);
    parsed.unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<&str>()
            .map(|s| (*s).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        let message = message.lines().next().unwrap_or_default();
        Err(Error::file(file, format!("is damaged: its parser gave up ({message})")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parsers_panic_is_known_as_such() {
        assert!(!is_guarded());
        let error = guarded("a.parquet", || -> Result<()> {
            assert!(is_guarded());
            panic!("index out of bounds\nsecond line");
        });
        let error = error.unwrap_err().to_string();
        assert_eq!(error, "a.parquet: is damaged: its parser gave up (index out of bounds)");
        assert!(!is_guarded());
    }
}
