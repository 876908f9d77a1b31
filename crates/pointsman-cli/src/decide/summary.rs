//! A summary of decisions, as scripts read it.

use pointsman::Policy;
use pointsman::policy::{CapUse, CappedSummary, Caps, Promise, Surcharge, TallySummary};
use pointsman::task::{Named, TaskSummary};
use serde::Serialize;

use super::keep::OutputColumns;
use super::tally::corrected_cost;
use crate::json::known;
use crate::output::Output;
use crate::render;

/// The JSON of `decide --json`.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    rows: u64,
    /// Where the decisions are; null if they were not written.
    output: Option<String>,
    task: TaskSummary,
    unit: &'static str,
    shares: Named<f64>,
    /// Expected cost per query of the router and of each action taken always; null if labels give only bounds or there are no rows.
    expected_cost: Option<Named<f64>>,
    /// The standard error of the router's.
    standard_error: Option<f64>,
    /// The interval that the labels identify it to.
    #[serde(skip_serializing_if = "Option::is_none")]
    identified: Option<[f64; 2]>,
    /// The expected cost of a policy file for traffic like the calibration rows, corrected on rows left out, since its `expected_cost` is
    /// not; null if it has none at these prices or within caps. Left out for routers, whose `expected_cost` is corrected.
    #[serde(skip_serializing_if = "Option::is_none")]
    promise: Option<Option<Promise>>,
    support: Named<u64>,
    reasons: Named<u64>,
    /// The price that a limit on routing is equivalent to.
    #[serde(skip_serializing_if = "Option::is_none")]
    surcharge: Option<Surcharge>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    caps: Vec<Cap>,
    /// The effect of caps on queries that did not get their best action.
    #[serde(skip_serializing_if = "Option::is_none")]
    capped: Option<Capped>,
    /// Columns of the table that go by another name in the output.
    renamed_columns: Named<String>,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Cap {
    route: String,
    most: u64,
    wanted: u64,
    granted: u64,
    /// The most that one more query would save, at the task's own prices.
    price: f64,
}

#[derive(Debug, Serialize)]
struct Capped {
    moved: u64,
    to: Named<u64>,
    /// By how much that raises the expected cost per query, over all queries.
    cost: f64,
    /// The standard error of that; null without calibration rows.
    standard_error: Option<f64>,
    /// The interval that the labels identify it to.
    #[serde(skip_serializing_if = "Option::is_none")]
    identified: Option<[f64; 2]>,
}

impl Summary {
    pub(super) fn new(
        tally: &TallySummary,
        policy: &Policy,
        output: &Output,
        caps: Option<(&Caps, &[CapUse])>,
        columns: &OutputColumns,
    ) -> Self {
        let cap = |((route, used), price): ((&str, &CapUse), f64)| {
            let CapUse { most, wanted, granted, .. } = *used;
            Cap { route: route.to_owned(), most, wanted, granted, price }
        };
        let capped = |CappedSummary { moved, to, cost, standard_error, identified, .. }| Capped {
            moved,
            to,
            cost,
            standard_error: standard_error.and_then(known),
            identified,
        };
        Self {
            rows: tally.rows,
            output: match output {
                Output::Table(path, _) => Some(path.display().to_string()),
                Output::Preview | Output::None => None,
            },
            task: policy.task_summary(),
            unit: policy.task().loss().unit(),
            shares: tally.shares.clone(),
            expected_cost: tally.expected_cost.clone(),
            standard_error: tally.standard_error.and_then(known),
            identified: tally.identified,
            promise: policy.router().is_none().then(|| corrected_cost(policy, tally)),
            support: tally.support.clone(),
            reasons: tally.reasons.clone(),
            surcharge: policy.surcharge(),
            caps: caps
                .map(|(caps, uses)| {
                    let names = caps.names(policy.task());
                    names.into_iter().zip(uses).zip(caps.savings(policy, uses)).map(cap).collect()
                })
                .unwrap_or_default(),
            capped: tally.capped.clone().map(capped),
            renamed_columns: columns.renamed().cloned().collect(),
            warnings: render::warnings(),
        }
    }
}
