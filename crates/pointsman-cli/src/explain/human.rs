//! An explanation, for the terminal.

use std::io::{self, Write};

use pointsman::{Limit, Policy, Router};

use super::json::{Explanation, PriceChange, Priced, Query};
use crate::render::number::{counted, decimals, exact, fixed, level, maybe, percent, plain, short};
use crate::render::style::{self, BOLD, DIM, PLAIN};
use crate::render::table::Grid;
use crate::render::wrap::hanging;
use crate::render::{paragraph, printable};
use crate::show::certified::{certain, range};
use crate::words::policy::{prices_of_limit, shares_in_words};

/// Prints one explanation.
pub(super) fn print(out: &mut impl Write, it: &Explanation, router: &Router, policy: &Policy) -> io::Result<()> {
    if let Some(query) = &it.query {
        print_query(out, query, router.classes())?;
    }
    print_cell(out, it, router.classes())?;
    writeln!(out)?;
    print_costs(out, it)?;
    writeln!(out)?;
    sentences(it, policy).iter().try_for_each(|sentence| paragraph(&mut *out, 2, sentence))
}

fn print_query(out: &mut impl Write, query: &Query, classes: &[String]) -> io::Result<()> {
    let row = format!("row {}", query.row);
    let id = query.id.as_ref().map(|id| format!("id {}", printable(id)));
    let name = match (id, query.asked_by) {
        (None, _) => row,
        (Some(id), "id") => format!("{id} ({row})"),
        (Some(id), _) => format!("{row} ({id})"),
    };
    let prediction = largest(classes, &query.prediction);
    paragraph(&mut *out, 0, &format!("{BOLD}{name}{BOLD:#}: {prediction}"))?;
    let act = query.act.as_ref().map_or(String::new(), |act| format!(", act {}", printable(act)));
    paragraph(&mut *out, 0, &format!("predict would answer {}{act}", printable(&query.label)))?;
    let Some(features) = &query.features else { return Ok(()) };
    let value = |(name, value): (&str, &Option<f64>)| {
        format!("x_{} {}", printable(name), value.map_or("missing".to_owned(), plain))
    };
    let features: Vec<String> = features.iter().map(value).collect();
    paragraph(&mut *out, 0, &format!("features: {}", features.join(", ")))
}

/// Prints the cell, and some of the rows that the costs are estimated from.
fn print_cell(out: &mut impl Write, it: &Explanation, classes: &[String]) -> io::Result<()> {
    let rows = counted(it.rows, "calibration row", "calibration rows");
    let name = printable(&it.name);
    paragraph(&mut *out, 0, &format!("{BOLD}cell {}{BOLD:#}: {name}; {rows}, support {}", it.cell, it.support))?;
    if it.level != "cell" {
        let whose = if it.level == "confidence" { "rows of the same confidence" } else { "all rows" };
        let text = format!("the cell is empty: costs are those of {whose}, and nothing about them is certain");
        paragraph(&mut *out, 0, &text)?;
    }
    match (it.trees, &it.centroid) {
        (Some(trees), _) => {
            let trees = counted(trees, "tree", "trees");
            let text = format!(
                "costs are the query's own, averaged over the leaves of {trees}; the calibration rows with the largest weights:"
            );
            paragraph(&mut *out, 0, &text)?;
        }
        (None, Some(centroid)) => {
            paragraph(&mut *out, 0, &format!("mean labels: {}", largest(classes, centroid)))?;
        }
        (None, None) => {}
    }
    if it.trees.is_none() && !it.examples.is_empty() {
        let near = if it.query.is_some() { " of the nearest confidence" } else { "" };
        paragraph(&mut *out, 0, &format!("some of its calibration rows{near}, prediction → labels:"))?;
    }
    for example in &it.examples {
        let votes = example.votes.iter().zip(classes).filter(|(n, _)| **n > 0);
        let votes: Vec<String> = votes.map(|(n, class)| format!("{} {n}", printable(class))).collect();
        let weight = example.weight.map(|weight| format!("  ({})", percent(weight))).unwrap_or_default();
        let text = format!("{DIM}{} → {}{weight}{DIM:#}", largest(classes, &example.prediction), votes.join(", "));
        hanging(&mut *out, 2, 4, &text)?;
    }
    Ok(())
}

/// The largest probabilities of a distribution.
fn largest(classes: &[String], shares: &[f64]) -> String {
    let mut order: Vec<usize> = (0..classes.len()).collect();
    order.sort_by(|&a, &b| shares[b].total_cmp(&shares[a]));
    let shown =
        order.iter().take(3).map(|&class| format!("{} {}", printable(&classes[class]), fixed(shares[class], 3)));
    let rest = if classes.len() > 3 { ", …" } else { "" };
    format!("{}{rest}", shown.collect::<Vec<_>>().join(", "))
}

/// Prints every action's cost, cheapest first.
fn print_costs(out: &mut impl Write, it: &Explanation) -> io::Result<()> {
    let upper = |priced: &Priced| priced.cost.or(priced.bounds.map(|[_, high]| high)).unwrap_or(f64::INFINITY);
    let digits = decimals(it.actions.iter().map(upper));
    let mut order: Vec<&Priced> = it.actions.iter().collect();
    order.sort_by(|a, b| upper(a).total_cmp(&upper(b)));
    let within = it.confidence.map_or("interval".to_owned(), |c| format!("with {} confidence", level(c)));
    let has_intervals = it.actions.iter().any(|priced| priced.interval.is_some());
    let mut grid = Grid::new().text("action").number("cost").numbers(has_intervals.then_some(within)).text("");
    for priced in order {
        let taken = if priced.action == it.action {
            if it.shares.is_some() { "cheapest" } else { "taken" }
        } else if Some(&priced.action) == it.runner_up.as_ref() {
            "runner-up"
        } else {
            ""
        };
        let mut row = vec![(priced.action.clone(), style::action_named(&priced.action)), (cost(priced, digits), PLAIN)];
        if has_intervals {
            row.push((priced.interval.map_or("–".to_owned(), |interval| range(interval, digits)), PLAIN));
        }
        row.push((taken.to_owned(), BOLD));
        grid.row(row);
    }
    grid.write(out)
}

/// A cost, or its bounds.
fn cost(priced: &Priced, digits: usize) -> String {
    match (priced.cost, priced.bounds) {
        (None, Some([low, high])) => format!("{}…{}", fixed(low, digits), fixed(high, digits)),
        (cost, _) => maybe(cost, digits),
    }
}

fn reason_in_words(reason: &str) -> &'static str {
    match reason {
        "easy" => "the model is good enough",
        "hard" => "an oracle would help",
        "ambiguous" => "the labels themselves disagree",
        "degraded" => "the limit on routing forced the next-best action",
        _ => "there are too few calibration rows to say more",
    }
}

/// The loss of predicting and its parts. An estimate of the reducible part below zero is shown as zero, and then the parts exceed the whole.
fn parts_in_words(total: f64, unit: &str, [irreducible, reducible]: [f64; 2]) -> String {
    let [whole, part] = [total, irreducible].map(short);
    let negative = match irreducible > total && part != whole {
        true => {
            " The estimate of the irreducible part is above the whole loss, so that of the reducible part is negative and shown as 0."
        }
        false => "",
    };
    format!(
        "Predicting loses {whole} {unit}: {part} is irreducible, and {} would be saved by an oracle that knows the distribution of the labels.{negative}",
        short(reducible)
    )
}

/// What decides, what would change the action, and whether it is certain, one sentence each.
fn sentences(it: &Explanation, policy: &Policy) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(shares) = &it.shares {
        sentences.push(format!(
            "A forest decides each query by its own costs. Of the calibration rows in this cell: {}. What follows holds for the cell as a \
             whole.",
            shares_in_words(shares)
        ));
    }
    if let (Some(irreducible), Some(reducible)) = (it.irreducible, it.reducible) {
        sentences.push(parts_in_words(it.total, it.unit, [irreducible, reducible]));
    }
    sentences.push(format!("Reason: {}, {}.", it.reason, reason_in_words(it.reason)));
    match (&it.runner_up, it.margin) {
        (Some(next), Some(margin)) => {
            let action = style::action_named(&it.action);
            let has_bounds = it.actions.iter().any(|priced| priced.bounds.is_some());
            let by = if has_bounds { "by at least" } else { "by" };
            let is_routing = [&it.action, next].into_iter().any(|name| name.starts_with("route:"));
            let limit =
                prices_of_limit(policy).filter(|_| is_routing).map_or(String::new(), |prices| format!(", {prices}"));
            sentences.push(format!("{action}{}{action:#} beats {next} {by} {}{limit}.", it.action, short(margin)));
        }
        _ if it.action == "undetermined" => sentences.push(
            "One label per item only bounds the costs, and the bounds overlap: no action is known to be the best."
                .into(),
        ),
        _ => {}
    }
    if let Some(share) = it.random_share {
        sentences.push(format!(
            "The limit on routing decides at random here: {} of such queries are routed.",
            percent(share)
        ));
    }
    sentences.extend(it.flips.iter().map(|change| price_change(it, change)));
    sentences.extend(limit_change(it, policy));
    sentences.push(certainty(it, policy));
    sentences
}

/// The price at which the action changes.
fn price_change(it: &Explanation, PriceChange { price_of, now, at, to }: &PriceChange) -> String {
    let whose = price_of.strip_prefix("route:").unwrap_or("abstaining");
    match *price_of == it.action {
        true => {
            format!("If the price of {whose} rises above {} (now {}), the action is {to}.", short(*at), exact(*now))
        }
        false => {
            format!("If the price of {whose} falls below {} (now {}), the action is {to}.", short(*at), exact(*now))
        }
    }
}

/// Under a limit, what would route the query or keep it from its route; `None` without one.
fn limit_change(it: &Explanation, policy: &Policy) -> Option<String> {
    let limit = policy.task().limit()?;
    let costs = || it.actions.iter().map(|priced| Some((priced.action.as_str(), priced.cost?)));
    let cheapest = |is_route: bool| {
        let costs = costs().flatten().filter(|(action, _)| action.starts_with("route:") == is_route);
        costs.min_by(|a, b| a.1.total_cmp(&b.1))
    };
    let ((route, cost), (_, other)) = cheapest(true).zip(cheapest(false))?;
    let is_routed = it.action.starts_with("route:");
    match (limit, it.least_budget) {
        // Rounded up, so that the budget named is enough.
        (Limit::Budget(now), Some(least)) => {
            let least = percent((1000.0 * least - 1e-9).ceil() / 1000.0);
            Some(match is_routed {
                true => format!("A budget of {least} or more routes it for certain (now {}).", percent(now)),
                false => format!(
                    "Without the budget the action would be {route}, which costs {} less; a budget of {least} would route it (now {}).",
                    short(other - cost),
                    percent(now)
                ),
            })
        }
        (Limit::Budget(_), None) if !is_routed && cost > other => {
            let now = policy.task().routes().iter().find(|it| route.strip_prefix("route:") == Some(it.name()))?.price();
            let at = now - (cost - other);
            (at > 0.0).then(|| {
                format!(
                    "Without the budget, too, {route} pays only if its price falls below {} (now {}).",
                    short(at),
                    exact(now)
                )
            })
        }
        _ => None,
    }
}

/// Whether the action is certain, or why there is no certificate.
fn certainty(it: &Explanation, policy: &Policy) -> String {
    let (Some(confidence), Some(is_certain)) = (it.confidence.map(level), it.certain) else {
        let found = if it.trees.is_some() { "trees were grown" } else { "cells were found" };
        return format!("A forest has no certificate: its {found} with the labels of these rows.");
    };
    let (word, style) = certain(is_certain);
    let prices = prices_of_limit(policy).map_or(String::new(), |prices| format!(", {prices}"));
    match (&it.rival, it.regret) {
        (Some(rival), Some(regret)) => format!(
            "{style}{word}{style:#} with {confidence} confidence: {rival} may be better by up to {}{prices}.",
            short(regret)
        ),
        (_, None) => format!("{style}{word}{style:#}: the cell has no rows of its own."),
        _ if is_certain => {
            format!("{style}{word}{style:#} with {confidence} confidence: no other action is better{prices}.")
        }
        _ => format!("{style}{word}{style:#} with {confidence} confidence."),
    }
}

#[cfg(test)]
mod tests {
    use super::parts_in_words;

    #[test]
    fn irreducible_part_above_the_whole_loss_is_explained() {
        let text = parts_in_words(0.2, "Brier points", [0.25, 0.0]);
        assert!(text.contains(" is irreducible") && text.ends_with("is negative and shown as 0."), "{text}");
        assert!(!parts_in_words(0.3, "Brier points", [0.25, 0.05]).contains("negative"));
        // Rounding is no error of the estimate.
        assert!(!parts_in_words(0.25, "Brier points", [0.25 + 1e-16, 0.0]).contains("negative"));
    }
}
