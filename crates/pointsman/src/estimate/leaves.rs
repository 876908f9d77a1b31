//! The losses of very many small mixtures of the same rows: the leaves of a forest.
//!
//! What depends on a row alone is worked out once; a leaf only adds it up, and evaluates the entropy of its shrunk points. The
//! numbers are those of [`Decomposition`](super::Decomposition), up to rounding.

use rayon::prelude::*;

use super::{Estimator, certain_loss};
use crate::loss::{Loss, dot};
use crate::router::{Mixture, SPARSE};

/// What is known of each row of a mixture's table.
pub(crate) struct PerRow {
    classes: usize,
    weights: Vec<f64>,
    /// Labels of each row, as a number.
    labels: Vec<f64>,
    /// Snapshot means, row by row.
    means: Vec<f64>,
    /// ‖ȳ‖².
    squares: Vec<f64>,
    /// Loss of the weak prediction.
    totals: Vec<f64>,
}

impl PerRow {
    pub(crate) fn of(mixture: Mixture<'_>, loss: &Loss) -> Self {
        let (table, classes) = (mixture.table(), mixture.table().classes().len());
        let mut means = vec![0.0; table.rows() * classes];
        let row = |(point, losses): &mut (Vec<f64>, Vec<f64>), (row, mean): (usize, &mut [f64])| {
            mixture.votes(row).mean_into(mean);
            table.dist_into(row, point);
            loss.losses_into(point, losses);
            (dot(mean, losses), dot(mean, mean))
        };
        let buffers = || (vec![0.0; classes], vec![0.0; classes]);
        let rows = means.par_chunks_exact_mut(classes).enumerate().with_min_len(1 << 10);
        let (totals, squares) = rows.map_init(buffers, row).unzip();
        let all = || 0..table.rows();
        Self {
            classes,
            weights: all().map(|row| table.weight(row)).collect(),
            labels: all().map(|row| mixture.votes(row).k() as f64).collect(),
            means,
            squares,
            totals,
        }
    }

    /// The total loss of some rows and both ends of their irreducible loss. `scratch` is used anew for every call.
    ///
    /// For `shrink` and `plugin` only.
    pub(crate) fn losses(&self, rows: &[u32], loss: &Loss, estimator: Estimator, scratch: &mut Vec<f64>) -> [f64; 3] {
        let c = self.classes;
        scratch.clear();
        scratch.resize(2 * c, 0.0);
        let (centre, point) = scratch.split_at_mut(c);
        let (mut weight, mut total, mut squares) = (0.0, 0.0, 0.0);
        let (mut pairs, mut pair_weight, mut pair_squares, mut noise) = (0, 0.0, 0.0, 0.0);
        let (mut fewest, mut most) = (f64::INFINITY, 0.0);
        for row in rows.iter().map(|&row| row as usize) {
            let (w, k) = (self.weights[row], self.labels[row]);
            weight += w;
            total += w * self.totals[row];
            squares += w * self.squares[row];
            (fewest, most) = (k.min(fewest), k.max(most));
            if k >= 2.0 {
                pairs += 1;
                pair_weight += w;
                pair_squares += w * w;
                noise += w * (1.0 - self.squares[row]) * k / (k - 1.0);
            }
            let mean = &self.means[row * c..][..c];
            centre.iter_mut().zip(mean).for_each(|(sum, y)| *sum += w * y);
        }
        centre.iter_mut().for_each(|sum| *sum /= weight);
        let total = total / weight;
        let ceiling = loss.entropy(centre);
        let effective = if pairs > 0 { pair_weight * pair_weight / pair_squares } else { 0.0 };
        if pair_weight < weight / 2.0 && effective < SPARSE as f64 - 1e-6 {
            return [total, certain_loss(loss, centre), ceiling];
        }
        let shrinks = estimator == Estimator::Shrink;
        let noise = noise / pair_weight;
        let square = dot(centre, centre);
        let variance = (1.0 - square - noise).max(0.0);
        let spread = squares / weight - square;
        let common = if spread > 0.0 { (variance / spread).min(1.0).sqrt() } else { 0.0 };
        let mut irreducible = 0.0;
        for row in rows.iter().map(|&row| row as usize) {
            let mean = &self.means[row * c..][..c];
            let entropy = if shrinks {
                let factor = match fewest == most {
                    true => common,
                    false if variance > 0.0 => (variance / (variance + noise / self.labels[row])).sqrt(),
                    false => 0.0,
                };
                for ((p, y), centre) in point.iter_mut().zip(mean).zip(centre.iter()) {
                    *p = centre + factor * (y - centre);
                }
                loss.entropy(point)
            } else {
                loss.entropy(mean)
            };
            irreducible += self.weights[row] * entropy;
        }
        let irreducible = irreducible / weight;
        let irreducible = if shrinks { irreducible.min(ceiling) } else { irreducible };
        [total, irreducible, irreducible]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{Decomposition, RowLosses};
    use crate::table::Table;

    #[test]
    fn leaves_have_the_losses_of_their_mixtures() {
        let n = 60_u32;
        let probs = (0..n).flat_map(|i| [0.2 + f64::from(i % 7) * 0.1, 0.8 - f64::from(i % 7) * 0.1]).collect();
        for labels in [|i: u32| [i % 4, 4 - i % 4], |i: u32| [1 + i % 3, i % 5], |i: u32| [1, u32::from(i == 7)]] {
            let votes = (0..n).flat_map(labels).collect();
            let table = Table::new(["a", "b"], Vec::clone(&probs)).and_then(|table| table.with_votes(votes)).unwrap();
            let table = table.with_weights((0..n).map(|i| 1.0 + f64::from(i % 3)).collect()).unwrap();
            for loss in [Loss::brier(), Loss::cross_entropy(), Loss::zero_one()] {
                for estimator in [Estimator::Shrink, Estimator::Plugin] {
                    let per_row = PerRow::of(Mixture::all_rows_of(&table), &loss);
                    for rows in [vec![7], vec![1, 2, 3, 5, 8, 13, 21, 34, 55], (0..n).collect::<Vec<_>>()] {
                        let found = per_row.losses(&rows, &loss, estimator, &mut Vec::new());
                        let mixture = Mixture::of_rows(&table, &rows);
                        let d = Decomposition::of(mixture, &loss, estimator, None, &RowLosses::default()).unwrap();
                        let expected = [d.total, d.irreducible_low, d.irreducible_high];
                        for (found, expected) in found.into_iter().zip(expected) {
                            assert!((found - expected).abs() < 1e-9, "{loss} {estimator}: {found} and {expected}");
                        }
                    }
                }
            }
        }
    }
}
