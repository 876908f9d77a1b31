//! Estimates with 95 % intervals, from numbers per row averaged over splits.

use super::crossfit::SPLITS;
use crate::numeric::weighted::{WeightedMean, Z_95, weighted_mean};

/// An estimate with a 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Estimate {
    /// The estimate.
    pub estimate: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Estimate {
    pub(super) fn new(estimate: f64, standard_error: f64) -> Self {
        Self { estimate, low: estimate - Z_95 * standard_error, high: estimate + Z_95 * standard_error }
    }

    /// The estimate of the negative quantity: a saving as an extra cost.
    #[must_use]
    pub fn negated(self) -> Self {
        Self { estimate: -self.estimate, low: -self.high, high: -self.low }
    }

    /// A loss or saving per query as one per thousand queries.
    #[must_use]
    pub fn per_thousand(self) -> Self {
        self.scaled(1000.0)
    }

    /// The estimate in another unit.
    pub(super) fn scaled(self, factor: f64) -> Self {
        Self { estimate: factor * self.estimate, low: factor * self.low, high: factor * self.high }
    }
}

/// One number per row, averaged over splits, and its mean in each split.
#[derive(Debug, Clone)]
pub(super) struct Average {
    rows: Vec<f64>,
    splits: Vec<f64>,
}

impl Average {
    /// Averages over splits, each with one number per row.
    pub(super) fn over<'a>(splits: impl Iterator<Item = &'a [f64]>, weights: &[f64]) -> Self {
        let mut average = Self { rows: vec![0.0; weights.len()], splits: Vec::new() };
        for split in splits {
            average.rows.iter_mut().zip(split).for_each(|(sum, x)| *sum += x);
            average.splits.push(mean(split, weights));
        }
        let n = average.splits.len().max(1) as f64;
        average.rows.iter_mut().for_each(|sum| *sum /= n);
        average
    }

    /// One number for all rows and splits.
    pub(super) fn constant(value: f64, rows: usize) -> Self {
        Self { rows: vec![value; rows], splits: vec![value; SPLITS] }
    }

    pub(super) fn minus(&self, other: &Self) -> Self {
        let subtract = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect();
        Self { rows: subtract(&self.rows, &other.rows), splits: subtract(&self.splits, &other.splits) }
    }

    /// The same in another unit.
    pub(super) fn scaled(&self, factor: f64) -> Self {
        let scale = |values: &[f64]| values.iter().map(|x| factor * x).collect();
        Self { rows: scale(&self.rows), splits: scale(&self.splits) }
    }

    /// The standard error of the mean: its variance is that of a mean over rows plus the variance between splits.
    pub(super) fn standard_error(&self, weights: &[f64]) -> f64 {
        let rows = WeightedMean::new(weights.iter().copied().zip(self.rows.iter().copied()));
        let n = self.splits.len() as f64;
        let between: f64 = self.splits.iter().map(|x| (x - rows.mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        (rows.squared_deviations / (rows.weight * rows.weight) + between).sqrt()
    }

    pub(super) fn mean(&self, weights: &[f64]) -> f64 {
        mean(&self.rows, weights)
    }

    /// The mean with an interval.
    pub(super) fn interval(&self, weights: &[f64]) -> Estimate {
        Estimate::new(self.mean(weights), self.standard_error(weights))
    }
}

/// The weighted mean of some values.
pub(super) fn mean(values: &[f64], weights: &[f64]) -> f64 {
    weighted_mean(weights.iter().copied().zip(values.iter().copied()))
}
