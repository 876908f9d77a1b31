//! Predictions of one label from the item's others.

use crate::loss::Loss;
use crate::table::votes::Votes;

/// The weight of the weak prediction in q₋c, in labels.
pub(super) const PRIOR_LABELS: f64 = 2.0;

/// Predicts each label of an item from its other labels or, if it has none, from the items before.
pub(super) struct LeaveOneOut {
    /// The sum of the snapshot means of the items before.
    sum: Vec<f64>,
    /// The number of items before.
    items: f64,
    guess: Vec<f64>,
    losses: Vec<f64>,
}

impl LeaveOneOut {
    pub(super) fn new(classes: usize) -> Self {
        Self { sum: vec![0.0; classes], items: 0.0, guess: vec![0.0; classes], losses: vec![0.0; classes] }
    }

    /// The mean loss of predicting each label of an item: T⁺.
    pub(super) fn predict(&mut self, prediction: &[f64], votes: Votes<'_>, loss: &Loss) -> f64 {
        let (k, counts) = (votes.k(), votes.counts());
        let mut sum = 0.0;
        for (class, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            for (other, guess) in self.guess.iter_mut().enumerate() {
                let (known, labels) = if k == 1 {
                    (self.sum[other], self.items)
                } else {
                    (f64::from(counts[other] - u32::from(other == class)), (k - 1) as f64)
                };
                *guess = (known + PRIOR_LABELS * prediction[other]) / (labels + PRIOR_LABELS);
            }
            loss.losses_into(&self.guess, &mut self.losses);
            sum += f64::from(count) / k as f64 * self.losses[class];
        }
        for (sum, &count) in self.sum.iter_mut().zip(counts) {
            *sum += f64::from(count) / k as f64;
        }
        self.items += 1.0;
        sum
    }
}
