//! What an Arrow stream has beside the numbers of its queries: `tags` and `input`.

use std::io::Cursor;

use arrow_array::cast::AsArray;
use arrow_array::{Array, MapArray};
use arrow_ipc::reader::StreamReader;
use axum::body::Bytes;
use serde_json::value::RawValue;

use super::parse_json;
use super::problem::{Kind, Problem};
use crate::query::{Query, Tags, stored_tags};

/// Gives queries the tags and inputs of the stream that they come from.
pub(crate) fn attach(body: &Bytes, queries: &mut [Query]) -> Result<(), Problem> {
    attach_tags(body, queries)?;
    for_each_value(body, "input", queries.len(), |row, value| {
        let text = value.text().ok_or_else(|| wrong_type("input", "text with JSON"))?;
        let input: Box<RawValue> = parse_json(text.as_bytes()).map_err(|problem| at(problem, row, "input"))?;
        queries[row].input = Some(String::from(Box::<str>::from(input)));
        Ok(())
    })
}

fn attach_tags(body: &Bytes, queries: &mut [Query]) -> Result<(), Problem> {
    for_each_value(body, "tags", queries.len(), |row, value| {
        let tags = match (value.text(), value.map()) {
            (Some(text), _) => parse_json(text.as_bytes()).map_err(|problem| at(problem, row, "tags"))?,
            (None, Some(map)) => {
                tags_of(map, value.row).map_err(|detail| Problem::invalid(pointer(row, "tags"), detail))?
            }
            (None, None) => return Err(wrong_type("tags", "a map of texts, or text with a JSON object")),
        };
        let stored = stored_tags(tags);
        queries[row].tags = stored.map_err(|bad| Problem::invalid(format!("/{row}{}", bad.pointer), bad.reason))?;
        Ok(())
    })
}

fn pointer(row: usize, column: &str) -> String {
    format!("/{row}/{column}")
}

/// A problem with a text of a column, at its place in the stream.
fn at(mut problem: Problem, row: usize, column: &str) -> Problem {
    problem.pointer = Some(pointer(row, column) + &problem.pointer.unwrap_or_default());
    problem
}

fn wrong_type(column: &str, wanted: &str) -> Problem {
    Problem::new(Kind::Invalid, format!("the column {column} has another type: give {wanted}")).at(format!("/{column}"))
}

/// A value of a column that is not null.
struct Value<'a> {
    column: &'a dyn Array,
    row: usize,
}

impl<'a> Value<'a> {
    fn text(&self) -> Option<&'a str> {
        let Self { column, row } = *self;
        text_at(column, row)
    }

    fn map(&self) -> Option<&'a MapArray> {
        self.column.as_map_opt()
    }
}

fn text_at(column: &dyn Array, row: usize) -> Option<&str> {
    if let Some(texts) = column.as_string_opt::<i32>() {
        return Some(texts.value(row));
    }
    if let Some(texts) = column.as_string_opt::<i64>() {
        return Some(texts.value(row));
    }
    column.as_string_view_opt().map(|texts| texts.value(row))
}

/// The tags of a row of maps.
fn tags_of(maps: &MapArray, row: usize) -> Result<Tags, String> {
    let entries = maps.value(row);
    let [names, values] = entries.columns() else { return Err("the map has no names and values".to_owned()) };
    let mut tags = Tags::default();
    for place in 0..entries.len() {
        let is_known = !names.is_null(place) && !values.is_null(place);
        let (name, value) = (text_at(names, place), text_at(values, place));
        let Some((name, value)) = name.zip(value).filter(|_| is_known) else {
            return Err("names and values of tags are texts".to_owned());
        };
        if !tags.add(name, value) {
            return Err(format!("the tag {name:?} is given twice"));
        }
    }
    Ok(tags)
}

/// Calls a function with each value of a column that is not null, for the first rows of a stream; with none if there is no such column.
fn for_each_value(
    body: &Bytes,
    name: &str,
    rows: usize,
    mut each: impl FnMut(usize, &Value<'_>) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let refuse = |e: arrow_schema::ArrowError| Problem::new(Kind::Invalid, format!("the body: {e}"));
    let whole = StreamReader::try_new(Cursor::new(body.clone()), None).map_err(refuse)?;
    let Some((place, _)) = whole.schema().column_with_name(name) else { return Ok(()) };
    let mut first = 0;
    for batch in StreamReader::try_new(Cursor::new(body.clone()), Some(vec![place])).map_err(refuse)? {
        let batch = batch.map_err(refuse)?;
        let column = batch.column(0);
        for row in (0..column.len()).take_while(|row| first + row < rows).filter(|row| column.is_valid(*row)) {
            each(first + row, &Value { column, row })?;
        }
        first += column.len();
    }
    Ok(())
}
