//! The losses of very many small mixtures of the same rows: the leaves of a forest.
//!
//! What depends on a row alone is worked out once; a leaf only adds it up, and evaluates the entropy of its shrunk points. The
//! numbers are those of [`Decomposition`](super::Decomposition), up to rounding.

use std::collections::HashMap;

use rayon::prelude::*;

use super::{Estimator, certain_loss};
use crate::loss::{Loss, dot};
use crate::router::{Mixture, SPARSE};

/// What is known of each row of a mixture's table, and of each distinct set of votes: rows that share their votes share all but
/// the loss of their prediction.
pub(crate) struct PerRow {
    classes: usize,
    weights: Vec<f64>,
    /// Loss of the weak prediction, and its entropy: what it expects to lose itself.
    totals: Vec<[f64; 2]>,
    /// Which votes a row has.
    votes: Vec<u32>,
    /// Labels of each distinct set of votes, as a number.
    labels: Vec<f64>,
    /// Snapshot means, one after the other.
    means: Vec<f64>,
    /// ‖ȳ‖².
    squares: Vec<f64>,
    /// The entropy of ȳ.
    entropies: Vec<f64>,
}

/// What the rows of a leaf have in common.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Means {
    /// The weight of those with two labels, and the mean entropy of their labels.
    pub(super) weight: f64,
    pub(super) entropy: f64,
    /// The mean loss and the mean entropy of the predictions, of those with two labels; of all if all have them.
    pub(super) paired: [f64; 2],
    /// The mean entropy of all predictions.
    pub(super) served: f64,
}

impl Means {
    /// The mean entropy of the predictions.
    pub(crate) fn served(&self) -> f64 {
        self.served
    }
}

/// What one leaf leaves behind for the next.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Weight and squared weights of each distinct set of votes; zero between leaves.
    sums: Vec<[f64; 2]>,
    /// Those that a leaf has, in the order they were met.
    met: Vec<u32>,
    points: Vec<f64>,
}

impl PerRow {
    pub(crate) fn of(mixture: Mixture<'_>, loss: &Loss) -> Self {
        let (table, classes) = (mixture.table(), mixture.table().classes().len());
        let total = |(mean, point, losses): &mut (Vec<f64>, Vec<f64>, Vec<f64>), row: usize| {
            mixture.votes(row).mean_into(mean);
            table.dist_into(row, point);
            loss.losses_into(point, losses);
            [dot(mean, losses), loss.entropy(point)]
        };
        let buffers = || (vec![0.0; classes], vec![0.0; classes], vec![0.0; classes]);
        let totals = (0..table.rows()).into_par_iter().with_min_len(1 << 10).map_init(buffers, total).collect();
        let mut distinct: HashMap<&[u32], u32> = HashMap::new();
        let (mut labels, mut means, mut squares, mut entropies) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let number = |row: usize| {
            let votes = mixture.votes(row);
            let next = distinct.len() as u32;
            *distinct.entry(votes.counts()).or_insert_with(|| {
                let start = means.len();
                means.resize(start + classes, 0.0);
                votes.mean_into(&mut means[start..]);
                squares.push(dot(&means[start..], &means[start..]));
                entropies.push(loss.entropy(&means[start..]));
                labels.push(votes.k() as f64);
                next
            })
        };
        let votes = (0..table.rows()).map(number).collect();
        let weights = (0..table.rows()).map(|row| table.weight(row)).collect();
        Self { classes, weights, totals, votes, labels, means, squares, entropies }
    }

    pub(super) fn rows(&self) -> usize {
        self.weights.len()
    }

    pub(super) fn weight(&self, row: usize) -> f64 {
        self.weights[row]
    }

    /// The entropy of a row's prediction.
    #[inline]
    pub(crate) fn served(&self, row: usize) -> f64 {
        self.totals[row][1]
    }

    /// A row's loss, the entropy of its labels and that of its prediction, and whether it has two labels.
    pub(super) fn own(&self, row: usize) -> ([f64; 3], bool) {
        let (votes, [total, served]) = (self.votes[row] as usize, self.totals[row]);
        ([total, self.entropies[votes], served], self.labels[votes] >= 2.0)
    }

    /// The mean entropy of some rows' predictions.
    pub(crate) fn mean_served(&self, rows: &[u32]) -> f64 {
        let (mut weight, mut sum) = (0.0, 0.0);
        for row in rows.iter().map(|&row| row as usize) {
            weight += self.weights[row];
            sum += self.weights[row] * self.totals[row][1];
        }
        sum / weight
    }

    /// What some rows have in common.
    pub(crate) fn means(&self, rows: &[u32]) -> Means {
        let (mut all, mut served, mut weight, mut sums) = (0.0, 0.0, 0.0, [0.0; 3]);
        for row in rows.iter().map(|&row| row as usize) {
            let (w, (own, is_paired)) = (self.weights[row], self.own(row));
            all += w;
            served += w * own[2];
            if is_paired {
                weight += w;
                sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += w * own);
            }
        }
        let [total, entropy, own] = sums.map(|sum| if weight > 0.0 { sum / weight } else { 0.0 });
        Means { weight, entropy, paired: [total, own], served: served / all }
    }

    /// The total loss of some rows and both ends of their irreducible loss.
    ///
    /// For `shrink` and `plugin` only.
    pub(crate) fn losses(&self, rows: &[u32], loss: &Loss, estimator: Estimator, scratch: &mut Scratch) -> [f64; 3] {
        self.losses_and_means(rows, loss, estimator, scratch).0
    }

    /// The same, with what the rows have in common: one visit for both.
    pub(crate) fn losses_and_means(
        &self,
        rows: &[u32],
        loss: &Loss,
        estimator: Estimator,
        scratch: &mut Scratch,
    ) -> ([f64; 3], Means) {
        let c = self.classes;
        let Scratch { sums, met, points } = scratch;
        sums.resize(self.labels.len(), [0.0; 2]);
        met.clear();
        points.clear();
        points.resize(2 * c, 0.0);
        let (centre, point) = points.split_at_mut(c);
        let (mut weight, mut total, mut served) = (0.0, 0.0, 0.0);
        for row in rows.iter().map(|&row| row as usize) {
            let (w, sums) = (self.weights[row], &mut sums[self.votes[row] as usize]);
            if sums[0] == 0.0 {
                met.push(self.votes[row]);
            }
            sums[0] += w;
            sums[1] += w * w;
            weight += w;
            total += w * self.totals[row][0];
            served += w * self.totals[row][1];
        }
        let mean = |votes: usize| &self.means[votes * c..][..c];
        let (mut squares, mut pair_weight, mut pair_squares, mut noise) = (0.0, 0.0, 0.0, 0.0);
        let mut entropies = 0.0;
        let (mut fewest, mut most) = (f64::INFINITY, 0.0);
        for votes in met.iter().map(|&votes| votes as usize) {
            let ([w, w2], k) = (sums[votes], self.labels[votes]);
            squares += w * self.squares[votes];
            (fewest, most) = (k.min(fewest), k.max(most));
            if k >= 2.0 {
                pair_weight += w;
                pair_squares += w2;
                noise += w * (1.0 - self.squares[votes]) * k / (k - 1.0);
                entropies += w * self.entropies[votes];
            }
            centre.iter_mut().zip(mean(votes)).for_each(|(sum, y)| *sum += w * y);
        }
        centre.iter_mut().for_each(|sum| *sum /= weight);
        let ceiling = loss.entropy(centre);
        let effective = if pair_weight > 0.0 { pair_weight * pair_weight / pair_squares } else { 0.0 };
        let identified = pair_weight >= weight / 2.0 || effective >= SPARSE as f64 - 1e-6;
        let (noise, square) = (if pair_weight > 0.0 { noise / pair_weight } else { 0.0 }, dot(centre, centre));
        let variance = (1.0 - square - noise).max(0.0);
        let spread = squares / weight - square;
        let common = if spread > 0.0 { (variance / spread).min(1.0).sqrt() } else { 0.0 };
        let mut irreducible = 0.0;
        for votes in met.iter().map(|&votes| votes as usize) {
            let [w, _] = std::mem::take(&mut sums[votes]);
            let entropy = if estimator == Estimator::Shrink {
                let factor = match fewest == most {
                    true => common,
                    false if variance > 0.0 => (variance / (variance + noise / self.labels[votes])).sqrt(),
                    false => 0.0,
                };
                for ((p, y), centre) in point.iter_mut().zip(mean(votes)).zip(centre.iter()) {
                    *p = centre + factor * (y - centre);
                }
                loss.entropy(point)
            } else {
                self.entropies[votes]
            };
            irreducible += w * entropy;
        }
        let (total, irreducible, served) = (total / weight, irreducible / weight, served / weight);
        let means = if fewest >= 2.0 {
            Means { weight, entropy: entropies / weight, paired: [total, served], served }
        } else {
            self.means(rows)
        };
        if !identified {
            return ([total, certain_loss(loss, centre), ceiling], means);
        }
        let irreducible = if estimator == Estimator::Shrink { irreducible.min(ceiling) } else { irreducible };
        ([total, irreducible, irreducible], means)
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
                    let mut scratch = Scratch::default();
                    let per_row = PerRow::of(Mixture::all_rows_of(&table), &loss);
                    for rows in [vec![7], vec![1, 2, 3, 5, 8, 13, 21, 34, 55], (0..n).collect::<Vec<_>>()] {
                        let found = per_row.losses(&rows, &loss, estimator, &mut scratch);
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
