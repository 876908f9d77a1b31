//! What to read from a file: which rows, and the names of its columns.

mod columns;
mod filter;

use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

pub use self::columns::Columns;
pub(crate) use self::columns::{Role, SEPARATORS, feature_key, model_and_class};
pub use self::filter::Filter;
use crate::error::{Error, Result};
use crate::format::Format;

/// How to read a table. By default everything is read.
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
    /// Keep only this many labels of every item, the first in the order of the file: the remedy if labelling went on until
    /// annotators agreed. Counts have no order, so votes must be given as labels or annotations.
    pub first_labels: Option<NonZeroU32>,
    /// Drop rows with fewer labels than this after all other labels are left out, where annotations give the labels.
    pub min_labels: Option<NonZeroU32>,
    /// The names of annotators whose labels are all left out. Rows without other labels are dropped. Annotations must name their
    /// annotators.
    pub without: Vec<String>,
    /// Whether [`ReadOptions::without`] may name annotators who gave no label, as in a file of new labels alone.
    pub allow_absent_without: bool,
    /// Annotations with one of these labels are left out, such as those of undecided annotators; capitals and surrounding spaces do not
    /// matter. An empty text leaves out annotations without a label.
    pub ignored_labels: Vec<String>,
    /// Which label counts if an annotator labelled an item more than once, differently. By default such annotations are refused, since two
    /// labels of one annotator are not independent.
    pub keep_label: Option<KeepLabel>,
    /// Refuse ids that only the table or only its annotations have, and ids that several rows have. By default the others are joined, and
    /// [`Frame::joined`](crate::Frame::joined) lists those that do not match.
    pub strict: bool,
    /// Divide the probabilities of rows that do not sum to one by their sum: percentages, rounded numbers. Rows that cannot become a
    /// distribution (negative, not finite, all zero) are still refused.
    pub normalize: bool,
    /// Which columns must be there, and which are not read.
    pub need: Need,
    /// The features wanted, without the prefix of wide columns: each must be there, others are not read. By default
    /// all that are there.
    pub features: Option<Vec<String>>,
    /// The order of the classes if they are found by name, in columns or maps of probabilities, and are these. By default the order of the
    /// columns, or of the first row's map.
    pub classes: Option<Vec<String>>,
    /// Whether batches carry every column of the file unchanged: [`Frame::columns`](crate::Frame::columns). An array of npz whose classes or
    /// features have names is one column per name, as `prob_<class>`, so that no output loses them.
    pub keep_columns: bool,
    /// Whether a column of ids must be there. With annotations it must be in any case.
    pub need_ids: bool,
    /// Whether tables without rows are allowed: a header and nothing below it, or a JSONL file without lines, whose classes are then
    /// [`ReadOptions::classes`].
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
            min_labels: None,
            without: Vec::new(),
            allow_absent_without: false,
            ignored_labels: Vec::new(),
            keep_label: None,
            strict: false,
            normalize: false,
            need: Need::default(),
            features: None,
            classes: None,
            keep_columns: false,
            need_ids: false,
            allow_empty: false,
            batch_rows: 65_536,
        }
    }
}

/// Which of several labels of one annotator on one item counts: by the column of dates if there is one, otherwise in the order of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeepLabel {
    /// The latest one: a correction.
    Latest,
    /// The first one.
    First,
}

impl fmt::Display for KeepLabel {
    /// As the command line takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Latest => "latest",
            Self::First => "first",
        })
    }
}

impl FromStr for KeepLabel {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "latest" => Ok(Self::Latest),
            "first" => Ok(Self::First),
            _ => Err(Error::Option(format!("{text:?}: write latest or first"))),
        }
    }
}

/// What separates the values of a row of text: a comma, a semicolon, a tab or another single character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Delimiter(u8);

impl Delimiter {
    pub(crate) const COMMA: Self = Self(b',');
    pub(crate) const TAB: Self = Self(b'\t');
    /// Delimiters other than commas. Spreadsheets write semicolons where the decimal sign is a comma.
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
            // In a shell, a backslash and a t or a word are easier to type than a tab.
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
    /// None; all that are there are read.
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
