//! Where in a file everything stands: found once, from the names and shapes of its columns.
//!
//! Every reader describes its columns as [`Field`]s: a wide file has scalar fields only, a nested one
//! has lists and keyed maps, and a two-dimensional numpy array is a list a row. [`Layout::find`] then says
//! which fields hold predictions, votes, truth, features, other models' predictions, ids and weights, and
//! checks that all of them speak of the same classes. So the rules are written once for all formats.

use std::collections::{HashMap, HashSet};

use crate::error::{Error, Result, listed, shown};
use crate::options::{Columns, Name, Need, ReadOptions};
use crate::suggest::did_you_mean;

/// What one value of a column looks like.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    /// A number, a text or anything else that is one value.
    Scalar,
    /// So many values in order.
    List(usize),
    /// Values by name, in the order the file first gives them.
    Keyed(Vec<(String, Shape)>),
}

/// One column of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) shape: Shape,
}

/// What the format itself knows beside its columns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hints {
    /// Class names for predictions that are a list.
    pub(crate) classes: Option<Vec<String>>,
    /// Feature names for features that are a list.
    pub(crate) features: Option<Vec<String>>,
    /// Lists are rows of numpy arrays, and named so in messages.
    pub(crate) arrays: bool,
    /// Maps of votes may leave out the classes that got none.
    pub(crate) sparse: bool,
    /// There are no rows, so that lists and maps do not show their shape.
    pub(crate) empty: bool,
}

/// Where the values of one kind stand.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum At {
    /// In one scalar field a key.
    Wide(Vec<usize>),
    /// In one field, as a list in the order of the keys.
    List(Spot),
    /// In one field, by key.
    Keyed(Spot),
}

/// A field, or a child of a keyed field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spot {
    pub(crate) field: usize,
    pub(crate) child: Option<String>,
}

/// One kind of values: so many a row, each with a key (a class or a feature).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    pub(crate) keys: Vec<String>,
    pub(crate) at: At,
    /// The prefix of wide columns, or the name of the nested field.
    name: String,
    /// The names of wide columns if they are not the prefix and the key.
    own_names: Vec<String>,
    arrays: bool,
    /// Whether the file has keys that are not wanted, which are then left alone.
    pub(crate) partial: bool,
}

impl Part {
    /// How many values a row has.
    pub(crate) fn width(&self) -> usize {
        self.keys.len()
    }

    /// The column that holds one key's value, or all of them, as the file calls it.
    pub(crate) fn column(&self, row: u64, key: Option<usize>) -> String {
        let name = &self.name;
        let index = row.saturating_sub(1);
        match (&self.at, key) {
            (At::Wide(_), Some(key)) if !self.own_names.is_empty() => self.own_names[key].clone(),
            (At::Wide(_), Some(key)) => format!("{name}{}", self.keys[key]),
            (At::Wide(fields), None) => format!("{name}{}", if fields.len() > 1 { "*" } else { "" }),
            (At::List(_), Some(key)) if self.arrays => format!("{name}[{index}, {key}]"),
            (At::List(_), None) if self.arrays => format!("{name}[{index}]"),
            (At::List(_), Some(key)) => format!("{name}[{key}]"),
            (At::Keyed(_), Some(key)) => format!("{name}.{}", self.keys[key]),
            (At::List(_) | At::Keyed(_), None) => name.clone(),
        }
    }

    /// The top-level fields it is read from.
    fn fields(&self) -> &[usize] {
        match &self.at {
            At::Wide(fields) => fields,
            At::List(spot) | At::Keyed(spot) => std::slice::from_ref(&spot.field),
        }
    }
}

/// Where in a file everything stands.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) classes: Vec<String>,
    pub(crate) probs: Part,
    pub(crate) votes: Option<Part>,
    /// The field that lists the annotators' labels, if votes are given that way.
    pub(crate) labels: Option<usize>,
    /// How many of them count, the first ones.
    pub(crate) first_labels: usize,
    pub(crate) truth: Option<Part>,
    pub(crate) features: Option<Part>,
    /// Which features of a list are wanted, if not all: a list is read whole.
    pub(crate) wanted: Option<Vec<usize>>,
    pub(crate) oracles: Vec<(String, Part)>,
    pub(crate) weight: Option<Part>,
    pub(crate) id: Option<usize>,
    /// The field each filter looks at.
    pub(crate) filters: Vec<usize>,
    /// The names of the fields.
    pub(crate) names: Vec<String>,
    /// Whether the ids of rows that no filter kept are wanted, to check annotations against.
    pub(crate) dropped_ids: bool,
    /// Whether votes or labels stand in the file and annotations take their place.
    pub(crate) ignored_votes: bool,
    /// Whether the classes stand in another order in the file.
    pub(crate) reordered: bool,
    /// If there are no features: the fields of single values that nothing uses, which may be features under another name.
    pub(crate) spare: Vec<usize>,
}

impl Layout {
    /// Finds everything.
    pub(crate) fn find(file: &str, fields: &[Field], hints: Hints, options: &ReadOptions) -> Result<Self> {
        let completed;
        let fields = if hints.empty && options.allow_empty {
            completed = fields.iter().map(|field| completed_by(field, options)).collect::<Vec<_>>();
            &completed
        } else {
            fields
        };
        let finder = Finder { file, fields, hints, columns: &options.columns };
        finder.layout(options)
    }

    /// The layout of a file that says nothing at all, if that is allowed and the classes are known.
    pub(crate) fn without_rows(options: &ReadOptions) -> Option<Self> {
        let name = options.columns.name(Kind::Probs).field.clone();
        let classes = options.classes.as_ref().filter(|_| options.allow_empty)?;
        let field = Field { name, shape: Shape::Keyed(keyed(classes)) };
        let free = ReadOptions { columns: options.columns.clone(), need: Need::Predictions, ..ReadOptions::default() };
        Self::find("", &[field], Hints::default(), &free).ok()
    }

    /// How many numbers a row has, at least one.
    pub(crate) fn width(&self) -> usize {
        let parts = [Some(&self.probs), self.votes.as_ref(), self.truth.as_ref(), self.features.as_ref()];
        let single: usize = parts.into_iter().flatten().map(Part::width).sum();
        (single + self.oracles.len() * self.classes.len()).max(1)
    }

    /// The top-level fields that are read, in order, each once.
    pub(crate) fn used(&self) -> Vec<usize> {
        let parts = [Some(&self.probs), self.votes.as_ref(), self.truth.as_ref(), self.features.as_ref()];
        let mut used: Vec<usize> = parts.into_iter().flatten().flat_map(|p| p.fields().iter().copied()).collect();
        used.extend(self.oracles.iter().flat_map(|(_, p)| p.fields().iter().copied()));
        used.extend(self.weight.iter().flat_map(|p| p.fields().iter().copied()));
        used.extend(self.labels);
        used.extend(self.id);
        used.extend(&self.filters);
        used.sort_unstable();
        used.dedup();
        used
    }
}

fn keyed(keys: &[String]) -> Vec<(String, Shape)> {
    keys.iter().map(|key| (key.clone(), Shape::Scalar)).collect()
}

/// A list or map of a file without rows, with the entries that its rows would need to have.
fn completed_by(field: &Field, options: &ReadOptions) -> Field {
    let wanted = if field.name == options.columns.probs.field {
        &options.classes
    } else if field.name == options.columns.features.field {
        &options.features
    } else {
        &None
    };
    let shape = match (&field.shape, wanted) {
        (Shape::List(0), Some(keys)) => Shape::Keyed(keyed(keys)),
        (Shape::Keyed(entries), Some(keys)) if entries.is_empty() => Shape::Keyed(keyed(keys)),
        (shape, _) => shape.clone(),
    };
    Field { name: field.name.clone(), shape }
}

/// The kinds of column that go by a prefix.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Probs,
    Votes,
    Features,
    Oracles,
    Truth,
}

impl Columns {
    pub(crate) fn name(&self, kind: Kind) -> &Name {
        match kind {
            Kind::Probs => &self.probs,
            Kind::Votes => &self.votes,
            Kind::Features => &self.features,
            Kind::Oracles => &self.oracles,
            Kind::Truth => &self.truth,
        }
    }

    /// The prefix that a key of [`Columns::named`] gives, if it gives one.
    fn prefix_of(&self, key: &str) -> Option<&String> {
        let kind = match key {
            "probs" => Kind::Probs,
            "votes" => Kind::Votes,
            "features" => Kind::Features,
            "oracles" => Kind::Oracles,
            "truth" => Kind::Truth,
            _ => return None,
        };
        Some(&self.name(kind).prefix)
    }

    /// Which kind a wide column is, and the rest of its name. The longest prefix that fits wins, so that
    /// users' prefixes may contain each other.
    pub(crate) fn wide<'a>(&self, column: &'a str) -> Option<(Kind, &'a str)> {
        if column == self.id || column == self.weight {
            return None;
        }
        [Kind::Probs, Kind::Votes, Kind::Features, Kind::Oracles, Kind::Truth]
            .into_iter()
            .filter_map(|kind| self.matched(kind, column).map(|(key, length)| (kind, key, length)))
            .max_by(|(.., one), (.., other)| one.cmp(other).then(std::cmp::Ordering::Greater))
            .map(|(kind, key, _)| (kind, key))
    }

    /// What a column holds, if it is of a kind, and how much of its name says so.
    fn matched<'a>(&self, kind: Kind, column: &'a str) -> Option<(&'a str, usize)> {
        if kind == Kind::Features && !self.feature_names.is_empty() {
            let names = self.feature_names.iter();
            return names.filter_map(|name| feature_key(name, column)).min_by_key(|(key, _)| key.len());
        }
        let prefix = self.name(kind).prefix.as_str();
        let rest = column.strip_prefix(prefix).filter(|rest| !rest.is_empty())?;
        let is_word = kind == Kind::Oracles && !begins_a_name(prefix, rest);
        (!is_word).then_some((rest, prefix.len()))
    }

    /// The prefix of the wide columns that hold what an array of this name does, and whether they are features and not classes.
    pub(crate) fn wide_prefix(&self, array: &str) -> Option<(String, bool)> {
        let kinds = [Kind::Probs, Kind::Votes, Kind::Features, Kind::Truth];
        if let Some(kind) = kinds.into_iter().find(|kind| self.name(*kind).field == array) {
            return Some((self.name(kind).prefix.clone(), kind == Kind::Features));
        }
        let is_oracle = matches!(self.wide(array), Some((Kind::Oracles, _)));
        is_oracle.then(|| (format!("{array}_"), false))
    }

    /// Whether a field of this name says something about rows, so that it may not come and go between rows. Beside
    /// `oracle_<model>_<class>` there may be single values like `oracle_version`, which say nothing.
    pub(crate) fn has_role(&self, field: &str, single: bool, classes: &[String]) -> bool {
        [Kind::Probs, Kind::Votes, Kind::Features, Kind::Oracles, Kind::Truth]
            .into_iter()
            .any(|kind| self.name(kind).field == field)
            || field == self.weight
            || field == self.labels
            || self
                .wide(field)
                .is_some_and(|(kind, rest)| kind != Kind::Oracles || !single || of_class(rest, classes).is_some())
    }
}

/// What ends a prefix.
const SEPARATORS: [char; 6] = ['_', '-', '.', ':', '/', ' '];

/// The feature that a column holds under a name given for features: the column of that name, or one that has it as its prefix; and how much
/// of the column's name that is.
fn feature_key<'a>(name: &str, column: &'a str) -> Option<(&'a str, usize)> {
    if column == name {
        return Some((column, column.len()));
    }
    let rest = column.strip_prefix(name).filter(|rest| begins_a_name(name, rest))?;
    Some((rest, name.len()))
}

/// Whether a name begins behind a prefix, and not in the midst of a word.
fn begins_a_name(prefix: &str, rest: &str) -> bool {
    let (Some(last), Some(first)) = (prefix.chars().next_back(), rest.chars().next()) else { return false };
    let has_case = |c: char| c.is_lowercase() || c.is_uppercase();
    match first {
        _ if !last.is_alphanumeric() => true,
        _ if !first.is_alphanumeric() => false,
        _ if first.is_numeric() => !last.is_numeric(),
        _ if first.is_uppercase() => !last.is_uppercase(),
        _ if first.is_lowercase() => !has_case(last) && !last.is_numeric(),
        // Scripts without cases separate nothing.
        _ => true,
    }
}

/// The model and the class a wide column of another model's predictions is about. Names may contain underscores: the
/// longest class that ends the column's name is meant.
fn of_class<'a>(rest: &'a str, classes: &'a [String]) -> Option<(&'a str, &'a String)> {
    classes
        .iter()
        .filter_map(|class| Some((rest.strip_suffix(class.as_str())?.strip_suffix('_')?, class)))
        .filter(|(model, _)| !model.is_empty())
        .max_by_key(|(_, class)| class.len())
}

/// What separates columns where commas do not, and its name: spreadsheets write semicolons where the decimal sign is a comma.
const DELIMITERS: [(char, &str, &str); 3] = [(';', "semicolons", ";"), ('|', "pipes", "|"), ('\t', "tabs", "\\t")];

struct Finder<'a> {
    file: &'a str,
    fields: &'a [Field],
    hints: Hints,
    columns: &'a Columns,
}

impl Finder<'_> {
    fn layout(&self, options: &ReadOptions) -> Result<Layout> {
        let columns = self.columns;
        let mut probs = self.probs()?;
        let given = probs.keys.clone();
        if let (At::Keyed(_) | At::Wide(_), Some(order)) = (&probs.at, &options.classes) {
            // What is found by name may stand in any order; a list's order is its own.
            let same = order.len() == probs.keys.len() && order.iter().all(|class| probs.keys.contains(class));
            if same {
                probs = self.fit(probs, order)?;
            }
        }
        let classes = probs.keys.clone();
        if classes.len() < 2 {
            return Err(self.error(format!(
                "one class only ({}): {}",
                listed(&classes),
                self.delimiter_hint().unwrap_or_else(|| "a classifier needs at least two".to_owned())
            )));
        }
        let labelled = options.need != Need::Predictions;
        let counted = labelled && options.annotations.is_none();
        // Counts come first, unless the order of the labels matters.
        let mut labels = if counted && options.first_labels.is_some() { self.labels()? } else { None };
        let votes = if counted && labels.is_none() { self.classed(Kind::Votes, &classes)? } else { None };
        if counted && votes.is_none() && labels.is_none() {
            labels = self.labels()?;
        }
        let truth = if labelled { self.classed(Kind::Truth, &classes)? } else { None };
        let has_votes = votes.is_some() || labels.is_some() || options.annotations.is_some();
        let missing = match options.need {
            Need::Votes if !has_votes => Some("votes"),
            Need::VotesOrTruth if !has_votes && truth.is_none() => Some("votes and no truth"),
            _ => None,
        };
        if let Some(missing) = missing {
            let (votes, truth) = (&columns.votes, &columns.truth);
            let of_annotations = columns.named.iter().find(|key| ["label", "annotator", "date"].contains(key));
            return Err(self.error(format!(
                "no {missing}: give columns {}<class>, a field {} or {}{}, or annotations; columns found: {}{}{}",
                votes.prefix,
                votes.field,
                columns.labels,
                if options.need == Need::VotesOrTruth {
                    format!(", or {}<class>", truth.prefix)
                } else {
                    String::new()
                },
                self.found(),
                self.votes_hint(&classes).unwrap_or_default(),
                of_annotations.map_or(String::new(), |key| format!(
                    "; {key} is a column of annotations, but there are none: give their file, --annotations FILE"
                ))
            )));
        }
        if let Some(first) = options.first_labels.filter(|_| counted && labels.is_none()) {
            return Err(self.error(format!(
                "the first {first} labels of a row cannot be told from {}: counts have no order; give the labels in the order \
                 they were collected, as a list {} or as a long table of annotations",
                if votes.is_some() { "its votes" } else { "what is there" },
                columns.labels
            )));
        }
        let mut id = self.scalar(&columns.id)?;
        if id.is_none() && options.annotations.is_some() {
            // The name may be that of the annotations alone.
            id = self.scalar("id")?;
        }
        if id.is_none() && options.annotations.is_some() {
            return Err(self.error(format!(
                "no column {}: annotations are joined by it; if it goes by another name, give it: --columns id=NAME, in Python columns={{'id': NAME}}; columns found: {}",
                columns.id,
                self.found()
            )));
        }
        let (features, wanted) = self.features(options.features.as_deref())?;
        let weight = if labelled { self.scalar(&columns.weight)? } else { None };
        let mut layout = Layout {
            probs,
            votes,
            labels,
            first_labels: options.first_labels.map_or(usize::MAX, |n| n.get() as usize),
            truth,
            features,
            wanted,
            oracles: if labelled { self.oracles(&classes)? } else { Vec::new() },
            weight: weight.map(|field| Part {
                keys: vec![String::new()],
                at: At::Wide(vec![field]),
                name: columns.weight.clone(),
                own_names: Vec::new(),
                arrays: self.hints.arrays,
                partial: false,
            }),
            id,
            filters: options.filters.iter().map(|f| self.filter(f.column())).collect::<Result<_>>()?,
            names: self.fields.iter().map(|f| f.name.clone()).collect(),
            dropped_ids: options.annotations.is_some() && !options.filters.is_empty(),
            ignored_votes: labelled && options.annotations.is_some() && self.has_votes(),
            reordered: given != classes,
            classes,
            spare: Vec::new(),
        };
        if layout.features.is_none() {
            let (used, columns) = (layout.used(), self.columns);
            let is_spare = |&i: &usize| {
                let Field { name, shape } = &self.fields[i];
                *shape == Shape::Scalar
                    && used.binary_search(&i).is_err()
                    && !columns.has_role(name, true, &layout.classes)
            };
            layout.spare = (0..self.fields.len()).filter(is_spare).collect();
        }
        self.asked_for(&layout, options)?;
        Ok(layout)
    }

    /// What the user named must be there: a misspelt name would otherwise drop a column in silence.
    fn asked_for(&self, layout: &Layout, options: &ReadOptions) -> Result<()> {
        let labelled = options.need != Need::Predictions;
        let needs_votes = labelled && options.need != Need::VotesIfAny;
        for &key in &self.columns.named {
            let (there, name) = match key {
                "votes" => (layout.votes.is_some() || !needs_votes, &self.columns.votes.prefix),
                "truth" => (layout.truth.is_some() || !labelled, &self.columns.truth.prefix),
                "features" if options.features.is_none() => {
                    match self.columns.feature_names.iter().find(|name| !self.has_feature(name)) {
                        Some(missing) => (false, missing),
                        None => continue,
                    }
                }
                "oracles" => (!layout.oracles.is_empty() || !labelled, &self.columns.oracles.prefix),
                "labels" => (layout.labels.is_some() || !needs_votes, &self.columns.labels),
                "id" => (layout.id.is_some(), &self.columns.id),
                "weight" => (layout.weight.is_some() || !labelled, &self.columns.weight),
                _ => continue,
            };
            if !there {
                return Err(self.error(format!(
                    "no column named by {key}={name}, as the option columns says{}; columns found: {}",
                    self.near_misses(key, name).unwrap_or_default(),
                    self.found()
                )));
            }
        }
        Ok(())
    }

    /// Whether a name given for features is a column's, or the prefix of some.
    fn has_feature(&self, name: &str) -> bool {
        self.fields.iter().any(|field| match field.shape {
            Shape::Scalar => feature_key(name, &field.name).is_some(),
            Shape::List(_) | Shape::Keyed(_) => field.name == name,
        })
    }

    /// Columns that begin with a name though it is no prefix of theirs, and what to give instead.
    fn near_misses(&self, key: &str, name: &str) -> Option<String> {
        let near: Vec<&str> =
            self.fields.iter().map(|field| field.name.as_str()).filter(|column| column.starts_with(name)).collect();
        let first = near.first()?;
        let rest = first.strip_prefix(name)?.chars().next()?;
        let found = listed(&near);
        let separator = Some(rest).filter(|c| SEPARATORS.contains(c) && !name.ends_with(SEPARATORS));
        Some(match (key, separator) {
            ("features" | "oracles", Some(separator)) => {
                format!(": {found} begin with it; give the whole prefix, {key}={name}{separator}")
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

    fn probs(&self) -> Result<Part> {
        if let Some(part) = self.part(Kind::Probs, self.hints.classes.as_deref())? {
            return Ok(part);
        }
        let name = &self.columns.probs;
        Err(self.error(format!(
            "no predictions: no column begins with {} and none is a list or map named {}; columns found: {}; {}",
            name.prefix,
            name.field,
            self.found(),
            self.delimiter_hint().unwrap_or_else(|| {
                "if they go by another name, give it: --columns probs=NAME, in Python columns={'probs': NAME}"
                    .to_owned()
            })
        )))
    }

    /// What to do if the whole header was taken for one column because something else than commas separates them.
    fn delimiter_hint(&self) -> Option<String> {
        let [only] = self.fields else { return None };
        let (_, name, typed) = DELIMITERS.into_iter().find(|(delimiter, ..)| only.name.contains(*delimiter))?;
        Some(format!(
            "separate the columns by commas, or say that {name} do: --delimiter '{typed}', in Python delimiter='{typed}'"
        ))
    }

    /// What to do if the votes stand under another prefix: one that has a column for each class, and nothing else to say.
    fn votes_hint(&self, classes: &[String]) -> Option<String> {
        let names: HashSet<&str> = self.fields.iter().map(|field| field.name.as_str()).collect();
        let has_all = |prefix: &str| classes.iter().all(|class| names.contains(format!("{prefix}{class}").as_str()));
        let free = self.fields.iter().filter(|field| self.columns.wide(&field.name).is_none());
        let mut prefixes = free.filter_map(|field| field.name.strip_suffix(classes.first()?.as_str()));
        let prefix = prefixes.find(|prefix| !prefix.is_empty() && has_all(prefix))?;
        Some(format!(
            "; if {prefix}<class> are the votes, say so: --columns votes={prefix}, in Python columns={{'votes': '{prefix}'}}"
        ))
    }

    fn has_votes(&self) -> bool {
        let (votes, labels) = (&self.columns.votes, &self.columns.labels);
        let counts = |name: &str| name == votes.field || name.starts_with(&votes.prefix) || name == labels;
        self.fields.iter().any(|field| counts(&field.name))
    }

    /// Votes or truth: for exactly the classes there are.
    fn classed(&self, kind: Kind, classes: &[String]) -> Result<Option<Part>> {
        let Some(mut part) = self.part(kind, Some(classes))? else { return Ok(None) };
        if self.hints.sparse && kind == Kind::Votes && matches!(part.at, At::Keyed(_)) {
            let absent: Vec<String> = classes.iter().filter(|class| !part.keys.contains(class)).cloned().collect();
            part.keys.extend(absent);
        }
        self.fit(part, classes).map(Some)
    }

    /// The same values in the order of the classes.
    fn fit(&self, mut part: Part, classes: &[String]) -> Result<Part> {
        let place: HashMap<&str, usize> = part.keys.iter().enumerate().map(|(i, key)| (key.as_str(), i)).collect();
        let show = |class: &str| match part.at {
            At::Wide(_) => format!("{}{class}", part.name),
            At::List(_) | At::Keyed(_) => format!("{}.{class}", part.name),
        };
        let known: HashSet<&String> = classes.iter().collect();
        if let Some(extra) = part.keys.iter().find(|key| !known.contains(key)) {
            return Err(self.error(format!(
                "column {}: {} is not among the classes of the predictions ({}){}",
                show(extra),
                shown(extra),
                listed(classes),
                did_you_mean(extra, classes.iter().map(String::as_str))
            )));
        }
        if let Some(missing) = classes.iter().find(|class| !place.contains_key(class.as_str())) {
            return Err(self.error(format!(
                "no column {}: there must be one for each class of the predictions ({})",
                show(missing),
                listed(classes)
            )));
        }
        if let At::Wide(fields) = &mut part.at {
            *fields = classes.iter().map(|class| fields[place[class.as_str()]]).collect();
        }
        part.keys = classes.to_vec();
        Ok(part)
    }

    /// The features, all or those wanted; of a list, which of them are.
    fn features(&self, wanted: Option<&[String]>) -> Result<(Option<Part>, Option<Vec<usize>>)> {
        if wanted.is_some_and(<[String]>::is_empty) {
            return Ok((None, None));
        }
        let part = self.part(Kind::Features, self.hints.features.as_deref())?.filter(|part| part.width() > 0);
        let Some(wanted) = wanted else { return Ok((part, None)) };
        let keys = part.as_ref().map_or(&[][..], |part| &part.keys);
        let place =
            |name: &String| keys.iter().position(|key| key == name).ok_or_else(|| self.missing_feature(name, wanted));
        let places: Vec<usize> = wanted.iter().map(place).collect::<Result<_>>()?;
        let Some(mut part) = part else { return Ok((None, None)) };
        if let At::List(_) = part.at {
            return Ok((Some(part), Some(places)));
        }
        if let At::Wide(fields) = &mut part.at {
            *fields = places.iter().map(|&place| fields[place]).collect();
        }
        if !part.own_names.is_empty() {
            part.own_names = places.iter().map(|&place| part.own_names[place].clone()).collect();
        }
        part.partial = places.len() < part.keys.len();
        part.keys = wanted.to_vec();
        Ok((Some(part), None))
    }

    /// Says which feature is not there, and how columns of the same names are given.
    fn missing_feature(&self, name: &str, wanted: &[String]) -> Error {
        let is_column = |name: &&String| self.fields.iter().any(|field| field.name == **name);
        let prefix = &self.columns.features.prefix;
        let column = match self.columns.feature_names.as_slice() {
            [] => format!("{prefix}{name}"),
            names if names.iter().any(|given| given == name) => name.to_owned(),
            _ => format!("{name}, nor {prefix}{name}"),
        };
        let own: Vec<&String> = wanted.iter().filter(is_column).collect();
        let hint = match own.iter().any(|own| *own == name) {
            true => {
                let names = |join: &str| own.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(join);
                format!(
                    "; there is a column {name}: give --columns features={}, in Python columns={{'features': ['{}']}}",
                    names(",features="),
                    names("', '")
                )
            }
            false => String::new(),
        };
        self.error(format!("no column {column}, which is needed; columns found: {}{hint}", self.found()))
    }

    fn labels(&self) -> Result<Option<usize>> {
        let name = &self.columns.labels;
        // One value a row under this name is something else (often the item's reference label).
        Ok(self.named(name)?.filter(|&i| matches!(self.fields[i].shape, Shape::List(_))))
    }

    fn oracles(&self, classes: &[String]) -> Result<Vec<(String, Part)>> {
        let name = &self.columns.oracles;
        let mut oracles: Vec<(String, Part)> = Vec::new();
        if let Some(field) = self.named(&name.field)?
            && let Shape::Keyed(children) = &self.fields[field].shape
        {
            for (oracle, shape) in children {
                let spot = Spot { field, child: Some(oracle.clone()) };
                let part = self.nested(spot, shape, format!("{}.{oracle}", name.field), Some(classes))?;
                oracles.push((oracle.clone(), self.fit(part, classes)?));
            }
        }
        let one_model = self.one_model(classes)?;
        let is_its = |rest: &str| one_model.is_some() && classes.iter().any(|class| class == rest);
        let mut wide: Vec<(String, Vec<String>, Vec<usize>)> = Vec::new();
        for (i, field) in self.fields.iter().enumerate() {
            let Some((Kind::Oracles, rest)) = self.columns.wide(&field.name) else { continue };
            if field.name == name.field || is_its(rest) {
                continue;
            }
            if field.shape != Shape::Scalar {
                let spot = Spot { field: i, child: None };
                let part = self.nested(spot, &field.shape, field.name.clone(), Some(classes))?;
                oracles.push((rest.to_owned(), self.fit(part, classes)?));
                continue;
            }
            // A single value about no class is something else, like oracle_version.
            let Some((oracle, class)) = of_class(rest, classes) else { continue };
            let at = wide.iter().position(|(o, ..)| o == oracle).unwrap_or_else(|| {
                wide.push((oracle.to_owned(), Vec::new(), Vec::new()));
                wide.len() - 1
            });
            wide[at].1.push(class.clone());
            wide[at].2.push(i);
        }
        for (oracle, keys, fields) in wide {
            let prefix = format!("{}{oracle}_", name.prefix);
            self.only_once(&keys, &prefix)?;
            let part = Part {
                keys,
                at: At::Wide(fields),
                name: prefix,
                own_names: Vec::new(),
                arrays: self.hints.arrays,
                partial: false,
            };
            oracles.push((oracle, self.fit(part, classes)?));
        }
        oracles.extend(one_model);
        for (i, (oracle, _)) in oracles.iter().enumerate() {
            if oracles[..i].iter().any(|(other, _)| other == oracle) {
                return Err(self.error(format!("model {oracle} is given twice: keep one of its columns")));
            }
        }
        Ok(oracles)
    }

    /// The model whose columns are `<prefix><class>`, if the prefix was given and every class has one: it is called by the prefix.
    fn one_model(&self, classes: &[String]) -> Result<Option<(String, Part)>> {
        let prefix = &self.columns.oracles.prefix;
        let model = prefix.trim_end_matches(SEPARATORS);
        if !self.columns.named.contains(&"oracles") || model.is_empty() {
            return Ok(None);
        }
        let mut fields = Vec::with_capacity(classes.len());
        for class in classes {
            match self.scalar(&format!("{prefix}{class}"))? {
                Some(field) => fields.push(field),
                None => return Ok(None),
            }
        }
        let (keys, arrays) = (classes.to_vec(), self.hints.arrays);
        let part =
            Part { keys, at: At::Wide(fields), name: prefix.clone(), own_names: Vec::new(), arrays, partial: false };
        Ok(Some((model.to_owned(), part)))
    }

    /// The values of one kind, wide or nested, with keys as the file gives them.
    fn part(&self, kind: Kind, list_keys: Option<&[String]>) -> Result<Option<Part>> {
        let name = self.columns.name(kind);
        let has_names = kind == Kind::Features && !self.columns.feature_names.is_empty();
        let (mut keys, mut fields) = (Vec::new(), Vec::new());
        for (i, field) in self.fields.iter().enumerate() {
            if field.shape == Shape::Scalar
                && let Some((found, mut key)) = self.columns.wide(&field.name)
                && found == kind
            {
                if has_names {
                    let Some(own) = self.feature_key(&field.name) else { continue };
                    key = own;
                }
                keys.push(key.to_owned());
                fields.push(i);
            }
        }
        let own_names = |fields: &[usize]| match has_names {
            true => fields.iter().map(|&i| self.fields[i].name.clone()).collect(),
            false => Vec::new(),
        };
        if has_names {
            let mut seen = HashMap::new();
            for (key, &field) in keys.iter().zip(&fields) {
                if let Some(other) = seen.insert(key, field) {
                    let [one, two] = [other, field].map(|field| &self.fields[field].name);
                    let twice =
                        format!("columns {one} and {two} are both the feature {key}: give features names that differ");
                    return Err(if one == two { self.twice(one) } else { self.error(twice) });
                }
            }
        } else {
            self.only_once(&keys, &name.prefix)?;
            self.has_whole_prefix(name, &keys)?;
        }
        let nested = self.named(&name.field)?.filter(|&i| self.fields[i].shape != Shape::Scalar);
        if has_names && self.columns.feature_names.len() > 1 {
            let is_nested =
                |field: &&Field| field.shape != Shape::Scalar && self.columns.feature_names.contains(&field.name);
            if let Some(field) = self.fields.iter().find(is_nested) {
                return Err(self.error(format!(
                    "column {} holds lists or maps: give it as the only name of features, or name columns of single values",
                    field.name
                )));
            }
        }
        match (keys.first(), nested) {
            (Some(key), Some(_)) => Err(self.error(format!(
                "columns {}{key} and {} hold the same kind of values: keep one of them",
                name.prefix, name.field
            ))),
            (None, Some(field)) => {
                let spot = Spot { field, child: None };
                self.nested(spot, &self.fields[field].shape, name.field.clone(), list_keys).map(Some)
            }
            (Some(_), None) => Ok(Some(Part {
                keys,
                own_names: own_names(&fields),
                at: At::Wide(fields),
                name: name.prefix.clone(),
                arrays: self.hints.arrays,
                partial: false,
            })),
            (None, None) => Ok(None),
        }
    }

    /// The feature that a column of single values holds, by the names given: one that is a column's own is no prefix besides.
    fn feature_key<'a>(&self, column: &'a str) -> Option<&'a str> {
        let is_column = |name: &String| self.fields.iter().any(|f| f.name == *name && f.shape == Shape::Scalar);
        let names = self.columns.feature_names.iter().filter(|name| *name == column || !is_column(name));
        names
            .filter_map(|name| feature_key(name, column))
            .min_by_key(|(key, _)| (*key != column, key.len()))
            .map(|(key, _)| key)
    }

    fn nested(&self, spot: Spot, shape: &Shape, name: String, list_keys: Option<&[String]>) -> Result<Part> {
        let arrays = self.hints.arrays;
        match shape {
            Shape::List(width) => {
                let keys = match list_keys {
                    Some(keys) if keys.len() != *width => {
                        return Err(self.error(format!(
                            "column {name}: {width} values per row, but there are {} names for them ({})",
                            keys.len(),
                            listed(keys)
                        )));
                    }
                    Some(keys) => keys.to_vec(),
                    None => (0..*width).map(|i| i.to_string()).collect(),
                };
                Ok(Part { keys, at: At::List(spot), name, own_names: Vec::new(), arrays, partial: false })
            }
            Shape::Keyed(children) => {
                let mut keys = Vec::with_capacity(children.len());
                for (key, child) in children {
                    if *child != Shape::Scalar {
                        return Err(self.error(format!("column {name}.{key}: one number is needed, not a list")));
                    }
                    keys.push(key.clone());
                }
                self.only_once(&keys, &format!("{name}."))?;
                Ok(Part { keys, at: At::Keyed(spot), name, own_names: Vec::new(), arrays, partial: false })
            }
            Shape::Scalar => Err(self.error(format!(
                "column {name}: one value per row, but a list or a map is needed, one entry per class"
            ))),
        }
    }

    fn scalar(&self, name: &str) -> Result<Option<usize>> {
        Ok(self.named(name)?.filter(|&i| self.fields[i].shape == Shape::Scalar))
    }

    fn filter(&self, name: &str) -> Result<usize> {
        match self.named(name)? {
            Some(i) if self.fields[i].shape == Shape::Scalar => Ok(i),
            Some(_) => Err(self.error(format!("column {name} holds lists: filters need one value per row"))),
            None => Err(self.error(format!("no column {} to filter by; columns found: {}", shown(name), self.found()))),
        }
    }

    /// The field of a name, which may be there once at most.
    fn named(&self, name: &str) -> Result<Option<usize>> {
        let mut found = None;
        for (i, field) in self.fields.iter().enumerate() {
            if field.name == name && found.replace(i).is_some() {
                return Err(self.twice(name));
            }
        }
        Ok(found)
    }

    /// Refuses a prefix given without the separator that ends it: every class would begin with it.
    fn has_whole_prefix(&self, name: &Name, keys: &[String]) -> Result<()> {
        let is_given = self.columns.named.iter().any(|key| self.columns.prefix_of(key) == Some(&name.prefix));
        let separator = SEPARATORS.into_iter().find(|&c| keys.iter().all(|key| key.starts_with(c)));
        match separator.filter(|_| is_given && !keys.is_empty() && !name.prefix.ends_with(SEPARATORS)) {
            Some(separator) => Err(self.error(format!(
                "columns {0}{1} and others: every name behind the prefix {0} begins with {separator:?}; give the whole prefix, {0}{separator}",
                name.prefix, keys[0]
            ))),
            None => Ok(()),
        }
    }

    fn only_once(&self, keys: &[String], prefix: &str) -> Result<()> {
        let mut seen = HashSet::new();
        match keys.iter().find(|key| !seen.insert(*key)) {
            Some(key) => Err(self.twice(&format!("{prefix}{key}"))),
            None => Ok(()),
        }
    }

    fn twice(&self, column: &str) -> Error {
        self.error(format!("column {column} is given twice: rename or drop one of them"))
    }

    fn found(&self) -> String {
        listed(self.fields.iter().map(|f| f.name.as_str()))
    }

    fn error(&self, reason: String) -> Error {
        Error::file(self.file, reason)
    }
}
