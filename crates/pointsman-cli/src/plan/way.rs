//! The labels to buy for a cell: on new items, or more on the items that the router has.

use pointsman::Router;
use pointsman::certify::{Offer, Plan};
use serde::Serialize;

use crate::render::number::{count, counted};

/// The labels to buy for one cell.
#[derive(Debug, Serialize)]
pub(super) struct Way {
    cell: u32,
    labels: usize,
    /// New items, and the labels for each; null if items that the router has get more labels.
    new_items: Option<usize>,
    labels_per_new_item: Option<usize>,
    /// The items of the router that get more labels, and the most that one of them gets; null if items are new.
    present_items: Option<usize>,
    more_labels_per_item: Option<usize>,
    /// The items of the router in this cell.
    #[serde(skip)]
    items_of_router: usize,
    /// Those of them that may get another label.
    #[serde(skip)]
    items_below_limit: usize,
}

impl Way {
    /// `offer` is one of new items or of more labels, not of both.
    pub(super) fn new(offer: &Offer, found: &Plan, router: &Router) -> Self {
        let plan = found.cells.iter().find(|plan| plan.cell == offer.cell);
        let mixture = router.mixture(offer.cell);
        let further = |row: usize, more: usize| {
            let given = mixture.table().votes(row).map_or(0, |votes| votes.k() as usize);
            more.min(found.max_labels_per_item.map_or(usize::MAX, |most| most.saturating_sub(given)))
        };
        // Items get labels one after another, until those of the offer are given.
        let items_for = |more: usize| {
            let each = mixture.rows().map(|row| further(row, more)).filter(|labels| *labels > 0);
            let given_before = each.scan(0, |sum, labels| Some(std::mem::replace(sum, *sum + labels)));
            given_before.take_while(|before| *before < offer.labels).count()
        };
        Self {
            cell: offer.cell.0,
            labels: offer.labels,
            new_items: offer.more_items,
            labels_per_new_item: offer.more_items.and(plan).map(|plan| plan.labels_per_new_item),
            present_items: offer.more_labels.map(items_for),
            more_labels_per_item: offer.more_labels,
            items_of_router: mixture.len(),
            items_below_limit: mixture.rows().filter(|&row| further(row, 1) > 0).count(),
        }
    }

    /// The most labels that an item of the router gets; `None` if items are new.
    pub(super) fn more_labels_per_item(&self) -> Option<usize> {
        self.more_labels_per_item
    }

    /// The items of the router that get more labels; `None` if items are new.
    pub(super) fn present_items(&self) -> Option<usize> {
        self.present_items
    }

    /// The labels in words, as in "cell 3: 40 new items with 2 labels each".
    pub(super) fn in_words(&self) -> String {
        let cell = self.cell;
        match (self.new_items, self.labels_per_new_item, self.present_items, self.more_labels_per_item) {
            (Some(items), Some(labels), ..) => {
                let labels = counted(labels, "label each", "labels each");
                format!("cell {cell}: {} with {labels}", counted(items, "new item", "new items"))
            }
            (.., Some(items), Some(most)) => {
                let labels = counted(most, "more label", "more labels");
                let of = counted(self.items_of_router, "item", "items");
                let which = if items == self.items_of_router {
                    format!("the {of} that the router has there")
                } else if items == self.items_below_limit {
                    format!(
                        "{} of the {of} that the router has there, since the others have all the labels that an item may get",
                        count(items)
                    )
                } else {
                    format!("{} of the {of} that the router has there", count(items))
                };
                match most * items == self.labels {
                    true => format!("cell {cell}: {labels} on each of {which}"),
                    false => format!(
                        "cell {cell}: {} in all, at most {labels} on each of {which}",
                        counted(self.labels, "label", "labels")
                    ),
                }
            }
            _ => format!("cell {cell}: {} labels", count(self.labels)),
        }
    }
}
