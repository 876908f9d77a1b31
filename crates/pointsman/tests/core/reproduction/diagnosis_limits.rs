//! Diagnoses of tasks with a budget or target loss, in simulations with known answers.

use pointsman::diagnose::diagnose;
use pointsman::diagnose::{Advice, AtLimit, Estimate, Worth};
use pointsman::{Diagnosis, Loss, Oracle, Partition, Task};

use crate::diagnosis::{error_alone, look, noise_then_error, world};
use crate::world::{Rng, close};

fn free() -> Task {
    Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.0).unwrap()
}

fn worth(found: &Diagnosis) -> (&Worth, &AtLimit) {
    let worth = found.worth.as_ref().unwrap();
    (worth, worth.limit.as_ref().unwrap())
}

fn holds(interval: &Estimate, truth: f64) -> bool {
    interval.low <= truth && truth <= interval.high
}

/// Twice the integral of 2c(1 − c) from 0: the loss of confidences up to c if they are uniform on [½, 1].
fn lost_up_to(c: f64) -> f64 {
    4.0 * (c * c / 2.0 - c * c * c / 3.0)
}

/// The model errs at confidences between 0.7 and 0.8; elsewhere annotators disagree as it predicts.
fn error_in_the_middle(rng: &mut Rng, confidence: f64) -> f64 {
    if (0.7..0.8).contains(&confidence) { error_alone(rng, confidence) } else { confidence }
}

/// The loss of predicting, and the saving of routing a tenth of all queries where the model errs. Ranking by total uncertainty starts with
/// irreducible loss and saves nothing.
fn truth() -> [f64; 2] {
    [lost_up_to(1.0) - lost_up_to(0.5), (lost_up_to(0.8) - lost_up_to(0.7)) / 2.0]
}

#[test]
fn every_rule_spends_its_budget_and_savings_match_the_truth() {
    for k in [3, 10] {
        let found = look(&world(11, 1500, k, error_in_the_middle), &free().budget(0.1).unwrap());
        assert_eq!(found.verdict.advice, Advice::UseIt, "{:?}", found.verdict);
        assert!(found.verdict.sentence.contains("at most 10 % routed"), "{:?}", found.verdict);
        let (worth, limit) = worth(&found);
        let saved = worth.savings.as_ref().unwrap().get("total-uncertainty").unwrap();
        assert!(holds(saved, truth()[1]) && saved.high - saved.low < 0.03, "{saved:?}, {:?}", truth());
        close(limit.routed.get("router").unwrap().estimate, 0.1, 1e-9, "share routed");
        assert!(limit.routed.get("total-uncertainty").unwrap().estimate <= 0.1 + 1e-9, "{limit:?}");
        // Always routing does not keep a budget; always predicting does.
        let costs = worth.costs.as_ref().unwrap();
        assert!(costs.get("always-route:expert").is_none() && costs.get("always-predict").is_some(), "{costs:?}");
        assert_eq!(limit.missed.iter().map(|(_, missed)| *missed).sum::<usize>(), 0);
        assert!(found.enough.stability.unwrap() > 0.7, "{:?}", found.enough);
        assert!(found.enough.partitions.iter().all(|other| other.routed.is_some_and(|share| share <= 0.1 + 1e-9)));
    }
}

#[test]
fn target_loss_is_reached_with_least_routing() {
    let [base, saved] = truth();
    let target = base - saved;
    let found = look(&world(12, 2000, 5, error_in_the_middle), &free().target_loss(target).unwrap());
    let (worth, limit) = worth(&found);
    let routed = limit.routed.get("router").unwrap();
    assert!(holds(routed, 0.1) && routed.high - routed.low < 0.15, "{routed:?}");
    // Total uncertainty first routes irreducible loss, then as much as is still needed.
    let beyond = (0..1000).map(|i| 0.7 + f64::from(i) / 1e4).find(|&c| lost_up_to(c) - lost_up_to(0.7) >= saved);
    let (usual, beyond) = (limit.routed.get("total-uncertainty").unwrap(), beyond.unwrap());
    assert!(holds(usual, 2.0 * (beyond - 0.5)), "{usual:?} {beyond}");
    assert_eq!(found.verdict.advice, Advice::UseIt, "{:?}", found.verdict);
    assert!(found.verdict.sentence.contains("lose no more than 0.29"), "{:?}", found.verdict);
    let costs = worth.costs.as_ref().unwrap();
    assert!(costs.get("always-predict").is_none() && costs.get("always-route:expert").is_some(), "{costs:?}");
    close(costs.get("router").unwrap().estimate, target, 1e-4, "at no price the cost is the loss");
}

/// Intervals have about nominal coverage, and a rule that is no better than the best threshold does not get the verdict to use it.
#[test]
fn intervals_at_a_limit_cover_the_truth() {
    let [base, saved] = truth();
    let (mut budget, mut target, mut needless) = (0, 0, 0);
    for seed in 0..20 {
        let table = world(500 + seed, 600, 4, error_in_the_middle);
        let found = look(&table, &free().budget(0.1).unwrap());
        let cost = worth(&found).0.costs.as_ref().unwrap().get("router").unwrap();
        budget += usize::from(holds(cost, base - saved));
        let found = look(&table, &free().target_loss(base - saved).unwrap());
        target += usize::from(worth(&found).1.routed.get("router").is_some_and(|routed| holds(routed, 0.1)));
        let found = look(&world(600 + seed, 300, 4, error_alone), &free().budget(0.3).unwrap());
        needless += usize::from(found.verdict.advice == Advice::UseIt);
    }
    assert!(budget >= 18 && target >= 17 && needless <= 1, "{budget} and {target} of 20, {needless} needless");
}

/// Two thresholds can abstain on noise and route errors, so the router has no advantage.
#[test]
fn thresholds_may_abstain_above_the_routed_range() {
    let task = free().abstain(0.4).unwrap().budget(0.2).unwrap();
    let found = look(&world(13, 1500, 5, noise_then_error), &task);
    let (worth, limit) = worth(&found);
    let saved = worth.savings.as_ref().unwrap().get("total-uncertainty").unwrap();
    assert!(saved.low < 0.01 && saved.estimate.abs() < 0.01, "{saved:?}");
    assert!(limit.routed.get("total-uncertainty").unwrap().estimate > 0.15, "{limit:?}");
}

#[test]
fn limits_at_the_ends_of_their_range_do_not_bind() {
    let table = world(14, 600, 5, noise_then_error);
    let priced = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.1).unwrap();
    let cost = |task: &Task, rule: &str| {
        let costs = look(&table, task).worth.unwrap().costs.unwrap();
        costs.get(rule).map(|cost| cost.estimate)
    };
    // Everything may be routed: the router does the same as without a limit, and always routing is allowed.
    let all = priced.clone().budget(1.0).unwrap();
    close(cost(&all, "router").unwrap(), cost(&priced, "router").unwrap(), 1e-9, "router");
    assert_eq!(cost(&all, "always-route:expert"), cost(&priced, "always-route:expert"));
    // Nothing may be routed: every rule predicts.
    let none = priced.clone().budget(0.0).unwrap();
    close(cost(&none, "router").unwrap(), cost(&none, "always-predict").unwrap(), 1e-12, "no budget");
    close(cost(&none, "total-uncertainty").unwrap(), cost(&none, "always-predict").unwrap(), 1e-12, "no budget");
    // A target that predicting reaches needs no routing, and no router.
    let found = look(&table, &priced.target_loss(0.6).unwrap());
    assert_eq!(found.verdict.advice, Advice::NoNeed, "{:?}", found.verdict);
    assert_eq!(worth(&found).1.routed.get("router").unwrap().estimate, 0.0);
}

#[test]
fn missed_targets_are_reported() {
    let table = world(15, 600, 5, noise_then_error);
    let ask = |task: &Task| diagnose(&table, task, &Partition::top_class(5), || ());
    let error = ask(&free().target_loss(0.1).unwrap()).unwrap_err().to_string();
    assert!(error.contains("no routing reaches a loss of 0.1") && error.contains("leaves"), "{error}");
    let error = ask(&Task::new(Loss::brier()).budget(0.1).unwrap()).unwrap_err().to_string();
    assert!(error.contains("route"), "{error}");
    // Just feasible on the whole table: some halves miss it.
    let nearest: f64 = {
        let error = ask(&free().target_loss(0.1).unwrap()).unwrap_err().to_string();
        error.split("leaves ").nth(1).unwrap().split(';').next().unwrap().parse().unwrap()
    };
    let found = ask(&free().target_loss(nearest).unwrap()).unwrap();
    let (worth, limit) = worth(&found);
    assert!(worth.costs.is_none() && *limit.missed.get("router").unwrap() > 0, "{limit:?}");
    assert!(limit.routed.iter().next().is_none() && worth.gain_over_total_uncertainty.is_some());
    assert!(found.verdict.remarks.iter().any(|remark| remark.contains("does not reach a loss")), "{:?}", found.verdict);
    // With one label per item there are only bounds, as without a limit.
    let single = world(16, 600, 1, noise_then_error);
    for task in [free().budget(0.2).unwrap(), free().target_loss(0.1).unwrap()] {
        let found = look(&single, &task);
        assert_eq!(found.verdict.advice, Advice::OneLabel);
        assert!(found.bounds.is_some());
    }
}

#[test]
fn weight_two_equals_a_repeated_row() {
    // A row of weight two is two rows, as far as halves can be equal; here all rows have weight two.
    let table = world(17, 400, 5, noise_then_error);
    let heavy = table.clone().with_weights(vec![2.0; 400]).unwrap();
    let task = free().budget(0.3).unwrap();
    let cost = |found: &Diagnosis| worth(found).0.costs.as_ref().unwrap().get("total-uncertainty").unwrap().estimate;
    close(cost(&look(&table, &task)), cost(&look(&heavy, &task)), 1e-12, "weights of two");
}
