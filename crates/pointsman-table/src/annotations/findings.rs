//! Labels that are counted once, taken for a class, or refused, found while all annotations are read: one message names them all.

use crate::error::{Error, RowAt, shown};
use crate::frame::{CopiedLabels, MatchedLabels};
use crate::labels::Labels;
use crate::suggest::closest;

/// The number of examples in a message.
const MAX_LISTED: usize = 5;

/// A row of annotations that cannot be used.
#[derive(Debug)]
struct Refused {
    row: u64,
    line: Option<u64>,
    reason: String,
}

/// Labels that are not classes.
#[derive(Debug, Default)]
pub(super) struct UnknownLabels {
    rows: usize,
    first: Option<Refused>,
    /// Some of the labels, the first row's first.
    labels: Vec<String>,
}

impl UnknownLabels {
    pub(super) fn add(&mut self, at: RowAt<'_>, label: &str, reason: impl Fn() -> String) {
        self.rows += 1;
        self.first.get_or_insert_with(|| Refused { row: at.row, line: at.line, reason: reason() });
        // One more than is listed shows that there are others.
        if self.labels.len() <= MAX_LISTED && !self.labels.iter().any(|other| other == label) {
            self.labels.push(label.to_owned());
        }
    }

    /// The error about all of them; `besides` says what else is to be done.
    pub(super) fn error(self, file: &str, column: &str, classes: &Labels, besides: &str) -> Option<Error> {
        let Refused { row, line, reason } = self.first?;
        // Left out or renamed, it would leave all others one class too far.
        if matches!(self.labels.as_slice(), [only] if classes.is_last_from_one(only)) {
            let mend = ": if the labels count the classes from 1, subtract 1 from all of them, or write the names of the classes";
            return Some(RowAt { file, row, line }.value(column, reason + mend + besides));
        }
        let meant = |label: &String| match closest(label, classes.names()) {
            Some(class) => format!("{} (for {class}?)", shown(label)),
            None => shown(label),
        };
        let mut others: Vec<String> = self.labels.iter().skip(1).take(MAX_LISTED - 1).map(meant).collect();
        if self.labels.len() > MAX_LISTED {
            others.push("…".to_owned());
        }
        let more = match (self.rows, others.as_slice()) {
            (1, _) if self.labels == [""] => ": add it".to_owned(),
            (1, _) => ": rename it".to_owned(),
            (rows, []) if self.labels == [""] => format!("; {rows} rows have none: add them"),
            (rows, []) => format!("; {rows} rows have this label: rename it"),
            (rows, others) => format!("; {rows} rows have such labels, also {}: rename them", others.join(", ")),
        };
        // A misspelt class is a label like others.
        let is_other = |label: &&String| closest(label, classes.names()).is_none();
        let others = self.labels.iter().take(MAX_LISTED).filter(is_other);
        let flags: String = others.map(|label| format!(" --ignore-label {}", shown(label))).collect();
        let ignore =
            if flags.is_empty() { flags } else { format!(", or leave out those that are no class with{flags}") };
        Some(RowAt { file, row, line }.value(column, reason + &more + &ignore + besides))
    }
}

/// Annotations that name no annotator in a file that has a column of them.
#[derive(Debug, Default)]
pub(super) struct Unnamed {
    rows: usize,
    first: Option<(u64, Option<u64>)>,
}

impl Unnamed {
    pub(super) fn add(&mut self, at: RowAt<'_>) {
        self.rows += 1;
        self.first.get_or_insert((at.row, at.line));
    }

    /// The error about all of them. They are not taken for labels of different people: two labels of one person on an item are not
    /// independent, and nobody could find them.
    pub(super) fn error(self, file: &str, column: &str) -> Option<Error> {
        let (row, line) = self.first?;
        let more = match self.rows {
            1 => String::new(),
            rows => format!("; {rows} rows have none"),
        };
        let remedy = "fill in who labelled, or a name of its own (unknown-1, unknown-2, …) for each if no two are by one person; or leave \
                      these rows or the whole column out of the file";
        Some(RowAt { file, row, line }.value(column, format!("no annotator{more}: {remedy}")))
    }
}

/// Labels by which annotators contradict themselves on one item.
#[derive(Debug, Default)]
pub(super) struct Contradictions {
    rows: usize,
    first: Option<Refused>,
    /// Some of the further rows.
    others: Vec<String>,
}

impl Contradictions {
    pub(super) fn add(&mut self, at: RowAt<'_>, reason: impl Fn() -> String) {
        self.rows += 1;
        if self.first.is_none() {
            self.first = Some(Refused { row: at.row, line: at.line, reason: reason() });
        } else if self.others.len() < MAX_LISTED {
            self.others.push(at.row.to_string());
        }
    }

    /// What to add to a message on something else, so that both can be mended at once; empty without contradictions.
    pub(super) fn besides(&self, date: Option<&str>) -> String {
        let rows = match self.rows {
            0 => return String::new(),
            1 => "1 row has".to_owned(),
            rows => format!("{rows} rows have"),
        };
        let sorted = date.map_or(String::new(), |date| format!(" --columns date={date}"));
        format!(
            "; besides, {rows} another label of an annotator on the same item: keep one of them with --keep-label latest{sorted} or \
             --keep-label first{sorted}"
        )
    }

    /// The error about all of them; `date` is a column that seems to have the times of labels.
    pub(super) fn error(self, file: &str, column: &str, date: Option<&str>) -> Option<Error> {
        let Refused { row, line, reason } = self.first?;
        let more = match self.rows - 1 {
            0 => String::new(),
            n => format!(
                "; {n} more {} so (row{} {}{})",
                if n == 1 { "row does" } else { "rows do" },
                if n == 1 { "" } else { "s" },
                self.others.join(", "),
                if n > self.others.len() { ", …" } else { "" }
            ),
        };
        let reason = format!(
            "{reason}{more}: keep one label per annotator and item, with --keep-label latest (in Python keep_label='latest') or first; \
             --columns date={} sorts labels by {}, otherwise the order of the file counts",
            date.unwrap_or("NAME"),
            date.map_or("a column of dates", |_| "that column of dates")
        );
        Some(RowAt { file, row, line }.value(column, reason))
    }
}

/// Counts a row that repeats an earlier one.
pub(super) fn add_copy(copies: &mut Option<CopiedLabels>, at: RowAt<'_>, of_row: u64, id: &str, annotator: &str) {
    let new = || CopiedLabels { rows: 0, id: id.to_owned(), annotator: annotator.to_owned(), row: at.row, of_row };
    copies.get_or_insert_with(new).rows += 1;
}

/// Counts a label taken for a class whose name differs in capitals or spaces only.
pub(super) fn add_match(matched: &mut Option<MatchedLabels>, label: &str, class: &str) {
    let matched = matched.get_or_insert_with(|| MatchedLabels { rows: 0, labels: Vec::new() });
    matched.rows += 1;
    if matched.labels.len() < MAX_LISTED && !matched.labels.iter().any(|(other, _)| other == label) {
        matched.labels.push((label.to_owned(), class.to_owned()));
    }
}
