//! Panels of experts: the loss of a panel by its size, and the size with the least total cost.
//!
//! Losses are estimated on calibration rows and measured on test rows. The router's cost per query is measured with one
//! panel size at a time and with all sizes as routes, at a price per expert label.

use pointsman::oracle::Aggregate;
use pointsman::{CellId, Loss, Oracle, Policy, Router};
use serde_json::{Map, Value, json};

use super::task;
use crate::error::Result;
use crate::problem::Problem;

/// Experts per panel.
const PANEL_SIZES: [u32; 5] = [1, 2, 3, 5, 9];
/// The price of one expert's label, in units of the loss.
pub(crate) const LABEL_PRICE: f64 = 0.01;

/// Positions of the actions in a task with one route.
const PREDICT: usize = 0;
const ROUTE: usize = 1;

pub(super) fn measure(problem: &Problem) -> Result<Value> {
    let router = Router::calibrate(&problem.calibration, &problem.partition)?;
    let mut out = Map::new();
    for (loss, aggregate) in [
        (Loss::brier(), Aggregate::Mean),
        (Loss::cross_entropy(), Aggregate::Laplace(0.5)),
        (Loss::zero_one(), Aggregate::Plurality),
    ] {
        let panels = PANEL_SIZES.map(|experts| (experts, Oracle::panel(experts, aggregate)));
        let mut every = task(&loss);
        let mut sizes = Map::new();
        for (experts, panel) in panels {
            let price = f64::from(experts) * LABEL_PRICE;
            let oracle = panel?;
            every = every.route(format!("{experts}"), oracle.clone(), price)?;
            let free = router.policy(&task(&loss).route("panel", oracle.clone(), 0.0)?)?;
            let replay = free.replay_uncorrected(&problem.test)?;
            let priced = free.reprice(&task(&loss).route("panel", oracle, price)?)?;
            sizes.insert(
                experts.to_string(),
                json!({
                    "estimated": expected_route_cost(&free),
                    "met": replay.cost_of_actions(&free, &vec![ROUTE; problem.test.rows()])?.mean,
                    "router": replay.cost_of(&priced)?.mean,
                }),
            );
        }
        let bayes = router.policy(&task(&loss).route("oracle", Oracle::bayes(), 0.0)?)?;
        let replay = bayes.replay_uncorrected(&problem.test)?;
        let always = |action: usize| replay.cost_of_actions(&bayes, &vec![action; problem.test.rows()]);
        let all = router.policy(&every)?;
        out.insert(
            loss.to_string(),
            json!({
                "sizes": sizes,
                "aggregate": aggregate.to_string(),
                "irreducible": always(ROUTE)?.mean,
                "predict": always(PREDICT)?.mean,
                "router_all_sizes": all.replay_uncorrected(&problem.test)?.cost_of(&all)?.mean,
            }),
        );
    }
    Ok(Value::Object(out))
}

/// The cost on calibration rows of always using the only route.
fn expected_route_cost(policy: &Policy) -> f64 {
    let cells = (0..policy.cells().count() as u32).filter_map(|cell| policy.cell(CellId(cell)));
    let (mut cost, mut weight) = (0.0, 0.0);
    for decision in cells {
        cost += decision.estimate().weight * decision.costs()[1];
        weight += decision.estimate().weight;
    }
    cost / weight
}
