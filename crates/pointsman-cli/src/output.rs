//! Outputs as checked: nothing is written over an input or over a file of another kind.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::bail;
use pointsman::Router;
use pointsman_table::{Existing, Format};

use crate::failure::Hint;
use crate::flags::shell_quoted;
use crate::input::is_stream;
use crate::interrupt::Writing;
use crate::render::{self, number::counted};

/// Where decisions go.
#[derive(Debug)]
pub(crate) enum Output {
    /// The first rows, to a terminal.
    Preview,
    /// A table, to a file or standard output (`-`).
    Table(PathBuf, Format),
    /// Nowhere: only a summary is wanted.
    None,
}

impl Output {
    pub(crate) fn new(path: Option<&PathBuf>, format: Option<Format>, inputs: &[&Path]) -> anyhow::Result<Self> {
        let path = match path {
            None if format.is_none() && io::stdout().is_terminal() => return Ok(Self::Preview),
            None => PathBuf::from("-"),
            Some(path) => path.clone(),
        };
        if !is_stream(&path) {
            check_overwrite(&path, inputs, Kind::Decisions)?;
        }
        let format = Format::to_write(&path, format)
            .map_err(|error| anyhow::Error::from(error).context(Hint("or name it: --output-format csv".into())))?;
        Ok(Self::Table(path, format))
    }
}

/// The kind of file that a command writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A router, or a part of a calibration.
    Router,
    Policy,
    Decisions,
    /// Items to label.
    Items,
}

/// Refuses an output that is also an input, or an existing file of another kind.
pub(crate) fn check_overwrite(output: &Path, inputs: &[&Path], kind: Kind) -> anyhow::Result<()> {
    if let Ok(target) = output.canonicalize()
        && let Some(input) = inputs.iter().find(|input| input.canonicalize().is_ok_and(|input| input == target))
    {
        bail!("{}: would be overwritten; choose another output", input.display());
    }
    check_existing(output, kind)
}

/// Refuses to replace a file of another kind than the one to be written.
pub(crate) fn check_existing(output: &Path, kind: Kind) -> anyhow::Result<()> {
    /// Columns that every table of decisions has, and every list of items to label.
    const DECISIONS: [&str; 3] = ["cell", "support", "action"];
    const ITEMS: [&str; 4] = ["id", "cell", "labels", "worth"];
    if is_stream(output) {
        return Ok(());
    }
    let existing = pointsman_table::existing(output);
    let (is_same_kind, writes, example) = match kind {
        Kind::Router => {
            (matches!(existing, Existing::Router | Existing::Part), "a router is written", "router.safetensors")
        }
        Kind::Policy => (existing == Existing::Policy, "a policy is written", "policy.safetensors"),
        Kind::Decisions => (existing.has_columns(&DECISIONS), "decisions are written", "decisions.csv"),
        Kind::Items => (existing.has_columns(&ITEMS), "items to label are written", "to-label.csv"),
    };
    let what = match existing {
        Existing::Nothing => return Ok(()),
        _ if is_same_kind => return Ok(()),
        Existing::Router => "a router",
        Existing::Part => "a part of a calibration",
        Existing::Policy => "a policy",
        existing if existing.has_columns(&DECISIONS) => "a table of decisions",
        Existing::Table(columns) if columns.len() > 1 => "a table",
        _ => "another kind of file",
    };
    bail!(
        "{}: is {what}, which would be lost: {writes} here; choose another output, such as -o {example}, or remove the file first",
        output.display()
    )
}

/// Refuses standard output, or a file, as the folder that a report is written into.
pub(crate) fn check_folder(folder: &Path) -> anyhow::Result<()> {
    if is_stream(folder) {
        bail!("-o - is not possible: a folder of files is written; give its path");
    }
    if folder.is_file() {
        bail!("{}: is a file, and -o takes a folder to write the report into; give another name", folder.display());
    }
    Ok(())
}

/// Refuses an output for a router that cannot be written to, that is one of the inputs or has rows that would be lost, or that is named
/// like a table.
pub(crate) fn check_router(output: &Path, json: bool, inputs: &[&Path]) -> anyhow::Result<()> {
    check_binary("router", output, json)?;
    check_overwrite(output, inputs, Kind::Router)?;
    check_added_rows(output)?;
    check_extension("router", output)
}

/// Refuses to replace a router to which rows were added: they are in no calibration table.
fn check_added_rows(output: &Path) -> anyhow::Result<()> {
    if is_stream(output) || pointsman_table::existing(output) != Existing::Router {
        return Ok(());
    }
    match pointsman_table::load_router(output).map_or(0, |router| router.added_rows()) {
        0 => Ok(()),
        added => bail!(
            "{}: is a router to which {} added later, which would be lost; choose another output, or remove the file first",
            output.display(),
            counted(added, "row was", "rows were")
        ),
    }
}

/// Refuses an output for a policy that cannot be written to, that is one of the inputs, or that is named like a table.
pub(crate) fn check_policy(output: &Path, json: bool, inputs: &[&Path]) -> anyhow::Result<()> {
    check_binary("policy", output, json)?;
    check_overwrite(output, inputs, Kind::Policy)?;
    check_extension("policy", output)
}

/// Refuses to give a router or policy the extension of a table.
fn check_extension(what: &str, output: &Path) -> anyhow::Result<()> {
    let Some(format) = Format::from_path(output) else { return Ok(()) };
    let name = shell_quoted(&output.with_extension("safetensors"));
    bail!("{}: a {what} is not a table, as the extension of {format} files says; write -o {name}", output.display())
}

/// Refuses to print a file that is not text, or to mix it with JSON.
fn check_binary(what: &str, output: &Path, json: bool) -> anyhow::Result<()> {
    if is_stream(output) && io::stdout().is_terminal() {
        bail!("a {what} is not text: give a path instead of -, or redirect standard output");
    }
    if is_stream(output) && json {
        bail!("--json and -o - both write to standard output: give the {what} a path");
    }
    Ok(())
}

/// Writes a router.
pub(crate) fn save_router(path: &Path, router: &Router) -> anyhow::Result<()> {
    let writing = Writing::start();
    pointsman_table::save_router(path, router)?;
    Ok(writing.check()?)
}

/// Prints a summary of a written router, on standard error if the router itself goes to standard output.
pub(crate) fn print_beside(path: &Path, print: impl Fn(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    match (render::is_quiet(), is_stream(path)) {
        (true, _) => Ok(()),
        (false, true) => Ok(print(&mut anstream::stderr().lock())?),
        (false, false) => Ok(print(&mut anstream::stdout().lock())?),
    }
}
