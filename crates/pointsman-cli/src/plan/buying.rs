//! Which of the labels offered to buy.

use pointsman::certify::{Offer, Plan, Purchase};

use crate::args::PlanArgs;

/// The queries over which savings are summed if the traffic is unknown: savings are stated per thousand.
const QUERIES_IF_UNKNOWN: f64 = 1000.0;

/// The labels that can be bought, and how many.
#[derive(Debug, Clone, Copy)]
pub(super) struct Buying<'a> {
    args: &'a PlanArgs,
    /// Whether the items to choose from have votes, so that they get more labels; `None` if they are not known.
    have_votes: Option<bool>,
}

impl<'a> Buying<'a> {
    pub(super) fn new(args: &'a PlanArgs, have_votes: Option<bool>) -> Self {
        Self { args, have_votes }
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

    fn can_be_bought(&self, offer: &Offer) -> bool {
        match self.have_votes {
            None => true,
            Some(true) => offer.more_labels.is_some(),
            Some(false) => offer.more_items.is_some(),
        }
    }

    /// The labels that are worth their price, or the best within the largest number; `None` without a price and traffic, or such a number.
    pub(super) fn purchase(&self, found: &Plan) -> Option<Purchase> {
        let ((price, queries), can_be_bought) = (self.prices(), |offer: &Offer| self.can_be_bought(offer));
        match self.most_labels() {
            Some(most) => Some(found.purchase_within(most, price, queries, can_be_bought)),
            None => self.is_priced().then(|| found.purchase_of(price, queries, can_be_bought)),
        }
    }

    /// The labels to list items for. A largest number of labels ends the list, which begins with the items that are worth most.
    pub(super) fn offers(&self, found: &Plan) -> Vec<Offer> {
        let ((price, queries), can_be_bought) = (self.prices(), |offer: &Offer| self.can_be_bought(offer));
        match (self.is_priced(), self.most_labels()) {
            (true, _) => found.purchase_of(price, queries, can_be_bought).offers,
            (false, Some(_)) => found.purchase_within(usize::MAX, price, queries, can_be_bought).offers,
            (false, None) => found.asked_of(can_be_bought),
        }
    }

    /// Whether labels must pay for themselves.
    pub(super) fn is_priced(&self) -> bool {
        self.args.label_price.is_some() && self.args.traffic.is_some()
    }
}
