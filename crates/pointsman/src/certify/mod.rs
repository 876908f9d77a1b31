//! Certificates: confidence intervals for the costs of each cell, certain actions, and a regret bound that holds for all prices.
//!
//! All statements of a certificate hold simultaneously with the given confidence, for traffic like the calibration rows: the intervals of
//! every cell, the shares of the cells, and therefore the regret of every policy of this loss and these oracles at any prices. The error
//! probability δ is split into 9/10 for the intervals, in equal parts, and 1/10 for the shares.

mod approximation;
mod betting;
mod budget_draws;
mod coarser;
mod difference_prior;
mod e_process;
mod forecast;
mod future_differences;
mod interval;
mod items;
mod judgement;
mod listing;
mod offer;
mod plan;
mod rules;
mod statistics;
mod study;
mod uniform;
mod views;

use std::sync::Arc;

pub use coarser::{CoarserCells, CoarserPartition};
pub use e_process::EProcess;
pub use interval::Interval;
use items::Items;
pub use judgement::{CellJudgement, Judgement};
pub use offer::{FirstCells, Offer, Purchase, ToCertainty, is_distinct, price_of_labels, saving_over};
pub use plan::{CellPlan, ItemToLabel, Plan};
use rules::{BAYES, PREDICT, Rules};
pub use uniform::AllLosses;

use crate::error::{Result, RouterError, TableError, TaskError};
use crate::loss::Loss;
use crate::parallel::prelude::*;
use crate::partition::{CellId, Cells};
use crate::router::{Mixture, Router};
use crate::task::Task;

/// The part of δ for the shares of the cells.
const DELTA_FOR_SHARES: f64 = 0.1;

/// The part of δ for the bounds for all losses, if they are given together with certificates.
const DELTA_FOR_ALL_LOSSES: f64 = 0.1;

/// The largest weight of a row, relative to the mean; with a larger one a single row would dominate.
const MAX_RELATIVE_WEIGHT: f64 = 20.0;

/// Confidence intervals for the loss of each answer in each cell, before prices.
///
/// ```
/// use pointsman::{Loss, Oracle, Partition, Router, Table, Task};
/// let table = Table::new(["no", "yes"], [0.9, 0.1].repeat(400))?.with_votes([4, 1].repeat(400))?;
/// let router = Router::calibrate(&table, &Partition::top_class(1))?;
/// let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.3)?;
/// let certificate = router.certificate(&task, 0.95)?;
/// let judgement = certificate.judge(&router.policy(&task)?)?;
/// assert!(judgement.cells[0].certain); // 0.3 is more than an expert can save
/// # Ok::<(), pointsman::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Certificate {
    confidence: f64,
    rules: Rules,
    /// The fitted partition.
    partition: Arc<Cells>,
    cells: Vec<CellCertificate>,
    shares: Vec<f64>,
    /// The largest excess of the true share of any set of cells over its share of the rows.
    share_error: f64,
    /// The largest true share of all cells without rows.
    unseen: f64,
}

/// Certificates and bounds for all losses that hold simultaneously.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Together {
    /// One certificate per task.
    pub certificates: Vec<Certificate>,
    /// One bound per cell, if it is informative.
    pub all_losses: Vec<Option<AllLosses>>,
}

/// The intervals of one cell. Those of a cell without rows cover the whole range.
#[derive(Debug, Clone, PartialEq)]
pub struct CellCertificate {
    rows: usize,
    dropped: usize,
    costs: Vec<Interval>,
    /// The loss of answer a minus that of answer b: `gaps[a * answers + b]`.
    gaps: Vec<Interval>,
}

impl Router {
    /// Intervals for the loss and the oracles of a task; its prices do not matter.
    ///
    /// # Errors
    /// If the confidence is not between 0 and 1, the loss does not fit the classes, some rows weigh too much, or the router has no
    /// predictions of a measured oracle.
    pub fn certificate(&self, task: &Task, confidence: f64) -> Result<Certificate> {
        self.certify(task, confidence, 1, 1.0)
    }

    /// Certificates for several tasks that hold simultaneously; each is slightly wider than alone.
    ///
    /// # Errors
    /// As [`Router::certificate`].
    pub fn certificates(&self, tasks: &[Task], confidence: f64) -> Result<Vec<Certificate>> {
        tasks.iter().map(|task| self.certify(task, confidence, tasks.len(), 1.0)).collect()
    }

    /// As [`Router::certificates`], with bounds for every proper loss in the cells where [`Router::all_losses`] is informative. Certificates
    /// and bounds hold simultaneously.
    ///
    /// Nine tenths of the error probability are for the certificates and one tenth for the bounds. If no cell can have a bound, which does
    /// not depend on labels, all of it is for the certificates.
    ///
    /// # Errors
    /// As [`Router::certificate`].
    pub fn certify_together(&self, tasks: &[Task], confidence: f64) -> Result<Together> {
        check(self, confidence)?;
        let cells = || (0..self.cells().count() as u32).map(CellId);
        let bounded = cells().any(|cell| self.check_all_losses(cell).is_ok());
        let part = if bounded { 1.0 - DELTA_FOR_ALL_LOSSES } else { 1.0 };
        let certify = |task: &Task| self.certify(task, confidence, tasks.len(), part);
        let certificates = tasks.iter().map(certify).collect::<Result<_>>()?;
        let rest = 1.0 - DELTA_FOR_ALL_LOSSES * (1.0 - confidence);
        let all_losses = cells().map(|cell| self.all_losses(cell, rest).ok()).collect();
        Ok(Together { certificates, all_losses })
    }

    /// Whether the cells do not depend on the labels of the router's own rows; false for forests.
    #[must_use]
    pub fn is_certifiable(&self) -> bool {
        self.cells().forest().is_none()
    }

    /// The certificate of one of several tasks, with a part of the error probability.
    fn certify(&self, task: &Task, confidence: f64, tasks: usize, part: f64) -> Result<Certificate> {
        check(self, confidence)?;
        let delta = part * (1.0 - confidence);
        let rules = Rules::new(self, task, delta, tasks)?;
        let cells = self.cells().count();
        let (all, heaviest) = self.weights();
        let relative = heaviest * self.rows().rows() as f64 / all;
        if relative > MAX_RELATIVE_WEIGHT {
            return Err(TableError::HeavyRow { relative, most: MAX_RELATIVE_WEIGHT }.into());
        }
        let answers = rules.measured(self)?;
        let cell = |cell: u32| {
            let mixture = self.mixture(CellId(cell));
            let served = self.is_recalibrated().then(|| mixture.centroid());
            let items = Items::from_cell(self, CellId(cell), heaviest, &answers);
            (rules.certify(&items, served.as_ref().map(|served| served.as_deref())), weight(mixture) / all)
        };
        let (cells, shares): (Vec<_>, Vec<_>) = (0..cells as u32).into_par_iter().map(cell).unzip();
        // A union bound over all sets of cells; half of the error probability for each of the two claims. Between quantiles of the rows
        // themselves the share of a set has a beta distribution, whose tails are no heavier than binomial ones.
        let n = self.rows().rows() as f64;
        let doubt = cells.len() as f64 * 2_f64.ln() - (DELTA_FOR_SHARES / 2.0 * delta).ln();
        Ok(Certificate {
            confidence,
            rules,
            partition: self.cells().clone(),
            cells,
            shares,
            share_error: (relative * (doubt / (2.0 * n)).sqrt()).min(1.0),
            unseen: (relative * doubt / n).min(1.0),
        })
    }

    /// The total weight and the largest weight of the rows.
    fn weights(&self) -> (f64, f64) {
        let weights = (0..self.rows().rows()).map(|row| self.rows().weight(row));
        weights.fold((0.0, 0.0), |(all, heaviest), weight| (all + weight, f64::max(heaviest, weight)))
    }
}

/// Checks that a router can be certified at a confidence.
fn check(router: &Router, confidence: f64) -> Result<()> {
    if !router.is_certifiable() {
        return Err(RouterError::NotCertifiable.into());
    }
    if confidence > 0.0 && confidence < 1.0 {
        return Ok(());
    }
    let wanted = "is not between 0 and 1, both excluded; give a number such as 0.95".to_owned();
    Err(TaskError::OutOfRange { what: "confidence".to_owned(), value: confidence, wanted }.into())
}

fn weight(mixture: Mixture<'_>) -> f64 {
    mixture.rows().map(|row| mixture.table().weight(row)).sum()
}

impl Certificate {
    /// The confidence asked for.
    #[must_use]
    pub fn confidence(&self) -> f64 {
        self.confidence
    }

    /// The loss that is certified: the task's loss, with a higher floor for the cross-entropy.
    #[must_use]
    pub fn loss(&self) -> &Loss {
        &self.rules.loss
    }

    /// The cells, in order.
    #[must_use]
    pub fn cells(&self) -> &[CellCertificate] {
        &self.cells
    }

    /// The cells' shares of the calibration rows, by weight.
    #[must_use]
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// The intervals of the costs of a task's actions in a cell, in the order of [`Task::action_names`]. `None` if there is no such cell or
    /// the task has other oracles.
    #[must_use]
    pub fn costs(&self, cell: CellId, task: &Task) -> Option<Vec<Interval>> {
        self.check(task).ok()?;
        let cell = self.cells.get(cell.index())?;
        Some((0..task.actions()).map(|action| self.rules.cost(cell, task, action)).collect())
    }

    /// Checks that the certificate is for the loss and the oracles of a task.
    fn check(&self, task: &Task) -> Result<()> {
        let known = task.routes().iter().all(|route| self.rules.other_oracles.loss_of(route).is_some());
        if known && task.loss().certified_like(&self.rules.loss) {
            Ok(())
        } else {
            Err(TaskError::OtherCertificate.into())
        }
    }
}

impl CellCertificate {
    /// The number of rows that the intervals are computed from.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of rows left out because they define an edge of the cell.
    #[must_use]
    pub fn rows_left_out(&self) -> usize {
        self.dropped
    }

    /// The interval of the loss of predicting.
    #[must_use]
    pub fn total(&self) -> Interval {
        self.costs[PREDICT]
    }

    /// The interval of the irreducible loss.
    #[must_use]
    pub fn irreducible(&self) -> Interval {
        self.costs[BAYES]
    }

    /// The interval of the reducible loss.
    #[must_use]
    pub fn reducible(&self) -> Interval {
        self.gaps[PREDICT * self.costs.len() + BAYES]
    }
}
