//! Whether the weak model's confidence can be believed.

use statrs::function::gamma::gamma_ur;

use super::interval::Estimate;
use crate::error::Result;
use crate::partition::{CellId, Partition};
use crate::router::Router;
use crate::table::Table;

/// Groups of like confidence.
const BINS: usize = 15;

/// Fewer rows of like confidence than this say nothing.
const BIN_ROWS: usize = 50;

/// A calibration error no larger than this beyond chance does not matter.
const SMALL: f64 = 0.01;

/// How the weak model's confidence compares with how often labels name its top class.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct WeakModel {
    /// Mean confidence.
    pub confidence: f64,
    /// How often a label is the top class.
    pub accuracy: f64,
    /// Mean over groups of like confidence of |confidence − accuracy|.
    pub error: f64,
    /// What chance alone would make of it, were the model calibrated.
    pub floor: f64,
    /// How often chance alone would make the groups differ as much.
    pub p_value: f64,
    /// The groups, least confident first.
    pub bins: Vec<ConfidenceBin>,
    /// What serving centroids (`--recalibrate`) would take off the loss of always predicting, and off the router's cost at the
    /// task's prices; unknown with one label per item, or without a choice.
    pub recalibrating_saves: [Option<Estimate>; 2],
}

/// Rows of like confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ConfidenceBin {
    /// Their share.
    pub share: f64,
    /// Their mean confidence.
    pub confidence: f64,
    /// How often a label is their top class.
    pub accuracy: f64,
}

impl WeakModel {
    pub(super) fn of(rows: &Table) -> Result<Self> {
        let bins = (rows.rows() / BIN_ROWS).clamp(1, BINS);
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
            let weight: f64 = gaps.iter().map(|[w, ..]| w).sum();
            if gaps.is_empty() {
                continue;
            }
            let mean = |value: usize| gaps.iter().map(|row| row[0] * row[value]).sum::<f64>() / weight;
            let (confidence, accuracy) = (mean(1), mean(2));
            let gap = confidence - accuracy;
            let squares: f64 = gaps.iter().map(|[w, c, a]| (w * (c - a - gap)).powi(2)).sum();
            // As if two further rows varied as far as labels can: a group of sure predictions that met no error yet is not exact.
            let prior = 2.0 * (weight / gaps.len() as f64).powi(2) * confidence * (1.0 - confidence);
            let error = (squares + prior).sqrt() / weight;
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

    /// Whether chance explains the calibration error, or it is too small to matter.
    #[must_use]
    pub fn is_calibrated(&self) -> bool {
        self.p_value >= 0.01 || self.error <= self.floor + SMALL
    }

    /// Whether the model is surer of itself than labels warrant.
    #[must_use]
    pub fn is_overconfident(&self) -> bool {
        !self.is_calibrated() && self.confidence > self.accuracy
    }
}
