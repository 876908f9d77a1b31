//! Cross-fitting: each fold of the calibration rows is decided by estimates from the other folds.
//!
//! A cell's estimates depend on the labels of its rows. The action that appears cheapest is the one whose cost they underestimate most,
//! so the same rows cannot estimate its cost (the winner's curse). Every fold is therefore decided by estimates from the other folds,
//! made and pooled as in the policy itself, and evaluated on its own labels. Cells do not depend on labels and stay fixed.

use super::held_out::{HeldOut, Part};
use crate::estimate::{Decomposition, LabelLosses, Valuation};
use crate::parallel::prelude::*;
use crate::partition::CellId;
use crate::router::{Mixture, Router, label_free};

/// The seed of the assignment to folds.
const FOLD_SEED: u64 = 0xF01D;

/// Folds per round. Decisions without a fifth of the rows are slightly worse than the policy's: at 300 rows and two labels that adds
/// 0.002 to the promised cost. Smaller folds add less but vary more, because single rows change many decisions.
pub(super) const FOLDS: usize = 5;

/// The fold of rows that are excluded.
const NO_FOLD: u32 = u32::MAX;

/// The number of rounds, each with a new assignment to folds. Averaging over rounds reduces the variance, which is small with many rows.
fn round_count(rows: usize) -> usize {
    match rows {
        0..2_000 => 4,
        2_000..50_000 => 2,
        _ => 1,
    }
}

/// The fold of each row, stratified by cell and independent of labels.
fn folds_within_cells(router: &Router, round: u64) -> Vec<u32> {
    let mut next = Vec::with_capacity(router.rows().rows());
    let mut cell_of_row = vec![0; router.rows().rows()];
    for cell in 0..router.cells().count() {
        let rows = router.mixture(CellId(cell as u32)).rows();
        // Each cell continues where the previous one ended, so that folds have equal sizes.
        next.push(rows.clone().next().unwrap_or(0) % FOLDS);
        rows.for_each(|row| cell_of_row[row] = cell);
    }
    let mut fold_of_row = vec![0; cell_of_row.len()];
    for row in label_free::order_of_table(router.rows(), FOLD_SEED + round) {
        let next = &mut next[cell_of_row[row as usize]];
        fold_of_row[row as usize] = *next as u32;
        *next = (*next + 1) % FOLDS;
    }
    fold_of_row
}

/// The folds of a router's rows, one assignment per round, and its rows by confidence. They do not depend on the rows that are left out.
pub(super) struct RowFolds {
    fold_of_row: Vec<Vec<u32>>,
    by_confidence: Vec<Vec<u32>>,
}

impl RowFolds {
    pub(super) fn new(router: &Router) -> Self {
        let rounds = 0..round_count(router.rows().rows()) as u64;
        let fold_of_row = rounds.map(|round| folds_within_cells(router, round)).collect();
        Self { fold_of_row, by_confidence: router.rows_by_confidence() }
    }
}

impl HeldOut {
    /// Cross-fits the rows of a router with cells, except those in `left_out`. `fall_backs` says whether queries may fall back, so that
    /// fall-backs are evaluated as well; `losses` are those of all rows.
    pub(super) fn in_folds(
        valuation: Valuation<'_>,
        folds: &RowFolds,
        fall_backs: bool,
        losses: &LabelLosses,
        left_out: &[u32],
    ) -> Self {
        let (router, rounds) = (valuation.router, folds.fold_of_row.len());
        let split = |round: usize| {
            let mut fold_of_row = folds.fold_of_row[round].clone();
            left_out.iter().for_each(|&row| fold_of_row[row as usize] = NO_FOLD);
            let first_fold = (round * FOLDS) as u32;
            Split { valuation, first_fold, fold_of_row, by_confidence: &folds.by_confidence, fall_backs }
        };
        let splits: Vec<Split<'_>> = (0..rounds).map(split).collect();
        let parts: Vec<Vec<Part>> = (0..rounds * FOLDS)
            .into_par_iter()
            .map(|place| splits[place / FOLDS].parts((place % FOLDS) as u32))
            .collect();
        let mut held_out = Self::new(router.cells().count(), losses.oracles.len(), losses.imputation.clone());
        for (split, parts) in splits.iter().zip(parts.chunks_exact(FOLDS)) {
            let losses = losses.within_folds(router.rows(), &split.fold_of_row, FOLDS);
            for part in parts.iter().flatten() {
                held_out.add(part, valuation, &losses);
            }
        }
        held_out
    }
}

/// One assignment of rows to folds.
struct Split<'a> {
    valuation: Valuation<'a>,
    /// The number of folds of earlier rounds.
    first_fold: u32,
    fold_of_row: Vec<u32>,
    by_confidence: &'a [Vec<u32>],
    fall_backs: bool,
}

impl Split<'_> {
    /// The rows of one fold, source by source, with the estimates that decide them.
    fn parts(&self, fold: u32) -> Vec<Part> {
        let router = self.valuation.router;
        let is_inside = |row: u32| self.fold_of_row[row as usize] == fold;
        let counts = |row: &u32| self.fold_of_row[*row as usize] != NO_FOLD;
        let divided = |rows: &mut dyn Iterator<Item = u32>| -> (Vec<u32>, Vec<u32>) {
            rows.filter(counts).partition(|&row| is_inside(row))
        };
        let (inside, outside): (Vec<Vec<u32>>, Vec<Vec<u32>>) = (0..router.cells().count() as u32)
            .map(|cell| divided(&mut router.mixture(CellId(cell)).rows().map(|row| row as u32)))
            .unzip();
        let mixtures: Vec<Mixture<'_>> = outside.iter().map(|rows| Mixture::of_rows(router.rows(), rows)).collect();
        let is_excluded = |row: usize| [fold, NO_FOLD].contains(&self.fold_of_row[row]);
        let borrowed = self.valuation.borrowed.map(|borrowed| borrowed.without(router.rows(), is_excluded));
        let valuation = Valuation { borrowed: borrowed.as_ref(), ..self.valuation };
        let cells = valuation.cells(&mixtures);
        let emptied = cells.iter().zip(&inside).any(|(cell, rows)| cell.is_none() && !rows.is_empty());
        let others = match emptied || self.fall_backs {
            true => valuation.fall_backs(self.by_confidence, |row| counts(&row) && !is_inside(row)),
            false => Vec::new(),
        };
        let mut parts = Vec::new();
        for (source, (cell, rows)) in (0..).zip(cells.into_iter().zip(inside)) {
            match cell {
                _ if rows.is_empty() => {}
                Some(expected) => parts.push(Part { source, fold: self.first_fold + fold, expected, rows }),
                None => parts.extend(self.fall_back([source, fold], &rows, &others)),
            }
        }
        if self.fall_backs {
            let all: Vec<u32> = (0..self.fold_of_row.len() as u32).collect();
            let groups = self.by_confidence.iter().chain([&all]);
            for (source, (expected, rows)) in (router.cells().count() as u32..).zip(others.into_iter().zip(groups)) {
                let rows: Vec<u32> = rows.iter().copied().filter(|&row| is_inside(row)).collect();
                if let Some(expected) = expected.filter(|_| !rows.is_empty()) {
                    parts.push(Part { source, fold: self.first_fold + fold, expected, rows });
                }
            }
        }
        parts
    }

    /// Rows whose cell has no rows outside the fold: decided like queries of an empty cell, by rows of the same confidence, else by all.
    fn fall_back(&self, [source, fold]: [u32; 2], rows: &[u32], others: &[Option<Decomposition>]) -> Vec<Part> {
        let bin = |row: u32| self.by_confidence.iter().position(|rows| rows.binary_search(&row).is_ok());
        let found = |&row: &u32| {
            let expected = bin(row).and_then(|bin| others[bin].clone()).or_else(|| others.last()?.clone())?;
            Some(Part { source, fold: self.first_fold + fold, expected, rows: vec![row] })
        };
        rows.iter().filter_map(found).collect()
    }
}
