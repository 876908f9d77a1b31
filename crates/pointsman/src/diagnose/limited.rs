//! Rules under a limit on routing, all at exactly that limit.
//!
//! Rules that route different shares cannot be compared under a limit, and a rule learned from one half misses the limit on the other half
//! by chance. So on the held-out half each rule routes in the order that it has learned until the limit is reached there, with a random
//! draw among the last queries: exactly the budget, or just enough for the target loss.

use super::estimate::mean;
use crate::evaluate::Parts;
use crate::policy::{Decisions, Policy};
use crate::task::{Limit, Task};

/// The number of shares that are tried until a target loss is reached.
const SHARES_TRIED: usize = 40;

/// The number of bisections between the share that reaches the target loss and the one before.
const BISECTIONS: usize = 12;

/// The shares on each side of a limit between which slopes are computed; differences of single rows would be noise.
const WINDOW: f64 = 0.05;

const NEGLIGIBLE: f64 = 1e-9;

/// The costs of the rows of one half: one list per row, one number per action.
pub(super) struct Rows<'a> {
    pub(super) weights: &'a [f64],
    /// At the task's prices, and at the prices by which rules are chosen, which are zero for routes under a target loss.
    pub(super) costs: [&'a [Vec<f64>]; 2],
    /// The loss of predicting by this rule, which may serve centroids instead of predictions.
    pub(super) loss: &'a [f64],
    pub(super) routes: usize,
}

/// The cost of a rule under the limit on each row, and the part of the row that it routes. Means are as measured; the rows are adjusted so
/// that they vary as estimates under a limit do.
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
    /// The results of a rule at exactly the limit; `rule` gives its actions for a share routed. `None` if it cannot keep the limit: the target
    /// loss is not reached, or more routing does not lower the loss there.
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
        // On other rows the rule would route more or less to keep its limit. This adjustment gives the rows that variance and leaves the
        // means unchanged.
        let Outcome(columns) = &found;
        let corrected = |column: usize| -> Vec<f64> {
            let slope = if binds && step != 0.0 { (above[column] - below[column]) / step } else { 0.0 };
            let values = columns[column].iter().zip(&columns[kept]);
            values.map(|(x, y)| x + slope * (here[kept] - y)).collect()
        };
        Some(Held { cost: corrected(COST), routed: corrected(ROUTED) })
    }

    /// The smallest share whose loss is at most `most`.
    fn least(&self, most: f64, loss: impl Fn(f64) -> f64) -> Option<f64> {
        let enough = |share: f64| loss(share) <= most + NEGLIGIBLE * most;
        let first = (0..=SHARES_TRIED).map(|step| step as f64 / SHARES_TRIED as f64).find(|&share| enough(share))?;
        let (mut low, mut high) = ((first - 1.0 / SHARES_TRIED as f64).max(0.0), first);
        for _ in 0..BISECTIONS {
            let middle = low.midpoint(high);
            *(if enough(middle) { &mut high } else { &mut low }) = middle;
        }
        Some(if first == 0.0 { 0.0 } else { high })
    }

    /// The results of a rule on each row.
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

/// Rows in the order in which a router would route them, without those that it would never route.
pub(super) struct Ranked {
    /// The action on each row if it is not routed, and if it is.
    actions_of_row: Vec<[usize; 2]>,
    /// Rows with the saving from routing them by the router's own estimate, largest first.
    order: Vec<(f64, usize)>,
    actions: usize,
}

impl Ranked {
    /// Ranks rows that `policy` has decided at the prices by which rules are chosen; `task` has the actual prices.
    pub(super) fn new(policy: &Policy, decisions: &Decisions, task: &Task) -> Self {
        let routes = task.routes();
        let actions = task.actions();
        let mut ranked = Self { actions_of_row: Vec::new(), order: Vec::new(), actions };
        for row in 0..decisions.len() {
            let decision = policy.row(decisions, row);
            // If costs are only bounded, the upper bound counts, as in a policy with a limit.
            let costs = decision.costs_high();
            let kept = if routes.len() + 1 < actions && costs[actions - 1] < costs[0] { actions - 1 } else { 0 };
            let route = (1..=routes.len())
                .min_by(|&a, &b| {
                    costs[a].total_cmp(&costs[b]).then(routes[a - 1].price().total_cmp(&routes[b - 1].price()))
                })
                .unwrap_or(kept);
            let gap = costs[kept] - costs[route];
            ranked.actions_of_row.push([kept, route]);
            if gap > 0.0 {
                ranked.order.push((gap, row));
            }
        }
        ranked.order.sort_by(|a, b| b.0.total_cmp(&a.0));
        ranked
    }

    pub(super) fn parts(&self, share: f64, weights: &[f64]) -> Parts {
        let mut parts = vec![0.0; self.actions_of_row.len() * self.actions];
        let mut left = share * weights.iter().sum::<f64>();
        let mut routed = vec![0.0; self.actions_of_row.len()];
        for tied in self.order.chunk_by(|a, b| a.0 == b.0) {
            let weight: f64 = tied.iter().map(|&(_, row)| weights[row]).sum();
            let part = (left / weight).clamp(0.0, 1.0);
            tied.iter().for_each(|&(_, row)| routed[row] = part);
            left -= weight;
        }
        for ((slots, &[kept, route]), part) in
            parts.chunks_exact_mut(self.actions).zip(&self.actions_of_row).zip(routed)
        {
            slots[kept] += 1.0 - part;
            slots[route] += part;
        }
        Parts::new(self.actions, parts)
    }
}
