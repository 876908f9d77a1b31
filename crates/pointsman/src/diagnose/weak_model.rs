//! The calibration of the weak model's confidence.

use std::fmt;

use statrs::function::erf::erfc_inv;
use statrs::function::gamma::gamma_ur;

use super::estimate::Estimate;
use crate::error::Result;
use crate::number::fixed;
use crate::numeric::weighted::{WeightedMean, Z_95, weighted_mean};
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
    /// The partition whose centroids these are; `None` if the savings are unknown.
    pub recalibrated_partition: Option<String>,
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
    /// The standard error of the difference between the two.
    pub standard_error: f64,
}

impl ConfidenceBin {
    /// Confidence minus accuracy.
    fn gap(&self) -> f64 {
        self.confidence - self.accuracy
    }
}

/// In which direction the confidence of a model that is not calibrated is wrong.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Miscalibration {
    /// The model is more confident than accurate, and in no confidence bin certainly less.
    Overconfident,
    /// The model is less confident than accurate, and in no confidence bin certainly more.
    Underconfident,
    /// It is overconfident at some confidences and underconfident at others: the ranges of mean confidences of the bins where that is
    /// certain, which do not overlap.
    Mixed {
        /// Where it is overconfident.
        over: Vec<[f64; 2]>,
        /// Where it is underconfident.
        under: Vec<[f64; 2]>,
    },
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
            model.bins.push(ConfidenceBin { share, confidence, accuracy, standard_error: error });
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
            recalibrated_partition: None,
        }
    }

    /// Whether the calibration error is negligible or explained by chance.
    #[must_use]
    pub fn is_calibrated(&self) -> bool {
        self.p_value >= 0.01 || self.error <= self.floor + NEGLIGIBLE_ERROR
    }

    /// Whether the model is more confident than accurate, and nowhere certainly less.
    #[must_use]
    pub fn is_overconfident(&self) -> bool {
        self.miscalibration() == Some(Miscalibration::Overconfident)
    }

    /// The direction in which the confidence is wrong; `None` if the model is calibrated.
    #[must_use]
    pub fn miscalibration(&self) -> Option<Miscalibration> {
        if self.is_calibrated() {
            return None;
        }
        let variance: f64 = self.bins.iter().map(|bin| (bin.share * bin.standard_error).powi(2)).sum();
        let gap = self.confidence - self.accuracy;
        let is_certain = gap.abs() > Z_95 * variance.sqrt();
        let [over, under] = self.certain_ranges();
        Some(match (over.as_slice(), under.as_slice()) {
            (_, []) if is_certain && gap > 0.0 => Miscalibration::Overconfident,
            ([], _) if is_certain && gap < 0.0 => Miscalibration::Underconfident,
            _ => Miscalibration::Mixed { over, under },
        })
    }

    /// The ranges of mean confidences of the bins where the model is overconfident, and of those where it is underconfident, certain in all
    /// bins together with 95 % confidence. A range ends where a bin of the other kind follows, so that ranges do not overlap.
    fn certain_ranges(&self) -> [Vec<[f64; 2]>; 2] {
        let largest = erfc_inv(0.05 / self.bins.len() as f64) * std::f64::consts::SQRT_2;
        let mut certain: Vec<(f64, bool)> = self
            .bins
            .iter()
            .filter(|bin| bin.gap().abs() > largest * bin.standard_error)
            .map(|bin| (bin.confidence, bin.gap() > 0.0))
            .collect();
        certain.sort_by(|a, b| a.0.total_cmp(&b.0));
        let ranges = |is_over: bool| {
            let runs = certain.chunk_by(|a, b| a.1 == b.1).filter(|run| run[0].1 == is_over);
            runs.map(|run| [run[0].0, run[run.len() - 1].0]).collect()
        };
        [ranges(true), ranges(false)]
    }
}

impl fmt::Display for Miscalibration {
    /// What the model is, as the end of a sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |ends: &[f64; 2]| match ends.map(|end| fixed(end, 2)) {
            [low, high] if low == high => format!("around {low}"),
            [low, high] => format!("from {low} to {high}"),
        };
        let around = |ranges: &[[f64; 2]]| ranges.iter().map(range).collect::<Vec<_>>().join(" and ");
        match self {
            Self::Overconfident => f.write_str("overconfident"),
            Self::Underconfident => f.write_str("underconfident"),
            Self::Mixed { over, under } if over.is_empty() && under.is_empty() => f.write_str("not calibrated"),
            Self::Mixed { over, under } if under.is_empty() => {
                write!(f, "overconfident at confidences {}, but not on average", around(over))
            }
            Self::Mixed { over, under } if over.is_empty() => {
                write!(f, "underconfident at confidences {}, but not on average", around(under))
            }
            Self::Mixed { over, under } => {
                write!(f, "overconfident at confidences {} and underconfident {}", around(over), around(under))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model whose bins have these confidences and accuracies, each with a standard error of 0.01.
    fn model(bins: &[[f64; 2]]) -> WeakModel {
        let share = 1.0 / bins.len() as f64;
        let mean = |place: usize| bins.iter().map(|bin| share * bin[place]).sum();
        let bin =
            |&[confidence, accuracy]: &[f64; 2]| ConfidenceBin { share, confidence, accuracy, standard_error: 0.01 };
        WeakModel {
            confidence: mean(0),
            accuracy: mean(1),
            error: bins.iter().map(|[c, a]| share * (c - a).abs()).sum(),
            floor: 0.008,
            p_value: 1e-6,
            bins: bins.iter().map(bin).collect(),
            recalibrating_saves: [None; 2],
            recalibrated_partition: None,
        }
    }

    #[test]
    fn the_direction_of_miscalibration_is_stated_only_if_it_is_one() {
        let both = model(&[[0.5, 0.58], [0.6, 0.68], [0.8, 0.8], [0.95, 0.89], [0.99, 0.9]]);
        assert!(!both.is_overconfident());
        let text = both.miscalibration().map(|found| found.to_string());
        assert_eq!(
            text.as_deref(),
            Some("overconfident at confidences from 0.95 to 0.99 and underconfident from 0.50 to 0.60")
        );
        // Underconfident on both sides of where it is overconfident: three ranges that do not overlap.
        let around = model(&[[0.45, 0.55], [0.52, 0.42], [0.57, 0.47], [0.7, 0.8], [0.9, 0.98]]);
        assert_eq!(
            around.miscalibration().map(|found| found.to_string()).as_deref(),
            Some("overconfident at confidences from 0.52 to 0.57 and underconfident around 0.45 and from 0.70 to 0.90")
        );
        let over = model(&[[0.6, 0.52], [0.8, 0.7], [0.9, 0.91]]);
        assert_eq!(over.miscalibration(), Some(Miscalibration::Overconfident));
        let under = model(&[[0.6, 0.7], [0.8, 0.88], [0.9, 0.9]]);
        assert_eq!(under.miscalibration().map(|found| found.to_string()).as_deref(), Some("underconfident"));
        let uneven = model(&[[0.6, 0.578], [0.7, 0.722], [0.8, 0.778], [0.9, 0.922]]);
        assert_eq!(uneven.miscalibration().map(|found| found.to_string()).as_deref(), Some("not calibrated"));
        assert_eq!(WeakModel { p_value: 0.5, ..both }.miscalibration(), None);
    }
}
