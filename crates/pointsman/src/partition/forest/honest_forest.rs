//! A forest whose cells are cells like all others: half of the rows grows it and divides what it expects of queries.

use pointsman_trees::{BootstrapSample, Trees};

use super::divide::Points;
use super::honest::thin;
use super::learn::grow_forest;
use super::scorer::{MAX_SCORES, Scorer, means_of_leaves};
use super::{inputs, targets};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::partition::SPARSE_BELOW_ROWS;
use crate::table::Table;
use crate::table::simplex::{Peak, Real};

/// The most cells.
const CELLS: usize = 25;

/// Rows by which cells are divided at most: more would hardly tell more.
const SAMPLE: usize = 20_000;

/// What trees expect of a query, its Brier losses and the shares of its labels, and a small tree over that, whose leaves are the
/// cells.
///
/// One number ranks queries for one loss only: with the same reducible Brier loss a decision may be right or wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct HonestForest {
    scorer: Scorer,
    shares: Vec<u32>,
    cells: Box<Trees>,
}

impl HonestForest {
    /// Scores before the shares of classes: the reducible and the irreducible Brier loss.
    pub const LOSSES: usize = 2;

    /// Puts one together: the scores are the reducible and the irreducible Brier loss, and the label shares of the classes
    /// `shares`; the single tree `cells` asks about them.
    ///
    /// # Errors
    /// If these do not fit each other.
    pub fn new(scorer: Scorer, shares: Vec<u32>, cells: Trees) -> Result<Self> {
        let fits = scorer.width() == HonestForest::LOSSES + shares.len()
            && cells.inputs() == scorer.width()
            && cells.count() == 1;
        if !fits || cells.leaves() > CELLS || !shares.is_sorted_by(|a, b| a < b) {
            return Err(Error::contradiction("the cells of an honest forest do not fit the scores of its trees"));
        }
        Ok(Self { scorer, shares, cells: Box::new(cells) })
    }

    /// Grows the trees on the rows that divide, then divides by what the trees that were not grown on a row expect of it. Cells in
    /// which few of these rows would be as queries join their siblings. The rows that are kept are not even
    /// given.
    pub(crate) fn learn(
        table: &Table,
        divide: &[u32],
        columns: &[usize],
        trees: usize,
        seed: u64,
        step: &(dyn Fn() + Sync),
    ) -> Result<Self> {
        let trees = grow_forest(table, divide, columns, trees, seed, step)?;
        let told = Told::of(table, divide);
        let width = told.width();
        let rows: Vec<u32> = told.ranks.iter().map(|&rank| divide[rank as usize]).collect();
        let encoded = trees.encode_rows(&inputs::of_rows(table, &rows, columns));
        let sample: Vec<usize> = (0..rows.len()).step_by(rows.len().div_ceil(SAMPLE).max(1)).collect();
        let of_tree = |tree: usize| {
            let (leaves, bootstrap) = (trees.leaves_of_tree(tree), BootstrapSample::new(seed, tree));
            let mut found = vec![0; rows.len()];
            trees.leaves_of_rows(tree, &encoded, &mut found);
            found.iter_mut().for_each(|leaf| *leaf -= leaves.start as u32);
            let all = told.means(&found, leaves.len(), |_| true);
            let grown_on = told.means(&found, leaves.len(), |row| bootstrap.contains(told.ranks[row]));
            let new = |&row: &usize| (!bootstrap.contains(told.ranks[row])).then_some(found[row]);
            Tree { all, grown_on, new: sample.iter().map(new).collect() }
        };
        let settled: Vec<Tree> = (0..trees.count()).into_par_iter().map(of_tree).collect();
        // What is expected of a row by the trees that have not seen it; rows that all of them have seen are left out.
        let (mut points, mut weights) = (Vec::new(), Vec::new());
        let mut sums = vec![0.0; width];
        for (place, &row) in sample.iter().enumerate() {
            let mut n = 0.0;
            sums.fill(0.0);
            for tree in &settled {
                if let Some(leaf) = tree.new[place] {
                    n += 1.0;
                    let means = &tree.grown_on[leaf as usize * width..][..width];
                    sums.iter_mut().zip(means).for_each(|(sum, mean)| *sum += mean);
                }
            }
            if n > 0.0 {
                points.extend(sums.iter().map(|sum| sum / n));
                weights.push(told.weights[row]);
            }
        }
        let scales = scales(&points, &weights, width);
        let nodes =
            Points { values: &points, width, weights: &weights, scales: &scales }.divide(CELLS, SPARSE_BELOW_ROWS);
        let scores = settled.into_iter().flat_map(|tree| tree.all).collect();
        let scorer = Scorer::new(trees, width, scores)?;
        let cells = Trees::new(width, vec![0], &nodes)?;
        let cells = thin(&cells, &cells.leaves_of_inputs(0, &scorer.of_rows(table, divide, columns)))?;
        Self::new(scorer, told.shares, cells)
    }

    /// What gives the scores.
    #[must_use]
    pub fn scorer(&self) -> &Scorer {
        &self.scorer
    }

    /// The classes whose shares are scores.
    #[must_use]
    pub fn shares(&self) -> &[u32] {
        &self.shares
    }

    /// The tree whose leaves are the cells.
    #[must_use]
    pub fn cells(&self) -> &Trees {
        &self.cells
    }

    /// The cell of a query; nothing is allocated.
    #[inline]
    pub(crate) fn cell<T: Real>(&self, prediction: &[T], peak: Peak, features: &[f64]) -> usize {
        let scores = self.scorer.scores(prediction, peak, features);
        self.cells.leaf_of_row(0, &scores) as usize
    }

    /// The cells of all rows of a table.
    pub(crate) fn cells_of(&self, table: &Table, columns: &[usize]) -> Vec<u32> {
        self.cells.leaves_of_inputs(0, &self.scorer.of_table(table, columns))
    }
}

/// One tree with the rows that divide in it.
struct Tree {
    /// Each leaf's scores, by all rows and by those the tree was grown on.
    all: Vec<f64>,
    grown_on: Vec<f64>,
    /// The leaf of each row of the sample, if the tree was not grown on it.
    new: Vec<Option<u32>>,
}

/// What the labels of rows tell, of those with two labels or more: their Brier losses and shares.
struct Told {
    /// Places among the rows given.
    ranks: Vec<u32>,
    shares: Vec<u32>,
    /// Row by row.
    numbers: Vec<f64>,
    weights: Vec<f64>,
}

impl Told {
    fn of(table: &Table, rows: &[u32]) -> Self {
        let classes = table.classes().len();
        let mut told = Self { ranks: Vec::new(), shares: Vec::new(), numbers: Vec::new(), weights: Vec::new() };
        let mut losses = Vec::new();
        let mut dist = vec![0.0; classes];
        for (rank, &row) in rows.iter().enumerate() {
            if let Some(split) = targets::split(table, row as usize, &mut dist) {
                told.ranks.push(rank as u32);
                told.weights.push(table.weight(row as usize));
                losses.push(split);
            }
        }
        let mean = |rank: u32, class: usize| {
            let votes = table.votes(rows[rank as usize] as usize);
            votes.map_or(0.0, |votes| f64::from(votes.counts()[class]) / votes.k() as f64)
        };
        // Where there are too many classes, those whose shares differ most.
        let spread = |class: usize| variance(told.ranks.iter().map(|&rank| mean(rank, class)), &told.weights);
        let mut widest: Vec<(f64, u32)> =
            (0..classes).into_par_iter().map(|class| (spread(class), class as u32)).collect();
        widest.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        widest.truncate(MAX_SCORES - HonestForest::LOSSES);
        told.shares = widest.into_iter().map(|(_, class)| class).collect();
        told.shares.sort_unstable();
        for (&rank, [irreducible, reducible]) in told.ranks.iter().zip(losses) {
            told.numbers.extend([reducible, irreducible]);
            told.numbers.extend(told.shares.iter().map(|&class| mean(rank, class as usize)));
        }
        told
    }

    fn width(&self) -> usize {
        HonestForest::LOSSES + self.shares.len()
    }

    /// The weighted means of the rows in each of a tree's leaves that count.
    fn means(&self, found: &[u32], leaves: usize, counts: impl Fn(usize) -> bool) -> Vec<f64> {
        let width = self.width();
        let rows = (0..found.len()).filter(|&row| counts(row));
        let of_row = |row: usize| (found[row], self.weights[row], &self.numbers[row * width..][..width]);
        means_of_leaves(leaves, width, rows.map(of_row))
    }
}

/// What a unit of each score counts: the reducible loss, the irreducible loss and all shares together vary by one.
fn scales(points: &[f64], weights: &[f64], width: usize) -> Vec<f64> {
    let of = |score: usize| variance(points.iter().skip(score).step_by(width).copied(), weights);
    let variances: Vec<f64> = (0..width).map(of).collect();
    let shares: f64 = variances[HonestForest::LOSSES..].iter().sum();
    let scale = |variance: f64| if variance > 1e-18 { 1.0 / variance.sqrt() } else { 0.0 };
    (0..width).map(|score| scale(if score < HonestForest::LOSSES { variances[score] } else { shares })).collect()
}

fn variance(values: impl Iterator<Item = f64> + Clone, weights: &[f64]) -> f64 {
    let all: f64 = weights.iter().sum();
    let mean = values.clone().zip(weights).map(|(x, w)| w * x).sum::<f64>() / all;
    values.zip(weights).map(|(x, w)| w * (x - mean).powi(2)).sum::<f64>() / all
}
