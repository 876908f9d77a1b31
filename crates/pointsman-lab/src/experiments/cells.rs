//! How many cells: coarse cells mix different rows, fine cells have too few rows each.

use pointsman::{Partition, Router};
use serde_json::{Map, Value, json};

use super::curves::Curves;
use crate::error::Result;
use crate::problem::Problem;

/// Cells per top class.
const BINS: [usize; 8] = [1, 2, 5, 10, 20, 40, 80, 160];

pub(super) fn measure(problem: &Problem) -> Result<Value> {
    let mut out = Map::new();
    for bins in BINS {
        let router = Router::calibrate(&problem.calibration, &Partition::top_class(bins))?;
        let curves = Curves::new(&router, &problem.own_loss, &problem.test)?;
        out.insert(bins.to_string(), json!({ "cells": router.cells().count(), "gain": curves.gains() }));
    }
    Ok(json!({ "loss": problem.own_loss.to_string(), "bins": out }))
}
