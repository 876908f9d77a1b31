//! The classes that annotators' labels name.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Parsed, listed, shown};
use crate::suggest::did_you_mean;

/// Finds the class a label names.
///
/// A label is the name of a class. A whole number that is not a name is the index of a class, unless all classes are named by whole
/// numbers: then `1` could mean either, and only names count.
#[derive(Debug)]
pub(crate) struct Labels {
    classes: Vec<String>,
    by_name: HashMap<String, usize>,
    /// The class of each name in lower case; `None` if several classes have it.
    by_lower_case: HashMap<String, Option<usize>>,
    allows_index: bool,
    /// Whether an annotator's label was the index of a class.
    has_indices: AtomicBool,
}

impl Labels {
    pub(crate) fn new(classes: &[String]) -> Self {
        let mut by_lower_case = HashMap::new();
        for (i, class) in classes.iter().enumerate() {
            by_lower_case.entry(lower_case(class)).and_modify(|class| *class = None).or_insert(Some(i));
        }
        Self {
            by_lower_case,
            classes: classes.to_vec(),
            by_name: classes.iter().enumerate().map(|(i, class)| (class.clone(), i)).collect(),
            allows_index: !classes.iter().all(|class| class.parse::<i64>().is_ok()),
            has_indices: AtomicBool::new(false),
        }
    }

    pub(crate) fn class(&self, label: &str) -> Option<usize> {
        if let Some(&class) = self.by_name.get(label) {
            return Some(class);
        }
        label.parse::<usize>().ok().filter(|&i| self.allows_index && i < self.classes.len())
    }

    /// The class of an annotator's label. That a label was the index of a class is remembered, since people may count from one.
    pub(crate) fn class_of_label(&self, label: &str) -> Option<usize> {
        let class = self.class(label)?;
        if self.classes[class] != label {
            self.has_indices.store(true, Ordering::Relaxed);
        }
        Some(class)
    }

    /// Whether a label was the index of a class.
    pub(crate) fn have_indices(&self) -> bool {
        self.has_indices.load(Ordering::Relaxed)
    }

    /// Whether a label would be the index of the last class if indices began with one.
    pub(crate) fn is_last_from_one(&self, label: &str) -> bool {
        self.allows_index && label.parse::<usize>().is_ok_and(|index| index == self.classes.len())
    }

    /// Whether a text is the name of a class and no number, which could be anything else.
    pub(crate) fn is_name_in_words(&self, text: &str) -> bool {
        self.by_name.contains_key(text) && text.parse::<f64>().is_err()
    }

    /// The class whose name differs from a label in capitals and surrounding spaces only, if it is the only one.
    pub(crate) fn class_but_for_case(&self, label: &str) -> Option<usize> {
        self.by_lower_case.get(&lower_case(label)).copied().flatten()
    }

    /// The names of the classes.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.classes.iter().map(String::as_str)
    }

    /// The name of a class.
    pub(crate) fn name(&self, class: usize) -> &str {
        &self.classes[class]
    }

    /// The message about a label that is not a class; `shown` is the label as the message shows it.
    pub(crate) fn refusal(&self, shown: &str, label: &str) -> String {
        self.refusal_as("label", shown, label)
    }

    /// Appends the value of each class if another model's answer is this class: one for the class, zero for the others.
    pub(crate) fn append_answer(&self, answer: &str, out: &mut Vec<f64>) -> Parsed<()> {
        let answer = answer.trim();
        let class = self.class(answer).ok_or_else(|| self.refusal_as("answer", &shown(answer), answer))?;
        out.extend((0..self.classes.len()).map(|other| if other == class { 1.0 } else { 0.0 }));
        Ok(())
    }

    /// Counts one label per text, up to the first `limit`; empty texts are no labels. A refusal has the place of the text.
    pub(crate) fn append_counts<'a>(
        &self,
        texts: impl Iterator<Item = Cow<'a, str>>,
        limit: usize,
        out: &mut Vec<u32>,
    ) -> std::result::Result<(), (usize, String)> {
        let start = out.len();
        out.resize(start + self.classes.len(), 0);
        let given = texts.enumerate().filter(|(_, text)| !text.trim().is_empty());
        for (i, (place, text)) in given.enumerate() {
            let label = text.trim();
            let class = self.class_of_label(label).ok_or_else(|| (place, self.refusal(&shown(label), label)))?;
            out[start + class] += u32::from(i < limit);
        }
        Ok(())
    }

    fn refusal_as(&self, what: &str, shown: &str, label: &str) -> String {
        let meant = did_you_mean(label, self.classes.iter().map(String::as_str));
        let is_index = self.allows_index && label.parse::<usize>().is_ok();
        let from_zero = if is_index { ", whose numbers count from 0" } else { "" };
        format!("{what} {shown} is not among the classes ({}){from_zero}{meant}", listed(&self.classes))
    }
}

pub(crate) fn lower_case(name: &str) -> String {
    name.trim().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(classes: &[&str]) -> Labels {
        Labels::new(&classes.iter().map(|&c| c.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn capitals_and_spaces_are_overlooked_if_one_class_is_meant() {
        let animals = labels(&["cat", "Big Dog", "US", "us"]);
        assert_eq!(animals.class_but_for_case(" CAT"), Some(0));
        assert_eq!(animals.class_but_for_case("big dog"), Some(1));
        assert_eq!(animals.class_but_for_case("Us"), None);
        assert_eq!(animals.class_but_for_case("bigdog"), None);
    }

    #[test]
    fn names_come_before_indices() {
        let animals = labels(&["cat", "dog"]);
        assert_eq!(animals.class("dog"), Some(1));
        assert_eq!(animals.class("0"), Some(0));
        assert_eq!(animals.class("2"), None);
        assert!(animals.is_last_from_one("2") && !animals.is_last_from_one("3"));
        assert!(animals.class_of_label("dog").is_some() && !animals.have_indices());
        assert!(animals.class_of_label("0").is_some() && animals.have_indices());
        let stars = labels(&["1", "2", "3"]);
        assert_eq!(stars.class("1"), Some(0));
        assert_eq!(stars.class("0"), None);
        assert!(stars.class_of_label("1").is_some() && !stars.have_indices() && !stars.is_last_from_one("3"));
    }
}
