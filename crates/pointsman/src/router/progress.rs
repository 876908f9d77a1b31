//! How far learning has come.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Steps that any learning takes.
pub(crate) const STEPS: u64 = 1000;

/// Calls a function [`STEPS`] times while work is done, after equal parts of it.
pub(crate) struct Progress<'a> {
    step: &'a (dyn Fn() + Sync),
    /// All the work, in a unit of the caller's.
    work: u64,
    done: AtomicU64,
    told: AtomicU64,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(work: u64, step: &'a (dyn Fn() + Sync)) -> Self {
        Self { step, work: work.max(1), done: AtomicU64::new(0), told: AtomicU64::new(0) }
    }

    /// So much more is done.
    pub(crate) fn advance(&self, work: u64) {
        self.tell(self.done.fetch_add(work, Ordering::Relaxed) + work);
    }

    /// So much is done in all: what was left out of it need not be.
    pub(crate) fn reach(&self, work: u64) {
        self.done.fetch_max(work, Ordering::Relaxed);
        self.tell(work);
    }

    fn tell(&self, done: u64) {
        let wanted = (u128::from(done.min(self.work)) * u128::from(STEPS) / u128::from(self.work)) as u64;
        let more = |told: u64| (told < wanted).then_some(told + 1);
        while self.told.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok() {
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
    fn steps_follow_the_work_and_are_complete_at_its_end() {
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
        // Less than is done already, and more than there is.
        progress.reach(2);
        progress.advance(9);
        seen.push(calls.load(Ordering::Relaxed));
        assert_eq!(seen, [0, 142, 285, 428, 857, STEPS]);
    }
}
