//! Summaries of cells: estimates, actions and held-out losses.

use super::Replay;
use crate::error::{Result, TableError};
use crate::partition::CellId;
use crate::policy::{Action, Policy};
use crate::table::Table;
use crate::task::Named;

/// One cell: its estimates, its action, and its held-out rows. Unknown values are `None`.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CellSummary {
    /// The cell.
    pub cell: u32,
    /// Its name.
    pub name: String,
    /// Its calibration rows.
    pub rows: usize,
    /// `enough`, `sparse` or `empty`.
    pub support: &'static str,
    /// Its share of the held-out traffic.
    pub share: f64,
    /// Estimated irreducible loss.
    pub irreducible: Option<f64>,
    /// Estimated reducible loss; a negative estimate is clamped to zero.
    pub reducible: Option<f64>,
    /// Estimated total loss.
    pub total: Option<f64>,
    /// Estimated cost of each action; unknown for an empty cell, and for routes whose cost is only bounded.
    pub costs: Named<Option<f64>>,
    /// The action; none for an empty cell, whose queries fall back.
    pub action: Option<String>,
    /// Of a forest, which decides each query by its own costs: the share of each action among the cell's calibration rows, with the trees
    /// that were not grown on them. [`action`](Self::action) is the cheapest for the cell as a whole. `None` for other partitions.
    pub actions: Option<Named<f64>>,
    /// The cost difference to the next-best action.
    pub margin: Option<f64>,
    /// The held-out rows.
    pub held_out: HeldOutCell,
}

/// The held-out rows of a cell.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct HeldOutCell {
    /// The number of rows.
    pub rows: usize,
    /// Their mean irreducible loss, corrected for the bias of few labels; unknown where that is impossible.
    pub irreducible: Option<f64>,
    /// Their mean loss of predicting.
    pub total: Option<f64>,
}

impl Replay {
    /// Summarises every cell under the policy of this replay, or one repriced from it. The held-out rows are those of `table`; a forest puts them
    /// into cells as it did its calibration rows, so that the rows of a cell can be compared.
    ///
    /// # Errors
    /// If the policy or the table is another one.
    pub fn cells(&self, policy: &Policy, table: &Table) -> Result<Vec<CellSummary>> {
        self.check(policy)?;
        if table.rows() != self.places.len() {
            return Err(TableError::OtherQueries.into());
        }
        let found: Vec<CellId> = match policy.router().filter(|_| policy.has_forest()) {
            Some(router) => router.find_comparable_cells(table)?,
            None => self.places.iter().map(|place| CellId(place.cell)).collect(),
        };
        let count = policy.cells().count();
        // Rows, weight, irreducible and total loss of each cell.
        let mut sums = vec![(0_usize, 0.0, 0.0, 0.0); count];
        let mut all = 0.0;
        let by = self.best_basis();
        for (row, cell) in found.iter().enumerate() {
            let (sum, weight) = (&mut sums[cell.index()], self.weights[row]);
            sum.0 += 1;
            sum.1 += weight;
            sum.2 += weight * self.irreducible_at(row, by);
            sum.3 += weight * self.total[row];
            all += weight;
        }
        let names = policy.task().action_names();
        let shares = policy.shares_within_cells();
        let summary = |(cell, &(rows, weight, irreducible, total)): (usize, &(usize, f64, f64, f64))| {
            let cell = CellId(cell as u32);
            let decision = policy.cell(cell);
            let mut costs = Named::new();
            for (action, name) in names.iter().enumerate() {
                let ends = decision.map(|d| (d.costs()[action], d.costs_high()[action]));
                costs.push(name.clone(), ends.and_then(|(low, high)| (low == high).then_some(low)));
            }
            let mean = |sum: f64| (rows > 0).then(|| sum / weight);
            CellSummary {
                cell: cell.0,
                name: policy.cells().name(cell, policy.classes()),
                rows: decision.map_or(0, |d| d.rows()),
                support: policy.support(cell).name(),
                share: weight / all,
                irreducible: decision.and_then(|d| d.irreducible()),
                reducible: decision.and_then(|d| d.reducible()),
                total: decision.map(|d| d.total()),
                costs,
                action: decision.map(|d| d.action().to_string()),
                actions: shares.as_ref().and_then(|shares| shares[cell.index()].clone()),
                margin: decision
                    .filter(|d| d.action() != Action::Undetermined)
                    .map(|d| d.margin())
                    .filter(|margin| margin.is_finite()),
                held_out: HeldOutCell {
                    rows,
                    irreducible: mean(irreducible).filter(|_| self.is_correctable()),
                    total: mean(total),
                },
            }
        };
        Ok(sums.iter().enumerate().map(summary).collect())
    }
}
