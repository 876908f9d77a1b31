//! Decisions that wait to be committed: a bounded queue, which one writer at a time empties.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::{Appended, Record, StoreError};

/// The most rows that are committed together, so that no caller waits for many others.
const MAX_ROWS_PER_COMMIT: usize = 1024;

/// Records to be committed, and who waits for it.
#[derive(Debug)]
pub(super) struct Append {
    pub(super) records: Arc<Vec<Record>>,
    /// The versions whose queries are compared with those of the records.
    pub(super) alike: Arc<[u32]>,
    reply: oneshot::Sender<Result<Vec<Appended>, StoreError>>,
    /// The places of the records in the queue, which become free after the commit.
    places: OwnedSemaphorePermit,
}

impl Append {
    /// Tells whoever waits. By then, the records are given up and their places are free, so that whatever follows does not find them
    /// still waiting.
    fn answer(self, outcome: Result<Vec<Appended>, StoreError>) {
        let Self { records, reply, places, .. } = self;
        drop((records, places));
        // Nobody waits if the caller has gone; the decision is in the log all the same.
        let _ = reply.send(outcome);
    }
}

/// Decisions that wait to be committed.
#[derive(Debug)]
pub(super) struct Queue {
    limit: usize,
    places: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Append>,
    /// Whether a writer takes what waits, or will soon.
    has_writer: bool,
    /// Whether nothing more is taken.
    is_closed: bool,
}

impl Queue {
    /// A queue of at most this many rows.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, places: Arc::new(Semaphore::new(limit)), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a writer has committed the records, or refuses them at once if the queue is full.
    ///
    /// `start_writer` is called if there is no writer: one must then call [`Queue::next_batch`] until it returns nothing.
    pub(super) async fn append(
        &self,
        records: Arc<Vec<Record>>,
        alike: Arc<[u32]>,
        start_writer: impl FnOnce(),
    ) -> Result<Vec<Appended>, StoreError> {
        let full = || StoreError::QueueFull { limit: self.limit };
        let closed = || StoreError::Unavailable("it is closed".to_owned());
        let rows = u32::try_from(records.len()).map_err(|_| full())?;
        let places = Arc::clone(&self.places).try_acquire_many_owned(rows).map_err(|_| full())?;
        let (reply, answer) = oneshot::channel();
        let had_writer = {
            let mut state = self.state();
            if state.is_closed {
                return Err(closed());
            }
            state.waiting.push_back(Append { records, alike, reply, places });
            std::mem::replace(&mut state.has_writer, true)
        };
        if !had_writer {
            start_writer();
        }
        answer.await.map_err(|_| closed())?
    }

    /// What waits, if anything does; otherwise the queue has no writer any more.
    pub(super) fn next_batch(&self) -> Option<Vec<Append>> {
        let mut state = self.state();
        let mut rows = 0;
        let is_within = |append: &Append| {
            let is_within = rows < MAX_ROWS_PER_COMMIT;
            rows += append.records.len();
            is_within
        };
        let count = state.waiting.iter().map(is_within).take_while(|is_within| *is_within).count();
        state.has_writer = count > 0;
        (count > 0).then(|| state.waiting.drain(..count).collect())
    }

    /// Whether nothing waits; if so, the queue has no writer any more.
    pub(super) fn is_done(&self) -> bool {
        let mut state = self.state();
        state.has_writer = !state.waiting.is_empty();
        !state.has_writer
    }

    /// The number of rows in the queue.
    pub(super) fn rows(&self) -> usize {
        self.limit - self.places.available_permits().min(self.limit)
    }

    /// Takes nothing more. What waits is still committed.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
    }

    /// Whether nothing more is taken.
    pub(super) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// Closes the queue and gives up what waits, unless the writer that holds this ends without a panic: nobody would commit it.
    pub(super) fn close_on_panic(&self) -> CloseOnPanic<'_> {
        CloseOnPanic(self)
    }
}

/// See [`Queue::close_on_panic`].
pub(super) struct CloseOnPanic<'a>(&'a Queue);

impl Drop for CloseOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut state = self.0.state();
            state.is_closed = true;
            state.waiting.clear();
        }
    }
}

/// What became of each request of a batch: its records are written, or refused without keeping the others from being written.
pub(super) type Outcomes = Vec<Result<Vec<Appended>, StoreError>>;

/// Logs that decisions cannot be committed, and that they are again: once each.
#[derive(Debug, Default)]
pub(super) struct FailureLog {
    is_failing: bool,
}

impl FailureLog {
    /// Notes how a commit went.
    pub(super) fn note(&mut self, outcome: &Result<Outcomes, StoreError>) {
        if self.has_changed(outcome) {
            match outcome {
                Err(error) => tracing::error!(%error, "decisions cannot be committed"),
                Ok(_) => tracing::info!("decisions are committed again"),
            }
        }
    }

    /// Whether decisions could be committed before and cannot now, or the other way round. A commit that writes nothing, such as that of a
    /// check of readiness, does not show that they can.
    fn has_changed(&mut self, outcome: &Result<Outcomes, StoreError>) -> bool {
        let is_written =
            |outcomes: &Outcomes| outcomes.iter().flatten().flatten().any(|one| *one == Appended::Committed);
        let has_changed = match outcome {
            Err(_) => !self.is_failing,
            Ok(outcomes) => self.is_failing && is_written(outcomes),
        };
        self.is_failing ^= has_changed;
        has_changed
    }
}

/// Tells everybody of a batch how its commit went.
pub(super) fn reply(batch: Vec<Append>, outcome: Result<Outcomes, StoreError>) {
    match outcome {
        Ok(appended) => {
            for (append, appended) in batch.into_iter().zip(appended) {
                append.answer(appended);
            }
        }
        Err(error) => {
            for append in batch {
                append.answer(Err(error.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_ends_with_the_first_decision_that_is_committed() {
        let mut log = FailureLog::default();
        let (failed, nothing) = (Err(StoreError::Unavailable("full".to_owned())), Ok(vec![Ok(Vec::new())]));
        let written = Ok(vec![Ok(Vec::new()), Ok(vec![Appended::Committed])]);
        let outcomes = [&nothing, &written, &failed, &nothing, &failed, &nothing, &written, &written, &failed];
        let changes: Vec<bool> = outcomes.into_iter().map(|outcome| log.has_changed(outcome)).collect();
        assert_eq!(changes, [false, false, true, false, false, false, true, false, true]);
    }
}
