//! Certificates: whether they hold, how wide they are beside a bootstrap, and whether advice to coarsen cells is right.

use std::fmt::Write;

use pointsman::certify::Interval;
use pointsman::{CellId, Loss, Oracle, Partition, Policy, Router, Table, Task};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::levels::{BaseLosses, Item, LAWS, LEVELS, Law, action_costs, losses};
use crate::error::Result;
use crate::random::Random;

/// The confidence of the certificates that are checked: low, so that failures would show.
const CONFIDENCE: f64 = 0.8;

/// Certificates are checked with so many rows per cell, from cell to cell.
const ROWS_PER_LEVEL: [usize; 2] = [60, 250];
const LABELS: [usize; 3] = [2, 3, 5];

/// Prices of routing and abstaining, in units of a loss's scale.
const ROUTES: [f64; 4] = [0.01, 0.05, 0.12, 0.25];
const ABSTENTIONS: [Option<f64>; 3] = [None, Some(0.2), Some(0.45)];

/// One cell of so many rows, its level, and how often it is resampled, for the comparison of widths.
const WIDTH_ROWS: [usize; 3] = [100, 300, 1000];
const WIDTH_LEVEL: usize = 6;
const RESAMPLES: usize = 200;

/// Worlds in which cells are resampled, as a part of the others.
const SLOW: usize = 4;

/// A certificate of one cell has three intervals with two ends each and spends nine tenths of its failures on them: with this confidence
/// each interval by itself is one of 95 %.
const CONFIDENCE_OF_ONE_CELL: f64 = 1.0 - 6.0 * 0.025 / 0.9;

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
        for k in LABELS {
            soundness.push(check_worlds(law, k, worlds)?);
        }
    }
    let mut widths = Vec::new();
    for law in &LAWS[..4] {
        let losses = losses_with_spherical(law)?;
        let tasks = losses.iter().map(|(loss, _)| task(loss, 0.1, None)).collect::<Result<Vec<_>>>()?;
        let truths = law.base_losses_of(WIDTH_LEVEL, &law.certified_losses(&tasks)?);
        for (task, truth) in tasks.iter().zip(truths) {
            for (k, rows) in LABELS.into_iter().flat_map(|k| WIDTH_ROWS.map(|rows| (k, rows))) {
                widths.push(compare_widths(law, task, truth, k, rows, worlds.div_ceil(SLOW))?);
            }
        }
    }
    Ok(json!({ "soundness": soundness, "widths": widths, "coarser": coarser(worlds)? }))
}

fn losses_with_spherical(law: &Law) -> Result<Vec<(Loss, f64)>> {
    let mut all = losses(law.classes())?;
    all.push((Loss::spherical(), 0.5));
    Ok(all)
}

/// What was found in one world or several.
#[derive(Debug, Clone, Copy, Default)]
struct Checked {
    worlds: usize,
    /// Worlds in which something that is printed together did not hold.
    failed: usize,
    certain: usize,
    certain_and_wrong: usize,
    regret_bounds: usize,
    regret_bounds_violated: usize,
}

impl Checked {
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

/// Certificates of all losses at once in so many worlds of a law.
fn check_worlds(law: &Law, k: usize, worlds: usize) -> Result<Value> {
    let losses = losses_with_spherical(law)?;
    let tasks = losses.iter().map(|(loss, scale)| task(loss, 0.1 * scale, None)).collect::<Result<Vec<_>>>()?;
    let certified = law.certified_losses(&tasks)?;
    let truths = law.base_losses(&certified);
    let check = |world: usize| check_world(law, k, &losses, &tasks, &certified, &truths, world as u64);
    let all: Vec<Checked> = (0..worlds).into_par_iter().map(check).collect::<Result<_>>()?;
    let all = all.into_iter().fold(Checked::default(), Checked::plus);
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
) -> Result<Checked> {
    let mut random = Random::new(world, &format!("certificates, {}, {k}", law.name));
    let rows = |level: usize| ROWS_PER_LEVEL[level % ROWS_PER_LEVEL.len()];
    let mut level_items = |level| (0..rows(level)).map(|_| law.draw_item(level, k, &mut random)).collect();
    let items: Vec<Vec<Item>> = (0..LEVELS).map(&mut level_items).collect();
    let by_level: Vec<(usize, &[Item])> =
        items.iter().enumerate().map(|(level, all)| (level, all.as_slice())).collect();
    let router = law.calibrate(&by_level)?;
    let levels = (0..LEVELS as u32).map(|cell| law.level_of(&router, CellId(cell))).collect::<Result<Vec<_>>>()?;
    let together = router.certify_together(tasks, CONFIDENCE)?;
    let mut found = Checked { worlds: 1, ..Checked::default() };
    let mut holds = true;
    for ((certificate, truths), (loss, scale)) in together.certificates.iter().zip(truths).zip(losses) {
        for (cell, &level) in certificate.cells().iter().zip(&levels) {
            let [predict, know] = truths[level];
            holds &= cell.total().contains(predict) && cell.irreducible().contains(know);
            holds &= cell.reducible().contains(predict - know);
        }
        for (route, abstain) in ROUTES.into_iter().flat_map(|route| ABSTENTIONS.map(|abstain| (route, abstain))) {
            let task = task(loss, scale * route, abstain.map(|price| scale * price))?;
            let (policy, names) = (router.policy(&task)?, task.action_names());
            let judged = certificate.judge(&policy)?;
            let mut regret = 0.0;
            for (cell, &level) in judged.cells.iter().zip(&levels) {
                let costs = action_costs(&task, truths[level]);
                let action =
                    policy.cell(CellId(place_of(&levels, level))).map(|decision| decision.action().to_string());
                let taken = names.iter().position(|name| Some(name) == action.as_ref()).unwrap_or(0);
                let lost = costs[taken] - costs.iter().copied().fold(f64::INFINITY, f64::min);
                // A level's share of all traffic is that of its rows: they are drawn level by level.
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
        for (loss, truths) in certified.iter().zip(truths) {
            let [predict, know] = truths[level];
            let (f, n) = ((law.prediction)(level), items[level].len() as f64);
            let share = |votes: &[u32]| votes.iter().map(|&n| f64::from(n) / k as f64).collect::<Vec<_>>();
            let u = items[level].iter().map(|(_, votes)| loss.expected(&share(votes), &f)).sum::<f64>() / n;
            let low = items[level].iter().map(|(_, votes)| loss.entropy(&share(votes))).sum::<f64>() / n;
            holds &= bound.total.is_none_or(|error| (predict - u).abs() <= error * loss.bound());
            holds &= know >= low - bound.irreducible_below * loss.bound();
            holds &= know <= low + bound.irreducible_above * loss.bound();
        }
    }
    found.failed = usize::from(!holds || found.certain_and_wrong > 0 || found.regret_bounds_violated > 0);
    Ok(found)
}

fn place_of(levels: &[usize], level: usize) -> u32 {
    levels.iter().position(|other| *other == level).unwrap_or(0) as u32
}

/// Widths and coverage of the certificate of one cell, and of a bootstrap of its rows with their labels.
fn compare_widths(law: &Law, ask: &Task, truth: BaseLosses, k: usize, rows: usize, worlds: usize) -> Result<Value> {
    let one = |world: usize| -> Result<[Ends; 2]> {
        let mut random = Random::new(world as u64, &format!("widths, {}, {k}, {rows}", law.name));
        let items: Vec<Item> = (0..rows).map(|_| law.draw_item(WIDTH_LEVEL, k, &mut random)).collect();
        let router = law.calibrate(&[(WIDTH_LEVEL, &items)])?;
        let certificate = router.certificate(ask, CONFIDENCE_OF_ONE_CELL)?;
        let cell = &certificate.cells()[0];
        let resample = |_| -> Result<[f64; 2]> {
            let drawn: Vec<Item> = (0..rows).map(|_| items[random.below(rows)].clone()).collect();
            let policy: Policy = law.calibrate(&[(WIDTH_LEVEL, &drawn)])?.policy(ask)?;
            let found = policy.cell(CellId(0));
            let number =
                |of: fn(&pointsman::Decision<'_>) -> Option<f64>| found.as_ref().and_then(of).unwrap_or(f64::NAN);
            Ok([number(|found| found.irreducible()), number(|found| found.reducible())])
        };
        let resampled = (0..RESAMPLES).map(resample).collect::<Result<Vec<_>>>()?;
        let identified = router.policy(ask)?.identified(&router)?[0].map_or(f64::NAN, |[low, high]| high - low);
        Ok([
            Ends { certified: cell.irreducible(), resampled: percentiles(&resampled, 0), identified },
            Ends { certified: cell.reducible(), resampled: percentiles(&resampled, 1), identified },
        ])
    };
    let found: Vec<[Ends; 2]> = (0..worlds).into_par_iter().map(one).collect::<Result<_>>()?;
    let [predict, know] = truth;
    let summary = |place: usize, truth: f64| {
        let mean = |of: &dyn Fn(&Ends) -> f64| found.iter().map(|ends| of(&ends[place])).sum::<f64>() / worlds as f64;
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
        "law": law.name, "loss": ask.loss().to_string(), "labels": k, "rows": rows,
        "irreducible": summary(0, know), "reducible": summary(1, predict - know),
    }))
}

/// What is said of one number.
struct Ends {
    certified: Interval,
    resampled: [f64; 2],
    /// The width of what so many labels identify of the irreducible loss.
    identified: f64,
}

/// The interval that leaves out a fortieth at either end.
fn percentiles(resampled: &[[f64; 2]], place: usize) -> [f64; 2] {
    let mut values: Vec<f64> = resampled.iter().map(|pair| pair[place]).collect();
    values.sort_by(f64::total_cmp);
    let end = values.len() / 40;
    [values[end], values[values.len() - 1 - end]]
}

/// Rows of three classes whose confidence is uniform, in a table that knows their truth.
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

/// Taking the advice to use coarser cells: what it was said to settle, and what it settles on the same rows and on as many new ones.
fn coarser(worlds: usize) -> Result<Value> {
    const ROWS: usize = 2000;
    let fine = Partition::confidence(40);
    let known = draw_table(50_000, 1, &mut Random::new(0, "coarser, truth"))?;
    let mut settings = Vec::new();
    for (loss, price) in [("brier", 0.15), ("cross-entropy", 0.3), ("zero-one", 0.12)] {
        let ask = task(&loss.parse()?, price, None)?;
        let one = |world: usize| -> Result<Option<Advised>> {
            let mut random = Random::new(world as u64, "coarser");
            let (rows, new) = (draw_table(ROWS, 3, &mut random)?, draw_table(ROWS, 3, &mut random)?);
            let router = Router::calibrate(&rows, &fine)?;
            let certain = |router: &Router, confidence: f64| -> Result<(f64, Vec<bool>)> {
                let judged = router.certificate(&ask, confidence)?.judge(&router.policy(&ask)?)?;
                Ok((judged.certain, judged.cells.iter().map(|cell| cell.certain).collect()))
            };
            let now = certain(&router, 0.9)?.0;
            let advice = router.coarser_cells(&ask, 0.9)?;
            let Some(best) = advice.partitions.first() else { return Ok(None) };
            let same = Router::calibrate(&rows, &best.partition)?;
            let (on_same, cells) = certain(&same, advice.confidence)?;
            let (on_new, _) = certain(&Router::calibrate(&new, &best.partition)?, advice.confidence)?;
            let wrong = wrong_cells(&same, &ask, &known, &cells)?;
            let count = cells.iter().filter(|certain| **certain).count();
            Ok(Some(Advised { shares: [now, best.certain, on_same, on_new], certain: count, wrong }))
        };
        let found: Vec<Option<Advised>> = (0..worlds).into_par_iter().map(one).collect::<Result<_>>()?;
        let found: Vec<Advised> = found.into_iter().flatten().collect();
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
struct Advised {
    /// Shares of the traffic settled: before, as forecast, on the same rows, on new ones.
    shares: [f64; 4],
    certain: usize,
    wrong: usize,
}

/// How many of the certain cells take an action that is not the best, by rows of known truth.
fn wrong_cells(router: &Router, task: &Task, known: &Table, certain: &[bool]) -> Result<usize> {
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

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn rows_of(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

pub(super) fn section(numbers: &Value) -> String {
    let mut out = String::from(
        "## Certificates\n\n\
         `show --confidence` prints intervals of every cell and says which actions are certain; all of it holds together with the confidence asked for, for every \
         loss declared and whatever the prices. Worlds of ten cells (60 or 250 rows) have certificates for five losses at once, with the bounds for all losses where \
         there are any, at a confidence of 0.8: at most a fifth of the worlds may fail in anything. Actions are judged at twelve pairs of prices per loss.\n\n\
         | law of p\\* | labels | worlds | failed in anything | certain cells | of them wrong | regret bounds | of them violated |\n|---|---|---|---|---|---|---|---|\n",
    );
    let mut sums = [0.0; 6];
    for row in rows_of(&numbers["soundness"]) {
        let keys = ["worlds", "failed", "certain", "certain_and_wrong", "regret_bounds", "regret_bounds_violated"];
        let values = keys.map(|key| number(&row[key]));
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        let columns = values.map(|value| format!("{value:.0}")).join(" | ");
        // Writing to a string cannot fail.
        let _ = writeln!(out, "| {} | {} | {columns} |", row["law"].as_str().unwrap_or(""), row["labels"]);
    }
    let _ = writeln!(out, "| all | | {} |", sums.map(|sum| format!("{sum:.0}")).join(" | "));
    out += "\n**Widths beside a bootstrap.** One cell; each interval by itself is one of 95 %. The bootstrap draws rows with their labels, 200 times, and leaves out a \
            fortieth of the estimates at either end. It is narrow where the estimate is biased or k labels cannot identify the loss, and then it misses the truth: \
            a certificate must be as wide as that. Widths are those of the certificate, in brackets how many times that of the bootstrap; coverage is the mean over the three \
            numbers of rows. Means over two laws per number of classes; single settings are in `docs/results/numbers/certificates.json`.\n\n";
    for part in ["irreducible", "reducible"] {
        let _ = writeln!(
            out,
            "| {part} loss: classes | loss | labels | 100 rows | 300 rows | 1,000 rows | coverage | of the bootstrap | identified |\n\
             |---|---|---|---|---|---|---|---|---|"
        );
        width_rows(numbers, part, &mut out);
        out += "\n";
    }
    out += "*Identified* is the width of what that many labels identify of the irreducible loss, however many rows there are. \
            A certificate of a finite sample needs about 1.4 times the width of a normal interval even where nothing else is open.\n\n\
            **Coarser cells.** Where most cells are undetermined, `show` and `plan` name the coarser partition that would settle more. 2,000 rows with three labels in forty cells; \
            shares of the traffic whose action is certain at 0.9 confidence before, as forecast, by certificates of the cells advised on the same rows (with the \
            confidence that allows for the choice), and on 2,000 new rows.\n\n\
            | loss | worlds | advised | before | forecast | same rows | new rows | certain cells | of them wrong |\n|---|---|---|---|---|---|---|---|---|\n";
    for row in rows_of(&numbers["coarser"]) {
        let shares = ["before", "forecast", "same_rows", "new_rows"].map(|key| format!("{:.2}", number(&row[key])));
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} | {} |",
            row["loss"].as_str().unwrap_or(""),
            row["worlds"],
            row["advised"],
            shares.join(" | "),
            row["certain"],
            row["certain_and_wrong"],
        );
    }
    out
}

/// One line per number of classes, loss and number of labels.
fn width_rows(numbers: &Value, part: &str, out: &mut String) {
    let key = |row: &Value| {
        let classes = if row["law"].as_str().unwrap_or("").starts_with("two") { 2 } else { 3 };
        (classes, row["loss"].as_str().unwrap_or("").to_owned(), row["labels"].as_u64().unwrap_or(0))
    };
    let mut seen = Vec::new();
    for row in rows_of(&numbers["widths"]) {
        if !seen.contains(&key(row)) {
            seen.push(key(row));
        }
    }
    seen.sort_by_key(|(classes, _, _)| *classes);
    for (classes, loss, labels) in seen {
        let group: Vec<&Value> =
            rows_of(&numbers["widths"]).filter(|row| key(row) == (classes, loss.clone(), labels)).collect();
        let mean = |rows: usize, what: &str| {
            let values: Vec<f64> =
                group.iter().filter(|row| row["rows"] == rows).map(|row| number(&row[part][what])).collect();
            values.iter().sum::<f64>() / values.len() as f64
        };
        let over_rows =
            |what: &str| WIDTH_ROWS.map(|rows| mean(rows, what)).iter().sum::<f64>() / WIDTH_ROWS.len() as f64;
        let width = |rows: usize| {
            let (certificate, bootstrap) = (mean(rows, "certificate"), mean(rows, "bootstrap"));
            format!("{certificate:.3} ({:.1})", certificate / bootstrap)
        };
        let _ = writeln!(
            out,
            "| {classes} | `{loss}` | {labels} | {} | {:.3} | {:.3} | {:.3} |",
            WIDTH_ROWS.map(width).join(" | "),
            over_rows("covered"),
            over_rows("bootstrap_covered"),
            mean(WIDTH_ROWS[2], "identified"),
        );
    }
}
