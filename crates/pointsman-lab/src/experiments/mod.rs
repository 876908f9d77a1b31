//! One module per experiment: its problems, and what it measures on each.

mod budgets;
mod cells;
mod correlation;
mod curves;
mod forest;
mod functions;
mod labels;
mod losses;
pub(crate) mod oracles;
mod polynomial;
mod routing;
mod rows;
mod theory;
mod three_way;
pub(crate) mod tracks;

use pointsman::{Estimator, Loss, Oracle, Partition, Router, Table, Task};
use serde_json::Value;

use crate::datasets::Dataset;
use crate::error::Result;
use crate::problem::{Problem, Source};
use crate::settings::{Experiment, Settings};
use crate::worlds::World;

/// The price of routing in the paper's three-way experiment.
pub(crate) const ROUTE_PRICE: f64 = 0.05;

impl Experiment {
    /// The problems of the experiment.
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
            Self::Functions => worlds.to_vec(),
            Self::Theory => worlds.into_iter().chain([Source::Data(Dataset::ChaosNli)]).collect(),
            Self::Tracks => vec![data[0], data[1]],
            Self::Labels | Self::Rows => {
                vec![johnson, Source::Data(Dataset::Cifar10h), Source::Data(Dataset::ChaosNli)]
            }
        }
    }

    /// The seeds and splits of a problem. Experiments that compare rankings or costs split data sets at random for each
    /// repetition; those that subsample labels or rows use the halves named in the file.
    pub(crate) fn seeds(self, source: Source, settings: &Settings) -> Vec<(u64, u64)> {
        match (self, source) {
            (Self::Functions, _) => vec![(0, 0)],
            (_, Source::World(_)) | (Self::Labels | Self::Rows, _) => {
                (0..settings.seeds).map(|seed| (seed, 0)).collect()
            }
            (_, Source::Data(_)) if settings.splits == 0 => vec![(0, 0)],
            (_, Source::Data(_)) => (1..=settings.splits).map(|split| (0, split)).collect(),
        }
    }

    /// Measures one problem with one seed.
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
            Self::Functions => functions::measure(problem, seed, settings),
            Self::Theory => theory::measure(problem, seed),
            Self::Tracks => tracks::measure(problem, settings),
        }
    }
}

/// Two routers: one serves the weak model's predictions, the other the cells' centroids.
fn variants(table: &Table, partition: &Partition) -> Result<[(&'static str, Router); 2]> {
    let router = Router::calibrate(table, partition)?;
    Ok([("raw", router.clone()), ("recalibrated", router.recalibrated())])
}

/// A task with the default estimator of the experiments.
fn task(loss: &Loss) -> Task {
    Task::new(loss.clone()).estimator(Estimator::Shrink)
}

/// A task with two actions, predicting and routing at the paper's price.
fn two_way(loss: &Loss) -> Result<Task> {
    Ok(task(loss).route("oracle", Oracle::bayes(), ROUTE_PRICE)?)
}
