//! What would have to change for another action to be taken.

use super::Decision;

/// A price at which a decision changes, all other prices staying as they are.
#[derive(Debug, Clone, PartialEq)]
pub struct Flip {
    /// The action whose price it is, as it is called in [`Task::action_names`](crate::Task::action_names).
    pub price_of: String,
    /// What it is now.
    pub now: f64,
    /// Beyond this the decision is another.
    pub at: f64,
    /// The action taken then.
    pub to: String,
}

impl Flip {
    /// Whether the price would have to rise; else it would have to fall.
    #[must_use]
    pub fn rises(&self) -> bool {
        self.at >= self.now
    }
}

impl Decision<'_> {
    /// The next best action and by how much it is dearer; `None` if there is none, or nothing was decided.
    #[must_use]
    pub fn runner_up(&self) -> Option<(String, f64)> {
        let next = self.next_best_code()?;
        Some((self.policy.task.action_names()[next].clone(), self.margin()))
    }

    /// Which price would have to rise or fall, and how far, for another action to be taken. Prices that would have to be
    /// negative are left out. Nothing is said where costs are only bounded, nor under a limit, which finds its own price.
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
