//! A store in PostgreSQL, which several processes use at once.
//!
//! Each process commits whatever waits in one statement. The registry is one document that is replaced only if nobody else has replaced
//! it since it was read, and a notification tells the other processes that it was.

mod connection;
mod page;
mod rows;
mod schema;
mod tls;
mod url;
mod writer;

use std::ops::Deref;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::queue::Queue;
use super::{
    AdminEntry, Appended, Change, Changed, LogQuery, Record, Registry, Reply, Settings, Sha256, Store, StoreError,
};
use crate::clock::Time;
use connection::{Connector, Pool, unavailable};
pub use url::PostgresUrl;
use writer::Writer;

/// How long the listening task waits before it connects again.
const RECONNECT: Duration = Duration::from_millis(500);

/// How often a change of the registry is tried again that another process came before.
const MAX_SWAPS: usize = 100;

/// Replaces the registry if it is still the one that was read, and logs and announces the change.
const SWAP: &str = "
WITH swapped AS (
    UPDATE pointsman.registry SET generation = $1, document = $2 WHERE generation = $3 RETURNING generation
), logged AS (
    INSERT INTO pointsman.admin_log (at, by, what) SELECT $4, $5, $6 FROM swapped
)
SELECT pg_notify('pointsman_registry', '') FROM swapped";

/// A store in PostgreSQL.
#[derive(Debug)]
pub struct PostgresStore {
    pool: Pool,
    queue: Arc<Queue>,
    /// Wakes the task that writes.
    wake_writer: Arc<Notify>,
    /// Told when another process has changed the registry.
    changes: Arc<Notify>,
    writer: Mutex<Option<JoinHandle<()>>>,
    listener: JoinHandle<()>,
}

type Typed<'a> = (&'a (dyn ToSql + Sync), Type);

impl PostgresStore {
    /// Connects to a database and makes its tables, or brings them to the present version.
    ///
    /// # Errors
    /// If there is no connection, or the tables are of a newer version.
    pub async fn open(url: &PostgresUrl, settings: Settings) -> Result<Self, StoreError> {
        let connector = Connector::new(url)?;
        let mut session = connector.reader().await?;
        schema::migrate(&mut session).await?;
        schema::make_partitions(&mut session, &schema::next_days()).await.map_err(|e| unavailable(&e))?;
        let queue = Arc::new(Queue::new(settings.queue_rows));
        let writer = Writer::open(connector.clone(), settings).await?;
        let changes = Arc::new(Notify::new());
        let listener = tokio::spawn(listen(connector.clone(), Arc::clone(&changes)));
        let wake_writer = Arc::new(Notify::new());
        let writer = tokio::spawn(writer.run(Arc::clone(&queue), Arc::clone(&wake_writer)));
        let (pool, writer) = (Pool::new(connector), Mutex::new(Some(writer)));
        Ok(Self { pool, queue, wake_writer, changes, writer, listener })
    }

    async fn rows(&self, sql: &str, parameters: &[Typed<'_>]) -> Result<Vec<Row>, StoreError> {
        let mut reader = self.pool.get().await?;
        let found = reader.client().query_typed(sql, parameters).await.map_err(|e| unavailable(&e));
        reader.finish(found)
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.queue.close();
        self.wake_writer.notify_one();
        self.listener.abort();
    }
}

/// Listens for changes of the registry, and connects again when the connection breaks. A new connection also wakes whoever waits,
/// since something may have changed meanwhile.
async fn listen(connector: Connector, changes: Arc<Notify>) {
    let tell = {
        let changes = Arc::clone(&changes);
        Arc::new(move || changes.notify_one())
    };
    loop {
        match connector.connect("LISTEN pointsman_registry", Some(tell.clone())).await {
            Ok(mut session) => {
                changes.notify_one();
                session.ended().await;
            }
            Err(error) => tracing::debug!(%error, "no connection to hear of changes; they are polled"),
        }
        tokio::time::sleep(RECONNECT).await;
    }
}

async fn read_registry(client: &Client) -> Result<Registry, StoreError> {
    let found =
        client.query_typed("SELECT document FROM pointsman.registry", &[]).await.map_err(|e| unavailable(&e))?;
    let text: &str = found.first().map(|row| rows::get(row, 0)).transpose()?.unwrap_or_default();
    if text.is_empty() {
        return Ok(Registry::default());
    }
    serde_json::from_str(text).map_err(|e| StoreError::Damaged(format!("the registry: {e}")))
}

async fn change_registry(client: &Client, change: Change, by: &str) -> Result<Changed, StoreError> {
    for _ in 0..MAX_SWAPS {
        let mut registry = read_registry(client).await?;
        let (now, before) = (Time::now(), registry.generation.cast_signed());
        let changed = registry.apply(change.clone(), now)?;
        if !changed.is_changed {
            return Ok(changed);
        }
        let what = change.describe(&changed);
        let document = serde_json::to_string(&registry).map_err(|e| StoreError::Damaged(e.to_string()))?;
        let parameters: [Typed<'_>; 6] = [
            (&registry.generation.cast_signed(), Type::INT8),
            (&document, Type::TEXT),
            (&before, Type::INT8),
            (&now.0, Type::INT8),
            (&by, Type::TEXT),
            (&what, Type::TEXT),
        ];
        let swapped = client.query_typed(SWAP, &parameters).await.map_err(|e| unavailable(&e))?;
        if !swapped.is_empty() {
            return Ok(changed);
        }
    }
    Err(StoreError::Unavailable("others change the registry all the time: try again".to_owned()))
}

/// Whether a database has the tables of a store.
///
/// # Errors
/// If there is no connection.
pub(super) async fn exists_at(url: &PostgresUrl) -> Result<bool, StoreError> {
    let session = Connector::new(url)?.reader().await?;
    schema::is_there(&session).await.map_err(|e| unavailable(&e))
}

/// Makes the tables of a store, unless they are there.
///
/// # Errors
/// If there is no connection, or the tables are of a newer version.
pub(super) async fn make_at(url: &PostgresUrl) -> Result<(), StoreError> {
    let mut session = Connector::new(url)?.reader().await?;
    schema::migrate(&mut session).await
}

/// A connection to a database that has the tables of a store, in the present version.
async fn connect_to_existing(url: &PostgresUrl) -> Result<impl Deref<Target = Client>, StoreError> {
    let mut session = Connector::new(url)?.reader().await?;
    if !schema::is_there(&session).await.map_err(|e| unavailable(&e))? {
        return Err(StoreError::Missing(url.to_string()));
    }
    schema::migrate(&mut session).await?;
    Ok(session)
}

/// Reads the registry of a database, also while services use it.
///
/// # Errors
/// If there is no connection, or no store.
pub(super) async fn registry_at(url: &PostgresUrl) -> Result<Registry, StoreError> {
    read_registry(&*connect_to_existing(url).await?).await
}

/// Changes the registry of a database, also while services use it.
///
/// # Errors
/// If there is no connection or no store, or the change is refused.
pub(super) async fn change_at(url: &PostgresUrl, change: Change, by: &str) -> Result<Changed, StoreError> {
    change_registry(&*connect_to_existing(url).await?, change, by).await
}

impl Store for PostgresStore {
    fn append_alike(&self, records: Arc<Vec<Record>>, alike: Arc<[u32]>) -> Reply<'_, Vec<Appended>> {
        Box::pin(self.queue.append(records, alike, || self.wake_writer.notify_one()))
    }

    fn decision(&self, id: Uuid) -> Reply<'_, Option<Record>> {
        Box::pin(async move {
            let sql = format!("{} WHERE decisions.id = $1", rows::SELECT);
            let found = self.rows(&sql, &[(&id, Type::UUID)]).await?;
            found.first().map(rows::read).transpose()
        })
    }

    fn decisions(&self, query: LogQuery) -> Reply<'_, Vec<Record>> {
        Box::pin(async move {
            let mut reader = self.pool.get().await?;
            let page = page::read(reader.client(), query).await;
            reader.finish(page)
        })
    }

    fn largest_id(&self) -> Reply<'_, Option<Uuid>> {
        Box::pin(async move {
            let found = self.rows("SELECT id FROM pointsman.decisions ORDER BY id DESC LIMIT 1", &[]).await?;
            found.first().map(|row| rows::get(row, 0)).transpose()
        })
    }

    fn waiting_rows(&self) -> usize {
        self.queue.rows()
    }

    fn registry(&self) -> Reply<'_, Registry> {
        Box::pin(async move {
            let mut reader = self.pool.get().await?;
            let registry = read_registry(reader.client()).await;
            reader.finish(registry)
        })
    }

    fn generation(&self) -> Reply<'_, u64> {
        Box::pin(async move {
            let found = self.rows("SELECT generation FROM pointsman.registry", &[]).await?;
            let generation: Option<i64> = found.first().map(|row| rows::get(row, 0)).transpose()?;
            Ok(generation.map_or(0, i64::cast_unsigned))
        })
    }

    fn changed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.changes.notified())
    }

    fn change(&self, change: Change, by: String) -> Reply<'_, Changed> {
        Box::pin(async move {
            let mut reader = self.pool.get().await?;
            let changed = change_registry(reader.client(), change, &by).await;
            reader.finish(changed)
        })
    }

    fn add_file(&self, bytes: Vec<u8>) -> Reply<'_, Sha256> {
        Box::pin(async move {
            let hash = Sha256::of(&bytes);
            let sql = "INSERT INTO pointsman.files VALUES ($1, $2) ON CONFLICT DO NOTHING";
            self.rows(sql, &[(&hash.0.as_slice(), Type::BYTEA), (&bytes, Type::BYTEA)]).await?;
            Ok(hash)
        })
    }

    fn file(&self, hash: Sha256) -> Reply<'_, Option<Vec<u8>>> {
        Box::pin(async move {
            let sql = "SELECT bytes FROM pointsman.files WHERE sha256 = $1";
            let found = self.rows(sql, &[(&hash.0.as_slice(), Type::BYTEA)]).await?;
            found.first().map(|row| rows::get(row, 0)).transpose()
        })
    }

    fn admin_log(&self, after: u64, limit: usize) -> Reply<'_, Vec<AdminEntry>> {
        Box::pin(async move {
            let sql = "SELECT number, at, by, what FROM pointsman.admin_log WHERE number > $1 ORDER BY number LIMIT $2";
            let (after, limit) = (i64::try_from(after).unwrap_or(i64::MAX), i64::try_from(limit).unwrap_or(i64::MAX));
            let found = self.rows(sql, &[(&after, Type::INT8), (&limit, Type::INT8)]).await?;
            let entry = |row: &Row| {
                let number = rows::get::<i64>(row, 0)?.cast_unsigned();
                Ok(AdminEntry { number, at: rows::get(row, 1)?, by: rows::get(row, 2)?, what: rows::get(row, 3)? })
            };
            found.iter().map(entry).collect()
        })
    }

    fn prune(&self, decisions_before: Option<Time>, inputs_before: Option<Time>) -> Reply<'_, ()> {
        Box::pin(async move {
            let mut reader = self.pool.get().await?;
            let client = reader.client();
            schema::make_partitions(client, &schema::next_days()).await.map_err(|e| unavailable(&e))?;
            let dropped = schema::drop_partitions(client, decisions_before, inputs_before).await;
            reader.finish(dropped.map_err(|e| unavailable(&e)))
        })
    }

    fn check(&self) -> Reply<'_, ()> {
        // Without rows, the statement still needs a connection to a server that takes writes.
        let waiting = self.append(Arc::default());
        Box::pin(async move { waiting.await.map(drop) })
    }

    fn close(&self) -> Reply<'_, ()> {
        self.queue.close();
        self.wake_writer.notify_one();
        self.listener.abort();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        Box::pin(async move {
            if let Some(writer) = writer {
                writer
                    .await
                    .map_err(|_| StoreError::Unavailable("the task that writes the log panicked".to_owned()))?;
            }
            self.pool.close();
            Ok(())
        })
    }
}
