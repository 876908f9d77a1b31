//! An explanation, as scripts read it.

use pointsman::certify::Interval;
use pointsman::task::Named;
use serde::Serialize;

/// Why a query or a cell is decided as it is.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Explanation {
    #[serde(flatten)]
    pub(super) query: Option<Query>,
    /// The classes, in the order of `prediction`, `centroid` and `votes`.
    pub(super) classes: Vec<String>,
    pub(super) cell: u32,
    pub(super) name: String,
    /// Calibration rows of the cell.
    pub(super) rows: usize,
    pub(super) support: &'static str,
    /// The rows that the costs are estimated from: those of the `cell` or, if it is empty, of the same `confidence`, else `all`.
    pub(super) level: &'static str,
    pub(super) centroid: Option<Vec<f64>>,
    pub(super) irreducible: Option<f64>,
    pub(super) reducible: Option<f64>,
    pub(super) total: f64,
    pub(super) unit: &'static str,
    pub(super) action: String,
    pub(super) actions: Vec<Priced>,
    /// The share of each action among the calibration rows of a forest's cell, whose queries are decided one by one; not for a query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) shares: Option<Named<f64>>,
    /// Why the action is taken, in one word.
    pub(super) reason: &'static str,
    pub(super) runner_up: Option<String>,
    pub(super) margin: Option<f64>,
    /// The share of such queries that is routed, if a limit on routing decides at random.
    #[serde(rename = "lots", skip_serializing_if = "Option::is_none")]
    pub(super) random_share: Option<f64>,
    /// The smallest budget that is sure to route the query; only under a budget, and if routing pays without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) least_budget: Option<f64>,
    pub(super) flips: Vec<PriceChange>,
    pub(super) confidence: Option<f64>,
    pub(super) certain: Option<bool>,
    /// The most that the action may cost above the best; unknown if the costs are not the cell's own.
    pub(super) regret: Option<f64>,
    pub(super) rival: Option<String>,
    /// The number of trees whose leaves the costs are averaged over, if they are the query's own and not the cell's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trees: Option<usize>,
    /// Some of the rows behind the costs: for a query those of the nearest confidence or, if its costs are its own, those of the
    /// largest weight; for a cell a few from the least to the most confident.
    pub(super) examples: Vec<Example>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Query {
    /// Whether it was named by its `id` or its `row`.
    pub(super) asked_by: &'static str,
    pub(super) row: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    pub(super) prediction: Vec<f64>,
    /// The class that predicting answers, and the act it takes under losses with acts of their own.
    pub(super) label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) act: Option<String>,
    /// The features that the decision depends on; missing ones are null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) features: Option<Named<Option<f64>>>,
}

/// An action and its cost.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Priced {
    pub(super) action: String,
    pub(super) cost: Option<f64>,
    /// The bounds of the cost, if one label per item does not identify it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bounds: Option<[f64; 2]>,
    pub(super) interval: Option<Interval>,
}

/// A price at which the action changes.
#[derive(Debug, Clone, Serialize)]
pub(super) struct PriceChange {
    pub(super) price_of: String,
    pub(super) now: f64,
    pub(super) at: f64,
    pub(super) to: String,
}

/// A calibration row.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Example {
    /// The row's share of the weight of all rows, if the costs are a query's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) weight: Option<f64>,
    pub(super) prediction: Vec<f64>,
    pub(super) votes: Vec<u32>,
}
