//! What can be wrong with an input, said so that its owner can mend it.

/// Why an input was refused.
///
/// Row numbers count from zero in the order the rows were given; columns carry the names of the wide
/// table format (`prob_cat`, `votes_cat`, `x_length`, `weight`). A reader of files translates both into
/// the file's own terms with [`Error::map_row`]. Every message is one line without control characters, whatever the
/// names in it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// One value of one row cannot be used.
    #[error("row {row}, column {}: {}", printable(column), printable(reason))]
    Value {
        /// Zero-based row.
        row: usize,
        /// Column in wide-table naming.
        column: String,
        /// The value, what is wrong with it and what to do.
        reason: String,
    },
    /// The table as a whole cannot be used.
    #[error("{}", printable(.0))]
    Table(String),
    /// The partition is unknown, badly parametrised or does not fit the table.
    #[error("{}", printable(.0))]
    Partition(String),
    /// The loss, the oracles or the prices make no task.
    #[error("{}", printable(.0))]
    Task(String),
    /// No routing reaches the task's target loss.
    #[error(
        "no routing reaches a loss of {target}: routing whatever an oracle improves, {:.1} % of the queries, leaves {least:.6}; ask \
         for that or more",
        100.0 * share
    )]
    OutOfReach {
        /// The loss asked for.
        target: f64,
        /// The least loss that can be asked for, rounded up to what is printed.
        least: f64,
        /// The share of the queries that is routed then.
        share: f64,
    },
    /// The router's parts contradict each other.
    #[error("{}", printable(.0))]
    Router(String),
}

impl Error {
    /// The same error with its row number translated.
    #[must_use]
    pub fn map_row(self, translate: impl FnOnce(usize) -> usize) -> Self {
        match self {
            Self::Value { row, column, reason } => Self::Value { row: translate(row), column, reason },
            other => other,
        }
    }

    pub(crate) fn value(row: usize, column: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Value { row, column: column.into(), reason: reason.into() }
    }
}

/// The result of a fallible operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Text with control characters escaped: names come from files, and messages go to terminals and logs.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if c.is_control() {
            out.extend(c.escape_debug());
        } else {
            out.push(c);
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use crate::{Partition, Table};

    #[test]
    fn names_cannot_write_to_the_terminal() {
        let classes = ["a\u{1b}[2J", "b\n"];
        let error = Table::new(classes, vec![0.5, f64::NAN]).unwrap_err().to_string();
        assert!(error.starts_with("row 0, column prob_b\\n: NaN"), "{error}");
        let error = "features:x_a\u{1b}:".parse::<Partition>().unwrap_err().to_string();
        assert!(error.contains("\\u{1b}") && !error.contains(char::is_control), "{error}");
    }
}
