//! Evidence of copied labels in label counts, and the sensitivity to copies that counts cannot show.
//!
//! A copied label and an item on which everybody agrees have the same counts. Counts are evidence of copies only where independent labels
//! could not have produced them: all counts are multiples of one number ([`Agreement::copies`]), labels never differ
//! ([`Unanimity`](super::Unanimity)), or the number of labels depends on agreement ([`Stopping`](super::Stopping)). Otherwise
//! [`Sensitivity`] shows what would change if some of the unanimous rows were copies. Annotations with names can be tested.

use std::cmp::Ordering;

use super::halves::Ordered;
use crate::error::Result;
use crate::partition::CellId;
use crate::policy::Policy;
use crate::router::Router;
use crate::table::Table;
use crate::table::votes::Votes;
use crate::task::Task;

/// The smallest number of contested rows from which a common divisor of all counts is reported.
const MIN_CONTESTED_ROWS: usize = 30;

/// The share of the unanimous rows that is assumed to be copies.
const ASSUMED_COPIES: f64 = 0.2;

/// A negligible share of copies. It makes the numbers of labels vary, so that the same estimator is used as with copies.
const NO_COPIES: f64 = 1e-9;

/// The share of unanimous rows, and which results depend on labels being independent.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Agreement {
    /// The number of rows with two labels or more.
    pub rows: usize,
    /// The number of unanimous rows among them.
    pub unanimous: usize,
    /// All counts of contested rows are multiples of this: labels were copied.
    pub copies: Option<u32>,
    /// The number of rows that equal another row in prediction, features and votes.
    pub identical_rows: usize,
    /// The effect of copies among the unanimous rows; unknown if no row or every row is unanimous, or rows have one label.
    pub sensitivity: Option<Sensitivity>,
}

/// The results if some of the unanimous rows carried copies of one label instead of independent labels.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Sensitivity {
    /// The share of the unanimous rows that is assumed to be copies.
    pub share: f64,
    /// The irreducible loss per query if all labels are independent.
    pub irreducible: f64,
    /// The irreducible loss per query if that share are copies.
    pub irreducible_if_copied: f64,
    /// The partition of the cells: one with cells of its own if that of the diagnosis is a forest.
    pub partition: String,
    /// The cells in which another action would be taken, at the task's prices.
    pub cells: Vec<ChangedCell>,
}

/// A cell whose action depends on whether labels are copies.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ChangedCell {
    /// Its name.
    pub cell: String,
    /// The action if all labels are independent.
    pub action: String,
    /// The action if some are copies.
    pub action_if_copied: String,
}

impl Agreement {
    /// Checks the rows. The sensitivity is computed in the cells of `router`, at the prices of a task without a limit.
    pub(super) fn new(ordered: &Ordered, router: &Router, task: &Task) -> Result<Self> {
        let rows = &ordered.rows;
        let several = || (0..rows.rows()).filter_map(|row| rows.votes(row)).filter(|votes| votes.k() >= 2);
        let (all, unanimous) = (several().count(), several().filter(|votes| is_unanimous(*votes)).count());
        let sensitivity = if 0 < unanimous && unanimous < all { Sensitivity::fit(rows, router, task)? } else { None };
        Ok(Self {
            rows: all,
            unanimous,
            copies: copies_per_label(rows),
            identical_rows: identical_rows(ordered),
            sensitivity,
        })
    }
}

impl Sensitivity {
    /// If a random share q of the items carries copies of one label, all of these are unanimous. With U the share of unanimous items, the
    /// copies are s = q/U of them, and the other items are distributed as if there were no copies. So each unanimous row counts as k
    /// independent labels with weight 1 − s and as one label with weight s, and everything is estimated again. For the Brier loss the
    /// irreducible loss of a cell becomes 1/(1 − sU) times as large.
    fn fit(rows: &Table, router: &Router, task: &Task) -> Result<Option<Self>> {
        let compile =
            |share: f64| -> Result<Policy> { Router::calibrate_like(&with_copies(rows, share)?, router)?.policy(task) };
        // Both policies have rows with one label, so the difference is due to the copies alone.
        let (own, reference, copied) = (router.policy(task)?, compile(NO_COPIES)?, compile(ASSUMED_COPIES)?);
        let (mut irreducible, mut difference, mut weight) = (0.0, 0.0, 0.0);
        let mut changed = Vec::new();
        for cell in (0..router.cells().count() as u32).map(CellId) {
            let (Some(own), Some(before), Some(after)) = (own.cell(cell), reference.cell(cell), copied.cell(cell))
            else {
                continue;
            };
            let (Some(known), Some(low), Some(high)) = (own.irreducible(), before.irreducible(), after.irreducible())
            else {
                continue;
            };
            let share = own.estimate().weight;
            irreducible += share * known;
            difference += share * (high - low);
            weight += share;
            if before.action() != after.action() {
                changed.push(ChangedCell {
                    cell: router.cells().name(cell, router.classes()),
                    action: before.action().to_string(),
                    action_if_copied: after.action().to_string(),
                });
            }
        }
        Ok((weight > 0.0).then(|| Self {
            share: ASSUMED_COPIES,
            irreducible: irreducible / weight,
            irreducible_if_copied: (irreducible + difference) / weight,
            partition: router.partition().to_string(),
            cells: changed,
        }))
    }

    /// Replaces the irreducible loss by an estimate from all rows together. The estimates of single cells are too low where labels vary more
    /// within items than between them, because variance estimates are clamped to zero. Copies look noiseless, so without them the loss is
    /// 1/(1 − sU) times as large.
    pub(super) fn rescale(&mut self, irreducible: f64, rows: &Table) {
        let (mut all, mut unanimous) = (0.0, 0.0);
        for (row, votes) in (0..rows.rows()).filter_map(|row| Some((row, rows.votes(row).filter(|it| it.k() >= 2)?))) {
            all += rows.weight(row);
            unanimous += if is_unanimous(votes) { rows.weight(row) } else { 0.0 };
        }
        self.irreducible = irreducible;
        self.irreducible_if_copied = irreducible / (1.0 - self.share * unanimous / all);
    }
}

/// The rows, with a share of the weight of each unanimous row moved to a row with one label.
fn with_copies(rows: &Table, share: f64) -> Result<Table> {
    let (mut places, mut votes, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..rows.rows() {
        let Some(own) = rows.votes(row) else { continue };
        let copied = own.k() >= 2 && is_unanimous(own);
        let weight = rows.weight(row);
        places.push(row as u32);
        votes.extend_from_slice(own.counts());
        weights.push(if copied { (1.0 - share) * weight } else { weight });
        if copied {
            places.push(row as u32);
            votes.extend(own.counts().iter().map(|&n| u32::from(n > 0)));
            weights.push((share * weight).max(1e-100));
        }
    }
    let columns: Vec<usize> = (0..rows.feature_names().len()).collect();
    rows.select(&places, &columns).with_votes(votes)?.with_weights(weights)
}

fn is_unanimous(votes: Votes<'_>) -> bool {
    votes.counts().iter().filter(|&&n| n > 0).count() == 1
}

/// The number of times that each label of a table was counted: the greatest common divisor of all counts of contested rows. `None` if it is
/// one, or there are too few such rows.
#[must_use]
pub fn copies_per_label(table: &Table) -> Option<u32> {
    let (mut common, mut rows) = (0_u32, 0);
    for row in 0..table.rows() {
        let Some(votes) = table.votes(row).filter(|votes| votes.k() >= 4 && !is_unanimous(*votes)) else {
            continue;
        };
        common = votes.counts().iter().fold(common, |common, &n| greatest_divisor(common, n));
        rows += 1;
        if common == 1 {
            return None;
        }
    }
    (rows >= MIN_CONTESTED_ROWS && common > 1).then_some(common)
}

fn greatest_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}

/// The number of rows that equal another one up to their weight; missing values are equal.
fn identical_rows(ordered: &Ordered) -> usize {
    let rows = &ordered.rows;
    let compare = |a: &usize, b: &usize| {
        let (a, b) = (*a, *b);
        let votes = |row: usize| rows.votes(row).map(Votes::counts);
        let reals = |a: &[f64], b: &[f64]| {
            a.iter().zip(b).map(|(x, y)| x.total_cmp(y)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        votes(a)
            .cmp(&votes(b))
            .then_with(|| reals(&rows.prediction(a), &rows.prediction(b)))
            .then_with(|| reals(rows.features(a), rows.features(b)))
    };
    let mut order: Vec<usize> = (0..rows.rows()).collect();
    order.sort_unstable_by(compare);
    order.windows(2).filter(|pair| compare(&pair[0], &pair[1]).is_eq()).count()
}
