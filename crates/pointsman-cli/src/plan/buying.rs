//! Which of the labels offered to buy.

use std::collections::HashMap;

use pointsman::CellId;
use pointsman::certify::{CellPlan, Offer, Plan, Purchase, ToCertainty, is_distinct};

use super::FIRST_CELLS;
use crate::args::{OnlyLabels, PlanArgs};

/// The queries over which savings are summed if the traffic is unknown: savings are stated per thousand.
const QUERIES_IF_UNKNOWN: f64 = 1000.0;

/// The labels to buy first.
#[derive(Debug)]
pub(super) struct FirstStep {
    pub(super) offers: Vec<Offer>,
    pub(super) cells: Vec<CellId>,
    pub(super) labels: usize,
    /// The expected saving per thousand queries, and its standard error.
    pub(super) worth: f64,
    pub(super) worth_error: f64,
    /// The number of labels within which they are the best, if they are not all labels of some cells.
    pub(super) most: Option<usize>,
}

impl FirstStep {
    /// Whether the saving is more than two standard errors above nothing.
    pub(super) fn is_distinct(&self) -> bool {
        is_distinct(self.worth, self.worth_error)
    }
}

/// The labels that can be bought, and how many.
///
/// A recommendation has each label once: those on new items and those on the router's items are parts of it, and so are the lists of both.
#[derive(Debug, Clone, Copy)]
pub(super) struct Buying<'a> {
    args: &'a PlanArgs,
}

impl<'a> Buying<'a> {
    pub(super) fn new(args: &'a PlanArgs) -> Self {
        Self { args }
    }

    /// The largest number of labels to buy, if there is one.
    pub(super) fn most_labels(&self) -> Option<usize> {
        let spent = self.args.spend.zip(self.args.label_price.filter(|price| *price > 0.0));
        self.args.max_labels.or_else(|| spent.map(|(most, price)| (most / price + 1e-9).floor() as usize))
    }

    /// The price of a label and the traffic, by which labels must pay; free labels and a thousand queries if one is unknown.
    fn prices(&self) -> (f64, f64) {
        self.args.label_price.zip(self.args.traffic).unwrap_or((0.0, self.args.traffic.unwrap_or(QUERIES_IF_UNKNOWN)))
    }

    /// Whether the labels are of a kind that can be bought.
    pub(super) fn can_be_bought(&self, offer: &Offer) -> bool {
        match self.args.only {
            None => true,
            Some(OnlyLabels::NewItems) => offer.more_items.is_some(),
            Some(OnlyLabels::PresentItems) => offer.more_labels.is_some(),
        }
    }

    /// The labels that are worth their price, or the best within the largest number; `None` without a price and traffic, or such a number.
    pub(super) fn purchase(&self, found: &Plan) -> Option<Purchase> {
        match self.most_labels() {
            Some(most) => Some(self.purchase_of_at_most(found, most)),
            None => self.is_priced().then(|| self.purchase_without_limit(found)),
        }
    }

    /// The labels that are expected to save most among at most `most` of those that are worth their price, if that is known.
    pub(super) fn purchase_of_at_most(&self, found: &Plan, most: usize) -> Purchase {
        let (price, queries) = self.prices();
        found.purchase_within(most, price, queries, |offer| self.can_be_bought(offer))
    }

    /// The labels that are worth their price, whatever the largest number of labels.
    pub(super) fn purchase_without_limit(&self, found: &Plan) -> Purchase {
        let (price, queries) = self.prices();
        found.purchase_of(price, queries, |offer| self.can_be_bought(offer))
    }

    /// The labels to ask for in a cell if their price is unknown, with the number by either way if both kinds can be bought.
    pub(super) fn asked(&self, plan: &CellPlan) -> Option<Offer> {
        match self.args.only {
            None => plan.asked(),
            Some(_) => plan.asked_of(|offer| self.can_be_bought(offer)),
        }
    }

    /// Whether labels that can be bought make the action of a cell certain.
    pub(super) fn determines(&self, plan: &CellPlan) -> bool {
        plan.determining_of(|offer| self.can_be_bought(offer)).is_some()
    }

    /// The labels that make cells certain, of those that can be bought; `None` if none do.
    pub(super) fn certainty(&self, found: &Plan) -> Option<ToCertainty> {
        found.to_certainty_of(|offer| self.can_be_bought(offer))
    }

    /// The cells that labels which can be bought make certain, with these labels.
    pub(super) fn determining<'p>(&self, found: &'p Plan) -> Vec<(&'p CellPlan, Offer)> {
        let with_labels = |plan: &'p CellPlan| Some((plan, plan.determining_of(|offer| self.can_be_bought(offer))?));
        found.cells.iter().filter_map(with_labels).collect()
    }

    /// The first labels to buy, if labels that can be bought are expected to save anything: those of the first cells. If their saving cannot
    /// be distinguished from nothing, they are the best within as many labels, whatever the cell, which a command can list.
    pub(super) fn begin_with(&self, found: &Plan) -> Option<FirstStep> {
        let first = found.begin_with_of(FIRST_CELLS, |offer| self.can_be_bought(offer))?;
        let has_purchase = self.is_priced() || self.most_labels().is_some();
        let most = Some(first.labels).filter(|_| !has_purchase && !first.is_distinct());
        let offers = match most {
            None => self.asked_in(found, &first.cells),
            Some(most) => self.purchase_of_at_most(found, most).offers,
        };
        Some(FirstStep {
            cells: offers.iter().map(|offer| offer.cell).collect(),
            labels: offers.iter().map(|offer| offer.labels).sum(),
            worth: offers.iter().map(|offer| offer.worth).sum(),
            worth_error: offers.iter().map(|offer| offer.worth_error).fold(0.0, f64::hypot),
            most,
            offers,
        })
    }

    /// The labels to ask for in some cells if their price is unknown, each in one way.
    fn asked_in(&self, found: &Plan, cells: &[CellId]) -> Vec<Offer> {
        found.asked_of(|offer| self.can_be_bought(offer) && cells.contains(&offer.cell))
    }

    /// The recommended labels, at most one offer per cell: the purchase or, without one, those that the plan asks for.
    pub(super) fn recommended(&self, found: &Plan) -> Vec<Offer> {
        self.purchase(found).map_or_else(|| found.asked_of(|offer| self.can_be_bought(offer)), |bought| bought.offers)
    }

    /// The recommended labels of one kind, on new items or on the router's. New items are those of a table with some number of items in each
    /// cell: if it has too few, the rest of the largest number of labels goes to other cells.
    pub(super) fn list(
        &self,
        found: &Plan,
        recommended: &[Offer],
        new_in_table: Option<&HashMap<CellId, usize>>,
    ) -> Vec<Offer> {
        let (new, present): (Vec<Offer>, Vec<Offer>) =
            recommended.iter().cloned().partition(|offer| offer.more_items.is_some());
        match (new_in_table, self.most_labels()) {
            (None, _) => present,
            (Some(_), None) => new,
            (Some(available), Some(most)) => {
                let left = most.saturating_sub(present.iter().map(|offer| offer.labels).sum());
                let is_new = |offer: &Offer| {
                    offer.more_items.is_some() && present.iter().all(|present| present.cell != offer.cell)
                };
                let (price, queries) = self.prices();
                let available = found.with_items_available(|cell| available.get(&cell).copied().unwrap_or(0));
                available
                    .purchase_within(left, price, queries, |offer| is_new(offer) && self.can_be_bought(offer))
                    .offers
            }
        }
    }

    /// Whether labels must pay for themselves.
    pub(super) fn is_priced(&self) -> bool {
        self.args.label_price.is_some() && self.args.traffic.is_some()
    }
}
