//! Summaries of tasks for reports.

use super::{Limit, Route, Task};
use crate::loss::CostMatrix;

/// A task for reports.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TaskSummary {
    /// The loss.
    pub loss: String,
    /// The cost of each act under each class, if the loss is a cost matrix.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub cost_matrix: Option<CostMatrix>,
    /// The estimator of the irreducible loss.
    pub estimator: String,
    /// The tie rule.
    pub ties: String,
    /// The routes.
    pub routes: Vec<RouteSummary>,
    /// The price of abstaining, if it is allowed.
    pub abstain: Option<f64>,
    /// The largest share of queries that is routed, if there is a budget.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub budget: Option<f64>,
    /// The expected loss to reach, if there is a target loss.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub target_loss: Option<f64>,
}

/// A route for reports.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RouteSummary {
    /// Its name.
    pub name: String,
    /// The kind of oracle.
    pub kind: String,
    /// Its price.
    pub cost: f64,
}

impl TaskSummary {
    /// Whether there is a budget or a target loss.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.budget.is_some() || self.target_loss.is_some()
    }

    /// Summarises a task for predictions over these classes.
    #[must_use]
    pub fn new(task: &Task, classes: &[String]) -> Self {
        let route = |route: &Route| RouteSummary {
            name: route.name().into(),
            kind: route.oracle().to_string(),
            cost: route.price(),
        };
        Self {
            loss: task.loss().to_string(),
            cost_matrix: task.loss().cost_matrix(classes),
            estimator: task.chosen_estimator().to_string(),
            ties: task.chosen_ties().to_string(),
            routes: task.routes().iter().map(route).collect(),
            abstain: task.abstain_price(),
            budget: task.limit().and_then(|limit| if let Limit::Budget(share) = limit { Some(share) } else { None }),
            target_loss: task.limit().and_then(|it| if let Limit::TargetLoss(loss) = it { Some(loss) } else { None }),
        }
    }
}
