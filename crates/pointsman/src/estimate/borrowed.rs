//! The irreducible loss of groups in which most rows have one label.
//!
//! A row with one label shows the loss of predicting and nothing about noise. If most rows of a group have one label and fewer than thirty have
//! several, its irreducible loss is that of its rows with several labels, and the estimates of its one-label rows, which come from rows of
//! similar confidence and features (`by_row`), count like [`BORROWED_ROWS`] further rows. A small leaf may have no row with several labels.
//! If too few rows of the whole table have several labels, nothing can be borrowed, and the losses are only bounded.

use std::sync::Arc;

use super::by_row::{RowEstimates, has_several_labels};
use super::moments::Moments;
use super::row_losses::Imputation;
use crate::loss::Loss;
use crate::numeric::weighted::{WeightedSums, weighted_mean};
use crate::router::Mixture;
use crate::table::Table;

/// How many rows with several labels the estimates of one-label rows count as.
const BORROWED_ROWS: f64 = 2.0;

/// What rows with several labels tell of rows with one.
#[derive(Debug, Clone)]
pub(crate) struct BorrowedLosses {
    imputation: Arc<Imputation>,
    /// The estimated irreducible loss of each row with several labels.
    of_row: Arc<Vec<f64>>,
    /// The mean of 1 − ‖p*‖² among the rows of similar confidence, for every row.
    noise_of_row: Arc<Vec<f64>>,
    /// The mean irreducible loss of the rows with several labels in each group, less their shifts.
    means: Vec<f64>,
}

impl BorrowedLosses {
    /// `None` if all rows have several labels, or too few have.
    pub(crate) fn fit(table: &Table, loss: &Loss) -> Option<Self> {
        if !table.has_votes() || (0..table.rows() as u32).all(|row| has_several_labels(table, row)) {
            return None;
        }
        Moments::from_mixture(Mixture::all_rows_of(table)).filter(|whole| whole.identified)?;
        let estimates = RowEstimates::fit(table, loss)?;
        let imputation = Arc::new(Imputation::new(table, &estimates)?);
        let noise_of_row = (0..table.rows()).map(|row| estimates.noise_of_row(row)).collect();
        let (noise_of_row, of_row) = (Arc::new(noise_of_row), Arc::new(estimates.irreducible));
        Some(Self { imputation, of_row, noise_of_row, means: Vec::new() }.without(table, |_| false))
    }

    /// The same without the losses of some rows with several labels. Features and, under losses other than Brier, the corrections of the
    /// remaining rows are still fitted to all rows.
    pub(crate) fn without(&self, table: &Table, is_excluded: impl Fn(usize) -> bool) -> Self {
        let mut sums = vec![WeightedSums::default(); self.imputation.groups()];
        for row in (0..table.rows()).filter(|&row| !self.imputation.is_single(row) && !is_excluded(row)) {
            let value = self.of_row[row] - self.imputation.shift(row);
            sums[self.imputation.group(row)].add(table.weight(row), value);
        }
        let known = sums.iter().filter(|sums| sums.weight > 0.0);
        let all = weighted_mean(known.map(|sums| (sums.weight, sums.mean())));
        // A group without such rows has the mean of the others.
        let means = sums.iter().map(|sums| if sums.weight > 0.0 { sums.mean() } else { all }).collect();
        Self { means, ..self.clone() }
    }

    /// The irreducible loss of a group of the table's rows. `own` is the estimate from its rows with several labels and their effective number,
    /// if there are any.
    pub(super) fn mix(&self, table: &Table, rows: impl Iterator<Item = usize>, own: Option<(f64, f64)>) -> f64 {
        let (mut weight, mut sum) = (0.0, 0.0);
        for row in rows.filter(|&row| self.imputation.is_single(row)) {
            weight += table.weight(row);
            sum += table.weight(row) * (self.means[self.imputation.group(row)] + self.imputation.shift(row));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_excluded_rows_do_not_matter() {
        // Thirty rows of several labels that may be excluded, thirty others, and twenty of one label.
        let table = |excluded: [u32; 2]| {
            let votes = (0..80_u32).flat_map(|row| match row {
                0..30 => excluded,
                30..60 => [2 + row % 2, 1 - row % 2],
                _ => [row % 2, 1 - row % 2],
            });
            Table::new(["a", "b"], [0.7, 0.3].repeat(80)).and_then(|table| table.with_votes(votes.collect())).unwrap()
        };
        let found = [[3, 0], [1, 2]].map(|excluded| {
            let table = table(excluded);
            let borrowed = BorrowedLosses::fit(&table, &Loss::brier()).unwrap();
            let [all, others] = [0, 30].map(|excluded| borrowed.without(&table, |row| row < excluded));
            [all, others].map(|borrowed| borrowed.mix(&table, 60..80, None))
        });
        assert!((found[0][0] - found[1][0]).abs() > 0.05, "{found:?}");
        assert!((found[0][1] - found[1][1]).abs() < 1e-12, "{found:?}");
    }
}
