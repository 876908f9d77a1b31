//! Benefit 2: one router for every loss, against a supervised router trained on one loss, and against one retrained for
//! each loss.

use serde_json::{Map, Value, json};

use super::curves::Curves;
use super::variants;
use crate::error::Result;
use crate::problem::Problem;
use crate::settings::Settings;

pub(super) fn measure(problem: &Problem, settings: &Settings) -> Result<Value> {
    let mut out = Map::new();
    for (name, router) in variants(&problem.calibration, &problem.partition)? {
        let mut by_loss = Map::new();
        let mut fixed: Option<Vec<f64>> = None;
        // The first loss is that of the static router.
        for loss in &problem.losses {
            let mut curves = Curves::new(&router, loss, &problem.test)?;
            let retrained = curves.supervised(&problem.calibration, &problem.test, settings.trees)?;
            curves.add("supervised-retrained", &retrained)?;
            curves.add("supervised-static", fixed.get_or_insert(retrained))?;
            by_loss.insert(loss.to_string(), json!({ "gain": curves.gains() }));
        }
        out.insert(name.into(), Value::Object(by_loss));
    }
    out.insert("static".into(), json!(problem.own_loss.to_string()));
    Ok(Value::Object(out))
}
