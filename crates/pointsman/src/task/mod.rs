//! Tasks: a loss, priced oracles, a price for abstaining, and a limit on routing.

mod estimator;
mod named;
mod summary;

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result, TaskError};
use crate::loss::{Loss, MAX_COST};
use crate::oracle::Oracle;
pub use estimator::Estimator;
pub(crate) use estimator::MAX_NPMLE_CLASSES;
pub use named::Named;
pub use summary::{RouteSummary, TaskSummary};

/// The largest number of routes of a task.
pub const MAX_ROUTES: usize = 200;

/// A routing configuration T = (L, α₁…α_k, β). Prices are in the loss's unit.
///
/// ```
/// use pointsman::{Loss, Oracle, Task};
/// let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05)?.abstain(0.30)?;
/// assert_eq!(task.routes()[0].name(), "expert");
/// assert!(Task::new(Loss::brier()).abstain(-1.0).is_err());
/// # Ok::<(), pointsman::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    loss: Loss,
    routes: Vec<Route>,
    abstain: Option<f64>,
    estimator: Estimator,
    ties: Ties,
    limit: Option<Limit>,
}

/// A limit on routing, enforced by a price: see [`Surcharge`](crate::policy::Surcharge).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// At most this share of traffic like the calibration rows is routed. It becomes a price, so other traffic may be routed more or
    /// less often; a hard limit on a table is a [cap](crate::policy::Caps).
    Budget(f64),
    /// The fewest queries are routed that keep the expected loss at this value. A query goes to the route with the least loss; route
    /// prices only break ties.
    TargetLoss(f64),
}

/// An oracle with a name and a price.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    name: String,
    oracle: Oracle,
    price: f64,
}

/// The rule that chooses among actions of equal cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ties {
    /// Predict before the oracles, in the task's order, before abstaining: a tie never costs a price.
    #[default]
    Frugal,
    /// Abstain before the oracles before predicting: the order of the paper's decision tree.
    Paper,
}

impl Task {
    /// A task with a loss, no oracle and no abstention.
    #[must_use]
    pub fn new(loss: Loss) -> Self {
        Self {
            loss,
            routes: Vec::new(),
            abstain: None,
            estimator: Estimator::default(),
            ties: Ties::default(),
            limit: None,
        }
    }

    /// Adds an oracle at a price per query.
    ///
    /// # Errors
    /// If the name is empty, taken or unprintable, the price negative or not finite, there are too many routes, or
    /// the loss is not defined for the oracle's answers (see [`Oracle::check_loss`]).
    pub fn route(mut self, name: impl Into<String>, oracle: Oracle, price: f64) -> Result<Self> {
        let name = name.into();
        let is_valid =
            !name.is_empty() && name.len() <= 64 && !name.contains(|c: char| c.is_control() || ",=:\"".contains(c));
        if !is_valid {
            return Err(TaskError::RouteName { name }.into());
        }
        if self.routes.iter().any(|route| route.name == name) {
            return Err(TaskError::RepeatedName { what: "routes", name }.into());
        }
        if self.routes.len() == MAX_ROUTES {
            return Err(TaskError::TooManyRoutes { most: MAX_ROUTES }.into());
        }
        let price = checked_price(&format!("route {name:?}"), price)?;
        oracle.check_loss(&self.loss)?;
        self.routes.push(Route { name, oracle, price });
        Ok(self)
    }

    /// Allows abstaining at a price per query.
    ///
    /// # Errors
    /// If the price is negative or not finite.
    pub fn abstain(mut self, price: f64) -> Result<Self> {
        self.abstain = Some(checked_price("abstain", price)?);
        Ok(self)
    }

    /// Chooses the estimator of the irreducible loss.
    #[must_use]
    pub fn estimator(mut self, estimator: Estimator) -> Self {
        self.estimator = estimator;
        self
    }

    /// Chooses the tie rule.
    #[must_use]
    pub fn ties(mut self, ties: Ties) -> Self {
        self.ties = ties;
        self
    }

    /// Routes at most this share of traffic like the calibration rows: the policy finds the price that achieves it, and routes a random
    /// part of the queries at the margin.
    ///
    /// ```
    /// use pointsman::{Loss, Oracle, Task};
    /// let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05)?.budget(0.2)?;
    /// assert!(task.clone().budget(1.5).is_err() && task.target_loss(0.3).is_err());
    /// # Ok::<(), pointsman::Error>(())
    /// ```
    ///
    /// # Errors
    /// If it is not a number from 0 to 1, or the task has a target loss.
    pub fn budget(self, share: f64) -> Result<Self> {
        if !(0.0..=1.0).contains(&share) {
            let wanted = "is not a share of the queries; give a number from 0 to 1".to_owned();
            return Err(TaskError::OutOfRange { what: "budget".to_owned(), value: share, wanted }.into());
        }
        self.with_limit(Limit::Budget(share.abs()))
    }

    /// Routes the fewest queries that keep the expected loss at this value; abstaining loses its price. Of several routes a query goes
    /// to the one with the least loss; route prices only break ties.
    ///
    /// # Errors
    /// If it is negative or not finite, or the task has a budget.
    pub fn target_loss(self, loss: f64) -> Result<Self> {
        if !(0.0..=MAX_COST).contains(&loss) {
            let wanted = format!("is not a loss; give a number from 0 to {MAX_COST:e}");
            return Err(TaskError::OutOfRange { what: "target loss".to_owned(), value: loss, wanted }.into());
        }
        self.with_limit(Limit::TargetLoss(loss.abs()))
    }

    fn with_limit(mut self, limit: Limit) -> Result<Self> {
        if self.limit.is_some_and(|other| std::mem::discriminant(&other) != std::mem::discriminant(&limit)) {
            return Err(TaskError::MixedLimits.into());
        }
        self.limit = Some(limit);
        Ok(self)
    }

    /// The limit on routing, if there is one.
    #[must_use]
    pub fn limit(&self) -> Option<Limit> {
        self.limit
    }

    /// The same task without a limit on routing.
    #[must_use]
    pub fn without_limit(mut self) -> Self {
        self.limit = None;
        self
    }

    /// The same task with its limit replaced by a price: a budget adds it to the price of every route, a target loss sets the price of
    /// every route to it.
    pub(crate) fn with_limit_as_price(mut self, price: f64) -> Self {
        let limit = self.limit.take();
        for route in &mut self.routes {
            route.price = match limit {
                None => route.price,
                Some(Limit::Budget(_)) => (route.price + price).min(MAX_COST),
                Some(Limit::TargetLoss(_)) => price,
            };
        }
        self
    }

    /// The same task without its oracles.
    #[must_use]
    pub fn without_routes(mut self) -> Self {
        self.routes.clear();
        self.limit = None;
        self
    }

    /// The same task without one of its routes.
    ///
    /// # Errors
    /// If there is no such route.
    pub fn without_route(mut self, name: &str) -> Result<Self> {
        let Some(place) = self.routes.iter().position(|route| route.name == name) else {
            let known = self.routes.into_iter().map(|route| route.name).collect();
            return Err(TaskError::UnknownName { what: "route", name: name.to_owned(), known }.into());
        };
        self.routes.remove(place);
        Ok(self)
    }

    /// The same task without abstention.
    #[must_use]
    pub fn without_abstaining(mut self) -> Self {
        self.abstain = None;
        self
    }

    /// The same task with another price for one of its routes.
    ///
    /// # Errors
    /// If there is no such route or the price is negative or not finite.
    pub fn reprice_route(mut self, name: &str, price: f64) -> Result<Self> {
        let Some(route) = self.routes.iter_mut().find(|route| route.name == name) else {
            let known = self.routes.into_iter().map(|route| route.name).collect();
            return Err(TaskError::UnknownName { what: "route", name: name.to_owned(), known }.into());
        };
        route.price = checked_price(&format!("route {name:?}"), price)?;
        Ok(self)
    }

    /// The same task for predictions over these classes: see [`Loss::for_classes`].
    ///
    /// # Errors
    /// If the loss is a matrix for other classes, or for another number of them.
    pub fn for_classes(&self, classes: &[String]) -> Result<Self> {
        Ok(Self { loss: self.loss.for_classes(classes)?, ..self.clone() })
    }

    /// The same task for predictions over these classes, or unchanged if no classes are given, after checking that it is consistent.
    ///
    /// ```
    /// use pointsman::{Loss, Task};
    /// let task = Task::new(Loss::fn_fp(1.0, 3.0)?);
    /// let classes = ["a", "b", "c"].map(String::from);
    /// assert!(task.checked_for(None).is_ok() && task.checked_for(Some(&classes)).is_err());
    /// # Ok::<(), pointsman::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are fewer than two distinct classes, the loss or the estimator is not defined for them, or a limit has no route.
    pub fn checked_for(&self, classes: Option<&[String]>) -> Result<Self> {
        if self.limit.is_some() && self.routes.is_empty() {
            return Err(TaskError::LimitWithoutRoute.into());
        }
        let Some(classes) = classes else { return Ok(self.clone()) };
        crate::table::check_classes(classes)?;
        self.estimator.check_classes(classes.len())?;
        self.for_classes(classes)
    }

    /// The loss.
    #[must_use]
    pub fn loss(&self) -> &Loss {
        &self.loss
    }

    /// The priced oracles, in order.
    #[must_use]
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// The price of abstaining, if it is allowed.
    #[must_use]
    pub fn abstain_price(&self) -> Option<f64> {
        self.abstain
    }

    /// The actions whose price is at least the largest loss, so that they never pay off: names as in
    /// [`action_names`](Self::action_names), with the prices.
    ///
    /// ```
    /// use pointsman::{Loss, Task};
    /// let in_cents = Task::new(Loss::brier()).abstain(30.0)?;
    /// assert_eq!(in_cents.overpriced(), [("abstain".to_owned(), 30.0)]);
    /// # Ok::<(), pointsman::Error>(())
    /// ```
    #[must_use]
    pub fn overpriced(&self) -> Vec<(String, f64)> {
        let prices = self.routes.iter().map(Route::price).chain(self.abstain);
        let priced = self.action_names().into_iter().skip(1).zip(prices);
        priced.filter(|(_, price)| *price >= self.loss.bound()).collect()
    }

    /// The names of the actions in the order of costs: `predict`, `route:<name>` …, `abstain` if allowed.
    ///
    /// ```
    /// use pointsman::{Loss, Oracle, Task};
    /// let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05)?.abstain(0.30)?;
    /// assert_eq!(task.action_names(), ["predict", "route:expert", "abstain"]);
    /// # Ok::<(), pointsman::Error>(())
    /// ```
    #[must_use]
    pub fn action_names(&self) -> Vec<String> {
        let mut names = vec!["predict".to_owned()];
        names.extend(self.routes.iter().map(|route| format!("route:{}", route.name())));
        names.extend(self.abstain.map(|_| "abstain".to_owned()));
        names
    }

    /// The number of actions.
    pub(crate) fn actions(&self) -> usize {
        1 + self.routes.len() + usize::from(self.abstain.is_some())
    }

    /// The estimator in use.
    #[must_use]
    pub fn chosen_estimator(&self) -> Estimator {
        self.estimator
    }

    /// The tie rule in use.
    #[must_use]
    pub fn chosen_ties(&self) -> Ties {
        self.ties
    }
}

impl Route {
    /// The route's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The oracle that answers.
    #[must_use]
    pub fn oracle(&self) -> &Oracle {
        &self.oracle
    }

    /// The price per query.
    #[must_use]
    pub fn price(&self) -> f64 {
        self.price
    }
}

fn checked_price(what: &str, price: f64) -> Result<f64> {
    if (0.0..=MAX_COST).contains(&price) {
        // A negative zero would be printed with its sign.
        Ok(price.abs())
    } else {
        let wanted = format!("is not a price; give a number from 0 to {MAX_COST:e}");
        Err(TaskError::OutOfRange { what: what.to_owned(), value: price, wanted }.into())
    }
}

impl FromStr for Ties {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "frugal" => Ok(Self::Frugal),
            "paper" => Ok(Self::Paper),
            _ => Err(TaskError::Unknown { what: "tie rule", text: text.to_owned(), known: "frugal or paper" }.into()),
        }
    }
}

impl fmt::Display for Ties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Frugal => "frugal",
            Self::Paper => "paper",
        })
    }
}
