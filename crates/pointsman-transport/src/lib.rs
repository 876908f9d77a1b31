//! Exact Wasserstein distance W1 between weighted clouds of points.
//!
//! A [`Cloud`] is a discrete distribution on ℝᵈ: points with positive weights. Between two of them
//!
//! W1(A, B) = min over couplings π of A and B of E_π‖a − b‖₁,
//!
//! the least mean distance, in the ℓ1 norm, at which the mass of A can be moved onto that of B.
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
//! One coordinate: W1 = ∫|F − G|, by sorting. More: the transportation problem, solved by the network simplex method with integer masses and
//! costs on a binary grid, so that no tolerance decides when it ends (see the notes in `network_simplex.rs`). Mass that both clouds have
//! at a point stays there, because the cost is a metric. At most [`MAX_POINTS`] distinct points may have mass to move; subsample beyond.
//!
//! # Exactness
//! With equal weights, masses are exact. Other weights are rounded to multiples of 2⁻⁴⁹ of a cloud's mass, which moves W1 by less than
//! 2⁻⁴⁸ per distinct point and unit of distance. Costs are rounded to multiples of 2⁻⁴⁰ if no two points are further than 4 apart, and to
//! 2⁻⁴² of the largest distance or less if they are: the plan found costs at most that much more than the optimal one.
//!
//! # Many distances between parts of the same points
//! A permutation test takes W1 between many random parts of two pooled clouds. [`Pool`] holds the distinct points of both clouds and, if
//! asked, all distances between them; [`Pool::w1`] takes W1 between any two parts of its items.
//!
//! Nothing here draws random numbers. The same clouds give the same bits, whatever the order of their points.

mod cloud;
mod error;
mod network_simplex;
mod pool;
#[cfg(test)]
mod tests;

pub use cloud::Cloud;
pub use error::{Error, Result};
pub use pool::{Part, Pool};

/// The most distinct points between which mass can be moved: the bound that keeps sums of costs exact.
pub const MAX_POINTS: usize = network_simplex::MAX_NODES;

/// W1 in the ℓ1 norm between two clouds.
///
/// # Errors
/// If the clouds have points of different dimensions, or more than [`MAX_POINTS`] distinct points have mass to move.
pub fn w1(a: &Cloud, b: &Cloud) -> Result<f64> {
    let (pool, parts) = Pool::new(a, b)?;
    pool.w1(&parts)
}
