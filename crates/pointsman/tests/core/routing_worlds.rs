//! Simulations of known truth for comparing partitions: the true cost of a router is known for every query.

use pointsman::{Loss, Oracle, Partition, Policy, Result, Router, Table, Task};

use super::world::{Rng, normalised};

/// The information in the features of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Features {
    /// The first feature shows where the model is wrong, the second where annotators disagree; eight more are noise.
    Telling,
    /// Ten columns of noise.
    Useless,
    /// No features.
    Missing,
}

/// A law of predictions, true distributions and features.
#[derive(Debug, Clone, Copy)]
pub(crate) struct World {
    pub(crate) classes: usize,
    pub(crate) features: Features,
}

impl World {
    /// Draws items with `k` labels each and their true distributions.
    pub(crate) fn draw(self, rng: &mut Rng, rows: usize, k: usize) -> Table {
        let (mut probs, mut truth, mut votes, mut features) = (vec![], vec![], vec![], vec![]);
        for _ in 0..rows {
            let spread = if self.classes > 10 { 2.5 } else { 1.5 };
            let logits: Vec<f64> = (0..self.classes).map(|_| spread * normal(rng)).collect();
            let prediction = softmax(&logits, 1.2);
            let noise: Vec<f64> = (0..10).map(|_| rng.uniform()).collect();
            let top = prediction.iter().copied().fold(0.0, f64::max);
            let (wrong, scale) = match self.features {
                Features::Telling => (noise[0] > 0.7, if noise[1] > 0.5 { 0.3 } else { 1.5 }),
                // The first class is wrong more often than the others at the same confidence.
                _ => {
                    let often = if prediction[0] == top { 0.7 } else { 0.3 };
                    (rng.uniform() < often * (1.2 - top).min(1.0), 0.3 + 0.9 * top * top)
                }
            };
            let law = if wrong {
                let mut moved = logits.clone();
                moved.rotate_right(1 + rng.below(self.classes - 1));
                softmax(&moved, 1.5)
            } else {
                softmax(&logits, scale)
            };
            votes.extend(rng.votes(&law, k));
            probs.extend(prediction);
            truth.extend(law);
            features.extend(noise);
        }
        let names = (0..self.classes).map(|class| format!("c{class}"));
        let table = Table::new(names, probs).unwrap().with_votes(votes).unwrap().with_truth(truth).unwrap();
        match self.features {
            Features::Missing => table,
            _ => table.with_features((0..10).map(|i| format!("f{i}")), features).unwrap(),
        }
    }
}

fn normal(rng: &mut Rng) -> f64 {
    (-2.0 * (1.0 - rng.uniform()).ln()).sqrt() * (std::f64::consts::TAU * rng.uniform()).cos()
}

fn softmax(logits: &[f64], scale: f64) -> Vec<f64> {
    let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    normalised(logits.iter().map(|x| (scale * (x - most)).exp()).collect())
}

/// Tasks whose prices matter: three losses, each with a cheap and an expensive oracle, with and without abstention.
pub(crate) fn tasks() -> Vec<Task> {
    let task = |loss: Loss, price: f64| Task::new(loss).route("expert", Oracle::bayes(), price).unwrap();
    let mut tasks = Vec::new();
    for (loss, unit) in [(Loss::brier(), 0.3), (Loss::zero_one(), 0.25), (Loss::cross_entropy(), 0.5)] {
        for price in [0.3, 0.8] {
            tasks.push(task(loss.clone(), unit * price));
        }
        tasks.push(task(loss.clone(), unit * 0.4).abstain(2.0 * unit).unwrap());
    }
    tasks
}

/// Queries whose true losses are known under some tasks.
pub(crate) struct Queries {
    table: Table,
    /// For each task, the costs of predicting and routing each query.
    costs: Vec<Vec<[f64; 2]>>,
    tasks: Vec<Task>,
}

impl Queries {
    pub(crate) fn new(table: Table, tasks: Vec<Task>) -> Self {
        let cost = |task: &Task, row: usize| {
            let (truth, price) = (table.truth(row).unwrap(), task.routes()[0].price());
            [task.loss().expected(truth, &table.prediction(row)), task.loss().entropy(truth) + price]
        };
        let costs = tasks.iter().map(|task| (0..table.rows()).map(|row| cost(task, row)).collect()).collect();
        Self { table, costs, tasks }
    }

    /// The true cost per query of a policy of one of the tasks.
    pub(crate) fn cost_of(&self, policy: &Policy, task: usize) -> f64 {
        let decisions = policy.decide_batch(&self.table).unwrap();
        let taken = policy.values(&decisions, |decision| decision.code());
        let cost = |(&[predict, route], action): (&[f64; 2], &Option<usize>)| match action {
            Some(0) | None => predict,
            Some(1) => route,
            Some(_) => self.tasks[task].abstain_price().unwrap(),
        };
        self.costs[task].iter().zip(&taken).map(cost).sum::<f64>() / taken.len() as f64
    }

    /// The mean true cost per query of a router over all tasks.
    pub(crate) fn cost(&self, router: &Router) -> Result<f64> {
        let mut sum = 0.0;
        for (place, task) in self.tasks.iter().enumerate() {
            sum += self.cost_of(&router.policy(task)?, place);
        }
        Ok(sum / self.tasks.len() as f64)
    }

    /// The same for a router calibrated on a table.
    pub(crate) fn cost_with(&self, table: &Table, partition: &Partition) -> Result<f64> {
        self.cost(&Router::calibrate(table, partition)?)
    }
}
