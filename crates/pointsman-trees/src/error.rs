//! Errors of trees and training sets.

use crate::trees::{MAX_DEPTH, MAX_INPUTS};

/// Why nodes are not valid trees, or trees cannot be grown on a training set.
///
/// Messages begin with the word "trees" and can follow any possessive: "the partition's trees have a node with two parents".
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There are more nodes than can be numbered.
    #[error("trees are too large")]
    TooManyNodes,
    /// There are no inputs, or the roots are not the first nodes of one tree after the other.
    #[error("trees do not begin where they should")]
    Roots,
    /// There are more inputs than can be numbered.
    #[error("trees have {inputs} inputs: at most {MAX_INPUTS} are possible")]
    TooManyInputs {
        /// The number of inputs.
        inputs: usize,
    },
    /// A split uses an input that does not exist.
    #[error("trees ask for an input that does not exist")]
    NoSuchInput {
        /// The input.
        input: u32,
    },
    /// A threshold is infinite or not a number.
    #[error("trees have a threshold that is not finite")]
    Threshold {
        /// The threshold.
        threshold: f64,
    },
    /// One input has more distinct thresholds than can be numbered.
    #[error("trees have too many thresholds of one input")]
    TooManyThresholds {
        /// The input.
        input: usize,
    },
    /// No split leads to a node.
    #[error("trees have a node that no question leads to")]
    Orphan {
        /// The node.
        node: usize,
    },
    /// A split is below the deepest level allowed.
    #[error("trees are deeper than {MAX_DEPTH}")]
    TooDeep,
    /// A child is outside its tree, or not after its parent.
    #[error("trees have a child outside its tree or before its parent")]
    Child {
        /// The parent.
        node: usize,
    },
    /// The share of rows per bootstrap sample is not a probability.
    #[error("trees grown on the share {share} of the rows: it must be above 0 and at most 1")]
    Share {
        /// The share.
        share: f64,
    },
    /// Two splits lead to the same node.
    #[error("trees have a node with two parents")]
    TwoParents {
        /// The node.
        node: usize,
    },
    /// The inputs, targets, weights and keys of a training set are not those of the same rows.
    #[error(
        "trees cannot be grown: {inputs} inputs, {targets} rows of targets, {weights} weights and {keys} keys do not fit"
    )]
    Shape {
        /// Numbers of all rows together.
        inputs: usize,
        /// Rows of targets.
        targets: usize,
        /// Weights.
        weights: usize,
        /// Keys.
        keys: usize,
    },
    /// A target is not finite, or a weight not a positive finite number.
    #[error(
        "trees cannot be grown on row {row}: a target or the weight is not a finite number, or the weight is not positive"
    )]
    Row {
        /// The row.
        row: usize,
    },
}

/// The result of a fallible operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;
