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

use super::choose::least_gap;
use super::decide::draw_by_content;
use super::decisions::{NOT_MOVED, draw_by_id};
use super::limit::content;
use super::{Action, Decision, Decisions, KEPT, MixedAction, Policy, TIE};
use crate::error::{Error, Result, TaskError};
use crate::numeric::mix::mix;
use crate::parallel::prelude::*;
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

    /// What one more query within each cap would save at most, at the task's own prices; 0 if a cap is not used up. Within a budget this is more
    /// than the price of the cap, because the budget's surcharge decides but is not paid; less if the query takes another route instead.
    /// Negative if a target loss routes at a price below the route's own.
    #[must_use]
    pub fn savings(&self, policy: &Policy, uses: &[CapUse]) -> Vec<f64> {
        let saving = |(action, used): (usize, &CapUse)| {
            let is_used_up = used.wanted > used.most || used.price > 0.0;
            if is_used_up { used.price + policy.surcharge_on(action) } else { 0.0 }
        };
        self.actions().zip(uses).map(saving).collect()
    }

    /// The number of capped routes.
    #[must_use]
    pub fn count(&self) -> usize {
        self.capped.len()
    }

    /// The same caps on those routes of one task that another task has as well; `None` if it has none of them.
    pub(crate) fn for_task(&self, own: &Task, other: &Task) -> Option<Self> {
        let place = |(action, size): &(usize, CapSize)| {
            let name = own.routes()[action - 1].name();
            Some((1 + other.routes().iter().position(|route| route.name() == name)?, *size))
        };
        let mut capped: Vec<(usize, CapSize)> = self.capped.iter().filter_map(place).collect();
        capped.sort_by_key(|(action, _)| *action);
        (!capped.is_empty()).then_some(Self { capped })
    }

    /// The actions of the capped routes.
    pub(crate) fn actions(&self) -> impl Iterator<Item = usize> {
        self.capped.iter().map(|(action, _)| *action)
    }
}

/// What orders the rows of a table under caps, and what decides them at the margin of a limit. It depends on ids or content, not on labels.
#[derive(Debug, Clone)]
pub(crate) struct RowDraws {
    keys: Vec<u64>,
    draws: Vec<f64>,
}

/// The actions of the rows of a table under caps.
#[derive(Debug)]
pub(crate) struct CappedActions {
    /// Whether the action is determined, and the action that is taken or, if undetermined, assumed.
    pub(crate) taken: Vec<(bool, usize)>,
    /// The number of rows that do not get the action that they want, after random draws.
    pub(crate) moved: usize,
    /// The use of each cap.
    pub(crate) uses: Vec<CapUse>,
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

    /// The same if some actions cannot be taken at all.
    fn without(mut self, rooms: &Rooms) -> Self {
        self.others.retain(|&action| !rooms.is_missing(action));
        self
    }

    /// The amount that an action costs, with the price of a limit.
    fn cost(&self, costs: &[f64], action: usize) -> f64 {
        costs[action] + self.extra[action]
    }

    /// The bid of a query and its cheapest action without a cap; `None` if it is not sent to a capped route.
    fn bid(&self, decision: &Decision<'_>, key: u64) -> Option<(Bid, usize)> {
        self.bid_for(decision.code()?, decision.costs_high(), key)
    }

    /// The bid of a query that wants an action and has these costs, the upper ends if they are only bounded.
    fn bid_for(&self, code: usize, costs: &[f64], key: u64) -> Option<(Bid, usize)> {
        let wanted = self.caps.capped.iter().position(|(action, _)| *action == code)?;
        let cost = |action: usize| self.cost(costs, action);
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

/// What caps or missing routes leave for some actions.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Rooms(Vec<Room>);

/// What caps leave for an action, or that it is missing.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Room {
    action: usize,
    /// The largest share of the queries.
    share: f64,
    /// Whether no query can take the action. A query without a determined action, which may count as taking it, then counts as another; a cap
    /// does not concern it.
    is_missing: bool,
}

impl Rooms {
    /// The routes that a rule caps, with their shares of the table; none if no cap is exceeded without the rule.
    fn left_by(rule: &CapRule) -> Self {
        if !rule.is_binding() {
            return Self::default();
        }
        let room = |(action, &most): (usize, &u64)| {
            let share = most as f64 / rule.rows() as f64;
            Room { action, share, is_missing: false }
        };
        Self(rule.caps().actions().zip(rule.most()).map(room).collect())
    }

    /// No room for these actions, which are missing.
    pub(super) fn none_for(actions: impl Iterator<Item = usize>) -> Self {
        Self(actions.map(|action| Room { action, share: 0.0, is_missing: true }).collect())
    }

    /// The routes that rows of a batch were moved from, with the shares that still take them. A missing route that no row wanted is not known
    /// any more.
    pub(super) fn from_moves(policy: &Policy, decisions: &Decisions) -> Self {
        if !decisions.is_capped() {
            return Self::default();
        }
        let (mut taken, mut denied) = (vec![0_u64; policy.actions()], vec![false; policy.actions()]);
        for decision in (0..decisions.len()).map(|row| policy.row(decisions, row)) {
            decision.code().into_iter().for_each(|code| taken[code] += 1);
            let wanted = decision.moved.and(Decision { moved: None, ..decision }.code());
            wanted.into_iter().for_each(|code| denied[code] = true);
        }
        let routes = (1..=policy.task.routes().len()).filter(|&action| denied[action]);
        let room = |action: usize| {
            let share = taken[action] as f64 / decisions.len() as f64;
            Room { action, share, is_missing: taken[action] == 0 }
        };
        Self(routes.map(room).collect())
    }

    /// The rooms over two sets of queries, of which `part` are in this one. `taken` gives the shares of both sets that take an action: where one
    /// set leaves an action free and the other does not, the free queries that do not take it leave no room to the others.
    pub(super) fn beside(&self, other: &Self, part: f64, taken: impl Fn(usize) -> [f64; 2]) -> Self {
        let mut actions: Vec<usize> = self.0.iter().chain(&other.0).map(|room| room.action).collect();
        actions.sort_unstable();
        actions.dedup();
        let joint = |action: usize| {
            let stated = [self, other].map(|rooms| rooms.0.iter().find(|room| room.action == action));
            let [own, others] = match stated {
                [Some(own), Some(others)] => [own.share, others.share],
                [own, others] => {
                    let taken = taken(action);
                    [own.map_or(taken[0], |room| room.share), others.map_or(taken[1], |room| room.share)]
                }
            };
            let share = part * own + (1.0 - part) * others;
            let is_missing = share <= 0.0 && stated.iter().flatten().all(|room| room.is_missing);
            Room { action, share, is_missing }
        };
        Self(actions.into_iter().map(joint).filter(|room| room.share < 1.0).collect())
    }

    /// Whether an action cannot be taken at all.
    pub(super) fn is_missing(&self, action: usize) -> bool {
        self.0.iter().any(|room| room.action == action && room.is_missing)
    }

    /// The actions that are not missing, the least rooms of them if there are more than [`MAX_CAPS`].
    fn limited(&self) -> Vec<(usize, f64)> {
        let present = self.0.iter().filter(|room| !room.is_missing);
        let mut limited: Vec<(usize, f64)> = present.map(|room| (room.action, room.share)).collect();
        limited.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        limited.truncate(MAX_CAPS);
        limited.sort_by_key(|(action, _)| *action);
        limited
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Rows that are decided alike: their weight, both ends of their costs, and the actions that they want.
pub(super) struct WantedActions {
    pub(super) weight: f64,
    pub(super) costs: [Vec<f64>; 2],
    pub(super) wanted: MixedAction,
    /// Whether the actions are determined. Rows whose action is only assumed keep it under caps, as queries do; if a route is missing, the best
    /// of the others counts.
    pub(super) is_determined: bool,
}

/// The part of some rows that wants one action, with its bid and the number of queries that it stands for.
struct BidOfRows {
    action: usize,
    part: f64,
    /// The bid and the cheapest action without a cap; `None` if the action has no cap.
    bid: Option<(Bid, usize)>,
    queries: u64,
}

/// The parts of rows that take each action.
pub(super) type ActionParts = Vec<(usize, f64)>;

/// The number of queries that all rows stand for when held-out rows are assigned within rooms.
const QUERIES_OF_ALL_ROWS: f64 = (1_u64 << 40) as f64;

impl Policy {
    /// Assigns groups of rows to actions at the least total cost, such that no action gets more than its share of their weight.
    pub(super) fn assign_within(&self, rooms: &Rooms, rows: &[WantedActions]) -> Vec<ActionParts> {
        let all: f64 = rows.iter().map(|rows| rows.weight).sum();
        let queries = |share: f64| (share * QUERIES_OF_ALL_ROWS).round() as u64;
        let capped = rooms.limited().into_iter().map(|(action, share)| (action, CapSize::Queries(queries(share))));
        let caps = Caps { capped: capped.collect() };
        let bidder = Bidder::new(self, &caps).without(rooms);
        let bids = |rows: &WantedActions| {
            let [low, high] = &rows.costs;
            let wanted = match rows.is_determined {
                true => rows.wanted,
                false => MixedAction::always(self.assumed_action_within(rooms, [low, high])),
            };
            let bid = |action: usize| {
                let part = wanted.part_of(action);
                let is_denied = rows.is_determined && rooms.is_missing(action);
                let action = if is_denied { self.action_instead(rooms, [low, high]) } else { action };
                let bid = rows.is_determined.then(|| bidder.bid_for(action, high, 0)).flatten();
                BidOfRows { action, part, bid, queries: queries(part * rows.weight / all) }
            };
            let [action, otherwise] = wanted.actions();
            [action].into_iter().chain(Some(otherwise).filter(|&other| other != action)).map(bid).collect()
        };
        let bids: Vec<Vec<BidOfRows>> = rows.iter().map(bids).collect();
        let mut scan = |see: &mut dyn FnMut(&Bid, u64)| {
            for rows in bids.iter().flatten() {
                rows.bid.iter().for_each(|(bid, _)| see(bid, rows.queries));
            }
            Ok::<(), std::convert::Infallible>(())
        };
        let Ok(rule) = CapRule::with_prices(&caps, caps.most(0), &mut scan);
        let assign = |bids: &Vec<BidOfRows>| {
            let mut parts = ActionParts::new();
            for rows in bids {
                match &rows.bid {
                    None => parts.push((rows.action, rows.part)),
                    Some((bid, other)) => parts.extend(rule.parts(bid).into_iter().map(|(place, share)| {
                        (caps.capped.get(place).map_or(*other, |(action, _)| *action), rows.part * share)
                    })),
                }
            }
            parts
        };
        bids.iter().map(assign).collect()
    }

    /// The cost of an action minus that of another one, by the upper ends, and how much less and more it may be where labels only bound costs.
    pub(super) fn difference(&self, costs: [&[f64]; 2], one: usize, other: usize) -> [f64; 3] {
        if one == other {
            return [0.0; 3];
        }
        let difference = costs[1][one] - costs[1][other];
        let [least, most] = [least_gap(costs, &self.task, other, one), -least_gap(costs, &self.task, one, other)];
        [difference, (difference - least).max(0.0), (most - difference).max(0.0)]
    }

    /// The action instead of one that is missing.
    fn action_instead(&self, rooms: &Rooms, costs: [&[f64]; 2]) -> usize {
        let [mut low, mut high] = costs.map(<[f64]>::to_vec);
        self.choose_available(&mut low, &mut high, |action| !rooms.is_missing(action)).1
    }

    /// The action that is assumed if costs do not determine one. Without the missing routes they may, or the cheapest of known cost is another
    /// one.
    pub(super) fn assumed_action_within(&self, rooms: &Rooms, costs: [&[f64]; 2]) -> usize {
        let is_assumed_anyway = self.has_limit() || !rooms.0.iter().any(|room| room.is_missing);
        if is_assumed_anyway { self.assumed_action(costs) } else { self.action_instead(rooms, costs) }
    }

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

    /// What orders the rows of a table under caps.
    ///
    /// # Errors
    /// If the table lacks a feature.
    pub(crate) fn row_draws(&self, table: &Table, ids: Option<&[String]>) -> Result<RowDraws> {
        let columns = self.cells.columns_in(table)?;
        let draw = |row: usize| ids.map_or_else(|| draw_by_content(table, row, &columns), |ids| draw_by_id(&ids[row]));
        Ok(RowDraws { keys: self.cap_keys_of_table(table, ids)?, draws: (0..table.rows()).map(draw).collect() })
    }

    /// Decides the rows of a batch, which this policy or one that it was repriced from has decided, and applies caps to all of them.
    pub(crate) fn act_within(&self, caps: &Caps, decisions: &Decisions, by: &RowDraws) -> CappedActions {
        let bidder = Bidder::new(self, caps);
        let decide = |row: usize| {
            let kept = self.draw_row(decisions, row, || by.draws[row]).0 & KEPT != 0;
            let decision = Decision { kept, ..self.row(decisions, row) };
            let assumed = || self.action_on(decisions, row).1.actions()[0];
            let taken = decision.code().map_or_else(|| (false, assumed()), |code| (true, code));
            (taken, bidder.bid(&decision, by.keys[row]))
        };
        let rows: Vec<_> = (0..decisions.len()).into_par_iter().with_min_len(1 << 10).map(decide).collect();
        let scan = |see: &mut dyn FnMut(&Bid)| {
            rows.iter().filter_map(|(_, bid)| bid.as_ref()).for_each(|(bid, _)| see(bid));
            Ok::<(), std::convert::Infallible>(())
        };
        let Ok(mut rule) = CapRule::find(caps, rows.len() as u64, scan);
        let mut moved = 0;
        let act = |(taken, bid): &((bool, usize), Option<(Bid, usize)>)| {
            let Some((bid, other)) = bid else { return *taken };
            let given = rule.assign(bid);
            moved += usize::from(given != usize::from(bid.wanted));
            (true, caps.capped.get(given).map_or(*other, |(action, _)| *action))
        };
        let taken = rows.iter().map(act).collect();
        CappedActions { taken, moved, uses: rule.uses() }
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
        decisions.rooms = Rooms::left_by(rule);
    }
}

impl<'p> Decision<'p> {
    /// The action that the query would have without caps and with all routes available; `None` if it has it.
    #[must_use]
    pub fn wanted(&self) -> Option<Action<'p>> {
        self.moved?;
        Some(Decision { moved: None, ..*self }.action())
    }

    /// The extra cost of the action taken over the one that the query would have without caps and with all routes available; 0 if it has it. If
    /// labels do not determine that one, the cheapest action of known cost counts; if they only bound a cost, its upper bound.
    #[must_use]
    pub fn cost_of_cap(&self) -> f64 {
        self.extra_cost(&Rooms::default())[0]
    }

    /// The action that counts as taken, and the one that counts without caps and with all routes available: if none is determined, the one that
    /// is assumed.
    pub(super) fn counted_actions(&self, rooms: &Rooms) -> [usize; 2] {
        let costs = [self.costs(), self.costs_high()];
        let wanted = Decision { moved: None, ..*self }.code();
        let without = wanted.unwrap_or_else(|| self.policy.assumed_action(costs));
        let assumed = || wanted.unwrap_or_else(|| self.policy.assumed_action_within(rooms, costs));
        [self.moved.map_or_else(assumed, usize::from), without]
    }

    /// What caps and missing routes add to the cost of the query, and how much less and more it may be where labels only bound costs.
    pub(super) fn extra_cost(&self, rooms: &Rooms) -> [f64; 3] {
        let [taken, wanted] = self.counted_actions(rooms);
        self.policy.difference([self.costs(), self.costs_high()], taken, wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Loss, Oracle, Partition, Router};

    /// Parts of rows that take each action, of rows that all want the first of two routes at these costs.
    fn assigned(rooms: &Rooms, is_determined: [bool; 2]) -> Vec<ActionParts> {
        let table =
            Table::new(["no", "yes"], vec![0.9, 0.1, 0.8, 0.2]).and_then(|table| table.with_votes(vec![3, 0, 1, 2]));
        let task = Task::new(Loss::brier()).route("a", Oracle::bayes(), 0.1).unwrap();
        let task = task.route("b", Oracle::bayes(), 0.2).unwrap();
        let policy = Router::calibrate(&table.unwrap(), &Partition::confidence(1)).unwrap().policy(&task).unwrap();
        let rows = is_determined.map(|is_determined| WantedActions {
            weight: 1.0,
            costs: [(); 2].map(|()| vec![0.4, 0.1, 0.2]),
            wanted: MixedAction::always(1),
            is_determined,
        });
        policy.assign_within(rooms, &rows)
    }

    fn capped(action: usize, share: f64) -> Room {
        Room { action, share, is_missing: false }
    }

    fn missing(action: usize) -> Room {
        Room { action, share: 0.0, is_missing: true }
    }

    #[test]
    fn rows_without_a_determined_action_take_no_room() {
        let half = Rooms(vec![capped(1, 0.5)]);
        assert_eq!(assigned(&half, [false, true]), [vec![(1, 1.0)], vec![(1, 1.0)]]);
        assert_eq!(assigned(&half, [true, true]), [vec![(1, 0.5), (2, 0.5)], vec![(1, 0.5), (2, 0.5)]]);
    }

    #[test]
    fn missing_routes_give_way_to_the_cheapest_action_within_its_own_room() {
        assert_eq!(assigned(&Rooms(vec![missing(1)]), [true, true]), [vec![(2, 1.0)], vec![(2, 1.0)]]);
        assert_eq!(assigned(&Rooms(vec![missing(1), missing(2)]), [true, true]), [vec![(0, 1.0)], vec![(0, 1.0)]]);
        assert_eq!(
            assigned(&Rooms(vec![missing(1), capped(2, 0.25)]), [true, true]),
            [vec![(2, 0.25), (0, 0.75)], vec![(2, 0.25), (0, 0.75)]]
        );
    }

    /// Rows without a determined action here count as taking the first route, whose cost is known.
    #[test]
    fn a_cap_of_zero_does_not_concern_rows_without_a_determined_action() {
        assert_eq!(assigned(&Rooms(vec![capped(1, 0.0)]), [false, true]), [vec![(1, 1.0)], vec![(2, 1.0)]]);
        assert_eq!(assigned(&Rooms(vec![missing(1)]), [false, true]), [vec![(2, 1.0)], vec![(2, 1.0)]]);
    }
}
