//! The arguments of `deployments` and `versions`: clients of a service that runs.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

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
    List(ClientArgs),
    /// Create a deployment, or change its mode
    #[command(after_help = "Example:\n  pointsman deployments put intents --mode shadow")]
    Put(PutArgs),
    /// Mark an oracle as available or not: an unavailable one leaves the choice
    #[command(after_help = "Example:\n  pointsman deployments oracle intents expert --available false")]
    Oracle(OracleArgs),
    /// Delete a deployment; its decisions stay in the log until they expire
    Delete(NamedArgs),
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
    List(NamedArgs),
    /// Add a version: a router with a task, or a compiled policy
    #[command(after_help = "\
Examples:
  pointsman versions add intents router.safetensors --task task.toml --activate
  pointsman versions add intents policy.safetensors --activate")]
    Add(AddVersionArgs),
    /// Make a version the active one
    Activate(ActivateArgs),
    /// Activate the version that was active before
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
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
