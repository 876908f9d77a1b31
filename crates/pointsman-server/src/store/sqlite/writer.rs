//! Writes the log: commits whatever waits, then wakes those who wait for it.
//!
//! Commits are made by a task among those that answer requests, not by a thread of its own: between two threads, each decision would wait
//! twice until a processor is free. A commit takes some ten microseconds, as long as it does not wait for the disk.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::super::queue::{self, Append, Outcomes, Queue};
use super::super::record::{ClientId, is_reused};
use super::super::{Appended, Record, Settings, StoreError};
use super::archivist::{Archive, Open};
use super::rows;
use super::segments::{Segment, Segments, find_client_id};
use super::unavailable;
use crate::clock::Time;

/// How many commits pass between two looks at the size of the segment, unless they are large.
const COMMITS_PER_LOOK: u32 = 64;

/// The share of a segment that is written between two looks, as one over this: a start replays one segment, which must not be much larger
/// than it should be.
const LOOKS_PER_SEGMENT: u64 = 16;

/// The most waiting rows that are committed among the tasks that answer requests. More of them get a thread that may take its time.
const MAX_ROWS_AMONG_REQUESTS: usize = 256;

/// If nothing was committed for this long, the next request need not wait for others to be committed together with.
const CALM: Duration = Duration::from_micros(100);

/// The queue and its writer.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) queue: Queue,
    /// `None` once it is closed.
    writer: Mutex<Option<Writer>>,
    is_durable: bool,
}

impl Log {
    pub(super) fn new(writer: Writer) -> Self {
        let Settings { queue_rows, is_durable, .. } = writer.settings;
        Self { queue: Queue::new(queue_rows), writer: Mutex::new(Some(writer)), is_durable }
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
            let is_done = self.is_calm() && self.commit_next() && self.queue.is_done();
            if !is_done {
                tokio::spawn(Arc::clone(self).commit_all());
            }
        };
        self.queue.append(records, alike, start_writer).await
    }

    /// Whether requests are so few that each is committed at once: waiting for others would take longer than it saves.
    fn is_calm(&self) -> bool {
        let is_calm = |writer: &Writer| writer.last_commit.is_none_or(|last| last.elapsed() >= CALM);
        !self.may_take_long() && self.writer().as_ref().is_some_and(is_calm)
    }

    fn may_take_long(&self) -> bool {
        self.is_durable || self.queue.rows() > MAX_ROWS_AMONG_REQUESTS
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

    /// Takes nothing more, commits what waits, and moves the rows into the database file.
    pub(super) fn close(&self) {
        self.queue.close();
        while self.commit_next() {}
        if let Some(writer) = self.writer().take() {
            let _ = writer.connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
        }
    }
}

/// What is written, and where.
#[derive(Debug)]
pub(super) struct Writer {
    settings: Settings,
    segments: Segments,
    current: Arc<Segment>,
    connection: Connection,
    /// New segments, made beforehand by the archiving thread.
    spare: Receiver<Open>,
    /// Segments that are to be archived.
    finished: SyncSender<Open>,
    /// When the last commit was done.
    last_commit: Option<Instant>,
    commits_since_look: u32,
    bytes_since_look: u64,
    /// Whether the last commit failed.
    has_failed: bool,
    /// The day of the first commit to the segment.
    day: Time,
}

impl Writer {
    /// Opens the newest segment, or makes the first one, and starts the archiving thread.
    pub(super) fn open(
        folder: PathBuf,
        settings: Settings,
        segments: Segments,
        is_closing: Arc<AtomicBool>,
    ) -> rusqlite::Result<(Self, std::thread::JoinHandle<()>)> {
        let newest = segments.read().unwrap_or_else(PoisonError::into_inner).last().cloned();
        let current = match newest.filter(|newest| !newest.is_archive && !newest.is_closed()) {
            Some(newest) => newest,
            None => {
                let mut all = segments.write().unwrap_or_else(PoisonError::into_inner);
                let number = all.last().map_or(1, |last| last.number + 1);
                let first = Segment::create(&folder, number)?;
                all.push(Arc::clone(&first));
                first
            }
        };
        let connection = current.writer(settings.is_durable)?;
        let Archive { spare, finished, thread } =
            Archive::start(folder, &settings, Arc::clone(&segments), current.number, is_closing)?;
        let day = Time::now().start_of_day();
        Ok((
            Self {
                settings,
                segments,
                current,
                connection,
                spare,
                finished,
                last_commit: None,
                commits_since_look: 0,
                bytes_since_look: 0,
                has_failed: false,
                day,
            },
            thread,
        ))
    }

    /// Commits a batch and tells those who wait.
    fn write(&mut self, batch: Vec<Append>) {
        let start = Instant::now();
        let outcome = self.commit(&batch).map_err(|error| unavailable(&error));
        let end = Instant::now();
        (self.settings.observe_commit)(end - start);
        self.last_commit = Some(end);
        self.note(outcome.as_ref().err());
        let records = batch.iter().flat_map(|append| append.records.iter());
        self.bytes_since_look += records.map(|record| record.bytes() as u64).sum::<u64>();
        queue::reply(batch, outcome);
        self.rotate_if_due();
    }

    /// Notes whether the last commit failed. The same failure is logged once, not for every commit.
    fn note(&mut self, error: Option<&StoreError>) {
        let has_failed = error.is_some();
        if has_failed == self.has_failed {
            return;
        }
        self.has_failed = has_failed;
        match error {
            Some(error) => tracing::error!(%error, "decisions cannot be committed"),
            None => tracing::info!("decisions are committed again"),
        }
    }

    fn commit(&mut self, batch: &[Append]) -> rusqlite::Result<Outcomes> {
        // Unlike `Connection::transaction`, this does not parse the statements each time.
        let run = |connection: &Connection, sql: &str| connection.prepare_cached(sql)?.execute([]);
        run(&self.connection, "BEGIN IMMEDIATE")?;
        let outcomes = self.write_rows(batch).and_then(|outcomes| {
            run(&self.connection, "COMMIT")?;
            Ok(outcomes)
        });
        if outcomes.is_err() && !self.connection.is_autocommit() {
            run(&self.connection, "ROLLBACK")?;
        }
        let outcomes = outcomes?;
        self.current.extend_range(batch.iter().flat_map(|append| append.records.iter()).map(|record| record.id));
        Ok(outcomes)
    }

    /// Writes the rows of a batch, within a transaction.
    fn write_rows(&self, batch: &[Append]) -> rusqlite::Result<Outcomes> {
        let connection = &self.connection;
        let mut new_ids: HashMap<ClientId<'_>, &Record> = HashMap::new();
        let mut all = Vec::with_capacity(batch.len());
        for append in batch {
            let appended = look_up(append, &mut new_ids, |client| {
                find_existing(connection, &self.segments, &self.current, client)
            })?;
            if let Ok(appended) = &appended {
                let new = append.records.iter().zip(appended).filter(|(_, appended)| **appended == Appended::Committed);
                new.map(|(record, _)| record).try_for_each(|record| rows::insert(connection, record))?;
            }
            all.push(appended);
        }
        if self.has_failed {
            // A commit of no rows writes nothing: only one that writes shows that rows can be written again.
            connection.pragma_update(None, "user_version", super::segments::VERSION)?;
        }
        Ok(all)
    }

    /// Goes on in a new segment if the present one is large, or from another day.
    fn rotate_if_due(&mut self) {
        self.commits_since_look += 1;
        let is_little = self.bytes_since_look < self.settings.segment_bytes / LOOKS_PER_SEGMENT;
        if self.commits_since_look < COMMITS_PER_LOOK && is_little {
            return;
        }
        (self.commits_since_look, self.bytes_since_look) = (0, 0);
        let today = Time::now().start_of_day();
        if self.current.bytes_in_wal() < self.settings.segment_bytes && today <= self.day {
            return;
        }
        match self.spare.try_recv() {
            Ok((segment, connection)) => {
                self.segments.write().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&segment));
                let finished = std::mem::replace(&mut self.current, segment);
                let writer = std::mem::replace(&mut self.connection, connection);
                self.day = today;
                let _ = self.finished.try_send((finished, writer));
            }
            // The archiving thread is behind: the present segment grows a little more.
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => {}
        }
    }
}

/// Which records of a request are new; those are to be written. If one of its ids was given before with another query, none is.
fn look_up<'a>(
    append: &'a Append,
    new_ids: &mut HashMap<ClientId<'a>, &'a Record>,
    find: impl Fn(ClientId<'_>) -> rusqlite::Result<Option<Record>>,
) -> rusqlite::Result<Result<Vec<Appended>, StoreError>> {
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

/// The first decision on a caller's id in the newest segment or in any other that may contain it.
fn find_existing(
    connection: &Connection,
    segments: &Segments,
    current: &Segment,
    client: ClientId<'_>,
) -> rusqlite::Result<Option<Record>> {
    if let Some(found) = find_client_id(connection, client)? {
        return Ok(Some(found));
    }
    let older: Vec<Arc<Segment>> = segments.read().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
    for segment in older.iter().rev().filter(|segment| segment.number != current.number) {
        if segment.may_contain(client)
            && let Some(found) = segment.read(|connection| find_client_id(connection, client))?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}
