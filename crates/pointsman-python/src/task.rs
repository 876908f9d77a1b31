//! Losses, oracles and tasks.

use pointsman::{Aggregate, Limit};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use crate::error::{Refusal, refused};

/// A proper loss: a name, or a cost matrix.
#[pyclass(frozen, eq, module = "pointsman._native")]
#[derive(PartialEq)]
pub(crate) struct Loss(pub(crate) pointsman::Loss);

#[pymethods]
impl Loss {
    #[new]
    fn new(name: &str) -> PyResult<Self> {
        Ok(Self(name.parse().map_err(refused::<pointsman::Error>)?))
    }

    #[staticmethod]
    #[pyo3(signature = (cost, acts = None))]
    fn matrix(cost: Vec<Vec<f64>>, acts: Option<Vec<String>>) -> PyResult<Self> {
        let acts = acts.unwrap_or_else(|| (0..cost.len()).map(|act| act.to_string()).collect());
        Ok(Self(pointsman::Loss::matrix(acts, cost).map_err(refused)?))
    }

    #[getter]
    fn acts(&self) -> Option<Vec<String>> {
        self.0.acts().map(<[String]>::to_vec)
    }

    #[getter]
    fn cost(&self) -> Option<Vec<Vec<f64>>> {
        self.0.costs().map(|rows| rows.into_iter().map(<[f64]>::to_vec).collect())
    }

    #[getter]
    fn unit(&self) -> &'static str {
        self.0.unit()
    }

    #[getter]
    fn bound(&self) -> f64 {
        self.0.bound()
    }

    /// The expected loss of a prediction where labels follow a distribution.
    fn expected(&self, truth: Vec<f64>, prediction: Vec<f64>) -> PyResult<f64> {
        self.check(&[&truth, &prediction])?;
        Ok(self.0.expected(&truth, &prediction))
    }

    /// The expected loss of who knows the distribution.
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
            None => format!(
                "Loss.matrix({:?}, acts={:?})",
                self.cost().unwrap_or_default(),
                self.acts().unwrap_or_default()
            ),
        }
    }

    fn __hash__(&self) -> u64 {
        let text = self.0.to_string();
        text.bytes().fold(0, |hash: u64, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let class = PyType::new::<Self>(py).into_any();
        match self.text() {
            Some(text) => Ok((class, (text,).into_pyobject(py)?)),
            None => Ok((class.getattr("matrix")?, (self.cost(), self.acts()).into_pyobject(py)?)),
        }
    }
}

impl Loss {
    /// The text that reads back as this loss, if there is one.
    fn text(&self) -> Option<String> {
        Some(self.0.to_string()).filter(|text| text.parse::<pointsman::Loss>().is_ok_and(|loss| loss == self.0))
    }

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

/// Whom to ask.
#[pyclass(frozen, eq, module = "pointsman._native")]
#[derive(PartialEq)]
pub(crate) struct Oracle(pub(crate) pointsman::Oracle);

#[pymethods]
impl Oracle {
    #[new]
    fn new(kind: &str) -> PyResult<Self> {
        Ok(Self(kind.parse().map_err(refused::<pointsman::Error>)?))
    }

    #[staticmethod]
    fn bayes() -> Self {
        Self(pointsman::Oracle::bayes())
    }

    #[staticmethod]
    fn measured() -> Self {
        Self(pointsman::Oracle::measured())
    }

    #[staticmethod]
    #[pyo3(signature = (experts, aggregate = "mean", *, smoothing = None))]
    fn panel(experts: u32, aggregate: &str, smoothing: Option<f64>) -> PyResult<Self> {
        let aggregate = Aggregate::new(aggregate, smoothing).map_err(refused)?;
        Ok(Self(pointsman::Oracle::panel(experts, aggregate).map_err(refused)?))
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Oracle({:?})", self.0.to_string())
    }

    fn __hash__(&self) -> u64 {
        self.0.to_string().bytes().fold(0, |hash: u64, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (String,)) {
        (PyType::new::<Self>(py), (self.0.to_string(),))
    }
}

/// A loss, priced oracles, and what else a policy is made for.
#[pyclass(frozen, eq, module = "pointsman._native")]
#[derive(PartialEq)]
pub(crate) struct Task(pub(crate) pointsman::Task);

#[pymethods]
impl Task {
    #[new]
    #[pyo3(signature = (loss, routes = vec![], *, abstain = None, budget = None, target_loss = None, estimator = "shrink", ties = "frugal"))]
    fn new(
        loss: &Bound<'_, Loss>,
        routes: Vec<(String, Bound<'_, Oracle>, f64)>,
        abstain: Option<f64>,
        budget: Option<f64>,
        target_loss: Option<f64>,
        estimator: &str,
        ties: &str,
    ) -> PyResult<Self> {
        let build = || {
            let mut task = pointsman::Task::new(loss.get().0.clone()).estimator(estimator.parse()?).ties(ties.parse()?);
            for (name, oracle, price) in routes {
                task = task.route(name, oracle.get().0.clone(), price)?;
            }
            if let Some(price) = abstain {
                task = task.abstain(price)?;
            }
            if let Some(share) = budget {
                task = task.budget(share)?;
            }
            target_loss.map_or(Ok(task.clone()), |loss| task.target_loss(loss))
        };
        Ok(Self(build().map_err(refused::<pointsman::Error>)?))
    }

    /// A task as the command line's task files hold it.
    #[staticmethod]
    fn parse(text: &str) -> PyResult<Self> {
        Ok(Self(pointsman_table::parse_task(text).map_err(|reason| refused(Refusal::new(reason)))?))
    }

    #[getter]
    fn loss(&self) -> Loss {
        Loss(self.0.loss().clone())
    }

    #[getter]
    fn routes(&self) -> Vec<(String, Oracle, f64)> {
        let route = |route: &pointsman::Route| (route.name().to_owned(), Oracle(route.oracle().clone()), route.price());
        self.0.routes().iter().map(route).collect()
    }

    #[getter]
    fn abstain(&self) -> Option<f64> {
        self.0.abstain_price()
    }

    #[getter]
    fn budget(&self) -> Option<f64> {
        self.0.limit().and_then(|limit| if let Limit::Budget(share) = limit { Some(share) } else { None })
    }

    #[getter]
    fn target_loss(&self) -> Option<f64> {
        self.0.limit().and_then(|limit| if let Limit::TargetLoss(loss) = limit { Some(loss) } else { None })
    }

    #[getter]
    fn estimator(&self) -> String {
        self.0.chosen_estimator().to_string()
    }

    #[getter]
    fn ties(&self) -> String {
        self.0.chosen_ties().to_string()
    }

    #[getter]
    fn actions(&self) -> Vec<String> {
        self.0.action_names()
    }

    fn __repr__(&self) -> String {
        let routes = self.0.routes().iter().map(|r| format!(", {} {} at {}", r.name(), r.oracle(), r.price()));
        let abstain = self.0.abstain_price().map(|price| format!(", abstain at {price}")).unwrap_or_default();
        format!("<Task: {}{}{abstain}>", self.0.loss(), routes.collect::<String>())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let restore = PyType::new::<Self>(py).getattr("_restored")?;
        let limits = (self.budget(), self.target_loss());
        let state = (self.loss(), self.routes(), self.abstain(), limits, self.estimator(), self.ties());
        Ok((restore, state.into_pyobject(py)?))
    }

    #[staticmethod]
    fn _restored(
        loss: &Bound<'_, Loss>,
        routes: Vec<(String, Bound<'_, Oracle>, f64)>,
        abstain: Option<f64>,
        limits: (Option<f64>, Option<f64>),
        estimator: &str,
        ties: &str,
    ) -> PyResult<Self> {
        Self::new(loss, routes, abstain, limits.0, limits.1, estimator, ties)
    }
}
