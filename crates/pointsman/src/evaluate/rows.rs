//! Values of single held-out rows, for averages over several replays.

use super::{Basis, Replay};
use crate::policy::{Decisions, Policy};

/// The actual losses and costs of each row, corrected for the bias of few labels.
#[derive(Debug)]
pub(crate) struct RowCosts {
    /// The Bayes-optimal oracle's loss.
    pub(crate) irreducible: Vec<f64>,
    /// The cost of each action, one list per row.
    pub(crate) actions: Vec<Vec<f64>>,
}

impl Replay {
    /// The loss of predicting each row.
    pub(crate) fn total_losses(&self) -> &[f64] {
        &self.total
    }

    /// The policy that decided the rows.
    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The policy's decisions.
    pub(crate) fn decisions(&self) -> &Decisions {
        &self.decisions
    }

    /// The entropy of the served prediction of each row.
    pub(crate) fn uncertainties(&self) -> &[f64] {
        &self.uncertainty
    }

    /// The rows' corrected losses; `None` if the labels of most rows do not separate noise from error.
    pub(crate) fn corrected_rows(&self, policy: &Policy) -> Option<RowCosts> {
        if !self.separates_noise() {
            return None;
        }
        let actions = policy.task().actions();
        let cost = |row: usize| (0..actions).map(|action| self.cost(policy, row, action, Basis::Corrected)).collect();
        Some(RowCosts {
            irreducible: (0..self.places.len()).map(|row| self.irreducible_at(row, Basis::Corrected)).collect(),
            actions: (0..self.places.len()).map(cost).collect(),
        })
    }

    /// The action of a policy on each row, as its index in the task; at the margin of a limit, the route.
    pub(crate) fn actions_of(&self, policy: &Policy) -> Vec<usize> {
        policy.actions_of(&self.decisions)
    }

    /// The estimated reducible loss of each row; the midpoint if it is only bounded.
    pub(crate) fn estimated_reducible(&self) -> Vec<f64> {
        let estimated = |row: usize| {
            let losses = self.policy.losses_of(&self.decisions, row);
            losses.total - losses.irreducible[0].midpoint(losses.irreducible[1])
        };
        (0..self.places.len()).map(estimated).collect()
    }
}

impl Policy {
    /// The action on each row of a batch that this policy decided, as its index in the task.
    pub(crate) fn actions_of(&self, decisions: &Decisions) -> Vec<usize> {
        (0..decisions.len()).map(|row| self.action_on(decisions, row).1.actions()[0]).collect()
    }
}
