//! Whether labels, rows and cells are enough.

use super::Estimate;
use crate::error::Result;
use crate::partition::CellId;
use crate::router::{Router, Support};
use crate::table::Table;
use crate::table::votes::Votes;
use crate::task::Estimator;
use crate::task::Task;

/// The commonest numbers of labels that are listed.
const LISTED: usize = 5;

/// Whether labels, rows and cells are enough.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Enough {
    /// Fewest, median and most labels per row.
    pub labels: [u64; 3],
    /// The commonest numbers of labels, with the rows that have them.
    pub common_labels: Vec<(u64, usize)>,
    /// Share of the rows with two labels or more.
    pub paired: f64,
    /// By how much the paper's plug-in understates the irreducible loss here; unknown with one label per item.
    pub plugin_shortfall: Option<f64>,
    /// Cells.
    pub cells: usize,
    /// Sparse ones.
    pub sparse_cells: usize,
    /// Empty ones.
    pub empty_cells: usize,
    /// Share of the rows in sparse cells.
    pub rows_in_sparse_cells: f64,
    /// How often routers of two halves take the same action; unknown without a choice or with one label per item.
    pub stability: Option<f64>,
    /// Partitions beside the one asked for, which comes first.
    pub partitions: Vec<Compared>,
    /// Features whose bins were not among them, and why.
    pub features_left_out: Vec<LeftOut>,
}

/// A feature whose bins were not tried.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LeftOut {
    /// Its name, without `x_`.
    pub feature: String,
    /// Why: `constant`, `gaps` (bins need a value in every row; trees do not) or `many` (only the first few others are tried).
    pub reason: &'static str,
}

impl LeftOut {
    /// The features of a table that are not tried, if so many at most are.
    pub(super) fn of(rows: &Table, most: usize) -> Vec<Self> {
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

/// How a partition does.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Compared {
    /// The partition.
    pub partition: String,
    /// Normalised gain of ranking by its reducible loss.
    pub gain: Option<f64>,
    /// Cost per query at the task's prices; unknown if there is no choice.
    pub cost: Option<f64>,
    /// The share it routes to keep to the task's budget or target loss; unknown without one, or if it does not.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub routed: Option<f64>,
    /// What it saves over the best simpler rule, in the same unit as the next; unknown if it does not keep to the task's limit.
    pub saves: Option<Estimate>,
    /// What it saves over the one asked for: queries routed if there is a target loss, money if there are prices, otherwise gain.
    pub better_by: Option<Estimate>,
}

impl Enough {
    /// The partition that surely does better than the one asked for, if there is one: by three standard errors, since several are
    /// compared.
    #[must_use]
    pub fn better_partition(&self) -> Option<&str> {
        let sure = |other: &&Compared| other.better_by.is_some_and(|by| by.low > by.estimate.max(0.0) / 3.0);
        let by = |other: &Compared| other.better_by.map_or(0.0, |by| by.estimate);
        let best = self.partitions.iter().filter(sure).max_by(|a, b| by(a).total_cmp(&by(b)));
        best.map(|other| other.partition.as_str())
    }

    /// What can be said without judging any router.
    pub(super) fn of(rows: &Table, router: &Router, task: &Task) -> Result<Self> {
        let mut labels: Vec<u64> = (0..rows.rows()).map(|row| rows.votes(row).map_or(0, Votes::k)).collect();
        labels.sort_unstable();
        let mut common: Vec<(u64, usize)> = labels.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
        common.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        common.truncate(LISTED);
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

/// Mean over the cells of what `shrink` finds irreducible and the plug-in does not.
fn plugin_shortfall(router: &Router, task: &Task) -> Result<Option<f64>> {
    let [shrink, plugin] = [Estimator::Shrink, Estimator::Plugin].map(|e| router.policy(&task.clone().estimator(e)));
    let (shrink, plugin) = (shrink?, plugin?);
    let (mut sum, mut all) = (0.0, 0.0);
    for cell in (0..router.cells().count() as u32).map(CellId) {
        let estimates = shrink.cell(cell).zip(plugin.cell(cell));
        // One label of an item has no other to differ from, even where the cell's split is known.
        let paired = |cell: &crate::policy::Decision<'_>| cell.estimate().paired_rows > 0;
        if let Some((a, b)) =
            estimates.filter(|(a, _)| paired(a)).and_then(|(a, b)| Some((a.irreducible()?, b.irreducible()?)))
        {
            let weight = shrink.cell(cell).map_or(0.0, |decision| decision.estimate().weight);
            sum += weight * (a - b);
            all += weight;
        }
    }
    Ok((all > 0.0).then(|| sum / all))
}
