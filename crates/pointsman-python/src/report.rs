//! Reports and diagnoses, with the JSON, figures and pages of the command line.

use std::sync::Arc;

use pointsman::Replay;
use pointsman::wasserstein::DEFAULT_SPLITS;
use pointsman_report::{FIGURES, Inputs, html, reliability};
use pyo3::prelude::*;

use crate::error::{Refusal, not_pickled, refused};
use crate::policy::Policy;
use crate::table::Table;
use crate::task::Task;
use crate::work::{self, Steps};

/// The report of a policy on held-out rows.
#[pyclass(frozen, module = "pointsman._native")]
pub(crate) struct Report {
    inputs: Arc<ReportInputs>,
    report: pointsman_report::Report,
}

/// The data from which a report is computed.
struct ReportInputs {
    router: pointsman::Router,
    policy: Arc<pointsman::Policy>,
    table: Arc<pointsman::Table>,
    replay: Replay,
}

impl ReportInputs {
    fn as_inputs(&self) -> Inputs<'_> {
        Inputs { router: &self.router, policy: &self.policy, table: &self.table, replay: &self.replay }
    }

    /// The report with the details that figures and the page need. The calibration error is taken from `report`.
    fn detailed(&self, report: Option<&pointsman_report::Report>) -> pointsman::Result<pointsman_report::Report> {
        let inputs = self.as_inputs();
        let error = report.and_then(|report| report.calibration_error.clone());
        pointsman_report::Report::new(&inputs, &[], error)?.detailed(&inputs, || ())
    }
}

impl Report {
    pub(crate) fn new(
        py: Python<'_>,
        (router, policy, table): (pointsman::Router, Arc<pointsman::Policy>, Arc<pointsman::Table>),
        caps: Option<(pointsman::policy::Caps, Option<Vec<String>>)>,
        calibration_error: bool,
        seed: u64,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let judge = move |steps: &Steps| {
            let mut replay = policy.replay(&table)?;
            if let Some((caps, ids)) = caps {
                replay = replay.with_caps(caps, &table, ids.as_deref())?;
            }
            let inputs = ReportInputs { router, policy, table, replay };
            let mut report = pointsman_report::Report::new(&inputs.as_inputs(), &[], None)?;
            if calibration_error && inputs.table.has_votes() {
                let (table, policy) = (&inputs.table, &inputs.policy);
                let found = inputs.router.calibration_error(table, policy, DEFAULT_SPLITS, seed, || steps.step())?;
                report.calibration_error = Some(found);
            }
            pointsman::Result::Ok(Self { inputs: Arc::new(inputs), report })
        };
        work::run(py, progress, judge)?.map_err(refused)
    }
}

#[pymethods]
impl Report {
    /// The JSON of `pointsman evaluate --json`.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.report).map_err(unwritten)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("Report", "keep data, or the page by save_html()"))
    }

    /// The report as a self-contained HTML page.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        let (inputs, report) = (Arc::clone(&self.inputs), self.report.clone());
        let detailed = work::run(py, None, move |_| inputs.detailed(Some(&report)))?.map_err(refused)?;
        html(&detailed).map_err(unwritten)
    }

    /// A figure as SVG; `None` if this report has no data for it.
    fn svg(&self, py: Python<'_>, name: &str) -> PyResult<Option<String>> {
        let known = || FIGURES.iter().map(|figure| figure.name).collect::<Vec<_>>().join(", ");
        let Some(figure) = FIGURES.iter().find(|figure| figure.name == name) else {
            return Err(refused(Refusal::new(format!("no figure is called {name:?}; there are: {}", known()))));
        };
        let (inputs, draw, report) = (Arc::clone(&self.inputs), figure.draw, self.report.clone());
        let drawn =
            move |_: &Steps| pointsman::Result::Ok(draw(&inputs.detailed(Some(&report))?).map(|picture| picture.svg()));
        work::run(py, None, drawn)?.map_err(refused)
    }

    /// One sentence on the costs at the task's prices.
    #[getter]
    fn money_line(&self) -> String {
        self.report.money_line()
    }

    /// One sentence that describes the task.
    #[getter]
    fn task_line(&self) -> String {
        self.report.task_line()
    }
}

/// Compares policies on one held-out table. The result is the JSON of `pointsman compare --json`.
#[pyfunction]
#[pyo3(signature = (policies, table, baseline = None))]
pub(crate) fn compare(
    py: Python<'_>,
    policies: Vec<(String, Bound<'_, Policy>)>,
    table: &Bound<'_, Table>,
    baseline: Option<String>,
) -> PyResult<String> {
    let policies: Vec<(String, Arc<pointsman::Policy>)> =
        policies.into_iter().map(|(name, policy)| (name, Arc::clone(&policy.get().policy))).collect();
    let table = Arc::clone(&table.get().0);
    let judge = move |_: &Steps| {
        let replay = |(name, policy): (String, Arc<pointsman::Policy>)| {
            let ordered = table.in_order_of(policy.classes())?;
            Ok((name, policy.replay(&ordered)?))
        };
        let replays = policies.into_iter().map(replay).collect::<pointsman::Result<Vec<_>>>()?;
        pointsman::evaluate::compare_policies(
            replays.iter().map(|(name, replay)| (name.as_str(), replay)),
            baseline.as_deref(),
        )
    };
    serde_json::to_string(&work::run(py, None, judge)?.map_err(refused)?).map_err(unwritten)
}

/// The diagnosis of a table.
#[pyclass(frozen, module = "pointsman._native")]
pub(crate) struct Diagnosis {
    diagnosis: pointsman::Diagnosis,
    table: Arc<pointsman::Table>,
    task: pointsman::Task,
    partition: pointsman::Partition,
}

/// Diagnoses a table. `progress` is called with the number of steps done since the last call.
#[pyfunction]
#[pyo3(signature = (table, task, partition = "auto", *, progress = None))]
pub(crate) fn diagnose(
    py: Python<'_>,
    table: &Bound<'_, Table>,
    task: &Bound<'_, Task>,
    partition: &str,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Diagnosis> {
    let partition: pointsman::Partition = partition.parse().map_err(refused::<pointsman::Error>)?;
    let (table, task) = (Arc::clone(&table.get().0), task.get().0.clone());
    let diagnose = move |steps: &Steps| {
        let diagnosis = pointsman::diagnose::diagnose(&table, &task, &partition, || steps.step())?;
        pointsman::Result::Ok(Diagnosis { diagnosis, table, task, partition })
    };
    work::run(py, progress, diagnose)?.map_err(refused)
}

#[pymethods]
impl Diagnosis {
    /// The JSON of `pointsman diagnose --json`, with rows counted from zero.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.diagnosis).map_err(unwritten)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("Diagnosis", "keep data, or the page by save_html()"))
    }

    /// The report page of a router that is calibrated on one half of the rows and evaluated on the other.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        let (table, task, partition) = (Arc::clone(&self.table), self.task.clone(), self.partition.clone());
        let judge = move |_: &Steps| {
            let [calibration, held_out] = pointsman::diagnose::halves(&table)?;
            let router = pointsman::Router::calibrate(&calibration, &partition)?;
            // The target loss may be out of reach on one half of the rows, even if it is not on all of them.
            let unlimited = |_| router.policy(&task.clone().without_limit());
            let policy = Arc::new(router.policy(&task).or_else(unlimited)?);
            let replay = policy.replay(&held_out)?;
            ReportInputs { router, policy, table: Arc::new(held_out), replay }.detailed(None)
        };
        html(&work::run(py, None, judge)?.map_err(refused)?).map_err(unwritten)
    }

    /// The reliability diagram of the weak model, as SVG.
    fn svg(&self) -> String {
        reliability(&self.diagnosis.weak_model).svg()
    }
}

/// Converts an error of writing JSON into an exception.
fn unwritten(error: serde_json::Error) -> PyErr {
    refused(Refusal::new(error.to_string()))
}
