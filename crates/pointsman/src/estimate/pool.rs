//! Pooled cells: estimates from few rows are smoothed along the confidence and across classes.
//!
//! Each loss is a number per row whose mean over a cell is the cell's estimate. Over all classes it is modelled as
//!
//!   slope · (entropy of the prediction) + θ(confidence) + noise,
//!
//! with one θ per confidence bin that follows a random walk from bin to bin. The variance of its steps is fitted by maximum likelihood
//! (empirical Bayes): with steps of zero θ is the mean of all rows, with large steps each bin keeps its own mean. The deviation of a class
//! from all classes at the same confidence is another random walk that starts near zero; its variances are fitted in the same way. All bins
//! share one noise variance, so the mean over all rows is preserved.

use std::ops::Range;

use super::oracles::RowLosses;
use super::{Decomposition, certain_loss};
use crate::loss::Loss;
use crate::numeric::weighted::WeightedMean;
use crate::router::{Mixture, Router};
use crate::table::simplex::dot;

/// Candidate variances of steps: powers of two, times the variance of a bin's mean.
const STEP_EXPONENTS: Range<i32> = -14..7;

/// Candidate variances of class deviations: powers of four, times the variance of a cell's mean.
const OFFSET_EXPONENTS: Range<i32> = -4..6;

/// The variance of a diffuse start, relative to that of the values.
const DIFFUSE_VARIANCE: f64 = 1e6;

/// A gain in log-likelihood below this counts as rounding: the smaller variance is taken.
const LIKELIHOOD_TOLERANCE: f64 = 1e-9;

/// Smooths the losses of a router's pooled cells: the total loss, the irreducible loss where it is known, and that of each measured
/// oracle, each with its own variances. Panels use the rows and variances of the irreducible loss, so that they stay above it. `mixtures` are the
/// rows of the cells, or a subset of them.
pub(crate) fn pool_cells(
    router: &Router,
    cells: &mut [Option<Decomposition>],
    mixtures: &[Mixture<'_>],
    loss: &Loss,
    oracles: &RowLosses,
) {
    let Some(groups) = router.cells().pooled_groups() else { return };
    let Some(count) = cells.iter().flatten().next().map(|cell| cell.oracles.len()) else { return };
    let rows = Rows::new(router, cells, mixtures, loss);
    let design = Design::new(router, mixtures, groups, &rows.expected);
    let (totals, _) = design.pool(&rows.total, None);
    let (irreducible, variances) = design.pool(&rows.irreducible, None);
    let pooled: Vec<[Vec<f64>; 2]> = (0..count)
        .map(|place| match oracles.measured(place) {
            Some(losses) => {
                let counted =
                    losses.iter().zip(&rows.total).map(|(&loss, total)| if total.is_nan() { f64::NAN } else { loss });
                let (pooled, _) = design.pool(&counted.collect::<Vec<_>>(), None);
                [pooled.clone(), pooled]
            }
            None => [0, 1].map(|end| {
                let of_cell = |cell: &Option<Decomposition>| cell.as_ref().map_or(f64::NAN, |d| d.oracles[place][end]);
                let of_cells: Vec<f64> = cells.iter().map(of_cell).collect();
                design.pool(&rows.like_irreducible(&of_cells, mixtures), Some(variances)).0
            }),
        })
        .collect();
    for (cell, estimate) in cells.iter_mut().enumerate() {
        let Some(estimate) = estimate else { continue };
        estimate.total = totals[cell];
        if estimate.is_known() && irreducible[cell].is_finite() {
            let least = certain_loss(loss, &estimate.centroid);
            estimate.irreducible_low = irreducible[cell].max(least);
            estimate.irreducible_high = estimate.irreducible_low;
        }
        for (ends, pooled) in estimate.oracles.iter_mut().zip(&pooled) {
            // Known values are not pooled with bounds, nor are a panel's where the irreducible loss is borrowed.
            if ends[0] == ends[1] && pooled[0][cell].is_finite() {
                ends.iter_mut().zip(pooled).for_each(|(end, pooled)| *end = pooled[cell]);
            }
        }
    }
}

/// Values per row of the router, in its order; NaN for rows outside the mixtures.
struct Rows {
    /// The entropy of the prediction, which is the loss it expects itself.
    expected: Vec<f64>,
    total: Vec<f64>,
    /// Values whose mean over a cell is the cell's irreducible loss, with about the variance of that estimate times the number of rows.
    irreducible: Vec<f64>,
    /// The irreducible loss of each cell, where it is known.
    known: Vec<Option<f64>>,
}

impl Rows {
    /// Only under the Brier loss is the irreducible loss of a cell a mean over its rows, namely of their disagreements. Under other losses
    /// its noise is taken as proportional to that of the disagreements.
    fn new(router: &Router, cells: &[Option<Decomposition>], mixtures: &[Mixture<'_>], loss: &Loss) -> Self {
        let blank = || vec![f64::NAN; router.rows().rows()];
        let mut all = Self { expected: blank(), total: blank(), irreducible: blank(), known: Vec::new() };
        let known: Vec<Option<f64>> =
            cells.iter().map(|cell| cell.as_ref().and_then(Decomposition::irreducible)).collect();
        let disagreements: Vec<WeightedMean> = mixtures.iter().map(|mixture| disagreement(*mixture)).collect();
        let (mut noise, mut irreducible) = (0.0, 0.0);
        for ((known, own), mixture) in known.iter().zip(&disagreements).zip(mixtures) {
            let weight: f64 = mixture.rows().map(|row| mixture.table().weight(row)).sum();
            if let Some(known) = known.filter(|_| own.effective_rows > 0.0) {
                noise += weight * own.mean;
                irreducible += weight * known;
            }
        }
        let ratio = if noise > 0.0 { irreducible / noise } else { 0.0 };
        let classes = router.classes().len();
        let (mut mean, mut point, mut losses) = (vec![0.0; classes], vec![0.0; classes], vec![0.0; classes]);
        for (cell, mixture) in mixtures.iter().enumerate() {
            let Some(estimate) = &cells[cell] else { continue };
            for row in mixture.rows() {
                mixture.table().dist_into(row, &mut point);
                all.expected[row] = loss.entropy(&point);
                loss.losses_into(if router.is_recalibrated() { &estimate.centroid } else { &point }, &mut losses);
                mixture.votes(row).mean_into(&mut mean);
                all.total[row] = dot(&mean, &losses);
                if let (Some(known), Some(own)) = (known[cell], mixture.votes(row).disagreement()) {
                    all.irreducible[row] = known + ratio * (own - disagreements[cell].mean);
                }
            }
        }
        all.known = known;
        all
    }

    /// Values per row whose mean over a cell is the cell's value and which vary within the cell as the irreducible losses do: values in
    /// proportion to the irreducible loss stay so when they are pooled. Where it is unknown, every row gets the cell's value.
    fn like_irreducible(&self, by_cell: &[f64], mixtures: &[Mixture<'_>]) -> Vec<f64> {
        let mut values = vec![f64::NAN; self.irreducible.len()];
        for ((mixture, value), known) in mixtures.iter().zip(by_cell).zip(&self.known) {
            for row in mixture.rows() {
                values[row] = match known {
                    Some(known) if *known > 0.0 => value * (self.irreducible[row] / known),
                    Some(_) if self.irreducible[row].is_nan() => f64::NAN,
                    _ => *value,
                };
            }
        }
        values
    }
}

/// The mean disagreement of a cell's rows with two labels or more.
fn disagreement(mixture: Mixture<'_>) -> WeightedMean {
    WeightedMean::new(
        mixture.rows().filter_map(|row| Some((mixture.table().weight(row), mixture.votes(row).disagreement()?))),
    )
}

/// The variances of the model: of a row's noise, of a step from bin to bin, of a class's start and of its steps.
#[derive(Debug, Clone, Copy)]
struct Variances {
    noise: f64,
    step: f64,
    offset: f64,
    drift: f64,
}

/// The assignment of a router's rows to cells, classes and confidence bins.
struct Design<'a> {
    router: &'a Router,
    mixtures: &'a [Mixture<'a>],
    groups: Vec<Range<usize>>,
    /// The rows of each confidence bin over all classes.
    bins: Vec<Vec<u32>>,
    /// The bin of each row.
    bin_of: Vec<u32>,
    expected: &'a [f64],
}

impl<'a> Design<'a> {
    fn new(router: &'a Router, mixtures: &'a [Mixture<'a>], groups: Vec<Range<usize>>, expected: &'a [f64]) -> Self {
        let bins = router.rows_by_confidence();
        let mut bin_of = vec![0; router.rows().rows()];
        for (bin, rows) in bins.iter().enumerate() {
            rows.iter().for_each(|&row| bin_of[row as usize] = bin as u32);
        }
        Self { router, mixtures, groups, bins, bin_of, expected }
    }

    /// The weights and values of the rows whose value is known.
    fn known<'v>(
        &'v self,
        rows: impl Iterator<Item = usize> + Clone + 'v,
        value: impl Fn(usize) -> f64 + Clone + 'v,
    ) -> impl Iterator<Item = (f64, f64)> + Clone + 'v {
        let table = self.router.rows();
        rows.map(move |row| (table.weight(row), value(row))).filter(|(_, value)| value.is_finite())
    }

    /// The least-squares slope of the rows' values on the entropies of their predictions.
    fn slope(&self, values: &[f64]) -> f64 {
        let rows = || (0..values.len()).filter(|&row| values[row].is_finite());
        let x = WeightedMean::new(self.known(rows(), |row| self.expected[row]));
        let y = WeightedMean::new(self.known(rows(), |row| values[row]));
        let together = self.known(rows(), |row| (self.expected[row] - x.mean) * (values[row] - y.mean));
        if x.variance > 1e-12 * x.mean * x.mean { WeightedMean::new(together).mean / x.variance } else { 0.0 }
    }

    /// Each cell's pooled value, NaN if no row's value is known, and the variances used: those given, or the maximum-likelihood ones.
    fn pool(&self, values: &[f64], variances: Option<Variances>) -> (Vec<f64>, Variances) {
        let slope = self.slope(values);
        let level = |row: usize| values[row] - slope * self.expected[row];
        let of_bin = |rows: &Vec<u32>| WeightedMean::new(self.known(rows.iter().map(|&row| row as usize), level));
        let bins: Vec<WeightedMean> = self.bins.iter().map(of_bin).collect();
        let noise = variances.map_or_else(|| pooled_variance(&bins), |variances| variances.noise);
        let spread = WeightedMean::new(
            bins.iter().filter(|bin| bin.effective_rows > 0.0).map(|bin| (bin.effective_rows, bin.mean)),
        )
        .variance;
        let start = DIFFUSE_VARIANCE * (noise + spread);
        let step = variances.map_or_else(|| fit_step(&bins, noise, start), |variances| variances.step);
        let curve = Walk { noise, start, step }.smooth(&bins);
        let of_cell = |mixture: &Mixture<'_>| {
            let rows = mixture.rows();
            let expected = |row: usize| slope * self.expected[row] + curve[self.bin_of[row] as usize];
            let known = |row: &usize| values[*row].is_finite();
            (
                WeightedMean::new(self.known(rows.clone(), |row| values[row])),
                WeightedMean::new(self.known(rows.filter(known), expected)).mean,
            )
        };
        let (own, centres): (Vec<WeightedMean>, Vec<f64>) = self.mixtures.iter().map(of_cell).unzip();
        let mut pooled: Vec<f64> =
            centres.iter().zip(&own).map(|(&c, own)| if own.effective_rows > 0.0 { c } else { f64::NAN }).collect();
        let mut found = Variances { noise, step, offset: 0.0, drift: 0.0 };
        if self.groups.len() > 1 {
            let beyond = |cell: usize| WeightedMean { mean: own[cell].mean - centres[cell], ..own[cell] };
            let groups: Vec<Vec<WeightedMean>> =
                self.groups.iter().map(|cells| cells.clone().map(beyond).collect()).collect();
            [found.offset, found.drift] =
                variances.map_or_else(|| fit_offsets(&groups, noise), |variances| [variances.offset, variances.drift]);
            let walk = Walk { noise, start: found.offset, step: found.drift };
            let differences = groups.iter().flat_map(|group| walk.smooth(group));
            pooled.iter_mut().zip(differences).for_each(|(value, difference)| *value += difference);
        }
        (pooled, found)
    }
}

/// The pooled variance of row values within bins.
fn pooled_variance(bins: &[WeightedMean]) -> f64 {
    let (mut rows, mut count, mut squares) = (0.0, 0.0, 0.0);
    for bin in bins.iter().filter(|bin| bin.effective_rows > 0.0) {
        rows += bin.effective_rows;
        count += 1.0;
        squares += bin.effective_rows * bin.variance;
    }
    if rows > count { squares / (rows - count) } else { 0.0 }
}

/// The mean number of rows of the non-empty bins.
fn usual_rows<'a>(bins: impl Iterator<Item = &'a WeightedMean>) -> f64 {
    let (mut rows, mut count) = (0.0, 0.0);
    for bin in bins.filter(|bin| bin.effective_rows > 0.0) {
        rows += bin.effective_rows;
        count += 1.0;
    }
    if count > 0.0 { rows / count } else { 1.0 }
}

fn fit_step(bins: &[WeightedMean], noise: f64, start: f64) -> f64 {
    let unit = noise / usual_rows(bins.iter());
    let tried = [0.0].into_iter().chain(STEP_EXPONENTS.map(|power| unit * 2_f64.powi(power)));
    likeliest(tried.map(|step| (step, Walk { noise, start, step }.likelihood(bins)))).unwrap_or(0.0)
}

/// The maximum-likelihood variances of the classes' starts and of their steps.
fn fit_offsets(groups: &[Vec<WeightedMean>], noise: f64) -> [f64; 2] {
    let unit = noise / usual_rows(groups.iter().flatten());
    let tried = || [0.0].into_iter().chain(OFFSET_EXPONENTS.map(move |power| unit * 4_f64.powi(power)));
    let both = tried().flat_map(|start| tried().map(move |step| [start, step]));
    let likelihood = |[start, step]: [f64; 2]| {
        let walk = Walk { noise, start, step };
        ([start, step], groups.iter().map(|group| walk.likelihood(group)).sum::<f64>())
    };
    likeliest(both.map(likelihood)).unwrap_or([0.0; 2])
}

/// The first candidate with the largest likelihood.
fn likeliest<T>(tried: impl Iterator<Item = (T, f64)>) -> Option<T> {
    let mut best: Option<(T, f64)> = None;
    for (size, likelihood) in tried {
        if best.as_ref().is_none_or(|(_, most)| likelihood > most + LIKELIHOOD_TOLERANCE) {
            best = Some((size, likelihood));
        }
    }
    best.map(|(size, _)| size)
}

/// A random walk observed through noisy means of rows.
#[derive(Debug, Clone, Copy)]
struct Walk {
    /// The variance of a row.
    noise: f64,
    /// The variance of the first state.
    start: f64,
    /// The variance of a step.
    step: f64,
}

/// A state's mean and variance.
type State = (f64, f64);

impl Walk {
    /// The Kalman filter: each state before and after its bin's observation, and the log-likelihood of all bins up to a constant.
    fn filter(&self, bins: &[WeightedMean]) -> (Vec<[State; 2]>, f64) {
        let (mut states, mut likelihood) = (Vec::with_capacity(bins.len()), 0.0);
        let mut before = (0.0, self.start);
        for bin in bins {
            let mut after = before;
            if bin.effective_rows > 0.0 {
                let (error, variance) = (bin.mean - before.0, before.1 + self.noise / bin.effective_rows);
                if variance > 0.0 {
                    let part = before.1 / variance;
                    after = (before.0 + part * error, before.1 * (1.0 - part));
                    likelihood -= 0.5 * (variance.ln() + error * error / variance);
                }
            }
            states.push([before, after]);
            before = (after.0, after.1 + self.step);
        }
        (states, likelihood)
    }

    fn likelihood(&self, bins: &[WeightedMean]) -> f64 {
        self.filter(bins).1
    }

    /// The Kalman smoother: the expected state of each bin given all bins.
    fn smooth(&self, bins: &[WeightedMean]) -> Vec<f64> {
        if self.noise == 0.0 && self.start > 0.0 {
            return bins.iter().map(|bin| bin.mean).collect();
        }
        let (states, _) = self.filter(bins);
        let mut smoothed: Vec<f64> = states.iter().map(|[_, after]| after.0).collect();
        for i in (0..states.len().saturating_sub(1)).rev() {
            let ([_, (mean, variance)], [(_, next), _]) = (states[i], states[i + 1]);
            let part = if next > 0.0 { variance / next } else { 0.0 };
            smoothed[i] = mean + part * (smoothed[i + 1] - mean);
        }
        smoothed
    }
}
