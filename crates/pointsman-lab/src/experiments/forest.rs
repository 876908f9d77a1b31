//! Learned partitions: a tree and forests, grown once for all losses, against the paper's cells and against supervised
//! routers trained on one loss or retrained for each.

use pointsman::{Estimator, Loss, Partition, Router, Table};
use serde_json::{Map, Value, json};

use super::curves::{Curves, estimated_reducible};
use super::two_way;
use crate::error::Result;
use crate::problem::Problem;
use crate::settings::Settings;
use crate::subsample;

/// Test rows. A forest estimates the costs of every row; half a million rows would take as long as all other
/// experiments.
const TEST_ROWS: usize = 50_000;
const TREES: usize = 200;

pub(super) fn measure(problem: &Problem, settings: &Settings) -> Result<Value> {
    let test = subsample::first_rows(&problem.test, TEST_ROWS)?;
    let cells = Router::calibrate(&problem.calibration, &problem.partition)?;
    let mut learned = Vec::new();
    for (name, partition) in [
        ("tree", Partition::tree()),
        ("honest-forest", Partition::honest_forest(TREES)),
        ("forest", Partition::forest(TREES)),
    ] {
        learned.push((name, Router::calibrate(&problem.calibration, &partition)?));
    }
    let mut out = Map::new();
    let mut static_scores: Option<Vec<f64>> = None;
    // The first loss is that of the static router.
    for loss in &problem.losses {
        let mut curves = Curves::new(&cells, loss, &test)?;
        let retrained = curves.supervised(&problem.calibration, &test, settings.trees)?;
        curves.add("supervised-retrained", &retrained)?;
        curves.add("supervised-static", static_scores.get_or_insert(retrained))?;
        let mut gain = curves.gains();
        let own = gain.remove("higher-order");
        gain.insert("cells".into(), json!(own));
        for (name, router) in &learned {
            gain.insert((*name).into(), ranking_gain(router, loss, Estimator::Shrink, &test)?);
        }
        // Data sets are evaluated by the mean of each row's labels, which favours the plug-in estimate.
        let forest = &learned[2].1;
        gain.insert("forest-plugin".into(), ranking_gain(forest, loss, Estimator::Plugin, &test)?);
        out.insert(loss.to_string(), json!({ "gain": gain }));
    }
    Ok(json!({ "losses": out, "static": problem.own_loss.to_string() }))
}

/// The gain of a router's own ranking.
fn ranking_gain(router: &Router, loss: &Loss, estimator: Estimator, test: &Table) -> Result<Value> {
    let policy = router.policy(&two_way(loss)?.estimator(estimator))?;
    let scores = estimated_reducible(&policy, test)?;
    Ok(json!(policy.replay_uncorrected(test)?.routing_curve(&scores)?.gain))
}
