//! Benefit 1: routing curves. Mean loss against the share routed, for each way of choosing whom to route.

use pointsman::{Partition, Router};
use serde_json::{Map, Value, json};

use super::{gains, two_way, variants};
use crate::baselines::Supervised;
use crate::error::Result;
use crate::problem::{Problem, Source};
use crate::settings::Settings;
use crate::worlds::World;

/// Cells on the input of the piecewise world, against thirty on the predictions.
const CELLS_ON_X: usize = 10;

pub(super) fn measure(problem: &Problem, settings: &Settings) -> Result<Value> {
    let mut out = Map::new();
    for (name, router) in variants(&problem.calibration, &problem.partition)? {
        out.insert(name.into(), curves(problem, &router, settings)?);
    }
    if problem.source == Source::World(World::Piecewise) {
        for (name, router) in variants(&problem.calibration, &Partition::features([("x", CELLS_ON_X)]))? {
            out.insert(format!("{name}-x"), curves(problem, &router, settings)?);
        }
    }
    Ok(Value::Object(out))
}

fn curves(problem: &Problem, router: &Router, settings: &Settings) -> Result<Value> {
    let policy = router.policy(&two_way(&problem.own)?)?;
    let replay = policy.replay(&problem.test)?;
    let evaluation = replay.evaluate(&policy)?;
    let supervised = Supervised::fit(&problem.calibration, &policy.replay(&problem.calibration)?, settings.trees)?;
    let supervised = replay.routing_curve(&supervised.scores(&problem.test))?;
    let mut gain = gains(&evaluation);
    gain.insert("supervised".into(), json!(supervised.gain));
    let mut curve: Map<String, Value> =
        evaluation.curves.iter().map(|(name, curve)| (name.to_owned(), json!(curve))).collect();
    curve.insert("supervised".into(), json!(supervised.curve));
    let mean = |curve: &Value| {
        let points: Vec<f64> = curve.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
        points.iter().sum::<f64>() / points.len() as f64
    };
    let height: Map<String, Value> = curve.iter().map(|(name, curve)| (name.clone(), json!(mean(curve)))).collect();
    Ok(json!({
        "loss": problem.own.to_string(),
        "partition": router.partition().to_string(),
        "cells": router.cells().count(),
        "gain": gain,
        "mean_over_shares": height,
        "curve": curve,
        "correlation": evaluation.correlation,
    }))
}
