//! Confidence bounds for the mean of bounded values by betting (the hedged capital process of Waudby-Smith and Ramdas).
//!
//! To test that the mean is m, a bettor stakes on every value in turn a part of the capital that depends on earlier values only. If m is
//! the mean, the capital is a nonnegative martingale, so it exceeds 1/α with probability at most α. The values m that are not rejected
//! form the confidence set. Unlike Hoeffding's interval it adapts to the variance, and a one-sided bound stays valid if conditional means
//! differ from the mean on the conservative side.

use super::interval::Interval;

/// The largest part of the capital that can be lost on one value.
const MAX_LOSS: f64 = 0.75;

/// Bisection steps for the bound; its error is 10⁻¹² of the range, on the conservative side.
const BISECTIONS: usize = 40;

/// Factors multiplied before taking a logarithm; each is between ¼ and about 10, so the product does not overflow.
const FACTORS_PER_LOGARITHM: usize = 16;

/// Values within a known range, in an order independent of the values, with weights relative to the largest possible weight. Without
/// weights all are one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample<'a> {
    pub(super) values: &'a [f64],
    pub(super) range: [f64; 2],
    pub(super) weights: Option<&'a [f64]>,
}

impl Sample<'_> {
    /// A lower confidence bound for the mean, or E wx / E w with weights: it exceeds the mean with probability at most `alpha`.
    pub(super) fn lower(self, alpha: f64) -> f64 {
        let [low, high] = self.range;
        if self.values.is_empty() || low >= high {
            return low;
        }
        // Rounding may push a value out of its range.
        let unit = |x: &f64| ((x - low) / (high - low)).clamp(0.0, 1.0);
        low + (high - low) * lower(self.values.iter().map(unit).collect(), self.weights, alpha)
    }

    /// An upper confidence bound for the mean: it is below the mean with probability at most `alpha`.
    pub(super) fn upper(self, alpha: f64) -> f64 {
        let [low, high] = self.range;
        if self.values.is_empty() || low >= high {
            return high;
        }
        let unit = |x: &f64| ((high - x) / (high - low)).clamp(0.0, 1.0);
        high - (high - low) * lower(self.values.iter().map(unit).collect(), self.weights, alpha)
    }

    /// Both bounds, each with error probability `alpha`.
    pub(super) fn interval(self, alpha: f64) -> Interval {
        let (low, high) = (self.lower(alpha), self.upper(alpha));
        // Every mean was rejected; return the whole range.
        if low <= high { Interval::new(low, high) } else { Interval::new(self.range[0], self.range[1]) }
    }
}

/// The lower confidence bound for the mean of values within [0, 1].
fn lower(values: Vec<f64>, weights: Option<&[f64]>, alpha: f64) -> f64 {
    let goal = -alpha.ln();
    let bets = bets(values, weights, goal);
    if log_capital(&bets, 0.0) < goal {
        return 0.0;
    }
    // The capital is decreasing in m, because every factor is.
    let (mut refuted, mut possible) = (0.0, 1.0);
    for _ in 0..BISECTIONS {
        let middle = f64::midpoint(refuted, possible);
        if log_capital(&bets, middle) < goal {
            possible = middle;
        } else {
            refuted = middle;
        }
    }
    refuted
}

/// A value, its weight, and the stake on the mean being larger.
struct Bet {
    value: f64,
    weight: f64,
    stake: f64,
}

/// The bets, with stakes that are optimal for the running variance and this number of values.
fn bets(values: Vec<f64>, weights: Option<&[f64]>, goal: f64) -> Vec<Bet> {
    let n = values.len() as f64;
    let (mut sum, mut mass, mut squares) = (0.5, 1.0, 0.25);
    let bet = |(i, value): (usize, f64)| {
        let weight = weights.map_or(1.0, |weights| weights[i]);
        let stake = (2.0 * goal * (i + 1) as f64 / (n * squares)).sqrt();
        sum += weight * value;
        mass += weight;
        squares += (weight * (value - sum / mass)).powi(2);
        Bet { value, weight, stake }
    };
    values.into_iter().enumerate().map(bet).collect()
}

/// The logarithm of the capital of the bets against a mean of `m` or less.
fn log_capital(bets: &[Bet], m: f64) -> f64 {
    let most = MAX_LOSS / m;
    let factor = |bet: &Bet| 1.0 + bet.stake.min(most) * bet.weight * (bet.value - m);
    bets.chunks(FACTORS_PER_LOGARITHM).map(|block| block.iter().map(factor).product::<f64>().ln()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_distr::{Beta, Distribution};
    use rand_pcg::Pcg64;
    use rand_pcg::rand_core::SeedableRng;

    fn sample(values: &[f64]) -> Sample<'_> {
        Sample { values, range: [0.0, 1.0], weights: None }
    }

    /// Misses of a nominal 90 % interval over hundreds of samples, and its mean width.
    fn misses(draw: &mut dyn FnMut() -> f64, mean: f64, n: usize, rounds: usize) -> (f64, f64) {
        let (mut missed, mut width) = (0, 0.0);
        for _ in 0..rounds {
            let values: Vec<f64> = (0..n).map(|_| draw()).collect();
            let interval = sample(&values).interval(0.05);
            missed += usize::from(!interval.contains(mean));
            width += interval.width();
        }
        (missed as f64 / rounds as f64, width / rounds as f64)
    }

    #[test]
    fn intervals_have_nominal_coverage() {
        let mut random = Pcg64::seed_from_u64(5);
        for p in [0.02, 0.3, 0.5, 0.97] {
            for n in [10, 100, 400] {
                let uniform = rand_distr::Uniform::new(0.0, 1.0).unwrap();
                let mut draw = || f64::from(u8::from(uniform.sample(&mut random) < p));
                let (missed, width) = misses(&mut draw, p, n, 500);
                println!("Bernoulli({p}), n = {n}: {missed:.3} missed, width {width:.3}");
                assert!(missed <= 0.1, "Bernoulli({p}), n = {n}: {missed}");
            }
        }
        for (a, b) in [(0.3, 0.3), (8.0, 2.0), (1.0, 20.0)] {
            let beta = Beta::new(a, b).unwrap();
            let (missed, width) = misses(&mut || beta.sample(&mut random), a / (a + b), 200, 500);
            println!("Beta({a}, {b}): {missed:.3} missed, width {width:.3}");
            assert!(missed <= 0.1 && width < 0.15, "Beta({a}, {b}): {missed}, {width}");
        }
    }

    /// The weighted mean E wx / E w is far from the unweighted mean.
    #[test]
    fn weighted_intervals_have_nominal_coverage() {
        let mut random = Pcg64::seed_from_u64(6);
        let uniform = rand_distr::Uniform::new(0.0, 1.0).unwrap();
        let mut missed = 0;
        for _ in 0..500 {
            let rare: Vec<bool> = (0..300).map(|_| uniform.sample(&mut random) < 0.2).collect();
            let values: Vec<f64> =
                rare.iter().map(|&rare| if rare { 0.8 } else { 0.1 } + 0.1 * uniform.sample(&mut random)).collect();
            let weights: Vec<f64> = rare.iter().map(|&rare| if rare { 1.0 } else { 0.25 }).collect();
            let interval = Sample { values: &values, range: [0.0, 1.0], weights: Some(&weights) }.interval(0.05);
            missed += usize::from(!interval.contains((0.2 * 0.85 + 0.8 * 0.25 * 0.15) / (0.2 + 0.8 * 0.25)));
            assert!(interval.width() < 0.3);
        }
        assert!(missed <= 50, "{missed} of 500 missed");
    }

    #[test]
    fn capital_is_decreasing_in_the_mean() {
        let mut random = Pcg64::seed_from_u64(7);
        let beta = Beta::new(0.5, 1.5).unwrap();
        let bets = bets((0..60).map(|_| beta.sample(&mut random)).collect(), None, 5.0);
        let capitals: Vec<f64> = (0..=1000).map(|m| log_capital(&bets, f64::from(m) / 1000.0)).collect();
        assert!(capitals.windows(2).all(|pair| pair[0] >= pair[1]));
    }

    #[test]
    fn degenerate_samples_have_bounds() {
        let interval = |values: &[f64], range| Sample { values, range, weights: None }.interval(0.01);
        assert_eq!(interval(&[], [0.0, 2.0]), Interval::new(0.0, 2.0));
        assert_eq!(interval(&[3.0; 9], [3.0, 3.0]), Interval::new(3.0, 3.0));
        let zeros = interval(&[0.0; 1000], [0.0, 1.0]);
        assert!(zeros.low == 0.0 && zeros.high < 0.02, "{zeros:?}");
        let ones = interval(&[1.0 + 1e-15; 1000], [0.0, 1.0]);
        assert!(ones.high == 1.0 && ones.low > 0.98, "{ones:?}");
        let shifted = interval(&[-1.0, 1.0, 0.0, -1.0], [-1.0, 1.0]);
        assert!(shifted.low >= -1.0 && shifted.high <= 1.0);
    }
}
