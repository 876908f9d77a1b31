//! Weighted points.

use std::cmp::Ordering;

use crate::error::{Error, Result};

/// The smallest weight relative to the mean weight of its cloud; smaller weights are raised to it, so that every point has mass.
const MIN_RELATIVE_WEIGHT: f64 = 1e-200;

/// A discrete distribution: points with positive weights.
///
/// Weights are divided by their mean, so their scale has no effect. Items are sorted by point, then by weight, so their original order has no
/// effect either.
///
/// ```
/// use pointsman_transport::{Cloud, Error};
/// let cloud = Cloud::new(2, &[1.0, 2.0, 0.0, 5.0, 1.0, 2.0], &[1.0, 1.0, 2.0])?;
/// assert_eq!((cloud.items(), cloud.distinct()), (3, 2));
/// assert!(matches!(Cloud::uniform(1, &[0.5, f64::NAN]), Err(Error::Coordinate { row: 1, .. })));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Cloud {
    dim: usize,
    points: Vec<f64>,
    weights: Vec<f64>,
}

impl Cloud {
    /// The largest absolute value of a coordinate; sums of distances stay finite.
    pub const MAX_COORDINATE: f64 = 1e100;

    /// A cloud of `points`, row by row with `dim` numbers each, with one weight per point.
    ///
    /// # Errors
    /// If there is no point, the shapes do not fit, a coordinate is not finite or larger than [`Cloud::MAX_COORDINATE`], or a weight is not
    /// a positive finite number.
    pub fn new(dim: usize, points: &[f64], weights: &[f64]) -> Result<Self> {
        Self::check_shape(dim, points, weights)?;
        if let Some(place) = points.iter().position(|x| !(-Self::MAX_COORDINATE..=Self::MAX_COORDINATE).contains(x)) {
            return Err(Error::Coordinate { row: place / dim, coordinate: place % dim, value: points[place] });
        }
        let weights = relative_weights(weights)?;
        // Adding zero turns −0 into +0, which would otherwise be another point.
        let points: Vec<f64> = points.iter().map(|x| x + 0.0).collect();
        let mut order: Vec<usize> = (0..weights.len()).collect();
        let point = |i: usize| &points[i * dim..(i + 1) * dim];
        order.sort_by(|&i, &j| compare_items((point(i), weights[i]), (point(j), weights[j])));
        Ok(Self {
            dim,
            points: order.iter().flat_map(|&i| point(i)).copied().collect(),
            weights: order.iter().map(|&i| weights[i]).collect(),
        })
    }

    /// A cloud of points with equal weights.
    ///
    /// # Errors
    /// As [`Cloud::new`].
    pub fn uniform(dim: usize, points: &[f64]) -> Result<Self> {
        Self::new(dim, points, &vec![1.0; points.len().checked_div(dim).unwrap_or(0)])
    }

    /// Checks that there is at least one point, with `dim` numbers and one weight each.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is not.
    pub fn check_shape(dim: usize, points: &[f64], weights: &[f64]) -> Result<()> {
        if dim == 0 || weights.is_empty() || Some(points.len()) != dim.checked_mul(weights.len()) {
            return Err(Error::Shape { dim, numbers: points.len(), weights: weights.len() });
        }
        Ok(())
    }

    /// The dimension of the points.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The number of items.
    #[must_use]
    pub fn items(&self) -> usize {
        self.weights.len()
    }

    /// The number of distinct points.
    #[must_use]
    pub fn distinct(&self) -> usize {
        let repeats = self.points.chunks_exact(self.dim).zip(self.points.chunks_exact(self.dim).skip(1));
        self.items() - repeats.filter(|(point, next)| point == next).count()
    }

    /// The items in sorted order: the point, and the weight relative to the mean.
    pub fn iter(&self) -> impl Iterator<Item = (&[f64], f64)> {
        self.points.chunks_exact(self.dim).zip(self.weights.iter().copied())
    }
}

/// Compares items by point, then by weight.
pub(crate) fn compare_items(a: (&[f64], f64), b: (&[f64], f64)) -> Ordering {
    for (x, y) in a.0.iter().zip(b.0) {
        match x.total_cmp(y) {
            Ordering::Equal => {}
            other => return other,
        }
    }
    a.1.total_cmp(&b.1)
}

/// Divides weights by their mean; equal weights become exactly one.
fn relative_weights(weights: &[f64]) -> Result<Vec<f64>> {
    if let Some(row) = weights.iter().position(|w| !(*w > 0.0 && w.is_finite())) {
        return Err(Error::Weight { row, value: weights[row] });
    }
    if weights.iter().all(|w| *w == weights[0]) {
        return Ok(vec![1.0; weights.len()]);
    }
    // Summed in sorted order, so that the order of rows has no effect, and relative to the largest, to avoid overflow.
    let mut sorted = weights.to_vec();
    sorted.sort_by(f64::total_cmp);
    let largest = sorted[sorted.len() - 1];
    let mean = sorted.iter().map(|w| w / largest).sum::<f64>() / weights.len() as f64;
    Ok(weights.iter().map(|w| (w / largest / mean).max(MIN_RELATIVE_WEIGHT)).collect())
}
