//! Reading table files into arrays, as the command line reads them.

use std::num::NonZeroU32;
use std::path::PathBuf;

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pointsman_table::{
    Columns, CopiedLabels, Filter, Frame, Ids, Joined, MatchedLabels, Need, ReadOptions, RepeatedIds, Sums,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Refusal, failed, refused};

/// Reads the rows of one or several files that pass all filters. `annotations` is a long table of labels.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
#[pyo3(signature = (paths, *, annotations = None, filters = Vec::new(), columns = Vec::new(), format = None, delimiter = None, first_labels = None, without = Vec::new(), ignored_labels = Vec::new(), keep_label = None, strict = false, normalize = false))]
pub(crate) fn read<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    annotations: Option<PathBuf>,
    filters: Vec<(String, String)>,
    columns: Vec<(String, String)>,
    format: Option<&str>,
    delimiter: Option<&str>,
    first_labels: Option<i64>,
    without: Vec<String>,
    ignored_labels: Vec<String>,
    keep_label: Option<&str>,
    strict: bool,
    normalize: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let filters = filters.into_iter().map(|(column, value)| Filter::new(column, value)).collect();
    let need = if annotations.is_some() { Need::Votes } else { Need::default() };
    let mut names = columns.iter();
    let columns =
        names.try_fold(Columns::default(), |columns, (key, name)| columns.named(key, name)).map_err(failed)?;
    let format = format.map(str::parse).transpose().map_err(failed)?;
    let delimiter = delimiter.map(str::parse).transpose().map_err(failed)?;
    let count = |k: i64| {
        let reason = format!("first_labels {k}: keep at least one label per item");
        u32::try_from(k).ok().and_then(NonZeroU32::new).ok_or_else(|| refused(Refusal::new(reason)))
    };
    let first_labels = first_labels.map(count).transpose()?;
    let options = ReadOptions {
        annotations,
        filters,
        need,
        columns,
        format,
        delimiter,
        first_labels,
        without,
        ignored_labels,
        keep_label: keep_label.map(str::parse).transpose().map_err(failed)?,
        strict,
        normalize,
        ..ReadOptions::default()
    };
    let frame = py.detach(|| pointsman_table::read_frames(&paths, &options)).map_err(failed)?;
    let (notes, ids) = (notes(&frame), frame.ids);
    let found = arrays(py, &frame.table)?;
    found.set_item("ids", ids)?;
    found.set_item("notes", notes)?;
    Ok(found)
}

/// The columns of a table as arrays.
fn arrays<'py>(py: Python<'py>, table: &pointsman::Table) -> PyResult<Bound<'py, PyDict>> {
    let (rows, classes) = (table.rows(), table.classes().len());
    let reals = |values: Vec<f64>, width: usize| -> PyResult<Bound<'py, PyArray2<f64>>> {
        PyArray1::from_vec(py, values).reshape([rows, width])
    };
    let found = PyDict::new(py);
    found.set_item("classes", table.classes().to_vec())?;
    found.set_item("probs", reals(table.predictions().into_owned(), classes)?)?;
    if table.has_votes() {
        let counts: Vec<u32> = (0..rows).filter_map(|row| table.votes(row)).flat_map(|v| v.counts()).copied().collect();
        found.set_item("votes", PyArray1::from_vec(py, counts).reshape([rows, classes])?)?;
    }
    if !table.feature_names().is_empty() {
        let values: Vec<f64> = (0..rows).flat_map(|row| table.features(row)).copied().collect();
        found.set_item("features", reals(values, table.feature_names().len())?)?;
        found.set_item("feature_names", table.feature_names().to_vec())?;
    }
    if table.has_weights() {
        found.set_item("sample_weight", PyArray1::from_iter(py, (0..rows).map(|row| table.weight(row))))?;
    }
    let oracles = PyDict::new(py);
    for (name, probs) in table.oracles() {
        oracles.set_item(name, reals(probs.to_vec(), classes)?)?;
    }
    found.set_item("oracles", oracles)?;
    Ok(found)
}

/// What the reader left out, assumed or changed, one sentence each.
fn notes(frame: &Frame) -> Vec<String> {
    let few = |ids: &Ids| ids.first.join(", ") + if ids.count > ids.first.len() { ", …" } else { "" };
    let pairs = |matched: &MatchedLabels| {
        let pairs: Vec<String> = matched.labels.iter().map(|(read, meant)| format!("{read:?} as {meant}")).collect();
        pairs.join(", ")
    };
    let mut notes = Vec::new();
    if frame.ignored_votes {
        notes.push("the annotations replaced the votes or labels of the table itself".to_owned());
    }
    if frame.rows_without_labels > 0 {
        notes.push(format!(
            "rows without labels but those of annotators left out were dropped: {}",
            frame.rows_without_labels
        ));
    }
    notes.extend(frame.numbers_as_labels());
    if let Some(joined) = &frame.joined {
        let Joined { file, not_annotated, not_in_table, taken, copied, matched, unused_annotator, .. } = joined;
        let Joined { ignored, superseded, matched_annotators, differ_in_capitals, .. } = joined;
        notes.extend(frame.taken_id.iter().map(|column| format!("took the column {column} of the table for id")));
        let took = |(key, name): &(&str, String)| format!("{file}: took the column {name} for {key}");
        notes.extend(taken.iter().map(took));
        if let Some(column) = unused_annotator {
            notes.push(format!(
                "{file} has a column {column}: if it names the annotators, columns={{'annotator': '{column}'}}"
            ));
        }
        if let Some(CopiedLabels { rows, id, annotator, row, of_row, .. }) = copied {
            notes.push(format!(
                "rows of {file} that repeat an annotator's label of the same item counted once: {rows} (first row {row}, as row {of_row}: \
                 {annotator} on {id})"
            ));
        }
        if *ignored > 0 {
            notes.push(format!("labels of {file} left out, as ignored_labels asks: {ignored}"));
        }
        if *superseded > 0 {
            notes.push(format!(
                "labels of {file} left out, since the annotator has another label on the same item, as keep_label asks: {superseded}"
            ));
        }
        if let Some(matched) = matched {
            notes.push(format!(
                "labels of {file} that differ from a class in capitals or spaces only were counted: {} ({})",
                matched.rows,
                pairs(matched)
            ));
        }
        if let Some(matched) = matched_annotators {
            notes.push(format!(
                "rows of {file} whose annotator differs from an earlier one in capitals or spaces only were taken for that annotator's: {} \
                 ({})",
                matched.rows,
                pairs(matched)
            ));
        }
        if not_annotated.count > 0 {
            let (count, ids) = (not_annotated.count, few(not_annotated));
            notes.push(format!("rows without an annotation in {file} were left out: {count} ({ids})"));
        }
        if not_in_table.count > 0 {
            let (count, ids) = (not_in_table.count, few(not_in_table));
            notes.push(format!("ids of {file} that are not in the table were left out: {count} ({ids})"));
        }
        if let Some(MatchedLabels { rows, labels, .. }) = differ_in_capitals {
            let pairs: Vec<String> = labels.iter().map(|(id, other)| format!("{id:?} for {other:?}")).collect();
            notes.push(format!(
                "of these, ids that differ from one of the table in capitals or spaces only: {rows} ({}); write ids the same way in both",
                pairs.join(", ")
            ));
        }
    }
    let left = frame.table.rows();
    notes.extend(frame.without_answers.iter().map(|(column, rows)| {
        format!(
            "rows without an answer in column {column} were left out: {rows}; the {left} rows left stand for all only if the model was asked \
             about a random sample"
        )
    }));
    notes.extend(frame.unread_answers.iter().map(|column| {
        format!(
            "the column {column} was not read, since its numbers may be something else than classes: if it has the classes that a model \
             answered, columns={{'oracles': 'oracle_'}}"
        )
    }));
    notes.extend(frame.decided_labels.iter().map(|column| {
        format!(
            "the column {column} was read as one more independent label of each item: if it is a majority vote or a decision made from the \
             others, it hides noise; name the others, as in columns={{'labels': ['label_1', 'label_2']}}"
        )
    }));
    if let Some(RepeatedIds { ids, rows, .. }) = frame.repeated_ids() {
        notes.push(format!("ids that several rows have: {} in {rows} rows ({})", ids.count, few(&ids)));
    }
    if let Some(Sums { rows, least, largest, .. }) = frame.sums {
        notes.push(format!("rows divided by the sum of their probabilities, {least} to {largest}: {rows}"));
    }
    for (columns, Sums { rows, least, largest, .. }) in &frame.other_sums {
        notes.push(format!("rows divided by the sum of {columns}, {least} to {largest}: {rows}"));
    }
    notes
}
