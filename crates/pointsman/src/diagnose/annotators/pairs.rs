//! Pairs of annotators who agree more often than their colleagues do on the same items.
//!
//! Given the labels of an item of k ≥ 3 labels, but not who gave which, two of its annotators agree with probability
//! p = Σ_c n_c(n_c − 1) / (k(k − 1)) if all label independently from one law, whatever that law is. An item with only two labels takes p from
//! others of that kind with a similar prediction: without the items of the pair itself. Common items are independent, so the number of
//! agreements O is a sum of independent trials with mean E = Σp and variance V = Σp(1 − p).
//!
//! Honest annotators differ too, so the null hypothesis allows the log odds of agreement to be higher by three things:
//!
//! - a tolerance, [`TOLERANCE_IN_LOG_ODDS`];
//! - what both have in common with all their colleagues. (O − E)/V estimates how much the log odds of some pairs are higher. The estimates of
//!   a's pairs with the others plus b's, minus that of the others among themselves, is what a pair of a and b would have if each of them had an
//!   effect of their own, as of annotators who err less than the others;
//! - a random effect of every pair.
//!
//! The variances of the effects of annotators and of pairs are estimated from trimmed means, on the items that are not common to the pair. If
//! the two have hardly any others, as where everybody labels everything, all items are used.
//!
//! The p-value is approximated by the saddle point. It is compared with [`MAX_FALSE_ALARM_PROBABILITY`] divided by the number of pairs tested.

use std::collections::HashMap;

use super::Annotations;
use super::class_counts::ClassCounts;
use crate::parallel::prelude::*;

/// The smallest number of common items from which a pair is tested.
const MIN_COMMON_ITEMS: usize = 20;

/// The largest probability that any pair is reported if all annotators label independently.
const MAX_FALSE_ALARM_PROBABILITY: f64 = 0.02;

/// Higher log odds of agreement than this are needed: odds of 1.25 times those of other pairs.
const TOLERANCE_IN_LOG_ODDS: f64 = 0.223;

/// The largest number of pairs that are compared with what annotators differ by.
const MAX_CANDIDATES: usize = 30;

/// An annotator's own effect is taken from the items that are not common to the pair if there are this many.
const MIN_OTHER_ITEMS: usize = 30;

/// The variance of annotators' effects on the log odds if there are too few of them to estimate it.
const USUAL_ANNOTATOR_VARIANCE: f64 = 0.25;

/// The smallest variance of annotators' effects: a standard deviation of 0.1.
const MIN_ANNOTATOR_VARIANCE: f64 = 0.01;

/// The smallest numbers of annotators and of pairs from which the variances of their effects are estimated.
const MIN_ANNOTATORS_FOR_VARIANCE: usize = 8;
const MIN_PAIRS_FOR_VARIANCE: usize = 20;

/// The mean of the square of a standard normal variable, without the largest tenth.
const TRIMMED_SQUARED_NORMAL: f64 = 0.623;

/// The smallest number of items of two labels from which the chance of agreement in a stratum is taken.
const MIN_ITEMS_PER_STRATUM: usize = 30;

/// The share of the common items from which the one whose label comes later is named.
const CLEAR_ORDER: f64 = 0.8;

/// The number of strata of confidence per top class.
const STRATA: f64 = 20.0;

/// Sums are in units of 2⁻³², as integers, so that they do not depend on the order of items.
const UNITS: f64 = 4_294_967_296.0;

/// Two annotators who agree with each other more often than chance and the agreement of others explain. One of them is left out.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct AgreeingPair {
    /// The one to leave out: whose labels come later on four fifths of the common items or more; without such an order, the one who repeats
    /// the label before theirs, if only one of the two does; otherwise the one with fewer labels.
    pub annotator: String,
    /// The other one.
    pub colleague: String,
    /// The number of items that both labelled.
    pub common: usize,
    /// The number of these items on which they agree.
    pub agreed: usize,
    /// The share of the other pairs of labels that agree on these items; for items with only two labels, on items with a similar prediction.
    pub others_agree: f64,
    /// The number of common items on which the label of `annotator` comes after that of `colleague`.
    pub later: usize,
}

impl AgreeingPair {
    /// Whether the order of the labels says who copied: on most common items the label of `annotator` is the later one.
    #[must_use]
    pub fn has_clear_order(&self) -> bool {
        is_clear_order(self.later, self.common)
    }
}

/// Whether the labels of one of two annotators are the later ones on so many of the common items that their order says who copied.
fn is_clear_order(later: usize, common: usize) -> bool {
    later as f64 >= CLEAR_ORDER * common as f64
}

/// A pair under suspicion.
pub(super) struct SuspectedPair {
    /// Indices of the annotators.
    pub(super) pair: [usize; 2],
    /// The number of items that both labelled.
    pub(super) common: usize,
    /// The number of these on which they agree.
    pub(super) agreed: usize,
    /// The share of other pairs that agree.
    pub(super) others_agree: f64,
    /// The number of common items on which the second one's label comes after the first one's.
    pub(super) second_is_later: usize,
    /// How far the logarithm of the p-value is below what is required.
    pub(super) excess: f64,
}

impl SuspectedPair {
    /// Which of the two to leave out: by order, or the one who follows the label before, or by the number of labels; ties go to the second
    /// name.
    pub(super) fn left_out(&self, follows: impl Fn(usize) -> bool, labels: impl Fn(usize) -> usize) -> usize {
        let place = match self.pair.map(follows) {
            _ if is_clear_order(self.second_is_later, self.common) => 1,
            _ if is_clear_order(self.common - self.second_is_later, self.common) => 0,
            [true, false] => 0,
            [false, true] => 1,
            _ => usize::from(labels(self.pair[1]) <= labels(self.pair[0])),
        };
        self.pair[place]
    }

    /// How much more often the two agree than other pairs.
    pub(super) fn excess_agreement(&self) -> f64 {
        self.agreed as f64 / self.common as f64 - self.others_agree
    }

    /// The pair with names, of which one is left out.
    pub(super) fn with_names(&self, left_out: usize, names: &[String]) -> AgreeingPair {
        let is_second = self.pair[1] == left_out;
        AgreeingPair {
            annotator: names[left_out].clone(),
            colleague: names[self.pair[usize::from(!is_second)]].clone(),
            common: self.common,
            agreed: self.agreed,
            others_agree: self.others_agree,
            later: if is_second { self.second_is_later } else { self.common - self.second_is_later },
        }
    }
}

/// The items of an annotation table as far as pairs need them.
struct Items<'a> {
    annotations: &'a Annotations,
    class_counts: &'a ClassCounts,
    /// The rows that are not used.
    is_left_out: Vec<bool>,
    /// The chance that two labels of a row agree; for rows with two labels that of their stratum; NaN for others.
    chances: Vec<f64>,
    /// The variance of the number of labels of a row that agree with one of them.
    spreads: Vec<f64>,
    /// The stratum of each row.
    strata: Vec<usize>,
    /// The number of rows with two labels in each stratum, and of those that agree.
    counts: Vec<[usize; 2]>,
    /// The same for all strata together.
    all: [usize; 2],
}

impl<'a> Items<'a> {
    /// Strata count the rows with two labels that are not left out.
    fn new(
        annotations: &'a Annotations,
        class_counts: &'a ClassCounts,
        predictions: &[(u32, f64)],
        is_left_out: Vec<bool>,
    ) -> Self {
        let classes = predictions.iter().map(|(class, _)| *class as usize + 1).max().unwrap_or(0);
        let strata_per_class = STRATA as usize + 1;
        let mut counts = vec![[0; 2]; classes * strata_per_class];
        let mut all = [0; 2];
        let strata: Vec<usize> = predictions
            .iter()
            .map(|(class, confidence)| {
                let bin = (STRATA * confidence.clamp(0.0, 1.0)) as usize;
                *class as usize * strata_per_class + bin.min(strata_per_class - 1)
            })
            .collect();
        for (row, &stratum) in strata.iter().enumerate() {
            if let [first, second] = annotations.labels(row)
                && !is_left_out[row]
            {
                for counts in [&mut counts[stratum], &mut all] {
                    *counts = [counts[0] + 1, counts[1] + usize::from(first.class == second.class)];
                }
            }
        }
        let (chances, spreads) = (Vec::new(), Vec::new());
        let mut found = Self { annotations, class_counts, is_left_out, chances, spreads, strata, counts, all };
        (found.chances, found.spreads) = (0..predictions.len()).map(|row| found.chance(row)).unzip();
        found
    }

    /// The chance that two labels of a row agree, and the variance of the number of labels that agree with one of them.
    fn chance(&self, row: usize) -> (f64, f64) {
        match self.annotations.labels(row).len() {
            0 | 1 => (f64::NAN, 0.0),
            2 => {
                let chance = self.stratum_chance(self.strata[row], [0; 2], [0; 2]);
                chance.map_or((f64::NAN, 0.0), |(chance, _)| (chance, chance * (1.0 - chance)))
            }
            k => {
                let counts = self.class_counts.row(row);
                let squares: usize = counts.classes.iter().map(|(_, n)| n * (n - 1) * (n - 1)).sum();
                let mean = counts.agreeing_pairs as f64 / k as f64;
                (mean / (k - 1) as f64, (squares as f64 / k as f64 - mean * mean).max(0.0))
            }
        }
    }

    /// The share of rows with two labels that agree in a stratum, and their number, without some rows of the stratum and of all strata. A
    /// stratum of few rows takes the share of all strata. `None` if there are few in all. One row on either side keeps shares off 0 and 1.
    fn stratum_chance(&self, stratum: usize, without: [usize; 2], without_all: [usize; 2]) -> Option<(f64, f64)> {
        let rest = |counts: [usize; 2], without: [usize; 2]| [counts[0] - without[0], counts[1] - without[1]];
        let own = rest(self.counts[stratum], without);
        let [n, agreed] = if own[0] >= MIN_ITEMS_PER_STRATUM { own } else { rest(self.all, without_all) };
        (n >= MIN_ITEMS_PER_STRATUM).then(|| ((agreed as f64 + 1.0) / (n as f64 + 2.0), n as f64))
    }

    /// Those of an annotator's places that are used.
    fn used<'b>(&self, places: &'b [(usize, usize)]) -> impl Iterator<Item = &'b (usize, usize)> {
        places.iter().filter(|(row, _)| !self.is_left_out[*row])
    }
}

/// O − E and V of several pairs of labels, in [`UNITS`]. An item of many labels has very many pairs, more than 64 bits can sum up.
#[derive(Debug, Clone, Copy, Default)]
struct Score {
    excess: i128,
    variance: i128,
}

impl Score {
    /// The score of one pair of labels that agree with some probability; nothing if that is unknown.
    fn new(chance: f64, agrees: bool) -> Self {
        if !chance.is_finite() {
            return Self::default();
        }
        let in_units = |x: f64| i128::from((x * UNITS).round() as i64);
        Self { excess: in_units(f64::from(u8::from(agrees)) - chance), variance: in_units(chance * (1.0 - chance)) }
    }

    fn plus(self, other: Self, times: i128) -> Self {
        Self { excess: self.excess + times * other.excess, variance: self.variance + times * other.variance }
    }

    fn variance(self) -> f64 {
        self.variance as f64 / UNITS
    }

    /// (O − E)/V, the estimated difference in log odds.
    fn mean(self) -> f64 {
        self.excess as f64 / self.variance as f64
    }
}

/// The pairs of one annotator.
#[derive(Debug, Clone, Copy, Default)]
struct Total {
    score: Score,
    /// The variance of O − E over all pairs, in [`UNITS`]: pairs with one annotator in common are not independent.
    spread: i128,
}

impl Total {
    /// The sum over all pairs of an annotator with these places. The pairs of an item that agree are counted, not listed.
    fn new(items: &Items<'_>, places: &[(usize, usize)]) -> Self {
        let mut total = Self::default();
        for &(row, place) in items.used(places) {
            let (labels, chance) = (items.annotations.labels(row), items.chances[row]);
            let agreeing = items.class_counts.row(row).labels_of(labels[place].class) - 1;
            let differing = labels.len() - 1 - agreeing;
            total.score = total.score.plus(Score::new(chance, true), agreeing as i128);
            total.score = total.score.plus(Score::new(chance, false), differing as i128);
            total.spread += (items.spreads[row] * UNITS).round() as i128;
        }
        total
    }

    /// Without one pair.
    fn without(self, pair: Score) -> Self {
        let score = self.score.plus(pair, -1);
        let share = score.variance as f64 / self.score.variance.max(1) as f64;
        Self { score, spread: (self.spread as f64 * share) as i128 }
    }

    /// The estimated difference in log odds and its variance; `None` with hardly any items that are not certain to agree or differ.
    fn effect(self) -> Option<[f64; 2]> {
        let variance = self.score.variance();
        (variance >= 1.0).then(|| [self.score.mean(), self.spread as f64 / UNITS / (variance * variance)])
    }
}

/// The score of a pair with enough common items, in little space: there may be very many pairs.
struct PairScore {
    pair: [u32; 2],
    excess: i64,
    variance: i64,
}

impl PairScore {
    fn pair(&self) -> [usize; 2] {
        self.pair.map(|annotator| annotator as usize)
    }

    fn score(&self) -> Score {
        Score { excess: i128::from(self.excess), variance: i128::from(self.variance) }
    }
}

/// A pair with enough common items, with all that the test needs.
struct Pair {
    pair: [usize; 2],
    score: Score,
    common: usize,
    agreed: usize,
    others_agree: f64,
    second_is_later: usize,
    /// The chances of agreement of the items that are not certain to agree or differ, in ascending order.
    chances: Vec<f64>,
    /// The agreements on these items.
    uncertain_agreed: usize,
    /// The variance of E, as far as it is estimated from other items.
    expectation_variance: f64,
}

/// All pairs that agree more often than the level allows.
pub(super) fn suspected_pairs(
    annotations: &Annotations,
    class_counts: &ClassCounts,
    places: &[Vec<(usize, usize)>],
    predictions: &[(u32, f64)],
) -> Vec<SuspectedPair> {
    let items = Items::new(annotations, class_counts, predictions, vec![false; annotations.rows()]);
    let all = Summary::new(&items, places);
    let threshold = (all.pairs.len() as f64 / MAX_FALSE_ALARM_PROBABILITY).ln();
    // Only pairs that chance and the tolerance do not explain are compared with what annotators differ by.
    let of_one: Vec<&[PairScore]> = all.pairs.chunk_by(|a, b| a.pair[0] == b.pair[0]).collect();
    let candidates_of = |scores: &&[PairScore]| {
        let pairs = pairs_of(&items, places, scores).into_iter();
        let found = pairs.map(|pair| (pair.evidence(TOLERANCE_IN_LOG_ODDS, 0.0), pair));
        found.filter(|(evidence, _)| *evidence > threshold).collect::<Vec<_>>()
    };
    let candidates: Vec<Vec<(f64, Pair)>> = of_one.par_iter().map(candidates_of).collect();
    let mut candidates: Vec<(f64, Pair)> = candidates.into_iter().flatten().collect();
    candidates.sort_by(|a, b| b.0.total_cmp(&a.0));
    candidates.truncate(MAX_CANDIDATES);
    let suspected = candidates.par_iter().filter_map(|(_, pair)| {
        let has_others = pair.pair.iter().all(|&who| places[who].len() >= pair.common + MIN_OTHER_ITEMS);
        let [effect, variance] = if has_others {
            let is_common = labelled_by_both(places, pair.pair, annotations.rows());
            let items = Items::new(annotations, class_counts, predictions, is_common);
            Summary::new(&items, places).expected_effect(pair.pair, None)?
        } else {
            all.expected_effect(pair.pair, Some(pair.score))?
        };
        let excess = pair.evidence(effect.max(0.0) + TOLERANCE_IN_LOG_ODDS, variance) - threshold;
        (excess > 0.0).then_some(SuspectedPair {
            pair: pair.pair,
            common: pair.common,
            agreed: pair.agreed,
            others_agree: pair.others_agree,
            second_is_later: pair.second_is_later,
            excess,
        })
    });
    suspected.collect()
}

/// Which of some number of rows both annotators of a pair labelled.
fn labelled_by_both(places: &[Vec<(usize, usize)>], pair: [usize; 2], rows: usize) -> Vec<bool> {
    let [mut by_first, mut by_both] = [vec![false; rows], vec![false; rows]];
    places[pair[0]].iter().for_each(|(row, _)| by_first[*row] = true);
    places[pair[1]].iter().for_each(|(row, _)| by_both[*row] = by_first[*row]);
    by_both
}

/// What some rows say about all annotators and pairs.
struct Summary {
    /// The sum over the pairs of each annotator.
    totals: Vec<Total>,
    /// The sum over all pairs.
    all: Score,
    /// The pairs with enough common items, in the order of their annotators.
    pairs: Vec<PairScore>,
    /// The variance of the annotators' effects.
    annotator_variance: f64,
    /// The variance of the effects of pairs beyond those of annotators.
    pair_variance: f64,
}

impl Summary {
    fn new(items: &Items<'_>, places: &[Vec<(usize, usize)>]) -> Self {
        let annotators: Vec<usize> = (0..places.len()).collect();
        let of_annotator =
            |&annotator: &usize| (Total::new(items, &places[annotator]), pair_scores(items, places, annotator));
        let found: Vec<(Total, Vec<PairScore>)> = annotators.par_iter().map(of_annotator).collect();
        let totals: Vec<Total> = found.iter().map(|(total, _)| *total).collect();
        // Every pair is in the totals of both.
        let twice = totals.iter().fold(Score::default(), |sum, total| sum.plus(total.score, 1));
        let mut summary = Self {
            totals,
            all: Score { excess: twice.excess / 2, variance: twice.variance / 2 },
            pairs: found.into_iter().flat_map(|(_, pairs)| pairs).collect(),
            annotator_variance: USUAL_ANNOTATOR_VARIANCE,
            pair_variance: 0.0,
        };
        let effects = summary.totals.iter().filter_map(|total| total.effect()).collect::<Vec<_>>();
        if effects.len() >= MIN_ANNOTATORS_FOR_VARIANCE {
            summary.annotator_variance = excess_variance(&effects).max(MIN_ANNOTATOR_VARIANCE);
        }
        let residuals: Vec<[f64; 2]> = summary.pairs.iter().filter_map(|pair| summary.residual(pair)).collect();
        if residuals.len() >= MIN_PAIRS_FOR_VARIANCE {
            summary.pair_variance = excess_variance(&residuals);
        }
        summary
    }

    /// The difference in log odds that a pair has if each annotator has an effect of their own, and its variance with the random effect of
    /// pairs. `own` is the score of the pair itself if its items are among the rows. `None` if no others agree or differ among themselves: a
    /// pair that agrees cannot be distinguished from a third annotator who errs.
    fn expected_effect(&self, pair: [usize; 2], own: Option<Score>) -> Option<[f64; 2]> {
        let own = own.unwrap_or_default();
        let [first, second] = pair.map(|annotator| self.totals[annotator]);
        let others = self.all.plus(first.score, -1).plus(second.score, -1).plus(own, 1);
        if others.variance() < 1.0 {
            return None;
        }
        let [first, second] = [first, second].map(|total| shrunk(total.without(own).effect(), self.annotator_variance));
        let others = shrunk(Some([others.mean(), 1.0 / others.variance()]), 4.0 * self.annotator_variance);
        let variance = first[1] + second[1] + others[1] + self.pair_variance;
        Some([first[0] + second[0] - others[0], variance])
    }

    /// How far a pair's effect is from the expected one, and the variance of this.
    fn residual(&self, pair: &PairScore) -> Option<[f64; 2]> {
        let score = pair.score();
        let [effect, variance] = self.expected_effect(pair.pair(), Some(score))?;
        let own = score.variance();
        (own >= 1.0).then(|| [score.mean() - effect, 1.0 / own + variance])
    }
}

/// An estimate and its variance, shrunk towards zero; without an estimate, only the prior.
fn shrunk(estimate: Option<[f64; 2]>, prior: f64) -> [f64; 2] {
    estimate.map_or([0.0, prior], |[mean, variance]| {
        let weight = prior / (prior + variance);
        [weight * mean, weight * variance]
    })
}

/// The variance of normal effects with estimates of known variance, as far as it is more than one standard error above zero. The largest
/// tenth of the squares is left out, so that a few outliers do not move it.
fn excess_variance(estimates: &[[f64; 2]]) -> f64 {
    let kept = estimates.len() - estimates.len().div_ceil(10);
    let by_chance = TRIMMED_SQUARED_NORMAL * (1.0 + 1.0 / (kept as f64).sqrt());
    let trimmed_mean = |excess: f64| {
        let mut ratios: Vec<f64> =
            estimates.iter().map(|[estimate, variance]| estimate * estimate / (variance + excess)).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        ratios[..kept].iter().sum::<f64>() / kept as f64
    };
    let [mut low, mut high] = [0.0, 4.0];
    if trimmed_mean(low) <= by_chance {
        return 0.0;
    }
    for _ in 0..30 {
        let middle = f64::midpoint(low, high);
        if trimmed_mean(middle) > by_chance { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// The pairs of an annotator with colleagues of later names that have enough common items, in the order of names. Only colleagues who
/// labelled a common item are looked at, and only those with enough labels in all.
fn pair_scores(items: &Items<'_>, places: &[Vec<(usize, usize)>], own: usize) -> Vec<PairScore> {
    let has_enough = |annotator: usize| places[annotator].len() >= MIN_COMMON_ITEMS;
    if !has_enough(own) {
        return Vec::new();
    }
    let is_tested = |other: usize| other > own && has_enough(other);
    let mut scores: HashMap<u32, (usize, Score), foldhash::fast::RandomState> = HashMap::default();
    for &(row, place) in items.used(&places[own]) {
        let labels = items.annotations.labels(row);
        let [differs, agrees] = [false, true].map(|agrees| Score::new(items.chances[row], agrees));
        for other in labels.iter().filter(|other| is_tested(other.annotator as usize)) {
            let (common, score) = scores.entry(other.annotator).or_default();
            *common += 1;
            *score = score.plus(if other.class == labels[place].class { agrees } else { differs }, 1);
        }
    }
    let found = scores.into_iter().filter(|(_, (common, _))| *common >= MIN_COMMON_ITEMS);
    let pair = |(other, (_, score)): (u32, (usize, Score))| PairScore {
        pair: [own as u32, other],
        excess: score.excess as i64,
        variance: score.variance as i64,
    };
    let mut found: Vec<PairScore> = found.map(pair).collect();
    found.sort_unstable_by_key(|pair| pair.pair);
    found
}

/// An item that both annotators of a pair labelled.
#[derive(Debug, Clone, Copy)]
struct CommonItem {
    row: usize,
    agrees: bool,
    second_is_later: bool,
}

/// Pairs with the same first annotator, in the order of the second, with all that the test needs.
fn pairs_of(items: &Items<'_>, places: &[Vec<(usize, usize)>], scores: &[PairScore]) -> Vec<Pair> {
    let mut common: Vec<Vec<CommonItem>> = vec![Vec::new(); scores.len()];
    let Some(first) = scores.first() else { return Vec::new() };
    for &(row, place) in items.used(&places[first.pair()[0]]) {
        let labels = items.annotations.labels(row);
        for (at, other) in labels.iter().enumerate() {
            if let Ok(of_pair) = scores.binary_search_by_key(&other.annotator, |score| score.pair[1]) {
                let agrees = other.class == labels[place].class;
                common[of_pair].push(CommonItem { row, agrees, second_is_later: at > place });
            }
        }
    }
    scores.iter().zip(&common).map(|(score, common)| Pair::new(score, common, items)).collect()
}

impl Pair {
    fn new(score: &PairScore, common: &[CommonItem], items: &Items<'_>) -> Self {
        // Rows with only these two labels are no evidence of how often others agree.
        let is_two = |item: &CommonItem| items.annotations.labels(item.row).len() == 2;
        let two = common.iter().filter(|item| is_two(item));
        let mut two: Vec<(usize, bool)> = two.map(|item| (items.strata[item.row], item.agrees)).collect();
        two.sort_unstable();
        let count = |rows: &[(usize, bool)]| [rows.len(), rows.iter().filter(|(_, agrees)| *agrees).count()];
        let all_two = count(&two);
        let (mut chances, mut others) = (Vec::new(), Vec::new());
        let (mut uncertain_agreed, mut expectation_variance) = (0, 0.0);
        for same in two.chunk_by(|a, b| a.0 == b.0) {
            let own = count(same);
            let Some((chance, n)) = items.stratum_chance(same[0].0, own, all_two) else { continue };
            chances.extend(std::iter::repeat_n(chance, own[0]));
            others.extend(std::iter::repeat_n(chance, own[0]));
            uncertain_agreed += own[1];
            expectation_variance += (own[0] as f64).powi(2) * chance * (1.0 - chance) / n;
        }
        for &CommonItem { row, agrees, .. } in common.iter().filter(|item| !is_two(item)) {
            let (chance, k) = (items.chances[row], items.annotations.labels(row).len());
            let pairs = (k * (k - 1) / 2) as f64;
            others.push((chance * pairs - f64::from(u8::from(agrees))) / (pairs - 1.0));
            if chance > 0.0 && chance < 1.0 {
                chances.push(chance);
                uncertain_agreed += usize::from(agrees);
            }
        }
        chances.sort_unstable_by(f64::total_cmp);
        others.sort_unstable_by(f64::total_cmp);
        Self {
            pair: score.pair(),
            score: score.score(),
            common: common.len(),
            agreed: common.iter().filter(|item| item.agrees).count(),
            others_agree: others.iter().sum::<f64>() / others.len().max(1) as f64,
            second_is_later: common.iter().filter(|item| item.second_is_later).count(),
            chances,
            uncertain_agreed,
            expectation_variance,
        }
    }

    /// The negative logarithm of the p-value, if the log odds of agreement are higher by `shift` and by a random effect of some variance. Its
    /// exponent is the maximum over λ ≥ 0 of λO − Σ ln(1 − p + pe^λ) − λ²B/2, where B is the variance of the expectation; with the standard
    /// deviation σ at this λ, the tail is smaller than its exponential by (1 − e^−λ)σ√(2π) (Bahadur and Ranga Rao).
    fn evidence(&self, shift: f64, variance: f64) -> f64 {
        let odds = shift.exp();
        let shifted: Vec<f64> = self.chances.iter().map(|p| p * odds / (1.0 - p + p * odds)).collect();
        let (mean, spread) = shifted.iter().fold((0.0, 0.0), |(m, s), p| (m + p, s + p * (1.0 - p)));
        let agreed = self.uncertain_agreed as f64;
        if agreed <= mean {
            return 0.0;
        }
        let blurred = variance * spread * spread + self.expectation_variance;
        let slope = |stake: f64| {
            let factor = stake.exp();
            agreed - stake * blurred - shifted.iter().map(|p| p * factor / (1.0 - p + p * factor)).sum::<f64>()
        };
        // The slope falls, so the maximum is where it is zero, or at the largest λ.
        let [mut low, mut high] = [0.0, 20.0];
        for _ in 0..50 {
            let middle = f64::midpoint(low, high);
            if slope(middle) > 0.0 { low = middle } else { high = middle }
        }
        let factor = low.exp();
        let exponent =
            agreed * low - blurred * low * low / 2.0 - shifted.iter().map(|p| (1.0 - p + p * factor).ln()).sum::<f64>();
        let tilted = shifted.iter().map(|p| p * factor / (1.0 - p + p * factor));
        let deviation = (blurred + tilted.map(|p| p * (1.0 - p)).sum::<f64>()).sqrt();
        exponent + (-(-low).exp_m1() * deviation * std::f64::consts::TAU.sqrt()).ln().max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two annotators with ten and five labels, of whom the second one's label is the later one on some of 100 common items.
    fn left_out(second_is_later: usize) -> AgreeingPair {
        let pair =
            SuspectedPair { pair: [0, 1], common: 100, agreed: 90, others_agree: 0.5, second_is_later, excess: 1.0 };
        let left_out = pair.left_out(|_| false, |annotator| [10, 5][annotator]);
        pair.with_names(left_out, &["ann".to_owned(), "bob".to_owned()])
    }

    #[test]
    fn order_is_clear_from_exactly_four_fifths_in_either_direction() {
        for (second_is_later, annotator, later, is_clear) in
            [(80, "bob", 80, true), (79, "bob", 79, false), (21, "bob", 21, false), (20, "ann", 80, true)]
        {
            let pair = left_out(second_is_later);
            assert_eq!((pair.annotator.as_str(), pair.later, pair.has_clear_order()), (annotator, later, is_clear));
        }
    }
}
