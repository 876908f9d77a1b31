//! What it would take to be certain, and what that is worth: which labels to buy next.
//!
//! Nothing here is a promise: a plan asks for as much as settles three cells of four.
//!
//! How far an action is from another is an estimate, and with more labels it will move. What it may become is drawn many times
//! ([`forecast`](super::forecast)). Differences that look large are overestimated on average, so the draws go towards what is usual
//! in the router's cells ([`difference_prior`](super::difference_prior)). The chance of settling a cell is the share of the draws that do; what labels are worth is
//! the mean over the draws of what another action then saves.

use rayon::prelude::*;

use super::difference_prior::DifferencePrior;
use super::forecast::{Forecast, Later, Laws};
use super::items::Items;
use super::{CellCertificate, Certificate, Judgement, Rules};
use crate::error::Result;
use crate::partition::CellId;
use crate::policy::{Decision, Policy, Promise};
use crate::router::Router;
use crate::table::Table;
use crate::task::Task;

/// The chance to settle a cell that a plan asks for.
const LIKELY: f64 = 0.75;

/// Draws of labels by which their number is found, and others by which its chance is stated: the first number that seems enough
/// seems so by chance, too.
const SEARCH: u64 = 0;
const REPORT: u64 = 1;

/// Which cells are undetermined and what to do about it.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The intervals.
    pub certificate: Certificate,
    /// What they say of the task's policy.
    pub judgement: Judgement,
    /// What that policy is expected to cost now; `None` where the labels do not tell.
    pub promise: Option<Promise>,
    /// The undetermined cells with calibration rows, those worth most per label first; what cannot be settled comes last.
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
    /// What the labels asked for are expected to save per thousand queries of all cells; where none are, what knowing the losses
    /// exactly would save.
    pub worth: f64,
    /// The chance that the labels asked for settle the cell; `None` if none are.
    pub chance: Option<f64>,
    /// About how many more labels an item would settle it; `None` if [`Plan::MOST_LABELS`] would not.
    pub more_labels: Option<usize>,
    /// The chance that these settle it.
    pub chance_by_labels: Option<f64>,
    /// About how many more items of this cell, with as many labels as now, would settle it; `None` if [`Plan::MOST_TIMES`] as many
    /// would not.
    pub more_items: Option<usize>,
    /// The chance that these settle it.
    pub chance_by_items: Option<f64>,
    /// The labels to collect in all, the cheaper of the two ways.
    pub labels: Option<usize>,
}

/// Labels that save more than they cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Purchase {
    /// The cells they are for, best first.
    pub cells: Vec<CellId>,
    /// How many labels in all.
    pub labels: usize,
    /// What they cost.
    pub cost: f64,
    /// What they are expected to save.
    pub saving: f64,
}

/// The cells to begin with.
#[derive(Debug, Clone, PartialEq)]
pub struct FirstCells {
    /// Which they are, best first.
    pub cells: Vec<CellId>,
    /// The labels they take in all.
    pub labels: usize,
    /// What these are expected to save per thousand queries of all cells.
    pub worth: f64,
}

impl FirstCells {
    /// After how many queries the labels have saved what they cost; `None` if they save nothing.
    #[must_use]
    pub fn pays_after(&self, label_price: f64) -> Option<f64> {
        pays_after(self.labels as f64 * label_price, self.worth)
    }
}

/// After how many queries something that saves so much per thousand has saved its price; `None` if it saves nothing.
fn pays_after(price: f64, worth: f64) -> Option<f64> {
    (worth > 0.0).then(|| 1000.0 * price / worth)
}

/// An item to label.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemToLabel {
    /// Its row in the table given.
    pub row: usize,
    /// Its cell.
    pub cell: CellId,
    /// How many labels to add.
    pub labels: usize,
    /// Its part of what the cell's labels are worth per thousand queries.
    pub worth: f64,
}

impl CellPlan {
    /// What a label is worth per thousand queries, on average; `None` if none are asked for.
    #[must_use]
    pub fn worth_per_label(&self) -> Option<f64> {
        self.labels.filter(|labels| *labels > 0).map(|labels| self.worth / labels as f64)
    }

    /// What the labels asked for are expected to save over so many queries.
    #[must_use]
    pub fn saving(&self, queries: f64) -> f64 {
        self.worth / 1000.0 * queries
    }

    /// What the labels asked for cost.
    #[must_use]
    pub fn price(&self, label_price: f64) -> Option<f64> {
        self.labels.map(|labels| labels as f64 * label_price)
    }

    /// After how many queries the labels have saved what they cost; `None` if none are asked for or they save nothing.
    #[must_use]
    pub fn pays_after(&self, label_price: f64) -> Option<f64> {
        pays_after(self.price(label_price)?, self.worth)
    }
}

impl Plan {
    /// More labels an item than this are not asked for.
    pub const MOST_LABELS: usize = 200;

    /// Nor more items than so many times the present ones.
    pub const MOST_TIMES: usize = 32;

    /// The labels that are expected to save more over so many queries than they cost.
    #[must_use]
    pub fn purchase(&self, label_price: f64, queries: f64) -> Purchase {
        let mut all = Purchase { cells: Vec::new(), labels: 0, cost: 0.0, saving: 0.0 };
        for plan in &self.cells {
            let (Some(labels), Some(price)) = (plan.labels, plan.price(label_price)) else { continue };
            if plan.saving(queries) > price {
                all.cells.push(plan.cell);
                all.labels = all.labels.saturating_add(labels);
                all.cost += price;
                all.saving += plan.saving(queries);
            }
        }
        all
    }

    /// The first cells of the plan that labels settle, at most so many; `None` if there are none. Cells worth less than a hundredth of the
    /// best one, or a hundred-thousandth of what queries are expected to cost, are left out.
    #[must_use]
    pub fn begin_with(&self, cells: usize) -> Option<FirstCells> {
        const NEGLIGIBLE_PART: f64 = 0.01;
        const NEGLIGIBLE_SAVING: f64 = 1e-5;
        let settled = || self.cells.iter().filter_map(|plan| Some((plan, plan.labels?)));
        let most = settled().map(|(plan, _)| plan.worth).fold(0.0, f64::max);
        let cost = self.promise.as_ref().map_or(0.0, |promise| 1000.0 * promise.cost);
        let least = f64::max(NEGLIGIBLE_PART * most, NEGLIGIBLE_SAVING * cost);
        let first = settled().filter(|(plan, _)| plan.worth > least).take(cells);
        let mut found = FirstCells { cells: Vec::new(), labels: 0, worth: 0.0 };
        for (plan, labels) in first {
            found.cells.push(plan.cell);
            found.labels = found.labels.saturating_add(labels);
            found.worth += plan.worth;
        }
        Some(found).filter(|found| !found.cells.is_empty())
    }

    /// The share of the traffic, as far as calibration rows tell, that falls into undetermined cells.
    #[must_use]
    pub fn open(&self) -> f64 {
        self.cells.iter().map(|plan| plan.share).sum()
    }

    /// Which rows of a table to label, best first, for the cells wanted. Rows with votes get more labels if they are among the router's
    /// rows; other rows with votes are left out, since labels on them would not show in its cells. Rows of a table without votes are
    /// new items, which get as many labels as the router's items have.
    ///
    /// # Errors
    /// If the classes differ or a feature is missing.
    pub fn items(
        &self,
        router: &Router,
        table: &Table,
        wanted: impl Fn(&CellPlan) -> bool,
    ) -> Result<Vec<ItemToLabel>> {
        let found = router.find_cells(table)?;
        let kept = router.rows_in_common(table);
        let mut items = Vec::new();
        for plan in self.cells.iter().filter(|plan| wanted(plan)) {
            let rows = found.iter().enumerate().filter(|(_, cell)| **cell == plan.cell).map(|(row, _)| row);
            let rows = rows.filter(|&row| !table.has_votes() || kept[row]);
            let mixture = router.mixture(plan.cell);
            let (most, labels, asked) = if table.has_votes() {
                (usize::MAX, plan.more_labels.unwrap_or(0), mixture.len())
            } else {
                let now: u64 = mixture.rows().map(|row| mixture.votes(row).k()).sum();
                let per_item = (now as f64 / mixture.len() as f64).round().max(1.0) as usize;
                (plan.more_items.unwrap_or(0), per_item, plan.more_items.unwrap_or(0))
            };
            if labels > 0 {
                let worth = plan.worth / asked.max(1) as f64;
                items.extend(rows.take(most).map(|row| ItemToLabel { row, cell: plan.cell, labels, worth }));
            }
        }
        Ok(items)
    }

    /// How many new items the plan asks for in the cells wanted beyond those listed: what a table without votes is short of.
    #[must_use]
    pub fn items_missing(&self, listed: &[ItemToLabel], wanted: impl Fn(&CellPlan) -> bool) -> usize {
        let missing = |plan: &CellPlan| {
            let found = listed.iter().filter(|item| item.cell == plan.cell).count();
            plan.more_items.unwrap_or(0).saturating_sub(found)
        };
        self.cells.iter().filter(|plan| wanted(plan)).map(missing).sum()
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
        let (_, heaviest) = self.weights();
        let answers = certificate.rules.measured(self)?;
        let filled = (0..judgement.cells.len() as u32).filter(|&cell| certificate.shares[cell as usize] > 0.0);
        let filled: Vec<u32> = filled.collect();
        let study = |&cell: &u32| {
            let (rules, cell) = (&certificate.rules, CellId(cell));
            let found = &certificate.cells[cell.index()];
            let items = Items::from_cell(self, cell, heaviest, &answers);
            let served = self.is_recalibrated().then(|| self.mixture(cell).centroid()).flatten();
            let forecast = Forecast::of(rules, task, items, served, found);
            Study { rows: self.mixture(cell).len(), rules, task, cell, found, forecast }
        };
        let studies: Vec<Study<'_>> = filled.par_iter().map(study).collect();
        let known: Vec<&Forecast<'_>> = studies.iter().filter_map(|study| study.forecast.as_ref()).collect();
        let usual = DifferencePrior::fit(&known, task.actions());
        let open = |study: &&Study<'_>| !judgement.cells[study.cell.index()].certain;
        let plan = |study: &Study<'_>| {
            let share = certificate.shares[study.cell.index()];
            Some(study.plan(&policy, &policy.cell(study.cell)?, share, &usual))
        };
        let mut cells: Vec<CellPlan> = studies.par_iter().filter(open).filter_map(plan).collect();
        cells.sort_by(|a, b| {
            let key = |plan: &CellPlan| plan.worth_per_label().unwrap_or(f64::NEG_INFINITY);
            key(b).total_cmp(&key(a)).then(b.worth.total_cmp(&a.worth)).then(a.cell.cmp(&b.cell))
        });
        Ok(Plan { certificate, judgement, promise: policy.promise(), cells })
    }
}

/// One cell under study.
struct Study<'a> {
    /// How many calibration rows it has.
    rows: usize,
    rules: &'a Rules,
    task: &'a Task,
    cell: CellId,
    found: &'a CellCertificate,
    forecast: Option<Forecast<'a>>,
}

impl Study<'_> {
    fn plan(&self, policy: &Policy, decision: &Decision<'_>, share: f64, usual: &DifferencePrior) -> CellPlan {
        let regret = |action: usize| self.rules.regret(self.found, self.task, action);
        // Where a lot decides between two actions, the one that may be worse.
        let [first, second] = policy.taken(self.cell.0).actions();
        let taken = if regret(second).0 > regret(first).0 { second } else { first };
        let (regret, rival) = regret(taken);
        let names = self.task.action_names();
        let cost = |action: usize| {
            // A limit is a price, too.
            let extra = self.rules.answer(self.task, action).1 - self.rules.answer(policy.task(), action).1;
            f64::midpoint(decision.costs()[action], decision.costs_high()[action]) + extra
        };
        let ahead: Vec<f64> = (0..self.task.actions()).map(|action| cost(taken) - cost(action)).collect();
        let ways = self.ways(taken, &ahead, usual);
        let cheaper = [&ways.by_items, &ways.by_labels].into_iter().flatten().min_by_key(|way| way.labels);
        let gain = cheaper.map_or(ways.gain_of_knowing, |way| way.gain);
        CellPlan {
            cell: self.cell,
            share,
            action: policy.code(self.cell.0).map_or("undetermined".to_owned(), |_| names[taken].clone()),
            rival: rival.map(|rival| names[rival].clone()).unwrap_or_default(),
            margin: rival.filter(|_| decision.estimate().is_known()).map(|rival| -ahead[rival]),
            at_stake: 1000.0 * share * regret,
            worth: 1000.0 * share * gain.clamp(0.0, regret),
            chance: cheaper.map(|way| way.chance),
            more_labels: ways.by_labels.as_ref().map(|way| way.more),
            chance_by_labels: ways.by_labels.as_ref().map(|way| way.chance),
            more_items: ways.by_items.as_ref().map(|way| way.more),
            chance_by_items: ways.by_items.as_ref().map(|way| way.chance),
            labels: cheaper.map(|way| way.labels),
        }
    }

    /// The ways to settle the cell; `ahead` is by how much each action seems better than the one taken.
    fn ways(&self, taken: usize, ahead: &[f64], usual: &DifferencePrior) -> Ways {
        let Some(forecast) = &self.forecast else {
            let gaps = (0..self.task.actions()).map(|other| self.rules.gap(self.found, self.task, taken, other).high);
            return Ways { by_items: None, by_labels: None, gain_of_knowing: gaps.fold(0.0, f64::max) / 2.0 };
        };
        let (items, n) = (forecast.items(), forecast.items().len());
        let steps = forecast.steps();
        let times = |more: usize| (n + more) as f64 / n as f64;
        let with_items = |times: f64| forecast.with_items(&steps, times).shrunk(usual);
        let with_labels = |more: usize, laws: &Laws<'_>| forecast.with_labels(more, laws).shrunk(usual);
        let way = |later: Later, more: usize, labels: usize| Way {
            more,
            labels,
            chance: later.chance(),
            gain: later.gain(taken, ahead, usual),
        };
        let by_items = least(Plan::MOST_TIMES * n, |more| with_items(times(more)).chance() >= LIKELY).map(|more| {
            let labels: u64 = items.iter().map(|(_, votes)| votes.k()).sum();
            way(with_items(times(more)), more, (more as f64 * labels as f64 / n as f64).ceil() as usize)
        });
        let by_labels = forecast.laws(SEARCH).and_then(|laws| {
            let more = least(Plan::MOST_LABELS, |more| with_labels(more, &laws).chance() >= LIKELY)?;
            Some(way(with_labels(more, &forecast.laws(REPORT)?), more, more.saturating_mul(self.rows)))
        });
        let gain_of_knowing = with_items(f64::INFINITY).gain(taken, ahead, usual);
        Ways { by_items, by_labels, gain_of_knowing }
    }
}

/// What may be done about a cell.
struct Ways {
    by_items: Option<Way>,
    by_labels: Option<Way>,
    /// What knowing the losses exactly is expected to save per query of the cell.
    gain_of_knowing: f64,
}

/// One way to settle a cell.
struct Way {
    /// How many more labels per item, or more items.
    more: usize,
    /// How many labels that takes in all.
    labels: usize,
    chance: f64,
    /// What it is expected to save per query of the cell.
    gain: f64,
}

/// The least number up to `most` for which something holds that holds for all larger ones, to a tenth or so.
fn least(most: usize, holds: impl Fn(usize) -> bool) -> Option<usize> {
    // Mostly it does not hold at all, and then one look is enough.
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
    fn the_least_is_found_to_a_tenth() {
        for wanted in [1, 2, 3, 7, 40, 95, 100] {
            let found = least(100, |n| n >= wanted).unwrap();
            assert!(found >= wanted && found as f64 <= 1.13 * wanted as f64 + 1.0, "{wanted}: {found}");
        }
        assert_eq!(least(100, |n| n > 100), None);
        assert_eq!(least(1, |n| n > 1), None);
        assert_eq!(least(0, |_| true), None);
    }
}
