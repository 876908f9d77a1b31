//! Routing curves and gains of rankings.

use rayon::prelude::*;

use super::corrected::Corrected;
use super::curve::Ranking;
use super::gain::Won;
use super::replay::{By, Place, Replay};
use super::{Evaluation, Named};
use crate::policy::Policy;

impl Replay {
    /// Routing curves and gains of the rankings.
    pub(super) fn rank(&self, policy: &Policy, evaluation: &mut Evaluation) {
        let reducible = self.reducible();
        // Cells that differ by rounding only are tied.
        let step = self.negligible();
        let tied = |score: f64| if step > 0.0 { (score / step).round() * step } else { score };
        let hindsight = |place: &Place| {
            let group = &self.groups[place.group as usize];
            tied(group.total - group.irreducible)
        };
        // Where labels give only bounds, the middle of the bounds ranks.
        let estimated = |(row, place): (usize, &Place)| {
            let (total, [low, high]) = match self.decisions.losses(row) {
                Some(losses) => (losses.total(), losses.irreducible()),
                None => {
                    let estimate = policy.estimate(place.source);
                    (estimate.total, [estimate.irreducible_low, estimate.irreducible_high])
                }
            };
            tied(total - low.midpoint(high))
        };
        let rankings: [(&str, Vec<f64>); 5] = [
            ("higher-order", self.places.iter().enumerate().map(estimated).collect()),
            ("total-uncertainty", self.uncertainty.clone()),
            ("cell-optimal", self.places.iter().map(hindsight).collect()),
            ("pointwise-optimal", reducible.clone()),
            ("random", vec![0.0; reducible.len()]),
        ];
        let base = self.mean(&|row| self.total[row]).0;
        let rank = |scores: &[f64]| Ranking::new(scores, &reducible, &self.weights, base);
        let ranked: Vec<(&str, Ranking)> = rankings.par_iter().map(|(name, scores)| (*name, rank(scores))).collect();
        let (best, random) = (ranked[3].1.area(), ranked[4].1.area());
        for (name, ranking) in &ranked {
            let gain =
                (random - best > step && self.tells_noise()).then(|| (random - ranking.area()) / (random - best));
            evaluation.gain.push(*name, gain);
            evaluation.curves.push(*name, ranking.percentiles());
        }
        if self.is_correctable() {
            self.rank_corrected(rankings, step, evaluation);
        }
    }

    /// Curves and gains of the rankings with the bias of few labels taken out.
    pub(super) fn rank_corrected(&self, mut rankings: [(&str, Vec<f64>); 5], step: f64, evaluation: &mut Evaluation) {
        let weights = &self.weights;
        let saved: Vec<f64> =
            (0..weights.len()).map(|row| self.total[row] - self.irreducible_at(row, By::Corrected)).collect();
        if let Some(Corrected { smooth, .. }) = &self.corrected {
            let of_cells: Vec<f64> =
                self.groups.iter().map(|group| group.total - group.losses(By::Corrected).0).collect();
            rankings[2].1 = self.places.iter().map(|place| of_cells[place.group as usize]).collect();
            rankings[3].1 = smooth.total.iter().zip(&smooth.irreducible).map(|(total, lost)| total - lost).collect();
        }
        let base = self.mean(&|row| self.total[row]).0;
        // The best order is judged by what it ranks by: single rows' own labels are mostly noise.
        let saved_by = |place: usize| if place == 3 { &rankings[3].1 } else { &saved };
        let won: Vec<Won> =
            (0..rankings.len()).map(|place| Won::new(&rankings[place].1, saved_by(place), weights)).collect();
        let best = won.iter().max_by(|a, b| a.area.total_cmp(&b.area)).filter(|best| best.area > step);
        let (mut gains, mut errors, mut curves) = (Named::new(), Named::new(), Named::new());
        for (place, (name, scores)) in rankings.iter().enumerate() {
            // Whichever order saves most counts as the best possible.
            let own = if place == 3 { best } else { Some(&won[place]) };
            let part = own.zip(best).map(|(own, best)| own.part_of(best, weights));
            gains.push(*name, part.map(|(part, _)| part));
            errors.push(*name, part.map(|(_, error)| error));
            curves.push(*name, Ranking::new(scores, saved_by(place), weights, base).percentiles());
        }
        evaluation.corrected_gain = Some(gains);
        evaluation.corrected_gain_standard_error = Some(errors);
        evaluation.corrected_curves = Some(curves);
    }
}
