//! What a task's oracles lose on the rows of a mixture.
//!
//! A measured oracle's loss is the mean of Σ_c ȳ_c ℓ(c, o): unbiased for every number of labels. A panel's is unbiased on
//! items with more labels than the panel has experts, by dividing the labels in all ways into a panel and a judge. On other
//! items it is the panel's loss under what the estimator says of the item. Both kinds of items may be in one mixture.

use std::collections::HashMap;

use rayon::prelude::*;

use super::moments::Moments;
use super::{Estimator, dirichlet, npmle};
use crate::error::{Error, Result};
use crate::loss::{Loss, dot};
use crate::oracle::{Oracle, Panel, Polynomial, Urn};
use crate::router::Mixture;
use crate::table::Table;
use crate::task::{Route, Task};
use crate::votes::Votes;

/// Steps of the grid for the bounds of a panel's loss with two classes.
const STEPS: u32 = 200;

/// The oracles of a task that lose something else than the irreducible loss, each once, in the task's order.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Asked(Vec<(Oracle, String)>);

/// Where the loss of a route's oracle is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    /// It is the irreducible loss.
    Irreducible,
    /// It has a place of its own among the oracles asked.
    Own(usize),
}

impl Column {
    /// The loss that stands here.
    pub(crate) fn of(self, irreducible: f64, own: impl Fn(usize) -> f64) -> f64 {
        match self {
            Self::Irreducible => irreducible,
            Self::Own(place) => own(place),
        }
    }
}

impl Asked {
    pub(crate) fn of(task: &Task) -> Self {
        let mut asked = Self::default();
        for route in task.routes() {
            if asked.column(route).is_none() {
                asked.0.push((route.oracle().clone(), route.name().to_owned()));
            }
        }
        asked
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

    /// Where a route's loss is; `None` if its oracle is not among these.
    pub(crate) fn column(&self, route: &Route) -> Option<Column> {
        if *route.oracle() == Oracle::Bayes {
            return Some(Column::Irreducible);
        }
        // A measured oracle is known by its name, any other by what it is.
        let same = |(oracle, name): &(Oracle, String)| {
            oracle == route.oracle() && (*oracle != Oracle::Measured || name == route.name())
        };
        self.0.iter().position(same).map(Column::Own)
    }
}

/// What each oracle asked loses on each row of a table: one list an oracle.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowLosses {
    asked: Asked,
    /// Not a number where the row's labels are too few to tell.
    values: Vec<Vec<f64>>,
    /// How the panels lose under any law, where rows need that.
    polynomials: Vec<Option<Polynomial>>,
}

impl RowLosses {
    /// As far as each row's own labels tell without bias.
    ///
    /// # Errors
    /// If the table lacks the predictions of a measured oracle.
    pub(crate) fn of(table: &Table, loss: &Loss, asked: &Asked) -> Result<Self> {
        let of = |(oracle, name): &(Oracle, String)| match Panel::of(oracle) {
            Some(panel) => {
                let unbiased = |votes: Votes<'_>| panel.unbiased(loss, votes).unwrap_or(f64::NAN);
                Ok(by_votes(Mixture::all_rows_of(table), unbiased))
            }
            None => measured(table, loss, name),
        };
        let values: Vec<Vec<f64>> = asked.0.iter().map(of).collect::<Result<_>>()?;
        let polynomial = |(oracle, values): (&Oracle, &Vec<f64>)| {
            let panel = Panel::of(oracle).filter(|_| values.iter().any(|value| value.is_nan()))?;
            panel.polynomial(loss, table.classes().len())
        };
        let polynomials = asked.oracles().zip(&values).map(polynomial).collect();
        Ok(Self { asked: asked.clone(), values, polynomials })
    }

    /// The same with every row's loss filled in, for evaluation: a panel's is that under the row's true distribution or,
    /// where the labels are too few, under their mean.
    ///
    /// # Errors
    /// If the table lacks the predictions of a measured oracle.
    pub(crate) fn held_out(table: &Table, loss: &Loss, asked: &Asked) -> Result<Self> {
        let of = |(oracle, name): &(Oracle, String)| match Panel::of(oracle) {
            Some(panel) if table.truth(0).is_some() => {
                let polynomial = panel.polynomial(loss, table.classes().len());
                let under = |row: usize| {
                    cost_under(panel, loss, polynomial.as_ref(), &Urn::law(table.truth(row).unwrap_or(&[])))
                };
                Ok((0..table.rows()).into_par_iter().map(under).collect())
            }
            Some(panel) => {
                let found = |votes: Votes<'_>| {
                    panel.unbiased(loss, votes).unwrap_or_else(|| panel.cost(loss, &Urn::law(&mean_of(votes))))
                };
                Ok(by_votes(Mixture::all_rows_of(table), found))
            }
            None => measured(table, loss, name),
        };
        let values = asked.0.iter().map(of).collect::<Result<_>>()?;
        Ok(Self { asked: asked.clone(), values, polynomials: Vec::new() })
    }

    /// One list an oracle, one loss a row.
    pub(crate) fn columns(&self) -> &[Vec<f64>] {
        &self.values
    }

    /// The mean loss of each oracle over a mixture of the table's rows: lower and upper end, equal unless labels give only
    /// bounds. `irreducible` are those of the irreducible loss.
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
        let of = |((oracle, values), polynomial): ((&Oracle, &Vec<f64>), &Option<Polynomial>)| {
            let own: Vec<f64> = mixture.rows().map(|row| values[row]).collect();
            match Panel::of(oracle) {
                None => mean(&own),
                Some(panel) if !moments.identified => bounds(panel, oracle, loss, &moments.mean, irreducible),
                Some(_) if own.iter().all(|loss| loss.is_finite()) => mean(&own),
                Some(panel) => {
                    let cost = |urn: &Urn| cost_under(panel, loss, polynomial.as_ref(), urn);
                    let under = integrated(panel.labels_needed(loss), &cost, mixture, moments, estimator);
                    let either: Vec<f64> =
                        own.iter().zip(under).map(|(&own, under)| if own.is_finite() { own } else { under }).collect();
                    mean(&either)
                }
            }
        };
        self.asked.oracles().zip(&self.values).zip(&self.polynomials).map(of).collect()
    }
}

/// A panel's loss under an urn, by its polynomial if there is one.
fn cost_under(panel: Panel, loss: &Loss, polynomial: Option<&Polynomial>, urn: &Urn) -> f64 {
    polynomial.map_or_else(|| panel.cost(loss, urn), |polynomial| polynomial.at(urn))
}

/// A panel's loss on each row under what the estimator says of the row's true distribution. Rows with as many labels as are
/// needed have an estimate of their own.
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
        Estimator::Plugin => each(&|votes| Urn::law(&mean_of(votes))),
        Estimator::Shrink => each(&|votes| {
            let mut point = vec![0.0; moments.mean.len()];
            moments.shrink_into(votes, &mean_of(votes), &mut point);
            Urn::law(&point)
        }),
        Estimator::Dirichlet => {
            let concentration = dirichlet::concentration(mixture, &moments.mean);
            each(&|votes| {
                let posterior = moments.mean.iter().zip(votes.counts());
                Urn::dirichlet(&posterior.map(|(p, &n)| concentration * p + f64::from(n)).collect::<Vec<_>>())
            })
        }
        Estimator::Npmle => {
            let (atoms, weights) = npmle::law(mixture, &moments.mean);
            let costs: Vec<f64> = atoms.par_iter().map(|atom| cost(&Urn::law(atom))).collect();
            vec![dot(&weights, &costs); mixture.len()]
        }
    }
}

/// Between what a panel's mean loss lies if all that is known of the true distributions is their mean.
///
/// A panel never loses less than the irreducible loss. Under the Brier loss of shares it grows with that loss, so that its ends
/// belong to each other. Otherwise, with two classes, the loss is a function of one number with a known mean: the ends are those of
/// its convex and of its concave hull, looked up on a grid and widened by what may lie between two points of it.
fn bounds(panel: Panel, oracle: &Oracle, loss: &Loss, mean: &[f64], irreducible: [f64; 2]) -> [f64; 2] {
    if panel.by_agreement(loss) {
        return irreducible.map(|irreducible| panel.brier(1.0 - irreducible, mean.len()));
    }
    let widest = [irreducible[0], loss.bound()];
    if mean.len() > 2 {
        return widest;
    }
    let cost = |p: f64| panel.cost(loss, &Urn::law(&[1.0 - p, p]));
    let at = |step: u32| f64::from(step) / f64::from(STEPS);
    let grid: Vec<(f64, f64)> = (0..=STEPS).map(|step| (at(step), cost(at(step)))).collect();
    let here = cost(mean[1]);
    let (below, above): (Vec<_>, Vec<_>) = grid.into_iter().partition(|(p, _)| *p < mean[1]);
    let mut ends = [here; 2];
    for (a, low) in &below {
        for (b, high) in &above {
            let chord = low + (high - low) * (mean[1] - a) / (b - a);
            ends = [ends[0].min(chord), ends[1].max(chord)];
        }
    }
    let slack = oracle.lipschitz(loss, 2) / f64::from(STEPS);
    [(ends[0] - slack).max(widest[0]), (ends[1] + slack).min(widest[1])]
}

/// Σ_c y_c ℓ(c, o) of each row, y its true distribution or the mean of its labels.
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
    let have: Vec<&str> = table.oracles().map(|(name, _)| name).collect();
    Err(Error::Table(format!(
        "the route {name:?} is measured, but there is no column oracle_{name}_{}: {}",
        table.classes()[0],
        if have.is_empty() {
            "put the oracle's predictions into the calibration table and calibrate again, and into held-out tables, or \
             give the route another kind"
                .into()
        } else {
            format!("there are predictions of {}; call the route like one of them", have.join(", "))
        }
    )))
}

fn mean_of(votes: Votes<'_>) -> Vec<f64> {
    let mut mean = vec![0.0; votes.counts().len()];
    votes.mean_into(&mut mean);
    mean
}

/// A value a row that only its votes decide: worked out once for all rows of the same votes.
fn by_votes(mixture: Mixture<'_>, value: impl Fn(Votes<'_>) -> f64 + Sync) -> Vec<f64> {
    let (mut places, mut distinct) = (HashMap::new(), Vec::new());
    let mut place = |row: usize| {
        let counts = mixture.votes(row).counts();
        *places.entry(counts).or_insert_with(|| {
            distinct.push(counts);
            distinct.len() - 1
        })
    };
    let rows: Vec<usize> = mixture.rows().map(&mut place).collect();
    let values: Vec<f64> = distinct.par_iter().map(|counts| value(Votes::new(counts))).collect();
    rows.into_iter().map(|place| values[place]).collect()
}
