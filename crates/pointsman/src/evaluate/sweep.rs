//! Price sweeps: held-out costs as a function of one price.

use std::fmt;
use std::str::FromStr;

use super::{Basis, Replay, sum};
use crate::error::{Error, Result, TaskError};
use crate::parallel::prelude::*;
use crate::policy::Policy;
use crate::task::Named;
use crate::task::Task;

/// The largest number of prices of a sweep.
const MAX_POINTS: usize = 10_000;

/// A price and its values, written `abstain=0.1:0.8:0.05`, `route=…` or `route:expert=…`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Sweep {
    /// Which price.
    pub axis: SweepAxis,
    /// The values, ascending.
    pub prices: Vec<f64>,
}

/// The price that a sweep varies.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SweepAxis {
    /// The price of abstaining.
    Abstain,
    /// The price of one route; all routes if no name is given.
    Route(Option<String>),
}

/// Held-out costs at one price.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct SweepPoint {
    /// The price.
    pub price: f64,
    /// Mean cost of `router`, its two-way restrictions, the constant actions and the two optima. Routers that cannot reach the
    /// task's target loss at this price are left out.
    pub mean_cost: Named<f64>,
    /// The mean costs, except of the best action per row, corrected for the bias of few labels; none if that is not possible or the truth is
    /// known.
    pub corrected_cost: Option<Named<f64>>,
    /// The share of the rows that gets each action; empty if the router is left out.
    pub shares: Named<f64>,
    /// The least loss that the router can reach at this price, if it cannot reach the task's target.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub least_loss: Option<f64>,
}

impl SweepPoint {
    /// The corrected costs if there are any, otherwise the mean costs.
    #[must_use]
    pub fn best_costs(&self) -> &Named<f64> {
        self.corrected_cost.as_ref().unwrap_or(&self.mean_cost)
    }
}

impl Replay {
    /// Evaluates the policy at each price of a sweep.
    ///
    /// # Errors
    /// If the sweep names a route that the task does not have, or a price is invalid.
    pub fn sweep(&self, policy: &Policy, sweep: &Sweep) -> Result<Vec<SweepPoint>> {
        self.check(policy)?;
        sweep.prices.par_iter().map(|&price| self.sweep_point(policy, &sweep.axis, price)).collect()
    }

    fn sweep_point(&self, policy: &Policy, axis: &SweepAxis, price: f64) -> Result<SweepPoint> {
        let task = axis.apply(policy.task().clone(), price)?;
        let policy = policy.reprice(&task.clone().without_limit())?;
        let names = task.action_names();
        let (mut shares, mut least_loss, mut router) = (Named::new(), None, None);
        match policy.reprice(&task) {
            Ok(limited) => {
                shares = self.shares(&limited, &names);
                router = Some(limited);
            }
            Err(Error::OutOfReach { least, .. }) => least_loss = Some(least),
            Err(error) => return Err(error),
        }
        let costs = |by: Basis| -> Result<Named<f64>> {
            let mut costs = Named::new();
            if let Some(router) = &router {
                costs.push("router", self.taken_actions(router).mean_cost(by));
            }
            for (name, &cost) in self.two_way(&policy, &task, by)?.iter() {
                costs.push(name, cost);
            }
            self.compare(&policy, &names, by, &mut costs);
            Ok(costs)
        };
        let corrected_cost = (self.best_basis() == Basis::Corrected).then(|| costs(Basis::Corrected)).transpose()?;
        let mut mean_cost = costs(Basis::Table)?;
        let least = (0..self.places.len()).map(|row| self.weights[row] * self.least_cost(&policy, row, names.len()));
        mean_cost.push("pointwise-optimal", sum(least) / sum(self.weights.iter().copied()));
        Ok(SweepPoint { price, mean_cost, corrected_cost, shares, least_loss })
    }
}

impl SweepAxis {
    fn apply(&self, task: Task, price: f64) -> Result<Task> {
        match self {
            Self::Abstain => task.abstain(price),
            Self::Route(Some(name)) => task.reprice_route(name, price),
            Self::Route(None) => {
                let names: Vec<String> = task.routes().iter().map(|route| route.name().to_owned()).collect();
                if names.is_empty() {
                    return Err(TaskError::SweepWithoutRoute.into());
                }
                names.iter().try_fold(task, |task, name| task.reprice_route(name, price))
            }
        }
    }
}

/// As a sweep is written, before the equal sign.
impl fmt::Display for SweepAxis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Abstain => f.write_str("abstain"),
            Self::Route(None) => f.write_str("route"),
            Self::Route(Some(name)) => write!(f, "route:{name}"),
        }
    }
}

impl Sweep {
    /// A price and its values.
    #[must_use]
    pub fn new(axis: SweepAxis, prices: Vec<f64>) -> Self {
        Self { axis, prices }
    }
}

impl FromStr for Sweep {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse = |reason: &str| {
            let reason = format!("{reason}; write abstain=0.1:0.8:0.05, route=… or route:NAME=…");
            Error::from(TaskError::Syntax { what: "sweep", text: text.to_owned(), reason })
        };
        let (axis, range) = text.split_once('=').ok_or_else(|| refuse("no = in it"))?;
        let axis = match axis.split_once(':') {
            None if axis == "abstain" => SweepAxis::Abstain,
            None if axis == "route" => SweepAxis::Route(None),
            Some(("route", name)) => SweepAxis::Route(Some(name.into())),
            None if !axis.trim().is_empty() => {
                let reason = format!(
                    "{axis} is neither abstain nor route: for the price of a route of that name write route:{text}"
                );
                return Err(TaskError::Syntax { what: "sweep", text: text.to_owned(), reason }.into());
            }
            _ => return Err(refuse("neither abstain nor route")),
        };
        let numbers: Vec<f64> = range
            .split(':')
            .map(|part| part.parse().ok().filter(|x: &f64| x.is_finite()))
            .collect::<Option<_>>()
            .ok_or_else(|| refuse("not three numbers FROM:TO:STEP"))?;
        let [from, to, step] = numbers[..] else { return Err(refuse("not three numbers FROM:TO:STEP")) };
        if !(from >= 0.0 && to >= from && step > 0.0) {
            return Err(refuse("FROM must be at least 0, TO at least FROM, STEP above 0"));
        }
        let steps = ((to - from) / step + 1e-9).floor();
        if steps >= MAX_POINTS as f64 {
            return Err(refuse("more than 10,000 prices"));
        }
        // Multiples of the step, not running sums, rounded to the digits that a user would write.
        let round = |x: f64| format!("{x:.12e}").parse().unwrap_or(x);
        let prices = (0..=steps as usize).map(|i| round(from + i as f64 * step)).collect();
        Ok(Self { axis, prices })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_inclusive() {
        let sweep: Sweep = "abstain=0.1:0.8:0.05".parse().unwrap();
        assert_eq!(sweep.axis, SweepAxis::Abstain);
        assert_eq!((sweep.prices.len(), sweep.prices[0], sweep.prices[14]), (15, 0.1, 0.8));
        assert_eq!("route:a=0:0:1".parse::<Sweep>().unwrap().axis, SweepAxis::Route(Some("a".into())));
        for text in
            ["abstain", "x=0:1:0.1", "abstain=0:1", "abstain=1:0:0.1", "abstain=0:1:0", "route=0:1:1e-9", "route=a:b:c"]
        {
            assert!(text.parse::<Sweep>().is_err(), "{text}");
        }
    }
}
