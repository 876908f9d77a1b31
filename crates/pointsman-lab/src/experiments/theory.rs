//! Measures the paper's theorem, its lemma on partitions and its Bayes-dependent oracles. The truth is known or, in a
//! data set with a hundred labels per item, taken from the labels.
//!
//! *Theorem*: an ε-higher-order calibrated router has a regret of at most Bε against the best action per level set. ε
//! is the W1 distance between a cell's stored snapshot means and the truth of its test rows; its mean over cells,
//! weighted by test rows, bounds the mean regret. *Lemma on partitions*: without abstention, the best action per cell
//! costs at most half the mean absolute deviation of the reducible loss within cells more than the best action per row.
//! *Bayes-dependent oracles*: the cost of a panel, estimated from the stored snapshot means, has an error of at most
//! γε.

use pointsman::evaluate::{Sweep, SweepAxis};
use pointsman::oracle::Aggregate;
use pointsman::wasserstein::{Cloud, w1};
use pointsman::{CellId, Estimator, Loss, Oracle, Partition, Policy, Replay, Router, Table, Task};
use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::problem::{Problem, Source};
use crate::random::Random;
use crate::subsample;

/// Test rows; W1 and the best action per row need no more.
const TEST_ROWS: usize = 20_000;
/// Labels per calibration item; the last value keeps all labels.
const LABELS_PER_ITEM: [u64; 4] = [2, 5, 20, u64::MAX];
/// Prices of routing and of abstaining.
const ROUTE_PRICES: [f64; 6] = [0.0, 0.01, 0.02, 0.05, 0.1, 0.2];
const ABSTAIN_PRICES: [f64; 7] = [0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8];
const PANEL_SIZES: [u32; 3] = [1, 3, 9];
const LABEL_PRICE: f64 = 0.01;

pub(super) fn measure(problem: &Problem, seed: u64) -> Result<Value> {
    let test = subsample::first_rows(&problem.test, TEST_ROWS)?;
    let mut random = Random::new(seed, "theory");
    let mut theorem = Map::new();
    for k in LABELS_PER_ITEM {
        let table = subsample::draw_labels(&problem.calibration, k, &mut random)?;
        let level_sets = LevelSets::new(&table, &problem.partition, &test)?;
        let mut by_loss = Map::new();
        for loss in &problem.losses {
            by_loss.insert(loss.to_string(), compare_regrets(&level_sets, loss)?);
        }
        let name = if k == u64::MAX { "all".into() } else { k.to_string() };
        theorem.insert(name, json!({ "epsilon": level_sets.mean(&|cell| cell.epsilon), "losses": by_loss }));
    }
    let all = LevelSets::new(&problem.calibration, &problem.partition, &test)?;
    Ok(json!({
        "theorem": theorem,
        "oracles": compare_panels(&all)?,
        "partitions": compare_partitions(problem, &test)?,
        "loss": problem.own_loss.to_string(),
    }))
}

/// A recalibrated router, whose predictions are constant on its cells, and the test rows of each cell.
struct LevelSets<'a> {
    router: Router,
    test: &'a Table,
    cells: Vec<LevelSet>,
}

struct LevelSet {
    cell: CellId,
    share: f64,
    /// W1 between stored snapshot means and the truth of the test rows.
    epsilon: f64,
    stored: Vec<Vec<f64>>,
    truth: Vec<Vec<f64>>,
}

impl<'a> LevelSets<'a> {
    fn new(calibration: &Table, partition: &Partition, test: &'a Table) -> Result<Self> {
        let router = Router::calibrate(calibration, partition)?.recalibrated();
        let mut met: Vec<Vec<Vec<f64>>> = vec![Vec::new(); router.cells().count()];
        for (row, cell) in router.find_cells(test)?.into_iter().enumerate() {
            met[cell.index()].push(truth_of(test, row));
        }
        let mut cells = Vec::new();
        for (index, truth) in met.into_iter().enumerate() {
            let cell = CellId(index as u32);
            let mixture = router.mixture(cell);
            if truth.is_empty() || mixture.is_empty() {
                continue;
            }
            let stored: Vec<Vec<f64>> = mixture.rows().map(|row| mean_of_votes(mixture.table(), row)).collect();
            let cloud = |points: &[Vec<f64>]| Cloud::uniform(test.classes().len(), &points.concat());
            let epsilon = w1(&cloud(&stored)?, &cloud(&truth)?, 0)?.distance;
            cells.push(LevelSet { cell, share: truth.len() as f64 / test.rows() as f64, epsilon, stored, truth });
        }
        Ok(Self { router, test, cells })
    }

    /// The mean over cells, weighted by test rows.
    fn mean(&self, value: &dyn Fn(&LevelSet) -> f64) -> f64 {
        self.cells.iter().map(|cell| cell.share * value(cell)).sum()
    }
}

/// The ratio of a quantity to its bound; zero where both are zero up to rounding.
fn used_share(used: f64, allowed: f64) -> f64 {
    if used <= 1e-12 { 0.0 } else { used / allowed }
}

fn mean_of_votes(table: &Table, row: usize) -> Vec<f64> {
    (0..table.classes().len()).map(|class| table.votes(row).map_or(0.0, |votes| votes.mean(class))).collect()
}

/// The truth of a row: known, or else the mean of its labels.
fn truth_of(table: &Table, row: usize) -> Vec<f64> {
    table.truth(row).map_or_else(|| mean_of_votes(table, row), <[f64]>::to_vec)
}

/// A task with the paper's estimator, the plug-in.
fn paper_task(loss: &Loss) -> Task {
    Task::new(loss.clone()).estimator(Estimator::Plugin)
}

/// The cost above the best action per cell, at each price of abstaining.
fn regret(replay: &Replay, policy: &Policy) -> Result<Vec<f64>> {
    let points = replay.sweep(policy, &Sweep::new(SweepAxis::Abstain, ABSTAIN_PRICES.to_vec()))?;
    let cost =
        |point: &pointsman::evaluate::SweepPoint, name: &str| point.mean_cost.get(name).copied().unwrap_or(f64::NAN);
    Ok(points.iter().map(|point| cost(point, "router") - cost(point, "cell-optimal")).collect())
}

/// Regrets at all prices compared with Bε, and errors of simulated costs compared with Bε/2.
fn compare_regrets(level_sets: &LevelSets<'_>, loss: &Loss) -> Result<Value> {
    let task = paper_task(loss).route("oracle", Oracle::bayes(), 0.0)?.abstain(ABSTAIN_PRICES[0])?;
    let policy = level_sets.router.policy(&task)?;
    let replay = policy.replay(level_sets.test)?;
    let mut all = Vec::new();
    for price in ROUTE_PRICES {
        all.extend(regret(&replay, &policy.reprice(&task.clone().reprice_route("oracle", price)?)?)?);
    }
    let met = replay.cell_losses();
    let (mut off, mut ratio) = (0.0, 0.0_f64);
    for cell in &level_sets.cells {
        let (Some(decision), Some(losses)) =
            (policy.cell(cell.cell), met.iter().find(|losses| losses.cell == cell.cell.0))
        else {
            continue;
        };
        let irreducible = decision.irreducible().unwrap_or(f64::NAN);
        let gap = (decision.total() - losses.total).abs().max((irreducible - losses.irreducible).abs());
        off += cell.share * gap;
        ratio = ratio.max(used_share(gap, loss.bound() / 2.0 * cell.epsilon));
    }
    let bound = loss.bound() * level_sets.mean(&|cell| cell.epsilon);
    Ok(json!({
        "bound": bound,
        "regret_largest": all.iter().copied().fold(0.0, f64::max),
        "regret_mean": all.iter().sum::<f64>() / all.len() as f64,
        "prices": all.len(),
        "within": all.iter().filter(|regret| **regret <= bound + 1e-12).count(),
        "costs_off_by": off,
        "largest_of_allowed": ratio,
    }))
}

/// The costs of panels by the stored snapshot means and by the truth, compared with γε, and the regret of a router that may
/// use all panels.
fn compare_panels(level_sets: &LevelSets<'_>) -> Result<Value> {
    let classes = level_sets.test.classes().len();
    let mut out = Map::new();
    for (loss, aggregate) in [
        (Loss::brier(), Aggregate::Mean),
        (Loss::cross_entropy(), Aggregate::Laplace(0.5)),
        (Loss::zero_one(), Aggregate::Plurality),
    ] {
        let mut task = paper_task(&loss);
        let (mut by_panel, mut steepest) = (Map::new(), loss.bound() / 2.0);
        for experts in PANEL_SIZES {
            let oracle = Oracle::panel(experts, aggregate)?;
            let steepness = oracle.lipschitz(&loss, classes);
            let mean = |points: &[Vec<f64>]| {
                let costs = points.iter().filter_map(|p| oracle.cost(&loss, p));
                costs.sum::<f64>() / points.len() as f64
            };
            let (mut off, mut ratio, mut simulated, mut met) = (0.0, 0.0_f64, 0.0, 0.0);
            for cell in &level_sets.cells {
                let (stored, truth) = (mean(&cell.stored), mean(&cell.truth));
                simulated += cell.share * stored;
                met += cell.share * truth;
                off += cell.share * (stored - truth).abs();
                ratio = ratio.max(used_share((stored - truth).abs(), steepness * cell.epsilon));
            }
            steepest = steepest.max(steepness);
            task = task.route(format!("{experts}"), oracle, f64::from(experts) * LABEL_PRICE)?;
            by_panel.insert(
                experts.to_string(),
                json!({
                    "simulated": simulated,
                    "met": met,
                    "off_by": off,
                    "allowed": steepness * level_sets.mean(&|cell| cell.epsilon),
                    "largest_of_allowed": ratio,
                }),
            );
        }
        let policy = level_sets.router.policy(&task.abstain(ABSTAIN_PRICES[0])?)?;
        let found = regret(&policy.replay(level_sets.test)?, &policy)?;
        out.insert(
            loss.to_string(),
            json!({
                "aggregate": aggregate.to_string(),
                "panels": by_panel,
                "regret_largest": found.iter().copied().fold(0.0, f64::max),
                "bound": 2.0 * steepest * level_sets.mean(&|cell| cell.epsilon),
            }),
        );
    }
    Ok(Value::Object(out))
}

/// For several partitions: the largest excess over prices of the best action per cell over the best action per row,
/// compared with the lemma's bound.
fn compare_partitions(problem: &Problem, test: &Table) -> Result<Value> {
    let mut tried = vec![Partition::confidence(1)];
    tried.extend([1, 2, 5, 10, 20, 40, 80].map(Partition::top_class));
    if let Source::World(_) = problem.source {
        tried.extend([10, 100, 400].map(|bins| Partition::features([("x", bins)])));
    }
    let mut out = Map::new();
    for partition in tried {
        let router = Router::calibrate(&problem.calibration, &partition)?;
        let task = paper_task(&problem.own_loss).route("oracle", Oracle::bayes(), 0.0)?;
        let policy = router.policy(&task)?;
        let replay = policy.replay(test)?;
        let reducible = replay.reducible();
        let mut cells = vec![(0.0, 0.0); router.cells().count()];
        let cell_of_row: Vec<usize> = router.find_cells(test)?.into_iter().map(CellId::index).collect();
        for (&cell, reducible) in cell_of_row.iter().zip(&reducible) {
            cells[cell].0 += 1.0;
            cells[cell].1 += reducible;
        }
        let deviation = cell_of_row.iter().zip(&reducible).map(|(&cell, r)| (r - cells[cell].1 / cells[cell].0).abs());
        let bound = deviation.sum::<f64>() / test.rows() as f64 / 2.0;
        // The bound is attained by one cell at the price of its mean reducible loss.
        let mean = reducible.iter().sum::<f64>() / test.rows() as f64;
        let mut prices: Vec<f64> = (0..=60).map(|i| f64::from(i) / 60.0 * 4.0 * mean.max(0.0)).collect();
        prices.push(mean.max(0.0));
        let points = replay.sweep(&policy, &Sweep::new(SweepAxis::Route(None), prices))?;
        let cost = |point: &pointsman::evaluate::SweepPoint, name: &str| {
            point.mean_cost.get(name).copied().unwrap_or(f64::NAN)
        };
        let excess = points.iter().map(|point| cost(point, "cell-optimal") - cost(point, "pointwise-optimal"));
        out.insert(
            partition.to_string(),
            json!({
                "cells": router.cells().count(),
                "bound": bound,
                "excess_largest": excess.fold(0.0, f64::max),
            }),
        );
    }
    Ok(Value::Object(out))
}
