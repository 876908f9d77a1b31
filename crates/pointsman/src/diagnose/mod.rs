//! Before anyone adopts this: does decomposition help on this data, and is the data good enough to tell?
//!
//! [`diagnose`] halves a table several times by content, calibrates on one half and judges on the other, both ways round: every
//! number about costs and gains is of routers that have not seen the rows they are judged on. Intervals are ± 1.96
//! standard errors of a mean over rows, with what varies from split to split on top. Routers learn from half of the rows
//! only, so that the whole table does a little better than is said here.

mod advice;
mod agreement;
mod correlation;
mod crossfit;
mod enough;
mod halves;
mod interval;
mod stopping;
mod threshold;
mod weak_model;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::estimate::shrunk_points;
use crate::evaluate::{Named, TaskSummary};
use crate::loss::{Loss, dot};
use crate::partition::{CellId, Partition};
use crate::router::Router;
use crate::table::Table;
use crate::task::Task;
pub use advice::{Advice, Recommendation};
pub use agreement::{Agreement, SuspectRow};
use correlation::correlation;
use crossfit::{Crossfit, Plan};
pub use enough::{Compared, Enough};
use halves::Ordered;
pub use halves::halves;
pub use interval::Estimate;
pub use stopping::Stopping;
pub use weak_model::{ConfidenceBin, WeakModel};

/// How often `done` of [`diagnose`] is called.
pub const DIAGNOSIS_STEPS: usize = crossfit::SPLITS;

/// Partitions worth a comparison wherever they can be read and fitted.
const PARTITIONS: [&str; 4] = ["top-class:5", "top-class:10", "top-class:20", "confidence:30"];

/// A forest that is tried as well if there are so many rows: enough trees to tell, few enough to wait for.
const FOREST: (usize, usize) = (25, 1000);

/// Features that are tried together with the top class.
const FEATURES_TRIED: usize = 4;

/// What a table says about itself.
#[derive(Debug, Clone, Serialize)]
pub struct Diagnosis {
    /// Rows of the table.
    pub rows: usize,
    /// Rows looked at: very long tables are sampled.
    pub rows_used: usize,
    /// The classes, in order.
    pub classes: Vec<String>,
    /// The loss's unit.
    pub unit: &'static str,
    /// The task.
    pub task: TaskSummary,
    /// The partition.
    pub partition: String,
    /// How often the table was halved.
    pub splits: usize,
    /// The verdict.
    pub verdict: Recommendation,
    /// Whether decomposition pays; unknown with one label an item.
    pub worth: Option<Worth>,
    /// Between what the reducible loss lies, where labels only bound it.
    pub bounds: Option<Bounds>,
    /// Whether the weak model's confidence can be believed.
    pub weak_model: WeakModel,
    /// Whether labels, rows and cells are enough.
    pub enough: Enough,
    /// Whether the number of labels depends on the labels; unknown if it does not vary.
    pub stopping: Option<Stopping>,
    /// Whether votes look independent.
    pub agreement: Agreement,
}

/// What decomposition is worth, beside simpler rules.
#[derive(Debug, Clone, Serialize)]
pub struct Worth {
    /// Correlation of reducible and total loss over cells, the noise of estimates taken out. Near 1, a ranking by total
    /// loss is as good, and so is total uncertainty if the model knows its own.
    pub correlation: Option<f64>,
    /// Normalised gain of ranking by reducible loss (`higher-order`), by `total-uncertainty` and by that of the re-calibrated
    /// prediction: 0 random, 1 point-wise optimal as far as the labels tell, which is never less than what the best of all partitions
    /// compared wins; unknown if no loss is reducible.
    pub gain: Named<Option<f64>>,
    /// The difference of the first two.
    pub gain_over_total_uncertainty: Option<Estimate>,
    /// Cost a query of `router`, `always-<action>` and `total-uncertainty` (the best thresholds on it, learned from the same
    /// rows); unknown if the task leaves no choice.
    pub costs: Option<Named<Estimate>>,
    /// What the router saves a query against each of the others.
    pub savings: Option<Named<Estimate>>,
}

/// What one label an item tells.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bounds {
    /// The reducible loss lies between these.
    pub reducible: [f64; 2],
    /// The share of the traffic whose action these bounds decide; unknown if the task leaves no choice.
    pub decided: Option<f64>,
}

/// Looks at a table before anyone relies on it, for a task and a partition. A task without routes and abstention is judged by
/// the order of routing alone. `done` is called [`DIAGNOSIS_STEPS`] times.
///
/// ```
/// use pointsman::{Advice, Loss, Partition, Table, Task, diagnose};
/// let probs = (0..400).flat_map(|i| [0.2 + 0.0015 * f64::from(i), 0.8 - 0.0015 * f64::from(i)]).collect();
/// let table = Table::new(["no", "yes"], probs)?.with_votes([1, 0, 0, 1].repeat(200))?;
/// let diagnosis = diagnose(&table, &Task::new(Loss::brier()), &Partition::top_class(5), || ())?;
/// assert_eq!(diagnosis.verdict.advice, Advice::OneLabel);
/// # Ok::<(), pointsman::Error>(())
/// ```
///
/// # Errors
/// If the table has no votes or fewer than four rows, the task has a budget or target loss, or the task or the partition does
/// not fit the table.
pub fn diagnose(table: &Table, task: &Task, partition: &Partition, done: impl Fn() + Sync) -> Result<Diagnosis> {
    if table.rows() < 4 {
        return Err(Error::Table(format!(
            "{} rows cannot be diagnosed: give at least 4, better hundreds",
            table.rows()
        )));
    }
    if task.limit().is_some() {
        return Err(Error::Task(
            "a budget or target loss cannot be diagnosed: rules that do not keep to it cost something else; give prices, or \
             leave them out and compare the gains"
                .into(),
        ));
    }
    let ordered = Ordered::of(table)?;
    let in_table = |error: Error| error.map_row(|row| ordered.origin[row] as usize);
    let router = Router::calibrate(&ordered.rows, partition).map_err(in_table)?;
    let plans = plans(&ordered.rows, partition);
    let crossfit = Crossfit::of(&ordered, task, &plans, done)?;
    let choice = task.actions() > 1;
    let mut diagnosis = Diagnosis {
        rows: table.rows(),
        rows_used: ordered.rows.rows(),
        classes: table.classes().to_vec(),
        unit: task.loss().unit(),
        task: task.into(),
        partition: partition.to_string(),
        splits: crossfit::SPLITS,
        verdict: Recommendation { advice: Advice::MoreData, sentence: String::new(), remarks: Vec::new() },
        worth: None,
        bounds: None,
        weak_model: WeakModel::of(&ordered.rows)?,
        enough: Enough::of(&ordered.rows, &router, task)?,
        stopping: Stopping::of(table)?,
        agreement: Agreement::of(&ordered, &crossfit::measure(&ordered.rows))?,
    };
    match crossfit {
        Some(crossfit) => {
            diagnosis.judge(&crossfit, &plans, choice, best_area(&ordered.rows, task.loss())?);
            if let Some(worth) = &mut diagnosis.worth {
                worth.correlation = correlation(&ordered, &router, task)?;
            }
        }
        None => diagnosis.bounds = Some(bounds(&router, task, choice)?),
    }
    diagnosis.verdict = advice::recommend(&diagnosis);
    Ok(diagnosis)
}

/// The partition asked for, with its centroids, and others to compare it with.
fn plans(rows: &Table, partition: &Partition) -> Vec<Plan> {
    let features = rows.feature_names().iter().take(FEATURES_TRIED);
    let with_feature = |name: &String| Partition::top_class(5).times(Partition::features([(name.clone(), 4)]));
    let forest = (rows.rows() >= FOREST.1).then(|| Partition::forest(FOREST.0));
    let others = PARTITIONS.iter().filter_map(|text| text.parse().ok()).chain(features.map(with_feature)).chain(forest);
    let plan = |partition: Partition, recalibrated: bool| Plan { partition, recalibrated };
    let mut plans = vec![plan(partition.clone(), false), plan(partition.clone(), true)];
    plans.extend(others.filter(|other| other != partition).map(|other| plan(other, false)));
    plans
}

impl Diagnosis {
    /// Writes down what cross-fitting found.
    fn judge(&mut self, crossfit: &Crossfit, plans: &[Plan], choice: bool, best: f64) {
        let Some(own) = &crossfit.routers[0] else { return };
        let weights = &crossfit.weights;
        let rival = &crossfit.threshold;
        // The best order wins at least what any of these does: shrunk in cells of the top class, snapshots hide what features tell.
        let won = crossfit.routers.iter().chain([&crossfit.recalibrated_uncertainty]).flatten().chain([rival]);
        let best = won.map(|outcome| outcome.won.mean(weights)).fold(best, f64::max);
        let gain = |won: f64| (best > 0.0).then(|| won / best);
        let mut gains = Named::new();
        gains.push("higher-order", gain(own.won.mean(weights)));
        gains.push("total-uncertainty", gain(rival.won.mean(weights)));
        if let Some(recalibrated) = &crossfit.recalibrated_uncertainty {
            gains.push("recalibrated-uncertainty", gain(recalibrated.won.mean(weights)));
        }
        let (mut costs, mut savings) = (Named::new(), Named::new());
        costs.push("router", own.cost.interval(weights));
        let names = actions_of(&self.task);
        let always = names.iter().map(|name| format!("always-{name}")).zip(&crossfit.always);
        for (name, cost) in always.chain([("total-uncertainty".to_owned(), &rival.cost)]) {
            costs.push(name.clone(), cost.interval(weights));
            savings.push(name, cost.minus(&own.cost).interval(weights));
        }
        self.worth = Some(Worth {
            correlation: None,
            gain: gains,
            gain_over_total_uncertainty: gain(1.0)
                .map(|scale| own.won.minus(&rival.won).interval(weights).scaled(scale)),
            costs: choice.then_some(costs),
            savings: choice.then_some(savings),
        });
        if let Some(served) = &crossfit.routers[1] {
            self.weak_model.recalibrating_saves = [
                Some(own.loss.minus(&served.loss).interval(weights)),
                choice.then(|| own.cost.minus(&served.cost).interval(weights)),
            ];
        }
        self.enough.stability = choice.then_some(crossfit.stability);
        for (plan, outcome) in plans.iter().zip(&crossfit.routers).filter(|(plan, _)| !plan.recalibrated) {
            let Some(outcome) = outcome else { continue };
            let better = if choice {
                Some(own.cost.minus(&outcome.cost).interval(weights))
            } else {
                gain(1.0).map(|scale| outcome.won.minus(&own.won).interval(weights).scaled(scale))
            };
            self.enough.partitions.push(Compared {
                partition: plan.partition.to_string(),
                gain: gain(outcome.won.mean(weights)),
                cost: choice.then(|| outcome.cost.mean(weights)),
                better_by: better.filter(|_| !self.enough.partitions.is_empty()),
            });
        }
    }
}

fn actions_of(task: &TaskSummary) -> Vec<String> {
    let mut names = vec!["predict".to_owned()];
    names.extend(task.routes.iter().map(|route| format!("route:{}", route.name)));
    names.extend(task.abstain.map(|_| "abstain".to_owned()));
    names
}

/// The area that the best order of all wins over a random one: from snapshot means shrunk until they vary as the truth does.
fn best_area(rows: &Table, loss: &Loss) -> Result<f64> {
    let router = Router::calibrate(rows, &crossfit::measure(rows))?;
    let classes = rows.classes().len();
    let (mut reducible, mut weights) = (Vec::new(), Vec::new());
    let (mut served, mut losses) = (vec![0.0; classes], vec![0.0; classes]);
    for cell in 0..router.cells().count() as u32 {
        let mixture = router.mixture(CellId(cell));
        let Some(points) = shrunk_points(mixture) else { continue };
        for (row, point) in mixture.rows().zip(points.chunks_exact(classes)) {
            mixture.table().dist_into(row, &mut served);
            loss.losses_into(&served, &mut losses);
            reducible.push(dot(point, &losses) - loss.entropy(point));
            weights.push(mixture.table().weight(row));
        }
    }
    let ranks = crossfit::ranks(&reducible, &weights);
    let won: Vec<f64> = reducible.iter().zip(&ranks).map(|(r, rank)| r * (0.5 - rank)).collect();
    let area = if won.is_empty() { 0.0 } else { interval::mean(&won, &weights) };
    Ok(if area > 1e-12 * loss.rounding() { area } else { 0.0 })
}

fn bounds(router: &Router, task: &Task, choice: bool) -> Result<Bounds> {
    let policy = router.policy(task)?;
    let (mut reducible, mut all) = ([0.0; 2], 0.0);
    for decision in (0..router.cells().count() as u32).filter_map(|cell| policy.cell(CellId(cell))) {
        let estimate = decision.estimate();
        let ends = estimate.reducible_bounds();
        reducible.iter_mut().zip(ends).for_each(|(sum, end)| *sum += estimate.weight * end);
        all += estimate.weight;
    }
    let undetermined = policy.shares().get("undetermined").copied().unwrap_or(0.0);
    Ok(Bounds { reducible: reducible.map(|sum| sum / all), decided: choice.then_some(1.0 - undetermined) })
}
