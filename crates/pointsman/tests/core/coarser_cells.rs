//! What coarser cells cost, in worlds whose truth is known.

use pointsman::{Loss, Oracle, Partition, Router, Task};

use crate::routing_worlds::{Features, Queries, World};
use crate::world::Rng;

/// Cells by two telling features know more than coarser ones by confidence. The costs of both rise and fall with the same rows, so that their
/// difference is known better than the costs.
#[test]
fn price_of_coarser_cells_is_judged_by_the_same_rows() {
    const WORLDS: usize = 8;
    let world = World { classes: 3, features: Features::Telling };
    let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.12).unwrap();
    let (mut rng, mut found) = (Rng::new(77), Vec::new());
    for _ in 0..WORLDS {
        let (table, queries) = (world.draw(&mut rng, 1200, 4), world.draw(&mut rng, 20_000, 1));
        let queries = Queries::new(queries, vec![task.clone()]);
        let fine = Router::calibrate(&table, &Partition::features([("f0", 6), ("f1", 6)])).unwrap();
        let now = fine.policy(&task).unwrap();
        for coarser in fine.coarser_cells(&task, 0.95).unwrap().partitions {
            let policy = Router::calibrate(&table, &coarser.partition).unwrap().policy(&task).unwrap();
            let (then, difference) = (coarser.promise.unwrap(), coarser.difference.unwrap());
            let now_promised = now.promise().unwrap();
            assert!((difference.estimate - (then.cost - now_promised.cost)).abs() < 1e-9, "{difference:?}");
            assert_eq!(difference.identified, None, "labels identify Brier losses");
            let truth = queries.cost_of(&policy, 0) - queries.cost_of(&now, 0);
            let error = difference.standard_error.unwrap();
            let unpaired = then.standard_error.hypot(now_promised.standard_error);
            found.push([truth, difference.estimate, error, unpaired]);
            assert!(difference.differing_rows > 100 && difference.differing_rows <= 1200, "{difference:?}");
        }
    }
    let count = found.len() as f64;
    let mean = |value: &dyn Fn(&[f64; 4]) -> f64| found.iter().map(value).sum::<f64>() / count;
    let [truth, bias] = [mean(&|it| it[0]), mean(&|it| it[1] - it[0])];
    let (error, unpaired) = (mean(&|it| it[2]), mean(&|it| it[3]));
    let covered = mean(&|it| f64::from(u8::from((it[1] - it[0]).abs() <= 2.0 * it[2])));
    let distinct = mean(&|it| f64::from(u8::from(it[1] > 2.0 * it[2])));
    let distinct_unpaired = mean(&|it| f64::from(u8::from(it[1] > 2.0 * it[3])));
    println!(
        "{count} coarser partitions: truth {truth:.4}, bias {bias:.4}, error {error:.4}, unpaired {unpaired:.4}, covered {covered:.2}, \
         distinct {distinct:.2}, unpaired {distinct_unpaired:.2}"
    );
    assert!(count >= 10.0, "{count}");
    assert!(truth > 0.0 && bias.abs() < 0.5 * error, "{truth}, {bias}");
    assert!(covered >= 0.85, "{covered}");
    assert!(error < 0.8 * unpaired, "{error} and {unpaired}");
    assert!(distinct > 0.8 && distinct > distinct_unpaired, "{distinct} and {distinct_unpaired}");
}
