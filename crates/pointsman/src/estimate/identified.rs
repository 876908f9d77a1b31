//! Partial identification of the irreducible loss from few labels per item.
//!
//! With k labels per item, any number of items identifies only the law of the votes, and so the moments of p* up to order k. Laws of p*
//! with the same moments can differ in E G(p*), so the irreducible loss is identified up to an interval. For the Brier loss it is a point
//! from two labels on. For other losses the interval is the tightest of the following bounds that apply:
//!
//! * T⁻ ≤ IL ≤ T⁺: the entropy of the votes' mean, too small because G is concave, and the loss of predicting one label from the item's
//!   others, too large because no prediction is better than p*;
//! * for the cross-entropy, the polynomial [`Enclosure`], and the sum over classes of the linear programs below;
//! * for two classes, the least and largest E G(p*) among all laws with the same law of votes, by a linear program;
//! * for the zero-one and the spherical loss, the range given the mean of ‖p*‖².
//!
//! The interval is the limit for infinitely many items; it does not include sampling error.

use std::collections::BTreeMap;

use super::by_row::{is_symmetric, ranking};
use super::moments::Moments;
use super::npmle::{Law, STEPS, Start, entropy_term};
use super::vote_groups::{VoteGroup, weighted_distinct_votes};
use super::{Enclosure, certain_loss, paired_rows};
use crate::loss::{Loss, Shape};
use crate::numeric::linear;
use crate::router::Mixture;
use crate::table::Table;
use crate::table::votes::Votes;

/// The largest number of labels in a linear program; more labels hardly narrow its interval.
const MAX_LABELS: usize = 20;

/// Intervals of the grid of shares on which a linear program puts mass.
const GRID_INTERVALS: usize = 100;

/// The smallest number of labels per class for bounds class by class; with fewer, the law of a class is dominated by its prior.
const MIN_LABELS_PER_CLASS: f64 = 20.0;

/// Distinct vote vectors with the weight of their rows.
type Groups<'a> = [(&'a [u32], f64)];

/// The bounds on the irreducible loss of a mixture that its labels identify; `None` if it has no rows. If the loss is `known`, rows with several
/// labels determine it, and rows with one do not widen the bounds.
pub(crate) fn identified(mixture: Mixture<'_>, loss: &Loss, known: bool) -> Option<[f64; 2]> {
    let paired = if known { paired_rows(mixture) } else { Vec::new() };
    let mixture = if paired.is_empty() { mixture } else { Mixture::of_rows(mixture.table(), &paired) };
    Some(ends(&weighted_distinct_votes(mixture), &Moments::from_mixture(mixture)?, loss))
}

/// The votes of a table's rows. If the loss is symmetric in the classes, they are ordered by the row's prediction, which makes rows more
/// similar and the bounds tighter.
#[derive(Debug, Clone)]
pub(crate) struct RowVotes {
    distinct: Vec<Vec<u32>>,
    of_row: Vec<u32>,
    /// The fewest labels of a row that counts: two if enough rows of the table have them.
    min_labels: u64,
}

impl RowVotes {
    /// The votes of a table; `None` if it has none, or if two labels per item identify the loss.
    pub(crate) fn from_table(table: &Table, loss: &Loss) -> Option<Self> {
        if !table.has_votes() || loss.is_brier() {
            return None;
        }
        let mut prediction = vec![0.0; table.classes().len()];
        let mut votes_of_row = |row: usize| -> Vec<u32> {
            let counts = table.votes(row).map_or(&[][..], Votes::counts);
            if !is_symmetric(loss) {
                return counts.to_vec();
            }
            table.dist_into(row, &mut prediction);
            ranking(&prediction).iter().map(|&class| counts[class as usize]).collect()
        };
        let rows: Vec<Vec<u32>> = (0..table.rows()).map(&mut votes_of_row).collect();
        let mut distinct = rows.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let of_row = rows.iter().map(|votes| distinct.binary_search(votes).unwrap_or(0) as u32).collect();
        let whole = Moments::from_mixture(Mixture::all_rows_of(table))?;
        Some(Self { distinct, of_row, min_labels: if whole.identified { 2 } else { 1 } })
    }

    /// The bounds on the weighted mean irreducible loss of some rows that their labels identify; `None` if they have no weight. Rows with too few
    /// labels count if there are no others.
    pub(crate) fn identified(&self, weights: impl Iterator<Item = (usize, f64)>, loss: &Loss) -> Option<[f64; 2]> {
        let mut sums = BTreeMap::<u32, [f64; 2]>::new();
        let counts = |place: &u32| self.distinct[*place as usize].as_slice();
        for (row, weight) in weights.filter(|&(_, weight)| weight > 0.0) {
            let sums = sums.entry(self.of_row[row]).or_default();
            *sums = [sums[0] + weight, sums[1] + weight * weight];
        }
        let has_enough = |place: &u32| Votes::new(counts(place)).k() >= self.min_labels;
        if sums.keys().any(has_enough) {
            sums.retain(|place, _| has_enough(place));
        }
        let group = |(place, &[weight, squares]): (&u32, &[f64; 2])| VoteGroup {
            votes: Votes::new(counts(place)),
            weight,
            squares,
            rows: 1,
        };
        let moments = Moments::from_groups(self.distinct.first()?.len(), sums.iter().map(group))?;
        let groups: Vec<(&[u32], f64)> = sums.iter().map(|(place, sums)| (counts(place), sums[0])).collect();
        Some(ends(&groups, &moments, loss))
    }

    /// How far below and above its estimate a mean over rows of total weight `all` can be because labels do not identify the irreducible
    /// loss of some rows. `rows` are those rows, their weights and the estimates of their loss. `None` if the loss is identified.
    pub(crate) fn open(&self, rows: &[(usize, f64, f64)], all: f64, loss: &Loss) -> Option<[f64; 2]> {
        let [low, high] = self.identified(rows.iter().map(|&(row, weight, _)| (row, weight)), loss)?;
        let (weight, sum) = rows.iter().fold((0.0, 0.0), |(all, sum), (_, w, value)| (all + w, sum + w * value));
        let (share, estimate) = (weight / all, sum / weight);
        let open = [(share * (low - estimate)).min(0.0), (share * (high - estimate)).max(0.0)];
        (open[0] < open[1]).then_some(open)
    }
}

/// The bounds from distinct votes and their moments.
fn ends(groups: &Groups<'_>, moments: &Moments, loss: &Loss) -> [f64; 2] {
    let ceiling = loss.entropy(&moments.mean);
    if !moments.identified {
        return [certain_loss(loss, &moments.mean), ceiling];
    }
    let classes = moments.mean.len();
    let mut found = vec![[entropy_of_votes(groups, loss), ceiling]];
    match loss.shape() {
        Shape::Brier => return [moments.noise.min(ceiling); 2],
        _ if classes == 2 => {
            let law = Law::fit_two_classes(groups, &moments.mean, STEPS);
            found.extend(by_law_of_votes(&law, common_labels(groups), &loss_kinks(loss), |p| loss.entropy(p)));
        }
        Shape::Log => {
            found.extend(by_polynomial(groups, classes, loss.floor().unwrap_or(0.0)));
            let labels = moments.effective_rows * common_labels(groups) as f64;
            if labels >= MIN_LABELS_PER_CLASS * classes as f64 {
                found.extend(class_by_class(groups, moments, loss.floor().unwrap_or(0.0)));
            }
        }
        Shape::ZeroOne => found.push(zero_one_of_brier(moments.noise, classes)),
        Shape::Lines(_) => {}
        Shape::Spherical => found.push(spherical_of_brier(moments.noise, classes)),
    }
    found.push([f64::NEG_INFINITY, loss_of_one_left_out(groups, moments, loss)]);
    let low = found.iter().map(|ends| ends[0]).fold(f64::NEG_INFINITY, f64::max);
    let high = found.iter().map(|ends| ends[1]).fold(f64::INFINITY, f64::min);
    // The bounds are estimates; with few rows they can cross.
    if low <= high { [low, high] } else { [low.midpoint(high); 2] }
}

/// T⁻: the mean entropy of the snapshot means.
fn entropy_of_votes(groups: &Groups<'_>, loss: &Loss) -> f64 {
    let mut mean = vec![0.0; groups.first().map_or(0, |(counts, _)| counts.len())];
    weighted_mean(groups, |counts| {
        Votes::new(counts).mean_into(&mut mean);
        loss.entropy(&mean)
    })
}

/// T⁺: the mean loss of the best linear prediction of one label from the others of its item.
fn loss_of_one_left_out(groups: &Groups<'_>, moments: &Moments, loss: &Loss) -> f64 {
    // The weight of the overall mean in labels; unbounded if all items have the same p*.
    let prior = if moments.variance > 0.0 { (moments.noise / moments.variance).clamp(1e-9, 1e9) } else { 1e9 };
    let (mut guess, mut losses) = (moments.mean.clone(), moments.mean.clone());
    weighted_mean(groups, |counts| {
        let labels = Votes::new(counts).k() as f64;
        let left_out = |class: usize| {
            for (other, slot) in guess.iter_mut().enumerate() {
                let known = f64::from(counts[other]) - f64::from(u8::from(other == class));
                *slot = (known + prior * moments.mean[other]) / (labels - 1.0 + prior);
            }
            loss.losses_into(&guess, &mut losses);
            f64::from(counts[class]) / labels * losses[class]
        };
        (0..counts.len()).filter(|&class| counts[class] > 0).map(left_out).sum()
    })
}

/// The polynomial enclosure of the cross-entropy, from the items with two labels or more.
fn by_polynomial(groups: &Groups<'_>, classes: usize, floor: f64) -> Option<[f64; 2]> {
    let mut sums = [0.0; 3];
    for &(counts, weight) in groups {
        let votes = Votes::new(counts);
        let Some(enclosure) = Enclosure::for_labels(votes.k()) else { continue };
        let (q, [below, above]) = (enclosure.statistic(votes), enclosure.errors(classes, floor));
        sums = [sums[0] + weight * (q - below), sums[1] + weight * (q + above), sums[2] + weight];
    }
    (sums[2] > 0.0).then(|| [sums[0] / sums[2], sums[1] / sums[2]])
}

/// The cross-entropy as a sum over classes of E[−p_c ln p_c], each bounded by the law of that class's votes.
fn class_by_class(groups: &Groups<'_>, moments: &Moments, floor: f64) -> Option<[f64; 2]> {
    let mean = &moments.mean;
    let start = Start::new(groups, moments.effective_rows, mean, STEPS);
    let mut ends = [0.0, -(1.0 - (mean.len() as f64 - 1.0) * floor).ln()];
    for (class, &share) in mean.iter().enumerate().filter(|(_, share)| **share > 0.0) {
        let law = Law::fit_class(groups, class, share, start);
        let [low, high] = by_law_of_votes(&law, common_labels(groups), &[], |p| entropy_term(p[1]))?;
        ends = [ends[0] + low, ends[1] + high];
    }
    Some(ends)
}

/// The least and largest E g(p*) among all laws of a share p₁ under which `labels` labels have the same law as under `law`.
///
/// `None` if the linear programs could not be solved.
fn by_law_of_votes(law: &Law, labels: usize, kinks: &[f64], value: impl Fn(&[f64]) -> f64) -> Option<[f64; 2]> {
    let mut sums = vec![0.0; labels + 1];
    for (atom, weight) in law.atoms.iter().zip(&law.weights) {
        sums.iter_mut().zip(binomial_law(labels, atom[1])).for_each(|(sum, chance)| *sum += weight * chance);
    }
    // The law's own atoms make the programs feasible; the fine shares are for the cross-entropy, which is steep near 0 and 1.
    let own = law.atoms.iter().map(|atom| atom[1]);
    let even = (0..=GRID_INTERVALS).map(|i| i as f64 / GRID_INTERVALS as f64);
    let fine = [1e-4, 5e-4, 1e-3, 2e-3].into_iter().flat_map(|share| [share, 1.0 - share]);
    let shares: Vec<f64> = own.chain(even).chain(fine).chain(kinks.iter().copied()).collect();
    let columns: Vec<Vec<f64>> = shares.iter().map(|&share| binomial_law(labels, share)).collect();
    let values: Vec<f64> = shares.iter().map(|&share| value(&[1.0 - share, share])).collect();
    let negated: Vec<f64> = values.iter().map(|value| -value).collect();
    let own = law.expected(&value);
    let low = linear::minimum(&columns, &sums, &values)?.min(own);
    let high = (-linear::minimum(&columns, &sums, &negated)?).max(own);
    Some([low, high])
}

/// The number of labels that at least half of the items have, by weight; at most [`MAX_LABELS`].
fn common_labels(groups: &Groups<'_>) -> usize {
    let mut labels: Vec<(u64, f64)> = groups.iter().map(|(counts, weight)| (Votes::new(counts).k(), *weight)).collect();
    labels.sort_by_key(|(k, _)| std::cmp::Reverse(*k));
    let half = labels.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    let reached = labels.iter().find(|(_, weight)| {
        sum += weight;
        sum >= half
    });
    reached.map_or(1, |(k, _)| (*k).min(MAX_LABELS as u64) as usize)
}

/// Binom(s; labels, share) for s = 0 … labels.
pub(super) fn binomial_law(labels: usize, share: f64) -> Vec<f64> {
    let mut law = vec![1.0];
    for _ in 0..labels {
        let mut next = vec![0.0; law.len() + 1];
        for (hits, chance) in law.iter().enumerate() {
            next[hits] += chance * (1.0 - share);
            next[hits + 1] += chance * share;
        }
        law = next;
    }
    law
}

/// The shares at which the entropy of a cost matrix over two classes can have kinks: where two of its lines cross.
pub(super) fn loss_kinks(loss: &Loss) -> Vec<f64> {
    let Shape::Lines(lines) = loss.shape() else { return Vec::new() };
    let crossing = |one: &[f64; 2], two: &[f64; 2]| (two[0] - one[0]) / ((one[1] - one[0]) - (two[1] - two[0]));
    let pairs = lines.iter().enumerate().flat_map(|(i, one)| lines[..i].iter().map(move |two| crossing(one, two)));
    pairs.filter(|share| *share > 0.0 && *share < 1.0).collect()
}

/// The bounds ψ(u) ≤ 1 − max p ≤ u for u = 1 − ‖p‖². ψ is convex and attained if all other classes are equally likely.
fn zero_one_of_brier(brier: f64, classes: usize) -> [f64; 2] {
    let c = classes as f64;
    let largest = (1.0 + ((c - 1.0) * (c * (1.0 - brier) - 1.0)).max(0.0).sqrt()) / c;
    [1.0 - largest, brier]
}

/// The bounds on 1 − ‖p‖, which is convex in u = 1 − ‖p‖²: its value at the mean, and the chord to the uniform distribution.
fn spherical_of_brier(brier: f64, classes: usize) -> [f64; 2] {
    let most = 1.0 - 1.0 / classes as f64;
    [1.0 - (1.0 - brier).max(0.0).sqrt(), brier * (1.0 - (1.0 - most).sqrt()) / most]
}

fn weighted_mean(groups: &Groups<'_>, mut value: impl FnMut(&[u32]) -> f64) -> f64 {
    let (mut sum, mut all) = (0.0, 0.0);
    for &(counts, weight) in groups {
        sum += weight * value(counts);
        all += weight;
    }
    sum / all
}
