//! An evaluation, for the terminal.

use std::io::{self, Write};
use std::path::Path;

use pointsman::Policy;
use pointsman::evaluate::{CalibrationError, Truth, ranking_name, rule_name};
use pointsman::wasserstein::DEFAULT_SPLITS;
use pointsman_report::{Report, SweepReport};

use crate::args::EvaluateArgs;
use crate::flags::shell_quoted;
use crate::render::number::{count, decimals, fixed, maybe, percent, plain};
use crate::render::plot::{self, Curve, SIGNS};
use crate::render::style::{BOLD, DIM, GOOD, PLAIN, WARN};
use crate::render::table::Grid;
use crate::render::{self, heading, matrix, next_step, paragraph};
use crate::words;

/// Why some costs are dashes.
const ONE_LABEL: &str = "These rows have one label each, which cannot separate noise from error: the loss of an oracle that knows the \
                         truth, and what routing to it costs or saves, are not known (–).";

/// Prints a report; `written` is the page, if one was written.
pub(super) fn print(args: &EvaluateArgs, report: &Report, policy: &Policy, written: Option<&Path>) -> io::Result<()> {
    let mut out = io::BufWriter::new(render::stdout());
    let evaluation = &report.evaluation;
    let rows = match report.calibration_rows {
        seen if seen > 0 && seen < evaluation.rows => {
            format!("{} rows, {} of them calibration rows", count(evaluation.rows), count(seen))
        }
        _ => {
            let row = if evaluation.rows == 1 { "row" } else { "rows" };
            format!("{} {} {row}", count(evaluation.rows), report.kind_of_rows())
        }
    };
    let (router, truth) = (shell_quoted(&args.router), truth_in_words(evaluation.truth));
    paragraph(&mut out, 0, &format!("{BOLD}{router}{BOLD:#} on {rows}; truth is {truth}"))?;
    for text in words::policy::limit(policy).into_iter().chain(report.loss_line()).chain(report.cap_lines()) {
        paragraph(&mut out, 0, &text)?;
    }
    matrix::write(&mut out, &evaluation.task, &report.classes)?;
    if let Some(text) = words::policy::traffic(&report.traffic) {
        paragraph(&mut out, 0, &format!("{WARN}{}{WARN:#}", sentence(&text)))?;
    }
    print_costs(&mut out, report)?;
    words::policy::print_perfect_oracles(&mut out, policy.task())?;
    print_gains(&mut out, report)?;
    if let Some(error) = &report.calibration_error {
        print_calibration_error(&mut out, error, report)?;
    }
    for sweep in &report.sweep {
        print_sweep(&mut out, sweep, report)?;
    }
    print_next_step(&mut out, report, written)?;
    out.flush()
}

/// The truth that rows are evaluated against.
pub(crate) fn truth_in_words(truth: Truth) -> &'static str {
    if truth == Truth::Known { "their known distributions" } else { "the mean of their labels" }
}

/// Text as a sentence, with a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

fn print_costs(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let evaluation = &report.evaluation;
    heading(&mut *out, &format!("Cost per query, in {} ({})", evaluation.unit, evaluation.loss))?;
    let digits = decimals(evaluation.best_costs().iter().map(|(_, &cost)| cost));
    cost_grid(report, digits).write(&mut *out)?;
    writeln!(out)?;
    // The best possible has no ± if it is open.
    let is_open = |name: &str| name != "pointwise-optimal" && evaluation.open_interval(name).is_some();
    if evaluation.best_costs().iter().any(|(name, _)| is_open(name)) {
        let text = "± is the sampling error alone: it leaves out the range that labels leave open.";
        paragraph(&mut *out, 2, &format!("{DIM}{text}{DIM:#}"))?;
    }
    if evaluation.is_corrected() {
        let text = "The mean of a few labels is too certain a truth, which makes routing look cheaper than it is. All costs here are \
                    corrected for that; mean_cost in --json has the uncorrected ones.";
        paragraph(&mut *out, 2, text)?;
        writeln!(out)?;
    }
    if !evaluation.unidentified.is_empty() {
        paragraph(&mut *out, 2, &format!("{WARN}{ONE_LABEL}{WARN:#}"))?;
        writeln!(out)?;
    }
    paragraph(&mut *out, 2, &report.money_line())?;
    for text in report.open_line().into_iter().chain(report.savings_line()) {
        paragraph(&mut *out, 2, &text)?;
    }
    paragraph(&mut *out, 2, &regret(report, digits))?;
    let support = |name| evaluation.support.get(name).copied().unwrap_or(0.0);
    // The costs of a forest do not rest on its cells.
    if support("sparse") + support("empty") > 0.0 && !report.router.decides_by_row() {
        let (sparse, empty) = (percent(support("sparse")), percent(support("empty")));
        let text = format!("{DIM}{sparse} of the rows fell into sparse cells, {empty} into empty ones.{DIM:#}");
        paragraph(out, 2, &text)?;
    }
    Ok(())
}

/// The costs of Pointsman, of simple rules, and of the best in hindsight.
fn cost_grid(report: &Report, digits: usize) -> Grid {
    let evaluation = &report.evaluation;
    let mut grid = Grid::new().text("").number("mean").number("± s.e.").text("");
    let by_row = report.router.decides_by_row();
    for (name, &cost) in evaluation.best_costs().iter().filter(|(name, _)| !by_row || *name != "cell-optimal") {
        let error = evaluation.best_standard_error().get(name).copied().flatten();
        let (style, remark) = match name {
            "router" => (GOOD.bold(), ""),
            "cell-optimal" | "pointwise-optimal" => (PLAIN, "known in hindsight only"),
            _ => (PLAIN, ""),
        };
        let open = evaluation.open_interval(name).map(|ends| ends.map(|end| fixed(end, digits)));
        let open = open.filter(|[low, high]| low != high);
        // See `regret`.
        let error = error.filter(|_| name != "pointwise-optimal" || open.is_none());
        let guess = if name == "pointwise-optimal" && evaluation.best_possible_is_guess() { " (a guess)" } else { "" };
        let open = open.map(|[low, high]| format!("labels leave {low} to {high} open{guess}"));
        let remark = [remark.to_owned()].into_iter().chain(open).filter(|part| !part.is_empty());
        let remark = remark.collect::<Vec<_>>().join("; ");
        grid.row([
            (rule_name(name), style),
            (maybe(Some(cost).filter(|_| evaluation.is_identified(name)), digits), style),
            (maybe(error.filter(|_| evaluation.is_identified(name)), digits), DIM),
            (remark, DIM),
        ]);
    }
    if let Some(threshold) = report.best_threshold() {
        grid.row([
            (rule_name("best-threshold"), PLAIN),
            (fixed(threshold.cost, digits), PLAIN),
            (maybe(threshold.cost_standard_error, digits), DIM),
            ("mean of two costs: chosen on these rows (too low), on others (too high)".to_owned(), DIM),
        ]);
    }
    let has_both = !evaluation.task.routes.is_empty() && evaluation.task.abstain.is_some();
    let is_known = |name: &str| has_both && (name == "predict/abstain" || evaluation.is_identified("cell-optimal"));
    for (name, &cost) in evaluation.best_two_way().iter().filter(|(name, _)| is_known(name)) {
        let remark = "Pointsman with these two actions only";
        grid.row([
            (name.to_owned(), PLAIN),
            (fixed(cost, digits), PLAIN),
            (String::new(), DIM),
            (remark.to_owned(), DIM),
        ]);
    }
    grid
}

/// The regret against the best in hindsight, in a sentence.
fn regret(report: &Report, digits: usize) -> String {
    let evaluation = &report.evaluation;
    let is_known = |name: &str| ["router", name].into_iter().all(|name| evaluation.is_identified(name));
    let errors = evaluation.corrected_regret_standard_error.as_ref();
    let against = |name: &str| {
        let known = evaluation.best_regret().get(name).copied().filter(|_| is_known(name));
        let is_open = name == "pointwise-optimal" && report.open_regret(digits).is_some();
        let error = errors.and_then(|errors| errors.get(name).copied().flatten());
        // The range that labels leave open says more than the sampling error of one point in it.
        let error = error.filter(|_| known.is_some() && !is_open);
        maybe(known, digits) + &error.map_or(String::new(), |error| format!(" ± {}", fixed(error, digits)))
    };
    // A forest decides row by row, and may do better than any action per cell.
    let of_cell = match report.router.decides_by_row() {
        true => String::new(),
        false => format!("{} above the best action per cell, ", against("cell-optimal")),
    };
    let limit = report.ignored_limits_line().map_or(String::new(), |line| format!(" {line}"));
    let open = report.open_regret(digits).map_or(String::new(), |open| format!(" ({open})"));
    // The estimate of the best possible is never above the router's own cost.
    let is_least = evaluation.best_regret().get("pointwise-optimal").is_some_and(|regret| *regret <= 0.0);
    let least = if is_least { ", the least that is estimated" } else { "" };
    if let Some(best) = report.guessed_regret(digits) {
        return format!("Regret: {of_cell}{best}.{limit}");
    }
    let best = against("pointwise-optimal");
    format!("Regret: {of_cell}{best} above the best possible per query{least}{open}.{limit}")
}

fn print_gains(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let evaluation = &report.evaluation;
    heading(
        &mut *out,
        "Routing gain if a perfect oracle were asked: 0 is routing at random, 1 the best possible order",
    )?;
    let mut grid = Grid::new().text("").number("").number("± s.e.").text("");
    let errors = evaluation.corrected_gain_standard_error.as_ref();
    for (name, &gain) in evaluation.best_gain().iter() {
        let (style, remark) = match name {
            "higher-order" => (GOOD.bold(), "most reducible loss first"),
            "total-uncertainty" => (PLAIN, "least confident prediction first"),
            "cell-optimal" if !report.router.decides_by_row() => {
                (PLAIN, "known in hindsight only; finer cells raise it")
            }
            _ => continue,
        };
        let error = errors.and_then(|errors| errors.get(name).copied().flatten());
        let error = error.map_or(String::new(), |error| fixed(error, 3));
        grid.row([(ranking_name(name), style), (maybe(gain, 3), style), (error, DIM), (remark.to_owned(), DIM)]);
    }
    grid.write(&mut *out)?;
    if !evaluation.unidentified.is_empty() {
        let text = "One label per item does not show in which order routing gains most. The curves take each label as the truth.";
        paragraph(&mut *out, 2, &format!("{DIM}{text}{DIM:#}"))?;
    } else if evaluation.best_gain().iter().all(|(_, gain)| gain.is_none()) {
        let text = "No row's loss is reducible here: routing gains nothing in any order.";
        paragraph(&mut *out, 2, &format!("{DIM}{text}{DIM:#}"))?;
    }
    if evaluation.is_corrected() {
        let text = match evaluation.loss.as_str() {
            "brier" => "Gains and curves are corrected for few labels, as the costs are.",
            _ => {
                "Gains and curves are corrected for few labels, as the costs are: under this loss only in part, and ± does not include the \
                 rest."
            }
        };
        paragraph(&mut *out, 2, &format!("{DIM}{text}{DIM:#}"))?;
    }
    if let Some(correlation) = evaluation.correlation {
        let at = fixed(correlation, 2);
        // Both are estimated from the same few labels.
        let noise = if evaluation.is_corrected() { ", which the noise of few labels raises" } else { "" };
        let text = format!(
            "{DIM}The correlation of reducible and total loss is {at}{noise}: if it were 1, ranking by the expected loss would do as \
             well.{DIM:#}"
        );
        paragraph(&mut *out, 2, &text)?;
    }
    writeln!(out)?;
    let drawn = ["random", "total-uncertainty", "pointwise-optimal", "higher-order"];
    let curves: Vec<Curve<'_>> = drawn
        .iter()
        .zip(SIGNS)
        .filter_map(|(&name, (sign, style))| {
            Some(Curve { name: ranking_name(name), sign, style, values: evaluation.best_curves().get(name)? })
        })
        .collect();
    plot::write(
        out,
        &curves,
        "routed",
        &format!("mean loss per query if a perfect oracle were asked, in {}, without prices", evaluation.unit),
    )
}

fn print_calibration_error(out: &mut impl Write, error: &CalibrationError, report: &Report) -> io::Result<()> {
    let unit = report.evaluation.unit;
    let kind = report.kind_of_rows();
    heading(
        &mut *out,
        &format!("Higher-order calibration error: distance between the label distributions of stored and {kind} rows"),
    )?;
    let digits = decimals([error.raw, error.floor, error.debiased, error.irreducible_gap]);
    let mut grid = Grid::new().text("").number("").text("");
    let mut line = |name: &str, value: f64, remark: String| {
        grid.row([(name.to_owned(), PLAIN), (fixed(value, digits), PLAIN), (remark, DIM)]);
    };
    line("W1", error.raw, format!("mean over cells, covering {} of the rows", percent(error.covered)));
    line("floor", error.floor, "mean W1 under chance alone, with this number of rows".into());
    // No p-value of n random splits is smaller than 1/(n + 1), however rare such distances are.
    let is_smallest = error.p_value <= 1.0 / (DEFAULT_SPLITS as f64 + 1.0);
    let p_value = format!("{}{}", if is_smallest { "at most " } else { "" }, fixed(error.p_value, 3));
    line(
        "debiased",
        error.debiased,
        format!("W1 beyond chance; p-value {p_value}, the probability of such a W1 under chance alone"),
    );
    line("irreducible gap", error.irreducible_gap, format!("largest error of a cell's irreducible loss, in {unit}"));
    if let Some(bound) = error.regret_bound {
        let remark = "largest regret on these rows against the best action per cell, at any prices".to_owned();
        line("regret bound", bound, remark);
    }
    grid.write(&mut *out)?;
    if error.regret_bound.is_none() {
        let needs = if report.router.decides_by_row() {
            "A forest decides each query by its own costs: its cells give no bound on the regret."
        } else {
            "A bound on the regret needs --recalibrate, the same number of labels per row and no empty cells."
        };
        paragraph(out, 2, &format!("{DIM}{needs}{DIM:#}"))?;
    }
    Ok(())
}

fn print_sweep(out: &mut impl Write, sweep: &SweepReport, report: &Report) -> io::Result<()> {
    let by_row = report.router.decides_by_row();
    let axis = match sweep.axis.as_str() {
        "route" if report.evaluation.task.routes.len() > 1 => "all routes, each at this price",
        axis => axis,
    };
    heading(&mut *out, &format!("Sweep of the price of {axis}: cost per query, and shares of the actions"))?;
    // Points at which a target loss is out of reach have fewer values; every value of any point has a column.
    let Some(fullest) = sweep.points.iter().max_by_key(|point| point.mean_cost.iter().count()) else { return Ok(()) };
    // Costs of constant actions, which do not depend on the router, are in the JSON only.
    let shown = |name: &&str| !(name.starts_with("always-") || by_row && *name == "cell-optimal");
    let others = fullest.best_costs().iter().map(|(name, _)| name).filter(|name| shown(name) && *name != "router");
    let costs: Vec<&str> = ["router"].into_iter().chain(others).collect();
    let shares: Vec<&str> = fullest.shares.iter().map(|(name, _)| name).collect();
    let digits = decimals(sweep.points.iter().flat_map(|p| p.best_costs().iter().map(|(_, &cost)| cost)));
    let price_digits = sweep.points.iter().map(|point| written_decimals(point.price)).max().unwrap_or(0);
    let out_of_reach = sweep.points.iter().any(|point| point.least_loss.is_some());
    let mut grid = Grid::new().number("price").numbers(costs.iter().map(|name| rule_name(name)));
    grid = grid.numbers(shares.iter().copied());
    grid = grid.numbers(out_of_reach.then_some("least loss"));
    for point in &sweep.points {
        let mut row = vec![(fixed(point.price, price_digits), BOLD)];
        let cost = |name: &&str| match point.best_costs().get(name) {
            Some(&cost) => (fixed(cost, digits), if *name == "router" { GOOD } else { PLAIN }),
            None if *name == "router" => ("infeasible".to_owned(), WARN),
            None => ("–".to_owned(), DIM),
        };
        row.extend(costs.iter().map(cost));
        let share = |name: &&str| (point.shares.get(name).map_or("–".to_owned(), |&share| percent(share)), DIM);
        row.extend(shares.iter().map(share));
        row.extend(point.least_loss.map(|loss| (fixed(loss, 6), WARN)));
        grid.row(row);
    }
    grid.write(&mut *out)?;
    if fullest.corrected_cost.is_some() {
        paragraph(&mut *out, 2, &format!("{DIM}Costs are corrected for few labels, as above.{DIM:#}"))?;
    }
    if out_of_reach {
        let remark = "Infeasible: at that price no routing reaches the target loss; the last column is the least loss that can be reached.";
        paragraph(out, 2, &format!("{DIM}{remark}{DIM:#}"))?;
    }
    Ok(())
}

/// The number of decimals that a price was written with.
fn written_decimals(price: f64) -> usize {
    plain(price).split_once('.').map_or(0, |(_, decimals)| decimals.len())
}

/// Prints what to do next and, at the very end, the page to open.
fn print_next_step(out: &mut impl Write, report: &Report, written: Option<&Path>) -> io::Result<()> {
    if let Some(next) = &report.next_step {
        next_step(&mut *out, &next.remark, &next.commands)?;
    }
    let Some(page) = written else { return Ok(()) };
    let folder = shell_quoted(page.parent().unwrap_or(Path::new(".")));
    let text = format!("Written into {folder}: report.json, figures as SVG and PNG, and a page with sliders. Open it:");
    writeln!(out)?;
    paragraph(&mut *out, 0, &text)?;
    writeln!(out, "  {BOLD}{}{BOLD:#}", shell_quoted(page))
}
