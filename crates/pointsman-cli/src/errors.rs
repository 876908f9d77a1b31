//! Errors of the core, with the file at fault.

use std::path::{Path, PathBuf};

use pointsman::error::{TableError, TaskError};
use pointsman::task::Route;
use pointsman::{Policy, Router, Task};
use pointsman_table::Frame;

use crate::args::TaskArgs;
use crate::failure::Hint;
use crate::flags::{self, shell_quoted, shell_quoted_text};

/// Compiles a router for a task; an error names the router's file, or the task's if the task is at fault.
pub(crate) fn compile(router: &Router, task: &Task, path: &Path, file: Option<&PathBuf>) -> anyhow::Result<Policy> {
    router.policy(task).map_err(|error| in_task(error, file, |error| in_router(error, path)))
}

/// An error in a table's rows, with the file and the rows in it.
pub(crate) fn in_rows(error: pointsman::Error, frame: &Frame) -> anyhow::Error {
    match error {
        pointsman::Error::Value { .. } | pointsman::Error::Table(_) => frame.error(error).into(),
        other => other.into(),
    }
}

/// An error in a task, with the task's file if it has one; other errors go to `otherwise`.
pub(crate) fn in_task(
    error: pointsman::Error,
    file: Option<&PathBuf>,
    otherwise: impl Fn(pointsman::Error) -> anyhow::Error,
) -> anyhow::Error {
    match (&error, file) {
        (pointsman::Error::Task(_) | pointsman::Error::OutOfReach { .. }, Some(file)) => {
            pointsman_table::Error::File { file: file.display().to_string(), reason: error.to_string() }.into()
        }
        _ => otherwise(error),
    }
}

/// An error in a router's rows, with the router's file.
pub(crate) fn in_router(error: pointsman::Error, path: &Path) -> anyhow::Error {
    match error {
        pointsman::Error::Table(reason) => {
            let hint = match &reason {
                TableError::NoAnswers { oracles, .. } if oracles.is_empty() => {
                    "; if the calibration table has them in columns of another name, calibrate again with --columns oracles=NAME"
                }
                _ => "",
            };
            pointsman_table::Error::File { file: path.display().to_string(), reason: format!("{reason}{hint}") }.into()
        }
        other => other.into(),
    }
}

/// An error of the operating system, with the path it is about.
pub(crate) fn in_file(path: &Path, error: std::io::Error) -> anyhow::Error {
    pointsman_table::Error::Io { file: path.display().to_string(), source: error }.into()
}

/// An error of a task that a policy cannot answer, with the command that writes a policy that can. The policy itself is kept.
pub(crate) fn other_policy(error: pointsman::Error, task: &Task, path: &Path, args: &TaskArgs) -> anyhow::Error {
    let needs_rows = matches!(
        &error,
        pointsman::Error::Task(
            TaskError::OtherPolicyFile { .. } | TaskError::OtherOracle { .. } | TaskError::LimitNeedsRows
        )
    );
    let has_other_loss = needs_rows && args.loss.is_some() && args.task.is_empty();
    let has_old_prices = has_other_loss
        && (task.routes().iter().any(|route| !is_priced_anew(route, args))
            || task.abstain_price().is_some() && args.abstain.is_none());
    let prices = match has_old_prices {
        true => "; its prices are in the unit of its own loss: with another loss give --route and --abstain anew",
        false => "",
    };
    let error = pointsman_table::Error::File { file: path.display().to_string(), reason: format!("{error}{prices}") };
    let flags = match (args.task.is_empty(), has_old_prices) {
        (true, true) => {
            flags::of_task_without_prices(task, |route| is_priced_anew(route, args), args.abstain.is_some())
        }
        (true, false) => flags::of_task(task),
        (false, _) => flags::task(args),
    };
    // A loss that was asked for is named even if it is the default.
    let loss = match &args.loss {
        Some(loss) if !flags.contains(" --loss ") => format!(" --loss {}", shell_quoted_text(&loss.to_string())),
        _ => String::new(),
    };
    let command = format!("pointsman compile ROUTER{loss}{flags} -o {}", shell_quoted(&beside(path)));
    match needs_rows {
        true => anyhow::Error::from(error).context(Hint(command)),
        false => error.into(),
    }
}

/// Whether a route has a price that was given with the loss.
fn is_priced_anew(route: &Route, args: &TaskArgs) -> bool {
    args.route.iter().any(|flag| flag.name == route.name() || !flag.is_named)
}

/// The path of a second policy beside a policy: `policy-2.safetensors` beside `policy.safetensors`.
fn beside(policy: &Path) -> PathBuf {
    let stem = policy.file_stem().unwrap_or_default().to_string_lossy();
    policy.with_file_name(format!("{stem}-2.safetensors"))
}
