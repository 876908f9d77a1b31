//! The core's tests that need no files but the golden cases and the sources themselves.

mod arrays;
mod cells;
mod certificates;
mod corrections;
mod decisions;
mod diagnosis;
mod diagnosis_limits;
mod estimators;
mod evaluation;
mod forest;
mod golden;
mod honest_forest;
mod honest_splits;
mod invariance;
mod layering;
mod limits;
mod losses;
mod oracles;
mod partials;
mod plans;
mod prices;
mod promises;
mod regressions;
mod stability;
mod theorems;
mod world;
