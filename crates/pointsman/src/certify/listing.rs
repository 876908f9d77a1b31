//! The items of a table to label, best first.

use super::offer::Offer;
use super::plan::{CellPlan, ItemToLabel, Plan};
use crate::error::Result;
use crate::router::Router;
use crate::table::Table;

impl Plan {
    /// The rows of a table to label for the wanted cells, best first. Rows with votes get more labels if they are among the router's rows;
    /// other rows with votes are left out, because their labels would not be in its cells. Rows of a table without votes are new items,
    /// which get as many labels as the router's items have.
    ///
    /// # Errors
    /// If the classes differ or a feature is missing.
    pub fn items(
        &self,
        router: &Router,
        table: &Table,
        wanted: impl Fn(&CellPlan) -> bool,
    ) -> Result<Vec<ItemToLabel>> {
        // Only the way that the table offers: labels by the other way are worth something else.
        let is_possible =
            |offer: &Offer| if table.has_votes() { offer.more_labels.is_some() } else { offer.more_items.is_some() };
        let cells = self.cells.iter().filter(|plan| wanted(plan));
        let offers: Vec<Offer> = cells.filter_map(|plan| plan.determining_of(is_possible)).collect();
        self.items_of(router, table, &offers)
    }

    /// The rows of a table to label for some offers, as [`items`](Self::items), in the order of their worth per label: whoever labels
    /// only the first of them has labelled those that are worth most.
    ///
    /// # Errors
    /// As [`items`](Self::items).
    pub fn items_of(&self, router: &Router, table: &Table, offers: &[Offer]) -> Result<Vec<ItemToLabel>> {
        let found = router.find_cells(table)?;
        let kept = router.rows_in_common(table);
        let mut items = Vec::new();
        for offer in offers {
            let Some(plan) = self.cells.iter().find(|plan| plan.cell == offer.cell) else { continue };
            let rows = found.iter().enumerate().filter(|(_, cell)| **cell == offer.cell).map(|(row, _)| row);
            let rows: Vec<usize> = rows.filter(|&row| !table.has_votes() || kept[row]).collect();
            if table.has_votes() {
                items.extend(self.more_labels(table, offer, &rows));
            } else {
                items.extend(new_items(plan, offer, &rows));
            }
        }
        let worth_per_label = |item: &ItemToLabel| item.worth / item.labels.max(1) as f64;
        items.sort_by(|a, b| worth_per_label(b).total_cmp(&worth_per_label(a)));
        Ok(items)
    }

    /// Rows of the router that get more labels, up to the largest number per item and that of the offer. All labels of an offer are worth
    /// the same each.
    fn more_labels(&self, table: &Table, offer: &Offer, rows: &[usize]) -> Vec<ItemToLabel> {
        let further = |row: usize| {
            let given = table.votes(row).map_or(0, |votes| votes.k() as usize);
            let left = self.max_labels_per_item.map_or(usize::MAX, |most| most.saturating_sub(given));
            offer.more_labels.unwrap_or(0).min(left)
        };
        let mut left = offer.labels;
        let item = |&row: &usize| {
            let labels = further(row).min(left);
            left -= labels;
            ItemToLabel { row, cell: offer.cell, labels, worth: offer.worth_per_label() * labels as f64 }
        };
        rows.iter().map(item).filter(|item| item.labels > 0).collect()
    }

    /// The number of new items offered that are not listed, because the table has too few.
    #[must_use]
    pub fn items_missing(&self, listed: &[ItemToLabel], offers: &[Offer]) -> usize {
        let missing = |offer: &Offer| {
            let found = listed.iter().filter(|item| item.cell == offer.cell).count();
            offer.more_items.unwrap_or(0).saturating_sub(found)
        };
        offers.iter().map(missing).sum()
    }

    /// The expected saving per thousand queries of the items listed, also if a table has fewer than offered: the sum of their worths.
    #[must_use]
    pub fn worth_of_listed(&self, listed: &[ItemToLabel]) -> f64 {
        listed.iter().map(|item| item.worth).sum()
    }

    /// The standard error of that saving, for the offers that are listed.
    #[must_use]
    pub fn error_of_listed(&self, listed: &[ItemToLabel], offers: &[Offer]) -> f64 {
        let error = |offer: &Offer| {
            let of_cell = listed.iter().filter(|item| item.cell == offer.cell);
            offer.error_of_part(of_cell.map(|item| item.worth).sum())
        };
        offers.iter().map(error).fold(0.0, f64::hypot)
    }
}

/// New items of one cell. Each has a part of the worth of the step that it belongs to: items save less and less each.
fn new_items(plan: &CellPlan, offer: &Offer, rows: &[usize]) -> Vec<ItemToLabel> {
    let listed = rows.len().min(offer.more_items.unwrap_or(0));
    let worth = |items: usize| plan.worth_of_items(items).min(offer.worth);
    let all = if listed == offer.more_items.unwrap_or(0) { offer.worth } else { worth(listed) };
    let offered = plan.by_items.iter().filter_map(|offer| offer.more_items).filter(|items| *items < listed);
    let points = offered.map(|items| (items as f64, worth(items).min(all))).chain([(listed as f64, all)]);
    let vertices = upper_envelope(points);
    let labels = plan.labels_per_new_item;
    let mut items = Vec::with_capacity(listed);
    let (mut from, mut before) = (0.0, 0.0);
    for (to, worth) in vertices {
        let each = (worth - before) / (to - from);
        let rows = rows[from as usize..to as usize].iter();
        items.extend(rows.map(|&row| ItemToLabel { row, cell: offer.cell, labels, worth: each }));
        (from, before) = (to, worth);
    }
    items
}

/// The vertices of the least concave function from the origin that is at least as large as some points, whose first coordinates increase.
pub(super) fn upper_envelope(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut vertices: Vec<(f64, f64)> = vec![(0.0, 0.0)];
    for point in points.filter(|(x, _)| *x > 0.0) {
        let slope = |a: (f64, f64), b: (f64, f64)| (b.1 - a.1) / (b.0 - a.0);
        while let [.., before, last] = vertices.as_slice()
            && slope(*before, *last) <= slope(*last, point)
        {
            vertices.pop();
        }
        vertices.push(point);
    }
    vertices.remove(0);
    vertices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelope_is_concave_and_ends_at_the_last_point() {
        let points = [(1.0, 0.1), (2.0, 1.0), (4.0, 1.5), (8.0, 1.6)];
        assert_eq!(upper_envelope(points.into_iter()), [(2.0, 1.0), (4.0, 1.5), (8.0, 1.6)]);
        assert_eq!(upper_envelope([(3.0, 0.0)].into_iter()), [(3.0, 0.0)]);
        assert!(upper_envelope([(0.0, 0.0)].into_iter()).is_empty());
    }
}
