//! The pooled items of two clouds, and W1 between parts of them.

use crate::cloud::{Cloud, compare_items};
use crate::error::{Error, Result};
use crate::network_simplex::{self, MAX_COST, MAX_MASS, MAX_NODES};

/// The total mass to which unequal weights are rounded.
const ROUNDED_MASS: i64 = MAX_MASS / 2;

/// The part that an item of a [`Pool`] belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// The first part; [`Pool::new`] puts the items of the first cloud into it.
    First,
    /// The second part.
    Second,
    /// Neither: the item is left out.
    Neither,
}

/// The items of two clouds in one sorted list, with their distinct points.
///
/// ```
/// use pointsman_transport::{Cloud, Part, Pool};
/// let (a, b) = (Cloud::uniform(1, &[0.0, 2.0])?, Cloud::uniform(1, &[1.0, 3.0])?);
/// let (pool, parts) = Pool::new(&a, &b)?;
/// assert_eq!(pool.w1(&parts)?, 1.0);
/// // Items of both clouds are sorted together: 0 and 1 against 2 and 3.
/// assert_eq!(pool.w1(&[Part::First, Part::First, Part::Second, Part::Second])?, 2.0);
/// # Ok::<(), pointsman_transport::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Pool {
    dim: usize,
    /// Distinct points in sorted order, row by row.
    points: Vec<f64>,
    /// The point of each item.
    point_of_item: Vec<usize>,
    weights: Vec<f64>,
    has_equal_weights: bool,
    /// ℓ1 distances between all distinct points, if they are kept.
    distances: Option<Vec<f64>>,
}

impl Pool {
    /// The pool of two clouds, and the part of each item: the cloud that it is from.
    ///
    /// # Errors
    /// If the clouds have points of different dimensions.
    pub fn new(a: &Cloud, b: &Cloud) -> Result<(Self, Vec<Part>)> {
        if a.dim() != b.dim() {
            return Err(Error::Dimensions { first: a.dim(), second: b.dim() });
        }
        let mut items: Vec<(&[f64], f64, Part)> = Vec::with_capacity(a.items() + b.items());
        items.extend(a.iter().map(|(point, weight)| (point, weight, Part::First)));
        items.extend(b.iter().map(|(point, weight)| (point, weight, Part::Second)));
        items.sort_by(|x, y| compare_items((x.0, x.1), (y.0, y.1)));
        let mut points: Vec<f64> = Vec::new();
        let mut point_of_item = Vec::with_capacity(items.len());
        let mut last: Option<&[f64]> = None;
        for (point, _, _) in &items {
            if last != Some(*point) {
                points.extend_from_slice(point);
                last = Some(*point);
            }
            point_of_item.push(points.len() / a.dim() - 1);
        }
        let weights: Vec<f64> = items.iter().map(|item| item.1).collect();
        let has_equal_weights = weights.iter().all(|w| *w == 1.0);
        let parts = items.iter().map(|item| item.2).collect();
        Ok((Self { dim: a.dim(), points, point_of_item, weights, has_equal_weights, distances: None }, parts))
    }

    /// The same pool with stored distances between all distinct points, which is faster if W1 is computed for many parts.
    #[must_use]
    pub fn with_distances(mut self) -> Self {
        let n = self.distinct();
        let mut distances = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..i {
                let distance = self.l1(i, j);
                distances[i * n + j] = distance;
                distances[j * n + i] = distance;
            }
        }
        self.distances = Some(distances);
        self
    }

    /// The number of distinct points.
    #[must_use]
    pub fn distinct(&self) -> usize {
        self.points.len() / self.dim
    }

    /// W1 in the ℓ1 norm between the two parts.
    ///
    /// # Errors
    /// If there is not one part per item, one of the two is empty, or more than [`MAX_POINTS`](crate::MAX_POINTS) distinct points have mass to
    /// move.
    pub fn w1(&self, parts: &[Part]) -> Result<f64> {
        if self.dim == 1 {
            return self.w1_of_first_coordinate(parts);
        }
        let (net, total) = self.net_masses(parts)?;
        let sources: Vec<usize> = (0..net.len()).filter(|&j| net[j] > 0).collect();
        let sinks: Vec<usize> = (0..net.len()).filter(|&j| net[j] < 0).collect();
        if sources.len() + sinks.len() > MAX_NODES {
            return Err(Error::TooManyPoints { points: sources.len() + sinks.len() });
        }
        let supply: Vec<i64> = sources.iter().map(|&j| net[j]).collect();
        let demand: Vec<i64> = sinks.iter().map(|&j| -net[j]).collect();
        let mut costs = Vec::with_capacity(sources.len() * sinks.len());
        for &i in &sources {
            costs.extend(sinks.iter().map(|&j| self.distance(i, j)));
        }
        scale_costs(&mut costs);
        let plan = network_simplex::solve(&supply, &demand, costs);
        let moved = plan.iter().map(|flow| flow.mass as f64 * self.distance(sources[flow.source], sinks[flow.sink]));
        // A fold from zero, because an empty sum of floats is negative zero.
        Ok(moved.fold(0.0, |sum, cost| sum + cost) / total as f64)
    }

    /// W1 between the first coordinates of the two parts, ∫|F − G|, for any number of points.
    ///
    /// For points (p, 1 − p) it is half of [`Pool::w1`], because ‖(p, 1 − p) − (q, 1 − q)‖₁ = 2|p − q|.
    ///
    /// # Errors
    /// If there is not one part per item, or one of the two is empty.
    pub fn w1_of_first_coordinate(&self, parts: &[Part]) -> Result<f64> {
        let (net, total) = self.net_masses(parts)?;
        let (mut ahead, mut area) = (0_i64, 0.0);
        for (j, mass) in net.iter().enumerate().take(net.len() - 1) {
            ahead += mass;
            area += ahead.abs() as f64 * (self.points[(j + 1) * self.dim] - self.points[j * self.dim]);
        }
        Ok(area / total as f64)
    }

    /// The first part's mass minus the second's at each distinct point, as integers, and the total mass of each part in the same units.
    ///
    /// With a metric cost, mass that both parts have at a point can stay there, so only the differences must move. With equal weights they
    /// are multiples of 1/(n·n′) and exact. Other weights are rounded to multiples of 1/[`ROUNDED_MASS`] = 2⁻⁴⁹, and the rounding error of
    /// the sum is subtracted from the largest difference. This changes W1 by less than 2⁻⁴⁸ per distinct point and unit of distance.
    fn net_masses(&self, parts: &[Part]) -> Result<(Vec<i64>, i64)> {
        let count = |part| parts.iter().filter(|&&p| p == part).count() as i64;
        let (first, second) = (count(Part::First), count(Part::Second));
        let items = self.weights.len();
        if parts.len() != items || first == 0 || second == 0 {
            return Err(Error::Parts { items, parts: parts.len() });
        }
        let divisor = greatest_common_divisor(first, second);
        let total = (first / divisor).checked_mul(second).filter(|total| *total <= MAX_MASS);
        if let (true, Some(total)) = (self.has_equal_weights, total) {
            let mut net = vec![0; self.distinct()];
            for (&point, part) in self.point_of_item.iter().zip(parts) {
                net[point] += match part {
                    Part::First => second / divisor,
                    Part::Second => -(first / divisor),
                    Part::Neither => 0,
                };
            }
            return Ok((net, total));
        }
        let (a, b) = (self.shares(parts, Part::First), self.shares(parts, Part::Second));
        let round = |(a, b): (&f64, &f64)| ((a - b) * ROUNDED_MASS as f64).round() as i64;
        let mut net: Vec<i64> = a.iter().zip(&b).map(round).collect();
        let excess: i64 = net.iter().sum();
        let largest = (0..net.len()).rev().max_by_key(|&j| net[j].abs());
        if let Some(j) = largest {
            net[j] -= excess;
        }
        Ok((net, ROUNDED_MASS))
    }

    /// The share of a part's weight at each distinct point.
    fn shares(&self, parts: &[Part], part: Part) -> Vec<f64> {
        let mut shares = vec![0.0; self.distinct()];
        for ((&point, weight), p) in self.point_of_item.iter().zip(&self.weights).zip(parts) {
            if *p == part {
                shares[point] += weight;
            }
        }
        let sum: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= sum);
        shares
    }

    /// The distance between two distinct points.
    fn distance(&self, i: usize, j: usize) -> f64 {
        self.distances.as_ref().map_or_else(|| self.l1(i, j), |distances| distances[i * self.distinct() + j])
    }

    fn l1(&self, i: usize, j: usize) -> f64 {
        let point = |i: usize| &self.points[i * self.dim..(i + 1) * self.dim];
        point(i).iter().zip(point(j)).map(|(x, y)| (x - y).abs()).sum()
    }
}

/// Divides costs by a power of two if one is too large for the solver: the optimal plan stays the same.
fn scale_costs(costs: &mut [f64]) {
    let largest = costs.iter().copied().fold(0.0, f64::max);
    let mut unit = 1.0;
    while largest / unit > MAX_COST {
        unit *= 2.0;
    }
    if unit > 1.0 {
        costs.iter_mut().for_each(|cost| *cost /= unit);
    }
}

fn greatest_common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a.max(1) } else { greatest_common_divisor(b, a % b) }
}
