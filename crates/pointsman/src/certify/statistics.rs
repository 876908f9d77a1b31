//! Statistics per item that bound the loss of each answer in expectation, from below and from above.
//!
//! Predicting has the unbiased statistic u = Σ_c ȳ_c ℓ(c, f). The irreducible loss has no unbiased statistic from few labels, but two that
//! enclose it:
//!
//! * T⁻ = G(ȳ), since G is concave;
//! * T⁺ = Σ_c ȳ_c ℓ(c, q₋c), where q₋c predicts one label from the item's others and from the weak prediction, which counts for two
//!   labels: no prediction is better than p*. An item with one label is predicted from the items before it in betting order.
//!
//! Polynomials of the label shares give a second pair ([`Approximation`]), except for matrices of three or more classes. Which pair is
//! tighter depends on the labels, so both are used, each with half of the error probability. That widens an interval by a few per cent,
//! while the better pair narrows it by up to a half.
//!
//! For the Brier loss with at least two labels, both are replaced by the unbiased statistic Û = k/(k−1)·(1 − ‖ȳ‖²).
//!
//! A measured oracle is treated like predicting. A panel's loss has an unbiased statistic on items with enough labels; on other items it is
//! only known to be at least the irreducible loss.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::approximation::{self, Approximation, EnclosingStatistic};
use super::betting::{Interval, Sample};
use super::items::Items;
use crate::loss::{Loss, Shape};
use crate::oracle::Panel;
use crate::table::simplex::dot;
use crate::table::votes::Votes;

/// An empty range.
const EMPTY_RANGE: [f64; 2] = [f64::INFINITY, f64::NEG_INFINITY];

/// The weight of the weak prediction in q₋c, in labels.
const PRIOR_LABELS: f64 = 2.0;

/// Values of a statistic, item by item, and its range.
#[derive(Debug, Clone)]
pub(super) struct Values {
    values: Vec<f64>,
    range: [f64; 2],
}

impl Values {
    fn sample<'a>(&'a self, items: &'a Items) -> Sample<'a> {
        Sample { values: &self.values, range: self.range, weights: items.weights() }
    }

    /// The weighted mean.
    fn mean(&self, items: &Items) -> f64 {
        let weight = |i: usize| items.weights().map_or(1.0, |weights| weights[i]);
        let (sum, all) = self
            .values
            .iter()
            .enumerate()
            .fold((0.0, 0.0), |(sum, all), (i, x)| (sum + weight(i) * x, all + weight(i)));
        sum / all
    }

    /// The change of the mean if weights are multiplied by 1 + these factors, which are assumed to have mean zero.
    fn step(&self, items: &Items, factors: &[f64]) -> f64 {
        let weight = |i: usize| items.weights().map_or(1.0, |weights| weights[i]);
        let (mean, all) = (self.mean(items), (0..factors.len()).map(weight).sum::<f64>());
        let steps = self.values.iter().zip(factors).enumerate();
        steps.map(|(i, (x, factor))| weight(i) * factor * (x - mean)).sum::<f64>() / all
    }

    fn minus(&self, other: &Self, range: [f64; 2]) -> Self {
        Self { values: self.values.iter().zip(&other.values).map(|(x, y)| x - y).collect(), range }
    }
}

/// The statistics of one answer's loss.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    /// A statistic whose expectation is at most the loss.
    below: Values,
    /// A statistic whose expectation is at least the loss; `None` if `below` is unbiased.
    above: Option<Values>,
    /// A second pair of such statistics.
    polynomial: Option<Polynomial>,
}

/// A pair of statistics that enclose the entropy by polynomials of the label shares.
#[derive(Debug, Clone)]
struct Polynomial {
    below: Values,
    above: Values,
    /// The minima of u − `below` and u − `above`.
    least_apart: [f64; 2],
}

impl Polynomial {
    /// The pair for some items; `None` if there is no polynomial, or its errors are too large to be informative. This depends on the number
    /// of labels, not on their values.
    fn new(items: &Items, approximation: &Approximation) -> Option<Self> {
        let most_entropy = approximation.largest_entropy();
        let labels: BTreeSet<u64> = items.iter().map(|(_, votes)| votes.k()).collect();
        let known: BTreeMap<u64, EnclosingStatistic<'_>> =
            labels.iter().filter_map(|&k| Some((k, approximation.for_labels(k)?))).collect();
        let [down, up] = known.last_key_value()?.1.errors();
        if down + up > most_entropy {
            return None;
        }
        // With one label the entropy is only known to be between zero and the largest.
        let single = labels.contains(&1);
        let (mut below, mut above) = if single { ([0.0; 2], [most_entropy; 2]) } else { (EMPTY_RANGE, EMPTY_RANGE) };
        let mut least_apart = if single { [0.0, -most_entropy] } else { [f64::INFINITY; 2] };
        for enclosing in known.values() {
            let ([low, high], [down, up]) = (enclosing.range(), enclosing.errors());
            below = [below[0].min(low - down), below[1].max(high - down)];
            above = [above[0].min(low + up), above[1].max(high + up)];
            let least = enclosing.least_entropy_above();
            least_apart = [least_apart[0].min(least + down), least_apart[1].min(least - up)];
        }
        let of_item = |votes: Votes<'_>| match known.get(&votes.k()) {
            Some(enclosing) => {
                let (q, [down, up]) = (enclosing.value(votes), enclosing.errors());
                (q - down, q + up)
            }
            None => (0.0, most_entropy),
        };
        let (lows, highs) = items.iter().map(|(_, votes)| of_item(votes)).unzip();
        let [below, above] = [(lows, below), (highs, above)].map(|(values, range)| Values { values, range });
        Some(Self { below, above, least_apart })
    }
}

impl Answer {
    fn above(&self) -> &Values {
        self.above.as_ref().unwrap_or(&self.below)
    }

    /// The pairs of statistics that enclose the loss.
    fn pairs(&self) -> impl Iterator<Item = (&Values, &Values)> + Clone {
        let polynomial = self.polynomial.as_ref().map(|pair| (&pair.below, &pair.above));
        std::iter::once((&self.below, self.above())).chain(polynomial)
    }

    /// The confidence interval of the loss; each end fails with probability at most `alpha`.
    pub(super) fn interval(&self, items: &Items, alpha: f64) -> Interval {
        let alpha = alpha / self.pairs().count() as f64;
        tightest(self.pairs().map(|(below, above)| enclosed(below, above, items, alpha)))
    }

    /// The means of each pair of statistics, to which the interval shrinks with ever more such items.
    pub(super) fn ends(&self, items: &Items) -> Vec<[f64; 2]> {
        self.pairs().map(|(below, above)| [below.mean(items), above.mean(items)]).collect()
    }

    /// The changes of those means under random factors of mean zero.
    pub(super) fn end_steps(&self, items: &Items, factors: &[f64]) -> Vec<[f64; 2]> {
        self.pairs().map(|(below, above)| [below.step(items, factors), above.step(items, factors)]).collect()
    }

    /// The midpoints of the pair that is tightest on average, item by item.
    pub(super) fn middles(&self, items: &Items) -> impl Iterator<Item = f64> {
        let gap = |(below, above): &(&Values, &Values)| above.mean(items) - below.mean(items);
        let tightest = self.pairs().min_by(|one, two| gap(one).total_cmp(&gap(two)));
        let (below, above) = tightest.unwrap_or((&self.below, self.above()));
        below.values.iter().zip(&above.values).map(|(low, high)| f64::midpoint(*low, *high))
    }

    /// The weak prediction, with the statistic u.
    pub(super) fn predict(items: &Items, loss: &Loss) -> Self {
        let mut answer = Self::given(items.iter().map(|(prediction, _)| prediction), items, loss);
        answer.below.range = losses_of_confidence(items.confidence, items.classes, loss);
        answer
    }

    /// An oracle whose answers are known, item by item.
    pub(super) fn given<'a>(answers: impl Iterator<Item = &'a [f64]>, items: &Items, loss: &Loss) -> Self {
        let (mut mean, mut losses) = (vec![0.0; items.classes], vec![0.0; items.classes]);
        let loss_of_item = |(answer, (_, votes)): (&[f64], (&[f64], Votes<'_>))| {
            votes.mean_into(&mut mean);
            loss.losses_into(answer, &mut losses);
            dot(&mean, &losses)
        };
        let values = answers.zip(items.iter()).map(loss_of_item).collect();
        Self { below: Values { values, range: [0.0, loss.bound()] }, above: None, polynomial: None }
    }

    /// A panel; `bayes` is the Bayes-optimal answer.
    pub(super) fn panel(panel: Panel, items: &Items, loss: &Loss, bayes: &Self) -> Self {
        let mut seen: HashMap<&[u32], Option<f64>> = HashMap::new();
        let mut unbiased = |votes| *seen.entry(Votes::counts(votes)).or_insert_with(|| panel.unbiased(loss, votes));
        let found: Vec<Option<f64>> = items.iter().map(|(_, votes)| unbiased(votes)).collect();
        let range = [0.0, loss.bound()];
        let either = |other: &dyn Fn(usize) -> f64| {
            let values = found.iter().enumerate().map(|(item, found)| found.unwrap_or_else(|| other(item)));
            Values { values: values.collect(), range }
        };
        let below = either(&|item| bayes.below.values[item]);
        let known = found.iter().all(Option::is_some);
        Self { below, above: (!known).then(|| either(&|_| range[1])), polynomial: None }
    }

    /// The Bayes-optimal answer: T⁻ and T⁺, or Û; and the polynomial pair.
    pub(super) fn bayes(items: &Items, loss: &Loss, approximation: Option<&Approximation>) -> Self {
        let brier = matches!(loss.shape(), Shape::Brier);
        let single = items.iter().any(|(_, votes)| votes.k() == 1);
        let mut mean = vec![0.0; items.classes];
        let below = items
            .iter()
            .map(|(_, votes)| {
                if brier {
                    // With one label the loss is only known to be non-negative.
                    return votes.disagreement().unwrap_or(0.0);
                }
                votes.mean_into(&mut mean);
                loss.entropy(&mean)
            })
            .collect();
        let most = if brier {
            let labels: BTreeSet<u64> = items.iter().map(|(_, votes)| votes.k()).collect();
            // A cell without rows has the trivial bound.
            let most = labels.into_iter().map(|k| approximation::largest_disagreement(k, items.classes));
            most.reduce(f64::max).unwrap_or(1.0)
        } else {
            loss.largest_entropy(items.classes)
        };
        let below = Values { values: below, range: [0.0, most] };
        if brier && !single {
            return Self { below, above: None, polynomial: None };
        }
        let mut others = LeaveOneOut::new(items.classes);
        let above = items
            .iter()
            .zip(&below.values)
            .map(|((prediction, votes), &below)| {
                let one_left_out = others.predict(prediction, votes, loss);
                if brier && votes.k() > 1 { below } else { one_left_out }
            })
            .collect();
        let above = Some(Values { values: above, range: [0.0, loss.bound()] });
        Self { below, above, polynomial: approximation.and_then(|approximation| Polynomial::new(items, approximation)) }
    }
}

/// The range of losses of predictions with some confidences. A narrower range allows larger stakes.
///
/// With two classes the loss of a wrong label increases with the confidence and that of the right label decreases. With more classes the
/// Brier loss is at most 1 + ‖f‖², which is largest if the mass is on as few classes as the confidence allows.
fn losses_of_confidence([_, high]: [f64; 2], classes: usize, loss: &Loss) -> [f64; 2] {
    // Cells use confidences in single precision and before normalisation.
    let high = (high + 1e-4).min(1.0);
    let smooth = matches!(loss.shape(), Shape::Brier | Shape::Log | Shape::Other);
    match loss.shape() {
        _ if smooth && classes == 2 => {
            let mut losses = [0.0; 2];
            loss.losses_into(&[high.max(0.5), 1.0 - high.max(0.5)], &mut losses);
            losses
        }
        Shape::Brier => {
            let whole = (1.0 / high).floor();
            [0.0, 1.0 + whole * high * high + (1.0 - whole * high).max(0.0).powi(2)]
        }
        _ => [0.0, loss.bound()],
    }
}

/// The confidence interval from a statistic below and a statistic above in expectation.
fn enclosed(below: &Values, above: &Values, items: &Items, alpha: f64) -> Interval {
    let (low, high) = (below.sample(items).lower(alpha), above.sample(items).upper(alpha));
    if low <= high { Interval::new(low, high) } else { Interval::new(below.range[0], above.range[1]) }
}

/// The intersection of several intervals for one number. If it is empty, one of them does not cover; the first is kept.
fn tightest(mut intervals: impl Iterator<Item = Interval>) -> Interval {
    let first = intervals.next().unwrap_or(Interval::new(f64::NEG_INFINITY, f64::INFINITY));
    intervals.fold(first, Interval::and)
}

/// The standard error of the difference of two answers' losses, by the midpoints of their statistics; `None` stands for a loss of zero.
pub(super) fn error_of_difference(a: Option<&Answer>, b: Option<&Answer>, items: &Items) -> f64 {
    let middles = |answer: Option<&Answer>| match answer {
        Some(answer) => answer.middles(items).collect(),
        None => vec![0.0; items.len()],
    };
    let values = middles(a).iter().zip(middles(b)).map(|(x, y)| x - y).collect();
    let difference = Values { values, range: EMPTY_RANGE };
    let (mean, weight) = (difference.mean(items), |i: usize| items.weights().map_or(1.0, |weights| weights[i]));
    let all: f64 = (0..items.len()).map(weight).sum();
    let squares = difference.values.iter().enumerate().map(|(i, x)| (weight(i) * (x - mean)).powi(2));
    squares.sum::<f64>().sqrt() / all
}

/// The confidence interval of the difference of two answers' losses, from paired differences per item.
pub(super) fn difference(a: &Answer, b: &Answer, items: &Items, alpha: f64) -> Interval {
    let apart = |x: &Values, y: &Values| [x.range[0] - y.range[1], x.range[1] - y.range[0]];
    let alpha = alpha / (a.pairs().count() * b.pairs().count()) as f64;
    let pairs = a.pairs().flat_map(|x| b.pairs().map(move |y| (x, y)));
    tightest(pairs.map(|((a_below, a_above), (b_below, b_above))| {
        let below = a_below.minus(b_above, apart(a_below, b_above));
        let above = a_above.minus(b_below, apart(a_above, b_below));
        enclosed(&below, &above, items, alpha)
    }))
}

/// The confidence interval of the reducible loss, predicting minus the Bayes-optimal answer, with a tighter range.
///
/// A prediction is never better than the snapshot mean on the snapshot itself, so u − T⁻ ≥ 0. With Û,
/// u − Û = ‖ȳ − f‖² − (1 − ‖ȳ‖²)/(k − 1) ≥ −1/k.
pub(super) fn reducible(predict: &Answer, bayes: &Answer, items: &Items, loss: &Loss, alpha: f64) -> Interval {
    let most = predict.below.range[1];
    let fewest = items.iter().map(|(_, votes)| votes.k()).min().unwrap_or(2);
    let by_agreement = -1.0 / fewest.max(2) as f64;
    let (least, least_below) = match &bayes.above {
        None => (by_agreement, by_agreement),
        // Û on some items and zero on those with one label, or T⁻.
        Some(above) => {
            let brier = matches!(loss.shape(), Shape::Brier);
            (if brier { by_agreement } else { 0.0 }, least_above_one_left_out(items, loss).unwrap_or(-above.range[1]))
        }
    };
    let alpha = alpha / bayes.pairs().count() as f64;
    let below = predict.below.minus(bayes.above(), [least_below, most]);
    let above = predict.below.minus(&bayes.below, [least, most]);
    let by_entropies = enclosed(&below, &above, items, alpha);
    let Some(Polynomial { below, above, least_apart }) = &bayes.polynomial else { return by_entropies };
    // u is at least the entropy of the votes' shares.
    let low = predict.below.minus(above, [least_apart[1], most - above.range[0]]);
    let high = predict.below.minus(below, [least_apart[0], most - below.range[0]]);
    by_entropies.and(enclosed(&low, &high, items, alpha))
}

/// The minimum of u − T⁺ for the cross-entropy if no item has a single label.
///
/// With m = [`PRIOR_LABELS`], q₋c ≥ m/(k − 1 + m)·f_c, so ln q₋c − ln f_c is at least the logarithm of that factor. The projection onto
/// predictions above the floor ε scales down by at most 1 − (C − 1)ε.
fn least_above_one_left_out(items: &Items, loss: &Loss) -> Option<f64> {
    let floor = loss.floor()?;
    let labels = || items.iter().map(|(_, votes)| votes.k());
    let most = labels().max().filter(|_| labels().all(|k| k > 1))? as f64;
    Some((PRIOR_LABELS / (most - 1.0 + PRIOR_LABELS)).ln() + (1.0 - (items.classes as f64 - 1.0) * floor).ln())
}

/// Predicts each label of an item from its other labels or, if it has none, from the items before.
struct LeaveOneOut {
    /// The sum of the snapshot means of the items before.
    sum: Vec<f64>,
    /// The number of items before.
    items: f64,
    guess: Vec<f64>,
    losses: Vec<f64>,
}

impl LeaveOneOut {
    fn new(classes: usize) -> Self {
        Self { sum: vec![0.0; classes], items: 0.0, guess: vec![0.0; classes], losses: vec![0.0; classes] }
    }

    fn predict(&mut self, prediction: &[f64], votes: Votes<'_>, loss: &Loss) -> f64 {
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

/// The confidence interval of the loss of one prediction q served to a whole cell, which may depend on the cell's labels.
///
/// A centroid is computed from the labels that evaluate it, so its losses item by item are too small. But its loss is Σ_c p̄_c ℓ(c, q), and
/// the confidence intervals of p̄ do not depend on q: the result is the least and the largest such sum over all p̄ within their intervals.
pub(super) fn served(served: &[f64], items: &Items, loss: &Loss, alpha: f64) -> Interval {
    let mut losses = vec![0.0; items.classes];
    loss.losses_into(served, &mut losses);
    let alpha = alpha / items.classes as f64;
    let shares: Vec<Interval> = (0..items.classes)
        .map(|class| {
            let values = items.iter().map(|(_, votes)| votes.mean(class)).collect();
            Values { values, range: [0.0, 1.0] }.sample(items).interval(alpha)
        })
        .collect();
    let mut order: Vec<usize> = (0..items.classes).collect();
    order.sort_by(|&a, &b| losses[a].total_cmp(&losses[b]));
    let extreme = |order: &mut dyn Iterator<Item = usize>| {
        let mut left = 1.0 - shares.iter().map(|share| share.low).sum::<f64>();
        let mut sum: f64 = shares.iter().zip(&losses).map(|(share, loss)| share.low * loss).sum();
        let mut first = None;
        for class in order {
            let more = shares[class].width().min(left).max(0.0);
            sum += more * losses[class];
            left -= more;
            first = first.or(Some(losses[class]));
        }
        // If the upper bounds sum to less than one, some do not cover; the rest widens the interval.
        sum + left.max(0.0) * first.unwrap_or(0.0)
    };
    Interval::new(extreme(&mut order.iter().copied()), extreme(&mut order.iter().rev().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All votes of `k` labels over three classes, with their probabilities.
    fn all_votes(k: u32, p: [f64; 3]) -> Vec<([u32; 3], f64)> {
        let factorial = |n: u32| (1..=n).map(f64::from).product::<f64>();
        let votes = (0..=k).flat_map(|a| (0..=k - a).map(move |b| [a, b, k - a - b]));
        votes
            .map(|n| {
                let chance = n.iter().zip(p).map(|(&n, p)| p.powi(n as i32) / factorial(n)).product::<f64>();
                (n, chance * factorial(k))
            })
            .collect()
    }

    fn losses() -> Vec<Loss> {
        let matrix = vec![vec![0.0, 3.0, 1.0], vec![1.0, 0.0, 2.0], vec![0.4; 3]];
        vec![
            Loss::brier(),
            Loss::cross_entropy().certified(3),
            Loss::spherical(),
            Loss::zero_one(),
            Loss::matrix(["ship", "hold", "ask"], matrix).unwrap(),
        ]
    }

    const POINTS: [[f64; 3]; 6] =
        [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.1, 0.8, 0.1], [0.4, 0.35, 0.25], [0.0, 0.5, 0.5], [0.02, 0.01, 0.97]];

    /// By enumeration: E T⁻ ≤ G(p*) ≤ E T⁺ with equality for the Brier loss, E u is the loss of predicting, and all ranges hold.
    #[test]
    fn statistics_enclose_the_irreducible_loss() {
        for (loss, k) in losses().into_iter().flat_map(|loss| [2, 3, 5].map(|k| (loss.clone(), k))) {
            for (p, f) in POINTS.into_iter().flat_map(|p| POINTS.map(|f| (p, f))) {
                let (votes, chances): (Vec<_>, Vec<_>) = all_votes(k, p).into_iter().unzip();
                let items = Items::from_votes(3, f.repeat(votes.len()), votes.concat());
                let enclosing = Approximation::new(&loss, 3);
                let (predict, bayes) =
                    (Answer::predict(&items, &loss), Answer::bayes(&items, &loss, enclosing.as_ref()));
                let mean = |values: &Values| dot(&values.values, &chances);
                let case = format!("{loss}, k = {k}, p = {p:?}, f = {f:?}");
                let (truth, below, above) = (loss.entropy(&p), mean(&bayes.below), mean(bayes.above()));
                assert!(below <= truth + 1e-12 && truth <= above + 1e-12, "{case}: {below} {truth} {above}");
                if loss == Loss::brier() {
                    assert!((below - truth).abs() < 1e-12 && (above - truth).abs() < 1e-12, "{case}");
                }
                assert!((mean(&predict.below) - loss.expected(&p, &f)).abs() < 1e-12, "{case}");
                let has_none = loss == Loss::brier() || loss.acts().is_some();
                assert_eq!(bayes.polynomial.is_none(), has_none, "{case}");
                if let Some(Polynomial { below, above, least_apart }) = &bayes.polynomial {
                    assert!(mean(below) <= truth + 1e-12 && truth <= mean(above) + 1e-12, "{case}");
                    for (u, (low, high)) in predict.below.values.iter().zip(below.values.iter().zip(&above.values)) {
                        assert!((below.range[0] - 1e-12..=below.range[1] + 1e-12).contains(low), "{case}");
                        assert!((above.range[0] - 1e-12..=above.range[1] + 1e-12).contains(high), "{case}");
                        assert!(u - low >= least_apart[0] - 1e-12 && u - high >= least_apart[1] - 1e-12, "{case}");
                    }
                }
                for values in [&bayes.below, bayes.above(), &predict.below] {
                    let within = |x: &f64| (values.range[0] - 1e-12..=values.range[1] + 1e-12).contains(x);
                    assert!(values.values.iter().all(within), "{case}");
                }
                for (u, t) in predict.below.values.iter().zip(&bayes.below.values) {
                    let least = if loss == Loss::brier() { -1.0 / f64::from(k) } else { 0.0 };
                    assert!(u - t >= least - 1e-12, "{case}");
                }
            }
        }
    }

    #[test]
    fn losses_are_within_the_range_of_their_confidence() {
        for loss in losses() {
            for steps in 1..=60 {
                for f in (0..=60).flat_map(|a| (0..=60 - a).map(move |b| [a, b, 60 - a - b])) {
                    if f.iter().all(|&n| n <= steps) && f.contains(&steps) {
                        let f = f.map(|n| f64::from(n) / 60.0);
                        let range = losses_of_confidence([0.0, f64::from(steps) / 60.0], 3, &loss);
                        let mut values = [0.0; 3];
                        loss.losses_into(&f, &mut values);
                        assert!(values.iter().all(|x| (range[0]..=range[1]).contains(x)), "{loss} {f:?} {range:?}");
                    }
                }
            }
        }
        for loss in ["brier", "cross-entropy", "spherical", "zero-one", "three-part", "fn-fp:fp=1,fn=3"] {
            let loss: Loss = loss.parse().unwrap();
            for high in (50..=100).map(|n| f64::from(n) / 100.0) {
                let range = losses_of_confidence([0.5, high], 2, &loss);
                for p in [0.5, f64::midpoint(0.5, high), high] {
                    for f in [[p, 1.0 - p], [1.0 - p, p]] {
                        let mut values = [0.0; 2];
                        loss.losses_into(&f, &mut values);
                        assert!(values.iter().all(|x| (range[0]..=range[1]).contains(x)), "{loss} {f:?} {range:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn single_labels_are_predicted_from_the_items_before() {
        for loss in losses() {
            for p in POINTS {
                // Each possible label once, weighted by its probability.
                let (votes, chances): (Vec<_>, Vec<_>) = all_votes(1, p).into_iter().unzip();
                let items = Items::from_votes(3, [0.3, 0.3, 0.4].repeat(3), votes.concat());
                let bayes = Answer::bayes(&items, &loss, None);
                let certain: f64 = votes.iter().zip(&chances).map(|(n, c)| c * loss.entropy(&n.map(f64::from))).sum();
                let below = dot(&bayes.below.values, &chances);
                assert!(below <= certain + 1e-12 && below >= 0.0, "{loss}");
                assert!(certain <= loss.entropy(&p) + 1e-12);
                // The first item is predicted from its weak prediction alone.
                let first = loss.expected(&votes[0].map(f64::from), &[0.3, 0.3, 0.4]);
                assert!((bayes.above().values[0] - first).abs() < 1e-12, "{loss}");
            }
        }
    }

    #[test]
    fn intervals_of_served_predictions_cover_their_loss() {
        let votes: Vec<u32> = (0..600).flat_map(|i| if i % 3 == 0 { [3, 1, 1] } else { [0, 4, 1] }).collect();
        let items = Items::from_votes(3, [0.3, 0.3, 0.4].repeat(600), votes);
        let mean = [0.2, 0.6, 0.2];
        for loss in losses() {
            for q in POINTS {
                let interval = served(&q, &items, &loss, 0.01);
                let value = loss.expected(&mean, &q);
                assert!(interval.contains(value), "{loss}, {q:?}: {value} in {interval:?}");
                assert!(interval.low >= -1e-9 && interval.high <= loss.bound() + 1e-9);
                assert!(interval.width() < 0.35 * loss.bound(), "{loss}, {q:?}: {interval:?}");
            }
        }
    }
}
