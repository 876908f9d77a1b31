//! What would change, for the terminal.

use std::io::{self, Write};

use anstyle::Style;
use pointsman::monitor::{CellChange, WhatIfSummary};
use pointsman::policy::Promise;
use pointsman::task::Route;
use pointsman::{Oracle, Policy};

use crate::args::WhatIfArgs;
use crate::flags::shell_quoted_text;
use crate::render::number::{count, counted, decimals, maybe, percent, plain};
use crate::render::style::{BAD, BOLD, DIM, GOOD, PLAIN, action_named};
use crate::render::table::Grid;
use crate::render::{self, paragraph};
use crate::words::with_error;

/// The most cells that are listed.
const MAX_CELLS: usize = 20;

/// Prints the summary; `promise` is that of the new task, if it is known.
pub(super) fn print(
    args: &WhatIfArgs,
    policy: &Policy,
    summary: &WhatIfSummary,
    promise: Option<&Promise>,
) -> io::Result<()> {
    let mut out = io::BufWriter::new(render::stdout());
    let decisions = counted(summary.decisions as usize, "decision", "decisions");
    let log = render::printable(&args.log.display().to_string());
    let share = summary.changed as f64 / summary.decisions.max(1) as f64;
    let changed = format!("{} ({})", count(summary.changed as usize), percent(share));
    let before = match &args.against {
        Some(path) => format!("under {}", render::printable(&path.display().to_string())),
        None => "as logged".to_owned(),
    };
    paragraph(
        &mut out,
        0,
        &format!(
            "{BOLD}{decisions}{BOLD:#} of {log}; {BOLD}{changed}{BOLD:#} would change, compared with those {before}"
        ),
    )?;
    if summary.decisions > 0 {
        print_cost(&mut out, policy, summary, promise)?;
        print_matrix(&mut out, summary)?;
        print_cells(&mut out, summary)?;
    }
    out.flush()
}

/// The colour of a difference of costs.
fn style(difference: Option<f64>) -> Style {
    match difference {
        Some(x) if x < 0.0 => GOOD,
        Some(x) if x > 0.0 => BAD,
        _ => PLAIN,
    }
}

fn print_cost(
    out: &mut impl Write,
    policy: &Policy,
    summary: &WhatIfSummary,
    promise: Option<&Promise>,
) -> io::Result<()> {
    let cost = &summary.cost;
    let digits = decimals(cost.expected.into_iter().chain(cost.before));
    writeln!(out)?;
    let unit = policy.task().loss().unit();
    paragraph(&mut *out, 0, &format!("{BOLD}Expected cost per query, in {unit}{BOLD:#}"))?;
    if let Some(text) = not_compared(policy, summary) {
        paragraph(&mut *out, 2, &text)?;
    }
    let mut grid = Grid::new().numbers(["before", "what if", "difference", "± over queries"]);
    grid.row([
        (maybe(cost.before, digits), PLAIN),
        (maybe(cost.expected, digits), PLAIN),
        (maybe(cost.difference, digits), style(cost.difference)),
        (maybe(cost.difference_standard_error, digits), DIM),
    ]);
    grid.write(&mut *out)?;
    let promised = promise.filter(|promise| promise.standard_error.is_finite()).map_or(String::new(), |promise| {
        let cost = with_error(promise.cost, promise.standard_error);
        format!(
            " On traffic like the calibration rows the new task costs {cost}, judged by rows left out: a difference smaller than this ± may be \
             zero or have the other sign."
        )
    });
    let text = format!(
        "Both are mean expected costs, by the estimates and prices of the new task. The new action is the cheapest by the same \
         estimates, so the difference favours the new task, most with another router or loss; evaluate and compare on held-out rows \
         correct for that. ± over queries is only what other queries like these would change; the error of the estimates is usually much \
         larger.{promised}"
    );
    paragraph(&mut *out, 2, &format!("{DIM}{text}{DIM:#}"))?;
    Ok(())
}

/// Which decisions are left out of the difference, and how to compare them if their route only has another name; `None` if none are.
fn not_compared(policy: &Policy, summary: &WhatIfSummary) -> Option<String> {
    let cost = &summary.cost;
    if cost.not_compared == 0 {
        return None;
    }
    let rows = counted(cost.not_compared as usize, "decision has", "decisions have");
    let rest = match cost.difference {
        Some(_) => "the difference is that of the others",
        None => "no decision that changes is among the others, so that the difference is unknown (–)",
    };
    let actions = policy.task().action_names();
    let logged = summary.shares_before.iter().filter_map(|(name, _)| name.strip_prefix("route:"));
    let missing: Vec<&str> = logged.filter(|name| !actions.contains(&format!("route:{name}"))).collect();
    let is_logged = |name: &str| summary.shares_before.get(&format!("route:{name}")).is_some();
    let new: Vec<&Route> = policy.task().routes().iter().filter(|route| !is_logged(route.name())).collect();
    let advice = match (missing.as_slice(), new.as_slice()) {
        (&[missing], [route]) => {
            let kind = if *route.oracle() == Oracle::Bayes { String::new() } else { format!(",{}", route.oracle()) };
            let flag = shell_quoted_text(&format!("{missing}={}{kind}", plain(route.price())));
            format!(" If {} is what the log calls {missing}, give it that name: --route {flag}.", route.name())
        }
        _ => String::new(),
    };
    let names = if missing.is_empty() { String::new() } else { format!(" (route:{})", missing.join(", route:")) };
    Some(format!("{rows} an action that the new task lacks{names}, whose cost is unknown: {rest}.{advice}"))
}

/// One row per action before, one column per new action, and the shares of both.
fn print_matrix(out: &mut impl Write, summary: &WhatIfSummary) -> io::Result<()> {
    writeln!(out)?;
    paragraph(&mut *out, 0, &format!("{BOLD}Decisions, from (rows) to (columns){BOLD:#}"))?;
    let to: Vec<&str> = summary.shares.iter().map(|(name, _)| name).collect();
    let mut grid = Grid::new().text("").numbers(to.iter().copied()).number("share before");
    for (from, &before) in summary.shares_before.iter() {
        let mut row = vec![(from.to_owned(), action_named(from))];
        for name in &to {
            let flow = summary.matrix.iter().find(|flow| flow.from == from && flow.to == *name);
            let style = if from == *name { DIM } else { PLAIN };
            row.push((flow.map_or_else(|| "0".to_owned(), |flow| count(flow.decisions as usize)), style));
        }
        row.push((percent(before), DIM));
        grid.row(row);
    }
    let shares = summary.shares.iter().map(|(_, &share)| (percent(share), DIM));
    grid.row([("share after".to_owned(), DIM)].into_iter().chain(shares).chain([(String::new(), DIM)]));
    grid.write(out)
}

/// The cells with the most changed decisions.
fn print_cells(out: &mut impl Write, summary: &WhatIfSummary) -> io::Result<()> {
    let mut cells: Vec<&CellChange> = summary.cells.iter().filter(|cell| cell.changed > 0).collect();
    if cells.is_empty() {
        return Ok(());
    }
    cells.sort_by_key(|cell| std::cmp::Reverse(cell.changed));
    let changed = cells.len();
    cells.truncate(MAX_CELLS);
    writeln!(out)?;
    paragraph(&mut *out, 0, &format!("{BOLD}Cells whose decisions change{BOLD:#}"))?;
    let digits = decimals(cells.iter().map(|cell| cell.expected_cost));
    let mut grid =
        Grid::new().number("cell").text("").numbers(["queries", "changed", "what if", "difference", "± over queries"]);
    for cell in &cells {
        grid.row([
            (cell.cell.to_string(), PLAIN),
            (cell.name.clone(), PLAIN),
            (count(cell.decisions as usize), PLAIN),
            (count(cell.changed as usize), BOLD),
            (maybe(Some(cell.expected_cost), digits), PLAIN),
            (maybe(cell.difference, digits), style(cell.difference)),
            (maybe(cell.difference_standard_error, digits), DIM),
        ]);
    }
    grid.write(&mut *out)?;
    if changed > MAX_CELLS {
        let text = format!("{} more: --json lists all cells.", counted(changed - MAX_CELLS, "cell", "cells"));
        paragraph(&mut *out, 2, &format!("{DIM}{text}{DIM:#}"))?;
    }
    Ok(())
}
