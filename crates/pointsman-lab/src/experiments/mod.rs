//! One module an experiment: which problems, and what to measure on one of them.

mod budgets;
mod cells;
mod correlation;
mod forest;
mod labels;
mod losses;
pub(crate) mod oracles;
mod routing;
mod rows;
mod three_way;

use pointsman::{Estimator, Evaluation, Loss, Oracle, Partition, Router, Table, Task};
use serde_json::{Map, Value, json};

use crate::datasets::Dataset;
use crate::error::Result;
use crate::problem::{Problem, Source};
use crate::settings::{Experiment, Settings};
use crate::worlds::World;

/// The price of routing in the paper's three-way experiment.
pub(crate) const ROUTE_PRICE: f64 = 0.05;

impl Experiment {
    /// The problems it looks at.
    pub(crate) fn sources(self) -> Vec<Source> {
        let worlds = World::ALL.map(Source::World);
        let data = Dataset::ALL.map(Source::Data);
        let johnson = Source::World(World::Johnson);
        match self {
            Self::Routing | Self::Correlation => worlds.into_iter().chain(data).collect(),
            Self::Losses | Self::ThreeWay | Self::Cells => [johnson].into_iter().chain(data).collect(),
            Self::Forest => [johnson, Source::World(World::Piecewise)].into_iter().chain(data).collect(),
            Self::Oracles => vec![johnson, Source::Data(Dataset::ChaosNli)],
            Self::Budgets => [johnson].into_iter().chain(data).collect(),
            Self::Labels | Self::Rows => {
                vec![johnson, Source::Data(Dataset::Cifar10h), Source::Data(Dataset::ChaosNli)]
            }
        }
    }

    /// How many seeds a problem gets: data sets only where something is drawn from them.
    pub(crate) fn seeds(self, source: Source, settings: &Settings) -> u64 {
        match (self, source) {
            (_, Source::World(_)) | (Self::Labels | Self::Rows, _) => settings.seeds,
            _ => 1,
        }
    }

    /// The numbers of one problem and seed.
    pub(crate) fn measure(self, problem: &Problem, seed: u64, settings: &Settings) -> Result<Value> {
        match self {
            Self::Routing => routing::measure(problem, settings),
            Self::Losses => losses::measure(problem, settings),
            Self::ThreeWay => three_way::measure(problem),
            Self::Correlation => correlation::measure(problem),
            Self::Cells => cells::measure(problem),
            Self::Labels => labels::measure(problem, seed),
            Self::Rows => rows::measure(problem, seed),
            Self::Forest => forest::measure(problem, settings),
            Self::Oracles => oracles::measure(problem),
            Self::Budgets => budgets::measure(problem),
        }
    }
}

/// The weak model as it is, and serving its cells' centroids.
fn variants(table: &Table, partition: &Partition) -> Result<[(&'static str, Router); 2]> {
    let router = Router::calibrate(table, partition)?;
    Ok([("raw", router.clone()), ("recalibrated", router.recalibrated())])
}

/// Predict or route at the paper's price, by one estimator for all losses.
fn two_way(loss: &Loss) -> Result<Task> {
    Ok(Task::new(loss.clone()).estimator(Estimator::Shrink).route("oracle", Oracle::bayes(), ROUTE_PRICE)?)
}

/// The gains of an evaluation's rankings, random and point-wise optimal left out: they are 0 and 1.
fn gains(evaluation: &Evaluation) -> Map<String, Value> {
    let known = evaluation.gain.iter().filter(|(name, _)| !matches!(*name, "random" | "pointwise-optimal"));
    known.map(|(name, gain)| (name.to_owned(), json!(gain))).collect()
}
