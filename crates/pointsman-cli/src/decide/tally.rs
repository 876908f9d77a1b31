//! A summary of decisions, for the terminal.

use std::io::{self, Write};

use pointsman::Policy;
use pointsman::evaluate::rule_name;
use pointsman::policy::{Promise, TallySummary};

use crate::render::number::{count, counted, percent, short};
use crate::render::style::{self, BOLD, DIM};
use crate::render::{matrix, paragraph};
use crate::words;

pub(super) fn write(out: &mut impl Write, summary: &TallySummary, policy: &Policy) -> io::Result<()> {
    if matrix::write(&mut *out, &policy.task_summary(), policy.classes())? {
        writeln!(out)?;
    }
    let share = |(name, &share): (&str, &f64)| {
        let style = style::action_named(name);
        format!("{style}{name}{style:#} {}", percent(share))
    };
    let shares: Vec<String> = summary.shares.iter().map(share).collect();
    let queries = counted(summary.rows as usize, "query", "queries");
    paragraph(&mut *out, 0, &format!("{BOLD}{queries}{BOLD:#}: {}", shares.join(", ")))?;
    write_expected_cost(&mut *out, summary, policy)?;
    let reasons = summary.reasons.iter().filter(|(_, n)| **n > 0);
    let reasons: Vec<String> = reasons.map(|(name, &n)| format!("{name} {}", count(n as usize))).collect();
    if !reasons.is_empty() {
        paragraph(&mut *out, 0, &format!("reasons: {}", reasons.join(", ")))?;
    }
    if let Some(text) = words::policy::limit(policy) {
        let is_changed = policy.surcharge().is_some_and(|surcharge| surcharge.price > 0.0);
        let costs = match is_changed {
            true => {
                " The columns of costs have the routes' own prices, so the action is not always the one of least cost there."
            }
            false => "",
        };
        paragraph(&mut *out, 0, &format!("{text}{costs}"))?;
    }
    let with = |support: &str| summary.support.get(support).map_or(0, |&n| n as usize);
    if with("sparse") > 0 {
        writeln!(out, "{DIM}{} fell into sparse cells{DIM:#}", count(with("sparse")))?;
    }
    if with("empty") > 0 {
        let empty = count(with("empty"));
        let text = format!("{empty} fell into empty cells and were decided by rows of the same confidence");
        paragraph(&mut *out, 0, &format!("{DIM}{text}{DIM:#}"))?;
    }
    Ok(())
}

/// The expected cost per query of the router and of each action taken always, and for how many queries it is only bounded.
fn write_expected_cost(out: &mut impl Write, summary: &TallySummary, policy: &Policy) -> io::Result<()> {
    match &summary.expected_cost {
        None if summary.rows == 0 => {}
        None => {
            let text = "one label per item: costs of routing are only bounded; undetermined queries have no certain best action";
            paragraph(&mut *out, 0, &format!("{DIM}{text}{DIM:#}"))?;
        }
        Some(costs) => {
            let always: Vec<String> = costs
                .iter()
                .filter(|(name, _)| name.starts_with("always-"))
                .map(|(name, &cost)| format!("{} {}", rule_name(name), short(cost)))
                .collect();
            let router = costs.get("router").copied().unwrap_or(f64::NAN);
            let (unit, always) = (policy.task().loss().unit(), always.join(", "));
            let error = summary.standard_error.unwrap_or(f64::NAN);
            let open = words::identified_interval(router, error, summary.identified);
            let router = words::with_error(router, error);
            // Held-out rows correct the estimates that decide; a policy file has none.
            let basis = if policy.router().is_none() { ", by the estimates that chose the actions," } else { "" };
            let text = format!("expected cost per query{basis} {BOLD}{router}{BOLD:#} {unit}{open}; {always}");
            paragraph(&mut *out, 0, &text)?;
            if policy.router().is_none() {
                let corrected = corrected_cost_in_words(policy, summary);
                paragraph(&mut *out, 0, &format!("{DIM}{corrected}{DIM:#}"))?;
            }
            if summary.standard_error.is_some_and(|error| error > 0.0) {
                let corrected = match policy.router() {
                    Some(_) => {
                        " This mean is corrected on held-out calibration rows; the expected costs of single queries are not."
                    }
                    None => "",
                };
                let text = format!(
                    "± is the standard error of the estimate for traffic like the calibration rows. The actual cost of a small number of queries \
                     varies more.{corrected}"
                );
                paragraph(&mut *out, 0, &format!("{DIM}{text}{DIM:#}"))?;
            }
        }
    }
    if let (Some(_), Some(share)) = (&summary.expected_cost, summary.shares.get("undetermined")) {
        let queries = (share * summary.rows as f64).round() as usize;
        let open = counted(queries, "query has", "queries have");
        let are = if queries == 1 { "it is" } else { "they are" };
        let text = format!(
            "{open} no certain best action: too few calibration rows like these have two labels or more, so the costs of routing are \
             only bounded; {are} counted as the cheapest action of known cost"
        );
        paragraph(&mut *out, 0, &format!("{DIM}{text}{DIM:#}"))?;
    }
    Ok(())
}

/// The expected cost of a policy file that is corrected on rows left out. It is known at the prices of the file only, and not where caps
/// move queries.
pub(super) fn corrected_cost(policy: &Policy, summary: &TallySummary) -> Option<Promise> {
    policy.promise().filter(|_| summary.capped.is_none())
}

fn corrected_cost_in_words(policy: &Policy, summary: &TallySummary) -> String {
    match corrected_cost(policy, summary) {
        Some(promise) => format!(
            "corrected on calibration rows left out, for traffic like them: {}",
            words::with_error(promise.cost, promise.standard_error)
        ),
        None => {
            "not corrected on calibration rows left out: that needs the router instead of the policy file".to_owned()
        }
    }
}
