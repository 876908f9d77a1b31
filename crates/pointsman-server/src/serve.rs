//! Runs the service: opens the store, listens, reloads, prunes, and shuts down without losing anything.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use pointsman::error::printable;
use tokio::net::TcpSocket;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;

use crate::api::access::Access;
use crate::api::problem::Problem;
use crate::api::versions::{Compiled, CompiledFiles, compile_files};
use crate::app::{App, Settings, app};
use crate::clock::Time;
use crate::config::{
    Config, ConfigError, ConfigSource, DeploymentConfig, Durability, RetentionConfig, unknown_variables,
};
use crate::deployment::{Deployment, LoadError};
use crate::metrics::Metrics;
use crate::stalled::WriteLimited;
use crate::store::{self, Change, Sha256, Store, StoreError};

/// How long open requests may take to finish after the signal to stop.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// Connections that may wait to be accepted.
const MAX_WAITING_CONNECTIONS: u32 = 1024;

/// How often the configuration's files are looked at, and changes made by others are read.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

/// Below this limit of open files there is a warning: a log of 400 days needs 2,000.
const FEW_FILES: u64 = 4096;

/// How often what has expired is deleted.
const PRUNE_INTERVAL: Duration = Duration::from_secs(3600);

/// Why the service could not start or had to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A version cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A deployment of the configuration cannot be used.
    #[error("deployment {name}: {reason}")]
    Deployment {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
    /// The address cannot be used.
    #[error("{address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Warns of variables that look like settings and set nothing.
fn warn_of_variables() {
    for name in unknown_variables(std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned())) {
        tracing::warn!(
            "the variable {} sets nothing: settings are named by their section and key, as in POINTSMAN_SERVER_LISTEN",
            printable(&name)
        );
    }
}

/// Lets the process open as many files as it may: every connection needs one, and the soft limit is often 1,024.
fn raise_file_limit() {
    let raised = rlimit::increase_nofile_limit(u64::MAX);
    let limit = match raised.or_else(|_| rlimit::getrlimit(rlimit::Resource::NOFILE).map(|(soft, _)| soft)) {
        Ok(limit) => limit,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files cannot be read");
            return;
        }
    };
    if limit < FEW_FILES {
        tracing::warn!(
            "the process may open {limit} files only, and needs one per connection and, with SQLite, about five per archive of the log, \
             which has one or more per day: raise the limit (`ulimit -n 65536`, or LimitNOFILE of systemd)"
        );
    }
}

/// Opens the store that a configuration names.
async fn open_store(config: &Config, metrics: &Metrics) -> Result<Arc<dyn Store>, StoreError> {
    let settings = store::Settings {
        is_durable: config.store.durability == Durability::Disk,
        queue_rows: config.store.queue_rows,
        segment_bytes: config.store.segment_megabytes << 20,
        observe_commit: metrics.observe_commits(),
    };
    config.store.url.open(settings).await
}

/// Takes an address without listening there yet: until the service is ready, connections are refused.
fn take_address(address: SocketAddr) -> std::io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A restart need not wait until the system has forgotten the connections of before. A port where others listen stays taken.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Runs the service until a signal ends it. `source` is where its configuration came from, and is read again when it changes. `started` is
/// called once it listens.
///
/// # Errors
/// If it cannot start; not because of anything that a request contains.
pub async fn serve(
    config: Config,
    source: ConfigSource,
    started: impl FnOnce(&Arc<App>, SocketAddr),
) -> Result<(), ServeError> {
    warn_of_variables();
    raise_file_limit();
    // What would fail is noticed before the store is opened, so that no new one is left behind.
    let mut ready = HashMap::new();
    if !config.store.url.exists().await? {
        config.check_exposure(false)?;
        ready = compile_all(&config).await?;
    }
    let address = config.server.listen;
    let unusable = |source| ServeError::Listen { address, source };
    let socket = take_address(address).map_err(unusable)?;
    let metrics = Arc::new(Metrics::default());
    let store = open_store(&config, &metrics).await?;
    let has_keys = store.registry().await?.keys.iter().any(|key| !key.disabled);
    config.check_exposure(has_keys)?;
    // While the service is open, a first key closes it: see `Access`.
    let access = if config.server.listen.ip().is_loopback() { Access::Open } else { Access::Keys };
    let mut settings = Settings::new(access);
    settings.limits = config.limits.into();
    settings.on_log_failure = config.server.on_log_failure;
    let state = App::start(Arc::clone(&store), settings, metrics).await?;
    // Noted before the files are read, so that no change is missed.
    let seen = modified(&config, source.path.as_deref());
    apply(&state, &config, ready).await?;
    if source.path.is_some() {
        warn_of_left_out(&state, &config);
    }
    // Also for the head of a request, which ends idle connections, and for a client that takes no bytes of its answer.
    let limit = config.limits.time;
    let drain = config.server.drain;
    let listener = socket.listen(MAX_WAITING_CONNECTIONS).map_err(unusable)?;
    let mut signals = Signals::new()?;
    let background = tokio::spawn(watch(Arc::clone(&state), config, source, seen, signal(SignalKind::hangup())?));
    started(&state, listener.local_addr()?);
    let connections = GracefulShutdown::new();
    let api = app(&state);
    let mut end = None;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            signal = signals.stop() => {
                state.drain();
                if signal == Stop::Now || drain.is_zero() || end.is_some() {
                    break;
                }
                tracing::info!("shutting down: /readyz says so for {} s, then open requests are finished", drain.as_secs_f64());
                end = Some(tokio::time::Instant::now() + drain);
                continue;
            }
            () = wait_until(end) => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, or the peer has gone: others may fare better.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let mut http = hyper::server::conn::http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(limit).pipeline_flush(true);
        let stream = TokioIo::new(WriteLimited::new(stream, limit));
        let api = api.clone();
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let api = api.clone();
            async move { Ok::<_, Infallible>(api.answer(request.map(Body::new)).await) }
        });
        let connection = connections.watch(http.serve_connection(stream, service));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended");
            }
        });
    }
    tracing::info!("shutting down: no new connections, open requests are finished");
    drop(listener);
    tokio::select! {
        () = connections.shutdown() => {}
        _ = signals.stop() => tracing::warn!("a second signal: open requests were ended"),
        () = tokio::time::sleep(DRAIN_TIMEOUT) => {
            tracing::warn!("some requests took longer than {} s and were ended", DRAIN_TIMEOUT.as_secs());
        }
    }
    background.abort();
    store.close().await?;
    tracing::info!("everything is committed");
    Ok(())
}

/// Waits until a time; for ever without one.
async fn wait_until(end: Option<tokio::time::Instant>) {
    match end {
        Some(end) => tokio::time::sleep_until(end).await,
        None => std::future::pending().await,
    }
}

/// How the service is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// By a supervisor: whoever asks `/readyz` may see it first.
    AfterDrain,
    /// From a terminal.
    Now,
}

/// The signals that end the service.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn stop(&mut self) -> Stop {
        tokio::select! {
            _ = self.terminate.recv() => Stop::AfterDrain,
            _ = self.interrupt.recv() => Stop::Now,
        }
    }
}

/// Makes the deployments of a configuration: a new version of each whose files have changed since it was applied last. Returns what those
/// that have changed are now, in words. All files are checked before any deployment changes. `ready` has what was compiled before, by the hash of
/// its files.
async fn apply(
    app: &App,
    config: &Config,
    mut ready: HashMap<Sha256, CompiledFiles>,
) -> Result<Vec<String>, ServeError> {
    let mut wanted = Vec::new();
    for (name, deployment) in &config.deployments {
        wanted.extend(compile(app, name, deployment, &mut ready).await?);
    }
    let mut changes = Vec::new();
    for (name, change) in wanted {
        let before = app.deployments.active_names(name);
        let refuse = |reason: String| ServeError::Deployment { name: name.to_owned(), reason };
        app.change(change, "configuration").await.map_err(|problem| refuse(problem.detail))?;
        // The file is what its owner wants: it is followed, and what follows from it is said.
        let now = app.deployments.active_names(name);
        if let Some(difference) = now.zip(before).and_then(|(now, before)| now.difference(&before)) {
            tracing::warn!(deployment = name, "requests are read differently from now on: there are {difference}");
        }
        changes.extend(app.deployments.find(name).map(|deployment| described(&deployment)));
    }
    Ok(changes)
}

/// The files of a deployment of the configuration.
struct Files {
    router: Option<Vec<u8>>,
    policy: Option<Vec<u8>>,
    task: Option<String>,
    /// The hash of the files and of this release. Compiling takes longer than hashing, so that a start with known files is quick.
    hash: Sha256,
}

impl Files {
    fn read(name: &str, deployment: &DeploymentConfig) -> Result<Self, ServeError> {
        let refuse = |reason: String| ServeError::Deployment { name: name.to_owned(), reason };
        let read = |path: &Option<PathBuf>| -> Result<Option<Vec<u8>>, ServeError> {
            let bytes =
                path.as_ref().map(|path| std::fs::read(path).map_err(|e| refuse(format!("{}: {e}", path.display()))));
            bytes.transpose()
        };
        crate::api::deployments::check_name(name).map_err(|problem| refuse(problem.detail))?;
        let DeploymentConfig { router, policy, task, .. } = deployment;
        let [router, policy, task] = [read(router)?, read(policy)?, read(task)?];
        let hash = hash_files([&router, &policy, &task]);
        let task =
            task.map(|bytes| String::from_utf8(bytes).map_err(|_| refuse("the task file is not UTF-8".to_owned())));
        Ok(Self { router, policy, task: task.transpose()?, hash })
    }
}

/// Why the files of a deployment cannot be used.
fn refuse_files(name: &str, deployment: &DeploymentConfig, problem: &Problem) -> ServeError {
    let reason = format!("{}{}", named(problem.pointer.as_deref(), deployment), problem.detail);
    ServeError::Deployment { name: name.to_owned(), reason }
}

/// The compiled files of all deployments of a configuration, by the hash of the files; fails if a deployment cannot be used.
async fn compile_all(config: &Config) -> Result<HashMap<Sha256, CompiledFiles>, ServeError> {
    let mut ready = HashMap::new();
    for (name, deployment) in &config.deployments {
        let Files { router, policy, task, hash } = Files::read(name, deployment)?;
        let compiled = compile_files(router, policy, task).await;
        ready.insert(hash, compiled.map_err(|problem| refuse_files(name, deployment, &problem))?);
    }
    Ok(ready)
}

/// Compiles the files of a deployment unless they are ready, and returns the change that makes it what the configuration says; `None` if it is that already.
async fn compile<'a>(
    app: &App,
    name: &'a str,
    deployment: &DeploymentConfig,
    ready: &mut HashMap<Sha256, CompiledFiles>,
) -> Result<Option<(&'a str, Change)>, ServeError> {
    let mode = deployment.mode;
    let Files { router, policy, task, hash: files } = Files::read(name, deployment)?;
    if app.deployments.find(name).is_some_and(|found| found.stored.is_configured(mode, files)) {
        return Ok(None);
    }
    let compiled = match ready.remove(&files) {
        Some(compiled) => app.keep(compiled).await,
        None => app.compile(router, policy, task).await,
    };
    let Compiled { version, .. } = compiled.map_err(|problem| refuse_files(name, deployment, &problem))?;
    Ok(Some((name, Change::Configure { name: name.to_owned(), mode, version, files })))
}

/// A deployment's version and mode, in words.
fn described(deployment: &Deployment) -> String {
    let (name, mode) = (&deployment.stored.name, deployment.mode().name());
    match deployment.stored.active() {
        Some(version) => format!("{name} has version {version}, mode {mode}"),
        None => format!("{name} has no active version, mode {mode}"),
    }
}

/// The hash of a deployment's files and of this release.
fn hash_files(files: [&Option<Vec<u8>>; 3]) -> Sha256 {
    let hashes = files.map(|file| file.as_ref().map_or_else(String::new, |bytes| Sha256::of(bytes).to_string()));
    Sha256::of(format!("{} {}", env!("CARGO_PKG_VERSION"), hashes.join(" ")).as_bytes())
}

/// The file that a problem is about.
fn named(pointer: Option<&str>, deployment: &DeploymentConfig) -> String {
    let file = match pointer {
        Some("/router") => deployment.router.as_ref(),
        Some("/policy") => deployment.policy.as_ref(),
        Some("/task") => deployment.task.as_ref(),
        _ => None,
    };
    file.map_or_else(String::new, |file| format!("{}: ", file.display()))
}

/// When the configuration's files were last changed, and their sizes: two changes at once may have the same time.
type Modified = Vec<Option<(SystemTime, u64)>>;

fn modified(config: &Config, path: Option<&Path>) -> Modified {
    let files =
        config.deployments.values().flat_map(|deployment| [&deployment.router, &deployment.policy, &deployment.task]);
    let files = files.flatten().map(PathBuf::as_path).chain(path);
    files.map(|file| std::fs::metadata(file).and_then(|file| Ok((file.modified()?, file.len()))).ok()).collect()
}

/// Reads the configuration again when it changes or SIGHUP comes, follows changes that other processes make, and has old data deleted.
async fn watch(app: Arc<App>, mut config: Config, source: ConfigSource, mut seen: Modified, mut hangup: Signal) {
    let (path, running) = (source.path.as_deref(), config.clone());
    let mut ticks = tokio::time::interval(WATCH_INTERVAL);
    // Deleting waits for disks and readers, so that it is a task of its own, one at a time.
    let (mut pruning, mut pruned) = (JoinSet::<()>::new(), None::<tokio::time::Instant>);
    let mut failure = None;
    // A file that is being written is not read: it must be the same at two looks.
    let mut last_look = seen.clone();
    loop {
        let (is_asked, is_look) = tokio::select! {
            _ = ticks.tick() => (false, true),
            () = app.store.changed() => (false, false),
            _ = hangup.recv() => (true, false),
        };
        let now = modified(&config, path);
        let is_at_rest = is_look && now == last_look;
        if is_look {
            last_look.clone_from(&now);
        }
        if is_asked && path.is_none() {
            tracing::info!("SIGHUP: there is no configuration file to read again; --config names one");
        } else if is_asked || is_at_rest && now != seen {
            match reload(&app, &source).await {
                Ok((new, changes)) => {
                    // Files that changed while they were read are read again at the next look.
                    let fresh = modified(&new, path);
                    seen = if modified(&config, path) == now { fresh } else { Vec::new() };
                    config = new;
                    app.set_reload_error(None);
                    note_reload(&changes, &config.settings_for_restart(&running));
                    warn_of_left_out(&app, &config);
                }
                Err(error) => {
                    seen = now;
                    tracing::error!(%error, "the configuration cannot be used; what ran before goes on");
                    app.set_reload_error(Some(format!(
                        "the configuration cannot be used, what ran before goes on: {error}"
                    )));
                }
            }
        }
        let failed = app.deployments.refresh().await.err().map(|error| error.to_string());
        // The same failure is logged once, not twice per second.
        if let Some(error) = failed.as_ref().filter(|_| failed != failure) {
            tracing::error!(%error, "deployments could not be read again");
        }
        failure = failed;
        let _ = pruning.try_join_next();
        if pruning.is_empty() && pruned.is_none_or(|last| last.elapsed() >= PRUNE_INTERVAL) {
            pruned = Some(tokio::time::Instant::now());
            pruning.spawn(prune(Arc::clone(&app), config.retention.clone()));
        }
    }
}

/// Deletes what has expired.
async fn prune(app: Arc<App>, retention: RetentionConfig) {
    let now = Time::now();
    let (decisions, inputs) = (now.before(retention.decisions), now.before(retention.inputs));
    if let Err(error) = app.store.prune(Some(decisions), Some(inputs)).await {
        tracing::error!(%error, "what has expired could not be deleted");
    }
    // Nothing in the log is from a deployment that was deleted before.
    let is_expired = |deployment: &Arc<Deployment>| deployment.stored.deleted.is_some_and(|time| time < decisions);
    if app.deployments.now().deleted.iter().any(is_expired)
        && let Err(problem) = app.change(Change::ForgetDeleted { before: decisions }, "retention").await
    {
        tracing::error!(error = problem.detail, "deleted deployments could not be forgotten");
    }
}

/// Reads the configuration, and returns it with what has changed by it.
async fn reload(app: &App, source: &ConfigSource) -> Result<(Config, Vec<String>), ServeError> {
    let config = source.load()?;
    let changes = apply(app, &config, HashMap::new()).await?;
    Ok((config, changes))
}

/// Warns of deployments that were made by a configuration and are not in it any more.
fn warn_of_left_out(app: &App, config: &Config) {
    let now = app.deployments.now();
    let is_left_out = |(name, deployment): &(&String, &Arc<Deployment>)| {
        deployment.stored.configured.is_some() && !config.deployments.contains_key(*name)
    };
    for (name, _) in now.deployments.iter().filter(is_left_out) {
        tracing::warn!(
            "deployment {name} is no longer in the configuration and goes on as it is; `pointsman deployments delete {name}` deletes it"
        );
    }
}

/// Logs what a configuration that was read again has changed, and what it has not.
fn note_reload(changes: &[String], for_restart: &[&str]) {
    let changes = if changes.is_empty() { "no deployment has changed".to_owned() } else { changes.join("; ") };
    tracing::info!("the configuration was read again: {changes}");
    if !for_restart.is_empty() {
        let settings = for_restart.join(", ");
        tracing::warn!("these settings have changed and hold after a restart only: {settings}");
    }
}
