//! Coarser partitions that would determine the action of more traffic.
//!
//! With fewer cells each has more rows, and the error probability is divided among fewer intervals. The comparison uses the same labels that
//! would certify the coarser cells, so choosing a partition and certifying it on the same rows uses the labels twice. The result is
//! therefore a forecast. A certificate of the chosen partition is valid if the error probability is divided by the number of partitions
//! compared.

use crate::error::Result;
use crate::evaluate::Difference;
use crate::numeric::weighted::Z_95;
use crate::partition::Partition;
use crate::policy::{Policy, Promise};
use crate::router::Router;
use crate::task::Task;

/// Coarser partitions of the same rows that would determine more: a forecast, not a certificate.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CoarserCells {
    /// The partitions that would determine more than the present one, largest share first.
    pub partitions: Vec<CoarserPartition>,
    /// The partitions that were tried: those with fewer cells than the present one.
    pub tried: Vec<Partition>,
    /// The confidence at which to certify the chosen partition so that the requested confidence holds after the choice.
    pub confidence: f64,
}

/// One coarser partition.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CoarserPartition {
    /// The partition.
    pub partition: Partition,
    /// The number of its cells.
    pub cells: usize,
    /// The share of the calibration rows, by weight, whose action would be certain.
    pub certain: f64,
    /// The upper bound on the regret per query on these cells.
    pub regret_bound: f64,
    /// The expected cost of new queries with it; `None` if the labels only bound it.
    pub promise: Option<Promise>,
    /// That cost less the expected cost with the present cells. Both are judged by the same rows, so the standard error is that of the paired
    /// difference, which is much smaller than those of the costs. `None` if the labels only bound one of them.
    pub difference: Option<Difference>,
}

impl Router {
    /// The coarser partitions that would determine the action of more of the traffic.
    ///
    /// # Errors
    /// As [`Router::certificate`].
    pub fn coarser_cells(&self, task: &Task, confidence: f64) -> Result<CoarserCells> {
        let present = self.policy(task)?;
        let now = self.certificate(task, confidence)?.judge(&present)?.certain;
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
        let tried = routers.iter().map(|router| router.partition().clone()).collect();
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
                    difference: difference(&policy, &present),
                });
            }
        }
        partitions.sort_by(|a, b| b.certain.total_cmp(&a.certain).then(b.cells.cmp(&a.cells)));
        Ok(CoarserCells { partitions, tried, confidence: confidence_to_ask })
    }
}

/// The expected cost of a policy less that of another one on the same rows.
fn difference(policy: &Policy, present: &Policy) -> Option<Difference> {
    let found = policy.promised_difference(present)?;
    let (estimate, error) = (found.estimate, found.standard_error);
    let standard_error = Some(error).filter(|error| error.is_finite());
    Some(Difference {
        estimate,
        standard_error,
        interval: standard_error.map(|error| [estimate - Z_95 * error, estimate + Z_95 * error]),
        identified: found.open.map(|ends| ends.map(|end| estimate + end)),
        differing_rows: found.differing_rows,
    })
}
