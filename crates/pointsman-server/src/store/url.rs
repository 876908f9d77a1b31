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
    /// The path is empty.
    #[error("sqlite: without a path keeps nothing: give one, as in sqlite:pointsman.db")]
    NoPath,
    /// The path is something that SQLite takes for another thing than a file.
    #[error(
        "{0:?} is not the path of a file: give one, as in sqlite:pointsman.db or sqlite:/var/lib/pointsman/pointsman.db"
    )]
    NotAFile(String),
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

    /// Whether there is a store.
    ///
    /// # Errors
    /// If there is no connection.
    pub async fn exists(&self) -> Result<bool, StoreError> {
        match self {
            Self::Sqlite(path) => Ok(std::path::Path::new(path).exists()),
            Self::Postgres(url) => postgres::exists_at(url).await,
        }
    }

    /// Makes an empty store, unless there is one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub async fn make(&self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(path) => sqlite::make_at(path),
            Self::Postgres(url) => postgres::make_at(url).await,
        }
    }

    /// Reads the registry, also while services use the store.
    ///
    /// # Errors
    /// If there is no store, or it cannot be read.
    pub async fn registry(&self) -> Result<Registry, StoreError> {
        match self {
            Self::Sqlite(path) => sqlite::registry_at(path),
            Self::Postgres(url) => postgres::registry_at(url).await,
        }
    }

    /// Changes the registry, also while services use the store, which then follow within a second.
    ///
    /// # Errors
    /// If there is no store, it cannot be written or the change is refused.
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
            // Others write three slashes before an absolute path; with two, SQLite would put the file into the root folder.
            let path = if path.starts_with("///") { &path[2..] } else { path };
            return match path {
                "" => Err(StoreUrlError::NoPath),
                _ if path.starts_with("//") || path.starts_with("file:") || path.starts_with(':') => {
                    Err(StoreUrlError::NotAFile(path.to_owned()))
                }
                _ if path.ends_with('/') => Err(StoreUrlError::NotAFile(path.to_owned())),
                _ => Ok(Self::Sqlite(path.to_owned())),
            };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_are_no_files_are_refused() {
        for good in ["sqlite:pointsman.db", "sqlite:/var/lib/p.db", "sqlite:./p.db"] {
            assert_eq!(good.parse::<StoreUrl>().unwrap().to_string(), good);
        }
        assert_eq!("sqlite:///var/p.db".parse(), Ok(StoreUrl::Sqlite("/var/p.db".to_owned())));
        assert_eq!("sqlite:".parse::<StoreUrl>(), Err(StoreUrlError::NoPath));
        for bad in ["sqlite://p.db", "sqlite::memory:", "sqlite:file:p.db?mode=memory", "sqlite:folder/"] {
            assert!(matches!(bad.parse::<StoreUrl>(), Err(StoreUrlError::NotAFile(_))), "{bad}");
        }
    }
}
