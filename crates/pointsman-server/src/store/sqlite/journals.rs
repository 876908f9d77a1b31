//! Decisions on their way into the log: committed to a journal, and not in an archive yet.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use uuid::Uuid;

use super::super::record::ClientId;
use super::super::{LogQuery, Record, StoreError};
use super::journal::{Entry, Journal, Place, START};

/// How many full journals may wait for the archiving thread. If there are more, decisions have to wait.
const MAX_JOURNALS: u64 = 4;

/// How long a commit waits for the archiving thread before it is refused.
const MAX_WAIT: Duration = Duration::from_millis(100);

/// How many callers' ids are forgotten before commits get their turn.
const IDS_PER_TURN: usize = 256;

/// All journals that have decisions of their own. The last one is written.
#[derive(Debug)]
pub(super) struct Journals {
    /// The size at which another journal is begun.
    journal_bytes: u64,
    state: Mutex<State>,
    /// Told when decisions have been archived.
    archived: Condvar,
}

#[derive(Debug)]
struct State {
    /// Never empty.
    parts: VecDeque<Part>,
    /// Callers' ids, and the journal and the place of the entry that each is in.
    ids: HashMap<(i64, i64, String), (Arc<Journal>, u64)>,
    /// The next journal.
    spare: Option<Arc<Journal>>,
    /// Why decisions cannot be archived at the moment.
    failure: Option<String>,
    is_closing: bool,
    archivist: Option<Thread>,
}

/// Decisions of one journal, between two places.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) journal: Arc<Journal>,
    /// Where the first entry begins that is not in an archive.
    pub(super) from: u64,
    /// Where the last committed entry ends.
    pub(super) to: u64,
    /// The smallest id that was archived from it by this process.
    oldest: Option<Uuid>,
}

impl Part {
    /// A journal without entries.
    fn new(journal: Arc<Journal>) -> Self {
        Self { journal, from: START, to: START, oldest: None }
    }

    fn is_empty(&self) -> bool {
        self.from >= self.to
    }

    /// The first entries.
    pub(super) fn entries(&self) -> io::Result<Vec<Entry>> {
        self.journal.entries(self.from, self.to)
    }

    /// The records of all entries, about a megabyte at a time.
    fn chunks(self) -> impl Iterator<Item = io::Result<Vec<Record>>> {
        let mut left = Some(self);
        std::iter::from_fn(move || {
            let mut part = left.take().filter(|part| !part.is_empty())?;
            let chunk = part.entries().and_then(|entries| {
                part.from = entries.last().ok_or_else(|| damaged(&part.journal))?.end;
                Ok(entries.into_iter().flat_map(|entry| entry.records).collect())
            });
            left = chunk.is_ok().then_some(part);
            Some(chunk)
        })
    }
}

/// What was committed cannot be read.
pub(super) fn damaged(journal: &Journal) -> io::Error {
    io::Error::other(format!("{} of the log is damaged", journal.name().display()))
}

fn key(ClientId { deployment, key, id }: ClientId<'_>) -> (i64, i64, String) {
    (deployment, key, id.to_owned())
}

impl Journals {
    /// The journals that an earlier process has left, and a new one. Entries before the place `archived` are in an
    /// archive.
    pub(super) fn open(folder: &Path, archived: Place, journal_bytes: u64) -> io::Result<Self> {
        let (mut parts, mut ids) = (VecDeque::new(), HashMap::new());
        let mut newest = Journal::last_damaged(folder)?.unwrap_or(0).max(archived.journal);
        for journal in Journal::list(folder)? {
            newest = newest.max(journal.number);
            let from = match journal.number.cmp(&archived.journal) {
                std::cmp::Ordering::Less => u64::MAX,
                std::cmp::Ordering::Equal => archived.bytes,
                std::cmp::Ordering::Greater => START,
            };
            let (mut to, mut clients) = (from, Vec::new());
            if from < u64::MAX {
                let damage = journal.whole_entries(from, |entry| {
                    clients.extend(entry.records.iter().filter_map(ClientId::of).map(|client| (key(client), entry.at)));
                    to = entry.end;
                })?;
                if let Some(place) = damage {
                    let (path, kept) = (folder.join(journal.name()), journal.keep_as_damaged()?);
                    tracing::error!(
                        "{} is damaged: decisions from byte {place} on, which may have been answered, cannot be read; the file is kept as {}",
                        path.display(),
                        kept.display()
                    );
                }
            }
            let journal = Arc::new(journal);
            ids.extend(clients.into_iter().map(|(client, at)| (client, (Arc::clone(&journal), at))));
            parts.push_back(Part { journal, from, to, oldest: None });
        }
        parts.push_back(Part::new(Arc::new(Journal::create(folder, newest + 1)?)));
        let state = State { parts, ids, spare: None, failure: None, is_closing: false, archivist: None };
        Ok(Self { journal_bytes, state: Mutex::new(state), archived: Condvar::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until not too much waits for the archiving thread.
    pub(super) fn wait_for_room(&self) -> Result<(), StoreError> {
        let is_full = |state: &mut State| state.backlog() > MAX_JOURNALS * self.journal_bytes;
        let mut state = self.state();
        if !is_full(&mut state) {
            return Ok(());
        }
        let waited = self.archived.wait_timeout_while(state, MAX_WAIT, is_full);
        let (state, result) = waited.unwrap_or_else(PoisonError::into_inner);
        if !result.timed_out() {
            return Ok(());
        }
        let reason = state.failure.as_deref().unwrap_or("there are more than can be archived");
        Err(StoreError::Unavailable(format!("decisions wait to be archived: {reason}")))
    }

    /// Whether commits have to wait for the archiving thread.
    pub(super) fn is_full(&self) -> bool {
        self.state().backlog() > MAX_JOURNALS * self.journal_bytes
    }

    /// The journal that is written, and where it ends.
    pub(super) fn end(&self) -> (Arc<Journal>, u64) {
        let state = self.state();
        let last = state.last();
        (Arc::clone(&last.journal), last.to)
    }

    /// Notes that this many bytes were written at the end, with these callers' ids at these places. Goes on in the next journal if this one
    /// is full and the next one is there.
    pub(super) fn extend<'a>(&self, bytes: usize, ids: impl Iterator<Item = (ClientId<'a>, u64)>) {
        let mut state = self.state();
        let was_idle = state.parts.iter().all(Part::is_empty);
        let journal = Arc::clone(&state.last().journal);
        state.ids.extend(ids.map(|(client, at)| (key(client), (Arc::clone(&journal), at))));
        let last = state.last_mut();
        last.to += bytes as u64;
        if last.to >= self.journal_bytes
            && let Some(journal) = state.spare.take()
        {
            state.parts.push_back(Part::new(journal));
        }
        if was_idle && let Some(archivist) = &state.archivist {
            archivist.unpark();
        }
    }

    /// The first decision on a caller's id among those that are not in an archive.
    pub(super) fn find(&self, client: ClientId<'_>) -> io::Result<Option<Record>> {
        let Some((journal, at)) = self.state().ids.get(&key(client)).cloned() else { return Ok(None) };
        let entry = journal.entry_at(at)?;
        let found = entry.into_iter().flat_map(|entry| entry.records).find(|r| ClientId::of(r) == Some(client));
        found.ok_or_else(|| damaged(&journal)).map(Some)
    }

    /// The decisions that are not in an archive, in the order of their commits, about a megabyte at a time.
    fn chunks(&self) -> impl Iterator<Item = io::Result<Vec<Record>>> {
        let parts: Vec<Part> = self.state().parts.iter().filter(|part| !part.is_empty()).cloned().collect();
        parts.into_iter().flat_map(Part::chunks)
    }

    /// The decision of an id among those that are not in an archive.
    pub(super) fn decision(&self, id: Uuid) -> io::Result<Option<Record>> {
        for chunk in self.chunks() {
            if let Some(found) = chunk?.into_iter().find(|record| record.id == id) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The largest id among the decisions that are not in an archive.
    pub(super) fn largest_id(&self) -> io::Result<Option<Uuid>> {
        let largest_of = |records: Vec<Record>| records.iter().map(|record| record.id).max();
        self.chunks().try_fold(None, |largest, chunk| Ok(chunk.map(largest_of)?.max(largest)))
    }

    /// The page of a query among the decisions that are not in an archive.
    pub(super) fn page(&self, query: &LogQuery) -> io::Result<Vec<Record>> {
        let mut page: Vec<Record> = Vec::new();
        for chunk in self.chunks() {
            page.extend(chunk?.into_iter().filter(|record| query.contains(record)).map(
                |record| match query.with_inputs {
                    true => record,
                    false => Record { input: None, ..record },
                },
            ));
            page.sort_by_key(|record| record.id);
            page.truncate(query.full_length(&page).unwrap_or(page.len()));
        }
        Ok(page)
    }

    /// The oldest decisions that are not in an archive.
    pub(super) fn oldest(&self) -> Option<Part> {
        self.state().parts.iter().find(|part| !part.is_empty()).cloned()
    }

    /// Notes that the entries of a journal, whose last records are these, are in an archive up to this place.
    pub(super) fn note_archived(&self, journal: &Arc<Journal>, to: u64, records: &[Record]) {
        let mut state = self.state();
        if let Some(part) = state.parts.iter_mut().find(|part| Arc::ptr_eq(&part.journal, journal)) {
            part.from = to;
            part.oldest = records.iter().map(|record| record.id).chain(part.oldest).min();
        }
        self.archived.notify_all();
        drop(state);
        // Until an id is forgotten, its decision is found in the journal.
        let clients: Vec<ClientId<'_>> = records.iter().filter_map(ClientId::of).collect();
        for clients in clients.chunks(IDS_PER_TURN) {
            let mut state = self.state();
            clients.iter().for_each(|client| drop(state.ids.remove(&key(*client))));
        }
    }

    /// Notes why nothing can be archived, or that it can. Returns whether it could before and cannot now, or the other way round.
    pub(super) fn note_outcome(&self, failure: Option<String>) -> bool {
        let mut state = self.state();
        let before = std::mem::replace(&mut state.failure, failure);
        before.is_some() != state.failure.is_some()
    }

    /// Whether the journal that is written has archived decisions with smaller ids.
    pub(super) fn is_older_than(&self, id: Uuid) -> bool {
        self.state().last().oldest.is_some_and(|oldest| oldest < id)
    }

    /// Goes on in the next journal, if it is there. Nobody may be writing meanwhile.
    pub(super) fn begin_next(&self) {
        let mut state = self.state();
        if let Some(journal) = state.spare.take() {
            state.parts.push_back(Part::new(journal));
        }
    }

    /// Journals that are not written any more and whose decisions are all in archives.
    pub(super) fn finished(&self) -> Vec<Arc<Journal>> {
        let state = self.state();
        let old = state.parts.iter().take(state.parts.len() - 1).filter(|part| part.is_empty());
        old.map(|part| Arc::clone(&part.journal)).collect()
    }

    /// Forgets a finished journal, which is deleted.
    pub(super) fn forget(&self, journal: &Arc<Journal>) {
        self.state().parts.retain(|part| !Arc::ptr_eq(&part.journal, journal));
    }

    /// The number of the next journal if it has to be made.
    pub(super) fn missing_spare(&self) -> Option<u64> {
        let state = self.state();
        state.spare.is_none().then(|| state.last().journal.number + 1)
    }

    /// Adds the next journal.
    pub(super) fn set_spare(&self, journal: Journal) {
        self.state().spare = Some(Arc::new(journal));
    }

    /// Begins to tell this thread when there is something to archive.
    pub(super) fn set_archivist(&self, thread: Thread) {
        self.state().archivist = Some(thread);
    }

    /// Asks the archiving thread to finish.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.is_closing = true;
        if let Some(archivist) = &state.archivist {
            archivist.unpark();
        }
    }

    pub(super) fn is_closing(&self) -> bool {
        self.state().is_closing
    }

    /// Deletes the journal that is written and the next one, if all decisions are in archives.
    pub(super) fn delete(&self) -> io::Result<()> {
        let mut state = self.state();
        if state.parts.iter().all(Part::is_empty) {
            state.parts.iter().try_for_each(|part| part.journal.delete())?;
        }
        state.spare.take().map_or(Ok(()), |spare| spare.delete())
    }
}

impl State {
    fn last(&self) -> &Part {
        &self.parts[self.parts.len() - 1]
    }

    fn last_mut(&mut self) -> &mut Part {
        let last = self.parts.len() - 1;
        &mut self.parts[last]
    }

    /// The bytes that wait for the archiving thread.
    fn backlog(&self) -> u64 {
        self.parts.iter().map(|part| part.to.saturating_sub(part.from)).sum()
    }
}
