//! Where routing in the order of decreasing gaps ends, so that a limit is kept.

use crate::error::{Error, Result};
use crate::task::Limit;

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

/// The point at which routing in the order of decreasing gaps ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cutoff {
    /// The price λ.
    pub(crate) price: f64,
    /// The part of the marginal units that is routed.
    pub(crate) marginal: f64,
    /// The share of the units that is marginal; zero if all or none of them are routed.
    pub(crate) at_margin: f64,
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
        let mut found = Self { price: 0.0, marginal: 1.0, at_margin: 0.0, share: 0.0, loss: base };
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
                found.at_margin = if part > 0.0 { weight } else { 0.0 };
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
        assert_eq!(found.at_margin, 1.0);
        assert!((found.marginal - 0.3).abs() < 1e-12 && (found.price - 0.3).abs() < 1e-12, "{found:?}");
    }
}
