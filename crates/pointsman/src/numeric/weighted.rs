//! Weighted means, variances and standard errors.
//!
//! [`WeightedMean`] goes over the values twice and is accurate; [`WeightedSums`] goes over them once and can be merged and rescaled.

/// The number of standard errors on each side of a 95 % interval.
pub(crate) const Z_95: f64 = 1.96;

/// Σwx/Σw of (weight, value) pairs.
pub(crate) fn weighted_mean(values: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (mut weight, mut sum) = (0.0, 0.0);
    for (w, x) in values {
        weight += w;
        sum += w * x;
    }
    sum / weight
}

/// A weighted mean and the spread of the values around it; all zero without values.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WeightedMean {
    /// Σw.
    pub(crate) weight: f64,
    /// x̄ = Σwx/Σw.
    pub(crate) mean: f64,
    /// (Σw)²/Σw².
    pub(crate) effective_rows: f64,
    /// Σw(x − x̄)²/Σw.
    pub(crate) variance: f64,
    /// Σw²(x − x̄)².
    pub(crate) squared_deviations: f64,
}

impl WeightedMean {
    /// The mean of (weight, value) pairs.
    pub(crate) fn new(values: impl Iterator<Item = (f64, f64)> + Clone) -> Self {
        Self::around(weighted_mean(values.clone()), values)
    }

    /// The spread of values around a mean that was computed elsewhere.
    pub(crate) fn around(mean: f64, values: impl Iterator<Item = (f64, f64)>) -> Self {
        let (mut weight, mut squared_weights, mut spread, mut squared_deviations) = (0.0, 0.0, 0.0, 0.0);
        for (w, x) in values {
            weight += w;
            squared_weights += w * w;
            spread += w * (x - mean).powi(2);
            squared_deviations += (w * (x - mean)).powi(2);
        }
        if weight == 0.0 {
            return Self::default();
        }
        let effective_rows = weight * weight / squared_weights;
        Self { weight, mean, effective_rows, variance: spread / weight, squared_deviations }
    }

    /// √(Σw²(x − x̄)²)/Σw.
    pub(crate) fn standard_error(&self) -> f64 {
        self.squared_deviations.sqrt() / self.weight
    }
}

/// Sums from which a weighted mean, its variance and its standard error follow.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WeightedSums {
    /// Σw.
    pub(crate) weight: f64,
    /// Σwx.
    pub(crate) sum: f64,
    /// Σwx².
    weighted_squares: f64,
    /// Σ(wx)².
    squares: f64,
    /// Σw².
    squared_weights: f64,
    /// Σw²x.
    crossed: f64,
}

impl WeightedSums {
    pub(crate) fn add(&mut self, weight: f64, value: f64) {
        self.add_with(weight, value, 0.0);
    }

    /// Adds a value on which other values depend, so that it changes their weighted sum by `influence`. That counts in the mean and the
    /// standard error, not in the variance.
    pub(crate) fn add_with(&mut self, weight: f64, value: f64, influence: f64) {
        self.weight += weight;
        self.sum += weight * value + influence;
        self.weighted_squares += weight * value * value;
        self.squares += (weight * value + influence).powi(2);
        self.squared_weights += weight * weight;
        self.crossed += weight * weight * value + weight * influence;
    }

    /// Adds other values, their weights multiplied by a factor.
    pub(crate) fn add_scaled(&mut self, other: &Self, factor: f64) {
        self.weight += factor * other.weight;
        self.sum += factor * other.sum;
        self.weighted_squares += factor * other.weighted_squares;
        self.squares += factor * factor * other.squares;
        self.squared_weights += factor * factor * other.squared_weights;
        self.crossed += factor * factor * other.crossed;
    }

    pub(crate) fn mean(&self) -> f64 {
        self.sum / self.weight
    }

    /// The effective number of rows, (Σw)²/Σw²; NaN without values.
    pub(crate) fn effective_rows(&self) -> f64 {
        self.weight * self.weight / self.squared_weights
    }

    /// Σw(x − x̄)²/Σw; zero without values.
    pub(crate) fn variance(&self) -> f64 {
        if self.weight > 0.0 { (self.weighted_squares / self.weight - self.mean().powi(2)).max(0.0) } else { 0.0 }
    }

    /// √(Σw²(x − x̄)²)/Σw, corrected by n/(n − 1) for n effective rows; NaN for one row.
    pub(crate) fn standard_error(&self) -> f64 {
        let mean = self.mean();
        let spread = self.squares - 2.0 * mean * self.crossed + mean * mean * self.squared_weights;
        // A tiny spread is the rounding of equal values.
        let spread = if spread > 1e-12 * self.squares { spread } else { 0.0 };
        let rows = self.effective_rows();
        if rows < 1.5 { f64::NAN } else { (spread * rows / (rows - 1.0)).sqrt() / self.weight }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pass_and_two_passes_agree() {
        let values = [(1.0, 0.2), (2.0, 0.5), (0.5, -0.3), (1.5, 0.9)];
        let (two, mut one) = (WeightedMean::new(values.into_iter()), WeightedSums::default());
        values.iter().for_each(|&(w, x)| one.add(w, x));
        let n = two.effective_rows;
        let pairs = [
            (two.mean, one.mean()),
            (n, one.effective_rows()),
            (two.variance, one.variance()),
            (two.standard_error() * (n / (n - 1.0)).sqrt(), one.standard_error()),
        ];
        assert!(pairs.iter().all(|(a, b)| (a - b).abs() < 1e-14), "{pairs:?}");
        let mut halves = WeightedSums::default();
        halves.add_scaled(&one, 0.5);
        assert_eq!((halves.mean(), halves.weight), (one.mean(), 2.5));
        assert!((halves.standard_error() - one.standard_error()).abs() < 1e-14);
    }
}
