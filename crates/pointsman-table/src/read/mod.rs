//! Reading files: whole, or batch by batch in bounded memory.

mod batches;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use pointsman::Table;

pub use self::batches::Batches;
use self::batches::batches_of;
use crate::error::{Error, Result, input_name};
use crate::format::Format;
use crate::frame::{Frame, name_difference};
use crate::input::Input;
use crate::jsonl;
use crate::options::ReadOptions;

/// Reads a whole table, with all columns that have a role.
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

/// Reads several tables with the same columns, in any order, as one: the rows of the first, then those of the second, and
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
    let mut reasons_for_no_rows = Vec::new();
    for path in paths {
        let input = Input::open(path.as_ref(), options.format)?;
        if input.is_empty && paths.len() > 1 {
            reasons_for_no_rows.push(Error::file(&input.name, jsonl::EMPTY));
            continue;
        }
        let mut batches = batches_of(input, &options, join.take())?;
        let (file, classes) = first.get_or_insert_with(|| (batches.name.clone(), batches.classes().to_vec()));
        if let Some(reason) = name_difference("classes", (file, classes), (&batches.name, batches.classes())) {
            return Err(Error::file(&batches.name, reason));
        }
        options.classes.get_or_insert_with(|| classes.clone());
        // The classes are known now: further tables may have no rows.
        options.allow_empty = true;
        let read = batches.read_whole();
        join = batches.join.take();
        match read? {
            Ok((frame, own_items)) => {
                items.extend(own_items);
                match &mut whole {
                    Some(whole) => whole.append(frame)?,
                    None => whole = Some(frame),
                }
            }
            Err(reason) => reasons_for_no_rows.push(reason),
        }
    }
    let names: Vec<String> = paths.iter().map(|path| input_name(path.as_ref())).collect();
    let joined = join.as_ref().map(|join| join.finish(&names.join(", "))).transpose()?;
    let Some(mut whole) = whole else {
        let reason = reasons_for_no_rows.into_iter().next();
        return Err(reason.unwrap_or_else(|| Error::Option("there are no tables to read".into())));
    };
    whole.joined = joined;
    if let Some(join) = &join {
        whole.annotations = join.annotations(&items)?;
    }
    Ok(whole)
}

/// Reads a table batch by batch, in memory that does not grow with the file.
///
/// A batch has [`ReadOptions::batch_rows`] rows; fewer if the rows of an npz file are long, and the last one has the rest. In memory as a
/// whole are each record batch of an Arrow file, numpy arrays in Fortran order, and [`ReadOptions::annotations`].
///
/// # Errors
/// If the file cannot be opened, or its columns are not those of a table.
pub fn batches(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Batches> {
    batches_of(Input::open(path.as_ref(), options.format)?, options, None)
}

/// Reads a table batch by batch from a stream, such as the body of a request, as [`batches`] reads a file. Messages call it by its name.
///
/// # Errors
/// If it is not of this format, or its columns are not those of a table.
pub fn batches_from(
    name: impl Into<String>,
    stream: impl Read + Send + 'static,
    format: Format,
    options: &ReadOptions,
) -> Result<Batches> {
    batches_of(Input::from_stream(name.into(), Box::new(stream), format)?, options, None)
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
