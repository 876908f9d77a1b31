//! Oracles as they are: what panels of so many experts lose, and which size pays.
//!
//! Estimated on calibration rows, and met on test rows; then what the router costs a query with one size at a time and with
//! all of them as routes, when an expert's label has a price.

use pointsman::oracle::Aggregate;
use pointsman::{CellId, Loss, Oracle, Policy, Router};
use serde_json::{Map, Value, json};

use super::task;
use crate::error::Result;
use crate::problem::Problem;

/// Experts of a panel.
const SIZES: [u32; 5] = [1, 2, 3, 5, 9];
/// What one expert's label costs, in units of the loss.
pub(crate) const LABEL_PRICE: f64 = 0.01;

pub(super) fn measure(problem: &Problem) -> Result<Value> {
    let router = Router::calibrate(&problem.calibration, &problem.partition)?;
    let mut out = Map::new();
    for (loss, aggregate) in [
        (Loss::brier(), Aggregate::Mean),
        (Loss::cross_entropy(), Aggregate::Laplace(0.5)),
        (Loss::zero_one(), Aggregate::Plurality),
    ] {
        let panels = SIZES.map(|experts| (experts, Oracle::panel(experts, aggregate)));
        let mut every = task(&loss);
        let mut sizes = Map::new();
        for (experts, panel) in panels {
            let price = f64::from(experts) * LABEL_PRICE;
            let oracle = panel?;
            every = every.route(format!("{experts}"), oracle.clone(), price)?;
            let free = router.policy(&task(&loss).route("panel", oracle.clone(), 0.0)?)?;
            let replay = free.replay(&problem.test)?;
            let evaluation = replay.evaluate(&free)?;
            let priced = free.reprice(&task(&loss).route("panel", oracle, price)?)?;
            sizes.insert(
                experts.to_string(),
                json!({
                    "estimated": estimated(&free),
                    "met": evaluation.mean_cost.get("always-route:panel"),
                    "router": replay.cost_of(&priced)?.mean,
                }),
            );
        }
        let bayes = router.policy(&task(&loss).route("oracle", Oracle::bayes(), 0.0)?)?;
        let known = bayes.replay(&problem.test)?.evaluate(&bayes)?;
        let all = router.policy(&every)?;
        out.insert(
            loss.to_string(),
            json!({
                "sizes": sizes,
                "aggregate": aggregate.to_string(),
                "irreducible": known.mean_cost.get("always-route:oracle"),
                "predict": known.mean_cost.get("always-predict"),
                "router_all_sizes": all.replay(&problem.test)?.cost_of(&all)?.mean,
            }),
        );
    }
    Ok(Value::Object(out))
}

/// What always asking the only route costs on the calibration rows.
fn estimated(policy: &Policy) -> f64 {
    let cells = (0..policy.cells().count() as u32).filter_map(|cell| policy.cell(CellId(cell)));
    let (mut cost, mut weight) = (0.0, 0.0);
    for decision in cells {
        cost += decision.estimate().weight * decision.costs()[1];
        weight += decision.estimate().weight;
    }
    cost / weight
}
