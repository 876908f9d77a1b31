//! Writes the log: commits whatever waits, then wakes those who wait for it.
//!
//! Commits are made by the threads that answer requests, not by one of their own: between two threads, each decision would wait twice until
//! a processor is free. A commit takes microseconds, as long as it does not wait for the disk.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rusqlite::Connection;

use super::super::queue::{self, Append, FailureLog, Outcomes, Queue};
use super::super::record::{ClientId, is_reused};
use super::super::{Appended, Record, Settings, StoreError};
use super::archive::{Archive, Archives, find_client_id};
use super::journals::Journals;
use super::{journal, unavailable, unwritable};

/// The most waiting rows that are committed among the tasks that answer requests. More of them get a thread that may take its time.
const MAX_ROWS_AMONG_REQUESTS: usize = 256;

/// The queue and its writer.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) queue: Queue,
    journals: Arc<Journals>,
    /// `None` once it is closed.
    writer: Mutex<Option<Writer>>,
    is_durable: bool,
}

impl Log {
    pub(super) fn new(settings: Settings, journals: Arc<Journals>, archives: Archives) -> Self {
        let (queue, is_durable) = (Queue::new(settings.queue_rows), settings.is_durable);
        let writer = Writer::new(settings, Arc::clone(&journals), archives);
        Self { queue, journals, writer: Mutex::new(Some(writer)), is_durable }
    }

    fn writer(&self) -> MutexGuard<'_, Option<Writer>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commits the records together with whatever else waits.
    pub(super) async fn append(
        self: &Arc<Self>,
        records: Arc<Vec<Record>>,
        alike: Arc<[u32]>,
    ) -> Result<Vec<Appended>, StoreError> {
        let start_writer = || {
            // A commit takes less time than waiting for others to be committed together with.
            let is_done = !self.may_take_long() && self.commit_next() && self.queue.is_done();
            if !is_done {
                tokio::spawn(Arc::clone(self).commit_all());
            }
        };
        self.queue.append(records, alike, start_writer).await
    }

    fn may_take_long(&self) -> bool {
        self.is_durable || self.queue.rows() > MAX_ROWS_AMONG_REQUESTS || self.journals.is_full()
    }

    /// Commits until nothing waits.
    async fn commit_all(self: Arc<Self>) {
        loop {
            // Requests that have come by now are committed together.
            tokio::task::yield_now().await;
            let has_committed = if self.may_take_long() {
                let log = Arc::clone(&self);
                tokio::task::spawn_blocking(move || log.commit_next()).await.unwrap_or(false)
            } else {
                self.commit_next()
            };
            if !has_committed {
                break;
            }
        }
    }

    /// Commits what waits; `false` if nothing does.
    fn commit_next(&self) -> bool {
        let _guard = self.queue.close_on_panic();
        let mut writer = self.writer();
        let Some(batch) = self.queue.next_batch() else { return false };
        match &mut *writer {
            Some(writer) => writer.write(batch),
            None => queue::reply(batch, Err(StoreError::Unavailable("it is closed".to_owned()))),
        }
        true
    }

    /// Goes on in the next journal, if it is there, between two commits. What a failed one has left is cut off before.
    pub(super) fn begin_journal(&self) {
        let writer = self.writer();
        if writer.as_ref().is_some_and(|writer| !writer.has_failed) {
            self.journals.begin_next();
        }
    }

    /// Takes nothing more and commits what waits.
    pub(super) fn close(&self) {
        self.queue.close();
        while self.commit_next() {}
        *self.writer() = None;
    }
}

/// What is written, and where.
#[derive(Debug)]
struct Writer {
    settings: Settings,
    journals: Arc<Journals>,
    archives: Archives,
    /// The newest archive, and a connection of its own to look callers' ids up there: other readers hold theirs for a whole page.
    newest: Option<(Arc<Archive>, Connection)>,
    /// The entries of a commit; kept for its memory.
    entries: Vec<u8>,
    /// Whether the last commit failed.
    has_failed: bool,
    /// The size of what could not be written last.
    failed_bytes: usize,
    failures: FailureLog,
}

impl Writer {
    fn new(settings: Settings, journals: Arc<Journals>, archives: Archives) -> Self {
        Self {
            settings,
            journals,
            archives,
            newest: None,
            entries: Vec::new(),
            has_failed: false,
            failed_bytes: 0,
            failures: FailureLog::default(),
        }
    }

    /// Commits a batch and tells those who wait.
    fn write(&mut self, batch: Vec<Append>) {
        let start = Instant::now();
        let outcome = self.commit(&batch);
        (self.settings.observe_commit)(start.elapsed());
        self.has_failed = outcome.is_err();
        self.failures.note(&outcome);
        queue::reply(batch, outcome);
    }

    /// Writes what is new in a batch to the journal, as one piece.
    fn commit(&mut self, batch: &[Append]) -> Result<Outcomes, StoreError> {
        self.journals.wait_for_room()?;
        let (journal, end) = self.journals.end();
        let mut entries = std::mem::take(&mut self.entries);
        entries.clear();
        let mut new_ids: HashMap<ClientId<'_>, &Record> = HashMap::new();
        let mut places = Vec::new();
        let mut outcomes = Vec::with_capacity(batch.len());
        for append in batch {
            let appended = look_up(append, &mut new_ids, |client| self.find(client))?;
            if let Ok(appended) = &appended {
                let new = append.records.iter().zip(appended).filter(|(_, appended)| **appended == Appended::Committed);
                let new: Vec<&Record> = new.map(|(record, _)| record).collect();
                let at = end + entries.len() as u64;
                places.extend(new.iter().filter_map(|record| Some((ClientId::of(record)?, at))));
                if !new.is_empty() {
                    entries = journal::encode(&new, entries).map_err(|e| unwritable(&e))?;
                }
            }
            outcomes.push(appended);
        }
        let write = || -> io::Result<()> {
            if self.has_failed {
                journal.cut(end)?;
            }
            // A batch that writes nothing would not show whether what failed can be written again.
            if self.has_failed && entries.is_empty() {
                journal.probe(self.failed_bytes, end)?;
            }
            if !entries.is_empty() {
                journal.write(&entries, end)?;
            }
            if self.settings.is_durable { journal.sync() } else { Ok(()) }
        };
        if let Err(error) = write() {
            if !entries.is_empty() {
                self.failed_bytes = entries.len();
            }
            // What it has left was not committed. If it cannot be cut off now, it is before the next commit.
            let _ = journal.cut(end);
            return Err(unwritable(&error));
        }
        if !entries.is_empty() {
            self.journals.extend(entries.len(), places.into_iter());
        }
        self.entries = entries;
        Ok(outcomes)
    }

    /// The first decision on a caller's id. Decisions move from journals into archives, so that archives are searched last.
    fn find(&mut self, client: ClientId<'_>) -> Result<Option<Record>, StoreError> {
        if let Some(found) = self.journals.find(client).map_err(|e| unwritable(&e))? {
            return Ok(Some(found));
        }
        let archives = self.archives.read().unwrap_or_else(PoisonError::into_inner).clone();
        let Some((newest, older)) = archives.split_last() else { return Ok(None) };
        let mut search = || {
            if let Some(found) = find_client_id(self.connection_to(newest)?, client)? {
                return Ok(Some(found));
            }
            for archive in older.iter().rev().filter(|archive| archive.may_contain(client)) {
                if let Some(found) = archive.read(|connection| find_client_id(connection, client))? {
                    return Ok(Some(found));
                }
            }
            Ok(None)
        };
        search().map_err(|e: rusqlite::Error| unavailable(&e))
    }

    /// The writer's own connection to the newest archive.
    fn connection_to(&mut self, newest: &Arc<Archive>) -> rusqlite::Result<&Connection> {
        let is_open = |(archive, _): &(Arc<Archive>, Connection)| Arc::ptr_eq(archive, newest);
        let (_, connection) = match self.newest.take().filter(is_open) {
            Some(open) => self.newest.insert(open),
            None => self.newest.insert((Arc::clone(newest), newest.reader()?)),
        };
        Ok(connection)
    }
}

/// Which records of a request are new; those are to be written. If one of its ids was given before with another query, none is.
fn look_up<'a>(
    append: &'a Append,
    new_ids: &mut HashMap<ClientId<'a>, &'a Record>,
    mut find: impl FnMut(ClientId<'_>) -> Result<Option<Record>, StoreError>,
) -> Result<Result<Vec<Appended>, StoreError>, StoreError> {
    let mut appended = Vec::with_capacity(append.records.len());
    let mut own: HashMap<ClientId<'a>, &'a Record> = HashMap::new();
    for (row, record) in append.records.iter().enumerate() {
        let Some(client) = ClientId::of(record) else {
            appended.push(Appended::Committed);
            continue;
        };
        let existing = match own.get(&client).or_else(|| new_ids.get(&client)) {
            Some(first) => Some(Record::clone(first)),
            None => find(client)?,
        };
        match existing {
            Some(first) if is_reused(&first, record, &append.alike) => {
                return Ok(Err(StoreError::IdReused { row, id: client.id.to_owned() }));
            }
            Some(first) => appended.push(Appended::Existing(Box::new(first))),
            None => {
                own.insert(client, record);
                appended.push(Appended::Committed);
            }
        }
    }
    new_ids.extend(own);
    Ok(Ok(appended))
}
