//! What a run of decisions amounts to.

use std::io::{self, Write};

use pointsman::{Action, Policy, Support, Verdict};

use crate::render::number::{count, counted, percent, short};
use crate::render::style::{self, BOLD, DIM};
use crate::show::action_names;

/// Queries counted by the source of their costs. Counts are whole numbers, so batches do not matter.
#[derive(Debug, Default)]
pub(super) struct Tally {
    sources: Vec<(Verdict, u64)>,
    rows: u64,
    sparse: u64,
    empty: u64,
}

impl Tally {
    pub(super) fn add(&mut self, policy: &Policy, verdicts: &[Verdict]) {
        for &verdict in verdicts {
            let source = verdict.source as usize;
            if self.sources.len() <= source {
                self.sources.resize(source + 1, (Verdict::default(), 0));
            }
            self.sources[source].0 = verdict;
            self.sources[source].1 += 1;
            match policy.decision(verdict).support() {
                Support::Enough => {}
                Support::Sparse => self.sparse += 1,
                Support::Empty => self.empty += 1,
            }
        }
        self.rows += verdicts.len() as u64;
    }

    pub(super) fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Mean of the core's costs over the queries.
    fn mean(&self, policy: &Policy, cost: impl Fn(&pointsman::Decision<'_>) -> f64) -> f64 {
        let all = self.rows as f64;
        let met = self.sources.iter().filter(|(_, n)| *n > 0);
        met.map(|&(verdict, n)| cost(&policy.decision(verdict)) * (n as f64 / all)).sum()
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

        let bounded = self.sources.iter().any(|(v, n)| *n > 0 && !policy.decision(*v).estimate().is_known());
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
        if self.sparse > 0 {
            writeln!(out, "{DIM}{} fell into sparse cells{DIM:#}", count(self.sparse as usize))?;
        }
        if self.empty > 0 {
            let empty = count(self.empty as usize);
            writeln!(out, "{DIM}{empty} fell into empty cells and were decided by rows of the same confidence{DIM:#}")?;
        }
        Ok(())
    }
}
