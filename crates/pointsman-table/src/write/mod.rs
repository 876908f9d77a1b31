//! Writing tables of results, batch by batch, in any of the formats.

mod column;
mod sink;
mod text;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_schema::{Field, Schema};

use self::column::field;
pub use self::column::{Column, ColumnKind, record_batch};
use self::sink::Sink;
use crate::atomic::{Output, output_name};
use crate::compression::Compression;
use crate::error::{Error, Misfit, Result, RowAt, shown};
use crate::format::Format;

/// Writes a table to a file, which appears under its name when it is [finished](TableWriter::finish). If the writer is dropped before, no
/// file is left behind.
///
/// ```
/// use pointsman_table::{Column, ColumnKind, TableWriter};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("out.csv");
/// let columns = [("action".to_owned(), ColumnKind::Text), ("cost".to_owned(), ColumnKind::Real)];
/// let mut writer = TableWriter::create(&path, None, &columns)?;
/// writer.write(&[Column::Text(vec!["predict".to_owned()]), Column::Real(vec![f64::NAN])])?;
/// writer.finish()?;
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "action,cost\npredict,\n");
/// # Ok::<(), pointsman_table::Error>(())
/// ```
pub struct TableWriter {
    name: String,
    columns: Vec<(String, ColumnKind)>,
    /// Rows written.
    rows: u64,
    sink: Sink,
}

impl TableWriter {
    /// Begins a table with the given columns. `-` is standard output. The default format is that of the path's extension, and CSV on
    /// standard output.
    ///
    /// # Errors
    /// If the format is unknown, a column's name is given twice, or is empty and not one of an input, or the file cannot be created.
    pub fn create(path: impl AsRef<Path>, format: Option<Format>, columns: &[(String, ColumnKind)]) -> Result<Self> {
        let path = path.as_ref();
        let name = output_name(path);
        let format = Format::to_write(path, format)?;
        let compression = Compression::from_path(path);
        if let Some(compression) = compression.filter(|_| !format.is_text()) {
            let reason = format!(
                "{format} is not compressed with {} as a whole: leave out the last extension",
                compression.name()
            );
            return Err(Error::file(&name, reason));
        }
        check_names(&name, columns)?;
        Self::begin(name, Output::create(path)?, format, compression, columns)
    }

    /// Begins a table in a stream, such as the body of an answer, which is never held in memory as a whole. Messages call it by its name.
    ///
    /// # Errors
    /// If a column's name is given twice or is empty.
    pub fn stream(
        name: impl Into<String>,
        out: impl Write + Send + 'static,
        format: Format,
        columns: &[(String, ColumnKind)],
    ) -> Result<Self> {
        let name = name.into();
        check_names(&name, columns)?;
        Self::begin(name, Output::Stream(Box::new(out)), format, None, columns)
    }

    fn begin(
        name: String,
        out: Output,
        format: Format,
        compression: Option<Compression>,
        columns: &[(String, ColumnKind)],
    ) -> Result<Self> {
        let sink = Sink::create(out, format, compression, columns).map_err(|e| Error::io(&name, e))?;
        Ok(Self { name, columns: columns.to_vec(), rows: 0, sink })
    }

    /// Appends rows: one column each as declared, all of one length.
    ///
    /// # Errors
    /// If the columns are not those declared, or writing fails.
    pub fn write(&mut self, columns: &[Column]) -> Result<()> {
        let rows = columns.first().map_or(0, Column::len);
        let declared = columns.len() == self.columns.len()
            && columns.iter().zip(&self.columns).all(|(c, (_, kind))| c.kind() == *kind && c.len() == rows);
        if !declared {
            return Err(Error::file(&self.name, "the columns written are not those declared"));
        }
        if let Sink::Untyped(..) = &self.sink {
            let fields = columns.iter().zip(&self.columns);
            self.open(fields.map(|(column, (name, kind))| field(name, kind, Some(column))).collect())?;
        }
        let written = self.sink.write(columns, rows).map_err(|error| self.error(error));
        self.rows += rows as u64;
        written
    }

    /// Adds a column that the rows so far do not have, which only JSONL allows.
    ///
    /// # Errors
    /// If the format has one set of columns for all rows, or there is such a column.
    pub fn add_column(&mut self, name: String, kind: ColumnKind) -> Result<()> {
        let Sink::Jsonl { keys, .. } = &mut self.sink else {
            let reason = format!(
                "column {} is not in the first {} rows, whose columns the file has: write jsonl, or pass on fewer columns with --keep id",
                shown(&name),
                self.rows
            );
            return Err(Error::file(&self.name, reason));
        };
        if self.columns.iter().any(|(other, _)| *other == name) {
            return Err(Error::file(&self.name, format!("column name {} is given twice", shown(&name))));
        }
        keys.push(serde_json::to_string(&name).map_err(|e| Error::io(&self.name, e.into()))?);
        self.columns.push((name, kind));
        Ok(())
    }

    /// Opens a format with types, now that they are known.
    fn open(&mut self, fields: Vec<Field>) -> Result<()> {
        let Sink::Untyped(out, format) = std::mem::replace(&mut self.sink, Sink::Failed) else { return Ok(()) };
        self.sink = Sink::typed(out, format, &Arc::new(Schema::new(fields))).map_err(|error| self.error(error))?;
        Ok(())
    }

    /// Adds the file to an error, and the row and column if it is about a value.
    fn error(&self, error: io::Error) -> Error {
        match error.downcast::<Misfit>() {
            Ok(Misfit { column, row, reason }) => {
                let at = RowAt { file: &self.name, row: self.rows + row as u64 + 1, line: None };
                at.value(&self.columns[column].0, reason)
            }
            Err(error) => Error::io(&self.name, error),
        }
    }

    /// Completes the file and puts it in its place.
    ///
    /// # Errors
    /// If writing fails; nothing is left behind then.
    pub fn finish(mut self) -> Result<()> {
        if let Sink::Untyped(..) = &self.sink {
            self.open(self.columns.iter().map(|(name, kind)| field(name, kind, None)).collect())?;
        }
        self.sink.finish().map_err(|e| Error::io(&self.name, e))
    }
}

/// Refuses names of columns that are given twice, or empty where they are not those of an input.
fn check_names(name: &str, columns: &[(String, ColumnKind)]) -> Result<()> {
    for (i, (column, kind)) in columns.iter().enumerate() {
        let nameless = column.is_empty() && !matches!(kind, ColumnKind::Input(_));
        if nameless || columns[..i].iter().any(|(other, _)| other == column) {
            return Err(Error::file(name, format!("column name {} is empty or given twice", shown(column))));
        }
    }
    Ok(())
}
