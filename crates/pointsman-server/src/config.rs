//! The configuration: a TOML file and `POINTSMAN_*` variables become a checked plan.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pointsman::error::printable;
use serde::{Deserialize, Deserializer};

use crate::app::{Limits, OnLogFailure};
use crate::store::{Mode, StoreUrl, StoreUrlError};

/// Sections whose keys environment variables may set: `POINTSMAN_SERVER_LISTEN` sets `listen` of `[server]`.
const SECTIONS: [&str; 4] = ["server", "store", "retention", "limits"];

/// What the names of variables begin with.
const PREFIX: &str = "POINTSMAN_";

/// What follows it in variables that are no settings of the service: of its log, of its clients, and of benchmarks. Those of tests begin
/// with `TEST_`.
const OTHER_VARIABLES: [&str; 4] = ["LOG", "URL", "KEY", "PYTHON"];

/// The largest number of rows or megabytes.
const MAX_SIZE: u64 = 1 << 30;

/// What `pointsman serve` does.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
#[non_exhaustive]
pub struct Config {
    /// Where it listens.
    pub server: ServerConfig,
    /// What it keeps where.
    pub store: StoreConfig,
    /// How long it keeps it.
    pub retention: RetentionConfig,
    /// How large requests may be.
    pub limits: LimitsConfig,
    /// The deployments by name.
    pub deployments: BTreeMap<String, DeploymentConfig>,
}

/// Where the service listens.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ServerConfig {
    /// The address.
    pub listen: SocketAddr,
    /// The address that others see, if a proxy that ends TLS stands before the service.
    pub public_url: Option<String>,
    /// What is done with a decision that cannot be committed: `refuse` or `answer`.
    #[serde(deserialize_with = "on_log_failure")]
    pub on_log_failure: OnLogFailure,
    /// How long it goes on after SIGTERM while `/readyz` says that it shuts down.
    #[serde(deserialize_with = "duration")]
    pub drain: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: ([127, 0, 0, 1], 7070).into(),
            public_url: None,
            on_log_failure: OnLogFailure::default(),
            drain: Duration::from_secs(1),
        }
    }
}

/// What the service keeps where.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct StoreConfig {
    /// `sqlite:` and a path, or `postgres://user:password@host/database`.
    pub url: StoreUrl,
    /// Whether commits also survive a loss of power.
    pub durability: Durability,
    /// The most decisions that may wait to be committed.
    pub queue_rows: usize,
    /// The size at which the log goes on in a new journal, in megabytes.
    pub segment_megabytes: u64,
}

impl Default for StoreConfig {
    fn default() -> Self {
        let url = StoreUrl::Sqlite("pointsman.db".to_owned());
        Self { url, durability: Durability::default(), queue_rows: 1 << 16, segment_megabytes: 64 }
    }
}

/// What a committed decision survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// The end of the process, however it ends.
    #[default]
    Process,
    /// Also a loss of power.
    Disk,
}

/// How long things are kept.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RetentionConfig {
    /// Inputs of queries.
    #[serde(deserialize_with = "duration")]
    pub inputs: Duration,
    /// Decisions.
    #[serde(deserialize_with = "duration")]
    pub decisions: Duration,
}

const DAY: Duration = Duration::from_secs(86_400);

impl Default for RetentionConfig {
    fn default() -> Self {
        Self { inputs: 30 * DAY, decisions: 400 * DAY }
    }
}

/// How large requests may be.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct LimitsConfig {
    /// Megabytes of a body.
    pub body_megabytes: usize,
    /// Megabytes of an uploaded file.
    pub upload_megabytes: usize,
    /// Queries of one request.
    pub rows: usize,
    /// Time of a request.
    #[serde(deserialize_with = "duration")]
    pub time: Duration,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        let Limits { body, upload, rows, time } = Limits::default();
        Self { body_megabytes: body >> 20, upload_megabytes: upload >> 20, rows, time }
    }
}

impl From<LimitsConfig> for Limits {
    fn from(config: LimitsConfig) -> Self {
        let LimitsConfig { body_megabytes, upload_megabytes, rows, time } = config;
        Self { body: body_megabytes << 20, upload: upload_megabytes << 20, rows, time }
    }
}

/// A deployment of the configuration: its files become a version whenever they change.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DeploymentConfig {
    /// A router file, with a task.
    pub router: Option<PathBuf>,
    /// A compiled policy file.
    pub policy: Option<PathBuf>,
    /// A task file.
    pub task: Option<PathBuf>,
    /// Whether decisions are answered.
    #[serde(default)]
    pub mode: Mode,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The text is not TOML, or a value cannot be used.
    #[error("{origin}: {reason}")]
    Value {
        /// The file or variable.
        origin: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// The address is not on this machine alone, and anybody could use it.
    #[error("{address} is not a loopback address: {}", missing_protection(*has_keys, public_url.as_deref()))]
    Exposed {
        /// The address.
        address: SocketAddr,
        /// Whether there is a key.
        has_keys: bool,
        /// The address that others see, if it is given.
        public_url: Option<String>,
    },
}

/// What a service that others can reach lacks: a key, the address of a proxy that ends TLS, or both.
fn missing_protection(has_keys: bool, public_url: Option<&str>) -> String {
    let key = "make a key first (`pointsman keys add NAME --scope admin`, with --new-store before the first start)";
    let url = match public_url {
        Some(url) if is_https(url) => None,
        Some(_) => Some(
            "public_url of [server] (POINTSMAN_SERVER_PUBLIC_URL) must begin with https://: it is the address of the proxy that \
             ends TLS",
        ),
        None => Some(
            "set public_url of [server] (or the variable POINTSMAN_SERVER_PUBLIC_URL) to the https address of the proxy that ends \
             TLS",
        ),
    };
    let missing = [(!has_keys).then_some(key), url];
    missing.into_iter().flatten().collect::<Vec<_>>().join("; and ")
}

fn is_https(url: &str) -> bool {
    url.starts_with("https://")
}

/// Where a configuration comes from: a file and the environment, and flags, which go before both.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ConfigSource {
    /// The file.
    pub path: Option<PathBuf>,
    /// The address of the store.
    pub store: Option<String>,
    /// The address to listen on.
    pub listen: Option<SocketAddr>,
}

impl ConfigSource {
    /// A file, or no file.
    #[must_use]
    pub fn new(path: Option<PathBuf>) -> Self {
        Self { path, ..Self::default() }
    }

    /// With the address of the store, if it is given.
    #[must_use]
    pub fn store(self, store: Option<String>) -> Self {
        Self { store, ..self }
    }

    /// With the address to listen on, if it is given.
    #[must_use]
    pub fn listen(self, listen: Option<SocketAddr>) -> Self {
        Self { listen, ..self }
    }

    /// Reads the configuration.
    ///
    /// # Errors
    /// If the file cannot be read, or a value cannot be used; the message names it.
    pub fn load(&self) -> Result<Config, ConfigError> {
        let mut config = Config::load(self.path.as_deref(), std::env::vars())?;
        if let Some(store) = &self.store {
            config = config.with_store(store)?;
        }
        config.server.listen = self.listen.unwrap_or(config.server.listen);
        Ok(config)
    }
}

/// The variables that look as if they set something of the service, and set nothing.
pub(crate) fn unknown_variables(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let is_known = |rest: &str| {
        let is_setting = SECTIONS.iter().any(|section| rest.to_lowercase().starts_with(&format!("{section}_")));
        is_setting || OTHER_VARIABLES.contains(&rest) || rest.starts_with("TEST_")
    };
    let mut unknown: Vec<String> =
        names.into_iter().filter(|name| name.strip_prefix(PREFIX).is_some_and(|rest| !is_known(rest))).collect();
    unknown.sort();
    unknown
}

impl Config {
    /// The settings that differ from those of a service that runs and that it cannot change, as in `listen of [server]`.
    #[must_use]
    pub fn settings_for_restart(&self, running: &Self) -> Vec<&'static str> {
        let ServerConfig { listen, public_url, on_log_failure, drain } = &self.server;
        let StoreConfig { url, durability, queue_rows, segment_megabytes } = &self.store;
        let LimitsConfig { body_megabytes, upload_megabytes, rows, time } = &self.limits;
        let (server, store, limits) = (&running.server, &running.store, &running.limits);
        let settings = [
            ("listen of [server]", *listen != server.listen),
            ("public_url of [server]", *public_url != server.public_url),
            ("on_log_failure of [server]", *on_log_failure != server.on_log_failure),
            ("drain of [server]", *drain != server.drain),
            ("url of [store]", *url != store.url),
            ("durability of [store]", *durability != store.durability),
            ("queue_rows of [store]", *queue_rows != store.queue_rows),
            ("segment_megabytes of [store]", *segment_megabytes != store.segment_megabytes),
            ("body_megabytes of [limits]", *body_megabytes != limits.body_megabytes),
            ("upload_megabytes of [limits]", *upload_megabytes != limits.upload_megabytes),
            ("rows of [limits]", *rows != limits.rows),
            ("time of [limits]", *time != limits.time),
        ];
        settings.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
    }

    /// Reads a configuration file, if there is one, and the environment's variables.
    ///
    /// # Errors
    /// If the file cannot be read, or a value cannot be used; the message names it.
    pub fn load(
        path: Option<&Path>,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let text = match path {
            None => String::new(),
            Some(path) => {
                let io = |source| ConfigError::Io { path: path.to_owned(), source };
                std::fs::read_to_string(path).map_err(io)?
            }
        };
        let origin = path.map_or_else(|| "the environment".to_owned(), |path| path.display().to_string());
        let mut config = Self::parse(&text, &origin, variables)?;
        // Paths are relative to the file that names them.
        let folder = path.and_then(Path::parent).unwrap_or(Path::new(""));
        for deployment in config.deployments.values_mut() {
            for file in [&mut deployment.router, &mut deployment.policy, &mut deployment.task].into_iter().flatten() {
                *file = folder.join(&*file);
            }
        }
        Ok(config)
    }

    fn parse(
        text: &str,
        origin: &str,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        // Read once as it is, so that messages name its lines.
        let whole = toml::from_str::<Self>(text).map_err(|e| refuse(origin, with_line(&e, text)))?;
        let mut table: toml::Table = text.parse().map_err(|e: toml::de::Error| refuse(origin, with_line(&e, text)))?;
        let mut changed = None;
        for (name, value) in variables {
            let Some(rest) = name.strip_prefix(PREFIX).map(str::to_lowercase) else { continue };
            let Some((section, key)) = SECTIONS
                .iter()
                .find_map(|section| Some((*section, rest.strip_prefix(section)?.strip_prefix('_')?.to_owned())))
            else {
                continue;
            };
            let entry = table.entry(section).or_insert_with(|| toml::Table::new().into());
            if let Some(section) = entry.as_table_mut() {
                section.insert(key, value.parse::<i64>().map_or_else(|_| value.into(), toml::Value::from));
            }
            changed = Some(name);
            let read: Result<Self, _> = table.clone().try_into();
            if let (Err(e), Some(name)) = (&read, &changed) {
                return Err(refuse(name, e.message().to_owned()));
            }
        }
        let config = if changed.is_some() {
            table.try_into().map_err(|e: toml::de::Error| refuse(origin, e.message().to_owned()))?
        } else {
            whole
        };
        config.check(origin)
    }

    fn check(self, origin: &str) -> Result<Self, ConfigError> {
        let refuse = |reason: String| Err(refuse(origin, reason));
        for (name, deployment) in &self.deployments {
            match (&deployment.router, &deployment.policy, &deployment.task) {
                (Some(_), None, Some(_)) | (None, Some(_), _) => {}
                (Some(_), None, None) => {
                    return refuse(format!("deployment {name}: a router needs a task file: task = \"….toml\""));
                }
                _ => return refuse(format!("deployment {name}: give router and task, or policy")),
            }
        }
        let LimitsConfig { body_megabytes, upload_megabytes, rows, time } = self.limits;
        let StoreConfig { queue_rows, segment_megabytes, .. } = self.store;
        let sizes = [
            ("queue_rows", queue_rows as u64),
            ("segment_megabytes", segment_megabytes),
            ("rows", rows as u64),
            ("body_megabytes", body_megabytes as u64),
            ("upload_megabytes", upload_megabytes as u64),
        ];
        if let Some((name, size)) = sizes.iter().find(|(_, size)| !(1..=MAX_SIZE).contains(size)) {
            return refuse(format!("{name} is {size}: give a number from 1 to {MAX_SIZE}"));
        }
        if queue_rows < rows {
            return refuse(format!(
                "queue_rows of [store] is {queue_rows}, and rows of [limits] {rows}: the queue must hold the largest request"
            ));
        }
        if time.is_zero() {
            return refuse("time of [limits] is zero: give one such as 30s".to_owned());
        }
        Ok(self)
    }

    /// The same configuration with another store.
    ///
    /// # Errors
    /// If it is not the address of one.
    pub fn with_store(mut self, url: &str) -> Result<Self, ConfigError> {
        let refuse = |e: StoreUrlError| ConfigError::Value { origin: "--store".to_owned(), reason: e.to_string() };
        self.store.url = url.parse().map_err(refuse)?;
        Ok(self)
    }

    /// Refuses to listen where others could reach the service without a key or without TLS.
    ///
    /// # Errors
    /// If the address is not a loopback address, and there is no key or no proxy that ends TLS.
    pub fn check_exposure(&self, has_keys: bool) -> Result<(), ConfigError> {
        let ServerConfig { listen: address, public_url, .. } = &self.server;
        let is_behind_tls = public_url.as_deref().is_some_and(is_https);
        if address.ip().is_loopback() || has_keys && is_behind_tls {
            return Ok(());
        }
        Err(ConfigError::Exposed { address: *address, has_keys, public_url: public_url.clone() })
    }
}

/// A value that cannot be used. Names and values come from files and variables, and the message goes to terminals and logs.
fn refuse(origin: &str, reason: String) -> ConfigError {
    ConfigError::Value { origin: printable(origin), reason: printable(&reason.replace('\n', ", ")) }
}

/// An error of TOML with the line of the file.
fn with_line(error: &toml::de::Error, text: &str) -> String {
    let message = error.message();
    match error.span() {
        None => message.to_owned(),
        Some(span) => {
            let line = text.get(..span.start).map_or(1, |before| before.matches('\n').count() + 1);
            format!("line {line}: {message}")
        }
    }
}

/// A duration such as `30d`, `10m` or `200ms`.
fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let refuse =
        || serde::de::Error::custom(format!("{text:?} is not a duration: give one such as 30d, 8h, 10m or 200ms"));
    let span: jiff::Span = text.parse().map_err(|_| refuse())?;
    let length = span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).map_err(|_| refuse())?;
    Duration::try_from(length).map_err(|_| refuse())
}

fn on_log_failure<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OnLogFailure, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        "refuse" => Ok(OnLogFailure::Refuse),
        "answer" => Ok(OnLogFailure::Answer),
        other => Err(serde::de::Error::custom(format!("{other:?}: give \"refuse\" or \"answer\""))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, variables: &[(&str, &str)]) -> Result<Config, String> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::parse(text, "pointsman.toml", variables).map_err(|e| e.to_string())
    }

    #[test]
    fn nothing_is_needed() {
        let config = parse("", &[]).unwrap();
        assert_eq!(config.server.listen, "127.0.0.1:7070".parse().unwrap());
        assert_eq!(config.store.url.to_string(), "sqlite:pointsman.db");
        assert_eq!(config.retention.decisions, 400 * DAY);
    }

    #[test]
    fn variables_override_the_file() {
        let text = "[server]\nlisten = \"127.0.0.1:1\"\n[retention]\ninputs = \"2h\"\n";
        let variables = [("POINTSMAN_SERVER_LISTEN", "127.0.0.1:9"), ("POINTSMAN_LIMITS_ROWS", "7"), ("OTHER", "x")];
        let config = parse(text, &variables).unwrap();
        assert_eq!(config.server.listen.port(), 9);
        assert_eq!(config.limits.rows, 7);
        assert_eq!(config.retention.inputs, Duration::from_secs(7200));
    }

    #[test]
    fn mistakes_are_named_with_their_line_or_variable() {
        type Variables<'a> = &'a [(&'a str, &'a str)];
        let cases: [(&str, Variables<'_>, &str); 8] = [
            ("[server]\nlisten = \"nowhere\"", &[], "line 2"),
            ("[sever]\n", &[], "unknown field `sever`"),
            ("[retention]\ninputs = \"forever\"", &[], "is not a duration"),
            ("[deployments.a]\nrouter = \"r\"", &[], "a router needs a task"),
            ("[deployments.a]\n", &[], "give router and task, or policy"),
            ("[store]\nqueue_rows = 500", &[], "the queue must hold the largest request"),
            ("[store]\nurl = \"mysql:x\"", &[], "line 2: not an address of a store"),
            ("", &[("POINTSMAN_SERVER_LISTEM", "x")], "POINTSMAN_SERVER_LISTEM: unknown field `listem`"),
        ];
        for (text, variables, wanted) in cases {
            let error = parse(text, variables).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn variables_that_set_nothing_are_found() {
        let names = [
            "POINTSMAN_LISTEN",
            "POINTSMAN_SERVER_LISTEN",
            "POINTSMAN_LOG",
            "POINTSMAN_KEY",
            "POINTSMAN_TEST_POSTGRES",
            "POINTSMAN_TEST_DATA",
            "POINTSMAN_DATA",
            "POINTSMAN_BIN",
            "POINTSMAN_STOREURL",
            "HOME",
        ];
        let unknown = ["POINTSMAN_BIN", "POINTSMAN_DATA", "POINTSMAN_LISTEN", "POINTSMAN_STOREURL"];
        assert_eq!(unknown_variables(names.map(str::to_owned)), unknown);
    }

    #[test]
    fn settings_that_need_a_restart_are_named() {
        let running = parse("[limits]\nrows = 7\n[retention]\ninputs = \"2h\"\n", &[]).unwrap();
        let text = "[server]\nlisten = \"127.0.0.1:1\"\n[store]\nurl = \"sqlite:other.db\"\n[limits]\nrows = 8\ntime = \"1s\"\n";
        let names = ["listen of [server]", "url of [store]", "rows of [limits]", "time of [limits]"];
        assert_eq!(parse(text, &[]).unwrap().settings_for_restart(&running), names);
        assert!(running.settings_for_restart(&running).is_empty());
        let password = |password: &str| parse("", &[("POINTSMAN_STORE_URL", &format!("postgres://u:{password}@h/d"))]);
        assert_eq!(password("a").unwrap().settings_for_restart(&password("b").unwrap()), ["url of [store]"]);
    }

    #[test]
    fn passwords_of_the_store_are_not_shown() {
        let right = "postgres://u:canary@localhost/d";
        let config = parse("", &[("POINTSMAN_STORE_URL", right)]).unwrap();
        assert_eq!(config.store.url.to_string(), "postgres://u@localhost:5432/d");
        assert!(!format!("{config:?}").contains("canary"));
        for wrong in ["postgress://u:canary@h/d", "postgres://u:canary@h:x/d", "postgres://u:canary@h/d?canary=1"] {
            let in_file = parse(&format!("[store]\nurl = \"{wrong}\""), &[]).unwrap_err();
            let in_variable = parse("", &[("POINTSMAN_STORE_URL", wrong)]).unwrap_err();
            let as_flag = Config::default().with_store(wrong).unwrap_err().to_string();
            for error in [in_file, in_variable, as_flag] {
                assert!(!error.contains("canary") && error.contains("postgres://user"), "{error}");
            }
        }
    }

    #[test]
    fn exposed_addresses_need_keys_and_tls() {
        let exposed = "[server]\nlisten = \"0.0.0.0:7070\"\n";
        let behind_proxy = format!("{exposed}public_url = \"https://points.example.org\"\n");
        assert!(parse("", &[]).unwrap().check_exposure(false).is_ok());
        assert!(parse(exposed, &[]).unwrap().check_exposure(true).is_err());
        assert!(parse(&behind_proxy, &[]).unwrap().check_exposure(false).is_err());
        assert!(parse(&behind_proxy, &[]).unwrap().check_exposure(true).is_ok());
    }

    #[test]
    fn only_what_is_missing_is_asked_for() {
        let (key, set, https) = ("make a key first", "set public_url", "must begin with https://");
        let cases: [(Option<&str>, bool, &[&str]); 5] = [
            (None, false, &[key, set]),
            (None, true, &[set]),
            (Some("http://points.example.org"), false, &[key, https]),
            (Some("http://points.example.org"), true, &[https]),
            (Some("https://points.example.org"), false, &[key]),
        ];
        for (url, has_keys, wanted) in cases {
            let variables = url.map(|url| ("POINTSMAN_SERVER_PUBLIC_URL", url));
            let config = parse("[server]\nlisten = \"0.0.0.0:7070\"\n", variables.as_slice()).unwrap();
            let error = config.check_exposure(has_keys).unwrap_err().to_string();
            for words in [key, set, https] {
                assert_eq!(error.contains(words), wanted.contains(&words), "{url:?} {has_keys}: {error}");
            }
            let asks_for_url = wanted != [key];
            assert_eq!(error.contains("POINTSMAN_SERVER_PUBLIC_URL"), asks_for_url, "{error}");
        }
    }
}
