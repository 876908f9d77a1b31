//! The worth of decomposition compared with simpler rules, from cross-fitted costs.

use super::crossfit::{Crossfit, Outcome, Plan};
use super::estimate::{Average, Estimate};
use super::{Compared, Diagnosis};
use crate::task::{Named, TaskSummary};

/// The worth of decomposition compared with simpler rules.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Worth {
    /// The loss per query of the weak prediction.
    pub loss: Estimate,
    /// The reducible part of it. No routing can save more than its upper end.
    pub reducible: Estimate,
    /// The loss per query that ranking by reducible loss saves over ranking by total uncertainty, averaged over all shares of the queries
    /// that may be routed.
    pub ranking_saves: Estimate,
    /// Correlation of reducible and total loss over cells, corrected for the noise of the estimates. Near 1, a ranking by total loss is as
    /// good, and so is total uncertainty if the model is calibrated.
    pub correlation: Option<f64>,
    /// Normalised gain of ranking by reducible loss (`higher-order`), by `total-uncertainty` and by the uncertainty of the re-calibrated
    /// prediction: 0 is random, 1 the best possible order, which is estimated as in [`Evaluation::corrected_gain`]. Unknown if no loss is
    /// reducible.
    ///
    /// [`Evaluation::corrected_gain`]: crate::Evaluation::corrected_gain
    pub gain: Named<Option<f64>>,
    /// The same gains with intervals, which include what the labels leave open of the best possible order.
    pub gain_interval: Named<Option<Estimate>>,
    /// The difference of the first two.
    pub gain_over_total_uncertainty: Option<Estimate>,
    /// Cost per query of `router`, `always-<action>` and `total-uncertainty` (the best thresholds on it, learned from the same rows);
    /// unknown if the task has only one action.
    pub costs: Option<Named<Estimate>>,
    /// The router's saving per query over each of the others.
    pub savings: Option<Named<Estimate>>,
    /// The shares routed, if the task has a budget or a target loss. Rules that do not keep the limit are left out of `costs`.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub limit: Option<AtLimit>,
}

/// Rules at a budget or target loss: on the held-out half each routes in its own order until the limit is reached.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct AtLimit {
    /// The share of the queries that each rule routes.
    pub routed: Named<Estimate>,
    /// The share of the queries that the router routes less than each of the others.
    pub spared: Named<Estimate>,
    /// The number of held-out halves, two per split, in which `router` and `total-uncertainty` miss the target loss at any share routed.
    pub missed: Named<usize>,
}

/// A simpler rule that keeps the task's limit.
struct SimplerRule<'a> {
    name: String,
    cost: &'a Average,
    routed: Average,
}

/// The router asked for and simpler rules, evaluated on the same rows.
struct Summary<'a> {
    crossfit: &'a Crossfit,
    own: &'a Outcome,
    simpler: Vec<SimplerRule<'a>>,
    /// The area that the best possible order wins over a random one.
    best: &'a Average,
    best_area: f64,
    /// Whether costs are compared: there is a choice of actions, and the router keeps the task's limit in every half.
    priced: bool,
    task: &'a TaskSummary,
}

impl Diagnosis {
    /// Adds the results of cross-fitting.
    pub(super) fn add_crossfit(&mut self, crossfit: &Crossfit, plans: &[Plan], has_choice: bool, negligible: f64) {
        let Some(own) = &crossfit.routers[0] else { return };
        let (weights, threshold) = (&crossfit.weights, &crossfit.threshold);
        // The ranking that wins most counts as the best possible.
        let rankings = crossfit.routers.iter().chain([&crossfit.recalibrated_uncertainty]).flatten().chain([threshold]);
        let wins = |order: &&Average| order.mean(weights);
        let orders = rankings.map(|outcome| &outcome.won).chain([&crossfit.best]);
        let best = orders.max_by(|a, b| wins(a).total_cmp(&wins(b))).unwrap_or(&crossfit.best);
        let best_area = Some(wins(&best)).filter(|area| *area > negligible).unwrap_or(0.0);
        let mut simpler = always_rules(&self.task, crossfit);
        if threshold.missed == 0 {
            let (name, routed) = ("total-uncertainty".to_owned(), threshold.routed.clone());
            simpler.push(SimplerRule { name, cost: &threshold.cost, routed });
        }
        let priced = has_choice && own.missed == 0;
        let summary = Summary { crossfit, own, simpler, best, best_area, priced, task: &self.task };
        let worth = summary.worth();
        if let Some(served) = &crossfit.routers[1] {
            let keeps_cost = priced && served.missed == 0 && !summary.has_target();
            self.weak_model.recalibrating_saves = [
                Some(own.loss.minus(&served.loss).interval(weights)),
                // Under a target loss rules are compared by the share routed, not by its cost.
                keeps_cost.then(|| own.cost.minus(&served.cost).interval(weights)),
            ];
            self.weak_model.recalibrated_partition = plans.get(1).map(|plan| plan.partition.to_string());
        }
        let outcomes = plans.iter().zip(&crossfit.routers).filter(|(plan, _)| !plan.recalibrated);
        let compared = outcomes.filter_map(|(plan, outcome)| Some(summary.compare(plan, outcome.as_ref()?)));
        let mut partitions: Vec<Compared> = compared.collect();
        // The first one is the partition asked for.
        partitions.iter_mut().take(1).for_each(|asked_for| asked_for.better_by = None);
        self.worth = Some(worth);
        self.enough.stability = crossfit.stability.filter(|_| has_choice);
        self.enough.partitions = partitions;
    }
}

impl Summary<'_> {
    fn has_target(&self) -> bool {
        self.task.target_loss.is_some()
    }

    fn interval(&self, value: &Average) -> Estimate {
        value.interval(&self.crossfit.weights)
    }

    /// The area won over a random ranking, as a part of what the best possible order wins.
    fn gain(&self, won: &Average) -> Option<f64> {
        (self.best_area > 0.0).then(|| won.mean(&self.crossfit.weights) / self.best_area)
    }

    fn gain_interval(&self, won: &Average) -> Option<Estimate> {
        let gain = self.gain(won)?;
        // A ratio A/B varies as (A − G B)/B does.
        let error = won.minus(&self.best.scaled(gain)).standard_error(&self.crossfit.weights);
        Some(Estimate::new(gain, error.hypot(gain * self.crossfit.best_open) / self.best_area))
    }

    fn worth(&self) -> Worth {
        let (own, threshold) = (self.own, &self.crossfit.threshold);
        let rankings = [
            ("higher-order", Some(own)),
            ("total-uncertainty", Some(threshold)),
            ("recalibrated-uncertainty", self.crossfit.recalibrated_uncertainty.as_ref()),
        ];
        let (mut gain, mut gain_interval) = (Named::new(), Named::new());
        for (name, outcome) in rankings.iter().filter_map(|(name, outcome)| Some((*name, (*outcome)?))) {
            gain.push(name, self.gain(&outcome.won));
            gain_interval.push(name, self.gain_interval(&outcome.won));
        }
        let (mut costs, mut savings, mut routed, mut spared) = (Named::new(), Named::new(), Named::new(), Named::new());
        // A rule that misses the limit has no cost.
        if self.priced {
            costs.push("router", self.interval(&own.cost));
            routed.push("router", self.interval(&own.routed));
            for rule in &self.simpler {
                costs.push(&rule.name, self.interval(rule.cost));
                savings.push(&rule.name, self.interval(&rule.cost.minus(&own.cost)));
                routed.push(&rule.name, self.interval(&rule.routed));
                spared.push(&rule.name, self.interval(&rule.routed.minus(&own.routed)));
            }
        }
        let mut missed = Named::new();
        missed.push("router", own.missed);
        missed.push("total-uncertainty", threshold.missed);
        let won_more = own.won.minus(&threshold.won);
        Worth {
            loss: self.interval(&own.loss),
            reducible: self.interval(&self.crossfit.reducible),
            ranking_saves: self.interval(&won_more),
            correlation: None,
            gain,
            gain_interval,
            gain_over_total_uncertainty: self.gain_interval(&won_more),
            costs: self.priced.then_some(costs),
            savings: self.priced.then_some(savings),
            limit: self.task.is_limited().then_some(AtLimit { routed, spared, missed }),
        }
    }

    /// Compares another partition with the one asked for and with the best simpler rule: by queries routed under a target loss, by cost if
    /// there are prices, otherwise by gain.
    fn compare(&self, plan: &Plan, outcome: &Outcome) -> Compared {
        let keeps_limit = self.priced && outcome.missed == 0;
        let (better_by, saves) = if keeps_limit {
            let value = if self.has_target() { &outcome.routed } else { &outcome.cost };
            let own = if self.has_target() { &self.own.routed } else { &self.own.cost };
            let over = |rule: &SimplerRule<'_>| {
                let other = if self.has_target() { &rule.routed } else { rule.cost };
                self.interval(&other.minus(value))
            };
            let least = self.simpler.iter().map(over).min_by(|a, b| a.estimate.total_cmp(&b.estimate));
            (Some(self.interval(&own.minus(value))), least)
        } else if self.priced {
            (None, None)
        } else {
            let gain_over = |other: &Average| self.gain_interval(&outcome.won.minus(other));
            (gain_over(&self.own.won), gain_over(&self.crossfit.threshold.won))
        };
        let weights = &self.crossfit.weights;
        Compared {
            partition: plan.partition.to_string(),
            gain: self.gain(&outcome.won),
            cost: keeps_limit.then(|| outcome.cost.mean(weights)),
            routed: (keeps_limit && self.task.is_limited()).then(|| outcome.routed.mean(weights)),
            saves,
            better_by,
        }
    }
}

/// The rules that always take one action and keep the task's limit.
fn always_rules<'a>(task: &TaskSummary, crossfit: &'a Crossfit) -> Vec<SimplerRule<'a>> {
    let weights = &crossfit.weights;
    let routes = task.routes.iter().map(|route| (format!("always-route:{}", route.name), Some(route.cost)));
    let names = [("always-predict".to_owned(), None)].into_iter().chain(routes);
    let names = names.chain(task.abstain.map(|_| ("always-abstain".to_owned(), None)));
    let keeps_limit = |price: Option<f64>, cost: &Average| {
        let loss = || cost.mean(weights) - price.unwrap_or(0.0);
        (price.is_none() || task.budget.is_none_or(|most| most >= 1.0))
            && task.target_loss.is_none_or(|most| loss() <= most)
    };
    let kept = names.zip(&crossfit.always).filter(|((_, price), cost)| keeps_limit(*price, cost));
    let routed = |price: Option<f64>| Average::constant(f64::from(u8::from(price.is_some())), weights.len());
    kept.map(|((name, price), cost)| SimplerRule { name, cost, routed: routed(price) }).collect()
}
