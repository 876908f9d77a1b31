//! Errors of the estimators of the irreducible loss, and the intervals identified by labels.

mod laws;
mod section;

use pointsman::{CellId, Estimator, Loss, Partition, Router, Table, Task};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::error::Result;
use crate::random::Random;
use laws::{LAWS, Law, class_of, mean_distribution};
pub(super) use section::section;

const CLASS_COUNTS: [usize; 4] = [2, 3, 10, 30];
const LABELS_PER_ITEM: [usize; 6] = [2, 3, 5, 10, 20, 50];
const ROWS_PER_CELL: [usize; 4] = [50, 200, 500, 2000];

/// The estimators compared; the first is the default.
const ESTIMATORS: [Estimator; 5] =
    [Estimator::Auto, Estimator::Shrink, Estimator::Plugin, Estimator::Npmle, Estimator::Dirichlet];

fn losses(classes: usize) -> Vec<&'static str> {
    let mut all = vec!["brier", "cross-entropy", "spherical", "zero-one"];
    all.extend_from_slice(if classes == 2 { &["fn-fp:fp=1,fn=4", "three-part"] } else { &["asymmetric:4"] });
    all
}

/// Draws rows of a law with k labels each: a router with one cell, and the true distributions.
fn draw_world(
    random: &mut Random,
    (_, draw): Law,
    mean: &[f64],
    rows: usize,
    k: usize,
) -> Result<(Router, Vec<Vec<f64>>)> {
    let classes = mean.len();
    let truth: Vec<Vec<f64>> = (0..rows).map(|_| draw(random, mean)).collect();
    let mut votes = vec![0; rows * classes];
    for (counts, p) in votes.chunks_exact_mut(classes).zip(&truth) {
        (0..k).for_each(|_| counts[class_of(random, p)] += 1);
    }
    let names = (0..classes).map(|class| format!("c{class}"));
    let table = Table::new(names, vec![1.0 / classes as f64; rows * classes])?.with_votes(votes)?;
    Ok((Router::calibrate(&table, &Partition::confidence(1))?, truth))
}

fn mean_entropy(loss: &Loss, truth: &[Vec<f64>]) -> f64 {
    truth.iter().map(|p| loss.entropy(p)).sum::<f64>() / truth.len() as f64
}

/// The number of worlds: fewer where each takes long.
fn worlds_for(worlds: usize, classes: usize, rows: usize) -> usize {
    let share = match classes {
        2 => 4.0,
        3 => 1.5,
        _ => 1.0,
    };
    let share = if rows >= 2000 { share / 2.0 } else { share };
    ((worlds as f64 * share) as usize).max(1)
}

/// Root mean square error of each estimator for each loss, in the worlds of one setting.
fn rms_errors(law: Law, classes: usize, k: usize, rows: usize, worlds: usize) -> Result<Vec<[f64; 5]>> {
    let (mean, losses) = (mean_distribution(classes), losses(classes));
    let purpose = format!("numbers-estimators, {}", law.0);
    let mut random = Random::new((classes * 1_000_000 + k * 10_000 + rows) as u64, &purpose);
    let mut squares = vec![[0.0; 5]; losses.len()];
    for _ in 0..worlds {
        let (router, truth) = draw_world(&mut random, law, &mean, rows, k)?;
        for (squares, loss) in squares.iter_mut().zip(&losses) {
            let loss: Loss = loss.parse()?;
            let wanted = mean_entropy(&loss, &truth);
            for (sum, estimator) in squares.iter_mut().zip(ESTIMATORS) {
                if estimator.check_classes(classes).is_err() {
                    *sum = f64::NAN;
                    continue;
                }
                let policy = router.policy(&Task::new(loss.clone()).estimator(estimator))?;
                let found = policy.cell(CellId(0)).and_then(|decision| decision.irreducible()).unwrap_or(f64::NAN);
                *sum += (found - wanted).powi(2) / worlds as f64;
            }
        }
    }
    Ok(squares.into_iter().map(|squares| squares.map(f64::sqrt)).collect())
}

/// Measures the errors of every estimator in every setting, and the identified intervals.
pub(super) fn measure(worlds: usize) -> Result<Value> {
    let mut settings = Vec::new();
    for classes in CLASS_COUNTS {
        for k in LABELS_PER_ITEM {
            settings.extend(ROWS_PER_CELL.map(|rows| (classes, k, rows)));
        }
    }
    let one = |&(classes, k, rows): &(usize, usize, usize)| -> Result<Vec<Value>> {
        let worlds = worlds_for(worlds, classes, rows);
        let of_laws = LAWS.into_par_iter().map(|law| rms_errors(law, classes, k, rows, worlds));
        let of_laws = of_laws.collect::<Result<Vec<_>>>()?;
        let describe = |(place, loss): (usize, &&str)| {
            let usable = (0..ESTIMATORS.len()).filter(|&e| ESTIMATORS[e].check_classes(classes).is_ok());
            let of_estimator = |e: usize| {
                let errors = of_laws.iter().map(|errors| rounded(errors[place][e])).collect();
                (ESTIMATORS[e].to_string(), Value::Array(errors))
            };
            let errors: serde_json::Map<String, Value> = usable.map(of_estimator).collect();
            json!({ "classes": classes, "loss": loss, "labels": k, "rows": rows, "errors": errors })
        };
        Ok(losses(classes).iter().enumerate().map(describe).collect())
    };
    let measured = settings.par_iter().map(one).collect::<Result<Vec<_>>>()?;
    let settings: Vec<Value> = measured.into_iter().flatten().collect();
    let laws = LAWS.map(|(name, _)| name);
    Ok(json!({ "laws": laws, "settings": settings, "identified": measure_identified(worlds)? }))
}

/// Width and coverage of the identified interval, with 2,000 rows.
fn measure_identified(worlds: usize) -> Result<Vec<Value>> {
    let settings: Vec<(usize, usize)> =
        [2, 3, 10].into_iter().flat_map(|classes| [2, 3, 5, 20].map(|k| (classes, k))).collect();
    let one = |&(classes, k): &(usize, usize)| -> Result<Vec<Value>> {
        let mean = mean_distribution(classes);
        let mut random = Random::new((classes * 100 + k) as u64, "identified");
        let losses = losses(classes);
        let mut sums = vec![[0.0; 3]; losses.len()];
        for law in LAWS {
            for _ in 0..worlds {
                let (router, truth) = draw_world(&mut random, law, &mean, 2000, k)?;
                for (sums, loss) in sums.iter_mut().zip(&losses) {
                    let loss: Loss = loss.parse()?;
                    let policy = router.policy(&Task::new(loss.clone()))?;
                    let [low, high] = policy.identified(&router)?[0].unwrap_or([f64::NAN; 2]);
                    let wanted = mean_entropy(&loss, &truth);
                    let beyond = (low - wanted).max(wanted - high).max(0.0);
                    *sums = [sums[0] + high - low, sums[1] + f64::from(u8::from(beyond > 0.0)), sums[2].max(beyond)];
                }
            }
        }
        let all = (LAWS.len() * worlds) as f64;
        let describe = |(loss, [width, missed, beyond]): (&&str, [f64; 3])| {
            json!({
                "classes": classes, "labels": k, "loss": loss, "width": rounded(width / all),
                "missed": rounded(missed / all), "farthest": rounded(beyond),
            })
        };
        Ok(losses.iter().zip(sums).map(describe).collect())
    };
    Ok(settings.par_iter().map(one).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// Rounds to five digits, more than the worlds can resolve.
fn rounded(x: f64) -> Value {
    json!((x * 1e5).round() / 1e5)
}
