//! What is seen of traffic after calibration: whether queries are still like the calibration rows.

mod traffic;

pub use traffic::{MovedShare, TRAFFIC_DOUBT, TRAFFIC_TOLERANCE, Traffic, TrafficShift, share_limits};
