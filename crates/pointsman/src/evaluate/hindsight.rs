//! The cost of the best action per row in hindsight, from few labels.
//!
//! Wanted is E min_a c_a(p*), the mean of the least cost under each row's true distribution. Few labels do not identify it. By Jensen's
//! inequality the minimum of unbiased costs of one row is too small on average, and the best action of a group of rows costs too much; these
//! are the bounds. The estimate between them needs the law of the costs among rows.
//!
//! If every action's cost is linear in p* (predicting, measured oracles, abstaining), each row's saving over predicting is shrunk towards the
//! mean of rows with a similar expected saving, so that savings vary as without label noise: the noise of a mean of k labels is estimated
//! from their own variance. For other tasks, p* is drawn from its posterior, all actions are evaluated on the same draw, and each action's
//! costs are shifted so that their mean is the unbiased one. With one action beside predicting, the law is [`PredictedLaw`]: the variance of
//! the saving decides, and that law matches it. If several actions compete, the shape of the law decides as well, and it is [`MixedLaw`]. The
//! difference to a second estimate is part of the standard error: to the one by draws for linear costs, to the one by shrunk snapshot means
//! for others. Estimates depend on the router only through the mean votes of rows with similar scores, one of the predictions that the laws
//! are fitted to.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

use super::replay::{Basis, Replay, best};
use super::{Place, sum};
use crate::error::Result;
use crate::estimate::{MixedLaw, OracleLoss, PredictedLaw, RowEstimates, RowLaws, RowLosses, answers_of};
use crate::oracle::Oracle;
use crate::parallel::prelude::*;
use crate::policy::Policy;
use crate::table::Table;
use crate::table::simplex::dot;

/// Draws of each row's true distribution.
const DRAWS: usize = 4;

/// Rows of similar expected saving per group.
const ROWS_PER_GROUP: usize = 100;

/// The largest number of such groups.
const MAX_GROUPS: usize = 40;

/// What the best action per row is estimated from.
#[derive(Debug, Clone)]
pub(super) struct Hindsight {
    /// Losses under posterior draws of p*, by one Dirichlet law per row and by a mixture of several, and under shrunk snapshot means.
    drawn: LawLosses,
    mixed: LawLosses,
    points: LawLosses,
    /// The labels of each row.
    labels: Vec<u64>,
    /// The savings of each measured oracle, by its place among the other oracles, and of abstaining (the last); empty for panels.
    savings: Vec<LinearSaving>,
}

/// Losses under distributions of some law: the same number for each row, row by row.
#[derive(Debug, Clone)]
struct LawLosses {
    per_row: usize,
    total: Vec<f64>,
    irreducible: Vec<f64>,
    oracles: Vec<Vec<f64>>,
}

/// The saving of an action over predicting, without its price, where it is linear in p*.
#[derive(Debug, Clone, Default)]
struct LinearSaving {
    /// Each row's expected saving, independent of its labels.
    expected: Vec<f64>,
    /// The variance of the saving over the labels of a row; NaN for one label.
    label_variance: Vec<f64>,
}

/// The row's values of an estimate: their mean is the estimate, their variance that of the estimate.
type RowValues = Vec<f64>;

impl Hindsight {
    /// Fits the laws. `predictions` are lists of one distribution per row, `order` is an order of the rows that does not depend on labels.
    pub(super) fn fit(
        policy: &Policy,
        table: &Table,
        places: &[Place],
        mut predictions: Vec<Vec<f64>>,
        order: &[u32],
    ) -> Result<Self> {
        let classes = table.classes().len();
        let mut seeds = vec![0; order.len()];
        order.iter().zip(0..).for_each(|(&row, number)| seeds[row as usize] = number);
        let law = PredictedLaw::fit(table, &predictions, order);
        predictions.push(law.means().to_vec());
        let mixture = MixedLaw::fit(table, predictions, order);
        let served = served_losses(policy, table, places);
        let drawn = LawLosses::evaluate(policy, table, &served, DRAWS, |row, out| {
            let mut random = Pcg64::seed_from_u64(seeds[row]);
            out.chunks_exact_mut(classes).for_each(|draw| law.draw_into(table, row, &mut random, draw));
        })?;
        let mixed = LawLosses::evaluate(policy, table, &served, DRAWS, |row, out| {
            mixture.draw_into(table, row, &mut Pcg64::seed_from_u64(seeds[row]), out);
        })?;
        let points = LawLosses::evaluate(policy, table, &served, 1, |row, out| law.point_into(table, row, out))?;
        Ok(Self {
            drawn,
            mixed,
            points,
            labels: (0..table.rows()).map(|row| table.votes(row).map_or(1, |votes| votes.k())).collect(),
            savings: linear_savings(policy, table, &served, &law)?,
        })
    }
}

/// The distributions that predict p*: the model's, the mean votes of rows with similar confidence and with similar score, and those of
/// measured oracles.
pub(super) fn predictions(
    policy: &Policy,
    table: &Table,
    estimates: &RowEstimates,
    by_score: Option<&RowLaws>,
) -> Result<Vec<Vec<f64>>> {
    let classes = table.classes().len();
    let list = |write: &dyn Fn(usize, &mut [f64])| {
        let mut values = vec![0.0; table.rows() * classes];
        values.chunks_exact_mut(classes).enumerate().for_each(|(row, out)| write(row, out));
        values
    };
    let mut found =
        vec![list(&|row, out| table.dist_into(row, out)), list(&|row, out| estimates.centre_into(table, row, out))];
    found.extend(by_score.map(|laws| list(&|row, out| laws.centre_into(table, row, out))));
    for (_, name) in policy.other_oracles().iter().filter(|(oracle, _)| **oracle == Oracle::Measured) {
        found.push(answers_of(table, name)?.to_vec());
    }
    Ok(found)
}

/// The loss of the served prediction under each label, row by row.
fn served_losses(policy: &Policy, table: &Table, places: &[Place]) -> Vec<f64> {
    let (loss, classes) = (policy.task().loss(), table.classes().len());
    let mut losses = vec![0.0; table.rows() * classes];
    losses.par_chunks_exact_mut(classes).enumerate().for_each_init(
        || vec![0.0; classes],
        |served, (row, out)| {
            match policy.served(places[row].source) {
                Some(centroid) => served.copy_from_slice(centroid),
                None => table.dist_into(row, served),
            }
            loss.losses_into(served, out);
        },
    );
    losses
}

/// The savings of actions that are linear in p*; empty if some oracle is a panel.
fn linear_savings(policy: &Policy, table: &Table, served: &[f64], law: &PredictedLaw) -> Result<Vec<LinearSaving>> {
    let (loss, classes) = (policy.task().loss(), table.classes().len());
    if policy.other_oracles().oracles().any(|oracle| *oracle != Oracle::Measured) {
        return Ok(Vec::new());
    }
    let saving = |answers: Option<&[f64]>| {
        let mut found = LinearSaving::default();
        let mut own = vec![0.0; classes];
        for row in 0..table.rows() {
            let counts = table.votes(row).map_or(&[][..], |votes| votes.counts());
            if let Some(answers) = answers {
                loss.losses_into(&answers[row * classes..][..classes], &mut own);
            }
            let saved: Vec<f64> = served[row * classes..][..classes].iter().zip(&own).map(|(a, b)| a - b).collect();
            found.expected.push(dot(law.mean(row), &saved));
            found.label_variance.push(variance_over_labels(counts, &saved));
        }
        found
    };
    let names = policy.other_oracles().iter().map(|(_, name)| name);
    let mut savings =
        names.map(|name| Ok(saving(Some(answers_of(table, name)?)))).collect::<Result<Vec<LinearSaving>>>()?;
    savings.push(saving(None));
    Ok(savings)
}

/// The unbiased variance of a value over some labels; NaN for one label.
fn variance_over_labels(counts: &[u32], values: &[f64]) -> f64 {
    let labels: f64 = counts.iter().map(|&n| f64::from(n)).sum();
    let of =
        |value: &dyn Fn(f64) -> f64| counts.iter().zip(values).map(|(&n, &x)| f64::from(n) * value(x)).sum::<f64>();
    let mean = of(&|x| x) / labels;
    if labels > 1.0 { of(&|x| (x - mean).powi(2)) / (labels - 1.0) } else { f64::NAN }
}

impl LawLosses {
    /// Evaluates the losses of all oracles under the distributions that `draw` writes for a row.
    fn evaluate(
        policy: &Policy,
        table: &Table,
        served: &[f64],
        per_row: usize,
        draw: impl Fn(usize, &mut [f64]) + Sync,
    ) -> Result<Self> {
        let (loss, classes, rows) = (policy.task().loss(), table.classes().len(), table.rows());
        let mut truths = vec![0.0; rows * per_row * classes];
        truths.par_chunks_exact_mut(per_row * classes).enumerate().for_each(|(row, out)| draw(row, out));
        let losses_of_row = |place: usize| &served[place / per_row * classes..][..classes];
        let each = || truths.par_chunks_exact(classes).with_min_len(1 << 8).enumerate();
        let total = each().map(|(place, truth)| dot(truth, losses_of_row(place))).collect();
        let irreducible = each().map(|(_, truth)| loss.entropy(truth)).collect();
        let others = policy.other_oracles();
        let mut oracles = vec![vec![0.0; rows * per_row]; others.oracles().count()];
        for draw in (0..per_row).filter(|_| !others.is_empty()) {
            let of_row = truths.chunks_exact(per_row * classes);
            let truth = of_row.flat_map(|truths| truths[draw * classes..][..classes].iter().copied()).collect();
            let found = RowLosses::held_out(&table.clone().with_truth(truth)?, loss, others)?;
            for (values, found) in oracles.iter_mut().zip(found.columns()) {
                found.iter().enumerate().for_each(|(row, value)| values[row * per_row + draw] = *value);
            }
        }
        Ok(Self { per_row, total, irreducible, oracles })
    }

    /// The cost of an action under one of the distributions.
    fn cost(&self, policy: &Policy, action: usize, place: usize) -> f64 {
        policy.cost_of(action, self.total[place], self.irreducible[place], |oracle| self.oracles[oracle][place])
    }
}

impl Replay {
    /// The least cost of each row by two estimates, as [`Replay::each_row`] gives other costs; the second one shows what the labels leave open.
    pub(super) fn least_costs(&self, policy: &Policy) -> [RowValues; 2] {
        let Some(hindsight) = self.corrected.as_ref().map(|corrected| &corrected.hindsight) else {
            let actions = policy.task().actions();
            return self.each_row(&|row, _| self.least_cost(policy, row, actions));
        };
        if let Some(linear) = self.least_linear_costs(policy, hindsight) {
            return [linear, self.least_costs_under(policy, &hindsight.drawn, Basis::Corrected)];
        }
        let law = if policy.task().actions() > 2 { &hindsight.mixed } else { &hindsight.drawn };
        [
            self.least_costs_under(policy, law, Basis::Corrected),
            self.least_costs_under(policy, &hindsight.points, Basis::Alternative),
        ]
    }

    /// The least costs under the distributions of a law. Each action's costs are shifted so that their mean is that of its costs `by` labels.
    fn least_costs_under(&self, policy: &Policy, law: &LawLosses, by: Basis) -> RowValues {
        let (actions, rows) = (policy.task().actions(), self.places.len());
        let draws = |row: usize| row * law.per_row..(row + 1) * law.per_row;
        // The cost by labels minus that under the law.
        let excess = |row: usize, action: usize| {
            let under_law = sum(draws(row).map(|place| law.cost(policy, action, place))) / law.per_row as f64;
            self.cost(policy, row, action, by) - under_law
        };
        let shifts: Vec<f64> = (0..actions).map(|action| self.mean(&|row| excess(row, action)).mean).collect();
        let (mut least, mut chosen) = (vec![0.0; rows], vec![0.0; actions]);
        for (row, value) in least.iter_mut().enumerate() {
            for place in draws(row) {
                let cost = |action: usize| law.cost(policy, action, place) + shifts[action];
                let action = best(actions, cost);
                *value += cost(action) / law.per_row as f64;
                chosen[action] += self.weights[row] / law.per_row as f64;
            }
        }
        // The shifts vary with the labels, and the estimate with them.
        let all = sum(self.weights.iter().copied());
        let correction =
            |row: usize| sum((0..actions).map(|action| chosen[action] / all * (excess(row, action) - shifts[action])));
        least.iter().enumerate().map(|(row, value)| value + correction(row)).collect()
    }

    /// The least costs by shrunk savings; `None` if some action's cost is not linear in p*.
    fn least_linear_costs(&self, policy: &Policy, hindsight: &Hindsight) -> Option<RowValues> {
        let routes = policy.task().routes();
        let saving_of = |action: usize| match routes.get(action - 1) {
            None => hindsight.savings.last(),
            Some(_) => match policy.oracle_loss(action - 1) {
                OracleLoss::Other(place) => hindsight.savings.get(place),
                OracleLoss::Irreducible => None,
            },
        };
        let mut shrunk = Vec::new();
        for action in 1..policy.task().actions() {
            let observed: Vec<f64> = (0..self.places.len())
                .map(|row| self.total[row] - self.cost(policy, row, action, Basis::Corrected))
                .collect();
            shrunk.push(ShrunkSavings::fit(saving_of(action)?, observed, &hindsight.labels, &self.weights));
        }
        let chosen: Vec<Option<usize>> = (0..self.places.len())
            .map(|row| {
                let saved = |action: usize| shrunk[action].values[row];
                let most = (0..shrunk.len()).max_by(|&a, &b| saved(a).total_cmp(&saved(b)))?;
                Some(most).filter(|&action| saved(action) > 0.0)
            })
            .collect();
        let mut least: RowValues = (0..self.places.len())
            .map(|row| self.total[row] - chosen[row].map_or(0.0, |action| shrunk[action].values[row]))
            .collect();
        for (action, savings) in shrunk.iter().enumerate() {
            savings.add_variation(&self.weights, |row| chosen[row] == Some(action), &mut least);
        }
        Some(least)
    }

    /// Bounds on the mean of the least cost that hold for every law of p*: the minimum of unbiased costs of each row is too small on average
    /// (Jensen's inequality), and no rule costs less than the best possible one. `least_of_rules` is the least cost of a rule.
    pub(super) fn bounds_of_least_cost(&self, policy: &Policy, least_of_rules: f64) -> [f64; 2] {
        let actions = policy.task().actions();
        let least = |row: usize| {
            let costs = (0..actions).map(|action| self.cost(policy, row, action, Basis::Corrected));
            costs.fold(f64::INFINITY, f64::min)
        };
        [self.mean(&least).mean.min(least_of_rules), least_of_rules]
    }
}

/// The savings of one action over predicting, shrunk within groups of rows with a similar expected saving.
struct ShrunkSavings {
    values: Vec<f64>,
    observed: Vec<f64>,
    factors: Vec<f64>,
    groups: Vec<SavingGroup>,
}

struct SavingGroup {
    rows: Vec<usize>,
    mean: f64,
}

impl ShrunkSavings {
    fn fit(saving: &LinearSaving, observed: Vec<f64>, labels: &[u64], weights: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..observed.len()).collect();
        order.sort_by(|&a, &b| saving.expected[a].total_cmp(&saving.expected[b]));
        let mean_over = |rows: &[usize], value: &dyn Fn(usize) -> f64| {
            let known = || rows.iter().copied().filter(|&row| !value(row).is_nan());
            sum(known().map(|row| weights[row] * value(row))) / sum(known().map(|row| weights[row]))
        };
        let label_variance = |rows: &[usize]| {
            Some(mean_over(rows, &|row| saving.label_variance[row])).filter(|variance| variance.is_finite())
        };
        let all = label_variance(&order).unwrap_or(0.0);
        let count = (order.len() / ROWS_PER_GROUP).clamp(1, MAX_GROUPS);
        let (mut values, mut factors) = (observed.clone(), vec![0.0; observed.len()]);
        let mut groups = Vec::with_capacity(count);
        for group in 0..count {
            let rows = &order[group * order.len() / count..(group + 1) * order.len() / count];
            let mean = mean_over(rows, &|row| observed[row]);
            let noise = label_variance(rows).unwrap_or(all);
            let noise_of = |row: usize| noise / labels[row] as f64;
            let variance = mean_over(rows, &|row| (observed[row] - mean).powi(2)) - mean_over(rows, &noise_of);
            if !mean.is_finite() {
                continue;
            }
            for &row in rows {
                factors[row] = if variance > 0.0 { (variance / (variance + noise_of(row))).sqrt() } else { 0.0 };
                values[row] = mean + factors[row] * (observed[row] - mean);
            }
            groups.push(SavingGroup { rows: rows.to_vec(), mean });
        }
        Self { values, observed, factors, groups }
    }

    /// Adds to each row's least cost how the estimate varies with the row through the mean of its group. The sum over a group is zero.
    fn add_variation(&self, weights: &[f64], is_chosen: impl Fn(usize) -> bool, least: &mut [f64]) {
        for SavingGroup { rows, mean } in &self.groups {
            let all = sum(rows.iter().map(|&row| weights[row]));
            let chosen = rows.iter().filter(|&&row| is_chosen(row));
            let slope = sum(chosen.map(|&row| weights[row] * (1.0 - self.factors[row]))) / all;
            rows.iter().for_each(|&row| least[row] -= slope * (self.observed[row] - mean));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variance_over_labels_is_unbiased() {
        assert_eq!(variance_over_labels(&[1, 1], &[0.0, 2.0]), 2.0);
        assert_eq!(variance_over_labels(&[3, 0], &[5.0, 2.0]), 0.0);
        assert!(variance_over_labels(&[1, 0], &[5.0, 2.0]).is_nan());
    }

    /// Half of the rows save 1, the others −1, with label noise of variance 1 and 1/4: the shrunk savings have the variance of the true ones.
    #[test]
    fn shrunk_savings_vary_like_true_savings() {
        let rows = 400;
        let observed: Vec<f64> = (0..rows)
            .map(|row| {
                let (truth, noise) = (if row % 2 == 0 { 1.0 } else { -1.0 }, if row / 2 % 2 == 0 { 1.0 } else { -1.0 });
                truth + noise
            })
            .collect();
        let saving = LinearSaving { expected: vec![0.0; rows], label_variance: vec![3.0; rows] };
        let shrunk = ShrunkSavings::fit(&saving, observed.clone(), &vec![3; rows], &vec![1.0; rows]);
        let squares = shrunk.values.iter().map(|x| x * x).sum::<f64>() / rows as f64;
        assert!((squares - 1.0).abs() < 1e-9, "{squares}");
        // Without label noise nothing is shrunk; with nothing but noise all savings are the mean.
        for (noise, factor) in [(0.0, 1.0), (6.0, 0.0)] {
            let saving = LinearSaving { label_variance: vec![noise; rows], ..saving.clone() };
            let shrunk = ShrunkSavings::fit(&saving, observed.clone(), &vec![3; rows], &vec![1.0; rows]);
            let differs = shrunk.values.iter().zip(&observed).any(|(a, b)| (a - factor * b).abs() > 1e-9);
            assert!(!differs, "{noise}");
        }
        // The variation through the mean of a group adds up to nothing.
        let mut least = vec![0.0; rows];
        shrunk.add_variation(&vec![1.0; rows], |row| row % 2 == 0, &mut least);
        assert!(least.iter().sum::<f64>().abs() < 1e-9 && least.iter().any(|x| x.abs() > 0.1));
    }
}
