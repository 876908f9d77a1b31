//! Benefit 1: routing curves, the mean loss against the routed share for each ranking.

use pointsman::{Partition, Router, Table};
use serde_json::{Map, Value, json};

use super::curves::Curves;
use super::variants;
use crate::error::Result;
use crate::problem::{Problem, Source};
use crate::settings::Settings;
use crate::worlds::World;

/// The two partitions of the piecewise world that the paper compares: cells of equal size on the input and on
/// predictions.
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

/// Adds the probability of the second class of a binary table as a feature, to partition it into cells of equal size.
fn with_prediction(table: &Table) -> Result<Table> {
    let values = (0..table.rows()).flat_map(|row| {
        let features = table.features(row).iter().copied();
        features.chain([table.prediction(row)[1]]).collect::<Vec<f64>>()
    });
    let values = values.collect();
    let names: Vec<String> = table.feature_names().iter().cloned().chain(["prediction".into()]).collect();
    Ok(table.clone().with_features(names, values)?)
}

/// The routing curves of a router. `test` has the features of the router's cells; the supervised router uses the
/// problem's own.
fn curves(problem: &Problem, router: &Router, test: &Table, settings: &Settings) -> Result<Value> {
    let mut curves = Curves::new(router, &problem.own_loss, test)?;
    let supervised = if test.feature_names() == problem.test.feature_names() {
        Some(curves.supervised(&problem.calibration, &problem.test, settings.trees)?)
    } else {
        None
    };
    if let Some(scores) = &supervised {
        curves.add("supervised", scores)?;
    }
    curves.add_reference_rankings()?;
    Ok(json!({
        "loss": problem.own_loss.to_string(),
        "partition": router.partition().to_string(),
        "cells": router.cells().count(),
        "gain": curves.gains(),
        "mean_over_shares": curves.mean_losses(),
        "curve": curves.curves(),
        "correlation": curves.replay().correlations().rows,
    }))
}
