//! What a prediction says of itself within a leaf.
//!
//! Trees grown on no loss mix what a loss tells apart, above all which act a prediction f leads to and at what price. The
//! entropy G(f) of the loss knows. A query's total loss is therefore the mean of its leaves' and b (G(f) − Ḡ) for being unlike
//! their rows. The slope b is one for all leaves, that of least squares for the reducible loss of rows judged by trees that
//! were not grown on them; the irreducible loss stays that of the leaves.

use rayon::prelude::*;

use super::leaves::{Means, PerRow};
use crate::forest::{Bag, Forest, LeafRows};

/// Rows that tell the slope: more would hardly change it, and another loss is to cost little.
const ROWS: usize = 10_000;

/// Trees whose rows are added up together: the order of sums does not depend on threads.
const TOGETHER: usize = 25;

/// What some trees say.
struct Part {
    /// For each row that tells the slope, the trees not grown on it, and sums over them of how it differs from the mean of its
    /// leaf: in its loss, in the entropy of its labels, in that of its prediction.
    unlike: Vec<[f64; 4]>,
    /// The irreducible loss as leaves estimate it, and as the mean entropy of labels, both weighted.
    noise: [f64; 2],
}

/// Finds the slope; `means` are those of each leaf, `noise` is its irreducible loss, if its labels tell.
pub(crate) fn slope_within(
    per_row: &PerRow,
    forest: &Forest,
    leaves: &LeafRows,
    means: &[Means],
    noise: impl Fn(usize) -> Option<f64> + Sync,
) -> f64 {
    let trees = forest.trees().count();
    let stride = per_row.rows().div_ceil(ROWS).max(1);
    // Looked up once a row and tree.
    let tells: Vec<bool> = (0..per_row.rows()).map(|row| row.is_multiple_of(stride) && per_row.own(row).1).collect();
    let part_of = |first: usize| {
        let unlike = vec![[0.0; 4]; per_row.rows().div_ceil(stride)];
        let mut part = Part { unlike, noise: [0.0; 2] };
        for tree in first..(first + TOGETHER).min(trees) {
            let bag = Bag::of(forest.seed(), tree);
            for leaf in forest.trees().leaves_of(tree) {
                let Means { weight, entropy, paired: [total, served], .. } = means[leaf];
                if let Some(noise) = noise(leaf) {
                    part.noise[0] += weight * noise;
                    part.noise[1] += weight * entropy;
                }
                let telling = leaves.of(leaf).iter().filter(|&&row| tells[row as usize] && leaves.is_new(bag, row));
                for row in telling.map(|&row| row as usize) {
                    let unlike = &mut part.unlike[row / stride];
                    unlike[0] += 1.0;
                    let differences =
                        per_row.own(row).0.into_iter().zip([total, entropy, served]).map(|(x, mean)| x - mean);
                    unlike[1..].iter_mut().zip(differences).for_each(|(sum, x)| *sum += x);
                }
            }
        }
        part
    };
    let firsts: Vec<usize> = (0..trees).step_by(TOGETHER).collect();
    let parts: Vec<Part> = firsts.into_par_iter().map(part_of).collect();
    let mut noise = [0.0; 2];
    let mut unlike = vec![[0.0; 4]; per_row.rows().div_ceil(stride)];
    for part in parts {
        unlike.iter_mut().flatten().zip(part.unlike.iter().flatten()).for_each(|(sum, one)| *sum += one);
        noise.iter_mut().zip(part.noise).for_each(|(sum, one)| *sum += one);
    }
    // Few labels have too little entropy, all in the proportion that the leaves say.
    let lack = if noise[1] > 0.0 { noise[0] / noise[1] } else { 1.0 };
    let told = unlike.iter().enumerate().filter(|(_, unlike)| unlike[0] > 0.0);
    let points = told.map(|(i, &[trees, loss, entropy, served])| {
        [per_row.weight(i * stride), served / trees, (loss - lack * entropy) / trees]
    });
    slope(&points.collect::<Vec<_>>())
}

/// The slope of y over x through the origin, of points (weight, x, y). One that may be chance is drawn towards none: times
/// 1 − 1/t² its error is expected to be least.
fn slope(points: &[[f64; 3]]) -> f64 {
    let square: f64 = points.iter().map(|[w, x, _]| w * x * x).sum();
    let slope = points.iter().map(|[w, x, y]| w * x * y).sum::<f64>() / square;
    let variance = points.iter().map(|[w, x, y]| (w * x * (y - slope * x)).powi(2)).sum::<f64>() / (square * square);
    // Not if a prediction is like all others, where nothing is divided by nothing.
    if variance < slope * slope { slope - variance / slope } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::slope;

    #[test]
    fn a_slope_is_found_unless_chance_explains_it() {
        let points = |y: &dyn Fn(f64) -> f64| (0..100).map(|i| f64::from(i) - 49.5).map(|x| [1.0, x, y(x)]).collect();
        let exact: Vec<[f64; 3]> = points(&|x| 0.7 * x);
        assert!((slope(&exact) - 0.7).abs() < 1e-12);
        // Noise as large as what is to be seen, and larger.
        let noisy: Vec<[f64; 3]> = points(&|x| 0.7 * x + if x.floor() % 2.0 == 0.0 { 20.0 } else { -20.0 });
        assert!((0.6..0.7).contains(&slope(&noisy)), "{}", slope(&noisy));
        let chance: Vec<[f64; 3]> = points(&|x| 0.01 * x + if x.floor() % 2.0 == 0.0 { 20.0 } else { -20.0 });
        assert_eq!(slope(&chance), 0.0);
        assert_eq!(slope(&[]), 0.0);
        assert_eq!(slope(&[[1.0, 0.0, 1.0]; 5]), 0.0);
    }
}
