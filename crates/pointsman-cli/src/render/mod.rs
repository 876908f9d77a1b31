//! Output for the terminal: tables, numbers, plots, colours, remarks.

pub(crate) mod matrix;
pub(crate) mod number;
pub(crate) mod plot;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod wrap;

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use style::{BOLD, DIM, WARN};
pub(crate) use wrap::{entry, paragraph};

static QUIET: AtomicBool = AtomicBool::new(false);
static GUIDED: AtomicBool = AtomicBool::new(false);
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The least number of columns that anything is drawn in.
const MIN_COLUMNS: usize = 30;

/// Turns remarks and progress off or on.
pub(crate) fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints a warning on standard error and keeps it for JSON.
pub(crate) fn warn(message: impl AsRef<str>) {
    const INDENT: usize = "warning: ".len();
    let message = printable(message.as_ref());
    if let Ok(mut warnings) = WARNINGS.lock() {
        warnings.push(message.clone());
    }
    if is_quiet() {
        return;
    }
    write_message(&format!("{WARN}warning{WARN:#}{BOLD}:{BOLD:#} {message}"), INDENT);
}

/// Writes a message to standard error: scripts get one line, people as many as their terminal needs.
pub(crate) fn write_message(text: &str, indent: usize) {
    let room = terminal_size::terminal_size_of(std::io::stderr())
        .map_or(usize::MAX, |(width, _)| usize::from(width.0).max(MIN_COLUMNS));
    let mut err = anstream::stderr().lock();
    for (place, line) in wrap::lines(text, room, room.saturating_sub(indent)).iter().enumerate() {
        let indent = if place == 0 { 0 } else { indent };
        // A closed standard error is ignored.
        let _ = writeln!(err, "{:indent$}{line}", "");
    }
}

/// Prints warnings, one sentence each.
pub(crate) fn warn_all(messages: impl IntoIterator<Item = String>) {
    messages.into_iter().for_each(warn);
}

/// Standard output for people; discarded with `--quiet`.
pub(crate) fn stdout() -> Box<dyn Write> {
    if is_quiet() { Box::new(std::io::sink()) } else { Box::new(anstream::stdout().lock()) }
}

/// The warnings so far, whether they were printed or not.
pub(crate) fn warnings() -> Vec<String> {
    WARNINGS.lock().map(|warnings| warnings.clone()).unwrap_or_default()
}

/// The number of columns to draw in: `COLUMNS`, else the terminal's width. `None` without limit, if output goes elsewhere.
pub(crate) fn columns() -> Option<usize> {
    let given = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok()).filter(|&n: &usize| n > 0);
    let seen = || terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
    given.or_else(seen).map(|n| n.max(MIN_COLUMNS))
}

/// Turns next steps off or on: the demo has its own.
pub(crate) fn set_guided(guided: bool) {
    GUIDED.store(guided, Ordering::Relaxed);
}

/// Prints what to do next: a remark and one or more command lines.
pub(crate) fn next_step(mut out: impl Write, remark: &str, commands: &[String]) -> std::io::Result<()> {
    if GUIDED.load(Ordering::Relaxed) {
        return Ok(());
    }
    writeln!(out)?;
    paragraph(&mut out, 0, &format!("{DIM}{remark}{DIM:#}"))?;
    commands.iter().try_for_each(|command| wrap::command(&mut out, 2, &format!("{BOLD}{command}{BOLD:#}")))
}

/// Prints a heading after a blank line.
pub(crate) fn heading(mut out: impl Write, text: &str) -> std::io::Result<()> {
    writeln!(out)?;
    paragraph(out, 0, &format!("{BOLD}{text}{BOLD:#}"))
}

/// Text from outside with control characters replaced, safe for a terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
