//! Evaluation on held-out rows: the cost of a policy, of alternative rules and of the best possible decisions.

mod actions;
mod calibration;
mod cells;
mod comparison;
mod corrected;
mod costs;
mod curve;
mod evaluation;
mod gain;
mod grid;
mod limited_threshold;
mod measure;
mod mixtures;
mod names;
mod rankings;
mod replay;
mod rows;
mod savings;
mod sweep;
mod taken_actions;
mod threshold;

pub use calibration::{CalibrationError, CellError};
pub use cells::{CellSummary, HeldOutCell};
pub use comparison::{Comparison, Difference, PolicyCost, compare_policies};
pub use evaluation::{Evaluation, LossReached, Truth};
pub use grid::{GridRoute, PriceGrid};
pub(crate) use limited_threshold::{Parts, Quantiles, spans};
pub use measure::{CellLosses, Correlations, Mean, RoutingCurve};
pub use mixtures::MixtureHistogram;
pub use names::{action_name, ranking_name, rule_name};
pub use replay::Replay;
use replay::{Basis, Place, minus, sum};
pub(crate) use rows::RowCosts;
pub use savings::Saving;
pub use sweep::{Sweep, SweepAxis, SweepPoint};
pub(crate) use threshold::Thresholds;
