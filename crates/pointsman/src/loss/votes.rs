//! Losses averaged over the labels of an item.

use super::{Kind, Loss, log};
use crate::table::predictions::{RawPredictions, match_precision};
use crate::table::simplex::{self, Real};
use crate::table::votes::Votes;

/// The expected loss of a prediction q if labels follow q, also by whether the top class is right.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct SelfEstimate {
    /// G(q), the expected loss if labels follow q.
    pub(crate) entropy: f64,
    /// The loss if the label is the top class.
    pub(crate) right: f64,
    /// The expected loss if the label is another class, drawn in proportion to q.
    pub(crate) wrong: f64,
}

impl SelfEstimate {
    /// The expected loss if the top class is wrong with probability `error`.
    pub(crate) fn at(self, error: f64) -> f64 {
        self.right + error * (self.wrong - self.right)
    }
}

impl Loss {
    /// The mean of ℓ(y, q) over the labels y of an item. `q` sums to one; `buffer` has the same length.
    pub(crate) fn of_votes(&self, votes: Votes<'_>, q: &[f64], buffer: &mut [f64]) -> f64 {
        let counts = || votes.counts().iter().map(|&n| f64::from(n));
        let k = || counts().sum::<f64>();
        match &self.0 {
            Kind::Brier => brier_of_votes(votes, q),
            Kind::CrossEntropy(floor) => {
                log::project_into(q, *floor, buffer);
                // Classes without labels need no logarithm.
                let labelled = counts().zip(buffer.iter()).filter(|(n, _)| *n > 0.0);
                -labelled.map(|(n, a)| n * a.ln()).sum::<f64>() / k()
            }
            _ => {
                self.losses_into(q, buffer);
                counts().zip(buffer.iter()).map(|(n, loss)| n * loss).sum::<f64>() / k()
            }
        }
    }

    /// As [`Self::of_votes`] for a prediction that need not sum to one. `point` and `buffer` are scratch space of its length.
    pub(crate) fn of_votes_raw(
        &self,
        votes: Votes<'_>,
        prediction: RawPredictions<'_>,
        point: &mut [f64],
        buffer: &mut [f64],
    ) -> f64 {
        match_precision!(prediction, row => match self.0 {
            Kind::Brier => brier_of_votes(votes, row),
            _ => {
                simplex::normalise_into(row, point);
                self.of_votes(votes, point, buffer)
            }
        })
    }

    /// The self-estimate of a prediction; writes the loss under each class into `buffer`.
    pub(crate) fn self_estimate_into(&self, q: &[f64], buffer: &mut [f64]) -> SelfEstimate {
        self.losses_into(q, buffer);
        let top = simplex::top_class(q);
        let (mut mass, mut lost, mut plain) = (0.0, 0.0, 0.0);
        for (_, (x, loss)) in q.iter().zip(buffer.iter()).enumerate().filter(|(class, _)| *class != top) {
            mass += x;
            lost += x * loss;
            plain += loss;
        }
        let (right, others) = (buffer[top], (q.len() - 1) as f64);
        // A prediction with no mass outside its top class gives the other classes equal weight.
        let wrong = if mass > 0.0 { lost / mass } else { plain / others };
        SelfEstimate { entropy: q[top] * right + lost, right, wrong }
    }

    /// The mean of ℓ(y, q) over the labels y of an item, and the self-estimate of q.
    pub(crate) fn of_votes_with_self_estimate(
        &self,
        votes: Votes<'_>,
        q: &[f64],
        buffer: &mut [f64],
    ) -> (f64, SelfEstimate) {
        let self_estimate = self.self_estimate_into(q, buffer);
        let (mut lost, mut k) = (0.0, 0.0);
        for (loss, n) in buffer.iter().zip(votes.counts().iter().map(|&n| f64::from(n))) {
            lost += n * loss;
            k += n;
        }
        (lost / k, self_estimate)
    }
}

/// The mean Brier loss of a prediction, divided by its sum, over votes. Two accumulators let the processor overlap the additions.
fn brier_of_votes<T: Real>(votes: Votes<'_>, row: &[T]) -> f64 {
    let (mut k, mut sum, mut hit, mut square) = (0, [0.0; 2], [0.0; 2], [0.0; 2]);
    let mut add = |lane: usize, n: u32, x: T| {
        let x = x.to_f64();
        k += u64::from(n);
        sum[lane] += x;
        hit[lane] += f64::from(n) * x;
        square[lane] += x * x;
    };
    let ((counts, last_count), (pairs, last)) = (votes.counts().as_chunks::<2>(), row.as_chunks::<2>());
    for (n, x) in counts.iter().zip(pairs) {
        add(0, n[0], x[0]);
        add(1, n[1], x[1]);
    }
    last_count.iter().zip(last).for_each(|(&n, &x)| add(0, n, x));
    let [sum, hit, square] = [sum, hit, square].map(|[a, b]| a + b);
    1.0 - 2.0 * hit / (k as f64 * sum) + square / (sum * sum)
}
