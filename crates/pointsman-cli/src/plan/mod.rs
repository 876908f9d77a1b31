//! `pointsman plan`: which labels to buy next, and what they are worth.

mod buying;
mod candidates;
mod certainty;
mod human;
mod items;
mod items_in_words;
mod json;
mod phrases;
mod way;

use std::io::{self, Write};
use std::path::Path;

use anyhow::bail;
use pointsman::certify::{CellPlan, Offer, Plan};
use pointsman::{Oracle, Task};

use self::buying::Buying;
use self::candidates::Candidates;
use crate::args::PlanArgs;
use crate::certified::coarser_cells;
use crate::json::print_with_warnings;
use crate::output::{Kind, check_overwrite};
use crate::progress::Progress;
use crate::render::number::{exact, plain, short};
use crate::render::{self, warn_all};
use crate::{errors, input, task, words};

/// The number of cells that the advice begins with.
const FIRST_CELLS: usize = 3;

pub(crate) fn run(args: &PlanArgs) -> anyhow::Result<()> {
    let task = check(args)?;
    let router = input::load_router(&args.router)?;
    let task = task.for_classes(router.classes());
    let task = task.map_err(|error| errors::in_task(error, args.task.task.first(), anyhow::Error::from))?;
    if task.action_names().len() < 2 {
        bail!("plan needs a task that leaves a choice: add --route COST or --abstain COST");
    }
    warn_all(words::policy::unused_answers(&task, router.rows()));
    if let Some(price) = args.label_price.filter(|price| *price >= task.loss().bound()) {
        render::warn(format!(
            "a label costs {}, but a wrong answer costs at most {} {}: prices are in the unit of the loss",
            exact(price),
            short(task.loss().bound()),
            task.loss().unit()
        ));
    }
    let candidates = args.items.as_deref().map(|path| Candidates::read(args, &router, path)).transpose()?;
    let annotators = candidates.as_ref().and_then(|candidates| candidates.annotators);
    let spinner = Progress::spinner("planning labels".to_owned());
    let found = router.plan_within(&task, args.confidence, args.max_labels_per_item.or(annotators));
    let found = found.map_err(|error| errors::in_router(error, &args.router))?;
    drop(spinner);
    let buying = Buying::new(args);
    let listed = candidates.map(|candidates| items::list(args, &router, &found, &candidates, buying)).transpose()?;
    let unit = task.loss().unit();
    let coarser = coarser_cells(&router, &task, &found.judgement, args.confidence)?;
    if args.json {
        return print_with_warnings(&json::report(
            &router,
            &found,
            &task,
            args,
            buying,
            listed.as_ref(),
            coarser.as_ref(),
        ));
    }
    let mut out = io::BufWriter::new(render::stdout());
    human::print(&mut out, &router, &found, &task, (args, buying), listed.as_ref(), coarser.as_ref())?;
    words::policy::print_perfect_oracles(&mut out, &task)?;
    if let Some(listed) = &listed {
        items_in_words::print(&mut out, listed, args, unit)?;
    } else {
        human::print_next_step(&mut out, &found, args, buying)?;
    }
    Ok(out.flush()?)
}

/// The task, once the arguments are known to go together.
fn check(args: &PlanArgs) -> anyhow::Result<Task> {
    input::check_streams([
        Some(&args.router),
        args.task.task.first(),
        args.items.as_ref(),
        args.votes.annotations.as_ref(),
    ])?;
    if args.votes.annotations.is_some() && args.items.is_none() {
        bail!("--annotations has the labels of items: add --items TABLE");
    }
    if let Some(spend) = args.spend.filter(|_| args.label_price.is_none()) {
        bail!(
            "--spend {}: how many labels that buys depends on the price of one: add --label-price X, or give --max-labels N",
            plain(spend)
        );
    }
    if args.output.is_some() && args.items.is_none() {
        bail!(
            "-o writes the items to label, and a router keeps no ids: add --items TABLE, the calibration table for more labels \
             per item, or a table without votes for new items"
        );
    }
    if let Some(output) = &args.output {
        let inputs: Vec<&Path> = args.items.iter().chain([&args.router]).map(AsRef::as_ref).collect();
        check_overwrite(output, &inputs, Kind::Items)?;
    }
    if let Some(budget) = args.task.budget.filter(|budget| *budget > 1.0) {
        bail!(
            "--budget {}: is not a share of the queries, which is from 0 to 1; to limit labels give --max-labels N, or --spend X with \
             --label-price",
            plain(budget)
        );
    }
    let task = task::from_args(&args.task)?;
    if args.max_labels_per_item == Some(1) && task.routes().iter().any(|route| *route.oracle() != Oracle::Measured) {
        bail!("--max-labels-per-item 1: one label per item cannot separate noise from error; give 2 or more");
    }
    Ok(task)
}

/// The undetermined cells, largest worth per label first; cells whose labels are not recommended come last.
fn ranked<'a>(found: &'a Plan, buying: Buying<'_>) -> Vec<&'a CellPlan> {
    let bought = buying.purchase(found);
    let is_worth_it = |plan: &CellPlan| bought.as_ref().is_none_or(|bought| bought.cells.contains(&plan.cell));
    let worth = |plan: &CellPlan| buying.asked(plan).as_ref().map_or(f64::NEG_INFINITY, Offer::worth_per_label);
    let mut cells: Vec<(bool, f64, &CellPlan)> =
        found.cells.iter().map(|plan| (is_worth_it(plan), worth(plan), plan)).collect();
    cells.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
    cells.into_iter().map(|(_, _, plan)| plan).collect()
}
