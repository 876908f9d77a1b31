//! Supervised baselines. The other baselines (total uncertainty, cell-optimal, point-wise optimal, random) are rankings
//! of the core crate.

use forust_ml::objective::ObjectiveType;
use forust_ml::{GradientBooster, Matrix};
use pointsman::{Replay, Table};

use crate::error::{Error, Result};

/// Gradient-boosted regression of a number per row on the prediction and the features: trees of depth 6 at a learning
/// rate of 0.3, the defaults of the paper's XGBoost.
pub(crate) struct Regression(GradientBooster);

impl Regression {
    /// Fits trees to one target per row of a table.
    pub(crate) fn fit(table: &Table, target: &[f64], trees: usize) -> Result<Self> {
        let data = input_columns(table);
        let matrix = Matrix::new(&data, table.rows(), data.len() / table.rows().max(1));
        let mut trees = GradientBooster::default()
            .set_objective_type(ObjectiveType::SquaredLoss)
            .set_iterations(trees)
            .set_max_depth(6)
            .set_parallel(false);
        trees.fit_unweighted(&matrix, target, None).map_err(|error| Error::Trees(error.to_string()))?;
        Ok(Self(trees))
    }

    /// The predicted number of each row.
    pub(crate) fn scores(&self, table: &Table) -> Vec<f64> {
        let data = input_columns(table);
        self.0.predict(&Matrix::new(&data, table.rows(), data.len() / table.rows().max(1)), true)
    }
}

/// Gradient-boosted regression of the reducible loss on the prediction and the features.
///
/// The target of a calibration row is L(ȳ, f) − L(ȳ, ȳ), where ȳ is the mean of its labels and f the served prediction.
/// The regression serves one loss; another loss needs another [`Supervised::fit`].
pub struct Supervised(Regression);

impl std::fmt::Debug for Supervised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supervised").finish_non_exhaustive()
    }
}

/// Predictions and features of all rows, in column-major order.
fn input_columns(table: &Table) -> Vec<f64> {
    let predictions =
        (0..table.classes().len()).flat_map(|c| (0..table.rows()).map(move |row| table.prediction(row)[c]));
    let features = (0..table.feature_names().len())
        .flat_map(|column| (0..table.rows()).map(move |row| table.features(row)[column]));
    predictions.chain(features).collect()
}

impl Supervised {
    /// Fits trees to the reducible losses of calibration rows; `replay` is the replay of the calibration table.
    ///
    /// # Errors
    /// If the trees cannot be fitted.
    pub fn fit(calibration: &Table, replay: &Replay, trees: usize) -> Result<Self> {
        Ok(Self(Regression::fit(calibration, &replay.reducible(), trees)?))
    }

    /// The predicted reducible loss of each row.
    #[must_use]
    pub fn scores(&self, table: &Table) -> Vec<f64> {
        self.0.scores(table)
    }
}
