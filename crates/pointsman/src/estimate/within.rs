//! What a prediction says of itself within a leaf.
//!
//! Trees grown on no loss mix what a loss tells apart, above all which act a prediction f leads to and at what price. The
//! prediction knows, in two ways. By its own account it loses its entropy G(f). By the leaf's, its top class is wrong as often as
//! top classes are there, and it loses Q(f) = (1 − e) ℓ(top, f) + e ℓ(other, f): e is the leaf's share of labels that are not the
//! top class, and the other one is drawn in the proportions of f. A query's total loss is therefore the mean of its leaves' and
//! b (G(f) − Ḡ) + c (Q(f) − Q̄) for being unlike their rows. The slopes are the same for all leaves, those of least squares for the
//! reducible loss of rows judged by trees that were not grown on them; the irreducible loss stays that of the leaves.

use rayon::prelude::*;

use super::leaves::{Means, PerRow};
use crate::forest::{LeafRows, Trees};
use crate::loss::Account;

/// Trees whose rows are added up together: the order of sums does not depend on threads.
const TOGETHER: usize = 25;

/// How total losses follow predictions within leaves.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Slopes([f64; 2]);

impl Slopes {
    /// What a prediction of this account has for its own part where this share of the labels is not the top class. As it is added
    /// to a query, it is taken from a leaf whose predictions have this account on average.
    pub(crate) fn of(self, account: Account, error: f64) -> f64 {
        self.0[0] * account.entropy + self.0[1] * account.at(error)
    }

    /// Whether predictions say nothing.
    pub(crate) fn are_none(self) -> bool {
        self == Self::default()
    }
}

/// What some trees say.
struct Part {
    /// For each row that tells the slopes, the trees not grown on it, and sums over them of its leaf's mean loss, entropy of labels,
    /// G, Q and e.
    sums: Vec<[f64; 6]>,
    /// The irreducible loss as leaves estimate it, and as the mean entropy of labels, both weighted.
    noise: [f64; 2],
}

impl Part {
    fn new(rows: usize) -> Self {
        Self { sums: vec![[0.0; 6]; rows], noise: [0.0; 2] }
    }
}

/// Finds the slopes; `means` are those of each leaf, `noise` is its irreducible loss, if its labels tell.
pub(crate) fn slopes_within(
    per_row: &PerRow<'_>,
    trees: &Trees,
    leaves: &LeafRows,
    means: &[Means],
    noise: impl Fn(usize) -> Option<f64> + Sync,
) -> Slopes {
    let part_of = |first: usize| {
        let mut part = Part::new(leaves.sample().len());
        for tree in first..(first + TOGETHER).min(trees.count()) {
            for leaf in trees.leaves_of(tree) {
                if let Some(noise) = noise(leaf) {
                    part.noise[0] += means[leaf].weight * noise;
                    part.noise[1] += means[leaf].weight * means[leaf].entropy;
                }
            }
            for &(place, leaf) in leaves.new_to(tree) {
                let (Means { entropy, total, paired, .. }, error) = (means[leaf as usize], leaves.error(leaf as usize));
                let sums = part.sums[place as usize].iter_mut();
                let of_leaf = [1.0, total, entropy, paired.entropy, paired.at(error), error];
                sums.zip(of_leaf).for_each(|(sum, x)| *sum += x);
            }
        }
        part
    };
    let firsts: Vec<usize> = (0..trees.count()).step_by(TOGETHER).collect();
    let parts: Vec<Part> = firsts.into_par_iter().map(part_of).collect();
    let Part { sums, noise } = parts.iter().fold(Part::new(leaves.sample().len()), |mut all, part| {
        all.sums.iter_mut().flatten().zip(part.sums.iter().flatten()).for_each(|(sum, one)| *sum += one);
        all.noise.iter_mut().zip(part.noise).for_each(|(sum, one)| *sum += one);
        all
    });
    // Few labels have too little entropy, all in the proportion that the leaves say.
    let lack = if noise[1] > 0.0 { noise[0] / noise[1] } else { 1.0 };
    let told = leaves.sample().iter().zip(&sums).filter(|(_, sums)| sums[0] > 0.0);
    // How a row differs from the mean of its leaves, on average.
    let points = told.map(|(&row, sums)| {
        let [total, entropy, by_itself, by_leaf, error] = std::array::from_fn(|i| sums[i + 1] / sums[0]);
        let (own_total, own_entropy, account) = per_row.own(row as usize);
        let unlike = (own_total - total) - lack * (own_entropy - entropy);
        let weight = per_row.weight(row as usize);
        [weight, apart(account.entropy, by_itself), apart(account.at(error), by_leaf), unlike]
    });
    Slopes(slopes(&points.collect::<Vec<_>>()))
}

/// How far two numbers are apart, if by more than rounding: where a loss charges all errors alike, Q is the same for all, and a slope
/// over its last digits would be as large as they are small.
fn apart(a: f64, b: f64) -> f64 {
    let rounding = 1e-9 * (a.abs() + b.abs());
    if (a - b).abs() > rounding { a - b } else { 0.0 }
}

/// The slopes of z over x and y through the origin, of points (weight, x, y, z). Slopes that may be chance are drawn towards none,
/// by the factor that makes the error of what they predict least, as far as the points tell.
fn slopes(points: &[[f64; 4]]) -> [f64; 2] {
    let sum = |of: &dyn Fn(&[f64; 4]) -> f64| points.iter().map(of).sum::<f64>();
    let (xx, yy) = (sum(&|[w, x, _, _]| w * x * x), sum(&|[w, _, y, _]| w * y * y));
    let (xz, yz) = (sum(&|[w, x, _, z]| w * x * z), sum(&|[w, _, y, z]| w * y * z));
    let xy = sum(&|[w, x, y, _]| w * x * y);
    // The inverse of what x and y have in common: of both, or of one if the other says nothing more. Products of two sums may be too
    // large for a number, or too small.
    let rest = 1.0 - (xy / xx) * (xy / yy);
    let inverse = if rest > 1e-9 {
        [1.0 / (xx * rest), -(xy / xx) / (yy * rest), 1.0 / (yy * rest)]
    } else if xx > 0.0 {
        [1.0 / xx, 0.0, 0.0]
    } else if yy > 0.0 {
        [0.0, 0.0, 1.0 / yy]
    } else {
        return [0.0; 2];
    };
    let slopes = [inverse[0] * xz + inverse[1] * yz, inverse[1] * xz + inverse[2] * yz];
    let explained = slopes[0] * xz + slopes[1] * yz;
    // What chance would explain, whatever the variance of each point.
    let chance = sum(&|[w, x, y, z]| {
        let left = w * (z - slopes[0] * x - slopes[1] * y);
        left * left * (inverse[0] * x * x + 2.0 * inverse[1] * x * y + inverse[2] * y * y)
    });
    if chance < explained { slopes.map(|slope| slope * (1.0 - chance / explained)) } else { [0.0; 2] }
}

#[cfg(test)]
mod tests {
    use super::slopes;

    #[test]
    fn slopes_are_found_unless_chance_explains_them() {
        let noise = |x: f64| if x.floor() % 2.0 == 0.0 { 20.0 } else { -20.0 };
        let points = |z: &dyn Fn(f64, f64) -> f64| -> Vec<[f64; 4]> {
            let of = |i: i32| (f64::from(i) - 49.5, f64::from(i * 37 % 100) - 49.5);
            (0..100).map(of).map(|(x, y)| [1.0, x, y, z(x, y)]).collect()
        };
        let [b, c] = slopes(&points(&|x, y| 0.7 * x - 0.2 * y));
        assert!((b - 0.7).abs() < 1e-12 && (c + 0.2).abs() < 1e-12);
        // Noise as large as what is to be seen, and larger.
        let [b, c] = slopes(&points(&|x, y| 0.7 * x + 0.7 * y + noise(x)));
        assert!((0.6..0.7).contains(&b) && (0.6..0.75).contains(&c), "{b} {c}");
        assert_eq!(slopes(&points(&|x, _| 0.01 * x + noise(x))), [0.0; 2]);
        // Whatever the unit.
        for unit in [1e-90, 1e90] {
            let [b, c] = slopes(
                &points(&|x, y| 0.7 * x - 0.2 * y)
                    .into_iter()
                    .map(|[w, x, y, z]| [w, unit * x, unit * y, z])
                    .collect::<Vec<_>>(),
            );
            assert!((b * unit - 0.7).abs() < 1e-9 && (c * unit + 0.2).abs() < 1e-9, "{unit}: {b} {c}");
        }
        assert_eq!(slopes(&[]), [0.0; 2]);
        assert_eq!(slopes(&[[1.0, 0.0, 0.0, 1.0]; 5]), [0.0; 2]);
    }

    #[test]
    fn what_says_nothing_more_has_no_slope() {
        let points = |x: &dyn Fn(f64) -> f64, y: &dyn Fn(f64) -> f64| -> Vec<[f64; 4]> {
            (0..50).map(|i| f64::from(i) - 20.0).map(|t| [1.0, x(t), y(t), t]).collect()
        };
        for (points, what, [b, c]) in [
            (points(&|t| t, &|t| 3.0 * t), "the same", [1.0, 0.0]),
            (points(&|t| t, &|_| 0.0), "nothing", [1.0, 0.0]),
            (points(&|_| 0.0, &|t| 2.0 * t), "alone", [0.0, 0.5]),
        ] {
            let [found_b, found_c] = slopes(&points);
            assert!((found_b - b).abs() < 1e-9 && (found_c - c).abs() < 1e-9, "{what}: {found_b} {found_c}");
        }
    }
}
