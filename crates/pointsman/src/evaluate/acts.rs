//! What a policy does with held-out rows, and what that costs.

use rayon::prelude::*;

use super::{Replay, sum};
use crate::policy::Policy;

/// One action a group or, where a forest gives every row costs of its own, one a row.
pub(super) struct Acts<'a> {
    replay: &'a Replay,
    policy: &'a Policy,
    /// The action, if the labels decide, and the one that is counted.
    acts: Vec<(Option<usize>, usize)>,
    by_row: bool,
}

impl Replay {
    pub(super) fn acts<'a>(&'a self, policy: &'a Policy) -> Acts<'a> {
        let by_row = policy.has_forest();
        let acts = if by_row {
            let act = |row: usize| self.decisions.losses(row).map_or((None, 0), |losses| policy.act_on(losses));
            (0..self.places.len()).into_par_iter().with_min_len(1 << 10).map(act).collect()
        } else {
            self.groups.iter().map(|group| (policy.code(group.source), policy.taken(group.source))).collect()
        };
        Acts { replay: self, policy, acts, by_row }
    }
}

impl Acts<'_> {
    /// The action counted on a row.
    pub(super) fn on(&self, row: usize) -> usize {
        self.acts[if self.by_row { row } else { self.replay.places[row].group as usize }].1
    }

    /// Mean cost a query.
    pub(super) fn mean_cost(&self) -> f64 {
        if self.by_row {
            self.by_rows(|row| self.replay.cost(self.policy, row, self.acts[row].1))
        } else {
            let groups = self.replay.groups.iter().zip(&self.acts);
            sum(groups.map(|(group, act)| group.share * group.cost(self.policy, act.1)))
        }
    }

    /// Mean cost a query with the bias of few labels taken out. A row has the bias of its cell.
    pub(super) fn corrected_cost(&self) -> f64 {
        if self.by_row {
            self.by_rows(|row| {
                let (group, act) = (&self.replay.groups[self.replay.places[row].group as usize], self.acts[row].1);
                let bias = group.corrected_cost(self.policy, act) - group.cost(self.policy, act);
                self.replay.cost(self.policy, row, act) + bias
            })
        } else {
            let groups = self.replay.groups.iter().zip(&self.acts);
            sum(groups.map(|(group, act)| group.share * group.corrected_cost(self.policy, act.1)))
        }
    }

    /// The share of the rows whose action, and that counted, are as asked for.
    pub(super) fn share(&self, holds: impl Fn(Option<usize>, usize) -> bool) -> f64 {
        let holds = |act: &(Option<usize>, usize)| holds(act.0, act.1);
        if self.by_row {
            self.by_rows(|row| f64::from(u8::from(holds(&self.acts[row])))).min(1.0)
        } else {
            let groups = self.replay.groups.iter().zip(&self.acts);
            sum(groups.filter(|(_, act)| holds(act)).map(|(group, _)| group.share)).min(1.0)
        }
    }

    fn by_rows(&self, value: impl Fn(usize) -> f64) -> f64 {
        let weights = &self.replay.weights;
        sum(weights.iter().enumerate().map(|(row, weight)| weight * value(row))) / sum(weights.iter().copied())
    }
}
