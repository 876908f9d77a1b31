//! The boundary at which panics of parsers become errors.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Error, Result};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is inside a parser whose panic becomes an [`Error`], so that a panic hook need not print it.
#[must_use]
pub fn is_guarded() -> bool {
    GUARDED.get()
}

/// Runs a parser and turns its panic into an error.
///
/// The parsers of Parquet, Arrow IPC and zip are libraries that index into damaged files in many places: overwriting bytes of good files
/// makes arrow-buffer, arrow-ipc and parquet panic within minutes (the tests of damaged files do so). A service must survive any upload, so
/// the boundary is here, once for all formats. Going on is safe: the reader that panicked is dropped unused, with the rows it appended.
///
/// A stack overflow or a failed allocation cannot be caught. Readers avoid both: they check claimed sizes and depths against the bytes of
/// the file before using them.
pub(crate) fn guarded<T>(file: &str, parse: impl FnOnce() -> Result<T>) -> Result<T> {
    let before = GUARDED.replace(true);
    let parsed = catch_unwind(AssertUnwindSafe(parse));
    GUARDED.set(before);
    parsed.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let message = text.and_then(|text| text.lines().next()).unwrap_or_default();
        Err(Error::file(file, format!("is damaged: its parser gave up ({message})")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_of_parsers_become_errors_and_are_marked_for_hooks() {
        assert!(!is_guarded());
        let error = guarded("a.parquet", || -> Result<()> {
            assert!(is_guarded());
            panic!("index out of bounds\nsecond line");
        });
        let error = error.unwrap_err().to_string();
        assert_eq!(error, "a.parquet: is damaged: its parser gave up (index out of bounds)");
        assert!(!is_guarded());
    }
}
