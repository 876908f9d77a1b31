//! What can be wrong with an input, said so that its owner can mend it.
//!
//! An [`Error`] says which input is to blame, and one enum per input says why:
//!
//! | input | reasons |
//! |---|---|
//! | one value of one row | [`ValueError`] |
//! | a table as a whole | [`TableError`] |
//! | a partition as asked for | [`PartitionError`] |
//! | a router, or what it is used with | [`RouterError`] |
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

/// What to run instead where cells are needed and a forest has none.
const COMMAND_FOR_CELLS: &str =
    "pointsman calibrate TABLE --certifiable -o ROUTER (in Python, Router(\"auto:certifiable\"))";

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
    #[error("row {row}, column {}: {}", printable(column), printable(&reason.to_string()))]
    Value {
        /// Zero-based row.
        row: usize,
        /// Column in wide-table naming.
        column: String,
        /// What is wrong with the value.
        reason: ValueError,
    },
    /// The table as a whole cannot be used.
    #[error("{}", printable(&.0.to_string()))]
    Table(TableError),
    /// The partition is unknown, badly parametrised or does not fit the table.
    #[error("{}", printable(&.0.to_string()))]
    Partition(PartitionError),
    /// The loss, the oracles or the prices make no task.
    #[error("{}", printable(&.0.to_string()))]
    Task(TaskError),
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
    /// The router's parts contradict each other, or it cannot be used for this.
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

    /// That the stored parts of a router do not fit each other.
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

/// The trees are those of a router's partition.
impl From<pointsman_trees::Error> for Error {
    fn from(error: pointsman_trees::Error) -> Self {
        Self::Router(RouterError::Trees(error))
    }
}

/// The clouds are those of a table's rows.
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

/// Names in a message.
fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Features in a message, by their columns.
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
