//! The true function of a synthetic world, the weak model's prediction, and the cells' centroids.

use pointsman::{Router, Table};
use serde_json::{Value, json};

use crate::error::Result;
use crate::problem::{Problem, Source, weak_model};
use crate::settings::Settings;

/// Inputs from −RANGE to RANGE in steps of a sixth of the fastest oscillation's half wave.
const RANGE: f64 = 3.0;
const STEP: f64 = 0.005;

pub(super) fn measure(problem: &Problem, seed: u64, settings: &Settings) -> Result<Value> {
    let Source::World(world) = problem.source else { return Ok(Value::Null) };
    let steps = (2.0 * RANGE / STEP).round() as usize;
    let x: Vec<f64> = (0..=steps).map(|i| i as f64 * STEP - RANGE).collect();
    let truth: Vec<f64> = x.iter().map(|&x| world.truth(x)).collect();
    let predicted = weak_model(world, seed, settings)?.predict(&x);
    let table = Table::new(["no", "yes"], predicted.iter().flat_map(|p| [1.0 - p, *p]).collect())?
        .with_features(["x"], x.clone())?;
    let router = Router::calibrate(&problem.calibration, &problem.partition)?;
    let centroids: Vec<Option<f64>> = router
        .find_cells(&table)?
        .into_iter()
        .map(|cell| router.mixture(cell).centroid().map(|centroid| centroid[1]))
        .collect();
    Ok(json!({ "x": x, "truth": truth, "predicted": predicted, "recalibrated": centroids }))
}
