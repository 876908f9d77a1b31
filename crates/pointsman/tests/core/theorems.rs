//! The paper's theorems, and the partition bounds, in simulations of known truth.

use pointsman::{CellId, Estimator, Loss, Oracle, Partition, Router, Table, Task};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::world::{CLASS_NAMES, Rng, any_loss, dist, position, table};

/// W1 in the ℓ1 norm between two binary mixtures, each a list of (weight, p₁): twice the area between the distribution functions.
fn wasserstein(a: &[(f64, f64)], b: &[(f64, f64)]) -> f64 {
    let total = |m: &[(f64, f64)]| m.iter().map(|x| x.0).sum::<f64>();
    let (all_a, all_b) = (total(a), total(b));
    let mut steps: Vec<(f64, f64)> = a.iter().map(|&(w, p)| (p, w / all_a)).collect();
    steps.extend(b.iter().map(|&(w, p)| (p, -w / all_b)));
    steps.sort_by(|x, y| x.0.total_cmp(&y.0));
    let (mut gap, mut area) = (0.0_f64, 0.0);
    for pair in steps.windows(2) {
        gap += pair[0].1;
        area += gap.abs() * (pair[1].0 - pair[0].0);
    }
    2.0 * area
}

#[test]
fn distance_of_mixtures_matches_hand_computed_values() {
    assert_eq!(wasserstein(&[(1.0, 0.25)], &[(2.0, 0.75)]), 1.0);
    assert_eq!(wasserstein(&[(1.0, 0.0), (1.0, 1.0)], &[(1.0, 0.5)]), 1.0);
    assert_eq!(wasserstein(&[(3.0, 0.25), (1.0, 0.5)], &[(1.0, 0.5), (3.0, 0.25)]), 0.0);
}

/// A finite simulation: in each cell some items with probability and p*₁, and the labels of its calibration rows.
struct World {
    cells: Vec<Vec<(f64, f64)>>,
    votes: Vec<Vec<[u32; 2]>>,
    k: u32,
}

impl World {
    fn draw(seed: u64, k: u32) -> Self {
        let mut rng = Rng::new(seed);
        let cells: Vec<Vec<(f64, f64)>> = (0..1 + rng.below(4))
            .map(|_| (0..1 + rng.below(5)).map(|_| (0.1 + rng.uniform(), rng.uniform())).collect())
            .collect();
        let votes = cells
            .iter()
            .map(|items| {
                (0..1 + rng.below(40))
                    .map(|_| {
                        let (_, p) = items[rng.below(items.len())];
                        let counts = rng.votes(&[1.0 - p, p], k as usize);
                        [counts[0], counts[1]]
                    })
                    .collect()
            })
            .collect();
        Self { cells, votes, k }
    }

    /// Every cell has its own prediction, so the cells are the level sets of f.
    fn prediction(cell: usize) -> [f64; 2] {
        [0.125 * cell as f64 + 0.25, 0.75 - 0.125 * cell as f64]
    }

    fn router(&self) -> Router {
        let rows = || self.votes.iter().enumerate().flat_map(|(cell, votes)| votes.iter().map(move |v| (cell, v)));
        let probs: Vec<Vec<f64>> = rows().map(|(cell, _)| Self::prediction(cell).to_vec()).collect();
        let votes: Vec<Vec<u32>> = rows().map(|(_, v)| v.to_vec()).collect();
        Router::calibrate(&table(2, &probs, &votes), &Partition::level_sets()).unwrap().recalibrated()
    }

    /// All items with their truth and probability, for evaluation.
    fn everyone(&self) -> Table {
        let items = || self.cells.iter().enumerate().flat_map(|(cell, items)| items.iter().map(move |x| (cell, x)));
        let probs = items().flat_map(|(cell, _)| Self::prediction(cell)).collect();
        let truth = items().flat_map(|(_, (_, p))| [1.0 - p, *p]).collect();
        let table = Table::new(CLASS_NAMES[..2].to_vec(), probs).unwrap().with_truth(truth).unwrap();
        table.with_weights(items().map(|(_, (w, _))| *w).collect()).unwrap()
    }

    /// The mixture that a router stores for a cell: the snapshot means, shrunk by some estimators.
    fn stored(&self, cell: usize, estimator: Estimator) -> Vec<(f64, f64)> {
        let k = f64::from(self.k);
        let means: Vec<f64> = self.votes[cell].iter().map(|v| f64::from(v[1]) / k).collect();
        let n = means.len() as f64;
        let centre = means.iter().sum::<f64>() / n;
        let spread = means.iter().map(|y| 2.0 * (y - centre).powi(2)).sum::<f64>() / n;
        let noise = means.iter().map(|y| 2.0 * y * (1.0 - y)).sum::<f64>() / n * k / (k - 1.0);
        let variance = (2.0 * centre * (1.0 - centre) - noise).max(0.0);
        let factor = match estimator {
            Estimator::Plugin => 1.0,
            _ if spread > 0.0 => (variance / spread).min(1.0).sqrt(),
            _ => 0.0,
        };
        means.iter().map(|y| (1.0, centre + factor * (y - centre))).collect()
    }
}

fn mean(items: &[(f64, f64)], value: impl Fn(&[f64]) -> f64) -> f64 {
    let weight: f64 = items.iter().map(|x| x.0).sum();
    items.iter().map(|(w, p)| w * value(&[1.0 - p, *p])).sum::<f64>() / weight
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Higher-order calibration implies low regret: estimated costs differ by at most Bε/2, decisions by Bε.
    #[test]
    fn regret_is_at_most_the_bound_times_the_calibration_error(
        seed: u64, k in 2_u32..9, loss in any_loss(2), alpha in 0.0..0.5, beta in 0.0..1.0, plugin: bool
    ) {
        let world = World::draw(seed, k);
        let estimator = if plugin { Estimator::Plugin } else { Estimator::Shrink };
        let (alpha, beta) = (alpha * loss.bound(), beta * loss.bound());
        let task = Task::new(loss.clone()).estimator(estimator).route("oracle", Oracle::bayes(), alpha).unwrap().abstain(beta).unwrap();
        let router = world.router();
        let policy = router.policy(&task).unwrap();
        let (mut expected, mut weight, mut worst, mut largest_rounding) = (0.0, 0.0, 0.0_f64, 1e-11_f64);
        for (cell, items) in world.cells.iter().enumerate() {
            let stored = world.stored(cell, estimator);
            let epsilon = wasserstein(&stored, items);
            // Points are shrunk by the root of a variance: if that is rounding, so that all points nearly agree, they are off by its root.
            let extent = stored.iter().map(|(_, p)| (p - stored[0].1).abs()).fold(0.0, f64::max);
            let rounding = if extent > 0.0 && extent < 1e-6 { 1e-7 * loss.bound().max(1.0) } else { 1e-12 };
            let decision = policy.decide(&World::prediction(cell)).unwrap();
            let served = decision.served().unwrap();
            let truth = [mean(items, |p| loss.expected(p, served)), mean(items, |p| loss.entropy(p)) + alpha, beta];
            for (true_cost, simulated) in truth.iter().zip(decision.costs()) {
                let reach = loss.lipschitz() * epsilon + rounding;
                prop_assert!((true_cost - simulated).abs() <= reach, "{loss}: {true_cost} against {simulated}, ε = {epsilon}");
            }
            let regret = truth[position(&policy, decision.action()).unwrap()] - truth.iter().copied().fold(f64::INFINITY, f64::min);
            prop_assert!(regret <= loss.bound() * epsilon + rounding.max(1e-11), "{loss}: regret {regret}, ε = {epsilon}");
            let share: f64 = items.iter().map(|x| x.0).sum();
            expected += share * regret;
            weight += share;
            worst = worst.max(epsilon);
            largest_rounding = largest_rounding.max(rounding);
        }
        // The evaluation on all items gives the same regret.
        let evaluation = policy.replay(&world.everyone()).unwrap().evaluate(&policy).unwrap();
        let regret = *evaluation.regret.get("cell-optimal").unwrap();
        prop_assert!((regret - expected / weight).abs() <= 1e-12 * loss.bound().max(1.0));
        prop_assert!(regret <= loss.bound() * worst + largest_rounding);
    }

    /// A mixture equal to the truth has no regret.
    #[test]
    fn perfect_mixtures_have_no_regret(
        counts in vec(0_u32..=8, 1..10), loss in any_loss(2), alpha in 0.0..0.5, beta in 0.0..1.0
    ) {
        let votes: Vec<Vec<u32>> = counts.iter().map(|&n| vec![8 - n, n]).collect();
        let probs = vec![vec![0.5, 0.5]; votes.len()];
        let router = Router::calibrate(&table(2, &probs, &votes), &Partition::level_sets()).unwrap().recalibrated();
        let task = Task::new(loss.clone()).estimator(Estimator::Plugin)
            .route("oracle", Oracle::bayes(), alpha * loss.bound()).unwrap().abstain(beta * loss.bound()).unwrap();
        let policy = router.policy(&task).unwrap();
        // The snapshot means are the truth of these rows.
        let evaluation = policy.replay(&table(2, &probs, &votes)).unwrap().evaluate(&policy).unwrap();
        prop_assert!(evaluation.regret.get("cell-optimal").unwrap().abs() <= 1e-11);
    }

    /// The cost of one action for a whole bin above the best action for each row, for every pair of prices.
    #[test]
    fn excess_cost_of_a_bin_is_bounded_by_its_spread(
        (loss, rows) in (2_usize..4).prop_flat_map(|c| (any_loss(c), vec((dist(c), dist(c), 0.1..1.0), 1..8))),
        prices in vec((0.0..1.0, 0.0..1.0), 6)
    ) {
        let classes = rows[0].0.len();
        let (probs, truth): (Vec<f64>, Vec<f64>) = (
            rows.iter().flat_map(|row| row.0.clone()).collect(), rows.iter().flat_map(|row| row.1.clone()).collect(),
        );
        let weights: Vec<f64> = rows.iter().map(|row| row.2).collect();
        let all: f64 = weights.iter().sum();
        let average = |value: &dyn Fn(usize) -> f64| (0..rows.len()).map(|i| weights[i] * value(i)).sum::<f64>() / all;
        let il: Vec<f64> = rows.iter().map(|row| loss.entropy(&row.1)).collect();
        let tl: Vec<f64> = rows.iter().map(|row| loss.expected(&row.1, &row.0)).collect();
        let (mean_il, mean_tl) = (average(&|i| il[i]), average(&|i| tl[i]));
        let mean_rl = mean_tl - mean_il;
        let two_way = average(&|i| (tl[i] - il[i] - mean_rl).abs()) / 2.0;
        let three_way = average(&|i| (mean_il - il[i]).max(mean_tl - tl[i]).max(0.0));

        let table = Table::new(CLASS_NAMES[..classes].to_vec(), probs).unwrap().with_truth(truth).unwrap();
        let table = table.with_weights(weights.clone()).unwrap().with_votes([vec![1; classes]; 1].concat().repeat(rows.len())).unwrap();
        let router = Router::calibrate(&table, &Partition::confidence(1)).unwrap();
        let bare = router.policy(&Task::new(loss.clone())).unwrap();
        let replay = bare.replay(&table).unwrap();
        let excess = |alpha: f64, beta: Option<f64>| {
            let mut task = Task::new(loss.clone()).route("oracle", Oracle::bayes(), alpha).unwrap();
            if let Some(beta) = beta {
                task = task.abstain(beta).unwrap();
            }
            let evaluation = replay.evaluate(&bare.reprice(&task).unwrap()).unwrap();
            evaluation.mean_cost.get("cell-optimal").unwrap() - evaluation.mean_cost.get("pointwise-optimal").unwrap()
        };
        let rounding = 1e-12 * loss.bound().max(1.0);
        for (alpha, beta) in prices {
            let (alpha, beta) = (alpha * loss.bound(), beta * loss.bound());
            prop_assert!(excess(alpha, None) <= two_way + rounding, "{loss}: without abstention");
            let found = excess(alpha, Some(beta));
            prop_assert!((-rounding..=three_way + rounding).contains(&found), "{loss}: {found} above {three_way}");
        }
        // Both bounds are attained: at α = mean RL, and at the triple point with β = mean TL.
        let alpha = mean_rl.max(0.0);
        prop_assert!((excess(alpha, None) - two_way).abs() <= rounding);
        prop_assert!((excess(alpha, Some(mean_tl)) - three_way).abs() <= rounding);
        prop_assert!(two_way <= three_way + rounding);
    }
}

/// The cells of a recalibrated router serve their centroid, whose total loss is its entropy.
#[test]
fn loss_of_served_centroids_is_their_entropy() {
    let world = World::draw(3, 5);
    let policy = world.router().policy(&Task::new(Loss::brier())).unwrap();
    for cell in 0..world.cells.len() as u32 {
        let decision = policy.cell(CellId(cell)).unwrap();
        let served = decision.served().unwrap();
        assert_eq!(served, decision.estimate().centroid);
        assert!((decision.total() - Loss::brier().entropy(served)).abs() < 1e-15);
    }
}

/// A table of several cells: predictions of two confidences per class, votes of k labels from hidden truths.
fn drawn(rng: &mut Rng, rows: usize, k: usize, shift: f64) -> Table {
    let (mut probs, mut votes) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let mut f = if rng.uniform() < 0.5 { [0.6, 0.3, 0.1] } else { [0.8, 0.1, 0.1] };
        f.rotate_right(rng.below(3));
        let noise = rng.dist(3);
        let truth: Vec<f64> = f.iter().zip(&noise).map(|(f, n)| (1.0 - shift) * f + shift * n).collect();
        votes.extend(rng.votes(&truth, k));
        probs.extend(f);
    }
    Table::new(CLASS_NAMES[..3].to_vec(), probs).unwrap().with_votes(votes).unwrap()
}

/// The reported bound holds for the reported regret: every loss, every price, both estimators.
#[test]
fn reported_regret_bound_is_never_exceeded() {
    let mut rng = Rng::new(77);
    let mut tight = f64::INFINITY;
    for round in 0..25 {
        let k = 2 + rng.below(5);
        let (calibration, held_out) = (drawn(&mut rng, 60, k, 0.4), drawn(&mut rng, 80, k, 0.6));
        let router = Router::calibrate(&calibration, &Partition::top_class(2)).unwrap().recalibrated();
        for loss in ["brier", "cross-entropy", "zero-one", "spherical", "asymmetric:3"] {
            let loss: Loss = loss.parse().unwrap();
            for estimator in [Estimator::Plugin, Estimator::Shrink] {
                let task = Task::new(loss.clone()).estimator(estimator);
                let policy = router.policy(&task).unwrap();
                let error = router.calibration_error(&held_out, &policy, 1, round, || ()).unwrap();
                let bound = error.regret_bound.unwrap();
                let replay = policy.replay(&held_out).unwrap();
                for _ in 0..20 {
                    let (alpha, beta) = (rng.uniform() * 0.5 * loss.bound(), rng.uniform() * loss.bound());
                    let task = task.clone().route("oracle", Oracle::bayes(), alpha).unwrap().abstain(beta).unwrap();
                    let evaluation = replay.evaluate(&policy.reprice(&task).unwrap()).unwrap();
                    let regret = *evaluation.regret.get("cell-optimal").unwrap();
                    assert!(regret <= bound + 1e-9, "{loss}, {estimator}: regret {regret} above {bound}");
                    if regret > 0.0 {
                        tight = tight.min(bound / regret);
                    }
                }
            }
        }
    }
    assert!(tight < 30.0, "a bound that is never near the regret would hold for the wrong reason: {tight}");
}

/// If the theorem does not apply, no bound is reported.
#[test]
fn regret_bound_is_reported_only_under_its_conditions() {
    let mut rng = Rng::new(78);
    let (calibration, held_out) = (drawn(&mut rng, 60, 3, 0.4), drawn(&mut rng, 80, 3, 0.4));
    let router = Router::calibrate(&calibration, &Partition::top_class(2)).unwrap();
    let bound = |router: &Router, estimator: Estimator, table: &Table| {
        let policy = router.policy(&Task::new(Loss::brier()).estimator(estimator)).unwrap();
        router.calibration_error(table, &policy, 1, 0, || ()).unwrap().regret_bound
    };
    assert!(bound(&router, Estimator::Plugin, &held_out).is_none(), "predictions vary within cells");
    let router = router.recalibrated();
    assert!(bound(&router, Estimator::Plugin, &held_out).is_some());
    assert!(bound(&router, Estimator::Shrink, &held_out).is_some());
    assert!(bound(&router, Estimator::Npmle, &held_out).is_none(), "no mixture of points");
    // The class c has no calibration rows, so its rows are not compared.
    let two = |rng: &mut Rng| {
        let probs: Vec<Vec<f64>> =
            (0..40).map(|i| if i % 2 == 0 { vec![0.7, 0.2, 0.1] } else { vec![0.2, 0.7, 0.1] }).collect();
        let votes: Vec<Vec<u32>> = probs.iter().map(|p| rng.votes(p, 3)).collect();
        table(3, &probs, &votes)
    };
    let partial = Router::calibrate(&two(&mut rng), &Partition::top_class(1)).unwrap().recalibrated();
    assert!(bound(&partial, Estimator::Plugin, &held_out).is_none(), "rows in cells without calibration rows");
}
