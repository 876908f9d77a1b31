//! The pipeline of decisions: one thread reads batches, one decides them on all cores, and the caller writes them.
//!
//! The channels between them hold a few batches; the order is the input's.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::bail;
use pointsman::certify::Judgement;
use pointsman::monitor::Traffic;
use pointsman::policy::{CapRule, CapUse};
use pointsman::{Decisions, Policy};
use pointsman_table::{Batches, Column, DecisionExtras, Frame, InputColumn, Sums};

use crate::errors;
use crate::failure::Bug;
use crate::interrupt::Writing;
use crate::words::table::divided_rows;

/// The number of batches that a channel holds.
const BATCHES_AHEAD: usize = 2;
/// The time between checks for an interrupt while waiting.
const INTERRUPT_CHECK: Duration = Duration::from_millis(100);

/// A batch as read, and the share of the file read so far.
type Read = anyhow::Result<(Frame, Option<f64>)>;

/// A batch as decided.
#[derive(Debug)]
pub(super) struct Decided {
    /// The columns of the table, if they are kept.
    pub(super) inputs: Vec<(String, InputColumn)>,
    pub(super) columns: Vec<Column>,
    pub(super) decisions: Decisions,
    /// The use of the caps so far.
    pub(super) caps: Vec<CapUse>,
    /// Rows whose probabilities did not sum to one.
    pub(super) divided: usize,
    /// The sums that `--normalize` divided by.
    pub(super) sums: Option<Sums>,
    pub(super) read: Option<f64>,
}

/// The threads that read and decide, and the channel of their results.
#[derive(Debug)]
pub(super) struct Pipeline {
    decided: Receiver<anyhow::Result<Decided>>,
    threads: Vec<(&'static str, JoinHandle<()>)>,
}

/// The state that decides batches.
#[derive(Debug)]
pub(super) struct Decider {
    pub(super) policy: Arc<Policy>,
    pub(super) judgement: Option<Arc<Judgement>>,
    pub(super) rule: Option<CapRule>,
    /// Whether ids are among the decisions' columns.
    pub(super) with_ids: bool,
    /// The cells that queries fall into; none for a policy without calibration rows to compare them with.
    pub(super) traffic: Option<Arc<Mutex<Traffic>>>,
}

impl Pipeline {
    pub(super) fn start(batches: Batches, decider: Decider) -> Self {
        let (read, frames) = sync_channel(BATCHES_AHEAD);
        let (decide, decided) = sync_channel(BATCHES_AHEAD);
        // These threads are not joined on an error: they may be waiting for input that never comes.
        let threads = vec![
            ("reading", thread::spawn(move || read_all(batches, &read))),
            ("deciding", thread::spawn(move || decider.decide_all(frames, &decide))),
        ];
        Self { decided, threads }
    }

    /// The next batch; `None` after the last.
    pub(super) fn next(&mut self, writing: &Writing) -> anyhow::Result<Option<Decided>> {
        loop {
            writing.check()?;
            match self.decided.recv_timeout(INTERRUPT_CHECK) {
                Ok(decided) => return decided.map(Some),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        // A panic also closes the channel, with rows missing.
        for (what, thread) in self.threads.drain(..) {
            thread.join().map_err(|_| Bug(what))?;
        }
        Ok(None)
    }
}

/// Reads until the end, the first error, or the receiver is dropped.
fn read_all(mut batches: Batches, read: &SyncSender<Read>) {
    while let Some(frame) = batches.next() {
        let share = batches.progress().fraction();
        let frame = frame.map(|frame| (frame, share)).map_err(anyhow::Error::from);
        let failed = frame.is_err();
        if read.send(frame).is_err() || failed {
            return;
        }
    }
}

impl Decider {
    /// Decides until the end, the first error, or the receiver is dropped.
    fn decide_all(mut self, frames: Receiver<Read>, decide: &SyncSender<anyhow::Result<Decided>>) {
        for read in frames {
            let decided = read.and_then(|(frame, read)| self.decide(frame, read));
            let failed = decided.is_err();
            if decide.send(decided).is_err() || failed {
                return;
            }
        }
    }

    fn decide(&mut self, frame: Frame, read: Option<f64>) -> anyhow::Result<Decided> {
        let policy = &self.policy;
        let (divided, sums) = (divided_rows(&frame.table), frame.sums);
        let mut decisions = policy.decide_batch(&frame.table).map_err(|error| errors::in_rows(error, &frame))?;
        let Frame { table, ids, columns: inputs, .. } = frame;
        if let Some(ids) = &ids {
            // At the margin of a limit, queries of the same content are drawn by their ids.
            decisions.draw_by_ids(policy, ids);
        }
        if let Some(traffic) = &self.traffic {
            traffic.lock().map_err(|_| Bug("counting"))?.add(policy, &table, &decisions)?;
        }
        if let Some(rule) = &mut self.rule {
            let keys = policy.cap_keys_of_table(&table, ids.as_deref())?;
            policy.apply_caps(rule, &mut decisions, &keys);
            if !rule.is_kept() {
                bail!("the table changed while it was read: --cap reads it twice; decide a copy of it");
            }
        }
        let answers = policy.answers(&decisions, &table.predictions());
        let extras = DecisionExtras::new(self.judgement.as_deref(), self.rule.is_some());
        let ids = ids.filter(|_| self.with_ids);
        let columns = pointsman_table::decision_values(policy, &decisions, &answers, extras, ids);
        let caps = self.rule.as_ref().map(CapRule::uses).unwrap_or_default();
        Ok(Decided { inputs, columns, decisions, caps, divided, sums, read })
    }
}
