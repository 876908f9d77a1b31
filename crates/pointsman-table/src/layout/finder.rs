//! Finding the fields of a file by their roles.

use std::collections::HashSet;

use super::messages::{columns_flag, where_flag};
use super::{ColumnGroup, Field, FieldPath, FilterField, Hints, LabelFields, Layout, Location, Shape};
use crate::error::{Error, Result, listed, shown};
use crate::labels::Labels;
use crate::options::{Columns, Filter, Need, ReadOptions, Role, SEPARATORS};
use crate::suggest::seems_to_be_id;

/// What columns are called, behind the prefix of labels, that hold a decision made from the labels.
const DECISIONS: [&str; 9] =
    ["final", "majority", "gold", "consensus", "adjudicated", "aggregate", "aggregated", "agreed", "mode"];

pub(super) struct Finder<'a> {
    pub(super) file: &'a str,
    pub(super) fields: &'a [Field],
    pub(super) hints: Hints,
    pub(super) columns: &'a Columns,
}

impl Finder<'_> {
    pub(super) fn layout(&self, options: &ReadOptions) -> Result<Layout> {
        let columns = self.columns;
        let (probs, reordered) = self.probs(options.classes.as_deref())?;
        let classes = probs.keys.clone();
        let is_labelled = options.need != Need::Predictions;
        let (votes, labels) = self.votes(&classes, options)?;
        let truth = if is_labelled { self.group_of_classes(Role::Truth, &classes)? } else { None };
        self.check_need(options, votes.is_some() || labels.is_some(), truth.is_some(), &classes)?;
        if let Some(first) = options.first_labels.filter(|_| counts_votes(options) && labels.is_none()) {
            return Err(self.error(format!(
                "the first {first} labels of a row are not known from {}: counts have no order; give the labels in the order \
                 they were collected, as a list {} or as a long table of annotations",
                if votes.is_some() { "its votes" } else { "what is there" },
                columns.labels
            )));
        }
        let id = self.id(options)?;
        let is_other_id = |name: &String| *name != columns.id && name != "id";
        let (features, wanted_features) = self.features(options.features.as_deref())?;
        let weight = if is_labelled { self.scalar(&columns.weight)? } else { None };
        let weight = weight
            .map(|field| self.new_group(vec![String::new()], Location::Wide(vec![field]), columns.weight.clone()));
        let decided_labels = self.decided_labels(labels.as_ref());
        let mut layout = Layout {
            probs,
            votes,
            labels,
            decided_labels,
            first_labels: options.first_labels.map_or(usize::MAX, |n| n.get() as usize),
            truth,
            features,
            wanted_features,
            oracles: if is_labelled { self.oracles(&classes, &options.filters)? } else { Vec::new() },
            weight,
            id,
            taken_id: id.map(|field| self.fields[field].name.clone()).filter(is_other_id),
            dropped_id: id.filter(|_| options.annotations.is_some() && !options.filters.is_empty()),
            filters: options.filters.iter().map(|filter| self.filter(filter)).collect::<Result<_>>()?,
            names: self.fields.iter().map(|f| f.name.clone()).collect(),
            ignored_votes: is_labelled && options.annotations.is_some() && self.has_votes(),
            reordered,
            classes,
            unused_scalars: Vec::new(),
            unread_answers: Vec::new(),
            possible_answers: Vec::new(),
        };
        if layout.features.is_none() {
            layout.unused_scalars = self.unused_scalars(&layout);
        }
        if is_labelled && !self.columns.has_name("oracles") {
            layout.unread_answers = self.unread_answers(&layout);
        }
        if is_labelled {
            layout.possible_answers = self.possible_answers(&layout);
        }
        self.check_named_columns(&layout, options)?;
        Ok(layout)
    }

    /// The predictions, in the order of `order` if they have these classes and are found by name, and whether the file has another order.
    fn probs(&self, order: Option<&[String]>) -> Result<(ColumnGroup, bool)> {
        let group = self.group(Role::Probs, self.hints.classes.as_deref())?;
        let group = group.ok_or_else(|| self.no_predictions())?;
        let classes = group.keys.clone();
        let is_by_name = !matches!(group.location, Location::List(_));
        let has_classes = |order: &&[String]| order.len() == classes.len() && order.iter().all(|c| classes.contains(c));
        let group = match order.filter(|_| is_by_name).filter(has_classes) {
            Some(order) => self.in_order_of(group, order)?,
            None => group,
        };
        if classes.len() < 2 {
            return Err(self.error(format!(
                "one class only ({}): {}",
                listed(&classes),
                self.delimiter_hint().unwrap_or_else(|| "a classifier needs at least two".to_owned())
            )));
        }
        let is_reordered = group.keys != classes;
        Ok((group, is_reordered))
    }

    /// The votes, or the fields of labels. Counts are preferred, unless the order of the labels matters.
    fn votes(&self, classes: &[String], options: &ReadOptions) -> Result<(Option<ColumnGroup>, Option<LabelFields>)> {
        if !counts_votes(options) {
            return Ok((None, None));
        }
        if options.first_labels.is_some()
            && let Some(labels) = self.labels(classes)?
        {
            return Ok((None, Some(labels)));
        }
        match self.group_of_classes(Role::Votes, classes)? {
            Some(votes) => Ok((Some(votes), None)),
            None => Ok((None, self.labels(classes)?)),
        }
    }

    /// Refuses a file without the votes or truth that are needed.
    fn check_need(&self, options: &ReadOptions, has_votes: bool, has_truth: bool, classes: &[String]) -> Result<()> {
        let has_votes = has_votes || options.annotations.is_some();
        let missing = match options.need {
            Need::Votes if !has_votes => "votes",
            Need::VotesOrTruth if !has_votes && !has_truth => "votes and no truth",
            _ => return Ok(()),
        };
        let truth = match options.need {
            Need::VotesOrTruth => format!(", or {}<class>", self.columns.prefix(Role::Truth)),
            _ => String::new(),
        };
        let of_annotations = self.columns.named.iter().find(|key| ["item", "label", "annotator", "date"].contains(key));
        Err(self.error(format!(
            "no {missing}: give columns {}<class>, a field {} or {}{truth}, or --annotations FILE (in Python annotations=FILE); columns found: {}{}{}",
            self.columns.prefix(Role::Votes),
            self.columns.field(Role::Votes),
            self.columns.labels,
            self.found(),
            self.label_hint(classes)
                .or_else(|| self.votes_hint(classes))
                .or_else(|| self.label_columns_hint(classes))
                .or_else(|| self.nested_labels_hint(classes))
                .unwrap_or_default(),
            of_annotations.map_or(String::new(), |key| format!(
                "; {key} is a column of annotations, but there are none: give their file, --annotations FILE"
            ))
        )))
    }

    /// The field of ids, if it is there or needed, as by annotations.
    fn id(&self, options: &ReadOptions) -> Result<Option<usize>> {
        let id = self.scalar(&self.columns.id)?;
        let is_joined = options.annotations.is_some();
        if id.is_some() || !(is_joined || options.need_ids) {
            return Ok(id);
        }
        // The name that was given may be that of the annotations only.
        if let Some(id) = self.scalar("id")?.filter(|_| is_joined) {
            return Ok(Some(id));
        }
        let alike: Vec<&str> =
            self.fields.iter().map(|field| field.name.as_str()).filter(|name| seems_to_be_id(name)).collect();
        // Annotations have the ids of one column, whatever it is called; a name that was given is meant.
        let only = alike.first().filter(|_| alike.len() == 1 && is_joined && !self.columns.named.contains(&"id"));
        if let Some(id) = only.map(|name| self.scalar(name)).transpose()?.flatten() {
            return Ok(Some(id));
        }
        let name = if let [only] = alike.as_slice() { only } else { "NAME" };
        Err(self.error(format!(
            "no column {}: {} by it; if it goes by another name, give it: {}, in Python columns={{'id': '{name}'}}; columns found: {}",
            self.columns.id,
            if is_joined { "annotations are joined" } else { "items are named" },
            columns_flag(&format!("id={name}")),
            self.found()
        )))
    }

    /// The fields of single values that have no role and are not used.
    fn unused_scalars(&self, layout: &Layout) -> Vec<usize> {
        let used = layout.used();
        let is_unused = |&i: &usize| {
            let Field { name, shape, .. } = &self.fields[i];
            *shape == Shape::Scalar
                && used.binary_search(&i).is_err()
                && !self.columns.has_role(name, true, &layout.classes)
        };
        (0..self.fields.len()).filter(is_unused).collect()
    }

    /// Refuses a file without a column that the user named: a misspelt name would otherwise drop a column silently.
    fn check_named_columns(&self, layout: &Layout, options: &ReadOptions) -> Result<()> {
        let is_labelled = options.need != Need::Predictions;
        let needs_votes = is_labelled && options.need != Need::VotesIfAny;
        for &key in &self.columns.named {
            let (is_there, name) = match key {
                "votes" => (layout.votes.is_some() || !needs_votes, self.columns.prefix(Role::Votes)),
                "truth" => (layout.truth.is_some() || !is_labelled, self.columns.prefix(Role::Truth)),
                "features" if options.features.is_none() => {
                    match self.columns.feature_names.iter().find(|name| !self.has_feature(name)) {
                        Some(missing) => (false, missing),
                        None => continue,
                    }
                }
                "oracles" => (!layout.oracles.is_empty() || !is_labelled, self.columns.prefix(Role::Oracles)),
                "labels" => (layout.labels.is_some() || !needs_votes, &self.columns.labels),
                "id" => (layout.id.is_some(), &self.columns.id),
                "weight" => (layout.weight.is_some() || !is_labelled, &self.columns.weight),
                _ => continue,
            };
            if !is_there {
                if ["votes", "labels"].contains(&key) && options.annotations.is_some() {
                    return Err(self.error(format!(
                        "{key}={name} cannot be used with --annotations (in Python annotations=), which has all labels: leave one of them out"
                    )));
                }
                let label = Some(()).filter(|()| key == "labels").and_then(|()| self.label_hint(&layout.classes));
                return Err(self.error(format!(
                    "no column named by {key}={name}, as the option columns says{}; columns found: {}",
                    self.prefix_hint(key, name, &layout.classes).unwrap_or_default(),
                    self.found() + &label.unwrap_or_default()
                )));
            }
        }
        Ok(())
    }

    fn has_votes(&self) -> bool {
        let (prefix, field) = (self.columns.prefix(Role::Votes), self.columns.field(Role::Votes));
        let is_votes = |name: &String| {
            name == field || name.starts_with(prefix) || *name == self.columns.labels || self.columns.is_label(name)
        };
        self.fields.iter().any(|field| is_votes(&field.name))
    }

    /// The field that lists labels, or the columns of one label each whose prefix or names the user gave: without a column that has more than the
    /// prefix, the one column of this name. A single value under the usual name of the list is something else, often the item's reference label.
    fn labels(&self, classes: &[String]) -> Result<Option<LabelFields>> {
        if let Some(names) = self.columns.columns_of_labels() {
            return self.labels_by_name(names);
        }
        let list = self.named(&self.columns.labels)?.filter(|&i| matches!(self.fields[i].shape, Shape::List(_)));
        if let Some(list) = list {
            return Ok(Some(LabelFields::List(list)));
        }
        let is_label =
            |&i: &usize| self.fields[i].shape == Shape::Scalar && self.columns.is_label(&self.fields[i].name);
        let mut columns: Vec<usize> = (0..self.fields.len()).filter(is_label).collect();
        if columns.is_empty() && self.columns.has_name("labels") {
            let is_one = |&field: &usize| self.is_one_label(&self.fields[field], classes);
            columns.extend(self.scalar(&self.columns.labels)?.filter(is_one));
        }
        Ok((!columns.is_empty()).then_some(LabelFields::Columns(columns)))
    }

    /// Whether a column may hold one label per row: not text with several class names, and no other column begins with its name, which then is
    /// meant as a prefix.
    pub(super) fn is_one_label(&self, column: &Field, classes: &[String]) -> bool {
        let text = column.first.as_deref().unwrap_or_default();
        let is_text =
            Labels::new(classes).class(text).is_none() && classes.iter().any(|class| text.contains(class.as_str()));
        let begins = |other: &Field| other.name.len() > column.name.len() && other.name.starts_with(&column.name);
        !is_text && !self.fields.iter().any(begins)
    }

    /// The columns of one label each that the user named, in the order of these names: all of them, or none.
    fn labels_by_name(&self, names: &[String]) -> Result<Option<LabelFields>> {
        let fields: Vec<Option<usize>> = names.iter().map(|name| self.scalar(name)).collect::<Result<_>>()?;
        let columns: Vec<usize> = fields.iter().copied().flatten().collect();
        match fields.iter().position(Option::is_none) {
            Some(missing) if !columns.is_empty() => Err(self.error(format!(
                "no column named by labels={}: if labels are given more than once, each is the name of one column with one label per row; \
                 columns found: {}",
                names[missing],
                self.found()
            ))),
            _ => Ok((!columns.is_empty()).then_some(LabelFields::Columns(columns))),
        }
    }

    /// The columns read by the prefix of labels that may hold a decision made from the others: they are called so, or most of the others
    /// are numbered.
    fn decided_labels(&self, labels: Option<&LabelFields>) -> Vec<String> {
        let Some(LabelFields::Columns(fields)) = labels else { return Vec::new() };
        if self.columns.columns_of_labels().is_some() {
            return Vec::new();
        }
        let names: Vec<&str> = fields.iter().map(|&field| self.fields[field].name.as_str()).collect();
        let is_numbered = |name: &str| name.ends_with(|c: char| c.is_ascii_digit());
        let are_mostly_numbered = 2 * names.iter().filter(|name| is_numbered(name)).count() > names.len();
        let is_decision = |name: &str| {
            let rest = name.strip_prefix(&self.columns.labels).unwrap_or_default();
            let word = rest.trim_start_matches(SEPARATORS).to_lowercase();
            DECISIONS.contains(&word.as_str()) || are_mostly_numbered && !is_numbered(name)
        };
        names.into_iter().filter(|name| is_decision(name)).map(str::to_owned).collect()
    }

    pub(super) fn scalar(&self, name: &str) -> Result<Option<usize>> {
        Ok(self.named(name)?.filter(|&i| self.fields[i].shape == Shape::Scalar))
    }

    /// The field that a filter looks at, or the child of a map: `oracles.llm`.
    fn filter(&self, filter: &Filter) -> Result<FilterField> {
        let name = filter.column();
        let Some((path, shape)) = self.path(name)? else {
            return Err(self.error(format!("no column {} to filter by; columns found: {}", shown(name), self.found())));
        };
        let asks_for_any_value = filter.asks_for_any_value();
        if *shape != Shape::Scalar && !asks_for_any_value {
            return Err(self.error(format!(
                "column {name} holds lists or maps: filters need one value per row; {} keeps the rows that have a list or map",
                where_flag(&format!("{name}!="))
            )));
        }
        Ok(FilterField { path, asks_for_any_value })
    }

    /// The place and the shape of a field, or of a child of a map.
    fn path(&self, name: &str) -> Result<Option<(FieldPath, &Shape)>> {
        if let Some(field) = self.named(name)? {
            return Ok(Some((FieldPath { field, child: None }, &self.fields[field].shape)));
        }
        for (dot, _) in name.match_indices('.') {
            let (parent, child) = (&name[..dot], &name[dot + 1..]);
            if let Some(field) = self.named(parent)?
                && let Shape::Keyed(children) = &self.fields[field].shape
                && let Some((_, shape)) = children.iter().find(|(key, _)| key == child)
            {
                return Ok(Some((FieldPath { field, child: Some(child.to_owned()) }, shape)));
            }
        }
        Ok(None)
    }

    /// The field of a name, which must not be given twice.
    pub(super) fn named(&self, name: &str) -> Result<Option<usize>> {
        let mut found = None;
        for (i, field) in self.fields.iter().enumerate() {
            if field.name == name && found.replace(i).is_some() {
                return Err(self.given_twice(name));
            }
        }
        Ok(found)
    }

    pub(super) fn check_unique(&self, keys: &[String], prefix: &str) -> Result<()> {
        let mut seen = HashSet::new();
        match keys.iter().find(|key| !seen.insert(*key)) {
            Some(key) => Err(self.given_twice(&format!("{prefix}{key}"))),
            None => Ok(()),
        }
    }

    pub(super) fn given_twice(&self, column: &str) -> Error {
        self.error(format!("column {column} is given twice: rename or drop one of them"))
    }

    /// The names of the fields, for messages.
    pub(super) fn found(&self) -> String {
        listed(self.fields.iter().map(|f| f.name.as_str()))
    }

    pub(super) fn error(&self, reason: String) -> Error {
        Error::file(self.file, reason)
    }
}

/// Whether votes are counted from the table itself.
fn counts_votes(options: &ReadOptions) -> bool {
    options.need != Need::Predictions && options.annotations.is_none()
}
