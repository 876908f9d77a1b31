//! The names of columns, and the roles that names show.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// What the columns of a common prefix, or a list or map, hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Probs,
    Votes,
    Features,
    Oracles,
    Truth,
}

impl Role {
    pub(crate) const ALL: [Self; 5] = [Self::Probs, Self::Votes, Self::Features, Self::Oracles, Self::Truth];

    /// The role that a key of [`Columns::named`] stands for.
    pub(crate) fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().zip(KEYS).find(|(_, own)| *own == key).map(|(role, _)| role)
    }
}

/// The name of a role: a prefix in wide files, a field or array in others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Name {
    prefix: String,
    field: String,
}

impl Name {
    fn new(prefix: &str, field: &str) -> Self {
        Self { prefix: prefix.to_owned(), field: field.to_owned() }
    }
}

/// The names of columns that are not the standard ones: `probs=p_,votes=v_,id=uid`.
///
/// | key | wide prefix | field or array |
/// |---|---|---|
/// | `probs`, which may be given once per class | `prob_`, or the name of one column each | `probs` |
/// | `votes` | `votes_` | `votes` |
/// | `labels`, which may be given once per column | a prefix given for columns of one label each, or the name of one column each | `labels` |
/// | `features`, which may be given several times | `x_`, or the name of one column | `features` |
/// | `oracles` | `oracle_`, or the name of one column of classes | `oracles` |
/// | `truth` | `true_` | `truth` |
/// | `id`, `weight`, `classes` | | `id`, `weight`, `classes` |
///
/// A prefix may end in a space. It must end where a new word begins, so that `features=w` does not read the column `words` as a feature
/// `ords`.
///
/// Predictions whose columns are named like the classes alone are given by these names, each once: `probs=cat,probs=dog`.
///
/// A long table of annotations has the columns `id`, `label` and `annotator`, in upper or lower case, which the keys `id`, `label` and
/// `annotator` rename; `date` names the column by which the labels of an item are sorted. The name of `id` applies to both tables, unless
/// the annotations have no such column and one called `id`, or a single one like `item_id`; `item` names that of the annotations alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Columns {
    /// The names of the roles, in the order of [`Role::ALL`].
    names: [Name; 5],
    pub(crate) labels: String,
    pub(crate) id: String,
    pub(crate) weight: String,
    pub(crate) classes: String,
    /// The columns of annotations.
    pub(crate) label: String,
    pub(crate) annotator: String,
    pub(crate) date: Option<String>,
    /// The column of ids in annotations, if it was named apart from that of the table.
    pub(crate) item: Option<String>,
    /// The names given for features: whole columns or prefixes. If empty, the usual prefix.
    pub(crate) feature_names: Vec<String>,
    /// The names given for predictions: one is a prefix, several are whole columns. If empty, the usual prefix.
    prob_names: Vec<String>,
    /// The names given for labels: one is a list or a prefix, several are whole columns of one label each.
    label_names: Vec<String>,
    /// The keys that the user gave: their columns must be there.
    pub(crate) named: Vec<&'static str>,
}

impl Default for Columns {
    fn default() -> Self {
        Self {
            names: [
                Name::new("prob_", "probs"),
                Name::new("votes_", "votes"),
                Name::new(FEATURE_PREFIX, "features"),
                Name::new("oracle_", "oracles"),
                Name::new("true_", "truth"),
            ],
            labels: "labels".to_owned(),
            id: "id".to_owned(),
            weight: "weight".to_owned(),
            classes: "classes".to_owned(),
            label: "label".to_owned(),
            annotator: "annotator".to_owned(),
            date: None,
            item: None,
            feature_names: Vec::new(),
            prob_names: Vec::new(),
            label_names: Vec::new(),
            named: Vec::new(),
        }
    }
}

/// The keys that can be given another name: the roles in the order of [`Role::ALL`], then single columns.
#[rustfmt::skip]
const KEYS: [&str; 13] = [
    "probs", "votes", "features", "oracles", "truth",
    "labels", "id", "weight", "classes", "item", "label", "annotator", "date",
];

impl Columns {
    /// The names of several options as one.
    ///
    /// # Errors
    /// If a key is given twice.
    pub fn joined(several: &[Self]) -> Result<Self> {
        several.iter().map(Self::to_string).collect::<Vec<_>>().join(",").parse()
    }

    /// The prefix of a role's wide columns.
    pub(crate) fn prefix(&self, role: Role) -> &String {
        &self.names[role as usize].prefix
    }

    /// The field or array of a role.
    pub(crate) fn field(&self, role: Role) -> &String {
        &self.names[role as usize].field
    }

    /// Whether a key was given a name.
    #[must_use]
    pub fn has_name(&self, key: &str) -> bool {
        self.named.contains(&key)
    }

    /// The columns of the predictions, if they were given by their whole names.
    pub(crate) fn columns_of_predictions(&self) -> Option<&[String]> {
        (self.prob_names.len() > 1).then_some(&self.prob_names)
    }

    /// The columns of one label each, if they were given by their whole names.
    pub(crate) fn columns_of_labels(&self) -> Option<&[String]> {
        (self.label_names.len() > 1).then_some(&self.label_names)
    }

    /// The same with another name for a key such as `probs`. Predictions, labels and features may have several names.
    ///
    /// # Errors
    /// If the key is unknown, or its name is empty or was given before.
    pub fn named(mut self, key: &str, name: &str) -> Result<Self> {
        let key = key.trim();
        let Some(key) = KEYS.into_iter().find(|k| *k == key || key == "oracle" && *k == "oracles") else {
            return Err(Error::Option(format!("columns: unknown key {key:?}: use one of {}", KEYS.join(", "))));
        };
        // A prefix may end in a space. Other names are trimmed, as headers are.
        let role = Role::from_key(key);
        let name = if role.is_some() { name.trim_start() } else { name.trim() };
        if name.is_empty() {
            return Err(Error::Option(format!("columns: {key} has no name")));
        }
        let several = match role {
            Some(Role::Features) => Some(&mut self.feature_names),
            Some(Role::Probs) => Some(&mut self.prob_names),
            None if key == "labels" => Some(&mut self.label_names),
            _ => None,
        };
        let is_first = !self.named.contains(&key);
        match several {
            Some(names) if !names.iter().any(|other| other == name) => names.push(name.to_owned()),
            None if is_first => {}
            _ => return Err(Error::Option(format!("columns: {key} is given twice"))),
        }
        if !is_first {
            return Ok(self);
        }
        self.named.push(key);
        if let Some(role) = role {
            self.names[role as usize] = Name::new(name, name);
            return Ok(self);
        }
        match key {
            "labels" => self.labels = name.to_owned(),
            "id" => self.id = name.to_owned(),
            "weight" => self.weight = name.to_owned(),
            "label" => self.label = name.to_owned(),
            "annotator" => self.annotator = name.to_owned(),
            "date" => self.date = Some(name.to_owned()),
            "item" => self.item = Some(name.to_owned()),
            _ => self.classes = name.to_owned(),
        }
        Ok(self)
    }

    /// The role of a wide column, and the rest of its name. The longest matching prefix wins, so that
    /// users' prefixes may contain each other.
    pub(crate) fn wide_role<'a>(&self, column: &'a str) -> Option<(Role, &'a str)> {
        if column == self.id || column == self.weight {
            return None;
        }
        Role::ALL
            .into_iter()
            .filter_map(|role| self.matched(role, column).map(|(key, length)| (role, key, length)))
            .max_by(|(.., one), (.., other)| one.cmp(other).then(std::cmp::Ordering::Greater))
            .map(|(role, key, _)| (role, key))
    }

    /// The key that a column holds if it has a role, and the length of the prefix that shows the role.
    fn matched<'a>(&self, role: Role, column: &'a str) -> Option<(&'a str, usize)> {
        if role == Role::Features && !self.feature_names.is_empty() {
            let names = self.feature_names.iter();
            return names.filter_map(|name| feature_key(name, column)).min_by_key(|(key, _)| key.len());
        }
        if let Some(names) = self.columns_of_predictions().filter(|_| role == Role::Probs) {
            return names.iter().any(|name| name.trim_end() == column).then_some((column, column.len()));
        }
        let prefix = self.prefix(role).as_str();
        let rest = column.strip_prefix(prefix).filter(|rest| !rest.is_empty())?;
        let is_word = role == Role::Oracles && !begins_a_name(prefix, rest);
        (!is_word).then_some((rest, prefix.len()))
    }

    /// The prefix of the wide columns that hold the same as an array of this name, and whether these are features (otherwise classes).
    pub(crate) fn wide_prefix(&self, array: &str) -> Option<(String, bool)> {
        let roles = [Role::Probs, Role::Votes, Role::Features, Role::Truth];
        if let Some(role) = roles.into_iter().find(|role| self.field(*role) == array) {
            return Some((self.prefix(role).clone(), role == Role::Features));
        }
        let is_oracle = matches!(self.wide_role(array), Some((Role::Oracles, _)));
        is_oracle.then(|| (format!("{array}_"), false))
    }

    /// Whether the columns of single values under this name hold numbers by their role, and not names of classes.
    pub(crate) fn is_numeric(&self, column: &str, classes: &[String]) -> bool {
        self.has_role(column, true, classes) && column != self.field(Role::Oracles) && !self.is_label(column)
    }

    /// Whether a column of single values holds one label per row: its name is one of several that the user gave for labels, or the prefix
    /// that the user gave, and more.
    pub(crate) fn is_label(&self, column: &str) -> bool {
        if let Some(names) = self.columns_of_labels() {
            return names.iter().any(|name| name == column);
        }
        self.has_name("labels")
            && column.strip_prefix(&self.labels).is_some_and(|rest| begins_a_name(&self.labels, rest))
    }

    /// Whether a field of this name has a role, so that every row needs it. Besides `oracle_<model>_<class>` there may be single values
    /// like `oracle_version`, which have none.
    pub(crate) fn has_role(&self, field: &str, single: bool, classes: &[String]) -> bool {
        Role::ALL.into_iter().any(|role| self.field(role) == field)
            || field == self.weight
            || field == self.labels
            || single && self.is_label(field)
            || self.wide_role(field).is_some_and(|(role, rest)| {
                // With a prefix of its own, the columns of a single model are `<prefix><class>`.
                let is_class = || self.has_name("oracles") && classes.iter().any(|class| class == rest);
                role != Role::Oracles || !single || is_class() || model_and_class(rest, classes).is_some()
            })
    }
}

impl fmt::Display for Columns {
    /// The names that were given, as the command line takes them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, key) in self.named.iter().enumerate() {
            let features = self.feature_names.join(",features=");
            let predictions = self.prob_names.join(",probs=");
            let labels = self.label_names.join(",labels=");
            let name = match *key {
                "features" => &features,
                "probs" => &predictions,
                "labels" => &labels,
                "id" => &self.id,
                "weight" => &self.weight,
                "label" => &self.label,
                "annotator" => &self.annotator,
                "date" => self.date.as_ref().unwrap_or(&self.classes),
                "item" => self.item.as_ref().unwrap_or(&self.classes),
                key => Role::from_key(key).map_or(&self.classes, |role| self.field(role)),
            };
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{key}={name}")?;
        }
        Ok(())
    }
}

impl FromStr for Columns {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let items = text.split(',').filter(|item| !item.trim().is_empty());
        items.into_iter().try_fold(Self::default(), |columns, item| match item.split_once('=') {
            Some((key, name)) if !name.trim().is_empty() => columns.named(key, name),
            _ => Err(Error::Option(format!(
                "columns {item:?}: write KEY=NAME, for example probs=p_ (keys: {})",
                KEYS.join(", ")
            ))),
        })
    }
}

/// The characters that end a prefix.
pub(crate) const SEPARATORS: [char; 6] = ['_', '-', '.', ':', '/', ' '];

/// The prefix of features that go by no other name.
const FEATURE_PREFIX: &str = "x_";

/// The feature that a column holds if features go by `name`: the whole column, or the rest behind the prefix `name`; and the length of the
/// matching part. Messages and partitions call every feature `x_<feature>`, so a column `x_words` is the feature `words`.
pub(crate) fn feature_key<'a>(name: &str, column: &'a str) -> Option<(&'a str, usize)> {
    if column == name {
        let feature = column.strip_prefix(FEATURE_PREFIX).filter(|feature| !feature.is_empty());
        return Some((feature.unwrap_or(column), column.len()));
    }
    let rest = column.strip_prefix(name).filter(|rest| begins_a_name(name, rest))?;
    Some((rest, name.len()))
}

/// Whether `rest` begins a new word behind the prefix.
fn begins_a_name(prefix: &str, rest: &str) -> bool {
    let (Some(last), Some(first)) = (prefix.chars().next_back(), rest.chars().next()) else { return false };
    let has_case = |c: char| c.is_lowercase() || c.is_uppercase();
    match first {
        _ if !last.is_alphanumeric() => true,
        _ if !first.is_alphanumeric() => false,
        _ if first.is_numeric() => !last.is_numeric(),
        _ if first.is_uppercase() => !last.is_uppercase(),
        _ if first.is_lowercase() => !has_case(last) && !last.is_numeric(),
        // Scripts without cases do not show where a word begins.
        _ => true,
    }
}

/// The model and the class of a wide column of another model's predictions, from its name behind the prefix. Names may contain
/// underscores: the longest class that ends the column's name counts.
pub(crate) fn model_and_class<'a>(rest: &'a str, classes: &'a [String]) -> Option<(&'a str, &'a String)> {
    classes
        .iter()
        .filter_map(|class| Some((rest.strip_suffix(class.as_str())?.strip_suffix('_')?, class)))
        .filter(|(model, _)| !model.is_empty())
        .max_by_key(|(_, class)| class.len())
}
