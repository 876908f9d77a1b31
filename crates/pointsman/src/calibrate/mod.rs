//! Calibration: from a table to a router, with a given partition or with the one that `auto` finds cheapest.
//!
//! A router knows no task. Choosing a partition needs a few standard tasks, which is why this module comes after
//! [`estimate`](crate::estimate) and is not part of [`router`](crate::router).

mod auto;

use std::fmt;

use crate::error::Result;
use crate::partition::forest::growth_steps;
use crate::partition::{Factor, Partition};
use crate::router::{Progress, Router, STEPS};
use crate::table::Table;
use auto::Wanted;
pub use auto::{Candidate, Choice};

/// Units of work to grow one tree. Measured with 200 trees and 20,000 rows: growing takes nine tenths of the time.
const WORK_OF_TREE: u64 = 9;

/// Units of work per tree to make a router, including growing.
const WORK_OF_FOREST: u64 = 10;

/// The settings of a calibration, created by [`Router::builder`].
///
/// | setting | default | meaning |
/// |---|---|---|
/// | [`partition`](Self::partition) | `auto` | how inputs are grouped |
/// | [`seed`](Self::seed) | 0 | the seed of partitions that draw random numbers |
/// | [`recalibrated`](Self::recalibrated) | no | serve the means of cells instead of predictions |
/// | [`progress`](Self::progress) | none | a function called as the work proceeds |
///
/// ```
/// use pointsman::{Partition, Router, Table};
/// let table = Table::new(["no", "yes"], vec![0.9, 0.1, 0.8, 0.2, 0.3, 0.7])?.with_votes(vec![5, 0, 2, 3, 0, 5])?;
/// let router = Router::builder().partition(Partition::top_class(2)).fit(&table)?;
/// assert_eq!(router, Router::calibrate(&table, &Partition::top_class(2))?);
/// # Ok::<(), pointsman::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "nothing is calibrated before `fit`"]
pub struct RouterBuilder<'a> {
    partition: Partition,
    seed: u64,
    recalibrated: bool,
    progress: Option<&'a (dyn Fn() + Sync)>,
}

/// A router, and how its partition was chosen.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Calibration {
    /// The router.
    pub router: Router,
    /// How `auto` chose; `None` if the partition was named.
    pub choice: Option<Choice>,
    /// What a recalibrated router serves, measured; `None` if it is not recalibrated, or cannot be calibrated on parts of the rows.
    pub served: Option<Served>,
}

/// The loss of always predicting with the means of cells, on calibration rows left out in turn.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Served {
    /// The Brier loss of the means.
    pub loss: f64,
    /// The Brier loss of the predictions that they replace.
    pub own_loss: f64,
    /// The standard error of the difference.
    pub standard_error: f64,
    /// The number of rows.
    pub rows: usize,
}

impl<'a> RouterBuilder<'a> {
    /// Sets the partition.
    pub fn partition(mut self, partition: Partition) -> Self {
        self.partition = partition;
        self
    }

    /// Sets the seed of random numbers.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets whether the router is [recalibrated](Router::recalibrated). If so, `auto` compares partitions by what they serve, without `forest:200`.
    pub fn recalibrated(mut self, recalibrated: bool) -> Self {
        self.recalibrated = recalibrated;
        self
    }

    /// Sets a function that is called [`Router::steps`] times, about evenly in time, the last time when the router is complete.
    pub fn progress(mut self, step: &'a (dyn Fn() + Sync)) -> Self {
        self.progress = Some(step);
        self
    }

    /// Calibrates the router.
    ///
    /// # Errors
    /// If the table has no rows or no votes, or the partition does not fit it. Partitions that learn need thirty rows with two
    /// labels or more; `auto` does not.
    pub fn fit(&self, table: &Table) -> Result<Router> {
        Ok(self.calibrate(table)?.router)
    }

    /// Calibrates the router and reports how its partition was chosen.
    ///
    /// # Errors
    /// As [`fit`](Self::fit).
    pub fn calibrate(&self, table: &Table) -> Result<Calibration> {
        let (router, choice) = self.choose(table)?;
        if !self.recalibrated {
            return Ok(Calibration { router, choice, served: None });
        }
        let served = auto::measure_served(table, router.partition(), self.seed)?;
        Ok(Calibration { router: router.recalibrated(), choice, served })
    }

    /// The router before recalibration, and how its partition was chosen.
    fn choose(&self, table: &Table) -> Result<(Router, Option<Choice>)> {
        let step = self.progress.unwrap_or(&|| ());
        let router = match self.partition.factors() {
            [Factor::Auto { certifiable }] => {
                let wanted = Wanted { certifiable: *certifiable, recalibrated: self.recalibrated };
                let (router, choice) = auto::choose(table, wanted, self.seed, step)?;
                return Ok((router, Some(choice)));
            }
            [Factor::Forest { trees } | Factor::HonestForest { trees }] => {
                let progress = Progress::new(growth_steps(*trees) * WORK_OF_FOREST, step);
                let router = Router::fit(table, &self.partition, self.seed, &|| progress.advance(WORK_OF_TREE))?;
                progress.reach(u64::MAX);
                router
            }
            _ => Router::fit(table, &self.partition, self.seed, &|| ())?,
        };
        Ok((router, None))
    }
}

impl fmt::Debug for RouterBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { partition, seed, recalibrated, .. } = self;
        let mut fields = f.debug_struct("RouterBuilder");
        fields
            .field("partition", partition)
            .field("seed", seed)
            .field("recalibrated", recalibrated)
            .finish_non_exhaustive()
    }
}

impl Router {
    /// The builder of a calibration; the default partition is `auto`.
    pub fn builder<'a>() -> RouterBuilder<'a> {
        RouterBuilder { partition: Partition::auto(), seed: 0, recalibrated: false, progress: None }
    }

    /// Fits a partition to a table and groups its rows by cell. No task is involved, except that `auto` compares partitions under standard
    /// tasks.
    ///
    /// The order of the rows does not matter: within a cell they are stored by content.
    ///
    /// # Errors
    /// If the table has no rows or no votes, or the partition does not fit it.
    pub fn calibrate(table: &Table, partition: &Partition) -> Result<Self> {
        Self::builder().partition(partition.clone()).fit(table)
    }

    /// As [`Router::calibrate`], with fewer trees in the forests that `auto` chooses. Also returns the chosen partition.
    pub(crate) fn calibrate_for_diagnosis(table: &Table, partition: &Partition) -> Result<(Self, Partition)> {
        match partition.factors() {
            [Factor::Auto { certifiable }] => auto::choose_for_diagnosis(table, *certifiable),
            _ => Ok((Self::calibrate(table, partition)?, partition.clone())),
        }
    }

    /// The number of progress steps of a calibration; zero if it is fast.
    #[must_use]
    pub fn steps(partition: &Partition) -> u64 {
        match partition.factors() {
            [Factor::Forest { .. } | Factor::HonestForest { .. } | Factor::Auto { .. }] => STEPS,
            _ => 0,
        }
    }
}
