//! Small linear programs by the simplex method.

/// Ratios closer than this are equal.
const RATIO_TOLERANCE: f64 = 1e-11;

/// Reduced costs above minus this count as non-negative.
const REDUCED_COST_TOLERANCE: f64 = 1e-9;

/// The smallest pivot.
const MIN_PIVOT: f64 = 1e-9;

/// The largest sum of artificial variables of a feasible solution.
const FEASIBILITY_TOLERANCE: f64 = 1e-8;

/// The largest number of pivots.
const MAX_PIVOTS: usize = 4000;

/// The minimum of Σ_j cost_j x_j over x ≥ 0 with Σ_j x_j·column_j = `sums`, which must not be negative.
///
/// `None` if there is no such x, or if it was not found within [`MAX_PIVOTS`].
pub(crate) fn minimum(columns: &[Vec<f64>], sums: &[f64], cost: &[f64]) -> Option<f64> {
    let mut tableau = Tableau::new(columns, sums);
    tableau.solve()?;
    if tableau.objective() > FEASIBILITY_TOLERANCE {
        return None;
    }
    tableau.drop_artificial_variables();
    tableau.set_cost(cost);
    tableau.solve()?;
    Some(tableau.objective())
}

/// Rows of [coefficients, right-hand side], solved for their basic variables; the last row holds reduced costs and the negated objective.
///
/// Artificial variables are numbered from `columns` on and have no column: once out of the basis they do not return.
struct Tableau {
    rows: Vec<Vec<f64>>,
    basis: Vec<usize>,
    columns: usize,
}

impl Tableau {
    /// The tableau of the first phase: artificial variables are the basis, and their sum is the objective.
    fn new(columns: &[Vec<f64>], sums: &[f64]) -> Self {
        let row = |i: usize| columns.iter().map(|column| column[i]).chain([sums[i]]).collect::<Vec<f64>>();
        let mut rows: Vec<Vec<f64>> = (0..sums.len()).map(row).collect();
        let total = |j: usize| -rows.iter().map(|row| row[j]).sum::<f64>();
        let last = (0..=columns.len()).map(total).collect();
        rows.push(last);
        let basis = (0..sums.len()).map(|i| columns.len() + i).collect();
        Self { rows, basis, columns: columns.len() }
    }

    fn objective(&self) -> f64 {
        -self.rows[self.basis.len()][self.columns]
    }

    /// Pivots until no variable lowers the objective.
    fn solve(&mut self) -> Option<()> {
        for _ in 0..MAX_PIVOTS {
            let reduced = &self.rows[self.basis.len()][..self.columns];
            let (entering, least) = reduced.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1))?;
            if least >= -REDUCED_COST_TOLERANCE {
                return Some(());
            }
            let leaving = self.leaving(entering)?;
            self.pivot(leaving, entering);
        }
        None
    }

    /// The row whose variable reaches zero first; of several, the row with the largest pivot.
    fn leaving(&self, entering: usize) -> Option<usize> {
        let candidates = (0..self.basis.len()).filter(|&i| self.rows[i][entering] > MIN_PIVOT);
        let ratio = |i: usize| self.rows[i][self.columns].max(0.0) / self.rows[i][entering];
        let least = candidates.clone().map(ratio).fold(f64::INFINITY, f64::min);
        candidates
            .filter(|&i| ratio(i) <= least + RATIO_TOLERANCE)
            .max_by(|&a, &b| self.rows[a][entering].total_cmp(&self.rows[b][entering]))
    }

    fn pivot(&mut self, row: usize, column: usize) {
        let scale = 1.0 / self.rows[row][column];
        self.rows[row].iter_mut().for_each(|x| *x *= scale);
        let pivot = std::mem::take(&mut self.rows[row]);
        for other in self.rows.iter_mut().filter(|other| !other.is_empty()) {
            let factor = other[column];
            if factor != 0.0 {
                other.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
            }
        }
        self.rows[row] = pivot;
        self.basis[row] = column;
    }

    /// Pivots out artificial variables that are zero, or drops their rows if the constraint follows from the others.
    fn drop_artificial_variables(&mut self) {
        let mut row = 0;
        while row < self.basis.len() {
            if self.basis[row] >= self.columns {
                let size = |&j: &usize| self.rows[row][j].abs();
                let largest = (0..self.columns).max_by(|a, b| size(a).total_cmp(&size(b)));
                match largest.filter(|j| size(j) > MIN_PIVOT) {
                    Some(column) => self.pivot(row, column),
                    None => {
                        self.rows.remove(row);
                        self.basis.remove(row);
                        continue;
                    }
                }
            }
            row += 1;
        }
    }

    fn set_cost(&mut self, cost: &[f64]) {
        let mut last: Vec<f64> = cost.iter().copied().chain([0.0]).collect();
        for (row, &variable) in self.rows.iter().zip(&self.basis) {
            let factor = cost[variable];
            last.iter_mut().zip(row).for_each(|(x, p)| *x -= factor * p);
        }
        let end = self.basis.len();
        self.rows[end] = last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_a_small_program() {
        // x + y + z = 1, x + 2y + 3z = 2: the least of 3x + y + 2z is at y = 1.
        let columns = [vec![1.0, 1.0], vec![1.0, 2.0], vec![1.0, 3.0]];
        let least = minimum(&columns, &[1.0, 2.0], &[3.0, 1.0, 2.0]).unwrap();
        assert!((least - 1.0).abs() < 1e-12, "{least}");
        let most = -minimum(&columns, &[1.0, 2.0], &[-3.0, -1.0, -2.0]).unwrap();
        assert!((most - 2.5).abs() < 1e-12, "{most}");
        assert_eq!(minimum(&columns, &[1.0, 4.0], &[0.0; 3]), None, "a mean of four is out of reach");
    }

    #[test]
    fn redundant_constraints_are_accepted() {
        let columns = [vec![1.0, 0.0, 1.0], vec![1.0, 1.0, 2.0], vec![1.0, 2.0, 3.0]];
        let least = minimum(&columns, &[1.0, 1.0, 2.0], &[0.0, 1.0, 0.0]).unwrap();
        assert!(least.abs() < 1e-12, "{least}");
    }
}
