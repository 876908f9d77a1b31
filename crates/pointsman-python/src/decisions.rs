//! Decisions as arrays and as an Arrow table.

use std::sync::Arc;

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pointsman::Decision;
use pointsman::policy::StoredDecisions;
use pointsman_table::{DecisionExtras, decision_columns, decision_values, record_batch};
use pyo3::prelude::*;
use pyo3_arrow::PyTable;

use crate::error::{Refusal, refused};
use crate::policy::Judgement;

/// The number of rows decided between two checks for Ctrl-C.
pub(crate) const CHUNK: usize = 1 << 17;

/// The decisions of some rows, and the answer of predicting for each: its class and its act.
pub(crate) struct Chunk {
    pub(crate) decisions: pointsman::Decisions,
    pub(crate) answers: Vec<[u32; 2]>,
}

type Array<T> = Py<PyArray1<T>>;

/// The arrays of a chunk in the order of [`StoredDecisions`], then its answers. Pairs are flattened.
pub(crate) type ChunkState = (Array<u32>, Array<f64>, Array<f64>, Array<f64>, Array<u8>, Array<u32>);

/// The state of all decisions: chunks, ids, whether there are answers, and whether there were caps.
pub(crate) type State = (Vec<ChunkState>, Option<Vec<String>>, bool, bool);

impl Chunk {
    fn state(&self, py: Python<'_>) -> ChunkState {
        let StoredDecisions { codes, totals, irreducible, oracles, moved, .. } = self.decisions.store();
        let pairs = |pairs: Vec<[f64; 2]>| PyArray1::from_vec(py, pairs.into_flattened()).unbind();
        (
            PyArray1::from_vec(py, codes).unbind(),
            PyArray1::from_vec(py, totals).unbind(),
            pairs(irreducible),
            pairs(oracles),
            PyArray1::from_vec(py, moved).unbind(),
            PyArray1::from_vec(py, self.answers.clone().into_flattened()).unbind(),
        )
    }

    /// Restores a chunk from its state. A state that does not fit the policy is refused.
    pub(crate) fn restore(
        py: Python<'_>,
        policy: &pointsman::Policy,
        (codes, totals, irreducible, oracles, moved, answers): ChunkState,
        labels: bool,
    ) -> PyResult<Self> {
        let pairs = |array: Array<f64>| -> PyResult<Vec<[f64; 2]>> {
            Ok(array.bind(py).readonly().to_vec()?.as_chunks::<2>().0.to_vec())
        };
        let mut stored = StoredDecisions::default();
        stored.codes = codes.bind(py).readonly().to_vec()?;
        stored.totals = totals.bind(py).readonly().to_vec()?;
        stored.irreducible = pairs(irreducible)?;
        stored.oracles = pairs(oracles)?;
        stored.moved = moved.bind(py).readonly().to_vec()?;
        let decisions = policy.restore(stored).map_err(refused)?;
        let answers: Vec<[u32; 2]> = answers.bind(py).readonly().to_vec()?.as_chunks::<2>().0.to_vec();
        let classes = policy.classes().len() as u32;
        let is_class = |[class, _]: &[u32; 2]| *class < classes;
        if answers.len() != if labels { decisions.len() } else { 0 } || !answers.iter().all(is_class) {
            return Err(refused(Refusal::new("the answers do not fit the decisions")));
        }
        Ok(Self { decisions, answers })
    }
}

/// The decisions of many queries. They take four bytes per row; other values are computed on request.
#[pyclass(frozen, module = "pointsman._native")]
pub(crate) struct Decisions {
    pub(crate) policy: Arc<pointsman::Policy>,
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) rows: usize,
    pub(crate) ids: Option<Vec<String>>,
    pub(crate) labels: bool,
    pub(crate) capped: bool,
}

impl Decisions {
    /// Computes a value for each row.
    fn each<T: Copy + Send>(&self, py: Python<'_>, value: impl Fn(Decision<'_>) -> T + Sync) -> Vec<T> {
        py.detach(|| {
            let mut out = Vec::with_capacity(self.rows);
            for Chunk { decisions, .. } in &self.chunks {
                out.extend(self.policy.values(decisions, &value));
            }
            out
        })
    }

    /// The class (0) or the act (1) of predicting for each row.
    fn answer(&self, which: usize) -> PyResult<Vec<u32>> {
        if !self.labels {
            return Err(refused(Refusal::new("decided without labels: leave labels=False out")));
        }
        Ok(self.chunks.iter().flat_map(|chunk| &chunk.answers).map(|answer| answer[which]).collect())
    }
}

#[pymethods]
impl Decisions {
    fn __len__(&self) -> usize {
        self.rows
    }

    /// The state without the policy, for [`Policy::restore`](crate::policy::Policy).
    fn state(&self, py: Python<'_>) -> State {
        (self.chunks.iter().map(|chunk| chunk.state(py)).collect(), self.ids.clone(), self.labels, self.capped)
    }

    #[getter]
    fn ids(&self) -> Option<Vec<String>> {
        self.ids.clone()
    }

    /// The index of each row's action among the policy's; -1 if labels do not determine it.
    fn actions<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i16>> {
        PyArray1::from_vec(py, self.each(py, |d| d.code().map_or(-1, |code| code as i16)))
    }

    /// The index of the action that a cap did not allow, -1 if the row was not capped; `None` if there are no caps.
    fn wanted<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<i16>>> {
        let names = self.policy.task().action_names();
        let code = |d: Decision<'_>| {
            let wanted = d.wanted().map(|action| action.to_string());
            wanted.and_then(|wanted| names.iter().position(|name| *name == wanted)).map_or(-1, |code| code as i16)
        };
        self.capped.then(|| PyArray1::from_vec(py, self.each(py, code)))
    }

    fn cells<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_vec(py, self.each(py, |d| d.cell().0))
    }

    /// The support of each row's cell: 0 enough, 1 sparse, 2 empty.
    fn support<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u8>> {
        PyArray1::from_vec(py, self.each(py, |d| d.support() as u8))
    }

    /// The index of each row's reason in [`pointsman::policy::Reason::ALL`].
    fn reasons<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u8>> {
        PyArray1::from_vec(py, self.each(py, |d| d.reason() as u8))
    }

    /// The index of each row's next-best action; -1 if there is none.
    fn next_best<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i16>> {
        PyArray1::from_vec(py, self.each(py, |d| d.next_best_code().map_or(-1, |code| code as i16)))
    }

    fn irreducible<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.each(py, |d| d.irreducible().unwrap_or(f64::NAN)))
    }

    fn reducible<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.each(py, |d| d.reducible().unwrap_or(f64::NAN)))
    }

    fn total<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.each(py, |d| d.total()))
    }

    fn margin<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.each(py, |d| d.margin()))
    }

    /// The costs, one row per query and one column per action.
    fn costs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let actions = self.policy.task().action_names().len();
        let values = py.detach(|| {
            let mut out = Vec::with_capacity(self.rows * actions);
            for Chunk { decisions, .. } in &self.chunks {
                (0..decisions.len()).for_each(|row| out.extend(self.policy.row(decisions, row).known_costs()));
            }
            out
        });
        let array = numpy::ndarray::Array2::from_shape_vec((self.rows, actions), values)
            .map_err(|error| refused(Refusal::new(error.to_string())))?;
        Ok(PyArray2::from_owned_array(py, array))
    }

    /// The class of predicting for each row.
    fn labels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        Ok(PyArray1::from_vec(py, self.answer(0)?))
    }

    /// The act of predicting for each row, if the loss has acts.
    fn acts<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray1<u32>>>> {
        match self.policy.task().loss().acts() {
            Some(_) => Ok(Some(PyArray1::from_vec(py, self.answer(1)?))),
            None => Ok(None),
        }
    }

    fn certain<'py>(&self, py: Python<'py>, judgement: &Bound<'py, Judgement>) -> Bound<'py, PyArray1<bool>> {
        let judgement = judgement.get();
        PyArray1::from_vec(py, self.each(py, |d| judgement.0.is_certain(&d)))
    }

    /// The table that the command `decide` writes.
    #[pyo3(signature = (judgement = None))]
    fn table(&self, py: Python<'_>, judgement: Option<&Bound<'_, Judgement>>) -> PyResult<PyTable> {
        if !self.labels {
            return Err(refused(Refusal::new("decided without labels: leave labels=False out")));
        }
        let judgement = judgement.map(|judgement| &*judgement.get().0);
        let extras = DecisionExtras::new(judgement, self.capped);
        let names = decision_columns(&self.policy, self.ids.is_some(), extras);
        let batches = py.detach(|| {
            let mut batches = Vec::with_capacity(self.chunks.len());
            for (part, Chunk { decisions, answers }) in self.chunks.iter().enumerate() {
                let ids = self.ids.as_ref().map(|ids| ids[part * CHUNK..][..decisions.len()].to_vec());
                batches.push(record_batch(&names, &decision_values(&self.policy, decisions, answers, extras, ids))?);
            }
            let empty =
                || decision_values(&self.policy, &pointsman::Decisions::default(), &[], extras, self.ids.clone());
            if batches.is_empty() {
                batches.push(record_batch(&names, &empty())?);
            }
            pointsman_table::Result::Ok(batches)
        });
        let batches = batches.map_err(refused)?;
        let schema = batches[0].schema();
        PyTable::try_new(batches, schema)
    }
}
