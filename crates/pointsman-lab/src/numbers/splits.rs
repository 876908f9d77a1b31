//! Honest splits: whether the selection of rows depends on their votes where predictions tie.

use std::fmt::Write;

use pointsman::diagnose::halves;
use pointsman::{Partition, Router, Table};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::error::Result;
use crate::random::Random;

const ROWS: usize = 1000;
const DISTINCT_PREDICTIONS: usize = 9;

/// The tree whose bootstrap sample is examined.
const TREE: usize = 3;

/// Selects rows of a table.
type SelectRows = fn(&Table) -> Result<Table>;

/// The selections examined.
const SELECTIONS: [(&str, SelectRows); 3] = [
    ("kept half of `tree`, `honest-forest`", |table| Ok(Router::calibrate(table, &Partition::tree())?.rows().clone())),
    ("half of `diagnose`", |table| {
        let [first, _] = halves(table)?;
        Ok(first)
    }),
    ("bag of a tree of `forest`", |table| {
        let router = Router::calibrate(table, &Partition::forest(TREE + 1))?;
        let bag = router.bag(TREE).unwrap_or_default();
        let (mut probs, mut votes) = (Vec::new(), Vec::new());
        for row in (0..bag.len()).filter(|&row| bag[row]) {
            probs.extend_from_slice(&router.rows().prediction(row));
            votes.extend_from_slice(router.rows().votes(row).map_or(&[], |votes| votes.counts()));
        }
        Ok(Table::new(["no", "yes"], probs)?.with_votes(votes)?)
    }),
];

/// Draws 1,000 items with nine distinct predictions and three labels each; worlds with the same `design` have the same
/// items.
fn draw_tied_rows(design: u64, world: u64) -> Result<Table> {
    let (mut items, mut labels) = (Random::new(design, "tied items"), Random::new(world, "labels of tied items"));
    let (mut probs, mut votes) = (Vec::new(), Vec::new());
    for _ in 0..ROWS {
        let yes = (1 + items.below(DISTINCT_PREDICTIONS)) as f64 / 10.0;
        probs.extend([1.0 - yes, yes]);
        votes.extend(labels.votes(&[0.7 - 0.4 * yes, 0.3 + 0.4 * yes], 3));
    }
    Ok(Table::new(["no", "yes"], probs)?.with_votes(votes)?)
}

/// The shares of yes of the rows, grouped by prediction.
fn yes_shares(table: &Table) -> Vec<Vec<f64>> {
    let mut shares = vec![Vec::new(); DISTINCT_PREDICTIONS];
    for row in 0..table.rows() {
        let value = (10.0 * table.prediction(row)[1]).round() as usize - 1;
        shares[value.min(DISTINCT_PREDICTIONS - 1)].extend(table.votes(row).map(|votes| votes.mean(1)));
    }
    shares
}

/// How far the mean share of yes among the selected rows exceeds that of all rows with the same predictions, in
/// standard deviations of a random selection of the same sizes.
fn deviation(all: &Table, drawn: &Table) -> f64 {
    let (mut above, mut variance) = (0.0, 0.0);
    for (all, drawn) in yes_shares(all).into_iter().zip(yes_shares(drawn)) {
        let n = all.len() as f64;
        let mean = all.iter().sum::<f64>() / n;
        let spread = all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        above += drawn.iter().map(|x| x - mean).sum::<f64>();
        variance += drawn.len() as f64 * (1.0 - drawn.len() as f64 / n) * spread;
    }
    above / variance.sqrt()
}

pub(super) fn measure(worlds: usize) -> Result<Value> {
    let mut settings = Vec::new();
    for (name, draw) in SELECTIONS {
        for same_items in [false, true] {
            let one = |world: u64| -> Result<f64> {
                let table = draw_tied_rows(if same_items { 0 } else { world }, world)?;
                Ok(deviation(&table, &draw(&table)?))
            };
            let found: Vec<f64> = (0..worlds as u64).into_par_iter().map(one).collect::<Result<_>>()?;
            let n = found.len() as f64;
            let mean = found.iter().sum::<f64>() / n;
            let deviation = (found.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
            settings.push(json!({
                "drawn": name, "same_items": same_items, "worlds": worlds, "mean": mean, "deviation": deviation,
            }));
        }
    }
    Ok(json!({ "settings": settings }))
}

pub(super) fn section(numbers: &Value) -> String {
    let mut out = String::from(
        "## Honest splits\n\n\
         Halves, bags and folds are drawn without a look at the votes, also where rows are equal in everything else. Worlds have 1,000 rows with nine \
         distinct predictions and three labels each. *Mean* is how far the rows drawn lie above all rows of the same predictions in their share of one \
         class, in standard deviations of a random draw of as many rows; over worlds it has mean 0 and standard deviation 1 if membership is \
         independent of votes. Drawn by rank in an order by content, the kept half was 2.2 too high in every table. Each mean has a standard error of one over the root of \
         the number of worlds; the rule is 0 within four of them, and a standard deviation of 1 within four of its own.\n\n\
         | drawn | worlds | items | mean | in standard errors | standard deviation | kept |\n|---|---|---|---|---|---|---|\n",
    );
    for row in numbers["settings"].as_array().into_iter().flatten() {
        let number = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
        let (n, mean, deviation) = (number("worlds"), number("mean"), number("deviation"));
        let kept = mean.abs() < 4.0 / n.sqrt() && (deviation - 1.0).abs() < 4.0 / (2.0 * n).sqrt();
        let items = if row["same_items"] == true { "the same, labelled again" } else { "new" };
        let _ = writeln!(
            out,
            "| {} | {n} | {items} | {mean:+.3} | {:+.1} | {deviation:.2} | {} |",
            row["drawn"].as_str().unwrap_or(""),
            mean * n.sqrt(),
            if kept { "yes" } else { "**no**" },
        );
    }
    out
}
