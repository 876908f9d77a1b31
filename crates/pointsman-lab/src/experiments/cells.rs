//! How many cells: too few average over what differs, too many are too thin to be known.

use pointsman::{Partition, Router};
use serde_json::{Map, Value, json};

use super::{gains, two_way};
use crate::error::Result;
use crate::problem::Problem;

/// Cells a top class.
const BINS: [usize; 8] = [1, 2, 5, 10, 20, 40, 80, 160];

pub(super) fn measure(problem: &Problem) -> Result<Value> {
    let mut out = Map::new();
    for bins in BINS {
        let router = Router::calibrate(&problem.calibration, &Partition::top_class(bins))?;
        let policy = router.policy(&two_way(&problem.own)?)?;
        let replay = policy.replay(&problem.test)?;
        let evaluation = replay.evaluate(&policy)?;
        out.insert(
            bins.to_string(),
            json!({
                "cells": router.cells().count(),
                "gain": gains(&evaluation),
                "cost": evaluation.mean_cost.get("router"),
                "regret": { "cell-optimal": evaluation.regret.get("cell-optimal"),
                            "pointwise-optimal": evaluation.regret.get("pointwise-optimal") },
            }),
        );
    }
    Ok(json!({ "loss": problem.own.to_string(), "bins": out }))
}
