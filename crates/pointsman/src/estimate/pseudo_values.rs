//! Irreducible losses of single rows whose means are right over any rows chosen without their labels, if some rows have one label.
//!
//! A row with one label has an expected value m, the mean of rows with several labels at similar confidence, moved by features. That is right
//! on average and wrong for rows that a threshold or a router chooses within a group of similar confidence. A row with several labels
//! therefore stands for those with one label as well: it has m + (Û − m)/π, where Û is its own estimate and π the share of rows with several
//! labels among those that are like it. If the number of labels does not depend on the true distribution beyond confidence and features, the
//! mean over every set of rows is unbiased, whatever m is, and its variance over rows is that of the mean.

use super::by_row::{RowEstimates, has_several_labels};
use super::single_labels::shifts_of_rows;
use crate::numeric::weighted::WeightedSums;
use crate::table::Table;

/// Where fewer rows have several labels, their values would vary too much: all rows keep their estimates.
const MIN_SHARE: f64 = 0.05;

impl RowEstimates {
    /// The pseudo-values of both estimates of the irreducible loss: the estimates themselves if all rows have several labels.
    pub(crate) fn pseudo_values(&self, table: &Table) -> [Vec<f64>; 2] {
        let mut found = [self.irreducible.clone(), self.alternative.clone()];
        let several: Vec<f64> =
            (0..table.rows()).map(|row| f64::from(u8::from(has_several_labels(table, row as u32)))).collect();
        if !several.contains(&0.0) {
            return found;
        }
        let groups = self.group_of_row.iter().max().map_or(0, |&last| last as usize + 1);
        let group = |row: usize| self.group_of_row[row] as usize;
        let mut shares = vec![WeightedSums::default(); groups];
        let mut means = vec![[WeightedSums::default(); 2]; groups];
        for row in 0..table.rows() {
            shares[group(row)].add(table.weight(row), several[row]);
            for (sums, values) in means[group(row)].iter_mut().zip(&found) {
                sums.add(table.weight(row) * several[row], values[row]);
            }
        }
        let share_shifts = shifts_of_rows(table, &self.group_of_row, &several, |_| true);
        let shift = |shifts: &[f64], row: usize| shifts.get(row).copied().unwrap_or(0.0);
        for row in (0..table.rows()).filter(|&row| several[row] == 1.0 && table.weight(row) > 0.0) {
            let share = (shares[group(row)].mean() + shift(&share_shifts, row)).min(1.0);
            if share >= MIN_SHARE {
                for (sums, values) in means[group(row)].iter().zip(&mut found) {
                    let expected = sums.mean() + shift(&self.shifts, row);
                    values[row] = expected + (values[row] - expected) / share;
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::Loss;

    /// Rows of one confidence with one or two labels each.
    fn table(labels: impl Fn(usize) -> [u32; 2]) -> Table {
        let votes = (0..400).flat_map(labels).collect();
        Table::new(["a", "b"], [0.7, 0.3].repeat(400)).and_then(|table| table.with_votes(votes)).unwrap()
    }

    #[test]
    fn rows_with_several_labels_stand_for_those_with_one() {
        let table = table(|row| [[2, 0], [1, 1], [1, 0], [0, 1]][row % 4]);
        let estimates = RowEstimates::fit(&table, &Loss::brier()).unwrap();
        let [values, _] = estimates.pseudo_values(&table);
        // Rows with two labels have Û = 0 or 1, those with one the mean of a half; half of the rows have two.
        for (row, value) in values.iter().enumerate() {
            let wanted = [-0.5, 1.5, 0.5, 0.5][row % 4];
            assert!((value - wanted).abs() < 1e-12, "row {row}: {value}");
        }
    }

    #[test]
    fn estimates_stay_if_all_rows_have_several_labels() {
        let table = table(|row| [[2, 0], [1, 1]][row % 2]);
        let estimates = RowEstimates::fit(&table, &Loss::brier()).unwrap();
        assert_eq!(estimates.pseudo_values(&table), [estimates.irreducible, estimates.alternative]);
    }
}
