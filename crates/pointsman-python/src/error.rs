//! Errors as Python exceptions.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

/// Why an input was refused, with the row and column if they are known.
#[derive(Debug)]
pub(crate) struct Refusal {
    message: String,
    row: Option<usize>,
    column: Option<String>,
}

impl Refusal {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), row: None, column: None }
    }

    /// A refusal of a whole column.
    pub(crate) fn in_column(column: &str, reason: impl std::fmt::Display) -> Self {
        let column = pointsman::error::printable(column);
        Self { message: format!("column {column}: {reason}"), row: None, column: Some(column) }
    }

    /// A refusal of one value.
    pub(crate) fn at(row: usize, column: &str, reason: impl std::fmt::Display) -> Self {
        let column = pointsman::error::printable(column);
        Self { message: format!("row {row}, column {column}: {reason}"), row: Some(row), column: Some(column) }
    }
}

impl From<pointsman::Error> for Refusal {
    fn from(error: pointsman::Error) -> Self {
        let message = error.to_string();
        match error {
            pointsman::Error::Value { row, column, .. } => Self { message, row: Some(row), column: Some(column) },
            _ => Self::new(message),
        }
    }
}

impl From<pointsman_table::ContentError> for Refusal {
    fn from(error: pointsman_table::ContentError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<pointsman_table::Error> for Refusal {
    fn from(error: pointsman_table::Error) -> Self {
        let message = error.to_string();
        match error {
            // Files count rows from one, arrays from zero.
            pointsman_table::Error::Row { row, column, .. } => {
                Self { message, row: usize::try_from(row).ok().and_then(|row| row.checked_sub(1)), column }
            }
            _ => Self::new(message),
        }
    }
}

/// The exception is `pointsman.PointsmanError`.
impl From<Refusal> for PyErr {
    fn from(Refusal { message, row, column }: Refusal) -> Self {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        Python::attach(|py| {
            let raised = || {
                let class = CLASS.import(py, "pointsman._errors", "PointsmanError")?;
                let place = PyDict::new(py);
                place.set_item("row", row)?;
                place.set_item("column", column)?;
                class.call((message,), Some(&place))
            };
            raised().map_or_else(|error| error, PyErr::from_value)
        })
    }
}

/// Converts an error into an exception.
pub(crate) fn refused<E: Into<Refusal>>(error: E) -> PyErr {
    error.into().into()
}

/// Converts an error of a file into an exception: `OSError` if the operating system reported it, else `PointsmanError`.
pub(crate) fn failed(error: pointsman_table::Error) -> PyErr {
    let message = error.to_string();
    match error {
        pointsman_table::Error::Io { source, .. } => std::io::Error::new(source.kind(), message).into(),
        other => refused(other),
    }
}

/// The exception for an object that cannot be pickled.
pub(crate) fn not_pickled(what: &str, instead: &str) -> PyErr {
    PyTypeError::new_err(format!("{what} cannot be pickled: {instead}"))
}
