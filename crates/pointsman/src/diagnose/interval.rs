//! A number and how far off it may be.

use super::crossfit::SPLITS;

/// Standard errors on either side of a 95 % interval.
const NORMAL: f64 = 1.96;

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
        Self { estimate, low: estimate - NORMAL * standard_error, high: estimate + NORMAL * standard_error }
    }

    /// The same with the other sign: a saving as what it costs more.
    #[must_use]
    pub fn negated(self) -> Self {
        Self { estimate: -self.estimate, low: -self.high, high: -self.low }
    }

    /// What a loss or saving per query comes to on a thousand queries.
    #[must_use]
    pub fn per_thousand(self) -> Self {
        self.scaled(1000.0)
    }

    /// The same in another unit.
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
    /// Averages `value` over the splits: for each a number per row.
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

    /// The same for all rows, whatever the split.
    pub(super) fn constant(value: f64, rows: usize) -> Self {
        Self { rows: vec![value; rows], splits: vec![value; SPLITS] }
    }

    pub(super) fn minus(&self, other: &Self) -> Self {
        let subtract = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect();
        Self { rows: subtract(&self.rows, &other.rows), splits: subtract(&self.splits, &other.splits) }
    }

    pub(super) fn mean(&self, weights: &[f64]) -> f64 {
        mean(&self.rows, weights)
    }

    /// The mean; its error is that of a mean over rows, and how much it varies with the split on top.
    pub(super) fn interval(&self, weights: &[f64]) -> Estimate {
        let (centre, all) = (self.mean(weights), weights.iter().sum::<f64>());
        let squares: f64 = self.rows.iter().zip(weights).map(|(x, w)| (w * (x - centre)).powi(2)).sum();
        let n = self.splits.len() as f64;
        let among: f64 = self.splits.iter().map(|x| (x - centre).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        Estimate::new(centre, (squares / (all * all) + among).sqrt())
    }
}

pub(super) fn mean(values: &[f64], weights: &[f64]) -> f64 {
    values.iter().zip(weights).map(|(x, w)| w * x).sum::<f64>() / weights.iter().sum::<f64>()
}
