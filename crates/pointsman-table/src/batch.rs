//! The one form every reader turns its file into, and the one place where that becomes a table.

use std::collections::HashMap;

use pointsman::Table;
use pointsman::diagnose::Annotations;
use pointsman::error::ValueError;

use crate::annotations::{Ids, Joined};
use crate::error::{Error, Result, listed};
use crate::input_column::{InputColumn, InputRows};
use crate::layout::{Layout, Part};
use crate::normalize::{Divider, Sums};
use crate::number::NO_ANSWER;

/// Rows of a table, with what ties them to the file or files it was read from.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Frame {
    /// The rows.
    pub table: Table,
    /// Each row's `id`, if the files have any.
    pub ids: Option<Vec<String>>,
    /// Each row's place in the file: data rows counted from one, before any filter.
    pub rows: Vec<u64>,
    /// Whether the file has votes or labels of its own that annotations took the place of.
    pub ignored_votes: bool,
    /// Who gave which label in which order, if annotations say so.
    pub annotations: Option<Annotations>,
    /// How many rows were dropped because all their annotators are left out.
    pub rows_without_labels: usize,
    /// Every column of the file as it is, in order, if [`ReadOptions::keep_columns`](crate::ReadOptions::keep_columns) asks for them.
    /// Those of JSONL are the keys of these rows, which other batches need not have.
    pub columns: Vec<(String, InputColumn)>,
    /// How rows and annotations were matched, if a whole table was joined.
    pub joined: Option<Joined>,
    /// What probabilities summed to that were divided by their sum, if any were.
    pub sums: Option<Sums>,
    /// Files whose classes stand in another order than was asked for, or than the first file's.
    pub reordered: Vec<String>,
    /// If there are no features: the columns of numbers that nothing uses, which may be features under another name.
    pub unused_numeric: Vec<String>,
    /// The files as messages name them, each with its first row here.
    files: Vec<(usize, String)>,
    /// Each row's line in formats that have lines; zero in files without.
    lines: Vec<u64>,
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
    /// What the core says of these rows in the file's own terms: its name, and the row and line as they stand there.
    #[must_use]
    pub fn error(&self, error: pointsman::Error) -> Error {
        match error {
            pointsman::Error::Value { row, column, reason } => Error::Row {
                file: self.file_of(row).to_owned(),
                row: self.rows.get(row).copied().unwrap_or_default(),
                line: self.lines.get(row).copied().filter(|&line| line > 0),
                column: Some(column),
                reason: reason.to_string(),
            },
            other => Error::file(&self.names(), other.to_string()),
        }
    }

    /// The file that a row was read from, as messages name it.
    #[must_use]
    pub fn file_of(&self, row: usize) -> &str {
        let place = self.files.partition_point(|(first, _)| *first <= row);
        self.files.get(place.saturating_sub(1)).map_or("", |(_, file)| file)
    }

    /// All files, as messages name them.
    fn names(&self) -> String {
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
            match *count {
                1 => {}
                2 => {
                    ids.add(id);
                    rows += 2;
                }
                _ => rows += 1,
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
        self.rows_without_labels += other.rows_without_labels;
        self.sums = Sums::merged(self.sums, other.sums);
        self.reordered.extend(other.reordered);
        self.files.extend(other.files.into_iter().map(|(first, file)| (first + rows, file)));
        Ok(())
    }
}

/// In what two tables differ that should have the same columns, in whatever order.
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
    pairs.find_map(|((what, own), (_, others))| differing(what, (one, &own), (two, &others)))
}

/// Which names only one of two files has, in words; the first file is what the second is compared with.
pub(crate) fn differing(what: &str, (one, own): (&str, &[String]), (two, others): (&str, &[String])) -> Option<String> {
    let only = |names: &[String], besides: &[String]| -> Vec<String> {
        names.iter().filter(|name| !besides.contains(name)).cloned().collect()
    };
    let parts: Vec<String> = [(one, only(own, others)), (two, only(others, own))]
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(file, names)| format!("only {file} has {}", listed(&names)))
        .collect();
    let said = (!parts.is_empty()).then(|| parts.join(", "))?;
    Some(format!("differs from {one} in its {what}: {said}; give all tables the same columns"))
}

/// Rows as read: numbers of the right type, row by row, not yet checked against each other.
///
/// Readers append to it, so that a whole file is read into one allocation.
#[derive(Debug, Default)]
pub(crate) struct Raw {
    /// Data rows counted from one.
    pub(crate) rows: Vec<u64>,
    /// Lines counted from one; empty in formats without lines.
    pub(crate) lines: Vec<u64>,
    pub(crate) probs: Vec<f64>,
    pub(crate) votes: Vec<u32>,
    pub(crate) truth: Vec<f64>,
    pub(crate) features: Vec<f64>,
    pub(crate) oracles: Vec<Vec<f64>>,
    pub(crate) weights: Vec<f64>,
    pub(crate) ids: Vec<String>,
    /// The rows of all columns as they are, if they are wanted.
    pub(crate) inputs: InputRows,
    /// The ids of rows that a filter dropped, if the layout wants them.
    pub(crate) dropped_ids: Vec<String>,
    /// How many rows were dropped because all their annotators are left out.
    pub(crate) without_labels: usize,
}

impl Raw {
    /// Room for `rows` rows.
    pub(crate) fn new(layout: &Layout, rows: usize) -> Self {
        let room = |part: Option<&Part>| part.map_or(0, |part| part.width().saturating_mul(rows));
        let votes = if layout.labels.is_some() { layout.classes.len().saturating_mul(rows) } else { 0 };
        Self {
            rows: Vec::with_capacity(rows),
            probs: Vec::with_capacity(room(Some(&layout.probs))),
            votes: Vec::with_capacity(room(layout.votes.as_ref()).max(votes)),
            truth: Vec::with_capacity(room(layout.truth.as_ref())),
            features: Vec::with_capacity(room(layout.features.as_ref())),
            oracles: layout.oracles.iter().map(|(_, part)| Vec::with_capacity(room(Some(part)))).collect(),
            weights: Vec::with_capacity(room(layout.weight.as_ref())),
            ..Self::default()
        }
    }

    /// Keeps some of the rows.
    pub(crate) fn keep(&mut self, kept: &[bool]) -> std::result::Result<(), String> {
        if kept.iter().all(|kept| *kept) {
            return Ok(());
        }
        self.inputs.keep(kept)?;
        let Self { rows, lines, probs, votes, truth, features, oracles, weights, ids, .. } = self;
        oracles.iter_mut().chain([probs, truth, features, weights]).for_each(|values| keep_rows(values, kept));
        [rows, lines].into_iter().for_each(|values| keep_rows(values, kept));
        keep_rows(votes, kept);
        keep_rows(ids, kept);
        Ok(())
    }

    /// Checks everything and builds the table. Votes are there if the file has them or `joined` brings them. With `normalize`, rows of
    /// probabilities are divided by their sums.
    pub(crate) fn build(self, file: &str, layout: &Layout, joined: bool, normalize: bool) -> Result<Frame> {
        let Self {
            rows,
            lines,
            mut probs,
            votes,
            mut truth,
            features,
            mut oracles,
            weights,
            ids,
            without_labels,
            inputs,
            ..
        } = self;
        let columns = inputs.finish().map_err(|why| Error::file(file, why))?;
        let mut divider = Divider::new(rows.len());
        if normalize {
            let distributions = oracles.iter_mut().chain([&mut probs, &mut truth]);
            distributions.for_each(|values| divider.divide(values, layout.classes.len()));
        }
        let at = Translator { file, layout, rows: &rows, lines: &lines, normalize };
        let table = Table::new(layout.classes.iter().map(String::as_str), probs).map_err(|e| at.error(e))?;
        let table = if layout.votes.is_some() || layout.labels.is_some() || joined {
            at.totals(&votes)?;
            table.with_votes(votes).map_err(|e| at.error(e))?
        } else {
            table
        };
        let table = match layout.truth {
            Some(_) => table.with_truth(truth).map_err(|e| at.error(e))?,
            None => table,
        };
        let table = match &layout.features {
            Some(part) => {
                let (names, features) = match &layout.wanted {
                    None => (part.keys.clone(), features),
                    Some(wanted) => (
                        wanted.iter().map(|&i| part.keys[i].clone()).collect(),
                        features.chunks_exact(part.width()).flat_map(|row| wanted.iter().map(|&i| row[i])).collect(),
                    ),
                };
                table.with_features(names, features).map_err(|e| at.error(e))?
            }
            None => table,
        };
        let mut table = match layout.weight {
            Some(_) => table.with_weights(weights).map_err(|e| at.error(e))?,
            None => table,
        };
        for ((name, _), probs) in layout.oracles.iter().zip(oracles) {
            table = table.with_oracle(name.as_str(), probs).map_err(|e| at.error(e))?;
        }
        let ignored_votes = layout.ignored_votes;
        Ok(Frame {
            table,
            ids: layout.id.map(|_| ids),
            rows,
            ignored_votes,
            annotations: None,
            rows_without_labels: without_labels,
            columns,
            joined: None,
            sums: divider.sums(),
            reordered: layout.reordered.then(|| file.to_owned()).into_iter().collect(),
            unused_numeric: Vec::new(),
            files: vec![(0, file.to_owned())],
            lines,
        })
    }
}

/// Keeps the values of some rows, of which there are equally many per row.
fn keep_rows<T>(values: &mut Vec<T>, kept: &[bool]) {
    let width = values.len() / kept.len();
    let mut places = 0..values.len();
    values.retain(|_| places.next().is_some_and(|place| kept[place / width]));
}

/// Whether a sum is that of rounded probabilities or percentages; others are rather those of scores.
fn is_cured_by_division(sum: f64) -> bool {
    /// Sums of rounded numbers are closer to what they should be than this factor.
    const NEAR: f64 = 1.5;
    [1.0, 100.0].into_iter().any(|whole| (whole / NEAR..=whole * NEAR).contains(&sum))
}

/// Says in the file's terms what the core said in its own.
struct Translator<'a> {
    file: &'a str,
    layout: &'a Layout,
    rows: &'a [u64],
    lines: &'a [u64],
    normalize: bool,
}

impl Translator<'_> {
    fn error(&self, error: pointsman::Error) -> Error {
        match error {
            pointsman::Error::Value { row, column, reason } => {
                let number = self.rows.get(row).copied().unwrap_or_default();
                let reason = match reason {
                    ValueError::Probability { value } if value.is_nan() && column.starts_with("oracle_") => {
                        NO_ANSWER.to_owned()
                    }
                    ValueError::ProbabilitySum { sum } if !self.normalize && is_cured_by_division(sum) => format!(
                        "{reason}; rounded probabilities and percentages are divided by their sum with --normalize (in Python \
                         normalize=True)"
                    ),
                    other => other.to_string(),
                };
                self.at(row, Some(self.column(&column, number)), reason)
            }
            other => Error::file(self.file, other.to_string()),
        }
    }

    fn at(&self, row: usize, column: Option<String>, reason: String) -> Error {
        Error::Row {
            file: self.file.to_owned(),
            row: self.rows.get(row).copied().unwrap_or_default(),
            line: self.lines.get(row).copied(),
            column,
            reason,
        }
    }

    /// From the core's wide naming to the file's.
    fn column(&self, column: &str, row: u64) -> String {
        let layout = self.layout;
        let parts = [
            ("prob_", Some(&layout.probs)),
            ("votes_", layout.votes.as_ref()),
            ("true_", layout.truth.as_ref()),
            ("x_", layout.features.as_ref()),
            ("weight", layout.weight.as_ref()),
        ];
        let known = |prefix: &str, part: &Part| -> Option<String> {
            let key = column.strip_prefix(prefix)?;
            if let Some(i) = part.keys.iter().position(|k| k == key) {
                return Some(part.column(row, Some(i)));
            }
            (key == "*").then(|| part.column(row, None))
        };
        if column == "votes_*"
            && let Some(field) = layout.labels
        {
            return layout.names[field].clone();
        }
        parts
            .into_iter()
            .find_map(|(prefix, part)| known(prefix, part?))
            .or_else(|| layout.oracles.iter().find_map(|(name, part)| known(&format!("oracle_{name}_"), part)))
            .unwrap_or_else(|| column.to_owned())
    }

    /// A row's labels must be countable in 32 bits: nobody has that many, so it is some other number.
    fn totals(&self, votes: &[u32]) -> Result<()> {
        // Nearly always all counts are so small that no row can exceed it.
        let classes = self.layout.classes.len();
        if votes.iter().fold(0, |all, n| all | n) <= u32::MAX / u32::try_from(classes).unwrap_or(u32::MAX) / 2 {
            return Ok(());
        }
        for (row, counts) in votes.chunks_exact(classes).enumerate() {
            let total: u64 = counts.iter().map(|&n| u64::from(n)).sum();
            if total > u64::from(u32::MAX) {
                let number = self.rows.get(row).copied().unwrap_or_default();
                return Err(self.at(
                    row,
                    Some(self.column("votes_*", number)),
                    format!("{total} votes on one row: at most {} can be counted", u32::MAX),
                ));
            }
        }
        Ok(())
    }
}
