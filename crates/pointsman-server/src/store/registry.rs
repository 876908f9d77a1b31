//! Deployments, policy versions and keys, and changes of them.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::clock::Time;

/// How many activations are remembered per deployment.
const MAX_ACTIVATIONS: usize = 100;

/// The number of a deployment in a store. It is never used again, even if the deployment is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DeploymentId(pub i64);

/// The SHA-256 of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Sha256(pub [u8; 32]);

impl Sha256 {
    /// The hash of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest;
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// The hash from its bytes, if there are 32 of them.
    #[must_use]
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl From<Sha256> for String {
    fn from(hash: Sha256) -> Self {
        hash.to_string()
    }
}

impl TryFrom<String> for Sha256 {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Sha256 {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digit =
            |place: usize| text.get(2 * place..2 * place + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        let mut hash = [0; 32];
        for (place, byte) in hash.iter_mut().enumerate() {
            *byte = digit(place)
                .filter(|_| text.len() == 64 && text.is_ascii())
                .ok_or_else(|| format!("{text:?} is not a SHA-256: give 64 hexadecimal digits"))?;
        }
        Ok(Self(hash))
    }
}

/// Whether a deployment's decisions are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Decisions are answered.
    #[default]
    Active,
    /// Every query is answered with `predict`; the decision is logged and returned as `would`.
    Shadow,
}

impl Mode {
    /// `active` or `shadow`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Shadow => "shadow",
        }
    }

    /// The mode of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Active, Self::Shadow].into_iter().find(|mode| mode.name() == name)
    }
}

/// What a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Ask for decisions.
    Decide,
    /// Read decisions, deployments, versions and what-if replays.
    Read,
    /// Everything, changes of deployments and versions included.
    Admin,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 3] = [Self::Decide, Self::Read, Self::Admin];

    /// `decide`, `read` or `admin`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Decide => "decide",
            Self::Read => "read",
            Self::Admin => "admin",
        }
    }

    /// The scope of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

/// A deployment and its versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredDeployment {
    /// Its number.
    pub id: DeploymentId,
    /// Its name.
    pub name: String,
    /// Whether its decisions are answered.
    pub mode: Mode,
    /// The active version and those that were active before it, oldest first.
    pub activations: Vec<u32>,
    /// Oracles that are marked as unavailable.
    pub unavailable: BTreeSet<String>,
    /// Its versions, oldest first.
    pub versions: Vec<StoredVersion>,
    /// When it was created.
    pub created: Time,
    /// What a configuration asked for last, if one names the deployment.
    #[serde(default)]
    pub configured: Option<Configured>,
    /// When it was deleted, if it was.
    #[serde(default)]
    pub deleted: Option<Time>,
}

/// What a configuration asks of a deployment. It is done when it differs from what was asked last, so that a later rollback or change of
/// mode stays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Configured {
    /// The mode.
    pub mode: Mode,
    /// The router, if it is not a compiled policy.
    pub router: Option<Sha256>,
    /// The compiled policy.
    pub policy: Sha256,
    /// The hash of the files that it names, and of the release of this program, which may compile them differently.
    #[serde(default)]
    pub files: Option<Sha256>,
}

impl StoredDeployment {
    /// Whether a configuration with these files and this mode is the one that was done last.
    #[must_use]
    pub fn is_configured(&self, mode: Mode, files: Sha256) -> bool {
        self.configured.as_ref().is_some_and(|last| last.mode == mode && last.files == Some(files))
    }

    /// The number of the active version.
    #[must_use]
    pub fn active(&self) -> Option<u32> {
        self.activations.last().copied()
    }

    /// The version of a number.
    #[must_use]
    pub fn version(&self, number: u32) -> Option<&StoredVersion> {
        self.versions.iter().find(|version| version.number == number)
    }

    /// The versions with the same classes and features as the active one, which is one of them.
    #[must_use]
    pub fn alike(&self) -> Vec<u32> {
        let signature = self.active().and_then(|number| self.version(number)?.signature);
        let is_alike = |version: &&StoredVersion| signature.is_some() && version.signature == signature;
        self.versions.iter().filter(is_alike).map(|version| version.number).collect()
    }
}

/// A policy version: immutable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredVersion {
    /// Its number in the deployment, from 1 on.
    pub number: u32,
    /// The router it was compiled from; `None` if a compiled policy was uploaded.
    pub router: Option<Sha256>,
    /// The compiled policy.
    pub policy: Sha256,
    /// The task, as the text of a task file.
    pub task: String,
    /// The hash of its classes and features in their order, which say what the numbers of a request mean.
    #[serde(default)]
    pub signature: Option<Sha256>,
    /// When it was created.
    pub created: Time,
}

/// A version to be added.
#[derive(Debug, Clone, PartialEq)]
pub struct NewVersion {
    /// The router it was compiled from.
    pub router: Option<Sha256>,
    /// The compiled policy.
    pub policy: Sha256,
    /// The task, as the text of a task file.
    pub task: String,
    /// The hash of its classes and features in their order.
    pub signature: Option<Sha256>,
}

/// An access key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// Its number; decisions name it.
    pub number: i64,
    /// What people call it.
    pub name: String,
    /// The part of the key that is not secret.
    pub public: String,
    /// The SHA-256 of the secret part.
    pub secret_hash: Sha256,
    /// What it may do.
    pub scopes: BTreeSet<Scope>,
    /// Requests per second it may make; `None` if there is no limit.
    pub rate: Option<u32>,
    /// Whether it was disabled.
    pub disabled: bool,
    /// When it was created.
    pub created: Time,
}

/// The deployments and keys of a store.
///
/// It is small, and a store keeps it as one document: [`Registry::apply`] has the rules of every change, whatever the store.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Registry {
    /// Grows with every change.
    pub generation: u64,
    /// The largest number of a deployment so far.
    last_deployment: i64,
    /// The deployments, by name.
    pub deployments: Vec<StoredDeployment>,
    /// Deployments that were deleted and whose decisions may still be in the log, oldest first.
    #[serde(default)]
    pub deleted: Vec<StoredDeployment>,
    /// The keys, oldest first.
    pub keys: Vec<Key>,
}

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
    fn version_of(&self) -> Option<&str> {
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
    fn of_version(version: Option<u32>, created: bool) -> Self {
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

impl Registry {
    /// The deployment of a name.
    #[must_use]
    pub fn deployment(&self, name: &str) -> Option<&StoredDeployment> {
        self.deployments.iter().find(|deployment| deployment.name == name)
    }

    fn find(&mut self, name: &str) -> Result<&mut StoredDeployment, ChangeError> {
        let found = self.deployments.iter_mut().find(|deployment| deployment.name == name);
        found.ok_or_else(|| ChangeError::NoDeployment(name.to_owned()))
    }

    /// Applies a change. If everything is as asked already, the generation stays.
    ///
    /// # Errors
    /// If it does not fit; the registry is as before then.
    pub fn apply(&mut self, change: Change, now: Time) -> Result<Changed, ChangeError> {
        let before = self.clone();
        let name = change.version_of().map(str::to_owned);
        let mut changed = self.carry_out(change, now)?;
        changed.is_changed = *self != before;
        changed.active_before = name.and_then(|name| before.deployment(&name)?.active());
        self.generation += u64::from(changed.is_changed);
        Ok(changed)
    }

    fn carry_out(&mut self, change: Change, now: Time) -> Result<Changed, ChangeError> {
        Ok(match change {
            Change::PutDeployment { name, mode } => self.put_deployment(name, mode, now),
            Change::Configure { name, mode, version, files } => {
                let created = self.find(&name).is_err();
                if created {
                    self.put_deployment(name.clone(), Some(mode), now);
                }
                self.find(&name)?.configure(mode, version, files, now)
            }
            Change::DeleteDeployment { name } => {
                self.find(&name)?.deleted = Some(now);
                self.deleted.extend(self.deployments.extract_if(.., |deployment| deployment.name == name));
                Changed::default()
            }
            Change::ForgetDeleted { before } => {
                self.deleted.retain(|deployment| deployment.deleted.is_some_and(|time| time >= before));
                Changed::default()
            }
            Change::AddVersion { deployment, version, activate, force } => {
                let deployment = self.find(&deployment)?;
                if activate && !force {
                    deployment.check_signature(version.signature)?;
                }
                let changed = deployment.add_version(version, now);
                if let Some(number) = changed.version.filter(|_| activate) {
                    deployment.activate(number);
                }
                changed
            }
            Change::Activate { deployment: name, version, force } => {
                let deployment = self.find(&name)?;
                let Some(found) = deployment.version(version) else {
                    return Err(ChangeError::NoVersion { deployment: name, version });
                };
                if !force {
                    deployment.check_signature(found.signature)?;
                }
                deployment.activate(version);
                Changed::of_version(Some(version), false)
            }
            Change::RollBack { deployment: name } => {
                let deployment = self.find(&name)?;
                if deployment.activations.len() < 2 {
                    return Err(ChangeError::NothingBefore(name));
                }
                deployment.activations.pop();
                Changed::of_version(deployment.active(), false)
            }
            Change::SetOracle { deployment, oracle, available } => {
                let unavailable = &mut self.find(&deployment)?.unavailable;
                let created = if available { unavailable.remove(&oracle) } else { unavailable.insert(oracle) };
                Changed { created, ..Changed::default() }
            }
            Change::AddKey { name, public, secret_hash, scopes, rate } => {
                if self.keys.iter().any(|key| key.name == name && !key.disabled) {
                    return Err(ChangeError::KeyExists(name));
                }
                let number = self.keys.len() as i64 + 1;
                self.keys.push(Key { number, name, public, secret_hash, scopes, rate, disabled: false, created: now });
                Changed { created: true, ..Changed::default() }
            }
            Change::DisableKey { name } => {
                let key = self.keys.iter_mut().find(|key| key.name == name && !key.disabled);
                key.ok_or(ChangeError::NoKey(name))?.disabled = true;
                Changed::default()
            }
        })
    }

    fn put_deployment(&mut self, name: String, mode: Option<Mode>, now: Time) -> Changed {
        if let Ok(deployment) = self.find(&name) {
            deployment.mode = mode.unwrap_or(deployment.mode);
            return Changed::default();
        }
        self.last_deployment += 1;
        self.deployments.push(StoredDeployment {
            id: DeploymentId(self.last_deployment),
            name,
            mode: mode.unwrap_or_default(),
            activations: Vec::new(),
            unavailable: BTreeSet::new(),
            versions: Vec::new(),
            created: now,
            configured: None,
            deleted: None,
        });
        self.deployments.sort_by(|a, b| a.name.cmp(&b.name));
        Changed { created: true, ..Changed::default() }
    }
}

impl StoredDeployment {
    /// Does what a configuration asks for and did not ask for last time.
    fn configure(&mut self, mode: Mode, version: NewVersion, files: Sha256, now: Time) -> Changed {
        let asked = (version.router, version.policy);
        let asked_now = Configured { mode, router: asked.0, policy: asked.1, files: Some(files) };
        let before = self.configured.replace(asked_now);
        if before.as_ref().is_none_or(|before| before.mode != mode) {
            self.mode = mode;
        }
        if before.is_some_and(|before| (before.router, before.policy) == asked) {
            return Changed::of_version(self.active(), false);
        }
        let changed = self.add_version(version, now);
        if let Some(number) = changed.version {
            self.activate(number);
        }
        changed
    }

    /// Adds a version, unless the newest one is the same.
    fn add_version(&mut self, version: NewVersion, now: Time) -> Changed {
        let NewVersion { router, policy, task, signature } = version;
        if let Some(newest) = self.versions.last().filter(|newest| newest.policy == policy && newest.router == router) {
            return Changed::of_version(Some(newest.number), false);
        }
        let number = self.versions.last().map_or(1, |newest| newest.number + 1);
        self.versions.push(StoredVersion { number, router, policy, task, signature, created: now });
        Changed::of_version(Some(number), true)
    }

    /// Refuses a version whose requests would be read differently from those of the active one.
    fn check_signature(&self, new: Option<Sha256>) -> Result<(), ChangeError> {
        let active = self.active().and_then(|number| self.version(number)?.signature);
        match (active, new) {
            (Some(active), Some(new)) if active != new => Err(ChangeError::OtherSignature(self.name.clone())),
            _ => Ok(()),
        }
    }

    /// Makes a version the active one, unless it is.
    fn activate(&mut self, version: u32) {
        if self.active() != Some(version) {
            self.activations.push(version);
            // Rolling back further than this is done by number.
            let extra = self.activations.len().saturating_sub(MAX_ACTIVATIONS);
            self.activations.drain(..extra);
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn version(task: &str) -> NewVersion {
        NewVersion { router: None, policy: Sha256::of(task.as_bytes()), task: task.to_owned(), signature: None }
    }

    fn add(task: &str) -> Change {
        Change::AddVersion { deployment: "d".to_owned(), version: version(task), activate: true, force: false }
    }

    fn with_deployment() -> Registry {
        let mut registry = Registry::default();
        registry.apply(Change::PutDeployment { name: "d".to_owned(), mode: None }, Time(1)).unwrap();
        registry
    }

    #[test]
    fn configuration_is_applied_where_it_has_changed() {
        let mut registry = Registry::default();
        let configure = |mode: Mode, task: &str| Change::Configure {
            name: "d".to_owned(),
            mode,
            version: version(task),
            files: Sha256::of(task.as_bytes()),
        };
        let state = |registry: &Registry| (registry.deployments[0].active(), registry.deployments[0].mode);
        registry.apply(configure(Mode::Shadow, "a"), Time(1)).unwrap();
        registry.apply(configure(Mode::Shadow, "b"), Time(2)).unwrap();
        assert_eq!(state(&registry), (Some(2), Mode::Shadow));
        // What was done by hand stays when the same configuration is read again.
        registry.apply(Change::RollBack { deployment: "d".to_owned() }, Time(3)).unwrap();
        registry.apply(Change::PutDeployment { name: "d".to_owned(), mode: Some(Mode::Active) }, Time(3)).unwrap();
        registry.apply(configure(Mode::Shadow, "b"), Time(4)).unwrap();
        assert_eq!(state(&registry), (Some(1), Mode::Active));
        // A new file is activated; the mode of the configuration has not changed.
        registry.apply(configure(Mode::Shadow, "c"), Time(5)).unwrap();
        assert_eq!((state(&registry), registry.deployments[0].versions.len()), ((Some(3), Mode::Active), 3));
    }

    #[test]
    fn rolling_back_activates_the_version_before() {
        let mut registry = with_deployment();
        let roll_back = Change::RollBack { deployment: "d".to_owned() };
        for (number, task) in [(1, "a"), (2, "b"), (3, "c")] {
            let changed = registry.apply(add(task), Time(2)).unwrap();
            assert_eq!((changed.version, changed.created), (Some(number), true));
        }
        for before in [2, 1] {
            assert_eq!(registry.apply(roll_back.clone(), Time(3)).unwrap().version, Some(before));
            assert_eq!(registry.deployments[0].active(), Some(before));
        }
        let generation = registry.generation;
        assert_eq!(registry.apply(roll_back, Time(4)), Err(ChangeError::NothingBefore("d".to_owned())));
        assert_eq!(registry.generation, generation, "a refused change changes nothing");
    }

    #[test]
    fn the_same_version_is_added_once() {
        let mut registry = with_deployment();
        registry.apply(add("a"), Time(2)).unwrap();
        let before = registry.clone();
        let again = registry.apply(add("a"), Time(3)).unwrap();
        assert_eq!((again.version, again.created, again.is_changed), (Some(1), false, false));
        assert_eq!(registry.deployments[0].activations, [1]);
        assert_eq!(registry, before, "nothing was changed, not even the generation");
    }

    #[test]
    fn entries_name_the_versions() {
        let mut registry = with_deployment();
        let mut describe = |change: Change| {
            let changed = registry.apply(change.clone(), Time(2)).unwrap();
            change.describe(&changed)
        };
        let deployment = || "d".to_owned();
        let policy = |task: &str| Sha256::of(task.as_bytes());
        assert_eq!(describe(add("a")), format!("add version 1 to d and activate it: policy {}", policy("a")));
        let kept =
            Change::AddVersion { deployment: deployment(), version: version("b"), activate: false, force: false };
        assert_eq!(describe(kept), format!("add version 2 to d: policy {}", policy("b")));
        assert_eq!(describe(add("b")), "activate version 2 of d (before: version 1)");
        assert_eq!(describe(Change::RollBack { deployment: deployment() }), "roll d back from version 2 to version 1");
        let activate = Change::Activate { deployment: deployment(), version: 2, force: false };
        assert_eq!(describe(activate), "activate version 2 of d (before: version 1)");
    }

    #[test]
    fn numbers_of_deployments_are_not_used_again() {
        let mut registry = with_deployment();
        let first = registry.deployments[0].id;
        registry.apply(Change::DeleteDeployment { name: "d".to_owned() }, Time(2)).unwrap();
        registry.apply(Change::PutDeployment { name: "d".to_owned(), mode: Some(Mode::Shadow) }, Time(3)).unwrap();
        assert!(registry.deployments[0].id > first);
        assert_eq!(registry.deployments[0].mode, Mode::Shadow);
    }

    #[test]
    fn deleted_deployments_are_remembered_until_they_are_forgotten() {
        let mut registry = with_deployment();
        registry.apply(add("a"), Time(2)).unwrap();
        registry.apply(Change::DeleteDeployment { name: "d".to_owned() }, Time(3)).unwrap();
        assert!(registry.deployment("d").is_none());
        let [deleted] = registry.deleted.as_slice() else { panic!("{:?}", registry.deleted) };
        assert_eq!((deleted.deleted, deleted.versions.len()), (Some(Time(3)), 1));
        registry.apply(Change::ForgetDeleted { before: Time(3) }, Time(4)).unwrap();
        assert_eq!(registry.deleted.len(), 1);
        registry.apply(Change::ForgetDeleted { before: Time(4) }, Time(5)).unwrap();
        assert!(registry.deleted.is_empty());
    }

    #[test]
    fn versions_with_other_classes_are_activated_by_force_only() {
        let mut registry = with_deployment();
        let signed =
            |task: &str, classes: &str| NewVersion { signature: Some(Sha256::of(classes.as_bytes())), ..version(task) };
        let add = |task: &str, classes: &str, activate: bool, force: bool| {
            let (deployment, version) = ("d".to_owned(), signed(task, classes));
            Change::AddVersion { deployment, version, activate, force }
        };
        let activate = |version: u32, force: bool| Change::Activate { deployment: "d".to_owned(), version, force };
        let refused = Err(ChangeError::OtherSignature("d".to_owned()));
        registry.apply(add("a", "no, yes", true, false), Time(2)).unwrap();
        let before = registry.clone();
        assert_eq!(registry.apply(add("b", "yes, no", true, false), Time(3)), refused);
        assert_eq!(registry, before, "nothing was added");
        registry.apply(add("b", "yes, no", false, false), Time(3)).unwrap();
        assert_eq!(registry.apply(activate(2, false), Time(4)), refused);
        assert_eq!(registry.deployments[0].alike(), [1]);
        registry.apply(activate(2, true), Time(5)).unwrap();
        assert_eq!(registry.deployments[0].alike(), [2]);
        // Going back is always possible.
        registry.apply(Change::RollBack { deployment: "d".to_owned() }, Time(6)).unwrap();
        registry.apply(add("c", "no, yes", true, false), Time(7)).unwrap();
        assert_eq!(registry.deployments[0].alike(), [1, 3]);
    }

    #[test]
    fn documents_come_back_as_they_were() {
        let mut registry = with_deployment();
        registry.apply(add("a"), Time(2)).unwrap();
        let scopes = BTreeSet::from([Scope::Decide, Scope::Read]);
        let secret_hash = Sha256::of(b"secret");
        let (name, public) = ("app".to_owned(), "x1".to_owned());
        registry.apply(Change::AddKey { name, public, secret_hash, scopes, rate: Some(10) }, Time(3)).unwrap();
        let text = serde_json::to_string(&registry).unwrap();
        assert_eq!(serde_json::from_str::<Registry>(&text).unwrap(), registry);
    }

    #[test]
    fn keys_have_one_name_each_until_they_are_disabled() {
        let mut registry = Registry::default();
        let add = || Change::AddKey {
            name: "app".to_owned(),
            public: "x".to_owned(),
            secret_hash: Sha256::of(b"s"),
            scopes: BTreeSet::from([Scope::Decide]),
            rate: None,
        };
        let disable = || Change::DisableKey { name: "app".to_owned() };
        registry.apply(add(), Time(1)).unwrap();
        assert_eq!(registry.apply(add(), Time(2)), Err(ChangeError::KeyExists("app".to_owned())));
        registry.apply(disable(), Time(3)).unwrap();
        assert_eq!(registry.apply(disable(), Time(4)), Err(ChangeError::NoKey("app".to_owned())));
        registry.apply(add(), Time(5)).unwrap();
        assert_eq!(registry.keys.iter().map(|key| key.number).collect::<Vec<_>>(), [1, 2]);
    }
}
