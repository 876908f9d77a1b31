//! A table batch by batch, in bounded memory.

use crate::annotations::Join;
use crate::error::{Error, Result};
use crate::format::Format;
use crate::frame::Frame;
use crate::guard::guarded;
use crate::input::Input;
use crate::input_column::InputColumn;
use crate::options::{Delimiter, ReadOptions};
use crate::raw::RawRows;
use crate::row_filter::RowFilter;
use crate::source::{Progress, Source};
use crate::{csv, ipc, jsonl, npz, parquet};

/// The batches of an opened table; `joined` are annotations that earlier tables were joined with.
pub(super) fn batches_of(input: Input, options: &ReadOptions, joined: Option<Join>) -> Result<Batches> {
    let name = input.name.clone();
    if options.delimiter.is_some() && !matches!(input.format, Format::Csv | Format::Tsv) {
        let reason =
            format!("is read as {}, which has no delimiter: leave it out, or give the format csv", input.format);
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
        filter: RowFilter::new(&options.filters),
        batch_rows: options.batch_rows.min(source.max_batch_rows()).max(1),
        name,
        source,
        join,
        allow_empty: options.allow_empty,
        normalize: options.normalize,
        rows_kept: 0,
        done: false,
    })
}

/// The batches of a table, one after the other.
pub struct Batches {
    pub(super) name: String,
    source: Box<dyn Source>,
    filter: RowFilter,
    pub(super) join: Option<Join>,
    batch_rows: usize,
    allow_empty: bool,
    normalize: bool,
    rows_kept: u64,
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
        self.source.layout().features.as_ref().map_or(&[], |group| &group.keys)
    }

    /// Whether rows have ids.
    #[must_use]
    pub fn has_ids(&self) -> bool {
        self.source.layout().id.is_some()
    }

    /// The columns of the file, without rows, that batches carry if [`ReadOptions::keep_columns`] asks for them. Those of JSONL are
    /// known only from its rows: none are listed here.
    #[must_use]
    pub fn columns(&self) -> Vec<(String, InputColumn)> {
        self.source.columns()
    }

    /// Columns that batches cannot carry: arrays of npz that do not have one value or one list per row.
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

    /// How many rows the file has before any filter, if the format stores their number.
    #[must_use]
    pub fn rows_hint(&self) -> Option<u64> {
        self.source.progress().total_rows
    }

    /// The rows and bytes read so far.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.source.progress()
    }

    fn next_frame(&mut self) -> Result<Option<Frame>> {
        loop {
            let (raw, items) = self.next_rows(self.batch_rows)?;
            self.rows_kept += raw.rows.len() as u64;
            if self.done {
                if let Some(join) = &self.join {
                    join.finish(&self.name)?;
                }
                if self.rows_kept == 0 {
                    if self.allow_empty && raw.without_labels == 0 && self.source.progress().rows == 0 {
                        return Ok(None);
                    }
                    return Err(self.no_rows(raw.without_labels));
                }
            }
            if !raw.rows.is_empty() {
                let annotations = self.join.as_ref().map(|join| join.annotations(&items)).transpose()?.flatten();
                let mut frame = self.build(raw)?;
                frame.annotations = annotations;
                return Ok(Some(frame));
            }
            // All rows of this batch were dropped; later ones may have some.
            if self.done {
                return Ok(None);
            }
        }
    }

    /// All rows with their annotated items. The inner error is the reason why there are no rows.
    pub(super) fn read_whole(&mut self) -> Result<std::result::Result<(Frame, Vec<usize>), Error>> {
        let (raw, items) = self.next_rows(usize::MAX)?;
        if raw.rows.is_empty() {
            return Ok(Err(self.no_rows(raw.without_labels)));
        }
        Ok(Ok((self.build(raw)?, items)))
    }

    fn build(&self, raw: RawRows) -> Result<Frame> {
        let mut frame = raw.build(&self.name, self.source.layout(), self.join.is_some(), self.normalize)?;
        frame.unused_numeric = self.source.unused_numeric();
        let layout = self.source.layout();
        let unused = layout.unused_scalars.iter().map(|&field| &layout.names[field]);
        frame.unused_text = unused.filter(|name| !frame.unused_numeric.contains(name)).cloned().collect();
        frame.has_numbers_as_labels =
            self.source.labels().have_indices() || self.join.as_ref().is_some_and(Join::has_numbers_as_labels);
        frame.without_answers = self.without_answers();
        Ok(frame)
    }

    /// The columns of other models' answers by which rows were left out, with the number of these rows so far.
    fn without_answers(&self) -> Vec<(String, u64)> {
        let layout = self.source.layout();
        let has_answers = |field: usize| layout.oracles.iter().any(|(_, group)| group.fields().contains(&field));
        let filters = self.filter.without_value().filter(|(_, _, rows)| *rows > 0);
        let of_answers = filters.filter(|(place, ..)| has_answers(layout.filters[*place].path.field));
        of_answers.map(|(_, filter, rows)| (filter.column().to_owned(), rows)).collect()
    }

    /// Reads rows until there are `want`, or the file ends, and joins them with their annotations: the rows and their annotated items.
    fn next_rows(&mut self, want: usize) -> Result<(RawRows, Vec<usize>)> {
        let mut raw = RawRows::with_capacity(self.source.layout(), self.initial_capacity(want));
        // Long rows end a batch early, but not a table that is read whole.
        let is_full = |raw: &RawRows| want <= self.batch_rows && raw.inputs.is_full();
        while raw.rows.len() < want && !is_full(&raw) {
            let limit = self.batch_rows.min(want - raw.rows.len());
            let (source, filter) = (&mut self.source, &mut self.filter);
            if guarded(&self.name, || source.fill(limit, filter, &mut raw))? == 0 {
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

    /// Rows to reserve memory for: those that the file claims, but at most one value per byte of the file.
    fn initial_capacity(&self, want: usize) -> usize {
        let progress = self.source.progress();
        let width = self.source.layout().width() as u64;
        let believable = progress.total_bytes.unwrap_or(0).max(1 << 20) / width + 1;
        let rows = match progress.total_rows {
            Some(rows) if self.filter.keeps_all() => rows,
            _ => self.batch_rows as u64,
        };
        rows.min(believable).min(want as u64) as usize
    }

    /// Why no row was read.
    fn no_rows(&self, without_labels: usize) -> Error {
        if self.join.as_ref().is_some_and(|join| join.rows_with_few_labels() > 0) {
            Error::file(&self.name, "no row has as many labels as --min-labels asks for (in Rust min_labels)")
        } else if without_labels > 0 {
            Error::file(&self.name, "no row has a label left: everybody who labelled these rows is left out")
        } else if self.source.progress().rows == 0 {
            Error::file(&self.name, "has no rows: there must be at least one below the header")
        } else if self.join.is_some() && (self.filter.keeps_all() || self.filter.has_kept_rows()) {
            Error::file(&self.name, "no row has an annotation: compare its ids with those of the annotations")
        } else {
            self.filter.no_rows(&self.name)
        }
    }
}

impl Iterator for Batches {
    type Item = Result<Frame>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let frame = self.next_frame().transpose();
        // After an error the reader cannot continue.
        self.done |= !matches!(frame, Some(Ok(_)));
        frame
    }
}
