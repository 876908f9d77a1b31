//! The irreducible loss of groups of rows from their votes alone, for very many groups of the same rows.
//!
//! The entropy of each distinct vote vector is computed once; a group evaluates the entropy of its shrunk points.

use wide::f64x4;

use super::certain_loss;
use crate::loss::Loss;
use crate::partition::forest::{Shrunk, VoteRun, VoteVectors};
use crate::partition::vote_moments::VoteMoments;
use crate::table::Table;
use crate::task::Estimator;

/// The largest number of slots; clearing more of them for every leaf would take longer than they save.
const MAX_SLOTS: f64 = 4096.0;

/// Estimates the irreducible loss of runs of equal votes; for `shrink` and `plugin` only.
pub(super) struct VoteEntropies<'a> {
    loss: &'a Loss,
    estimator: Estimator,
    pub(super) vote_vectors: VoteVectors<'a>,
    /// The entropy of the mean of each distinct vote vector.
    entropies: Vec<f64>,
    /// For the cross-entropy, if all items have k labels: the slot of each class of each vote vector in a table of k + 1 slots per class.
    slots: Vec<u32>,
}

/// The irreducible loss of rows by their own labels.
#[derive(Debug, Clone, Copy)]
pub(super) enum OwnIrreducible {
    Known(f64),
    /// The labels do not separate noise from error: both ends, which are equal if all labels are of one class.
    Bounded([f64; 2]),
}

impl OwnIrreducible {
    pub(super) fn ends(self) -> [f64; 2] {
        match self {
            Self::Known(value) => [value; 2],
            Self::Bounded(ends) => ends,
        }
    }
}

/// Buffers reused across groups.
#[derive(Debug, Default)]
pub(super) struct PointBuffers {
    centre: Vec<f64>,
    point: Vec<f64>,
    weights: Vec<f64>,
    probabilities: Vec<f64>,
}

impl<'a> VoteEntropies<'a> {
    pub(super) fn new(table: &'a Table, loss: &'a Loss, estimator: Estimator) -> Self {
        let (vote_vectors, distinct) = (VoteVectors::new(table), table.distinct_votes());
        let classes = table.classes().len();
        let entropies = (0..distinct.len() as u32).map(|votes| loss.entropy(vote_vectors.mean(votes))).collect();
        let mut slots = Vec::new();
        // Only if there can be fewer slots than vote vectors.
        let are_few = |k: &f64| *k < distinct.len() as f64 && (k + 1.0) * classes as f64 <= MAX_SLOTS;
        if let Some(k) = vote_vectors.common_labels.filter(|_| loss.floor().is_some()).filter(are_few) {
            let counts = distinct.iter().flat_map(|votes| (0..).zip(votes.counts()));
            slots.extend(counts.map(|(class, n): (u32, _)| class * (k as u32 + 1) + n));
        }
        Self { loss, estimator, vote_vectors, entropies, slots }
    }

    /// The entropy of the mean of a row's labels.
    pub(super) fn of_row(&self, row: usize) -> f64 {
        self.entropies[self.vote_vectors.index_of_row[row] as usize]
    }

    /// The irreducible loss of rows; `shrunk` if it is already known.
    pub(super) fn of_runs(
        &self,
        runs: impl ExactSizeIterator<Item = VoteRun> + Clone,
        shrunk: Option<Shrunk<'_>>,
        buffers: &mut PointBuffers,
    ) -> OwnIrreducible {
        if let Some(shrunk) = shrunk {
            return OwnIrreducible::Known(self.of_shrunk(runs, shrunk, buffers));
        }
        let mut centre = std::mem::take(&mut buffers.centre);
        centre.resize(self.vote_vectors.classes(), 0.0);
        let moments = self.vote_vectors.moments(runs.clone(), &mut centre);
        let found = self.of_moments(runs, &moments, &centre, buffers);
        buffers.centre = centre;
        found
    }

    fn of_moments(
        &self,
        runs: impl ExactSizeIterator<Item = VoteRun> + Clone,
        moments: &VoteMoments,
        centre: &[f64],
        buffers: &mut PointBuffers,
    ) -> OwnIrreducible {
        let &VoteMoments { weight, noise, variance, .. } = moments;
        let labels = |run: VoteRun| self.vote_vectors.labels(run.votes);
        let fewest = runs.clone().map(labels).fold(f64::INFINITY, f64::min);
        let most = runs.clone().map(labels).fold(0.0, f64::max);
        if fewest == most && fewest >= 2.0 {
            let shrunk = Shrunk { weight, factor: moments.factor(), centre };
            return OwnIrreducible::Known(self.of_shrunk(runs, shrunk, buffers));
        }
        let pairs = runs.clone().filter(|run| self.vote_vectors.is_paired(run.votes));
        if !moments.separates_noise(pairs.map(|run| run.squares).sum()) {
            return OwnIrreducible::Bounded([certain_loss(self.loss, centre), self.loss.entropy(centre)]);
        }
        if self.estimator == Estimator::Plugin {
            return OwnIrreducible::Known(self.entropy_of_means(runs) / weight);
        }
        let size = variance.abs();
        let factor = |run: VoteRun| if size > 0.0 { (size / (size + noise / labels(run))).sqrt() } else { 0.0 };
        let points = self.entropy_of_points(runs, centre, factor, &mut buffers.point);
        // Points with different factors do not average to the centre, so that their entropy may exceed the centre's.
        let ceiling = self.loss.entropy(centre);
        OwnIrreducible::Known(reflected(variance, (points / weight).min(ceiling), || ceiling))
    }

    /// The irreducible loss of rows with equally many labels, two or more.
    fn of_shrunk(
        &self,
        runs: impl ExactSizeIterator<Item = VoteRun> + Clone,
        shrunk: Shrunk<'_>,
        buffers: &mut PointBuffers,
    ) -> f64 {
        let Shrunk { weight, centre, .. } = shrunk;
        if self.estimator == Estimator::Plugin {
            return self.entropy_of_means(runs) / weight;
        }
        // The mean of points with a common factor is the centre, so that the centre's entropy is above theirs.
        let shrunk_inwards = Shrunk { factor: shrunk.factor.abs(), ..shrunk };
        let slots = (&mut buffers.weights, &mut buffers.probabilities);
        let by_slots =
            self.loss.floor().and_then(|floor| self.entropy_by_slots(floor, shrunk_inwards, runs.clone(), slots));
        let points = by_slots
            .unwrap_or_else(|| self.entropy_of_points(runs, centre, |_| shrunk_inwards.factor, &mut buffers.point));
        reflected(shrunk.factor, points / weight, || self.loss.entropy(centre))
    }

    /// The weighted sum of the entropies of snapshot means.
    fn entropy_of_means(&self, runs: impl Iterator<Item = VoteRun>) -> f64 {
        runs.map(|run| run.weight * self.entropies[run.votes as usize]).sum()
    }

    /// The weighted sum of the entropies of shrunk points.
    fn entropy_of_points(
        &self,
        runs: impl Iterator<Item = VoteRun>,
        centre: &[f64],
        factor: impl Fn(VoteRun) -> f64,
        point: &mut Vec<f64>,
    ) -> f64 {
        point.resize(centre.len(), 0.0);
        let mut sum = 0.0;
        for run in runs {
            let factor = factor(run);
            for ((p, y), centre) in point.iter_mut().zip(self.vote_vectors.mean(run.votes)).zip(centre) {
                *p = centre + factor * (y - centre);
            }
            sum += run.weight * self.loss.entropy(point);
        }
        sum
    }

    /// The weighted sum of the cross-entropies of shrunk points, with fewer logarithms than one per class and run: if all rows have k
    /// labels, a class has at most k + 1 different probabilities, the slots. `None` if that is not fewer, or if a probability is below the
    /// floor.
    fn entropy_by_slots(
        &self,
        floor: f64,
        Shrunk { weight, factor, centre }: Shrunk<'_>,
        runs: impl ExactSizeIterator<Item = VoteRun>,
        (weights, probabilities): (&mut Vec<f64>, &mut Vec<f64>),
    ) -> Option<f64> {
        let (c, k) = (centre.len(), self.vote_vectors.common_labels? as usize);
        let absent = centre.iter().filter(|p| **p == 0.0).count();
        let scale = 1.0 - absent as f64 * floor;
        let least = centre.iter().copied().filter(|p| *p > 0.0).fold(1.0, f64::min) * (1.0 - factor);
        if self.slots.is_empty() || k >= runs.len() || factor == 1.0 || least * scale < floor {
            return None;
        }
        // Four logarithms at a time; unused slots have probability one, whose logarithm is zero.
        let slots = (c * (k + 1)).next_multiple_of(4);
        weights.clear();
        weights.resize(slots, 0.0);
        probabilities.clear();
        probabilities.resize(slots, 1.0);
        for run in runs {
            let slots = &self.slots[run.votes as usize * c..][..c];
            slots.iter().for_each(|&slot| weights[slot as usize] += run.weight);
        }
        let step = factor / k as f64;
        for (centre, of_class) in centre.iter().zip(probabilities.chunks_exact_mut(k + 1)).filter(|(p, _)| **p > 0.0) {
            let least = centre * (1.0 - factor);
            of_class.iter_mut().zip(0_i32..).for_each(|(p, n)| *p = least + f64::from(n) * step);
        }
        let mut sum = f64x4::ZERO;
        for (&weight, &p) in weights.as_chunks::<4>().0.iter().zip(probabilities.as_chunks::<4>().0) {
            let p = f64x4::from(p);
            sum += f64x4::from(weight) * p * p.ln();
        }
        let mut sum = sum.reduce_add();
        if absent > 0 {
            sum += weight * scale.ln();
        }
        Some(-sum)
    }
}

/// The mean entropy of points if the variance is positive; reflected at the entropy of their mean, the `ceiling`, if it is negative, so that
/// averages over leaves stay unbiased.
fn reflected(variance: f64, points: f64, ceiling: impl FnOnce() -> f64) -> f64 {
    if variance < 0.0 { 2.0 * ceiling() - points } else { points }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_give_the_same_entropy() {
        let (n, k) = (200_u32, 5);
        let votes = (0..n).flat_map(|i| [i % (k + 1), k - i % (k + 1), 0]).collect();
        let table = Table::new(["a", "b", "c"], [0.5, 0.3, 0.2].repeat(n as usize));
        let table = table.and_then(|table| table.with_votes(votes)).unwrap();
        let (loss, rows) = (Loss::cross_entropy(), (0..n).collect::<Vec<_>>());
        let vote_entropies = VoteEntropies::new(&table, &loss, Estimator::Shrink);
        let (weights, probabilities) = (&mut Vec::new(), &mut Vec::new());
        let mut runs = Vec::new();
        vote_entropies.vote_vectors.find_runs(&rows, &mut runs);
        let runs = runs.iter().copied();
        let (centre, factor) = ([0.5, 0.5, 0.0], 0.7);
        let weight = f64::from(n);
        let shrunk = Shrunk { weight, factor, centre: &centre };
        let found = vote_entropies.entropy_by_slots(1e-6, shrunk, runs.clone(), (weights, probabilities)).unwrap();
        let expected: f64 = runs
            .clone()
            .map(|run| {
                let mean = vote_entropies.vote_vectors.mean(run.votes);
                let point: Vec<f64> = mean.iter().zip(centre).map(|(y, p)| p + factor * (y - p)).collect();
                run.weight * loss.entropy(&point)
            })
            .sum();
        assert!((found - expected).abs() < 1e-9 * expected, "{found} {expected}");
        // Points at the floor or on the border need the general computation.
        assert!(vote_entropies.entropy_by_slots(0.2, shrunk, runs.clone(), (weights, probabilities)).is_none());
        let border = Shrunk { factor: 1.0, ..shrunk };
        assert!(vote_entropies.entropy_by_slots(1e-6, border, runs, (weights, probabilities)).is_none());
    }
}
