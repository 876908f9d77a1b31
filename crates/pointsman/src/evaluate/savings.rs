//! Savings of a router over simple rules, on held-out rows.

use std::cmp::Ordering;

use super::taken_actions::TakenActions;
use super::{Basis, FirstRouted, Parts, Quantiles, Replay, Thresholds, minus, part_before, spans};
use crate::error::Result;
use crate::numeric::weighted::{Z_95, weighted_mean};
use crate::policy::Policy;
use crate::task::Limit;

/// The number of rows on which two rules must differ in cost for the interval of their difference to be reliable.
///
/// Rows on which both rules act alike say nothing about the difference. In simulations, 95 % intervals from 30 such rows cover the truth in
/// 91 % of cases, those from 20 in 90 %, from 10 in 85 % and from 5 in 78 %. Student's t hardly helps: costs are skewed, and few rows miss the
/// rare large ones.
pub const MIN_DIFFERING_ROWS: usize = 30;

/// The share of the rows, next to those that a threshold routes, from which the saving of the rows that it displaces is taken.
const DISPLACED_SHARE: f64 = 0.05;

/// The saving of the router over another rule, per query. Standard errors are those of paired differences; none for one row.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Saving {
    /// The other rule's cost per query, in the loss's unit.
    pub cost: f64,
    /// The standard error of that cost.
    pub cost_standard_error: Option<f64>,
    /// The saving: the other rule's cost minus the router's.
    pub estimate: f64,
    /// The standard error of the saving.
    pub standard_error: Option<f64>,
    /// The saving as a share of the other rule's cost; unknown if that is zero.
    pub share: Option<f64>,
    /// The standard error of the share.
    pub share_standard_error: Option<f64>,
    /// The bounds on the saving that labels identify with infinitely many rows; standard errors come on top. `None` if it is identified
    /// exactly.
    pub identified: Option<[f64; 2]>,
    /// The bounds on the share.
    pub share_identified: Option<[f64; 2]>,
    /// The effective number of rows on which the two rules differ in cost: the saving is estimated from these alone.
    pub differing_rows: usize,
}

impl Saving {
    /// Whether the interval is too narrow because the two rules differ on fewer than [`MIN_DIFFERING_ROWS`] rows.
    #[must_use]
    pub fn rests_on_few_rows(&self) -> bool {
        self.differing_rows < MIN_DIFFERING_ROWS
    }

    /// Whether the router costs less (`Greater`) or more (`Less`) than the other rule: by the 95 % interval, widened by what labels leave
    /// open. `None` if the sign is uncertain, or the rules differ on too few rows for an interval.
    #[must_use]
    pub fn certain_sign(&self) -> Option<Ordering> {
        let error = Z_95 * self.standard_error.filter(|_| !self.rests_on_few_rows())?;
        let [low, high] = self.identified.unwrap_or([self.estimate; 2]);
        if high + error < 0.0 {
            Some(Ordering::Less)
        } else if low - error > 0.0 {
            Some(Ordering::Greater)
        } else {
            None
        }
    }

    /// The saving from the costs of each row. `open` is a further uncertainty of the other rule's mean cost; the last argument gives the part
    /// of each row that the other rule and the router route to a Bayes-optimal oracle.
    pub(super) fn new(
        replay: &Replay,
        other: Priced<'_>,
        router: Priced<'_>,
        open: f64,
        [other_part, router_part]: [&dyn Fn(usize) -> f64; 2],
    ) -> Self {
        let (saved, priced) = (minus(other.rows, router.rows), minus(other.priced, router.priced));
        let estimate = replay.corrected_mean(&saved).mean;
        let standard_error = replay.corrected_mean(&priced).standard_error.map(|error| error.hypot(open));
        let cost = replay.corrected_mean(other.rows).mean;
        let cost_standard_error = replay.corrected_mean(other.priced).standard_error.map(|error| error.hypot(open));
        let share = (cost > replay.negligible()).then(|| estimate / cost);
        let share_standard_error = share.and_then(|share| {
            // The linearised ratio: each row's saving minus the share of its cost.
            let beyond = |by: usize| {
                let pairs = priced[by].iter().zip(&other.priced[by]);
                pairs.map(|(saved, cost)| saved - share * cost).collect()
            };
            let error = replay.corrected_mean(&[beyond(0), beyond(1)]).standard_error;
            error.map(|error| error.hypot((1.0 - share) * open) / cost)
        });
        let identified = replay.identify_difference(estimate, &|row| other_part(row) - router_part(row));
        let share_identified = identified.filter(|_| share.is_some()).map(|_| {
            // Rows that both route, that only the other rule routes, and that only the router routes. The share is monotone in each.
            let open = |bayes_part: &dyn Fn(usize) -> f64| replay.open(bayes_part).unwrap_or([0.0; 2]);
            let both = open(&|row| other_part(row).min(router_part(row)));
            let more = open(&|row| (other_part(row) - router_part(row)).max(0.0));
            let less = open(&|row| (router_part(row) - other_part(row)).max(0.0));
            let ends = |corner: usize| [both[corner & 1], more[corner >> 1 & 1], less[corner >> 2]];
            let shares = (0..8).map(ends).filter(|[both, more, _]| cost + both + more > replay.negligible());
            let shares = shares.map(|[both, more, less]| (estimate + more - less) / (cost + both + more));
            shares.fold(share.map_or([0.0; 2], |share| [share; 2]), |[low, high], x| [low.min(x), high.max(x)])
        });
        Self {
            cost,
            cost_standard_error,
            estimate,
            standard_error,
            share,
            share_standard_error,
            identified,
            share_identified,
            differing_rows: replay.effective_rows(|row| saved[0][row] != 0.0),
        }
    }
}

/// The costs of a rule on each row by both corrections, and those with prices of caps, from which standard errors are computed.
#[derive(Clone, Copy)]
pub(super) struct Priced<'a> {
    pub(super) rows: &'a [Vec<f64>; 2],
    pub(super) priced: &'a [Vec<f64>; 2],
}

/// The costs of the best thresholds on the uncertainty of the prediction.
pub(super) struct BestThreshold {
    /// The cost of each row by both corrections.
    pub(super) rows: [Vec<f64>; 2],
    /// These costs with the saving of displaced rows, if as much is routed as caps admit: a further row that is routed displaces one that is
    /// a little more certain.
    pub(super) priced: [Vec<f64>; 2],
    /// The part of each row that is routed to a Bayes-optimal oracle.
    pub(super) bayes_parts: Vec<f64>,
    /// The uncertainty of the mean because the best thresholds are unknown: half the difference between those chosen on the rows they are
    /// evaluated on and those chosen on other rows.
    pub(super) open: f64,
}

impl Replay {
    /// The best thresholds: the midpoint of the costs of those chosen on all rows and those chosen on the other folds. Under a limit they
    /// route at most [`share_to_route`](Self::share_to_route). `None` if there is only one action, or no folds. Also if caps are exceeded and
    /// there are several routes: a threshold that routes as much in all may send more to one of them than its cap, or less to another.
    pub(super) fn best_threshold(&self, policy: &Policy, taken: &TakenActions<'_>) -> Result<Option<BestThreshold>> {
        let (task, rows) = (policy.task(), self.places.len());
        let breaks_caps = taken.is_capped() && task.routes().len() > 1;
        if task.actions() < 2 || self.folds.is_empty() || breaks_caps {
            return Ok(None);
        }
        // Under a target loss, rules are chosen by losses without prices.
        let chosen_by = policy.reprice(&task.clone().with_limit_as_price(0.0))?;
        let costs: Vec<Vec<f64>> = (0..rows)
            .map(|row| (0..task.actions()).map(|action| self.cost(&chosen_by, row, action, Basis::Corrected)).collect())
            .collect();
        // Caps count rows.
        let counts = if taken.is_capped() { vec![1.0; rows] } else { self.weights.clone() };
        let (share, own_spans) = (self.share_to_route(policy, taken), spans(&self.uncertainty, &counts));
        let fit = |among: &[usize]| {
            let pick = |values: &[f64]| among.iter().map(|&row| values[row]).collect::<Vec<f64>>();
            let (scores, weights) = (pick(&self.uncertainty), pick(&self.weights));
            let costs: Vec<Vec<f64>> = among.iter().map(|&row| costs[row].clone()).collect();
            match share {
                None => {
                    let rule = Thresholds::fit(&scores, &costs, &weights);
                    Parts::from_actions(task.actions(), self.uncertainty.iter().map(|&score| rule.action(score)))
                }
                Some(share) => {
                    let spans = spans(&scores, &pick(&counts));
                    Quantiles::fit_with_spans(&spans, &costs, &weights, task).parts(share, &own_spans)
                }
            }
        };
        let folds = self.folds.iter().max().map_or(0, |last| last + 1);
        let without = |fold: u32| (0..rows).filter(|&row| self.folds[row] != fold).collect::<Vec<usize>>();
        let others: Vec<Parts> = (0..folds).map(|fold| fit(&without(fold))).collect();
        let own = fit(&(0..rows).collect::<Vec<usize>>());
        // A threshold chosen on the rows it is evaluated on appears cheaper than the best one, and a threshold chosen on other rows is more
        // expensive, by about the same amount.
        let mean = |rule: &Parts, row: usize, value: &dyn Fn(usize) -> f64| -> f64 {
            rule.of_row(row).map(|(action, part)| part * value(action)).sum()
        };
        let of = |rule: &Parts, row: usize, by| mean(rule, row, &|action| self.cost(policy, row, action, by));
        let other = |row: usize| &others[self.folds[row] as usize];
        let difference = |row: usize| of(other(row), row, Basis::Corrected) - of(&own, row, Basis::Corrected);
        let open = self.mean(&difference).mean.abs() / 2.0;
        let bayes_part = |rule: &Parts, row: usize| mean(rule, row, &|action| policy.bayes_part(action));
        let is_route = |action: usize| (1..=task.routes().len()).contains(&action);
        let routed = |rule: &Parts, row: usize| mean(rule, row, &|action| f64::from(u8::from(is_route(action))));
        let routed_share = |rule: &Parts| weighted_mean((0..rows).map(|row| (counts[row], routed(rule, row))));
        let saving = |rule: &Parts| match share.filter(|_| taken.is_capped()) {
            Some(share) if routed_share(rule) > share - 1e-9 => self.saving_of_displaced(policy, rule, &own_spans),
            _ => 0.0,
        };
        let (own_saving, other_savings) = (saving(&own), others.iter().map(saving).collect::<Vec<f64>>());
        let price = |rule: &Parts, row: usize, saving: f64| match saving {
            0.0 => 0.0,
            saving => routed(rule, row) * saving * taken.weight_of_displaced(row),
        };
        let prices = (0..rows).map(|row| {
            let saving = other_savings[self.folds[row] as usize];
            price(&own, row, own_saving).midpoint(price(other(row), row, saving))
        });
        let prices: Vec<f64> = prices.collect();
        let rows_of_both = self.each_row(&|row, by| f64::midpoint(of(&own, row, by), of(other(row), row, by)));
        let with_prices = |costs: &Vec<f64>| costs.iter().zip(&prices).map(|(cost, price)| cost + price).collect();
        Ok(Some(BestThreshold {
            priced: rows_of_both.each_ref().map(with_prices),
            rows: rows_of_both,
            bayes_parts: (0..rows).map(|row| bayes_part(&own, row).midpoint(bayes_part(other(row), row))).collect(),
            open,
        }))
    }

    /// What a threshold would save on the rows that a further routed row displaces, by the estimates that decide: those next to the ones that
    /// it routes.
    fn saving_of_displaced(&self, policy: &Policy, rule: &Parts, spans: &[[f64; 2]]) -> f64 {
        let Some(FirstRouted { cut, actions: [below, route] }) = rule.first_routed() else { return 0.0 };
        let part = |row: usize| part_before(cut, spans[row]) - part_before(cut - DISPLACED_SHARE, spans[row]);
        let saving = |row: usize| {
            let decision = policy.row(&self.decisions, row);
            decision.costs_high()[below] - decision.costs_high()[route]
        };
        let displaced = (0..spans.len()).filter(|&row| part(row) > 0.0);
        let mean = weighted_mean(displaced.map(|row| (part(row), saving(row))));
        if mean.is_finite() { mean } else { 0.0 }
    }

    /// The share of the rows that another rule may route under the task's limit or under caps, of their number under caps and else of their
    /// weight: as much as the router, or a whole budget that does not bind for the router. `None` without a limit, and with caps that are not
    /// exceeded.
    fn share_to_route(&self, policy: &Policy, taken: &TakenActions<'_>) -> Option<f64> {
        let routes = 1..=policy.task().routes().len();
        let is_route = |action: usize| f64::from(u8::from(routes.contains(&action)));
        let routed = taken.share_of(|action| routes.contains(&action));
        match policy.task().limit() {
            _ if taken.is_capped() => {
                let rows = self.places.len();
                Some((0..rows).map(|row| taken.action(row).mean(is_route)).sum::<f64>() / rows as f64)
            }
            Some(Limit::Budget(most)) if !policy.is_limit_binding() => Some(most.max(routed)),
            limit => limit.map(|_| routed),
        }
    }
}
