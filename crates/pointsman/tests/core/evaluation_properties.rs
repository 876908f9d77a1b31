//! Properties of any evaluation on held-out rows.

use pointsman::task::Ties;
use pointsman::{Estimator, Evaluation, Loss, Oracle, Partition, Policy, Replay, Router, Table, Task};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::evaluation::evaluate;
use crate::world::{any_loss, dist, table};

/// Held-out rows of a simulation in which every cell has calibration rows.
fn world() -> impl Strategy<Value = (Loss, Table, f64, Option<f64>, bool)> {
    let rows = |c: usize| vec((dist(c), vec(0_u32..4, c), 0.1..3.0), 1..25);
    (2_usize..4)
        .prop_flat_map(move |c| (any_loss(c), rows(c), 0.0..0.6, proptest::option::of(0.0..1.0), any::<bool>()))
        .prop_map(|(loss, rows, alpha, beta, plugin)| {
            let classes = rows[0].0.len();
            let probs: Vec<Vec<f64>> = rows.iter().map(|row| row.0.clone()).collect();
            let votes: Vec<Vec<u32>> = rows
                .iter()
                .map(|row| {
                    let mut v = row.1.clone();
                    v[1] += 2;
                    v
                })
                .collect();
            let table = table(classes, &probs, &votes).with_weights(rows.iter().map(|row| row.2).collect()).unwrap();
            (loss, table, alpha, beta, plugin)
        })
}

fn compiled(loss: &Loss, table: &Table, alpha: f64, beta: Option<f64>, plugin: bool) -> (Policy, Replay) {
    let estimator = if plugin { Estimator::Plugin } else { Estimator::Shrink };
    let mut task = Task::new(loss.clone()).estimator(estimator).ties(Ties::Frugal);
    task = task.route("expert", Oracle::bayes(), alpha * loss.bound()).unwrap();
    if let Some(beta) = beta {
        task = task.abstain(beta * loss.bound()).unwrap();
    }
    let policy = Router::calibrate(table, &Partition::top_class(3)).unwrap().policy(&task).unwrap();
    let replay = policy.replay(table).unwrap();
    (policy, replay)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn larger_sets_of_rules_have_cheaper_optima((loss, table, alpha, beta, plugin) in world()) {
        let (policy, replay) = compiled(&loss, &table, alpha, beta, plugin);
        let evaluation = replay.evaluate(&policy).unwrap();
        let rounding = 1e-12 * loss.bound().max(1.0);
        let cost = |name: &str| *evaluation.mean_cost.get(name).unwrap();
        prop_assert!(cost("pointwise-optimal") <= cost("cell-optimal") + rounding);
        prop_assert!(cost("cell-optimal") <= cost("router") + rounding);
        for (name, always) in evaluation.mean_cost.iter().filter(|(name, _)| name.starts_with("always-")) {
            prop_assert!(cost("cell-optimal") <= always + rounding, "{name}");
        }
        for (name, two_way) in evaluation.two_way.iter() {
            prop_assert!(cost("cell-optimal") <= two_way + rounding, "{name}");
        }
        prop_assert!((evaluation.shares.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() <= 1e-12);
        prop_assert!((evaluation.support.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() <= 1e-12);
        prop_assert_eq!(evaluation.regret.get("cell-optimal").copied(), Some(cost("router") - cost("cell-optimal")));
        // Calibrated on the same rows with the plug-in, the router is the best policy on its cells.
        if plugin {
            prop_assert!(cost("router") <= cost("cell-optimal") + rounding.max(1e-11 * loss.bound()));
        }
    }

    #[test]
    fn gains_are_normalised((loss, table, alpha, beta, plugin) in world()) {
        let (policy, replay) = compiled(&loss, &table, alpha, beta, plugin);
        let evaluation = replay.evaluate(&policy).unwrap();
        let gain = |name: &str| *evaluation.gain.get(name).unwrap();
        let curve = |name: &str| evaluation.curves.get(name).unwrap();
        for (name, values) in evaluation.curves.iter() {
            // All curves start at the loss of predicting and end at the oracle's.
            prop_assert_eq!(values.len(), 101);
            prop_assert!((values[0] - evaluation.mean_cost.get("always-predict").unwrap()).abs() <= 1e-12 * loss.bound());
            prop_assert!((values[100] - curve("random")[100]).abs() <= 1e-12 * loss.bound().max(1.0), "{name}");
            for (value, best) in values.iter().zip(curve("pointwise-optimal")) {
                prop_assert!(*best <= value + 1e-12 * loss.bound().max(1.0), "{name}");
            }
        }
        if gain("random").is_some() {
            prop_assert_eq!(gain("random"), Some(0.0));
            prop_assert_eq!(gain("pointwise-optimal"), Some(1.0));
        }
    }

    /// An action priced above every loss is never taken, which leaves the costs with two actions.
    #[test]
    fn overpriced_actions_leave_the_two_way_costs((loss, table, alpha, beta, plugin) in world()) {
        let (policy, replay) = compiled(&loss, &table, alpha, Some(beta.unwrap_or(0.4)), plugin);
        let dear = 3.0 * loss.bound() + 1.0;
        let evaluate = |task: &Task| replay.evaluate(&policy.reprice(task).unwrap()).unwrap();
        let cost = |evaluation: &Evaluation| *evaluation.mean_cost.get("router").unwrap();
        let never_abstain = evaluate(&policy.task().clone().abstain(dear).unwrap());
        prop_assert_eq!(Some(&cost(&never_abstain)), never_abstain.two_way.get("predict/route"));
        let never_route = evaluate(&policy.task().clone().reprice_route("expert", dear).unwrap());
        prop_assert_eq!(Some(&cost(&never_route)), never_route.two_way.get("predict/abstain"));
        // Free abstention is always taken, up to ties, and costs nothing.
        let free = evaluate(&policy.task().clone().abstain(0.0).unwrap());
        prop_assert!(cost(&free) <= 1e-11 * loss.bound());
    }

    #[test]
    fn weight_two_equals_a_repeated_row((loss, table, alpha, beta, plugin) in world(), twice in vec(any::<bool>(), 25)) {
        let (policy, _) = compiled(&loss, &table, alpha, beta, plugin);
        let copies: Vec<usize> = (0..table.rows()).flat_map(|row| vec![row; 1 + usize::from(twice[row])]).collect();
        let classes = table.classes().to_vec();
        let rows = |order: &[usize]| {
            let probs = order.iter().flat_map(|&row| table.prediction(row).to_vec()).collect();
            let votes = order.iter().flat_map(|&row| table.votes(row).unwrap().counts().to_vec()).collect();
            Table::new(classes.clone(), probs).unwrap().with_votes(votes).unwrap()
        };
        let once: Vec<usize> = (0..table.rows()).collect();
        let weights = once.iter().map(|&row| 1.0 + f64::from(u8::from(twice[row]))).collect();
        let weighted = evaluate(&policy, &rows(&once).with_weights(weights).unwrap());
        let repeated = evaluate(&policy, &rows(&copies));
        let rounding = 1e-12 * loss.bound().max(1.0);
        for (a, b) in [(&weighted.mean_cost, &repeated.mean_cost), (&weighted.shares, &repeated.shares), (&weighted.two_way, &repeated.two_way)] {
            for ((name, x), (_, y)) in a.iter().zip(b.iter()) {
                // In hindsight two actions may tie, but then their costs are equal.
                prop_assert!((x - y).abs() <= rounding, "{name}: {x} and {y}");
            }
        }
        for ((name, x), (_, y)) in weighted.curves.iter().zip(repeated.curves.iter()) {
            // Repeated rows divide the curve more finely, on the same lines.
            prop_assert!(x.iter().zip(y).all(|(x, y)| (x - y).abs() <= rounding), "{name}");
        }
    }
}
