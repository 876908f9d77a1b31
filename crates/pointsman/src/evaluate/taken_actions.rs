//! What a policy does with held-out rows, and what that costs.

use rayon::prelude::*;

use super::{Basis, Replay, sum};
use crate::policy::{MixedAction, Policy};

/// One action per group or, where a forest gives every row costs of its own, one per row.
pub(super) struct TakenActions<'a> {
    replay: &'a Replay,
    policy: &'a Policy,
    /// Whether the labels decide, and what is done or, if they do not, counts as done.
    taken: Vec<(bool, MixedAction)>,
    by_row: bool,
}

impl Replay {
    pub(super) fn taken_actions<'a>(&'a self, policy: &'a Policy) -> TakenActions<'a> {
        let by_row = policy.has_forest();
        let taken = if by_row {
            let act = |row: usize| self.decisions.losses(row).map(|losses| policy.act_on(losses));
            (0..self.places.len()).into_par_iter().with_min_len(1 << 10).filter_map(act).collect()
        } else {
            let act = |source: u32| (policy.code(source).is_some(), policy.taken(source));
            self.groups.iter().map(|group| act(group.source)).collect()
        };
        TakenActions { replay: self, policy, taken, by_row }
    }
}

impl TakenActions<'_> {
    /// What is done with a row really costs.
    pub(super) fn cost(&self, row: usize, by: Basis) -> f64 {
        self.action(row).mean(|action| self.replay.cost(self.policy, row, action, by))
    }

    /// What is done with a row.
    pub(super) fn action(&self, row: usize) -> MixedAction {
        self.taken[if self.by_row { row } else { self.replay.places[row].group as usize }].1
    }

    /// Mean cost per query.
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

    /// The share of the rows whose action, done or counted, is one of those.
    pub(super) fn share_of(&self, wanted: impl Fn(usize) -> bool) -> f64 {
        self.mean(|unit| self.taken[unit].1.mean(|action| f64::from(u8::from(wanted(action))))).min(1.0)
    }

    /// The share of the rows that certainly get an action.
    pub(super) fn decided_share_of(&self, action: usize) -> f64 {
        self.mean(|unit| if self.taken[unit].0 { self.taken[unit].1.part_of(action) } else { 0.0 }).min(1.0)
    }

    /// The share of the rows of which the labels do not decide.
    pub(super) fn undecided_share(&self) -> f64 {
        self.mean(|unit| f64::from(u8::from(!self.taken[unit].0))).min(1.0)
    }

    /// The mean over rows of what holds for the groups, or for each of them.
    fn mean(&self, value: impl Fn(usize) -> f64) -> f64 {
        if self.by_row {
            let weights = &self.replay.weights;
            sum(weights.iter().enumerate().map(|(row, weight)| weight * value(row))) / sum(weights.iter().copied())
        } else {
            sum(self.replay.groups.iter().enumerate().map(|(unit, group)| group.share * value(unit)))
        }
    }
}
