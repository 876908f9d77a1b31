//! What a router saves against simple rules, on held-out rows.

use serde::Serialize;

use super::acts::Acts;
use super::{By, Replay, Thresholds, minus};
use crate::policy::Policy;

/// What the router saves per query against another rule. Standard errors are those of the paired differences; one row has none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Saving {
    /// The other rule's cost less the router's, in the loss's unit.
    pub estimate: f64,
    /// Its standard error.
    pub standard_error: Option<f64>,
    /// The same as a part of the other rule's cost; unknown if that is nothing.
    pub share: Option<f64>,
    /// The standard error of that part.
    pub share_standard_error: Option<f64>,
    /// Between what the estimate lies as far as the labels identify it, however many rows there are; standard errors come on top. `None`
    /// where nothing is left open.
    pub identified: Option<[f64; 2]>,
    /// The same as a part of the other rule's cost.
    pub share_identified: Option<[f64; 2]>,
}

impl Saving {
    /// From the costs of each row, corrected and by the other correction. `open` is how far the other rule's mean cost may be off beyond
    /// what the rows explain; `asked` how much more of each row the other rule routes to who knows the truth.
    pub(super) fn new(
        replay: &Replay,
        other: &[Vec<f64>; 2],
        router: &[Vec<f64>; 2],
        open: f64,
        asked: &dyn Fn(usize) -> f64,
    ) -> Self {
        let saved = minus(other, router);
        let (estimate, of_rows) = replay.mean_and_error(&saved);
        let standard_error = of_rows.map(|error| error.hypot(open));
        let cost = replay.mean(&|row| other[0][row]).0;
        let share = (cost > replay.negligible()).then(|| estimate / cost);
        let share_standard_error = share.and_then(|share| {
            // The part that rows save beyond their share of the cost.
            let beyond =
                |by: usize| saved[by].iter().zip(&other[by]).map(|(saved, cost)| saved - share * cost).collect();
            replay.mean_and_error(&[beyond(0), beyond(1)]).1.map(|error| error.hypot((1.0 - share) * open) / cost)
        });
        // What rows lose that only one of the two routes is open on its own.
        let [more, less] = [1.0, -1.0].map(|sign| replay.open(&|row| (sign * asked(row)).max(0.0)).unwrap_or([0.0; 2]));
        let identified = [estimate + more[0] - less[1], estimate + more[1] - less[0]];
        let identified = Some(identified).filter(|[low, high]| low < high);
        let share_identified = identified.filter(|_| share.is_some()).map(|ends| ends.map(|end| end / cost));
        Self { estimate, standard_error, share, share_standard_error, identified, share_identified }
    }
}

/// What the best thresholds on the uncertainty of the prediction cost.
pub(super) struct BestThreshold {
    /// On each row, corrected and by the other correction.
    pub(super) rows: [Vec<f64>; 2],
    /// Which part of each row is routed to who knows the truth.
    pub(super) asked: Vec<f64>,
    /// How far the mean may be off because the best thresholds are not known: half the difference between those chosen on the rows they
    /// are judged on and those chosen on others.
    pub(super) open: f64,
}

impl Replay {
    /// The best thresholds: halfway between those chosen on all rows and those chosen on the other folds. Under a limit the rule routes as
    /// much as the router does, the least certain rows first. `None` if there is nothing to choose.
    pub(super) fn best_threshold(&self, policy: &Policy, acts: &Acts<'_>) -> Option<BestThreshold> {
        let task = policy.task();
        if task.actions() < 2 || self.folds.is_empty() {
            return None;
        }
        if task.limit().is_some() {
            let (rows, asked) =
                self.least_certain_routed(policy, acts.share_of(|action| self.is_route(policy, action)));
            return Some(BestThreshold { rows, asked, open: 0.0 });
        }
        let costs: Vec<Vec<f64>> = (0..self.places.len())
            .map(|row| (0..task.actions()).map(|action| self.cost(policy, row, action, By::Corrected)).collect())
            .collect();
        let fit = |rows: &[usize]| {
            let pick = |values: &[f64]| rows.iter().map(|&row| values[row]).collect::<Vec<f64>>();
            let chosen: Vec<Vec<f64>> = rows.iter().map(|&row| costs[row].clone()).collect();
            Thresholds::fit(&pick(&self.uncertainty), &chosen, &pick(&self.weights))
        };
        let folds = self.folds.iter().max().map_or(0, |last| last + 1);
        let without = |fold: u32| (0..costs.len()).filter(|&row| self.folds[row] != fold).collect::<Vec<usize>>();
        let others: Vec<Thresholds> = (0..folds).map(|fold| fit(&without(fold))).collect();
        let own = fit(&(0..costs.len()).collect::<Vec<usize>>());
        // Chosen on the rows it is judged on, a threshold looks cheaper than the best there is, and chosen on other rows it is dearer, each
        // by about as much.
        let of = |rule: &Thresholds, row: usize, by| self.cost(policy, row, rule.action(self.uncertainty[row]), by);
        let elsewhere = |row: usize, by| of(&others[self.folds[row] as usize], row, by);
        let rows = self.each_row(&|row, by| f64::midpoint(of(&own, row, by), elsewhere(row, by)));
        let open = self.mean(&|row| elsewhere(row, By::Corrected) - of(&own, row, By::Corrected)).0.abs() / 2.0;
        let asks = |rule: &Thresholds, row: usize| policy.asked_part(rule.action(self.uncertainty[row]));
        let asked = (0..costs.len()).map(|row| asks(&own, row).midpoint(asks(&others[self.folds[row] as usize], row)));
        Some(BestThreshold { rows, asked: asked.collect(), open })
    }

    fn is_route(&self, policy: &Policy, action: usize) -> bool {
        (1..=policy.task().routes().len()).contains(&action)
    }

    /// What routing this share of the rows costs, the least certain first, to the route that costs the least on average; and which part of each is
    /// routed to who knows the truth.
    fn least_certain_routed(&self, policy: &Policy, share: f64) -> ([Vec<f64>; 2], Vec<f64>) {
        let mean = |action: usize| self.always(policy, action, By::Corrected);
        let routes = 1..=policy.task().routes().len();
        let route = routes.min_by(|&a, &b| mean(a).total_cmp(&mean(b))).unwrap_or(0);
        let mut order: Vec<usize> = (0..self.places.len()).collect();
        order.sort_by(|&a, &b| self.uncertainty[b].total_cmp(&self.uncertainty[a]));
        let mut left = share * self.weights.iter().sum::<f64>();
        let mut parts = vec![0.0; order.len()];
        for tied in order.chunk_by(|&a, &b| self.uncertainty[a] == self.uncertainty[b]) {
            let weight: f64 = tied.iter().map(|&row| self.weights[row]).sum();
            let part = if weight > 0.0 { (left / weight).clamp(0.0, 1.0) } else { 0.0 };
            tied.iter().for_each(|&row| parts[row] = part);
            left -= part * weight;
        }
        let rows = self.each_row(&|row, by| {
            let cost = |action: usize| self.cost(policy, row, action, by);
            parts[row] * cost(route) + (1.0 - parts[row]) * cost(0)
        });
        (rows, parts.iter().map(|part| part * policy.asked_part(route)).collect())
    }
}
