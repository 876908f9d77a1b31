//! Losses of the leaves of a forest: very many small groups of the same rows.
//!
//! Values that depend on one row or on one distinct vote vector are computed once; a leaf sums them and evaluates the entropy of its
//! shrunk points. Where these points lie does not depend on the loss, so it is kept if all items have equally many labels.
//!
//! The estimates equal those of [`Decomposition`](super::Decomposition) up to rounding, with one exception. In a cell a negative variance
//! estimate is clamped to zero, which gives the entropy of the mean: no distribution of labels has a larger irreducible loss. Leaves are
//! small, so negative estimates are frequent, and queries use only averages over many leaves. Clamping would bias these averages downwards.
//! **The irreducible loss of a leaf is therefore not clamped**: with a negative variance it lies as far above the entropy of the mean as a
//! positive variance of that size would put it below. For the Brier loss and equally many labels per item this estimate is unbiased, unless
//! the size of the variance exceeds the spread of the snapshot means, where the factor of the shrunk points is capped at one.

use super::vote_entropies::{OwnIrreducible, PointBuffers, VoteEntropies};
use super::{BorrowedLosses, Slopes, VoteGroups};
use crate::loss::{Loss, SelfEstimate};
use crate::parallel::prelude::*;
use crate::partition::forest::{LeafStatistics, TreeLeaves, VoteRun};
use crate::table::Table;
use crate::task::Estimator;

/// Estimates the losses of groups of a table's rows under one loss; for `shrink` and `plugin` only.
pub(crate) struct LeafEstimator<'a> {
    table: &'a Table,
    predictions: Vec<PredictionLoss>,
    vote_entropies: VoteEntropies<'a>,
    borrowed: Option<&'a BorrowedLosses>,
}

/// The loss of a row's prediction by the row's labels, and its self-estimate.
#[derive(Debug, Clone, Copy, Default)]
struct PredictionLoss {
    total: f64,
    self_estimate: SelfEstimate,
}

/// The fewest rows per parallel task.
const MIN_ROWS_PER_TASK: usize = 1 << 10;

/// Buffers reused across leaves.
#[derive(Debug, Default)]
pub(crate) struct LeafBuffers {
    pub(crate) groups: VoteGroups,
    pub(super) oracles: Vec<[f64; 2]>,
    runs: Vec<VoteRun>,
    points: PointBuffers,
}

impl<'a> LeafEstimator<'a> {
    pub(crate) fn new(
        table: &'a Table,
        loss: &'a Loss,
        estimator: Estimator,
        borrowed: Option<&'a BorrowedLosses>,
    ) -> Self {
        let (predictions, vote_entropies) =
            (prediction_losses(table, loss), VoteEntropies::new(table, loss, estimator));
        Self { table, predictions, vote_entropies, borrowed }
    }

    pub(crate) fn weight(&self, row: usize) -> f64 {
        self.table.weight(row)
    }

    /// The loss of a row's prediction by the row's labels.
    pub(super) fn total_of_row(&self, row: usize) -> f64 {
        self.predictions[row].total
    }

    /// The entropy of the mean of a row's labels.
    pub(super) fn label_entropy_of_row(&self, row: usize) -> f64 {
        self.vote_entropies.of_row(row)
    }

    /// Whether a row has two labels or more.
    pub(super) fn is_paired(&self, row: usize) -> bool {
        let vote_vectors = &self.vote_entropies.vote_vectors;
        vote_vectors.is_paired(vote_vectors.index_of_row[row])
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.table.rows()
    }

    /// The mean loss of the predictions in each leaf, without the part that a query's own prediction contributes.
    pub(crate) fn totals_without_own_part(&self, slopes: Slopes, statistics: &LeafStatistics) -> Vec<f64> {
        // That part is linear in the share of errors, which all rows of a leaf have in common.
        let of_row = |row: usize| {
            let [without_errors, per_error] = slopes.parts(self.self_estimate(row));
            [self.predictions[row].total - without_errors, per_error].map(|x| self.weight(row) * x)
        };
        let of_rows: Vec<[f64; 2]> =
            (0..self.rows()).into_par_iter().with_min_len(MIN_ROWS_PER_TASK).map(of_row).collect();
        let trees = statistics.rows().trees();
        statistics.rows().sum_over_leaves(trees, &of_rows, |leaf, [rest, per_error]| {
            (rest - statistics.error_share(leaf) * per_error) / statistics.weight(leaf)
        })
    }

    /// The self-estimate of a row's prediction.
    pub(crate) fn self_estimate(&self, row: usize) -> SelfEstimate {
        self.predictions[row].self_estimate
    }

    /// The mean self-estimate of some rows' predictions, and the share of labels that are not their top class.
    pub(crate) fn mean_self_estimate(&self, rows: &[u32]) -> (SelfEstimate, f64) {
        let (mut weight, mut errors, mut sums) = (0.0, 0.0, SelfEstimate::default());
        for row in rows.iter().map(|&row| row as usize) {
            let (own, SelfEstimate { entropy, right, wrong }) = (self.weight(row), self.self_estimate(row));
            weight += own;
            errors += own * self.table.top_error(row);
            sums.entropy += own * entropy;
            sums.right += own * right;
            sums.wrong += own * wrong;
        }
        let SelfEstimate { entropy, right, wrong } = sums;
        let mean = SelfEstimate { entropy: entropy / weight, right: right / weight, wrong: wrong / weight };
        (mean, errors / weight)
    }

    /// The total loss of some rows, and both ends of their irreducible loss. What is `borrowed` may leave out rows that these decide.
    pub(crate) fn losses(
        &self,
        rows: &[u32],
        borrowed: Option<&BorrowedLosses>,
        buffers: &mut LeafBuffers,
    ) -> (f64, [f64; 2]) {
        let (mut weight, mut total) = (0.0, 0.0);
        for row in rows.iter().map(|&row| row as usize) {
            weight += self.weight(row);
            total += self.weight(row) * self.predictions[row].total;
        }
        let LeafBuffers { runs, points, .. } = buffers;
        self.vote_entropies.vote_vectors.find_runs(rows, runs);
        (total / weight, self.irreducible_of_runs(rows, borrowed, runs, points))
    }

    /// Both ends of the irreducible loss of a leaf of a tree.
    pub(crate) fn irreducible(
        &self,
        statistics: &LeafStatistics,
        tree: &TreeLeaves<'_>,
        leaf: usize,
        buffers: &mut LeafBuffers,
    ) -> [f64; 2] {
        let (shrunk, LeafBuffers { runs, points, .. }) = (statistics.shrunk(leaf), buffers);
        if self.borrowed.is_some() {
            self.vote_entropies.vote_vectors.find_runs(tree.rows_of(leaf), runs);
            return self.irreducible_of_runs(tree.rows_of(leaf), self.borrowed, runs, points);
        }
        match statistics.vote_counts(leaf) {
            Some(counts) => self.vote_entropies.of_runs(counts.iter().map(VoteRun::from_count), shrunk, points).ends(),
            None => {
                self.vote_entropies.vote_vectors.find_runs(tree.rows_of(leaf), runs);
                self.vote_entropies.of_runs(runs.iter().copied(), shrunk, points).ends()
            }
        }
    }

    /// Both ends of the irreducible loss of rows in runs of equal votes. If too few rows have several labels, it is borrowed.
    fn irreducible_of_runs(
        &self,
        rows: &[u32],
        borrowed: Option<&BorrowedLosses>,
        runs: &mut Vec<VoteRun>,
        points: &mut PointBuffers,
    ) -> [f64; 2] {
        let borrowed = match (self.vote_entropies.of_runs(runs.iter().copied(), None, points), borrowed) {
            (OwnIrreducible::Bounded(_), Some(borrowed)) => borrowed,
            (found, _) => return found.ends(),
        };
        runs.retain(|run| self.vote_entropies.vote_vectors.is_paired(run.votes));
        let (weight, squares) = runs.iter().fold((0.0, 0.0), |(w, s), run| (w + run.weight, s + run.squares));
        let own = (weight > 0.0).then(|| {
            let [known, _] = self.vote_entropies.of_runs(runs.iter().copied(), None, points).ends();
            (known, weight * weight / squares)
        });
        [borrowed.mix(self.table, rows.iter().map(|&row| row as usize), own); 2]
    }
}

/// The losses of all predictions of a table by their rows' labels; zero for rows without labels.
fn prediction_losses(table: &Table, loss: &Loss) -> Vec<PredictionLoss> {
    let classes = table.classes().len();
    let of_row = |(prediction, buffer): &mut (Vec<f64>, Vec<f64>), row: usize| {
        table.dist_into(row, prediction);
        table.votes(row).map_or_else(PredictionLoss::default, |votes| {
            let (total, self_estimate) = loss.of_votes_with_self_estimate(votes, prediction, buffer);
            PredictionLoss { total, self_estimate }
        })
    };
    let buffers = || (vec![0.0; classes], vec![0.0; classes]);
    (0..table.rows()).into_par_iter().with_min_len(MIN_ROWS_PER_TASK).map_init(buffers, of_row).collect()
}

#[cfg(test)]
mod tests {
    use pointsman_testing::scattered as share;

    use super::*;
    use crate::estimate::{Decomposition, RowLosses};
    use crate::partition::Partition;
    use crate::router::{Mixture, Router};

    #[test]
    fn leaf_losses_equal_those_of_decompositions() {
        let n = 60_u32;
        let probs: Vec<f64> = (0..n).map(|i| 0.1 + f64::from(i % 7) * 0.1).flat_map(|p| [p, 0.9 - p, 0.1]).collect();
        // Equally many labels, of two classes and of all three; unequal numbers; mostly one; too many for slots.
        let labels = [
            |i: u32| [i % 4, 4 - i % 4, 0],
            |i: u32| [i % 3, 3 - i % 3, 1],
            |i: u32| [1 + i % 3, i % 5, i % 2],
            |i: u32| [1, u32::from(i == 7), 0],
            |i: u32| [u32::MAX - i, i, u32::MAX],
        ];
        let mut clamped = 0;
        for (labels, is_weighted) in labels.into_iter().flat_map(|labels| [(labels, false), (labels, true)]) {
            let votes = (0..n).flat_map(labels).collect();
            let table = Table::new(["a", "b", "c"], Vec::clone(&probs)).and_then(|table| table.with_votes(votes));
            let weights = (0..n).map(|i| if is_weighted { 1.0 + f64::from(i % 3) } else { 1.0 }).collect();
            let table = table.and_then(|table| table.with_weights(weights)).unwrap();
            for loss in [Loss::brier(), Loss::cross_entropy(), Loss::zero_one()] {
                for estimator in [Estimator::Shrink, Estimator::Plugin] {
                    let mut buffers = LeafBuffers::default();
                    let leaf_estimator = LeafEstimator::new(&table, &loss, estimator, None);
                    for rows in [vec![7], vec![1, 2, 3, 5, 8, 13, 21, 34, 55], (0..n).collect::<Vec<_>>()] {
                        let (total, [low, high]) = leaf_estimator.losses(&rows, None, &mut buffers);
                        let found = [total, low, high];
                        let mixture = Mixture::of_rows(&table, &rows);
                        let (none, groups) = (RowLosses::default(), &mut buffers.groups);
                        let d = Decomposition::fit(mixture, &loss, estimator, None, &none, None, groups).unwrap();
                        let mut expected = [d.total, d.irreducible_low, d.irreducible_high];
                        let ceiling = loss.entropy(&d.centroid);
                        let is_clamped = (d.irreducible_low - ceiling).abs() < 1e-12 && found[1] > ceiling;
                        if estimator == Estimator::Shrink && is_clamped {
                            // Clamped in a cell, not in a leaf.
                            clamped += 1;
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
        assert!(clamped > 0);
    }

    #[test]
    fn leaves_of_one_label_rows_borrow_whether_their_labels_agree_or_not() {
        // Rows of three labels, one in ten of which differs; then rows of one label.
        let votes = (0..60_u32).map(|i| [3 - u32::from(i % 10 < 3), u32::from(i % 10 < 3)]);
        let votes = votes.chain((0..16).map(|i| [1, 0].map(|n| if i == 15 { 1 - n } else { n })));
        let table = Table::new(["a", "b"], [0.8, 0.2].repeat(76));
        let table = table.and_then(|table| table.with_votes(votes.flatten().collect())).unwrap();
        for loss in [Loss::brier(), Loss::cross_entropy()] {
            let borrowed = BorrowedLosses::fit(&table, &loss);
            let leaf_estimator = LeafEstimator::new(&table, &loss, Estimator::Shrink, borrowed.as_ref());
            let of = |rows: [u32; 8]| leaf_estimator.losses(&rows, borrowed.as_ref(), &mut LeafBuffers::default()).1;
            let agreeing = of([60, 61, 62, 63, 64, 65, 66, 67]);
            assert_eq!(agreeing, of([68, 69, 70, 71, 72, 73, 74, 75]));
            assert!(agreeing[0] == agreeing[1] && agreeing[0] > 0.05, "{loss}: {agreeing:?}");
            // With a row of several labels that agree the values are mixed.
            let [mixed, _] = of([3, 61, 62, 63, 64, 65, 66, 67]);
            assert!((mixed - agreeing[0] * 2.0 / 3.0).abs() < 1e-6, "{loss}: {mixed} {agreeing:?}");
        }
    }

    #[test]
    fn brier_loss_of_a_leaf_is_unbiased() {
        // Rows of four labels: two labels of one row differ more often than two labels of any rows, less often, never.
        let kinds: [[[u32; 2]; 6]; 3] = [
            [[2, 2], [1, 3], [3, 1], [2, 2], [1, 3], [3, 1]],
            [[2, 2], [4, 0], [2, 2], [0, 4], [1, 3], [1, 3]],
            [[4, 0], [4, 0], [0, 4], [0, 4], [4, 0], [0, 4]],
        ];
        let loss = Loss::brier();
        let mut above = 0;
        for votes in kinds {
            // The share of pairs of labels of a row that differ.
            let differ = |&[a, b]: &[u32; 2]| f64::from(2 * a * b) / f64::from((a + b) * (a + b - 1));
            let expected = votes.iter().map(differ).sum::<f64>() / 6.0;
            let table = Table::new(["a", "b"], vec![0.5; 12]).and_then(|t| t.with_votes(votes.concat())).unwrap();
            let leaf_estimator = LeafEstimator::new(&table, &loss, Estimator::Shrink, None);
            let (_, [low, high]) = leaf_estimator.losses(&[0, 1, 2, 3, 4, 5], None, &mut LeafBuffers::default());
            assert_eq!(low, high);
            assert!((low - expected).abs() < 1e-12, "{low} and {expected}");
            above += u32::from(low > 0.5);
        }
        assert_eq!(above, 1);
    }

    #[test]
    fn kept_statistics_do_not_change_losses() {
        let n = 400_u32;
        let probs: Vec<f64> = (0..n).map(|i| 0.1 + 0.7 * share(i)).flat_map(|p| [p, 0.9 - p, 0.1]).collect();
        // Few labels; vote vectors shared by many rows, and by few; unequal numbers of labels; mostly one label.
        let labels = [
            |i: u32| [i % 3, i / 3 % 3 % (3 - i % 3), 2 - i % 3 - i / 3 % 3 % (3 - i % 3)],
            |i: u32| [i % 4, 4 - i % 4, 1],
            |i: u32| [i % 19, 40 - i % 19 - i % 7, i % 7],
            |i: u32| [1 + i % 3, 1, 0],
            |i: u32| [i % 2, 1 - i % 2, u32::from(i.is_multiple_of(5))],
        ];
        let mut kept = 0;
        for (labels, is_weighted) in
            labels.into_iter().flat_map(|labels| [false, true].map(|weighted| (labels, weighted)))
        {
            let table = Table::new(["a", "b", "c"], Vec::clone(&probs));
            let mut table = table.and_then(|table| table.with_votes((0..n).flat_map(labels).collect())).unwrap();
            if is_weighted {
                table = table.with_weights((0..n).map(|i| f64::from(1 + i % 3)).collect()).unwrap();
            }
            let router = Router::calibrate(&table, &Partition::forest(5)).unwrap();
            let leaves = router.leaves().unwrap();
            let k: Vec<u32> = (0..n).map(|i| labels(i).iter().sum()).collect();
            let is_even = k.iter().all(|other| *other == k[0]) && k[0] >= 2;
            let is_kept = leaves.vote_counts(0).is_some();
            assert!(!(is_kept && is_weighted));
            kept += u32::from(is_kept);
            for loss in [Loss::brier(), Loss::cross_entropy(), Loss::zero_one()] {
                for estimator in [Estimator::Shrink, Estimator::Plugin] {
                    let leaf_estimator = LeafEstimator::new(router.rows(), &loss, estimator, None);
                    let mut buffers = LeafBuffers::default();
                    let (none, some) = (Slopes::default(), Slopes([0.7, -0.4]));
                    let [totals, without_own_part] =
                        [none, some].map(|slopes| leaf_estimator.totals_without_own_part(slopes, leaves));
                    for tree in (0..leaves.rows().trees()).map(|tree| leaves.rows().tree(tree)) {
                        for leaf in tree.leaves() {
                            assert_eq!(leaves.shrunk(leaf).is_some(), is_even);
                            let [low, high] = leaf_estimator.irreducible(leaves, &tree, leaf, &mut buffers);
                            let rows = tree.rows_of(leaf);
                            let (total, [expected_low, expected_high]) =
                                leaf_estimator.losses(rows, None, &mut buffers);
                            let (self_estimate, error) = leaf_estimator.mean_self_estimate(rows);
                            let rest = total - some.own_part(self_estimate, error);
                            let expected = [total, expected_low, expected_high, rest];
                            for (found, expected) in
                                [totals[leaf], low, high, without_own_part[leaf]].into_iter().zip(expected)
                            {
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
        assert!((1..5).contains(&kept), "vote counts of {kept} of five tables without weights");
    }

    #[test]
    fn large_statistics_are_not_kept() {
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
}
