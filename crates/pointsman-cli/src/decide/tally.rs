//! What a run of decisions amounts to.

use std::collections::BTreeMap;
use std::io::{self, Write};

use pointsman::{Action, Policy, Support, Verdict};

use crate::render::number::{count, counted, percent, short};
use crate::render::style::{self, BOLD, DIM};
use crate::show::action_names;

/// Queries counted by how they were decided. Counts are whole numbers, so batches do not matter.
#[derive(Debug, Default)]
pub(super) struct Tally {
    counts: BTreeMap<Verdict, u64>,
    rows: u64,
}

impl Tally {
    pub(super) fn add(&mut self, verdicts: &mut [Verdict]) {
        // Sorted first: one look-up for all that are alike.
        verdicts.sort_unstable();
        for alike in verdicts.chunk_by(|a, b| a == b) {
            *self.counts.entry(alike[0]).or_default() += alike.len() as u64;
        }
        self.rows += verdicts.len() as u64;
    }

    pub(super) fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Mean of the core's costs over the queries.
    fn mean(&self, policy: &Policy, cost: impl Fn(&pointsman::Decision<'_>) -> f64) -> f64 {
        let all = self.rows as f64;
        self.counts.iter().map(|(&verdict, &n)| cost(&policy.decision(verdict)) * (n as f64 / all)).sum()
    }

    /// How many queries fell into cells of so much support.
    fn with(&self, policy: &Policy, support: Support) -> usize {
        let met = self.counts.iter().filter(|(verdict, _)| policy.decision(**verdict).support() == support);
        met.map(|(_, &n)| n).sum::<u64>() as usize
    }

    /// The share of the queries that an action gets.
    fn share(&self, policy: &Policy, wanted: Action<'_>) -> f64 {
        self.mean(policy, |decision| f64::from(u8::from(decision.action() == wanted)))
    }

    pub(super) fn write(&self, out: &mut impl Write, policy: &Policy) -> io::Result<()> {
        let task = policy.task();
        let names = action_names(policy);
        let mut actions = vec![Action::Predict];
        actions.extend(task.routes().iter().map(|route| Action::Route(route.name())));
        actions.extend(task.abstain_price().map(|_| Action::Abstain));
        if self.share(policy, Action::Undetermined) > 0.0 {
            actions.push(Action::Undetermined);
        }
        let shares: Vec<String> = actions
            .iter()
            .map(|action| {
                let style = style::action(action);
                format!("{style}{action}{style:#} {}", percent(self.share(policy, *action)))
            })
            .collect();
        writeln!(out, "{BOLD}{}{BOLD:#}: {}", counted(self.rows(), "query", "queries"), shares.join(", "))?;

        let bounded = self.counts.keys().any(|&verdict| !policy.decision(verdict).estimate().is_known());
        if bounded {
            writeln!(
                out,
                "{DIM}one label an item: costs of routing are only bounded; undetermined queries have no certain best action{DIM:#}"
            )?;
        } else {
            let position = |action: Action<'_>| actions.iter().position(|other| *other == action).unwrap_or(0);
            let router = self.mean(policy, |decision| decision.costs()[position(decision.action())]);
            let always: Vec<String> = names
                .iter()
                .enumerate()
                .map(|(i, name)| format!("always {name} {}", short(self.mean(policy, |d| d.costs()[i]))))
                .collect();
            let (unit, always) = (task.loss().unit(), always.join(", "));
            writeln!(out, "expected cost a query {BOLD}{}{BOLD:#} {unit}; {always}", short(router))?;
        }
        let (sparse, empty) = (self.with(policy, Support::Sparse), self.with(policy, Support::Empty));
        if sparse > 0 {
            writeln!(out, "{DIM}{} fell into sparse cells{DIM:#}", count(sparse))?;
        }
        if empty > 0 {
            let empty = count(empty);
            writeln!(out, "{DIM}{empty} fell into empty cells and were decided by rows of the same confidence{DIM:#}")?;
        }
        Ok(())
    }
}
