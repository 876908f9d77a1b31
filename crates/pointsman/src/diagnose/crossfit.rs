//! Cross-fitting: every row is evaluated by routers calibrated on other rows, over several random splits into halves.
//!
//! The true cost of a row is measured by its own labels, corrected for the bias of few labels within the cells of its half. All rules are
//! evaluated by the same costs, so differences are due to their decisions alone.

use super::estimate::Average;
use super::halves::Ordered;
use super::limited::{Held, Ranked, Rows};
use crate::error::Result;
use crate::evaluate::{BestOrder, Quantiles, RowCosts, Thresholds, area_by_row, spans};
use crate::parallel::prelude::*;
use crate::partition::Partition;
use crate::policy::Policy;
use crate::router::Router;
use crate::table::Table;
use crate::task::Task;

/// The number of splits into halves.
pub(super) const SPLITS: usize = 10;

/// The number of rows per half that each cell of the correction should have.
const ROWS_PER_CELL: usize = 40;

/// A router to evaluate: its partition, and whether centroids are served.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) partition: Partition,
    pub(super) recalibrated: bool,
}

/// The results of a rule, averaged over the splits.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    /// The cost per query.
    pub(super) cost: Average,
    /// The share routed.
    pub(super) routed: Average,
    /// The number of held-out halves in which it does not keep the task's limit.
    pub(super) missed: usize,
    /// The saving of its ranking over a random one: the area between their routing curves.
    pub(super) won: Average,
    /// The loss of always predicting with what it serves.
    pub(super) loss: Average,
}

/// The results of all rules on the same rows.
#[derive(Debug)]
pub(super) struct Crossfit {
    pub(super) weights: Vec<f64>,
    /// The cost of always taking each action.
    pub(super) always: Vec<Average>,
    /// The reducible loss of the weak prediction.
    pub(super) reducible: Average,
    /// The area that the best possible order wins over a random one, estimated as `evaluate` does with the first plan's router.
    pub(super) best: Average,
    /// What the labels leave open of it.
    pub(super) best_open: f64,
    /// Thresholds on total uncertainty, and the ranking by it.
    pub(super) threshold: Outcome,
    /// The ranking by the uncertainty of the predictions that the first re-calibrated plan serves.
    pub(super) recalibrated_uncertainty: Option<Outcome>,
    /// One per plan; `None` if it cannot be fitted to a half.
    pub(super) routers: Vec<Option<Outcome>>,
    /// The share of rows on which the routers of two halves, by the first plan, agree; unknown if one cannot keep the task's limit.
    pub(super) stability: Option<f64>,
}

/// The results of one split, one number per row each.
struct Split {
    always: Vec<Vec<f64>>,
    reducible: Vec<f64>,
    best: Vec<f64>,
    /// Half by half.
    best_open: [f64; 2],
    threshold: RowResults,
    recalibrated_uncertainty: Option<RowResults>,
    routers: Vec<Option<RowResults>>,
    agreeing: Option<f64>,
}

/// The results of a rule in one split.
#[derive(Clone)]
struct RowResults {
    cost: Vec<f64>,
    routed: Vec<f64>,
    missed: usize,
    won: Vec<f64>,
    loss: Vec<f64>,
}

/// The partition in which losses are corrected for the bias of few labels: the top class, with as many bins as the rows allow.
pub(super) fn correction_cells(rows: &Table) -> Partition {
    let bins = rows.rows() / 2 / ROWS_PER_CELL / rows.classes().len();
    Partition::top_class(bins.clamp(1, 10))
}

impl Crossfit {
    /// Evaluates the plans; the first one must fit the table. `None` if too few items have two labels.
    pub(super) fn fit(ordered: &Ordered, task: &Task, plans: &[Plan], done: impl Fn() + Sync) -> Result<Option<Self>> {
        let rows = &ordered.rows;
        let correction = correction_cells(rows);
        let splits: Vec<Option<Split>> = (0..SPLITS as u64)
            .into_par_iter()
            .map(|split| {
                let found = Split::fit(ordered, split, task, &correction, plans);
                done();
                found
            })
            .collect::<Result<_>>()?;
        let Some(splits) = splits.into_iter().collect::<Option<Vec<Split>>>() else { return Ok(None) };
        let weights: Vec<f64> = (0..rows.rows()).map(|row| rows.weight(row)).collect();
        let outcome = |pick: &dyn Fn(&Split) -> Option<&RowResults>| -> Option<Outcome> {
            let results: Vec<&RowResults> = splits.iter().map(pick).collect::<Option<_>>()?;
            let average = |value: fn(&RowResults) -> &[f64]| Average::over(results.iter().map(|j| value(j)), &weights);
            Some(Outcome {
                cost: average(|j| &j.cost),
                routed: average(|j| &j.routed),
                missed: results.iter().map(|j| j.missed).sum(),
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
            best: Average::over(splits.iter().map(|split| split.best.as_slice()), &weights),
            best_open: splits.iter().flat_map(|split| split.best_open).sum::<f64>() / (2 * SPLITS) as f64,
            threshold,
            recalibrated_uncertainty: outcome(&|split| split.recalibrated_uncertainty.as_ref()),
            routers,
            stability: splits.iter().map(|split| split.agreeing).sum::<Option<f64>>().map(|sum| sum / SPLITS as f64),
            weights,
        }))
    }
}

impl Split {
    fn fit(ordered: &Ordered, split: u64, task: &Task, correction: &Partition, plans: &[Plan]) -> Result<Option<Self>> {
        let halves = ordered.halves(split);
        let n = ordered.rows.rows();
        // Under a limit a router only gives the order of routing.
        let unlimited = task.clone().with_limit_as_price(0.0);
        let fit = |plan: &Plan, half: usize| -> Result<Policy> {
            let (router, _) = Router::calibrate_for_diagnosis(&halves[half].1, &plan.partition)?;
            if plan.recalibrated { router.recalibrated() } else { router }.policy(&unlimited)
        };
        let reference = Plan { partition: correction.clone(), recalibrated: false };
        let mut truths = Vec::new();
        for half in [0, 1] {
            let truth = Truth::measure(&fit(&reference, 1 - half)?, task, &halves[half].1)?;
            let Some(truth) = truth else { return Ok(None) };
            truths.push(truth);
        }
        let mut found = Self {
            always: vec![vec![0.0; n]; task.actions()],
            reducible: vec![0.0; n],
            best: vec![0.0; n],
            best_open: [0.0; 2],
            threshold: RowResults::zeros(n),
            recalibrated_uncertainty: None,
            routers: Vec::new(),
            agreeing: None,
        };
        for half in [0, 1] {
            found.add_threshold(task, &halves[half].0, &truths[half], &truths[1 - half]);
        }
        for (place, plan) in plans.iter().enumerate() {
            let policies = match [fit(plan, 0), fit(plan, 1)] {
                [Ok(a), Ok(b)] => [a, b],
                // The partition asked for must fit; those only compared need not.
                [Err(error), _] | [_, Err(error)] if place == 0 => return Err(error),
                _ => {
                    found.routers.push(None);
                    continue;
                }
            };
            found.add_router(task, plan, &policies, &halves, &truths)?;
            if place == 0 {
                for half in [0, 1] {
                    let (rows, table) = &halves[half];
                    found.add_best_order(half, rows, &policies[1 - half].replay(table)?.best_order());
                }
                // Half of the table may fail to keep a limit that the whole table can keep.
                let [first, second] = policies.map(|policy| policy.reprice(task));
                found.agreeing = first.ok().zip(second.ok()).map(|pair| agreeing(&ordered.rows, pair)).transpose()?;
            }
        }
        Ok(Some(found))
    }

    /// Adds constant actions and the thresholds learned from the other half.
    fn add_threshold(&mut self, task: &Task, rows: &[u32], truth: &Truth, other: &Truth) {
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
        truth.record(rows, held, &truth.uncertainty, &truth.total, &mut self.threshold);
        for (place, &row) in rows.iter().enumerate() {
            self.reducible[row as usize] = truth.total[place] - truth.irreducible[place];
            for (action, cost) in truth.costs[place].iter().enumerate() {
                self.always[action][row as usize] = *cost;
            }
        }
    }

    /// Adds the best possible order of one half's rows.
    fn add_best_order(&mut self, half: usize, rows: &[u32], best: &BestOrder) {
        self.best_open[half] = best.open;
        rows.iter().zip(best.area_by_row()).for_each(|(&row, area)| self.best[row as usize] = area);
    }

    /// Adds the routers of a plan, each evaluated on the other half.
    fn add_router(
        &mut self,
        task: &Task,
        plan: &Plan,
        policies: &[Policy; 2],
        halves: &[(Vec<u32>, Table); 2],
        truths: &[Truth],
    ) -> Result<()> {
        let n = self.reducible.len();
        let mut results = RowResults::zeros(n);
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
                    let ranked = Ranked::new(policy, replay.decisions(), task);
                    truth.rows(loss).keep(limit, |share| ranked.parts(share, &truth.weights))
                }
            };
            truth.record(rows, held, &replay.estimated_reducible(), loss, &mut results);
            if plan.recalibrated {
                let ranking = self.recalibrated_uncertainty.get_or_insert_with(|| RowResults::zeros(n));
                truth.record(rows, None, replay.uncertainties(), loss, ranking);
            }
        }
        self.routers.push(Some(results));
        Ok(())
    }
}

impl RowResults {
    fn zeros(n: usize) -> Self {
        let [cost, routed, won, loss] = [(); 4].map(|()| vec![0.0; n]);
        Self { cost, routed, missed: 0, won, loss }
    }
}

/// The true costs of the rows of one half.
struct Truth {
    weights: Vec<f64>,
    total: Vec<f64>,
    irreducible: Vec<f64>,
    uncertainty: Vec<f64>,
    /// One list per row, one cost per action, at the task's prices.
    costs: Vec<Vec<f64>>,
    /// The same at the prices by which rules are chosen under the task's limit.
    unlimited: Vec<Vec<f64>>,
    routes: usize,
}

impl Truth {
    fn measure(policy: &Policy, task: &Task, rows: &Table) -> Result<Option<Self>> {
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

    /// The results of a rule without a limit that loses `loss` where it predicts.
    fn taking(&self, loss: &[f64], action: impl Fn(usize) -> usize) -> Option<Held> {
        let taken: Vec<usize> = (0..loss.len()).map(action).collect();
        let cost =
            |(place, &action): (usize, &usize)| if action == 0 { loss[place] } else { self.costs[place][action] };
        let routed = |&action: &usize| f64::from(u8::from((1..=self.routes).contains(&action)));
        Some(Held { cost: taken.iter().enumerate().map(cost).collect(), routed: taken.iter().map(routed).collect() })
    }

    /// Records the results of a rule on this half; `loss` is its loss where it predicts.
    fn record(&self, rows: &[u32], held: Option<Held>, scores: &[f64], loss: &[f64], into: &mut RowResults) {
        let saved: Vec<f64> = self.total.iter().zip(&self.irreducible).map(|(total, least)| total - least).collect();
        let won = area_by_row(scores, &saved, &self.weights);
        into.missed += usize::from(held.is_none());
        for (place, &row) in rows.iter().enumerate() {
            let row = row as usize;
            if let Some(held) = &held {
                into.cost[row] = held.cost[place];
                into.routed[row] = held.routed[place];
            }
            into.won[row] = won[place];
            into.loss[row] = loss[place];
        }
    }
}

/// The weighted share of rows on which two policies of one task take the same action.
fn agreeing(rows: &Table, (first, second): (Policy, Policy)) -> Result<f64> {
    let actions = |policy: &Policy| -> Result<Vec<usize>> { Ok(policy.actions_of(&policy.decide_batch(rows)?)) };
    let taken = [actions(&first)?, actions(&second)?];
    let weight = |alike: bool| -> f64 {
        (0..rows.rows()).filter(|&row| !alike || taken[0][row] == taken[1][row]).map(|row| rows.weight(row)).sum()
    };
    Ok(weight(true) / weight(false))
}
