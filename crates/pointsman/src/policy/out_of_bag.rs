//! Held-out losses for a forest: each calibration row is valued by the trees for which it is out of bag.
//!
//! The losses of a leaf are estimated from all rows in it. Averaged for one of these rows they depend on its own labels and vary more than
//! those of a new query. A row is therefore valued by the trees for which it is out of bag, and by their leaves without it. These are about
//! two in five of the trees, and a mean over fewer trees has a larger variance. The excess is estimated from the variance between trees, and
//! the rows' losses are shrunk towards their mean by as much.
//!
//! Rows are decided by these losses and evaluated on their own labels (`held_out`).

use super::Policy;
use super::held_out::HeldOut;
use super::leaf_losses::LeafLosses;
use crate::estimate::{GroupLosses, LabelLosses, LeafBuffers, LeafValuation, Valuation};
use crate::parallel::prelude::*;
use crate::partition::CellId;
use crate::partition::forest::LeafStatistics;
use crate::task::Named;

/// The out-of-bag rows of a leaf are left out of it in at most this many parts: nearly one by one in small leaves, and without valuing
/// large leaves many times.
const PARTS_PER_LEAF: usize = 4;

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

impl LeafLosses {
    /// The calibration rows, each decided by the trees for which it is out of bag; rows in the sample of every tree are left out.
    pub(super) fn held_out(&self, valuation: Valuation<'_>) -> HeldOut {
        let Valuation { router, loss, oracles, .. } = valuation;
        let leaves = valuation.leaves();
        let Some(statistics) = router.leaves() else {
            return HeldOut::new(router.cells().count(), leaves.other_oracles());
        };
        let (valued, expected) = self.out_of_bag_losses(&leaves, statistics);
        let losses = LabelLosses::from_table(router.rows(), loss, oracles);
        let mut held_out = HeldOut::new(router.cells().count(), leaves.other_oracles());
        let mut cells = (0..router.cells().count() as u32)
            .flat_map(|cell| router.mixture(CellId(cell)).rows().map(move |row| (row, cell)));
        for (&row, expected) in valued.iter().zip(expected.chunks_exact(2 + leaves.other_oracles())) {
            let row = row as usize;
            // Rows are stored in the order of cells.
            let Some((_, cell)) = cells.find(|(other, _)| *other == row) else { unreachable!("a row without a cell") };
            held_out.add_alone(cell, router.rows().weight(row), row, losses_of(expected), &losses);
        }
        held_out
    }

    /// The rows that are out of bag for a tree, and the mean quantities of each over such trees.
    fn out_of_bag_losses(&self, leaves: &LeafValuation<'_>, statistics: &LeafStatistics) -> (Vec<u32>, Vec<[f64; 2]>) {
        let (rows, trees) = (leaves.estimator().rows(), self.forest.trees().count());
        let empty = || TreeSums::new(rows, 2 + leaves.other_oracles());
        let partial_sum = |first: usize| {
            let mut sums = empty();
            let mut without = LeavesWithoutParts::new(self, leaves, statistics);
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

/// Values the rows of leaves by the rest of their leaf.
struct LeavesWithoutParts<'a> {
    losses: &'a LeafLosses,
    leaves: &'a LeafValuation<'a>,
    statistics: &'a LeafStatistics,
    buffers: LeafBuffers,
    /// The part of its leaf in which a row is left out; [`PARTS_PER_LEAF`] for rows that are not left out.
    part_of_row: Vec<usize>,
    rest: Vec<u32>,
}

impl<'a> LeavesWithoutParts<'a> {
    fn new(losses: &'a LeafLosses, leaves: &'a LeafValuation<'a>, statistics: &'a LeafStatistics) -> Self {
        let part_of_row = vec![PARTS_PER_LEAF; leaves.estimator().rows()];
        Self { losses, leaves, statistics, buffers: LeafBuffers::default(), part_of_row, rest: Vec::new() }
    }

    /// Adds the losses of the out-of-bag rows of a tree.
    fn add_tree(&mut self, tree: usize, sums: &mut TreeSums) {
        let (forest, statistics) = (&self.losses.forest, self.statistics);
        let sample = forest.bootstrap().sample(tree);
        let tree = statistics.rows().tree(tree);
        for leaf in tree.leaves() {
            let rows = tree.rows_of(leaf);
            let mut out_of_bag: Vec<u32> =
                rows.iter().copied().filter(|&row| statistics.is_out_of_bag(sample, row)).collect();
            // Rows of a leaf are sorted by votes. Parts in that order would leave a rest whose votes depend on the part's.
            out_of_bag.sort_unstable();
            self.add_leaf(rows, &out_of_bag, sums);
        }
    }

    fn add_leaf(&mut self, rows: &[u32], out_of_bag: &[u32], sums: &mut TreeSums) {
        let (slopes, estimator) = (self.losses.slopes, self.leaves.estimator());
        out_of_bag.iter().enumerate().for_each(|(i, &row)| self.part_of_row[row as usize] = i % PARTS_PER_LEAF);
        for part in 0..PARTS_PER_LEAF.min(out_of_bag.len()) {
            self.rest.clear();
            self.rest.extend(rows.iter().filter(|row| self.part_of_row[**row as usize] != part));
            let Some(losses) = self.leaves.rows(&self.rest, &mut self.buffers) else { continue };
            let (self_estimate, error_share) = estimator.mean_self_estimate(&self.rest);
            let total_without_own_part = losses.total - slopes.own_part(self_estimate, error_share);
            for row in out_of_bag.iter().skip(part).step_by(PARTS_PER_LEAF).map(|&row| row as usize) {
                let own_part = slopes.own_part(estimator.self_estimate(row), error_share);
                sums.add(row, GroupLosses { total: total_without_own_part + own_part, ..losses });
            }
        }
        out_of_bag.iter().for_each(|&row| self.part_of_row[row as usize] = PARTS_PER_LEAF);
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
        if !self.has_forest() {
            return None;
        }
        let held_out = self.held_out();
        let parts = held_out.parts();
        let weight = |part: usize| held_out.rows(part).map(|(weight, _)| weight).sum::<f64>();
        let all: f64 = parts.iter().map(|&part| weight(part)).sum();
        let (mut shares, mut open) = (vec![0.0; self.actions()], 0.0);
        for &part in &parts {
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
