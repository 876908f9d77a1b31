//! The columns of annotations.

use crate::error::{Error, Parsed, Result, listed};
use crate::options::Columns;

/// The column of ids if it has no other name.
const ID: &str = "id";

/// The names of the columns, as the file has them.
#[derive(Debug, Default)]
pub(super) struct AnnotationColumns {
    pub(super) id: String,
    pub(super) label: String,
    pub(super) annotator: Option<String>,
    pub(super) date: Option<String>,
    /// Those whose names differ in case from what was asked for, with the key of [`Columns`].
    pub(super) other_case: Vec<(&'static str, String)>,
    /// An unused column that seems to name the annotators.
    pub(super) unused_annotator: Option<String>,
}

/// The places of the columns in a record.
pub(super) struct Places {
    pub(super) id: usize,
    pub(super) label: usize,
    pub(super) annotator: Option<usize>,
    pub(super) date: Option<usize>,
}

impl AnnotationColumns {
    /// Finds the columns: by name, or else the one whose name differs in case only.
    pub(super) fn find(columns: &Columns, names: &[String]) -> Parsed<Self> {
        let mut other_case = Vec::new();
        let mut find = |key: &'static str, name: &str| {
            if names.iter().any(|other| other == name) {
                return Some(name.to_owned());
            }
            let mut alike = same_but_for_case(names, name);
            let found = alike.next().filter(|_| alike.next().is_none())?;
            other_case.push((key, found.clone()));
            Some(found.clone())
        };
        let missing = |key: &str, name: &str| missing(columns, key, name, names);
        // The column of ids is called as in the table, or `id` if only that is there.
        let has_own = names.contains(&columns.id) || !names.iter().any(|name| name == ID);
        let own = if has_own { find("id", &columns.id) } else { None };
        let id = own.or_else(|| find("id", ID)).ok_or_else(|| missing("id", &columns.id))?;
        let label = find("label", &columns.label).ok_or_else(|| missing("label", &columns.label))?;
        let annotator = find("annotator", &columns.annotator);
        if annotator.is_none() && columns.named.contains(&"annotator") {
            return Err(missing("annotator", &columns.annotator));
        }
        let date = match &columns.date {
            Some(name) => Some(find("date", name).ok_or_else(|| missing("date", name))?),
            None => None,
        };
        let is_free = |name: &&String| **name != id && **name != label && Some(*name) != date.as_ref();
        let unused_annotator = match annotator {
            None => names.iter().filter(is_free).find(|name| seems_to_name_annotators(name)).cloned(),
            Some(_) => None,
        };
        Ok(Self { id, label, annotator, date, other_case, unused_annotator })
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
        Ok(Places {
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
    format!(
        "no column {name}{which}: annotations need {} and {}, one row per label; columns found: {}; if it goes by another name, \
         give it: --columns {key}=NAME, in Python columns={{'{key}': NAME}}{delimiter}",
        columns.id,
        columns.label,
        listed(names)
    )
}

/// Whether a column's name is one that annotators' names often go by.
fn seems_to_name_annotators(column: &str) -> bool {
    const WORDS: [&str; 9] =
        ["annotator", "worker", "rater", "labeler", "labeller", "labelled by", "coder", "reviewer", "user"];
    let column = column.to_lowercase().replace(['_', '-'], " ");
    WORDS.iter().any(|word| column.contains(word))
}
