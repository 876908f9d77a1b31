//! One decision as it is logged.

use std::collections::HashMap;

use pointsman::Support;
use pointsman::policy::Reason;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::DeploymentId;
use crate::clock::Time;

/// The code of no action: the labels do not determine one.
pub const UNDETERMINED: u8 = u8::MAX;

/// A logged decision. Actions and classes are numbers; their names are those of the policy version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The decision's id, ordered by time.
    pub id: Uuid,
    /// When it was decided.
    pub at: Time,
    /// Where it was decided.
    pub deployment: DeploymentId,
    /// The number of the policy version that decided it.
    pub version: u32,
    /// The number of the key that asked; 0 if none was needed.
    pub key: i64,
    /// The caller's own id of the query. The same deployment, key and id give the same decision again.
    pub client_id: Option<String>,
    /// The caller's tags, a JSON object.
    pub tags: Option<String>,
    /// The query's input as JSON, if the caller sent it.
    pub input: Option<String>,
    /// The weak model's prediction, in the order of the version's classes.
    pub prediction: Vec<f64>,
    /// The features that the version's partition uses, in its order.
    pub features: Vec<f64>,
    /// What was decided.
    pub outcome: Outcome,
}

/// What was decided on a query, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The action that was answered: its place among the task's actions, or [`UNDETERMINED`].
    pub action: u8,
    /// In shadow mode, where predicting is always answered: the action that would have been taken.
    pub would: Option<u8>,
    /// The action that could not be taken, and why.
    pub degraded: Option<(u8, Degradation)>,
    /// The place of the predicted class.
    pub label: u32,
    /// The place of the act of least expected loss, if the loss has acts of its own.
    pub act: Option<u32>,
    /// The query's cell.
    pub cell: u32,
    /// How many calibration rows the cell has.
    pub support: Support,
    /// The irreducible loss, if it is known.
    pub irreducible: Option<f64>,
    /// The reducible loss, if it is known.
    pub reducible: Option<f64>,
    /// The cost of each action, in the task's order; NaN where only bounds are known.
    pub costs: Vec<f64>,
    /// The cost of the runner-up minus that of the action; infinite if there is no other.
    pub margin: f64,
    /// Why.
    pub reason: Reason,
}

impl Record {
    /// The value of a tag.
    fn tag(&self, name: &str) -> Option<String> {
        let mut tags: HashMap<String, String> = serde_json::from_str(self.tags.as_deref()?).ok()?;
        tags.remove(name)
    }

    /// The memory that it takes, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let texts = [&self.client_id, &self.tags, &self.input].into_iter().flatten().map(String::len).sum::<usize>();
        let numbers = self.prediction.len() + self.features.len() + self.outcome.costs.len();
        size_of::<Self>() + texts + numbers * size_of::<f64>()
    }
}

/// Whether an id was given before with another query than now. Where the versions differ in classes or features, nobody can say.
pub(super) fn is_reused(first: &Record, now: &Record, alike: &[u32]) -> bool {
    let is_comparable = first.version == now.version || alike.contains(&first.version);
    let same =
        |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b || a.is_nan() && b.is_nan());
    is_comparable && !(same(&first.prediction, &now.prediction) && same(&first.features, &now.features))
}

impl Outcome {
    /// The action that the policy chose, whether or not it was answered.
    #[must_use]
    pub fn decided(&self) -> u8 {
        self.would.unwrap_or(self.action)
    }
}

/// The caller's own id of a decision, with what makes it unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ClientId<'a> {
    pub(super) deployment: i64,
    pub(super) key: i64,
    pub(super) id: &'a str,
}

impl<'a> ClientId<'a> {
    /// The one of a record, if its caller gave one.
    pub(super) fn of(record: &'a Record) -> Option<Self> {
        let id = record.client_id.as_deref()?;
        Some(Self { deployment: record.deployment.0, key: record.key, id })
    }
}

/// Why the best action could not be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Degradation {
    /// Its oracle is marked as unavailable.
    Unavailable,
    /// The task's limit on routing is used up by queries that gain more.
    Limit,
}

impl Degradation {
    /// Every cause.
    pub const ALL: [Self; 2] = [Self::Unavailable, Self::Limit];

    /// `unavailable` or `limit`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Limit => "limit",
        }
    }
}

/// What the store did with a record.
#[derive(Debug, Clone, PartialEq)]
pub enum Appended {
    /// It was committed.
    Committed,
    /// The same caller has already asked for this id: the first decision.
    Existing(Box<Record>),
}

/// An action of a version: its place among the actions of the version's task, or [`UNDETERMINED`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionAction {
    /// The number of the version.
    pub version: u32,
    /// The action.
    pub action: u8,
}

/// Which decisions of the log to read. A store applies all conditions itself, so that a page is full if enough decisions meet them.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LogQuery {
    /// The deployment.
    pub deployment: DeploymentId,
    /// Decisions from this time on.
    pub from: Option<Time>,
    /// Decisions before this time.
    pub to: Option<Time>,
    /// Decisions after this one.
    pub after: Option<Uuid>,
    /// Decisions before this id.
    pub before: Option<Uuid>,
    /// Decisions of this version.
    pub version: Option<u32>,
    /// Decisions that were answered with one of these actions.
    pub actions: Option<Vec<VersionAction>>,
    /// Decisions whose cell is this one.
    pub cell: Option<u32>,
    /// Decisions with this tag.
    pub tag: Option<(String, String)>,
    /// Whether the inputs are read too; without them, [`Record::input`] is `None`.
    pub with_inputs: bool,
    /// At most this many.
    pub limit: usize,
    /// The page ends with the record that makes it this large, in bytes, since inputs may be large.
    pub max_bytes: usize,
}

impl LogQuery {
    /// The size at which a page ends unless another one is given, in bytes.
    const MAX_BYTES: usize = 32 << 20;

    /// All decisions of a deployment, this many at a time.
    #[must_use]
    pub fn all(deployment: DeploymentId, limit: usize) -> Self {
        Self {
            deployment,
            from: None,
            to: None,
            after: None,
            before: None,
            version: None,
            actions: None,
            cell: None,
            tag: None,
            with_inputs: true,
            limit,
            max_bytes: Self::MAX_BYTES,
        }
    }

    /// The first id that may be read, and the first that may not.
    #[must_use]
    pub fn ids(&self) -> (Uuid, Option<Uuid>) {
        let from = self.from.map_or(Uuid::nil(), Time::first_id);
        let next = self.after.map_or(Uuid::nil(), |id| Uuid::from_u128(id.as_u128().saturating_add(1)));
        (from.max(next), self.to.map(Time::first_id).into_iter().chain(self.before).min())
    }

    /// Whether a decision meets the conditions.
    pub(super) fn contains(&self, record: &Record) -> bool {
        let (first, end) = self.ids();
        let Record { id, deployment, version, ref outcome, .. } = *record;
        let answered = VersionAction { version, action: outcome.action };
        id >= first
            && end.is_none_or(|end| id < end)
            && deployment == self.deployment
            && self.version.is_none_or(|wanted| version == wanted)
            && self.cell.is_none_or(|wanted| outcome.cell == wanted)
            && self.actions.as_ref().is_none_or(|wanted| wanted.contains(&answered))
            && self.tag.as_ref().is_none_or(|(name, value)| record.tag(name).is_some_and(|tag| tag == *value))
    }

    /// Whether a page has as many records as it may have. Otherwise there are no more that meet the conditions.
    #[must_use]
    pub fn is_full(&self, page: &[Record]) -> bool {
        self.full_length(page).is_some()
    }

    /// The length of the shortest full page that these records begin with.
    pub(super) fn full_length(&self, records: &[Record]) -> Option<usize> {
        let mut bytes = 0;
        let place = records.iter().enumerate().position(|(place, record)| {
            bytes += record.bytes();
            place + 1 >= self.limit || bytes >= self.max_bytes
        });
        place.map(|place| place + 1)
    }
}
