//! Progress reports while trees are grown.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of progress steps of a whole fit.
pub(crate) const STEPS: u64 = 1000;

/// Calls a function [`STEPS`] times during some work, after equal parts of it.
pub(crate) struct Progress<'a> {
    step: &'a (dyn Fn() + Sync),
    /// The total work, in a unit chosen by the caller.
    work: u64,
    done: AtomicU64,
    reported: AtomicU64,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(work: u64, step: &'a (dyn Fn() + Sync)) -> Self {
        Self { step, work: work.max(1), done: AtomicU64::new(0), reported: AtomicU64::new(0) }
    }

    /// Adds finished work.
    pub(crate) fn advance(&self, work: u64) {
        self.report(self.done.fetch_add(work, Ordering::Relaxed) + work);
    }

    /// Raises the finished work to `work`, for work that turned out to be unnecessary.
    pub(crate) fn reach(&self, work: u64) {
        self.done.fetch_max(work, Ordering::Relaxed);
        self.report(work);
    }

    fn report(&self, done: u64) {
        let due = (u128::from(done.min(self.work)) * u128::from(STEPS) / u128::from(self.work)) as u64;
        let more = |reported: u64| (reported < due).then_some(reported + 1);
        while self.reported.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok() {
            (self.step)();
        }
    }
}

impl fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").field("work", &self.work).field("done", &self.done).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_proportional_to_work_and_complete_at_the_end() {
        let calls = AtomicU64::new(0);
        let step = || {
            calls.fetch_add(1, Ordering::Relaxed);
        };
        let progress = Progress::new(7, &step);
        let mut seen = vec![0];
        for _ in 0..3 {
            progress.advance(1);
            seen.push(calls.load(Ordering::Relaxed));
        }
        progress.reach(6);
        seen.push(calls.load(Ordering::Relaxed));
        // Less than is done already, and more than the total.
        progress.reach(2);
        progress.advance(9);
        seen.push(calls.load(Ordering::Relaxed));
        assert_eq!(seen, [0, 142, 285, 428, 857, STEPS]);
    }
}
