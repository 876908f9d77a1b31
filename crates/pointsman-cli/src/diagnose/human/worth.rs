//! What routing is worth, for the terminal.

use std::io::{self, Write};

use pointsman::Diagnosis;
use pointsman::diagnose::{Compared, Estimate, Worth};
use pointsman::evaluate::rule_name;
use pointsman::task::Named;
use pointsman_report::CONFIDENCE_THRESHOLD;

use super::between;
use crate::render::number::{decimals, fixed, maybe, percent};
use crate::render::style::{DIM, GOOD, PLAIN};
use crate::render::table::Grid;
use crate::render::{heading, paragraph};

/// Prints what routing is worth: costs and savings with prices, gains without.
pub(super) fn print(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    if diagnosis.worth.is_none() && diagnosis.bounds.is_none() {
        return Ok(());
    }
    heading(&mut *out, "Is decomposition worth it here?")?;
    match &diagnosis.worth {
        Some(worth) => {
            if let (Some(costs), Some(savings)) = (&worth.costs, &worth.savings) {
                print_costs(out, diagnosis, worth, costs, savings)?;
            }
            print_gains(out, worth, diagnosis.unit)
        }
        None => print_bounds(out, diagnosis),
    }
}

/// Prints what one label per item leaves known.
fn print_bounds(out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
    let Some(bounds) = &diagnosis.bounds else { return Ok(()) };
    let digits = decimals(bounds.reducible);
    let [low, high] = bounds.reducible.map(|end| fixed(end, digits));
    let mut text = format!(
        "With one label per item it cannot be known. The reducible loss lies between {low} and {high} ({} per query).",
        diagnosis.unit
    );
    if let Some(decided) = bounds.decided {
        text += &format!(" At these prices {} of the traffic is decided by such bounds.", percent(decided));
    }
    text += " A second label on some items would identify the Brier split exactly and cross-entropy to ±0.04 nats (binary).";
    paragraph(out, 2, &text)
}

/// Prints the cost of each rule; a target loss compares shares of routed queries first.
fn print_costs(
    out: &mut impl Write,
    diagnosis: &Diagnosis,
    worth: &Worth,
    costs: &Named<Estimate>,
    savings: &Named<Estimate>,
) -> io::Result<()> {
    let digits = decimals(costs.iter().map(|(_, cost)| cost.estimate));
    let limit = worth.limit.as_ref();
    let cost_cells = |value: &Estimate| [fixed(value.estimate, digits), between(value, digits)];
    let share_cells = |value: &Estimate| {
        let [low, high] = [value.low, value.high].map(|x| fixed(100.0 * x, 1));
        [percent(value.estimate), format!("{low} to {high}")]
    };
    let target = limit.filter(|_| diagnosis.task.target_loss.is_some());
    let cost_head = format!("cost, {}", diagnosis.unit);
    let mut grid = Grid::new().text("");
    grid = match target {
        Some(_) => grid.numbers(["routed", "95 %", "Pointsman routes less by", "95 %"]).number(cost_head),
        None => grid.number(cost_head).numbers(["95 %", "Pointsman saves", "95 %"]),
    };
    grid = grid.numbers(limit.filter(|_| target.is_none()).map(|_| "routed"));
    let is_recommended =
        |other: &&Compared| other.partition == diagnosis.verdict.partition && other.partition != diagnosis.partition;
    let recommended = diagnosis.enough.partitions.iter().find(is_recommended);
    for (name, cost) in costs.iter() {
        let style = if name == "router" { GOOD.bold() } else { PLAIN };
        let routed = limit.and_then(|limit| limit.routed.get(name)).map(share_cells);
        let (main, rest, last) = match target {
            Some(target) => (routed, target.spared.get(name).map(share_cells), Some(cost_cells(cost))),
            None => (Some(cost_cells(cost)), savings.get(name).map(cost_cells), routed),
        };
        let [[value, interval], [more, its_interval], [last, _]] = [main, rest, last].map(Option::unwrap_or_default);
        let rule = match name {
            "router" => format!("{} ({})", rule_name(name), diagnosis.partition),
            _ => rule_name(name),
        };
        grid.row([(rule, style), (value, style), (interval, DIM), (more, PLAIN), (its_interval, DIM), (last, PLAIN)]);
        if let Some(other) = recommended.filter(|_| name == "router") {
            let cost = maybe(other.cost, digits);
            let routed = other.routed.map_or(String::new(), percent);
            let [value, last] = if target.is_some() { [routed, cost] } else { [cost, routed] };
            let rule = format!("{} ({})", rule_name(name), other.partition);
            let empty = || (String::new(), PLAIN);
            grid.row([(rule, GOOD.bold()), (value, GOOD.bold()), empty(), empty(), empty(), (last, PLAIN)]);
        }
    }
    grid.write(&mut *out)?;
    let mut remark = CONFIDENCE_THRESHOLD.to_owned();
    if limit.is_some() {
        remark += " Each rule routes in its own order until it reaches the limit on the evaluated rows; rules that cannot keep the limit \
                   are left out.";
    }
    paragraph(out, 2, &format!("{DIM}{remark}{DIM:#}"))
}

/// Prints the gains of the rankings, without prices.
fn print_gains(out: &mut impl Write, worth: &Worth, unit: &str) -> io::Result<()> {
    let digits = decimals([worth.loss.estimate, worth.reducible.estimate]);
    let text = format!(
        "The loss per query is {}, of which {} is reducible (95 % interval {}): routing saves at most {} {unit} of loss per thousand queries.",
        fixed(worth.loss.estimate, digits),
        fixed(worth.reducible.estimate, digits),
        between(&worth.reducible, digits),
        fixed(worth.reducible.per_thousand().high.max(0.0), 1)
    );
    paragraph(&mut *out, 2, &text)?;
    let gain = |name| maybe(worth.gain.get(name).copied().flatten(), 3);
    let mut text = format!(
        "Without prices, ranking by reducible loss gains {GOOD}{}{GOOD:#}, ranking by confidence {} (0 random, 1 the best possible order)",
        gain("higher-order"),
        gain("total-uncertainty")
    );
    if let Some(more) = &worth.gain_over_total_uncertainty {
        text += &format!(": a difference of {}, 95 % {}", fixed(more.estimate, 3), between(more, 3));
    }
    text.push('.');
    if let Some(&Some(gain)) = worth.gain.get("recalibrated-uncertainty") {
        text += &format!(" Ranking by the confidence of the re-calibrated prediction would gain {}.", fixed(gain, 3));
    }
    if let Some(correlation) = worth.correlation {
        text += &format!(
            " Over cells, the correlation of reducible and total loss is {}: if it were 1, ranking by the expected loss would be enough.",
            fixed(correlation, 2)
        );
    }
    paragraph(out, 2, &text)
}
