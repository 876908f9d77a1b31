//! Loss estimates from a router's rows: one per cell, and one per fall-back of empty cells.

use crate::estimate::{self, Decomposition, RowLosses, VoteGroups};
use crate::loss::Loss;
use crate::parallel::prelude::*;
use crate::partition::{Axis, CellId};
use crate::router::{Mixture, Router};
use crate::task::Estimator;

/// A router's rows under one loss. Estimates use all rows or some of them; cross-fitting leaves a fold out.
#[derive(Clone, Copy)]
pub(super) struct Valuation<'a> {
    pub(super) router: &'a Router,
    pub(super) loss: &'a Loss,
    pub(super) estimator: Estimator,
    pub(super) oracles: &'a RowLosses,
}

impl<'a> Valuation<'a> {
    /// All rows of each cell.
    pub(super) fn all_cells(&self) -> Vec<Mixture<'a>> {
        (0..self.router.cells().count() as u32).map(|cell| self.router.mixture(CellId(cell))).collect()
    }

    /// One estimate per cell from the given rows; `None` for a cell without rows.
    pub(super) fn cells(&self, mixtures: &[Mixture<'_>]) -> Vec<Option<Decomposition>> {
        let each = mixtures.par_iter().map_init(VoteGroups::default, |groups, &mixture| self.estimate(groups, mixture));
        let mut cells: Vec<Option<Decomposition>> = each.collect();
        if let [Axis::Tree { .. }] = self.router.cells().axes() {
            estimate::shrink_leaves(&mut cells, mixtures, self.loss, self.router.is_recalibrated(), self.oracles);
        }
        estimate::pool_cells(self.router, &mut cells, mixtures, self.loss, self.oracles);
        cells
    }

    /// The estimates that empty cells fall back to, from the rows for which `counts` is true: one per confidence bin over all classes,
    /// and last that of all rows.
    pub(super) fn fall_backs(
        &self,
        rows_by_confidence: &[Vec<u32>],
        counts: impl Fn(u32) -> bool + Sync,
    ) -> Vec<Option<Decomposition>> {
        let estimate = |groups: &mut VoteGroups, rows: &[u32]| {
            let rows: Vec<u32> = rows.iter().copied().filter(|&row| counts(row)).collect();
            self.estimate(groups, Mixture::of_rows(self.router.rows(), &rows))
        };
        let each = rows_by_confidence.par_iter().map_init(VoteGroups::default, |groups, rows| estimate(groups, rows));
        let mut sources: Vec<Option<Decomposition>> = each.collect();
        let all: Vec<u32> = (0..self.router.rows().rows() as u32).collect();
        sources.push(estimate(&mut VoteGroups::default(), &all));
        sources
    }

    fn estimate(&self, groups: &mut VoteGroups, mixture: Mixture<'_>) -> Option<Decomposition> {
        let served = if self.router.is_recalibrated() { mixture.centroid() } else { None };
        Decomposition::fit(mixture, self.loss, self.estimator, served.as_deref(), self.oracles, groups)
    }
}
