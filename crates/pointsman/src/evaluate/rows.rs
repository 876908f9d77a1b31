//! Held-out rows one by one, for averages over several replays.

use super::Replay;
use crate::policy::Policy;
use crate::task::Task;

impl Replay {
    /// What predicting loses on each row.
    pub(crate) fn total_losses(&self) -> &[f64] {
        &self.total
    }

    /// Entropy of the prediction served to each row.
    pub(crate) fn uncertainties(&self) -> &[f64] {
        &self.uncertainty
    }

    /// The oracle's loss on each row, the bias of few labels taken out: what a group's rows lack on average is added to each.
    ///
    /// A group whose labels do not tell noise from error gets the share of its total loss that the others have. `None` if
    /// such groups are most of the rows.
    pub(crate) fn corrected_losses(&self) -> Option<Vec<f64>> {
        let (mut known, mut total, mut irreducible) = (0.0, 0.0, 0.0);
        for group in &self.groups {
            if let Some(corrected) = group.corrected {
                known += group.share;
                total += group.share * group.total;
                irreducible += group.share * corrected;
            }
        }
        if known < 0.5 {
            return None;
        }
        let ratio = if total > 0.0 { irreducible / total } else { 0.0 };
        let lacking: Vec<f64> = self
            .groups
            .iter()
            .map(|group| group.corrected.unwrap_or(ratio * group.total) - group.irreducible)
            .collect();
        Some(self.irreducible.iter().zip(&self.places).map(|(x, place)| x + lacking[place.group as usize]).collect())
    }

    /// Which action a policy takes on each row, as a place among the task's.
    pub(crate) fn actions_of(&self, policy: &Policy) -> Vec<usize> {
        self.places.iter().map(|place| policy.taken(place.source)).collect()
    }

    /// The reducible loss estimated for each row; where labels give only bounds, their middle.
    pub(crate) fn estimated_reducible(&self) -> Vec<f64> {
        let estimated = |source: u32| {
            let estimate = self.policy.estimate(source);
            estimate.total - estimate.irreducible_low.midpoint(estimate.irreducible_high)
        };
        self.places.iter().map(|place| estimated(place.source)).collect()
    }

    /// What an action costs on a row where predicting loses `total` and the oracle `irreducible`.
    pub(crate) fn action_cost(task: &Task, total: f64, irreducible: f64, action: usize) -> f64 {
        super::cost_of(task, total, irreducible, action)
    }
}
