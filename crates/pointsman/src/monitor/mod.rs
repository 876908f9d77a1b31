//! Monitoring of traffic after calibration: whether queries are still like the calibration rows.

mod share;
mod traffic;

pub use share::share_limits;
pub use traffic::{MovedShare, TRAFFIC_DOUBT, TRAFFIC_TOLERANCE, Traffic, TrafficShift};
