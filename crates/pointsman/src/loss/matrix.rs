//! Cost matrices: one row per act, one column per class; the act with the least expected cost is taken.

use crate::error::{Result, TaskError};
use crate::loss::MAX_COST;
use crate::table::simplex::dot;

/// Costs closer than this, relative to their scale, are equal; the first of several equal acts is taken.
const RELATIVE_TIE: f64 = 1e-12;

/// A checked cost matrix with named acts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Matrix {
    acts: Vec<String>,
    classes: usize,
    cost: Vec<f64>,
    bound: f64,
    /// The classes of the columns, if the matrix names them.
    names: Option<Vec<String>>,
}

/// A cost matrix for reports: `cost[act][class]` with the names of both.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CostMatrix {
    /// The acts, one per row.
    pub acts: Vec<String>,
    /// The classes, one per column.
    pub classes: Vec<String>,
    /// The cost of each act under each class.
    pub cost: Vec<Vec<f64>>,
    /// Whether the matrix names its classes. If not, its columns are assumed to be in the order of `classes`.
    pub classes_named: bool,
}

impl Matrix {
    pub(super) fn new(acts: Vec<String>, cost: Vec<Vec<f64>>) -> Result<Self> {
        let refuse = |reason: String| Err(TaskError::CostMatrix(reason).into());
        if acts.is_empty() || acts.len() != cost.len() {
            return refuse(format!("{} acts but {} rows of costs: give one row per act", acts.len(), cost.len()));
        }
        let classes = cost[0].len();
        if classes < 2 {
            return refuse(format!("{classes} columns: give one column per class, two or more"));
        }
        for (i, (act, row)) in acts.iter().zip(&cost).enumerate() {
            if act.is_empty() || acts[..i].contains(act) {
                return refuse(format!("the act {act:?} is empty or given twice"));
            }
            if row.len() != classes {
                return refuse(format!("the row of {act:?} has {} costs, the first row {classes}", row.len()));
            }
            if let Some(bad) = row.iter().find(|x| !(0.0..=MAX_COST).contains(*x)) {
                return refuse(format!(
                    "the row of {act:?} has {bad}: costs are from 0 to {MAX_COST:e} (add a constant if some are negative)"
                ));
            }
        }
        let cost = cost.concat();
        let bound = cost.iter().fold(0.0, |a: f64, &b| a.max(b));
        Ok(Self { acts, classes, cost, bound, names: None })
    }

    /// The same matrix with a name for each column.
    pub(super) fn with_names(self, names: Vec<String>) -> Result<Self> {
        if names.len() != self.classes {
            return Err(TaskError::CostMatrix(format!(
                "{} classes ({}) but {} columns of costs: give one column per class",
                names.len(),
                names.join(", "),
                self.classes
            ))
            .into());
        }
        if let Some((_, name)) =
            names.iter().enumerate().find(|(i, name)| name.is_empty() || names[..*i].contains(name))
        {
            return Err(TaskError::CostMatrix(format!("the class {name:?} is empty or given twice")).into());
        }
        Ok(Self { names: Some(names), ..self })
    }

    /// The names of the columns, if they have names.
    pub(super) fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    /// The same matrix with its named columns in the order of `classes`. Columns without names stay as they are.
    pub(super) fn in_order_of(&self, classes: &[String]) -> Result<Self> {
        let Some(names) = &self.names else { return Ok(self.clone()) };
        let places =
            classes.iter().map(|class| names.iter().position(|name| name == class)).collect::<Option<Vec<_>>>();
        let Some(places) = places.filter(|places| places.len() == names.len()) else {
            return Err(TaskError::MatrixClasses { matrix: names.clone(), predictions: classes.to_vec() }.into());
        };
        let rows = self.cost.chunks_exact(self.classes);
        let cost = rows.flat_map(|row| places.iter().map(|&place| row[place])).collect();
        Ok(Self { cost, names: Some(classes.to_vec()), ..self.clone() })
    }

    /// The matrix with the classes of its columns.
    pub(super) fn describe(&self, classes: &[String]) -> CostMatrix {
        CostMatrix {
            acts: self.acts.clone(),
            classes: classes.to_vec(),
            cost: self.cost.chunks_exact(self.classes).map(<[f64]>::to_vec).collect(),
            classes_named: self.names.is_some(),
        }
    }

    /// The paper's loss with three acts.
    pub(super) fn three_part() -> Self {
        Self {
            acts: vec!["positive".into(), "hedge".into(), "negative".into()],
            classes: 2,
            cost: vec![4.0, 0.0, 0.25, 0.25, 0.0, 1.0],
            bound: 4.0,
            names: None,
        }
    }

    pub(super) fn acts(&self) -> &[String] {
        &self.acts
    }

    pub(super) fn classes(&self) -> usize {
        self.classes
    }

    pub(super) fn bound(&self) -> f64 {
        self.bound
    }

    pub(super) fn row(&self, act: usize) -> &[f64] {
        &self.cost[act * self.classes..(act + 1) * self.classes]
    }

    /// Half of the largest difference between two costs of one act.
    pub(super) fn lipschitz(&self) -> f64 {
        let range = |row: &[f64]| {
            let (low, high) = row.iter().fold((f64::INFINITY, 0.0), |(l, h): (f64, f64), &x| (l.min(x), h.max(x)));
            high - low
        };
        self.cost.chunks_exact(self.classes).map(range).fold(0.0, f64::max) / 2.0
    }

    fn costs<'a>(&'a self, q: &'a [f64]) -> impl Iterator<Item = f64> + Clone + 'a {
        self.cost.chunks_exact(self.classes).map(move |row| dot(row, q))
    }

    /// The act with the least expected cost under a prediction.
    pub(super) fn best(&self, q: &[f64]) -> usize {
        // No term is negative, so a cost is rounded relative to itself: one very large entry must not widen ties.
        let least = self.entropy(q);
        first_best(self.costs(q), least)
    }

    pub(super) fn entropy(&self, p: &[f64]) -> f64 {
        self.costs(p).fold(f64::INFINITY, f64::min)
    }
}

/// The first index whose cost equals the least up to rounding.
pub(super) fn first_best(costs: impl Iterator<Item = f64> + Clone, scale: f64) -> usize {
    let least = costs.clone().fold(f64::INFINITY, f64::min);
    costs.into_iter().position(|cost| cost <= least + RELATIVE_TIE * scale).unwrap_or(0)
}
