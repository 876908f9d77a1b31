//! Deployments, policy versions and keys, and changes of them.

mod change;
mod deployment;
mod hash;
mod key;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub use change::{AdminEntry, Change, ChangeError, Changed};
pub use deployment::{DeploymentId, Mode, NewVersion, StoredDeployment, StoredVersion};
pub use hash::Sha256;
pub use key::{Key, Scope};

use self::deployment::Configured;
use crate::clock::Time;

/// How many activations are remembered per deployment.
const MAX_ACTIVATIONS: usize = 100;

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
