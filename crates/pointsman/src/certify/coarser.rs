//! Which coarser cells would settle more.
//!
//! With fewer cells each has more rows, and the failures allowed are divided among fewer intervals. What coarser cells would settle
//! is computed from the very labels that would certify them, so that choosing among them and certifying by the same rows looks
//! at the labels twice. It is therefore a forecast; a certificate of the cells chosen holds if the failures
//! allowed are divided by the number of partitions chosen among.

use crate::error::Result;
use crate::partition::Partition;
use crate::policy::Promise;
use crate::router::Router;
use crate::task::Task;

/// What coarser partitions of the same rows would settle: a forecast, not a certificate.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CoarserCells {
    /// The partitions that would settle more, the one that settles most first.
    pub partitions: Vec<CoarserPartition>,
    /// The confidence to certify the one chosen with, so that what was asked for holds although the labels were looked at to choose.
    pub confidence: f64,
}

/// One of them.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CoarserPartition {
    /// The partition.
    pub partition: Partition,
    /// How many cells it has.
    pub cells: usize,
    /// The share of the calibration rows, by weight, whose action would be certain.
    pub certain: f64,
    /// What the policy might cost more than the best one on these cells, per query.
    pub regret_bound: f64,
    /// What new queries are expected to cost with it; `None` if the labels give only bounds.
    pub promise: Option<Promise>,
}

impl Router {
    /// Which coarser partitions would make the action of more of the traffic certain.
    ///
    /// # Errors
    /// As [`Router::certificate`].
    pub fn coarser_cells(&self, task: &Task, confidence: f64) -> Result<CoarserCells> {
        let now = self.certificate(task, confidence)?.judge(&self.policy(task)?)?.certain;
        let candidates = [Partition::top_class(5), Partition::confidence(10), Partition::confidence(5)];
        let mut routers = Vec::new();
        for partition in candidates.into_iter().filter(|partition| partition != self.partition()) {
            let router = Self::calibrate(self.rows(), &partition)?;
            let router = if self.is_recalibrated() { router.recalibrated() } else { router };
            if router.cells().count() < self.cells().count() {
                routers.push(router);
            }
        }
        let confidence_to_ask = 1.0 - (1.0 - confidence) / (routers.len() + 1) as f64;
        let mut partitions = Vec::new();
        for router in routers {
            // A limit may be out of reach of coarser cells.
            let Ok(policy) = router.policy(task) else { continue };
            let judged = router.certificate(task, confidence_to_ask)?.judge(&policy)?;
            if judged.certain > now {
                partitions.push(CoarserPartition {
                    partition: router.partition().clone(),
                    cells: router.cells().count(),
                    certain: judged.certain,
                    regret_bound: judged.regret_bound,
                    promise: policy.promise(),
                });
            }
        }
        partitions.sort_by(|a, b| b.certain.total_cmp(&a.certain).then(b.cells.cmp(&a.cells)));
        Ok(CoarserCells { partitions, confidence: confidence_to_ask })
    }
}
