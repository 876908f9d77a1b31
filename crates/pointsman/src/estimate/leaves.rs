//! The losses of very many small mixtures of the same rows: the leaves of a forest.
//!
//! What depends on a row alone is worked out once; a leaf only adds it up, and evaluates the entropy of its shrunk points. The
//! numbers are those of [`Decomposition`](super::Decomposition), up to rounding.

use std::borrow::Cow;

use rayon::prelude::*;
use wide::f64x4;

use super::{Estimator, Piles, certain_loss};
use crate::forest::{LeafRows, Trees};
use crate::loss::{Loss, dot};
use crate::router::SPARSE;
use crate::table::Table;

/// What is known of each row of a table, and of each distinct set of votes: rows that share their votes share all but the loss
/// of their prediction.
pub(crate) struct PerRow<'a> {
    table: &'a Table,
    /// Which votes a row has.
    ballots: &'a [u32],
    /// Loss of the weak prediction, and its entropy: what it expects to lose itself.
    totals: Vec<[f64; 2]>,
    /// What each distinct set of votes tells, [`MEAN`] numbers and the snapshot mean, one after the other: a leaf adds them up.
    told: Vec<f64>,
    /// The number of labels of each.
    labels: Vec<f64>,
    /// For the cross-entropy, if all items have k labels: the number of each count of each class, k + 1 to a class.
    slots: Vec<u32>,
}

/// Places among what votes tell: one if there are two labels, and then how often two of them differ; the entropy of their mean ȳ;
/// ‖ȳ‖²; ȳ from here on.
const PAIRED: usize = 0;
const NOISE: usize = 1;
const ENTROPY: usize = 2;
const SQUARE: usize = 3;
const MEAN: usize = 4;

/// The most slots: beyond it every leaf would spend its time on clearing them.
const MOST_SLOTS: f64 = 4096.0;

/// What the rows of a leaf have in common.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Means {
    /// The weight of those with two labels, and the mean entropy of their labels.
    pub(super) weight: f64,
    pub(super) entropy: f64,
    /// The mean loss and the mean entropy of the predictions, of those with two labels; of all if all have them.
    pub(super) paired: [f64; 2],
    /// The mean entropy of all predictions.
    pub(super) served: f64,
}

impl Means {
    /// The mean entropy of the predictions.
    pub(crate) fn served(&self) -> f64 {
        self.served
    }
}

/// Room that one leaf leaves to the next.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) piles: Piles,
    /// Votes, weight and squared weights of rows that follow each other with the same votes.
    runs: Vec<(u32, [f64; 2])>,
    points: Vec<f64>,
    weights: Vec<f64>,
    logs: Vec<[f64; 2]>,
}

impl<'a> PerRow<'a> {
    pub(crate) fn of(table: &'a Table, loss: &Loss) -> Self {
        let (ballots, classes) = (table.ballots(), table.classes().len());
        let total = |(point, room): &mut (Vec<f64>, Vec<f64>), row: usize| {
            table.dist_into(row, point);
            table.votes(row).map_or([0.0; 2], |votes| loss.of_votes_and_itself(votes, point, room))
        };
        let room = || (vec![0.0; classes], vec![0.0; classes]);
        let totals = (0..table.rows()).into_par_iter().with_min_len(1 << 10).map_init(room, total).collect();
        let (mut told, mut labels) = (vec![0.0; ballots.len() * (MEAN + classes)], Vec::with_capacity(ballots.len()));
        for (votes, told) in ballots.iter().zip(told.chunks_exact_mut(MEAN + classes)) {
            let (k, (told, mean)) = (votes.k() as f64, told.split_at_mut(MEAN));
            votes.mean_into(mean);
            labels.push(k);
            (told[SQUARE], told[ENTROPY]) = (dot(mean, mean), loss.entropy(mean));
            if k >= 2.0 {
                (told[PAIRED], told[NOISE]) = (1.0, (1.0 - told[SQUARE]) * k / (k - 1.0));
            }
        }
        let mut slots = Vec::new();
        // Only if there can be fewer of them than sets of votes.
        let few = |k: f64| k < labels.len() as f64 && (k + 1.0) * classes as f64 <= MOST_SLOTS;
        let even = |k: &&f64| labels.iter().all(|other| other == *k);
        if let Some(&k) = labels.first().filter(|k| loss.floor().is_some() && few(**k)).filter(even) {
            let numbered = ballots.iter().flat_map(|votes| (0..).zip(votes.counts()));
            slots.extend(numbered.map(|(class, n): (u32, _)| class * (k as u32 + 1) + n));
        }
        Self { table, ballots: ballots.of_rows(), totals, told, labels, slots }
    }

    /// What a distinct set of votes tells.
    fn told(&self, ballot: usize) -> &[f64] {
        let width = MEAN + self.table.classes().len();
        &self.told[ballot * width..][..width]
    }

    pub(super) fn weight(&self, row: usize) -> f64 {
        self.table.weight(row)
    }

    /// The entropy of a row's prediction.
    #[inline]
    pub(crate) fn served(&self, row: usize) -> f64 {
        self.totals[row][1]
    }

    /// Loss and entropy of the predictions, added up over the rows of each leaf.
    pub(crate) fn sums(&self, trees: &Trees, leaves: &LeafRows) -> Vec<[f64; 2]> {
        let weighted: Cow<'_, [[f64; 2]]> = if self.table.has_weights() {
            let weighted = |(row, totals): (usize, &[f64; 2])| totals.map(|total| self.weight(row) * total);
            self.totals.iter().enumerate().map(weighted).collect()
        } else {
            Cow::Borrowed(&self.totals)
        };
        let of_trees = |first: usize| {
            let last = (first + 1).min(trees.count() - 1);
            let (start, middle) = (trees.leaves_of(first).start, trees.leaves_of(last).start);
            let mut sums = vec![[0.0; 2]; trees.leaves_of(last).end - start];
            let mut add = |leaf: u32, own: &[f64; 2]| {
                let sums = &mut sums[leaf as usize - start];
                *sums = [sums[0] + own[0], sums[1] + own[1]];
            };
            // Two trees in step: while one's sum is under way, so is the other's.
            if middle > start {
                for ((&a, &b), own) in leaves.of_rows(first).iter().zip(leaves.of_rows(last)).zip(weighted.iter()) {
                    add(a, own);
                    add(b, own);
                }
            } else {
                leaves.of_rows(first).iter().zip(weighted.iter()).for_each(|(&leaf, own)| add(leaf, own));
            }
            sums
        };
        let firsts: Vec<usize> = (0..trees.count()).step_by(2).collect();
        let sums: Vec<Vec<[f64; 2]>> = firsts.into_par_iter().map(of_trees).collect();
        sums.concat()
    }

    /// A row's loss, the entropy of its labels and that of its prediction.
    pub(super) fn own(&self, row: usize) -> [f64; 3] {
        let [total, served] = self.totals[row];
        [total, self.told(self.ballots[row] as usize)[ENTROPY], served]
    }

    /// The mean entropy of some rows' predictions.
    pub(crate) fn mean_served(&self, rows: &[u32]) -> f64 {
        let (mut weight, mut sum) = (0.0, 0.0);
        for row in rows.iter().map(|&row| row as usize) {
            weight += self.weight(row);
            sum += self.weight(row) * self.totals[row][1];
        }
        sum / weight
    }

    /// What some rows have in common.
    pub(crate) fn means(&self, rows: &[u32]) -> Means {
        let (mut all, mut served, mut weight, mut sums) = (0.0, 0.0, 0.0, [0.0; 3]);
        for row in rows.iter().map(|&row| row as usize) {
            let (w, own) = (self.weight(row), self.own(row));
            all += w;
            served += w * own[2];
            if self.labels[self.ballots[row] as usize] >= 2.0 {
                weight += w;
                sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += w * own);
            }
        }
        let [total, entropy, own] = sums.map(|sum| if weight > 0.0 { sum / weight } else { 0.0 });
        Means { weight, entropy, paired: [total, own], served: served / all }
    }

    /// The total loss of some rows and both ends of their irreducible loss.
    ///
    /// For `shrink` and `plugin` only.
    pub(crate) fn losses(&self, rows: &[u32], loss: &Loss, estimator: Estimator, scratch: &mut Scratch) -> [f64; 3] {
        let (mut total, mut served) = (0.0, 0.0);
        for row in rows.iter().map(|&row| row as usize) {
            total += self.weight(row) * self.totals[row][0];
            served += self.weight(row) * self.totals[row][1];
        }
        self.find_runs(rows, scratch);
        self.of_runs(rows, [total, served], loss, estimator, scratch).0
    }

    /// The same of a leaf, with what its rows have in common. `sums` are its loss and entropy of predictions added up.
    pub(crate) fn of_leaf(
        &self,
        leaves: &LeafRows,
        leaf: usize,
        sums: [f64; 2],
        loss: &Loss,
        estimator: Estimator,
        scratch: &mut Scratch,
    ) -> ([f64; 3], Means) {
        if let Some(runs) = leaves.runs(leaf) {
            scratch.runs.clear();
            scratch.runs.extend(runs.iter().map(|&(ballot, rows)| (ballot, [f64::from(rows); 2])));
        } else {
            self.find_runs(leaves.of(leaf), scratch);
        }
        self.of_runs(leaves.of(leaf), sums, loss, estimator, scratch)
    }

    /// Leaves have their rows in order of votes; other rows make more runs of them.
    fn find_runs(&self, rows: &[u32], scratch: &mut Scratch) {
        scratch.runs.clear();
        for run in rows.chunk_by(|&a, &b| self.ballots[a as usize] == self.ballots[b as usize]) {
            let mut sums = [0.0; 2];
            for weight in run.iter().map(|&row| self.weight(row as usize)) {
                sums = [sums[0] + weight, sums[1] + weight * weight];
            }
            scratch.runs.push((self.ballots[run[0] as usize], sums));
        }
    }

    fn of_runs(
        &self,
        rows: &[u32],
        [total, served]: [f64; 2],
        loss: &Loss,
        estimator: Estimator,
        scratch: &mut Scratch,
    ) -> ([f64; 3], Means) {
        let c = self.table.classes().len();
        let Scratch { runs, points, weights, logs, .. } = scratch;
        points.clear();
        points.resize(MEAN + 2 * c, 0.0);
        let (sums, point) = points.split_at_mut(MEAN + c);
        let (mut weight, mut fewest, mut most) = (0.0, f64::INFINITY, 0.0);
        for (votes, w) in runs.iter().map(|&(votes, [w, _])| (votes as usize, w)) {
            weight += w;
            (fewest, most) = (self.labels[votes].min(fewest), self.labels[votes].max(most));
        }
        self.add_up(runs, sums);
        let (sums, centre) = sums.split_at_mut(MEAN);
        let pair_weight = sums[PAIRED];
        centre.iter_mut().for_each(|sum| *sum /= weight);
        let identified = pair_weight >= weight / 2.0
            || pair_weight > 0.0 && {
                let squares: f64 = runs.iter().map(|&(votes, [_, w2])| self.told(votes as usize)[PAIRED] * w2).sum();
                pair_weight * pair_weight >= squares * (SPARSE as f64 - 1e-6)
            };
        let noise = if pair_weight > 0.0 { sums[NOISE] / pair_weight } else { 0.0 };
        let square = dot(centre, centre);
        let variance = (1.0 - square - noise).max(0.0);
        let spread = sums[SQUARE] / weight - square;
        let common = if spread > 0.0 { (variance / spread).min(1.0).sqrt() } else { 0.0 };
        let as_many = fewest == most && estimator == Estimator::Shrink;
        let floor = loss.floor().filter(|_| as_many);
        let by_logs = floor.and_then(|floor| self.by_logs(floor, centre, common, runs, (weights, logs)));
        let each = || {
            if estimator != Estimator::Shrink {
                return sums[ENTROPY];
            }
            let mut irreducible = 0.0;
            for (votes, w) in runs.iter().map(|&(votes, [w, _])| (votes as usize, w)) {
                let factor = match fewest == most {
                    true => common,
                    false if variance > 0.0 => (variance / (variance + noise / self.labels[votes])).sqrt(),
                    false => 0.0,
                };
                for ((p, y), centre) in point.iter_mut().zip(&self.told(votes)[MEAN..]).zip(centre.iter()) {
                    *p = centre + factor * (y - centre);
                }
                irreducible += w * loss.entropy(point);
            }
            irreducible
        };
        let irreducible = by_logs.unwrap_or_else(each);
        let (total, irreducible, served) = (total / weight, irreducible / weight, served / weight);
        let means = if fewest >= 2.0 {
            Means { weight, entropy: sums[ENTROPY] / weight, paired: [total, served], served }
        } else {
            self.means(rows)
        };
        if !identified {
            return ([total, certain_loss(loss, centre), loss.entropy(centre)], means);
        }
        // Points that all shrink alike have the mean of the votes, whose entropy is then above theirs anyway.
        let irreducible = if estimator == Estimator::Shrink && !as_many {
            irreducible.min(loss.entropy(centre))
        } else {
            irreducible
        };
        ([total, irreducible, irreducible], means)
    }

    /// Adds up what the votes of runs tell. With few classes the sums stay in registers.
    fn add_up(&self, runs: &[(u32, [f64; 2])], sums: &mut [f64]) {
        fn unrolled<const WIDTH: usize>(told: &[f64], runs: &[(u32, [f64; 2])], out: &mut [f64]) {
            let (told, mut sums) = (told.as_chunks::<WIDTH>().0, [0.0; WIDTH]);
            for &(votes, [weight, _]) in runs {
                sums.iter_mut().zip(&told[votes as usize]).for_each(|(sum, told)| *sum += weight * told);
            }
            out.copy_from_slice(&sums);
        }
        match sums.len() - MEAN {
            2 => unrolled::<{ MEAN + 2 }>(&self.told, runs, sums),
            3 => unrolled::<{ MEAN + 3 }>(&self.told, runs, sums),
            4 => unrolled::<{ MEAN + 4 }>(&self.told, runs, sums),
            _ => runs.iter().for_each(|&(votes, [weight, _])| {
                sums.iter_mut().zip(self.told(votes as usize)).for_each(|(sum, told)| *sum += weight * told);
            }),
        }
    }

    /// The cross-entropies of shrunk points, weighted and added up, by fewer logarithms than one a class and run: if all rows have
    /// k labels, a class has at most k + 1 different probabilities. `None` where that is not fewer, or where the floor matters.
    fn by_logs(
        &self,
        floor: f64,
        centre: &[f64],
        factor: f64,
        runs: &[(u32, [f64; 2])],
        (weights, points): (&mut Vec<f64>, &mut Vec<[f64; 2]>),
    ) -> Option<f64> {
        let (c, k) = (centre.len(), *self.labels.first()? as usize);
        let never = centre.iter().filter(|p| **p == 0.0).count();
        let scale = 1.0 - never as f64 * floor;
        let least = centre.iter().copied().filter(|p| *p > 0.0).fold(1.0, f64::min) * (1.0 - factor);
        if self.slots.is_empty() || k >= runs.len() || factor == 1.0 || least * scale < floor {
            return None;
        }
        weights.clear();
        weights.resize(c * (k + 1), 0.0);
        let mut all = 0.0;
        for &(votes, [weight, _]) in runs {
            all += weight;
            self.slots[votes as usize * c..][..c].iter().for_each(|&slot| weights[slot as usize] += weight);
        }
        let step = factor / k as f64;
        points.clear();
        for (centre, weights) in centre.iter().zip(weights.chunks_exact(k + 1)).filter(|(p, _)| **p > 0.0) {
            let least = centre * (1.0 - factor);
            points.extend((0_i32..).zip(weights).map(|(n, &weight)| [least + f64::from(n) * step, weight]));
        }
        // Four at a time; the logarithm of one is nothing.
        points.resize(points.len().next_multiple_of(4), [1.0, 0.0]);
        let mut sum = f64x4::ZERO;
        for &[a, b, c, d] in points.as_chunks().0 {
            let [p, weight] = [0, 1].map(|i| f64x4::from([a[i], b[i], c[i], d[i]]));
            sum += weight * p * p.ln();
        }
        let sum = sum.reduce_add() + all * scale.ln();
        Some(-sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{Decomposition, RowLosses};
    use crate::router::Mixture;

    #[test]
    fn leaves_have_the_losses_of_their_mixtures() {
        let n = 60_u32;
        let probs: Vec<f64> = (0..n).map(|i| 0.1 + f64::from(i % 7) * 0.1).flat_map(|p| [p, 0.9 - p, 0.1]).collect();
        // As many labels for all, of two classes and of all three; more or fewer; mostly one; so many that slots are out of the question.
        let labels = [
            |i: u32| [i % 4, 4 - i % 4, 0],
            |i: u32| [i % 3, 3 - i % 3, 1],
            |i: u32| [1 + i % 3, i % 5, i % 2],
            |i: u32| [1, u32::from(i == 7), 0],
            |i: u32| [u32::MAX - i, i, u32::MAX],
        ];
        for (labels, is_weighted) in labels.into_iter().flat_map(|labels| [(labels, false), (labels, true)]) {
            let votes = (0..n).flat_map(labels).collect();
            let table = Table::new(["a", "b", "c"], Vec::clone(&probs)).and_then(|table| table.with_votes(votes));
            let weights = (0..n).map(|i| if is_weighted { 1.0 + f64::from(i % 3) } else { 1.0 }).collect();
            let table = table.and_then(|table| table.with_weights(weights)).unwrap();
            for loss in [Loss::brier(), Loss::cross_entropy(), Loss::zero_one()] {
                for estimator in [Estimator::Shrink, Estimator::Plugin] {
                    let mut scratch = Scratch::default();
                    let per_row = PerRow::of(&table, &loss);
                    for rows in [vec![7], vec![1, 2, 3, 5, 8, 13, 21, 34, 55], (0..n).collect::<Vec<_>>()] {
                        let found = per_row.losses(&rows, &loss, estimator, &mut scratch);
                        let mixture = Mixture::of_rows(&table, &rows);
                        let (none, piles) = (RowLosses::default(), &mut scratch.piles);
                        let d = Decomposition::of(mixture, &loss, estimator, None, &none, piles).unwrap();
                        let expected = [d.total, d.irreducible_low, d.irreducible_high];
                        for (found, expected) in found.into_iter().zip(expected) {
                            assert!((found - expected).abs() < 1e-9, "{loss} {estimator}: {found} and {expected}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn fewer_logarithms_make_no_difference() {
        let (n, k) = (200_u32, 5);
        let votes = (0..n).flat_map(|i| [i % (k + 1), k - i % (k + 1), 0]).collect();
        let table = Table::new(["a", "b", "c"], [0.5, 0.3, 0.2].repeat(n as usize));
        let table = table.and_then(|table| table.with_votes(votes)).unwrap();
        let (loss, rows) = (Loss::cross_entropy(), (0..n).collect::<Vec<_>>());
        let per_row = PerRow::of(&table, &loss);
        let mut scratch = Scratch::default();
        per_row.find_runs(&rows, &mut scratch);
        let Scratch { runs, weights, logs, .. } = &mut scratch;
        let (centre, factor) = ([0.5, 0.5, 0.0], 0.7);
        let found = per_row.by_logs(1e-6, &centre, factor, runs, (weights, logs)).unwrap();
        let expected: f64 = runs
            .iter()
            .map(|&(votes, [weight, _])| {
                let mean = &per_row.told(votes as usize)[MEAN..];
                let point: Vec<f64> = mean.iter().zip(centre).map(|(y, p)| p + factor * (y - p)).collect();
                weight * loss.entropy(&point)
            })
            .sum();
        assert!((found - expected).abs() < 1e-9 * expected, "{found} {expected}");
        // Points at the floor, or on the border, are left to the careful way.
        assert!(per_row.by_logs(0.2, &centre, factor, runs, (weights, logs)).is_none());
        assert!(per_row.by_logs(1e-6, &centre, 1.0, runs, (weights, logs)).is_none());
    }
}
