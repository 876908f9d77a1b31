//! The irreducible loss of groups in which most rows have one label.
//!
//! A row with one label shows the loss of predicting and nothing about noise. If most rows of a group have one label and fewer than thirty have
//! several, its irreducible loss is that of its rows with several labels, and the estimates of its one-label rows, which come from rows of
//! similar confidence and features (`by_row`), count like [`BORROWED_ROWS`] further rows. A small leaf may have no row with several labels.
//! If too few rows of the whole table have several labels, nothing can be borrowed, and the losses are only bounded.

use super::by_row::{RowEstimates, has_several_labels};
use super::moments::Moments;
use crate::loss::Loss;
use crate::numeric::weighted::weighted_mean;
use crate::router::Mixture;
use crate::table::Table;

/// How many rows with several labels the estimates of one-label rows count as.
const BORROWED_ROWS: f64 = 2.0;

/// What rows with several labels tell of rows with one.
#[derive(Debug, Clone)]
pub(crate) struct BorrowedLosses {
    /// The estimated irreducible loss of each row with one label; NaN for rows with several.
    of_row: Vec<f64>,
    /// The mean of 1 − ‖p*‖² among the rows of similar confidence, for every row.
    noise_of_row: Vec<f64>,
}

impl BorrowedLosses {
    /// `None` if all rows have several labels, or too few have.
    pub(crate) fn fit(table: &Table, loss: &Loss) -> Option<Self> {
        let is_single = |row: usize| !has_several_labels(table, row as u32);
        if !table.has_votes() || !(0..table.rows()).any(is_single) {
            return None;
        }
        Moments::from_mixture(Mixture::all_rows_of(table)).filter(|whole| whole.identified)?;
        let estimates = RowEstimates::fit(table, loss)?;
        let noise_of_row = (0..table.rows()).map(|row| estimates.noise_of_row(row)).collect();
        let mut of_row = estimates.irreducible;
        of_row.iter_mut().enumerate().filter(|(row, _)| !is_single(*row)).for_each(|(_, loss)| *loss = f64::NAN);
        Some(Self { of_row, noise_of_row })
    }

    /// The irreducible loss of a group of the table's rows. `own` is the estimate from its rows with several labels and their effective number,
    /// if there are any.
    pub(super) fn mix(&self, table: &Table, rows: impl Iterator<Item = usize>, own: Option<(f64, f64)>) -> f64 {
        let (mut weight, mut sum) = (0.0, 0.0);
        for row in rows.filter(|&row| !self.of_row[row].is_nan()) {
            weight += table.weight(row);
            sum += table.weight(row) * self.of_row[row];
        }
        match own {
            None => sum / weight,
            // All rows of the group have several labels.
            Some((own, _)) if weight == 0.0 => own,
            Some((own, rows)) => (rows * own + BORROWED_ROWS * sum / weight) / (rows + BORROWED_ROWS),
        }
    }

    /// The moments of a group whose labels do not separate noise from error, with the noise of rows of similar confidence.
    pub(super) fn moments(&self, mixture: Mixture<'_>, moments: Moments) -> Moments {
        let of_rows = mixture.rows().map(|row| (mixture.table().weight(row), self.noise_of_row[row]));
        moments.with_noise(weighted_mean(of_rows))
    }
}
