//! What a panel's aggregated labels lose.
//!
//! The loss is an expectation over the panel's labels and the one they are judged by, all from one [`Urn`]. Where that has a
//! closed form it is used; otherwise outcomes are enumerated or, if there are too many, drawn with a seed that depends on
//! the urn alone.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

use super::polynomial::Polynomial;
use super::urn::Urn;
use super::{Aggregate, Oracle};
use crate::loss::{LOG_FLOOR, Loss, Shape};
use crate::table::simplex::dot;
use crate::table::votes::Votes;

/// Outcomes enumerated at most.
const OUTCOMES: f64 = 1e5;

/// Panels drawn where there are more outcomes.
const PANELS: u32 = 1000;

/// Additions that the exact chances of winning a vote may take.
const ADDITIONS: f64 = 2e6;

/// What an outcome takes to enumerate, in additions.
const OUTCOME: f64 = 50.0;

/// Panels and additions for all items of a table together, and the least for one of them: what is averaged over many items need
/// not be known as well of each.
const PANELS_IN_ALL: usize = 1_000_000;
const FEWEST_PANELS: usize = 100;
const ADDITIONS_IN_ALL: f64 = 4e9;

/// So many experts, and what their labels become.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Panel {
    pub(super) experts: u32,
    pub(super) aggregate: Aggregate,
}

impl Panel {
    /// The panel, if the oracle is one.
    pub(crate) fn of(oracle: &Oracle) -> Option<Self> {
        match *oracle {
            Oracle::Panel { experts, aggregate } => Some(Self { experts, aggregate }),
            _ => None,
        }
    }

    /// The exactly unbiased estimate of the panel's loss on an item from the item's labels, if they are enough: one more
    /// than experts, or two where the loss depends on how often two labels agree and on nothing else.
    pub(crate) fn unbiased(self, loss: &Loss, votes: Votes<'_>) -> Option<f64> {
        (votes.k() >= self.labels_needed(loss)).then(|| self.cost(loss, &Urn::from_votes(votes)))
    }

    /// How many labels an item needs for an unbiased estimate.
    pub(crate) fn labels_needed(self, loss: &Loss) -> u64 {
        if self.depends_on_agreement_only(loss) { 2 } else { u64::from(self.experts) + 1 }
    }

    /// Whether the loss depends only on how often two labels agree.
    pub(crate) fn depends_on_agreement_only(self, loss: &Loss) -> bool {
        matches!(loss.shape(), Shape::Brier) && self.aggregate != Aggregate::Plurality
    }

    /// The expected loss of the panel's answer, judged by the label that is drawn next.
    pub(crate) fn cost(self, loss: &Loss, urn: &Urn) -> f64 {
        self.cost_within(loss, urn, ADDITIONS, PANELS)
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
        let outcomes = urn.outcomes(self.experts, OUTCOMES);
        let exact = if self.aggregate == Aggregate::Plurality { self.additions(urn) } else { f64::INFINITY };
        if exact <= additions && exact <= OUTCOME * outcomes {
            self.plurality(loss, urn)
        } else if outcomes <= OUTCOMES {
            self.enumerated(loss, urn)
        } else if exact <= additions {
            self.plurality(loss, urn)
        } else {
            self.drawn(loss, urn, panels)
        }
    }

    /// The same for so many urns of so many classes, in a time that does not grow with each of them.
    pub(crate) fn costing_for(self, loss: &Loss, classes: usize, urns: usize) -> Costing {
        let closed = self.depends_on_agreement_only(loss) || matches!(loss.shape(), Shape::Log);
        let polynomial = if closed { None } else { Polynomial::new(self, loss, classes, OUTCOMES as usize) };
        let panels = (PANELS_IN_ALL / urns.max(1)).clamp(FEWEST_PANELS, PANELS as usize) as u32;
        let additions = (ADDITIONS_IN_ALL / urns.max(1) as f64).min(ADDITIONS);
        Costing { panel: self, polynomial, panels, additions }
    }

    /// The loss given how m + 1 labels fall: each of them may be the one that judges the others.
    pub(super) fn loss_given(self, loss: &Loss, counts: &mut [u32]) -> f64 {
        let urn = Urn::from_votes(Votes::new(counts));
        let (mut judge, mut sum) = (Judge::new(self, loss, &urn), 0.0);
        for class in urn.support() {
            counts[class] -= 1;
            sum += urn.share(class) * judge.loss(counts);
            counts[class] += 1;
        }
        sum
    }

    /// The Brier loss if two labels agree with this chance: `1 − 2 E q_y + E‖q‖²` by counting pairs among m + 1 labels.
    pub(crate) fn brier(self, agreement: f64, classes: usize) -> f64 {
        let (m, c) = (f64::from(self.experts), classes as f64);
        let smoothing = if let Aggregate::Laplace(smoothing) = self.aggregate { smoothing } else { 0.0 };
        let sum = m + c * smoothing;
        let squares = m + m * (m - 1.0) * agreement + 2.0 * smoothing * m + c * smoothing * smoothing;
        1.0 - 2.0 * (m * agreement + smoothing) / sum + squares / (sum * sum)
    }

    /// The least probability a smoothed panel gives to any class.
    pub(super) fn least_share(self, smoothing: f64, classes: usize) -> f64 {
        smoothing / (f64::from(self.experts) + classes as f64 * smoothing)
    }

    /// The cross-entropy of smoothed counts: each class is by itself.
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

    /// How many additions the exact chances take.
    fn additions(self, urn: &Urn) -> f64 {
        let (m, c) = (f64::from(self.experts), urn.support().len() as f64);
        c * c * m * m * m / 3.0 * if urn.is_independent() { 1.0 } else { c }
    }

    /// The loss of the class that wins the vote, by the exact chance of each.
    pub(super) fn plurality(self, loss: &Loss, urn: &Urn) -> f64 {
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
        // The judging label may be drawn first: labels are exchangeable. It matters to the panel only if it is not put back.
        let shared = urn.is_independent().then(|| winning_chances(urn, &support, self.experts));
        let term = |&label: &usize| {
            let loss = match &shared {
                Some(chances) => mean(label, chances),
                None => mean(label, &winning_chances(&urn.after(label), &support, self.experts)),
            };
            urn.share(label) * loss
        };
        support.iter().map(term).sum()
    }

    /// The loss over all outcomes.
    pub(super) fn enumerated(self, loss: &Loss, urn: &Urn) -> f64 {
        let (mut judge, mut sum) = (Judge::new(self, loss, urn), 0.0);
        urn.for_each_outcome(self.experts, &mut |counts, chance| sum += chance * judge.loss(counts));
        sum
    }

    /// The loss over outcomes drawn.
    pub(super) fn drawn(self, loss: &Loss, urn: &Urn, panels: u32) -> f64 {
        let mut random = Pcg64::seed_from_u64(urn.seed() ^ u64::from(self.experts));
        let mut counts = vec![0; urn.classes()];
        let mut judge = Judge::new(self, loss, urn);
        let mut draw = |_| {
            urn.draw_into(self.experts, &mut random, &mut counts);
            judge.loss(&counts)
        };
        (0..panels).map(&mut draw).sum::<f64>() / f64::from(panels)
    }
}

/// How the losses of a panel under many urns are worked out.
#[derive(Debug, Clone)]
pub(crate) struct Costing {
    panel: Panel,
    polynomial: Option<Polynomial>,
    panels: u32,
    additions: f64,
}

impl Costing {
    /// The expected loss under one of them.
    pub(crate) fn cost(&self, loss: &Loss, urn: &Urn) -> f64 {
        match &self.polynomial {
            Some(polynomial) => polynomial.at(urn),
            None => self.panel.cost_within(loss, urn, self.additions, self.panels),
        }
    }
}

/// What an outcome loses on average over the label that comes next.
struct Judge<'a> {
    panel: Panel,
    loss: &'a Loss,
    urn: &'a Urn,
    /// The chance of each class to be drawn next, if what was drawn does not matter.
    shares: Option<Vec<f64>>,
    answer: Vec<f64>,
    losses: Vec<f64>,
}

impl<'a> Judge<'a> {
    fn new(panel: Panel, loss: &'a Loss, urn: &'a Urn) -> Self {
        let classes = urn.classes();
        let shares = urn.is_independent().then(|| (0..classes).map(|class| urn.share(class)).collect());
        Self { panel, loss, urn, shares, answer: vec![0.0; classes], losses: vec![0.0; classes] }
    }

    fn loss(&mut self, counts: &[u32]) -> f64 {
        let m = f64::from(self.panel.experts);
        let smoothing = match self.panel.aggregate {
            Aggregate::Mean => 0.0,
            Aggregate::Laplace(smoothing) => smoothing,
            Aggregate::Plurality => return self.winners(counts),
        };
        let unit = 1.0 / (m + counts.len() as f64 * smoothing);
        self.answer.iter_mut().zip(counts).for_each(|(q, &n)| *q = (f64::from(n) + smoothing) * unit);
        self.answered(counts)
    }

    /// The mean loss over the classes named most often.
    fn winners(&mut self, counts: &[u32]) -> f64 {
        let most = counts.iter().copied().max().unwrap_or(0);
        let (mut sum, mut tied) = (0.0, 0.0);
        for winner in (0..counts.len()).filter(|&class| counts[class] == most) {
            self.answer.fill(0.0);
            self.answer[winner] = 1.0;
            sum += self.answered(counts);
            tied += 1.0;
        }
        sum / tied
    }

    fn answered(&mut self, counts: &[u32]) -> f64 {
        self.loss.losses_into(&self.answer, &mut self.losses);
        if let Some(shares) = &self.shares {
            return dot(shares, &self.losses);
        }
        let next = |class: usize| self.urn.next(class, counts[class], self.panel.experts);
        self.losses.iter().enumerate().map(|(class, loss)| next(class) * loss).sum()
    }
}

/// The chance of each class of the support to win the vote of m labels, ties drawn by lot.
///
/// Class c wins with t labels if no other has more; r others may have as many. The others' outcomes are the coefficients of
/// Π_j (Σ_{s<t} w_j(s) zˢ + u w_j(t) zᵗ): z counts their labels and u those tied with c.
fn winning_chances(urn: &Urn, support: &[usize], m: u32) -> Vec<f64> {
    let (weights, scale) = urn.chances(support, m);
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
            // From the most labels down, each entry is read before it is overwritten.
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

#[cfg(test)]
mod tests {
    use super::*;

    const LAWS: [&[f64]; 6] = [
        &[0.3, 0.7],
        &[1.0, 0.0],
        &[0.5, 0.25, 0.25],
        &[0.1, 0.0, 0.9],
        &[0.15, 0.2, 0.25, 0.4],
        &[0.01, 0.04, 0.9, 0.02, 0.03],
    ];
    const SNAPSHOTS: [&[u32]; 5] = [&[4, 6], &[10, 0], &[3, 3, 4], &[1, 0, 9], &[2, 3, 1, 4]];

    fn losses(classes: usize) -> Vec<Loss> {
        let names =
            ["brier", "cross-entropy", "spherical", "zero-one", "asymmetric:3", "fn-fp:fp=1,fn=4", "three-part"];
        let losses = names.iter().map(|name| name.parse::<Loss>().unwrap());
        losses.filter(|loss| loss.check_classes(classes).is_ok()).collect()
    }

    /// Every way to know something of an item.
    fn urns() -> Vec<Urn> {
        let laws = LAWS.iter().map(|p| Urn::from_distribution(p));
        let snapshots = SNAPSHOTS.iter().map(|counts| Urn::from_votes(Votes::new(counts)));
        let posteriors = LAWS.iter().map(|p| Urn::from_dirichlet(&p.iter().map(|x| 3.0 * x).collect::<Vec<_>>()));
        laws.chain(snapshots).chain(posteriors).collect()
    }

    fn panel(experts: u32, aggregate: Aggregate) -> Panel {
        Panel { experts, aggregate }
    }

    #[test]
    fn outcomes_are_counted_and_exhaust_the_chances() {
        for urn in urns() {
            for m in 1..=9 {
                let (mut sum, mut seen) = (0.0, 0.0);
                urn.for_each_outcome(m, &mut |counts, chance| {
                    assert_eq!(counts.iter().sum::<u32>(), m);
                    (sum, seen) = (sum + chance, seen + 1.0);
                });
                assert!((sum - 1.0).abs() < 1e-12, "{urn:?} {m}: {sum}");
                assert_eq!(urn.outcomes(m, OUTCOMES), seen, "{urn:?} {m}");
            }
        }
    }

    #[test]
    fn closed_forms_are_the_enumeration() {
        let aggregates = [Aggregate::Mean, Aggregate::Plurality, Aggregate::Laplace(1.0), Aggregate::Laplace(0.3)];
        for urn in urns() {
            for loss in losses(urn.classes()) {
                for aggregate in aggregates {
                    for m in [1, 2, 3, 5, 9] {
                        let panel = panel(m, aggregate);
                        let (found, wanted) = (panel.cost(&loss, &urn), panel.enumerated(&loss, &urn));
                        let rounding = 1e-12 * loss.bound().max(1.0);
                        assert!((found - wanted).abs() < rounding, "{loss} {panel:?} {urn:?}: {found}, {wanted}");
                        let exact = panel.costing_for(&loss, urn.classes(), 1).cost(&loss, &urn);
                        assert!((exact - wanted).abs() < rounding, "{loss} {panel:?} {urn:?}: {exact}, {wanted}");
                        if aggregate == Aggregate::Plurality {
                            let exact = panel.plurality(&loss, &urn);
                            assert!((exact - wanted).abs() < rounding, "{loss} {panel:?} {urn:?}: {exact}, {wanted}");
                        }
                    }
                }
            }
        }
    }

    /// A label more than experts, and counts as large as a file can hold.
    #[test]
    fn few_and_very_many_labels_are_enough() {
        let loss = Loss::zero_one();
        for aggregate in [Aggregate::Mean, Aggregate::Plurality, Aggregate::Laplace(1.0)] {
            let least = panel(3, aggregate).unbiased(&loss, Votes::new(&[2, 1, 1])).unwrap();
            assert!((0.0..=1.0).contains(&least));
            assert_eq!(panel(4, aggregate).unbiased(&loss, Votes::new(&[2, 1, 1])), None);
            let many = [u32::MAX, u32::MAX / 2, 7];
            let p = many.map(|n| f64::from(n) / many.iter().map(|&n| f64::from(n)).sum::<f64>());
            for m in [1, 5, 60, 1000] {
                let found = panel(m, aggregate).unbiased(&loss, Votes::new(&many)).unwrap();
                let wanted = panel(m, aggregate).cost(&loss, &Urn::from_distribution(&p));
                assert!((found - wanted).abs() < 0.02, "{aggregate} {m}: {found} {wanted}");
            }
        }
    }

    /// Hundreds of labels, where the chances of single outcomes leave the range of numbers.
    #[test]
    fn large_panels_are_the_enumeration() {
        for urn in [Urn::from_distribution(&[0.02, 0.98]), Urn::from_distribution(&[0.3, 0.3, 0.4]), Urn::from_votes(Votes::new(&[700, 301]))] {
            for loss in [Loss::zero_one(), Loss::brier()] {
                for m in [120, 400, 1000].into_iter().filter(|&m| m < 500 || urn.classes() == 2) {
                    let panel = panel(m, Aggregate::Plurality);
                    let (found, wanted) =
                        (panel.costing_for(&loss, urn.classes(), 1).cost(&loss, &urn), panel.enumerated(&loss, &urn));
                    assert!((found - wanted).abs() < 1e-11, "{loss} {m} {urn:?}: {found}, {wanted}");
                }
            }
        }
    }

    #[test]
    fn draws_are_near_the_enumeration_and_the_same_every_time() {
        for urn in urns() {
            for loss in losses(urn.classes()) {
                for aggregate in [Aggregate::Mean, Aggregate::Plurality, Aggregate::Laplace(0.5)] {
                    let panel = panel(4, aggregate);
                    let (found, wanted) = (panel.drawn(&loss, &urn, 4000), panel.enumerated(&loss, &urn));
                    // Four standard errors of the mean of losses in [0, B].
                    let error = 2.0 * loss.bound() / 4000_f64.sqrt();
                    assert!((found - wanted).abs() < error, "{loss} {panel:?} {urn:?}: {found}, {wanted}");
                    assert_eq!(found.to_bits(), panel.drawn(&loss, &urn, 4000).to_bits());
                }
            }
        }
    }
}
