//! Routing curves and gains of rankings.

use super::Evaluation;
use super::curve::{Ranking, not_rising};
use super::gain::GainArea;
use super::replay::{Basis, Place, Replay};
use crate::parallel::prelude::*;
use crate::task::Named;

/// Indices of the rankings that others are compared with.
const BY_CELL: usize = 2;
const OPTIMAL: usize = 3;
const RANDOM: usize = 4;

impl Replay {
    /// Routing curves and gains of the rankings.
    pub(super) fn rank(&self, evaluation: &mut Evaluation) {
        let reducible = self.reducible();
        // Cells that differ only by rounding are tied.
        let step = self.negligible();
        let tied = |score: f64| if step > 0.0 { (score / step).round() * step } else { score };
        let hindsight = |place: &Place| {
            let group = &self.groups[place.group as usize];
            tied(group.total - group.irreducible)
        };
        let rankings: [(&str, Vec<f64>); 5] = [
            ("higher-order", self.estimated_reducible().into_iter().map(tied).collect()),
            ("total-uncertainty", self.uncertainty.clone()),
            ("cell-optimal", self.places.iter().map(hindsight).collect()),
            ("pointwise-optimal", reducible.clone()),
            ("random", vec![0.0; reducible.len()]),
        ];
        let base = self.mean(&|row| self.total[row]).mean;
        let rank = |scores: &[f64]| Ranking::new(scores, &reducible, &self.weights, base);
        let ranked: Vec<(&str, Ranking)> = rankings.par_iter().map(|(name, scores)| (*name, rank(scores))).collect();
        let (best, random) = (ranked[OPTIMAL].1.area(), ranked[RANDOM].1.area());
        for (name, ranking) in &ranked {
            let gain =
                (random - best > step && self.separates_noise()).then(|| (random - ranking.area()) / (random - best));
            evaluation.gain.push(*name, gain);
            evaluation.curves.push(*name, ranking.percentiles());
        }
        if self.is_correctable() {
            self.rank_corrected(rankings, step, evaluation);
        }
    }

    /// Curves and gains of the rankings, corrected for the bias of few labels.
    ///
    /// Gains are parts of what the best possible order wins ([`BestOrder`](super::BestOrder)). What the labels leave open of it is part of the
    /// standard errors.
    fn rank_corrected(&self, mut rankings: [(&str, Vec<f64>); 5], step: f64, evaluation: &mut Evaluation) {
        let weights = &self.weights;
        let saved: Vec<f64> =
            (0..weights.len()).map(|row| self.total[row] - self.irreducible_at(row, Basis::Corrected)).collect();
        let base = self.mean(&|row| self.total[row]).mean;
        if self.corrected.is_some() {
            let of_cells: Vec<f64> =
                self.groups.iter().map(|group| group.total - group.losses(Basis::Corrected).0).collect();
            rankings[BY_CELL].1 = self.places.iter().map(|place| of_cells[place.group as usize]).collect();
        }
        let optimal = self.best_order();
        let won = rankings.each_ref().map(|(_, scores)| GainArea::new(scores, &saved, weights));
        // The ranking that saves most counts as the best possible.
        let others = won.iter().enumerate().filter(|(place, _)| *place != OPTIMAL).map(|(_, won)| won);
        let best = others.fold(&optimal.won, |a, b| if b.area > a.area { b } else { a });
        let best = Some(best).filter(|best| best.area > step);
        let curve = |scores: &[f64]| Ranking::new(scores, &saved, weights, base).percentiles();
        let mut curves: Vec<Vec<f64>> = rankings.iter().map(|(_, scores)| curve(scores)).collect();
        if self.corrected.is_some() {
            curves = curves.into_iter().map(not_rising).collect();
        }
        let estimate = Ranking::new(&optimal.reducible, &optimal.reducible, weights, base).percentiles();
        curves[OPTIMAL] = curve_below(estimate, &curves, OPTIMAL);
        let (mut gains, mut errors, mut named_curves) = (Named::new(), Named::new(), Named::new());
        for (place, ((name, _), curve)) in rankings.iter().zip(curves).enumerate() {
            let gain = best.map(|best| {
                let (part, error) = won[place].part_of(best, weights);
                if place == OPTIMAL { (1.0, 0.0) } else { (part, error.hypot(part * optimal.open / best.area)) }
            });
            gains.push(*name, gain.map(|(part, _)| part));
            errors.push(*name, gain.map(|(_, error)| error));
            named_curves.push(*name, curve);
        }
        evaluation.corrected_gain = Some(gains);
        evaluation.corrected_gain_standard_error = Some(errors);
        evaluation.corrected_curves = Some(named_curves);
    }
}

/// The curve of the best order from its estimate. All orders lose the same once everything is routed, and none loses less than the best one
/// before: the estimate is moved to the common end, in proportion to the share routed, raised to it where it is below, since a perfect oracle
/// takes no loss back, and lowered to the others' curves. `own` is its place among them.
fn curve_below(estimate: Vec<f64>, curves: &[Vec<f64>], own: usize) -> Vec<f64> {
    let others = || curves.iter().enumerate().filter(|(place, _)| *place != own).map(|(_, curve)| curve);
    let last = estimate.len().saturating_sub(1);
    let end = others().next().map_or(estimate[last], |curve| curve[last]);
    let gap = end - estimate[last];
    let at = |(percent, value): (usize, &f64)| {
        let moved = (value + gap * percent as f64 / last as f64).max(end);
        others().map(|curve| curve[percent]).fold(moved, f64::min)
    };
    estimate.iter().enumerate().map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::curve_below;

    #[test]
    fn best_curve_ends_where_all_end_and_is_never_above_another() {
        let curves = [vec![1.0, 0.8, 0.6], vec![1.0, 0.7, 0.6], vec![9.0; 3]];
        assert_eq!(curve_below(vec![1.0, 0.75, 0.7], &curves, 2), [1.0, 0.7, 0.6]);
        assert_eq!(curve_below(vec![1.0, 0.5, 0.75], &curves[..1], 1)[2], 0.6);
        let lower = curve_below(vec![1.0, 0.65, 0.5], &curves[..1], 1);
        assert!((lower[1] - 0.7).abs() < 1e-12 && lower[2] == 0.6, "{lower:?}");
        assert_eq!(curve_below(vec![1.0, 0.25, 0.5], &curves[..1], 1), [1.0, 0.6, 0.6]);
    }
}
