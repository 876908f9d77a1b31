//! Held-out rows decided by someone else: what an action costs on each row.

use super::{Basis, Mean, Replay};
use crate::error::{Error, Result, TableError, ValueError};
use crate::policy::Policy;

impl Replay {
    /// What every action of a policy's task costs on each row: a list per row, one cost per action, in the task's order.
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

    /// What it costs to take the given action on each row, as places among the task's actions.
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
        let (mean, standard_error) = self.mean(&|row| self.cost(policy, row, actions[row], Basis::Table));
        Ok(Mean { mean, standard_error })
    }
}
