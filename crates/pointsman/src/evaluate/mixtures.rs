//! Histograms of a cell's stored and held-out mixture.

use crate::error::{Result, TableError};
use crate::partition::CellId;
use crate::router::{Mixture, Router};
use crate::table::Table;
use crate::table::simplex::top_class;

/// The distribution of one class's share of an item's labels over the items of a cell, stored and held out.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct MixtureHistogram {
    /// The cell.
    pub cell: u32,
    /// The class: the second of two, otherwise the most frequent class of the stored rows.
    pub class: String,
    /// The share of the stored rows in each bin of [0, 1]; none if the cell is empty.
    pub stored: Option<Vec<f64>>,
    /// The share of the held-out rows in each bin; none if there are no rows.
    pub held_out: Option<Vec<f64>>,
}

impl Router {
    /// Histograms of the given cells, stored and held out. Held-out rows without votes use their known truth.
    ///
    /// # Errors
    /// If the table has neither votes nor truth, other classes, or lacks a feature.
    pub fn mixture_histograms(&self, table: &Table, cells: &[CellId], bins: usize) -> Result<Vec<MixtureHistogram>> {
        if table.rows() > 0 && !table.has_votes() && table.truth(0).is_none() {
            return Err(TableError::NoVotes {
                purpose: "a histogram of mixtures",
                columns: "votes_<class> or true_<class>",
            }
            .into());
        }
        let mut held_out = vec![Vec::new(); self.cells().count()];
        for (row, cell) in self.find_comparable_cells(table)?.into_iter().enumerate() {
            held_out[cell.index()].push(row as u32);
        }
        let histogram = |&cell: &CellId| {
            let (stored, met) = (self.mixture(cell), Mixture::of_rows(table, &held_out[cell.index()]));
            let class = match self.classes().len() {
                2 => 1,
                _ => stored.centroid().map_or(0, |centroid| top_class(&centroid)),
            };
            MixtureHistogram {
                cell: cell.0,
                class: self.classes()[class].clone(),
                stored: shares(stored, class, bins),
                held_out: shares(met, class, bins),
            }
        };
        Ok(cells.iter().map(histogram).collect())
    }
}

fn shares(mixture: Mixture<'_>, class: usize, bins: usize) -> Option<Vec<f64>> {
    let (mut counts, mut all) = (vec![0.0; bins.max(1)], 0.0);
    let mut mean = vec![0.0; mixture.table().classes().len()];
    for row in mixture.rows() {
        match (mixture.table().votes(row), mixture.table().truth(row)) {
            (Some(votes), _) => votes.mean_into(&mut mean),
            (None, Some(truth)) => mean.copy_from_slice(truth),
            (None, None) => {}
        }
        // A share on an edge belongs to the bin above, also after rounding.
        let bin = (mean[class] * counts.len() as f64 + 1e-9) as usize;
        let last = counts.len() - 1;
        let weight = mixture.table().weight(row);
        counts[bin.min(last)] += weight;
        all += weight;
    }
    counts.iter_mut().for_each(|count| *count /= all);
    (!mixture.is_empty()).then_some(counts)
}
