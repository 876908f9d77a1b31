//! The losses of a task's oracles on the rows of a mixture.
//!
//! The loss of a measured oracle is the mean of Σ_c ȳ_c ℓ(c, o), which is unbiased for any number of labels. The loss of a panel is
//! unbiased on items with more labels than the panel has experts: the average over all divisions of the labels into a panel and one
//! label that evaluates it. On other items it is the panel's loss under the estimator's law of p*. A mixture may contain both kinds.

use super::moments::Moments;
use super::vote_groups::weighted_votes_by_row;
use super::{dirichlet, npmle};
use crate::error::{Result, TableError};
use crate::loss::Loss;
use crate::oracle::{Costing, Oracle, Panel, Urn};
use crate::parallel::prelude::*;
use crate::router::Mixture;
use crate::table::Table;
use crate::table::simplex::dot;
use crate::table::votes::Votes;
use crate::task::{Estimator, MAX_NPMLE_CLASSES};
use crate::task::{Route, Task};

/// Steps of the grid for the bounds of a panel's loss with two classes.
const GRID_STEPS: u32 = 200;

/// Leaves per parallel batch.
const LEAVES_PER_BATCH: usize = 1 << 12;

/// The distinct oracles of a task that are not Bayes-optimal, in the task's order, with the name of their first route.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct OtherOracles(Vec<(Oracle, String)>);

/// Which loss a route's oracle has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OracleLoss {
    /// The irreducible loss.
    Irreducible,
    /// The loss of the oracle at this place in [`OtherOracles`].
    Other(usize),
}

impl OracleLoss {
    /// Picks this loss from the irreducible loss and those of the other oracles.
    pub(crate) fn pick(self, irreducible: f64, other: impl Fn(usize) -> f64) -> f64 {
        match self {
            Self::Irreducible => irreducible,
            Self::Other(place) => other(place),
        }
    }
}

impl OtherOracles {
    pub(crate) fn from_task(task: &Task) -> Self {
        let mut others = Self::default();
        for route in task.routes() {
            if others.loss_of(route).is_none() {
                others.0.push((route.oracle().clone(), route.name().to_owned()));
            }
        }
        others
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn oracles(&self) -> impl Iterator<Item = &Oracle> {
        self.0.iter().map(|(oracle, _)| oracle)
    }

    /// The oracles and the names of their routes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Oracle, &str)> {
        self.0.iter().map(|(oracle, name)| (oracle, name.as_str()))
    }

    /// The loss of a route's oracle; `None` if the oracle is not among these.
    pub(crate) fn loss_of(&self, route: &Route) -> Option<OracleLoss> {
        if *route.oracle() == Oracle::Bayes {
            return Some(OracleLoss::Irreducible);
        }
        // Measured oracles are identified by their names, panels by their definition.
        let same = |(oracle, name): &(Oracle, String)| {
            oracle == route.oracle() && (*oracle != Oracle::Measured || name == route.name())
        };
        self.0.iter().position(same).map(OracleLoss::Other)
    }
}

/// The loss of each other oracle on each row of a table: one list per oracle.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowLosses {
    other_oracles: OtherOracles,
    /// NaN if the row has too few labels.
    values: Vec<Vec<f64>>,
    /// For panels with such rows, the loss under any label distribution.
    laws: Vec<Option<UnderLaws>>,
}

/// The loss of a panel under given label distributions.
#[derive(Debug, Clone)]
struct UnderLaws {
    costing: Costing,
    /// With two classes, pairs of the second class's probability and the loss.
    grid: Vec<(f64, f64)>,
    /// The largest change of the loss between two points of the grid.
    slack: f64,
}

impl UnderLaws {
    /// The losses of an oracle that is a panel, to be evaluated under `laws` distributions; `None` for other oracles.
    fn new(oracle: &Oracle, loss: &Loss, classes: usize, laws: usize) -> Option<Self> {
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

    fn cost(&self, loss: &Loss, law: &[f64]) -> f64 {
        self.costing.cost(loss, &Urn::from_distribution(law))
    }
}

impl RowLosses {
    /// The losses on rows whose own labels give an unbiased estimate.
    ///
    /// # Errors
    /// If the table lacks the predictions of a measured oracle.
    pub(crate) fn from_labels(table: &Table, loss: &Loss, other_oracles: &OtherOracles) -> Result<Self> {
        let of = |(oracle, name): &(Oracle, String)| match Panel::from_oracle(oracle) {
            Some(panel) => {
                let unbiased = |votes: Votes<'_>| panel.unbiased(loss, votes).unwrap_or(f64::NAN);
                Ok(by_votes(Mixture::all_rows_of(table), unbiased))
            }
            None => measured(table, loss, name),
        };
        let values: Vec<Vec<f64>> = other_oracles.0.iter().map(of).collect::<Result<_>>()?;
        let laws = |(oracle, values): (&Oracle, &Vec<f64>)| {
            let unknown = values.iter().filter(|value| value.is_nan()).count();
            if unknown > 0 { UnderLaws::new(oracle, loss, table.classes().len(), unknown) } else { None }
        };
        let laws = other_oracles.oracles().zip(&values).map(laws).collect();
        Ok(Self { other_oracles: other_oracles.clone(), values, laws })
    }

    /// Fills in the losses of a forest's rows with too few labels for a panel, under the mean of the shrunk snapshot means from the leaves
    /// that contain the row. Once per row instead of once per leaf saves a factor of the number of trees.
    pub(crate) fn in_forest<'a>(
        mut self,
        table: &Table,
        leaves: usize,
        rows: impl Fn(usize) -> &'a [u32] + Sync,
        loss: &Loss,
        estimator: Estimator,
    ) -> Self {
        if self.laws.iter().all(Option::is_none) {
            return self;
        }
        let classes = table.classes().len();
        let points = points_in_leaves(table, leaves, rows, estimator);
        for (values, laws) in self.values.iter_mut().zip(&self.laws) {
            let Some(laws) = laws else { continue };
            values.par_iter_mut().zip(points.par_chunks_exact(classes)).for_each(|(value, point)| {
                // A row whose leaves do not separate noise from error has no point.
                if value.is_nan() && point[0].is_finite() {
                    *value = laws.cost(loss, point);
                }
            });
        }
        self
    }

    /// The losses on all rows, for evaluation. A panel's loss is that under the row's true distribution if known; else the unbiased
    /// estimate, or with too few labels the loss under their mean.
    ///
    /// # Errors
    /// If the table lacks the predictions of a measured oracle.
    pub(crate) fn held_out(table: &Table, loss: &Loss, other_oracles: &OtherOracles) -> Result<Self> {
        let of = |(oracle, name): &(Oracle, String)| match Panel::from_oracle(oracle) {
            Some(panel) => {
                let costing = panel.costing_for(loss, table.classes().len(), table.rows());
                let under = |law: &[f64]| costing.cost(loss, &Urn::from_distribution(law));
                Ok(match table.truth(0) {
                    Some(_) => {
                        (0..table.rows()).into_par_iter().map(|row| under(table.truth(row).unwrap_or(&[]))).collect()
                    }
                    None => by_votes(Mixture::all_rows_of(table), |votes| {
                        panel.unbiased(loss, votes).unwrap_or_else(|| under(&mean_of(votes)))
                    }),
                })
            }
            None => measured(table, loss, name),
        };
        let values = other_oracles.0.iter().map(of).collect::<Result<_>>()?;
        Ok(Self { other_oracles: other_oracles.clone(), values, laws: Vec::new() })
    }

    /// The loss of a measured oracle on each row; `None` if the oracle at this place is a panel.
    pub(super) fn measured(&self, place: usize) -> Option<&[f64]> {
        let (oracle, _) = self.other_oracles.0.get(place)?;
        (*oracle == Oracle::Measured).then(|| self.values[place].as_slice())
    }

    /// One list per oracle, one loss per row.
    pub(crate) fn columns(&self) -> &[Vec<f64>] {
        &self.values
    }

    /// The lower and upper bound of each oracle's mean loss over a mixture of the table's rows, equal if it is known. `irreducible` are
    /// the bounds of the irreducible loss.
    pub(super) fn in_mixture(
        &self,
        mixture: Mixture<'_>,
        moments: &Moments,
        estimator: Estimator,
        loss: &Loss,
        irreducible: [f64; 2],
    ) -> Vec<[f64; 2]> {
        let mean = |losses: &[f64]| {
            let sum: f64 = mixture.rows().zip(losses).map(|(row, loss)| mixture.table().weight(row) * loss).sum();
            [sum / moments.weight; 2]
        };
        let of = |((oracle, values), laws): ((&Oracle, &Vec<f64>), &Option<UnderLaws>)| {
            let own: Vec<f64> = mixture.rows().map(|row| values[row]).collect();
            match Panel::from_oracle(oracle).zip(laws.as_ref()) {
                // Known for every row of the table.
                None => mean(&own),
                Some((panel, laws)) if !moments.identified => bounds(panel, laws, loss, &moments.mean, irreducible),
                Some(_) if own.iter().all(|loss| loss.is_finite()) => mean(&own),
                Some((panel, laws)) => {
                    let cost = |urn: &Urn| laws.costing.cost(loss, urn);
                    let under = integrated(panel.labels_needed(loss), &cost, mixture, moments, estimator);
                    let either: Vec<f64> =
                        own.iter().zip(under).map(|(&own, under)| if own.is_finite() { own } else { under }).collect();
                    mean(&either)
                }
            }
        };
        self.other_oracles.oracles().zip(&self.values).zip(&self.laws).map(of).collect()
    }
}

/// For each row, the mean of its shrunk snapshot means over the leaves that contain it; NaN if no leaf separates noise from error.
fn points_in_leaves<'a>(
    table: &Table,
    leaves: usize,
    rows: impl Fn(usize) -> &'a [u32] + Sync,
    estimator: Estimator,
) -> Vec<f64> {
    let classes = table.classes().len();
    let (mut points, mut times) = (vec![0.0; table.rows() * classes], vec![0.0; table.rows()]);
    let (mut mean, mut point) = (vec![0.0; classes], vec![0.0; classes]);
    for first in (0..leaves).step_by(LEAVES_PER_BATCH) {
        let some = first..leaves.min(first + LEAVES_PER_BATCH);
        let moments = |leaf: usize| {
            Moments::from_mixture(Mixture::of_rows(table, rows(leaf))).filter(|moments| moments.identified)
        };
        let known: Vec<Option<Moments>> = some.clone().into_par_iter().map(moments).collect();
        for (leaf, moments) in some.zip(known) {
            let Some(moments) = moments else { continue };
            for row in rows(leaf).iter().map(|&row| row as usize) {
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
fn integrated(
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
fn bounds(panel: Panel, laws: &UnderLaws, loss: &Loss, mean: &[f64], irreducible: [f64; 2]) -> [f64; 2] {
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

/// Σ_c y_c ℓ(c, o) for each row, where y is its true distribution if known, else the mean of its labels.
fn measured(table: &Table, loss: &Loss, name: &str) -> Result<Vec<f64>> {
    let classes = table.classes().len();
    let answers = answers_of(table, name)?;
    let of = |(truth, losses): &mut (Vec<f64>, Vec<f64>), row: usize| {
        match (table.truth(row), table.votes(row)) {
            (Some(known), _) => truth.copy_from_slice(known),
            (None, Some(votes)) => votes.mean_into(truth),
            (None, None) => {}
        }
        loss.losses_into(&answers[row * classes..][..classes], losses);
        dot(truth, losses)
    };
    let buffers = || (vec![0.0; classes], vec![0.0; classes]);
    Ok((0..table.rows()).into_par_iter().with_min_len(1 << 10).map_init(buffers, of).collect())
}

/// A measured oracle's predictions, row by row.
///
/// # Errors
/// If the table has none.
pub(crate) fn answers_of<'a>(table: &'a Table, name: &str) -> Result<&'a [f64]> {
    if let Some((_, answers)) = table.oracles().find(|(other, _)| *other == name) {
        return Ok(answers);
    }
    let oracles = table.oracles().map(|(name, _)| name.to_owned()).collect();
    Err(TableError::NoAnswers { route: name.to_owned(), class: table.classes()[0].clone(), oracles }.into())
}

fn mean_of(votes: Votes<'_>) -> Vec<f64> {
    let mut mean = vec![0.0; votes.counts().len()];
    votes.mean_into(&mut mean);
    mean
}

/// A value per row that depends on its votes alone, computed once per distinct vote vector.
fn by_votes(mixture: Mixture<'_>, value: impl Fn(Votes<'_>) -> f64 + Sync) -> Vec<f64> {
    let distinct = mixture.table().distinct_votes();
    let rows: Vec<u32> = mixture.rows().map(|row| distinct.index_of_row()[row]).collect();
    let mut present = rows.clone();
    present.sort_unstable();
    present.dedup();
    let values: Vec<f64> = present.par_iter().map(|&index| value(distinct.votes(index))).collect();
    rows.iter().map(|index| present.binary_search(index).map_or(f64::NAN, |place| values[place])).collect()
}

#[cfg(test)]
mod tests {
    use rand_pcg::Pcg64;
    use rand_pcg::rand_core::{Rng, SeedableRng};

    use super::*;
    use crate::estimate::{Decomposition, VoteGroups};
    use crate::numeric::mix::{class_at, uniform};
    use crate::oracle::Aggregate;
    use crate::partition::Partition;
    use crate::router::Router;

    /// The true distribution over three classes, given two features.
    fn truth(features: &[f64]) -> [f64; 3] {
        let (first, second) = (0.1 + 0.8 * features[0] * features[1], 0.05 + 0.05 * features[0]);
        [first, second, 1.0 - first - second]
    }

    fn labelled_table(rows: usize, k: usize) -> Table {
        let mut random = Pcg64::seed_from_u64(11);
        let mut unit = move || uniform(random.next_u64());
        let (mut votes, mut features) = (vec![], vec![]);
        for _ in 0..rows {
            let x = [unit(), unit()];
            let mut counts = [0; 3];
            (0..k).for_each(|_| counts[class_at(&truth(&x), unit())] += 1);
            votes.extend(counts);
            features.extend(x);
        }
        let table = Table::new(["a", "b", "c"], [0.5, 0.1, 0.4].repeat(rows)).unwrap().with_votes(votes).unwrap();
        table.with_features(["x", "y"], features).unwrap()
    }

    #[test]
    fn panel_loss_per_row_is_as_accurate_as_per_leaf() {
        let table = labelled_table(600, 3);
        let router = Router::calibrate(&table, &Partition::forest(10)).unwrap();
        let ((forest, _), leaves) = router.cells().forest().zip(router.leaves()).unwrap();
        for (loss, aggregate) in
            [(Loss::zero_one(), Aggregate::Plurality), (Loss::spherical(), Aggregate::Laplace(1.0))]
        {
            let oracle = Oracle::panel(9, aggregate).unwrap();
            let other_oracles = OtherOracles(vec![(oracle.clone(), "jury".into())]);
            let by_leaf = RowLosses::from_labels(router.rows(), &loss, &other_oracles).unwrap();
            let count = forest.trees().leaves();
            let rows = |leaf: usize| leaves.rows_of(leaf);
            let by_row = by_leaf.clone().in_forest(router.rows(), count, rows, &loss, Estimator::Shrink);
            assert!(by_row.columns()[0].iter().all(|value| value.is_finite()));
            let mut errors = [0.0; 2];
            for leaf in 0..count {
                let mixture = Mixture::of_rows(router.rows(), rows(leaf));
                let truth = |row: &u32| oracle.cost(&loss, &truth(router.rows().features(*row as usize))).unwrap();
                let truth = rows(leaf).iter().map(truth).sum::<f64>() / rows(leaf).len() as f64;
                for (error, losses) in errors.iter_mut().zip([&by_leaf, &by_row]) {
                    let d =
                        Decomposition::fit(mixture, &loss, Estimator::Shrink, None, losses, &mut VoteGroups::default())
                            .unwrap();
                    *error += (d.oracles[0][0] - truth).abs() / count as f64;
                }
            }
            println!("{loss}: mean error of a leaf {:.4} leaf by leaf, {:.4} row by row", errors[0], errors[1]);
            assert!(errors[1] < 1.1 * errors[0], "{loss}: {errors:?}");
        }
    }
}
