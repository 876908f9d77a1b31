//! Tables from arrays.

use std::borrow::Cow;
use std::sync::Arc;

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::error::refused;
use crate::rows::{Matrix, Numbers};

/// A checked table.
#[pyclass(frozen, module = "pointsman._native")]
pub(crate) struct Table(pub(crate) Arc<pointsman::Table>);

#[pymethods]
impl Table {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    #[pyo3(signature = (classes, probs, *, votes = None, truth = None, weights = None, features = None, oracles = None))]
    fn new(
        py: Python<'_>,
        classes: Vec<String>,
        probs: Matrix<'_>,
        votes: Option<PyReadonlyArray2<'_, u32>>,
        truth: Option<Matrix<'_>>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        features: Option<(Vec<String>, Matrix<'_>)>,
        oracles: Option<Vec<(String, Matrix<'_>)>>,
    ) -> PyResult<Self> {
        let probs = probs.numbers()?;
        let votes: Option<Cow<'_, [u32]>> = votes
            .as_ref()
            .map(|votes| votes.as_slice().map_or_else(|_| votes.as_array().iter().copied().collect(), Cow::Borrowed));
        let truth = truth.map(|truth| truth.to_doubles()).transpose()?;
        let weights = weights.map(|weights| weights.as_array().to_vec());
        let features = features.map(|(names, values)| PyResult::Ok((names, values.to_doubles()?))).transpose()?;
        let oracles =
            oracles.unwrap_or_default().into_iter().map(|(name, probs)| PyResult::Ok((name, probs.to_doubles()?)));
        let oracles = oracles.collect::<PyResult<Vec<_>>>()?;
        let build = || {
            let mut table = match probs {
                Numbers::Single(probs) => pointsman::Table::from_rows(classes, probs)?,
                Numbers::Double(probs) => pointsman::Table::from_rows(classes, probs)?,
            };
            if let Some(votes) = votes {
                table = table.with_vote_rows(&votes)?;
            }
            if let Some(truth) = truth {
                table = table.with_truth(truth)?;
            }
            if let Some(weights) = weights {
                table = table.with_weights(weights)?;
            }
            if let Some((names, values)) = features {
                table = table.with_features(names, values)?;
            }
            oracles.into_iter().try_fold(table, |table, (name, probs)| table.with_oracle(name, probs))
        };
        Ok(Self(Arc::new(py.detach(build).map_err(refused)?)))
    }

    fn __len__(&self) -> usize {
        self.0.rows()
    }
}
