//! Why a query gets its action, in one word, and which action comes next.

use std::fmt;

use super::{Action, AvailableRoutes, Decision, Policy, TIE, UNDETERMINED, choose};
use crate::router::Support;

/// Why a query gets its action.
///
/// Let *T* be the expected loss of predicting, *I* the irreducible part of it, and *G* what is good enough: the mean cost over the
/// calibration rows of the cheapest other action, always taken (of predicting, if there is no other). The first line that applies
/// is the reason:
///
/// | reason | if |
/// |---|---|
/// | `degraded` | a cap or a limit that is used up, or a route that is not available, forced another action than the best one |
/// | `sparse` | the cell has fewer than [`SPARSE_BELOW_ROWS`](crate::partition::SPARSE_BELOW_ROWS) calibration rows, or labels leave open which action is best |
/// | `hard` | the action is a route |
/// | `easy` | the action is to predict and *T* ≤ *G* |
/// | `ambiguous` | *I* ≥ *T* / 2 |
/// | `hard` | *I* < *T* / 2 |
/// | `sparse` | items have one label each, which leaves open on which side of *T* / 2 the irreducible loss is |
///
/// So the reason for a query that is abstained on, or predicted because nothing is better, is the larger part of its loss: the part that an
/// oracle would save (`hard`), or the part that nobody can (`ambiguous`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Reason {
    /// The model is good enough.
    Easy,
    /// An oracle would help.
    Hard,
    /// Nobody can know: the labels themselves disagree.
    Ambiguous,
    /// There is too little support to say.
    Sparse,
    /// A cap, a limit on routing or an unavailable route forced the next-best action.
    Degraded,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 5] = [Self::Easy, Self::Hard, Self::Ambiguous, Self::Sparse, Self::Degraded];

    /// `easy`, `hard`, `ambiguous`, `sparse` or `degraded`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Easy => "easy",
            Self::Hard => "hard",
            Self::Ambiguous => "ambiguous",
            Self::Sparse => "sparse",
            Self::Degraded => "degraded",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Policy {
    /// The mean cost over the calibration rows of the cheapest action but predicting, always taken; of predicting, if it is the only
    /// one. Of costs that are bounded only, the upper ends.
    pub(super) fn find_good_enough(&self) -> f64 {
        let mean = |action: usize| {
            let (mut cost, mut weight) = (0.0, 0.0);
            for (cell, estimate) in self.estimates.sources[..self.cells.count()].iter().enumerate() {
                if let Some(estimate) = estimate {
                    cost += estimate.weight * self.high[cell * self.actions() + action];
                    weight += estimate.weight;
                }
            }
            cost / weight
        };
        let others = (1..self.actions()).map(mean).fold(f64::INFINITY, f64::min);
        if others.is_finite() { others } else { mean(0) }
    }
}

impl<'p> Decision<'p> {
    /// Why the query gets its action.
    #[must_use]
    pub fn reason(&self) -> Reason {
        if self.moved.is_some() || self.route_without_limit().is_some() {
            return Reason::Degraded;
        }
        if self.support() != Support::Enough {
            return Reason::Sparse;
        }
        let total = self.total();
        match self.action() {
            Action::Undetermined => return Reason::Sparse,
            Action::Route(_) => return Reason::Hard,
            Action::Predict if total <= self.policy.good_enough => return Reason::Easy,
            Action::Predict | Action::Abstain => {}
        }
        let [low, high] = self.irreducible_bounds();
        if low >= total / 2.0 {
            Reason::Ambiguous
        } else if high < total / 2.0 {
            Reason::Hard
        } else {
            Reason::Sparse
        }
    }

    /// The code of the route that the query would get without the limit on routing, if the limit keeps it from every route.
    fn route_without_limit(&self) -> Option<u8> {
        let taken = self.raw_code();
        let is_route = |code: u8| (1..=self.policy.task.routes().len()).contains(&usize::from(code));
        if !self.policy.is_limit_binding() || taken == UNDETERMINED || is_route(taken) {
            return None;
        }
        // Costs are at the task's own prices.
        Some(choose(self.costs(), self.costs_high(), &self.policy.task).0).filter(|&code| is_route(code))
    }

    /// The action that comes next: the one preferred, if a cap or a limit did not allow it, else the cheapest of those not taken, a limit's
    /// surcharge included, and the first in the task's order on a tie. `None` if there is no other action or none was determined. With
    /// one label per item lower bounds of costs are compared.
    #[must_use]
    pub fn next_best(&self) -> Option<Action<'p>> {
        self.next_best_code().map(|code| self.policy.action(code as u8))
    }

    /// The number of that action among [`Task::action_names`](crate::Task::action_names).
    #[must_use]
    pub fn next_best_code(&self) -> Option<usize> {
        let taken = self.code()?;
        if self.moved.is_some() {
            return Decision { moved: None, ..*self }.code();
        }
        self.route_without_limit().map(usize::from).or_else(|| self.runner_up_code(taken))
    }

    /// The action that comes next if only these routes can be taken: as [`Decision::next_best`], without the action that a missing route
    /// denied and without routes that are missing.
    #[must_use]
    pub fn next_best_among(&self, available: &AvailableRoutes) -> Option<Action<'p>> {
        let taken = self.code()?;
        let can_be_taken = |code: &usize| *code != taken && available.allows(*code);
        let preferred = self.next_best_code().filter(can_be_taken);
        let code = preferred.or_else(|| self.cheapest_of(|action| can_be_taken(&action)))?;
        Some(self.policy.action(code as u8))
    }

    /// The cheapest of the actions not taken, a limit's surcharge included.
    pub(super) fn runner_up_code(&self, taken: usize) -> Option<usize> {
        self.cheapest_of(|action| action != taken)
    }

    /// The cheapest of the actions that meet a condition, a limit's surcharge included.
    fn cheapest_of(&self, condition: impl Fn(usize) -> bool) -> Option<usize> {
        // A limit is a price, too.
        let routes = self.policy.task.routes().iter().zip(self.policy.priced().routes());
        let extra = |action: usize| {
            let route = routes.clone().nth(action.wrapping_sub(1));
            route.map_or(0.0, |(own, priced)| priced.price() - own.price())
        };
        let cost = |action: usize| self.costs()[action] + extra(action);
        let others = (0..self.costs().len()).filter(|&action| condition(action));
        let least = others.clone().map(cost).fold(f64::INFINITY, f64::min);
        let tie = TIE * self.policy.task.loss().rounding().max(least);
        others.into_iter().find(|&action| cost(action) <= least + tie)
    }
}
