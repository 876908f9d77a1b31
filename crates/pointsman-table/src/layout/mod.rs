//! Where in a file everything is: found once, from the names and shapes of its columns.
//!
//! Every reader describes its columns as [`Field`]s: a wide file has only scalar fields, a nested one has lists and maps, and a
//! two-dimensional numpy array is one list per row. [`Layout::find`] then finds the fields of predictions, votes, truth, features, other
//! models' predictions, ids and weights, and checks that all of them have the same classes. So the rules are written once for all formats.

mod finder;
mod groups;
mod messages;

use self::finder::Finder;
use crate::error::{Result, listed, shown};
use crate::number::{NO_ANSWER, is_missing};
use crate::options::{Need, ReadOptions, Role, SEPARATORS};

/// The shape of the values of a column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    /// A number, a text or any other single value.
    Scalar,
    /// A list of this length.
    List(usize),
    /// Values by name, in the order of the first row.
    Keyed(Vec<(String, Shape)>),
}

/// One column of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) shape: Shape,
    /// The value of the first row as text, for messages, lists and maps of JSONL as JSON; `None` if it is not known.
    pub(crate) first: Option<String>,
}

/// What a format knows besides its columns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hints {
    /// Class names for predictions that are a list.
    pub(crate) classes: Option<Vec<String>>,
    /// Feature names for features that are a list.
    pub(crate) features: Option<Vec<String>>,
    /// Lists are rows of numpy arrays, and messages name them so.
    pub(crate) arrays: bool,
    /// Maps of votes may leave out the classes that got none.
    pub(crate) sparse: bool,
    /// Maps of another model's answers may leave out classes of probability zero.
    pub(crate) sparse_answers: bool,
    /// There are no rows, so that the shapes of lists and maps are not known.
    pub(crate) empty: bool,
}

/// Where the values of a group are.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Location {
    /// In one scalar field per key.
    Wide(Vec<usize>),
    /// In one field, as a list in the order of the keys.
    List(FieldPath),
    /// In one field, by key.
    Keyed(FieldPath),
    /// In one field, as the name of the class whose value is one. All others are zero.
    ClassName(FieldPath),
}

/// The fields of the annotators' labels.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LabelFields {
    /// One field, a list per row.
    List(usize),
    /// One label per field; an empty one is no label.
    Columns(Vec<usize>),
}

impl LabelFields {
    pub(crate) fn fields(&self) -> &[usize] {
        match self {
            Self::List(field) => std::slice::from_ref(field),
            Self::Columns(fields) => fields,
        }
    }
}

/// A field, or a child of a keyed field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FieldPath {
    pub(crate) field: usize,
    pub(crate) child: Option<String>,
}

/// What a filter looks at.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FilterField {
    pub(crate) path: FieldPath,
    /// Whether the filter asks only if there is a value, which may be a list or map.
    pub(crate) asks_for_any_value: bool,
}

/// The values of one role: one per key, which is a class or a feature.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ColumnGroup {
    pub(crate) keys: Vec<String>,
    pub(crate) location: Location,
    /// The prefix of wide columns, which is empty if their names are the keys, or the name of the nested field.
    name: String,
    /// The names of wide columns if they are not the prefix and the key.
    column_names: Vec<String>,
    arrays: bool,
    /// Whether the file may have further keys, which are not read.
    pub(crate) ignores_other_keys: bool,
}

impl ColumnGroup {
    /// How many values a row has.
    pub(crate) fn width(&self) -> usize {
        self.keys.len()
    }

    /// The column that holds one key's value, or all of them, as the file names it.
    pub(crate) fn column(&self, row: u64, key: Option<usize>) -> String {
        let name = &self.name;
        let index = row.saturating_sub(1);
        match (&self.location, key) {
            (Location::Wide(_), Some(key)) if !self.column_names.is_empty() => self.column_names[key].clone(),
            (Location::Wide(_), Some(key)) => format!("{name}{}", self.keys[key]),
            (Location::Wide(_), None) if name.is_empty() => listed(&self.keys),
            (Location::Wide(fields), None) => format!("{name}{}", if fields.len() > 1 { "*" } else { "" }),
            (Location::List(_), Some(key)) if self.arrays => format!("{name}[{index}, {key}]"),
            (Location::List(_), None) if self.arrays => format!("{name}[{index}]"),
            (Location::List(_), Some(key)) => format!("{name}[{key}]"),
            (Location::Keyed(_), Some(key)) => format!("{name}.{}", self.keys[key]),
            (Location::ClassName(_), _) | (Location::List(_) | Location::Keyed(_), None) => name.clone(),
        }
    }

    /// The message about a row without another model's answer, with the filter that keeps the others.
    pub(crate) fn no_answer(&self) -> String {
        match &self.location {
            Location::Wide(_) => no_answer(&self.column(0, Some(0)), ""),
            // Arrays have no missing values that a filter finds.
            _ if self.arrays => NO_ANSWER.to_owned(),
            Location::List(_) | Location::Keyed(_) | Location::ClassName(_) => no_answer(&self.name, ""),
        }
    }

    /// The message about a value that is missing, or a word for that, with the filter that leaves such rows out: filters find values of columns
    /// only.
    pub(crate) fn missing_number(&self, row: u64, key: Option<usize>, word: &str, reason: String) -> String {
        let word = word.trim();
        let filter = || messages::where_flag(&format!("{}!={word}", self.column(row, key)));
        match &self.location {
            Location::Wide(_) if key.is_some() && word.is_empty() => {
                format!("{reason}; {} keeps the rows that have one", filter())
            }
            Location::Wide(_) if key.is_some() && is_missing(word) => {
                format!("{reason}; to leave such rows out, add {}", filter())
            }
            _ => reason,
        }
    }

    /// The message about an answer that is not a number: filters find those of columns only. In a format of text it is the word NaN, which
    /// is not an empty value there.
    pub(crate) fn no_answer_as_nan(&self, is_text: bool) -> String {
        match self.location {
            Location::Wide(_) if is_text => no_answer(&self.column(0, Some(0)), "NaN"),
            Location::Wide(_) => self.no_answer(),
            _ => NO_ANSWER.to_owned(),
        }
    }

    /// Whether the values are numbers in the file.
    pub(crate) fn is_numeric(&self) -> bool {
        !matches!(self.location, Location::ClassName(_))
    }

    /// All columns, as messages name them.
    pub(crate) fn columns(&self) -> String {
        match &self.location {
            Location::Wide(_) => self.column(0, None),
            Location::List(_) | Location::Keyed(_) | Location::ClassName(_) => self.name.clone(),
        }
    }

    /// The top-level fields it is read from.
    pub(crate) fn fields(&self) -> &[usize] {
        match &self.location {
            Location::Wide(fields) => fields,
            Location::List(path) | Location::Keyed(path) | Location::ClassName(path) => {
                std::slice::from_ref(&path.field)
            }
        }
    }
}

/// The fields of a file by their roles.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) classes: Vec<String>,
    pub(crate) probs: ColumnGroup,
    pub(crate) votes: Option<ColumnGroup>,
    /// The fields of the annotators' labels, if votes are given that way.
    pub(crate) labels: Option<LabelFields>,
    /// Columns of one label each that may hold a decision made from the others, such as a majority vote.
    pub(crate) decided_labels: Vec<String>,
    /// The number of labels of a row that count, from the first.
    pub(crate) first_labels: usize,
    pub(crate) truth: Option<ColumnGroup>,
    pub(crate) features: Option<ColumnGroup>,
    /// The places of the wanted features in their list, if not all are wanted: a list is read whole.
    pub(crate) wanted_features: Option<Vec<usize>>,
    pub(crate) oracles: Vec<(String, ColumnGroup)>,
    pub(crate) weight: Option<ColumnGroup>,
    pub(crate) id: Option<usize>,
    /// The name of the field of ids, if it has another one than was asked for: the only one like an id.
    pub(crate) taken_id: Option<String>,
    /// The field of ids, if those of rows that are filtered out are needed to check annotations.
    pub(crate) dropped_id: Option<usize>,
    /// The field of each filter, or the child of a map.
    pub(crate) filters: Vec<FilterField>,
    /// The names of the fields.
    pub(crate) names: Vec<String>,
    /// Whether the file has votes or labels that annotations replace.
    pub(crate) ignored_votes: bool,
    /// Whether the file has the classes in another order.
    pub(crate) reordered: bool,
    /// If there are no features: the unused fields of single values, which may be features under another name.
    pub(crate) unused_scalars: Vec<usize>,
    /// Columns under the prefix of other models that hold numbers of classes and are not read.
    pub(crate) unread_answers: Vec<String>,
    /// Columns of single values under that prefix that were taken for something else, because the first row has no name of a class there,
    /// with what it has: an empty text if it has nothing.
    pub(crate) possible_answers: Vec<(usize, String)>,
}

impl Layout {
    /// Finds the fields of every role.
    pub(crate) fn find(file: &str, fields: &[Field], hints: Hints, options: &ReadOptions) -> Result<Self> {
        let completed;
        let fields = if hints.empty && options.allow_empty {
            completed = fields.iter().map(|field| completed_by(field, options)).collect::<Vec<_>>();
            &completed
        } else {
            fields
        };
        Finder { file, fields, hints, columns: &options.columns }.layout(options)
    }

    /// The layout of a file without rows or header, if that is allowed and the classes are known.
    pub(crate) fn without_rows(options: &ReadOptions) -> Option<Self> {
        let name = options.columns.field(Role::Probs).clone();
        let classes = options.classes.as_ref().filter(|_| options.allow_empty)?;
        let field = Field { name, shape: scalars_by_key(classes), first: None };
        let predictions =
            ReadOptions { columns: options.columns.clone(), need: Need::Predictions, ..ReadOptions::default() };
        Self::find("", &[field], Hints::default(), &predictions).ok()
    }

    /// The groups of numbers.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &ColumnGroup> {
        let optional = [&self.truth, &self.features, &self.weight, &self.votes];
        [&self.probs]
            .into_iter()
            .chain(optional.into_iter().flatten())
            .chain(self.oracles.iter().map(|(_, group)| group))
    }

    /// The number of values per row.
    pub(crate) fn width(&self) -> usize {
        self.groups().map(ColumnGroup::width).sum()
    }

    /// The top-level fields of groups of numbers, labels and ids.
    pub(crate) fn fields_of_values(&self) -> impl Iterator<Item = usize> {
        let groups = self.groups().flat_map(|group| group.fields().iter().copied());
        groups.chain(self.labels.iter().flat_map(LabelFields::fields).copied()).chain(self.id)
    }

    /// The columns of one label each.
    pub(crate) fn label_columns(&self) -> Vec<String> {
        match &self.labels {
            Some(LabelFields::Columns(fields)) => fields.iter().map(|&field| self.names[field].clone()).collect(),
            Some(LabelFields::List(_)) | None => Vec::new(),
        }
    }

    /// The top-level fields that are read, in order, each once.
    pub(crate) fn used(&self) -> Vec<usize> {
        let mut used: Vec<usize> = self.fields_of_values().collect();
        used.extend(self.filters.iter().map(|filter| filter.path.field));
        used.extend(self.possible_answers.iter().map(|(field, _)| field));
        used.sort_unstable();
        used.dedup();
        used
    }

    /// The column of a label in a message: the field, with the place of the label in a numpy array.
    pub(crate) fn label_column(&self, field: usize, row: u64, place: usize) -> String {
        let name = &self.names[field];
        if self.probs.arrays { format!("{name}[{}, {place}]", row.saturating_sub(1)) } else { name.clone() }
    }
}

/// The message about a row without another model's answer, with a filter on a column that keeps the others; `missing` is what the row has
/// in place of an answer.
pub(crate) fn no_answer(column: &str, missing: &str) -> String {
    format!(
        "no answer: a route is measured on rows that have answers; if these are a random sample of all rows, keep them with {}, or drop the \
         columns of the oracle",
        messages::where_flag(&format!("{column}!={missing}"))
    )
}

/// What to do if the answers of the oracle `route` are in columns of other names than are read: its name alone, or its name, a separator
/// and the class.
pub(crate) fn unnamed_answers(names: &[String], route: &str, class: &str) -> Option<String> {
    let is_separated = |rest: &str| rest.strip_suffix(class).and_then(|it| it.strip_suffix(SEPARATORS)) == Some("");
    let is_route = |name: &&String| name.strip_prefix(route).is_some_and(|rest| rest.is_empty() || is_separated(rest));
    let column = names.iter().find(is_route)?;
    let given = if column == route { route } else { column.strip_suffix(class)? };
    Some(format!(
        "there is a column {}: give {}, in Python columns={{'oracles': '{given}'}}",
        listed([column]),
        messages::columns_flag(&format!("oracles={given}"))
    ))
}

/// The message about an answer in a column that has none in the first row, but this text.
pub(crate) fn late_answer(column: &str, answer: &str, first: &str) -> String {
    let advice = match first {
        "" => format!(
            "none: every row needs an answer; if rows with answers are a random sample of all rows, keep them with {}",
            messages::where_flag(&format!("{column}!="))
        ),
        first => format!("{}, which is none: correct that value if the column has answers", shown(first)),
    };
    format!(
        "{} is the name of a class, but the first row has {advice}; rename the column if it has something else",
        shown(answer)
    )
}

fn scalars_by_key(keys: &[String]) -> Shape {
    Shape::Keyed(keys.iter().map(|key| (key.clone(), Shape::Scalar)).collect())
}

/// A list or map of a file without rows, with the entries that its rows would need to have.
fn completed_by(field: &Field, options: &ReadOptions) -> Field {
    let wanted = if field.name == *options.columns.field(Role::Probs) {
        &options.classes
    } else if field.name == *options.columns.field(Role::Features) {
        &options.features
    } else {
        &None
    };
    let shape = match (&field.shape, wanted) {
        (Shape::List(0), Some(keys)) => scalars_by_key(keys),
        (Shape::Keyed(entries), Some(keys)) if entries.is_empty() => scalars_by_key(keys),
        (shape, _) => shape.clone(),
    };
    Field { name: field.name.clone(), shape, first: None }
}
