//! Errors of clouds and distances.

use crate::MAX_POINTS;

/// Why a cloud is invalid or W1 cannot be computed. Rows are counted from zero, in the original order.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The numbers and weights are not those of at least one point.
    #[error(
        "{numbers} numbers and {weights} weights are no cloud of points in {dim} dimensions: give at least one point, {dim} numbers \
         for each, and one weight for each"
    )]
    Shape {
        /// Numbers per point.
        dim: usize,
        /// Numbers given.
        numbers: usize,
        /// Weights given.
        weights: usize,
    },
    /// A coordinate is not a finite number of at most [`Cloud::MAX_COORDINATE`](crate::Cloud::MAX_COORDINATE) in size.
    #[error("row {row}, coordinate {coordinate}: {value} is not a finite number of moderate size")]
    Coordinate {
        /// The point's row.
        row: usize,
        /// Which of its numbers.
        coordinate: usize,
        /// The number.
        value: f64,
    },
    /// A weight is not a positive finite number.
    #[error("row {row}: {value} is not a weight: give a positive finite number")]
    Weight {
        /// The point's row.
        row: usize,
        /// The weight.
        value: f64,
    },
    /// Two clouds have points of different dimensions.
    #[error("clouds in {first} and {second} dimensions cannot be compared")]
    Dimensions {
        /// Numbers per point of the first cloud.
        first: usize,
        /// Numbers per point of the second cloud.
        second: usize,
    },
    /// The parts do not divide the items of the pool, or one of the two is empty.
    #[error("{parts} parts for {items} items do not make two parts with an item each")]
    Parts {
        /// Items of the pool.
        items: usize,
        /// Parts given.
        parts: usize,
    },
    /// More than [`MAX_POINTS`] distinct points have mass to move.
    #[error("mass would move between {points} distinct points: at most {MAX_POINTS} are possible; subsample")]
    TooManyPoints {
        /// The number of points.
        points: usize,
    },
}

/// The result of a fallible operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;
