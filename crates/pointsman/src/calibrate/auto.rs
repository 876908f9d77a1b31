//! `auto`: the partition among a few candidates that costs least on held-out rows.
//!
//! Every candidate is cross-fitted in five folds under a few standard tasks: three losses, each with an oracle at half, one and two times the
//! mean reducible loss, and once with abstention. The cost of a row is measured by its own labels, corrected for the bias of few labels. The
//! cheapest candidate is chosen, after adding to its cost half of the standard error of its difference to pooled cells, the simplest
//! candidate. The router keeps the chosen partition, but neither the losses nor the tasks.
//!
//! A recalibrated router serves the mean of a query's cell. Cells that show where to route may have means that say little, since trees need
//! not split by the top class. Partitions for it are therefore compared by the Brier loss of what they serve.

use super::{Served, WORK_OF_FOREST, WORK_OF_TREE};
use crate::error::Result;
use crate::estimate::{LabelLosses, RowLosses};
use crate::loss::Loss;
use crate::number::{count, percent};
use crate::numeric::weighted::{WeightedMean, weighted_mean};
use crate::oracle::Oracle;
use crate::parallel::prelude::*;
use crate::partition::SPARSE_BELOW_ROWS;
use crate::partition::forest::growth_steps;
use crate::partition::{Factor, Partition, TREES};
use crate::router::{Progress, Router, check_size, label_free};
use crate::table::Table;
use crate::task::Task;

/// The effort of a comparison of partitions.
#[derive(Clone, Copy)]
struct Effort {
    /// The number of folds; each is decided by routers calibrated on the others.
    folds: usize,
    /// The number of trees of the forests compared. The chosen one has more, which changes costs little.
    trees: usize,
}

const FOR_CALIBRATION: Effort = Effort { folds: 5, trees: 50 };

/// Less effort, because a diagnosis makes the choice twenty times.
const FOR_DIAGNOSIS: Effort = Effort { folds: 3, trees: 25 };

/// The number of trees of the forests that a diagnosis evaluates.
const TREES_EVALUATED_IN_DIAGNOSIS: usize = 50;

/// The largest number of rows for the comparison; the router uses all rows.
const MAX_ROWS_COMPARED: usize = 4_000;

/// The smallest number of rows with two labels for a comparison; trees cannot be grown on fewer.
const MIN_PAIRED_ROWS: usize = 4 * SPARSE_BELOW_ROWS;

/// The prices of the oracle, in units of the mean reducible loss.
const PRICES: [f64; 3] = [0.5, 1.0, 2.0];

/// The smallest such unit, as a share of the mean total loss, so that prices are positive even if no loss is reducible.
const MIN_UNIT: f64 = 0.05;

/// The number of standard errors of the difference to pooled cells that is added to a candidate's cost. In simulations with 300 rows and noise
/// features, 0 costs 0.001 more than ½, and 1 costs up to 0.001 less; with informative features all three choose alike. 2 would miss gains
/// as large as the standard error.
const CAUTION: f64 = 0.5;

/// The seed of the sample of rows and of its folds.
const SEED: u64 = 0xA070;

/// How `auto` chose a partition.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Choice {
    /// The candidates: the chosen one first, then the others, cheapest first. Only one if nothing could be compared.
    pub candidates: Vec<Candidate>,
    /// The number of rows of the comparison.
    pub rows: usize,
    /// The number of standard tasks of the comparison.
    pub tasks: usize,
    /// Features of the table that the chosen partition uses.
    pub features_used: Vec<String>,
    /// Features that it does not use.
    pub features_ignored: Vec<String>,
    reason: String,
}

/// A partition that `auto` compared.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Candidate {
    /// The partition.
    pub partition: Partition,
    /// Its mean cost per query on held-out rows, over the standard tasks, as a share of the cost of always predicting.
    pub cost: f64,
    /// Its cost minus that of the chosen one.
    pub excess: f64,
    /// The standard error of this difference, over rows.
    pub standard_error: f64,
}

impl Choice {
    /// The choice and its reason, in one sentence.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// As [`Router::calibrate`], with fewer trees in the forests that `auto` compares and chooses, because a diagnosis makes many routers. Also
/// returns the chosen partition with its full number of trees.
pub(super) fn choose_for_diagnosis(table: &Table, certifiable: bool) -> Result<(Router, Partition)> {
    let reduced = table.without_constant_features();
    let rows = reduced.as_ref().unwrap_or(table);
    let wanted = Wanted { certifiable, recalibrated: false };
    let compared = Comparison::run(rows, wanted, 0, FOR_DIAGNOSIS, &|| ())?;
    let chosen = compared.map_or_else(|_| Partition::pooled(), |compared| compared.candidates[0].partition.clone());
    let smaller = match chosen.factors() {
        [Factor::Forest { .. }] => Partition::forest(TREES_EVALUATED_IN_DIAGNOSIS),
        [Factor::HonestForest { .. }] => Partition::honest_forest(TREES_EVALUATED_IN_DIAGNOSIS),
        _ => chosen.clone(),
    };
    Ok((Router::fit(table, &smaller, 0, &|| ())?, chosen))
}

/// What the chosen partition is for.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// Whether only partitions that can be certified are compared.
    pub(super) certifiable: bool,
    /// Whether the means of the cells are served, by which partitions are then compared.
    pub(super) recalibrated: bool,
}

/// Chooses a partition and calibrates a router on all rows.
pub(super) fn choose(table: &Table, wanted: Wanted, seed: u64, step: &(dyn Fn() + Sync)) -> Result<(Router, Choice)> {
    // The time to grow a tree is proportional to its rows.
    let all_rows = (table.rows() as u64).max(1);
    let Effort { folds, trees } = FOR_CALIBRATION;
    let work_of_compared = all_rows.min(MAX_ROWS_COMPARED as u64) * (folds as u64 - 1) / folds as u64 * WORK_OF_TREE;
    let comparing = 2 * folds as u64 * growth_steps(trees) * work_of_compared;
    let progress = Progress::new(comparing + growth_steps(TREES) * all_rows * WORK_OF_FOREST, step);
    let reduced = table.without_constant_features();
    let step = || progress.advance(work_of_compared);
    let compared = Comparison::run(reduced.as_ref().unwrap_or(table), wanted, seed, FOR_CALIBRATION, &step)?;
    progress.reach(comparing);
    let (candidates, rows, tasks, reason) = match compared {
        Ok(compared) => {
            let reason = compared.reason(table.rows());
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

/// The Brier loss of the means of a partition's cells on rows left out; `None` if it cannot be fitted to parts of the rows.
pub(super) fn measure_served(table: &Table, partition: &Partition, seed: u64) -> Result<Option<Served>> {
    let reduced = table.without_constant_features();
    let sample = sample(reduced.as_ref().unwrap_or(table));
    let compared = match partition.factors() {
        [Factor::HonestForest { trees }] => Partition::honest_forest(FOR_CALIBRATION.trees.min(*trees)),
        _ => partition.clone(),
    };
    let Some(measure) = Measure::new(&sample, Loss::brier(), true)? else { return Ok(None) };
    let measures = [measure];
    let costs = costs_of_rows(&sample, &[&compared], &measures, FOR_CALIBRATION.folds, seed, &|| ());
    let (Some(Some(costs)), [measure]) = (costs.first(), &measures) else { return Ok(None) };
    let own = &measure.losses.total;
    let row = |row: usize, value: f64| (sample.weight(row), value);
    let own_loss = weighted_mean((0..sample.rows()).map(|at| row(at, own[at])));
    let loss = weighted_mean((0..sample.rows()).map(|at| row(at, costs[at] * measure.scale)));
    let differences = (0..sample.rows()).map(|at| row(at, costs[at] * measure.scale - own[at]));
    let standard_error = WeightedMean::around(loss - own_loss, differences).standard_error();
    Ok(Some(Served { loss, own_loss, standard_error, rows: sample.rows() }))
}

/// The rows of a comparison, in random order.
fn sample(table: &Table) -> Table {
    let mut order = label_free::order_of_table(table, SEED);
    order.truncate(MAX_ROWS_COMPARED);
    let columns: Vec<usize> = (0..table.feature_names().len()).collect();
    table.select(&order, &columns)
}

/// The candidates, simplest first: each as it would be chosen, and with fewer trees for the comparison.
fn candidates(rows: usize, wanted: Wanted, trees: usize) -> Vec<[Partition; 2]> {
    let same = |partition: Partition| [partition.clone(), partition];
    let mut all = vec![same(Partition::pooled()), same(Partition::tree())];
    if wanted.recalibrated {
        // Pooled cells have several top classes where rows are few.
        all.push(same(Partition::top_class(10)));
    }
    // Forests of very many rows would not fit into memory.
    if check_size(rows, TREES).is_ok() {
        all.push([Partition::honest_forest(TREES), Partition::honest_forest(trees)]);
        // The cells of a forest have no means worth serving.
        if !wanted.certifiable && !wanted.recalibrated {
            all.push([Partition::forest(TREES), Partition::forest(trees)]);
        }
    }
    all
}

/// One loss on the sample of rows, and its tasks.
struct Measure {
    losses: LabelLosses,
    tasks: Vec<Task>,
    /// The cost of always predicting.
    scale: f64,
    /// Whether predictions are the means of cells.
    recalibrated: bool,
}

impl Measure {
    /// `None` if the labels do not separate noise from error. The only task of a recalibrated router is to predict, which needs no such labels.
    fn new(rows: &Table, loss: Loss, recalibrated: bool) -> Result<Option<Self>> {
        let losses = LabelLosses::from_table(rows, &loss, &RowLosses::default());
        if recalibrated {
            let total = weighted_mean((0..rows.rows()).map(|row| (rows.weight(row), losses.total[row])));
            let scale = total.max(1e-6 * loss.bound());
            return Ok(Some(Self { losses, tasks: vec![Task::new(loss)], scale, recalibrated }));
        }
        let known: Vec<usize> = (0..rows.rows()).filter(|&row| losses.irreducible[row].is_finite()).collect();
        if known.is_empty() {
            return Ok(None);
        }
        let mean = |values: &[f64]| weighted_mean(known.iter().map(|&row| (rows.weight(row), values[row])));
        let (total, irreducible) = (mean(&losses.total), mean(&losses.irreducible));
        let scale = total.max(1e-6 * loss.bound());
        let unit = (total - irreducible).max(MIN_UNIT * scale);
        let routed = |price: f64| Task::new(loss.clone()).route("oracle", Oracle::bayes(), price * unit);
        let mut tasks = PRICES.into_iter().map(routed).collect::<Result<Vec<Task>>>()?;
        tasks.push(routed(1.0)?.abstain((irreducible + unit).max(0.0))?);
        Ok(Some(Self { losses, tasks, scale, recalibrated }))
    }

    /// Adds the cost of a router on each held-out row to `costs`.
    fn add(&self, router: &Router, rows: &[u32], held_out: &Table, costs: &mut [f64]) -> Result<()> {
        if self.recalibrated {
            let replay = router.clone().recalibrated().policy(&self.tasks[0])?.replay_uncorrected(held_out)?;
            costs.iter_mut().zip(replay.total_losses()).for_each(|(cost, loss)| *cost += loss / self.scale);
            return Ok(());
        }
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

/// The candidates with their costs.
struct Comparison {
    candidates: Vec<Candidate>,
    rows: usize,
    tasks: usize,
    /// The simplest candidate, with its difference to the chosen one.
    simplest: Candidate,
    /// Whether they were compared by what they serve.
    recalibrated: bool,
}

impl Comparison {
    /// Compares the candidates; the inner error is the reason, in words, why they cannot be compared.
    fn run(
        table: &Table,
        wanted: Wanted,
        seed: u64,
        effort: Effort,
        step: &(dyn Fn() + Sync),
    ) -> Result<std::result::Result<Self, String>> {
        let sample = sample(table);
        let paired = (0..sample.rows()).filter(|&row| sample.votes(row).is_some_and(|votes| votes.k() >= 2)).count();
        if paired < MIN_PAIRED_ROWS {
            return Ok(Err(format!(
                "pooled cells, since {} of {} rows have two labels or more, too few to compare partitions",
                count(paired),
                count(sample.rows())
            )));
        }
        let mut losses = vec![Loss::brier()];
        if !wanted.recalibrated {
            losses.extend([Loss::zero_one(), Loss::cross_entropy()]);
        }
        let measure = |loss| Measure::new(&sample, loss, wanted.recalibrated);
        let measures = losses.into_par_iter().map(measure).collect::<Result<Vec<_>>>()?;
        let Some(measures) = measures.into_iter().collect::<Option<Vec<Measure>>>() else {
            return Ok(Err("pooled cells, since the labels do not separate noise from error".into()));
        };
        let asked = candidates(table.rows(), wanted, effort.trees);
        let compared: Vec<&Partition> = asked.iter().map(|[_, compared]| compared).collect();
        let costs = costs_of_rows(&sample, &compared, &measures, effort.folds, seed, step);
        let names = asked.iter().map(|[asked, _]| asked.clone());
        let costs: Vec<(Partition, Vec<f64>)> =
            names.zip(costs).filter_map(|(partition, costs)| Some((partition, costs?))).collect();
        if costs.first().is_none_or(|(simplest, _)| *simplest != asked[0][0]) {
            return Ok(Err("pooled cells, since no partition can be fitted to parts of these rows".into()));
        }
        let tasks = measures.iter().map(|measure| measure.tasks.len()).sum();
        Ok(Ok(Self { recalibrated: wanted.recalibrated, ..Self::rank(&sample, costs, tasks) }))
    }

    /// Ranks the candidates: the chosen one first, then by cost.
    fn rank(sample: &Table, costs: Vec<(Partition, Vec<f64>)>, tasks: usize) -> Self {
        let known = |row: &usize| costs.iter().all(|(_, costs)| costs[*row].is_finite());
        let rows: Vec<usize> = (0..sample.rows()).filter(known).collect();
        let mean = |place: usize| weighted_mean(rows.iter().map(|&row| (sample.weight(row), costs[place].1[row])));
        let candidate = |place: usize, other: usize| {
            let excess = mean(place) - mean(other);
            let difference = |&row: &usize| (sample.weight(row), costs[place].1[row] - costs[other].1[row]);
            Candidate {
                partition: costs[place].0.clone(),
                cost: mean(place),
                excess,
                standard_error: WeightedMean::around(excess, rows.iter().map(difference)).standard_error(),
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
        Self { candidates, rows: rows.len(), tasks, simplest, recalibrated: false }
    }

    /// The choice and its reason, in one sentence; `all_rows` is the number of rows of the whole table.
    fn reason(&self, all_rows: usize) -> String {
        let chosen = &self.candidates[0];
        let by = match self.recalibrated {
            true => "by the Brier loss of always serving the means of cells".to_owned(),
            false => format!("over {} standard tasks", self.tasks),
        };
        let on = format!("on {} rows left out, {by}", count(self.rows));
        let reason = match self.candidates.get(1) {
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
        };
        match check_size(all_rows, TREES) {
            Err(_) => format!(
                "{reason}; no forest was tried, since {TREES} trees of {} rows would be too large to keep",
                count(all_rows)
            ),
            Ok(()) => reason,
        }
    }
}

/// The mean cost over all tasks of each candidate on each row, with the row's fold left out; `None` if it cannot be fitted.
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
    let evaluate = |place: usize| -> Option<(Vec<u32>, Vec<f64>)> {
        let (own, others) = of_fold(place % folds);
        let router = Router::fit(&sample.select(&others, &columns), candidates[place / folds], seed, step).ok()?;
        let (held_out, mut costs) = (sample.select(&own, &columns), vec![0.0; own.len()]);
        measures.iter().try_for_each(|measure| measure.add(&router, &own, &held_out, &mut costs)).ok()?;
        Some((own, costs))
    };
    let evaluated: Vec<_> = (0..candidates.len() * folds).into_par_iter().map(evaluate).collect();
    let gather = |folds: &[Option<(Vec<u32>, Vec<f64>)>]| {
        let mut all = vec![f64::NAN; sample.rows()];
        for fold in folds {
            let (rows, costs) = fold.as_ref()?;
            rows.iter().zip(costs).for_each(|(&row, &cost)| all[row as usize] = cost / tasks as f64);
        }
        Some(all)
    };
    evaluated.chunks_exact(folds).map(gather).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2³² rows in leaves are 21,474,836 rows in each of 200 trees.
    #[test]
    fn forests_of_too_many_rows_are_left_out_with_the_reason() {
        let pooled = Candidate { partition: Partition::pooled(), cost: 1.0, excess: 0.0, standard_error: 0.0 };
        let tree = Candidate { partition: Partition::tree(), cost: 1.1, excess: 0.1, standard_error: 0.01 };
        let candidates_tried = vec![pooled.clone(), tree];
        let compared =
            Comparison { candidates: candidates_tried, rows: 4_000, tasks: 12, simplest: pooled, recalibrated: false };
        let wanted = Wanted { certifiable: false, recalibrated: false };
        assert_eq!([21_474_836, 21_474_837].map(|rows| candidates(rows, wanted, 50).len()), [4, 2]);
        assert!(!compared.reason(21_474_836).contains("forest"), "{}", compared.reason(21_474_836));
        let reason = compared.reason(21_474_837);
        let why = "; no forest was tried, since 200 trees of 21,474,837 rows would be too large to keep";
        assert!(reason.ends_with(why), "{reason}");
    }
}
