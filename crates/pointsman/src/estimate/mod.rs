//! Total and irreducible loss of a mixture, from finitely many labels per item.
//!
//! The total loss is always the mean of Σ_c ȳ_c ℓ(c, f): unbiased for every number of labels. The
//! irreducible loss E G(p*) is not: G is concave, so the mean of G(ȳ) is too small and a router built on it
//! routes too much. [`Estimator::Shrink`] and others correct that; [`Estimator::Plugin`] is the paper's mean. Where
//! too few items carry two labels nothing separates noise from error, and only bounds are given.

mod between;
mod by_row;
mod choice;
mod dirichlet;
mod enclosure;
mod identified;
mod leaves;
mod moments;
mod npmle;
mod oracles;
mod vote_groups;
mod polynomials;
mod pool;
mod row_losses;
mod truths;
mod within;

use crate::loss::Loss;
use crate::router::Mixture;
use crate::table::simplex::dot;
use crate::task::Estimator;
pub(crate) use between::shrink_leaves;
pub(crate) use by_row::{RowEstimates, RowLaws};
pub(crate) use choice::estimator_for_leaves;
pub(crate) use dirichlet::draw_into;
pub(crate) use enclosure::Enclosure;
pub(crate) use identified::{RowVotes, identified};
pub(crate) use leaves::{PerRow, Scratch};
use moments::Moments;
pub(crate) use oracles::{OtherOracles, OracleLoss, RowLosses, answers_of};
pub(crate) use vote_groups::VoteGroups;
use vote_groups::{VoteGroup, weighted_distinct_votes, weighted_votes_by_row};
pub(crate) use polynomials::EntropyPolynomial;
pub(crate) use pool::pool_cells;
pub(crate) use row_losses::LabelLosses;
pub(crate) use truths::{PossibleTruths, Posteriors, TruthLaw};
pub(crate) use within::{Slopes, slopes_within};

/// The expected loss of a mixture's rows, split into what nobody can know and what an oracle would save.
#[derive(Debug, Clone, PartialEq)]
pub struct Decomposition {
    /// Rows behind the estimate.
    pub rows: usize,
    /// What they amount to with their weights: (Σw)²/Σw².
    pub effective_rows: f64,
    /// Their total weight.
    pub weight: f64,
    /// Rows with two labels or more: they alone tell noise from error.
    pub paired_rows: usize,
    /// Mean of the snapshot means.
    pub centroid: Vec<f64>,
    /// Total loss of the served prediction.
    pub total: f64,
    /// Lower end of the irreducible loss; equal to the upper end unless items carry one label each.
    pub irreducible_low: f64,
    /// Upper end of the irreducible loss.
    pub irreducible_high: f64,
    /// Lower and upper end of what each oracle of the task loses that is not Bayes-optimal: each once, in the task's order.
    /// It can be more than the total loss of predicting.
    pub oracles: Vec<[f64; 2]>,
}

impl Decomposition {
    /// Whether the split is known, not only bounded.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.irreducible_low == self.irreducible_high
    }

    /// The irreducible loss, if known.
    #[must_use]
    pub fn irreducible(&self) -> Option<f64> {
        self.is_known().then_some(self.irreducible_low)
    }

    /// The reducible loss, if the split is known. Noise in the estimates can make it negative.
    #[must_use]
    pub fn reducible(&self) -> Option<f64> {
        self.irreducible().map(|irreducible| self.total - irreducible)
    }

    /// Between what the reducible loss lies, an end below zero shown as zero; equal ends if the split is known.
    #[must_use]
    pub fn reducible_bounds(&self) -> [f64; 2] {
        [self.irreducible_high, self.irreducible_low].map(|irreducible| (self.total - irreducible).max(0.0))
    }

    /// Lower and upper end of what an oracle loses.
    pub(crate) fn at(&self, column: OracleLoss) -> [f64; 2] {
        match column {
            OracleLoss::Irreducible => [self.irreducible_low, self.irreducible_high],
            OracleLoss::Other(place) => self.oracles[place],
        }
    }

    /// Estimates a mixture's losses. With `served`, that prediction is judged instead of each row's own; `oracles` are the
    /// losses of other oracles on the rows of the mixture's table. `groups` may come from other mixtures of that table.
    ///
    /// `None` if the mixture has no rows: an empty cell is not zero.
    pub(crate) fn of(
        mixture: Mixture<'_>,
        loss: &Loss,
        estimator: Estimator,
        served: Option<&[f64]>,
        oracles: &RowLosses,
        groups: &mut VoteGroups,
    ) -> Option<Self> {
        let (table, classes) = (mixture.table(), mixture.table().classes().len());
        let groups = groups.of(mixture);
        let moments = Moments::from_groups(classes, groups.clone())?;
        let stops_early = estimator == Estimator::Auto;
        let estimator = choice::estimator_for_mixture(estimator, loss, &moments);
        let (mut mean, mut point, mut losses) = (vec![0.0; classes], vec![0.0; classes], vec![0.0; classes]);
        let mut total = 0.0;
        if let Some(served) = served {
            loss.losses_into(served, &mut losses);
        } else {
            for row in mixture.rows() {
                let own = loss.of_votes_raw(mixture.votes(row), table.raw_prediction(row), &mut point, &mut losses);
                total += table.weight(row) * own;
            }
        }
        let mut irreducible = 0.0;
        for VoteGroup { votes, weight, .. } in groups {
            votes.mean_into(&mut mean);
            if served.is_some() {
                total += weight * dot(&mean, &losses);
            }
            irreducible += weight
                * match estimator {
                    Estimator::Plugin => loss.entropy(&mean),
                    Estimator::Shrink => {
                        moments.shrink_into(votes, &mean, &mut point);
                        loss.entropy(&point)
                    }
                    // These look at all rows at once, below.
                    Estimator::Auto | Estimator::Npmle | Estimator::Dirichlet => 0.0,
                };
        }
        let total = total / moments.weight;
        let ceiling = loss.entropy(&moments.mean);
        let known = |value: f64| (value, value);
        let (low, high) = match estimator {
            _ if !moments.identified => (certain_loss(loss, &moments.mean), ceiling),
            Estimator::Plugin => known(irreducible / moments.weight),
            Estimator::Auto | Estimator::Shrink => known((irreducible / moments.weight).min(ceiling)),
            Estimator::Npmle if stops_early => {
                let groups = weighted_distinct_votes(mixture);
                known(npmle::stopped_early(&groups, moments.effective_rows, &moments.mean, loss).min(ceiling))
            }
            Estimator::Npmle => {
                known(npmle::irreducible(&weighted_votes_by_row(mixture), mixture.len(), &moments.mean, loss).min(ceiling))
            }
            Estimator::Dirichlet => {
                known(dirichlet::irreducible(&weighted_votes_by_row(mixture), &moments.mean, loss).min(ceiling))
            }
        };
        let oracles = oracles.in_mixture(mixture, &moments, estimator, loss, [low, high]);
        let effective_rows = moments.effective_rows;
        Some(Self {
            rows: mixture.len(),
            effective_rows,
            weight: moments.weight,
            paired_rows: moments.paired_rows,
            centroid: moments.mean,
            total,
            irreducible_low: low,
            irreducible_high: high,
            oracles,
        })
    }
}

/// The points whose mean entropy is the irreducible loss and whose mean is the centroid, row by row; `None` if the estimator
/// does not decide by such a mixture: with `shrink` and labels varying by row the mean moves.
pub(crate) fn points(mixture: Mixture<'_>, loss: &Loss, estimator: Estimator) -> Option<Vec<f64>> {
    let moments = Moments::of(mixture)?;
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

/// Σ_c p̄_c G(e_c): the irreducible loss if every item had but one possible label. A cost matrix may charge for it.
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
