//! Deployments and their versions.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::hash::Sha256;
use crate::clock::Time;

/// The number of a deployment in a store. It is never used again, even if the deployment is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DeploymentId(pub i64);

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
