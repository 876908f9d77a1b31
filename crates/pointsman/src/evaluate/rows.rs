//! Held-out rows one by one, for averages over several replays.

use super::{Group, Place, Replay};
use crate::policy::{Decisions, Policy};

/// What each row really loses and costs, the bias of few labels taken out.
#[derive(Debug)]
pub(crate) struct RowCosts {
    /// The Bayes-optimal oracle's loss.
    pub(crate) irreducible: Vec<f64>,
    /// A list a row, one cost an action.
    pub(crate) actions: Vec<Vec<f64>>,
}

/// What the rows of a group lack: a factor of the irreducible loss, or what is added where that is zero, and what is added to
/// the losses of other oracles.
struct Lacking {
    factor: f64,
    more: f64,
    oracles: Vec<f64>,
}

impl Lacking {
    fn of(group: &Group, ratio: f64) -> Self {
        let (irreducible, oracles) = match &group.corrected {
            Some((irreducible, oracles)) => {
                (*irreducible, oracles.iter().zip(&group.oracles).map(|(a, b)| a - b).collect())
            }
            None => (ratio * group.total, vec![0.0; group.oracles.len()]),
        };
        let (factor, more) = match group.irreducible {
            found if found > 1e-9 * irreducible => (irreducible / found, 0.0),
            found => (1.0, irreducible - found),
        };
        Self { factor, more, oracles }
    }
}

impl Replay {
    /// What predicting loses on each row.
    pub(crate) fn total_losses(&self) -> &[f64] {
        &self.total
    }

    /// What the policy has decided on each row.
    pub(crate) fn decisions(&self) -> &Decisions {
        &self.decisions
    }

    /// Entropy of the prediction served to each row.
    pub(crate) fn uncertainties(&self) -> &[f64] {
        &self.uncertainty
    }

    /// The rows' losses with the bias of few labels taken out group by group. `None` if most rows are in groups whose labels do
    /// not tell noise from error; the others then get the same share of their total loss.
    ///
    /// Labels that all agree hide no noise and labels that are divided hide most, so each row's irreducible loss is multiplied by
    /// what its group lacks: under the Brier loss by k/(k − 1), exactly the unbiased estimate.
    pub(crate) fn corrected_rows(&self, policy: &Policy) -> Option<RowCosts> {
        let (mut known, mut total, mut irreducible) = (0.0, 0.0, 0.0);
        for group in &self.groups {
            if let Some((corrected, _)) = group.corrected {
                known += group.share;
                total += group.share * group.total;
                irreducible += group.share * corrected;
            }
        }
        if known < 0.5 {
            return None;
        }
        let ratio = if total > 0.0 { irreducible / total } else { 0.0 };
        let lacking: Vec<Lacking> = self.groups.iter().map(|group| Lacking::of(group, ratio)).collect();
        let names = policy.task().actions();
        let mut rows = RowCosts { irreducible: Vec::new(), actions: Vec::new() };
        for (row, place) in self.places.iter().enumerate() {
            let lacking = &lacking[place.group as usize];
            let irreducible = lacking.factor * self.irreducible[row] + lacking.more;
            let own = |oracle: usize| self.oracles.columns()[oracle][row] + lacking.oracles[oracle];
            let cost = |action: usize| policy.cost_of(action, self.total[row], irreducible, own);
            rows.actions.push((0..names).map(cost).collect());
            rows.irreducible.push(irreducible);
        }
        Some(rows)
    }

    /// Which action the policy takes on each row, as a place among the task's; at the margin of a limit, the route.
    pub(crate) fn actions_of(&self, policy: &Policy) -> Vec<usize> {
        policy.actions_of(&self.decisions)
    }

    /// The reducible loss estimated for each row; where labels give only bounds, their middle.
    pub(crate) fn estimated_reducible(&self) -> Vec<f64> {
        let estimated = |(row, place): (usize, &Place)| {
            let (total, [low, high]) = match self.decisions.losses(row) {
                Some(losses) => (losses.total(), losses.irreducible()),
                None => {
                    let estimate = self.policy.estimate(place.source);
                    (estimate.total, [estimate.irreducible_low, estimate.irreducible_high])
                }
            };
            total - low.midpoint(high)
        };
        self.places.iter().enumerate().map(estimated).collect()
    }
}

impl Policy {
    /// Which action is taken on each row of a batch that this policy decided, as a place among the task's.
    pub(crate) fn actions_of(&self, decisions: &Decisions) -> Vec<usize> {
        let course = |row: usize| match decisions.losses(row) {
            Some(losses) => self.act_on(losses).1,
            None => self.taken(self.unfold(decisions.verdict(row)).1),
        };
        (0..decisions.len()).map(|row| course(row).actions()[0]).collect()
    }
}
