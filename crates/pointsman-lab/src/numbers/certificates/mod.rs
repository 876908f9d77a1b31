//! Certificates: their coverage, their width compared with a bootstrap, and the advice to use coarser cells.

mod section;

use pointsman::certify::{AllLosses, Interval};
use pointsman::{CellId, Loss, Oracle, Partition, Policy, Router, Table, Task};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::levels::{BaseLosses, Item, LAWS, LEVELS, Law, action_costs, losses};
use crate::error::Result;
use crate::random::Random;
pub(super) use section::section;

/// The confidence of the checked certificates; low, so that failures would be visible.
const CONFIDENCE: f64 = 0.8;

/// Rows per cell, alternating between cells.
const ROWS_PER_LEVEL: [usize; 2] = [60, 250];
const LABELS_PER_ITEM: [usize; 3] = [2, 3, 5];

/// Prices of routing and abstaining, in units of the loss's scale.
const ROUTE_PRICES: [f64; 4] = [0.01, 0.05, 0.12, 0.25];
const ABSTAIN_PRICES: [Option<f64>; 3] = [None, Some(0.2), Some(0.45)];

/// For the comparison of widths: rows of the cell, its level, and bootstrap resamples.
const WIDTH_ROWS: [usize; 3] = [100, 300, 1000];
const WIDTH_LEVEL: usize = 6;
const RESAMPLES: usize = 200;

/// The bootstrap is slow, so it runs in this fraction of the worlds.
const BOOTSTRAP_WORLD_DIVISOR: usize = 4;

/// A confidence at which each interval by itself has 95 %. The certificate of one cell has three intervals with two
/// ends each, which share nine tenths of its failure probability.
const SINGLE_CELL_CONFIDENCE: f64 = 1.0 - 6.0 * 0.025 / 0.9;

fn task(loss: &Loss, route: f64, abstain: Option<f64>) -> Result<Task> {
    let task = Task::new(loss.clone()).route("expert", Oracle::bayes(), route)?;
    Ok(match abstain {
        Some(price) => task.abstain(price)?,
        None => task,
    })
}

pub(super) fn measure(worlds: usize) -> Result<Value> {
    let mut soundness = Vec::new();
    for law in &LAWS {
        for k in LABELS_PER_ITEM {
            soundness.push(check_worlds(law, k, worlds)?);
        }
    }
    let mut widths = Vec::new();
    for law in &LAWS[..4] {
        let losses = losses_with_spherical(law)?;
        let tasks = losses.iter().map(|(loss, _)| task(loss, 0.1, None)).collect::<Result<Vec<_>>>()?;
        let truths = law.base_losses_of(WIDTH_LEVEL, &law.certified_losses(&tasks)?);
        for (task, truth) in tasks.iter().zip(truths) {
            for (k, rows) in LABELS_PER_ITEM.into_iter().flat_map(|k| WIDTH_ROWS.map(|rows| (k, rows))) {
                widths.push(compare_widths(law, task, truth, k, rows, worlds.div_ceil(BOOTSTRAP_WORLD_DIVISOR))?);
            }
        }
    }
    Ok(json!({ "soundness": soundness, "widths": widths, "coarser": follow_coarsening_advice(worlds)? }))
}

fn losses_with_spherical(law: &Law) -> Result<Vec<(Loss, f64)>> {
    let mut all = losses(law.classes())?;
    all.push((Loss::spherical(), 0.5));
    Ok(all)
}

/// Counts of certificates and violations, in one world or summed over several.
#[derive(Debug, Clone, Copy, Default)]
struct CertificateCounts {
    worlds: usize,
    /// Worlds in which a jointly certified statement was violated.
    failed: usize,
    certain: usize,
    certain_and_wrong: usize,
    regret_bounds: usize,
    regret_bounds_violated: usize,
}

impl CertificateCounts {
    fn plus(self, other: Self) -> Self {
        Self {
            worlds: self.worlds + other.worlds,
            failed: self.failed + other.failed,
            certain: self.certain + other.certain,
            certain_and_wrong: self.certain_and_wrong + other.certain_and_wrong,
            regret_bounds: self.regret_bounds + other.regret_bounds,
            regret_bounds_violated: self.regret_bounds_violated + other.regret_bounds_violated,
        }
    }
}

/// Checks joint certificates of all losses in `worlds` worlds of a law.
fn check_worlds(law: &Law, k: usize, worlds: usize) -> Result<Value> {
    let losses = losses_with_spherical(law)?;
    let tasks = losses.iter().map(|(loss, scale)| task(loss, 0.1 * scale, None)).collect::<Result<Vec<_>>>()?;
    let certified = law.certified_losses(&tasks)?;
    let truths = law.base_losses(&certified);
    let check = |world: usize| check_world(law, k, &losses, &tasks, &certified, &truths, world as u64);
    let all: Vec<CertificateCounts> = (0..worlds).into_par_iter().map(check).collect::<Result<_>>()?;
    let all = all.into_iter().fold(CertificateCounts::default(), CertificateCounts::plus);
    Ok(json!({
        "law": law.name, "labels": k, "worlds": all.worlds, "failed": all.failed, "certain": all.certain,
        "certain_and_wrong": all.certain_and_wrong, "regret_bounds": all.regret_bounds,
        "regret_bounds_violated": all.regret_bounds_violated,
    }))
}

fn check_world(
    law: &Law,
    k: usize,
    losses: &[(Loss, f64)],
    tasks: &[Task],
    certified: &[Loss],
    truths: &[Vec<BaseLosses>],
    world: u64,
) -> Result<CertificateCounts> {
    let mut random = Random::new(world, &format!("certificates, {}, {k}", law.name));
    let rows = |level: usize| ROWS_PER_LEVEL[level % ROWS_PER_LEVEL.len()];
    let mut level_items = |level| (0..rows(level)).map(|_| law.draw_item(level, k, &mut random)).collect();
    let items: Vec<Vec<Item>> = (0..LEVELS).map(&mut level_items).collect();
    let by_level: Vec<(usize, &[Item])> =
        items.iter().enumerate().map(|(level, all)| (level, all.as_slice())).collect();
    let router = law.calibrate(&by_level)?;
    let levels = (0..LEVELS as u32).map(|cell| law.level_of(&router, CellId(cell))).collect::<Result<Vec<_>>>()?;
    let together = router.certify_together(tasks, CONFIDENCE)?;
    let mut found = CertificateCounts { worlds: 1, ..CertificateCounts::default() };
    let mut holds = true;
    for ((certificate, truths), (loss, scale)) in together.certificates.iter().zip(truths).zip(losses) {
        for (cell, &level) in certificate.cells().iter().zip(&levels) {
            let [predict, know] = truths[level];
            holds &= cell.total().contains(predict) && cell.irreducible().contains(know);
            holds &= cell.reducible().contains(predict - know);
        }
        for (route, abstain) in
            ROUTE_PRICES.into_iter().flat_map(|route| ABSTAIN_PRICES.map(|abstain| (route, abstain)))
        {
            let task = task(loss, scale * route, abstain.map(|price| scale * price))?;
            let (policy, names) = (router.policy(&task)?, task.action_names());
            let judged = certificate.judge(&policy)?;
            let mut regret = 0.0;
            for (cell, &level) in judged.cells.iter().zip(&levels) {
                let costs = action_costs(&task, truths[level]);
                let action =
                    policy.cell(CellId(cell_of_level(&levels, level))).map(|decision| decision.action().to_string());
                let taken = names.iter().position(|name| Some(name) == action.as_ref()).unwrap_or(0);
                let lost = costs[taken] - costs.iter().copied().fold(f64::INFINITY, f64::min);
                // A level's share of the traffic is its share of the rows.
                regret += lost * rows(level) as f64 / items.iter().map(Vec::len).sum::<usize>() as f64;
                found.certain += usize::from(cell.certain);
                found.certain_and_wrong += usize::from(cell.certain && lost > 0.0);
            }
            found.regret_bounds += 1;
            found.regret_bounds_violated += usize::from(regret > judged.regret_bound + 1e-12);
        }
    }
    for (bound, &level) in together.all_losses.iter().zip(&levels) {
        let Some(bound) = bound else { continue };
        let prediction = (law.prediction)(level);
        let of_loss = |(loss, truths): (&Loss, &Vec<BaseLosses>)| {
            is_bound_kept(bound, loss, truths[level], &prediction, &items[level], k)
        };
        holds &= certified.iter().zip(truths).all(of_loss);
    }
    found.failed = usize::from(!holds || found.certain_and_wrong > 0 || found.regret_bounds_violated > 0);
    Ok(found)
}

/// Whether the true losses of a level lie within the bounds for all losses.
fn is_bound_kept(
    bound: &AllLosses,
    loss: &Loss,
    [predict, know]: BaseLosses,
    prediction: &[f64],
    items: &[Item],
    k: usize,
) -> bool {
    let n = items.len() as f64;
    let share = |votes: &[u32]| votes.iter().map(|&n| f64::from(n) / k as f64).collect::<Vec<_>>();
    let total = items.iter().map(|(_, votes)| loss.expected(&share(votes), prediction)).sum::<f64>() / n;
    let low = items.iter().map(|(_, votes)| loss.entropy(&share(votes))).sum::<f64>() / n;
    bound.total.is_none_or(|error| (predict - total).abs() <= error * loss.bound())
        && know >= low - bound.irreducible_below * loss.bound()
        && know <= low + bound.irreducible_above * loss.bound()
}

fn cell_of_level(levels: &[usize], level: usize) -> u32 {
    levels.iter().position(|other| *other == level).unwrap_or(0) as u32
}

/// Widths and coverage of a cell's certificate, and of a bootstrap of its rows.
fn compare_widths(law: &Law, task: &Task, truth: BaseLosses, k: usize, rows: usize, worlds: usize) -> Result<Value> {
    let one = |world: usize| -> Result<[Intervals; 2]> {
        let mut random = Random::new(world as u64, &format!("widths, {}, {k}, {rows}", law.name));
        let items: Vec<Item> = (0..rows).map(|_| law.draw_item(WIDTH_LEVEL, k, &mut random)).collect();
        let router = law.calibrate(&[(WIDTH_LEVEL, &items)])?;
        let certificate = router.certificate(task, SINGLE_CELL_CONFIDENCE)?;
        let cell = &certificate.cells()[0];
        let resample = |_| -> Result<[f64; 2]> {
            let drawn: Vec<Item> = (0..rows).map(|_| items[random.below(rows)].clone()).collect();
            let policy: Policy = law.calibrate(&[(WIDTH_LEVEL, &drawn)])?.policy(task)?;
            let found = policy.cell(CellId(0));
            let number =
                |of: fn(&pointsman::Decision<'_>) -> Option<f64>| found.as_ref().and_then(of).unwrap_or(f64::NAN);
            Ok([number(|found| found.irreducible()), number(|found| found.reducible())])
        };
        let resampled = (0..RESAMPLES).map(resample).collect::<Result<Vec<_>>>()?;
        let identified = router.policy(task)?.identified(&router)?[0].map_or(f64::NAN, |[low, high]| high - low);
        Ok([
            Intervals { certified: cell.irreducible(), resampled: central_interval(&resampled, 0), identified },
            Intervals { certified: cell.reducible(), resampled: central_interval(&resampled, 1), identified },
        ])
    };
    let found: Vec<[Intervals; 2]> = (0..worlds).into_par_iter().map(one).collect::<Result<_>>()?;
    let [predict, know] = truth;
    let summary = |place: usize, truth: f64| {
        let mean =
            |of: &dyn Fn(&Intervals) -> f64| found.iter().map(|ends| of(&ends[place])).sum::<f64>() / worlds as f64;
        let share = |holds: bool| f64::from(u8::from(holds));
        json!({
            "certificate": mean(&|ends| ends.certified.width()),
            "bootstrap": mean(&|ends| ends.resampled[1] - ends.resampled[0]),
            "identified": mean(&|ends| ends.identified),
            "covered": mean(&|ends| share(ends.certified.contains(truth))),
            "bootstrap_covered": mean(&|ends| share((ends.resampled[0]..=ends.resampled[1]).contains(&truth))),
        })
    };
    Ok(json!({
        "law": law.name, "loss": task.loss().to_string(), "labels": k, "rows": rows,
        "irreducible": summary(0, know), "reducible": summary(1, predict - know),
    }))
}

/// Intervals for one quantity.
struct Intervals {
    certified: Interval,
    resampled: [f64; 2],
    /// The width of the interval of the irreducible loss that is identified by the labels.
    identified: f64,
}

/// The central 95 % interval of resampled values.
fn central_interval(resampled: &[[f64; 2]], place: usize) -> [f64; 2] {
    let mut values: Vec<f64> = resampled.iter().map(|pair| pair[place]).collect();
    values.sort_by(f64::total_cmp);
    let end = values.len() / 40;
    [values[end], values[values.len() - 1 - end]]
}

/// Draws rows of three classes with uniform confidence and known truth.
fn draw_table(rows: usize, k: usize, random: &mut Random) -> Result<Table> {
    let (mut probs, mut votes, mut truth) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rows {
        let c = 0.4 + 0.6 * random.uniform();
        let f = [c, 0.6 * (1.0 - c), 0.4 * (1.0 - c)];
        let p = if random.below(2) == 0 {
            random.dirichlet(f.map(|f| 6.0 * f + 0.7))
        } else {
            let clear = random.votes(&f, 1);
            clear.iter().map(|&n| 0.05 / 3.0 + 0.95 * f64::from(n)).collect()
        };
        votes.extend(random.votes(&p, k));
        probs.extend(f);
        truth.extend(p);
    }
    Ok(Table::new(["a", "b", "c"], probs)?.with_votes(votes)?.with_truth(truth)?)
}

/// Follows the advice to use coarser cells: the certain share of the traffic as forecast, on the same rows, and on new
/// rows.
fn follow_coarsening_advice(worlds: usize) -> Result<Value> {
    const ROWS: usize = 2000;
    let fine = Partition::confidence(40);
    let known = draw_table(50_000, 1, &mut Random::new(0, "coarser, truth"))?;
    let mut settings = Vec::new();
    for (loss, price) in [("brier", 0.15), ("cross-entropy", 0.3), ("zero-one", 0.12)] {
        let task = task(&loss.parse()?, price, None)?;
        let one = |world: usize| -> Result<Option<AdvisedWorld>> {
            let mut random = Random::new(world as u64, "coarser");
            let (rows, new) = (draw_table(ROWS, 3, &mut random)?, draw_table(ROWS, 3, &mut random)?);
            let router = Router::calibrate(&rows, &fine)?;
            let certain = |router: &Router, confidence: f64| -> Result<(f64, Vec<bool>)> {
                let judged = router.certificate(&task, confidence)?.judge(&router.policy(&task)?)?;
                Ok((judged.certain, judged.cells.iter().map(|cell| cell.certain).collect()))
            };
            let now = certain(&router, 0.9)?.0;
            let advice = router.coarser_cells(&task, 0.9)?;
            let Some(best) = advice.partitions.first() else { return Ok(None) };
            let same = Router::calibrate(&rows, &best.partition)?;
            let (on_same, cells) = certain(&same, advice.confidence)?;
            let (on_new, _) = certain(&Router::calibrate(&new, &best.partition)?, advice.confidence)?;
            let wrong = count_wrong_cells(&same, &task, &known, &cells)?;
            let count = cells.iter().filter(|certain| **certain).count();
            Ok(Some(AdvisedWorld { shares: [now, best.certain, on_same, on_new], certain: count, wrong }))
        };
        let found: Vec<Option<AdvisedWorld>> = (0..worlds).into_par_iter().map(one).collect::<Result<_>>()?;
        let found: Vec<AdvisedWorld> = found.into_iter().flatten().collect();
        let mean = |place: usize| found.iter().map(|world| world.shares[place]).sum::<f64>() / found.len() as f64;
        settings.push(json!({
            "loss": loss, "worlds": worlds, "advised": found.len(), "before": mean(0), "forecast": mean(1),
            "same_rows": mean(2), "new_rows": mean(3),
            "certain": found.iter().map(|world| world.certain).sum::<usize>(),
            "certain_and_wrong": found.iter().map(|world| world.wrong).sum::<usize>(),
        }));
    }
    Ok(Value::Array(settings))
}

/// A world in which coarser cells were advised.
struct AdvisedWorld {
    /// Certain shares of the traffic: before, as forecast, on the same rows, on new rows.
    shares: [f64; 4],
    certain: usize,
    wrong: usize,
}

/// The number of certain cells whose action is not the best by the known truth.
fn count_wrong_cells(router: &Router, task: &Task, known: &Table, certain: &[bool]) -> Result<usize> {
    let mut sums = vec![[0.0; 3]; certain.len()];
    for (row, cell) in router.find_cells(known)?.into_iter().enumerate() {
        let Some(p) = known.truth(row) else { continue };
        let values = [1.0, task.loss().expected(p, &known.prediction(row)), task.loss().entropy(p)];
        sums[cell.index()].iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }
    let policy = router.policy(task)?;
    let mut wrong = 0;
    for (cell, [n, predict, know]) in sums.into_iter().enumerate().filter(|(cell, _)| certain[*cell]) {
        let action = policy.cell(CellId(cell as u32)).map(|decision| decision.action().to_string());
        let best = if predict / n <= know / n + task.routes()[0].price() { "predict" } else { "route:expert" };
        wrong += usize::from(action.as_deref() != Some(best));
    }
    Ok(wrong)
}
