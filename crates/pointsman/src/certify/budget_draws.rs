//! What labels are expected to save if a budget limits routing.
//!
//! With a budget, more labels cannot add routing: a cell is routed instead of another. At a fixed surcharge each cell would be judged as if it
//! displaced none, and the savings of all cells together could exceed the saving of perfect knowledge. So the later estimates of all
//! cells are drawn together, and in each draw the budget is spent on the largest advantages of routing. Its cutoff in that draw is the
//! price at which a cell's change of action is valued. Over all cells these values sum to the saving of the draw.

use std::collections::BTreeMap;

use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

use super::future_differences::{LaterAdvantage, Saving};
use crate::numeric::mix::mix;
use crate::partition::CellId;

/// The number of joint draws.
const DRAWS: usize = 200;

/// Separates these random numbers from others.
const SEED: u64 = 0xB0D6E7;

/// One cell in the joint draws. Advantages are those of the best route over the best other action at the present surcharge.
pub(super) struct BudgetedCell {
    /// Its share of the calibration rows.
    pub(super) share: f64,
    /// The part of its queries that is routed now.
    pub(super) routed: f64,
    /// The advantage of routing after each number of labels, ascending; a single one if it gets no labels.
    pub(super) later: Vec<LaterAdvantage>,
}

/// Joint draws of the cutoff of a budget after labels on all cells.
pub(super) struct BudgetDraws {
    cells: BTreeMap<CellId, BudgetedCell>,
    /// For each number of labels and draw, the advantage above which cells are routed.
    cutoffs: Vec<Vec<f64>>,
}

impl BudgetDraws {
    /// Draws the cutoffs for `levels` numbers of labels. `budget` is the largest share of queries that may be routed, `surcharge` the present
    /// price of the budget: advantages below minus the surcharge are never routed.
    pub(super) fn new(budget: f64, surcharge: f64, levels: usize, cells: BTreeMap<CellId, BudgetedCell>) -> Self {
        let normals: Vec<Vec<f64>> = cells.keys().map(|&cell| normals(cell)).collect();
        let cutoff = |level: usize, draw: usize| {
            let estimate = |(cell, normals): (&BudgetedCell, &Vec<f64>)| {
                let later = cell.later.get(level).or(cell.later.last());
                (later.map_or(f64::NEG_INFINITY, |later| later.estimate(normals[draw])), cell.share)
            };
            let mut estimates: Vec<(f64, f64)> = cells.values().zip(&normals).map(estimate).collect();
            estimates.sort_by(|a, b| b.0.total_cmp(&a.0));
            let mut routed = 0.0;
            let marginal = estimates.into_iter().find(|(_, share)| {
                routed += share;
                routed > budget
            });
            marginal.map_or(-surcharge, |(estimate, _)| estimate.max(-surcharge))
        };
        let cutoffs = (0..levels).map(|level| (0..DRAWS).map(|draw| cutoff(level, draw)).collect()).collect();
        Self { cells, cutoffs }
    }

    /// The saving per query of a cell from labels after which routing has this advantage, if the other cells get labels too. It is at
    /// most that of the largest number of labels.
    pub(super) fn gain(&self, cell: CellId, later: &LaterAdvantage) -> Saving {
        let Some(budgeted) = self.cells.get(&cell) else { return Saving::NONE };
        let normals = normals(cell);
        let gain_at = |level: usize, later: &LaterAdvantage| {
            let (mut mean, mut square) = (0.0, 0.0);
            for (&normal, &cutoff) in normals.iter().zip(&self.cutoffs[level]) {
                let estimate = later.estimate(normal);
                let changed = f64::from(u8::from(estimate > cutoff)) - budgeted.routed;
                let advantage = later.expected(estimate) - cutoff;
                mean += advantage * changed / DRAWS as f64;
                square += (advantage * advantage + later.left) * changed * changed / DRAWS as f64;
            }
            Saving::from_moments(mean, square)
        };
        let last = self.cutoffs.len() - 1;
        let is_alike = |level: &LaterAdvantage| level.deviation >= later.deviation;
        let level = budgeted.later.iter().position(is_alike).unwrap_or(last).min(last);
        let most = budgeted.later.last().map_or(Saving::NONE, |later| gain_at(last, later));
        gain_at(level, later).smaller(most).larger(Saving::NONE)
    }
}

/// A cell's standard normal numbers, one per draw.
fn normals(cell: CellId) -> Vec<f64> {
    let mut random = Pcg64::seed_from_u64(mix(SEED, u64::from(cell.0)));
    (0..DRAWS).map(|_| StandardNormal.sample(&mut random)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(advantages: &[(f64, f64, f64)]) -> BTreeMap<CellId, BudgetedCell> {
        let cell = |(place, &(mean, deviation, routed)): (usize, &(f64, f64, f64))| {
            let later = vec![LaterAdvantage { mean, deviation, trust: 1.0, prior_mean: 0.0, left: 0.0 }];
            (CellId(place as u32), BudgetedCell { share: 1.0 / advantages.len() as f64, routed, later })
        };
        advantages.iter().enumerate().map(cell).collect()
    }

    fn total(draws: &BudgetDraws) -> f64 {
        let gain = |(&cell, of): (&CellId, &BudgetedCell)| of.share * draws.gain(cell, &of.later[0]).mean;
        draws.cells.iter().map(gain).sum()
    }

    #[test]
    fn nothing_is_saved_if_nothing_may_be_routed() {
        let draws = BudgetDraws::new(0.0, 0.3, 1, cells(&[(-0.01, 0.2, 0.0), (0.0, 0.1, 0.0), (-0.1, 0.3, 0.0)]));
        assert_eq!(total(&draws), 0.0);
    }

    /// With one of two cells routed, knowing both saves the expected advantage of the better one over the present one.
    #[test]
    fn savings_sum_to_that_of_the_better_cell() {
        let draws = BudgetDraws::new(0.5, 1.0, 1, cells(&[(0.0, 0.1, 1.0), (0.0, 0.1, 0.0)]));
        // E max(x, y) − E x is 0.1/√π for independent normal x, y of deviation 0.1, and half of the queries are in a cell.
        let expected = 0.5 * 0.1 / std::f64::consts::PI.sqrt();
        assert!((total(&draws) - expected).abs() < 0.15 * expected, "{} {expected}", total(&draws));
    }
}
