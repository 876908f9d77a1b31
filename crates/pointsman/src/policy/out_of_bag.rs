//! Held-out losses for a forest: each calibration row is valued by the trees for which it is out of bag.
//!
//! The losses of a leaf are estimated from all rows in it. Averaged for one of these rows they depend on its own labels and vary more than
//! those of a new query. A row is therefore valued by the trees for which it is out of bag, and by their leaves without its fold, a fifth of
//! the rows. Left out alone, a row would be decided by estimates that its own labels move in the other direction: where two actions cost
//! about the same, a row that speaks for one of them is decided for the other, and single rows change the decisions on many.
//!
//! A row is out of bag for about two in five of the trees, and a mean over fewer trees has a larger variance. The excess is estimated from
//! the variance between trees, and the rows' losses are shrunk towards their mean by as much.
//!
//! Rows are decided by these losses and evaluated on their own labels (`held_out`).

use super::Policy;
use super::held_out::HeldOut;
use super::leaf_losses::LeafLosses;
use crate::estimate::{BorrowedLosses, GroupLosses, LabelLosses, LeafBuffers, LeafValuation, Valuation};
use crate::parallel::prelude::*;
use crate::partition::CellId;
use crate::partition::forest::LeafStatistics;
use crate::router::{Router, label_free};
use crate::task::Named;

/// Folds of the rows, the same in all trees: a row is valued by leaves without its fold.
const FOLDS: usize = 5;

const FOLD_SEED: u64 = 0x1EAF;

/// The fold of rows that are excluded.
const NO_FOLD: u32 = u32::MAX;

/// The number of partial sums over trees, whatever the number of threads, so that sums have a fixed order.
const PARTIAL_SUMS: usize = 8;

/// The losses of a group as pairs of ends: the total loss (two equal ends), the irreducible loss and those of other oracles.
fn quantities(losses: GroupLosses<'_>) -> impl Iterator<Item = [f64; 2]> {
    [[losses.total; 2], losses.irreducible].into_iter().chain(losses.oracles.iter().copied())
}

/// The reverse of [`quantities`].
fn losses_of(quantities: &[[f64; 2]]) -> GroupLosses<'_> {
    GroupLosses { total: quantities[0][0], irreducible: quantities[1], oracles: &quantities[2..] }
}

/// Sums of each row's losses over trees.
struct TreeSums {
    /// The number of trees per row.
    trees: Vec<f64>,
    /// The sums of each quantity, row by row.
    sums: Vec<[f64; 2]>,
    /// The sums of squares of the midpoints of each quantity.
    squares: Vec<f64>,
    quantities: usize,
}

impl TreeSums {
    fn new(rows: usize, quantities: usize) -> Self {
        let (sums, squares) = (vec![[0.0; 2]; rows * quantities], vec![0.0; rows * quantities]);
        Self { trees: vec![0.0; rows], sums, squares, quantities }
    }

    fn add(&mut self, row: usize, losses: GroupLosses<'_>) {
        self.trees[row] += 1.0;
        let first = row * self.quantities;
        for (place, [low, high]) in (first..).zip(quantities(losses)) {
            let sum = &mut self.sums[place];
            *sum = [sum[0] + low, sum[1] + high];
            self.squares[place] += low.midpoint(high).powi(2);
        }
    }

    fn add_all(mut self, other: &Self) -> Self {
        self.trees.iter_mut().zip(&other.trees).for_each(|(sum, n)| *sum += n);
        self.sums.iter_mut().zip(&other.sums).for_each(|(sum, more)| *sum = [sum[0] + more[0], sum[1] + more[1]]);
        self.squares.iter_mut().zip(&other.squares).for_each(|(sum, more)| *sum += more);
        self
    }

    /// The rows that are out of bag for a tree, and the mean quantities of each.
    fn means(&self) -> (Vec<u32>, Vec<[f64; 2]>) {
        let rows: Vec<u32> = (0..self.trees.len() as u32).filter(|&row| self.trees[row as usize] > 0.0).collect();
        let mut means = Vec::with_capacity(rows.len() * self.quantities);
        for row in rows.iter().map(|&row| row as usize) {
            let sums = &self.sums[row * self.quantities..][..self.quantities];
            means.extend(sums.iter().map(|sum| sum.map(|end| end / self.trees[row])));
        }
        (rows, means)
    }
}

/// The fold of each row of a router.
pub(super) fn folds_of_rows(router: &Router) -> Vec<u32> {
    label_free::folds(router.rows(), FOLDS, FOLD_SEED)
}

impl LeafLosses {
    /// The calibration rows except those in `excluded`, each decided by the trees for which it is out of bag, of the first `trees`; rows in the
    /// sample of all of these are left out. `folds` are those of [`folds_of_rows`], and `losses` those of all rows.
    pub(super) fn held_out(
        &self,
        valuation: Valuation<'_>,
        folds: &[u32],
        losses: &LabelLosses,
        excluded: &[u32],
        trees: usize,
    ) -> HeldOut {
        let router = valuation.router;
        let leaves = valuation.leaves();
        let Some(statistics) = router.leaves() else {
            return HeldOut::new(router.cells().count(), leaves.other_oracles(), None);
        };
        let mut fold_of_row = folds.to_vec();
        excluded.iter().for_each(|&row| fold_of_row[row as usize] = NO_FOLD);
        let trees = trees.min(self.forest.trees().count());
        let (valued, expected) = self.out_of_bag_losses(&leaves, statistics, &fold_of_row, trees);
        let losses = losses.within_folds(router.rows(), &fold_of_row, FOLDS);
        let mut held_out = HeldOut::new(router.cells().count(), leaves.other_oracles(), losses.imputation.clone());
        let mut cells = (0..router.cells().count() as u32)
            .flat_map(|cell| router.mixture(CellId(cell)).rows().map(move |row| (row, cell)));
        for (&row, expected) in valued.iter().zip(expected.chunks_exact(2 + leaves.other_oracles())) {
            let row = row as usize;
            // Rows are stored in the order of cells.
            let Some((_, cell)) = cells.find(|(other, _)| *other == row) else { unreachable!("a row without a cell") };
            held_out.add_alone([cell, fold_of_row[row]], router.rows().weight(row), row, losses_of(expected), &losses);
        }
        held_out
    }

    /// The rows with a fold that are out of bag for one of the first `trees`, and the mean quantities of each over such trees.
    fn out_of_bag_losses(
        &self,
        leaves: &LeafValuation<'_>,
        statistics: &LeafStatistics,
        fold_of_row: &[u32],
        trees: usize,
    ) -> (Vec<u32>, Vec<[f64; 2]>) {
        let rows = leaves.estimator().rows();
        let empty = || TreeSums::new(rows, 2 + leaves.other_oracles());
        let without = |fold: u32| leaves.borrowed_without(|row| [fold, NO_FOLD].contains(&fold_of_row[row]));
        let borrowed: Vec<Option<BorrowedLosses>> = (0..FOLDS as u32).map(without).collect();
        let partial_sum = |first: usize| {
            let mut sums = empty();
            let mut without = LeavesWithoutFolds::new(self, leaves, statistics, fold_of_row, &borrowed);
            for tree in (first..trees).step_by(PARTIAL_SUMS) {
                without.add_tree(tree, &mut sums);
            }
            sums
        };
        let partial: Vec<TreeSums> = (0..PARTIAL_SUMS.min(trees)).into_par_iter().map(partial_sum).collect();
        let sums = partial.iter().fold(empty(), TreeSums::add_all);
        let (valued, mut means) = sums.means();
        let weights: Vec<f64> = valued.iter().map(|&row| leaves.estimator().weight(row as usize)).collect();
        shrink_variance(&mut means, &weights, &valued, &sums, trees as f64);
        (valued, means)
    }
}

/// Values the out-of-bag rows of leaves by the rows of other folds.
struct LeavesWithoutFolds<'a> {
    losses: &'a LeafLosses,
    leaves: &'a LeafValuation<'a>,
    statistics: &'a LeafStatistics,
    fold_of_row: &'a [u32],
    /// What leaves borrow without each fold.
    borrowed: &'a [Option<BorrowedLosses>],
    buffers: LeafBuffers,
    rest: Vec<u32>,
}

impl<'a> LeavesWithoutFolds<'a> {
    fn new(
        losses: &'a LeafLosses,
        leaves: &'a LeafValuation<'a>,
        statistics: &'a LeafStatistics,
        fold_of_row: &'a [u32],
        borrowed: &'a [Option<BorrowedLosses>],
    ) -> Self {
        Self { losses, leaves, statistics, fold_of_row, borrowed, buffers: LeafBuffers::default(), rest: Vec::new() }
    }

    /// Adds the losses of the out-of-bag rows of a tree.
    fn add_tree(&mut self, tree: usize, sums: &mut TreeSums) {
        let (forest, statistics) = (&self.losses.forest, self.statistics);
        let sample = forest.bootstrap().sample(tree);
        let tree = statistics.rows().tree(tree);
        for leaf in tree.leaves() {
            let rows = tree.rows_of(leaf);
            let mut out_of_bag: [Vec<u32>; FOLDS] = Default::default();
            for &row in rows.iter().filter(|&&row| statistics.is_out_of_bag(sample, row)) {
                if let Some(fold) = out_of_bag.get_mut(self.fold_of_row[row as usize] as usize) {
                    fold.push(row);
                }
            }
            for (fold, out_of_bag) in (0..).zip(&out_of_bag) {
                self.add_fold(rows, fold, out_of_bag, sums);
            }
        }
    }

    fn add_fold(&mut self, rows: &[u32], fold: u32, out_of_bag: &[u32], sums: &mut TreeSums) {
        if out_of_bag.is_empty() {
            return;
        }
        let (slopes, estimator) = (self.losses.slopes, self.leaves.estimator());
        let is_of_others = |row: u32| ![fold, NO_FOLD].contains(&self.fold_of_row[row as usize]);
        self.rest.clear();
        self.rest.extend(rows.iter().filter(|&&row| is_of_others(row)));
        let borrowed = self.borrowed[fold as usize].as_ref();
        let Some(losses) = self.leaves.rows(&self.rest, borrowed, &mut self.buffers) else { return };
        let (self_estimate, error_share) = estimator.mean_self_estimate(&self.rest);
        let total_without_own_part = losses.total - slopes.own_part(self_estimate, error_share);
        for row in out_of_bag.iter().map(|&row| row as usize) {
            let own_part = slopes.own_part(estimator.self_estimate(row), error_share);
            sums.add(row, GroupLosses { total: total_without_own_part + own_part, ..losses });
        }
    }
}

/// Shrinks the rows' mean quantities towards their centre, to remove the variance that comes from averaging over fewer trees than for a
/// query. A row on which all trees agree is not moved: many rows may be equal, and a price must find them at one point.
fn shrink_variance(means: &mut [[f64; 2]], weights: &[f64], rows: &[u32], sums: &TreeSums, trees: f64) {
    let all: f64 = weights.iter().sum();
    let midpoint = |[low, high]: [f64; 2]| low.midpoint(high);
    for quantity in 0..sums.quantities {
        let (mut centre, mut square) = (0.0, 0.0);
        for (row, &weight) in means.chunks_exact(sums.quantities).zip(weights) {
            let x = midpoint(row[quantity]);
            centre += weight * x / all;
            square += weight * x * x / all;
        }
        let variance = square - centre * centre;
        for (row, &number) in means.chunks_exact_mut(sums.quantities).zip(rows) {
            let (x, n) = (midpoint(row[quantity]), sums.trees[number as usize]);
            let squares = sums.squares[number as usize * sums.quantities + quantity];
            // The variance of one tree, then the excess variance of a mean over n trees. With one tree it is not known and taken as zero.
            let between = if n > 1.0 { (squares / n - x * x).max(0.0) * n / (n - 1.0) } else { 0.0 };
            let excess = between * (1.0 / n - 1.0 / trees);
            let factor = if variance > 0.0 { (1.0 - excess / variance).max(0.0).sqrt() } else { 1.0 };
            row[quantity] = row[quantity].map(|end| centre + factor * (end - centre));
        }
    }
}

impl Policy {
    /// The share of the out-of-bag calibration rows that each action gets; `None` if the router has no forest or no row is out of bag.
    pub(super) fn out_of_bag_shares(&self) -> Option<Named<f64>> {
        self.has_forest().then(|| self.shares_of_parts(&self.held_out().parts()))?
    }

    /// The share of each action among the out-of-bag calibration rows of each cell, if the router has a forest: its queries are decided one
    /// by one, and few cells have one action for all. `None` without a forest or without calibration rows, and for cells without such
    /// rows.
    #[must_use]
    pub fn shares_within_cells(&self) -> Option<Vec<Option<Named<f64>>>> {
        if !self.has_forest() || self.figures.is_some() {
            return None;
        }
        let held_out = self.held_out();
        let mut parts_of_cells = vec![Vec::new(); self.cells.count()];
        held_out.parts().iter().for_each(|&part| parts_of_cells[held_out.source(part) as usize].push(part));
        let shares: Vec<Option<Named<f64>>> = parts_of_cells.iter().map(|parts| self.shares_of_parts(parts)).collect();
        shares.iter().any(Option::is_some).then_some(shares)
    }

    /// The share of some held-out rows that each action gets; `None` if there are none.
    fn shares_of_parts(&self, parts: &[usize]) -> Option<Named<f64>> {
        let held_out = self.held_out();
        let weight = |part: usize| held_out.rows(part).map(|(weight, _)| weight).sum::<f64>();
        let all: f64 = parts.iter().map(|&part| weight(part)).sum();
        let (mut shares, mut open) = (vec![0.0; self.actions()], 0.0);
        for &part in parts {
            let (is_determined, taken) = self.action_for(held_out.expected(part));
            if is_determined {
                let shares = shares.iter_mut().enumerate();
                shares.for_each(|(action, share)| *share += weight(part) * taken.part_of(action) / all);
            } else {
                open += weight(part) / all;
            }
        }
        let mut shares: Named<f64> = self.task.action_names().into_iter().zip(shares).collect();
        if open > 0.0 {
            shares.push("undetermined", open);
        }
        (!parts.is_empty()).then_some(shares)
    }
}
