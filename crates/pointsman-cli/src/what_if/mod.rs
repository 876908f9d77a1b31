//! `pointsman what-if`: a log of decisions under another task or router, in memory that does not grow with the log.

mod human;
mod log;

use anyhow::bail;
use pointsman::monitor::{WhatIf, WhatIfSummary};
use pointsman::policy::Promise;
use pointsman::task::TaskSummary;
use pointsman::{Decisions, Policy, Task};
use pointsman_table::{Format, Need, RouterOrPolicy};
use serde::Serialize;

use crate::args::WhatIfArgs;
use crate::interrupt::Writing;
use crate::progress::Progress;
use crate::render::warn_all;
use crate::{errors, input, json, task, words};
use log::Log;

/// The JSON of `what-if --json`: what the service answers, and what was asked.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    log: String,
    /// The task file that the decisions are compared with; null if it is the logged ones.
    against: Option<String>,
    task: TaskSummary,
    unit: &'static str,
    /// What the new task costs on traffic like the calibration rows, judged by rows left out; null for a policy file at other prices.
    promise: Option<&'a Promise>,
    #[serde(flatten)]
    summary: &'a WhatIfSummary,
}

pub(crate) fn run(mut args: WhatIfArgs) -> anyhow::Result<()> {
    args.task.task.extend(args.task_file.take());
    let args = &args;
    input::check_streams([Some(&args.log), Some(&args.router), args.task.task.first(), args.against.as_ref()])?;
    if Format::from_path(&args.router).is_some() && input::has_router_extension(&args.log) {
        bail!("{}: looks like a table; the log comes first: what-if LOG ROUTER", args.router.display());
    }
    let given = task::from_args(&args.task)?;
    let file = input::load_router_or_policy(&args.router)?;
    let policy = compile(&file, &given, args)?;
    let against = args.against.as_ref().map(|path| {
        let task = pointsman_table::read_task(path)?;
        match &file {
            RouterOrPolicy::Router(router) => errors::compile(router, &task, &args.router, Some(path)),
            _ => policy.reprice(&task).map_err(|error| errors::other_policy(error, &task, &args.router, &args.task)),
        }
    });
    let against = against.transpose()?;
    let mut options = input::read_options(&args.reading, None, Need::Predictions)?;
    options.features = Some(policy.cells().features().to_vec());
    options.classes = Some(policy.classes().to_vec());
    (options.keep_columns, options.allow_empty) = (true, true);
    let batches = pointsman_table::batches(&args.log, &options)?;
    input::check_classes_of_policy(&policy, batches.classes(), &args.log)?;
    let mut what_if = WhatIf::new(&policy);
    {
        let (writing, progress) = (Writing::start(), Progress::rows("deciding"));
        let mut rows = 0;
        for frame in batches {
            writing.check()?;
            let log = Log::new(frame?, against.is_none())?;
            rows += log.rows() as u64;
            add(&mut what_if, &policy, against.as_ref(), &log)?;
            progress.set(rows);
        }
    }
    warn_all(words::policy::no_choice(policy.task()));
    let (summary, promise) = (what_if.summary(&policy), policy.promise());
    if !args.json {
        return Ok(human::print(args, &policy, &summary, promise.as_ref())?);
    }
    json::print_with_warnings(&Answer {
        log: args.log.display().to_string(),
        against: args.against.as_ref().map(|path| path.display().to_string()),
        task: policy.task_summary(),
        unit: policy.task().loss().unit(),
        promise: promise.as_ref(),
        summary: &summary,
    })
}

/// The policy of a router and the task, or of a policy file and its task with the changes that were asked for.
fn compile(file: &RouterOrPolicy, given: &Task, args: &WhatIfArgs) -> anyhow::Result<Policy> {
    match file {
        RouterOrPolicy::Router(router) => errors::compile(router, given, &args.router, args.task.task.first()),
        RouterOrPolicy::Policy(policy) => {
            let task = task::beside_policy(policy, given, &args.task)?;
            policy.reprice(&task).map_err(|error| errors::other_policy(error, &task, &args.router, &args.task))
        }
        _ => bail!("{}: is neither a router nor a policy", args.router.display()),
    }
}

/// Adds a batch of the log, compared with the logged actions or with those of another policy.
fn add(what_if: &mut WhatIf, policy: &Policy, against: Option<&Policy>, log: &Log) -> anyhow::Result<()> {
    let decisions = decide(policy, log)?;
    match against {
        None => what_if.add(policy, &decisions, &log.actions, &log.taken),
        Some(other) => {
            let others = decide(other, log)?;
            let taken: Vec<Option<usize>> = (0..others.len()).map(|row| other.row(&others, row).code()).collect();
            what_if.add(policy, &decisions, &other.task().action_names(), &taken);
        }
    }
    Ok(())
}

/// Decides the queries of a log as they would have been when they arrived.
fn decide(policy: &Policy, log: &Log) -> anyhow::Result<Decisions> {
    let mut decisions = policy.decide_batch(&log.frame.table).map_err(|error| errors::in_rows(error, &log.frame))?;
    // At the margin of a limit, queries with an id of the caller's are drawn by it, the others by their content.
    for (row, id) in log.ids_of_callers() {
        decisions.draw_by_id(policy, row, id);
    }
    Ok(decisions)
}
