//! Policies: deciding arrays of queries, evaluating, and certifying.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::PyArray1;
use pointsman::CellId;
use pointsman::error::TaskError;
use pointsman::task::Named;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::decisions::{CHUNK, Chunk, Decisions, State};
use crate::error::{Refusal, failed, refused};
use crate::report::Report;
use crate::rows::{Matrix, Numbers};
use crate::table::Table;
use crate::task::{Task, caps_of};
use crate::work;

/// A router compiled for a task, with its calibration rows unless it comes from a policy file.
#[pyclass(frozen, module = "pointsman._native")]
pub(crate) struct Policy {
    pub(crate) policy: Arc<pointsman::Policy>,
}

impl From<pointsman::Policy> for Policy {
    fn from(policy: pointsman::Policy) -> Self {
        Self { policy: Arc::new(policy) }
    }
}

impl Policy {
    /// The router with its calibration rows, which a policy from a policy file does not have; `what` is the method that needs them.
    fn router_for(&self, what: &str) -> PyResult<pointsman::Router> {
        self.policy.router().cloned().ok_or_else(|| {
            refused(Refusal::new(format!(
                "{what} needs calibration rows, which a compiled policy does not have: compile the router instead, as in \
                 Router.load(path).policy(task=policy.task)"
            )))
        })
    }

    /// The exception of a task for which no prices can be found.
    fn not_repriced(&self, error: pointsman::Error) -> PyErr {
        match error {
            pointsman::Error::Task(TaskError::OtherPolicyFile { compiled, asked }) => refused(Refusal::new(format!(
                "the policy was compiled for {compiled} and has no calibration rows to estimate {asked}: compile the router \
                     anew, as in Router.load(path).policy(loss=…, routes=…)"
            ))),
            pointsman::Error::Task(TaskError::OtherPolicy) => refused(Refusal::new(
                "reprice changes prices and routes, not the loss or the estimator: compile the router anew, as in \
                 router.policy(loss=…, routes=…)",
            )),
            pointsman::Error::Task(TaskError::OtherOracle { route, oracle }) => refused(Refusal::new(format!(
                "the oracle {oracle} of the route {route:?} needs a policy of its own: \
                 router.policy(routes={{{route:?}: (Oracle({oracle:?}), price)}})"
            ))),
            other => refused(other),
        }
    }

    fn decide_chunk<T: pointsman::table::Real>(
        &self,
        predictions: &[T],
        features: &[f64],
        ids: Option<&[String]>,
        labels: bool,
        capped: bool,
    ) -> pointsman::Result<(Chunk, Vec<u64>)> {
        let mut decisions = self.policy.decide_many(predictions, features)?;
        if let Some(ids) = ids {
            decisions.draw_by_ids(&self.policy, ids);
        }
        let answers = if labels { self.policy.answers(&decisions, predictions) } else { Vec::new() };
        let keys = if capped { self.policy.cap_keys(predictions, features, ids) } else { Vec::new() };
        Ok((Chunk { decisions, answers }, keys))
    }

    /// Applies caps to decisions. `keys` are the cap keys of each chunk's rows.
    fn cap(&self, caps: &pointsman::policy::Caps, chunks: &mut [Chunk], keys: &[Vec<u64>]) {
        let rows = chunks.iter().map(|chunk| chunk.decisions.len() as u64).sum();
        let bids = chunks.iter().zip(keys).flat_map(|(chunk, keys)| self.policy.bids(caps, &chunk.decisions, keys));
        let bids: Vec<pointsman::policy::Bid> = bids.collect();
        let scan = |see: &mut dyn FnMut(&pointsman::policy::Bid)| {
            bids.iter().for_each(see);
            Ok::<(), std::convert::Infallible>(())
        };
        let Ok(mut rule) = pointsman::policy::CapRule::find(caps, rows, scan);
        for (chunk, keys) in chunks.iter_mut().zip(keys) {
            self.policy.apply_caps(&mut rule, &mut chunk.decisions, keys);
        }
    }
}

#[pymethods]
impl Policy {
    /// Decides queries. `features` has the router's features in its order.
    #[pyo3(signature = (probs, features = None, ids = None, *, labels = true, caps = None))]
    fn decide(
        &self,
        py: Python<'_>,
        probs: Matrix<'_>,
        features: Option<Matrix<'_>>,
        ids: Option<Vec<String>>,
        labels: bool,
        caps: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Decisions> {
        let caps = caps.map(|caps| caps_of(caps, self.policy.task())).transpose()?;
        let (rows, classes) = probs.shape();
        let needed = self.policy.cells().features();
        let (found, width) = features.as_ref().map_or((rows, 0), Matrix::shape);
        if classes != self.policy.classes().len() {
            return Err(refused(Refusal::new(format!(
                "{classes} columns of probabilities; this router has {} classes: {}",
                self.policy.classes().len(),
                self.policy.classes().join(", ")
            ))));
        }
        if width != needed.len() || found != rows || ids.as_ref().is_some_and(|ids| ids.len() != rows) {
            return Err(refused(Refusal::new(format!(
                "{rows} rows of probabilities, {found} rows of {width} features, {} ids; this router needs the features {}",
                ids.map_or(rows, |ids| ids.len()),
                if needed.is_empty() { "of none".to_owned() } else { needed.join(", ") }
            ))));
        }
        let features = features.map_or(Ok(Vec::new()), |features| features.to_doubles())?;
        let numbers = probs.numbers()?;
        let (mut chunks, mut keys) = (Vec::with_capacity(rows.div_ceil(CHUNK)), Vec::new());
        let capped = caps.is_some();
        for start in (0..rows).step_by(CHUNK) {
            let end = rows.min(start + CHUNK);
            let (part, features) = (start * classes..end * classes, &features[start * width..end * width]);
            let ids = ids.as_ref().map(|ids| &ids[start..end]);
            let decided = py.detach(|| match numbers {
                Numbers::Single(values) => self.decide_chunk(&values[part], features, ids, labels, capped),
                Numbers::Double(values) => self.decide_chunk(&values[part], features, ids, labels, capped),
            });
            let (chunk, own_keys) = decided.map_err(|error| refused(error.map_row(|row| start + row)))?;
            chunks.push(chunk);
            keys.push(own_keys);
            py.check_signals()?;
        }
        if let Some(caps) = &caps {
            py.detach(|| self.cap(caps, &mut chunks, &keys));
        }
        Ok(Decisions { policy: Arc::clone(&self.policy), chunks, rows, ids, labels, capped })
    }

    /// Restores decisions from their state. A state that does not fit the policy is refused.
    fn restore(&self, py: Python<'_>, state: State) -> PyResult<Decisions> {
        let (states, ids, labels, capped) = state;
        let chunk = |state| Chunk::restore(py, &self.policy, state, labels);
        let chunks = states.into_iter().map(chunk).collect::<PyResult<Vec<Chunk>>>()?;
        let rows = chunks.iter().map(|chunk| chunk.decisions.len()).sum();
        if ids.as_ref().is_some_and(|ids| ids.len() != rows) {
            return Err(refused(Refusal::new("the ids do not fit the decisions")));
        }
        Ok(Decisions { policy: Arc::clone(&self.policy), chunks, rows, ids, labels, capped })
    }

    /// Reads a policy from the bytes of a policy file.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        let policy = py.detach(|| pointsman_table::parse_policy(data));
        Ok(policy.map_err(refused)?.into())
    }

    /// The bytes of the policy file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let policy = Arc::clone(&self.policy);
        let bytes = work::run(py, None, move |_| pointsman_table::policy_bytes(&policy))?;
        Ok(PyBytes::new(py, &bytes.map_err(refused)?))
    }

    /// Writes the policy file atomically.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let policy = Arc::clone(&self.policy);
        work::run(py, None, move |_| pointsman_table::save_policy(path, &policy))?.map_err(failed)
    }

    /// The same policy at other prices. Arguments that are `...` keep their present values.
    fn reprice(&self, routes: &Bound<'_, PyAny>, abstain: &Bound<'_, PyAny>) -> PyResult<Self> {
        let task = Task::repriced(self.policy.task(), routes, abstain)?;
        Ok(self.policy.reprice(&task).map_err(|error| self.not_repriced(error))?.into())
    }

    /// The same policy for a task of the same loss and estimator.
    fn for_task(&self, task: &Bound<'_, Task>) -> PyResult<Self> {
        Ok(self.policy.reprice(&task.get().0).map_err(|error| self.not_repriced(error))?.into())
    }

    /// Which actions are certainly optimal, at a confidence.
    fn judge(&self, py: Python<'_>, confidence: f64) -> PyResult<Judgement> {
        let (router, policy) = (self.router_for("judgement")?, Arc::clone(&self.policy));
        let judge = move |_: &work::Steps| router.certificate(policy.task(), confidence)?.judge(&policy);
        Ok(Judgement(Arc::new(work::run(py, None, judge)?.map_err(refused)?)))
    }

    /// Evaluates the policy on held-out rows, within caps if there are any; `ids` order rows of equal cost under caps.
    #[pyo3(signature = (table, *, caps = None, ids = None, calibration_error = true, seed = 0, progress = None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn evaluate(
        &self,
        py: Python<'_>,
        table: &Bound<'_, Table>,
        caps: Option<&Bound<'_, PyAny>>,
        ids: Option<Vec<String>>,
        calibration_error: bool,
        seed: u64,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Report> {
        let (router, policy, table) =
            (self.router_for("evaluate")?, Arc::clone(&self.policy), Arc::clone(&table.get().0));
        let caps = caps.map(|caps| caps_of(caps, policy.task())).transpose()?;
        let caps = caps.map(|caps| (caps, ids));
        Report::new(py, (router, policy, table), caps, calibration_error, seed, progress)
    }

    /// The realised cost of each decision, given its label and, for routed rows, the oracle's answer.
    fn realised<'py>(
        &self,
        py: Python<'py>,
        decisions: &Bound<'py, Decisions>,
        probs: Matrix<'py>,
        labels: Vec<u32>,
        answers: Matrix<'py>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        if !Arc::ptr_eq(&decisions.get().policy, &self.policy) {
            return Err(refused(Refusal::new("these decisions are of another policy")));
        }
        let (probs, answers) = (probs.to_doubles()?, answers.to_doubles()?);
        let classes = self.policy.classes().len();
        let mut costs = Vec::with_capacity(labels.len());
        for (part, chunk) in decisions.get().chunks.iter().enumerate() {
            let (start, rows) = (part * CHUNK, chunk.decisions.len());
            let of = |values: &'_ [f64]| values.get(start * classes..(start + rows) * classes).unwrap_or(&[]).to_vec();
            let labels = labels.get(start..start + rows).unwrap_or(&[]);
            costs.extend(
                self.policy
                    .realised(&chunk.decisions, &of(&probs), labels, &of(&answers))
                    .map_err(|error| refused(error.map_row(|row| start + row)))?,
            );
        }
        Ok(PyArray1::from_vec(py, costs))
    }

    #[getter]
    fn task(&self) -> Task {
        Task(self.policy.task().clone())
    }

    #[getter]
    fn classes(&self) -> Vec<String> {
        self.policy.classes().to_vec()
    }

    /// The features that decisions need.
    #[getter]
    fn features(&self) -> Vec<String> {
        self.policy.cells().features().to_vec()
    }

    /// The number of cells.
    #[getter]
    fn cell_count(&self) -> usize {
        self.policy.cells().count()
    }

    /// Whether the policy has its router's calibration rows.
    #[getter]
    fn has_rows(&self) -> bool {
        self.policy.router().is_some()
    }

    #[getter]
    fn actions(&self) -> Vec<String> {
        self.policy.task().action_names()
    }

    /// The share of the calibration rows that each action would get.
    #[getter]
    fn shares<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        named(py, &self.policy.shares())
    }

    /// The price of routing that enforces a limit, and its effect; `None` without a limit.
    #[getter]
    fn surcharge<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(found) = self.policy.surcharge() else { return Ok(None) };
        let surcharge = PyDict::new(py);
        for (name, value) in [
            ("price", found.price),
            ("marginal", found.marginal),
            ("share", found.share),
            ("share_standard_error", found.share_standard_error),
            ("loss", found.loss),
            ("loss_standard_error", found.loss_standard_error),
        ] {
            surcharge.set_item(name, value)?;
        }
        surcharge.set_item("loss_identified", found.loss_identified)?;
        Ok(Some(surcharge))
    }

    /// The expected cost of new queries, estimated by cross-fitting; `None` if labels give only bounds.
    fn promise<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(promise) = py.detach(|| self.policy.promise()) else { return Ok(None) };
        let found = PyDict::new(py);
        for (name, value) in [
            ("cost", promise.cost),
            ("standard_error", promise.standard_error),
            ("loss", promise.loss),
            ("loss_standard_error", promise.loss_standard_error),
        ] {
            found.set_item(name, value)?;
        }
        found.set_item("identified", promise.identified)?;
        found.set_item("loss_identified", promise.loss_identified)?;
        found.set_item("shares", named(py, &promise.shares)?)?;
        found.set_item("always", named(py, &promise.always)?)?;
        Ok(Some(found))
    }

    /// Each cell with its name, rows, losses, costs and action. Unknown values are `None`.
    fn cells<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let one = |cell: u32| {
            let (cell, found) = (CellId(cell), PyDict::new(py));
            let decision = self.policy.cell(cell);
            found.set_item("cell", cell.0)?;
            found.set_item("name", self.policy.cells().name(cell, self.policy.classes()))?;
            found.set_item("rows", decision.map_or(0, |d| d.rows()))?;
            found.set_item("support", self.policy.support(cell).name())?;
            found.set_item("centroid", decision.map(|d| d.estimate().centroid.clone()))?;
            found.set_item("irreducible", decision.and_then(|d| d.irreducible()))?;
            found.set_item("reducible", decision.and_then(|d| d.reducible()))?;
            found.set_item("total", decision.map(|d| d.total()))?;
            found.set_item("irreducible_bounds", decision.map(|d| d.irreducible_bounds()))?;
            let costs = decision.map(|d| d.known_costs().map(|x| (!x.is_nan()).then_some(x)).collect::<Vec<_>>());
            found.set_item("costs", costs)?;
            found.set_item("action", decision.map(|d| d.action().to_string()))?;
            found.set_item("margin", decision.map(|d| d.margin()))?;
            Ok(found)
        };
        (0..self.policy.cells().count() as u32).map(one).collect()
    }
}

/// Which actions are certainly optimal in their cells.
#[pyclass(frozen, module = "pointsman")]
pub(crate) struct Judgement(pub(crate) Arc<pointsman::certify::Judgement>);

#[pymethods]
impl Judgement {
    /// A bound on the regret per query relative to the best action of each cell.
    #[getter]
    fn regret_bound(&self) -> f64 {
        self.0.regret_bound
    }

    /// The share of the calibration rows whose action is certain.
    #[getter]
    fn certain_share(&self) -> f64 {
        self.0.certain
    }

    /// Whether the action of each cell is certain.
    #[getter]
    fn cells(&self) -> Vec<bool> {
        self.0.cells.iter().map(|cell| cell.certain).collect()
    }

    fn __repr__(&self) -> String {
        let (certain, cells) = (self.0.cells.iter().filter(|cell| cell.certain).count(), self.0.cells.len());
        format!("<Judgement: {certain} of {cells} cells certain, regret at most {:.4}>", self.0.regret_bound)
    }
}

/// Named values as a dictionary.
fn named<'py>(py: Python<'py>, values: &Named<f64>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    values.iter().try_for_each(|(name, value)| dict.set_item(name, value))?;
    Ok(dict)
}
