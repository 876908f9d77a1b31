//! Benefit 3: predict, route or abstain, against routers with only two of these actions. Routing costs 0.05; the price
//! of abstaining is swept.
//!
//! Data sets are evaluated by the mean of each row's labels, whose loss the plug-in estimates; `shrink` estimates the
//! loss under the distribution that the labels were drawn from. Both are measured.

use pointsman::evaluate::{Sweep, SweepAxis};
use pointsman::{Estimator, Loss, Policy, Replay};
use serde_json::{Map, Value, json};

use super::{two_way, variants};
use crate::error::Result;
use crate::problem::Problem;

pub(super) fn measure(problem: &Problem) -> Result<Value> {
    let prices: Vec<f64> = (2..=16).map(|i| f64::from(i) * 5.0 / 100.0).collect();
    let mut out = Map::new();
    for (name, router) in variants(&problem.calibration, &problem.partition)? {
        for (estimator, suffix) in [(Estimator::Shrink, ""), (Estimator::Plugin, "-plugin")] {
            for loss in [Loss::brier(), Loss::cross_entropy()] {
                let policy = router.policy(&two_way(&loss)?.estimator(estimator).abstain(prices[0])?)?;
                let replay = policy.replay_uncorrected(&problem.test)?;
                let swept = sweep(&policy, &replay, &prices)?;
                let variant = out.entry(format!("{name}{suffix}")).or_insert_with(|| json!({}));
                variant[loss.to_string()] = swept;
            }
        }
    }
    out.insert("abstain".into(), json!({ "prices": prices.iter().map(ToString::to_string).collect::<Vec<_>>() }));
    Ok(Value::Object(out))
}

/// Costs, shares, and the excess cost of the three-way router over the better two-way router with its standard error.
fn sweep(policy: &Policy, replay: &Replay, prices: &[f64]) -> Result<Value> {
    let points = replay.sweep(policy, &Sweep::new(SweepAxis::Abstain, prices.to_vec()))?;
    let (mut cost, mut share): (Map<String, Value>, Map<String, Value>) = (Map::new(), Map::new());
    let (mut excess, mut standard_error, mut standard_error_cost) = (Vec::new(), Vec::new(), Vec::new());
    let add = |map: &mut Map<String, Value>, name: &str, value: f64| {
        if let Value::Array(list) = map.entry(name).or_insert_with(|| json!([])) {
            list.push(json!(value));
        }
    };
    for point in &points {
        point.mean_cost.iter().for_each(|(name, value)| add(&mut cost, name, *value));
        point.shares.iter().for_each(|(name, value)| add(&mut share, name, *value));
        let three = policy.task().clone().abstain(point.price)?;
        let both = [three.clone().without_abstaining(), three.clone().without_routes()];
        let three = policy.reprice(&three)?;
        let mut excesses = Vec::new();
        for task in both {
            excesses.push(replay.difference(&three, &policy.reprice(&task)?)?);
        }
        // The better two-way router is the one with the largest excess.
        let largest = excesses.iter().max_by(|a, b| a.mean.total_cmp(&b.mean));
        excess.push(largest.map(|largest| largest.mean));
        standard_error.push(largest.and_then(|largest| largest.standard_error));
        standard_error_cost.push(replay.cost_of(&three)?.standard_error);
    }
    Ok(json!({
        "cost": cost,
        "share": share,
        "standard_error": standard_error_cost,
        "above_better_two_way": excess,
        "above_standard_error": standard_error,
    }))
}
