//! Limits on routing, expressed as a price λ ≥ 0.
//!
//! A **budget** adds the same surcharge λ to the price of every route, which changes neither the best route of a query nor its best
//! action without routing. A **target loss** asks for the least routing at any price: every route has the same price λ instead of its
//! own, so a query goes to the route with the least loss, and route prices only break ties. In both cases a query is routed if its gap,
//! the cost of its best other action minus that of its best route at λ = 0, exceeds λ. Of the queries whose gap equals λ, the marginal
//! ones, a random part is routed. Routing by gap is optimal: no other rule that routes the same share costs, or loses, less.

use super::decision::QueryCosts;
use super::promise::with_slack;
use super::{Decisions, KEPT, Policy, TIE, UNDETERMINED, Verdict, choose};
use crate::error::{Error, Result, TaskError};
use crate::numeric::mix::{mix, uniform};
use crate::table::simplex::Real;
use crate::task::{Limit, Task, Ties};

/// Parts of a group this close to 0 or 1 count as 0 or 1; the difference is rounding.
const NEGLIGIBLE: f64 = 1e-9;

/// Queries with the same costs: their weight, and the losses of their two alternatives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Unit {
    /// Share of the traffic, up to a common factor.
    pub(crate) weight: f64,
    /// The cost of the best action that is not a route, minus that of the best route, at λ = 0.
    pub(crate) gap: f64,
    /// Whether they are routed at λ = 0.
    pub(crate) worth: bool,
    /// The loss if not routed; abstaining loses its price.
    pub(crate) kept: f64,
    /// The loss if routed, without the price.
    pub(crate) routed: f64,
    /// The two alternatives: the best action that is not a route, and the best route.
    pub(crate) actions: [usize; 2],
}

/// The price that enforces a limit, and its effect.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Surcharge {
    /// With a budget, the amount added to the price of every route; with a target loss, the price of every route instead of its own.
    pub price: f64,
    /// The part of the marginal queries, for which routing and not routing cost the same, that is routed.
    pub marginal: f64,
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

/// The point at which routing in the order of decreasing gaps ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cutoff {
    /// The price λ.
    pub(crate) price: f64,
    /// The part of the marginal units that is routed.
    pub(crate) marginal: f64,
    /// The share of the units that is routed.
    pub(crate) share: f64,
    /// The mean loss of all units.
    pub(crate) loss: f64,
}

impl Cutoff {
    /// Finds the cutoff for a limit.
    ///
    /// Units are routed in the order of decreasing gaps until the limit is reached. Units that are not routed at λ = 0 are never routed:
    /// a budget only reduces routing, and a target loss gains nothing from them.
    pub(crate) fn find(limit: Limit, units: &[Unit], tie: f64) -> Result<Self> {
        let all: f64 = units.iter().map(|unit| unit.weight).sum();
        let base = units.iter().map(|unit| unit.weight * unit.kept).sum::<f64>() / all;
        let mut order: Vec<&Unit> = units.iter().filter(|unit| unit.worth).collect();
        order.sort_by(|a, b| b.gap.total_cmp(&a.gap));
        let mut found = Self { price: 0.0, marginal: 1.0, share: 0.0, loss: base };
        let (mut least, mut before) = (found, None::<f64>);
        // Units whose gaps are equal up to rounding form a group.
        for group in order.chunk_by(|a, b| a.gap - b.gap <= 2.0 * tie) {
            let (first, last) = (group[0].gap, group[group.len() - 1].gap);
            let weight = group.iter().map(|unit| unit.weight).sum::<f64>() / all;
            let saving = group.iter().map(|unit| unit.weight * (unit.kept - unit.routed)).sum::<f64>() / all;
            let part = match limit {
                Limit::Budget(most) => (most - found.share) / weight,
                Limit::TargetLoss(most) if found.loss <= most => 0.0,
                // By the losses of held-out rows a group may save nothing although later groups do.
                Limit::TargetLoss(_) if saving <= 0.0 => 1.0,
                Limit::TargetLoss(most) => (found.loss - most) / saving,
            };
            if part < 1.0 - NEGLIGIBLE {
                let part = if part < NEGLIGIBLE { 0.0 } else { part };
                found.marginal = part;
                // If nothing of this group is routed, any price between it and the previous group will do; take the midpoint.
                found.price = before.filter(|_| part == 0.0).unwrap_or(last).midpoint(first);
                found.share += part * weight;
                found.loss -= part * saving;
                return Ok(found);
            }
            // Rounded shares may sum to more than one.
            found.share = (found.share + weight).min(1.0);
            found.loss -= saving;
            before = Some(last);
            if found.loss < least.loss {
                least = found;
            }
        }
        match limit {
            Limit::TargetLoss(target) if found.loss > target + tie.max(NEGLIGIBLE * target) => Err(Error::OutOfReach {
                target,
                // Rounded up, so that the loss named in the message is feasible.
                least: (least.loss * 1e6 - NEGLIGIBLE).ceil() / 1e6,
                share: least.share,
            }),
            _ => Ok(found),
        }
    }

    /// The part of a unit that is routed.
    pub(crate) fn part_of(&self, unit: &Unit, tie: f64) -> f64 {
        match unit.gap - self.price {
            over if over > tie => 1.0,
            over if over < -tie || !unit.worth => 0.0,
            _ => self.marginal,
        }
    }
}

impl Policy {
    /// Finds the price that enforces a limit, and decides all sources at that price.
    ///
    /// If only bounds of a route's cost are known, the upper bound counts, so that routed queries are certain to gain.
    pub(super) fn keep_within(&mut self, limit: Limit) -> Result<()> {
        if self.task.routes().is_empty() {
            return Err(TaskError::LimitWithoutRoute.into());
        }
        let largest = self.high.iter().copied().fold(0.0, f64::max);
        self.tie = TIE * self.task.loss().rounding().max(largest);
        let found = self.find_cutoff(limit)?;
        self.priced = Some(self.task.clone().with_limit_as_price(found.price));
        self.cutoff = Some(found);
        self.kept.resize(self.codes.len(), UNDETERMINED);
        for source in 0..self.codes.len() {
            if let Some((low, high)) = self.costs_at(self.priced(), source) {
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
        if self.has_forest() {
            let units = self.all_units(&task, self.held_out()).ok_or(TaskError::NoHeldOutTrees)?;
            return find(limit, &units);
        }
        let cells = (0..self.cells.count()).filter_map(|cell| {
            let (low, high) = self.costs_at(&task, cell)?;
            let weight = self.estimates.sources[cell].as_ref()?.weight;
            Some(self.unit(&task, weight, [&low, &high], &high))
        });
        let cells: Vec<Unit> = cells.collect();
        match limit {
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

    /// The task with its limit replaced by a price of zero.
    pub(super) fn at_no_price(&self) -> Task {
        self.task.clone().with_limit_as_price(0.0)
    }

    /// The costs of a source at a task's prices; `None` if it has no rows.
    fn costs_at(&self, task: &Task, source: usize) -> Option<(Vec<f64>, Vec<f64>)> {
        let estimate = self.estimates.sources[source].as_ref()?;
        let (mut low, mut high) = (vec![0.0; self.actions()], vec![0.0; self.actions()]);
        self.fill_costs(task, estimate.losses(), &mut low, &mut high);
        Some((low, high))
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
        let Cutoff { price, marginal, share, loss } = self.cutoff?;
        let judged = self.judge_rows();
        let held_out = judged.as_ref().map(|judged| [judged.loss.mean(), self.standard_errors(judged)[1]]);
        let [loss, loss_standard_error] = held_out.unwrap_or([loss, f64::NAN]);
        let known = judged.as_ref().filter(|judged| judged.known > 0.0);
        let open = known.and_then(|judged| with_slack(self.open(), judged.slack_of(None)));
        let loss_identified = open.map(|ends| ends.map(|end| loss + end));
        let rows = judged.map_or(f64::NAN, |judged| judged.loss.effective_rows());
        let share_standard_error = (share * (1.0 - share) / rows).max(0.0).sqrt();
        Some(Surcharge { price, marginal, share, share_standard_error, loss, loss_standard_error, loss_identified })
    }

    /// The price of [`surcharge`](Self::surcharge) alone, which does not evaluate held-out rows.
    #[must_use]
    pub fn surcharge_price(&self) -> Option<f64> {
        self.cutoff.map(|cutoff| cutoff.price)
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
        self.draw_by_bits(verdict, content(prediction, features))
    }

    /// The verdict on a row of a batch with its random draw, if it has one, seeded by these bits.
    pub(super) fn draw_row(&self, decisions: &Decisions, row: usize, bits: impl Iterator<Item = u64>) -> Verdict {
        let verdict = decisions.verdict(row);
        let Some(losses) = &decisions.losses else { return self.draw_by_bits(verdict, bits) };
        let falls_against = self.draw_falls_against(&self.price(losses.row(row)), bits);
        if falls_against { Verdict(verdict.0 | KEPT) } else { verdict }
    }

    fn draw_by_bits(&self, verdict: Verdict, bits: impl Iterator<Item = u64>) -> Verdict {
        match self.marginal_share(self.unfold(verdict).1) {
            Some(part) if uniform_draw(bits) >= part => Verdict(verdict.0 | KEPT),
            _ => verdict,
        }
    }

    /// Whether the random draw of a query with its own costs falls against routing, if it has one.
    pub(super) fn draw_falls_against(&self, own: &QueryCosts, bits: impl Iterator<Item = u64>) -> bool {
        own.code != own.kept && self.cutoff.is_some_and(|cutoff| uniform_draw(bits) >= cutoff.marginal)
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
fn uniform_draw(bits: impl Iterator<Item = u64>) -> f64 {
    uniform(bits.fold(0, mix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(weight: f64, kept: f64, routed: f64, price: f64) -> Unit {
        let gap = kept - routed - price;
        Unit { weight, gap, worth: gap > 1e-12, kept, routed, actions: [0, 1] }
    }

    fn units(price: f64) -> Vec<Unit> {
        [(1.0, 0.9), (2.0, 0.5), (1.0, 0.3), (4.0, 0.2)].map(|(weight, kept)| unit(weight, kept, 0.1, price)).to_vec()
    }

    /// The share and the mean loss if units are routed by a cutoff.
    fn apply(found: &Cutoff, units: &[Unit]) -> [f64; 2] {
        let part = |unit: &Unit| found.part_of(unit, 1e-12);
        let all: f64 = units.iter().map(|unit| unit.weight).sum();
        let mean = |value: &dyn Fn(&Unit) -> f64| units.iter().map(|unit| unit.weight * value(unit)).sum::<f64>() / all;
        [mean(&part), mean(&|unit| part(unit) * unit.routed + (1.0 - part(unit)) * unit.kept)]
    }

    fn check(limit: Limit, units: &[Unit]) -> Cutoff {
        let found = Cutoff::find(limit, units, 1e-12).unwrap();
        let [share, loss] = apply(&found, units);
        assert!(
            (found.share - share).abs() < 1e-9 && (found.loss - loss).abs() < 1e-9,
            "{limit:?}: {found:?}, {share} {loss}"
        );
        assert!(found.price >= 0.0 && (0.0..=1.0).contains(&found.marginal), "{found:?}");
        found
    }

    #[test]
    fn budget_is_met_exactly_unless_it_does_not_bind() {
        for (most, share) in [(0.0, 0.0), (0.05, 0.05), (0.125, 0.125), (0.25, 0.25), (0.375, 0.375), (0.9, 0.375)] {
            let found = check(Limit::Budget(most), &units(0.2));
            assert!((found.share - share).abs() < 1e-12, "{most}: {found:?}");
        }
    }

    #[test]
    fn budget_that_does_not_bind_has_no_surcharge() {
        // Binary shares that do not sum to one.
        let units: Vec<Unit> = (1..=10).map(|i| unit(0.1, 0.1 * f64::from(i), 0.0, 0.0)).collect();
        for most in [1.0, 0.9999999999999] {
            let found = check(Limit::Budget(most), &units);
            assert!(found.price == 0.0 && found.marginal == 1.0, "{found:?}");
        }
    }

    #[test]
    fn target_loss_is_met_with_the_least_routing() {
        let base = (0.9 + 1.0 + 0.3 + 0.8) / 8.0;
        for (target, share) in [
            (base + 0.1, 0.0),
            (base, 0.0),
            (base - 0.05, 0.0625),
            (base - 0.1, 0.125),
            (base - 0.2, 0.375),
            (base - 0.225, 0.5),
            (0.1, 1.0),
        ] {
            let found = check(Limit::TargetLoss(target), &units(0.0));
            assert!((found.share - share).abs() < 1e-9, "{target}: {found:?}");
            assert!(found.loss <= target + 1e-9, "{found:?}");
        }
        let error = Cutoff::find(Limit::TargetLoss(0.05), &units(0.0), 1e-12).unwrap_err().to_string();
        assert!(error.contains("100.0 %") && error.contains("0.100000"), "{error}");
    }

    #[test]
    fn units_of_equal_gap_are_routed_in_equal_parts() {
        let units = [unit(1.0, 0.5, 0.1, 0.1); 4];
        let found = check(Limit::Budget(0.3), &units);
        assert!((found.marginal - 0.3).abs() < 1e-12 && (found.price - 0.3).abs() < 1e-12, "{found:?}");
    }
}
