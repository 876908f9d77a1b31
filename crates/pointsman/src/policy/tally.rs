//! What a run of decisions amounts to.

use std::collections::BTreeMap;

use super::{Decision, Decisions, Policy, Verdict};
use crate::evaluate::Named;
use crate::router::Support;

/// Queries counted by how they were decided. Counts are whole numbers, so the order of the queries does not matter; with a
/// forest, whose costs are each query's own, they are added up in order.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    counts: BTreeMap<Verdict, u64>,
    rows: u64,
    own: Option<OwnCosts>,
}

/// Sums over queries that have costs of their own.
#[derive(Debug, Clone)]
struct OwnCosts {
    /// How often each action was taken; the last is undetermined.
    taken: Vec<u64>,
    /// What was spent, and what each action would have cost everywhere.
    router: f64,
    always: Vec<f64>,
    known: bool,
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
    /// Counts the queries of a batch that the policy has decided.
    pub fn add(&mut self, policy: &Policy, decisions: &Decisions) {
        if policy.has_forest() {
            let actions = policy.actions();
            let own = self.own.get_or_insert_with(|| OwnCosts {
                taken: vec![0; actions + 1],
                router: 0.0,
                always: vec![0.0; actions],
                known: true,
            });
            for row in 0..decisions.len() {
                let decision = policy.row(decisions, row);
                own.taken[decision.code().unwrap_or(actions)] += 1;
                own.router += decision.costs()[decision.code().unwrap_or(0)];
                own.always.iter_mut().zip(decision.costs()).for_each(|(sum, cost)| *sum += cost);
                own.known &= decision.is_known();
            }
        }
        // Sorted first: one look-up for all that are alike.
        let mut verdicts = decisions.verdicts.clone();
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
        let all = self.rows as f64;
        let names = policy.task().action_names();
        let (mut shares, mut costs, mut support) = (Named::new(), Named::new(), Named::new());
        let share = |code: Option<usize>| match &self.own {
            None => mean(&|d| f64::from(u8::from(d.code() == code))),
            Some(own) => own.taken[code.unwrap_or(names.len())] as f64 / all,
        };
        for (action, name) in names.iter().enumerate() {
            shares.push(name.clone(), share(Some(action)));
        }
        let undetermined = share(None);
        if undetermined > 0.0 {
            shares.push("undetermined", undetermined);
        }
        let router = self.own.as_ref().map(|own| own.router / all);
        costs.push("router", router.unwrap_or_else(|| mean(&|d| d.costs()[d.code().unwrap_or(0)])));
        for (action, name) in names.iter().enumerate() {
            let always = self.own.as_ref().map(|own| own.always[action] / all);
            costs.push(format!("always-{name}"), always.unwrap_or_else(|| mean(&|d| d.costs()[action])));
        }
        for wanted in [Support::Enough, Support::Sparse, Support::Empty] {
            let with = self.counts.iter().filter(|(verdict, _)| policy.decision(**verdict).support() == wanted);
            support.push(wanted.name(), with.map(|(_, n)| n).sum());
        }
        let known = match &self.own {
            None => self.counts.keys().all(|&verdict| policy.decision(verdict).is_known()),
            Some(own) => own.known,
        };
        TallySummary { rows: self.rows, shares, expected_cost: known.then_some(costs), support }
    }
}
