//! A limit on routing as a price: what every route must cost more, or may cost less, for the share routed or the loss to
//! be as asked.
//!
//! Adding the same surcharge λ to every route changes neither which route is the best of a query nor what is done with it
//! if it is not routed. A query is therefore routed exactly if its gap, the cost of its best other action less that of its best
//! route, is above λ. The queries whose gap is λ itself are the marginal ones: of them a part is routed, drawn by lot.

use std::cmp::Ordering;

use serde::Serialize;

use super::forest::Own;
use super::{KEPT, Policy, TIE, UNDETERMINED, Verdict};
use crate::error::{Error, Result};
use crate::estimate::Decomposition;
use crate::mix::{mix, uniform};
use crate::simplex::Real;
use crate::task::{Limit, Task};

/// Queries that are treated alike: what they weigh, and what their two courses lose.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Unit {
    /// Share of the traffic, up to a common factor.
    pub(crate) weight: f64,
    /// Cost of the best action that is not a route, less that of the best route, at the task's own prices.
    pub(crate) gap: f64,
    /// Loss if not routed; abstaining loses its price.
    pub(crate) kept: f64,
    /// Loss if routed, the price left out.
    pub(crate) routed: f64,
}

/// The price that does what a limit asks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Surcharge {
    /// What is added to the price of every route.
    pub price: f64,
    /// Which part of the queries at the margin is routed: those for which routing and not routing then cost the same.
    pub marginal: f64,
    /// The share of the calibration rows that is routed.
    pub share: f64,
    /// Their expected loss, prices of routes left out; abstaining loses its price.
    pub loss: f64,
}

impl Surcharge {
    /// Finds the price.
    ///
    /// Units are routed in the order of their gaps. A budget only forbids: what is not worth its own price is not routed even if
    /// the budget has room. A target loss also pays for routes that are not worth their price.
    pub(crate) fn find(limit: Limit, units: &[Unit], tie: f64) -> Result<Self> {
        let all: f64 = units.iter().map(|unit| unit.weight).sum();
        let base = units.iter().map(|unit| unit.weight * unit.kept).sum::<f64>() / all;
        let worth = |unit: &&Unit| match limit {
            Limit::Budget(_) => unit.gap > tie,
            Limit::TargetLoss(_) => unit.kept - unit.routed > tie,
        };
        let mut order: Vec<&Unit> = units.iter().filter(worth).collect();
        order.sort_by(|a, b| b.gap.total_cmp(&a.gap));
        let (mut share, mut loss) = (0.0, base);
        let mut groups = order.chunk_by(|a, b| a.gap - b.gap <= tie).peekable();
        while let Some(group) = groups.next() {
            let weight = group.iter().map(|unit| unit.weight).sum::<f64>() / all;
            let saving = group.iter().map(|unit| unit.weight * (unit.kept - unit.routed)).sum::<f64>() / all;
            let part = match limit {
                Limit::Budget(most) => (most - share) / weight,
                Limit::TargetLoss(most) => (loss - most) / saving,
            };
            if part < 1.0 {
                let marginal = part.max(0.0);
                let price = group[group.len() / 2].gap;
                return Ok(Self { price, marginal, share: share + marginal * weight, loss: loss - marginal * saving });
            }
            share += weight;
            loss -= saving;
            let reached = match limit {
                Limit::Budget(_) => false,
                Limit::TargetLoss(most) => loss <= most + tie,
            };
            if reached {
                // The price lies anywhere between this gap and the next; half way is the safest from rounding.
                let next = groups.peek().map_or(0.0, |next| next[0].gap);
                return Ok(Self { price: next.midpoint(group[group.len() - 1].gap), marginal: 0.0, share, loss });
            }
        }
        match limit {
            Limit::Budget(_) => Ok(Self { price: 0.0, marginal: 0.0, share, loss }),
            Limit::TargetLoss(most) if loss <= most + tie => Ok(Self { price: 0.0, marginal: 0.0, share, loss }),
            Limit::TargetLoss(most) => Err(Error::Task(format!(
                "no routing reaches a loss of {most}: routing whatever an oracle improves, {:.1} % of the queries, leaves {loss:.6}; ask \
                 for that or more",
                100.0 * share
            ))),
        }
    }
}

/// The two courses of a query: its best action that is no route and its best route, and by how much the first costs more.
struct Courses {
    kept: usize,
    route: usize,
    gap: f64,
}

impl Policy {
    /// Finds the price that a limit comes to, and decides by it.
    ///
    /// Where only bounds are known the dearer end of a route counts: what is routed is worth it.
    pub(super) fn keep_within(&mut self, limit: Limit) -> Result<()> {
        if self.task.routes().is_empty() {
            return Err(Error::Task("a budget or target loss limits routing: give the task a route".into()));
        }
        let actions = self.actions();
        let costs = |source: usize| source * actions..(source + 1) * actions;
        let cells = self.estimates.sources[..self.cells.count()].iter().enumerate();
        let unit = |(cell, estimate): (usize, &Option<Decomposition>)| {
            Some(self.unit(estimate.as_ref()?.weight, &self.high[costs(cell)]))
        };
        let units: Vec<Unit> = match &self.estimates.leaves {
            // The costs of a forest are each row's own, and so is what is routed.
            Some(leaves) => self.units_of(leaves)?,
            None => cells.filter_map(unit).collect(),
        };
        let largest = units.iter().flat_map(|unit| [unit.kept, unit.routed]).fold(0.0, f64::max);
        self.tie = TIE * self.task.loss().rounding().max(largest);
        self.surcharge = Some(Surcharge::find(limit, &units, self.tie)?);
        self.kept.resize(self.codes.len(), UNDETERMINED);
        for source in 0..self.codes.len() {
            (self.codes[source], self.kept[source], self.margins[source]) =
                self.within(&self.high[costs(source)], self.codes[source], self.margins[source]);
        }
        Ok(())
    }

    fn courses(&self, costs: &[f64]) -> Courses {
        let cheapest =
            |of: &mut dyn Iterator<Item = usize>| of.min_by(|&a, &b| costs[a].total_cmp(&costs[b])).unwrap_or(0);
        let routes = self.task.routes().len();
        let kept = cheapest(&mut (0..1).chain(1 + routes..costs.len()));
        let route = cheapest(&mut (1..=routes));
        Courses { kept, route, gap: costs[kept] - costs[route] }
    }

    /// Queries of these costs.
    pub(super) fn unit(&self, weight: f64, costs: &[f64]) -> Unit {
        let Courses { kept, route, gap } = self.courses(costs);
        Unit { weight, gap, kept: costs[kept], routed: costs[route] - self.task.routes()[route - 1].price() }
    }

    /// What is done with queries of these costs within the limit, if there is one: the action, the one if a lot falls against
    /// it, and by how much the first is better. Without a limit `code` and `margin` stand.
    #[inline]
    pub(super) fn within(&self, costs: &[f64], code: u8, margin: f64) -> (u8, u8, f64) {
        let Some(surcharge) = &self.surcharge else { return (code, code, margin) };
        let Courses { kept, route, gap } = self.courses(costs);
        let over = gap - surcharge.price;
        let (kept, route) = (kept as u8, route as u8);
        // Costs within bounds that do not decide stay undecided, unless routing is worth it even at the dearer end.
        if code == UNDETERMINED && over.partial_cmp(&self.tie) != Some(Ordering::Greater) {
            return (code, code, margin);
        }
        if over.abs() > self.tie {
            let action = if over > 0.0 { route } else { kept };
            return (action, action, over.abs());
        }
        // A lot that is never, or always, drawn is none.
        match surcharge.marginal {
            0.0 => (kept, kept, 0.0),
            1.0 => (route, route, 0.0),
            _ => (route, kept, 0.0),
        }
    }

    /// The price that the task's limit on routing comes to, if it has one.
    #[must_use]
    pub fn surcharge(&self) -> Option<Surcharge> {
        self.surcharge
    }

    /// The task with its limit as prices: every route at what it costs with the surcharge, and no limit.
    #[must_use]
    pub fn priced_task(&self) -> Task {
        let extra = self.surcharge.map_or(0.0, |surcharge| surcharge.price);
        self.task.clone().without_limit().add_to_routes(extra)
    }

    /// Which part of the queries of a source is routed where a lot decides; `None` where none does.
    pub(super) fn lots(&self, source: u32) -> Option<f64> {
        let at = source as usize;
        let marginal = self.surcharge.as_ref()?.marginal;
        (self.kept[at] != self.codes[at]).then_some(marginal)
    }

    /// Draws the lot of a query at the margin of a limit by its content.
    #[inline]
    pub(super) fn draw<T: Real>(&self, verdict: Verdict, prediction: &[T], features: &[f64]) -> Verdict {
        if self.surcharge.is_none() {
            return verdict;
        }
        self.settle(verdict, content(prediction, features))
    }

    /// The verdict with its lot, if it has one, drawn by the query's id instead of its content: queries of the same content
    /// then need not be decided alike.
    #[must_use]
    pub fn draw_by_id(&self, verdict: Verdict, id: &str) -> Verdict {
        self.settle(Verdict(verdict.0 & !KEPT), id.bytes().map(u64::from))
    }

    fn settle(&self, verdict: Verdict, bits: impl Iterator<Item = u64>) -> Verdict {
        match self.lots(self.unfold(verdict).1) {
            Some(part) if lot(bits) >= part => Verdict(verdict.0 | KEPT),
            _ => verdict,
        }
    }

    /// Whether the lot of a query with costs of its own falls against routing, if it has one.
    pub(super) fn own_lot_falls(&self, own: &Own, bits: impl Iterator<Item = u64>) -> bool {
        own.code != own.kept && self.surcharge.is_some_and(|surcharge| lot(bits) >= surcharge.marginal)
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
        Unit { weight, gap: kept - routed - price, kept, routed }
    }

    fn world() -> Vec<Unit> {
        vec![unit(1.0, 0.9, 0.1, 0.2), unit(2.0, 0.5, 0.1, 0.2), unit(1.0, 0.3, 0.1, 0.2), unit(4.0, 0.2, 0.1, 0.2)]
    }

    #[test]
    fn a_budget_is_met_exactly_or_not_needed() {
        for (most, share) in [(0.0, 0.0), (0.05, 0.05), (0.125, 0.125), (0.25, 0.25), (0.375, 0.375), (0.9, 0.375)] {
            let found = Surcharge::find(Limit::Budget(most), &world(), 1e-12).unwrap();
            assert!((found.share - share).abs() < 1e-12, "{most}: {found:?}");
            assert!(found.price >= 0.0 && (0.0..=1.0).contains(&found.marginal), "{found:?}");
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
            (0.1, 1.0),
        ] {
            let found = Surcharge::find(Limit::TargetLoss(target), &world(), 1e-12).unwrap();
            assert!((found.share - share).abs() < 1e-9, "{target}: {found:?}");
            assert!(found.loss <= target + 1e-9, "{found:?}");
        }
        let error = Surcharge::find(Limit::TargetLoss(0.05), &world(), 1e-12).unwrap_err().to_string();
        assert!(error.contains("100.0 %") && error.contains("0.100000"), "{error}");
    }

    #[test]
    fn units_of_one_gap_share_the_lot() {
        let units = [unit(1.0, 0.5, 0.1, 0.1); 4];
        let found = Surcharge::find(Limit::Budget(0.3), &units, 1e-12).unwrap();
        assert!((found.marginal - 0.3).abs() < 1e-12 && (found.price - 0.3).abs() < 1e-12, "{found:?}");
    }
}
