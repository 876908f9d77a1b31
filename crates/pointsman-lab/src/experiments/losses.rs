//! Benefit 2: one router for every loss, against a supervised router trained on one loss and used for all, and against one
//! trained anew for each.

use serde_json::{Map, Value, json};

use super::{gains, two_way, variants};
use crate::baselines::Supervised;
use crate::error::Result;
use crate::problem::Problem;
use crate::settings::Settings;

pub(super) fn measure(problem: &Problem, settings: &Settings) -> Result<Value> {
    let mut out = Map::new();
    for (name, router) in variants(&problem.calibration, &problem.partition)? {
        let mut by_loss = Map::new();
        let mut fixed: Option<Vec<f64>> = None;
        // The loss of the static router is the first.
        for loss in &problem.losses {
            let policy = router.policy(&two_way(loss)?)?;
            let replay = policy.replay(&problem.test)?;
            let mut gain = gains(&replay.evaluate(&policy)?);
            let retrained =
                Supervised::fit(&problem.calibration, &policy.replay(&problem.calibration)?, settings.trees)?
                    .scores(&problem.test);
            gain.insert("supervised-retrained".into(), json!(replay.routing_curve(&retrained)?.gain));
            let fixed = fixed.get_or_insert(retrained);
            gain.insert("supervised-static".into(), json!(replay.routing_curve(fixed)?.gain));
            by_loss.insert(loss.to_string(), json!({ "gain": gain }));
        }
        out.insert(name.into(), Value::Object(by_loss));
    }
    out.insert("static".into(), json!(problem.own.to_string()));
    Ok(Value::Object(out))
}
