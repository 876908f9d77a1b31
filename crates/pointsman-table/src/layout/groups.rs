//! Groups of columns that belong together: the classes of a prediction, the features.

use std::collections::{HashMap, HashSet};

use super::finder::Finder;
use super::{ColumnGroup, Field, FieldPath, Layout, Location, Shape};
use crate::error::{Result, listed, shown};
use crate::labels::Labels;
use crate::options::{Filter, Role, SEPARATORS, feature_key, model_and_class};
use crate::suggest::did_you_mean;

impl Finder<'_> {
    pub(super) fn new_group(&self, keys: Vec<String>, location: Location, name: String) -> ColumnGroup {
        let arrays = self.hints.arrays;
        ColumnGroup { keys, location, name, column_names: Vec::new(), arrays, ignores_other_keys: false }
    }

    /// The group of a role, wide or nested, with keys as the file has them.
    pub(super) fn group(&self, role: Role, list_keys: Option<&[String]>) -> Result<Option<ColumnGroup>> {
        let (prefix, name) = (self.columns.prefix(role), self.columns.field(role));
        let wide = if role == Role::Features && !self.columns.feature_names.is_empty() {
            self.named_features()?
        } else {
            self.wide_group(role)?
        };
        let nested = self.named(name)?.filter(|&i| self.fields[i].shape != Shape::Scalar);
        match (wide, nested) {
            (Some(wide), Some(_)) => Err(self.error(format!(
                "columns {prefix}{} and {name} hold the same kind of values: keep one of them",
                wide.keys[0]
            ))),
            (None, Some(field)) => {
                let path = FieldPath { field, child: None };
                self.nested_group(path, &self.fields[field].shape, name.clone(), list_keys).map(Some)
            }
            (wide, None) => Ok(wide),
        }
    }

    /// The keys and the fields of the wide columns of a role.
    pub(super) fn wide_columns(&self, role: Role) -> (Vec<String>, Vec<usize>) {
        let scalars = self.fields.iter().enumerate().filter(|(_, field)| field.shape == Shape::Scalar);
        let key = |name: &str| {
            self.columns.wide_role(name).filter(|(found, _)| *found == role).map(|(_, key)| key.to_owned())
        };
        scalars.filter_map(|(i, field)| Some((key(&field.name)?, i))).unzip()
    }

    /// The columns of a prefix.
    fn wide_group(&self, role: Role) -> Result<Option<ColumnGroup>> {
        let (prefix, (keys, fields)) = (self.columns.prefix(role), self.wide_columns(role));
        if let Some(names) = self.columns.columns_of_predictions().filter(|_| role == Role::Probs) {
            return self.predictions_by_name(names, keys, fields).map(Some);
        }
        self.check_unique(&keys, prefix)?;
        self.check_prefix(prefix, &keys)?;
        Ok((!keys.is_empty()).then(|| self.new_group(keys, Location::Wide(fields), prefix.clone())))
    }

    /// The predictions whose columns the user named, each of which must be there.
    fn predictions_by_name(&self, names: &[String], keys: Vec<String>, fields: Vec<usize>) -> Result<ColumnGroup> {
        self.check_unique(&keys, "")?;
        match names.iter().find(|name| !keys.iter().any(|key| key == name.trim_end())) {
            Some(missing) => Err(self.error(format!(
                "no column named by probs={missing}: if predictions are given more than once, each is the name of one column; columns \
                 found: {}",
                self.found()
            ))),
            None => Ok(self.new_group(keys, Location::Wide(fields), String::new())),
        }
    }

    /// The features whose columns or prefixes the user named.
    fn named_features(&self) -> Result<Option<ColumnGroup>> {
        let names = &self.columns.feature_names;
        let (_, candidates) = self.wide_columns(Role::Features);
        let key = |&i: &usize| Some((self.feature_key(&self.fields[i].name)?.to_owned(), i));
        let (keys, fields): (Vec<String>, Vec<usize>) = candidates.iter().filter_map(key).unzip();
        let mut seen = HashMap::new();
        for (key, &field) in keys.iter().zip(&fields) {
            if let Some(other) = seen.insert(key, field) {
                let [one, two] = [other, field].map(|field| &self.fields[field].name);
                let twice =
                    format!("columns {one} and {two} are both the feature {key}: give features names that differ");
                return Err(if one == two { self.given_twice(one) } else { self.error(twice) });
            }
        }
        let is_nested = |field: &&Field| field.shape != Shape::Scalar && names.contains(&field.name);
        if let Some(field) = self.fields.iter().find(is_nested).filter(|_| names.len() > 1) {
            return Err(self.error(format!(
                "column {} holds lists or maps: give it as the only name of features, or name columns of single values",
                field.name
            )));
        }
        if keys.is_empty() {
            return Ok(None);
        }
        let column_names = fields.iter().map(|&i| self.fields[i].name.clone()).collect();
        let group = self.new_group(keys, Location::Wide(fields), self.columns.prefix(Role::Features).clone());
        Ok(Some(ColumnGroup { column_names, ..group }))
    }

    /// The feature that a column of single values holds, by the names given. A name that is itself a column is not also a prefix.
    fn feature_key<'a>(&self, column: &'a str) -> Option<&'a str> {
        let is_column = |name: &String| self.fields.iter().any(|f| f.name == *name && f.shape == Shape::Scalar);
        let names = self.columns.feature_names.iter().filter(|name| *name == column || !is_column(name));
        names
            .filter_map(|name| feature_key(name, column).map(|(key, _)| (name, key)))
            .min_by_key(|(name, key)| (*name != column, key.len()))
            .map(|(_, key)| key)
    }

    /// The values of a list or map.
    fn nested_group(
        &self,
        path: FieldPath,
        shape: &Shape,
        name: String,
        list_keys: Option<&[String]>,
    ) -> Result<ColumnGroup> {
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
                Ok(self.new_group(keys, Location::List(path), name))
            }
            Shape::Keyed(children) => {
                if let Some((key, _)) = children.iter().find(|(_, child)| *child != Shape::Scalar) {
                    return Err(self.error(format!("column {name}.{key}: one number is needed, not a list")));
                }
                let keys: Vec<String> = children.iter().map(|(key, _)| key.clone()).collect();
                self.check_unique(&keys, &format!("{name}."))?;
                Ok(self.new_group(keys, Location::Keyed(path), name))
            }
            Shape::Scalar => Err(self.error(format!(
                "column {name}: one value per row, but a list or a map is needed, one entry per class"
            ))),
        }
    }

    /// Votes or truth, in the order of the classes.
    pub(super) fn group_of_classes(&self, role: Role, classes: &[String]) -> Result<Option<ColumnGroup>> {
        let Some(mut group) = self.group(role, Some(classes))? else { return Ok(None) };
        if self.hints.sparse && role == Role::Votes {
            add_absent_classes(&mut group, classes);
        }
        self.in_order_of(group, classes).map(Some)
    }

    /// The same values in the order of the classes, which must be its keys.
    pub(super) fn in_order_of(&self, mut group: ColumnGroup, classes: &[String]) -> Result<ColumnGroup> {
        let place: HashMap<&str, usize> = group.keys.iter().enumerate().map(|(i, key)| (key.as_str(), i)).collect();
        let show = |class: &str| match group.location {
            Location::Wide(_) => format!("{}{class}", group.name),
            Location::List(_) | Location::Keyed(_) | Location::ClassName(_) => format!("{}.{class}", group.name),
        };
        let known: HashSet<&String> = classes.iter().collect();
        if let Some(extra) = group.keys.iter().find(|key| !known.contains(key)) {
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
        if let Location::Wide(fields) = &mut group.location {
            *fields = classes.iter().map(|class| fields[place[class.as_str()]]).collect();
        }
        group.keys = classes.to_vec();
        Ok(group)
    }

    /// The features, all or those wanted; of a list, the places of those wanted.
    pub(super) fn features(&self, wanted: Option<&[String]>) -> Result<(Option<ColumnGroup>, Option<Vec<usize>>)> {
        if wanted.is_some_and(<[String]>::is_empty) {
            return Ok((None, None));
        }
        let group = self.group(Role::Features, self.hints.features.as_deref())?.filter(|group| group.width() > 0);
        let Some(wanted) = wanted else { return Ok((group, None)) };
        let keys = group.as_ref().map_or(&[][..], |group| &group.keys);
        let place =
            |name: &String| keys.iter().position(|key| key == name).ok_or_else(|| self.missing_feature(name, wanted));
        let places: Vec<usize> = wanted.iter().map(place).collect::<Result<_>>()?;
        let Some(mut group) = group else { return Ok((None, None)) };
        if let Location::List(_) = group.location {
            return Ok((Some(group), Some(places)));
        }
        if let Location::Wide(fields) = &mut group.location {
            *fields = places.iter().map(|&place| fields[place]).collect();
        }
        if !group.column_names.is_empty() {
            group.column_names = places.iter().map(|&place| group.column_names[place].clone()).collect();
        }
        group.ignores_other_keys = places.len() < group.keys.len();
        group.keys = wanted.to_vec();
        Ok((Some(group), None))
    }

    /// The predictions of other models, with the models' names.
    pub(super) fn oracles(&self, classes: &[String], filters: &[Filter]) -> Result<Vec<(String, ColumnGroup)>> {
        let (prefix, name) = (self.columns.prefix(Role::Oracles), self.columns.field(Role::Oracles));
        let class_name =
            |path: FieldPath, name: String| self.new_group(classes.to_vec(), Location::ClassName(path), name);
        let nested = |path: FieldPath, shape: &Shape, name: String| {
            if *shape == Shape::Scalar {
                return Ok(class_name(path, name));
            }
            let mut group = self.nested_group(path, shape, name, Some(classes))?;
            if self.hints.sparse_answers {
                add_absent_classes(&mut group, classes);
            }
            self.in_order_of(group, classes)
        };
        let mut oracles: Vec<(String, ColumnGroup)> = Vec::new();
        if let Some(field) = self.named(name)?
            && let Shape::Keyed(children) = &self.fields[field].shape
        {
            for (oracle, shape) in children {
                let path = FieldPath { field, child: Some(oracle.clone()) };
                oracles.push((oracle.clone(), nested(path, shape, format!("{name}.{oracle}"))?));
            }
        }
        let answers = Labels::new(classes);
        let are_named = self.columns.has_name("oracles");
        let is_answer = |field: &Field| match field.first.as_deref().map(str::trim) {
            // A number may be a version or seconds, unless the user says that these columns are answers.
            Some(first) if !first.is_empty() => {
                answers.is_name_in_words(first) || are_named && answers.class(first).is_some()
            }
            // The first row may be one that a filter drops because it has no answer.
            _ => filters.iter().any(|filter| filter.column() == field.name && filter.keeps_any_value()),
        };
        if self.columns.has_name("oracles")
            && let Some(field) = self.scalar(name.trim_end())?
        {
            // A column whose whole name is given is the same model as without the flag.
            let name = &self.fields[field].name;
            let model = name.strip_prefix("oracle_").unwrap_or(name);
            oracles.push((model.to_owned(), class_name(FieldPath { field, child: None }, name.clone())));
        }
        let only_model = self.only_model(classes)?;
        let is_its_class = |rest: &str| only_model.is_some() && classes.iter().any(|class| class == rest);
        let mut wide: Vec<(String, Vec<String>, Vec<usize>)> = Vec::new();
        for (i, field) in self.fields.iter().enumerate() {
            let Some((Role::Oracles, rest)) = self.columns.wide_role(&field.name) else { continue };
            if field.name == name.trim_end() || is_its_class(rest) {
                continue;
            }
            if field.shape != Shape::Scalar {
                let path = FieldPath { field: i, child: None };
                oracles.push((rest.to_owned(), nested(path, &field.shape, field.name.clone())?));
                continue;
            }
            // A column without a class in its name has answers, or something else, like oracle_version.
            let Some((oracle, class)) = model_and_class(rest, classes) else {
                if is_answer(field) {
                    let path = FieldPath { field: i, child: None };
                    oracles.push((rest.to_owned(), class_name(path, field.name.clone())));
                }
                continue;
            };
            let at = wide.iter().position(|(o, ..)| o == oracle).unwrap_or_else(|| {
                wide.push((oracle.to_owned(), Vec::new(), Vec::new()));
                wide.len() - 1
            });
            wide[at].1.push(class.clone());
            wide[at].2.push(i);
        }
        for (oracle, keys, fields) in wide {
            let prefix = format!("{prefix}{oracle}_");
            self.check_unique(&keys, &prefix)?;
            let group = self.new_group(keys, Location::Wide(fields), prefix);
            oracles.push((oracle, self.in_order_of(group, classes)?));
        }
        oracles.extend(only_model);
        for (i, (oracle, _)) in oracles.iter().enumerate() {
            if oracles[..i].iter().any(|(other, _)| other == oracle) {
                return Err(self.error(format!("model {oracle} is given twice: keep one of its columns")));
            }
        }
        Ok(oracles)
    }

    /// The columns under the prefix of other models that hold numbers of classes, and are not read since the user did not name the prefix.
    pub(super) fn unread_answers(&self, layout: &Layout) -> Vec<String> {
        let answers = Labels::new(&layout.classes);
        let is_class =
            |field: &Field| field.first.as_deref().is_some_and(|first| answers.class(first.trim()).is_some());
        let is_model = |name: &str| {
            let rest = self.columns.wide_role(name).and_then(|(role, rest)| (role == Role::Oracles).then_some(rest));
            rest.is_some_and(|rest| model_and_class(rest, &layout.classes).is_none())
        };
        let used = layout.used();
        let is_unread = |(place, field): &(usize, &Field)| {
            field.shape == Shape::Scalar
                && is_model(&field.name)
                && is_class(field)
                && used.binary_search(place).is_err()
        };
        self.fields.iter().enumerate().filter(is_unread).map(|(_, field)| field.name.clone()).collect()
    }

    /// See [`Layout::possible_answers`]. Arrays have no single texts.
    pub(super) fn possible_answers(&self, layout: &Layout) -> Vec<(usize, String)> {
        // A column that only a filter reads may have answers.
        let used: HashSet<usize> = layout.fields_of_values().collect();
        let is_possible = |(place, field): &(usize, &Field)| {
            let model = self.columns.wide_role(&field.name).filter(|(role, _)| *role == Role::Oracles);
            let is_number = field.first.as_deref().is_some_and(|first| first.trim().parse::<f64>().is_ok());
            field.shape == Shape::Scalar
                && !is_number
                && model.is_some_and(|(_, rest)| model_and_class(rest, &layout.classes).is_none())
                && !used.contains(place)
        };
        let first = |field: &Field| field.first.as_deref().unwrap_or_default().trim().to_owned();
        let fields = self.fields.iter().enumerate().filter(|_| !self.hints.arrays);
        fields.filter(is_possible).map(|(place, field)| (place, first(field))).collect()
    }

    /// The model whose columns are `<prefix><class>`, if the user gave the prefix and every class has such a column: its name is the prefix.
    fn only_model(&self, classes: &[String]) -> Result<Option<(String, ColumnGroup)>> {
        let prefix = self.columns.prefix(Role::Oracles);
        let model = prefix.trim_end_matches(SEPARATORS);
        if !self.columns.named.contains(&"oracles") || model.is_empty() {
            return Ok(None);
        }
        let fields = classes.iter().map(|class| self.scalar(&format!("{prefix}{class}")));
        let Some(fields) = fields.collect::<Result<Option<Vec<usize>>>>()? else { return Ok(None) };
        let group = self.new_group(classes.to_vec(), Location::Wide(fields), prefix.clone());
        Ok(Some((model.to_owned(), group)))
    }

    /// Refuses a prefix given without the separator that ends it: every key would begin with the separator.
    fn check_prefix(&self, prefix: &str, keys: &[String]) -> Result<()> {
        let is_given = self
            .columns
            .named
            .iter()
            .any(|key| Role::from_key(key).is_some_and(|role| self.columns.prefix(role) == prefix));
        let separator = SEPARATORS.into_iter().find(|&c| keys.iter().all(|key| key.starts_with(c)));
        match separator.filter(|_| is_given && !keys.is_empty() && !prefix.ends_with(SEPARATORS)) {
            Some(separator) => Err(self.error(format!(
                "columns {prefix}{} and others: every name behind the prefix {prefix} begins with {separator:?}; give the whole prefix, {prefix}{separator}",
                keys[0]
            ))),
            None => Ok(()),
        }
    }
}

/// Adds the classes that the first row's map leaves out: they are zero there.
fn add_absent_classes(group: &mut ColumnGroup, classes: &[String]) {
    if matches!(group.location, Location::Keyed(_)) {
        let absent: Vec<String> = classes.iter().filter(|class| !group.keys.contains(class)).cloned().collect();
        group.keys.extend(absent);
    }
}
