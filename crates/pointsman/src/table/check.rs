//! Checks of the names and shapes of a table's columns.

use std::collections::HashSet;

use super::MAX_CLASSES;
use crate::error::{Result, TableError};

/// Checks that there are at least two classes with distinct names.
pub(crate) fn check_classes(classes: &[String]) -> Result<()> {
    if !(2..=MAX_CLASSES).contains(&classes.len()) {
        return Err(TableError::ClassCount { classes: classes.len(), most: MAX_CLASSES }.into());
    }
    check_names("class", classes)
}

/// Checks that names are neither empty nor repeated.
pub(super) fn check_names(what: &'static str, names: &[String]) -> Result<()> {
    let mut seen = HashSet::new();
    for name in names {
        if name.is_empty() {
            return Err(TableError::Unnamed { what }.into());
        }
        if !seen.insert(name) {
            return Err(TableError::RepeatedName { what, name: name.clone() }.into());
        }
    }
    Ok(())
}

/// Checks that a number of values fills whole rows.
pub(super) fn check_whole_rows(columns: &str, values: usize, width: usize) -> Result<()> {
    if width == 0 && values == 0 || width != 0 && values.is_multiple_of(width) {
        Ok(())
    } else {
        Err(TableError::IncompleteRow { columns: columns.to_owned(), values, width }.into())
    }
}
