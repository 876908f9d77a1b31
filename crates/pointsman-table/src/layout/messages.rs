//! Messages about columns that were not found, and what to do.

use std::collections::HashSet;

use super::finder::Finder;
use super::{Field, Shape};
use crate::error::{Error, listed};
use crate::options::{Role, SEPARATORS, feature_key};
use crate::suggest::closest;

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
            self.delimiter_hint().or_else(|| self.hint_by_class()).or_else(|| self.predictions_hint()).unwrap_or_else(
                || {
                    "if they go by another name, give it: --columns probs=NAME, in Python columns={'probs': NAME}"
                        .to_owned()
                }
            )
        ))
    }

    /// What to do if the whole header was read as one column because it has another delimiter.
    pub(super) fn delimiter_hint(&self) -> Option<String> {
        let [only] = self.fields else { return None };
        let (_, name, typed) = DELIMITERS.into_iter().find(|(delimiter, ..)| only.name.contains(*delimiter))?;
        Some(format!(
            "separate the columns by commas, or name {name} as the delimiter: --delimiter '{typed}', in Python delimiter='{typed}'"
        ))
    }

    /// What to do if a column holds the labels as text: one class name per row, or several in one text.
    pub(super) fn label_hint(&self, classes: &[String]) -> Option<String> {
        let names = [self.columns.labels.as_str(), &self.columns.label, "labels", "label"];
        let is_label_column = |field: &&Field| {
            field.shape == Shape::Scalar && names.contains(&field.name.as_str()) && field.first.is_some()
        };
        let column = self.fields.iter().find(is_label_column)?;
        let first = column.first.as_deref().unwrap_or_default();
        let holds = if classes.iter().any(|class| class == first) {
            "one class name per row"
        } else if classes.iter().any(|class| first.contains(class.as_str())) {
            "text and not a list"
        } else {
            return None;
        };
        Some(format!(
            "; column {} holds {holds}: give labels as annotations, --annotations FILE with the columns id and label and one row per label, \
             or as a list in JSONL",
            column.name
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

    /// The error of answers of another model that are given as one column of class names.
    pub(super) fn answers_in_one_column(&self, name: &str, classes: &[String]) -> Option<Error> {
        let column = self.fields.iter().find(|field| field.name == name && field.shape == Shape::Scalar)?;
        let model = column.name.trim_end_matches(SEPARATORS);
        let first = classes.first()?;
        Some(self.error(format!(
            "column {name}, named by oracles={name}, has one value per row, but another model's answers are one column per class: \
             {model}_{first} and so on, with probabilities or, if the model gives one answer, 1 for its class and 0 for the others; \
             name them by their prefix: {}",
            columns_flag(&format!("oracles={model}_"))
        )))
    }

    /// Whether a name given for features is that of a column, or the prefix of some.
    pub(super) fn has_feature(&self, name: &str) -> bool {
        self.fields.iter().any(|field| match field.shape {
            Shape::Scalar => feature_key(name, &field.name).is_some(),
            Shape::List(_) | Shape::Keyed(_) => field.name == name,
        })
    }

    /// The columns that begin with a name that is not a prefix, and what to give instead.
    pub(super) fn prefix_hint(&self, key: &str, name: &str) -> Option<String> {
        let near: Vec<&str> =
            self.fields.iter().map(|field| field.name.as_str()).filter(|column| column.starts_with(name)).collect();
        let first = near.first()?;
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
        values.is_some_and(|values| {
            values.len() > 1
                && values.iter().all(|p| (0.0..=1.0).contains(p))
                && (values.iter().sum::<f64>() - 1.0).abs() < ROUNDING_OF_SUMS
        })
    };
    prefixes.into_iter().find(are_probabilities)
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
