//! The report as data.

use pointsman::evaluate::{CalibrationError, CellSummary, MixtureHistogram, PriceGrid, Sweep, SweepPoint};
use pointsman::monitor::TrafficShift;
use pointsman::number::{count, counted};
use pointsman::task::Named;
use pointsman::{CellId, Evaluation, Limit, Loss, Policy, Replay, Result, Router, Table, Task};
use serde::Serialize;

use crate::words::perfect_oracles_in_words;

/// The largest number of cells drawn on a page: those with the most held-out traffic.
const MAX_DRAWN_CELLS: usize = 200;
/// Bins of the mixtures' histograms.
const HISTOGRAM_BINS: usize = 20;
/// Steps of a slider.
const SLIDER_STEPS: usize = 24;
/// Steps of the slider of one route among several.
const ROUTE_SLIDER_STEPS: usize = 12;
/// The losses offered on the page, if they apply to the number of classes.
const MENU_LOSSES: [&str; 7] =
    ["brier", "cross-entropy", "spherical", "zero-one", "asymmetric:2", "fn-fp:fp=1,fn=3", "three-part"];

/// The inputs of a report.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// The router.
    pub router: &'a Router,
    /// The router compiled for the task.
    pub policy: &'a Policy,
    /// The held-out rows.
    pub table: &'a Table,
    /// The replay of the held-out rows under the policy.
    pub replay: &'a Replay,
}

/// An evaluation on held-out rows, for scripts and figures.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Costs, shares, gains and curves at the task's prices.
    #[serde(flatten)]
    pub evaluation: Evaluation,
    /// Null if it was not requested or the rows carry no votes.
    pub calibration_error: Option<CalibrationError>,
    /// The distribution of the rows over the cells, compared with the calibration rows.
    pub traffic: TrafficShift,
    /// One entry per requested sweep.
    pub sweep: Vec<SweepReport>,
    /// The number of rows that the router was calibrated on, which are not held out; zero if chance may explain it.
    #[serde(skip)]
    pub calibration_rows: usize,
    /// Reasons not to rely on the numbers, one sentence each; the caller adds its own.
    pub warnings: Vec<String>,
    /// What to do next; filled in by the caller.
    pub next_step: Option<NextStep>,
    /// The files that it was made from; filled in by the caller.
    pub made_from: Option<MadeFrom>,
    /// Which oracles are assumed to be perfect, in a sentence, if any are.
    #[serde(skip)]
    pub perfect_oracles: Option<String>,
    /// A summary of the router.
    pub router: RouterSummary,
    /// The classes, in order.
    pub classes: Vec<String>,
    /// Every cell under the task.
    pub cells: Vec<CellSummary>,
    /// Data that only the figures and the page need.
    #[serde(flatten)]
    pub detail: Option<Detail>,
}

/// What to do next: a remark and command lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NextStep {
    /// The reason, in one sentence.
    pub remark: String,
    /// Command lines, in order.
    pub commands: Vec<String>,
}

/// The files that a report was made from, as they were named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MadeFrom {
    /// The router.
    pub router: String,
    /// The held-out table.
    pub table: String,
    /// The conditions that kept its rows.
    pub filters: Vec<String>,
    /// The table of annotations, if the labels come from one.
    pub annotations: Option<String>,
}

impl MadeFrom {
    /// The files in a sentence.
    #[must_use]
    pub fn in_words(&self) -> String {
        let filters = match self.filters.as_slice() {
            [] => String::new(),
            filters => format!(", rows with {}", filters.join(" and ")),
        };
        let annotations = self.annotations.as_ref().map_or(String::new(), |file| format!(", labels from {file}"));
        format!("Made from the router {} and the table {}{filters}{annotations}.", self.router, self.table)
    }
}

/// A summary of the router.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RouterSummary {
    /// Number of calibration rows.
    pub rows: usize,
    /// Number of cells.
    pub cells: usize,
    /// The partition.
    pub partition: String,
    /// Whether it serves the cells' centroids.
    pub recalibrated: bool,
}

impl RouterSummary {
    /// Whether every row has its own estimated costs, so that the best action per cell is no benchmark.
    #[must_use]
    pub fn decides_by_row(&self) -> bool {
        self.partition.starts_with("forest")
    }
}

/// The results of one sweep.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct SweepReport {
    /// `abstain`, `route` or `route:<name>`.
    pub axis: String,
    /// One entry per price.
    pub points: Vec<SweepPoint>,
}

/// Data that only the figures and the page need.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Detail {
    /// The drawn cells in ascending order: those with the most held-out traffic. Lists over cells below follow this
    /// order.
    pub drawn: Vec<u32>,
    /// Stored and held-out mixtures of the drawn cells.
    pub mixtures: Vec<MixtureHistogram>,
    /// The task's loss first, then the other losses offered on the page.
    pub losses: Vec<LossReport>,
}

/// The router under one loss.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct LossReport {
    /// The loss.
    pub loss: String,
    /// Its unit.
    pub unit: &'static str,
    /// Estimates of the drawn cells.
    pub cells: Vec<LossCell>,
    /// Normalised gain of each ranking, not corrected for few labels.
    pub gain: Named<Option<f64>>,
    /// The gains corrected for the bias of few labels, which are drawn; `None` if the correction is not possible.
    pub corrected_gain: Option<Named<Option<f64>>>,
    /// Routing curve of each ranking, the mean loss at 0 %, 1 %, … 100 % routed, not corrected for few labels.
    pub curves: Named<Vec<f64>>,
    /// The routing curves corrected for the bias of few labels, which are drawn; `None` if the correction is not
    /// possible.
    pub corrected_curves: Option<Named<Vec<f64>>>,
    /// Correlation of reducible and total loss over the rows, which the noise of few labels raises.
    pub correlation: Option<f64>,
    /// Actions and costs over a grid of prices; the prices of several routes change in proportion.
    pub grid: PriceGrid,
    /// Grids in which the price of one route changes, one grid per route. Only for the task's own loss, and only if
    /// there are several routes.
    pub route_grids: Vec<PriceGrid>,
    /// Expected losses of the held-out rows in the landscape, if every row has its own; [`PriceGrid::row_actions`] has
    /// the same order.
    pub rows: Vec<LossRow>,
}

/// The expected losses of one held-out row; unknown where labels give only bounds.
#[derive(Debug, Clone, Copy, Serialize)]
#[non_exhaustive]
pub struct LossRow {
    /// Irreducible loss.
    pub irreducible: Option<f64>,
    /// Reducible loss.
    pub reducible: Option<f64>,
}

/// A cell's estimates under one loss; unknown for an empty cell.
#[derive(Debug, Clone, Copy, Serialize)]
#[non_exhaustive]
pub struct LossCell {
    /// Irreducible loss.
    pub irreducible: Option<f64>,
    /// Reducible loss.
    pub reducible: Option<f64>,
    /// Total loss.
    pub total: Option<f64>,
}

/// A warning about rows that the router was calibrated on; `None` if there are none. `seen` is their number among `rows`.
#[must_use]
pub fn calibration_rows_in_words(seen: usize, rows: usize) -> Option<String> {
    if seen == rows {
        return Some("these are rows that the router was calibrated on: they prove nothing".to_owned());
    }
    (seen > 0).then(|| {
        format!(
            "{} of the {} have the prediction of a calibration row: what the router was calibrated on proves nothing; leave these items \
             out",
            count(seen),
            counted(rows, "row", "rows")
        )
    })
}

/// The losses offered on the page: the task's own first, then all others that apply to the number of classes and to the
/// answers of the task's oracles.
#[must_use]
pub fn menu(task: &Task, classes: usize) -> Vec<Loss> {
    let own = task.loss();
    let others = MENU_LOSSES.iter().filter_map(|text| text.parse::<Loss>().ok());
    let judges = |loss: &Loss| task.routes().iter().all(|route| route.oracle().check_loss(loss).is_ok());
    let fits = |loss: &Loss| loss != own && loss.check_classes(classes).is_ok() && judges(loss);
    std::iter::once(own.clone()).chain(others.filter(fits)).collect()
}

impl Report {
    /// Creates a report without the detail that only figures need.
    ///
    /// # Errors
    /// If the inputs do not belong together, or a sweep names a route the task does not have.
    pub fn new(inputs: &Inputs<'_>, sweeps: &[Sweep], calibration_error: Option<CalibrationError>) -> Result<Self> {
        let Inputs { router, policy, replay, .. } = inputs;
        let sweep =
            |sweep: &Sweep| Ok(SweepReport { axis: sweep.axis.to_string(), points: replay.sweep(policy, sweep)? });
        let (seen, rows) = (router.calibration_rows_in(inputs.table), inputs.table.rows());
        let mut report = Self {
            evaluation: replay.evaluate(policy)?,
            calibration_error,
            traffic: replay.traffic(router, inputs.table)?.compare(),
            sweep: sweeps.iter().map(sweep).collect::<Result<_>>()?,
            calibration_rows: seen,
            warnings: calibration_rows_in_words(seen, rows).into_iter().collect(),
            next_step: None,
            made_from: None,
            perfect_oracles: perfect_oracles_in_words(policy.task()),
            router: RouterSummary {
                rows: router.rows().rows(),
                cells: router.cells().count(),
                partition: router.partition().to_string(),
                recalibrated: router.is_recalibrated(),
            },
            classes: router.classes().to_vec(),
            cells: replay.cells(policy, inputs.table)?,
            detail: None,
        };
        report.warnings.extend(report.few_rows());
        Ok(report)
    }

    /// Adds the detail that figures and the page need. `done` is called once per loss of the [`menu`].
    ///
    /// # Errors
    /// If the inputs do not belong together.
    pub fn detailed(mut self, inputs: &Inputs<'_>, done: impl Fn()) -> Result<Self> {
        let mut busiest: Vec<&CellSummary> = self.cells.iter().collect();
        busiest.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.cell.cmp(&b.cell)));
        let mut drawn: Vec<u32> = busiest.iter().take(MAX_DRAWN_CELLS).map(|cell| cell.cell).collect();
        drawn.sort_unstable();
        let cells: Vec<CellId> = drawn.iter().copied().map(CellId).collect();
        let task = inputs.policy.task();
        let mut losses = Vec::new();
        for loss in menu(task, self.classes.len()) {
            losses.push(if loss == *task.loss() {
                let mut own = LossReport::new(inputs.policy, inputs.replay, &cells)?;
                own.add_route_grids(inputs.policy, inputs.replay, &cells)?;
                own
            } else {
                let policy = inputs.router.policy(&with_loss(task, loss)?)?;
                LossReport::new(&policy, &policy.replay(inputs.table)?.with_caps_of(inputs.replay), &cells)?
            });
            done();
        }
        let mixtures = inputs.router.mixture_histograms(inputs.table, &cells, HISTOGRAM_BINS)?;
        self.detail = Some(Detail { drawn, mixtures, losses });
        Ok(self)
    }
}

impl LossReport {
    /// The gains to draw: corrected for few labels where possible.
    #[must_use]
    pub fn best_gain(&self) -> &Named<Option<f64>> {
        self.corrected_gain.as_ref().unwrap_or(&self.gain)
    }

    /// The routing curves to draw: corrected for few labels where possible.
    #[must_use]
    pub fn best_curves(&self) -> &Named<Vec<f64>> {
        self.corrected_curves.as_ref().unwrap_or(&self.curves)
    }

    fn new(policy: &Policy, replay: &Replay, cells: &[CellId]) -> Result<Self> {
        let evaluation = replay.evaluate(policy)?;
        let estimates = |&cell: &CellId| {
            let decision = policy.cell(cell);
            LossCell {
                irreducible: decision.and_then(|d| d.irreducible()),
                reducible: decision.and_then(|d| d.reducible()),
                total: decision.map(|d| d.total()),
            }
        };
        let row = |losses: Option<[f64; 2]>| LossRow {
            irreducible: losses.map(|[irreducible, _]| irreducible),
            reducible: losses.map(|[_, reducible]| reducible),
        };
        Ok(Self {
            loss: evaluation.loss,
            unit: evaluation.unit,
            cells: cells.iter().map(estimates).collect(),
            gain: evaluation.gain,
            corrected_gain: evaluation.corrected_gain,
            curves: evaluation.curves,
            corrected_curves: evaluation.corrected_curves,
            correlation: evaluation.correlation,
            grid: replay.price_grid(policy, cells, SLIDER_STEPS)?,
            route_grids: Vec::new(),
            rows: replay.expected_losses(&replay.sample_rows()).into_iter().map(row).collect(),
        })
    }

    /// Adds one grid per route, if there are several routes.
    fn add_route_grids(&mut self, policy: &Policy, replay: &Replay, cells: &[CellId]) -> Result<()> {
        let routes = policy.task().routes().len();
        let grid = |place| replay.route_price_grid(policy, cells, place, [ROUTE_SLIDER_STEPS, SLIDER_STEPS]);
        self.route_grids = if routes > 1 { (0..routes).map(grid).collect::<Result<_>>()? } else { Vec::new() };
        Ok(())
    }
}

/// The task with another loss. Prices keep their numbers and a budget stays; a target loss is dropped, since it is in
/// units of the task's own loss.
fn with_loss(task: &Task, loss: Loss) -> Result<Task> {
    let mut other = Task::new(loss).estimator(task.chosen_estimator()).ties(task.chosen_ties());
    for route in task.routes() {
        other = other.route(route.name(), route.oracle().clone(), route.price())?;
    }
    if let Some(price) = task.abstain_price() {
        other = other.abstain(price)?;
    }
    match task.limit() {
        Some(Limit::Budget(share)) => other.budget(share),
        _ => Ok(other),
    }
}
