//! Forests whose leaves are filled with other rows than those they were grown on.

use pointsman::router::{Cap, Partial};
use pointsman::{Loss, Oracle, Partition, Router, Table, Task};

use crate::forest::{task, world};
use crate::world::close;

fn forest(table: &Table, trees: usize) -> Router {
    Router::builder().partition(Partition::forest(trees)).seed(5).fit(table).unwrap()
}

#[test]
fn forest_filled_with_its_own_rows_is_itself() {
    for (rows, labels) in [(60, 2), (700, 5)] {
        let own = world(rows, labels, 3);
        let grown = forest(&own, 12);
        assert_eq!(Router::calibrate_like(&own, &grown).unwrap(), grown);
        let mut part = Partial::like(&grown).unwrap();
        part.add(&own).unwrap();
        assert_eq!(part.finish().unwrap(), grown);
    }
}

#[test]
fn rows_that_do_not_reach_a_leaf_remove_it() {
    let grown = forest(&world(900, 5, 1), 10);
    let left = world(900, 5, 2);
    let left = left.keep_rows(|row| left.features(row)[0] < 0.3);
    let filled = Router::calibrate_like(&left, &grown).unwrap();
    // One region of three is left, and the others' splits are gone.
    let leaves = |router: &Router| match router.cells().axes() {
        [pointsman::partition::Axis::Forest { forest, .. }] => forest.trees().leaves(),
        _ => 0,
    };
    assert!(leaves(&filled) < leaves(&grown) && leaves(&filled) >= 10, "{} and {}", leaves(&filled), leaves(&grown));
    // Queries of the regions without rows get estimates all the same, from the nearest leaves that have some.
    let policy = filled.policy(&task()).unwrap();
    let queries = world(50, 5, 4);
    assert_eq!(policy.decide_batch(&queries).unwrap().len(), 50);
}

/// Bounds: the promise of a forest filled with new rows agrees with the cost on further rows within four standard errors of both.
#[test]
fn promise_of_a_refilled_forest_holds_on_new_rows() {
    let grown = forest(&world(600, 5, 11), 40);
    let test = world(20_000, 5, 12);
    for loss in [Loss::brier(), Loss::cross_entropy()] {
        let task = Task::new(loss).route("expert", Oracle::bayes(), 0.05).unwrap().abstain(0.4).unwrap();
        let filled = Router::calibrate_like(&world(6_000, 5, 13), &grown).unwrap();
        let policy = filled.policy(&task).unwrap();
        let promise = policy.promise().unwrap();
        let evaluation = policy.replay(&test).unwrap().evaluate(&policy).unwrap();
        let cost = *evaluation.mean_cost.get("router").unwrap();
        let error = evaluation.standard_error.get("router").unwrap().unwrap();
        let open = promise.identified.map_or(0.0, |[low, high]| high - low);
        close(promise.cost, cost, 4.0 * promise.standard_error.hypot(error) + open, "expected cost");
    }
}

/// More rows in the leaves of the same trees estimate losses better. The trees are few and small, so that the leaves' noise is what differs.
#[test]
fn more_rows_value_leaves_better() {
    let error = |router: &Router| {
        let policy = router.policy(&task()).unwrap();
        let queries = world(2_000, 5, 23);
        let truth = |row: usize| match queries.features(row)[0] {
            x if x < 1.0 / 3.0 => {
                let p = queries.prediction(row)[0];
                2.0 * p * (1.0 - p)
            }
            _ => 0.0,
        };
        let squares = (0..queries.rows()).map(|row| {
            let decision = policy.decide_with(&queries.prediction(row), queries.features(row)).unwrap();
            (decision.irreducible().unwrap() - truth(row)).powi(2)
        });
        (squares.sum::<f64>() / queries.rows() as f64).sqrt()
    };
    let (mut own, mut other) = (0.0, 0.0);
    for seed in 0..4 {
        let grown = forest(&world(200, 2, 30 + seed), 10);
        own += error(&grown);
        other += error(&Router::calibrate_like(&world(10_000, 2, 40 + seed), &grown).unwrap());
    }
    assert!(other < 0.9 * own, "{other} with 10,000 rows in the leaves, {own} with 200");
}

#[test]
fn cap_keeps_the_weight_of_all_rows() {
    let (sample, rest) = (world(400, 5, 51), world(3_000, 5, 52));
    let grown = forest(&sample, 8);
    let mut part = Partial::like(&grown).unwrap().capped(Cap { rows: 30, seed: 1 }).unwrap();
    // In several batches, so that full cells refuse rows.
    let ids: Vec<u64> = (0..3_000).collect();
    for batch in 0..10 {
        let mine = rest.keep_rows(|row| row % 10 == batch);
        part.add_with_ids(&mine, &ids.iter().copied().filter(|id| *id as usize % 10 == batch).collect::<Vec<_>>())
            .unwrap();
    }
    let mut whole = Partial::like(&grown).unwrap().capped(Cap { rows: 30, seed: 1 }).unwrap();
    whole.add_with_ids(&rest, &ids).unwrap();
    let filled = part.finish().unwrap();
    assert_eq!(filled, whole.finish().unwrap());
    assert!(filled.rows().rows() <= 30 * grown.cells().count());
    close((0..filled.rows().rows()).map(|row| filled.rows().weight(row)).sum(), 3_000.0, 1e-6, "total weight");
}
