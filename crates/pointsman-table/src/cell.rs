//! Single values of a file, and the filters that rows must pass.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::error::{Error, Parsed, Result, RowAt, listed};
use crate::options::Filter;

/// One value of a scalar column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Real(f64),
    Text(Cow<'a, str>),
}

impl Cell<'_> {
    /// A whole number; as text if it does not fit 64 bits.
    pub(crate) fn from_integer(value: i128) -> Self {
        i64::try_from(value).map_or_else(|_| Cell::Text(Cow::Owned(value.to_string())), Cell::Int)
    }

    /// The value as text; `None` if it is missing.
    pub(crate) fn text(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Null => None,
            Self::Bool(b) => Some(Cow::Borrowed(if *b { "true" } else { "false" })),
            Self::Int(i) => Some(Cow::Owned(i.to_string())),
            Self::Real(x) => Some(Cow::Owned(x.to_string())),
            Self::Text(text) => Some(Cow::Borrowed(text)),
        }
    }

    /// The value as an id, which must not be empty.
    pub(crate) fn id(&self) -> Parsed<Cow<'_, str>> {
        match self.text() {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err("no id: every row needs one, or none may have it".to_owned()),
        }
    }

    /// The value as an id, of a row and column of a file.
    pub(crate) fn id_at(&self, at: RowAt<'_>, column: &str) -> Result<String> {
        self.id().map(Cow::into_owned).map_err(|why| at.value(column, why))
    }

    fn passes(&self, filter: &Filter) -> bool {
        /// The largest whole number up to which a double is exact.
        const MAX_EXACT: u64 = 1 << 53;
        match self {
            Self::Null => false,
            Self::Bool(b) => {
                filter.value().eq_ignore_ascii_case(if *b { "true" } else { "false" })
                    || filter.number() == Some(f64::from(u8::from(*b)))
            }
            Self::Int(i) if i.unsigned_abs() <= MAX_EXACT => filter.number() == Some(*i as f64),
            Self::Int(i) => filter.value() == i.to_string(),
            Self::Real(x) => filter.number() == Some(*x) || x.is_nan() && filter.value().eq_ignore_ascii_case("nan"),
            Self::Text(text) => filter.keeps(text),
        }
    }
}

/// Keeps the rows that pass every filter. As long as no row has passed, it collects the values it sees, for the error message.
#[derive(Debug)]
pub(crate) struct RowFilter {
    filters: Vec<Filter>,
    /// Values of each filter's column.
    seen: Vec<BTreeSet<String>>,
    has_kept_rows: bool,
}

impl RowFilter {
    pub(crate) fn new(filters: &[Filter]) -> Self {
        Self { filters: filters.to_vec(), seen: vec![BTreeSet::new(); filters.len()], has_kept_rows: false }
    }

    /// Whether there are no filters.
    pub(crate) fn keeps_all(&self) -> bool {
        self.filters.is_empty()
    }

    /// Whether any row has passed so far.
    pub(crate) fn has_kept_rows(&self) -> bool {
        self.has_kept_rows
    }

    /// Whether the row passes; `cell(i)` is its value under the `i`th filter.
    pub(crate) fn keeps<'a>(&mut self, mut cell: impl FnMut(usize) -> Result<Cell<'a>>) -> Result<bool> {
        /// One more than a message lists.
        const MAX_VALUES: usize = 21;
        let mut keep = true;
        for (i, filter) in self.filters.iter().enumerate() {
            let cell = cell(i)?;
            keep &= cell.passes(filter);
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
