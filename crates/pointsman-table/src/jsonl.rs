//! JSONL: one object per line, its fields wide, nested or both.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read};

use crate::batch::Raw;
use crate::cell::{Cell, Gate};
use crate::error::{Error, Result, RowAt, shown};
use crate::input::{Bytes, Counted, Input};
use crate::json::{Json, entry};
use crate::labels::{Labels, not_a_class};
use crate::layout::{At, Field, Hints, Kind, Layout, Part, Spot};
use crate::number::NO_ANSWER;
use crate::options::{Columns, Need, ReadOptions};
use crate::read::{Progress, Source};

type Object = Vec<(String, Json)>;

/// What is said of a file without rows.
pub(crate) const EMPTY: &str = "is empty: it has no rows, and there must be at least one";

pub(crate) struct JsonlSource {
    lines: Lines,
    /// The first row, read to find the layout.
    first: Option<Object>,
    layout: Layout,
    labels: Labels,
    columns: Columns,
    need: Need,
    /// Whether all keys are kept.
    keep: bool,
    /// The numbers of the first row that nothing uses.
    spare: Vec<String>,
    row: u64,
}

pub(crate) fn open(input: Input, options: &ReadOptions) -> Result<JsonlSource> {
    let mut lines = Lines::open(input);
    let (columns, need, keep) = (options.columns.clone(), options.need, options.keep_columns);
    let Some((_, first)) = lines.next()? else {
        let Some(layout) = Layout::without_rows(options) else {
            return Err(Error::file(&lines.name, EMPTY));
        };
        let labels = Labels::new(&layout.classes);
        return Ok(JsonlSource { lines, first: None, layout, labels, columns, need, keep, spare: Vec::new(), row: 0 });
    };
    let fields: Vec<Field> =
        first.iter().map(|(name, value)| Field { name: name.clone(), shape: value.shape() }).collect();
    let layout = Layout::find(&lines.name, &fields, Hints { sparse: true, ..Hints::default() }, options)?;
    let labels = Labels::new(&layout.classes);
    let is_number = |field: &&usize| matches!(first[**field].1, Json::Int(_) | Json::Real(_));
    let spare = layout.spare.iter().filter(is_number).map(|&field| layout.names[field].clone()).collect();
    Ok(JsonlSource { lines, first: Some(first), layout, labels, columns, need, keep, spare, row: 0 })
}

impl Source for JsonlSource {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn fill(&mut self, limit: usize, gate: &mut Gate, out: &mut Raw) -> Result<usize> {
        for read in 0..limit {
            let object = match self.first.take() {
                Some(object) => object,
                None => match self.lines.next()? {
                    Some((_, object)) => object,
                    None => return Ok(read),
                },
            };
            self.row += 1;
            let at = self.lines.at();
            let row = Row { at, layout: &self.layout, object: &object };
            if !gate.is_open() && !gate.keeps(|i| row.cell(row.layout.filters[i]))? {
                if self.layout.dropped_ids {
                    out.dropped_ids.extend(row.id()?);
                }
                continue;
            }
            row.known(&self.columns, self.need)?;
            out.rows.push(at.row);
            out.lines.push(at.line.unwrap_or_default());
            row.append(&self.labels, out)?;
            if self.keep {
                out.inputs.add_object(&object);
                if out.inputs.is_full() {
                    return Ok(read + 1);
                }
            }
        }
        Ok(limit)
    }

    fn unused_numeric(&self) -> Vec<String> {
        self.spare.clone()
    }

    fn progress(&self) -> Progress {
        let bytes = &self.lines.bytes;
        Progress { rows: self.row, total_rows: None, bytes: bytes.read(), total_bytes: bytes.total }
    }
}

struct Row<'a> {
    at: RowAt<'a>,
    layout: &'a Layout,
    object: &'a Object,
}

impl<'a> Row<'a> {
    fn append(&self, labels: &Labels, out: &mut Raw) -> Result<()> {
        let layout = self.layout;
        self.values(&layout.probs, Json::real, None, &mut out.probs)?;
        if let Some(part) = &layout.votes {
            self.values(part, Json::count, Some(0), &mut out.votes)?;
        }
        if let Some(field) = layout.labels {
            self.labels(field, labels, &mut out.votes)?;
        }
        if let Some(part) = &layout.truth {
            self.values(part, Json::real, None, &mut out.truth)?;
        }
        if let Some(part) = &layout.features {
            self.values(part, Json::feature, None, &mut out.features)?;
        }
        for ((_, part), values) in layout.oracles.iter().zip(&mut out.oracles) {
            self.is_answered(part)?;
            self.values(part, Json::real, None, values)?;
        }
        if let Some(part) = &layout.weight {
            self.values(part, Json::real, None, &mut out.weights)?;
        }
        out.ids.extend(self.id()?);
        Ok(())
    }

    /// Refuses a row without another model's answer, and says what to do: its field is missing, null or empty.
    fn is_answered(&self, part: &Part) -> Result<()> {
        let is_empty = |value: Option<&Json>| match value {
            None | Some(Json::Null) => true,
            Some(Json::List(values)) => values.iter().all(|value| matches!(value, Json::Null)),
            Some(Json::Object(entries)) => entries.iter().all(|(_, value)| matches!(value, Json::Null)),
            Some(_) => false,
        };
        let field = |field: usize| entry(self.object, &self.layout.names[field], field);
        let is_missing = match &part.at {
            At::Wide(fields) => fields.iter().all(|&place| is_empty(field(place))),
            At::List(spot) | At::Keyed(spot) => is_empty(match (&spot.child, field(spot.field)) {
                (None, value) => value,
                (Some(child), Some(Json::Object(entries))) => entry(entries, child, 0),
                (Some(_), _) => None,
            }),
        };
        if is_missing { Err(self.at.value(part.column(self.at.row, None), NO_ANSWER)) } else { Ok(()) }
    }

    /// A field that has a role must be in the first row too, or it would be dropped in silence.
    fn known(&self, columns: &Columns, need: Need) -> Result<()> {
        let names = &self.layout.names;
        for (i, (name, value)) in self.object.iter().enumerate() {
            let in_place = names.get(i).is_some_and(|n| n == name);
            let has_role = || {
                let single = !matches!(value, Json::List(_) | Json::Object(_));
                columns.has_role(name, single, &self.layout.classes)
            };
            if !in_place && need != Need::Predictions && !names.contains(name) && has_role() {
                let is_answer = *name == columns.name(Kind::Oracles).field
                    || matches!(columns.wide(name), Some((Kind::Oracles, _)));
                let why = if is_answer { NO_ANSWER } else { "every row needs the same columns" };
                return Err(self.at.value(name, format!("is not in the first row: {why}")));
            }
        }
        // Names all in their places are those of the first row, which were checked when the layout was found.
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

    fn id(&self) -> Result<Option<String>> {
        let Some(field) = self.layout.id else { return Ok(None) };
        self.cell(field)?
            .id()
            .map(|id| Some(id.into_owned()))
            .map_err(|why| self.at.value(&self.layout.names[field], why))
    }

    /// Reads numbers by key or in order; `absent` stands for a key that a map leaves out, if it may.
    fn values<T: Copy>(
        &self,
        part: &Part,
        number: impl Fn(&Json) -> std::result::Result<T, String>,
        absent: Option<T>,
        out: &mut Vec<T>,
    ) -> Result<()> {
        let blame = |key: usize, why: String| self.at.value(part.column(self.at.row, Some(key)), why);
        match &part.at {
            At::Wide(fields) => {
                for (key, &field) in fields.iter().enumerate() {
                    out.push(number(self.field(field)?).map_err(|why| blame(key, why))?);
                }
            }
            At::List(spot) => {
                let value = self.spot(spot, part)?;
                let Json::List(values) = value else { return Err(self.not_a("list", part, value)) };
                self.as_wide(part, values.len())?;
                for (key, value) in values.iter().enumerate() {
                    out.push(number(value).map_err(|why| blame(key, why))?);
                }
            }
            At::Keyed(spot) => {
                let value = self.spot(spot, part)?;
                let Json::Object(entries) = value else { return Err(self.not_a("map", part, value)) };
                let mut found = 0;
                for (key, name) in part.keys.iter().enumerate() {
                    out.push(match (entry(entries, name, key), absent) {
                        (Some(value), _) => {
                            found += 1;
                            number(value).map_err(|why| blame(key, why))?
                        }
                        (None, Some(absent)) => absent,
                        (None, None) => return Err(blame(key, "is missing: every row needs the same keys".to_owned())),
                    });
                }
                // More entries than keys found are unknown or doubled ones.
                let known = |k: &String| part.keys.contains(k);
                let count = if part.partial { entries.iter().filter(|(k, _)| known(k)).count() } else { entries.len() };
                if count != found {
                    let surplus = entries.iter().enumerate().find(|(i, (k, _))| {
                        !part.partial && !known(k) || entries[..*i].iter().any(|(other, _)| other == k)
                    });
                    let surplus = surplus.map_or("", |(_, (k, _))| k);
                    return Err(self.at.value(
                        format!("{}.{surplus}", part.column(self.at.row, None)),
                        "is unknown or given twice: every row needs the same keys",
                    ));
                }
            }
        }
        Ok(())
    }

    fn labels(&self, field: usize, labels: &Labels, out: &mut Vec<u32>) -> Result<()> {
        let name = &self.layout.names[field];
        let value = self.field(field)?;
        let Json::List(values) = value else {
            return Err(self.at.value(name, format!("a list of labels is needed, not {}", value.brief())));
        };
        let start = out.len();
        out.resize(start + self.layout.classes.len(), 0);
        for (i, value) in values.iter().enumerate() {
            let text = value.cell().and_then(|cell| cell.text().map(|text| text.into_owned()));
            let class = text.as_deref().and_then(|text| labels.class(text));
            let Some(class) = class else {
                let label = text.as_deref().unwrap_or_default();
                return Err(self.at.value(name, not_a_class(&value.brief(), label, &self.layout.classes)));
            };
            out[start + class] += u32::from(i < self.layout.first_labels);
        }
        Ok(())
    }

    fn spot(&self, spot: &Spot, part: &Part) -> Result<&'a Json> {
        let value = self.field(spot.field)?;
        let Some(child) = &spot.child else { return Ok(value) };
        let missing = || self.at.value(part.column(self.at.row, None), "is missing: every row needs the same columns");
        match value {
            Json::Object(entries) => entry(entries, child, 0).ok_or_else(missing),
            _ => Err(missing()),
        }
    }

    fn as_wide(&self, part: &Part, len: usize) -> Result<()> {
        if len == part.width() {
            return Ok(());
        }
        Err(self.at.value(part.column(self.at.row, None), format!("{len} values, but {} are needed", part.width())))
    }

    fn not_a(&self, what: &str, part: &Part, value: &Json) -> Error {
        let column = part.column(self.at.row, None);
        self.at.value(column, format!("a {what} is needed as in the first row, not {}", value.brief()))
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
        // A file without line ends is not JSONL, and need not be held in memory to be told so.
        const LONGEST: u64 = 1 << 26;
        loop {
            self.buffer.clear();
            let read = self.reader.by_ref().take(LONGEST).read_until(b'\n', &mut self.buffer);
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
        if self.buffer.len() as u64 == LONGEST {
            return Err(self.at().row("the line is longer than 64 MB: write one object per line"));
        }
        let at = self.at();
        match serde_json::from_slice(&self.buffer) {
            Ok(Json::Object(object)) => Ok(Some((at, object))),
            Ok(other) => {
                Err(at.row(format!("an object is needed on every line ({{\"probs\": …}}), not {}", other.brief())))
            }
            Err(error) => {
                let text = error.to_string();
                // The parser counts lines within this one line.
                let why = text.split(" at line ").next().unwrap_or_default();
                let start: String = String::from_utf8_lossy(&self.buffer).trim().chars().take(60).collect();
                Err(at.row(format!("is not JSON: {why} at character {} of {}", error.column(), shown(&start))))
            }
        }
    }
}
