//! The law of a row's true label distribution p*, given everything that predicts it: the weak model, similar rows, and measured oracles.
//!
//! The cost of an action depends on p* and on the predictions of the model and of the oracles. Its law must therefore be conditional on all of
//! them: under a law that ignores an oracle's answer, the oracle seems to be wrong more often than it is. The mean of the law is the mixture of
//! the given predictions, with weights that are the same for all rows and minimise the squared distance to the labels. The law is Dirichlet
//! around it. Its concentration is that of rows with a similar mean, from the share of label pairs that agree, which is unbiased.

use rand_pcg::Pcg64;

use super::dirichlet::draw_into;
use crate::table::Table;
use crate::table::simplex::dot;

/// Rows of similar mean per concentration, or of similar score per law.
const ROWS_PER_GROUP: usize = 200;

/// The largest number of such groups.
const MAX_GROUPS: usize = 40;

/// Sweeps over all pairs of weights; each improves the fit.
const SWEEPS: usize = 200;

/// The least and the largest concentration of a Dirichlet law.
const CONCENTRATIONS: [f64; 2] = [0.02, 3000.0];

/// One Dirichlet law per row.
#[derive(Debug, Clone)]
pub(crate) struct PredictedLaw {
    classes: usize,
    /// The means, row by row.
    means: Vec<f64>,
    concentrations: Vec<f64>,
}

impl PredictedLaw {
    /// Fits the laws. `predictions` are lists of one distribution per row, `order` is an order of the rows that does not depend on labels.
    pub(crate) fn fit(table: &Table, predictions: &[Vec<f64>], order: &[u32]) -> Self {
        let mut law = Self::without_means(table);
        law.mix(table, predictions, order);
        let entropy = |row: u32| 1.0 - law.square(row as usize);
        let mut order = order.to_vec();
        order.sort_by(|&a, &b| entropy(a).total_cmp(&entropy(b)));
        law.concentrate(table, &order);
        law
    }

    /// Fits the laws with weights and concentrations of their own in each group of consecutive rows of `order`, the table's rows sorted by a
    /// score that does not depend on their labels.
    pub(crate) fn fit_in_groups(table: &Table, predictions: &[Vec<f64>], order: &[u32]) -> Self {
        let mut law = Self::without_means(table);
        groups(order).for_each(|rows| law.mix(table, predictions, rows));
        law.concentrate(table, order);
        law
    }

    fn without_means(table: &Table) -> Self {
        let (classes, rows) = (table.classes().len(), table.rows());
        Self { classes, means: vec![0.0; rows * classes], concentrations: vec![0.0; rows] }
    }

    /// Writes the means of some rows, as the mixture of predictions that is closest to their labels.
    fn mix(&mut self, table: &Table, predictions: &[Vec<f64>], rows: &[u32]) {
        let weights = mixture_weights(table, predictions, rows);
        for place in rows.iter().flat_map(|&row| row as usize * self.classes..(row as usize + 1) * self.classes) {
            self.means[place] = predictions.iter().zip(&weights).map(|(shares, weight)| weight * shares[place]).sum();
        }
    }

    /// Fits one concentration per group of consecutive rows of `order`.
    fn concentrate(&mut self, table: &Table, order: &[u32]) {
        let all = self.relative_variance(table, order).unwrap_or(0.0);
        for rows in groups(order) {
            let variance = self.relative_variance(table, rows).unwrap_or(all);
            let [least, largest] = CONCENTRATIONS;
            // The variance of a Dirichlet law is (1 − ‖m‖²)/(A + 1).
            let concentration = if variance > 0.0 { (1.0 / variance - 1.0).clamp(least, largest) } else { largest };
            rows.iter().for_each(|&row| self.concentrations[row as usize] = concentration);
        }
    }

    /// The means of all rows, row by row.
    pub(crate) fn means(&self) -> &[f64] {
        &self.means
    }

    /// The mean m of a row's law.
    pub(crate) fn mean(&self, row: usize) -> &[f64] {
        &self.means[row * self.classes..][..self.classes]
    }

    fn square(&self, row: usize) -> f64 {
        dot(self.mean(row), self.mean(row))
    }

    /// The mean of ‖p* − m‖² relative to that of 1 − ‖m‖²; `None` if no row has two labels.
    fn relative_variance(&self, table: &Table, rows: &[u32]) -> Option<f64> {
        let (mut variance, mut largest) = (0.0, 0.0);
        let mut snapshot = vec![0.0; self.classes];
        for row in rows.iter().map(|&row| row as usize) {
            let Some((votes, noise)) = table.votes(row).and_then(|votes| Some((votes, votes.disagreement()?))) else {
                continue;
            };
            votes.mean_into(&mut snapshot);
            let square = self.square(row);
            variance += table.weight(row) * (1.0 - noise - 2.0 * dot(&snapshot, self.mean(row)) + square);
            largest += table.weight(row) * (1.0 - square);
        }
        (largest > 0.0).then(|| variance / largest)
    }

    /// Draws a row's p* from its posterior, given its labels.
    pub(crate) fn draw_into(&self, table: &Table, row: usize, random: &mut Pcg64, out: &mut [f64]) {
        let counts = table.votes(row).map_or(&[][..], |votes| votes.counts());
        let parameter = |(class, share): (usize, &f64)| {
            self.concentrations[row] * share + f64::from(counts.get(class).copied().unwrap_or(0))
        };
        let parameters: Vec<f64> = self.mean(row).iter().enumerate().map(parameter).collect();
        draw_into(&parameters, random, out);
    }

    /// Writes a row's snapshot mean, shrunk towards m so that it varies as p* does: by λ² = k/(k + A).
    pub(crate) fn point_into(&self, table: &Table, row: usize, out: &mut [f64]) {
        out.copy_from_slice(self.mean(row));
        let Some(votes) = table.votes(row) else { return };
        let k = votes.k() as f64;
        let factor = (k / (k + self.concentrations[row])).sqrt();
        for (class, share) in out.iter_mut().enumerate() {
            *share += factor * (votes.mean(class) - *share);
        }
    }
}

/// Groups of consecutive rows of an order, of about [`ROWS_PER_GROUP`] each.
fn groups(order: &[u32]) -> impl Iterator<Item = &[u32]> {
    let count = (order.len() / ROWS_PER_GROUP).clamp(1, MAX_GROUPS);
    (0..count).map(move |group| &order[group * order.len() / count..(group + 1) * order.len() / count])
}

/// The weights, positive and of sum one, of the mixture of predictions that is closest to the labels of some rows.
fn mixture_weights(table: &Table, predictions: &[Vec<f64>], rows: &[u32]) -> Vec<f64> {
    let (count, classes) = (predictions.len(), table.classes().len());
    let (mut products, mut targets) = (vec![vec![0.0; count]; count], vec![0.0; count]);
    let mut snapshot = vec![0.0; classes];
    for row in rows.iter().map(|&row| row as usize) {
        let Some(votes) = table.votes(row) else { continue };
        votes.mean_into(&mut snapshot);
        let of = |place: usize| &predictions[place][row * classes..][..classes];
        for one in 0..count {
            targets[one] += table.weight(row) * dot(of(one), &snapshot);
            for (other, product) in products[one].iter_mut().enumerate() {
                *product += table.weight(row) * dot(of(one), of(other));
            }
        }
    }
    let mut weights = vec![1.0 / count as f64; count];
    for _ in 0..SWEEPS {
        for one in 0..count {
            for other in 0..one {
                // The best shift of weight between the two.
                let slope = |place: usize| dot(&products[place], &weights) - targets[place];
                let curvature = products[one][one] + products[other][other] - 2.0 * products[one][other];
                if curvature > 1e-12 * products[one][one] {
                    let shift = ((slope(other) - slope(one)) / curvature).clamp(-weights[one], weights[other]);
                    weights[one] += shift;
                    weights[other] -= shift;
                }
            }
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use pointsman_testing::Rng;

    use super::*;

    /// A model that knows nothing and an oracle that knows p*.
    #[test]
    fn law_follows_the_better_prediction() {
        let mut rng = Rng::new(5);
        let (mut probs, mut answers, mut votes) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..600 {
            let (noise, p) = (rng.uniform(), rng.uniform());
            probs.extend([noise, 1.0 - noise]);
            answers.extend([p, 1.0 - p]);
            votes.extend(rng.votes(&[p, 1.0 - p], 3));
        }
        let table = Table::new(["a", "b"], probs.clone()).unwrap().with_votes(votes).unwrap();
        let order: Vec<u32> = (0..600).collect();
        let law = PredictedLaw::fit(&table, &[probs.clone(), answers.clone()], &order);
        let distance = |row: usize| (law.mean(row)[0] - answers[2 * row]).abs();
        assert!((0..600).map(distance).sum::<f64>() / 600.0 < 0.05);
        assert!(law.concentrations.iter().all(|&it| it > 10.0), "{:?}", law.concentrations);
        let blind = PredictedLaw::fit(&table, &[probs], &order);
        assert!(blind.concentrations.iter().all(|&it| it < 5.0), "{:?}", blind.concentrations);
        // The more the law knows, the less a row's own labels count.
        let mut points = [vec![0.0; 2], vec![0.0; 2]];
        law.point_into(&table, 0, &mut points[0]);
        blind.point_into(&table, 0, &mut points[1]);
        let own = table.votes(0).unwrap().mean(0);
        let pull = |law: &PredictedLaw, point: &[f64]| (point[0] - law.mean(0)[0]) / (own - law.mean(0)[0]);
        assert!(pull(&law, &points[0]) < pull(&blind, &points[1]));
    }
}
