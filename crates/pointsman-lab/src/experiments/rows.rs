//! How many calibration rows.

use pointsman::{Estimator, Router};
use serde_json::{Map, Value, json};

use super::curves::estimated_reducible;
use super::two_way;
use crate::error::Result;
use crate::problem::Problem;
use crate::random::Random;
use crate::subsample;

const ROW_COUNTS: [usize; 6] = [100, 200, 500, 1_000, 2_000, 5_000];

pub(super) fn measure(problem: &Problem, seed: u64) -> Result<Value> {
    let mut random = Random::new(seed, "rows");
    let mut out = Map::new();
    let all = problem.calibration.rows();
    for n in ROW_COUNTS.into_iter().filter(|&n| n < all).chain([all]) {
        let table = subsample::draw_rows(&problem.calibration, n, &mut random)?;
        let router = Router::calibrate(&table, &problem.partition)?;
        let mut numbers = Map::new();
        for estimator in [Estimator::Plugin, Estimator::Shrink] {
            let policy = router.policy(&two_way(&problem.own_loss)?.estimator(estimator))?;
            let replay = policy.replay_uncorrected(&problem.test)?;
            let curve = replay.routing_curve(&estimated_reducible(&policy, &problem.test)?)?;
            numbers.insert(
                estimator.to_string(),
                json!({ "gain": { "higher-order": curve.gain }, "cost": replay.cost_of(&policy)?.mean }),
            );
        }
        out.insert(n.to_string(), Value::Object(numbers));
    }
    Ok(json!({ "loss": problem.own_loss.to_string(), "rows": out }))
}
