//! The assignment of bids under caps: prices for capped routes, and quotas among bids that are indifferent.
//!
//! Assigning each bid i to an action a at cost c_ia, with at most N_r bids on the capped route r, is a transport problem. Its dual has
//! one price λ_r ≥ 0 per capped route: each bid takes the cheapest action at c_ir + λ_r. Prices are optimal when no route is demanded
//! by more than N_r bids and every route with a positive price is full. They are raised from zero: while a set S of routes is strictly
//! preferred by more bids than its caps allow, N_S in total, the prices of a smallest such set rise together by the (N_S + 1)-th largest
//! saving of a bid by S. Raising a smallest set never overshoots, because routes are substitutes.
//!
//! Bids are not held in memory: they are scanned repeatedly, and thresholds are found by radix selection.

use std::collections::BTreeMap;

use super::select::{select_largest, select_smallest};
use super::{Bid, Caps, MAX_CAPS, TIE};

/// The largest number of price increases. After that, quotas still enforce the caps, but the cost may not be minimal.
const MAX_RAISES: usize = 500;

/// The rule that assigns the bids of a table to actions within the caps.
#[derive(Debug, Clone)]
pub struct CapRule {
    caps: Caps,
    most: Vec<u64>,
    /// The number of rows of the table.
    rows: u64,
    prices: Vec<f64>,
    tie: f64,
    groups: Vec<Group>,
    wanted: Vec<u64>,
    granted: Vec<u64>,
}

/// Visits all bids in the same order each time, with the number of queries that each stands for.
pub(super) trait Scan<E>: FnMut(&mut dyn FnMut(&Bid, u64)) -> Result<(), E> {}

impl<E, F: FnMut(&mut dyn FnMut(&Bid, u64)) -> Result<(), E>> Scan<E> for F {}

/// The use of a cap.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct CapUse {
    /// The largest number of queries.
    pub most: u64,
    /// The number of queries that the policy would route without a cap.
    pub wanted: u64,
    /// The number of queries routed so far.
    pub granted: u64,
    /// The saving of one more query; 0 if the cap is not exhausted.
    pub price: f64,
}

/// Bids with the same set of cheapest actions that want the same one of them.
#[derive(Debug, Clone)]
struct Group {
    /// The cheapest actions, one bit per capped route and one for the best action without a cap.
    mask: u16,
    wanted: u8,
    bids: u64,
    /// The number of bids assigned to each action.
    quotas: [u64; MAX_CAPS + 1],
    /// Actions in the order of keys: each gets the bids with keys below its bound, and a number of those equal to it.
    bounds: Vec<(usize, u64, u64)>,
    /// The action of the bids with the largest keys.
    last: usize,
}

impl CapRule {
    /// Finds the rule for a table of `rows` rows. `scan` visits all bids of the table, in the same order each time; it is called
    /// several times.
    ///
    /// # Errors
    /// If `scan` fails.
    pub fn find<E>(
        caps: &Caps,
        rows: u64,
        mut scan: impl FnMut(&mut dyn FnMut(&Bid)) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut scan = |see: &mut dyn FnMut(&Bid, u64)| scan(&mut |bid| see(bid, 1));
        let mut rule = Self { rows, ..Self::with_prices(caps, caps.most(rows), &mut scan)? };
        rule.set_bounds(&mut scan)?;
        Ok(rule)
    }

    /// The prices of the caps and the quotas of groups of bids. `scan` visits bids with the number of queries that each stands for.
    pub(super) fn with_prices<E>(caps: &Caps, most: Vec<u64>, scan: &mut impl Scan<E>) -> Result<Self, E> {
        let places = caps.count();
        let (mut wanted, mut largest) = (vec![0; places], 0.0_f64);
        scan(&mut |bid, count| {
            wanted[usize::from(bid.wanted)] += count;
            largest = bid.costs[..=places].iter().copied().fold(largest, f64::max);
        })?;
        let mut rule = Self {
            caps: caps.clone(),
            prices: vec![0.0; places],
            tie: TIE * largest,
            groups: Vec::new(),
            granted: vec![0; places],
            wanted,
            rows: 0,
            most,
        };
        // If no cap is exceeded, every bid gets what it wants.
        if rule.is_binding() {
            rule.raise_prices(scan)?;
            rule.form_groups(scan)?;
            rule.set_quotas();
        }
        Ok(rule)
    }

    /// The part of the queries of a bid that gets each capped route, by its place, or the best action without a cap.
    pub(super) fn parts(&self, bid: &Bid) -> Vec<(usize, f64)> {
        let mask = self.mask(bid);
        match self.groups.iter().find(|group| group.mask == mask && group.wanted == bid.wanted) {
            None => vec![(bid.wanted.into(), 1.0)],
            // Bids that stand for no query take part in no quota.
            Some(group) if group.bids == 0 => {
                let first = group.actions().next().unwrap_or(self.most.len());
                let wanted = usize::from(group.wanted);
                vec![(if mask >> wanted & 1 == 1 { wanted } else { first }, 1.0)]
            }
            Some(group) => {
                let part = |place: usize| (place, group.quotas[place] as f64 / group.bids as f64);
                (0..=self.most.len()).map(part).filter(|(_, part)| *part > 0.0).collect()
            }
        }
    }

    /// The caps that the rule enforces.
    #[must_use]
    pub fn caps(&self) -> &Caps {
        &self.caps
    }

    /// The largest number of queries of each capped route.
    pub(super) fn most(&self) -> &[u64] {
        &self.most
    }

    /// Whether more queries want a route than its cap allows.
    pub(super) fn is_binding(&self) -> bool {
        self.wanted.iter().zip(&self.most).any(|(wanted, most)| wanted > most)
    }

    /// The number of rows of the table.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// The use of each cap, in the order of [`Caps::names`].
    #[must_use]
    pub fn uses(&self) -> Vec<CapUse> {
        let one = |place: usize| CapUse {
            most: self.most[place],
            wanted: self.wanted[place],
            granted: self.granted[place],
            price: self.prices[place],
        };
        (0..self.most.len()).map(one).collect()
    }

    /// Whether no route got more queries than its cap; false only if bids differ from those that the rule was found from.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.granted.iter().zip(&self.most).all(|(granted, most)| granted <= most)
    }

    /// Assigns a bid to a capped route, by its place; the number of caps stands for the best action without a cap. Call it once for each
    /// bid that the rule was found from.
    pub fn assign(&mut self, bid: &Bid) -> usize {
        let (mask, places, suffices) = (self.mask(bid), self.most.len(), self.groups.is_empty());
        let group = self.groups.iter_mut().find(|group| group.mask == mask && group.wanted == bid.wanted);
        let given = match group {
            None if suffices => usize::from(bid.wanted),
            // Not among the bids that the rule was found from.
            None => places,
            Some(group) => group.assign(bid.key),
        };
        if let Some(granted) = self.granted.get_mut(given) {
            *granted += 1;
        }
        given
    }

    /// The cost of an action for a bid, including the price of the cap.
    fn priced(&self, bid: &Bid, place: usize) -> f64 {
        bid.costs[place] + self.prices.get(place).unwrap_or(&0.0)
    }

    /// The cheapest actions of a bid, as a bit set.
    fn mask(&self, bid: &Bid) -> u16 {
        let places = self.most.len();
        let least = (0..=places).map(|place| self.priced(bid, place)).fold(f64::INFINITY, f64::min);
        let cheapest = (0..=places).filter(|&place| self.priced(bid, place) <= least + self.tie);
        cheapest.fold(0, |mask, place| mask | 1 << place)
    }

    /// The saving of a bid by a set of routes over all other actions.
    fn saving(&self, bid: &Bid, set: u16) -> f64 {
        let (mut inside, mut outside) = (f64::INFINITY, f64::INFINITY);
        for place in 0..=self.most.len() {
            let least = if set >> place & 1 == 1 { &mut inside } else { &mut outside };
            *least = least.min(self.priced(bid, place));
        }
        outside - inside
    }

    /// The total cap of a set of routes.
    fn room(&self, set: u16) -> u64 {
        let inside = self.most.iter().enumerate().filter(|(place, _)| set >> place & 1 == 1);
        inside.fold(0, |sum, (_, most)| sum.saturating_add(*most))
    }

    fn raise_prices<E>(&mut self, scan: &mut impl Scan<E>) -> Result<(), E> {
        let mut sets: Vec<u16> = (1..1 << self.most.len()).collect();
        sets.sort_by_key(|set| (set.count_ones(), *set));
        for _ in 0..MAX_RAISES {
            let mut asking = vec![0_u64; sets.len()];
            scan(&mut |bid, count| {
                for (asking, &set) in asking.iter_mut().zip(&sets) {
                    *asking += if self.saving(bid, set) > self.tie { count } else { 0 };
                }
            })?;
            let full = sets.iter().zip(&asking).find(|(set, asking)| **asking > self.room(**set));
            let Some((&set, _)) = full else { break };
            let place = self.room(set);
            let rise = select_largest(place, |see| {
                scan(&mut |bid, count| {
                    let saving = self.saving(bid, set);
                    if saving > self.tie {
                        see(saving.to_bits(), count);
                    }
                })
            })?;
            let rise = f64::from_bits(rise);
            let inside = self.prices.iter_mut().enumerate().filter(|(place, _)| set >> place & 1 == 1);
            inside.for_each(|(_, price)| *price += rise);
        }
        Ok(())
    }

    fn form_groups<E>(&mut self, scan: &mut impl Scan<E>) -> Result<(), E> {
        let mut found: BTreeMap<(u16, u8), u64> = BTreeMap::new();
        scan(&mut |bid, count| *found.entry((self.mask(bid), bid.wanted)).or_default() += count)?;
        let group = |((mask, wanted), bids)| Group {
            mask,
            wanted,
            bids,
            quotas: [0; MAX_CAPS + 1],
            bounds: Vec::new(),
            last: self.most.len(),
        };
        self.groups = found.into_iter().map(group).collect();
        Ok(())
    }

    /// Divides the routes among the groups: first to the groups that want them, then to the rest, moving other groups to actions of equal
    /// cost where that makes room.
    fn set_quotas(&mut self) {
        let places = self.most.len();
        let mut spare: Vec<u64> = self.most.clone();
        spare.push(u64::MAX);
        for group in &mut self.groups {
            let wanted = usize::from(group.wanted);
            if group.mask >> wanted & 1 == 1 {
                group.quotas[wanted] = group.bids.min(spare[wanted]);
                spare[wanted] -= group.quotas[wanted];
            }
        }
        for at in 0..self.groups.len() {
            while self.groups[at].left() > 0 && self.make_room(at, &mut spare) {}
            // If prices did not converge, the cap takes precedence.
            let group = &mut self.groups[at];
            group.quotas[places] += group.left();
        }
    }

    /// Assigns some bids of a group, moving other bids along a chain of actions if needed; false if there is no room.
    fn make_room(&mut self, at: usize, spare: &mut [u64]) -> bool {
        let places = self.most.len();
        // For each action reached, the group that moves there and the action it leaves.
        let mut from: Vec<Option<(usize, Option<usize>)>> = vec![None; places + 1];
        let mut queue: Vec<usize> = Vec::new();
        for action in self.groups[at].actions() {
            from[action] = Some((at, None));
            queue.push(action);
        }
        let mut next = 0;
        while let Some(&action) = queue.get(next) {
            next += 1;
            if spare[action] > 0 {
                self.push_along(action, &from, spare);
                return true;
            }
            for (other, group) in self.groups.iter().enumerate().filter(|(_, group)| group.quotas[action] > 0) {
                for elsewhere in group.actions() {
                    if from[elsewhere].is_none() {
                        from[elsewhere] = Some((other, Some(action)));
                        queue.push(elsewhere);
                    }
                }
            }
        }
        false
    }

    /// Moves as many bids as possible along the chain that ends in an action with room.
    fn push_along(&mut self, end: usize, from: &[Option<(usize, Option<usize>)>], spare: &mut [u64]) {
        let (mut amount, mut action) = (spare[end], end);
        let mut chain = Vec::new();
        while let Some((group, before)) = from[action] {
            let there = before.map_or_else(|| self.groups[group].left(), |before| self.groups[group].quotas[before]);
            amount = amount.min(there);
            chain.push((group, before, action));
            match before {
                Some(before) => action = before,
                None => break,
            }
        }
        spare[end] -= amount;
        for (group, before, action) in chain {
            self.groups[group].quotas[action] += amount;
            if let Some(before) = before {
                self.groups[group].quotas[before] -= amount;
            }
        }
    }

    /// Finds the keys at which a group is divided between actions.
    fn set_bounds<E>(&mut self, scan: &mut impl Scan<E>) -> Result<(), E> {
        for at in 0..self.groups.len() {
            let group = &self.groups[at];
            let wanted = usize::from(group.wanted);
            let mut actions: Vec<usize> = (0..=self.most.len()).filter(|&place| group.quotas[place] > 0).collect();
            actions.sort_by_key(|&place| place != wanted);
            let Some((&last, before)) = actions.split_last() else { continue };
            let (mut bounds, mut given) = (Vec::new(), 0);
            let (mask, wanted) = (group.mask, group.wanted);
            for &action in before {
                let quota = self.groups[at].quotas[action];
                let (key, below) = select_smallest(given + quota - 1, |see| {
                    scan(&mut |bid, count| {
                        if bid.wanted == wanted && self.mask(bid) == mask {
                            see(bid.key, count);
                        }
                    })
                })?;
                // The number of bids with exactly this key that belong to this action.
                bounds.push((action, key, given + quota - below.max(given)));
                given += quota;
            }
            (self.groups[at].bounds, self.groups[at].last) = (bounds, last);
        }
        Ok(())
    }
}

impl Group {
    /// The number of unassigned bids.
    fn left(&self) -> u64 {
        self.bids - self.quotas.iter().sum::<u64>()
    }

    /// The cheapest actions.
    fn actions(&self) -> impl Iterator<Item = usize> {
        let mask = self.mask;
        (0..=MAX_CAPS).filter(move |place| mask >> place & 1 == 1)
    }

    fn assign(&mut self, key: u64) -> usize {
        for (action, bound, equal) in &mut self.bounds {
            if key < *bound {
                return *action;
            }
            if key == *bound && *equal > 0 {
                *equal -= 1;
                return *action;
            }
        }
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::CapSize;

    /// Rows of cells without queries stand for none, and still have an action.
    #[test]
    fn bids_that_stand_for_no_query_have_an_action() {
        let caps = Caps { capped: vec![(1, CapSize::Queries(10))] };
        let bid = |saving: f64| Bid { costs: [0.1, 0.1 + saving, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], ..Bid::default() };
        // The price of the route is the saving of the second bid, half of whose queries get it.
        let (large, marginal, small) = (bid(0.5), bid(0.2), bid(0.1));
        let mut scan = |see: &mut dyn FnMut(&Bid, u64)| {
            see(&large, 0);
            see(&marginal, 20);
            see(&small, 0);
            Ok::<(), std::convert::Infallible>(())
        };
        let Ok(rule) = CapRule::with_prices(&caps, caps.most(0), &mut scan);
        assert_eq!(rule.parts(&large), [(0, 1.0)]);
        assert_eq!(rule.parts(&marginal), [(0, 0.5), (1, 0.5)]);
        assert_eq!(rule.parts(&small), [(1, 1.0)]);
    }
}
