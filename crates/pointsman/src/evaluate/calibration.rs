//! Higher-order calibration error: the distance between each cell's stored and held-out mixture.

use crate::error::{Result, RouterError, TableError};
use crate::estimate::{self, RowLosses};
use crate::loss::Loss;
use crate::oracle::Panel;
use crate::parallel::prelude::*;
use crate::partition::{Axis, CellId};
use crate::policy::Policy;
use crate::router::{Mixture, Router};
use crate::table::Table;
use crate::wasserstein::{Cloud, Distance, distance_with_splits, p_value, w1};

/// The distance between a router's mixtures and those of held-out rows: W1 in the ℓ1 norm between snapshot means.
///
/// Held-out rows are put into cells as calibration rows are: a forest scores them by four in ten of its trees, as it scores its out-of-bag
/// rows. The cells of its decisions differ, because queries are scored by all trees.
///
/// Means over cells are weighted by held-out traffic; cells without stored or held-out rows are left out.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CalibrationError {
    /// Mean W1.
    pub raw: f64,
    /// Mean of the W1 expected by chance alone.
    pub floor: f64,
    /// √max(0, mean over cells of raw² less the mean square of the distances expected by chance): zero if the distances are on average no
    /// larger than by chance, and by chance above zero in half of all tables. The mean of the cells' own debiased distances would always be
    /// above zero.
    pub debiased: f64,
    /// The permutation p-value of `raw`: how often chance alone gives a mean W1 as large.
    pub p_value: f64,
    /// Share of the held-out rows in the compared cells.
    pub covered: f64,
    /// The mean over cells of max{Bε, 2γε}, where ε is the W1 between the mixture that the policy decides by and the truth of the held-out
    /// rows, B the loss's bound and γ the largest Lipschitz constant of the oracles. At any prices, the regret of these rows against the
    /// best action per cell is at most this. For an oracle that is not estimated from that mixture, a measured one or a panel with fewer
    /// experts than labels, the difference to the held-out rows replaces γε. Unknown where the theorem does not apply: if predictions vary
    /// within cells (calibrate with centroids), if held-out rows fall into cells without calibration rows, or if the estimator uses more
    /// than a mixture of points.
    pub regret_bound: Option<f64>,
    /// Largest difference of a cell's mean snapshot entropy between stored and held-out rows.
    pub irreducible_gap: f64,
    /// Mean labels per item, stored and held out. W1 is comparable only if they agree.
    pub labels: [f64; 2],
    /// The compared cells.
    pub cells: Vec<CellError>,
}

/// One cell's calibration error.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CellError {
    /// The cell.
    pub cell: u32,
    /// Stored rows.
    pub rows: usize,
    /// Held-out rows.
    pub rows_held_out: usize,
    /// The measured W1.
    pub raw: f64,
    /// The W1 expected by chance alone.
    pub floor: f64,
    /// sqrt(max(raw² − floor², 0)).
    pub debiased: f64,
    /// The permutation p-value.
    pub p_value: f64,
    /// Whether W1 is exact, not a mean over subsamples.
    pub exact: bool,
    /// Mean snapshot entropy of the held-out rows minus that of the stored ones.
    pub irreducible_gap: f64,
}

impl Router {
    /// Compares the stored mixtures with held-out rows that have votes, and bounds the regret of `policy`.
    ///
    /// Floor and p-value come from `splits` random re-splits per cell, drawn from `seed`. `done` is called once per cell.
    ///
    /// # Errors
    /// If the table has no votes, other classes, or lacks a feature or a measured oracle, or if the policy is another router's.
    pub fn calibration_error(
        &self,
        table: &Table,
        policy: &Policy,
        splits: usize,
        seed: u64,
        done: impl Fn() + Sync,
    ) -> Result<CalibrationError> {
        if !table.has_votes() {
            return Err(TableError::NoVotes { purpose: "the calibration error", columns: "votes_<class>" }.into());
        }
        if !policy.is_of(self) {
            return Err(RouterError::OtherRouter.into());
        }
        let mut held_out = vec![Vec::new(); self.cells().count()];
        for (row, cell) in self.find_comparable_cells(table)?.into_iter().enumerate() {
            held_out[cell.index()].push(row as u32);
        }
        let oracles = RowLosses::held_out(table, policy.task().loss(), policy.other_oracles())?;
        let classes = self.classes().len();
        let lipschitz: Vec<f64> =
            policy.other_oracles().oracles().map(|oracle| oracle.lipschitz(policy.task().loss(), classes)).collect();
        let compared: Vec<Option<Compared>> = held_out
            .par_iter()
            .enumerate()
            .map(|(cell, rows)| {
                let (stored, met) = (self.mixture(CellId(cell as u32)), Mixture::of_rows(table, rows));
                let mut compared = self.compare(cell as u32, stored, met, policy, splits, seed)?;
                if let Some(compared) = &mut compared {
                    compared.bound_regret(stored, met, policy, &oracles, &lipschitz);
                }
                done();
                Ok(compared)
            })
            .collect::<Result<_>>()?;
        let all: f64 = (0..table.rows()).map(|row| table.weight(row)).sum();
        let labels = [mean_labels(self.all_rows()), mean_labels(Mixture::all_rows_of(table))];
        let covered: f64 = compared.iter().flatten().map(|c| c.weight).sum();
        let mean =
            |value: fn(&Compared) -> f64| compared.iter().flatten().map(|c| c.weight * value(c)).sum::<f64>() / covered;
        // Cells are split anew independently, so that their splits of one number are a split of the table.
        let splits: Vec<f64> = (0..splits)
            .map(|split| compared.iter().flatten().map(|c| c.weight * c.splits[split]).sum::<f64>() / covered)
            .collect();
        let raw = mean(|c| c.error.raw);
        let bound: Option<f64> = compared.iter().flatten().map(|c| Some(c.weight * c.regret_bound?)).sum();
        let everywhere = covered >= all * (1.0 - 1e-12);
        Ok(CalibrationError {
            raw,
            floor: mean(|c| c.error.floor),
            debiased: mean(|c| c.error.raw.powi(2) - c.mean_square_of_splits()).max(0.0).sqrt(),
            p_value: if covered > 0.0 { p_value(raw, &splits) } else { f64::NAN },
            covered: covered / all,
            regret_bound: bound.filter(|_| self.is_recalibrated() && everywhere).map(|sum| sum / covered),
            irreducible_gap: compared.iter().flatten().map(|c| c.error.irreducible_gap.abs()).fold(0.0, f64::max),
            labels,
            cells: compared.into_iter().flatten().map(|c| c.error).collect(),
        })
    }

    fn compare(
        &self,
        cell: u32,
        stored: Mixture<'_>,
        met: Mixture<'_>,
        policy: &Policy,
        splits: usize,
        seed: u64,
    ) -> Result<Option<Compared>> {
        if stored.is_empty() || met.is_empty() {
            return Ok(None);
        }
        let loss = policy.task().loss();
        let (a, entropy, _) = snapshots(stored, loss)?;
        let (b, entropy_met, weight) = snapshots(met, loss)?;
        let (distance, splits) = distance_with_splits(&a, &b, splits, seed ^ u64::from(cell))?;
        let Distance { raw, floor, debiased, p_value, exact, .. } = distance;
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
        // The estimates of a tree's leaves and of pooled cells depend on other cells as well.
        let by_mixture = !matches!(self.cells().axes(), [Axis::Tree { .. } | Axis::Pooled { .. }]);
        let epsilon = if self.is_recalibrated() && exact && by_mixture {
            let points = estimate::points(stored, loss, policy.task().chosen_estimator());
            let distance =
                |points: Vec<f64>| -> Result<f64> { Ok(w1(&cloud(stored, &points)?, &truths(met)?, seed)?.distance) };
            points.map(distance).transpose()?
        } else {
            None
        };
        let regret_bound = epsilon.map(|epsilon| loss.bound() * epsilon);
        Ok(Some(Compared { error, splits, weight, epsilon, regret_bound }))
    }
}

/// A compared cell.
struct Compared {
    error: CellError,
    /// W1 between the parts of each random re-split.
    splits: Vec<f64>,
    /// The weight of the held-out rows.
    weight: f64,
    /// W1 between the mixture that decides the cell and the truth.
    epsilon: Option<f64>,
    regret_bound: Option<f64>,
}

impl Compared {
    fn mean_square_of_splits(&self) -> f64 {
        self.splits.iter().map(|split| split * split).sum::<f64>() / self.splits.len() as f64
    }

    /// Raises the regret bound by the oracles that are not Bayes-optimal.
    fn bound_regret(
        &mut self,
        stored: Mixture<'_>,
        met: Mixture<'_>,
        policy: &Policy,
        held_out: &RowLosses,
        lipschitz: &[f64],
    ) {
        let Some((bound, epsilon)) = self.regret_bound.as_mut().zip(self.epsilon) else { return };
        let loss = policy.task().loss();
        let estimated = &policy.estimate(self.error.cell).oracles;
        let oracles = policy.other_oracles().oracles().zip(lipschitz);
        for (((oracle, lipschitz), losses), ends) in oracles.zip(held_out.columns()).zip(estimated) {
            // Whether both losses are integrals over the mixture and over the truth, not unbiased estimates from labels.
            let integrated = Panel::from_oracle(oracle).is_some_and(|panel| {
                let few = |mixture: Mixture<'_>, row| mixture.votes(row).k() < panel.labels_needed(loss);
                stored.rows().all(|row| few(stored, row))
                    && met.rows().all(|row| met.table().truth(row).is_some() || few(met, row))
            });
            let off = if integrated {
                lipschitz * epsilon
            } else {
                let sum: f64 = met.rows().map(|row| met.table().weight(row) * losses[row]).sum();
                ends.iter().map(|end| (end - sum / self.weight).abs()).fold(0.0, f64::max)
            };
            *bound = bound.max(2.0 * off);
        }
    }
}

/// The snapshot means as a cloud, their mean entropy and their weight.
fn snapshots(mixture: Mixture<'_>, loss: &Loss) -> Result<(Cloud, f64, f64)> {
    let classes = mixture.table().classes().len();
    let mut points = vec![0.0; mixture.len() * classes];
    let (mut entropy, mut weight) = (0.0, 0.0);
    for (row, point) in mixture.rows().zip(points.chunks_exact_mut(classes)) {
        mixture.votes(row).mean_into(point);
        let w = mixture.table().weight(row);
        entropy += w * loss.entropy(point);
        weight += w;
    }
    Ok((cloud(mixture, &points)?, entropy / weight, weight))
}

/// The rows' truth for evaluation: the true distribution if known, else the snapshot mean.
fn truths(mixture: Mixture<'_>) -> Result<Cloud> {
    let classes = mixture.table().classes().len();
    let mut points = vec![0.0; mixture.len() * classes];
    for (row, point) in mixture.rows().zip(points.chunks_exact_mut(classes)) {
        match mixture.table().truth(row) {
            Some(truth) => point.copy_from_slice(truth),
            None => mixture.votes(row).mean_into(point),
        }
    }
    cloud(mixture, &points)
}

/// Points with the rows' weights.
fn cloud(mixture: Mixture<'_>, points: &[f64]) -> Result<Cloud> {
    let weights: Vec<f64> = mixture.rows().map(|row| mixture.table().weight(row)).collect();
    Cloud::new(mixture.table().classes().len(), points, &weights)
}

fn mean_labels(mixture: Mixture<'_>) -> f64 {
    mixture.rows().map(|row| mixture.votes(row).k() as f64).sum::<f64>() / mixture.len() as f64
}
