//! Changes of the registry, what they did, and why they were refused.

use std::collections::BTreeSet;

use serde::Serialize;
use utoipa::ToSchema;

use super::deployment::{Mode, NewVersion};
use super::hash::Sha256;
use super::key::Scope;
use crate::clock::Time;

/// A change of the registry.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// Creates a deployment or changes its settings.
    PutDeployment {
        /// Its name.
        name: String,
        /// Its mode; unchanged, or active for a new one, if not given.
        mode: Option<Mode>,
    },
    /// Makes a deployment what a configuration says, in what has changed since the configuration was applied last.
    Configure {
        /// The deployment's name.
        name: String,
        /// Its mode.
        mode: Mode,
        /// Its version, which becomes the active one.
        version: NewVersion,
        /// The hash of the files that the configuration names.
        files: Sha256,
    },
    /// Deletes a deployment. Its decisions stay in the log until they expire, and its versions with them.
    DeleteDeployment {
        /// Its name.
        name: String,
    },
    /// Forgets the deployments that were deleted before this time.
    ForgetDeleted {
        /// The time.
        before: Time,
    },
    /// Adds a version to a deployment, unless its newest one is the same, and activates it if asked to.
    AddVersion {
        /// The deployment's name.
        deployment: String,
        /// The version.
        version: NewVersion,
        /// Whether it becomes the active one.
        activate: bool,
        /// Whether it becomes the active one even if its classes or features are others than those of the active one.
        force: bool,
    },
    /// Activates a version.
    Activate {
        /// The deployment's name.
        deployment: String,
        /// The version's number.
        version: u32,
        /// Whether it is done even if its classes or features are others than those of the active one.
        force: bool,
    },
    /// Activates the version that was active before the present one.
    RollBack {
        /// The deployment's name.
        deployment: String,
    },
    /// Marks an oracle as available or not.
    SetOracle {
        /// The deployment's name.
        deployment: String,
        /// The name of the task's route.
        oracle: String,
        /// Whether it can be asked.
        available: bool,
    },
    /// Adds a key.
    AddKey {
        /// What people call it.
        name: String,
        /// The part that is not secret.
        public: String,
        /// The SHA-256 of the secret part.
        secret_hash: Sha256,
        /// What it may do.
        scopes: BTreeSet<Scope>,
        /// Requests per second it may make.
        rate: Option<u32>,
    },
    /// Disables a key, by its name.
    DisableKey {
        /// Its name.
        name: String,
    },
}

impl Change {
    /// The deployment whose active version it may change.
    pub(super) fn version_of(&self) -> Option<&str> {
        match self {
            Self::Configure { name: deployment, .. }
            | Self::AddVersion { deployment, .. }
            | Self::Activate { deployment, .. }
            | Self::RollBack { deployment } => Some(deployment),
            _ => None,
        }
    }

    /// The change in words with what it did, for the log of administration; secrets are not in it.
    #[must_use]
    pub fn describe(&self, changed: &Changed) -> String {
        let version = changed.version.map_or_else(|| "no version".to_owned(), |number| format!("version {number}"));
        let before = match changed.active_before {
            Some(number) if changed.version != Some(number) => format!(" (before: version {number})"),
            _ => String::new(),
        };
        match self {
            Self::PutDeployment { name, mode: None } => format!("put deployment {name}"),
            Self::PutDeployment { name, mode: Some(mode) } => format!("put deployment {name}, mode {}", mode.name()),
            Self::Configure { name, mode, version: new, .. } => {
                format!("configure {name}: mode {}, {version}{before}, policy {}", mode.name(), new.policy)
            }
            Self::DeleteDeployment { name } => format!("delete deployment {name}"),
            Self::ForgetDeleted { before } => format!("forget deployments that were deleted before {before}"),
            Self::AddVersion { deployment, version: new, activate, force } => {
                let forced = if *activate && *force { ", with whatever classes and features" } else { "" };
                match (changed.created, *activate) {
                    (true, true) => {
                        format!("add {version} to {deployment} and activate it{before}: policy {}{forced}", new.policy)
                    }
                    (true, false) => format!("add {version} to {deployment}: policy {}", new.policy),
                    (false, _) => format!("activate {version} of {deployment}{before}{forced}"),
                }
            }
            Self::Activate { deployment, force, .. } => {
                let forced = if *force { ", with whatever classes and features" } else { "" };
                format!("activate {version} of {deployment}{before}{forced}")
            }
            Self::RollBack { deployment } => {
                let from = changed.active_before.map_or_else(String::new, |number| format!(" from version {number}"));
                format!("roll {deployment} back{from} to {version}")
            }
            Self::SetOracle { deployment, oracle, available } => {
                format!(
                    "mark oracle {oracle} of {deployment} as {}",
                    if *available { "available" } else { "unavailable" }
                )
            }
            Self::AddKey { name, public, scopes, .. } => {
                let scopes: Vec<&str> = scopes.iter().map(|scope| scope.name()).collect();
                format!("add key {name} ({public}), scopes {}", scopes.join(", "))
            }
            Self::DisableKey { name } => format!("disable key {name}"),
        }
    }
}

/// What a change did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changed {
    /// The number of the version that was added or is active now, if the change is about versions.
    pub version: Option<u32>,
    /// The number of the version that was active before, if the change is about versions and there was one.
    pub active_before: Option<u32>,
    /// Whether something was created.
    pub created: bool,
    /// Whether the registry differs from what it was.
    pub is_changed: bool,
}

impl Changed {
    pub(super) fn of_version(version: Option<u32>, created: bool) -> Self {
        Self { version, created, ..Self::default() }
    }
}

/// Why a change was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// There is no such deployment.
    #[error("there is no deployment {0:?}")]
    NoDeployment(String),
    /// The deployment has no such version.
    #[error("deployment {deployment:?} has no version {version}")]
    NoVersion {
        /// The deployment.
        deployment: String,
        /// The number.
        version: u32,
    },
    /// No version was active before the present one.
    #[error(
        "there is nothing further back: no version of {0:?} was active before the present one; a version can be activated by its \
         number (`pointsman versions activate`)"
    )]
    NothingBefore(String),
    /// The version to be activated has other classes or features than the active one.
    #[error(
        "the version has other classes or features than the active version of {0:?}: requests would be read differently; \
         force it if callers know"
    )]
    OtherSignature(String),
    /// A key has this name.
    #[error("there is a key {0:?} already: choose another name, or disable it first")]
    KeyExists(String),
    /// There is no such key.
    #[error("there is no key {0:?}, or it is disabled already")]
    NoKey(String),
}

/// One entry of the log of administration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AdminEntry {
    /// Its number.
    pub number: u64,
    /// When, in microseconds since 1970.
    pub at: i64,
    /// Who: the name of a key, `loopback`, `configuration` or `command line`.
    pub by: String,
    /// What was done.
    pub what: String,
}
