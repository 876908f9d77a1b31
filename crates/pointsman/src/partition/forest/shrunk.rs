//! What the votes of rows tell together before there is a loss: very many small mixtures of the same votes, the leaves of a forest.

use super::leaf_statistics::{LeafMembers, VoteCounts};
use crate::parallel::prelude::*;
use crate::table::Table;
use crate::table::simplex::dot;

/// What each distinct set of votes tells before there is a loss.
pub(crate) struct PerVoteVector<'a> {
    table: &'a Table,
    /// Which votes a row has.
    pub(crate) index_of_row: &'a [u32],
    /// [`MEAN`] numbers and the snapshot mean of each distinct set of votes, one after the other: a leaf adds them up.
    values: Vec<f64>,
    /// How many labels all items have, if as many.
    pub(crate) even: Option<f64>,
}

/// Places among what votes tell: one if there are two labels, and then how often two of them differ; ‖ȳ‖², where ȳ is their mean;
/// how many labels there are; ȳ from here on.
const PAIRED: usize = 0;
const NOISE: usize = 1;
const SQUARE: usize = 2;
const LABELS: usize = 3;
const MEAN: usize = 4;

/// Rows that follow each other with the same votes: these, the rows' weights added up, and their squares.
pub(crate) type Run = (u32, [f64; 2]);

/// So many rows with the same votes, each of weight one.
pub(crate) fn unweighted(&(votes, rows): &(u32, u32)) -> Run {
    (votes, [f64::from(rows); 2])
}

/// Where the shrunk points of some rows with as many labels each lie: between their votes and the mean of all.
pub(crate) struct Shrunk<'a> {
    pub(crate) weight: f64,
    /// How near to their votes.
    pub(crate) factor: f64,
    pub(crate) centre: &'a [f64],
}

/// [`Shrunk`] for all leaves of a forest.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ShrunkLeaves {
    /// Weight, factor and centre, leaf by leaf.
    values: Vec<f64>,
    classes: usize,
}

impl ShrunkLeaves {
    /// `None` if items have different numbers of labels, or only one: where points lie is then no one number. Nor if leaves are so
    /// many, or have so many classes, that it would take more room than their rows.
    pub(super) fn new(table: &Table, members: &LeafMembers, vote_counts: Option<&VoteCounts>) -> Option<Self> {
        let (told, classes) = (PerVoteVector::of(table), table.classes().len());
        told.even.filter(|k| *k >= 2.0 && members.leaves() * (2 + classes) <= members.rows())?;
        let mut values = vec![0.0; members.leaves() * (2 + classes)];
        let slots = values.par_chunks_exact_mut(2 + classes).enumerate();
        slots.for_each_init(Default::default, |(runs, sums): &mut (Vec<Run>, Vec<f64>), (leaf, out)| {
            let sums = match vote_counts {
                Some(counts) => told.add_up(counts.of(leaf).iter().map(unweighted), sums),
                None => {
                    told.find_runs(members.rows_of(leaf), runs);
                    told.add_up(runs.iter().copied(), sums)
                }
            };
            (out[0], out[1]) = (sums.weight, sums.factor());
            out[2..].copy_from_slice(sums.centre);
        });
        Some(Self { values, classes })
    }

    pub(super) fn of(&self, leaf: usize) -> Shrunk<'_> {
        let (own, centre) = self.values[leaf * (2 + self.classes)..][..2 + self.classes].split_at(2);
        Shrunk { weight: own[0], factor: own[1], centre }
    }
}

/// What the votes of some rows tell together.
pub(crate) struct Sums<'a> {
    pub(crate) weight: f64,
    /// The weight of those with two labels, and how often two of their labels differ.
    pub(crate) pair_weight: f64,
    pub(crate) noise: f64,
    /// The variance of the rows' label distributions, estimated without bias: below zero where two labels of a row happen to differ
    /// more often than two labels of any rows. That of the means of their labels.
    pub(crate) variance: f64,
    spread: f64,
    pub(crate) centre: &'a [f64],
}

impl Sums<'_> {
    /// How near points are to their votes, if these are as many; with the sign of the variance.
    pub(crate) fn factor(&self) -> f64 {
        let part = if self.spread > 0.0 { self.variance / self.spread } else { 0.0 };
        part.abs().min(1.0).sqrt().copysign(part)
    }
}

impl<'a> PerVoteVector<'a> {
    pub(crate) fn of(table: &'a Table) -> Self {
        let (distinct, classes) = (table.distinct_votes(), table.classes().len());
        let mut values = vec![0.0; distinct.len() * (MEAN + classes)];
        for (votes, told) in distinct.iter().zip(values.chunks_exact_mut(MEAN + classes)) {
            let (k, (told, mean)) = (votes.k() as f64, told.split_at_mut(MEAN));
            votes.mean_into(mean);
            (told[SQUARE], told[LABELS]) = (dot(mean, mean), k);
            if let Some(noise) = votes.disagreement() {
                (told[PAIRED], told[NOISE]) = (1.0, noise);
            }
        }
        let mut labels = distinct.iter().map(|votes| votes.k() as f64);
        let even = labels.next().filter(|first| labels.all(|k| k == *first));
        Self { table, index_of_row: distinct.index_of_row(), values, even }
    }

    fn at(&self, votes: u32) -> &[f64] {
        let width = MEAN + self.table.classes().len();
        &self.values[votes as usize * width..][..width]
    }

    /// How many labels there are.
    pub(crate) fn labels(&self, votes: u32) -> f64 {
        self.at(votes)[LABELS]
    }

    /// Whether there are two.
    pub(crate) fn is_paired(&self, votes: u32) -> bool {
        self.at(votes)[PAIRED] > 0.0
    }

    pub(crate) fn mean(&self, votes: u32) -> &[f64] {
        &self.at(votes)[MEAN..]
    }

    /// Leaves have their rows in order of votes; other rows make more runs of them.
    pub(crate) fn find_runs(&self, rows: &[u32], runs: &mut Vec<Run>) {
        runs.clear();
        for run in rows.chunk_by(|&a, &b| self.index_of_row[a as usize] == self.index_of_row[b as usize]) {
            let mut sums = [0.0; 2];
            for weight in run.iter().map(|&row| self.table.weight(row as usize)) {
                sums = [sums[0] + weight, sums[1] + weight * weight];
            }
            runs.push((self.index_of_row[run[0] as usize], sums));
        }
    }

    /// Adds up what the votes of runs tell.
    pub(crate) fn add_up<'b>(&self, runs: impl Iterator<Item = Run>, sums: &'b mut Vec<f64>) -> Sums<'b> {
        let mut weight = 0.0;
        sums.clear();
        sums.resize(MEAN + self.table.classes().len(), 0.0);
        for (votes, [w, _]) in runs {
            weight += w;
            sums.iter_mut().zip(self.at(votes)).for_each(|(sum, told)| *sum += w * told);
        }
        let (sums, centre) = sums.split_at_mut(MEAN);
        centre.iter_mut().for_each(|sum| *sum /= weight);
        let pair_weight = sums[PAIRED];
        let noise = if pair_weight > 0.0 { sums[NOISE] / pair_weight } else { 0.0 };
        let square = dot(centre, centre);
        let (variance, spread) = (1.0 - square - noise, sums[SQUARE] / weight - square);
        Sums { weight, pair_weight, noise, variance, spread, centre }
    }
}
