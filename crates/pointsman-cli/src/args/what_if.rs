//! The arguments of `what-if`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::task::TASK_HELP;
use super::{TableArgs, TaskArgs};

#[derive(Debug, Args)]
#[command(after_help = format!("{TASK_HELP}

A log is what pointsman decisions export writes: predictions, features, and the \
actions that were taken (the column action, or would where it is not empty, as \
in shadow mode). A table that decide wrote is one too. It is read in bounded \
memory.

Costs of both sides are those of the new task and router: its estimates, its \
prices. They are not measured; that needs labels of these queries.

Examples:
  pointsman what-if log.parquet router.safetensors --route expert=0.02 \\
      --abstain 0.3
  pointsman what-if log.parquet router.safetensors --task new.toml \\
      --against old.toml
  pointsman what-if log.csv policy.safetensors --route expert=0.02 \\
      --where version=3 --json"))]
pub(crate) struct WhatIfArgs {
    /// The log (- is standard input)
    #[arg(value_name = "LOG", value_hint = ValueHint::FilePath)]
    pub(crate) log: PathBuf,
    /// The router, or a policy compiled from it
    #[arg(value_name = "ROUTER", value_hint = ValueHint::FilePath)]
    pub(crate) router: PathBuf,
    /// The task file, instead of --task
    #[arg(value_name = "TASK", value_hint = ValueHint::FilePath, conflicts_with = "task")]
    pub(crate) task_file: Option<PathBuf>,
    /// Compare with the decisions under this task file instead of the logged ones
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) against: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    #[command(flatten)]
    pub(crate) reading: TableArgs,
}
