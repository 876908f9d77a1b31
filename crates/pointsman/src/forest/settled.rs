//! A forest settled on the rows a router keeps: who is in which leaf, and how rows rank.

use std::sync::Arc;

use rayon::prelude::*;

use super::inputs;
use super::learn::Bag;
use super::targets;
use super::trees::Trees;
use crate::error::{Error, Result};
use crate::simplex::{Peak, Real};
use crate::table::Table;

/// Trees with the mean reducible Brier loss of each leaf, by which queries rank: the cells of a forest are bins of it.
///
/// No task enters. Which rows a tree was grown on follows from the seed, so that it need not be kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Forest {
    trees: Trees,
    seed: u64,
    scores: Vec<f64>,
}

/// The rows of each leaf. Every tree has all rows, so that a leaf's estimates rest on more than the rows it was grown on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LeafRows {
    rows: Vec<u32>,
    /// Rows of leaf `l`: `starts[l]..starts[l + 1]`.
    starts: Vec<usize>,
}

/// What settling finds.
pub(crate) struct Settled {
    pub(crate) forest: Arc<Forest>,
    pub(crate) leaves: LeafRows,
    /// The score of each row by the trees that were not grown on it.
    pub(crate) scores: Vec<f64>,
}

impl Forest {
    /// Drops a table's rows, taken in canonical order, down the trees.
    ///
    /// # Errors
    /// If the trees do not fit the table, or a leaf stays without rows.
    pub(crate) fn settle(trees: Trees, seed: u64, table: &Table, order: &[u32], columns: &[usize]) -> Result<Settled> {
        if trees.inputs() != inputs::width(table.classes().len(), columns.len()) {
            return Err(Error::Router("the router's trees do not fit its classes and features".into()));
        }
        let rows = trees.coded(&inputs::of_rows(table, order, columns));
        let mut dist = vec![0.0; table.classes().len()];
        // The reducible loss of rows with two labels or more; the others do not say.
        let reducible: Vec<Option<f64>> =
            order.iter().map(|&row| targets::split(table, row as usize, &mut dist).map(|[_, r]| r)).collect();
        let weights: Vec<f64> = order.iter().map(|&row| table.weight(row as usize)).collect();
        let settle = |tree: usize| {
            let (first, bag) = (trees.leaves_of(tree).start, Bag::of(seed, tree));
            let mut found = vec![0; order.len()];
            trees.leaves_of_rows(tree, &rows, &mut found);
            found.iter_mut().for_each(|leaf| *leaf -= first as u32);
            let leaves = trees.leaves_of(tree).len();
            // Rows, and sums over all of them and over those the tree was grown on.
            let (mut counts, mut sums) = (vec![0_usize; leaves], vec![[0.0; 4]; leaves]);
            for (rank, &leaf) in found.iter().enumerate() {
                counts[leaf as usize] += 1;
                if let Some(reducible) = reducible[rank] {
                    let (sums, weight) = (&mut sums[leaf as usize], weights[rank]);
                    sums[0] += weight;
                    sums[1] += weight * reducible;
                    if bag.holds(rank as u32) {
                        sums[2] += weight;
                        sums[3] += weight * reducible;
                    }
                }
            }
            let mut next: Vec<usize> =
                counts.iter().scan(0, |start, n| Some(std::mem::replace(start, *start + n))).collect();
            let mut rows = vec![0_u32; order.len()];
            for (rank, &leaf) in found.iter().enumerate() {
                rows[next[leaf as usize]] = rank as u32;
                next[leaf as usize] += 1;
            }
            let mean = |weight: f64, sum: f64| if weight > 0.0 { sum / weight } else { 0.0 };
            let all: Vec<f64> = sums.iter().map(|s| mean(s[0], s[1])).collect();
            let grown_on: Vec<f64> = sums.iter().map(|s| mean(s[2], s[3])).collect();
            Tree { found, rows, counts, all, grown_on }
        };
        let settled: Vec<Tree> = (0..trees.count()).into_par_iter().map(settle).collect();
        if settled.iter().any(|tree| tree.counts.contains(&0)) {
            return Err(Error::Router("a leaf of the router's trees has no rows".into()));
        }
        let bags: Vec<Bag> = (0..trees.count()).map(|tree| Bag::of(seed, tree)).collect();
        let score = |rank: usize| {
            let (mut n, mut sum, mut whole) = (0.0, 0.0, 0.0);
            for (tree, bag) in settled.iter().zip(&bags) {
                let leaf = tree.found[rank] as usize;
                whole += tree.all[leaf];
                if reducible[rank].is_none() || !bag.holds(rank as u32) {
                    n += 1.0;
                    sum += tree.grown_on[leaf];
                }
            }
            // A row that every tree was grown on has no other score than the one of a query.
            if n > 0.0 { sum / n } else { whole / settled.len() as f64 }
        };
        let scores = (0..order.len()).into_par_iter().with_min_len(256).map(score).collect();
        let mut leaves = LeafRows { rows: Vec::with_capacity(order.len() * settled.len()), starts: vec![0] };
        let mut all = Vec::with_capacity(trees.leaves());
        for tree in settled {
            for count in tree.counts {
                leaves.starts.push(leaves.starts[leaves.starts.len() - 1] + count);
            }
            leaves.rows.extend(tree.rows);
            all.extend(tree.all);
        }
        Ok(Settled { forest: Arc::new(Self { trees, seed, scores: all }), leaves, scores })
    }

    /// The trees.
    #[must_use]
    pub fn trees(&self) -> &Trees {
        &self.trees
    }

    /// The seed they were grown with.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The mean reducible Brier loss of each leaf.
    pub(crate) fn leaf_scores(&self) -> &[f64] {
        &self.scores
    }

    /// The mean over the trees for a query.
    #[inline]
    pub(crate) fn score<T: Real>(&self, prediction: &[T], peak: Peak, features: &[f64]) -> f64 {
        let mut sum = 0.0;
        inputs::leaves_for(&self.trees, prediction, peak, features, |leaf| sum += self.scores[leaf as usize]);
        sum / self.trees.count() as f64
    }
}

/// One tree with the rows in it.
struct Tree {
    /// Each row's leaf.
    found: Vec<u32>,
    /// The rows, leaf by leaf, and how many each leaf has.
    rows: Vec<u32>,
    counts: Vec<usize>,
    /// Each leaf's mean reducible loss, of all rows and of those the tree was grown on.
    all: Vec<f64>,
    grown_on: Vec<f64>,
}

impl LeafRows {
    /// The rows of a leaf.
    pub(crate) fn of(&self, leaf: usize) -> &[u32] {
        &self.rows[self.starts[leaf]..self.starts[leaf + 1]]
    }

    /// Gives the rows other numbers.
    pub(crate) fn renumber(&mut self, numbers: &[u32]) {
        self.rows.par_iter_mut().with_min_len(1 << 14).for_each(|row| *row = numbers[*row as usize]);
    }
}
