//! One query's decision: what to do with it, and why.

use std::fmt;

use super::Policy;
use super::choose::{MAX_ACTIONS, UNDETERMINED};
use crate::estimate::Decomposition;
use crate::partition::CellId;
use crate::router::Support;

/// Marks the verdict of a query at the margin of a limit whose random draw fell against routing.
pub(super) const KEPT: u32 = 1 << 31;

/// What to do with a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action<'a> {
    /// Serve the cheap model's prediction.
    Predict,
    /// Ask the oracle of this name.
    Route(&'a str),
    /// Decline to answer.
    Abstain,
    /// The labels do not decide: one label per item bounds the costs, and the bounds overlap.
    Undetermined,
}

/// Where the rows behind a decision come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Level {
    /// The query's own cell.
    Cell,
    /// All rows of the same confidence, whatever the class: the cell is empty.
    Confidence,
    /// All rows: nothing nearer is there.
    All,
}

/// One query's decision and the reasons for it.
#[derive(Debug, Clone, Copy)]
pub struct Decision<'p> {
    pub(super) policy: &'p Policy,
    pub(super) cell: CellId,
    pub(super) source: u32,
    pub(super) kept: bool,
    /// The query's own costs, if the router has a forest.
    pub(super) own: Option<QueryCosts>,
    /// The action it gets because its own cannot be taken: a cap is used up, or a route is not available.
    pub(super) moved: Option<u8>,
}

/// The costs of a query with its own losses.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueryCosts {
    pub(super) total: f64,
    pub(super) irreducible: [f64; 2],
    pub(super) low: [f64; MAX_ACTIONS],
    pub(super) high: [f64; MAX_ACTIONS],
    pub(super) code: u8,
    /// The action if a random draw falls against routing; `code` unless the query is at the margin of a limit.
    pub(super) kept: u8,
    pub(super) margin: f64,
}

/// The compact form of a decision in a batch; `Policy::decision` unfolds it.
///
/// A cell with rows has its own number. Numbers beyond the cells stand for pairs of an empty cell and the source it falls back to, in the
/// order of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Verdict(pub(super) u32);

impl Verdict {
    /// The number: small, and the same for queries that are decided alike by the same rows.
    pub(crate) fn code(self) -> u32 {
        self.0
    }
}

impl<'p> Decision<'p> {
    /// What to do.
    #[inline]
    #[must_use]
    pub fn action(&self) -> Action<'p> {
        self.policy.action(self.raw_code())
    }

    #[inline]
    pub(super) fn raw_code(&self) -> u8 {
        if let Some(code) = self.moved {
            return code;
        }
        match &self.own {
            Some(own) if self.kept => own.kept,
            Some(own) => own.code,
            None if self.kept => self.policy.kept[self.source as usize],
            None => self.policy.codes[self.source as usize],
        }
    }

    /// The number of the action among [`Task::action_names`](crate::Task::action_names); `None` if undetermined.
    #[must_use]
    pub fn code(&self) -> Option<usize> {
        Some(self.raw_code()).filter(|&code| code != UNDETERMINED).map(usize::from)
    }

    /// At the margin of a limit, the part of such queries that is routed. A random draw decides, the same for the same query.
    #[must_use]
    pub fn marginal_share(&self) -> Option<f64> {
        match &self.own {
            Some(own) => self.policy.cutoff.filter(|_| own.code != own.kept).map(|cutoff| cutoff.marginal),
            None => self.policy.marginal_share(self.source),
        }
    }

    /// At the margin of a limit, the action on queries whose random draw falls against routing.
    #[must_use]
    pub fn otherwise(&self) -> Option<Action<'p>> {
        let kept = || self.own.as_ref().map_or_else(|| self.policy.kept[self.source as usize], |own| own.kept);
        self.marginal_share().map(|_| self.policy.action(kept()))
    }

    /// The costs of predict, the routes in the task's order, and abstain if allowed. With one label per item, the
    /// lower bounds.
    #[inline]
    #[must_use]
    pub fn costs(&self) -> &[f64] {
        match &self.own {
            None => self.row(&self.policy.low),
            Some(own) => &own.low[..self.policy.actions()],
        }
    }

    /// The upper bounds of the costs: equal to [`Decision::costs`] unless items carry one label each.
    #[must_use]
    pub fn costs_high(&self) -> &[f64] {
        match &self.own {
            None => self.row(&self.policy.high),
            Some(own) => &own.high[..self.policy.actions()],
        }
    }

    /// The costs in the order of [`Decision::costs`], NaN where items carry one label each and only bounds are known.
    pub fn known_costs(&self) -> impl Iterator<Item = f64> {
        self.costs().iter().zip(self.costs_high()).map(|(&low, &high)| if low == high { low } else { f64::NAN })
    }

    #[inline]
    fn row(&self, costs: &'p [f64]) -> &'p [f64] {
        let n = costs.len() / self.policy.codes.len();
        &costs[self.source as usize * n..][..n]
    }

    /// The cost of the runner-up minus that of the action; infinite if there is no other action, negative if a cap denied the best one.
    #[must_use]
    pub fn margin(&self) -> f64 {
        if self.moved.is_some() {
            // Nothing was denied to a query without a determined action.
            let denied = Self { moved: None, ..*self }.code();
            return denied.map_or(0.0, |_| -self.cost_of_cap());
        }
        self.own.as_ref().map_or_else(|| self.policy.margins[self.source as usize], |own| own.margin)
    }

    /// The number of trees over which the costs were averaged; `None` if the router has no forest.
    #[must_use]
    pub fn trees(&self) -> Option<usize> {
        self.own?;
        self.policy.estimates.leaves.as_ref().map(|leaves| leaves.forest.trees().count())
    }

    /// The estimates of the query's source, from which its costs follow unless the router has a forest.
    #[must_use]
    pub fn estimate(&self) -> &'p Decomposition {
        self.policy.estimate(self.source)
    }

    /// Lower and upper end of the irreducible loss; equal unless items carry one label each.
    #[must_use]
    pub fn irreducible_bounds(&self) -> [f64; 2] {
        match &self.own {
            None => [self.estimate().irreducible_low, self.estimate().irreducible_high],
            Some(own) => own.irreducible,
        }
    }

    /// Whether the split is known, not only bounded.
    #[must_use]
    pub fn is_known(&self) -> bool {
        let [low, high] = self.irreducible_bounds();
        low == high
    }

    /// The irreducible loss, if known.
    #[must_use]
    pub fn irreducible(&self) -> Option<f64> {
        let [low, high] = self.irreducible_bounds();
        (low == high).then_some(low)
    }

    /// The reducible loss, if known; an estimate below zero is shown as zero.
    #[must_use]
    pub fn reducible(&self) -> Option<f64> {
        self.irreducible().map(|irreducible| (self.total() - irreducible).max(0.0))
    }

    /// The total loss of predicting.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.own.as_ref().map_or_else(|| self.estimate().total, |own| own.total)
    }

    /// The query's cell.
    #[must_use]
    pub fn cell(&self) -> CellId {
        self.cell
    }

    /// The number of calibration rows from which the costs were estimated; with a forest, the number in the cell.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.estimate().rows
    }

    /// The support of the query's own cell.
    #[must_use]
    pub fn support(&self) -> Support {
        self.policy.support(self.cell)
    }

    /// Which rows the costs were estimated from.
    #[must_use]
    pub fn level(&self) -> Level {
        let cells = self.policy.cells.count();
        match self.source as usize {
            source if source < cells => Level::Cell,
            source if source < self.policy.codes.len() - 1 => Level::Confidence,
            _ => Level::All,
        }
    }

    /// The prediction served instead of the query's own, if the router is recalibrated.
    #[must_use]
    pub fn served(&self) -> Option<&'p [f64]> {
        self.policy.served(self.source)
    }
}

impl Level {
    /// `cell`, `confidence` or `all`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cell => "cell",
            Self::Confidence => "confidence",
            Self::All => "all",
        }
    }
}

impl fmt::Display for Action<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Predict => f.write_str("predict"),
            Self::Route(name) => write!(f, "route:{name}"),
            Self::Abstain => f.write_str("abstain"),
            Self::Undetermined => f.write_str("undetermined"),
        }
    }
}
