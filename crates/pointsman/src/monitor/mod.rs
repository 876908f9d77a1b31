//! Traffic after calibration: whether queries are still like the calibration rows, and how they would be decided by another policy.

mod share;
mod traffic;
mod what_if;

pub use share::share_limits;
pub use traffic::{MovedShare, TRAFFIC_DOUBT, TRAFFIC_TOLERANCE, Traffic, TrafficShift};
pub use what_if::{CellChange, Flow, WhatIf, WhatIfCost, WhatIfSummary};
