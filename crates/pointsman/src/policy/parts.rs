//! A policy as plain parts without calibration rows, and back: what deciding needs, and what was promised.
//!
//! Parts are what files contain, so they are not trusted: [`Policy::from_parts`] checks all of them.

mod check;

use std::sync::{Arc, OnceLock};

pub(super) use check::is_loss;

use super::cutoff::Cutoff;
use super::leaf_losses::LeafLosses;
use super::{Estimates, Policy, Promise, Surcharge};
use crate::error::{Error, Result, TaskError};
use crate::estimate::{Decomposition, OtherOracles};
use crate::oracle::Oracle;
use crate::partition::{Cells, Partition};
use crate::task::{Named, Task};

/// What a policy consists of, without calibration rows.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyParts {
    /// The partition asked for.
    pub partition: Partition,
    /// The classes, in order.
    pub classes: Vec<String>,
    /// The fitted partition.
    pub cells: Arc<Cells>,
    /// The confidence bins that queries of empty cells fall back to.
    pub backoff: Arc<Cells>,
    /// Whether centroids are served instead of predictions.
    pub recalibrated: bool,
    /// The task.
    pub task: Task,
    /// The distinct oracles that are not Bayes-optimal, with the name of their first route.
    pub oracles: Vec<(String, Oracle)>,
    /// The estimates of each cell and, if any cell is empty, of each confidence bin and of all rows.
    pub sources: SourceParts,
    /// The losses of a forest's leaves.
    pub leaves: Option<LeafParts>,
    /// What was estimated from held-out rows.
    pub figures: FigureParts,
    /// What identifies the router, such as a hash of its file; `None` if it is not known.
    pub origin: Option<String>,
}

/// Estimates per source, as columns.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SourceParts {
    /// The number of calibration rows; 0 if a source is empty, and then all its other numbers are 0.
    pub rows: Vec<u64>,
    /// How many of them have two labels or more.
    pub paired_rows: Vec<u64>,
    /// The total weight of the rows.
    pub weights: Vec<f64>,
    /// The effective number of rows.
    pub effective_rows: Vec<f64>,
    /// The mean label distribution, source by source.
    pub centroids: Vec<f64>,
    /// The total loss, both ends of the irreducible loss, and both ends of each other oracle's loss, source by source.
    pub losses: Vec<f64>,
}

/// Losses per leaf, leaf by leaf.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LeafParts {
    /// The total loss; the irreducible loss, or both its ends if they differ in any leaf; the share of errors if a slope is not zero; both
    /// ends of each other oracle's loss.
    pub losses: Vec<f64>,
    /// The slopes of the own part of a query's prediction.
    pub slopes: [f64; 2],
}

/// What was estimated from held-out rows when the policy was compiled.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct FigureParts {
    /// The share of the calibration rows that each action gets, followed by that of undetermined ones, if there are any.
    pub shares: Vec<f64>,
    /// The promise; `None` if it could not be made, or the policy has other prices now.
    pub promise: Option<PromiseParts>,
    /// The price that enforces a limit on routing.
    pub limit: Option<LimitParts>,
}

/// An estimate with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Figure {
    /// The estimate.
    pub value: f64,
    /// Its standard error, if it is known.
    pub standard_error: Option<f64>,
    /// The bounds that the labels identify, if they do not identify the value.
    pub identified: Option<[f64; 2]>,
}

/// The parts of a [`Promise`].
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct PromiseParts {
    /// Expected cost per query.
    pub cost: Figure,
    /// Expected loss per query.
    pub loss: Figure,
    /// Expected cost per query of each action taken always.
    pub always: Vec<f64>,
}

/// The parts of a [`Surcharge`].
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct LimitParts {
    /// The price.
    pub price: f64,
    /// The part of the marginal queries that is routed.
    pub marginal: f64,
    /// The share of the queries that is marginal.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "is_zero"))]
    pub at_margin: f64,
    /// The share of the queries that is routed.
    pub share: f64,
    /// Its standard error, if it is known.
    pub share_standard_error: Option<f64>,
    /// The expected loss of all queries.
    pub loss: Figure,
}

#[cfg(feature = "serde")]
fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

/// Checked figures, in the form in which a policy gives them.
#[derive(Debug)]
pub(super) struct StoredFigures {
    pub(super) shares: Named<f64>,
    pub(super) promise: Option<Promise>,
    pub(super) surcharge: Option<Surcharge>,
}

impl Figure {
    fn new(value: f64, standard_error: f64, identified: Option<[f64; 2]>) -> Self {
        Self { value, standard_error: standard_error.is_finite().then_some(standard_error), identified }
    }
}

impl Policy {
    /// The policy without calibration rows. What is promised is estimated from held-out rows first, which takes longer than compiling.
    ///
    /// ```
    /// use pointsman::{Loss, Oracle, Partition, Policy, Router, Table, Task};
    /// let table = Table::new(["no", "yes"], vec![0.9, 0.1, 0.8, 0.2, 0.4, 0.6])?.with_votes(vec![5, 0, 2, 3, 0, 5])?;
    /// let router = Router::calibrate(&table, &Partition::top_class(1))?;
    /// let policy = router.policy(&Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05)?)?;
    /// let alone = Policy::from_parts(policy.to_parts())?;
    /// assert!(alone.router().is_none());
    /// assert_eq!(alone.decide(&[0.85, 0.15])?.costs(), policy.decide(&[0.85, 0.15])?.costs());
    /// # Ok::<(), pointsman::Error>(())
    /// ```
    #[must_use]
    pub fn to_parts(&self) -> PolicyParts {
        let Estimates { partition, classes, cells, backoff, is_recalibrated, other_oracles, sources, leaves, .. } =
            &*self.estimates;
        PolicyParts {
            partition: partition.clone(),
            classes: classes.clone(),
            cells: cells.clone(),
            backoff: backoff.clone(),
            recalibrated: *is_recalibrated,
            task: self.task.clone(),
            oracles: other_oracles.iter().map(|(oracle, name)| (name.to_owned(), oracle.clone())).collect(),
            sources: SourceParts::new(sources, classes.len(), other_oracles.count()),
            leaves: leaves.as_ref().map(LeafLosses::to_parts),
            figures: self.figure_parts(),
            origin: self.origin().map(str::to_owned),
        }
    }

    fn figure_parts(&self) -> FigureParts {
        let promise = self.promise().map(|promise| PromiseParts {
            cost: Figure::new(promise.cost, promise.standard_error, promise.identified),
            loss: Figure::new(promise.loss, promise.loss_standard_error, promise.loss_identified),
            always: promise.always.iter().map(|(_, cost)| *cost).collect(),
        });
        let limit = self.surcharge().map(|found| LimitParts {
            price: found.price,
            marginal: found.marginal,
            at_margin: found.at_margin,
            share: found.share,
            share_standard_error: found.share_standard_error.is_finite().then_some(found.share_standard_error),
            loss: Figure::new(found.loss, found.loss_standard_error, found.loss_identified),
        });
        FigureParts { shares: self.shares().iter().map(|(_, share)| *share).collect(), promise, limit }
    }

    /// Puts a policy together from its parts. It decides bit for bit as the policy they were taken from, and has no calibration rows:
    /// [`Policy::router`] is `None`, and [`Policy::reprice`] changes prices and routes, not the loss.
    ///
    /// # Errors
    /// If the parts do not fit each other, or a number is not possible; the message says which.
    pub fn from_parts(parts: PolicyParts) -> Result<Self> {
        let PolicyParts {
            partition,
            classes,
            cells,
            backoff,
            recalibrated,
            task,
            oracles,
            sources,
            leaves,
            figures,
            origin,
        } = parts;
        crate::table::check_classes(&classes)?;
        check::partition(&partition, &cells, &backoff, classes.len())?;
        let task = task.for_classes(&classes)?;
        task.chosen_estimator().check_classes(classes.len())?;
        let count = oracles.len();
        let list = oracles.into_iter().map(|(name, oracle)| (oracle, name)).collect();
        let other_oracles = OtherOracles::from_list(list).ok_or_else(|| {
            Error::contradiction("the oracles of the policy are not distinct, or one of them is Bayes-optimal")
        })?;
        let sources = sources.decompositions(&cells, &backoff, classes.len(), count)?;
        let empty = (0..cells.count() as u32).filter(|&cell| sources[cell as usize].is_none()).collect();
        let leaves = LeafLosses::from_parts(leaves, &cells, recalibrated, &task, count)?;
        let cutoff = check::cutoff(&task, figures.limit.as_ref())?;
        let stored = StoredFigures::from_parts(figures, &task)?;
        let estimates = Estimates {
            partition,
            classes,
            cells,
            backoff,
            is_recalibrated: recalibrated,
            loss: task.loss().clone(),
            other_oracles,
            sources,
            empty,
            leaves,
            calibration: None,
            origin,
            held_out: OnceLock::new(),
            without_groups: OnceLock::new(),
            votes: OnceLock::new(),
        };
        let mut policy = Self::compile(task, Arc::new(estimates), cutoff)?;
        policy.figures = Some(Arc::new(stored));
        Ok(policy)
    }

    /// The policy itself if it has no calibration rows and its task does not change, so that its limit and its promise stay.
    pub(super) fn unchanged_for(&self, task: &Task) -> Option<Self> {
        (self.figures.is_some() && *task == self.task).then(|| self.clone())
    }

    /// The error of a task with another loss or estimator than the policy's.
    pub(super) fn other_policy(&self, task: &Task) -> Error {
        if self.router().is_some() {
            return TaskError::OtherPolicy.into();
        }
        let describe = |task: &Task| format!("the loss {} and the estimator {}", task.loss(), task.chosen_estimator());
        TaskError::OtherPolicyFile { compiled: describe(&self.task), asked: describe(task) }.into()
    }
}

impl SourceParts {
    fn new(sources: &[Option<Decomposition>], classes: usize, oracles: usize) -> Self {
        let mut parts = Self::default();
        for source in sources {
            parts.rows.push(source.as_ref().map_or(0, |it| it.rows as u64));
            parts.paired_rows.push(source.as_ref().map_or(0, |it| it.paired_rows as u64));
            parts.weights.push(source.as_ref().map_or(0.0, |it| it.weight));
            parts.effective_rows.push(source.as_ref().map_or(0.0, |it| it.effective_rows));
            match source {
                None => {
                    parts.centroids.resize(parts.centroids.len() + classes, 0.0);
                    parts.losses.resize(parts.losses.len() + 3 + 2 * oracles, 0.0);
                }
                Some(it) => {
                    parts.centroids.extend_from_slice(&it.centroid);
                    parts.losses.extend([it.total, it.irreducible_low, it.irreducible_high]);
                    parts.losses.extend(it.oracles.as_flattened());
                }
            }
        }
        parts
    }
}

impl StoredFigures {
    fn from_parts(parts: FigureParts, task: &Task) -> Result<Self> {
        check::figures(&parts, task)?;
        let names = task.action_names();
        let with_open = names.iter().cloned().chain(["undetermined".to_owned()]);
        let shares: Named<f64> = with_open.zip(parts.shares).collect();
        let unknown = |error: Option<f64>| error.unwrap_or(f64::NAN);
        let promise = parts.promise.map(|promise| Promise {
            cost: promise.cost.value,
            standard_error: unknown(promise.cost.standard_error),
            identified: promise.cost.identified,
            loss: promise.loss.value,
            loss_standard_error: unknown(promise.loss.standard_error),
            loss_identified: promise.loss.identified,
            shares: shares.clone(),
            always: names.into_iter().zip(promise.always).collect(),
        });
        let surcharge = parts.limit.map(|limit| Surcharge {
            price: limit.price,
            marginal: limit.marginal,
            at_margin: limit.at_margin,
            share: limit.share,
            share_standard_error: unknown(limit.share_standard_error),
            loss: limit.loss.value,
            loss_standard_error: unknown(limit.loss.standard_error),
            loss_identified: limit.loss.identified,
        });
        Ok(Self { shares, promise, surcharge })
    }
}

impl From<&LimitParts> for Cutoff {
    fn from(limit: &LimitParts) -> Self {
        let &LimitParts { price, marginal, at_margin, share, ref loss, .. } = limit;
        Self { price, marginal, at_margin, share, loss: loss.value }
    }
}
