//! The classes that annotators' labels name.

use std::collections::HashMap;

use crate::error::listed;
use crate::suggest::did_you_mean;

/// Finds the class a label names.
///
/// A label is the name of a class. A whole number that is not a name is the index of a class, unless all classes are named by whole
/// numbers: then `1` could mean either, and only names count.
#[derive(Debug)]
pub(crate) struct Labels {
    classes: Vec<String>,
    by_name: HashMap<String, usize>,
    allows_index: bool,
}

impl Labels {
    pub(crate) fn new(classes: &[String]) -> Self {
        Self {
            classes: classes.to_vec(),
            by_name: classes.iter().enumerate().map(|(i, class)| (class.clone(), i)).collect(),
            allows_index: !classes.iter().all(|class| class.parse::<i64>().is_ok()),
        }
    }

    pub(crate) fn class(&self, label: &str) -> Option<usize> {
        if let Some(&class) = self.by_name.get(label) {
            return Some(class);
        }
        label.parse::<usize>().ok().filter(|&i| self.allows_index && i < self.classes.len())
    }

    /// The message about a label that is not a class; `shown` is the label as the message shows it.
    pub(crate) fn refusal(&self, shown: &str, label: &str) -> String {
        let meant = did_you_mean(label, self.classes.iter().map(String::as_str));
        format!("label {shown} is not among the classes ({}){meant}", listed(&self.classes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(classes: &[&str]) -> Labels {
        Labels::new(&classes.iter().map(|&c| c.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn names_come_before_indices() {
        let animals = labels(&["cat", "dog"]);
        assert_eq!(animals.class("dog"), Some(1));
        assert_eq!(animals.class("0"), Some(0));
        assert_eq!(animals.class("2"), None);
        let stars = labels(&["1", "2", "3"]);
        assert_eq!(stars.class("1"), Some(0));
        assert_eq!(stars.class("0"), None);
    }
}
