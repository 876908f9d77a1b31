//! Decisions that wait to be committed: a bounded queue, which one writer empties.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::{Appended, Record, StoreError};

/// The most rows that are committed together, so that no caller waits for many others.
const MAX_ROWS_PER_COMMIT: usize = 1024;

/// Records to be committed, and who waits for it.
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

/// The end of the queue where decisions come in.
#[derive(Debug)]
pub(super) struct Queue {
    limit: usize,
    places: Arc<Semaphore>,
    /// `None` once the store is closed.
    sender: Mutex<Option<mpsc::Sender<Append>>>,
}

/// The end of the queue where the writer takes them.
#[derive(Debug)]
pub(super) struct Waiting(mpsc::Receiver<Append>);

impl Queue {
    /// A queue of at most this many rows.
    pub(super) fn new(limit: usize) -> (Self, Waiting) {
        let (sender, receiver) = mpsc::channel(limit.max(1));
        let sender = Mutex::new(Some(sender));
        (Self { limit, places: Arc::new(Semaphore::new(limit)), sender }, Waiting(receiver))
    }

    /// Waits until the writer has committed the records, or refuses them at once if the queue is full.
    pub(super) async fn append(
        &self,
        records: Arc<Vec<Record>>,
        alike: Arc<[u32]>,
    ) -> Result<Vec<Appended>, StoreError> {
        let full = || StoreError::QueueFull { limit: self.limit };
        let closed = || StoreError::Unavailable("it is closed".to_owned());
        let rows = u32::try_from(records.len()).map_err(|_| full())?;
        let places = Arc::clone(&self.places).try_acquire_many_owned(rows).map_err(|_| full())?;
        let (reply, answer) = oneshot::channel();
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(closed)?;
        sender.try_send(Append { records, alike, reply, places }).map_err(|_| full())?;
        drop(sender);
        answer.await.map_err(|_| closed())?
    }

    /// The number of rows in the queue.
    pub(super) fn rows(&self) -> usize {
        self.limit - self.places.available_permits().min(self.limit)
    }

    /// Takes nothing more; the writer ends when it has committed the rest.
    pub(super) fn close(&self) {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Waiting {
    /// What waits now, or the next that comes; `None` once the queue is closed and empty.
    pub(super) async fn next_batch(&mut self) -> Option<Vec<Append>> {
        let first = self.0.recv().await?;
        Some(self.fill(first))
    }

    /// The same on a thread of its own.
    pub(super) fn next_batch_blocking(&mut self) -> Option<Vec<Append>> {
        let first = self.0.blocking_recv()?;
        Some(self.fill(first))
    }

    fn fill(&mut self, first: Append) -> Vec<Append> {
        let mut rows = first.records.len();
        let mut batch = vec![first];
        while rows < MAX_ROWS_PER_COMMIT {
            let Ok(next) = self.0.try_recv() else { break };
            rows += next.records.len();
            batch.push(next);
        }
        batch
    }
}

/// What became of each request of a batch: its records are written, or refused without keeping the others from being written.
pub(super) type Outcomes = Vec<Result<Vec<Appended>, StoreError>>;

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
