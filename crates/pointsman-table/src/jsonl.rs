//! JSONL: one object per line, its fields wide, nested or both.

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};
use std::io::{BufRead, BufReader, Read};

use crate::cell::Cell;
use crate::error::{Error, Parsed, Result, RowAt, shown};
use crate::input::{Bytes, Counted, Input};
use crate::json::{Json, entry};
use crate::labels::Labels;
use crate::layout::{
    ColumnGroup, Field, FieldPath, FilterField, Hints, LabelFields, Layout, Location, late_answer, no_answer,
};
use crate::options::{Columns, Filter, Need, ReadOptions, Role};
use crate::raw::{RawRows, RowValues};
use crate::row_filter::RowFilter;
use crate::source::{Progress, Source};

type Object = Vec<(String, Json)>;

/// A row with its number and its line.
type NumberedRow = (u64, u64, Object);

/// The message about a file without rows.
pub(crate) const EMPTY: &str = "is empty: it has no rows, and there must be at least one";

pub(crate) struct JsonlSource {
    lines: Lines,
    /// The rows read to find the layout, each with its number and line.
    ahead: VecDeque<NumberedRow>,
    layout: Layout,
    labels: Labels,
    columns: Columns,
    need: Need,
    /// Whether all keys are kept.
    keep: bool,
    /// The unused numbers of the first row.
    unused_numeric: Vec<String>,
    row: u64,
}

pub(crate) fn open(input: Input, options: &ReadOptions) -> Result<JsonlSource> {
    let mut lines = Lines::open(input);
    let (ahead, first) = read_ahead(&mut lines, options)?;
    let first = ahead.get(first).map(|(.., object)| object);
    let layout = match first {
        Some(object) => {
            let field = |(name, value): &(String, Json)| Field {
                name: name.clone(),
                shape: value.shape(),
                first: match value.cell() {
                    Some(cell) => cell.text().map(Cow::into_owned),
                    None => Some(value.to_string()),
                },
            };
            let fields: Vec<Field> = object.iter().map(field).collect();
            Layout::find(
                &lines.name,
                &fields,
                Hints { sparse: true, sparse_answers: true, ..Hints::default() },
                options,
            )?
        }
        None => Layout::without_rows(options).ok_or_else(|| Error::file(&lines.name, EMPTY))?,
    };
    let is_number = |(_, value): &(String, Json)| matches!(value, Json::Int(_) | Json::Real(_));
    let is_numeric = |field: &&usize| first.is_some_and(|object| is_number(&object[**field]));
    let unused = layout.unused_scalars.iter().filter(is_numeric);
    Ok(JsonlSource {
        unused_numeric: unused.map(|&field| layout.names[field].clone()).collect(),
        lines,
        labels: Labels::new(&layout.classes),
        layout,
        columns: options.columns.clone(),
        need: options.need,
        keep: options.keep_columns,
        ahead,
        row: 0,
    })
}

/// Reads rows up to the first one that has a value wherever a filter asks for one, since later rows have the columns of the one that the
/// layout is found in; and the place of that row.
fn read_ahead(lines: &mut Lines, options: &ReadOptions) -> Result<(VecDeque<NumberedRow>, usize)> {
    /// Rows that are kept in memory at most.
    const MAX_ROWS: usize = 10_000;
    let needed: Vec<&Filter> = options.filters.iter().filter(|filter| filter.keeps_any_value()).collect();
    let has_all = |object: &Object| needed.iter().all(|filter| !is_empty(value_of(object, filter.column())));
    let mut ahead = VecDeque::new();
    while ahead.len() < MAX_ROWS
        && let Some((at, object)) = lines.next()?
    {
        let is_complete = has_all(&object);
        ahead.push_back((at.row, at.line.unwrap_or_default(), object));
        if is_complete {
            let place = ahead.len() - 1;
            return Ok((ahead, place));
        }
    }
    Ok((ahead, 0))
}

/// The value of a field, or of a child of a map under a name like `oracles.llm`.
fn value_of<'a>(object: &'a Object, name: &str) -> Option<&'a Json> {
    let child = |(dot, _): (usize, &str)| match entry(object, &name[..dot], 0)? {
        Json::Object(entries) => entry(entries, &name[dot + 1..], 0),
        _ => None,
    };
    entry(object, name, 0).or_else(|| name.match_indices('.').find_map(child))
}

/// Whether there is no value: it is missing, null or empty.
fn is_empty(value: Option<&Json>) -> bool {
    match value {
        None | Some(Json::Null) => true,
        Some(Json::Text(text)) => text.trim().is_empty(),
        Some(Json::List(values)) => values.iter().all(|value| matches!(value, Json::Null)),
        Some(Json::Object(entries)) => entries.iter().all(|(_, value)| matches!(value, Json::Null)),
        Some(_) => false,
    }
}

impl Source for JsonlSource {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn fill(&mut self, limit: usize, filter: &mut RowFilter, out: &mut RawRows) -> Result<usize> {
        for read in 0..limit {
            let (number, line, object) = match self.ahead.pop_front() {
                Some(row) => row,
                None => match self.lines.next()? {
                    Some((at, object)) => (at.row, at.line.unwrap_or_default(), object),
                    None => return Ok(read),
                },
            };
            self.row += 1;
            let at = RowAt { file: &self.lines.name, row: number, line: Some(line) };
            let row = Row { at, layout: &self.layout, labels: &self.labels, object: &object };
            if !filter.keeps_all() && !filter.keeps(at, |i| row.filtered_cell(&row.layout.filters[i]))? {
                if let Some(field) = self.layout.dropped_id {
                    row.ids(field, &mut out.dropped_ids)?;
                }
                continue;
            }
            row.check_keys(&self.columns, self.need)?;
            out.rows.push(at.row);
            out.lines.push(at.line.unwrap_or_default());
            out.append(&self.layout, &row)?;
            if self.keep {
                out.inputs.add_object(&object);
                if out.inputs.is_full() {
                    return Ok(read + 1);
                }
            }
        }
        Ok(limit)
    }

    fn labels(&self) -> &Labels {
        &self.labels
    }

    fn unused_numeric(&self) -> Vec<String> {
        self.unused_numeric.clone()
    }

    fn progress(&self) -> Progress {
        let bytes = &self.lines.bytes;
        Progress { rows: self.row, total_rows: None, bytes: bytes.read(), total_bytes: bytes.total }
    }
}

/// One row of the file.
struct Row<'a> {
    at: RowAt<'a>,
    layout: &'a Layout,
    labels: &'a Labels,
    object: &'a Object,
}

impl<'a> Row<'a> {
    /// Refuses a row without another model's answer: its field is missing, null or empty.
    fn check_answer(&self, group: &ColumnGroup) -> Result<()> {
        let field = |field: usize| entry(self.object, &self.layout.names[field], field);
        let is_missing = match &group.location {
            Location::Wide(fields) => fields.iter().all(|&place| is_empty(field(place))),
            Location::List(path) | Location::Keyed(path) | Location::ClassName(path) => {
                is_empty(self.value_if_any(path))
            }
        };
        if is_missing { Err(self.error(group, None, group.no_answer())) } else { Ok(()) }
    }

    /// The value at a path, if the row has it.
    fn value_if_any(&self, path: &FieldPath) -> Option<&'a Json> {
        let value = entry(self.object, &self.layout.names[path.field], path.field);
        match (&path.child, value) {
            (None, value) => value,
            (Some(child), Some(Json::Object(entries))) => entry(entries, child, 0),
            (Some(_), _) => None,
        }
    }

    /// The value that a filter looks at; of lists and maps, it may ask only whether there is one.
    fn filtered_cell(&self, filter: &FilterField) -> Result<Cell<'a>> {
        match self.value_if_any(&filter.path) {
            value if is_empty(value) => Ok(Cell::Null),
            Some(value @ (Json::List(_) | Json::Object(_))) if filter.asks_for_any_value => {
                Ok(Cell::Text(Cow::Owned(value.brief())))
            }
            Some(value) => value.cell().ok_or_else(|| {
                self.at
                    .value(&self.layout.names[filter.path.field], format!("one value is needed, not {}", value.brief()))
            }),
            None => Ok(Cell::Null),
        }
    }

    /// Refuses keys given twice, and fields with a role that are not in the first row, which would otherwise be dropped silently.
    fn check_keys(&self, columns: &Columns, need: Need) -> Result<()> {
        let names = &self.layout.names;
        for (i, (name, value)) in self.object.iter().enumerate() {
            let in_place = names.get(i).is_some_and(|n| n == name);
            let is_wide_answer = || matches!(columns.wide_role(name), Some((Role::Oracles, _)));
            let is_class = || matches!(value, Json::Text(text) if self.labels.is_name_in_words(text.trim()));
            let has_role = || {
                let single = !matches!(value, Json::List(_) | Json::Object(_));
                columns.has_role(name, single, &self.layout.classes) || is_wide_answer() && is_class()
            };
            if !in_place && need != Need::Predictions && !names.contains(name) && has_role() {
                let is_answer = name == columns.field(Role::Oracles) || is_wide_answer();
                let why = match value {
                    Json::Object(entries) if is_answer && entries.len() == 1 => {
                        no_answer(&format!("{name}.{}", entries[0].0), "")
                    }
                    _ if is_answer => no_answer(name, ""),
                    _ => "every row needs the same columns".to_owned(),
                };
                return Err(self.at.value(name, format!("is not in the first row: {why}")));
            }
        }
        // If all names are those of the first row, in its order, they were checked when the layout was found.
        let moved = self.object.iter().enumerate().any(|(i, (name, _))| names.get(i) != Some(name));
        let mut seen = HashSet::new();
        match self.object.iter().find(|(name, _)| moved && !seen.insert(name)) {
            Some((twice, _)) => Err(self.at.value(twice, "is given twice: keep one of them")),
            None => Ok(()),
        }
    }

    fn field(&self, field: usize) -> Result<&'a Json> {
        let name = &self.layout.names[field];
        entry(self.object, name, field)
            .ok_or_else(|| self.at.value(name, "is missing: every row needs the same columns"))
    }

    fn cell(&self, field: usize) -> Result<Cell<'a>> {
        let name = &self.layout.names[field];
        match entry(self.object, name, field) {
            None => Ok(Cell::Null),
            Some(value) => {
                value.cell().ok_or_else(|| self.at.value(name, format!("one value is needed, not {}", value.brief())))
            }
        }
    }

    /// Reads numbers by key or in order; `absent` is the value of a key that a map leaves out or has as null, if it may.
    fn numbers<T: Copy>(
        &self,
        group: &ColumnGroup,
        number: impl Fn(&Json) -> Parsed<T>,
        absent: Option<T>,
        out: &mut Vec<T>,
    ) -> Result<()> {
        match &group.location {
            Location::Wide(fields) => {
                for (key, &field) in fields.iter().enumerate() {
                    out.push(number(self.field(field)?).map_err(|why| self.error(group, Some(key), why))?);
                }
            }
            Location::List(path) => {
                let value = self.value_at(path, group)?;
                let Json::List(values) = value else { return Err(self.not_a("list", group, value)) };
                if values.len() != group.width() {
                    let reason = format!("{} values, but {} are needed", values.len(), group.width());
                    return Err(self.error(group, None, reason));
                }
                for (key, value) in values.iter().enumerate() {
                    out.push(number(value).map_err(|why| self.error(group, Some(key), why))?);
                }
            }
            Location::Keyed(path) => {
                let value = self.value_at(path, group)?;
                let Json::Object(entries) = value else { return Err(self.not_a("map", group, value)) };
                let mut found = 0;
                for (key, name) in group.keys.iter().enumerate() {
                    out.push(match (entry(entries, name, key), absent) {
                        (Some(Json::Null), Some(absent)) => {
                            found += 1;
                            absent
                        }
                        (Some(value), _) => {
                            found += 1;
                            number(value).map_err(|why| self.error(group, Some(key), why))?
                        }
                        (None, Some(absent)) => absent,
                        (None, None) => {
                            return Err(self.error(group, Some(key), "is missing: every row needs the same keys"));
                        }
                    });
                }
                self.check_other_entries(group, entries, found)?;
            }
            // Names of classes are no numbers: they are read as answers.
            Location::ClassName(_) => {}
        }
        Ok(())
    }

    fn value_at(&self, path: &FieldPath, group: &ColumnGroup) -> Result<&'a Json> {
        let value = self.field(path.field)?;
        let Some(child) = &path.child else { return Ok(value) };
        let missing = || self.error(group, None, "is missing: every row needs the same columns");
        match value {
            Json::Object(entries) => entry(entries, child, 0).ok_or_else(missing),
            _ => Err(missing()),
        }
    }

    /// Refuses entries of a map besides the `found` ones: they are unknown or given twice.
    fn check_other_entries(&self, group: &ColumnGroup, entries: &[(String, Json)], found: usize) -> Result<()> {
        let is_read = |(key, _): &&(String, Json)| !group.ignores_other_keys || group.keys.contains(key);
        if entries.iter().filter(is_read).count() == found {
            return Ok(());
        }
        let is_known = |key: &String| group.ignores_other_keys || group.keys.contains(key);
        let is_repeated = |i: usize| entries[..i].iter().any(|(other, _)| *other == entries[i].0);
        let surplus = (0..entries.len()).find(|&i| !is_known(&entries[i].0) || is_repeated(i));
        let surplus = surplus.map_or("", |i| &entries[i].0);
        let column = format!("{}.{surplus}", group.column(self.at.row, None));
        Err(self.at.value(column, "is unknown or given twice: every row needs the same keys"))
    }

    fn error(&self, group: &ColumnGroup, key: Option<usize>, reason: impl Into<String>) -> Error {
        self.at.value(group.column(self.at.row, key), reason)
    }

    fn not_a(&self, what: &str, group: &ColumnGroup, value: &Json) -> Error {
        self.error(group, None, format!("a {what} is needed as in the first row, not {}", value.brief()))
    }
}

impl RowValues for Row<'_> {
    fn refuse_answer(&self, field: usize, first: &str) -> Result<()> {
        let name = &self.layout.names[field];
        match entry(self.object, name, field) {
            Some(Json::Text(text)) if self.labels.is_name_in_words(text.trim()) => {
                Err(self.at.value(name, late_answer(name, text.trim(), first)))
            }
            _ => Ok(()),
        }
    }

    fn reals(&self, group: &ColumnGroup, out: &mut Vec<f64>) -> Result<()> {
        self.numbers(group, Json::real, None, out)
    }

    fn features(&self, group: &ColumnGroup, out: &mut Vec<f64>) -> Result<()> {
        self.numbers(group, Json::feature, None, out)
    }

    fn answers(&self, group: &ColumnGroup, out: &mut Vec<f64>) -> Result<()> {
        self.check_answer(group)?;
        if let Location::ClassName(path) = &group.location {
            let value = self.value_if_any(path).unwrap_or(&Json::Null);
            let text = value.cell().and_then(|cell| cell.text().map(Cow::into_owned));
            let text = text.ok_or_else(|| {
                self.error(group, None, format!("one class is needed as in the first row, not {}", value.brief()))
            })?;
            return self.labels.append_answer(&text, out).map_err(|why| self.error(group, None, why));
        }
        // A model that gives one answer need not list the other classes.
        self.numbers(group, Json::real, Some(0.0), out)
    }

    fn votes(&self, group: &ColumnGroup, out: &mut Vec<u32>) -> Result<()> {
        self.numbers(group, Json::count, Some(0), out)
    }

    fn labels(&self, fields: &LabelFields, out: &mut Vec<u32>) -> Result<()> {
        let field = match fields {
            LabelFields::List(field) => *field,
            LabelFields::Columns(fields) => {
                let names = &self.layout.names;
                let texts: Vec<Cow<'_, str>> = fields
                    .iter()
                    .map(|&field| {
                        Ok(self.cell(field)?.text().map(Cow::into_owned).map_or(Cow::Borrowed(""), Cow::Owned))
                    })
                    .collect::<Result<_>>()?;
                let counted = self.labels.append_counts(texts.into_iter(), self.layout.first_labels, out);
                return counted.map_err(|(place, why)| self.at.value(&names[fields[place]], why));
            }
        };
        let name = &self.layout.names[field];
        let value = self.field(field)?;
        let Json::List(values) = value else {
            return Err(self.at.value(name, format!("a list of labels is needed, not {}", value.brief())));
        };
        let start = out.len();
        out.resize(start + self.layout.classes.len(), 0);
        for (i, value) in values.iter().enumerate() {
            let text = value.cell().and_then(|cell| cell.text().map(|text| text.into_owned()));
            let class = text.as_deref().and_then(|text| self.labels.class_of_label(text));
            let Some(class) = class else {
                let refusal = self.labels.refusal(&value.brief(), text.as_deref().unwrap_or_default());
                return Err(self.at.value(name, refusal));
            };
            out[start + class] += u32::from(i < self.layout.first_labels);
        }
        Ok(())
    }

    fn ids(&self, field: usize, out: &mut Vec<String>) -> Result<()> {
        out.push(self.cell(field)?.id_at(self.at, &self.layout.names[field])?);
        Ok(())
    }
}

/// The objects of a JSONL file.
pub(crate) struct Lines {
    pub(crate) name: String,
    reader: BufReader<Counted>,
    bytes: Bytes,
    buffer: Vec<u8>,
    row: u64,
    line: u64,
}

impl Lines {
    pub(crate) fn open(input: Input) -> Self {
        let name = input.name.clone();
        let (reader, bytes) = input.stream();
        Self { name, reader, bytes, buffer: Vec::new(), row: 0, line: 0 }
    }

    /// The row read last.
    fn at(&self) -> RowAt<'_> {
        RowAt { file: &self.name, row: self.row, line: Some(self.line) }
    }

    pub(crate) fn next(&mut self) -> Result<Option<(RowAt<'_>, Object)>> {
        /// So that a file without line ends, which is not JSONL, does not fill the memory.
        const MAX_LINE_BYTES: u64 = 1 << 26;
        loop {
            self.buffer.clear();
            let read = self.reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut self.buffer);
            if read.map_err(|e| Error::io(&self.name, e))? == 0 {
                return Ok(None);
            }
            self.line += 1;
            if self.line == 1 && self.buffer.starts_with(b"\xef\xbb\xbf") {
                self.buffer.drain(..3);
            }
            if !self.buffer.trim_ascii().is_empty() {
                break;
            }
        }
        self.row += 1;
        if self.buffer.len() as u64 == MAX_LINE_BYTES {
            return Err(self.at().row("the line is longer than 64 MB: write one object per line"));
        }
        let at = self.at();
        // Beyond the line's end the parser would count from 0 again.
        let line = self.buffer.trim_ascii_end();
        match serde_json::from_slice(line) {
            Ok(Json::Object(object)) => Ok(Some((at, object))),
            Ok(other) => {
                Err(at.row(format!("an object is needed on every line ({{\"probs\": …}}), not {}", other.brief())))
            }
            Err(error) => {
                let text = error.to_string();
                // The parser counts lines within this one line.
                let why = text.split(" at line ").next().unwrap_or_default();
                let start: String = String::from_utf8_lossy(line).trim().chars().take(60).collect();
                let before = &line[..error.column().min(line.len())];
                let character = String::from_utf8_lossy(before).chars().count();
                Err(at.row(format!("is not JSON: {why} at character {character} of {}", shown(&start))))
            }
        }
    }
}
