//! Empirical Bayes shrinkage of the leaves of a tree towards the mean of all rows.

use super::moments::Moments;
use super::{Decomposition, RowLosses};
use crate::loss::Loss;
use crate::numeric::weighted::{WeightedSums, weighted_mean};
use crate::router::Mixture;
use crate::table::simplex::dot;

/// Shrinks each leaf's mean m towards the overall mean m̄: (n m + κ m̄)/(n + κ) with κ = σ²/τ², the variance within leaves over the
/// variance between them. κ is fitted separately to the total loss, the irreducible loss and the loss of each measured oracle. Panels
/// use the κ of the irreducible loss, so that they stay above it.
///
/// Leaves with a known irreducible loss are shrunk towards each other only; shrinking towards bounds would turn their values into
/// bounds. The lower and upper bounds of the other leaves are shrunk equally strongly, so that they cannot cross. An irreducible loss that is
/// borrowed stays as it is, and so do panels beside it.
pub(crate) fn shrink_tree_cells(
    leaves: &mut [Option<Decomposition>],
    mixtures: &[Mixture<'_>],
    loss: &Loss,
    recalibrated: bool,
    oracles: &RowLosses,
) {
    let Some(first) = leaves.iter().flatten().next() else { return };
    let count = first.oracles.len();
    let spreads: Vec<[f64; 2]> = mixtures.iter().map(|&mixture| spread(mixture, loss, recalibrated)).collect();
    let all_rows = |leaf: &Decomposition| leaf.effective_rows;
    let total = Shrinkage::fit(leaves, |_| true, all_rows, |leaf| spreads[leaf][0], |leaf| leaf.total);
    let measured = |place: usize| {
        let values = oracles.measured(place)?;
        let spread = |leaf: usize| variance(mixtures[leaf], |row| values[row]);
        Some(Shrinkage::fit(leaves, |_| true, all_rows, spread, |leaf| leaf.oracles[place][0]))
    };
    let measured: Vec<Option<Shrinkage>> = (0..count).map(measured).collect();
    // The bounds of the irreducible loss, then those of each oracle.
    let shrinkages = |counts: fn(&Decomposition) -> bool| {
        let fit = |end: fn(&Decomposition) -> f64| {
            Shrinkage::fit(leaves, counts, informative_rows, |leaf| spreads[leaf][1], end)
        };
        let (low, high) = (fit(|leaf| leaf.irreducible_low), fit(|leaf| leaf.irreducible_high));
        let strength = low.strength.min(high.strength);
        let towards = |target: f64| Shrinkage { target, strength };
        let of_oracle = |(place, measured): (usize, &Option<Shrinkage>)| match measured {
            Some(shrinkage) => [*shrinkage; 2],
            None => [0, 1].map(|end| towards(centre(leaves, counts, |leaf| leaf.oracles[place][end]))),
        };
        let own: Vec<[Shrinkage; 2]> = measured.iter().enumerate().map(of_oracle).collect();
        ([low, high].map(|shrinkage| towards(shrinkage.target)), own)
    };
    let (known, bounded) = (shrinkages(is_measured), shrinkages(|_| true));
    for leaf in leaves.iter_mut().flatten() {
        let (n, informative) = (leaf.effective_rows, informative_rows(leaf));
        leaf.total = total.shrink(n, leaf.total);
        let is_borrowed = leaf.is_known() && !is_measured(leaf);
        let ([low, high], own) = if leaf.is_known() { &known } else { &bounded };
        if !is_borrowed {
            leaf.irreducible_low = low.shrink(informative, leaf.irreducible_low);
            leaf.irreducible_high = high.shrink(informative, leaf.irreducible_high);
        }
        for ((ends, shrinkages), measured) in leaf.oracles.iter_mut().zip(own).zip(&measured) {
            let n = match measured {
                Some(_) => n,
                None if is_borrowed => continue,
                None => informative,
            };
            ends.iter_mut().zip(shrinkages).for_each(|(end, shrinkage)| *end = shrinkage.shrink(n, *end));
        }
    }
}

/// Shrinkage towards a target.
#[derive(Debug, Clone, Copy)]
struct Shrinkage {
    target: f64,
    /// κ; infinite if the leaves do not differ by more than chance.
    strength: f64,
}

impl Shrinkage {
    /// Fits the target and the strength to the leaves for which `counts` is true.
    fn fit(
        leaves: &[Option<Decomposition>],
        counts: fn(&Decomposition) -> bool,
        effective_rows: fn(&Decomposition) -> f64,
        spread: impl Fn(usize) -> f64,
        value: impl Fn(&Decomposition) -> f64,
    ) -> Self {
        let centre = centre(leaves, counts, &value);
        let (mut rows, mut squares, mut count, mut within, mut between) = (0.0, 0.0, 0.0, 0.0, 0.0);
        let there = leaves.iter().enumerate().filter_map(|(place, leaf)| Some((place, leaf.as_ref()?)));
        for (place, leaf) in there.filter(|(_, leaf)| counts(leaf)) {
            let n = effective_rows(leaf);
            rows += n;
            squares += n * n;
            count += 1.0;
            within += n * spread(place);
            between += n * (value(leaf) - centre).powi(2);
        }
        let within = if rows > count { within / (rows - count) } else { 0.0 };
        let between = (between - (count - 1.0) * within) / (rows - squares / rows);
        let strength = if within == 0.0 {
            0.0
        } else if between > 0.0 {
            within / between
        } else {
            f64::INFINITY
        };
        Self { target: centre, strength }
    }

    fn shrink(&self, n: f64, value: f64) -> f64 {
        if self.strength.is_infinite() {
            self.target
        } else {
            (n * value + self.strength * self.target) / (n + self.strength)
        }
    }
}

/// Whether a leaf's irreducible loss is known from its own rows, not only borrowed.
fn is_measured(leaf: &Decomposition) -> bool {
    leaf.is_known() && leaf.paired_rows > 0
}

/// The effective number of rows that determine a leaf's irreducible loss: those with several labels if it is known.
fn informative_rows(leaf: &Decomposition) -> f64 {
    let part = if leaf.is_known() { leaf.paired_rows as f64 / leaf.rows as f64 } else { 1.0 };
    part * leaf.effective_rows
}

/// The mean over all rows of the leaves for which `counts` is true.
fn centre(
    leaves: &[Option<Decomposition>],
    counts: fn(&Decomposition) -> bool,
    value: impl Fn(&Decomposition) -> f64,
) -> f64 {
    let counted = leaves.iter().flatten().filter(|leaf| counts(leaf));
    weighted_mean(counted.map(|leaf| (leaf.weight, value(leaf))))
}

/// The variance of a value over the rows of a mixture.
fn variance(mixture: Mixture<'_>, value: impl Fn(usize) -> f64) -> f64 {
    let mut sums = WeightedSums::default();
    mixture.rows().for_each(|row| sums.add(mixture.table().weight(row), value(row)));
    sums.variance()
}

/// The variance of the rows' total and irreducible losses within a leaf, the latter of rows with several labels, if there are any.
fn spread(mixture: Mixture<'_>, loss: &Loss, recalibrated: bool) -> [f64; 2] {
    let Some(moments) = Moments::from_mixture(mixture) else { return [0.0; 2] };
    let classes = moments.mean.len();
    let (mut mean, mut point, mut losses) = (vec![0.0; classes], vec![0.0; classes], vec![0.0; classes]);
    let mut sums = [WeightedSums::default(); 2];
    for row in mixture.rows() {
        let (votes, weight) = (mixture.votes(row), mixture.table().weight(row));
        votes.mean_into(&mut mean);
        if recalibrated {
            point.copy_from_slice(&moments.mean);
        } else {
            mixture.table().dist_into(row, &mut point);
        }
        loss.losses_into(&point, &mut losses);
        moments.shrink_into(votes, &mean, &mut point);
        sums[0].add(weight, dot(&mean, &losses));
        if votes.k() >= 2 || moments.paired_rows == 0 {
            sums[1].add(weight, loss.entropy(&point));
        }
    }
    sums.map(|sums| sums.variance())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{BorrowedLosses, OtherOracles, VoteGroups};
    use crate::oracle::Oracle;
    use crate::table::Table;
    use crate::task::Estimator;

    /// Leaves in which a measured oracle is equally good are shrunk to one value, whether or not their rows have several labels.
    #[test]
    fn measured_oracles_are_shrunk_in_leaves_of_one_label_rows() {
        let rows = 90_u32;
        // The last third of the rows has one label.
        let votes = (0..rows).flat_map(|i| if i < 60 { [2 - i % 3 % 2, 1 + i % 3 % 2] } else { [i % 2, 1 - i % 2] });
        let answers = (0..rows).flat_map(|i| if i % 7 < 3 { [0.9, 0.1] } else { [0.2, 0.8] });
        let table = Table::new(["a", "b"], [0.7, 0.3].repeat(rows as usize))
            .and_then(|table| table.with_votes(votes.collect()))
            .and_then(|table| table.with_oracle("llm", answers.collect()))
            .unwrap();
        let loss = Loss::brier();
        let others = OtherOracles(vec![(Oracle::Measured, "llm".into())]);
        let oracles = RowLosses::from_labels(&table, &loss, &others).unwrap();
        let borrowed = BorrowedLosses::fit(&table, &loss);
        let members: Vec<Vec<u32>> = (0..3).map(|leaf| (leaf * 30..(leaf + 1) * 30).collect()).collect();
        let mixtures: Vec<Mixture<'_>> = members.iter().map(|rows| Mixture::of_rows(&table, rows)).collect();
        let fit = |&mixture: &Mixture<'_>| {
            let groups = &mut VoteGroups::default();
            Decomposition::fit(mixture, &loss, Estimator::Shrink, None, &oracles, borrowed.as_ref(), groups)
        };
        let mut leaves: Vec<Option<Decomposition>> = mixtures.iter().map(fit).collect();
        let before: Vec<Decomposition> = leaves.iter().flatten().cloned().collect();
        assert!(before[2].is_known() && before[2].paired_rows == 0);
        assert!(before[0].oracles[0] != before[2].oracles[0]);
        shrink_tree_cells(&mut leaves, &mixtures, &loss, false, &oracles);
        let after: Vec<Decomposition> = leaves.into_iter().flatten().collect();
        // The leaves differ by no more than chance, so that all have the mean of all rows.
        let mean = before.iter().map(|leaf| leaf.oracles[0][0]).sum::<f64>() / 3.0;
        assert!(after.iter().all(|leaf| (leaf.oracles[0][0] - mean).abs() < 1e-12), "{mean}: {after:?}");
        // A borrowed irreducible loss is not moved.
        assert_eq!(after[2].irreducible_low, before[2].irreducible_low);
    }
}
