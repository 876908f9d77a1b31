//! Errors of files, in terms of the file: its name, row, line and column.

use std::io;
use std::path::Path;

pub(crate) use pointsman::error::printable;

/// Why a file could not be read or written.
///
/// Every message is one line without control characters: the file, the row and column if there is one, the value, and what to do.
/// Rows are data rows of the file, counted from one before any filter.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// One row, or one value of it, cannot be used.
    #[error("{}: {}: {}", printable(file), place(*row, *line, column.as_deref()), printable(reason))]
    Row {
        /// The file as its path was given.
        file: String,
        /// The data row, counted from one.
        row: u64,
        /// The line, counted from one, in formats that have lines.
        line: Option<u64>,
        /// The column as the file names it, if the error is about one column.
        column: Option<String>,
        /// The value, what is wrong with it and what to do.
        reason: String,
    },
    /// The file as a whole cannot be used.
    #[error("{}: {}", printable(file), printable(reason))]
    File {
        /// The file as its path was given.
        file: String,
        /// What is wrong with it and what to do.
        reason: String,
    },
    /// The operating system refused.
    #[error("{}: {}", printable(file), refusal(source))]
    Io {
        /// The file as its path was given.
        file: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file is not the router, part or task that it should be.
    #[error("{}: {reason}", printable(file))]
    Content {
        /// The file as its path was given.
        file: String,
        /// What is wrong with it.
        reason: ContentError,
    },
    /// A filter, a column name or a format cannot be understood; what is wrong with it and what to do.
    #[error("{}", printable(.0))]
    Option(String),
}

/// Why bytes or text are not a router, a part of a calibration or a task.
///
/// Every message is one line without control characters.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ContentError {
    /// The bytes are something else, damaged, or contradict themselves.
    #[error("not a {what} file, or damaged ({}): {}", printable(reason), remedy(what))]
    Damaged {
        /// What they should be.
        what: &'static str,
        /// What is wrong with them.
        reason: String,
    },
    /// The bytes are of a format that this version does not know.
    #[error(
        "{what} format {version}, this program reads formats 1 to {newest}: use a newer pointsman, or {}",
        remedy(what)
    )]
    Version {
        /// What they are.
        what: &'static str,
        /// Their format.
        version: u32,
        /// The newest format that can be read.
        newest: u32,
    },
    /// This version cannot store the router, the part or the policy; why.
    #[error("{}", printable(.0))]
    Unstorable(String),
    /// The text is not TOML, or has unknown keys.
    #[error("line {line}: {}", printable(reason))]
    Toml {
        /// The line, counted from one.
        line: usize,
        /// What is wrong with it and what to do.
        reason: String,
    },
    /// The loss, the oracles and the prices are not those of a task.
    #[error("{}{reason}", line.map_or(String::new(), |line| format!("line {line}: ")))]
    Task {
        /// The line, counted from one, if the error is on one line.
        line: Option<usize>,
        /// What is wrong.
        reason: pointsman::Error,
    },
}

/// The result of a fallible operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A value, or what is wrong with it: the caller adds the file, the row and the column.
pub(crate) type Parsed<T> = std::result::Result<T, String>;

impl Error {
    pub(crate) fn file(file: &str, reason: impl Into<String>) -> Self {
        Self::File { file: file.to_owned(), reason: reason.into() }
    }

    /// The error of a file that should be a router, a part or a task.
    pub(crate) fn content(file: String) -> impl FnOnce(ContentError) -> Self {
        move |reason| Self::Content { file, reason }
    }

    pub(crate) fn io(file: &str, source: io::Error) -> Self {
        Self::Io { file: file.to_owned(), source }
    }
}

/// How to get a good file of this kind.
fn remedy(what: &str) -> &'static str {
    if what == "policy" { "compile the router again" } else { "calibrate again" }
}

/// The name of an input in messages.
pub(crate) fn input_name(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() }
}

/// A row as messages name it.
fn place(row: u64, line: Option<u64>, column: Option<&str>) -> String {
    let line = line.map_or(String::new(), |line| format!(" (line {line})"));
    let column = column.map_or(String::new(), |column| format!(", column {}", printable(column)));
    format!("row {row}{line}{column}")
}

fn refusal(source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::NotFound => "no such file or directory: check the path".to_owned(),
        io::ErrorKind::IsADirectory => "is a directory: give a file".to_owned(),
        _ => source.to_string(),
    }
}

/// A value as messages show it: quoted, on one line, and short.
pub(crate) fn shown(value: &str) -> String {
    const MAX_CHARS: usize = 60;
    if value.chars().count() <= MAX_CHARS {
        format!("{value:?}")
    } else {
        format!("{:?}…", value.chars().take(MAX_CHARS).collect::<String>())
    }
}

/// Names as messages list them: quoted where needed, and at most twenty.
pub(crate) fn listed<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    const MAX_NAMES: usize = 20;
    let is_plain = |name: &str| name.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
    let one = |name: S| match name.as_ref() {
        name if (1..=60).contains(&name.len()) && is_plain(name) => name.to_owned(),
        name => shown(name),
    };
    let mut names = names.into_iter();
    let mut list: Vec<String> = names.by_ref().take(MAX_NAMES).map(one).collect();
    list.extend(names.next().map(|_| "…".to_owned()));
    if list.is_empty() { "none".to_owned() } else { list.join(", ") }
}

/// A row of a file, for its errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowAt<'a> {
    pub(crate) file: &'a str,
    pub(crate) row: u64,
    pub(crate) line: Option<u64>,
}

impl RowAt<'_> {
    pub(crate) fn row(&self, reason: impl Into<String>) -> Error {
        self.error(None, reason.into())
    }

    pub(crate) fn value(&self, column: impl Into<String>, reason: impl Into<String>) -> Error {
        self.error(Some(column.into()), reason.into())
    }

    fn error(&self, column: Option<String>, reason: String) -> Error {
        Error::Row { file: self.file.to_owned(), row: self.row, line: self.line, column, reason }
    }
}

/// A value that cannot be written to its column.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct Misfit {
    /// The place of the column in the batch.
    pub(crate) column: usize,
    /// The row in the batch.
    pub(crate) row: usize,
    pub(crate) reason: String,
}

/// Adds the place of a value that cannot be written; other errors stay as they are.
pub(crate) fn misfit(column: usize, row: usize, error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::InvalidData => Misfit { column, row, reason: error.to_string() }.into(),
        _ => error,
    }
}

impl From<Misfit> for io::Error {
    fn from(misfit: Misfit) -> Self {
        Self::new(io::ErrorKind::InvalidData, misfit)
    }
}
