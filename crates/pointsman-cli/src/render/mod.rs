//! Drawing for humans: tables, numbers, plots, colours, remarks.

pub(crate) mod matrix;
pub(crate) mod number;
pub(crate) mod plot;
pub(crate) mod style;
pub(crate) mod table;

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use style::{BOLD, DIM, WARN};
use unicode_width::UnicodeWidthStr;

static QUIET: AtomicBool = AtomicBool::new(false);
static GUIDED: AtomicBool = AtomicBool::new(false);
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Paragraphs are broken here, or before where there is less room.
const COLUMNS: usize = 96;

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
    if let Ok(mut warnings) = WARNINGS.lock() {
        warnings.push(printable(message.as_ref()));
    }
    if !is_quiet() {
        // If standard error is gone there is nobody to warn.
        let _ =
            writeln!(anstream::stderr().lock(), "{WARN}warning{WARN:#}{BOLD}:{BOLD:#} {}", printable(message.as_ref()));
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

/// How many columns there are to draw in: as COLUMNS says, or the terminal. `None` if output goes elsewhere, where there is room.
pub(crate) fn columns() -> Option<usize> {
    let told = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok()).filter(|&n: &usize| n > 0);
    let seen = || terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
    told.or_else(seen).map(|n| n.max(FEWEST_COLUMNS))
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
    writeln!(out, "\n{DIM}{remark}{DIM:#}")?;
    commands.iter().try_for_each(|command| writeln!(out, "  {BOLD}{command}{BOLD:#}"))
}

/// A paragraph, broken at spaces and indented; escape codes count for nothing.
pub(crate) fn paragraph(mut out: impl Write, indent: usize, text: &str) -> std::io::Result<()> {
    let most = columns().map_or(COLUMNS, |there| there.min(COLUMNS));
    let (mut line, mut width) = (String::new(), 0);
    for word in text.split(' ') {
        let wide = anstream::adapter::strip_str(word).to_string().width();
        if width > 0 && indent + width + 1 + wide > most {
            writeln!(out, "{:indent$}{line}", "")?;
            (line, width) = (String::new(), 0);
        }
        if width > 0 {
            line.push(' ');
            width += 1;
        }
        line.push_str(word);
        width += wide;
    }
    writeln!(out, "{:indent$}{line}", "")
}

/// Text from outside as a terminal may safely show it: control characters are replaced.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
