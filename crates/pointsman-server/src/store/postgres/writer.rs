//! The task that writes the log: it commits whatever waits in one statement, then wakes those who wait for it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use tokio_postgres::Statement;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use super::super::queue::{self, Append, Waiting};
use super::super::record::ClientId;
use super::super::{Appended, Record, Settings, StoreError};
use super::connection::{Connector, Session, unavailable};
use super::rows::{self, Columns};
use super::schema::{Day, make_partitions};

/// How long a commit may take before the connection is given up.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long nobody tries to connect after it has failed: requests of that time are refused at once.
const RETRY: Duration = Duration::from_millis(200);

/// How often an id is tried again whose first decision expired in the same moment.
const MAX_ATTEMPTS: usize = 3;

/// The connection that writes, with its prepared statements.
struct Link {
    session: Session,
    append: Statement,
    find: Statement,
    /// Days whose partitions are known to be there.
    days: BTreeSet<Day>,
    /// Whether the server has become one that takes no writes, so that another one must be found.
    is_read_only: bool,
}

/// The writing task's own state.
pub(super) struct Writer {
    connector: Connector,
    settings: Settings,
    link: Option<Link>,
    /// The last failure to connect.
    failure: Option<(Instant, StoreError)>,
    is_failing: bool,
}

impl Writer {
    /// A writer that is connected.
    pub(super) async fn open(connector: Connector, settings: Settings) -> Result<Self, StoreError> {
        let mut writer = Self { connector, settings, link: None, failure: None, is_failing: false };
        writer.link = Some(writer.connect().await?);
        Ok(writer)
    }

    /// Commits until there is nobody left who could ask for it.
    pub(super) async fn run(mut self, mut queue: Waiting) {
        while let Some(batch) = queue.next_batch().await {
            let start = Instant::now();
            let outcome = self.commit(&batch).await;
            (self.settings.observe_commit)(start.elapsed());
            match &outcome {
                Err(error) if !self.is_failing => tracing::error!(%error, "decisions cannot be committed"),
                Ok(_) if self.is_failing => tracing::info!("decisions are committed again"),
                _ => {}
            }
            self.is_failing = outcome.is_err();
            queue::reply(batch, outcome);
        }
    }

    async fn connect(&self) -> Result<Link, StoreError> {
        let level = if self.settings.is_durable { "on" } else { "off" };
        let session = self.connector.connect(&format!("SET synchronous_commit = {level}"), None).await?;
        let prepare = async {
            let (append, find) = (session.prepare(rows::APPEND).await?, session.prepare(rows::FIND_CLIENT_IDS).await?);
            Ok((append, find))
        };
        let (append, find) = prepare.await.map_err(|e: tokio_postgres::Error| unavailable(&e))?;
        Ok(Link { session, append, find, days: BTreeSet::new(), is_read_only: false })
    }

    /// The connection, made again if it broke.
    async fn link(&mut self) -> Result<&mut Link, StoreError> {
        if self.link.as_ref().is_none_or(|link| link.session.is_closed() || link.is_read_only) {
            self.link = None;
            if let Some((when, error)) = &self.failure
                && when.elapsed() < RETRY
            {
                return Err(error.clone());
            }
            match self.connect().await {
                Ok(link) => self.link = Some(link),
                Err(error) => {
                    self.failure = Some((Instant::now(), error.clone()));
                    return Err(error);
                }
            }
        }
        self.link.as_mut().ok_or_else(|| StoreError::Unavailable("PostgreSQL: no connection".to_owned()))
    }

    async fn commit(&mut self, batch: &[Append]) -> Result<Vec<Vec<Appended>>, StoreError> {
        let link = self.link().await?;
        match tokio::time::timeout(COMMIT_TIMEOUT, link.commit(batch)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                self.link = None;
                let seconds = COMMIT_TIMEOUT.as_secs();
                Err(StoreError::Unavailable(format!("PostgreSQL: no commit within {seconds} s")))
            }
        }
    }
}

impl Link {
    async fn commit(&mut self, batch: &[Append]) -> Result<Vec<Vec<Appended>>, StoreError> {
        let records: Vec<&Record> = batch.iter().flat_map(|append| append.records.iter()).collect();
        let mut earlier: HashMap<Uuid, Record> = HashMap::new();
        let mut rest = records;
        for attempt in 0.. {
            let taken = self.append(&rest).await?;
            let refused: Vec<&Record> = rest
                .iter()
                .copied()
                .filter(|record| record.client_id.is_some() && !taken.contains(&record.id))
                .collect();
            rest = self.find_earlier(refused, &mut earlier).await?;
            if rest.is_empty() {
                break;
            }
            if attempt + 1 == MAX_ATTEMPTS {
                return Err(StoreError::Damaged("an id of a caller has no decision".to_owned()));
            }
        }
        let outcome = |record: &Record| match earlier.remove(&record.id) {
            Some(first) => Appended::Existing(Box::new(first)),
            None => Appended::Committed,
        };
        let mut outcome = outcome;
        Ok(batch.iter().map(|append| append.records.iter().map(&mut outcome).collect()).collect())
    }

    /// Commits records, and returns the decisions whose caller's id is new.
    async fn append(&mut self, records: &[&Record]) -> Result<HashSet<Uuid>, StoreError> {
        let days: BTreeSet<Day> = records.iter().map(|record| Day::of_id(record.id)).collect();
        let columns = Columns::new(records);
        self.make_partitions(&days).await?;
        let mut outcome = self.session.query(&self.append, &columns.parameters()).await;
        // Another replica has dropped a partition: it is made again.
        if outcome.as_ref().is_err_and(|error| error.code() == Some(&SqlState::CHECK_VIOLATION)) {
            self.days.clear();
            self.make_partitions(&days).await?;
            outcome = self.session.query(&self.append, &columns.parameters()).await;
        }
        let code = outcome.as_ref().err().and_then(|error| error.code());
        self.is_read_only = code == Some(&SqlState::READ_ONLY_SQL_TRANSACTION);
        let taken = outcome.map_err(|e| unavailable(&e))?;
        taken.iter().map(|row| rows::get(row, 0)).collect()
    }

    async fn make_partitions(&mut self, days: &BTreeSet<Day>) -> Result<(), StoreError> {
        if !days.is_subset(&self.days) {
            make_partitions(&mut self.session, days).await.map_err(|e| unavailable(&e))?;
            self.days.extend(days);
        }
        Ok(())
    }

    /// Notes the first decision on each id of a caller, and returns the records whose first decision has expired meanwhile.
    async fn find_earlier<'a>(
        &self,
        refused: Vec<&'a Record>,
        earlier: &mut HashMap<Uuid, Record>,
    ) -> Result<Vec<&'a Record>, StoreError> {
        if refused.is_empty() {
            return Ok(refused);
        }
        let distinct: HashSet<ClientId<'_>> = refused.iter().filter_map(|record| ClientId::of(record)).collect();
        let distinct: Vec<ClientId<'_>> = distinct.into_iter().collect();
        let (deployments, keys, ids) = rows::client_id_columns(&distinct);
        let found = self.session.query(&self.find, &[&deployments, &keys, &ids]).await.map_err(|e| unavailable(&e))?;
        let found = found.iter().map(rows::read).collect::<Result<Vec<Record>, _>>()?;
        let first: HashMap<ClientId<'_>, &Record> =
            found.iter().filter_map(|record| Some((ClientId::of(record)?, record))).collect();
        let mut expired = Vec::new();
        for record in refused {
            match ClientId::of(record).and_then(|id| first.get(&id)) {
                Some(first) => {
                    earlier.insert(record.id, Record::clone(first));
                }
                None => expired.push(record),
            }
        }
        Ok(expired)
    }
}
