//! What can be wrong with a router.

use super::COMMAND_FOR_CELLS;

/// Why a router, or a part of one, cannot be made or used for this.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RouterError {
    /// The stored parts of a router contradict each other. This happens to damaged files only, and nobody but their reader would tell the
    /// contradictions apart.
    #[error("{0}")]
    Contradiction(String),
    /// Nodes are no trees, or no trees can be grown.
    #[error("the partition's {0}")]
    Trees(pointsman_trees::Error),
    /// A policy is used with another router than its own, or with a certificate of another router.
    #[error("the policy is of another router: compile it with this one, Router::policy")]
    OtherRouter,
    /// The router has no such cell.
    #[error("no cell {cell}: there are {cells}")]
    NoCell {
        /// The cell.
        cell: usize,
        /// How many there are.
        cells: usize,
    },
    /// Parts that are to be merged are not like the same router.
    #[error("the parts differ in {what}: make every part like the same router, with the same cap")]
    DifferentParts {
        /// What they differ in, as part of the message.
        what: String,
    },
    /// A cap keeps no rows.
    #[error("a cap of 0 rows per cell keeps nothing: give a number from 1")]
    EmptyCap,
    /// A part has rows already.
    #[error("rows were added before the cap: give the cap first")]
    LateCap,
    /// The cells of a forest cannot be certified.
    #[error(
        "a forest's cells were found with the labels that would have to certify them; to get cells that can be certified, run \
         {COMMAND_FOR_CELLS}"
    )]
    NotCertifiable,
    /// The cells of a forest cannot replace the prediction.
    #[error(
        "a forest serves the weak prediction: its cells have no distribution worth serving; to get cells that have, run \
         {COMMAND_FOR_CELLS}"
    )]
    NotServable,
}
