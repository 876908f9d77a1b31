//! What to read from a file: which rows, and under which names its columns go.

use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::format::Format;

/// How to read a table. The default takes everything there is.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadOptions {
    /// The format; by default the one of the path's extension, or what the first bytes look like.
    pub format: Option<Format>,
    /// What separates the values of CSV; by default commas, or tabs in a file called `.tsv`. Annotations whose header has none of these
    /// are separated by what their header has: commas, semicolons, tabs or pipes.
    pub delimiter: Option<Delimiter>,
    /// Rows must pass all of these.
    pub filters: Vec<Filter>,
    /// Names that differ from the standard ones.
    pub columns: Columns,
    /// A long table `id,label[,annotator]` that gives the votes, joined by the table's `id`.
    pub annotations: Option<PathBuf>,
    /// Keep only so many labels of every item, the first in the file's order: the cure where labelling went on until
    /// annotators agreed. Counts have no order, so votes must be given as labels or annotations.
    pub first_labels: Option<NonZeroU32>,
    /// Annotators whose labels are left out, all of them, by name: so the number of labels falls by who was asked, not by what was
    /// said. Rows that nobody else labelled are dropped. Annotations must name their annotators.
    pub without: Vec<String>,
    /// Refuse ids that only one of the table and its annotations has, and ids that several rows have. By default what matches is joined,
    /// and [`Frame::joined`](crate::Frame::joined) says what did not.
    pub strict: bool,
    /// Divide the probabilities of rows that do not sum to one by their sum: percentages, rounded numbers. What is no distribution
    /// whatever it is divided by (negative, not finite, all zero) is refused all the same.
    pub normalize: bool,
    /// Which columns must be there, and which are left alone.
    pub need: Need,
    /// The features wanted, without the prefix of wide columns: each must be there, others are left alone. By default
    /// all that are there.
    pub features: Option<Vec<String>>,
    /// The order of the classes where they are found by name, in columns or maps of probabilities: if these are the table's classes,
    /// they are put in this order. By default that of the columns, or of the first row's map.
    pub classes: Option<Vec<String>>,
    /// Whether batches carry every column of the file as it is: [`Frame::columns`](crate::Frame::columns). An array of npz whose classes or
    /// features have names is one column per name, as `prob_<class>`, so that no output loses them.
    pub keep_columns: bool,
    /// Whether a table without rows is one: a header and nothing below it, or a JSONL file without lines, whose classes are then
    /// [`ReadOptions::classes`]. Otherwise it is refused.
    pub allow_empty: bool,
    /// How many rows a batch has.
    pub batch_rows: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: None,
            delimiter: None,
            filters: Vec::new(),
            columns: Columns::default(),
            annotations: None,
            first_labels: None,
            without: Vec::new(),
            strict: false,
            normalize: false,
            need: Need::default(),
            features: None,
            classes: None,
            keep_columns: false,
            allow_empty: false,
            batch_rows: 65_536,
        }
    }
}

/// What separates the values of a row of text: a comma, a semicolon, a tab or another single character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Delimiter(u8);

impl Delimiter {
    pub(crate) const COMMA: Self = Self(b',');
    pub(crate) const TAB: Self = Self(b'\t');
    /// What separates columns where commas do not: spreadsheets write semicolons where the decimal sign is a comma.
    pub(crate) const OTHERS: [Self; 3] = [Self(b';'), Self(b'|'), Self::TAB];

    pub(crate) fn byte(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Delimiter {
    /// As the command line takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TAB => f.write_str("tab"),
            Self(byte) => write!(f, "{}", char::from(byte)),
        }
    }
}

impl FromStr for Delimiter {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "," | "comma" => Ok(Self::COMMA),
            ";" | "semicolon" => Ok(Self(b';')),
            // A shell hands over a backslash and a t, or a word, more easily than a tab.
            "\t" | "\\t" | "tab" => Ok(Self::TAB),
            "|" | "pipe" => Ok(Self(b'|')),
            _ => match *text.as_bytes() {
                [byte] if !byte.is_ascii_alphanumeric() && !b"\"\r\n.+-\0".contains(&byte) && byte.is_ascii() => {
                    Ok(Self(byte))
                }
                _ => Err(Error::Option(format!(
                    "delimiter {text:?} cannot separate values: use one character such as ',' ';' '|' or '\\t', no letter, digit or quote"
                ))),
            },
        }
    }
}

/// Which columns must be there beside the predictions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Need {
    /// None; what is there is read.
    #[default]
    Any,
    /// None; votes and labels may be missing even if [`Columns`] name them: items may be new.
    VotesIfAny,
    /// None; votes, truth, weights and other models' predictions are neither read nor checked.
    Predictions,
    /// Votes, labels or annotations; truth is read if it is there.
    Votes,
    /// Votes, labels, annotations or truth.
    VotesOrTruth,
}

/// A condition on rows: `COL=VALUE`.
///
/// A row passes if the column's value equals the filter's as text, or if both are numbers and equal
/// (`split=0` keeps `0`, `0.0` and `00`).
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    column: String,
    value: String,
    number: Option<f64>,
}

impl Filter {
    /// A filter that keeps the rows whose `column` is `value`.
    pub fn new(column: impl Into<String>, value: impl Into<String>) -> Self {
        let (column, value) = (column.into(), value.into());
        // NaN equals nothing, itself included: as text it does.
        let number = value.trim().parse().ok().filter(|number: &f64| !number.is_nan());
        Self { column, value, number }
    }

    /// The column it looks at.
    #[must_use]
    pub fn column(&self) -> &str {
        &self.column
    }

    /// The value it keeps.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    pub(crate) fn number(&self) -> Option<f64> {
        self.number
    }

    pub(crate) fn keeps(&self, text: &str) -> bool {
        text == self.value || self.number.is_some_and(|n| text.trim().parse() == Ok(n))
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.column, self.value)
    }
}

impl FromStr for Filter {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once('=') {
            Some((column, value)) if !column.trim().is_empty() => Ok(Self::new(column.trim(), value.trim())),
            _ => Err(Error::Option(format!("filter {text:?}: write COLUMN=VALUE, for example split=0"))),
        }
    }
}

/// The name one kind of column goes by: a prefix in wide files, a field or array in the others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    pub(crate) prefix: String,
    pub(crate) field: String,
}

impl Name {
    fn new(prefix: &str, field: &str) -> Self {
        Self { prefix: prefix.to_owned(), field: field.to_owned() }
    }
}

/// The names columns go by, where they are not the standard ones: `probs=p_,votes=v_,id=uid`.
///
/// | key | wide prefix | field or array |
/// |---|---|---|
/// | `probs` | `prob_` | `probs` |
/// | `votes` | `votes_` | `votes` |
/// | `labels` | | `labels` |
/// | `features`, which may be given several times | `x_`, or the name of one column | `features` |
/// | `oracles` | `oracle_` | `oracles` |
/// | `truth` | `true_` | `truth` |
/// | `id`, `weight`, `classes` | | `id`, `weight`, `classes` |
///
/// A prefix is taken as it is, a space at its end included; it must end where a name begins, so that `features=w` does not take the
/// column `words` for a feature `ords`.
///
/// A long table of annotations has the columns `id`, `label` and `annotator`, in upper or lower case, and the keys of these names give
/// it others; `date` names the column by which the labels of an item are sorted. The name of `id` is for both tables, unless the
/// annotations have none of that name and one called `id`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Columns {
    pub(crate) probs: Name,
    pub(crate) votes: Name,
    pub(crate) features: Name,
    pub(crate) oracles: Name,
    pub(crate) truth: Name,
    pub(crate) labels: String,
    pub(crate) id: String,
    pub(crate) weight: String,
    pub(crate) classes: String,
    /// The columns of annotations.
    pub(crate) label: String,
    pub(crate) annotator: String,
    pub(crate) date: Option<String>,
    /// What features were called: whole columns or prefixes. None: the usual prefix.
    pub(crate) feature_names: Vec<String>,
    /// The keys the user gave: what was asked for by name must be there.
    pub(crate) named: Vec<&'static str>,
}

impl Default for Columns {
    fn default() -> Self {
        Self {
            probs: Name::new("prob_", "probs"),
            votes: Name::new("votes_", "votes"),
            features: Name::new("x_", "features"),
            oracles: Name::new("oracle_", "oracles"),
            truth: Name::new("true_", "truth"),
            labels: "labels".to_owned(),
            id: "id".to_owned(),
            weight: "weight".to_owned(),
            classes: "classes".to_owned(),
            label: "label".to_owned(),
            annotator: "annotator".to_owned(),
            date: None,
            feature_names: Vec::new(),
            named: Vec::new(),
        }
    }
}

/// What may go by another name.
const KEYS: [&str; 12] = [
    "probs",
    "votes",
    "labels",
    "features",
    "oracles",
    "truth",
    "id",
    "weight",
    "classes",
    "label",
    "annotator",
    "date",
];

/// What goes by a prefix, which may end in a space; names of columns are trimmed, as headers are.
const PREFIXED: [&str; 5] = ["probs", "votes", "features", "oracles", "truth"];

impl Columns {
    /// Whether a key was given a name.
    #[must_use]
    pub fn has_name(&self, key: &str) -> bool {
        self.named.contains(&key)
    }

    /// The same with another name for something, as for `probs`. Features may have several names.
    ///
    /// # Errors
    /// If nothing goes by this key, its name is empty or was given before.
    pub fn named(mut self, key: &str, name: &str) -> Result<Self> {
        let key = key.trim();
        let Some(key) = KEYS.into_iter().find(|k| *k == key || key == "oracle" && *k == "oracles") else {
            return Err(Error::Option(format!("columns: unknown key {key:?}: use one of {}", KEYS.join(", "))));
        };
        let name = if PREFIXED.contains(&key) { name.trim_start() } else { name.trim() };
        if name.is_empty() {
            return Err(Error::Option(format!("columns: {key} has no name")));
        }
        let is_another_feature = key == "features" && !self.feature_names.iter().any(|other| other == name);
        match self.named.contains(&key) {
            true if is_another_feature => {
                self.feature_names.push(name.to_owned());
                return Ok(self);
            }
            true => return Err(Error::Option(format!("columns: {key} is given twice"))),
            false => self.named.push(key),
        }
        match key {
            "probs" => self.probs = Name::new(name, name),
            "votes" => self.votes = Name::new(name, name),
            "features" => {
                self.features = Name::new(name, name);
                self.feature_names.push(name.to_owned());
            }
            "oracles" => self.oracles = Name::new(name, name),
            "truth" => self.truth = Name::new(name, name),
            "labels" => self.labels = name.to_owned(),
            "id" => self.id = name.to_owned(),
            "weight" => self.weight = name.to_owned(),
            "label" => self.label = name.to_owned(),
            "annotator" => self.annotator = name.to_owned(),
            "date" => self.date = Some(name.to_owned()),
            _ => self.classes = name.to_owned(),
        }
        Ok(self)
    }
}

impl fmt::Display for Columns {
    /// The names that were given, as the command line takes them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, key) in self.named.iter().enumerate() {
            let features = self.feature_names.join(",features=");
            let name = match *key {
                "probs" => &self.probs.field,
                "votes" => &self.votes.field,
                "features" => &features,
                "oracles" => &self.oracles.field,
                "truth" => &self.truth.field,
                "labels" => &self.labels,
                "id" => &self.id,
                "weight" => &self.weight,
                "label" => &self.label,
                "annotator" => &self.annotator,
                "date" => self.date.as_ref().unwrap_or(&self.classes),
                _ => &self.classes,
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
