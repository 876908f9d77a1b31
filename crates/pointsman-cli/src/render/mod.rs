//! Drawing for humans: tables, numbers, plots, colours, remarks.

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

/// With less than this nothing can be drawn.
const FEWEST_COLUMNS: usize = 30;

/// Leaves out remarks and progress from now on.
pub(crate) fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Something the user should know, on standard error.
pub(crate) fn warn(message: impl AsRef<str>) {
    const INDENT: usize = "warning: ".len();
    let message = printable(message.as_ref());
    if let Ok(mut warnings) = WARNINGS.lock() {
        warnings.push(message.clone());
    }
    if is_quiet() {
        return;
    }
    let text = format!("{WARN}warning{WARN:#}{BOLD}:{BOLD:#} {message}");
    // Scripts get one line, people as many as their terminal needs.
    let room = terminal_size::terminal_size_of(std::io::stderr())
        .map_or(usize::MAX, |(width, _)| usize::from(width.0).max(FEWEST_COLUMNS));
    let mut err = anstream::stderr().lock();
    for (place, line) in wrap::lines(&text, room, room.saturating_sub(INDENT)).iter().enumerate() {
        let indent = if place == 0 { 0 } else { INDENT };
        // If standard error is gone there is nobody to warn.
        let _ = writeln!(err, "{:indent$}{line}", "");
    }
}

/// Standard output for people: nothing if they want to see errors only.
pub(crate) fn stdout() -> Box<dyn Write> {
    if is_quiet() { Box::new(std::io::sink()) } else { Box::new(anstream::stdout().lock()) }
}

/// What users have been warned of so far, whether it was shown or not.
pub(crate) fn warnings() -> Vec<String> {
    WARNINGS.lock().map(|warnings| warnings.clone()).unwrap_or_default()
}

/// How many columns there are to draw in: what COLUMNS says, else the terminal's width. `None` if output goes elsewhere, where there is room.
pub(crate) fn columns() -> Option<usize> {
    let given = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok()).filter(|&n: &usize| n > 0);
    let seen = || terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
    given.or_else(seen).map(|n| n.max(FEWEST_COLUMNS))
}

/// Leaves out what to do next, where something else says so.
pub(crate) fn set_guided(guided: bool) {
    GUIDED.store(guided, Ordering::Relaxed);
}

/// What to do next: a remark and one or more command lines.
pub(crate) fn next_step(mut out: impl Write, remark: &str, commands: &[String]) -> std::io::Result<()> {
    if GUIDED.load(Ordering::Relaxed) {
        return Ok(());
    }
    writeln!(out)?;
    paragraph(&mut out, 0, &format!("{DIM}{remark}{DIM:#}"))?;
    commands.iter().try_for_each(|command| wrap::command(&mut out, 2, &format!("{BOLD}{command}{BOLD:#}")))
}

/// Text from outside as a terminal may safely show it: control characters are replaced.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
