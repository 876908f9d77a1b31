//! The pooled items of two clouds, and W1 between random parts of the pool.

use pointsman_transport::{MAX_POINTS, Part, Pool};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

use super::cloud::Cloud;
use crate::error::Result;

/// Items per side of a subsample: together they have at most [`MAX_POINTS`] distinct points.
const ITEMS_PER_SUBSAMPLE: usize = MAX_POINTS / 2;

/// The number of subsamples that are averaged if the pool is too large for an exact distance.
const SUBSAMPLES: u32 = 5;

/// The pooled items of two clouds.
pub(super) struct Resampler {
    pool: Pool,
    dim: usize,
    items: usize,
}

impl Resampler {
    /// The pool of two clouds, and the part of each item: the cloud that it is from. Pairwise distances are stored if W1 is to be computed `often`.
    ///
    /// # Errors
    /// If the clouds are of different dimensions.
    pub(super) fn new(a: &Cloud, b: &Cloud, often: bool) -> Result<(Self, Vec<Part>)> {
        let (pool, parts) = Pool::new(a.points(), b.points())?;
        let mut resampler = Self { pool, dim: a.dim(), items: parts.len() };
        if often && resampler.dim > 2 && resampler.is_exact() {
            resampler.pool = resampler.pool.with_distances();
        }
        Ok((resampler, parts))
    }

    /// Whether W1 between parts of this pool is exact or a mean over subsamples.
    pub(super) fn is_exact(&self) -> bool {
        self.dim <= 2 || self.pool.distinct() <= MAX_POINTS
    }

    /// W1 between the two parts; the generator is used only if [`Resampler::is_exact`] is false.
    ///
    /// # Errors
    /// If a part is empty.
    pub(super) fn w1(&self, parts: &[Part], rng: &mut Pcg64) -> Result<f64> {
        if self.is_exact() {
            return self.exact_w1(parts);
        }
        let members = |part| (0..parts.len()).filter(|&i| parts[i] == part).collect::<Vec<_>>();
        let (mut first, mut second) = (members(Part::First), members(Part::Second));
        let mut sum = 0.0;
        for _ in 0..SUBSAMPLES {
            let mut sample = vec![Part::Neither; parts.len()];
            for (items, part) in [(&mut first, Part::First), (&mut second, Part::Second)] {
                let size = ITEMS_PER_SUBSAMPLE.min(items.len());
                draw(items, size, rng);
                items[..size].iter().for_each(|&i| sample[i] = part);
            }
            sum += self.exact_w1(&sample)?;
        }
        Ok(sum / f64::from(SUBSAMPLES))
    }

    /// Splits the pool at random into a part of `n` items and the rest.
    pub(super) fn split(&self, n: usize, rng: &mut Pcg64) -> Vec<Part> {
        let mut items: Vec<usize> = (0..self.items).collect();
        draw(&mut items, n, rng);
        let mut parts = vec![Part::Second; items.len()];
        items[..n].iter().for_each(|&i| parts[i] = Part::First);
        parts
    }

    /// W1 by the first class's share if there are two classes, since ‖(p, 1−p) − (q, 1−q)‖₁ = 2|p − q|.
    fn exact_w1(&self, parts: &[Part]) -> Result<f64> {
        let found = match self.dim {
            2 => self.pool.w1_of_first_coordinate(parts).map(|half| 2.0 * half),
            _ => self.pool.w1(parts),
        };
        Ok(found?)
    }
}

/// Moves a random subset of `n` items to the front, by the first `n` steps of a Fisher–Yates shuffle.
fn draw(items: &mut [usize], n: usize, rng: &mut Pcg64) {
    for k in 0..n {
        // The high word of a product: one draw per step on every platform, with a bias of at most items/2⁶⁴.
        let left = (items.len() - k) as u128;
        items.swap(k, k + ((u128::from(rng.next_u64()) * left) >> 64) as usize);
    }
}
