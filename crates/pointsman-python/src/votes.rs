//! Counting the labels of annotators.

use std::collections::HashMap;

use numpy::PyArray2;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyString};

use crate::error::{Refusal, refused};

/// Counts the labels of each row by class. Rows are lists of any length; `None` and NaN are skipped.
#[pyfunction]
pub(crate) fn count_labels<'py>(
    py: Python<'py>,
    classes: Vec<String>,
    rows: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArray2<u32>>> {
    let places: HashMap<&str, usize> = classes.iter().enumerate().map(|(i, class)| (class.as_str(), i)).collect();
    let mut counts: Vec<u32> = Vec::new();
    for (row, labels) in rows.try_iter()?.enumerate() {
        let start = counts.len();
        counts.resize(start + classes.len(), 0);
        for label in labels?.try_iter()? {
            let label = label?;
            let Some(text) = name_of(&label)? else { continue };
            let Some(&place) = places.get(text.as_str()) else {
                let known = classes.join(", ");
                let reason = format!(
                    "{text:?} is none of the classes {known}; lists hold the annotators' labels, counts come as an array"
                );
                return Err(refused(Refusal::at(row, "labels", pointsman::error::printable(&reason))));
            };
            counts[start + place] += 1;
        }
    }
    let rows = counts.len().checked_div(classes.len()).unwrap_or(0);
    let array = numpy::ndarray::Array2::from_shape_vec((rows, classes.len()), counts)
        .map_err(|error| refused(Refusal::new(error.to_string())))?;
    Ok(PyArray2::from_owned_array(py, array))
}

/// The class name of a label; `None` if the label is missing. Whole floats are written without a decimal point, since integers become
/// floats in columns with missing values.
fn name_of(label: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if let Ok(text) = label.cast::<PyString>() {
        return Ok(Some(text.to_str()?.to_owned()));
    }
    // pandas has its own missing value.
    if label.is_none() || label.get_type().name()? == "NAType" {
        return Ok(None);
    }
    // Of numpy's numbers only float64 is a Python float.
    let plain = if label.hasattr("dtype")? { label.call_method0("item")? } else { label.clone() };
    match plain.cast::<PyFloat>().map(|number| number.value()) {
        Ok(number) if number.is_nan() => Ok(None),
        Ok(number) => Ok(Some(number.to_string())),
        Err(_) => Ok(Some(plain.str()?.to_str()?.to_owned())),
    }
}
