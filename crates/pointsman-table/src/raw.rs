//! Rows as every format delivers them, and the one place where they become a table.

use pointsman::Table;

use crate::core_errors::CoreErrors;
use crate::error::{Error, Parsed, Result};
use crate::frame::Frame;
use crate::input_column::InputRows;
use crate::layout::{ColumnGroup, LabelFields, Layout};
use crate::normalize::divide;

/// Rows of a file whose values are read by their role; every format implements it.
pub(crate) trait RowValues {
    /// Probabilities, or weights.
    fn reals(&self, group: &ColumnGroup, out: &mut Vec<f64>) -> Result<()>;

    /// Features; NaN where one is missing.
    fn features(&self, group: &ColumnGroup, out: &mut Vec<f64>) -> Result<()>;

    /// Probabilities of another model, which every row needs.
    fn answers(&self, group: &ColumnGroup, out: &mut Vec<f64>) -> Result<()>;

    fn votes(&self, group: &ColumnGroup, out: &mut Vec<u32>) -> Result<()>;

    /// Votes counted from labels.
    fn labels(&self, fields: &LabelFields, out: &mut Vec<u32>) -> Result<()>;

    fn ids(&self, field: usize, out: &mut Vec<String>) -> Result<()>;

    /// Refuses the name of a class in a column that is not read because the first row has none there, but this text.
    fn refuse_answer(&self, field: usize, first: &str) -> Result<()>;
}

/// Rows as read: numbers of the right type, row by row, not yet checked against each other.
///
/// Readers append to it, so that a whole file is read into one allocation.
#[derive(Debug, Default)]
pub(crate) struct RawRows {
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

impl RawRows {
    /// No rows, with capacity for `rows`.
    pub(crate) fn with_capacity(layout: &Layout, rows: usize) -> Self {
        let capacity = |group: Option<&ColumnGroup>| group.map_or(0, |group| group.width().saturating_mul(rows));
        let votes = if layout.labels.is_some() { layout.classes.len().saturating_mul(rows) } else { 0 };
        Self {
            rows: Vec::with_capacity(rows),
            probs: Vec::with_capacity(capacity(Some(&layout.probs))),
            votes: Vec::with_capacity(capacity(layout.votes.as_ref()).max(votes)),
            truth: Vec::with_capacity(capacity(layout.truth.as_ref())),
            features: Vec::with_capacity(capacity(layout.features.as_ref())),
            oracles: layout.oracles.iter().map(|(_, group)| Vec::with_capacity(capacity(Some(group)))).collect(),
            weights: Vec::with_capacity(capacity(layout.weight.as_ref())),
            ..Self::default()
        }
    }

    /// Appends the values of some rows by their roles.
    pub(crate) fn append(&mut self, layout: &Layout, rows: &impl RowValues) -> Result<()> {
        rows.reals(&layout.probs, &mut self.probs)?;
        if let Some(group) = &layout.votes {
            rows.votes(group, &mut self.votes)?;
        }
        if let Some(fields) = &layout.labels {
            rows.labels(fields, &mut self.votes)?;
        }
        if let Some(group) = &layout.truth {
            rows.reals(group, &mut self.truth)?;
        }
        if let Some(group) = &layout.features {
            rows.features(group, &mut self.features)?;
        }
        for ((_, group), values) in layout.oracles.iter().zip(&mut self.oracles) {
            rows.answers(group, values)?;
        }
        if let Some(group) = &layout.weight {
            rows.reals(group, &mut self.weights)?;
        }
        if let Some(field) = layout.id {
            rows.ids(field, &mut self.ids)?;
        }
        layout.possible_answers.iter().try_for_each(|(field, first)| rows.refuse_answer(*field, first))
    }

    /// Keeps some of the rows.
    pub(crate) fn keep(&mut self, kept: &[bool]) -> Parsed<()> {
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

    /// Checks everything and builds the table. Votes are there if the file has them or annotations were joined. With `normalize`, rows of
    /// probabilities are divided by their sums.
    pub(crate) fn build(mut self, file: &str, layout: &Layout, joined: bool, normalize: bool) -> Result<Frame> {
        let columns = std::mem::take(&mut self.inputs).finish().map_err(|why| Error::file(file, why))?;
        let (mut sums, mut other_sums) = (None, Vec::new());
        if normalize {
            let width = layout.classes.len();
            sums = divide(&mut self.probs, width);
            let groups = layout.truth.iter().chain(layout.oracles.iter().map(|(_, group)| group));
            let truth = layout.truth.as_ref().map(|_| &mut self.truth);
            let values = truth.into_iter().chain(&mut self.oracles);
            other_sums = groups.zip(values).filter_map(|(g, v)| Some((g.columns(), divide(v, width)?))).collect();
        }
        let errors = CoreErrors { file, layout, rows: &self.rows, lines: &self.lines, normalize };
        let translate = |error| errors.translate(error);
        let mut table = Table::new(layout.classes.iter().map(String::as_str), self.probs).map_err(translate)?;
        if layout.votes.is_some() || layout.labels.is_some() || joined {
            errors.check_totals(&self.votes)?;
            table = table.with_votes(self.votes).map_err(translate)?;
        }
        if layout.truth.is_some() {
            table = table.with_truth(self.truth).map_err(translate)?;
        }
        if let Some(group) = &layout.features {
            let (names, features) = wanted_features(layout, group, self.features);
            table = table.with_features(names, features).map_err(translate)?;
        }
        if layout.weight.is_some() {
            table = table.with_weights(self.weights).map_err(translate)?;
        }
        for ((name, _), probs) in layout.oracles.iter().zip(self.oracles) {
            table = table.with_oracle(name.as_str(), probs).map_err(translate)?;
        }
        Ok(Frame {
            table,
            ids: layout.id.map(|_| self.ids),
            taken_id: layout.taken_id.clone(),
            ignored_votes: layout.ignored_votes,
            annotations: None,
            rows_without_labels: self.without_labels,
            columns,
            joined: None,
            sums,
            other_sums,
            reordered: layout.reordered.then(|| file.to_owned()).into_iter().collect(),
            unused_numeric: Vec::new(),
            unused_text: Vec::new(),
            has_numbers_as_labels: false,
            label_columns: layout.label_columns(),
            decided_labels: layout.decided_labels.clone(),
            unread_answers: layout.unread_answers.clone(),
            without_answers: Vec::new(),
            names: layout.names.clone(),
            files: vec![(0, file.to_owned())],
            rows: self.rows,
            lines: self.lines,
        })
    }
}

/// The names and the values of the features that are wanted: of a list, all values were read.
fn wanted_features(layout: &Layout, group: &ColumnGroup, values: Vec<f64>) -> (Vec<String>, Vec<f64>) {
    let Some(wanted) = &layout.wanted_features else { return (group.keys.clone(), values) };
    let rows = values.chunks_exact(group.width());
    (
        wanted.iter().map(|&i| group.keys[i].clone()).collect(),
        rows.flat_map(|row| wanted.iter().map(|&i| row[i])).collect(),
    )
}

/// Keeps the values of some rows; every row has the same number of values.
fn keep_rows<T>(values: &mut Vec<T>, kept: &[bool]) {
    let width = values.len() / kept.len();
    let mut places = 0..values.len();
    values.retain(|_| places.next().is_some_and(|place| kept[place / width]));
}
