//! Decisions while some routes of a task cannot be taken, because an oracle is down or its cap is used up.

use super::choose::{MAX_ACTIONS, UNDETERMINED, cheapest_known, choose_among};
use super::decisions::NOT_MOVED;
use super::{Decision, Decisions, Policy, Rooms};
use crate::error::{Result, TaskError};
use crate::task::{MAX_ROUTES, Task};

/// Bits per word of the set of routes.
const WORD: usize = u64::BITS as usize;

/// The routes of a task that can be taken now: all of them, unless some were taken out.
///
/// ```
/// use pointsman::policy::AvailableRoutes;
/// use pointsman::{Action, Loss, Oracle, Partition, Router, Table, Task};
/// let table = Table::new(["no", "yes"], vec![0.9, 0.1, 0.8, 0.2, 0.4, 0.6])?.with_votes(vec![5, 0, 2, 3, 0, 5])?;
/// let router = Router::calibrate(&table, &Partition::top_class(1))?;
/// let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05)?.abstain(0.50)?;
/// let policy = router.policy(&task)?;
/// let down = AvailableRoutes::all().without(&task, "expert")?;
/// let decision = policy.decide(&[0.85, 0.15])?.among(&down);
/// assert_ne!(decision.action(), Action::Route("expert"));
/// assert_eq!(decision.wanted(), Some(Action::Route("expert")));
/// # Ok::<(), pointsman::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AvailableRoutes {
    /// One bit per route of the task, set if the route cannot be taken.
    missing: [u64; MAX_ROUTES.div_ceil(WORD)],
}

impl AvailableRoutes {
    /// All routes.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// The same routes without the one of this name.
    ///
    /// # Errors
    /// If the task has no such route.
    pub fn without(mut self, task: &Task, name: &str) -> Result<Self> {
        let Some(route) = task.routes().iter().position(|route| route.name() == name) else {
            let known = task.routes().iter().map(|route| route.name().to_owned()).collect();
            return Err(TaskError::UnknownName { what: "route", name: name.to_owned(), known }.into());
        };
        self.missing[route / WORD] |= 1 << (route % WORD);
        Ok(self)
    }

    /// Whether no route was taken out.
    #[inline]
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.missing.iter().all(|word| *word == 0)
    }

    /// Whether the task's route at this place can be taken.
    #[must_use]
    pub fn contains(&self, route: usize) -> bool {
        self.missing.get(route / WORD).is_none_or(|word| word & (1 << (route % WORD)) == 0)
    }

    /// Whether an action can be taken, by its place among [`Task::action_names`]. Predicting and abstaining always can.
    pub(super) fn allows(&self, action: usize) -> bool {
        action == 0 || self.contains(action - 1)
    }
}

impl Decision<'_> {
    /// The decision if only these routes can be taken. It changes only if the query's action is a route that is missing, or if the labels do
    /// not determine an action: the best of the others is taken then, at the same prices, [`Decision::wanted`] names the missing one, and the
    /// [reason](Decision::reason) is `degraded`.
    #[inline]
    #[must_use]
    pub fn among(self, available: &AvailableRoutes) -> Self {
        if available.is_all() { self } else { self.without_missing(available) }
    }

    #[cold]
    fn without_missing(self, available: &AvailableRoutes) -> Self {
        if self.code().is_some_and(|code| available.allows(code)) {
            return self;
        }
        let policy = self.policy;
        let actions = self.costs().len();
        // Only forests limit the number of actions; the costs of cells are few enough to copy.
        let (mut low, mut high) = ([0.0; MAX_ACTIONS], [0.0; MAX_ACTIONS]);
        let (mut long_low, mut long_high);
        let (low, high) = if actions <= MAX_ACTIONS {
            (&mut low[..actions], &mut high[..actions])
        } else {
            (long_low, long_high) = (vec![0.0; actions], vec![0.0; actions]);
            (&mut long_low[..], &mut long_high[..])
        };
        low.copy_from_slice(self.costs());
        high.copy_from_slice(self.costs_high());
        match policy.choose_available(low, high, |action| available.allows(action)) {
            (false, _) if self.code().is_none() => self,
            (_, action) => Self { moved: Some(action as u8), ..self },
        }
    }
}

impl Decisions {
    /// Changes the decisions of a batch as [`Decision::among`] changes one.
    ///
    /// # Panics
    /// If the batch is of another policy.
    pub fn keep_available(&mut self, policy: &Policy, available: &AvailableRoutes) {
        if available.is_all() {
            return;
        }
        let moved: Vec<u8> =
            (0..self.len()).map(|row| policy.row(self, row).among(available).moved.unwrap_or(NOT_MOVED)).collect();
        if moved.iter().any(|&code| code != NOT_MOVED) {
            self.moved = moved;
        }
        // Also if no row of this batch wants them: calibration rows may.
        self.rooms = Rooms::none_for((1..policy.actions()).filter(|&action| !available.allows(action)));
    }
}

impl Policy {
    /// The action instead of one that cannot be taken, and whether the costs determine it: the best of those that are allowed, else the
    /// cheapest of them whose cost is known. Costs are changed to those by which queries are decided.
    pub(super) fn choose_available(
        &self,
        low: &mut [f64],
        high: &mut [f64],
        allows: impl Fn(usize) -> bool,
    ) -> (bool, usize) {
        // A limit is a price, too.
        for ((low, high), extra) in low.iter_mut().zip(high.iter_mut()).zip(self.surcharges()) {
            (*low, *high) = (*low + extra, *high + extra);
        }
        match choose_among(low, high, self.priced(), &allows) {
            (UNDETERMINED, _) => {
                // A missing route has no known cost.
                let missing = (0..high.len()).filter(|&action| !allows(action));
                missing.for_each(|action| high[action] = f64::INFINITY);
                (false, cheapest_known(low, high))
            }
            (code, _) => (true, code.into()),
        }
    }

    /// What a limit on routing adds to the price of each action.
    fn surcharges(&self) -> impl Iterator<Item = f64> {
        let routes = self.task.routes().iter().zip(self.priced().routes());
        [0.0].into_iter().chain(routes.map(|(own, priced)| priced.price() - own.price())).chain([0.0])
    }
}
