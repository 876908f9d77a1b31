//! The address of a store, and what can be done with it without running a service.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::Deserialize;

use super::postgres::{self, PostgresStore, PostgresUrl};
use super::sqlite::{self, SqliteStore};
use super::{Change, Changed, Registry, Settings, Store, StoreError};

/// The address of a store: `sqlite:` and a path, or `postgres://user:password@host/database`.
///
/// Whoever shows it shows no password.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
#[non_exhaustive]
pub enum StoreUrl {
    /// The path of a file.
    Sqlite(String),
    /// A database of a PostgreSQL server.
    Postgres(Box<PostgresUrl>),
}

/// Why a text is not the address of a store. The text is not shown, since it may contain a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreUrlError {
    /// It is of another kind.
    #[error("not an address of a store: give sqlite: and a path, or postgres://user:password@host:5432/database")]
    Kind,
    /// It is not an address of PostgreSQL.
    #[error("not an address of PostgreSQL: {0}")]
    Postgres(String),
}

impl StoreUrl {
    /// Opens the store, or makes it if there is none.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub async fn open(&self, settings: Settings) -> Result<Arc<dyn Store>, StoreError> {
        Ok(match self {
            Self::Sqlite(path) => Arc::new(SqliteStore::open(path, settings)?),
            Self::Postgres(url) => Arc::new(PostgresStore::open(url, settings).await?),
        })
    }

    /// Reads the registry, also while services use the store.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn registry(&self) -> Result<Registry, StoreError> {
        match self {
            Self::Sqlite(path) => sqlite::registry_at(path),
            Self::Postgres(url) => postgres::registry_at(url).await,
        }
    }

    /// Changes the registry, also while services use the store, which then follow within a second.
    ///
    /// # Errors
    /// If it cannot be written or the change is refused.
    pub async fn change(&self, change: Change, by: &str) -> Result<Changed, StoreError> {
        match self {
            Self::Sqlite(path) => sqlite::change_at(path, change, by),
            Self::Postgres(url) => postgres::change_at(url, change, by).await,
        }
    }
}

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<Self, StoreUrlError> {
        if let Some(path) = text.strip_prefix("sqlite:") {
            return Ok(Self::Sqlite(path.to_owned()));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            let url = text.parse().map_err(StoreUrlError::Postgres)?;
            return Ok(Self::Postgres(Box::new(url)));
        }
        Err(StoreUrlError::Kind)
    }
}

impl TryFrom<String> for StoreUrl {
    type Error = StoreUrlError;

    fn try_from(text: String) -> Result<Self, StoreUrlError> {
        text.parse()
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{path}"),
            Self::Postgres(url) => url.fmt(f),
        }
    }
}
