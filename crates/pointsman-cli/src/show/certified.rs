//! A certificate and what it implies, for the terminal.

use std::io::{self, Write};

use pointsman::certify::{AllLosses, Interval};
use pointsman::{CellId, Policy, Router};

use super::human::{print_shares, print_title};
use crate::args::ShowArgs;
use crate::certified::Certified;
use crate::flags::shell_quoted;
use crate::render::number::{count, counted, decimals, fixed, level, percent, short};
use crate::render::style::{self, BOLD, DIM, GOOD, PLAIN, WARN};
use crate::render::table::Grid;
use crate::render::{next_step, paragraph};
use crate::words;

/// Prints the cells with their intervals, and what they imply for the policy.
pub(super) fn print(
    out: &mut impl Write,
    certified: &Certified,
    args: &ShowArgs,
    router: &Router,
    policy: &Policy,
    flags: &str,
    order: &[CellId],
) -> io::Result<()> {
    let path = shell_quoted(&args.router);
    print_title(out, &path, router, policy)?;
    let cells = certified.certificate.cells();
    let digits = decimals(cells.iter().map(|cell| cell.total().high)).min(4);
    let mut grid = Grid::new().number("cell").text("name").number("rows");
    grid = grid.numbers(["irreducible", "reducible", "predict"]).text("action").text("certain").number("regret");
    for &cell in order {
        let (found, judged) = (&cells[cell.index()], &certified.judgement.cells[cell.index()]);
        let mut row = vec![
            (cell.to_string(), DIM),
            (router.cells().name(cell, router.classes()), PLAIN),
            (count(router.mixture(cell).len()), PLAIN),
        ];
        let intervals = [found.irreducible(), found.reducible(), found.total()];
        row.extend(intervals.map(|interval| (range(interval, digits), PLAIN)));
        match policy.cell(cell) {
            Some(decision) => {
                row.push((decision.action().to_string(), style::action(&decision.action())));
                row.push(certain(judged.certain));
                row.push((up_to(judged.regret, digits), DIM));
            }
            None => row.extend([("falls back".to_owned(), DIM), certain(judged.certain)]),
        }
        grid.row(row);
    }
    grid.write(&mut *out)?;
    writeln!(out)?;
    print_bounds(out, certified, router, policy)?;
    print_shares(out, policy)?;
    let command = format!("pointsman plan {path}{flags} --confidence {}", certified.certificate.confidence());
    next_step(out, "Next, see which labels would make the rest certain:", &[command])
}

/// Prints what holds with the requested confidence, in words.
fn print_bounds(out: &mut impl Write, certified: &Certified, router: &Router, policy: &Policy) -> io::Result<()> {
    let cells = certified.certificate.cells();
    let unit = policy.task().loss().unit();
    let together = match certified.tasks {
        1 => String::new(),
        tasks => format!(" and for all {tasks} tasks"),
    };
    let text = format!(
        "With {} confidence, all at once{together}: every number lies in its interval, {BOLD}{}{BOLD:#} of traffic like the calibration \
         rows gets an action that is certainly the best of its cell, and the policy costs at most {BOLD}{}{BOLD:#} {unit} per query \
         more than the best one on these cells. The intervals hold for all prices at once.",
        level(certified.certificate.confidence()),
        percent(certified.judgement.certain),
        short(certified.judgement.regret_bound),
    );
    paragraph(&mut *out, 2, &text)?;
    let mut remarks = Vec::new();
    if let Some(prices) = words::policy::prices_of_limit(policy) {
        remarks.push(format!("Actions are certain, and regret is counted, {prices}."));
    }
    let left_out: usize = cells.iter().map(|cell| cell.rows_left_out()).sum();
    if left_out > 0 {
        let rows = counted(left_out, "row is", "rows are");
        remarks.push(format!("{rows} left out of the intervals, because edges of cells were taken from them."));
    }
    let empty = (0..cells.len() as u32).filter(|&cell| router.mixture(CellId(cell)).is_empty()).count();
    if empty > 0 {
        remarks
            .push(format!("{} without calibration rows: nothing is certain there.", counted(empty, "cell", "cells")));
    }
    remarks.extend(all_losses_in_words(certified));
    remarks.extend(coarser_in_words(certified, policy));
    if let Some(floor) = certified.certificate.loss().floor() {
        remarks.push(format!(
            "What is certified is the cross-entropy of predictions that give every class a probability of at least {floor}: rarer \
             errors cannot be estimated from so few rows."
        ));
    }
    remarks.iter().try_for_each(|text| paragraph(&mut *out, 2, &format!("{DIM}{text}{DIM:#}")))
}

/// The bounds for every proper loss; `None` if no cell has a bound below the largest possible loss.
fn all_losses_in_words(certified: &Certified) -> Option<String> {
    let is_informative = |bound: &&AllLosses| bound.irreducible_below.max(bound.irreducible_above) < 1.0;
    let bounds: Vec<&AllLosses> = certified.all_losses.iter().flatten().filter(is_informative).collect();
    let worst = |side: fn(&AllLosses) -> f64| bounds.iter().map(|bound| side(bound)).fold(0.0, f64::max);
    (!bounds.is_empty()).then(|| {
        format!(
            "For every proper loss: in {} of {} the irreducible loss is at most {} below the plug-in estimate and {} \
             above it, times the largest possible loss. This holds together with all of the above: of the failures that the \
             confidence allows, nine tenths are spent on the intervals and a tenth on this.",
            count(bounds.len()),
            counted(certified.certificate.cells().len(), "cell", "cells"),
            short(worst(|bound| bound.irreducible_below)),
            short(worst(|bound| bound.irreducible_above)),
        )
    })
}

/// Whether coarser cells are better certified, if most of the traffic is undetermined.
fn coarser_in_words(certified: &Certified, policy: &Policy) -> Option<String> {
    let text = words::policy::coarser_cells(
        certified.coarser.as_ref()?,
        policy.promise().as_ref(),
        policy.task().loss().unit(),
    );
    Some(format!("Most of the traffic is undetermined. {text}"))
}

/// An interval as text.
pub(crate) fn range(interval: Interval, digits: usize) -> String {
    if interval.low == interval.high {
        return fixed(interval.low, digits);
    }
    format!("{}…{}", fixed(interval.low, digits), fixed(interval.high, digits))
}

/// Whether an action is certain, in a word and its colour.
pub(crate) fn certain(certain: bool) -> (String, anstyle::Style) {
    if certain { ("certain".to_owned(), GOOD) } else { ("undetermined".to_owned(), WARN) }
}

/// A bound on the regret as text.
fn up_to(regret: f64, digits: usize) -> String {
    if regret == 0.0 { "0".to_owned() } else { format!("≤ {}", fixed(regret, digits)) }
}
