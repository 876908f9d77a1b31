//! Measurements on held-out rows: routing curves of any score, costs of repriced policies, losses by cell.

use super::curve::Ranking;
use super::{Basis, Replay};
use crate::error::{Error, Result, TableError, ValueError};
use crate::partition::CellId;
use crate::policy::Policy;

/// The routing curve of a score, without prices.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RoutingCurve {
    /// Area under the curve: the mean loss over all shares routed.
    pub area: f64,
    /// (random − area) / (random − point-wise optimal); unknown if routing gains nothing.
    pub gain: Option<f64>,
    /// Mean loss if the first 0 %, 1 %, … 100 % are routed.
    pub curve: Vec<f64>,
}

/// A mean over held-out rows and its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Mean {
    /// The weighted mean.
    pub mean: f64,
    /// Its standard error; none for one row.
    pub standard_error: Option<f64>,
}

/// Held-out losses of one cell's rows.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CellLosses {
    /// The cell.
    pub cell: u32,
    /// Its share of the rows.
    pub share: f64,
    /// Mean total loss.
    pub total: f64,
    /// Mean irreducible loss.
    pub irreducible: f64,
}

/// Correlations of losses over held-out rows, and over cells weighted by their share. Near 1, a ranking by total loss is as good as one by
/// reducible loss, and the decomposition does not matter.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Correlations {
    /// Reducible with total loss, row by row.
    pub rows: Option<f64>,
    /// Reducible with total loss, cell by cell.
    pub cells: Option<f64>,
    /// Irreducible with total loss, cell by cell.
    pub irreducible_cells: Option<f64>,
}

impl Replay {
    /// The reducible loss of each row: the loss of the served prediction minus that of the Bayes-optimal oracle.
    #[must_use]
    pub fn reducible(&self) -> Vec<f64> {
        self.total.iter().zip(&self.irreducible).map(|(total, irreducible)| total - irreducible).collect()
    }

    /// Routes the rows by decreasing score, one score per row; ties share their gains.
    ///
    /// # Errors
    /// If there are not as many scores as rows, or one is NaN.
    pub fn routing_curve(&self, scores: &[f64]) -> Result<RoutingCurve> {
        if scores.len() != self.places.len() {
            let (scores, rows) = (scores.len(), self.places.len());
            return Err(TableError::Length { what: "scores", found: scores, rows }.into());
        }
        if let Some(row) = scores.iter().position(|score| score.is_nan()) {
            return Err(Error::value(row, "score", ValueError::Score));
        }
        let reducible = self.reducible();
        let base = self.mean(&|row| self.total[row]).mean;
        let rank = |scores: &[f64]| Ranking::new(scores, &reducible, &self.weights, base);
        let (ranking, best) = (rank(scores), rank(&reducible).area());
        // With all scores tied, the curve is the straight line from the weak model to the oracle.
        let random = base - self.mean(&|row| reducible[row]).mean / 2.0;
        let area = ranking.area();
        let gain = (random - best > self.negligible()).then(|| (random - area) / (random - best));
        Ok(RoutingCurve { area, gain, curve: ranking.percentiles() })
    }

    /// The mean cost of a policy per query.
    ///
    /// # Errors
    /// If the policy is neither the one the rows were replayed with nor one repriced from it.
    pub fn cost_of(&self, policy: &Policy) -> Result<Mean> {
        self.check(policy)?;
        let taken = self.taken_actions(policy);
        let mean = self.mean(&|row| taken.cost(row, Basis::Table)).mean;
        let priced = self.mean(&|row| taken.cost(row, Basis::Table) + taken.price_of_cap(row));
        Ok(Mean { mean, ..priced })
    }

    /// The mean cost of the first policy minus that of the second, with the standard error of the paired difference.
    ///
    /// # Errors
    /// If a policy is neither the one the rows were replayed with nor one repriced from it.
    pub fn difference(&self, first: &Policy, second: &Policy) -> Result<Mean> {
        self.check(first)?;
        self.check(second)?;
        let (one, two) = (self.taken_actions(first), self.taken_actions(second));
        let difference = |row: usize| one.cost(row, Basis::Table) - two.cost(row, Basis::Table);
        let prices = |row: usize| one.price_of_cap(row) - two.price_of_cap(row);
        Ok(Mean { mean: self.mean(&difference).mean, ..self.mean(&|row| difference(row) + prices(row)) })
    }

    /// The held-out losses of each cell with rows.
    #[must_use]
    pub fn cell_losses(&self) -> Vec<CellLosses> {
        let cells = self.places.iter().map(|place| place.cell as usize + 1).max().unwrap_or(0);
        let mut sums = vec![[0.0_f64; 3]; cells];
        for (row, place) in self.places.iter().enumerate() {
            let weight = self.weights[row];
            let sum = &mut sums[place.cell as usize];
            sum[0] += weight;
            sum[1] += weight * self.total[row];
            sum[2] += weight * self.irreducible[row];
        }
        let all: f64 = self.weights.iter().sum();
        let held = sums.iter().enumerate().filter(|(_, sum)| sum[0] > 0.0);
        held.map(|(cell, &[weight, total, irreducible])| CellLosses {
            cell: CellId(cell as u32).0,
            share: weight / all,
            total: total / weight,
            irreducible: irreducible / weight,
        })
        .collect()
    }

    /// The correlations of reducible and irreducible loss with total loss.
    #[must_use]
    pub fn correlations(&self) -> Correlations {
        let cells = self.cell_losses();
        let negligible = self.negligible();
        let over_cells = |value: &dyn Fn(&CellLosses) -> f64| {
            let mean = |f: &dyn Fn(&CellLosses) -> f64| cells.iter().map(|cell| cell.share * f(cell)).sum::<f64>();
            let (a, b) = (mean(value), mean(&|cell| cell.total));
            let product = mean(&|cell| (value(cell) - a) * (cell.total - b));
            let scale = (mean(&|cell| (value(cell) - a).powi(2)) * mean(&|cell| (cell.total - b).powi(2))).sqrt();
            (scale > negligible.powi(2)).then(|| product / scale)
        };
        Correlations {
            rows: self.correlation(),
            cells: over_cells(&|cell| cell.total - cell.irreducible),
            irreducible_cells: over_cells(&|cell| cell.irreducible),
        }
    }
}
