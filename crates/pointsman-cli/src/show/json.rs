//! A router and its policy, as scripts read them.

use pointsman::policy::Surcharge;
use pointsman::task::{Named, TaskSummary};
use pointsman::{Action, CellId, Decision, Policy, Router};
use serde::Serialize;

use super::panels::{self, PanelAlone};
use crate::calibrate::json::LabelCounts;
use crate::certified::{CellBounds, Certified, PolicyBounds};
use crate::json::known;
use crate::stats::{RouterStats, is_forest};

/// A router and, with a task, its policy.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    classes: Vec<String>,
    rows: usize,
    partition: String,
    recalibrated: bool,
    labels: LabelCounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TaskSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    /// The price that a limit on routing is equivalent to.
    #[serde(skip_serializing_if = "Option::is_none")]
    surcharge: Option<Surcharge>,
    /// Each action's share of traffic like the calibration rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    shares: Option<Named<f64>>,
    /// The expected cost of new queries; null if labels give only bounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    promise: Option<Option<pointsman::policy::Promise>>,
    /// What each panel costs without the others, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    panels: Vec<PanelAlone>,
    /// The panels whose costs the labels of some calibration rows do not identify.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    assumed_panels: Vec<pointsman::policy::AssumedPanel>,
    #[serde(flatten)]
    certified: Option<PolicyBounds>,
    cells: Vec<Cell>,
}

#[derive(Debug, Serialize)]
struct Cell {
    cell: u32,
    name: String,
    rows: usize,
    support: &'static str,
    centroid: Option<Vec<f64>>,
    #[serde(flatten)]
    priced: Option<Priced>,
    /// The share of each action among the rows of a forest's cell, whose queries are decided one by one; `action` is that of the cell as a
    /// whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    shares: Option<Named<f64>>,
    #[serde(flatten)]
    certified: Option<CellBounds>,
}

/// The estimates of a cell under a task.
#[derive(Debug, Serialize)]
struct Priced {
    irreducible: Option<f64>,
    reducible: Option<f64>,
    total: Option<f64>,
    costs: Named<Option<f64>>,
    action: Option<String>,
    margin: Option<f64>,
    /// At the margin of a limit: the action of the queries that do not get the first one, and the share of those that do.
    #[serde(skip_serializing_if = "Option::is_none")]
    otherwise: Option<String>,
    #[serde(rename = "lots", skip_serializing_if = "Option::is_none")]
    random_share: Option<f64>,
    /// Why the action is taken, in one word.
    reason: Option<&'static str>,
    /// The interval that the labels identify the irreducible loss to, however many rows there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    irreducible_identified: Option<[f64; 2]>,
    /// Bounds, if there is one label per item.
    #[serde(skip_serializing_if = "Option::is_none")]
    irreducible_bounds: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reducible_bounds: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    costs_low: Option<Named<Option<f64>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    costs_high: Option<Named<Option<f64>>>,
}

/// Several tasks.
#[derive(Debug, Serialize)]
pub(super) struct Reports {
    /// The confidence with which all their intervals hold at once.
    pub(super) confidence: f64,
    pub(super) tasks: Vec<Report>,
}

pub(super) fn report(
    router: &Router,
    policy: Option<&Policy>,
    certified: Option<&Certified>,
    order: &[CellId],
) -> Report {
    let names = policy.map(|policy| policy.task().action_names()).unwrap_or_default();
    let identified = policy.map(|policy| identified_losses(router, policy)).unwrap_or_default();
    let shares = policy.and_then(Policy::shares_within_cells);
    let cell = |&cell: &CellId| {
        let mixture = router.mixture(cell);
        Cell {
            shares: shares.as_ref().and_then(|shares| shares[cell.index()].clone()),
            cell: cell.0,
            name: router.cells().name(cell, router.classes()),
            rows: mixture.len(),
            support: mixture.support().name(),
            centroid: mixture.centroid(),
            priced: policy.map(|policy| Priced {
                irreducible_identified: identified.get(cell.index()).copied().flatten(),
                ..priced(policy.cell(cell).as_ref(), &names)
            }),
            certified: certified.zip(policy).map(|(certified, policy)| certified.cell_bounds(cell, policy)),
        }
    };
    Report {
        classes: router.classes().to_vec(),
        rows: router.rows().rows(),
        partition: router.partition().to_string(),
        recalibrated: router.is_recalibrated(),
        labels: RouterStats::new(router).labels.into(),
        task: policy.map(Policy::task_summary),
        unit: policy.map(|policy| policy.task().loss().unit()),
        surcharge: policy.and_then(Policy::surcharge),
        shares: policy.map(Policy::shares),
        promise: policy.map(Policy::promise),
        panels: policy.map(panels::each_alone).unwrap_or_default(),
        assumed_panels: policy.map(pointsman::Policy::assumed_panels).unwrap_or_default(),
        certified: certified.map(Certified::bounds),
        cells: order.iter().map(cell).collect(),
    }
}

fn priced(decision: Option<&Decision<'_>>, names: &[String]) -> Priced {
    let named = |costs: Option<Vec<f64>>| {
        let cost = |(i, name): (usize, &String)| (name.clone(), costs.as_ref().and_then(|costs| known(costs[i])));
        names.iter().enumerate().map(cost).collect()
    };
    let bounded = decision.filter(|d| !d.estimate().is_known());
    let bounds = |d: &Decision<'_>| [d.estimate().irreducible_low, d.estimate().irreducible_high];
    Priced {
        irreducible: decision.and_then(Decision::irreducible),
        reducible: decision.and_then(Decision::reducible),
        total: decision.map(Decision::total),
        costs: named(decision.map(|d| d.known_costs().collect())),
        action: decision.map(|d| d.action().to_string()),
        margin: decision.filter(|d| d.action() != Action::Undetermined).and_then(|d| known(d.margin())),
        otherwise: decision.and_then(Decision::otherwise).map(|action| action.to_string()),
        random_share: decision.and_then(Decision::marginal_share),
        reason: decision.map(|decision| decision.reason().name()),
        irreducible_identified: None,
        irreducible_bounds: bounded.map(bounds),
        reducible_bounds: bounded.map(|decision| decision.estimate().reducible_bounds()),
        costs_low: bounded.map(|d| named(Some(d.costs().to_vec()))),
        costs_high: bounded.map(|d| named(Some(d.costs_high().to_vec()))),
    }
}

/// The interval that the labels identify each cell's irreducible loss to; empty for a forest, whose queries have their own losses.
pub(super) fn identified_losses(router: &Router, policy: &Policy) -> Vec<Option<[f64; 2]>> {
    if is_forest(router) { Vec::new() } else { policy.identified(router).unwrap_or_default() }
}
