//! Messages about columns that were not found, and what to do.

use std::borrow::Cow;
use std::collections::HashSet;

use super::finder::Finder;
use super::{Field, Shape};
use crate::error::{Error, listed};
use crate::json::Json;
use crate::labels::Labels;
use crate::options::{Role, SEPARATORS, feature_key};
use crate::suggest::{closest, seems_to_be_id};

/// Delimiters other than commas, their names, and how they are typed.
const DELIMITERS: [(char, &str, &str); 3] = [(';', "semicolons", ";"), ('|', "pipes", "|"), ('\t', "tabs", "\\t")];

/// The largest distance from one of a sum of probabilities that are written with few decimals.
const ROUNDING_OF_SUMS: f64 = 0.02;

impl Finder<'_> {
    pub(super) fn no_predictions(&self) -> Error {
        self.error(format!(
            "no predictions: no column begins with {} and none is a list or map named {}; columns found: {}; {}",
            self.columns.prefix(Role::Probs),
            self.columns.field(Role::Probs),
            self.found(),
            self.delimiter_hint()
                .or_else(|| self.decisions_hint())
                .or_else(|| self.nested_predictions_hint())
                .or_else(|| self.hint_by_class())
                .or_else(|| self.predictions_hint())
                .or_else(|| self.annotations_hint())
                .unwrap_or_else(|| {
                    "if they go by another name, give it: --columns probs=NAME, in Python columns={'probs': NAME}"
                        .to_owned()
                })
        ))
    }

    /// What to do if the header has another delimiter: it was read as one column, or split at the commas of a name.
    pub(super) fn delimiter_hint(&self) -> Option<String> {
        let count =
            |delimiter: char| self.fields.iter().map(|field| field.name.matches(delimiter).count()).sum::<usize>();
        let (_, name, typed) =
            DELIMITERS.into_iter().find(|(delimiter, ..)| count(*delimiter) >= self.fields.len().max(1))?;
        Some(format!(
            "separate the columns by commas, or name {name} as the delimiter: --delimiter '{typed}', in Python delimiter='{typed}'"
        ))
    }

    /// What to do if the table has decisions without their queries.
    fn decisions_hint(&self) -> Option<String> {
        let has = |name: &str| self.fields.iter().any(|field| field.name == name);
        (has("action") && has("next_best")).then(|| {
            "this looks like decisions without their queries: pointsman decide writes both with --keep all".to_owned()
        })
    }

    /// What to do if a file of annotations was given as the table: it has columns of ids and labels, and no column of fractions.
    fn annotations_hint(&self) -> Option<String> {
        let is_label = |field: &Field| field.name.to_lowercase() == self.columns.label.to_lowercase();
        let is_id = |field: &Field| field.name == self.columns.id || seems_to_be_id(&field.name);
        let is_plain = |field: &Field| field.shape == Shape::Scalar && !is_fraction(field);
        let looks_so =
            self.fields.iter().any(is_label) && self.fields.iter().any(is_id) && self.fields.iter().all(is_plain);
        looks_so.then(|| {
            "this looks like a file of annotations: give the table of predictions in its place, and this file behind it, --annotations FILE \
             (in Python annotations=FILE)"
                .to_owned()
        })
    }

    /// What to do if a column holds the labels as text: one class name per row, or several in one text.
    pub(super) fn label_hint(&self, classes: &[String]) -> Option<String> {
        let names = [self.columns.labels.as_str(), &self.columns.label, "labels", "label"];
        let is_label_column = |field: &&Field| {
            field.shape == Shape::Scalar && names.contains(&field.name.as_str()) && field.first.is_some()
        };
        let column = self.fields.iter().find(is_label_column)?;
        let first = column.first.as_deref().unwrap_or_default();
        let name = &column.name;
        let holds = if classes.iter().any(|class| class == first) && !self.is_one_label(column, classes) {
            "one class name per row: give labels".to_owned()
        } else if classes.iter().any(|class| class == first) {
            format!(
                "one class name per row: {}, in Python columns={{'labels': '{name}'}}, reads it as one label per row; several labels per item \
                 are given",
                columns_flag(&format!("labels={name}"))
            )
        } else if classes.iter().any(|class| first.contains(class.as_str())) {
            "text and not a list: give labels".to_owned()
        } else {
            return None;
        };
        Some(format!(
            "; column {name} holds {holds} as annotations, --annotations FILE with the columns id and label and one row per label, or as a list \
             in JSONL"
        ))
    }

    /// What to do if the votes have another prefix: one without a role that has a column for each class, and no fractions.
    pub(super) fn votes_hint(&self, classes: &[String]) -> Option<String> {
        let whole = self.fields.iter().filter(|field| !is_fraction(field));
        let names: HashSet<&str> = whole.map(|field| field.name.as_str()).collect();
        let has_all = |prefix: &str| classes.iter().all(|class| names.contains(format!("{prefix}{class}").as_str()));
        let free = self.fields.iter().filter(|field| self.columns.wide_role(&field.name).is_none());
        let mut prefixes = free.filter_map(|field| field.name.strip_suffix(classes.first()?.as_str()));
        let prefix = prefixes.find(|prefix| !prefix.is_empty() && has_all(prefix))?;
        Some(format!(
            "; if {prefix}<class> are the votes, give their prefix: {}, in Python columns={{'votes': '{prefix}'}}",
            columns_flag(&format!("votes={prefix}"))
        ))
    }

    /// What to do if the predictions have a prefix like the one looked for, which two columns or more without a role have.
    fn predictions_hint(&self) -> Option<String> {
        let given = self.columns.prefix(Role::Probs);
        let free = self.fields.iter().filter(|field| self.columns.wide_role(&field.name).is_none());
        let names: Vec<&str> = free.map(|field| field.name.as_str()).collect();
        let prefixes =
            names.iter().flat_map(|name| name.match_indices(SEPARATORS).map(|(end, it)| &name[..end + it.len()]));
        let is_shared = |prefix: &&str| {
            names.iter().filter(|name| name.starts_with(prefix) && name.len() > prefix.len()).count() > 1
        };
        let prefix = closest(given, prefixes.filter(is_shared))?;
        Some(prefix_flag(prefix))
    }

    /// What to do if the columns of the predictions are named like the classes alone: the classes of the votes or, without votes, columns
    /// whose first values are probabilities that sum to one.
    fn hint_by_class(&self) -> Option<String> {
        const MAX_NAMED: usize = 20;
        let is_free = |field: &&Field| field.shape == Shape::Scalar && self.columns.wide_role(&field.name).is_none();
        let free: Vec<&Field> = self.fields.iter().filter(is_free).collect();
        let (classes, _) = self.wide_columns(Role::Votes);
        let is_column = |class: &String| free.iter().any(|field| field.name == *class);
        let names: Vec<&str> = match classes.is_empty() {
            false if classes.iter().all(is_column) => classes.iter().map(String::as_str).collect(),
            false => return prefix_of_probabilities(&free).map(prefix_flag),
            true => {
                let fractions: Vec<&Field> = free.iter().copied().filter(|field| is_fraction(field)).collect();
                let sum: f64 = fractions.iter().filter_map(|field| first_number(field)).sum();
                let are_probabilities =
                    fractions.iter().all(|field| first_number(field).is_some_and(|p| (0.0..=1.0).contains(&p)));
                if !are_probabilities || (sum - 1.0).abs() >= 1e-3 {
                    return prefix_of_probabilities(&free).map(prefix_flag);
                }
                fractions.iter().map(|field| field.name.as_str()).collect()
            }
        };
        if classes.is_empty()
            && let Some(prefix) = common_prefix(&names)
        {
            return Some(prefix_flag(prefix));
        }
        let can_be_typed = |name: &&str| !name.contains([',', '\'']);
        if !(2..=MAX_NAMED).contains(&names.len()) || !names.iter().all(can_be_typed) {
            return None;
        }
        Some(format!(
            "if {} are the predictions, name each of them: {}, in Python columns={{'probs': ['{}']}}",
            listed(&names),
            columns_flag(&format!("probs={}", names.join(",probs="))),
            names.join("', '")
        ))
    }

    /// What to do if there are columns of one label each: several with the same prefix whose first values are classes, or empty.
    pub(super) fn label_columns_hint(&self, classes: &[String]) -> Option<String> {
        let labels = Labels::new(classes);
        let text = |field: &Field| field.first.as_deref().map_or("", str::trim).to_owned();
        // Numbers may be anything, unless their columns are called labels.
        let is_number = |field: &Field| field.name.contains("label") && labels.class(&text(field)).is_some();
        let is_label = |field: &Field| {
            classes.contains(&text(field)) || labels.class_but_for_case(&text(field)).is_some() || is_number(field)
        };
        let is_free = |field: &&Field| field.shape == Shape::Scalar && self.columns.wide_role(&field.name).is_none();
        let free: Vec<&Field> = self.fields.iter().filter(is_free).collect();
        let prefix = |name: &'_ str| name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let numbered = free.iter().filter(|field| is_label(field)).map(|field| &field.name[..prefix(&field.name)]);
        let mut prefixes = numbered.filter(|prefix| !prefix.is_empty());
        let (prefix, group) = prefixes.find_map(|prefix| {
            let begins = |field: &&&Field| field.name.len() > prefix.len() && field.name.starts_with(prefix);
            let group: Vec<&Field> = free.iter().filter(begins).copied().collect();
            let are_labels = group.iter().all(|field| text(field).is_empty() || is_label(field));
            (group.len() > 1 && are_labels).then_some((prefix, group))
        })?;
        Some(format!(
            "; if {} hold one label each, give their prefix: {}, in Python columns={{'labels': '{prefix}'}}",
            listed(group.iter().map(|field| &field.name)),
            columns_flag(&format!("labels={prefix}"))
        ))
    }

    /// What to do if the labels or votes are a list or map under another name: the only list of classes, or the only map of whole numbers
    /// by class.
    pub(super) fn nested_labels_hint(&self, classes: &[String]) -> Option<String> {
        let labels = Labels::new(classes);
        let is_class = |value: &Json| {
            let text = value.cell().and_then(|cell| cell.text().map(Cow::into_owned));
            text.is_some_and(|text| labels.class(&text).is_some())
        };
        let is_list_of_classes =
            |value: &Json| matches!(value, Json::List(all) if !all.is_empty() && all.iter().all(is_class));
        let is_map_of_counts = |value: &Json| match value {
            Json::Object(all) => all.iter().all(|(key, count)| classes.contains(key) && count.count().is_ok()),
            _ => false,
        };
        let (key, name) = match self.only_nested(is_list_of_classes) {
            Some(name) => ("labels", name),
            None => ("votes", self.only_nested(is_map_of_counts)?),
        };
        Some(format!(
            "; if {name} are the {key}, give their name: {}, in Python columns={{'{key}': '{name}'}}",
            columns_flag(&format!("{key}={name}"))
        ))
    }

    /// What to do if the predictions are a map or list under another name: the only one whose numbers are probabilities that sum to one.
    fn nested_predictions_hint(&self) -> Option<String> {
        let are_probabilities = |values: Vec<&Json>| {
            let numbers: Option<Vec<f64>> = values.into_iter().map(|value| value.real().ok()).collect();
            numbers.is_some_and(|numbers| are_probabilities(&numbers))
        };
        let map = self.only_nested(|value| match value {
            Json::Object(all) => are_probabilities(all.iter().map(|(_, value)| value).collect()),
            _ => false,
        });
        let list = || {
            self.only_nested(|value| match value {
                Json::List(all) => are_probabilities(all.iter().collect()),
                _ => false,
            })
        };
        let name = map.or_else(list)?;
        Some(format!(
            "if {name} are the predictions, give their name: {}, in Python columns={{'probs': '{name}'}}",
            columns_flag(&format!("probs={name}"))
        ))
    }

    /// The only list or map without a role whose first value passes.
    fn only_nested(&self, passes: impl Fn(&Json) -> bool) -> Option<&str> {
        let is_candidate = |field: &&Field| {
            let value = field.first.as_ref().filter(|_| field.shape != Shape::Scalar);
            let value = value.and_then(|text| serde_json::from_str::<Json>(text).ok());
            !self.columns.has_role(&field.name, false, &[]) && value.is_some_and(|value| passes(&value))
        };
        let mut found = self.fields.iter().filter(is_candidate);
        let first = found.next()?;
        found.next().is_none().then_some(first.name.as_str())
    }

    /// Whether a name given for features is that of a column, or the prefix of some.
    pub(super) fn has_feature(&self, name: &str) -> bool {
        self.fields.iter().any(|field| match field.shape {
            Shape::Scalar => feature_key(name, &field.name).is_some(),
            Shape::List(_) | Shape::Keyed(_) => field.name == name,
        })
    }

    /// The columns that begin with a name that is not a prefix, and what to give instead.
    pub(super) fn prefix_hint(&self, key: &str, name: &str, classes: &[String]) -> Option<String> {
        let begins = |field: &&Field| field.name.starts_with(name);
        let near: Vec<&str> = self.fields.iter().filter(begins).map(|field| field.name.as_str()).collect();
        let first = near.first()?;
        // A prefix would make the rest of the column's name that of the model.
        let has_answers = |field: &&Field| begins(field) && has_class(field, classes);
        let answers: Vec<&Field> = self.fields.iter().filter(has_answers).collect();
        if let ("oracles", [only]) = (key, answers.as_slice()) {
            let column = &only.name;
            let flag = columns_flag(&format!("oracles={column}"));
            return Some(format!(": the column {column} begins with it; give the whole name, {flag}"));
        }
        let rest = first.strip_prefix(name)?.chars().next()?;
        let found = listed(&near);
        let separator = Some(rest).filter(|c| SEPARATORS.contains(c) && !name.ends_with(SEPARATORS));
        Some(match (key, separator) {
            ("features" | "oracles", Some(separator)) => {
                format!(
                    ": {found} begin with it; give the whole prefix, {}",
                    columns_flag(&format!("{key}={name}{separator}"))
                )
            }
            ("features", None) => format!(
                ": {found} begin with these letters, but a prefix ends where a name begins, as x_ does; give whole names, features={first}"
            ),
            ("oracles", _) => format!(
                ": {found} begin with it, but another model's predictions are called {name}<model>_<class>, or {name}<class> for one \
                 model, with a column for every class"
            ),
            _ => return None,
        })
    }

    /// What to do if the features have another prefix: one that has a column for each feature that is needed.
    fn features_hint(&self, wanted: &[String]) -> Option<String> {
        let has_all = |prefix: &str| {
            wanted.iter().all(|name| self.fields.iter().any(|field| field.name.strip_prefix(prefix) == Some(name)))
        };
        let mut prefixes = self.fields.iter().filter_map(|field| field.name.strip_suffix(wanted.first()?.as_str()));
        let prefix = prefixes.find(|prefix| prefix.ends_with(SEPARATORS) && has_all(prefix))?;
        Some(format!(
            "; if {prefix} is the prefix of the features, give {}, in Python columns={{'features': '{prefix}'}}",
            columns_flag(&format!("features={prefix}"))
        ))
    }

    /// The error of a feature that is not there, and how a column of the same name is given as a feature.
    pub(super) fn missing_feature(&self, name: &str, wanted: &[String]) -> Error {
        let is_column = |name: &&String| self.fields.iter().any(|field| field.name == **name);
        let prefix = self.columns.prefix(Role::Features);
        let column = match self.columns.feature_names.as_slice() {
            [] => format!("{prefix}{name}"),
            names if names.iter().any(|given| given == name) => name.to_owned(),
            // A whole name is no prefix.
            _ if is_column(&prefix) => name.to_owned(),
            _ => format!("{name}, nor {prefix}{name}"),
        };
        let own: Vec<&String> = wanted.iter().filter(is_column).collect();
        let names = |join: &str| own.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(join);
        let hint = if own.iter().any(|own| *own == name) {
            format!(
                "; there is a column {name}: give {}, in Python columns={{'features': ['{}']}}",
                columns_flag(&format!("features={}", names(",features="))),
                names("', '")
            )
        } else {
            self.features_hint(wanted).unwrap_or_default()
        };
        self.error(format!("no column {column}, which is needed; columns found: {}{hint}", self.found()))
    }
}

/// Whether a column of single values has the name of a class in its first row.
fn has_class(field: &Field, classes: &[String]) -> bool {
    let first = field.first.as_deref().map(str::trim);
    field.shape == Shape::Scalar && first.is_some_and(|first| classes.iter().any(|class| class == first))
}

/// The flag that names columns, as a shell needs it typed.
pub(super) fn columns_flag(names: &str) -> String {
    flag("--columns", names)
}

/// The flag that keeps rows, as a shell needs it typed.
pub(super) fn where_flag(condition: &str) -> String {
    flag("--where", condition)
}

fn flag(name: &str, value: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-.:/+%@=,".contains(c);
    match value.chars().all(is_plain) {
        true => format!("{name} {value}"),
        false => format!("{name} '{}'", value.replace('\'', r"'\''")),
    }
}

/// The prefix of two columns or more whose first values are probabilities that sum to one.
fn prefix_of_probabilities<'a>(free: &[&'a Field]) -> Option<&'a str> {
    let prefixes = free
        .iter()
        .flat_map(|field| field.name.match_indices(SEPARATORS).map(|(end, it)| &field.name[..end + it.len()]));
    let are_probabilities = |prefix: &&str| {
        let group = free.iter().filter(|field| field.name.len() > prefix.len() && field.name.starts_with(prefix));
        let values: Option<Vec<f64>> = group.map(|field| first_number(field)).collect();
        values.is_some_and(|values| are_probabilities(&values))
    };
    prefixes.into_iter().find(are_probabilities)
}

/// Whether numbers may be the probabilities of all classes.
fn are_probabilities(values: &[f64]) -> bool {
    values.len() > 1
        && values.iter().all(|p| (0.0..=1.0).contains(p))
        && (values.iter().sum::<f64>() - 1.0).abs() < ROUNDING_OF_SUMS
}

/// How the prefix of the predictions is given.
fn prefix_flag(prefix: &str) -> String {
    format!(
        "if {prefix}<class> are the predictions, give their prefix: {}, in Python columns={{'probs': '{prefix}'}}",
        columns_flag(&format!("probs={prefix}"))
    )
}

/// The prefix of all names, up to a separator.
fn common_prefix<'a>(names: &[&'a str]) -> Option<&'a str> {
    let (place, separator) = names.first()?.match_indices(SEPARATORS).next()?;
    let prefix = &names.first()?[..place + separator.len()];
    names.iter().all(|name| name.len() > prefix.len() && name.starts_with(prefix)).then_some(prefix)
}

/// The first value, if it is known and a number.
fn first_number(field: &Field) -> Option<f64> {
    field.first.as_ref().and_then(|text| text.replacen(',', ".", 1).parse().ok())
}

/// Whether the first value is known and not a whole number, so that the values are not counts.
fn is_fraction(field: &Field) -> bool {
    first_number(field).is_some_and(|number| number.fract() != 0.0)
}
