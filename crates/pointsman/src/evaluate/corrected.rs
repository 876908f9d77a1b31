//! Losses of held-out rows, corrected row by row for the bias of few labels.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

use super::{Place, sum};
use crate::error::Result;
use crate::estimate::{RowEstimates, RowLaws, RowLosses, RowVotes, draw_into};
use crate::parallel::prelude::*;
use crate::policy::Policy;
use crate::router::label_free;
use crate::table::Table;
use crate::table::simplex::dot;

/// Draws of each row's true distribution.
const DRAWS: usize = 8;

const DRAW_SEED: u64 = 0xD4A3;

/// Losses of each row whose means are nearly unbiased over any rows chosen independently of their labels.
#[derive(Debug, Clone)]
pub(super) struct Corrected {
    /// The loss of the Bayes-optimal oracle.
    pub(super) irreducible: Vec<f64>,
    /// The loss of the Bayes-optimal oracle by a second correction; means of the two differ by what the labels leave open.
    pub(super) alternative: Vec<f64>,
    /// The losses of the other oracles: one list per oracle.
    pub(super) oracles: Vec<Vec<f64>>,
    /// Losses under the rows' shrunk snapshot means.
    pub(super) smooth: Smooth,
    /// Losses under posterior draws of p*. `None` if too few rows have two labels.
    pub(super) drawn: Option<Drawn>,
    /// The rows' votes; none if two labels per item identify the loss.
    pub(super) votes: Option<RowVotes>,
    /// Whether the labels separate noise from error at every confidence.
    pub(super) all_identified: bool,
}

/// Losses under snapshot means that are shrunk so that they vary as the true distributions do; they evaluate the best action per row.
#[derive(Debug, Clone)]
pub(super) struct Smooth {
    pub(super) total: Vec<f64>,
    pub(super) irreducible: Vec<f64>,
    pub(super) oracles: RowLosses,
}

/// Losses under posterior draws of each row's p*, under the law of rows with similar expected reducible loss: [`DRAWS`] per row, row by row.
#[derive(Debug, Clone)]
pub(super) struct Drawn {
    /// The loss of predicting.
    pub(super) total: Vec<f64>,
    /// The saving of the Bayes-optimal oracle.
    pub(super) reducible: Vec<f64>,
}

impl Drawn {
    /// The total and irreducible loss of each draw of a row.
    pub(super) fn losses(&self, row: usize) -> impl Iterator<Item = (f64, f64)> {
        let draws = row * DRAWS..(row + 1) * DRAWS;
        let (total, reducible) = (&self.total[draws.clone()], &self.reducible[draws]);
        total.iter().zip(reducible).map(|(total, reducible)| (*total, total - reducible))
    }
}

impl Corrected {
    /// Corrects the losses of a table's rows; `None` if the labels of most rows do not separate noise from error. `raw` are the oracles'
    /// uncorrected losses, `scores` the reducible loss that the router expects of each row.
    pub(super) fn fit(
        policy: &Policy,
        table: &Table,
        places: &[Place],
        raw: &RowLosses,
        scores: &[f64],
    ) -> Result<Option<Self>> {
        let loss = policy.task().loss();
        let Some(estimates) = RowEstimates::fit(table, loss) else { return Ok(None) };
        let classes = table.classes().len();
        let mut points = vec![0.0; table.rows() * classes];
        points.chunks_exact_mut(classes).enumerate().for_each(|(row, out)| estimates.point_into(table, row, out));
        let mut order = label_free::order_of_table(table, DRAW_SEED);
        let mut numbers = vec![0; order.len()];
        order.iter().zip(DRAW_SEED..).for_each(|(&row, number)| numbers[row as usize] = number);
        order.sort_by(|&a, &b| scores[a as usize].total_cmp(&scores[b as usize]));
        let laws = RowLaws::fit(table, &order);
        let buffers = || [(); 4].map(|()| vec![0.0; classes]);
        // Total and irreducible loss under the shrunk snapshot mean, and total and reducible loss of each draw.
        let measure = |[served, losses, law, draw]: &mut [Vec<f64>; 4], row: usize| {
            match policy.served(places[row].source) {
                Some(centroid) => served.copy_from_slice(centroid),
                None => table.dist_into(row, served),
            }
            loss.losses_into(served, losses);
            let point = &points[row * classes..][..classes];
            let mut drawn = [[0.0; 2]; DRAWS];
            if let Some(laws) = &laws {
                laws.parameters_into(table, row, law);
                let mut random = Pcg64::seed_from_u64(numbers[row]);
                for [total, reducible] in &mut drawn {
                    draw_into(law, &mut random, draw);
                    *total = dot(draw, losses);
                    *reducible = *total - loss.entropy(draw);
                }
            }
            (dot(point, losses), loss.entropy(point), drawn)
        };
        let rows: Vec<(f64, f64, [[f64; 2]; DRAWS])> =
            (0..places.len()).into_par_iter().with_min_len(1 << 8).map_init(buffers, measure).collect();
        let total = rows.iter().map(|(total, ..)| *total).collect();
        let irreducible = rows.iter().map(|(_, irreducible, _)| *irreducible).collect();
        let of_draws = |which: usize| rows.iter().flat_map(|(.., drawn)| drawn.map(|losses| losses[which])).collect();
        let drawn = laws.is_some().then(|| Drawn { total: of_draws(0), reducible: of_draws(1) });
        let (oracles, smooth) = other_oracles(policy, table, raw, points)?;
        Ok(Some(Self {
            irreducible: estimates.irreducible,
            alternative: estimates.alternative,
            oracles,
            smooth: Smooth { total, irreducible, oracles: smooth },
            drawn,
            votes: RowVotes::from_table(table, loss),
            all_identified: estimates.all_identified,
        }))
    }
}

/// The losses of the other oracles on each row, one list per oracle, and those under the rows' shrunk snapshot means `points`.
fn other_oracles(
    policy: &Policy,
    table: &Table,
    raw: &RowLosses,
    points: Vec<f64>,
) -> Result<(Vec<Vec<f64>>, RowLosses)> {
    let (loss, others) = (policy.task().loss(), policy.other_oracles());
    if others.is_empty() {
        return Ok((Vec::new(), RowLosses::default()));
    }
    let smooth = RowLosses::held_out(&table.clone().with_truth(points)?, loss, others)?;
    let unbiased = RowLosses::from_labels(table, loss, others)?;
    let columns = unbiased.columns().iter().zip(raw.columns()).zip(smooth.columns());
    let filled = columns.map(|((unbiased, raw), smooth)| fill_missing(table, unbiased, raw, smooth)).collect();
    Ok((filled, smooth))
}

/// An oracle's loss on each row: the unbiased estimate or, if the row has too few labels, the raw loss times the factor by which it is too
/// small on average.
fn fill_missing(table: &Table, unbiased: &[f64], raw: &[f64], smooth: &[f64]) -> Vec<f64> {
    let total_of_missing = |losses: &[f64]| {
        sum((0..unbiased.len()).filter(|&row| unbiased[row].is_nan()).map(|row| table.weight(row) * losses[row]))
    };
    let (found, wanted) = (total_of_missing(raw), total_of_missing(smooth));
    let factor = if found > 0.0 { wanted / found } else { 1.0 };
    unbiased.iter().zip(raw).map(|(value, raw)| if value.is_nan() { factor * raw } else { *value }).collect()
}
