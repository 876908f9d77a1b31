//! Routers and tables as the command line names them: files, patterns and standard input.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::bail;
use pointsman::{Policy, Router};
use pointsman_table::{Columns, Format, Frame, Need, ReadOptions, RouterOrPolicy};

use crate::args::{TableArgs, VotesArgs};
use crate::failure::Hint;
use crate::progress::Progress;
use crate::render;
use crate::render::number::counted;

/// Whether a path stands for standard input or output.
pub(crate) fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Refuses to read two inputs from standard input.
pub(crate) fn check_streams<'a>(inputs: impl IntoIterator<Item = Option<&'a PathBuf>>) -> anyhow::Result<()> {
    if inputs.into_iter().flatten().filter(|path| is_stream(path)).count() > 1 {
        bail!("- is given for more than one input: only one of them can be standard input");
    }
    Ok(())
}

/// Loads a router.
pub(crate) fn load_router(path: &Path) -> anyhow::Result<Router> {
    match load_router_or_policy(path)? {
        RouterOrPolicy::Router(router) => Ok(router),
        _ => bail!(
            "{}: is a policy, which has no calibration rows, and this command needs them: give the router from which it was compiled",
            path.display()
        ),
    }
}

/// Loads a router or a policy.
pub(crate) fn load_router_or_policy(path: &Path) -> anyhow::Result<RouterOrPolicy> {
    pointsman_table::load_router_or_policy(path).map_err(|error| {
        let is_table = Format::from_path(path).is_some() && matches!(error, pointsman_table::Error::Content { .. });
        let error = anyhow::Error::from(error);
        match is_table {
            true => error.context(Hint("that is a table; pointsman calibrate TABLE -o ROUTER writes a router".into())),
            false => error,
        }
    })
}

/// Whether a file is a table by its name.
pub(crate) fn is_table(path: &Path) -> bool {
    Format::from_path(path).is_some()
}

/// Whether a file is a router by its name.
pub(crate) fn has_router_extension(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("safetensors"))
}

/// Refuses a table and a router given in the wrong order.
pub(crate) fn check_order(command: &str, router: &Path, table: &Path) -> anyhow::Result<()> {
    if Format::from_path(router).is_some() && has_router_extension(table) {
        bail!("{}: looks like a table; the router comes first: {command} ROUTER TABLE", router.display());
    }
    Ok(())
}

/// The options of reading a table.
pub(crate) fn read_options(args: &TableArgs, votes: Option<&VotesArgs>, need: Need) -> anyhow::Result<ReadOptions> {
    Ok(ReadOptions {
        format: args.format,
        delimiter: args.delimiter,
        filters: args.filters.clone(),
        columns: Columns::joined(&args.columns)?,
        annotations: votes.and_then(|votes| votes.annotations.clone()),
        first_labels: votes.and_then(|votes| votes.first_labels),
        min_labels: votes.and_then(|votes| votes.min_labels),
        without: votes.map(|votes| votes.without.clone()).unwrap_or_default(),
        ignored_labels: votes.map(|votes| votes.ignored_labels.clone()).unwrap_or_default(),
        keep_label: votes.and_then(|votes| votes.keep_label),
        strict: votes.is_some_and(|votes| votes.strict),
        normalize: args.normalize,
        need,
        ..ReadOptions::default()
    })
}

/// Reads a whole table with the rows' ids and places in the file, with a spinner if it takes long.
pub(crate) fn read_frame(path: &Path, options: &ReadOptions) -> anyhow::Result<Frame> {
    let _spinner = Progress::spinner(format!("reading {}", path.display()));
    Ok(pointsman_table::read_frame(path, options)?)
}

/// Reads several tables as one.
pub(crate) fn read_frames(paths: &[PathBuf], options: &ReadOptions) -> anyhow::Result<Frame> {
    if let [path] = paths {
        return read_frame(path, options);
    }
    let _spinner = Progress::spinner(format!("reading {}", counted(paths.len(), "table", "tables")));
    Ok(pointsman_table::read_frames(paths, options)?)
}

/// The files that paths and patterns name, in alphabetical order and each once. So neither the order of arguments nor the shell that
/// expands patterns makes a difference.
pub(crate) fn expand_patterns(given: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = Vec::new();
    for path in given {
        match pattern(path) {
            Some(pattern) => found.extend(matching_files(pattern)?),
            None => found.push(path.clone()),
        }
    }
    found.sort();
    let mut kept: Vec<(PathBuf, PathBuf)> = Vec::new();
    for path in found {
        let file = if is_stream(&path) { path.clone() } else { path.canonicalize().unwrap_or_else(|_| path.clone()) };
        match kept.iter().any(|(_, other)| *other == file) && !is_stream(&path) {
            true => render::warn(format!("{}: is given more than once, and read once", path.display())),
            false => kept.push((path, file)),
        }
    }
    Ok(kept.into_iter().map(|(path, _)| path).collect())
}

/// The path as a pattern, unless it is the name of a file.
fn pattern(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| text.contains(['*', '?', '[']) && !path.exists())
}

/// The files that match a pattern: at least one.
fn matching_files(pattern: &str) -> anyhow::Result<Vec<PathBuf>> {
    // As in shells, a star does not match a slash or a leading dot.
    let options =
        glob::MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };
    let paths = match glob::glob_with(pattern, options) {
        Ok(paths) => paths,
        Err(error) => bail!("{pattern}: is not a pattern: {} at character {}", error.msg, error.pos + 1),
    };
    let mut found = Vec::new();
    for path in paths {
        let path = path.map_err(|error| {
            let source = io::Error::new(error.error().kind(), error.error().to_string());
            pointsman_table::Error::Io { file: error.path().display().to_string(), source }
        })?;
        if !path.is_dir() {
            found.push(path);
        }
    }
    if found.is_empty() {
        bail!("{pattern}: no file matches the pattern; check the folder and the extension");
    }
    Ok(found)
}

/// Refuses a table whose classes are not the router's; the message names the table and the classes that differ.
pub(crate) fn check_classes(router: &Router, classes: &[String], table: &Path) -> anyhow::Result<()> {
    let refuse = |error: pointsman::Error| pointsman_table::Error::File {
        file: table.display().to_string(),
        reason: match differing_classes(["table", "router"], [classes, router.classes()]) {
            Some(text) => format!(
                "the table's classes are not the router's: {text}; calibrate on tables of these classes, or rename the columns"
            ),
            None => error.to_string(),
        },
    };
    Ok(router.check_classes(classes).map_err(refuse)?)
}

/// Refuses a table whose classes are not the policy's.
pub(crate) fn check_classes_of_policy(policy: &Policy, classes: &[String], table: &Path) -> anyhow::Result<()> {
    if classes == policy.classes() {
        return Ok(());
    }
    let differing = differing_classes(["table", "policy"], [classes, policy.classes()]);
    let text = differing.unwrap_or_else(|| format!("the policy's are {}", policy.classes().join(", ")));
    bail!("{}: the table's classes are not the policy's: {text}; compile a router of these classes", table.display())
}

/// The classes that only one of two has, and the name that was perhaps meant, in words; `None` if at most their order differs.
pub(crate) fn differing_classes(owners: [&str; 2], [first, second]: [&[String]; 2]) -> Option<String> {
    /// The largest number of classes listed.
    const MAX_LISTED: usize = 5;
    let only = |names: &[String], others: &[String]| -> Vec<String> {
        names.iter().filter(|name| !others.contains(name)).cloned().collect()
    };
    let listed = |names: &[String]| match names.len() {
        0 => "none".to_owned(),
        n if n > MAX_LISTED => format!("{} and {} more", names[..MAX_LISTED].join(", "), n - MAX_LISTED),
        _ => names.join(", "),
    };
    let differing = [only(first, second), only(second, first)];
    let suggestions =
        differing[0].iter().map(|name| pointsman_table::did_you_mean(name, differing[1].iter().map(String::as_str)));
    let meant = suggestions.into_iter().find(|meant| !meant.is_empty()).unwrap_or_default();
    let meant = meant.strip_prefix(": ").map_or(String::new(), |meant| format!(" ({meant})"));
    let [left, right] = [listed(&differing[0]), listed(&differing[1])];
    let is_different = differing.iter().any(|names| !names.is_empty());
    is_different.then(|| format!("only the {} has {left}, only the {} has {right}{meant}", owners[0], owners[1]))
}
