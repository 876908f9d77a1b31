//! Numerical tools: reproducible random numbers, weighted means and small linear programs.

pub(crate) mod linear;
pub(crate) mod mix;
pub(crate) mod weighted;
