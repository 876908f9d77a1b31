//! Budgets and target losses of forests.

use pointsman::{Loss, Oracle, Partition, Router, Task};

use crate::limits::{nearest, two_routes, wide};
use crate::world::close;

/// Promised minus actual share and loss of forests on other rows, over a few samples, at each budget.
fn forest_errors(loss: &Loss, trees: usize, rows: usize, seeds: u64, budgets: &[f64]) -> Vec<[Vec<f64>; 2]> {
    let held_out = wide(6_000, 100);
    let mut errors = vec![[Vec::new(), Vec::new()]; budgets.len()];
    for seed in 0..seeds {
        let router = Router::calibrate(&wide(rows, seed), &Partition::forest(trees)).unwrap();
        let task = Task::new(loss.clone()).route("expert", Oracle::bayes(), 0.0).unwrap();
        let policy = router.policy(&task).unwrap();
        let replay = policy.replay(&held_out).unwrap();
        for (budget, errors) in budgets.iter().zip(&mut errors) {
            let policy = policy.reprice(&task.clone().budget(*budget).unwrap()).unwrap();
            let found = policy.surcharge().unwrap();
            close(found.share, *budget, 1e-9, "promised share");
            close(*policy.shares().get("route:expert").unwrap(), found.share, 1e-9, "share");
            let evaluation = replay.evaluate(&policy).unwrap();
            errors[0].push(evaluation.shares.get("route:expert").unwrap() - found.share);
            errors[1].push(evaluation.mean_cost.get("router").unwrap() - found.loss);
        }
    }
    errors
}

fn rms(errors: &[f64]) -> f64 {
    (errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64).sqrt()
}

#[test]
fn promises_of_forests_hold_on_other_rows() {
    let budgets = [0.05, 0.3, 0.8];
    for loss in [Loss::brier(), Loss::zero_one(), Loss::cross_entropy()] {
        for (errors, budget) in forest_errors(&loss, 60, 1_000, 3, &budgets).iter().zip(budgets) {
            let [share, met] = [rms(&errors[0]), rms(&errors[1])];
            let sampling = (budget * (1.0 - budget) * (1.0 / 1_000.0 + 1.0 / 6_000.0)).sqrt();
            eprintln!("{loss} {budget}: share off by {share:.4} (sampling {sampling:.4}), loss by {met:.4}");
            assert!(share < 2.5 * sampling, "{loss} {budget}: {:?}", errors[0]);
            // The losses of single rows have a standard deviation of about ½.
            assert!(met < 2.0 * 0.5 / 1_000_f64.sqrt(), "{loss} {budget}: {:?}", errors[1]);
        }
    }
}

#[test]
fn forests_meet_a_target_or_name_the_nearest() {
    let (router, held_out) = (Router::calibrate(&wide(1_500, 7), &Partition::forest(60)).unwrap(), wide(6_000, 100));
    let task = two_routes(Loss::zero_one());
    let error = router.policy(&task.clone().target_loss(0.01).unwrap()).unwrap_err().to_string();
    let base = router.policy(&task.clone().budget(0.0).unwrap()).unwrap().surcharge().unwrap().loss;
    let mut before = 1.0 + 1e-12;
    for target in [nearest(&error), 0.5 * (nearest(&error) + base), base, base + 0.1] {
        let policy = router.policy(&task.clone().target_loss(target).unwrap()).unwrap();
        let found = policy.surcharge().unwrap();
        assert!(found.loss <= target + 1e-9 && found.share <= before, "{target}: {found:?}");
        before = found.share;
        let routes: f64 = policy.shares().iter().filter(|(name, _)| name.starts_with("route")).map(|(_, s)| s).sum();
        close(routes, found.share, 1e-9, "share");
        let evaluation = policy.replay(&held_out).unwrap().evaluate(&policy).unwrap();
        let expert = *evaluation.shares.get("route:expert").unwrap();
        let met = *evaluation.mean_cost.get("router").unwrap() - 0.5 * expert;
        close(met, found.loss, 4.0 * 0.5 / 1_500_f64.sqrt(), "held-out loss");
        // No loss is below that of the Bayes-optimal oracle.
        assert_eq!(*evaluation.shares.get("route:cheap").unwrap(), 0.0);
        assert!(found.share > 0.0 || expert == 0.0, "{expert}");
    }
}

#[test]
fn shares_of_forests_equal_those_of_their_decisions() {
    let (router, held_out) = (Router::calibrate(&wide(1_500, 8), &Partition::forest(60)).unwrap(), wide(6_000, 101));
    let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.1).unwrap().abstain(0.4).unwrap();
    let policy = router.policy(&task).unwrap();
    let decided = policy.replay(&held_out).unwrap().evaluate(&policy).unwrap().shares;
    for (name, share) in policy.shares().iter() {
        close(*decided.get(name).unwrap(), *share, 5.0 * (0.25_f64 / 1_500.0 + 0.25 / 6_000.0).sqrt(), name);
    }
}
