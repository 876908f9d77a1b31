//! Losses of held-out rows, corrected row by row for the bias of few labels.

use std::collections::BTreeMap;

use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

use super::Place;
use super::hindsight::{Hindsight, predictions};
use crate::error::Result;
use crate::estimate::{PredictedLaw, RowEstimates, RowLaws, RowLosses, RowVotes};
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
    /// The reducible losses that evaluate the best order of routing.
    pub(super) reducible: LawReducible,
    /// What the best action per row is estimated from.
    pub(super) hindsight: Hindsight,
    /// The rows' votes; none if two labels per item identify the loss.
    pub(super) votes: Option<RowVotes>,
    /// Whether the labels separate noise from error at every confidence.
    pub(super) all_identified: bool,
}

/// Reducible losses under the law of each row's p*, given what predicts it and its labels.
#[derive(Debug, Clone)]
pub(super) struct LawReducible {
    /// At the row's snapshot mean, shrunk so that it varies as p* does.
    pub(super) at_points: Vec<f64>,
    /// At posterior draws: [`DRAWS`] per row, row by row.
    pub(super) at_draws: Vec<f64>,
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
        let predictions = predictions(policy, table, &estimates, laws.as_ref())?;
        let law = PredictedLaw::fit_in_groups(table, &predictions, &order);
        let hindsight = Hindsight::fit(policy, table, places, predictions, &unsorted)?;
        let buffers = || [(); 3].map(|()| vec![0.0; classes]);
        let measure = |[served, losses, truth]: &mut [Vec<f64>; 3], row: usize| {
            match policy.served(places[row].source) {
                Some(centroid) => served.copy_from_slice(centroid),
                None => table.dist_into(row, served),
            }
            loss.losses_into(served, losses);
            let reducible = |truth: &[f64]| dot(truth, losses) - loss.entropy(truth);
            law.point_into(table, row, truth);
            let at_point = reducible(truth);
            let mut random = Pcg64::seed_from_u64(numbers[row]);
            let at_draws = [(); DRAWS].map(|()| {
                law.draw_into(table, row, &mut random, truth);
                reducible(truth)
            });
            (at_point, at_draws)
        };
        let rows: Vec<(f64, [f64; DRAWS])> =
            (0..places.len()).into_par_iter().with_min_len(1 << 8).map_init(buffers, measure).collect();
        let reducible = LawReducible {
            at_points: rows.iter().map(|(at_point, _)| *at_point).collect(),
            at_draws: rows.iter().flat_map(|(_, at_draws)| *at_draws).collect(),
        };
        let oracles = other_oracles(policy, table, raw, points)?;
        let [irreducible, alternative] = estimates.pseudo_values(table);
        Ok(Some(Self {
            irreducible,
            alternative,
            oracles,
            reducible,
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
