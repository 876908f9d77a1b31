//! A router and a task, compiled: one row of costs and one action per cell.

mod batch;
mod cap;
mod choose;
mod decision;
mod flips;
mod folds;
mod forest;
mod held_out;
mod limit;
mod promise;
mod realised;
mod reason;
mod sources;
mod tally;
mod unseen;

use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result, RouterError, TableError, TaskError, ValueError};
use crate::estimate::{self, Decomposition, OracleLoss, OtherOracles, RowLosses, RowVotes};
use crate::loss::{Loss, Shape};
use crate::parallel::prelude::*;
use crate::partition::{CellId, Cells};
use crate::router::{Router, Support};
use crate::table::simplex::{Peak, Real};
use crate::task::Estimator;
use crate::task::{Named, TaskSummary};
use crate::task::{Route, Task};
pub use cap::{Bid, CapRule, CapSize, CapUse, Caps, MAX_CAPS};
use choose::{TIE, UNDETERMINED, cheapest_known, choose};
use decision::KEPT;
pub use decision::{Action, Decision, Level, Verdict};
pub use flips::Flip;
pub use forest::Decisions;
use forest::Leaves;
use held_out::HeldOut;
use limit::Cutoff;
pub(crate) use limit::MixedAction;
pub use limit::Surcharge;
pub use promise::Promise;
pub use reason::Reason;
use sources::Valuation;
pub use tally::{CappedSummary, Tally, TallySummary};

/// The most costs, about a gigabyte with both of their ends.
const MAX_COSTS: usize = 1 << 26;

/// A router × a task: decides queries without allocating or locking.
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
    /// Where the loss of each route's oracle is found.
    columns: Vec<OracleLoss>,
    cells: Arc<Cells>,
    backoff: Arc<Cells>,
    estimates: Arc<Estimates>,
    /// Costs of the actions in order predict, routes, abstain; one row per source. Two bounds if the split is not known.
    low: Vec<f64>,
    high: Vec<f64>,
    codes: Vec<u8>,
    margins: Vec<f64>,
    /// Predicting at this loss is good enough: see [`Reason`].
    good_enough: f64,
    /// The price that a limit on routing comes to, if there is one, and the task with it.
    cutoff: Option<Cutoff>,
    priced: Option<Task>,
    /// With a limit, what is done with a query whose lot falls against routing: another action than above for the sources at the
    /// margin, the same for all others.
    kept: Vec<u8>,
    /// Gaps as close as this to the surcharge are at the margin.
    tie: f64,
}

/// What a task's loss, estimator and oracles make of a router; prices do not enter.
///
/// Sources are the cells and, if any cell is empty, the confidences over all classes and then all rows.
#[derive(Debug)]
struct Estimates {
    classes: Vec<String>,
    recalibrated: bool,
    loss: Loss,
    estimator: Estimator,
    other_oracles: OtherOracles,
    sources: Vec<Option<Decomposition>>,
    /// The cells without rows, ascending.
    empty: Vec<u32>,
    /// The losses of a forest's leaves: queries have their own then, and a source is their cell as a whole.
    leaves: Option<Leaves>,
    /// The calibration rows and what other oracles lose on them: what is promised is told by rows left out.
    router: Router,
    oracles: RowLosses,
    /// Worked out when first asked for, not while deciding.
    held_out: OnceLock<HeldOut>,
    /// The same without each of some groups of rows in turn.
    without_groups: OnceLock<Vec<HeldOut>>,
    /// The calibration rows' votes, which bound what labels leave open; none if two labels per item identify the loss.
    votes: OnceLock<Option<RowVotes>>,
}

impl Router {
    /// Compiles the router for a task.
    ///
    /// # Errors
    /// If the loss does not fit the classes, the router has no predictions of a measured oracle, or it has a forest
    /// and the estimator needs larger cells or the task has too many routes.
    pub fn policy(&self, task: &Task) -> Result<Policy> {
        let task = &task.for_classes(self.classes())?;
        task.chosen_estimator().check_classes(self.classes().len())?;
        check_size(self.cells().count(), task)?;
        let (loss, mut estimator) = (task.loss(), task.chosen_estimator());
        if self.leaves().is_some() {
            estimator = estimate::estimator_for_leaves(estimator);
        }
        let other_oracles = OtherOracles::from_task(task);
        let mut oracles = RowLosses::from_labels(self.rows(), loss, &other_oracles)?;
        if let Some(((forest, _), members)) = self.cells().forest().zip(self.leaves()) {
            oracles =
                oracles.in_forest(self.rows(), forest.trees().leaves(), |leaf| members.rows_of(leaf), loss, estimator);
        }
        let leaves = Leaves::of(self, loss, estimator, &oracles)?;
        let valuation = Valuation { router: self, loss, estimator, oracles: &oracles };
        let mut sources = valuation.cells(&valuation.all_cells());
        let empty: Vec<u32> = (0..sources.len() as u32).filter(|&cell| sources[cell as usize].is_none()).collect();
        // What only queries of empty cells need is worked out only if there are any.
        if !empty.is_empty() {
            sources.extend(valuation.fall_backs(&self.rows_by_confidence(), |_| true));
        }
        let estimates = Estimates {
            classes: self.classes().to_vec(),
            recalibrated: self.is_recalibrated(),
            loss: loss.clone(),
            estimator,
            other_oracles,
            sources,
            empty,
            leaves,
            router: self.clone(),
            oracles,
            held_out: OnceLock::new(),
            without_groups: OnceLock::new(),
            votes: OnceLock::new(),
        };
        Policy::price(task.clone(), self.cells().clone(), self.backoff().clone(), Arc::new(estimates))
    }
}

impl Policy {
    fn price(task: Task, cells: Arc<Cells>, backoff: Arc<Cells>, estimates: Arc<Estimates>) -> Result<Self> {
        let asked = |route: &Route| {
            estimates.other_oracles.loss_of(route).ok_or_else(|| {
                let (name, oracle) = (route.name(), route.oracle());
                TaskError::OtherOracle { route: name.to_owned(), oracle: oracle.to_string() }.into()
            })
        };
        let columns = task.routes().iter().map(asked).collect::<Result<Vec<_>>>()?;
        if estimates.leaves.is_some() {
            forest::check_task(&task)?;
        }
        check_size(cells.count(), &task)?;
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
            task,
            columns,
            cells,
            backoff,
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
                    policy.fill(&policy.task, d.total, |column| d.at(column), &mut low, &mut high);
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
            policy.keep_within(limit)?;
        }
        Ok(policy)
    }

    /// The same policy under other prices or another tie rule: no estimate is made anew.
    ///
    /// # Errors
    /// If the task has another loss or estimator, or asks oracles that this one does not: compile it with [`Router::policy`].
    pub fn reprice(&self, task: &Task) -> Result<Self> {
        let task = task.for_classes(self.classes())?;
        if *task.loss() != self.estimates.loss || task.chosen_estimator() != self.task.chosen_estimator() {
            return Err(TaskError::OtherPolicy.into());
        }
        Self::price(task, self.cells.clone(), self.backoff.clone(), self.estimates.clone())
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

    /// Decides one query from its prediction.
    ///
    /// # Errors
    /// If the row is not a prediction over the router's classes, or the router needs features.
    #[inline]
    pub fn decide<T: Real>(&self, prediction: &[T]) -> Result<Decision<'_>> {
        self.decide_with(prediction, &[])
    }

    /// Decides one query from its prediction and the features of [`Cells::features`], in that order.
    ///
    /// # Errors
    /// If the row is not a prediction over the router's classes, or a feature is missing or not finite.
    #[inline]
    pub fn decide_with<T: Real>(&self, prediction: &[T], features: &[f64]) -> Result<Decision<'_>> {
        match &self.estimates.leaves {
            None => Ok(self.decision(self.verdict(0, prediction, features)?)),
            Some(leaves) => self.decide_by(leaves, 0, prediction, features),
        }
    }

    #[inline]
    fn verdict<T: Real>(&self, row: usize, prediction: &[T], features: &[f64]) -> Result<Verdict> {
        let peak = self.check_query(row, prediction, features)?;
        Ok(self.draw(self.locate(prediction, peak, features), prediction, features))
    }

    #[inline]
    fn check_query<T: Real>(&self, row: usize, prediction: &[T], features: &[f64]) -> Result<Peak> {
        if prediction.len() != self.cells.classes() || features.len() != self.cells.features().len() {
            return Err(self.wrong_shape(prediction.len(), features.len()));
        }
        let peak = Peak::find(prediction).map_err(|fault| fault.at(row, "prob_", self.classes()))?;
        let missing = self.cells.takes_missing();
        if let Some(slot) = features.iter().position(|x| !(x.is_finite() || missing && x.is_nan())) {
            let reason = ValueError::Feature { value: features[slot] };
            return Err(Error::value(row, format!("x_{}", self.cells.features()[slot]), reason));
        }
        Ok(peak)
    }

    #[inline]
    pub(crate) fn locate<T: Real>(&self, prediction: &[T], peak: Peak, features: &[f64]) -> Verdict {
        self.locate_in(self.cells.find(prediction, peak, features), prediction, peak)
    }

    /// The verdict on a query whose cell is known.
    #[inline]
    fn locate_in<T: Real>(&self, CellId(cell): CellId, prediction: &[T], peak: Peak) -> Verdict {
        match self.estimates.empty.binary_search(&cell) {
            Err(_) => Verdict(cell),
            Ok(rank) => self.fall_back(rank, prediction, peak),
        }
    }

    #[cold]
    fn fall_back<T: Real>(&self, rank: usize, prediction: &[T], peak: Peak) -> Verdict {
        let (cells, levels) = (self.cells.count(), self.fall_backs());
        let bin = self.backoff.find(prediction, peak, &[]).index();
        let level = if self.estimates.sources[cells + bin].is_some() { bin } else { levels - 1 };
        Verdict((cells + rank * levels + level) as u32)
    }

    #[inline]
    fn is_empty(&self, cell: u32) -> bool {
        !self.estimates.empty.is_empty() && self.estimates.empty.binary_search(&cell).is_ok()
    }

    /// Whether these are the cells it decides in: those of its router, or of one put together again.
    pub(crate) fn decides_in(&self, cells: &Arc<Cells>) -> bool {
        Arc::ptr_eq(&self.cells, cells) || self.cells == *cells
    }

    /// Whether it decides in a router's cells, of which the same have rows.
    pub(crate) fn is_of(&self, router: &Router) -> bool {
        let alike =
            |cell: u32| self.estimates.sources[cell as usize].is_none() == router.mixture(CellId(cell)).is_empty();
        self.decides_in(router.cells()) && (0..self.cells.count() as u32).all(alike)
    }

    /// Whether both were compiled as one and differ in prices at most.
    pub(crate) fn shares_estimates(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.estimates, &other.estimates)
    }

    /// How many sources there are beyond the cells.
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

    #[cold]
    fn wrong_shape(&self, prediction: usize, features: usize) -> Error {
        TableError::QueryShape {
            probabilities: prediction,
            values: features,
            classes: self.classes().to_vec(),
            features: self.cells.features().to_vec(),
        }
        .into()
    }

    /// What a verdict of this policy says.
    ///
    /// # Panics
    /// If the verdict cannot be one of this policy or of one repriced from it.
    #[inline]
    #[must_use]
    pub fn decision(&self, verdict: Verdict) -> Decision<'_> {
        let cells = self.cells.count();
        let pairs = self.estimates.empty.len() * self.fall_backs();
        let (cell, source) =
            if ((verdict.0 & !KEPT) as usize) < cells + pairs { self.unfold(verdict) } else { (CellId(0), u32::MAX) };
        let known = self.estimates.sources.get(source as usize).is_some_and(Option::is_some);
        assert!(known, "a verdict of another policy");
        Decision { policy: self, cell, source, kept: verdict.0 & KEPT != 0, own: None, moved: None }
    }

    /// The decision on a cell as a whole; `None` if it is empty, since then each query falls back by itself.
    #[must_use]
    pub fn cell(&self, cell: CellId) -> Option<Decision<'_>> {
        self.estimates.sources[..self.cells.count()].get(cell.index())?.as_ref()?;
        Some(Decision { policy: self, cell, source: cell.0, kept: false, own: None, moved: None })
    }

    /// Between what the irreducible loss of each cell lies as far as its labels identify it, however many rows there are; the
    /// estimate is always within. A point for the Brier loss where it is known; `None` for empty cells.
    ///
    /// Where other cells have drawn the estimate out of what the cell's own labels leave open, as much is left open around the estimate, and both
    /// are enclosed.
    ///
    /// It takes milliseconds per cell: it is not part of compiling a policy.
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
            if matches!(self.task.loss().shape(), Shape::Brier) && estimate.is_known() {
                return Some(ends);
            }
            let [low, high] = estimate::identified(router.mixture(CellId(cell)), self.task.loss())?;
            let is_drawn_out = estimate.is_known() && !(low..=high).contains(&ends[0]);
            let half = if is_drawn_out { (high - low) / 2.0 } else { 0.0 };
            Some([low.min((ends[0] - half).max(0.0)), high.max(ends[1] + half)])
        };
        Ok((0..self.cells.count() as u32).into_par_iter().map(of_cell).collect())
    }

    /// The support of a cell.
    #[must_use]
    pub fn support(&self, cell: CellId) -> Support {
        Support::of(self.cell(cell).map_or(0.0, |decision| decision.estimate().effective_rows))
    }

    /// Which action a source takes: 0 predict, then the routes, then abstain; `None` if undetermined.
    pub(crate) fn code(&self, source: u32) -> Option<usize> {
        Some(self.codes[source as usize]).filter(|&code| code != UNDETERMINED).map(usize::from)
    }

    /// The action that a source takes or, where the labels do not decide, the cheapest of those whose costs are known:
    /// predicting, abstaining and what was measured.
    ///
    /// At the margin of a limit, either of two by lot.
    pub(crate) fn taken(&self, source: u32) -> MixedAction {
        if let Some(part) = self.marginal_share(source) {
            let at = source as usize;
            return MixedAction::either(self.codes[at].into(), self.kept[at].into(), part);
        }
        MixedAction::always(self.code(source).unwrap_or_else(|| {
            let [low, high] = self.costs_of(source);
            // A limit is not used up by what is not known to be worth it.
            if self.cutoff.is_some() { self.alternatives(high)[0] } else { cheapest_known(low, high) }
        }))
    }

    /// Lower and upper ends of the costs of all actions by the estimates of a source.
    fn costs_of(&self, source: u32) -> [&[f64]; 2] {
        let actions = self.actions();
        [&self.low, &self.high].map(|costs| &costs[source as usize * actions..][..actions])
    }

    /// Writes the costs of all actions at a task's prices, lower and upper ends, where predicting loses `total` and an oracle
    /// what stands in its column.
    fn fill(&self, task: &Task, total: f64, at: impl Fn(OracleLoss) -> [f64; 2], low: &mut [f64], high: &mut [f64]) {
        for (end, costs) in [low, high].into_iter().enumerate() {
            let routes = task.routes().iter().zip(&self.columns);
            let routes = routes.map(|(route, &column)| at(column)[end] + route.price());
            let all = [total].into_iter().chain(routes).chain(task.abstain_price());
            costs.iter_mut().zip(all).for_each(|(slot, cost)| *slot = cost);
        }
    }

    /// How many actions there are.
    fn actions(&self) -> usize {
        self.task.actions()
    }

    /// Whether queries have losses of their own beside those of their cell.
    pub(crate) fn has_forest(&self) -> bool {
        self.estimates.leaves.is_some()
    }

    /// The oracles whose losses are estimated beside the irreducible one.
    pub(crate) fn other_oracles(&self) -> &OtherOracles {
        &self.estimates.other_oracles
    }

    /// What an action costs where predicting loses `total`, the Bayes-optimal oracle `irreducible` and any other as `own`
    /// says.
    pub(crate) fn cost_of(&self, action: usize, total: f64, irreducible: f64, own: impl Fn(usize) -> f64) -> f64 {
        match action {
            0 => total,
            action => match self.task.routes().get(action - 1) {
                Some(route) => self.oracle_loss(action - 1).pick(irreducible, own) + route.price(),
                None => self.task.abstain_price().unwrap_or(f64::INFINITY),
            },
        }
    }

    /// Where the loss of a route's oracle is found.
    pub(crate) fn oracle_loss(&self, route: usize) -> OracleLoss {
        self.columns[route]
    }

    /// Which share of the calibration rows, by weight, each action would get; `undetermined` only if there are any.
    ///
    /// With a forest rows count as if they were new to it, which takes several times as long as compiling the policy when it is
    /// first asked for.
    #[must_use]
    pub fn shares(&self) -> Named<f64> {
        if let Some(shares) = self.shares_of_rows() {
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
        // A verdict's source always has rows: `locate` falls back until one does, and a router has a row.
        self.estimates.sources[source as usize].as_ref().unwrap_or_else(|| unreachable!("a source without rows"))
    }

    /// The prediction served to queries of a source, if not their own.
    pub(crate) fn served(&self, source: u32) -> Option<&[f64]> {
        self.estimates.recalibrated.then(|| self.estimate(source).centroid.as_slice())
    }

    fn action(&self, code: u8) -> Action<'_> {
        match usize::from(code) {
            _ if code == UNDETERMINED => Action::Undetermined,
            0 => Action::Predict,
            code => self.task.routes().get(code - 1).map_or(Action::Abstain, |route| Action::Route(route.name())),
        }
    }
}

/// Refuses tables of costs that would take gigabytes.
fn check_size(cells: usize, task: &Task) -> Result<()> {
    let actions = task.actions();
    if cells.saturating_mul(actions) > MAX_COSTS {
        return Err(TaskError::PolicySize { cells, actions, most: MAX_COSTS }.into());
    }
    Ok(())
}
