//! Long computations without the interpreter lock, which Ctrl-C interrupts.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The time between two checks for Ctrl-C.
const INTERRUPT_CHECK: Duration = Duration::from_millis(50);

/// The number of steps done, and whether the work should stop.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    done: AtomicU64,
    stop: AtomicBool,
}

impl Steps {
    /// Counts one step. Unwinds if the work was interrupted.
    pub(crate) fn step(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) {
            // Unwinds to `run` through all worker threads. The core has no shared state that could stay half updated.
            resume_unwind(Box::new("interrupted"));
        }
    }
}

/// Runs work on another thread. Meanwhile, this thread checks for Ctrl-C and calls `progress` with the number of new steps.
///
/// Interrupted work that has no steps runs to its end in the background; its result is dropped.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Steps) -> T + Send + 'static,
) -> PyResult<T> {
    let steps = Arc::new(Steps::default());
    let (send, mut receive) = sync_channel(1);
    let worker = Arc::clone(&steps);
    thread::spawn(move || {
        let result = catch_unwind(AssertUnwindSafe(|| work(&worker)));
        // The receiver is gone if the work was interrupted.
        let _ = send.send(result);
    });
    let mut reported = 0;
    loop {
        let waiting = &mut receive;
        let arrived = py.detach(move || waiting.recv_timeout(INTERRUPT_CHECK));
        let checked = report_progress(progress, &steps, &mut reported).and_then(|()| py.check_signals());
        if let Err(interrupt) = checked {
            steps.stop.store(true, Ordering::Relaxed);
            return Err(interrupt);
        }
        match arrived {
            Ok(Ok(result)) => return Ok(result),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("pointsman failed: this is a bug, please report it"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Calls `progress` with the number of steps done since the last call, if there are any.
fn report_progress(progress: Option<&Bound<'_, PyAny>>, steps: &Steps, reported: &mut u64) -> PyResult<()> {
    let done = steps.done.load(Ordering::Relaxed);
    if let Some(progress) = progress.filter(|_| done > *reported) {
        progress.call1((done - *reported,))?;
        *reported = done;
    }
    Ok(())
}
