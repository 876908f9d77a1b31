//! Whether there are enough labels, rows and cells.

use super::Estimate;
use crate::error::Result;
use crate::numeric::weighted::weighted_mean;
use crate::partition::CellId;
use crate::router::{Router, Support};
use crate::table::Table;
use crate::table::votes::Votes;
use crate::task::{Estimator, Task};

/// How many of the most frequent numbers of labels are listed.
const MAX_LISTED: usize = 5;

/// Whether there are enough labels, rows and cells.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Enough {
    /// The minimum, median and maximum number of labels per row.
    pub labels: [u64; 3],
    /// The most frequent numbers of labels, each with its number of rows.
    pub common_labels: Vec<(u64, usize)>,
    /// The share of the rows with two labels or more.
    pub paired: f64,
    /// The amount by which the paper's plug-in estimator understates the irreducible loss; unknown with one label per item.
    pub plugin_shortfall: Option<f64>,
    /// The number of cells.
    pub cells: usize,
    /// The number of sparse cells.
    pub sparse_cells: usize,
    /// The number of empty cells.
    pub empty_cells: usize,
    /// Share of the rows in sparse cells.
    pub rows_in_sparse_cells: f64,
    /// The share of rows on which routers of two halves take the same action; unknown with only one action or one label per item.
    pub stability: Option<f64>,
    /// The partitions compared; the one asked for comes first.
    pub partitions: Vec<Compared>,
    /// Features that were not compared, and why.
    pub features_left_out: Vec<LeftOut>,
}

/// A feature whose bins were not compared.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LeftOut {
    /// Its name, without `x_`.
    pub feature: String,
    /// Why: `constant`, `gaps` (bins need a value in every row; trees do not) or `many` (only the first few features are compared).
    pub reason: &'static str,
}

impl LeftOut {
    /// The features of a table that are not compared, if at most `most` are.
    pub(super) fn from_table(rows: &Table, most: usize) -> Vec<Self> {
        let mut tried = 0;
        let mut left_out = Vec::new();
        for (column, name) in rows.feature_names().iter().enumerate() {
            let values = || (0..rows.rows()).map(|row| rows.features(row)[column]);
            let first = values().find(|value| !value.is_nan());
            let reason = if values().all(|value| value.is_nan() || Some(value) == first) {
                "constant"
            } else if values().any(f64::is_nan) {
                "gaps"
            } else if tried == most {
                "many"
            } else {
                tried += 1;
                continue;
            };
            left_out.push(Self { feature: name.clone(), reason });
        }
        left_out
    }
}

/// The results of one partition.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Compared {
    /// The partition.
    pub partition: String,
    /// Normalised gain of ranking by its reducible loss, on the scale of [`Worth::gain`](super::Worth::gain).
    pub gain: Option<f64>,
    /// Cost per query at the task's prices; unknown if the task has only one action.
    pub cost: Option<f64>,
    /// The share it routes under the task's budget or target loss; unknown without one, or if it does not keep it.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub routed: Option<f64>,
    /// The saving over the best simpler rule, in the unit of `better_by`; unknown if it does not keep the task's limit.
    pub saves: Option<Estimate>,
    /// The saving over the partition asked for: queries routed under a target loss, cost if there are prices, otherwise gain.
    pub better_by: Option<Estimate>,
}

impl Enough {
    /// The best of the partitions that beat the one asked for by three standard errors, if any: several are compared, so two are not enough.
    #[must_use]
    pub fn better_partition(&self) -> Option<&str> {
        let sure = |other: &&Compared| other.better_by.is_some_and(|by| by.low > by.estimate.max(0.0) / 3.0);
        let by = |other: &Compared| other.better_by.map_or(0.0, |by| by.estimate);
        let best = self.partitions.iter().filter(sure).max_by(|a, b| by(a).total_cmp(&by(b)));
        best.map(|other| other.partition.as_str())
    }

    /// What follows from the rows and cells alone, without cross-fitting.
    pub(super) fn new(rows: &Table, router: &Router, task: &Task) -> Result<Self> {
        let mut labels: Vec<u64> = (0..rows.rows()).map(|row| rows.votes(row).map_or(0, Votes::k)).collect();
        labels.sort_unstable();
        let mut common: Vec<(u64, usize)> = labels.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
        common.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        common.truncate(MAX_LISTED);
        let paired = labels.iter().filter(|&&k| k >= 2).count() as f64 / labels.len() as f64;
        let cells = 0..router.cells().count() as u32;
        let support = |cell: u32| router.mixture(CellId(cell)).support();
        let with = |wanted: Support| cells.clone().filter(move |&cell| support(cell) == wanted);
        let sparse_rows: usize = with(Support::Sparse).map(|cell| router.mixture(CellId(cell)).len()).sum();
        Ok(Self {
            labels: [labels[0], labels[labels.len() / 2], labels[labels.len() - 1]],
            common_labels: common,
            paired,
            plugin_shortfall: plugin_shortfall(router, task)?,
            cells: router.cells().count(),
            sparse_cells: with(Support::Sparse).count(),
            empty_cells: with(Support::Empty).count(),
            rows_in_sparse_cells: sparse_rows as f64 / rows.rows() as f64,
            stability: None,
            partitions: Vec::new(),
            features_left_out: Vec::new(),
        })
    }
}

/// The mean over the cells of the irreducible loss by `shrink` minus that by the plug-in estimator.
fn plugin_shortfall(router: &Router, task: &Task) -> Result<Option<f64>> {
    let [shrink, plugin] = [Estimator::Shrink, Estimator::Plugin].map(|e| router.policy(&task.clone().estimator(e)));
    let (shrink, plugin) = (shrink?, plugin?);
    let shortfall = |cell: CellId| {
        // Cells in which every item has one label are left out.
        let shrunk = shrink.cell(cell).filter(|shrunk| shrunk.estimate().paired_rows > 0)?;
        Some((shrunk.estimate().weight, shrunk.irreducible()? - plugin.cell(cell)?.irreducible()?))
    };
    let mean = weighted_mean((0..router.cells().count() as u32).map(CellId).filter_map(shortfall));
    Ok(mean.is_finite().then_some(mean))
}
