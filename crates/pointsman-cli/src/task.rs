//! Tasks as checked: the flags and the task file of a command, in one [`Task`].

use std::path::{Path, PathBuf};

use anyhow::bail;
use pointsman::policy::Caps;
use pointsman::task::Route;
use pointsman::{Limit, Loss, Oracle, Policy, Task};

use crate::args::{AbstainArg, CapArg, RouteArg, TaskArgs};
use crate::render::number::plain;
use crate::{flags, render};

/// The task of the flags and of the task file, if there is one; flags override the file.
pub(crate) fn from_args(args: &TaskArgs) -> anyhow::Result<Task> {
    match args.task.as_slice() {
        [] => override_task(&Task::new(Loss::brier()), args),
        [path] => from_file(path, args),
        several => bail!(
            "--task is given {} times, and this command takes one task; compare takes several, and so does show --confidence, to \
             certify them all at once",
            several.len()
        ),
    }
}

/// The task of the arguments beside a policy: `given`, if it is from a task file, else the policy's own, overridden by flags.
pub(crate) fn beside_policy(policy: &Policy, given: &Task, args: &TaskArgs) -> anyhow::Result<Task> {
    if args.task.is_empty() { override_task(policy.task(), args) } else { Ok(given.clone()) }
}

/// The task of a file, overridden by flags.
pub(crate) fn from_file(path: &Path, args: &TaskArgs) -> anyhow::Result<Task> {
    override_task(&pointsman_table::read_task(path)?, args)
}

/// A task overridden by flags. A route of the same name gets the flag's price and, if the flag has one, its kind of oracle.
fn override_task(given: &Task, args: &TaskArgs) -> anyhow::Result<Task> {
    let mut task = Task::new(args.loss.clone().unwrap_or_else(|| given.loss().clone()))
        .estimator(args.estimator.unwrap_or_else(|| given.chosen_estimator()))
        .ties(args.ties.unwrap_or_else(|| given.chosen_ties()));
    let flags = args.route.iter().map(|flag| with_name(given, flag)).collect::<anyhow::Result<Vec<RouteArg>>>()?;
    for (place, flag) in flags.iter().enumerate() {
        if flags[..place].iter().any(|other| other.name == flag.name) {
            bail!("two --route flags are called {:?}: give each a name of its own", flag.name);
        }
    }
    for route in given.routes() {
        let flag = flags.iter().find(|flag| flag.name == route.name());
        let oracle = flag.and_then(|flag| flag.oracle.as_ref()).unwrap_or(route.oracle());
        task = task.route(route.name(), oracle.clone(), flag.map_or(route.price(), |flag| flag.cost))?;
    }
    let is_new = |flag: &&RouteArg| !given.routes().iter().any(|route| route.name() == flag.name);
    for flag in flags.iter().filter(is_new) {
        check_new_route(given, flag, &flags)?;
        task = task.route(flag.name.as_str(), flag.oracle.clone().unwrap_or_else(Oracle::bayes), flag.cost)?;
    }
    let abstain = match args.abstain {
        Some(AbstainArg::Price(price)) => Some(price),
        Some(AbstainArg::Never) => None,
        None => given.abstain_price(),
    };
    if let Some(price) = abstain {
        task = task.abstain(price)?;
    }
    let limit = args.budget.map(Limit::Budget).or(args.target_loss.map(Limit::TargetLoss)).or(given.limit());
    Ok(match limit {
        Some(Limit::Budget(share)) => task.budget(share)?,
        Some(Limit::TargetLoss(loss)) => task.target_loss(loss)?,
        None => task,
    })
}

/// A flag with the name of the route that it is about: without one it is about the only route of a task file or policy.
fn with_name(given: &Task, flag: &RouteArg) -> anyhow::Result<RouteArg> {
    let names: Vec<&str> = given.routes().iter().map(Route::name).collect();
    match names.as_slice() {
        _ if flag.is_named || names.contains(&flag.name.as_str()) => Ok(flag.clone()),
        [] => Ok(flag.clone()),
        [only] => Ok(RouteArg { name: (*only).to_owned(), is_named: true, ..flag.clone() }),
        several => bail!(
            "--route {0}: says no name, and the task has the routes {1}: write one, as in --route {2}",
            plain(flag.cost),
            several.join(", "),
            flags::shell_quoted_text(&format!("{}={}", several[0], plain(flag.cost)))
        ),
    }
}

/// Refuses a new route whose name is nearly that of a route whose price was perhaps meant to change, and points out any other new one. A flag
/// with a kind of oracle adds a route in any case, since a price is changed without one.
fn check_new_route(given: &Task, flag: &RouteArg, flags: &[RouteArg]) -> anyhow::Result<()> {
    let names: Vec<&str> = given.routes().iter().map(Route::name).collect();
    if flag.oracle.is_some() || names.is_empty() {
        return Ok(());
    }
    let is_unchanged = |name: &&str| flags.iter().all(|flag| flag.name != *name);
    let meant = pointsman_table::did_you_mean(&flag.name, names.iter().copied().filter(is_unchanged));
    let (name, cost) = (&flag.name, plain(flag.cost));
    let kind = flags::shell_quoted_text(&format!("{name}={cost},bayes"));
    if !meant.is_empty() {
        bail!(
            "--route {name}={cost}: the task has no route {name:?}{meant} To add another oracle, write its kind: --route {kind}"
        );
    }
    render::warn(format!(
        "--route {name}={cost} adds an oracle to the task's, which has {}: it is taken to know the label distribution; if that is meant, \
         write --route {kind}",
        names.join(", ")
    ));
    Ok(())
}

/// Every task of the arguments, each with the flags that name it: one per task file, else that of the flags, else none.
pub(crate) fn all_from_args(args: &TaskArgs) -> anyhow::Result<Vec<(Task, String)>> {
    if args.task.len() < 2 {
        return Ok(if args.is_given() { vec![(from_args(args)?, flags::task(args))] } else { Vec::new() });
    }
    args.task.iter().map(|path: &PathBuf| Ok((from_file(path, args)?, flags::task_of_file(path, args)))).collect()
}

/// The caps on a task's routes, if there are any.
pub(crate) fn caps(args: &[CapArg], task: &Task) -> anyhow::Result<Option<Caps>> {
    if args.is_empty() {
        return Ok(None);
    }
    Ok(Some(Caps::new(task, args.iter().map(|cap| (&cap.name, cap.size)))?))
}
