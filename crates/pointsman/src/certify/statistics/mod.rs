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

mod leave_one_out;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use leave_one_out::{LeaveOneOut, PRIOR_LABELS};

use crate::certify::approximation::{self, Approximation, EnclosingStatistic};
use crate::certify::betting::Sample;
use crate::certify::interval::Interval;
use crate::certify::items::Items;
use crate::loss::{Loss, Shape};
use crate::numeric::weighted::{WeightedMean, weighted_mean};
use crate::oracle::Panel;
use crate::table::simplex::dot;
use crate::table::votes::Votes;

/// An empty range.
const EMPTY_RANGE: [f64; 2] = [f64::INFINITY, f64::NEG_INFINITY];

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
        weighted_mean(self.weighted(items))
    }

    fn weighted<'a>(&'a self, items: &'a Items) -> impl Iterator<Item = (f64, f64)> + Clone + 'a {
        self.values.iter().enumerate().map(|(item, &x)| (items.weight(item), x))
    }

    /// The change of the mean if weights are multiplied by 1 + these factors, which are assumed to have mean zero.
    fn step(&self, items: &Items, factors: &[f64]) -> f64 {
        let (mean, all) = (self.mean(items), (0..factors.len()).map(|item| items.weight(item)).sum::<f64>());
        let steps = self.weighted(items).zip(factors);
        steps.map(|((weight, x), factor)| weight * factor * (x - mean)).sum::<f64>() / all
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
        let brier = loss.is_brier();
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
    let smooth = matches!(loss.shape(), Shape::Brier | Shape::Log | Shape::Spherical);
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
        Shape::Log | Shape::ZeroOne | Shape::Spherical | Shape::Lines(_) => [0.0, loss.bound()],
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

/// The standard error of the difference of two answers' losses, by the midpoints of their statistics; `None` is a loss of zero.
pub(super) fn error_of_difference(a: Option<&Answer>, b: Option<&Answer>, items: &Items) -> f64 {
    let middles = |answer: Option<&Answer>| match answer {
        Some(answer) => answer.middles(items).collect(),
        None => vec![0.0; items.len()],
    };
    let values = middles(a).iter().zip(middles(b)).map(|(x, y)| x - y).collect();
    WeightedMean::new(Values { values, range: EMPTY_RANGE }.weighted(items)).standard_error()
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
            let brier = loss.is_brier();
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
