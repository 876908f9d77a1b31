//! What it would take to be certain, and what that is worth: which labels to buy next.
//!
//! Nothing here is a promise: a plan asks for as much as settles three cells of four. Labels may be worth their price where no number of them
//! settles a cell: they show which action is likely to be better. There a plan asks for as many as bring most of that.
//!
//! How far an action is from another is an estimate, and with more labels it will move. What it may become is drawn many times
//! ([`forecast`](super::forecast)). Differences that look large are overestimated on average, so the draws go towards what is usual
//! in the router's cells ([`difference_prior`](super::difference_prior)). The chance of settling a cell is the share of the draws that do; what labels are worth is
//! the mean over the draws of what another action then saves.

use super::difference_prior::DifferencePrior;
use super::forecast::{Forecast, Later, Laws};
use super::items::Items;
use super::{CellCertificate, Certificate, Judgement, Rules};
use crate::error::Result;
use crate::parallel::prelude::*;
use crate::partition::CellId;
use crate::policy::{Decision, Policy, Promise};
use crate::router::Router;
use crate::table::Table;
use crate::task::Task;

/// The chance to settle a cell that a plan asks for.
const LIKELY: f64 = 0.75;

/// Where a cell cannot be settled, the part of what labels can save that a plan asks for.
const MOST_OF_THE_GAIN: f64 = 0.75;

/// How many new items are tried out, in parts of the present ones.
const NEW_ITEMS_TRIED: [f64; 8] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, Plan::MOST_TIMES as f64];

/// How many more labels per item are tried out where no number settles a cell.
const MORE_LABELS_TRIED: [usize; 3] = [2, 8, 32];

/// Draws of labels by which their number is found, and others by which its chance is stated: the first number that seems enough
/// seems so by chance, too.
const SEARCH: u64 = 0;
const REPORT: u64 = 1;

/// Which cells are undetermined and what to do about it.
#[derive(Debug, Clone)]
#[non_exhaustive]
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
#[non_exhaustive]
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
    /// What the labels that settle it are expected to save per thousand queries of all cells; where none do, what knowing the losses
    /// exactly would save.
    pub worth: f64,
    /// The chance that [`labels`](Self::labels) settle the cell; `None` if none do.
    pub chance: Option<f64>,
    /// About how many more labels per item would make it certain; `None` if [`Plan::MOST_LABELS`] would not.
    pub more_labels: Option<usize>,
    /// The chance that these settle it.
    pub chance_by_labels: Option<f64>,
    /// About how many more items of this cell, with [`labels_per_new_item`](Self::labels_per_new_item), would settle it; `None` if [`Plan::MOST_TIMES`] as many
    /// would not.
    pub more_items: Option<usize>,
    /// The chance that these settle it.
    pub chance_by_items: Option<f64>,
    /// The labels that settle it in all, by the cheaper of the two ways.
    pub labels: Option<usize>,
    /// How many labels each new item is to have: about as many as present items have, those of one label left out where one would leave the
    /// costs of a route open.
    pub labels_per_new_item: usize,
    /// What some numbers of new items are expected to save, ascending, whether or not they settle the cell.
    pub by_items: Vec<Offer>,
    /// The same of more labels on each present item; only where nothing settles the cell.
    pub by_labels: Vec<Offer>,
}

/// Labels for one cell, and what they are expected to save.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Offer {
    /// The cell.
    pub cell: CellId,
    /// How many new items, if that is one way to get it.
    pub more_items: Option<usize>,
    /// How many more labels on each present item, if that is another.
    pub more_labels: Option<usize>,
    /// How many labels in all, by the cheaper way.
    pub labels: usize,
    /// What they are expected to save per thousand queries of all cells.
    pub worth: f64,
    /// The chance that they settle the cell.
    pub chance: f64,
}

impl Offer {
    /// What the labels are expected to save over so many queries.
    #[must_use]
    pub fn saving(&self, queries: f64) -> f64 {
        self.worth / 1000.0 * queries
    }

    /// What the labels cost.
    #[must_use]
    pub fn price(&self, label_price: f64) -> f64 {
        self.labels as f64 * label_price
    }

    /// What they are worth per label; nothing if there are none.
    #[must_use]
    pub fn worth_per_label(&self) -> f64 {
        if self.labels == 0 { 0.0 } else { self.worth / self.labels as f64 }
    }

    /// After how many queries the labels have saved what they cost; `None` if they save nothing.
    #[must_use]
    pub fn pays_after(&self, label_price: f64) -> Option<f64> {
        pays_after(self.price(label_price), self.worth)
    }
}

/// Labels that save more than they cost.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Purchase {
    /// The cells they are for, best first.
    pub cells: Vec<CellId>,
    /// What is bought for each of these.
    pub offers: Vec<Offer>,
    /// How many labels in all.
    pub labels: usize,
    /// What they cost.
    pub cost: f64,
    /// What they are expected to save.
    pub saving: f64,
}

/// The cells to begin with.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FirstCells {
    /// Which they are, best first.
    pub cells: Vec<CellId>,
    /// How many of them these labels are likely to settle.
    pub settled: usize,
    /// The labels they take in all.
    pub labels: usize,
    /// What these are expected to save per thousand queries of all cells.
    pub worth: f64,
}

impl FirstCells {
    /// What the labels cost.
    #[must_use]
    pub fn price(&self, label_price: f64) -> f64 {
        self.labels as f64 * label_price
    }

    /// After how many queries the labels have saved what they cost; `None` if they save nothing.
    #[must_use]
    pub fn pays_after(&self, label_price: f64) -> Option<f64> {
        pays_after(self.price(label_price), self.worth)
    }
}

/// After how many queries something that saves so much per thousand has saved its price; `None` if it saves nothing.
fn pays_after(price: f64, worth: f64) -> Option<f64> {
    (worth > 0.0).then(|| 1000.0 * price / worth)
}

/// An item to label.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
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
    /// The labels that settle the cell in three of four cases; `None` if none do.
    #[must_use]
    pub fn settling(&self) -> Option<Offer> {
        Some(Offer {
            cell: self.cell,
            more_items: self.more_items,
            more_labels: self.more_labels,
            labels: self.labels?,
            worth: self.worth,
            chance: self.chance?,
        })
    }

    /// The labels to ask for where their price is not known: those that settle the cell; if none do, the fewest that bring most of what labels can
    /// save. `None` if labels are expected to save nothing there.
    #[must_use]
    pub fn asked(&self) -> Option<Offer> {
        self.settling().or_else(|| {
            let most = self.improvements().map(|offer| offer.worth).fold(0.0, f64::max);
            let enough = self.improvements().filter(|offer| offer.worth >= MOST_OF_THE_GAIN * most);
            enough.min_by_key(|offer| offer.labels).filter(|_| most > 0.0).cloned()
        })
    }

    /// The labels that save most beyond their price over so many queries, of those that can be bought, if any save more than that: those that
    /// settle the cell, or fewer that only show which action is likely to be better.
    fn best(&self, label_price: f64, queries: f64, can_be_bought: &dyn Fn(&Offer) -> bool) -> Option<Offer> {
        let net = |offer: &Offer| offer.saving(queries) - offer.price(label_price);
        let settling = self.settling();
        // Nothing is worth more than certainty; where the two ways of getting labels are forecast differently, the lower worth counts.
        let is_less =
            |offer: &&Offer| settling.as_ref().is_none_or(|all| offer.labels < all.labels && offer.worth <= all.worth);
        let fewer: Vec<Offer> = self.improvements().filter(is_less).cloned().collect();
        let offers = settling.into_iter().chain(fewer);
        let best = offers.filter(|offer| can_be_bought(offer) && net(offer) > 0.0);
        best.max_by(|a, b| net(a).total_cmp(&net(b)).then(b.labels.cmp(&a.labels)))
    }

    /// What can be bought whether or not it settles the cell.
    fn improvements(&self) -> impl Iterator<Item = &Offer> {
        self.by_items.iter().chain(&self.by_labels)
    }

    /// What so many new items are expected to save per thousand queries: between the numbers that were tried out.
    #[must_use]
    pub fn worth_of_items(&self, items: usize) -> f64 {
        let (mut from, mut worth) = (0.0, 0.0);
        for offer in &self.by_items {
            let to = offer.more_items.unwrap_or(0) as f64;
            if (items as f64) < to {
                return worth + (offer.worth - worth) * (items as f64 - from) / (to - from);
            }
            (from, worth) = (to, offer.worth);
        }
        worth
    }

    /// What a label is worth per thousand queries, on average; `None` if none settle the cell.
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
    /// Largest number of further labels per item that a plan asks for.
    pub const MOST_LABELS: usize = 200;

    /// Nor more items than so many times the present ones.
    pub const MOST_TIMES: usize = 32;

    /// The labels that are expected to save more over so many queries than they cost, as many per cell as save most beyond that.
    #[must_use]
    pub fn purchase(&self, label_price: f64, queries: f64) -> Purchase {
        self.purchase_of(label_price, queries, |_| true)
    }

    /// The same of what can be bought: only new items, say, or only more labels on present ones.
    #[must_use]
    pub fn purchase_of(&self, label_price: f64, queries: f64, can_be_bought: impl Fn(&Offer) -> bool) -> Purchase {
        let offers = self.cells.iter().filter_map(|plan| plan.best(label_price, queries, &can_be_bought));
        let mut all = Purchase { cells: Vec::new(), offers: Vec::new(), labels: 0, cost: 0.0, saving: 0.0 };
        for offer in offers {
            all.cells.push(offer.cell);
            all.labels = all.labels.saturating_add(offer.labels);
            all.cost += offer.price(label_price);
            all.saving += offer.saving(queries);
            all.offers.push(offer);
        }
        all
    }

    /// The cells whose labels are worth most per label, at most so many; `None` if there are none. Cells worth less than a hundredth of the
    /// best one, or a hundred-thousandth of what queries are expected to cost, are left out.
    #[must_use]
    pub fn begin_with(&self, cells: usize) -> Option<FirstCells> {
        const NEGLIGIBLE_PART: f64 = 0.01;
        const NEGLIGIBLE_SAVING: f64 = 1e-5;
        let mut asked = self.asked();
        let most = asked.iter().map(|offer| offer.worth).fold(0.0, f64::max);
        let cost = self.promise.as_ref().map_or(0.0, |promise| 1000.0 * promise.cost);
        let least = f64::max(NEGLIGIBLE_PART * most, NEGLIGIBLE_SAVING * cost);
        asked.retain(|offer| offer.worth > least);
        asked.sort_by(|a, b| b.worth_per_label().total_cmp(&a.worth_per_label()).then(a.cell.cmp(&b.cell)));
        let mut found = FirstCells { cells: Vec::new(), settled: 0, labels: 0, worth: 0.0 };
        for offer in asked.iter().take(cells) {
            found.cells.push(offer.cell);
            found.settled +=
                usize::from(self.cells.iter().any(|plan| plan.cell == offer.cell && plan.labels.is_some()));
            found.labels = found.labels.saturating_add(offer.labels);
            found.worth += offer.worth;
        }
        Some(found).filter(|found| !found.cells.is_empty())
    }

    /// The labels that the plan asks for where prices are not known, cell by cell: see [`CellPlan::asked`].
    #[must_use]
    pub fn asked(&self) -> Vec<Offer> {
        self.cells.iter().filter_map(CellPlan::asked).collect()
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
        let settling: Vec<Offer> =
            self.cells.iter().filter(|plan| wanted(plan)).filter_map(CellPlan::settling).collect();
        self.items_of(router, table, &settling)
    }

    /// Which rows of a table to label for what is to be bought, as [`items`](Self::items).
    ///
    /// # Errors
    /// As there.
    pub fn items_of(&self, router: &Router, table: &Table, offers: &[Offer]) -> Result<Vec<ItemToLabel>> {
        let found = router.find_cells(table)?;
        let kept = router.rows_in_common(table);
        let mut items = Vec::new();
        for offer in offers {
            let Some(plan) = self.cells.iter().find(|plan| plan.cell == offer.cell) else { continue };
            let rows = found.iter().enumerate().filter(|(_, cell)| **cell == offer.cell).map(|(row, _)| row);
            let rows = rows.filter(|&row| !table.has_votes() || kept[row]);
            let (most, labels, asked) = if table.has_votes() {
                (usize::MAX, offer.more_labels.unwrap_or(0), router.mixture(offer.cell).len())
            } else {
                let asked = offer.more_items.unwrap_or(0);
                (asked, plan.labels_per_new_item, asked)
            };
            if labels > 0 {
                let worth = offer.worth / asked.max(1) as f64;
                items.extend(rows.take(most).map(|row| ItemToLabel { row, cell: offer.cell, labels, worth }));
            }
        }
        Ok(items)
    }

    /// How many new items are to be bought beyond those listed: what a table without votes is short of.
    #[must_use]
    pub fn items_missing(&self, listed: &[ItemToLabel], offers: &[Offer]) -> usize {
        let missing = |offer: &Offer| {
            let found = listed.iter().filter(|item| item.cell == offer.cell).count();
            offer.more_items.unwrap_or(0).saturating_sub(found)
        };
        offers.iter().map(missing).sum()
    }

    /// What new items listed are expected to save per thousand queries, where a table has fewer than are asked for.
    #[must_use]
    pub fn worth_of_listed(&self, listed: &[ItemToLabel]) -> f64 {
        let count = |cell: CellId| listed.iter().filter(|item| item.cell == cell).count();
        self.cells.iter().map(|plan| plan.worth_of_items(count(plan.cell))).sum()
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
        let worth = |gain: f64| 1000.0 * share * gain.clamp(0.0, regret);
        let offer = |way: &Way, by_items: bool| Offer {
            cell: self.cell,
            more_items: by_items.then_some(way.more),
            more_labels: (!by_items).then_some(way.more),
            labels: way.labels,
            worth: worth(way.gain),
            chance: way.chance,
        };
        CellPlan {
            cell: self.cell,
            share,
            action: policy.code(self.cell.0).map_or("undetermined".to_owned(), |_| names[taken].clone()),
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
            by_items: ways.items_tried.iter().map(|way| offer(way, true)).collect(),
            by_labels: ways.labels_tried.iter().map(|way| offer(way, false)).collect(),
        }
    }

    /// The ways to settle the cell; `ahead` is by how much each action seems better than the one taken.
    fn ways(&self, taken: usize, ahead: &[f64], usual: &DifferencePrior) -> Ways {
        let Some(forecast) = &self.forecast else {
            let gaps = (0..self.task.actions()).map(|other| self.rules.gap(self.found, self.task, taken, other).high);
            return Ways { gain_of_knowing: gaps.fold(0.0, f64::max) / 2.0, ..Ways::default() };
        };
        let n = forecast.items().len();
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
        let new_items =
            |more: usize| way(with_items(times(more)), more, more.saturating_mul(forecast.labels_per_new_item()));
        // Chances are shares of draws and need not grow with the number of items.
        let is_likely = |more: usize| with_items(times(more)).chance() >= LIKELY;
        let by_items = [1, 4, 16].into_iter().find_map(|part| least(Plan::MOST_TIMES / part * n, is_likely));
        let by_items = by_items.map(new_items);
        let by_labels = forecast.laws(SEARCH).and_then(|laws| {
            let more = least(Plan::MOST_LABELS, |more| with_labels(more, &laws).chance() >= LIKELY)?;
            Some(way(with_labels(more, &forecast.laws(REPORT)?), more, more.saturating_mul(self.rows)))
        });
        let items_tried = NEW_ITEMS_TRIED.map(|part| new_items((part * n as f64).ceil() as usize)).into();
        let labels_tried = match by_items.is_none() && by_labels.is_none() {
            true => forecast.laws(REPORT).map_or(Vec::new(), |laws| {
                let tried = |more: usize| way(with_labels(more, &laws), more, more.saturating_mul(self.rows));
                MORE_LABELS_TRIED.map(tried).into()
            }),
            false => Vec::new(),
        };
        let gain_of_knowing = with_items(f64::INFINITY).gain(taken, ahead, usual);
        Ways { by_items, by_labels, items_tried, labels_tried, gain_of_knowing }
    }
}

/// What may be done about a cell.
#[derive(Default)]
struct Ways {
    by_items: Option<Way>,
    by_labels: Option<Way>,
    /// Numbers of new items, and of labels per present item, whether or not they settle the cell.
    items_tried: Vec<Way>,
    labels_tried: Vec<Way>,
    /// What knowing the losses exactly is expected to save per query of the cell.
    gain_of_knowing: f64,
}

/// One way to learn more of a cell.
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
