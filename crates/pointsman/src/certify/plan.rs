//! Plans: which labels to buy next, the probability that they determine a cell's action, and their expected saving.
//!
//! A cell is *determined* if one action is certainly at least as good as every other. A plan is a forecast, not a guarantee: it asks for the
//! labels that determine a cell with probability ¾. Labels can be worth their price even if no number of them determines the cell, because
//! they show which action is likely to be better. In such cells a plan asks for the labels with most of the possible saving.
//!
//! Estimated cost differences change as labels are added. Their future values are drawn many times ([`forecast`](super::forecast)). Large
//! estimated differences are overestimates on average, so the draws are shrunk towards the mean difference over the router's cells
//! ([`difference_prior`](super::difference_prior)). The probability that labels determine a cell is the share of draws in which they do;
//! their worth is the mean over the draws of the saving from taking the best action afterwards.

use super::listing::upper_envelope;
use super::offer::{FirstCells, Offer, Purchase, ToCertainty, saving_over};
use super::{Certificate, Judgement};
use crate::partition::CellId;
use crate::policy::Promise;

/// The smallest worth per label with which a cell is one of the first to label, as a part of the largest.
const PART_OF_LARGEST_WORTH_PER_LABEL: f64 = 0.1;

/// The part of the largest possible saving that a plan asks for in a cell that labels do not determine.
const PART_OF_LARGEST_SAVING: f64 = 0.75;

/// Labels of unknown price are not asked for if they save at most this part of the expected cost of queries.
const NEGLIGIBLE_PART_OF_COST: f64 = 1e-5;

/// The undetermined cells of a task, and the labels to buy for them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Plan {
    /// The certificate of the task.
    pub certificate: Certificate,
    /// What it implies for the task's policy.
    pub judgement: Judgement,
    /// The expected cost of that policy now; `None` if the labels only bound it.
    pub promise: Option<Promise>,
    /// The largest number of labels that an item may get in all, if there is one.
    pub max_labels_per_item: Option<usize>,
    /// The undetermined cells with calibration rows, largest worth per label first; cells that labels do not determine come last.
    pub cells: Vec<CellPlan>,
}

/// The labels that would determine one cell, and their expected saving.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CellPlan {
    /// The cell.
    pub cell: CellId,
    /// Its share of the calibration rows, by weight.
    pub share: f64,
    /// The current action; `undetermined` if labels only bound the costs and the bounds overlap.
    pub action: String,
    /// The action that might be better than it or, if it is undetermined, than the cheapest action of known cost.
    pub rival: String,
    /// The estimated cost of the rival minus that of the action; unknown if labels only bound the costs.
    pub margin: Option<f64>,
    /// The largest possible regret of the action per thousand queries of all cells.
    pub at_stake: f64,
    /// The expected saving per thousand queries of all cells from the labels that determine the cell; if none do, from knowing the losses
    /// exactly.
    pub worth: f64,
    /// The probability that [`labels`](Self::labels) determine the cell; `None` if none do.
    pub chance: Option<f64>,
    /// The approximate number of further labels per item that would determine it; `None` if [`Plan::MOST_LABELS`] would not.
    pub more_labels: Option<usize>,
    /// The probability that these labels determine it.
    pub chance_by_labels: Option<f64>,
    /// The approximate number of new items of this cell, with [`labels_per_new_item`](Self::labels_per_new_item), that would determine it;
    /// `None` if [`Plan::MOST_TIMES`] times the present items would not.
    pub more_items: Option<usize>,
    /// The probability that these items determine it.
    pub chance_by_items: Option<f64>,
    /// The total number of labels that determine it, by the cheaper of the two ways.
    pub labels: Option<usize>,
    /// The number of labels per new item: the mean over the present items, without items of one label if one label does not identify the
    /// cost of a route.
    pub labels_per_new_item: usize,
    /// Offers of new items, ascending, whether or not they determine the cell.
    pub by_items: Vec<Offer>,
    /// Offers of more labels on each present item; only if no number of them determines the cell.
    pub by_labels: Vec<Offer>,
    /// Offers of labels that determine the cell, one per way to get them, fewest labels first.
    pub(super) determining: Vec<Offer>,
    /// The largest number of new items that can be labelled.
    pub(super) items_available: usize,
}

/// An item to label.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ItemToLabel {
    /// Its row in the given table.
    pub row: usize,
    /// Its cell.
    pub cell: CellId,
    /// The number of labels to add.
    pub labels: usize,
    /// Its part of the worth of the cell's labels, per thousand queries: the first new items of a cell are worth more than later ones. If a
    /// table has fewer new items than offered, it is a part of the worth of these.
    pub worth: f64,
}

impl CellPlan {
    /// The labels that determine the cell with probability ¾, by the cheaper way, with the number by either way; `None` if none do.
    #[must_use]
    pub fn determining(&self) -> Option<Offer> {
        let cheaper = self.determining.first()?.clone();
        Some(Offer { more_items: self.more_items, more_labels: self.more_labels, ..cheaper })
    }

    /// The labels to ask for if their price is unknown: those that determine the cell or, if none do, the fewest with most of the possible
    /// saving. `None` if labels are expected to save nothing.
    #[must_use]
    pub fn asked(&self) -> Option<Offer> {
        self.determining().or_else(|| self.asked_of(|_| true))
    }

    /// The fewest labels that determine the cell, in one way, among offers that can be bought.
    #[must_use]
    pub fn determining_of(&self, can_be_bought: impl Fn(&Offer) -> bool) -> Option<Offer> {
        self.determining.iter().find(|offer| can_be_bought(offer)).cloned()
    }

    /// As [`CellPlan::asked`], in one way, among offers that can be bought.
    #[must_use]
    pub fn asked_of(&self, can_be_bought: impl Fn(&Offer) -> bool) -> Option<Offer> {
        self.determining_of(&can_be_bought).or_else(|| {
            let offers = || self.improvements().filter(|offer| can_be_bought(offer));
            let most = offers().map(|offer| offer.worth).fold(0.0, f64::max);
            let enough = offers().filter(|offer| offer.worth >= PART_OF_LARGEST_SAVING * most);
            enough.min_by_key(|offer| offer.labels).filter(|_| most > 0.0).cloned()
        })
    }

    /// The labels with the largest saving beyond their price over a number of queries, among those that can be bought and save more than
    /// their price: those that determine the cell, or fewer that only show which action is likely to be better.
    fn best(&self, label_price: f64, queries: f64, can_be_bought: &dyn Fn(&Offer) -> bool) -> Option<Offer> {
        let net = |offer: &Offer| offer.saving(queries) - offer.price(label_price);
        let best = self.offers(can_be_bought).into_iter().filter(|offer| net(offer) > 0.0);
        best.max_by(|a, b| net(a).total_cmp(&net(b)).then(b.labels.cmp(&a.labels)))
    }

    /// The offers that can be bought, each in one way: labels that determine the cell, and fewer.
    fn offers(&self, can_be_bought: &dyn Fn(&Offer) -> bool) -> Vec<Offer> {
        let determining = self.determining_of(can_be_bought);
        // Fewer labels are not worth more than those that determine the cell. If the two forecasts differ, the lower worth counts.
        let is_less = |offer: &&Offer| {
            determining.as_ref().is_none_or(|all| offer.labels < all.labels && offer.worth <= all.worth)
        };
        let fewer: Vec<Offer> =
            self.improvements().filter(is_less).filter(|offer| can_be_bought(offer)).cloned().collect();
        determining.into_iter().chain(fewer).collect()
    }

    /// All offers, whether or not they determine the cell.
    fn improvements(&self) -> impl Iterator<Item = &Offer> {
        self.by_items.iter().chain(&self.by_labels)
    }

    /// The expected saving of a number of new items per thousand queries, interpolated between the offers.
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

    /// Fewer new items than an offer asks for, with at most `most` labels; `None` if there are none.
    fn part_of_items(&self, offer: &Offer, most: usize) -> Option<Offer> {
        let items = (most / self.labels_per_new_item.max(1)).min(self.items_available);
        let worth = self.worth_of_items(items).min(offer.worth);
        (items > 0 && worth > 0.0).then(|| Offer {
            more_items: Some(items),
            more_labels: None,
            labels: items * self.labels_per_new_item,
            worth,
            worth_error: offer.error_of_part(worth),
            chance: 0.0,
            ..*offer
        })
    }

    /// The same if only some number of new items can be labelled.
    fn with_items_available(&self, most: usize) -> Self {
        let is_available = |offer: &Offer| offer.more_items.is_none_or(|items| items <= most);
        let mut kept: Vec<Offer> = self.by_items.iter().filter(|offer| is_available(offer)).cloned().collect();
        let beyond = self.by_items.iter().find(|offer| !is_available(offer)).cloned();
        let largest = kept.iter().filter_map(|offer| offer.more_items).max().unwrap_or(0);
        if largest < most {
            kept.extend(beyond.and_then(|offer| self.part_of_items(&offer, most * self.labels_per_new_item)));
        }
        let determining = self.determining.iter().filter(|offer| is_available(offer)).cloned().collect();
        Self { by_items: kept, determining, items_available: most.min(self.items_available), ..self.clone() }
    }

    /// The mean worth of a label per thousand queries; `None` if no labels determine the cell.
    #[must_use]
    pub fn worth_per_label(&self) -> Option<f64> {
        self.labels.filter(|labels| *labels > 0).map(|labels| self.worth / labels as f64)
    }
}

impl Plan {
    /// The largest number of further labels per item that a plan asks for.
    pub const MOST_LABELS: usize = 200;

    /// The largest number of new items that a plan asks for, as a multiple of the present ones.
    pub const MOST_TIMES: usize = 32;

    /// The labels that are expected to save more than their price over a number of queries; in each cell those with the largest difference.
    #[must_use]
    pub fn purchase(&self, label_price: f64, queries: f64) -> Purchase {
        self.purchase_of(label_price, queries, |_| true)
    }

    /// As [`Plan::purchase`], restricted to offers that can be bought, such as only new items.
    #[must_use]
    pub fn purchase_of(&self, label_price: f64, queries: f64, can_be_bought: impl Fn(&Offer) -> bool) -> Purchase {
        let offers = self.cells.iter().filter_map(|plan| plan.best(label_price, queries, &can_be_bought));
        total(offers.filter(|offer| label_price > 0.0 || self.saves(offer)), label_price, queries)
    }

    /// As [`Plan::purchase_of`], with at most `most` labels in all: those that are expected to save most.
    ///
    /// Offers are bought in the order of their further saving per further label. Of an offer that exceeds what is left, a part is bought:
    /// fewer new items, or more labels on fewer items, whichever can be bought, pays and saves more.
    #[must_use]
    pub fn purchase_within(
        &self,
        most: usize,
        label_price: f64,
        queries: f64,
        can_be_bought: impl Fn(&Offer) -> bool,
    ) -> Purchase {
        let steps = |(place, plan): (usize, &CellPlan)| {
            let mut offers = plan.offers(&can_be_bought);
            offers.retain(|offer| label_price > 0.0 || self.saves(offer));
            offers.sort_by(|a, b| a.labels.cmp(&b.labels).then(b.worth.total_cmp(&a.worth)));
            offers.dedup_by_key(|offer| offer.labels);
            let vertices = upper_envelope(offers.iter().map(|offer| (offer.labels as f64, offer.worth)));
            let mut before = (0.0, 0.0);
            let step = |(labels, worth): (f64, f64)| {
                let slope = (worth - before.1) / (labels - before.0);
                before = (labels, worth);
                Some((slope, place, offers.iter().find(|offer| offer.labels as f64 == labels)?.clone()))
            };
            vertices.into_iter().filter_map(step).collect::<Vec<_>>()
        };
        let mut steps: Vec<(f64, usize, Offer)> = self.cells.iter().enumerate().flat_map(steps).collect();
        steps.retain(|(slope, ..)| slope * queries / 1000.0 > label_price);
        steps.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let (mut left, mut bought, mut closed) = (most, vec![None::<Offer>; self.cells.len()], Vec::new());
        for (_, place, offer) in steps {
            let (labels, worth) = bought[place].as_ref().map_or((0, 0.0), |offer| (offer.labels, offer.worth));
            if closed.contains(&place) {
                continue;
            }
            let within = labels.saturating_add(left);
            let best = if offer.labels <= within {
                Some(offer)
            } else {
                closed.push(place);
                // A part may save less per label than the whole offer.
                let pays = |part: &Offer| {
                    let further = part.labels as f64 - labels as f64;
                    part.worth > worth && saving_over(part.worth - worth, queries) > label_price * further
                };
                let parts = [self.cells[place].part_of_items(&offer, within), offer.part_of_labels(within)];
                let bought = parts.into_iter().flatten().filter(|part| can_be_bought(part) && pays(part));
                bought.max_by(|a, b| a.worth.total_cmp(&b.worth).then(b.labels.cmp(&a.labels)))
            };
            if let Some(offer) = best {
                left -= offer.labels.saturating_sub(labels);
                bought[place] = Some(offer);
            }
        }
        total(bought.into_iter().flatten(), label_price, queries)
    }

    /// The plan if only some number of new items can be labelled in each cell, as in a table to choose from. Only purchases change.
    #[must_use]
    pub fn with_items_available(&self, available: impl Fn(CellId) -> usize) -> Self {
        let cells = self.cells.iter().map(|plan| plan.with_items_available(available(plan.cell))).collect();
        Self { cells, ..self.clone() }
    }

    /// The cells with the largest worth per label, at most `cells` of them; `None` if there are none. Cells worth less than 1 % of the best one,
    /// or less than 0.001 % of the expected cost of queries, are left out, and so are those with less than a tenth of the largest worth per
    /// label.
    #[must_use]
    pub fn begin_with(&self, cells: usize) -> Option<FirstCells> {
        self.begin_with_of(cells, |_| true)
    }

    /// As [`Plan::begin_with`], among offers that can be bought, such as only new items.
    #[must_use]
    pub fn begin_with_of(&self, cells: usize, can_be_bought: impl Fn(&Offer) -> bool) -> Option<FirstCells> {
        const NEGLIGIBLE_PART: f64 = 0.01;
        let mut asked = self.asked_of(&can_be_bought);
        let most = asked.iter().map(|offer| offer.worth).fold(0.0, f64::max);
        asked.retain(|offer| self.saves(offer) && offer.worth > NEGLIGIBLE_PART * most);
        asked.sort_by(|a, b| b.worth_per_label().total_cmp(&a.worth_per_label()).then(a.cell.cmp(&b.cell)));
        let largest = asked.first().map_or(0.0, Offer::worth_per_label);
        asked.retain(|offer| offer.worth_per_label() >= PART_OF_LARGEST_WORTH_PER_LABEL * largest);
        let mut found = FirstCells { cells: Vec::new(), determined: 0, labels: 0, worth: 0.0, worth_error: 0.0 };
        for offer in asked.iter().take(cells) {
            found.cells.push(offer.cell);
            let is_determined =
                |plan: &CellPlan| plan.cell == offer.cell && plan.determining_of(&can_be_bought).is_some();
            found.determined += usize::from(self.cells.iter().any(is_determined));
            found.labels = found.labels.saturating_add(offer.labels);
            found.worth += offer.worth;
            found.worth_error = found.worth_error.hypot(offer.worth_error);
        }
        Some(found).filter(|found| !found.cells.is_empty())
    }

    /// The labels that the plan asks for if prices are unknown, one offer per cell: see [`CellPlan::asked`].
    #[must_use]
    pub fn asked(&self) -> Vec<Offer> {
        self.asked_of(|_| true)
    }

    /// As [`Plan::asked`], each offer in one way: the cheaper one of those that can be bought, such as only new items.
    #[must_use]
    pub fn asked_of(&self, can_be_bought: impl Fn(&Offer) -> bool) -> Vec<Offer> {
        let asked = |plan: &CellPlan| {
            let determining = plan.determining_of(&can_be_bought);
            determining.or_else(|| plan.asked_of(&can_be_bought).filter(|offer| self.saves(offer)))
        };
        self.cells.iter().filter_map(asked).collect()
    }

    /// Whether labels are expected to save enough to be named where no price says whether they pay.
    fn saves(&self, offer: &Offer) -> bool {
        let cost = self.promise.as_ref().map_or(0.0, |promise| 1000.0 * promise.cost);
        offer.worth > NEGLIGIBLE_PART_OF_COST * cost
    }

    /// The labels that would determine cells, over all cells where a reasonable number does, by the cheaper way in each; `None` if there are
    /// none.
    #[must_use]
    pub fn to_certainty(&self) -> Option<ToCertainty> {
        self.to_certainty_of(|_| true)
    }

    /// As [`Plan::to_certainty`], among offers that can be bought, such as only new items.
    #[must_use]
    pub fn to_certainty_of(&self, can_be_bought: impl Fn(&Offer) -> bool) -> Option<ToCertainty> {
        let mut all = ToCertainty { cells: Vec::new(), labels: 0, share: 0.0 };
        for plan in &self.cells {
            let Some(offer) = plan.determining_of(&can_be_bought) else { continue };
            all.cells.push(plan.cell);
            all.labels = all.labels.saturating_add(offer.labels);
            all.share += plan.share;
        }
        Some(all).filter(|all| !all.cells.is_empty())
    }

    /// The size of a pool of items like the calibration rows that has the new items of some offers on average; `None` if they have none.
    #[must_use]
    pub fn pool_for(&self, offers: &[Offer]) -> Option<f64> {
        let size = |offer: &Offer| {
            let share = self.cells.iter().find(|plan| plan.cell == offer.cell)?.share;
            Some(offer.more_items? as f64 / share)
        };
        offers.iter().filter_map(size).reduce(f64::max).filter(|size| *size > 0.0)
    }

    /// The share of the calibration rows in undetermined cells.
    #[must_use]
    pub fn open(&self) -> f64 {
        self.cells.iter().map(|plan| plan.share).sum()
    }
}

/// The sum of some offers.
fn total(offers: impl Iterator<Item = Offer>, label_price: f64, queries: f64) -> Purchase {
    let mut all =
        Purchase { cells: Vec::new(), offers: Vec::new(), labels: 0, cost: 0.0, saving: 0.0, saving_error: 0.0 };
    for offer in offers {
        all.cells.push(offer.cell);
        all.labels = all.labels.saturating_add(offer.labels);
        all.cost += offer.price(label_price);
        all.saving += offer.saving(queries);
        all.saving_error = all.saving_error.hypot(saving_over(offer.worth_error, queries));
        all.offers.push(offer);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::Loss;
    use crate::partition::Partition;
    use crate::router::Router;
    use crate::table::Table;
    use crate::task::Task;

    fn offer(more_items: Option<usize>, more_labels: Option<usize>, labels: usize, worth: f64) -> Offer {
        Offer { cell: CellId(0), more_items, more_labels, labels, worth, worth_error: 1.0, chance: 0.0 }
    }

    /// A cell of twenty items, to which up to a hundred new items or eight more labels per item are offered.
    fn cell() -> CellPlan {
        CellPlan {
            cell: CellId(0),
            share: 1.0,
            action: "predict".to_owned(),
            rival: "abstain".to_owned(),
            margin: None,
            at_stake: 10.0,
            worth: 8.0,
            chance: None,
            more_labels: None,
            chance_by_labels: None,
            more_items: None,
            chance_by_items: None,
            labels: None,
            labels_per_new_item: 2,
            by_items: vec![offer(Some(10), None, 20, 2.0), offer(Some(100), None, 200, 6.0)],
            by_labels: vec![offer(None, Some(8), 160, 8.0)],
            determining: Vec::new(),
            items_available: usize::MAX,
        }
    }

    #[test]
    fn part_of_an_offer_has_no_more_new_items_than_there_are() {
        let (cell, of_labels) = (cell(), offer(None, Some(8), 160, 8.0));
        assert_eq!(cell.part_of_items(&of_labels, 100).unwrap().more_items, Some(50));
        let few = cell.with_items_available(10);
        let part = few.part_of_items(&of_labels, 100).unwrap();
        assert_eq!((part.more_items, part.labels, part.worth), (Some(10), 20, 2.0));
        assert_eq!(cell.with_items_available(0).part_of_items(&of_labels, 100), None);
    }

    #[test]
    fn part_of_more_labels_has_a_part_of_their_worth() {
        let part = offer(None, Some(8), 160, 8.0).part_of_labels(40).unwrap();
        assert_eq!((part.more_labels, part.more_items, part.labels, part.worth), (Some(8), None, 40, 2.0));
        assert!((part.worth_error - 0.5).abs() < 1e-12, "{part:?}");
        assert_eq!(offer(None, Some(8), 160, 8.0).part_of_labels(0), None);
        assert_eq!(offer(Some(10), None, 20, 2.0).part_of_labels(10), None);
    }

    #[test]
    fn every_label_that_is_bought_within_a_limit_saves_its_price() {
        let mut plan = plan_of(vec![cell()]);
        for price in [0.0, 0.01, 0.02, 0.03, 0.04, 0.045, 0.06, 0.09, 0.11] {
            let mut before = (0, 0.0);
            for most in 0..=220 {
                let bought = plan.purchase_within(most, price, 1000.0, |_| true);
                assert!(bought.labels <= most, "{bought:?}");
                assert!(bought.saving >= bought.cost, "{price}, {most}: {bought:?}");
                let further = (bought.labels as f64 - before.0 as f64, bought.saving - before.1);
                assert!(further.1 >= price * further.0 - 1e-12, "{price}, {most}: {bought:?} after {before:?}");
                before = (bought.labels, bought.saving);
            }
        }
        // Of the labels that a limit allows, all are bought if they are free, also on the items that are there.
        for most in [20, 40, 160] {
            let bought = plan.purchase_within(most, 0.0, 1000.0, |offer| offer.more_labels.is_some());
            assert_eq!((bought.labels, bought.saving), (most, 0.05 * most as f64), "{bought:?}");
        }
        plan.cells[0].by_labels.clear();
        assert!(plan.purchase_within(100, 0.0, 1000.0, |offer| offer.more_labels.is_some()).cells.is_empty());
    }

    /// Labels that save next to nothing are not recommended, unless their price is known and lower.
    #[test]
    fn negligible_savings_are_none() {
        let mut small = cell();
        small.by_items.iter_mut().chain(&mut small.by_labels).for_each(|offer| offer.worth *= 1e-9);
        let plan = plan_of(vec![small]);
        assert!(plan.purchase(0.0, 1000.0).cells.is_empty());
        assert!(plan.purchase_within(100, 0.0, 1000.0, |_| true).cells.is_empty());
        assert!(plan.asked().is_empty() && plan.begin_with(3).is_none());
        assert!(!plan.purchase(1e-12, 1e6).cells.is_empty());
        assert!(!plan_of(vec![cell()]).purchase(0.0, 1000.0).cells.is_empty());
    }

    /// A plan with these cells.
    fn plan_of(cells: Vec<CellPlan>) -> Plan {
        let labels = |row: usize| if row.is_multiple_of(3) { [2, 0] } else { [1, 1] };
        let table = Table::new(["no", "yes"], vec![0.5; 120]).unwrap();
        let table = table.with_votes((0..60).flat_map(labels).collect()).unwrap();
        let router = Router::calibrate(&table, &Partition::confidence(1)).unwrap();
        let task = Task::new(Loss::brier()).abstain(0.3).unwrap();
        let (certificate, policy) = (router.certificate(&task, 0.95).unwrap(), router.policy(&task).unwrap());
        let judgement = certificate.judge(&policy).unwrap();
        Plan { certificate, judgement, promise: policy.promise(), max_labels_per_item: None, cells }
    }
}
