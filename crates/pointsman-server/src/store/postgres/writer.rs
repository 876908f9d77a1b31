//! The task that writes the log: it commits whatever waits in one statement, then wakes those who wait for it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio_postgres::error::SqlState;
use tokio_postgres::{GenericClient, Row, Statement};
use uuid::Uuid;

use super::super::queue::{self, Append, FailureLog, Outcomes, Queue};
use super::super::record::{ClientId, is_reused};
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
    failures: FailureLog,
}

impl Writer {
    /// A writer that is connected.
    pub(super) async fn open(connector: Connector, settings: Settings) -> Result<Self, StoreError> {
        let mut writer = Self { connector, settings, link: None, failure: None, failures: FailureLog::default() };
        writer.link = Some(writer.connect().await?);
        Ok(writer)
    }

    /// Commits until the queue is closed and empty. `wake` tells that something waits, or that the queue was closed.
    pub(super) async fn run(mut self, queue: Arc<Queue>, wake: Arc<Notify>) {
        let _guard = queue.close_on_panic();
        loop {
            let Some(batch) = queue.next_batch() else {
                if queue.is_closed() {
                    return;
                }
                wake.notified().await;
                continue;
            };
            let start = Instant::now();
            let outcome = self.commit(&batch).await;
            (self.settings.observe_commit)(start.elapsed());
            self.failures.note(&outcome);
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

    async fn commit(&mut self, batch: &[Append]) -> Result<Outcomes, StoreError> {
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
    async fn commit(&mut self, batch: &[Append]) -> Result<Outcomes, StoreError> {
        let has_ids = |append: &Append| append.records.iter().any(|record| record.client_id.is_some());
        if batch.iter().any(|append| append.records.len() > 1 && has_ids(append)) {
            self.commit_reversibly(batch).await
        } else {
            self.commit_at_once(batch).await
        }
    }

    /// Commits requests of one row each, or without ids: a row whose id was given before is not written, and no other depends on it.
    async fn commit_at_once(&mut self, batch: &[Append]) -> Result<Outcomes, StoreError> {
        let mut earlier: HashMap<Uuid, Record> = HashMap::new();
        let mut rest: Vec<&Record> = batch.iter().flat_map(|append| append.records.iter()).collect();
        for attempt in 0.. {
            let taken = self.append(&rest).await?;
            let expired = find_earlier(&*self.session, &self.find, refused(&rest, &taken), &mut earlier).await?;
            rest = expired;
            if rest.is_empty() {
                break;
            }
            if attempt + 1 == MAX_ATTEMPTS {
                return Err(no_decision());
            }
        }
        Ok(batch.iter().map(|append| outcome(append, &earlier)).collect())
    }

    /// Commits requests of several rows with ids. If an id was given before with another query, all rows of its request are taken back,
    /// and the other requests are committed without it.
    async fn commit_reversibly(&mut self, batch: &[Append]) -> Result<Outcomes, StoreError> {
        let mut refusals: HashMap<usize, StoreError> = HashMap::new();
        let mut attempts = 0;
        loop {
            let open: Vec<(usize, &Append)> =
                batch.iter().enumerate().filter(|(place, _)| !refusals.contains_key(place)).collect();
            let records: Vec<&Record> = open.iter().flat_map(|(_, append)| append.records.iter()).collect();
            let days: BTreeSet<Day> = records.iter().map(|record| Day::of_id(record.id)).collect();
            let columns = Columns::new(&records);
            self.make_partitions(&days).await?;
            attempts += 1;
            let transaction = self.session.transaction().await.map_err(|e| unavailable(&e))?;
            let written = transaction.query(&self.append, &columns.parameters()).await;
            let code = written.as_ref().err().and_then(|error| error.code());
            if code == Some(&SqlState::CHECK_VIOLATION) && attempts < MAX_ATTEMPTS {
                // Another replica has dropped a partition: it is made again.
                transaction.rollback().await.map_err(|e| unavailable(&e))?;
                self.days.clear();
                continue;
            }
            self.is_read_only = code == Some(&SqlState::READ_ONLY_SQL_TRANSACTION);
            let taken = decisions(&written.map_err(|e| unavailable(&e))?)?;
            let mut earlier: HashMap<Uuid, Record> = HashMap::new();
            let expired = find_earlier(&transaction, &self.find, refused(&records, &taken), &mut earlier).await?;
            let outcomes: Vec<(usize, Result<Vec<Appended>, StoreError>)> =
                open.iter().map(|(place, append)| (*place, outcome(append, &earlier))).collect();
            if expired.is_empty() && outcomes.iter().all(|(_, outcome)| outcome.is_ok()) {
                transaction.commit().await.map_err(|e| unavailable(&e))?;
                let mut all: HashMap<usize, Result<Vec<Appended>, StoreError>> = outcomes.into_iter().collect();
                all.extend(refusals.into_iter().map(|(place, error)| (place, Err(error))));
                return (0..batch.len()).map(|place| all.remove(&place).ok_or_else(no_decision)).collect();
            }
            transaction.rollback().await.map_err(|e| unavailable(&e))?;
            if expired.is_empty() {
                let refused = outcomes.into_iter().filter_map(|(place, outcome)| Some((place, outcome.err()?)));
                refusals.extend(certainly_refused(refused.collect(), batch, &earlier));
                attempts = 0;
            } else if attempts >= MAX_ATTEMPTS {
                return Err(no_decision());
            }
        }
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
        decisions(&outcome.map_err(|e| unavailable(&e))?)
    }

    async fn make_partitions(&mut self, days: &BTreeSet<Day>) -> Result<(), StoreError> {
        if !days.is_subset(&self.days) {
            make_partitions(&mut self.session, days).await.map_err(|e| unavailable(&e))?;
            self.days.extend(days);
        }
        Ok(())
    }
}

fn no_decision() -> StoreError {
    StoreError::Damaged("an id of a caller has no decision".to_owned())
}

/// The decisions whose caller's id is new.
fn decisions(rows: &[Row]) -> Result<HashSet<Uuid>, StoreError> {
    rows.iter().map(|row| rows::get(row, 0)).collect()
}

/// The records whose caller's id was given before.
fn refused<'a>(records: &[&'a Record], taken: &HashSet<Uuid>) -> Vec<&'a Record> {
    let is_refused = |record: &&Record| record.client_id.is_some() && !taken.contains(&record.id);
    records.iter().copied().filter(is_refused).collect()
}

/// What became of a request, by the first decisions on its ids.
fn outcome(append: &Append, earlier: &HashMap<Uuid, Record>) -> Result<Vec<Appended>, StoreError> {
    let of_row = |(row, record): (usize, &Record)| match earlier.get(&record.id) {
        Some(first) if is_reused(first, record, &append.alike) => {
            Err(StoreError::IdReused { row, id: record.client_id.clone().unwrap_or_default() })
        }
        Some(first) => Ok(Appended::Existing(Box::new(first.clone()))),
        None => Ok(Appended::Committed),
    };
    append.records.iter().enumerate().map(of_row).collect()
}

/// The requests that are refused whatever becomes of the others: an id of theirs was given before in a decision that is in the log. If the
/// first decision is one of the same batch, it may be taken back itself, which shows once the first of the refused requests is left out.
fn certainly_refused(
    mut refused: Vec<(usize, StoreError)>,
    batch: &[Append],
    earlier: &HashMap<Uuid, Record>,
) -> Vec<(usize, StoreError)> {
    let own: HashSet<Uuid> = batch.iter().flat_map(|append| append.records.iter()).map(|record| record.id).collect();
    let is_logged = |(place, error): &(usize, StoreError)| {
        let StoreError::IdReused { row, .. } = error else { return true };
        earlier.get(&batch[*place].records[*row].id).is_none_or(|first| !own.contains(&first.id))
    };
    if refused.iter().any(is_logged) {
        refused.retain(is_logged);
    } else {
        refused.truncate(1);
    }
    refused
}

/// Notes the first decision on each id of a caller, and returns the records whose first decision has expired meanwhile.
async fn find_earlier<'a>(
    client: &(impl GenericClient + Sync),
    find: &Statement,
    refused: Vec<&'a Record>,
    earlier: &mut HashMap<Uuid, Record>,
) -> Result<Vec<&'a Record>, StoreError> {
    if refused.is_empty() {
        return Ok(refused);
    }
    let distinct: HashSet<ClientId<'_>> = refused.iter().filter_map(|record| ClientId::of(record)).collect();
    let distinct: Vec<ClientId<'_>> = distinct.into_iter().collect();
    let (deployments, keys, ids) = rows::client_id_columns(&distinct);
    let found = client.query(find, &[&deployments, &keys, &ids]).await.map_err(|e| unavailable(&e))?;
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
