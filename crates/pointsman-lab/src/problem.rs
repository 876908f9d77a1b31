//! A routing problem: calibration rows, test rows and the losses that apply.

use std::path::PathBuf;

use pointsman::{Loss, Partition, Table};

use crate::datasets::Dataset;
use crate::error::Result;
use crate::network::Network;
use crate::random::Random;
use crate::settings::Settings;
use crate::subsample;
use crate::worlds::World;

/// Where a problem comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// A synthetic world.
    World(World),
    /// A data set.
    Data(Dataset),
}

impl Source {
    /// The name of the world or data set.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::World(world) => world.name(),
            Self::Data(dataset) => dataset.name(),
        }
    }
}

/// A routing problem.
#[derive(Debug, Clone)]
pub struct Problem {
    /// The world or data set.
    pub source: Source,
    /// Calibration rows: predictions and votes.
    pub calibration: Table,
    /// Test rows: predictions, and votes or known truth.
    pub test: Table,
    /// The paper's partition for this problem.
    pub partition: Partition,
    /// The loss of the routing curves; the static supervised router is trained on it.
    pub own_loss: Loss,
    /// The losses of the paper's appendix that apply to this number of classes.
    pub losses: Vec<Loss>,
}

impl Problem {
    /// Draws a world and predicts it with its weak model. The model is trained unless a trained one is cached; the test
    /// inputs are the same for all seeds.
    ///
    /// # Errors
    /// If the model cannot be written.
    pub fn from_world(world: World, seed: u64, settings: &Settings) -> Result<Self> {
        let network = weak_model(world, seed, settings)?;
        let calibration = world.draw(seed, "calibration", settings.calibration_rows, settings.labels);
        let votes = calibration.positive.iter().flat_map(|&n| [calibration.labels - n, n]).collect();
        let test = world.draw(0, "test", settings.test_rows, 0);
        let truth = test.x.iter().map(|&x| world.truth(x)).flat_map(|p| [1.0 - p, p]).collect();
        let table = |x: Vec<f64>| -> Result<Table> {
            let probs = network.predict(&x).into_iter().flat_map(|p| [1.0 - p, p]).collect();
            Ok(Table::new(["no", "yes"], probs)?.with_features(["x"], x)?)
        };
        // As in the paper: fifteen cells per class in the piecewise world, ten per class elsewhere.
        let bins = if world == World::Piecewise { 15 } else { 10 };
        Ok(Self {
            source: Source::World(world),
            calibration: table(calibration.x)?.with_votes(votes)?,
            test: table(test.x)?.with_truth(truth)?,
            partition: Partition::top_class(bins),
            own_loss: Loss::brier(),
            losses: vec![
                Loss::brier(),
                Loss::cross_entropy(),
                Loss::zero_one(),
                Loss::fn_fp(1.0, 4.0)?,
                Loss::three_part(),
            ],
        })
    }

    /// A data set with the paper's partition.
    pub(crate) fn from_data(dataset: Dataset, calibration: Table, test: Table) -> Result<Self> {
        Ok(Self {
            source: Source::Data(dataset),
            calibration,
            test,
            partition: Partition::top_class(10),
            own_loss: Loss::cross_entropy(),
            losses: vec![Loss::cross_entropy(), Loss::brier(), Loss::zero_one(), Loss::asymmetric(2.0)?],
        })
    }

    /// Divides the same rows at random into halves of the same sizes. Split 0 keeps the halves of the file.
    pub(crate) fn resplit(&self, split: u64) -> Result<Self> {
        if split == 0 {
            return Ok(self.clone());
        }
        let all = subsample::concatenate(&self.calibration, &self.test)?;
        let mut order: Vec<usize> = (0..all.rows()).collect();
        Random::new(split, "split").shuffle(&mut order);
        let (calibration, test) = order.split_at(self.calibration.rows());
        Ok(Self {
            calibration: subsample::select_rows(&all, calibration)?,
            test: subsample::select_rows(&all, test)?,
            ..self.clone()
        })
    }
}

/// The path of a world's trained model. The name contains every parameter that the model depends on.
pub(crate) fn model_path(world: World, seed: u64, settings: &Settings) -> PathBuf {
    let key = format!("{}-seed{seed}-n{}-{}", world.name(), settings.training_rows, settings.training.key());
    settings.output.join("models").join(format!("{key}.safetensors"))
}

/// A world's weak model: loaded from the cache, or trained and cached.
pub(crate) fn weak_model(world: World, seed: u64, settings: &Settings) -> Result<Network> {
    let path = model_path(world, seed, settings);
    if let Some(network) = Network::load(&path, settings.training.width) {
        return Ok(network);
    }
    let draw = world.draw(seed, "train", settings.training_rows, 1);
    let network = settings.training.fit(&draw.x, &draw.positive, seed);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|source| crate::Error::folder(folder, source))?;
    }
    network.save(&path)?;
    Ok(network)
}
