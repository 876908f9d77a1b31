//! Budgets as prices: the share and the loss promised on calibration rows, and those met on test rows.
//!
//! Test rows of few labels are too kind a judge of routing, so the loss met is given with that bias taken out too.

use pointsman::{Loss, Oracle, Partition, Router, Table};
use serde_json::{Map, Value, json};

use super::task;
use crate::error::Result;
use crate::problem::Problem;
use crate::subsample;

/// Shares of the queries that may be routed, in per cent.
const BUDGETS: [u32; 11] = [0, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90];

/// Test rows of the forest, which has costs of its own for each.
const TEST_ROWS: usize = 50_000;
const TREES: usize = 200;

pub(super) fn measure(problem: &Problem) -> Result<Value> {
    let cells = Router::calibrate(&problem.calibration, &problem.partition)?;
    let forest = Router::calibrate(&problem.calibration, &Partition::forest(TREES))?;
    let few = subsample::first_rows(&problem.test, TEST_ROWS)?;
    let mut out = Map::new();
    for loss in [problem.own.clone(), Loss::zero_one()] {
        out.insert(loss.to_string(), met(&cells, &loss, &problem.test)?);
        out.insert(format!("{loss}, forest"), met(&forest, &loss, &few)?);
    }
    out.insert("budgets".into(), json!({ "shares": BUDGETS.map(|budget| (f64::from(budget) / 100.0).to_string()) }));
    Ok(Value::Object(out))
}

/// What is promised and what is met at each budget.
fn met(router: &Router, loss: &Loss, test: &Table) -> Result<Value> {
    let task = task(loss).route("oracle", Oracle::bayes(), 0.0)?;
    let policy = router.policy(&task)?;
    let replay = policy.replay(test)?;
    let (mut promised, mut met) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    let (mut usual, mut corrected) = (Vec::new(), Vec::new());
    let curves = replay.evaluate(&policy)?.curves;
    for budget in BUDGETS {
        let limited = policy.reprice(&task.clone().budget(f64::from(budget) / 100.0)?)?;
        let evaluation = replay.evaluate(&limited)?;
        // A limit always comes to a surcharge.
        let Some(found) = limited.surcharge() else { continue };
        promised[0].push(found.share);
        promised[1].push(found.loss);
        met[0].push(evaluation.shares.get("route:oracle").copied());
        met[1].push(evaluation.mean_cost.get("router").copied());
        corrected.push(evaluation.corrected_cost.as_ref().and_then(|costs| costs.get("router").copied()));
        usual.push(curves.get("total-uncertainty").map(|curve| curve[budget as usize]));
    }
    Ok(json!({
        "share_promised": promised[0],
        "share_met": met[0],
        "loss_promised": promised[1],
        "loss_met": met[1],
        "loss_met_corrected": corrected,
        "loss_total_uncertainty": usual,
    }))
}
