//! What it would take to be certain, and what that is worth: an order for the annotators.
//!
//! Nothing here is a promise: it is what happens more often than not if the estimates are as good as they seem, and no
//! better. What seems the best action by a hair may turn out not to be; so the margin, too, is taken for as
//! uncertain as it is, and a plan asks for enough to settle three cells of four.
//!
//! More items: sampling errors shrink with the square root of their number, what few labels leave open does not. More
//! labels: they are drawn from what the items may be, and the intervals made again.

use std::f64::consts::{PI, SQRT_2};

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;
use statrs::function::erf::erfc;

use super::items::Items;
use super::{CellCertificate, Certificate, Interval, Judgement, Rules};
use crate::error::Result;
use crate::estimate::Guesses;
use crate::mix::{class_at, uniform};
use crate::partition::CellId;
use crate::policy::{Decision, Policy};
use crate::router::Router;
use crate::task::Task;

/// How often labels are drawn, and how often the cell must be settled by them.
const TRIALS: u64 = 9;
const SETTLED: usize = 7;

/// The same for items, as a probability.
const LIKELY: f64 = 0.75;

/// Which cells are undetermined and what to do about it.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The intervals.
    pub certificate: Certificate,
    /// What they say of the task's policy.
    pub judgement: Judgement,
    /// The undetermined cells with calibration rows, those worth most first; what cannot be settled comes last.
    pub cells: Vec<CellPlan>,
}

/// What would settle a cell, and what that is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct CellPlan {
    /// The cell.
    pub cell: CellId,
    /// Its share of the calibration rows, by weight.
    pub share: f64,
    /// What is done for now; `undetermined` if labels only bound the costs, and the bounds overlap.
    pub action: String,
    /// What might be better than it or, where that is undetermined, than the cheapest action of known cost.
    pub rival: String,
    /// By how much the action beats the rival, as far as is known; not known if labels bound the costs only.
    pub margin: Option<f64>,
    /// What the action may cost a thousand queries of all cells more than the best one.
    pub at_stake: f64,
    /// What knowing better is expected to save a thousand queries of all cells.
    pub worth: f64,
    /// About how many more labels an item would settle it; `None` if [`Plan::MOST_LABELS`] would not.
    pub more_labels: Option<usize>,
    /// About how many more items of this cell, with as many labels as now, would settle it; `None` if [`Plan::MOST_TIMES`] as many
    /// would not.
    pub more_items: Option<usize>,
    /// The labels to collect in all, the cheaper of the two ways.
    pub labels: Option<usize>,
}

impl Plan {
    /// More labels an item than this are not asked for.
    pub const MOST_LABELS: usize = 200;

    /// Nor more items than so many times the present ones.
    pub const MOST_TIMES: usize = 32;

    /// The first cells of the plan that labels settle, at most so many: which they are, the labels they take in all, and
    /// what that is worth a thousand queries.
    #[must_use]
    pub fn begin_with(&self, cells: usize) -> (Vec<CellId>, usize, f64) {
        let first = self.cells.iter().filter_map(|plan| Some((plan, plan.labels?))).take(cells);
        first.fold((Vec::new(), 0, 0.0), |(mut which, labels, worth), (plan, more)| {
            which.push(plan.cell);
            (which, labels.saturating_add(more), worth + plan.worth)
        })
    }

    /// The share of the traffic, as far as calibration rows tell, that falls into undetermined cells.
    #[must_use]
    pub fn open(&self) -> f64 {
        self.cells.iter().map(|plan| plan.share).sum()
    }
}

impl Router {
    /// Which cells a task leaves undetermined at a confidence, what would settle them and what that is worth.
    ///
    /// # Errors
    /// As [`Router::policy`] and [`Router::certificate`].
    pub fn plan(&self, task: &Task, confidence: f64) -> Result<Plan> {
        let (policy, certificate) = (self.policy(task)?, self.certificate(task, confidence)?);
        let judgement = certificate.judge(&policy)?;
        let task = &policy.priced_task();
        let open = |cell: &u32| !judgement.cells[*cell as usize].certain && certificate.shares[*cell as usize] > 0.0;
        let open: Vec<u32> = (0..judgement.cells.len() as u32).filter(open).collect();
        let (_, heaviest) = self.weights();
        let answers = certificate.rules.measured(self)?;
        let study = |&cell: &u32| {
            let decision = policy.cell(CellId(cell))?;
            let items = Items::of(self, CellId(cell), heaviest, &answers);
            let study = Study { router: self, rules: &certificate.rules, task, cell: CellId(cell), items };
            Some(study.plan(&policy, &decision, &certificate))
        };
        let mut cells: Vec<CellPlan> = open.par_iter().filter_map(study).collect();
        cells.sort_by(|a, b| {
            let last = |plan: &CellPlan| plan.labels.is_none();
            last(a).cmp(&last(b)).then(b.worth.total_cmp(&a.worth)).then(a.cell.cmp(&b.cell))
        });
        Ok(Plan { certificate, judgement, cells })
    }
}

/// One cell under study.
struct Study<'a> {
    router: &'a Router,
    rules: &'a Rules,
    task: &'a Task,
    cell: CellId,
    items: Items,
}

impl Study<'_> {
    fn plan(&self, policy: &Policy, decision: &Decision<'_>, certificate: &Certificate) -> CellPlan {
        let found = &certificate.cells[self.cell.index()];
        let share = certificate.shares[self.cell.index()];
        let regret = |action: usize| self.rules.regret(found, self.task, action);
        // Where a lot decides between two actions, the one that may be worse.
        let [first, second] = policy.taken(self.cell.0).actions();
        let taken = if regret(second).0 > regret(first).0 { second } else { first };
        let (regret, rival) = regret(taken);
        let names = self.task.action_names();
        let items = &self.items;
        let rivals: Vec<Rival> = self.rivals(found, taken);
        let more_labels = self.more_labels();
        let most = Plan::MOST_TIMES * items.len();
        let more_items = least(most, |more| {
            let shrink = (items.len() as f64 / (items.len() + more) as f64).sqrt();
            rivals.iter().all(|rival| rival.chance(shrink) >= LIKELY)
        });
        let middle = |action: usize| {
            // A limit is a price, too.
            let extra = self.rules.answer(self.task, action).1 - self.rules.answer(policy.task(), action).1;
            f64::midpoint(decision.costs()[action], decision.costs_high()[action]) + extra
        };
        let labels: u64 = items.iter().map(|(_, votes)| votes.k()).sum();
        let by_items = more_items.map(|more| (more as f64 * labels as f64 / items.len() as f64).ceil() as usize);
        let by_labels = more_labels.map(|more| more.saturating_mul(self.router.mixture(self.cell).len()));
        CellPlan {
            cell: self.cell,
            share,
            action: policy.code(self.cell.0).map_or("undetermined".to_owned(), |_| names[taken].clone()),
            rival: rival.map(|rival| names[rival].clone()).unwrap_or_default(),
            margin: rival.filter(|_| decision.estimate().is_known()).map(|rival| middle(rival) - middle(taken)),
            at_stake: 1000.0 * share * regret,
            worth: 1000.0 * share * rivals.iter().map(Rival::gain).fold(0.0, f64::max).min(regret),
            more_labels,
            more_items,
            labels: by_items.into_iter().chain(by_labels).min(),
        }
    }

    /// How the action taken compares with each of the others.
    fn rivals(&self, found: &CellCertificate, taken: usize) -> Vec<Rival> {
        let items = &self.items;
        let answers = self.rules.answers(items, self.router.is_recalibrated());
        let cost = |action: usize| {
            let (answer, price) = self.rules.answer(self.task, action);
            let limit = match answer.map(|answer| &answers[answer]) {
                Some(Some(answer)) if items.len() > 0 => answer.limit(items),
                // Only the interval is known: its middle will do.
                Some(_) => {
                    let interval = self.rules.cost(found, self.task, action).shifted(-price);
                    Interval::new(interval.middle(), interval.middle())
                }
                None => Interval::new(0.0, 0.0),
            };
            limit.shifted(price)
        };
        let scale = (-2.0 * self.rules.alpha.ln()).sqrt();
        let rival = |other: usize| {
            let gap = self.rules.gap(found, self.task, taken, other);
            // Of two answers to the same question the common part cancels.
            let same = self.rules.answer(self.task, taken).0 == self.rules.answer(self.task, other).0;
            let limit = if same { gap } else { cost(taken).minus(cost(other)) };
            Rival { gap, limit, scale }
        };
        (0..self.task.actions()).filter(|&other| other != taken).map(rival).collect()
    }

    /// Whether some action would be certain.
    fn settles(&self, items: &Items) -> bool {
        let served = self.router.is_recalibrated().then(|| self.router.mixture(self.cell).centroid());
        let found: CellCertificate = self.rules.certify(items, served.as_ref().map(|served| served.as_deref()));
        (0..self.task.actions()).any(|action| self.rules.regret(&found, self.task, action).1.is_none())
    }

    fn more_labels(&self) -> Option<usize> {
        let guesses = Guesses::of(self.router.mixture(self.cell)).filter(|_| self.items.len() > 0)?;
        let settles = |more: usize| {
            let trial = |seed: &u64| self.settles(&with_more_labels(&self.items, &guesses, more, *seed));
            (0..TRIALS).filter(trial).take(SETTLED).count() == SETTLED
        };
        least(Plan::MOST_LABELS, settles)
    }
}

/// The items with labels drawn from what they may be.
fn with_more_labels(items: &Items, guesses: &Guesses, more: usize, seed: u64) -> Items {
    let mut random = Pcg64::seed_from_u64(seed);
    let (mut centre, mut guess) = (vec![0.0; items.classes], vec![0.0; items.classes]);
    let any = |random: &mut Pcg64| items.votes((random.next_u64() % items.len() as u64) as usize);
    for _ in 0..items.len() {
        any(&mut random).mean_into(&mut guess);
        centre.iter_mut().zip(&guess).for_each(|(c, y)| *c += y / items.len() as f64);
    }
    let mut votes = Vec::with_capacity(items.len() * items.classes);
    for item in 0..items.len() {
        guesses.draw_into(&centre, items.votes(item), any(&mut random), &mut guess);
        let start = votes.len();
        votes.extend_from_slice(items.votes(item).counts());
        for _ in 0..more {
            let class = start + class_at(&guess, uniform(random.next_u64()));
            votes[class] = u32::saturating_add(votes[class], 1);
        }
    }
    items.with_votes(votes)
}

/// What is known of how much dearer the action taken is than another.
struct Rival {
    /// The interval now.
    gap: Interval,
    /// What it would shrink to with ever more items like these.
    limit: Interval,
    /// How many standard errors an interval's end is away.
    scale: f64,
}

impl Rival {
    /// The chance that one of the two is certainly better when sampling errors are `shrink` times the present ones.
    ///
    /// The estimate will move: it is expected to be where it is, give or take the errors that are gone by then.
    fn chance(&self, shrink: f64) -> f64 {
        let (up, down) = ((self.gap.high - self.limit.high).max(0.0), (self.limit.low - self.gap.low).max(0.0));
        let moves = f64::midpoint(up, down) / self.scale * (1.0 - shrink * shrink).max(0.0).sqrt();
        below(-self.limit.high - shrink * up, moves) + below(self.limit.low - shrink * down, moves)
    }

    /// What it is worth to learn which of the two is better: E max(0, x) for a normal x.
    fn gain(&self) -> f64 {
        let (margin, error) = (-self.limit.middle(), self.gap.width() / 2.0 / self.scale);
        expected_gain(margin, error)
    }
}

/// P(x ≤ bound) for a normal x of mean zero.
fn below(bound: f64, deviation: f64) -> f64 {
    if deviation > 0.0 { 0.5 * erfc(-bound / deviation / SQRT_2) } else { f64::from(u8::from(bound >= 0.0)) }
}

/// The least number up to `most` for which something holds that holds for all larger ones, to a tenth or so.
fn least(most: usize, holds: impl Fn(usize) -> bool) -> Option<usize> {
    if most == 0 {
        return None;
    }
    let (mut fails, mut works) = (0, 1);
    while !holds(works) {
        fails = works;
        works = (2 * works).min(most);
        if fails >= works {
            return None;
        }
    }
    while works - fails > 1 + fails / 8 {
        let middle = fails.midpoint(works);
        if holds(middle) {
            works = middle;
        } else {
            fails = middle;
        }
    }
    Some(works)
}

/// E max(0, −x) for a normal x: what it is worth to learn which of two actions is better, if one seems better by `margin`.
fn expected_gain(margin: f64, error: f64) -> f64 {
    if error <= 0.0 {
        return (-margin).max(0.0);
    }
    let x = margin / error;
    error * ((-x * x / 2.0).exp() / (2.0 * PI).sqrt() - x * below(-x, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_found_to_a_tenth() {
        for wanted in [1, 2, 3, 7, 40, 95, 100] {
            let found = least(100, |n| n >= wanted).unwrap();
            assert!(found >= wanted && found as f64 <= 1.13 * wanted as f64 + 1.0, "{wanted}: {found}");
        }
        assert_eq!(least(100, |n| n > 100), None);
        assert_eq!(least(1, |n| n > 1), None);
        assert_eq!(least(0, |_| true), None);
    }

    #[test]
    fn knowing_better_is_worth_most_where_it_is_close() {
        assert!((expected_gain(0.0, 0.1) - 0.1 / (2.0 * PI).sqrt()).abs() < 1e-12);
        assert!(expected_gain(0.3, 0.1) < 1e-4 && expected_gain(0.3, 0.1) > 0.0);
        assert_eq!((expected_gain(0.3, 0.0), expected_gain(-0.3, 0.0)), (0.0, 0.3));
        // By integration.
        let (margin, error) = (0.05, 0.08);
        let density = |x: f64| (-((x - margin) / error).powi(2) / 2.0).exp() / (error * (2.0 * PI).sqrt());
        let sum: f64 = (0..200_000).map(|i| (f64::from(i) + 0.5) * 1e-5).map(|x| x * density(-x) * 1e-5).sum();
        assert!((expected_gain(margin, error) - sum).abs() < 1e-8);
    }
}
