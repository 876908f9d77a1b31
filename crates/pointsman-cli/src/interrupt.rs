//! Interrupts and termination requests: the process stops without leaving half-written files.
//!
//! While a [`Writing`] is alive an interrupt only sets a flag. The writer checks it between batches, stops, and drops its
//! temporary file. A second interrupt ends the process at once.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static WRITERS: AtomicUsize = AtomicUsize::new(0);

/// The conventional exit code of a process ended by an interrupt.
const EXIT_CODE: i32 = 130;

/// The user interrupted.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Installs the handler.
pub(crate) fn install() {
    // Without a handler an interrupt ends the process too, but may leave a temporary file.
    let _ = ctrlc::set_handler(|| {
        let again = INTERRUPTED.swap(true, Ordering::SeqCst);
        if again || WRITERS.load(Ordering::SeqCst) == 0 {
            std::process::exit(EXIT_CODE);
        }
    });
}

/// Held while a temporary file exists.
#[derive(Debug)]
pub(crate) struct Writing;

impl Writing {
    pub(crate) fn start() -> Self {
        WRITERS.fetch_add(1, Ordering::SeqCst);
        Self
    }

    /// Fails if the user interrupted.
    pub(crate) fn check(&self) -> Result<(), Interrupted> {
        if INTERRUPTED.load(Ordering::SeqCst) { Err(Interrupted) } else { Ok(()) }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        WRITERS.fetch_sub(1, Ordering::SeqCst);
    }
}
