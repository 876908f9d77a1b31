//! Caps on held-out rows: the table is decided as a whole, as `decide` would decide it.

use std::sync::Arc;

use super::replay::Replay;
use super::taken_actions::TakenActions;
use super::{Basis, minus};
use crate::error::Result;
use crate::policy::{CappedActions, Caps, Policy, RowDraws};
use crate::table::Table;
use crate::task::Task;

/// The use of a cap on held-out rows.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct EvaluatedCap {
    /// The capped route.
    pub route: String,
    /// The largest number of rows.
    pub most: u64,
    /// The number of rows that the policy would route without caps.
    pub wanted: u64,
    /// The number of rows routed.
    pub granted: u64,
    /// The most that one more row would save at the task's own prices, by the estimates that decide; 0 if the cap is not used up, and negative
    /// if a target loss routes at a price below the route's own.
    pub price: f64,
}

/// The rows that do not get their own action because of caps, and what that costs.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CostOfCaps {
    /// The number of rows that take another action.
    pub moved: usize,
    /// The cost per query, over all rows, minus that without caps, corrected for the bias of few labels where possible.
    pub cost: f64,
    /// The standard error of the difference, paired by row; `None` for one row.
    pub standard_error: Option<f64>,
    /// The bounds on the difference that labels identify with infinitely many rows; `None` if it is identified exactly.
    pub identified: Option<[f64; 2]>,
}

/// The caps of a replay, and what orders its rows under them.
#[derive(Debug, Clone)]
pub(super) struct CappedRows {
    caps: Caps,
    /// The task whose routes are capped.
    task: Task,
    draws: Arc<RowDraws>,
}

impl Replay {
    /// The same rows under caps: each policy that is evaluated keeps them on this table, as when it decides the table as a whole. `ids` are
    /// those of the rows; without ids, rows of equal cost are ordered by their content.
    ///
    /// Whether a row gets a capped route depends on all other rows. Standard errors include this to first order: the price of a cap counts
    /// as a part of the cost of each row that gets the route.
    ///
    /// # Errors
    /// If the table lacks a feature.
    ///
    /// # Panics
    /// If the table or the ids have fewer rows than the replay, or the caps are of another task.
    pub fn with_caps(self, caps: Caps, table: &Table, ids: Option<&[String]>) -> Result<Self> {
        let draws = Arc::new(self.policy.row_draws(table, ids)?);
        let caps = Some(CappedRows { caps, task: self.policy.task().clone(), draws });
        Ok(Self { caps, ..self })
    }

    /// The same rows under the caps of another replay of the same table, for a policy of the same router under another loss.
    #[must_use]
    pub fn with_caps_of(self, other: &Self) -> Self {
        Self { caps: other.caps.clone(), ..self }
    }

    /// The caps that apply to a policy, and its actions under them; `None` if none applies.
    pub(super) fn act_within_caps(&self, policy: &Policy) -> Option<(Caps, CappedActions)> {
        let CappedRows { caps, task, draws } = self.caps.as_ref()?;
        let caps = caps.for_task(task, policy.task())?;
        let actions = policy.act_within(&caps, &self.decisions, draws);
        Some((caps, actions))
    }

    /// The use of each cap and, if rows take other actions because of them, what the caps cost.
    pub(super) fn use_of_caps(
        &self,
        policy: &Policy,
        taken: &TakenActions<'_>,
    ) -> (Vec<EvaluatedCap>, Option<CostOfCaps>) {
        let Some((caps, uses)) = taken.caps() else { return (Vec::new(), None) };
        let used = |((route, used), price): ((&str, &crate::policy::CapUse), f64)| EvaluatedCap {
            route: route.to_owned(),
            most: used.most,
            wanted: used.wanted,
            granted: used.granted,
            price,
        };
        let names = caps.names(policy.task());
        let used = names.into_iter().zip(uses).zip(caps.savings(policy, uses)).map(used).collect();
        if !taken.is_capped() {
            return (used, None);
        }
        let (by, without) = (self.best_basis(), self.taken_actions_without_caps(policy));
        let on = |by: Basis| if self.best_basis() == Basis::Corrected { by } else { Basis::Table };
        let rows = |taken: &TakenActions<'_>| self.each_row(&|row, by| taken.cost(row, on(by)));
        let [with, without_caps] = [rows(taken), rows(&without)];
        let cost = self.corrected_mean(&minus(&with, &without_caps)).mean;
        let standard_error =
            self.corrected_mean(&minus(&taken.with_prices_of_caps(&with), &without_caps)).standard_error;
        let part = |taken: &TakenActions<'_>, row: usize| taken.action(row).mean(|action| policy.bayes_part(action));
        let identified = match by {
            Basis::Corrected => self.identify_difference(cost, &|row| part(taken, row) - part(&without, row)),
            _ => None,
        };
        (used, Some(CostOfCaps { moved: taken.moved(), cost, standard_error, identified }))
    }
}
