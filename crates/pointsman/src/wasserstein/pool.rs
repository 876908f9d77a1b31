//! Two clouds as one pool of items, between whose parts W1 is taken again and again.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

use super::cloud::{Cloud, compare};
use super::transport::{self, MAX_MASS, MAX_NODES};

/// Items a side in a subsample: together they have at most [`MAX_NODES`] points.
const SUBSAMPLE: usize = MAX_NODES / 2;

/// How many subsamples are averaged.
const SUBSAMPLES: u32 = 5;

/// The total mass to which unequal weights are rounded.
const GRID: i64 = MAX_MASS / 2;

/// Which part an item belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The first cloud, or what a re-split puts in its place.
    First,
    /// The second.
    Second,
    /// Not in the subsample.
    Neither,
}

/// The items of two clouds in sorted order, whichever cloud they are from, and their distinct points.
pub(super) struct Pool {
    dim: usize,
    /// Distinct points in sorted order, row by row.
    points: Vec<f64>,
    /// Each item's point.
    at: Vec<usize>,
    weights: Vec<f64>,
    equal_weights: bool,
    /// ℓ1 distances between all distinct points, if they are remembered.
    costs: Option<Vec<f64>>,
}

impl Pool {
    /// The pool of two clouds of the same dimension, and which cloud each item is from.
    pub(super) fn new(a: &Cloud, b: &Cloud) -> (Self, Vec<Part>) {
        let mut items: Vec<(&[f64], f64, Part)> = Vec::with_capacity(a.items() + b.items());
        items.extend(a.iter().map(|(point, weight)| (point, weight, Part::First)));
        items.extend(b.iter().map(|(point, weight)| (point, weight, Part::Second)));
        items.sort_by(|x, y| compare((x.0, x.1), (y.0, y.1)));
        let mut points: Vec<f64> = Vec::new();
        let mut at = Vec::with_capacity(items.len());
        let mut last: Option<&[f64]> = None;
        for (point, _, _) in &items {
            if last != Some(*point) {
                points.extend_from_slice(point);
                last = Some(*point);
            }
            at.push(points.len() / a.dim() - 1);
        }
        let weights: Vec<f64> = items.iter().map(|item| item.1).collect();
        let equal_weights = weights.iter().all(|w| *w == 1.0);
        let pool = Self { dim: a.dim(), points, at, weights, equal_weights, costs: None };
        let parts = items.iter().map(|item| item.2).collect();
        (pool, parts)
    }

    /// Keeps the distances between all points at hand, which pays if W1 is taken between many parts.
    pub(super) fn remember_costs(&mut self) {
        if self.dim > 2 && self.is_exact() {
            let n = self.distinct();
            let mut costs = vec![0.0; n * n];
            for i in 0..n {
                for j in 0..i {
                    let cost = self.l1(i, j);
                    costs[i * n + j] = cost;
                    costs[j * n + i] = cost;
                }
            }
            self.costs = Some(costs);
        }
    }

    fn distinct(&self) -> usize {
        self.points.len() / self.dim
    }

    /// Whether W1 between parts of this pool is exact or an average over subsamples.
    pub(super) fn is_exact(&self) -> bool {
        self.dim <= 2 || self.distinct() <= MAX_NODES
    }

    /// W1 between the two parts; the generator is used only if [`Pool::is_exact`] is false.
    pub(super) fn w1(&self, parts: &[Part], rng: &mut Pcg64) -> f64 {
        if self.is_exact() {
            return self.exact(parts);
        }
        let members = |part| (0..parts.len()).filter(|&i| parts[i] == part).collect::<Vec<_>>();
        let (mut first, mut second) = (members(Part::First), members(Part::Second));
        let mut sum = 0.0;
        for _ in 0..SUBSAMPLES {
            let mut sample = vec![Part::Neither; parts.len()];
            for (items, part) in [(&mut first, Part::First), (&mut second, Part::Second)] {
                let size = SUBSAMPLE.min(items.len());
                draw(items, size, rng);
                items[..size].iter().for_each(|&i| sample[i] = part);
            }
            sum += self.exact(&sample);
        }
        sum / f64::from(SUBSAMPLES)
    }

    /// A random re-split of the pool into parts of `n` items and the rest.
    pub(super) fn resplit(&self, n: usize, rng: &mut Pcg64) -> Vec<Part> {
        let mut items: Vec<usize> = (0..self.at.len()).collect();
        draw(&mut items, n, rng);
        let mut parts = vec![Part::Second; items.len()];
        items[..n].iter().for_each(|&i| parts[i] = Part::First);
        parts
    }

    fn exact(&self, parts: &[Part]) -> f64 {
        let (net, total) = self.net_masses(parts);
        if self.dim <= 2 { self.on_a_line(&net, total) } else { self.transported(&net, total) }
    }

    /// The first part's mass less the second's at each distinct point, in units of which each part has `total`.
    ///
    /// With a metric cost, mass that both parts have at a point may stay there, so the differences are all that must
    /// move. With equal weights they are multiples of 1/(n·n′) and exact. Other weights are rounded to multiples of
    /// [`GRID`]⁻¹ = 2⁻⁴⁹, and the rounding's excess is taken from the largest difference: this moves W1 by less than
    /// 2⁻⁴⁸ for each distinct point.
    fn net_masses(&self, parts: &[Part]) -> (Vec<i64>, i64) {
        let count = |part| parts.iter().filter(|&&p| p == part).count() as i64;
        let (first, second) = (count(Part::First), count(Part::Second));
        let divisor = gcd(first, second);
        let total = (first / divisor).checked_mul(second).filter(|total| *total <= MAX_MASS);
        if let (true, Some(total)) = (self.equal_weights, total) {
            let mut net = vec![0; self.distinct()];
            for (&at, part) in self.at.iter().zip(parts) {
                net[at] += match part {
                    Part::First => second / divisor,
                    Part::Second => -(first / divisor),
                    Part::Neither => 0,
                };
            }
            return (net, total);
        }
        let (a, b) = (self.shares(parts, Part::First), self.shares(parts, Part::Second));
        let mut net: Vec<i64> = a.iter().zip(&b).map(|(a, b)| ((a - b) * GRID as f64).round() as i64).collect();
        let excess: i64 = net.iter().sum();
        let largest = (0..net.len()).rev().max_by_key(|&j| net[j].abs());
        if let Some(j) = largest {
            net[j] -= excess;
        }
        (net, GRID)
    }

    /// The share of a part's weight that lies at each distinct point.
    fn shares(&self, parts: &[Part], part: Part) -> Vec<f64> {
        let mut shares = vec![0.0; self.distinct()];
        for ((&at, weight), p) in self.at.iter().zip(&self.weights).zip(parts) {
            if *p == part {
                shares[at] += weight;
            }
        }
        let sum: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= sum);
        shares
    }

    /// Two classes: W1 = 2·∫|F − G|, since ‖(p, 1−p) − (q, 1−q)‖₁ = 2|p − q|.
    fn on_a_line(&self, net: &[i64], total: i64) -> f64 {
        let mut ahead = 0_i64;
        let mut area = 0.0;
        for (j, mass) in net.iter().enumerate().take(net.len() - 1) {
            ahead += mass;
            area += ahead.abs() as f64 * (self.points[(j + 1) * self.dim] - self.points[j * self.dim]);
        }
        2.0 * area / total as f64
    }

    fn transported(&self, net: &[i64], total: i64) -> f64 {
        let sources: Vec<usize> = (0..net.len()).filter(|&j| net[j] > 0).collect();
        let sinks: Vec<usize> = (0..net.len()).filter(|&j| net[j] < 0).collect();
        let supply: Vec<i64> = sources.iter().map(|&j| net[j]).collect();
        let demand: Vec<i64> = sinks.iter().map(|&j| -net[j]).collect();
        let mut costs = Vec::with_capacity(sources.len() * sinks.len());
        for &i in &sources {
            costs.extend(sinks.iter().map(|&j| self.cost(i, j)));
        }
        let plan = transport::solve(&supply, &demand, costs);
        let moved = plan.iter().map(|route| route.mass as f64 * self.cost(sources[route.source], sinks[route.sink]));
        // Summing from zero, since an empty sum of floats is negative zero.
        moved.fold(0.0, |sum, cost| sum + cost) / total as f64
    }

    fn cost(&self, i: usize, j: usize) -> f64 {
        self.costs.as_ref().map_or_else(|| self.l1(i, j), |costs| costs[i * self.distinct() + j])
    }

    fn l1(&self, i: usize, j: usize) -> f64 {
        let point = |i: usize| &self.points[i * self.dim..(i + 1) * self.dim];
        point(i).iter().zip(point(j)).map(|(x, y)| (x - y).abs()).sum()
    }
}

/// Brings a random subset of `n` items to the front, by the first `n` steps of a Fisher–Yates shuffle.
fn draw(items: &mut [usize], n: usize, rng: &mut Pcg64) {
    for k in 0..n {
        // The high word of a product: one draw each on every platform, and a bias of at most items/2⁶⁴.
        let left = (items.len() - k) as u128;
        items.swap(k, k + ((u128::from(rng.next_u64()) * left) >> 64) as usize);
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}
