//! E-processes: evidence against a hypothesis about a mean, by bets with fixed stakes.
//!
//! For values z in [0, 1] and the hypothesis "their mean is at most m", a stake κ multiplies its capital at every value by
//! F = 1 + κw(z/m − 1), where w ≤ 1 is the value's weight. Under the hypothesis the conditional expectation of F is at most one, so the
//! mean capital over all stakes ever exceeds 1/δ with probability at most δ. Stakes are fixed, so the final capital does not depend on the
//! order of the values.

/// The stakes κ = 0.75·2⁻ʰ.
const STAKES: [f64; 8] = [0.75, 0.375, 0.1875, 0.093_75, 0.046_875, 0.023_437_5, 0.011_718_75, 0.005_859_375];

/// The evidence of values in [0, 1] that their mean is above, or below, a threshold.
///
/// ```
/// use pointsman::certify::EProcess;
/// let mut evidence = EProcess::above(0.25);
/// for _ in 0..20 {
///     evidence.add(0.6, 1.0);
/// }
/// // "The mean is at most a quarter" is rejected at the level 0.001.
/// assert!(evidence.ln_value() > 1000_f64.ln());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct EProcess {
    /// The largest mean that the hypothesis allows, in the direction of the evidence.
    threshold: f64,
    /// Whether values count as 1 − z.
    mirrored: bool,
    /// The logarithm of each stake's capital.
    ln_capital: [f64; STAKES.len()],
}

impl EProcess {
    /// Evidence that the mean is above `mean`, which lies between 0 and 1.
    #[must_use]
    pub fn above(mean: f64) -> Self {
        Self { threshold: mean, mirrored: false, ln_capital: [0.0; STAKES.len()] }
    }

    /// Evidence that the mean is below `mean`, which lies between 0 and 1.
    #[must_use]
    pub fn below(mean: f64) -> Self {
        Self { threshold: 1.0 - mean, mirrored: true, ln_capital: [0.0; STAKES.len()] }
    }

    /// Adds a value in [0, 1] of a weight in [0, 1].
    pub fn add(&mut self, value: f64, weight: f64) {
        self.add_repeated(value, weight, 1);
    }

    /// Adds the same value several times.
    pub(crate) fn add_repeated(&mut self, value: f64, weight: f64, times: usize) {
        let value = if self.mirrored { 1.0 - value } else { value };
        let surplus = weight * (value / self.threshold - 1.0);
        for (capital, stake) in self.ln_capital.iter_mut().zip(STAKES) {
            *capital += times as f64 * (stake * surplus).ln_1p();
        }
    }

    /// The natural logarithm of the e-value, the mean capital of all stakes.
    #[must_use]
    pub fn ln_value(&self) -> f64 {
        let most = self.ln_capital.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mean = self.ln_capital.iter().map(|capital| (capital - most).exp()).sum::<f64>() / STAKES.len() as f64;
        most + mean.ln()
    }
}
