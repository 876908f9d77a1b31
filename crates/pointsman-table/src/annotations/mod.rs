//! Votes from a long table: one label per row, joined to the table by id.

mod annotators;
mod columns;
mod counter;
mod findings;
mod formats;
mod names;

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::Path;

use pointsman::diagnose::Annotations;

use self::counter::{Counter, Item};
use self::findings::add_match;
use self::names::{NamedLabels, Names};
use crate::error::{Error, Result, RowAt, shown};
use crate::frame::{CopiedLabels, Ids, Joined, MatchedLabels};
use crate::guard::guarded;
use crate::input::Input;
use crate::labels::{Labels, lower_case};
use crate::options::ReadOptions;
use crate::raw::RawRows;

/// The largest number of ids that are kept to find those that differ in capitals only.
const MAX_LOWER_CASE_IDS: usize = 10_000;

/// The counted labels of every item, to be joined to the rows of tables.
pub(crate) struct Join {
    name: String,
    ids: Names,
    items: Vec<Item>,
    /// The table and the row that have each item's id, once they were read. Row zero stands for any row that was filtered out: rows are
    /// counted from one.
    rows: Vec<Option<(usize, u64)>>,
    /// Label counts, item by item.
    counts: Vec<u32>,
    /// The classes in the order of the counts.
    classes: Vec<String>,
    /// Who gave which label, if annotators are named.
    named: Option<NamedLabels>,
    /// Whether rows without annotations, and annotations without rows, are refused.
    strict: bool,
    rows_matched: usize,
    /// Rows without annotations.
    not_annotated: Ids,
    /// Ids of such rows by their form in lower case, some thousands at most.
    lower_case_ids: HashMap<String, String>,
    /// The tables read so far, as messages name them.
    tables: Vec<String>,
    /// The column of ids, as messages name it.
    id_column: String,
    taken: Vec<(&'static str, String)>,
    unused_annotator: Option<String>,
    unused_date: Option<String>,
    /// How many annotations were left out for their label.
    ignored: usize,
    /// How many labels were left out for another one of the same annotator on the same item.
    superseded: usize,
    /// The smallest number of labels with which a row is kept.
    min_labels: u32,
    /// How many rows were dropped because they have some labels, but fewer.
    rows_with_few_labels: usize,
    copied: Option<CopiedLabels>,
    matched: Option<MatchedLabels>,
    matched_annotators: Option<MatchedLabels>,
    /// Names to leave out that no annotator has.
    absent_without: Vec<String>,
    /// Whether the dates of every item's labels differ.
    is_order_known: bool,
    /// Whether some labels are numbers of classes.
    has_numbers_as_labels: bool,
}

impl Join {
    pub(crate) fn load(path: &Path, classes: &[String], options: &ReadOptions) -> Result<Self> {
        if let Some(label) =
            options.ignored_labels.iter().find(|label| Labels::new(classes).class_but_for_case(label).is_some())
        {
            return Err(Error::Option(format!("--ignore-label {}: is the name of a class", shown(label))));
        }
        let input = Input::open(path, None)?;
        let name = input.name.clone();
        let mut counter = Counter::new(classes, options);
        guarded(&name, || counter.read(input, options.delimiter))?;
        if let Some(error) = counter.take_error(&name) {
            return Err(error);
        }
        if counter.items.is_empty() {
            let reason = match counter.ignored {
                0 => "has no rows: there must be at least one annotation",
                _ => "has no labels but those left out by --ignore-label: keep at least one",
            };
            return Err(Error::file(&name, reason));
        }
        counter.check_left_out(&name)?;
        counter.check_kept(&name)?;
        let absent_without = counter.absent_without().cloned().collect();
        let is_order_known = counter.count_by_date();
        let has_numbers_as_labels = counter.labels.have_indices();
        let Counter { found, ids, items, counts, annotators, labelled, ignored, superseded, copied, matched, .. } =
            counter;
        let matched_annotators = annotators.matched.clone();
        let annotators = annotators.into_vec();
        let named = (!annotators.is_empty()).then(|| NamedLabels::new(annotators, items.len(), &labelled));
        Ok(Self {
            name,
            ids,
            rows: vec![None; items.len()],
            items,
            counts,
            classes: classes.to_vec(),
            named,
            strict: options.strict,
            rows_matched: 0,
            not_annotated: Ids::default(),
            tables: Vec::new(),
            id_column: found.id,
            taken: found.taken,
            unused_annotator: found.unused_annotator,
            unused_date: found.unused_date,
            ignored,
            superseded,
            min_labels: options.min_labels.map_or(1, NonZeroU32::get),
            rows_with_few_labels: 0,
            lower_case_ids: HashMap::new(),
            copied,
            matched,
            matched_annotators,
            absent_without,
            is_order_known,
            has_numbers_as_labels,
        })
    }

    /// Whether some labels are numbers of classes.
    pub(crate) fn has_numbers_as_labels(&self) -> bool {
        self.has_numbers_as_labels
    }

    /// How many rows were dropped because they have fewer labels than are asked for.
    pub(crate) fn rows_with_few_labels(&self) -> usize {
        self.rows_with_few_labels
    }

    /// Adds votes to the rows, in the order of `classes`, and drops rows that have none: those without annotations, or with annotations only
    /// by annotators who are left out; and rows with fewer labels than are asked for. Returns the item of each row that is kept.
    pub(crate) fn votes(&mut self, table: &str, raw: &mut RawRows, classes: &[String]) -> Result<Vec<usize>> {
        let width = self.classes.len();
        let place = |class: &String| self.classes.iter().position(|own| own == class);
        let places: Vec<usize> = classes.iter().filter_map(place).collect();
        raw.votes.reserve(raw.ids.len() * width);
        let mut items = Vec::with_capacity(raw.ids.len());
        if self.tables.last().is_none_or(|last| last != table) {
            self.tables.push(table.to_owned());
        }
        for (i, id) in raw.ids.iter().enumerate() {
            let at = RowAt { file: table, row: raw.rows[i], line: raw.lines.get(i).copied() };
            let item = self.ids.get(id);
            items.push(item);
            let Some(item) = item else {
                if self.strict {
                    return Err(at.row(format!(
                        "no annotation of id {} in {}: leave the row out, or do without --strict (in Python strict=True)",
                        shown(id),
                        self.name
                    )));
                }
                self.not_annotated.add(id);
                if self.lower_case_ids.len() < MAX_LOWER_CASE_IDS {
                    self.lower_case_ids.entry(lower_case(id)).or_insert_with(|| id.clone());
                }
                raw.votes.resize(raw.votes.len() + width, 0);
                continue;
            };
            if let Some(other) = self.set_row(item, at.row, "a row left out by the filter") {
                return Err(at.row(format!("id {} is also that of {other}: ids must differ", shown(id))));
            }
            self.rows_matched += 1;
            let counts = &self.counts[item * width..][..width];
            raw.votes.extend(places.iter().map(|&place| counts[place]));
        }
        for id in &raw.dropped_ids {
            if let Some(item) = self.ids.get(id)
                && let Some(other) = self.set_row(item, 0, "another row left out by the filter")
            {
                let id = shown(id);
                let reason =
                    format!("id {id} of a row left out by the filter is also that of {other}: ids must differ");
                return Err(Error::file(table, reason));
            }
        }
        let labels = raw.votes.chunks_exact(width).map(|own| own.iter().copied().fold(0, u32::saturating_add));
        let labels: Vec<u32> = labels.collect();
        let is_kept: Vec<bool> = labels.iter().map(|&n| n >= self.min_labels).collect();
        raw.keep(&is_kept).map_err(|why| Error::file(table, why))?;
        raw.without_labels = items.iter().zip(&labels).filter(|(item, labels)| item.is_some() && **labels == 0).count();
        self.rows_with_few_labels += labels.iter().filter(|&&n| n > 0 && n < self.min_labels).count();
        let kept = items.into_iter().zip(is_kept).filter(|(_, is_kept)| *is_kept);
        Ok(kept.filter_map(|(item, _)| item).collect())
    }

    /// Records that a row of the current table has an item's id. If ids must differ and another row has it, returns that row as messages
    /// name it.
    fn set_row(&mut self, item: usize, row: u64, filtered_out: &str) -> Option<String> {
        let current = self.tables.len() - 1;
        let (table, row) = self.rows[item].replace((current, row)).filter(|_| self.strict)?;
        let row = if row == 0 { filtered_out.to_owned() } else { format!("row {row}") };
        Some(if table == current { row } else { format!("{row} of {}", self.tables[table]) })
    }

    /// Who gave which label to these items, if annotators are named.
    pub(crate) fn annotations(&self, items: &[usize]) -> Result<Option<Annotations>> {
        let Some(named) = &self.named else { return Ok(None) };
        let rows = items.iter().map(|&item| named.labels_of(item).iter().copied());
        let annotations = Annotations::new(named.annotators.iter().map(String::as_str), rows);
        annotations.map(Some).map_err(|error| Error::file(&self.name, error.to_string()))
    }

    /// How rows and annotations were matched, once all rows of the tables were read.
    pub(crate) fn finish(&self, tables: &str) -> Result<Joined> {
        let mut unmatched: Vec<(usize, &String)> =
            self.ids.iter().filter(|(item, _)| self.rows[*item].is_none()).collect();
        // In the order of the file.
        unmatched.sort_unstable();
        let mut not_in_table = Ids::default();
        unmatched.iter().for_each(|(_, id)| not_in_table.add(id));
        let mut differ_in_capitals = None;
        for (_, id) in &unmatched {
            if let Some(other) = self.lower_case_ids.get(&lower_case(id)) {
                add_match(&mut differ_in_capitals, id, other);
            }
        }
        if let Some(&(item, id)) = unmatched.first().filter(|_| self.strict) {
            let at = RowAt { file: &self.name, row: self.items[item].first_row, line: None };
            return Err(at.value(&self.id_column, format!("{} is not an id of {tables}", shown(id))));
        }
        if self.rows_matched == 0
            && let (Some(row), Some(annotated)) = (self.not_annotated.first.first(), not_in_table.first.first())
        {
            let reason = format!(
                "no id is one of {tables}: ids are {} and the like here, {} and the like there",
                shown(annotated),
                shown(row)
            );
            return Err(Error::file(&self.name, reason));
        }
        Ok(Joined {
            file: self.name.clone(),
            rows: self.rows_matched,
            not_annotated: self.not_annotated.clone(),
            not_in_table,
            taken: self.taken.clone(),
            ignored: self.ignored,
            superseded: self.superseded,
            rows_with_few_labels: self.rows_with_few_labels,
            differ_in_capitals,
            copied: self.copied.clone(),
            matched: self.matched.clone(),
            matched_annotators: self.matched_annotators.clone(),
            absent_without: self.absent_without.clone(),
            unused_annotator: self.unused_annotator.clone(),
            unused_date: self.unused_date.clone(),
            is_sorted_by_annotator: !self.is_order_known
                && self.named.as_ref().is_some_and(NamedLabels::is_sorted_by_annotator),
        })
    }
}
