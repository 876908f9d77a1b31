//! Limits on routing, expressed as a price λ ≥ 0.
//!
//! A **budget** adds the same surcharge λ to the price of every route, which changes neither the best route of a query nor its best
//! action without routing. A **target loss** asks for the least routing at any price: every route has the same price λ instead of its
//! own, so a query goes to the route with the least loss, and route prices only break ties. In both cases a query is routed if its gap,
//! the cost of its best other action minus that of its best route at λ = 0, exceeds λ. Of the queries whose gap equals λ, the marginal
//! ones, a random part is routed. Routing by gap is optimal: no other rule that routes the same share costs, or loses, less.

use super::choose::cheapest_known;
use super::cutoff::{Cutoff, Unit};
use super::decision::QueryCosts;
use super::promise::with_slack;
use super::{Decisions, KEPT, Policy, TIE, UNDETERMINED, Verdict, choose};
use crate::error::{Result, TaskError};
use crate::estimate::GroupLosses;
use crate::numeric::mix::{mix, uniform};
use crate::table::simplex::Real;
use crate::task::{Limit, Task, Ties};

/// The price that enforces a limit, and its effect.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Surcharge {
    /// With a budget, the amount added to the price of every route; with a target loss, the price of every route instead of its own.
    pub price: f64,
    /// The part of the marginal queries, for which routing and not routing cost the same, that is routed.
    pub marginal: f64,
    /// The share of queries like the calibration rows that is marginal; zero if all or none of them are routed.
    pub at_margin: f64,
    /// The share of queries like the calibration rows that is routed.
    pub share: f64,
    /// The standard error of the share.
    pub share_standard_error: f64,
    /// The expected loss of all queries, without prices of routes; abstaining loses its price. Estimated from held-out rows, as in
    /// [`Promise`](super::Promise).
    pub loss: f64,
    /// The standard error of the loss.
    pub loss_standard_error: f64,
    /// The bounds on the loss that the labels identify; `None` if they identify it exactly.
    pub loss_identified: Option<[f64; 2]>,
}

impl Policy {
    /// Finds the price that enforces a limit, and decides all sources at that price.
    ///
    /// The price is found from the calibration rows unless the cutoff is given. If only bounds of a route's cost are known, the upper bound counts, so that routed queries are certain to gain.
    pub(super) fn keep_within(&mut self, limit: Limit, cutoff: Option<Cutoff>) -> Result<()> {
        if self.task.routes().is_empty() {
            return Err(TaskError::LimitWithoutRoute.into());
        }
        let largest = self.high.iter().copied().fold(0.0, f64::max);
        self.tie = TIE * self.task.loss().rounding().max(largest);
        let found = match cutoff {
            Some(found) => found,
            None => self.find_cutoff(limit)?,
        };
        self.priced = Some(self.task.clone().with_limit_as_price(found.price));
        self.cutoff = Some(found);
        self.kept.resize(self.codes.len(), UNDETERMINED);
        for source in 0..self.codes.len() {
            if let Some(estimate) = &self.estimates.sources[source] {
                let [low, high] = self.costs_at(self.priced(), estimate.losses());
                (self.codes[source], self.kept[source], self.margins[source]) = self.decide_costs(&low, &high);
            }
        }
        Ok(())
    }

    /// Finds the cutoff for a limit from the calibration rows.
    ///
    /// A cell's share of the traffic does not depend on labels, so a budget is found from the cells themselves. Losses do depend on
    /// labels, so the share that reaches a target loss is found from held-out rows. In a forest all rows are held out, because decisions
    /// on them would otherwise depend on their own labels.
    fn find_cutoff(&self, limit: Limit) -> Result<Cutoff> {
        let task = self.at_no_price();
        let find = |limit: Limit, units: &[Unit]| Cutoff::find(limit, units, self.tie);
        if matches!(limit, Limit::TargetLoss(_)) && self.router().is_none() {
            return Err(TaskError::LimitNeedsRows.into());
        }
        let cells = self.units_of_budget(&task)?;
        match limit {
            _ if self.has_forest() => find(limit, &cells),
            Limit::Budget(_) => find(limit, &cells),
            Limit::TargetLoss(_) => match self.all_units(&task, self.held_out()) {
                None => find(limit, &cells),
                Some(units) => {
                    // At most the share that the cells' own estimates route at λ = 0.
                    let most = find(Limit::Budget(1.0), &cells)?.share;
                    let within = find(Limit::Budget(most), &units)?;
                    let divided = |unit: &Unit| {
                        let part = within.part_of(unit, self.tie);
                        let rest = Unit { weight: (1.0 - part) * unit.weight, worth: false, ..*unit };
                        [Unit { weight: part * unit.weight, ..*unit }, rest]
                    };
                    let units: Vec<Unit> = units.iter().flat_map(divided).filter(|unit| unit.weight > 0.0).collect();
                    let Cutoff { share, loss, .. } = find(limit, &units)?;
                    Ok(Cutoff { loss, ..find(Limit::Budget(share), &cells)? })
                }
            },
        }
    }

    /// The units by which a budget is found: cells or, in a forest, held-out rows.
    pub(super) fn units_of_budget(&self, task: &Task) -> Result<Vec<Unit>> {
        if self.has_forest() {
            if self.router().is_none() {
                return Err(TaskError::LimitNeedsRows.into());
            }
            return Ok(self.all_units(task, self.held_out()).ok_or(TaskError::NoHeldOutTrees)?);
        }
        let cells = self.estimates.sources[..self.cells.count()].iter().flatten().map(|estimate| {
            let [low, high] = self.costs_at(task, estimate.losses());
            self.unit(task, estimate.weight, [&low, &high], &high)
        });
        Ok(cells.collect())
    }

    /// The task with its limit replaced by a price of zero.
    pub(super) fn at_no_price(&self) -> Task {
        self.task.clone().with_limit_as_price(0.0)
    }

    /// Lower and upper ends of the costs of all actions at a task's prices.
    pub(super) fn costs_at(&self, task: &Task, losses: GroupLosses<'_>) -> [Vec<f64>; 2] {
        let [mut low, mut high] = [(); 2].map(|()| vec![0.0; self.actions()]);
        self.fill_costs(task, losses, &mut low, &mut high);
        [low, high]
    }

    /// The best action that is not a route, and the best route.
    pub(super) fn alternatives(&self, costs: &[f64]) -> [usize; 2] {
        let (routes, last) = (self.task.routes(), costs.len() - 1);
        let paper = self.task.chosen_ties() == Ties::Paper;
        let abstains = last > routes.len() && costs[last] < costs[0] + if paper { self.tie } else { -self.tie };
        // Under a target loss all routes have one price, so equal costs are ordered by the routes' own prices.
        let targeted = matches!(self.task.limit(), Some(Limit::TargetLoss(_)));
        let better = |one: usize, two: usize| {
            let cheaper = routes[one - 1].price() < routes[two - 1].price();
            costs[one] < costs[two] - self.tie || targeted && cheaper && costs[one] <= costs[two] + self.tie
        };
        let route = (2..=routes.len()).fold(1, |best, route| if better(route, best) { route } else { best });
        [if abstains { last } else { 0 }, route]
    }

    /// The unit of queries that are decided by the costs `[low, high]` at λ = 0 and have the actual costs `real`.
    pub(super) fn unit(&self, task: &Task, weight: f64, [low, high]: [&[f64]; 2], real: &[f64]) -> Unit {
        let actions = self.alternatives(high);
        let [kept, route] = actions;
        let gap = high[kept] - high[route];
        let worth = gap > self.tie || gap >= -self.tie && self.is_free_route(choose(low, high, task).0);
        Unit { weight, gap, worth, kept: real[kept], routed: real[route] - task.routes()[route - 1].price(), actions }
    }

    /// Whether a tie at λ = 0 is won by a route. Under a target loss it never is, because routing saves nothing.
    fn is_free_route(&self, code: u8) -> bool {
        matches!(self.task.limit(), Some(Limit::Budget(_)))
            && (1..=self.task.routes().len()).contains(&usize::from(code))
    }

    /// Decides queries with these costs, which include the limit's price: the action, the action if the random draw falls against
    /// routing, and the margin of the first over any other.
    #[inline]
    pub(super) fn decide_costs(&self, low: &[f64], high: &[f64]) -> (u8, u8, f64) {
        let (code, margin) = choose(low, high, self.priced());
        match &self.cutoff {
            None => (code, code, margin),
            Some(cutoff) => self.decide_at_cutoff(cutoff, high, code, margin),
        }
    }

    /// The action on queries with these costs, which include the limit's price, and whether it is determined; if not, the action that is
    /// assumed.
    pub(super) fn action_at(&self, [low, high]: [&[f64]; 2]) -> (bool, MixedAction) {
        match self.decide_costs(low, high) {
            (UNDETERMINED, ..) => (false, MixedAction::always(self.assumed_action([low, high]))),
            (code, kept, _) => {
                let part = self.cutoff.map_or(1.0, |cutoff| cutoff.marginal);
                (true, MixedAction::either(code.into(), kept.into(), part))
            }
        }
    }

    /// The action that is assumed if costs do not determine one: the cheapest whose cost is known, which is predicting, abstaining or a
    /// measured oracle. With a limit it is no route, since the queries may not be worth one.
    pub(crate) fn assumed_action(&self, [low, high]: [&[f64]; 2]) -> usize {
        if self.has_limit() { self.alternatives(high)[0] } else { cheapest_known(low, high) }
    }

    fn decide_at_cutoff(&self, cutoff: &Cutoff, costs: &[f64], code: u8, margin: f64) -> (u8, u8, f64) {
        let [kept, route] = self.alternatives(costs);
        let over = costs[kept] - costs[route];
        let always = |action: usize| {
            let others = (0..costs.len()).filter(|&other| other != action).map(|other| costs[other] - costs[action]);
            let lead = if usize::from(code) == action { margin } else { others.fold(f64::INFINITY, f64::min).max(0.0) };
            (action as u8, action as u8, lead)
        };
        // If nothing may be routed, this holds also for a query that gains more than any calibration row.
        if cutoff.share == 0.0 && cutoff.marginal == 0.0 {
            return always(kept);
        }
        if over > self.tie {
            return always(route);
        }
        // Costs whose bounds leave the decision open stay undetermined.
        if over < -self.tie {
            return (code, code, margin);
        }
        if cutoff.price == 0.0 && !self.is_free_route(code) {
            return if code == UNDETERMINED { (code, code, margin) } else { always(kept) };
        }
        // A part of 0 or 1 needs no random draw.
        match cutoff.marginal {
            0.0 => (kept as u8, kept as u8, 0.0),
            1.0 => (route as u8, route as u8, 0.0),
            _ => (route as u8, kept as u8, 0.0),
        }
    }

    /// The task by whose prices queries are decided: the policy's task, with its limit replaced by prices.
    #[inline]
    pub(super) fn priced(&self) -> &Task {
        self.priced.as_ref().unwrap_or(&self.task)
    }

    /// The price that enforces the task's limit on routing, if it has one.
    #[must_use]
    pub fn surcharge(&self) -> Option<Surcharge> {
        if let Some(figures) = &self.figures {
            return figures.surcharge;
        }
        let Cutoff { price, marginal, at_margin, share, loss } = self.cutoff?;
        let judged = self.judge_rows();
        let held_out = judged.as_ref().map(|judged| [judged.loss.mean(), self.standard_errors()[1]]);
        let [loss, loss_standard_error] = held_out.unwrap_or([loss, f64::NAN]);
        let known = judged.as_ref().filter(|judged| judged.known > 0.0);
        let open = known.and_then(|judged| with_slack(self.open(), judged.mean_slack()));
        let loss_identified = open.map(|ends| ends.map(|end| loss + end));
        let rows = judged.map_or(f64::NAN, |judged| judged.loss.effective_rows());
        let share_standard_error = (share * (1.0 - share) / rows).max(0.0).sqrt();
        Some(Surcharge {
            price,
            marginal,
            at_margin,
            share,
            share_standard_error,
            loss,
            loss_standard_error,
            loss_identified,
        })
    }

    /// The price of [`surcharge`](Self::surcharge) alone, which does not evaluate held-out rows.
    #[must_use]
    pub fn surcharge_price(&self) -> Option<f64> {
        self.cutoff.map(|cutoff| cutoff.price)
    }

    /// The amount that a limit on routing adds to the price of an action.
    pub(crate) fn surcharge_on(&self, action: usize) -> f64 {
        let price = |task: &Task| task.routes().get(action.wrapping_sub(1)).map_or(0.0, |route| route.price());
        price(self.priced()) - price(&self.task)
    }

    /// Whether the task limits routing.
    #[inline]
    pub(super) fn has_limit(&self) -> bool {
        self.cutoff.is_some()
    }

    /// Whether more would be routed without the limit.
    pub(crate) fn is_limit_binding(&self) -> bool {
        self.cutoff.is_some_and(|cutoff| cutoff.price > 0.0 || cutoff.marginal < 1.0)
    }

    /// The task with its limit replaced by prices: every route at the price by which queries are decided, and no limit.
    #[must_use]
    pub fn priced_task(&self) -> Task {
        self.priced().clone()
    }

    /// The part of a source's queries that is routed if the source is marginal; `None` if it is not.
    pub(super) fn marginal_share(&self, source: u32) -> Option<f64> {
        let at = source as usize;
        let marginal = self.cutoff.as_ref()?.marginal;
        (self.kept[at] != self.codes[at]).then_some(marginal)
    }

    /// Makes the random draw for a query at the margin of a limit, seeded by its content.
    #[inline]
    pub(super) fn draw<T: Real>(&self, verdict: Verdict, prediction: &[T], features: &[f64]) -> Verdict {
        if !self.has_limit() {
            return verdict;
        }
        self.draw_verdict(verdict, || uniform_draw(content(prediction, features)))
    }

    /// The verdict on a row of a batch with its random draw, if it has one.
    pub(super) fn draw_row(&self, decisions: &Decisions, row: usize, draw: impl FnOnce() -> f64) -> Verdict {
        let verdict = decisions.verdict(row);
        let Some(losses) = &decisions.losses else { return self.draw_verdict(verdict, draw) };
        let falls_against = self.draw_falls_against(&self.price(losses.row(row)), draw);
        if falls_against { Verdict(verdict.0 | KEPT) } else { verdict }
    }

    fn draw_verdict(&self, verdict: Verdict, draw: impl FnOnce() -> f64) -> Verdict {
        match self.marginal_share(self.unfold(verdict).1) {
            Some(part) if draw() >= part => Verdict(verdict.0 | KEPT),
            _ => verdict,
        }
    }

    /// Whether the random draw of a query with its own costs falls against routing, if it has one.
    pub(super) fn draw_falls_against(&self, own: &QueryCosts, draw: impl FnOnce() -> f64) -> bool {
        own.code != own.kept && self.cutoff.is_some_and(|cutoff| draw() >= cutoff.marginal)
    }
}

/// The bits of a query, with predictions in single precision, in which all input formats agree.
pub(super) fn content<T: Real>(prediction: &[T], features: &[f64]) -> impl Iterator<Item = u64> {
    let entries = prediction.iter().map(|x| u64::from(x.to_f32().to_bits()));
    entries.chain(features.iter().map(|x| x.to_bits()))
}

/// The action of a source's queries: one action or, at the margin of a limit, a random choice between two.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MixedAction {
    action: usize,
    otherwise: usize,
    /// The part of the queries that gets `action`.
    part: f64,
}

impl MixedAction {
    pub(crate) fn always(action: usize) -> Self {
        Self { action, otherwise: action, part: 1.0 }
    }

    pub(crate) fn either(action: usize, otherwise: usize, part: f64) -> Self {
        if action == otherwise { Self::always(action) } else { Self { action, otherwise, part } }
    }

    /// The two actions, which are equal if there is no random choice.
    pub(crate) fn actions(self) -> [usize; 2] {
        [self.action, self.otherwise]
    }

    /// The expectation of a value that depends on the action.
    pub(crate) fn mean(self, value: impl Fn(usize) -> f64) -> f64 {
        if self.part == 1.0 {
            return value(self.action);
        }
        self.part * value(self.action) + (1.0 - self.part) * value(self.otherwise)
    }

    /// The part of the queries that gets an action.
    pub(crate) fn part_of(self, action: usize) -> f64 {
        self.mean(|taken| f64::from(u8::from(taken == action)))
    }
}

/// A pseudo-random number in [0, 1) derived from the bits of a query; the same query always gets the same number.
pub(super) fn uniform_draw(bits: impl Iterator<Item = u64>) -> f64 {
    uniform(bits.fold(0, mix))
}
