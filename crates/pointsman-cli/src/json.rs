//! JSON output.

use std::io::{self, Write};

use serde::Serialize;

use crate::render;

/// A number; `None` if it is not finite.
pub(crate) fn known(x: f64) -> Option<f64> {
    x.is_finite().then_some(x)
}

/// Prints a value to standard output.
pub(crate) fn print(value: &impl Serialize) -> anyhow::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    write_pretty(&mut out, value)?;
    out.flush()?;
    Ok(())
}

/// Prints a structure with all warnings so far.
pub(crate) fn print_with_warnings(value: &impl Serialize) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Warned<'a, T> {
        #[serde(flatten)]
        value: &'a T,
        warnings: Vec<String>,
    }
    print(&Warned { value, warnings: render::warnings() })
}

/// Writes a value, indented, with a line end.
pub(crate) fn write_pretty(mut out: impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut out, value)?;
    out.write_all(b"\n")
}
