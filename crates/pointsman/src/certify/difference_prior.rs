//! The distribution of true cost differences over a router's cells, as a prior for single cells.

use super::forecast::Forecast;

use crate::parallel::prelude::*;

/// The smallest number of cells from which a prior is fitted.
const MIN_CELLS: usize = 5;

/// The variance of a flat prior, in squared losses.
const FLAT_VARIANCE: f64 = 1e6;

/// A normal prior for the cost difference of each pair of actions.
pub(super) struct DifferencePrior {
    actions: usize,
    centre: Centre,
    /// The variance of each pair.
    variances: Vec<f64>,
    /// For each pair, the error of the policy's estimates relative to that of the certificate's statistics.
    scales: Vec<f64>,
}

/// The mean of a prior.
enum Centre {
    /// The mean over all cells, for each pair of actions.
    AllCells(Vec<f64>),
    /// Such that, together with the cell's own rows, it gives the estimate of the policy: pooled cells are estimated from neighbouring cells
    /// too.
    Estimates,
}

/// What is known of one cell.
pub(super) struct Known<'a> {
    pub(super) forecast: &'a Forecast<'a>,
    /// For each pair of actions, the cost difference that the policy uses.
    pub(super) estimates: Vec<f64>,
    /// The variances of these, if they are known.
    pub(super) variances: Option<&'a [f64]>,
}

impl DifferencePrior {
    /// The prior of a router's cells; `pooled` if its estimates use neighbouring cells too, and `compete` if a budget compares cells with each
    /// other.
    pub(super) fn fit(cells: &[Known<'_>], actions: usize, pooled: bool, compete: bool) -> Self {
        let found: Vec<Differences<'_>> = cells
            .par_iter()
            .filter(|known| known.forecast.items().len() > 1)
            .map(|known| Differences {
                own: known.forecast.middles(),
                errors: known.forecast.errors(),
                estimates: &known.estimates,
                variances: known.variances,
            })
            .collect();
        let pairs = 0..actions * actions;
        if pooled {
            let variances = pairs.map(|pair| variance_around_estimates(&found, pair, compete)).collect();
            return Self { actions, centre: Centre::Estimates, variances, scales: vec![1.0; actions * actions] };
        }
        let scales = pairs.clone().map(|pair| scale_of_errors(&found, pair)).collect();
        let (means, variances) = pairs.map(|pair| moments_over_cells(&found, pair)).unzip();
        Self { actions, centre: Centre::AllCells(means), variances, scales }
    }

    /// The variance of the difference of a pair of actions.
    pub(super) fn variance(&self, a: usize, b: usize) -> f64 {
        self.variances.get(a * self.actions + b).copied().unwrap_or(FLAT_VARIANCE)
    }

    /// The error of the policy's estimate of the difference of a pair of actions relative to that of the certificate's statistic.
    pub(super) fn scale(&self, a: usize, b: usize) -> f64 {
        self.scales[a * self.actions + b]
    }

    /// The mean of the difference of a pair of actions over all cells; `None` if each cell has its own prior mean.
    pub(super) fn mean_of_all_cells(&self, a: usize, b: usize) -> Option<f64> {
        match &self.centre {
            Centre::AllCells(means) => Some(means.get(a * self.actions + b).copied().unwrap_or(0.0)),
            Centre::Estimates => None,
        }
    }
}

/// The cost differences of one cell, for each pair of actions.
struct Differences<'a> {
    /// By the cell's own rows.
    own: Vec<f64>,
    /// The standard errors of these.
    errors: Vec<f64>,
    /// As the policy estimates them.
    estimates: &'a [f64],
    /// The variances of these, if they are known.
    variances: Option<&'a [f64]>,
}

/// The error of the policy's estimates of a pair's differences relative to that of the certificate's statistics, over all cells: labels
/// change an action as they change the policy's estimates. Under losses with kinks a certificate uses the middle of two bounds, whose error
/// differs from that of the policy's estimate.
fn scale_of_errors(cells: &[Differences<'_>], pair: usize) -> f64 {
    let (mut of_policy, mut of_statistics) = (0.0, 0.0);
    for (cell, variances) in cells.iter().filter_map(|cell| Some((cell, cell.variances?))) {
        of_policy += variances[pair];
        of_statistics += cell.errors[pair].powi(2);
    }
    let scale = (of_policy / of_statistics).sqrt();
    if scale.is_finite() { scale } else { 1.0 }
}

/// The mean and variance of the true differences over the cells.
fn moments_over_cells(cells: &[Differences<'_>], pair: usize) -> (f64, f64) {
    if cells.len() < MIN_CELLS {
        return (0.0, FLAT_VARIANCE);
    }
    let n = cells.len() as f64;
    let mean = cells.iter().map(|cell| cell.own[pair]).sum::<f64>() / n;
    let square = cells.iter().map(|cell| (cell.own[pair] - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let noise = cells.iter().map(|cell| cell.errors[pair].powi(2)).sum::<f64>() / n;
    // With few cells the variance is uncertain; one standard error is added, because too small a variance does more harm.
    let error = square * (2.0 / (n - 1.0)).sqrt();
    (mean, (square + error - noise).max(error).max(f64::MIN_POSITIVE))
}

/// The prior variance V at which the policy's estimates are as far from those of the cells' own rows as they are: an estimate that combines
/// a prior of variance V with own rows of error e differs from that of the own rows by e⁴/(V + e²) on average of squares.
///
/// `compete` says whether cells are compared with each other, as under a budget: the errors of neighbouring cells are alike, so that labels
/// change their order less than the independent draws of a forecast do.
fn variance_around_estimates(cells: &[Differences<'_>], pair: usize, compete: bool) -> f64 {
    if cells.len() < MIN_CELLS {
        return FLAT_VARIANCE;
    }
    let n = cells.len() as f64;
    let squares: f64 = cells.iter().map(|cell| (cell.own[pair] - cell.estimates[pair]).powi(2)).sum();
    // One standard error in the direction of a smaller variance.
    let caution = if compete { 1.0 + (2.0 / (n - 1.0)).sqrt() } else { 1.0 };
    let at = |variance: f64| {
        let square = |cell: &Differences<'_>| {
            let noise = cell.errors[pair].powi(2);
            if noise > 0.0 { noise * noise / (variance + noise) } else { 0.0 }
        };
        cells.iter().map(square).sum::<f64>()
    };
    let (largest, of_squares) = (at(0.0), cells.iter().map(|cell| cell.errors[pair].powi(4)).sum::<f64>());
    if largest <= 0.0 {
        return f64::MIN_POSITIVE;
    }
    let squares = largest * expected_shrinkage(caution * squares / largest, largest * largest / of_squares);
    // The sum decreases in V: bisection of its logarithm.
    let (mut low, mut high) = (f64::MIN_POSITIVE.ln(), FLAT_VARIANCE.ln());
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if at(middle.exp()) > squares { low = middle } else { high = middle }
    }
    high.exp()
}

/// The posterior mean of the shrinkage B = e²/(V + e²) under a uniform prior on zero to one, if the mean of some squares in units of e² is
/// B times a chi-squared variable over its `degrees` of freedom. It is below one whatever the squares are: cells whose estimates differ from
/// their own rows as much as if V were zero do not show that it is.
fn expected_shrinkage(mean_square: f64, degrees: f64) -> f64 {
    const POINTS: usize = 1000;
    let shrinkages = || (0..POINTS).map(|point| (point as f64 + 0.5) / POINTS as f64);
    let log_density = |b: f64| -0.5 * degrees * (b.ln() + mean_square / b);
    let most = shrinkages().map(log_density).fold(f64::NEG_INFINITY, f64::max);
    let (mut sum, mut weights) = (0.0, 0.0);
    for b in shrinkages() {
        let weight = (log_density(b) - most).exp();
        sum += weight * b;
        weights += weight;
    }
    sum / weights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shrinkage_is_uncertain_with_few_cells_and_never_certain() {
        // With many cells it is the mean square.
        assert!((expected_shrinkage(0.4, 1e5) - 0.4).abs() < 1e-3);
        // By numerical integration of the posterior density.
        assert!((expected_shrinkage(1.0, 20.0) - 0.82710).abs() < 1e-3);
        for mean_square in [1.0, 1.5, 3.0] {
            let found = expected_shrinkage(mean_square, 20.0);
            assert!((0.5..0.99).contains(&found), "{mean_square}: {found}");
        }
    }

    /// Cells whose estimates differ from their own rows as much as if they had no spread of their own may have some.
    #[test]
    fn spread_of_pooled_cells_is_never_none() {
        let estimates = [0.0];
        let cell = |own: f64| Differences { own: vec![own], errors: vec![0.1], estimates: &estimates, variances: None };
        let variance = |own: f64| {
            let cells: Vec<Differences<'_>> =
                (0..20).map(|place| cell(if place % 2 == 0 { own } else { -own })).collect();
            variance_around_estimates(&cells, 0, false)
        };
        let found = [0.15, 0.1, 0.05, 0.02].map(variance);
        assert!(found[0] > 0.05 * 0.1 * 0.1 && found.windows(2).all(|pair| pair[0] < pair[1]), "{found:?}");
    }
}
