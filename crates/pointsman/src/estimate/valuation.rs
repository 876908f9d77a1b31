//! The losses of groups of a router's rows under one task: cells, fall-backs of empty cells, and leaves.

use super::{
    BorrowedLosses, Decomposition, GroupLosses, LeafBuffers, LeafEstimator, RowLosses, VoteGroups, pool_cells,
    shrink_tree_cells,
};
use crate::loss::Loss;
use crate::parallel::prelude::*;
use crate::partition::{Axis, CellId};
use crate::router::{Mixture, Router};
use crate::task::Estimator;

/// A router's rows under one loss. Estimates use all rows or some of them; cross-fitting leaves a fold out.
#[derive(Clone, Copy)]
pub(crate) struct Valuation<'a> {
    pub(crate) router: &'a Router,
    pub(crate) loss: &'a Loss,
    pub(crate) estimator: Estimator,
    /// The losses of the task's other oracles on each row.
    pub(crate) oracles: &'a RowLosses,
    /// What rows with several labels tell of rows with one, if there are such rows.
    pub(crate) borrowed: Option<&'a BorrowedLosses>,
}

impl<'a> Valuation<'a> {
    /// All rows of each cell.
    pub(crate) fn all_cells(&self) -> Vec<Mixture<'a>> {
        (0..self.router.cells().count() as u32).map(|cell| self.router.mixture(CellId(cell))).collect()
    }

    /// One estimate per cell from the given rows; `None` for a cell without rows.
    pub(crate) fn cells(&self, mixtures: &[Mixture<'_>]) -> Vec<Option<Decomposition>> {
        let each = mixtures.par_iter().map_init(VoteGroups::default, |groups, &mixture| self.group(mixture, groups));
        let mut cells: Vec<Option<Decomposition>> = each.collect();
        if let [Axis::Tree { .. }] = self.router.cells().axes() {
            shrink_tree_cells(&mut cells, mixtures, self.loss, self.router.is_recalibrated(), self.oracles);
        }
        pool_cells(self.router, &mut cells, mixtures, self.loss, self.oracles);
        cells
    }

    /// The estimates that empty cells fall back to, from the rows for which `counts` is true: one per confidence bin over all classes,
    /// and last that of all rows.
    pub(crate) fn fall_backs(
        &self,
        rows_by_confidence: &[Vec<u32>],
        counts: impl Fn(u32) -> bool + Sync,
    ) -> Vec<Option<Decomposition>> {
        let estimate = |groups: &mut VoteGroups, rows: &[u32]| {
            let rows: Vec<u32> = rows.iter().copied().filter(|&row| counts(row)).collect();
            self.group(Mixture::of_rows(self.router.rows(), &rows), groups)
        };
        let each = rows_by_confidence.par_iter().map_init(VoteGroups::default, |groups, rows| estimate(groups, rows));
        let mut sources: Vec<Option<Decomposition>> = each.collect();
        let all: Vec<u32> = (0..self.router.rows().rows() as u32).collect();
        sources.push(estimate(&mut VoteGroups::default(), &all));
        sources
    }

    /// The losses of leaves; see [`LeafEstimator`] on how they differ from those of cells.
    pub(crate) fn leaves(self) -> LeafValuation<'a> {
        let estimator = LeafEstimator::new(self.router.rows(), self.loss, self.estimator, self.borrowed);
        LeafValuation { valuation: self, estimator }
    }

    fn group(&self, mixture: Mixture<'_>, groups: &mut VoteGroups) -> Option<Decomposition> {
        let served = if self.router.is_recalibrated() { mixture.centroid() } else { None };
        let Self { loss, estimator, oracles, borrowed, .. } = *self;
        Decomposition::fit(mixture, loss, estimator, served.as_deref(), oracles, borrowed, groups)
    }
}

/// The losses of leaves of a forest, or of parts of them.
pub(crate) struct LeafValuation<'a> {
    valuation: Valuation<'a>,
    estimator: LeafEstimator<'a>,
}

impl<'a> LeafValuation<'a> {
    pub(crate) fn estimator(&self) -> &LeafEstimator<'a> {
        &self.estimator
    }

    /// What leaves borrow without the labels of some rows.
    pub(crate) fn borrowed_without(&self, is_excluded: impl Fn(usize) -> bool) -> Option<BorrowedLosses> {
        let Valuation { router, borrowed, .. } = self.valuation;
        borrowed.map(|borrowed| borrowed.without(router.rows(), is_excluded))
    }

    /// The number of oracles beside the Bayes-optimal one.
    pub(crate) fn other_oracles(&self) -> usize {
        self.valuation.oracles.columns().len()
    }

    /// Both ends of each other oracle's loss on some rows, which are not looked up if there is no other oracle.
    pub(crate) fn oracles<'b, 'r>(
        &self,
        rows: impl FnOnce() -> &'r [u32],
        buffers: &'b mut LeafBuffers,
    ) -> &'b [[f64; 2]] {
        self.oracles_with(self.valuation.borrowed, rows, buffers)
    }

    fn oracles_with<'b, 'r>(
        &self,
        borrowed: Option<&BorrowedLosses>,
        rows: impl FnOnce() -> &'r [u32],
        buffers: &'b mut LeafBuffers,
    ) -> &'b [[f64; 2]] {
        if self.other_oracles() > 0 {
            let Valuation { router, loss, estimator, oracles, .. } = self.valuation;
            let mixture = Mixture::of_rows(router.rows(), rows());
            let found = Decomposition::fit(mixture, loss, estimator, None, oracles, borrowed, &mut buffers.groups);
            buffers.oracles = found.map_or_else(Vec::new, |found| found.oracles);
        }
        &buffers.oracles
    }

    /// The losses of some rows of a leaf, with other `borrowed` losses; `None` if there are none.
    pub(crate) fn rows<'b>(
        &self,
        rows: &[u32],
        borrowed: Option<&BorrowedLosses>,
        buffers: &'b mut LeafBuffers,
    ) -> Option<GroupLosses<'b>> {
        if rows.is_empty() {
            return None;
        }
        let (total, irreducible) = self.estimator.losses(rows, borrowed, buffers);
        Some(GroupLosses { total, irreducible, oracles: self.oracles_with(borrowed, || rows, buffers) })
    }
}
