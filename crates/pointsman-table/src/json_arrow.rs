//! Values of JSONL as Arrow arrays.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, NullArray, StringArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields};

use crate::json::Json;

/// The most keys of objects that become a struct; objects with more are written as JSON.
const MAX_KEYS: usize = 1000;

/// The common type of some values.
#[derive(Debug, Clone, PartialEq)]
enum Type {
    Null,
    Bool,
    Int,
    Real,
    Text,
    List(Box<Type>),
    Object(Vec<(String, Type)>),
    /// Values of different types, or of one that Arrow does not have: written as JSON.
    Mixed,
}

/// The type that holds all these values. Values of different types become text, written as JSON.
pub(crate) fn type_of(values: &[Option<Json>]) -> DataType {
    let all = values.iter().flatten().fold(Type::Null, |all, value| join(all, type_of_value(value)));
    data_type(&all)
}

fn type_of_value(value: &Json) -> Type {
    match value {
        Json::Null => Type::Null,
        Json::Bool(_) => Type::Bool,
        Json::Int(i) if i64::try_from(*i).is_ok() => Type::Int,
        Json::Int(_) => Type::Mixed,
        Json::Real(_) => Type::Real,
        Json::Text(_) => Type::Text,
        Json::List(values) => {
            Type::List(Box::new(values.iter().fold(Type::Null, |all, v| join(all, type_of_value(v)))))
        }
        Json::Object(entries) => entries.iter().fold(Type::Object(Vec::new()), |all, (key, value)| {
            join(all, Type::Object(vec![(key.clone(), type_of_value(value))]))
        }),
    }
}

fn join(one: Type, other: Type) -> Type {
    match (one, other) {
        (Type::Null, it) | (it, Type::Null) => it,
        (Type::Int, Type::Real) | (Type::Real, Type::Int) => Type::Real,
        (Type::List(one), Type::List(other)) => Type::List(Box::new(join(*one, *other))),
        (Type::Object(mut entries), Type::Object(others)) => {
            for (i, (key, other)) in others.into_iter().enumerate() {
                // Keys are mostly in the same order.
                let same = |entry: &(String, Type)| entry.0 == key;
                let place = if entries.get(i).is_some_and(same) { Some(i) } else { entries.iter().position(same) };
                match place {
                    Some(place) => {
                        let mine = std::mem::replace(&mut entries[place].1, Type::Null);
                        entries[place].1 = join(mine, other);
                    }
                    None if entries.len() == MAX_KEYS => return Type::Mixed,
                    None => entries.push((key, other)),
                }
            }
            Type::Object(entries)
        }
        (one, other) if one == other => one,
        _ => Type::Mixed,
    }
}

fn data_type(all: &Type) -> DataType {
    match all {
        Type::Null | Type::Text | Type::Mixed => DataType::Utf8,
        Type::Bool => DataType::Boolean,
        Type::Int => DataType::Int64,
        Type::Real => DataType::Float64,
        Type::List(item) => DataType::List(Arc::new(Field::new("item", data_type(item), true))),
        // A struct needs a field.
        Type::Object(entries) if entries.is_empty() => DataType::Utf8,
        Type::Object(entries) => {
            DataType::Struct(entries.iter().map(|(key, child)| Field::new(key, data_type(child), true)).collect())
        }
    }
}

/// The values as an array of a type that [`type_of`] returned. An error has the row and the value that does not fit.
pub(crate) fn build(values: &[Option<&Json>], to: &DataType) -> Result<ArrayRef, (usize, String)> {
    let misfit = |row: usize, value: &Json| (row, format!("{} is not {}", value.brief(), in_words(to)));
    macro_rules! each {
        ($array:ty, $value:ident => $some:expr) => {{
            let one = |(row, value): (usize, &Option<&Json>)| match *value {
                None | Some(Json::Null) => Ok(None),
                Some($value) => match $some {
                    Some(converted) => Ok(Some(converted)),
                    None => Err(misfit(row, $value)),
                },
            };
            Ok(Arc::new(values.iter().enumerate().map(one).collect::<Result<$array, _>>()?))
        }};
    }
    match to {
        DataType::Boolean => each!(BooleanArray, value => match value { Json::Bool(b) => Some(*b), _ => None }),
        DataType::Int64 => {
            each!(Int64Array, value => match value { Json::Int(i) => i64::try_from(*i).ok(), _ => None })
        }
        DataType::Float64 => each!(Float64Array, value => value.real().ok()),
        DataType::Utf8 => {
            let text = |value: &Json| match value {
                Json::Text(text) => text.clone(),
                other => other.to_string(),
            };
            each!(StringArray, value => Some(text(value)))
        }
        DataType::List(item) => {
            let (mut items, mut lengths, mut rows) = (Vec::new(), Vec::new(), Vec::new());
            let mut valid = Vec::with_capacity(values.len());
            for (row, value) in values.iter().enumerate() {
                let list: &[Json] = match value {
                    None | Some(Json::Null) => &[],
                    Some(Json::List(list)) => list,
                    Some(other) => return Err(misfit(row, other)),
                };
                valid.push(matches!(value, Some(Json::List(_))));
                lengths.push(list.len());
                rows.resize(rows.len() + list.len(), row);
                items.extend(list.iter().map(Some));
            }
            let items = build(&items, item.data_type()).map_err(|(place, why)| (rows[place], why))?;
            let (offsets, nulls) = (OffsetBuffer::from_lengths(lengths), NullBuffer::from(valid));
            let array = ListArray::try_new(Arc::clone(item), offsets, items, Some(nulls));
            array.map(|array| Arc::new(array) as ArrayRef).map_err(|error| (0, error.to_string()))
        }
        DataType::Struct(fields) => structs(values, fields, misfit),
        _ => Ok(Arc::new(NullArray::new(values.len()))),
    }
}

fn structs(
    values: &[Option<&Json>],
    fields: &Fields,
    misfit: impl Fn(usize, &Json) -> (usize, String),
) -> Result<ArrayRef, (usize, String)> {
    let mut columns: Vec<Vec<Option<&Json>>> = fields.iter().map(|_| Vec::with_capacity(values.len())).collect();
    let mut valid = Vec::with_capacity(values.len());
    for (row, value) in values.iter().enumerate() {
        let entries: &[(String, Json)] = match value {
            None | Some(Json::Null) => &[],
            Some(Json::Object(entries)) => entries,
            Some(other) => return Err(misfit(row, other)),
        };
        valid.push(matches!(value, Some(Json::Object(_))));
        let unknown = |(key, _): &&(String, Json)| fields.find(key).is_none();
        if let Some((key, _)) = entries.iter().find(unknown) {
            return Err((row, format!("the key {key:?} is not among those of the first rows")));
        }
        for (i, (field, column)) in fields.iter().zip(&mut columns).enumerate() {
            column.push(crate::json::entry(entries, field.name(), i));
        }
    }
    let arrays: Result<Vec<ArrayRef>, _> =
        columns.iter().zip(fields).map(|(column, field)| build(column, field.data_type())).collect();
    let array = StructArray::try_new(fields.clone(), arrays?, Some(NullBuffer::from(valid)));
    array.map(|array| Arc::new(array) as ArrayRef).map_err(|error| (0, error.to_string()))
}

fn in_words(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Boolean => "true or false",
        DataType::Int64 => "a whole number",
        DataType::Float64 => "a number",
        DataType::List(_) => "a list",
        DataType::Struct(_) => "an object",
        _ => "text",
    }
}
