//! What a prediction says of itself within a leaf.
//!
//! Trees grown on no loss mix what a loss tells apart, above all which act a prediction f leads to and at what price. The
//! entropy G(f) of the loss knows. A query's total loss is therefore the mean of its leaves' and b (G(f) − Ḡ) for being unlike
//! their rows. The slope b is one for all leaves, that of least squares for the reducible loss of rows judged by trees that
//! were not grown on them; the irreducible loss stays that of the leaves.

use rayon::prelude::*;

use super::leaves::{Means, PerRow};
use crate::forest::{LeafRows, Trees};

/// Trees whose rows are added up together: the order of sums does not depend on threads.
const TOGETHER: usize = 25;

/// What some trees say.
struct Part {
    /// For each row that tells the slope, the trees not grown on it, and sums over them of its leaf's mean loss, entropy of labels
    /// and entropy of predictions.
    sums: Vec<[f64; 4]>,
    /// The irreducible loss as leaves estimate it, and as the mean entropy of labels, both weighted.
    noise: [f64; 2],
}

impl Part {
    fn new(rows: usize) -> Self {
        Self { sums: vec![[0.0; 4]; rows], noise: [0.0; 2] }
    }
}

/// Finds the slope; `means` are those of each leaf, `noise` is its irreducible loss, if its labels tell.
pub(crate) fn slope_within(
    per_row: &PerRow<'_>,
    trees: &Trees,
    leaves: &LeafRows,
    means: &[Means],
    noise: impl Fn(usize) -> Option<f64> + Sync,
) -> f64 {
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
                let Means { entropy, paired: [total, served], .. } = means[leaf as usize];
                let sums = part.sums[place as usize].iter_mut();
                sums.zip([1.0, total, entropy, served]).for_each(|(sum, x)| *sum += x);
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
    let points = told.map(|(&row, &[trees, total, entropy, served])| {
        let [own_total, own_entropy, own_served] = per_row.own(row as usize);
        let unlike = (own_total - total / trees) - lack * (own_entropy - entropy / trees);
        [per_row.weight(row as usize), own_served - served / trees, unlike]
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
