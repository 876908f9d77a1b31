//! Access keys.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::hash::Sha256;
use crate::clock::Time;

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
