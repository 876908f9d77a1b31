//! Which experiments to run, at which size, and where to write the results.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::network::Training;

/// One of the paper's experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Experiment {
    /// Routing curves: Benefit 1.
    Routing,
    /// Loss flexibility: Benefit 2.
    Losses,
    /// Predict, route or abstain: Benefit 3.
    ThreeWay,
    /// Correlation of reducible and total loss.
    Correlation,
    /// The number of cells.
    Cells,
    /// The number of labels per item.
    Labels,
    /// The number of calibration rows.
    Rows,
    /// Learned partitions: beyond the paper.
    Forest,
    /// Panels of experts: beyond the paper.
    Oracles,
    /// Budgets as prices: beyond the paper.
    Budgets,
    /// The true functions of the synthetic worlds, and the predictions of weak models.
    Functions,
    /// The theorem, the partition lemma and the Bayes-dependent oracles, measured.
    Theory,
    /// A weak model, a strong model with measured answers, and people: beyond the paper.
    Tracks,
}

impl Experiment {
    /// All experiments: those of the paper in its order, then the others.
    pub const ALL: [Self; 13] = [
        Self::Routing,
        Self::Losses,
        Self::ThreeWay,
        Self::Correlation,
        Self::Cells,
        Self::Labels,
        Self::Rows,
        Self::Forest,
        Self::Oracles,
        Self::Budgets,
        Self::Functions,
        Self::Theory,
        Self::Tracks,
    ];

    /// The name of the experiment and of its results file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Routing => "routing",
            Self::Losses => "losses",
            Self::ThreeWay => "three-way",
            Self::Correlation => "correlation",
            Self::Cells => "cells",
            Self::Labels => "labels",
            Self::Rows => "rows",
            Self::Forest => "forest",
            Self::Oracles => "oracles",
            Self::Budgets => "budgets",
            Self::Functions => "functions",
            Self::Theory => "theory",
            Self::Tracks => "tracks",
        }
    }

    /// The version of the experiment's numbers, raised when their meaning changes, so that old parts are not reused.
    pub(crate) fn version(self) -> u64 {
        match self {
            Self::Labels => 6,
            Self::Forest => 3,
            Self::Rows | Self::Functions | Self::Tracks => 1,
            _ => 2,
        }
    }

    /// Parses an experiment name, or `all`.
    ///
    /// # Errors
    /// If no experiment has that name.
    pub fn named(text: &str) -> Result<Vec<Self>> {
        if text == "all" { Ok(Self::ALL.to_vec()) } else { text.parse().map(|experiment| vec![experiment]) }
    }
}

impl FromStr for Experiment {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|experiment| experiment.name() == text);
        found.ok_or_else(|| Error::Unknown(text.to_owned()))
    }
}

impl fmt::Display for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The size of an experiment. Row counts apply to synthetic worlds; data sets are used whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Number of seeds, each with its own training and calibration sets.
    pub seeds: u64,
    /// Number of random halvings of each data set; 0 measures the halves named in its file instead.
    pub splits: u64,
    /// Training rows of the weak model, with one label each.
    pub training_rows: usize,
    /// Calibration inputs.
    pub calibration_rows: usize,
    /// Labels per calibration input.
    pub labels: u32,
    /// Test inputs, whose true distribution is known.
    pub test_rows: usize,
    /// How the weak model is trained.
    pub training: Training,
    /// Trees of the supervised router.
    pub trees: usize,
    /// The folder of the data sets, if the user named one.
    pub data: Option<PathBuf>,
    /// The folder for results and trained models.
    pub output: PathBuf,
}

impl Settings {
    /// The paper's sizes.
    #[must_use]
    pub fn full(output: impl Into<PathBuf>) -> Self {
        Self {
            seeds: 10,
            splits: 20,
            training_rows: 10_000,
            calibration_rows: 5_000,
            labels: 100,
            test_rows: 500_000,
            training: Training::default(),
            trees: 100,
            data: None,
            output: output.into(),
        }
    }

    /// A run of a few minutes on two cores: two seeds, two splits, fewer test rows.
    #[must_use]
    pub fn quick(output: impl Into<PathBuf>) -> Self {
        Self { seeds: 2, splits: 2, test_rows: 50_000, ..Self::full(output) }
    }

    /// Whether the run has fewer test rows than the paper's.
    pub(crate) fn is_quick(&self) -> bool {
        self.test_rows < Self::full("").test_rows
    }

    /// Checks that every size is usable.
    ///
    /// # Errors
    /// Names the size that is not usable.
    pub fn check(&self) -> Result<()> {
        let refuse = |what: &str, least: u64| Err(Error::Setting(format!("{what}: give at least {least}")));
        if !(1..=1_000).contains(&self.seeds) {
            return Err(Error::Setting(format!("{} seeds: give 1 to 1,000", self.seeds)));
        }
        if self.splits > 1_000 {
            return Err(Error::Setting(format!("{} splits: give at most 1,000", self.splits)));
        }
        if self.training_rows < 100 || self.calibration_rows < 100 || self.test_rows < 100 {
            return refuse("training, calibration and test rows", 100);
        }
        if self.labels < 2 {
            return refuse("labels a calibration input", 2);
        }
        if self.trees == 0 || self.training.epochs == 0 || self.training.width == 0 || self.training.batch == 0 {
            return refuse("trees, epochs, width and batch", 1);
        }
        Ok(())
    }

    /// The sizes as written into result files.
    pub(crate) fn parameters(&self) -> Value {
        json!({
            "training_rows": self.training_rows,
            "calibration_rows": self.calibration_rows,
            "labels": self.labels,
            "test_rows": self.test_rows,
            "trees": self.trees,
            "network": self.training.key(),
        })
    }
}

/// Reports the progress of a run and may stop it.
pub trait Monitor: Sync {
    /// Begins a stage of `steps` steps.
    fn begin(&self, what: &str, steps: u64);
    /// Completes a step.
    fn step(&self);
    /// Whether to continue; called before every step.
    fn keep_going(&self) -> bool;
}

/// A monitor that reports nothing and never stops a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Monitor for Silent {
    fn begin(&self, _: &str, _: u64) {}
    fn step(&self) {}
    fn keep_going(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiment_names_parse() {
        for experiment in Experiment::ALL {
            assert_eq!(experiment.name().parse::<Experiment>().unwrap(), experiment);
        }
        assert_eq!(Experiment::named("all").unwrap(), Experiment::ALL);
        let error = Experiment::named("Routing").unwrap_err().to_string();
        assert!(error.contains("Routing") && error.contains("three-way"), "{error}");
    }

    #[test]
    fn unusable_sizes_are_refused() {
        assert!(Settings::full("out").check().is_ok() && Settings::quick("out").check().is_ok());
        assert!(Settings { seeds: 0, ..Settings::quick("out") }.check().is_err());
        assert!(Settings { labels: 1, ..Settings::quick("out") }.check().is_err());
        assert!(Settings { test_rows: 0, ..Settings::quick("out") }.check().is_err());
    }
}
