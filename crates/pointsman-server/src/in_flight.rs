//! Decisions that have an id and are not committed yet.
//!
//! Ids are made before the commit, so that a decision may be committed after another one with a larger id. A reader who follows the log
//! by ids would miss it. So nobody reads beyond the smallest id that this process may still commit.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use uuid::Uuid;

use crate::clock::Ids;
use crate::store::Record;

/// Decisions that have an id and are not committed yet, in the order of their ids.
#[derive(Debug)]
pub(crate) struct InFlight {
    ids: Ids,
    /// The first id of each batch of records. A batch is in flight as long as somebody holds it: the request, and the queue of the store
    /// even if the request has gone.
    batches: Mutex<VecDeque<(Uuid, Weak<Vec<Record>>)>>,
}

impl InFlight {
    /// Nothing yet; ids come from here.
    pub(crate) fn new(ids: Ids) -> Self {
        Self { ids, batches: Mutex::default() }
    }

    /// Makes records with new ids.
    pub(crate) fn make(&self, make: impl FnOnce(&Ids) -> Vec<Record>) -> Arc<Vec<Record>> {
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        drop_finished(&mut batches);
        // No id is made by others meanwhile.
        let records = Arc::new(make(&self.ids));
        if let Some(first) = records.first() {
            batches.push_back((first.id, Arc::downgrade(&records)));
        }
        records
    }

    /// An id before which this process commits nothing any more.
    pub(crate) fn first_open_id(&self) -> Uuid {
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        drop_finished(&mut batches);
        // Without any in flight it is a new id, since all later ones are larger.
        batches.front().map_or_else(|| self.ids.next().0, |(first, _)| *first)
    }
}

fn drop_finished(batches: &mut VecDeque<(Uuid, Weak<Vec<Record>>)>) {
    while batches.front().is_some_and(|(_, records)| records.strong_count() == 0) {
        batches.pop_front();
    }
}
