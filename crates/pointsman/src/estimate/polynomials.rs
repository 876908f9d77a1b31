//! Polynomial approximations of an entropy of two classes; k labels estimate a polynomial of degree k without bias.

use super::enclosure::mean_over_subsets;
use super::identified::{binomial_law, loss_kinks};
use crate::loss::{Loss, Shape};

/// The largest degree. Coefficients, and with them the variance, grow with the degree.
const MAX_DEGREE: usize = 5;

/// Points to which a polynomial is fitted.
const FITTED_POINTS: usize = 64;

/// Points from which its error is bounded.
const CHECKED_POINTS: usize = 1000;

/// Steps of the fit, each closer to the minimax polynomial.
const FIT_STEPS: usize = 40;

/// A polynomial in the share of the second class, by its Bernstein coefficients, and how far the entropy can be below and above it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EntropyPolynomial {
    coefficients: Vec<f64>,
    errors: [f64; 2],
}

impl EntropyPolynomial {
    /// The degree for items with this many labels; `None` below two.
    pub(crate) fn degree(labels: u64) -> Option<usize> {
        (labels >= 2).then_some(labels.min(MAX_DEGREE as u64) as usize)
    }

    /// All degrees.
    pub(crate) const DEGREES: std::ops::RangeInclusive<usize> = 2..=MAX_DEGREE;

    /// Fits a nearly minimax polynomial to the entropy of a loss of two classes.
    ///
    /// The errors hold everywhere, not only on a grid: between two grid points of distance h a polynomial differs from its chord by at most
    /// h²/8 times its second derivative, and a concave function is above its chord and below the extensions of the neighbouring chords.
    pub(crate) fn fit(loss: &Loss, degree: usize) -> Self {
        let entropy = |x: f64| loss.entropy(&[1.0 - x, x]);
        let kinks = if matches!(loss.shape(), Shape::ZeroOne) { vec![0.5] } else { loss_kinks(loss) };
        let points = points(FITTED_POINTS, &kinks);
        let basis: Vec<Vec<f64>> = points.iter().map(|&x| binomial_law(degree, x)).collect();
        let values: Vec<f64> = points.iter().map(|&x| entropy(x)).collect();
        // Lawson's iteration: weighted least squares, with weights multiplied by the errors.
        let mut weights = vec![1.0 / points.len() as f64; points.len()];
        let mut coefficients = vec![0.0; degree + 1];
        for _ in 0..FIT_STEPS {
            coefficients = least_squares(&basis, &values, &weights);
            let errors = basis.iter().zip(&values).map(|(row, value)| (value - dot(row, &coefficients)).abs());
            weights.iter_mut().zip(errors).for_each(|(weight, error)| *weight *= error);
            let sum: f64 = weights.iter().sum();
            if sum <= f64::MIN_POSITIVE {
                break;
            }
            weights.iter_mut().for_each(|weight| *weight /= sum);
        }
        let errors = largest_errors(&coefficients, entropy, &self::points(CHECKED_POINTS, &kinks));
        Self { coefficients, errors }
    }

    /// How far the entropy can be below and above the expectation of [`Self::statistic`].
    pub(crate) fn errors(&self) -> [f64; 2] {
        self.errors
    }

    /// The unbiased estimate of the polynomial if `count` of `labels` labels are of the second class.
    pub(crate) fn statistic(&self, labels: u64, count: u64) -> f64 {
        mean_over_subsets(&self.coefficients, labels, count)
    }
}

/// Points of [0, 1] that are denser near its ends, and the kinks.
fn points(many: usize, kinks: &[f64]) -> Vec<f64> {
    let place = |i: usize| (std::f64::consts::FRAC_PI_2 * i as f64 / many as f64).sin().powi(2);
    let mut points: Vec<f64> = (0..=many).map(place).chain(kinks.iter().copied()).collect();
    points.sort_by(f64::total_cmp);
    points.dedup();
    points
}

/// The largest distance of the entropy below and above the polynomial.
fn largest_errors(coefficients: &[f64], entropy: impl Fn(f64) -> f64, points: &[f64]) -> [f64; 2] {
    let degree = coefficients.len() - 1;
    let second = coefficients.windows(3).map(|c| (c[0] - 2.0 * c[1] + c[2]).abs()).fold(0.0, f64::max);
    let curvature = (degree * (degree - 1)) as f64 * second;
    let values: Vec<f64> = points.iter().map(|&x| entropy(x)).collect();
    let above: Vec<f64> =
        points.iter().zip(&values).map(|(&x, value)| dot(&binomial_law(degree, x), coefficients) - value).collect();
    let slope = |i: usize| (values[i + 1] - values[i]) / (points[i + 1] - points[i]);
    let mut errors = [0.0_f64; 2];
    for i in 0..points.len() - 1 {
        let width = points[i + 1] - points[i];
        let bend = curvature * width * width / 8.0;
        let before = if i > 0 { slope(i - 1) - slope(i) } else { f64::INFINITY };
        let after = if i + 2 < points.len() { slope(i) - slope(i + 1) } else { f64::INFINITY };
        let sag = width * before.min(after).max(0.0);
        errors[0] = errors[0].max(above[i].max(above[i + 1]) + bend);
        errors[1] = errors[1].max((-above[i]).max(-above[i + 1]) + bend + sag);
    }
    errors
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The coefficients c that minimise Σ weight·(value − row·c)².
fn least_squares(rows: &[Vec<f64>], values: &[f64], weights: &[f64]) -> Vec<f64> {
    let n = rows.first().map_or(0, Vec::len);
    // The normal equations, with the right-hand side as last column.
    let mut equations = vec![vec![0.0; n + 1]; n];
    for ((row, value), weight) in rows.iter().zip(values).zip(weights) {
        for (equation, x) in equations.iter_mut().zip(row) {
            let scaled = weight * x;
            equation.iter_mut().zip(row.iter().chain([value])).for_each(|(sum, y)| *sum += scaled * y);
        }
    }
    for column in 0..n {
        let largest = (column..n).max_by(|&a, &b| equations[a][column].abs().total_cmp(&equations[b][column].abs()));
        equations.swap(column, largest.unwrap_or(column));
        let pivot = equations[column].clone();
        if pivot[column] == 0.0 {
            continue;
        }
        for (_, equation) in equations.iter_mut().enumerate().filter(|(place, _)| *place != column) {
            let factor = equation[column] / pivot[column];
            equation.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
        }
    }
    let solve = |i: usize| if equations[i][i] == 0.0 { 0.0 } else { equations[i][n] / equations[i][i] };
    (0..n).map(solve).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses() -> Vec<Loss> {
        ["brier", "cross-entropy", "spherical", "zero-one", "fn-fp:fp=1,fn=4", "three-part", "asymmetric:4"]
            .map(|loss| loss.parse::<Loss>().unwrap().certified(2))
            .into()
    }

    #[test]
    fn entropies_are_within_the_error_bounds() {
        for loss in losses() {
            for degree in EntropyPolynomial::DEGREES {
                let found = EntropyPolynomial::fit(&loss, degree);
                let mut seen = [0.0_f64; 2];
                for i in 0..=20_011 {
                    let x = f64::from(i) / 20_011.0;
                    let above = dot(&binomial_law(degree, x), &found.coefficients) - loss.entropy(&[1.0 - x, x]);
                    seen = [seen[0].max(above), seen[1].max(-above)];
                }
                assert!(
                    seen[0] <= found.errors[0] && seen[1] <= found.errors[1],
                    "{loss}, {degree}: {seen:?} {found:?}"
                );
                // The bounds are tight.
                assert!(found.errors[0] < seen[0] + 1e-3 && found.errors[1] < seen[1] + 1e-3, "{loss}, {degree}");
                println!("{loss}, degree {degree}: {:.4?}", found.errors);
            }
        }
    }

    /// The minimax parabola of min(x, 1 − x) has an error of 1/16; the Brier entropy is itself a parabola.
    #[test]
    fn errors_are_nearly_minimax() {
        let errors = |loss: &Loss, degree: usize| EntropyPolynomial::fit(loss, degree).errors();
        assert!(errors(&Loss::zero_one(), 2).iter().all(|error| (error - 0.0625).abs() < 1e-3));
        assert!(errors(&Loss::brier(), 2).iter().all(|error| *error < 1e-4));
        assert!(errors(&Loss::zero_one(), 4).iter().all(|error| *error < 0.036));
    }
}
