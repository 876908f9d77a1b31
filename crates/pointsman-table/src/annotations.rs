//! Votes from a long table: one label a row, joined to the table by id.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::Path;

use ::csv::ByteRecord;
use arrow_array::RecordBatch;

use crate::arrow_value;
use crate::batch::Raw;
use crate::cell::Cell;
use crate::csv::Records;
use crate::error::{Error, Result, RowAt, listed, shown};
use crate::format::Format;
use crate::input::Input;
use crate::ipc::Messages;
use crate::json::{Json, entry};
use crate::jsonl::Lines;
use crate::labels::Labels;
use crate::number;
use crate::options::{Delimiter, ReadOptions};
use crate::parquet::Parquet;
use crate::read::guarded;

const ID: &str = "id";
const LABEL: &str = "label";
const ANNOTATOR: &str = "annotator";

/// The labels of every item, counted, waiting for the table's rows.
pub(crate) struct Join {
    name: String,
    items: HashMap<String, Item>,
    classes: usize,
}

struct Item {
    counts: Box<[u32]>,
    /// Labels still to be counted.
    room: u32,
    /// The row of the table that has this id, once it came.
    row: Option<u64>,
    /// The first annotation's row, to blame if the table has no such id.
    first: u64,
}

impl Join {
    pub(crate) fn load(path: &Path, classes: &[String], options: &ReadOptions) -> Result<Self> {
        let input = Input::open(path, None)?;
        let mut counter = Counter {
            classes,
            first: options.first_labels.map_or(u32::MAX, NonZeroU32::get),
            labels: Labels::new(classes),
            items: HashMap::new(),
            seen: HashMap::new(),
        };
        let name = input.name.clone();
        guarded(&name, || match input.format {
            // Two files of one export are separated alike, unless one says otherwise by its name.
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
        Ok(Self { name, items: counter.items, classes: classes.len() })
    }

    /// Gives the rows their votes. After the table's `last` rows every annotation must have found its row.
    pub(crate) fn votes(&mut self, table: &str, raw: &mut Raw, last: bool) -> Result<()> {
        raw.votes.reserve(raw.ids.len() * self.classes);
        for (i, id) in raw.ids.iter().enumerate() {
            let at = RowAt { file: table, row: raw.rows[i], line: raw.lines.get(i).copied() };
            let Some(item) = self.items.get_mut(id) else {
                return Err(at.row(format!("no annotation of id {} in {}: leave the row out", shown(id), self.name)));
            };
            if let Some(row) = item.row.replace(at.row) {
                let row = if row == 0 { "a row left out by the filter".to_owned() } else { format!("row {row}") };
                return Err(at.row(format!("id {} is also that of {row}: ids must differ", shown(id))));
            }
            raw.votes.extend_from_slice(&item.counts);
        }
        for id in &raw.dropped_ids {
            // Rows count from one; zero stands for any row that was left out.
            if let Some(item) = self.items.get_mut(id)
                && let Some(row) = item.row.replace(0)
            {
                let row = if row == 0 { "several rows".to_owned() } else { format!("row {row} and another") };
                return Err(Error::file(table, format!("id {} is that of {row}: ids must differ", shown(id))));
            }
        }
        if last
            && let Some((id, item)) = self.items.iter().filter(|(_, i)| i.row.is_none()).min_by_key(|(_, i)| i.first)
        {
            let at = RowAt { file: &self.name, row: item.first, line: None };
            return Err(at.value(ID, format!("{} is not an id of {table}", shown(id))));
        }
        Ok(())
    }
}

/// Counts labels, one annotation at a time.
struct Counter<'a> {
    classes: &'a [String],
    /// How many labels of an item count, the first ones.
    first: u32,
    labels: Labels,
    items: HashMap<String, Item>,
    /// Who labelled what, with the row: an annotator asked twice is not two independent annotators.
    seen: HashMap<(String, String), u64>,
}

/// Where the three columns stand.
struct Places {
    id: usize,
    label: usize,
    annotator: Option<usize>,
}

impl Places {
    fn find(file: &str, names: &[String]) -> Result<Self> {
        if let Some(twice) = [ID, LABEL, ANNOTATOR].into_iter().find(|&name| occurs_twice(names, name)) {
            return Err(Error::file(file, format!("column {twice} is given twice: rename or drop one of them")));
        }
        let find = |name: &str| names.iter().position(|n| n == name);
        let need = |name: &str| {
            find(name).ok_or_else(|| {
                Error::file(
                    file,
                    format!("no column {name}: annotations need id and label; columns found: {}", listed(names)),
                )
            })
        };
        Ok(Self { id: need(ID)?, label: need(LABEL)?, annotator: find(ANNOTATOR) })
    }
}

fn occurs_twice<S: AsRef<str>>(names: impl IntoIterator<Item = S>, name: &str) -> bool {
    names.into_iter().filter(|other| other.as_ref() == name).nth(1).is_some()
}

impl Counter<'_> {
    fn add(&mut self, at: RowAt<'_>, id: &Cell<'_>, label: &Cell<'_>, annotator: Option<&Cell<'_>>) -> Result<()> {
        let id = id.id().map_err(|why| at.value(ID, why))?;
        let Some(label) = label.text().filter(|label| !label.is_empty()) else {
            return Err(at.value(LABEL, "no label: leave the row out"));
        };
        let Some(class) = self.labels.class(&label) else {
            let classes = listed(self.classes);
            return Err(at.value(LABEL, format!("label {} is not among the classes ({classes})", shown(&label))));
        };
        if let Some(annotator) = annotator {
            let annotator = match annotator.text() {
                Some(name) if !name.is_empty() => name.into_owned(),
                _ => return Err(at.value(ANNOTATOR, "no annotator: name all of them, or drop the column")),
            };
            let who = shown(&annotator);
            if let Some(row) = self.seen.insert((id.clone(), annotator), at.row) {
                return Err(at.value(
                    ANNOTATOR,
                    format!("{who} labelled id {} already in row {row}: keep one label an annotator", shown(&id)),
                ));
            }
        }
        let (classes, room) = (self.classes.len(), self.first);
        let item = self.items.entry(id).or_insert_with(|| Item {
            counts: vec![0; classes].into_boxed_slice(),
            room,
            row: None,
            first: at.row,
        });
        if item.room > 0 {
            item.room -= 1;
            item.counts[class] += 1;
        }
        Ok(())
    }

    fn csv(&mut self, input: Input, delimiter: Delimiter) -> Result<()> {
        let mut records = Records::open(input, delimiter)?;
        let places = Places::find(&records.name, &records.header)?;
        while let Some((at, record)) = records.next()? {
            let cell = |field: usize, name: &str| text_cell(at, record, field, name);
            let annotator = places.annotator.map(|field| cell(field, ANNOTATOR)).transpose()?;
            self.add(at, &cell(places.id, ID)?, &cell(places.label, LABEL)?, annotator.as_ref())?;
        }
        Ok(())
    }

    fn jsonl(&mut self, input: Input) -> Result<()> {
        let mut lines = Lines::open(input);
        let mut has_annotators = None;
        while let Some((at, object)) = lines.next()? {
            let cell = |name: &str| match entry(&object, name, 0) {
                None => Err(at.value(name, "is missing: every annotation needs it")),
                Some(value) => value
                    .cell()
                    .ok_or_else(|| at.value(name, format!("one value is needed, not {}", Json::brief(value)))),
            };
            let names = || object.iter().map(|(name, _)| name);
            if let Some(twice) = [ID, LABEL, ANNOTATOR].into_iter().find(|name| occurs_twice(names(), name)) {
                return Err(at.value(twice, "is given twice: keep one of them"));
            }
            let annotated = entry(&object, ANNOTATOR, 0).is_some();
            let named = *has_annotators.get_or_insert(annotated);
            if annotated && !named {
                return Err(at.value(ANNOTATOR, "is not in the first row: name all annotators, or none"));
            }
            let annotator = if named { Some(cell(ANNOTATOR)?) } else { None };
            self.add(at, &cell(ID)?, &cell(LABEL)?, annotator.as_ref())?;
        }
        Ok(())
    }

    fn parquet(&mut self, input: Input) -> Result<()> {
        let parquet = Parquet::open(input)?;
        let (name, names) = (parquet.name.clone(), parquet.fields()?.into_iter().map(|f| f.name).collect::<Vec<_>>());
        let all: Vec<usize> = (0..names.len()).collect();
        let places = Places::find(&name, &names)?;
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
        let places = Places::find(&name, &names)?;
        let mut first = 0;
        for batch in messages {
            self.batch(&name, &places, &batch?, &mut first)?;
        }
        Ok(())
    }

    fn batch(&mut self, file: &str, places: &Places, batch: &RecordBatch, first: &mut u64) -> Result<()> {
        for row in 0..batch.num_rows() {
            *first += 1;
            let at = RowAt { file, row: *first, line: None };
            let cell = |field: usize, name: &str| {
                arrow_value::cell(batch.column(field), row).map_err(|why| at.value(name, why))
            };
            let annotator = places.annotator.map(|field| cell(field, ANNOTATOR)).transpose()?;
            self.add(at, &cell(places.id, ID)?, &cell(places.label, LABEL)?, annotator.as_ref())?;
        }
        Ok(())
    }
}

fn text_cell<'a>(at: RowAt<'_>, record: &'a ByteRecord, field: usize, name: &str) -> Result<Cell<'a>> {
    let text = number::text(&record[field]).map_err(|why| at.value(name, why))?;
    Ok(Cell::Text(text.trim().into()))
}
