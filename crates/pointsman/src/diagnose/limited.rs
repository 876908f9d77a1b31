//! A limit on routing, kept by every rule alike.
//!
//! Rules that route unequally much cannot be compared at a limit, and what a rule learned from one half misses the limit on the
//! other by chance. So on the half that is judged every rule routes in the order it has learned until the limit is reached
//! there, the last queries by lot: exactly the budget, or just enough for the target loss.

use super::interval::mean;
use crate::evaluate::Parts;
use crate::policy::{Decisions, Policy};
use crate::task::{Limit, Task};

/// Shares that are tried until a target loss is reached, and how often the step before that is halved.
const STEPS: (usize, usize) = (40, 12);

/// How far to either side of a limit its price is looked for, as a share of the traffic: single rows are noise.
const WINDOW: f64 = 0.05;

const NEGLIGIBLE: f64 = 1e-9;

/// What the rows of one half cost, one list per row and one number per action.
pub(super) struct Rows<'a> {
    pub(super) weights: &'a [f64],
    /// At the task's prices, and at those that rules go by: under a target loss, none for the routes.
    pub(super) costs: [&'a [Vec<f64>]; 2],
    /// What predicting loses by this rule, which may serve something else than the query's own prediction.
    pub(super) loss: &'a [f64],
    pub(super) routes: usize,
}

/// What a rule that keeps to the limit costs on each row, and which part of the row it routes. Their means are what was measured; they
/// vary as estimates at a limit do.
pub(super) struct Held {
    pub(super) cost: Vec<f64>,
    pub(super) routed: Vec<f64>,
}

/// Columns of [`COST`], [`LOSS`] and [`ROUTED`], one number per row.
struct Outcome([Vec<f64>; 3]);

const COST: usize = 0;
const LOSS: usize = 1;
const ROUTED: usize = 2;

impl Rows<'_> {
    /// Lets a rule, which tells what it does if it may route a share, keep to the limit. `None` if it cannot: the target loss is
    /// not reached, or more routing does not lower the loss there.
    pub(super) fn keep(&self, limit: Limit, rule: impl Fn(f64) -> Parts) -> Option<Held> {
        let at = |share: f64| self.under(&rule(share));
        let means = |share: f64| self.means(&at(share));
        let share = match limit {
            Limit::Budget(most) => most,
            Limit::TargetLoss(most) => self.least(most, |share| means(share)[LOSS])?,
        };
        let found = at(share);
        let here = self.means(&found);
        let [below, above] = [(share - WINDOW).max(0.0), (share + WINDOW).min(1.0)].map(means);
        let (kept, binds) = match limit {
            Limit::Budget(_) => (ROUTED, above[ROUTED] > here[ROUTED] + NEGLIGIBLE),
            Limit::TargetLoss(_) => (LOSS, share > 0.0),
        };
        let step = above[kept] - below[kept];
        if binds && kept == LOSS && step >= 0.0 {
            return None;
        }
        // Had other rows been drawn, the rule would have gone further or less far to keep to its limit. What that
        // costs is not in the rows one by one; it moves none of the means.
        let Outcome(columns) = &found;
        let corrected = |column: usize| -> Vec<f64> {
            let slope = if binds && step != 0.0 { (above[column] - below[column]) / step } else { 0.0 };
            let values = columns[column].iter().zip(&columns[kept]);
            values.map(|(x, y)| x + slope * (here[kept] - y)).collect()
        };
        Some(Held { cost: corrected(COST), routed: corrected(ROUTED) })
    }

    /// The least share whose loss is at most that.
    fn least(&self, most: f64, loss: impl Fn(f64) -> f64) -> Option<f64> {
        let enough = |share: f64| loss(share) <= most + NEGLIGIBLE * most;
        let first = (0..=STEPS.0).map(|step| step as f64 / STEPS.0 as f64).find(|&share| enough(share))?;
        let (mut low, mut high) = ((first - 1.0 / STEPS.0 as f64).max(0.0), first);
        for _ in 0..STEPS.1 {
            let middle = low.midpoint(high);
            *(if enough(middle) { &mut high } else { &mut low }) = middle;
        }
        Some(if first == 0.0 { 0.0 } else { high })
    }

    fn under(&self, parts: &Parts) -> Outcome {
        let mut columns = [(); 3].map(|()| Vec::with_capacity(self.weights.len()));
        for row in 0..self.weights.len() {
            let mut sums = [0.0; 3];
            for (action, part) in parts.of_row(row) {
                let cost = |prices: usize| if action == 0 { self.loss[row] } else { self.costs[prices][row][action] };
                sums[COST] += part * cost(0);
                sums[LOSS] += part * cost(1);
                sums[ROUTED] += if (1..=self.routes).contains(&action) { part } else { 0.0 };
            }
            columns.iter_mut().zip(sums).for_each(|(column, sum)| column.push(sum));
        }
        Outcome(columns)
    }

    fn means(&self, Outcome(columns): &Outcome) -> [f64; 3] {
        columns.each_ref().map(|column| mean(column, self.weights))
    }
}

/// Rows in the order in which a router would route them, those left out that it never would.
pub(super) struct Ranked {
    /// What is done with each row if it is not routed, and where it goes if it is.
    courses: Vec<[usize; 2]>,
    /// Rows with what routing them saves by the router's own estimate, most first.
    order: Vec<(f64, usize)>,
    actions: usize,
}

impl Ranked {
    /// `policy` has decided the rows at the prices that rules go by, and `task` has its own.
    pub(super) fn of(policy: &Policy, decisions: &Decisions, task: &Task) -> Self {
        let routes = task.routes();
        let actions = task.actions();
        let mut ranked = Self { courses: Vec::new(), order: Vec::new(), actions };
        for row in 0..decisions.len() {
            let decision = policy.row(decisions, row);
            // Where only bounds are known the dearer end of a route counts, as it does in a limited policy.
            let costs = decision.costs_high();
            let kept = if routes.len() + 1 < actions && costs[actions - 1] < costs[0] { actions - 1 } else { 0 };
            let route = (1..=routes.len())
                .min_by(|&a, &b| {
                    costs[a].total_cmp(&costs[b]).then(routes[a - 1].price().total_cmp(&routes[b - 1].price()))
                })
                .unwrap_or(kept);
            let gap = costs[kept] - costs[route];
            ranked.courses.push([kept, route]);
            if gap > 0.0 {
                ranked.order.push((gap, row));
            }
        }
        ranked.order.sort_by(|a, b| b.0.total_cmp(&a.0));
        ranked
    }

    pub(super) fn parts(&self, share: f64, weights: &[f64]) -> Parts {
        let mut parts = vec![0.0; self.courses.len() * self.actions];
        let mut left = share * weights.iter().sum::<f64>();
        let mut routed = vec![0.0; self.courses.len()];
        for tied in self.order.chunk_by(|a, b| a.0 == b.0) {
            let weight: f64 = tied.iter().map(|&(_, row)| weights[row]).sum();
            let part = (left / weight).clamp(0.0, 1.0);
            tied.iter().for_each(|&(_, row)| routed[row] = part);
            left -= weight;
        }
        for ((slots, &[kept, route]), part) in parts.chunks_exact_mut(self.actions).zip(&self.courses).zip(routed) {
            slots[kept] += 1.0 - part;
            slots[route] += part;
        }
        Parts::new(self.actions, parts)
    }
}
