//! Decisions with costs: one row an act, one column a class; the cheapest act is taken.

use crate::error::{Error, Result};
use crate::loss::MAX_COST;
use crate::simplex::dot;

/// Costs closer than this, relative to their scale, are a tie: the first listed act wins.
const TIE: f64 = 1e-12;

/// A checked cost matrix with named acts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Matrix {
    acts: Vec<String>,
    classes: usize,
    cost: Vec<f64>,
    bound: f64,
}

impl Matrix {
    pub(super) fn new(acts: Vec<String>, cost: Vec<Vec<f64>>) -> Result<Self> {
        let refuse = |reason: String| Err(Error::Task(format!("cost matrix: {reason}")));
        if acts.is_empty() || acts.len() != cost.len() {
            return refuse(format!("{} acts but {} rows of costs: give one row an act", acts.len(), cost.len()));
        }
        let classes = cost[0].len();
        if classes < 2 {
            return refuse(format!("{classes} columns: give one column a class, two or more"));
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
        Ok(Self { acts, classes, cost, bound })
    }

    /// The paper's loss of three acts.
    pub(super) fn three_part() -> Self {
        Self {
            acts: vec!["positive".into(), "hedge".into(), "negative".into()],
            classes: 2,
            cost: vec![4.0, 0.0, 0.25, 0.25, 0.0, 1.0],
            bound: 4.0,
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

    /// Half the largest range of an act's costs.
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

    /// The cheapest act for a prediction.
    pub(super) fn best(&self, q: &[f64]) -> usize {
        // Terms are not negative, so a cost is rounded relative to itself: one forbidding entry must not widen ties.
        let least = self.entropy(q);
        first_best(self.costs(q), least)
    }

    pub(super) fn entropy(&self, p: &[f64]) -> f64 {
        self.costs(p).fold(f64::INFINITY, f64::min)
    }
}

/// The first index whose cost is within rounding of the least.
pub(super) fn first_best(costs: impl Iterator<Item = f64> + Clone, scale: f64) -> usize {
    let least = costs.clone().fold(f64::INFINITY, f64::min);
    costs.into_iter().position(|cost| cost <= least + TIE * scale).unwrap_or(0)
}
