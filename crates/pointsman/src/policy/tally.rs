//! What a run of decisions amounts to.

use std::collections::BTreeMap;

use super::{Action, Decision, Policy, Verdict};
use crate::evaluate::Named;
use crate::router::Support;

/// Queries counted by how they were decided. Counts are whole numbers, so the order of the queries does not matter.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    counts: BTreeMap<Verdict, u64>,
    rows: u64,
}

/// Shares and expected costs of the queries counted.
#[derive(Debug, Clone)]
pub struct TallySummary {
    /// How many queries there were.
    pub rows: u64,
    /// The share that each action gets; `undetermined` is listed only if there are any.
    pub shares: Named<f64>,
    /// Expected cost a query of `router` and of each `always-<action>`; `None` if one label an item gives only bounds.
    pub expected_cost: Option<Named<f64>>,
    /// How many fell into cells of so much support.
    pub support: Named<u64>,
}

impl Tally {
    /// Counts some queries.
    pub fn add(&mut self, mut verdicts: Vec<Verdict>) {
        // Sorted first: one look-up for all that are alike.
        verdicts.sort_unstable();
        for alike in verdicts.chunk_by(|a, b| a == b) {
            *self.counts.entry(alike[0]).or_default() += alike.len() as u64;
        }
        self.rows += verdicts.len() as u64;
    }

    /// How many queries there were.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// What the queries amount to under the policy that decided them, or one repriced from it.
    #[must_use]
    pub fn summary(&self, policy: &Policy) -> TallySummary {
        let mean = |value: &dyn Fn(Decision<'_>) -> f64| -> f64 {
            let all = self.rows as f64;
            self.counts.iter().map(|(&verdict, &n)| value(policy.decision(verdict)) * (n as f64 / all)).sum()
        };
        let names = policy.task().action_names();
        let (mut shares, mut costs, mut support) = (Named::new(), Named::new(), Named::new());
        for (action, name) in names.iter().enumerate() {
            shares.push(name.clone(), mean(&|d| f64::from(u8::from(usize::from(d.code()) == action))));
        }
        let undetermined = mean(&|d| f64::from(u8::from(d.action() == Action::Undetermined)));
        if undetermined > 0.0 {
            shares.push("undetermined", undetermined);
        }
        costs.push("router", mean(&|d| d.costs().get(usize::from(d.code())).copied().unwrap_or(d.costs()[0])));
        for (action, name) in names.iter().enumerate() {
            costs.push(format!("always-{name}"), mean(&|d| d.costs()[action]));
        }
        for wanted in [Support::Enough, Support::Sparse, Support::Empty] {
            let with = self.counts.iter().filter(|(verdict, _)| policy.decision(**verdict).support() == wanted);
            support.push(wanted.name(), with.map(|(_, n)| n).sum());
        }
        let known = self.counts.keys().all(|&verdict| policy.decision(verdict).estimate().is_known());
        TallySummary { rows: self.rows, shares, expected_cost: known.then_some(costs), support }
    }
}
