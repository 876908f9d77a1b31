//! What more items or more labels would do to one cell: draws of what its intervals may become.
//!
//! More items: every mean moves by a normal step, with the covariances that the present items show; the intervals shrink towards what
//! few labels leave open, mostly with the square root of the number of items. New items get several labels even where some of the present
//! ones have one, of which little is known. More labels: true distributions are drawn that may be behind
//! the votes, then labels from these, and the means of the items with those labels are taken.
//!
//! A cell is settled if in the end one action is certainly better than every other.

use std::f64::consts::{PI, SQRT_2};

use rand_distr::{Binomial, Distribution, StandardNormal};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;
use statrs::function::erf::erfc;

use super::difference_prior::DifferencePrior;
use super::items::Items;
use super::statistics::{self, Answer};
use super::{BAYES, CellCertificate, Rules};
use crate::estimate::{PossibleTruths, Posteriors, TruthLaw};
use crate::numeric::mix::mix;
use crate::oracle::Oracle;
use crate::task::Task;

/// Draws of what more items may show.
const DRAWS_OF_ITEMS: usize = 200;

/// How much wider than their estimated errors draws of unbiased means are: the errors are estimates, as are the widths of intervals and what is
/// usual.
const DOUBT: f64 = 1.15;

/// How often the present items are taken to see how fast intervals shrink.
const REPETITIONS: [usize; 2] = [4, 16];
const MOST_REPEATED_ITEMS: usize = 100_000;

/// How much of what such repetitions show is taken for what new items will show.
const BELIEVED_PART: f64 = 0.75;

/// Fewer items of several labels do not show what new ones would tell.
const FEWEST_ITEMS_OF_SEVERAL_LABELS: usize = 10;

/// Draws of what more labels may show: fewer where there are many items.
const DRAWS_OF_LABELS: usize = 32;
const FEWEST_DRAWS_OF_LABELS: usize = 8;
const ITEMS_DRAWN: usize = 100_000;

/// Draws of labels by which the width of later intervals is found.
const LAWS_FOR_REACH: usize = 4;

/// Tells the draws of labels from those of laws.
const LABELS_OF_LAW: u64 = 0x1ABE1;

/// Limits of a difference that are no further apart are one unbiased estimate.
const UNBIASED: f64 = 1e-12;

/// One cell as it is now, and how it may turn out.
pub(super) struct Forecast<'a> {
    rules: &'a Rules,
    task: &'a Task,
    items: Items,
    /// The centroid that is served, if the router is recalibrated.
    served: Option<Vec<f64>>,
    answers: Vec<Answer>,
    /// Per pair of actions, how far the upper end of the interval is above what it shrinks to.
    reach: Vec<f64>,
    /// What new items are taken to be like: the present ones, without those of one label if a route's costs stay open by these.
    new_items: Items,
}

impl<'a> Forecast<'a> {
    /// `None` if the cell has no items that count.
    pub(super) fn of(
        rules: &'a Rules,
        task: &'a Task,
        items: Items,
        served: Option<Vec<f64>>,
        found: &CellCertificate,
    ) -> Option<Self> {
        if items.len() == 0 {
            return None;
        }
        let answers = answers(rules, &items, served.as_deref());
        let new_items = new_items(task, &items);
        let mut forecast = Self { rules, task, items, served, answers, reach: Vec::new(), new_items };
        forecast.reach = forecast.reach(found, &forecast.ends_now());
        Some(forecast)
    }

    pub(super) fn items(&self) -> &Items {
        &self.items
    }

    /// How many labels a new item gets: as many as those have that it is taken to be like.
    pub(super) fn labels_per_new_item(&self) -> usize {
        let labels: u64 = self.new_items.iter().map(|(_, votes)| votes.k()).sum();
        (labels as f64 / self.new_items.len() as f64).round().max(1.0) as usize
    }

    fn ends_now(&self) -> Vec<Vec<[f64; 2]>> {
        self.answers.iter().map(|answer| answer.ends(&self.items)).collect()
    }

    /// Per pair of actions a, b: the most that a can be dearer than b if the means are these.
    fn highs(&self, ends: &[Vec<[f64; 2]>]) -> Vec<f64> {
        let limits: Vec<[f64; 2]> = ends.iter().map(|ends| tightest(ends)).collect();
        let actions = self.task.actions();
        let limit = |answer: Option<usize>| answer.map_or([0.0; 2], |answer| limits[answer]);
        let high = |pair: usize| {
            let ((a, price), (b, other)) =
                (self.rules.answer(self.task, pair / actions), self.rules.answer(self.task, pair % actions));
            let high = match (a, b) {
                _ if a == b => 0.0,
                // Nobody does better than who knows the truth.
                (Some(BAYES), Some(_)) => (limit(a)[1] - limit(b)[0]).min(0.0),
                _ => limit(a)[1] - limit(b)[0],
            };
            high + price - other
        };
        (0..actions * actions).map(high).collect()
    }

    fn reach(&self, found: &CellCertificate, ends: &[Vec<[f64; 2]>]) -> Vec<f64> {
        let actions = self.task.actions();
        let reach = |(pair, high): (usize, f64)| {
            (self.rules.gap(found, self.task, pair / actions, pair % actions).high - high).max(0.0)
        };
        self.highs(ends).into_iter().enumerate().map(reach).collect()
    }

    /// Per pair of actions, by how much one seems dearer than the other, half way between its ends.
    pub(super) fn middles(&self) -> Vec<f64> {
        middles(&self.highs(&self.ends_now()), self.task.actions())
    }

    /// Per pair of actions, the standard error of that.
    pub(super) fn errors(&self) -> Vec<f64> {
        standard_errors(self.rules, self.task, &self.items, &self.answers)
    }

    /// Draws of what ever more items would show: at least, at most and in between.
    pub(super) fn steps(&self) -> Steps {
        let mut random = Pcg64::seed_from_u64(0x57E9);
        let mut factors = vec![0.0; self.new_items.len()];
        let answers = answers(self.rules, &self.new_items, self.served.as_deref());
        let step = |_| {
            factors.iter_mut().for_each(|factor| *factor = StandardNormal.sample(&mut random));
            answers.iter().map(|answer| answer.end_steps(&self.new_items, &factors)).collect()
        };
        let of_new_items: Vec<_> = answers.iter().map(|answer| answer.ends(&self.new_items)).collect();
        let reach = self.reach_of_new_items(&of_new_items);
        let pace_now = |(base, now): (&f64, &f64)| if *base > 0.0 { now / base } else { 1.0 };
        Steps {
            now: self.ends_now(),
            steps: (0..DRAWS_OF_ITEMS).map(step).collect(),
            errors: self.errors(),
            pace_now: reach.iter().zip(&self.reach).map(pace_now).collect(),
            paces: REPETITIONS.map(|repetitions| self.paces(repetitions, &reach, &of_new_items)),
            reach,
            of_new_items,
        }
    }

    /// How much further than the square root of their number says intervals of so many times the present items reach, per pair of actions.
    ///
    /// Part of the reach stems from the range of the losses and shrinks with the number of items itself; and where several pairs of numbers enclose a
    /// loss, the one that is tightest in the end need not be the one that is tightest now. Both show when the present items are followed by new
    /// ones like them. `base` is how far as many items like new ones reach. Bets on values seen before are a little too good, so that not all of what they gain is believed.
    fn paces(&self, repetitions: usize, base: &[f64], of_new_items: &[Vec<[f64; 2]>]) -> Vec<f64> {
        if repetitions * self.items.len() > MOST_REPEATED_ITEMS {
            return vec![1.0; base.len()];
        }
        let items = self.items.followed_by(&self.new_items, repetitions);
        let found = self.rules.certify(&items, self.served.as_ref().map(|served| Some(served.as_slice())));
        let later = self.reach(&found, &blended(&self.ends_now(), of_new_items, repetitions as f64));
        let pace = |(base, later): (&f64, f64)| {
            let pace = if *base > 0.0 { (repetitions as f64).sqrt() * later / base } else { 1.0 };
            if pace < 1.0 { 1.0 - BELIEVED_PART * (1.0 - pace) } else { pace }
        };
        base.iter().zip(later).map(pace).collect()
    }

    /// How far intervals of as many items as there are would reach if all were like new ones.
    fn reach_of_new_items(&self, of_new_items: &[Vec<[f64; 2]>]) -> Vec<f64> {
        if self.new_items.len() == self.items.len() {
            return self.reach.clone();
        }
        let found = self.rules.certify(&self.new_items, self.served.as_ref().map(|served| Some(served.as_slice())));
        let part = (self.new_items.len() as f64 / self.items.len() as f64).sqrt();
        self.reach(&found, of_new_items).into_iter().map(|reach| part * reach).collect()
    }

    /// What so many times the present items may show.
    pub(super) fn with_items(&self, steps: &Steps, times: f64) -> Later {
        // Part of the later items is the present ones.
        let (step, shrink) = ((1.0 - 1.0 / times).max(0.0).sqrt(), times.sqrt().recip());
        let (part, centre) = (DOUBT * step, blended(&steps.now, &steps.of_new_items, times));
        let moved = |(now, by): (&Vec<[f64; 2]>, &Vec<[f64; 2]>)| {
            let ends = now.iter().zip(by).map(|(now, by)| [now[0] + part * by[0], now[1] + part * by[1]]);
            ends.collect::<Vec<_>>()
        };
        let draw = |by: &Vec<Vec<[f64; 2]>>| self.highs(&centre.iter().zip(by).map(moved).collect::<Vec<_>>());
        Later {
            actions: self.task.actions(),
            highs: steps.steps.iter().map(draw).collect(),
            reach: steps.reach.iter().enumerate().map(|(pair, base)| shrink * steps.pace(pair, times) * base).collect(),
            errors: steps.errors.iter().map(|error| shrink * error).collect(),
            pulls: vec![0.0; self.reach.len()],
        }
    }

    /// Laws that may be behind the labels; those of one `series` are independent of those of another.
    pub(super) fn laws(&self, series: u64) -> Option<Laws<'_>> {
        let truths = PossibleTruths::new(self.items.iter().map(|(_, votes)| votes), self.items.weights())?;
        let draws = (ITEMS_DRAWN / self.items.len()).clamp(FEWEST_DRAWS_OF_LABELS, DRAWS_OF_LABELS);
        let draw = |seed: u64| truths.draw_law(&mut Pcg64::seed_from_u64(mix(series, seed)));
        let laws = (0..draws as u64).map(draw).collect();
        Some(Laws { truths, laws, series })
    }

    /// What so many more labels on each item may show under such laws.
    pub(super) fn with_labels(&self, more: usize, laws: &Laws<'_>) -> Later {
        let pairs = self.reach.len();
        let (mut highs, mut reach, mut errors) = (Vec::new(), vec![0.0; pairs], vec![0.0; pairs]);
        for (place, law) in laws.laws.iter().enumerate() {
            let mut random = Pcg64::seed_from_u64(mix(mix(laws.series, LABELS_OF_LAW), place as u64));
            let items = with_more_labels(&self.items, &laws.truths.posteriors(law), more, &mut random);
            let answers = answers(self.rules, &items, self.served.as_deref());
            let ends: Vec<_> = answers.iter().map(|answer| answer.ends(&items)).collect();
            highs.push(self.highs(&ends));
            // How wide intervals are depends on the law, but little on the draw.
            if place < LAWS_FOR_REACH {
                let found = self.rules.certify(&items, self.served.as_ref().map(|served| Some(served.as_slice())));
                let part = 1.0 / LAWS_FOR_REACH as f64;
                let add = |sums: &mut Vec<f64>, more: Vec<f64>| {
                    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += part * more);
                };
                add(&mut reach, self.reach(&found, &ends));
                add(&mut errors, standard_errors(self.rules, self.task, &items, &answers));
            }
        }
        let pulls = vec![0.0; pairs];
        Later { actions: self.task.actions(), highs, reach, errors, pulls }.centred(&self.highs(&self.ends_now()))
    }
}

/// Draws of the law of p* behind a cell's labels.
pub(super) struct Laws<'a> {
    truths: PossibleTruths<'a>,
    laws: Vec<TruthLaw>,
    series: u64,
}

/// Draws of where the means would go with ever more items, as steps from where they are now.
pub(super) struct Steps {
    /// The means of the present items, and of those that new ones are taken to be like.
    now: Vec<Vec<[f64; 2]>>,
    of_new_items: Vec<Vec<[f64; 2]>>,
    steps: Vec<Vec<Vec<[f64; 2]>>>,
    errors: Vec<f64>,
    /// Per pair of actions, how far intervals of as many items like new ones would reach, and how much further those of the present ones do.
    reach: Vec<f64>,
    pace_now: Vec<f64>,
    /// Per number of repetitions and pair of actions, [`Forecast::paces`].
    paces: [Vec<f64>; REPETITIONS.len()],
}

impl Steps {
    /// The pace of a pair of actions with so many times the items, between those of repetitions.
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

/// What may be known of a cell later, in several draws.
pub(super) struct Later {
    actions: usize,
    /// Per draw and pair of actions, the most that one can be dearer than the other, but for sampling errors.
    highs: Vec<Vec<f64>>,
    /// Per pair, how much further the upper end of the interval is.
    reach: Vec<f64>,
    /// Per pair, the standard error of the difference.
    errors: Vec<f64>,
    /// Per pair, which part of the way to what is usual the difference is expected to go.
    pulls: Vec<f64>,
}

impl Later {
    /// The same with the mean of the draws moved to the present difference where that has an unbiased estimate, and the draws [`DOUBT`] times as
    /// far from it: no law of p* knows better which way it will move.
    fn centred(mut self, now: &[f64]) -> Self {
        for (a, b) in (0..self.actions).flat_map(|a| (0..a).map(move |b| (a, b))) {
            let (there, back) = (a * self.actions + b, b * self.actions + a);
            if (now[there] + now[back]).abs() <= UNBIASED {
                let (centre, mean) = ((now[there] - now[back]) / 2.0, self.moments(there).0);
                for highs in &mut self.highs {
                    let middle = (highs[there] - highs[back]) / 2.0;
                    let by = centre + DOUBT * (middle - mean) - middle;
                    highs[there] += by;
                    highs[back] -= by;
                }
            }
        }
        self
    }

    /// The same with differences drawn towards what is usual in other cells: those that look large are overestimated.
    pub(super) fn shrunk(mut self, usual: &DifferencePrior) -> Self {
        for (a, b) in (0..self.actions).flat_map(|a| (0..a).map(move |b| (a, b))) {
            let (there, back) = (a * self.actions + b, b * self.actions + a);
            let (mean, step) = self.moments(there);
            let [expected, variance] = usual.of_pair(a, b);
            let spread = variance + self.errors[there].powi(2);
            let pull = step / (step + spread);
            (self.pulls[there], self.pulls[back]) = (pull, pull);
            for highs in &mut self.highs {
                let middle = (highs[there] - highs[back]) / 2.0;
                let by = pull * (expected - mean) + ((1.0 - pull).sqrt() - 1.0) * (middle - mean);
                highs[there] += by;
                highs[back] -= by;
            }
        }
        self
    }

    /// How often one action is certainly better than every other.
    pub(super) fn chance(&self) -> f64 {
        let certain = |highs: &[f64], a: usize| {
            (0..self.actions).filter(|&b| b != a).all(|b| {
                let pair = a * self.actions + b;
                highs[pair] + self.reach[pair] <= 0.0
            })
        };
        let settled = |highs: &&Vec<f64>| (0..self.actions).any(|a| certain(highs, a));
        self.highs.iter().filter(settled).count() as f64 / self.highs.len() as f64
    }

    /// What is expected to be saved by then taking the action that seems best instead of `taken`. `ahead` is by how much each action
    /// seems better than that now.
    ///
    /// Where the later estimate x of how far another action is ahead is positive, that action is taken; what it then saves is
    /// expected to be x, drawn towards what is usual. Of several actions the one that promises most counts.
    pub(super) fn gain(&self, taken: usize, ahead: &[f64], usual: &DifferencePrior) -> f64 {
        let gain = |other: usize| {
            let pair = taken * self.actions + other;
            let ([expected, variance], error) = (usual.of_pair(taken, other), self.errors[pair]);
            let mean = ahead[other] + self.pulls[pair] * (expected - ahead[other]);
            let trust = variance / (variance + error * error);
            let (share, sum) = positive_part(mean, self.moments(pair).1.sqrt());
            trust * sum + (1.0 - trust) * expected * share
        };
        (0..self.actions).filter(|&other| other != taken).map(gain).fold(0.0, f64::max)
    }

    /// Mean and variance over the draws of the middle of a pair's difference.
    fn moments(&self, pair: usize) -> (f64, f64) {
        let back = pair % self.actions * self.actions + pair / self.actions;
        let middles = || self.highs.iter().map(|highs| (highs[pair] - highs[back]) / 2.0);
        let draws = self.highs.len() as f64;
        let mean = middles().sum::<f64>() / draws;
        (mean, middles().map(|x| (x - mean).powi(2)).sum::<f64>() / (draws - 1.0))
    }
}

/// P(x > 0) and E max(0, x) for a normal x.
fn positive_part(mean: f64, deviation: f64) -> (f64, f64) {
    if deviation <= 0.0 {
        return (f64::from(u8::from(mean > 0.0)), mean.max(0.0));
    }
    let z = mean / deviation;
    let share = 0.5 * erfc(-z / SQRT_2);
    (share, (mean * share + deviation * (-z * z / 2.0).exp() / (2.0 * PI).sqrt()).max(0.0))
}

/// The means of the present items and new ones, so many times as many in all.
fn blended(now: &[Vec<[f64; 2]>], of_new_items: &[Vec<[f64; 2]>], times: f64) -> Vec<Vec<[f64; 2]>> {
    let old = times.recip();
    let end = |(now, new): (&[f64; 2], &[f64; 2])| [0, 1].map(|side| old * now[side] + (1.0 - old) * new[side]);
    now.iter().zip(of_new_items).map(|(now, new)| now.iter().zip(new).map(end).collect()).collect()
}

/// What new items are taken to be like. Labels are asked for in twos at least where an item's single label would leave the loss of an oracle
/// open, if enough of the present items show what that tells.
fn new_items(task: &Task, items: &Items) -> Items {
    let is_open = task.routes().iter().any(|route| *route.oracle() != Oracle::Measured);
    let several = items.with_at_least(2);
    if is_open && several.len() >= FEWEST_ITEMS_OF_SEVERAL_LABELS { several } else { items.clone() }
}

/// What the items say about each answer. A centroid that is served is judged by the items it was made from: a forecast need not be sound.
fn answers(rules: &Rules, items: &Items, served: Option<&[f64]>) -> Vec<Answer> {
    let found = rules.answers(items, served.is_some()).into_iter();
    let given = |answer: Option<Answer>| {
        answer.unwrap_or_else(|| match served {
            Some(served) => Answer::given(std::iter::repeat_n(served, items.len()), items, &rules.loss),
            None => Answer::predict(items, &rules.loss),
        })
    };
    found.map(given).collect()
}

/// What lies in all of several intervals; the first if nothing does.
fn tightest(ends: &[[f64; 2]]) -> [f64; 2] {
    let first = ends.first().copied().unwrap_or([0.0; 2]);
    ends.iter().skip(1).fold(first, |[low, high], [other_low, other_high]| {
        let both = [low.max(*other_low), high.min(*other_high)];
        if both[0] <= both[1] { both } else { [low, high] }
    })
}

fn middles(highs: &[f64], actions: usize) -> Vec<f64> {
    (0..highs.len()).map(|pair| (highs[pair] - highs[pair % actions * actions + pair / actions]) / 2.0).collect()
}

/// Per pair of actions, the standard error of their difference.
fn standard_errors(rules: &Rules, task: &Task, items: &Items, answers: &[Answer]) -> Vec<f64> {
    let actions = task.actions();
    let error = |pair: usize| {
        let of = |action: usize| rules.answer(task, action).0.map(|answer| &answers[answer]);
        statistics::error_of_difference(of(pair / actions), of(pair % actions), items)
    };
    (0..actions * actions).map(error).collect()
}

/// The items with more labels, drawn from what they may be.
fn with_more_labels(items: &Items, truths: &Posteriors<'_>, more: usize, random: &mut Pcg64) -> Items {
    let mut truth = vec![0.0; items.classes];
    let mut votes = Vec::with_capacity(items.len() * items.classes);
    for item in 0..items.len() {
        truths.draw_into(item, random, &mut truth);
        let (mut labels, mut left) = (more as u64, 1.0);
        for (class, (&count, &p)) in items.votes(item).counts().iter().zip(&truth).enumerate() {
            let share = if class + 1 == items.classes { 1.0 } else { (p / left).clamp(0.0, 1.0) };
            let of_class = Binomial::new(labels, share).map_or(0, |binomial| binomial.sample(random));
            votes.push(count.saturating_add(of_class as u32));
            labels -= of_class;
            left = (left - p).max(f64::MIN_POSITIVE);
        }
    }
    items.with_votes(votes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positive_parts_are_those_of_the_integral() {
        assert_eq!((positive_part(0.3, 0.0), positive_part(-0.3, 0.0)), ((1.0, 0.3), (0.0, 0.0)));
        for (mean, deviation) in [(-0.05, 0.08), (0.02, 0.01), (0.0, 1.0)] {
            let density = |x: f64| (-((x - mean) / deviation).powi(2) / 2.0).exp() / (deviation * (2.0 * PI).sqrt());
            let width = 1e-5 * (f64::abs(mean) + 8.0 * deviation);
            let points = || (0..100_000).map(|i| (f64::from(i) + 0.5) * width);
            let (share, sum) = positive_part(mean, deviation);
            assert!((share - points().map(|x| density(x) * width).sum::<f64>()).abs() < 1e-6);
            assert!((sum - points().map(|x| x * density(x) * width).sum::<f64>()).abs() < 1e-6);
        }
    }

    /// One action is certain only if it beats every other one, and draws near zero go towards what is usual.
    #[test]
    fn cells_are_settled_by_an_action_that_beats_all_others() {
        // Of three actions the first beats the second, but not the third.
        let highs = vec![0.0, -0.2, 0.1, 0.3, 0.0, 0.4, 0.1, 0.3, 0.0];
        let later = |reach: f64, highs: &[f64]| Later {
            actions: 3,
            highs: vec![highs.to_vec(); 4],
            reach: vec![reach; 9],
            errors: vec![0.0; 9],
            pulls: vec![0.0; 9],
        };
        assert_eq!(later(0.0, &highs).chance(), 0.0);
        let mut beaten = highs.clone();
        beaten[2] = -0.1;
        assert_eq!((later(0.05, &beaten).chance(), later(0.15, &beaten).chance()), (1.0, 0.0));
    }
}
