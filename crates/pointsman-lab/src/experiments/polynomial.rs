//! The paper's advice for few labels: estimate the irreducible loss without bias, through a polynomial.
//!
//! The paper refers to Ahdritz et al. (2024), Theorem 4.3. k labels of an item estimate every polynomial of degree k in
//! p* without bias, and no other function. So the entropy G is replaced by its best uniform approximation Q of degree
//! k, with E[T(N)] = Q(p) for label counts N, and the irreducible loss of a cell is estimated by the mean of T(N). For
//! the Brier loss Q is G and the estimate is unbiased; for other losses the bias is at most the largest distance of Q
//! from G.
//!
//! T is found on a grid of the simplex by Lawson's algorithm, which repeats least squares with weights proportional to
//! the remaining errors. From about ten labels on, the best approximation needs large values T of alternating signs,
//! whose variance exceeds the reduction in bias. So a ridge penalty shrinks T towards the plug-in value G(N/k). Of
//! several penalties, the one is chosen whose largest mean square error (squared bias plus variance over the rows of a
//! cell) is least.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pointsman::Loss;

use crate::random::Random;

/// Limits on the number of label-count vectors and of unknowns.
const MAX_COUNT_VECTORS: usize = 5_000;
const MAX_UNKNOWNS: usize = 100;
const LAWSON_ROUNDS: usize = 150;
/// Penalties on the distance of T from the plug-in values, relative to the largest diagonal entry. The smallest only
/// keeps the normal equations solvable where Bernstein polynomials are nearly dependent; the largest makes T the
/// plug-in.
const PENALTIES: [f64; 10] = [1e-12, 1e-10, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-1, 1e3];
/// A polynomial this close to the entropy counts as equal to it.
const EXACT_TOLERANCE: f64 = 1e-5;

/// The estimator T: a value for each vector of label counts.
#[derive(Debug)]
pub(super) struct Polynomial {
    values: BTreeMap<Vec<u32>, f64>,
    symmetric: bool,
    /// The largest distance of the polynomial from the entropy on the grid, a bound on the bias.
    pub(super) distance: f64,
}

/// The polynomials of all penalties, among which the number of rows per cell decides.
struct Candidates {
    /// The place of each vector of label counts in the values.
    unknowns: BTreeMap<Vec<u32>, usize>,
    symmetric: bool,
    /// The probability of each vector of counts at each point of the grid.
    rows: Vec<Vec<f64>>,
    /// The entropy at each point.
    target: Vec<f64>,
    /// The values of each penalty and the largest distance of their expectation from the entropy.
    fits: Vec<(Vec<f64>, f64)>,
}

impl Polynomial {
    /// Fits the polynomial of degree `k` for cells of `rows_per_cell` rows; `None` if it has too many unknowns.
    pub(super) fn fit(loss: &Loss, classes: usize, k: u32, rows_per_cell: f64) -> Option<Self> {
        let shared = shared_candidates(loss, classes, k);
        let candidates = shared.get_or_init(|| Candidates::new(loss, classes, k)).as_ref()?;
        let error = |values: &[f64]| worst_square_error(&candidates.rows, &candidates.target, values, rows_per_cell);
        let (solution, distance) = candidates.fits.iter().min_by(|a, b| error(&a.0).total_cmp(&error(&b.0)))?;
        let values = candidates.unknowns.iter().map(|(shape, &at)| (shape.clone(), solution[at])).collect();
        Some(Self { values, symmetric: candidates.symmetric, distance: *distance })
    }

    /// The estimate T(N); `None` if the counts do not sum to k.
    pub(super) fn estimate(&self, counts: &[u32]) -> Option<f64> {
        self.values.get(&canonical_counts(counts, self.symmetric)).copied()
    }
}

/// The candidates of one loss, number of classes and degree, once they are computed; `None` if there are too many unknowns.
type SharedCandidates = Arc<OnceLock<Option<Candidates>>>;

/// The candidates of a loss, which all problems and seeds with as many classes share.
fn shared_candidates(loss: &Loss, classes: usize, k: u32) -> SharedCandidates {
    static ALL: Mutex<Vec<(Loss, usize, u32, SharedCandidates)>> = Mutex::new(Vec::new());
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((.., found)) = all.iter().find(|(of, n, degree, _)| (of, *n, *degree) == (loss, classes, k)) {
        return found.clone();
    }
    let new = SharedCandidates::default();
    all.push((loss.clone(), classes, k, new.clone()));
    new
}

impl Candidates {
    fn new(loss: &Loss, classes: usize, k: u32) -> Option<Self> {
        let counts = all_counts(classes, k)?;
        let points = simplex_grid(classes);
        let symmetric = points.iter().all(|p| {
            let reversed: Vec<f64> = p.iter().rev().copied().collect();
            (loss.entropy(p) - loss.entropy(&reversed)).abs() < 1e-12
        });
        let mut unknowns: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
        for counts in &counts {
            let next = unknowns.len();
            unknowns.entry(canonical_counts(counts, symmetric)).or_insert(next);
        }
        if unknowns.len() > MAX_UNKNOWNS {
            return None;
        }
        let mut plugin = vec![0.0; unknowns.len()];
        for (shape, &at) in &unknowns {
            let shares: Vec<f64> = shape.iter().map(|&n| f64::from(n) / f64::from(k)).collect();
            plugin[at] = loss.entropy(&shares);
        }
        let rows: Vec<Vec<f64>> =
            points.iter().map(|p| count_probabilities(p, &counts, &unknowns, symmetric)).collect();
        let target: Vec<f64> = points.iter().map(|p| loss.entropy(p)).collect();
        let fit = |&penalty: &f64| minimise_largest_distance(&rows, &target, &plugin, penalty);
        let mut fits: Vec<(Vec<f64>, f64)> = PENALTIES.iter().find_map(fit).into_iter().collect();
        // An entropy that is itself a polynomial, such as Brier's, is estimated without bias.
        if fits.first()?.1 >= EXACT_TOLERANCE {
            fits = PENALTIES.iter().filter_map(fit).collect();
        }
        Some(Self { unknowns, symmetric, rows, target, fits })
    }
}

/// Sorts the counts if the loss is symmetric in the classes.
fn canonical_counts(counts: &[u32], symmetric: bool) -> Vec<u32> {
    let mut shape = counts.to_vec();
    if symmetric {
        shape.sort_unstable_by(|a, b| b.cmp(a));
    }
    shape
}

/// All vectors of counts of k labels.
fn all_counts(classes: usize, k: u32) -> Option<Vec<Vec<u32>>> {
    let mut found: Vec<Vec<u32>> = vec![Vec::new()];
    for class in 0..classes {
        let mut longer = Vec::new();
        for counts in found {
            let left = k - counts.iter().sum::<u32>();
            let from = if class + 1 == classes { left } else { 0 };
            longer.extend((from..=left).map(|n| counts.iter().copied().chain([n]).collect::<Vec<u32>>()));
        }
        if longer.len() > MAX_COUNT_VECTORS {
            return None;
        }
        found = longer;
    }
    Some(found)
}

/// Points of the simplex: a dense grid for two and three classes, otherwise faces, edges and draws of different
/// concentration.
fn simplex_grid(classes: usize) -> Vec<Vec<f64>> {
    match classes {
        2 => {
            let at = |j: i32| (1.0 - (std::f64::consts::PI * f64::from(j) / 400.0).cos()) / 2.0;
            (0..=400).map(at).map(|p| vec![1.0 - p, p]).collect()
        }
        3 => {
            const STEPS: u32 = 30;
            let share = |n: u32| f64::from(n) / f64::from(STEPS);
            (0..=STEPS)
                .flat_map(|a| (0..=STEPS - a).map(move |b| vec![share(a), share(b), share(STEPS - a - b)]))
                .collect()
        }
        _ => {
            let mut points: Vec<Vec<f64>> = (1..=classes)
                .map(|m| (0..classes).map(|class| if class < m { 1.0 / m as f64 } else { 0.0 }).collect())
                .collect();
            for j in 1..20 {
                let p = f64::from(j) / 20.0;
                let mut edge = vec![0.0; classes];
                (edge[0], edge[1]) = (p, 1.0 - p);
                points.push(edge);
                let mut centre = vec![(1.0 - p) / (classes - 1) as f64; classes];
                centre[0] = p;
                points.push(centre);
            }
            let mut random = Random::new(0, "grid of the simplex");
            for power in [1.0, 2.0, 5.0, 12.0, 30.0] {
                for _ in 0..80 {
                    // Powers of exponential draws; a higher power puts more mass on few classes.
                    let draws: Vec<f64> = (0..classes).map(|_| (-random.uniform().ln()).powf(power)).collect();
                    let sum: f64 = draws.iter().sum();
                    points.push(draws.iter().map(|x| x / sum).collect());
                }
            }
            points
        }
    }
}

/// The probability of each shape at p.
fn count_probabilities(
    p: &[f64],
    counts: &[Vec<u32>],
    unknowns: &BTreeMap<Vec<u32>, usize>,
    symmetric: bool,
) -> Vec<f64> {
    let factorial = |n: u32| (1..=n).map(f64::from).product::<f64>();
    let mut row = vec![0.0; unknowns.len()];
    for counts in counts {
        let mut probability = factorial(counts.iter().sum());
        for (&n, p) in counts.iter().zip(p) {
            probability *= p.powi(n as i32) / factorial(n);
        }
        row[unknowns[&canonical_counts(counts, symmetric)]] += probability;
    }
    row
}

/// The largest mean square error, over the grid, of the mean of T over `rows_per_cell` rows with the same p*.
fn worst_square_error(rows: &[Vec<f64>], target: &[f64], values: &[f64], rows_per_cell: f64) -> f64 {
    let error = |(row, y): (&Vec<f64>, &f64)| {
        let mean: f64 = row.iter().zip(values).map(|(p, t)| p * t).sum();
        let variance: f64 = row.iter().zip(values).map(|(p, t)| p * (t - mean).powi(2)).sum();
        (mean - y).powi(2) + variance / rows_per_cell
    };
    rows.iter().zip(target).map(error).fold(0.0, f64::max)
}

/// The values near the plug-in values that minimise the largest distance of their expectation from the target, and that
/// distance.
fn minimise_largest_distance(
    rows: &[Vec<f64>],
    target: &[f64],
    plugin: &[f64],
    penalty: f64,
) -> Option<(Vec<f64>, f64)> {
    let expected = |row: &[f64], values: &[f64]| row.iter().zip(values).map(|(a, x)| a * x).sum::<f64>();
    let left: Vec<f64> = rows.iter().zip(target).map(|(row, y)| y - expected(row, plugin)).collect();
    let mut weights = vec![1.0 / rows.len() as f64; rows.len()];
    let mut best: Option<(Vec<f64>, f64)> = None;
    for _ in 0..LAWSON_ROUNDS {
        let moved = least_squares(rows, &left, &weights, penalty)?;
        let errors: Vec<f64> = rows.iter().zip(&left).map(|(row, y)| (expected(row, &moved) - y).abs()).collect();
        let largest = errors.iter().copied().fold(0.0, f64::max);
        if best.as_ref().is_none_or(|(_, least)| largest < *least) {
            best = Some((plugin.iter().zip(&moved).map(|(a, b)| a + b).collect(), largest));
        }
        if largest < 1e-9 {
            break;
        }
        weights.iter_mut().zip(&errors).for_each(|(weight, error)| *weight *= error + 1e-6 * largest);
        let sum: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= sum);
    }
    best
}

/// Weighted ridge regression by normal equations and a Cholesky decomposition; `None` if they are singular.
fn least_squares(rows: &[Vec<f64>], target: &[f64], weights: &[f64], penalty: f64) -> Option<Vec<f64>> {
    let n = rows.first()?.len();
    let (mut a, mut b) = (vec![vec![0.0; n]; n], vec![0.0; n]);
    for ((row, y), w) in rows.iter().zip(target).zip(weights) {
        for (i, (a, b)) in a.iter_mut().zip(&mut b).enumerate() {
            let weighted = w * row[i];
            *b += weighted * y;
            a[..=i].iter_mut().zip(row).for_each(|(a, other)| *a += weighted * other);
        }
    }
    let size = (0..n).map(|i| a[i][i]).fold(0.0, f64::max);
    for i in 0..n {
        a[i][i] += penalty * size;
        for j in 0..=i {
            let sum: f64 = (0..j).map(|l| a[i][l] * a[j][l]).sum();
            let rest = a[i][j] - sum;
            a[i][j] = if i == j { (rest > 0.0).then(|| rest.sqrt())? } else { rest / a[j][j] };
        }
    }
    for i in 0..n {
        let sum: f64 = (0..i).map(|j| a[i][j] * b[j]).sum();
        b[i] = (b[i] - sum) / a[i][i];
    }
    for i in (0..n).rev() {
        let sum: f64 = (i + 1..n).map(|j| a[j][i] * b[j]).sum();
        b[i] = (b[i] - sum) / a[i][i];
    }
    Some(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number of rows at which the variance is negligible.
    const LARGE_ROW_COUNT: f64 = 1e12;

    /// For the Brier loss the estimate is the U-statistic: k/(k − 1) times the entropy of the shares.
    #[test]
    fn brier_is_estimated_without_bias() {
        for (classes, counts) in [(2, vec![1, 2]), (3, vec![2, 1, 0]), (10, vec![1, 0, 1, 0, 0, 1, 0, 0, 0, 0])] {
            let polynomial = Polynomial::fit(&Loss::brier(), classes, 3, LARGE_ROW_COUNT).unwrap();
            let shares: Vec<f64> = counts.iter().map(|&n| f64::from(n) / 3.0).collect();
            let found = polynomial.estimate(&counts).unwrap();
            assert!((found - 1.5 * Loss::brier().entropy(&shares)).abs() < 1e-4, "{classes} classes: {found}");
            assert!(polynomial.distance < 1e-5, "{}", polynomial.distance);
        }
    }

    /// The least distances for two classes, from linear programming: cross-entropy .0378 at k = 2 and .0123 at k = 5,
    /// zero-one .0625 and .0338.
    #[test]
    fn distances_match_linear_programming() {
        for (loss, k, least) in [
            (Loss::cross_entropy(), 2, 0.037_794),
            (Loss::cross_entropy(), 5, 0.012_315),
            (Loss::zero_one(), 2, 0.0625),
            (Loss::zero_one(), 5, 0.033_810),
        ] {
            let found = Polynomial::fit(&loss, 2, k, LARGE_ROW_COUNT).unwrap().distance;
            assert!((0.99 * least..1.02 * least).contains(&found), "{loss}, k = {k}: {found}, least {least}");
        }
    }

    #[test]
    fn estimate_needs_k_labels_and_few_classes() {
        let polynomial = Polynomial::fit(&Loss::zero_one(), 2, 3, LARGE_ROW_COUNT).unwrap();
        assert!(polynomial.estimate(&[2, 2]).is_none() && polynomial.estimate(&[0, 3]).is_some());
        assert!(Polynomial::fit(&Loss::brier(), 10, 10, LARGE_ROW_COUNT).is_none());
    }

    #[test]
    fn many_labels_do_no_worse_than_plugin() {
        for loss in [Loss::cross_entropy(), Loss::zero_one()] {
            for k in [10, 20] {
                let polynomial = Polynomial::fit(&loss, 2, k, 100.0).unwrap();
                let largest =
                    (0..=k).filter_map(|n| polynomial.estimate(&[n, k - n])).fold(0.0, |a: f64, b| a.max(b.abs()));
                assert!(largest < 2.0, "{loss}, k = {k}: {largest}");
                let plugin = |p: f64| {
                    let mut chance = (1.0 - p).powi(k as i32);
                    let mut bias = 0.0;
                    for n in 0..=k {
                        let share = f64::from(n) / f64::from(k);
                        bias += chance * loss.entropy(&[1.0 - share, share]);
                        chance *= f64::from(k - n) / f64::from(n + 1) * p / (1.0 - p);
                    }
                    (bias - loss.entropy(&[1.0 - p, p])).abs()
                };
                let bias = (1..100).map(|p| plugin(f64::from(p) / 100.0)).fold(0.0, f64::max);
                assert!(polynomial.distance < bias, "{loss}, k = {k}: {} of {bias}", polynomial.distance);
            }
        }
    }
}
