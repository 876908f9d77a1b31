//! What the service keeps: the log of decisions, deployments with their versions, files, keys, and the log of administration.
//!
//! [`Store`] is the contract. Handlers know nothing of SQL, and a store knows nothing of HTTP.

mod codes;
pub mod postgres;
mod queue;
mod record;
mod registry;
mod settings;
pub mod sqlite;
mod url;

use std::pin::Pin;
use std::sync::Arc;

use uuid::Uuid;

use crate::clock::Time;
pub use record::{Appended, Degradation, LogQuery, Outcome, Record, UNDETERMINED, VersionAction};
pub use registry::{
    AdminEntry, Change, ChangeError, Changed, DeploymentId, Key, Mode, NewVersion, Registry, Scope, Sha256,
    StoredDeployment, StoredVersion,
};

pub use settings::Settings;
pub use url::{StoreUrl, StoreUrlError};

/// The result of an operation of a store, later.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Why a store could not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// More decisions wait to be committed than the queue holds.
    #[error("more decisions wait to be committed than the queue holds ({limit} rows)")]
    QueueFull {
        /// The number of rows that may wait.
        limit: usize,
    },
    /// The store cannot be read or written at the moment.
    #[error("the store cannot be used: {0}")]
    Unavailable(String),
    /// A change was refused.
    #[error(transparent)]
    Refused(#[from] ChangeError),
    /// A caller's id was given before, with another query.
    #[error(
        "the id {id:?} was given before with another query: an id names one query, so that sending it again gives the first \
         decision; give this query an id of its own"
    )]
    IdReused {
        /// The place of the record among those that were to be committed together.
        row: usize,
        /// The id.
        id: String,
    },
    /// There is no store at this address.
    #[error("{0}: there is no store; `pointsman serve` makes one")]
    Missing(String),
    /// What is stored contradicts itself.
    #[error("the store is damaged: {0}")]
    Damaged(String),
}

/// A place where the service keeps its state. Several threads and, for some stores, several processes use it at once.
pub trait Store: std::fmt::Debug + Send + Sync {
    /// Commits decisions to the log, all of them or none. A record whose caller has already asked for the same id is not written:
    /// the first decision is returned instead. If that was on another query, nothing is written ([`StoreError::IdReused`]). When the
    /// reply is there, the decisions survive the end of the process.
    ///
    /// Queries are compared if both were decided by the same version, or the first one by one of `alike`, the versions with the same
    /// classes and features.
    fn append_alike(&self, records: Arc<Vec<Record>>, alike: Arc<[u32]>) -> Reply<'_, Vec<Appended>>;

    /// The same where only queries of one version are compared.
    fn append(&self, records: Arc<Vec<Record>>) -> Reply<'_, Vec<Appended>> {
        self.append_alike(records, Arc::default())
    }

    /// The decision of an id.
    fn decision(&self, id: Uuid) -> Reply<'_, Option<Record>>;

    /// A page of decisions in the order of their ids; [`LogQuery::is_full`] says whether there may be more.
    fn decisions(&self, query: LogQuery) -> Reply<'_, Vec<Record>>;

    /// The largest id in the log.
    fn largest_id(&self) -> Reply<'_, Option<Uuid>>;

    /// The number of rows that wait to be committed.
    fn waiting_rows(&self) -> usize;

    /// Everything but the log and the contents of files.
    fn registry(&self) -> Reply<'_, Registry>;

    /// A number that grows with every change of the registry.
    fn generation(&self) -> Reply<'_, u64>;

    /// Waits for a sign that another process has changed the registry; for ever if the store gives no such signs.
    fn changed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    /// Changes the registry and writes the change to the log of administration, both or neither. `by` says who did it. What changes
    /// nothing is not written.
    fn change(&self, change: Change, by: String) -> Reply<'_, Changed>;

    /// Stores a file under its hash; storing it again changes nothing.
    fn add_file(&self, bytes: Vec<u8>) -> Reply<'_, Sha256>;

    /// The file with this hash.
    fn file(&self, hash: Sha256) -> Reply<'_, Option<Vec<u8>>>;

    /// Entries of the log of administration after this number, oldest first.
    fn admin_log(&self, after: u64, limit: usize) -> Reply<'_, Vec<AdminEntry>>;

    /// Deletes decisions before one time and inputs before another, as far as that can be done without touching newer ones.
    fn prune(&self, decisions_before: Option<Time>, inputs_before: Option<Time>) -> Reply<'_, ()>;

    /// Whether decisions can be committed now.
    fn check(&self) -> Reply<'_, ()>;

    /// Commits what waits and closes the store. Later calls fail.
    fn close(&self) -> Reply<'_, ()>;
}
