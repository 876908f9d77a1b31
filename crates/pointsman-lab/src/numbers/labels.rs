//! Checks of labels (annotators, copies, exchanged classes), and verdicts of a diagnosis where savings are small.

use pointsman::diagnose::diagnose;
use pointsman::diagnose::{Advice, Annotations, AnnotatorCheck, Mismatch};
use pointsman::table::top_class;
use pointsman::{Loss, Oracle, Partition, Table, Task};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::error::Result;
use crate::random::Random;

const ANNOTATORS: usize = 30;
const ITEMS_PER_ANNOTATOR: usize = 200;
const CLASSES: usize = 3;

/// The price of routing in the world with small savings.
const ROUTE_PRICE: f64 = 0.11;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Labeller {
    Honest,
    /// Honest, with a preference for classes of this standard deviation in log odds.
    Tilted(f64),
    Copier,
    ModelFollower,
    Constant,
    Random,
}

/// A uniform draw from the simplex.
fn simplex(random: &mut Random, classes: usize) -> Vec<f64> {
    normalised((0..classes).map(|_| -random.uniform().ln() + 1e-12).collect())
}

fn normalised(mut p: Vec<f64>) -> Vec<f64> {
    let sum: f64 = p.iter().sum();
    p.iter_mut().for_each(|x| *x /= sum);
    p
}

fn draw(random: &mut Random, p: &[f64]) -> usize {
    let (u, mut sum) = (random.uniform(), 0.0);
    let class = p.iter().position(|x| {
        sum += x;
        u <= sum
    });
    class.unwrap_or(p.len() - 1)
}

fn draw_votes(random: &mut Random, p: &[f64], k: usize) -> Vec<u32> {
    let mut votes = vec![0; p.len()];
    (0..k).for_each(|_| votes[draw(random, p)] += 1);
    votes
}

/// The share of worlds in which a predicate holds.
fn share_of_worlds(worlds: usize, holds: impl Fn(u64) -> Result<bool> + Sync + Send) -> Result<f64> {
    let found: Vec<bool> = (0..worlds as u64).into_par_iter().map(holds).collect::<Result<_>>()?;
    Ok(found.iter().filter(|holds| **holds).count() as f64 / worlds as f64)
}

/// Draws items with labels of `k` of 30 annotators, about 200 items per annotator; `labeller` gives the behaviour of
/// each.
fn draw_annotations(seed: u64, k: usize, labeller: impl Fn(usize) -> Labeller) -> Result<(Table, Annotations)> {
    let mut random = Random::new(seed, "annotators");
    let preferences: Vec<Vec<f64>> = (0..ANNOTATORS).map(|_| (0..CLASSES).map(|_| random.normal()).collect()).collect();
    let mut order: Vec<usize> = (0..ANNOTATORS).collect();
    let (mut probs, mut votes, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ANNOTATORS * ITEMS_PER_ANNOTATOR / k {
        let (clear, top) = (random.uniform(), random.below(CLASSES));
        let mixed = simplex(&mut random, CLASSES);
        let p: Vec<f64> = (0..CLASSES).map(|c| (1.0 - clear) * mixed[c] + if c == top { clear } else { 0.0 }).collect();
        let noise = simplex(&mut random, CLASSES);
        let f: Vec<f64> = p.iter().zip(&noise).map(|(p, noise)| 0.6 * p + 0.4 * noise).collect();
        random.shuffle(&mut order);
        let mut labels: Vec<(u32, u32)> = Vec::new();
        for &who in &order[..k] {
            let drawn = draw(&mut random, &p);
            let label = match labeller(who) {
                Labeller::Honest => drawn,
                Labeller::Tilted(preference) => {
                    let tilted = p.iter().zip(&preferences[who]).map(|(p, own)| p * (preference * own).exp()).collect();
                    draw(&mut random, &normalised(tilted))
                }
                Labeller::Copier => labels.last().map_or(drawn, |(_, label)| *label as usize),
                Labeller::ModelFollower => top_class(&f),
                Labeller::Constant => 0,
                Labeller::Random => random.below(CLASSES),
            };
            labels.push((who as u32, label as u32));
        }
        let mut counts = vec![0; CLASSES];
        labels.iter().for_each(|(_, class)| counts[*class as usize] += 1);
        probs.extend(f);
        votes.extend(counts);
        rows.push(labels);
    }
    let table = Table::new(["a", "b", "c"], probs)?.with_votes(votes)?;
    Ok((table, Annotations::new((0..ANNOTATORS).map(|who| format!("{who:02}")), rows)?))
}

/// How often the one unusual labeller is excluded, and the share of the others that are excluded.
fn check_annotators(worlds: usize, k: usize, kind: Labeller) -> Result<Value> {
    let check = |seed: u64| -> Result<(bool, usize)> {
        let (table, annotations) = draw_annotations(seed, k, |who| if who == 0 { kind } else { Labeller::Honest })?;
        let left_out = AnnotatorCheck::new(&table, &annotations)?.left_out;
        let found = left_out.iter().any(|name| name == "00");
        Ok((found, left_out.len() - usize::from(found)))
    };
    let found: Vec<(bool, usize)> = (0..worlds as u64).into_par_iter().map(check).collect::<Result<_>>()?;
    let accused: usize = found.iter().map(|(_, others)| others).sum();
    let power = found.iter().filter(|(found, _)| *found).count() as f64 / worlds as f64;
    Ok(json!({ "power": power, "accused": accused as f64 / (worlds * (ANNOTATORS - 1)) as f64 }))
}

/// The share of annotators excluded where every annotator has a preference.
fn excluded_share(worlds: usize, k: usize, preference: f64) -> Result<f64> {
    let check = |seed: u64| -> Result<usize> {
        let (table, annotations) = draw_annotations(seed, k, |_| Labeller::Tilted(preference))?;
        Ok(AnnotatorCheck::new(&table, &annotations)?.left_out.len())
    };
    let found: Vec<usize> = (0..worlds as u64).into_par_iter().map(check).collect::<Result<_>>()?;
    Ok(found.iter().sum::<usize>() as f64 / (worlds * ANNOTATORS) as f64)
}

/// Mean irreducible loss from the labels as given and corrected for copies. Copies are a fifth of the unanimous rows
/// among 2,000 rows with three labels; the truth is one half.
fn irreducible_with_copies(worlds: usize) -> Result<[f64; 2]> {
    // For p* uniform on three classes, three labels agree with probability 0.3.
    let unanimous = 0.3;
    let copied = 0.2 * unanimous / (0.8 + 0.2 * unanimous);
    let measure = |seed: u64| -> Result<[f64; 2]> {
        let mut random = Random::new(seed, "copies");
        let (mut probs, mut votes) = (Vec::new(), Vec::new());
        for _ in 0..2000 {
            let p = simplex(&mut random, 3);
            let noise = simplex(&mut random, 3);
            probs.extend(p.iter().zip(&noise).map(|(p, noise)| 0.7 * p + 0.3 * noise));
            let is_copied = random.uniform() < copied;
            let drawn = draw_votes(&mut random, &p, if is_copied { 1 } else { 3 });
            votes.extend(drawn.iter().map(|n| if is_copied { 3 * n } else { *n }));
        }
        let table = Table::new(["a", "b", "c"], probs)?.with_votes(votes)?;
        let found = diagnose(&table, &Task::new(Loss::brier()), &Partition::top_class(5), || ())?;
        let sensitivity = found.agreement.sensitivity;
        Ok(sensitivity.map_or([f64::NAN; 2], |found| [found.irreducible, found.irreducible_if_copied]))
    };
    let found: Vec<[f64; 2]> = (0..worlds as u64).into_par_iter().map(measure).collect::<Result<_>>()?;
    Ok([0, 1].map(|place| found.iter().map(|pair| pair[place]).sum::<f64>() / worlds as f64))
}

/// Draws rows of a model that knows a share `sure` of each item's distribution; with `rotated`, votes count for the
/// next class.
fn draw_rows(seed: u64, classes: usize, rows: usize, sure: f64, rotated: bool) -> Result<Table> {
    let mut random = Random::new(seed, "classes");
    let (mut probs, mut votes) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let top = random.below(classes);
        let mixed = simplex(&mut random, classes);
        let p: Vec<f64> = (0..classes).map(|c| 0.4 * mixed[c] + if c == top { 0.6 } else { 0.0 }).collect();
        let noise = simplex(&mut random, classes);
        probs.extend(p.iter().zip(&noise).map(|(p, noise)| sure * p + (1.0 - sure) * noise));
        let mut counts = draw_votes(&mut random, &p, 3);
        counts.rotate_right(usize::from(rotated));
        votes.extend(counts);
    }
    Ok(Table::new((0..classes).map(|class| class.to_string()), probs)?.with_votes(votes)?)
}

fn detect_mismatches(worlds: usize) -> Result<Vec<Value>> {
    let measure = |n: usize| -> Result<Value> {
        let is_found = |seed: u64, sure: f64, rotated: bool| -> Result<bool> {
            let found = Mismatch::detect(&draw_rows(seed, n, 100 * n, sure, rotated)?)?;
            let next = |class: &str| class.parse::<usize>().map(|class| ((class + 1) % n).to_string());
            let fits = |one: &pointsman::diagnose::ClassMatch| next(&one.class).is_ok_and(|next| next == one.votes);
            Ok(found.is_some_and(|found| !rotated || found.matches.len() == n && found.matches.iter().all(fits)))
        };
        Ok(json!({
            "classes": n,
            "noticed": share_of_worlds(worlds, |seed| is_found(seed, 0.7, true))?,
            "good model": share_of_worlds(worlds, |seed| is_found(seed, 0.7, false))?,
            "model that knows nothing": share_of_worlds(worlds, |seed| is_found(seed, 0.0, false))?,
        }))
    };
    [2, 4, 10].into_iter().map(measure).collect()
}

/// Draws rows of two classes with confidence uniform on [½, 1]. At confidence c, `share_of_noise(c)` of the items are
/// as noisy as the model is unsure; on the others people agree.
fn draw_noisy_rows(seed: u64, rows: usize, share_of_noise: impl Fn(f64) -> f64) -> Result<Table> {
    let mut random = Random::new(seed, "noisy");
    let (mut probs, mut votes) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let c = 0.5 + 0.5 * random.uniform();
        let p = if random.uniform() <= share_of_noise(c) { c } else { f64::from(u8::from(random.uniform() <= c)) };
        let yes = random.binomial(5, p);
        let (f, counts) =
            if random.below(2) == 0 { ([1.0 - c, c], [5 - yes, yes]) } else { ([c, 1.0 - c], [yes, 5 - yes]) };
        probs.extend(f);
        votes.extend(counts);
    }
    Ok(Table::new(["no", "yes"], probs)?.with_votes(votes)?)
}

fn small_share(confidence: f64) -> f64 {
    if confidence < 0.7 { 0.8 } else { 0.3 }
}

/// The saving of a router that knows the reducible loss at every confidence over the best threshold, relative to the
/// threshold's cost.
fn true_saving() -> f64 {
    let confidences: Vec<f64> = (0..2000).map(|i| 0.5 + (f64::from(i) + 0.5) / 4000.0).collect();
    let costs = |c: f64| (2.0 * c * (1.0 - c), ROUTE_PRICE + small_share(c) * 2.0 * c * (1.0 - c));
    let mean = |cost: &dyn Fn(f64) -> f64| confidences.iter().map(|&c| cost(c)).sum::<f64>() / 2000.0;
    let best = mean(&|c| costs(c).0.min(costs(c).1));
    let at = |cut: f64| mean(&|c| if c < cut { costs(c).1 } else { costs(c).0 });
    1.0 - best / confidences.iter().map(|&cut| at(cut)).fold(at(0.0), f64::min)
}

/// The frequency of each verdict, and the mean upper limit of the reducible loss.
fn verdicts(worlds: usize, rows: usize, task: &Task, share_of_noise: fn(f64) -> f64) -> Result<Value> {
    let diagnose_world = |seed: u64| -> Result<(Advice, f64)> {
        let found = diagnose(&draw_noisy_rows(seed, rows, share_of_noise)?, task, &Partition::top_class(10), || ())?;
        Ok((found.verdict.advice, found.worth.map_or(f64::NAN, |worth| worth.reducible.high)))
    };
    let found: Vec<(Advice, f64)> = (0..worlds as u64).map(diagnose_world).collect::<Result<_>>()?;
    let of = |advice: Advice| found.iter().filter(|(other, _)| *other == advice).count() as f64 / worlds as f64;
    Ok(json!({
        "rows": rows,
        "use-it": of(Advice::UseIt),
        "no-need": of(Advice::NoNeed),
        "small-saving": of(Advice::SmallSaving),
        "more-data": of(Advice::MoreData),
        "reducible_high": found.iter().map(|(_, high)| high).sum::<f64>() / worlds as f64,
    }))
}

pub(super) fn measure(worlds: usize) -> Result<Value> {
    let kinds = [
        ("copies the label before", Labeller::Copier),
        ("follows the model", Labeller::ModelFollower),
        ("always says the same", Labeller::Constant),
        ("guesses", Labeller::Random),
    ];
    let mut found = Vec::new();
    for (name, kind) in kinds {
        let [three, five] = [3, 5].map(|k| check_annotators(worlds, k, kind));
        found.push(json!({ "labeller": name, "k3": three?, "k5": five? }));
    }
    let preferences = [0.15, 0.3].map(|preference| excluded_share(worlds.div_ceil(4), 3, preference));
    let [slight, strong] = preferences;
    let few = worlds.div_ceil(10);
    let free = Task::new(Loss::brier());
    let priced = free.clone().route("expert", Oracle::bayes(), ROUTE_PRICE)?;
    let nothing: Vec<Value> = [1000, 4000, 16_000, 40_000]
        .into_iter()
        .map(|rows| verdicts(few, rows, &free, |_| 1.0))
        .collect::<Result<_>>()?;
    let small: Vec<Value> = [2000, 6000, 20_000]
        .into_iter()
        .map(|rows| verdicts(few, rows, &priced, small_share))
        .collect::<Result<_>>()?;
    Ok(json!({
        "annotators": found,
        "tastes": [slight?, strong?],
        "copies": irreducible_with_copies(worlds.div_ceil(4))?,
        "mismatches": detect_mismatches(worlds)?,
        "nothing": nothing,
        "small": small,
        "true_saving": true_saving(),
    }))
}

fn two_decimals(value: &Value) -> String {
    format!("{:.2}", value.as_f64().unwrap_or(f64::NAN))
}

fn three_decimals(value: &Value) -> String {
    format!("{:.3}", value.as_f64().unwrap_or(f64::NAN))
}

fn markdown_rows(list: &Value, line: impl Fn(&Value) -> String) -> String {
    list.as_array().into_iter().flatten().map(|row| line(row) + "\n").collect()
}

pub(super) fn section(numbers: &Value) -> String {
    let annotators = markdown_rows(&numbers["annotators"], |row| {
        let (k3, k5) = (&row["k3"], &row["k5"]);
        let name = row["labeller"].as_str().unwrap_or_default();
        format!(
            "| {name} | {} | {} | {} | {} |",
            two_decimals(&k3["power"]),
            two_decimals(&k5["power"]),
            three_decimals(&k3["accused"]),
            three_decimals(&k5["accused"])
        )
    });
    let mismatches = markdown_rows(&numbers["mismatches"], |row| {
        let shares = ["noticed", "good model", "model that knows nothing"].map(|name| two_decimals(&row[name]));
        format!("| {} | {} |", row["classes"], shares.join(" | "))
    });
    let verdicts = |list: &Value| {
        markdown_rows(list, |row| {
            let shares = ["use-it", "small-saving", "no-need", "more-data"].map(|name| two_decimals(&row[name]));
            format!("| {} | {} | {} |", row["rows"], shares.join(" | "), three_decimals(&row["reducible_high"]))
        })
    };
    let (preferences, copies) = (&numbers["tastes"], &numbers["copies"]);
    let saving = format!("{:.1}", 100.0 * numbers["true_saving"].as_f64().unwrap_or(f64::NAN));
    format!(
        "\
## Labels and verdicts of `diagnose`

**Annotators** (`annotators`, with names). One of 30 annotators labels badly, each labels about 200 items of three classes. Power is the share of worlds in which the bad one is left out; accused is the share of the honest
ones who are. The levels promise at most 0.05 accused.

| the bad one | power, k = 3 | power, k = 5 | accused, k = 3 | accused, k = 5 |
|---|---|---|---|---|
{annotators}
If everybody is honest with a taste of 0.15 or 0.3 (standard deviation in log odds), {} and {} of them are left out at k = 3: a strong taste is a difference. One labeller among many is the easy case: where a third of all are bad, honest ones
are accused as well. Two labels per item show neither copies nor guesses.

**Copies** (`agreement.sensitivity`, without names). Copies are a fifth of the unanimous rows (2,000 rows, three labels, Brier loss, true irreducible loss 0.500): as the labels are {}, if a fifth are copies {}. How many are copies counts
cannot say: the second number is right only if the share is.

**Classes matched wrongly** (`mismatch`). Share of worlds (100 rows per class, three labels) in which it is said, with the right permutation where the votes are of the next class:

| classes | votes of the next class | good model | model that knows nothing |
|---|---|---|---|
{mismatches}
**Nothing reducible**, without prices: the model is as unsure as people are, and no loss of 0.333 is reducible. Share of verdicts, and the mean upper limit of the reducible loss:

| rows | use it | small saving | no need | more rows | upper limit |
|---|---|---|---|---|---|
{}
**A small saving**: at a price of {ROUTE_PRICE} knowing the reducible loss of every confidence saves {saving} % of the cost of the best threshold. Routers learn from half of the rows and from ten cells per class, and save less than that.

| rows | use it | small saving | no need | more rows | upper limit |
|---|---|---|---|---|---|
{}",
        three_decimals(&preferences[0]),
        three_decimals(&preferences[1]),
        three_decimals(&copies[0]),
        three_decimals(&copies[1]),
        verdicts(&numbers["nothing"]),
        verdicts(&numbers["small"]),
    )
}
