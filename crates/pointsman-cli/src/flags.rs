//! Arguments as one would type them, for the command lines of next steps.

use std::path::Path;

use pointsman::task::{Route, Ties};
use pointsman::{Action, CellId, Decision, Estimator, Limit, Loss, Oracle, Router, Task};
pub(crate) use pointsman_report::shell_quoted as shell_quoted_text;

use crate::args::{AbstainArg, CapArg, RouteArg, TableArgs, TaskArgs, UNNAMED_ROUTE, VotesArgs};
use crate::render::number::plain;

/// The price of a route and that of abstaining in examples.
const USUAL_ROUTE_PRICE: f64 = 0.05;
const USUAL_ABSTAIN_PRICE: f64 = 0.3;

/// A path as a shell needs it typed.
pub(crate) fn shell_quoted(path: &Path) -> String {
    shell_quoted_text(&path.display().to_string())
}

/// The flags of a task.
pub(crate) fn task(args: &TaskArgs) -> String {
    match args.task.first() {
        Some(path) => task_of_file(path, args),
        None => task_without_file(args),
    }
}

/// The flags of a task that is read from this file.
pub(crate) fn task_of_file(path: &Path, args: &TaskArgs) -> String {
    format!(" --task {}{}", shell_quoted(path), task_without_file(args))
}

fn task_without_file(args: &TaskArgs) -> String {
    let mut flags = String::new();
    let mut push = |flag: &str, value: String| flags.push_str(&format!(" --{flag} {value}"));
    if let Some(loss) = &args.loss {
        push("loss", loss.to_string());
    }
    for route in &args.route {
        let name = if route.is_named { format!("{}=", route.name) } else { String::new() };
        let kind = route.oracle.as_ref().map_or(String::new(), |oracle| format!(",{oracle}"));
        push("route", shell_quoted_text(&format!("{name}{}{kind}", plain(route.cost))));
    }
    if let Some(abstain) = args.abstain {
        push("abstain", abstain.to_string());
    }
    if let Some(share) = args.budget {
        push("budget", share.to_string());
    }
    if let Some(loss) = args.target_loss {
        push("target-loss", loss.to_string());
    }
    if let Some(estimator) = args.estimator {
        push("estimator", estimator.to_string());
    }
    if let Some(ties) = args.ties {
        push("ties", ties.to_string());
    }
    flags
}

/// The flags of a task that no file was given for; `--task TASK` stands for a cost matrix, which only a task file can hold.
pub(crate) fn of_task(task: &Task) -> String {
    self::task(&args_of_task(task))
}

/// The same with `PRICE` in place of each price that is not known to be in the unit of the loss.
pub(crate) fn of_task_without_prices(task: &Task, keeps: impl Fn(&Route) -> bool, keeps_abstain: bool) -> String {
    let mut args = args_of_task(task);
    args.route.retain(|flag| task.routes().iter().any(|route| route.name() == flag.name && keeps(route)));
    args.abstain = args.abstain.filter(|_| keeps_abstain);
    let mut flags = self::task(&args);
    for route in task.routes().iter().filter(|route| !keeps(route)) {
        let kind = if *route.oracle() == Oracle::Bayes { String::new() } else { format!(",{}", route.oracle()) };
        let name = if route.name() == UNNAMED_ROUTE { String::new() } else { format!("{}=", route.name()) };
        flags += &format!(" --route {}", shell_quoted_text(&format!("{name}PRICE{kind}")));
    }
    if task.abstain_price().is_some() && !keeps_abstain {
        flags += " --abstain PRICE";
    }
    flags
}

fn args_of_task(task: &Task) -> TaskArgs {
    let loss = task.loss();
    let is_named = loss.to_string().parse::<Loss>().is_ok_and(|named| named == *loss);
    let routes = task.routes().iter().map(|route| RouteArg {
        name: route.name().to_owned(),
        is_named: route.name() != UNNAMED_ROUTE,
        cost: route.price(),
        oracle: Some(route.oracle().clone()).filter(|oracle| *oracle != Oracle::Bayes),
    });
    let (budget, target_loss) = match task.limit() {
        Some(Limit::Budget(share)) => (Some(share), None),
        Some(Limit::TargetLoss(loss)) => (None, Some(loss)),
        None => (None, None),
    };
    TaskArgs {
        loss: Some(loss.clone()).filter(|loss| is_named && *loss != Loss::brier()),
        route: routes.collect(),
        abstain: task.abstain_price().map(AbstainArg::Price),
        budget,
        target_loss,
        estimator: Some(task.chosen_estimator()).filter(|chosen| *chosen != Estimator::default()),
        ties: Some(task.chosen_ties()).filter(|chosen| *chosen != Ties::default()),
        task: if is_named { Vec::new() } else { vec!["TASK".into()] },
    }
}

/// The flags of a task that shows what a router does: usual prices or, if all rows would get the same action at these, half of what an
/// oracle saves per query. Routes name the models whose answers are known.
pub(crate) fn example_prices(router: &Router) -> String {
    let routes = |price: f64| -> String {
        let measured = router.rows().oracles().map(|(name, _)| format!("{name}={},measured", plain(price)));
        let measured: Vec<String> = measured.map(|route| format!(" --route {}", shell_quoted_text(&route))).collect();
        if measured.is_empty() { format!(" --route {}", plain(price)) } else { measured.concat() }
    };
    let usual = routes(USUAL_ROUTE_PRICE) + &format!(" --abstain {}", plain(USUAL_ABSTAIN_PRICE));
    price_from_rows(router).map_or(usual, routes)
}

/// Half of the mean reducible loss, if at the usual prices all cells would get the same action; `None` if they would not, or if that is not
/// known.
fn price_from_rows(router: &Router) -> Option<f64> {
    /// An example is not worth compiling a policy of more rows.
    const MAX_ROWS: usize = 100_000;
    if router.rows().rows() > MAX_ROWS {
        return None;
    }
    let mut task = Task::new(Loss::brier());
    let names: Vec<&str> = router.rows().oracles().map(|(name, _)| name).collect();
    for name in &names {
        task = task.route(*name, Oracle::Measured, USUAL_ROUTE_PRICE).ok()?;
    }
    if names.is_empty() {
        task = task.route("oracle", Oracle::Bayes, USUAL_ROUTE_PRICE).ok()?;
    }
    let policy = router.policy(&task.abstain(USUAL_ABSTAIN_PRICE).ok()?).ok()?;
    let cells: Vec<Decision<'_>> =
        (0..router.cells().count() as u32).filter_map(|cell| policy.cell(CellId(cell))).collect();
    let first = cells.first()?.action();
    if first == Action::Undetermined || cells.iter().any(|decision| decision.action() != first) {
        return None;
    }
    let weight: f64 = cells.iter().map(|decision| decision.estimate().weight).sum();
    let saved: f64 = cells.iter().map(|d| Some(d.estimate().weight * d.reducible()?)).sum::<Option<f64>>()?;
    let price: f64 = format!("{:.0e}", saved / weight / 2.0).parse().ok()?;
    (price > 0.0).then_some(price)
}

/// The flags of caps.
pub(crate) fn caps(args: &[CapArg]) -> String {
    let flag = |cap: &CapArg| format!(" --cap {}", shell_quoted_text(&format!("{}={}", cap.name, cap.size)));
    args.iter().map(flag).collect()
}

/// The flags that a table is read with.
pub(crate) fn reading(args: &TableArgs, votes: Option<&VotesArgs>) -> String {
    let mut flags = String::new();
    let mut push = |flag: &str, value: &str| flags.push_str(&format!(" --{flag} {}", shell_quoted_text(value)));
    args.filters.iter().for_each(|filter| push("where", &filter.to_string()));
    if let Some(votes) = votes {
        votes.annotations.iter().for_each(|path| push("annotations", &path.display().to_string()));
        votes.first_labels.iter().for_each(|first| push("first-labels", &first.to_string()));
        votes.min_labels.iter().for_each(|least| push("min-labels", &least.to_string()));
        votes.without.iter().for_each(|name| push("without", name));
        votes.ignored_labels.iter().for_each(|label| push("ignore-label", label));
        votes.keep_label.iter().for_each(|keep| push("keep-label", &keep.to_string()));
        flags.push_str(if votes.strict { " --strict" } else { "" });
    }
    flags + &layout(args)
}

/// The flags that another table of the same layout needs too.
pub(crate) fn layout(args: &TableArgs) -> String {
    let mut flags = String::new();
    let mut push = |flag: &str, value: String| flags.push_str(&format!(" --{flag} {}", shell_quoted_text(&value)));
    args.format.iter().for_each(|format| push("format", format.to_string()));
    args.delimiter.iter().for_each(|delimiter| push("delimiter", delimiter.to_string()));
    args.columns.iter().for_each(|columns| push("columns", columns.to_string()));
    flags + if args.normalize { " --normalize" } else { "" }
}
