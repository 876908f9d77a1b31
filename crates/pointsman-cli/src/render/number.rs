//! Numbers as text, by the core's rules.

pub(crate) use pointsman::number::{count, counted, decimals, exact, fixed, level, maybe, percent, plain, short};
