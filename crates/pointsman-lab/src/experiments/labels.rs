//! How many labels per item, and which estimator when they are few.
//!
//! Labels are drawn without replacement from all labels of an item. Cells depend on predictions only and stay the same,
//! so a cell's irreducible loss is compared with its value from all labels: the error is the root mean square
//! difference over all rows with labels (of a data set, both halves). Over-routing is the share routed beyond what all
//! labels would route, averaged over three prices: the quartiles over rows of the reducible loss from all labels.

use pointsman::{Action, CellId, Estimator, Loss, Oracle, Policy, Router, Table, Task};
use serde_json::{Map, Value, json};

use super::polynomial::Polynomial;
use super::task;
use crate::error::Result;
use crate::problem::Problem;
use crate::random::Random;
use crate::subsample;

/// Labels per item; the last value keeps all labels.
const LABELS_PER_ITEM: [u64; 6] = [2, 3, 5, 10, 20, u64::MAX];

/// A cell of the reference: id, rows, irreducible and reducible loss.
type CellReference = (CellId, f64, f64, f64);

pub(super) fn measure(problem: &Problem, seed: u64) -> Result<Value> {
    let mut random = Random::new(seed, "labels");
    // Test rows of a world have no labels, so only its calibration rows are used.
    let all =
        problem.test.has_votes().then(|| subsample::concatenate(&problem.calibration, &problem.test)).transpose()?;
    let fit = |table: &Table| Router::calibrate(table, &problem.partition);
    let whole = fit(&problem.calibration)?;
    let whole_of_all = all.as_ref().map(fit).transpose()?;
    let mut by_labels = Map::new();
    let mut references = Vec::new();
    for loss in &problem.losses {
        let task = task(loss).route("oracle", Oracle::bayes(), 0.0)?;
        let own = cell_references(&whole.policy(&task)?);
        let of_all = whole_of_all
            .as_ref()
            .map(|router| router.policy(&task))
            .transpose()?
            .map(|policy| cell_references(&policy));
        let prices = quartiles(&own);
        references.push((loss, own, of_all, prices));
    }
    for k in LABELS_PER_ITEM {
        let router = fit(&subsample::draw_labels(&problem.calibration, k, &mut random)?)?;
        let few = all.as_ref().map(|all| subsample::draw_labels(all, k, &mut random)).transpose()?;
        let router_of_all = few.as_ref().map(fit).transpose()?;
        let mut by_loss = Map::new();
        for (loss, own, of_all, prices) in &references {
            let mut numbers = Map::new();
            for estimator in estimators(problem, k) {
                let mut found = compare_estimator(&router, problem, loss, estimator, own, prices)?;
                let task = Task::new((*loss).clone()).estimator(estimator);
                let measured = router_of_all.as_ref().unwrap_or(&router).policy(&task)?;
                let estimate = |cell: CellId| measured.cell(cell).and_then(|found| found.irreducible());
                let (error, bias) = error_and_bias(&estimate, of_all.as_ref().unwrap_or(own));
                found["error"] = json!(error);
                found["bias"] = json!(bias);
                numbers.insert(estimator.to_string(), found);
            }
            let fitted = u32::try_from(k).ok().filter(|&k| k <= 20);
            let rows_per_cell = problem.calibration.rows() as f64 / own.len() as f64;
            let classes = problem.calibration.classes().len();
            let fitted = fitted.and_then(|k| Polynomial::fit(loss, classes, k, rows_per_cell));
            if let Some(polynomial) = fitted {
                let mut found = compare_polynomial(&router, loss, &polynomial, own, prices)?;
                let measured = router_of_all.as_ref().unwrap_or(&router);
                let estimate = |cell: CellId| estimate_by_polynomial(measured, cell, &polynomial);
                let (error, bias) = error_and_bias(&estimate, of_all.as_ref().unwrap_or(own));
                found["error"] = json!(error);
                found["bias"] = json!(bias);
                found["distance"] = json!(polynomial.distance);
                numbers.insert("polynomial".into(), found);
            }
            by_loss.insert(loss.to_string(), Value::Object(numbers));
        }
        by_labels.insert(if k == u64::MAX { "all".into() } else { k.to_string() }, Value::Object(by_loss));
    }
    Ok(json!({ "loss": problem.own_loss.to_string(), "labels": by_labels }))
}

/// The estimators that apply to the problem; the slow ones only for few labels, where they differ.
fn estimators(problem: &Problem, k: u64) -> Vec<Estimator> {
    let mut all = vec![Estimator::Plugin, Estimator::Shrink];
    if k <= 20 {
        let slow = [Estimator::Npmle, Estimator::Dirichlet].into_iter();
        all.extend(slow.filter(|estimator| estimator.check_classes(problem.calibration.classes().len()).is_ok()));
    }
    all
}

fn cell_references(policy: &Policy) -> Vec<CellReference> {
    let cells = (0..policy.cells().count()).filter_map(|cell| policy.cell(CellId(cell as u32)));
    cells
        .filter_map(|cell| {
            let estimate = cell.estimate();
            Some((cell.cell(), estimate.rows as f64, estimate.irreducible()?, estimate.reducible()?))
        })
        .collect()
}

/// The quartiles over rows of the reducible loss, clamped at zero.
fn quartiles(known: &[CellReference]) -> [f64; 3] {
    let mut sorted: Vec<(f64, f64)> = known.iter().map(|&(_, rows, _, reducible)| (reducible, rows)).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: f64 = sorted.iter().map(|(_, rows)| rows).sum();
    [0.25, 0.5, 0.75].map(|share| {
        let mut seen = 0.0;
        let at = sorted.iter().find(|(_, rows)| {
            seen += rows;
            seen >= share * all
        });
        at.map_or(0.0, |(reducible, _)| reducible.max(0.0))
    })
}

/// Root mean square error and bias, over rows, of the cells' irreducible losses.
fn error_and_bias(estimate: &dyn Fn(CellId) -> Option<f64>, known: &[CellReference]) -> (f64, f64) {
    let rows: f64 = known.iter().map(|known| known.1).sum();
    let (mut squares, mut bias) = (0.0, 0.0);
    for &(cell, weight, irreducible, _) in known {
        let found = estimate(cell).unwrap_or(f64::NAN);
        squares += weight * (found - irreducible).powi(2);
        bias += weight * (found - irreducible);
    }
    ((squares / rows).sqrt(), bias / rows)
}

/// A cell's irreducible loss as the mean of a polynomial's estimates; `None` unless every row has the polynomial's
/// number of labels.
fn estimate_by_polynomial(router: &Router, cell: CellId, polynomial: &Polynomial) -> Option<f64> {
    let mixture = router.mixture(cell);
    let rows = mixture.rows().map(|row| polynomial.estimate(mixture.table().votes(row)?.counts()));
    let sum: f64 = rows.sum::<Option<f64>>()?;
    (!mixture.is_empty()).then(|| sum / mixture.len() as f64)
}

/// The over- and under-routed shares when cells are decided by a polynomial's estimates.
fn compare_polynomial(
    router: &Router,
    loss: &Loss,
    polynomial: &Polynomial,
    known: &[CellReference],
    prices: &[f64; 3],
) -> Result<Value> {
    let policy = router.policy(&task(loss))?;
    let rows: f64 = known.iter().map(|known| known.1).sum();
    let (mut over, mut under) = (0.0, 0.0);
    for &(cell, weight, _, reducible) in known {
        let total = policy.cell(cell).map(|found| found.total());
        let Some((total, irreducible)) = total.zip(estimate_by_polynomial(router, cell, polynomial)) else { continue };
        for &price in prices {
            let routed = total - irreducible > price;
            over += if routed && reducible < price { weight } else { 0.0 };
            under += if !routed && reducible > price { weight } else { 0.0 };
        }
    }
    let n = rows * prices.len() as f64;
    Ok(json!({ "over_routed": over / n, "under_routed": under / n }))
}

fn compare_estimator(
    router: &Router,
    problem: &Problem,
    loss: &Loss,
    estimator: Estimator,
    known: &[CellReference],
    prices: &[f64; 3],
) -> Result<Value> {
    let task = |price: f64| -> Result<Task> {
        Ok(Task::new(loss.clone()).estimator(estimator).route("oracle", Oracle::bayes(), price)?)
    };
    let policy = router.policy(&task(0.0)?)?;
    let rows: f64 = known.iter().map(|known| known.1).sum();
    let replay = policy.replay_uncorrected(&problem.test)?;
    let (mut over, mut under, mut cost) = (0.0, 0.0, 0.0);
    for &price in prices {
        let policy = policy.reprice(&task(price)?)?;
        for &(cell, weight, _, reducible) in known {
            let routed = policy.cell(cell).is_some_and(|found| found.action() != Action::Predict);
            // A cell whose reducible loss equals the price may take either action.
            if routed && reducible < price {
                over += weight;
            } else if !routed && reducible > price {
                under += weight;
            }
        }
        cost += replay.cost_of(&policy)?.mean;
    }
    let n = prices.len() as f64;
    Ok(json!({
        "over_routed": over / rows / n,
        "under_routed": under / rows / n,
        "cost": cost / n,
    }))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pointsman::Partition;

    use super::*;
    use crate::datasets::{DATA_VARIABLE, DataFolder, Dataset};

    const SEEDS: u64 = 5;

    /// Root mean square errors of the estimators with k labels per item, averaged over seeds.
    fn rms_errors(whole: &Table, k: u64, loss: &str, estimators: &[Estimator]) -> Vec<f64> {
        let loss: Loss = loss.parse().unwrap();
        let task = |estimator: Estimator| Task::new(loss.clone()).estimator(estimator);
        let cells = Partition::top_class(10);
        let router = Router::calibrate(whole, &cells).unwrap();
        let known = cell_references(&router.policy(&task(Estimator::Shrink)).unwrap());
        let mut sums = vec![0.0; estimators.len()];
        for seed in 0..SEEDS {
            let few = subsample::draw_labels(whole, k, &mut Random::new(seed, "small k")).unwrap();
            let router = Router::calibrate(&few, &cells).unwrap();
            for (sum, &estimator) in sums.iter_mut().zip(estimators) {
                let policy = router.policy(&task(estimator)).unwrap();
                let estimate = |cell: CellId| policy.cell(cell).and_then(|found| found.irreducible());
                *sum += error_and_bias(&estimate, &known).0 / SEEDS as f64;
            }
        }
        sums
    }

    /// All rows of a data set; `None` if it is not available.
    fn load_rows(dataset: Dataset) -> Option<Table> {
        let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
        let given = std::env::var_os(DATA_VARIABLE).filter(|value| !value.is_empty());
        let data = DataFolder::find(Some(&given.map_or(beside, Into::into)));
        if !data.missing(&[dataset]).is_empty() {
            let name = dataset.name();
            pointsman_testing::announce(&format!(
                "no {name}: set {DATA_VARIABLE} to measure few labels per item on it"
            ));
            return None;
        }
        Some(pointsman_table::read(data.file(dataset)).unwrap())
    }

    /// With three labels per item, `shrink` has a small error where the plug-in has a large one.
    #[test]
    fn shrink_beats_plugin_with_three_labels() {
        for (dataset, losses, bar) in [
            (Dataset::ChaosNli, &["brier", "cross-entropy", "zero-one"][..], 0.35),
            (Dataset::Cifar10h, &["cross-entropy"][..], 0.5),
        ] {
            let Some(table) = load_rows(dataset) else { continue };
            for loss in losses {
                let found = rms_errors(&table, 3, loss, &[Estimator::Plugin, Estimator::Shrink]);
                let ratio = found[1] / found[0];
                println!(
                    "{} k=3 {loss}: plugin {:.4} shrink {:.4} ratio {ratio:.3} (bar {bar})",
                    dataset.name(),
                    found[0],
                    found[1]
                );
                assert!(ratio <= bar, "{} {loss}: {found:?}", dataset.name());
            }
        }
    }

    /// For losses of decisions, the error of `npmle` is at most 2 % above that of `shrink`: its atoms are partly random.
    #[test]
    fn npmle_error_is_close_to_shrink_for_decision_losses() {
        let Some(table) = load_rows(Dataset::ChaosNli) else { return };
        for loss in ["zero-one", "asymmetric:2"] {
            for k in [3, 5] {
                let found = rms_errors(&table, k, loss, &[Estimator::Shrink, Estimator::Npmle]);
                let ratio = found[1] / found[0];
                println!(
                    "chaosnli k={k} {loss}: shrink {:.4} npmle {:.4} ratio {ratio:.3} (bar 1)",
                    found[0], found[1]
                );
                assert!(ratio <= 1.02, "{loss}, k = {k}: {found:?}");
            }
        }
    }
}
