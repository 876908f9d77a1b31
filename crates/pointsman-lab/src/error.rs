//! The error type of this crate.

use std::io;
use std::path::{Path, PathBuf};

/// Why an experiment was not finished. Parts finished before the error stay in the output folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No experiment has that name.
    #[error(
        "unknown experiment {0:?}: use routing, losses, three-way, correlation, cells, labels, rows, forest, oracles, budgets, functions, theory, tracks, numbers or all"
    )]
    Unknown(String),
    /// A setting is invalid.
    #[error("{0}")]
    Setting(String),
    /// Data sets are missing; the message says where to get them.
    #[error("{0}")]
    MissingData(String),
    /// A data set could not be read.
    #[error(transparent)]
    Table(#[from] pointsman_table::Error),
    /// The core crate returned an error.
    #[error(transparent)]
    Core(#[from] pointsman::Error),
    /// The boosted trees could not be fitted.
    #[error("the supervised router could not be trained: {0}")]
    Trees(String),
    /// The output folder cannot be read or written.
    #[error("{}: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// A results file is malformed.
    #[error("{}: {reason}", path.display())]
    Results {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The monitor stopped the run.
    #[error("interrupted; what was finished is kept: run the same command again to continue")]
    Interrupted,
}

/// The result of a fallible operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn folder(path: &Path, source: io::Error) -> Self {
        Self::Folder { path: path.to_owned(), source }
    }

    pub(crate) fn results(path: &Path, reason: impl Into<String>) -> Self {
        Self::Results { path: path.to_owned(), reason: reason.into() }
    }
}
