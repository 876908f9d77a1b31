//! `pointsman show`: a router's cells, and for a task what it does in each and why.

use std::io::{self, Write};

use anyhow::bail;
use pointsman::partition::Factor;
use pointsman::policy::Surcharge;
use pointsman::task::{Named, TaskSummary};
use pointsman::{Action, CellId, Decision, Oracle, Policy, Router, Task};
use serde::Serialize;

use crate::args::{ShowArgs, SortKey};
use crate::calibrate::{Labels, Learned, describe};
use crate::certified::{CellPromise, Certified, Promise};
use crate::explain;
use crate::json::{self, known};
use crate::plan::{self, shell_quoted};
use crate::render::number::{count, counted, decimals, fixed, percent};
use crate::render::style::{self, BOLD, DIM, PLAIN};
use crate::render::table::Grid;
use crate::render::{self, entry, next_step, paragraph};

/// A router and, if a task was given, a policy, as scripts read them.
#[derive(Debug, Serialize)]
struct Report {
    classes: Vec<String>,
    rows: usize,
    partition: String,
    recalibrated: bool,
    labels: Labels,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TaskSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    /// What a limit on routing comes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    surcharge: Option<Surcharge>,
    /// Which share of traffic like the calibration rows each action gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    shares: Option<Named<f64>>,
    /// What new queries are expected to cost; null if labels give only bounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    promise: Option<Option<pointsman::policy::Promise>>,
    #[serde(flatten)]
    certified: Option<Promise>,
    cells: Vec<Cell>,
}

#[derive(Debug, Serialize)]
struct Cell {
    cell: u32,
    name: String,
    rows: usize,
    support: &'static str,
    centroid: Option<Vec<f64>>,
    #[serde(flatten)]
    priced: Option<Priced>,
    #[serde(flatten)]
    certified: Option<CellPromise>,
}

/// What a task makes of a cell.
#[derive(Debug, Serialize)]
struct Priced {
    irreducible: Option<f64>,
    reducible: Option<f64>,
    total: Option<f64>,
    costs: Named<Option<f64>>,
    action: Option<String>,
    margin: Option<f64>,
    /// At the margin of a limit: what is done with the queries whose lot falls against the action, and the part of those
    /// that get it.
    #[serde(skip_serializing_if = "Option::is_none")]
    otherwise: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lots: Option<f64>,
    /// Why the action is taken, in one word.
    reason: Option<&'static str>,
    /// What the labels identify of the irreducible loss, however many rows there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    irreducible_identified: Option<[f64; 2]>,
    /// Bounds, where one label per item gives no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    irreducible_bounds: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reducible_bounds: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    costs_low: Option<Named<Option<f64>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    costs_high: Option<Named<Option<f64>>>,
}

/// Several tasks, as scripts read them.
#[derive(Debug, Serialize)]
struct Reports {
    /// With which everything in them holds at once.
    confidence: f64,
    tasks: Vec<Report>,
}

pub(crate) fn run(args: &ShowArgs) -> anyhow::Result<()> {
    plan::one_from_stdin([&args.router].into_iter().chain(&args.task.task).map(Some))?;
    let tasks = plan::tasks(&args.task)?;
    check(args, tasks.len())?;
    let router = plan::load_router(&args.router)?;
    let compile = |(place, (task, _)): (usize, &(Task, String))| {
        plan::policy(&router, task, &args.router, args.task.task.get(place))
    };
    let policies = tasks.iter().enumerate().map(compile).collect::<anyhow::Result<Vec<Policy>>>()?;
    if let ([policy], Some(cell)) = (policies.as_slice(), &args.explain) {
        return explain::cell(&router, policy, args, cell);
    }
    let certified = match args.confidence {
        Some(confidence) => Certified::together(&router, &policies, confidence, &args.router)?,
        None => Vec::new(),
    };
    if args.json {
        let reported = |place: usize, policy: Option<&Policy>| {
            report(&router, policy, certified.get(place), &order(&router, policy, args.sort))
        };
        return match (policies.as_slice(), args.confidence) {
            ([_, _, ..], Some(confidence)) => {
                let tasks = policies.iter().enumerate().map(|(place, policy)| reported(place, Some(policy))).collect();
                json::print_with_warnings(&Reports { confidence, tasks })
            }
            _ => json::print_with_warnings(&reported(0, policies.first())),
        };
    }
    let mut out = io::BufWriter::new(render::stdout());
    if policies.is_empty() {
        print_router(&mut out, args, &router, &order(&router, None, args.sort))?;
    }
    for (place, (policy, (task, flags))) in policies.iter().zip(&tasks).enumerate() {
        let order = order(&router, Some(policy), args.sort);
        if place > 0 {
            writeln!(out)?;
        }
        if tasks.len() > 1 {
            writeln!(out, "{BOLD}{}{BOLD:#} ({} of {})", flags.trim_start(), place + 1, tasks.len())?;
        }
        match certified.get(place) {
            Some(certified) => certified.print(&mut out, args, &router, policy, flags, &order)?,
            None => print_policy(&mut out, args, &router, policy, &order)?,
        }
        out.flush()?;
        plan::warn_if_no_choice(task);
        plan::prices_in_words(policy.task()).iter().for_each(render::warn);
    }
    Ok(out.flush()?)
}

/// Refuses flags that need a task, or one task only.
fn check(args: &ShowArgs, tasks: usize) -> anyhow::Result<()> {
    if tasks == 0 && args.sort == SortKey::Margin {
        bail!("--sort margin needs a task: add --route COST or --abstain COST");
    }
    if tasks == 0 && (args.confidence.is_some() || args.explain.is_some()) {
        let flag = if args.explain.is_some() { "--explain" } else { "--confidence" };
        bail!("{flag} needs a task: add --route COST or --abstain COST");
    }
    if tasks > 1 && args.explain.is_some() {
        bail!("--explain and {tasks} tasks: a cell is explained for one task, give one --task");
    }
    if tasks > 1 && args.confidence.is_none() {
        bail!(
            "{tasks} tasks: several are shown together to certify them all at once, add --confidence 0.95, or give one --task"
        );
    }
    Ok(())
}

fn order(router: &Router, policy: Option<&Policy>, key: SortKey) -> Vec<CellId> {
    let mut cells: Vec<CellId> = (0..router.cells().count() as u32).map(CellId).collect();
    match key {
        SortKey::Cell => {}
        SortKey::Rows => cells.sort_by_key(|&cell| std::cmp::Reverse(router.mixture(cell).len())),
        SortKey::Margin => {
            // Empty cells have no margin and come last.
            let margin = |cell| policy.and_then(|policy| policy.cell(cell)).map_or(f64::INFINITY, |d| d.margin());
            cells.sort_by(|&a, &b| margin(a).total_cmp(&margin(b)));
        }
    }
    cells
}

fn report(router: &Router, policy: Option<&Policy>, certified: Option<&Certified>, order: &[CellId]) -> Report {
    let names = policy.map(|policy| policy.task().action_names()).unwrap_or_default();
    let identified = policy.map(|policy| identified(router, policy)).unwrap_or_default();
    let cell = |&cell: &CellId| {
        let mixture = router.mixture(cell);
        Cell {
            cell: cell.0,
            name: router.cells().name(cell, router.classes()),
            rows: mixture.len(),
            support: mixture.support().name(),
            centroid: mixture.centroid(),
            priced: policy.map(|policy| Priced {
                irreducible_identified: identified.get(cell.index()).copied().flatten(),
                ..priced(policy.cell(cell).as_ref(), &names)
            }),
            certified: certified.zip(policy).map(|(certified, policy)| certified.cell(cell, policy)),
        }
    };
    Report {
        classes: router.classes().to_vec(),
        rows: router.rows().rows(),
        partition: router.partition().to_string(),
        recalibrated: router.is_recalibrated(),
        labels: Learned::of(router).labels.into(),
        task: policy.map(Policy::task_summary),
        unit: policy.map(|policy| policy.task().loss().unit()),
        surcharge: policy.and_then(Policy::surcharge),
        shares: policy.map(Policy::shares),
        promise: policy.map(Policy::promise),
        certified: certified.map(Certified::promise),
        cells: order.iter().map(cell).collect(),
    }
}

fn priced(decision: Option<&Decision<'_>>, names: &[String]) -> Priced {
    let named = |costs: Option<Vec<f64>>| {
        let cost = |(i, name): (usize, &String)| (name.clone(), costs.as_ref().and_then(|costs| known(costs[i])));
        names.iter().enumerate().map(cost).collect()
    };
    let bounded = decision.filter(|d| !d.estimate().is_known());
    let bounds = |d: &Decision<'_>| [d.estimate().irreducible_low, d.estimate().irreducible_high];
    Priced {
        irreducible: decision.and_then(Decision::irreducible),
        reducible: decision.and_then(Decision::reducible),
        total: decision.map(Decision::total),
        costs: named(decision.map(|d| d.known_costs().collect())),
        action: decision.map(|d| d.action().to_string()),
        margin: decision.filter(|d| d.action() != Action::Undetermined).and_then(|d| known(d.margin())),
        otherwise: decision.and_then(Decision::otherwise).map(|action| action.to_string()),
        lots: decision.and_then(Decision::marginal_share),
        reason: decision.map(|decision| decision.reason().name()),
        irreducible_identified: None,
        irreducible_bounds: bounded.map(bounds),
        reducible_bounds: bounded.map(|decision| decision.estimate().reducible_bounds()),
        costs_low: bounded.map(|d| named(Some(d.costs().to_vec()))),
        costs_high: bounded.map(|d| named(Some(d.costs_high().to_vec()))),
    }
}

/// What the labels of each cell identify of its irreducible loss; nothing of the cells of a forest, whose queries have losses of their own.
fn identified(router: &Router, policy: &Policy) -> Vec<Option<[f64; 2]>> {
    let of_queries = matches!(router.partition().factors(), [Factor::Forest { .. }]);
    if of_queries { Vec::new() } else { policy.identified(router).unwrap_or_default() }
}

fn print_router(out: &mut impl Write, args: &ShowArgs, router: &Router, order: &[CellId]) -> io::Result<()> {
    let path = shell_quoted(&args.router);
    let rows = counted(router.rows().rows(), "calibration row", "calibration rows");
    paragraph(&mut *out, 0, &format!("{BOLD}{path}{BOLD:#}: a router of {rows}"))?;
    describe(out, router, &Learned::of(router))?;
    writeln!(out)?;
    // With many classes only the largest shares fit on a line.
    const WIDE: usize = 6;
    let classes = router.classes();
    let mut grid = Grid::new().number("cell").text("name").number("rows").text("support");
    grid = if classes.len() <= WIDE {
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
            Some(centroid) if classes.len() <= WIDE => {
                row.extend(centroid.iter().map(|&share| (fixed(share, 4), PLAIN)));
            }
            Some(centroid) => row.push((most_frequent(classes, &centroid), PLAIN)),
            None => {}
        }
        grid.row(row);
    }
    grid.write(&mut *out)?;
    let command = format!("pointsman show {path} --route 0.05 --abstain 0.3");
    next_step(out, "Next, name a loss and prices:", &[command])
}

fn most_frequent(classes: &[String], centroid: &[f64]) -> String {
    let mut order: Vec<usize> = (0..classes.len()).collect();
    order.sort_by(|&a, &b| centroid[b].total_cmp(&centroid[a]));
    let shown = order.iter().take(3).map(|&class| format!("{} {}", classes[class], fixed(centroid[class], 3)));
    shown.collect::<Vec<_>>().join(", ")
}

fn print_policy(
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
    let identified = identified(router, policy);
    // Narrower than the digits shown, an interval says nothing; bounds of one label are shown as the estimate.
    let worth_showing = |[low, high]: [f64; 2]| high - low >= 10_f64.powi(-(digits as i32));
    let known = |cell: &CellId| policy.cell(*cell).is_some_and(|decision| decision.estimate().is_known());
    let open = |cell: &CellId| identified.get(cell.index()).copied().flatten().filter(|ends| worth_showing(*ends));
    let any_open = order.iter().any(|cell| known(cell) && open(cell).is_some());
    let mut grid = Grid::new().number("cell").text("name").number("rows").text("support");
    grid = grid.numbers(["irreducible"]).numbers(any_open.then_some("identified")).numbers(["reducible"]);
    grid = grid.numbers(&names).text("action").number("margin");
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
                let mut cells = decision_cells(decision, digits);
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
    let flags = plan::task_flags(&args.task);
    let decide = format!("pointsman decide {path} queries.csv{flags} -o decisions.csv");
    let evaluate = format!("pointsman evaluate {path} heldout.csv{flags}");
    let remark = "Next, decide queries, or prove it on held-out rows (with the --columns and --delimiter that calibrate had, if any):";
    next_step(out, remark, &[decide, evaluate])
}

/// Whose costs follow, and in what unit.
pub(crate) fn print_title(out: &mut impl Write, path: &str, router: &Router, policy: &Policy) -> io::Result<()> {
    let loss = policy.task().loss();
    let title = format!(
        "{BOLD}{path}{BOLD:#}: {} in {}, costs in {} per query ({loss})",
        counted(router.rows().rows(), "row", "rows"),
        counted(router.cells().count(), "cell", "cells"),
        loss.unit(),
    );
    paragraph(&mut *out, 0, &title)?;
    writeln!(out)?;
    render::matrix::write(out, &policy.task_summary(), router.classes())
}

fn decision_cells(decision: &Decision<'_>, digits: usize) -> Vec<(String, anstyle::Style)> {
    let range = |low: f64, high: f64| {
        if low == high { fixed(low, digits) } else { format!("{}…{}", fixed(low, digits), fixed(high, digits)) }
    };
    let estimate = decision.estimate();
    let [reducible_low, reducible_high] = estimate.reducible_bounds();
    let action = decision.action();
    let mut cells = vec![
        (range(estimate.irreducible_low, estimate.irreducible_high), PLAIN),
        (range(reducible_low, reducible_high), PLAIN),
    ];
    let costs = decision.costs().iter().zip(decision.costs_high());
    cells.extend(costs.map(|(&low, &high)| (range(low, high), PLAIN)));
    let lots = decision.marginal_share().map_or(String::new(), |part| format!(" ({})", percent(part)));
    cells.push((format!("{action}{lots}"), style::action(&action)));
    let margin = if action == Action::Undetermined { f64::NAN } else { decision.margin() };
    cells.push((fixed(margin, digits), DIM));
    cells
}

fn print_legend(out: &mut impl Write, policy: &Policy, factors: &[Factor], identified: bool) -> io::Result<()> {
    const TEXT_FROM: usize = 15;
    let mut line =
        |name: &str, text: &str| entry(&mut *out, TEXT_FROM, &format!("{DIM}{name}"), &format!("{text}{DIM:#}"));
    line("irreducible", "what even a perfect oracle would lose, because the labels themselves disagree")?;
    if identified {
        line(
            "identified",
            "the range of irreducible losses that so many labels per item allow, however many rows there are",
        )?;
    }
    line("reducible", "what an oracle would save: the error of the weak model itself")?;
    let asked = if policy.task().routes().iter().all(|route| *route.oracle() == Oracle::Bayes) {
        "a route costs irreducible + its price"
    } else {
        "a route costs the loss of its oracle + its price"
    };
    line("predict", &format!("irreducible + reducible (shown as 0 if noise made it negative); {asked}"))?;
    line("margin", "by how much the action beats the next best")?;
    if let [Factor::Forest { .. }] = factors {
        line("forest", "each row shows a cell as a whole; each query is decided by its own costs")?;
    }
    if (0..policy.cells().count() as u32).filter_map(|cell| policy.cell(CellId(cell))).any(|d| !d.estimate().is_known())
    {
        line(
            "low…high",
            "with one label per item only bounds are known; a second label on some items would separate the two losses",
        )?;
    }
    Ok(())
}

/// Which share of the calibration rows each action would get.
pub(crate) fn print_shares(out: &mut impl Write, policy: &Policy) -> io::Result<()> {
    let shares = policy.shares();
    let mut shares: Vec<(&str, f64)> = shares.iter().map(|(name, &share)| (name, share)).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let text: Vec<String> = shares
        .into_iter()
        .filter(|(_, share)| *share > 0.0)
        .map(|(name, share)| {
            let style = style::action_named(name);
            format!("{style}{name}{style:#} {}", percent(share))
        })
        .collect();
    writeln!(out)?;
    paragraph(&mut *out, 2, &format!("On traffic like the calibration rows: {}", text.join(", ")))?;
    if let Some(text) = plan::promise_in_words(policy) {
        paragraph(&mut *out, 2, &text)?;
    }
    plan::limit_in_words(policy).map_or(Ok(()), |text| paragraph(out, 2, &text))
}
