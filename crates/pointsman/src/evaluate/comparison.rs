//! Comparison of several policies on the same held-out rows, with paired differences.

use std::cmp::Ordering;

use super::taken_actions::TakenActions;
use super::{Basis, CostOfCaps, EvaluatedCap, MIN_DIFFERING_ROWS, Replay, Truth, minus};
use crate::error::{Result, TableError, TaskError};
use crate::loss::Loss;
use crate::numeric::weighted::Z_95;
use crate::policy::Policy;
use crate::task::{Named, TaskSummary};

/// Several policies on the same held-out rows.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Comparison {
    /// Held-out rows.
    pub rows: usize,
    /// The truth that costs are computed from.
    pub truth: Truth,
    /// The name of the policy that the others are compared with.
    pub baseline: String,
    /// The policies, in the order given.
    pub policies: Vec<PolicyCost>,
}

/// One policy of a [`Comparison`].
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PolicyCost {
    /// Its name.
    pub name: String,
    /// Its task.
    pub task: TaskSummary,
    /// The unit of its costs.
    pub unit: &'static str,
    /// Whether its cost is corrected for the bias of few labels.
    pub corrected: bool,
    /// Mean cost per query; unknown if one label per item does not identify the cost of routing.
    pub cost: Option<f64>,
    /// The standard error; none for one row.
    pub standard_error: Option<f64>,
    /// Whether its loss is the baseline's. Costs in different losses cannot be subtracted; shares can always be compared.
    pub same_loss: bool,
    /// Its cost minus the baseline's; unknown for the baseline itself, under another loss, and if one of the costs is unknown.
    pub difference: Option<Difference>,
    /// The share of the rows that gets each action.
    pub shares: Named<f64>,
    /// The use of each cap, if the rows were replayed under caps.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub caps: Vec<EvaluatedCap>,
    /// What the caps cost, if rows take other actions because of them.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub capped: Option<CostOfCaps>,
}

/// The mean paired difference of two costs.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Difference {
    /// The mean over the rows; negative if the policy is cheaper than the baseline.
    pub estimate: f64,
    /// The standard error of the paired difference.
    pub standard_error: Option<f64>,
    /// The 95 % interval, without what the labels leave unidentified.
    pub interval: Option<[f64; 2]>,
    /// The bounds on the difference that labels identify with infinitely many rows; standard errors come on top. Under losses other than
    /// Brier, k labels per item do not identify the loss of a Bayes-optimal oracle. `None` if the difference is identified exactly.
    pub identified: Option<[f64; 2]>,
    /// The effective number of rows on which the two policies differ in cost: the difference is estimated from these alone.
    pub differing_rows: usize,
}

impl Difference {
    /// Whether the interval is too narrow because the two policies differ on fewer than [`MIN_DIFFERING_ROWS`] rows.
    #[must_use]
    pub fn rests_on_few_rows(&self) -> bool {
        self.differing_rows < MIN_DIFFERING_ROWS
    }

    /// The 95 % interval widened by what the labels leave unidentified, by which [`Self::certain_sign`] judges; `None` without a standard
    /// error.
    #[must_use]
    pub fn range(&self) -> Option<[f64; 2]> {
        let open = self.identified.map_or([0.0; 2], |ends| ends.map(|end| end - self.estimate));
        self.interval.map(|[low, high]| [low + open[0], high + open[1]])
    }

    /// Whether the policy costs less or more than the baseline, by the whole [range](Self::range). `None` if the sign is uncertain, or the policies differ on too few rows for an interval.
    #[must_use]
    pub fn certain_sign(&self) -> Option<Ordering> {
        if self.rests_on_few_rows() {
            return None;
        }
        let [low, high] = self.range()?;
        if high < 0.0 {
            Some(Ordering::Less)
        } else if low > 0.0 {
            Some(Ordering::Greater)
        } else {
            None
        }
    }
}

/// Compares policies that were [replayed](Policy::replay) on the same rows. The first is the baseline unless another one is named.
///
/// ```
/// use pointsman::{Loss, Oracle, Partition, Router, Table, Task};
/// use pointsman::evaluate::compare_policies;
/// let table = Table::new(["no", "yes"], vec![0.9, 0.1, 0.8, 0.2, 0.3, 0.7, 0.4, 0.6])?
///     .with_votes(vec![5, 0, 2, 3, 0, 5, 1, 4])?;
/// let router = Router::calibrate(&table, &Partition::top_class(10))?;
/// let task = |price| Task::new(Loss::brier()).route("expert", Oracle::bayes(), price);
/// let [cheap, dear] = [router.policy(&task(0.01)?)?.replay(&table)?, router.policy(&task(0.02)?)?.replay(&table)?];
/// let found = compare_policies([("cheap", &cheap), ("dear", &dear)], None)?;
/// assert!(found.policies[1].difference.is_some_and(|it| it.estimate >= 0.0));
/// # Ok::<(), pointsman::Error>(())
/// ```
///
/// # Errors
/// If there are fewer than two policies, two have the same name, none has the baseline's name, or they were replayed on different rows.
pub fn compare_policies<'a, S: Into<String>>(
    replays: impl IntoIterator<Item = (S, &'a Replay)>,
    baseline: Option<&str>,
) -> Result<Comparison> {
    let replays: Vec<(String, &Replay)> = replays.into_iter().map(|(name, replay)| (name.into(), replay)).collect();
    if replays.len() < 2 {
        return Err(TaskError::OnePolicy.into());
    }
    for (place, (name, _)) in replays.iter().enumerate() {
        if replays[..place].iter().any(|(other, _)| other == name) {
            return Err(TaskError::RepeatedName { what: "policies", name: name.clone() }.into());
        }
    }
    let place = match baseline {
        None => 0,
        Some(wanted) => replays.iter().position(|(name, _)| name == wanted).ok_or_else(|| {
            let known = replays.iter().map(|(name, _)| name.clone()).collect();
            TaskError::UnknownName { what: "policy", name: wanted.to_owned(), known }
        })?,
    };
    let (name, first) = &replays[place];
    if let Some((other, _)) = replays.iter().find(|(_, replay)| !replay.has_rows_of(first)) {
        return Err(TableError::DifferentRows { first: other.clone(), second: name.clone() }.into());
    }
    let same_loss: Vec<bool> = replays.iter().map(|(_, it)| have_same_loss(&first.policy, &it.policy)).collect();
    // Costs that are subtracted use the same correction.
    let mut comparable = replays.iter().zip(&same_loss).filter(|(_, same)| **same);
    let all_corrected = comparable.all(|((_, replay), _)| replay.best_basis() == Basis::Corrected);
    let basis = |(_, replay): &(String, &Replay), same: bool| match replay.best_basis() {
        Basis::Corrected if same && !all_corrected => Basis::Table,
        basis => basis,
    };
    let costs: Vec<CostsByRow<'_>> =
        replays.iter().zip(&same_loss).map(|(it, &same)| CostsByRow::new(it.1, basis(it, same))).collect();
    let policies =
        replays.iter().zip(&costs).zip(&same_loss).enumerate().map(|(other, (((name, replay), own), &same))| {
            let policy = &replay.policy;
            let (caps, capped) = replay.use_of_caps(policy, &own.taken);
            PolicyCost {
                name: name.clone(),
                task: policy.task_summary(),
                unit: policy.task().loss().unit(),
                corrected: own.by == Basis::Corrected,
                cost: own.rows.as_ref().map(|_| own.taken.mean_cost(own.by)),
                standard_error: own.priced().and_then(|rows| replay.corrected_mean(&rows).standard_error),
                same_loss: same,
                difference: if same && other != place { own.minus(&costs[place]) } else { None },
                shares: replay.shares(policy, &policy.task().action_names()),
                caps,
                capped,
            }
        });
    Ok(Comparison {
        rows: first.places.len(),
        truth: if first.truth_known { Truth::Known } else { Truth::Votes },
        baseline: name.clone(),
        policies: policies.collect(),
    })
}

/// The costs of a policy on each row.
struct CostsByRow<'a> {
    replay: &'a Replay,
    taken: TakenActions<'a>,
    by: Basis,
    /// By both corrections; `None` if the labels do not identify them.
    rows: Option<[Vec<f64>; 2]>,
}

impl<'a> CostsByRow<'a> {
    fn new(replay: &'a Replay, by: Basis) -> Self {
        let policy = &replay.policy;
        let taken = replay.taken_actions(policy);
        let is_identified = replay.is_identified(policy, "router");
        let other = |corrected: Basis| if by == Basis::Corrected { corrected } else { by };
        let rows = is_identified.then(|| replay.each_row(&|row, corrected| taken.cost(row, other(corrected))));
        Self { replay, taken, by, rows }
    }

    /// These costs minus others on the same basis; `None` if one of them is unknown.
    fn minus(&self, other: &Self) -> Option<Difference> {
        let rows = minus(self.rows.as_ref()?, other.rows.as_ref()?);
        let estimate = self.replay.corrected_mean(&rows).mean;
        let standard_error = self.replay.corrected_mean(&minus(&self.priced()?, &other.priced()?)).standard_error;
        let bayes_part = |row: usize| self.bayes_part(row) - other.bayes_part(row);
        let is_corrected = self.by == Basis::Corrected;
        let interval = standard_error.map(|error| [estimate - Z_95 * error, estimate + Z_95 * error]);
        let identified = if is_corrected { self.replay.identify_difference(estimate, &bayes_part) } else { None };
        let differing_rows = self.replay.effective_rows(|row| rows[0][row] != 0.0);
        Some(Difference { estimate, standard_error, interval, identified, differing_rows })
    }

    /// The costs with prices of caps, from which standard errors are computed.
    fn priced(&self) -> Option<[Vec<f64>; 2]> {
        self.rows.as_ref().map(|rows| self.taken.with_prices_of_caps(rows))
    }

    /// The part of a row that is routed to a Bayes-optimal oracle.
    fn bayes_part(&self, row: usize) -> f64 {
        self.taken.action(row).mean(|action| self.replay.policy.bayes_part(action))
    }
}

impl Replay {
    /// Whether the rows have the same weights and labels as those of another replay.
    fn has_rows_of(&self, other: &Self) -> bool {
        self.weights == other.weights && self.truth_known == other.truth_known && self.labels == other.labels
    }

    /// Whether the labels identify the cost of a rule.
    fn is_identified(&self, policy: &Policy, rule: &str) -> bool {
        !self.unidentified(policy, &policy.task().action_names()).iter().any(|name| name == rule)
    }
}

/// Whether two policies have the same loss.
fn have_same_loss(one: &Policy, other: &Policy) -> bool {
    let (own, loss) = (one.task().loss(), other.task().loss());
    let in_order = one.classes() == other.classes();
    // Other losses do not depend on the order of the classes.
    let depends_on_order =
        |loss: &Loss| loss.penalised_class().is_some() || loss.costs().is_some() && loss.class_names().is_none();
    if !in_order && (depends_on_order(own) || depends_on_order(loss)) {
        return false;
    }
    let is_same = |loss: &Loss| loss == own || own.costs().is_some_and(|costs| loss.costs().as_ref() == Some(&costs));
    loss.for_classes(one.classes()).is_ok_and(|loss| is_same(&loss))
}
