//! Single values: what filters look at, and what ids and labels are made of.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::error::{Error, Result, listed};
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
    /// The value as text; nothing if there is none.
    pub(crate) fn text(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Null => None,
            Self::Bool(b) => Some(Cow::Borrowed(if *b { "true" } else { "false" })),
            Self::Int(i) => Some(Cow::Owned(i.to_string())),
            Self::Real(x) => Some(Cow::Owned(x.to_string())),
            Self::Text(text) => Some(Cow::Borrowed(text)),
        }
    }

    /// An id, which must be there.
    pub(crate) fn id(&self) -> std::result::Result<Cow<'_, str>, String> {
        match self.text() {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err("no id: every row needs one, or none may have it".to_owned()),
        }
    }

    fn passes(&self, filter: &Filter) -> bool {
        // Doubles tell whole numbers apart up to here.
        const EXACT: u64 = 1 << 53;
        match self {
            Self::Null => false,
            Self::Bool(b) => {
                filter.value().eq_ignore_ascii_case(if *b { "true" } else { "false" })
                    || filter.number() == Some(f64::from(u8::from(*b)))
            }
            Self::Int(i) if i.unsigned_abs() <= EXACT => filter.number() == Some(*i as f64),
            Self::Int(i) => filter.value() == i.to_string(),
            Self::Real(x) => filter.number() == Some(*x) || x.is_nan() && filter.value().eq_ignore_ascii_case("nan"),
            Self::Text(text) => filter.keeps(text),
        }
    }
}

/// Lets through the rows that pass every filter, and remembers what it saw while it let none through.
#[derive(Debug)]
pub(crate) struct Gate {
    filters: Vec<Filter>,
    seen: Vec<BTreeSet<String>>,
    kept: bool,
}

impl Gate {
    pub(crate) fn new(filters: &[Filter]) -> Self {
        Self { filters: filters.to_vec(), seen: vec![BTreeSet::new(); filters.len()], kept: false }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.filters.is_empty()
    }

    /// Whether any row has passed so far.
    pub(crate) fn has_kept(&self) -> bool {
        self.kept
    }

    /// Whether the row passes; `cell(i)` is its value under the `i`th filter.
    pub(crate) fn keeps<'a>(&mut self, mut cell: impl FnMut(usize) -> Result<Cell<'a>>) -> Result<bool> {
        const MOST: usize = 21;
        let mut keep = true;
        for (i, filter) in self.filters.iter().enumerate() {
            let cell = cell(i)?;
            keep &= cell.passes(filter);
            if !self.kept && self.seen[i].len() < MOST {
                self.seen[i].insert(cell.text().map_or_else(String::new, Cow::into_owned));
            } else if !keep {
                break;
            }
        }
        self.kept |= keep;
        Ok(keep)
    }

    /// Why no row was kept.
    pub(crate) fn nothing(&self, file: &str) -> Error {
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
