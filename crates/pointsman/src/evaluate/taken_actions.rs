//! The actions of a policy on held-out rows, and their costs.

use super::{Basis, Replay, sum};
use crate::parallel::prelude::*;
use crate::policy::{MixedAction, Policy};

/// One action per group or, for a forest, which gives every row its own costs, one per row.
pub(super) struct TakenActions<'a> {
    replay: &'a Replay,
    policy: &'a Policy,
    /// Whether the action is determined, and the action that is taken or, if undetermined, assumed.
    taken: Vec<(bool, MixedAction)>,
    by_row: bool,
}

impl Replay {
    pub(super) fn taken_actions<'a>(&'a self, policy: &'a Policy) -> TakenActions<'a> {
        let by_row = policy.has_forest();
        let taken = if by_row {
            let act = |row: usize| policy.action_on(&self.decisions, row);
            (0..self.places.len()).into_par_iter().with_min_len(1 << 10).map(act).collect()
        } else {
            self.groups.iter().map(|group| policy.action_of_source(group.source)).collect()
        };
        TakenActions { replay: self, policy, taken, by_row }
    }
}

impl TakenActions<'_> {
    /// The actual cost of the action on a row.
    pub(super) fn cost(&self, row: usize, by: Basis) -> f64 {
        self.action(row).mean(|action| self.replay.cost(self.policy, row, action, by))
    }

    /// The action on a row.
    pub(super) fn action(&self, row: usize) -> MixedAction {
        self.taken[if self.by_row { row } else { self.replay.places[row].group as usize }].1
    }

    /// The mean cost per query.
    pub(super) fn mean_cost(&self, by: Basis) -> f64 {
        let cost = |unit: usize, action: usize| {
            if self.by_row {
                self.replay.cost(self.policy, unit, action, by)
            } else {
                self.replay.groups[unit].cost(self.policy, action, by)
            }
        };
        self.mean(|unit| self.taken[unit].1.mean(|action| cost(unit, action)))
    }

    /// The share of the rows whose action, taken or assumed, is wanted.
    pub(super) fn share_of(&self, wanted: impl Fn(usize) -> bool) -> f64 {
        self.mean(|unit| self.taken[unit].1.mean(|action| f64::from(u8::from(wanted(action))))).min(1.0)
    }

    /// The share of the rows with a determined action that is `action`.
    pub(super) fn decided_share_of(&self, action: usize) -> f64 {
        self.mean(|unit| if self.taken[unit].0 { self.taken[unit].1.part_of(action) } else { 0.0 }).min(1.0)
    }

    /// The share of the rows whose action is undetermined.
    pub(super) fn undecided_share(&self) -> f64 {
        self.mean(|unit| f64::from(u8::from(!self.taken[unit].0))).min(1.0)
    }

    /// The mean over rows of a value per group, or per row for a forest.
    fn mean(&self, value: impl Fn(usize) -> f64) -> f64 {
        if self.by_row {
            let weights = &self.replay.weights;
            sum(weights.iter().enumerate().map(|(row, weight)| weight * value(row))) / sum(weights.iter().copied())
        } else {
            sum(self.replay.groups.iter().enumerate().map(|(unit, group)| group.share * value(unit)))
        }
    }
}
