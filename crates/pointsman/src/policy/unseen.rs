//! The calibration rows of a forest as if it had never seen them: what a limit's price, and the shares of actions, are found by.
//!
//! A leaf's losses rest on all rows in it. Averaged for one of these rows they know its own labels and are more spread out than
//! those of any other query. So a row is valued by the trees that were not grown on it, and by what their leaves are without
//! it. These are some two in five of the trees, and a mean of fewer trees varies more: by how much is known from the trees
//! themselves, and the rows are drawn together by as much.
//!
//! Rows are decided by such losses, as queries are, and judged by their own labels (`held_out`).

use super::Policy;
use super::forest::{Leaves, Values};
use super::held_out::HeldOut;
use super::sources::Valuation;
use crate::estimate::{LabelLosses, Scratch};
use crate::parallel::prelude::*;
use crate::partition::CellId;
use crate::partition::forest::BootstrapSample;
use crate::task::Named;

/// A leaf's rows that are new to its tree are left out of it in so many parts at most: nearly one by one where leaves are small,
/// without valuing large ones very often.
const PARTS: usize = 4;

/// Sums over the trees are split in so many, whatever the number of threads.
const STRANDS: usize = 8;

/// Sums of losses over trees. The middle of two ends counts as one number where squares are concerned.
struct Sums {
    trees: Vec<f64>,
    losses: Vec<f64>,
    squares: Vec<f64>,
}

/// The middle of a quantity's ends: the first has one, the others two.
fn middle(losses: &[f64], quantity: usize) -> f64 {
    if quantity == 0 { losses[0] } else { f64::midpoint(losses[2 * quantity - 1], losses[2 * quantity]) }
}

impl Sums {
    fn new(rows: usize, width: usize) -> Self {
        Self { trees: vec![0.0; rows], losses: vec![0.0; rows * width], squares: vec![0.0; rows * (width / 2 + 1)] }
    }

    fn add(&mut self, row: usize, losses: &[f64]) {
        let quantities = losses.len() / 2 + 1;
        self.trees[row] += 1.0;
        let sums = &mut self.losses[row * losses.len()..][..losses.len()];
        sums.iter_mut().zip(losses).for_each(|(sum, loss)| *sum += loss);
        let squares = &mut self.squares[row * quantities..][..quantities];
        squares.iter_mut().enumerate().for_each(|(quantity, sum)| *sum += middle(losses, quantity).powi(2));
    }

    fn join(mut self, other: &Self) -> Self {
        let pairs =
            [(&mut self.trees, &other.trees), (&mut self.losses, &other.losses), (&mut self.squares, &other.squares)];
        for (ours, theirs) in pairs {
            ours.iter_mut().zip(theirs).for_each(|(sum, more)| *sum += more);
        }
        self
    }
}

impl Leaves {
    /// The calibration rows, each decided by the trees that were not grown on it. Rows that every tree was grown on are left out.
    pub(super) fn out_of_bag(&self, valuation: Valuation<'_>) -> HeldOut {
        let Valuation { router, loss, estimator, oracles } = valuation;
        let (valued, expected) = self.values_out_of_bag(&Values::of(router.rows(), loss, estimator, oracles));
        let losses = LabelLosses::from_table(router.rows(), loss, oracles);
        let mut held_out = HeldOut::new(router.cells().count(), losses.oracles.len());
        let width = expected.len() / valued.len().max(1);
        let mut cells = (0..router.cells().count() as u32)
            .flat_map(|cell| router.mixture(CellId(cell)).rows().map(move |row| (row, cell)));
        for (&row, expected) in valued.iter().zip(expected.chunks_exact(width.max(1))) {
            let row = row as usize;
            // Rows are stored in the order of cells.
            let cell = cells.find(|(other, _)| *other == row).map_or(0, |(_, cell)| cell);
            held_out.add_alone(cell, router.rows().weight(row), row, expected, &losses);
        }
        held_out
    }

    /// Which rows can be valued without themselves, and their losses side by side.
    fn values_out_of_bag(&self, values: &Values<'_>) -> (Vec<u32>, Vec<f64>) {
        let (rows, width) = (values.table.rows(), values.width());
        let leaves = self;
        let trees = leaves.forest.trees();
        let strand = |first: usize| {
            let (mut sums, mut scratch) = (Sums::new(rows, width), Scratch::default());
            let (mut others, mut losses) = (Vec::new(), vec![0.0; width]);
            // Which part of its leaf a row is in; one of no tree's.
            let mut parts = vec![PARTS; rows];
            for tree in (first..trees.count()).step_by(STRANDS) {
                let sample = BootstrapSample::new(leaves.forest.seed(), tree);
                for leaf in trees.leaves_of_tree(tree) {
                    let inside = leaves.members.rows_of(leaf);
                    let mut new: Vec<u32> =
                        inside.iter().copied().filter(|&row| leaves.members.is_out_of_bag(sample, row)).collect();
                    // Not in order of their votes: what is left out must not be a mirror of what is left.
                    new.sort_unstable();
                    new.iter().enumerate().for_each(|(i, &row)| parts[row as usize] = i % PARTS);
                    for part in 0..PARTS.min(new.len()) {
                        others.clear();
                        others.extend(inside.iter().filter(|row| parts[**row as usize] != part));
                        if values.write(&others, &mut scratch, &mut losses) {
                            let (account, error) = values.mean_self_estimate(&others);
                            let freed = losses[0] - leaves.slopes.of(account, error);
                            for &row in new.iter().skip(part).step_by(PARTS) {
                                losses[0] = freed + leaves.slopes.of(values.self_estimate(row), error);
                                sums.add(row as usize, &losses);
                            }
                        }
                    }
                    new.iter().for_each(|&row| parts[row as usize] = PARTS);
                }
            }
            sums
        };
        let strands: Vec<Sums> = (0..STRANDS.min(trees.count())).into_par_iter().map(strand).collect();
        let sums = strands.iter().fold(Sums::new(rows, width), Sums::join);
        let valued: Vec<u32> = (0..rows as u32).filter(|&row| sums.trees[row as usize] > 0.0).collect();
        let weights: Vec<f64> = valued.iter().map(|&row| values.table.weight(row as usize)).collect();
        let mut expected = Vec::with_capacity(valued.len() * width);
        for row in valued.iter().map(|&row| row as usize) {
            expected.extend(sums.losses[row * width..][..width].iter().map(|sum| sum / sums.trees[row]));
        }
        draw_together(&mut expected, &weights, &valued, &sums, trees.count() as f64);
        (valued, expected)
    }
}

/// Takes out of the rows' losses the variance that comes of their being means of fewer trees than a query's. A row on which all
/// trees agree stays where it is: many rows may be exactly alike, and a price must find them there.
fn draw_together(losses: &mut [f64], weights: &[f64], valued: &[u32], sums: &Sums, trees: f64) {
    let all: f64 = weights.iter().sum();
    let width = losses.len() / valued.len().max(1);
    for quantity in 0..width / 2 + 1 {
        let (mut centre, mut square) = (0.0, 0.0);
        for (row, &weight) in losses.chunks_exact(width).zip(weights) {
            let x = middle(row, quantity);
            centre += weight * x / all;
            square += weight * x * x / all;
        }
        let variance = square - centre * centre;
        let ends = if quantity == 0 { 0..1 } else { 2 * quantity - 1..2 * quantity + 1 };
        for (row, &place) in losses.chunks_exact_mut(width).zip(valued) {
            let (x, n) = (middle(row, quantity), sums.trees[place as usize]);
            let squares = sums.squares[place as usize * (width / 2 + 1) + quantity];
            // Between the trees, of one of them; then of the mean, beyond what a mean of all would have.
            let between = if n > 1.0 { (squares / n - x * x).max(0.0) * n / (n - 1.0) } else { 0.0 };
            let surplus = between * (1.0 / n - 1.0 / trees);
            let factor = if variance > 0.0 { (1.0 - surplus / variance).max(0.0).sqrt() } else { 1.0 };
            row[ends.clone()].iter_mut().for_each(|x| *x = centre + factor * (*x - centre));
        }
    }
}

impl Policy {
    /// Which share of the calibration rows each action would get if they were new; `None` if rows have no costs of their own.
    pub(super) fn shares_of_rows(&self) -> Option<Named<f64>> {
        if !self.has_forest() {
            return None;
        }
        let held_out = self.held_out();
        let parts = held_out.parts();
        let weight = |part: usize| held_out.rows(part).map(|(weight, _)| weight).sum::<f64>();
        let all: f64 = parts.iter().map(|&part| weight(part)).sum();
        let (mut shares, mut open) = (vec![0.0; self.actions()], 0.0);
        for &part in &parts {
            let (decided, course) = self.act_on(held_out.expected(part));
            if decided {
                let shares = shares.iter_mut().enumerate();
                shares.for_each(|(action, share)| *share += weight(part) * course.part_of(action) / all);
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
