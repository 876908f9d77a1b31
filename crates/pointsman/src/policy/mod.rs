//! A router and a task, compiled: one row of costs and one action a cell.

mod batch;
mod flips;
mod forest;
mod limit;
mod realised;
mod tally;
mod unseen;

use std::fmt;
use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::estimate::{self, Asked, Column, Decomposition, Estimator, Piles, RowLosses};
use crate::evaluate::Named;
use crate::loss::Loss;
use crate::oracle::{Oracle, Panel};
use crate::partition::{Axis, CellId, Cells, UNUSUAL};
use crate::router::{Mixture, Router, Support};
use crate::simplex::{Peak, Real};
use crate::table::Table;
use crate::task::{Route, Task, Ties};
pub use flips::Flip;
pub use forest::Decisions;
use forest::{Leaves, Own};
pub(crate) use limit::Course;
pub use limit::Surcharge;
pub use tally::{Tally, TallySummary};

/// Costs closer than this, relative to themselves or to what their loss is rounded on, are a tie.
const TIE: f64 = 1e-12;

/// What to do with a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action<'a> {
    /// Serve the cheap model's prediction.
    Predict,
    /// Ask the oracle of this name.
    Route(&'a str),
    /// Decline to answer.
    Abstain,
    /// The labels do not decide: one label an item bounds the costs, and the bounds overlap.
    Undetermined,
}

/// Where the rows behind a decision come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// The query's own cell.
    Cell,
    /// All rows of the same confidence, whatever the class: the cell is empty.
    Confidence,
    /// All rows: nothing nearer is there.
    All,
}

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
    columns: Vec<Column>,
    cells: Arc<Cells>,
    backoff: Arc<Cells>,
    estimates: Arc<Estimates>,
    /// Costs of the actions in order predict, routes, abstain; one row a source. Two bounds if the split is not known.
    low: Vec<f64>,
    high: Vec<f64>,
    codes: Vec<u8>,
    margins: Vec<f64>,
    /// The price that a limit on routing comes to, if there is one, and the task with it.
    surcharge: Option<Surcharge>,
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
    asked: Asked,
    sources: Vec<Option<Decomposition>>,
    /// The cells without rows, ascending.
    empty: Vec<u32>,
    /// The losses of a forest's leaves: queries have their own then, and a source is their cell as a whole.
    leaves: Option<Leaves>,
}

/// Rows decided together: what is written for them stays in the fastest cache until it is checked.
const BLOCK: usize = 1024;

const UNDETERMINED: u8 = u8::MAX;

/// Marks the verdict of a query at the margin of a limit whose lot fell against routing.
const KEPT: u32 = 1 << 31;

/// One query's decision and the reasons for it.
#[derive(Debug, Clone, Copy)]
pub struct Decision<'p> {
    policy: &'p Policy,
    cell: CellId,
    source: u32,
    kept: bool,
    /// The query's own costs, if a forest made them.
    own: Option<Own>,
}

/// The compact form of a decision that batches are made of; [`Policy::decision`] unfolds it.
///
/// The number of a cell with rows stands for itself. Beyond the cells come the pairs of an empty cell and the source it
/// falls back to, the sources of one cell together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Verdict(u32);

impl Verdict {
    /// The number: small, and the same for queries that are decided alike for the same reasons.
    #[must_use]
    pub fn code(self) -> u32 {
        self.0
    }
}

impl Router {
    /// Compiles the router for a task.
    ///
    /// # Errors
    /// If the loss does not fit the number of classes, the router has no predictions of a measured oracle, or it has a forest
    /// and the estimator needs larger cells or the task has too many routes.
    pub fn policy(&self, task: &Task) -> Result<Policy> {
        task.loss().check_classes(self.classes().len())?;
        task.chosen_estimator().check_classes(self.classes().len())?;
        let (loss, estimator) = (task.loss(), task.chosen_estimator());
        let asked = Asked::of(task);
        let mut oracles = RowLosses::of(self.rows(), loss, &asked)?;
        if let Some(((forest, _), rows)) = self.cells().forest().zip(self.leaves()) {
            oracles = oracles.in_forest(self.rows(), forest.trees().leaves(), |leaf| rows.of(leaf), loss, estimator);
        }
        let estimate = |piles: &mut Piles, mixture: Mixture<'_>| {
            let served = if self.is_recalibrated() { mixture.centroid() } else { None };
            Decomposition::of(mixture, loss, estimator, served.as_deref(), &oracles, piles)
        };
        let leaves = Leaves::of(self, loss, estimator, &oracles)?;
        let cells = self.cells().count();
        let mut sources: Vec<Option<Decomposition>> = (0..cells as u32)
            .into_par_iter()
            .map_init(Piles::default, |piles, cell| estimate(piles, self.mixture(CellId(cell))))
            .collect();
        if let [Axis::Tree { .. }] = self.cells().axes() {
            let mixtures: Vec<Mixture<'_>> = (0..cells as u32).map(|cell| self.mixture(CellId(cell))).collect();
            estimate::shrink_leaves(&mut sources, &mixtures, loss, self.is_recalibrated(), &oracles);
        }
        let empty: Vec<u32> = (0..cells as u32).filter(|&cell| sources[cell as usize].is_none()).collect();
        // What only queries of empty cells need is worked out only if there are any.
        if !empty.is_empty() {
            let groups = self.rows_by_confidence();
            let of_group = |piles: &mut Piles, rows: &Vec<u32>| estimate(piles, Mixture::of_rows(self.rows(), rows));
            sources.par_extend(groups.par_iter().map_init(Piles::default, of_group));
            sources.push(estimate(&mut Piles::default(), self.all_rows()));
        }
        let estimates = Estimates {
            classes: self.classes().to_vec(),
            recalibrated: self.is_recalibrated(),
            loss: loss.clone(),
            estimator,
            asked,
            sources,
            empty,
            leaves,
        };
        Policy::price(task.clone(), self.cells().clone(), self.backoff().clone(), Arc::new(estimates))
    }
}

impl Policy {
    fn price(task: Task, cells: Arc<Cells>, backoff: Arc<Cells>, estimates: Arc<Estimates>) -> Result<Self> {
        let asked = |route: &Route| {
            estimates.asked.column(route).ok_or_else(|| {
                let (name, oracle) = (route.name(), route.oracle());
                Error::Task(format!(
                    "the oracle {oracle} of the route {name:?} needs a policy of its own: Router::policy"
                ))
            })
        };
        let columns = task.routes().iter().map(asked).collect::<Result<Vec<_>>>()?;
        if estimates.leaves.is_some() {
            forest::check_task(&task)?;
        }
        let actions = task.actions();
        let sources = estimates.sources.len();
        let mut policy = Self {
            low: Vec::with_capacity(sources * actions),
            high: Vec::with_capacity(sources * actions),
            codes: Vec::with_capacity(sources),
            margins: Vec::with_capacity(sources),
            surcharge: None,
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
        if *task.loss() != self.estimates.loss || task.chosen_estimator() != self.estimates.estimator {
            return Err(Error::Task("another loss or estimator needs a policy of its own: Router::policy".into()));
        }
        Self::price(task.clone(), self.cells.clone(), self.backoff.clone(), self.estimates.clone())
    }

    /// The task.
    #[must_use]
    pub fn task(&self) -> &Task {
        &self.task
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
        let peak = Peak::of(prediction).map_err(|fault| fault.at(row, "prob_", self.classes()))?;
        let missing = self.cells.takes_missing();
        if let Some(slot) = features.iter().position(|x| !(x.is_finite() || missing && x.is_nan())) {
            let reason = format!("{} is not a feature value: give a finite number", features[slot]);
            return Err(Error::value(row, format!("x_{}", self.cells.features()[slot]), reason));
        }
        Ok(peak)
    }

    #[inline]
    pub(crate) fn locate<T: Real>(&self, prediction: &[T], peak: Peak, features: &[f64]) -> Verdict {
        let CellId(cell) = self.cells.find(prediction, peak, features);
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
        Error::Table(format!(
            "a query has {prediction} probabilities and {features} features; this router needs {} ({}) and {} ({})",
            self.cells.classes(),
            self.classes().join(", "),
            self.cells.features().len(),
            self.cells.features().iter().map(|name| format!("x_{name}")).collect::<Vec<_>>().join(", "),
        ))
    }

    /// Decides many queries, `predictions` and `features` row by row, into `out`.
    ///
    /// # Errors
    /// If the shapes do not fit, or a row is not a prediction; rows before it are decided. If the router has a forest, whose
    /// decisions a verdict cannot hold: use [`Policy::decide_batch`].
    pub fn decide_rows<T: Real>(&self, predictions: &[T], features: &[f64], out: &mut [Verdict]) -> Result<()> {
        self.check_verdicts_suffice()?;
        let (c, d) = (self.cells.classes(), self.cells.features().len());
        if predictions.len() != out.len() * c || features.len() != out.len() * d {
            return Err(Error::Table(format!(
                "{} probabilities and {} feature values for {} rows; this router needs {c} and {d} a row",
                predictions.len(),
                features.len(),
                out.len()
            )));
        }
        let Some((grid, singles)) = self.cells.grid().zip(T::singles(predictions)) else {
            return self.decide_carefully(predictions, features, out);
        };
        for (block, out) in out.chunks_mut(BLOCK).enumerate() {
            let start = block * BLOCK;
            grid.find(&singles[start * c..(start + out.len()) * c], out, Verdict);
            for (i, slot) in out.iter_mut().enumerate() {
                if slot.0 == UNUSUAL || self.surcharge.is_some() || self.is_empty(slot.0) {
                    let row = start + i;
                    *slot = self.verdict(row, &predictions[row * c..(row + 1) * c], &[])?;
                }
            }
        }
        Ok(())
    }

    /// Decides the rows of a table, whose values were checked when it was built, on all cores.
    ///
    /// # Errors
    /// If the table has other classes or lacks a feature, or `out` is not as long as the table. If the router has a forest, whose
    /// decisions a verdict cannot hold: use [`Policy::decide_batch`].
    pub fn decide_table(&self, table: &Table, out: &mut [Verdict]) -> Result<()> {
        self.check_verdicts_suffice()?;
        self.check_table(table, out.len())?;
        let columns = self.cells.columns_in(table)?;
        out.par_chunks_mut(BLOCK).enumerate().for_each(|(block, out)| {
            let mut features = Vec::with_capacity(columns.len());
            for (i, slot) in out.iter_mut().enumerate() {
                let row = block * BLOCK + i;
                features.clear();
                features.extend(columns.iter().map(|&column| table.features(row)[column]));
                let prediction = table.prediction(row);
                *slot = self.draw(self.locate(prediction, table.peak(row), &features), prediction, &features);
            }
        });
        Ok(())
    }

    fn check_verdicts_suffice(&self) -> Result<()> {
        match self.estimates.leaves {
            None => Ok(()),
            Some(_) => Err(Error::Task("the costs of a forest are each query's own: use Policy::decide_batch".into())),
        }
    }

    fn check_table(&self, table: &Table, rows: usize) -> Result<()> {
        if table.classes() == self.classes() && table.rows() == rows {
            return Ok(());
        }
        Err(Error::Table(format!(
            "{} rows of {} for {rows} decisions; this router's classes are {}",
            table.rows(),
            table.classes().join(", "),
            self.classes().join(", ")
        )))
    }

    fn decide_carefully<T: Real>(&self, predictions: &[T], features: &[f64], out: &mut [Verdict]) -> Result<()> {
        let (c, d) = (self.cells.classes(), self.cells.features().len());
        for (row, (slot, prediction)) in out.iter_mut().zip(predictions.chunks_exact(c)).enumerate() {
            *slot = self.verdict(row, prediction, &features[row * d..(row + 1) * d])?;
        }
        Ok(())
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
        Decision { policy: self, cell, source, kept: verdict.0 & KEPT != 0, own: None }
    }

    /// The decision on a cell as a whole; `None` if it is empty, since then each query falls back by itself.
    #[must_use]
    pub fn cell(&self, cell: CellId) -> Option<Decision<'_>> {
        self.estimates.sources[..self.cells.count()].get(cell.index())?.as_ref()?;
        Some(Decision { policy: self, cell, source: cell.0, kept: false, own: None })
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
    pub(crate) fn taken(&self, source: u32) -> Course {
        if let Some(part) = self.lots(source) {
            let at = source as usize;
            return Course::by_lot(self.codes[at].into(), self.kept[at].into(), part);
        }
        Course::always(self.code(source).unwrap_or_else(|| {
            let actions = self.actions();
            let [low, high] = [&self.low, &self.high].map(|costs| &costs[source as usize * actions..][..actions]);
            // A limit is not used up by what is not known to be worth it.
            if self.surcharge.is_some() { self.courses(high)[0] } else { cheapest_known(low, high) }
        }))
    }

    /// Writes the costs of all actions at a task's prices, lower and upper ends, where predicting loses `total` and an oracle
    /// what stands in its column.
    fn fill(&self, task: &Task, total: f64, at: impl Fn(Column) -> [f64; 2], low: &mut [f64], high: &mut [f64]) {
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
    pub(crate) fn asked(&self) -> &Asked {
        &self.estimates.asked
    }

    /// What an action costs where predicting loses `total`, the Bayes-optimal oracle `irreducible` and any other as `own`
    /// says.
    pub(crate) fn cost_of(&self, action: usize, total: f64, irreducible: f64, own: impl Fn(usize) -> f64) -> f64 {
        match action {
            0 => total,
            action => match self.task.routes().get(action - 1) {
                Some(route) => self.column(action - 1).of(irreducible, own) + route.price(),
                None => self.task.abstain_price().unwrap_or(f64::INFINITY),
            },
        }
    }

    /// Where the loss of a route's oracle is found.
    pub(crate) fn column(&self, route: usize) -> Column {
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

/// The action whose cost is certainly the least, and by how much; ties go by the tie rule.
///
/// With known costs this is the argmin. With bounds an action must be no dearer than every other whatever the truth. Costs
/// that grow with one unknown irreducible loss are compared at both ends of it; so is any cost with one that is known,
/// such as those of predicting and abstaining. Of other pairs the nearest ends are compared, but that a panel never
/// loses less than an oracle who knows the truth.
fn choose(low: &[f64], high: &[f64], task: &Task) -> (u8, f64) {
    let n = low.len();
    let order = |i: usize| match task.chosen_ties() {
        Ties::Frugal => i,
        // Abstain, the routes in order, predict.
        Ties::Paper => match (i, task.abstain_price().is_some()) {
            (0, true) => n - 1,
            (i, true) if i < n - 1 => i,
            (i, false) if i < n - 1 => i + 1,
            _ => 0,
        },
    };
    let route = |action: usize| task.routes().get(action.wrapping_sub(1));
    let known = |action: usize| low[action] == high[action];
    let alike = |action: usize| match route(action).map(Route::oracle) {
        Some(oracle) => Panel::of(oracle).is_none_or(|panel| panel.by_agreement(task.loss())),
        None => true,
    };
    let least_gap = |action: usize, other: usize| {
        if known(action) || known(other) || alike(action) && alike(other) {
            return (low[other] - low[action]).min(high[other] - high[action]);
        }
        let apart = low[other] - high[action];
        match (route(action), route(other)) {
            (Some(one), Some(two)) if *one.oracle() == Oracle::Bayes => apart.max(two.price() - one.price()),
            _ => apart,
        }
    };
    for action in (0..n).map(order) {
        let gap = |other: usize| {
            let tie = TIE * task.loss().rounding().max(high[action]).max(high[other]);
            (least_gap(action, other), tie)
        };
        let gaps = (0..n).filter(|&other| other != action).map(gap);
        if gaps.clone().all(|(gap, tie)| gap >= -tie) {
            return (action as u8, gaps.map(|(gap, _)| gap).fold(f64::INFINITY, f64::min).max(0.0));
        }
    }
    (UNDETERMINED, 0.0)
}

/// The cheapest action whose cost is known; predicting is one.
fn cheapest_known(low: &[f64], high: &[f64]) -> usize {
    let known = (1..low.len()).filter(|&action| low[action] == high[action]);
    known.fold(0, |best, action| if low[action] < low[best] { action } else { best })
}

impl<'p> Decision<'p> {
    /// What to do.
    #[inline]
    #[must_use]
    pub fn action(&self) -> Action<'p> {
        self.policy.action(self.raw_code())
    }

    #[inline]
    fn raw_code(&self) -> u8 {
        match &self.own {
            Some(own) if self.kept => own.kept,
            Some(own) => own.code,
            None if self.kept => self.policy.kept[self.source as usize],
            None => self.policy.codes[self.source as usize],
        }
    }

    /// The number of the action among [`Task::action_names`]; `None` if undetermined.
    #[must_use]
    pub fn code(&self) -> Option<usize> {
        Some(self.raw_code()).filter(|&code| code != UNDETERMINED).map(usize::from)
    }

    /// At the margin of a limit, the part of such queries that is routed: a lot decides, the same for the same query.
    #[must_use]
    pub fn lots(&self) -> Option<f64> {
        match &self.own {
            Some(own) => self.policy.surcharge.filter(|_| own.code != own.kept).map(|surcharge| surcharge.marginal),
            None => self.policy.lots(self.source),
        }
    }

    /// At the margin of a limit, what is done with the queries whose lot falls against routing.
    #[must_use]
    pub fn otherwise(&self) -> Option<Action<'p>> {
        let kept = || self.own.as_ref().map_or_else(|| self.policy.kept[self.source as usize], |own| own.kept);
        self.lots().map(|_| self.policy.action(kept()))
    }

    /// The costs of predict, the routes in the task's order, and abstain if allowed. With one label an item, the
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

    #[inline]
    fn row(&self, costs: &'p [f64]) -> &'p [f64] {
        let n = costs.len() / self.policy.codes.len();
        &costs[self.source as usize * n..][..n]
    }

    /// By how much the action beats the runner-up; infinite if there is none.
    #[must_use]
    pub fn margin(&self) -> f64 {
        self.own.as_ref().map_or_else(|| self.policy.margins[self.source as usize], |own| own.margin)
    }

    /// Over how many trees the costs were averaged, if a forest made them the query's own; `None` if they are its cell's.
    #[must_use]
    pub fn trees(&self) -> Option<usize> {
        self.own?;
        self.policy.estimates.leaves.as_ref().map(|leaves| leaves.forest.trees().count())
    }

    /// The estimates of the query's cell: those behind the costs, unless a forest makes the query's own.
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

    /// How many calibration rows the costs rest on; with a forest, how many are in the cell.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.estimate().rows
    }

    /// The support of the query's own cell.
    #[must_use]
    pub fn support(&self) -> Support {
        self.policy.support(self.cell)
    }

    /// Whose rows the costs rest on.
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
