//! A router and its policy, for the terminal.

use std::io::{self, Write};

use pointsman::partition::Factor;
use pointsman::task::Named;
use pointsman::{Action, CellId, Decision, Oracle, Policy, Router};

use super::json::identified_losses;
use crate::args::ShowArgs;
use crate::flags::{self, shell_quoted};
use crate::render::number::{count, counted, decimals, fixed, percent};
use crate::render::style::{self, BOLD, DIM, PLAIN};
use crate::render::table::Grid;
use crate::render::{self, entry, next_step, paragraph};
use crate::stats::RouterStats;
use crate::words;

pub(super) fn print_router(out: &mut impl Write, args: &ShowArgs, router: &Router, order: &[CellId]) -> io::Result<()> {
    let path = shell_quoted(&args.router);
    let rows = counted(router.rows().rows(), "calibration row", "calibration rows");
    paragraph(&mut *out, 0, &format!("{BOLD}{path}{BOLD:#}: a router of {rows}"))?;
    RouterStats::new(router).describe(out, router)?;
    writeln!(out)?;
    /// With more classes, only the largest means fit on a line.
    const MAX_COLUMNS: usize = 6;
    let classes = router.classes();
    let mut grid = Grid::new().number("cell").text("name").number("rows").text("support");
    grid = if classes.len() <= MAX_COLUMNS {
        grid.numbers(classes.iter().map(|class| format!("mean {class}")))
    } else {
        grid.text("most frequent labels")
    };
    for &cell in order {
        let mixture = router.mixture(cell);
        let support = mixture.support();
        let mut row = vec![
            (cell.to_string(), DIM),
            (router.cells().name(cell, classes), PLAIN),
            (count(mixture.len()), PLAIN),
            (support.name().to_owned(), style::support(support)),
        ];
        match mixture.centroid() {
            Some(centroid) if classes.len() <= MAX_COLUMNS => {
                row.extend(centroid.iter().map(|&share| (fixed(share, 4), PLAIN)));
            }
            Some(centroid) => row.push((most_frequent(classes, &centroid), PLAIN)),
            None => {}
        }
        grid.row(row);
    }
    grid.write(&mut *out)?;
    let command = format!("pointsman show {path}{}", flags::example_prices(router));
    next_step(out, "Next, name a loss and prices:", &[command])
}

fn most_frequent(classes: &[String], centroid: &[f64]) -> String {
    let mut order: Vec<usize> = (0..classes.len()).collect();
    order.sort_by(|&a, &b| centroid[b].total_cmp(&centroid[a]));
    let shown = order.iter().take(3).map(|&class| format!("{} {}", classes[class], fixed(centroid[class], 3)));
    shown.collect::<Vec<_>>().join(", ")
}

pub(super) fn print_policy(
    out: &mut impl Write,
    args: &ShowArgs,
    router: &Router,
    policy: &Policy,
    order: &[CellId],
) -> io::Result<()> {
    let names = policy.task().action_names();
    let path = shell_quoted(&args.router);
    print_title(out, &path, router, policy)?;
    let decisions: Vec<Option<Decision<'_>>> = order.iter().map(|&cell| policy.cell(cell)).collect();
    let digits = decimals(decisions.iter().flatten().flat_map(|d| d.costs_high().iter().copied()));
    let identified = identified_losses(router, policy);
    // An interval narrower than the last digit is not shown, nor are bounds, which stand in place of the estimate.
    let worth_showing = |[low, high]: [f64; 2]| high - low >= 10_f64.powi(-(digits as i32));
    let known = |cell: &CellId| policy.cell(*cell).is_some_and(|decision| decision.estimate().is_known());
    let open = |cell: &CellId| identified.get(cell.index()).copied().flatten().filter(|ends| worth_showing(*ends));
    let any_open = order.iter().any(|cell| known(cell) && open(cell).is_some());
    let shares = policy.shares_within_cells();
    let mut grid = Grid::new().number("cell").text("name").number("rows").text("support");
    grid = grid.numbers(["irreducible"]).numbers(any_open.then_some("identified")).numbers(["reducible"]);
    grid = grid.numbers(&names);
    // The queries of a forest's cell are decided one by one: there is a share of each action, and no margin.
    grid = if shares.is_some() { grid.text("actions") } else { grid.text("action").number("margin") };
    for (&cell, decision) in order.iter().zip(&decisions) {
        let support = policy.support(cell);
        let mut row = vec![
            (cell.to_string(), DIM),
            (router.cells().name(cell, router.classes()), PLAIN),
            (count(router.mixture(cell).len()), PLAIN),
            (support.name().to_owned(), style::support(support)),
        ];
        match decision {
            Some(decision) => {
                let mut cells = loss_cells(decision, digits);
                match &shares {
                    Some(shares) => cells.extend(shares[cell.index()].as_ref().map(shares_cell)),
                    None => cells.extend(action_cells(decision, digits)),
                }
                if any_open {
                    let range = |[low, high]: [f64; 2]| format!("{}…{}", fixed(low, digits), fixed(high, digits));
                    let text = open(&cell).filter(|_| known(&cell)).map_or("–".to_owned(), range);
                    cells.insert(1, (text, DIM));
                }
                row.extend(cells);
            }
            None => {
                row.extend((0..2 + usize::from(any_open) + names.len()).map(|_| ("–".to_owned(), DIM)));
                row.push(("falls back".to_owned(), DIM));
            }
        }
        grid.row(row);
    }
    grid.write(&mut *out)?;
    writeln!(out)?;
    print_legend(out, policy, router.partition().factors(), any_open)?;
    print_shares(out, policy)?;
    let task = flags::task(&args.task);
    let decide = format!("pointsman decide {path} queries.csv{task} -o decisions.csv");
    let evaluate = format!("pointsman evaluate {path} heldout.csv{task}");
    let remark = "Next, decide queries, or evaluate it on held-out rows (with the --columns and --delimiter of calibrate, if any):";
    next_step(out, remark, &[decide, evaluate])
}

/// Prints the router, the unit of its costs and, if the loss has one, its cost matrix.
pub(super) fn print_title(out: &mut impl Write, path: &str, router: &Router, policy: &Policy) -> io::Result<()> {
    let loss = policy.task().loss();
    // The router does not store how many rows these were.
    let shaped = match router.partition().factors() {
        [Factor::Tree | Factor::HonestForest { .. }] => " shaped by other rows",
        _ => "",
    };
    let title = format!(
        "{BOLD}{path}{BOLD:#}: {} in {}{shaped}, costs in {} per query ({loss})",
        counted(router.rows().rows(), "row", "rows"),
        counted(router.cells().count(), "cell", "cells"),
        loss.unit(),
    );
    paragraph(&mut *out, 0, &title)?;
    writeln!(out)?;
    if render::matrix::write(&mut *out, &policy.task_summary(), router.classes())? {
        writeln!(out)?;
    }
    Ok(())
}

/// The cells of a grid for a decision's losses and costs.
fn loss_cells(decision: &Decision<'_>, digits: usize) -> Vec<(String, anstyle::Style)> {
    let range = |low: f64, high: f64| {
        if low == high { fixed(low, digits) } else { format!("{}…{}", fixed(low, digits), fixed(high, digits)) }
    };
    let estimate = decision.estimate();
    let [reducible_low, reducible_high] = estimate.reducible_bounds();
    let mut cells = vec![
        (range(estimate.irreducible_low, estimate.irreducible_high), PLAIN),
        (range(reducible_low, reducible_high), PLAIN),
    ];
    let costs = decision.costs().iter().zip(decision.costs_high());
    cells.extend(costs.map(|(&low, &high)| (range(low, high), PLAIN)));
    cells
}

/// The cells of a grid for a decision's action and margin.
fn action_cells(decision: &Decision<'_>, digits: usize) -> [(String, anstyle::Style); 2] {
    let action = decision.action();
    let random = decision.marginal_share().map_or(String::new(), |part| format!(" ({})", percent(part)));
    let margin = if action == Action::Undetermined { f64::NAN } else { decision.margin() };
    [(format!("{action}{random}"), style::action(&action)), (fixed(margin, digits), DIM)]
}

/// The cell of a grid for the shares of a forest's actions, in the colour of the most frequent one.
fn shares_cell(shares: &Named<f64>) -> (String, anstyle::Style) {
    let shares = words::policy::most_frequent(shares);
    let text: Vec<String> = shares.iter().map(|(name, share)| format!("{name} {}", percent(*share))).collect();
    (text.join(", "), shares.first().map_or(PLAIN, |(name, _)| style::action_named(name)))
}

fn print_legend(out: &mut impl Write, policy: &Policy, factors: &[Factor], identified: bool) -> io::Result<()> {
    const TEXT_COLUMN: usize = 15;
    let mut line =
        |name: &str, text: &str| entry(&mut *out, TEXT_COLUMN, &format!("{DIM}{name}"), &format!("{text}{DIM:#}"));
    line("irreducible", "what even a perfect oracle loses, because the labels themselves disagree")?;
    if identified {
        line(
            "identified",
            "the irreducible losses that are possible with this number of labels per item, however many rows there are",
        )?;
    }
    line("reducible", "what a perfect oracle would save: the error of the weak model itself")?;
    let route = if policy.task().routes().iter().all(|route| *route.oracle() == Oracle::Bayes) {
        "a route costs irreducible + its price"
    } else {
        "a route costs the loss of its oracle + its price"
    };
    line("predict", &format!("irreducible + reducible (shown as 0 if its estimate is negative); {route}"))?;
    let is_forest = matches!(factors, [Factor::Forest { .. }]);
    if is_forest {
        line(
            "actions",
            "the share of the cell's rows that gets each action. Losses and costs are those of the whole cell, but each query is decided by \
             its own",
        )?;
    } else {
        let prices = words::policy::prices_of_limit(policy).map_or(String::new(), |prices| format!(", {prices}"));
        line("margin", &format!("by how much the action beats the next best{prices}"))?;
    }
    if let Some(routes) = routes_of_one_cost(policy) {
        line(
            "equal costs",
            &format!(
                "{routes} costs the same in all cells: their rows differ there by no more than chance, so each cell has the mean of all"
            ),
        )?;
    }
    if is_forest {
        line(
            "name",
            "the cell's rank by the reducible loss that the forest estimates for each row without that row's labels. The losses shown \
             are estimated with all labels, so their order may differ",
        )?;
    }
    if (0..policy.cells().count() as u32).filter_map(|cell| policy.cell(CellId(cell))).any(|d| !d.estimate().is_known())
    {
        line(
            "low…high",
            "bounds, since too few items have two labels; a second label on some items would separate the two losses",
        )?;
    }
    Ok(())
}

/// The routes whose cost is the same in all cells, which differ in the cost of predicting: shrinkage has moved every cell to the mean.
fn routes_of_one_cost(policy: &Policy) -> Option<String> {
    let cells: Vec<Decision<'_>> =
        (0..policy.cells().count() as u32).filter_map(|cell| policy.cell(CellId(cell))).collect();
    let is_one = |action: usize| {
        let costs = || cells.iter().flat_map(|decision| [decision.costs()[action], decision.costs_high()[action]]);
        let largest = costs().fold(f64::NEG_INFINITY, f64::max);
        largest - costs().fold(f64::INFINITY, f64::min) <= 1e-9 * largest.abs()
    };
    let routes = (1..).zip(policy.task().routes()).filter(|(action, _)| is_one(*action));
    let names: Vec<String> = routes.map(|(_, route)| format!("route:{}", route.name())).collect();
    (cells.len() > 1 && !is_one(0) && !names.is_empty()).then(|| names.join(", "))
}

/// Prints each action's share of traffic like the calibration rows, the expected cost, and the limit's effect.
pub(super) fn print_shares(out: &mut impl Write, policy: &Policy) -> io::Result<()> {
    writeln!(out)?;
    let shares = words::policy::shares_in_words(&policy.shares());
    paragraph(&mut *out, 2, &format!("On traffic like the calibration rows: {shares}"))?;
    let together = policy.promise().map(|promise| [promise.cost, promise.standard_error]);
    let panels = super::panels::in_words(&super::panels::each_alone(policy), policy.task().loss().unit(), together);
    let assumed = words::policy::assumed_panels(policy);
    let costs = words::policy::expected_cost(policy).into_iter().chain(words::policy::limit(policy));
    for text in costs.chain(panels).chain(assumed) {
        paragraph(&mut *out, 2, &text)?;
    }
    words::policy::print_perfect_oracles(out, policy.task())
}
