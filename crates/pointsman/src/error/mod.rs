//! Errors: why an input was refused, and how to correct it.
//!
//! An [`Error`] names the input that was refused; one enum per input gives the reason:
//!
//! | input | reasons |
//! |---|---|
//! | one value of one row | [`ValueError`] |
//! | a table as a whole | [`TableError`] |
//! | a requested partition | [`PartitionError`] |
//! | a router, or its use with another input | [`RouterError`] |
//! | a loss, oracle, price or limit | [`TaskError`] |
//!
//! ```
//! use pointsman::error::{Error, TaskError};
//! use pointsman::{Loss, Oracle, Task};
//!
//! let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), -1.0);
//! assert!(matches!(task, Err(Error::Task(TaskError::OutOfRange { value: -1.0, .. }))));
//! ```

mod partition;
mod router;
mod table;
mod task;
mod value;

pub use partition::PartitionError;
pub use router::RouterError;
pub use table::TableError;
pub use task::TaskError;
pub use value::ValueError;

/// The command that gives cells, for messages on forests, which have none that can be certified or served.
const COMMAND_FOR_CELLS: &str =
    "pointsman calibrate TABLE --certifiable -o ROUTER (in Python, Router(\"auto:certifiable\"))";

/// Why an input was refused.
///
/// Rows are counted from zero in the order in which they were given. Columns have the names of the wide table format (`prob_cat`,
/// `votes_cat`, `x_length`, `weight`). Readers of files translate row numbers with [`Error::map_row`]. Every message is one line without
/// control characters; those in names are escaped.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// One value of one row cannot be used.
    #[error("row {row}, column {}: {}", printable(column), printable(&reason.to_string()))]
    Value {
        /// The row, counted from zero.
        row: usize,
        /// The column, named as in the wide table format.
        column: String,
        /// Why the value was refused.
        reason: ValueError,
    },
    /// The table as a whole cannot be used.
    #[error("{}", printable(&.0.to_string()))]
    Table(TableError),
    /// The partition is unknown, has invalid parameters or does not fit the table.
    #[error("{}", printable(&.0.to_string()))]
    Partition(PartitionError),
    /// The loss, oracles, prices or limits do not form a valid task.
    #[error("{}", printable(&.0.to_string()))]
    Task(TaskError),
    /// No routing reaches the task's target loss.
    #[error(
        "no routing reaches a loss of {target}: routing whatever an oracle improves, {:.1} % of the queries, leaves {least:.6}; ask \
         for that or more",
        100.0 * share
    )]
    OutOfReach {
        /// The target loss.
        target: f64,
        /// The smallest possible target, rounded up to the digits printed.
        least: f64,
        /// The share of the queries that is routed at that target.
        share: f64,
    },
    /// The router's parts contradict each other, or the router cannot be used for this purpose.
    #[error("{}", printable(&.0.to_string()))]
    Router(RouterError),
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

    pub(crate) fn value(row: usize, column: impl Into<String>, reason: ValueError) -> Self {
        Self::Value { row, column: column.into(), reason }
    }

    /// The error of a router whose stored parts do not fit each other.
    pub(crate) fn contradiction(what: impl Into<String>) -> Self {
        Self::Router(RouterError::Contradiction(what.into()))
    }
}

impl From<TableError> for Error {
    fn from(error: TableError) -> Self {
        Self::Table(error)
    }
}

impl From<PartitionError> for Error {
    fn from(error: PartitionError) -> Self {
        Self::Partition(error)
    }
}

impl From<TaskError> for Error {
    fn from(error: TaskError) -> Self {
        Self::Task(error)
    }
}

impl From<RouterError> for Error {
    fn from(error: RouterError) -> Self {
        Self::Router(error)
    }
}

/// Errors of trees are errors of a router's partition.
impl From<pointsman_trees::Error> for Error {
    fn from(error: pointsman_trees::Error) -> Self {
        Self::Router(RouterError::Trees(error))
    }
}

/// Point clouds are made of a table's rows, so their errors are errors of the table.
impl From<pointsman_transport::Error> for Error {
    fn from(error: pointsman_transport::Error) -> Self {
        match error {
            pointsman_transport::Error::Weight { row, value } => {
                Self::value(row, "weight", ValueError::Weight { value })
            }
            other => Self::Table(TableError::Clouds(other)),
        }
    }
}

/// The result of a fallible operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The text with control characters escaped, since names come from files and messages go to terminals and logs.
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

/// A list of names for a message; `none` if it is empty.
fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The column names of features, for a message.
fn columns(features: &[String]) -> Vec<String> {
    features.iter().map(|name| format!("x_{name}")).collect()
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
