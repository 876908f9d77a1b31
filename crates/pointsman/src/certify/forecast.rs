//! Forecasts for one cell: draws of its intervals after more items or more labels.
//!
//! More items: every mean changes by a normal step with the covariance of the present items, and the intervals shrink towards the bounds
//! that few labels identify, mostly with the square root of the number of items. New items have several labels, even if some present items
//! have one, which shows little. More labels: true distributions are drawn from their posterior given the votes, then labels from these, and
//! the means are computed from the items with those labels.
//!
//! A cell is determined if one action is then certainly at least as good as every other.

use std::sync::OnceLock;

use rand_distr::{Binomial, Distribution, StandardNormal};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

use super::future_differences::FutureDifferences;
use super::items::Items;
use super::views::{Ends, View, Views};
use super::{BAYES, CellCertificate, Rules};
use crate::estimate::{PossibleTruths, Posteriors, TruthLaw};
use crate::numeric::mix::mix;
use crate::oracle::Oracle;
use crate::task::Task;

/// The number of draws for more items.
const DRAWS_OF_ITEMS: usize = 200;

/// The factor by which draws of unbiased means are wider than their estimated errors, because the errors, the widths of intervals and the prior
/// are estimates themselves.
pub(super) const WIDENING: f64 = 1.15;

/// The multiples of the present items by which the shrinking of intervals is measured.
const REPETITIONS: [usize; 2] = [4, 16];

/// The largest number of items for which it is measured.
const MAX_REPEATED_ITEMS: usize = 100_000;

/// The part of the measured shrinking beyond the square root that is assumed for new items.
const ASSUMED_PART: f64 = 0.75;

/// The smallest number of items with several labels that can represent new items.
const MIN_ITEMS_WITH_SEVERAL_LABELS: usize = 10;

/// The largest number of draws for more labels.
const MAX_DRAWS_OF_LABELS: usize = 32;

/// The smallest number of draws for more labels.
const MIN_DRAWS_OF_LABELS: usize = 8;

/// The number of items over all draws above which there are fewer draws.
const ITEMS_DRAWN: usize = 100_000;

/// The number of laws from which the widths of later intervals are computed.
const LAWS_FOR_REACH: usize = 4;

/// Separates the random numbers of labels from those of laws.
const LABELS_OF_LAW: u64 = 0x1ABE1;

/// One cell as it is now, and the data for its forecasts.
pub(super) struct Forecast<'a> {
    rules: &'a Rules,
    task: &'a Task,
    views: Views,
    /// The centroid that is served, if the router is recalibrated.
    served: Option<Vec<f64>>,
    /// For each pair of actions, the distance of the upper end of the interval from its limit.
    reach: Vec<f64>,
    /// The items that represent new ones: the present items, without those of one label if one label does not identify the cost of a route.
    new_items: Items,
    /// The largest number of labels that an item may get in all.
    max_labels_per_item: Option<usize>,
    /// How many of the items that represent new ones tell as much as one new item, which may have fewer labels: at most one.
    information_per_new_item: f64,
    steps: OnceLock<Steps>,
}

impl<'a> Forecast<'a> {
    /// `None` if the cell has no items.
    pub(super) fn new(
        rules: &'a Rules,
        task: &'a Task,
        items: Items,
        served: Option<Vec<f64>>,
        found: &CellCertificate,
        max_labels_per_item: Option<usize>,
    ) -> Option<Self> {
        if items.len() == 0 {
            return None;
        }
        let new_items = new_items(task, &items);
        let views = Views::new(rules, items, served.as_deref());
        let limit = max_labels_per_item.map(|most| most as u64);
        let is_limited = |most: &u64| new_items.iter().any(|(_, votes)| votes.k() > *most);
        let information_per_new_item = match limit.filter(is_limited) {
            Some(most) if most < 2 && is_unidentified(task) => 0.0,
            Some(most) if most > 0 => {
                let errors = |items: Items| Views::new(rules, items, served.as_deref()).standard_errors(rules, task);
                information_of(&errors(new_items.with_at_most(most)), &errors(new_items.clone()))
            }
            Some(_) => 0.0,
            None => 1.0,
        };
        let mut forecast = Self {
            rules,
            task,
            views,
            served,
            reach: Vec::new(),
            new_items,
            max_labels_per_item,
            information_per_new_item,
            steps: OnceLock::new(),
        };
        forecast.reach = forecast.reach(found, forecast.views.ends());
        Some(forecast)
    }

    pub(super) fn items(&self) -> &Items {
        self.views.all()
    }

    /// The number of labels per new item: the mean over the items that represent new ones, each with no more than an item may get.
    pub(super) fn labels_per_new_item(&self) -> usize {
        let most = self.max_labels_per_item.map_or(u64::MAX, |most| most as u64);
        let labels: u64 = self.new_items.iter().map(|(_, votes)| votes.k().min(most)).sum();
        (labels as f64 / self.new_items.len() as f64).round().max(1.0) as usize
    }

    /// The number of present items that tell as much as the present ones and some number of new ones, relative to that of the present ones.
    pub(super) fn times_with(&self, new_items: f64) -> f64 {
        let present = self.items().len() as f64;
        (present + self.information_per_new_item * new_items) / present
    }

    /// For each pair of actions a, b, the largest cost of a minus that of b that the means allow.
    fn highs(&self, ends: &Ends) -> Vec<f64> {
        let limits: Vec<[f64; 2]> = ends.iter().map(|ends| tightest(ends)).collect();
        let actions = self.task.actions();
        let limit = |answer: Option<usize>| answer.map_or([0.0; 2], |answer| limits[answer]);
        let high = |pair: usize| {
            let ((a, price), (b, other)) =
                (self.rules.answer(self.task, pair / actions), self.rules.answer(self.task, pair % actions));
            let high = match (a, b) {
                _ if a == b => 0.0,
                // No answer is better than the Bayes-optimal one.
                (Some(BAYES), Some(_)) => (limit(a)[1] - limit(b)[0]).min(0.0),
                _ => limit(a)[1] - limit(b)[0],
            };
            high + price - other
        };
        (0..actions * actions).map(high).collect()
    }

    /// For each pair of actions, the distance of the upper end of the interval from its limit.
    fn reach(&self, found: &CellCertificate, ends: &Ends) -> Vec<f64> {
        let actions = self.task.actions();
        let reach = |(pair, high): (usize, f64)| {
            (self.rules.gap(found, self.task, pair / actions, pair % actions).high - high).max(0.0)
        };
        self.highs(ends).into_iter().enumerate().map(reach).collect()
    }

    /// For each pair of actions, the midpoint of their cost difference.
    pub(super) fn middles(&self) -> Vec<f64> {
        middles(&self.highs(self.views.ends()), self.task.actions())
    }

    /// For each pair of actions, the standard error of their cost difference.
    pub(super) fn errors(&self) -> Vec<f64> {
        self.views.standard_errors(self.rules, self.task)
    }

    /// Draws of the changes of the means with ever more items.
    fn steps(&self) -> &Steps {
        self.steps.get_or_init(|| self.draw_steps())
    }

    fn draw_steps(&self) -> Steps {
        let mut random = Pcg64::seed_from_u64(0x57E9);
        let mut factors = vec![0.0; self.new_items.len()];
        let new_items = View::new(self.rules, self.new_items.clone(), self.served.as_deref());
        let step = |_| {
            factors.iter_mut().for_each(|factor| *factor = StandardNormal.sample(&mut random));
            new_items.end_steps(&factors)
        };
        let of_new_items = new_items.ends();
        let reach = self.reach_of_new_items(&of_new_items);
        let pace_now = |(base, now): (&f64, &f64)| if *base > 0.0 { now / base } else { 1.0 };
        Steps {
            steps: (0..DRAWS_OF_ITEMS).map(step).collect(),
            errors: self.errors(),
            pace_now: reach.iter().zip(&self.reach).map(pace_now).collect(),
            paces: REPETITIONS.map(|repetitions| self.paces(repetitions, &reach, &of_new_items)),
            reach,
            of_new_items,
        }
    }

    /// For each pair of actions, the reach with a multiple of the present items, relative to shrinking with the square root of their number.
    ///
    /// Part of the reach is due to the range of the losses and shrinks with the number of items itself. If several pairs of statistics
    /// enclose a loss, the one that is tightest in the end need not be the one that is tightest now. Both effects are measured by appending
    /// copies of the new items to the present ones. `base` is the reach of as many items like new ones. Bets on repeated values are slightly
    /// too successful, so only [`ASSUMED_PART`] of the effect is assumed.
    fn paces(&self, repetitions: usize, base: &[f64], of_new_items: &Ends) -> Vec<f64> {
        if repetitions * self.items().len() > MAX_REPEATED_ITEMS {
            return vec![1.0; base.len()];
        }
        let items = self.items().followed_by(&self.new_items, repetitions);
        let found = self.rules.certify(&items, self.served.as_ref().map(|served| Some(served.as_slice())));
        let later = self.reach(&found, &self.views.blended(of_new_items, &self.views.growths(repetitions as f64)));
        let pace = |(base, later): (&f64, f64)| {
            let pace = if *base > 0.0 { (repetitions as f64).sqrt() * later / base } else { 1.0 };
            if pace < 1.0 { 1.0 - ASSUMED_PART * (1.0 - pace) } else { pace }
        };
        base.iter().zip(later).map(pace).collect()
    }

    /// The reach of as many items as there are now if all were like new ones.
    fn reach_of_new_items(&self, of_new_items: &Ends) -> Vec<f64> {
        if self.new_items.len() == self.items().len() {
            return self.reach.clone();
        }
        let found = self.rules.certify(&self.new_items, self.served.as_ref().map(|served| Some(served.as_slice())));
        let part = (self.new_items.len() as f64 / self.items().len() as f64).sqrt();
        self.reach(&found, of_new_items).into_iter().map(|reach| part * reach).collect()
    }

    /// The forecast with `times` the present items.
    pub(super) fn with_items(&self, times: f64) -> FutureDifferences {
        let steps = self.steps();
        let growths = self.views.growths(times);
        // The present items are part of the later ones.
        let parts: Vec<f64> = growths.iter().map(|growth| WIDENING * (1.0 - 1.0 / growth).max(0.0).sqrt()).collect();
        let centre = self.views.blended(&steps.of_new_items, &growths);
        let draw = |by: &Ends| self.highs(&self.views.moved(&centre, by, self.new_items.len(), &parts));
        let shrink = times.sqrt().recip();
        let error = |(pair, now): (usize, &f64)| now / growths[self.views.of_pair(self.rules, self.task, pair)].sqrt();
        FutureDifferences {
            actions: self.task.actions(),
            highs: steps.steps.iter().map(draw).collect(),
            reach: steps.reach.iter().enumerate().map(|(pair, base)| shrink * steps.pace(pair, times) * base).collect(),
            errors: steps.errors.iter().enumerate().map(error).collect(),
            shrinkage: vec![0.0; self.reach.len()],
        }
    }

    /// Draws of the law of p*; different `series` are independent.
    pub(super) fn laws(&self, series: u64) -> Option<Laws<'_>> {
        let truths = PossibleTruths::new(self.items().iter().map(|(_, votes)| votes), self.items().weights())?;
        let draws = (ITEMS_DRAWN / self.items().len()).clamp(MIN_DRAWS_OF_LABELS, MAX_DRAWS_OF_LABELS);
        let draw = |seed: u64| truths.draw_law(&mut Pcg64::seed_from_u64(mix(series, seed)));
        let laws = (0..draws as u64).map(draw).collect();
        Some(Laws { truths, laws, series })
    }

    /// The forecast with `more` labels on each item, under draws of the law of p*.
    pub(super) fn with_labels(&self, more: usize, laws: &Laws<'_>) -> FutureDifferences {
        let pairs = self.reach.len();
        let (mut highs, mut reach, mut errors) = (Vec::new(), vec![0.0; pairs], vec![0.0; pairs]);
        for (place, law) in laws.laws.iter().enumerate() {
            let mut random = Pcg64::seed_from_u64(mix(mix(laws.series, LABELS_OF_LAW), place as u64));
            let items = self.with_more_labels(&laws.truths.posteriors(law), more, &mut random);
            let views = Views::new(self.rules, items, self.served.as_deref());
            let ends = views.ends();
            highs.push(self.highs(ends));
            // The widths of intervals depend on the law, but little on the draw.
            if place < LAWS_FOR_REACH {
                let found = self.rules.certify(views.all(), self.served.as_ref().map(|served| Some(served.as_slice())));
                let part = 1.0 / LAWS_FOR_REACH as f64;
                let add = |sums: &mut Vec<f64>, more: Vec<f64>| {
                    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += part * more);
                };
                add(&mut reach, self.reach(&found, ends));
                add(&mut errors, views.standard_errors(self.rules, self.task));
            }
        }
        let shrinkage = vec![0.0; pairs];
        FutureDifferences { actions: self.task.actions(), highs, reach, errors, shrinkage }
            .centred(&self.highs(self.views.ends()))
    }

    /// The items with more labels, drawn from their posterior.
    fn with_more_labels(&self, truths: &Posteriors<'_>, more: usize, random: &mut Pcg64) -> Items {
        let items = self.items();
        let mut truth = vec![0.0; items.classes];
        let mut votes = Vec::with_capacity(items.len() * items.classes);
        for item in 0..items.len() {
            truths.draw_into(item, random, &mut truth);
            let own = items.votes(item);
            let most = self.max_labels_per_item.map_or(u64::MAX, |most| (most as u64).saturating_sub(own.k()));
            let (mut labels, mut left) = ((more as u64).min(most), 1.0);
            for (class, (&count, &p)) in own.counts().iter().zip(&truth).enumerate() {
                let share = if class + 1 == items.classes { 1.0 } else { (p / left).clamp(0.0, 1.0) };
                let of_class = Binomial::new(labels, share).map_or(0, |binomial| binomial.sample(random));
                votes.push(count.saturating_add(of_class as u32));
                labels -= of_class;
                left = (left - p).max(f64::MIN_POSITIVE);
            }
        }
        items.with_votes(votes)
    }
}

/// Draws of the law of p* behind a cell's labels.
pub(super) struct Laws<'a> {
    truths: PossibleTruths<'a>,
    laws: Vec<TruthLaw>,
    series: u64,
}

/// Draws of the changes of the means with ever more items.
struct Steps {
    /// The means of the items that represent new ones.
    of_new_items: Ends,
    /// The changes of these means.
    steps: Vec<Ends>,
    /// For each pair of actions, the standard error of their cost difference now.
    errors: Vec<f64>,
    /// For each pair of actions, the reach of as many items like new ones.
    reach: Vec<f64>,
    /// For each pair of actions, the reach of the present items relative to `reach`.
    pace_now: Vec<f64>,
    /// For each number of repetitions and pair of actions, [`Forecast::paces`].
    paces: [Vec<f64>; REPETITIONS.len()],
}

impl Steps {
    /// The pace of a pair of actions with `times` the items, interpolated between the measured ones.
    fn pace(&self, pair: usize, times: f64) -> f64 {
        let (mut from, mut pace) = (1.0, self.pace_now[pair]);
        for (repetitions, paces) in REPETITIONS.into_iter().zip(&self.paces) {
            let to = repetitions as f64;
            if times < to {
                let part = (times / from).ln() / (to / from).ln();
                return pace + part * (paces[pair] - pace);
            }
            (from, pace) = (to, paces[pair]);
        }
        pace
    }
}

/// The items that represent new ones. New items get at least two labels if a single label does not identify the loss of an oracle and enough
/// of the present items have several.
fn new_items(task: &Task, items: &Items) -> Items {
    let several = items.with_at_least(2);
    if is_unidentified(task) && several.len() >= MIN_ITEMS_WITH_SEVERAL_LABELS { several } else { items.clone() }
}

/// Whether a single label per item does not identify the loss of an oracle.
fn is_unidentified(task: &Task) -> bool {
    task.routes().iter().any(|route| *route.oracle() != Oracle::Measured)
}

/// The smallest ratio of the variances of a cost difference without and with a limit on labels, at most one. Means of fewer labels per item
/// vary more, so that more items are needed.
fn information_of(limited: &[f64], unlimited: &[f64]) -> f64 {
    let ratio = |(limited, unlimited): (&f64, &f64)| (*limited > 0.0).then(|| (unlimited / limited).powi(2));
    limited.iter().zip(unlimited).filter_map(ratio).fold(1.0, f64::min)
}

/// The intersection of several intervals; the first one if it is empty.
fn tightest(ends: &[[f64; 2]]) -> [f64; 2] {
    let first = ends.first().copied().unwrap_or([0.0; 2]);
    ends.iter().skip(1).fold(first, |[low, high], [other_low, other_high]| {
        let both = [low.max(*other_low), high.min(*other_high)];
        if both[0] <= both[1] { both } else { [low, high] }
    })
}

/// For each pair of actions, the midpoint of their cost difference.
fn middles(highs: &[f64], actions: usize) -> Vec<f64> {
    (0..highs.len()).map(|pair| (highs[pair] - highs[pair % actions * actions + pair / actions]) / 2.0).collect()
}
