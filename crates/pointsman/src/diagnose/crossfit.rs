//! Every row judged by routers that have not seen it, over several random halvings.
//!
//! What a row really costs is measured on the half it is in: its labels, with the bias of few labels taken out cell by cell.
//! All rules are judged by that same measure, so that only what they do makes a difference.

use super::halves::Ordered;
use super::interval::Average;
use super::limited::{Held, Ranked, Rows};

use crate::error::Result;
use crate::evaluate::{Quantiles, RowCosts, Thresholds, spans};
use crate::parallel::prelude::*;
use crate::partition::Partition;
use crate::policy::Policy;
use crate::router::Router;
use crate::table::Table;
use crate::task::Task;

/// How often the table is halved.
pub(super) const SPLITS: usize = 10;

/// Rows that a cell of the measure should have in a half.
const MEASURE_ROWS: usize = 40;

/// A router to try: cells, and whether their centroids are served.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) partition: Partition,
    pub(super) recalibrated: bool,
}

/// What a rule does for the rows, averaged over the splits.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    /// Its cost per query, and the share it routes.
    pub(super) cost: Average,
    pub(super) routed: Average,
    /// In how many of the halves judged it does not keep to the task's limit.
    pub(super) missed: usize,
    /// What its order saves beyond a random one: the area between their routing curves.
    pub(super) won: Average,
    /// The loss of what it would serve, if it always predicted.
    pub(super) loss: Average,
}

/// All rules side by side.
#[derive(Debug)]
pub(super) struct Crossfit {
    pub(super) weights: Vec<f64>,
    /// Each action, whatever the row.
    pub(super) always: Vec<Average>,
    /// The reducible loss of the weak prediction.
    pub(super) reducible: Average,
    /// Thresholds on total uncertainty; ranking by it.
    pub(super) threshold: Outcome,
    /// Ranking by the uncertainty of what the first re-calibrated plan serves.
    pub(super) recalibrated_uncertainty: Option<Outcome>,
    /// One per plan; `None` if it cannot be fitted to a half.
    pub(super) routers: Vec<Option<Outcome>>,
    /// The share of rows on which the first plan's routers of two halves agree; unknown if one cannot keep to the task's limit.
    pub(super) stability: Option<f64>,
}

/// One split: one number per row for each of the above.
struct Split {
    always: Vec<Vec<f64>>,
    reducible: Vec<f64>,
    threshold: Judged,
    recalibrated_uncertainty: Option<Judged>,
    routers: Vec<Option<Judged>>,
    agreeing: Option<f64>,
}

#[derive(Clone)]
struct Judged {
    cost: Vec<f64>,
    routed: Vec<f64>,
    missed: usize,
    won: Vec<f64>,
    loss: Vec<f64>,
}

/// The cells in which the bias of few labels is taken out: classes, and as many confidences as rows allow.
pub(super) fn measure(rows: &Table) -> Partition {
    let bins = rows.rows() / 2 / MEASURE_ROWS / rows.classes().len();
    Partition::top_class(bins.clamp(1, 10))
}

impl Crossfit {
    /// Judges the plans; the first must be possible. `None` if too few items carry two labels.
    pub(super) fn of(ordered: &Ordered, task: &Task, plans: &[Plan], done: impl Fn() + Sync) -> Result<Option<Self>> {
        let rows = &ordered.rows;
        let measure = measure(rows);
        let splits: Vec<Option<Split>> = (0..SPLITS as u64)
            .into_par_iter()
            .map(|split| {
                let found = Split::of(ordered, split, task, &measure, plans);
                done();
                found
            })
            .collect::<Result<_>>()?;
        let Some(splits) = splits.into_iter().collect::<Option<Vec<Split>>>() else { return Ok(None) };
        let weights: Vec<f64> = (0..rows.rows()).map(|row| rows.weight(row)).collect();
        let outcome = |pick: &dyn Fn(&Split) -> Option<&Judged>| -> Option<Outcome> {
            let judged: Vec<&Judged> = splits.iter().map(pick).collect::<Option<_>>()?;
            let average = |value: fn(&Judged) -> &[f64]| Average::over(judged.iter().map(|j| value(j)), &weights);
            Some(Outcome {
                cost: average(|j| &j.cost),
                routed: average(|j| &j.routed),
                missed: judged.iter().map(|j| j.missed).sum(),
                won: average(|j| &j.won),
                loss: average(|j| &j.loss),
            })
        };
        let Some(threshold) = outcome(&|split| Some(&split.threshold)) else { return Ok(None) };
        let routers = (0..plans.len()).map(|plan| outcome(&|split| split.routers[plan].as_ref())).collect();
        let actions = splits.first().map_or(0, |split| split.always.len());
        let always =
            |action: usize| Average::over(splits.iter().map(|split| split.always[action].as_slice()), &weights);
        Ok(Some(Self {
            always: (0..actions).map(always).collect(),
            reducible: Average::over(splits.iter().map(|split| split.reducible.as_slice()), &weights),
            threshold,
            recalibrated_uncertainty: outcome(&|split| split.recalibrated_uncertainty.as_ref()),
            routers,
            stability: splits.iter().map(|split| split.agreeing).sum::<Option<f64>>().map(|sum| sum / SPLITS as f64),
            weights,
        }))
    }
}

impl Split {
    fn of(ordered: &Ordered, split: u64, task: &Task, measure: &Partition, plans: &[Plan]) -> Result<Option<Self>> {
        let halves = ordered.halves(split);
        let n = ordered.rows.rows();
        let actions = task.actions();
        // Under a limit routers only say in which order to route.
        let unlimited = task.clone().with_limit_as_price(0.0);
        let fit = |plan: &Plan, half: usize| -> Result<Policy> {
            let (router, _) = Router::calibrate_for_diagnosis(&halves[half].1, &plan.partition)?;
            if plan.recalibrated { router.recalibrated() } else { router }.policy(&unlimited)
        };
        let reference = Plan { partition: measure.clone(), recalibrated: false };
        let mut truths = Vec::new();
        for half in [0, 1] {
            let Some(truth) = Truth::of(&fit(&reference, 1 - half)?, task, &halves[half].1)? else { return Ok(None) };
            truths.push(truth);
        }
        let blank =
            || Judged { cost: vec![0.0; n], routed: vec![0.0; n], missed: 0, won: vec![0.0; n], loss: vec![0.0; n] };
        let mut found = Self {
            always: vec![vec![0.0; n]; actions],
            reducible: vec![0.0; n],
            threshold: blank(),
            recalibrated_uncertainty: None,
            routers: Vec::new(),
            agreeing: None,
        };
        for half in [0, 1] {
            let (truth, other, rows) = (&truths[half], &truths[1 - half], &halves[half].0);
            let held = match task.limit() {
                None => {
                    let rule = Thresholds::fit(&other.uncertainty, &other.costs, &other.weights);
                    truth.taking(&truth.total, |place| rule.action(truth.uncertainty[place]))
                }
                Some(limit) => {
                    let rule = Quantiles::fit(&other.uncertainty, &other.unlimited, &other.weights, task);
                    let spans = spans(&truth.uncertainty, &truth.weights);
                    truth.rows(&truth.total).keep(limit, |share| rule.parts(share, &spans))
                }
            };
            truth.judge(rows, held, &truth.uncertainty, &truth.total, &mut found.threshold);
            for (place, &row) in rows.iter().enumerate() {
                found.reducible[row as usize] = truth.total[place] - truth.irreducible[place];
                for (action, cost) in truth.costs[place].iter().enumerate() {
                    found.always[action][row as usize] = *cost;
                }
            }
        }
        for (place, plan) in plans.iter().enumerate() {
            let policies = match [fit(plan, 0), fit(plan, 1)] {
                [Ok(a), Ok(b)] => [a, b],
                // What was asked for must work; what is only compared may not fit.
                [Err(error), _] | [_, Err(error)] if place == 0 => return Err(error),
                _ => {
                    found.routers.push(None);
                    continue;
                }
            };
            let mut judged = blank();
            for half in [0, 1] {
                let policy = &policies[1 - half];
                let replay = policy.replay_uncorrected(&halves[half].1)?;
                let (truth, rows, loss) = (&truths[half], &halves[half].0, replay.total_losses());
                let held = match task.limit() {
                    None => {
                        let taken = replay.actions_of(policy);
                        truth.taking(loss, |place| taken[place])
                    }
                    Some(limit) => {
                        let ranked = Ranked::of(policy, replay.decisions(), task);
                        truth.rows(loss).keep(limit, |share| ranked.parts(share, &truth.weights))
                    }
                };
                truth.judge(rows, held, &replay.estimated_reducible(), loss, &mut judged);
                if plan.recalibrated {
                    let ranked = found.recalibrated_uncertainty.get_or_insert_with(blank);
                    truth.judge(rows, None, replay.uncertainties(), loss, ranked);
                }
            }
            if place == 0 {
                // A half by itself may not keep to a limit that the table as a whole can.
                let [first, second] = policies.map(|policy| policy.reprice(task));
                found.agreeing = first.ok().zip(second.ok()).map(|pair| agreeing(&ordered.rows, pair)).transpose()?;
            }
            found.routers.push(Some(judged));
        }
        Ok(Some(found))
    }
}

/// What the rows of one half really cost.
struct Truth {
    weights: Vec<f64>,
    total: Vec<f64>,
    irreducible: Vec<f64>,
    uncertainty: Vec<f64>,
    /// One list per row, one cost per action: at the task's prices, and with a limit at those the limit begins with.
    costs: Vec<Vec<f64>>,
    unlimited: Vec<Vec<f64>>,
    routes: usize,
}

impl Truth {
    fn of(policy: &Policy, task: &Task, rows: &Table) -> Result<Option<Self>> {
        let replay = policy.replay(rows)?;
        let Some(RowCosts { irreducible, actions }) = replay.corrected_rows(policy) else { return Ok(None) };
        let priced = policy.reprice(&task.clone().without_limit())?;
        Ok(Some(Self {
            weights: (0..rows.rows()).map(|row| rows.weight(row)).collect(),
            costs: replay.corrected_rows(&priced).map(|rows| rows.actions).unwrap_or_default(),
            unlimited: actions,
            routes: task.routes().len(),
            uncertainty: replay.uncertainties().to_vec(),
            total: replay.total_losses().to_vec(),
            irreducible,
        }))
    }

    /// The rows for a rule that loses `loss` where it predicts.
    fn rows<'a>(&'a self, loss: &'a [f64]) -> Rows<'a> {
        Rows { weights: &self.weights, costs: [&self.costs, &self.unlimited], loss, routes: self.routes }
    }

    /// What a rule without a limit does, which loses `loss` where it predicts.
    fn taking(&self, loss: &[f64], action: impl Fn(usize) -> usize) -> Option<Held> {
        let taken: Vec<usize> = (0..loss.len()).map(action).collect();
        let cost =
            |(place, &action): (usize, &usize)| if action == 0 { loss[place] } else { self.costs[place][action] };
        let routed = |&action: &usize| f64::from(u8::from((1..=self.routes).contains(&action)));
        Some(Held { cost: taken.iter().enumerate().map(cost).collect(), routed: taken.iter().map(routed).collect() })
    }

    /// Writes down what a rule costs and wins here; `loss` is what it loses where it predicts.
    fn judge(&self, rows: &[u32], held: Option<Held>, scores: &[f64], loss: &[f64], into: &mut Judged) {
        let ranks = ranks(scores, &self.weights);
        into.missed += usize::from(held.is_none());
        for (place, &row) in rows.iter().enumerate() {
            let row = row as usize;
            if let Some(held) = &held {
                into.cost[row] = held.cost[place];
                into.routed[row] = held.routed[place];
            }
            into.won[row] = (self.total[place] - self.irreducible[place]) * (0.5 - ranks[place]);
            into.loss[row] = loss[place];
        }
    }
}

/// Each row's place in order of the scores, highest first, as a share of the weight; ties share theirs.
pub(super) fn ranks(scores: &[f64], weights: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    let all: f64 = weights.iter().sum();
    let (mut ranks, mut before) = (vec![0.0; scores.len()], 0.0);
    for tied in order.chunk_by(|&a, &b| scores[a] == scores[b]) {
        let weight: f64 = tied.iter().map(|&row| weights[row]).sum();
        tied.iter().for_each(|&row| ranks[row] = (before + weight / 2.0) / all);
        before += weight;
    }
    ranks
}

/// The share of rows, by weight, on which two policies of one task take the same action.
fn agreeing(rows: &Table, (first, second): (Policy, Policy)) -> Result<f64> {
    let actions = |policy: &Policy| -> Result<Vec<usize>> { Ok(policy.actions_of(&policy.decide_batch(rows)?)) };
    let taken = [actions(&first)?, actions(&second)?];
    let weight = |alike: bool| -> f64 {
        (0..rows.rows()).filter(|&row| !alike || taken[0][row] == taken[1][row]).map(|row| rows.weight(row)).sum()
    };
    Ok(weight(true) / weight(false))
}
