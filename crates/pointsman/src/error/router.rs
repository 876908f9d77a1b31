//! Errors of routers.

use super::COMMAND_FOR_CELLS;

/// Why a router, or a part of one, cannot be made or used for this purpose.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RouterError {
    /// The stored parts of a router contradict each other, which happens only in damaged files; the text says how.
    #[error("{0}")]
    Contradiction(String),
    /// The nodes do not form trees, or trees cannot be grown.
    #[error("the partition's {0}")]
    Trees(pointsman_trees::Error),
    /// A policy is used with a router, or with the certificate of a router, for which it was not compiled.
    #[error("the policy is of another router: compile it with this one")]
    OtherRouter,
    /// The router has no such cell.
    #[error("no cell {cell}: there are {cells}")]
    NoCell {
        /// The cell.
        cell: usize,
        /// The number of cells.
        cells: usize,
    },
    /// Parts to be merged were made for different routers or with different caps.
    #[error("the parts differ in {what}: make every part like the same router, with the same cap")]
    DifferentParts {
        /// The difference, as part of the message.
        what: String,
    },
    /// A cap is zero.
    #[error("a cap of 0 rows per cell keeps nothing: give a number from 1")]
    EmptyCap,
    /// A cap was given after rows were added.
    #[error("rows were added before the cap: give the cap first")]
    LateCap,
    /// The cells of a forest cannot be certified.
    #[error(
        "a forest's cells were found with the labels that would have to certify them; to get cells that can be certified, run \
         {COMMAND_FOR_CELLS}"
    )]
    NotCertifiable,
    /// The cells of a forest have no distribution that could be served instead of the prediction.
    #[error(
        "a forest serves the weak prediction: its cells have no distribution worth serving; to get cells that have, run \
         {COMMAND_FOR_CELLS}"
    )]
    NotServable,
}
