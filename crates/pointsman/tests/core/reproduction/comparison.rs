//! Comparison of policies on the same held-out rows, in simulations of known truth.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use pointsman::evaluate::{Comparison, compare_policies};
use pointsman::{Loss, Oracle, Policy, Router, Table, Task};

use super::corrections::{POPULATION, three_kinds};
use crate::world::Rng;

fn task(loss: &str, price: f64) -> Task {
    Task::new(loss.parse().unwrap()).route("expert", Oracle::bayes(), price).unwrap()
}

/// Routers of one calibration table: cells by confidence, and cells by the feature that separates the kinds of items.
static TWO_ROUTERS: LazyLock<[Router; 2]> = LazyLock::new(|| {
    let (calibration, _) = three_kinds(&mut Rng::new(5), 1500, 3);
    ["confidence:4", "features:x_kind=8"].map(|cells| Router::calibrate(&calibration, &cells.parse().unwrap()).unwrap())
});

fn two_policies(loss: &str, price: f64) -> [Policy; 2] {
    TWO_ROUTERS.each_ref().map(|router| router.policy(&task(loss, price)).unwrap())
}

fn compared(policies: &[Policy], table: &Table) -> Comparison {
    let replays: Vec<_> = policies.iter().map(|policy| policy.replay(table).unwrap()).collect();
    compare_policies(replays.iter().enumerate().map(|(place, replay)| (place.to_string(), replay)), None).unwrap()
}

/// Held-out rows with `k` labels each, or with their true distributions.
#[derive(Clone, Copy)]
enum Judged {
    ByLabels(usize),
    ByTruth,
}

/// The number of intervals that cover the true difference, the mean standard error and the mean error.
fn covered(loss: &str, price: f64, judged: Judged, worlds: u64) -> (u64, f64, f64) {
    let policies = two_policies(loss, price);
    let truth = compared(&policies, &POPULATION).policies[1].difference.unwrap().estimate;
    assert!(truth < -0.02, "{loss}: the feature saves {truth}");
    let (mut covered, mut paired, mut apart, mut error) = (0, 0.0, 0.0, 0.0);
    for world in 0..worlds {
        let table = match judged {
            Judged::ByLabels(k) => three_kinds(&mut Rng::new(1000 + world), 400, k).0,
            Judged::ByTruth => three_kinds(&mut Rng::new(1000 + world), 400, 2).1,
        };
        let found = compared(&policies, &table);
        let difference = found.policies[1].difference.unwrap();
        let [low, high] = difference.interval.unwrap();
        covered += u64::from(low <= truth && truth <= high);
        error += difference.estimate - truth;
        paired += difference.standard_error.unwrap();
        apart += found.policies.iter().map(|it| it.standard_error.unwrap()).fold(0.0, f64::hypot);
    }
    assert!(paired < 0.8 * apart, "{loss}: what both share does not cancel");
    (covered, paired / worlds as f64, error / worlds as f64)
}

/// Numbers of covering intervals of nominal coverage 0.95 outside of these ranges have probability below 1 %.
const OF_300: RangeInclusive<u64> = 270..=294;
const OF_100: RangeInclusive<u64> = 88..=99;

/// Under losses other than Brier there is no unbiased estimate from few labels; the cross-entropy with three labels is tested below.
#[test]
fn paired_standard_errors_cover_the_true_difference() {
    for (loss, price, judged, name, worlds, expected) in [
        ("brier", 0.3, Judged::ByLabels(3), "three labels", 300, OF_300),
        ("cross-entropy", 0.5, Judged::ByLabels(10), "ten labels", 100, OF_100),
        ("cross-entropy", 0.5, Judged::ByTruth, "the truth", 300, OF_300),
    ] {
        let (covered, standard_error, error) = covered(loss, price, judged, worlds);
        println!(
            "{loss} by {name}: {covered} of {worlds} cover; standard error {standard_error:.4}, mean error {error:+.4}"
        );
        assert!(expected.contains(&covered), "{loss} by {name}: {covered} of {worlds}");
    }
}

/// Three labels do not identify the cross-entropy of rows that only one of two policies routes. The truth is within the identified bounds plus
/// 1.96 standard errors in at least nine of ten simulations.
#[test]
fn unidentified_part_of_a_difference_is_reported() {
    let policies = two_policies("cross-entropy", 0.5);
    let truth = compared(&policies, &POPULATION).policies[1].difference.unwrap();
    assert_eq!(truth.identified, None, "the truth is known");
    let (worlds, mut held, mut width) = (40, 0, 0.0);
    for world in 0..worlds {
        let (table, _) = three_kinds(&mut Rng::new(1000 + world), 400, 3);
        let found = compared(&policies, &table).policies[1].difference.unwrap();
        let ([low, high], error) = (found.identified.unwrap(), 1.96 * found.standard_error.unwrap());
        assert!(low <= found.estimate && found.estimate <= high, "{found:?}");
        held += u64::from(low - error <= truth.estimate && truth.estimate <= high + error);
        width += (high - low) / worlds as f64;
    }
    println!("{held} of {worlds} hold, mean width {width:.3} around {:.3}", truth.estimate);
    assert!(10 * held >= 9 * worlds, "{held} of {worlds}");
    assert!(width < 0.4, "{width}");
    // Two labels identify the Brier loss.
    let (table, _) = three_kinds(&mut Rng::new(9), 400, 3);
    assert_eq!(compared(&two_policies("brier", 0.3), &table).policies[1].difference.unwrap().identified, None);
}

/// The costs of two models are corrected alike, also if the items with one label have a confidence of their own under one of them.
#[test]
fn subtracted_costs_use_the_same_correction() {
    let mut rng = Rng::new(61);
    let (mut votes, mut probs) = (Vec::new(), [Vec::new(), Vec::new()]);
    for row in 0..1_200 {
        let k = if row % 2 == 0 { 3 } else { 1 };
        votes.extend(rng.votes(&[0.7, 0.3], k));
        let any = 0.6 + 0.3 * rng.uniform();
        let telling = if k == 1 { 0.9 + 0.05 * rng.uniform() } else { 0.6 + 0.2 * rng.uniform() };
        [any, telling].into_iter().zip(&mut probs).for_each(|(p, probs)| probs.extend([p, 1.0 - p]));
    }
    let tables = probs.map(|probs| Table::new(["a", "b"], probs).unwrap().with_votes(votes.clone()).unwrap());
    let replays = tables.each_ref().map(|table| {
        let router = Router::calibrate(table, &"confidence:2".parse().unwrap()).unwrap();
        router.policy(&task("brier", 0.1)).unwrap().replay(table).unwrap()
    });
    let alone = compare_policies([("a", &replays[0]), ("again", &replays[0])], None).unwrap();
    assert!(alone.policies.iter().all(|it| it.corrected));
    let found = compare_policies([("a", &replays[0]), ("b", &replays[1])], None).unwrap();
    assert!(found.policies.iter().all(|it| it.corrected), "{found:?}");
    let [a, b] = [0, 1].map(|place| found.policies[place].cost.unwrap());
    assert!((found.policies[1].difference.unwrap().estimate - (b - a)).abs() < 1e-12);
}

#[test]
fn compared_costs_and_shares_equal_those_of_an_evaluation() {
    let (held_out, known) = three_kinds(&mut Rng::new(9), 500, 3);
    let policies = two_policies("brier", 0.3);
    for (table, corrected) in [(&held_out, true), (&known, false)] {
        let found = compared(&policies, table);
        assert_eq!((found.rows, found.baseline.as_str()), (500, "0"));
        for (policy, it) in policies.iter().zip(&found.policies) {
            let evaluation = policy.replay(table).unwrap().evaluate(policy).unwrap();
            assert_eq!(it.cost, evaluation.best_costs().get("router").copied());
            assert_eq!(it.standard_error, *evaluation.best_standard_error().get("router").unwrap());
            assert_eq!((&it.shares, it.corrected), (&evaluation.shares, corrected));
        }
        let [first, second] = &found.policies[..] else { panic!("{found:?}") };
        assert_eq!((first.difference, first.same_loss), (None, true));
        let difference = second.cost.unwrap() - first.cost.unwrap();
        assert!((second.difference.unwrap().estimate - difference).abs() < 1e-12);
    }
}

/// Costs in nats and in errors have no difference, but shares can be compared.
#[test]
fn policies_of_different_losses_have_no_difference() {
    let [router, _] = &*TWO_ROUTERS;
    let (held_out, _) = three_kinds(&mut Rng::new(9), 300, 3);
    let matrix = |named: bool| {
        let matrix = Loss::matrix(["a", "b"], vec![vec![0.0, 1.0, 2.0], vec![1.0, 0.0, 0.0]]).unwrap();
        if named { matrix.with_classes(router.classes()).unwrap() } else { matrix }
    };
    let losses = ["brier".parse().unwrap(), "cross-entropy".parse().unwrap(), matrix(true), matrix(false)];
    let policies: Vec<Policy> = losses
        .into_iter()
        .map(|loss| {
            let task = Task::new(loss).route("expert", Oracle::bayes(), 0.2).unwrap();
            router.policy(&task).unwrap()
        })
        .collect();
    let found = compared(&policies, &held_out);
    let same: Vec<bool> = found.policies.iter().map(|it| it.same_loss).collect();
    assert_eq!(same, [true, false, false, false]);
    assert!(found.policies[1..].iter().all(|it| it.difference.is_none() && it.shares.get("predict").is_some()));
    let replays: Vec<_> = policies.iter().map(|policy| policy.replay(&held_out).unwrap()).collect();
    let named = ["brier", "log", "named", "unnamed"].into_iter().zip(&replays);
    let found = compare_policies(named, Some("named")).unwrap();
    assert!(found.policies[3].same_loss, "the same costs under the same classes are the same loss");
    assert_eq!(found.policies[3].difference.unwrap().estimate, 0.0);
}

/// Classes in another order are the same classes, unless the loss depends on their order.
#[test]
fn routers_may_have_their_classes_in_another_order() {
    let (calibration, _) = three_kinds(&mut Rng::new(5), 600, 3);
    let (held_out, _) = three_kinds(&mut Rng::new(9), 300, 3);
    let order: Vec<String> = calibration.classes().iter().rev().cloned().collect();
    let cells = "confidence:4".parse().unwrap();
    let tables = [calibration.clone(), calibration.in_order_of(&order).unwrap()];
    for (loss, same) in [("brier", true), ("asymmetric:2", false)] {
        let [one, other] = tables.each_ref().map(|table| {
            let policy = Router::calibrate(table, &cells).unwrap().policy(&task(loss, 0.3)).unwrap();
            policy.replay(&held_out.in_order_of(table.classes()).unwrap()).unwrap()
        });
        let found = compare_policies([("one", &one), ("other", &other)], None).unwrap();
        assert_eq!(found.policies[1].same_loss, same, "{loss}");
        if same {
            assert!(found.policies[1].difference.unwrap().estimate.abs() < 1e-12);
        }
    }
}

/// One label per item identifies the loss of predictions, but not that of a Bayes-optimal oracle.
#[test]
fn one_label_does_not_identify_the_cost_of_routing() {
    let [router, _] = &*TWO_ROUTERS;
    let (held_out, _) = three_kinds(&mut Rng::new(9), 300, 1);
    let predict = router.policy(&Task::new(Loss::brier())).unwrap();
    let route = router.policy(&task("brier", 0.0)).unwrap();
    let found = compared(&[predict, route], &held_out);
    assert!(found.policies[0].cost.is_some() && found.policies[1].cost.is_none());
    assert_eq!(found.policies[1].difference, None);
}

#[test]
fn invalid_comparisons_are_refused() {
    let [router, _] = &*TWO_ROUTERS;
    let policy = router.policy(&task("brier", 0.3)).unwrap();
    let [one, other] = [300, 301].map(|rows| policy.replay(&three_kinds(&mut Rng::new(9), rows, 3).0).unwrap());
    let reason = |pairs: &[(&str, &pointsman::Replay)], baseline: Option<&str>| {
        compare_policies(pairs.iter().copied(), baseline).unwrap_err().to_string()
    };
    assert!(reason(&[("a", &one)], None).contains("give two or more"));
    assert!(reason(&[("a", &one), ("a", &one)], None).contains("two policies are called \"a\""));
    assert!(reason(&[("a", &one), ("b", &one)], Some("c")).contains("there are: a, b"));
    assert!(reason(&[("a", &one), ("b", &other)], None).contains("different rows"));
    // The same number of rows with the same weights but other labels.
    let other = policy.replay(&three_kinds(&mut Rng::new(10), 300, 3).0).unwrap();
    assert!(reason(&[("a", &one), ("b", &other)], None).contains("different rows"));
}
