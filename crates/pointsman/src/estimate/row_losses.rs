//! What single rows lose by their own labels, the bias of few labels taken out: what judges decisions made without them.

use super::by_row::RowEstimates;
use super::leaves::PerRow;
use super::oracles::RowLosses;
use super::{Decomposition, VoteGroups};
use crate::loss::Loss;
use crate::router::{Mixture, label_free};
use crate::table::Table;
use crate::task::Estimator;

/// The seed by which rows of the same confidence come into groups.
const SEED: u64 = 0x9709;

/// Rows that have in common what a panel loses beyond the irreducible loss.
const ROWS_PER_GROUP: usize = 200;

/// Losses per row, in the order of a table's rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct LabelLosses {
    /// Of the row's own prediction.
    pub(crate) total: Vec<f64>,
    /// Of an oracle who knows the truth; not a number where labels do not tell noise from error.
    pub(crate) irreducible: Vec<f64>,
    /// Of each other oracle.
    pub(crate) oracles: Vec<Vec<f64>>,
}

impl LabelLosses {
    /// The losses of all rows of a table; `oracles` are those of its other oracles, as far as a row's labels tell them.
    pub(crate) fn of(table: &Table, loss: &Loss, oracles: &RowLosses) -> Self {
        let per_row = PerRow::of(table, loss);
        let irreducible = RowEstimates::of(table, loss).map(|estimates| estimates.irreducible);
        let mut losses = Self {
            total: (0..table.rows()).map(|row| per_row.own(row).0).collect(),
            irreducible: irreducible.unwrap_or_else(|| vec![f64::NAN; table.rows()]),
            oracles: oracles.columns().to_vec(),
        };
        if losses.oracles.iter().flatten().any(|loss| loss.is_nan()) {
            losses.fill_panels(table, loss, oracles);
        }
        losses
    }

    /// Gives rows with too few labels for a panel their own irreducible loss and what the panel loses more in rows of like
    /// confidence.
    fn fill_panels(&mut self, table: &Table, loss: &Loss, oracles: &RowLosses) {
        let mut order = label_free::order_of_table(table, SEED);
        let confidence = |row: u32| table.peak(row as usize).key();
        order.sort_by(|&a, &b| confidence(a).total_cmp(&confidence(b)));
        let groups = (order.len() / ROWS_PER_GROUP).max(1);
        for group in 0..groups {
            let rows = &order[group * order.len() / groups..(group + 1) * order.len() / groups];
            let mixture = Mixture::of_rows(table, rows);
            let found = Decomposition::of(mixture, loss, Estimator::Shrink, None, oracles, &mut VoteGroups::default());
            let Some(found) = found else { continue };
            for (values, [_, high]) in self.oracles.iter_mut().zip(&found.oracles) {
                for row in mixture.rows().filter(|&row| values[row].is_nan()).collect::<Vec<_>>() {
                    values[row] = self.irreducible[row] + high - found.irreducible_high;
                }
            }
        }
    }
}
