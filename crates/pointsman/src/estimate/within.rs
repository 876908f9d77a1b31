//! What a prediction says of itself within a leaf.
//!
//! Trees grown on no loss mix what a loss tells apart, above all which act a prediction f leads to and at what price. The
//! prediction knows, in two ways. By its own account it loses its entropy G(f). By the leaf's, its top class is wrong as often as
//! top classes are there, and it loses Q(f) = (1 − e) ℓ(top, f) + e ℓ(other, f): e is the leaf's share of labels that are not the
//! top class, and the other one is drawn in the proportions of f. A query's total loss is therefore the mean of its leaves' and
//! b (G(f) − Ḡ) + c (Q(f) − Q̄) for being unlike their rows. The slopes are the same for all leaves, those of least squares for the
//! reducible loss of rows judged by some of the trees that were not grown on them; the irreducible loss stays that of the leaves.

use super::leaves::PerRow;
use crate::loss::SelfEstimate;
use crate::partition::forest::{LeafStatistics, Trees};

/// So many rows with two labels, each counted once per tree, tell the slopes well enough, in so many trees at least: another loss is to
/// cost little. A row is then compared with the mean of fewer leaves, which differs more from row to row; on the real data sets, whose
/// tables are small enough for all trees, 25 or 50 would change gains by .005 at most.
const ENOUGH: usize = 1 << 20;
const FEWEST_TREES: usize = 25;

/// How total losses follow predictions within leaves.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Slopes(pub(super) [f64; 2]);

impl Slopes {
    /// What a prediction of this account has for its own part where this share of the labels is not the top class. As it is added
    /// to a query, it is taken from a leaf whose predictions have this account on average.
    pub(crate) fn of(self, account: SelfEstimate, error: f64) -> f64 {
        let [if_right, more] = self.parts(account);
        if_right + error * more
    }

    /// The same where all labels are the top class, and how much more it is where none is.
    pub(super) fn parts(self, SelfEstimate { entropy, right, wrong }: SelfEstimate) -> [f64; 2] {
        [self.0[0] * entropy + self.0[1] * right, self.0[1] * (wrong - right)]
    }

    /// Whether predictions say nothing.
    pub(crate) fn are_none(self) -> bool {
        self == Self::default()
    }
}

/// What rows with two labels have in common in a leaf: their weight, and what is added up for a row that the leaf's tree was not grown
/// on: 1, then mean loss, entropy of labels, G, Q and e.
#[derive(Clone, Copy)]
struct Means {
    weight: f64,
    told: [f64; 6],
}

impl Means {
    fn of(&[weight, ref sums @ ..]: &[f64; 6], error: f64) -> Self {
        let [labels, total, entropy, right, wrong] = sums.map(|sum| if weight > 0.0 { sum / weight } else { 0.0 });
        let account = SelfEstimate { entropy, right, wrong };
        Self { weight, told: [1.0, total, labels, entropy, account.at(error), error] }
    }
}

/// Finds the slopes; `noise` is the irreducible loss of a leaf, if its labels tell.
pub(crate) fn slopes_within(
    per_row: &PerRow<'_>,
    trees: &Trees,
    leaves: &LeafStatistics,
    noise: impl Fn(usize) -> Option<f64>,
) -> Slopes {
    let of_rows = per_row.of_pairs();
    let pairs = of_rows.iter().filter(|[weight, ..]| *weight > 0.0).count();
    slopes_by(enough(pairs, trees.count()), &of_rows, per_row, trees, leaves, noise)
}

/// How many of the trees are asked.
fn enough(pairs: usize, trees: usize) -> usize {
    trees.min((ENOUGH / pairs.max(1)).max(FEWEST_TREES))
}

/// The slopes that the first trees tell; `of_rows` are [`PerRow::of_pairs`].
fn slopes_by(
    first: usize,
    of_rows: &[[f64; 6]],
    per_row: &PerRow<'_>,
    trees: &Trees,
    leaves: &LeafStatistics,
    noise: impl Fn(usize) -> Option<f64>,
) -> Slopes {
    let means = leaves.sum_over_leaves(trees, first, of_rows, |leaf, sums| Means::of(sums, leaves.error_share(leaf)));
    // Few labels have too little entropy, all in the proportion that the leaves say.
    let [mut known, mut entropy] = [0.0; 2];
    for (leaf, Means { weight, told }) in means.iter().enumerate() {
        if let Some(noise) = noise(leaf) {
            known += weight * noise;
            entropy += weight * told[2];
        }
    }
    let lack = if entropy > 0.0 { known / entropy } else { 1.0 };
    // For each row that tells the slopes, sums over the trees not grown on it.
    let mut sums = vec![[0.0; 6]; leaves.sample().len()];
    for &(place, leaf) in (0..first).flat_map(|tree| leaves.out_of_bag_sample(tree)) {
        let sums = sums[place as usize].iter_mut();
        sums.zip(means[leaf as usize].told).for_each(|(sum, x)| *sum += x);
    }
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
    use pointsman_testing::scattered as share;

    use super::{enough, slopes, slopes_by};
    use crate::estimate::{PerRow, Scratch};
    use crate::task::Estimator;
    use crate::{Loss, Partition, Router, Table};

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

    #[test]
    fn many_rows_need_fewer_trees() {
        let rows = [0, 1, 5_000, 10_000, 50_000, 1 << 30];
        assert_eq!(rows.map(|rows| enough(rows, 200)), [200, 200, 200, 104, 25, 25]);
        assert_eq!(rows.map(|rows| enough(rows, 1)), [1; 6]);
    }

    #[test]
    fn few_trees_tell_the_slopes() {
        let n = 6000_u32;
        let probs = (0..n).flat_map(|i| [share(i), 1.0 - share(i)]).collect();
        // Labels that a feature decides, and predictions that are right the less often the surer they are.
        let votes = (0..n).flat_map(|i| {
            let wrong = 5.0 * share(i + n) * (share(i) - 0.5).abs();
            let wrong = wrong as u32 + u32::from(share(i + 2 * n) < wrong.fract());
            if share(i) < 0.5 { [wrong, 5 - wrong] } else { [5 - wrong, wrong] }
        });
        let table = Table::new(["a", "b"], probs).and_then(|table| table.with_votes(votes.collect()));
        let table = table.and_then(|table| table.with_features(["x"], (n..2 * n).map(share).collect())).unwrap();
        let (mut of_all, mut apart) = (0.0, 0.0);
        for seed in 0..3 {
            let router = Router::builder().partition(Partition::forest(100)).seed(seed).fit(&table).unwrap();
            let ((forest, _), leaves) = router.cells().forest().zip(router.leaves()).unwrap();
            let loss = Loss::cross_entropy();
            let per_row = PerRow::of(router.rows(), &loss);
            let noise = |leaf: usize| {
                Some(per_row.irreducible(leaves, leaf, &loss, Estimator::Shrink, &mut Scratch::default())[0])
            };
            let by = |trees| slopes_by(trees, &per_row.of_pairs(), &per_row, forest.trees(), leaves, noise);
            let (all, few) = (by(100), by(25));
            // What a prediction has for its own part, not the slopes: what G and Q have in common may go to either.
            let spread = |of: &dyn Fn(usize) -> f64| {
                let parts: Vec<f64> = (0..n as usize).map(of).collect();
                let mean = parts.iter().sum::<f64>() / f64::from(n);
                (parts.iter().map(|part| (part - mean).powi(2)).sum::<f64>() / f64::from(n)).sqrt()
            };
            of_all += spread(&|row| all.of(per_row.self_estimate(row), 0.3));
            apart += spread(&|row| all.of(per_row.self_estimate(row), 0.3) - few.of(per_row.self_estimate(row), 0.3));
        }
        assert!(of_all > 0.15 && apart < 0.2 * of_all, "{of_all} by all trees, {apart} less by few");
    }
}
