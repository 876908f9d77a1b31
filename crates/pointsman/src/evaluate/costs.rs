//! Costs of a policy and of simple rules, regrets and savings.

use super::corrected::Corrected;
use super::replay::{Basis, Group, Replay, best, minus, sum};
use super::taken_actions::TakenActions;
use super::{Evaluation, LossReached, Saving, Truth};
use crate::error::{Error, Result};
use crate::oracle::Oracle;
use crate::partition::CellId;
use crate::policy::Policy;
use crate::router::Support;
use crate::task::{Limit, Named, Task};

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
            truth: if self.truth_known { Truth::Known } else { Truth::Votes },
            task: policy.task_summary(),
            surcharge: policy.surcharge(),
            loss_reached: None,
            mean_cost: Named::new(),
            standard_error: Named::new(),
            corrected_cost: None,
            corrected_standard_error: None,
            corrected_identified: Named::new(),
            savings: None,
            unidentified: self.unidentified(policy, &names),
            regret: Named::new(),
            regret_ignores_limit: task.limit().is_some(),
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
            correlation: self.correlation().filter(|_| self.tells_noise()),
            support: Named::new(),
        };
        let taken = self.taken_actions(policy);
        let mut add = |name: String, mean: f64, cost: &dyn Fn(usize) -> f64| {
            evaluation.mean_cost.push(name.clone(), mean);
            evaluation.standard_error.push(name, self.mean(cost).1);
        };
        // Means by groups where there is one action per group, as everywhere; rows are needed for the standard errors only.
        let router = taken.mean_cost(Basis::Table);
        add("router".into(), router, &|row| taken.cost(row, Basis::Table));
        for (action, name) in names.iter().enumerate() {
            let mean = self.always(policy, action, Basis::Table);
            add(format!("always-{name}"), mean, &|row| self.cost(policy, row, action, Basis::Table));
        }
        let by_cell = self.cell_optimal(policy, Basis::Table);
        let in_hindsight = |group: &Group| best(names.len(), |action| group.cost(policy, action, Basis::Table));
        let actions: Vec<usize> = self.groups.iter().map(in_hindsight).collect();
        let group_of = |row: usize| self.places[row].group as usize;
        add("cell-optimal".into(), by_cell, &|row| self.cost(policy, row, actions[group_of(row)], Basis::Table));
        let (pointwise, error) = self.mean(&|row| self.least_cost(policy, row, names.len()));
        evaluation.mean_cost.push("pointwise-optimal", pointwise);
        evaluation.standard_error.push("pointwise-optimal", error);
        evaluation.regret.push("cell-optimal", router - by_cell);
        evaluation.regret.push("pointwise-optimal", router - pointwise);

        if matches!(task.limit(), Some(Limit::TargetLoss(_))) {
            evaluation.loss_reached = Some(self.loss_reached(task, &taken));
        }
        if self.is_correctable() {
            self.add_corrected_costs(policy, &names, &taken, &mut evaluation)?;
        }
        evaluation.shares = self.shares(policy, &names);
        self.rank(policy, &mut evaluation);
        for support in [Support::Enough, Support::Sparse, Support::Empty] {
            let share = self.share(|group| policy.support(CellId(group.cell)) == support);
            evaluation.support.push(support.name(), share);
        }
        Ok(evaluation)
    }

    /// The loss of the actions taken on these rows, prices of routes left out.
    fn loss_reached(&self, task: &Task, taken: &TakenActions<'_>) -> LossReached {
        let price = |action: usize| task.routes().get(action.wrapping_sub(1)).map_or(0.0, |route| route.price());
        let loss = |row: usize, by: Basis| taken.cost(row, by) - taken.action(row).mean(price);
        let (mean, standard_error) = self.mean(&|row| loss(row, Basis::Table));
        let corrected =
            (!self.truth_known && self.is_correctable()).then(|| self.mean_and_error(&self.each_row(&loss)));
        LossReached {
            mean,
            standard_error,
            corrected: corrected.map(|(mean, _)| mean),
            corrected_standard_error: corrected.and_then(|(_, error)| error),
        }
    }

    /// Costs, regrets and savings with the bias of few labels taken out, each with its standard error.
    fn add_corrected_costs(
        &self,
        policy: &Policy,
        names: &[String],
        taken: &TakenActions<'_>,
        evaluation: &mut Evaluation,
    ) -> Result<()> {
        let rows = |cost: &dyn Fn(usize, Basis) -> f64| self.each_row(cost);
        let router = rows(&|row, by| taken.cost(row, by));
        let in_hindsight = |group: &Group| best(names.len(), |action| group.cost(policy, action, Basis::Corrected));
        let actions: Vec<usize> = self.groups.iter().map(in_hindsight).collect();
        let by_cell = rows(&|row, by| self.cost(policy, row, actions[self.places[row].group as usize], by));
        let by_row = rows(&|row, by| self.least_cost_by(policy, row, by));
        let always: Vec<(String, [Vec<f64>; 2])> = (0..names.len())
            .map(|action| (format!("always-{}", names[action]), rows(&|row, by| self.cost(policy, row, action, by))))
            .collect();
        let optima = [("cell-optimal", &by_cell), ("pointwise-optimal", &by_row)];
        // Means by groups where there is one action per group, as everywhere; rows are needed for the standard errors only.
        let mut costs = Named::new();
        costs.push("router", taken.mean_cost(Basis::Corrected));
        self.compare(policy, names, Basis::Corrected, &mut costs);
        // Nothing costs less than the best possible: an estimate above another rule's cost is lowered to that.
        let least = costs.iter().map(|(_, &cost)| cost).fold(f64::INFINITY, f64::min);
        costs.push("pointwise-optimal", self.mean(&|row| by_row[0][row]).0.min(least));
        let mut errors = Named::new();
        let rules = always.iter().map(|(name, rows)| (name.as_str(), rows)).chain(optima);
        for (name, rows) in [("router", &router)].into_iter().chain(rules) {
            errors.push(name, self.mean_and_error(rows).1);
        }
        let (mut regret, mut regret_errors) = (Named::new(), Named::new());
        for (name, rows) in optima {
            let (mean, error) = self.mean_and_error(&minus(&router, rows));
            let own = costs.get("router").zip(costs.get(name)).map(|(router, best)| router - best);
            regret.push(name, own.filter(|_| name == "pointwise-optimal").unwrap_or(mean));
            regret_errors.push(name, error);
        }
        let mut savings = Named::new();
        let asks = |action: usize| policy.bayes_part(action);
        let router_asks = |row: usize| taken.action(row).mean(asks);
        for (action, (name, rows)) in always.iter().enumerate() {
            savings.push(name, Saving::new(self, rows, &router, 0.0, [&|_| asks(action), &router_asks]));
        }
        if let Some(threshold) = self.best_threshold(policy, taken)? {
            let asked: [&dyn Fn(usize) -> f64; 2] = [&|row| threshold.bayes_parts[row], &router_asks];
            savings.push("best-threshold", Saving::new(self, &threshold.rows, &router, threshold.open, asked));
        }
        let mut identified = Named::new();
        let mut add = |name: &str, asked: &dyn Fn(usize) -> f64| {
            if let (Some(open), Some(cost)) = (self.open(asked), costs.get(name)) {
                identified.push(name, open.map(|end| cost + end));
            }
        };
        add("router", &router_asks);
        (0..names.len()).for_each(|action| add(&format!("always-{}", names[action]), &|_| asks(action)));
        add("cell-optimal", &|row| asks(actions[self.places[row].group as usize]));
        evaluation.corrected_identified = identified;
        evaluation.corrected_cost = Some(costs);
        evaluation.corrected_standard_error = Some(errors);
        evaluation.corrected_regret = Some(regret);
        evaluation.corrected_regret_standard_error = Some(regret_errors);
        evaluation.savings = Some(savings);
        evaluation.corrected_two_way = Some(self.two_way(policy, policy.task(), Basis::Corrected)?);
        Ok(())
    }

    /// How far below and above its corrected value a mean cost may lie because labels do not identify the irreducible loss: `asked` is which
    /// part of each row is routed to who knows the truth.
    pub(super) fn open(&self, asked: &dyn Fn(usize) -> f64) -> Option<[f64; 2]> {
        let Corrected { votes, irreducible, .. } = self.corrected.as_ref()?;
        let rows: Vec<(usize, f64, f64)> =
            (0..self.places.len()).map(|row| (row, self.weights[row] * asked(row), irreducible[row])).collect();
        votes.as_ref()?.open(&rows, sum(self.weights.iter().copied()), self.policy.task().loss())
    }

    /// Between what the difference of two rules' mean costs lies as far as the labels identify it; `None` where nothing is left open. `asked` is how
    /// much more of each row the first rule routes to who knows the truth than the second.
    pub(super) fn identify_difference(&self, estimate: f64, asked: &dyn Fn(usize) -> f64) -> Option<[f64; 2]> {
        // What rows lose that only one of the two routes is open on its own.
        let [more, less] = [1.0, -1.0].map(|sign| self.open(&|row| (sign * asked(row)).max(0.0)).unwrap_or([0.0; 2]));
        let identified = [estimate + more[0] - less[1], estimate + more[1] - less[0]];
        Some(identified).filter(|[low, high]| low < high)
    }

    /// The mean costs that the labels do not tell.
    pub(super) fn unidentified(&self, policy: &Policy, names: &[String]) -> Vec<String> {
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
        let router = self.taken_actions(policy).share_of(unknown) > 0.0;
        let by_cell = !always.is_empty();
        let named = |name: &str, unknown: bool| unknown.then(|| name.to_owned());
        let optima = named("cell-optimal", by_cell).into_iter().chain(named("pointwise-optimal", true));
        named("router", router).into_iter().chain(always).chain(optima).collect()
    }

    /// Mean cost of the best action per group, known in hindsight.
    pub(super) fn cell_optimal(&self, policy: &Policy, by: Basis) -> f64 {
        let actions = policy.task().actions();
        let least = |group: &Group| group.cost(policy, best(actions, |action| group.cost(policy, action, by)), by);
        sum(self.groups.iter().map(|group| group.share * least(group)))
    }

    /// Adds the costs of always doing the same and of the best action per cell.
    pub(super) fn compare(&self, policy: &Policy, names: &[String], by: Basis, costs: &mut Named<f64>) {
        for (action, name) in names.iter().enumerate() {
            costs.push(format!("always-{name}"), self.always(policy, action, by));
        }
        costs.push("cell-optimal", self.cell_optimal(policy, by));
    }

    /// Mean costs of the same router allowed two actions only, as far as they reach a target loss.
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

    /// The share of the rows that each action gets; `undetermined` only if there are any.
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

    pub(super) fn correlation(&self) -> Option<f64> {
        let reducible = |row: usize| self.total[row] - self.irreducible[row];
        let (a, b) = (self.mean(&reducible).0, self.mean(&|row| self.total[row]).0);
        let product = |x: &dyn Fn(usize) -> f64, y: &dyn Fn(usize) -> f64| self.mean(&|row| x(row) * y(row)).0;
        let (x, y) = (|row: usize| reducible(row) - a, |row: usize| self.total[row] - b);
        let scale = (product(&x, &x) * product(&y, &y)).sqrt();
        (scale > self.negligible().powi(2)).then(|| product(&x, &y) / scale)
    }
}
