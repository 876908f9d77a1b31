//! Budgets: the share and the loss predicted on calibration rows, and those measured on test rows.
//!
//! Test rows with few labels bias the measured loss downwards, so it is also given with that bias removed.

use pointsman::{Loss, Oracle, Partition, Router, Table};
use serde_json::{Map, Value, json};

use super::task;
use crate::error::Result;
use crate::problem::Problem;
use crate::subsample;

/// Shares of the queries that may be routed, in per cent.
const BUDGET_PERCENTS: [u32; 11] = [0, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90];

/// Test rows of the forest, which estimates the costs of every row.
const TEST_ROWS: usize = 50_000;
const TREES: usize = 200;

pub(super) fn measure(problem: &Problem) -> Result<Value> {
    let cells = Router::calibrate(&problem.calibration, &problem.partition)?;
    let forest = Router::calibrate(&problem.calibration, &Partition::forest(TREES))?;
    let first_test_rows = subsample::first_rows(&problem.test, TEST_ROWS)?;
    let mut out = Map::new();
    for loss in [problem.own_loss.clone(), Loss::zero_one()] {
        out.insert(loss.to_string(), compare_budgets(&cells, &loss, &problem.test)?);
        out.insert(format!("{loss}, forest"), compare_budgets(&forest, &loss, &first_test_rows)?);
    }
    out.insert(
        "budgets".into(),
        json!({ "shares": BUDGET_PERCENTS.map(|budget| (f64::from(budget) / 100.0).to_string()) }),
    );
    Ok(Value::Object(out))
}

/// Predicted and measured shares and losses at each budget.
fn compare_budgets(router: &Router, loss: &Loss, test: &Table) -> Result<Value> {
    let task = task(loss).route("oracle", Oracle::bayes(), 0.0)?;
    let policy = router.policy(&task)?;
    let replay = policy.replay(test)?;
    let (mut promised, mut met) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    let (mut by_total_uncertainty, mut corrected) = (Vec::new(), Vec::new());
    let curves = replay.evaluate(&policy)?.curves;
    for budget in BUDGET_PERCENTS {
        let limited = policy.reprice(&task.clone().budget(f64::from(budget) / 100.0)?)?;
        let evaluation = replay.evaluate(&limited)?;
        // A policy with a limit always has a surcharge.
        let Some(found) = limited.surcharge() else { continue };
        promised[0].push(found.share);
        promised[1].push(found.loss);
        met[0].push(evaluation.shares.get("route:oracle").copied());
        met[1].push(evaluation.mean_cost.get("router").copied());
        corrected.push(evaluation.corrected_cost.as_ref().and_then(|costs| costs.get("router").copied()));
        by_total_uncertainty.push(curves.get("total-uncertainty").map(|curve| curve[budget as usize]));
    }
    Ok(json!({
        "share_promised": promised[0],
        "share_met": met[0],
        "loss_promised": promised[1],
        "loss_met": met[1],
        "loss_met_corrected": corrected,
        "loss_total_uncertainty": by_total_uncertainty,
    }))
}
