//! The deployments as they decide now: policies ready to use, replaced as a whole when something changes.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use arc_swap::{ArcSwap, Guard};
use pointsman::policy::AvailableRoutes;
use pointsman::{Policy, Router};
use tokio::sync::Mutex;

use crate::counters::DecisionCounters;
use crate::store::{DeploymentId, Key, Mode, Sha256, Store, StoreError, StoredDeployment};

/// The name of no action, which is given if the labels do not determine one.
pub(crate) const UNDETERMINED_NAME: &str = "undetermined";

/// What the numbers in the log of a version stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Names {
    /// The classes, in the order of probabilities.
    pub classes: Vec<String>,
    /// The features that the version uses, in the order of its values.
    pub features: Vec<String>,
    /// The actions, in the order of costs.
    pub actions: Vec<String>,
    /// The acts, if the loss has acts of its own.
    pub acts: Option<Vec<String>>,
}

impl Names {
    pub(crate) fn new(policy: &Policy) -> Self {
        Self {
            classes: policy.classes().to_vec(),
            features: policy.cells().features().to_vec(),
            actions: policy.task().action_names(),
            acts: policy.task().loss().acts().map(<[String]>::to_vec),
        }
    }

    /// The hash of the classes and features in their order, which say what the numbers of a request mean.
    #[must_use]
    pub fn signature(&self) -> Sha256 {
        // A length stands before each list and each name, so that no two lists are written alike.
        let mut text = String::new();
        for list in [&self.classes, &self.features] {
            text += &format!("{};", list.len());
            list.iter().for_each(|name| text += &format!("{}:{name};", name.len()));
        }
        Sha256::of(text.as_bytes())
    }

    /// In which classes or features these differ from others, in words; `None` if in none.
    #[must_use]
    pub fn difference(&self, from: &Self) -> Option<String> {
        let of_lists = [("classes", &self.classes, &from.classes), ("features", &self.features, &from.features)]
            .into_iter()
            .filter(|(_, new, old)| new != old)
            .map(|(what, new, old)| match new.as_slice() {
                [] => format!("no {what} instead of {}", listed(old)),
                new => format!("the {what} {} instead of {}", listed(new), listed(old)),
            });
        let parts: Vec<String> = of_lists.collect();
        (!parts.is_empty()).then(|| parts.join(" and "))
    }

    /// The name of an action.
    #[must_use]
    pub fn action(&self, code: u8) -> &str {
        self.actions.get(usize::from(code)).map_or(UNDETERMINED_NAME, String::as_str)
    }
}

/// Names in a sentence, the first of many.
fn listed(names: &[String]) -> String {
    const MOST: usize = 10;
    match names {
        [] => "none".to_owned(),
        few if few.len() <= MOST => few.join(", "),
        many => format!("{}, … ({} in all)", many[..MOST].join(", "), many.len()),
    }
}

/// A policy version that is ready to decide.
#[derive(Debug)]
pub struct Version {
    /// Its number in the deployment.
    pub number: u32,
    /// The compiled policy.
    pub policy: Arc<Policy>,
    /// What the numbers in its log stand for.
    pub names: Arc<Names>,
}

impl Version {
    fn new(number: u32, policy: Arc<Policy>) -> Self {
        Self { number, names: Arc::new(Names::new(&policy)), policy }
    }
}

/// A deployment as it decides now.
#[derive(Debug)]
pub struct Deployment {
    /// What is stored of it.
    pub stored: StoredDeployment,
    /// The active version, if there is one.
    pub active: Option<Arc<Version>>,
    /// The routes of the active version that can be taken.
    pub available: AvailableRoutes,
    /// The versions whose queries can be compared with those of the active one.
    pub alike: Arc<[u32]>,
    /// Counters of the active version's decisions.
    pub(crate) counters: DecisionCounters,
}

impl Deployment {
    /// A deployment that decides nothing.
    fn without_version(stored: StoredDeployment) -> Self {
        let counters = DecisionCounters::new(0);
        Self { stored, active: None, available: AvailableRoutes::all(), alike: Arc::default(), counters }
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> DeploymentId {
        self.stored.id
    }

    /// Whether decisions are answered.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.stored.mode
    }
}

/// All deployments and keys at one time.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Grows with every change.
    pub generation: u64,
    /// The deployments by name.
    pub deployments: HashMap<String, Arc<Deployment>>,
    /// Deployments that were deleted and whose decisions may still be in the log, oldest first.
    pub deleted: Vec<Arc<Deployment>>,
    /// The keys that are not disabled, by their public part.
    pub keys: HashMap<String, Arc<Key>>,
    /// Whether there is a key or was one.
    pub has_had_keys: bool,
}

impl Snapshot {
    /// The deployment of a number, also if it was deleted.
    pub fn by_number(&self, number: DeploymentId) -> Option<&Arc<Deployment>> {
        self.deployments.values().chain(&self.deleted).find(|deployment| deployment.id() == number)
    }

    /// The deployment whose decisions a name stands for: the one there is, or the last that was deleted; with a number, the one that
    /// has it.
    pub fn logged(&self, name: &str, number: Option<DeploymentId>) -> Option<&Arc<Deployment>> {
        let is_named = |deployment: &&Arc<Deployment>| deployment.stored.name == name;
        match number {
            Some(number) => self.by_number(number).filter(is_named),
            None => self.deployments.get(name).or_else(|| self.deleted.iter().rev().find(is_named)),
        }
    }
}

/// Why a version cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file is not what it should be.
    #[error("{0}")]
    File(String),
    /// A file is not in the store.
    #[error("the store has no file {0}")]
    NoFile(Sha256),
}

/// The deployments as they decide now.
#[derive(Debug)]
pub struct Deployments {
    store: Arc<dyn Store>,
    current: ArcSwap<Snapshot>,
    /// Policies by the hash of their file. Held while a new snapshot is made, so that one is made at a time.
    policies: Mutex<HashMap<Sha256, Arc<Policy>>>,
    /// The names of policies by the hash of their file, so that the log can be read without loading them.
    names: std::sync::Mutex<HashMap<Sha256, Arc<Names>>>,
}

impl Deployments {
    /// No deployments yet: [`Deployments::refresh`] reads them.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, current: ArcSwap::default(), policies: Mutex::default(), names: std::sync::Mutex::default() }
    }

    /// The deployments now. A request reads them once, so that a change in between does not mix two states.
    pub fn now(&self) -> Guard<Arc<Snapshot>> {
        self.current.load()
    }

    /// The deployment of a name as it decides now.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Arc<Deployment>> {
        self.now().deployments.get(name).cloned()
    }

    /// What the numbers in a deployment's requests stand for now; `None` if nothing decides there.
    #[must_use]
    pub fn active_names(&self, deployment: &str) -> Option<Arc<Names>> {
        Some(Arc::clone(&self.find(deployment)?.active.as_ref()?.names))
    }

    /// Reads the registry, if it has changed, and replaces the snapshot. If a version cannot be loaded, the snapshot stays.
    ///
    /// # Errors
    /// If the store fails or a version cannot be loaded.
    pub async fn refresh(&self) -> Result<(), LoadError> {
        let mut policies = self.policies.lock().await;
        if self.store.generation().await? == self.now().generation {
            return Ok(());
        }
        let registry = self.store.registry().await?;
        let mut snapshot = Snapshot { generation: registry.generation, ..Snapshot::default() };
        let before = self.current.load_full();
        for stored in registry.deployments {
            let deployment = self.load(&mut policies, &before, stored).await?;
            snapshot.deployments.insert(deployment.stored.name.clone(), Arc::new(deployment));
        }
        let without_version = |stored| Arc::new(Deployment::without_version(stored));
        snapshot.deleted = registry.deleted.into_iter().map(without_version).collect();
        snapshot.has_had_keys = !registry.keys.is_empty();
        let open = registry.keys.into_iter().filter(|key| !key.disabled);
        snapshot.keys = open.map(|key| (key.public.clone(), Arc::new(key))).collect();
        // What no deployment uses any more is given up.
        let used = |hash: &Sha256| {
            let active = |deployment: &Arc<Deployment>| {
                let number = deployment.stored.active()?;
                Some(deployment.stored.version(number)?.policy)
            };
            snapshot.deployments.values().filter_map(active).any(|other| other == *hash)
        };
        policies.retain(|hash, _| used(hash));
        self.current.store(Arc::new(snapshot));
        Ok(())
    }

    async fn load(
        &self,
        policies: &mut HashMap<Sha256, Arc<Policy>>,
        before: &Snapshot,
        stored: StoredDeployment,
    ) -> Result<Deployment, LoadError> {
        let version = stored.active().and_then(|number| stored.version(number));
        let Some(version) = version else {
            return Ok(Deployment::without_version(stored));
        };
        let loaded = before.deployments.get(&stored.name).and_then(|deployment| deployment.active.clone());
        let is_same = |loaded: &Arc<Version>| {
            let known = before.deployments.get(&stored.name).and_then(|old| old.stored.version(loaded.number));
            known == Some(version)
        };
        let active = match loaded.filter(is_same) {
            Some(loaded) => loaded,
            None => {
                let policy = match policies.get(&version.policy) {
                    Some(policy) => Arc::clone(policy),
                    None => Arc::new(self.policy(version.policy).await?),
                };
                policies.insert(version.policy, Arc::clone(&policy));
                Arc::new(Version::new(version.number, policy))
            }
        };
        let task = active.policy.task();
        // An oracle that the version does not have cannot be asked anyway.
        let known = stored.unavailable.iter().filter(|name| task.routes().iter().any(|route| route.name() == *name));
        let available =
            known.fold(AvailableRoutes::all(), |available, name| available.without(task, name).unwrap_or(available));
        let alike = stored.alike().into();
        let counters = DecisionCounters::new(active.names.actions.len());
        Ok(Deployment { active: Some(active), available, alike, stored, counters })
    }

    /// A policy from the store.
    async fn policy(&self, hash: Sha256) -> Result<Policy, LoadError> {
        let bytes = self.store.file(hash).await?.ok_or(LoadError::NoFile(hash))?;
        parse(move || pointsman_table::parse_policy(&bytes)).await
    }

    /// A version of a deployment, whether or not it is active.
    ///
    /// # Errors
    /// If the store fails or the version cannot be loaded.
    pub async fn version(&self, deployment: &Deployment, number: u32) -> Result<Option<Arc<Version>>, LoadError> {
        if let Some(active) = deployment.active.as_ref().filter(|active| active.number == number) {
            return Ok(Some(Arc::clone(active)));
        }
        let Some(stored) = deployment.stored.version(number) else { return Ok(None) };
        Ok(Some(Arc::new(Version::new(number, Arc::new(self.policy(stored.policy).await?)))))
    }

    /// What the numbers in the log of a version stand for; `None` if there is no such version.
    ///
    /// # Errors
    /// If the store fails or the version cannot be loaded.
    pub async fn names(&self, deployment: &Deployment, number: u32) -> Result<Option<Arc<Names>>, LoadError> {
        let known = |hash: Sha256| self.names.lock().unwrap_or_else(PoisonError::into_inner).get(&hash).cloned();
        let Some(stored) = deployment.stored.version(number) else { return Ok(None) };
        if let Some(names) = known(stored.policy) {
            return Ok(Some(names));
        }
        let Some(version) = self.version(deployment, number).await? else { return Ok(None) };
        let mut all = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Some(Arc::clone(all.entry(stored.policy).or_insert_with(|| Arc::clone(&version.names)))))
    }

    /// A router from the store.
    ///
    /// # Errors
    /// If the store fails, or has no such router.
    pub async fn router(&self, hash: Sha256) -> Result<Router, LoadError> {
        let bytes = self.store.file(hash).await?.ok_or(LoadError::NoFile(hash))?;
        parse(move || pointsman_table::parse_router(&bytes)).await
    }
}

/// Reads a file on a thread that may take its time.
async fn parse<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, pointsman_table::ContentError> + Send + 'static,
) -> Result<T, LoadError> {
    match tokio::task::spawn_blocking(read).await {
        Ok(read) => read.map_err(|e| LoadError::File(e.to_string())),
        Err(e) => Err(LoadError::File(format!("reading it was stopped: {e}"))),
    }
}
