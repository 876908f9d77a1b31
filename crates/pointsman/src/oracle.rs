//! Oracles: whom a query may be routed to, and what their answers cost.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// An oracle whose expected loss is a function of the true label distribution.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Oracle {
    /// Knows the true label distribution: its loss is the irreducible one.
    Bayes,
}

impl Oracle {
    /// The oracle that knows the true label distribution.
    #[must_use]
    pub fn bayes() -> Self {
        Self::Bayes
    }
}

impl FromStr for Oracle {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "bayes" => Ok(Self::Bayes),
            _ => Err(Error::Task(format!("unknown kind of oracle {text:?}: use bayes"))),
        }
    }
}

impl fmt::Display for Oracle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bayes => f.write_str("bayes"),
        }
    }
}
