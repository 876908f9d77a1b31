//! Exact Wasserstein distance W1 between weighted clouds of points.
//!
//! A [`Cloud`] is a discrete distribution on ℝᵈ: points with positive weights. Between two of them
//!
//! W1(A, B) = min over couplings π of A and B of E_π‖a − b‖₁,
//!
//! the smallest mean distance, in the ℓ1 norm, by which the mass of A can be moved onto that of B.
//!
//! ```
//! use pointsman_transport::{Cloud, w1};
//!
//! let a = Cloud::uniform(2, &[0.0, 0.0, 1.0, 0.0])?;
//! let b = Cloud::new(2, &[0.0, 0.0, 0.0, 3.0], &[3.0, 1.0])?;
//! // A quarter of the mass moves from (1, 0) to (0, 0), another from (1, 0) to (0, 3).
//! assert_eq!(w1(&a, &b)?, 0.25 * 1.0 + 0.25 * 4.0);
//! # Ok::<(), pointsman_transport::Error>(())
//! ```
//!
//! # Method
//! In one dimension, W1 = ∫|F − G|, by sorting. In more dimensions, the transportation problem is solved by the network simplex method with
//! integer masses and costs on a binary grid, so that termination needs no tolerance (see the notes in `network_simplex.rs`). Mass that both
//! clouds have at a point stays there, because the cost is a metric. At most [`MAX_POINTS`] distinct points may have mass to move; larger
//! clouds have to be subsampled.
//!
//! # Exactness
//! With equal weights, masses are exact. Other weights are rounded to multiples of 2⁻⁴⁹ of a cloud's mass, which changes W1 by less than
//! 2⁻⁴⁸ per distinct point and unit of distance. Costs are rounded to multiples of 2⁻⁴⁰ if all distances are at most 4, and otherwise to at
//! most 2⁻⁴² of the largest distance. The cost of the plan exceeds that of the optimal plan by at most this rounding.
//!
//! # Many distances between parts of the same points
//! A permutation test computes W1 between many random parts of two pooled clouds. [`Pool`] holds the distinct points of both clouds and,
//! optionally, all distances between them; [`Pool::w1`] computes W1 between any two parts of its items.
//!
//! No random numbers are used. The same clouds give the same bits in any order of their points.

mod cloud;
mod error;
mod network_simplex;
mod pool;
#[cfg(test)]
mod tests;

pub use cloud::Cloud;
pub use error::{Error, Result};
pub use pool::{Part, Pool};

/// The largest number of distinct points between which mass can be moved, so that sums of costs are exact.
pub const MAX_POINTS: usize = network_simplex::MAX_NODES;

/// W1 in the ℓ1 norm between two clouds.
///
/// # Errors
/// If the clouds have points of different dimensions, or more than [`MAX_POINTS`] distinct points have mass to move.
pub fn w1(a: &Cloud, b: &Cloud) -> Result<f64> {
    let (pool, parts) = Pool::new(a, b)?;
    pool.w1(&parts)
}
