//! The core's tests that need no files but the golden cases.

mod golden;
