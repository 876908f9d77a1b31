//! The Wasserstein distance W1 between two clouds of snapshot means, in the ℓ1 norm, with a permutation test.
//!
//! A cell is higher-order calibrated if the law of label distributions that it stores is the law of new queries. With
//! snapshots of the same k, the error is W1 between the stored snapshot means and held-out ones,
//!
//! W1(S, S′) = min over couplings of E‖ȳ − ȳ′‖₁, at most 2.
//!
//! Between samples it is never zero: two samples of 200 from one law on ten classes are 0.4 to 0.5 apart. So [`distance`] also
//! gives the value expected by chance alone.
//!
//! The crate `pointsman-transport` computes exact W1 of weighted points. This module adds the statistics: points of the simplex,
//! subsamples of large clouds, and the permutation test.

mod cloud;
mod resample;
#[cfg(test)]
mod tests;

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

pub use cloud::Cloud;
use resample::Resampler;

use crate::error::{Result, TableError};
use crate::parallel::prelude::*;

/// The number of re-splits for [`distance`] if there is no reason for another.
pub const DEFAULT_SPLITS: usize = 40;

/// Distances closer than this are equal in the permutation test; equal distances may differ by rounding.
const DISTANCE_TOLERANCE: f64 = 1e-10;

/// W1 between two clouds.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct W1 {
    /// W1 in the ℓ1 norm, from 0 to 2.
    pub distance: f64,
    /// False if it is a mean over subsamples, which is biased upwards.
    pub exact: bool,
}

/// W1 between two clouds, and its expectation by chance.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Distance {
    /// W1 between the clouds.
    pub raw: f64,
    /// Mean W1 between random parts, of the same sizes, of the pooled items: the value expected if both clouds follow one law.
    pub floor: f64,
    /// sqrt(max(raw² − floor², 0)), an estimate of W1 between the laws.
    pub debiased: f64,
    /// (1 + number of re-splits at least as far apart as the clouds) / (1 + number of re-splits).
    pub p_value: f64,
    /// False if each W1 is a mean over subsamples, in `raw` and `floor` alike.
    pub exact: bool,
    /// Items of the first cloud.
    pub n: usize,
    /// Items of the second cloud.
    pub n_other: usize,
}

/// W1 in the ℓ1 norm between two clouds.
///
/// With two classes, exact by sorting: 2·∫|F − G|. With more classes, exact by the transportation problem for up to 1,000 distinct
/// points; with more points, the mean over five subsamples of up to 500 items per side, drawn with `seed`.
///
/// ```
/// use pointsman::wasserstein::{Cloud, w1};
/// let a = Cloud::uniform(3, &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0])?;
/// let b = Cloud::uniform(3, &[1.0, 0.0, 0.0, 0.0, 0.5, 0.5])?;
/// assert_eq!(w1(&a, &b, 0)?.distance, 0.5);
/// # Ok::<(), pointsman::Error>(())
/// ```
///
/// # Errors
/// If the clouds are of different dimensions.
pub fn w1(a: &Cloud, b: &Cloud, seed: u64) -> Result<W1> {
    let (pool, parts) = Resampler::new(a, b, false)?;
    Ok(W1 { distance: pool.w1(&parts, &mut Pcg64::seed_from_u64(seed))?, exact: pool.is_exact() })
}

/// W1 between two clouds, its floor over `splits` random re-splits, its debiased value and its permutation p-value.
///
/// The floor grows with the number of classes; the square-root form removes it better than a difference. The p-value is valid for
/// any law: if both clouds follow one law, P(p ≤ α) ≤ α. Re-splits treat each item, with its weight, as one draw. The result depends
/// on the clouds, `splits` and `seed`, not on the number of threads; see [`DEFAULT_SPLITS`].
///
/// ```
/// use pointsman::wasserstein::{Cloud, DEFAULT_SPLITS, distance};
/// let a = Cloud::uniform(2, &[0.9, 0.1, 0.8, 0.2, 0.9, 0.1, 1.0, 0.0])?;
/// let b = Cloud::uniform(2, &[0.1, 0.9, 0.2, 0.8, 0.3, 0.7, 0.0, 1.0])?;
/// let apart = distance(&a, &b, DEFAULT_SPLITS, 7)?;
/// assert!((apart.raw - 1.5).abs() < 1e-12);
/// assert!(apart.floor < 0.8 && apart.debiased > 1.2 && apart.p_value < 0.1);
/// # Ok::<(), pointsman::Error>(())
/// ```
///
/// # Errors
/// If the clouds are of different dimensions, or `splits` is zero.
pub fn distance(a: &Cloud, b: &Cloud, splits: usize, seed: u64) -> Result<Distance> {
    Ok(distance_with_splits(a, b, splits, seed)?.0)
}

/// The distance, and W1 between the parts of each re-split.
pub(crate) fn distance_with_splits(a: &Cloud, b: &Cloud, splits: usize, seed: u64) -> Result<(Distance, Vec<f64>)> {
    let (pool, parts) = Resampler::new(a, b, true)?;
    if splits == 0 {
        return Err(TableError::NoSplits { better: DEFAULT_SPLITS }.into());
    }
    let mut rng = Pcg64::seed_from_u64(seed);
    let raw = pool.w1(&parts, &mut rng)?;
    // One generator per re-split, seeded in order, so that the number of threads changes nothing.
    let seeds: Vec<u64> = (0..splits).map(|_| rng.next_u64()).collect();
    let floors: Vec<f64> = seeds
        .into_par_iter()
        .map(|seed| {
            let mut rng = Pcg64::seed_from_u64(seed);
            let parts = pool.split(a.items(), &mut rng);
            pool.w1(&parts, &mut rng)
        })
        .collect::<Result<_>>()?;
    let floor = floors.iter().sum::<f64>() / splits as f64;
    let distance = Distance {
        raw,
        floor,
        debiased: (raw * raw - floor * floor).max(0.0).sqrt(),
        p_value: p_value(raw, &floors),
        exact: pool.is_exact(),
        n: a.items(),
        n_other: b.items(),
    };
    Ok((distance, floors))
}

/// The permutation p-value of a distance, given those between the parts of random re-splits.
pub(crate) fn p_value(raw: f64, splits: &[f64]) -> f64 {
    let at_least = splits.iter().filter(|&&split| split >= raw - DISTANCE_TOLERANCE).count();
    (1 + at_least) as f64 / (1.0 + splits.len() as f64)
}
