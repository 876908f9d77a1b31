//! The arguments of `show`, `check` and `task check`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::TaskArgs;
use super::task::TASK_HELP;
use super::values::confidence;

#[derive(Debug, Args)]
#[command(after_help = format!("{TASK_HELP}

Examples:
  pointsman show router.safetensors
  pointsman show router.safetensors --loss zero-one --route expert=0.05 \\
      --sort margin
  pointsman show router.safetensors --route one=0.02,panel:m=1 \\
      --route three=0.06,panel:m=3
  pointsman show router.safetensors --route expert=0.05 --confidence 0.95
  pointsman show router.safetensors --task triage.toml --task audit.toml \\
      --confidence 0.95
  pointsman show router.safetensors --route expert=0.05 --explain 3"))]
pub(crate) struct ShowArgs {
    /// The router (- is standard input)
    #[arg(value_name = "ROUTER", value_hint = ValueHint::FilePath)]
    pub(crate) router: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The order of the cells
    #[arg(long, value_name = "KEY", default_value = "cell")]
    pub(crate) sort: SortKey,
    /// Show intervals that hold with this confidence, as in 0.95 or 95%, and which actions are certain
    #[arg(long, value_name = "C", value_parser = confidence, allow_negative_numbers = true)]
    pub(crate) confidence: Option<f64>,
    /// Explain one cell, by number or name: its rows, all costs, the runner-up and which price would change its action
    #[arg(long, value_name = "CELL")]
    pub(crate) explain: Option<String>,
    #[command(flatten)]
    pub(crate) task: TaskArgs,
}

/// What cells are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortKey {
    /// By number
    Cell,
    /// By calibration rows, most first
    Rows,
    /// By the margin of the decision, smallest first
    Margin,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A router or a policy is loaded only if its checksum, every size, every range and every sum \
are right. check also derives the leaf of each row of a forest, which its file stores. \
The exit code is 2 if the file cannot be used; the message names the \
line of an error in a task. --classes also checks that a task can decide \
predictions over these classes. check takes files that end in .toml for tasks, \
task check takes every file for one that is not a table by its name.

Examples:
  pointsman check router.safetensors
  pointsman check policy.safetensors
  pointsman check triage.toml --classes cat,dog,owl
  pointsman task check triage.toml --json")]
pub(crate) struct CheckArgs {
    /// The router, policy or task file to verify (- is standard input)
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The classes of the predictions, in the router's order
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub(crate) classes: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl CheckArgs {
    /// The same arguments for `task check`.
    pub(crate) fn of_task(&self) -> TaskCheckArgs {
        TaskCheckArgs { file: self.file.clone(), classes: self.classes.clone(), json: self.json }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
The exit code is 2 if the file cannot be used; the message names the line of an \
error. --classes also checks that the task can decide predictions over these \
classes.

Examples:
  pointsman task check triage.toml
  pointsman task check triage.toml --classes cat,dog,owl --json")]
pub(crate) struct TaskCheckArgs {
    /// The task file to verify, whatever its extension (- is standard input)
    #[arg(value_name = "TASK", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The classes of the predictions
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub(crate) classes: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
