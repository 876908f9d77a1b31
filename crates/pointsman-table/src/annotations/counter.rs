//! Counting labels, one annotation at a time.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::num::NonZeroU32;

use super::annotators::Annotators;
use super::columns::AnnotationColumns;
use super::findings::{Contradictions, UnknownLabels, Unnamed, add_copy, add_match};
use super::names::Names;
use crate::cell::Cell;
use crate::date::moment;
use crate::error::{Error, Result, RowAt, listed, shown};
use crate::frame::{CopiedLabels, MatchedLabels};
use crate::labels::{Labels, lower_case};
use crate::options::{Columns, KeepLabel, ReadOptions};
use crate::suggest::did_you_mean;

/// One row of the annotations.
pub(super) struct Annotation<'a> {
    pub(super) id: Cell<'a>,
    pub(super) label: Cell<'a>,
    pub(super) annotator: Option<Cell<'a>>,
    pub(super) date: Option<Cell<'a>>,
}

/// An item that was labelled.
pub(super) struct Item {
    /// How many of its further labels count.
    labels_left: u32,
    /// The row of its first annotation.
    pub(super) first_row: u64,
}

/// A checked label.
#[derive(Debug, Clone, Copy)]
struct GivenLabel {
    item: u32,
    annotator: Option<u32>,
    class: usize,
}

/// The first label of an annotator on an item.
struct FirstLabel {
    row: u64,
    class: u32,
    /// Its place among the labels with dates.
    place: u32,
}

/// Labels counted so far.
pub(super) struct Counter<'a> {
    /// The names asked for.
    pub(super) columns: &'a Columns,
    /// The names that the file has.
    pub(super) found: AnnotationColumns,
    classes: usize,
    pub(super) labels: Labels,
    /// How many labels of an item count, from the first.
    first_labels: u32,
    pub(super) ids: Names,
    pub(super) items: Vec<Item>,
    /// Label counts, item by item.
    pub(super) counts: Vec<u32>,
    pub(super) annotators: Annotators,
    /// The label of each item and annotator: two labels of one annotator are not independent.
    seen: HashMap<(u32, u32), FirstLabel, foldhash::fast::RandomState>,
    pub(super) copied: Option<CopiedLabels>,
    pub(super) matched: Option<MatchedLabels>,
    contradictions: Contradictions,
    unknown: UnknownLabels,
    unnamed: Unnamed,
    /// Labels that are left out, in lower case.
    ignored_labels: Vec<String>,
    /// How many annotations were left out for their label.
    pub(super) ignored: usize,
    /// Names of annotators whose labels do not count.
    without: &'a [String],
    allow_absent_without: bool,
    /// Whether each annotator is left out.
    is_left_out: Vec<bool>,
    /// Item, annotator and class of every label that counts, if annotators are named.
    pub(super) labelled: Vec<(u32, u32, u32)>,
    /// Which of several labels of an annotator on an item counts; `None` if they are refused.
    keep_label: Option<KeepLabel>,
    /// How many labels were left out for another one of the same annotator on the same item.
    pub(super) superseded: usize,
    /// Labels with their dates, to be counted when all are read.
    dated: Vec<(i128, GivenLabel)>,
}

impl<'a> Counter<'a> {
    pub(super) fn new(classes: &[String], options: &'a ReadOptions) -> Self {
        Self {
            columns: &options.columns,
            found: AnnotationColumns::default(),
            classes: classes.len(),
            labels: Labels::new(classes),
            first_labels: options.first_labels.map_or(u32::MAX, NonZeroU32::get),
            ids: Names::default(),
            items: Vec::new(),
            counts: Vec::new(),
            annotators: Annotators::default(),
            seen: HashMap::default(),
            copied: None,
            matched: None,
            contradictions: Contradictions::default(),
            unknown: UnknownLabels::default(),
            unnamed: Unnamed::default(),
            ignored_labels: options.ignored_labels.iter().map(|label| lower_case(label)).collect(),
            ignored: 0,
            without: &options.without,
            allow_absent_without: options.allow_absent_without,
            is_left_out: Vec::new(),
            labelled: Vec::new(),
            keep_label: options.keep_label,
            superseded: 0,
            dated: Vec::new(),
        }
    }

    /// Checks a label and counts it, or keeps it until all dates are known.
    pub(super) fn add(&mut self, at: RowAt<'_>, annotation: &Annotation<'_>) -> Result<()> {
        let id = annotation.id.id().map_err(|why| at.value(&self.found.id, why))?;
        let label = annotation.label.text().unwrap_or_default();
        if self.ignored_labels.contains(&lower_case(&label)) {
            self.ignored += 1;
            return Ok(());
        }
        let Some(class) = self.class(at, &label) else { return Ok(()) };
        let item = self.ids.number(&id);
        let date = match (&annotation.date, &self.found.date) {
            (Some(date), Some(column)) => Some(moment(date).map_err(|why| at.value(column, why))?),
            // All at the same time: they stay in the order of the file, and are counted when it is known which of them count.
            _ => self.keep_label.map(|_| 0),
        };
        let annotator = match &annotation.annotator {
            Some(annotator) => {
                let Some((number, name)) = self.annotator(annotator) else {
                    self.unnamed.add(at);
                    return Ok(());
                };
                if !self.is_first(at, (item, &id), (number, &name), class, date) {
                    return Ok(());
                }
                Some(number)
            }
            None => None,
        };
        if item as usize == self.items.len() {
            self.items.push(Item { labels_left: self.first_labels, first_row: at.row });
            self.counts.resize(self.counts.len() + self.classes, 0);
        }
        let label = GivenLabel { item, annotator, class };
        match date {
            Some(date) => self.dated.push((date, label)),
            None => self.count(label),
        }
        Ok(())
    }

    /// The class that a label names; `None` if none does, which is reported when all are read.
    fn class(&mut self, at: RowAt<'_>, label: &str) -> Option<usize> {
        let labels = &self.labels;
        labels.class_of_label(label).or_else(|| match labels.class_but_for_case(label) {
            Some(class) => {
                add_match(&mut self.matched, label, labels.name(class));
                Some(class)
            }
            None => {
                self.unknown.add(at, label.trim(), || match label.trim() {
                    "" => "no label".to_owned(),
                    _ => labels.refusal(&shown(label), label),
                });
                None
            }
        })
    }

    /// The number and the name of an annotator; `None` without a name.
    fn annotator<'c>(&mut self, annotator: &'c Cell<'_>) -> Option<(u32, Cow<'c, str>)> {
        let name = annotator.text().filter(|name| !name.trim().is_empty())?;
        let number = self.annotators.number(&name);
        if number as usize == self.is_left_out.len() {
            let lower = lower_case(&name);
            self.is_left_out.push(self.without.iter().any(|without| lower_case(without) == lower));
        }
        Some((number, name))
    }

    /// Whether an annotator has not labelled an item before. A copy of the earlier label is counted as such; it has the later of their dates
    /// if the latest label is kept, otherwise the earlier one. Of two different labels one is kept as the options say, otherwise they are a
    /// contradiction.
    fn is_first(
        &mut self,
        at: RowAt<'_>,
        (item, id): (u32, &str),
        (annotator, name): (u32, &str),
        class: usize,
        date: Option<i128>,
    ) -> bool {
        let first = match self.seen.entry((item, annotator)) {
            Entry::Vacant(new) => {
                new.insert(FirstLabel { row: at.row, class: class as u32, place: self.dated.len() as u32 });
                return true;
            }
            Entry::Occupied(first) => first.into_mut(),
        };
        if first.class as usize == class {
            add_copy(&mut self.copied, at, first.row, id, name);
            if let (Some(date), Some((kept, _))) = (date, self.dated.get_mut(first.place as usize)) {
                *kept = if self.keep_label == Some(KeepLabel::Latest) { date.max(*kept) } else { date.min(*kept) };
            }
        } else if let (Some(keep), Some(date), Some(kept)) =
            (self.keep_label, date, self.dated.get_mut(first.place as usize))
        {
            self.superseded += 1;
            let replaces = match keep {
                KeepLabel::Latest => date >= kept.0,
                KeepLabel::First => date < kept.0,
            };
            if replaces {
                (kept.0, kept.1.class) = (date, class);
                (first.row, first.class) = (at.row, class as u32);
            }
        } else {
            let (row, label) = (first.row, self.labels.name(first.class as usize));
            self.contradictions.add(at, || {
                let [name, id, label, other] = [name, id, label, self.labels.name(class)].map(shown);
                format!("{name} labelled id {id} already in row {row}, as {label} and now as {other}")
            });
        }
        false
    }

    /// The error about labels that cannot be counted, if there are any.
    pub(super) fn take_error(&mut self, file: &str) -> Option<Error> {
        let annotator = self.found.annotator.as_ref().unwrap_or(&self.columns.annotator);
        let contradictions = std::mem::take(&mut self.contradictions);
        let date = self.found.unused_date.as_deref();
        let besides = contradictions.besides(date);
        let unknown = std::mem::take(&mut self.unknown).error(file, &self.found.label, &self.labels, &besides);
        let unnamed = std::mem::take(&mut self.unnamed);
        unknown.or_else(|| unnamed.error(file, annotator)).or_else(|| contradictions.error(file, annotator, date))
    }

    /// Counts a label, if it is among the first of its item and its annotator is not left out.
    fn count(&mut self, GivenLabel { item, annotator, class }: GivenLabel) {
        let place = item as usize;
        if self.items[place].labels_left == 0 {
            return;
        }
        // Labels of annotators left out count as first ones too: which labels follow may depend on what they say.
        self.items[place].labels_left -= 1;
        if annotator.is_none_or(|annotator| !self.is_left_out[annotator as usize]) {
            self.counts[place * self.classes + class] += 1;
            self.labelled.extend(annotator.map(|annotator| (item, annotator, class as u32)));
        }
    }

    /// Counts the labels that have dates, the earliest first; labels of the same date stay in the order of the file. Returns whether the
    /// dates of every item's labels differ.
    pub(super) fn count_by_date(&mut self) -> bool {
        let mut dated = std::mem::take(&mut self.dated);
        dated.sort_by_key(|(date, label)| (label.item, *date));
        let differ = |pair: &[(i128, GivenLabel)]| (pair[0].0, pair[0].1.item) != (pair[1].0, pair[1].1.item);
        let is_order_known = !dated.is_empty() && dated.windows(2).all(differ);
        dated.into_iter().for_each(|(_, label)| self.count(label));
        is_order_known
    }

    /// Refuses to keep one label per annotator if there is no column of annotators.
    pub(super) fn check_kept(&self, file: &str) -> Result<()> {
        let Some(keep) = self.keep_label.filter(|_| self.found.annotator.is_none()) else { return Ok(()) };
        let (name, hint) = (&self.columns.annotator, self.annotator_hint());
        Err(Error::file(
            file,
            format!(
                "no column {name}: --keep-label {keep} (in Python keep_label='{keep}') keeps one label per annotator and item, and nobody \
                 knows which labels are by one annotator{hint}, or leave --keep-label out"
            ),
        ))
    }

    /// The flag that names an unused column of annotators, to end a message; empty if there is no such column.
    fn annotator_hint(&self) -> String {
        self.found
            .unused_annotator
            .as_ref()
            .map_or(String::new(), |column| format!("; there is a column {column}: add --columns annotator={column}"))
    }

    /// Refuses names to leave out that no annotator has, and leaving out all annotators.
    pub(super) fn check_left_out(&self, file: &str) -> Result<()> {
        if self.without.is_empty() {
            return Ok(());
        }
        if self.is_left_out.is_empty() {
            let (name, hint) = (&self.columns.annotator, self.annotator_hint());
            return Err(Error::file(file, format!("no column {name}: nobody can be left out by name{hint}")));
        }
        if let Some(name) = self.absent_without().next().filter(|_| !self.allow_absent_without) {
            return Err(Error::file(file, self.unknown_annotator(name)));
        }
        if self.is_left_out.iter().all(|left_out| *left_out) {
            return Err(Error::file(file, "all annotators are left out: keep at least one"));
        }
        Ok(())
    }

    /// The names to leave out that no annotator has.
    pub(super) fn absent_without(&self) -> impl Iterator<Item = &'a String> {
        self.without.iter().filter(|name| self.annotators.get(name).is_none())
    }

    /// The message about a name that no annotator has.
    fn unknown_annotator(&self, name: &str) -> String {
        let several: Vec<&str> = name.split(',').map(str::trim).collect();
        if several.len() > 1 && several.iter().all(|name| self.annotators.get(name).is_some()) {
            let flags: Vec<String> = several.iter().map(|name| format!("--without {}", shown(name))).collect();
            let (name, flags) = (shown(name), flags.join(" "));
            return format!("no annotator is called {name}: give --without once per annotator, {flags}");
        }
        let mut known: Vec<&String> = self.annotators.iter().map(|(_, name)| name).collect();
        known.sort_unstable();
        let meant = did_you_mean(name, known.iter().map(|known| known.as_str()));
        format!("no annotator is called {}: there are {}{meant}", shown(name), listed(&known))
    }
}
