//! What held-out rows lose, the bias of few labels taken out row by row.

use super::{Place, sum};
use crate::error::Result;
use crate::estimate::{RowEstimates, RowLosses};
use crate::policy::Policy;
use crate::simplex::dot;
use crate::table::Table;

/// Losses of each row whose means are right over any rows chosen without looking at their labels.
#[derive(Debug, Clone)]
pub(super) struct Corrected {
    /// Of the Bayes-optimal oracle.
    pub(super) irreducible: Vec<f64>,
    /// The same by another correction: means of the two differ by what the labels leave open.
    pub(super) alternative: Vec<f64>,
    /// Of the other oracles: one list per oracle.
    pub(super) oracles: Vec<Vec<f64>>,
    /// What rows lose under their shrunken snapshots.
    pub(super) smooth: Smooth,
    /// Whether the labels tell noise from error at every confidence.
    pub(super) all_identified: bool,
}

/// Losses under snapshot means shrunk until they vary as the true distributions do. They vary as the truth does, so that the best
/// action per row can be judged by them; a row's own is drawn towards the others'.
#[derive(Debug, Clone)]
pub(super) struct Smooth {
    pub(super) total: Vec<f64>,
    pub(super) irreducible: Vec<f64>,
    pub(super) oracles: RowLosses,
}

impl Corrected {
    /// `None` if the labels of most rows do not tell noise from error. `raw` are the oracles' losses by the labels as they are.
    pub(super) fn of(policy: &Policy, table: &Table, places: &[Place], raw: &RowLosses) -> Result<Option<Self>> {
        let loss = policy.task().loss();
        let Some(estimates) = RowEstimates::of(table, loss) else { return Ok(None) };
        let classes = table.classes().len();
        let mut points = vec![0.0; table.rows() * classes];
        points.chunks_exact_mut(classes).enumerate().for_each(|(row, out)| estimates.point_into(table, row, out));
        let (mut served, mut losses) = (vec![0.0; classes], vec![0.0; classes]);
        let (mut total, mut irreducible) = (Vec::with_capacity(places.len()), Vec::with_capacity(places.len()));
        for (row, (place, point)) in places.iter().zip(points.chunks_exact(classes)).enumerate() {
            match policy.served(place.source) {
                Some(centroid) => served.copy_from_slice(centroid),
                None => table.dist_into(row, &mut served),
            }
            loss.losses_into(&served, &mut losses);
            total.push(dot(point, &losses));
            irreducible.push(loss.entropy(point));
        }
        let (oracles, smooth) = if policy.asked().is_empty() {
            (Vec::new(), RowLosses::default())
        } else {
            let smooth = RowLosses::held_out(&table.clone().with_truth(points)?, loss, policy.asked())?;
            let told = RowLosses::of(table, loss, policy.asked())?;
            let columns = told.columns().iter().zip(raw.columns()).zip(smooth.columns());
            (columns.map(|((told, raw), smooth)| filled(table, told, raw, smooth)).collect(), smooth)
        };
        Ok(Some(Self {
            irreducible: estimates.irreducible,
            alternative: estimates.alternative,
            oracles,
            smooth: Smooth { total, irreducible, oracles: smooth },
            all_identified: estimates.all_identified,
        }))
    }
}

/// What an oracle loses on each row: as its labels tell without bias or, where they are too few, by the labels as they are times what
/// that lacks on average.
fn filled(table: &Table, told: &[f64], raw: &[f64], smooth: &[f64]) -> Vec<f64> {
    let lacking = |losses: &[f64]| {
        sum((0..told.len()).filter(|&row| told[row].is_nan()).map(|row| table.weight(row) * losses[row]))
    };
    let (found, wanted) = (lacking(raw), lacking(smooth));
    let factor = if found > 0.0 { wanted / found } else { 1.0 };
    told.iter().zip(raw).map(|(told, raw)| if told.is_nan() { factor * raw } else { *told }).collect()
}
