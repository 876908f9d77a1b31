//! The distribution of cost differences over a router's cells, as a prior for single cells.

use super::forecast::Forecast;

use crate::parallel::prelude::*;

/// The smallest number of cells from which a prior is fitted.
const MIN_CELLS: usize = 5;

/// The variance of a flat prior, in squared losses.
const FLAT_VARIANCE: f64 = 1e6;

/// A normal prior for the cost difference of each pair of actions: mean and variance over the cells.
pub(super) struct DifferencePrior {
    actions: usize,
    pairs: Vec<[f64; 2]>,
}

impl DifferencePrior {
    pub(super) fn fit(cells: &[&Forecast<'_>], actions: usize) -> Self {
        let found: Vec<(Vec<f64>, Vec<f64>)> = cells
            .par_iter()
            .filter(|cell| cell.items().len() > 1)
            .map(|cell| (cell.middles(), cell.errors()))
            .collect();
        let of_pair = |pair: usize| {
            if found.len() < MIN_CELLS {
                return [0.0, FLAT_VARIANCE];
            }
            let n = found.len() as f64;
            let mean = found.iter().map(|(middles, _)| middles[pair]).sum::<f64>() / n;
            let square = found.iter().map(|(middles, _)| (middles[pair] - mean).powi(2)).sum::<f64>() / (n - 1.0);
            let noise = found.iter().map(|(_, errors)| errors[pair].powi(2)).sum::<f64>() / n;
            // With few cells the variance is uncertain; one standard error is added, because too small a variance does more harm.
            let error = square * (2.0 / (n - 1.0)).sqrt();
            [mean, (square + error - noise).max(error).max(f64::MIN_POSITIVE)]
        };
        Self { actions, pairs: (0..actions * actions).map(of_pair).collect() }
    }

    pub(super) fn of_pair(&self, a: usize, b: usize) -> [f64; 2] {
        self.pairs.get(a * self.actions + b).copied().unwrap_or([0.0, FLAT_VARIANCE])
    }
}
