//! Numbers for people, as everywhere in Pointsman.

pub(crate) use pointsman::number::{count, counted, decimals, fixed, level, maybe, percent, plain, short};
