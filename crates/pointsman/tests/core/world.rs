//! Shared by the tests: a seeded generator, points of the simplex, all losses, and tables of known truth.

use pointsman::{Action, CellId, Estimator, Loss, Partition, Policy, Router, Table, Task};
use proptest::collection::vec;
use proptest::prelude::*;

pub(crate) use pointsman_testing::Rng;

pub(crate) fn normalised(mut p: Vec<f64>) -> Vec<f64> {
    let sum: f64 = p.iter().sum();
    p.iter_mut().for_each(|x| *x /= sum);
    p
}

/// Points of the simplex: smooth ones, ones with zeros and tiny entries, and snapshot means with many ties.
pub(crate) fn dist(classes: usize) -> impl Strategy<Value = Vec<f64>> {
    let smooth = vec(0.0..1.0, classes);
    let tiny = vec(prop_oneof![Just(0.0), 1e-9..1e-5, 0.0..1.0], classes);
    let snapshot = vec((0_u32..6).prop_map(f64::from), classes);
    prop_oneof![smooth, tiny, snapshot]
        .prop_filter("not all zero", |p| p.iter().sum::<f64>() > 0.0)
        .prop_map(normalised)
}

/// A cost matrix of random shape with some equal costs.
pub(crate) fn cost_matrix(classes: usize) -> impl Strategy<Value = Loss> {
    let cost = prop_oneof![0.0..5.0, (0_u32..5).prop_map(f64::from)];
    vec(vec(cost, classes), 1..5)
        .prop_map(|cost| Loss::matrix((0..cost.len()).map(|act| format!("act {act}")), cost).unwrap())
}

/// All losses for a number of classes.
pub(crate) fn any_loss(classes: usize) -> impl Strategy<Value = Loss> {
    let mut named = vec![Loss::brier(), Loss::cross_entropy(), Loss::spherical(), Loss::zero_one()];
    named.extend([0.0, 0.5, 3.0].map(|penalty| Loss::asymmetric(penalty).unwrap()));
    if classes == 2 {
        named.extend([(1.0, 3.0), (2.0, 0.5), (0.0, 1.0)].map(|(fp, fn_)| Loss::fn_fp(fp, fn_).unwrap()));
        named.push(Loss::three_part());
    }
    prop_oneof![3 => proptest::sample::select(named), 1 => cost_matrix(classes)]
}

pub(crate) const CLASS_NAMES: [&str; 5] = ["ant", "bee", "cat", "dog", "elk"];

/// A table with these predictions and votes.
pub(crate) fn table(classes: usize, probs: &[Vec<f64>], votes: &[Vec<u32>]) -> Table {
    Table::new(CLASS_NAMES[..classes].to_vec(), probs.concat()).unwrap().with_votes(votes.concat()).unwrap()
}

/// Items of one cell with known truth, with every possible vote weighted by its probability: an infinite sample.
///
/// Each item is (share, p*, f), with `k` labels.
pub(crate) fn population(items: &[(f64, Vec<f64>, Vec<f64>)], ks: &[(f64, u32)]) -> Table {
    let classes = items[0].1.len();
    let (mut probs, mut votes, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for (share, p, f) in items {
        for &(k_share, k) in ks {
            for counts in compositions(k, classes) {
                let chance = multinomial(&counts, p);
                if chance > 0.0 {
                    probs.push(f.clone());
                    votes.push(counts);
                    weights.push(share * k_share * chance);
                }
            }
        }
    }
    table(classes, &probs, &votes).with_weights(weights).unwrap()
}

/// All count vectors of `k` labels.
pub(crate) fn compositions(k: u32, classes: usize) -> Vec<Vec<u32>> {
    if classes == 1 {
        return vec![vec![k]];
    }
    (0..=k)
        .flat_map(|first| {
            compositions(k - first, classes - 1).into_iter().map(move |mut rest| {
                rest.insert(0, first);
                rest
            })
        })
        .collect()
}

pub(crate) fn multinomial(counts: &[u32], p: &[f64]) -> f64 {
    let mut chance = 1.0;
    let mut left: u32 = counts.iter().sum();
    for (&n, x) in counts.iter().zip(p) {
        for i in 0..n {
            chance *= f64::from(left - i) / f64::from(n - i) * x;
        }
        left -= n;
    }
    chance
}

/// A policy with one cell of all rows.
pub(crate) fn one_cell(table: &Table, loss: &Loss, estimator: Estimator) -> Policy {
    let router = Router::calibrate(table, &Partition::confidence(1)).unwrap();
    router.policy(&Task::new(loss.clone()).estimator(estimator)).unwrap()
}

/// The irreducible loss of one cell of all rows.
pub(crate) fn irreducible(table: &Table, loss: &Loss, estimator: Estimator) -> f64 {
    one_cell(table, loss, estimator).cell(CellId(0)).unwrap().irreducible().unwrap()
}

/// All outputs of a decision, costs as bits.
pub(crate) type Said = (String, Vec<u64>, Vec<u64>, u64, u32, usize, &'static str, &'static str);

pub(crate) fn said(decision: pointsman::Decision<'_>) -> Said {
    let bits = |costs: &[f64]| costs.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    (
        decision.action().to_string(),
        bits(decision.costs()),
        bits(decision.costs_high()),
        decision.margin().to_bits(),
        decision.cell().0,
        decision.rows(),
        decision.support().name(),
        decision.level().name(),
    )
}

/// The index of an action in `Decision::costs`.
pub(crate) fn position(policy: &Policy, action: Action<'_>) -> Option<usize> {
    let routes = policy.task().routes();
    match action {
        Action::Predict => Some(0),
        Action::Route(name) => routes.iter().position(|route| route.name() == name).map(|i| i + 1),
        Action::Abstain => Some(routes.len() + 1),
        Action::Undetermined => None,
    }
}

pub(crate) fn close(found: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((found - expected).abs() <= tolerance, "{what}: found {found}, expected {expected}");
}
