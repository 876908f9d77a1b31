//! The part of a query's total loss that depends on its own prediction within a leaf.
//!
//! Trees are grown without a loss, so a leaf can contain predictions that a loss distinguishes: above all, predictions that lead to
//! different acts. The total loss of a query is therefore the mean over its leaves plus
//!
//! > b (G(f) − Ḡ) + c (Q(f) − Q̄)
//!
//! where Ḡ and Q̄ are means over the rows of the leaf. G(f) is the entropy of the prediction f, its expected loss if labels follow f.
//! Q(f) = (1 − e) ℓ(top, f) + e ℓ(other, f) is its expected loss if its top class is wrong as often as top classes are in the leaf: e is the
//! leaf's share of labels that are not the top class, and the other class is drawn in proportion to f. The slopes b and c are the same for
//! all leaves. They are fitted by least squares to the reducible loss of rows, each compared with leaves of trees for which it is out of
//! bag; the irreducible loss stays that of the leaves.

use super::leaves::LeafEstimator;
use crate::loss::SelfEstimate;
use crate::parallel::prelude::*;
use crate::partition::forest::LeafStatistics;

/// The slopes are fitted on as many trees as give this many pairs of a tree and a row with two labels, but on at least
/// [`MIN_TREES_FOR_SLOPES`]: compiling a task for another loss should be fast. With fewer trees a row is compared with the mean of fewer
/// leaves, which varies more. On the real data sets, which are small enough for all trees, 25 or 50 trees change gains by at most .005.
const TREE_ROWS_FOR_SLOPES: usize = 1 << 20;
const MIN_TREES_FOR_SLOPES: usize = 25;

/// The fewest rows per parallel task.
const MIN_ROWS_PER_TASK: usize = 1 << 12;

/// The slopes b and c of the total loss over the prediction's own G and Q.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Slopes(pub(super) [f64; 2]);

impl Slopes {
    /// b G(f) + c Q(f) for a prediction with this self-estimate in a leaf with this share of errors. The same function of a leaf's mean
    /// self-estimate is subtracted from the leaf's total loss.
    pub(crate) fn own_part(self, self_estimate: SelfEstimate, error_share: f64) -> f64 {
        let [without_errors, per_error] = self.parts(self_estimate);
        without_errors + error_share * per_error
    }

    /// The own part at a share of errors of zero, and its increase up to a share of one.
    pub(super) fn parts(self, SelfEstimate { entropy, right, wrong }: SelfEstimate) -> [f64; 2] {
        [self.0[0] * entropy + self.0[1] * right, self.0[1] * (wrong - right)]
    }

    /// The slopes b and c.
    pub(crate) fn values(self) -> [f64; 2] {
        self.0
    }

    /// Slopes from a file; `None` if one is not finite.
    pub(crate) fn from_values(values: [f64; 2]) -> Option<Self> {
        values.iter().all(|slope| slope.is_finite()).then_some(Self(values))
    }

    /// Whether both slopes are zero.
    pub(crate) fn are_zero(self) -> bool {
        self == Self::default()
    }
}

/// Weighted sums over the rows with two labels of a leaf: the weight, the entropy of the labels, the total loss, G, ℓ(top, f) and
/// ℓ(other, f).
type PairSums = [f64; 6];

fn pair_sums_of_row(estimator: &LeafEstimator<'_>, row: usize) -> PairSums {
    if !estimator.is_paired(row) {
        return PairSums::default();
    }
    let SelfEstimate { entropy, right, wrong } = estimator.self_estimate(row);
    let own = [1.0, estimator.label_entropy_of_row(row), estimator.total_of_row(row), entropy, right, wrong];
    own.map(|x| estimator.weight(row) * x)
}

/// Means over the rows with two labels of one leaf or, summed over trees, of the leaves of one row.
#[derive(Debug, Clone, Copy, Default)]
struct PairMeans {
    /// One leaf; summed, the number of leaves.
    leaves: f64,
    total: f64,
    label_entropy: f64,
    /// Ḡ.
    self_entropy: f64,
    /// Q̄.
    expected: f64,
    /// Over all rows of the leaf.
    error_share: f64,
}

impl PairMeans {
    fn from_sums(&[weight, ref sums @ ..]: &PairSums, error_share: f64) -> Self {
        let [label_entropy, total, entropy, right, wrong] =
            sums.map(|sum| if weight > 0.0 { sum / weight } else { 0.0 });
        let expected = SelfEstimate { entropy, right, wrong }.at(error_share);
        Self { leaves: 1.0, total, label_entropy, self_entropy: entropy, expected, error_share }
    }

    fn add(&mut self, other: &Self) {
        self.leaves += other.leaves;
        self.total += other.total;
        self.label_entropy += other.label_entropy;
        self.self_entropy += other.self_entropy;
        self.expected += other.expected;
        self.error_share += other.error_share;
    }
}

/// Fits the slopes; `irreducible` is the irreducible loss of a leaf, if known.
pub(crate) fn fit_slopes(
    estimator: &LeafEstimator<'_>,
    statistics: &LeafStatistics,
    irreducible: impl Fn(usize) -> Option<f64>,
) -> Slopes {
    let pairs = (0..estimator.rows()).filter(|&row| estimator.is_paired(row)).count();
    fit_slopes_on(trees_for_slopes(pairs, statistics.rows().trees()), estimator, statistics, irreducible)
}

/// The number of trees that the slopes are fitted on.
fn trees_for_slopes(pairs: usize, trees: usize) -> usize {
    trees.min((TREE_ROWS_FOR_SLOPES / pairs.max(1)).max(MIN_TREES_FOR_SLOPES))
}

/// Fits the slopes on the first `count` trees.
fn fit_slopes_on(
    count: usize,
    estimator: &LeafEstimator<'_>,
    statistics: &LeafStatistics,
    irreducible: impl Fn(usize) -> Option<f64>,
) -> Slopes {
    let rows = (0..estimator.rows()).into_par_iter().with_min_len(MIN_ROWS_PER_TASK);
    let of_rows: Vec<PairSums> = rows.map(|row| pair_sums_of_row(estimator, row)).collect();
    let leaves = statistics.rows().sum_over_leaves(count, &of_rows, |leaf, sums| {
        (sums[0], PairMeans::from_sums(sums, statistics.error_share(leaf)))
    });
    // The entropy of few labels is too small; the leaves estimate the factor.
    let [mut known, mut entropy] = [0.0; 2];
    for (leaf, (weight, means)) in leaves.iter().enumerate() {
        if let Some(irreducible) = irreducible(leaf) {
            known += weight * irreducible;
            entropy += weight * means.label_entropy;
        }
    }
    let entropy_factor = if entropy > 0.0 { known / entropy } else { 1.0 };
    // For each row of the sample, sums over the trees for which it is out of bag.
    let mut sums = vec![PairMeans::default(); statistics.sample().len()];
    for (place, leaf) in (0..count).flat_map(|tree| statistics.out_of_bag_sample(tree)) {
        sums[place].add(&leaves[leaf].1);
    }
    let compared = statistics.sample().iter().zip(&sums).filter(|(_, sums)| sums.leaves > 0.0);
    // The differences between a row and the mean of its leaves.
    let points = compared.map(|(&row, sums)| {
        let row = row as usize;
        let mean = |sum: f64| sum / sums.leaves;
        let own = estimator.self_estimate(row);
        let total = estimator.total_of_row(row) - mean(sums.total);
        let noise = entropy_factor * (estimator.label_entropy_of_row(row) - mean(sums.label_entropy));
        [
            estimator.weight(row),
            difference(own.entropy, mean(sums.self_entropy)),
            difference(own.at(mean(sums.error_share)), mean(sums.expected)),
            total - noise,
        ]
    });
    Slopes(least_squares(&points.collect::<Vec<_>>()))
}

/// The difference of two numbers, or zero if it is rounding. Where a loss charges all errors alike, Q is the same for all predictions, and
/// a slope over its last digits would be huge.
fn difference(a: f64, b: f64) -> f64 {
    let rounding = 1e-9 * (a.abs() + b.abs());
    if (a - b).abs() > rounding { a - b } else { 0.0 }
}

/// The slopes of z over x and y through the origin, for points (weight, x, y, z). They are shrunk towards zero by the factor that minimises
/// the estimated error of their predictions.
fn least_squares(points: &[[f64; 4]]) -> [f64; 2] {
    let sum = |of: &dyn Fn(&[f64; 4]) -> f64| points.iter().map(of).sum::<f64>();
    let (xx, yy) = (sum(&|[w, x, _, _]| w * x * x), sum(&|[w, _, y, _]| w * y * y));
    let (xz, yz) = (sum(&|[w, x, _, z]| w * x * z), sum(&|[w, _, y, z]| w * y * z));
    let xy = sum(&|[w, x, y, _]| w * x * y);
    // The inverse of the matrix of x and y, or of one of them if the other is collinear. Products of two sums may overflow or underflow.
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
    // The part that chance explains, for points of unequal variances.
    let chance = sum(&|[w, x, y, z]| {
        let residual = w * (z - slopes[0] * x - slopes[1] * y);
        residual * residual * (inverse[0] * x * x + 2.0 * inverse[1] * x * y + inverse[2] * y * y)
    });
    if chance < explained { slopes.map(|slope| slope * (1.0 - chance / explained)) } else { [0.0; 2] }
}

#[cfg(test)]
mod tests {
    use pointsman_testing::scattered as share;

    use super::{fit_slopes_on, least_squares, trees_for_slopes};
    use crate::estimate::{LeafBuffers, LeafEstimator};
    use crate::task::Estimator;
    use crate::{Loss, Partition, Router, Table};

    #[test]
    fn slopes_are_found_unless_chance_explains_them() {
        let noise = |x: f64| if x.floor() % 2.0 == 0.0 { 20.0 } else { -20.0 };
        let points = |z: &dyn Fn(f64, f64) -> f64| -> Vec<[f64; 4]> {
            let of = |i: i32| (f64::from(i) - 49.5, f64::from(i * 37 % 100) - 49.5);
            (0..100).map(of).map(|(x, y)| [1.0, x, y, z(x, y)]).collect()
        };
        let [b, c] = least_squares(&points(&|x, y| 0.7 * x - 0.2 * y));
        assert!((b - 0.7).abs() < 1e-12 && (c + 0.2).abs() < 1e-12);
        // Noise as large as the effect, and larger.
        let [b, c] = least_squares(&points(&|x, y| 0.7 * x + 0.7 * y + noise(x)));
        assert!((0.6..0.7).contains(&b) && (0.6..0.75).contains(&c), "{b} {c}");
        assert_eq!(least_squares(&points(&|x, _| 0.01 * x + noise(x))), [0.0; 2]);
        // In any unit.
        for unit in [1e-90, 1e90] {
            let [b, c] = least_squares(
                &points(&|x, y| 0.7 * x - 0.2 * y)
                    .into_iter()
                    .map(|[w, x, y, z]| [w, unit * x, unit * y, z])
                    .collect::<Vec<_>>(),
            );
            assert!((b * unit - 0.7).abs() < 1e-9 && (c * unit + 0.2).abs() < 1e-9, "{unit}: {b} {c}");
        }
        assert_eq!(least_squares(&[]), [0.0; 2]);
        assert_eq!(least_squares(&[[1.0, 0.0, 0.0, 1.0]; 5]), [0.0; 2]);
    }

    #[test]
    fn collinear_columns_get_one_slope() {
        let points = |x: &dyn Fn(f64) -> f64, y: &dyn Fn(f64) -> f64| -> Vec<[f64; 4]> {
            (0..50).map(|i| f64::from(i) - 20.0).map(|t| [1.0, x(t), y(t), t]).collect()
        };
        for (points, what, [b, c]) in [
            (points(&|t| t, &|t| 3.0 * t), "the same", [1.0, 0.0]),
            (points(&|t| t, &|_| 0.0), "nothing", [1.0, 0.0]),
            (points(&|_| 0.0, &|t| 2.0 * t), "alone", [0.0, 0.5]),
        ] {
            let [found_b, found_c] = least_squares(&points);
            assert!((found_b - b).abs() < 1e-9 && (found_c - c).abs() < 1e-9, "{what}: {found_b} {found_c}");
        }
    }

    #[test]
    fn many_rows_need_fewer_trees() {
        let rows = [0, 1, 5_000, 10_000, 50_000, 1 << 30];
        assert_eq!(rows.map(|rows| trees_for_slopes(rows, 200)), [200, 200, 200, 104, 25, 25]);
        assert_eq!(rows.map(|rows| trees_for_slopes(rows, 1)), [1; 6]);
    }

    #[test]
    fn few_trees_give_nearly_the_slopes_of_all() {
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
            let leaves = router.leaves().unwrap();
            let loss = Loss::cross_entropy();
            let estimator = LeafEstimator::new(router.rows(), &loss, Estimator::Shrink, None);
            let known = leaves.rows().map_leaves(LeafBuffers::default, |buffers, tree, leaf| {
                estimator.irreducible(leaves, tree, leaf, buffers)[0]
            });
            let irreducible = |leaf: usize| Some(known[leaf]);
            let by = |trees| fit_slopes_on(trees, &estimator, leaves, irreducible);
            let (all, few) = (by(100), by(25));
            // The own parts are compared, not the slopes: G and Q are correlated, so that either slope can take a common part.
            let spread = |of: &dyn Fn(usize) -> f64| {
                let parts: Vec<f64> = (0..n as usize).map(of).collect();
                let mean = parts.iter().sum::<f64>() / f64::from(n);
                (parts.iter().map(|part| (part - mean).powi(2)).sum::<f64>() / f64::from(n)).sqrt()
            };
            of_all += spread(&|row| all.own_part(estimator.self_estimate(row), 0.3));
            apart += spread(&|row| {
                all.own_part(estimator.self_estimate(row), 0.3) - few.own_part(estimator.self_estimate(row), 0.3)
            });
        }
        assert!(of_all > 0.15 && apart < 0.2 * of_all, "{of_all} by all trees, {apart} less by few");
    }
}
