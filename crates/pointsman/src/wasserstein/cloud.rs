//! Weighted points of the simplex, one per item.

use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::table::simplex::{checked_sum, normalise_into};

/// Weights below this share of their cloud's mean count as this share, so that no part of a cloud weighs nothing.
const LEAST_WEIGHT: f64 = 1e-200;

/// Weighted points of the simplex: the snapshot means of a cell's items.
///
/// Points are divided by their sum, and weights by their mean: a cloud is a distribution, so the scale of its weights
/// says nothing, also next to another cloud's. Items are kept in sorted order (by point, then by weight), hence the
/// order in which they were given changes no result.
///
/// ```
/// use pointsman::wasserstein::Cloud;
/// let cloud = Cloud::new(3, &[0.5, 0.5, 0.0, 0.0, 0.5, 0.5, 0.5, 0.5, 0.0], &[1.0, 1.0, 1.0])?;
/// assert_eq!((cloud.items(), cloud.distinct()), (3, 2));
/// assert!(Cloud::new(3, &[f64::NAN, 0.5, 0.5], &[1.0]).is_err());
/// # Ok::<(), pointsman::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Cloud {
    dim: usize,
    points: Vec<f64>,
    weights: Vec<f64>,
}

impl Cloud {
    /// A cloud of `points`, row by row with `dim` numbers each, and a weight for each.
    ///
    /// # Errors
    /// If there is no point, the shapes do not fit, a point is not on the simplex (see
    /// [`SUM_TOLERANCE`](crate::table::SUM_TOLERANCE)), or a weight is not a positive finite number. Rows are numbered as
    /// given.
    pub fn new(dim: usize, points: &[f64], weights: &[f64]) -> Result<Self> {
        if dim == 0 || weights.is_empty() || Some(points.len()) != dim.checked_mul(weights.len()) {
            return Err(Error::Table(format!(
                "{} numbers and {} weights are no cloud of points in {dim} dimensions: give at least one point, {dim} \
                 numbers for each, and one weight for each",
                points.len(),
                weights.len(),
            )));
        }
        let mut scaled = vec![0.0; points.len()];
        for (row, (point, out)) in points.chunks_exact(dim).zip(scaled.chunks_exact_mut(dim)).enumerate() {
            checked_sum(point).map_err(|fault| {
                let names: Vec<String> = (0..dim).map(|c| c.to_string()).collect();
                fault.at(row, "mean_", &names)
            })?;
            normalise_into(point, out);
            // A negative zero would be another point than zero.
            out.iter_mut().for_each(|x| *x += 0.0);
        }
        let weights = relative(weights)?;
        let mut order: Vec<usize> = (0..weights.len()).collect();
        let point = |i: usize| &scaled[i * dim..(i + 1) * dim];
        order.sort_by(|&i, &j| compare((point(i), weights[i]), (point(j), weights[j])));
        Ok(Self {
            dim,
            points: order.iter().flat_map(|&i| point(i)).copied().collect(),
            weights: order.iter().map(|&i| weights[i]).collect(),
        })
    }

    /// A cloud whose points weigh the same.
    ///
    /// # Errors
    /// As [`Cloud::new`].
    pub fn uniform(dim: usize, points: &[f64]) -> Result<Self> {
        Self::new(dim, points, &vec![1.0; points.len().checked_div(dim).unwrap_or(0)])
    }

    /// How many numbers a point has.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// How many items there are.
    #[must_use]
    pub fn items(&self) -> usize {
        self.weights.len()
    }

    /// How many different points there are.
    #[must_use]
    pub fn distinct(&self) -> usize {
        let repeats = self.points.chunks_exact(self.dim).zip(self.points.chunks_exact(self.dim).skip(1));
        self.items() - repeats.filter(|(point, next)| point == next).count()
    }

    /// The items in sorted order: point and weight relative to the mean.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[f64], f64)> {
        self.points.chunks_exact(self.dim).zip(self.weights.iter().copied())
    }
}

/// The order of items: by point, then by weight.
pub(super) fn compare(a: (&[f64], f64), b: (&[f64], f64)) -> Ordering {
    for (x, y) in a.0.iter().zip(b.0) {
        match x.total_cmp(y) {
            Ordering::Equal => {}
            other => return other,
        }
    }
    a.1.total_cmp(&b.1)
}

/// Weights over their mean; exactly one each if they are all equal.
fn relative(weights: &[f64]) -> Result<Vec<f64>> {
    if let Some(row) = weights.iter().position(|w| !(*w > 0.0 && w.is_finite())) {
        let w = weights[row];
        return Err(Error::value(row, "weight", format!("{w} is not a weight: give a positive finite number")));
    }
    if weights.iter().all(|w| *w == weights[0]) {
        return Ok(vec![1.0; weights.len()]);
    }
    // In sorted order, so that the sum does not depend on the order of the rows; the largest first becomes one, so
    // that it cannot overflow.
    let mut sorted = weights.to_vec();
    sorted.sort_by(f64::total_cmp);
    let largest = sorted[sorted.len() - 1];
    let mean = sorted.iter().map(|w| w / largest).sum::<f64>() / weights.len() as f64;
    Ok(weights.iter().map(|w| (w / largest / mean).max(LEAST_WEIGHT)).collect())
}
