//! Decided held-out rows with their actual losses.

use super::Mean;
use super::caps::CappedRows;
use super::corrected::Corrected;
use crate::error::{Result, TableError, TaskError};
use crate::estimate::{OracleLoss, RowLosses};
use crate::numeric::mix::mix;
use crate::parallel::prelude::*;
use crate::partition::CellId;
use crate::policy::{Decisions, Policy};
use crate::router::label_free;
use crate::table::Table;
use crate::table::simplex::dot;
use crate::table::votes::Votes;

/// Differences below this, relative to the rounding scale of a loss, are rounding.
const NEGLIGIBLE: f64 = 1e-12;

/// Folds of the held-out rows, for cross-fitting the thresholds that the router is compared with.
const FOLDS: usize = 5;

const FOLD_SEED: u64 = 0x7E57_F01D;

/// Decided held-out rows with their actual losses, independent of prices.
///
/// A row's truth is its true label distribution if the table has it, otherwise its snapshot mean. A panel's loss on a row is the unbiased
/// estimate from its labels if there are enough, otherwise the loss under that truth. A measured oracle's loss is that of its predictions in
/// the held-out table.
#[derive(Debug, Clone)]
pub struct Replay {
    /// The policy that decided the rows.
    pub(super) policy: Policy,
    /// Its decisions; for a forest with the expected losses of each row.
    pub(super) decisions: Decisions,
    pub(super) places: Vec<Place>,
    pub(super) groups: Vec<Group>,
    pub(super) weights: Vec<f64>,
    /// Loss of the served prediction.
    pub(super) total: Vec<f64>,
    /// Loss of the Bayes-optimal oracle.
    pub(super) irreducible: Vec<f64>,
    /// Losses of the other oracles.
    pub(super) oracles: RowLosses,
    /// The losses corrected for the bias of few labels; none if the truth is known or labels do not separate noise from error.
    pub(super) corrected: Option<Corrected>,
    /// Entropy of the served prediction.
    pub(super) uncertainty: Vec<f64>,
    /// The fold of each row; empty if no thresholds are compared.
    pub(super) folds: Vec<u32>,
    pub(super) truth_known: bool,
    /// A hash of the rows' votes or truth, independent of the order of classes.
    pub(super) labels: u64,
    /// The caps under which policies are evaluated.
    pub(super) caps: Option<CappedRows>,
}

/// The cell, source and group of a row. Rows with the same cell and source are decided alike and form a group. Only an empty cell, whose
/// rows fall back, has several sources.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) cell: u32,
    pub(super) source: u32,
    pub(super) group: u32,
}

/// The mean losses of a group of rows.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) cell: u32,
    pub(super) source: u32,
    /// Share of the rows, by weight.
    pub(super) share: f64,
    pub(super) total: f64,
    pub(super) irreducible: f64,
    pub(super) oracles: Vec<f64>,
    /// The losses of the Bayes-optimal and the other oracles, corrected for the bias of few labels, if they differ from those above.
    pub(super) corrected: Option<(f64, Vec<f64>)>,
}

/// The losses from which costs are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Basis {
    /// Losses under the truth of the table.
    Table,
    /// Losses corrected for the bias of few labels, as far as possible.
    Corrected,
    /// Losses by a second correction; the difference of the two shows what the labels leave open.
    Alternative,
}

impl Group {
    /// The losses of the Bayes-optimal oracle and of the others.
    pub(super) fn losses(&self, by: Basis) -> (f64, &[f64]) {
        match &self.corrected {
            Some((irreducible, oracles)) if by != Basis::Table => (*irreducible, oracles),
            _ => (self.irreducible, &self.oracles),
        }
    }

    /// The loss of an oracle.
    pub(super) fn at(&self, oracle: OracleLoss, by: Basis) -> f64 {
        let (irreducible, oracles) = self.losses(by);
        oracle.pick(irreducible, |place| oracles[place])
    }

    /// The cost of an action.
    pub(super) fn cost(&self, policy: &Policy, action: usize, by: Basis) -> f64 {
        let (irreducible, oracles) = self.losses(by);
        policy.cost_of(action, self.total, irreducible, |place| oracles[place])
    }
}

/// The first action with the least cost.
pub(super) fn best(actions: usize, cost: impl Fn(usize) -> f64) -> usize {
    (0..actions).min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(0)
}

impl Policy {
    /// Decides held-out rows and computes their actual losses.
    ///
    /// # Errors
    /// If the table has no rows, neither votes nor truth, other classes, or lacks a feature or a measured oracle.
    pub fn replay(&self, table: &Table) -> Result<Replay> {
        let mut replay = self.replay_uncorrected(table)?;
        if !replay.truth_known {
            replay.corrected =
                Corrected::fit(self, table, &replay.places, &replay.oracles, &replay.estimated_reducible())?;
        }
        replay.folds = label_free::folds(table, FOLDS, FOLD_SEED);
        replay.form_groups();
        Ok(replay)
    }

    /// As [`Self::replay`] without the correction for few labels: the labels count as the truth. Costs of policies and routing curves are
    /// found much faster; an evaluation lacks what needs the correction, and the savings.
    ///
    /// # Errors
    /// As [`Self::replay`].
    pub fn replay_uncorrected(&self, table: &Table) -> Result<Replay> {
        self.check_held_out(table)?;
        let truth_known = table.truth(0).is_some();
        let decisions = self.decide_batch(table)?;
        let loss = self.task().loss();
        let classes = self.classes().len();
        let class_hashes: Vec<u64> =
            self.classes().iter().map(|name| name.bytes().fold(0, |hash, byte| mix(hash, byte.into()))).collect();
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
            let place = Place { cell, source, group: verdict.code() };
            let votes = table.votes(row).filter(|_| !truth_known);
            let labels = label_hash(&class_hashes, votes, truth);
            (place, dot(truth, losses), loss.entropy(truth), loss.entropy(served), labels)
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
            oracles: RowLosses::held_out(table, loss, self.other_oracles())?,
            corrected: None,
            uncertainty: Vec::with_capacity(rows.len()),
            folds: Vec::new(),
            truth_known,
            labels: 0,
            caps: None,
        };
        for (place, total, irreducible, uncertainty, labels) in rows {
            replay.places.push(place);
            replay.total.push(total);
            replay.irreducible.push(irreducible);
            replay.uncertainty.push(uncertainty);
            replay.labels = mix(replay.labels, labels);
        }
        replay.number_groups();
        replay.form_groups();
        Ok(replay)
    }

    /// Checks that a table has rows, votes or truth, and the router's classes.
    fn check_held_out(&self, table: &Table) -> Result<()> {
        if table.rows() == 0 {
            return Err(TableError::TooFewRows { purpose: "evaluation", rows: 0, least: 1 }.into());
        }
        if table.truth(0).is_none() && !table.has_votes() {
            return Err(TableError::NoVotes { purpose: "evaluation", columns: "votes_<class> or true_<class>" }.into());
        }
        if table.classes() != self.classes() {
            let (table, router) = (table.classes().to_vec(), self.classes().to_vec());
            return Err(TableError::OtherClasses { table, router }.into());
        }
        Ok(())
    }
}

/// A hash of a row's votes, or of its truth if there are none, that does not depend on the order of classes.
fn label_hash(class_hashes: &[u64], votes: Option<Votes<'_>>, truth: &[f64]) -> u64 {
    // In single precision, because dividing by sums in another order changes the last bits of a truth.
    let label = |class: usize| match votes {
        Some(votes) => u64::from(votes.counts()[class]),
        None => u64::from((truth[class] as f32).to_bits()),
    };
    (0..truth.len()).fold(0_u64, |sum, class| sum.wrapping_add(mix(class_hashes[class], label(class))))
}

impl Replay {
    /// Checks that the rows were replayed with this policy or one that it was repriced from.
    pub(super) fn check(&self, policy: &Policy) -> Result<()> {
        if self.policy.shares_estimates(policy) {
            return Ok(());
        }
        Err(TaskError::OtherReplay.into())
    }

    /// Numbers the groups consecutively.
    pub(super) fn number_groups(&mut self) {
        let mut codes: Vec<u32> = self.places.iter().map(|place| place.group).collect();
        codes.sort_unstable();
        codes.dedup();
        for place in &mut self.places {
            place.group = codes.binary_search(&place.group).unwrap_or(0) as u32;
        }
    }

    /// Computes the means of each group.
    pub(super) fn form_groups(&mut self) {
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

    /// Whether the bias of few labels can be corrected at every confidence.
    pub(super) fn is_correctable(&self) -> bool {
        self.truth_known || self.corrected.as_ref().is_some_and(|corrected| corrected.all_identified)
    }

    /// Whether the labels of at least half of the rows separate noise from error.
    pub(super) fn separates_noise(&self) -> bool {
        self.truth_known || self.corrected.is_some()
    }

    /// The basis for conclusions.
    pub(super) fn best_basis(&self) -> Basis {
        if self.is_correctable() && !self.truth_known { Basis::Corrected } else { Basis::Table }
    }

    /// The Bayes-optimal oracle's loss on a row.
    pub(super) fn irreducible_at(&self, row: usize, by: Basis) -> f64 {
        match (by, &self.corrected) {
            (Basis::Corrected, Some(corrected)) => corrected.irreducible[row],
            (Basis::Alternative, Some(corrected)) => corrected.alternative[row],
            _ => self.irreducible[row],
        }
    }

    /// The actual cost of an action on a row.
    pub(super) fn cost(&self, policy: &Policy, row: usize, action: usize, by: Basis) -> f64 {
        let oracles = match &self.corrected {
            Some(corrected) if by != Basis::Table => &corrected.oracles,
            _ => self.oracles.columns(),
        };
        policy.cost_of(action, self.total[row], self.irreducible_at(row, by), |place| oracles[place][row])
    }

    /// The mean cost of always taking one action.
    pub(super) fn always(&self, policy: &Policy, action: usize, by: Basis) -> f64 {
        sum(self.groups.iter().map(|group| group.share * group.cost(policy, action, by)))
    }

    /// The cost of the cheapest action on a row under the truth of the table.
    pub(super) fn least_cost(&self, policy: &Policy, row: usize, actions: usize) -> f64 {
        (0..actions).map(|action| self.cost(policy, row, action, Basis::Table)).fold(f64::INFINITY, f64::min)
    }

    /// The weighted mean and its standard error; none for one row. Sums are compensated, so rules that differ on few rows compare exactly.
    pub(super) fn mean(&self, value: &dyn Fn(usize) -> f64) -> Mean {
        let weight = sum(self.weights.iter().copied());
        let mean = sum(self.weights.iter().enumerate().map(|(row, w)| w * value(row))) / weight;
        let squares: f64 = self.weights.iter().enumerate().map(|(row, w)| (w * (value(row) - mean)).powi(2)).sum();
        let several = self.weights.iter().filter(|&&weight| weight > 0.0).nth(1).is_some();
        Mean { mean, standard_error: several.then(|| squares.sqrt() / weight) }
    }

    /// A value per row by both corrections.
    pub(super) fn each_row(&self, value: &dyn Fn(usize, Basis) -> f64) -> [Vec<f64>; 2] {
        [Basis::Corrected, Basis::Alternative].map(|by| (0..self.places.len()).map(|row| value(row, by)).collect())
    }

    /// The corrected mean and its standard error, which includes the difference of the two corrections.
    pub(super) fn corrected_mean(&self, [rows, alternative]: &[Vec<f64>; 2]) -> Mean {
        let Mean { mean, standard_error } = self.mean(&|row| rows[row]);
        let open = self.mean(&|row| alternative[row]).mean - mean;
        Mean { mean, standard_error: standard_error.map(|error| error.hypot(open)) }
    }

    /// The share of the rows in groups for which `holds` is true.
    pub(super) fn share(&self, holds: impl Fn(&Group) -> bool) -> f64 {
        sum(self.groups.iter().filter(|group| holds(group)).map(|group| group.share)).min(1.0)
    }

    /// The effective number of rows for which `counts` is true, (Σw)²/Σw².
    pub(super) fn effective_rows(&self, counts: impl Fn(usize) -> bool) -> usize {
        let weights = || self.weights.iter().enumerate().filter(|(row, _)| counts(*row)).map(|(_, weight)| weight);
        let (sum, squares): (f64, f64) = (weights().sum(), weights().map(|weight| weight * weight).sum());
        // Rounding must not make one row less of equal weights.
        if squares > 0.0 { (sum * sum / squares + 1e-6) as usize } else { 0 }
    }

    /// The size below which differences of losses are rounding.
    pub(super) fn negligible(&self) -> f64 {
        NEGLIGIBLE * self.policy.task().loss().rounding().max(self.mean(&|row| self.total[row]).mean)
    }
}

/// The differences between two rules, row by row.
pub(super) fn minus(one: &[Vec<f64>; 2], two: &[Vec<f64>; 2]) -> [Vec<f64>; 2] {
    [0, 1].map(|by| one[by].iter().zip(&two[by]).map(|(a, b)| a - b).collect())
}

/// Neumaier's compensated sum, accurate to the last digit.
pub(super) fn sum(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
    for value in values {
        let next = sum + value;
        lost += if sum.abs() >= value.abs() { (sum - next) + value } else { (value - next) + sum };
        sum = next;
    }
    sum + lost
}
