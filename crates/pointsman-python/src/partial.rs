//! Calibration in parts.

use std::sync::Arc;

use pointsman::Cap;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

use crate::error::{Refusal, refused};
use crate::router::Router;
use crate::table::Table;

/// The rows of one shard in the cells of a given router.
#[pyclass(module = "pointsman._native")]
pub(crate) struct Partial(pointsman::Partial);

/// What tells rows apart.
#[derive(FromPyObject)]
enum Ids {
    Numbers(Vec<u64>),
    Texts(Vec<String>),
}

#[pymethods]
impl Partial {
    #[new]
    #[pyo3(signature = (router, *, cap = None, seed = 0))]
    fn new(router: &Bound<'_, Router>, cap: Option<usize>, seed: u64) -> PyResult<Self> {
        let part = pointsman::Partial::like(&router.get().0).map_err(refused)?;
        let capped = |rows| part.clone().capped(Cap { rows, seed });
        Ok(Self(cap.map_or(Ok(part.clone()), capped).map_err(refused)?))
    }

    #[pyo3(signature = (table, ids = None))]
    fn add(&mut self, py: Python<'_>, table: &Bound<'_, Table>, ids: Option<Ids>) -> PyResult<()> {
        let table = Arc::clone(&table.get().0);
        let ids = ids.map(|ids| match ids {
            Ids::Numbers(numbers) => numbers,
            Ids::Texts(texts) => texts.iter().map(|text| pointsman::Partial::id_of(text)).collect(),
        });
        let added = py.detach(|| match ids {
            Some(ids) => self.0.add_with_ids(&table, &ids),
            None => self.0.add(&table),
        });
        added.map_err(refused)
    }

    fn merge(&mut self, py: Python<'_>, other: PyRef<'_, Self>) -> PyResult<()> {
        let other = &other.0;
        py.detach(|| self.0.merge(other)).map_err(refused)
    }

    fn finish(&self, py: Python<'_>) -> PyResult<Router> {
        Ok(Router(Arc::new(py.detach(|| self.0.finish()).map_err(refused)?)))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        let part = py.detach(|| pointsman_table::parse_partial(data));
        Ok(Self(part.map_err(|reason| refused(Refusal::new(reason)))?))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| pointsman_table::partial_bytes(&self.0));
        Ok(PyBytes::new(py, &bytes.map_err(|reason| refused(Refusal::new(reason)))?))
    }

    #[getter]
    fn classes(&self) -> Vec<String> {
        self.0.kept().classes().to_vec()
    }

    /// The features of the rows kept; before there are any, those the cells need.
    #[getter]
    fn features(&self) -> Vec<String> {
        let found = self.0.kept().feature_names();
        (if found.is_empty() { self.0.cells().features() } else { found }).to_vec()
    }

    fn __len__(&self) -> usize {
        self.0.kept().rows()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((PyType::new::<Self>(py).getattr("from_bytes")?, (self.to_bytes(py)?,)))
    }
}
