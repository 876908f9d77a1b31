//! Which bids a cap grants: prices for capped routes, and quotas where they leave a tie.
//!
//! Giving each bid i one action at cost c_ia, no more than N_r of them the capped route r, is a transport problem. Its
//! dual has one price λ_r ≥ 0 per capped route: each bid takes what is cheapest at c_ir + λ_r, and the prices are right when no
//! route is asked for by more than N_r and every route with a price is full. They are found from below: while a set S of routes is
//! strictly preferred by more bids than its caps add up to, the prices of a smallest such set rise together, to the
//! (N_S + 1)-th largest of what S saves a bid. Raising a smallest set never overshoots, because routes are substitutes.
//!
//! Bids are never held in memory: they are scanned as often as needed, and thresholds are found by counting digits.

use std::collections::BTreeMap;

use super::{Bid, Caps, MAX_CAPS, TIE};

/// Prices are raised no more often than this; beyond it quotas keep the caps, at a cost that may not be the least.
const MAX_RAISES: usize = 500;

/// Numbers are selected by digits of so many bits.
const DIGIT: u32 = 16;

/// As few numbers as this are collected and sorted instead.
const FEW: u64 = 1 << 18;

/// What is done with the bids of a table, so that its caps hold.
#[derive(Debug, Clone)]
pub struct CapRule {
    caps: Caps,
    most: Vec<u64>,
    prices: Vec<f64>,
    tie: f64,
    /// Bids that find the same actions cheapest and want the same one.
    groups: Vec<Group>,
    wanted: Vec<u64>,
    granted: Vec<u64>,
}

/// What a cap came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CapUse {
    /// How many queries the route may get.
    pub most: u64,
    /// How many the policy sends there without a cap.
    pub wanted: u64,
    /// How many it got so far.
    pub granted: u64,
    /// What a further query would save; 0 if the cap is not used up.
    pub price: f64,
}

/// Bids that find the same actions cheapest, and want the same one of them.
#[derive(Debug, Clone)]
struct Group {
    /// The cheapest actions, one bit per capped route and one for the best action without a cap.
    mask: u16,
    wanted: u8,
    bids: u64,
    /// How many bids each action gets.
    quotas: [u64; MAX_CAPS + 1],
    /// Actions in the order of keys: each gets the keys below its bound, and so many that are equal to it.
    bounds: Vec<(usize, u64, u64)>,
    /// The action of the largest keys.
    last: usize,
}

impl CapRule {
    /// Finds the rule for a table of so many rows. `scan` shows all bids of the table, in any order but the same each time; it is
    /// called several times.
    ///
    /// # Errors
    /// What `scan` fails with.
    pub fn find<E>(
        caps: &Caps,
        rows: u64,
        mut scan: impl FnMut(&mut dyn FnMut(&Bid)) -> Result<(), E>,
    ) -> Result<Self, E> {
        let most = caps.most(rows);
        let places = caps.count();
        let (mut wanted, mut largest) = (vec![0; places], 0.0_f64);
        scan(&mut |bid| {
            wanted[usize::from(bid.wanted)] += 1;
            largest = bid.costs[..=places].iter().copied().fold(largest, f64::max);
        })?;
        let mut rule = Self {
            caps: caps.clone(),
            prices: vec![0.0; places],
            tie: TIE * largest,
            groups: Vec::new(),
            granted: vec![0; places],
            wanted,
            most,
        };
        // Where every cap suffices everybody gets what they want.
        if rule.wanted.iter().zip(&rule.most).any(|(wanted, most)| wanted > most) {
            rule.raise_prices(&mut scan)?;
            rule.form_groups(&mut scan)?;
            rule.set_quotas();
            rule.set_bounds(&mut scan)?;
        }
        Ok(rule)
    }

    /// The caps it keeps.
    #[must_use]
    pub fn caps(&self) -> &Caps {
        &self.caps
    }

    /// What each cap came to, in the order of [`Caps::names`].
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

    /// Whether no route got more queries than its cap: false only if other bids were shown than the rule was made of.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.granted.iter().zip(&self.most).all(|(granted, most)| granted <= most)
    }

    /// The place of the capped route that a bid gets; the number of caps stands for the best action without one. Each bid the rule
    /// was made of is to be given its action once.
    pub fn give(&mut self, bid: &Bid) -> usize {
        let (mask, places, suffices) = (self.mask(bid), self.most.len(), self.groups.is_empty());
        let group = self.groups.iter_mut().find(|group| group.mask == mask && group.wanted == bid.wanted);
        let given = match group {
            None if suffices => usize::from(bid.wanted),
            // Not among the bids the rule was made of.
            None => places,
            Some(group) => group.give(bid.key),
        };
        if let Some(granted) = self.granted.get_mut(given) {
            *granted += 1;
        }
        given
    }

    /// Cost of a bid at an action, prices included.
    fn priced(&self, bid: &Bid, place: usize) -> f64 {
        bid.costs[place] + self.prices.get(place).unwrap_or(&0.0)
    }

    /// Which actions are cheapest for a bid.
    fn mask(&self, bid: &Bid) -> u16 {
        let places = self.most.len();
        let least = (0..=places).map(|place| self.priced(bid, place)).fold(f64::INFINITY, f64::min);
        let cheapest = (0..=places).filter(|&place| self.priced(bid, place) <= least + self.tie);
        cheapest.fold(0, |mask, place| mask | 1 << place)
    }

    /// What a set of routes saves a bid against all other actions.
    fn saving(&self, bid: &Bid, set: u16) -> f64 {
        let (mut inside, mut outside) = (f64::INFINITY, f64::INFINITY);
        for place in 0..=self.most.len() {
            let least = if set >> place & 1 == 1 { &mut inside } else { &mut outside };
            *least = least.min(self.priced(bid, place));
        }
        outside - inside
    }

    /// How many bids a set of routes may get.
    fn room(&self, set: u16) -> u64 {
        let inside = self.most.iter().enumerate().filter(|(place, _)| set >> place & 1 == 1);
        inside.fold(0, |sum, (_, most)| sum.saturating_add(*most))
    }

    fn raise_prices<E>(&mut self, scan: &mut impl FnMut(&mut dyn FnMut(&Bid)) -> Result<(), E>) -> Result<(), E> {
        let mut sets: Vec<u16> = (1..1 << self.most.len()).collect();
        sets.sort_by_key(|set| (set.count_ones(), *set));
        for _ in 0..MAX_RAISES {
            let mut asking = vec![0_u64; sets.len()];
            scan(&mut |bid| {
                for (count, &set) in asking.iter_mut().zip(&sets) {
                    *count += u64::from(self.saving(bid, set) > self.tie);
                }
            })?;
            let full = sets.iter().zip(&asking).find(|(set, asking)| **asking > self.room(**set));
            let Some((&set, _)) = full else { break };
            let place = self.room(set);
            let rise = select_largest(place, |see| {
                scan(&mut |bid| {
                    let saving = self.saving(bid, set);
                    if saving > self.tie {
                        see(saving.to_bits());
                    }
                })
            })?;
            let rise = f64::from_bits(rise);
            let inside = self.prices.iter_mut().enumerate().filter(|(place, _)| set >> place & 1 == 1);
            inside.for_each(|(_, price)| *price += rise);
        }
        Ok(())
    }

    fn form_groups<E>(&mut self, scan: &mut impl FnMut(&mut dyn FnMut(&Bid)) -> Result<(), E>) -> Result<(), E> {
        let mut found: BTreeMap<(u16, u8), u64> = BTreeMap::new();
        scan(&mut |bid| *found.entry((self.mask(bid), bid.wanted)).or_default() += 1)?;
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

    /// Shares the routes out among the groups: first to those who want them, then to whoever is left, making room where a group
    /// can go elsewhere at the same price.
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
            // Prices that had not settled: the cap comes first.
            let group = &mut self.groups[at];
            group.quotas[places] += group.left();
        }
    }

    /// Places some bids of a group, moving others along a chain of actions if need be; false if there is no room.
    fn make_room(&mut self, at: usize, spare: &mut [u64]) -> bool {
        let places = self.most.len();
        // For each action reached, the group and action that are moved to make room there.
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

    /// Moves as many bids as fit along the chain that ends in an action with room.
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

    /// Finds the keys at which a group that is shared between actions is divided.
    fn set_bounds<E>(&mut self, scan: &mut impl FnMut(&mut dyn FnMut(&Bid)) -> Result<(), E>) -> Result<(), E> {
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
                    scan(&mut |bid| {
                        if bid.wanted == wanted && self.mask(bid) == mask {
                            see(bid.key);
                        }
                    })
                })?;
                // Of the bids with this very key, those that smaller keys and the actions before leave over.
                bounds.push((action, key, given + quota - below.max(given)));
                given += quota;
            }
            (self.groups[at].bounds, self.groups[at].last) = (bounds, last);
        }
        Ok(())
    }
}

impl Group {
    /// How many bids have no action yet.
    fn left(&self) -> u64 {
        self.bids - self.quotas.iter().sum::<u64>()
    }

    /// The cheapest actions.
    fn actions(&self) -> impl Iterator<Item = usize> {
        let mask = self.mask;
        (0..=MAX_CAPS).filter(move |place| mask >> place & 1 == 1)
    }

    fn give(&mut self, key: u64) -> usize {
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

/// The number with so many larger ones, counted with repetition, of those that `scan` shows; 0 if there are no more.
fn select_largest<E>(place: u64, mut scan: impl FnMut(&mut dyn FnMut(u64)) -> Result<(), E>) -> Result<u64, E> {
    Ok(!select_smallest(place, |see| scan(&mut |number| see(!number)))?.0)
}

/// The number with so many smaller or equal ones before it, and how many are smaller; the largest number if there are no more.
///
/// Digits are settled from the first: each scan counts the numbers that agree in the digits settled by their next one.
fn select_smallest<E>(place: u64, mut scan: impl FnMut(&mut dyn FnMut(u64)) -> Result<(), E>) -> Result<(u64, u64), E> {
    let (mut settled, mut prefix, mut below) = (0, 0_u64, 0);
    while settled < u64::BITS {
        let rest = u64::BITS - settled;
        let agrees = |number: u64| settled == 0 || number >> rest == prefix >> rest;
        let mut counts = vec![0_u64; 1 << DIGIT];
        scan(&mut |number| {
            if agrees(number) {
                counts[(number << settled >> (u64::BITS - DIGIT)) as usize] += 1;
            }
        })?;
        let digit = counts.iter().position(|&count| {
            let here = below + count > place;
            below += if here { 0 } else { count };
            here
        });
        let Some(digit) = digit else { return Ok((u64::MAX, below)) };
        prefix |= (digit as u64) << (rest - DIGIT);
        settled += DIGIT;
        if counts[digit] <= FEW && settled < u64::BITS {
            let mut few = Vec::with_capacity(counts[digit] as usize);
            scan(&mut |number| {
                if number >> (u64::BITS - settled) == prefix >> (u64::BITS - settled) {
                    few.push(number);
                }
            })?;
            few.sort_unstable();
            let found = few.get((place - below) as usize).copied().unwrap_or(u64::MAX);
            return Ok((found, below + few.partition_point(|&number| number < found) as u64));
        }
    }
    Ok((prefix, below))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::mix::nth;

    #[test]
    fn selection_is_exact_with_repetitions() {
        for (count, spread) in [(1, 1_u64), (10, 3), (1000, 100), (1000, u64::MAX)] {
            let numbers: Vec<u64> = (0..count).map(|place| nth(7, place) % spread).collect();
            let mut sorted = numbers.clone();
            sorted.sort_unstable();
            for place in [0, 1, 4, 500, 999].into_iter().filter(|place| *place < count) {
                let scan = |see: &mut dyn FnMut(u64)| {
                    numbers.iter().for_each(|&number| see(number));
                    Ok::<(), ()>(())
                };
                let (found, below) = select_smallest(place, scan).unwrap();
                assert_eq!(found, sorted[place as usize]);
                assert_eq!(below, sorted.partition_point(|&number| number < found) as u64);
            }
        }
    }

    #[test]
    fn beyond_the_last_number_there_is_none() {
        let scan = |see: &mut dyn FnMut(u64)| {
            [3.0_f64, 1.0].iter().for_each(|number| see(number.to_bits()));
            Ok::<(), ()>(())
        };
        assert_eq!(f64::from_bits(select_largest(0, scan).unwrap()), 3.0);
        assert_eq!(f64::from_bits(select_largest(1, scan).unwrap()), 1.0);
        assert_eq!(f64::from_bits(select_largest(2, scan).unwrap()), 0.0);
    }
}
