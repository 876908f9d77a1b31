//! Limits and traffic: budgets and caps on shifted traffic, and how often a shift is detected.

use pointsman::monitor::{TRAFFIC_DOUBT, TRAFFIC_TOLERANCE, share_limits};
use pointsman::policy::{Bid, CapRule, CapSize, Caps};
use pointsman::{Loss, Oracle, Partition, Policy, Router, Table, Task};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::error::Result;
use crate::random::Random;

/// The share of queries set as budget and as cap.
const TARGET_SHARE: f64 = 0.1;
const LABELS_PER_ITEM: u32 = 3;

/// Draws rows of two classes whose truth is the prediction with noise. With probability `hard`, the less confident of
/// two rows is kept.
fn draw_rows(n: usize, hard: f64, random: &mut Random) -> Result<Table> {
    let (mut probs, mut votes, mut truth) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..n {
        let (one, two) = (random.uniform(), random.uniform());
        let by_confidence = if (one - 0.5).abs() < (two - 0.5).abs() { [one, two] } else { [two, one] };
        let p = if random.uniform() <= hard { by_confidence[0] } else { one };
        let logit = (p / (1.0 - p).max(1e-9)).ln() + 1.2 * random.normal();
        let yes = 1.0 / (1.0 + (-logit).exp());
        let count = random.binomial(LABELS_PER_ITEM, yes);
        probs.extend([1.0 - p, p]);
        votes.extend([LABELS_PER_ITEM - count, count]);
        truth.extend([1.0 - yes, yes]);
    }
    Ok(Table::new(["no", "yes"], probs)?.with_votes(votes)?.with_truth(truth)?)
}

/// The shares routed under a budget and under a cap of the same share.
fn routed_shares(policy: &Policy, capped: &Policy, queries: &Table) -> Result<[f64; 2]> {
    let count = |policy: &Policy, decisions: &pointsman::Decisions| {
        let routed = (0..queries.rows()).filter(|&row| policy.row(decisions, row).code() == Some(1)).count();
        routed as f64 / queries.rows() as f64
    };
    let by_budget = count(policy, &policy.decide_batch(queries)?);
    let caps = Caps::new(capped.task(), [("expert", CapSize::Percent(100.0 * TARGET_SHARE))])?;
    let mut decisions = capped.decide_batch(queries)?;
    let keys = capped.cap_keys_of_table(queries, None)?;
    let bids = capped.bids(&caps, &decisions, &keys);
    let scan = |see: &mut dyn FnMut(&Bid)| {
        bids.iter().for_each(see);
        Ok::<(), std::convert::Infallible>(())
    };
    let Ok(mut rule) = CapRule::find(&caps, queries.rows() as u64, scan);
    capped.apply_caps(&mut rule, &mut decisions, &keys);
    Ok([by_budget, count(capped, &decisions)])
}

/// Shares routed under budgets and caps in one world, on the same and on harder traffic.
fn simulate_limits(seed: u64) -> Result<[[f64; 2]; 2]> {
    let mut random = Random::new(seed, "numbers limits");
    let router = Router::calibrate(&draw_rows(1000, 0.0, &mut random)?, &Partition::top_class(10))?;
    let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), 0.01)?;
    let (budget, capped) = (router.policy(&task.clone().budget(TARGET_SHARE)?)?, router.policy(&task)?);
    let (same, harder) = (draw_rows(2000, 0.0, &mut random)?, draw_rows(2000, 1.0, &mut random)?);
    Ok([routed_shares(&budget, &capped, &same)?, routed_shares(&budget, &capped, &harder)?])
}

/// A traffic simulation: cells of equal share; in the batch the first is `factor` times as frequent.
#[derive(Clone, Copy)]
struct TrafficSetting {
    cells: usize,
    calibration: usize,
    batch: usize,
    factor: f64,
}

const TRAFFIC_SETTINGS: [TrafficSetting; 7] = [
    TrafficSetting { cells: 20, calibration: 300, batch: 2000, factor: 1.0 },
    TrafficSetting { cells: 20, calibration: 1000, batch: 10_000, factor: 1.0 },
    TrafficSetting { cells: 20, calibration: 300, batch: 2000, factor: 2.0 },
    TrafficSetting { cells: 20, calibration: 1000, batch: 2000, factor: 2.0 },
    TrafficSetting { cells: 20, calibration: 1000, batch: 10_000, factor: 2.0 },
    TrafficSetting { cells: 20, calibration: 5000, batch: 10_000, factor: 2.0 },
    TrafficSetting { cells: 20, calibration: 5000, batch: 10_000, factor: 0.5 },
];

/// Predictions of uniform confidence, with the first cell `factor` times as frequent.
fn draw_confidences(n: usize, cells: usize, factor: f64, random: &mut Random) -> Result<Table> {
    let share = factor / cells as f64;
    let mut probs = Vec::with_capacity(2 * n);
    for _ in 0..n {
        let first = random.uniform() <= share;
        let (low, wide) = if first { (0.0, 1.0) } else { (1.0, cells as f64 - 1.0) };
        let p = 0.5 + 0.5 * (low + wide * random.uniform()) / cells as f64;
        probs.extend([p, 1.0 - p]);
    }
    Ok(Table::new(["no", "yes"], probs)?)
}

/// Whether a shift is reported, whether the first cell is listed first, and whether separate Clopper–Pearson limits of
/// the two shares would have reported a shift.
fn simulate_traffic(setting: TrafficSetting, seed: u64) -> Result<[bool; 3]> {
    let TrafficSetting { cells, calibration, batch, factor } = setting;
    let mut random = Random::new(seed, "numbers traffic");
    let before = draw_confidences(calibration, cells, 1.0, &mut random)?.with_votes([1, 1].repeat(calibration))?;
    let router = Router::calibrate(&before, &Partition::confidence(cells))?;
    let policy = router.policy(&Task::new(Loss::brier()))?;
    let queries = draw_confidences(batch, cells, factor, &mut random)?;
    let decisions = policy.decide_batch(&queries)?;
    let mut traffic = router.traffic();
    traffic.add(&policy, &queries, &decisions)?;
    let found = traffic.compare();
    let named = found.shares.first().is_some_and(|share| share.cell == 0);
    let count = router.cells().count();
    let mut now = vec![0.0; count];
    (0..batch).for_each(|row| now[policy.row(&decisions, row).cell().index()] += 1.0);
    let alpha = TRAFFIC_DOUBT / 2.0 / (2 * count) as f64;
    let apart = (0..count as u32).any(|cell| {
        let stored = router.mixture(pointsman::CellId(cell)).len() as f64;
        let [low, high] = share_limits(stored, calibration as f64, alpha);
        let [now_low, now_high] = share_limits(now[cell as usize], batch as f64, alpha);
        now_low > high * (1.0 + TRAFFIC_TOLERANCE) || now_high < low / (1.0 + TRAFFIC_TOLERANCE)
    });
    Ok([found.moved, named, apart])
}

pub(super) fn measure(worlds: usize) -> Result<Value> {
    let limits = (0..worlds as u64).into_par_iter().map(simulate_limits).collect::<Result<Vec<_>>>()?;
    let shares = |traffic: usize, rule: usize| {
        let shares = limits.iter().map(|world| world[traffic][rule]);
        let mean = shares.clone().sum::<f64>() / worlds as f64;
        json!({ "mean": mean, "least": shares.clone().fold(1.0, f64::min), "most": shares.fold(0.0, f64::max) })
    };
    let mut traffic = Vec::new();
    for setting in TRAFFIC_SETTINGS {
        let found = (0..worlds as u64).into_par_iter().map(|seed| simulate_traffic(setting, seed));
        let found = found.collect::<Result<Vec<_>>>()?;
        let share = |place: usize| found.iter().filter(|world| world[place]).count() as f64 / worlds as f64;
        traffic.push(json!({
            "cells": setting.cells, "calibration": setting.calibration, "batch": setting.batch, "factor": setting.factor,
            "moved": share(0), "named": share(1), "by_limits_alone": share(2),
        }));
    }
    Ok(json!({
        "worlds": worlds,
        "asked": TARGET_SHARE,
        "same": { "budget": shares(0, 0), "cap": shares(0, 1) },
        "harder": { "budget": shares(1, 0), "cap": shares(1, 1) },
        "traffic": traffic,
    }))
}

pub(super) fn section(numbers: &Value) -> String {
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let percent = |value: &Value| format!("{:.1} %", 100.0 * number(value));
    let range = |value: &Value| {
        format!("{} ({} to {})", percent(&value["mean"]), percent(&value["least"]), percent(&value["most"]))
    };
    let target = percent(&numbers["asked"]);
    let mut text = format!(
        "## Budgets, caps and traffic that has moved\n\n\
         A **budget** is a price: the share asked for is routed of traffic like the calibration rows. A **cap** counts the queries of the \
         table at hand. In {} worlds of 1,000 calibration rows and 2,000 queries, {target} asked for, the share routed was, on average and \
         from the least to the most in any world:\n\n\
         | traffic | budget | cap |\n|---|---|---|\n\
         | like the calibration rows | {} | {} |\n| the less confident of every two | {} | {} |\n\n\
         The cap is never exceeded; that no other way to keep it costs less is tested against all ways on small tables, with one to three caps. \
         On the harder traffic `decide` warns that the budget routes another share than promised.\n\n",
        numbers["worlds"],
        range(&numbers["same"]["budget"]),
        range(&numbers["same"]["cap"]),
        range(&numbers["harder"]["budget"]),
        range(&numbers["harder"]["cap"]),
    );
    text += "**Traffic has moved** is said if the share of a cell, or of a range of confidence in it, differs by more than a quarter from the \
             calibration rows' share and by more than chance explains, both shares being estimates. Cells have equal shares; the first is more \
             frequent in the batch:\n\n\
             | cells | calibration rows | batch | times as frequent | called moved | right cell named first | by the limits of both shares alone |\n\
             |---|---|---|---|---|---|---|\n";
    for row in numbers["traffic"].as_array().into_iter().flatten() {
        text += &format!(
            "| {} | {} | {} | {} | {:.3} | {} | {:.3} |\n",
            row["cells"],
            row["calibration"],
            row["batch"],
            row["factor"],
            number(&row["moved"]),
            if number(&row["factor"]) == 1.0 { "–".to_owned() } else { format!("{:.3}", number(&row["named"])) },
            number(&row["by_limits_alone"]),
        );
    }
    text += "\nAt most 0.05 of batches like the calibration rows may be called moved; the tolerance of a quarter makes it far fewer. The last \
             column asks instead that the Clopper–Pearson limits of both shares lie apart, which is as safe and sees less. A few hundred \
             calibration rows do not show that one cell in twenty has doubled: silence is no proof.\n";
    text
}
