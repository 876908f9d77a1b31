//! The losses of single rows by their own labels, corrected for the bias of few labels. They evaluate decisions on held-out rows.

use std::borrow::Cow;
use std::sync::Arc;

use super::by_row::{RowEstimates, has_several_labels};
use super::leaves::LeafEstimator;
use super::oracles::RowLosses;
use super::{BorrowedLosses, Decomposition, VoteGroups};
use crate::loss::Loss;
use crate::numeric::weighted::WeightedSums;
use crate::router::{Mixture, label_free};
use crate::table::Table;
use crate::task::Estimator;

/// The seed of the order among rows of equal confidence.
const GROUP_SEED: u64 = 0x9709;

/// Rows per group within which a panel's loss beyond the irreducible loss is taken as constant.
const ROWS_PER_GROUP: usize = 200;

/// Losses per row, in the order of a table's rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct LabelLosses {
    /// The loss of the row's own prediction.
    pub(crate) total: Vec<f64>,
    /// The irreducible loss; NaN if labels do not separate noise from error.
    pub(crate) irreducible: Vec<f64>,
    /// The loss of each other oracle.
    pub(crate) oracles: Vec<Vec<f64>>,
    /// Where the irreducible losses of rows with one label come from; `None` if there are no such rows.
    pub(crate) imputation: Option<Arc<Imputation>>,
}

/// How the irreducible losses of rows with one label depend on rows with several: each is the mean of its group, plus a shift by features.
#[derive(Debug)]
pub(crate) struct Imputation {
    /// Rows of similar confidence.
    group_of_row: Vec<u32>,
    groups: usize,
    is_single: Vec<bool>,
    /// By how much a row is expected to differ from its group, by its features.
    shifts: Vec<f64>,
}

impl Imputation {
    /// `None` if every row has several labels.
    pub(super) fn new(table: &Table, estimates: &RowEstimates) -> Option<Self> {
        let is_single: Vec<bool> = (0..table.rows() as u32).map(|row| !has_several_labels(table, row)).collect();
        let group_of_row = estimates.group_of_row.clone();
        let groups = group_of_row.iter().max().map_or(0, |&last| last as usize + 1);
        let mut shifts = estimates.shifts.clone();
        shifts.resize(table.rows(), 0.0);
        is_single.contains(&true).then_some(Self { group_of_row, groups, is_single, shifts })
    }

    /// Whether a row has one label only.
    pub(crate) fn is_single(&self, row: usize) -> bool {
        self.is_single[row]
    }

    pub(crate) fn group(&self, row: usize) -> usize {
        self.group_of_row[row] as usize
    }

    pub(crate) fn groups(&self) -> usize {
        self.groups
    }

    /// By how much a row is expected to differ from its group, by its features.
    pub(crate) fn shift(&self, row: usize) -> f64 {
        self.shifts[row]
    }
}

impl LabelLosses {
    /// The losses of all rows of a table; `oracles` are the losses of the other oracles as far as a row's labels determine them.
    pub(crate) fn from_table(table: &Table, loss: &Loss, oracles: &RowLosses) -> Self {
        let rows = LeafEstimator::new(table, loss, Estimator::Shrink, None);
        let estimates = RowEstimates::fit(table, loss);
        let imputation = estimates.as_ref().and_then(|estimates| Imputation::new(table, estimates)).map(Arc::new);
        let irreducible = estimates.map(|estimates| estimates.irreducible);
        let mut losses = Self {
            imputation,
            total: (0..table.rows()).map(|row| rows.total_of_row(row)).collect(),
            irreducible: irreducible.unwrap_or_else(|| vec![f64::NAN; table.rows()]),
            oracles: oracles.columns().to_vec(),
        };
        if losses.oracles.iter().flatten().any(|loss| loss.is_nan()) {
            losses.fill_panels(table, loss, oracles);
        }
        losses
    }

    /// The losses where rows with one label have the mean irreducible loss of rows of their own fold: the labels that evaluate a decision must
    /// not be those that it was made from. Unchanged if a group has no row with several labels in the fold.
    pub(crate) fn within_folds(&self, table: &Table, fold_of_row: &[u32], folds: usize) -> Cow<'_, Self> {
        let Some(imputation) = &self.imputation else { return Cow::Borrowed(self) };
        let place = |row: usize| imputation.group(row) * folds + fold_of_row[row] as usize;
        let in_folds = || (0..table.rows()).filter(|&row| (fold_of_row[row] as usize) < folds);
        let mut sums = vec![WeightedSums::default(); imputation.groups * folds];
        for row in in_folds().filter(|&row| !imputation.is_single[row]) {
            sums[place(row)].add(table.weight(row), self.irreducible[row] - imputation.shift(row));
        }
        let mut losses = self.clone();
        for row in in_folds().filter(|&row| imputation.is_single[row] && sums[place(row)].weight > 0.0) {
            losses.irreducible[row] = sums[place(row)].mean() + imputation.shift(row);
        }
        Cow::Owned(losses)
    }

    /// Fills in a panel's loss for rows with too few labels: the row's irreducible loss plus the panel's mean excess over it among rows of
    /// similar confidence.
    fn fill_panels(&mut self, table: &Table, loss: &Loss, oracles: &RowLosses) {
        let mut order = label_free::order_of_table(table, GROUP_SEED);
        let confidence = |row: u32| table.peak(row as usize).key();
        order.sort_by(|&a, &b| confidence(a).total_cmp(&confidence(b)));
        let groups = (order.len() / ROWS_PER_GROUP).max(1);
        let borrowed = BorrowedLosses::fit(table, loss);
        for group in 0..groups {
            let rows = &order[group * order.len() / groups..(group + 1) * order.len() / groups];
            let mixture = Mixture::of_rows(table, rows);
            let groups = &mut VoteGroups::default();
            let found = Decomposition::fit(mixture, loss, Estimator::Shrink, None, oracles, borrowed.as_ref(), groups);
            let Some(found) = found else { continue };
            for (values, [_, high]) in self.oracles.iter_mut().zip(&found.oracles) {
                for row in mixture.rows().filter(|&row| values[row].is_nan()).collect::<Vec<_>>() {
                    values[row] = self.irreducible[row] + high - found.irreducible_high;
                }
            }
        }
    }
}
