//! Forests: many trees on part of the rows each, their leaf size chosen by out-of-bag error.

use rayon::prelude::*;

use super::grow::{Grown, Rule, grow};
use super::inputs::{self, Codes};
use super::targets::Targets;
use super::trees::{Node, Trees};
use crate::error::{Error, Result};
use crate::numeric::mix::{nth, uniform};
use crate::partition::SPARSE_BELOW_ROWS;
use crate::table::Table;

/// The leaf sizes to choose from.
pub(super) const LEAVES: [usize; 7] = [250, 120, 60, 30, 15, 8, 4];

/// Trees that look for the leaf size. Their error is freed from what comes of their being few.
const PILOT: usize = 20;

/// Trees that decide between the size found and its neighbours: errors of 20 trees differ by chance as much as sizes do.
const SURE: usize = 100;

/// The size found and its neighbours.
const SIZES_COMPARED: usize = 3;

/// The error of trees that explain nothing: the variance of both standardised targets.
const NOTHING: f64 = 2.0;

/// The largest of the sizes tried is taken that explains this share of what the best one does: the rest is chance.
const ENOUGH: f64 = 0.998;

/// The share of the rows a tree is grown on.
const BAG: f64 = 0.6;

/// The share of the inputs that a split tries: on four data sets its out-of-bag error was the least or hardly more.
const SHARE: f64 = 1.0 / 3.0;

/// With so few inputs each split tries all of them.
const FEW_INPUTS: usize = 3;

/// Rows with two labels or more, ready to grow trees on.
pub(super) struct Sample {
    /// Places in the label-free order.
    pub(super) ranks: Vec<u32>,
    pub(super) values: Vec<f64>,
    pub(super) width: usize,
    codes: Codes,
    pub(super) targets: Targets,
    candidates: Vec<u32>,
}

impl Sample {
    /// The rows of a table, in label-free order, that carry two labels or more.
    pub(super) fn of(table: &Table, order: &[u32], columns: &[usize]) -> Result<Self> {
        let paired = |row: usize| table.votes(row).is_some_and(|votes| votes.k() >= 2);
        let ranks: Vec<u32> = (0..order.len() as u32).filter(|&rank| paired(order[rank as usize] as usize)).collect();
        if ranks.len() < SPARSE_BELOW_ROWS {
            return Err(too_few(table, (0..table.rows()).filter(|&row| paired(row)).count(), order.len()));
        }
        let rows: Vec<u32> = ranks.iter().map(|&rank| order[rank as usize]).collect();
        let width = inputs::width(table.classes().len(), columns.len());
        let values = inputs::of_rows(table, &rows, columns);
        let codes = Codes::of(&values, width);
        let candidates = codes.candidates(table.classes().len());
        Ok(Self { ranks, values, width, codes, targets: Targets::of(table, &rows), candidates })
    }

    pub(super) fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Grows one tree on the rows that are wanted.
    pub(super) fn grow_where(&self, wanted: impl Fn(usize) -> bool, rule: Rule, seed: u64) -> Grown {
        let rows = (0..self.len() as u32).filter(|&row| wanted(row as usize)).collect();
        grow(&self.codes, &self.targets, rows, &self.candidates, rule, seed)
    }

    /// The squared error of a row's targets, both together.
    pub(super) fn error(&self, row: usize, mean: [f64; 2]) -> f64 {
        let [a, b] = self.targets.values[row];
        (a - mean[0]).powi(2) + (b - mean[1]).powi(2)
    }

    /// The weighted mean of what is known.
    pub(super) fn mean(&self, errors: &[f64]) -> f64 {
        let known = || errors.iter().zip(&self.targets.weights).filter(|(error, _)| !error.is_nan());
        known().map(|(error, weight)| error * weight).sum::<f64>() / known().map(|(_, weight)| weight).sum::<f64>()
    }

    pub(super) fn inputs_of(&self, row: usize) -> &[f64] {
        &self.values[row * self.width..][..self.width]
    }
}

/// Why nothing can be learned from a table with so many rows of two labels, of which it takes so many rows to divide by.
fn too_few(table: &Table, paired: usize, dividing: usize) -> Error {
    let rows = table.rows();
    let needed = if dividing < rows {
        format!(
            "at least {SPARSE_BELOW_ROWS} of them in the half of the rows that divides, about {} in all",
            2 * SPARSE_BELOW_ROWS
        )
    } else {
        format!("at least {SPARSE_BELOW_ROWS} of them")
    };
    Error::Partition(if 2 * paired >= rows {
        let found = if rows == 1 { "one row is".to_owned() } else { format!("{rows} rows are") };
        format!(
            "{found} too few to learn a partition from, which needs {needed}; use top-class:10 with fewer bins, or \
             collect more rows"
        )
    } else {
        format!(
            "{paired} of {rows} rows carry two labels or more, and a partition that learns needs {needed}: one label per item does \
             not tell noise from error; use top-class:10, or collect second labels"
        )
    })
}

/// The rows one tree is grown on: decided by numbers alone, so that it can be told again later.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bag(u64);

impl Bag {
    pub(crate) fn of(seed: u64, tree: usize) -> Self {
        Self(nth(seed, tree as u64))
    }

    /// Whether the row of this rank is among them.
    #[inline]
    pub(crate) fn holds(self, rank: u32) -> bool {
        uniform(nth(self.0, u64::from(rank))) < BAG
    }
}

/// Puts trees together.
pub(super) fn join(width: usize, grown: &[Grown]) -> Result<Trees> {
    let (mut roots, mut nodes) = (Vec::new(), Vec::new());
    for tree in grown {
        let first = nodes.len() as u32;
        roots.push(first);
        nodes.extend(tree.nodes.iter().map(|node| match *node {
            Node::Leaf => Node::Leaf,
            Node::Split { input, threshold, left, missing_right } => {
                Node::Split { input, threshold, left: left + first, missing_right }
            }
        }));
    }
    Trees::new(width, roots, &nodes)
}

/// Grows a forest on a table's rows, taken in label-free order. `step` is called [`steps`] times, as trees are done or need not be.
pub(crate) fn forest(
    table: &Table,
    order: &[u32],
    columns: &[usize],
    count: usize,
    seed: u64,
    step: &(dyn Fn() + Sync),
) -> Result<Trees> {
    let sample = Sample::of(table, order, columns)?;
    let share = if sample.candidates.len() <= FEW_INPUTS { 1.0 } else { SHARE };
    let plant = |range: std::ops::Range<usize>, leaf: usize| -> Vec<Grown> {
        range
            .into_par_iter()
            .map(|tree| {
                let bag = Bag::of(seed, tree);
                let grown = sample.grow_where(|row| bag.holds(sample.ranks[row]), Rule { leaf, share }, bag.0);
                step();
                grown
            })
            .collect()
    };
    let skip = |trees: usize| (0..trees).for_each(|_| step());
    let error_of = |grown: &[Grown]| -> Result<f64> { Ok(sample.mean(&out_of_bag(&sample, grown, seed)?)) };
    // From large to small, until two in a row are worse. Where rows are few, the largest are all alike: no tree divides.
    let (mut tried, mut best) = (Vec::<Size>::new(), 0);
    for leaf in LEAVES {
        let grown = plant(0..PILOT, leaf);
        tried.push(Size { leaf, error: error_of(&grown)?, grown });
        let last = tried.len() - 1;
        if tried[last].error <= tried[best].error {
            best = last;
        } else if last == best + 2 {
            break;
        }
    }
    skip((LEAVES.len() - tried.len()) * PILOT);
    tried.truncate(best + 2);
    tried.drain(..best.saturating_sub(1));
    for size in tried.iter_mut().filter(|_| count > PILOT) {
        size.grown.extend(plant(PILOT..SURE.min(count), size.leaf));
        size.error = error_of(&size.grown)?;
    }
    skip((SIZES_COMPARED - tried.len()) * (SURE.min(count) - PILOT.min(count)));
    let least = tried.iter().map(|size| size.error).fold(f64::INFINITY, f64::min);
    let is_enough = |size: &Size| NOTHING - size.error >= ENOUGH * (NOTHING - least) || size.error <= least;
    let chosen = tried.iter().position(is_enough).unwrap_or(0);
    let Size { leaf, mut grown, .. } = tried.swap_remove(chosen);
    grown.truncate(count);
    grown.extend(plant(grown.len()..count, leaf));
    join(sample.width, &grown)
}

/// A leaf size with the trees that try it.
struct Size {
    leaf: usize,
    error: f64,
    grown: Vec<Grown>,
}

/// The squared error of each row by the trees that were not grown on it, as infinitely many such trees would have it: the
/// variance of a mean of few is known from the few.
fn out_of_bag(sample: &Sample, grown: &[Grown], seed: u64) -> Result<Vec<f64>> {
    let trees = join(sample.width, grown)?;
    let means: Vec<[f64; 2]> = grown.iter().flat_map(|tree| &tree.means).copied().collect();
    let bags: Vec<Bag> = (0..grown.len()).map(|tree| Bag::of(seed, tree)).collect();
    let error = |row: usize| {
        let rank = sample.ranks[row];
        let (mut n, mut sums, mut squares) = (0.0, [0.0; 2], [0.0; 2]);
        for (tree, bag) in bags.iter().enumerate() {
            if !bag.holds(rank) {
                let mean = means[trees.leaf(tree, &sample.inputs_of(row)) as usize];
                n += 1.0;
                for target in 0..2 {
                    sums[target] += mean[target];
                    squares[target] += mean[target] * mean[target];
                }
            }
        }
        if n < 2.0 {
            return f64::NAN;
        }
        let mean = sums.map(|sum| sum / n);
        let of_few = (squares[0] + squares[1]) / n - mean[0] * mean[0] - mean[1] * mean[1];
        sample.error(row, mean) - of_few / (n - 1.0)
    };
    Ok((0..sample.len()).into_par_iter().with_min_len(256).map(error).collect())
}

/// How often `step` is called when so many trees are grown.
pub(crate) fn steps(trees: usize) -> u64 {
    let compared = SIZES_COMPARED * (SURE.min(trees) - PILOT.min(trees));
    (LEAVES.len() * PILOT + compared + trees.saturating_sub(SURE)) as u64
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Counted here, and not by a router, which makes up for steps that were not taken.
    #[test]
    fn a_forest_takes_the_steps_it_is_said_to_take() {
        for (rows, features) in [(60, 1), (600, 5)] {
            let draw = |i: usize| uniform(nth(3, i as u64));
            let probs = (0..rows).flat_map(|row| [draw(row), 1.0 - draw(row)]).collect();
            let votes = (0..rows).flat_map(|row| if draw(row + rows) < draw(row) { [2, 1] } else { [1, 2] }).collect();
            let values = (0..rows * features).map(|i| draw(i + 2 * rows)).collect();
            let names = (0..features).map(|i| format!("x{i}"));
            let table = Table::new(["a", "b"], probs).unwrap().with_votes(votes).unwrap();
            let table = table.with_features(names, values).unwrap();
            let (order, columns) = ((0..rows as u32).collect::<Vec<_>>(), (0..features).collect::<Vec<_>>());
            for trees in [1, 7, 30, 130] {
                let calls = AtomicU64::new(0);
                let step = || {
                    calls.fetch_add(1, Ordering::Relaxed);
                };
                forest(&table, &order, &columns, trees, 0, &step).unwrap();
                assert_eq!(calls.into_inner(), steps(trees), "{trees} trees on {rows} rows");
            }
        }
    }
}
