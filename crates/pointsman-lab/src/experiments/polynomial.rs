//! The paper's advice for few labels: estimate the irreducible loss without bias, through a polynomial.
//!
//! The paper refers to Ahdritz et al. (2024), Theorem 4.3. k labels of an item estimate every polynomial of degree k in p*
//! without bias, and nothing else. So the entropy G is replaced by the polynomial of degree k that is closest to it
//! everywhere, E[T(N)] = Q(p) with N the label counts, and the irreducible loss of a cell is estimated by the mean of T(N).
//! For the Brier loss Q is G and the estimate has no bias at all; for other losses the bias is at most the distance of Q from
//! G, whatever the cell.
//!
//! T is found on a grid of the simplex by Lawson's algorithm: least squares, weighted again and again by the errors left. From
//! about ten labels on, the closest polynomial needs values T that are huge and of alternating signs, whose noise swamps what is won in
//! bias. So T is also drawn towards the plug-in value G(N/k) by a ridge penalty, and of several penalties the one is taken whose
//! mean square error, squared bias plus variance over the rows of a cell, is least where it is largest.

use std::collections::BTreeMap;

use pointsman::Loss;

use crate::random::Random;

/// More label counts than these are not gone through, more unknowns not solved for.
const MAX_COUNTS: usize = 5_000;
const MAX_UNKNOWNS: usize = 100;
const ROUNDS: usize = 150;
/// Penalties on the distance of T from the plug-in values, relative to the largest diagonal entry. The smallest only keeps the normal
/// equations solvable where Bernstein polynomials are nearly dependent; with the largest T is the plug-in.
const PENALTIES: [f64; 10] = [1e-12, 1e-10, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-1, 1e3];
/// Polynomials this close to an entropy are the entropy.
const EXACT: f64 = 1e-5;

/// T: what each vector of label counts is worth.
#[derive(Debug)]
pub(super) struct Polynomial {
    worth: BTreeMap<Vec<u32>, f64>,
    symmetric: bool,
    /// The largest distance of the polynomial from the entropy on the grid: a bound of the bias.
    pub(super) distance: f64,
}

impl Polynomial {
    /// The polynomial of degree `k` that suits cells of so many rows best; `None` if it has too many unknowns.
    pub(super) fn fit(loss: &Loss, classes: usize, k: u32, rows_per_cell: f64) -> Option<Self> {
        let counts = all_counts(classes, k)?;
        let points = grid(classes);
        let symmetric = points.iter().all(|p| {
            let reversed: Vec<f64> = p.iter().rev().copied().collect();
            (loss.entropy(p) - loss.entropy(&reversed)).abs() < 1e-12
        });
        let mut unknowns: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
        for counts in &counts {
            let next = unknowns.len();
            unknowns.entry(shape(counts, symmetric)).or_insert(next);
        }
        if unknowns.len() > MAX_UNKNOWNS {
            return None;
        }
        let mut plugin = vec![0.0; unknowns.len()];
        for (shape, &at) in &unknowns {
            let shares: Vec<f64> = shape.iter().map(|&n| f64::from(n) / f64::from(k)).collect();
            plugin[at] = loss.entropy(&shares);
        }
        let rows: Vec<Vec<f64>> = points.iter().map(|p| probabilities(p, &counts, &unknowns, symmetric)).collect();
        let target: Vec<f64> = points.iter().map(|p| loss.entropy(p)).collect();
        let mut fits = PENALTIES.iter().filter_map(|&penalty| closest(&rows, &target, &plugin, penalty));
        // An entropy that is a polynomial itself, such as Brier's, is estimated without bias.
        let first = fits.next()?;
        let exact = first.1 < EXACT;
        let judged = std::iter::once(first).chain(fits.take_while(|_| !exact)).map(|(values, distance)| {
            let error = worst_square_error(&rows, &target, &values, rows_per_cell);
            (values, distance, error)
        });
        let (solution, distance, _) = judged.min_by(|a, b| a.2.total_cmp(&b.2))?;
        let worth = unknowns.into_iter().map(|(shape, at)| (shape, solution[at])).collect();
        Some(Self { worth, symmetric, distance })
    }

    /// T(N); `None` if there are not k labels.
    pub(super) fn of(&self, counts: &[u32]) -> Option<f64> {
        self.worth.get(&shape(counts, self.symmetric)).copied()
    }
}

/// Counts up to the order of the classes, if the loss does not tell classes apart.
fn shape(counts: &[u32], symmetric: bool) -> Vec<u32> {
    let mut shape = counts.to_vec();
    if symmetric {
        shape.sort_unstable_by(|a, b| b.cmp(a));
    }
    shape
}

/// Every way in which k labels fall on the classes.
fn all_counts(classes: usize, k: u32) -> Option<Vec<Vec<u32>>> {
    let mut found: Vec<Vec<u32>> = vec![Vec::new()];
    for class in 0..classes {
        let mut longer = Vec::new();
        for counts in found {
            let left = k - counts.iter().sum::<u32>();
            let from = if class + 1 == classes { left } else { 0 };
            longer.extend((from..=left).map(|n| counts.iter().copied().chain([n]).collect::<Vec<u32>>()));
        }
        if longer.len() > MAX_COUNTS {
            return None;
        }
        found = longer;
    }
    Some(found)
}

/// Points of the simplex: dense for two and three classes, else faces, edges and draws of different concentration.
fn grid(classes: usize) -> Vec<Vec<f64>> {
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
                    // Powers of exponential draws: the higher, the more lies on few classes.
                    let draws: Vec<f64> = (0..classes).map(|_| (-random.uniform().ln()).powf(power)).collect();
                    let sum: f64 = draws.iter().sum();
                    points.push(draws.iter().map(|x| x / sum).collect());
                }
            }
            points
        }
    }
}

/// How likely each shape is at p.
fn probabilities(p: &[f64], counts: &[Vec<u32>], unknowns: &BTreeMap<Vec<u32>, usize>, symmetric: bool) -> Vec<f64> {
    let factorial = |n: u32| (1..=n).map(f64::from).product::<f64>();
    let mut row = vec![0.0; unknowns.len()];
    for counts in counts {
        let mut likely = factorial(counts.iter().sum());
        for (&n, p) in counts.iter().zip(p) {
            likely *= p.powi(n as i32) / factorial(n);
        }
        row[unknowns[&shape(counts, symmetric)]] += likely;
    }
    row
}

/// The largest mean square error, over the grid, of the mean of T over so many rows with the same p*.
fn worst_square_error(rows: &[Vec<f64>], target: &[f64], values: &[f64], rows_per_cell: f64) -> f64 {
    let error = |(row, y): (&Vec<f64>, &f64)| {
        let mean: f64 = row.iter().zip(values).map(|(p, t)| p * t).sum();
        let variance: f64 = row.iter().zip(values).map(|(p, t)| p * (t - mean).powi(2)).sum();
        (mean - y).powi(2) + variance / rows_per_cell
    };
    rows.iter().zip(target).map(error).fold(0.0, f64::max)
}

/// Values near the plug-in ones whose expectation has the smallest largest distance from the target, and that distance.
fn closest(rows: &[Vec<f64>], target: &[f64], plugin: &[f64], penalty: f64) -> Option<(Vec<f64>, f64)> {
    let expected = |row: &[f64], values: &[f64]| row.iter().zip(values).map(|(a, x)| a * x).sum::<f64>();
    let left: Vec<f64> = rows.iter().zip(target).map(|(row, y)| y - expected(row, plugin)).collect();
    let mut weights = vec![1.0 / rows.len() as f64; rows.len()];
    let mut best: Option<(Vec<f64>, f64)> = None;
    for _ in 0..ROUNDS {
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

/// Weighted ridge regression by normal equations and Cholesky's decomposition; `None` if they are singular.
fn least_squares(rows: &[Vec<f64>], target: &[f64], weights: &[f64], penalty: f64) -> Option<Vec<f64>> {
    let n = rows.first()?.len();
    let (mut a, mut b) = (vec![vec![0.0; n]; n], vec![0.0; n]);
    for ((row, y), w) in rows.iter().zip(target).zip(weights) {
        for i in 0..n {
            b[i] += w * row[i] * y;
            for j in 0..=i {
                a[i][j] += w * row[i] * row[j];
            }
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

    /// So many rows that bias alone counts.
    const MANY: f64 = 1e12;

    /// For the Brier loss the estimate is the U-statistic: k/(k − 1) times the entropy of the shares.
    #[test]
    fn brier_is_estimated_without_bias() {
        for (classes, counts) in [(2, vec![1, 2]), (3, vec![2, 1, 0]), (10, vec![1, 0, 1, 0, 0, 1, 0, 0, 0, 0])] {
            let polynomial = Polynomial::fit(&Loss::brier(), classes, 3, MANY).unwrap();
            let shares: Vec<f64> = counts.iter().map(|&n| f64::from(n) / 3.0).collect();
            let found = polynomial.of(&counts).unwrap();
            assert!((found - 1.5 * Loss::brier().entropy(&shares)).abs() < 1e-4, "{classes} classes: {found}");
            assert!(polynomial.distance < 1e-5, "{}", polynomial.distance);
        }
    }

    /// Half of the widths that k labels leave open, two classes, known from linear programming: cross-entropy .0378 at k = 2
    /// and .0123 at k = 5, zero-one .0625 and .0338.
    #[test]
    fn distances_are_the_least_possible() {
        for (loss, k, least) in [
            (Loss::cross_entropy(), 2, 0.037_794),
            (Loss::cross_entropy(), 5, 0.012_315),
            (Loss::zero_one(), 2, 0.0625),
            (Loss::zero_one(), 5, 0.033_810),
        ] {
            let found = Polynomial::fit(&loss, 2, k, MANY).unwrap().distance;
            assert!((0.99 * least..1.02 * least).contains(&found), "{loss}, k = {k}: {found}, least {least}");
        }
    }

    #[test]
    fn only_k_labels_are_valued_and_many_classes_refused() {
        let polynomial = Polynomial::fit(&Loss::zero_one(), 2, 3, MANY).unwrap();
        assert!(polynomial.of(&[2, 2]).is_none() && polynomial.of(&[0, 3]).is_some());
        assert!(Polynomial::fit(&Loss::brier(), 10, 10, MANY).is_none());
    }

    /// With many labels the values stay of the size of the entropy, and the estimate of a cell is better than the plug-in's.
    #[test]
    fn many_labels_are_no_worse_than_the_plug_in() {
        for loss in [Loss::cross_entropy(), Loss::zero_one()] {
            for k in [10, 20] {
                let polynomial = Polynomial::fit(&loss, 2, k, 100.0).unwrap();
                let largest = (0..=k).filter_map(|n| polynomial.of(&[n, k - n])).fold(0.0, |a: f64, b| a.max(b.abs()));
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
