//! Errors of the core in terms of the file: its name, rows, lines and columns.

use pointsman::error::ValueError;

use crate::error::{Error, Result, RowAt, listed};
use crate::layout::{ColumnGroup, Layout};
use crate::number::NO_ANSWER;

/// Whether a sum is that of rounded probabilities or percentages; other sums are more likely those of scores.
fn is_rounded_total(sum: f64) -> bool {
    /// The largest factor between the sum of rounded numbers and the exact sum.
    const MAX_FACTOR: f64 = 1.5;
    [1.0, 100.0].into_iter().any(|whole| (whole / MAX_FACTOR..=whole * MAX_FACTOR).contains(&sum))
}

/// Translates errors of the core, which names rows by their place in the table and columns by their standard names.
pub(crate) struct CoreErrors<'a> {
    pub(crate) file: &'a str,
    pub(crate) layout: &'a Layout,
    pub(crate) rows: &'a [u64],
    pub(crate) lines: &'a [u64],
    pub(crate) normalize: bool,
}

impl CoreErrors<'_> {
    pub(crate) fn translate(&self, error: pointsman::Error) -> Error {
        match error {
            pointsman::Error::Value { row, column, reason } => {
                let reason = match reason {
                    ValueError::Probability { value } if value.is_nan() && column.starts_with("oracle_") => {
                        self.no_answer(&column)
                    }
                    ValueError::ProbabilitySum { sum } if !self.normalize && is_rounded_total(sum) => format!(
                        "{reason}; rounded probabilities and percentages are divided by their sum with --normalize (in Python \
                         normalize=True)"
                    ),
                    other => other.to_string(),
                };
                self.row_error(row, &column, reason)
            }
            other => Error::file(self.file, other.to_string()),
        }
    }

    /// The error of a row and column that the core names.
    fn row_error(&self, row: usize, column: &str, reason: String) -> Error {
        let line = self.lines.get(row).copied();
        let row = self.rows.get(row).copied().unwrap_or_default();
        RowAt { file: self.file, row, line }.value(self.column(column, row), reason)
    }

    /// The message about a missing answer, in a column that the core names.
    fn no_answer(&self, column: &str) -> String {
        let is_its =
            |name: &str| column.strip_prefix("oracle_").is_some_and(|rest| rest.starts_with(&format!("{name}_")));
        let oracle = self.layout.oracles.iter().find(|(name, _)| is_its(name));
        oracle.map_or_else(|| NO_ANSWER.to_owned(), |(_, group)| group.no_answer_as_nan(!self.lines.is_empty()))
    }

    /// The file's name of a column, from the core's.
    fn column(&self, column: &str, row: u64) -> String {
        let layout = self.layout;
        let groups = [
            ("prob_", Some(&layout.probs)),
            ("votes_", layout.votes.as_ref()),
            ("true_", layout.truth.as_ref()),
            ("x_", layout.features.as_ref()),
            ("weight", layout.weight.as_ref()),
        ];
        let known = |prefix: &str, group: &ColumnGroup| -> Option<String> {
            let key = column.strip_prefix(prefix)?;
            if let Some(i) = group.keys.iter().position(|k| k == key) {
                return Some(group.column(row, Some(i)));
            }
            (key == "*").then(|| group.column(row, None))
        };
        if column == "votes_*"
            && let Some(labels) = &layout.labels
        {
            return listed(labels.fields().iter().map(|&field| &layout.names[field]));
        }
        groups
            .into_iter()
            .find_map(|(prefix, group)| known(prefix, group?))
            .or_else(|| layout.oracles.iter().find_map(|(name, group)| known(&format!("oracle_{name}_"), group)))
            .unwrap_or_else(|| column.to_owned())
    }

    /// Refuses rows whose votes exceed 32 bits: such numbers are not votes.
    pub(crate) fn check_totals(&self, votes: &[u32]) -> Result<()> {
        // Nearly always all counts are too small for that.
        let classes = self.layout.classes.len();
        if votes.iter().fold(0, |all, n| all | n) <= u32::MAX / u32::try_from(classes).unwrap_or(u32::MAX) / 2 {
            return Ok(());
        }
        for (row, counts) in votes.chunks_exact(classes).enumerate() {
            let total: u64 = counts.iter().map(|&n| u64::from(n)).sum();
            if total > u64::from(u32::MAX) {
                let reason = format!("{total} votes on one row: at most {} can be counted", u32::MAX);
                return Err(self.row_error(row, "votes_*", reason));
            }
        }
        Ok(())
    }
}
