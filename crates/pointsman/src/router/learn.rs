//! From a table to a router, also by partitions that learn.

use super::{BACKOFF_BINS, Router, SPARSE, cells_of, label_free};
use crate::error::{Error, Result};
use crate::forest::{self, Halves, HonestForest, Learned};
use crate::partition::{Axis, Cells, Factor, Partition, TREES};
use crate::table::Table;

/// Standard errors above which a forest counts as better.
const CLEAR: f64 = 2.0;

/// Errors below this, where two is usual, are rounding.
const ROUNDING: f64 = 1e-9;

/// How `auto` chose a partition.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// What it chose among; the first is the one chosen.
    pub candidates: Vec<Candidate>,
    /// By how much the forest's error is below that of the best of the others and of no partition at all, in standard errors
    /// of the difference. It is chosen above two. Zero if no forest was tried.
    pub margin: f64,
    /// Why no forest was tried, if none was.
    pub without_forest: Option<String>,
}

impl Choice {
    /// Why the first candidate was chosen, in a few words.
    #[must_use]
    pub fn reason(&self) -> &str {
        match (&self.without_forest, self.margin > CLEAR) {
            (Some(reason), _) => reason,
            (None, true) => "clearly better",
            (None, false) => "a forest is not clearly better",
        }
    }
}

/// A partition that `auto` has looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The partition.
    pub partition: Partition,
    /// Which share of the variance of the rows' irreducible and reducible Brier loss it explains on rows it has not seen:
    /// out of bag for the forest, one row left out for the others.
    pub explained: f64,
}

impl Router {
    /// As [`Router::calibrate`], with a seed for partitions that draw numbers. `step` is called at most
    /// [`Router::steps`] times as trees are grown. With `auto` the second value says how it chose.
    ///
    /// # Errors
    /// If the table has no rows or no votes, or the partition does not fit it. Partitions that learn need thirty rows with two
    /// labels or more.
    pub fn learn(
        table: &Table,
        partition: &Partition,
        seed: u64,
        step: &(dyn Fn() + Sync),
    ) -> Result<(Self, Option<Choice>)> {
        if !table.has_votes() {
            return Err(Error::Table("calibration needs votes: columns votes_<class>".into()));
        }
        partition.check()?;
        super::check_rows(table)?;
        // What no tree can ever ask for is not asked of queries either.
        let telling = if partition.factors().iter().any(Factor::learns) { table.with_telling_features() } else { None };
        let table = telling.as_ref().unwrap_or(table);
        match partition.factors() {
            [Factor::Tree] => {
                let divide = |divide: &[u32], columns: &[usize]| {
                    Ok(Axis::Tree { trees: forest::tree(table, divide, columns, seed)? })
                };
                Ok((Self::learn_honestly(table, partition, seed, divide)?, None))
            }
            [Factor::HonestForest { trees }] => {
                super::check_walks(partition, table.rows())?;
                let divide = |divide: &[u32], columns: &[usize]| {
                    Ok(Axis::HonestForest { forest: HonestForest::learn(table, divide, columns, *trees, seed, step)? })
                };
                Ok((Self::learn_honestly(table, partition, seed, divide)?, None))
            }
            [Factor::Forest { trees }] => {
                let backoff = Self::fit_backoff(table, BACKOFF_BINS)?;
                let learned = grow(table, *trees, seed, step)?;
                Ok((Self::from_forest(partition.clone(), learned.trees, seed, backoff, table)?, None))
            }
            [Factor::Auto] => Self::choose(table, seed, step),
            factors => {
                let bins = factors.iter().find_map(|factor| match factor {
                    Factor::TopClass { bins } | Factor::Confidence { bins } => Some(*bins),
                    Factor::Pooled => Some((table.rows() / SPARSE).max(1)),
                    _ => None,
                });
                let (cells, backoff) = rayon::join(
                    || Cells::fit(partition, table),
                    || Self::fit_backoff(table, bins.unwrap_or(BACKOFF_BINS)),
                );
                Ok((Self::from_parts(partition.clone(), cells?, backoff?, false, table)?, None))
            }
        }
    }

    /// How many steps learning takes at most.
    #[must_use]
    pub fn steps(partition: &Partition) -> u64 {
        match partition.factors() {
            [Factor::Forest { trees } | Factor::HonestForest { trees }] => forest::steps(*trees),
            [Factor::Auto] => forest::steps(TREES),
            _ => 0,
        }
    }

    /// One half of the rows divides, the other is kept.
    fn learn_honestly(
        table: &Table,
        partition: &Partition,
        seed: u64,
        divide: impl FnOnce(&[u32], &[usize]) -> Result<Axis>,
    ) -> Result<Self> {
        let columns: Vec<usize> = (0..table.feature_names().len()).collect();
        let halves = Halves::of(&label_free::order_of_table(table, 0), seed);
        let kept = table.select(&halves.kept, &columns);
        let axes = vec![divide(&halves.divide, &columns)?];
        let cells = Cells::new(table.classes().len(), axes, table.feature_names().to_vec())?;
        let backoff = Self::fit_backoff(&kept, BACKOFF_BINS)?;
        Self::from_parts(partition.clone(), cells, backoff, false, &kept)
    }

    /// The partition of a few that tells unseen rows apart best; a forest must be clearly better to be worth its size.
    fn choose(table: &Table, seed: u64, step: &(dyn Fn() + Sync)) -> Result<(Self, Option<Choice>)> {
        let order = label_free::order_of_table(table, 0);
        // Nobody asked for so many trees, so that nobody can use fewer.
        let too_large = super::check_size(table.rows(), TREES).is_err();
        let learned = if too_large { None } else { Some(grow(table, TREES, seed, step)?) };
        let mut simple = Vec::new();
        for partition in [Partition::top_class(10), Partition::confidence(30)] {
            let cells = Cells::fit(&partition, table)?;
            let found: Vec<u32> = cells_of(table, &cells, &[]).into_iter().map(|cell| cell.0).collect();
            let errors = forest::errors_of_cells(table, &order, &found, cells.count());
            simple.push((partition, errors));
        }
        let alone = forest::errors_of_cells(table, &order, &vec![0; table.rows()], 1);
        let weights = forest::weights_of_pairs(table, &order);
        let mean = |errors: &[f64]| mean(errors, &weights);
        // Where all rows are alike there is nothing but rounding to explain.
        let left = Some(mean(&alone).0).filter(|left| *left > ROUNDING);
        let explained = |errors: &[f64]| left.map_or(0.0, |left| 1.0 - mean(errors).0 / left);
        simple.sort_by(|a, b| mean(&a.1).0.total_cmp(&mean(&b.1).0));
        // Cells that tell nothing apart are no match for the mean of all rows; a forest that does no better is none either.
        let rival = [&simple[0].1, &alone].into_iter().min_by(|a, b| mean(a).0.total_cmp(&mean(b).0)).unwrap_or(&alone);
        let margin = learned.as_ref().map_or(0.0, |learned| {
            let less: Vec<f64> = rival.iter().zip(&learned.errors).map(|(rival, forest)| rival - forest).collect();
            let (difference, error) = mean(&less);
            if error > 0.0 && left.is_some() { difference / error } else { 0.0 }
        });
        let mut candidates: Vec<Candidate> = simple
            .into_iter()
            .map(|(partition, errors)| Candidate { partition, explained: explained(&errors) })
            .collect();
        let of_forest =
            |errors: &[f64]| Candidate { partition: Partition::forest(TREES), explained: explained(errors) };
        let without_forest =
            too_large.then(|| format!("{} rows are too many for a forest of {TREES} trees", table.rows()));
        let router = match learned {
            Some(learned) if margin > CLEAR => {
                candidates.insert(0, of_forest(&learned.errors));
                let backoff = Self::fit_backoff(table, BACKOFF_BINS)?;
                Self::from_forest(Partition::forest(TREES), learned.trees, seed, backoff, table)?
            }
            learned => {
                candidates.extend(learned.map(|learned| of_forest(&learned.errors)));
                Self::calibrate(table, &candidates[0].partition)?
            }
        };
        Ok((router, Some(Choice { candidates, margin, without_forest })))
    }
}

fn grow(table: &Table, trees: usize, seed: u64, step: &(dyn Fn() + Sync)) -> Result<Learned> {
    super::check_size(table.rows(), trees)?;
    let columns: Vec<usize> = (0..table.feature_names().len()).collect();
    forest::forest(table, &label_free::order_of_table(table, 0), &columns, trees, seed, step)
}

/// The mean of what is known, by weight, and its standard error.
fn mean(values: &[f64], weights: &[f64]) -> (f64, f64) {
    let known = || values.iter().zip(weights).filter(|(value, _)| !value.is_nan());
    let all: f64 = known().map(|(_, weight)| weight).sum();
    let mean = known().map(|(value, weight)| weight * value).sum::<f64>() / all;
    (mean, known().map(|(value, weight)| (weight * (value - mean)).powi(2)).sum::<f64>().sqrt() / all)
}
