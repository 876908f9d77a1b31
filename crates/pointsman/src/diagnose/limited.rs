//! A limit on routing, kept by every rule alike.
//!
//! Rules that route unequally much cannot be compared at a limit, and what a rule learned from one half misses the limit on the
//! other by chance. So on the half that is judged every rule routes in the order it has learned until the limit is reached
//! there, the last queries by lot: exactly the budget, or just enough for the target loss.

use super::interval::mean;
use crate::policy::{Decisions, Policy};
use crate::task::{Limit, Task};

/// Places where a threshold may be, as shares of the traffic.
const CUTS: usize = 100;

/// Shares that are tried until a target loss is reached, and how often the step before that is halved.
const STEPS: (usize, usize) = (40, 12);

/// How far to either side of a limit its price is looked for, as a share of the traffic: single rows are noise.
const WINDOW: f64 = 0.05;

const NEGLIGIBLE: f64 = 1e-9;

/// What the rows of one half cost, a list a row and a number an action.
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

/// Which part of each row gets which action, row by row.
pub(super) struct Parts {
    actions: usize,
    parts: Vec<f64>,
}

/// Columns of [`COST`], [`LOSS`] and [`ROUTED`], a number a row.
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
        for (row, parts) in parts.parts.chunks_exact(parts.actions).enumerate() {
            let mut sums = [0.0; 3];
            for (action, &part) in parts.iter().enumerate().filter(|(_, part)| **part > 0.0) {
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
        Parts { actions: self.actions, parts }
    }
}

/// The usual rule at a limit: predict the most certain part of the traffic, ask or decline the rest. Thresholds are shares of the
/// traffic, so that what is learned from one half routes as much of the other.
pub(super) struct Quantiles {
    /// Costs of each action over the most certain 0 %, 1 %, … of the traffic that rules are learned from, a list a share.
    sums: Vec<Vec<f64>>,
    /// What the routes cost, which settles ties.
    prices: Vec<f64>,
}

/// What is done with a stretch of the traffic.
#[derive(Clone, Copy)]
struct Way {
    cost: f64,
    action: usize,
    routed: f64,
}

impl Quantiles {
    /// Learns from rows with these scores and costs, at the prices that rules go by.
    pub(super) fn of(scores: &[f64], costs: &[Vec<f64>], weights: &[f64], task: &Task) -> Self {
        let spans = spans(scores, weights);
        let mut sums = vec![vec![0.0; task.actions()]; CUTS + 1];
        for (row, &span) in spans.iter().enumerate() {
            let weight = weights[row];
            // All cuts beyond a row hold it whole; the few within its ties hold a part.
            for (cut, sum) in sums.iter_mut().enumerate().rev() {
                let part = part_before(cut as f64 / CUTS as f64, span);
                if part == 0.0 {
                    break;
                }
                sum.iter_mut().zip(&costs[row]).for_each(|(sum, cost)| *sum += part * weight * cost);
            }
        }
        Self { sums, prices: task.routes().iter().map(|route| route.price()).collect() }
    }

    /// The cost of an action over the most certain share.
    fn sum(&self, share: f64, action: usize) -> f64 {
        let place = (share * CUTS as f64).clamp(0.0, CUTS as f64);
        let (below, part) = (place.floor() as usize, place.fract());
        let above = (below + 1).min(CUTS);
        (1.0 - part) * self.sums[below][action] + part * self.sums[above][action]
    }

    /// The cheapest route from one share to another, and declining, each with what it routes.
    fn ways(&self, from: f64, to: f64) -> [Option<Way>; 2] {
        let cost = |action: usize| self.sum(to, action) - self.sum(from, action);
        let routes = (1..=self.prices.len()).map(|action| (cost(action), action));
        let price = |action: usize| self.prices[action - 1];
        let cheapest = routes.min_by(|a, b| a.0.total_cmp(&b.0).then(price(a.1).total_cmp(&price(b.1))));
        let declining = Some(self.prices.len() + 1).filter(|&action| action < self.sums[0].len());
        [
            cheapest.map(|(cost, action)| Way { cost, action, routed: to - from }),
            declining.map(|action| Way { cost: cost(action), action, routed: 0.0 }),
        ]
    }

    /// Two cuts and the actions before, between and behind them: of those that route no more than a share, the cheapest.
    fn rule(&self, share: f64) -> ([f64; 2], [usize; 3]) {
        let mut best = (self.sum(1.0, 0), ([1.0; 2], [0; 3]));
        let cuts: Vec<f64> = (0..=CUTS).map(|cut| cut as f64 / CUTS as f64).chain([1.0 - share]).collect();
        let behind: Vec<[Option<Way>; 2]> = cuts.iter().map(|&cut| self.ways(cut, 1.0)).collect();
        let declines = self.prices.len() + 1 < self.sums[0].len();
        // Above the first cut nothing is predicted: what may not be routed must be declined.
        for &first in cuts.iter().filter(|&&first| declines || 1.0 - first <= share + NEGLIGIBLE) {
            let predicted = self.sum(first, 0);
            let used_up = (first + share).min(1.0);
            let seconds = cuts.iter().copied().zip(behind.iter().copied());
            for (second, behind) in seconds.chain([(used_up, self.ways(used_up, 1.0))]).filter(|way| way.0 >= first) {
                for middle in self.ways(first, second).into_iter().flatten() {
                    for top in behind.into_iter().flatten() {
                        let cost = predicted + middle.cost + top.cost;
                        let kept = middle.routed + top.routed <= share + NEGLIGIBLE;
                        if kept && cost < best.0 - 1e-12 * best.0.abs() {
                            best = (cost, ([first, second], [0, middle.action, top.action]));
                        }
                    }
                }
            }
        }
        best.1
    }

    /// What the best rule that routes no more than a share does with rows of these [`spans`].
    pub(super) fn parts(&self, share: f64, spans: &[[f64; 2]]) -> Parts {
        let ([first, second], taken) = self.rule(share);
        let actions = self.sums[0].len();
        let mut parts = vec![0.0; spans.len() * actions];
        for (slots, &span) in parts.chunks_exact_mut(actions).zip(spans) {
            let mut before = 0.0;
            for (end, action) in [first, second, f64::INFINITY].into_iter().zip(taken) {
                let until = part_before(end, span);
                slots[action] += until - before;
                before = until;
            }
        }
        Parts { actions, parts }
    }
}

/// Which part of a stretch of the traffic comes before a cut.
fn part_before(cut: f64, [from, to]: [f64; 2]) -> f64 {
    // A weight may be too small beside the others to take up any of the traffic.
    if to > from { ((cut - from) / (to - from)).clamp(0.0, 1.0) } else { f64::from(u8::from(cut >= to)) }
}

/// Where each row lies in order of the scores, lowest first, as a stretch of the traffic; ties share theirs.
pub(super) fn spans(scores: &[f64], weights: &[f64]) -> Vec<[f64; 2]> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    let all: f64 = weights.iter().sum();
    let (mut spans, mut before) = (vec![[0.0; 2]; scores.len()], 0.0);
    for tied in order.chunk_by(|&a, &b| scores[a] == scores[b]) {
        let after = before + tied.iter().map(|&row| weights[row]).sum::<f64>();
        tied.iter().for_each(|&row| spans[row] = [before / all, after / all]);
        before = after;
    }
    spans
}
