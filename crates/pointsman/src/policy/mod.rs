//! A router compiled for a task: costs and one action per source of estimates, which is a cell or a fall-back of empty cells.

mod assumed_panels;
mod available;
mod cap;
mod choose;
mod cutoff;
mod decide;
mod decision;
mod decisions;
mod difference;
mod flips;
mod folds;
mod held_out;
mod leaf_losses;
mod limit;
mod out_of_bag;
mod parts;
mod promise;
mod realised;
mod reason;
mod stored;
mod tally;

use std::sync::{Arc, OnceLock};

use crate::error::{Result, RouterError, TaskError};
use crate::estimate::{
    self, BorrowedLosses, Decomposition, GroupLosses, OracleLoss, OtherOracles, RowLosses, RowVotes, Valuation,
};
use crate::loss::Loss;
use crate::parallel::prelude::*;
use crate::partition::{CellId, Cells, Partition};
use crate::router::{Router, Support};
use crate::task::{Estimator, Named, Route, Task, TaskSummary};
pub use assumed_panels::AssumedPanel;
pub use available::AvailableRoutes;
use cap::{ActionParts, Rooms, WantedActions};
pub use cap::{Bid, CapRule, CapSize, CapUse, Caps, MAX_CAPS};
pub(crate) use cap::{CappedActions, RowDraws};
use choose::{MAX_ACTIONS, TIE, UNDETERMINED, choose};
use cutoff::Cutoff;
use decision::KEPT;
use decision::Verdict;
pub use decision::{Action, Decision, Level};
pub use decisions::Decisions;
pub use flips::Flip;
use held_out::HeldOut;
use leaf_losses::LeafLosses;
pub(crate) use limit::MixedAction;
pub use limit::Surcharge;
use parts::StoredFigures;
pub use parts::{Figure, FigureParts, LeafParts, LimitParts, PolicyParts, PromiseParts, SourceParts};
pub use promise::Promise;
pub use reason::Reason;
pub use stored::StoredDecisions;
pub use tally::{CappedSummary, Tally, TallySummary};

/// The largest number of costs: about a gigabyte with both ends.
const MAX_COSTS: usize = 1 << 26;

/// A router compiled for a task. It decides queries without allocating or locking.
///
/// ```
/// use pointsman::{Action, Loss, Oracle, Partition, Router, Table, Task};
/// let table = Table::new(["no", "yes"], vec![0.9, 0.1, 0.8, 0.2, 0.4, 0.6])?.with_votes(vec![5, 0, 2, 3, 0, 5])?;
/// let router = Router::calibrate(&table, &Partition::top_class(1))?;
/// let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05)?.abstain(0.50)?;
/// let policy = router.policy(&task)?;
/// let decision = policy.decide(&[0.85, 0.15])?;
/// assert_eq!(decision.action(), Action::Route("expert"));
/// println!("{} {:?}", decision.action(), decision.costs());
/// # Ok::<(), pointsman::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Policy {
    task: Task,
    /// Which loss each route's oracle has.
    oracle_losses: Vec<OracleLoss>,
    cells: Arc<Cells>,
    backoff: Arc<Cells>,
    estimates: Arc<Estimates>,
    /// Costs of predict, the routes and abstain, one row per source: the lower and the upper ends.
    low: Vec<f64>,
    high: Vec<f64>,
    codes: Vec<u8>,
    margins: Vec<f64>,
    /// The loss up to which predicting is good enough: see [`Reason`].
    good_enough: f64,
    /// The price that enforces the limit on routing, if there is one, and the task at that price.
    cutoff: Option<Cutoff>,
    priced: Option<Task>,
    /// With a limit, the action of each source if a random draw falls against routing: `codes` except for sources at the margin.
    kept: Vec<u8>,
    /// Sources whose gap is this close to the limit's price are at the margin.
    tie: f64,
    /// What was estimated from held-out rows before the rows were left behind, if the policy was put together from its parts.
    figures: Option<Arc<StoredFigures>>,
}

/// The estimates for a router under a task's loss, estimator and oracles; they do not depend on prices.
///
/// A *source* is a group of rows that decides queries. The sources are the cells and, if any cell is empty, the confidence bins over all
/// classes, followed by all rows.
#[derive(Debug)]
struct Estimates {
    partition: Partition,
    classes: Vec<String>,
    cells: Arc<Cells>,
    backoff: Arc<Cells>,
    /// Whether centroids are served instead of predictions.
    is_recalibrated: bool,
    loss: Loss,
    other_oracles: OtherOracles,
    sources: Vec<Option<Decomposition>>,
    /// The cells without rows, ascending.
    empty: Vec<u32>,
    /// The losses of a forest's leaves, if the router has one: queries have their own losses then.
    leaves: Option<LeafLosses>,
    /// None if the policy was put together from its parts.
    calibration: Option<Calibration>,
    /// What identifies the router if its rows are not here.
    origin: Option<String>,
    /// Computed on first use, not while deciding; empty without calibration rows.
    held_out: OnceLock<HeldOut>,
    /// The same with each jackknife group of rows deleted in turn.
    without_groups: OnceLock<Vec<HeldOut>>,
    /// The calibration rows' votes, which bound losses that labels do not identify; `None` inside if they identify the loss.
    votes: OnceLock<Option<RowVotes>>,
}

/// The calibration rows and the losses of other oracles on them, from which held-out estimates are made. Deciding does not need them.
#[derive(Debug)]
struct Calibration {
    router: Router,
    estimator: Estimator,
    oracles: RowLosses,
    borrowed: Option<BorrowedLosses>,
}

impl Router {
    /// Compiles the router for a task.
    ///
    /// # Errors
    /// If the loss does not fit the classes, the router has no predictions of a measured oracle, or a limit on routing has no route or
    /// cannot be kept. With a forest, also if the router is recalibrated, the estimator needs larger groups than leaves, or the task has too
    /// many routes.
    pub fn policy(&self, task: &Task) -> Result<Policy> {
        let task = &task.for_classes(self.classes())?;
        task.chosen_estimator().check_classes(self.classes().len())?;
        check_size(self.cells(), task)?;
        let (loss, mut estimator) = (task.loss(), task.chosen_estimator());
        if self.leaves().is_some() {
            estimator = estimate::estimator_for_leaves(estimator);
        }
        let other_oracles = OtherOracles::from_task(task);
        let mut oracles = RowLosses::from_labels(self.rows(), loss, &other_oracles)?;
        if let Some(leaves) = self.leaves() {
            oracles = oracles.in_forest(self.rows(), leaves.rows(), loss, estimator);
        }
        let borrowed = BorrowedLosses::fit(self.rows(), loss);
        let valuation = Valuation { router: self, loss, estimator, oracles: &oracles, borrowed: borrowed.as_ref() };
        let leaves = LeafLosses::compile(valuation)?;
        let mut sources = valuation.cells(&valuation.all_cells());
        let empty: Vec<u32> = (0..sources.len() as u32).filter(|&cell| sources[cell as usize].is_none()).collect();
        // Only queries of empty cells need fall-backs.
        if !empty.is_empty() {
            sources.extend(valuation.fall_backs(&self.rows_by_confidence(), |_| true));
        }
        let estimates = Estimates {
            partition: self.partition().clone(),
            classes: self.classes().to_vec(),
            cells: self.cells().clone(),
            backoff: self.backoff().clone(),
            is_recalibrated: self.is_recalibrated(),
            loss: loss.clone(),
            other_oracles,
            sources,
            empty,
            leaves,
            calibration: Some(Calibration { router: self.clone(), estimator, oracles, borrowed }),
            origin: None,
            held_out: OnceLock::new(),
            without_groups: OnceLock::new(),
            votes: OnceLock::new(),
        };
        Policy::compile(task.clone(), Arc::new(estimates), None)
    }
}

impl Policy {
    /// Prices the estimates for a task. The cutoff of its limit, if it has one, is found from the calibration rows unless it is given.
    fn compile(task: Task, estimates: Arc<Estimates>, cutoff: Option<Cutoff>) -> Result<Self> {
        let oracle_loss = |route: &Route| {
            estimates.other_oracles.loss_of(route).ok_or_else(|| {
                let (name, oracle) = (route.name(), route.oracle());
                TaskError::OtherOracle { route: name.to_owned(), oracle: oracle.to_string() }.into()
            })
        };
        let oracle_losses = task.routes().iter().map(oracle_loss).collect::<Result<Vec<_>>>()?;
        check_size(&estimates.cells, &task)?;
        let actions = task.actions();
        let sources = estimates.sources.len();
        let mut policy = Self {
            low: Vec::with_capacity(sources * actions),
            high: Vec::with_capacity(sources * actions),
            codes: Vec::with_capacity(sources),
            margins: Vec::with_capacity(sources),
            good_enough: f64::NAN,
            cutoff: None,
            priced: None,
            kept: Vec::new(),
            tie: 0.0,
            figures: None,
            task,
            oracle_losses,
            cells: estimates.cells.clone(),
            backoff: estimates.backoff.clone(),
            estimates,
        };
        let (mut low, mut high) = (vec![f64::NAN; actions], vec![f64::NAN; actions]);
        for source in 0..sources {
            let (code, margin) = match &policy.estimates.sources[source] {
                None => {
                    low.fill(f64::NAN);
                    high.fill(f64::NAN);
                    (UNDETERMINED, f64::NAN)
                }
                Some(d) => {
                    policy.fill_costs(&policy.task, d.losses(), &mut low, &mut high);
                    choose(&low, &high, &policy.task)
                }
            };
            policy.low.extend_from_slice(&low);
            policy.high.extend_from_slice(&high);
            policy.codes.push(code);
            policy.margins.push(margin);
        }
        policy.good_enough = policy.find_good_enough();
        if let Some(limit) = policy.task.limit() {
            policy.keep_within(limit, cutoff)?;
        }
        Ok(policy)
    }

    /// The same policy under other prices or another tie rule: no estimate is made anew.
    ///
    /// # Errors
    /// If the task has another loss or estimator, or other oracles: compile it with [`Router::policy`]. Also if its limit on routing has no
    /// route or cannot be kept, or if the limit's price has to be found from calibration rows and the policy has none.
    pub fn reprice(&self, task: &Task) -> Result<Self> {
        let task = task.for_classes(self.classes())?;
        if *task.loss() != self.estimates.loss || task.chosen_estimator() != self.task.chosen_estimator() {
            return Err(self.other_policy(&task));
        }
        if let Some(same) = self.unchanged_for(&task) {
            return Ok(same);
        }
        Self::compile(task, self.estimates.clone(), None)
    }

    /// The router from which the policy was compiled; `None` if the policy was put together from its parts, without calibration rows.
    #[must_use]
    pub fn router(&self) -> Option<&Router> {
        self.estimates.calibration.as_ref().map(|calibration| &calibration.router)
    }

    /// What identifies the router of a policy without calibration rows, such as a hash of its file, if it is known.
    #[must_use]
    pub fn origin(&self) -> Option<&str> {
        self.estimates.origin.as_deref()
    }

    /// The number of calibration rows from which the losses of cells were estimated.
    #[must_use]
    pub fn calibration_rows(&self) -> usize {
        self.estimates.sources[..self.cells.count()].iter().flatten().map(|estimate| estimate.rows).sum()
    }

    /// The partition asked for.
    #[must_use]
    pub fn partition(&self) -> &Partition {
        &self.estimates.partition
    }

    /// The task, its cost matrix in the order of the router's classes.
    #[must_use]
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The task in words and numbers, with the classes of a cost matrix.
    #[must_use]
    pub fn task_summary(&self) -> TaskSummary {
        TaskSummary::new(&self.task, self.classes())
    }

    /// The fitted partition.
    #[must_use]
    pub fn cells(&self) -> &Cells {
        &self.cells
    }

    /// The classes, in order.
    #[must_use]
    pub fn classes(&self) -> &[String] {
        &self.estimates.classes
    }

    /// Whether these are the policy's cells: those of its router or equal ones.
    pub(crate) fn decides_in(&self, cells: &Arc<Cells>) -> bool {
        Arc::ptr_eq(&self.cells, cells) || self.cells == *cells
    }

    /// Whether a router has the policy's cells, and the same of them have rows.
    pub(crate) fn is_of(&self, router: &Router) -> bool {
        let alike =
            |cell: u32| self.estimates.sources[cell as usize].is_none() == router.mixture(CellId(cell)).is_empty();
        self.decides_in(router.cells()) && (0..self.cells.count() as u32).all(alike)
    }

    /// Whether one policy was repriced from the other, so that they differ in prices only.
    pub(crate) fn shares_estimates(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.estimates, &other.estimates)
    }

    /// The number of sources beyond the cells.
    fn fall_backs(&self) -> usize {
        self.estimates.sources.len() - self.cells.count()
    }

    /// A verdict's cell and source.
    #[inline]
    pub(crate) fn unfold(&self, Verdict(code): Verdict) -> (CellId, u32) {
        let code = code & !KEPT;
        let cells = self.cells.count() as u32;
        if code < cells {
            return (CellId(code), code);
        }
        let levels = self.fall_backs() as u32;
        let (rank, level) = ((code - cells) / levels, (code - cells) % levels);
        (CellId(self.estimates.empty[rank as usize]), cells + level)
    }

    /// The decision of a verdict.
    ///
    /// # Panics
    /// If the verdict cannot be one of this policy or of one repriced from it.
    #[inline]
    fn decision(&self, verdict: Verdict) -> Decision<'_> {
        let cells = self.cells.count();
        let pairs = self.estimates.empty.len() * self.fall_backs();
        let (cell, source) =
            if ((verdict.0 & !KEPT) as usize) < cells + pairs { self.unfold(verdict) } else { (CellId(0), u32::MAX) };
        let known = self.estimates.sources.get(source as usize).is_some_and(Option::is_some);
        assert!(known, "a verdict of another policy");
        let kept = self.has_limit() && verdict.0 & KEPT != 0;
        Decision { policy: self, cell, source, kept, own: None, moved: None }
    }

    /// The decision on a cell as a whole; `None` if it is empty, because each of its queries falls back by its own confidence.
    #[must_use]
    pub fn cell(&self, cell: CellId) -> Option<Decision<'_>> {
        self.estimates.sources[..self.cells.count()].get(cell.index())?.as_ref()?;
        Some(Decision { policy: self, cell, source: cell.0, kept: false, own: None, moved: None })
    }

    /// For each cell, the bounds that its labels would leave on the irreducible loss even with infinitely many rows; the estimate lies within
    /// them. Under the Brier loss the two are equal if the loss is known. `None` for empty cells.
    ///
    /// If pooling has moved the estimate out of the bounds of the cell's own labels, bounds of the same width around the estimate are
    /// included.
    ///
    /// This takes milliseconds per cell and is not part of compiling a policy.
    ///
    /// # Errors
    /// If the policy was not made from this router.
    pub fn identified(&self, router: &Router) -> Result<Vec<Option<[f64; 2]>>> {
        if !self.is_of(router) {
            return Err(RouterError::OtherRouter.into());
        }
        let of_cell = |cell: u32| {
            let estimate = self.estimates.sources[cell as usize].as_ref()?;
            let ends = [estimate.irreducible_low, estimate.irreducible_high];
            if self.task.loss().is_brier() && estimate.is_known() {
                return Some(ends);
            }
            let [low, high] =
                estimate::identified(router.mixture(CellId(cell)), self.task.loss(), estimate.is_known())?;
            let is_outside = estimate.is_known() && !(low..=high).contains(&ends[0]);
            let half = if is_outside { (high - low) / 2.0 } else { 0.0 };
            Some([low.min((ends[0] - half).max(0.0)), high.max(ends[1] + half)])
        };
        Ok((0..self.cells.count() as u32).into_par_iter().map(of_cell).collect())
    }

    /// The support of a cell.
    #[must_use]
    pub fn support(&self, cell: CellId) -> Support {
        Support::from_effective_rows(self.cell(cell).map_or(0.0, |decision| decision.estimate().effective_rows))
    }

    /// Which action a source takes: 0 predict, then the routes, then abstain; `None` if undetermined.
    pub(crate) fn code(&self, source: u32) -> Option<usize> {
        Some(self.codes[source as usize]).filter(|&code| code != UNDETERMINED).map(usize::from)
    }

    /// The action of a source, and whether it is determined; if not, the action that is assumed.
    pub(crate) fn action_of_source(&self, source: u32) -> (bool, MixedAction) {
        (self.code(source).is_some(), self.taken(source))
    }

    /// The action of a source or, if undetermined, the one that is assumed. At the margin of a limit it is a random choice between two
    /// actions.
    pub(crate) fn taken(&self, source: u32) -> MixedAction {
        if let Some(part) = self.marginal_share(source) {
            let at = source as usize;
            return MixedAction::either(self.codes[at].into(), self.kept[at].into(), part);
        }
        MixedAction::always(self.code(source).unwrap_or_else(|| self.assumed_action(self.costs_of(source))))
    }

    /// Lower and upper ends of the costs of all actions by the estimates of a source.
    fn costs_of(&self, source: u32) -> [&[f64]; 2] {
        let actions = self.actions();
        [&self.low, &self.high].map(|costs| &costs[source as usize * actions..][..actions])
    }

    /// Writes the costs of all actions at a task's prices, the lower and the upper ends.
    fn fill_costs(&self, task: &Task, losses: GroupLosses<'_>, low: &mut [f64], high: &mut [f64]) {
        for (end, costs) in [low, high].into_iter().enumerate() {
            let routes = task.routes().iter().zip(&self.oracle_losses);
            let routes = routes.map(|(route, &oracle)| losses.of_oracle(oracle)[end] + route.price());
            let all = [losses.total].into_iter().chain(routes).chain(task.abstain_price());
            costs.iter_mut().zip(all).for_each(|(slot, cost)| *slot = cost);
        }
    }

    /// The number of actions.
    fn actions(&self) -> usize {
        self.task.actions()
    }

    /// Whether the router has a forest, so that every query has its own losses.
    pub(crate) fn has_forest(&self) -> bool {
        self.estimates.leaves.is_some()
    }

    /// The oracles whose losses are estimated beside the irreducible one.
    pub(crate) fn other_oracles(&self) -> &OtherOracles {
        &self.estimates.other_oracles
    }

    /// The cost of an action if predicting loses `total`, the Bayes-optimal oracle `irreducible`, and each other oracle `own(place)`.
    pub(crate) fn cost_of(&self, action: usize, total: f64, irreducible: f64, own: impl Fn(usize) -> f64) -> f64 {
        match action {
            0 => total,
            action => match self.task.routes().get(action - 1) {
                Some(route) => self.oracle_loss(action - 1).pick(irreducible, own) + route.price(),
                None => self.task.abstain_price().unwrap_or(f64::INFINITY),
            },
        }
    }

    /// Which loss a route's oracle has.
    pub(crate) fn oracle_loss(&self, route: usize) -> OracleLoss {
        self.oracle_losses[route]
    }

    /// The share of the calibration rows, by weight, that each action gets; `undetermined` is listed only if there are any.
    ///
    /// With a forest each row is decided by the trees for which it is out of bag. The first call then takes several times as long as
    /// compiling the policy.
    ///
    /// Without calibration rows, these are the shares found when the policy was compiled. At other prices they are not known for a forest,
    /// and its cells count as wholes.
    #[must_use]
    pub fn shares(&self) -> Named<f64> {
        if let Some(figures) = &self.figures {
            return figures.shares.clone();
        }
        if let Some(shares) = self.out_of_bag_shares() {
            return shares;
        }
        let cells = self.estimates.sources[..self.cells.count()].iter().enumerate();
        let known: Vec<(u32, f64)> =
            cells.filter_map(|(cell, estimate)| Some((cell as u32, estimate.as_ref()?.weight))).collect();
        let all: f64 = known.iter().map(|(_, weight)| weight).sum();
        let (open, decided): (Vec<_>, Vec<_>) = known.into_iter().partition(|(cell, _)| self.code(*cell).is_none());
        let mut shares = Named::new();
        for (action, name) in self.task.action_names().into_iter().enumerate() {
            shares.push(
                name,
                decided.iter().map(|(cell, weight)| self.taken(*cell).part_of(action) * weight / all).sum(),
            );
        }
        if !open.is_empty() {
            shares.push("undetermined", open.iter().map(|(_, weight)| weight / all).sum());
        }
        shares
    }

    pub(crate) fn estimate(&self, source: u32) -> &Decomposition {
        // A verdict's source always has rows: `fall_back` ends at the source of all rows, and a router has rows.
        self.estimates.sources[source as usize].as_ref().unwrap_or_else(|| unreachable!("a source without rows"))
    }

    /// The prediction served to queries of a source instead of their own, if the router is recalibrated.
    pub(crate) fn served(&self, source: u32) -> Option<&[f64]> {
        self.estimates.is_recalibrated.then(|| self.estimate(source).centroid.as_slice())
    }

    fn action(&self, code: u8) -> Action<'_> {
        match usize::from(code) {
            _ if code == UNDETERMINED => Action::Undetermined,
            0 => Action::Predict,
            code => self.task.routes().get(code - 1).map_or(Action::Abstain, |route| Action::Route(route.name())),
        }
    }
}

/// Refuses tasks with more actions than a decision of a forest holds, and policies whose costs would take gigabytes.
fn check_size(cells: &Cells, task: &Task) -> Result<()> {
    let (has_forest, cells, actions) = (cells.forest().is_some(), cells.count(), task.actions());
    if has_forest && actions > MAX_ACTIONS {
        return Err(TaskError::ForestActions { actions, most: MAX_ACTIONS }.into());
    }
    if cells.saturating_mul(actions) > MAX_COSTS {
        return Err(TaskError::PolicySize { cells, actions, most: MAX_COSTS }.into());
    }
    Ok(())
}
