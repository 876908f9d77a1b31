//! The losses of very many small mixtures of the same rows: the leaves of a forest.
//!
//! What depends on a row alone is worked out once; a leaf only adds it up, and evaluates the entropy of its shrunk points. The
//! numbers are those of [`Decomposition`](super::Decomposition), up to rounding.

use rayon::prelude::*;

use super::{Estimator, Piles, certain_loss};
use crate::forest::{LeafRows, Trees};
use crate::loss::{Loss, dot};
use crate::router::SPARSE;
use crate::table::Table;
use crate::votes::Votes;

/// What is known of each row of a table, and of each distinct set of votes: rows that share their votes share all but the loss
/// of their prediction.
pub(crate) struct PerRow<'a> {
    table: &'a Table,
    /// Which votes a row has.
    ballots: &'a [u32],
    /// Loss of the weak prediction, and its entropy: what it expects to lose itself.
    totals: Vec<[f64; 2]>,
    /// What each distinct set of votes tells.
    told: Vec<Told>,
    /// Snapshot means, one after the other.
    means: Vec<f64>,
}

/// What a set of votes tells whatever leaf it is in.
#[derive(Debug, Clone, Copy)]
struct Told {
    /// The number of labels.
    labels: f64,
    /// ‖ȳ‖².
    square: f64,
    /// How often two of its labels differ; nothing if there is but one.
    noise: f64,
    /// The entropy of ȳ.
    entropy: f64,
}

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
    logs: Vec<f64>,
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
        let mut means = vec![0.0; ballots.len() * classes];
        let examples = ballots.examples().iter().filter_map(|&row| table.votes(row as usize));
        let tell = |(votes, mean): (Votes<'_>, &mut [f64])| {
            votes.mean_into(mean);
            let (labels, square) = (votes.k() as f64, dot(mean, mean));
            let noise = if labels >= 2.0 { (1.0 - square) * labels / (labels - 1.0) } else { 0.0 };
            Told { labels, square, noise, entropy: loss.entropy(mean) }
        };
        let told = examples.zip(means.chunks_exact_mut(classes)).map(tell).collect();
        Self { table, ballots: ballots.of_rows(), totals, told, means }
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
        let weighted = |(row, totals): (usize, &[f64; 2])| totals.map(|total| self.weight(row) * total);
        let weighted: Vec<[f64; 2]> = self.totals.iter().enumerate().map(weighted).collect();
        let of_tree = |tree: usize| {
            let range = trees.leaves_of(tree);
            let mut sums = vec![[0.0; 2]; range.len()];
            for (&leaf, own) in leaves.of_rows(tree).iter().zip(&weighted) {
                let sums = &mut sums[leaf as usize - range.start];
                *sums = [sums[0] + own[0], sums[1] + own[1]];
            }
            sums
        };
        let sums: Vec<Vec<[f64; 2]>> = (0..trees.count()).into_par_iter().map(of_tree).collect();
        sums.concat()
    }

    /// A row's loss, the entropy of its labels and that of its prediction.
    pub(super) fn own(&self, row: usize) -> [f64; 3] {
        let [total, served] = self.totals[row];
        [total, self.told[self.ballots[row] as usize].entropy, served]
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
            if self.told[self.ballots[row] as usize].labels >= 2.0 {
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
        let Scratch { runs, points, logs, .. } = scratch;
        points.clear();
        points.resize(2 * c, 0.0);
        let (centre, point) = points.split_at_mut(c);
        let weight: f64 = runs.iter().map(|(_, [weight, _])| weight).sum();
        let mean = |votes: usize| &self.means[votes * c..][..c];
        let (mut squares, mut pair_weight, mut pair_squares, mut noise) = (0.0, 0.0, 0.0, 0.0);
        let mut entropies = 0.0;
        let (mut fewest, mut most) = (f64::INFINITY, 0.0);
        for (votes, [w, w2]) in runs.iter().map(|&(votes, sums)| (votes as usize, sums)) {
            let told = self.told[votes];
            squares += w * told.square;
            (fewest, most) = (told.labels.min(fewest), told.labels.max(most));
            if told.labels >= 2.0 {
                pair_weight += w;
                pair_squares += w2;
                noise += w * told.noise;
                entropies += w * told.entropy;
            }
            centre.iter_mut().zip(mean(votes)).for_each(|(sum, y)| *sum += w * y);
        }
        centre.iter_mut().for_each(|sum| *sum /= weight);
        let ceiling = loss.entropy(centre);
        let effective = if pair_weight > 0.0 { pair_weight * pair_weight / pair_squares } else { 0.0 };
        let identified = pair_weight >= weight / 2.0 || effective >= SPARSE as f64 - 1e-6;
        let (noise, square) = (if pair_weight > 0.0 { noise / pair_weight } else { 0.0 }, dot(centre, centre));
        let variance = (1.0 - square - noise).max(0.0);
        let spread = squares / weight - square;
        let common = if spread > 0.0 { (variance / spread).min(1.0).sqrt() } else { 0.0 };
        let as_many = fewest == most && estimator == Estimator::Shrink;
        let by_logs =
            loss.floor().filter(|_| as_many).and_then(|floor| self.by_logs(floor, centre, common, runs, logs));
        let each = || {
            let mut irreducible = 0.0;
            for (votes, w) in runs.iter().map(|&(votes, [w, _])| (votes as usize, w)) {
                let entropy = if estimator == Estimator::Shrink {
                    let factor = match fewest == most {
                        true => common,
                        false if variance > 0.0 => (variance / (variance + noise / self.told[votes].labels)).sqrt(),
                        false => 0.0,
                    };
                    for ((p, y), centre) in point.iter_mut().zip(mean(votes)).zip(centre.iter()) {
                        *p = centre + factor * (y - centre);
                    }
                    loss.entropy(point)
                } else {
                    self.told[votes].entropy
                };
                irreducible += w * entropy;
            }
            irreducible
        };
        let irreducible = by_logs.unwrap_or_else(each);
        let (total, irreducible, served) = (total / weight, irreducible / weight, served / weight);
        let means = if fewest >= 2.0 {
            Means { weight, entropy: entropies / weight, paired: [total, served], served }
        } else {
            self.means(rows)
        };
        if !identified {
            return ([total, certain_loss(loss, centre), ceiling], means);
        }
        let irreducible = if estimator == Estimator::Shrink { irreducible.min(ceiling) } else { irreducible };
        ([total, irreducible, irreducible], means)
    }

    /// The cross-entropies of shrunk points, weighted and added up, by fewer logarithms than one a class and run: if all rows have
    /// k labels, a class has at most k + 1 different probabilities. `None` where that is not fewer, or where the floor matters.
    fn by_logs(
        &self,
        floor: f64,
        centre: &[f64],
        factor: f64,
        runs: &[(u32, [f64; 2])],
        weights: &mut Vec<f64>,
    ) -> Option<f64> {
        let k = self.votes(runs.first()?.0).k() as usize;
        let never = centre.iter().filter(|p| **p == 0.0).count();
        let scale = 1.0 - never as f64 * floor;
        let least = centre.iter().copied().filter(|p| *p > 0.0).fold(1.0, f64::min) * (1.0 - factor);
        if k >= runs.len() || factor == 1.0 || least * scale < floor {
            return None;
        }
        weights.clear();
        weights.resize(centre.len() * (k + 1), 0.0);
        let mut all = 0.0;
        for &(votes, [weight, _]) in runs {
            all += weight;
            let counts = self.votes(votes).counts().iter();
            counts.zip(weights.chunks_exact_mut(k + 1)).for_each(|(&n, weights)| weights[n as usize] += weight);
        }
        let mut sum = all * scale.ln();
        for (centre, weights) in centre.iter().zip(weights.chunks_exact(k + 1)).filter(|(p, _)| **p > 0.0) {
            for (n, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
                let p = centre + factor * (n as f64 / k as f64 - centre);
                sum += weight * p * p.ln();
            }
        }
        Some(-sum)
    }

    /// A distinct set of votes.
    fn votes(&self, ballot: u32) -> Votes<'a> {
        let example = self.table.ballots().examples()[ballot as usize];
        self.table.votes(example as usize).unwrap_or(Votes::new(&[]))
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
        let probs = (0..n).flat_map(|i| [0.2 + f64::from(i % 7) * 0.1, 0.8 - f64::from(i % 7) * 0.1]).collect();
        for labels in [|i: u32| [i % 4, 4 - i % 4], |i: u32| [1 + i % 3, i % 5], |i: u32| [1, u32::from(i == 7)]] {
            let votes = (0..n).flat_map(labels).collect();
            let table = Table::new(["a", "b"], Vec::clone(&probs)).and_then(|table| table.with_votes(votes)).unwrap();
            let table = table.with_weights((0..n).map(|i| 1.0 + f64::from(i % 3)).collect()).unwrap();
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
}
