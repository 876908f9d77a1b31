//! The actions of a policy on held-out rows, and their costs.

use super::{Basis, Replay, sum};
use crate::parallel::prelude::*;
use crate::policy::{CapUse, Caps, MixedAction, Policy};

/// One action per group or, for a forest, which gives every row its own costs, and under caps, which count rows, one per row.
pub(super) struct TakenActions<'a> {
    replay: &'a Replay,
    policy: &'a Policy,
    /// Whether the action is determined, and the action that is taken or, if undetermined, assumed.
    taken: Vec<(bool, MixedAction)>,
    by_row: bool,
    /// The caps that apply, and their use.
    caps: Option<(Caps, Vec<CapUse>)>,
    /// What one more row under the cap on each action would save, at the task's own prices; empty if no cap is exceeded without them.
    prices: Vec<f64>,
    /// The number of rows that take another action because of caps.
    moved: usize,
    /// The mean weight of the rows.
    mean_weight: f64,
}

impl Replay {
    pub(super) fn taken_actions<'a>(&'a self, policy: &'a Policy) -> TakenActions<'a> {
        let Some((caps, capped)) = self.act_within_caps(policy) else { return self.taken_actions_without_caps(policy) };
        let is_exceeded = |used: &CapUse| used.wanted > used.most;
        if !capped.uses.iter().any(is_exceeded) {
            return TakenActions { caps: Some((caps, capped.uses)), ..self.taken_actions_without_caps(policy) };
        }
        let mut prices = vec![0.0; policy.task().actions()];
        let savings = caps.savings(policy, &capped.uses);
        caps.actions().zip(savings).for_each(|(action, saving)| prices[action] = saving);
        let taken = capped.taken.into_iter().map(|(known, action)| (known, MixedAction::always(action))).collect();
        let mean_weight = sum(self.weights.iter().copied()) / self.weights.len() as f64;
        let (moved, caps) = (capped.moved, Some((caps, capped.uses)));
        TakenActions { replay: self, policy, taken, by_row: true, caps, prices, moved, mean_weight }
    }

    pub(super) fn taken_actions_without_caps<'a>(&'a self, policy: &'a Policy) -> TakenActions<'a> {
        let by_row = policy.has_forest();
        let taken = if by_row {
            let act = |row: usize| policy.action_on(&self.decisions, row);
            (0..self.places.len()).into_par_iter().with_min_len(1 << 10).map(act).collect()
        } else {
            self.groups.iter().map(|group| policy.action_of_source(group.source)).collect()
        };
        let (prices, mean_weight) = (Vec::new(), f64::NAN);
        TakenActions { replay: self, policy, taken, by_row, caps: None, prices, moved: 0, mean_weight }
    }
}

impl TakenActions<'_> {
    /// The actual cost of the action on a row.
    pub(super) fn cost(&self, row: usize, by: Basis) -> f64 {
        self.action(row).mean(|action| self.replay.cost(self.policy, row, action, by))
    }

    /// The costs of each row with the price of its cap, from which standard errors are computed.
    ///
    /// A further row that is routed under a cap displaces another, whose saving is about the price of the cap. So the mean cost depends on a
    /// row by its own cost and by this price. The share routed is fixed, so adding the price to the cost of each routed row gives the variance.
    pub(super) fn with_prices_of_caps(&self, [rows, alternative]: &[Vec<f64>; 2]) -> [Vec<f64>; 2] {
        [rows, alternative].map(|costs| (0..costs.len()).map(|row| costs[row] + self.price_of_cap(row)).collect())
    }

    /// The price of the cap on a row's action.
    pub(super) fn price_of_cap(&self, row: usize) -> f64 {
        if self.is_capped() { self.action(row).mean(|action| self.price_of_cap_on(row, action)) } else { 0.0 }
    }

    /// The price of the cap on an action, by the weight of the row that takes it; 0 without a cap.
    pub(super) fn price_of_cap_on(&self, row: usize, action: usize) -> f64 {
        match self.prices.get(action) {
            Some(price) if *price != 0.0 => price * self.weight_of_displaced(row),
            _ => 0.0,
        }
    }

    /// The weight of the row that a row displaces under a cap, as a part of its own: caps count rows, and the one displaced has an average weight.
    pub(super) fn weight_of_displaced(&self, row: usize) -> f64 {
        self.mean_weight / self.replay.weights[row]
    }

    /// Whether rows take other actions because of caps.
    pub(super) fn is_capped(&self) -> bool {
        !self.prices.is_empty()
    }

    /// The caps that apply, and their use.
    pub(super) fn caps(&self) -> Option<(&Caps, &[CapUse])> {
        self.caps.as_ref().map(|(caps, uses)| (caps, uses.as_slice()))
    }

    /// The number of rows that take another action because of caps.
    pub(super) fn moved(&self) -> usize {
        self.moved
    }

    /// The action on a row.
    pub(super) fn action(&self, row: usize) -> MixedAction {
        self.taken[self.unit_of(row)].1
    }

    /// The action on a row if it is determined.
    pub(super) fn determined_action(&self, row: usize) -> Option<MixedAction> {
        let (is_determined, action) = self.taken[self.unit_of(row)];
        is_determined.then_some(action)
    }

    fn unit_of(&self, row: usize) -> usize {
        if self.by_row { row } else { self.replay.places[row].group as usize }
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
