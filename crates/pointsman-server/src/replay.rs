//! Logged queries decided by another policy.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use pointsman::Policy;
use pointsman::monitor::WhatIf;

use crate::deployment::Names;
use crate::store::{Record, UNDETERMINED};

/// Why logged queries cannot be decided by a policy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ReplayError {
    /// The policy has other classes.
    #[error(
        "version {version} has the classes {logged}, the other policy has {asked}: they must be the same, in any order"
    )]
    Classes { version: u32, logged: String, asked: String },
    /// The policy uses a feature that was not logged.
    #[error(
        "the other policy uses the feature {feature:?}, which version {version} did not, so that it is not in the log"
    )]
    Feature { version: u32, feature: String },
    /// A logged query cannot be decided.
    #[error("decision {id} cannot be decided anew: {reason}")]
    Query { id: uuid::Uuid, reason: String },
}

/// Where the classes and features of a policy stand in the log of a version.
#[derive(Debug)]
struct Columns {
    classes: Vec<usize>,
    features: Vec<usize>,
}

impl Columns {
    fn find(version: u32, names: &Names, policy: &Policy) -> Result<Self, ReplayError> {
        let logged = &names.classes;
        let place = |class: &String| logged.iter().position(|other| other == class);
        let classes: Option<Vec<usize>> = policy.classes().iter().map(place).collect();
        let classes = classes.filter(|classes| classes.len() == logged.len()).ok_or_else(|| ReplayError::Classes {
            version,
            logged: logged.join(", "),
            asked: policy.classes().join(", "),
        })?;
        let feature = |name: &String| {
            let missing = || ReplayError::Feature { version, feature: name.clone() };
            names.features.iter().position(|other| other == name).ok_or_else(missing)
        };
        let features = policy.cells().features().iter().map(feature).collect::<Result<_, _>>()?;
        Ok(Self { classes, features })
    }
}

/// A comparison of logged decisions with those of a policy, page by page.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) policy: Arc<Policy>,
    pub(crate) what_if: WhatIf,
    columns: HashMap<u32, Columns>,
}

impl Replay {
    pub(crate) fn new(policy: Arc<Policy>) -> Self {
        Self { what_if: WhatIf::new(&policy), policy, columns: HashMap::new() }
    }

    /// Adds decisions of versions whose names are given by number.
    ///
    /// # Errors
    /// If a version has other classes, or lacks a feature. Decisions of versions that are not given are passed over.
    pub(crate) fn add(&mut self, records: &[Record], versions: &HashMap<u32, Arc<Names>>) -> Result<(), ReplayError> {
        let mut groups: BTreeMap<u32, Vec<&Record>> = BTreeMap::new();
        for record in records {
            groups.entry(record.version).or_default().push(record);
        }
        for (number, list) in groups {
            if let Some(names) = versions.get(&number) {
                self.add_version(number, names, &list)?;
            }
        }
        Ok(())
    }

    fn add_version(&mut self, version: u32, names: &Names, records: &[&Record]) -> Result<(), ReplayError> {
        if let Entry::Vacant(place) = self.columns.entry(version) {
            place.insert(Columns::find(version, names, &self.policy)?);
        }
        let Columns { classes, features } = &self.columns[&version];
        let (width, depth) = (names.classes.len(), names.features.len());
        let whole = |record: &&&Record| record.prediction.len() == width && record.features.len() == depth;
        let records: Vec<&Record> = records.iter().filter(whole).copied().collect();
        let predictions: Vec<f64> =
            records.iter().flat_map(|record| classes.iter().map(|&place| record.prediction[place])).collect();
        let values: Vec<f64> =
            records.iter().flat_map(|record| features.iter().map(|&place| record.features[place])).collect();
        let mut decisions = self.policy.decide_many(&predictions, &values).map_err(|error| {
            let row = if let pointsman::Error::Value { row, .. } = &error { *row } else { 0 };
            let id = records.get(row).map_or(uuid::Uuid::nil(), |record| record.id);
            ReplayError::Query { id, reason: error.to_string() }
        })?;
        // At the margin of a limit, queries with an id are drawn by it, the others by their content.
        for (row, record) in records.iter().enumerate() {
            if let Some(id) = &record.client_id {
                decisions.draw_by_id(&self.policy, row, id);
            }
        }
        let actions = &names.actions;
        let code = |record: &&Record| {
            let code = record.outcome.decided();
            Some(usize::from(code)).filter(|&code| code != usize::from(UNDETERMINED) && code < actions.len())
        };
        let before: Vec<Option<usize>> = records.iter().map(code).collect();
        self.what_if.add(&self.policy, &decisions, actions, &before);
        Ok(())
    }
}
