//! A law of a row's true label distribution p* that is a mixture of Dirichlet laws, around each distribution that predicts p* and with
//! several concentrations.
//!
//! A single Dirichlet law per row ([`PredictedLaw`](super::PredictedLaw)) has the right variance and the wrong shape where rows differ in kind:
//! some are clear and others ambiguous, or p* is near the model's prediction or near an oracle's, and not between them. Then too few draws are
//! near any one prediction, and the best of several actions seems to cost more than it does. The components of the mixture are such kinds. Their
//! weights are the same for all rows and maximise the likelihood of the labels, by a few steps of expectation maximisation from equal weights:
//! what few labels do not identify stays as it started.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;
use statrs::function::gamma::ln_gamma;

use super::dirichlet::draw_into;
use super::npmle::maximise_likelihood;
use crate::numeric::mix::uniform;
use crate::parallel::prelude::*;
use crate::table::Table;

/// The concentrations of the components around each centre.
const CONCENTRATIONS: [f64; 6] = [0.3, 1.0, 3.0, 10.0, 30.0, 100.0];

/// Steps of expectation maximisation. In simulations fewer leave the law too wide, and more lose the rare kinds.
const STEPS: usize = 50;

/// The largest number of rows that the weights are fitted to.
const MAX_ROWS: usize = 20_000;

/// The largest count whose factors are multiplied one by one.
const MAX_FACTORS: u32 = 32;

/// The mixture: centre by centre, the components of all [`CONCENTRATIONS`].
#[derive(Debug, Clone)]
pub(crate) struct MixedLaw {
    classes: usize,
    /// Lists of one distribution per row.
    centres: Vec<Vec<f64>>,
    weights: Vec<f64>,
}

impl MixedLaw {
    /// Fits the weights. `predictions` are lists of one distribution per row; the uniform distribution is added to them. `order` is an order of
    /// the rows that does not depend on labels.
    pub(crate) fn fit(table: &Table, predictions: Vec<Vec<f64>>, order: &[u32]) -> Self {
        let classes = table.classes().len();
        let mut centres = predictions;
        centres.push(vec![1.0 / classes as f64; table.rows() * classes]);
        let components = centres.len() * CONCENTRATIONS.len();
        let mut law = Self { classes, centres, weights: vec![1.0 / components as f64; components] };
        let rows = &order[..order.len().min(MAX_ROWS)];
        let all: f64 = rows.iter().map(|&row| table.weight(row as usize)).sum();
        let likelihoods: Vec<Vec<f64>> = rows.par_iter().map(|&row| law.likelihoods(table, row as usize)).collect();
        let shares = rows.iter().map(|&row| table.weight(row as usize) / all);
        let groups: Vec<(f64, &[f64])> = shares.zip(likelihoods.iter().map(Vec::as_slice)).collect();
        if all > 0.0 {
            maximise_likelihood(&groups, &mut law.weights, STEPS);
        }
        law
    }

    fn centre(&self, component: usize, row: usize) -> &[f64] {
        &self.centres[component / CONCENTRATIONS.len()][row * self.classes..][..self.classes]
    }

    /// The likelihood of a row's labels under each component, scaled so that the largest is one.
    fn likelihoods(&self, table: &Table, row: usize) -> Vec<f64> {
        let counts = table.votes(row).map_or(&[][..], |votes| votes.counts());
        let log = |component: usize| {
            let a = CONCENTRATIONS[component % CONCENTRATIONS.len()];
            let labelled = counts.iter().zip(self.centre(component, row)).filter(|(n, _)| **n > 0);
            let (mut log, mut labels) = (0.0, 0.0);
            for (&n, share) in labelled {
                log += log_rising(a * share, n);
                labels += f64::from(n);
            }
            log - (ln_gamma(a + labels) - ln_gamma(a))
        };
        let logs: Vec<f64> = (0..self.weights.len()).map(log).collect();
        let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        logs.into_iter().map(|log| (log - largest).exp()).collect()
    }

    /// Draws a row's p* from its posterior, given its labels, as often as `out` has space for.
    pub(crate) fn draw_into(&self, table: &Table, row: usize, random: &mut Pcg64, out: &mut [f64]) {
        let counts = table.votes(row).map_or(&[][..], |votes| votes.counts());
        let mut sum = 0.0;
        let sums: Vec<f64> = self
            .likelihoods(table, row)
            .iter()
            .zip(&self.weights)
            .map(|(likelihood, weight)| {
                sum += likelihood * weight;
                sum
            })
            .collect();
        let mut parameters = vec![0.0; self.classes];
        for draw in out.chunks_exact_mut(self.classes) {
            let place = uniform(random.next_u64()) * sum;
            let component = sums.partition_point(|sum| *sum <= place).min(sums.len() - 1);
            let a = CONCENTRATIONS[component % CONCENTRATIONS.len()];
            for (class, share) in self.centre(component, row).iter().enumerate() {
                parameters[class] = a * share + f64::from(counts.get(class).copied().unwrap_or(0));
            }
            draw_into(&parameters, random, draw);
        }
    }
}

/// The logarithm of start (start + 1) … (start + n − 1).
fn log_rising(start: f64, n: u32) -> f64 {
    match n {
        0..=MAX_FACTORS => (0..n).map(|j| start + f64::from(j)).product::<f64>().ln(),
        _ => ln_gamma(start + f64::from(n)) - ln_gamma(start),
    }
}

#[cfg(test)]
mod tests {
    use pointsman_testing::Rng;
    use rand_pcg::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn factors_and_gamma_functions_agree() {
        for start in [0.3, 4.0] {
            let one_by_one = log_rising(start, MAX_FACTORS) + (start + f64::from(MAX_FACTORS)).ln();
            assert!((log_rising(start, MAX_FACTORS + 1) - one_by_one).abs() < 1e-9);
        }
        assert_eq!(log_rising(0.0, 1), f64::NEG_INFINITY);
        assert_eq!(log_rising(0.0, MAX_FACTORS + 1), f64::NEG_INFINITY);
    }

    /// Half of the rows are certain and half undecided. Draws without labels are near one of the two, where a single Dirichlet law of the same
    /// variance would be spread evenly.
    #[test]
    fn draws_are_of_either_kind() {
        let mut rng = Rng::new(8);
        let votes = |row: usize, rng: &mut Rng| match row % 4 {
            0 => vec![5, 0],
            1 => vec![0, 5],
            _ => rng.votes(&[0.5, 0.5], 5),
        };
        let votes = (0..2000).flat_map(|row| votes(row, &mut rng)).collect();
        let table = Table::new(["a", "b"], vec![0.5; 4000]).and_then(|table| table.with_votes(votes)).unwrap();
        let order: Vec<u32> = (0..2000).collect();
        let law = MixedLaw::fit(&table, vec![vec![0.5; 4000]], &order);
        let unlabelled = Table::new(["a", "b"], vec![0.5; 4000]).unwrap();
        let mut draws = vec![0.0; 2 * 4000];
        law.draw_into(&unlabelled, 0, &mut Pcg64::seed_from_u64(1), &mut draws);
        let share =
            |range: std::ops::Range<f64>| draws.iter().step_by(2).filter(|p| range.contains(p)).count() as f64 / 4000.0;
        let [certain, between, undecided] = [share(0.0..0.1), share(0.1..0.3), share(0.3..0.7)];
        assert!(certain > 0.15 && undecided > 0.35 && between < 0.12, "{certain} {between} {undecided}");
    }
}
