//! How a store writes its log.

use std::sync::Arc;
use std::time::Duration;

/// How a store writes its log.
#[derive(Clone)]
#[non_exhaustive]
pub struct Settings {
    /// Whether each commit waits until the disk has it, so that it also survives a loss of power.
    pub is_durable: bool,
    /// The most rows that may wait to be committed.
    pub queue_rows: usize,
    /// The size at which the log goes on in a new journal; of use to SQLite only.
    pub segment_bytes: u64,
    /// Called after each commit with the time that it took.
    pub observe_commit: Arc<dyn Fn(Duration) + Send + Sync>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { is_durable: false, queue_rows: 1 << 16, segment_bytes: 64 << 20, observe_commit: Arc::new(|_| {}) }
    }
}

impl Settings {
    /// The usual settings.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether each commit waits until the disk has it.
    #[must_use]
    pub fn durable(self, is_durable: bool) -> Self {
        Self { is_durable, ..self }
    }

    /// The most rows that may wait to be committed.
    #[must_use]
    pub fn queue_rows(self, queue_rows: usize) -> Self {
        Self { queue_rows, ..self }
    }

    /// The size at which the log goes on in a new journal.
    #[must_use]
    pub fn segment_bytes(self, segment_bytes: u64) -> Self {
        Self { segment_bytes, ..self }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { is_durable, queue_rows, segment_bytes, .. } = self;
        f.debug_struct("Settings")
            .field("is_durable", is_durable)
            .field("queue_rows", queue_rows)
            .field("segment_bytes", segment_bytes)
            .finish_non_exhaustive()
    }
}
