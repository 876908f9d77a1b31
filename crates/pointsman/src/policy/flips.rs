//! Price changes that would change a decision.

use super::Decision;
use super::cutoff::Unit;
use crate::task::Limit;

/// A price at which a decision changes if all other prices stay the same.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Flip {
    /// The action with this price, as in [`Task::action_names`](crate::Task::action_names).
    pub price_of: String,
    /// The current price.
    pub now: f64,
    /// The price beyond which the decision changes.
    pub at: f64,
    /// The action taken beyond that price.
    pub to: String,
}

impl Flip {
    /// Whether the price would have to rise; otherwise it would have to fall.
    #[must_use]
    pub fn rises(&self) -> bool {
        self.at >= self.now
    }
}

impl Decision<'_> {
    /// The next-best action and its extra cost, a limit's surcharge included; `None` if there is no other action or the decision is
    /// undetermined.
    #[must_use]
    pub fn runner_up(&self) -> Option<(String, f64)> {
        let next = match self.moved {
            Some(_) => self.next_best_code()?,
            None => self.runner_up_code(self.code()?)?,
        };
        Some((self.policy.task.action_names()[next].clone(), self.margin()))
    }

    /// Under a budget, the smallest one that is sure to route the query: the share of the calibration rows for which routing saves at
    /// least as much. `None` without a budget, if routing does not pay at the task's own prices, or if costs are only bounded.
    #[must_use]
    pub fn least_budget(&self) -> Option<f64> {
        let policy = self.policy;
        let is_budget = matches!(policy.task.limit(), Some(Limit::Budget(_)));
        let costs = Some(self.costs()).filter(|costs| is_budget && *costs == self.costs_high())?;
        let task = policy.at_no_price();
        let own = Some(policy.unit(&task, 1.0, [costs, costs], costs)).filter(|unit| unit.worth)?;
        let units = policy.units_of_budget(&task).ok()?;
        let weight = |units: &mut dyn Iterator<Item = &Unit>| units.map(|unit| unit.weight).sum::<f64>();
        let first = |unit: &&Unit| unit.worth && unit.gap >= own.gap - 2.0 * policy.tie;
        Some(weight(&mut units.iter().filter(first)) / weight(&mut units.iter()))
    }

    /// The price changes that would change the action, one per price. Changes to negative prices are left out. Empty if costs are only
    /// bounded, or under a limit, which sets its own price.
    #[must_use]
    pub fn flips(&self) -> Vec<Flip> {
        let task = &self.policy.task;
        let known = self.costs() == self.costs_high() && self.policy.cutoff.is_none();
        let (Some(taken), true) = (self.code(), known) else { return Vec::new() };
        let (names, costs) = (task.action_names(), self.costs());
        let prices = task.routes().iter().map(|route| route.price()).chain(task.abstain_price());
        let flip = |(action, now): (usize, f64)| {
            let (to, at) = if action == taken {
                (self.runner_up()?.0, now + self.margin())
            } else {
                (names[action].clone(), now - (costs[action] - costs[taken]))
            };
            (at >= 0.0).then(|| Flip { price_of: names[action].clone(), now, at, to })
        };
        // Predicting has no price.
        (1..).zip(prices).filter_map(flip).collect()
    }
}
