//! Logged queries under another policy: how many decisions change, and what that costs.

use std::collections::BTreeMap;

use crate::policy::{Decisions, Policy};
use crate::task::Named;

/// The name of no action.
const UNDETERMINED: &str = "undetermined";

/// Logged decisions compared with those of another policy, batch by batch.
///
/// ```
/// use pointsman::monitor::WhatIf;
/// use pointsman::{Loss, Oracle, Partition, Router, Table, Task};
/// let table = Table::new(["no", "yes"], vec![0.9, 0.1, 0.8, 0.2, 0.4, 0.6])?.with_votes(vec![5, 0, 2, 3, 0, 5])?;
/// let router = Router::calibrate(&table, &Partition::top_class(1))?;
/// let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.05)?;
/// let (now, dearer) = (router.policy(&task)?, router.policy(&task.clone().reprice_route("expert", 2.0)?)?);
/// let before: Vec<Option<usize>> = (0..table.rows()).map(|row| now.decide(&table.prediction(row)).map(|d| d.code())).collect::<Result<_, _>>()?;
/// let mut what_if = WhatIf::new(&dearer);
/// what_if.add(&dearer, &dearer.decide_batch(&table)?, &task.action_names(), &before);
/// let summary = what_if.summary(&dearer);
/// assert_eq!(*summary.shares.get("predict").unwrap(), 1.0);
/// # Ok::<(), pointsman::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct WhatIf {
    /// The new policy's actions, followed by `undetermined`.
    names: Vec<String>,
    /// The number of decisions by the name of the logged action, for each new one.
    flows: BTreeMap<String, Vec<u64>>,
    /// The sums of each cell of the new policy.
    cells: Vec<CellSums>,
}

/// Sums over queries.
#[derive(Debug, Clone, Copy, Default)]
struct CellSums {
    decisions: u64,
    changed: u64,
    /// The expected cost of the new actions.
    after: f64,
    /// Of queries whose logged action the new task has: how many there are, the expected cost of that action, the difference of both costs
    /// and its square.
    compared: u64,
    compared_changed: u64,
    before: f64,
    difference: f64,
    difference_squared: f64,
}

/// How many decisions go from one action to another.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Flow {
    /// The logged action.
    pub from: String,
    /// The action of the other policy.
    pub to: String,
    /// The number of decisions.
    pub decisions: u64,
}

/// What changes in one cell of the other policy.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CellChange {
    /// The cell.
    pub cell: u32,
    /// The cell in words.
    pub name: String,
    /// The number of its queries.
    pub decisions: u64,
    /// How many of their decisions change.
    pub changed: u64,
    /// The expected cost per query.
    pub expected_cost: f64,
    /// The expected cost per query minus that of the logged actions; `None` if the task has none of them, or none of those that change.
    pub difference: Option<f64>,
    /// The standard error of the difference over queries.
    pub difference_standard_error: Option<f64>,
}

/// What another policy is expected to cost per query, by its own estimates and prices.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct WhatIfCost {
    /// The expected cost per query; `None` without queries.
    pub expected: Option<f64>,
    /// The expected cost per query of the logged actions; `None` if the task lacks one of them, so that its cost is unknown.
    pub before: Option<f64>,
    /// The mean difference of both on the queries whose logged action the task has: negative if the other policy is cheaper. `None` if decisions
    /// change and the task has the logged action of none of these.
    pub difference: Option<f64>,
    /// The standard error of the difference over queries; the error of the estimates comes on top.
    pub difference_standard_error: Option<f64>,
    /// The number of queries whose logged action the task does not have.
    pub not_compared: u64,
}

/// How logged decisions would change.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct WhatIfSummary {
    /// The number of queries.
    pub decisions: u64,
    /// How many of their decisions change.
    pub changed: u64,
    /// The number of decisions from each logged action to each other one, if there are any.
    pub matrix: Vec<Flow>,
    /// The share of each action as it was logged.
    pub shares_before: Named<f64>,
    /// The share of each action of the other policy.
    pub shares: Named<f64>,
    /// What the other policy is expected to cost.
    pub cost: WhatIfCost,
    /// The cells that have queries.
    pub cells: Vec<CellChange>,
}

impl CellSums {
    fn add(&mut self, changed: bool, after: f64, before: Option<f64>) {
        self.decisions += 1;
        self.changed += u64::from(changed);
        self.after += after;
        if let Some(before) = before {
            let difference = after - before;
            self.compared += 1;
            self.compared_changed += u64::from(changed);
            self.before += before;
            self.difference += difference;
            self.difference_squared += difference * difference;
        }
    }

    fn with(self, other: &Self) -> Self {
        Self {
            decisions: self.decisions + other.decisions,
            changed: self.changed + other.changed,
            after: self.after + other.after,
            compared: self.compared + other.compared,
            compared_changed: self.compared_changed + other.compared_changed,
            before: self.before + other.before,
            difference: self.difference + other.difference,
            difference_squared: self.difference_squared + other.difference_squared,
        }
    }

    /// The expected cost of the new actions per query.
    fn expected(&self) -> Option<f64> {
        (self.decisions > 0).then(|| self.after / self.decisions as f64)
    }

    /// A sum over the queries that were compared, per query.
    fn per_compared(&self, sum: f64) -> Option<f64> {
        (self.compared > 0).then(|| sum / self.compared as f64)
    }

    /// The mean difference over the queries that were compared; `None` if decisions change and none of these was compared, so that nothing is
    /// known of what the change costs.
    fn mean_difference(&self) -> Option<f64> {
        self.per_compared(self.difference).filter(|_| self.changed == 0 || self.compared_changed > 0)
    }

    fn standard_error(&self) -> Option<f64> {
        let n = self.compared as f64;
        let mean = self.mean_difference().filter(|_| self.compared > 1)?;
        Some(((self.difference_squared / n - mean * mean).max(0.0) / (n - 1.0)).sqrt())
    }
}

impl WhatIf {
    /// No queries yet.
    #[must_use]
    pub fn new(policy: &Policy) -> Self {
        let names = policy.task().action_names().into_iter().chain([UNDETERMINED.to_owned()]).collect();
        Self { names, flows: BTreeMap::new(), cells: vec![CellSums::default(); policy.cells().count()] }
    }

    /// Adds queries that the policy has decided, with their logged actions: places in `actions_before`, or `None` if undetermined.
    ///
    /// # Panics
    /// If the batch is of another policy or has more rows than there are logged actions, or such an action has no name.
    pub fn add(&mut self, policy: &Policy, decisions: &Decisions, actions_before: &[String], before: &[Option<usize>]) {
        let actions = self.names.len() - 1;
        let name = |code: Option<usize>| code.map_or(UNDETERMINED, |code| actions_before[code].as_str());
        let place = |name: &str| self.names.iter().position(|other| other == name);
        let places: Vec<Option<usize>> = actions_before.iter().map(|name| place(name)).collect();
        let mut flows = vec![vec![0; actions + 1]; actions_before.len() + 1];
        for (row, &code) in before.iter().enumerate().take(decisions.len()) {
            let decision = policy.row(decisions, row);
            let to = decision.code().unwrap_or(actions);
            flows[code.unwrap_or(actions_before.len())][to] += 1;
            let same = code.map_or(to == actions, |code| places[code] == Some(to));
            let costs = decision.costs_high();
            let taken = decision.code().unwrap_or_else(|| policy.assumed_action([decision.costs(), costs]));
            let cost_before = code.and_then(|code| places[code]).map(|place| costs[place]);
            self.cells[decision.cell().0 as usize].add(!same, costs[taken], cost_before);
        }
        for (code, flows) in flows.into_iter().enumerate() {
            let from = name(Some(code).filter(|&code| code < actions_before.len()));
            let sums = self.flows.entry(from.to_owned()).or_insert_with(|| vec![0; actions + 1]);
            sums.iter_mut().zip(flows).for_each(|(sum, flow)| *sum += flow);
        }
    }

    /// What changes.
    #[must_use]
    pub fn summary(&self, policy: &Policy) -> WhatIfSummary {
        let all = self.cells.iter().fold(CellSums::default(), CellSums::with);
        let share = |n: u64| n as f64 / all.decisions.max(1) as f64;
        let mut matrix = Vec::new();
        let mut shares_before = Named::new();
        for (from, flows) in &self.flows {
            let decisions: u64 = flows.iter().sum();
            if decisions > 0 {
                shares_before.push(from.clone(), share(decisions));
            }
            let to = flows.iter().zip(&self.names).filter(|(decisions, _)| **decisions > 0);
            matrix.extend(to.map(|(&decisions, to)| Flow { from: from.clone(), to: to.clone(), decisions }));
        }
        let taken = |place: usize| self.flows.values().map(|flows| flows[place]).sum::<u64>();
        let counts = self.names.iter().enumerate().map(|(place, name)| (name, taken(place)));
        let listed = counts.filter(|(name, n)| *name != UNDETERMINED || *n > 0);
        let cell = |(cell, sums): (u32, &CellSums)| {
            Some(CellChange {
                cell,
                name: policy.cells().name(crate::partition::CellId(cell), policy.classes()),
                decisions: sums.decisions,
                changed: sums.changed,
                expected_cost: sums.expected()?,
                difference: sums.mean_difference(),
                difference_standard_error: sums.standard_error(),
            })
        };
        WhatIfSummary {
            decisions: all.decisions,
            changed: all.changed,
            matrix,
            shares_before,
            shares: listed.map(|(name, n)| (name.clone(), share(n))).collect(),
            cost: WhatIfCost {
                expected: all.expected(),
                before: all.per_compared(all.before).filter(|_| all.compared == all.decisions),
                difference: all.mean_difference(),
                difference_standard_error: all.standard_error(),
                not_compared: all.decisions - all.compared,
            },
            cells: (0..).zip(&self.cells).filter_map(cell).collect(),
        }
    }
}
