//! The thread that makes new log segments, and moves the rows of finished ones into archives.

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::super::Settings;
use super::segments::{Segment, Segments, unusable};
use crate::clock::Time;

/// The bytes of an archive, in segments.
const SEGMENTS_PER_ARCHIVE: u64 = 4;

/// How much less of a processor the archiving thread gets than others while they need it, as a step of `nice`: whoever waits for an answer
/// goes before.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// How long the archiving thread waits before it tries again what failed.
const RETRY: Duration = Duration::from_secs(2);

/// A segment, with the connection that writes it.
pub(super) type Open = (Arc<Segment>, Connection);

/// The writer's ends of the channels to the archiving thread.
pub(super) struct Archive {
    /// New segments.
    pub(super) spare: Receiver<Open>,
    /// Segments that are to be archived.
    pub(super) finished: SyncSender<Open>,
    pub(super) thread: JoinHandle<()>,
}

impl Archive {
    /// Starts the thread, which begins with what an earlier process has left. The segment `current` is written.
    pub(super) fn start(
        folder: PathBuf,
        settings: &Settings,
        segments: Segments,
        current: u64,
        is_closing: Arc<AtomicBool>,
    ) -> rusqlite::Result<Self> {
        let (spare_out, spare) = sync_channel(1);
        let (finished, finished_in) = sync_channel(1024);
        let files = segments.read().unwrap_or_else(PoisonError::into_inner).clone();
        let open = files.into_iter().filter(|file| !file.is_closed());
        let (archives, mut waiting): (Vec<_>, Vec<_>) = open.partition(|file| file.is_archive);
        waiting.retain(|file| file.number != current);
        let archivist = Archivist {
            folder,
            is_durable: settings.is_durable,
            archive_bytes: settings.segment_bytes.saturating_mul(SEGMENTS_PER_ARCHIVE),
            next: current + 1,
            segments,
            archives,
            waiting,
            copied: Vec::new(),
            finished: finished_in,
            spare: spare_out,
            is_closing,
        };
        let thread = std::thread::Builder::new().name("archive-log".to_owned()).spawn(move || archivist.run());
        let thread = thread.map_err(|e| unusable(&format!("no thread for the log: {e}")))?;
        Ok(Self { spare, finished, thread })
    }
}

/// The archiving thread's own state.
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
    finished: Receiver<Open>,
    spare: SyncSender<Open>,
    is_closing: Arc<AtomicBool>,
}

impl Archivist {
    fn run(mut self) {
        // Elsewhere, it would slow down the whole process. If it is refused, the thread is as any other.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::nice(NICE);
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

    fn take(&mut self, (segment, writer): Open) {
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
        archive.take_rows(segment)?;
        let synced = File::open(&self.folder).and_then(|folder| folder.sync_all());
        synced.map_err(|e| unusable(&format!("{}: {e}", self.folder.display())))?;
        let mut segments = self.segments.write().unwrap_or_else(PoisonError::into_inner);
        segments.retain(|file| !Arc::ptr_eq(file, segment));
        Ok(())
    }

    fn make_spare(&mut self) -> Option<Open> {
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
