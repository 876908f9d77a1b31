//! Single values of a file.

use std::borrow::Cow;

use crate::error::{Parsed, Result, RowAt};

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
}
