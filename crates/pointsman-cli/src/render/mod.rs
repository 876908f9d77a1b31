//! Drawing for humans: tables, numbers, plots, colours, remarks.

pub(crate) mod number;
pub(crate) mod plot;
pub(crate) mod style;
pub(crate) mod table;

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use style::{BOLD, DIM, WARN};

static QUIET: AtomicBool = AtomicBool::new(false);

/// Leaves out remarks and progress from now on.
pub(crate) fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Something the user should know, on standard error.
pub(crate) fn warn(message: impl AsRef<str>) {
    if !is_quiet() {
        // If standard error is gone there is nobody to warn.
        let _ =
            writeln!(anstream::stderr().lock(), "{WARN}warning{WARN:#}{BOLD}:{BOLD:#} {}", printable(message.as_ref()));
    }
}

/// What to do next: a remark and a command line.
pub(crate) fn next_step(mut out: impl Write, remark: &str, command: &str) -> std::io::Result<()> {
    writeln!(out, "{DIM}{remark}{DIM:#}\n  {BOLD}{command}{BOLD:#}")
}

/// Text from outside as a terminal may safely show it: control characters are replaced.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
