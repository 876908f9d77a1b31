//! Pólya's urn, from which a panel's labels and the label that evaluates them are drawn.
//!
//! A panel of m experts is evaluated by one more label, so its expected loss depends on m + 1 labels. They are drawn independently from
//! a distribution, from the item's own labels without replacement, or from a distribution with a Dirichlet law, which is the same as
//! returning each drawn label with one more of its class. In Pólya's urn the weight x_c of a class changes by d = 0, −1 or +1 with
//! every label of that class.

use rand_distr::{Binomial, Distribution};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

use crate::numeric::mix::{mix, uniform};
use crate::table::votes::Votes;

/// An urn of labels.
#[derive(Debug, Clone)]
pub(crate) struct Urn {
    weights: Vec<f64>,
    total: f64,
    change: f64,
}

impl Urn {
    /// Independent labels from a distribution.
    pub(crate) fn from_distribution(p: &[f64]) -> Self {
        Self::new(p.to_vec(), 0.0)
    }

    /// The item's own labels without replacement, which makes estimates unbiased.
    pub(crate) fn from_votes(votes: Votes<'_>) -> Self {
        Self::new(votes.counts().iter().map(|&n| f64::from(n)).collect(), -1.0)
    }

    /// Labels from a distribution with a Dirichlet law.
    pub(crate) fn from_dirichlet(a: &[f64]) -> Self {
        Self::new(a.to_vec(), 1.0)
    }

    fn new(weights: Vec<f64>, change: f64) -> Self {
        Self { total: weights.iter().sum(), weights, change }
    }

    /// The number of classes.
    pub(super) fn classes(&self) -> usize {
        self.weights.len()
    }

    /// The classes that can be drawn.
    pub(super) fn support(&self) -> Vec<usize> {
        (0..self.weights.len()).filter(|&class| self.weights[class] > 0.0).collect()
    }

    /// Whether draws are independent.
    pub(super) fn is_independent(&self) -> bool {
        self.change == 0.0
    }

    /// The probability that the first label is of this class.
    pub(super) fn share(&self, class: usize) -> f64 {
        self.weights[class] / self.total
    }

    /// The probability of this class after `drawn` labels, `own` of them of this class.
    pub(super) fn next(&self, class: usize, own: u32, drawn: u32) -> f64 {
        let weight = self.weights[class] + self.change * f64::from(own);
        weight.max(0.0) / (self.total + self.change * f64::from(drawn))
    }

    /// The urn after one label of this class.
    pub(super) fn after(&self, class: usize) -> Self {
        let mut urn = self.clone();
        urn.weights[class] += self.change;
        urn.total += self.change;
        urn
    }

    /// The probability that two labels agree.
    pub(super) fn agreement(&self) -> f64 {
        let same: f64 = self.weights.iter().map(|x| x * (x + self.change)).sum();
        same / (self.total * (self.total + self.change))
    }

    /// The largest number of labels of a class among m.
    fn most(&self, class: usize, m: u32) -> u32 {
        if self.change < 0.0 { self.weights[class].min(f64::from(m)) as u32 } else { m }
    }

    /// ln of Π_{i<s} (x + d i) / s! for s = 0…m: the log-weight of s labels of a class. [`Self::log_scale`] normalises the product over
    /// classes.
    pub(super) fn log_weights(&self, class: usize, m: u32) -> Vec<f64> {
        self.rising(self.weights[class], m)
    }

    /// The log-weights of all other classes together.
    pub(super) fn log_weights_of_others(&self, class: usize, m: u32) -> Vec<f64> {
        let others: f64 = self.weights.iter().enumerate().filter(|(c, _)| *c != class).map(|(_, x)| x).sum();
        self.rising(others, m)
    }

    /// The log of the normalising factor m! / Π_{i<m} (T + d i).
    pub(super) fn log_scale(&self, m: u32) -> f64 {
        -self.rising(self.total, m)[m as usize]
    }

    /// For each of these classes, probabilities of 0…m labels up to a common factor, and that factor.
    ///
    /// To avoid overflow with large counts, weights are tilted so that likely numbers of labels weigh most, and divided by the largest:
    /// only outcomes of negligible probability underflow.
    pub(super) fn probabilities(&self, classes: &[usize], m: u32) -> (Vec<Vec<f64>>, f64) {
        let labels = f64::from(m);
        let tilt = (labels / (self.total + self.change * labels).max(1.0)).ln();
        let mut scale = self.log_scale(m) - labels * tilt;
        let mut weights_of = |&class: &usize| {
            let mut logs = self.log_weights(class, m);
            logs.iter_mut().zip(0_u32..).for_each(|(log, n)| *log += f64::from(n) * tilt);
            let greatest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            scale += greatest;
            logs.into_iter().map(|log| (log - greatest).exp()).collect()
        };
        let weights = classes.iter().map(&mut weights_of).collect();
        (weights, scale.exp())
    }

    fn rising(&self, weight: f64, m: u32) -> Vec<f64> {
        let mut log = 0.0;
        let mut logs = Vec::with_capacity(m as usize + 1);
        logs.push(log);
        for i in 0..m {
            let left = (weight + self.change * f64::from(i)).max(0.0);
            log += (left / f64::from(i + 1)).ln();
            logs.push(log);
        }
        logs
    }

    /// The number of distinct outcomes of m labels, at most `limit` + 1.
    pub(super) fn outcomes(&self, m: u32, limit: f64) -> f64 {
        let m = m as usize;
        let mut ways = vec![0.0_f64; m + 1];
        ways[0] = 1.0;
        for class in self.support() {
            let most = self.most(class, m as u32) as usize;
            let mut sums = vec![0.0; m + 2];
            for drawn in 0..=m {
                sums[drawn + 1] = sums[drawn] + ways[drawn];
            }
            for drawn in 0..=m {
                ways[drawn] = (sums[drawn + 1] - sums[drawn.saturating_sub(most)]).min(limit + 1.0);
            }
        }
        ways[m]
    }

    /// Calls `visit` with every outcome of m labels and its probability.
    pub(super) fn for_each_outcome(&self, m: u32, visit: &mut dyn FnMut(&[u32], f64)) {
        let support = self.support();
        let logs: Vec<Vec<f64>> = support.iter().map(|&class| self.log_weights(class, m)).collect();
        let most: Vec<u32> = support.iter().map(|&class| self.most(class, m)).collect();
        let mut counts = vec![0; self.classes()];
        let mut search = Search { support: &support, logs: &logs, most: &most, visit };
        search.descend(0, m, self.log_scale(m), &mut counts);
    }

    /// Draws m labels.
    pub(super) fn draw_into(&self, m: u32, random: &mut Pcg64, counts: &mut [u32]) {
        counts.fill(0);
        if self.is_independent() {
            let (mut left, mut rest) = (u64::from(m), self.total);
            for (count, &weight) in counts.iter_mut().zip(&self.weights).filter(|(_, weight)| **weight > 0.0) {
                let share = (weight / rest).clamp(0.0, 1.0);
                let n = Binomial::new(left, share).map_or(0, |binomial| binomial.sample(random));
                *count = n as u32;
                left -= n;
                rest -= weight;
            }
            // If rounding leaves labels over, they go to the last class.
            if let (true, Some(&last)) = (left > 0, self.support().last()) {
                counts[last] += left as u32;
            }
            return;
        }
        for drawn in 0..m {
            let mut place = uniform(random.next_u64()) * (self.total + self.change * f64::from(drawn));
            let mut chosen = 0;
            for (class, &weight) in self.weights.iter().enumerate() {
                let weight = weight + self.change * f64::from(counts[class]);
                if weight > 0.0 {
                    chosen = class;
                    place -= weight;
                    if place < 0.0 {
                        break;
                    }
                }
            }
            counts[chosen] += 1;
        }
    }

    /// A seed that depends on the urn's content alone.
    pub(super) fn seed(&self) -> u64 {
        self.weights.iter().map(|x| x.to_bits()).fold(self.change.to_bits(), mix)
    }
}

/// A depth-first enumeration of outcomes, class by class.
struct Search<'a> {
    support: &'a [usize],
    logs: &'a [Vec<f64>],
    most: &'a [u32],
    visit: &'a mut dyn FnMut(&[u32], f64),
}

impl Search<'_> {
    fn descend(&mut self, place: usize, left: u32, log: f64, counts: &mut [u32]) {
        let Some(&class) = self.support.get(place) else { return };
        let least = if place + 1 == self.support.len() { left } else { 0 };
        for n in least..=self.most[place].min(left) {
            counts[class] = n;
            let log = log + self.logs[place][n as usize];
            if n == left {
                (self.visit)(counts, log.exp());
            } else {
                self.descend(place + 1, left - n, log, counts);
            }
        }
        counts[class] = 0;
    }
}
