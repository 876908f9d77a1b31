//! `pointsman serve`: the HTTP service.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use pointsman_server::App;
use pointsman_server::config::{Config, ConfigSource};
use tracing_subscriber::EnvFilter;

use crate::args::{LogFormat, ServeArgs, ServiceArgs};
use crate::render;
use crate::render::style::{BOLD, DIM, GOOD};

/// The fewest threads that answer requests: one of them may wait for the disk to take a commit, and others go on.
const MIN_THREADS: usize = 2;

/// The variable that sets which log lines are written, as in `POINTSMAN_LOG=debug`.
const LOG_VARIABLE: &str = "POINTSMAN_LOG";

pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<()> {
    let source = config_source(&args.service).listen(args.listen);
    let config = source.load()?;
    start_log(args.log_format);
    let threads = std::thread::available_parallelism().map_or(MIN_THREADS, |count| count.get().max(MIN_THREADS));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let runtime = runtime.context("no threads for the service")?;
    // Without its password.
    let store = config.store.url.to_string();
    let is_new = !runtime.block_on(config.store.url.exists())?;
    let started = move |app: &Arc<App>, address: SocketAddr| {
        // A closed standard output does not stop the service.
        let _ = welcome(app, address, &store, is_new);
    };
    Ok(runtime.block_on(pointsman_server::serve(config, source, started))?)
}

/// The configuration file, the environment and the flags that name the store.
pub(super) fn configuration(args: &ServiceArgs) -> anyhow::Result<Config> {
    Ok(config_source(args).load()?)
}

fn config_source(args: &ServiceArgs) -> ConfigSource {
    ConfigSource::new(args.config.clone()).store(args.store.clone())
}

fn start_log(format: LogFormat) {
    let filter = EnvFilter::try_from_env(LOG_VARIABLE)
        .unwrap_or_else(|_| EnvFilter::new(if render::is_quiet() { "error" } else { "info" }));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => lines.with_target(false).init(),
        LogFormat::Json => lines.json().init(),
    }
}

/// Says where the service is, what it decides, and how to try it.
fn welcome(app: &App, address: SocketAddr, store: &str, is_new: bool) -> std::io::Result<()> {
    if render::is_quiet() {
        return Ok(());
    }
    let mut out = anstream::stdout().lock();
    writeln!(out, "{GOOD}listening{GOOD:#} on {BOLD}http://{address}{BOLD:#}, store {store}")?;
    if is_new {
        writeln!(out, "  {BOLD}a new store{BOLD:#}: there was none at {store}")?;
    }
    let now = app.deployments.now();
    let mut deployments: Vec<_> = now.deployments.values().collect();
    deployments.sort_by(|a, b| a.stored.name.cmp(&b.stored.name));
    for deployment in &deployments {
        let name = &deployment.stored.name;
        match &deployment.active {
            None => writeln!(out, "  {BOLD}{name}{BOLD:#}: no version yet")?,
            Some(version) => {
                let (number, mode, classes) =
                    (version.number, deployment.mode().name(), version.policy.classes().len());
                let unavailable = &deployment.stored.unavailable;
                let action = |action: &String| match action.strip_prefix("route:") {
                    Some(oracle) if unavailable.contains(oracle) => format!("{action} (unavailable)"),
                    _ => action.clone(),
                };
                let actions: Vec<String> = version.names.actions.iter().map(action).collect();
                let actions = actions.join(", ");
                writeln!(out, "  {BOLD}{name}{BOLD:#}: version {number}, {mode}, {classes} classes, {actions}")?;
            }
        }
    }
    let active = deployments.iter().find_map(|deployment| Some((&deployment.stored.name, deployment.active.as_ref()?)));
    let key = if app.needs_key() { " -H 'authorization: Bearer pk_…'" } else { "" };
    let needed = if key.is_empty() { "" } else { " with a key, which requests need (`pointsman keys add` makes one)" };
    writeln!(out, "{DIM}try{needed}:{DIM:#}")?;
    match active {
        Some((name, version)) => {
            let classes = version.policy.classes().len();
            let probs: Vec<String> =
                std::iter::once("1.0".to_owned()).chain((1..classes).map(|_| "0.0".to_owned())).collect();
            let features = version.policy.cells().features();
            let values: Vec<String> = features.iter().map(|name| format!("{name:?}: 0.0")).collect();
            let features =
                if values.is_empty() { String::new() } else { format!(", \"features\": {{{}}}", values.join(", ")) };
            writeln!(
                out,
                "  curl http://{address}/v1/deployments/{name}/decide{key} -H 'content-type: application/json' \\"
            )?;
            writeln!(out, "      -d '{{\"probs\": [{}]{features}}}'", probs.join(", "))?;
        }
        None => {
            writeln!(out, "  curl -X PUT http://{address}/v1/deployments/intents{key}")?;
            writeln!(out, "  curl http://{address}/v1/deployments/intents/versions{key} \\")?;
            writeln!(out, "      -F router=@router.safetensors -F task=@task.toml -F activate=true")?;
        }
    }
    writeln!(out, "  curl http://{address}/readyz")?;
    writeln!(out, "{DIM}the interface: http://{address}/openapi.json; stop with Ctrl-C{DIM:#}")?;
    out.flush()
}
