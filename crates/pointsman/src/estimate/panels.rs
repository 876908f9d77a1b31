//! The loss of a panel where the labels of an item are too few for an unbiased estimate: under the estimator's law of p*.

use super::moments::Moments;
use super::vote_groups::weighted_votes_by_row;
use super::{dirichlet, npmle};
use crate::loss::Loss;
use crate::oracle::{Costing, Oracle, Panel, Urn};
use crate::parallel::prelude::*;
use crate::partition::forest::{RowsInLeaves, TreeLeaves};
use crate::router::Mixture;
use crate::table::Table;
use crate::table::simplex::dot;
use crate::table::votes::Votes;
use crate::task::{Estimator, MAX_NPMLE_CLASSES};

/// Steps of the grid for the bounds of a panel's loss with two classes.
const GRID_STEPS: u32 = 200;

/// The loss of a panel under given label distributions.
#[derive(Debug, Clone)]
pub(super) struct UnderLaws {
    pub(super) costing: Costing,
    /// With two classes, pairs of the second class's probability and the loss.
    grid: Vec<(f64, f64)>,
    /// The largest change of the loss between two points of the grid.
    slack: f64,
}

impl UnderLaws {
    /// The losses of an oracle that is a panel, to be evaluated under `laws` distributions; `None` for other oracles.
    pub(super) fn new(oracle: &Oracle, loss: &Loss, classes: usize, laws: usize) -> Option<Self> {
        let panel = Panel::from_oracle(oracle)?;
        let costing = panel.costing_for(loss, classes, laws);
        let mut under = Self { costing, grid: Vec::new(), slack: 0.0 };
        if classes == 2 && !panel.depends_on_agreement_only(loss) {
            let at = |step: u32| f64::from(step) / f64::from(GRID_STEPS);
            under.grid =
                (0..=GRID_STEPS).map(|step| (at(step), under.cost(loss, &[1.0 - at(step), at(step)]))).collect();
            under.slack = oracle.lipschitz(loss, 2) / f64::from(GRID_STEPS);
        }
        Some(under)
    }

    pub(super) fn cost(&self, loss: &Loss, law: &[f64]) -> f64 {
        self.costing.cost(loss, &Urn::from_distribution(law))
    }
}

/// For each row, the mean of its shrunk snapshot means over the leaves that contain it; NaN if no leaf separates noise from error.
pub(super) fn points_in_leaves(table: &Table, leaves: &RowsInLeaves, estimator: Estimator) -> Vec<f64> {
    let classes = table.classes().len();
    let (mut points, mut times) = (vec![0.0; table.rows() * classes], vec![0.0; table.rows()]);
    let (mut mean, mut point) = (vec![0.0; classes], vec![0.0; classes]);
    let moments = |_: &mut (), tree: &TreeLeaves<'_>, leaf: usize| {
        Moments::from_mixture(Mixture::of_rows(table, tree.rows_of(leaf))).filter(|moments| moments.identified)
    };
    let known: Vec<Option<Moments>> = leaves.map_leaves(|| (), moments);
    for tree in (0..leaves.trees()).map(|tree| leaves.tree(tree)) {
        for leaf in tree.leaves() {
            let Some(moments) = &known[leaf] else { continue };
            for row in tree.rows_of(leaf).iter().map(|&row| row as usize) {
                let Some(votes) = table.votes(row) else { continue };
                votes.mean_into(&mut mean);
                match estimator {
                    Estimator::Plugin => point.copy_from_slice(&mean),
                    _ => moments.shrink_into(votes, &mean, &mut point),
                }
                points[row * classes..][..classes].iter_mut().zip(&point).for_each(|(sum, p)| *sum += p);
                times[row] += 1.0;
            }
        }
    }
    points.chunks_exact_mut(classes).zip(times).for_each(|(point, n)| point.iter_mut().for_each(|sum| *sum /= n));
    points
}

/// A panel's loss on each row under the estimator's law of the row's p*; not computed for rows with `needed` labels, which have an unbiased
/// estimate.
pub(super) fn integrated(
    needed: u64,
    cost: &(dyn Fn(&Urn) -> f64 + Sync),
    mixture: Mixture<'_>,
    moments: &Moments,
    estimator: Estimator,
) -> Vec<f64> {
    let each = |urn: &(dyn Fn(Votes<'_>) -> Urn + Sync)| {
        by_votes(mixture, |votes| if votes.k() < needed { cost(&urn(votes)) } else { f64::NAN })
    };
    match estimator {
        Estimator::Plugin => each(&|votes| Urn::from_distribution(&mean_of(votes))),
        Estimator::Auto | Estimator::Shrink => each(&|votes| {
            let mut point = vec![0.0; moments.mean.len()];
            moments.shrink_into(votes, &mean_of(votes), &mut point);
            Urn::from_distribution(&point)
        }),
        // With many classes `auto` fits class by class, which gives no joint law of p*.
        Estimator::Npmle if moments.mean.len() > MAX_NPMLE_CLASSES => {
            integrated(needed, cost, mixture, moments, Estimator::Dirichlet)
        }
        Estimator::Dirichlet => {
            let concentration = dirichlet::concentration(&weighted_votes_by_row(mixture), &moments.mean);
            each(&|votes| {
                let posterior = moments.mean.iter().zip(votes.counts());
                Urn::from_dirichlet(&posterior.map(|(p, &n)| concentration * p + f64::from(n)).collect::<Vec<_>>())
            })
        }
        Estimator::Npmle => {
            let npmle::Law { atoms, weights } =
                npmle::Law::fit(&weighted_votes_by_row(mixture), mixture.len(), &moments.mean);
            let costs: Vec<f64> = atoms.par_iter().map(|atom| cost(&Urn::from_distribution(atom))).collect();
            // Over all rows of a cell the posteriors average to the law itself; over some of them they do not.
            if mixture.rows().all(|row| mixture.votes(row).k() < needed) {
                return vec![dot(&weights, &costs); mixture.len()];
            }
            let likelihood = npmle::likelihood(&atoms);
            by_votes(mixture, |votes| {
                let given: Vec<f64> = likelihood(votes.counts()).iter().zip(&weights).map(|(l, w)| l * w).collect();
                dot(&given, &costs) / given.iter().sum::<f64>()
            })
        }
    }
}

/// The bounds of a panel's mean loss if only the mean of the true distributions is known.
///
/// A panel never loses less than the irreducible loss. Under the Brier loss of shares it increases with that loss, so the bounds
/// correspond. Otherwise, with two classes, the loss is a function of one number with a known mean: the bounds are its convex and its
/// concave envelope, evaluated on a grid and widened by the change between two points of the grid.
pub(super) fn bounds(panel: Panel, laws: &UnderLaws, loss: &Loss, mean: &[f64], irreducible: [f64; 2]) -> [f64; 2] {
    if panel.depends_on_agreement_only(loss) {
        return irreducible.map(|irreducible| panel.brier(1.0 - irreducible, mean.len()));
    }
    let widest = [irreducible[0], loss.bound()];
    if mean.len() > 2 {
        return widest;
    }
    let (below, above) = laws.grid.split_at(laws.grid.partition_point(|(p, _)| *p < mean[1]));
    let mut ends = [laws.cost(loss, &[1.0 - mean[1], mean[1]]); 2];
    for (a, low) in below {
        for (b, high) in above {
            let chord = low + (high - low) * (mean[1] - a) / (b - a);
            ends = [ends[0].min(chord), ends[1].max(chord)];
        }
    }
    [(ends[0] - laws.slack).max(widest[0]), (ends[1] + laws.slack).min(widest[1])]
}

/// The mean of an item's labels.
pub(super) fn mean_of(votes: Votes<'_>) -> Vec<f64> {
    let mut mean = vec![0.0; votes.counts().len()];
    votes.mean_into(&mut mean);
    mean
}

/// A value per row that depends on its votes alone, computed once per distinct vote vector.
pub(super) fn by_votes(mixture: Mixture<'_>, value: impl Fn(Votes<'_>) -> f64 + Sync) -> Vec<f64> {
    let distinct = mixture.table().distinct_votes();
    let rows: Vec<u32> = mixture.rows().map(|row| distinct.index_of_row()[row]).collect();
    let mut present = rows.clone();
    present.sort_unstable();
    present.dedup();
    let values: Vec<f64> = present.par_iter().map(|&index| value(distinct.votes(index))).collect();
    rows.iter().map(|index| present.binary_search(index).map_or(f64::NAN, |place| values[place])).collect()
}
