//! Routers: calibrating, reading and writing them.

use std::path::PathBuf;
use std::sync::Arc;

use pointsman::calibrate::Calibration;
use pointsman::partition::Factor;
use pointsman::{CellId, Partition};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

use crate::error::{Refusal, failed, refused};
use crate::policy::Policy;
use crate::table::Table;
use crate::task::Task;
use crate::work;

/// A calibrated router, with the reason for which `auto` chose its partition.
#[pyclass(frozen, eq, module = "pointsman._native")]
pub(crate) struct Router(pub(crate) Arc<pointsman::Router>, Option<String>);

/// The reason for the choice of the partition is not compared.
impl PartialEq for Router {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl From<pointsman::Router> for Router {
    fn from(router: pointsman::Router) -> Self {
        Self(Arc::new(router), None)
    }
}

#[pymethods]
impl Router {
    /// Calibrates a router on a table. `progress` is called with the number of steps done since the last call, of
    /// `Router.steps(partition)` in all.
    #[staticmethod]
    #[pyo3(signature = (table, partition, *, recalibrate = false, seed = 0, progress = None))]
    fn calibrate(
        py: Python<'_>,
        table: &Bound<'_, Table>,
        partition: &str,
        recalibrate: bool,
        seed: u64,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let partition: Partition = partition.parse().map_err(refused::<pointsman::Error>)?;
        if recalibrate && matches!(partition.factors(), [Factor::Forest { .. }]) {
            let reason = "recalibrate serves one distribution per cell, and a forest has no such cells: use \
                          Router(\"auto:certifiable\", recalibrate=True)";
            return Err(refused(Refusal::new(reason)));
        }
        let table = Arc::clone(&table.get().0);
        let calibrate = move |steps: &work::Steps| {
            let step = || steps.step();
            let builder = pointsman::Router::builder().partition(partition).seed(seed).recalibrated(recalibrate);
            builder.progress(&step).calibrate(&table)
        };
        let Calibration { router, choice, .. } = work::run(py, progress, calibrate)?.map_err(refused)?;
        let reason = choice.map(|choice| choice.reason().to_owned());
        Ok(Self(Arc::new(router), reason))
    }

    /// The largest number of progress steps of calibrating.
    #[staticmethod]
    fn steps(partition: &str) -> PyResult<u64> {
        Ok(pointsman::Router::steps(&partition.parse().map_err(refused::<pointsman::Error>)?))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        let router = py.detach(|| pointsman_table::parse_router(data));
        Ok(router.map_err(refused)?.into())
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| pointsman_table::router_bytes(&self.0));
        Ok(PyBytes::new(py, &bytes.map_err(refused)?))
    }

    /// Writes the router file atomically.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| pointsman_table::save_router(path, &self.0)).map_err(failed)
    }

    fn policy(&self, py: Python<'_>, task: &Bound<'_, Task>) -> PyResult<Policy> {
        let (router, task) = (Arc::clone(&self.0), task.get().0.clone());
        Ok(work::run(py, None, move |_| router.policy(&task))?.map_err(refused)?.into())
    }

    #[getter]
    fn classes(&self) -> Vec<String> {
        self.0.classes().to_vec()
    }

    /// The features that determine the cell of a query.
    #[getter]
    fn features(&self) -> Vec<String> {
        self.0.cells().features().to_vec()
    }

    /// The names of the other models whose predictions are stored.
    #[getter]
    fn oracles(&self) -> Vec<String> {
        self.0.rows().oracles().map(|(name, _)| name.to_owned()).collect()
    }

    #[getter]
    fn partition(&self) -> String {
        self.0.partition().to_string()
    }

    /// The partition that `auto` chose, and why, in one sentence.
    #[getter]
    fn choice(&self) -> Option<&str> {
        self.1.as_deref()
    }

    /// The features that decisions depend on.
    #[getter]
    fn features_used(&self) -> Vec<String> {
        self.0.features_used()
    }

    /// Whether the cells or leaves were learned from labels.
    #[getter]
    fn is_learned(&self) -> bool {
        self.0.partition().factors().iter().any(Factor::learns)
    }

    #[getter]
    fn recalibrated(&self) -> bool {
        self.0.is_recalibrated()
    }

    #[getter]
    fn cells(&self) -> usize {
        self.0.cells().count()
    }

    /// The name of each cell, which describes its inputs.
    #[getter]
    fn cell_names(&self) -> Vec<String> {
        let cells = 0..self.cells() as u32;
        cells.map(|cell| self.0.cells().name(CellId(cell), self.0.classes())).collect()
    }

    fn __len__(&self) -> usize {
        self.0.rows().rows()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((PyType::new::<Self>(py).getattr("from_bytes")?, (self.to_bytes(py)?,)))
    }
}
