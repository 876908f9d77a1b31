//! The choice of the cheapest action from costs or bounds on costs.

use crate::oracle::{Oracle, Panel};
use crate::task::{Route, Task, Ties};

/// The largest number of actions of a task for a forest: the costs of each query are part of its decision.
pub(super) const MAX_ACTIONS: usize = 16;

/// Costs closer than this, relative to themselves or to the rounding of their loss, are equal.
pub(super) const TIE: f64 = 1e-12;

/// The code of no action: the labels do not determine one.
pub(super) const UNDETERMINED: u8 = u8::MAX;

/// The action whose cost is certainly the least, and its margin; ties are broken by the tie rule.
///
/// With known costs this is the argmin. With bounds, an action must cost no more than every other action for every value within the
/// bounds. Two costs that increase with the same unknown irreducible loss are compared at both ends of it, as are two costs of which one
/// is known, such as predicting or abstaining. For other pairs the upper bound of one is compared with the lower bound of the other;
/// in addition a panel never loses less than an oracle that knows the truth.
#[inline]
pub(super) fn choose(low: &[f64], high: &[f64], task: &Task) -> (u8, f64) {
    choose_among(low, high, task, |_| true)
}

/// The same among the actions that are allowed.
#[inline]
pub(super) fn choose_among(low: &[f64], high: &[f64], task: &Task, allows: impl Fn(usize) -> bool) -> (u8, f64) {
    let n = low.len();
    let order = |i: usize| match task.chosen_ties() {
        Ties::Frugal => i,
        // Abstain, then the routes in order, then predict.
        Ties::Paper => match (i, task.abstain_price().is_some()) {
            (0, true) => n - 1,
            (i, true) if i < n - 1 => i,
            (i, false) if i < n - 1 => i + 1,
            _ => 0,
        },
    };
    for action in (0..n).map(order).filter(|&action| allows(action)) {
        let gap = |other: usize| {
            let tie = TIE * task.loss().rounding().max(high[action]).max(high[other]);
            (least_gap([low, high], task, action, other), tie)
        };
        let gaps = (0..n).filter(|&other| other != action && allows(other)).map(gap);
        if gaps.clone().all(|(gap, tie)| gap >= -tie) {
            return (action as u8, gaps.map(|(gap, _)| gap).fold(f64::INFINITY, f64::min).max(0.0));
        }
    }
    (UNDETERMINED, 0.0)
}

/// The least by which another action can cost more than an action, for every value within the bounds.
#[inline]
pub(super) fn least_gap([low, high]: [&[f64]; 2], task: &Task, action: usize, other: usize) -> f64 {
    let route = |action: usize| task.routes().get(action.wrapping_sub(1));
    let known = |action: usize| low[action] == high[action];
    let alike = |action: usize| match route(action).map(Route::oracle) {
        Some(oracle) => Panel::from_oracle(oracle).is_none_or(|panel| panel.depends_on_agreement_only(task.loss())),
        None => true,
    };
    if known(action) || known(other) || alike(action) && alike(other) {
        return (low[other] - low[action]).min(high[other] - high[action]);
    }
    let apart = low[other] - high[action];
    match (route(action), route(other)) {
        (Some(one), Some(two)) if *one.oracle() == Oracle::Bayes => apart.max(two.price() - one.price()),
        _ => apart,
    }
}

/// The cheapest action whose cost is known; the cost of predicting always is.
pub(super) fn cheapest_known(low: &[f64], high: &[f64]) -> usize {
    let known = (1..low.len()).filter(|&action| low[action] == high[action]);
    known.fold(0, |best, action| if low[action] < low[best] { action } else { best })
}
