//! The losses of single rows by their own labels, corrected for the bias of few labels. They evaluate decisions on held-out rows.

use super::by_row::RowEstimates;
use super::leaves::LeafEstimator;
use super::oracles::RowLosses;
use super::{Decomposition, VoteGroups};
use crate::loss::Loss;
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
}

impl LabelLosses {
    /// The losses of all rows of a table; `oracles` are the losses of the other oracles as far as a row's labels determine them.
    pub(crate) fn from_table(table: &Table, loss: &Loss, oracles: &RowLosses) -> Self {
        let rows = LeafEstimator::new(table, loss, Estimator::Shrink);
        let irreducible = RowEstimates::fit(table, loss).map(|estimates| estimates.irreducible);
        let mut losses = Self {
            total: (0..table.rows()).map(|row| rows.total_of_row(row)).collect(),
            irreducible: irreducible.unwrap_or_else(|| vec![f64::NAN; table.rows()]),
            oracles: oracles.columns().to_vec(),
        };
        if losses.oracles.iter().flatten().any(|loss| loss.is_nan()) {
            losses.fill_panels(table, loss, oracles);
        }
        losses
    }

    /// Fills in a panel's loss for rows with too few labels: the row's irreducible loss plus the panel's mean excess over it among rows of
    /// similar confidence.
    fn fill_panels(&mut self, table: &Table, loss: &Loss, oracles: &RowLosses) {
        let mut order = label_free::order_of_table(table, GROUP_SEED);
        let confidence = |row: u32| table.peak(row as usize).key();
        order.sort_by(|&a, &b| confidence(a).total_cmp(&confidence(b)));
        let groups = (order.len() / ROWS_PER_GROUP).max(1);
        for group in 0..groups {
            let rows = &order[group * order.len() / groups..(group + 1) * order.len() / groups];
            let mixture = Mixture::of_rows(table, rows);
            let found = Decomposition::fit(mixture, loss, Estimator::Shrink, None, oracles, &mut VoteGroups::default());
            let Some(found) = found else { continue };
            for (values, [_, high]) in self.oracles.iter_mut().zip(&found.oracles) {
                for row in mixture.rows().filter(|&row| values[row].is_nan()).collect::<Vec<_>>() {
                    values[row] = self.irreducible[row] + high - found.irreducible_high;
                }
            }
        }
    }
}
