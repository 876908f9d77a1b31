//! What is certain about a policy: an interval per cell, and the regret that the intervals allow.

use std::path::Path;

use pointsman::certify::{AllLosses, CoarserCells, CoarserPartition, Interval, Judgement, Together};
use pointsman::evaluate::Difference;
use pointsman::task::Named;
use pointsman::{CellId, Certificate, Policy, Router, Task};
use serde::Serialize;

use crate::errors::in_router;

/// A certificate and its judgement of a policy.
#[derive(Debug)]
pub(crate) struct Certified {
    pub(crate) certificate: Certificate,
    pub(crate) judgement: Judgement,
    /// The number of tasks for which it holds at once.
    pub(crate) tasks: usize,
    /// Bounds for every proper loss at once, for the cells that have them.
    pub(crate) all_losses: Vec<Option<AllLosses>>,
    /// Coarser cells that are better certified, if few of these have a certain action.
    pub(crate) coarser: Option<CoarserCells>,
}

/// Coarser cells are tried if the action is certain for less than this share of the traffic.
const MAX_CERTAIN_TO_TRY_COARSER: f64 = 0.5;

/// The coarser cells that are better certified; `None` if most actions are certain already. There may be none.
pub(crate) fn coarser_cells(
    router: &Router,
    task: &Task,
    judgement: &Judgement,
    confidence: f64,
) -> pointsman::Result<Option<CoarserCells>> {
    let is_tried = judgement.certain < MAX_CERTAIN_TO_TRY_COARSER;
    is_tried.then(|| router.coarser_cells(task, confidence)).transpose()
}

/// Bounds for the policy as a whole, as scripts read them.
#[derive(Debug, Serialize)]
pub(crate) struct PolicyBounds {
    confidence: f64,
    regret_bound: f64,
    /// The share of the calibration rows whose action is certain.
    certain_share: f64,
    /// The least probability of a class in the certified cross-entropy.
    #[serde(skip_serializing_if = "Option::is_none")]
    certified_floor: Option<f64>,
    /// Coarser partitions: those tried, and those that would make more actions certain, a forecast.
    #[serde(skip_serializing_if = "Option::is_none")]
    coarser: Option<Coarser>,
}

/// Coarser partitions of the same rows.
#[derive(Debug, Serialize)]
pub(crate) struct Coarser {
    /// The confidence to certify the chosen partition with.
    confidence: f64,
    /// The partitions that were tried.
    tried: Vec<String>,
    /// Those that would make more actions certain, best first.
    partitions: Vec<CoarserCandidate>,
}

impl Coarser {
    pub(crate) fn new(found: &CoarserCells) -> Self {
        let candidate = |one: &CoarserPartition| CoarserCandidate {
            partition: one.partition.to_string(),
            cells: one.cells,
            certain_share: one.certain,
            regret_bound: one.regret_bound,
            promise: one.promise.clone(),
            difference: one.difference,
        };
        Self {
            confidence: found.confidence,
            tried: found.tried.iter().map(ToString::to_string).collect(),
            partitions: found.partitions.iter().map(candidate).collect(),
        }
    }
}

#[derive(Debug, Serialize)]
struct CoarserCandidate {
    partition: String,
    cells: usize,
    certain_share: f64,
    regret_bound: f64,
    /// The expected cost of new queries; null if labels give only bounds.
    promise: Option<pointsman::policy::Promise>,
    /// That cost less the expected cost now, judged by the same rows; null if labels give only bounds.
    difference: Option<Difference>,
}

/// Bounds for a cell, as scripts read them.
#[derive(Debug, Serialize)]
pub(crate) struct CellBounds {
    interval: Intervals,
    certain: bool,
    /// The most that the action may cost above the best one.
    regret: f64,
    /// The action that may be better.
    rival: Option<String>,
    rows_left_out: usize,
    /// The largest error of the means of its rows for every proper loss at once, as a share of the largest loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    all_losses: Option<AllLossesBounds>,
}

#[derive(Debug, Serialize)]
struct AllLossesBounds {
    total: Option<f64>,
    irreducible_below: f64,
    irreducible_above: f64,
}

#[derive(Debug, Serialize)]
struct Intervals {
    irreducible: Interval,
    reducible: Interval,
    total: Interval,
    costs: Named<Interval>,
}

impl Certified {
    /// The certificate of one policy.
    pub(crate) fn new(router: &Router, policy: &Policy, confidence: f64, path: &Path) -> anyhow::Result<Self> {
        let certificate = router.certificate(policy.task(), confidence).map_err(|error| in_router(error, path))?;
        let judgement = certificate.judge(policy)?;
        Ok(Self { certificate, judgement, tasks: 1, all_losses: Vec::new(), coarser: None })
    }

    /// Several policies whose certificates hold all at once, with bounds for every proper loss.
    pub(crate) fn all(router: &Router, policies: &[Policy], confidence: f64, path: &Path) -> anyhow::Result<Vec<Self>> {
        let tasks: Vec<Task> = policies.iter().map(|policy| policy.task().clone()).collect();
        let Together { certificates, all_losses, .. } =
            router.certify_together(&tasks, confidence).map_err(|error| in_router(error, path))?;
        let judge = |(certificate, policy): (Certificate, &Policy)| {
            let judgement = certificate.judge(policy)?;
            let coarser = coarser_cells(router, policy.task(), &judgement, confidence)?;
            Ok(Self { certificate, judgement, tasks: tasks.len(), all_losses: all_losses.clone(), coarser })
        };
        certificates.into_iter().zip(policies).map(judge).collect()
    }

    /// Bounds for the policy as a whole.
    pub(crate) fn bounds(&self) -> PolicyBounds {
        PolicyBounds {
            confidence: self.certificate.confidence(),
            regret_bound: self.judgement.regret_bound,
            certain_share: self.judgement.certain,
            certified_floor: self.certificate.loss().floor(),
            coarser: self.coarser.as_ref().map(Coarser::new),
        }
    }

    /// Bounds for one cell.
    pub(crate) fn cell_bounds(&self, cell: CellId, policy: &Policy) -> CellBounds {
        let (found, judged) = (&self.certificate.cells()[cell.index()], &self.judgement.cells[cell.index()]);
        let costs = self.certificate.costs(cell, policy.task()).unwrap_or_default();
        CellBounds {
            interval: Intervals {
                irreducible: found.irreducible(),
                reducible: found.reducible(),
                total: found.total(),
                costs: policy.task().action_names().into_iter().zip(costs).collect(),
            },
            certain: judged.certain,
            regret: judged.regret,
            rival: judged.rival.clone(),
            rows_left_out: found.rows_left_out(),
            all_losses: self.all_losses.get(cell.index()).copied().flatten().map(|bound| AllLossesBounds {
                total: bound.total,
                irreducible_below: bound.irreducible_below,
                irreducible_above: bound.irreducible_above,
            }),
        }
    }
}
