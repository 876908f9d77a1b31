//! Certificates, losses of cells and promises of tables in which some items have one label.

use pointsman::oracle::Aggregate;
use pointsman::{CellId, Decomposition, Loss, Oracle, Partition, Router, Task};

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

/// Rows of three classes, a third of each, whose truth is the same up to the order of classes. Rows of the last class have one label each.
fn last_class_with_one_label(rng: &mut Rng, items: usize, truth: [f64; 3]) -> pointsman::Table {
    let (mut probs, mut votes) = (Vec::new(), Vec::new());
    for item in 0..items {
        let (class, sharp) = (item % 3, 0.5 + 0.4 * rng.uniform());
        let turned = |p: [f64; 3]| -> Vec<f64> { (0..3).map(|c| p[(c + 3 - class) % 3]).collect() };
        probs.push(turned([sharp, 0.6 * (1.0 - sharp), 0.4 * (1.0 - sharp)]));
        votes.push(rng.votes(&turned(truth), if class == 2 { 1 } else { 3 }));
    }
    table(3, &probs, &votes)
}

fn panel(aggregate: Aggregate) -> Oracle {
    Oracle::panel(3, aggregate).unwrap()
}

/// A pooled cell whose rows have one label each keeps a panel's loss: no query is undetermined.
#[test]
fn panels_are_known_in_pooled_cells_of_one_label_items() {
    let table = last_class_with_one_label(&mut Rng::new(8), 900, [0.7, 0.2, 0.1]);
    let router = Router::calibrate(&table, &Partition::pooled()).unwrap();
    for loss in [Loss::brier(), Loss::zero_one()] {
        let task = Task::new(loss.clone()).route("panel", panel(Aggregate::Mean), 0.05).unwrap();
        let policy = router.policy(&task).unwrap();
        for cell in (0..router.cells().count() as u32).filter_map(|cell| policy.cell(CellId(cell))) {
            assert!(cell.costs().iter().all(|cost| cost.is_finite()) && cell.costs() == cell.costs_high(), "{loss}");
            assert!(cell.estimate().oracles[0][0] >= cell.estimate().irreducible_low - 1e-12, "{loss}");
        }
        let promise = policy.promise().unwrap();
        assert!(promise.always.get("route:panel").unwrap().is_finite(), "{loss}: {promise:?}");
        assert!(promise.shares.get("undetermined").is_none(), "{loss}: {promise:?}");
    }
}

/// In a cell whose rows have one label each, a panel loses about what it loses on rows of several labels with the same truth.
#[test]
fn panels_lose_as_much_in_cells_of_one_label_items() {
    let truth = [0.6, 0.3, 0.1];
    for (loss, aggregate) in [
        (Loss::zero_one(), Aggregate::Plurality),
        (Loss::zero_one(), Aggregate::Mean),
        (Loss::cross_entropy(), Aggregate::Laplace(1.0)),
    ] {
        let oracle = panel(aggregate);
        let expected = oracle.cost(&loss, &truth).unwrap();
        let task = Task::new(loss.clone()).route("panel", oracle, 0.05).unwrap();
        let mut errors = Vec::new();
        for world in 0..20 {
            let table = last_class_with_one_label(&mut Rng::new(world), 600, truth);
            let policy = Router::calibrate(&table, &Partition::top_class(1)).unwrap().policy(&task).unwrap();
            let found: &Decomposition = policy.cell(CellId(2)).unwrap().estimate();
            assert!(
                found.oracles[0][0] >= found.irreducible_low && found.is_known(),
                "{loss} {aggregate:?}: {found:?}"
            );
            errors.push(found.oracles[0][0] - expected);
        }
        let mean = errors.iter().sum::<f64>() / 20.0;
        let error = (errors.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 19.0 / 20.0).sqrt();
        println!("{loss} {aggregate:?}: {expected:.4}, wrong by {mean:.4} ± {error:.4}");
        assert!(mean.abs() < 0.02, "{loss} {aggregate:?}: wrong by {mean} ± {error}");
    }
}

/// Cells of few one-label rows borrow the irreducible loss whether their labels agree or not.
#[test]
fn cells_whose_single_labels_agree_borrow_the_irreducible_loss() {
    let (truth, mut rng, mut found) = ([0.95, 0.025, 0.025], Rng::new(12), [0.0; 2]);
    let expected = 1.0 - truth.iter().map(|p| p * p).sum::<f64>();
    let draw = |rng: &mut Rng, class: usize, labels: usize| {
        let turned = |p: [f64; 3]| -> Vec<f64> { (0..3).map(|c| p[(c + 3 - class) % 3]).collect() };
        (turned([0.9, 0.05, 0.05]), rng.votes(&turned(truth), labels))
    };
    for _ in 0..40 {
        // Eight items of the second class, with one label each.
        let rows = (0..308).map(|item| if item < 300 { draw(&mut rng, 0, 3) } else { draw(&mut rng, 1, 1) });
        let (probs, votes): (Vec<Vec<f64>>, Vec<Vec<u32>>) = rows.unzip();
        let table = table(3, &probs, &votes);
        for (found, partition) in found.iter_mut().zip([Partition::top_class(1), Partition::confidence(1)]) {
            let policy = Router::calibrate(&table, &partition).unwrap().policy(&task()).unwrap();
            let cell = u32::from(partition == Partition::top_class(1));
            *found += policy.cell(CellId(cell)).unwrap().irreducible().unwrap() / 40.0;
        }
    }
    println!("{expected}: {found:?}");
    assert!(found.iter().all(|found| (found - expected).abs() < 0.01), "{expected}: {found:?}");
}

/// If only items with one label are routed, their labels bound the loss by the widest range.
#[test]
fn promises_state_bounds_if_routed_items_have_one_label() {
    let mut rng = Rng::new(5);
    let mut draw = |item: usize| {
        let is_clear = item.is_multiple_of(2);
        let truth = if is_clear { [0.97, 0.03] } else { [0.6, 0.4] };
        (if is_clear { vec![0.97, 0.03] } else { vec![0.52, 0.48] }, rng.votes(&truth, if is_clear { 3 } else { 1 }))
    };
    let (probs, votes): (Vec<Vec<f64>>, Vec<Vec<u32>>) = (0..600).map(&mut draw).unzip();
    let router = Router::calibrate(&table(2, &probs, &votes), &Partition::confidence(2)).unwrap();
    let task = Task::new(Loss::cross_entropy()).route("expert", Oracle::bayes(), 0.05).unwrap();
    let policy = router.policy(&task).unwrap();
    let promise = policy.promise().unwrap();
    assert_eq!(promise.shares.get("route:expert"), Some(&0.5), "{promise:?}");
    let [low, high] = promise.identified.expect("bounds");
    // The loss of a routed item is between 0 and ln 2.
    assert!(low <= promise.cost && promise.cost <= high && high - low > 0.2, "{promise:?}");
}

/// The bounds lie around the promised cost, in which routed items with one label are as noisy as routed items with several.
#[test]
fn identified_bounds_lie_around_the_promised_cost() {
    // Only a feature tells clear items from ambiguous ones; too few items have several labels to learn from it how noisy the others are.
    let (items, mut widest, mut differences) = (240, 0.0_f64, Vec::new());
    for seed in 0..12 {
        let mut rng = Rng::new(seed);
        let is_clear = |item: usize| item.is_multiple_of(2);
        let truth = |item: usize| if is_clear(item) { [0.95, 0.05] } else { [0.5, 0.5] };
        let votes: Vec<Vec<u32>> = (0..items).map(|i| rng.votes(&truth(i), if i % 5 < 3 { 1 } else { 5 })).collect();
        let features = (0..items).map(|item| f64::from(u8::from(is_clear(item)))).collect();
        let table = table(2, &vec![vec![0.6, 0.4]; items], &votes).with_features(["clear"], features).unwrap();
        let router = Router::calibrate(&table, &"features:clear=2".parse().unwrap()).unwrap();
        let task =
            Task::new(Loss::cross_entropy()).route("expert", Oracle::bayes(), 0.05).unwrap().abstain(0.4).unwrap();
        let promise = router.policy(&task).unwrap().promise().unwrap();
        assert_eq!(promise.shares.get("route:expert"), Some(&0.5), "{promise:?}");
        let [low, high] = promise.identified.unwrap();
        widest = widest.max(high - low);
        differences.push(low.midpoint(high) - promise.cost);
    }
    let mean = differences.iter().sum::<f64>() / 12.0;
    // With the mean noise of all items of this confidence, the lower bounds would be too low by 0.07.
    assert!(widest < 0.03 && mean.abs() < 0.01, "{widest} {mean}");
}
