//! Parts of a calibration.

use std::sync::Arc;

use numpy::{PyArray1, PyReadonlyArray1};
use pointsman::Partition;
use pointsman::router::Cap;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

use crate::error::refused;
use crate::router::Router;
use crate::table::Table;
use crate::work;

/// The rows of one shard in the cells of a given router.
#[pyclass(module = "pointsman._native")]
pub(crate) struct Partial(pointsman::router::Partial);

#[pymethods]
impl Partial {
    #[new]
    #[pyo3(signature = (like, *, cap = None, seed = 0))]
    fn new(like: &Bound<'_, Router>, cap: Option<usize>, seed: u64) -> PyResult<Self> {
        let part = pointsman::router::Partial::like(&like.get().0).map_err(refused)?;
        Ok(Self(match cap {
            Some(rows) => part.capped(Cap { rows, seed }).map_err(refused)?,
            None => part,
        }))
    }

    /// Adds the rows of a table; a cap needs ids.
    #[pyo3(signature = (table, ids = None))]
    fn add(
        &mut self,
        py: Python<'_>,
        table: &Bound<'_, Table>,
        ids: Option<PyReadonlyArray1<'_, u64>>,
    ) -> PyResult<()> {
        let (part, table) = (&mut self.0, Arc::clone(&table.get().0));
        let ids = ids.map(|ids| ids.as_array().to_vec());
        let added = py.detach(|| match ids {
            Some(ids) => part.add_with_ids(&table, &ids),
            None => part.add(&table),
        });
        added.map_err(refused)
    }

    /// Adds the rows of another part.
    fn merge(&mut self, py: Python<'_>, other: PyRef<'_, Self>) -> PyResult<()> {
        let (part, other) = (&mut self.0, &other.0);
        py.detach(|| part.merge(other)).map_err(refused)
    }

    /// The router of all rows added.
    fn finish(&self, py: Python<'_>) -> PyResult<Router> {
        Ok(py.detach(|| self.0.finish()).map_err(refused)?.into())
    }

    /// A router of the rows kept, with a partition fitted to them.
    #[pyo3(signature = (partition, *, seed = 0, progress = None))]
    fn calibrate(
        &self,
        py: Python<'_>,
        partition: &str,
        seed: u64,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Router> {
        let partition: Partition = partition.parse().map_err(refused::<pointsman::Error>)?;
        let table = py.detach(|| self.0.table()).map_err(refused)?;
        let calibrate = move |steps: &work::Steps| {
            let step = || steps.step();
            pointsman::Router::builder().partition(partition).seed(seed).progress(&step).fit(&table)
        };
        let router = work::run(py, progress, calibrate)?.map_err(refused)?;
        Ok(router.into())
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| pointsman_table::partial_bytes(&self.0));
        Ok(PyBytes::new(py, &bytes.map_err(refused)?))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        let part = py.detach(|| pointsman_table::parse_partial(data));
        Ok(Self(part.map_err(refused)?))
    }

    #[getter]
    fn classes(&self) -> Vec<String> {
        self.0.kept().classes().to_vec()
    }

    /// The features of the rows, which may be more than the cells need.
    #[getter]
    fn features(&self) -> Vec<String> {
        self.0.kept().feature_names().to_vec()
    }

    #[getter]
    fn cap(&self) -> Option<(usize, u64)> {
        self.0.cap().map(|cap| (cap.rows, cap.seed))
    }

    fn __len__(&self) -> usize {
        self.0.kept().rows()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((PyType::new::<Self>(py).getattr("from_bytes")?, (self.to_bytes(py)?,)))
    }
}

/// The numbers that stand for text ids.
#[pyfunction]
pub(crate) fn number_ids(py: Python<'_>, ids: Vec<String>) -> Bound<'_, PyArray1<u64>> {
    PyArray1::from_vec(py, ids.iter().map(|id| pointsman::router::Partial::id_of(id)).collect())
}
