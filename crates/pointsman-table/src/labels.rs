//! From an annotator's label to a class.

use std::collections::HashMap;

use crate::error::listed;
use crate::suggest::did_you_mean;

/// Finds the class a label names.
///
/// A label is a class's name. If there is no class of that name and it is a whole number, it is the
/// class's index, unless the classes are themselves named by whole numbers: then `1` could mean either,
/// and only the name is taken.
#[derive(Debug)]
pub(crate) struct Labels {
    by_name: HashMap<String, usize>,
    indexed: bool,
}

impl Labels {
    pub(crate) fn new(classes: &[String]) -> Self {
        Self {
            by_name: classes.iter().enumerate().map(|(i, class)| (class.clone(), i)).collect(),
            indexed: !classes.iter().all(|class| class.parse::<i64>().is_ok()),
        }
    }

    pub(crate) fn class(&self, label: &str) -> Option<usize> {
        if let Some(&class) = self.by_name.get(label) {
            return Some(class);
        }
        label.parse::<usize>().ok().filter(|&i| self.indexed && i < self.by_name.len())
    }
}

/// What is said of a label that is no class; `shown` is the label as the message shows it.
pub(crate) fn not_a_class(shown: &str, label: &str, classes: &[String]) -> String {
    let meant = did_you_mean(label, classes.iter().map(String::as_str));
    format!("label {shown} is not among the classes ({}){meant}", listed(classes))
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
