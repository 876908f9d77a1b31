//! How far differences of costs usually are from zero in a router's cells.

use rayon::prelude::*;

use super::forecast::Forecast;

/// Fewer cells than this have nothing to say about what is usual.
const FEWEST_CELLS: usize = 5;

/// The variance of a prior that says nothing, in squared losses.
const FLAT: f64 = 1e6;

/// Mean and variance over the cells of the difference of each pair of actions: a normal prior.
pub(super) struct Usual {
    actions: usize,
    pairs: Vec<[f64; 2]>,
}

impl Usual {
    pub(super) fn of(cells: &[&Forecast<'_>], actions: usize) -> Self {
        let found: Vec<(Vec<f64>, Vec<f64>)> = cells
            .par_iter()
            .filter(|cell| cell.items().len() > 1)
            .map(|cell| (cell.middles(), cell.errors()))
            .collect();
        let of_pair = |pair: usize| {
            if found.len() < FEWEST_CELLS {
                return [0.0, FLAT];
            }
            let n = found.len() as f64;
            let mean = found.iter().map(|(middles, _)| middles[pair]).sum::<f64>() / n;
            let square = found.iter().map(|(middles, _)| (middles[pair] - mean).powi(2)).sum::<f64>() / (n - 1.0);
            let noise = found.iter().map(|(_, errors)| errors[pair].powi(2)).sum::<f64>() / n;
            // Few cells say little about their variance: a standard error more of it does less harm than too little.
            let error = square * (2.0 / (n - 1.0)).sqrt();
            [mean, (square + error - noise).max(error).max(f64::MIN_POSITIVE)]
        };
        Self { actions, pairs: (0..actions * actions).map(of_pair).collect() }
    }

    pub(super) fn of_pair(&self, a: usize, b: usize) -> [f64; 2] {
        self.pairs.get(a * self.actions + b).copied().unwrap_or([0.0, FLAT])
    }
}
