//! Clouds of label distributions.

use crate::error::Result;
use crate::table::simplex::{checked_sum, normalise_into};

/// Weighted points of the simplex: the snapshot means of a cell's items.
///
/// Points are divided by their sum and weights by their mean: a cloud is a distribution, so the scale of its weights has no
/// meaning. Items are sorted by point, then by weight, so their original order changes no result.
///
/// ```
/// use pointsman::wasserstein::Cloud;
/// let cloud = Cloud::new(3, &[0.5, 0.5, 0.0, 0.0, 0.5, 0.5, 0.5, 0.5, 0.0], &[1.0, 1.0, 1.0])?;
/// assert_eq!((cloud.items(), cloud.distinct()), (3, 2));
/// assert!(Cloud::new(3, &[f64::NAN, 0.5, 0.5], &[1.0]).is_err());
/// # Ok::<(), pointsman::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Cloud(pointsman_transport::Cloud);

impl Cloud {
    /// A cloud of `points`, row by row with `dim` numbers each, with one weight per point.
    ///
    /// # Errors
    /// If there is no point, the shapes do not fit, a point is not on the simplex (see
    /// [`SUM_TOLERANCE`](crate::table::SUM_TOLERANCE)), or a weight is not a positive finite number. Rows are numbered as
    /// given.
    pub fn new(dim: usize, points: &[f64], weights: &[f64]) -> Result<Self> {
        pointsman_transport::Cloud::check_shape(dim, points, weights)?;
        let mut scaled = vec![0.0; points.len()];
        for (row, (point, out)) in points.chunks_exact(dim).zip(scaled.chunks_exact_mut(dim)).enumerate() {
            checked_sum(point).map_err(|fault| {
                let names: Vec<String> = (0..dim).map(|c| c.to_string()).collect();
                fault.at(row, "mean_", &names)
            })?;
            normalise_into(point, out);
        }
        Ok(Self(pointsman_transport::Cloud::new(dim, &scaled, weights)?))
    }

    /// A cloud of points with equal weights.
    ///
    /// # Errors
    /// As [`Cloud::new`].
    pub fn uniform(dim: usize, points: &[f64]) -> Result<Self> {
        Self::new(dim, points, &vec![1.0; points.len().checked_div(dim).unwrap_or(0)])
    }

    /// The dimension of the points.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.0.dim()
    }

    /// The number of items.
    #[must_use]
    pub fn items(&self) -> usize {
        self.0.items()
    }

    /// The number of distinct points.
    #[must_use]
    pub fn distinct(&self) -> usize {
        self.0.distinct()
    }

    /// The points and weights for the transport problem.
    pub(super) fn points(&self) -> &pointsman_transport::Cloud {
        &self.0
    }
}
