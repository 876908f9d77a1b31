//! Queries as requests state them, and as a policy decides them.

use std::collections::BTreeMap;
use std::fmt;

use pointsman::Policy;
use pointsman::table::SUM_TOLERANCE;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type};

/// The longest id of a caller, in bytes.
pub(crate) const MAX_ID_BYTES: usize = 200;

/// The most tags of a query, and the longest name or value of one, in bytes.
pub(crate) const MAX_TAGS: usize = 32;
pub(crate) const MAX_TAG_BYTES: usize = 200;

/// Sums that probabilities may have because they were rounded.
const ROUNDED_SUMS: std::ops::Range<f64> = 0.9..1.1;

/// Not every store can keep this character.
const NO_NUL: &str = "the character U+0000 cannot be stored: leave it out";

/// One query as a request states it.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueryBody {
    /// The caller's own id: the same id gives the first decision again. An id names one query: with other probabilities or features it is
    /// refused.
    #[serde(default)]
    pub(crate) id: Option<String>,
    /// The classifier's probabilities: one number per class in the order of the deployment's classes, or an object of class names.
    #[schema(schema_with = probs_schema)]
    pub(crate) probs: Numbers,
    /// The features that the router uses, by name, or as a list in the router's order. Null is a value that is missing.
    #[serde(default)]
    #[schema(schema_with = features_schema)]
    pub(crate) features: Option<Numbers>,
    /// Names and values to find the decision by.
    #[serde(default)]
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    pub(crate) tags: Option<Tags>,
    /// The input itself, any JSON; it is kept with the decision.
    #[serde(default)]
    #[schema(value_type = Option<serde_json::Value>)]
    pub(crate) input: Option<Box<RawValue>>,
}

/// Numbers in order, or by name. A feature may be null, which means that it is missing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Numbers {
    /// In order.
    List(Vec<Option<f64>>),
    /// By name.
    Map(Vec<(String, Option<f64>)>),
}

/// Probabilities in the description of the interface.
pub(crate) fn probs_schema() -> Schema {
    let number = || ObjectBuilder::new().schema_type(Type::Number);
    let list = ArrayBuilder::new().items(number());
    let map = ObjectBuilder::new().schema_type(Type::Object).additional_properties(Some(number()));
    OneOfBuilder::new()
        .item(list)
        .item(map)
        .description(Some(
            "The classifier's probabilities: a list in the order of the classes, or an object of class names.",
        ))
        .into()
}

/// Features in the description of the interface.
pub(crate) fn features_schema() -> Schema {
    let number = || ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::Number, Type::Null]));
    let map = ObjectBuilder::new().schema_type(Type::Object).additional_properties(Some(number()));
    let list = ArrayBuilder::new().items(number());
    let none = ObjectBuilder::new().schema_type(Type::Null);
    let meaning =
        "The features that the router uses, by name, or as a list in the router's order. A null value is missing.";
    OneOfBuilder::new().item(map).item(list).item(none).description(Some(meaning)).into()
}

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Numbers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of numbers, or an object of names and numbers")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Numbers, A::Error> {
                let mut numbers = Vec::with_capacity(list.size_hint().unwrap_or(16).min(1024));
                while let Some(number) = list.next_element()? {
                    numbers.push(number);
                }
                Ok(Numbers::List(numbers))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Numbers, A::Error> {
                let mut numbers = Vec::with_capacity(map.size_hint().unwrap_or(16).min(1024));
                while let Some(entry) = map.next_entry()? {
                    numbers.push(entry);
                }
                Ok(Numbers::Map(numbers))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

/// Tags by name; one that is given twice is refused.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Tags(BTreeMap<String, String>);

impl Tags {
    /// Adds a tag; `false` if it is there already.
    pub(crate) fn add(&mut self, name: &str, value: &str) -> bool {
        self.0.insert(name.to_owned(), value.to_owned()).is_none()
    }
}

impl<'de> Deserialize<'de> for Tags {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Distinct;

        impl<'de> Visitor<'de> for Distinct {
            type Value = Tags;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of names and texts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tags, A::Error> {
                let mut tags = BTreeMap::new();
                while let Some((name, value)) = map.next_entry::<String, String>()? {
                    if tags.contains_key(&name) {
                        return Err(serde::de::Error::custom(format!("the tag {name:?} is given twice")));
                    }
                    tags.insert(name, value);
                }
                Ok(Tags(tags))
            }
        }

        deserializer.deserialize_map(Distinct)
    }
}

/// One query as a policy decides it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Query {
    /// The caller's own id.
    pub(crate) id: Option<String>,
    /// The tags as a JSON object.
    pub(crate) tags: Option<String>,
    /// The input as JSON.
    pub(crate) input: Option<String>,
    /// The probabilities, in the order of the policy's classes.
    pub(crate) prediction: Vec<f64>,
    /// The features that the policy uses, in its order.
    pub(crate) features: Vec<f64>,
}

/// A field of a query that cannot be used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct BadField {
    /// The place in the query, as a JSON pointer.
    pub(crate) pointer: String,
    /// What is wrong and what to do.
    pub(crate) reason: String,
}

impl BadField {
    fn new(pointer: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), reason: reason.into() }
    }
}

/// A name as a step of a JSON pointer.
fn step(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

impl QueryBody {
    /// The query for a policy.
    ///
    /// # Errors
    /// If a class, a feature or a number is missing or wrong.
    pub(crate) fn for_policy(self, policy: &Policy) -> Result<Query, BadField> {
        check_id(self.id.as_deref())?;
        let by_name = matches!(self.probs, Numbers::Map(_));
        let found = in_order(self.probs, policy.classes(), "/probs", "class")?;
        let mut prediction = Vec::with_capacity(found.len());
        for (place, number) in found.into_iter().enumerate() {
            let name = || if by_name { step(&policy.classes()[place]) } else { place.to_string() };
            let number =
                number.ok_or_else(|| BadField::new(format!("/probs/{}", name()), "a probability is missing"))?;
            prediction.push(number);
        }
        let wanted = policy.cells().features();
        let features = match self.features {
            None if wanted.is_empty() => Vec::new(),
            None => {
                let reason = format!("the router uses features: give {}", wanted.join(", "));
                return Err(BadField::new("/features", reason));
            }
            Some(given) => in_order(given.only_features(wanted), wanted, "/features", "feature")?,
        };
        let features = features.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect();
        let tags = self.tags.map(stored_tags).transpose()?.flatten();
        let input = self.input.map(|input| String::from(Box::<str>::from(input)));
        Ok(Query { id: self.id, tags, input, prediction, features })
    }
}

impl Numbers {
    /// The numbers of these features; others are of no use to the router, and callers may send them. A name may have the `x_` of columns
    /// of tables before it.
    fn only_features(self, names: &[String]) -> Self {
        let known = |name: String| {
            let is_known = |name: &str| names.iter().any(|known| known == name);
            if is_known(&name) {
                return Some(name);
            }
            name.strip_prefix("x_").filter(|name| is_known(name)).map(str::to_owned)
        };
        match self {
            Self::Map(entries) => {
                Self::Map(entries.into_iter().filter_map(|(name, number)| Some((known(name)?, number))).collect())
            }
            // Without names, features that no cell depends on cannot be told apart.
            list @ Self::List(_) => list,
        }
    }
}

/// Refuses a caller's id that no store can keep: it is empty or too long, or contains a NUL character.
pub(crate) fn check_id(id: Option<&str>) -> Result<(), BadField> {
    match id {
        Some(id) if !(1..=MAX_ID_BYTES).contains(&id.len()) => {
            let bytes = id.len();
            Err(BadField::new("/id", format!("an id has from 1 to {MAX_ID_BYTES} bytes, this one has {bytes}")))
        }
        Some(id) if id.contains('\0') => Err(BadField::new("/id", NO_NUL)),
        _ => Ok(()),
    }
}

/// Numbers in the order of the names.
fn in_order(numbers: Numbers, names: &[String], at: &str, what: &str) -> Result<Vec<Option<f64>>, BadField> {
    let entries = match numbers {
        Numbers::List(list) if list.len() == names.len() => return Ok(list),
        Numbers::List(_) if names.is_empty() => {
            return Err(BadField::new(at, format!("the router uses no {what}s: leave the list out")));
        }
        Numbers::List(list) => {
            let plural = if what == "class" { "classes" } else { "features" };
            let (given, wanted) = (list.len(), names.len());
            let reason = format!("{given} numbers for {wanted} {plural}: give one for each of {}", names.join(", "));
            return Err(BadField::new(at, reason));
        }
        Numbers::Map(entries) => entries,
    };
    let mut found: Vec<Option<Option<f64>>> = vec![None; names.len()];
    for (name, number) in entries {
        let pointer = || format!("{at}/{}", step(&name));
        let Some(place) = names.iter().position(|known| *known == name) else {
            let reason = format!("there is no {what} {name:?}: the deployment has {}", names.join(", "));
            return Err(BadField::new(pointer(), reason));
        };
        if found[place].replace(number).is_some() {
            return Err(BadField::new(pointer(), format!("the {what} {name:?} is given twice")));
        }
    }
    let missing = |(place, number): (usize, Option<Option<f64>>)| {
        let name = &names[place];
        number.ok_or_else(|| BadField::new(at, format!("the {what} {name:?} is missing")))
    };
    found.into_iter().enumerate().map(missing).collect()
}

/// Tags as they are stored, if they can be.
pub(crate) fn stored_tags(tags: Tags) -> Result<Option<String>, BadField> {
    if tags.0.is_empty() { Ok(None) } else { check_tags(tags).map(Some) }
}

fn check_tags(Tags(tags): Tags) -> Result<String, BadField> {
    if tags.len() > MAX_TAGS {
        return Err(BadField::new("/tags", format!("{} tags: give at most {MAX_TAGS}", tags.len())));
    }
    let is_long = |text: &String| text.len() > MAX_TAG_BYTES;
    if let Some(name) = tags.iter().find(|(name, value)| is_long(name) || is_long(value)).map(|(name, _)| name) {
        let reason = format!("names and values of tags have at most {MAX_TAG_BYTES} bytes");
        return Err(BadField::new(format!("/tags/{}", step(name)), reason));
    }
    if tags.iter().any(|(name, value)| name.contains('\0') || value.contains('\0')) {
        return Err(BadField::new("/tags", NO_NUL));
    }
    serde_json::to_string(&tags).map_err(|e| BadField::new("/tags", e.to_string()))
}

/// The field of a query that the core refused.
pub(crate) fn bad_field(error: &pointsman::Error, policy: &Policy) -> BadField {
    use pointsman::Error;
    use pointsman::error::ValueError;
    match error {
        Error::Value { column, reason, .. } => {
            let class =
                column.strip_prefix("prob_").and_then(|name| policy.classes().iter().position(|known| known == name));
            let pointer = match class {
                Some(place) => format!("/probs/{place}"),
                None => match column.strip_prefix("x_") {
                    Some(name) => format!("/features/{}", step(name)),
                    None => "/probs".to_owned(),
                },
            };
            let reason = match reason {
                // A feature that is null or not a number has not been given.
                ValueError::Feature { value } if value.is_nan() => ValueError::MissingFeature.to_string(),
                ValueError::ProbabilitySum { sum } if ROUNDED_SUMS.contains(sum) => {
                    format!("{reason}; the sum must be within {SUM_TOLERANCE} of 1: send them unrounded")
                }
                other => other.to_string(),
            };
            BadField::new(pointer, reason)
        }
        other => BadField::new("/probs", other.to_string()),
    }
}
