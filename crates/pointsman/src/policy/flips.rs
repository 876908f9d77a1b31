//! Price changes that would change a decision.

use super::Decision;

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
    /// The next-best action and its extra cost; `None` if there is no other action or the decision is undetermined.
    #[must_use]
    pub fn runner_up(&self) -> Option<(String, f64)> {
        let next = self.next_best_code()?;
        Some((self.policy.task.action_names()[next].clone(), self.margin()))
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
