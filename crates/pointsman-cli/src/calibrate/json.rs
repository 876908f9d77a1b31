//! A calibrated router, as scripts read it.

use pointsman::calibrate::{Candidate, Choice};
use pointsman::{Router, Table};
use serde::Serialize;

use crate::stats::RouterStats;

#[derive(Debug, Serialize)]
pub(crate) struct RouterSummary<'a> {
    classes: &'a [String],
    rows: usize,
    partition: String,
    recalibrated: bool,
    labels: LabelCounts,
    cells: usize,
    sparse: usize,
    empty: usize,
    features: Features,
    #[serde(skip_serializing_if = "Option::is_none")]
    choice: Option<ChoiceSummary>,
}

impl<'a> RouterSummary<'a> {
    /// `table` is the one that the router was calibrated on.
    pub(crate) fn new(table: &Table, router: &'a Router, stats: &RouterStats, choice: Option<&Choice>) -> Self {
        Self {
            classes: router.classes(),
            rows: router.rows().rows(),
            partition: router.partition().to_string(),
            recalibrated: router.is_recalibrated(),
            labels: stats.labels.into(),
            cells: stats.cells,
            sparse: stats.sparse,
            empty: stats.empty,
            features: Features::new(table, router),
            choice: choice.map(ChoiceSummary::from),
        }
    }
}

/// Labels per row.
#[derive(Debug, Serialize)]
pub(crate) struct LabelCounts {
    min: u64,
    median: u64,
    max: u64,
}

impl From<[u64; 3]> for LabelCounts {
    fn from([min, median, max]: [u64; 3]) -> Self {
        Self { min, median, max }
    }
}

/// The table's features that decisions depend on, and the others.
#[derive(Debug, Serialize)]
pub(super) struct Features {
    pub(super) used: Vec<String>,
    pub(super) ignored: Vec<String>,
}

impl Features {
    pub(super) fn new(table: &Table, router: &Router) -> Self {
        let used = router.features_used();
        let ignored = table.feature_names().iter().filter(|name| !used.contains(name)).cloned().collect();
        Self { used, ignored }
    }
}

/// The choice of `auto`; the chosen partition comes first.
#[derive(Debug, Serialize)]
struct ChoiceSummary {
    reason: String,
    rows: usize,
    tasks: usize,
    candidates: Vec<CandidateSummary>,
}

/// Costs are shares of the cost of always predicting; unknown if there was nothing to compare by.
#[derive(Debug, Serialize)]
struct CandidateSummary {
    partition: String,
    cost: Option<f64>,
    excess: f64,
    standard_error: f64,
}

impl From<&Choice> for ChoiceSummary {
    fn from(choice: &Choice) -> Self {
        let candidate = |it: &Candidate| CandidateSummary {
            partition: it.partition.to_string(),
            cost: it.cost.is_finite().then_some(it.cost),
            excess: it.excess,
            standard_error: it.standard_error,
        };
        let candidates = choice.candidates.iter().map(candidate).collect();
        Self { reason: choice.reason().to_owned(), rows: choice.rows, tasks: choice.tasks, candidates }
    }
}
