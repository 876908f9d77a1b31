//! A limit on routing as a price: what every route must cost for the share routed or the loss to be as asked.
//!
//! A **budget** adds the same surcharge λ ≥ 0 to every route's own price, which changes neither which route is the best of a
//! query nor what is done with it if it is not routed. A **target loss** asks for the least routing, whatever it is paid: every
//! route counts with the same price λ ≥ 0 instead of its own, so that a query goes to whoever loses least, own prices
//! settling ties. Either way a query is routed exactly if its gap, the cost of its best other action less that of its best route
//! at λ = 0, is above λ. The queries whose gap is λ itself are the marginal ones: of them a part is routed, drawn by lot.
//! Routing by gap is the best there is: no other way to route as much costs, or loses, less.

use serde::Serialize;

use super::forest::Own;
use super::promise::with_slack;
use super::{KEPT, Policy, TIE, UNDETERMINED, Verdict, choose};
use crate::error::{Error, Result};
use crate::numeric::mix::{mix, uniform};
use crate::table::simplex::Real;
use crate::task::{Limit, Task, Ties};

/// Parts of a group closer to none or all than this are none or all: what is left is rounding.
const NEGLIGIBLE: f64 = 1e-9;

/// Queries that are treated alike: what they weigh, and what their two courses lose.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Unit {
    /// Share of the traffic, up to a common factor.
    pub(crate) weight: f64,
    /// Cost of the best action that is not a route, less that of the best route, at λ = 0.
    pub(crate) gap: f64,
    /// Whether they are routed at λ = 0.
    pub(crate) worth: bool,
    /// Loss if not routed; abstaining loses its price.
    pub(crate) kept: f64,
    /// Loss if routed, the price left out.
    pub(crate) routed: f64,
    /// The two courses: the best action that is no route, and the best route.
    pub(crate) actions: [usize; 2],
}

/// The price that does what a limit asks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Surcharge {
    /// With a budget, what is added to the price of every route; with a target loss, what every route counts with instead of its
    /// own price.
    pub price: f64,
    /// Which part of the queries at the margin is routed: those for which routing and not routing then cost the same.
    pub marginal: f64,
    /// The share of queries like the calibration rows that is routed.
    pub share: f64,
    /// Its standard error.
    pub share_standard_error: f64,
    /// Their expected loss, prices of routes left out; abstaining loses its price. It is told by rows that the decisions have not
    /// seen, as in [`Promise`](super::Promise).
    pub loss: f64,
    /// Its standard error.
    pub loss_standard_error: f64,
    /// Between what the loss lies as far as the labels identify it; `None` where nothing is left open.
    pub loss_identified: Option<[f64; 2]>,
}

/// Where routing in the order of gaps stops.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stop {
    /// λ.
    pub(crate) price: f64,
    /// Which part of the units at the margin is routed.
    pub(crate) marginal: f64,
    /// The share of the units that is routed, and what all of them lose.
    pub(crate) share: f64,
    pub(crate) loss: f64,
}

impl Stop {
    /// Finds the price.
    ///
    /// Units are routed in the order of their gaps until the limit is reached. What is not worth routing at λ = 0 never is: a budget
    /// only forbids, and a target loss has nothing to gain.
    pub(crate) fn find(limit: Limit, units: &[Unit], tie: f64) -> Result<Self> {
        let all: f64 = units.iter().map(|unit| unit.weight).sum();
        let base = units.iter().map(|unit| unit.weight * unit.kept).sum::<f64>() / all;
        let mut order: Vec<&Unit> = units.iter().filter(|unit| unit.worth).collect();
        order.sort_by(|a, b| b.gap.total_cmp(&a.gap));
        let mut found = Self { price: 0.0, marginal: 1.0, share: 0.0, loss: base };
        let (mut least, mut before) = (found, None::<f64>);
        // Groups lie further apart than costs that are called equal.
        for group in order.chunk_by(|a, b| a.gap - b.gap <= 2.0 * tie) {
            let (first, last) = (group[0].gap, group[group.len() - 1].gap);
            let weight = group.iter().map(|unit| unit.weight).sum::<f64>() / all;
            let saving = group.iter().map(|unit| unit.weight * (unit.kept - unit.routed)).sum::<f64>() / all;
            let part = match limit {
                Limit::Budget(most) => (most - found.share) / weight,
                Limit::TargetLoss(most) if found.loss <= most => 0.0,
                // What is known of single rows may say that routing them saves nothing; those after them may save again.
                Limit::TargetLoss(_) if saving <= 0.0 => 1.0,
                Limit::TargetLoss(most) => (found.loss - most) / saving,
            };
            if part < 1.0 - NEGLIGIBLE {
                let part = if part < NEGLIGIBLE { 0.0 } else { part };
                found.marginal = part;
                // If the group before was the last, the price lies anywhere between the two; half way is the safest.
                found.price = before.filter(|_| part == 0.0).unwrap_or(last).midpoint(first);
                found.share += part * weight;
                found.loss -= part * saving;
                return Ok(found);
            }
            // Shares that are rounded may add up to more than all.
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
                // Rounded up: what is named can be asked for.
                least: (least.loss * 1e6 - NEGLIGIBLE).ceil() / 1e6,
                share: least.share,
            }),
            _ => Ok(found),
        }
    }

    /// Which part of a unit is routed.
    pub(crate) fn part_of(&self, unit: &Unit, tie: f64) -> f64 {
        match unit.gap - self.price {
            over if over > tie => 1.0,
            over if over < -tie || !unit.worth => 0.0,
            _ => self.marginal,
        }
    }
}

impl Policy {
    /// Finds the price that a limit comes to, and decides by it.
    ///
    /// Where only bounds are known the dearer end of a route counts: what is routed is worth it.
    pub(super) fn keep_within(&mut self, limit: Limit) -> Result<()> {
        if self.task.routes().is_empty() {
            return Err(Error::Task("a budget or target loss limits routing: give the task a route".into()));
        }
        let largest = self.high.iter().copied().fold(0.0, f64::max);
        self.tie = TIE * self.task.loss().rounding().max(largest);
        let found = self.find_stop(limit)?;
        self.priced = Some(self.task.clone().with_limit_as_price(found.price));
        self.stop = Some(found);
        self.kept.resize(self.codes.len(), UNDETERMINED);
        for source in 0..self.codes.len() {
            if let Some((low, high)) = self.costs_at(self.priced(), source) {
                (self.codes[source], self.kept[source], self.margins[source]) = self.settle(&low, &high);
            }
        }
        Ok(())
    }

    /// Finds how much is routed, and at which price.
    ///
    /// Which share of traffic a cell has does not depend on labels, so the cells themselves tell what a budget comes to. What is
    /// lost does: rows left out tell which share must be routed to reach a target. Rows of a forest are always left out, since
    /// what is done with them depends on their own labels otherwise.
    fn find_stop(&self, limit: Limit) -> Result<Stop> {
        let task = self.at_no_price();
        let find = |limit: Limit, units: &[Unit]| Stop::find(limit, units, self.tie);
        if self.has_forest() {
            let units = self.all_units(&task, self.held_out()).ok_or_else(|| {
                Error::Task(
                    "every tree was grown on every calibration row, so that none tells what a limit on routing comes to: grow \
                     more trees"
                        .into(),
                )
            })?;
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
                    // What is worth routing by the cells' own estimates is all that can be routed.
                    let most = find(Limit::Budget(1.0), &cells)?.share;
                    let within = find(Limit::Budget(most), &units)?;
                    let divided = |unit: &Unit| {
                        let part = within.part_of(unit, self.tie);
                        let rest = Unit { weight: (1.0 - part) * unit.weight, worth: false, ..*unit };
                        [Unit { weight: part * unit.weight, ..*unit }, rest]
                    };
                    let units: Vec<Unit> = units.iter().flat_map(divided).filter(|unit| unit.weight > 0.0).collect();
                    let Stop { share, loss, .. } = find(limit, &units)?;
                    Ok(Stop { loss, ..find(Limit::Budget(share), &cells)? })
                }
            },
        }
    }

    /// The task with its limit as a price of zero.
    pub(super) fn at_no_price(&self) -> Task {
        self.task.clone().with_limit_as_price(0.0)
    }

    /// The costs of a source at a task's prices; `None` if it has no rows.
    fn costs_at(&self, task: &Task, source: usize) -> Option<(Vec<f64>, Vec<f64>)> {
        let estimate = self.estimates.sources[source].as_ref()?;
        let (mut low, mut high) = (vec![0.0; self.actions()], vec![0.0; self.actions()]);
        self.fill(task, estimate.total, |column| estimate.at(column), &mut low, &mut high);
        Some((low, high))
    }

    /// The best action that is no route, and the best route.
    pub(super) fn courses(&self, costs: &[f64]) -> [usize; 2] {
        let (routes, last) = (self.task.routes(), costs.len() - 1);
        let paper = self.task.chosen_ties() == Ties::Paper;
        let abstains = last > routes.len() && costs[last] < costs[0] + if paper { self.tie } else { -self.tie };
        // Own prices differ at equal costs only where a target loss puts one price in their place.
        let targeted = matches!(self.task.limit(), Some(Limit::TargetLoss(_)));
        let better = |one: usize, two: usize| {
            let cheaper = routes[one - 1].price() < routes[two - 1].price();
            costs[one] < costs[two] - self.tie || targeted && cheaper && costs[one] <= costs[two] + self.tie
        };
        let route = (2..=routes.len()).fold(1, |best, route| if better(route, best) { route } else { best });
        [if abstains { last } else { 0 }, route]
    }

    /// Queries that are decided by these costs, at the prices of `task` with λ = 0, and really have those.
    pub(super) fn unit(&self, task: &Task, weight: f64, [low, high]: [&[f64]; 2], real: &[f64]) -> Unit {
        let actions = self.courses(high);
        let [kept, route] = actions;
        let gap = high[kept] - high[route];
        let worth = gap > self.tie || gap >= -self.tie && self.is_free_route(choose(low, high, task).0);
        Unit { weight, gap, worth, kept: real[kept], routed: real[route] - task.routes()[route - 1].price(), actions }
    }

    /// Whether a tie at λ = 0 is won by a route. A target loss pays for nothing that saves nothing.
    fn is_free_route(&self, code: u8) -> bool {
        matches!(self.task.limit(), Some(Limit::Budget(_)))
            && (1..=self.task.routes().len()).contains(&usize::from(code))
    }

    /// What is done with queries of these costs, the limit on routing as prices: the action, the one if a lot falls against
    /// it, and by how much the first is better than any other.
    #[inline]
    pub(super) fn settle(&self, low: &[f64], high: &[f64]) -> (u8, u8, f64) {
        let (code, margin) = choose(low, high, self.priced());
        match &self.stop {
            None => (code, code, margin),
            Some(stop) => self.within(stop, high, code, margin),
        }
    }

    fn within(&self, stop: &Stop, costs: &[f64], code: u8, margin: f64) -> (u8, u8, f64) {
        let [kept, route] = self.courses(costs);
        let over = costs[kept] - costs[route];
        let alone = |action: usize| {
            let others = (0..costs.len()).filter(|&other| other != action).map(|other| costs[other] - costs[action]);
            let lead = if usize::from(code) == action { margin } else { others.fold(f64::INFINITY, f64::min).max(0.0) };
            (action as u8, action as u8, lead)
        };
        // Where nothing may be routed, not even a query that gains more than any calibration row is.
        if stop.share == 0.0 && stop.marginal == 0.0 {
            return alone(kept);
        }
        if over > self.tie {
            return alone(route);
        }
        // Costs within bounds that do not decide stay undecided.
        if over < -self.tie {
            return (code, code, margin);
        }
        if stop.price == 0.0 && !self.is_free_route(code) {
            return if code == UNDETERMINED { (code, code, margin) } else { alone(kept) };
        }
        // A lot that is never, or always, drawn is none.
        match stop.marginal {
            0.0 => (kept as u8, kept as u8, 0.0),
            1.0 => (route as u8, route as u8, 0.0),
            _ => (route as u8, kept as u8, 0.0),
        }
    }

    /// The task by whose prices queries are decided: its own, or with its limit as prices.
    #[inline]
    pub(super) fn priced(&self) -> &Task {
        self.priced.as_ref().unwrap_or(&self.task)
    }

    /// The price that the task's limit on routing comes to, if it has one.
    #[must_use]
    pub fn surcharge(&self) -> Option<Surcharge> {
        let Stop { price, marginal, share, loss } = self.stop?;
        let judged = self.judge_rows();
        let told = judged.as_ref().map(|judged| [judged.loss.mean(), self.standard_errors(judged)[1]]);
        let [loss, loss_standard_error] = told.unwrap_or([loss, f64::NAN]);
        let known = judged.as_ref().filter(|judged| judged.known > 0.0);
        let open = known.and_then(|judged| with_slack(self.open(), judged.slack_of(None)));
        let loss_identified = open.map(|ends| ends.map(|end| loss + end));
        let rows = judged.map_or(f64::NAN, |judged| judged.loss.effective_rows());
        let share_standard_error = (share * (1.0 - share) / rows).max(0.0).sqrt();
        Some(Surcharge { price, marginal, share, share_standard_error, loss, loss_standard_error, loss_identified })
    }

    /// The price of [`surcharge`](Self::surcharge) alone, which needs no rows to be judged.
    #[must_use]
    pub fn surcharge_price(&self) -> Option<f64> {
        self.stop.map(|stop| stop.price)
    }

    /// Whether more would be routed without the limit.
    pub(crate) fn is_limit_binding(&self) -> bool {
        self.stop.is_some_and(|stop| stop.price > 0.0 || stop.marginal < 1.0)
    }

    /// The task with its limit as prices: every route at what it counts with, and no limit.
    #[must_use]
    pub fn priced_task(&self) -> Task {
        self.priced().clone()
    }

    /// Which part of the queries of a source is routed where a lot decides; `None` where none does.
    pub(super) fn lots(&self, source: u32) -> Option<f64> {
        let at = source as usize;
        let marginal = self.stop.as_ref()?.marginal;
        (self.kept[at] != self.codes[at]).then_some(marginal)
    }

    /// Draws the lot of a query at the margin of a limit by its content.
    #[inline]
    pub(super) fn draw<T: Real>(&self, verdict: Verdict, prediction: &[T], features: &[f64]) -> Verdict {
        if self.stop.is_none() {
            return verdict;
        }
        self.settle_lot(verdict, content(prediction, features))
    }

    /// The verdict with its lot, if it has one, drawn by the query's id instead of its content: queries of the same content
    /// then need not be decided alike.
    #[must_use]
    pub fn draw_by_id(&self, verdict: Verdict, id: &str) -> Verdict {
        self.settle_lot(Verdict(verdict.0 & !KEPT), id.bytes().map(u64::from))
    }

    fn settle_lot(&self, verdict: Verdict, bits: impl Iterator<Item = u64>) -> Verdict {
        match self.lots(self.unfold(verdict).1) {
            Some(part) if lot(bits) >= part => Verdict(verdict.0 | KEPT),
            _ => verdict,
        }
    }

    /// Whether the lot of a query with costs of its own falls against routing, if it has one.
    pub(super) fn own_lot_falls(&self, own: &Own, bits: impl Iterator<Item = u64>) -> bool {
        own.code != own.kept && self.stop.is_some_and(|stop| lot(bits) >= stop.marginal)
    }
}

/// The bits of a query; predictions in single precision, in which all formats agree.
pub(super) fn content<T: Real>(prediction: &[T], features: &[f64]) -> impl Iterator<Item = u64> {
    let entries = prediction.iter().map(|x| u64::from(x.to_f32().to_bits()));
    entries.chain(features.iter().map(|x| x.to_bits()))
}

/// What is done with the queries of a source: one action or, at the margin of a limit, either of two by lot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Course {
    action: usize,
    otherwise: usize,
    /// Which part of the queries gets the first.
    part: f64,
}

impl Course {
    pub(crate) fn always(action: usize) -> Self {
        Self { action, otherwise: action, part: 1.0 }
    }

    pub(crate) fn by_lot(action: usize, otherwise: usize, part: f64) -> Self {
        if action == otherwise { Self::always(action) } else { Self { action, otherwise, part } }
    }

    /// The two actions, equal if there is no lot.
    pub(crate) fn actions(self) -> [usize; 2] {
        [self.action, self.otherwise]
    }

    /// The expectation of what depends on the action.
    pub(crate) fn mean(self, value: impl Fn(usize) -> f64) -> f64 {
        if self.part == 1.0 {
            return value(self.action);
        }
        self.part * value(self.action) + (1.0 - self.part) * value(self.otherwise)
    }

    /// Which part of the queries gets an action.
    pub(crate) fn part_of(self, action: usize) -> f64 {
        self.mean(|taken| f64::from(u8::from(taken == action)))
    }
}

/// A number from 0 to 1 that depends on the bits of a query in no visible way, and is the same whenever and wherever the
/// query comes: by it lots are drawn.
fn lot(bits: impl Iterator<Item = u64>) -> f64 {
    uniform(bits.fold(0, mix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(weight: f64, kept: f64, routed: f64, price: f64) -> Unit {
        let gap = kept - routed - price;
        Unit { weight, gap, worth: gap > 1e-12, kept, routed, actions: [0, 1] }
    }

    fn world(price: f64) -> Vec<Unit> {
        [(1.0, 0.9), (2.0, 0.5), (1.0, 0.3), (4.0, 0.2)].map(|(weight, kept)| unit(weight, kept, 0.1, price)).to_vec()
    }

    /// What units amount to if those above the price are routed, and of those at it the part.
    fn replay(found: &Stop, units: &[Unit]) -> [f64; 2] {
        let part = |unit: &Unit| found.part_of(unit, 1e-12);
        let all: f64 = units.iter().map(|unit| unit.weight).sum();
        let mean = |value: &dyn Fn(&Unit) -> f64| units.iter().map(|unit| unit.weight * value(unit)).sum::<f64>() / all;
        [mean(&part), mean(&|unit| part(unit) * unit.routed + (1.0 - part(unit)) * unit.kept)]
    }

    fn check(limit: Limit, units: &[Unit]) -> Stop {
        let found = Stop::find(limit, units, 1e-12).unwrap();
        let [share, loss] = replay(&found, units);
        assert!(
            (found.share - share).abs() < 1e-9 && (found.loss - loss).abs() < 1e-9,
            "{limit:?}: {found:?}, {share} {loss}"
        );
        assert!(found.price >= 0.0 && (0.0..=1.0).contains(&found.marginal), "{found:?}");
        found
    }

    #[test]
    fn a_budget_is_met_exactly_or_not_needed() {
        for (most, share) in [(0.0, 0.0), (0.05, 0.05), (0.125, 0.125), (0.25, 0.25), (0.375, 0.375), (0.9, 0.375)] {
            let found = check(Limit::Budget(most), &world(0.2));
            assert!((found.share - share).abs() < 1e-12, "{most}: {found:?}");
        }
    }

    #[test]
    fn a_budget_that_does_not_bind_is_no_surcharge() {
        // Shares that do not add up to one in binary.
        let units: Vec<Unit> = (1..=10).map(|i| unit(0.1, 0.1 * f64::from(i), 0.0, 0.0)).collect();
        for most in [1.0, 0.9999999999999] {
            let found = check(Limit::Budget(most), &units);
            assert!(found.price == 0.0 && found.marginal == 1.0, "{found:?}");
        }
    }

    #[test]
    fn a_target_is_met_with_the_least_routing() {
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
            let found = check(Limit::TargetLoss(target), &world(0.0));
            assert!((found.share - share).abs() < 1e-9, "{target}: {found:?}");
            assert!(found.loss <= target + 1e-9, "{found:?}");
        }
        let error = Stop::find(Limit::TargetLoss(0.05), &world(0.0), 1e-12).unwrap_err().to_string();
        assert!(error.contains("100.0 %") && error.contains("0.100000"), "{error}");
    }

    #[test]
    fn units_of_one_gap_share_the_lot() {
        let units = [unit(1.0, 0.5, 0.1, 0.1); 4];
        let found = check(Limit::Budget(0.3), &units);
        assert!((found.marginal - 0.3).abs() < 1e-12 && (found.price - 0.3).abs() < 1e-12, "{found:?}");
    }
}
