//! Panels and measured oracles: their loss, its estimation from labels, and policies with them.

use pointsman::oracle::Aggregate;
use pointsman::{Action, CellId, Estimator, Evaluation, Loss, Oracle, Partition, Policy, Router, Table, Task};

use crate::world::{CLASS_NAMES, Rng, close, population, said, table};

pub(crate) fn panel(experts: u32, aggregate: Aggregate) -> Oracle {
    Oracle::panel(experts, aggregate).unwrap()
}

/// The cost of routing all rows of a table, as one cell, to a free oracle.
pub(crate) fn estimated(table: &Table, loss: &Loss, oracle: &Oracle, estimator: Estimator) -> [f64; 2] {
    let task = Task::new(loss.clone()).estimator(estimator).route("asked", oracle.clone(), 0.0).unwrap();
    let policy = Router::calibrate(table, &Partition::confidence(1)).unwrap().policy(&task).unwrap();
    let decision = policy.cell(CellId(0)).unwrap();
    [decision.costs()[1], decision.costs_high()[1]]
}

/// Items of two kinds of prediction with known truth, `k` labels each, and a model whose answers are the truth.
fn draw(seed: u64, rows: usize, ks: &[usize], with_truth: bool) -> Table {
    let mut rng = Rng::new(seed);
    let (mut probs, mut truth, mut votes) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..rows {
        let f = if rng.uniform() < 0.5 { [0.6, 0.3, 0.1] } else { [0.1, 0.1, 0.8] };
        let noise = rng.dist(3);
        let p: Vec<f64> = f.iter().zip(&noise).map(|(f, noise)| 0.5 * f + 0.5 * noise).collect();
        votes.extend(rng.votes(&p, ks[row % ks.len()]));
        probs.extend(f);
        truth.extend(p);
    }
    let table = Table::new(CLASS_NAMES[..3].to_vec(), probs.clone()).unwrap().with_votes(votes).unwrap();
    let table = table.with_oracle("seer", truth.clone()).unwrap().with_oracle("copy", probs).unwrap();
    if with_truth { table.with_truth(truth).unwrap() } else { table }
}

fn route_cost(policy: &Policy, cell: u32, route: usize) -> f64 {
    policy.cell(CellId(cell)).unwrap().costs()[1 + route]
}

#[test]
fn panels_are_estimated_near_the_truth() {
    for (ks, estimators) in [
        (&[8][..], &[Estimator::Shrink][..]),
        // Fewer labels than experts, and both kinds in one cell.
        (&[3][..], &[Estimator::Shrink, Estimator::Dirichlet, Estimator::Npmle][..]),
        (&[3, 8][..], &[Estimator::Shrink, Estimator::Dirichlet][..]),
    ] {
        let table = draw(5, 6000, ks, true);
        for (loss, aggregate) in [
            ("brier", Aggregate::Mean),
            ("zero-one", Aggregate::Plurality),
            ("cross-entropy", Aggregate::Laplace(1.0)),
            ("spherical", Aggregate::Laplace(0.5)),
        ] {
            let (loss, oracle): (Loss, Oracle) = (loss.parse().unwrap(), panel(5, aggregate));
            let truth = (0..table.rows()).map(|row| oracle.cost(&loss, table.truth(row).unwrap()).unwrap());
            let truth = truth.sum::<f64>() / table.rows() as f64;
            for &estimator in estimators {
                let [found, high] = estimated(&table, &loss, &oracle, estimator);
                assert_eq!(found, high);
                close(found, truth, 0.015, &format!("{loss} {oracle} {estimator} {ks:?}"));
            }
        }
    }
}

/// Shrinkage mixes items of two kinds, which matters for a plurality; the maximum-likelihood law keeps them apart.
#[test]
fn npmle_estimates_panels_on_two_kinds_of_items() {
    let two = [(0.5, vec![0.85, 0.15], vec![0.5, 0.5]), (0.5, vec![0.35, 0.65], vec![0.5, 0.5])];
    let three = [(0.6, vec![0.8, 0.1, 0.1], vec![0.4, 0.3, 0.3]), (0.4, vec![0.1, 0.5, 0.4], vec![0.4, 0.3, 0.3])];
    for items in [&two[..], &three[..]] {
        // Too few labels for the panel on all items, or on half of them, whose own labels then show their kind.
        for ks in [&[(1.0, 5)][..], &[(0.5, 4), (0.5, 8)][..]] {
            let table = population(items, ks);
            for loss in [Loss::zero_one(), Loss::brier()] {
                let oracle = panel(7, Aggregate::Plurality);
                let truth: f64 = items.iter().map(|(share, p, _)| share * oracle.cost(&loss, p).unwrap()).sum();
                let [npmle, shrink] = [Estimator::Npmle, Estimator::Shrink].map(|estimator| {
                    let [low, high] = estimated(&table, &loss, &oracle, estimator);
                    assert_eq!(low, high);
                    (low - truth).abs()
                });
                assert!(npmle < 0.007 && npmle < shrink / 2.0, "{loss} {oracle} {ks:?}: off by {npmle} and {shrink}");
            }
        }
    }
}

#[test]
fn measured_oracles_cost_their_measured_loss() {
    for k in [1, 6] {
        let table = draw(9, 4000, &[k], true);
        for loss in ["brier", "cross-entropy", "zero-one"] {
            let loss: Loss = loss.parse().unwrap();
            let task = Task::new(loss.clone()).route("copy", Oracle::measured(), 0.0).unwrap();
            let task = task.route("seer", Oracle::measured(), 0.0).unwrap();
            let policy = Router::calibrate(&table, &Partition::confidence(1)).unwrap().policy(&task).unwrap();
            let decision = policy.cell(CellId(0)).unwrap();
            assert_eq!(decision.costs(), decision.costs_high(), "known with one label per item");
            close(decision.costs()[1], decision.costs()[0], 1e-12, "an oracle that repeats the model loses as much");
            let truth = (0..table.rows()).map(|row| loss.entropy(table.truth(row).unwrap())).sum::<f64>();
            close(
                decision.costs()[2],
                truth / table.rows() as f64,
                0.03,
                "who knows the truth loses what is irreducible",
            );
        }
    }
}

#[test]
fn missing_predictions_of_a_measured_oracle_are_named() {
    let task = Task::new(Loss::brier()).route("gpt", Oracle::measured(), 0.1).unwrap();
    let router = Router::calibrate(&draw(1, 50, &[3], false), &Partition::top_class(1)).unwrap();
    let error = router.policy(&task).unwrap_err().to_string();
    assert!(error.contains("no column oracle_gpt_ant") && error.contains("seer"), "{error}");
    // The held-out rows need its predictions as well.
    let task = Task::new(Loss::brier()).route("seer", Oracle::measured(), 0.1).unwrap();
    let bare = table(3, &[vec![0.6, 0.3, 0.1]], &[vec![1, 1, 1]]);
    let error = router.policy(&task).unwrap().replay(&bare).unwrap_err().to_string();
    assert!(error.contains("no column oracle_seer_ant") && error.contains("calibration table"), "{error}");
}

fn jury() -> Task {
    let mut task = Task::new(Loss::brier());
    for m in [1, 3, 5, 9] {
        task = task.route(format!("jury of {m}"), panel(m, Aggregate::Mean), 0.012 * f64::from(m)).unwrap();
    }
    task
}

/// A task with panels of several sizes: each cell takes the size that pays there.
#[test]
fn each_cell_takes_the_panel_size_that_pays() {
    let (calibration, known) = (draw(3, 8000, &[4], false), draw(4, 8000, &[4], true));
    let router = Router::calibrate(&calibration, &Partition::top_class(1)).unwrap();
    let policy = router.policy(&jury()).unwrap();
    let cells = router.find_cells(&known).unwrap();
    for cell in [0, 2] {
        let rows: Vec<usize> = (0..known.rows()).filter(|&row| cells[row] == CellId(cell)).collect();
        let noise =
            rows.iter().map(|&row| Loss::brier().entropy(known.truth(row).unwrap())).sum::<f64>() / rows.len() as f64;
        for (route, m) in [1, 3, 5, 9].into_iter().enumerate() {
            let wanted = noise * (1.0 + 1.0 / f64::from(m)) + 0.012 * f64::from(m);
            close(route_cost(&policy, cell, route), wanted, 0.02, &format!("cell {cell}, {m} experts"));
        }
        let wanted = [1, 3, 5, 9].into_iter().min_by(|&a, &b| {
            let cost = |m: u32| noise / f64::from(m) + 0.012 * f64::from(m);
            cost(a).total_cmp(&cost(b))
        });
        let decision = policy.cell(CellId(cell)).unwrap();
        let costs = decision.costs();
        let least = (1..5).min_by(|&a, &b| costs[a].total_cmp(&costs[b])).map(|route| [1, 3, 5, 9][route - 1]);
        assert_eq!(least, wanted, "cell {cell}: noise {noise}");
    }
    assert!(policy.replay(&known).unwrap().evaluate(&policy).unwrap().regret.get("cell-optimal").unwrap() < &0.005);
}

#[test]
fn repricing_keeps_the_oracles() {
    let router = Router::calibrate(&draw(3, 500, &[4], false), &Partition::top_class(3)).unwrap();
    let task = jury().route("seer", Oracle::measured(), 0.2).unwrap();
    let policy = router.policy(&task).unwrap();
    let other =
        task.clone().reprice_route("jury of 5", 0.001).unwrap().reprice_route("seer", 0.3).unwrap().abstain(0.4);
    let other = other.unwrap();
    let (repriced, compiled) = (policy.reprice(&other).unwrap(), router.policy(&other).unwrap());
    for cell in (0..router.cells().count() as u32).map(CellId) {
        assert_eq!(repriced.cell(cell).map(said), compiled.cell(cell).map(said));
    }
    // Fewer routes, another order and a Bayes-optimal oracle need no new estimates.
    let fewer = Task::new(Loss::brier()).route("seer", Oracle::measured(), 0.0).unwrap();
    let fewer = fewer.route("three", panel(3, Aggregate::Mean), 0.0).unwrap().route("b", Oracle::bayes(), 0.0).unwrap();
    let (found, all) = (policy.reprice(&fewer).unwrap(), policy.cell(CellId(0)).unwrap());
    let all = all.costs();
    close(route_cost(&found, 0, 0), all[5] - 0.2, 1e-12, "seer");
    close(route_cost(&found, 0, 1), all[2] - 0.036, 1e-12, "three");
    assert_eq!(Some(route_cost(&found, 0, 2)), found.cell(CellId(0)).unwrap().irreducible());
    for (name, oracle) in
        [("a", panel(4, Aggregate::Mean)), ("b", panel(3, Aggregate::Plurality)), ("copy", Oracle::Measured)]
    {
        let error =
            policy.reprice(&Task::new(Loss::brier()).route(name, oracle, 0.0).unwrap()).unwrap_err().to_string();
        assert!(error.contains("policy of its own"), "{error}");
    }
}

/// Panels with too many outcomes are sampled with seeds from the items' content, not from their order.
#[test]
fn sampled_panels_do_not_depend_on_row_order() {
    let mut rng = Rng::new(8);
    let rows: Vec<(Vec<f64>, Vec<u32>)> = (0..60)
        .map(|row| {
            let p = rng.dist(5);
            let votes = rng.votes(&p, if row % 2 == 0 { 3 } else { 60 });
            (p, votes)
        })
        .collect();
    let policy = |order: &[usize]| {
        let (probs, votes): (Vec<_>, Vec<_>) = order.iter().map(|&row| rows[row].clone()).unzip();
        let router = Router::calibrate(&table(5, &probs, &votes), &Partition::top_class(1)).unwrap();
        let task = Task::new(Loss::spherical()).route("crowd", panel(45, Aggregate::Mean), 0.0).unwrap();
        router.policy(&task.route("vote", panel(45, Aggregate::Plurality), 0.0).unwrap()).unwrap()
    };
    let mut order: Vec<usize> = (0..rows.len()).collect();
    let first = policy(&order);
    rng.shuffle(&mut order);
    let second = policy(&order);
    let alone = rayon_of_one(|| policy(&order));
    for cell in (0..5).map(CellId) {
        assert_eq!(first.cell(cell).map(said), second.cell(cell).map(said));
        assert_eq!(first.cell(cell).map(said), alone.cell(cell).map(said));
    }
}

fn rayon_of_one<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(work)
}

fn evaluated(policy: &Policy, table: &Table) -> Evaluation {
    policy.replay(table).unwrap().evaluate(policy).unwrap()
}

#[test]
fn held_out_costs_are_those_of_each_oracle() {
    let task = Task::new(Loss::zero_one()).route("jury", panel(5, Aggregate::Plurality), 0.01).unwrap();
    let task = task.route("seer", Oracle::measured(), 0.02).unwrap().route("expert", Oracle::bayes(), 0.03).unwrap();
    let router = Router::calibrate(&draw(3, 3000, &[4], false), &Partition::top_class(2)).unwrap();
    let policy = router.policy(&task).unwrap();
    let cost = |evaluation: &Evaluation, name: &str| *evaluation.mean_cost.get(name).unwrap();
    let truth = evaluated(&policy, &draw(6, 8000, &[4], true));
    close(cost(&truth, "always-route:seer") - 0.02, cost(&truth, "always-route:expert") - 0.03, 1e-12, "both know");
    assert!(cost(&truth, "always-route:jury") - 0.01 > cost(&truth, "always-route:expert") - 0.03 + 0.02);
    // Eight labels estimate a panel of five without bias, four do not; the correction fixes that.
    let jury = "always-route:jury";
    let eight = evaluated(&policy, &draw(6, 8000, &[8], false));
    close(cost(&eight, jury), cost(&truth, jury), 0.015, "eight labels");
    close(*eight.corrected_cost.as_ref().unwrap().get(jury).unwrap(), cost(&truth, jury), 0.015, "eight labels");
    let four = evaluated(&policy, &draw(6, 8000, &[4], false));
    assert!(cost(&four, jury) < cost(&truth, jury) - 0.03, "four labels agree with themselves too well");
    close(*four.corrected_cost.as_ref().unwrap().get(jury).unwrap(), cost(&truth, jury), 0.015, "corrected");
    // The grid of prices varies the route that costs least here; at the task's own prices it equals the evaluation.
    let replay = policy.replay(&draw(6, 300, &[4], true)).unwrap();
    let grid = replay.price_grid(&policy, &[CellId(0)], 5).unwrap();
    assert_eq!(grid.route, "seer");
    assert!(!grid.bayes && grid.corners.iter().all(Option::is_none));
    let here = grid.own[0] * grid.abstain_prices.len() + grid.own[1];
    close(
        grid.router[here].unwrap(),
        *replay.evaluate(&policy).unwrap().best_costs().get("router").unwrap(),
        1e-12,
        "grid",
    );
}

/// At any prices the held-out regret against the best action per cell is below the bound.
#[test]
fn regret_bound_holds_for_every_oracle() {
    let mut rng = Rng::new(17);
    for (k, seed) in [(4, 1), (7, 2)] {
        let router = Router::calibrate(&draw(seed, 300, &[k], false), &Partition::top_class(2)).unwrap().recalibrated();
        let held_out = draw(seed + 10, 300, &[k], false);
        for (loss, aggregate) in [("zero-one", Aggregate::Plurality), ("brier", Aggregate::Laplace(0.5))] {
            let task = Task::new(loss.parse().unwrap()).estimator(Estimator::Shrink);
            let task = task.route("jury", panel(5, aggregate), 0.0).unwrap();
            let task = task.route("seer", Oracle::measured(), 0.0).unwrap().abstain(0.5).unwrap();
            let policy = router.policy(&task).unwrap();
            let replay = policy.replay(&held_out).unwrap();
            let bound = router.calibration_error(&held_out, &policy, 2, 0, || ()).unwrap().regret_bound.unwrap();
            for _ in 0..200 {
                let mut task = task.clone().abstain(rng.uniform()).unwrap();
                for name in ["jury", "seer"] {
                    task = task.reprice_route(name, 0.5 * rng.uniform()).unwrap();
                }
                let evaluation = replay.evaluate(&policy.reprice(&task).unwrap()).unwrap();
                let regret = *evaluation.regret.get("cell-optimal").unwrap();
                assert!(regret <= bound + 1e-12, "{loss} {k}: {regret} above {bound}");
            }
        }
    }
}

/// An oracle that costs more than predicting is not used.
#[test]
fn bad_oracles_are_not_used_even_if_free() {
    let probs = vec![vec![0.5, 0.5]; 40];
    let votes: Vec<Vec<u32>> = (0..40).map(|row| if row % 2 == 0 { vec![3, 2] } else { vec![2, 3] }).collect();
    let table = table(2, &probs, &votes).with_oracle("fool", [1.0, 0.0].repeat(40)).unwrap();
    let router = Router::calibrate(&table, &Partition::top_class(1)).unwrap();
    let task = Task::new(Loss::brier()).route("fool", Oracle::measured(), 0.0).unwrap();
    let policy = router.policy(&task.route("one", panel(1, Aggregate::Mean), 0.0).unwrap()).unwrap();
    let decision = policy.decide(&[0.5, 0.5]).unwrap();
    assert_eq!(decision.action(), Action::Predict);
    assert!(
        decision.costs()[1] > 0.9 && decision.costs()[2] > 0.9 && decision.costs()[0] < 0.51,
        "{:?}",
        decision.costs()
    );
}
