//! Rankings of test rows and their routing curves. As in the paper, rows are evaluated by the known truth or, in data
//! sets, by the mean of their labels.

use pointsman::evaluate::RoutingCurve;
use pointsman::{Policy, Replay, Router, Table};
use serde_json::{Map, Value, json};

use super::two_way;
use crate::baselines::Supervised;
use crate::error::Result;
use pointsman::Loss;

/// The routing curves of a router under one loss: the paper's rankings and any others.
pub(super) struct Curves {
    replay: Replay,
    rankings: Vec<(String, RoutingCurve)>,
    /// The policy that a supervised router is trained with.
    policy: Policy,
}

impl Curves {
    /// Computes the paper's rankings: by estimated reducible loss, by the entropy of the served prediction, and by the
    /// cells' reducible loss in hindsight.
    pub(super) fn new(router: &Router, loss: &Loss, test: &Table) -> Result<Self> {
        let policy = router.policy(&two_way(loss)?)?;
        let replay = policy.replay_uncorrected(test)?;
        let mut curves = Self { replay, rankings: Vec::new(), policy };
        curves.add("higher-order", &estimated_reducible(&curves.policy, test)?)?;
        curves.add("total-uncertainty", &served_entropies(&curves.policy, test)?)?;
        curves.add("cell-optimal", &hindsight_reducible(router, &curves.replay, test)?)?;
        Ok(curves)
    }

    /// Adds a ranking: one score per row; the highest score is routed first.
    pub(super) fn add(&mut self, name: &str, scores: &[f64]) -> Result<()> {
        self.rankings.push((name.into(), self.replay.routing_curve(scores)?));
        Ok(())
    }

    /// Adds the random and the point-wise optimal ranking, whose gains are 0 and 1 by definition.
    pub(super) fn add_reference_rankings(&mut self) -> Result<()> {
        let best = self.replay.reducible();
        self.add("pointwise-optimal", &best)?;
        self.add("random", &vec![0.0; best.len()])
    }

    /// The reducible loss of each test row, as predicted by a supervised router trained on the same loss.
    pub(super) fn supervised(&self, calibration: &Table, test: &Table, trees: usize) -> Result<Vec<f64>> {
        Ok(Supervised::fit(calibration, &self.policy.replay_uncorrected(calibration)?, trees)?.scores(test))
    }

    /// The gain of every ranking except random (0) and point-wise optimal (1).
    pub(super) fn gains(&self) -> Map<String, Value> {
        let known = self.rankings.iter().filter(|(name, _)| !matches!(name.as_str(), "random" | "pointwise-optimal"));
        known.map(|(name, curve)| (name.clone(), json!(curve.gain))).collect()
    }

    /// The loss at every routed share.
    pub(super) fn curves(&self) -> Map<String, Value> {
        self.rankings.iter().map(|(name, curve)| (name.clone(), json!(curve.curve))).collect()
    }

    /// The mean loss over all routed shares.
    pub(super) fn mean_losses(&self) -> Map<String, Value> {
        self.rankings.iter().map(|(name, curve)| (name.clone(), json!(curve.area))).collect()
    }

    pub(super) fn replay(&self) -> &Replay {
        &self.replay
    }
}

/// The estimated reducible loss of each row; where labels identify only an interval, its midpoint.
pub(super) fn estimated_reducible(policy: &Policy, test: &Table) -> Result<Vec<f64>> {
    let decisions = policy.decide_batch(test)?;
    Ok(policy.values(&decisions, |decision| {
        let [low, high] = decision.irreducible_bounds();
        decision.total() - low.midpoint(high)
    }))
}

/// The entropy of the prediction served for each row: its total uncertainty.
fn served_entropies(policy: &Policy, test: &Table) -> Result<Vec<f64>> {
    let loss = policy.task().loss();
    let decisions = policy.decide_batch(test)?;
    let cell_entropies = policy.values(&decisions, |decision| decision.served().map(|served| loss.entropy(served)));
    let mut prediction = vec![0.0; test.classes().len()];
    let own = cell_entropies.into_iter().enumerate().map(|(row, cell_entropy)| {
        cell_entropy.unwrap_or_else(|| {
            test.dist_into(row, &mut prediction);
            loss.entropy(&prediction)
        })
    });
    Ok(own.collect())
}

/// The mean reducible loss of the test rows in each row's cell.
fn hindsight_reducible(router: &Router, replay: &Replay, test: &Table) -> Result<Vec<f64>> {
    let mut by_cell = vec![0.0; router.cells().count()];
    for cell in replay.cell_losses() {
        by_cell[cell.cell as usize] = cell.total - cell.irreducible;
    }
    Ok(router.find_cells(test)?.into_iter().map(|cell| by_cell[cell.index()]).collect())
}
