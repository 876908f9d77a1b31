//! The irreducible loss of each row from its own labels, nearly unbiased on average over any rows chosen without their labels.
//!
//! A correction of a group's mean is valid for the group but not for the part of it that a router routes, so every row gets its own
//! value. Under the Brier loss it is Û = k/(k − 1)·(1 − ‖ȳ‖²), which is unbiased for every p*. No other loss has an unbiased
//! estimate. There the entropy of the snapshot mean is too small by b(p*) = G(p*) − E G(ȳ), and b is approximated by a polynomial
//! Σ_j β_j (1 − Σ_c p_c^j), j ≤ min(k, 4), which has an unbiased estimate from k labels:
//!
//! v = G(ȳ) + β_0 + Σ_j β_j (1 − Σ_c N_c(N_c − 1)…(N_c − j + 1) / (k(k − 1)…(k − j + 1))).
//!
//! The β are fitted by least squares under the law of p* among rows of similar confidence: Dirichlet around their mean votes, with classes
//! in the order of each row's prediction, updated by each row's votes. The correction is unbiased for the polynomial part of b on any rows;
//! only the residual of b can bias it, and the residual has mean zero over the group.
//!
//! Powers of shares are nearly collinear, so the β minimise the squared error plus the variance that labels add to a group's mean.
//!
//! A second correction multiplies G(ȳ) by a factor of the group, the entropy of the shrunk snapshot means over that of the snapshot means.
//! The difference between the two shows how much the labels leave open.
//!
//! A row with one label has the mean of the rows with several labels in its group, moved by what its features tell (`single_labels`). Groups
//! are formed so that each has enough rows with several labels.

use std::collections::BTreeMap;

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

use super::bias_polynomial::{LeastSquares, MAX_DEGREE, Polynomial, diversities, unbiased_diversities};
use super::dirichlet::draw_into;
use super::moments::Moments;
use super::single_labels::shifts_by_features;
use super::vote_groups::VoteGroup;
use crate::loss::{Loss, Shape};
use crate::numeric::mix::{class_at, mix, uniform};
use crate::numeric::weighted::weighted_mean;
use crate::parallel::prelude::*;
use crate::table::Table;
use crate::table::votes::Votes;

/// Rows of similar confidence per group, counting those with several labels.
const ROWS_PER_GROUP: usize = 60;

/// The largest number of groups, over all rows or per top class.
const MAX_GROUPS: usize = 10;

/// The largest number of laws in [`RowLaws`].
const MAX_LAWS: usize = 40;

/// Draws from the law of a group.
const DRAWS: usize = 4000;

/// The smallest number of draws per number of labels, if that varies.
const MIN_DRAWS: usize = 500;

/// Simulated labels per draw of p*, over all repetitions.
const LABELS_PER_DRAW: u64 = 20;

/// The largest number of repetitions per draw of p*.
const MAX_REPETITIONS: u64 = 4;

/// With more labels than this the bias is too small for the polynomial to matter.
const MAX_LABELS_FOR_POLYNOMIAL: u64 = 100;

/// Estimates of each row's irreducible loss.
#[derive(Debug, Clone)]
pub(crate) struct RowEstimates {
    /// The irreducible loss by the polynomial correction: noisy for one row, accurate in the mean of rows chosen without their labels.
    pub(crate) irreducible: Vec<f64>,
    /// The irreducible loss by the second correction. The means differ by what the labels leave open.
    pub(crate) alternative: Vec<f64>,
    /// Whether the labels of every group separate noise from error; otherwise some groups use the concentration of all rows.
    pub(crate) all_identified: bool,
    groups: Vec<Group>,
    pub(super) group_of_row: Vec<u32>,
    /// By how much each row is expected to differ from the mean of its group, by its features; empty if that is not known.
    pub(super) shifts: Vec<f64>,
}

/// Rows of similar confidence.
#[derive(Debug, Clone)]
struct Group {
    /// The moments, with classes in the order of each row's prediction.
    moments: Moments,
}

/// Rows of a group with the same votes and the same ranking of classes.
struct Item {
    counts: Vec<u32>,
    /// The mean votes of the group, in the item's order of classes.
    centre: Vec<f64>,
    k: u64,
    weight: f64,
    /// The entropy of the snapshot mean.
    entropy: f64,
    /// The entropy of the shrunk snapshot mean.
    shrunk: f64,
}

impl RowEstimates {
    /// Estimates the irreducible loss of each row; `None` if the table has no votes, or too few rows have several labels to separate noise
    /// from error.
    pub(crate) fn fit(table: &Table, loss: &Loss) -> Option<Self> {
        if !table.has_votes() || table.rows() == 0 {
            return None;
        }
        let ranks = ranks_of_classes(table);
        let (group_of_row, count) = groups_of_rows(table, !is_symmetric(loss));
        let mut members = vec![Vec::new(); count];
        for (row, &group) in group_of_row.iter().enumerate() {
            members[group as usize].push(row as u32);
        }
        let groups = groups_of_members(table, &ranks, &members)?;
        let found: Vec<Vec<[f64; 2]>> =
            members.par_iter().zip(&groups).map(|(rows, group)| group.values(table, &ranks, rows, loss)).collect();
        let mut estimates = Self {
            irreducible: vec![0.0; table.rows()],
            alternative: vec![0.0; table.rows()],
            all_identified: groups.iter().all(|group| group.moments.identified),
            groups,
            group_of_row,
            shifts: Vec::new(),
        };
        for (rows, mut values) in members.iter().zip(found) {
            fill_in_single_labels(table, rows, &mut values);
            for (&row, [value, alternative]) in rows.iter().zip(values) {
                estimates.irreducible[row as usize] = value;
                estimates.alternative[row as usize] = alternative;
            }
        }
        estimates.shifts = shifts_by_features(table, &estimates.group_of_row, &estimates.irreducible);
        for (row, shift) in
            estimates.shifts.iter().enumerate().filter(|(row, _)| !has_several_labels(table, *row as u32))
        {
            estimates.irreducible[row] += shift;
            estimates.alternative[row] += shift;
        }
        Some(estimates)
    }

    /// Writes the mean votes of a row's group, with classes in the order of the row's prediction.
    pub(crate) fn centre_into(&self, table: &Table, row: usize, out: &mut [f64]) {
        self.groups[self.group_of_row[row] as usize].centre_into(table, row, out);
    }

    /// The mean of 1 − ‖p*‖² in a row's group.
    pub(super) fn noise_of_row(&self, row: usize) -> f64 {
        self.groups[self.group_of_row[row] as usize].moments.noise
    }

    /// Writes a row's snapshot mean, shrunk so that those of its group vary as the true distributions do. The table must be the one that was
    /// fitted.
    pub(crate) fn point_into(&self, table: &Table, row: usize, out: &mut [f64]) {
        let moments = &self.groups[self.group_of_row[row] as usize].moments;
        let (Some(votes), mut prediction) = (table.votes(row), vec![0.0; out.len()]) else { return };
        table.dist_into(row, &mut prediction);
        let factor = moments.factor(votes);
        for (rank, &class) in ranking(&prediction).iter().enumerate() {
            let centre = moments.mean[rank];
            out[class as usize] = centre + factor * (votes.mean(class as usize) - centre);
        }
    }
}

/// Gives the rows of a group with one label the mean values of those with several, if there are any.
fn fill_in_single_labels(table: &Table, rows: &[u32], values: &mut [[f64; 2]]) {
    let is_paired: Vec<bool> = rows.iter().map(|&row| has_several_labels(table, row)).collect();
    let counted = || (0..rows.len()).filter(|&place| is_paired[place]);
    let mean =
        |value: usize| weighted_mean(counted().map(|place| (table.weight(rows[place] as usize), values[place][value])));
    let means = [mean(0), mean(1)];
    if means[0].is_finite() {
        let singles = values.iter_mut().zip(&is_paired).filter(|(_, is_paired)| !**is_paired);
        singles.for_each(|(values, _)| *values = means);
    }
}

/// Whether a row has two labels or more, which separate noise from error.
pub(super) fn has_several_labels(table: &Table, row: u32) -> bool {
    table.votes(row as usize).is_some_and(|votes| votes.k() >= 2)
}

/// Dirichlet laws of p* among rows of similar score, around their mean votes, with classes in the order of each row's prediction.
#[derive(Debug, Clone)]
pub(crate) struct RowLaws {
    groups: Vec<Group>,
    group_of_row: Vec<u32>,
}

impl RowLaws {
    /// Fits one law per group of consecutive rows of `order`, the table's rows sorted by a score that does not depend on their labels.
    /// `None` if too few rows have several labels to separate noise from error.
    pub(crate) fn fit(table: &Table, order: &[u32]) -> Option<Self> {
        let paired = order.iter().filter(|&&row| has_several_labels(table, row)).count();
        let count = (paired / ROWS_PER_GROUP).clamp(1, MAX_LAWS);
        let members: Vec<Vec<u32>> = (0..count)
            .map(|group| order[group * order.len() / count..(group + 1) * order.len() / count].to_vec())
            .collect();
        let mut group_of_row = vec![0; table.rows()];
        for (group, rows) in (0..).zip(&members) {
            rows.iter().for_each(|&row| group_of_row[row as usize] = group);
        }
        let groups = groups_of_members(table, &ranks_of_classes(table), &members)?;
        Some(Self { groups, group_of_row })
    }

    /// Writes the mean votes of a row's group, with classes in the order of the row's prediction.
    pub(crate) fn centre_into(&self, table: &Table, row: usize, out: &mut [f64]) {
        self.groups[self.group_of_row[row] as usize].centre_into(table, row, out);
    }
}

/// Whether the entropy is symmetric in the classes.
pub(super) fn is_symmetric(loss: &Loss) -> bool {
    match loss.shape() {
        Shape::Brier | Shape::Log | Shape::ZeroOne | Shape::Spherical => true,
        Shape::Lines(_) => false,
    }
}

/// The classes by decreasing probability; equal ones stay in order.
pub(super) fn ranking(prediction: &[f64]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..prediction.len() as u32).collect();
    order.sort_by(|&a, &b| prediction[b as usize].total_cmp(&prediction[a as usize]));
    order
}

/// The ranking of each row, row by row.
fn ranks_of_classes(table: &Table) -> Vec<u32> {
    let classes = table.classes().len();
    let mut ranks = vec![0; table.rows() * classes];
    ranks.par_chunks_exact_mut(classes).enumerate().for_each_init(
        || vec![0.0; classes],
        |prediction, (row, out)| {
            table.dist_into(row, prediction);
            out.copy_from_slice(&ranking(prediction));
        },
    );
    ranks
}

/// The group of each row and the number of groups. Groups have similar confidence and, with `by_class` and enough rows, one top class. Each has
/// about equally many rows with several labels.
fn groups_of_rows(table: &Table, by_class: bool) -> (Vec<u32>, usize) {
    let classes = table.classes().len();
    let rows = 0..table.rows() as u32;
    let paired: Vec<_> =
        rows.filter(|&row| has_several_labels(table, row)).map(|row| table.peak(row as usize)).collect();
    let mut rows_of_class = vec![0_usize; classes];
    paired.iter().for_each(|peak| rows_of_class[peak.class as usize] += 1);
    // Classes with few rows share the last list.
    let set = |class: u32| {
        let own = by_class && rows_of_class[class as usize] >= ROWS_PER_GROUP;
        if own { class as usize } else { classes }
    };
    let mut confidences = vec![Vec::new(); classes + 1];
    paired.iter().for_each(|peak| confidences[set(peak.class)].push(peak.confidence));
    let (mut edges, mut first, mut count) = (Vec::new(), Vec::new(), 0);
    for confidences in &mut confidences {
        confidences.sort_by(f64::total_cmp);
        let n = confidences.len();
        let bins = (n / ROWS_PER_GROUP).clamp(1, MAX_GROUPS);
        let mut inner: Vec<f64> = (1..bins).map(|bin| confidences[bin * n / bins]).collect();
        inner.dedup();
        inner.retain(|edge| confidences.first().is_some_and(|least| edge > least));
        first.push(count);
        count += inner.len() + 1;
        edges.push(inner);
    }
    let group = |peak: &crate::table::simplex::Peak| {
        let set = set(peak.class);
        (first[set] + edges[set].partition_point(|&edge| edge <= peak.confidence)) as u32
    };
    (table.peaks().iter().map(group).collect(), count)
}

/// The moments of each group. Groups whose labels do not separate noise from error use the concentration of all rows. `None` if those of all
/// rows do not.
fn groups_of_members(table: &Table, ranks: &[u32], members: &[Vec<u32>]) -> Option<Vec<Group>> {
    let all: Vec<u32> = (0..table.rows() as u32).collect();
    let whole = ranked_moments(table, ranks, &all).filter(|whole| whole.identified)?;
    let found: Vec<Moments> =
        members.par_iter().map(|rows| ranked_moments(table, ranks, rows).unwrap_or_else(|| whole.clone())).collect();
    let group = |moments: Moments| Group { moments: moments.or_concentration_of(&whole) };
    Some(found.into_iter().map(group).collect())
}

/// The moments of rows, with classes in the order of each row's prediction. `None` if the rows have no weight.
fn ranked_moments(table: &Table, ranks: &[u32], rows: &[u32]) -> Option<Moments> {
    let classes = table.classes().len();
    let counts: Vec<u32> = rows.iter().flat_map(|&row| ranked_counts(table, ranks, row as usize)).collect();
    let groups = rows.iter().zip(counts.chunks_exact(classes)).map(|(&row, counts)| {
        let weight = table.weight(row as usize);
        VoteGroup { votes: Votes::new(counts), weight, squares: weight * weight, rows: 1 }
    });
    Moments::from_groups(classes, groups)
}

/// A row's votes in the order of its ranking.
fn ranked_counts<'a>(table: &'a Table, ranks: &'a [u32], row: usize) -> impl Iterator<Item = u32> + 'a {
    let classes = table.classes().len();
    let counts = table.votes(row).map_or(&[][..], Votes::counts);
    ranks[row * classes..][..classes].iter().map(move |&class| counts.get(class as usize).copied().unwrap_or(0))
}

impl Group {
    /// Writes the mean votes, with classes in the order of a row's prediction.
    fn centre_into(&self, table: &Table, row: usize, out: &mut [f64]) {
        table.dist_into(row, out);
        for (rank, &class) in ranking(out).iter().enumerate() {
            out[class as usize] = self.moments.mean[rank];
        }
    }

    /// Both estimates of each row's irreducible loss.
    fn values(&self, table: &Table, ranks: &[u32], rows: &[u32], loss: &Loss) -> Vec<[f64; 2]> {
        let (items, item_of_row) = self.items(table, ranks, rows, loss);
        let values = if loss.is_brier() {
            let mean = self.moments.noise;
            let unbiased = |item: &Item| Votes::new(&item.counts).disagreement().unwrap_or(mean);
            items.iter().map(|item| [unbiased(item); 2]).collect()
        } else {
            self.corrected(&items, loss)
        };
        item_of_row.into_iter().map(|item| values[item]).collect()
    }

    /// The distinct items of rows, sorted by content, and the item of each row. If the loss is symmetric in the classes, they are in the
    /// order of the prediction, so that fewer items differ.
    fn items(&self, table: &Table, ranks: &[u32], rows: &[u32], loss: &Loss) -> (Vec<Item>, Vec<usize>) {
        let (alike, classes) = (is_symmetric(loss), table.classes().len());
        let key = |row: usize| -> Vec<u32> {
            if alike {
                ranked_counts(table, ranks, row).collect()
            } else {
                let counts = table.votes(row).map_or(&[][..], Votes::counts);
                counts.iter().chain(&ranks[row * classes..][..classes]).copied().collect()
            }
        };
        let keys: Vec<Vec<u32>> = rows.iter().map(|&row| key(row as usize)).collect();
        let mut weights = BTreeMap::<&[u32], f64>::new();
        for (key, &row) in keys.iter().zip(rows) {
            *weights.entry(key).or_default() += table.weight(row as usize);
        }
        let places: BTreeMap<&[u32], usize> = weights.keys().enumerate().map(|(place, key)| (*key, place)).collect();
        let item = |(key, &weight): (&&[u32], &f64)| {
            let mut centre = self.moments.mean.clone();
            for (rank, &class) in key[classes..].iter().enumerate() {
                centre[class as usize] = self.moments.mean[rank];
            }
            self.item(key[..classes].to_vec(), centre, weight, loss)
        };
        (weights.iter().map(item).collect(), keys.iter().map(|key| places[key.as_slice()]).collect())
    }

    fn item(&self, counts: Vec<u32>, centre: Vec<f64>, weight: f64, loss: &Loss) -> Item {
        let votes = Votes::new(&counts);
        let mut mean = vec![0.0; counts.len()];
        votes.mean_into(&mut mean);
        let (entropy, factor) = (loss.entropy(&mean), self.moments.factor(votes));
        mean.iter_mut().zip(&centre).for_each(|(y, centre)| *y = centre + factor * (*y - centre));
        Item { k: votes.k(), entropy, shrunk: loss.entropy(&mean), counts, centre, weight }
    }

    /// Both corrections of each item, the polynomial one first.
    fn corrected(&self, items: &[Item], loss: &Loss) -> Vec<[f64; 2]> {
        let mut numbers: Vec<u64> = items.iter().map(|item| item.k).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let draws = (DRAWS / numbers.len().max(1)).max(MIN_DRAWS);
        let mut values = vec![[0.0; 2]; items.len()];
        for k in numbers {
            let scaled = ScaledEntropy::fit(items.iter().filter(|item| item.k == k));
            let polynomial = (k <= MAX_LABELS_FOR_POLYNOMIAL).then(|| self.polynomial(items, k, draws, loss));
            for (item, value) in items.iter().zip(&mut values).filter(|(item, _)| item.k == k) {
                let by_factor = scaled.value(item);
                let by_polynomial =
                    polynomial.as_ref().map_or(by_factor, |it| item.entropy + it.estimate(&item.counts, item.k));
                *value = [by_polynomial, by_factor];
            }
        }
        values
    }

    /// The least-squares polynomial of the bias of G(ȳ) from k labels, under the law of the group.
    fn polynomial(&self, items: &[Item], k: u64, draws: usize, loss: &Loss) -> Polynomial {
        let concentration = self.moments.concentration();
        let classes = self.moments.mean.len();
        let degree = MAX_DEGREE.min(k as usize);
        let all: f64 = items.iter().map(|item| item.weight).sum();
        let repetitions = (LABELS_PER_DRAW / k).clamp(1, MAX_REPETITIONS);
        let mut fit = LeastSquares::new(degree);
        let (mut posterior, mut p) = (vec![0.0; classes], vec![0.0; classes]);
        let (mut counts, mut snapshot) = (vec![0; classes], vec![0.0; classes]);
        for item in items.iter().filter(|item| item.weight > 0.0) {
            let seed = item.counts.iter().chain(&[k as u32]).fold(0xB1A5, |seed, &n| mix(seed, u64::from(n)));
            let mut random = Pcg64::seed_from_u64(seed);
            for ((slot, share), &n) in posterior.iter_mut().zip(&item.centre).zip(&item.counts) {
                *slot = concentration * share + f64::from(n);
            }
            let times = (draws as f64 * item.weight / all).ceil().max(1.0);
            let weight = item.weight / times;
            for _ in 0..times as usize {
                draw_into(&posterior, &mut random, &mut p);
                let (columns, mut found) = (diversities(&p, degree), 0.0);
                for _ in 0..repetitions {
                    counts.fill(0);
                    (0..k).for_each(|_| counts[class_at(&p, uniform(random.next_u64()))] += 1);
                    Votes::new(&counts).mean_into(&mut snapshot);
                    found += loss.entropy(&snapshot) / repetitions as f64;
                    let estimated = unbiased_diversities(&counts, k, degree);
                    fit.add_noise(weight / repetitions as f64, &columns, &estimated);
                }
                fit.add(weight, &columns, loss.entropy(&p) - found);
            }
        }
        fit.solve(ROWS_PER_GROUP)
    }
}

/// G(ȳ) times the factor by which it is too small in a group; a constant if every snapshot has entropy zero.
struct ScaledEntropy {
    factor: f64,
    constant: f64,
}

impl ScaledEntropy {
    fn fit<'a>(items: impl Iterator<Item = &'a Item>) -> Self {
        let (mut weight, mut found, mut wanted) = (0.0, 0.0, 0.0);
        for item in items {
            weight += item.weight;
            found += item.weight * item.entropy;
            wanted += item.weight * item.shrunk;
        }
        if found > 1e-9 * wanted {
            Self { factor: wanted / found, constant: 0.0 }
        } else {
            Self { factor: 0.0, constant: if weight > 0.0 { wanted / weight } else { 0.0 } }
        }
    }

    fn value(&self, item: &Item) -> f64 {
        self.factor * item.entropy + self.constant
    }
}
