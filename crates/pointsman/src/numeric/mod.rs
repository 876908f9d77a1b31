//! Tools that know nothing of routing: reproducible random numbers and small linear programs.

pub(crate) mod linear;
pub(crate) mod mix;
