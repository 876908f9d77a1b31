//! Pointsman's reports: data first, then drawn.

pub mod chart;
