//! What can stop an experiment.

use std::io;
use std::path::{Path, PathBuf};

/// Why an experiment was not finished. What was finished before stays in the output folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No experiment has that name.
    #[error(
        "unknown experiment {0:?}: use routing, losses, three-way, correlation, cells, labels, rows, forest, oracles, budgets, functions, theory, tracks, numbers or all"
    )]
    Unknown(String),
    /// A setting makes no sense.
    #[error("{0}")]
    Setting(String),
    /// Data sets that are not there, with what to do about it.
    #[error("{0}")]
    MissingData(String),
    /// A data set that is there and cannot be used.
    #[error(transparent)]
    Table(#[from] pointsman_table::Error),
    /// The core refused.
    #[error(transparent)]
    Core(#[from] pointsman::Error),
    /// The boosted trees could not be fitted.
    #[error("the supervised router could not be trained: {0}")]
    Trees(String),
    /// The output folder cannot be used.
    #[error("{}: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A results file is not one.
    #[error("{}: {reason}", path.display())]
    Results {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The monitor said stop.
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
