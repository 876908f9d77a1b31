//! Partitions that learn: a tree and forests, grown once for all losses, against the paper's cells and against supervised routers
//! trained on one loss and anew for each.

use pointsman::{Estimator, Partition, Router};
use serde_json::{Map, Value, json};

use super::two_way;
use crate::baselines::Supervised;
use crate::error::Result;
use crate::problem::Problem;
use crate::settings::Settings;
use crate::subsample;

/// Test rows: a forest has costs of its own for each, so that half a million would take as long as all other experiments.
const TEST_ROWS: usize = 50_000;
const TREES: usize = 200;

pub(super) fn measure(problem: &Problem, settings: &Settings) -> Result<Value> {
    let test = subsample::first_rows(&problem.test, TEST_ROWS)?;
    let partitions = [
        ("cells", problem.partition.clone()),
        ("tree", Partition::tree()),
        ("honest-forest", Partition::honest_forest(TREES)),
        ("forest", Partition::forest(TREES)),
    ];
    let mut routers = Vec::new();
    for (name, partition) in partitions {
        routers.push((name, Router::calibrate(&problem.calibration, &partition)?));
    }
    let mut out = Map::new();
    let mut fixed: Option<Vec<f64>> = None;
    // The loss of the static router is the first.
    for loss in &problem.losses {
        let mut gain = Map::new();
        for (name, router) in &routers {
            let policy = router.policy(&two_way(loss)?)?;
            let replay = policy.replay(&test)?;
            let evaluation = replay.evaluate(&policy)?;
            gain.insert((*name).into(), json!(evaluation.gain.get("higher-order")));
            if *name == "forest" {
                // By the estimate that the judge of data sets, the mean of the labels a row has, is biased towards.
                let policy = router.policy(&two_way(loss)?.estimator(Estimator::Plugin))?;
                let evaluation = policy.replay(&test)?.evaluate(&policy)?;
                gain.insert("forest-plugin".into(), json!(evaluation.gain.get("higher-order")));
            }
            if *name == "cells" {
                gain.insert("total-uncertainty".into(), json!(evaluation.gain.get("total-uncertainty")));
                let calibration = policy.replay(&problem.calibration)?;
                let retrained = Supervised::fit(&problem.calibration, &calibration, settings.trees)?.scores(&test);
                gain.insert("supervised-retrained".into(), json!(replay.routing_curve(&retrained)?.gain));
                let fixed = fixed.get_or_insert(retrained);
                gain.insert("supervised-static".into(), json!(replay.routing_curve(fixed)?.gain));
            }
        }
        out.insert(loss.to_string(), json!({ "gain": gain }));
    }
    Ok(json!({ "losses": out, "static": problem.own.to_string() }))
}
