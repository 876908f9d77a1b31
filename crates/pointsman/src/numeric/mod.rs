//! Numerical tools: reproducible random numbers and small linear programs.

pub(crate) mod linear;
pub(crate) mod mix;
