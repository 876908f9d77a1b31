//! Votes from a long table: one label per row, joined to the table by id.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::Path;

use ::csv::ByteRecord;
use arrow_array::RecordBatch;
use pointsman::diagnose::Annotations;

use crate::arrow_value;
use crate::batch::Raw;
use crate::cell::Cell;
use crate::csv::Records;
use crate::date::moment;
use crate::error::{Error, Result, RowAt, listed, shown};
use crate::format::Format;
use crate::input::Input;
use crate::ipc::Messages;
use crate::json::{Json, entry};
use crate::jsonl::Lines;
use crate::labels::{Labels, not_a_class};
use crate::number;
use crate::options::{Columns, Delimiter, ReadOptions};
use crate::parquet::Parquet;
use crate::read::guarded;
use crate::suggest::did_you_mean;

/// The column of ids if it goes by no other name.
const ID: &str = "id";

/// The labels of every item, counted, waiting for the table's rows.
pub(crate) struct Join {
    name: String,
    ids: Names,
    items: Vec<Item>,
    /// Label counts, item by item.
    counts: Vec<u32>,
    /// The classes in the order of the counts.
    classes: Vec<String>,
    /// Who gave which label, if annotators are named.
    named: Option<NamedLabels>,
    /// Whether rows and annotations that find no partner are refused.
    strict: bool,
    /// How many rows found their annotations.
    matched: usize,
    /// Rows that found none.
    lonely_rows: Ids,
    /// The tables whose rows have come, as messages name them.
    tables: Vec<String>,
    /// The column of ids, as messages name it.
    id: String,
    /// Columns that were found though their names are written in other cases.
    taken: Vec<(&'static str, String)>,
    /// A column that seems to name the annotators and is not used.
    unused_annotator: Option<String>,
    /// Whether dates leave no doubt in which order the labels of an item were given.
    is_order_known: bool,
}

/// Ids that a table of items and its annotations do not share.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Ids {
    /// How many there are.
    pub count: usize,
    /// The first few of them.
    pub first: Vec<String>,
}

impl Ids {
    /// How many ids are named.
    const NAMED: usize = 5;

    pub(crate) fn add(&mut self, id: &str) {
        self.count += 1;
        if self.first.len() < Self::NAMED {
            self.first.push(id.to_owned());
        }
    }
}

/// How the rows of a table and the ids of its annotations were matched.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Joined {
    /// The annotations as messages name them.
    pub file: String,
    /// How many rows found their annotations.
    pub rows: usize,
    /// Ids of rows that have no annotation: they were left out.
    pub not_annotated: Ids,
    /// Annotated ids that no row has: their labels were left out.
    pub not_in_table: Ids,
    /// Columns of the annotations that were taken though their names are written in other cases: `label` and `Label`.
    pub taken: Vec<(&'static str, String)>,
    /// A column of the annotations that seems to name the annotators and was not used.
    pub unused_annotator: Option<String>,
    /// Whether the annotators of every item stand in one and the same order, so that the order of the rows does not tell who labelled first.
    pub is_sorted_by_annotator: bool,
}

/// The labels of every item in the order of the file, with their annotators.
struct NamedLabels {
    annotators: Vec<String>,
    /// Where each item's labels start, and where the last item's end.
    starts: Vec<usize>,
    /// Annotator and class.
    labels: Vec<(u32, u32)>,
}

impl NamedLabels {
    /// Groups labels, each with its item, by item. Annotators without any are forgotten.
    fn new(mut annotators: Vec<String>, items: usize, given: &[(u32, u32, u32)]) -> Self {
        let mut has_labels = vec![false; annotators.len()];
        given.iter().for_each(|(_, annotator, _)| has_labels[*annotator as usize] = true);
        let number = |annotator: u32| has_labels[..annotator as usize].iter().filter(|has_labels| **has_labels).count();
        let numbers: Vec<u32> = (0..annotators.len() as u32).map(|annotator| number(annotator) as u32).collect();
        let mut places = 0..annotators.len();
        annotators.retain(|_| places.next().is_some_and(|place| has_labels[place]));
        let mut starts = vec![0; items + 1];
        given.iter().for_each(|(item, ..)| starts[*item as usize + 1] += 1);
        for item in 0..items {
            starts[item + 1] += starts[item];
        }
        let (mut next, mut labels) = (starts.clone(), vec![(0, 0); given.len()]);
        for &(item, annotator, class) in given {
            let place = &mut next[item as usize];
            labels[*place] = (numbers[annotator as usize], class);
            *place += 1;
        }
        Self { annotators, starts, labels }
    }

    fn of_item(&self, item: usize) -> &[(u32, u32)] {
        &self.labels[self.starts[item]..self.starts[item + 1]]
    }

    /// Whether the annotators of every item stand in the order in which their names first come, or in that of the alphabet.
    fn is_sorted_by_annotator(&self) -> bool {
        /// With fewer items of several labels chance may do that.
        const FEWEST_ITEMS: usize = 10;
        let mut ranks: Vec<usize> = (0..self.annotators.len()).collect();
        ranks.sort_unstable_by_key(|&annotator| &self.annotators[annotator]);
        let mut alphabetical = vec![0; ranks.len()];
        ranks.iter().enumerate().for_each(|(rank, &annotator)| alphabetical[annotator] = rank);
        let several = || (0..self.starts.len() - 1).map(|item| self.of_item(item)).filter(|labels| labels.len() > 1);
        several().count() >= FEWEST_ITEMS
            && (several().all(|labels| labels.is_sorted_by_key(|(annotator, _)| *annotator))
                || several().all(|labels| labels.is_sorted_by_key(|(annotator, _)| alphabetical[*annotator as usize])))
    }
}

/// Names and their numbers, in the order in which they came.
#[derive(Default)]
struct Names(HashMap<String, u32, foldhash::fast::RandomState>);

impl Names {
    /// The number of a name, a new one if it has none.
    fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.0.get(name) {
            return number;
        }
        let next = self.0.len() as u32;
        self.0.insert(name.to_owned(), next);
        next
    }

    fn get(&self, name: &str) -> Option<usize> {
        self.0.get(name).map(|&number| number as usize)
    }

    /// All names in the order of their numbers.
    fn in_order(self) -> Vec<String> {
        let mut names: Vec<(String, u32)> = self.0.into_iter().collect();
        names.sort_unstable_by_key(|(_, number)| *number);
        names.into_iter().map(|(name, _)| name).collect()
    }
}

struct Item {
    /// Labels still to be counted.
    room: u32,
    /// The table and the row that have this id, once it came.
    row: Option<(usize, u64)>,
    /// The first annotation's row, to blame if the table has no such id.
    first: u64,
}

impl Join {
    pub(crate) fn load(path: &Path, classes: &[String], options: &ReadOptions) -> Result<Self> {
        let input = Input::open(path, None)?;
        let mut counter = Counter {
            columns: &options.columns,
            found: Found::default(),
            classes,
            first: options.first_labels.map_or(u32::MAX, NonZeroU32::get),
            labels: Labels::new(classes),
            ids: Names::default(),
            items: Vec::new(),
            counts: Vec::new(),
            annotators: Names::default(),
            seen: HashMap::default(),
            without: &options.without,
            is_left_out: Vec::new(),
            labelled: Vec::new(),
            dated: Vec::new(),
        };
        let name = input.name.clone();
        guarded(&name, || match input.format {
            // Two files of one export are separated alike, unless one says otherwise by its name or its header.
            Format::Csv => counter.csv(input, options.delimiter.unwrap_or(Delimiter::COMMA)),
            Format::Tsv => counter.csv(input, Delimiter::TAB),
            Format::Jsonl => counter.jsonl(input),
            Format::Parquet => counter.parquet(input),
            Format::Arrow => counter.arrow(input),
            Format::Npz => {
                Err(Error::file(&name, "annotations cannot be read from npz: use csv, jsonl, parquet or arrow"))
            }
        })?;
        if counter.items.is_empty() {
            return Err(Error::file(&name, "has no rows: there must be at least one annotation"));
        }
        counter.check_left_out(&name)?;
        let is_order_known = counter.count_by_date();
        let Counter { found, ids, items, counts, annotators, labelled, .. } = counter;
        let names = annotators.in_order();
        let named = (!names.is_empty()).then(|| NamedLabels::new(names, items.len(), &labelled));
        Ok(Self {
            name,
            ids,
            items,
            counts,
            classes: classes.to_vec(),
            named,
            strict: options.strict,
            matched: 0,
            lonely_rows: Ids::default(),
            tables: Vec::new(),
            id: found.id,
            taken: found.taken,
            unused_annotator: found.unused_annotator,
            is_order_known,
        })
    }

    /// Gives the rows their votes, in the order of `classes`, and drops rows that have none: nobody annotated them, or only annotators who
    /// are left out. Gives the item of each row that is kept.
    pub(crate) fn votes(&mut self, table: &str, raw: &mut Raw, classes: &[String]) -> Result<Vec<usize>> {
        let width = self.classes.len();
        let place = |class: &String| self.classes.iter().position(|own| own == class);
        let places: Vec<usize> = classes.iter().filter_map(place).collect();
        raw.votes.reserve(raw.ids.len() * width);
        let mut items = Vec::with_capacity(raw.ids.len());
        if self.tables.last().is_none_or(|last| last != table) {
            self.tables.push(table.to_owned());
        }
        let this = self.tables.len() - 1;
        // A row as messages name it; zero stands for any row that was left out, since rows count from one.
        let named = |tables: &[String], (of, row): (usize, u64), left_out: &str| {
            let row = if row == 0 { left_out.to_owned() } else { format!("row {row}") };
            if of == this { row } else { format!("{row} of {}", tables[of]) }
        };
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
                self.lonely_rows.add(id);
                raw.votes.resize(raw.votes.len() + width, 0);
                continue;
            };
            if let Some(other) = self.items[item].row.replace((this, at.row)).filter(|_| self.strict) {
                let row = named(&self.tables, other, "a row left out by the filter");
                return Err(at.row(format!("id {} is also that of {row}: ids must differ", shown(id))));
            }
            self.matched += 1;
            let counts = &self.counts[item * width..][..width];
            raw.votes.extend(places.iter().map(|&place| counts[place]));
        }
        for id in &raw.dropped_ids {
            if let Some(item) = self.ids.get(id)
                && let Some(other) = self.items[item].row.replace((this, 0)).filter(|_| self.strict)
            {
                let row = named(&self.tables, other, "another row left out by the filter");
                let reason =
                    format!("id {} of a row left out by the filter is also that of {row}: ids must differ", shown(id));
                return Err(Error::file(table, reason));
            }
        }
        let has_labels: Vec<bool> = raw.votes.chunks_exact(width).map(|own| own.iter().any(|&n| n > 0)).collect();
        raw.keep(&has_labels).map_err(|why| Error::file(table, why))?;
        raw.without_labels = items.iter().zip(&has_labels).filter(|(item, kept)| item.is_some() && !**kept).count();
        let kept = items.into_iter().zip(has_labels).filter(|(_, has_labels)| *has_labels);
        Ok(kept.filter_map(|(item, _)| item).collect())
    }

    /// Who gave which label to these items, if annotators are named.
    pub(crate) fn annotations(&self, items: &[usize]) -> Result<Option<Annotations>> {
        let Some(named) = &self.named else { return Ok(None) };
        let rows = items.iter().map(|&item| named.of_item(item).iter().copied());
        let annotations = Annotations::new(named.annotators.iter().map(String::as_str), rows);
        annotations.map(Some).map_err(|error| Error::file(&self.name, error.to_string()))
    }

    /// What found no partner, once all rows of the tables have come.
    pub(crate) fn finish(&self, tables: &str) -> Result<Joined> {
        let mut lonely: Vec<(usize, &String)> = (self.ids.0.iter())
            .map(|(id, &number)| (number as usize, id))
            .filter(|(place, _)| self.items[*place].row.is_none())
            .collect();
        // Items are numbered as they came: the first is the one to blame.
        lonely.sort_unstable();
        let mut not_in_table = Ids::default();
        lonely.iter().for_each(|(_, id)| not_in_table.add(id));
        if let Some(&(place, id)) = lonely.first().filter(|_| self.strict) {
            let at = RowAt { file: &self.name, row: self.items[place].first, line: None };
            return Err(at.value(&self.id, format!("{} is not an id of {tables}", shown(id))));
        }
        if self.matched == 0
            && let (Some(row), Some(annotated)) = (self.lonely_rows.first.first(), not_in_table.first.first())
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
            rows: self.matched,
            not_annotated: self.lonely_rows.clone(),
            not_in_table,
            taken: self.taken.clone(),
            unused_annotator: self.unused_annotator.clone(),
            is_sorted_by_annotator: !self.is_order_known
                && self.named.as_ref().is_some_and(NamedLabels::is_sorted_by_annotator),
        })
    }
}

/// Counts labels, one annotation at a time.
struct Counter<'a> {
    /// The names asked for.
    columns: &'a Columns,
    /// The names the file has.
    found: Found,
    classes: &'a [String],
    /// How many labels of an item count, the first ones.
    first: u32,
    labels: Labels,
    ids: Names,
    items: Vec<Item>,
    counts: Vec<u32>,
    annotators: Names,
    /// Which annotator labelled which item, with the row: an annotator asked twice is not two independent annotators.
    seen: HashMap<(u32, u32), u64, foldhash::fast::RandomState>,
    /// Names whose labels do not count, and for each annotator whether theirs is among them.
    without: &'a [String],
    is_left_out: Vec<bool>,
    /// Item, annotator and class of every label that counts, if annotators are named.
    labelled: Vec<(u32, u32, u32)>,
    /// Labels with their dates, which are counted when all are there.
    dated: Vec<(i128, GivenLabel)>,
}

/// A label that was checked: its item, who gave it, and its class.
#[derive(Debug, Clone, Copy)]
struct GivenLabel {
    item: u32,
    by: Option<u32>,
    class: usize,
}

/// The columns of annotations as the file calls them.
#[derive(Debug, Default)]
struct Found {
    id: String,
    label: String,
    annotator: Option<String>,
    date: Option<String>,
    /// Those whose names are written in other cases.
    taken: Vec<(&'static str, String)>,
    /// A column that seems to name the annotators and is not used.
    unused_annotator: Option<String>,
}

/// Where the columns stand.
struct Places {
    id: usize,
    label: usize,
    annotator: Option<usize>,
    date: Option<usize>,
}

fn occurs_twice<S: AsRef<str>>(names: impl IntoIterator<Item = S>, name: &str) -> bool {
    names.into_iter().filter(|other| other.as_ref() == name).nth(1).is_some()
}

/// What a column of annotators' names is often called.
fn seems_to_name_annotators(column: &str) -> bool {
    const WORDS: [&str; 9] =
        ["annotator", "worker", "rater", "labeler", "labeller", "labelled by", "coder", "reviewer", "user"];
    let column = column.to_lowercase().replace(['_', '-'], " ");
    WORDS.iter().any(|word| column.contains(word))
}

impl Counter<'_> {
    /// Finds the columns: by name, or else the one whose name differs in case only.
    fn find(&mut self, names: &[String]) -> std::result::Result<(), String> {
        let columns = self.columns;
        let mut taken = Vec::new();
        let mut find = |key: &'static str, name: &str| {
            if names.iter().any(|other| other == name) {
                return Some(name.to_owned());
            }
            let mut alike = names.iter().filter(|other| other.to_lowercase() == name.to_lowercase());
            let found = alike.next().filter(|_| alike.next().is_none())?;
            taken.push((key, found.clone()));
            Some(found.clone())
        };
        // Ids go by the table's name for them, or by the usual one if only that is there.
        let has_own = names.contains(&columns.id) || !names.iter().any(|name| name == ID);
        let own = if has_own { find("id", &columns.id) } else { None };
        let id = own.or_else(|| find("id", ID)).ok_or_else(|| self.missing("id", &columns.id, names))?;
        let label = find("label", &columns.label).ok_or_else(|| self.missing("label", &columns.label, names))?;
        let annotator = find("annotator", &columns.annotator);
        if annotator.is_none() && columns.named.contains(&"annotator") {
            return Err(self.missing("annotator", &columns.annotator, names));
        }
        let date = match &columns.date {
            Some(name) => Some(find("date", name).ok_or_else(|| self.missing("date", name, names))?),
            None => None,
        };
        let is_free = |name: &&String| **name != id && **name != label && Some(*name) != date.as_ref();
        let unused_annotator = match annotator {
            None => names.iter().filter(is_free).find(|name| seems_to_name_annotators(name)).cloned(),
            Some(_) => None,
        };
        self.found = Found { id, label, annotator, date, taken, unused_annotator };
        Ok(())
    }

    /// Finds where the columns stand, and says which of them is missing.
    fn places(&mut self, file: &str, names: &[String]) -> Result<Places> {
        self.find(names).map_err(|reason| Error::file(file, reason))?;
        let Found { id, label, annotator, date, .. } = &self.found;
        if let Some(twice) = [Some(id), Some(label), annotator.as_ref(), date.as_ref()]
            .into_iter()
            .flatten()
            .find(|name| occurs_twice(names, name))
        {
            return Err(Error::file(file, format!("column {twice} is given twice: rename or drop one of them")));
        }
        let place = |name: &String| names.iter().position(|other| other == name);
        let need = |name: &String| place(name).ok_or_else(|| Error::file(file, format!("no column {name}")));
        Ok(Places {
            id: need(id)?,
            label: need(label)?,
            annotator: annotator.as_ref().and_then(place),
            date: date.as_ref().and_then(place),
        })
    }

    fn missing(&self, key: &str, name: &str, names: &[String]) -> String {
        let delimiter = match names {
            [_] => "; if something else than commas separates the columns, give it: --delimiter, in Python delimiter=",
            _ => "",
        };
        let alike: Vec<&String> =
            names.iter().filter(|other| other.to_lowercase() == name.to_lowercase()).take(2).collect();
        let which = match alike.as_slice() {
            [one, two] => format!(" ({one} and {two} differ in case only: name the one that is meant)"),
            _ => String::new(),
        };
        format!(
            "no column {name}{which}: annotations need {} and {}, one row per label; columns found: {}; if it goes by another name, \
             give it: --columns {key}=NAME, in Python columns={{'{key}': NAME}}{delimiter}",
            self.columns.id,
            self.columns.label,
            listed(names)
        )
    }

    /// Checks a label and counts it, or keeps it until all dates are known.
    fn add(
        &mut self,
        at: RowAt<'_>,
        id: &Cell<'_>,
        label: &Cell<'_>,
        annotator: Option<&Cell<'_>>,
        date: Option<&Cell<'_>>,
    ) -> Result<()> {
        let id = id.id().map_err(|why| at.value(&self.found.id, why))?;
        let Some(label) = label.text().filter(|label| !label.is_empty()) else {
            return Err(at.value(&self.found.label, "no label: leave the row out"));
        };
        let Some(class) = self.labels.class(&label) else {
            return Err(at.value(&self.found.label, not_a_class(&shown(&label), &label, self.classes)));
        };
        let item = self.ids.number(&id);
        let mut by = None;
        if let Some(annotator) = annotator {
            let column = self.found.annotator.as_ref().unwrap_or(&self.columns.annotator);
            let Some(annotator) = annotator.text().filter(|name| !name.is_empty()) else {
                return Err(at.value(column, "no annotator: name all of them, or drop the column"));
            };
            let who = self.annotators.number(&annotator);
            if who as usize == self.is_left_out.len() {
                self.is_left_out.push(self.without.iter().any(|name| *name == annotator));
            }
            by = Some(who);
            if let Some(row) = self.seen.insert((item, who), at.row) {
                let (who, id) = (shown(&annotator), shown(&id));
                let reason = format!("{who} labelled id {id} already in row {row}: keep one label per annotator");
                return Err(at.value(column, reason));
            }
        }
        if item as usize == self.items.len() {
            self.items.push(Item { room: self.first, row: None, first: at.row });
            self.counts.resize(self.counts.len() + self.classes.len(), 0);
        }
        let label = GivenLabel { item, by, class };
        match (date, &self.found.date) {
            (Some(date), Some(column)) => {
                self.dated.push((moment(date).map_err(|why| at.value(column, why))?, label));
            }
            _ => self.count(label),
        }
        Ok(())
    }

    /// Counts a label, if it is among the first of its item and its annotator is not left out.
    fn count(&mut self, GivenLabel { item, by, class }: GivenLabel) {
        let (place, classes) = (item as usize, self.classes.len());
        let own = &mut self.items[place];
        if own.room == 0 {
            return;
        }
        // Labels left out take their place among the first ones: which labels follow may depend on what the first ones say.
        own.room -= 1;
        if by.is_none_or(|who| !self.is_left_out[who as usize]) {
            self.counts[place * classes + class] += 1;
            self.labelled.extend(by.map(|who| (item, who, class as u32)));
        }
    }

    /// Counts the labels that have dates, the earliest first; labels of the same date stay in the order of the file. Gives whether no two
    /// labels of an item have the same date.
    fn count_by_date(&mut self) -> bool {
        let mut dated = std::mem::take(&mut self.dated);
        dated.sort_by_key(|(date, label)| (label.item, *date));
        let differ = |pair: &[(i128, GivenLabel)]| (pair[0].0, pair[0].1.item) != (pair[1].0, pair[1].1.item);
        let is_order_known = !dated.is_empty() && dated.windows(2).all(differ);
        dated.into_iter().for_each(|(_, label)| self.count(label));
        is_order_known
    }

    /// Everybody who is to be left out must be there, and somebody else too.
    fn check_left_out(&self, file: &str) -> Result<()> {
        if self.without.is_empty() {
            return Ok(());
        }
        if self.is_left_out.is_empty() {
            let name = &self.columns.annotator;
            let hint = self.found.unused_annotator.as_ref().map_or(String::new(), |column| {
                format!("; there is a column {column}: add --columns annotator={column}")
            });
            return Err(Error::file(file, format!("no column {name}: nobody can be left out by name{hint}")));
        }
        if let Some(name) = self.without.iter().find(|name| self.annotators.get(name).is_none()) {
            let mut known: Vec<&String> = self.annotators.0.keys().collect();
            known.sort_unstable();
            let several: Vec<&str> = name.split(',').map(str::trim).collect();
            if several.len() > 1 && several.iter().all(|name| self.annotators.get(name).is_some()) {
                let flags: Vec<String> = several.iter().map(|name| format!("--without {}", shown(name))).collect();
                return Err(Error::file(
                    file,
                    format!(
                        "no annotator is called {}: give --without once per annotator, {}",
                        shown(name),
                        flags.join(" ")
                    ),
                ));
            }
            let meant = did_you_mean(name, known.iter().map(|known| known.as_str()));
            let known = listed(&known);
            return Err(Error::file(file, format!("no annotator is called {}: there are {known}{meant}", shown(name))));
        }
        if self.is_left_out.iter().all(|left_out| *left_out) {
            return Err(Error::file(file, "all annotators are left out: keep at least one"));
        }
        Ok(())
    }

    fn csv(&mut self, input: Input, usual: Delimiter) -> Result<()> {
        let mut records = Records::detect(input, usual)?;
        let places = self.places(&records.name, &records.header)?;
        let header = records.header.clone();
        while let Some((at, record)) = records.next()? {
            let cell = |field: usize| text_cell(at, record, field, &header[field]);
            let annotator = places.annotator.map(cell).transpose()?;
            let date = places.date.map(cell).transpose()?;
            self.add(at, &cell(places.id)?, &cell(places.label)?, annotator.as_ref(), date.as_ref())?;
        }
        Ok(())
    }

    fn jsonl(&mut self, input: Input) -> Result<()> {
        let mut lines = Lines::open(input);
        let mut is_first = true;
        while let Some((at, object)) = lines.next()? {
            let has = |name: &str| entry(&object, name, 0).is_some();
            if is_first {
                let names: Vec<String> = object.iter().map(|(name, _)| name.clone()).collect();
                self.find(&names).map_err(|reason| at.row(reason))?;
                is_first = false;
            }
            let cell = |name: &str| match entry(&object, name, 0) {
                None => Err(at.value(name, "is missing: every annotation needs it")),
                Some(value) => value
                    .cell()
                    .ok_or_else(|| at.value(name, format!("one value is needed, not {}", Json::brief(value)))),
            };
            let Found { id, label, annotator, date, .. } = &self.found;
            let names = || object.iter().map(|(name, _)| name);
            let wanted = [Some(id), Some(label), annotator.as_ref(), date.as_ref()];
            if let Some(twice) = wanted.into_iter().flatten().find(|name| occurs_twice(names(), name)) {
                return Err(at.value(twice, "is given twice: keep one of them"));
            }
            if annotator.is_none() && has(&self.columns.annotator) {
                let reason = "is not in the first row: name all annotators, or none";
                return Err(at.value(&self.columns.annotator, reason));
            }
            let who = annotator.as_ref().map(|name| cell(name)).transpose()?;
            let date = date.as_ref().map(|name| cell(name)).transpose()?;
            let (id, label) = (cell(id)?, cell(label)?);
            self.add(at, &id, &label, who.as_ref(), date.as_ref())?;
        }
        Ok(())
    }

    fn parquet(&mut self, input: Input) -> Result<()> {
        let parquet = Parquet::open(input)?;
        let (name, names) = (parquet.name.clone(), parquet.fields()?.into_iter().map(|f| f.name).collect::<Vec<_>>());
        let all: Vec<usize> = (0..names.len()).collect();
        let places = self.places(&name, &names)?;
        let mut first = 0;
        for batch in parquet.batches(&all, 65_536)? {
            self.batch(&name, &places, &batch?, &mut first)?;
        }
        Ok(())
    }

    fn arrow(&mut self, input: Input) -> Result<()> {
        let (messages, fields) = Messages::open(input)?;
        let name = messages.name.clone();
        let names: Vec<String> = fields.into_iter().map(|f| f.name).collect();
        let places = self.places(&name, &names)?;
        let mut first = 0;
        for batch in messages {
            self.batch(&name, &places, &batch?, &mut first)?;
        }
        Ok(())
    }

    fn batch(&mut self, file: &str, places: &Places, batch: &RecordBatch, first: &mut u64) -> Result<()> {
        let schema = batch.schema();
        for row in 0..batch.num_rows() {
            *first += 1;
            let at = RowAt { file, row: *first, line: None };
            let cell = |field: usize| {
                arrow_value::cell(batch.column(field), row).map_err(|why| at.value(schema.field(field).name(), why))
            };
            let annotator = places.annotator.map(cell).transpose()?;
            let date = places.date.map(cell).transpose()?;
            self.add(at, &cell(places.id)?, &cell(places.label)?, annotator.as_ref(), date.as_ref())?;
        }
        Ok(())
    }
}

fn text_cell<'a>(at: RowAt<'_>, record: &'a ByteRecord, field: usize, name: &str) -> Result<Cell<'a>> {
    let text = number::text(&record[field]).map_err(|why| at.value(name, why))?;
    Ok(Cell::Text(text.trim().into()))
}
