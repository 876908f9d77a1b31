//! Connections to the database, made again when they break.

use std::fmt;
use std::future::poll_fn;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls};

use super::super::StoreError;
use super::tls::Tls;
use super::url::{PostgresUrl, TlsMode};

/// The most connections that readers share.
const MAX_READERS: usize = 8;

/// How long making a connection may take in all.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// What every connection but the one that writes the log starts with: changes of the registry wait for the disk, and no query of a
/// caller that has gone runs for ever.
const READER_SETTINGS: &str = "SET synchronous_commit = on; SET statement_timeout = '60s'";

/// An error of PostgreSQL as an error of the store: the message with its causes.
pub(super) fn unavailable(error: &tokio_postgres::Error) -> StoreError {
    let mut text = match error.as_db_error() {
        Some(error) => error.message().to_owned(),
        None => error.to_string(),
    };
    let mut cause = std::error::Error::source(error).filter(|_| error.as_db_error().is_none());
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    StoreError::Unavailable(format!("PostgreSQL: {text}"))
}

/// What to do when the server sends a notification.
pub(super) type OnNotification = Arc<dyn Fn() + Send + Sync>;

/// A connection, and the task that carries its bytes.
pub(super) struct Session {
    client: Client,
    carrier: JoinHandle<()>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.carrier.abort();
    }
}

impl Deref for Session {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

impl Session {
    /// Waits until the connection breaks.
    pub(super) async fn ended(&mut self) {
        let _ = (&mut self.carrier).await;
    }
}

/// Carries the bytes of a connection until it ends.
async fn carry<S, T>(mut connection: Connection<S, T>, on_notification: Option<OnNotification>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        match poll_fn(|cx| connection.poll_message(cx)).await {
            Some(Ok(AsyncMessage::Notification(_))) => {
                if let Some(tell) = &on_notification {
                    tell();
                }
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(%error, "a connection to PostgreSQL ended");
                return;
            }
            None => return,
        }
    }
}

/// Makes connections to one database.
#[derive(Clone)]
pub(super) struct Connector {
    config: tokio_postgres::Config,
    tls: Option<Tls>,
}

impl Connector {
    pub(super) fn new(url: &PostgresUrl) -> Result<Self, StoreError> {
        let tls = match &url.tls {
            TlsMode::Off => None,
            TlsMode::Verified { authorities } => {
                Some(Tls::new(authorities.as_deref()).map_err(StoreError::Unavailable)?)
            }
        };
        Ok(Self { config: url.config.clone(), tls })
    }

    /// A new connection that has run these commands.
    pub(super) async fn connect(
        &self,
        commands: &str,
        on_notification: Option<OnNotification>,
    ) -> Result<Session, StoreError> {
        let connect = async {
            let session = match &self.tls {
                None => {
                    let (client, connection) = self.config.connect(NoTls).await?;
                    Session { client, carrier: tokio::spawn(carry(connection, on_notification)) }
                }
                Some(tls) => {
                    let (client, connection) = self.config.connect(tls.clone()).await?;
                    Session { client, carrier: tokio::spawn(carry(connection, on_notification)) }
                }
            };
            session.batch_execute(commands).await?;
            Ok(session)
        };
        match tokio::time::timeout(SESSION_TIMEOUT, connect).await {
            Ok(connected) => connected.map_err(|e: tokio_postgres::Error| unavailable(&e)),
            Err(_) => {
                let seconds = SESSION_TIMEOUT.as_secs();
                Err(StoreError::Unavailable(format!("PostgreSQL: no connection within {seconds} s")))
            }
        }
    }

    /// A new connection for readers.
    pub(super) async fn reader(&self) -> Result<Session, StoreError> {
        self.connect(READER_SETTINGS, None).await
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

/// Connections that readers share: made when needed, kept while they work.
pub(super) struct Pool {
    connector: Connector,
    idle: Mutex<Vec<Session>>,
    permits: Semaphore,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("free", &self.permits.available_permits()).finish_non_exhaustive()
    }
}

impl Pool {
    pub(super) fn new(connector: Connector) -> Self {
        Self { connector, idle: Mutex::default(), permits: Semaphore::new(MAX_READERS) }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Session>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that is free, or a new one.
    pub(super) async fn get(&self) -> Result<Reader<'_>, StoreError> {
        let closed = |_| StoreError::Unavailable("it is closed".to_owned());
        let permit = self.permits.acquire().await.map_err(closed)?;
        let kept = {
            let mut idle = self.idle();
            idle.retain(|session| !session.is_closed());
            idle.pop()
        };
        let session = match kept {
            Some(session) => session,
            None => self.connector.reader().await?,
        };
        Ok(Reader { pool: self, session, _permit: permit })
    }

    /// Ends all connections; later calls fail.
    pub(super) fn close(&self) {
        self.permits.close();
        self.idle().clear();
    }
}

/// A connection of the pool. It goes back by [`Reader::finish`]; otherwise, as after a failure or if the caller has gone, it is closed.
pub(super) struct Reader<'a> {
    pool: &'a Pool,
    session: Session,
    _permit: SemaphorePermit<'a>,
}

impl Reader<'_> {
    /// The connection.
    pub(super) fn client(&mut self) -> &mut Client {
        &mut self.session
    }

    /// Gives the connection back if the work with it succeeded.
    pub(super) fn finish<T>(self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        if outcome.is_ok() && !self.session.is_closed() && !self.pool.permits.is_closed() {
            self.pool.idle().push(self.session);
        }
        outcome
    }
}
