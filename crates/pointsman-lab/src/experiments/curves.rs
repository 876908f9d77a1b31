//! Rankings of test rows, and the routing curves they give, judged as the paper judges them: by the known truth or, in data
//! sets, by the mean of the labels that a row has.

use pointsman::evaluate::RoutingCurve;
use pointsman::{Policy, Replay, Router, Table};
use serde_json::{Map, Value, json};

use super::two_way;
use crate::baselines::Supervised;
use crate::error::Result;
use pointsman::Loss;

/// A router under one loss on test rows: the rankings of the paper and any others.
pub(super) struct Curves {
    replay: Replay,
    found: Vec<(String, RoutingCurve)>,
    /// What a supervised router is trained on.
    policy: Policy,
}

impl Curves {
    /// The paper's rankings: by estimated reducible loss, by entropy of the served prediction, by the cells' reducible loss in
    /// hindsight.
    pub(super) fn new(router: &Router, loss: &Loss, test: &Table) -> Result<Self> {
        let policy = router.policy(&two_way(loss)?)?;
        let replay = policy.replay(test)?;
        let mut curves = Self { replay, found: Vec::new(), policy };
        curves.add("higher-order", &estimated_reducible(&curves.policy, test)?)?;
        curves.add("total-uncertainty", &entropies(&curves.policy, test)?)?;
        curves.add("cell-optimal", &hindsight(router, &curves.replay, test)?)?;
        Ok(curves)
    }

    /// Adds a ranking: one score per row, the highest routed first.
    pub(super) fn add(&mut self, name: &str, scores: &[f64]) -> Result<()> {
        self.found.push((name.into(), self.replay.routing_curve(scores)?));
        Ok(())
    }

    /// Adds the straight line and the best order of the rows, which every gain is measured between.
    pub(super) fn add_ends(&mut self) -> Result<()> {
        let best = self.replay.reducible();
        self.add("pointwise-optimal", &best)?;
        self.add("random", &vec![0.0; best.len()])
    }

    /// What a supervised router, trained on the same loss, expects to be reducible in each test row.
    pub(super) fn supervised(&self, calibration: &Table, test: &Table, trees: usize) -> Result<Vec<f64>> {
        Ok(Supervised::fit(calibration, &self.policy.replay(calibration)?, trees)?.scores(test))
    }

    /// The gain of every ranking; random and point-wise optimal are 0 and 1 and left out.
    pub(super) fn gains(&self) -> Map<String, Value> {
        let known = self.found.iter().filter(|(name, _)| !matches!(name.as_str(), "random" | "pointwise-optimal"));
        known.map(|(name, curve)| (name.clone(), json!(curve.gain))).collect()
    }

    /// The loss at every share routed.
    pub(super) fn curves(&self) -> Map<String, Value> {
        self.found.iter().map(|(name, curve)| (name.clone(), json!(curve.curve))).collect()
    }

    /// The mean loss over all shares routed.
    pub(super) fn heights(&self) -> Map<String, Value> {
        self.found.iter().map(|(name, curve)| (name.clone(), json!(curve.area))).collect()
    }

    pub(super) fn replay(&self) -> &Replay {
        &self.replay
    }
}

/// What the router expects an oracle to save on each row; where labels give only bounds, their middle.
pub(super) fn estimated_reducible(policy: &Policy, test: &Table) -> Result<Vec<f64>> {
    let decisions = policy.decide_batch(test)?;
    Ok(policy.values(&decisions, |decision| {
        let [low, high] = decision.irreducible_bounds();
        decision.total() - low.midpoint(high)
    }))
}

/// The entropy of the prediction that is served to each row: total uncertainty.
fn entropies(policy: &Policy, test: &Table) -> Result<Vec<f64>> {
    let loss = policy.task().loss();
    let decisions = policy.decide_batch(test)?;
    let of_cells = policy.values(&decisions, |decision| decision.served().map(|served| loss.entropy(served)));
    let mut prediction = vec![0.0; test.classes().len()];
    let own = of_cells.into_iter().enumerate().map(|(row, of_cell)| {
        of_cell.unwrap_or_else(|| {
            test.dist_into(row, &mut prediction);
            loss.entropy(&prediction)
        })
    });
    Ok(own.collect())
}

/// What an oracle saves on average over the test rows of each row's cell.
fn hindsight(router: &Router, replay: &Replay, test: &Table) -> Result<Vec<f64>> {
    let mut by_cell = vec![0.0; router.cells().count()];
    for cell in replay.cell_losses() {
        by_cell[cell.cell as usize] = cell.total - cell.irreducible;
    }
    Ok(router.find_cells(test)?.into_iter().map(|cell| by_cell[cell.index()]).collect())
}
