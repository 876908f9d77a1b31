//! The calibration of the weak model's confidence.

use statrs::function::gamma::gamma_ur;

use super::estimate::Estimate;
use crate::error::Result;
use crate::numeric::weighted::{WeightedMean, weighted_mean};
use crate::partition::{CellId, Partition};
use crate::router::Router;
use crate::table::Table;

/// The largest number of confidence bins.
const MAX_BINS: usize = 15;

/// The smallest number of rows per confidence bin.
const MIN_ROWS_PER_BIN: usize = 50;

/// A calibration error that exceeds chance by no more than this is negligible.
const NEGLIGIBLE_ERROR: f64 = 0.01;

/// The weak model's confidence compared with its accuracy.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct WeakModel {
    /// The mean confidence.
    pub confidence: f64,
    /// The share of labels that are the top class.
    pub accuracy: f64,
    /// The mean of |confidence − accuracy| over confidence bins.
    pub error: f64,
    /// The error that chance alone would give if the model were calibrated.
    pub floor: f64,
    /// The probability of differences this large if the model is calibrated.
    pub p_value: f64,
    /// The confidence bins, least confident first.
    pub bins: Vec<ConfidenceBin>,
    /// The saving from serving centroids (`--recalibrate`) in the loss of always predicting, and in the router's cost at the task's prices;
    /// unknown with one label per item, or with only one action.
    pub recalibrating_saves: [Option<Estimate>; 2],
}

/// One confidence bin.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ConfidenceBin {
    /// Its share of the rows.
    pub share: f64,
    /// The mean confidence.
    pub confidence: f64,
    /// The share of labels that are the top class.
    pub accuracy: f64,
}

impl WeakModel {
    pub(super) fn fit(rows: &Table) -> Result<Self> {
        let bins = (rows.rows() / MIN_ROWS_PER_BIN).clamp(1, MAX_BINS);
        let router = Router::calibrate(rows, &Partition::confidence(bins))?;
        let all: f64 = (0..rows.rows()).map(|row| rows.weight(row)).sum();
        let (mut model, mut statistic, mut groups) = (Self::blank(), 0.0, 0.0);
        for cell in 0..router.cells().count() as u32 {
            let mixture = router.mixture(CellId(cell));
            let table = mixture.table();
            let gaps: Vec<[f64; 3]> = mixture
                .rows()
                .map(|row| {
                    let peak = table.peak(row);
                    [table.weight(row), peak.confidence, mixture.votes(row).mean(peak.class as usize)]
                })
                .collect();
            if gaps.is_empty() {
                continue;
            }
            let [confidence, accuracy] = [1, 2].map(|value| weighted_mean(gaps.iter().map(|row| (row[0], row[value]))));
            let gap = confidence - accuracy;
            let spread = WeightedMean::around(gap, gaps.iter().map(|[w, c, a]| (*w, c - a)));
            let weight = spread.weight;
            // Two pseudo-rows with the variance of labels: a bin of confident predictions without errors so far still has a standard error.
            let prior = 2.0 * (weight / gaps.len() as f64).powi(2) * confidence * (1.0 - confidence);
            let error = (spread.squared_deviations + prior).sqrt() / weight;
            let share = weight / all;
            model.confidence += share * confidence;
            model.accuracy += share * accuracy;
            model.error += share * gap.abs();
            model.floor += share * error * (2.0 / std::f64::consts::PI).sqrt();
            if error > 0.0 {
                statistic += (gap / error).powi(2);
                groups += 1.0;
            }
            model.bins.push(ConfidenceBin { share, confidence, accuracy });
        }
        model.p_value = if groups > 0.0 { gamma_ur(groups / 2.0, statistic / 2.0) } else { 1.0 };
        Ok(model)
    }

    fn blank() -> Self {
        Self {
            confidence: 0.0,
            accuracy: 0.0,
            error: 0.0,
            floor: 0.0,
            p_value: 1.0,
            bins: Vec::new(),
            recalibrating_saves: [None; 2],
        }
    }

    /// Whether the calibration error is negligible or explained by chance.
    #[must_use]
    pub fn is_calibrated(&self) -> bool {
        self.p_value >= 0.01 || self.error <= self.floor + NEGLIGIBLE_ERROR
    }

    /// Whether the model is more confident than accurate.
    #[must_use]
    pub fn is_overconfident(&self) -> bool {
        !self.is_calibrated() && self.confidence > self.accuracy
    }
}
