//! The study of each undetermined cell behind a plan: how many labels would determine it, and what they would save.

use std::collections::BTreeMap;

use super::CellCertificate;
use super::budget_draws::{BudgetDraws, BudgetedCell};
use super::difference_prior::{DifferencePrior, Known};
use super::forecast::{Forecast, Laws};
use super::future_differences::{FutureDifferences, LaterAdvantage, Saving};
use super::items::Items;
use super::offer::Offer;
use super::plan::{CellPlan, Plan};
use super::rules::Rules;
use crate::error::Result;
use crate::parallel::prelude::*;
use crate::partition::CellId;
use crate::policy::{Decision, Policy};
use crate::router::Router;
use crate::task::{Limit, Task};

/// The probability of determining a cell that a plan asks for.
const WANTED_CHANCE: f64 = 0.75;

/// The numbers of new items that are offered, as multiples of the present ones.
const NEW_ITEMS_OFFERED: [f64; 8] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, Plan::MOST_TIMES as f64];

/// The numbers of further labels per item that are offered if no number of them determines a cell.
const MORE_LABELS_OFFERED: [usize; 3] = [2, 8, 32];

/// The series of draws by which the number of labels is found.
const SEARCH: u64 = 0;

/// The series of draws by which its probability is stated. The series of the search would overstate it, because the search stops at the first
/// number that appears sufficient.
const REPORT: u64 = 1;

impl Router {
    /// The cells that a task leaves undetermined at a confidence, the labels that would determine them, and their worth.
    ///
    /// # Errors
    /// As [`Router::policy`] and [`Router::certificate`].
    pub fn plan(&self, task: &Task, confidence: f64) -> Result<Plan> {
        self.plan_within(task, confidence, None)
    }

    /// As [`Router::plan`], if there is a largest number of labels that one item may get in all, such as the number of annotators.
    ///
    /// # Errors
    /// As [`Router::plan`].
    pub fn plan_within(&self, task: &Task, confidence: f64, max_labels_per_item: Option<usize>) -> Result<Plan> {
        let (policy, certificate) = (self.policy(task)?, self.certificate(task, confidence)?);
        let judgement = certificate.judge(&policy)?;
        let task = &policy.priced_task();
        let (_, heaviest) = self.weights();
        let answers = certificate.rules.measured(self)?;
        let filled = (0..judgement.cells.len() as u32).filter(|&cell| certificate.shares[cell as usize] > 0.0);
        let filled: Vec<u32> = filled.collect();
        let study = |&cell: &u32| {
            let (rules, cell) = (&certificate.rules, CellId(cell));
            let found = &certificate.cells[cell.index()];
            let items = Items::from_cell(self, cell, heaviest, &answers);
            let served = self.is_recalibrated().then(|| self.mixture(cell).centroid()).flatten();
            let forecast = Forecast::new(rules, task, items, served, found, max_labels_per_item);
            let share = certificate.shares[cell.index()];
            let decision = policy.cell(cell)?;
            let mixture = self.mixture(cell);
            let labels = |row: usize| mixture.table().votes(row).map_or(0, |votes| votes.k() as usize);
            let labels_of_rows = mixture.rows().map(labels).collect();
            Some(Study {
                labels_of_rows,
                max_labels_per_item,
                rules,
                task,
                policy: &policy,
                decision,
                share,
                found,
                forecast,
            })
        };
        let studies: Vec<Study<'_>> = filled.par_iter().filter_map(study).collect();
        let variances = policy.variances_of_differences();
        let known: Vec<Known<'_>> = studies
            .iter()
            .filter_map(|study| {
                let variances = variances[study.cell().index()].as_deref();
                Some(Known { forecast: study.forecast.as_ref()?, estimates: study.differences(), variances })
            })
            .collect();
        let has_budget = matches!(policy.task().limit(), Some(Limit::Budget(_)));
        let is_pooled = self.cells().pooled_groups().is_some();
        let prior = DifferencePrior::fit(&known, task.actions(), is_pooled, has_budget);
        let open = |study: &&Study<'_>| !judgement.cells[study.cell().index()].certain;
        let budget = match policy.task().limit() {
            Some(Limit::Budget(most)) => {
                let cell = |study: &Study<'_>| (study.cell(), study.budgeted(&prior, open(&study)));
                let cells = studies.par_iter().map(cell).collect::<Vec<_>>().into_iter().collect::<BTreeMap<_, _>>();
                let surcharge = policy.surcharge_price().unwrap_or(0.0);
                Some(BudgetDraws::new(most, surcharge, NEW_ITEMS_OFFERED.len() + 1, cells))
            }
            _ => None,
        };
        let plan = |study: &Study<'_>| study.plan(&Prospects { prior: &prior, budget: budget.as_ref() });
        let mut cells: Vec<CellPlan> = studies.par_iter().filter(open).map(plan).collect();
        cells.sort_by(|a, b| {
            let key = |plan: &CellPlan| plan.worth_per_label().unwrap_or(f64::NEG_INFINITY);
            key(b).total_cmp(&key(a)).then(b.worth.total_cmp(&a.worth)).then(a.cell.cmp(&b.cell))
        });
        Ok(Plan { certificate, judgement, promise: policy.promise(), max_labels_per_item, cells })
    }
}

/// What is expected of all cells together.
struct Prospects<'a> {
    prior: &'a DifferencePrior,
    budget: Option<&'a BudgetDraws>,
}

/// One cell under study.
struct Study<'a> {
    /// The number of labels of each of its calibration rows.
    labels_of_rows: Vec<usize>,
    max_labels_per_item: Option<usize>,
    rules: &'a Rules,
    task: &'a Task,
    policy: &'a Policy,
    /// The decision on the cell.
    decision: Decision<'a>,
    /// Its share of the calibration rows, by weight.
    share: f64,
    found: &'a CellCertificate,
    forecast: Option<Forecast<'a>>,
}

impl Study<'_> {
    fn cell(&self) -> CellId {
        self.decision.cell()
    }

    /// The estimated cost of an action now, with the price that a limit adds.
    fn cost(&self, action: usize) -> f64 {
        let extra = self.rules.answer(self.task, action).1 - self.rules.answer(self.policy.task(), action).1;
        f64::midpoint(self.decision.costs()[action], self.decision.costs_high()[action]) + extra
    }

    /// For each pair of actions, the estimated cost of the first minus that of the second now.
    fn differences(&self) -> Vec<f64> {
        let costs: Vec<f64> = (0..self.task.actions()).map(|action| self.cost(action)).collect();
        costs.iter().flat_map(|a| costs.iter().map(move |b| a - b)).collect()
    }

    fn is_route(&self, action: usize) -> bool {
        (1..=self.task.routes().len()).contains(&action)
    }

    /// The best action that is not a route, and the best route.
    fn alternatives(&self) -> [usize; 2] {
        [false, true].map(|routed| {
            let actions = (0..self.task.actions()).filter(|&action| self.is_route(action) == routed);
            actions.min_by(|&a, &b| self.cost(a).total_cmp(&self.cost(b))).unwrap_or(0)
        })
    }

    /// The later advantages of routing for each number of new items offered and for ever more; only the present one without labels.
    fn budgeted(&self, prior: &DifferencePrior, gets_labels: bool) -> BudgetedCell {
        let [kept, route] = self.alternatives();
        let ahead = self.cost(kept) - self.cost(route);
        let taken = self.policy.taken(self.cell().0);
        let routed =
            (0..self.task.actions()).filter(|&action| self.is_route(action)).map(|action| taken.part_of(action));
        let later = match self.forecast.as_ref().filter(|_| gets_labels) {
            Some(forecast) => {
                let differences = self.differences();
                let after = |times: f64| {
                    let draws = forecast.with_items(times).shrunk(prior, &differences);
                    draws.later_advantage([kept, route], ahead, prior)
                };
                let present = forecast.items().len() as f64;
                let offered = NEW_ITEMS_OFFERED.iter().map(|part| after(forecast.times_with(part * present)));
                offered.chain([after(f64::INFINITY)]).collect()
            }
            None => vec![LaterAdvantage::unchanged(ahead)],
        };
        BudgetedCell { share: self.share, routed: routed.sum(), later }
    }

    /// The saving per query of the cell after labels. Under a budget, a change between routing and not routing is valued at the later cutoff
    /// of the budget.
    fn gain(&self, draws: &FutureDifferences, taken: usize, ahead: &[f64], prospects: &Prospects<'_>) -> Saving {
        let Some(budget) = prospects.budget else { return draws.gain(taken, ahead, prospects.prior, |_| true) };
        let alike = |other: usize| self.is_route(other) == self.is_route(taken);
        let [kept, route] = self.alternatives();
        let later = draws.later_advantage([kept, route], self.cost(kept) - self.cost(route), prospects.prior);
        draws.gain(taken, ahead, prospects.prior, alike).larger(budget.gain(self.cell(), &later))
    }

    fn plan(&self, prospects: &Prospects<'_>) -> CellPlan {
        let regret = |action: usize| self.rules.regret(self.found, self.task, action);
        let (policy, decision, share, cell) = (self.policy, &self.decision, self.share, self.cell());
        // Of two actions chosen at random, the one with the larger possible regret.
        let [first, second] = policy.taken(cell.0).actions();
        let taken = if regret(second).0 > regret(first).0 { second } else { first };
        let (regret, rival) = regret(taken);
        let names = self.task.action_names();
        let ahead: Vec<f64> = (0..self.task.actions()).map(|action| self.cost(taken) - self.cost(action)).collect();
        let ways = self.ways(taken, &ahead, prospects);
        let cheaper = [&ways.by_items, &ways.by_labels].into_iter().flatten().min_by_key(|way| way.labels);
        let gain = cheaper.map_or(ways.gain_of_knowing, |way| way.gain.mean);
        let worth = |gain: f64| 1000.0 * share * gain.clamp(0.0, regret);
        let offer = |way: &Way, by_items: bool| Offer {
            cell,
            more_items: by_items.then_some(way.more),
            more_labels: (!by_items).then_some(way.more),
            labels: way.labels,
            worth: worth(way.gain.mean),
            worth_error: 1000.0 * share * way.gain.variance.sqrt(),
            chance: way.chance,
        };
        let by_items = ways.by_items.iter().map(|way| offer(way, true));
        let mut determining: Vec<Offer> = by_items.chain(ways.by_labels.iter().map(|way| offer(way, false))).collect();
        determining.sort_by_key(|offer| offer.labels);
        CellPlan {
            cell,
            share,
            action: policy.code(cell.0).map_or("undetermined".to_owned(), |_| names[taken].clone()),
            rival: rival.map(|rival| names[rival].clone()).unwrap_or_default(),
            margin: rival.filter(|_| decision.estimate().is_known()).map(|rival| -ahead[rival]),
            at_stake: 1000.0 * share * regret,
            worth: worth(gain),
            chance: cheaper.map(|way| way.chance),
            more_labels: ways.by_labels.as_ref().map(|way| way.more),
            chance_by_labels: ways.by_labels.as_ref().map(|way| way.chance),
            more_items: ways.by_items.as_ref().map(|way| way.more),
            chance_by_items: ways.by_items.as_ref().map(|way| way.chance),
            labels: cheaper.map(|way| way.labels),
            labels_per_new_item: self.forecast.as_ref().map_or(1, Forecast::labels_per_new_item),
            by_items: ways.items_offered.iter().map(|way| offer(way, true)).collect(),
            by_labels: ways.labels_offered.iter().map(|way| offer(way, false)).collect(),
            determining,
            items_available: usize::MAX,
        }
    }

    /// The number of further labels if each row gets `more`, up to the largest number per item.
    fn further_labels(&self, more: usize) -> usize {
        let further = |given: &usize| match self.max_labels_per_item {
            Some(most) => more.min(most.saturating_sub(*given)),
            None => more,
        };
        self.labels_of_rows.iter().map(further).fold(0, usize::saturating_add)
    }

    /// The largest number of further labels that a row may get.
    fn most_labels(&self) -> usize {
        let fewest = self.labels_of_rows.iter().min().copied().unwrap_or(0);
        self.max_labels_per_item.map_or(Plan::MOST_LABELS, |most| most.saturating_sub(fewest).min(Plan::MOST_LABELS))
    }

    /// The ways to learn more about the cell; `ahead` is the estimated advantage of each action over the one taken.
    fn ways(&self, taken: usize, ahead: &[f64], prospects: &Prospects<'_>) -> Ways {
        let Some(forecast) = &self.forecast else {
            let gaps = (0..self.task.actions()).map(|other| self.rules.gap(self.found, self.task, taken, other).high);
            return Ways { gain_of_knowing: gaps.fold(0.0, f64::max) / 2.0, ..Ways::default() };
        };
        let n = forecast.items().len();
        let (prior, differences) = (prospects.prior, self.differences());
        let times = |more: usize| forecast.times_with(more as f64);
        let with_items = |times: f64| forecast.with_items(times).shrunk(prior, &differences);
        let with_labels = |more: usize, laws: &Laws<'_>| forecast.with_labels(more, laws).shrunk(prior, &differences);
        let way = |draws: FutureDifferences, more: usize, labels: usize| Way {
            more,
            labels,
            chance: draws.chance(),
            gain: self.gain(&draws, taken, ahead, prospects),
        };
        let new_items =
            |more: usize| way(with_items(times(more)), more, more.saturating_mul(forecast.labels_per_new_item()));
        // Probabilities are shares of draws and need not increase with the number of items or labels.
        let parts = [1, 4, 16];
        let is_enough = |more: usize| with_items(times(more)).chance() >= WANTED_CHANCE;
        let by_items = parts.into_iter().find_map(|part| least(Plan::MOST_TIMES / part * n, is_enough));
        let by_items = by_items.map(new_items);
        let by_labels = forecast.laws(SEARCH).and_then(|laws| {
            let is_enough = |more: usize| with_labels(more, &laws).chance() >= WANTED_CHANCE;
            let more = parts.into_iter().find_map(|part| least(self.most_labels() / part, is_enough))?;
            Some(way(with_labels(more, &forecast.laws(REPORT)?), more, self.further_labels(more)))
        });
        let items_offered = NEW_ITEMS_OFFERED.map(|part| new_items((part * n as f64).ceil() as usize)).into();
        let labels_offered = match by_labels.is_none() {
            true => forecast.laws(REPORT).map_or(Vec::new(), |laws| {
                let offered = |more: usize| way(with_labels(more, &laws), more, self.further_labels(more));
                let mut numbers = MORE_LABELS_OFFERED.map(|more| more.min(self.most_labels())).to_vec();
                numbers.dedup();
                numbers.into_iter().filter(|more| *more > 0).map(offered).collect()
            }),
            false => Vec::new(),
        };
        let gain_of_knowing = self.gain(&with_items(f64::INFINITY), taken, ahead, prospects).mean;
        Ways { by_items, by_labels, items_offered, labels_offered, gain_of_knowing }
    }
}

/// The ways to learn more about a cell.
#[derive(Default)]
struct Ways {
    /// New items that determine the cell.
    by_items: Option<Way>,
    /// Labels on present items that determine it.
    by_labels: Option<Way>,
    /// Numbers of new items, whether or not they determine the cell.
    items_offered: Vec<Way>,
    /// Numbers of labels per present item, whether or not they determine the cell.
    labels_offered: Vec<Way>,
    /// The expected saving per query of the cell from knowing the losses exactly.
    gain_of_knowing: f64,
}

/// One way to learn more about a cell.
struct Way {
    /// The number of further labels per item, or of new items.
    more: usize,
    /// The total number of labels.
    labels: usize,
    /// The probability that they determine the cell.
    chance: f64,
    /// The saving per query of the cell.
    gain: Saving,
}

/// The smallest number up to `most` for which a monotone condition holds, to about a tenth.
fn least(most: usize, holds: impl Fn(usize) -> bool) -> Option<usize> {
    // Usually it does not hold at all, which one call shows.
    if most == 0 || !holds(most) {
        return None;
    }
    let (mut fails, mut works) = (0, 1);
    while works < most && !holds(works) {
        fails = works;
        works = (2 * works).min(most);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_number_is_found_to_a_tenth() {
        for wanted in [1, 2, 3, 7, 40, 95, 100] {
            let found = least(100, |n| n >= wanted).unwrap();
            assert!(found >= wanted && found as f64 <= 1.13 * wanted as f64 + 1.0, "{wanted}: {found}");
        }
        assert_eq!(least(100, |n| n > 100), None);
        assert_eq!(least(1, |n| n > 1), None);
        assert_eq!(least(0, |_| true), None);
    }
}
