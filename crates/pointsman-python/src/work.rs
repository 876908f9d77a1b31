//! Work without the interpreter's lock, that Ctrl-C ends.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// How often Ctrl-C is looked for.
const PATIENCE: Duration = Duration::from_millis(50);

/// How far work has come, and whether anybody still waits for it.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    done: AtomicU64,
    stop: AtomicBool,
}

impl Steps {
    /// One more step is done. Does not return if nobody waits any more.
    pub(crate) fn step(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) {
            // Unwinds to `run` through all threads at work. The core shares nothing that could be left half done.
            resume_unwind(Box::new("interrupted"));
        }
    }
}

/// Works on a thread of its own; this one looks for Ctrl-C meanwhile and tells `progress` how many steps are done.
///
/// Work that has no steps is left to itself when it is interrupted: it ends unseen.
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
        // Nobody may be listening any more.
        let _ = send.send(result);
    });
    let mut told = 0;
    loop {
        let waiting = &mut receive;
        let arrived = py.detach(move || waiting.recv_timeout(PATIENCE));
        let news = tell(progress, &steps, &mut told).and_then(|()| py.check_signals());
        if let Err(interrupt) = news {
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

fn tell(progress: Option<&Bound<'_, PyAny>>, steps: &Steps, told: &mut u64) -> PyResult<()> {
    let done = steps.done.load(Ordering::Relaxed);
    if let Some(progress) = progress.filter(|_| done > *told) {
        progress.call1((done - *told,))?;
        *told = done;
    }
    Ok(())
}
