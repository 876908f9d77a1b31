//! Verdicts if little or nothing is saved, in simulations with known savings.

use pointsman::diagnose::Advice;
use pointsman::diagnose::diagnose;
use pointsman::{Diagnosis, Loss, Oracle, Partition, Table, Task};

use crate::diagnosis::{look, world};
use crate::world::Rng;

/// Predictions equal the true distributions: no loss is reducible.
fn nothing_reducible(seed: u64, rows: usize) -> Table {
    world(seed, rows, 3, |_, confidence| confidence)
}

fn without_prices(table: &Table) -> Diagnosis {
    diagnose(table, &Task::new(Loss::brier()), &Partition::top_class(10), || ()).unwrap()
}

/// The loss of predicting is a third, the mean of 2c(1 − c) over confidences c from one half to one, and none of it is reducible. With 12,000 rows the upper limit is small enough for a verdict; with fewer rows the limit is still reported.
#[test]
fn upper_limit_of_the_reducible_loss_is_reported() {
    let found = without_prices(&nothing_reducible(1, 12_000));
    assert!(matches!(found.verdict.advice, Advice::NoNeed | Advice::SmallSaving), "{:?}", found.verdict);
    assert!(found.verdict.sentence.contains("per thousand queries"), "{}", found.verdict.sentence);
    let worth = found.worth.unwrap();
    assert!(0.0 < worth.reducible.high && worth.reducible.high < 0.05 * worth.loss.estimate, "{:?}", worth.reducible);
    let mut covered = 0;
    for seed in 0..10 {
        let found = without_prices(&nothing_reducible(100 + seed, 1000));
        covered +=
            usize::from(found.worth.as_ref().is_some_and(|it| it.reducible.low <= 0.0 && 0.0 <= it.reducible.high));
        assert_ne!(found.verdict.advice, Advice::UseIt, "{:?}", found.verdict);
        if found.verdict.advice == Advice::MoreData {
            assert!(found.verdict.sentence.contains("is reducible"), "{}", found.verdict.sentence);
        }
    }
    // Of ten 95 % intervals, fewer than seven contain the truth with probability 0.001.
    assert!(covered >= 7, "{covered} of 10 intervals hold that nothing is reducible");
}

/// The share of items at a confidence on which annotators disagree as much as the model; on the others they agree.
fn noisy_share(confidence: f64) -> f64 {
    if confidence < 0.7 { 0.8 } else { 0.3 }
}

fn slightly_better(seed: u64, rows: usize) -> Table {
    world(seed, rows, 5, |rng: &mut Rng, confidence| {
        if rng.uniform() < noisy_share(confidence) {
            confidence
        } else {
            f64::from(u8::from(rng.uniform() < confidence))
        }
    })
}

/// The saving of knowing the reducible loss of every confidence over the best threshold, as a share of the latter's cost: at confidence c predicting
/// loses 2c(1 − c), and routing costs `price` plus the part of it that is noise.
fn true_saving(price: f64) -> f64 {
    let confidences: Vec<f64> = (0..2000).map(|i| 0.5 + (f64::from(i) + 0.5) / 4000.0).collect();
    let costs = |c: f64| (2.0 * c * (1.0 - c), price + noisy_share(c) * 2.0 * c * (1.0 - c));
    let mean = |cost: &dyn Fn(f64) -> f64| confidences.iter().map(|&c| cost(c)).sum::<f64>() / 2000.0;
    let best = mean(&|c| costs(c).0.min(costs(c).1));
    let at = |cut: f64| mean(&|c| if c < cut { costs(c).1 } else { costs(c).0 });
    let threshold = confidences.iter().map(|&cut| at(cut)).fold(at(0.0), f64::min);
    1.0 - best / threshold
}

/// A small but real saving is reported with its interval and worth, and almost never as "no need": only if the estimate is not positive, which has
/// probability 1/15 for this saving.
#[test]
fn small_savings_are_reported_with_their_worth() {
    let price = 0.11;
    assert!((0.016..0.04).contains(&true_saving(price)), "{}", true_saving(price));
    let task = Task::new(Loss::brier()).route("expert", Oracle::bayes(), price).unwrap();
    let (mut small, mut needless) = (0, 0);
    for seed in 0..6 {
        let verdict = look(&slightly_better(seed, 6000), &task).verdict;
        println!("{:?} {}", verdict.advice, verdict.sentence);
        assert!(verdict.sentence.contains("Brier points per thousand queries (between "), "{}", verdict.sentence);
        needless += usize::from(verdict.advice == Advice::NoNeed);
        small += usize::from(verdict.advice == Advice::SmallSaving);
    }
    assert!(needless <= 1 && small >= 1, "{needless} no need, {small} small");
}
