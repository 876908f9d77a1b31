//! Held-out calibration rows: decided by estimates that do not use their labels, evaluated on their labels.
//!
//! For cells the estimates come from the other folds (`folds`), for a forest from the trees for which the row is out of bag
//! (`out_of_bag`). They do not depend on prices, so all policies that differ only in prices share them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::cutoff::Unit;
use super::folds::{FOLDS, RowFolds};
use super::out_of_bag::folds_of_rows;
use super::{Calibration, Policy};
use crate::estimate::{Decomposition, GroupLosses, Imputation, LabelLosses, LossTable, Valuation};
use crate::router::{Router, label_free};
use crate::table::simplex::dot;
use crate::task::Estimator;
use crate::task::Task;

/// Groups of rows that are deleted in turn to estimate the variance of a promise (delete-a-group jackknife).
const JACKKNIFE_GROUPS: usize = 20;
const JACKKNIFE_SEED: u64 = 0x7AC4;

/// The largest number of rows for the jackknife; with more it would take seconds.
const MAX_JACKKNIFE_ROWS: usize = 50_000;

/// The largest number of trees for the jackknife of a forest: each group is deleted from the leaves of so many.
const MAX_JACKKNIFE_TREES: usize = 10;

/// Rows of one source that are decided alike.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) source: u32,
    /// The fold whose labels these estimates do not use, numbered over all rounds.
    pub(super) fold: u32,
    /// The estimates by which they are decided.
    pub(super) expected: Decomposition,
    pub(super) rows: Vec<u32>,
}

/// All parts: the estimates that decide them, and the losses of their rows.
#[derive(Debug)]
pub(super) struct HeldOut {
    /// The number of cells. Sources from this number on are fall-backs, whose rows are in cells as well.
    cells: usize,
    oracles: usize,
    sources: Vec<u32>,
    folds: Vec<u32>,
    /// The expected losses of each part.
    expected: LossTable,
    /// Where the rows of each part end.
    ends: Vec<usize>,
    /// The router's row of each entry. A row may occur several times, decided by estimates from different rows.
    rows: Vec<u32>,
    weights: Vec<f64>,
    /// The losses of each entry by its row's labels; both ends are equal.
    observed: LossTable,
    /// Where the irreducible losses of rows with one label come from, if there are such rows.
    pub(super) imputation: Option<Arc<Imputation>>,
}

impl HeldOut {
    pub(super) fn new(cells: usize, oracles: usize, imputation: Option<Arc<Imputation>>) -> Self {
        let (sources, folds, ends, rows, weights) = Default::default();
        let [expected, observed] = [(); 2].map(|()| LossTable::new(oracles));
        Self { cells, oracles, sources, folds, expected, ends, rows, weights, observed, imputation }
    }

    /// Adds rows that are decided by one estimate.
    pub(super) fn add(&mut self, part: &Part, valuation: Valuation<'_>, losses: &LabelLosses) {
        let Part { source, fold, expected, rows } = part;
        let (table, classes) = (valuation.router.rows(), valuation.router.classes().len());
        let mut served = Vec::new();
        if valuation.router.is_recalibrated() {
            served.resize(classes, 0.0);
            valuation.loss.losses_into(&expected.centroid, &mut served);
        }
        let mut mean = vec![0.0; classes];
        for row in rows.iter().map(|&row| row as usize) {
            let own = match table.votes(row) {
                Some(votes) if !served.is_empty() => {
                    votes.mean_into(&mut mean);
                    dot(&mean, &served)
                }
                _ => losses.total[row],
            };
            self.add_row(table.weight(row), own, row, losses, expected.losses());
        }
        self.expected.push(expected.losses());
        self.sources.push(*source);
        self.folds.push(*fold);
        self.ends.push(self.weights.len());
    }

    /// Adds a row that is decided by its own expected losses, which do not use the labels of its fold.
    pub(super) fn add_alone(
        &mut self,
        [source, fold]: [u32; 2],
        weight: f64,
        row: usize,
        expected: GroupLosses<'_>,
        losses: &LabelLosses,
    ) {
        self.add_row(weight, losses.total[row], row, losses, expected);
        self.expected.push(expected);
        self.sources.push(source);
        self.folds.push(fold);
        self.ends.push(self.weights.len());
    }

    /// Adds the losses of a row. Where its labels do not identify a loss, the upper bound of the estimate counts.
    fn add_row(&mut self, weight: f64, total: f64, row: usize, losses: &LabelLosses, expected: GroupLosses<'_>) {
        let observed = |own: f64, [low, high]: [f64; 2]| [if low == high && own.is_finite() { own } else { high }; 2];
        self.rows.push(row as u32);
        self.weights.push(weight);
        let irreducible = observed(losses.irreducible[row], expected.irreducible);
        let oracles = losses.oracles.iter().zip(expected.oracles).map(|(own, &ends)| observed(own[row], ends));
        let oracles: Vec<[f64; 2]> = oracles.collect();
        self.observed.push(GroupLosses { total, irreducible, oracles: &oracles });
    }

    /// The parts that make up the calibration rows, each row once.
    pub(super) fn parts(&self) -> Vec<usize> {
        self.all_parts().filter(|&part| self.is_of_cell(self.source(part))).collect()
    }

    /// Whether a source is a cell. Rows of fall-backs are in cells as well.
    pub(super) fn is_of_cell(&self, source: u32) -> bool {
        (source as usize) < self.cells
    }

    pub(super) fn all_parts(&self) -> Range<usize> {
        0..self.sources.len()
    }

    pub(super) fn source(&self, part: usize) -> u32 {
        self.sources[part]
    }

    /// The fold whose labels do not decide a part.
    pub(super) fn fold(&self, part: usize) -> u32 {
        self.folds[part]
    }

    /// The expected losses by which a part is decided.
    pub(super) fn expected(&self, part: usize) -> GroupLosses<'_> {
        self.expected.row(part)
    }

    /// The weight and observed losses of each row of a part.
    pub(super) fn rows(&self, part: usize) -> impl Iterator<Item = (f64, GroupLosses<'_>)> {
        self.range(part).map(|place| (self.weights[place], self.observed.row(place)))
    }

    /// The router's rows of a part, in the same order.
    pub(super) fn numbers(&self, part: usize) -> &[u32] {
        &self.rows[self.range(part)]
    }

    fn range(&self, part: usize) -> Range<usize> {
        let start = if part == 0 { 0 } else { self.ends[part - 1] };
        start..self.ends[part]
    }

    /// The weight of a part and the mean observed losses of its rows; `oracles` is a buffer.
    fn mean<'a>(&self, part: usize, oracles: &'a mut Vec<[f64; 2]>) -> (f64, GroupLosses<'a>) {
        let (mut weight, mut total, mut irreducible) = (0.0, 0.0, 0.0);
        oracles.clear();
        oracles.resize(self.oracles, [0.0; 2]);
        for (own, losses) in self.rows(part) {
            weight += own;
            total += own * losses.total;
            irreducible += own * losses.irreducible[0];
            oracles.iter_mut().zip(losses.oracles).for_each(|(sum, loss)| *sum = [sum[0] + own * loss[0]; 2]);
        }
        oracles.iter_mut().for_each(|sum| *sum = [sum[0] / weight; 2]);
        (weight, GroupLosses { total: total / weight, irreducible: [irreducible / weight; 2], oracles })
    }
}

impl Policy {
    /// The held-out calibration rows; computed on first use.
    pub(super) fn held_out(&self) -> &HeldOut {
        let estimates = &*self.estimates;
        if let Some(found) = estimates.held_out.get() {
            return found;
        }
        // Computed outside the lock: a rayon thread that waits may steal a task that waits for the same lock.
        let found = match (self.valuation(), &estimates.leaves) {
            (None, _) => HeldOut::new(self.cells.count(), estimates.other_oracles.count(), None),
            (Some(valuation), Some(leaves)) => {
                let folds = folds_of_rows(valuation.router);
                leaves.held_out(valuation, &folds, &label_losses(valuation), &[], usize::MAX)
            }
            (Some(valuation), None) => {
                let (folds, fall_backs) = (RowFolds::new(valuation.router), !estimates.empty.is_empty());
                HeldOut::in_folds(valuation, &folds, fall_backs, &label_losses(valuation), &[])
            }
        };
        estimates.held_out.get_or_init(|| found)
    }

    /// For each cell and pair of actions, the variance of the estimated cost difference: the jackknife over the folds of cross-fitting, on
    /// average over its rounds. `None` for cells with too few rows, and for all with a forest.
    pub(crate) fn variances_of_differences(&self) -> Vec<Option<Vec<f64>>> {
        let mut found = vec![None; self.cells.count()];
        if self.has_forest() {
            return found;
        }
        let (held_out, actions) = (self.held_out(), self.actions());
        let mut costs_of_rounds: BTreeMap<(u32, u32), Vec<Vec<f64>>> = BTreeMap::new();
        for part in held_out.parts() {
            let [mut low, mut high] = [(); 2].map(|()| vec![0.0; actions]);
            self.fill_costs(&self.task, held_out.expected(part), &mut low, &mut high);
            let middles = low.iter().zip(&high).map(|(low, high)| f64::midpoint(*low, *high)).collect();
            let round = held_out.fold(part) / FOLDS as u32;
            costs_of_rounds.entry((held_out.source(part), round)).or_default().push(middles);
        }
        let mut rounds_of_cell = vec![0.0; found.len()];
        for ((cell, _), costs) in costs_of_rounds.into_iter().filter(|(_, costs)| costs.len() == FOLDS) {
            let variances = found[cell as usize].get_or_insert_with(|| vec![0.0; actions * actions]);
            for (pair, variance) in variances.iter_mut().enumerate() {
                let difference = |costs: &Vec<f64>| costs[pair / actions] - costs[pair % actions];
                let mean = costs.iter().map(difference).sum::<f64>() / FOLDS as f64;
                let squares = costs.iter().map(|costs| (difference(costs) - mean).powi(2)).sum::<f64>();
                *variance += squares * (FOLDS - 1) as f64 / FOLDS as f64;
            }
            rounds_of_cell[cell as usize] += 1.0;
        }
        for (variances, rounds) in found.iter_mut().zip(rounds_of_cell) {
            variances.iter_mut().flatten().for_each(|variance| *variance /= rounds);
        }
        found
    }

    /// What estimates losses from the calibration rows; `None` without such rows.
    fn valuation(&self) -> Option<Valuation<'_>> {
        let Calibration { router, estimator, oracles, borrowed } = self.estimates.calibration.as_ref()?;
        let (loss, borrowed) = (&self.estimates.loss, borrowed.as_ref());
        Some(Valuation { router, loss, estimator: *estimator, oracles, borrowed })
    }

    /// The held-out rows with each jackknife group deleted in turn, estimated by `shrink` where the estimator is slower. In a forest the group
    /// is deleted from the leaves; trees are not grown again. Empty for very many rows.
    pub(super) fn held_out_without_groups(&self) -> &[HeldOut] {
        let estimates = &*self.estimates;
        if let Some(found) = estimates.without_groups.get() {
            return found;
        }
        let found = self.held_out_without(self.jackknife_groups());
        estimates.without_groups.get_or_init(|| found)
    }

    /// The rows of each jackknife group; none for very many rows.
    pub(super) fn jackknife_groups(&self) -> Vec<Vec<u32>> {
        let Some(table) = self.router().map(Router::rows) else { return Vec::new() };
        if !(JACKKNIFE_GROUPS..=MAX_JACKKNIFE_ROWS).contains(&table.rows()) {
            return Vec::new();
        }
        let order = label_free::order_of_table(table, JACKKNIFE_SEED);
        let group = |first: usize| order.iter().copied().skip(first).step_by(JACKKNIFE_GROUPS).collect();
        (0..JACKKNIFE_GROUPS).map(group).collect()
    }

    /// The held-out rows with each of some groups deleted in turn; see [`held_out_without_groups`](Self::held_out_without_groups).
    pub(super) fn held_out_without(&self, groups: Vec<Vec<u32>>) -> Vec<HeldOut> {
        let Some(mut valuation) = self.valuation().filter(|_| !groups.is_empty()) else { return Vec::new() };
        if valuation.estimator != Estimator::Plugin {
            valuation.estimator = Estimator::Shrink;
        }
        let (losses, groups) = (label_losses(valuation), groups.into_iter());
        // Folds are the same whatever group is deleted.
        match &self.estimates.leaves {
            Some(leaves) => {
                let folds = folds_of_rows(valuation.router);
                let without =
                    |deleted: Vec<u32>| leaves.held_out(valuation, &folds, &losses, &deleted, MAX_JACKKNIFE_TREES);
                groups.map(without).collect()
            }
            None => {
                let folds = RowFolds::new(valuation.router);
                groups.map(|deleted| HeldOut::in_folds(valuation, &folds, false, &losses, &deleted)).collect()
            }
        }
    }

    /// All held-out rows as units of traffic at a task's prices; `None` if there are none.
    pub(super) fn all_units(&self, task: &Task, held_out: &HeldOut) -> Option<Vec<Unit>> {
        let parts = held_out.parts();
        (!parts.is_empty()).then(|| self.units(task, held_out, &parts))
    }

    /// Some parts as units of traffic at a task's prices.
    pub(super) fn units(&self, task: &Task, held_out: &HeldOut, parts: &[usize]) -> Vec<Unit> {
        let actions = self.actions();
        let [mut low, mut high, mut real] = [(); 3].map(|()| vec![0.0; actions]);
        let mut oracles = Vec::new();
        let unit = |&part: &usize| {
            let (weight, losses) = held_out.mean(part, &mut oracles);
            self.fill_costs(task, losses, &mut low, &mut real);
            self.fill_costs(task, held_out.expected(part), &mut low, &mut high);
            self.unit(task, weight, [&low, &high], &real)
        };
        parts.iter().map(unit).collect()
    }
}

/// The losses of the calibration rows by their own labels.
fn label_losses(valuation: Valuation<'_>) -> LabelLosses {
    let Valuation { router, loss, oracles, .. } = valuation;
    LabelLosses::from_table(router.rows(), loss, oracles)
}
