//! Progress bars on standard error, if it is a terminal, after a second.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::render;

const SHOWN_AFTER: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(120);

/// A bar that appears if something takes long, and disappears when it is dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Dropped with the bar; wakes the thread that would show it.
    _alive: Option<Sender<()>>,
}

impl Progress {
    /// A bar of `total` steps.
    pub(crate) fn bar(what: impl Into<String>, total: u64) -> Self {
        Self::new(what.into(), Some(total), "{msg} {wide_bar:.green/dim} {percent:>3} % {eta:>5}")
    }

    /// A spinner, for an unknown number of steps.
    pub(crate) fn spinner(what: impl Into<String>) -> Self {
        Self::new(what.into(), None, "{spinner} {msg} {elapsed}")
    }

    /// A count of rows, for an unknown number of rows, as on standard input.
    pub(crate) fn rows(what: impl Into<String>) -> Self {
        Self::new(what.into(), None, "{spinner} {msg} {human_pos} rows {elapsed}")
    }

    fn new(what: String, total: Option<u64>, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        if render::is_quiet() {
            return Self { bar, _alive: None };
        }
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("━╸─"));
        bar.set_message(what);
        let (alive, ended) = channel::<()>();
        let shown = bar.clone();
        thread::spawn(move || {
            if ended.recv_timeout(SHOWN_AFTER) == Err(RecvTimeoutError::Timeout) {
                if shown.is_finished() {
                    return;
                }
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(TICK);
            }
        });
        Self { bar, _alive: Some(alive) }
    }

    /// Advances by one step.
    pub(crate) fn step(&self) {
        self.bar.inc(1);
    }

    /// Sets the number of steps done.
    pub(crate) fn set(&self, done: u64) {
        self.bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
