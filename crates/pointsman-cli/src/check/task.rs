//! `pointsman task check`: verifies a task file and describes it.

use std::io::{self, Write};

use anyhow::bail;
use pointsman::loss::NeverChosen;
use pointsman::oracle::Aggregate;
use pointsman::task::Ties;
use pointsman::task::{Route, TaskSummary};
use pointsman::{Estimator, Limit, Loss, Oracle, Task};
use serde::Serialize;

use crate::args::TaskCheckArgs;
use crate::flags::shell_quoted;
use crate::render::number::{exact, percent, short};
use crate::render::style::{BOLD, DIM, GOOD, WARN};
use crate::render::{self, heading, matrix, paragraph, printable, warn_all};
use crate::{errors, input, json, words};

/// A verified task, as scripts read it.
#[derive(Debug, Serialize)]
struct TaskReport {
    file: String,
    /// The classes given, or those the loss names.
    classes: Option<Vec<String>>,
    #[serde(flatten)]
    task: TaskSummary,
    unit: &'static str,
    actions: Vec<String>,
    /// The act that is best for each class if that class is certain.
    if_certain: Vec<BestAct>,
    never_chosen: Vec<NeverChosen>,
    /// The columns that measured routes need in calibration tables.
    needs_columns: Vec<String>,
}

#[derive(Debug, Serialize)]
struct BestAct {
    class: String,
    act: String,
}

pub(crate) fn run(args: &TaskCheckArgs) -> anyhow::Result<()> {
    if input::is_table(&args.file) {
        bail!(
            "{}: is a table, not a task file; pointsman calibrate TABLE -o ROUTER writes a router, and tasks are TOML files with a loss and prices",
            args.file.display()
        );
    }
    let task = pointsman_table::read_task(&args.file)?;
    let given = (!args.classes.is_empty()).then(|| args.classes.clone());
    let refuse = |error| errors::in_task(error, Some(&args.file), anyhow::Error::from);
    let task = task.checked_for(given.as_deref()).map_err(refuse)?;
    let classes = given.or_else(|| task.loss().class_names().map(<[String]>::to_vec));
    warn_all(words::policy::overpriced(&task));
    if args.json {
        return json::print_with_warnings(&report(args, &task, classes));
    }
    Ok(print(args, &task, classes)?)
}

/// Numbers as names of classes, if the loss fixes how many there are.
fn numbered_classes(loss: &Loss) -> Option<Vec<String>> {
    let columns = loss.costs()?.first()?.len();
    Some((1..=columns).map(|place| format!("class {place}")).collect())
}

fn report(args: &TaskCheckArgs, task: &Task, classes: Option<Vec<String>>) -> TaskReport {
    let named = classes.clone().or_else(|| numbered_classes(task.loss())).unwrap_or_default();
    TaskReport {
        file: args.file.display().to_string(),
        task: TaskSummary::new(task, &named),
        unit: task.loss().unit(),
        actions: task.action_names(),
        if_certain: if_certain(task.loss(), &named),
        never_chosen: task.loss().never_chosen(),
        needs_columns: needed_columns(task, classes.as_deref()),
        classes,
    }
}

/// The best act for each class if that class is certain, for losses with acts of their own.
fn if_certain(loss: &Loss, classes: &[String]) -> Vec<BestAct> {
    let Some(acts) = loss.acts() else { return Vec::new() };
    let best_act = |class: usize| {
        let mut q = vec![0.0; classes.len()];
        q[class] = 1.0;
        BestAct { class: classes[class].clone(), act: acts[loss.act(&q)].clone() }
    };
    (0..classes.len()).map(best_act).collect()
}

fn needed_columns(task: &Task, classes: Option<&[String]>) -> Vec<String> {
    let measured = task.routes().iter().filter(|route| *route.oracle() == Oracle::Measured);
    let any = ["<class>".to_owned()];
    let classes = classes.unwrap_or(&any);
    let columns = |route: &Route| {
        let name = route.name().to_owned();
        classes.iter().map(move |class| format!("oracle_{name}_{class}"))
    };
    measured.flat_map(columns).collect()
}

fn print(args: &TaskCheckArgs, task: &Task, classes: Option<Vec<String>>) -> io::Result<()> {
    let mut out = io::BufWriter::new(render::stdout());
    let can = match &args.classes[..] {
        [] => "can be used".to_owned(),
        classes => format!("can be used with the classes {}", printable(&classes.join(", "))),
    };
    paragraph(&mut out, 0, &format!("{BOLD}{}{BOLD:#} {GOOD}{can}{GOOD:#}", shell_quoted(&args.file)))?;
    loss_in_words(&mut out, task.loss(), classes.as_deref())?;
    heading(&mut out, "Actions")?;
    let mut line = |text: String| paragraph(&mut out, 2, &printable(&text));
    line("predict: costs what the prediction loses".to_owned())?;
    for route in task.routes() {
        line(route_in_words(route, classes.as_deref()))?;
    }
    line(match task.abstain_price() {
        Some(price) => format!("abstain: costs {}", exact(price)),
        None => "abstain: never, since it has no price (abstain = 0.3 would give it one)".to_owned(),
    })?;
    if task.routes().is_empty() && task.abstain_price().is_none() {
        paragraph(&mut out, 2, &format!("{WARN}The only action is to predict: add a [[route]] or abstain.{WARN:#}"))?;
    }
    heading(&mut out, "Rules")?;
    let mut line = |text: String| paragraph(&mut out, 2, &text);
    line(match task.limit() {
        None => "No limit: a query is routed wherever that costs least.".to_owned(),
        Some(Limit::Budget(share)) => format!(
            "Budget: at most {} of traffic like the calibration rows is routed, by a price found on those rows.",
            percent(share)
        ),
        Some(Limit::TargetLoss(loss)) => format!(
            "Target: as few queries are routed as keep the expected loss at {}; all routes count with the same price, and \
             their own prices only break ties.",
            short(loss)
        ),
    })?;
    line(format!("Estimator {}: {}.", task.chosen_estimator(), estimator_in_words(task.chosen_estimator())))?;
    line(match task.chosen_ties() {
        Ties::Frugal => {
            "Ties: of equal costs, predict comes first, then the routes in order, then abstain (never pay on a tie)."
                .to_owned()
        }
        Ties::Paper => "Ties: abstain, then routes, then predict, as in the paper.".to_owned(),
    })?;
    out.flush()
}

fn loss_in_words(out: &mut impl Write, loss: &Loss, classes: Option<&[String]>) -> io::Result<()> {
    heading(&mut *out, &format!("Loss: {}, in {}", printable(&loss.to_string()), loss.unit()))?;
    let Some(named) = classes.map(<[String]>::to_vec).or_else(|| numbered_classes(loss)) else {
        let class = loss.penalised_class().map(|(_, penalty)| {
            format!("Wrongly answering the first class costs {}, any other error 1. ", exact(penalty))
        });
        let text = format!("{}The largest loss is {}.", class.unwrap_or_default(), short(loss.bound()));
        return paragraph(out, 2, &text);
    };
    if let Some((class, penalty)) = loss.penalised_class() {
        let class = printable(&named[class]);
        paragraph(&mut *out, 2, &format!("Wrongly answering {class} costs {}, any other error 1.", exact(penalty)))?;
    }
    if let Some(costs) = loss.cost_matrix(&named) {
        matrix::grid(out, &costs)?;
        if !costs.classes_named && loss.to_string().parse::<Loss>().is_err() {
            let text = "The matrix names no classes: its columns are taken in the router's order. To bind them, write classes = […] below [loss].";
            paragraph(&mut *out, 2, &format!("{WARN}{text}{WARN:#}"))?;
        }
        let certain = if_certain(loss, &named);
        let pairs: Vec<String> = certain.iter().map(|it| format!("{} → {}", it.class, it.act)).collect();
        paragraph(&mut *out, 2, &printable(&format!("If the class were certain: {}.", pairs.join(", "))))?;
    }
    for it in loss.never_chosen() {
        let act = printable(&it.act);
        let why = match it.dominated_by {
            Some(other) => format!("{} costs no more under any class", printable(&other)),
            None => "whatever the prediction, another act costs less".to_owned(),
        };
        paragraph(&mut *out, 2, &format!("{WARN}{act} can never be chosen: {why}.{WARN:#}"))?;
    }
    paragraph(out, 2, &format!("{DIM}The largest loss is {}; prices are in the same unit.{DIM:#}", short(loss.bound())))
}

fn route_in_words(route: &Route, classes: Option<&[String]>) -> String {
    let whom = match route.oracle() {
        Oracle::Panel { experts, aggregate, .. } => {
            let answer = match aggregate {
                Aggregate::Mean => "the shares of their labels".to_owned(),
                Aggregate::Plurality => "the class that most of them name".to_owned(),
                Aggregate::Laplace(smoothing) => {
                    format!("the shares of their labels after {} of every class are added", exact(*smoothing))
                }
                other => format!("their {other}"),
            };
            format!("a panel of {experts} who label as the calibration labels do, answering {answer}")
        }
        Oracle::Measured => {
            let class = classes.and_then(<[String]>::first).map_or("<class>", String::as_str);
            let column = format!("oracle_{}", route.name());
            format!(
                "measured by its own predictions: calibration tables need columns {column}_{class} …, or one column {column} with the class"
            )
        }
        _ => "an oracle that knows the label distribution (bayes)".to_owned(),
    };
    format!("route:{}: costs {} and what the answer loses; {whom}", route.name(), exact(route.price()))
}

fn estimator_in_words(estimator: Estimator) -> &'static str {
    match estimator {
        Estimator::Auto => "the one with the least error for the loss, the classes, the labels and the rows",
        Estimator::Shrink => "label means are shrunk until they vary as the truth does; exact for the Brier loss",
        Estimator::Plugin => "the label means are taken for the truth, as in the paper: too low if labels are few",
        Estimator::Npmle => "the maximum-likelihood law of the true distributions; for two or three classes",
        Estimator::Dirichlet => "a Dirichlet law of the true distributions",
        _ => "see the book",
    }
}
