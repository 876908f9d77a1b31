//! The two ways to buy the labels of a cell: new items, or more labels on the items that the router has.

use pointsman::Router;
use pointsman::certify::{Offer, Plan};
use serde::Serialize;

use crate::render::number::{count, counted};

/// The labels to buy for one cell, by the cheaper way.
#[derive(Debug, Serialize)]
pub(super) struct Way {
    cell: u32,
    labels: usize,
    /// New items, and the labels for each; null if more labels on present items are cheaper.
    new_items: Option<usize>,
    labels_per_new_item: Option<usize>,
    /// Items that the router has, and how many more labels each gets; null if new items are cheaper.
    present_items: Option<usize>,
    more_labels_per_item: Option<usize>,
}

impl Way {
    pub(super) fn new(offer: &Offer, found: &Plan, router: &Router) -> Self {
        let per_item =
            found.cells.iter().find(|plan| plan.cell == offer.cell).map_or(1, |plan| plan.labels_per_new_item);
        // An offer that names both ways counts the labels of the cheaper one.
        let is_cheaper = |items: &usize| offer.more_labels.is_none() || items.saturating_mul(per_item) == offer.labels;
        let new_items = offer.more_items.filter(is_cheaper);
        let more_labels = offer.more_labels.filter(|_| new_items.is_none());
        Self {
            cell: offer.cell.0,
            labels: offer.labels,
            new_items,
            labels_per_new_item: new_items.map(|_| per_item),
            present_items: more_labels.map(|_| router.mixture(offer.cell).len()),
            more_labels_per_item: more_labels,
        }
    }

    /// How many more labels each present item gets; `None` if new items are cheaper.
    pub(super) fn more_labels_per_item(&self) -> Option<usize> {
        self.more_labels_per_item
    }

    /// The labels in words, as in "cell 3: 40 new items with 2 labels each".
    pub(super) fn in_words(&self) -> String {
        let cell = self.cell;
        match (self.new_items, self.labels_per_new_item, self.present_items, self.more_labels_per_item) {
            (Some(items), Some(labels), ..) => {
                let labels = counted(labels, "label each", "labels each");
                format!("cell {cell}: {} with {labels}", counted(items, "new item", "new items"))
            }
            (.., Some(items), Some(labels)) => {
                let labels = counted(labels, "more label", "more labels");
                format!(
                    "cell {cell}: {labels} on each of the {} that the router has there",
                    counted(items, "item", "items")
                )
            }
            _ => format!("cell {cell}: {} labels", count(self.labels)),
        }
    }
}
