//! The losses of very many small mixtures of the same rows: the leaves of a forest.
//!
//! What depends on a row alone is worked out once; a leaf only adds it up, and evaluates the entropy of its shrunk points. Where these
//! points are does not depend on the loss: if all items have as many labels, it is kept. The numbers are those of
//! [`Decomposition`](super::Decomposition), up to rounding, but for one thing. Where chance makes a variance negative, a cell has none,
//! and the entropy of its mean for its irreducible loss: no mixture has more. Leaves are small, so that this is frequent, and only
//! averages of many of them are used: cut off on one side, these would be too low. A leaf's loss is then as much above the entropy of
//! its mean as a variance of the other sign would put it below. For the Brier loss that is the estimate without bias, unless the
//! variance is more negative than that of the labels is positive.

use wide::f64x4;

use super::{Slopes, VoteGroups, certain_loss};
use crate::loss::{Loss, SelfEstimate};
use crate::parallel::prelude::*;
use crate::partition::SPARSE_BELOW_ROWS;
use crate::partition::forest::{LeafStatistics, PerVoteVector, Run, Shrunk, Sums, Trees, unweighted};
use crate::table::Table;
use crate::task::Estimator;

/// What is known of each row of a table, and of each distinct set of votes: rows that share their votes share all but the loss
/// of their prediction.
pub(crate) struct PerRow<'a> {
    table: &'a Table,
    told: PerVoteVector<'a>,
    totals: Vec<Totals>,
    /// The entropy of each distinct set of votes.
    entropies: Vec<f64>,
    /// For the cross-entropy, if all items have k labels: the number of each count of each class, k + 1 to a class.
    slots: Vec<u32>,
}

/// The most slots: beyond it every leaf would spend its time on clearing them.
const MOST_SLOTS: f64 = 4096.0;

/// The loss of weak predictions and what they are in for: entropy, loss if they are right, if they are wrong.
type Totals = [f64; 4];

fn self_estimate_of(&[_, entropy, right, wrong]: &Totals) -> SelfEstimate {
    SelfEstimate { entropy, right, wrong }
}

/// Room that one leaf leaves to the next.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) groups: VoteGroups,
    runs: Vec<Run>,
    added: Vec<f64>,
    room: Room,
}

#[derive(Debug, Default)]
struct Room {
    point: Vec<f64>,
    weights: Vec<f64>,
    logs: Vec<f64>,
}

impl<'a> PerRow<'a> {
    pub(crate) fn of(table: &'a Table, loss: &Loss) -> Self {
        let (told, distinct, classes) = (PerVoteVector::of(table), table.distinct_votes(), table.classes().len());
        let total = |(point, room): &mut (Vec<f64>, Vec<f64>), row: usize| {
            table.dist_into(row, point);
            table.votes(row).map_or([0.0; 4], |votes| {
                let (total, SelfEstimate { entropy, right, wrong }) =
                    loss.of_votes_with_self_estimate(votes, point, room);
                [total, entropy, right, wrong]
            })
        };
        let room = || (vec![0.0; classes], vec![0.0; classes]);
        let totals = (0..table.rows()).into_par_iter().with_min_len(1 << 10).map_init(room, total).collect();
        let entropies = (0..distinct.len() as u32).map(|votes| loss.entropy(told.mean(votes))).collect();
        let mut slots = Vec::new();
        // Only if there can be fewer of them than sets of votes.
        let few = |k: &f64| *k < distinct.len() as f64 && (k + 1.0) * classes as f64 <= MOST_SLOTS;
        if let Some(k) = told.even.filter(|_| loss.floor().is_some()).filter(few) {
            let numbered = distinct.iter().flat_map(|votes| (0..).zip(votes.counts()));
            slots.extend(numbered.map(|(class, n): (u32, _)| class * (k as u32 + 1) + n));
        }
        Self { table, told, totals, entropies, slots }
    }

    pub(super) fn weight(&self, row: usize) -> f64 {
        self.table.weight(row)
    }

    /// What rows with two labels tell of their leaves: their weight; times it, the entropy of their labels, the loss of their prediction
    /// and what it is in for.
    pub(super) fn of_pairs(&self) -> Vec<[f64; 6]> {
        let of_row = |row: usize| {
            let votes = self.told.index_of_row[row];
            let [total, entropy, right, wrong] = self.totals[row];
            let own = [1.0, self.entropies[votes as usize], total, entropy, right, wrong];
            if self.told.is_paired(votes) { own.map(|x| self.weight(row) * x) } else { [0.0; 6] }
        };
        (0..self.table.rows()).into_par_iter().with_min_len(1 << 12).map(of_row).collect()
    }

    /// The mean loss of the predictions in each leaf, freed from what they have for their own part.
    pub(crate) fn freed(&self, slopes: Slopes, trees: &Trees, leaves: &LeafStatistics) -> Vec<f64> {
        // What they have is linear in the share of errors, which all rows of a leaf have in common.
        let of_row = |row: usize| {
            let [if_right, more] = slopes.parts(self.self_estimate(row));
            [self.totals[row][0] - if_right, more].map(|x| self.weight(row) * x)
        };
        let of_rows: Vec<[f64; 2]> = (0..self.table.rows()).into_par_iter().with_min_len(1 << 12).map(of_row).collect();
        leaves.sum_over_leaves(trees, trees.count(), &of_rows, |leaf, [if_right, more]| {
            (if_right - leaves.error_share(leaf) * more) / leaves.weight(leaf)
        })
    }

    /// A row's loss, the entropy of its labels and what its prediction is in for.
    pub(super) fn own(&self, row: usize) -> (f64, f64, SelfEstimate) {
        (self.totals[row][0], self.entropies[self.told.index_of_row[row] as usize], self.self_estimate(row))
    }

    /// What a row's prediction is in for.
    pub(crate) fn self_estimate(&self, row: usize) -> SelfEstimate {
        self_estimate_of(&self.totals[row])
    }

    /// What some rows' predictions are in for on average, and the share of labels that are not their top class.
    pub(crate) fn mean_self_estimate(&self, rows: &[u32]) -> (SelfEstimate, f64) {
        let (mut weight, mut wrong, mut sums) = (0.0, 0.0, Totals::default());
        for row in rows.iter().map(|&row| row as usize) {
            weight += self.weight(row);
            wrong += self.weight(row) * self.table.top_error(row);
            sums.iter_mut().zip(self.totals[row]).for_each(|(sum, own)| *sum += self.weight(row) * own);
        }
        (self_estimate_of(&sums.map(|sum| sum / weight)), wrong / weight)
    }

    /// The total loss of some rows and both ends of their irreducible loss.
    ///
    /// For `shrink` and `plugin` only.
    pub(crate) fn losses(&self, rows: &[u32], loss: &Loss, estimator: Estimator, scratch: &mut Scratch) -> [f64; 3] {
        let (mut weight, mut total) = (0.0, 0.0);
        for row in rows.iter().map(|&row| row as usize) {
            weight += self.weight(row);
            total += self.weight(row) * self.totals[row][0];
        }
        let Scratch { runs, added, room, .. } = scratch;
        self.told.find_runs(rows, runs);
        let [low, high] = self.of_runs(runs.iter().copied(), None, loss, estimator, added, room);
        [total / weight, low, high]
    }

    /// Both ends of the irreducible loss of a leaf.
    pub(crate) fn irreducible(
        &self,
        leaves: &LeafStatistics,
        leaf: usize,
        loss: &Loss,
        estimator: Estimator,
        scratch: &mut Scratch,
    ) -> [f64; 2] {
        let (shrunk, Scratch { runs, added, room, .. }) = (leaves.shrunk(leaf), scratch);
        match leaves.vote_counts(leaf) {
            Some(kept) => self.of_runs(kept.iter().map(unweighted), shrunk, loss, estimator, added, room),
            None => {
                self.told.find_runs(leaves.rows_of(leaf), runs);
                self.of_runs(runs.iter().copied(), shrunk, loss, estimator, added, room)
            }
        }
    }

    /// Both ends of the irreducible loss of rows; their votes tell `shrunk` without a loss, if that is known.
    fn of_runs(
        &self,
        runs: impl ExactSizeIterator<Item = Run> + Clone,
        shrunk: Option<Shrunk<'_>>,
        loss: &Loss,
        estimator: Estimator,
        added: &mut Vec<f64>,
        room: &mut Room,
    ) -> [f64; 2] {
        if let Some(shrunk) = &shrunk {
            return [self.of_shrunk(runs, shrunk, loss, estimator, room); 2];
        }
        let added = self.told.add_up(runs.clone(), added);
        let Sums { weight, pair_weight, noise, variance, centre, .. } = added;
        let labels = |votes: u32| self.told.labels(votes);
        let (fewest, most) = runs.clone().fold((f64::INFINITY, 0.0_f64), |(few, most), (votes, _)| {
            (few.min(labels(votes)), most.max(labels(votes)))
        });
        if fewest == most && fewest >= 2.0 {
            let shrunk = Shrunk { weight, factor: added.factor(), centre };
            return [self.of_shrunk(runs, &shrunk, loss, estimator, room); 2];
        }
        let identified = pair_weight >= weight / 2.0
            || pair_weight > 0.0 && {
                let pairs = runs.clone().filter(|(votes, _)| self.told.is_paired(*votes));
                let squares: f64 = pairs.map(|(_, [_, squares])| squares).sum();
                pair_weight * pair_weight >= squares * (SPARSE_BELOW_ROWS as f64 - 1e-6)
            };
        if !identified {
            return [certain_loss(loss, centre), loss.entropy(centre)];
        }
        let irreducible = if estimator == Estimator::Shrink {
            let size = variance.abs();
            let factor = |votes: u32| if size > 0.0 { (size / (size + noise / labels(votes))).sqrt() } else { 0.0 };
            let points = self.entropy_of_points(runs, centre, factor, loss, &mut room.point);
            let ceiling = loss.entropy(centre);
            on_its_side(variance, (points / weight).min(ceiling), || ceiling)
        } else {
            self.entropy_of(runs) / weight
        };
        [irreducible; 2]
    }

    /// The irreducible loss of rows that have as many labels, two or more.
    fn of_shrunk(
        &self,
        runs: impl ExactSizeIterator<Item = Run> + Clone,
        shrunk: &Shrunk<'_>,
        loss: &Loss,
        estimator: Estimator,
        room: &mut Room,
    ) -> f64 {
        let Shrunk { weight, centre, .. } = *shrunk;
        if estimator == Estimator::Plugin {
            return self.entropy_of(runs) / weight;
        }
        // Points that all shrink alike have the mean of the votes, whose entropy is then above theirs.
        let near = Shrunk { factor: shrunk.factor.abs(), ..*shrunk };
        let room_of_logs = (&mut room.weights, &mut room.logs);
        let by_logs = loss.floor().and_then(|floor| self.by_logs(floor, &near, runs.clone(), room_of_logs));
        let points =
            by_logs.unwrap_or_else(|| self.entropy_of_points(runs, centre, |_| near.factor, loss, &mut room.point));
        on_its_side(shrunk.factor, points / weight, || loss.entropy(centre))
    }

    /// The entropies of votes, weighted and added up.
    fn entropy_of(&self, runs: impl Iterator<Item = Run>) -> f64 {
        runs.map(|(votes, [weight, _])| weight * self.entropies[votes as usize]).sum()
    }

    /// The entropies of shrunk points, weighted and added up.
    fn entropy_of_points(
        &self,
        runs: impl Iterator<Item = Run>,
        centre: &[f64],
        factor: impl Fn(u32) -> f64,
        loss: &Loss,
        point: &mut Vec<f64>,
    ) -> f64 {
        point.resize(centre.len(), 0.0);
        let mut sum = 0.0;
        for (votes, [weight, _]) in runs {
            let factor = factor(votes);
            for ((p, y), centre) in point.iter_mut().zip(self.told.mean(votes)).zip(centre) {
                *p = centre + factor * (y - centre);
            }
            sum += weight * loss.entropy(point);
        }
        sum
    }

    /// The cross-entropies of shrunk points, weighted and added up, by fewer logarithms than one per class and run: if all rows have
    /// k labels, a class has at most k + 1 different probabilities. `None` where that is not fewer, or where the floor matters.
    fn by_logs(
        &self,
        floor: f64,
        &Shrunk { weight, factor, centre }: &Shrunk<'_>,
        runs: impl ExactSizeIterator<Item = Run>,
        (weights, points): (&mut Vec<f64>, &mut Vec<f64>),
    ) -> Option<f64> {
        let (c, k) = (centre.len(), self.told.even? as usize);
        let never = centre.iter().filter(|p| **p == 0.0).count();
        let scale = 1.0 - never as f64 * floor;
        let least = centre.iter().copied().filter(|p| *p > 0.0).fold(1.0, f64::min) * (1.0 - factor);
        if self.slots.is_empty() || k >= runs.len() || factor == 1.0 || least * scale < floor {
            return None;
        }
        // Four logarithms at a time; that of one is nothing.
        let places = (c * (k + 1)).next_multiple_of(4);
        weights.clear();
        weights.resize(places, 0.0);
        points.clear();
        points.resize(places, 1.0);
        for (votes, [weight, _]) in runs {
            self.slots[votes as usize * c..][..c].iter().for_each(|&slot| weights[slot as usize] += weight);
        }
        let step = factor / k as f64;
        for (centre, points) in centre.iter().zip(points.chunks_exact_mut(k + 1)).filter(|(p, _)| **p > 0.0) {
            let least = centre * (1.0 - factor);
            points.iter_mut().zip(0_i32..).for_each(|(point, n)| *point = least + f64::from(n) * step);
        }
        let mut sum = f64x4::ZERO;
        for (&weight, &p) in weights.as_chunks::<4>().0.iter().zip(points.as_chunks::<4>().0) {
            let p = f64x4::from(p);
            sum += f64x4::from(weight) * p * p.ln();
        }
        let mut sum = sum.reduce_add();
        if never > 0 {
            sum += weight * scale.ln();
        }
        Some(-sum)
    }
}

/// The entropy of points that lie as far from their mean as a variance of this size puts them: below the mean's own, or as much above
/// it if the variance is negative.
fn on_its_side(variance: f64, points: f64, ceiling: impl FnOnce() -> f64) -> f64 {
    if variance < 0.0 { 2.0 * ceiling() - points } else { points }
}

#[cfg(test)]
mod tests {
    use pointsman_testing::scattered as share;

    use super::*;
    use crate::estimate::{Decomposition, RowLosses};
    use crate::partition::Partition;
    use crate::router::{Mixture, Router};

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
        let mut cut_off = 0;
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
                        let (none, groups) = (RowLosses::default(), &mut scratch.groups);
                        let d = Decomposition::fit(mixture, &loss, estimator, None, &none, groups).unwrap();
                        let mut expected = [d.total, d.irreducible_low, d.irreducible_high];
                        let ceiling = loss.entropy(&d.centroid);
                        let is_cut_off = (d.irreducible_low - ceiling).abs() < 1e-12 && found[1] > ceiling;
                        if estimator == Estimator::Shrink && is_cut_off {
                            // Cut off in a cell, not in a leaf.
                            cut_off += 1;
                            assert_eq!(found[1], found[2]);
                            expected[1..].copy_from_slice(&found[1..]);
                        }
                        for (found, expected) in found.into_iter().zip(expected) {
                            assert!((found - expected).abs() < 1e-9, "{loss} {estimator}: {found} and {expected}");
                        }
                    }
                }
            }
        }
        assert!(cut_off > 0);
    }

    #[test]
    fn the_brier_loss_of_a_leaf_has_no_bias() {
        // Rows of four labels: two of a row differ by chance more often than two of any; less often; never.
        let kinds: [[[u32; 2]; 6]; 3] = [
            [[2, 2], [1, 3], [3, 1], [2, 2], [1, 3], [3, 1]],
            [[2, 2], [4, 0], [2, 2], [0, 4], [1, 3], [1, 3]],
            [[4, 0], [4, 0], [0, 4], [0, 4], [4, 0], [0, 4]],
        ];
        let loss = Loss::brier();
        let mut above = 0;
        for votes in kinds {
            // How often two different labels of a row differ.
            let differ = |&[a, b]: &[u32; 2]| f64::from(2 * a * b) / f64::from((a + b) * (a + b - 1));
            let expected = votes.iter().map(differ).sum::<f64>() / 6.0;
            let table = Table::new(["a", "b"], vec![0.5; 12]).and_then(|t| t.with_votes(votes.concat())).unwrap();
            let per_row = PerRow::of(&table, &loss);
            let [_, low, high] = per_row.losses(&[0, 1, 2, 3, 4, 5], &loss, Estimator::Shrink, &mut Scratch::default());
            assert_eq!(low, high);
            assert!((low - expected).abs() < 1e-12, "{low} and {expected}");
            above += u32::from(low > 0.5);
        }
        assert_eq!(above, 1);
    }

    #[test]
    fn what_leaves_keep_makes_no_difference() {
        let n = 400_u32;
        let probs: Vec<f64> = (0..n).map(|i| 0.1 + 0.7 * share(i)).flat_map(|p| [p, 0.9 - p, 0.1]).collect();
        // Votes of few labels and many kinds; that many rows share, that few do; more of some rows than of others; mostly one.
        let labels = [
            |i: u32| [i % 3, i / 3 % 3 % (3 - i % 3), 2 - i % 3 - i / 3 % 3 % (3 - i % 3)],
            |i: u32| [i % 4, 4 - i % 4, 1],
            |i: u32| [i % 19, 40 - i % 19 - i % 7, i % 7],
            |i: u32| [1 + i % 3, 1, 0],
            |i: u32| [i % 2, 1 - i % 2, u32::from(i.is_multiple_of(5))],
        ];
        for (labels, is_weighted) in
            labels.into_iter().flat_map(|labels| [false, true].map(|weighted| (labels, weighted)))
        {
            let table = Table::new(["a", "b", "c"], Vec::clone(&probs));
            let mut table = table.and_then(|table| table.with_votes((0..n).flat_map(labels).collect())).unwrap();
            if is_weighted {
                table = table.with_weights((0..n).map(|i| f64::from(1 + i % 3)).collect()).unwrap();
            }
            let router = Router::calibrate(&table, &Partition::forest(5)).unwrap();
            let ((forest, _), leaves) = router.cells().forest().zip(router.leaves()).unwrap();
            let k: Vec<u32> = (0..n).map(|i| labels(i).iter().sum()).collect();
            let is_even = k.iter().all(|other| *other == k[0]) && k[0] >= 2;
            let distinct = (0..n).map(labels).collect::<std::collections::BTreeSet<_>>().len();
            assert_eq!(leaves.vote_counts(0).is_some(), distinct < 10 && !is_weighted);
            for loss in [Loss::brier(), Loss::cross_entropy(), Loss::zero_one()] {
                for estimator in [Estimator::Shrink, Estimator::Plugin] {
                    let per_row = PerRow::of(router.rows(), &loss);
                    let mut scratch = Scratch::default();
                    let (none, some) = (Slopes::default(), Slopes([0.7, -0.4]));
                    let [totals, freed] = [none, some].map(|slopes| per_row.freed(slopes, forest.trees(), leaves));
                    for leaf in 0..leaves.leaves() {
                        assert_eq!(leaves.shrunk(leaf).is_some(), is_even);
                        let [low, high] = per_row.irreducible(leaves, leaf, &loss, estimator, &mut scratch);
                        let rows = leaves.rows_of(leaf);
                        let expected = per_row.losses(rows, &loss, estimator, &mut scratch);
                        let (account, error) = per_row.mean_self_estimate(rows);
                        let expected = expected.into_iter().chain([expected[0] - some.of(account, error)]);
                        for (found, expected) in [totals[leaf], low, high, freed[leaf]].into_iter().zip(expected) {
                            assert!(
                                (found - expected).abs() < 1e-12 * (1.0 + expected.abs()),
                                "{loss}: {found} and {expected}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn what_would_take_more_room_than_rows_is_not_kept() {
        let (n, classes) = (100_usize, 300);
        let names: Vec<String> = (0..classes).map(|class| class.to_string()).collect();
        let row =
            |i: usize| (0..classes).map(move |class| if class == i % 7 { 0.5 } else { 0.5 / (classes - 1) as f64 });
        let votes = (0..n).flat_map(|i| (0..classes).map(move |class| if class == i % 5 { 2 } else { 0 })).collect();
        let table =
            Table::new(names, (0..n).flat_map(row).collect()).and_then(|table| table.with_votes(votes)).unwrap();
        let router = Router::calibrate(&table, &Partition::forest(3)).unwrap();
        assert!(router.leaves().unwrap().shrunk(0).is_none());
        let task = crate::Task::new(Loss::brier()).route("expert", crate::Oracle::bayes(), 0.1).unwrap();
        assert!(router.policy(&task).is_ok());
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
        let Scratch { runs, room: Room { weights, logs, .. }, .. } = &mut scratch;
        per_row.told.find_runs(&rows, runs);
        let runs = runs.iter().copied();
        let (centre, factor) = ([0.5, 0.5, 0.0], 0.7);
        let weight = f64::from(n);
        let shrunk = Shrunk { weight, factor, centre: &centre };
        let found = per_row.by_logs(1e-6, &shrunk, runs.clone(), (weights, logs)).unwrap();
        let expected: f64 = runs
            .clone()
            .map(|(votes, [weight, _])| {
                let mean = per_row.told.mean(votes);
                let point: Vec<f64> = mean.iter().zip(centre).map(|(y, p)| p + factor * (y - p)).collect();
                weight * loss.entropy(&point)
            })
            .sum();
        assert!((found - expected).abs() < 1e-9 * expected, "{found} {expected}");
        // Points at the floor, or on the border, are left to the careful way.
        assert!(per_row.by_logs(0.2, &shrunk, runs.clone(), (weights, logs)).is_none());
        let border = Shrunk { factor: 1.0, ..shrunk };
        assert!(per_row.by_logs(1e-6, &border, runs, (weights, logs)).is_none());
    }
}
