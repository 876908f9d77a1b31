//! Offers of labels: what they cost and what they are expected to save.

use crate::partition::CellId;

/// Labels for one cell, and their expected saving.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Offer {
    /// The cell.
    pub cell: CellId,
    /// The number of new items, if that is one way to get the labels.
    pub more_items: Option<usize>,
    /// The number of further labels on each present item, if that is one way.
    pub more_labels: Option<usize>,
    /// The total number of labels, by the cheaper way.
    pub labels: usize,
    /// The expected saving per thousand queries of all cells.
    pub worth: f64,
    /// Its standard error: the standard deviation of what they save, which is nothing unless they change the action.
    pub worth_error: f64,
    /// The probability that they determine the cell.
    pub chance: f64,
}

impl Offer {
    /// The expected saving over a number of queries.
    #[must_use]
    pub fn saving(&self, queries: f64) -> f64 {
        saving_over(self.worth, queries)
    }

    /// The standard error of the worth of a part of these labels: labels that save a part on average change the action as much less often, so
    /// that variances are in proportion.
    pub(super) fn error_of_part(&self, worth: f64) -> f64 {
        if self.worth > 0.0 { self.worth_error * (worth / self.worth).max(0.0).sqrt() } else { 0.0 }
    }

    /// At most `most` of these labels, if they are more labels on present items: all of them are worth the same. `None` if there are none.
    pub(super) fn part_of_labels(&self, most: usize) -> Option<Self> {
        let labels = most.min(self.labels);
        self.more_labels.filter(|_| labels > 0)?;
        let worth = self.worth * labels as f64 / self.labels as f64;
        let worth_error = self.error_of_part(worth);
        Some(Self { more_items: None, labels, worth, worth_error, chance: 0.0, ..self.clone() })
    }

    /// The price of the labels.
    #[must_use]
    pub fn price(&self, label_price: f64) -> f64 {
        price_of_labels(self.labels, label_price)
    }

    /// The worth per label; zero without labels.
    #[must_use]
    pub fn worth_per_label(&self) -> f64 {
        if self.labels == 0 { 0.0 } else { self.worth / self.labels as f64 }
    }

    /// The number of queries after which the labels have saved their price; `None` if they save nothing.
    #[must_use]
    pub fn pays_after(&self, label_price: f64) -> Option<f64> {
        pays_after(self.price(label_price), self.worth)
    }
}

/// Labels that are expected to save more than their price.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Purchase {
    /// The cells, best first.
    pub cells: Vec<CellId>,
    /// The offer for each cell.
    pub offers: Vec<Offer>,
    /// The total number of labels.
    pub labels: usize,
    /// The total price.
    pub cost: f64,
    /// The expected saving.
    pub saving: f64,
    /// Its standard error, as if what labels save in one cell were independent of the others.
    pub saving_error: f64,
}

impl Purchase {
    /// Whether the saving is more than two standard errors above the price.
    #[must_use]
    pub fn is_distinct(&self) -> bool {
        is_distinct(self.saving - self.cost, self.saving_error)
    }
}

/// The labels that would determine cells, each with probability ¾.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToCertainty {
    /// The cells, largest worth per label first.
    pub cells: Vec<CellId>,
    /// The total number of labels.
    pub labels: usize,
    /// The share of the calibration rows in these cells.
    pub share: f64,
}

/// The cells to label first.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FirstCells {
    /// The cells, best first.
    pub cells: Vec<CellId>,
    /// The number of these cells that the labels are likely to determine.
    pub determined: usize,
    /// The total number of labels.
    pub labels: usize,
    /// The expected saving per thousand queries of all cells.
    pub worth: f64,
    /// Its standard error, as if what labels save in one cell were independent of the others.
    pub worth_error: f64,
}

impl FirstCells {
    /// Whether the saving is more than two standard errors above nothing.
    #[must_use]
    pub fn is_distinct(&self) -> bool {
        is_distinct(self.worth, self.worth_error)
    }

    /// The price of the labels.
    #[must_use]
    pub fn price(&self, label_price: f64) -> f64 {
        price_of_labels(self.labels, label_price)
    }

    /// The number of queries after which the labels have saved their price; `None` if they save nothing.
    #[must_use]
    pub fn pays_after(&self, label_price: f64) -> Option<f64> {
        pays_after(self.price(label_price), self.worth)
    }
}

/// The price of some labels.
#[must_use]
pub fn price_of_labels(labels: usize, label_price: f64) -> f64 {
    labels as f64 * label_price
}

/// The saving over a number of queries, given that per thousand queries; also its standard error, given that per thousand queries.
#[must_use]
pub fn saving_over(per_thousand: f64, queries: f64) -> f64 {
    per_thousand / 1000.0 * queries
}

/// The number of queries after which a saving per thousand queries has reached a price; `None` if nothing is saved.
fn pays_after(price: f64, worth: f64) -> Option<f64> {
    (worth > 0.0).then(|| 1000.0 * price / worth)
}

/// Whether an expected saving, less its price if that is known, is more than two standard errors above nothing.
#[must_use]
pub fn is_distinct(saving: f64, error: f64) -> bool {
    saving > 2.0 * error
}
