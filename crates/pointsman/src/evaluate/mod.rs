//! Proof on held-out rows: what a policy costs, beside the alternatives and the best possible.

mod actions;
mod acts;
mod calibration;
mod cells;
mod corrected;
mod curve;
mod gain;
mod grid;
mod measure;
mod mixtures;
mod named;
mod rows;
mod savings;
mod sweep;
mod threshold;

use acts::Acts;
use rayon::prelude::*;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::estimate::{Column, RowLosses};
use crate::loss::CostMatrix;
use crate::oracle::Oracle;
use crate::partition::CellId;
use crate::policy::{Decisions, Policy, Surcharge};
use crate::router::label_free;
use crate::simplex::dot;
use crate::table::Table;
use crate::task::{Limit, Task};
pub use calibration::{CalibrationError, CellError};
pub use cells::{CellSummary, HeldOutCell};
use corrected::Corrected;
use curve::Ranking;
use gain::Won;
pub use grid::{GridRoute, PriceGrid};
pub use measure::{CellLosses, Correlations, Mean, RoutingCurve};
pub use mixtures::MixtureHistogram;
pub use named::Named;
pub(crate) use rows::RowCosts;
pub use savings::Saving;
pub use sweep::{Sweep, SweepAxis, SweepPoint};
pub(crate) use threshold::Thresholds;

/// Differences below this share of what a loss is rounded on are rounding.
const NEGLIGIBLE: f64 = 1e-12;

/// Folds of the held-out rows: thresholds that the router is compared with are chosen on all folds but the one they are judged on.
const FOLDS: usize = 5;

const FOLD_SEED: u64 = 0x7E57_F01D;

/// Held-out rows as a router sees them, with the losses they really have; prices do not enter.
///
/// A row's truth is its true label distribution if the table has it, otherwise its snapshot mean. What a panel loses on a row is
/// estimated from its labels without bias if they are enough, otherwise it is the loss under that truth. A measured oracle
/// is judged by its predictions in the held-out table.
#[derive(Debug, Clone)]
pub struct Replay {
    /// The estimates the rows were located with.
    policy: Policy,
    /// How they were decided; with a forest, the losses expected of each row.
    decisions: Decisions,
    places: Vec<Place>,
    groups: Vec<Group>,
    weights: Vec<f64>,
    /// Loss of the served prediction.
    total: Vec<f64>,
    /// Loss of the Bayes-optimal oracle.
    irreducible: Vec<f64>,
    /// Losses of the other oracles.
    oracles: RowLosses,
    /// The same with the bias of few labels taken out; none if the truth is known or labels do not tell.
    corrected: Option<Corrected>,
    /// Entropy of the served prediction.
    uncertainty: Vec<f64>,
    /// The fold of each row; none where nothing is compared.
    folds: Vec<u32>,
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

/// What the rows of one group amount to: prices enter only afterwards.
#[derive(Debug, Clone)]
struct Group {
    cell: u32,
    source: u32,
    /// Share of the rows, by weight.
    share: f64,
    total: f64,
    irreducible: f64,
    oracles: Vec<f64>,
    /// The losses of the oracles with the bias of few labels taken out, if they differ from those above.
    corrected: Option<(f64, Vec<f64>)>,
}

/// What costs are worked out by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// The truth as the table has it.
    Table,
    /// The same with the bias of few labels taken out, as far as it can be.
    Corrected,
    /// The same by another correction: as far as the two differ, labels leave open what is right.
    Alternative,
}

impl Group {
    /// What the oracles lose: the Bayes-optimal one, and the others.
    fn losses(&self, by: By) -> (f64, &[f64]) {
        match &self.corrected {
            Some((irreducible, oracles)) if by != By::Table => (*irreducible, oracles),
            _ => (self.irreducible, &self.oracles),
        }
    }

    /// What an oracle loses.
    fn at(&self, column: Column, by: By) -> f64 {
        let (irreducible, oracles) = self.losses(by);
        column.of(irreducible, |place| oracles[place])
    }

    /// What an action costs.
    fn cost(&self, policy: &Policy, action: usize, by: By) -> f64 {
        let (irreducible, oracles) = self.losses(by);
        policy.cost_of(action, self.total, irreducible, |place| oracles[place])
    }
}

/// The first of so many actions that costs the least.
fn best(actions: usize, cost: impl Fn(usize) -> f64) -> usize {
    (0..actions).min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(0)
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
    /// What the task's limit on routing comes to, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surcharge: Option<Surcharge>,
    /// Mean cost of `router`, `always-predict`, `always-route:<name>`, `always-abstain`, `cell-optimal` and
    /// `pointwise-optimal`.
    pub mean_cost: Named<f64>,
    /// Standard errors of the mean costs; one row has none.
    pub standard_error: Named<Option<f64>>,
    /// The mean costs with the bias of few labels taken out. A truth of few labels agrees with itself too well, so that
    /// routing looks cheaper in `mean_cost` than it is. Unknown where items carry one label each.
    pub corrected_cost: Option<Named<f64>>,
    /// Standard errors of the corrected costs: of the rows and their labels and, where no unbiased estimate exists, of how far two
    /// corrections differ. One row has none.
    pub corrected_standard_error: Option<Named<Option<f64>>>,
    /// What the router saves per query against each simple rule: `always-<action>`, and `best-threshold`, the best thresholds on the
    /// uncertainty of the prediction, halfway between those chosen on these rows and those chosen on others. From corrected costs; unknown
    /// where these are.
    pub savings: Option<Named<Saving>>,
    /// The mean costs that the labels do not tell: with one label an item nobody knows what an oracle who knows the truth would
    /// lose. They are then as if each label were the whole truth, and so are regrets and curves; gains are unknown.
    pub unidentified: Vec<String>,
    /// Cost above the best action a cell and above the best action a row. A forest decides row by row and may be below the
    /// first.
    pub regret: Named<f64>,
    /// There if the task limits routing: always routing and the best in hindsight do not keep to the limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub regret_ignores_limit: bool,
    /// The same with the bias of few labels taken out; unknown where that cannot be. The best action per cell is known in hindsight
    /// from these very rows: where cells have few of them, chance lets it look cheaper than it is.
    pub corrected_regret: Option<Named<f64>>,
    /// Standard errors of the corrected regrets.
    pub corrected_regret_standard_error: Option<Named<Option<f64>>>,
    /// Share of the rows that each action gets.
    pub shares: Named<f64>,
    /// Mean cost of the same router when it may only predict or route, or only predict or abstain; left out where a target loss
    /// cannot be reached so.
    pub two_way: Named<f64>,
    /// The same with the bias of few labels taken out; unknown where that cannot be.
    pub corrected_two_way: Option<Named<f64>>,
    /// Normalised gain of each ranking: 0 random, 1 point-wise optimal; unknown if routing gains nothing, or if items carry one
    /// label each.
    pub gain: Named<Option<f64>>,
    /// The gains with the bias of few labels taken out, which is what rankings are compared by; unknown where that cannot be. The best
    /// possible order is that of the rows' shrunken snapshots, or the best of the rankings if that saves more.
    pub corrected_gain: Option<Named<Option<f64>>>,
    /// Standard errors of the corrected gains.
    pub corrected_gain_standard_error: Option<Named<Option<f64>>>,
    /// Mean loss when the first 0 %, 1 %, … 100 % of each ranking are routed, prices left out.
    pub curves: Named<Vec<f64>>,
    /// The curves with the bias of few labels taken out; unknown where that cannot be.
    pub corrected_curves: Option<Named<Vec<f64>>>,
    /// Correlation of reducible and total loss over the rows: near 1, ranking by total uncertainty is as good. Unknown if items
    /// carry one label each.
    pub correlation: Option<f64>,
    /// Share of the rows whose own cell is empty, and of those whose cell is sparse.
    pub support: Named<f64>,
}

/// A task in words and numbers.
#[derive(Debug, Clone, Serialize)]
pub struct TaskSummary {
    /// The loss.
    pub loss: String,
    /// What each act costs under each class, if the loss has acts of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_matrix: Option<CostMatrix>,
    /// The estimator of the irreducible loss.
    pub estimator: String,
    /// Which action wins a tie.
    pub ties: String,
    /// The routes.
    pub routes: Vec<RouteSummary>,
    /// The price of abstaining, if it is allowed.
    pub abstain: Option<f64>,
    /// The share of the queries that may be routed, if it is limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<f64>,
    /// The expected loss that routing is to reach, if that limits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_loss: Option<f64>,
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

impl Evaluation {
    /// Whether what is concluded is concluded from corrected costs: with the truth known there is nothing to correct.
    #[must_use]
    pub fn is_corrected(&self) -> bool {
        self.truth == "votes" && self.corrected_cost.is_some()
    }

    /// Whether the labels tell a cost.
    #[must_use]
    pub fn is_identified(&self, name: &str) -> bool {
        !self.unidentified.iter().any(|other| other == name)
    }

    /// The costs to conclude from: the corrected ones if there are any, else the mean costs.
    #[must_use]
    pub fn best_costs(&self) -> &Named<f64> {
        self.corrected_cost.as_ref().filter(|_| self.is_corrected()).unwrap_or(&self.mean_cost)
    }

    /// The same of the regrets.
    #[must_use]
    pub fn best_regret(&self) -> &Named<f64> {
        self.corrected_regret.as_ref().filter(|_| self.is_corrected()).unwrap_or(&self.regret)
    }

    /// The same of the standard errors of the costs.
    #[must_use]
    pub fn best_standard_error(&self) -> &Named<Option<f64>> {
        self.corrected_standard_error.as_ref().filter(|_| self.is_corrected()).unwrap_or(&self.standard_error)
    }

    /// The same of the gains.
    #[must_use]
    pub fn best_gain(&self) -> &Named<Option<f64>> {
        self.corrected_gain.as_ref().filter(|_| self.is_corrected()).unwrap_or(&self.gain)
    }

    /// The same of the routing curves.
    #[must_use]
    pub fn best_curves(&self) -> &Named<Vec<f64>> {
        self.corrected_curves.as_ref().filter(|_| self.is_corrected()).unwrap_or(&self.curves)
    }

    /// The same of the costs of two actions only.
    #[must_use]
    pub fn best_two_way(&self) -> &Named<f64> {
        self.corrected_two_way.as_ref().filter(|_| self.is_corrected()).unwrap_or(&self.two_way)
    }
}

impl TaskSummary {
    /// Whether there is a budget or a target loss.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.budget.is_some() || self.target_loss.is_some()
    }

    /// Describes a task for predictions over these classes.
    #[must_use]
    pub fn new(task: &Task, classes: &[String]) -> Self {
        let route = |route: &crate::task::Route| RouteSummary {
            name: route.name().into(),
            kind: route.oracle().to_string(),
            cost: route.price(),
        };
        Self {
            loss: task.loss().to_string(),
            cost_matrix: task.loss().cost_matrix(classes),
            estimator: task.chosen_estimator().to_string(),
            ties: task.chosen_ties().to_string(),
            routes: task.routes().iter().map(route).collect(),
            abstain: task.abstain_price(),
            budget: task.limit().and_then(|limit| if let Limit::Budget(share) = limit { Some(share) } else { None }),
            target_loss: task.limit().and_then(|it| if let Limit::TargetLoss(loss) = it { Some(loss) } else { None }),
        }
    }
}

impl Policy {
    /// Decides held-out rows and works out what they really cost.
    ///
    /// # Errors
    /// If the table has no rows, neither votes nor truth, other classes, or lacks a feature or a measured oracle.
    pub fn replay(&self, table: &Table) -> Result<Replay> {
        let mut replay = self.replay_as_given(table)?;
        if !replay.truth_known {
            replay.corrected = Corrected::of(self, table, &replay.places, &replay.oracles)?;
        }
        replay.folds = label_free::folds(table, FOLDS, FOLD_SEED);
        replay.form_groups();
        Ok(replay)
    }

    /// The same without a correction of few labels, for rows whose losses are measured elsewhere.
    pub(crate) fn replay_as_given(&self, table: &Table) -> Result<Replay> {
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
        let decisions = self.decide_batch(table)?;
        let loss = self.task().loss();
        let classes = self.classes().len();
        let measure = |buffers: &mut (Vec<f64>, Vec<f64>, Vec<f64>), row: usize| {
            let (truth, served, losses) = buffers;
            let verdict = decisions.verdict(row);
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
        let buffers = || (vec![0.0; classes], vec![0.0; classes], vec![0.0; classes]);
        let rows: Vec<_> = (0..table.rows()).into_par_iter().with_min_len(1 << 10).map_init(buffers, measure).collect();
        let mut replay = Replay {
            policy: self.clone(),
            decisions,
            groups: Vec::new(),
            places: Vec::with_capacity(rows.len()),
            weights: (0..rows.len()).map(|row| table.weight(row)).collect(),
            total: Vec::with_capacity(rows.len()),
            irreducible: Vec::with_capacity(rows.len()),
            oracles: RowLosses::held_out(table, loss, self.asked())?,
            corrected: None,
            uncertainty: Vec::with_capacity(rows.len()),
            folds: Vec::new(),
            truth_known,
        };
        for (place, total, irreducible, uncertainty) in rows {
            replay.places.push(place);
            replay.total.push(total);
            replay.irreducible.push(irreducible);
            replay.uncertainty.push(uncertainty);
        }
        replay.number_groups();
        replay.form_groups();
        Ok(replay)
    }
}

impl Replay {
    /// What the policy the rows were replayed with, or one repriced from it, costs.
    ///
    /// Rows whose action is undetermined are counted as predicted or, if that is known to cost less, as abstained or sent to
    /// an oracle that was measured.
    ///
    /// # Errors
    /// If the policy is neither the one the rows were replayed with nor one repriced from it.
    pub fn evaluate(&self, policy: &Policy) -> Result<Evaluation> {
        self.check(policy)?;
        let task = policy.task();
        let names = task.action_names();
        let mut evaluation = Evaluation {
            rows: self.places.len(),
            loss: task.loss().to_string(),
            unit: task.loss().unit(),
            truth: if self.truth_known { "true" } else { "votes" },
            task: policy.task_summary(),
            surcharge: policy.surcharge(),
            mean_cost: Named::new(),
            standard_error: Named::new(),
            corrected_cost: None,
            corrected_standard_error: None,
            savings: None,
            unidentified: self.unidentified(policy, &names),
            regret: Named::new(),
            regret_ignores_limit: task.limit().is_some(),
            corrected_regret: None,
            corrected_regret_standard_error: None,
            shares: Named::new(),
            two_way: self.two_way(policy, task, By::Table)?,
            corrected_two_way: None,
            gain: Named::new(),
            corrected_gain: None,
            corrected_gain_standard_error: None,
            curves: Named::new(),
            corrected_curves: None,
            correlation: self.correlation().filter(|_| self.tells_noise()),
            support: Named::new(),
        };
        let acts = self.acts(policy);
        let mut add = |name: String, mean: f64, cost: &dyn Fn(usize) -> f64| {
            evaluation.mean_cost.push(name.clone(), mean);
            evaluation.standard_error.push(name, self.mean(cost).1);
        };
        // Means by groups where there is one action a group, as everywhere; rows are needed for the standard errors only.
        let router = acts.mean_cost(By::Table);
        add("router".into(), router, &|row| acts.cost(row, By::Table));
        for (action, name) in names.iter().enumerate() {
            let mean = self.always(policy, action, By::Table);
            add(format!("always-{name}"), mean, &|row| self.cost(policy, row, action, By::Table));
        }
        let by_cell = self.cell_optimal(policy, By::Table);
        let in_hindsight = |group: &Group| best(names.len(), |action| group.cost(policy, action, By::Table));
        let actions: Vec<usize> = self.groups.iter().map(in_hindsight).collect();
        let group_of = |row: usize| self.places[row].group as usize;
        add("cell-optimal".into(), by_cell, &|row| self.cost(policy, row, actions[group_of(row)], By::Table));
        let (pointwise, error) = self.mean(&|row| self.least_cost(policy, row, names.len()));
        evaluation.mean_cost.push("pointwise-optimal", pointwise);
        evaluation.standard_error.push("pointwise-optimal", error);
        evaluation.regret.push("cell-optimal", router - by_cell);
        evaluation.regret.push("pointwise-optimal", router - pointwise);

        if self.is_correctable() {
            self.add_corrected_costs(policy, &names, &acts, &mut evaluation)?;
        }
        evaluation.shares = self.shares(policy, &names);
        self.rank(policy, &mut evaluation);
        for support in [crate::Support::Enough, crate::Support::Sparse, crate::Support::Empty] {
            let share = self.share(|group| policy.support(CellId(group.cell)) == support);
            evaluation.support.push(support.name(), share);
        }
        Ok(evaluation)
    }

    /// Costs, regrets and savings with the bias of few labels taken out, each with its standard error.
    fn add_corrected_costs(
        &self,
        policy: &Policy,
        names: &[String],
        acts: &Acts<'_>,
        evaluation: &mut Evaluation,
    ) -> Result<()> {
        let rows = |cost: &dyn Fn(usize, By) -> f64| self.each_row(cost);
        let router = rows(&|row, by| acts.cost(row, by));
        let in_hindsight = |group: &Group| best(names.len(), |action| group.cost(policy, action, By::Corrected));
        let actions: Vec<usize> = self.groups.iter().map(in_hindsight).collect();
        let by_cell = rows(&|row, by| self.cost(policy, row, actions[self.places[row].group as usize], by));
        let by_row = rows(&|row, by| self.least_cost_by(policy, row, by));
        let always: Vec<(String, [Vec<f64>; 2])> = (0..names.len())
            .map(|action| (format!("always-{}", names[action]), rows(&|row, by| self.cost(policy, row, action, by))))
            .collect();
        let optima = [("cell-optimal", &by_cell), ("pointwise-optimal", &by_row)];
        // Means by groups where there is one action per group, as everywhere; rows are needed for the standard errors only.
        let mut costs = Named::new();
        costs.push("router", acts.mean_cost(By::Corrected));
        self.compare(policy, names, By::Corrected, &mut costs);
        costs.push("pointwise-optimal", self.mean(&|row| by_row[0][row]).0);
        let mut errors = Named::new();
        let rules = always.iter().map(|(name, rows)| (name.as_str(), rows)).chain(optima);
        for (name, rows) in [("router", &router)].into_iter().chain(rules) {
            errors.push(name, self.mean_and_error(rows).1);
        }
        let (mut regret, mut regret_errors) = (Named::new(), Named::new());
        for (name, rows) in optima {
            let (mean, error) = self.mean_and_error(&minus(&router, rows));
            regret.push(name, mean);
            regret_errors.push(name, error);
        }
        let mut savings = Named::new();
        let threshold = self.best_threshold(policy, acts);
        let rivals = always.iter().map(|(name, rows)| (name.as_str(), rows));
        for (name, rows) in rivals.chain(threshold.as_ref().map(|rows| ("best-threshold", rows))) {
            savings.push(name, Saving::of(self, rows, &router));
        }
        evaluation.corrected_cost = Some(costs);
        evaluation.corrected_standard_error = Some(errors);
        evaluation.corrected_regret = Some(regret);
        evaluation.corrected_regret_standard_error = Some(regret_errors);
        evaluation.savings = Some(savings);
        evaluation.corrected_two_way = Some(self.two_way(policy, policy.task(), By::Corrected)?);
        Ok(())
    }

    /// A value per row, corrected and by the other correction.
    fn each_row(&self, value: &dyn Fn(usize, By) -> f64) -> [Vec<f64>; 2] {
        [By::Corrected, By::Alternative].map(|by| (0..self.places.len()).map(|row| value(row, by)).collect())
    }

    /// The corrected mean and its standard error: of the rows, and as far as the two corrections differ.
    fn mean_and_error(&self, [rows, alternative]: &[Vec<f64>; 2]) -> (f64, Option<f64>) {
        let (mean, error) = self.mean(&|row| rows[row]);
        let open = self.mean(&|row| alternative[row]).0 - mean;
        (mean, error.map(|error| error.hypot(open)))
    }

    fn check(&self, policy: &Policy) -> Result<()> {
        if self.policy.shares_estimates(policy) {
            return Ok(());
        }
        Err(Error::Task(
            "the rows were replayed with another router, loss, estimator or oracles: replay them again".into(),
        ))
    }

    /// Numbers the groups of rows that are treated alike.
    fn number_groups(&mut self) {
        let mut codes: Vec<u32> = self.places.iter().map(|place| place.group).collect();
        codes.sort_unstable();
        codes.dedup();
        for place in &mut self.places {
            place.group = codes.binary_search(&place.group).unwrap_or(0) as u32;
        }
    }

    /// Means over the rows that are treated alike.
    fn form_groups(&mut self) {
        let count = self.places.iter().map(|place| place.group as usize + 1).max().unwrap_or(0);
        let mut members = vec![Vec::new(); count];
        self.places.iter().enumerate().for_each(|(row, place)| members[place.group as usize].push(row));
        let all = sum(self.weights.iter().copied());
        let form = |rows: &Vec<usize>| {
            let Place { cell, source, .. } = self.places[rows[0]];
            let weight = sum(rows.iter().map(|&row| self.weights[row]));
            let mean = |values: &[f64]| sum(rows.iter().map(|&row| self.weights[row] * values[row])) / weight;
            Group {
                cell,
                source,
                share: weight / all,
                total: mean(&self.total),
                irreducible: mean(&self.irreducible),
                oracles: self.oracles.columns().iter().map(|losses| mean(losses)).collect(),
                corrected: self.corrected.as_ref().map(|corrected| {
                    let oracles = corrected.oracles.iter().map(|losses| mean(losses)).collect();
                    (mean(&corrected.irreducible), oracles)
                }),
            }
        };
        self.groups = members.par_iter().map(form).collect();
    }

    /// Whether the bias of few labels can be taken out at every confidence.
    fn is_correctable(&self) -> bool {
        self.truth_known || self.corrected.as_ref().is_some_and(|corrected| corrected.all_identified)
    }

    /// Whether the labels of at least half of the rows tell noise from error.
    fn tells_noise(&self) -> bool {
        self.truth_known || self.corrected.is_some()
    }

    /// The Bayes-optimal oracle's loss on a row.
    fn irreducible_at(&self, row: usize, by: By) -> f64 {
        match (by, &self.corrected) {
            (By::Corrected, Some(corrected)) => corrected.irreducible[row],
            (By::Alternative, Some(corrected)) => corrected.alternative[row],
            _ => self.irreducible[row],
        }
    }

    /// The mean costs that the labels do not tell.
    fn unidentified(&self, policy: &Policy, names: &[String]) -> Vec<String> {
        if self.tells_noise() {
            return Vec::new();
        }
        // One label judges a prediction, that of a measured oracle too, but not one who knows the truth.
        let routes = policy.task().routes();
        let unknown = |action: usize| {
            action > 0 && routes.get(action - 1).is_some_and(|route| *route.oracle() != Oracle::Measured)
        };
        let always =
            (0..names.len()).filter(|&action| unknown(action)).map(|action| format!("always-{}", names[action]));
        let always: Vec<String> = always.collect();
        let router = self.acts(policy).share_of(unknown) > 0.0;
        let by_cell = !always.is_empty();
        let named = |name: &str, unknown: bool| unknown.then(|| name.to_owned());
        let optima = named("cell-optimal", by_cell).into_iter().chain(named("pointwise-optimal", true));
        named("router", router).into_iter().chain(always).chain(optima).collect()
    }

    /// What conclusions are drawn by.
    fn best_basis(&self) -> By {
        if self.is_correctable() && !self.truth_known { By::Corrected } else { By::Table }
    }

    /// Mean cost of one action always.
    fn always(&self, policy: &Policy, action: usize, by: By) -> f64 {
        sum(self.groups.iter().map(|group| group.share * group.cost(policy, action, by)))
    }

    /// Mean cost of the best action a group, known in hindsight.
    fn cell_optimal(&self, policy: &Policy, by: By) -> f64 {
        let actions = policy.task().actions();
        let least = |group: &Group| group.cost(policy, best(actions, |action| group.cost(policy, action, by)), by);
        sum(self.groups.iter().map(|group| group.share * least(group)))
    }

    /// Adds the costs of always doing the same and of the best action a cell.
    fn compare(&self, policy: &Policy, names: &[String], by: By, costs: &mut Named<f64>) {
        for (action, name) in names.iter().enumerate() {
            costs.push(format!("always-{name}"), self.always(policy, action, by));
        }
        costs.push("cell-optimal", self.cell_optimal(policy, by));
    }

    /// Mean costs of the same router allowed two actions only, as far as they reach a target loss.
    fn two_way(&self, policy: &Policy, task: &Task, by: By) -> Result<Named<f64>> {
        let mut costs = Named::new();
        for (name, task) in
            [("predict/route", task.clone().without_abstaining()), ("predict/abstain", task.clone().without_routes())]
        {
            match policy.reprice(&task) {
                Err(Error::OutOfReach { .. }) => {}
                allowed => costs.push(name, self.acts(&allowed?).mean_cost(by)),
            }
        }
        Ok(costs)
    }

    /// The share of the rows that each action gets; `undetermined` only if there are any.
    fn shares(&self, policy: &Policy, names: &[String]) -> Named<f64> {
        let (mut shares, acts) = (Named::new(), self.acts(policy));
        for (action, name) in names.iter().enumerate() {
            shares.push(name.clone(), acts.decided_share_of(action));
        }
        let undetermined = acts.undecided_share();
        if undetermined > 0.0 {
            shares.push("undetermined", undetermined);
        }
        shares
    }

    /// What an action really costs on a row.
    fn cost(&self, policy: &Policy, row: usize, action: usize, by: By) -> f64 {
        let oracles = match &self.corrected {
            Some(corrected) if by != By::Table => &corrected.oracles,
            _ => self.oracles.columns(),
        };
        policy.cost_of(action, self.total[row], self.irreducible_at(row, by), |place| oracles[place][row])
    }

    /// What the cheapest action on a row costs, known in hindsight. Corrected, by the row's shrunken snapshot: the least of several
    /// estimates that carry the noise of a row's few labels would be too little.
    fn least_cost_by(&self, policy: &Policy, row: usize, by: By) -> f64 {
        let actions = policy.task().actions();
        let Some(Corrected { smooth, .. }) = self.corrected.as_ref().filter(|_| by != By::Table) else {
            return self.least_cost(policy, row, actions);
        };
        let own = |place: usize| smooth.oracles.columns()[place][row];
        let cost = |action: usize| policy.cost_of(action, smooth.total[row], smooth.irreducible[row], own);
        (0..actions).map(cost).fold(f64::INFINITY, f64::min)
    }

    /// Weighted mean and its standard error, which one row does not tell.
    fn mean(&self, value: &dyn Fn(usize) -> f64) -> (f64, Option<f64>) {
        let weight = sum(self.weights.iter().copied());
        let mean = sum(self.weights.iter().enumerate().map(|(row, w)| w * value(row))) / weight;
        let squares: f64 = self.weights.iter().enumerate().map(|(row, w)| (w * (value(row) - mean)).powi(2)).sum();
        let several = self.weights.iter().filter(|&&weight| weight > 0.0).nth(1).is_some();
        (mean, several.then(|| squares.sqrt() / weight))
    }

    /// The share of the rows in groups of which something holds.
    fn share(&self, holds: impl Fn(&Group) -> bool) -> f64 {
        sum(self.groups.iter().filter(|group| holds(group)).map(|group| group.share)).min(1.0)
    }

    /// Below this, differences of losses are rounding.
    fn negligible(&self) -> f64 {
        NEGLIGIBLE * self.policy.task().loss().rounding().max(self.mean(&|row| self.total[row]).0)
    }

    fn least_cost(&self, policy: &Policy, row: usize, actions: usize) -> f64 {
        (0..actions).map(|action| self.cost(policy, row, action, By::Table)).fold(f64::INFINITY, f64::min)
    }

    fn correlation(&self) -> Option<f64> {
        let reducible = |row: usize| self.total[row] - self.irreducible[row];
        let (a, b) = (self.mean(&reducible).0, self.mean(&|row| self.total[row]).0);
        let product = |x: &dyn Fn(usize) -> f64, y: &dyn Fn(usize) -> f64| self.mean(&|row| x(row) * y(row)).0;
        let (x, y) = (|row: usize| reducible(row) - a, |row: usize| self.total[row] - b);
        let scale = (product(&x, &x) * product(&y, &y)).sqrt();
        (scale > self.negligible().powi(2)).then(|| product(&x, &y) / scale)
    }

    /// Routing curves and gains of the rankings.
    fn rank(&self, policy: &Policy, evaluation: &mut Evaluation) {
        let reducible = self.reducible();
        // Cells that differ by rounding only are tied.
        let step = self.negligible();
        let tied = |score: f64| if step > 0.0 { (score / step).round() * step } else { score };
        let hindsight = |place: &Place| {
            let group = &self.groups[place.group as usize];
            tied(group.total - group.irreducible)
        };
        // Where labels give only bounds, the middle of the bounds ranks.
        let estimated = |(row, place): (usize, &Place)| {
            let (total, [low, high]) = match self.decisions.losses(row) {
                Some(losses) => (losses.total(), losses.irreducible()),
                None => {
                    let estimate = policy.estimate(place.source);
                    (estimate.total, [estimate.irreducible_low, estimate.irreducible_high])
                }
            };
            tied(total - low.midpoint(high))
        };
        let rankings: [(&str, Vec<f64>); 5] = [
            ("higher-order", self.places.iter().enumerate().map(estimated).collect()),
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
            let gain =
                (random - best > step && self.tells_noise()).then(|| (random - ranking.area()) / (random - best));
            evaluation.gain.push(*name, gain);
            evaluation.curves.push(*name, ranking.percentiles());
        }
        if self.is_correctable() {
            self.rank_corrected(rankings, step, evaluation);
        }
    }

    /// Curves and gains of the rankings with the bias of few labels taken out.
    fn rank_corrected(&self, mut rankings: [(&str, Vec<f64>); 5], step: f64, evaluation: &mut Evaluation) {
        let weights = &self.weights;
        let saved: Vec<f64> =
            (0..weights.len()).map(|row| self.total[row] - self.irreducible_at(row, By::Corrected)).collect();
        if let Some(Corrected { smooth, .. }) = &self.corrected {
            let of_cells: Vec<f64> =
                self.groups.iter().map(|group| group.total - group.losses(By::Corrected).0).collect();
            rankings[2].1 = self.places.iter().map(|place| of_cells[place.group as usize]).collect();
            rankings[3].1 = smooth.total.iter().zip(&smooth.irreducible).map(|(total, lost)| total - lost).collect();
        }
        let base = self.mean(&|row| self.total[row]).0;
        // The best order is judged by what it ranks by: single rows' own labels are mostly noise.
        let saved_by = |place: usize| if place == 3 { &rankings[3].1 } else { &saved };
        let won: Vec<Won> =
            (0..rankings.len()).map(|place| Won::new(&rankings[place].1, saved_by(place), weights)).collect();
        let best = won.iter().max_by(|a, b| a.area.total_cmp(&b.area)).filter(|best| best.area > step);
        let (mut gains, mut errors, mut curves) = (Named::new(), Named::new(), Named::new());
        for (place, (name, scores)) in rankings.iter().enumerate() {
            // Whichever order saves most counts as the best possible.
            let own = if place == 3 { best } else { Some(&won[place]) };
            let part = own.zip(best).map(|(own, best)| own.part_of(best, weights));
            gains.push(*name, part.map(|(part, _)| part));
            errors.push(*name, part.map(|(_, error)| error));
            curves.push(*name, Ranking::new(scores, saved_by(place), weights, base).percentiles());
        }
        evaluation.corrected_gain = Some(gains);
        evaluation.corrected_gain_standard_error = Some(errors);
        evaluation.corrected_curves = Some(curves);
    }
}

/// The differences of two rules, row by row.
fn minus(one: &[Vec<f64>; 2], two: &[Vec<f64>; 2]) -> [Vec<f64>; 2] {
    [0, 1].map(|by| one[by].iter().zip(&two[by]).map(|(a, b)| a - b).collect())
}

/// A sum that loses nothing to rounding but the last digit (Neumaier).
fn sum(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
    for value in values {
        let next = sum + value;
        lost += if sum.abs() >= value.abs() { (sum - next) + value } else { (value - next) + sum };
        sum = next;
    }
    sum + lost
}
