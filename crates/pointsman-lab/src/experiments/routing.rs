//! Benefit 1: routing curves. Mean loss against the share routed, for each way of choosing whom to route.

use pointsman::{Partition, Router, Table};
use serde_json::{Map, Value, json};

use super::curves::Curves;
use super::variants;
use crate::error::Result;
use crate::problem::{Problem, Source};
use crate::settings::Settings;
use crate::worlds::World;

/// Cells of equal size on the input of the piecewise world, and on its predictions: the two that the paper compares.
const CELLS_ON_X: usize = 10;
const CELLS_ON_PREDICTIONS: usize = 30;

pub(super) fn measure(problem: &Problem, settings: &Settings) -> Result<Value> {
    let mut out = Map::new();
    for (name, router) in variants(&problem.calibration, &problem.partition)? {
        out.insert(name.into(), curves(problem, &router, &problem.test, settings)?);
    }
    if problem.source == Source::World(World::Piecewise) {
        for (name, router) in variants(&problem.calibration, &Partition::features([("x", CELLS_ON_X)]))? {
            out.insert(format!("{name}-x"), curves(problem, &router, &problem.test, settings)?);
        }
        let [calibration, test] = [with_prediction(&problem.calibration)?, with_prediction(&problem.test)?];
        let partition = Partition::features([("prediction", CELLS_ON_PREDICTIONS)]);
        for (name, router) in variants(&calibration, &partition)? {
            out.insert(format!("{name}-30"), curves(problem, &router, &test, settings)?);
        }
    }
    Ok(Value::Object(out))
}

/// A binary table with the probability of its second class as a feature, to divide into cells of equal size.
fn with_prediction(table: &Table) -> Result<Table> {
    let values = (0..table.rows()).flat_map(|row| {
        let features = table.features(row).iter().copied();
        features.chain([table.prediction(row)[1]]).collect::<Vec<f64>>()
    });
    let values = values.collect();
    let names: Vec<String> = table.feature_names().iter().cloned().chain(["prediction".into()]).collect();
    Ok(table.clone().with_features(names, values)?)
}

/// The curves of a router on test rows that have the features of its cells. The supervised router sees the problem's own.
fn curves(problem: &Problem, router: &Router, test: &Table, settings: &Settings) -> Result<Value> {
    let mut curves = Curves::new(router, &problem.own, test)?;
    let supervised = if test.feature_names() == problem.test.feature_names() {
        Some(curves.supervised(&problem.calibration, &problem.test, settings.trees)?)
    } else {
        None
    };
    if let Some(scores) = &supervised {
        curves.add("supervised", scores)?;
    }
    curves.add_ends()?;
    Ok(json!({
        "loss": problem.own.to_string(),
        "partition": router.partition().to_string(),
        "cells": router.cells().count(),
        "gain": curves.gains(),
        "mean_over_shares": curves.heights(),
        "curve": curves.curves(),
        "correlation": curves.replay().correlations().rows,
    }))
}
