//! Hard caps on the number of queries of a table that are sent to a route.
//!
//! A query *bids* if the policy sends it to a capped route. Bidding queries are assigned to actions at the least total cost that
//! respects the caps: see [`prices`]. With one cap, the route goes to the queries with the largest gap to their next-best action.
//! Queries of equal cost are ordered by a key derived from their id or content, so the order of rows does not matter.
//!
//! A query's action depends on its own costs and key and on a few numbers computed from all bids. So a table of any size takes two
//! passes: the first collects bids, the second applies the [`CapRule`].

mod prices;
mod select;

use std::str::FromStr;

use super::decisions::NOT_MOVED;
use super::limit::content;
use super::{Action, Decision, Decisions, Policy, TIE};
use crate::error::{Error, Result, TaskError};
use crate::numeric::mix::mix;
use crate::table::Table;
use crate::table::simplex::Real;
use crate::task::{Task, Ties};
pub use prices::{CapRule, CapUse};

/// The largest number of capped routes. All subsets of them are examined.
pub const MAX_CAPS: usize = 8;

/// The seed that makes the keys of caps independent of the random draws of limits.
const KEY_SEED: u64 = 0x6361_7073;

/// The largest number of queries of a table that a route may get.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum CapSize {
    /// A number of queries.
    Queries(u64),
    /// A percentage of the table's rows, rounded down.
    Percent(f64),
}

impl CapSize {
    /// The number of queries for a table with this many rows.
    #[must_use]
    pub fn of(self, rows: u64) -> u64 {
        match self {
            Self::Queries(most) => most,
            // The factor compensates for rounding of the product: 29 % of 100 rows are 29.
            Self::Percent(percent) => ((percent * rows as f64 / 100.0) * (1.0 + TIE)).floor() as u64,
        }
    }
}

impl FromStr for CapSize {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse = || {
            let reason = "give a whole number of queries as in 500, or a share as in 5%".to_owned();
            Error::from(TaskError::Syntax { what: "cap", text: text.to_owned(), reason })
        };
        match text.trim().strip_suffix('%') {
            Some(percent) => {
                let percent: f64 = percent.trim().parse().map_err(|_| refuse())?;
                if !(0.0..=100.0).contains(&percent) {
                    return Err(refuse());
                }
                Ok(Self::Percent(percent.abs()))
            }
            None => text.trim().parse().map(Self::Queries).map_err(|_| refuse()),
        }
    }
}

impl std::fmt::Display for CapSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Queries(most) => write!(f, "{most}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// Caps on some of a task's routes.
///
/// ```
/// use pointsman::{Loss, Oracle, Task};
/// use pointsman::policy::Caps;
/// let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05)?;
/// let caps = Caps::new(&task, [("expert", "5%".parse()?)])?;
/// assert_eq!(caps.most(1000), [50]);
/// assert!(Caps::new(&task, [("nobody", "5%".parse()?)]).is_err());
/// # Ok::<(), pointsman::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Caps {
    /// The actions with a cap, in the task's order, and their caps.
    capped: Vec<(usize, CapSize)>,
}

impl Caps {
    /// Caps for the named routes of a task.
    ///
    /// # Errors
    /// If a route is unknown or capped twice, or there are none or too many caps.
    pub fn new<S: AsRef<str>>(task: &Task, caps: impl IntoIterator<Item = (S, CapSize)>) -> Result<Self> {
        let mut capped: Vec<(usize, CapSize)> = Vec::new();
        for (name, size) in caps {
            let name = name.as_ref();
            let route = task.routes().iter().position(|route| route.name() == name).ok_or_else(|| {
                let known = task.routes().iter().map(|route| route.name().to_owned()).collect();
                TaskError::UnknownName { what: "route", name: name.to_owned(), known }
            })?;
            if capped.iter().any(|(action, _)| *action == 1 + route) {
                return Err(TaskError::TwoCaps { route: name.to_owned() }.into());
            }
            capped.push((1 + route, size));
        }
        if capped.is_empty() || capped.len() > MAX_CAPS {
            let (value, wanted) = (capped.len() as f64, format!("routes; give from 1 to {MAX_CAPS}"));
            return Err(TaskError::OutOfRange { what: "caps".to_owned(), value, wanted }.into());
        }
        capped.sort_by_key(|(action, _)| *action);
        Ok(Self { capped })
    }

    /// The largest number of queries for each capped route in a table of `rows` rows, in the task's order.
    #[must_use]
    pub fn most(&self, rows: u64) -> Vec<u64> {
        self.capped.iter().map(|(_, size)| size.of(rows)).collect()
    }

    /// The names of the capped routes, in the task's order.
    #[must_use]
    pub fn names<'t>(&self, task: &'t Task) -> Vec<&'t str> {
        self.capped.iter().map(|(action, _)| task.routes()[action - 1].name()).collect()
    }

    /// The number of capped routes.
    #[must_use]
    pub fn count(&self) -> usize {
        self.capped.len()
    }
}

/// A query that the policy sends to a capped route.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Bid {
    /// The capped route it is sent to, by its place among the capped routes.
    pub wanted: u8,
    /// The key that orders queries of equal cost.
    pub key: u64,
    /// The cost of each capped route, followed by that of the best action without a cap.
    pub costs: [f64; MAX_CAPS + 1],
}

/// Converts a policy's decisions to bids.
struct Bidder<'a> {
    policy: &'a Policy,
    caps: &'a Caps,
    /// The amount that a limit on routing adds to the price of each action.
    extra: Vec<f64>,
    /// The actions without a cap, in the order of the tie rule.
    others: Vec<usize>,
}

impl<'a> Bidder<'a> {
    fn new(policy: &'a Policy, caps: &'a Caps) -> Self {
        let actions = policy.actions();
        let mut extra = vec![0.0; actions];
        for (place, (own, priced)) in policy.task.routes().iter().zip(policy.priced().routes()).enumerate() {
            extra[1 + place] = priced.price() - own.price();
        }
        let is_capped = |action: &usize| caps.capped.iter().any(|(capped, _)| capped == action);
        let mut others: Vec<usize> = (0..actions).filter(|action| !is_capped(action)).collect();
        if policy.task.chosen_ties() == Ties::Paper {
            // Abstain, then the routes in order, then predict.
            others.rotate_left(1);
            if policy.task.abstain_price().is_some() {
                others[..actions - 1 - caps.count()].rotate_right(1);
            }
        }
        Self { policy, caps, extra, others }
    }

    /// The bid of a query and its cheapest action without a cap; `None` if it is not sent to a capped route.
    fn bid(&self, decision: &Decision<'_>, key: u64) -> Option<(Bid, usize)> {
        let code = decision.code()?;
        let wanted = self.caps.capped.iter().position(|(action, _)| *action == code)?;
        let cost = |action: usize| decision.costs_high()[action] + self.extra[action];
        let mut bid = Bid { wanted: wanted as u8, key, ..Bid::default() };
        let least = self.others.iter().map(|&action| cost(action)).fold(f64::INFINITY, f64::min);
        let tie = TIE * self.policy.task.loss().rounding().max(least);
        let other = self.others.iter().copied().find(|&action| cost(action) <= least + tie).unwrap_or(0);
        let places = self.caps.count();
        for (place, (action, _)) in self.caps.capped.iter().enumerate() {
            bid.costs[place] = cost(*action);
        }
        bid.costs[places] = least;
        // The action that the policy chose counts as the cheapest, also after ties and random draws.
        bid.costs[wanted] = bid.costs[..=places].iter().copied().fold(f64::INFINITY, f64::min);
        Some((bid, other))
    }
}

impl Policy {
    /// The bids of a batch of decisions, in order, with one key per row.
    ///
    /// # Panics
    /// If there are fewer keys than rows, or the caps are of another task.
    pub fn bids(&self, caps: &Caps, decisions: &Decisions, keys: &[u64]) -> Vec<Bid> {
        let bidder = Bidder::new(self, caps);
        let bid = |row: usize| bidder.bid(&self.row(decisions, row), keys[row]).map(|(bid, _)| bid);
        (0..decisions.len()).filter_map(bid).collect()
    }

    /// Keys that order queries of equal cost under a cap: hashes of ids if given, else of predictions and the features of
    /// [`Cells::features`](crate::Cells::features). They depend on neither labels nor the order of rows.
    pub fn cap_keys<T: Real>(&self, predictions: &[T], features: &[f64], ids: Option<&[String]>) -> Vec<u64> {
        if let Some(ids) = ids {
            return ids.iter().map(|id| id.bytes().map(u64::from).fold(KEY_SEED, mix)).collect();
        }
        let (c, d) = (self.cells.classes(), self.cells.features().len());
        let key = |(row, prediction): (usize, &[T])| {
            content(prediction, features.get(row * d..(row + 1) * d).unwrap_or(&[])).fold(KEY_SEED, mix)
        };
        predictions.chunks_exact(c).enumerate().map(key).collect()
    }

    /// [`Self::cap_keys`] for the rows of a table.
    ///
    /// # Errors
    /// If the table lacks a feature.
    pub fn cap_keys_of_table(&self, table: &Table, ids: Option<&[String]>) -> Result<Vec<u64>> {
        let columns = self.cells.columns_in(table)?;
        let features: Vec<f64> =
            (0..table.rows()).flat_map(|row| columns.iter().map(move |&column| table.features(row)[column])).collect();
        Ok(self.cap_keys(&table.predictions(), &features, ids))
    }

    /// Applies caps to a batch: rows that do not get the route they want take the action that the rule assigns. Each batch that
    /// contributed bids to the rule must be passed exactly once.
    ///
    /// # Panics
    /// If there are fewer keys than rows, or the rule's caps are of another task.
    pub fn apply_caps(&self, rule: &mut CapRule, decisions: &mut Decisions, keys: &[u64]) {
        let caps = rule.caps().clone();
        let bidder = Bidder::new(self, &caps);
        let mut moved = vec![NOT_MOVED; decisions.len()];
        for (row, slot) in moved.iter_mut().enumerate() {
            let decision = self.row(decisions, row);
            let Some((bid, other)) = bidder.bid(&decision, keys[row]) else { continue };
            let given = rule.assign(&bid);
            if given != usize::from(bid.wanted) {
                *slot = caps.capped.get(given).map_or(other, |(action, _)| *action) as u8;
            }
        }
        decisions.moved = moved;
    }
}

impl<'p> Decision<'p> {
    /// The action that the query would have without caps and with all routes available; `None` if it has it.
    #[must_use]
    pub fn wanted(&self) -> Option<Action<'p>> {
        self.moved?;
        Some(Decision { moved: None, ..*self }.action())
    }

    /// The extra cost of the action taken over the one that a cap or a missing route denied; 0 if none did.
    #[must_use]
    pub fn cost_of_cap(&self) -> f64 {
        let wanted = Decision { moved: None, ..*self }.code();
        match (self.moved.and(self.code()), wanted) {
            (Some(taken), Some(wanted)) => self.costs_high()[taken] - self.costs_high()[wanted],
            _ => 0.0,
        }
    }
}
