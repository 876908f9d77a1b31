//! The arguments of `compile`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::TaskArgs;
use super::task::TASK_HELP;

#[derive(Debug, Args)]
#[command(after_help = format!("{TASK_HELP}

A policy file has the cells or trees, their losses and the task, and no \
calibration rows: it is small, opens at once, and decides as the router does, bit \
for bit. Prices, routes and caps can still be changed when it is used; another \
loss or estimator needs the router.

Examples:
  pointsman compile router.safetensors --route expert=0.05 --abstain 0.3 \\
      -o policy.safetensors
  pointsman compile router.safetensors --task task.toml -o policy.safetensors
  pointsman decide policy.safetensors queries.csv -o decisions.csv"))]
pub(crate) struct CompileArgs {
    /// The router (- is standard input)
    #[arg(value_name = "ROUTER", value_hint = ValueHint::FilePath)]
    pub(crate) router: PathBuf,
    /// Where to write the policy (- is standard output)
    #[arg(short, long, value_name = "POLICY", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) task: TaskArgs,
}
