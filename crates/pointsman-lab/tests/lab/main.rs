//! Tests of the public interface: the paper's claims, and runs that fail or are interrupted.

mod claims;
mod runs;
