//! The loss of panels: its definition, unbiased estimates and Lipschitz constants.

use pointsman::oracle::Aggregate;
use pointsman::{CellId, Estimator, Loss, Oracle, Partition, Router, Table, Task};
use proptest::prelude::*;

use crate::oracles::{estimated, panel};
use crate::routing_worlds::{Features, World};
use crate::world::{Rng, any_loss, close, compositions, dist, multinomial, population};

/// The aggregates for which a loss is defined.
fn aggregates(loss: &Loss) -> Vec<Aggregate> {
    let all = [Aggregate::Mean, Aggregate::Plurality, Aggregate::Laplace(1.0), Aggregate::Laplace(0.25)];
    all.into_iter().filter(|&aggregate| panel(1, aggregate).check_loss(loss).is_ok()).collect()
}

/// c(L, p) from its definition: the mean over all outcomes of the panel.
fn by_definition(loss: &Loss, experts: u32, aggregate: Aggregate, p: &[f64]) -> f64 {
    let answers = |counts: &[u32]| -> Vec<Vec<f64>> {
        let share = |add: f64| {
            let sum: f64 = counts.iter().map(|&n| f64::from(n) + add).sum();
            vec![counts.iter().map(|&n| (f64::from(n) + add) / sum).collect()]
        };
        match aggregate {
            Aggregate::Mean => share(0.0),
            Aggregate::Laplace(smoothing) => share(smoothing),
            Aggregate::Plurality => {
                let most = counts.iter().max().unwrap();
                let winners = (0..counts.len()).filter(|&class| counts[class] == *most);
                winners.map(|winner| (0..counts.len()).map(|c| f64::from(u8::from(c == winner))).collect()).collect()
            }
            other => panic!("{other} is not defined here"),
        }
    };
    let outcomes = compositions(experts, p.len());
    let outcome = |counts: &Vec<u32>| {
        let answers = answers(counts);
        let mean = answers.iter().map(|answer| loss.expected(p, answer)).sum::<f64>() / answers.len() as f64;
        multinomial(counts, p) * mean
    };
    outcomes.iter().map(outcome).sum()
}

fn world() -> impl Strategy<Value = (Loss, Vec<f64>)> {
    (2_usize..=4).prop_flat_map(|classes| (any_loss(classes), dist(classes)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn panel_cost_equals_its_definition((loss, p) in world(), m in 1_u32..6) {
        for aggregate in aggregates(&loss) {
            let (found, wanted) = (panel(m, aggregate).cost(&loss, &p).unwrap(), by_definition(&loss, m, aggregate, &p));
            prop_assert!((found - wanted).abs() <= 1e-12 * loss.bound().max(1.0), "{aggregate} {found} {wanted}");
            prop_assert!(found >= loss.entropy(&p) - 1e-12 * loss.bound().max(1.0), "no panel beats the truth");
        }
    }

    /// In expectation over all labels of an item the estimate is the panel's loss: with more labels than experts, for any loss and estimator; and with
    /// two labels for the Brier loss of shares.
    #[test]
    fn estimates_of_panels_are_unbiased((loss, p) in world(), m in 1_u32..4, more in 1_u32..3) {
        let f = vec![1.0 / p.len() as f64; p.len()];
        for aggregate in aggregates(&loss) {
            let oracle = panel(m, aggregate);
            let brier = loss == Loss::brier() && aggregate != Aggregate::Plurality;
            let mut numbers = vec![m + more];
            numbers.extend(brier.then_some(2));
            for k in numbers {
                let items = population(&[(1.0, p.clone(), f.clone())], &[(1.0, k)]);
                for estimator in [Estimator::Shrink, Estimator::Plugin, Estimator::Dirichlet] {
                    let [low, high] = estimated(&items, &loss, &oracle, estimator);
                    let wanted = oracle.cost(&loss, &p).unwrap();
                    prop_assert_eq!(low, high);
                    prop_assert!((low - wanted).abs() <= 1e-11 * loss.bound().max(1.0), "{} {} {}", oracle, low, wanted);
                }
            }
        }
    }

    #[test]
    fn loss_of_an_oracle_is_lipschitz((loss, p) in world(), seed in any::<u64>(), m in 1_u32..6) {
        let q = Rng::new(seed).dist(p.len());
        let distance: f64 = p.iter().zip(&q).map(|(x, y)| (x - y).abs()).sum();
        let oracles = aggregates(&loss).into_iter().map(|aggregate| panel(m, aggregate)).chain([Oracle::bayes()]);
        for oracle in oracles {
            let constant = oracle.lipschitz(&loss, p.len());
            let change = (oracle.cost(&loss, &p).unwrap() - oracle.cost(&loss, &q).unwrap()).abs();
            prop_assert!(change <= constant * distance * (1.0 + 1e-4) + 1e-12 * loss.bound(), "{oracle} {change} {constant}");
            prop_assert!(constant <= f64::from(m + 1) * loss.bound() / 2.0 + 1e-12);
        }
    }

    /// With one label per item only the mean is identified. For all true distributions with that mean, the costs are within their bounds, and an
    /// action that is taken is the cheapest.
    #[test]
    fn one_label_per_item_decides_only_within_bounds(
        classes in 2_usize..=3, seed in any::<u64>(), pick in any::<prop::sample::Index>(), m in 1_u32..4,
    ) {
        let mut rng = Rng::new(seed);
        let losses = ["brier", "zero-one", "spherical", "asymmetric:3"];
        let loss: Loss = losses[pick.index(losses.len())].parse().unwrap();
        let f = rng.dist(classes);
        let items: Vec<_> = (0..3).map(|_| (1.0 / 3.0, rng.dist(classes), f.clone())).collect();
        let mut task = Task::new(loss.clone()).abstain(rng.uniform()).unwrap();
        let oracles = [Oracle::bayes(), panel(m, Aggregate::Mean), panel(m + 2, Aggregate::Plurality), panel(5, Aggregate::Mean)];
        for (i, oracle) in oracles.iter().enumerate() {
            task = task.route(format!("r{i}"), oracle.clone(), 0.4 * rng.uniform().powi(2)).unwrap();
        }
        let router = Router::calibrate(&population(&items, &[(1.0, 1)]), &Partition::confidence(1)).unwrap();
        let policy = router.policy(&task).unwrap();
        let decision = policy.cell(CellId(0)).unwrap();
        let mean = |value: &dyn Fn(&[f64]) -> f64| items.iter().map(|(share, p, _)| share * value(p)).sum::<f64>();
        let mut truth = vec![mean(&|p| loss.expected(p, &f))];
        truth.extend(task.routes().iter().map(|route| mean(&|p| route.oracle().cost(&loss, p).unwrap()) + route.price()));
        truth.extend(task.abstain_price());
        for ((low, high), cost) in decision.costs().iter().zip(decision.costs_high()).zip(&truth) {
            prop_assert!(low - 1e-9 <= *cost && *cost <= high + 1e-9, "{low} {cost} {high}");
        }
        if let Some(action) = crate::world::position(&policy, decision.action()) {
            let least = truth.iter().copied().fold(f64::INFINITY, f64::min);
            prop_assert!(truth[action] <= least + 1e-9, "{:?} {:?}", decision.action(), truth);
        }
    }
}

/// Known Lipschitz constants of panels, and the limit of many experts.
#[test]
fn lipschitz_constants_and_limits_of_many_experts() {
    for (m, wanted) in [(3, 0.71), (5, 0.67), (25, 0.64)] {
        close(panel(m, Aggregate::Plurality).lipschitz(&Loss::zero_one(), 2), wanted, 0.006, "majority");
    }
    for m in [1, 3, 10] {
        close(panel(m, Aggregate::Mean).lipschitz(&Loss::brier(), 7), 1.0 + 1.0 / f64::from(m), 1e-12, "Brier");
    }
    let dear = Loss::fn_fp(1.0, 4.0).unwrap();
    let steepest = (1..=5).map(|m| panel(m, Aggregate::Laplace(1.0)).lipschitz(&dear, 2)).fold(0.0, f64::max);
    close(steepest, 4.5, 0.06, "false negatives are dear");
    for (loss, p) in [("brier", vec![0.2, 0.5, 0.3]), ("zero-one", vec![0.3, 0.7]), ("cross-entropy", vec![0.1, 0.9])] {
        let loss: Loss = loss.parse().unwrap();
        for aggregate in aggregates(&loss) {
            let excess = |m| panel(m, aggregate).cost(&loss, &p).unwrap() - loss.entropy(&p);
            let limit = if aggregate == Aggregate::Plurality && loss == Loss::brier() {
                // A plurality names only the winner, which is not the distribution.
                loss.expected(&p, &[0.0, 1.0, 0.0]) - loss.entropy(&p)
            } else {
                0.0
            };
            assert!((excess(1000) - limit).abs() < 0.006, "{loss} {aggregate}: {}", excess(1000));
            assert!((excess(1) - limit).abs() >= (excess(1000) - limit).abs(), "{loss} {aggregate}");
        }
    }
}

#[test]
fn cross_entropy_of_panels_needs_smoothing() {
    for kind in ["panel:m=3", "panel:m=3,aggregate=plurality"] {
        let error = Task::new(Loss::cross_entropy()).route("jury", kind.parse().unwrap(), 0.1).unwrap_err().to_string();
        assert!(error.contains("use aggregate=laplace"), "{error}");
    }
    Task::new(Loss::cross_entropy()).route("jury", "panel:m=3,aggregate=laplace".parse().unwrap(), 0.1).unwrap();
}

/// Pooled cells estimate panels from the same rows as the irreducible loss: under the Brier loss the mean of m labels loses (1 + 1/m) times it
/// in every cell, also if some items have one label.
#[test]
fn panels_of_pooled_cells_follow_the_irreducible_loss() {
    let drawn = World { classes: 3, features: Features::Missing }.draw(&mut Rng::new(5), 600, 3);
    let votes = |row: usize| {
        let counts = drawn.votes(row).unwrap().counts();
        let first = counts.iter().position(|&count| count > 0).unwrap();
        let one = |class: usize| u32::from(class == first);
        (0..3).map(|class| if row.is_multiple_of(4) { one(class) } else { counts[class] }).collect::<Vec<u32>>()
    };
    let probs: Vec<f64> = (0..drawn.rows()).flat_map(|row| drawn.prediction(row).to_vec()).collect();
    let table = Table::new(["a", "b", "c"], probs).unwrap();
    let table = table.with_votes((0..drawn.rows()).flat_map(votes).collect::<Vec<u32>>()).unwrap();
    let router = Router::calibrate(&table, &Partition::pooled()).unwrap();
    for experts in [1, 3, 10] {
        let panel = Oracle::panel(experts, Aggregate::Mean).unwrap();
        let task = Task::new(Loss::brier()).route("all", Oracle::bayes(), 0.0).unwrap();
        let policy = router.policy(&task.route("panel", panel, 0.0).unwrap()).unwrap();
        for cell in (0..router.cells().count() as u32).map(CellId) {
            let costs = policy.cell(cell).unwrap().costs().to_vec();
            let expected = costs[1] * (1.0 + 1.0 / f64::from(experts));
            assert!((costs[2] - expected).abs() < 1e-9, "cell {cell}, {experts} experts: {} and {expected}", costs[2]);
        }
    }
}
