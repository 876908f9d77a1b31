//! Draws of a cell's cost differences after more items or labels.

use std::f64::consts::{PI, SQRT_2};

use statrs::function::erf::erfc;

use super::difference_prior::DifferencePrior;
use super::forecast::WIDENING;

/// The largest gap between the two limits of a difference that has an unbiased estimate.
const MAX_GAP_IF_UNBIASED: f64 = 1e-12;

/// Draws of the cost differences of a cell after more items or labels.
pub(super) struct FutureDifferences {
    pub(super) actions: usize,
    /// For each draw and pair of actions, the largest possible cost difference, without sampling errors.
    pub(super) highs: Vec<Vec<f64>>,
    /// For each pair, the distance of the upper end of the interval from `highs`.
    pub(super) reach: Vec<f64>,
    /// For each pair, the standard error of the difference.
    pub(super) errors: Vec<f64>,
    /// For each pair, the expected shrinkage of the difference towards the prior mean.
    pub(super) shrinkage: Vec<f64>,
}

impl FutureDifferences {
    /// The draws centred at the present difference, if that has an unbiased estimate, with their deviations multiplied by [`WIDENING`]. No law
    /// of p* predicts the direction of the change better.
    pub(super) fn centred(mut self, now: &[f64]) -> Self {
        for (a, b) in (0..self.actions).flat_map(|a| (0..a).map(move |b| (a, b))) {
            let (there, back) = (a * self.actions + b, b * self.actions + a);
            if (now[there] + now[back]).abs() <= MAX_GAP_IF_UNBIASED {
                let (centre, mean) = ((now[there] - now[back]) / 2.0, self.moments(there).0);
                for highs in &mut self.highs {
                    let middle = (highs[there] - highs[back]) / 2.0;
                    let by = centre + WIDENING * (middle - mean) - middle;
                    highs[there] += by;
                    highs[back] -= by;
                }
            }
        }
        self
    }

    /// The draws shrunk towards the prior, since large estimated differences are overestimates on average. `estimates` are the present
    /// differences that the policy uses, for each pair.
    pub(super) fn shrunk(mut self, prior: &DifferencePrior, estimates: &[f64]) -> Self {
        for (a, b) in (0..self.actions).flat_map(|a| (0..a).map(move |b| (a, b))) {
            let (there, back) = (a * self.actions + b, b * self.actions + a);
            let (mean, step) = self.moments(there);
            let (variance, error) = (prior.variance(a, b), self.errors[there].powi(2));
            let shrinkage = step / (step + variance + error);
            (self.shrinkage[there], self.shrinkage[back]) = (shrinkage, shrinkage);
            let shift = match prior.mean_of_all_cells(a, b) {
                Some(expected) => shrinkage * (expected - mean),
                // With ever more items the expected difference is the policy's estimate.
                None if step > 0.0 => step / (step + error) * (estimates[there] - mean),
                None => 0.0,
            };
            for highs in &mut self.highs {
                let middle = (highs[there] - highs[back]) / 2.0;
                let by = shift + ((1.0 - shrinkage).sqrt() - 1.0) * (middle - mean);
                highs[there] += by;
                highs[back] -= by;
            }
        }
        self
    }

    /// The share of draws in which one action is certainly at least as good as every other.
    pub(super) fn chance(&self) -> f64 {
        let certain = |highs: &[f64], a: usize| {
            (0..self.actions).filter(|&b| b != a).all(|b| {
                let pair = a * self.actions + b;
                highs[pair] + self.reach[pair] <= 0.0
            })
        };
        let determined = |highs: &&Vec<f64>| (0..self.actions).any(|a| certain(highs, a));
        self.highs.iter().filter(determined).count() as f64 / self.highs.len() as f64
    }

    /// The expected saving from taking the action that then seems best instead of `taken`, among some `others`. `ahead` is the estimated
    /// advantage of each action over `taken` now. Of several actions the one with the largest expected saving counts.
    pub(super) fn gain(
        &self,
        taken: usize,
        ahead: &[f64],
        prior: &DifferencePrior,
        others: impl Fn(usize) -> bool,
    ) -> Saving {
        let gain = |other: usize| self.later_advantage([taken, other], ahead[other], prior).gain();
        (0..self.actions).filter(|&other| other != taken && others(other)).map(gain).fold(Saving::NONE, Saving::larger)
    }

    /// The later estimate of the advantage of the second action over the first; `ahead` is the estimate now.
    pub(super) fn later_advantage(
        &self,
        [taken, other]: [usize; 2],
        ahead: f64,
        prior: &DifferencePrior,
    ) -> LaterAdvantage {
        let pair = taken * self.actions + other;
        let (variance, moved) = (prior.variance(taken, other), self.moments(pair).1);
        match prior.mean_of_all_cells(taken, other) {
            Some(expected) => {
                // The draws are those of the certificate's statistics before they were shrunk, the errors those of the policy's estimates.
                let scale = prior.scale(taken, other).powi(2);
                let step = scale * moved / (1.0 - self.shrinkage[pair]).max(f64::MIN_POSITIVE);
                let error = scale * self.errors[pair].powi(2);
                let shrinkage = step / (step + variance + error);
                let trust = variance / (variance + error);
                LaterAdvantage {
                    mean: ahead + shrinkage * (expected - ahead),
                    deviation: (step * (1.0 - shrinkage)).sqrt(),
                    trust,
                    prior_mean: expected,
                    left: trust * error,
                }
            }
            // The policy's estimates combine the prior with the rows already, now and later.
            None => {
                let error = self.errors[pair].powi(2);
                let trust = variance / (variance + error);
                let deviation = trust * moved.sqrt();
                LaterAdvantage { mean: ahead, deviation, trust: 1.0, prior_mean: 0.0, left: trust * error }
            }
        }
    }

    /// The mean and variance over the draws of the midpoint of a pair's difference.
    fn moments(&self, pair: usize) -> (f64, f64) {
        let back = pair % self.actions * self.actions + pair / self.actions;
        let middles = || self.highs.iter().map(|highs| (highs[pair] - highs[back]) / 2.0);
        let draws = self.highs.len() as f64;
        let mean = middles().sum::<f64>() / draws;
        (mean, middles().map(|x| (x - mean).powi(2)).sum::<f64>() / (draws - 1.0))
    }
}

/// The later estimate of the advantage of an action over another, which has a normal distribution.
#[derive(Debug, Clone, Copy)]
pub(super) struct LaterAdvantage {
    pub(super) mean: f64,
    pub(super) deviation: f64,
    /// The weight of the estimate in the expected advantage; the rest is that of the prior mean.
    pub(super) trust: f64,
    pub(super) prior_mean: f64,
    /// The variance of the true advantage given the estimate.
    pub(super) left: f64,
}

impl LaterAdvantage {
    /// An estimate that does not change.
    pub(super) fn unchanged(ahead: f64) -> Self {
        Self { mean: ahead, deviation: 0.0, trust: 1.0, prior_mean: 0.0, left: 0.0 }
    }

    /// The estimate by a standard normal number.
    pub(super) fn estimate(&self, normal: f64) -> f64 {
        self.mean + self.deviation * normal
    }

    /// The expected advantage if this is the estimate.
    pub(super) fn expected(&self, estimate: f64) -> f64 {
        self.trust * estimate + (1.0 - self.trust) * self.prior_mean
    }

    /// The saving of taking the other action if its estimated advantage is positive: that estimate, shrunk towards the prior.
    fn gain(&self) -> Saving {
        let [share, sum, squares] = positive_part(self.mean, self.deviation);
        let (trust, shift) = (self.trust, (1.0 - self.trust) * self.prior_mean);
        let mean = trust * sum + shift * share;
        let square = trust * trust * squares + 2.0 * trust * shift * sum + (shift * shift + self.left) * share;
        Saving::from_moments(mean, square)
    }
}

/// What labels save, as a random variable: they save nothing unless they change the action.
#[derive(Debug, Clone, Copy)]
pub(super) struct Saving {
    pub(super) mean: f64,
    pub(super) variance: f64,
}

impl Saving {
    pub(super) const NONE: Self = Self { mean: 0.0, variance: 0.0 };

    /// From the means of the saving and of its square.
    pub(super) fn from_moments(mean: f64, square: f64) -> Self {
        Self { mean, variance: (square - mean * mean).max(0.0) }
    }

    /// The one with the larger mean.
    pub(super) fn larger(self, other: Self) -> Self {
        if other.mean > self.mean { other } else { self }
    }

    /// The one with the smaller mean.
    pub(super) fn smaller(self, other: Self) -> Self {
        if other.mean < self.mean { other } else { self }
    }
}

/// P(x > 0), E max(0, x) and E max(0, x)² for a normal x.
fn positive_part(mean: f64, deviation: f64) -> [f64; 3] {
    if deviation <= 0.0 {
        return [f64::from(u8::from(mean > 0.0)), mean.max(0.0), mean.max(0.0).powi(2)];
    }
    let z = mean / deviation;
    let share = 0.5 * erfc(-z / SQRT_2);
    let density = deviation * (-z * z / 2.0).exp() / (2.0 * PI).sqrt();
    let squares = (mean * mean + deviation * deviation) * share + mean * density;
    [share, (mean * share + density).max(0.0), squares.max(0.0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positive_part_matches_numerical_integration() {
        assert_eq!((positive_part(0.3, 0.0), positive_part(-0.5, 0.0)), ([1.0, 0.3, 0.3 * 0.3], [0.0; 3]));
        for (mean, deviation) in [(-0.05, 0.08), (0.02, 0.01), (0.0, 1.0)] {
            let density = |x: f64| (-((x - mean) / deviation).powi(2) / 2.0).exp() / (deviation * (2.0 * PI).sqrt());
            let width = 1e-5 * (f64::abs(mean) + 8.0 * deviation);
            let points = || (0..100_000).map(|i| (f64::from(i) + 0.5) * width);
            for (power, found) in positive_part(mean, deviation).into_iter().enumerate() {
                let integral = points().map(|x| x.powi(power as i32) * density(x) * width).sum::<f64>();
                assert!((found - integral).abs() < 1e-6, "{mean} {deviation}, power {power}: {found}, not {integral}");
            }
        }
    }

    /// The saving of labels has the stated mean and variance in draws of the true advantage and of its later estimate.
    #[test]
    fn savings_have_the_stated_mean_and_variance() {
        use rand_distr::{Distribution, StandardNormal};
        use rand_pcg::Pcg64;
        use rand_pcg::rand_core::SeedableRng;

        let mut random = Pcg64::seed_from_u64(5);
        let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
        // A prior of mean -0.1 and variance 0.04, and an estimate with a standard error of 0.1.
        let (prior_mean, prior, error) = (-0.1, 0.2_f64, 0.1_f64);
        let trust = prior.powi(2) / (prior.powi(2) + error.powi(2));
        let (mut sum, mut squares) = (0.0, 0.0);
        const DRAWS: usize = 400_000;
        for _ in 0..DRAWS {
            let truth = prior_mean + prior * normal();
            let saved = if truth + error * normal() > 0.0 { truth } else { 0.0 };
            sum += saved / DRAWS as f64;
            squares += saved * saved / DRAWS as f64;
        }
        let deviation = prior.hypot(error);
        let later = LaterAdvantage { mean: prior_mean, deviation, trust, prior_mean, left: trust * error.powi(2) };
        let found = later.gain();
        assert!((found.mean - sum).abs() < 1e-3, "{found:?} {sum}");
        assert!((found.variance.sqrt() - (squares - sum * sum).sqrt()).abs() < 1e-3, "{found:?} {squares}");
    }

    /// One action is certain only if it beats every other one.
    #[test]
    fn cells_are_determined_by_an_action_that_beats_all_others() {
        // Of three actions the first beats the second, but not the third.
        let highs = vec![0.0, -0.2, 0.1, 0.3, 0.0, 0.4, 0.1, 0.3, 0.0];
        let draws = |reach: f64, highs: &[f64]| FutureDifferences {
            actions: 3,
            highs: vec![highs.to_vec(); 4],
            reach: vec![reach; 9],
            errors: vec![0.0; 9],
            shrinkage: vec![0.0; 9],
        };
        assert_eq!(draws(0.0, &highs).chance(), 0.0);
        let mut beaten = highs.clone();
        beaten[2] = -0.1;
        assert_eq!((draws(0.05, &beaten).chance(), draws(0.15, &beaten).chance()), (1.0, 0.0));
    }
}
