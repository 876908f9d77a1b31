//! Moments of the votes in each leaf of a forest; no loss enters.

use super::rows_in_leaves::{RowsInLeaves, TreeLeaves};
use super::vote_counts::VoteCounts;
use crate::partition::vote_moments::VoteMoments;
use crate::table::Table;
use crate::table::simplex::dot;

/// The statistics of each distinct vote vector of a table; rows that share their votes share them.
pub(crate) struct VoteVectors<'a> {
    table: &'a Table,
    /// The vote vector of each row, by number.
    pub(crate) index_of_row: &'a [u32],
    statistics: Vec<VoteStatistics>,
    /// The snapshot mean ȳ of each vote vector, one after another.
    means: Vec<f64>,
    /// The number of labels per item, if all items have the same number.
    pub(crate) common_labels: Option<f64>,
}

/// The statistics of one vote vector beside its mean ȳ.
#[derive(Clone, Copy, Default)]
struct VoteStatistics {
    /// The number of labels.
    labels: f64,
    /// One if there are two labels or more, else zero.
    paired: f64,
    /// The share of pairs of labels that differ; zero with one label.
    noise: f64,
    /// ‖ȳ‖².
    square: f64,
}

/// Consecutive rows with the same votes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VoteRun {
    /// The vote vector, by number.
    pub(crate) votes: u32,
    /// The total weight of the rows.
    pub(crate) weight: f64,
    /// The sum of their squared weights.
    pub(crate) squares: f64,
}

impl VoteRun {
    /// A number of rows of weight one, as [`VoteCounts`] lists them.
    pub(crate) fn from_count(&[votes, rows]: &[u32; 2]) -> Self {
        Self { votes, weight: f64::from(rows), squares: f64::from(rows) }
    }
}

/// Where the shrunk label distributions of rows with equally many labels lie: on the line from the centre to each row's ȳ.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shrunk<'a> {
    /// The total weight of the rows.
    pub(crate) weight: f64,
    /// The distance from the centre as a part of ȳ's; negative if the variance estimate is.
    pub(crate) factor: f64,
    pub(crate) centre: &'a [f64],
}

/// [`Shrunk`] for all leaves of a forest.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ShrunkLeaves {
    weights: Vec<f64>,
    factors: Vec<f64>,
    /// Leaf by leaf.
    centres: Vec<f64>,
    classes: usize,
}

impl ShrunkLeaves {
    /// `None` if items have different numbers of labels, or one each, so that there is no common factor. Also if it would have more
    /// numbers than the leaves have rows.
    pub(super) fn new(table: &Table, rows: &RowsInLeaves, vote_counts: Option<&VoteCounts>) -> Option<Self> {
        let (vectors, classes) = (VoteVectors::new(table), table.classes().len());
        let numbers = rows.trees() * rows.rows();
        vectors.common_labels.filter(|k| *k >= 2.0 && rows.leaves() * (2 + classes) <= numbers)?;
        let of_leaf = |runs: &mut Vec<VoteRun>, tree: &TreeLeaves<'_>, leaf: usize| {
            let mut centre = vec![0.0; classes];
            let moments = match vote_counts {
                Some(counts) => vectors.moments(counts.of(leaf).iter().map(VoteRun::from_count), &mut centre),
                None => {
                    vectors.find_runs(tree.rows_of(leaf), runs);
                    vectors.moments(runs.iter().copied(), &mut centre)
                }
            };
            (moments.weight, moments.factor(), centre)
        };
        let mut built = Self { weights: Vec::new(), factors: Vec::new(), centres: Vec::new(), classes };
        for (weight, factor, centre) in rows.map_leaves(Vec::new, of_leaf) {
            built.weights.push(weight);
            built.factors.push(factor);
            built.centres.extend(centre);
        }
        Some(built)
    }

    pub(super) fn of(&self, leaf: usize) -> Shrunk<'_> {
        let centre = &self.centres[leaf * self.classes..][..self.classes];
        Shrunk { weight: self.weights[leaf], factor: self.factors[leaf], centre }
    }
}

impl<'a> VoteVectors<'a> {
    pub(crate) fn new(table: &'a Table) -> Self {
        let (distinct, classes) = (table.distinct_votes(), table.classes().len());
        let mut means = vec![0.0; distinct.len() * classes];
        let mut statistics = Vec::with_capacity(distinct.len());
        for (votes, mean) in distinct.iter().zip(means.chunks_exact_mut(classes)) {
            votes.mean_into(mean);
            let (labels, square, noise) = (votes.k() as f64, dot(mean, mean), votes.disagreement());
            let paired = f64::from(u8::from(noise.is_some()));
            statistics.push(VoteStatistics { labels, paired, noise: noise.unwrap_or(0.0), square });
        }
        let mut labels = distinct.iter().map(|votes| votes.k() as f64);
        let common_labels = labels.next().filter(|first| labels.all(|k| k == *first));
        Self { table, index_of_row: distinct.index_of_row(), statistics, means, common_labels }
    }

    /// The number of classes.
    pub(crate) fn classes(&self) -> usize {
        self.table.classes().len()
    }

    /// The number of labels of a vote vector.
    pub(crate) fn labels(&self, votes: u32) -> f64 {
        self.statistics[votes as usize].labels
    }

    /// Whether a vote vector has two labels or more.
    pub(crate) fn is_paired(&self, votes: u32) -> bool {
        self.statistics[votes as usize].paired > 0.0
    }

    /// The snapshot mean of a vote vector.
    pub(crate) fn mean(&self, votes: u32) -> &[f64] {
        &self.means[votes as usize * self.classes()..][..self.classes()]
    }

    /// Groups consecutive rows with the same votes. The rows of a leaf are sorted by votes; other rows give more runs.
    pub(crate) fn find_runs(&self, rows: &[u32], runs: &mut Vec<VoteRun>) {
        runs.clear();
        for run in rows.chunk_by(|&a, &b| self.index_of_row[a as usize] == self.index_of_row[b as usize]) {
            let (mut weight, mut squares) = (0.0, 0.0);
            for own in run.iter().map(|&row| self.table.weight(row as usize)) {
                weight += own;
                squares += own * own;
            }
            runs.push(VoteRun { votes: self.index_of_row[run[0] as usize], weight, squares });
        }
    }

    /// The moments of the votes of runs; their mean is written into `centre`.
    pub(crate) fn moments(&self, runs: impl Iterator<Item = VoteRun>, centre: &mut [f64]) -> VoteMoments {
        let (mut weight, mut pair_weight, mut noise, mut square) = (0.0, 0.0, 0.0, 0.0);
        centre.fill(0.0);
        for VoteRun { votes, weight: own, .. } in runs {
            let statistics = self.statistics[votes as usize];
            weight += own;
            pair_weight += own * statistics.paired;
            noise += own * statistics.noise;
            square += own * statistics.square;
            centre.iter_mut().zip(self.mean(votes)).for_each(|(sum, y)| *sum += own * y);
        }
        centre.iter_mut().for_each(|sum| *sum /= weight);
        let spread = square / weight - dot(centre, centre);
        VoteMoments::new(centre, weight, pair_weight, noise, spread)
    }
}
