//! What single rows lose by their own labels, the bias of few labels taken out.
//!
//! A row that was left out of an estimate judges it by its own labels. Its total loss needs no correction. Its irreducible loss
//! does: the entropy of k labels is too small. Under the Brier loss the row itself tells by how much, Û/k with the unbiased
//! Û = (k/(k − 1))(1 − ‖ȳ‖²). Under another loss the deficit counts as β Û/k, and β is what makes the mean over many rows the
//! irreducible loss that `shrink` finds in small groups of them. Unanimous rows are then never corrected, and whoever picks rows by
//! something else than their own labels gets an honest mean.

use rayon::prelude::*;

use super::leaves::{PerRow, Scratch};
use super::oracles::RowLosses;
use super::{Decomposition, Estimator, Piles};
use crate::loss::Loss;
use crate::router::{Mixture, label_free};
use crate::table::Table;

/// The seed by which rows of the same confidence come into groups.
const GROUPS: u64 = 0x9709;

/// Rows in which labels are shrunk together.
const ROWS_PER_GROUP: usize = 30;

/// Rows that have β in common: enough for its error to be small beside that of the rows' mean.
const ROWS_PER_SLOPE: usize = 200;

/// Losses per row, in the order of a table's rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct LabelLosses {
    /// Of the row's own prediction.
    pub(crate) total: Vec<f64>,
    /// Of an oracle who knows the truth; not a number where no row alike has two labels.
    pub(crate) irreducible: Vec<f64>,
    /// Of each other oracle.
    pub(crate) oracles: Vec<Vec<f64>>,
}

impl LabelLosses {
    /// The losses of all rows of a table; `oracles` are those of its other oracles, as far as a row's labels tell them.
    pub(crate) fn of(table: &Table, loss: &Loss, oracles: &RowLosses) -> Self {
        let per_row = PerRow::of(table, loss);
        let rows = table.rows();
        let mut losses = Self {
            total: (0..rows).map(|row| per_row.own(row).0).collect(),
            irreducible: vec![f64::NAN; rows],
            oracles: oracles.columns().to_vec(),
        };
        let groups = alike(table);
        let slopes = (rows / ROWS_PER_SLOPE).clamp(1, groups.len().max(1));
        let share = |slope: usize| &groups[slope * groups.len() / slopes..(slope + 1) * groups.len() / slopes];
        let corrected: Vec<Vec<f64>> =
            (0..slopes).into_par_iter().map(|slope| irreducible(table, &per_row, loss, share(slope))).collect();
        for (slope, corrected) in corrected.iter().enumerate() {
            let members: Vec<u32> = share(slope).concat();
            members.iter().zip(corrected).for_each(|(&row, value)| losses.irreducible[row as usize] = *value);
            losses.fill_panels(Mixture::of_rows(table, &members), loss, oracles);
        }
        losses
    }

    /// Gives rows with too few labels for a panel the row's own irreducible loss and what the panel loses more in all rows alike.
    fn fill_panels(&mut self, mixture: Mixture<'_>, loss: &Loss, oracles: &RowLosses) {
        let unknown = |values: &Vec<f64>| mixture.rows().any(|row| values[row].is_nan());
        if !self.oracles.iter().any(unknown) {
            return;
        }
        let found = Decomposition::of(mixture, loss, Estimator::Shrink, None, oracles, &mut Piles::default());
        let Some(found) = found else { return };
        for (values, [_, high]) in self.oracles.iter_mut().zip(&found.oracles) {
            let more = high - found.irreducible_high;
            for row in mixture.rows() {
                if values[row].is_nan() {
                    values[row] = self.irreducible[row] + more;
                }
            }
        }
    }
}

/// The rows in groups of the same top class and like confidence, groups in order of their confidence; labels do not enter.
fn alike(table: &Table) -> Vec<Vec<u32>> {
    let key = |row: &u32| {
        let peak = table.peak(*row as usize);
        (peak.class, peak.key())
    };
    // Rows of the same confidence are in no order that their labels could have a say in.
    let mut order = label_free::order_of_table(table, GROUPS);
    order.sort_by(|a, b| key(a).0.cmp(&key(b).0).then(key(a).1.total_cmp(&key(b).1)));
    // Classes too small for a group of their own share some.
    let (large, small): (Vec<&[u32]>, Vec<&[u32]>) =
        order.chunk_by(|a, b| key(a).0 == key(b).0).partition(|rows| rows.len() >= ROWS_PER_GROUP);
    let mut rest = small.concat();
    rest.sort_by(|a, b| key(a).1.total_cmp(&key(b).1));
    let cut = |rows: &[u32]| -> Vec<Vec<u32>> {
        let parts = (rows.len() / ROWS_PER_GROUP).max(1);
        let part = |i: usize| rows[i * rows.len() / parts..(i + 1) * rows.len() / parts].to_vec();
        (0..parts).map(part).collect()
    };
    let mut groups: Vec<Vec<u32>> = large.into_iter().flat_map(cut).chain(cut(&rest)).collect();
    groups.retain(|rows| !rows.is_empty());
    let middle = |rows: &Vec<u32>| key(&rows[rows.len() / 2]).1;
    groups.sort_by(|a, b| middle(a).total_cmp(&middle(b)));
    groups
}

/// The irreducible losses of the rows of some groups, one after the other.
fn irreducible(table: &Table, per_row: &PerRow<'_>, loss: &Loss, groups: &[Vec<u32>]) -> Vec<f64> {
    let mut scratch = Scratch::default();
    // Plug-in, what `shrink` adds to it, and Û/k: sums over rows with two labels.
    let (mut weight, mut plain, mut added, mut deficit) = (0.0, 0.0, 0.0, 0.0);
    let brier_deficit = |row: u32| {
        let votes = table.votes(row as usize)?;
        let k = votes.k() as f64;
        let square: f64 = votes.counts().iter().map(|&n| (f64::from(n) / k).powi(2)).sum();
        (k >= 2.0).then(|| (1.0 - square) / (k - 1.0))
    };
    for rows in groups {
        let pairs: Vec<u32> = rows.iter().copied().filter(|&row| brier_deficit(row).is_some()).collect();
        if pairs.is_empty() {
            continue;
        }
        let all: f64 = pairs.iter().map(|&row| per_row.weight(row as usize)).sum();
        let [_, shrunk, _] = per_row.losses(&pairs, loss, Estimator::Shrink, &mut scratch);
        let [_, plugin, _] = per_row.losses(&pairs, loss, Estimator::Plugin, &mut scratch);
        weight += all;
        plain += all * plugin;
        added += all * (shrunk - plugin);
        deficit +=
            pairs.iter().map(|&row| per_row.weight(row as usize) * brier_deficit(row).unwrap_or(0.0)).sum::<f64>();
    }
    let slope = match deficit > 0.0 {
        _ if *loss == Loss::brier() => 1.0,
        true => added / deficit,
        false => 0.0,
    };
    // A row with one label has the mean of the others, if there are any.
    let mean = (plain + added) / weight;
    let own = |&row: &u32| match brier_deficit(row) {
        Some(deficit) => per_row.own(row as usize).1 + slope * deficit,
        None => mean,
    };
    groups.iter().flatten().map(own).collect()
}
