//! The paper's claims, each decided from the numbers by a written rule.
//!
//! The rules of claims 1 to 7 were written before any numbers were known, those of 8 and 9 before their experiment was
//! run. Other readings are reported next to a verdict and named as such.

mod data_sets;
mod decisions;
mod worlds;

use std::collections::BTreeMap;

use serde_json::Value;

use super::numbers::{Difference, Numbers, method_name};
use super::{Claim, Verdict};

/// The largest difference of gains that counts as "nearly equal" or "close to".
const CLOSE_GAIN_DIFFERENCE: f64 = 0.03;

/// The name of a reading that was written after numbers had been seen.
const RELAXED_READING: &str = "Relaxed reading, written after a first look at the numbers";

/// Decides the paper's claims from the results of the experiments.
#[must_use]
pub fn claims(results: &BTreeMap<String, Value>) -> Vec<Claim> {
    let n = Numbers::new(results);
    vec![
        worlds::johnson(n),
        worlds::three_steps(n),
        worlds::piecewise(n),
        data_sets::real_data(n),
        decisions::flexibility(n),
        decisions::three_way(n),
        decisions::few_labels(n),
        data_sets::convergence(n),
        data_sets::correlation(n),
    ]
}

fn verdict(known: bool, holds: &[bool]) -> Verdict {
    match (known, holds.iter().filter(|&&holds| holds).count()) {
        (false, _) => Verdict::Unknown,
        (_, count) if count == holds.len() => Verdict::Holds,
        (_, 0) => Verdict::Not,
        _ => Verdict::Partly,
    }
}

/// The gains of a problem, for the table under a claim.
fn gains(n: Numbers<'_>, problem: &str, variants: &[&str], names: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for variant in variants {
        for name in names {
            let what = format!("{problem}, {variant}: gain of {}", method_name(name));
            found.push((what, n.show("routing", &[problem, variant, "gain", name])));
        }
    }
    found
}

fn gain(n: Numbers<'_>, problem: &str, variant: &str, name: &str) -> f64 {
    n.get("routing", &[problem, variant, "gain", name]).unwrap_or(f64::NAN)
}

/// The paired difference of two rankings' gains.
fn gain_difference(n: Numbers<'_>, problem: &str, variant: &str, first: &str, second: &str) -> Option<Difference> {
    n.difference("routing", problem, &[variant, "gain", first], &[variant, "gain", second])
}

/// The gain of the higher-order ranking minus that of total uncertainty.
fn higher_order_gap(n: Numbers<'_>, problem: &str, variant: &str) -> Option<Difference> {
    gain_difference(n, problem, variant, "higher-order", "total-uncertainty")
}

fn mean_of(difference: Option<Difference>) -> f64 {
    difference.map_or(f64::NAN, |difference| difference.mean)
}

fn count_true(list: &[bool]) -> usize {
    list.iter().filter(|&&holds| holds).count()
}
