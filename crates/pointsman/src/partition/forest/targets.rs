//! The targets of trees: the unbiased Brier decomposition of each row.

use crate::table::Table;

/// The two targets of each row, divided by their standard deviations, and its weight.
///
/// They do not depend on the task's loss. A partition that separates rows by the Brier decomposition also separates them by those of other
/// losses.
///
/// * irreducible: Û = (k/(k−1))(1 − ‖ȳ‖²), unbiased for 1 − ‖p*‖² from two labels on,
/// * reducible: u − Û with u = 1 − 2⟨ȳ, f⟩ + ‖f‖², unbiased for ‖p* − f‖².
#[derive(Debug, Clone)]
pub(super) struct Targets {
    pub(super) values: Vec<[f64; 2]>,
    pub(super) weights: Vec<f64>,
}

/// The irreducible and the reducible Brier loss of a row, without bias; `None` if it has one label. `dist` is a buffer.
pub(super) fn brier_decomposition(table: &Table, row: usize, dist: &mut [f64]) -> Option<[f64; 2]> {
    let votes = table.votes(row)?;
    let (irreducible, k) = (votes.disagreement()?, votes.k() as f64);
    table.dist_into(row, dist);
    let (mut product, mut square) = (0.0, 0.0);
    for (&n, f) in votes.counts().iter().zip(dist) {
        product += f64::from(n) / k * *f;
        square += *f * *f;
    }
    Some([irreducible, 1.0 - 2.0 * product + square - irreducible])
}

impl Targets {
    /// The targets of rows that all carry two labels or more.
    pub(super) fn new(table: &Table, rows: &[u32]) -> Self {
        let mut dist = vec![0.0; table.classes().len()];
        let mut values: Vec<[f64; 2]> =
            rows.iter().filter_map(|&row| brier_decomposition(table, row as usize, &mut dist)).collect();
        let weights: Vec<f64> = rows.iter().map(|&row| table.weight(row as usize)).collect();
        let all: f64 = weights.iter().sum();
        let mean =
            |value: &dyn Fn(usize) -> f64| weights.iter().enumerate().map(|(i, w)| w * value(i)).sum::<f64>() / all;
        let scales = [0, 1].map(|target| {
            let centre = mean(&|i| values[i][target]);
            let deviation = mean(&|i| (values[i][target] - centre).powi(2)).sqrt();
            if deviation > 1e-9 { deviation } else { 1.0 }
        });
        for value in &mut values {
            value.iter_mut().zip(scales).for_each(|(x, scale)| *x /= scale);
        }
        Self { values, weights }
    }
}
