//! The columns of annotations.

use crate::error::{Error, Parsed, Result, listed};
use crate::options::Columns;
use crate::suggest::{seems_to_be_id, seems_to_name_annotators};

/// The column of ids if it has no other name.
const ID: &str = "id";

/// The names of the columns, as the file has them.
#[derive(Debug, Default)]
pub(super) struct AnnotationColumns {
    pub(super) id: String,
    pub(super) label: String,
    pub(super) annotator: Option<String>,
    pub(super) date: Option<String>,
    /// Those whose names differ from what was asked for, in case or in being the only one like an id, with the key of [`Columns`].
    pub(super) taken: Vec<(&'static str, String)>,
    /// An unused column that seems to name the annotators.
    pub(super) unused_annotator: Option<String>,
    /// An unused column whose first value is a date or time.
    pub(super) unused_date: Option<String>,
}

/// The places of the columns in a record.
pub(super) struct Places {
    pub(super) id: usize,
    pub(super) label: usize,
    pub(super) annotator: Option<usize>,
    pub(super) date: Option<usize>,
    /// Columns without a use, one of which may have the times of the labels if no column of dates was named.
    pub(super) unused: Vec<usize>,
}

impl AnnotationColumns {
    /// Finds the columns: by name, or else the one whose name differs in case only; for ids, also the only one like an id.
    pub(super) fn find(columns: &Columns, names: &[String]) -> Parsed<Self> {
        let mut taken = Vec::new();
        let mut find = |key: &'static str, name: &str| {
            if names.iter().any(|other| other == name) {
                return Some(name.to_owned());
            }
            let mut alike = same_but_for_case(names, name);
            let found = alike.next().filter(|_| alike.next().is_none())?;
            taken.push((key, found.clone()));
            Some(found.clone())
        };
        let missing = |key: &str, name: &str| missing(columns, key, name, names);
        // The column of ids is called as in the table, or `id` if only that is there.
        let has_own = names.contains(&columns.id) || !names.iter().any(|name| name == ID);
        let id = match &columns.item {
            Some(item) => Some(find("item", item).ok_or_else(|| missing("item", item))?),
            None if has_own => find("id", &columns.id).or_else(|| find("id", ID)),
            None => find("id", ID),
        };
        let label = find("label", &columns.label);
        let annotator = find("annotator", &columns.annotator);
        let date = columns.date.as_ref().map(|name| find("date", name).ok_or(name));
        let id = match id {
            Some(id) => id,
            None => {
                let others = [label.as_ref(), annotator.as_ref(), date.as_ref().and_then(|date| date.as_ref().ok())];
                let found = only_id(names, &others).ok_or_else(|| missing("id", &columns.id))?;
                taken.insert(0, ("id", found.clone()));
                found.clone()
            }
        };
        let label = label.ok_or_else(|| missing("label", &columns.label))?;
        if annotator.is_none() && columns.named.contains(&"annotator") {
            return Err(missing("annotator", &columns.annotator));
        }
        let date = date.transpose().map_err(|name| missing("date", name))?;
        let is_free = |name: &&String| **name != id && **name != label && Some(*name) != date.as_ref();
        let unused_annotator = match annotator {
            None => names.iter().filter(is_free).find(|name| seems_to_name_annotators(name)).cloned(),
            Some(_) => None,
        };
        Ok(Self { id, label, annotator, date, taken, unused_annotator, unused_date: None })
    }

    /// A column that is given twice, if there is one.
    pub(super) fn given_twice<'a>(&self, names: impl Iterator<Item = &'a String> + Clone) -> Option<&String> {
        let all = [Some(&self.id), Some(&self.label), self.annotator.as_ref(), self.date.as_ref()];
        all.into_iter().flatten().find(|name| names.clone().filter(|other| other == name).nth(1).is_some())
    }

    /// The places of the columns among `names`.
    pub(super) fn places(&self, file: &str, names: &[String]) -> Result<Places> {
        if let Some(twice) = self.given_twice(names.iter()) {
            return Err(Error::file(file, format!("column {twice} is given twice: rename or drop one of them")));
        }
        let place = |name: &String| names.iter().position(|other| other == name);
        let need = |name: &String| place(name).ok_or_else(|| Error::file(file, format!("no column {name}")));
        let used = [Some(&self.id), Some(&self.label), self.annotator.as_ref(), self.date.as_ref()];
        let is_unused = |place: &usize| self.date.is_none() && !used.contains(&Some(&names[*place]));
        Ok(Places {
            unused: (0..names.len()).filter(is_unused).collect(),
            id: need(&self.id)?,
            label: need(&self.label)?,
            annotator: self.annotator.as_ref().and_then(place),
            date: self.date.as_ref().and_then(place),
        })
    }
}

fn same_but_for_case<'a>(names: &'a [String], name: &str) -> impl Iterator<Item = &'a String> {
    let wanted = name.to_lowercase();
    names.iter().filter(move |other| other.to_lowercase() == wanted)
}

/// The only column whose name is like that of ids, besides those that hold something else.
fn only_id<'a>(names: &'a [String], others: &[Option<&String>]) -> Option<&'a String> {
    let mut alike = names.iter().filter(|name| seems_to_be_id(name) && !others.contains(&Some(name)));
    alike.next().filter(|_| alike.next().is_none())
}

/// The message about a column that is not there.
fn missing(columns: &Columns, key: &str, name: &str, names: &[String]) -> String {
    let delimiter = match names {
        [_] => "; if something else than commas separates the columns, give it: --delimiter, in Python delimiter=",
        _ => "",
    };
    let alike: Vec<&String> = same_but_for_case(names, name).take(2).collect();
    let which = match alike.as_slice() {
        [one, two] => format!(" ({one} and {two} differ in case only: name the one that is meant)"),
        _ => String::new(),
    };
    if ["date", "annotator"].contains(&key) {
        return format!(
            "no column {name}{which}, which {key}={name} names; columns found: {}; give the name of the column: --columns {key}=NAME, in \
             Python columns={{'{key}': NAME}}{delimiter}",
            listed(names)
        );
    }
    // A name of its own does not change that of the table.
    let key = if key == "id" { "item" } else { key };
    format!(
        "no column {name}{which}: annotations need {} and {}, one row per label; columns found: {}; if it goes by another name, \
         give it: --columns {key}=NAME, in Python columns={{'{key}': NAME}}{delimiter}",
        columns.id,
        columns.label,
        listed(names)
    )
}
