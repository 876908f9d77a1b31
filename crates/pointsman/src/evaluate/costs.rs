//! Costs of a policy and of simple rules, regrets and savings.

use super::corrected::Corrected;
use super::replay::{Basis, Group, Replay, best, minus, sum};
use super::savings::Priced;
use super::taken_actions::TakenActions;
use super::{Evaluation, LossReached, Saving, Truth};
use crate::error::{Error, Result};
use crate::oracle::Oracle;
use crate::partition::CellId;
use crate::policy::Policy;
use crate::router::Support;
use crate::task::{Limit, Named, Task};

/// The labels of each row say at least what the best possible decisions cost. If a model adds more standard errors than this, the estimate is the
/// model's guess: it has no standard error.
const MAX_OPEN_STANDARD_ERRORS: f64 = 4.0;

impl Replay {
    /// Evaluates the policy that the rows were replayed with, or one repriced from it.
    ///
    /// Rows whose action is undetermined count as predicted or, if that is known to cost less, as abstained or routed to a measured oracle.
    ///
    /// # Errors
    /// If the policy is neither the one the rows were replayed with nor one repriced from it.
    pub fn evaluate(&self, policy: &Policy) -> Result<Evaluation> {
        self.check(policy)?;
        let task = policy.task();
        let names = task.action_names();
        let mut evaluation = self.without_costs(policy, &names)?;
        let taken = self.taken_actions(policy);
        evaluation.regret_ignores_limit = task.limit().is_some() || taken.is_capped();
        self.add_costs(policy, &names, &taken, &mut evaluation);
        if matches!(task.limit(), Some(Limit::TargetLoss(_))) {
            evaluation.loss_reached = Some(self.loss_reached(task, &taken));
        }
        if self.is_correctable() {
            self.add_corrected_costs(policy, &names, &taken, &mut evaluation)?;
        }
        (evaluation.caps, evaluation.capped) = self.use_of_caps(policy, &taken);
        evaluation.shares = self.shares(policy, &names);
        self.rank(&mut evaluation);
        for support in [Support::Enough, Support::Sparse, Support::Empty] {
            let share = self.share(|group| policy.support(CellId(group.cell)) == support);
            evaluation.support.push(support.name(), share);
        }
        Ok(evaluation)
    }

    /// An evaluation in which the costs, shares, rankings and what depends on the actions are still empty.
    fn without_costs(&self, policy: &Policy, names: &[String]) -> Result<Evaluation> {
        let task = policy.task();
        Ok(Evaluation {
            rows: self.places.len(),
            loss: task.loss().to_string(),
            unit: task.loss().unit(),
            truth: if self.truth_known { Truth::Known } else { Truth::Votes },
            task: policy.task_summary(),
            surcharge: policy.surcharge(),
            loss_reached: None,
            caps: Vec::new(),
            capped: None,
            mean_cost: Named::new(),
            standard_error: Named::new(),
            corrected_cost: None,
            corrected_standard_error: None,
            corrected_identified: Named::new(),
            savings: None,
            unidentified: self.unidentified(policy, names),
            regret: Named::new(),
            regret_ignores_limit: false,
            corrected_regret: None,
            corrected_regret_standard_error: None,
            shares: Named::new(),
            two_way: self.two_way(policy, task, Basis::Table)?,
            corrected_two_way: None,
            gain: Named::new(),
            corrected_gain: None,
            corrected_gain_standard_error: None,
            curves: Named::new(),
            corrected_curves: None,
            correlation: self.correlation().filter(|_| self.separates_noise()),
            support: Named::new(),
        })
    }

    /// Adds the mean costs of the router, constant actions and the optima, with standard errors and regrets.
    fn add_costs(&self, policy: &Policy, names: &[String], taken: &TakenActions<'_>, evaluation: &mut Evaluation) {
        let mut add = |name: String, mean: f64, cost: &dyn Fn(usize) -> f64| {
            evaluation.mean_cost.push(name.clone(), mean);
            evaluation.standard_error.push(name, self.mean(cost).standard_error);
        };
        // Means are computed by group if all rows of a group have one action; rows are needed for the standard errors only.
        let router = taken.mean_cost(Basis::Table);
        add("router".into(), router, &|row| taken.cost(row, Basis::Table) + taken.price_of_cap(row));
        for (action, name) in names.iter().enumerate() {
            let mean = self.always(policy, action, Basis::Table);
            add(format!("always-{name}"), mean, &|row| self.cost(policy, row, action, Basis::Table));
        }
        let by_cell = self.cell_optimal(policy, Basis::Table);
        let in_hindsight = |group: &Group| best(names.len(), |action| group.cost(policy, action, Basis::Table));
        let actions: Vec<usize> = self.groups.iter().map(in_hindsight).collect();
        let group_of = |row: usize| self.places[row].group as usize;
        add("cell-optimal".into(), by_cell, &|row| self.cost(policy, row, actions[group_of(row)], Basis::Table));
        let pointwise = self.mean(&|row| self.least_cost(policy, row, names.len()));
        evaluation.mean_cost.push("pointwise-optimal", pointwise.mean);
        evaluation.standard_error.push("pointwise-optimal", pointwise.standard_error);
        evaluation.regret.push("cell-optimal", router - by_cell);
        evaluation.regret.push("pointwise-optimal", router - pointwise.mean);
    }

    /// The loss of the actions on these rows, without the prices of routes.
    fn loss_reached(&self, task: &Task, taken: &TakenActions<'_>) -> LossReached {
        let price = |action: usize| task.routes().get(action.wrapping_sub(1)).map_or(0.0, |route| route.price());
        let loss = |row: usize, by: Basis| taken.cost(row, by) - taken.action(row).mean(price);
        // The price of a cap is what a query saves there less the price of the route, so that both together are what it saves of the loss.
        let saved = |row: usize| {
            taken.action(row).mean(|action| match taken.price_of_cap_on(row, action) {
                0.0 => 0.0,
                price_of_cap => price_of_cap + price(action) * taken.weight_of_displaced(row),
            })
        };
        let with_saved = |row: usize, by: Basis| loss(row, by) + saved(row);
        let corrected = (!self.truth_known && self.is_correctable()).then(|| self.each_row(&loss));
        let error = || self.corrected_mean(&self.each_row(&with_saved)).standard_error;
        LossReached {
            mean: self.mean(&|row| loss(row, Basis::Table)).mean,
            standard_error: self.mean(&|row| with_saved(row, Basis::Table)).standard_error,
            corrected: corrected.as_ref().map(|rows| self.corrected_mean(rows).mean),
            corrected_standard_error: corrected.as_ref().and_then(|_| error()),
        }
    }

    /// Adds costs, regrets and savings corrected for the bias of few labels, each with its standard error.
    fn add_corrected_costs(
        &self,
        policy: &Policy,
        names: &[String],
        taken: &TakenActions<'_>,
        evaluation: &mut Evaluation,
    ) -> Result<()> {
        let rows = |cost: &dyn Fn(usize, Basis) -> f64| self.each_row(cost);
        let router = rows(&|row, by| taken.cost(row, by));
        let priced = taken.with_prices_of_caps(&router);
        let in_hindsight = |group: &Group| best(names.len(), |action| group.cost(policy, action, Basis::Corrected));
        let actions: Vec<usize> = self.groups.iter().map(in_hindsight).collect();
        let by_cell = rows(&|row, by| self.cost(policy, row, actions[self.places[row].group as usize], by));
        let by_row = self.least_costs(policy);
        let always: Vec<(String, [Vec<f64>; 2])> = (0..names.len())
            .map(|action| (format!("always-{}", names[action]), rows(&|row, by| self.cost(policy, row, action, by))))
            .collect();
        let optima = [("cell-optimal", &by_cell), ("pointwise-optimal", &by_row)];
        // Means are computed by group if all rows of a group have one action; rows are needed for the standard errors only.
        let mut costs = Named::new();
        costs.push("router", taken.mean_cost(Basis::Corrected));
        self.compare(policy, names, Basis::Corrected, &mut costs);
        // No rule costs less than the best possible one: an estimate above another rule's cost is lowered to that. It is wrong by at least the
        // difference, which is part of the standard errors.
        let least = costs.iter().map(|(_, &cost)| cost).fold(f64::INFINITY, f64::min);
        let estimate = self.mean(&|row| by_row[0][row]).mean;
        let excess = (estimate - least).max(0.0);
        costs.push("pointwise-optimal", estimate.min(least));
        let bounds = (!self.truth_known).then(|| self.bounds_of_least_cost(policy, least));
        let with_excess = |name: &str, error: Option<f64>| match (name, bounds) {
            ("pointwise-optimal", Some([low, _])) => {
                let added = estimate.min(least) - low;
                error.map(|error| error.hypot(excess)).filter(|error| added <= MAX_OPEN_STANDARD_ERRORS * error)
            }
            _ => error,
        };
        let mut errors = Named::new();
        let rules = always.iter().map(|(name, rows)| (name.as_str(), rows)).chain(optima);
        for (name, rows) in [("router", &priced)].into_iter().chain(rules) {
            errors.push(name, with_excess(name, self.corrected_mean(rows).standard_error));
        }
        let (mut regret, mut regret_errors) = (Named::new(), Named::new());
        for (name, rows) in optima {
            let mean = self.corrected_mean(&minus(&router, rows)).mean;
            let standard_error = self.corrected_mean(&minus(&priced, rows)).standard_error;
            let own = costs.get("router").zip(costs.get(name)).map(|(router, best)| router - best);
            regret.push(name, own.filter(|_| name == "pointwise-optimal").unwrap_or(mean));
            regret_errors.push(name, with_excess(name, standard_error));
        }
        evaluation.corrected_identified = self.identified_costs(policy, names, taken, &actions, &costs);
        if let Some(bounds) = bounds {
            evaluation.corrected_identified.push("pointwise-optimal", bounds);
        }
        evaluation.corrected_cost = Some(costs);
        evaluation.corrected_standard_error = Some(errors);
        evaluation.corrected_regret = Some(regret);
        evaluation.corrected_regret_standard_error = Some(regret_errors);
        evaluation.savings = Some(self.savings(policy, taken, Priced { rows: &router, priced: &priced }, &always)?);
        evaluation.corrected_two_way = Some(self.two_way(policy, policy.task(), Basis::Corrected)?);
        Ok(())
    }

    /// The router's savings over constant actions and over the best thresholds, from corrected costs of each row.
    fn savings(
        &self,
        policy: &Policy,
        taken: &TakenActions<'_>,
        router: Priced<'_>,
        always: &[(String, [Vec<f64>; 2])],
    ) -> Result<Named<Saving>> {
        let mut savings = Named::new();
        let router_part = |row: usize| taken.action(row).mean(|action| policy.bayes_part(action));
        for (action, (name, rows)) in always.iter().enumerate() {
            let parts: [&dyn Fn(usize) -> f64; 2] = [&|_| policy.bayes_part(action), &router_part];
            savings.push(name, Saving::new(self, Priced { rows, priced: rows }, router, 0.0, parts));
        }
        if let Some(threshold) = self.best_threshold(policy, taken)? {
            let parts: [&dyn Fn(usize) -> f64; 2] = [&|row| threshold.bayes_parts[row], &router_part];
            let rule = Priced { rows: &threshold.rows, priced: &threshold.priced };
            savings.push("best-threshold", Saving::new(self, rule, router, threshold.open, parts));
        }
        Ok(savings)
    }

    /// The bounds on corrected costs that labels identify; `in_hindsight` is the best action of each group.
    fn identified_costs(
        &self,
        policy: &Policy,
        names: &[String],
        taken: &TakenActions<'_>,
        in_hindsight: &[usize],
        costs: &Named<f64>,
    ) -> Named<[f64; 2]> {
        let mut identified = Named::new();
        let mut add = |name: &str, bayes_part: &dyn Fn(usize) -> f64| {
            if let (Some(open), Some(cost)) = (self.open(bayes_part), costs.get(name)) {
                identified.push(name, open.map(|end| cost + end));
            }
        };
        add("router", &|row| taken.action(row).mean(|action| policy.bayes_part(action)));
        for (action, name) in names.iter().enumerate() {
            add(&format!("always-{name}"), &|_| policy.bayes_part(action));
        }
        add("cell-optimal", &|row| policy.bayes_part(in_hindsight[self.places[row].group as usize]));
        identified
    }

    /// The distances of the identified bounds from the corrected value of a mean cost, below and above, due to the irreducible loss.
    /// `bayes_part` is the part of each row that is routed to a Bayes-optimal oracle.
    pub(super) fn open(&self, bayes_part: &dyn Fn(usize) -> f64) -> Option<[f64; 2]> {
        let Corrected { votes, irreducible, .. } = self.corrected.as_ref()?;
        let rows: Vec<(usize, f64, f64)> =
            (0..self.places.len()).map(|row| (row, self.weights[row] * bayes_part(row), irreducible[row])).collect();
        votes.as_ref()?.open(&rows, sum(self.weights.iter().copied()), self.policy.task().loss())
    }

    /// The bounds on the difference of two rules' mean costs that labels identify; `None` if it is identified exactly. `bayes_part` is the part
    /// of each row that the first rule routes to a Bayes-optimal oracle minus that of the second.
    pub(super) fn identify_difference(&self, estimate: f64, bayes_part: &dyn Fn(usize) -> f64) -> Option<[f64; 2]> {
        // Rows that only the first rule routes and rows that only the second routes have independent bounds.
        let [more, less] =
            [1.0, -1.0].map(|sign| self.open(&|row| (sign * bayes_part(row)).max(0.0)).unwrap_or([0.0; 2]));
        let identified = [estimate + more[0] - less[1], estimate + more[1] - less[0]];
        Some(identified).filter(|[low, high]| low < high)
    }

    /// The names of the mean costs that the labels do not identify.
    pub(super) fn unidentified(&self, policy: &Policy, names: &[String]) -> Vec<String> {
        if self.separates_noise() {
            return Vec::new();
        }
        // One label identifies the loss of a prediction or of a measured oracle, but not of a Bayes-optimal oracle.
        let routes = policy.task().routes();
        let unknown = |action: usize| {
            action > 0 && routes.get(action - 1).is_some_and(|route| *route.oracle() != Oracle::Measured)
        };
        let always =
            (0..names.len()).filter(|&action| unknown(action)).map(|action| format!("always-{}", names[action]));
        let always: Vec<String> = always.collect();
        let router = self.taken_actions(policy).share_of(unknown) > 0.0;
        let by_cell = !always.is_empty();
        let named = |name: &str, unknown: bool| unknown.then(|| name.to_owned());
        let optima = named("cell-optimal", by_cell).into_iter().chain(named("pointwise-optimal", true));
        named("router", router).into_iter().chain(always).chain(optima).collect()
    }

    /// The mean cost of the best action per group, chosen in hindsight.
    pub(super) fn cell_optimal(&self, policy: &Policy, by: Basis) -> f64 {
        let actions = policy.task().actions();
        let least = |group: &Group| group.cost(policy, best(actions, |action| group.cost(policy, action, by)), by);
        sum(self.groups.iter().map(|group| group.share * least(group)))
    }

    /// Adds the costs of constant actions and of the best action per cell.
    pub(super) fn compare(&self, policy: &Policy, names: &[String], by: Basis, costs: &mut Named<f64>) {
        for (action, name) in names.iter().enumerate() {
            costs.push(format!("always-{name}"), self.always(policy, action, by));
        }
        costs.push("cell-optimal", self.cell_optimal(policy, by));
    }

    /// Mean costs of the same router restricted to two actions, if it still reaches a target loss.
    pub(super) fn two_way(&self, policy: &Policy, task: &Task, by: Basis) -> Result<Named<f64>> {
        let mut costs = Named::new();
        for (name, task) in
            [("predict/route", task.clone().without_abstaining()), ("predict/abstain", task.clone().without_routes())]
        {
            match policy.reprice(&task) {
                Err(Error::OutOfReach { .. }) => {}
                allowed => costs.push(name, self.taken_actions(&allowed?).mean_cost(by)),
            }
        }
        Ok(costs)
    }

    /// The share of the rows that gets each action; `undetermined` only if there are any.
    pub(super) fn shares(&self, policy: &Policy, names: &[String]) -> Named<f64> {
        let (mut shares, taken) = (Named::new(), self.taken_actions(policy));
        for (action, name) in names.iter().enumerate() {
            shares.push(name.clone(), taken.decided_share_of(action));
        }
        let undetermined = taken.undecided_share();
        if undetermined > 0.0 {
            shares.push("undetermined", undetermined);
        }
        shares
    }

    /// The correlation of reducible and total loss over rows.
    pub(super) fn correlation(&self) -> Option<f64> {
        let reducible = |row: usize| self.total[row] - self.irreducible[row];
        let (a, b) = (self.mean(&reducible).mean, self.mean(&|row| self.total[row]).mean);
        let product = |x: &dyn Fn(usize) -> f64, y: &dyn Fn(usize) -> f64| self.mean(&|row| x(row) * y(row)).mean;
        let (x, y) = (|row: usize| reducible(row) - a, |row: usize| self.total[row] - b);
        let scale = (product(&x, &x) * product(&y, &y)).sqrt();
        (scale > self.negligible().powi(2)).then(|| product(&x, &y) / scale)
    }
}
