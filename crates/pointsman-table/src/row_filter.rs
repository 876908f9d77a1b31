//! The filters that rows must pass.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::cell::Cell;
use crate::error::{Error, Result, RowAt, listed};
use crate::options::Filter;

/// Keeps the rows that pass every filter. As long as no row has passed, it collects the values it sees, for the error message.
#[derive(Debug)]
pub(crate) struct RowFilter {
    filters: Vec<Filter>,
    /// Values of each filter's column.
    seen: Vec<BTreeSet<String>>,
    /// How many rows each filter left out, of those that pass the filters before it.
    left_out: Vec<u64>,
    has_kept_rows: bool,
}

impl RowFilter {
    pub(crate) fn new(filters: &[Filter]) -> Self {
        let (seen, left_out) = (vec![BTreeSet::new(); filters.len()], vec![0; filters.len()]);
        Self { filters: filters.to_vec(), seen, left_out, has_kept_rows: false }
    }

    /// Whether there are no filters.
    pub(crate) fn keeps_all(&self) -> bool {
        self.filters.is_empty()
    }

    /// Whether any row has passed so far.
    pub(crate) fn has_kept_rows(&self) -> bool {
        self.has_kept_rows
    }

    /// The filters that keep just the rows with a value, by their places, each with the number of rows that it left out.
    pub(crate) fn without_value(&self) -> impl Iterator<Item = (usize, &Filter, u64)> {
        let all = self.filters.iter().zip(&self.left_out).enumerate();
        all.filter(|(_, (filter, _))| filter.keeps_any_value()).map(|(place, (filter, rows))| (place, filter, *rows))
    }

    /// Whether the row passes; `cell(i)` is its value under the `i`th filter. A filter sees only rows that pass those before it, so that an
    /// earlier one can leave out values that a later one refuses.
    pub(crate) fn keeps<'a>(&mut self, at: RowAt<'_>, mut cell: impl FnMut(usize) -> Result<Cell<'a>>) -> Result<bool> {
        /// One more than a message lists.
        const MAX_VALUES: usize = 21;
        let mut keep = true;
        for (i, filter) in self.filters.iter().enumerate() {
            let cell = cell(i)?;
            let passes = keep && filter.keeps(&cell).map_err(|why| at.value(filter.column(), why))?;
            self.left_out[i] += u64::from(keep && !passes);
            keep = passes;
            if !self.has_kept_rows && self.seen[i].len() < MAX_VALUES {
                self.seen[i].insert(cell.text().map_or_else(String::new, Cow::into_owned));
            } else if !keep {
                break;
            }
        }
        self.has_kept_rows |= keep;
        Ok(keep)
    }

    /// The error if no row was kept.
    pub(crate) fn no_rows(&self, file: &str) -> Error {
        let filters: Vec<String> = self.filters.iter().map(ToString::to_string).collect();
        let values: Vec<String> = self
            .filters
            .iter()
            .zip(&self.seen)
            .map(|(filter, seen)| format!("{} has the values {}", filter.column(), listed(seen)))
            .collect();
        Error::file(file, format!("no row passes {}: {}", filters.join(" and "), values.join("; ")))
    }
}
