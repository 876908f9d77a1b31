//! Losses of held-out rows, corrected row by row for the bias of few labels.

use std::collections::BTreeMap;

use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

use super::Place;
use super::hindsight::Hindsight;
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
    /// The reducible loss under posterior draws of each row's p*, under the law of rows with similar expected reducible loss: [`DRAWS`] per
    /// row, row by row. `None` if too few rows have two labels.
    pub(super) drawn: Option<Vec<f64>>,
    /// What the best action per row is estimated from.
    pub(super) hindsight: Hindsight,
    /// The rows' votes; none if two labels per item identify the loss.
    pub(super) votes: Option<RowVotes>,
    /// Whether the labels separate noise from error at every confidence.
    pub(super) all_identified: bool,
}

/// Losses under snapshot means that are shrunk so that they vary as the true distributions do; they evaluate the best order of routing.
#[derive(Debug, Clone)]
pub(super) struct Smooth {
    pub(super) total: Vec<f64>,
    pub(super) irreducible: Vec<f64>,
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
        let unsorted = label_free::order_of_table(table, DRAW_SEED);
        let mut order = unsorted.clone();
        let mut numbers = vec![0; order.len()];
        order.iter().zip(DRAW_SEED..).for_each(|(&row, number)| numbers[row as usize] = number);
        order.sort_by(|&a, &b| scores[a as usize].total_cmp(&scores[b as usize]));
        let laws = RowLaws::fit(table, &order);
        let hindsight = Hindsight::fit(policy, table, places, &estimates, laws.as_ref(), &unsorted)?;
        let buffers = || [(); 4].map(|()| vec![0.0; classes]);
        // Total and irreducible loss under the shrunk snapshot mean, and reducible loss of each draw.
        let measure = |[served, losses, law, draw]: &mut [Vec<f64>; 4], row: usize| {
            match policy.served(places[row].source) {
                Some(centroid) => served.copy_from_slice(centroid),
                None => table.dist_into(row, served),
            }
            loss.losses_into(served, losses);
            let point = &points[row * classes..][..classes];
            let mut drawn = [0.0; DRAWS];
            if let Some(laws) = &laws {
                laws.parameters_into(table, row, law);
                let mut random = Pcg64::seed_from_u64(numbers[row]);
                for reducible in &mut drawn {
                    draw_into(law, &mut random, draw);
                    *reducible = dot(draw, losses) - loss.entropy(draw);
                }
            }
            (dot(point, losses), loss.entropy(point), drawn)
        };
        let rows: Vec<(f64, f64, [f64; DRAWS])> =
            (0..places.len()).into_par_iter().with_min_len(1 << 8).map_init(buffers, measure).collect();
        let total = rows.iter().map(|(total, ..)| *total).collect();
        let smooth = Smooth { total, irreducible: rows.iter().map(|(_, irreducible, _)| *irreducible).collect() };
        let drawn = laws.is_some().then(|| rows.iter().flat_map(|(.., drawn)| *drawn).collect());
        let oracles = other_oracles(policy, table, raw, points)?;
        let [irreducible, alternative] = estimates.pseudo_values(table);
        Ok(Some(Self {
            irreducible,
            alternative,
            oracles,
            smooth,
            drawn,
            hindsight,
            votes: RowVotes::from_table(table, loss),
            all_identified: estimates.all_identified,
        }))
    }
}

/// The losses of the other oracles on each row, one list per oracle; `points` are the rows' shrunk snapshot means.
fn other_oracles(policy: &Policy, table: &Table, raw: &RowLosses, points: Vec<f64>) -> Result<Vec<Vec<f64>>> {
    let (loss, others) = (policy.task().loss(), policy.other_oracles());
    if others.is_empty() {
        return Ok(Vec::new());
    }
    let smooth = RowLosses::held_out(&table.clone().with_truth(points)?, loss, others)?;
    let unbiased = RowLosses::from_labels(table, loss, others)?;
    let columns = unbiased.columns().iter().zip(raw.columns()).zip(smooth.columns());
    Ok(columns.map(|((unbiased, raw), smooth)| fill_missing(table, unbiased, raw, smooth)).collect())
}

/// An oracle's loss on each row: the unbiased estimate or, if the row has too few labels, the raw loss times the factor by which it is too
/// small on average among rows with as many labels. With one label the raw loss of a panel is zero; the mean replaces it.
fn fill_missing(table: &Table, unbiased: &[f64], raw: &[f64], smooth: &[f64]) -> Vec<f64> {
    let labels = |row: usize| table.votes(row).map_or(0, |votes| votes.k());
    // The weight, the raw and the wanted loss of rows with each number of labels.
    let mut sums = BTreeMap::<u64, [f64; 3]>::new();
    for row in (0..unbiased.len()).filter(|&row| unbiased[row].is_nan()) {
        let sums = sums.entry(labels(row)).or_default();
        [1.0, raw[row], smooth[row]].iter().zip(sums).for_each(|(value, sum)| *sum += table.weight(row) * value);
    }
    let fill = |row: usize| match sums.get(&labels(row)) {
        Some([_, found, wanted]) if *found > 1e-9 * wanted => wanted / found * raw[row],
        Some([weight, _, wanted]) if *weight > 0.0 => wanted / weight,
        _ => raw[row],
    };
    unbiased.iter().enumerate().map(|(row, value)| if value.is_nan() { fill(row) } else { *value }).collect()
}

#[cfg(test)]
mod tests {
    use super::fill_missing;
    use crate::table::Table;

    #[test]
    fn missing_losses_are_scaled_among_rows_with_as_many_labels() {
        let votes = vec![1, 0, 0, 1, 2, 0, 1, 1, 3, 1];
        let table = Table::new(["a", "b"], [0.6, 0.4].repeat(5)).and_then(|table| table.with_votes(votes)).unwrap();
        let nan = f64::NAN;
        let found =
            fill_missing(&table, &[nan, nan, nan, nan, 0.7], &[0.0, 0.0, 0.0, 0.5, 0.1], &[0.2, 0.4, 0.3, 0.5, 9.0]);
        let wanted = [0.3, 0.3, 0.0, 0.8, 0.7];
        assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
    }
}
