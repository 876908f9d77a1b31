//! Numbers as text, by the core's rules.

pub(crate) use pointsman::number::{count, counted, decimals, fixed, level, maybe, percent, plain, short};
