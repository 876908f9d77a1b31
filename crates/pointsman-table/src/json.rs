//! JSON values that keep the order of their keys and distinguish whole numbers from others.
//!
//! The order of a map's keys is the order of the classes, and a key given twice must be refused. Nesting is bounded by the parser (128
//! levels).

use std::borrow::Cow;
use std::fmt;
use std::iter;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::cell::Cell;
use crate::error::{Parsed, shown};
use crate::layout::Shape;
use crate::number;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Int(i128),
    Real(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// The value as a number.
    pub(crate) fn real(&self) -> Parsed<f64> {
        match self {
            Self::Int(i) => Ok(*i as f64),
            Self::Real(x) => Ok(*x),
            other => Err(other.not_a_number()),
        }
    }

    /// The value as a feature: NaN if it is null.
    pub(crate) fn feature(&self) -> Parsed<f64> {
        match self {
            Self::Null => Ok(f64::NAN),
            Self::Text(text) if text.trim().parse::<f64>().is_err() => {
                Err(number::not_a_feature(&self.not_a_number(), text, "write null"))
            }
            other => other.real(),
        }
    }

    /// The value as a count of votes.
    pub(crate) fn count(&self) -> Parsed<u32> {
        match self {
            Self::Int(i) => number::count_from_integer(*i),
            Self::Real(x) => number::count_from_real(*x),
            other => Err(other.not_a_number()),
        }
    }

    fn not_a_number(&self) -> String {
        match self {
            Self::Text(text) if text.trim().parse::<f64>().is_ok() => {
                format!("{} is text, not a number: write it without quotes", shown(text))
            }
            other => format!("{} is not a number", other.brief()),
        }
    }

    /// The value as messages show it.
    pub(crate) fn brief(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(b) => b.to_string(),
            Self::Int(i) => i.to_string(),
            Self::Real(x) => x.to_string(),
            Self::Text(text) => shown(text),
            Self::List(values) => format!("a list of {}", values.len()),
            Self::Object(_) => "an object".to_owned(),
        }
    }

    /// The value as a cell; `None` for lists and objects.
    pub(crate) fn cell(&self) -> Option<Cell<'_>> {
        Some(match self {
            Self::Null => Cell::Null,
            Self::Bool(b) => Cell::Bool(*b),
            Self::Int(i) => Cell::from_integer(*i),
            Self::Real(x) => Cell::Real(*x),
            Self::Text(text) => Cell::Text(Cow::Borrowed(text)),
            Self::List(_) | Self::Object(_) => return None,
        })
    }

    pub(crate) fn shape(&self) -> Shape {
        match self {
            Self::List(values) => Shape::List(values.len()),
            Self::Object(entries) => {
                Shape::Keyed(entries.iter().map(|(key, value)| (key.clone(), value.shape())).collect())
            }
            _ => Shape::Scalar,
        }
    }
}

/// The value as JSON, its keys in their order.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(b) => serializer.serialize_bool(*b),
            Self::Int(i) => serializer.serialize_i128(*i),
            Self::Real(x) => serializer.serialize_f64(*x),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(values) => serializer.collect_seq(values),
            Self::Object(entries) => serializer.collect_map(entries.iter().map(|(key, value)| (key, value))),
        }
    }
}

/// The entry of a key in an object's entries; `guess` is its most likely place.
pub(crate) fn entry<'a>(entries: &'a [(String, Json)], key: &str, guess: usize) -> Option<&'a Json> {
    match entries.get(guess) {
        Some((k, value)) if k == key => Some(value),
        _ => entries.iter().find(|(k, _)| k == key).map(|(_, value)| value),
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Int(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Int(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Real(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        iter::from_fn(|| seq.next_element().transpose()).collect::<Result<_, _>>().map(Json::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        iter::from_fn(|| map.next_entry().transpose()).collect::<Result<_, _>>().map(Json::Object)
    }
}
