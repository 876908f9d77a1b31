//! `pointsman plan`: which cells need more labels before their action is certain, and what that is worth.

use std::io::{self, Write};

use anyhow::bail;
use pointsman::{CellPlan, Plan, Router};
use serde::Serialize;

use crate::args::PlanArgs;
use crate::json;
use crate::plan;
use crate::progress::Progress;
use crate::render::number::{count, counted, decimals, fixed, maybe, percent, short};
use crate::render::paragraph;
use crate::render::style::{self, BOLD, DIM, PLAIN};
use crate::render::table::Grid;

/// The plan as scripts read it.
#[derive(Debug, Serialize)]
struct Report {
    confidence: f64,
    unit: &'static str,
    regret_bound: f64,
    certain_share: f64,
    /// The undetermined cells, best first.
    cells: Vec<Open>,
}

#[derive(Debug, Serialize)]
struct Open {
    cell: u32,
    name: String,
    rows: usize,
    share: f64,
    action: String,
    rival: String,
    margin: Option<f64>,
    /// What the action may cost a thousand queries more than the best.
    at_stake: f64,
    /// What settling it is expected to save a thousand queries.
    worth: f64,
    more_labels: Option<usize>,
    more_items: Option<usize>,
    /// Labels in all, by the cheaper of the two ways.
    labels: Option<usize>,
}

pub(crate) fn run(args: &PlanArgs) -> anyhow::Result<()> {
    plan::one_from_stdin([Some(&args.router), args.task.task.first()])?;
    let task = plan::task(&args.task)?;
    let router = plan::load_router(&args.router)?;
    let task = task.for_classes(router.classes());
    let task = task.map_err(|error| plan::of_task(error, args.task.task.first(), anyhow::Error::from))?;
    if task.action_names().len() < 2 {
        bail!("plan needs a task that leaves a choice: add --route COST or --abstain COST");
    }
    let spinner = Progress::spinner("trying out labels".to_owned());
    let found = plan::label_plan(&router, &task, args.confidence, &args.router)?;
    drop(spinner);
    let unit = task.loss().unit();
    if args.json {
        return json::print(&report(&router, &found, unit));
    }
    let mut out = io::BufWriter::new(anstream::stdout().lock());
    print(&mut out, &router, &found, unit)?;
    Ok(out.flush()?)
}

fn report(router: &Router, found: &Plan, unit: &'static str) -> Report {
    let open = |plan: &CellPlan| Open {
        cell: plan.cell.0,
        name: router.cells().name(plan.cell, router.classes()),
        rows: router.mixture(plan.cell).len(),
        share: plan.share,
        action: plan.action.clone(),
        rival: plan.rival.clone(),
        margin: plan.margin,
        at_stake: plan.at_stake,
        worth: plan.worth,
        more_labels: plan.more_labels,
        more_items: plan.more_items,
        labels: plan.labels,
    };
    Report {
        confidence: found.certificate.confidence(),
        unit,
        regret_bound: found.judgement.regret_bound,
        certain_share: found.judgement.certain,
        cells: found.cells.iter().map(open).collect(),
    }
}

fn print(out: &mut impl Write, router: &Router, found: &Plan, unit: &str) -> io::Result<()> {
    let confidence = percent(found.certificate.confidence());
    if found.cells.is_empty() {
        return paragraph(
            out,
            0,
            &format!(
                "With {confidence} confidence every cell's action is certain: no label is needed at these prices."
            ),
        );
    }
    writeln!(
        out,
        "{BOLD}{}{BOLD:#} undetermined with {confidence} confidence: {} of traffic like the calibration rows\n",
        counted(found.cells.len(), "cell is", "cells are"),
        percent(found.open()),
    )?;
    let digits = |value: fn(&CellPlan) -> f64| decimals(found.cells.iter().map(value)).min(4);
    let (worth, at_stake) = (digits(|plan| plan.worth), digits(|plan| plan.at_stake));
    let margin = decimals(found.cells.iter().filter_map(|plan| plan.margin)).min(4);
    let mut grid = Grid::new().number("cell").text("what lies in it").number("share").text("action").text("or");
    grid = grid.numbers(["margin", "worth", "at stake"]);
    grid = grid.numbers(["labels an item", "or items"]).number("labels");
    for plan in &found.cells {
        let about = |more: Option<usize>| more.map_or("–".to_owned(), |more| format!("+{}", count(more)));
        grid.row([
            (plan.cell.to_string(), DIM),
            (router.cells().name(plan.cell, router.classes()), PLAIN),
            (percent(plan.share), PLAIN),
            (plan.action.clone(), style::action_named(&plan.action)),
            (plan.rival.clone(), style::action_named(&plan.rival)),
            (maybe(plan.margin, margin), PLAIN),
            (fixed(plan.worth, worth), BOLD),
            (fixed(plan.at_stake, at_stake), PLAIN),
            (about(plan.more_labels), PLAIN),
            (about(plan.more_items), PLAIN),
            plan.labels.map_or(("out of reach".to_owned(), DIM), |labels| (format!("~{}", count(labels)), PLAIN)),
        ]);
    }
    grid.write(&mut *out)?;
    writeln!(out)?;
    let mut line = |name: &str, text: &str| writeln!(out, "  {DIM}{name:<14} {text}{DIM:#}");
    line("worth", &format!("what settling the cell is expected to save a thousand queries, in {unit}"))?;
    line("at stake", "what its action may cost a thousand queries more than the best, at worst")?;
    line("labels an item", "about how many more on each of its items settle it more often than not")?;
    line("or items", "about how many more items of the cell, with as many labels as now")?;
    line("labels", "in all, by the cheaper of the two")?;
    if found.cells.iter().any(|plan| plan.labels.is_none()) {
        let (labels, times) = (Plan::MOST_LABELS, Plan::MOST_TIMES);
        line("out of reach", &format!("not within {labels} labels an item or {times} times the items"))?;
    }
    let (first, labels, worth) = found.begin_with(3);
    if !first.is_empty() {
        let which: Vec<String> = first.iter().map(ToString::to_string).collect();
        let cells = if which.len() == 1 { "cell" } else { "cells" };
        writeln!(out)?;
        let text = format!(
            "Begin with {cells} {}: about {} labels, worth about {} {unit} a thousand queries.",
            which.join(", "),
            count(labels),
            short(worth)
        );
        paragraph(out, 2, &text)?;
    }
    Ok(())
}
