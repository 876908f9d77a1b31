//! The expected loss of a panel's aggregated labels.
//!
//! It is an expectation over the panel's labels and one more label, by which they are evaluated, all drawn from one [`Urn`]. A closed
//! form is used if there is one; otherwise outcomes are enumerated or, if there are too many, sampled with a seed that depends on the
//! urn alone.

#[cfg(test)]
mod tests;

use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

use crate::loss::{LOG_FLOOR, Loss, Shape};
use crate::oracle::polynomial::Polynomial;
use crate::oracle::urn::Urn;
use crate::oracle::{Aggregate, Oracle};
use crate::table::simplex::dot;
use crate::table::votes::Votes;

/// The largest number of outcomes that are enumerated.
const MAX_OUTCOMES: f64 = 1e5;

/// Panels sampled if there are more outcomes.
const SAMPLED_PANELS: u32 = 1000;

/// The largest number of additions spent on exact winning probabilities.
const MAX_ADDITIONS: f64 = 2e6;

/// The cost of enumerating one outcome, in additions.
const ADDITIONS_PER_OUTCOME: f64 = 50.0;

/// Panels sampled for all items of a table together. Averages over many items need less precision per item.
const SAMPLED_PANELS_PER_TABLE: usize = 1_000_000;

/// The smallest number of panels sampled per item.
const MIN_SAMPLED_PANELS: usize = 100;

/// Additions spent on all items of a table together.
const MAX_ADDITIONS_PER_TABLE: f64 = 4e9;

/// A number of experts and the aggregation of their labels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Panel {
    pub(in crate::oracle) experts: u32,
    pub(in crate::oracle) aggregate: Aggregate,
}

impl Panel {
    /// The panel, if the oracle is one.
    pub(crate) fn from_oracle(oracle: &Oracle) -> Option<Self> {
        match *oracle {
            Oracle::Panel { experts, aggregate } => Some(Self { experts, aggregate }),
            _ => None,
        }
    }

    /// The unbiased estimate of the panel's loss on an item from the item's labels; `None` if there are fewer than
    /// [`Self::labels_needed`].
    pub(crate) fn unbiased(self, loss: &Loss, votes: Votes<'_>) -> Option<f64> {
        (votes.k() >= self.labels_needed(loss)).then(|| self.cost(loss, &Urn::from_votes(votes)))
    }

    /// The number of labels that an unbiased estimate needs: one more than experts, or two if the loss depends on the probability that
    /// two labels agree alone.
    pub(crate) fn labels_needed(self, loss: &Loss) -> u64 {
        if self.depends_on_agreement_only(loss) { 2 } else { u64::from(self.experts) + 1 }
    }

    /// Whether the loss depends only on the probability that two labels agree.
    pub(crate) fn depends_on_agreement_only(self, loss: &Loss) -> bool {
        loss.is_brier() && self.aggregate != Aggregate::Plurality
    }

    /// The expected loss of the panel's answer under the label that is drawn next.
    pub(crate) fn cost(self, loss: &Loss, urn: &Urn) -> f64 {
        self.cost_within(loss, urn, MAX_ADDITIONS, SAMPLED_PANELS)
    }

    fn cost_within(self, loss: &Loss, urn: &Urn, additions: f64, panels: u32) -> f64 {
        if self.depends_on_agreement_only(loss) {
            return self.brier(urn.agreement(), urn.classes());
        }
        if let (Shape::Log, Aggregate::Laplace(smoothing)) = (loss.shape(), self.aggregate)
            && self.least_share(smoothing, urn.classes()) >= loss.floor().unwrap_or(LOG_FLOOR)
        {
            return self.log(smoothing, urn);
        }
        let outcomes = urn.outcomes(self.experts, MAX_OUTCOMES);
        let exact = if self.aggregate == Aggregate::Plurality { self.additions(urn) } else { f64::INFINITY };
        if exact <= additions && exact <= ADDITIONS_PER_OUTCOME * outcomes {
            self.plurality(loss, urn)
        } else if outcomes <= MAX_OUTCOMES {
            self.enumerated(loss, urn)
        } else if exact <= additions {
            self.plurality(loss, urn)
        } else {
            self.sampled(loss, urn, panels)
        }
    }

    /// A method to compute the losses under `urns` urns within a total time limit.
    pub(crate) fn costing_for(self, loss: &Loss, classes: usize, urns: usize) -> Costing {
        let closed = self.depends_on_agreement_only(loss) || matches!(loss.shape(), Shape::Log);
        let polynomial = if closed { None } else { Polynomial::new(self, loss, classes, MAX_OUTCOMES as usize) };
        let panels = (SAMPLED_PANELS_PER_TABLE / urns.max(1)).clamp(MIN_SAMPLED_PANELS, SAMPLED_PANELS as usize) as u32;
        let additions = (MAX_ADDITIONS_PER_TABLE / urns.max(1) as f64).min(MAX_ADDITIONS);
        Costing { panel: self, polynomial, panels, additions }
    }

    /// The loss given the counts of m + 1 labels, each of which is equally likely to be the one that evaluates the others.
    pub(in crate::oracle) fn loss_given(self, loss: &Loss, counts: &mut [u32]) -> f64 {
        let urn = Urn::from_votes(Votes::new(counts));
        let (mut outcome, mut sum) = (OutcomeLoss::new(self, loss, &urn), 0.0);
        for class in urn.support() {
            counts[class] -= 1;
            sum += urn.share(class) * outcome.mean_loss(counts);
            counts[class] += 1;
        }
        sum
    }

    /// The Brier loss if two labels agree with this probability: 1 − 2 E q_y + E‖q‖², by counting pairs among m + 1 labels.
    pub(crate) fn brier(self, agreement: f64, classes: usize) -> f64 {
        let (m, c) = (f64::from(self.experts), classes as f64);
        let smoothing = if let Aggregate::Laplace(smoothing) = self.aggregate { smoothing } else { 0.0 };
        let sum = m + c * smoothing;
        let squares = m + m * (m - 1.0) * agreement + 2.0 * smoothing * m + c * smoothing * smoothing;
        1.0 - 2.0 * (m * agreement + smoothing) / sum + squares / (sum * sum)
    }

    /// The smallest probability that a smoothed panel gives to a class.
    pub(in crate::oracle) fn least_share(self, smoothing: f64, classes: usize) -> f64 {
        smoothing / (f64::from(self.experts) + classes as f64 * smoothing)
    }

    /// The cross-entropy of smoothed counts, as a sum over classes.
    fn log(self, smoothing: f64, urn: &Urn) -> f64 {
        let (m, scale) = (self.experts, urn.log_scale(self.experts));
        let sum = f64::from(m) + urn.classes() as f64 * smoothing;
        let logs: Vec<f64> = (0..=m).map(|n| -((f64::from(n) + smoothing) / sum).ln()).collect();
        let class = |class: usize| -> f64 {
            let (own, others) = (urn.log_weights(class, m), urn.log_weights_of_others(class, m));
            let term = |n: u32| {
                let chance = (scale + own[n as usize] + others[(m - n) as usize]).exp();
                if chance > 0.0 { chance * urn.next(class, n, m) * logs[n as usize] } else { 0.0 }
            };
            (0..=m).map(term).sum()
        };
        urn.support().into_iter().map(class).sum()
    }

    /// The number of additions that exact winning probabilities take.
    fn additions(self, urn: &Urn) -> f64 {
        let (m, c) = (f64::from(self.experts), urn.support().len() as f64);
        c * c * m * m * m / 3.0 * if urn.is_independent() { 1.0 } else { c }
    }

    /// The loss of the winning class, by the exact probability of each class to win.
    pub(in crate::oracle) fn plurality(self, loss: &Loss, urn: &Urn) -> f64 {
        let (support, classes) = (urn.support(), urn.classes());
        let mut losses = Vec::with_capacity(support.len() * classes);
        let mut vertex = vec![0.0; classes];
        for &class in &support {
            vertex[class] = 1.0;
            losses.extend(vec![0.0; classes]);
            let start = losses.len() - classes;
            loss.losses_into(&vertex, &mut losses[start..]);
            vertex[class] = 0.0;
        }
        let mean = |label: usize, chances: &[f64]| -> f64 {
            chances.iter().enumerate().map(|(winner, chance)| chance * losses[winner * classes + label]).sum()
        };
        // Labels are exchangeable, so the evaluating label may be drawn first. It changes the panel's labels only if draws depend on each
        // other.
        let shared = urn.is_independent().then(|| winning_probabilities(urn, &support, self.experts));
        let term = |&label: &usize| {
            let loss = match &shared {
                Some(chances) => mean(label, chances),
                None => mean(label, &winning_probabilities(&urn.after(label), &support, self.experts)),
            };
            urn.share(label) * loss
        };
        support.iter().map(term).sum()
    }

    /// The loss by enumeration of all outcomes.
    pub(in crate::oracle) fn enumerated(self, loss: &Loss, urn: &Urn) -> f64 {
        let (mut outcome, mut sum) = (OutcomeLoss::new(self, loss, urn), 0.0);
        urn.for_each_outcome(self.experts, &mut |counts, chance| sum += chance * outcome.mean_loss(counts));
        sum
    }

    /// The loss by sampling.
    pub(in crate::oracle) fn sampled(self, loss: &Loss, urn: &Urn, panels: u32) -> f64 {
        let mut random = Pcg64::seed_from_u64(urn.seed() ^ u64::from(self.experts));
        let mut counts = vec![0; urn.classes()];
        let mut outcome = OutcomeLoss::new(self, loss, urn);
        let mut draw = |_| {
            urn.draw_into(self.experts, &mut random, &mut counts);
            outcome.mean_loss(&counts)
        };
        (0..panels).map(&mut draw).sum::<f64>() / f64::from(panels)
    }
}

/// The method to compute a panel's loss under many urns.
#[derive(Debug, Clone)]
pub(crate) struct Costing {
    panel: Panel,
    polynomial: Option<Polynomial>,
    panels: u32,
    additions: f64,
}

impl Costing {
    /// The expected loss under one urn.
    pub(crate) fn cost(&self, loss: &Loss, urn: &Urn) -> f64 {
        match &self.polynomial {
            Some(polynomial) => polynomial.at(urn),
            None => self.panel.cost_within(loss, urn, self.additions, self.panels),
        }
    }
}

/// Computes the mean loss of an outcome over the next label.
struct OutcomeLoss<'a> {
    panel: Panel,
    loss: &'a Loss,
    urn: &'a Urn,
    /// The probability of each class to be drawn next, if draws are independent.
    shares: Option<Vec<f64>>,
    answer: Vec<f64>,
    losses: Vec<f64>,
}

impl<'a> OutcomeLoss<'a> {
    fn new(panel: Panel, loss: &'a Loss, urn: &'a Urn) -> Self {
        let classes = urn.classes();
        let shares = urn.is_independent().then(|| (0..classes).map(|class| urn.share(class)).collect());
        Self { panel, loss, urn, shares, answer: vec![0.0; classes], losses: vec![0.0; classes] }
    }

    fn mean_loss(&mut self, counts: &[u32]) -> f64 {
        let m = f64::from(self.panel.experts);
        let smoothing = match self.panel.aggregate {
            Aggregate::Mean => 0.0,
            Aggregate::Laplace(smoothing) => smoothing,
            Aggregate::Plurality => return self.loss_of_winners(counts),
        };
        let unit = 1.0 / (m + counts.len() as f64 * smoothing);
        self.answer.iter_mut().zip(counts).for_each(|(q, &n)| *q = (f64::from(n) + smoothing) * unit);
        self.loss_of_answer(counts)
    }

    /// The mean loss over the most frequent classes.
    fn loss_of_winners(&mut self, counts: &[u32]) -> f64 {
        let most = counts.iter().copied().max().unwrap_or(0);
        let (mut sum, mut tied) = (0.0, 0.0);
        for winner in (0..counts.len()).filter(|&class| counts[class] == most) {
            self.answer.fill(0.0);
            self.answer[winner] = 1.0;
            sum += self.loss_of_answer(counts);
            tied += 1.0;
        }
        sum / tied
    }

    fn loss_of_answer(&mut self, counts: &[u32]) -> f64 {
        self.loss.losses_into(&self.answer, &mut self.losses);
        if let Some(shares) = &self.shares {
            return dot(shares, &self.losses);
        }
        let next = |class: usize| self.urn.next(class, counts[class], self.panel.experts);
        self.losses.iter().enumerate().map(|(class, loss)| next(class) * loss).sum()
    }
}

/// The probability of each class of the support to win the vote of m labels, ties broken at random.
///
/// Class c wins with t labels if no other class has more; with r classes tied, it wins with probability 1/(r + 1). The others'
/// outcomes are the coefficients of Π_j (Σ_{s<t} w_j(s) zˢ + u w_j(t) zᵗ), where z counts their labels and u the classes tied with c.
fn winning_probabilities(urn: &Urn, support: &[usize], m: u32) -> Vec<f64> {
    let (weights, scale) = urn.probabilities(support, m);
    let m = m as usize;
    let wins = |class: usize, t: usize| -> f64 {
        let own = weights[class][t];
        if own == 0.0 {
            return 0.0;
        }
        let (left, most_tied) = (m - t, (m - t) / t);
        // Entry [tied][labels].
        let mut ways = vec![vec![0.0; left + 1]; most_tied + 1];
        ways[0][0] = 1.0;
        for (_, other) in weights.iter().enumerate().filter(|(other, _)| *other != class) {
            // In descending order each entry is read before it is overwritten.
            for tied in (0..=most_tied).rev() {
                for labels in (0..=left).rev() {
                    let below: f64 = (0..t.min(labels + 1)).map(|s| other[s] * ways[tied][labels - s]).sum();
                    let level = if tied > 0 && labels >= t { other[t] * ways[tied - 1][labels - t] } else { 0.0 };
                    ways[tied][labels] = below + level;
                }
            }
        }
        own * ways.iter().enumerate().map(|(tied, ways)| ways[left] / (tied + 1) as f64).sum::<f64>()
    };
    (0..support.len()).map(|class| scale * (1..=m).map(|t| wins(class, t)).sum::<f64>()).collect()
}
