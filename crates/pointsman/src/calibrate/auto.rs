//! `auto`: of a few partitions the one that costs least on rows it has not seen.
//!
//! Every candidate is calibrated on four fifths of the rows and decides the rest, five times over, under a few standard tasks: three
//! losses, each with an oracle at half of, at, and at twice the mean reducible loss, and once with abstention. What a row costs is told
//! by its own labels, with the bias of few labels taken out. The cheapest candidate is taken, where half of the standard error of its
//! difference to pooled cells, the simplest candidate, is added to its cost. The router keeps the partition chosen, and no loss: the
//! tasks decide between partitions and are forgotten.

use super::{WORK_OF_FOREST, WORK_OF_TREE};
use crate::error::Result;
use crate::estimate::{LabelLosses, RowLosses};
use crate::loss::Loss;
use crate::number::{count, percent};
use crate::oracle::Oracle;
use crate::parallel::prelude::*;
use crate::partition::SPARSE_BELOW_ROWS;
use crate::partition::forest::growth_steps;
use crate::partition::{Factor, Partition, TREES};
use crate::router::{Progress, Router, check_size, label_free};
use crate::table::Table;
use crate::task::Task;

/// How partitions are compared.
#[derive(Clone, Copy)]
struct Rigour {
    /// Parts that the rows are divided into; each is decided by routers calibrated on the others.
    folds: usize,
    /// Trees of the forests compared; the one chosen has more, which changes costs little.
    trees: usize,
}

const FOR_CALIBRATION: Rigour = Rigour { folds: 5, trees: 50 };

/// A diagnosis makes the choice twenty times.
const FOR_DIAGNOSIS: Rigour = Rigour { folds: 3, trees: 25 };

/// Trees of the forests that a diagnosis evaluates.
const TREES_EVALUATED_IN_DIAGNOSIS: usize = 50;

/// Rows by which partitions are compared at most; the router is made of all.
const MAX_ROWS_COMPARED: usize = 4_000;

/// Rows with two labels from which partitions are compared: below that trees have nothing to divide.
const MIN_PAIRED_ROWS: usize = 4 * SPARSE_BELOW_ROWS;

/// Prices of the oracle, in units of the mean reducible loss.
const PRICES: [f64; 3] = [0.5, 1.0, 2.0];

/// The least such unit, as a share of the mean total loss: where nothing is reducible a price must still be one.
const LEAST_UNIT: f64 = 0.05;

/// Standard errors of the difference to pooled cells that are added to a candidate's cost. In worlds of 300 rows whose features are
/// noise, zero costs 0.001 more than a half, and one costs up to 0.001 less; where features tell, all three choose alike. Two would
/// miss gains as large as the error.
const CAUTION: f64 = 0.5;

/// The seed by which the rows compared are drawn and put into folds.
const SEED: u64 = 0xA070;

/// How `auto` chose a partition.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Choice {
    /// What it chose among: first the one chosen, then the others, cheapest first. Only one if there was nothing to compare by.
    pub candidates: Vec<Candidate>,
    /// Rows by which they were compared.
    pub rows: usize,
    /// Standard tasks under which they were compared.
    pub tasks: usize,
    /// Features of the table that the partition chosen asks for.
    pub features_used: Vec<String>,
    /// Features that it does without.
    pub features_ignored: Vec<String>,
    reason: String,
}

/// A partition that `auto` has looked at.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Candidate {
    /// The partition.
    pub partition: Partition,
    /// Its mean cost per query on rows left out, over the standard tasks, as a share of what always predicting costs.
    pub cost: f64,
    /// By how much that is above the cost of the one chosen; zero for that one.
    pub excess: f64,
    /// The standard error of this difference, over rows.
    pub standard_error: f64,
}

impl Choice {
    /// What was chosen and why, in one sentence.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// A router as [`Router::calibrate`] makes it, but with fewer trees in the forests that `auto` compares and chooses; and the partition
/// chosen, with as many trees as it has. A diagnosis makes many of them.
pub(super) fn choose_for_diagnosis(table: &Table, certifiable: bool) -> Result<(Router, Partition)> {
    let telling = table.without_constant_features();
    let rows = telling.as_ref().unwrap_or(table);
    let compared = Comparison::of(rows, certifiable, 0, FOR_DIAGNOSIS, &|| ())?;
    let chosen = compared.map_or_else(|_| Partition::pooled(), |compared| compared.candidates[0].partition.clone());
    let smaller = match chosen.factors() {
        [Factor::Forest { .. }] => Partition::forest(TREES_EVALUATED_IN_DIAGNOSIS),
        [Factor::HonestForest { .. }] => Partition::honest_forest(TREES_EVALUATED_IN_DIAGNOSIS),
        _ => chosen.clone(),
    };
    Ok((Router::fit(table, &smaller, 0, &|| ())?, chosen))
}

/// Chooses a partition and makes a router of all rows by it.
pub(super) fn choose(
    table: &Table,
    certifiable: bool,
    seed: u64,
    step: &(dyn Fn() + Sync),
) -> Result<(Router, Choice)> {
    // The time a tree takes grows with its rows.
    let all_rows = (table.rows() as u64).max(1);
    let Rigour { folds, trees } = FOR_CALIBRATION;
    let work_of_compared = all_rows.min(MAX_ROWS_COMPARED as u64) * (folds as u64 - 1) / folds as u64 * WORK_OF_TREE;
    let comparing = 2 * folds as u64 * growth_steps(trees) * work_of_compared;
    let progress = Progress::new(comparing + growth_steps(TREES) * all_rows * WORK_OF_FOREST, step);
    let telling = table.without_constant_features();
    let step = || progress.advance(work_of_compared);
    let compared = Comparison::of(telling.as_ref().unwrap_or(table), certifiable, seed, FOR_CALIBRATION, &step)?;
    progress.reach(comparing);
    let (candidates, rows, tasks, reason) = match compared {
        Ok(compared) => {
            let reason = compared.reason();
            (compared.candidates, compared.rows, compared.tasks, reason)
        }
        Err(reason) => {
            let only = Candidate { partition: Partition::pooled(), cost: f64::NAN, excess: 0.0, standard_error: 0.0 };
            (vec![only], 0, 0, reason)
        }
    };
    let router = Router::fit(table, &candidates[0].partition, seed, &|| progress.advance(all_rows * WORK_OF_TREE))?;
    progress.reach(u64::MAX);
    let features_used = router.features_used();
    let ignored = table.feature_names().iter().filter(|name| !features_used.contains(name)).cloned();
    let features_ignored = ignored.collect();
    Ok((router, Choice { candidates, rows, tasks, features_used, features_ignored, reason }))
}

/// Partitions to compare, simplest first: what is asked for, and what stands for it.
fn candidates(rows: usize, certifiable: bool, trees: usize) -> Vec<[Partition; 2]> {
    let same = |partition: Partition| [partition.clone(), partition];
    let mut all = vec![same(Partition::pooled()), same(Partition::tree())];
    // Forests of very many rows would be too large to keep.
    if check_size(rows, TREES).is_ok() {
        all.push([Partition::honest_forest(TREES), Partition::honest_forest(trees)]);
        if !certifiable {
            all.push([Partition::forest(TREES), Partition::forest(trees)]);
        }
    }
    all
}

/// One loss on the rows compared, and the tasks with it.
struct Measure {
    losses: LabelLosses,
    tasks: Vec<Task>,
    /// What always predicting costs.
    scale: f64,
}

impl Measure {
    /// `None` if the labels do not tell noise from error.
    fn of(rows: &Table, loss: Loss) -> Result<Option<Self>> {
        let losses = LabelLosses::from_table(rows, &loss, &RowLosses::default());
        let known = |row: &usize| losses.irreducible[*row].is_finite();
        let (mut weight, mut total, mut irreducible) = (0.0, 0.0, 0.0);
        for row in (0..rows.rows()).filter(known) {
            weight += rows.weight(row);
            total += rows.weight(row) * losses.total[row];
            irreducible += rows.weight(row) * losses.irreducible[row];
        }
        if weight == 0.0 {
            return Ok(None);
        }
        let (total, irreducible) = (total / weight, irreducible / weight);
        let scale = total.max(1e-6 * loss.bound());
        let unit = (total - irreducible).max(LEAST_UNIT * scale);
        let routed = |price: f64| Task::new(loss.clone()).route("oracle", Oracle::bayes(), price * unit);
        let mut tasks = PRICES.into_iter().map(routed).collect::<Result<Vec<Task>>>()?;
        tasks.push(routed(1.0)?.abstain((irreducible + unit).max(0.0))?);
        Ok(Some(Self { losses, tasks, scale }))
    }

    /// Adds to each row, of those in a table of held-out ones, what a router costs there.
    fn add(&self, router: &Router, rows: &[u32], held_out: &Table, costs: &mut [f64]) -> Result<()> {
        let policy = router.policy(&self.tasks[0])?;
        let decisions = policy.decide_batch(held_out)?;
        for task in &self.tasks {
            let taken = policy.reprice(task)?.actions_of(&decisions);
            for ((cost, &row), action) in costs.iter_mut().zip(rows).zip(taken) {
                let row = row as usize;
                *cost += match action {
                    0 => self.losses.total[row],
                    1 => self.losses.irreducible[row] + task.routes()[0].price(),
                    _ => task.abstain_price().unwrap_or(f64::NAN),
                } / self.scale;
            }
        }
        Ok(())
    }
}

/// Candidates with what they cost.
struct Comparison {
    candidates: Vec<Candidate>,
    rows: usize,
    tasks: usize,
    /// What the simplest costs, and the standard error of its difference to the one chosen.
    simplest: Candidate,
}

impl Comparison {
    /// The reason in words if there is nothing to compare by.
    fn of(
        table: &Table,
        certifiable: bool,
        seed: u64,
        rigour: Rigour,
        step: &(dyn Fn() + Sync),
    ) -> Result<std::result::Result<Self, String>> {
        let mut order = label_free::order_of_table(table, SEED);
        order.truncate(MAX_ROWS_COMPARED);
        let columns: Vec<usize> = (0..table.feature_names().len()).collect();
        let sample = table.select(&order, &columns);
        let paired = (0..sample.rows()).filter(|&row| sample.votes(row).is_some_and(|votes| votes.k() >= 2)).count();
        if paired < MIN_PAIRED_ROWS {
            return Ok(Err(format!(
                "pooled cells, since {} of {} rows have two labels or more, too few to compare partitions",
                count(paired),
                count(sample.rows())
            )));
        }
        let losses = [Loss::brier(), Loss::zero_one(), Loss::cross_entropy()];
        let measures = losses.into_par_iter().map(|loss| Measure::of(&sample, loss)).collect::<Result<Vec<_>>>()?;
        let Some(measures) = measures.into_iter().collect::<Option<Vec<Measure>>>() else {
            return Ok(Err("pooled cells, since the labels do not tell noise from error".into()));
        };
        let asked = candidates(table.rows(), certifiable, rigour.trees);
        let compared: Vec<&Partition> = asked.iter().map(|[_, compared]| compared).collect();
        let costs = costs_of_rows(&sample, &compared, &measures, rigour.folds, seed, step);
        let names = asked.iter().map(|[asked, _]| asked.clone());
        let costs: Vec<(Partition, Vec<f64>)> =
            names.zip(costs).filter_map(|(partition, costs)| Some((partition, costs?))).collect();
        if costs.first().is_none_or(|(simplest, _)| *simplest != asked[0][0]) {
            return Ok(Err("pooled cells, since no partition can be fitted to parts of these rows".into()));
        }
        let tasks = measures.iter().map(|measure| measure.tasks.len()).sum();
        Ok(Ok(Self::rank(&sample, costs, tasks)))
    }

    /// Takes the cheapest, pooled cells if in doubt.
    fn rank(sample: &Table, costs: Vec<(Partition, Vec<f64>)>, tasks: usize) -> Self {
        let known = |row: &usize| costs.iter().all(|(_, costs)| costs[*row].is_finite());
        let rows: Vec<usize> = (0..sample.rows()).filter(known).collect();
        let all: f64 = rows.iter().map(|&row| sample.weight(row)).sum();
        let sum = |value: &dyn Fn(usize) -> f64| rows.iter().map(|&row| value(row)).sum::<f64>();
        let mean = |place: usize| sum(&|row| sample.weight(row) * costs[place].1[row]) / all;
        let candidate = |place: usize, other: usize| {
            let excess = mean(place) - mean(other);
            let difference = |row: usize| costs[place].1[row] - costs[other].1[row] - excess;
            let squares = sum(&|row| (sample.weight(row) * difference(row)).powi(2));
            Candidate {
                partition: costs[place].0.clone(),
                cost: mean(place),
                excess,
                standard_error: squares.sqrt() / all,
            }
        };
        let score = |place: &usize| {
            let against_simplest = candidate(*place, 0);
            against_simplest.excess + CAUTION * against_simplest.standard_error
        };
        let places = 0..costs.len();
        let chosen = places.clone().min_by(|a, b| score(a).total_cmp(&score(b))).unwrap_or(0);
        let mut candidates: Vec<Candidate> = places.map(|place| candidate(place, chosen)).collect();
        let simplest = candidates[0].clone();
        let first = candidates.remove(chosen);
        candidates.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        candidates.insert(0, first);
        Self { candidates, rows: rows.len(), tasks, simplest }
    }

    fn reason(&self) -> String {
        let chosen = &self.candidates[0];
        let on = format!("on {} rows left out, over {} standard tasks", count(self.rows), self.tasks);
        match self.candidates.get(1) {
            _ if self.simplest.partition != chosen.partition => {
                let (saved, error) = (self.simplest.excess, self.simplest.standard_error);
                let [saved, error] = [saved, error].map(|x| percent(x / self.simplest.cost));
                format!("{} costs {saved} less than pooled cells (standard error {error}) {on}", chosen.partition)
            }
            Some(next) => {
                let [more, error] = [next.excess, next.standard_error].map(|x| percent(x.abs() / chosen.cost));
                let than = if next.excess < 0.0 { "less, too little to be sure" } else { "more" };
                format!(
                    "pooled cells: {}, the next best, costs {more} {than} (standard error {error}) {on}",
                    next.partition
                )
            }
            None => "pooled cells, since no other partition can be fitted to so few rows".to_owned(),
        }
    }
}

/// What each candidate costs each row when the row's fold is left out, the mean over all tasks; `None` if it cannot be fitted.
fn costs_of_rows(
    sample: &Table,
    candidates: &[&Partition],
    measures: &[Measure],
    folds: usize,
    seed: u64,
    step: &(dyn Fn() + Sync),
) -> Vec<Option<Vec<f64>>> {
    let tasks: usize = measures.iter().map(|measure| measure.tasks.len()).sum();
    let columns: Vec<usize> = (0..sample.feature_names().len()).collect();
    // The sample's rows are in random order.
    let of_fold = |fold: usize| (0..sample.rows() as u32).partition::<Vec<u32>, _>(|row| *row as usize % folds == fold);
    let judge = |place: usize| -> Option<(Vec<u32>, Vec<f64>)> {
        let (own, others) = of_fold(place % folds);
        let router = Router::fit(&sample.select(&others, &columns), candidates[place / folds], seed, step).ok()?;
        let (held_out, mut costs) = (sample.select(&own, &columns), vec![0.0; own.len()]);
        measures.iter().try_for_each(|measure| measure.add(&router, &own, &held_out, &mut costs)).ok()?;
        Some((own, costs))
    };
    let judged: Vec<_> = (0..candidates.len() * folds).into_par_iter().map(judge).collect();
    let gather = |folds: &[Option<(Vec<u32>, Vec<f64>)>]| {
        let mut all = vec![f64::NAN; sample.rows()];
        for fold in folds {
            let (rows, costs) = fold.as_ref()?;
            rows.iter().zip(costs).for_each(|(&row, &cost)| all[row as usize] = cost / tasks as f64);
        }
        Some(all)
    };
    judged.chunks_exact(folds).map(gather).collect()
}
