//! Random weights of classes, which stand for the decisions that tasks may take.

use crate::numeric::mix::{nth, uniform};

/// The largest number of weight vectors. Fewer favour some classes by chance.
const MAX_WEIGHT_VECTORS: usize = 256;

/// The smallest number of weight vectors, if there are very many classes.
const MIN_WEIGHT_VECTORS: usize = 8;

/// The number of weights of all vectors together, if there are many classes: it bounds the time per row.
const MAX_WEIGHTS: usize = 1 << 14;

/// Weight vectors w over classes, uniform on the simplex and drawn once. They are the same for all tables of as many classes.
///
/// Each stands for a decision: acts are classes, and an act that is not the true class y costs w_y. Under the distribution p the best act
/// is the one with the largest w_y p_y.
#[derive(Debug, Clone)]
pub(super) struct ClassWeights {
    /// Vector by vector.
    weights: Vec<f64>,
    classes: usize,
}

impl ClassWeights {
    pub(super) fn new(classes: usize) -> Self {
        let vectors = (MAX_WEIGHTS / classes).clamp(MIN_WEIGHT_VECTORS, MAX_WEIGHT_VECTORS);
        let mut weights = Vec::with_capacity(vectors * classes);
        for vector in 0..vectors as u64 {
            // The gaps between sorted uniform numbers are uniform on the simplex.
            let mut cuts: Vec<f64> = (1..classes as u64).map(|place| uniform(nth(vector, place))).collect();
            cuts.push(1.0);
            cuts.sort_by(f64::total_cmp);
            weights.extend(cuts.iter().scan(0.0, |last, &cut| Some(cut - std::mem::replace(last, cut))));
        }
        Self { weights, classes }
    }

    /// By how much the acts that `prediction` chooses cost more than the best acts under `truth`, as a mean over all weight vectors:
    /// max_y w_y p_y − w_a p_a with a = argmax_y w_y f_y.
    ///
    /// With the mean of few labels as the truth this is too large. It serves to find splits, and no estimate contains it.
    pub(super) fn mean_excess(&self, truth: &[f64], prediction: &[f64]) -> f64 {
        let excess = |weights: &[f64]| {
            let (mut best, mut chosen, mut highest) = (0.0_f64, 0.0, -1.0);
            for ((w, p), f) in weights.iter().zip(truth).zip(prediction) {
                best = best.max(w * p);
                if w * f > highest {
                    (highest, chosen) = (w * f, w * p);
                }
            }
            best - chosen
        };
        let vectors = self.weights.chunks_exact(self.classes);
        let count = vectors.len() as f64;
        vectors.map(excess).sum::<f64>() / count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acts_chosen_by_the_truth_cost_nothing_more() {
        let weights = ClassWeights::new(3);
        assert_eq!(weights.mean_excess(&[0.5, 0.3, 0.2], &[0.5, 0.3, 0.2]), 0.0);
        // The farther the prediction, the more; a vector with a weight near zero makes hardly a difference.
        let excess =
            [[0.4, 0.4, 0.2], [0.2, 0.6, 0.2], [0.0, 0.9, 0.1]].map(|f| weights.mean_excess(&[0.6, 0.2, 0.2], &f));
        assert!(excess.is_sorted_by(|a, b| 0.0 < *a && a < b), "{excess:?}");
    }

    /// With two classes the weights are (w, 1 − w) with w uniform, so that the mean is an integral over w.
    #[test]
    fn mean_over_weight_vectors_is_near_the_integral() {
        for (p, f) in [([0.7, 0.3], [0.4, 0.6]), ([0.1, 0.9], [0.5, 0.5])] {
            let excess = |w: [f64; 2]| {
                let act = usize::from(w[0] * f[0] < w[1] * f[1]);
                (w[0] * p[0]).max(w[1] * p[1]) - w[act] * p[act]
            };
            let integral =
                (0..10_000).map(|i| (f64::from(i) + 0.5) / 1e4).map(|w| excess([w, 1.0 - w])).sum::<f64>() / 1e4;
            let found = ClassWeights::new(2).mean_excess(&p, &f);
            assert!((found / integral - 1.0).abs() < 0.25, "{found} and {integral}");
        }
    }

    #[test]
    fn weights_are_distributions_and_their_number_is_bounded() {
        for (classes, vectors) in [(2, 256), (10, 256), (100, 163), (5_000, 8)] {
            let ClassWeights { weights, .. } = ClassWeights::new(classes);
            assert_eq!(weights.len(), vectors * classes);
            for own in weights.chunks_exact(classes) {
                assert!((own.iter().sum::<f64>() - 1.0).abs() < 1e-9 && own.iter().all(|w| *w >= 0.0));
            }
        }
    }
}
