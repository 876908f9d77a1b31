//! The arguments of `deployments`, `versions`, `decisions` and `admin-log`: clients of a service that runs.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use pointsman_table::Format;

use crate::suggest::{self, suggest};

/// Which service, and by which key.
#[derive(Debug, Args)]
pub(crate) struct ClientArgs {
    /// The service's address [default: $POINTSMAN_URL, or http://127.0.0.1:7070]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The access key [default: $POINTSMAN_KEY]
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What can be done with deployments.
#[derive(Debug, Subcommand)]
pub(crate) enum DeploymentsCommand {
    /// List the deployments
    #[command(after_help = "Example:\n  pointsman deployments list")]
    List(ListDeploymentsArgs),
    /// Create a deployment, or change its mode
    #[command(after_help = "Example:\n  pointsman deployments put intents --mode shadow")]
    Put(PutArgs),
    /// Mark an oracle as available or not: an unavailable one leaves the choice
    #[command(after_help = "Example:\n  pointsman deployments oracle intents expert --available false")]
    Oracle(OracleArgs),
    /// Delete a deployment; its decisions stay in the log until they expire
    #[command(after_help = "Example:\n  pointsman deployments delete intents")]
    Delete(NamedArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListDeploymentsArgs {
    /// List those that were deleted and whose decisions can still be exported
    #[arg(long)]
    pub(crate) deleted: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct NamedArgs {
    /// The deployment's name
    #[arg(value_name = "DEPLOYMENT")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// Whether decisions are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    /// Decisions are answered.
    Active,
    /// Every query is answered with predict; the answer says what would have been done.
    Shadow,
}

#[derive(Debug, Args)]
pub(crate) struct PutArgs {
    /// The deployment's name
    #[arg(value_name = "DEPLOYMENT")]
    pub(crate) name: String,
    /// Whether its decisions are answered
    #[arg(long, value_enum)]
    pub(crate) mode: Option<ModeArg>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OracleArgs {
    /// The deployment's name
    #[arg(value_name = "DEPLOYMENT")]
    pub(crate) name: String,
    /// The name of the task's route
    #[arg(value_name = "ROUTE")]
    pub(crate) oracle: String,
    /// Whether it can be asked
    #[arg(long, value_name = "true|false", action = clap::ArgAction::Set)]
    pub(crate) available: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// What can be done with versions.
#[derive(Debug, Subcommand)]
pub(crate) enum VersionsCommand {
    /// List the versions of a deployment
    #[command(after_help = "Example:\n  pointsman versions list intents")]
    List(NamedArgs),
    /// Add a version: a router with a task, or a compiled policy
    #[command(after_help = "\
Examples:
  pointsman versions add intents router.safetensors --task task.toml --activate
  pointsman versions add intents policy.safetensors --activate")]
    Add(AddVersionArgs),
    /// Make a version the active one
    #[command(after_help = "Example:\n  pointsman versions activate intents 3")]
    Activate(ActivateArgs),
    /// Activate the version that was active before
    #[command(after_help = "Example:\n  pointsman versions rollback intents")]
    Rollback(NamedArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AddVersionArgs {
    /// The deployment's name
    #[arg(value_name = "DEPLOYMENT")]
    pub(crate) name: String,
    /// A router, or a compiled policy
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The task file; a compiled policy has a task of its own
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) task: Option<PathBuf>,
    /// Make it the active version
    #[arg(long)]
    pub(crate) activate: bool,
    /// Activate it even if it has other classes or features than the active version
    #[arg(long, requires = "activate")]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ActivateArgs {
    /// The deployment's name
    #[arg(value_name = "DEPLOYMENT")]
    pub(crate) name: String,
    /// The version's number
    #[arg(value_name = "VERSION")]
    pub(crate) version: u32,
    /// Activate it even if it has other classes or features than the active version
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// What can be done with logged decisions.
#[derive(Debug, Subcommand)]
pub(crate) enum DecisionsCommand {
    /// Write the logged decisions of a deployment to a file: a table that decide, evaluate and what-if read
    #[command(after_help = "\
The table has one row per decision: id (the caller's, or else the decision's), at, deployment, \
decision_id, version, the columns that decide writes, degraded, would (in shadow mode), wanted, \
margin, prob_<class>, x_<feature>, tags and input. A file is written whole or not at all.

Examples:
  pointsman decisions export intents -o log.parquet
  pointsman decisions export intents -o routed.csv --action route:expert \\
      --from 2026-01-01T00:00:00Z
  pointsman decisions export intents -o - --output-format jsonl --no-inputs")]
    Export(ExportArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The deployment's name
    #[arg(value_name = "DEPLOYMENT")]
    pub(crate) name: String,
    /// Where to write the decisions: .parquet, .csv or .jsonl (- is standard output)
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// The format: parquet, csv or jsonl [default: by extension, csv on standard output]
    #[arg(long, value_name = "FORMAT", value_parser = suggest::<Format>(suggest::FORMATS), hide_possible_values = true)]
    pub(crate) output_format: Option<Format>,
    /// Decisions from this time on, as in 2026-01-31T12:00:00Z, or seconds since 1970
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// Decisions before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,
    /// Decisions that were answered with this action: predict, route:NAME, abstain or undetermined
    #[arg(long, value_name = "ACTION")]
    pub(crate) action: Option<String>,
    /// Decisions of this cell
    #[arg(long, value_name = "CELL")]
    pub(crate) cell: Option<u32>,
    /// Decisions with this tag
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) tag: Option<String>,
    /// Decisions of this version
    #[arg(long, value_name = "N")]
    pub(crate) version: Option<u32>,
    /// At most this many decisions, the oldest first
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Leave out the inputs
    #[arg(long)]
    pub(crate) no_inputs: bool,
    /// The number of a deleted deployment, if there is another one of the same name; deployments list --deleted has it
    #[arg(long, value_name = "N")]
    pub(crate) number: Option<u64>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pointsman admin-log --after 100")]
pub(crate) struct AdminLogArgs {
    /// Entries after the one with this number
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) after: u64,
    /// At most this many entries
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
