//! Losses: named ones and cost matrices.

use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use crate::error::{Refusal, refused};
use crate::task::shown;

/// A proper loss: a name, or a cost matrix.
///
/// Named losses are `brier`, `cross-entropy`, `spherical`, `zero-one`, `fn-fp:fp=1,fn=3`, `three-part` and `asymmetric:2`.
///
/// Examples
/// --------
/// >>> from pointsman import Loss
/// >>> Loss("brier").entropy([0.5, 0.5])
/// 0.5
/// >>> loss = Loss.matrix([[0, 3], [1, 0], [0.4, 0.4]], acts=["ship", "hold", "ask"])
/// >>> loss.acts, loss.entropy([0.5, 0.5])
/// (['ship', 'hold', 'ask'], 0.4)
/// >>> Loss.matrix([[0, 3], [1, 0]], acts=["ship", "hold"], classes=["fine", "broken"]).classes
/// ['fine', 'broken']
#[pyclass(frozen, eq, module = "pointsman")]
#[derive(PartialEq)]
pub(crate) struct Loss(pub(crate) pointsman::Loss);

#[pymethods]
impl Loss {
    #[new]
    fn new(name: &str) -> PyResult<Self> {
        Ok(Self(name.parse().map_err(refused::<pointsman::Error>)?))
    }

    /// A loss from a cost matrix, with one row per act and one column per class.
    ///
    /// `classes` names the columns, in any order. A router finds the columns by name and refuses a matrix for other classes. The column
    /// names of a frame are used by default. Columns without names are in the order of the router's classes.
    #[staticmethod]
    #[pyo3(signature = (cost, acts = None, classes = None))]
    fn matrix(cost: &Bound<'_, PyAny>, acts: Option<Vec<String>>, classes: Option<Vec<String>>) -> PyResult<Self> {
        // Iterating over a frame does not give its rows.
        let plain = cost.call_method0("to_numpy").unwrap_or_else(|_| cost.clone());
        let classes = classes.or_else(|| column_names(cost));
        let cost: Vec<Vec<f64>> = plain.extract().map_err(|error| {
            refused(Refusal::new(format!(
                "cost matrix: give rows of numbers, one row per act, one column per class ({error})"
            )))
        })?;
        let acts = acts.unwrap_or_else(|| (0..cost.len()).map(|act| act.to_string()).collect());
        let loss = pointsman::Loss::matrix(acts, cost).map_err(refused)?;
        Ok(Self(match classes {
            Some(classes) => loss.with_classes(classes).map_err(refused)?,
            None => loss,
        }))
    }

    /// The names of the acts, if the loss is a cost matrix.
    #[getter]
    fn acts(&self) -> Option<Vec<String>> {
        self.0.acts().map(<[String]>::to_vec)
    }

    /// The classes of the columns, if the matrix names them.
    #[getter]
    fn classes(&self) -> Option<Vec<String>> {
        self.0.class_names().map(<[String]>::to_vec)
    }

    /// The cost matrix, one row per act and one column per class.
    #[getter]
    fn cost(&self) -> Option<Vec<Vec<f64>>> {
        self.0.costs().map(|rows| rows.into_iter().map(<[f64]>::to_vec).collect())
    }

    /// The unit of the loss.
    #[getter]
    fn unit(&self) -> &'static str {
        self.0.unit()
    }

    /// The largest possible loss.
    #[getter]
    fn bound(&self) -> f64 {
        self.0.bound()
    }

    /// The expected loss of a prediction if labels follow the distribution `truth`.
    fn expected(&self, truth: Vec<f64>, prediction: Vec<f64>) -> PyResult<f64> {
        self.check(&[&truth, &prediction])?;
        Ok(self.0.expected(&truth, &prediction))
    }

    /// The smallest expected loss if labels follow the distribution `truth`.
    fn entropy(&self, truth: Vec<f64>) -> PyResult<f64> {
        self.check(&[&truth])?;
        Ok(self.0.entropy(&truth))
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        match self.text() {
            Some(text) => format!("Loss({text:?})"),
            None => {
                let classes = self.classes().map(|classes| format!(", classes={classes:?}")).unwrap_or_default();
                let (cost, acts) = (self.cost().unwrap_or_default(), self.acts().unwrap_or_default());
                format!("Loss.matrix({cost:?}, acts={acts:?}{classes})")
            }
        }
    }

    fn __hash__(&self) -> u64 {
        hash_text(&self.0.to_string())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let class = PyType::new::<Self>(py).into_any();
        match self.text() {
            Some(text) => Ok((class, (text,).into_pyobject(py)?)),
            None => Ok((class.getattr("matrix")?, (self.cost(), self.acts(), self.classes()).into_pyobject(py)?)),
        }
    }
}

impl Loss {
    /// The text from which this loss can be parsed; `None` for a cost matrix.
    fn text(&self) -> Option<String> {
        Some(self.0.to_string()).filter(|text| text.parse::<pointsman::Loss>().is_ok_and(|loss| loss == self.0))
    }

    /// Checks that points are distributions over the same number of classes, and that the loss is defined on them.
    fn check(&self, points: &[&[f64]]) -> PyResult<()> {
        let classes = points[0].len();
        self.0.check_classes(classes).map_err(refused)?;
        for point in points {
            if point.len() != classes {
                let reason = format!("distributions over {classes} and {} classes", point.len());
                return Err(refused(Refusal::new(reason)));
            }
            pointsman::LabelDist::new(point.to_vec()).map_err(refused)?;
        }
        Ok(())
    }
}

/// Converts a `Loss` or the name of a loss.
pub(crate) fn loss_of(value: &Bound<'_, PyAny>) -> PyResult<pointsman::Loss> {
    if let Ok(loss) = value.cast::<Loss>() {
        return Ok(loss.get().0.clone());
    }
    match value.extract::<String>() {
        Ok(name) => name.parse().map_err(refused::<pointsman::Error>),
        Err(_) => {
            let reason = format!("loss: give a name such as \"brier\", or Loss.matrix(…), not {}", shown(value));
            Err(refused(Refusal::new(reason)))
        }
    }
}

/// The column names of a frame; `None` if it has none or if they are numbers.
fn column_names(frame: &Bound<'_, PyAny>) -> Option<Vec<String>> {
    let columns = frame.getattr("columns").ok()?;
    columns.try_iter().ok()?.map(|name| name.ok()?.extract().ok()).collect()
}

/// The hash of an object that is equal to others of the same text.
pub(crate) fn hash_text(text: &str) -> u64 {
    text.bytes().fold(0, |hash: u64, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)))
}
