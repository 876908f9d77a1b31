//! A table with its ids and its places in files.

use std::collections::HashMap;

use pointsman::Table;
use pointsman::diagnose::Annotations;
use pointsman::error::TableError;

use crate::error::{Error, Result, RowAt, listed};
use crate::input_column::InputColumn;
use crate::layout::unnamed_answers;
use crate::normalize::Sums;

/// Rows of a table, with their ids and their places in the files they were read from.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Frame {
    /// The rows.
    pub table: Table,
    /// Each row's `id`, if the files have any.
    pub ids: Option<Vec<String>>,
    /// The column of ids that annotations are joined by, if it has another name than was asked for: the only one like an id.
    pub taken_id: Option<String>,
    /// Each row's place in the file: data rows counted from one, before any filter.
    pub rows: Vec<u64>,
    /// Whether the file has votes or labels of its own, which annotations replaced.
    pub ignored_votes: bool,
    /// Who gave which label in which order, if annotations name their annotators.
    pub annotations: Option<Annotations>,
    /// How many rows were dropped because all their annotators are left out.
    pub rows_without_labels: usize,
    /// Every column of the file as it is, in order, if [`ReadOptions::keep_columns`](crate::ReadOptions::keep_columns) asks for them.
    /// Those of JSONL are the keys of these rows, which other batches need not have.
    pub columns: Vec<(String, InputColumn)>,
    /// How rows and annotations were matched, if a whole table was joined.
    pub joined: Option<Joined>,
    /// The sums of predictions that were divided by their sum, if any were.
    pub sums: Option<Sums>,
    /// The same for the truth and for other models, with the columns as messages name them: `oracle_gpt_*`.
    pub other_sums: Vec<(String, Sums)>,
    /// Files whose classes are in another order than was asked for, or than in the first file.
    pub reordered: Vec<String>,
    /// If there are no features: the unused columns of numbers, which may be features under another name.
    pub unused_numeric: Vec<String>,
    /// If there are no features: the other unused columns of single values, which hold texts, dates or nothing.
    pub unused_text: Vec<String>,
    /// Whether some labels are numbers of classes, the first class having the number 0.
    pub has_numbers_as_labels: bool,
    /// The columns of one label each, if labels were read from such columns.
    pub label_columns: Vec<String>,
    /// Those of [`Self::label_columns`] that were read by a prefix and may hold a majority vote or another decision made from the others:
    /// `label_final` beside `label_1`, `label_2` and `label_3`. They count as labels.
    pub decided_labels: Vec<String>,
    /// Columns under the prefix of other models that hold numbers of classes. They may be a version or seconds as well, so they are read as
    /// answers only if [`ReadOptions::columns`](crate::ReadOptions::columns) names the prefix.
    pub unread_answers: Vec<String>,
    /// Columns with answers of another model, each with the number of rows that [`ReadOptions::filters`](crate::ReadOptions::filters) left out
    /// because they have no answer there.
    pub without_answers: Vec<(String, u64)>,
    /// The names of all columns of the first file.
    pub(crate) names: Vec<String>,
    /// The files as messages name them, each with its first row here.
    pub(crate) files: Vec<(usize, String)>,
    /// Each row's line in formats that have lines; zero in files without.
    pub(crate) lines: Vec<u64>,
}

/// Ids that a table of items and its annotations do not share.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Ids {
    /// How many there are.
    pub count: usize,
    /// The first few of them.
    pub first: Vec<String>,
}

impl Ids {
    /// How many ids are listed.
    const MAX_LISTED: usize = 5;

    pub(crate) fn add(&mut self, id: &str) {
        self.count += 1;
        if self.first.len() < Self::MAX_LISTED {
            self.first.push(id.to_owned());
        }
    }
}

/// How the rows of a table and the ids of its annotations were matched.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Joined {
    /// The annotations as messages name them.
    pub file: String,
    /// How many rows found their annotations.
    pub rows: usize,
    /// Ids of rows that have no annotation: they were left out.
    pub not_annotated: Ids,
    /// Annotated ids that no row has: their labels were left out.
    pub not_in_table: Ids,
    /// Columns of the annotations whose names differ from the standard ones, in case or as `item_id` does from `id`.
    pub taken: Vec<(&'static str, String)>,
    /// How many annotations were left out for their label: [`ReadOptions::ignored_labels`](crate::ReadOptions::ignored_labels).
    pub ignored: usize,
    /// How many labels were left out because another label of the same annotator on the same item was kept:
    /// [`ReadOptions::keep_label`](crate::ReadOptions::keep_label).
    pub superseded: usize,
    /// How many rows were dropped because they have fewer labels than asked for:
    /// [`ReadOptions::min_labels`](crate::ReadOptions::min_labels).
    pub rows_with_few_labels: usize,
    /// Ids of [`Self::not_in_table`] that differ from an id of [`Self::not_annotated`] in capitals or surrounding spaces only, and that id.
    pub differ_in_capitals: Option<MatchedLabels>,
    /// Rows of the annotations that repeat an earlier one, and count once.
    pub copied: Option<CopiedLabels>,
    /// Labels that differ from the names of classes in capitals or surrounding spaces only.
    pub matched: Option<MatchedLabels>,
    /// Names of annotators that differ from an earlier one in capitals or surrounding spaces only, and the name they were taken for.
    pub matched_annotators: Option<MatchedLabels>,
    /// Names of [`ReadOptions::without`](crate::ReadOptions::without) that no annotator has, if
    /// [`ReadOptions::allow_absent_without`](crate::ReadOptions::allow_absent_without) allows them.
    pub absent_without: Vec<String>,
    /// An unused column of the annotations that seems to name the annotators.
    pub unused_annotator: Option<String>,
    /// An unused column of the annotations that seems to hold the times of the labels.
    pub unused_date: Option<String>,
    /// Whether the rows of every item are sorted by annotator, so that their order does not show who labelled first.
    pub is_sorted_by_annotator: bool,
}

/// Rows of annotations with the id, the annotator and the label of an earlier row.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopiedLabels {
    /// How many there are.
    pub rows: usize,
    /// The id of the first one.
    pub id: String,
    /// Its annotator.
    pub annotator: String,
    /// Its row.
    pub row: u64,
    /// The row that it repeats.
    pub of_row: u64,
}

/// Labels (or annotators) that were taken for the class (or the annotator) whose name differs in capitals or surrounding spaces only.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MatchedLabels {
    /// How many rows have such labels.
    pub rows: usize,
    /// The first few of these labels, and their classes.
    pub labels: Vec<(String, String)>,
}

/// Ids that several rows have.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepeatedIds {
    /// The ids.
    pub ids: Ids,
    /// How many rows have one of them.
    pub rows: usize,
}

impl Frame {
    /// Which class each number stands for, in one sentence; `None` if no labels were read as numbers of the classes.
    #[must_use]
    pub fn numbers_as_labels(&self) -> Option<String> {
        /// The largest number of classes listed.
        const MAX_LISTED: usize = 6;
        let classes = self.table.classes();
        let named: Vec<String> =
            classes.iter().take(MAX_LISTED).enumerate().map(|(number, class)| format!("{number} is {class}")).collect();
        let more = if classes.len() > MAX_LISTED { ", …" } else { "" };
        self.has_numbers_as_labels.then(|| {
            let last = classes.len() - 1;
            format!("labels 0 to {last} were read as numbers of the classes, from 0: {}{more}", named.join(", "))
        })
    }

    /// An error of the core about these rows, with the file's name and the row and line as they are in the file.
    #[must_use]
    pub fn error(&self, error: pointsman::Error) -> Error {
        if let pointsman::Error::Table(TableError::NoAnswers { route, class, oracles }) = &error
            && oracles.is_empty()
            && let Some(hint) = unnamed_answers(&self.names, route, class)
        {
            let reason = format!("the answers of the measured route {route:?} were not read: {hint}");
            return Error::file(&self.file_names(), reason);
        }
        match error {
            pointsman::Error::Value { row, column, reason } => {
                let (file, line) = (self.file_of(row), self.lines.get(row).copied().filter(|&line| line > 0));
                RowAt { file, row: self.rows.get(row).copied().unwrap_or_default(), line }
                    .value(column, reason.to_string())
            }
            other => Error::file(&self.file_names(), other.to_string()),
        }
    }

    /// Leaves out the rows for which `keep` is false, with their ids and places. Who gave which label is forgotten, and so are unread columns.
    pub fn keep_rows(&mut self, keep: impl Fn(usize) -> bool) {
        fn retain<T>(values: &mut Vec<T>, keep: impl Fn(usize) -> bool) {
            let mut row = 0;
            values.retain(|_| {
                row += 1;
                keep(row - 1)
            });
        }
        self.table = self.table.keep_rows(&keep);
        self.ids.iter_mut().for_each(|ids| retain(ids, &keep));
        retain(&mut self.lines, &keep);
        for (first, _) in &mut self.files {
            *first = (0..*first).filter(|&row| keep(row)).count();
        }
        retain(&mut self.rows, &keep);
        self.annotations = None;
        self.columns.clear();
    }

    /// The file that a row was read from, as messages name it.
    #[must_use]
    pub fn file_of(&self, row: usize) -> &str {
        let place = self.files.partition_point(|(first, _)| *first <= row);
        self.files.get(place.saturating_sub(1)).map_or("", |(_, file)| file)
    }

    /// The names of all files, for messages.
    fn file_names(&self) -> String {
        self.files.iter().map(|(_, file)| file.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// The ids that several rows have; `None` if all differ, or there are none.
    #[must_use]
    pub fn repeated_ids(&self) -> Option<RepeatedIds> {
        let mut counts: HashMap<&str, usize, foldhash::fast::RandomState> = HashMap::default();
        let mut ids = Ids::default();
        let mut rows = 0;
        for id in self.ids.iter().flatten() {
            let count = counts.entry(id).or_default();
            *count += 1;
            rows += usize::from(*count > 1);
            if *count == 2 {
                // The first row of the id counts too.
                rows += 1;
                ids.add(id);
            }
        }
        (ids.count > 0).then_some(RepeatedIds { ids, rows })
    }

    /// Adds the rows of another file.
    ///
    /// # Errors
    /// If its columns are not the same; the message names both files and what differs.
    pub(crate) fn append(&mut self, other: Self) -> Result<()> {
        let (own, file) = (self.file_of(0).to_owned(), other.file_of(0).to_owned());
        if let Some(difference) = difference(&own, &self.table, &file, &other.table) {
            return Err(Error::file(&file, difference));
        }
        if self.ids.is_some() != other.ids.is_some() {
            let (with, without) = if self.ids.is_some() { (&own, &file) } else { (&file, &own) };
            return Err(Error::file(
                &file,
                format!("{with} has ids and {without} has none: give all tables the same columns"),
            ));
        }
        if self.table.classes() != other.table.classes() && other.reordered.is_empty() {
            self.reordered.push(file.clone());
        }
        let refuse = |error: pointsman::Error| Error::file(&file, format!("does not fit {own}: {error}"));
        let table = match self.table.classes() == other.table.classes() {
            true => other.table,
            false => other.table.in_order_of(self.table.classes()).map_err(refuse)?,
        };
        let rows = self.table.rows();
        self.table.append(&table).map_err(refuse)?;
        if !self.lines.is_empty() || !other.lines.is_empty() {
            self.lines.resize(rows, 0);
            self.lines.extend(other.lines);
            self.lines.resize(self.table.rows(), 0);
        }
        self.rows.extend(other.rows);
        if let (Some(ids), Some(more)) = (&mut self.ids, other.ids) {
            ids.extend(more);
        }
        self.ignored_votes |= other.ignored_votes;
        self.has_numbers_as_labels |= other.has_numbers_as_labels;
        self.rows_without_labels += other.rows_without_labels;
        self.sums = Sums::merged(self.sums, other.sums);
        for (columns, sums) in other.other_sums {
            match self.other_sums.iter_mut().find(|(own, _)| *own == columns) {
                Some((_, own)) => *own = own.with(sums),
                None => self.other_sums.push((columns, sums)),
            }
        }
        self.reordered.extend(other.reordered);
        add_new(&mut self.label_columns, other.label_columns);
        add_new(&mut self.decided_labels, other.decided_labels);
        add_new(&mut self.unread_answers, other.unread_answers);
        for (column, rows) in other.without_answers {
            match self.without_answers.iter_mut().find(|(own, _)| *own == column) {
                Some((_, own)) => *own += rows,
                None => self.without_answers.push((column, rows)),
            }
        }
        self.files.extend(other.files.into_iter().map(|(first, file)| (first + rows, file)));
        Ok(())
    }
}

/// Adds the names that are not there yet.
fn add_new(names: &mut Vec<String>, more: Vec<String>) {
    for name in more {
        if !names.contains(&name) {
            names.push(name);
        }
    }
}

/// How two tables differ that should have the same columns, in any order.
fn difference(one: &str, table: &Table, two: &str, other: &Table) -> Option<String> {
    let features = |table: &Table| table.feature_names().iter().map(|name| format!("x_{name}")).collect::<Vec<_>>();
    let oracles = |table: &Table| table.oracles().map(|(name, _)| format!("oracle_{name}")).collect::<Vec<_>>();
    let present = |is_there: bool, name: &str| if is_there { vec![name.to_owned()] } else { Vec::new() };
    let columns = |table: &Table| {
        let has_truth = table.rows() > 0 && table.truth(0).is_some();
        [
            ("classes", table.classes().to_vec()),
            ("features", features(table)),
            ("other models", oracles(table)),
            ("weights", present(table.has_weights(), "weight")),
            ("truth", present(has_truth, "true_*")),
        ]
    };
    let mut pairs = columns(table).into_iter().zip(columns(other));
    pairs.find_map(|((what, own), (_, others))| name_difference(what, (one, &own), (two, &others)))
}

/// A message about the names that only one of two files has; `None` if there are none. The second file is compared with the first.
pub(crate) fn name_difference(
    what: &str,
    (one, own): (&str, &[String]),
    (two, others): (&str, &[String]),
) -> Option<String> {
    let only = |names: &[String], besides: &[String]| -> Vec<String> {
        names.iter().filter(|name| !besides.contains(name)).cloned().collect()
    };
    let parts: Vec<String> = [(one, only(own, others)), (two, only(others, own))]
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(file, names)| format!("only {file} has {}", listed(&names)))
        .collect();
    let parts = (!parts.is_empty()).then(|| parts.join(", "))?;
    Some(format!("differs from {one} in its {what}: {parts}; give all tables the same columns"))
}
