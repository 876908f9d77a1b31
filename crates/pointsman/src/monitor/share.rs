//! Shares of rows: exact confidence limits, and a test of two shares.

use statrs::function::beta::checked_beta_reg;

/// Clopper–Pearson limits of a share from `count` of `rows` rows; each has error probability at most `alpha`.
///
/// ```
/// let [low, high] = pointsman::monitor::share_limits(30.0, 1000.0, 0.005);
/// assert!((low - 0.0178682).abs() < 1e-7 && (high - 0.0468025).abs() < 1e-7);
/// ```
#[must_use]
pub fn share_limits(count: f64, rows: f64, alpha: f64) -> [f64; 2] {
    let (rest, known) = ((rows - count).max(0.0), rows > 0.0);
    let low = if known && count > 0.0 { beta_quantile(alpha, count, rest + 1.0) } else { 0.0 };
    let high = if known && rest > 0.0 { beta_quantile(1.0 - alpha, count + 1.0, rest) } else { 1.0 };
    [low, high]
}

/// The `p` quantile of a beta distribution, by bisection.
fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if beta_tail(a, b, middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// The regularised incomplete beta function; 1 where it is undefined, so that nothing is significant.
fn beta_tail(a: f64, b: f64, x: f64) -> f64 {
    checked_beta_reg(a, b, x).unwrap_or(1.0)
}

/// A number of rows inside a set, of all rows. Weighted rows count as (Σw)²/Σw².
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Count {
    pub(super) inside: f64,
    pub(super) all: f64,
}

impl Count {
    pub(super) fn share(self) -> f64 {
        if self.all > 0.0 { self.inside / self.all } else { 0.0 }
    }
}

/// The p-value of the second share being this much larger, or smaller, than the first if they differ by at most a factor of 1 + tolerance.
pub(super) fn p_value(before: Count, now: Count, tolerance: f64) -> f64 {
    if before.all <= 0.0 || now.all <= 0.0 {
        return 1.0;
    }
    let odds = |factor: f64| now.all * factor / (now.all * factor + before.all);
    if now.share() >= before.share() {
        beta_tail(now.inside, before.inside + 1.0, odds(1.0 + tolerance))
    } else {
        beta_tail(before.inside, now.inside + 1.0, 1.0 - odds(1.0 / (1.0 + tolerance)))
    }
}
