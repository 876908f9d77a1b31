//! Proof on held-out rows: what a policy costs, beside the alternatives and the best possible.

mod calibration;
mod cells;
mod curve;
mod grid;
mod mixtures;
mod named;
mod sweep;

use rayon::prelude::*;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::loss::dot;
use crate::partition::CellId;
use crate::policy::Policy;
use crate::table::Table;
use crate::task::Task;
pub use calibration::{CalibrationError, CellError};
pub use cells::{CellSummary, HeldOutCell};
use curve::Ranking;
pub use grid::PriceGrid;
pub use mixtures::MixtureHistogram;
pub use named::Named;
pub use sweep::{Sweep, SweepAxis, SweepPoint};

/// Differences below this share of the loss's bound are rounding.
const NEGLIGIBLE: f64 = 1e-12;

/// Held-out rows as a router sees them, with the losses they really have; prices do not enter.
///
/// A row's truth is its true label distribution if the table has it, otherwise its snapshot mean.
#[derive(Debug, Clone)]
pub struct Replay {
    /// The estimates the rows were located with.
    policy: Policy,
    places: Vec<Place>,
    groups: usize,
    weights: Vec<f64>,
    /// Loss of the served prediction.
    total: Vec<f64>,
    /// Loss of the Bayes-optimal oracle.
    irreducible: Vec<f64>,
    /// Entropy of the served prediction.
    uncertainty: Vec<f64>,
    truth_known: bool,
}

/// Where a row falls. Rows of one cell and one source are treated alike: they are a group. Only an empty cell, whose rows
/// fall back, has more than one.
#[derive(Debug, Clone, Copy)]
struct Place {
    cell: u32,
    source: u32,
    group: u32,
}

/// What a policy costs on held-out rows. Costs are means a query, in the loss's unit.
#[derive(Debug, Clone, Serialize)]
pub struct Evaluation {
    /// Held-out rows.
    pub rows: usize,
    /// The loss.
    pub loss: String,
    /// Its unit.
    pub unit: &'static str,
    /// `votes` if the truth is the rows' snapshot mean, `true` if it was given.
    pub truth: &'static str,
    /// The task.
    pub task: TaskSummary,
    /// Mean cost of `router`, `always-predict`, `always-route:<name>`, `always-abstain`, `cell-optimal` and
    /// `pointwise-optimal`.
    pub mean_cost: Named<f64>,
    /// Standard errors of the mean costs.
    pub standard_error: Named<f64>,
    /// Cost above the best action a cell and above the best action a row.
    pub regret: Named<f64>,
    /// Share of the rows that each action gets.
    pub shares: Named<f64>,
    /// Mean cost of the same router when it may only predict or route, or only predict or abstain.
    pub two_way: Named<f64>,
    /// Normalised gain of each ranking: 0 random, 1 point-wise optimal; unknown if routing gains nothing.
    pub gain: Named<Option<f64>>,
    /// Mean loss when the first 0 %, 1 %, … 100 % of each ranking are routed, prices left out.
    pub curves: Named<Vec<f64>>,
    /// Correlation of reducible and total loss over the rows: near 1, ranking by total uncertainty is as good.
    pub correlation: Option<f64>,
    /// Share of the rows whose own cell is empty, and of those whose cell is sparse.
    pub support: Named<f64>,
}

/// A task in words and numbers.
#[derive(Debug, Clone, Serialize)]
pub struct TaskSummary {
    /// The loss.
    pub loss: String,
    /// The estimator of the irreducible loss.
    pub estimator: String,
    /// Which action wins a tie.
    pub ties: String,
    /// The routes.
    pub routes: Vec<RouteSummary>,
    /// The price of abstaining, if it is allowed.
    pub abstain: Option<f64>,
}

/// A route in words and numbers.
#[derive(Debug, Clone, Serialize)]
pub struct RouteSummary {
    /// Its name.
    pub name: String,
    /// The kind of oracle.
    pub kind: String,
    /// Its price.
    pub cost: f64,
}

impl From<&Task> for TaskSummary {
    fn from(task: &Task) -> Self {
        let route = |route: &crate::task::Route| RouteSummary {
            name: route.name().into(),
            kind: route.oracle().to_string(),
            cost: route.price(),
        };
        Self {
            loss: task.loss().to_string(),
            estimator: task.chosen_estimator().to_string(),
            ties: task.chosen_ties().to_string(),
            routes: task.routes().iter().map(route).collect(),
            abstain: task.abstain_price(),
        }
    }
}

impl Policy {
    /// Decides held-out rows and works out what they really cost.
    ///
    /// # Errors
    /// If the table has no rows, neither votes nor truth, other classes, or lacks a feature.
    pub fn replay(&self, table: &Table) -> Result<Replay> {
        if table.rows() == 0 {
            return Err(Error::Table("there are no rows to evaluate on".into()));
        }
        let truth_known = table.truth(0).is_some();
        if !truth_known && !table.has_votes() {
            return Err(Error::Table("evaluation needs votes_<class> or true_<class> columns".into()));
        }
        if table.classes() != self.classes() {
            return Err(Error::Table("the table's classes are not the router's".into()));
        }
        let columns = table.feature_columns(self.cells().features())?;
        let loss = self.task().loss();
        let classes = self.classes().len();
        let measure = |buffers: &mut (Vec<f64>, Vec<f64>, Vec<f64>, Vec<f64>), row: usize| {
            let (truth, served, losses, features) = buffers;
            features.clear();
            features.extend(columns.iter().map(|&column| table.features(row)[column]));
            let verdict = self.locate(table.prediction(row), table.peak(row), features);
            let (CellId(cell), source) = self.unfold(verdict);
            match (table.truth(row), table.votes(row)) {
                (Some(known), _) => truth.copy_from_slice(known),
                (None, Some(votes)) => votes.mean_into(truth),
                (None, None) => {}
            }
            match self.served(source) {
                Some(centroid) => served.copy_from_slice(centroid),
                None => table.dist_into(row, served),
            }
            loss.losses_into(served, losses);
            (
                Place { cell, source, group: verdict.code() },
                dot(truth, losses),
                loss.entropy(truth),
                loss.entropy(served),
            )
        };
        let buffers = || (vec![0.0; classes], vec![0.0; classes], vec![0.0; classes], Vec::new());
        let rows: Vec<_> = (0..table.rows()).into_par_iter().with_min_len(1 << 10).map_init(buffers, measure).collect();
        let mut codes: Vec<u32> = rows.iter().map(|(place, ..)| place.group).collect();
        codes.sort_unstable();
        codes.dedup();
        let mut replay = Replay {
            policy: self.clone(),
            groups: codes.len(),
            places: Vec::with_capacity(rows.len()),
            weights: (0..rows.len()).map(|row| table.weight(row)).collect(),
            total: Vec::with_capacity(rows.len()),
            irreducible: Vec::with_capacity(rows.len()),
            uncertainty: Vec::with_capacity(rows.len()),
            truth_known,
        };
        for (place, total, irreducible, uncertainty) in rows {
            let group = codes.binary_search(&place.group).unwrap_or(0) as u32;
            replay.places.push(Place { group, ..place });
            replay.total.push(total);
            replay.irreducible.push(irreducible);
            replay.uncertainty.push(uncertainty);
        }
        Ok(replay)
    }
}

impl Replay {
    /// What the policy the rows were replayed with, or one repriced from it, costs.
    ///
    /// Rows whose action is undetermined are counted as predicted: nothing is paid without a reason.
    ///
    /// # Errors
    /// If the policy is neither the one the rows were replayed with nor one repriced from it.
    pub fn evaluate(&self, policy: &Policy) -> Result<Evaluation> {
        self.check(policy)?;
        let task = policy.task();
        let names = action_names(task);
        let mut evaluation = Evaluation {
            rows: self.places.len(),
            loss: task.loss().to_string(),
            unit: task.loss().unit(),
            truth: if self.truth_known { "true" } else { "votes" },
            task: task.into(),
            mean_cost: Named::new(),
            standard_error: Named::new(),
            regret: Named::new(),
            shares: Named::new(),
            two_way: Named::new(),
            gain: Named::new(),
            curves: Named::new(),
            correlation: self.correlation(),
            support: Named::new(),
        };
        let mut add = |name: String, cost: &dyn Fn(usize) -> f64| {
            let (mean, error) = self.mean(cost);
            evaluation.mean_cost.push(name.clone(), mean);
            evaluation.standard_error.push(name, error);
            mean
        };
        let router = add("router".into(), &|row| self.cost(task, row, self.action(policy, row)));
        for (action, name) in names.iter().enumerate() {
            add(format!("always-{name}"), &|row| self.cost(task, row, action));
        }
        let best = self.best_by_group(task, names.len());
        let by_cell =
            add("cell-optimal".into(), &|row| self.cost(task, row, best[self.places[row].group as usize] as usize));
        let pointwise = add("pointwise-optimal".into(), &|row| self.least_cost(task, row, names.len()));
        evaluation.regret.push("cell-optimal", router - by_cell);
        evaluation.regret.push("pointwise-optimal", router - pointwise);

        for (action, name) in names.iter().enumerate() {
            evaluation
                .shares
                .push(name.clone(), self.share(|row| policy.code(self.places[row].source) == Some(action)));
        }
        let undetermined = self.share(|row| policy.code(self.places[row].source).is_none());
        if undetermined > 0.0 {
            evaluation.shares.push("undetermined", undetermined);
        }
        for (name, task) in
            [("predict/route", task.clone().without_abstaining()), ("predict/abstain", task.clone().without_routes())]
        {
            evaluation.two_way.push(name, self.mean_cost(&policy.reprice(&task)?));
        }
        self.rank(policy, &mut evaluation);
        for support in [crate::Support::Enough, crate::Support::Sparse, crate::Support::Empty] {
            let share = self.share(|row| policy.support(CellId(self.places[row].cell)) == support);
            evaluation.support.push(support.name(), share);
        }
        Ok(evaluation)
    }

    fn check(&self, policy: &Policy) -> Result<()> {
        if self.policy.shares_estimates(policy) {
            return Ok(());
        }
        Err(Error::Task("the rows were replayed with another router, loss or estimator: replay them again".into()))
    }

    /// Mean cost of a policy's decisions.
    pub(crate) fn mean_cost(&self, policy: &Policy) -> f64 {
        self.mean(&|row| self.cost(policy.task(), row, self.action(policy, row))).0
    }

    /// The action taken on a row: predict if the labels do not decide.
    fn action(&self, policy: &Policy, row: usize) -> usize {
        policy.code(self.places[row].source).unwrap_or(0)
    }

    /// What an action really costs on a row.
    fn cost(&self, task: &Task, row: usize, action: usize) -> f64 {
        match action {
            0 => self.total[row],
            action => match task.routes().get(action - 1) {
                Some(route) => self.irreducible[row] + route.price(),
                None => task.abstain_price().unwrap_or(f64::INFINITY),
            },
        }
    }

    fn least_cost(&self, task: &Task, row: usize, actions: usize) -> f64 {
        (0..actions).map(|action| self.cost(task, row, action)).fold(f64::INFINITY, f64::min)
    }

    /// The best single action of each group, known in hindsight.
    fn best_by_group(&self, task: &Task, actions: usize) -> Vec<u8> {
        let mut sums = vec![0.0; self.groups * actions];
        for (row, place) in self.places.iter().enumerate() {
            for action in 0..actions {
                sums[place.group as usize * actions + action] += self.weights[row] * self.cost(task, row, action);
            }
        }
        let best = |costs: &[f64]| (0..actions).min_by(|&a, &b| costs[a].total_cmp(&costs[b])).unwrap_or(0) as u8;
        sums.chunks_exact(actions).map(best).collect()
    }

    /// Weighted mean and its standard error.
    fn mean(&self, value: &dyn Fn(usize) -> f64) -> (f64, f64) {
        let (mut sum, mut weight) = (0.0, 0.0);
        for (row, w) in self.weights.iter().enumerate() {
            sum += w * value(row);
            weight += w;
        }
        let mean = sum / weight;
        let squares: f64 = self.weights.iter().enumerate().map(|(row, w)| (w * (value(row) - mean)).powi(2)).sum();
        (mean, squares.sqrt() / weight)
    }

    fn share(&self, holds: impl Fn(usize) -> bool) -> f64 {
        self.mean(&|row| f64::from(u8::from(holds(row)))).0
    }

    fn correlation(&self) -> Option<f64> {
        let reducible = |row: usize| self.total[row] - self.irreducible[row];
        let (a, b) = (self.mean(&reducible).0, self.mean(&|row| self.total[row]).0);
        let product = |x: &dyn Fn(usize) -> f64, y: &dyn Fn(usize) -> f64| self.mean(&|row| x(row) * y(row)).0;
        let (x, y) = (|row: usize| reducible(row) - a, |row: usize| self.total[row] - b);
        let scale = (product(&x, &x) * product(&y, &y)).sqrt();
        let bound = self.policy.task().loss().bound();
        (scale > (NEGLIGIBLE * bound).powi(2)).then(|| product(&x, &y) / scale)
    }

    /// Routing curves and gains of the rankings.
    fn rank(&self, policy: &Policy, evaluation: &mut Evaluation) {
        let reducible: Vec<f64> = self.total.iter().zip(&self.irreducible).map(|(t, i)| t - i).collect();
        let mut by_group = vec![(0.0, 0.0); self.groups];
        for (row, place) in self.places.iter().enumerate() {
            let (sum, weight) = &mut by_group[place.group as usize];
            *sum += self.weights[row] * reducible[row];
            *weight += self.weights[row];
        }
        let hindsight = |place: &Place| by_group[place.group as usize].0 / by_group[place.group as usize].1;
        // Where labels give only bounds, the middle of the bounds ranks.
        let estimated = |place: &Place| {
            let estimate = policy.estimate(place.source);
            estimate.total - estimate.irreducible_low.midpoint(estimate.irreducible_high)
        };
        let rankings: [(&str, Vec<f64>); 5] = [
            ("higher-order", self.places.iter().map(estimated).collect()),
            ("total-uncertainty", self.uncertainty.clone()),
            ("cell-optimal", self.places.iter().map(hindsight).collect()),
            ("pointwise-optimal", reducible.clone()),
            ("random", vec![0.0; reducible.len()]),
        ];
        let base = self.mean(&|row| self.total[row]).0;
        let rank = |scores: &[f64]| Ranking::new(scores, &reducible, &self.weights, base);
        let ranked: Vec<(&str, Ranking)> = rankings.par_iter().map(|(name, scores)| (*name, rank(scores))).collect();
        let (best, random) = (ranked[3].1.area(), ranked[4].1.area());
        for (name, ranking) in &ranked {
            let gain = (random - best > NEGLIGIBLE * policy.task().loss().bound())
                .then(|| (random - ranking.area()) / (random - best));
            evaluation.gain.push(*name, gain);
            evaluation.curves.push(*name, ranking.percentiles());
        }
    }
}

/// `predict`, `route:<name>` …, `abstain`.
pub(crate) fn action_names(task: &Task) -> Vec<String> {
    let mut names = vec!["predict".to_owned()];
    names.extend(task.routes().iter().map(|route| format!("route:{}", route.name())));
    names.extend(task.abstain_price().map(|_| "abstain".to_owned()));
    names
}
