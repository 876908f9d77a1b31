//! Certificates of tables in which some items have one label.

use pointsman::{Loss, Oracle, Partition, Router, Task};

use crate::world::{Rng, table};

/// Rows with one prediction, whose truths are clear or ambiguous, and their reducible loss.
fn rows(rng: &mut Rng, items: usize, labels: impl Fn(usize) -> usize) -> Router {
    let draw = |item: usize| {
        let truth = if rng.below(2) == 0 { [0.95, 0.05] } else { [0.4, 0.6] };
        rng.votes(&truth, labels(item))
    };
    let votes: Vec<Vec<u32>> = (0..items).map(draw).collect();
    Router::calibrate(&table(2, &vec![vec![0.8, 0.2]; items], &votes), &Partition::confidence(1)).unwrap()
}

fn task() -> Task {
    Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05).unwrap()
}

/// Items with one label do not widen the interval of the reducible loss by more than the division of the error probability, and the interval covers.
#[test]
fn one_label_items_do_not_widen_certificates() {
    // Half of the items have p = (.95, .05), half (.4, .6): 2(.15² + .4²)/2.
    let truth = 0.15 * 0.15 + 0.4 * 0.4;
    let (mut rng, mut misses) = (Rng::new(51), 0);
    for _ in 0..40 {
        let seed = rng.bits();
        let certified = |router: Router| router.certificate(&task(), 0.9).unwrap().cells()[0].clone();
        let several = certified(rows(&mut Rng::new(seed), 600, |_| 3));
        let mixed = certified(rows(&mut Rng::new(seed), 900, |item| if item < 600 { 3 } else { 1 }));
        misses += usize::from(!mixed.reducible().contains(truth));
        let (width, without) = (mixed.reducible().width(), several.reducible().width());
        assert!(width < 1.2 * without, "{width} with items of one label, {without} without them");
    }
    assert!(misses <= 4, "{misses} of 40 intervals do not cover at 0.9 confidence");
}

/// A table with few items of several labels has the bounds of all items.
#[test]
fn few_items_with_several_labels_do_not_widen_certificates() {
    let single = rows(&mut Rng::new(7), 900, |_| 1).certificate(&task(), 0.9).unwrap().cells()[0].clone();
    let few = rows(&mut Rng::new(7), 900, |item| if item < 3 { 2 } else { 1 });
    let few = few.certificate(&task(), 0.9).unwrap().cells()[0].clone();
    assert!(few.irreducible().width() < 1.1 * single.irreducible().width());
    assert!(few.total().width() < 1.1 * single.total().width());
    assert!(few.irreducible().contains(0.5 * (2.0 * 0.95 * 0.05) + 0.5 * (2.0 * 0.4 * 0.6)));
}

/// Half of the items are clear and half ambiguous, as only a feature tells; half of them have one label. A router that routes the clear ones and
/// abstains on the others is charged with the noise of the clear ones only.
#[test]
fn expected_and_held_out_costs_are_right_if_a_feature_explains_the_noise_of_one_label_items() {
    // Routing a clear item costs 2·0.95·0.05 + 0.05, abstaining 0.3.
    let truth = 0.5 * (2.0 * 0.95 * 0.05 + 0.05) + 0.5 * 0.3;
    let task = task().abstain(0.3).unwrap();
    let (mut rng, mut errors) = (Rng::new(36), Vec::new());
    for _ in 0..12 {
        let mut draw = |items: usize| {
            let kinds: Vec<usize> = (0..items).map(|_| rng.below(2)).collect();
            let truths = [[0.95, 0.05], [0.5, 0.5]];
            let labels: Vec<usize> = (0..items).map(|_| 1 + 2 * rng.below(2)).collect();
            let votes: Vec<Vec<u32>> =
                kinds.iter().zip(&labels).map(|(&kind, &labels)| rng.votes(&truths[kind], labels)).collect();
            let features = kinds.iter().map(|&kind| kind as f64).collect();
            table(2, &vec![vec![0.6, 0.4]; items], &votes).with_features(["kind"], features).unwrap()
        };
        let (calibration, held_out) = (draw(800), draw(800));
        let router = Router::calibrate(&calibration, &"features:kind=2".parse().unwrap()).unwrap();
        let policy = router.policy(&task).unwrap();
        let found = policy.replay(&held_out).unwrap().evaluate(&policy).unwrap();
        errors.push(found.corrected_cost.unwrap().get("router").unwrap() - truth);
        errors.push(policy.promise().unwrap().cost - truth);
    }
    // With the mean noise of all rows of this confidence they would be too high by 0.05.
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    assert!(mean.abs() < 0.005, "wrong by {mean} on average: {errors:?}");
}
