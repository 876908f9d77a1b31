//! The thread that moves decisions from journals into archives.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::super::{Record, Settings, StoreError};
use super::archive::{Archive, Archives, checkpoint, empty_write_ahead_log};
use super::journal::{Journal, Place};
use super::journals::{Journals, damaged};
use super::writer::Log;
use super::{unavailable, unwritable};
use crate::clock::Time;

/// The bytes of an archive, in journals.
const JOURNALS_PER_ARCHIVE: u64 = 4;

/// How much less of a processor the archiving thread gets than others while they need it, as a step of `nice`: whoever waits for an answer
/// goes before.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// How long decisions are gathered before they are archived together.
const GATHER: Duration = Duration::from_millis(20);

/// How long the archiving thread waits before it tries again what failed.
const RETRY: Duration = Duration::from_secs(2);

/// The archiving thread's own state.
pub(super) struct Archivist {
    folder: PathBuf,
    /// The size at which an archive takes no more rows.
    archive_bytes: u64,
    journals: Arc<Journals>,
    archives: Archives,
    log: Arc<Log>,
    /// The archive that takes rows, and the connection that writes it.
    newest: Option<(Arc<Archive>, Connection)>,
    /// How far the journals are archived.
    archived: Place,
    /// When finished journals can be deleted, as far as that failed before.
    next_clean_up: Instant,
}

impl Archivist {
    /// Starts the thread, which begins with what an earlier process has left.
    pub(super) fn start(
        folder: PathBuf,
        settings: &Settings,
        journals: &Arc<Journals>,
        archived: Place,
        archives: Archives,
        log: Arc<Log>,
    ) -> std::io::Result<JoinHandle<()>> {
        let archivist = Self {
            folder,
            archive_bytes: settings.segment_bytes.saturating_mul(JOURNALS_PER_ARCHIVE),
            journals: Arc::clone(journals),
            archives,
            log,
            newest: None,
            archived,
            next_clean_up: Instant::now(),
        };
        let thread = std::thread::Builder::new().name("archive-log".to_owned()).spawn(move || archivist.run())?;
        journals.set_archivist(thread.thread().clone());
        Ok(thread)
    }

    fn run(mut self) {
        // Elsewhere, it would slow down the whole process. If it is refused, the thread is as any other.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::nice(NICE);
        loop {
            // Read before archiving, so that what is committed before the store is closed is archived.
            let is_closing = self.journals.is_closing();
            let archived = self.archive_all();
            self.end_day();
            // Where no file can be made, decisions can still be archived.
            let outcome = archived.and(self.make_spare()).and(self.clean_up());
            let has_changed = self.journals.note_outcome(outcome.as_ref().err().map(ToString::to_string));
            match &outcome {
                Ok(()) if has_changed => tracing::info!("decisions are archived again"),
                Err(error) if has_changed => {
                    tracing::warn!(%error, "decisions cannot be archived yet; they are kept in journals");
                }
                _ => {}
            }
            if is_closing {
                break;
            }
            match outcome {
                Ok(()) => {
                    std::thread::park_timeout(RETRY);
                    std::thread::sleep(GATHER);
                }
                Err(_) => {
                    self.newest = None;
                    self.wait_until_closing(RETRY);
                }
            }
        }
        self.finish();
    }

    /// Waits this long, or until the store is closed. Commits, which wake the thread too, do not end it.
    fn wait_until_closing(&self, time: Duration) {
        let start = Instant::now();
        while let Some(left) = time.checked_sub(start.elapsed()).filter(|_| !self.journals.is_closing()) {
            std::thread::park_timeout(left);
        }
    }

    /// Goes on in the next journal if the one that is written has decisions of a day that is over: its file is deleted as soon as all of
    /// them are archived, so that they expire with their archive.
    fn end_day(&self) {
        if self.journals.is_older_than(Time::now().start_of_day().first_id()) {
            self.log.begin_journal();
        }
    }

    /// Archives whatever is in the journals.
    fn archive_all(&mut self) -> Result<(), StoreError> {
        while let Some(part) = self.journals.oldest() {
            let entries = part.entries().map_err(|e| unwritable(&e))?;
            let end = entries.last().ok_or_else(|| unwritable(&damaged(&part.journal)))?.end;
            let records: Vec<Record> = entries.into_iter().flat_map(|entry| entry.records).collect();
            let archived = Place { journal: part.journal.number, bytes: end };
            let (archive, writer) = self.newest().map_err(|e| unavailable(&e))?;
            archive.take(writer, &records, archived).map_err(|e| unavailable(&e))?;
            self.archived = archived;
            self.journals.note_archived(&part.journal, end, &records);
            let _ = self.make_spare();
        }
        Ok(())
    }

    /// The archive that takes rows. Others are closed. It notes how far the journals are archived from the beginning, so that those before
    /// it can be deleted.
    fn newest(&mut self) -> rusqlite::Result<&mut (Arc<Archive>, Connection)> {
        let newest = match self.newest.take() {
            Some(newest) => newest,
            None => {
                let all = self.archives.read().unwrap_or_else(PoisonError::into_inner).clone();
                let archive = match all.last().filter(|last| !last.is_closed()) {
                    Some(archive) => Arc::clone(archive),
                    None => {
                        let archive = Archive::create(&self.folder, all.last().map_or(1, |last| last.number + 1))?;
                        self.archives.write().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&archive));
                        archive
                    }
                };
                let mut writer = archive.writer()?;
                if archive.end_of_archived()? < self.archived {
                    archive.take(&mut writer, &[], self.archived)?;
                    checkpoint(&writer)?;
                }
                (archive, writer)
            }
        };
        Ok(self.newest.insert(newest))
    }

    /// Deletes journals whose decisions are all archived, once the disk has the archives, and closes archives that are large or old.
    fn clean_up(&mut self) -> Result<(), StoreError> {
        let finished = self.journals.finished();
        if !finished.is_empty() && self.next_clean_up <= Instant::now() {
            let (_, writer) = self.newest().map_err(|e| unavailable(&e))?;
            let is_moved = checkpoint(writer).map_err(|e| unavailable(&e))?;
            let synced = File::open(&self.folder).and_then(|folder| folder.sync_all());
            synced.map_err(|e| unwritable(&e))?;
            for journal in finished.iter().filter(|_| is_moved) {
                journal.delete().map_err(|e| unwritable(&e))?;
                self.journals.forget(journal);
            }
            self.next_clean_up = Instant::now() + if is_moved { Duration::ZERO } else { RETRY };
        }
        let all = self.archives.read().unwrap_or_else(PoisonError::into_inner).clone();
        let (bytes, now) = (self.archive_bytes, Time::now());
        let newest = all.last().map(|last| last.number);
        // An older one is open if a process ended while it was being closed.
        let is_due = |archive: &&Arc<Archive>| Some(archive.number) != newest || archive.is_complete(bytes, now);
        for archive in all.iter().filter(|archive| !archive.is_closed()).filter(is_due) {
            self.newest = None;
            archive.close().map_err(|e| unavailable(&e))?;
        }
        if all.last().is_some_and(|last| last.is_closed()) {
            self.newest().map_err(|e| unavailable(&e))?;
        }
        Ok(())
    }

    fn make_spare(&self) -> Result<(), StoreError> {
        let Some(number) = self.journals.missing_spare() else { return Ok(()) };
        let journal = Journal::create(&self.folder, number).map_err(|e| unwritable(&e))?;
        self.journals.set_spare(journal);
        Ok(())
    }

    /// Moves all rows into the database file and deletes the journals, if all decisions are archived. A failure loses nothing: the next start
    /// goes on with the journals.
    fn finish(mut self) {
        if self.journals.oldest().is_some() {
            return;
        }
        let is_moved = self.newest().and_then(|(_, writer)| empty_write_ahead_log(writer));
        if is_moved.unwrap_or(false) {
            let _ = self.journals.delete();
        }
    }
}
