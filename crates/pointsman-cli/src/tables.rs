//! Tables, and parts of a calibration, as the command line names them: several files and patterns, and what reading them has to report.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::bail;
use pointsman::diagnose::AnnotatorCheck;
use pointsman_table::{Frame, Ids, Joined, ReadOptions, RepeatedIds, Sums};

use crate::plan;
use crate::progress::Progress;
use crate::render;
use crate::render::number::{counted, short};

/// Reads several tables as one.
pub(crate) fn read_frames(paths: &[PathBuf], options: &ReadOptions) -> anyhow::Result<Frame> {
    if let [path] = paths {
        return plan::read_frame(path, options);
    }
    let _spinner = Progress::spinner(format!("reading {}", counted(paths.len(), "table", "tables")));
    Ok(pointsman_table::read_frames(paths, options)?)
}

/// The files that paths and patterns name, in alphabetical order and each once, so that neither the order of arguments nor the shell that
/// expands patterns makes a difference.
pub(crate) fn expanded(given: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = Vec::new();
    for path in given {
        match pattern(path) {
            Some(pattern) => found.extend(matching(pattern)?),
            None => found.push(path.clone()),
        }
    }
    found.sort();
    let mut kept: Vec<(PathBuf, PathBuf)> = Vec::new();
    for path in found {
        let file =
            if plan::is_stream(&path) { path.clone() } else { path.canonicalize().unwrap_or_else(|_| path.clone()) };
        match kept.iter().any(|(_, other)| *other == file) && !plan::is_stream(&path) {
            true => render::warn(format!("{}: is given more than once, and read once", path.display())),
            false => kept.push((path, file)),
        }
    }
    Ok(kept.into_iter().map(|(path, _)| path).collect())
}

/// The pattern that a path is, unless it is the name of a file.
fn pattern(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| text.contains(['*', '?', '[']) && !path.exists())
}

/// The files that match a pattern: at least one.
fn matching(pattern: &str) -> anyhow::Result<Vec<PathBuf>> {
    // As shells do, a star takes no folder's name apart and matches no hidden file.
    let options =
        glob::MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };
    let paths = match glob::glob_with(pattern, options) {
        Ok(paths) => paths,
        Err(error) => bail!("{pattern}: is not a pattern: {} at character {}", error.msg, error.pos + 1),
    };
    let mut found = Vec::new();
    for path in paths {
        let path = path.map_err(|error| named_error(error.path(), error.error()))?;
        if !path.is_dir() {
            found.push(path);
        }
    }
    if found.is_empty() {
        bail!("{pattern}: no file matches the pattern; check the folder and the extension");
    }
    Ok(found)
}

/// What the operating system said of a folder or file.
fn named_error(path: &Path, error: &io::Error) -> pointsman_table::Error {
    let source = io::Error::new(error.kind(), error.to_string());
    pointsman_table::Error::Io { file: path.display().to_string(), source }
}

/// Says so where reading a table took decisions.
pub(crate) fn warn_about_reading(frame: &Frame) {
    reading_in_words(frame).iter().for_each(render::warn);
}

/// Says so if the order of annotations does not tell who labelled first.
pub(crate) fn order_in_words(frame: &Frame) -> Option<String> {
    let joined = frame.joined.as_ref().filter(|joined| joined.is_sorted_by_annotator)?;
    Some(format!(
        "{}: the annotators of every item stand in the same order, so the rows are sorted by annotator and do not tell who labelled \
         first: whether somebody copies the label before cannot be seen; give the rows in the order of labelling, or a column with the \
         time of each label, --columns date=NAME",
        joined.file
    ))
}

/// Says so if annotators differ by more than chance explains.
pub(crate) fn annotators_in_words(frame: &Frame) -> anyhow::Result<Option<String>> {
    let Some(annotations) = &frame.annotations else { return Ok(None) };
    let check = AnnotatorCheck::new(&frame.table, annotations)?;
    let flagged: Vec<&str> =
        check.annotators.iter().filter(|one| !one.flags.is_empty()).map(|one| one.annotator.as_str()).collect();
    /// Annotators that are named.
    const NAMED: usize = 5;
    let names = flagged.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = if flagged.len() > NAMED { ", …" } else { "" };
    let who = counted(flagged.len(), "annotator differs", "annotators differ");
    Ok((!flagged.is_empty()).then(|| {
        format!("{who} by more than chance explains ({names}{more}): run diagnose on this table before relying on it")
    }))
}

/// The decisions that reading a table took, one sentence each: votes that annotations take the place of, rows and labels left out, ids that
/// several rows have, probabilities divided by their sum.
pub(crate) fn reading_in_words(frame: &Frame) -> Vec<String> {
    let mut sentences = Vec::new();
    if frame.ignored_votes {
        sentences.push("--annotations replaces the votes or labels of the table itself".to_owned());
    }
    if frame.rows_without_labels > 0 {
        let rows = counted(frame.rows_without_labels, "row has", "rows have");
        sentences.push(format!("{rows} no labels but those of annotators left out, and were dropped"));
    }
    if let Some(joined) = &frame.joined {
        sentences.extend(unmatched_in_words(joined));
    }
    if let Some(RepeatedIds { ids, rows, .. }) = frame.repeated_ids() {
        sentences.push(format!(
            "{} those of several rows, {} in all ({}): each row counts; leave copies out, since they are no further evidence",
            counted(ids.count, "id is", "ids are"),
            counted(rows, "row", "rows"),
            listed(&ids)
        ));
    }
    sentences.extend(sums_in_words(frame.sums));
    sentences.extend(plan::divided_in_words(plan::divided_rows(&frame.table)));
    sentences
}

/// How many ids of a table and of its annotations have no counterpart.
fn unmatched_in_words(joined: &Joined) -> Vec<String> {
    let Joined { file, rows, not_annotated, not_in_table, taken, unused_annotator, .. } = joined;
    let mut sentences = Vec::new();
    if !taken.is_empty() {
        let (keys, names): (Vec<_>, Vec<_>) = taken.iter().map(|(key, name)| (*key, name.as_str())).unzip();
        sentences.push(format!("{file}: took {} for {}", names.join(", "), keys.join(", ")));
    }
    if let Some(column) = unused_annotator {
        let flag = plan::shell_quoted_text(&format!("annotator={column}"));
        sentences.push(format!("{file} has a column {column}: add --columns {flag} if it names the annotators"));
    }
    if not_annotated.count > 0 {
        sentences.push(format!(
            "{} no annotation in {file} ({}) and {} left out; {} joined (--strict refuses this)",
            counted(not_annotated.count, "row has", "rows have"),
            listed(not_annotated),
            if not_annotated.count == 1 { "was" } else { "were" },
            counted(*rows, "row is", "rows are"),
        ));
    }
    if not_in_table.count > 0 {
        let is = if not_in_table.count == 1 { "is" } else { "are" };
        sentences.push(format!(
            "{} of {file} {is} not in the table ({}): their labels were left out (--strict refuses this)",
            counted(not_in_table.count, "id", "ids"),
            listed(not_in_table),
        ));
    }
    sentences
}

/// The first ids, and whether there are more.
fn listed(ids: &Ids) -> String {
    let more = if ids.count > ids.first.len() { ", …" } else { "" };
    ids.first.join(", ") + more
}

/// Says what probabilities summed to that were divided by it.
pub(crate) fn report_sums(sums: Option<Sums>) {
    sums_in_words(sums).iter().for_each(render::warn);
}

/// What probabilities summed to that were divided by it.
fn sums_in_words(sums: Option<Sums>) -> Option<String> {
    /// Sums of rounded probabilities are closer to each other than this factor; sums of scores are not.
    const WIDE: f64 = 1.5;
    let Sums { rows, least, largest, .. } = sums?;
    let range = match [least, largest].map(short) {
        [least, largest] if least == largest => least,
        [least, largest] => format!("between {least} and {largest}"),
    };
    let doubt = match largest > WIDE * least {
        true => "; sums that far apart suggest scores, which dividing does not make probabilities",
        false => "",
    };
    let rows = counted(rows, "row", "rows");
    Some(format!("--normalize: the probabilities of {rows} summed to {range} and were divided by it{doubt}"))
}
