//! The counters of a deployment's decisions, kept once they are found: finding one by its labels takes longer than counting.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;

/// The counters that have been found for a version.
#[derive(Debug)]
pub(crate) struct DecisionCounters {
    /// By action; the last ones are for decisions without one.
    actions: Vec<ActionCounters>,
}

/// The counters of one action.
#[derive(Debug, Default)]
pub(crate) struct ActionCounters {
    /// Where it was the best action.
    pub(crate) best: OnceLock<Counter>,
    /// Where the best action was unavailable.
    pub(crate) best_unavailable: OnceLock<Counter>,
    /// Where a limit kept from the best action.
    pub(crate) best_beyond_limit: OnceLock<Counter>,
    /// Its expected cost.
    pub(crate) cost: OnceLock<Counter<f64, AtomicU64>>,
}

impl DecisionCounters {
    /// None found yet, for a version with this many actions.
    pub(crate) fn new(actions: usize) -> Self {
        Self { actions: (0..=actions).map(|_| ActionCounters::default()).collect() }
    }

    /// The counters of an action's code.
    pub(crate) fn of_action(&self, code: u8) -> &ActionCounters {
        &self.actions[usize::from(code).min(self.actions.len() - 1)]
    }
}
