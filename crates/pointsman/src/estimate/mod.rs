//! Estimates of the total and irreducible loss of a mixture from few labels per item.
//!
//! The total loss is the mean of Σ_c ȳ_c ℓ(c, f), which is unbiased for any number of labels. The irreducible loss is E G(p*). Because
//! G is concave, the mean of G(ȳ) is biased downwards, and a router based on it routes too much. [`Estimator::Shrink`] and others correct
//! the bias; [`Estimator::Plugin`] is the paper's uncorrected mean. If too few items of the table have two labels, noise and error cannot be
//! separated, and only bounds are given.

mod between;
mod bias_polynomial;
mod borrowed;
mod by_row;
mod choice;
mod dirichlet;
mod enclosure;
mod group_losses;
mod identified;
mod leaves;
mod mixed_law;
mod moments;
mod npmle;
mod oracles;
mod other_oracles;
mod own_part;
mod panels;
mod polynomials;
mod pool;
mod predicted_law;
mod pseudo_values;
mod row_losses;
mod single_labels;
mod truths;
mod valuation;
mod vote_entropies;
mod vote_groups;

use crate::loss::Loss;
use crate::router::Mixture;
use crate::table::simplex::dot;
use crate::task::Estimator;
use between::shrink_tree_cells;
pub(crate) use borrowed::BorrowedLosses;
pub(crate) use by_row::{RowEstimates, RowLaws};
pub(crate) use choice::estimator_for_leaves;
pub(crate) use enclosure::Enclosure;
pub(crate) use group_losses::{GroupLosses, LossTable};
pub(crate) use identified::{RowVotes, identified};
pub(crate) use leaves::{LeafBuffers, LeafEstimator};
pub(crate) use mixed_law::MixedLaw;
use moments::Moments;
pub(crate) use oracles::{RowLosses, answers_of};
pub(crate) use other_oracles::{OracleLoss, OtherOracles};
pub(crate) use own_part::{Slopes, fit_slopes};
pub(crate) use polynomials::EntropyPolynomial;
use pool::pool_cells;
pub(crate) use predicted_law::PredictedLaw;
pub(crate) use row_losses::{Imputation, LabelLosses};
pub(crate) use truths::{PossibleTruths, Posteriors, TruthLaw};
pub(crate) use valuation::{LeafValuation, Valuation};
pub(crate) use vote_groups::VoteGroups;
use vote_groups::{VoteGroup, weighted_distinct_votes, weighted_votes_by_row};

/// The expected loss of a mixture's rows, split into its irreducible and its reducible part.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Decomposition {
    /// The number of rows.
    pub rows: usize,
    /// The effective number of rows, (Σw)²/Σw².
    pub effective_rows: f64,
    /// The total weight of the rows.
    pub weight: f64,
    /// Rows with two labels or more; only they separate noise from error.
    pub paired_rows: usize,
    /// The mean of the snapshot means.
    pub centroid: Vec<f64>,
    /// The total loss of the served prediction.
    pub total: f64,
    /// The lower bound of the irreducible loss; equal to the upper bound unless too few items of the table have two labels.
    pub irreducible_low: f64,
    /// The upper bound of the irreducible loss.
    pub irreducible_high: f64,
    /// The lower and upper bound of the loss of each distinct oracle of the task that is not Bayes-optimal, in the task's order. It can
    /// exceed the total loss of predicting.
    pub oracles: Vec<[f64; 2]>,
}

impl Decomposition {
    /// Whether the irreducible loss is known, not only bounded.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.irreducible_low == self.irreducible_high
    }

    /// The irreducible loss, if known.
    #[must_use]
    pub fn irreducible(&self) -> Option<f64> {
        self.is_known().then_some(self.irreducible_low)
    }

    /// The reducible loss, if known. Estimation error can make it negative.
    #[must_use]
    pub fn reducible(&self) -> Option<f64> {
        self.irreducible().map(|irreducible| self.total - irreducible)
    }

    /// The bounds of the reducible loss, clamped to zero; equal if it is known.
    #[must_use]
    pub fn reducible_bounds(&self) -> [f64; 2] {
        [self.irreducible_high, self.irreducible_low].map(|irreducible| (self.total - irreducible).max(0.0))
    }

    /// The expected losses.
    pub(crate) fn losses(&self) -> GroupLosses<'_> {
        let irreducible = [self.irreducible_low, self.irreducible_high];
        GroupLosses { total: self.total, irreducible, oracles: &self.oracles }
    }

    /// Estimates a mixture's losses. With `served`, that prediction is evaluated instead of each row's own. `oracles` are the losses of
    /// other oracles on the rows of the mixture's table, `borrowed` what its rows with several labels tell of those with one; `groups` are
    /// buffers that may have served other mixtures of that table.
    ///
    /// `None` if the mixture has no rows.
    pub(crate) fn fit(
        mixture: Mixture<'_>,
        loss: &Loss,
        estimator: Estimator,
        served: Option<&[f64]>,
        oracles: &RowLosses,
        borrowed: Option<&BorrowedLosses>,
        groups: &mut VoteGroups,
    ) -> Option<Self> {
        let classes = mixture.table().classes().len();
        let grouped = groups.group(mixture);
        let mut moments = Moments::from_groups(classes, grouped.clone())?;
        let total = sum_of_losses(mixture, grouped.clone(), loss, served);
        let mut law_estimator = choice::estimator_for_mixture(estimator, loss, &moments);
        let borrowed = borrowed.filter(|_| !moments.identified);
        let irreducible = match borrowed {
            None => irreducible_loss(mixture, grouped, &moments, loss, estimator),
            Some(borrowed) => {
                drop(grouped);
                let paired = paired_rows(mixture);
                let paired = Mixture::of_rows(mixture.table(), &paired);
                let own = Moments::from_mixture(paired).map(|own| {
                    let [known, _] = irreducible_loss(paired, groups.group(paired), &own, loss, estimator);
                    (known, own.effective_rows)
                });
                moments = borrowed.moments(mixture, moments);
                // The labels of the group determine no law of p*; only `shrink` takes the noise of other rows.
                if law_estimator != Estimator::Plugin {
                    law_estimator = Estimator::Shrink;
                }
                [borrowed.mix(mixture.table(), mixture.rows(), own); 2]
            }
        };
        let mut oracles_of_group = oracles.in_mixture(mixture, &moments, law_estimator, loss, irreducible);
        if borrowed.is_some() {
            // No panel loses less than the irreducible loss, which does not come from that law.
            for (place, ends) in oracles_of_group.iter_mut().enumerate() {
                if oracles.measured(place).is_none() {
                    *ends = ends.map(|end| end.max(irreducible[0]));
                }
            }
        }
        Some(Self {
            rows: mixture.len(),
            effective_rows: moments.effective_rows,
            weight: moments.weight,
            paired_rows: moments.paired_rows,
            oracles: oracles_of_group,
            centroid: moments.mean,
            total: total / moments.weight,
            irreducible_low: irreducible[0],
            irreducible_high: irreducible[1],
        })
    }
}

/// The rows of a mixture with two labels or more.
fn paired_rows(mixture: Mixture<'_>) -> Vec<u32> {
    mixture.rows().filter(|&row| mixture.votes(row).k() >= 2).map(|row| row as u32).collect()
}

/// Both ends of the irreducible loss of a mixture from its own labels; equal if they separate noise from error.
fn irreducible_loss<'a>(
    mixture: Mixture<'_>,
    groups: impl Iterator<Item = VoteGroup<'a>>,
    moments: &Moments,
    loss: &Loss,
    estimator: Estimator,
) -> [f64; 2] {
    let ceiling = loss.entropy(&moments.mean);
    if !moments.identified {
        return [certain_loss(loss, &moments.mean), ceiling];
    }
    let stops_early = estimator == Estimator::Auto;
    let estimator = choice::estimator_for_mixture(estimator, loss, moments);
    let value = match estimator {
        Estimator::Plugin | Estimator::Auto | Estimator::Shrink => {
            let [mut mean, mut point] = [(); 2].map(|()| vec![0.0; moments.mean.len()]);
            let mut sum = 0.0;
            for VoteGroup { votes, weight, .. } in groups {
                votes.mean_into(&mut mean);
                sum += weight
                    * if estimator == Estimator::Plugin {
                        loss.entropy(&mean)
                    } else {
                        moments.shrink_into(votes, &mean, &mut point);
                        loss.entropy(&point)
                    };
            }
            sum / moments.weight
        }
        Estimator::Npmle if stops_early => {
            let groups = weighted_distinct_votes(mixture);
            npmle::stopped_early(&groups, moments.effective_rows, &moments.mean, loss)
        }
        Estimator::Npmle => npmle::irreducible(&weighted_votes_by_row(mixture), mixture.len(), &moments.mean, loss),
        Estimator::Dirichlet => dirichlet::irreducible(&weighted_votes_by_row(mixture), &moments.mean, loss),
    };
    [if estimator == Estimator::Plugin { value } else { value.min(ceiling) }; 2]
}

/// The weighted sum of the losses of predictions by the rows' labels: of each row's own or, if given, of the one that is served.
fn sum_of_losses<'a>(
    mixture: Mixture<'_>,
    groups: impl Iterator<Item = VoteGroup<'a>>,
    loss: &Loss,
    served: Option<&[f64]>,
) -> f64 {
    let table = mixture.table();
    let [mut point, mut losses] = [(); 2].map(|()| vec![0.0; table.classes().len()]);
    let mut sum = 0.0;
    if let Some(served) = served {
        loss.losses_into(served, &mut losses);
        for VoteGroup { votes, weight, .. } in groups {
            votes.mean_into(&mut point);
            sum += weight * dot(&point, &losses);
        }
    } else {
        for row in mixture.rows() {
            let own = loss.of_votes_raw(mixture.votes(row), table.raw_prediction(row), &mut point, &mut losses);
            sum += table.weight(row) * own;
        }
    }
    sum
}

/// One point per row, such that the mean entropy is the irreducible loss and the mean point is the centroid. `None` if the estimator has
/// no such points; with `shrink` and numbers of labels that vary by row the mean is not the centroid.
pub(crate) fn points(mixture: Mixture<'_>, loss: &Loss, estimator: Estimator) -> Option<Vec<f64>> {
    let moments = Moments::from_mixture(mixture)?;
    match choice::estimator_for_mixture(estimator, loss, &moments) {
        Estimator::Plugin => points_of(mixture, &moments, false),
        Estimator::Shrink if moments.is_common() => points_of(mixture, &moments, true),
        _ => None,
    }
}

fn points_of(mixture: Mixture<'_>, moments: &Moments, shrinks: bool) -> Option<Vec<f64>> {
    if !moments.identified {
        return None;
    }
    let classes = moments.mean.len();
    let (mut mean, mut points) = (vec![0.0; classes], vec![0.0; mixture.len() * classes]);
    for (row, point) in mixture.rows().zip(points.chunks_exact_mut(classes)) {
        mixture.votes(row).mean_into(&mut mean);
        if shrinks {
            moments.shrink_into(mixture.votes(row), &mean, point);
        } else {
            point.copy_from_slice(&mean);
        }
    }
    Some(points)
}

/// Σ_c p̄_c G(e_c): the irreducible loss if every item had a single possible label. It can be positive under a cost matrix.
fn certain_loss(loss: &Loss, mean: &[f64]) -> f64 {
    let mut vertex = vec![0.0; mean.len()];
    let mut sum = 0.0;
    for (class, share) in mean.iter().enumerate() {
        vertex[class] = 1.0;
        sum += share * loss.entropy(&vertex);
        vertex[class] = 0.0;
    }
    sum
}
