//! The costs of given actions on held-out rows.

use super::{Basis, Mean, Replay};
use crate::error::{Error, Result, TableError, ValueError};
use crate::policy::Policy;

impl Replay {
    /// The cost of every action of a policy's task on each row: one list per row, one cost per action, in the task's order.
    ///
    /// # Errors
    /// If the policy is neither the one the rows were replayed with nor one repriced from it.
    pub fn action_costs(&self, policy: &Policy) -> Result<Vec<Vec<f64>>> {
        self.check(policy)?;
        let actions = policy.task().actions();
        Ok((0..self.places.len())
            .map(|row| (0..actions).map(|action| self.cost(policy, row, action, Basis::Table)).collect())
            .collect())
    }

    /// The mean cost of one given action per row, each an index into the task's actions.
    ///
    /// # Errors
    /// If the policy is neither the one the rows were replayed with nor one repriced from it, if there are not as many actions as
    /// rows, or if the task has no such action.
    pub fn cost_of_actions(&self, policy: &Policy, actions: &[usize]) -> Result<Mean> {
        self.check(policy)?;
        if actions.len() != self.places.len() {
            let (actions, rows) = (actions.len(), self.places.len());
            return Err(TableError::Length { what: "actions", found: actions, rows }.into());
        }
        let known = policy.task().actions();
        if let Some(row) = actions.iter().position(|&action| action >= known) {
            return Err(Error::value(row, "action", ValueError::Action { action: actions[row], actions: known }));
        }
        Ok(self.mean(&|row| self.cost(policy, row, actions[row], Basis::Table)))
    }
}
