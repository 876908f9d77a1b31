//! The split into rows that divide and rows that are kept does not depend on votes, even if predictions tie.

use pointsman::diagnose::halves;
use pointsman::{Loss, Partition, Router, Table};

use crate::world::Rng;

const ROWS: usize = 1000;

/// Nine distinct predictions, and items whose labels depend on more than the prediction.
fn tied(seed: u64) -> Table {
    let mut rng = Rng::new(seed);
    let (mut probs, mut votes) = (Vec::new(), Vec::new());
    for _ in 0..ROWS {
        let yes = (1 + rng.below(9)) as f64 / 10.0;
        let truth = 0.5 * yes + 0.5 * rng.uniform();
        probs.extend([1.0 - yes, yes]);
        votes.extend(rng.votes(&[1.0 - truth, truth], 3));
    }
    Table::new(["no", "yes"], probs).unwrap().with_votes(votes).unwrap()
}

/// The mean and the standard deviation of the rows' Brier losses.
fn losses(table: &Table) -> (f64, f64) {
    let loss = |row: usize| {
        let votes = table.votes(row).unwrap();
        Loss::brier().expected(&[votes.mean(0), votes.mean(1)], &table.prediction(row))
    };
    let all: Vec<f64> = (0..table.rows()).map(loss).collect();
    let n = all.len() as f64;
    let mean = all.iter().sum::<f64>() / n;
    (mean, (all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt())
}

/// The mean loss of a half minus that of the whole, in standard deviations of a random half.
fn deviation(half: &Table, whole: &Table) -> f64 {
    let (mean, sd) = losses(whole);
    let (n, all) = (half.rows() as f64, whole.rows() as f64);
    (losses(half).0 - mean) / (sd * (1.0 / n - 1.0 / all).sqrt())
}

/// Checks that mean and standard deviation are 0 and 1, each within four standard errors.
#[track_caller]
fn is_chance(what: &str, deviations: &[f64]) {
    let n = deviations.len() as f64;
    let mean = deviations.iter().sum::<f64>() / n;
    let sd = (deviations.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    assert!(mean.abs() < 4.0 / n.sqrt(), "{what}: mean {mean:.3} of {n}");
    assert!((sd - 1.0).abs() < 4.0 / (2.0 * n).sqrt(), "{what}: standard deviation {sd:.3} of {n}");
}

#[test]
fn kept_halves_have_the_loss_of_the_whole() {
    let partition: Partition = "tree".parse().unwrap();
    let kept = |seed: u64| {
        let table = tied(seed);
        deviation(Router::builder().partition(partition.clone()).seed(seed % 3).fit(&table).unwrap().rows(), &table)
    };
    is_chance("tree", &(0..120).map(kept).collect::<Vec<f64>>());
    let first = |seed: u64| {
        let table = tied(seed);
        deviation(&halves(&table).unwrap()[0], &table)
    };
    is_chance("halves", &(0..120).map(first).collect::<Vec<f64>>());
}

#[test]
fn kept_rows_do_not_depend_on_the_order_of_the_table() {
    let table = tied(1);
    let mut order: Vec<usize> = (0..ROWS).collect();
    Rng::new(2).shuffle(&mut order);
    let probs = order.iter().flat_map(|&row| table.prediction(row).to_vec()).collect();
    let votes = order.iter().flat_map(|&row| table.votes(row).unwrap().counts().to_vec()).collect();
    let other = Table::new(["no", "yes"], probs).unwrap().with_votes(votes).unwrap();
    for partition in ["tree", "honest-forest:20", "forest:20"] {
        let router = |table: &Table| Router::calibrate(table, &partition.parse().unwrap()).unwrap();
        assert_eq!(router(&table), router(&other), "{partition}");
    }
}
