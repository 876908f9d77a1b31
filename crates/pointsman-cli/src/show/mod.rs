//! `pointsman show`: a router's cells and, for a task, the action in each and why.

pub(crate) mod certified;
mod human;
mod json;
mod panels;

use std::io::{self, Write};

use anyhow::bail;
use pointsman::{CellId, Policy, Router, Task};

use crate::args::{ShowArgs, SortKey};
use crate::certified::Certified;
use crate::json::print_with_warnings;
use crate::render::style::BOLD;
use crate::render::{self, warn_all};
use crate::{errors, explain, input, task, words};
use json::Reports;

pub(crate) fn run(args: &ShowArgs) -> anyhow::Result<()> {
    input::check_streams([&args.router].into_iter().chain(&args.task.task).map(Some))?;
    let tasks = task::all_from_args(&args.task)?;
    check(args, tasks.len())?;
    let router = input::load_router(&args.router)?;
    let compile = |(place, (task, _)): (usize, &(Task, String))| {
        errors::compile(&router, task, &args.router, args.task.task.get(place))
    };
    let policies = tasks.iter().enumerate().map(compile).collect::<anyhow::Result<Vec<Policy>>>()?;
    warn_all(words::policy::few_rows(&router));
    tasks.iter().for_each(|(task, _)| warn_all(words::policy::unused_answers(task, router.rows())));
    if let ([policy], Some(cell)) = (policies.as_slice(), &args.explain) {
        return explain::cell(&router, policy, args, cell);
    }
    let certified = match args.confidence {
        Some(confidence) => Certified::all(&router, &policies, confidence, &args.router)?,
        None => Vec::new(),
    };
    if args.json {
        let reported = |place: usize, policy: Option<&Policy>| {
            json::report(&router, policy, certified.get(place), &order(&router, policy, args.sort))
        };
        return match (policies.as_slice(), args.confidence) {
            ([_, _, ..], Some(confidence)) => {
                let tasks = policies.iter().enumerate().map(|(place, policy)| reported(place, Some(policy))).collect();
                print_with_warnings(&Reports { confidence, tasks })
            }
            _ => print_with_warnings(&reported(0, policies.first())),
        };
    }
    let mut out = io::BufWriter::new(render::stdout());
    if policies.is_empty() {
        human::print_router(&mut out, args, &router, &order(&router, None, args.sort))?;
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
            Some(found) => certified::print(&mut out, found, args, &router, policy, flags, &order)?,
            None => human::print_policy(&mut out, args, &router, policy, &order)?,
        }
        out.flush()?;
        warn_all(words::policy::no_choice(task));
        warn_all(words::policy::overpriced(policy.task()));
    }
    Ok(out.flush()?)
}

/// Refuses flags that need another number of tasks.
fn check(args: &ShowArgs, tasks: usize) -> anyhow::Result<()> {
    if tasks == 0 && args.sort == SortKey::Margin {
        bail!("--sort margin needs a task: add --route COST or --abstain COST");
    }
    if tasks == 0 && (args.confidence.is_some() || args.explain.is_some()) {
        let flag = if args.explain.is_some() { "--explain" } else { "--confidence" };
        bail!("{flag} needs a task: add --route COST or --abstain COST");
    }
    if tasks > 1 && args.explain.is_some() {
        bail!("--explain with {tasks} tasks: a cell is explained for one task; give one --task");
    }
    if tasks > 1 && args.confidence.is_none() {
        bail!(
            "{tasks} tasks: several tasks are shown only with intervals that hold for all of them; add --confidence 0.95, or give one --task"
        );
    }
    Ok(())
}

/// The cells in the order of `--sort`.
fn order(router: &Router, policy: Option<&Policy>, key: SortKey) -> Vec<CellId> {
    let mut cells: Vec<CellId> = (0..router.cells().count() as u32).map(CellId).collect();
    match key {
        SortKey::Cell => {}
        SortKey::Rows => cells.sort_by_key(|&cell| std::cmp::Reverse(router.mixture(cell).len())),
        SortKey::Margin => {
            // Empty cells, which have no margin, come last.
            let margin = |cell| policy.and_then(|policy| policy.cell(cell)).map_or(f64::INFINITY, |d| d.margin());
            cells.sort_by(|&a, &b| margin(a).total_cmp(&margin(b)));
        }
    }
    cells
}
