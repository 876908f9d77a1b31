//! Higher-order calibration error: how far each cell's stored mixture is from the held-out one.

use rayon::prelude::*;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::loss::Loss;
use crate::partition::CellId;
use crate::router::{Mixture, Router};
use crate::table::Table;
use crate::wasserstein::{Cloud, Distance, distance};

/// How far a router's mixtures are from those of held-out rows: W1 in the ℓ1 norm between snapshot means.
///
/// Means over cells are weighted by held-out traffic; cells without rows on one side have no distance.
#[derive(Debug, Clone, Serialize)]
pub struct CalibrationError {
    /// Mean W1.
    pub raw: f64,
    /// Mean of what chance alone would give.
    pub floor: f64,
    /// Mean of the debiased distances.
    pub debiased: f64,
    /// Share of the held-out rows that fell into the cells compared.
    pub covered: f64,
    /// B times the raw distance: for a recalibrated router and labels as many as these, no task with this loss can regret
    /// more, on average, against the best action a cell.
    pub regret_bound: f64,
    /// The same with the debiased distance.
    pub regret_bound_debiased: f64,
    /// Largest difference of a cell's mean snapshot entropy between stored and held-out rows: what routing uses.
    pub irreducible_gap: f64,
    /// Mean labels an item, stored and held out. W1 compares like with like only if they agree.
    pub labels: [f64; 2],
    /// The cells compared.
    pub cells: Vec<CellError>,
}

/// One cell's calibration error.
#[derive(Debug, Clone, Serialize)]
pub struct CellError {
    /// The cell.
    pub cell: u32,
    /// Stored rows.
    pub rows: usize,
    /// Held-out rows.
    pub rows_held_out: usize,
    /// W1 as measured.
    pub raw: f64,
    /// What chance alone would give.
    pub floor: f64,
    /// sqrt(max(raw² − floor², 0)).
    pub debiased: f64,
    /// How often chance alone would give as much.
    pub p_value: f64,
    /// Whether the transport was solved on all points.
    pub exact: bool,
    /// Mean snapshot entropy of the held-out rows minus that of the stored ones.
    pub irreducible_gap: f64,
}

impl Router {
    /// Compares the stored mixtures with held-out rows that carry votes.
    ///
    /// `splits` random re-splits a cell, drawn from `seed`, give floor and p-value. `done` is called once a cell.
    ///
    /// # Errors
    /// If the table has no votes, other classes, or lacks a feature.
    pub fn calibration_error(
        &self,
        table: &Table,
        loss: &Loss,
        splits: usize,
        seed: u64,
        done: impl Fn() + Sync,
    ) -> Result<CalibrationError> {
        if !table.has_votes() {
            return Err(Error::Table("the calibration error needs votes: columns votes_<class>".into()));
        }
        loss.check_classes(self.classes().len())?;
        let mut held_out = vec![Vec::new(); self.cells().count()];
        for (row, cell) in self.find_cells(table)?.into_iter().enumerate() {
            held_out[cell.index()].push(row as u32);
        }
        let compared: Vec<Option<(CellError, f64)>> = held_out
            .par_iter()
            .enumerate()
            .map(|(cell, rows)| {
                let (stored, met) = (self.mixture(CellId(cell as u32)), Mixture::of_rows(table, rows));
                let compared = compare(cell as u32, stored, met, loss, splits, seed)?;
                done();
                Ok(compared)
            })
            .collect::<Result<_>>()?;
        let all: f64 = (0..table.rows()).map(|row| table.weight(row)).sum();
        let labels = [mean_labels(self.all_rows()), mean_labels(Mixture::all_rows_of(table))];
        let covered: f64 = compared.iter().flatten().map(|(_, weight)| weight).sum();
        let mean = |value: fn(&CellError) -> f64| {
            compared.iter().flatten().map(|(error, weight)| weight * value(error)).sum::<f64>() / covered
        };
        let (raw, debiased) = (mean(|e| e.raw), mean(|e| e.debiased));
        Ok(CalibrationError {
            raw,
            floor: mean(|e| e.floor),
            debiased,
            covered: covered / all,
            regret_bound: loss.bound() * raw,
            regret_bound_debiased: loss.bound() * debiased,
            irreducible_gap: compared.iter().flatten().map(|(e, _)| e.irreducible_gap.abs()).fold(0.0, f64::max),
            labels,
            cells: compared.into_iter().flatten().map(|(error, _)| error).collect(),
        })
    }
}

fn compare(
    cell: u32,
    stored: Mixture<'_>,
    met: Mixture<'_>,
    loss: &Loss,
    splits: usize,
    seed: u64,
) -> Result<Option<(CellError, f64)>> {
    if stored.is_empty() || met.is_empty() {
        return Ok(None);
    }
    let (a, entropy, _) = cloud(stored, loss)?;
    let (b, entropy_met, weight) = cloud(met, loss)?;
    let Distance { raw, floor, debiased, p_value, exact, .. } = distance(&a, &b, splits, seed ^ u64::from(cell))?;
    let error = CellError {
        cell,
        rows: stored.len(),
        rows_held_out: met.len(),
        raw,
        floor,
        debiased,
        p_value,
        exact,
        irreducible_gap: entropy_met - entropy,
    };
    Ok(Some((error, weight)))
}

/// The snapshot means as a cloud, their mean entropy and their weight.
fn cloud(mixture: Mixture<'_>, loss: &Loss) -> Result<(Cloud, f64, f64)> {
    let classes = mixture.table().classes().len();
    let (mut points, mut weights) = (vec![0.0; mixture.len() * classes], Vec::with_capacity(mixture.len()));
    let (mut entropy, mut weight) = (0.0, 0.0);
    for (row, point) in mixture.rows().zip(points.chunks_exact_mut(classes)) {
        mixture.votes(row).mean_into(point);
        let w = mixture.table().weight(row);
        entropy += w * loss.entropy(point);
        weight += w;
        weights.push(w);
    }
    Ok((Cloud::new(classes, &points, &weights)?, entropy / weight, weight))
}

fn mean_labels(mixture: Mixture<'_>) -> f64 {
    mixture.rows().map(|row| mixture.votes(row).k() as f64).sum::<f64>() / mixture.len() as f64
}
