//! The thread that writes the log: it commits whatever waits, then wakes those who wait for it.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, TransactionBehavior};

use super::super::queue::{self, Append, Outcomes, Waiting};
use super::super::record::{ClientId, is_reused};
use super::super::{Appended, Record, Settings, StoreError};
use super::rows;
use super::segments::{Segment, find_client_id, unusable};
use super::{BUSY_TIMEOUT, unavailable};
use crate::clock::Time;

/// How many commits pass between two looks at the size of the segment, unless they are large.
const COMMITS_PER_LOOK: u32 = 64;

/// The share of a segment that is written between two looks, as one over this: a start replays one segment, which must not be much larger
/// than it should be.
const LOOKS_PER_SEGMENT: u64 = 16;

/// The bytes of an archive, in segments.
const SEGMENTS_PER_ARCHIVE: u64 = 4;

/// How long the archiving thread rests, as a multiple of the time that it works.
const REST: u32 = 4;

/// How many segments may wait before the archiving thread stops resting.
const MAX_WAITING: u64 = 4;

/// How long the archiving thread waits before it tries again what failed.
const RETRY: Duration = Duration::from_secs(2);

/// How long a commit waits for another process to release the file, once an earlier one has waited in vain.
const BUSY_TIMEOUT_WHILE_FAILING: Duration = Duration::from_millis(100);

/// All files of the log, oldest first; the last one is written.
pub(super) type Segments = Arc<RwLock<Vec<Arc<Segment>>>>;

/// The writing thread's own state.
pub(super) struct Writer {
    settings: Settings,
    segments: Segments,
    current: Arc<Segment>,
    connection: Connection,
    /// New segments, made beforehand by the archiving thread.
    spare: Receiver<(Arc<Segment>, Connection)>,
    /// Segments that are to be archived, with the connection that wrote them.
    finished: SyncSender<(Arc<Segment>, Connection)>,
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
        let (spare_out, spare) = sync_channel(1);
        let (finished, finished_in) = sync_channel(1024);
        let open: Vec<Arc<Segment>> = segments
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .filter(|file| !file.is_closed())
            .cloned()
            .collect();
        let archivist = Archivist {
            folder,
            is_durable: settings.is_durable,
            archive_bytes: settings.segment_bytes.saturating_mul(SEGMENTS_PER_ARCHIVE),
            next: current.number + 1,
            segments: Arc::clone(&segments),
            archives: open.iter().filter(|file| file.is_archive).cloned().collect(),
            waiting: open.into_iter().filter(|file| !file.is_archive && file.number != current.number).collect(),
            copied: Vec::new(),
            finished: finished_in,
            spare: spare_out,
            is_closing,
        };
        let thread = std::thread::Builder::new().name("archive-log".to_owned()).spawn(move || archivist.run());
        let thread = thread.map_err(|e| unusable(&format!("no thread for the log: {e}")))?;
        let day = Time::now().start_of_day();
        Ok((
            Self {
                settings,
                segments,
                current,
                connection,
                spare,
                finished,
                commits_since_look: 0,
                bytes_since_look: 0,
                has_failed: false,
                day,
            },
            thread,
        ))
    }

    /// Commits until there is nobody left who could ask for it.
    pub(super) fn run(mut self, mut queue: Waiting) {
        while let Some(batch) = queue.next_batch_blocking() {
            let start = Instant::now();
            let outcome = self.commit(&batch).map_err(|error| unavailable(&error));
            (self.settings.observe_commit)(start.elapsed());
            self.note(outcome.as_ref().err());
            let records = batch.iter().flat_map(|append| append.records.iter());
            self.bytes_since_look += records.map(|record| record.bytes() as u64).sum::<u64>();
            queue::reply(batch, outcome);
            self.rotate_if_due();
        }
        let _ = self.connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
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
        // Whoever asks meanwhile is refused soon, and need not wait for those before.
        let wait = if has_failed { BUSY_TIMEOUT_WHILE_FAILING } else { BUSY_TIMEOUT };
        let _ = self.connection.busy_timeout(wait);
    }

    fn commit(&mut self, batch: &[Append]) -> rusqlite::Result<Outcomes> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut new_ids: HashMap<ClientId<'_>, &Record> = HashMap::new();
        let mut all = Vec::with_capacity(batch.len());
        for append in batch {
            let appended = look_up(append, &mut new_ids, |client| {
                find_existing(&transaction, &self.segments, &self.current, client)
            })?;
            if let Ok(appended) = &appended {
                let new = append.records.iter().zip(appended).filter(|(_, appended)| **appended == Appended::Committed);
                new.map(|(record, _)| record).try_for_each(|record| rows::insert(&transaction, record))?;
            }
            all.push(appended);
        }
        if self.has_failed {
            // A commit of no rows writes nothing: only one that writes shows that rows can be written again.
            transaction.pragma_update(None, "user_version", super::segments::VERSION)?;
        }
        transaction.commit()?;
        self.current.extend_range(batch.iter().flat_map(|append| append.records.iter()).map(|record| record.id));
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

/// The thread that makes new segments, and moves the rows of finished ones into archives.
struct Archivist {
    folder: PathBuf,
    is_durable: bool,
    /// The size at which an archive takes no more rows.
    archive_bytes: u64,
    /// The number of the next new segment.
    next: u64,
    segments: Segments,
    /// Archives that are not closed yet; the last one takes rows.
    archives: Vec<Arc<Segment>>,
    /// Segments whose rows are not in an archive yet.
    waiting: Vec<Arc<Segment>>,
    /// Segments whose rows are in an archive, and whose files are still there.
    copied: Vec<Arc<Segment>>,
    finished: Receiver<(Arc<Segment>, Connection)>,
    spare: SyncSender<(Arc<Segment>, Connection)>,
    is_closing: Arc<AtomicBool>,
}

impl Archivist {
    fn run(mut self) {
        for archive in &self.archives {
            if let Err(error) = archive.note_ids() {
                tracing::warn!(%error, archive = archive.number, "the ids in an archive of the log could not be read");
            }
        }
        let mut spare = None;
        loop {
            if spare.is_none() {
                spare = self.make_spare();
            }
            if let Some(made) = spare.take() {
                spare = match self.spare.try_send(made) {
                    Ok(()) => None,
                    Err(TrySendError::Full(made)) => Some(made),
                    Err(TrySendError::Disconnected(_)) => None,
                };
            }
            self.archive_finished();
            match self.finished.recv_timeout(RETRY) {
                Ok(finished) => self.take(finished),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.is_closing.load(Ordering::Acquire) {
                break;
            }
        }
        while let Ok(finished) = self.finished.try_recv() {
            self.take(finished);
        }
        self.archive_finished();
    }

    fn take(&mut self, (segment, writer): (Arc<Segment>, Connection)) {
        // The rows go to an archive instead.
        let _ = writer.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        self.waiting.push(segment);
    }

    /// Moves the rows of finished segments. What fails is tried again later, also after a restart.
    fn archive_finished(&mut self) {
        for segment in std::mem::take(&mut self.waiting) {
            match self.archive(&segment) {
                Ok(()) => self.copied.push(segment),
                Err(error) => {
                    tracing::warn!(%error, segment = segment.number, "a log segment could not be archived yet");
                    self.waiting.push(segment);
                }
            }
        }
        self.copied.retain(|segment| match segment.delete() {
            Ok(()) => false,
            Err(error) => {
                tracing::warn!(%error, segment = segment.number, "an archived log segment could not be deleted yet");
                true
            }
        });
        let (bytes, now) = (self.archive_bytes, Time::now());
        let complete = |archive: &mut Arc<Segment>| archive.is_complete(bytes, now);
        for archive in self.archives.extract_if(.., complete).collect::<Vec<_>>() {
            if let Err(error) = archive.close() {
                tracing::warn!(%error, archive = archive.number, "an archive of the log could not be closed yet");
                self.archives.insert(0, archive);
            }
        }
    }

    /// Copies the rows of a segment into an archive, where they are read from now on.
    fn archive(&mut self, segment: &Arc<Segment>) -> rusqlite::Result<()> {
        let archive = match self.archives.last().filter(|last| !last.is_complete(self.archive_bytes, Time::now())) {
            Some(archive) => Arc::clone(archive),
            None => {
                let archive = Segment::create_archive(&self.folder, segment.number)?;
                let mut segments = self.segments.write().unwrap_or_else(PoisonError::into_inner);
                segments.push(Arc::clone(&archive));
                segments.sort_by_key(|file| (file.number, !file.is_archive));
                drop(segments);
                self.archives.push(Arc::clone(&archive));
                archive
            }
        };
        // Whoever waits for an answer goes before, as long as not too many segments wait.
        let is_late = segment.number + MAX_WAITING < self.next;
        let pause = |took: Duration| {
            if !(is_late || self.is_closing.load(Ordering::Acquire)) {
                std::thread::sleep(took * REST);
            }
        };
        archive.take_rows(segment, pause)?;
        let synced = File::open(&self.folder).and_then(|folder| folder.sync_all());
        synced.map_err(|e| unusable(&format!("{}: {e}", self.folder.display())))?;
        let mut segments = self.segments.write().unwrap_or_else(PoisonError::into_inner);
        segments.retain(|file| !Arc::ptr_eq(file, segment));
        Ok(())
    }

    fn make_spare(&mut self) -> Option<(Arc<Segment>, Connection)> {
        let made = Segment::create(&self.folder, self.next).and_then(|segment| {
            let connection = segment.writer(self.is_durable)?;
            Ok((segment, connection))
        });
        match made {
            Ok(made) => {
                self.next += 1;
                Some(made)
            }
            Err(error) => {
                tracing::warn!(%error, "no new log segment can be made; the present one grows");
                None
            }
        }
    }
}
