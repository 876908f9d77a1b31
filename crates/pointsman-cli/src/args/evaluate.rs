//! The arguments of `evaluate`, `compare` and `diagnose`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use pointsman::Partition;
use pointsman::evaluate::Sweep;

use super::task::TASK_HELP;
use super::values::{CapArg, OwnTable};
use super::{TableArgs, TaskArgs, VotesArgs};
use crate::evaluate::fail_if::Condition;
use crate::suggest::{self, suggest};

#[derive(Debug, Args)]
#[command(after_help = format!("{TASK_HELP}

Truth is the mean of a row's labels, or true_<class> columns if there are any.

Conditions of --fail-if compare estimates, corrected for few labels, not ends of \
intervals: saving is against always predicting, routing or abstaining or the \
best confidence threshold, whichever is cheapest and keeps to limits and caps; \
regret is against the best action per cell or, for a forest, the best possible \
per query; drift holds if shares of cells have changed (by chance in at most \
one of twenty runs).

Examples:
  pointsman evaluate router.safetensors heldout.csv --route 0.05 --abstain 0.3
  pointsman evaluate router.safetensors all.npz --where split=1 \\
      --loss zero-one --route expert=0.1 --sweep route:expert=0:0.3:0.05 --json
  pointsman evaluate router.safetensors today.csv --route 0.05 \\
      --fail-if 'saving<0' --fail-if drift"))]
pub(crate) struct EvaluateArgs {
    /// The router (- is standard input)
    #[arg(value_name = "ROUTER", value_hint = ValueHint::FilePath)]
    pub(crate) router: PathBuf,
    /// The held-out table: predictions, and votes or known truth (- is standard input)
    #[arg(value_name = "TABLE", value_hint = ValueHint::FilePath)]
    pub(crate) table: PathBuf,
    /// Evaluate a range of prices: abstain=FROM:TO:STEP, route=… or route:NAME=…; may be given several times
    #[arg(long, value_name = "SWEEP")]
    pub(crate) sweep: Vec<Sweep>,
    /// Exit with code 3 if a condition holds: saving<X (a share of the cost of the best simple rule, or X%), cost>X, regret>X or drift;
    /// may be given several times
    #[arg(long, value_name = "COND")]
    pub(crate) fail_if: Vec<Condition>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write report.html, report.json and figures/ into this directory
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    /// Seed of the random splits that give the floor of the calibration error
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Leave out the calibration error, the slowest part
    #[arg(long)]
    pub(crate) no_calibration_error: bool,
    /// Evaluate with at most N rows of this table, or P per cent of them, sent to a route, as decide --cap assigns them. May be given
    /// for several routes
    #[arg(long, value_name = "NAME=N|NAME=P%")]
    pub(crate) cap: Vec<CapArg>,
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    #[command(flatten)]
    pub(crate) reading: TableArgs,
    #[command(flatten)]
    pub(crate) votes: VotesArgs,
}

#[derive(Debug, Args)]
#[command(override_usage = "pointsman compare [OPTIONS] <ROUTER>... <TABLE> [TASK.toml]...", after_help = format!("{TASK_HELP}

Files that end in .toml are tasks, in any place, as are those of --task; of the \
other files the last is the table and all before it are routers. Every router \
is evaluated under every task; flags such as --route override every task file. \
All routers get the predictions of the table. The router of another version of \
the model needs that version's predictions of the same items: --table. \
The others are compared with the first policy, or with --baseline, row by row: \
a negative difference is cheaper. Policies under another loss than the \
baseline's have no difference, since their costs are in another unit; shares \
can always be compared.

Examples:
  pointsman compare old.safetensors new.safetensors heldout.csv \\
      --route 0.05 --abstain 0.3
  pointsman compare router.safetensors heldout.csv cheap.toml dear.toml \\
      --baseline dear.toml
  pointsman compare router.safetensors all.parquet --task a.toml \\
      --task b.toml --where split=1
  pointsman compare old.safetensors new.safetensors heldout.csv \\
      --table new=heldout-new-model.csv --route 0.05"))]
pub(crate) struct CompareArgs {
    /// The routers, then one held-out table with votes or known truth; task files (.toml) in any place (- is standard input)
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// The router or task file that the others are compared with, or both as in old+cheap [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) baseline: Option<String>,
    /// Compare with at most N rows of this table, or P per cent of them, sent to a route by every policy that has it, as decide --cap
    /// assigns them. May be given for several routes
    #[arg(long, value_name = "NAME=N|NAME=P%")]
    pub(crate) cap: Vec<CapArg>,
    /// Another table with the same items and labels for one router, whose model's predictions it has; rows are matched by id. May be given
    /// for several routers
    #[arg(long, value_name = "ROUTER=FILE", value_hint = ValueHint::FilePath)]
    pub(crate) table: Vec<OwnTable>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    #[command(flatten)]
    pub(crate) reading: TableArgs,
    #[command(flatten)]
    pub(crate) votes: VotesArgs,
}

#[derive(Debug, Args)]
#[command(after_help = format!("{TASK_HELP}

The table is halved ten times by content; the router of each half is evaluated \
on the other half. Without prices the orders of routing are compared, with \
prices the costs per query. -o writes a page: the verdict, a reliability \
diagram, gains with intervals, annotators, and what to do next.

Examples:
  pointsman diagnose calibration.csv
  pointsman diagnose items.csv --annotations labels.csv --without ann7
  pointsman diagnose all.npz --loss zero-one --route expert=0.05 \\
      --abstain 0.3 -o diagnosis"))]
pub(crate) struct DiagnoseArgs {
    /// The table: predictions and several labels per row (- is standard input)
    #[arg(value_name = "TABLE", value_hint = ValueHint::FilePath)]
    pub(crate) table: PathBuf,
    /// How to group inputs into cells; auto chooses as in calibrate, for each half of the rows separately
    #[arg(long, value_name = "P", default_value = "auto",
          value_parser = suggest::<Partition>(suggest::PARTITIONS), hide_possible_values = true)]
    pub(crate) partition: Partition,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write diagnosis.html, diagnosis.json, and the report of one half evaluated on the other (report.html) into this directory
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    #[command(flatten)]
    pub(crate) reading: TableArgs,
    #[command(flatten)]
    pub(crate) votes: VotesArgs,
}
