//! Oracles and tasks.

use pointsman::Limit;
use pointsman::oracle::Aggregate;
use pointsman::task::Route;
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyTuple, PyType};

use crate::error::{Refusal, refused};
use crate::loss::{Loss, hash_text, loss_of};

/// An oracle: how the loss of its answers is estimated.
///
/// Examples
/// --------
/// >>> from pointsman import Oracle
/// >>> Oracle.panel(3, "plurality")
/// Oracle("panel:m=3,aggregate=plurality")
/// >>> Oracle.bayes() == Oracle("bayes"), str(Oracle.measured())
/// (True, 'measured')
#[pyclass(frozen, eq, module = "pointsman")]
#[derive(PartialEq)]
pub(crate) struct Oracle(pub(crate) pointsman::Oracle);

#[pymethods]
impl Oracle {
    #[new]
    fn new(kind: &str) -> PyResult<Self> {
        Ok(Self(kind.parse().map_err(refused::<pointsman::Error>)?))
    }

    /// The Bayes-optimal oracle. It answers with the true label distribution, so its loss is the irreducible loss.
    #[staticmethod]
    fn bayes() -> Self {
        Self(pointsman::Oracle::bayes())
    }

    /// An oracle whose loss is measured from its predictions for the calibration rows: `Router.fit(…, oracles={name: …})`.
    #[staticmethod]
    fn measured() -> Self {
        Self(pointsman::Oracle::measured())
    }

    /// A panel of annotators. Its answer is the label shares (`mean`), the most frequent label (`plurality`), or the shares after
    /// `smoothing` labels of each class were added (`laplace`).
    #[staticmethod]
    #[pyo3(signature = (experts, aggregate = "mean", *, smoothing = None))]
    fn panel(experts: i64, aggregate: &str, smoothing: Option<f64>) -> PyResult<Self> {
        let aggregate = Aggregate::new(aggregate, smoothing).map_err(refused)?;
        // The core refuses both values and says which sizes are possible.
        let experts = u32::try_from(experts).unwrap_or(if experts < 0 { 0 } else { u32::MAX });
        Ok(Self(pointsman::Oracle::panel(experts, aggregate).map_err(refused)?))
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Oracle({:?})", self.0.to_string())
    }

    fn __hash__(&self) -> u64 {
        hash_text(&self.0.to_string())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (String,)) {
        (PyType::new::<Self>(py), (self.0.to_string(),))
    }
}

/// A loss, priced oracles, a price for abstaining and a limit on routing. Parameters are those of `Router.policy`.
///
/// Examples
/// --------
/// >>> from pointsman import Oracle, Task
/// >>> Task("brier", {"expert": 0.05, "jury": (Oracle.panel(3), 0.02)}, abstain=0.3).actions
/// ['predict', 'route:expert', 'route:jury', 'abstain']
#[pyclass(frozen, eq, module = "pointsman")]
#[derive(PartialEq)]
pub(crate) struct Task(pub(crate) pointsman::Task);

#[pymethods]
impl Task {
    #[new]
    #[pyo3(signature = (loss = None, routes = None, *, abstain = None, budget = None, target_loss = None, estimator = "auto", ties = "frugal"))]
    fn new(
        loss: Option<&Bound<'_, PyAny>>,
        routes: Option<&Bound<'_, PyAny>>,
        abstain: Option<&Bound<'_, PyAny>>,
        budget: Option<&Bound<'_, PyAny>>,
        target_loss: Option<&Bound<'_, PyAny>>,
        estimator: &str,
        ties: &str,
    ) -> PyResult<Self> {
        let loss = loss.map_or(Ok(pointsman::Loss::brier()), loss_of)?;
        let routes = routes.map_or(Ok(Vec::new()), |routes| routes_of(routes, &[]))?;
        let number = |what: &str, value: Option<&Bound<'_, PyAny>>| value.map(|value| number(what, value)).transpose();
        let abstain = number("abstain", abstain)?;
        let (budget, target_loss) = (number("budget", budget)?, number("target_loss", target_loss)?);
        let build = || {
            let task = pointsman::Task::new(loss).estimator(estimator.parse()?).ties(ties.parse()?);
            let task = limited(priced(task, routes, abstain)?, budget.map(Limit::Budget))?;
            limited(task, target_loss.map(Limit::TargetLoss))
        };
        Ok(Self(build().map_err(refused::<pointsman::Error>)?))
    }

    /// Parses the text of a task file.
    #[staticmethod]
    fn parse(text: &str) -> PyResult<Self> {
        Ok(Self(pointsman_table::parse_task(text).map_err(refused)?))
    }

    /// The text of a task file, which `parse` reads.
    #[getter]
    fn text(&self) -> String {
        pointsman_table::task_text(&self.0)
    }

    /// The loss.
    #[getter]
    fn loss(&self) -> Loss {
        Loss(self.0.loss().clone())
    }

    /// The name, oracle and price of each route.
    #[getter]
    fn routes(&self) -> Vec<(String, Oracle, f64)> {
        let route =
            |route: &pointsman::task::Route| (route.name().to_owned(), Oracle(route.oracle().clone()), route.price());
        self.0.routes().iter().map(route).collect()
    }

    /// The price of abstaining; `None` if abstaining is not allowed.
    #[getter]
    fn abstain(&self) -> Option<f64> {
        self.0.abstain_price()
    }

    /// The largest share of queries that may be routed, if limited.
    #[getter]
    fn budget(&self) -> Option<f64> {
        self.0.limit().and_then(|limit| if let Limit::Budget(share) = limit { Some(share) } else { None })
    }

    /// The largest expected loss that is allowed, if limited.
    #[getter]
    fn target_loss(&self) -> Option<f64> {
        self.0.limit().and_then(|limit| if let Limit::TargetLoss(loss) = limit { Some(loss) } else { None })
    }

    /// The estimator of the irreducible loss.
    #[getter]
    fn estimator(&self) -> String {
        self.0.chosen_estimator().to_string()
    }

    /// The rule that chooses between actions of equal cost.
    #[getter]
    fn ties(&self) -> String {
        self.0.chosen_ties().to_string()
    }

    /// The actions, in the order of the columns of costs.
    #[getter]
    fn actions(&self) -> Vec<String> {
        self.0.action_names()
    }

    fn __repr__(&self) -> String {
        let routes = self.0.routes().iter().map(|r| format!(", {} {} at {}", r.name(), r.oracle(), r.price()));
        let abstain = self.0.abstain_price().map(|price| format!(", abstain at {price}")).unwrap_or_default();
        let limit = match self.0.limit() {
            Some(Limit::Budget(share)) => format!(", budget {share}"),
            Some(Limit::TargetLoss(loss)) => format!(", target loss {loss}"),
            None => String::new(),
        };
        format!("<Task: {}{}{abstain}{limit}>", self.0.loss(), routes.collect::<String>())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let restore = PyType::new::<Self>(py).getattr("_restored")?;
        let limits = (self.budget(), self.target_loss());
        let state = (self.loss(), self.routes(), self.abstain(), limits, self.estimator(), self.ties());
        Ok((restore, state.into_pyobject(py)?))
    }

    #[staticmethod]
    fn _restored<'py>(
        loss: &Bound<'py, PyAny>,
        routes: &Bound<'py, PyAny>,
        abstain: Option<Bound<'py, PyAny>>,
        limits: (Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>),
        estimator: &str,
        ties: &str,
    ) -> PyResult<Self> {
        Self::new(Some(loss), Some(routes), abstain.as_ref(), limits.0.as_ref(), limits.1.as_ref(), estimator, ties)
    }
}

impl Task {
    /// The same task at other prices. Arguments that are `...` keep their present values. A route given by its price alone keeps its
    /// oracle.
    pub(crate) fn repriced(
        task: &pointsman::Task,
        routes: &Bound<'_, PyAny>,
        abstain: &Bound<'_, PyAny>,
    ) -> PyResult<pointsman::Task> {
        let kept = routes.py().Ellipsis();
        let routes = if routes.is(&kept) {
            task.routes().iter().map(|r| (r.name().to_owned(), r.oracle().clone(), r.price())).collect()
        } else {
            routes_of(routes, task.routes())?
        };
        let abstain = match abstain {
            same if same.is(&kept) => task.abstain_price(),
            never if never.is_none() => None,
            price => Some(number("abstain", price)?),
        };
        let bare =
            pointsman::Task::new(task.loss().clone()).estimator(task.chosen_estimator()).ties(task.chosen_ties());
        priced(bare, routes, abstain).and_then(|task_now| limited(task_now, task.limit())).map_err(refused)
    }
}

type Routes = Vec<(String, pointsman::Oracle, f64)>;

fn priced(mut task: pointsman::Task, routes: Routes, abstain: Option<f64>) -> pointsman::Result<pointsman::Task> {
    for (name, oracle, price) in routes {
        task = task.route(name, oracle, price)?;
    }
    match abstain {
        Some(price) => task.abstain(price),
        None => Ok(task),
    }
}

fn limited(task: pointsman::Task, limit: Option<Limit>) -> pointsman::Result<pointsman::Task> {
    match limit {
        Some(Limit::Budget(share)) => task.budget(share),
        Some(Limit::TargetLoss(loss)) => task.target_loss(loss),
        None => Ok(task),
    }
}

/// Converts a number; `what` names it in the message.
fn number(what: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    value.extract().map_err(|_| refused(Refusal::new(format!("{what}: {} is not a number", shown(value)))))
}

/// Converts caps from a mapping of routes to a number of queries or a share such as `"5%"`.
pub(crate) fn caps_of(caps: &Bound<'_, PyAny>, task: &pointsman::Task) -> PyResult<pointsman::policy::Caps> {
    let wrong = |found: &Bound<'_, PyAny>| {
        let reason = format!("caps: give {{route: 500}} or {{route: \"5%\"}}, not {}", shown(found));
        refused(Refusal::new(reason))
    };
    let mapping = caps.cast::<PyMapping>().map_err(|_| wrong(caps))?;
    let mut found = Vec::new();
    for item in mapping.items()?.iter() {
        let (name, size) = item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
        let size = match size.extract::<String>() {
            Ok(text) => text.parse().map_err(refused::<pointsman::Error>)?,
            Err(_) => pointsman::policy::CapSize::Queries(size.extract().map_err(|_| wrong(&size))?),
        };
        found.push((name.str()?.to_string(), size));
    }
    pointsman::policy::Caps::new(task, found).map_err(refused)
}

/// Converts an `Oracle` or the name of a kind of oracle; `None` for other types.
fn oracle_of(value: &Bound<'_, PyAny>) -> Option<PyResult<pointsman::Oracle>> {
    if let Ok(oracle) = value.cast::<Oracle>() {
        return Some(Ok(oracle.get().0.clone()));
    }
    value.extract::<String>().ok().map(|kind| kind.parse().map_err(refused::<pointsman::Error>))
}

/// Converts routes from a mapping of names to prices, or to pairs of an oracle and a price.
///
/// A route given by its price alone has the oracle of the route of that name in `known`, or else the Bayes-optimal oracle.
fn routes_of(routes: &Bound<'_, PyAny>, known: &[Route]) -> PyResult<Routes> {
    let pairs = match routes.cast::<PyMapping>() {
        Ok(mapping) => mapping.items()?.into_any(),
        Err(_) => routes.clone(),
    };
    let wrong = || {
        let reason = format!("routes: give {{name: price}} or {{name: (Oracle, price)}}, not {}", shown(routes));
        refused(Refusal::new(reason))
    };
    type Any<'py> = Bound<'py, PyAny>;
    let mut found = Vec::new();
    for route in pairs.try_iter().map_err(|_| wrong())? {
        let route = route?;
        let (name, oracle, price) = if let Ok((name, given)) = route.extract::<(Any<'_>, Any<'_>)>() {
            match given.extract::<(Any<'_>, Any<'_>)>() {
                Ok((oracle, price)) => (name, Some(oracle), price),
                Err(_) => (name, None, given),
            }
        } else {
            // The form of `Task.routes`.
            let (name, oracle, price) = route.extract::<(Any<'_>, Any<'_>, Any<'_>)>().map_err(|_| wrong())?;
            (name, Some(oracle), price)
        };
        let name = name.str()?.to_string();
        let what = format!("route {name:?}");
        let oracle = match oracle {
            Some(oracle) => oracle_of(&oracle)
                .unwrap_or_else(|| Err(refused(Refusal::new(format!("{what}: give a price, or (Oracle, price)")))))?,
            None => {
                let before = known.iter().find(|route| route.name() == name);
                before.map_or_else(pointsman::Oracle::bayes, |route| route.oracle().clone())
            }
        };
        found.push((name, oracle, number(&what, &price)?));
    }
    Ok(found)
}

/// The representation of a value for a message, cut after 80 characters.
pub(crate) fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map_or_else(|_| "this".to_owned(), |text| text.to_string());
    let short: String = text.chars().take(80).collect();
    pointsman::error::printable(&if short == text { text } else { format!("{short}…") })
}
