//! When decomposition matters: correlations of reducible, irreducible and total loss, over rows and over cells.

use serde_json::{Map, Value, json};

use super::{two_way, variants};
use crate::error::Result;
use crate::problem::Problem;

pub(super) fn measure(problem: &Problem) -> Result<Value> {
    let mut out = Map::new();
    for (name, router) in variants(&problem.calibration, &problem.partition)? {
        let mut variant = Map::new();
        for loss in &problem.losses {
            let policy = router.policy(&two_way(loss)?)?;
            let replay = policy.replay_uncorrected(&problem.test)?;
            let mut numbers = json!({ "correlation": correlations(&replay.correlations()) });
            if *loss == problem.own_loss {
                let cells = replay.cell_losses();
                let column = |value: &dyn Fn(&pointsman::evaluate::CellLosses) -> f64| {
                    cells.iter().map(value).collect::<Vec<_>>()
                };
                numbers["cells"] = json!({
                    "share": column(&|cell| cell.share),
                    "total": column(&|cell| cell.total),
                    "irreducible": column(&|cell| cell.irreducible),
                });
            }
            variant.insert(loss.to_string(), numbers);
        }
        out.insert(name.into(), Value::Object(variant));
    }
    out.insert("loss".into(), json!(problem.own_loss.to_string()));
    Ok(Value::Object(out))
}

fn correlations(found: &pointsman::evaluate::Correlations) -> Value {
    json!({
        "reducible-total-rows": found.rows,
        "reducible-total-cells": found.cells,
        "irreducible-total-cells": found.irreducible_cells,
    })
}
