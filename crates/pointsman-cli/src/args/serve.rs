//! The arguments of `serve` and `keys`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

/// Where the service's state is.
#[derive(Debug, Args)]
pub(crate) struct ServiceArgs {
    /// The configuration file (TOML); without one, SQLite in ./pointsman.db and 127.0.0.1:7070
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// The store, as in sqlite:pointsman.db; overrides the configuration
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Every decision is committed to the log before it is answered. Variables such as \
POINTSMAN_SERVER_LISTEN or POINTSMAN_STORE_URL override the configuration file; \
POINTSMAN_LOG=debug writes more log lines, POINTSMAN_LOG=warn fewer.

A configuration file needs no more than this; paths are relative to it:
  [deployments.intents]
  router = \"router.safetensors\"
  task = \"task.toml\"
The file and the files that it names are watched: when one of them changes, its \
deployment gets a new version, which is activated. Other settings need a restart.

Examples:
  pointsman serve
  pointsman serve --config pointsman.toml
  curl -X PUT localhost:7070/v1/deployments/intents
  curl localhost:7070/v1/deployments/intents/versions \\
      -F router=@router.safetensors -F task=@task.toml -F activate=true
  curl localhost:7070/v1/deployments/intents/decide \\
      -H 'content-type: application/json' -d '{\"probs\": [0.2, 0.5, 0.3]}'")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) service: ServiceArgs,
    /// The address to listen on; overrides the configuration
    #[arg(long, value_name = "ADDRESS", value_parser = socket_address)]
    pub(crate) listen: Option<SocketAddr>,
    /// How log lines are written
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
}

/// An address to listen on.
fn socket_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "give an IP address and a port, as in 127.0.0.1:7070, or [::1]:7070".to_owned())
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// What can be done with keys.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Make a key; it is shown once
    #[command(after_help = "Example:\n  pointsman keys add website --scope decide")]
    Add(AddKeyArgs),
    /// List the keys, without their secrets
    #[command(after_help = "Example:\n  pointsman keys list")]
    List(ListKeysArgs),
    /// Disable a key
    #[command(after_help = "Example:\n  pointsman keys disable website")]
    Disable(DisableKeyArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AddKeyArgs {
    /// What people call the key
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// What it may do: decide, read or admin (several allowed)
    #[arg(long, value_name = "SCOPE", required = true, value_parser = ["decide", "read", "admin"])]
    pub(crate) scope: Vec<String>,
    /// The most requests per second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate: Option<u32>,
    /// Make the store if there is none, for a key before the first start of the service
    #[arg(long)]
    pub(crate) new_store: bool,
    #[command(flatten)]
    pub(crate) service: ServiceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ListKeysArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) service: ServiceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DisableKeyArgs {
    /// The key's name
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) service: ServiceArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Every decision that was answered before is in the copy, which is a store of its own. To restore it, \
stop the service, move the old store away (the database, the files beside it whose names begin with its name, and the folder of the \
log), put the copy in its place, and start the service.

Examples:
  pointsman backup -o backup-2026-01-31
  pointsman serve --store sqlite:backup-2026-01-31/pointsman.db")]
pub(crate) struct BackupArgs {
    /// The folder to write, which must be new
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) service: ServiceArgs,
}
