//! Before anyone adopts this: does decomposition help on this data, and is the data good enough to tell?
//!
//! [`diagnose`] halves a table several times by content, calibrates on one half and judges on the other, both ways round: every
//! number about costs and gains is of routers that have not seen the rows they are judged on. Intervals are ± 1.96
//! standard errors of a mean over rows, with what varies from split to split on top. Routers learn from half of the rows
//! only, so that the whole table does a little better than is said here. With `auto` every half chooses its partition by its own rows: nothing
//! is judged on rows that it was chosen by.

mod advice;
mod agreement;
mod annotators;
mod correlation;
mod crossfit;
mod enough;
mod halves;
mod interval;
mod left_out;
mod limited;
mod mismatch;
mod stopping;
mod unanimity;
mod weak_model;

use crate::error::{Error, Result, TableError};
use crate::estimate::RowEstimates;
use crate::loss::Loss;
use crate::partition::{CellId, Factor, Partition};
use crate::router::Router;
use crate::table::Table;
use crate::table::simplex::dot;
use crate::task::Task;
use crate::task::{Named, TaskSummary};
pub use advice::{Advice, Recommendation};
pub use agreement::{Agreement, ChangedCell, Sensitivity};
pub use annotators::{Annotations, Annotator, AnnotatorCheck, AnnotatorStatistics, NamedLabel, Suspicion};
use correlation::correlation;
use crossfit::{Crossfit, Plan};
pub use enough::{Compared, Enough, LeftOut};
use halves::Ordered;
pub use halves::halves;
use interval::Average;
pub use interval::Estimate;
pub use left_out::FlaggedAnnotators;
pub use mismatch::{ClassMatch, Mismatch};
pub use stopping::Stopping;
pub use unanimity::Unanimity;
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
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
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
    /// What `auto` chooses on all rows used, if that is the partition.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub chosen: Option<String>,
    /// How often the table was halved.
    pub splits: usize,
    /// The verdict.
    pub verdict: Recommendation,
    /// Whether decomposition pays; unknown with one label per item.
    pub worth: Option<Worth>,
    /// Between what the reducible loss lies, where labels only bound it.
    pub bounds: Option<Bounds>,
    /// Whether the weak model's confidence can be believed.
    pub weak_model: WeakModel,
    /// Whether labels, rows and cells are enough.
    pub enough: Enough,
    /// Whether the number of labels depends on the labels; unknown if it does not vary.
    pub stopping: Option<Stopping>,
    /// There if every row's labels agree although rows differ: labels may be copies.
    pub unanimity: Option<Unanimity>,
    /// How unanimous votes are, and what depends on their being independent.
    pub agreement: Agreement,
    /// There if the classes of votes and predictions seem to be matched wrongly.
    pub mismatch: Option<Mismatch>,
    /// Every annotator, if labels come with names.
    pub annotators: Vec<Annotator>,
    /// The annotators to leave out, and what that changes; none if nobody is, or labels come without names.
    pub flagged_annotators: Option<FlaggedAnnotators>,
}

/// What decomposition is worth, beside simpler rules.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Worth {
    /// The loss per query of the weak prediction.
    pub loss: Estimate,
    /// How much of it is reducible. What no routing can save more than is its upper end.
    pub reducible: Estimate,
    /// The loss per query that ranking by reducible loss saves over ranking by total uncertainty, averaged over all shares of the queries
    /// that may be routed.
    pub ranking_saves: Estimate,
    /// Correlation of reducible and total loss over cells, the noise of estimates taken out. Near 1, a ranking by total
    /// loss is as good, and so is total uncertainty if the model knows its own.
    pub correlation: Option<f64>,
    /// Normalised gain of ranking by reducible loss (`higher-order`), by `total-uncertainty` and by that of the re-calibrated
    /// prediction: 0 random, 1 point-wise optimal as far as the labels tell, which is never less than what the best of all partitions
    /// compared wins; unknown if no loss is reducible.
    pub gain: Named<Option<f64>>,
    /// The same gains with intervals; the best order is taken as known.
    pub gain_interval: Named<Option<Estimate>>,
    /// The difference of the first two.
    pub gain_over_total_uncertainty: Option<Estimate>,
    /// Cost per query of `router`, `always-<action>` and `total-uncertainty` (the best thresholds on it, learned from the same
    /// rows); unknown if the task leaves no choice.
    pub costs: Option<Named<Estimate>>,
    /// What the router saves per query against each of the others.
    pub savings: Option<Named<Estimate>>,
    /// How much is routed, if the task has a budget or a target loss. Rules that do not keep to it are left out of `costs`.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub limit: Option<AtLimit>,
}

/// Rules at a budget or target loss: on the half that is judged each routes in its own order until that is reached.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct AtLimit {
    /// The share of the queries that each rule routes.
    pub routed: Named<Estimate>,
    /// Which share of the queries the router routes less than each of the others.
    pub spared: Named<Estimate>,
    /// In how many of the halves judged, two per split, `router` and `total-uncertainty` miss the target loss however much they route.
    pub missed: Named<usize>,
}

/// What one label per item tells.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Bounds {
    /// The reducible loss lies between these.
    pub reducible: [f64; 2],
    /// The share of the traffic whose action these bounds decide; unknown if the task leaves no choice.
    pub decided: Option<f64>,
}

/// Looks at a table before anyone relies on it, for a task and a partition, [`Partition::auto`] if none is meant in particular: that is what
/// `calibrate` takes. A task without routes and abstention is judged by
/// the order of routing alone. `done` is called [`DIAGNOSIS_STEPS`] times.
///
/// ```
/// use pointsman::{Loss, Partition, Table, Task};
/// use pointsman::diagnose::diagnose;
/// use pointsman::diagnose::Advice;
/// let probs = (0..400).flat_map(|i| [0.2 + 0.0015 * f64::from(i), 0.8 - 0.0015 * f64::from(i)]).collect();
/// let table = Table::new(["no", "yes"], probs)?.with_votes([1, 0, 0, 1].repeat(200))?;
/// let diagnosis = diagnose(&table, &Task::new(Loss::brier()), &Partition::top_class(5), || ())?;
/// assert_eq!(diagnosis.verdict.advice, Advice::OneLabel);
/// # Ok::<(), pointsman::Error>(())
/// ```
///
/// # Errors
/// If the table has no votes or fewer than four rows, the task or the partition does not fit the table, or no routing reaches
/// the task's target loss on it.
pub fn diagnose(table: &Table, task: &Task, partition: &Partition, done: impl Fn() + Sync) -> Result<Diagnosis> {
    diagnose_annotated(table, None, task, partition, done)
}

/// As [`diagnose`], and whether each annotator labels independently, where annotations name them.
///
/// # Errors
/// As there, and if the annotations are not those of the table's rows.
pub fn diagnose_annotated(
    table: &Table,
    annotations: Option<&Annotations>,
    task: &Task,
    partition: &Partition,
    done: impl Fn() + Sync,
) -> Result<Diagnosis> {
    if table.rows() < 4 {
        return Err(TableError::TooFewRows { purpose: "a diagnosis", rows: table.rows(), least: 4 }.into());
    }
    let task = &task.for_classes(table.classes())?;
    let ordered = Ordered::for_partition(table, partition)?;
    let in_table = |error: Error| error.map_row(|row| ordered.origin[row] as usize);
    let (router, chosen) = Router::calibrate_for_diagnosis(&ordered.rows, partition).map_err(in_table)?;
    let left_out = LeftOut::of(&ordered.rows, FEATURES_TRIED);
    let plans = plans(&ordered.rows, partition, &left_out);
    let crossfit = Crossfit::of(&ordered, task, &plans, done)?;
    if task.limit().is_some() && crossfit.is_some() {
        // What the whole table cannot keep to is refused with what it can.
        router.policy(task)?;
    }
    let unlimited = task.clone().without_limit();
    let choice = task.actions() > 1;
    let cells = fixed_cells(&ordered.rows, router.clone())?;
    let checked = annotations.map(|named| AnnotatorCheck::of(table, named).map(|check| (named, check))).transpose()?;
    let flagged_annotators = match &checked {
        Some((named, check)) => FlaggedAnnotators::of(table, named, check, &cells, &unlimited)?,
        None => None,
    };
    let mut diagnosis = Diagnosis {
        rows: table.rows(),
        rows_used: ordered.rows.rows(),
        classes: table.classes().to_vec(),
        unit: task.loss().unit(),
        task: TaskSummary::new(task, table.classes()),
        partition: partition.to_string(),
        chosen: (chosen != *partition).then(|| chosen.to_string()),
        splits: crossfit::SPLITS,
        verdict: Recommendation::default(),
        worth: None,
        bounds: None,
        weak_model: WeakModel::of(&ordered.rows)?,
        enough: Enough::of(&ordered.rows, &router, &unlimited)?,
        stopping: Stopping::of(table)?,
        unanimity: Unanimity::of(table)?,
        agreement: Agreement::of(&ordered, &cells, &unlimited)?,
        mismatch: Mismatch::of(table)?,
        annotators: checked.map(|(_, check)| check.annotators).unwrap_or_default(),
        flagged_annotators,
    };
    diagnosis.enough.features_left_out = left_out;
    match crossfit {
        Some(crossfit) => {
            diagnosis.judge(&crossfit, &plans, choice, best_area(&ordered.rows, task.loss()));
            if let Some(worth) = &mut diagnosis.worth {
                worth.correlation = correlation(&ordered, &router, &unlimited)?;
                if let Some(sensitivity) = &mut diagnosis.agreement.sensitivity {
                    sensitivity.rescale(worth.loss.estimate - worth.reducible.estimate, &ordered.rows);
                }
            }
        }
        None => diagnosis.bounds = Some(bounds(&router, task)?),
    }
    diagnosis.verdict = advice::recommend(&diagnosis);
    Ok(diagnosis)
}

/// The router, or one of plain cells if its own learned from the labels: losses of other labels are estimated in the same cells.
fn fixed_cells(rows: &Table, router: Router) -> Result<Router> {
    let learned = router.partition().factors().iter().any(Factor::learns);
    if learned { Router::calibrate(rows, &crossfit::measure(rows)) } else { Ok(router) }
}

/// The partition asked for, with its centroids, and others to compare it with.
fn plans(rows: &Table, partition: &Partition, left_out: &[LeftOut]) -> Vec<Plan> {
    let is_tried = |name: &&String| left_out.iter().all(|left| left.feature != **name);
    let features = rows.feature_names().iter().filter(is_tried);
    let with_feature = |name: &String| Partition::top_class(5).times(Partition::features([(name.clone(), 4)]));
    let forest = (rows.rows() >= FOREST.1).then(|| Partition::forest(FOREST.0));
    let others = PARTITIONS.iter().filter_map(|text| text.parse().ok()).chain(features.map(with_feature)).chain(forest);
    let plan = |partition: Partition, recalibrated: bool| Plan { partition, recalibrated };
    // Centroids are served by cells, which a forest that auto may choose does not have.
    let is_auto = matches!(partition.factors(), [Factor::Auto { .. }]);
    let served = if is_auto { Partition::pooled() } else { partition.clone() };
    let mut plans = vec![plan(partition.clone(), false), plan(served, true)];
    plans.extend(others.filter(|other| other != partition).map(|other| plan(other, false)));
    plans
}

impl Diagnosis {
    /// Writes down what cross-fitting found.
    fn judge(&mut self, crossfit: &Crossfit, plans: &[Plan], choice: bool, best: f64) {
        let Some(own) = &crossfit.routers[0] else { return };
        let targeted = self.task.target_loss.is_some();
        let weights = &crossfit.weights;
        let rival = &crossfit.threshold;
        // The best order wins at least what any of these does: shrunk in cells of the top class, snapshots hide what features tell.
        let won = crossfit.routers.iter().chain([&crossfit.recalibrated_uncertainty]).flatten().chain([rival]);
        let best = won.map(|outcome| outcome.won.mean(weights)).fold(best, f64::max);
        let gain = |won: f64| (best > 0.0).then(|| won / best);
        let ranked = [
            ("higher-order", Some(own)),
            ("total-uncertainty", Some(rival)),
            ("recalibrated-uncertainty", crossfit.recalibrated_uncertainty.as_ref()),
        ];
        let (mut gains, mut gain_interval) = (Named::new(), Named::new());
        for (name, outcome) in ranked {
            let Some(outcome) = outcome else { continue };
            gains.push(name, gain(outcome.won.mean(weights)));
            gain_interval.push(name, gain(1.0).map(|scale| outcome.won.interval(weights).scaled(scale)));
        }
        let (mut costs, mut savings) = (Named::new(), Named::new());
        let mut limit = AtLimit { routed: Named::new(), spared: Named::new(), missed: Named::new() };
        limit.missed.push("router", own.missed);
        limit.missed.push("total-uncertainty", rival.missed);
        costs.push("router", own.cost.interval(weights));
        limit.routed.push("router", own.routed.interval(weights));
        let always = self.always_allowed(crossfit);
        let rules = always.iter().map(|(name, cost, routed)| (name.as_str(), *cost, routed));
        let usual = (rival.missed == 0).then_some(("total-uncertainty", &rival.cost, &rival.routed));
        for (name, cost, routed) in rules.clone().chain(usual) {
            costs.push(name, cost.interval(weights));
            savings.push(name, cost.minus(&own.cost).interval(weights));
            limit.routed.push(name, routed.interval(weights));
            limit.spared.push(name, routed.minus(&own.routed).interval(weights));
        }
        // What is missed has no cost.
        let priced = choice && own.missed == 0;
        if !priced {
            (limit.routed, limit.spared) = (Named::new(), Named::new());
        }
        self.worth = Some(Worth {
            loss: own.loss.interval(weights),
            reducible: crossfit.reducible.interval(weights),
            ranking_saves: own.won.minus(&rival.won).interval(weights),
            correlation: None,
            gain: gains,
            gain_interval,
            gain_over_total_uncertainty: gain(1.0)
                .map(|scale| own.won.minus(&rival.won).interval(weights).scaled(scale)),
            costs: priced.then_some(costs),
            savings: priced.then_some(savings),
            limit: (self.task.is_limited()).then_some(limit),
        });
        if let Some(served) = &crossfit.routers[1] {
            self.weak_model.recalibrating_saves = [
                Some(own.loss.minus(&served.loss).interval(weights)),
                // A target loss looks at what is routed, not at what that costs.
                (priced && served.missed == 0 && !targeted).then(|| own.cost.minus(&served.cost).interval(weights)),
            ];
        }
        self.enough.stability = crossfit.stability.filter(|_| choice);
        for (plan, outcome) in plans.iter().zip(&crossfit.routers).filter(|(plan, _)| !plan.recalibrated) {
            let Some(outcome) = outcome else { continue };
            let kept = priced && outcome.missed == 0;
            let better = if kept {
                let (own, other) = if targeted { (&own.routed, &outcome.routed) } else { (&own.cost, &outcome.cost) };
                Some(own.minus(other).interval(weights))
            } else if priced {
                None
            } else {
                gain(1.0).map(|scale| outcome.won.minus(&own.won).interval(weights).scaled(scale))
            };
            let saves = if kept {
                let over = |(_, cost, routed): (&str, &Average, &Average)| {
                    let saved = if targeted { routed.minus(&outcome.routed) } else { cost.minus(&outcome.cost) };
                    saved.interval(weights)
                };
                rules.clone().chain(usual).map(over).min_by(|a, b| a.estimate.total_cmp(&b.estimate))
            } else if priced {
                None
            } else {
                gain(1.0).map(|scale| outcome.won.minus(&rival.won).interval(weights).scaled(scale))
            };
            self.enough.partitions.push(Compared {
                partition: plan.partition.to_string(),
                gain: gain(outcome.won.mean(weights)),
                cost: kept.then(|| outcome.cost.mean(weights)),
                routed: (kept && self.task.is_limited()).then(|| outcome.routed.mean(weights)),
                saves,
                better_by: better.filter(|_| !self.enough.partitions.is_empty()),
            });
        }
    }

    /// The rules that always do the same and keep to the task's limit, with what they cost and the share they route.
    fn always_allowed<'a>(&self, crossfit: &'a Crossfit) -> Vec<(String, &'a Average, Average)> {
        let (task, weights) = (&self.task, &crossfit.weights);
        let routes = task.routes.iter().map(|route| (format!("always-route:{}", route.name), Some(route.cost)));
        let names = [("always-predict".to_owned(), None)].into_iter().chain(routes);
        let names = names.chain(task.abstain.map(|_| ("always-abstain".to_owned(), None)));
        let keeps = |price: Option<f64>, cost: &Average| {
            let lost = || cost.mean(weights) - price.unwrap_or(0.0);
            (price.is_none() || task.budget.is_none_or(|most| most >= 1.0))
                && task.target_loss.is_none_or(|most| lost() <= most)
        };
        let kept = names.zip(&crossfit.always).filter(|((_, price), cost)| keeps(*price, cost));
        let routed = |price: Option<f64>| Average::constant(f64::from(u8::from(price.is_some())), weights.len());
        kept.map(|((name, price), cost)| (name, cost, routed(price))).collect()
    }
}

/// The area that the best order of all wins over a random one: from snapshot means shrunk until they vary as the truth does.
fn best_area(rows: &Table, loss: &Loss) -> f64 {
    let Some(estimates) = RowEstimates::fit(rows, loss) else { return 0.0 };
    let classes = rows.classes().len();
    let (mut point, mut served, mut losses) = (vec![0.0; classes], vec![0.0; classes], vec![0.0; classes]);
    let reducible: Vec<f64> = (0..rows.rows())
        .map(|row| {
            estimates.point_into(rows, row, &mut point);
            rows.dist_into(row, &mut served);
            loss.losses_into(&served, &mut losses);
            dot(&point, &losses) - loss.entropy(&point)
        })
        .collect();
    let weights: Vec<f64> = (0..rows.rows()).map(|row| rows.weight(row)).collect();
    let ranks = crossfit::ranks(&reducible, &weights);
    let won: Vec<f64> = reducible.iter().zip(&ranks).map(|(r, rank)| r * (0.5 - rank)).collect();
    let area = interval::mean(&won, &weights);
    if area > 1e-12 * loss.rounding() { area } else { 0.0 }
}

fn bounds(router: &Router, task: &Task) -> Result<Bounds> {
    let policy = router.policy(&task.clone().without_limit())?;
    // Bounds may not tell whether a target loss can be reached at all.
    let decided = |task: &Task| Some(1.0 - policy.reprice(task).ok()?.shares().get("undetermined").unwrap_or(&0.0));
    let (mut reducible, mut all) = ([0.0; 2], 0.0);
    for decision in (0..router.cells().count() as u32).filter_map(|cell| policy.cell(CellId(cell))) {
        let estimate = decision.estimate();
        let ends = estimate.reducible_bounds();
        reducible.iter_mut().zip(ends).for_each(|(sum, end)| *sum += estimate.weight * end);
        all += estimate.weight;
    }
    Ok(Bounds {
        reducible: reducible.map(|sum| sum / all),
        decided: Some(task).filter(|task| task.actions() > 1).and_then(decided),
    })
}
