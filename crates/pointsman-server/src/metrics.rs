//! Counters and histograms for Prometheus.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::deployment::{Deployment, Snapshot, Version};
use crate::store::{Degradation, Outcome};

/// Upper ends of the buckets of latencies, in seconds.
const BUCKETS: [f64; 16] =
    [5e-5, 1e-4, 2e-4, 4e-4, 7e-4, 1e-3, 1.5e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 1.0, 5.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DecisionLabels {
    deployment: String,
    action: String,
    degraded: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CostLabels {
    deployment: String,
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PolicyLabels {
    deployment: String,
    version: u32,
    partition: String,
    loss: String,
    mode: &'static str,
}

/// What the service counts.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    decisions: Family<DecisionLabels, Counter>,
    overhead: Histogram,
    commits: Histogram,
    waiting: Gauge,
    lost: Counter,
    costs: Family<CostLabels, Counter<f64, AtomicU64>>,
    policies: Family<PolicyLabels, Gauge>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("pointsman");
        let histogram = || Histogram::new(BUCKETS);
        let metrics = Self {
            decisions: Family::default(),
            overhead: histogram(),
            commits: histogram(),
            waiting: Gauge::default(),
            lost: Counter::default(),
            costs: Family::default(),
            policies: Family::default(),
            registry: Registry::default(),
        };
        registry.register("decisions", "Decisions that were committed", metrics.decisions.clone());
        let what = "Time of a request within the service, without upstream calls";
        registry.register_with_unit("overhead", what, Unit::Seconds, metrics.overhead.clone());
        registry.register_with_unit(
            "log_commit",
            "Time of a commit to the log",
            Unit::Seconds,
            metrics.commits.clone(),
        );
        registry.register("log_queue_rows", "Decisions that wait to be committed", metrics.waiting.clone());
        registry.register("lost_log", "Decisions that were answered without being logged", metrics.lost.clone());
        registry.register(
            "cost",
            "Expected cost of the actions taken, by kind, in the unit of the loss",
            metrics.costs.clone(),
        );
        registry.register("policy_info", "The active policy version of each deployment", metrics.policies.clone());
        Self { registry, ..metrics }
    }
}

/// Measures one request.
#[derive(Debug)]
pub(crate) struct Timer<'a> {
    histogram: &'a Histogram,
    start: Instant,
}

impl Timer<'_> {
    pub(crate) fn observe(self) {
        self.histogram.observe(self.start.elapsed().as_secs_f64());
    }
}

impl Metrics {
    /// Starts the clock of a request.
    pub(crate) fn start_decision(&self) -> Timer<'_> {
        Timer { histogram: &self.overhead, start: Instant::now() }
    }

    /// Counts a committed decision and its expected cost.
    pub(crate) fn count_decision(&self, deployment: &Deployment, outcome: &Outcome, version: &Version) {
        let counters = deployment.counters.of_action(outcome.action);
        let action = version.names.action(outcome.action);
        let cost = outcome.costs.get(usize::from(outcome.action)).filter(|cost| cost.is_finite() && **cost > 0.0);
        if let Some(cost) = cost {
            let find = || {
                let kind = match action {
                    "predict" => "predict",
                    "abstain" => "abstain",
                    _ => "route",
                };
                self.costs.get_or_create_owned(&CostLabels { deployment: deployment.stored.name.clone(), kind })
            };
            counters.cost.get_or_init(find).inc_by(*cost);
        }
        let why = outcome.degraded.map(|(_, why)| why);
        let counter = match why {
            None => &counters.best,
            Some(Degradation::Unavailable) => &counters.best_unavailable,
            Some(Degradation::Limit) => &counters.best_beyond_limit,
        };
        let find = || {
            let degraded = why.map_or("", Degradation::name).to_owned();
            let deployment = deployment.stored.name.clone();
            self.decisions.get_or_create_owned(&DecisionLabels { deployment, action: action.to_owned(), degraded })
        };
        counter.get_or_init(find).inc();
    }

    /// Counts decisions that were answered without being logged.
    pub(crate) fn count_lost(&self, decisions: usize) {
        self.lost.inc_by(decisions as u64);
    }

    /// A function that records the time of commits.
    pub fn observe_commits(&self) -> Arc<dyn Fn(Duration) + Send + Sync> {
        let commits = self.commits.clone();
        Arc::new(move |time| commits.observe(time.as_secs_f64()))
    }

    /// All metrics in the text format of Prometheus.
    pub(crate) fn render(&self, now: &Snapshot, waiting: usize) -> String {
        self.waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
        self.policies.clear();
        for deployment in now.deployments.values() {
            if let Some(version) = &deployment.active {
                let labels = PolicyLabels {
                    deployment: deployment.stored.name.clone(),
                    version: version.number,
                    partition: version.policy.partition().to_string(),
                    loss: version.policy.task().loss().to_string(),
                    mode: deployment.mode().name(),
                };
                self.policies.get_or_create(&labels).set(1);
            }
        }
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
